package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/sealtest"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// A server is a PostgreSQL server of the test's own.
type server struct {
	t      testing.TB
	pgCtl  string
	dir    string
	asUser []string // how to run a command as another user; nil: as this one
}

// startServer starts a server with fsync on and without TCP. Without the programs of
// one it skips the test, or fails it if ci/lib.sh has found them.
func startServer(t testing.TB) *server {
	t.Helper()
	missing := func(reason string) {
		if os.Getenv("CI_POSTGRES") != "" { // set by ci/lib.sh
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	find := func(name string) string {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		out, _ := exec.Command("pg_config", "--bindir").Output()
		path := filepath.Join(strings.TrimSpace(string(out)), name)
		if _, err := os.Stat(path); err != nil {
			missing("no PostgreSQL here: " + name + " is neither in the PATH nor in pg_config --bindir")
		}
		return path
	}
	s := &server{t: t, pgCtl: find("pg_ctl")}
	initdb := find("initdb")
	dir, err := os.MkdirTemp("/tmp", "pg") // short: it holds the socket
	require.NoError(t, err)
	s.dir = dir
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		account, err := user.Lookup("postgres")
		runuser, _ := exec.LookPath("runuser")
		if err != nil || runuser == "" {
			missing("no PostgreSQL here: root needs runuser and a user named postgres to start it")
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		require.NoError(t, os.Chown(dir, uid, gid))
		s.asUser = []string{runuser, "-u", "postgres", "--"}
	}
	s.run(initdb, "-D", dir+"/data", "-A", "trust", "-U", "convo", "-E", "UTF8", "--no-locale", "--no-sync")
	s.start("on")
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) run(args ...string) {
	s.t.Helper()
	args = append(append([]string(nil), s.asUser...), args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	log, err := os.CreateTemp(s.dir, "log")
	require.NoError(s.t, err)
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log // a file: the server keeps it open
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		s.t.Fatalf("%v: %v\n%s", args, err, text)
	}
}

func (s *server) start(fsync string) {
	s.t.Helper()
	s.run(s.pgCtl, "-D", s.dir+"/data", "-w", "-t", "120", "-l", s.dir+"/server.log", "-o",
		fmt.Sprintf("-c listen_addresses='' -c unix_socket_directories=%s -c fsync=%s -c max_connections=80", s.dir, fsync), "start")
}

// stop ends the server as kill -9 would.
func (s *server) stop() {
	s.t.Helper()
	s.run(s.pgCtl, "-D", s.dir+"/data", "-w", "-m", "immediate", "stop")
}

// dsn returns the name of the database, in which a test has a schema of its own.
func (s *server) dsn(schema string) string {
	s.t.Helper()
	dsn := fmt.Sprintf("host=%s user=convo dbname=postgres", s.dir)
	db, err := sql.Open("pgx", dsn)
	require.NoError(s.t, err)
	defer func() { _ = db.Close() }()
	_, err = db.Exec("CREATE SCHEMA IF NOT EXISTS " + schema)
	require.NoError(s.t, err)
	return dsn + " search_path=" + schema
}

func openPostgreSQL(t testing.TB, dsn string) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlstore.New(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	return s, db
}

// A tripConn counts how often something is sent to the server.
type tripConn struct {
	net.Conn
	trips *atomic.Int64
}

func (c *tripConn) Write(p []byte) (int, error) {
	c.trips.Add(1)
	return c.Conn.Write(p)
}

func TestPostgreSQL(t *testing.T) {
	srv := startServer(t)
	t.Run("store", func(t *testing.T) {
		dsn := srv.dsn("kit")
		convotest.TestStore(t, func() convo.Store {
			s, _ := openPostgreSQL(t, dsn)
			return s
		})
	})
	t.Run("one connection", func(t *testing.T) {
		s, db := openPostgreSQL(t, srv.dsn("one_connection"))
		db.SetMaxOpenConns(1)
		checkPages(t, s)
	})
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			if level == "repeatable read" {
				long.Only(t, "tests the Store once more")
			}
			dsn := srv.dsn(strings.ReplaceAll(level, " ", "_")) + " default_transaction_isolation='" + level + "'"
			convotest.TestStore(t, func() convo.Store {
				s, db := openPostgreSQL(t, dsn)
				var is string
				require.NoError(t, db.QueryRow("SHOW transaction_isolation").Scan(&is))
				require.Equal(t, level, is)
				return s
			})
		})
	}
	t.Run("statements", func(t *testing.T) {
		tapped, db := openTap(t, "pgx", srv.dsn("statements"))
		s, err := sqlstore.New(t.Context(), db, sqlstore.PostgreSQL)
		require.NoError(t, err)
		tapped.take()
		var last *convo.Record
		for i := range 3 {
			last = appendTo(t, s, "a", last)
			require.Equal(t, []string{"WITH"}, tapped.take(), "record %d", i+1)
		}
		require.NoError(t, s.Append(t.Context(), *last))
		require.Equal(t, []string{"WITH", "SELECT"}, tapped.take())
		checkSaves(t, s, func() string { return strings.Join(tapped.take(), " ") }, "", "WITH", "WITH")
	})
	t.Run("round trips", func(t *testing.T) {
		config, err := pgx.ParseConfig(srv.dsn("round_trips"))
		require.NoError(t, err)
		var trips atomic.Int64
		dial := config.DialFunc
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &tripConn{conn, &trips}, err
		}
		never := func(context.Context, stdlib.ShouldPingParams) bool { return false }
		db := stdlib.OpenDB(*config, stdlib.OptionShouldPing(never))
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(1) // each prepares a statement when it first meets it
		s, err := sqlstore.New(t.Context(), db, sqlstore.PostgreSQL)
		require.NoError(t, err)
		appendTo(t, s, "a", appendTo(t, s, "a", nil))
		checkSaves(t, s, func() string { return fmt.Sprint(trips.Swap(0)) }, "0", "1", "1")
	})
	t.Run("tables", func(t *testing.T) {
		checkTables(t, sqlstore.PostgreSQL, func(name string) *sql.DB {
			db, err := sql.Open("pgx", srv.dsn("tables_"+name))
			require.NoError(t, err)
			t.Cleanup(func() { _ = db.Close() })
			return db
		})
	})
	t.Run("flipped bits", func(t *testing.T) {
		s, db := openPostgreSQL(t, srv.dsn("flips")+" synchronous_commit=local")
		checkFlips(t, sqlstore.PostgreSQL, s, db, long.Or(400, 60))
	})
	t.Run("sealed", func(t *testing.T) {
		long.Only(t, "makes a schema for each attack")
		n := 0
		sealtest.Check(t, func() convo.Store {
			n++
			s, _ := openPostgreSQL(t, srv.dsn(fmt.Sprintf("sealed_%d", n)))
			return s
		}, 0)
	})
	t.Run("erase", func(t *testing.T) { testErase(t, srv) })
	t.Run("cut", func(t *testing.T) { testCuts(t, srv) })
	t.Run("settings", func(t *testing.T) {
		refused := func(dsn, want string) {
			db, err := sql.Open("pgx", dsn)
			require.NoError(t, err)
			defer func() { _ = db.Close() }()
			_, err = sqlstore.New(t.Context(), db, sqlstore.PostgreSQL)
			require.ErrorAs(t, err, new(*convo.ValueError))
			require.ErrorContains(t, err, want)
		}
		dsn := srv.dsn("settings")
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		defer func() { _ = db.Close() }()
		_, err = sqlstore.New(t.Context(), db, sqlstore.SQLite)
		require.EqualError(t, err, "convo: Dialect is SQLite, want PostgreSQL, which the database is")
		refused(dsn+" synchronous_commit=off", `convo: synchronous_commit of PostgreSQL is "off", want on`)
		srv.stop()
		srv.start("off")
		refused(dsn, `convo: fsync of PostgreSQL is "off", want on`)
	})
}

