package convo

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFileStore_List(t *testing.T) {
	s := &FileStore{Dir: t.TempDir()}
	for range s.List(t.Context(), "") {
		t.Fatal("nothing to list")
	}
	want := map[string]Head{}
	for i, key := range []string{"trip a", "trip b", "Trip c", "trip d", "other"} {
		log := fill(t, s, key, 1+(i*3)%5)
		want[key] = log.newest().Head
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "notes.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, fileName("empty")), nil, 0o600))
	keys := func(prefix string) (keys []string) {
		for h, err := range s.List(t.Context(), prefix) {
			require.NoError(t, err)
			assert.Equal(t, want[h.Key], h)
			keys = append(keys, h.Key)
		}
		return keys
	}
	assert.Equal(t, []string{"trip d", "trip b", "other", "Trip c", "trip a"}, keys("")[:5])
	assert.Equal(t, []string{"trip d", "trip b", "trip a"}, keys("trip"))
	assert.Empty(t, keys("trip a long prefix of more than 24 bytes"))
	for range s.List(t.Context(), "") {
		break
	}
	// A damaged log does not hide the others.
	path := filepath.Join(s.Dir, fileName("trip b"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-5] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
	require.NoError(t, os.Rename(filepath.Join(s.Dir, fileName("other")), filepath.Join(s.Dir, fileName("moved"))))
	var damaged, good []string
	for h, err := range s.List(t.Context(), "") {
		if err == nil {
			good = append(good, h.Key)
			continue
		}
		damage, ok := errors.AsType[*DamageError](err)
		require.True(t, ok, "%v", err)
		damaged = append(damaged, damage.Key)
	}
	assert.ElementsMatch(t, []string{"trip d", "Trip c", "trip a"}, good)
	assert.ElementsMatch(t, []string{fileName("trip b"), "other"}, damaged)
}

// A log that vanishes while List reads is not listed, or as it was; that is no error,
// and the others are there.
func TestFileStore_ListWhileLogsVanish(t *testing.T) {
	for _, op := range []string{"lstat", "open", "lock", "stat", "read", "unlock", "close"} {
		for after := range 3 {
			disk := newTestDisk(nil)
			s := &FileStore{Dir: "/chats", disk: disk}
			for _, key := range []string{"a", "b", "c"} {
				fill(t, s, key, 3)
			}
			n := 0
			disk.step = func(o string) error {
				if o == op {
					if n++; n == after+1 {
						delete(disk.dirs["/chats"].names, fileName("b"))
					}
				}
				return nil
			}
			var got []string
			for head, err := range s.List(t.Context(), "") {
				require.NoError(t, err, "%s %d", op, after)
				if head.Key != "b" {
					got = append(got, head.Key)
				}
			}
			require.ElementsMatch(t, []string{"a", "c"}, got)
		}
	}

	// The same in a loop that removes logs, and at last the directory.
	s := &FileStore{Dir: t.TempDir(), NoSync: true}
	for _, key := range []string{"a", "b", "c", "d"} {
		fill(t, s, key, 1)
	}
	n := 0
	for head, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		n++
		for _, key := range []string{"a", "b", "c", "d"} {
			if key != head.Key {
				require.NoError(t, s.Delete(t.Context(), key))
			}
		}
		if runtime.GOOS != "windows" { // which does not remove a directory that is open
			require.NoError(t, os.RemoveAll(s.Dir))
		}
	}
	require.Equal(t, 1, n)
}

// A log that cannot be read does not hide the others.
func TestFileStore_ListGoesOn(t *testing.T) {
	disk := newTestDisk(nil)
	s := &FileStore{Dir: "/chats", disk: disk}
	for _, key := range []string{"a", "b", "c"} {
		fill(t, s, key, 3)
	}
	for _, op := range []string{"lstat", "open", "lock", "stat", "read"} {
		failed := false
		disk.step = func(o string) error {
			if o == op && !failed {
				failed = true
				return errBroken
			}
			return nil
		}
		heads, errs := 0, 0
		for _, err := range s.List(t.Context(), "") {
			if err == nil {
				heads++
				continue
			}
			errs++
			require.ErrorIs(t, err, errBroken)
			require.ErrorContains(t, err, "convo: list the log of")
		}
		require.Equal(t, []int{2, 1}, []int{heads, errs}, op)
	}
}
