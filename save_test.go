package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
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
	"github.com/seed-c1b73e60/convo/wire"
)

// open opens a History, which must succeed.
func open(t testing.TB, s convo.Store, key string, opts *convo.Options) *convo.History {
	t.Helper()
	h, err := convo.Open(context.Background(), s, key, opts)
	require.NoError(t, err)
	return h
}

func save(t testing.TB, h *convo.History) {
	t.Helper()
	require.NoError(t, h.Save(context.Background()))
	require.Zero(t, h.Status().Unsaved)
}

// savedStateOf returns all of a History that a log holds, as a text to compare.
func savedStateOf(t testing.TB, h *convo.History) string {
	t.Helper()
	st := h.Status()
	st.Unsaved, st.Originals, st.LastAppend = 0, 0, time.Time{} // the last two do not come back, or may not
	st.Decisions = 0                                            // of this History alone
	st.LastEdit = st.LastEdit.UTC()
	return fmt.Sprintf("%s\n%#v\n%+v", pictureOf(t, h.Snapshot()), st, h.Tokens())
}

// checkOpened checks that a History opens as it was saved.
func checkOpened(t testing.TB, s convo.Store, key string, opts *convo.Options, h *convo.History) *convo.History {
	t.Helper()
	g := open(t, s, key, opts)
	require.Equal(t, savedStateOf(t, h), savedStateOf(t, g))
	require.Zero(t, g.Status().Unsaved)
	return g
}

func TestSave_ComesBack(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "42", bare())
	assert.Zero(t, h.Status().Unsaved)
	save(t, h)
	assert.Empty(t, s.log("42"), "an empty History of an unused key writes nothing")

	steps := []func(){
		func() { mustAppend(t, h, convo.System("guide"), convo.User("where to")) },
		func() { mustAppend(t, h, convo.Assistant("", callOf("c1"), callOf("c2"))) },
		func() { mustAppend(t, h, convo.Result(callOf("c2"), "road")) },
		func() { require.NoError(t, h.Queue(convo.User("wait"), convo.User("for me"))) },
		func() { mustAppend(t, h, convo.Result(callOf("c1"), strings.Repeat("long ", 100))) },
		func() { mustAppend(t, h, convo.Assistant("there")) },
		func() { require.NoError(t, h.Pin(2)) },
		func() { require.NoError(t, h.SetModel("large", convo.Limits{Window: 5000, Tools: 7})) },
		func() { require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 900})) },
		func() { mustAppend(t, h, convo.User("more"), convo.Assistant("less")) },
		func() {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 5}}})
			require.NoError(t, err)
		},
		func() {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4, 5}, Summary: &convo.Summary{Text: "all", Usage: convo.Usage{Input: 7, Output: 1}}})
			require.NoError(t, err)
		},
		func() { require.NoError(t, h.Unpin(2)) },
		func() { require.NoError(t, h.SetSystem(convo.System("other"))) },
		func() { require.NoError(t, h.SetModel("small", convo.Limits{})) },
		func() { require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 800})) },
		func() { mustAppend(t, h, convo.User("and"), convo.Assistant("on")) },
		func() { require.NoError(t, h.SetModel("large", convo.Limits{})) },
		func() {
			_, err := h.Rewind(1)
			require.NoError(t, err)
		},
		func() {
			require.NoError(t, h.SetEphemeral(convo.User("it rains")))
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 700}))
			require.NoError(t, h.SetEphemeral())
		},
		func() { require.NoError(t, h.SetSystem()) },
		func() { require.NoError(t, h.SetMeta("a trip", "")) },
		func() { require.NoError(t, h.SetMeta("a trip", "7")) },
		func() { require.NoError(t, h.SetMeta("", "7")) },
	}
	for i, step := range steps {
		step()
		save(t, h)
		g := checkOpened(t, s, "42", bare(), h)
		if i%3 == 0 {
			h = g // go on with the one that was opened
		}
	}
	key, seq := h.Saved()
	assert.Equal(t, "42", key)
	log := s.log("42")
	assert.Equal(t, log[len(log)-1].Seq, seq)
	for i, r := range log {
		assert.Equal(t, uint64(i+1), r.Seq)
		assert.Equal(t, log[0].Created, r.Created)
		assert.Equal(t, time.UTC, r.Updated.Location())
		assert.Equal(t, 1, r.Format)
	}
	sum, ok := h.Snapshot().Summary()
	assert.True(t, ok)
	assert.Equal(t, convo.Usage{Input: 7, Output: 1}, sum.Usage)
}

func TestSave_NothingNewDoesNothing(t *testing.T) {
	s := new(shelf)
	h := tour(t, nil)
	require.NoError(t, h.Attach(t.Context(), s, "k"))
	assert.NotZero(t, h.Status().Unsaved)
	save(t, h)
	before, ctx := s.appends+s.reads, t.Context()
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = h.Save(ctx) }))
	assert.Equal(t, before, s.appends+s.reads)
}

// What is saved at the end of a turn does not depend on how long the conversation is.
func TestSave_CostsWhatIsNew(t *testing.T) {
	var sizes []int
	for _, turns := range []int{10, 2000} {
		s := new(shelf)
		h := chatOf(t, nil, turns, 100)
		require.NoError(t, h.Attach(t.Context(), s, "k"))
		save(t, h)
		mustAppend(t, h, convo.Assistant("an answer"))
		allocs, _ := measureAllocs(1, func() { save(t, h) })
		log := s.log("k")
		assert.False(t, log[1].Full)
		sizes = append(sizes, len(log[1].Data))
		assert.Less(t, allocs, 300.)
	}
	assert.InDelta(t, sizes[0], sizes[1], 20)
}

