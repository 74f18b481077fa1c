package convo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// recordsOf returns what is stored under a key.
func recordsOf(t *testing.T, s convo.Store, key string) (log []convo.Record) {
	t.Helper()
	for r, err := range s.Records(t.Context(), key, 1) {
		require.NoError(t, err)
		log = append(log, r)
	}
	return log
}

// A longLog is a log of 120 records in a file, and what a test has to remember of it.
type longLog struct {
	store  *filestore.Store
	path   string
	lines  [][]byte          // of the file; the first is that of record 1
	full   map[uint64]bool   // by Seq
	states map[uint64]string // the JSON of each state
	upto   map[uint64]convo.ID
	texts  map[convo.ID]string   // of the messages
	in     map[convo.ID]uint64   // the record that holds an entry as it was appended
	views  map[uint64][]convo.ID // the entries of the view
	notes  map[uint64]string     // by Seq
}

const longLogRecords = 120

func newLongLog(t *testing.T, rnd *rand.Rand) *longLog {
	t.Helper()
	l := &longLog{
		store: &filestore.Store{Dir: t.TempDir(), NoSync: true},
		full:  map[uint64]bool{}, states: map[uint64]string{}, upto: map[uint64]convo.ID{}, texts: map[convo.ID]string{},
		in: map[convo.ID]uint64{}, views: map[uint64][]convo.ID{}, notes: map[uint64]string{},
	}
	h := open(t, l.store, "k", convoRelaxed())
	for seq := uint64(1); seq <= longLogRecords; seq++ {
		for range 1 + rnd.IntN(3) {
			text := fmt.Sprintf("message %d of record %d %s", rnd.IntN(1000), seq, strings.Repeat("and more ", rnd.IntN(20)))
			m := convo.User(text)
			if len(l.texts)%2 == 1 {
				m = convo.Assistant(text)
			}
			id, err := h.Append(m)
			require.NoError(t, err)
			l.texts[id], l.in[id] = text, seq
		}
		if rnd.IntN(4) == 0 {
			l.notes[seq] = fmt.Sprintf("note of record %d", seq)
			require.NoError(t, h.Note(l.notes[seq]))
		}
		if h.Len() > 8+rnd.IntN(16) {
			_, err := h.SplicePrefix(h.Snapshot(), h.Len()-4, fmt.Sprintf("summary %d", seq))
			require.NoError(t, err)
		}
		save(t, h)
		state := h.Snapshot()
		data, err := state.MarshalJSON()
		require.NoError(t, err)
		l.states[seq] = string(data)
		for _, e := range state.All() {
			l.views[seq] = append(l.views[seq], e.ID)
		}
	}
	for r, err := range l.store.Records(t.Context(), "k", 1) {
		require.NoError(t, err)
		l.full[r.Seq], l.upto[r.Seq] = r.Full, r.Upto
	}
	require.Len(t, l.full, longLogRecords)
	fulls := 0
	for _, full := range l.full {
		if full {
			fulls++
		}
	}
	require.Greater(t, fulls, 3)
	files, err := os.ReadDir(l.store.Dir)
	require.NoError(t, err)
	l.path = filepath.Join(l.store.Dir, files[0].Name())
	data, err := os.ReadFile(l.path)
	require.NoError(t, err)
	l.lines = bytes.SplitAfter(data, []byte("\n"))[:longLogRecords]
	return l
}

