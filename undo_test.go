package convo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// Undo brings back what an edit took, and leaves what came later.
func TestUndo(t *testing.T) {
	h := tour(t, nil)
	before := h.Snapshot()
	require.NoError(t, h.RecordUsage(before, convo.Usage{Input: 900}))
	estimate := h.Tokens()
	first := apply(t, h, convo.Edit{Drop: []convo.ID{2, 6}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "one"}})
	mustAppend(t, h, convo.Assistant("so"), convo.User("go on"))
	require.NoError(t, h.Pin(8))
	second := apply(t, h, convo.Edit{Drop: []convo.ID{3, 4, 5}, Summary: &convo.Summary{Text: "two"}})

	unchanged(t, h, func() { require.ErrorIs(t, h.Undo(first), convo.ErrStale, "not the newest") })
	require.NoError(t, h.Undo(second))
	assert.Equal(t, []convo.ID{1, 3, 4, 5, 7, 8, 9, 10, 11}, idsOf(h.Snapshot()))
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "one", sum.Text)
	assert.Zero(t, sum.Updates)
	unchanged(t, h, func() { require.ErrorIs(t, h.Undo(second), convo.ErrStale, "once") })

	require.NoError(t, h.Undo(first))
	s := h.Snapshot()
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, idsOf(s))
	assert.Equal(t, textsOf(before), textsOf(s)[:9])
	_, ok := s.Summary()
	assert.False(t, ok)
	assert.Equal(t, []convo.ID{8}, s.Pinned())
	assert.Equal(t, rawTotal(s), s.Tokens())
	require.NoError(t, h.Rollback(before))
	assert.Equal(t, estimate, h.Tokens(), "as measured")
	unchanged(t, h, func() { require.ErrorIs(t, h.Undo(first), convo.ErrStale) })
}

// Undo brings back nothing that a rewind has taken back since the edit.
func TestUndo_AfterRewind(t *testing.T) {
	call := convo.ToolCall{ID: "a", Name: "run", Arguments: "{}"}
	newHistory := func() *convo.History {
		return historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("", call), convo.Result(call, "5"), convo.Assistant("6"), convo.User("7"))
	}
	h := newHistory()
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2, 6}})
	require.NoError(t, h.RewindTo(3))
	mustAppend(t, h, convo.Assistant("8"))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{1, 2, 3, 8}, idsOf(h.Snapshot()))
	require.ErrorIs(t, h.RewindTo(6), convo.ErrStale)

	// A call whose result was taken back stays away with it.
	h = newHistory()
	r = apply(t, h, convo.Edit{Drop: []convo.ID{4, 5}})
	require.NoError(t, h.RewindTo(4))
	mustAppend(t, h, convo.Assistant("8"))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{1, 2, 3, 8}, idsOf(h.Snapshot()))

	// So does a summary that stands for what was taken back.
	h = newHistory()
	apply(t, h, convo.Edit{Drop: []convo.ID{2, 3, 4, 5}, Summary: &convo.Summary{Text: "s"}})
	r = apply(t, h, convo.Edit{Summary: &convo.Summary{}})
	require.NoError(t, h.RewindTo(1))
	require.NoError(t, h.Undo(r))
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
	assert.Equal(t, []convo.ID{1}, idsOf(h.Snapshot()))

	// What left between two rewinds comes back, however many rewinds there were.
	h = newHistory()
	for range 101 {
		mustAppend(t, h, convo.Assistant("a"), convo.User("u"), convo.Assistant("b"))
		ids := idsOf(h.Snapshot())
		require.NoError(t, h.RewindTo(ids[len(ids)-2]))
	}
	before := idsOf(h.Snapshot())
	r = apply(t, h, convo.Edit{Drop: before[1 : len(before)-1]})
	mustAppend(t, h, convo.Assistant("a"))
	_, err := h.Rewind(1)
	require.NoError(t, err)
	require.NoError(t, h.Undo(r))
	assert.Equal(t, before[:len(before)-1], idsOf(h.Snapshot()))
}