// What a Save costs does not depend on how much was once unsaved.
func TestSave_AfterALongUnsavedLife(t *testing.T) {
	s := new(shelf)
	h := chatOf(t, &convo.Options{Strategy: convo.Truncate{}, Limits: convo.Limits{Window: 300_000}}, 10, 100)
	require.NoError(t, h.Attach(t.Context(), s, "k"))
	for range 4000 {
		mustAppend(t, h, convo.Assistant("an answer"), convo.User("a question"))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	for _, text := range []string{"one more", "and one more"} { // the first Save writes all, the second what has left
		save(t, h)
		mustAppend(t, h, convo.Assistant(text), convo.User("a question"))
	}
	_, bytes := measureAllocs(1, func() { save(t, h) })
	assert.Less(t, bytes, 50_000.)
}

func TestAttach_UsedKeyIsAConflict(t *testing.T) {
	s := new(shelf)
	h := tour(t, nil)
	require.NoError(t, h.Attach(t.Context(), s, "k"))
	save(t, h)
	other := tour(t, nil)
	err := other.Attach(t.Context(), s, "k")
	conflict, ok := errors.AsType[*convo.ConflictError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, uint64(1), conflict.Have)
	assert.ErrorIs(t, other.Save(t.Context()), convo.ErrNoStore)

	// Both attach before either saves: the first to save has the key.
	a, b := tour(t, nil), tour(t, nil)
	require.NoError(t, a.Attach(t.Context(), s, "new"))
	require.NoError(t, b.Attach(t.Context(), s, "new"))
	save(t, a)
	assert.ErrorAs(t, b.Save(t.Context()), &conflict)
	assert.Len(t, s.log("new"), 1)
}

func TestSave_BadInput(t *testing.T) {
	ctx := t.Context()
	var zero convo.History
	assert.ErrorIs(t, zero.Save(ctx), convo.ErrClosed)
	assert.ErrorIs(t, zero.Attach(ctx, new(shelf), "k"), convo.ErrClosed)
	assert.ErrorIs(t, zero.Prune(ctx, time.Time{}), convo.ErrClosed)
	assert.ErrorIs(t, zero.Note("x"), convo.ErrClosed)
	_, _, err := zero.Reload(ctx)
	assert.ErrorIs(t, err, convo.ErrClosed)
	h := tour(t, nil)
	assert.ErrorIs(t, h.Save(ctx), convo.ErrNoStore)
	assert.ErrorIs(t, h.Prune(ctx, time.Time{}), convo.ErrNoStore)
	assert.ErrorIs(t, h.Note("x"), convo.ErrNoStore)
	_, _, err = h.Reload(ctx)
	assert.ErrorIs(t, err, convo.ErrNoStore)
	for _, err := range h.Archive(ctx) {
		assert.ErrorIs(t, err, convo.ErrNoStore)
	}
	var value *convo.ValueError
	for _, key := range []string{"", strings.Repeat("k", 4097)} {
		assert.ErrorAs(t, h.Attach(ctx, new(shelf), key), &value)
		_, err := convo.Open(ctx, new(shelf), key, nil)
		assert.ErrorAs(t, err, &value)
		_, err = convo.Load(ctx, new(shelf), key, 0)
		assert.ErrorAs(t, err, &value)
	}
	assert.ErrorAs(t, h.Attach(ctx, nil, "k"), &value)
	_, err = convo.Open(ctx, nil, "k", nil)
	assert.ErrorAs(t, err, &value)
	_, err = convo.Open(ctx, new(shelf), "k", &convo.Options{MaxResult: 1})
	assert.ErrorAs(t, err, &value)
	require.NoError(t, h.Attach(ctx, struct{ convo.Store }{new(shelf)}, "k"))
	assert.ErrorIs(t, h.Prune(ctx, time.Time{}), errors.ErrUnsupported)
	assert.ErrorAs(t, h.Note(""), &value)
	_, err = convo.Load(ctx, new(shelf), "k", 0)
	assert.ErrorIs(t, err, convo.ErrNotFound)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, h.Save(ended), context.Canceled)
}

func TestSave_WorksAfterClose(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	require.NoError(t, h.Close())
	save(t, h)
	assert.Equal(t, 1, open(t, s, "k", nil).Len())
}

func TestSave_Conflict(t *testing.T) {
	s := new(shelf)
	a := open(t, s, "k", nil)
	mustAppend(t, a, convo.User("hello"))
	save(t, a)
	b := open(t, s, "k", nil)
	mustAppend(t, a, convo.Assistant("A"))
	mustAppend(t, b, convo.Assistant("B"))
	save(t, a)
	err := b.Save(t.Context())
	conflict, ok := errors.AsType[*convo.ConflictError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, &convo.ConflictError{Key: "k", Have: 2, Want: 2, ID: s.log("k")[1].ID}, conflict)
	assert.Len(t, s.log("k"), 2)
	require.NoError(t, s.Delete(t.Context(), "k"))
	mustAppend(t, a, convo.User("and then"))
	require.ErrorAs(t, a.Save(t.Context()), &conflict)
	assert.Zero(t, conflict.Have)
	assert.Empty(t, s.log("k"), "no Save recreates a deleted log")
	_, _, err = a.Reload(t.Context())
	assert.ErrorIs(t, err, convo.ErrNotFound)
	require.NoError(t, a.Attach(t.Context(), s, "k"))
	save(t, a)
	checkOpened(t, s, "k", nil, a)
}

// However long a conversation goes on, opening it reads at most about three times
// what it must.
func TestSave_FullRecords(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", &convo.Options{Limits: convo.Limits{Window: 4000}})
	fulls := 0
	for i := range 600 {
		mustAppend(t, h, turnsOf(i, strings.Repeat("word and ", 30)))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		save(t, h)
		log := s.log("k")
		read, last := 0, 0
		for j, r := range slices.Backward(log) {
			if read += len(r.Data); r.Full {
				last = j
				break
			}
		}
		if last == len(log)-1 {
			fulls++
		}
		if i%20 == 19 {
			whole := new(shelf)
			g, err := convo.Restore(h.Snapshot(), nil)
			require.NoError(t, err)
			require.NoError(t, g.Attach(t.Context(), whole, "k"))
			save(t, g)
			assert.LessOrEqual(t, read, 4*len(whole.log("k")[0].Data), "after %d messages", i+1)
		}
	}
	assert.Less(t, fulls, 60)
	checkOpened(t, s, "k", &convo.Options{Limits: convo.Limits{Window: 4000}}, h)

	// What only grows needs one full record.
	h = open(t, s, "growing", nil)
	for i := range 400 {
		mustAppend(t, h, turnsOf(i, strings.Repeat("word and ", 30)))
		save(t, h)
	}
	fulls, size := 0, 0
	for _, r := range s.log("growing") {
		if size += len(r.Data); r.Full {
			fulls++
		}
	}
	assert.LessOrEqual(t, fulls, 2)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.Less(t, size, 2*len(data))
}

