package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/logs"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// dsnOf returns the data source name of a file.
func dsnOf(t testing.TB, path string) string {
	t.Helper()
	dsn, err := sqlstore.SQLiteFile(path)
	require.NoError(t, err)
	return dsn
}

// openSQLite opens a file.
func openSQLite(t testing.TB, path string) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("sqlite", dsnOf(t, path))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	return s, db
}

func TestStore_SQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	convotest.TestStore(t, func() convo.Store {
		s, _ := openSQLite(t, path)
		return s
	})
}

// No loop holds a connection while its body runs.
func TestStore_OneConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	convotest.TestStore(t, func() convo.Store {
		s, db := openSQLite(t, path)
		db.SetMaxOpenConns(1)
		return s
	})
	s, db := openSQLite(t, path)
	db.SetMaxOpenConns(1)
	checkPages(t, s)
}

// checkPages checks loops over a log of many pages.
func checkPages(t *testing.T, s *sqlstore.Store) {
	ctx := t.Context()
	var log []convo.Record
	var last *convo.Record
	for i := range long.Or(2063, 2100) { // pages of 1,000 at first, and then of one or of ten
		size := 1
		if i > 2050 {
			size = []int{3 << 20, 100 << 10}[i/3%2]
		}
		r := recordAfter("long", last, strings.Repeat("x", size))
		r.Full = i%10 == 0
		require.NoError(t, s.Append(ctx, r))
		log, last = append(log, r), &r
	}
	next, err := readLog(ctx, s, "long")
	require.NoError(t, err)
	require.Len(t, next, len(log))
	for i := range log {
		require.Equal(t, log[i].ID, next[i].ID)
		require.Equal(t, len(log[i].Data), len(next[i].Data))
	}

	copied := 0
	require.NoError(t, logs.Copy(ctx, s, "copy", s, "long"))
	for range s.Records(ctx, "copy", 1) {
		copied++
	}
	require.Equal(t, len(log), copied)

	seen := 0
	for r, err := range s.Records(ctx, "long", 2) { // the log as it was
		require.NoError(t, err)
		if seen == 0 {
			last = appendTo(t, s, "long", last)
		}
		require.Equal(t, uint64(seen+2), r.Seq)
		seen++
	}
	require.Equal(t, len(log)-1, seen)

	full := last.Seq - (last.Seq-1)%10
	for key, remove := range map[string]func() error{
		"long": func() error { return s.Prune(ctx, "long", full) },
		"copy": func() error {
			err := s.Delete(ctx, "copy")
			for r := (*convo.Record)(nil); r == nil || r.Seq < 1001; {
				r = appendTo(t, s, "copy", r) // another log under the key
			}
			return err
		},
	} {
		var end error
		for _, err := range s.Records(ctx, key, 1) {
			if remove != nil {
				require.NoError(t, remove())
				remove = nil
			}
			end = err
		}
		require.EqualError(t, end, "convo: read the log of \""+key+"\": record 1001 is gone; the log was pruned or deleted while it was read; read it again")
	}
	var end error
	for _, err := range s.Records(ctx, "copy", 1) {
		require.NoError(t, s.Delete(ctx, "copy"))
		end = err
	}
	require.ErrorContains(t, end, "record 1001 is gone")
}

// A path may hold what has a meaning in a data source name.
func TestSQLiteFile_TakesAnyPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "a?b=c&d.db", "50%25.db", "é#1.db", "a+b;c.db", "漢:1.db", "'\".db"} {
		openSQLite(t, filepath.Join(dir, name))
		_, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
	}
	t.Chdir(dir)
	openSQLite(t, "rel:1.db")
	require.FileExists(t, filepath.Join(dir, "rel:1.db"))
}

