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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
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
	heads  []convo.LogInfo
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

// checkPart checks that what was read is a part of what is there: records, states and
// heads as they are, the records in order.
func checkPart(t *testing.T, got, want whole, what string) {
	for key, log := range got.logs {
		all := want.logs[key]
		for _, r := range log {
			i := slices.IndexFunc(all, func(w convo.Record) bool { return w.ID == r.ID })
			require.GreaterOrEqual(t, i, 0, what)
			require.Equal(t, all[i], r, what)
			all = all[i+1:]
		}
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
	checkFlips(t, sqlstore.SQLite, s, db, long.Or(200, 8))
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
	flips := long.Or(256, 2048)
	failed := 0
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
}

// A damagedStore is a Store of which records can be damaged.
type damagedStore struct {
	*sqlstore.Store
	db     *sql.DB
	remove bool // the row is gone
}

func (s damagedStore) Damage(key string, seq uint64) error {
	query := `UPDATE convo_records SET data = data || 'x' WHERE ckey = ? AND seq = ?`
	if s.remove {
		query = `DELETE FROM convo_records WHERE ckey = ? AND seq = ?`
	}
	_, err := s.db.Exec(query, []byte(key), int64(seq))
	return err
}

func TestStore_FollowsTheRulesOfDamage(t *testing.T) {
	for _, remove := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "chats.db")
		convotest.TestStore(t, func() convo.Store {
			s, db := openSQLite(t, path)
			return damagedStore{s, db, remove}
		})
	}
}

// What is around damage is read, also where a page of rows ends, and the newest whole
// record before each damage is named.
func TestRecords_GoOnAfterDamage(t *testing.T) {
	const records = 2500 // a page has 1,000
	s, db := openSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	db.SetMaxOpenConns(1)
	_, err := db.Exec("PRAGMA synchronous = OFF") // of one connection
	require.NoError(t, err)
	h, err := convo.Open(t.Context(), keeps{s}, "k", &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	for range records {
		_, err := h.Append(convo.User("u"))
		require.NoError(t, err)
		require.NoError(t, h.Save(t.Context()))
	}
	for _, remove := range []bool{false, true} {
		for _, bad := range [][]int64{{1}, {2}, {1000}, {1001}, {1000, 1001}, {999, 1000, 1001, 1002}, {2000, 2001}, {500, 1500, 2499}, {2500}} {
			what := fmt.Sprint(bad, remove)
			var rows [][]any
			for _, seq := range bad {
				row := make([]any, 8)
				require.NoError(t, db.QueryRow(`SELECT id, prev, is_full, format, upto, head, data, crc FROM convo_records WHERE ckey = ? AND seq = ?`, []byte("k"), seq).
					Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6], &row[7]))
				rows = append(rows, row)
				require.NoError(t, damagedStore{s, db, remove}.Damage("k", uint64(seq)))
			}
			want, got := uint64(1), []uint64{}
			missing := 0
			for r, err := range s.Records(t.Context(), "k", 1) {
				if err != nil {
					damage, ok := errors.AsType[*convo.DamageError](err)
					require.True(t, ok, "%s: %v", what, err)
					assert.Less(t, damage.Seq, uint64(records), what)
					missing++
					continue
				}
				for want != r.Seq {
					require.Contains(t, bad, int64(want), what)
					want++
				}
				want++
				got = append(got, r.Seq)
			}
			assert.Len(t, got, records-len(bad), what)
			assert.Positive(t, missing, what)
			for i, seq := range bad {
				_, err := db.Exec(`DELETE FROM convo_records WHERE ckey = ? AND seq = ?`, []byte("k"), seq)
				require.NoError(t, err)
				_, err = db.Exec(`INSERT INTO convo_records (ckey, seq, id, prev, is_full, format, upto, head, data, crc) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
					append([]any{[]byte("k"), seq}, rows[i]...)...)
				require.NoError(t, err)
			}
		}
	}
	for _, err := range s.Records(t.Context(), "k", 1) {
		require.NoError(t, err)
	}
}

func TestSealed_AttacksInSQLite(t *testing.T) {
	n := 0
	sealtest.Check(t, func() convo.Store {
		n++
		s, db := openSQLite(t, filepath.Join(t.TempDir(), fmt.Sprintf("%d.db", n)))
		db.SetMaxOpenConns(1)
		_, err := db.Exec("PRAGMA synchronous = OFF") // of one connection
		require.NoError(t, err)
		return s
	}, long.Or(10, 60))
}