// The file of a log that is saved after each turn is at most twice as long as the JSON
// of all messages that it holds, whether they only come in or are compacted too.
func TestSave_LogAtMostTwiceTheMessages(t *testing.T) {
	say := strings.Repeat("The quick brown fox jumps over the \"lazy\" dog. ", 9)[:400]
	for name, limits := range map[string]convo.Limits{"grows": {}, "compacted": {Window: 8000}, "compacted often": {Window: 2000}} {
		t.Run(name, func(t *testing.T) {
			s := &filestore.Store{Dir: t.TempDir(), NoSync: true}
			summarizer := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				return convo.Summary{Text: "It was about a fox and a dog, and the files that were read."}, nil
			})
			h := open(t, s, "k", &convo.Options{Limits: limits, Strategy: convo.Summarize{With: summarizer, Window: -1}})
			messages, compactions := 0, 0
			for i := range long.Or(300, 1000) {
				call := convo.ToolCall{ID: "c" + itoa(i), Name: "read", Arguments: `{"path":"main.go"}`}
				turn := []convo.Message{convo.User(say), convo.Assistant("", call), convo.Result(call, say), convo.Assistant(say)}
				for _, m := range turn {
					data, err := json.Marshal(m)
					require.NoError(t, err)
					messages += len(data)
				}
				mustAppend(t, h, turn...)
				r, err := reportOf(h.Prepare(t.Context()))
				require.NoError(t, err)
				if r.Outcome == convo.OutcomeApplied {
					compactions++
				}
				save(t, h)
			}
			files, err := os.ReadDir(s.Dir)
			require.NoError(t, err)
			require.Len(t, files, 1)
			info, err := files[0].Info()
			require.NoError(t, err)
			t.Logf("%d compactions, %.2f times the messages", compactions, float64(info.Size())/float64(messages))
			assert.LessOrEqual(t, info.Size(), int64(2*messages))
			assert.Equal(t, limits.Window > 0, compactions > 0)
		})
	}
}

func TestOpen_Versions(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	s.logs["k"][0].Format = 2
	s.logs["k"][0].Data = []byte("something else")
	_, err := convo.Open(t.Context(), s, "k", nil)
	assert.ErrorIs(t, err, convo.ErrVersion)
	for _, err := range h.Archive(t.Context()) {
		assert.ErrorIs(t, err, convo.ErrVersion)
	}
}

func TestOpen_WhatIsSettledIsUnsaved(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"), convo.Assistant("", callOf("c1")))
	save(t, h)
	for _, settle := range []func(*convo.History) (int, error){
		func(h *convo.History) (int, error) { return h.AnswerOpenCalls("") },
		func(h *convo.History) (int, error) { return h.Rewind(1) },
	} {
		g := open(t, s, "k", nil)
		_, err := settle(g)
		require.NoError(t, err)
		assert.NotZero(t, g.Status().Unsaved)
		assert.Zero(t, g.Status().OpenCalls)
		assert.Len(t, s.log("k"), 1)
		save(t, g)
		checkOpened(t, s, "k", nil, g)
		s.logs["k"] = s.logs["k"][:1]
	}
}

// A Seq may be any number, as from the address of a page.
func TestLoad_LargestSeq(t *testing.T) {
	store := &shelf{}
	h, err := convo.Open(t.Context(), store, "k", nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("Hello."))
	require.NoError(t, err)
	require.NoError(t, h.Save(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, seq := range []uint64{2, 1<<62 + 1, math.MaxUint64} {
		_, err = convo.Load(ctx, store, "k", seq)
		assert.ErrorIs(t, err, convo.ErrNotFound, "record %d", seq)
	}
}

func TestLoad_AndRollback(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", bare())
	var want []string
	for i := range 12 {
		mustAppend(t, h, turnsOf(i, "message "+itoa(i)))
		if i == 8 {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "sum"}})
			require.NoError(t, err)
		}
		save(t, h)
		want = append(want, fmt.Sprint(textsOf(h.Snapshot())))
	}
	for i, want := range want {
		at, err := convo.Load(t.Context(), s, "k", uint64(i+1))
		require.NoError(t, err)
		assert.Equal(t, unkeyed(want), unkeyed(fmt.Sprint(textsOf(at))))
	}
	_, err := convo.Load(t.Context(), s, "k", 13)
	assert.ErrorIs(t, err, convo.ErrNotFound)

	early, err := convo.Load(t.Context(), s, "k", 6)
	require.NoError(t, err)
	last := mustAppend(t, h, convo.User("unsaved"))
	require.NoError(t, h.Rollback(early))
	assert.Equal(t, unkeyed(want[5]), unkeyed(fmt.Sprint(textsOf(h.Snapshot()))))
	assert.Equal(t, last+1, mustAppend(t, h, convo.User("again")))
	save(t, h)
	h = checkOpened(t, s, "k", bare(), h)

	newest, err := convo.Load(t.Context(), s, "k", 0)
	require.NoError(t, err)
	require.NoError(t, h.Rollback(newest))
	late := open(t, s, "k", bare())
	mustAppend(t, late, convo.Assistant("more"))
	save(t, late)
	newer, err := convo.Load(t.Context(), s, "k", 0)
	require.NoError(t, err)
	assert.ErrorIs(t, h.Rollback(newer), convo.ErrStale)
	other := tour(t, nil)
	assert.ErrorIs(t, other.Rollback(early), convo.ErrStale)
}

// unkeyed returns a text without the keys of tags.
func unkeyed(s string) string { return strings.Join(strings.Split(s, "\""), "") }

