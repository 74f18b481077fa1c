package sqlstore_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/sqlstore"
)

// Nobody but the owner may read the files of a new database.
func TestSQLiteFile_IsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes on Windows")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	s, db := openSQLite(t, path)
	talkOf(t, s, "a")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
	}
	require.NoError(t, db.Close())

	// A file that is there keeps its mode, and what it holds.
	require.NoError(t, os.Chmod(path, 0o640))
	s, _ = openSQLite(t, path)
	log, err := readLog(t.Context(), s, "a")
	require.NoError(t, err)
	require.Len(t, log, 4)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o640), info.Mode().Perm(), name)
	}

	// A link leads to the file that is made.
	require.NoError(t, os.Symlink(filepath.Join(dir, "far.db"), filepath.Join(dir, "link.db")))
	openSQLite(t, filepath.Join(dir, "link.db"))
	info, err := os.Stat(filepath.Join(dir, "far.db"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	for _, path := range []string{"", ":memory:"} {
		_, err := sqlstore.SQLiteFile(path)
		require.ErrorAs(t, err, new(*convo.ValueError))
	}
	_, err = sqlstore.SQLiteFile(filepath.Join(dir, "none", "a.db"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "convo: make the database: ")
	require.NoFileExists(t, ":memory:")
}

// holding returns the names of the files under a directory that hold a text.
func holding(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // a server removes files at any time
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if bytes.Contains(data, []byte(text)) {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return err
	}))
	return names
}

// secretLogs writes a log that is to be deleted and one that is to be pruned, each with
// a secret in its key, its title and its data, among others that stay.
func secretLogs(t *testing.T, s *sqlstore.Store, secret string) {
	ctx := t.Context()
	write := func(key, text string, n int) {
		var last *convo.Record
		for range n {
			r := recordAfter(key, last, strings.Repeat(text+" ", 40))
			r.Title = text
			require.NoError(t, s.Append(ctx, r))
			last = &r
		}
		r := recordAfter(key, last, "the end")
		r.Full = true
		require.NoError(t, s.Append(ctx, r))
	}
	for i := range 20 {
		write(fmt.Sprintf("stays %d", i), "harmless", 3)
	}
	write("user "+secret, secret, 30)
	write("pruned", secret, 30)
	for i := range 20 {
		write(fmt.Sprintf("stays as well %d", i), "harmless", 3)
	}
	require.NoError(t, s.Delete(ctx, "user "+secret))
	require.NoError(t, s.Prune(ctx, "pruned", 31))
}

// statementsIn returns the statements of a section of the package documentation: its
// lines that are indented twice and end in a semicolon.
func statementsIn(t *testing.T, after string) (list []string) {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(doc), after)
	require.True(t, ok)
	for line := range strings.Lines(text) {
		if statement, ok := strings.CutPrefix(line, "//\t"); ok && strings.HasSuffix(statement, ";\n") {
			list = append(list, strings.TrimSuffix(statement, ";\n"))
		} else if len(list) > 0 {
			break
		}
	}
	require.NotEmpty(t, list)
	return list
}

// The statements of the documentation erase what was removed.
func TestErase_SQLite(t *testing.T) {
	dir := t.TempDir()
	s, db := openSQLite(t, filepath.Join(dir, "a.db"))
	secret := rand.Text()
	secretLogs(t, s, secret)
	require.NotEmpty(t, holding(t, dir, secret), "Delete and Prune alone do not erase")
	for _, statement := range statementsIn(t, "In SQLite, run") {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	require.Empty(t, holding(t, dir, secret))
	log, err := readLog(t.Context(), s, "pruned")
	require.NoError(t, err)
	require.Len(t, log, 1)
	require.Len(t, holding(t, dir, "harmless"), 1)
}

// With secure_delete, a checkpoint is enough.
func TestErase_SQLiteSecureDelete(t *testing.T) {
	dir := t.TempDir()
	s, db := openSQLite(t, filepath.Join(dir, "a.db"))
	db.SetMaxOpenConns(1)
	_, err := db.Exec("PRAGMA secure_delete = ON")
	require.NoError(t, err)
	secret := rand.Text()
	secretLogs(t, s, secret)
	require.NotEmpty(t, holding(t, dir, secret))
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	require.Empty(t, holding(t, dir, secret))
}

// testErase is the same for PostgreSQL.
func testErase(t *testing.T, srv *server) {
	s, db := openPostgreSQL(t, srv.dsn("erase"))
	secret := rand.Text()
	for _, statement := range []string{"ALTER SYSTEM SET wal_recycle = off", "SELECT pg_reload_conf()"} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	secretLogs(t, s, secret)
	for _, statement := range []string{"ANALYZE", "CHECKPOINT"} { // as the server does now and then
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	data := filepath.Join(srv.dir, "data")
	require.NotEmpty(t, holding(t, filepath.Join(data, "base"), secret), "Delete and Prune alone do not erase")
	for _, statement := range statementsIn(t, "In PostgreSQL, run") {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	require.Empty(t, holding(t, data, secret))
	log, err := readLog(t.Context(), s, "pruned")
	require.NoError(t, err)
	require.Len(t, log, 1)
}
