package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

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
func TestStore_ChangedBytes(t *testing.T) {
	disk := newTestDisk(nil)
	log := fill(t, &Store{Dir: "/chats", disk: disk}, crashKey, 5)
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
	step := long.Or(23, 1)
	for at := 0; at < len(whole); at += step {
		for k, change := range byteChanges {
			node.data = bytes.Clone(whole)
			if node.data[at] = change(whole[at]); node.data[at] == whole[at] {
				continue
			}
			damaged := bytes.Clone(node.data)
			where := fmt.Sprintf("byte %d of %d, change %d", at, len(whole), k)
			var told strings.Builder
			s := &Store{Dir: "/chats", disk: disk, Logger: slog.New(slog.NewTextHandler(&told, nil))}
			got, err := readAll(t, s, crashKey, 1)
			for i, r := range got {
				require.Equal(t, log[i], r, where)
			}
			if err != nil {
				require.True(t, isOfLog(err), "%s: %v", where, err)
				if damage, ok := errors.AsType[*convo.DamageError](err); ok {
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
				_, conflict := errors.AsType[*convo.ConflictError](err)
				require.True(t, conflict || isOfLog(err), "%s: %v", where, err)
			case at < last:
				require.NoError(t, err, where)
			case isOfLog(err):
				require.Equal(t, damaged, node.data, where)
			default:
				_, conflict := errors.AsType[*convo.ConflictError](err)
				require.True(t, conflict, "%s: %v", where, err)
				require.Equal(t, damaged, node.data, where)
				require.NoError(t, s.Append(t.Context(), behind), where)
				require.Contains(t, told.String(), fmt.Sprintf("offset=%d length=%d", last, len(whole)-last), where)
			}
		}
	}
}

// A keeper is a Store that keeps records that are to be pruned: Prune only writes a full one.
type keeper struct{ convo.Store }

func (keeper) Prune(context.Context, string, uint64) error { return nil }

// richLog saves a conversation in five records, of which the first and the third are
// full. It returns the texts of the states that the log has held, the first of which is
// that of no record, and the text of its archive.
func richLog(t *testing.T, s convo.Store) (states []string, archive string) {
	h, err := convo.Open(t.Context(), keeper{s}, crashKey, nil)
	require.NoError(t, err)
	states = append(states, stateText(t, h))
	call := convo.ToolCall{ID: "c", Name: "look", Arguments: "{}"}
	for i, step := range []func() error{
		func() error { _, err := h.Append(convo.System("guide"), convo.User("one")); return err },
		func() error { _, err := h.Append(convo.Assistant("", call), convo.Result(call, "far")); return err },
		func() error {
			_, err := h.Append(convo.Assistant("two"), convo.User("three"))
			return errors.Join(err, h.Pin(5), h.RecordUsage(h.Snapshot(), convo.Usage{Input: 99}), h.Note("trace"))
		},
		func() error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "sum"}})
			return err
		},
		func() error {
			at := h.Snapshot()
			_, err := h.Append(convo.Assistant("four"))
			return errors.Join(err, h.Rollback(at), h.Queue(convo.User("five")), h.SetMeta("title", "data"))
		},
	} {
		require.NoError(t, step())
		if i == 2 {
			require.NoError(t, h.Prune(t.Context(), time.Time{}))
		}
		require.NoError(t, h.Save(t.Context()))
		opened, err := convo.Open(t.Context(), s, crashKey, nil)
		require.NoError(t, err)
		states = append(states, stateText(t, opened))
	}
	archive, err = archiveText(t, h)
	require.NoError(t, err)
	return states, archive
}

// stateText returns as a text what is read of h.
func stateText(t *testing.T, h *convo.History) string {
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	status := h.Status()
	status.Unsaved, status.Torn = 0, 0
	return fmt.Sprintf("%s\n%+v\n%#v", data, h.Tokens(), status)
}