// The errors say what to do about them, whichever method returns them.
func TestSave_ErrorsSayWhatToDo(t *testing.T) {
	ctx, s := t.Context(), new(convotest.MemStore)
	h, err := convo.Open(ctx, s, "k", nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("question"), convo.Assistant("answer"))
	require.NoError(t, h.Save(ctx))
	mustAppend(t, h, convo.User("question"))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	const nothing = "convo: nothing was done: context canceled"
	assert.EqualError(t, h.Save(ended), nothing)
	assert.EqualError(t, h.Prune(ended, time.Now()), nothing)
	assert.EqualError(t, h.Attach(ended, s, "other"), nothing)
	_, _, err = h.Reload(ended)
	assert.EqualError(t, err, nothing)

	require.NoError(t, s.Delete(ctx, "k"))
	assert.EqualError(t, h.Save(ctx), `convo: save "k" as record 2: the log was deleted; call Attach to begin a new one`)
	_, _, err = h.Reload(ctx)
	assert.EqualError(t, err, `convo: not found: the log of "k" was deleted; call Attach to begin a new one`)
	require.NoError(t, h.Attach(ctx, s, "k"))
	require.NoError(t, h.Save(ctx))
}

// A message that was appended and dropped is in a record of its own if Save comes before
// Prune, and in the one that Prune keeps if it does not.
func TestPrune_SaveFirstLeavesNothing(t *testing.T) {
	for _, saved := range []bool{true, false} {
		ctx, s := t.Context(), new(convotest.MemStore)
		h, err := convo.Open(ctx, s, "k", nil)
		require.NoError(t, err)
		mustAppend(t, h, convo.User("my password is hunter2"), convo.Assistant("noted"), convo.User("question"), convo.Assistant("answer"))
		_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}})
		require.NoError(t, err)
		if saved {
			require.NoError(t, h.Save(ctx))
		}
		require.NoError(t, h.Prune(ctx, time.Time{}))
		var data strings.Builder
		for r, err := range s.Records(ctx, "k", 1) {
			require.NoError(t, err)
			data.WriteString(string(r.Data))
		}
		assert.Equal(t, !saved, strings.Contains(data.String(), "hunter2"))
	}
}

// A snapshot of a copy of the log, which went on without the History, is not one of it,
// whether its record is among the newest or an older one.
func TestRollback_LoadedFromACopy(t *testing.T) {
	ctx := t.Context()
	var a, b convotest.MemStore
	h := open(t, &a, "k", nil)
	mustAppend(t, h, convo.User("hi"), convo.Assistant("hello"))
	save(t, h)
	require.NoError(t, logs.Copy(ctx, &b, "k", &a, "k"))
	shared, err := convo.Load(ctx, &b, "k", 1)
	require.NoError(t, err)
	g := open(t, &b, "k", nil)
	mustAppend(t, g, convo.User("in b"), convo.Assistant("b's"))
	save(t, g)
	other, err := convo.Load(ctx, &b, "k", 2)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("in a"), convo.Assistant("a's"))
	save(t, h)
	for range 20 {
		unchanged(t, h, func() { require.ErrorIs(t, h.Rollback(other), convo.ErrStale) })
		mustAppend(t, h, convo.User("more"), convo.Assistant("more"))
		save(t, h)
	}
	require.NoError(t, h.Rollback(shared), "which is of both")
	assert.Equal(t, []string{"1 hi", "2 hello"}, linesOf(h))
}

// However short the records are, Open reads a bounded number of them.
func TestSave_FullRecordsByCount(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	since := func() (n int) {
		for _, r := range slices.Backward(s.log("k")) {
			if n++; r.Full {
				break
			}
		}
		return n
	}
	most := 0
	for i := range 1000 {
		mustAppend(t, h, turnsOf(i, "hm"))
		if i%300 == 299 {
			h = open(t, s, "k", nil) // a process that begins anew counts on
			mustAppend(t, h, turnsOf(i, "hm"))
		}
		save(t, h)
		most = max(most, since())
	}
	assert.LessOrEqual(t, most, 256)
	assert.Greater(t, most, 250)
	checkOpened(t, s, "k", nil, h)
}

// SaveFull writes a full record unless the newest one is one.
func TestSaveFull(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	assert.ErrorIs(t, new(convo.History).SaveFull(t.Context()), convo.ErrClosed)
	mustAppend(t, h, convo.User("one"), convo.Assistant("two"))
	save(t, h)
	require.NoError(t, h.SaveFull(t.Context()))
	assert.Len(t, s.log("k"), 1, "it is full already")
	mustAppend(t, h, convo.User("three"))
	save(t, h)
	for range 2 {
		require.NoError(t, h.SaveFull(t.Context()))
		log := s.log("k")
		require.Len(t, log, 3)
		assert.True(t, log[2].Full)
	}
	h = checkOpened(t, s, "k", nil, h)
	require.NoError(t, h.SaveFull(t.Context()))
	assert.Len(t, s.log("k"), 3, "also after Open")
	mustAppend(t, h, convo.Assistant("four"))
	require.NoError(t, h.SaveFull(t.Context()))
	assert.True(t, s.log("k")[3].Full)
	checkOpened(t, s, "k", nil, h)
}

// With the least bound, the log is what Open reads.
func TestSave_PruneAboveOne(t *testing.T) {
	s := new(shelf)
	opts := &convo.Options{Limits: convo.Limits{Window: 4000}, PruneAbove: 1}
	h := open(t, s, "k", opts)
	most := 0
	for i := range 600 {
		mustAppend(t, h, turnsOf(i, strings.Repeat("word and ", 30)))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		save(t, h)
		if i%100 == 99 {
			h = open(t, s, "k", opts)
		}
		for i, r := range s.log("k") {
			require.Equal(t, i == 0, r.Full)
		}
		most = max(most, len(s.log("k")))
	}
	assert.Less(t, most, 256)
	require.NoError(t, h.SaveFull(t.Context()))
	assert.Len(t, s.log("k"), 1)
	checkOpened(t, s, "k", opts, h)
}

// logSize returns the size of records as Options.PruneAbove counts it, and that of those from
// the newest full one on.
func logSize(log []convo.Record) (all, open int64) {
	for _, r := range log {
		n := int64(len(r.Data)) + 300
		if r.Full {
			open = 0
		}
		all, open = all+n, open+n
	}
	return all, open
}