func TestNew_RefusesUnsafeSQLite(t *testing.T) {
	for dsn, want := range map[string]string{
		":memory:": `convo: journal_mode of SQLite is "memory", want wal, which a database in memory cannot have; open one by SQLiteFile, or use a convotest.MemStore`,
		"file:" + t.TempDir() + "/a.db?_journal_mode=DELETE":                               `convo: journal_mode of SQLite is "delete", want wal`,
		"file:" + t.TempDir() + "/b.db?_journal_mode=WAL&_synchronous=NORMAL":              `convo: synchronous of SQLite is "1", want 2`,
		"file:" + t.TempDir() + "/c.db?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)": `convo: synchronous of SQLite is "0", want 2`,
	} {
		db, err := sql.Open("sqlite", dsn)
		require.NoError(t, err)
		_, err = sqlstore.New(t.Context(), db, sqlstore.SQLite)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*convo.ValueError))
		require.NoError(t, db.Close())
	}
	_, db := openSQLite(t, filepath.Join(t.TempDir(), "d.db"))
	_, err := sqlstore.New(t.Context(), db, 0)
	require.ErrorAs(t, err, new(*convo.ValueError))
	_, err = sqlstore.New(t.Context(), db, sqlstore.PostgreSQL)
	require.EqualError(t, err, "convo: Dialect is PostgreSQL, want SQLite, which the database is")
	require.ErrorAs(t, err, new(*convo.ValueError))
	_, err = sqlstore.New(t.Context(), nil, sqlstore.SQLite)
	require.ErrorAs(t, err, new(*convo.ValueError))
	require.Nil(t, sqlstore.Schema(0))
}

// checkTables checks how New makes tables, and which it refuses. The function open
// opens an empty database.
func checkTables(t *testing.T, d sqlstore.Dialect, open func(name string) *sql.DB) {
	ctx := t.Context()
	byHand := open("by_hand")
	for _, s := range sqlstore.Schema(d) {
		_, err := byHand.Exec(s)
		require.NoError(t, err)
	}
	s, err := sqlstore.New(ctx, byHand, d)
	require.NoError(t, err)
	appendTo(t, s, "a", nil)

	atOnce := open("at_once")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = sqlstore.New(ctx, atOnce, d) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	var n int
	require.NoError(t, atOnce.QueryRow("SELECT count(*) FROM convo_schema").Scan(&n))
	require.Equal(t, 1, n)

	_, err = atOnce.Exec("UPDATE convo_schema SET version = 99")
	require.NoError(t, err)
	_, err = sqlstore.New(ctx, atOnce, d)
	require.ErrorIs(t, err, convo.ErrVersion)
	require.EqualError(t, err, "convo: the tables have version 99, and this release of sqlstore knows up to 1; use a later one")

	r := recordAfter("b", nil, "x")
	r.Created = time.Time{}
	require.NoError(t, s.Append(ctx, r))
	log, err := readLog(ctx, s, "b")
	require.NoError(t, err)
	require.True(t, log[0].Created.IsZero())
	for _, year := range []int{1, 1677, 2262, 20000} {
		r := recordAfter("c", nil, "x")
		r.Updated = time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		require.ErrorAs(t, s.Append(ctx, r), new(*convo.ValueError), year)
	}
	var none *sqlstore.Store
	require.ErrorAs(t, none.Append(ctx, r), new(*convo.ValueError))
	require.ErrorAs(t, none.Delete(ctx, "a"), new(*convo.ValueError))
}