func TestUndo_Refuses(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	r := apply(t, h, convo.Edit{Drop: []convo.ID{6}})
	shown := h.Snapshot()
	other := tour(t, nil)
	theirs := apply(t, other, convo.Edit{Drop: []convo.ID{6}})
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	unchanged(t, h, func() {
		for name, r := range map[string]convo.Report{"zero": {}, "of another": theirs} {
			require.ErrorIs(t, h.Undo(r), convo.ErrStale, name)
		}
		_, declined := h.Apply(h.Snapshot(), convo.Edit{})
		require.Error(t, declined)
	})
	require.ErrorIs(t, fork.Undo(r), convo.ErrStale)

	require.NoError(t, h.Undo(r))
	unchanged(t, h, func() {
		require.ErrorIs(t, h.Rollback(shown), convo.ErrStale, "it shows an edit that was undone")
	})
	require.NoError(t, h.Rollback(at))

	// A rollback that undoes an edit leaves the one before to be undone.
	first := apply(t, h, convo.Edit{Drop: []convo.ID{6}})
	mustAppend(t, h, convo.Assistant("x"))
	between := h.Snapshot()
	mustAppend(t, h, convo.User("y"), convo.Assistant("z"), convo.User("w"))
	second := apply(t, h, convo.Edit{Drop: []convo.ID{12}})
	require.NoError(t, h.Rollback(between))
	require.ErrorIs(t, h.Undo(second), convo.ErrStale)
	require.NoError(t, h.Undo(first))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, idsOf(h.Snapshot()))

	r = apply(t, h, convo.Edit{Drop: []convo.ID{6}})
	require.NoError(t, h.Close())
	require.ErrorIs(t, h.Undo(r), convo.ErrClosed)
	require.ErrorIs(t, new(convo.History).Undo(r), convo.ErrClosed)
}

// always is due at each check.
type always struct{ convo.Truncate }

func (always) Due(convo.Status) bool { return true }

// After an Undo, nothing is compacted unasked until MinFree was appended or the
// request does not fit.
func TestUndo_Holds(t *testing.T) {
	opts := windowOf(1000, always{})
	opts.Priors = map[string]convo.Prior{"": {Margin: -1}}
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 600, 300, 100
	h := historyOf(t, opts, convo.User("u"), convo.Assistant(strings.Repeat("a", 500)), convo.User("v"), convo.Assistant("b"), convo.User("w"))
	mustAppend(t, h, convo.Assistant(strings.Repeat("c", 200)), convo.User("x"))
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Undo(r))

	needed := func(want convo.Outcome) {
		t.Helper()
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, r.Outcome)
	}
	needed(convo.OutcomeNotNeeded)
	assert.False(t, h.CompactInBackground(t.Context()))
	mustAppend(t, h, convo.Assistant(strings.Repeat("d", 98)))
	needed(convo.OutcomeNotNeeded)
	mustAppend(t, h, convo.User("yy"))
	needed(convo.OutcomeApplied)

	// What is asked for is done, with nothing new since.
	mustAppend(t, h, convo.Assistant(strings.Repeat("d", 500)), convo.User("z"))
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Undo(r))
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Undo(r))
	require.NoError(t, h.SetLimits(convo.Limits{Window: h.Status().Upper - 1, Reserve: -1}))
	needed(convo.OutcomeApplied) // it does not fit
}

// A compaction that is running unasked does not take back what Undo put back.
func TestUndo_DuringACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *convo.History
		resume := make(chan struct{})
		calls := 0
		slow := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if calls++; calls > 1 {
				return convo.Edit{}, errors.New("asked again")
			}
			<-resume
			return convo.Truncate{}.Compact(ctx, s, g)
		})
		opts := windowOf(1000, slow)
		opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 600, 300, 10
		h = historyOf(t, opts, convo.User("u"), convo.Assistant(strings.Repeat("a", 500)), convo.User("v"), convo.Assistant("b"), convo.User("w"))
		r := apply(t, h, convo.Edit{Drop: []convo.ID{3}})
		mustAppend(t, h, convo.Assistant(strings.Repeat("c", 200)), convo.User("x"))
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		require.NoError(t, h.Undo(r))
		before := textsOf(h.Snapshot())
		close(resume)
		got, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeStale, got.Outcome)
		assert.Equal(t, before, textsOf(h.Snapshot()))
	})
}