// Save removes old records as soon as the log is longer than the bound, and not before, also
// if each turn opens the log anew. Only what Open reads may be longer than the bound.
func TestSave_PruneAbove(t *testing.T) {
	for _, bound := range []int64{0, 1, 2_000, 30_000, 100_000, 1 << 40} {
		for _, reopens := range []int{0, 1, 7} {
			t.Run(fmt.Sprintf("above %d, opened every %d", bound, reopens), func(t *testing.T) {
				s := &pruneCounter{shelf: new(shelf)}
				opts := &convo.Options{Limits: convo.Limits{Window: 3000}, PruneAbove: bound}
				h := open(t, s, "k", opts)
				removed := 0
				for i := range 400 {
					mustAppend(t, h, turnsOf(i, strings.Repeat("word and ", 20)))
					_, _, err := h.Prepare(t.Context())
					require.NoError(t, err)
					was := s.log("k")
					save(t, h)
					log := s.log("k")
					size, opens := logSize(log)
					if bound > 0 {
						require.True(t, size <= bound || size == opens, "%d bytes, and Open reads %d", size, opens)
					}
					if len(was) > 0 && log[0].ID != was[0].ID {
						removed++
						require.Equal(t, opens, size)
						before, _ := logSize(append(was, log[len(log)-1]))
						require.Greater(t, before, bound)
						require.Positive(t, bound)
					}
					if reopens > 0 && i%reopens == 0 {
						h = checkOpened(t, s, "k", opts, h)
					}
				}
				all, _ := logSize(s.log("k"))
				t.Logf("%d bytes in the end, %d times removed", all, removed)
				assert.Equal(t, bound > 0 && bound < 1<<40, removed > 0)
				assert.Equal(t, 400, s.appends, "a Save makes one call of Append")
				assert.LessOrEqual(t, s.prunes, 2*removed, "also if the History that removed the records has ended")
			})
		}
	}
}

type pruneCounter struct {
	*shelf
	prunes int
}

func (s *pruneCounter) Prune(ctx context.Context, key string, before uint64) error {
	s.prunes++
	return s.shelf.Prune(ctx, key, before)
}

// What other writers save counts, and what Prune has removed does not.
func TestSave_PruneAboveCountsWhatIsThere(t *testing.T) {
	const bound = 20_000
	for seed := range uint64(long.Or(20, 200)) {
		rng := rand.New(rand.NewPCG(seed, 53))
		s := new(shelf)
		bounded := convoRelaxed()
		bounded.PruneAbove = bound
		h, other := open(t, s, "k", bounded), open(t, s, "k", bounded)
		removed := 0
		for i := range 60 {
			g := h
			switch rng.IntN(6) {
			case 0, 1:
				g = other
			case 2:
				h = open(t, s, "k", bounded)
			case 3:
				takeOver(t, h)
				if log := s.log("k"); len(log) > 0 {
					require.NoError(t, h.Prune(t.Context(), log[rng.IntN(len(log))].Updated))
				}
			}
			takeOver(t, g)
			mustAppend(t, g, turnsOf(i, strings.Repeat("a", rng.IntN(1000))))
			if rng.IntN(8) == 0 && g.Len() > 8 {
				_, err := g.SplicePrefix(g.Snapshot(), g.Len()/2, "sum")
				require.NoError(t, err)
			}
			was := s.log("k")
			if rng.IntN(3) == 0 {
				require.NoError(t, g.SaveFull(t.Context()))
			} else {
				save(t, g)
			}
			log := s.log("k")
			all, opens := logSize(append(slices.Clip(was), log[len(log)-1]))
			if all > bound && all > opens {
				removed++
				all = opens
			}
			size, _ := logSize(log)
			require.Equal(t, all, size, "seed %d, record %d", seed, log[len(log)-1].Seq)
		}
		checkOpened(t, s, "k", bounded, open(t, s, "k", convoRelaxed()))
		assert.Positive(t, removed, "seed %d", seed)
	}
}

// What Prune cannot remove is removed after a later Save.
func TestSave_PruneAboveTriesAgain(t *testing.T) {
	var out strings.Builder
	s := &unprunable{shelf: new(shelf), fails: true}
	opts := &convo.Options{PruneAbove: 1, Logger: slog.New(slog.NewTextHandler(&out, nil))}
	h := open(t, s, "k", opts)
	mustAppend(t, h, convo.User("one"))
	save(t, h)
	mustAppend(t, h, convo.Assistant("two"))
	require.NoError(t, h.SaveFull(t.Context()))
	assert.Len(t, s.log("k"), 2)
	assert.Contains(t, out.String(), `level=WARN msg="convo: old records not removed" key=k cause="no room"`)
	s.fails = false
	mustAppend(t, h, convo.User("three"))
	save(t, h)
	log := s.log("k")
	require.Len(t, log, 2)
	assert.True(t, log[0].Full)
	assert.False(t, log[1].Full)

	// Another History also tries again, if the process ends between the two.
	s.fails = true
	require.NoError(t, h.SaveFull(t.Context()))
	assert.Len(t, s.log("k"), 3)
	s.fails = false
	h = open(t, s, "k", opts)
	save(t, h)
	assert.Len(t, s.log("k"), 3, "nothing is new")
	assert.Equal(t, 2, strings.Count(out.String(), "old records not removed"), "each Save tried once")
	mustAppend(t, h, convo.Assistant("four"))
	save(t, h)
	log = s.log("k")
	require.Len(t, log, 2)
	assert.True(t, log[0].Full)
	assert.False(t, log[1].Full)

	_, err := convo.Open(t.Context(), struct{ convo.Store }{s}, "k", opts)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	g := historyOf(t, opts)
	assert.ErrorIs(t, g.Attach(t.Context(), struct{ convo.Store }{s}, "other"), errors.ErrUnsupported)
}

type unprunable struct {
	*shelf
	fails bool
}

func (s *unprunable) Prune(ctx context.Context, key string, before uint64) error {
	if s.fails {
		return errors.New("no room")
	}
	return s.shelf.Prune(ctx, key, before)
}

