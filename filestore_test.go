package convo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fill appends n records to the log of a key.
func fill(t testing.TB, s Store, key string, n int) (log testLog) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for range n {
		log = append(log, log.next(rnd, key))
		require.NoError(t, s.Append(t.Context(), log.newest()))
	}
	return log
}

// readAll returns what Records yields before an error.
func readAll(t testing.TB, s Store, key string, from uint64) (log testLog, err error) {
	for r, err := range s.Records(t.Context(), key, from) {
		if err != nil {
			return log, err
		}
		log = append(log, r)
	}
	return log, nil
}

// byteChanges are the ways in which tests change a byte.
var byteChanges = []func(byte) byte{
	func(b byte) byte { return b ^ 1 },
	func(b byte) byte { return b ^ 0x80 },
	func(byte) byte { return 0 },
	func(byte) byte { return '\n' },
	func(byte) byte { return '9' },
}

// A change of any byte is a typed error, or it is told, or it changes no record. What
// is yielded before the error is as it was.
func TestFileStore_ChangedBytes(t *testing.T) {
	disk := newTestDisk(nil)
	log := fill(t, &FileStore{Dir: "/chats", disk: disk}, crashKey, 5)
	node := disk.dirs["/chats"].names[fileName(crashKey)]
	whole := node.data
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	full := 0 // of which log
	for i, r := range log {
		if r.Full {
			full = i
		}
	}
	next := log.next(rand.New(rand.NewPCG(5, 5)), crashKey)
	behind := log[:len(log)-1].next(rand.New(rand.NewPCG(5, 6)), crashKey)
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 0; at < len(whole); at += step {
		for k, change := range byteChanges {
			node.data = bytes.Clone(whole)
			if node.data[at] = change(whole[at]); node.data[at] == whole[at] {
				continue
			}
			damaged := bytes.Clone(node.data)
			where := fmt.Sprintf("byte %d of %d, change %d", at, len(whole), k)
			var told strings.Builder
			s := &FileStore{Dir: "/chats", disk: disk, Logger: slog.New(slog.NewTextHandler(&told, nil))}
			got, err := readAll(t, s, crashKey, 1)
			for i, r := range got {
				require.Equal(t, log[i], r, where)
			}
			if err != nil {
				require.True(t, isOfLog(err), "%s: %v", where, err)
				if damage, ok := errors.AsType[*DamageError](err); ok {
					require.Equal(t, got.newest().Seq, damage.Seq, where)
				}
			} else {
				// A NUL in the place of a newline makes one line of two.
				require.GreaterOrEqual(t, at, last-1, where)
				require.Len(t, got, len(log)-1-max(0, last-at), where)
			}
			view, err := readAll(t, s, crashKey, 0)
			require.True(t, err == nil || isOfLog(err), "%s: %v", where, err)
			for i, r := range view {
				require.Equal(t, log[full+i].ID, r.ID, where)
			}
			err = s.Append(t.Context(), next)
			switch {
			case at == last-1:
				_, conflict := errors.AsType[*ConflictError](err)
				require.True(t, conflict || isOfLog(err), "%s: %v", where, err)
			case at < last:
				require.NoError(t, err, where)
			case isOfLog(err):
				require.Equal(t, damaged, node.data, where)
			default:
				_, conflict := errors.AsType[*ConflictError](err)
				require.True(t, conflict, "%s: %v", where, err)
				require.Equal(t, damaged, node.data, where)
				require.NoError(t, s.Append(t.Context(), behind), where)
				require.Contains(t, told.String(), fmt.Sprintf("offset=%d length=%d", last, len(whole)-last), where)
			}
		}
	}
}

