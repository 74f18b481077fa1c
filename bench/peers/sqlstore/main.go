// Command sqlstore saves turns of many conversations for bench in SQLite and, if
// CONVO_BENCH_POSTGRES is the data source name of an empty database, in PostgreSQL: with the store
// of convo, and with an INSERT of the same bytes.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

func main() {
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	peer.Main(library(dir))
}

// A database is opened anew, and empty, by each case.
type database struct {
	name    string
	dialect sqlstore.Dialect
	insert  string
	open    func() (*sql.DB, error)
	opened  *sql.DB // by the last case
}

func library(dir string) peer.Peer {
	all := []*database{{
		name: "SQLite", dialect: sqlstore.SQLite, insert: "INSERT INTO bare VALUES (?, ?, ?)",
		open: func() (*sql.DB, error) {
			if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
				return nil, err
			}
			dsn, err := sqlstore.SQLiteFile(dir + "/talks.db")
			if err != nil {
				return nil, err
			}
			return sql.Open("sqlite", dsn)
		},
	}}
	if dsn := os.Getenv("CONVO_BENCH_POSTGRES"); dsn != "" {
		all = append(all, &database{
			name: "PostgreSQL", dialect: sqlstore.PostgreSQL, insert: "INSERT INTO bare VALUES ($1, $2, $3)",
			open: func() (*sql.DB, error) {
				db, err := sql.Open("pgx", dsn)
				if err == nil {
					_, err = db.Exec("DROP TABLE IF EXISTS bare, convo_schema, convo_logs, convo_records")
				}
				return db, err
			},
		})
	}
	p := peer.Peer{Modules: []string{"modernc.org/sqlite", "github.com/jackc/pgx/v5"}, Notes: []peer.Note{
		{Table: peer.TableMany, Text: "The rows of databases wait for the disk, because sqlstore refuses settings with which a record could be lost, and the bare row has the same. Only CPU time of this process is counted."},
	}}
	for _, d := range all {
		p.Cells = append(p.Cells,
			peer.Cell{Table: peer.TableMany, Name: "bare INSERT, " + d.name, New: d.bare},
			peer.Cell{Table: peer.TableMany, Name: "convo sqlstore, " + d.name + ", Append and Save", New: d.store})
	}
	return p
}

// most is how many turns a round saves.
const most = 1_000

// fresh opens an empty database, and closes the one before.
func (d *database) fresh() (*sql.DB, error) {
	if d.opened != nil {
		if err := d.opened.Close(); err != nil {
			return nil, err
		}
	}
	db, err := d.open()
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	d.opened = db
	return db, err
}

// bare inserts the line of turn i of each of n conversations.
func (d *database) bare(n int) peer.Case {
	return peer.Case{Units: n, Max: 1 + most/n, New: func(k int) (func(int) error, error) {
		db, err := d.fresh()
		if err != nil {
			return nil, err
		}
		lines, err := turns.Lines(k)
		if err != nil {
			return nil, err
		}
		bytes := map[sqlstore.Dialect]string{sqlstore.SQLite: "BLOB", sqlstore.PostgreSQL: "BYTEA"}[d.dialect]
		if _, err := db.Exec("CREATE TABLE bare (ckey TEXT NOT NULL, seq INTEGER NOT NULL, line " + bytes + " NOT NULL, PRIMARY KEY (ckey, seq))"); err != nil {
			return nil, err
		}
		insert, err := db.Prepare(d.insert)
		return func(i int) error {
			for j := range n {
				if _, err := insert.Exec(fmt.Sprint("talk-", j), i+1, lines[i]); err != nil {
					return err
				}
			}
			return nil
		}, err
	}}
}

// store appends and saves turn i of each of n conversations.
func (d *database) store(n int) peer.Case {
	return peer.Case{Units: n, Max: 1 + most/n, New: func(int) (func(int) error, error) {
		db, err := d.fresh()
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		s, err := sqlstore.New(ctx, db, d.dialect)
		if err != nil {
			return nil, err
		}
		all := make([]*convo.History, n)
		for i := range all {
			if all[i], err = turns.Open(s, fmt.Sprint("talk-", i)); err != nil {
				return nil, err
			}
			if err := errors.Join(turns.Add(all[i], 0), all[i].Save(ctx)); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			for _, h := range all {
				if err := errors.Join(turns.Add(h, 1+i), h.Save(ctx)); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}
