package convo_test

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// above returns a function that reports whether a request weighs more than n.
func above(n int) func(convo.Status) bool {
	return func(s convo.Status) bool { return s.Upper > n }
}

// dueAlways is due at every check.
func dueAlways(convo.Status) bool { return true }

func TestWhen(t *testing.T) {
	h := toolTurn(t, windowOf(100_000, convo.Chain(
		convo.When(above(1_500), convo.ClearToolResults{KeepLast: 2, MinFreed: -1}),
		convo.Truncate{},
	)), 10)
	require.Less(t, h.Status().Upper, 1_500)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)

	call := convo.ToolCall{ID: "long", Name: "search"}
	mustAppend(t, h, convo.User("Go on."), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 500)))
	before := h.Len()
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Len(t, r.Links, 1, "only the link that is due")
	assert.Equal(t, "clear-tool-results", r.Links[0].Strategy)
	assert.Equal(t, before, h.Len())
}

// Under another reason a strategy runs as it would without When.
func TestWhen_OtherReasons(t *testing.T) {
	never := func(convo.Status) bool { return false }
	for name, plain := range plainStrategies() {
		for _, due := range []func(convo.Status) bool{nil, never} {
			var reports [2]convo.Report
			for i, c := range []convo.CompactionStrategy{plain, convo.When(due, plain)} {
				whole := hardTalk(t, windowOf(0, c), 16)
				h, err := convo.Restore(whole.Snapshot(), windowOf(2_000, c))
				require.NoError(t, err)
				reports[i], _ = h.Compact(t.Context(), "")
				reports[i].Duration = 0
				assert.Equal(t, plain.Name(), c.Name())
			}
			assert.Equal(t, reports[0].String(), reports[1].String(), name)
			assert.Equal(t, reports[0].Links, reports[1].Links, name)
			assert.Equal(t, reports[0].Dropped, reports[1].Dropped, name)
		}
	}
}

// Due takes the place of the strategy's own, and of that of each link.
func TestWhen_ReplacesTriggers(t *testing.T) {
	window := convo.SlidingWindow{Keep: 2}
	for _, c := range []convo.CompactionStrategy{
		convo.When(nil, window),
		convo.When(nil, convo.Chain(window, convo.Chain(window))),
		convo.When(above(math.MaxInt), convo.When(dueAlways, window)),
	} {
		h := toolTurn(t, windowOf(0, c), 10)
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	}

	h := toolTurn(t, windowOf(0, convo.When(dueAlways, convo.Chain(convo.ClearToolResults{MinFreed: -1}, convo.Truncate{}))), 10)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Len(t, r.Links, 2, "all links of a Chain are due")
}

func TestWhen_Faults(t *testing.T) {
	run := func(c convo.CompactionStrategy) convo.Report {
		h := toolTurn(t, windowOf(0, c), 10)
		before := h.Snapshot()
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Same(t, before, h.Snapshot())
		return r
	}
	var value *convo.ValueError
	require.ErrorAs(t, run(convo.When(dueAlways, nil)).Cause, &value)
	assert.Equal(t, "convo: strategy of When is <nil>, want a strategy", value.Error())
	require.ErrorAs(t, run(convo.Chain(convo.When(dueAlways, nil))).Cause, &value)

	var panicked *convo.PanicError
	boom := func(convo.Status) bool { panic("boom") }
	require.ErrorAs(t, run(convo.When(boom, convo.Truncate{})).Cause, &panicked)
	assert.Equal(t, "Trigger", panicked.In)
	require.ErrorAs(t, run(convo.Chain(convo.When(boom, convo.Truncate{}))).Cause, &panicked)
	assert.Equal(t, "Trigger", panicked.In)

	// A strategy that does not look at its ctx holds nobody up.
	release := make(chan struct{})
	defer close(release)
	deaf := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		<-release
		return convo.Edit{}, nil
	})
	h := toolTurn(t, windowOf(0, convo.When(dueAlways, deaf)), 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := h.CompactIfNeeded(ctx)
	require.NoError(t, err)
	assert.ErrorIs(t, r.Cause, context.Canceled)
}

// A Trigger that is due all the time, over a conversation without anything to
// clear.
func TestTrigger_DeclinesAreToldOnce(t *testing.T) {
	var log strings.Builder
	told, asked := 0, 0
	clears := convo.ClearToolResults{KeepLast: 1}
	counted := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		asked++
		return clears.Compact(ctx, s, g)
	})
	opts := windowOf(0, convo.When(dueAlways, counted))
	opts.Limits = convo.Limits{Window: 100_000, MinFree: 150}
	opts.OnCompaction = func(convo.Report) { told++ }
	opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := historyOf(t, opts)
	check := func(want convo.Outcome) {
		t.Helper()
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, r.Outcome)
	}
	for i := range 20 {
		mustAppend(t, h, convo.User("And now?"))
		check(convo.OutcomeDeclined)
		assert.Equal(t, i+1, asked)
		check(convo.OutcomeNotNeeded)
		assert.False(t, h.CompactInBackground(t.Context()), "nothing has changed")
		mustAppend(t, h, convo.Assistant("Nothing."))
	}
	assert.Equal(t, 20, asked, "not again while nothing has changed")
	assert.Equal(t, 1, told)
	assert.Equal(t, 1, strings.Count(log.String(), "compaction declined"))

	for range 2 { // the first of the two can be cleared
		call := convo.ToolCall{ID: "c", Name: "search"}
		mustAppend(t, h, convo.User("Search."), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 400)), convo.Assistant("Found."))
	}
	check(convo.OutcomeApplied)
	assert.Equal(t, 2, told)
	for range 3 {
		mustAppend(t, h, convo.User("And now?"), convo.Assistant("Nothing."))
		check(convo.OutcomeDeclined)
	}
	assert.Equal(t, 3, told, "once more after an edit")

	require.NoError(t, h.SetLimits(convo.Limits{Window: 90_000, MinFree: 150}))
	check(convo.OutcomeDeclined)
	assert.Equal(t, 4, told, "and after a change of limits")
	require.NoError(t, h.Pin(1))
	check(convo.OutcomeDeclined)
	assert.Equal(t, 4, told)
	r, err := h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
	assert.Equal(t, 5, told, "what was asked for is always told")
}

// An edit that gives nothing up is a decline, too.
func TestTrigger_EditWithoutGainIsToldOnce(t *testing.T) {
	told := 0
	opts := windowOf(0, convo.When(dueAlways, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Clear: []convo.Clear{{ID: 3}}}, nil
	})))
	opts.Limits = convo.Limits{Window: 100_000, MinFree: 150}
	opts.OnCompaction = func(convo.Report) { told++ }
	h := historyOf(t, opts)
	call := convo.ToolCall{ID: "c", Name: "search"}
	mustAppend(t, h, convo.User("Search."), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 400)), convo.Assistant("Found."))
	for i, want := range []convo.Outcome{convo.OutcomeApplied, convo.OutcomeDeclined, convo.OutcomeDeclined, convo.OutcomeDeclined} {
		mustAppend(t, h, convo.User("And now?"), convo.Assistant("Nothing."))
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, r.Outcome, "%d: %v", i, r.Cause)
	}
	assert.Equal(t, 2, told)
}

// A failure is told each time.
func TestTrigger_FailuresAreTold(t *testing.T) {
	told := 0
	opts := windowOf(0, convo.When(dueAlways, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, assert.AnError
	})))
	opts.OnCompaction = func(convo.Report) { told++ }
	h := toolTurn(t, opts, 4)
	for i := range 3 {
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Equal(t, i+1, told)
	}
}