// richLog saves a conversation in five records, of which the first and the third are
// full. It returns the texts of the states that the log has held, the first of which is
// that of no record, and the text of its archive.
func richLog(t *testing.T, s Store) (states []string, archive string) {
	h, err := Open(t.Context(), s, crashKey, nil)
	require.NoError(t, err)
	states = append(states, stateText(t, h))
	call := ToolCall{ID: "c", Name: "look", Arguments: "{}"}
	for i, step := range []func() error{
		func() error { _, err := h.Append(System("guide"), User("one")); return err },
		func() error { _, err := h.Append(Assistant("", call), Result(call, "far")); return err },
		func() error {
			_, err := h.Append(Assistant("two"), User("three"))
			return errors.Join(err, h.Pin(5), h.RecordUsage(h.Snapshot(), Usage{Input: 99}), h.Note("trace"))
		},
		func() error {
			_, err := h.Apply(h.Snapshot(), Edit{Drop: []ID{3, 4}, Summary: &Summary{Text: "sum"}})
			return err
		},
		func() error {
			at := h.Snapshot()
			_, err := h.Append(Assistant("four"))
			return errors.Join(err, h.Rollback(at), h.Queue(User("five")), h.SetMeta("title", "data"))
		},
	} {
		require.NoError(t, step())
		require.NoError(t, h.save(t.Context(), h.log, i == 2))
		opened, err := Open(t.Context(), s, crashKey, nil)
		require.NoError(t, err)
		states = append(states, stateText(t, opened))
	}
	archive, err = archiveText(t, h)
	require.NoError(t, err)
	return states, archive
}

// stateText returns as a text what is read of h.
func stateText(t *testing.T, h *History) string {
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	status := h.Status()
	status.Unsaved = 0
	return fmt.Sprintf("%s\n%+v\n%#v", data, h.Tokens(), status)
}

// archiveText returns as a text what Archive yields before an error.
func archiveText(t *testing.T, h *History) (string, error) {
	var b strings.Builder
	for x, err := range h.Archive(t.Context()) {
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintln(&b, x)
	}
	return b.String(), nil
}

// A change of any byte is a typed error when the conversation is opened, or the state is
// one that the log has held, and what is missing of it is told. Then the conversation
// goes on from there.
func TestFileStore_ChangedBytesOpened(t *testing.T) {
	disk := newTestDisk(nil)
	states, archive := richLog(t, &FileStore{Dir: "/chats", disk: disk})
	node := disk.dirs["/chats"].names[fileName(crashKey)]
	whole := node.data
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	newest := states[len(states)-1]
	step := 1
	if testing.Short() {
		step = 11
	}
	same, damaged, torn := 0, 0, 0
	for at := 0; at < len(whole); at += step {
		for k, change := range byteChanges {
			b := change(whole[at])
			if b == whole[at] {
				continue
			}
			where := fmt.Sprintf("byte %d of %d, change %d", at, len(whole), k)
			node.data = bytes.Clone(whole)
			node.data[at] = b
			var told strings.Builder
			s := &FileStore{Dir: "/chats", disk: disk, Logger: slog.New(slog.NewTextHandler(&told, nil))}
			h, err := Open(t.Context(), s, crashKey, nil)
			if err != nil {
				damaged++
				require.True(t, isOfLog(err), "%s: %v", where, err)
				if damage, ok := errors.AsType[*DamageError](err); ok && damage.Seq > 0 {
					p, err := Load(t.Context(), s, crashKey, damage.Seq)
					require.NoError(t, err, where)
					data, err := p.MarshalJSON()
					require.NoError(t, err)
					require.True(t, strings.HasPrefix(states[damage.Seq], string(data)+"\n"), "%s: record %d", where, damage.Seq)
				}
				continue
			}
			got := stateText(t, h)
			lines, err := archiveText(t, h)
			require.True(t, strings.HasPrefix(archive, lines), where)
			switch {
			case err != nil:
				require.True(t, isOfLog(err), "%s: %v", where, err)
				require.Equal(t, newest, got, where)
				same++
			case got != newest:
				// Only the last line is missing, or two of which a NUL has made one.
				lost := 1
				if at == last-1 {
					lost = 2
				}
				require.GreaterOrEqual(t, at, last-1, where)
				require.Equal(t, states[len(states)-1-lost], got, where)
				torn++
			default:
				require.Fail(t, "nobody is told", where)
			}
			require.NoError(t, h.Note("more"))
			require.NoError(t, h.Save(t.Context()), where)
			require.Equal(t, got != newest, strings.Contains(told.String(), "unfinished record cut off"), where)
			h, err = Open(t.Context(), s, crashKey, nil)
			require.NoError(t, err, where)
			require.Equal(t, got, stateText(t, h), where)
		}
	}
	t.Logf("of %d bytes: %d times the same state, %d times damage, %d times a torn tail", len(whole), same, damaged, torn)
	require.True(t, same > 0 && damaged > 0 && torn > 0)
}

