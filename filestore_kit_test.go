package convo_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// Two FileStores on one directory keep every rule of the interface, and leave no file.
func TestFileStore_FollowsTheRules(t *testing.T) {
	for _, noSync := range []bool{true, false} {
		dir := t.TempDir()
		convotest.TestStore(t, func() convo.Store { return &convo.FileStore{Dir: dir, NoSync: noSync} })
		assert.Empty(t, filesIn(t, dir))
	}
}

// filesIn returns the names of the files in a directory.
func filesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// No key, whatever its bytes, leads out of the directory, and no two share a file,
// not even where names that differ in capitals are the same.
func TestFileStore_OddKeys(t *testing.T) {
	root := t.TempDir()
	s := &convo.FileStore{Dir: filepath.Join(root, "chats"), NoSync: true}
	long := strings.Repeat("the same beginning of it ", 170)
	keys := []string{
		".", "..", "../..", "/", "//", "/etc/passwd", `\`, `..\x`, `C:\x`, "C:", "CON", "nul", "aux.txt", "a:b", "~", "-", "--", "-rf",
		"\x00", "a\x00", "a\x00b", "\xff", "\xc3", "\xed\xa0\x80", "\n", "\u202e", "\u2028", "*", "?", "|", "<>", `"`, "%2e%2e", "a ", "a.", "a",
		"trip", "Trip", "TRIP", "tRIP", "ß", "ẞ", "SS", "İ", "i̇", "é", "e\u0301", "K", "\u212a",
		long[:4096-1], long[:4096-1] + "a", long[:4096-1] + "A", long[:4096-1] + "\x00", long[:24], long[:25], long[:24] + "X",
		".convo", "x.convo", "x.convo.tmp", "trip-1b2cf5f1a1d1b0a2a2b8b7be6b2ad0a1.convo",
	}
	for _, key := range keys {
		require.NoError(t, s.Append(t.Context(), firstOf(key)), "%.60q", key)
	}
	names := filesIn(t, s.Dir)
	require.Len(t, names, len(keys))
	for _, name := range names {
		require.Regexp(t, `^[a-z0-9-]{1,57}\.convo$`, name)
	}
	require.Equal(t, []string{"chats"}, filesIn(t, root))
	for _, key := range keys {
		require.Len(t, recordsOf(t, s, key), 1, "%.60q", key)
	}
}

// firstOf returns the first record of a log.
func firstOf(key string) convo.Record {
	at := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	return convo.Record{
		Head: convo.Head{Key: key, Seq: 1, Created: at, Updated: at}, ID: strings.Repeat("a", 26), Full: true, Format: 1, Data: []byte("{}"),
	}
}

// storeCalls returns a call of each method of a Store for the log of a key, which holds
// the record that firstOf returns.
func storeCalls(s convo.Store, key string) map[string]func(context.Context) error {
	second := firstOf(key)
	second.Seq, second.ID, second.Prev = 2, strings.Repeat("b", 26), second.ID
	calls := map[string]func(context.Context) error{
		"Append":  func(ctx context.Context) error { return s.Append(ctx, second) },
		"Records": func(ctx context.Context) error { return lastError(s.Records(ctx, key, 0)) },
		"List":    func(ctx context.Context) error { return lastError(s.List(ctx, "")) },
		"Delete":  func(ctx context.Context) error { return s.Delete(ctx, key) },
	}
	if p, ok := s.(convo.Pruner); ok {
		calls["Prune"] = func(ctx context.Context) error { return p.Prune(ctx, key, 1) }
	}
	return calls
}

// lastError ranges over seq and returns the last error that it yields.
func lastError[T any](seq iter.Seq2[T, error]) (last error) {
	for _, err := range seq {
		if err != nil {
			last = err
		}
	}
	return last
}

// What is no plain file is damage for every method, at once, and stays as it is; and
// it hides no other log.
func TestFileStore_NoPlainFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows makes links only for some users, and has no pipes with names in a directory")
	}
	for name, make := range map[string]func(path, other string) error{
		"link":          func(path, other string) error { return os.Symlink(other, path) },
		"dangling link": func(path, _ string) error { return os.Symlink("nowhere", path) },
		"link to itself": func(path, _ string) error {
			return os.Symlink(filepath.Base(path), path)
		},
		"link to a device": func(path, _ string) error { return os.Symlink("/dev/zero", path) },
		"folder":           func(path, _ string) error { return os.Mkdir(path, 0o700) },
		"full folder":      func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "in", "it"), 0o700) },
		"pipe":             func(path, _ string) error { return exec.Command("mkfifo", path).Run() },
	} {
		t.Run(name, func(t *testing.T) {
			s := &convo.FileStore{Dir: t.TempDir(), NoSync: true}
			require.NoError(t, s.Append(t.Context(), firstOf("key")))
			path := filepath.Join(s.Dir, filesIn(t, s.Dir)[0])
			require.NoError(t, os.Remove(path))
			require.NoError(t, s.Append(t.Context(), firstOf("other")))
			other := filepath.Join(s.Dir, filesIn(t, s.Dir)[0])
			require.NoError(t, make(path, other))
			before, err := os.ReadFile(other)
			require.NoError(t, err)
			calls := storeCalls(s, "key")
			calls["first Append"] = func(ctx context.Context) error { return s.Append(ctx, firstOf("key")) }
			for method, call := range calls {
				damage, ok := errors.AsType[*convo.DamageError](call(t.Context()))
				require.True(t, ok, method)
				if method != "List" {
					require.Equal(t, "key", damage.Key, method)
				}
				_, err := os.Lstat(path)
				require.NoError(t, err, method)
			}
			var heads []string
			for head, err := range s.List(t.Context(), "") {
				if err == nil {
					heads = append(heads, head.Key)
				}
			}
			require.Equal(t, []string{"other"}, heads)
			after, err := os.ReadFile(other)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}
