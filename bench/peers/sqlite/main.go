// Command sqlite stores the records of convo for bench with SQLite.
package main

import (
	"database/sql"
	"errors"
	"log"
	"os"

	_ "modernc.org/sqlite"

	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/turns"
)

func main() {
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	peer.Main(library(dir))
}

func library(dir string) peer.Peer {
	return peer.Peer{
		Modules: []string{"modernc.org/sqlite"},
		Cells: []peer.Cell{
			{Table: peer.TableSave, Name: "SQLite INSERT, synchronous=OFF", New: func(n int) peer.Case { return insert(dir, n) }},
		},
		Notes: []peer.Note{
			{Table: peer.TableSave, Text: "SQLite is modernc.org/sqlite with a write-ahead log, one connection that stays open and a prepared statement. It writes whole pages to that log, and from time to time copies them to the database. It is ahead of convo's first row, whose record is made while it is measured, and behind the second. The memory that it takes from the system itself is not counted."},
		},
	}
}

const lines = 1000 // that are stored over and over

var opened *sql.DB // by the last case

// insert stores the line of a record, behind n others.
func insert(dir string, n int) peer.Case {
	return peer.Case{Max: 20_000, New: func(int) (func(int) error, error) {
		if opened != nil {
			if err := opened.Close(); err != nil {
				return nil, err
			}
		}
		path := dir + "/sqlite.db"
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.RemoveAll(path + end); err != nil {
				return nil, err
			}
		}
		data, err := turns.Lines(lines)
		if err != nil {
			return nil, err
		}
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
		if err != nil {
			return nil, err
		}
		opened = db
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("CREATE TABLE records (key TEXT NOT NULL, seq INTEGER NOT NULL, line BLOB NOT NULL, PRIMARY KEY (key, seq))"); err != nil {
			return nil, err
		}
		const query = "INSERT INTO records VALUES (?, ?, ?)"
		tx, err := db.Begin()
		if err != nil {
			return nil, err
		}
		for i := range n {
			if _, err := tx.Exec(query, turns.Key, i+1, data[i%lines]); err != nil {
				return nil, errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return nil, err
		}
		stmt, err := db.Prepare(query)
		return func(i int) error {
			_, err := stmt.Exec(turns.Key, n+i+1, data[(n+i)%lines])
			return err
		}, err
	}}
}