// A log that ends anywhere holds the records that stand in it whole.
func TestFileStore_EndsAnywhere(t *testing.T) {
	disk := newTestDisk(nil)
	log := fill(t, &FileStore{Dir: "/chats", disk: disk}, crashKey, 4)
	node := disk.dirs["/chats"].names[fileName(crashKey)]
	whole := node.data
	for at := range whole {
		node.data = whole[:at]
		got := stored(t, &FileStore{Dir: "/chats", disk: disk}, crashKey)
		require.Equal(t, log[:bytes.Count(whole[:at], []byte("\n"))].String(), got.String())
	}
}

// What Append and opening do does not grow with the log.
func TestFileStore_Operations(t *testing.T) {
	for _, n := range []int{8, 64, 512} {
		disk := newTestDisk(nil)
		s := &FileStore{Dir: "/chats", disk: disk}
		log := fill(t, s, crashKey, n)
		for !log.newest().Full { // so that the tail is short
			log = append(log, log.next(rand.New(rand.NewPCG(9, log.newest().Seq)), crashKey))
			require.NoError(t, s.Append(t.Context(), log.newest()))
		}
		rest := Record{Head: Head{Key: crashKey, Seq: log.newest().Seq + 1}, ID: strings.Repeat("z", recordID), Prev: log.newest().ID}
		clear(disk.ops)
		require.NoError(t, s.Append(t.Context(), rest))
		assert.Equal(t, map[string]int{
			"open dir": 1, "lstat": 2, "open": 1, "lock": 1, "stat": 1, "read": 1, "write": 1, "sync": 1,
			"unlock": 1, "close": 1, "close dir": 1,
		}, disk.ops, "Append behind %d", n)

		clear(disk.ops)
		require.NoError(t, s.Append(t.Context(), rest))
		assert.Zero(t, disk.ops["write"]+disk.ops["sync"], "the same record again")

		other := &FileStore{Dir: "/chats", disk: disk}
		rest.Seq, rest.Prev, rest.ID = rest.Seq+1, rest.ID, strings.Repeat("y", recordID)
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

		fast := &FileStore{Dir: "/chats", disk: disk, NoSync: true}
		rest.Seq, rest.Prev, rest.ID = rest.Seq+1, rest.ID, strings.Repeat("x", recordID)
		clear(disk.ops)
		require.NoError(t, fast.Append(t.Context(), rest))
		require.NoError(t, fast.Prune(t.Context(), crashKey, log.newest().Seq))
		require.NoError(t, fast.Delete(t.Context(), crashKey))
		assert.Zero(t, disk.ops["sync"]+disk.ops["sync dir"]+disk.ops["sync parent"], "NoSync")
	}
}

