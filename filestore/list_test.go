package filestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestStore_List(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for range s.List(t.Context(), convo.ListOptions{}) {
		t.Fatal("nothing to list")
	}
	want := map[string]convo.LogInfo{}
	for i, key := range []string{"trip a", "trip b", "Trip c", "trip d", "other"} {
		log := fill(t, s, key, 1+(i*3)%5)
		want[key] = log.newest().LogInfo
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "notes.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, fileName("empty")), nil, 0o600))
	keys := func(prefix string) (keys []string) {
		for h, err := range s.List(t.Context(), convo.ListOptions{Prefix: prefix}) {
			require.NoError(t, err)
			assert.Equal(t, want[h.Key], h)
			keys = append(keys, h.Key)
		}
		return keys
	}
	assert.Equal(t, []string{"trip d", "trip b", "other", "Trip c", "trip a"}, keys("")[:5])
	assert.Equal(t, []string{"trip d", "trip b", "trip a"}, keys("trip"))
	assert.Empty(t, keys("trip a long prefix of more than 24 bytes"))
	for range s.List(t.Context(), convo.ListOptions{}) {
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
	for h, err := range s.List(t.Context(), convo.ListOptions{}) {
		if err == nil {
			good = append(good, h.Key)
			continue
		}
		damage, ok := errors.AsType[*convo.DamageError](err)
		require.True(t, ok, "%v", err)
		damaged = append(damaged, damage.Key)
	}
	assert.ElementsMatch(t, []string{"trip d", "Trip c", "trip a"}, good)
	assert.ElementsMatch(t, []string{fileName("trip b"), "other"}, damaged)
}

// An error about the directory names no log.
func TestStore_ListOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, prefix := range []string{"", "trip"} {
		for _, err := range (&Store{Dir: path}).List(t.Context(), convo.ListOptions{Prefix: prefix}) {
			assert.Regexp(t, "^convo: list logs: open ", err)
		}
	}
}

// A log that vanishes while List reads is not listed, or as it was; that is no error,
// and the others are there.
func TestStore_ListWhileLogsVanish(t *testing.T) {
	for _, op := range []string{"lstat", "open", "lock", "stat", "read", "unlock", "close"} {
		for after := range 3 {
			disk := newTestDisk(nil)
			s := &Store{Dir: "/chats", disk: disk}
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
			for head, err := range s.List(t.Context(), convo.ListOptions{}) {
				require.NoError(t, err, "%s %d", op, after)
				if head.Key != "b" {
					got = append(got, head.Key)
				}
			}
			require.ElementsMatch(t, []string{"a", "c"}, got)
		}
	}

	// The same in a loop that removes logs, and at last the directory.
	s := &Store{Dir: t.TempDir(), NoSync: true}
	for i, key := range []string{"a", "b", "c", "d"} {
		fill(t, s, key, i+1) // each at a time of its own
	}
	n := 0
	for head, err := range s.List(t.Context(), convo.ListOptions{}) {
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
func TestStore_ListGoesOn(t *testing.T) {
	disk := newTestDisk(nil)
	s := &Store{Dir: "/chats", disk: disk}
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
		for _, err := range s.List(t.Context(), convo.ListOptions{}) {
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

// The times of files that were copied, as from a backup, do not decide: not the order,
// not what was updated before a time, and not where a page begins.
func TestStore_ListOfCopiedFiles(t *testing.T) {
	s := &Store{Dir: t.TempDir(), NoSync: true}
	var want []string
	for i := range 20 {
		key := fmt.Sprintf("key %d", i)
		newest := fill(t, s, key, 1+i).newest()
		want = append([]string{key}, want...)
		switch copied := newest.Updated.Add(time.Duration(i*7%20) * time.Hour); i % 4 {
		case 1: // a copy
			require.NoError(t, os.Chtimes(filepath.Join(s.Dir, fileName(key)), copied, copied))
		case 2: // a file system that keeps even seconds
			even := newest.Updated.Truncate(2 * time.Second)
			require.NoError(t, os.Chtimes(filepath.Join(s.Dir, fileName(key)), even, even))
		}
	}
	var heads []convo.LogInfo
	for h, err := range s.List(t.Context(), convo.ListOptions{}) {
		require.NoError(t, err)
		heads = append(heads, h)
	}
	keys := func(heads []convo.LogInfo) (keys []string) {
		for _, h := range heads {
			keys = append(keys, h.Key)
		}
		return keys
	}
	require.Equal(t, want, keys(heads))
	for i, at := range heads {
		var after, before []convo.LogInfo
		for h, err := range s.List(t.Context(), convo.ListOptions{After: at}) {
			require.NoError(t, err)
			after = append(after, h)
		}
		require.Equal(t, keys(heads[i+1:]), keys(after))
		for h, err := range s.List(t.Context(), convo.ListOptions{UpdatedBefore: at.Updated}) {
			require.NoError(t, err)
			before = append(before, h)
		}
		require.Equal(t, keys(heads[i+1:]), keys(before))
	}
}

// List reads no more logs than it yields, where the times of files can be told apart.
func TestStore_ListReadsWhatItYields(t *testing.T) {
	disk := newTestDisk(nil)
	s := &Store{Dir: "/chats", disk: disk}
	for i := range 20 {
		fill(t, s, fmt.Sprintf("key %d", i), 1+i)
	}
	for most := 1; most <= 20; most++ {
		reads := 0
		disk.step = func(op string) error {
			if op == "read" {
				reads++
			}
			return nil
		}
		n := 0
		for _, err := range s.List(t.Context(), convo.ListOptions{}) {
			require.NoError(t, err)
			if n++; n == most {
				break
			}
		}
		require.Equal(t, most, reads)
	}
}