// What Undo takes back is held in memory by reports and not by the History, so any number
// of edits can be taken back.
func TestUndo_ManyEdits(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	var reports []convo.Report
	for range 1200 {
		id := mustAppend(t, h, convo.Assistant("a"), convo.User("v"))
		reports = append(reports, apply(t, h, convo.Edit{Drop: []convo.ID{id - 1}}))
	}
	undone := 0
	for i := len(reports) - 1; i >= 0; i-- {
		if h.Undo(reports[i]) != nil {
			break
		}
		undone++
	}
	assert.Equal(t, 1200, undone)
	assert.Equal(t, 1201+1200, h.Len())
}

// A user message behind one of a turn that has lost what followed begins a turn, so
// that Undo can put that back in between.
func TestUndo_KeepsTurnsApart(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("b"), convo.User("w"))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{4}})
	rewind(t, h)
	mustAppend(t, h, convo.User("x"), convo.User("y"))
	assert.Equal(t, 3, find(t, h, 6).Turn)
	assert.Equal(t, 3, find(t, h, 7).Turn)
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 6, 7}, idsOf(h.Snapshot()))
	checkSaved(t, h, &convo.Options{Roles: convo.Relaxed()})
}

// Reasoning behind a call that is back is sent, and counted, for its turn has a call
// again.
func TestUndo_ReasoningBehindACall(t *testing.T) {
	opts := bare()
	opts.Overheads.Reasoning = convo.ReplayTools
	opts.Roles = convo.Relaxed()
	h := historyOf(t, opts)
	c := callOf("c")
	thought := thoughts.In(convo.Assistant("b"), convo.Reasoning{Text: "one two three four five"})
	mustAppend(t, h, convo.User("1"), convo.Assistant("", c), convo.Result(c, "r"), convo.Assistant("a"), convo.User("5"))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2, 3, 4}})
	_, err := h.Rewind(1)
	require.NoError(t, err)
	mustAppend(t, h, thought)
	idle := find(t, h, 6).Tokens
	require.NoError(t, h.Undo(r))
	assert.Greater(t, find(t, h, 6).Tokens, idle)
	restored, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	for i, e := range restored.Snapshot().All() {
		own, _ := h.Snapshot().At(i)
		assert.Equal(t, e.Tokens, own.Tokens, "entry %d", e.ID)
	}
	tokens, err := h.Count(thought)
	require.NoError(t, err)
	assert.Equal(t, find(t, h, 6).Tokens, tokens)
}

// What was changed and then taken back stays away, also where nothing newer is left.
func TestUndo_OfWhatRewindTookBack(t *testing.T) {
	h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	r := apply(t, h, rewriteOf(4, convo.Text("other")))
	_, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, []convo.ID{1, 2}, idsOf(h.Snapshot()))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []string{"1", "2"}, textsOf(h.Snapshot()))
	mustAppend(t, h, convo.User("5"))
	assert.Equal(t, []string{"1", "2", "5"}, textsOf(h.Snapshot()))
}

// Reasoning that an Undo brings back stays bound if nothing was answered without it.
func TestUndo_Bound(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	for _, text := range []string{"a", "b"} {
		_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{signed(text)}})
		require.NoError(t, err)
		mustAppend(t, h, convo.User("next"))
	}
	r := apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: 2, Parts: []convo.Part{convo.Text("a")}}}})
	require.True(t, h.Snapshot().Bound(4))
	require.NoError(t, h.Undo(r))
	assert.True(t, h.Snapshot().Bound(2))
	assert.True(t, h.Snapshot().Bound(4))
}