// What a Save asks of the file system, in order.
func TestFileStore_OperationsOfASave(t *testing.T) {
	disk := newTestDisk(nil)
	var ops []string
	disk.step = func(op string) error { ops = append(ops, op); return nil }
	for _, tt := range []struct {
		store         *FileStore
		first, others string
	}{
		{
			&FileStore{Dir: "/chats", disk: disk},
			// Dir is missing, and made. Its name must last before a file is made in it.
			"open dir, mkdir, sync parent, sync parent, open dir, lstat, mkdir, sync parent, create, lock, lstat, stat, read, sync dir, write, chtimes, sync, unlock, close, close dir",
			"open dir, lstat, open, lock, lstat, stat, read, write, chtimes, sync, unlock, close, close dir",
		},
		{
			&FileStore{Dir: "/fast", disk: disk, NoSync: true},
			"open dir, mkdir, open dir, lstat, mkdir, create, lock, lstat, stat, read, write, chtimes, unlock, close, close dir",
			"open dir, lstat, open, lock, lstat, stat, read, write, chtimes, unlock, close, close dir",
		},
	} {
		h, err := Open(t.Context(), tt.store, "k", nil)
		require.NoError(t, err)
		want := tt.first
		for turn := range 20 {
			_, err := h.Append(User("a question"), Assistant("an answer"))
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

// Reading holds one record in memory.
func TestFileStore_MemoryOfOneRecord(t *testing.T) {
	s := &FileStore{Dir: t.TempDir(), NoSync: true}
	log := testLog{{Head: Head{Key: "k", Seq: 1}, ID: strings.Repeat("a", recordID), Full: true, Data: bytes.Repeat([]byte("{"), 1<<20)}}
	for i := range 40 {
		r := log[0]
		r.Full, r.Seq, r.ID = false, uint64(i+2), strings.Repeat(string(rune('A'+i%26)), recordID-1)+string(rune('a'+i/26))
		if i == 0 {
			require.NoError(t, s.Append(t.Context(), log[0]))
			r.Prev = log[0].ID
		} else {
			r.Prev = log[1].ID
		}
		require.NoError(t, s.Append(t.Context(), r))
		log = testLog{log[0], r}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, n := heap(), 0
	for _, err := range s.Records(t.Context(), "k", 0) {
		require.NoError(t, err)
		if n++; n%10 == 0 {
			assert.Less(t, int64(heap())-int64(before), int64(12<<20))
		}
	}
	assert.Equal(t, 41, n)
}

func TestFileStore_Files(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := &FileStore{Dir: dir}
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
		assert.Regexp(t, logName, fileName(key))
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

// The line of a record, byte for byte.
func TestFileStore_Line(t *testing.T) {
	at := time.Date(2026, 11, 22, 8, 0, 0, 5, time.UTC)
	r := Record{
		Head: Head{Key: "42", Title: "\"Rome\"\n", Seq: 12, Created: at, Updated: at, Entries: 12, Tokens: 3456},
		ID:   strings.Repeat("b", recordID), Prev: strings.Repeat("a", recordID), Format: 1, Upto: 41, Data: []byte(`{"x":1}`),
	}
	const details = `,"upto":41,"entries":12,"tokens":3456,"title":"\"Rome\"\u000a","created":"2026-11-22T08:00:00.000000005Z","updated":"2026-11-22T08:00:00.000000005Z","prev":"aaaaaaaaaaaaaaaaaaaaaaaaaa","id":"bbbbbbbbbbbbbbbbbbbbbbbbbb"}` + "\n"
	line := newLine(&r, 20480)
	assert.Equal(t, `5ba8e429 12 P 20480 {"format":1,"data":{"x":1},"key":"42"`+details, string(line))
	r.Key, r.Data, r.Full = "\xff", []byte("two\nlines"), true
	assert.Equal(t, ` 12 F 0 {"format":1,"data":"dHdvCmxpbmVz","key64":"/w=="`+details, string(newLine(&r, 0)[sumSize:]))
	r.Key, r.Title = strings.Repeat("\x01", maxKey), strings.Repeat("\x01", maxTitle)
	r.Data = []byte(`{,"key":"42"` + details[:len(details)-1])
	l, err := parseLine(newLine(&r, 0))
	require.NoError(t, err)
	assert.Equal(t, r, l.Record)
	assert.Less(t, len(newLine(&r, 0))-len(r.Data), 32<<10)
}

// withLine puts a line with a right checksum behind what is in a file.
func withLine(t *testing.T, dir, key, line string) {
	t.Helper()
	b := append(make([]byte, sumSize), " "+line...)
	putSum(b)
	f, err := os.OpenFile(filepath.Join(dir, fileName(key)), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.Write(append(b, '\n'))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Lines with a right checksum that no log may hold.
func TestFileStore_Refuses(t *testing.T) {
	base := fill(t, &FileStore{Dir: t.TempDir()}, "k", 2)
	good := base[1]
	good.Seq, good.Prev, good.ID, good.Full, good.Key = 3, base[1].ID, strings.Repeat("c", recordID), false, "k"
	size := len(newLine(&base[0], 0))
	back := int64(size + len(newLine(&base[1], int64(size))))
	if base[1].Full {
		back -= int64(size)
	}
	of := func(change func(r *Record), back int64) string {
		r := good
		change(&r)
		return strings.TrimSuffix(string(newLine(&r, back)[sumSize+1:]), "\n")
	}
	fine := of(func(*Record) {}, back)
	for _, tt := range []struct {
		name, line, want string
		version          bool
	}{
		{name: "a gap", line: of(func(r *Record) { r.Seq = 4 }, back), want: "record 4 follows record 2"},
		{name: "Prev", line: of(func(r *Record) { r.Prev = base[0].ID }, back), want: "record 3 does not name the one before it"},
		{name: "back", line: of(func(*Record) {}, back-1), want: "damaged"},
		{name: "no full record", line: of(func(*Record) {}, 0), want: "record 3 does not lead to the full record before it"},
		{name: "another key", line: of(func(r *Record) { r.Key = "other" }, back), want: `the record is of the key "other"`},
		{name: "an ID", line: of(func(r *Record) { r.ID = "short" }, back), want: "Record.ID"},
		{name: "a later kind", line: strings.Replace(fine, " P ", " S ", 1), want: `the record is of kind "S", in the log of "k"`, version: true},
		{name: "a later format", line: strings.Replace(strings.Replace(fine, `"format":1`, `"format":2`, 1), `"upto"`, `"seal":1,"upto"`, 1), want: "the record has format 2", version: true},
		{name: "an unknown field", line: strings.Replace(fine, `"upto"`, `"seal":1,"upto"`, 1), want: "the line is not as it is written"},
		{name: "a number", line: strings.Replace(fine, `"upto":7`, `"upto":07`, 1), want: "the line is not as it is written"},
		{name: "a header", line: "0" + fine, want: "the header of the line is not as it is written"},
		{name: "data", line: strings.Replace(fine, `"data":{`, `"data":[`, 1), want: "the line is not as it is written"},
		{name: "nothing", line: "", want: "damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &FileStore{Dir: t.TempDir()}
			for _, r := range base {
				require.NoError(t, s.Append(t.Context(), r))
			}
			withLine(t, s.Dir, "k", tt.line)
			got, err := readAll(t, s, "k", 1)
			require.ErrorContains(t, err, tt.want)
			assert.Equal(t, base, got)
			assert.Equal(t, tt.version, errors.Is(err, ErrVersion))
			damage, ok := errors.AsType[*DamageError](err)
			assert.Equal(t, !tt.version, ok)
			if ok {
				assert.Equal(t, DamageError{Key: "k", Offset: damage.Offset, Seq: 2, Err: damage.Err}, *damage)
			}
			_, err = readAll(t, s, "k", 0)
			assert.True(t, isOfLog(err), "%v", err)
		})
	}
}

func TestFileStore_BadInput(t *testing.T) {
	s := &FileStore{Dir: t.TempDir()}
	log := fill(t, s, "k", 2)
	next := log.next(rand.New(rand.NewPCG(3, 3)), "k")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	value := func(err error) bool { _, ok := errors.AsType[*ValueError](err); return ok }
	for _, s := range []*FileStore{nil, {}} {
		assert.True(t, value(s.Append(t.Context(), next)))
		assert.True(t, value(s.Delete(t.Context(), "k")))
		assert.True(t, value(s.Prune(t.Context(), "k", 1)))
		_, err := readAll(t, s, "k", 0)
		assert.True(t, value(err))
		for _, err := range s.List(t.Context(), "") {
			assert.True(t, value(err))
		}
	}
	with := func(change func(r *Record)) Record { r := next; change(&r); return r }
	for name, r := range map[string]Record{
		"key":  with(func(r *Record) { r.Key = "" }),
		"gap":  with(func(r *Record) { r.Seq = 9 }),
		"year": with(func(r *Record) { r.Updated = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }),
	} {
		assert.True(t, value(s.Append(t.Context(), r)), name)
	}
	assert.True(t, value(s.Prune(t.Context(), "none", 1)))
	assert.True(t, value(s.Prune(t.Context(), "k", 0)))
	assert.True(t, value(s.Prune(t.Context(), "k", 3)))
	assert.True(t, value(s.Delete(t.Context(), "")))

	conflict := func(err error, want ConflictError) {
		t.Helper()
		got, ok := errors.AsType[*ConflictError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, want, *got)
	}
	conflict(s.Append(t.Context(), with(func(r *Record) { r.Prev = log[0].ID })), ConflictError{"k", 2, 3, log[1].ID})
	conflict(s.Append(t.Context(), with(func(r *Record) { r.Prev, r.Full = "", true })), ConflictError{"k", 2, 3, log[1].ID})
	conflict(s.Append(t.Context(), with(func(r *Record) { r.Key = "none" })), ConflictError{"none", 0, 3, ""})
	require.NoError(t, s.Append(t.Context(), log[1]), "the newest record again")
	assert.ErrorIs(t, s.Append(ended, next), context.Canceled)
	assert.ErrorIs(t, s.Delete(ended, "k"), context.Canceled)
	_, err := readAll(t, s, "k", 7)
	require.NoError(t, err)
	assert.Equal(t, log, stored(t, s, "k"))

	for key, make := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(filepath.Join(s.Dir, fileName("k")), path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"other": func(path string) error {
			data, err := os.ReadFile(filepath.Join(s.Dir, fileName("k")))
			require.NoError(t, err)
			return os.WriteFile(path, data, 0o600)
		},
	} {
		require.NoError(t, make(filepath.Join(s.Dir, fileName(key))))
		_, err := readAll(t, s, key, 0)
		assert.True(t, isOfLog(err), "%s: %v", key, err)
		err = s.Append(t.Context(), Record{Head: Head{Key: key, Seq: 1}, Full: true, ID: next.ID})
		assert.True(t, isOfLog(err), "%s: %v", key, err)
	}
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Symlink("nowhere", filepath.Join(s.Dir, "dangling")))
		err := (&FileStore{Dir: filepath.Join(s.Dir, "dangling"), NoSync: true}).Append(t.Context(), Record{Head: Head{Key: "k", Seq: 1}, Full: true, ID: next.ID})
		assert.Error(t, err)
	}
}

// A failed write or sync leaves the file as long as it was.
func TestFileStore_FailedWrite(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		disk := newTestDisk(rand.New(rand.NewPCG(1, 1)))
		s := &FileStore{Dir: "/chats", disk: disk}
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

// What waits for a lock tries again every 5 milliseconds at most, until ctx ends.
func TestFileStore_WaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newTestDisk(nil)
		s := &FileStore{Dir: "/chats", disk: disk}
		log := fill(t, s, "k", 2)
		node := disk.dirs["/chats"].names[fileName("k")]
		node.excl = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		clear(disk.ops)
		_, err := func() (testLog, error) {
			for _, err := range s.Records(ctx, "k", 0) {
				return nil, err
			}
			return nil, nil
		}()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.InDelta(t, 205, disk.ops["lock"], 5)
		start := time.Now()
		disk.step = func(string) error {
			node.excl = node.excl && time.Since(start) < 12*time.Millisecond
			return nil
		}
		require.NoError(t, s.Append(t.Context(), log.next(rand.New(rand.NewPCG(2, 2)), "k")))
		assert.GreaterOrEqual(t, time.Since(start), 12*time.Millisecond)
		assert.LessOrEqual(t, time.Since(start), 17*time.Millisecond)
	})
}

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

// Append cuts off what was not written whole, and says so; a Logger that panics or
// is missing does no harm.
func TestFileStore_TornTail(t *testing.T) {
	for _, tail := range []string{"1", "12345678 4 P 20 {\x00\x00\n", strings.Repeat("x", 200_000)} {
		var out strings.Builder
		for _, logger := range []*slog.Logger{nil, slog.New(panickyHandler{slog.DiscardHandler}), slog.New(slog.NewTextHandler(&out, nil))} {
			s := &FileStore{Dir: t.TempDir(), Logger: logger}
			log := fill(t, s, "k", 3)
			path := filepath.Join(s.Dir, fileName("k"))
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, append(data, tail...), 0o600))
			assert.Equal(t, log, stored(t, s, "k"))
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Len(t, after, len(data)+len(tail), "reading repairs nothing")
			log = append(log, log.next(rand.New(rand.NewPCG(4, 4)), "k"))
			require.NoError(t, s.Append(t.Context(), log.newest()))
			assert.Equal(t, log, stored(t, s, "k"))
			if logger != nil && out.Len() > 0 {
				assert.Contains(t, out.String(), fmt.Sprintf("level=WARN msg=\"convo: unfinished record cut off\" key=k offset=%d length=%d\n", len(data), len(tail)))
			}
		}
		assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	}
}