// testCuts has 16 writers on 4 keys while connections are cut before and after a
// record is committed, sessions are ended, and the server is killed and restarted.
func testCuts(t *testing.T, srv *server) {
	dsn := srv.dsn("cuts")
	admin, err := sql.Open("pgx", dsn+" application_name=admin")
	require.NoError(t, err)
	defer func() { _ = admin.Close() }()
	tapped, db := openTap(t, "pgx", dsn)
	s, err := sqlstore.New(t.Context(), db, sqlstore.PostgreSQL)
	require.NoError(t, err)
	var n atomic.Int64
	var cuts [4]atomic.Int64
	tapped.fault = func(string) (before, after error) {
		switch i := n.Add(1); {
		case i%29 == 5:
			cuts[0].Add(1)
			return io.ErrUnexpectedEOF, nil
		case i%31 == 7:
			cuts[1].Add(1)
			return nil, io.ErrUnexpectedEOF
		case i%37 == 11:
			cuts[2].Add(1)
			return driver.ErrBadConn, nil // database/sql tries again
		case i%41 == 13:
			cuts[3].Add(1)
			return nil, driver.ErrBadConn
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var written atomic.Int64
	const writers, each = 16, 12
	acked := make([][]string, writers)
	for w := range writers {
		wg.Go(func() { acked[w] = writeAll(ctx, s, "key "+strconv.Itoa(w%4), w, each, &written) })
	}
	ended, kills, last := 0, 0, int64(-1)
	for kills < 3 { // at quarters of the way
		if written.Load() >= int64((kills+1)*writers*each/4) || ctx.Err() != nil {
			srv.stop()
			srv.start("on")
			kills++
			continue
		}
		if w := written.Load(); w > last { // so that the writers get on, however slowly a session begins
			last = w
			var k int
			err := admin.QueryRow(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&k)
			if err == nil {
				ended += k
			}
		}
		time.Sleep(30 * time.Millisecond)
	}
	wg.Wait()
	require.NoError(t, ctx.Err())
	tapped.fault = nil
	t.Logf("%d sessions ended, 3 kills, %d and %d cuts before, %d and %d after a statement", ended, cuts[0].Load(), cuts[2].Load(), cuts[1].Load(), cuts[3].Load())
	require.Positive(t, ended)
	for i := range cuts {
		require.Positive(t, cuts[i].Load())
	}
	checkWritten(t, s, acked, each)
}
