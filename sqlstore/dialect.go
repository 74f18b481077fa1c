package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// A Dialect is a kind of database.
type Dialect int

const (
	SQLite     Dialect = iota + 1 // 3.25 or newer
	PostgreSQL                    // 12 or newer
)

// String returns "SQLite" or "PostgreSQL".
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// migrations are the statements that bring the tables from each version to the next.
// Released statements never change; a later release adds statements, which only add to
// the tables. Words in capitals with a $ are replaced by types.
var migrations = [][]string{
	{
		`CREATE TABLE convo_schema (version BIGINT NOT NULL)`,
		`CREATE TABLE convo_logs (ckey $BYTES NOT NULL PRIMARY KEY, newest TEXT NOT NULL, seq $INT NOT NULL, created $INT NOT NULL, updated $INT NOT NULL, entries $INT NOT NULL, tokens $INT NOT NULL, title $BYTES NOT NULL, crc $INT NOT NULL, first_seq $INT NOT NULL, first_crc $INT NOT NULL)`,
		`CREATE INDEX convo_logs_updated ON convo_logs (updated DESC, ckey)`,
		`CREATE TABLE convo_records (ckey $BYTES NOT NULL, seq $INT NOT NULL, id TEXT NOT NULL, prev TEXT NOT NULL, is_full $INT NOT NULL, format $INT NOT NULL, upto $INT NOT NULL, head $BYTES NOT NULL, data $BYTES NOT NULL, crc $INT NOT NULL, PRIMARY KEY (ckey, seq))`,
		`CREATE INDEX convo_records_full ON convo_records (ckey, seq) WHERE is_full = 1`,
		`INSERT INTO convo_schema (version) VALUES (1)`,
	},
}

// Schema returns the statements that create the tables, to be run in order in one
// transaction. For an unknown Dialect it returns nil.
func Schema(d Dialect) []string { return d.statements(0) }

// statements returns the statements that update tables of the version from.
func (d Dialect) statements(from int) (all []string) {
	types := map[Dialect]*strings.Replacer{
		SQLite:     strings.NewReplacer("$BYTES", "BLOB", "$INT", "INTEGER", "BIGINT", "INTEGER"),
		PostgreSQL: strings.NewReplacer("$BYTES", "BYTEA", "$INT", "BIGINT"),
	}[d]
	if types == nil {
		return nil
	}
	for _, s := range slices.Concat(migrations[from:]...) {
		all = append(all, types.Replace(s))
	}
	return all
}

// SQLiteFile creates an empty file at path that only the user of this process can read
// and write (mode 0600). An existing file is left unchanged. SQLiteFile returns the data
// source name of the file with the settings that a [Store] needs: a write-ahead log,
// synchronous=FULL, transactions that take the write lock when they begin, and a timeout
// of 10 seconds for that lock. The name is for the drivers modernc.org/sqlite and
// github.com/mattn/go-sqlite3.
//
// SQLite gives the write-ahead log and the other files next to the database the same mode.
// If the file does not exist, a driver creates it with the mode 0644, less the umask, so
// that other users of the machine can read it. On Windows, a file is as private as its
// directory.
func SQLiteFile(path string) (dsn string, err error) {
	if path == "" || path == ":memory:" {
		return "", &convo.ValueError{Name: "path", Value: path, Want: "that of a file; to keep logs in memory, use a convotest.MemStore"}
	}
	if err := makePrivate(path); err != nil {
		return "", fmt.Errorf("convo: make the database: %w", err)
	}
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		path = "/" + path
	}
	name := url.URL{Scheme: "file", Opaque: strings.ReplaceAll(url.PathEscape(path), "%2F", "/")}
	return name.String() + "?_busy_timeout=10000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate", nil
}

// making is held while a file is created, so that no connection of this process is open
// when the file is closed: closing it would release the locks of the connection.
var making sync.Mutex

// makePrivate creates an empty file with the mode 0600. It does not open an existing file.
func makePrivate(path string) error {
	making.Lock()
	defer making.Unlock()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// New returns a [Store] in a database, and creates its tables if they do not exist.
// The caller remains responsible for configuring and closing the pool. New returns a
// [*convo.ValueError] if a record could be lost with the settings of the database, and an
// error that matches [convo.ErrVersion] if a later release has changed the tables.
func New(ctx context.Context, db *sql.DB, d Dialect) (*Store, error) {
	switch {
	case db == nil:
		return nil, &convo.ValueError{Name: "db", Value: nil, Want: "a *sql.DB, from sql.Open"}
	case d != SQLite && d != PostgreSQL:
		return nil, &convo.ValueError{Name: "Dialect", Value: d, Want: "SQLite or PostgreSQL"}
	}
	begin := time.Now()
	err := d.open(ctx, db)
	for d == SQLite && isBusy(err) && time.Since(begin) < busyTimeout && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
		err = d.open(ctx, db)
	}
	if err != nil {
		return nil, wrapped(ctx, "open the tables", "", err)
	}
	return &Store{db: db, dialect: d}, nil
}

