package convo_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// windowOf is bare with a window of so many tokens, none of it reserved. With
// bare's counting an empty view weighs nothing; weights are bytes and an
// eighth.
func windowOf(window int, c convo.CompactionStrategy) *convo.Options {
	opts := bare()
	opts.Limits = convo.Limits{Window: window, Reserve: -1}
	opts.Strategy = c
	return opts
}

// canned is a summarizer that always writes the same.
func canned(text string) convo.Summarizer {
	return convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: text, Usage: convo.Usage{Input: 100, Output: 10}}, nil
	})
}

// broken is a summarizer that always fails, and counts how often.
func broken(calls *int) convo.Summarizer {
	return convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		*calls++
		return convo.Summary{}, errors.New("model is down")
	})
}

func TestCompactIfNeeded_Marks(t *testing.T) {
	h := toolTurn(t, windowOf(0, nil), 20) // 21 exchanges outside the floor, 100 bytes and more each
	total := h.Status().Upper
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		want   convo.Outcome
	}{
		{"no limit", convo.Limits{}, convo.NotNeeded},
		{"just as much fits", convo.Limits{Window: total, Reserve: -1}, convo.NotNeeded},
		{"one less does not", convo.Limits{Window: total - 1, Reserve: -1}, convo.Applied},
		{"the reserve counts", convo.Limits{Window: total + 100, Reserve: 101}, convo.Applied},
		{"the overhead counts", convo.Limits{Window: total, Reserve: -1, Overhead: 10}, convo.Applied},
		{"above high", convo.Limits{Window: 2 * total, Reserve: -1, High: total - 1}, convo.Applied},
		{"high without a window", convo.Limits{High: total - 1}, convo.Applied},
		{"at high", convo.Limits{High: total}, convo.NotNeeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fork, err := convo.Restore(h.Snapshot(), &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads, Limits: tt.limits, Strategy: convo.Truncate{}})
			require.NoError(t, err)
			status := fork.Status()
			r, err := fork.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tt.want, r.Outcome)
			assert.True(t, r.Fits)
			if tt.want == convo.Applied {
				assert.Equal(t, convo.ReasonHigh, r.Reason)
				assert.Equal(t, "truncate", r.Strategy)
				assert.LessOrEqual(t, r.TokensAfter, status.Low, "down to low water in one step")
				assert.Equal(t, r.TokensAfter, fork.Status().Upper)
				assert.Equal(t, status.Upper, r.TokensBefore)
				assert.Equal(t, len(r.Dropped), r.MessagesBefore-r.MessagesAfter)
				again, err := fork.CompactIfNeeded(t.Context())
				require.NoError(t, err)
				assert.Equal(t, convo.NotNeeded, again.Outcome)
			}
		})
	}
}

func TestPrepare(t *testing.T) {
	h := toolTurn(t, windowOf(1000, nil), 20) // the default strategy
	snap, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Same(t, h.Snapshot(), snap)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, "chain", r.Strategy)
	assert.Equal(t, "clear-tool-results", r.Links[0].Strategy)
	assert.Equal(t, convo.Applied, r.Links[0].Outcome)
	assert.LessOrEqual(t, snap.Tokens()*9/8, 1000)

	mustAppend(t, h, convo.User(strings.Repeat("long ", 200)))
	snap, r, err = h.Prepare(t.Context())
	var floor *convo.FloorError
	require.ErrorAs(t, err, &floor)
	assert.NotNil(t, snap, "beside an error too")
	assert.False(t, r.Fits)
	assert.Equal(t, convo.Failed, r.Outcome)
	assert.Empty(t, r.Strategy, "none ran")
	assert.Equal(t, (1000+5)*9/8+1, floor.Floor)
	assert.Equal(t, floor.Floor, floor.System+floor.Newest)
	assert.Equal(t, 1000, floor.Limit)
	require.EqualError(t, err, "convo: floor of 1131 tokens above the limit of 1000 (system 6, newest exchange 1125, user messages of the newest turn 0, pinned 0, ephemeral 0, overhead 0)")
}

