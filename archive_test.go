package convo_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
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

var noTime time.Time

// archiveOf returns what the archive of a History holds, one line for each thing.
func archiveOf(t testing.TB, h *convo.History, ids ...convo.Range) (lines []string) {
	t.Helper()
	for x, err := range h.Archive(t.Context(), ids...) {
		require.NoError(t, err)
		switch {
		case x.Entry != nil:
			lines = append(lines, fmt.Sprintf("%d: %s", x.Entry.ID, printMessage(x.Entry.Message)))
		case x.Summary != nil:
			lines = append(lines, fmt.Sprintf("summary %s of %v", x.Summary.Text, x.Summary.Covers))
		case x.Undone != nil:
			lines = append(lines, fmt.Sprint("undone ", x.Undone))
		case x.Gone != nil:
			lines = append(lines, fmt.Sprint("gone ", x.Gone))
		default:
			lines = append(lines, "note "+x.Note)
		}
	}
	return lines
}

func TestArchive(t *testing.T) {
	s := new(shelf)
	opts := bare()
	opts.MaxResult, opts.KeepOriginals = 64, -1
	h := open(t, s, "k", opts)
	c := callOf("c")
	long := strings.Repeat("long ", 40)
	mustAppend(t, h, convo.System("guide"), convo.User("1"), convo.Assistant("", c), convo.Result(c, long), convo.Assistant("2"))
	require.NoError(t, h.SetSystem(convo.System("other")))
	mustAppend(t, h, convo.User("3"), convo.Assistant("4"))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "A"}})
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "B"}})
	require.NoError(t, err)
	require.NoError(t, h.Note("trace 1"))
	save(t, h)

	at := h.Snapshot()
	mustAppend(t, h, convo.User("5"), convo.Assistant("6"))
	save(t, h)
	mustAppend(t, h, convo.User("never saved"), convo.Assistant("never saved", c), convo.Result(c, strings.Repeat("never saved ", 40)))
	require.NoError(t, h.Rollback(at))
	mustAppend(t, h, convo.User("7"))
	save(t, h)
	want := []string{
		"summary A of [{2 2}]",
		"1: " + printMessage(convo.System("guide")),
		"2: " + printMessage(convo.User("1")),
		"3: " + printMessage(convo.Assistant("", c)),
		"4: " + printMessage(convo.Result(c, long)),
		"5: " + printMessage(convo.Assistant("2")),
		"6: " + printMessage(convo.System("other")),
		"7: " + printMessage(convo.User("3")),
		"8: " + printMessage(convo.Assistant("4")),
		"summary B of [{2 4}]",
		"note trace 1",
		"9: " + printMessage(convo.User("5")),
		"10: " + printMessage(convo.Assistant("6")),
		"undone [{9 10}]",
		"14: " + printMessage(convo.User("7")),
	}
	assert.Equal(t, want, archiveOf(t, h))
	assert.Equal(t, []string{want[2], want[3], want[12]}, archiveOf(t, h, convo.Range{First: 2, Last: 3}, convo.Range{First: 10, Last: 10}))
	for _, log := range s.logs {
		for _, r := range log {
			assert.NotContains(t, string(r.Data), "never saved")
		}
	}
	h = checkOpened(t, s, "k", opts, h)
	assert.Equal(t, want, archiveOf(t, h))

	// Pruned, what is not in the view any more is a placeholder.
	require.NoError(t, h.Prune(t.Context(), noTime))
	assert.Len(t, s.log("k"), 1)
	assert.Equal(t, []string{"gone [{1 4} {9 13}]", want[5], want[6], want[7], want[8], want[14], want[9]}, archiveOf(t, h))
	assert.Equal(t, []string{"gone [{4 4}]", want[5]}, archiveOf(t, h, convo.Range{First: 4, Last: 5}))
	checkOpened(t, s, "k", opts, h)
}