// The list of a store shows the title, the times and the counts of each conversation as
// they were saved last.
func TestSave_HeadsShowTitleTimesAndCounts(t *testing.T) {
	for name, store := range map[string]convo.Store{"memory": new(convotest.MemStore), "files": &filestore.Store{Dir: t.TempDir()}} {
		began := time.Now()
		h := open(t, store, "k", nil)
		mustAppend(t, h, convo.System("s"), convo.User("hello"))
		save(t, h)
		between := time.Now()
		require.NoError(t, h.SetMeta("Rome", "7"))
		mustAppend(t, h, convo.Assistant("a"))
		save(t, h)
		var heads []convo.LogInfo
		for head, err := range store.List(t.Context(), convo.ListOptions{}) {
			require.NoError(t, err)
			heads = append(heads, head)
		}
		require.Len(t, heads, 1, name)
		got := heads[0]
		assert.WithinRange(t, got.Created, began.Add(-time.Second), between.Add(time.Second), name)
		assert.WithinRange(t, got.Updated, between.Add(-time.Second), time.Now().Add(time.Second), name)
		assert.False(t, got.Updated.Before(got.Created), name)
		got.Created, got.Updated = time.Time{}, time.Time{}
		assert.Equal(t, convo.LogInfo{Key: "k", Title: "Rome", Seq: 2, Entries: 3, Tokens: h.Tokens().Tokens}, got, name)
	}
}

// What was noted beside messages is saved and read back, and changes no request.
func TestSave_TracesAreNotReplayed(t *testing.T) {
	store := new(convotest.MemStore)
	h := open(t, store, "k", nil)
	traced := convo.User("hello")
	traced.Meta = "trace of the message"
	mustAppend(t, h, traced)
	require.NoError(t, h.Note("trace of the turn"))
	mustAppend(t, h, convo.Assistant("a"))
	save(t, h)
	again := open(t, store, "k", nil)
	e, _ := again.Snapshot().At(0)
	assert.Equal(t, "trace of the message", e.Message.Meta)
	var notes []string
	for a, err := range again.Archive(t.Context()) {
		require.NoError(t, err)
		if a.Note != "" {
			notes = append(notes, a.Note)
		}
	}
	assert.Equal(t, []string{"trace of the turn"}, notes)
	r, err := wire.OpenAIChat{}.Encode(again.Snapshot())
	require.NoError(t, err)
	assert.Equal(t, `[{"role":"user","content":"hello"},{"role":"assistant","content":"a"}]`, "["+string(bytes.Join([][]byte{r.Messages[0], r.Messages[1]}, []byte(",")))+"]")
	assert.Len(t, r.Messages, 2)
	assert.Equal(t, 2, again.Len())
}

// What cannot be written is not reported as saved.
func TestSave_CannotBeWritten(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	mustAppend(t, h, convo.Assistant("hi"))
	convo.Spoil(h)
	require.Error(t, h.Save(t.Context()))
	require.Error(t, h.SaveFull(t.Context()))
	assert.NotZero(t, h.Status().Unsaved)
	assert.Len(t, s.log("k"), 1)
}

// A nil ctx never ends. No Store is given it.
func TestStore_NilContext(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	var none context.Context
	_, err := convo.Open(none, s, "k", nil)
	require.NoError(t, err)
	_, err = convo.Load(none, s, "k", 1)
	require.NoError(t, err)
	for _, err := range h.Archive(none) {
		require.NoError(t, err)
	}
	mustAppend(t, h, convo.Assistant("hi"))
	require.NoError(t, h.Save(none))
	_, _, err = h.Reload(none)
	require.NoError(t, err)
	require.NoError(t, h.Prune(none, noTime))
}

// Each record holds all the figures, so they must stay short.
func TestSave_Bytes(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, h.SetModel("claude-opus-4-5-20251101", convo.Limits{Window: 200_000, Tools: 9_000}))
	for range 40 {
		mustAppend(t, h, convo.User(strings.Repeat("what is it ", 20)), convo.Assistant(strings.Repeat("the answer ", 800)))
		save(t, h)
	}
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}})
	require.NoError(t, err)
	save(t, h)
	record := func() string {
		save(t, h)
		return string(s.logs["k"][len(s.logs["k"])-1].Data)
	}
	require.NoError(t, h.Pin(3))
	pin := record()
	assert.Contains(t, pin, `,"edited":"`)
	assert.LessOrEqual(t, len(pin)-len(`,"pins":[3]`), 300, pin)
	require.NoError(t, h.SetMeta("A title", ""))
	assert.LessOrEqual(t, len(record())-len(`,"title":"A title"`), 300)
	mustAppend(t, h, convo.User(strings.Repeat("what is it ", 20)), convo.Assistant(strings.Repeat("the answer ", 40)))
	turn := record()
	t.Logf("a pin takes %d bytes, and a turn of 660 bytes of text %d", len(pin), len(turn))
	assert.LessOrEqual(t, len(turn), 1300)
}

// After an error a record may be in the log, or not, or come to be there. The next
// Save finds out and loses nothing.
func TestSave_InDoubt(t *testing.T) {
	for how, name := range map[fault]string{failsBefore: "before", failsAfter: "after", failsAndLands: "later"} {
		t.Run(name, func(t *testing.T) {
			s := new(shelf)
			h := open(t, s, "k", nil)
			for i := range 30 {
				mustAppend(t, h, turnsOf(i, "message "+itoa(i)))
				failing := i%3 != 2
				s.fault = func(convo.Record) fault {
					if failing {
						return how
					}
					return failsNever
				}
				err := h.Save(t.Context())
				if i%5 == 0 {
					s.land()
				}
				if failing {
					require.ErrorIs(t, err, errDisk)
					require.NotZero(t, h.Status().Unsaved)
					continue
				}
				require.NoError(t, err)
				checkOpened(t, s, "k", nil, h)
			}
		})
	}
}

// What was undone again while it was in doubt whether it was saved is not what the
// log holds in the end.
func TestSave_InDoubtAndTakenBack(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	require.NoError(t, h.Queue(convo.User("wait")))
	s.fault = func(convo.Record) fault { return failsAfter }
	require.ErrorIs(t, h.Save(t.Context()), errDisk)
	h.Unqueue()
	s.fault = nil
	assert.NotZero(t, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)
}

