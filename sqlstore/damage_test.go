package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/sealtest"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// keeps is a Pruner that removes nothing, so that a Prune leaves full records.
type keeps struct{ *sqlstore.Store }

func (keeps) Prune(context.Context, string, uint64) error { return nil }

// talkOf saves a conversation of four records, of which the first and the third are
// full.
func talkOf(t *testing.T, s *sqlstore.Store, key string) {
	h, err := convo.Open(t.Context(), keeps{s}, key, nil)
	require.NoError(t, err)
	for n := range 4 {
		_, err := h.Append(convo.User(fmt.Sprintf("%s: pay %d00", key, n+1)), convo.Assistant("Paid."))
		require.NoError(t, err)
		require.NoError(t, h.SetMeta("pay "+key, ""))
		if n == 2 {
			require.NoError(t, h.Prune(t.Context(), time.Time{}))
			continue
		}
		require.NoError(t, h.Save(t.Context()))
	}
}

// damaged reports whether err is nil or damage. Any other error fails the test.
func damaged(t *testing.T, err error, what string) bool {
	if err == nil {
		return false
	}
	require.ErrorAs(t, err, new(*convo.DamageError), what)
	return true
}

// whole is what can be read of a database.
type whole struct {
	logs   map[string][]convo.Record
	states map[string]string
	heads  []convo.Head
}

// readWhole reads the logs of the keys and the heads, and reports whether there was
// damage.
func readWhole(t *testing.T, s convo.Store, what string, isDamage func(error) bool) (w whole, found bool) {
	w = whole{map[string][]convo.Record{}, map[string]string{}, nil}
	for _, key := range []string{"a", "b"} {
		for r, err := range s.Records(t.Context(), key, 1) {
			if isDamage(err) {
				found = true
			} else {
				w.logs[key] = append(w.logs[key], r)
			}
		}
		h, err := convo.Open(t.Context(), s, key, nil)
		if isDamage(err) {
			found = true
			continue
		}
		data, err := h.Snapshot().MarshalJSON()
		require.NoError(t, err)
		w.states[key] = string(data)
		h.Close()
	}
	for h, err := range s.List(t.Context(), convo.ListOptions{}) {
		if isDamage(err) {
			found = true
		} else {
			w.heads = append(w.heads, h)
		}
	}
	return w, found
}

// checkPart checks that what was read is a part of what is there: an early part of each
// log, and states and heads as they are.
func checkPart(t *testing.T, got, want whole, what string) {
	for key, log := range got.logs {
		n := len(log)
		if n == 0 {
			continue
		}
		begin := slices.IndexFunc(want.logs[key], func(r convo.Record) bool { return r.ID == log[0].ID })
		require.GreaterOrEqual(t, begin, 0, what)
		require.Equal(t, want.logs[key][begin:min(begin+n, len(want.logs[key]))], log, what)
	}
	for key, state := range got.states {
		require.Equal(t, want.states[key], state, what)
	}
	for _, h := range got.heads {
		require.Contains(t, want.heads, h, what)
	}
}

// A cell is a value in a row. For each kind of value, flip returns SQL for the value
// with one bit changed, or nothing if the database takes no such value.
type cell struct {
	table, row, column string
	value              any
	bits               int
}

func (c *cell) flip(d sqlstore.Dialect, bit int) string {
	hex := func(data []byte) string {
		if d == sqlstore.PostgreSQL {
			return fmt.Sprintf("'\\x%x'::bytea", data)
		}
		return fmt.Sprintf("x'%x'", data)
	}
	switch v := c.value.(type) {
	case int64:
		return fmt.Sprintf("(%d)", v^1<<bit)
	case []byte:
		v = slices.Clone(v)
		v[bit/8] ^= 1 << (bit % 8)
		return hex(v)
	case string:
		b := []byte(v)
		b[bit/8] ^= 1 << (bit % 8)
		if d == sqlstore.SQLite {
			return "CAST(" + hex(b) + " AS TEXT)"
		}
		if !utf8.Valid(b) || slices.Contains(b, 0) {
			return ""
		}
		return "convert_from(" + hex(b) + ", 'UTF8')"
	}
	panic(fmt.Sprintf("a value of type %T", c.value))
}

// cellsOf returns all values of the two tables.
func cellsOf(t *testing.T, db *sql.DB) (cells []cell) {
	for table, by := range map[string]string{"convo_logs": "ckey", "convo_records": "ckey, seq"} {
		rows, err := db.Query("SELECT * FROM " + table + " ORDER BY " + by)
		require.NoError(t, err)
		names, err := rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
			row, to := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				to[i] = &row[i]
			}
			require.NoError(t, rows.Scan(to...))
			id := "id"
			if table == "convo_logs" {
				id = "newest"
			}
			where := fmt.Sprintf("%s = '%s'", id, row[slices.Index(names, id)])
			for i, name := range names {
				c := cell{table: table, row: where, column: name, value: row[i]}
				switch v := row[i].(type) {
				case int64:
					c.bits = 64
				case []byte:
					c.bits = 8 * len(v)
				case string:
					c.bits = 8 * len(v)
				}
				cells = append(cells, c)
			}
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	slices.SortFunc(cells, func(a, b cell) int { return strings.Compare(a.table+a.row+a.column, b.table+b.row+b.column) })
	return cells
}

