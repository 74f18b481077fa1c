package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/logs"
)

// Two Stores on one directory keep every rule of the interface, and leave no file.
func TestStore_FollowsTheRules(t *testing.T) {
	for _, noSync := range long.Or([]bool{false}, []bool{false, true}) {
		dir := t.TempDir()
		convotest.TestStore(t, func() convo.Store { return damagedStore{&filestore.Store{Dir: dir, NoSync: noSync}} })
		assert.Empty(t, filesIn(t, dir))
	}
}

// A damagedStore is a Store of which records can be damaged.
type damagedStore struct{ *filestore.Store }

func (s damagedStore) Damage(key string, seq uint64) error {
	var names []string
	for _, name := range must(os.ReadDir(s.Dir)) {
		if strings.HasPrefix(name.Name(), key+"-") {
			names = append(names, filepath.Join(s.Dir, name.Name()))
		}
	}
	lines := bytes.SplitAfter(must(os.ReadFile(names[0])), []byte("\n"))
	lines[seq-1][30] ^= 1
	return os.WriteFile(names[0], bytes.Join(lines, nil), 0o600)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
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
func TestStore_OddKeys(t *testing.T) {
	root := t.TempDir()
	s := &filestore.Store{Dir: filepath.Join(root, "chats"), NoSync: true}
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
		LogInfo: convo.LogInfo{Key: key, Seq: 1, Created: at, Updated: at}, ID: strings.Repeat("a", 26), Full: true, Format: 1, Data: []byte("{}"),
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
		"List":    func(ctx context.Context) error { return lastError(s.List(ctx, convo.ListOptions{})) },
		"Delete":  func(ctx context.Context) error { return s.Delete(ctx, key) },
	}
	if p, ok := s.(convo.Pruner); ok {
		calls["Prune"] = func(ctx context.Context) error { return p.Prune(ctx, key, 1) }
	}
	return calls
}

// recordsOf returns what is stored under a key.
func recordsOf(t *testing.T, s convo.Store, key string) (log []convo.Record) {
	t.Helper()
	for r, err := range s.Records(t.Context(), key, 1) {
		require.NoError(t, err)
		log = append(log, r)
	}
	return log
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

// What is no regular file is an error of every method, at once, which says what it is and
// what to do. It stays as it is, and hides no other log.
func TestStore_NoPlainFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows makes links only for some users, and has no pipes with names in a directory")
	}
	const link, move = "symbolic link, and a log must be a regular file; put the file that it leads to in its place", "and a log must be a regular file; move it out of the directory"
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
			s := &filestore.Store{Dir: t.TempDir(), NoSync: true}
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
				err := call(t.Context())
				require.Error(t, err, method)
				require.False(t, errors.As(err, new(*convo.DamageError)), "%s: Salvage cannot read it: %v", method, err)
				want := fmt.Sprintf("%q is a ", filepath.Base(path))
				switch {
				case strings.Contains(name, "link"):
					want += link
				case strings.Contains(name, "folder"):
					want += "directory, " + move
				default:
					want += "named pipe, " + move
				}
				require.ErrorContains(t, err, want, method)
				require.Regexp(t, `^convo: [a-z ]+ the log of `, err.Error(), method)
				_, err = os.Lstat(path)
				require.NoError(t, err, method)
			}
			var heads []string
			for head, err := range s.List(t.Context(), convo.ListOptions{}) {
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

// A ctx that has ended before a call, or ends in a loop, is the error, whatever the
// log; and nothing is written.
func TestStores_EndedCtx(t *testing.T) {
	same := func(_ logs.Field, data []byte) ([]byte, error) { return data, nil }
	for name, s := range map[string]convo.Store{
		"memory": new(convotest.MemStore),
		"files":  &filestore.Store{Dir: t.TempDir(), NoSync: true},
		"sealed": logs.Sealed(new(convotest.MemStore), same, same),
	} {
		t.Run(name, func(t *testing.T) {
			why := errors.New("closing time")
			ended, cancel := context.WithCancelCause(t.Context())
			cancel(why)
			for _, key := range []string{"key", "none"} {
				for method, call := range storeCalls(s, key) {
					require.ErrorIs(t, call(ended), why, "%s, an empty store", method)
				}
			}
			for _, key := range []string{"key", "also"} {
				require.NoError(t, s.Append(t.Context(), firstOf(key)))
			}
			require.NoError(t, storeCalls(s, "key")["Append"](t.Context()))
			for method, call := range storeCalls(s, "key") {
				require.ErrorIs(t, call(ended), why, method)
			}
			require.Len(t, recordsOf(t, s, "key"), 2)

			endsIn(t, func(ctx context.Context) iter.Seq2[convo.Record, error] { return s.Records(ctx, "key", 1) })
			endsIn(t, func(ctx context.Context) iter.Seq2[convo.LogInfo, error] { return s.List(ctx, convo.ListOptions{}) })
		})
	}
}

// endsIn ranges over a sequence of two, whose ctx ends in the first turn of the loop.
func endsIn[T any](t *testing.T, seq func(context.Context) iter.Seq2[T, error]) {
	t.Helper()
	why := errors.New("closing time")
	ctx, cancel := context.WithCancelCause(t.Context())
	var errs []error
	for _, err := range seq(ctx) {
		errs = append(errs, err)
		cancel(why)
	}
	cancel(nil)
	require.Len(t, errs, 2)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], why)
}

