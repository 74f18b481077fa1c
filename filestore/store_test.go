package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// fill appends n records to the log of a key.
func fill(t testing.TB, s convo.Store, key string, n int) (log testLog) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for range n {
		log = append(log, log.next(rnd, key))
		require.NoError(t, s.Append(t.Context(), log.newest()))
	}
	return log
}

// readAll returns what Records yields before an error.
func readAll(t testing.TB, s convo.Store, key string, from uint64) (log testLog, err error) {
	for r, err := range s.Records(t.Context(), key, from) {
		if err != nil {
			return log, err
		}
		r.Torn = 0 // it is not stored
		log = append(log, r)
	}
	return log, nil
}

// What Append and opening do does not grow with the log.
func TestStore_Operations(t *testing.T) {
	for _, n := range []int{8, 64, 512} {
		disk := newTestDisk(nil)
		s := &Store{Dir: "/chats", disk: disk}
		log := fill(t, s, crashKey, n)
		for !log.newest().Full { // so that the tail is short
			log = append(log, log.next(rand.New(rand.NewPCG(9, log.newest().Seq)), crashKey))
			require.NoError(t, s.Append(t.Context(), log.newest()))
		}
		rest := convo.Record{LogInfo: convo.LogInfo{Key: crashKey, Seq: log.newest().Seq + 1}, ID: strings.Repeat("z", 26), Prev: log.newest().ID}
		clear(disk.ops)
		require.NoError(t, s.Append(t.Context(), rest))
		assert.Equal(t, map[string]int{
			"open dir": 1, "lstat": 2, "open": 1, "lock": 1, "stat": 1, "read": 1, "write": 1, "sync": 1,
			"unlock": 1, "close": 1, "close dir": 1,
		}, disk.ops, "Append behind %d", n)

		clear(disk.ops)
		require.NoError(t, s.Append(t.Context(), rest))
		assert.Zero(t, disk.ops["write"]+disk.ops["sync"], "the same record again")

		other := &Store{Dir: "/chats", disk: disk}
		rest.Seq, rest.Prev, rest.ID = rest.Seq+1, rest.ID, strings.Repeat("y", 26)
		clear(disk.ops)
		require.NoError(t, other.Append(t.Context(), rest))
		assert.Equal(t, []int{2, 2, 1}, []int{disk.ops["write"], disk.ops["sync"], disk.ops["sync dir"]}, "what another process may not have synced")

		clear(disk.ops)
		view, err := readAll(t, s, crashKey, 0)
		require.NoError(t, err)
		require.Len(t, view, 3)
		assert.Equal(t, map[string]int{
			"open dir": 1, "lstat": 1, "open": 1, "lock": 1, "stat": 1, "read": 3, "unlock": 1, "close": 1, "close dir": 1,
		}, disk.ops, "opening %d: the tail, the header of the full record, and from there on", n)

		fast := &Store{Dir: "/chats", disk: disk, NoSync: true}
		rest.Seq, rest.Prev, rest.ID = rest.Seq+1, rest.ID, strings.Repeat("x", 26)
		clear(disk.ops)
		require.NoError(t, fast.Append(t.Context(), rest))
		require.NoError(t, fast.Prune(t.Context(), crashKey, log.newest().Seq))
		require.NoError(t, fast.Delete(t.Context(), crashKey))
		assert.Zero(t, disk.ops["sync"]+disk.ops["sync dir"]+disk.ops["sync parent"], "NoSync")
	}
}

