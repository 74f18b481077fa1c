package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/sqlstore"

	_ "modernc.org/sqlite"
)

// A conversation in a file of SQLite. With PostgreSQL the first steps differ:
//
//	db, err := sql.Open("pgx", "postgres://...")
//	store, err := sqlstore.New(ctx, db, sqlstore.PostgreSQL)
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "chats.db")

	talk := func() error {
		dsn, err := sqlstore.SQLiteFile(file) // makes the file, which others cannot read
		if err != nil {
			return err
		}
		db, err := sql.Open("sqlite", dsn)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		store, err := sqlstore.New(ctx, db, sqlstore.SQLite) // makes the tables
		if err != nil {
			return err
		}
		h, err := convo.Open(ctx, store, "42", nil) // empty, if the key is not in use
		if err != nil {
			return err
		}
		if _, err := h.Append(convo.User("Flights to Rome?"), convo.Assistant("Two.")); err != nil {
			return err
		}
		return h.Save(ctx)
	}
	fmt.Println(talk())
	fmt.Println(talk())

	dsn, _ := sqlstore.SQLiteFile(file)
	db, _ := sql.Open("sqlite", dsn)
	defer func() { _ = db.Close() }()
	store, _ := sqlstore.New(ctx, db, sqlstore.SQLite)
	for head, err := range store.List(ctx, convo.ListOptions{}) {
		fmt.Println(head, err)
	}
	// Output:
	// <nil>
	// <nil>
	// "42" "": record 2, 4 entries, 30 tokens <nil>
}