type panickyHandler struct{ slog.Handler }

func (panickyHandler) Enabled(context.Context, slog.Level) bool { panic("boom") }

// Prune leaves the lines from a full record on as they are, so that the way from the
// newest to the full ones still leads there.
func TestFileStore_Prune(t *testing.T) {
	s := &FileStore{Dir: t.TempDir()}
	log := fill(t, s, "k", 40)
	path := filepath.Join(s.Dir, fileName("k"))
	require.NoError(t, os.WriteFile(path+tmpSuffix, []byte("left by a crash"), 0o600))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, r := range log {
		if !r.Full {
			assert.Error(t, s.Prune(t.Context(), "k", r.Seq))
			continue
		}
		require.NoError(t, s.Prune(t.Context(), "k", r.Seq))
		log, _ = log.pruned(r.Seq)
		require.Equal(t, log, stored(t, s, "k"))
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.HasSuffix(before, after))
		assert.NoFileExists(t, path+tmpSuffix)
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, log.newest().Updated, info.ModTime().UTC(), "a Prune is no update")
	}
	require.NoError(t, s.Append(t.Context(), log.next(rand.New(rand.NewPCG(8, 8)), "k")))

	// What stands before damage is not pruned: it is what can be loaded.
	log = fill(t, s, "d", 30)
	path = filepath.Join(s.Dir, fileName("d"))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[20][30] ^= 1
	data = bytes.Join(lines, nil)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	at := uint64(0)
	for _, r := range log[1:18] {
		if r.Full {
			at = r.Seq
		}
	}
	assert.True(t, isOfLog(s.Prune(t.Context(), "d", at)))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, data, after)
	assert.NoFileExists(t, path+tmpSuffix)

	require.NoError(t, os.WriteFile(path+tmpSuffix, []byte("left by a crash"), 0o600))
	require.NoError(t, s.Delete(t.Context(), "d"))
	assert.NoFileExists(t, path)
	assert.NoFileExists(t, path+tmpSuffix)
	assert.Empty(t, stored(t, s, "d"))
}