// What a Save asks of the file system, in order.
func TestStore_OperationsOfASave(t *testing.T) {
	disk := newTestDisk(nil)
	var ops []string
	disk.step = func(op string) error { ops = append(ops, op); return nil }
	for _, tt := range []struct {
		store         *Store
		first, others string
	}{
		{
			&Store{Dir: "/chats", disk: disk},
			// Dir is missing, and made. Its name must last before a file is made in it.
			"open dir, mkdir, sync parent, sync parent, open dir, lstat, mkdir, sync parent, create, lock, lstat, stat, read, sync dir, write, chtimes, sync, unlock, close, close dir",
			"open dir, lstat, open, lock, lstat, stat, read, write, chtimes, sync, unlock, close, close dir",
		},
		{
			&Store{Dir: "/fast", disk: disk, NoSync: true},
			"open dir, mkdir, open dir, lstat, mkdir, create, lock, lstat, stat, read, write, chtimes, unlock, close, close dir",
			"open dir, lstat, open, lock, lstat, stat, read, write, chtimes, unlock, close, close dir",
		},
	} {
		h, err := convo.Open(t.Context(), tt.store, "k", nil)
		require.NoError(t, err)
		want := tt.first
		for turn := range 20 {
			_, err := h.Append(convo.User("a question"), convo.Assistant("an answer"))
			require.NoError(t, err)
			if turn%7 == 6 {
				_, err = h.SplicePrefix(h.Snapshot(), h.Snapshot().Len()-2, "a summary")
				require.NoError(t, err)
			}
			ops = nil
			require.NoError(t, h.Save(t.Context()))
			require.Equal(t, want, strings.Join(ops, ", "), "turn %d", turn)
			ops = nil
			require.NoError(t, h.Save(t.Context()))
			require.Empty(t, ops, "nothing is new")
			want = tt.others
		}
	}
}

func TestStore_Files(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := &Store{Dir: dir}
	assert.Empty(t, stored(t, s, "none"))
	require.NoError(t, s.Delete(t.Context(), "none"))
	assert.NoDirExists(t, dir)
	for key, name := range map[string]string{
		"Trip to Rome":            "-rip-to--ome-",
		strings.Repeat("x", 4096): strings.Repeat("x", 24) + "-",
		"\xff\x00/../é":           "--------",
	} {
		log := fill(t, s, key, 3)
		got := stored(t, s, key)
		assert.Equal(t, log, got)
		assert.True(t, strings.HasPrefix(fileName(key), name), fileName(key))
		assert.True(t, isFileName(fileName(key)), fileName(key))
		info, err := os.Stat(filepath.Join(dir, fileName(key)))
		require.NoError(t, err)
		assert.Equal(t, log.newest().Updated, info.ModTime().UTC())
		if runtime.GOOS != "windows" {
			assert.Equal(t, fs.FileMode(0o600), info.Mode())
		}
		text, err := os.ReadFile(filepath.Join(dir, fileName(key)))
		require.NoError(t, err)
		assert.Equal(t, 3, bytes.Count(text, []byte("\n")))
	}
}

// What convotest.TestStore checks is not repeated here, nor what is no plain file.
func TestStore_BadInput(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	log := fill(t, s, "k", 2)
	next := log.next(rand.New(rand.NewPCG(3, 3)), "k")
	value := func(err error) bool { _, ok := errors.AsType[*convo.ValueError](err); return ok }
	for _, s := range []*Store{nil, {}} {
		assert.True(t, value(s.Append(t.Context(), next)))
		assert.True(t, value(s.Delete(t.Context(), "k")))
		assert.True(t, value(s.Prune(t.Context(), "k", 1)))
		_, err := readAll(t, s, "k", 0)
		assert.True(t, value(err))
		for _, err := range s.List(t.Context(), convo.ListOptions{}) {
			assert.True(t, value(err))
		}
	}
	with := func(change func(r *convo.Record)) convo.Record { r := next; change(&r); return r }
	for name, r := range map[string]convo.Record{
		"key":  with(func(r *convo.Record) { r.Key = "" }),
		"gap":  with(func(r *convo.Record) { r.Seq = 9 }),
		"year": with(func(r *convo.Record) { r.Updated = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }),
	} {
		assert.True(t, value(s.Append(t.Context(), r)), name)
	}
	assert.True(t, value(s.Prune(t.Context(), "none", 0)))
	assert.True(t, value(s.Prune(t.Context(), "k", 0)))
	assert.True(t, value(s.Prune(t.Context(), "k", 3)))
	assert.True(t, value(s.Delete(t.Context(), "")))

	_, err := readAll(t, s, "k", 7)
	require.NoError(t, err)
	assert.Equal(t, log, stored(t, s, "k"))

	data, err := os.ReadFile(filepath.Join(s.Dir, fileName("k")))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, fileName("other")), data, 0o600)) // the log of another key
	_, err = readAll(t, s, "other", 0)
	assert.True(t, isOfLog(err), "%v", err)
	err = s.Append(t.Context(), convo.Record{LogInfo: convo.LogInfo{Key: "other", Seq: 1}, Full: true, ID: next.ID})
	assert.True(t, isOfLog(err), "%v", err)
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Symlink("nowhere", filepath.Join(s.Dir, "dangling")))
		err := (&Store{Dir: filepath.Join(s.Dir, "dangling"), NoSync: true}).Append(t.Context(), convo.Record{LogInfo: convo.LogInfo{Key: "k", Seq: 1}, Full: true, ID: next.ID})
		assert.EqualError(t, err, `convo: append to the log of "k": the directory is not there after it was made: its name is that of a link that leads nowhere, or others keep removing it`)
	}
}