// A result that was cut when it was appended, and a result that was cleared after a Save,
// are in the archive once, whole.
func TestArchive_EachOnce(t *testing.T) {
	s := new(shelf)
	opts := bare()
	opts.MaxResult = 64
	h := open(t, s, "k", opts)
	c := callOf("c")
	long := strings.Repeat("long ", 40)
	mustAppend(t, h, convo.User("1"), convo.Assistant("", c), convo.Result(c, long), convo.Assistant("2"), convo.User("3"))
	save(t, h)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err)
	save(t, h)
	archive := archiveOf(t, h)
	assert.Len(t, archive, 5)
	assert.Equal(t, "3: "+printMessage(convo.Result(c, long)), archive[2])
}

// What an edit was told to forget before a Save wrote it is in no record.
func TestArchive_Forget(t *testing.T) {
	s := new(shelf)
	opts := bare()
	opts.MaxResult = 64
	h := open(t, s, "k", opts)
	c, d := callOf("c"), callOf("d")
	secret := strings.Repeat("secret ", 30)
	mustAppend(t, h, convo.User("1"), convo.Assistant("", c), convo.Result(c, secret), convo.Assistant("2"))
	mustAppend(t, h, convo.User("3"), convo.Assistant("", d), convo.Result(d, "short secret"), convo.Assistant("4"), convo.User("5"))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3, Forget: true}, {ID: 7, Forget: true}}})
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}})
	require.NoError(t, err)
	save(t, h)
	assert.NotContains(t, string(s.log("k")[0].Data), "secret")
	assert.Len(t, archiveOf(t, h), 9)
}

// Of a summary that is undone or rolled back before a Save, nothing is written.
func TestArchive_UndoneSummaries(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	for i := range 10 {
		mustAppend(t, h, turnsOf(i, "m"+itoa(i)))
	}
	save(t, h)
	splice := func(n int, text string) convo.Report {
		at := h.Snapshot()
		e, _ := at.At(n)
		r, err := h.Apply(at, convo.Edit{Drop: []convo.ID{e.ID}, Summary: &convo.Summary{Text: text}})
		require.NoError(t, err)
		return r
	}
	splice(0, "first")
	at := h.Snapshot()
	splice(0, "second")
	mustAppend(t, h, convo.User("new"))
	splice(0, "third")
	require.NoError(t, h.Undo(splice(0, "fourth")))
	_ = at
	save(t, h)
	data := string(s.log("k")[1].Data)
	assert.Contains(t, data, "first")
	assert.Contains(t, data, "second")
	assert.Contains(t, data, "third")
	assert.NotContains(t, data, "fourth")
	archive := archiveOf(t, h)
	assert.Equal(t, []string{"summary first of [{1 1}]", "summary second of [{1 2}]", "11: " + printMessage(convo.User("new")), "summary third of [{1 3}]"}, archive[10:])
}

func TestPrune_BeforeATime(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	for i := range 4 {
		mustAppend(t, h, turnsOf(i, "m"+itoa(i)))
		save(t, h)
	}
	require.NoError(t, h.Prune(t.Context(), time.Now().Add(time.Hour)))
	assert.Len(t, s.log("k"), 4, "opening needs them all")
	log := s.logs["k"]
	require.NoError(t, h.Prune(t.Context(), noTime))
	full := s.logs["k"][0]
	s.logs["k"] = append(log, full)
	require.NoError(t, h.Prune(t.Context(), log[0].Updated))
	assert.Len(t, s.log("k"), 5, "none is older than the first")
	require.NoError(t, h.Prune(t.Context(), log[3].Updated))
	assert.Len(t, s.log("k"), 5, "the fourth is not older")
	require.NoError(t, h.Prune(t.Context(), log[3].Updated.Add(1)))
	assert.Len(t, s.log("k"), 1)
	checkOpened(t, s, "k", nil, h)
}

