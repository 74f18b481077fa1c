package convo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// unansweredRound returns options and a conversation in a window of so many bytes
// that ends with results of the given sizes.
func unansweredRound(t testing.TB, window int, change func(*convo.Options), sizes ...int) *convo.History {
	t.Helper()
	opts := windowOf(window, nil)
	opts.Priors = map[string]convo.Prior{"": {Margin: -1}} // weights are bytes
	opts.MaxResult = -1
	if change != nil {
		change(opts)
	}
	msgs := []convo.Message{convo.User("old"), convo.Assistant("answer"), convo.User("go")}
	var calls []convo.ToolCall
	for i := range sizes {
		calls = append(calls, callOf("c"+itoa(i)))
	}
	msgs = append(msgs, convo.Assistant("", calls...))
	for i, n := range sizes {
		msgs = append(msgs, convo.Result(calls[i], strings.Repeat("x", n)))
	}
	return historyOf(t, opts, msgs...)
}

func resultSizes(s *convo.Snapshot) (sizes []int) {
	for _, e := range s.All() {
		if e.Message.Role == convo.RoleTool {
			sizes = append(sizes, len(e.Message.Text()))
		}
	}
	return sizes
}

// Parallel results share the room: a short one is not touched for a long one. The
// originals are in the report, and Undo brings them back.
func TestCut_FairShare(t *testing.T) {
	h := unansweredRound(t, 2000, nil, 3000, 1500, 300, 20)
	before := h.Snapshot()
	s, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	sizes := resultSizes(s)
	assert.Equal(t, []int{300, 20}, sizes[2:])
	assert.InDelta(t, sizes[0], sizes[1], 4)
	assert.Greater(t, sizes[0], 300)
	assert.Equal(t, []convo.ID{5, 6}, r.Shortened)
	assert.LessOrEqual(t, r.TokensAfter, 2000)
	floor := 0
	for x := range s.Exchanges() {
		if x.Floor {
			floor += x.Tokens
		}
	}
	assert.InDelta(t, 1500, floor, 10, "three quarters of the limit")
	require.Len(t, r.Originals(), 2)
	for i, n := range []int{3000, 1500} {
		assert.Len(t, r.Originals()[i].Message.Text(), n)
	}

	_, again, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, again.Outcome, "cutting twice changes nothing")
	require.NoError(t, h.Undo(r))
	assert.Equal(t, textsOf(before), textsOf(h.Snapshot()))
	assert.Zero(t, h.Status().Originals)
}

// What goes from the rest of the view goes in the same edit.
func TestCut_WithTheStrategy(t *testing.T) {
	h := unansweredRound(t, 1000, func(o *convo.Options) { o.Limits.Low = 700 }, 900, 900)
	apply(t, h, convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: strings.Repeat("s", 500)}})
	var reports []convo.Report
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	reports = append(reports, r)
	assert.Equal(t, []convo.ID{5, 6}, r.Shortened)
	assert.Equal(t, []convo.ID{1}, r.Dropped)
	assert.True(t, r.SummaryDropped || r.SummaryAfter > 0)
	require.NoError(t, h.Undo(reports[0]))
	assert.Equal(t, []int{900, 900}, resultSizes(h.Snapshot()))
	assert.Equal(t, []convo.ID{1, 3, 4, 5, 6}, idsOf(h.Snapshot()))
}

// A strategy that fails does not keep a conversation from going on.
func TestCut_StrategyFails(t *testing.T) {
	fails := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, errors.New("no model")
	})
	h := unansweredRound(t, 1000, func(o *convo.Options) { o.Strategy, o.Limits.Low, o.Limits.MinFree = fails, 100, 1 }, 900, 900)
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{5, 6}, r.Shortened)
	require.ErrorContains(t, r.Cause, "no model")
}

// Where cutting does not reach the limit, nothing is cut, and the error names what
// is in the way.
func TestCut_NotEnough(t *testing.T) {
	spilled := 0
	h := unansweredRound(t, 1000, func(o *convo.Options) {
		o.Spill = func(context.Context, convo.ToolResult) (string, error) { spilled++; return "f", nil }
	}, 900, 900)
	require.NoError(t, h.SetSystem(convo.System(strings.Repeat("s", 950))))
	unchanged(t, h, func() {
		_, r, err := h.Prepare(t.Context())
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
		assert.Equal(t, 950, floor.System)
		assert.Empty(t, r.Shortened)
		assert.Contains(t, err.Error(), "SetSystem")
		assert.Zero(t, spilled)
	})
	require.NoError(t, h.SetSystem())
	_, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
}