func TestCompactIfNeeded_FloorLeavesTooLittle(t *testing.T) {
	calls := 0
	summarizer := convo.Summarize{With: broken(&calls)}
	h := toolTurn(t, windowOf(0, convo.Chain(summarizer, convo.Truncate{})), 8) // 840 bytes
	require.NoError(t, h.Pin(4, 6, 8, 10, 12, 14))                              // 610 of them

	// Within the limit there is too little to gain, and nothing runs.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 2000, Reserve: -1, High: 900, Low: 400, MinFree: 300, Soft: 800}))
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.Declined, r.Outcome)
		assert.Equal(t, convo.ErrNoGain, r.Cause)
		assert.Empty(t, r.Strategy)
		assert.True(t, r.Fits)
	})

	// Above it, what needs no model does what can be done.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 900, Reserve: -1, Low: 400, MinFree: 300, Soft: 800}))
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, []convo.Link{
		{Strategy: "summarize", Outcome: convo.Declined, Cause: convo.ErrNoGain},
		{Strategy: "truncate", Outcome: convo.Applied},
	}, r.Links)
	assert.Zero(t, calls, "no model was called")
}

func TestCompactIfNeeded_AboveTheLimit(t *testing.T) {
	// A strategy that frees something, and not enough.
	timid := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		e, _ := s.At(2)
		f, _ := s.At(3)
		return convo.Edit{Drop: []convo.ID{e.ID, f.ID}}, nil
	})
	h := toolTurn(t, windowOf(500, timid), 20)
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(t.Context())
		var limit *convo.LimitError
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, 500, limit.Limit)
		assert.Equal(t, (5+8+4+9*106+10*108)*9/8+1, limit.Need)
		assert.Equal(t, convo.Failed, r.Outcome)
		assert.False(t, r.Fits)
	})

	// One that declines.
	h = toolTurn(t, windowOf(500, convo.SlidingWindow{Keep: 1000}), 20)
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(t.Context())
		var limit *convo.LimitError
		require.ErrorAs(t, err, &limit)
		require.ErrorIs(t, err, convo.ErrNoGain)
		assert.Equal(t, convo.Failed, r.Outcome)
	})

	// By hand nothing is asked of an edit.
	_, err := h.SplicePrefix(h.Snapshot(), 5, "")
	require.NoError(t, err)
}

func TestCompact_ByHand(t *testing.T) {
	var focuses []string
	probe := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		focuses = append(focuses, g.Focus)
		e, err := convo.Truncate{}.Compact(t.Context(), s, g)
		return e, err
	})
	h := toolTurn(t, windowOf(0, probe), 20)
	total := h.Status().Upper
	compact := func(focus string) convo.Outcome {
		t.Helper()
		r, err := h.Compact(t.Context(), focus)
		require.NoError(t, err)
		return r.Outcome
	}
	assert.Equal(t, convo.Applied, compact(""))
	assert.LessOrEqual(t, h.Status().Upper, total/2, "half of what there was, with no marks")
	assert.Equal(t, convo.NotNeeded, compact(""), "nothing appended since")
	assert.Equal(t, convo.Applied, compact("the map"), "another focus")
	assert.Equal(t, convo.NotNeeded, compact("the map"))
	assert.Equal(t, convo.NotNeeded, compact(""))
	mustAppend(t, h, convo.User("and"), convo.Assistant("so"), convo.User("then"), convo.Assistant("yes"))
	assert.Equal(t, convo.Applied, compact("the map"))
	assert.Equal(t, []string{"", "the map", "the map"}, focuses)

	require.NoError(t, h.Close())
	_, err := h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrClosed)
}

func TestCompact_Nil(t *testing.T) {
	var zero convo.History
	ctx := context.Context(nil)
	for name, call := range map[string]func() error{
		"CompactIfNeeded": func() error { _, err := zero.CompactIfNeeded(ctx); return err },
		"Prepare":         func() error { _, _, err := zero.Prepare(ctx); return err },
		"Compact":         func() error { _, err := zero.Compact(ctx, ""); return err },
		"Fit":             func() error { _, _, err := zero.Fit(ctx, 1); return err },
		"Recover":         func() error { _, _, err := zero.Recover(ctx, nil, errors.New("prompt is too long")); return err },
		"Summarize":       func() error { _, err := zero.Summarize(ctx, nil, ""); return err },
	} {
		require.ErrorIs(t, call(), convo.ErrClosed, name)
	}
	assert.False(t, zero.CompactInBackground(ctx))
	r, err := zero.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, convo.NotNeeded, r.Outcome)
	require.NoError(t, zero.Close())

	h := toolTurn(t, windowOf(500, nil), 20)
	r, err = h.CompactIfNeeded(ctx)
	require.NoError(t, err, "a nil context is context.Background")
	assert.Equal(t, convo.Applied, r.Outcome)
}