// damages are the ways in which a file is damaged in one place.
var damages = []struct {
	name string
	do   func(rnd *rand.Rand, data []byte, lines [][]byte) []byte
}{
	{"a bit", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte {
		data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
		return data
	}},
	{"a NUL", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte { data[rnd.IntN(len(data))] = 0; return data }},
	{"bytes missing", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte {
		at := rnd.IntN(len(data))
		return slices.Delete(data, at, min(at+1+rnd.IntN(5000), len(data)))
	}},
	{"bytes too many", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte {
		more := make([]byte, 1+rnd.IntN(3000))
		for i := range more {
			more[i] = byte(rnd.Uint32())
		}
		return slices.Insert(data, rnd.IntN(len(data)), more...)
	}},
	{"zeros", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte {
		at := rnd.IntN(len(data))
		clear(data[at:min(at+1+rnd.IntN(5000), len(data))])
		return data
	}},
	{"the end", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte { return data[:rnd.IntN(len(data))] }},
	{"the beginning", func(rnd *rand.Rand, data []byte, _ [][]byte) []byte { return data[rnd.IntN(len(data)):] }},
	{"a line missing", func(rnd *rand.Rand, _ []byte, lines [][]byte) []byte {
		i := rnd.IntN(len(lines))
		return bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil)
	}},
	{"a line twice", func(rnd *rand.Rand, _ []byte, lines [][]byte) []byte {
		i := rnd.IntN(len(lines))
		return bytes.Join(slices.Insert(slices.Clone(lines), i, lines[i]), nil)
	}},
	{"two lines changed places", func(rnd *rand.Rand, _ []byte, lines [][]byte) []byte {
		lines = slices.Clone(lines)
		i, j := rnd.IntN(len(lines)), rnd.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		return bytes.Join(lines, nil)
	}},
}

// A found is what a reader can find in a damaged file, as a slow model sees it.
type found struct {
	good   []uint64        // records whose lines are whole and in order
	whole  map[uint64]bool // records of which a good full record and good patches make the state
	newest uint64          // of whole
}

// find looks for the lines of l in a file.
func (l *longLog) find(data []byte) found {
	f := found{whole: map[uint64]bool{}}
	number := map[string]uint64{}
	for i, line := range l.lines {
		number[string(line)] = uint64(i + 1)
	}
	last := uint64(0)
	for _, line := range bytes.SplitAfter(data, []byte("\n")) {
		seq := number[string(line)]
		if seq <= last {
			continue // damaged, or an older record in the place of a newer one
		}
		f.good = append(f.good, seq)
		if l.full[seq] || f.whole[last] && seq == last+1 {
			f.whole[seq], f.newest = true, seq
		}
		last = seq
	}
	return f
}

// holds checks what Load and Archive find in a log, and returns which entries Archive
// has yielded.
func (l *longLog) holds(t *testing.T, s convo.Store, key string, f found, where string) {
	t.Helper()
	for seq := uint64(1); seq <= longLogRecords; seq++ {
		if w := f.whole; seq%11 != 0 && seq != f.newest && w[seq] == w[seq-1] && w[seq] == w[seq+1] {
			continue // others next to it are checked
		}
		p, err := convo.Load(t.Context(), s, key, seq)
		if !f.whole[seq] {
			_, damaged := errors.AsType[*convo.DamageError](err)
			require.True(t, damaged || errors.Is(err, convo.ErrNotFound), "%s: record %d: %v", where, seq, err)
			continue
		}
		require.NoError(t, err, "%s: record %d", where, seq)
		data, err := p.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, l.states[seq], string(data), "%s: record %d", where, seq)
	}
}

// archived checks what Archive yields of a log in which the records of f are left.
func (l *longLog) archived(t *testing.T, h *convo.History, f found, where string) {
	t.Helper()
	entries, notes, gone := map[convo.ID]string{}, map[string]bool{}, map[convo.ID]bool{}
	for x, err := range h.Archive(t.Context()) {
		if err != nil {
			_, damaged := errors.AsType[*convo.DamageError](err)
			require.True(t, damaged, "%s: %v", where, err)
			continue
		}
		switch {
		case x.Entry != nil:
			require.NotContains(t, entries, x.Entry.ID, where)
			entries[x.Entry.ID] = x.Entry.Message.Text()
		case x.Note != "":
			require.False(t, notes[x.Note], where)
			notes[x.Note] = true
		}
		for _, r := range x.Gone {
			for id := r.First; id <= r.Last; id++ {
				gone[id] = true
			}
		}
	}
	good := map[uint64]bool{}
	held := map[convo.ID]bool{}
	for _, seq := range f.good {
		good[seq] = true
		require.Equal(t, l.notes[seq] != "", notes[l.notes[seq]], "%s: record %d", where, seq)
		if l.full[seq] {
			for _, id := range l.views[seq] {
				held[id] = true
			}
		}
	}
	last := convo.ID(0)
	if n := len(f.good); n > 0 {
		last = l.upto[f.good[n-1]]
	}
	for id, text := range l.texts {
		if good[l.in[id]] || held[id] {
			require.Equal(t, text, entries[id], "%s: entry %d of record %d", where, id, l.in[id])
			require.False(t, gone[id], "%s: entry %d", where, id)
		} else {
			require.NotContains(t, entries, id, where)
			require.Equal(t, id <= last, gone[id], "%s: entry %d of record %d", where, id, l.in[id])
		}
	}
}