func TestCut_Pinned(t *testing.T) {
	spilled := 0
	h := unansweredRound(t, 1000, func(o *convo.Options) {
		o.Spill = func(context.Context, convo.ToolResult) (string, error) { spilled++; return "f", nil }
	}, 900, 900)
	require.NoError(t, h.Pin(5))
	mustAppend(t, h, convo.User("well?"))
	unchanged(t, h, func() {
		_, _, err := h.Prepare(t.Context())
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
		assert.Greater(t, floor.Pinned, 1800)
		assert.Contains(t, err.Error(), "limit 1,000: pinned exchanges hold 1,8")
		assert.Zero(t, spilled)
	})
	require.NoError(t, h.Unpin(5))
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 6}, r.Shortened)
}

// Pinned while the strategy works, a result stays whole.
func TestCut_PinnedMeanwhile(t *testing.T) {
	var h *convo.History
	pins := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if err := h.Pin(5); err != nil {
			return convo.Edit{}, err
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	})
	h = unansweredRound(t, 1000, func(o *convo.Options) { o.Strategy, o.Limits.Low, o.Limits.MinFree = pins, 100, 1 }, 900, 900)
	_, r, err := h.Prepare(t.Context())
	require.Error(t, err, "it does not fit")
	assert.Empty(t, r.Shortened)
	assert.Equal(t, []int{900, 900}, resultSizes(h.Snapshot()))
}

// Originals go to Options.Spill first. A result whose original cannot be kept is
// not cut.
func TestCut_Spill(t *testing.T) {
	stored := map[string]int{}
	spill := func(o *convo.Options) {
		o.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
			if r.CallID == "c1" {
				return "", errors.New("disk full")
			}
			stored[r.CallID] += len(r.Text())
			return "file-" + r.CallID, nil
		}
	}
	h := unansweredRound(t, 2000, spill, 3000, 700, 10)
	s, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5}, r.Shortened)
	assert.Equal(t, map[string]int{"c0": 3000}, stored)
	e, _ := s.Find(5)
	assert.Contains(t, e.Message.Text(), "kept at file-c0]")

	h = unansweredRound(t, 2000, spill, 10, 3000)
	clear(stored)
	unchanged(t, h, func() {
		_, _, err = h.Prepare(t.Context())
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
		require.ErrorContains(t, err, "disk full")
	})

	// What Append has cut and stored is cut again from its original, and is not
	// stored again.
	h = unansweredRound(t, 3000, func(o *convo.Options) { spill(o); o.MaxResult = 2000 }, 5000)
	require.Equal(t, map[string]int{"c0": 5000}, stored)
	require.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
	s, r, err = h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"c0": 5000}, stored)
	e, _ = s.Find(5)
	assert.Equal(t, 1, strings.Count(e.Message.Text(), "[cut: "))
	assert.Len(t, r.Originals()[0].Message.Text(), 5000)
	mustAppend(t, h, convo.Assistant("so"), convo.User("v"))
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 5}}})
	e, _ = h.Snapshot().Find(5)
	assert.Equal(t, "[result of tool cleared: 5000 bytes, kept at file-c0]", e.Message.Text())
	assert.Equal(t, map[string]int{"c0": 5000}, stored)
}

// MakeRoom never cuts.
func TestCut_NotForFit(t *testing.T) {
	h := unansweredRound(t, 1000, nil, 800)
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 500)
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
		assert.Contains(t, err.Error(), "MakeRoom is to reserve 500: reserve less")
	})
}

// When the provider refuses what the estimate says fits, Recover cuts as well.
func TestCut_Recover(t *testing.T) {
	for name, strategy := range map[string]convo.CompactionStrategy{
		"the floor is over the target": nil,
		"the strategy fails": convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{}, errors.New("no")
		}),
	} {
		t.Run(name, func(t *testing.T) {
			h := unansweredRound(t, 100_000, func(o *convo.Options) { o.Strategy = strategy }, 9000, 200)
			sent := h.Snapshot()
			retry, r, err := h.Recover(t.Context(), sent, errors.New("prompt is too long"))
			require.NoError(t, err)
			require.True(t, retry)
			assert.Equal(t, []convo.ID{5}, r.Shortened)
			assert.LessOrEqual(t, h.Snapshot().Tokens(), sent.Tokens()/2)
			assert.Greater(t, h.Snapshot().Tokens(), sent.Tokens()/4)
		})
	}

	// The floor is under the target, and the strategy frees too little.
	h := unansweredRound(t, 100_000, func(o *convo.Options) { o.Strategy = convo.ClearToolResults{} }, 900)
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 2000)), convo.User("v"), convo.Assistant("", callOf("d")), convo.Result(callOf("d"), strings.Repeat("x", 900)))
	sent := h.Snapshot()
	retry, r, err := h.Recover(t.Context(), sent, errors.New("prompt is too long"))
	require.NoError(t, err)
	require.True(t, retry)
	assert.Equal(t, []convo.ID{9}, r.Shortened)
}