// checkFlips changes each bit of each value in turn, and looks what is read. With a
// stride, it changes each so many bits.
func checkFlips(t *testing.T, d sqlstore.Dialect, s *sqlstore.Store, db *sql.DB, stride int) {
	talkOf(t, s, "a")
	talkOf(t, s, "b")
	want, found := readWhole(t, s, "", func(err error) bool { require.NoError(t, err); return false })
	require.False(t, found)
	require.Len(t, want.logs["a"], 4)
	flips, refused := 0, 0
	for _, c := range cellsOf(t, db) {
		for bit := 0; bit < c.bits; bit += 1 + (flips+bit)%stride {
			value := c.flip(d, bit)
			what := fmt.Sprintf("%s, %s, %s, bit %d", c.table, c.row, c.column, bit)
			if value == "" {
				refused++
				continue
			}
			tx, err := db.Begin()
			require.NoError(t, err)
			if _, err := tx.Exec("UPDATE " + c.table + " SET " + c.column + " = " + value + " WHERE " + c.row); err != nil {
				refused++ // two rows with one key
				require.NoError(t, tx.Rollback())
				continue
			}
			require.NoError(t, tx.Commit())
			flips++
			got, found := readWhole(t, s, what, func(err error) bool { return damaged(t, err, what) })
			require.True(t, found, "%s: no DamageError", what)
			checkPart(t, got, want, what)
			back := "UPDATE " + c.table + " SET " + c.column + " = $1 WHERE " + c.row
			if c.column == "newest" || c.column == "id" {
				back = "UPDATE " + c.table + " SET " + c.column + " = $1 WHERE " + c.column + " = " + value
			}
			if d == sqlstore.SQLite {
				back = strings.ReplaceAll(back, "$", "?")
			}
			done, err := db.Exec(back, c.value)
			require.NoError(t, err)
			n, err := done.RowsAffected()
			require.NoError(t, err)
			require.EqualValues(t, 1, n, what)
		}
	}
	got, found := readWhole(t, s, "", func(err error) bool { require.NoError(t, err); return false })
	require.False(t, found)
	require.Equal(t, want, got)
	require.Greater(t, flips, 200)
	t.Logf("%d bits flipped, each a DamageError; %d were refused by the database", flips, refused)
}

func TestStore_FlippedBitsInSQLite(t *testing.T) {
	s, db := openSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	_, err := db.Exec("PRAGMA synchronous = OFF") // of one connection
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	stride := 8
	if testing.Short() {
		stride = 200
	}
	checkFlips(t, sqlstore.SQLite, s, db, stride)
}

// Bits of the file itself: whatever is read is what was there, or an error.
func TestStore_FlippedBitsInTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	s, db := openSQLite(t, path)
	talkOf(t, s, "a")
	talkOf(t, s, "b")
	want, _ := readWhole(t, s, "", func(err error) bool { require.NoError(t, err); return false })
	_, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var used []int // bytes that are in use, in and around what was saved
	for i := range data {
		if data[i] != 0 {
			used = append(used, i)
		}
	}
	flips := 2048
	if testing.Short() {
		flips = 256
	}
	failed, hidden := 0, 0
	for n := range flips {
		at := used[n*len(used)/flips]
		bit := n % 8
		what := fmt.Sprintf("byte %d, bit %d", at, bit)
		data[at] ^= 1 << bit
		copied := filepath.Join(dir, "copy.db")
		require.NoError(t, os.WriteFile(copied, data, 0o600))
		data[at] ^= 1 << bit
		db, err := sql.Open("sqlite", dsnOf(t, copied))
		require.NoError(t, err)
		s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite)
		if err == nil {
			got, found := readWhole(t, s, what, func(err error) bool { return err != nil })
			checkPart(t, got, want, what)
			if found {
				failed++
			} else {
				if !reflect.DeepEqual(want.heads, got.heads) {
					hidden++ // by the index, which no checksum covers; see Store.List
					got.heads = want.heads
				}
				require.True(t, reflect.DeepEqual(want, got), "%s: other logs or states", what)
			}
		} else {
			failed++
		}
		require.NoError(t, db.Close())
		for _, name := range []string{copied + "-wal", copied + "-shm"} {
			if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
				require.NoError(t, err)
			}
		}
	}
	t.Logf("%d bits flipped in a file of %d bytes: %d were found, 0 gave another conversation", flips, len(data), failed)
	require.Greater(t, failed, flips/4)
	require.LessOrEqual(t, hidden, flips/100)
}

func TestSealed_AttacksInSQLite(t *testing.T) {
	random := 60
	if testing.Short() {
		random = 10
	}
	n := 0
	sealtest.Check(t, func() convo.Store {
		n++
		s, db := openSQLite(t, filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n)))
		db.SetMaxOpenConns(1)
		_, err := db.Exec("PRAGMA synchronous = OFF") // of one connection
		require.NoError(t, err)
		return s
	}, random)
}