// A failed write or sync leaves the file as long as it was.
func TestStore_FailedWrite(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		disk := newTestDisk(rand.New(rand.NewPCG(1, 1)))
		s := &Store{Dir: "/chats", disk: disk}
		log := fill(t, s, "k", 3)
		node := disk.dirs["/chats"].names[fileName("k")]
		size := len(node.data)
		failed := false
		disk.step = func(o string) error {
			if o == op && !failed {
				failed = true
				return errNoRoom
			}
			return nil
		}
		next := log.next(disk.rnd, "k")
		err := s.Append(t.Context(), next)
		require.ErrorIs(t, err, errNoRoom)
		assert.EqualError(t, err, `convo: append to the log of "k": `+errNoRoom.Error())
		assert.Len(t, node.data, size)
		assert.Empty(t, node.sizes, "the cut is synced")
		require.NoError(t, s.Append(t.Context(), next))
		assert.Equal(t, append(log, next), stored(t, s, "k"))
	}
}

// Nothing is saved in a directory whose name cannot be synced.
func TestStore_FailedSyncOfDir(t *testing.T) {
	disk := newTestDisk(nil)
	s := &Store{Dir: "/chats", disk: disk}
	disk.step = func(op string) error {
		if op == "sync parent" {
			return errBroken
		}
		return nil
	}
	require.ErrorIs(t, s.Append(t.Context(), testLog{}.next(rand.New(rand.NewPCG(1, 1)), "k")), errBroken)
	assert.Empty(t, stored(t, s, "k"))
}

// Memory for what is known of files does not grow without end.
func TestStore_ForgetsFiles(t *testing.T) {
	s := &Store{Dir: "/chats", disk: newTestDisk(nil)}
	for i := range maxSettled + 10 {
		s.remember(&lockedLog{name: fmt.Sprint(i)}, logTail{}, nil)
	}
	assert.LessOrEqual(t, len(s.settled), maxSettled)
}

// isFileName takes the names that fileName makes, and no others.
func TestStore_FileNames(t *testing.T) {
	pattern := regexp.MustCompile(`^[a-z0-9-]{1,24}-[0-9a-f]{32}\.convo$`)
	sum := strings.Repeat("0f", 16)
	names := []string{"", ".convo", "-.convo", "a-" + sum + ".convo", "-" + sum + ".convo", "--" + sum + ".convo", sum + ".convo", "a" + sum + ".convo"}
	for _, begin := range []string{"A", "a.", "é", strings.Repeat("a", 24), strings.Repeat("a", 25), "trip-to-rome"} {
		names = append(names, begin+"-"+sum+".convo", begin+"-"+sum+".convo.tmp", begin+"-"+sum[1:]+".convo", begin+"-"+sum+"0.convo", begin+"-"+strings.ToUpper(sum)+".convo")
	}
	for _, name := range names {
		assert.Equal(t, pattern.MatchString(name), isFileName(name), "%q", name)
	}
}