// Memory for what is known of files does not grow without end.
func TestFileStore_ForgetsFiles(t *testing.T) {
	s := &FileStore{Dir: "/chats", disk: newTestDisk(nil)}
	for i := range maxSettled + 10 {
		s.remember(&lockedLog{name: fmt.Sprint(i)}, logTail{})
	}
	assert.LessOrEqual(t, len(s.settled), maxSettled)
}

// The line of any bytes is read or refused, and what is read is written so.
func FuzzFileStore_Line(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var log testLog
	for range 12 {
		log = append(log, log.next(rnd, "k"))
		f.Add(newLine(&log[len(log)-1], 7), true)
	}
	f.Add([]byte("00000000 1 F 0 {}"), false)
	f.Fuzz(func(t *testing.T, line []byte, sum bool) {
		if sum && len(line) > sumSize { // else hardly any line gets past the checksum
			line = append(bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))), '\n')
			b := line[:len(line)-1]
			if len(b) > sumSize {
				b[sumSize] = ' '
				putSum(b)
			}
		}
		l, err := parseLine(line)
		if err != nil {
			return
		}
		require.NoError(t, l.Check())
		again, err := parseLine(newLine(&l.Record, l.back))
		require.NoError(t, err)
		again.text, l.text = nil, nil
		require.Equal(t, l, again)
	})
}