// Two Stores on one directory, each used by many goroutines that append, prune,
// delete, read and list at once: each log that is read is in order, each record in it
// was appended, and no call fails but for what others did.
func TestStore_TwoOnOneDirectory(t *testing.T) {
	dir := t.TempDir()
	stores := []*filestore.Store{{Dir: dir, NoSync: true}, {Dir: dir, NoSync: true}}
	ctx := t.Context()
	var begun sync.Map // IDs
	check := func(s convo.Store, key string, from uint64) (newest, full convo.Record) {
		for r, err := range s.Records(ctx, key, from) {
			if !assert.NoError(t, err) {
				return newest, full
			}
			_, ok := begun.Load(r.ID)
			assert.True(t, ok, "a record that nobody appended")
			assert.Equal(t, newest.ID != "", newest.ID != "" && r.Prev == newest.ID && r.Seq == newest.Seq+1)
			newest = r
			if r.Full {
				full = r
			}
		}
		return newest, full
	}
	var wg sync.WaitGroup
	for i := range 12 {
		s, key := stores[i%2], fmt.Sprint("key ", i/2%2)
		wg.Go(func() {
			for n := range 60 {
				newest, full := check(s, key, uint64(n%2))
				switch {
				case i >= 10:
					for _, err := range s.List(ctx, convo.ListOptions{Prefix: "key"}) {
						assert.NoError(t, err)
					}
				case i >= 8 && n%20 == 19:
					assert.NoError(t, s.Delete(ctx, key))
				case i >= 8 && full.ID != "":
					if err := s.Prune(ctx, key, full.Seq); err != nil {
						assert.ErrorAs(t, err, new(*convo.ValueError), "others have pruned or deleted")
					}
				case i < 8:
					r := firstOf(key)
					r.ID, r.Prev, r.Seq = fmt.Sprintf("%026d", 1000*i+n), newest.ID, newest.Seq+1
					r.Full = newest.ID == "" || n%3 == 0
					begun.Store(r.ID, true)
					if err := s.Append(ctx, r); err != nil {
						assert.ErrorAs(t, err, new(*convo.ConflictError))
					}
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		for _, key := range []string{"key 0", "key 1"} {
			check(s, key, 1)
			assert.NoError(t, s.Delete(ctx, key))
		}
	}
	assert.Empty(t, filesIn(t, dir))
}

// Prune writes to no file that a name of its own leads to.
func TestStore_PruneBesideLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows makes links only for some users")
	}
	s := &filestore.Store{Dir: t.TempDir(), NoSync: true}
	require.NoError(t, s.Append(t.Context(), firstOf("key")))
	second := firstOf("key")
	second.Seq, second.Prev, second.ID = 2, second.ID, strings.Repeat("b", 26)
	require.NoError(t, s.Append(t.Context(), second))
	mine := filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o600))
	path := filepath.Join(s.Dir, filesIn(t, s.Dir)[0])
	require.NoError(t, os.Symlink(mine, path+".tmp"))
	require.NoError(t, s.Prune(t.Context(), "key", 2))
	require.Len(t, recordsOf(t, s, "key"), 1)
	require.Len(t, filesIn(t, s.Dir), 1)
	text, err := os.ReadFile(mine)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}

// A Dir that is no directory is an error at once.
func TestStore_DirIsNone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no pipes with names in a directory")
	}
	file, pipe := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, exec.Command("mkfifo", pipe).Run())
	for _, dir := range []string{file, filepath.Join(file, "below"), pipe, "/dev/null", "\x00"} {
		for method, call := range storeCalls(&filestore.Store{Dir: dir}, "key") {
			require.Error(t, call(t.Context()), "%s in %q", method, dir)
		}
	}
}