// archiveText returns as a text what Archive yields before an error.
func archiveText(t *testing.T, h *convo.History) (string, error) {
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
func TestStore_ChangedBytesOpened(t *testing.T) {
	disk := newTestDisk(nil)
	states, archive := richLog(t, &Store{Dir: "/chats", disk: disk})
	node := disk.dirs["/chats"].names[fileName(crashKey)]
	whole := node.data
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	newest := states[len(states)-1]
	step := long.Or(31, 1)
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
			s := &Store{Dir: "/chats", disk: disk, Logger: slog.New(slog.NewTextHandler(&told, nil))}
			h, err := convo.Open(t.Context(), s, crashKey, nil)
			if err != nil {
				damaged++
				require.True(t, isOfLog(err), "%s: %v", where, err)
				if damage, ok := errors.AsType[*convo.DamageError](err); ok && damage.Seq > 0 {
					p, err := convo.Load(t.Context(), s, crashKey, damage.Seq)
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
			require.Equal(t, got != newest, h.Status().Torn > 0, where)
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
			require.Zero(t, h.Status().Torn, where)
			h, err = convo.Open(t.Context(), s, crashKey, nil)
			require.NoError(t, err, where)
			require.Equal(t, got, stateText(t, h), where)
			require.Zero(t, h.Status().Torn, where)
		}
	}
	t.Logf("of %d bytes: %d times the same state, %d times damage, %d times a torn tail", len(whole), same, damaged, torn)
	require.True(t, same > 0 && damaged > 0 && torn > 0)
}

// A changed byte in the place of the last newline is damage, since the line before it is
// whole, so it was acknowledged: no state is opened that lacks it, and Salvage keeps it.
func TestStore_LastNewlineChanged(t *testing.T) {
	disk := newTestDisk(nil)
	s := &Store{Dir: "/chats", disk: disk}
	states, _ := richLog(t, s)
	newest := stored(t, s, crashKey).newest()
	node := disk.dirs["/chats"].names[fileName(crashKey)]
	node.data[len(node.data)-1] ^= 1
	damaged := bytes.Clone(node.data)
	_, err := convo.Open(t.Context(), s, crashKey, nil)
	damage, ok := errors.AsType[*convo.DamageError](err)
	require.True(t, ok, "%v", err)
	require.EqualError(t, damage.Err, "the line ends with the byte 0x0b instead of a newline")
	require.Equal(t, newest.Seq, damage.Seq)
	require.Equal(t, int64(len(damaged)-1), damage.Offset)
	next := testLog{}.next(rand.New(rand.NewPCG(7, 7)), crashKey)
	next.Seq, next.Prev = newest.Seq+1, newest.ID
	_, ok = errors.AsType[*convo.DamageError](s.Append(t.Context(), next))
	require.True(t, ok)
	require.Equal(t, damaged, node.data)

	kept, err := convo.Salvage(t.Context(), s, "salvaged", s, crashKey)
	require.NoError(t, err)
	require.Len(t, kept.Damage, 1)
	require.Equal(t, damage.Err, errors.Unwrap(kept.Damage[0]))
	h, err := convo.Open(t.Context(), s, "salvaged", nil)
	require.NoError(t, err)
	require.Equal(t, states[len(states)-1], stateText(t, h))
}

// A log that ends anywhere holds the records that stand in it whole.
func TestStore_EndsAnywhere(t *testing.T) {
	disk := newTestDisk(nil)
	log := fill(t, &Store{Dir: "/chats", disk: disk}, crashKey, 4)
	node := disk.dirs["/chats"].names[fileName(crashKey)]
	whole := node.data
	for at := range whole {
		node.data = whole[:at]
		got := stored(t, &Store{Dir: "/chats", disk: disk}, crashKey)
		require.Equal(t, log[:bytes.Count(whole[:at], []byte("\n"))].String(), got.String())
	}
}

// A line is read whole, whatever its length is next to that of the buffer, and the
// offset is where the next one begins.
func TestLogScan_Line(t *testing.T) {
	const buffer = 64 << 10
	for _, n := range []int{1, buffer - 1, buffer, buffer + 1, 3*buffer - 1, 3 * buffer, 3*buffer + 1} {
		for _, half := range []int{0, 1, buffer - n%buffer, buffer, 2*buffer + 1} {
			var lines []string
			for i, size := range []int{n, 5, n, n} {
				lines = append(lines, strings.Repeat(string(rune('a'+i)), size-1)+"\n")
			}
			text := strings.Join(lines, "") + strings.Repeat("h", half)
			s, off := newScan(strings.NewReader(text), "k", 0, int64(len(text))), int64(0)
			for i, want := range lines {
				got, err := s.line()
				require.NoError(t, err)
				require.True(t, want == string(got), "line %d of %d bytes", i, n)
				off += int64(len(want))
				require.Equal(t, off, s.off)
			}
			got, err := s.line()
			require.Empty(t, got)
			if half == 0 {
				require.Equal(t, io.EOF, err)
				continue
			}
			require.ErrorIs(t, err, errLine)
			require.ErrorContains(t, err, "no end")
			require.Equal(t, int64(len(text)), s.off)
		}
	}
}

// A longLine is a file with a line of maxLine+1 bytes and a short one, or, with err, a
// longer line that cannot be read to its end.
type longLine struct{ err error }

func (f longLine) ReadAt(p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if f.err != nil {
		if off > maxLine {
			return 0, f.err
		}
		return len(p), nil
	}
	if i := maxLine - off; i >= 0 && i < int64(len(p)) {
		p[i] = '\n'
	}
	if i := maxLine + 5 - off; i >= 0 && i < int64(len(p)) {
		p[i] = '\n'
	}
	return len(p), nil
}

// After a line that is too long for a record, the next one is read.
func TestLogScan_LineTooLong(t *testing.T) {
	long.Only(t, "takes the memory of the longest line")
	s := newScan(longLine{}, "k", 0, maxLine+6)
	got, err := s.line()
	require.ErrorIs(t, err, errLine)
	require.ErrorContains(t, err, "longer than any record")
	require.Empty(t, got)
	require.LessOrEqual(t, len(s.text), maxLine)
	got, err = s.line()
	require.NoError(t, err)
	require.Equal(t, "xxxx\n", string(got))

	broken := errors.New("broken")
	_, err = newScan(longLine{broken}, "k", 0, 2*maxLine).line()
	require.Equal(t, broken, err, "not an error of the line")
}

// Reading holds one record in memory.
func TestStore_MemoryOfOneRecord(t *testing.T) {
	s := &Store{Dir: t.TempDir(), NoSync: true}
	log := testLog{{LogInfo: convo.LogInfo{Key: "k", Seq: 1}, ID: strings.Repeat("a", 26), Full: true, Data: bytes.Repeat([]byte("{"), 1<<20)}}
	for i := range 40 {
		r := log[0]
		r.Full, r.Seq, r.ID = false, uint64(i+2), strings.Repeat(string(rune('A'+i%26)), 26-1)+string(rune('a'+i/26))
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
func TestStore_Refuses(t *testing.T) {
	base := fill(t, &Store{Dir: t.TempDir()}, "k", 2)
	good := base[1]
	good.Seq, good.Prev, good.ID, good.Full, good.Key = 3, base[1].ID, strings.Repeat("c", 26), false, "k"
	size := len(newLine(&base[0], 0))
	back := int64(size + len(newLine(&base[1], int64(size))))
	if base[1].Full {
		back -= int64(size)
	}
	of := func(change func(r *convo.Record), back int64) string {
		r := good
		change(&r)
		return strings.TrimSuffix(string(newLine(&r, back)[sumSize+1:]), "\n")
	}
	fine := of(func(*convo.Record) {}, back)
	for _, tt := range []struct {
		name, line, want string
		version          bool
	}{
		{name: "a gap", line: of(func(r *convo.Record) { r.Seq = 4 }, back), want: "record 4 follows record 2"},
		{name: "Prev", line: of(func(r *convo.Record) { r.Prev = base[0].ID }, back), want: "record 3 does not name the one before it"},
		{name: "back", line: of(func(*convo.Record) {}, back-1), want: "damaged"},
		{name: "no full record", line: of(func(*convo.Record) {}, 0), want: "record 3 does not lead to the full record before it"},
		{name: "another key", line: of(func(r *convo.Record) { r.Key = "other" }, back), want: `the record is of the key "other"`},
		{name: "an ID", line: of(func(r *convo.Record) { r.ID = "short" }, back), want: "Record.ID"},
		{name: "a later kind", line: strings.Replace(fine, " P ", " S ", 1), want: `the record is of kind "S", in the log of "k"`, version: true},
		{name: "a later format", line: strings.Replace(strings.Replace(fine, `"format":1`, `"format":2`, 1), `"upto"`, `"seal":1,"upto"`, 1), want: "the record has format 2", version: true},
		{name: "an unknown field", line: strings.Replace(fine, `"upto"`, `"seal":1,"upto"`, 1), want: "the line is not as it is written"},
		{name: "a number", line: strings.Replace(fine, `"upto":7`, `"upto":07`, 1), want: "the line is not as it is written"},
		{name: "a format", line: strings.Replace(fine, `"format":1`, `"format":01`, 1), want: "the line is not as it is written"},
		{name: "a header", line: "0" + fine, want: "the header of the line is not as it is written"},
		{name: "data", line: strings.Replace(fine, `"data":{`, `"data":[`, 1), want: "the line is not as it is written"},
		{name: "nothing", line: "", want: "damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Store{Dir: t.TempDir()}
			for _, r := range base {
				require.NoError(t, s.Append(t.Context(), r))
			}
			withLine(t, s.Dir, "k", tt.line)
			got, err := readAll(t, s, "k", 1)
			require.ErrorContains(t, err, tt.want)
			assert.Equal(t, base, got)
			assert.Equal(t, tt.version, errors.Is(err, convo.ErrVersion))
			damage, ok := errors.AsType[*convo.DamageError](err)
			assert.Equal(t, !tt.version, ok)
			if ok {
				assert.Equal(t, convo.DamageError{Key: "k", Offset: damage.Offset, Seq: 2, Err: damage.Err}, *damage)
			}
			_, err = readAll(t, s, "k", 0)
			assert.True(t, isOfLog(err), "%v", err)
		})
	}
}

// Append cuts off what was not written whole, and says so; a Logger that panics or
// is missing does no harm.
func TestStore_TornTail(t *testing.T) {
	for _, tail := range []string{"1", "12345678 4 P 20 {\x00\x00\n", strings.Repeat("x", 200_000)} {
		var out strings.Builder
		for _, logger := range []*slog.Logger{nil, slog.New(panickyHandler{slog.DiscardHandler}), slog.New(slog.NewTextHandler(&out, nil))} {
			s := &Store{Dir: t.TempDir(), Logger: logger}
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

// Any bytes in a file are records or a typed error, and never kept from being
// deleted.
func FuzzStore_Records(f *testing.F) {
	disk := newTestDisk(nil)
	fill(f, &Store{Dir: "/chats", disk: disk}, crashKey, 6)
	whole := disk.dirs["/chats"].names[fileName(crashKey)].data
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), "1234 \x00\n"...))
	f.Add([]byte("\n\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		disk := newTestDisk(nil)
		s := &Store{Dir: "/chats", disk: disk}
		first := fill(t, s, crashKey, 1)
		disk.dirs["/chats"].names[fileName(crashKey)].data = data
		for from := range uint64(3) {
			log, err := readAll(t, s, crashKey, from)
			require.True(t, err == nil || isOfLog(err), "%v", err)
			for i, r := range log {
				require.True(t, i == 0 || r.Prev == log[i-1].ID)
			}
		}
		for _, err := range s.List(t.Context(), convo.ListOptions{}) {
			require.True(t, err == nil || isOfLog(err), "%v", err)
		}
		err := s.Append(t.Context(), first[0])
		_, conflict := errors.AsType[*convo.ConflictError](err)
		require.True(t, err == nil || conflict || isOfLog(err), "%v", err)
		require.NoError(t, s.Delete(t.Context(), crashKey))
		require.Empty(t, maps.Clone(disk.dirs["/chats"].names))
	})
}

// Opening reads the file about once: what is at the end to find the newest record, and
// the rest from its full record on.
func TestStore_ReadsOnce(t *testing.T) {
	for _, records := range []int{1, 40, 400} {
		disk := newTestDisk(nil)
		s := &Store{Dir: "/chats", disk: disk}
		h, err := convo.Open(t.Context(), s, crashKey, nil)
		require.NoError(t, err)
		for range records {
			_, err := h.Append(convo.User(strings.Repeat("a long question ", 30_000/records)), convo.Assistant(strings.Repeat("a long answer ", 30_000/records)))
			require.NoError(t, err)
			require.NoError(t, h.Save(t.Context()))
		}
		size := len(disk.dirs["/chats"].names[fileName(crashKey)].data)
		count := &countedFiles{fileSystem: disk}
		_, err = convo.Open(t.Context(), &Store{Dir: "/chats", disk: count}, crashKey, nil)
		require.NoError(t, err)
		t.Logf("%d records: %d bytes read of %d", records, count.read, size)
		assert.LessOrEqual(t, count.read, size+size/50+4*tailSize)
	}
}

// countedFiles counts the bytes that are read.
type countedFiles struct {
	fileSystem
	read int
}

type countedFolder struct {
	folder
	files *countedFiles
}

type countedFile struct {
	logFile
	files *countedFiles
}

func (c *countedFiles) open(dir string) (folder, error) {
	f, err := c.fileSystem.open(dir)
	return countedFolder{f, c}, err
}

func (c countedFolder) openFile(name string, flag int) (logFile, error) {
	f, err := c.folder.openFile(name, flag)
	return countedFile{f, c.files}, err
}

func (c countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.logFile.ReadAt(p, off)
	c.files.read += n
	return n, err
}