// The copy of a log that was pruned tells what is gone, as the log itself does.
func TestArchive_CopyOfAPrunedLog(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	for i := range 6 {
		mustAppend(t, h, turnsOf(i, "m"+itoa(i)))
		save(t, h)
	}
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2, 3}})
	require.NoError(t, err)
	require.NoError(t, logs.Copy(t.Context(), s, "whole", s, "k"))
	assert.Equal(t, archiveOf(t, h), archiveOf(t, open(t, s, "whole", nil)), "nothing is gone")
	require.NoError(t, h.Prune(t.Context(), noTime))
	require.NoError(t, logs.Copy(t.Context(), s, "copy", s, "k"))
	copied := checkOpened(t, s, "copy", nil, h)
	want := archiveOf(t, h)
	assert.Equal(t, "gone [{1 3}]", want[0])
	assert.Equal(t, want, archiveOf(t, copied))
	ids := convo.Range{First: 2, Last: 4}
	assert.Equal(t, []string{"gone [{2 3}]", want[1]}, archiveOf(t, copied, ids))

	// A copy of the copy, which has gone on, does too.
	mustAppend(t, copied, convo.User("behind the copy"), convo.Assistant("yes"))
	save(t, copied)
	require.NoError(t, logs.Copy(t.Context(), s, "again", s, "copy"))
	assert.Equal(t, archiveOf(t, copied), archiveOf(t, open(t, s, "again", nil)))
}

// A bulkStore yields a long log without holding it in memory.
type bulkStore struct {
	convo.Store
	first, patch convo.Record
	records      int
}

func (b *bulkStore) Records(context.Context, string, uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		if !yield(b.first, nil) {
			return
		}
		prev, id := b.first, int64(b.first.Upto)
		for i := range b.records {
			var data strings.Builder
			fmt.Fprintf(&data, `{"last":%d,"past":[`, id+1000)
			for k := range 1000 {
				id++
				if k > 0 {
					data.WriteByte(',')
				}
				fmt.Fprintf(&data, `{"id":%d,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"message %d"}]}}`, id, id)
			}
			data.WriteString("]}")
			r := b.patch
			r.Seq, r.Prev, r.Upto, r.Data = prev.Seq+1, prev.ID, convo.ID(id), []byte(data.String())
			r.ID = fmt.Sprintf("%026d", i)
			if !yield(r, nil) {
				return
			}
			prev = r
		}
	}
}

// Archive holds one record in memory, however long the conversation is.
func TestArchive_HeapBound(t *testing.T) {
	records := long.Or(50, 1000) // of 1,000 messages each
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	first := s.log("k")[0]
	patch := first
	patch.Full = false
	h = open(t, &bulkStore{first: first, patch: patch}, "k", nil)
	bulk := &bulkStore{first: first, patch: patch, records: records}
	h2, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	require.NoError(t, h2.Attach(t.Context(), new(shelf), "k"))
	h2 = attachedTo(t, h2, bulk)

	n := 0
	var most uint64
	for x, err := range h2.Archive(t.Context()) {
		require.NoError(t, err)
		if x.Entry == nil {
			continue
		}
		if n++; n%100_000 == 0 || n == 40_000 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	assert.Equal(t, records*1000+1, n)
	assert.Less(t, most, uint64(64<<20))
}

// attachedTo returns h, saved from now on in another store.
func attachedTo(t *testing.T, h *convo.History, s convo.Store) *convo.History {
	t.Helper()
	convo.SetStore(h, s)
	return h
}

// A Store that panics, or calls back, does no harm.
func TestSave_HostileStore(t *testing.T) {
	s := &nasty{shelf: new(shelf)}
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	s.panics = true
	var panicked *convo.PanicError
	assert.ErrorAs(t, h.Save(t.Context()), &panicked)
	_, err := convo.Open(t.Context(), s, "k", nil)
	assert.ErrorAs(t, err, &panicked)
	_, _, err = h.Reload(t.Context())
	assert.ErrorAs(t, err, &panicked)
	s.panics = false
	s.inside = func(ctx context.Context) {
		assert.ErrorIs(t, h.Save(ctx), convo.ErrReentrant)
		mustAppend(t, h, convo.Assistant("hi"))
	}
	require.NoError(t, h.Save(t.Context()))
	s.inside = nil
	assert.Equal(t, 1, open(t, s, "k", nil).Len(), "what is appended during a Save is not saved yet")
	assert.NotZero(t, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)

	errStore := errors.New("no disk")
	s.fails = errStore
	_, err = convo.Open(t.Context(), s, "k", nil)
	assert.ErrorIs(t, err, errStore)
	for _, err := range h.Archive(t.Context()) {
		assert.ErrorIs(t, err, errStore)
	}
}

type nasty struct {
	*shelf
	panics bool
	fails  error
	inside func(context.Context)
}

func (s *nasty) Append(ctx context.Context, r convo.Record) error {
	if s.panics {
		panic("no")
	}
	if s.inside != nil {
		s.inside(ctx)
	}
	return s.shelf.Append(ctx, r)
}

func (s *nasty) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		switch {
		case s.panics:
			panic("no")
		case s.fails != nil:
			yield(convo.Record{}, s.fails)
		default:
			s.shelf.Records(ctx, key, from)(yield)
		}
	}
}