// Any bytes in a file are records or a typed error, and never kept from being
// deleted.
func FuzzFileStore_Records(f *testing.F) {
	disk := newTestDisk(nil)
	fill(f, &FileStore{Dir: "/chats", disk: disk}, crashKey, 6)
	whole := disk.dirs["/chats"].names[fileName(crashKey)].data
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), "1234 \x00\n"...))
	f.Add([]byte("\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		disk := newTestDisk(nil)
		s := &FileStore{Dir: "/chats", disk: disk}
		first := fill(t, s, crashKey, 1)
		disk.dirs["/chats"].names[fileName(crashKey)].data = data
		for from := range uint64(3) {
			log, err := readAll(t, s, crashKey, from)
			require.True(t, err == nil || isOfLog(err), "%v", err)
			for i, r := range log {
				require.True(t, i == 0 || r.Prev == log[i-1].ID)
			}
		}
		for _, err := range s.List(t.Context(), "") {
			require.True(t, err == nil || isOfLog(err), "%v", err)
		}
		err := s.Append(t.Context(), first[0])
		_, conflict := errors.AsType[*ConflictError](err)
		require.True(t, err == nil || conflict || isOfLog(err), "%v", err)
		require.NoError(t, s.Delete(t.Context(), crashKey))
		require.Empty(t, maps.Clone(disk.dirs["/chats"].names))
	})
}