// Any number of failures in a row keeps a bounded number of drafts.
func TestSave_ManyDrafts(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	s.fault = func(convo.Record) fault { return failsBefore }
	for i := range 80 {
		mustAppend(t, h, turnsOf(i+1, "message"))
		require.ErrorIs(t, h.Save(t.Context()), errDisk)
	}
	assert.Equal(t, 64, convo.Drafts(h))
	s.fault = nil
	save(t, h)
	checkOpened(t, s, "k", nil, h)
}

// With eight records in doubt, a Save looks first which of them was stored. Nothing is
// sent again, so that what was forgotten or taken back since is written nowhere.
func TestSave_ManyDraftsForgotten(t *testing.T) {
	for _, tt := range []struct {
		name string
		undo func(t *testing.T, h *convo.History, at *convo.Snapshot)
	}{
		{"forgotten", func(t *testing.T, h *convo.History, _ *convo.Snapshot) {
			apply(t, h, forgetting(3, convo.Text("redacted")))
		}},
		{"rolled back", func(t *testing.T, h *convo.History, at *convo.Snapshot) { require.NoError(t, h.Rollback(at)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := new(shelf)
			h := open(t, s, "k", nil)
			mustAppend(t, h, convo.User("hello"), convo.Assistant("hi"))
			at := h.Snapshot()
			mustAppend(t, h, convo.User("hunter2"))
			s.fault = func(convo.Record) fault { return failsBefore }
			reads := s.reads
			for i := range 20 {
				require.ErrorIs(t, h.Save(t.Context()), errDisk)
				require.Equal(t, i+1, convo.Drafts(h))
				require.Equal(t, max(i-7, 0), s.reads-reads, "eight are in doubt before it looks")
			}
			tt.undo(t, h, at)
			s.fault = nil
			save(t, h)
			require.Len(t, s.log("k"), 1)
			assert.NotContains(t, string(s.log("k")[0].Data), "hunter2")
			assert.Zero(t, convo.Drafts(h))
			checkOpened(t, s, "k", nil, h)
		})
	}
}

// With eight records in doubt of which one was stored, a Save writes what is new since.
func TestSave_ManyDraftsStored(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	for i := range 8 {
		mustAppend(t, h, convo.Assistant("a"+itoa(i)), convo.User("u"+itoa(i)))
		s.fault = func(convo.Record) fault {
			if i == 3 {
				return failsAfter
			}
			return failsBefore
		}
		require.ErrorIs(t, h.Save(t.Context()), errDisk)
	}
	s.fault = nil
	save(t, h)
	require.Len(t, s.log("k"), 3)
	assert.NotContains(t, string(s.log("k")[2].Data), "a3")
	checkOpened(t, s, "k", nil, h)
}

// A Store that stores a record and calls it a conflict is believed that it is there.
func TestSave_StoredConflict(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	s.fault = func(convo.Record) fault { return conflictsAfter }
	mustAppend(t, h, convo.Assistant("hi"))
	save(t, h)
	require.Len(t, s.log("k"), 2)
	require.NoError(t, h.Prune(t.Context(), noTime))
	checkOpened(t, s, "k", nil, h)
}

// A doubter is a History whose Store fails for long, and what its archive must hold.
type doubter struct {
	t            *testing.T
	rnd          *rand.Rand
	h            *convo.History
	texts, notes []string // what was appended and not rolled back, and what was noted
	n            int

	at   *convo.Snapshot // to roll back to; nil: none
	then int             // how many texts there were
}

// change changes the History. What a Reload undoes or does not take over is changed
// only if alone is set: no other History writes.
func (d *doubter) change(alone bool) {
	t, h := d.t, d.h
	d.n++
	switch at := h.Snapshot(); d.rnd.IntN(12) {
	case 0:
		require.NoError(t, h.SetMeta(fmt.Sprint("title ", d.n), ""))
	case 1:
		d.notes = append(d.notes, fmt.Sprint("note ", d.n))
		require.NoError(t, h.Note(d.notes[len(d.notes)-1]))
	case 2:
		_, err := h.SplicePrefix(at, at.Len()/2, fmt.Sprint("summary ", d.n))
		require.NoError(t, err)
	case 3:
		if e, ok := at.At(d.rnd.IntN(max(at.Len(), 1))); ok {
			if e.Pinned {
				require.NoError(t, h.Unpin(e.ID))
			} else {
				require.NoError(t, h.Pin(e.ID))
			}
		}
	case 4:
		switch {
		case !alone:
		case d.at == nil:
			d.at, d.then = at, len(d.texts)
		default:
			require.NoError(t, h.Rollback(d.at))
			d.at, d.texts = nil, d.texts[:d.then]
		}
	case 5:
		if !alone {
			return
		}
		require.NoError(t, h.SetModel(fmt.Sprint("model ", d.n%3), convo.Limits{}))
	case 6:
		return // nothing is new
	default:
		d.append()
	}
}

func (d *doubter) append() {
	d.n++
	text := fmt.Sprintf("<%d>", d.n)
	mustAppend(d.t, d.h, convo.User(text))
	d.texts = append(d.texts, text)
}

// archived checks that the archive holds each text and each note once, in order, and
// no others, and no summary twice.
func (d *doubter) archived(where string) {
	d.t.Helper()
	var ids []convo.ID
	var texts, notes []string
	undone := map[convo.ID]bool{}
	summaries := map[string]bool{}
	for x, err := range d.h.Archive(d.t.Context()) {
		require.NoError(d.t, err)
		switch {
		case x.Entry != nil:
			ids, texts = append(ids, x.Entry.ID), append(texts, x.Entry.Message.Text())
		case x.Note != "":
			notes = append(notes, x.Note)
		case x.Summary != nil:
			require.False(d.t, summaries[x.Summary.Text], "%s: %q twice", where, x.Summary.Text)
			summaries[x.Summary.Text] = true
		}
		for _, r := range x.Undone {
			for id := r.First; id <= r.Last; id++ {
				require.False(d.t, undone[id], "%s: %d undone twice", where, id)
				undone[id] = true
			}
		}
	}
	there := texts[:0]
	for i, text := range texts {
		if !undone[ids[i]] {
			there = append(there, text)
		}
	}
	require.Equal(d.t, fmt.Sprint(d.texts), fmt.Sprint(there), where)
	require.Equal(d.t, fmt.Sprint(d.notes), fmt.Sprint(notes), where)
}

// A Store of which it is never known whether it has stored what it failed to store,
// for longer than attempts are remembered: one Save after it works again, the log
// holds the History as it is, each message once. Nobody else writes, so nothing is a
// conflict.
func TestSave_InDoubtForLong(t *testing.T) {
	for seed := range uint64(long.Or(50, 300)) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		s := &nasty{shelf: new(shelf)}
		d := &doubter{t: t, rnd: rnd, h: open(t, s, "k", convoRelaxed())}
		for stretch := range 4 {
			where := fmt.Sprintf("seed %d, stretch %d", seed, stretch)
			d.append()
			stored := rnd.IntN(4) // of how many attempts one is stored
			s.fault = func(convo.Record) fault {
				if stored > 0 && rnd.IntN(8*stored) == 0 {
					return failsAfter
				}
				return failsBefore
			}
			for range []int{1, 7, 8, 9, 16, 17, 40}[rnd.IntN(7)] {
				d.change(true)
				if rnd.IntN(6) == 0 {
					s.fails = errDisk
				}
				err := d.h.Save(t.Context())
				s.fails = nil
				if err != nil {
					require.ErrorIs(t, err, errDisk, where)
				}
				if rnd.IntN(10) == 0 {
					moved, refused := takeOver(t, d.h)
					require.Empty(t, moved, where)
					require.Empty(t, refused, where)
				}
				require.LessOrEqual(t, convo.Drafts(d.h), 64, where)
			}
			s.fault = nil
			save(t, d.h)
			g := checkOpened(t, s, "k", convoRelaxed(), d.h)
			d.archived(where)
			if rnd.IntN(3) == 0 {
				d.h, d.at = g, nil
			}
		}
		checkLog(t, s.log("k"))
	}
}