// An outpacedStore lets others do something before each Prune.
type outpacedStore struct {
	convo.Store
	before func()
}

func (s *outpacedStore) Prune(ctx context.Context, key string, before uint64) error {
	s.before()
	return s.Store.(convo.Pruner).Prune(ctx, key, before)
}

// Of two Prunes at once, the slower one finds removed what it was to remove.
func TestPrune_OutpacedByOthers(t *testing.T) {
	ctx := t.Context()
	for name, inner := range map[string]convo.Store{
		"memory": new(convotest.MemStore), "files": &filestore.Store{Dir: t.TempDir(), NoSync: true}, "shelf": new(shelf),
	} {
		for _, since := range []bool{false, true} { // what is pruned: at the zero time, or before a later one
			begin := func(key string) (slow *convo.History, s *outpacedStore, at time.Time) {
				s = &outpacedStore{inner, func() {}}
				slow = open(t, s, key, nil)
				for i := range 3 {
					mustAppend(t, slow, turnsOf(i, "m"+itoa(i)))
					save(t, slow)
				}
				if since { // a full record to keep
					require.NoError(t, slow.Prune(ctx, noTime))
					mustAppend(t, slow, turnsOf(3, "m3"))
					save(t, slow)
					log := recordsOf(t, inner, key)
					full := log[0]
					full.ID, full.Prev, full.Seq = strings.Repeat("f", 26), log[1].ID, log[1].Seq+1
					require.NoError(t, inner.Append(ctx, full))
					at = full.Updated.Add(time.Hour)
				}
				return slow, s, at
			}
			t.Run(fmt.Sprint(name, since), func(t *testing.T) {
				slow, s, at := begin("pruned" + fmt.Sprint(since))
				s.before = func() {
					s.before = func() {}
					fast := open(t, inner, "pruned"+fmt.Sprint(since), nil)
					sayNext(t, fast, "m4")
					require.NoError(t, fast.Prune(ctx, noTime))
				}
				require.NoError(t, slow.Prune(ctx, at), "by another Prune")
				require.Len(t, recordsOf(t, inner, "pruned"+fmt.Sprint(since)), 1)

				slow, s, at = begin("deleted" + fmt.Sprint(since))
				s.before = func() { require.NoError(t, inner.Delete(ctx, "deleted"+fmt.Sprint(since))) }
				require.NoError(t, slow.Prune(ctx, at), "by a Delete")

				key := "replaced" + fmt.Sprint(since)
				slow, s, at = begin(key)
				s.before = func() {
					require.NoError(t, inner.Delete(ctx, key))
					other := open(t, inner, key, nil)
					mustAppend(t, other, convo.User("another"))
					save(t, other)
				}
				err := slow.Prune(ctx, at)
				require.ErrorAs(t, err, new(*convo.ConflictError))
				require.EqualError(t, err, fmt.Sprintf("convo: prune %q: the log was deleted, and another was begun; Open that", key))
				require.Len(t, recordsOf(t, inner, key), 1)
			})
		}
	}
}

// What an edit took for good is in the archive, also next to what another one took and
// Undo has brought back.
func TestArchive_NextToAnUndo(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"), convo.User("5"), convo.Assistant("6"))
	require.NoError(t, h.Undo(apply(t, h, convo.Edit{Drop: []convo.ID{2}})))
	apply(t, h, convo.Edit{Drop: []convo.ID{4}})
	save(t, h)
	assert.Equal(t, []convo.ID{1, 2, 3, 5, 6}, idsOf(h.Snapshot()))
	lines := archiveOf(t, h)
	require.Len(t, lines, 6)
	assert.Equal(t, "4: "+printMessage(convo.Assistant("4")), lines[3])
}

