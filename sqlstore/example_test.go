package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// A conversation in a file of SQLite. With PostgreSQL only the first two lines differ:
//
//	db, err := sql.Open("pgx", "postgres://...")
//	store, err := sqlstore.New(ctx, db, sqlstore.PostgreSQL)
func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "")
	defer func() { _ = os.RemoveAll(dir) }()

	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(filepath.Join(dir, "chats.db")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	store, err := sqlstore.New(ctx, db, sqlstore.SQLite)
	if err != nil {
		fmt.Println(err)
		return
	}

	for _, text := range []string{"Window seats only.", "Flights to Rome?"} {
		h, _ := convo.Open(ctx, store, "42", nil)
		_, _ = h.Append(convo.User(text), convo.Assistant("Noted."))
		_ = h.SetMeta("Rome", "")
		fmt.Println(h.Save(ctx))
	}
	for head, err := range store.List(ctx, "") {
		fmt.Println(head, err)
	}
	// Output:
	// <nil>
	// <nil>
	// "42" "Rome": record 2, 4 entries, 29 tokens <nil>
}