func TestCompactIfNeeded_EndedContext(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("user pressed escape"))

	h := toolTurn(t, windowOf(5000, nil), 20)
	r, err := h.CompactIfNeeded(ended)
	require.NoError(t, err, "nothing is due")
	assert.Equal(t, convo.NotNeeded, r.Outcome)

	h = toolTurn(t, windowOf(500, convo.Summarize{}), 20)
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "user pressed escape")
		assert.Equal(t, convo.Failed, r.Outcome)
	})
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err, "an ended call leaves nothing behind")
	assert.Equal(t, convo.Applied, r.Outcome)
}

func TestCompactIfNeeded_NothingWillEver(t *testing.T) {
	var out bytes.Buffer
	opts := bare()
	opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	h := tour(t, opts)
	for range 3 {
		_, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, 1, strings.Count(out.String(), "nothing will ever be compacted"), out.String())

	for name, change := range map[string]func(*convo.Options){
		"a window":  func(o *convo.Options) { o.Limits.Window = 10_000 },
		"high":      func(o *convo.Options) { o.Limits.High = 10_000 },
		"a trigger": func(o *convo.Options) { o.Strategy = convo.Chain(convo.Truncate{}, convo.SlidingWindow{Keep: 100}) },
	} {
		out.Reset()
		change(opts)
		_, err := tour(t, opts).CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Empty(t, out.String(), name)
		opts.Limits, opts.Strategy = convo.Limits{}, nil
	}
}

func TestReport_ToldOnce(t *testing.T) {
	var told []convo.Report
	var out bytes.Buffer
	opts := windowOf(500, convo.Chain(convo.Summarize{With: canned("short"), Window: -1}, convo.Truncate{}))
	opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := toolTurn(t, opts, 20)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	require.Len(t, told, 1)
	assert.Equal(t, r, told[0])
	assert.Equal(t, convo.Usage{Input: 100, Output: 10}, r.Usage)
	assert.NotEmpty(t, r.Summarised)
	assert.Empty(t, r.Dropped)
	assert.Contains(t, out.String(), "level=INFO msg=\"convo: compaction applied\" reason=high strategy=chain")
	assert.Positive(t, r.Duration)

	_, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Len(t, told, 1, "what is not needed is only returned")

	mustAppend(t, h, convo.User(strings.Repeat("x", 1000)))
	out.Reset()
	_, err = h.CompactIfNeeded(t.Context())
	require.Error(t, err)
	require.Len(t, told, 2)
	assert.Equal(t, convo.Failed, told[1].Outcome)
	assert.Contains(t, out.String(), "level=WARN")
}

func TestReport_PrefixKept(t *testing.T) {
	h := toolTurn(t, windowOf(0, convo.ClearToolResults{KeepLast: 3}), 20)
	sent := h.Snapshot()
	require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: sent.Tokens()}))
	require.NoError(t, h.Pin(4, 6, 8))
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.InDelta(t, float64(5+8+3*106+8)/float64(sent.Tokens()), r.PrefixKept, 0.0001, "up to the first result cleared")
}

func TestTrigger(t *testing.T) {
	// A trigger by time, as a user would write it.
	now := time.Now()
	idle := idleTrigger{Truncate: convo.Truncate{}, now: func() time.Time { return now }}
	h := toolTurn(t, windowOf(0, idle), 20)
	before := h.Len()
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.NotNeeded, r.Outcome)
	now = now.Add(time.Hour)
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Less(t, h.Len(), before)
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.NotNeeded, r.Outcome, "due again, and nothing has changed")
}

// idleTrigger drops the older half when nothing was said for long.
type idleTrigger struct {
	convo.Truncate
	now func() time.Time
}

func (i idleTrigger) Due(s convo.Status) bool { return i.now().Sub(s.LastAppend) > 30*time.Minute }