// sayNext appends what the next one who has a turn says.
func sayNext(t testing.TB, h *convo.History, text string) {
	t.Helper()
	s := h.Snapshot()
	if last, ok := s.At(s.Len() - 1); ok && last.Message.Role == convo.RoleUser {
		mustAppend(t, h, convo.Assistant(text))
		return
	}
	mustAppend(t, h, convo.User(text))
}

// A spoiledStore yields damage in the place of some records.
type spoiledStore struct {
	*shelf
	bad map[uint64]bool
}

func (s *spoiledStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	return func(yield func(convo.Record, error) bool) {
		for r, err := range s.shelf.Records(ctx, key, from) {
			if err == nil && s.bad[r.Seq] {
				r, err = convo.Record{}, &convo.DamageError{Key: key, Offset: -1, Seq: r.Seq - 1, Err: errors.New("spoiled")}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// Of a damaged log, the pages together show the entries that Archive yields, each once
// and in order, and Archive names each ID that is lost once.
func TestArchive_DamagedPages(t *testing.T) {
	late := 0
	for seed := range uint64(long.Or(25, 300)) {
		rng := rand.New(rand.NewPCG(seed, 9))
		s := &spoiledStore{shelf: new(shelf), bad: map[uint64]bool{}}
		h := open(t, s, "k", &convo.Options{Roles: convo.Relaxed()})
		n := 3 + rng.IntN(25)
		for i := range n {
			for range 1 + rng.IntN(3) {
				mustAppend(t, h, convo.User("q"+itoa(i)))
			}
			if rng.IntN(3) == 0 {
				_, err := h.SplicePrefix(h.Snapshot(), 1+rng.IntN(4), "so far")
				require.NoError(t, err)
			}
			if rng.IntN(4) == 0 {
				require.NoError(t, h.SaveFull(t.Context()))
			} else {
				save(t, h)
			}
		}
		for range 1 + rng.IntN(5) {
			s.bad[uint64(1+rng.IntN(n))] = true
		}
		var want []convo.ID
		gone := map[convo.ID]bool{}
		for x, err := range h.Archive(t.Context()) {
			if err != nil {
				require.ErrorAs(t, err, new(*convo.DamageError))
				continue
			}
			if x.Entry != nil {
				if len(want) > 0 && x.Entry.ID < want[len(want)-1] {
					late++
				}
				want = append(want, x.Entry.ID)
			}
			for _, r := range x.Gone {
				for id := r.First; id <= r.Last; id++ {
					require.False(t, gone[id], "seed %d: %d is gone twice", seed, id)
					gone[id] = true
				}
			}
		}
		slices.Sort(want)
		require.Equal(t, want, slices.Compact(slices.Clone(want)), "seed %d", seed)
	}
	assert.Positive(t, late, "a later record held entries of a damaged one")
}

// Lost IDs are in Gone once, however often a record after them shows that some are lost.
func TestArchive_GoneOnce(t *testing.T) {
	s := &spoiledStore{shelf: new(shelf), bad: map[uint64]bool{2: true, 6: true}}
	h := open(t, s, "k", nil)
	for i := range 8 {
		mustAppend(t, h, convo.User("q"+itoa(i)), convo.Assistant("a"+itoa(i)))
		if i == 2 { // what record 2 held is in no later record
			_, err := h.SplicePrefix(h.Snapshot(), 4, "summary")
			require.NoError(t, err)
		}
		if i == 3 || i == 6 {
			require.NoError(t, h.SaveFull(t.Context()))
		} else {
			save(t, h)
		}
	}
	var gone []convo.Range
	for x, err := range h.Archive(t.Context()) {
		if err == nil {
			gone = append(gone, x.Gone...)
		}
	}
	assert.Equal(t, []convo.Range{{First: 3, Last: 4}}, gone)
}
