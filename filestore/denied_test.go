//go:build linux

package filestore_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
)

// unprivileged calls f as somebody to whom the modes of files apply.
func unprivileged(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		var err error
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			err = syscall.Setfsuid(65534)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

// What may not be read or written is an error that says so. It is not taken for
// damage or for a log that is not there, it changes nothing, and it hides no other log.
func TestStore_Denied(t *testing.T) {
	denied := func(t *testing.T, calls map[string]func(context.Context) error, names ...string) {
		for _, name := range names {
			err := calls[name](t.Context())
			assert.ErrorIs(t, err, fs.ErrPermission, name)
			assert.NotErrorAs(t, err, new(*convo.DamageError), name)
		}
	}
	begin := func(t *testing.T) (s *filestore.Store, path string) {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
		s = &filestore.Store{Dir: filepath.Join(dir, "chats")}
		require.NoError(t, s.Append(t.Context(), firstOf("key")))
		path = filepath.Join(s.Dir, filesIn(t, s.Dir)[0])
		require.NoError(t, os.Chmod(s.Dir, 0o777))
		require.NoError(t, os.Chmod(path, 0o666))
		return s, path
	}
	t.Run("file", func(t *testing.T) {
		s, path := begin(t)
		old := firstOf("old")
		old.Updated = old.Updated.AddDate(-1, 0, 0)
		require.NoError(t, s.Append(t.Context(), old))
		for _, name := range filesIn(t, s.Dir) {
			require.NoError(t, os.Chmod(filepath.Join(s.Dir, name), 0o666))
		}
		require.NoError(t, os.Chmod(path, 0))
		unprivileged(t, func() {
			denied(t, storeCalls(s, "key"), "Append", "Records", "List", "Delete", "Prune")
			var heads []string
			for head, err := range s.List(t.Context(), convo.ListOptions{}) {
				if err == nil {
					heads = append(heads, head.Key)
				}
			}
			assert.Equal(t, []string{"old"}, heads)
		})
		require.NoError(t, os.Chmod(path, 0o600))
		require.Len(t, recordsOf(t, s, "key"), 1)
	})
	t.Run("file that may only be read", func(t *testing.T) {
		s, path := begin(t)
		require.NoError(t, os.Chmod(path, 0o444))
		unprivileged(t, func() {
			calls := storeCalls(s, "key")
			denied(t, calls, "Append", "Delete", "Prune")
			assert.NoError(t, calls["Records"](t.Context()))
			assert.NoError(t, calls["List"](t.Context()))
		})
		require.Len(t, recordsOf(t, s, "key"), 1)
	})
	t.Run("directory that may only be read", func(t *testing.T) {
		s, path := begin(t)
		require.NoError(t, os.Chmod(s.Dir, 0o555))
		unprivileged(t, func() {
			denied(t, storeCalls(s, "key"), "Delete")
			assert.ErrorIs(t, s.Append(t.Context(), firstOf("new")), fs.ErrPermission)
			calls := storeCalls(s, "key")
			for _, name := range []string{"Records", "List", "Append"} {
				assert.NoError(t, calls[name](t.Context()), name)
			}
			third := firstOf("key")
			third.Seq, third.Prev, third.ID = 3, strings.Repeat("b", 26), strings.Repeat("c", 26)
			assert.NoError(t, s.Append(t.Context(), third))
			assert.ErrorIs(t, s.Prune(t.Context(), "key", 3), fs.ErrPermission)
		})
		require.NoError(t, os.Chmod(s.Dir, 0o755))
		require.FileExists(t, path)
		require.Len(t, recordsOf(t, s, "key"), 3)
		require.Len(t, filesIn(t, s.Dir), 1)
	})
	t.Run("directory", func(t *testing.T) {
		s, _ := begin(t)
		require.NoError(t, os.Chmod(s.Dir, 0))
		unprivileged(t, func() { denied(t, storeCalls(s, "key"), "Append", "Records", "List", "Delete", "Prune") })
		require.NoError(t, os.Chmod(s.Dir, 0o755))
		require.Len(t, recordsOf(t, s, "key"), 1)
	})
}