// busyTimeout is how long New waits for the lock of a SQLite file.
const busyTimeout = 10 * time.Second

// isBusy reports whether another connection has locked a SQLite file. While a connection
// changes the journal mode of a new file, SQLite returns this error to other connections
// at once, regardless of their timeout.
func isBusy(err error) bool { return err != nil && strings.Contains(err.Error(), "database is locked") }

// open checks the settings and creates the tables.
func (d Dialect) open(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := d.checkSettings(ctx, conn); err != nil {
		if is := otherKind[d]; conn.QueryRowContext(ctx, is.query).Scan(new(string)) == nil {
			return &convo.ValueError{Name: "Dialect", Value: d, Want: is.Dialect.String() + ", which the database is"}
		}
		return err
	}
	return d.migrate(ctx, conn)
}

// otherKind maps each kind of database to the other kind, with a query that only the other
// kind accepts.
var otherKind = map[Dialect]struct {
	Dialect
	query string
}{
	SQLite:     {PostgreSQL, `SELECT current_setting('server_version')`},
	PostgreSQL: {SQLite, `SELECT sqlite_version()`},
}

// checkSettings returns an error if a record could be lost with the settings of conn.
func (d Dialect) checkSettings(ctx context.Context, conn *sql.Conn) error {
	setting := func(query, name, want string, bad ...string) error {
		var value string
		if err := conn.QueryRowContext(ctx, query).Scan(&value); err != nil {
			return err
		}
		if slices.Contains(bad, value) {
			return &convo.ValueError{Name: name, Value: value, Want: want}
		}
		return nil
	}
	if d == PostgreSQL {
		if err := setting(`SELECT current_setting('fsync')`, "fsync of PostgreSQL", "on", "off"); err != nil {
			return err
		}
		return setting(`SELECT current_setting('synchronous_commit')`, "synchronous_commit of PostgreSQL", "on, or anything but off", "off")
	}
	const mode = "journal_mode of SQLite"
	if err := setting(`PRAGMA journal_mode`, mode, "wal, which a database in memory cannot have; open one by SQLiteFile, or use a convotest.MemStore", "memory"); err != nil {
		return err
	}
	if err := setting(`PRAGMA journal_mode`, mode, "wal; open it by SQLiteFile", "delete", "truncate", "persist", "off"); err != nil {
		return err
	}
	return setting(`PRAGMA synchronous`, "synchronous of SQLite", "2 (FULL) or 3 (EXTRA); open it by SQLiteFile", "0", "1")
}

// A versionError says that a later release has changed the tables.
type versionError struct{ have, known int }

func (e *versionError) Error() string {
	return fmt.Sprintf("convo: the tables have version %d, and this release of sqlstore knows up to %d; use a later one", e.have, e.known)
}

// Is reports whether target is [convo.ErrVersion].
func (e *versionError) Is(target error) bool { return target == convo.ErrVersion }

// migrate creates or updates the tables. Tables that are up to date are only read.
func (d Dialect) migrate(ctx context.Context, conn *sql.Conn) (err error) {
	if version, err := d.version(ctx, conn); err != nil || version == len(migrations) {
		return err
	}
	begin, lock := "BEGIN IMMEDIATE", "SELECT 1"
	if d == PostgreSQL {
		begin, lock = "BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT pg_advisory_xact_lock(7165064744774463853)"
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	if _, err := conn.ExecContext(ctx, lock); err != nil {
		return err
	}
	version, err := d.version(ctx, conn) // another process may have been faster
	if err != nil {
		return err
	}
	for _, s := range d.statements(version) {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// version returns the version of the tables, or 0 if there are none.
func (d Dialect) version(ctx context.Context, conn *sql.Conn) (version int, err error) {
	query := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'convo_schema'`
	if d == PostgreSQL {
		// Do not use to_regclass: its result may be from before the lock was held.
		query = `SELECT count(*) FROM pg_catalog.pg_class WHERE relname = 'convo_schema' AND pg_catalog.pg_table_is_visible(oid)`
	}
	if err := conn.QueryRowContext(ctx, query).Scan(&version); err != nil || version == 0 {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, `SELECT max(version) FROM convo_schema`).Scan(&version)
	if err == nil && version > len(migrations) {
		err = &versionError{version, len(migrations)}
	}
	return version, err
}