// checkLog checks that each record names the one before it, and that a full one names
// the 16 before it.
func checkLog(t *testing.T, log []convo.Record) {
	t.Helper()
	for i, r := range log {
		if i == 0 {
			continue
		}
		require.Equal(t, log[i-1].ID, r.Prev)
		require.Equal(t, log[i-1].Seq+1, r.Seq)
		if r.Full {
			for _, before := range log[max(i-16, 0):i] {
				require.Contains(t, string(r.Data), before.ID)
			}
		}
	}
}

// If it cannot be found out which record was stored, Save sends nothing and returns the
// reason.
func TestSave_CannotFindOut(t *testing.T) {
	errRead := errors.New("cannot read")
	t.Run("many drafts", func(t *testing.T) {
		s := &unreadable{shelf: new(shelf)}
		h := open(t, s, "k", nil)
		mustAppend(t, h, convo.User("hello"))
		save(t, h)
		s.fault = func(convo.Record) fault { return failsBefore }
		for i := range 8 {
			mustAppend(t, h, turnsOf(i+1, "message"))
			require.Error(t, h.Save(t.Context()))
		}
		s.fault, s.err = nil, errRead
		sent := s.appends
		require.ErrorIs(t, h.Save(t.Context()), errRead)
		assert.Equal(t, sent, s.appends)
		s.err = nil
		save(t, h)
		checkOpened(t, s, "k", nil, h)
	})
	t.Run("a conflict", func(t *testing.T) {
		s := &unreadable{shelf: new(shelf)}
		a, b := pair(t, s, nil, convo.User("hello"))
		require.NoError(t, a.SetMeta("title", ""))
		save(t, a)
		mustAppend(t, b, convo.Assistant("hi"))
		s.err = errRead
		require.ErrorIs(t, b.Save(t.Context()), errRead)
		s.err = nil
		takeOver(t, b)
		save(t, b)
		checkOpened(t, s, "k", nil, b)
	})
}

// A closed History can be saved, reloaded, pruned and summarised, and its queue emptied.
func TestHistory_ClosedCanBeSaved(t *testing.T) {
	h := open(t, new(shelf), "k", nil)
	mustAppend(t, h, convo.User("hello"))
	require.NoError(t, h.Queue(convo.User("more")))
	require.NoError(t, h.Close())
	_, err := h.Handoff(t.Context(), nil, "")
	require.NoError(t, err)
	require.NoError(t, h.Save(t.Context()))
	_, _, err = h.Reload(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Prune(t.Context(), time.Time{}))
	assert.Len(t, h.Unqueue(), 1)
	assert.ErrorIs(t, h.Attach(t.Context(), new(shelf), "other"), convo.ErrClosed)
	assert.ErrorIs(t, h.Note("late"), convo.ErrClosed)
	assert.Zero(t, convo.Release(h))
}

// Whatever size a log says that it has, Open reads what is saved after that.
func TestSave_SizeOfTheLogIsBounded(t *testing.T) {
	from, to := new(convotest.MemStore), new(convotest.MemStore)
	h, err := convo.Open(t.Context(), from, "key", nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("1"))
	require.NoError(t, h.Save(t.Context()))
	mustAppend(t, h, convo.Assistant("1"))
	require.NoError(t, h.SaveFull(t.Context()))
	var full convo.Record
	for r, err := range from.Records(t.Context(), "key", 0) {
		require.NoError(t, err)
		full = r
	}
	require.Contains(t, string(full.Data), `"before"`)
	full.Prev, full.Data = "", regexp.MustCompile(`"before":\d+`).ReplaceAll(full.Data, []byte(`"before":4503599627370496`))
	require.NoError(t, to.Append(t.Context(), full))
	h, err = convo.Open(t.Context(), to, "key", nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("2"))
	require.NoError(t, h.SaveFull(t.Context()))
	mustAppend(t, h, convo.Assistant("2"))
	require.NoError(t, h.Save(t.Context()))
	h, err = convo.Open(t.Context(), to, "key", nil)
	require.NoError(t, err)
	assert.Equal(t, 4, h.Len())
}