func TestNew_MakesTablesInSQLite(t *testing.T) {
	dir := t.TempDir()
	checkTables(t, sqlstore.SQLite, func(name string) *sql.DB {
		db, err := sql.Open("sqlite", dsnOf(t, filepath.Join(dir, name)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	})
}

func TestStore_StatementsInSQLite(t *testing.T) {
	tapped, db := openTap(t, "sqlite", dsnOf(t, filepath.Join(t.TempDir(), "a.db")))
	s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	tapped.take()
	first := appendTo(t, s, "a", nil)
	require.Equal(t, []string{"BEGIN", "INSERT", "INSERT", "COMMIT"}, tapped.take())
	second := appendTo(t, s, "a", first)
	require.Equal(t, []string{"BEGIN", "UPDATE", "INSERT", "COMMIT"}, tapped.take())
	require.NoError(t, s.Append(t.Context(), *second))
	require.Equal(t, []string{"BEGIN", "UPDATE", "SELECT"}, tapped.take())
	checkSaves(t, s, func() string { return strings.Join(tapped.take(), " ") }, "", "BEGIN INSERT INSERT COMMIT", "BEGIN UPDATE INSERT COMMIT")
}

// checkSaves checks what each Save of a conversation sends: the first one, all others,
// and those that have nothing to write. The function sent returns what was sent since
// its last call.
func checkSaves(t *testing.T, s convo.Store, sent func() string, nothing, first, others string) {
	t.Helper()
	h, err := convo.Open(t.Context(), s, "talk", nil)
	require.NoError(t, err)
	sent()
	for turn := range 20 {
		_, err := h.Append(convo.User("a question"), convo.Assistant("an answer"))
		require.NoError(t, err)
		if turn%7 == 6 {
			_, err = h.SplicePrefix(h.Snapshot(), h.Snapshot().Len()-2, "a summary")
			require.NoError(t, err)
		}
		require.NoError(t, h.Save(t.Context()))
		require.Equal(t, first, sent(), "turn %d", turn)
		require.NoError(t, h.Save(t.Context()))
		require.Equal(t, nothing, sent(), "turn %d", turn)
		first = others
	}
}

// If ctx ends before a call, in a loop, or while a call waits for the database, the error
// matches both its error and its cause.
func TestStore_EndedCtx(t *testing.T) {
	s, db := openSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	db.SetMaxOpenConns(1)
	first := appendTo(t, s, "key", nil)
	appendTo(t, s, "key", first)
	appendTo(t, s, "other", nil)
	why := errors.New("closing time")
	records := func(ctx context.Context, end func()) (err error) {
		for _, err = range s.Records(ctx, "key", 1) {
			end()
		}
		return err
	}
	list := func(ctx context.Context, end func()) (err error) {
		for _, err = range s.List(ctx, convo.ListOptions{}) {
			end()
		}
		return err
	}
	check := func(name string, err error) {
		t.Helper()
		require.ErrorIs(t, err, why, name)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorContains(t, err, "closing time", name)
	}
	for name, call := range map[string]func(context.Context, func()) error{
		"Append":  func(ctx context.Context, _ func()) error { return s.Append(ctx, recordAfter("new", nil, "x")) },
		"Delete":  func(ctx context.Context, _ func()) error { return s.Delete(ctx, "none") },
		"Prune":   func(ctx context.Context, _ func()) error { return s.Prune(ctx, "key", 1) },
		"Records": records,
		"List":    list,
		"New": func(ctx context.Context, _ func()) error {
			_, err := sqlstore.New(ctx, db, sqlstore.SQLite)
			return err
		},
	} {
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		check(name, call(ended, func() {}))

		conn, err := db.Conn(t.Context()) // the only one
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		waited, done := db.Stats().WaitCount, make(chan error)
		go func() { done <- call(ctx, func() {}) }()
		for db.Stats().WaitCount == waited {
			time.Sleep(time.Millisecond)
		}
		cancel(why)
		check(name+", which waits", <-done)
		require.NoError(t, conn.Close())
	}
	for name, call := range map[string]func(context.Context, func()) error{"Records": records, "List": list} {
		ctx, cancel := context.WithCancelCause(t.Context())
		check(name+", in the loop", call(ctx, func() { cancel(why) }))
	}
}

// Appends that wait share a transaction, and each is judged for itself.
func TestStore_AppendsShareATransaction(t *testing.T) {
	for _, fails := range []bool{false, true} {
		tapped, db := openTap(t, "sqlite", dsnOf(t, filepath.Join(t.TempDir(), "a.db")))
		s, err := sqlstore.New(t.Context(), db, sqlstore.SQLite)
		require.NoError(t, err)
		first := appendTo(t, s, "in use", nil)
		_, err = db.Exec("CREATE TRIGGER bad BEFORE INSERT ON convo_records WHEN new.ckey = CAST('bad' AS BLOB) BEGIN SELECT RAISE(ABORT, 'bad key'); END")
		require.NoError(t, err)
		lock, err := db.Begin() // takes the lock of writers
		require.NoError(t, err)
		tapped.take()

		keys := []string{"first", "a", "b", "c", "in use", "d"}
		if fails {
			keys[3] = "bad"
		}
		errs := make([]error, len(keys))
		var wg sync.WaitGroup
		for i, key := range keys {
			wg.Go(func() { errs[i] = s.Append(t.Context(), recordAfter(key, nil, "x")) })
			for want := i; s.Waiting() != want || len(tapped.sentNow()) == 0; { // the first has a transaction of its own
				time.Sleep(time.Millisecond)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if err := s.Append(ctx, recordAfter("gone", nil, "x")); !errors.Is(err, context.Canceled) {
				t.Errorf("an Append whose ctx has ended: %v", err)
			}
		})
		for s.Waiting() != len(keys) {
			time.Sleep(time.Millisecond)
		}
		cancel()
		for s.Waiting() != len(keys)-1 {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, lock.Rollback())
		wg.Wait()
		begins := 0
		for _, word := range tapped.take() {
			if word == "BEGIN" {
				begins++
			}
		}
		if fails {
			require.ErrorContains(t, errs[3], "bad key")
			errs[3] = nil
			require.Equal(t, 2+5, begins, "each of the five again by itself")
		} else {
			require.Equal(t, 2, begins)
		}
		require.Equal(t, &convo.ConflictError{Key: "in use", Have: 1, Want: 1, ID: first.ID}, errs[4])
		errs[4] = nil
		for i, err := range errs {
			require.NoError(t, err, keys[i])
		}
		for _, key := range append(keys, "gone") {
			log, err := readLog(t.Context(), s, key)
			require.NoError(t, err)
			require.Equal(t, key == "bad" || key == "gone", len(log) == 0, key)
		}
	}
}

// Eight processes write to one file.
func TestStore_ProcessesShareASQLiteFile(t *testing.T) {
	const processes, each = 8, 25
	if path := os.Getenv("SQLSTORE_TEST_FILE"); path != "" {
		w, err := strconv.Atoi(os.Getenv("SQLSTORE_TEST_WRITER"))
		require.NoError(t, err)
		s, _ := openSQLite(t, path)
		acked := writeAll(t.Context(), s, "key "+strconv.Itoa(w%4), w, each, new(atomic.Int64))
		require.NoError(t, os.WriteFile(path+"."+strconv.Itoa(w), []byte(strings.Join(acked, " ")), 0o600))
		return
	}
	path := filepath.Join(t.TempDir(), "a.db")
	var wg sync.WaitGroup
	for w := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestStore_ProcessesShareASQLiteFile$", "-test.timeout=2m")
			cmd.Env = append(os.Environ(), "SQLSTORE_TEST_FILE="+path, "SQLSTORE_TEST_WRITER="+strconv.Itoa(w))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", w, err, out)
			}
		})
	}
	wg.Wait()
	acked := make([][]string, processes)
	for w := range acked {
		data, err := os.ReadFile(path + "." + strconv.Itoa(w))
		require.NoError(t, err)
		acked[w] = strings.Fields(string(data))
		require.NotEmpty(t, acked[w])
	}
	s, _ := openSQLite(t, path)
	checkWritten(t, s, acked, each)
}

// Only the tests need drivers.
func TestModule_NeedsNoDriver(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "github.com/seed-c1b73e60/convo\n")
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		if strings.Contains(strings.Split(name, "/")[0], ".") {
			require.True(t, strings.HasPrefix(name, "github.com/seed-c1b73e60/convo"), name)
		}
	}
}

// The code in the README stands in Example.
func TestREADME_CodeIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(readme), "```go\n")
	code, _, ok := strings.Cut(code, "\n```\n")
	require.True(t, ok)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	require.Contains(t, string(source), "\t\t"+strings.ReplaceAll(code, "\n", "\n\t\t")+"\n")
}
