package sqlstore_test

import (
	"bytes"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/logs"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// The files testdata/logs/*.sql hold the tables of SQLite files that earlier releases
// have written. There are two logs in each: a copy of the golden log in the folder of
// the same name in testdata/logs of package filestore, and one that was pruned. They must
// open for ever, and never change, with one exception: before the first release format 1
// may still grow. To write one anew, write those logs as golden_test.go of package filestore
// says, delete the file here and run
//
//	go test -run TestGolden . -convo.golden
var writeGolden = flag.Bool("convo.golden", false, "write the file of testdata/logs that is missing")

const (
	newestLogs = "format1"
	wholeKey   = "whole"
	prunedKey  = "pruned"
)

// goldenFiles returns the golden logs of package filestore.
func goldenFiles(folder string) *filestore.Store {
	return &filestore.Store{Dir: filepath.Join("..", "filestore", "testdata", "logs", folder), NoSync: true}
}

// writeTables writes two logs to a SQLite file, and its tables to a file of statements.
func writeTables(t *testing.T, name string) {
	s, db := openSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	for _, key := range []string{wholeKey, prunedKey} {
		require.NoError(t, logs.Copy(t.Context(), s, key, goldenFiles(newestLogs), wholeKey))
	}
	require.NoError(t, s.Prune(t.Context(), prunedKey, newestFull(t, s, prunedKey)))
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(dump(t, db)), 0o600))
}

// newestFull returns the Seq of the newest full record of a log.
func newestFull(t *testing.T, s convo.Store, key string) (seq uint64) {
	log, err := readLog(t.Context(), s, key)
	require.NoError(t, err)
	for _, r := range log {
		if r.Full {
			seq = r.Seq
		}
	}
	require.Greater(t, seq, log[0].Seq)
	return seq
}

// dump returns the statements that make the tables of a SQLite file, and their rows.
func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	var b strings.Builder
	rows := func(query string) (all [][]any) {
		list, err := db.QueryContext(t.Context(), query)
		require.NoError(t, err)
		defer func() { _ = list.Close() }()
		names, err := list.Columns()
		require.NoError(t, err)
		for list.Next() {
			row, to := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				to[i] = &row[i]
			}
			require.NoError(t, list.Scan(to...))
			all = append(all, row)
		}
		require.NoError(t, list.Err())
		return all
	}
	for _, made := range rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid") {
		fmt.Fprintf(&b, "%s;\n", made[0])
	}
	for _, table := range rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid") {
		for _, row := range rows(fmt.Sprintf("SELECT * FROM %s ORDER BY rowid", table[0])) {
			var values []string
			for _, v := range row {
				values = append(values, literal(v))
			}
			fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", table[0], strings.Join(values, ", "))
		}
	}
	return b.String()
}

// literal returns a value as SQLite reads it.
func literal(v any) string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	switch v := v.(type) {
	case []byte:
		if utf8.Valid(v) && !bytes.ContainsAny(v, "\x00\r\n") {
			return "CAST(" + quoted(string(v)) + " AS BLOB)"
		}
		return fmt.Sprintf("X'%x'", v)
	case string:
		return quoted(v)
	}
	return fmt.Sprint(v)
}

// A database that an earlier release has written opens as it was, and can be continued.
func TestGolden_Opens(t *testing.T) {
	if name := filepath.Join("testdata", "logs", newestLogs+".sql"); *writeGolden {
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
			writeTables(t, name)
		}
	}
	names, err := filepath.Glob(filepath.Join("testdata", "logs", "*.sql"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		folder := strings.TrimSuffix(filepath.Base(name), ".sql")
		statements, err := os.ReadFile(name)
		require.NoError(t, err)
		db, err := sql.Open("sqlite", dsnOf(t, filepath.Join(t.TempDir(), "a.db")))
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		_, err = db.Exec(string(statements))
		require.NoError(t, err)
		s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite)
		require.NoError(t, err)
		golden := goldenFiles(folder)
		for _, key := range []string{wholeKey, prunedKey} {
			t.Run(folder+"/"+key, func(t *testing.T) {
				want, err := readLog(t.Context(), golden, wholeKey)
				require.NoError(t, err)
				if key == prunedKey {
					want = want[newestFull(t, golden, wholeKey)-1:]
				}
				for i := range want {
					want[i].Key = key
				}
				got, err := readLog(t.Context(), s, key)
				require.NoError(t, err)
				require.Equal(t, want, got)
				state := stateOf(t, s, key)
				require.Equal(t, stateOf(t, golden, wholeKey), state)

				h, err := convo.Open(t.Context(), s, key, nil)
				require.NoError(t, err)
				_, err = h.AnswerOpenCalls("")
				require.NoError(t, err)
				_, err = h.Append(convo.Assistant("More."))
				require.NoError(t, err)
				require.NoError(t, h.Save(t.Context()))
				require.NotEqual(t, state, stateOf(t, s, key))
			})
		}
	}
}

// stateOf returns as a text what opens from a log.
func stateOf(t *testing.T, s convo.Store, key string) string {
	t.Helper()
	h, err := convo.Open(t.Context(), s, key, nil)
	require.NoError(t, err)
	defer h.Close()
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	return fmt.Sprintf("%s\n%+v\n%#v", data, h.Tokens(), h.Status())
}