// salvaged checks what Salvage makes of a damaged log.
func (l *longLog) salvaged(t *testing.T, f found, where string) {
	t.Helper()
	before, err := os.ReadFile(l.path)
	require.NoError(t, err)
	to := new(convotest.MemStore)
	got, err := convo.Salvage(t.Context(), to, "whole", l.store, "k")
	if len(f.good) == 0 {
		require.ErrorIs(t, err, convo.ErrNotFound, where)
		return
	}
	require.NoError(t, err, where)
	after, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), where)
	var partial, lost []uint64
	for seq, i := f.good[0], 0; i < len(f.good); seq++ {
		switch {
		case f.good[i] != seq:
			lost = append(lost, seq)
			continue
		case !f.whole[seq]:
			partial = append(partial, seq)
		}
		i++
	}
	require.Equal(t, f.newest, got.Newest, where)
	require.Len(t, f.whole, got.Whole, where)
	require.Equal(t, partial, got.Partial, where)
	require.Equal(t, lost, got.Lost, where)
	l.holds(t, to, "whole", f, where)
	h := open(t, to, "whole", convoRelaxed())
	l.archived(t, h, f, where)
	if f.newest > 0 {
		want, err := convo.Load(t.Context(), to, "whole", f.newest)
		require.NoError(t, err)
		require.Equal(t, want.Messages(), h.Snapshot().Messages(), where)
	}

	// The conversation goes on, and the IDs that were lost are not given again.
	id, err := h.Append(convo.User("after the damage"))
	require.NoError(t, err)
	require.Equal(t, l.upto[f.good[len(f.good)-1]]+1, id, where)
	save(t, h)
	checkOpened(t, to, "whole", convoRelaxed(), h)
	again, err := convo.Salvage(t.Context(), to, "again", to, "whole")
	require.NoError(t, err, where)
	require.Empty(t, again.Damage, where)
	require.Empty(t, again.Lost, where)
	checkOpened(t, to, "again", convoRelaxed(), h)
}

// Damage in one place of a log of 120 records hides nothing that lies elsewhere.
func TestDamage_HidesNothingElse(t *testing.T) {
	for seed := range long.Or(1, 12) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 22))
		l := newLongLog(t, rnd)
		h := open(t, l.store, "k", convoRelaxed()) // opened before the damage
		whole := bytes.Join(l.lines, nil)
		for _, d := range damages {
			where := "seed " + strconv.Itoa(seed) + ", " + d.name
			data := d.do(rnd, bytes.Clone(whole), l.lines)
			require.NoError(t, os.WriteFile(l.path, data, 0o600))
			f := l.find(data)
			l.holds(t, l.store, "k", f, where)
			l.archived(t, h, f, where)
			l.salvaged(t, f, where)
			g, err := convo.Open(t.Context(), l.store, "k", convoRelaxed())
			if err == nil {
				state, err := g.Snapshot().MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, l.states[f.newest], string(state), where)
				continue
			}
			damage, ok := errors.AsType[*convo.DamageError](err)
			require.True(t, ok, "%s: %v", where, err)
			assert.Equal(t, "k", damage.Key, where)
			assert.Equal(t, f.newest, damage.Seq, "%s: %v", where, err)
		}
	}
}
