package convo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// windowOf returns the options of bare with a window of so many tokens, none of
// it reserved, and a strategy. As bare counts, an empty view weighs nothing, and
// Upper is the bytes and an eighth.
func windowOf(window int, c convo.CompactionStrategy) *convo.Options {
	opts := bare()
	opts.Limits = convo.Limits{Window: window, Reserve: -1}
	opts.Strategy = c
	return opts
}

// canned returns a summarizer that always writes the same.
func canned(text string) convo.Summarizer {
	return convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: text, Usage: convo.Usage{Input: 100, Output: 10}}, nil
	})
}

// broken returns a summarizer that always fails, and counts its calls.
func broken(calls *int) convo.Summarizer {
	return convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		*calls++
		return convo.Summary{}, errors.New("model is down")
	})
}

// requireNoFailure checks what a compaction returned: no error, and a report of
// one that was applied, declined or not needed.
func requireNoFailure(t testing.TB) func(convo.Report, error) {
	return func(r convo.Report, err error) {
		t.Helper()
		require.NoError(t, err)
		require.NotContains(t, []convo.Outcome{convo.OutcomeFailed, convo.OutcomeStale}, r.Outcome, "%v", r.Cause)
	}
}

// requireFailed checks what CompactIfNeeded returned when the compaction failed
// and the request fits all the same: no error, and a report that says why.
func requireFailed(t testing.TB) func(convo.Report, error) convo.Report {
	return func(r convo.Report, err error) convo.Report {
		t.Helper()
		require.NoError(t, err, "the request may be sent")
		require.True(t, r.Fits)
		require.Equal(t, convo.OutcomeFailed, r.Outcome)
		require.Error(t, r.Cause)
		return r
	}
}

// prepare returns the snapshot to send, when it fits and no compaction failed.
func prepare(t testing.TB, h *convo.History) *convo.Snapshot {
	t.Helper()
	s, r, err := h.Prepare(t.Context())
	requireNoFailure(t)(r, err)
	return s
}

func TestCompactIfNeeded_Marks(t *testing.T) {
	h := toolTurn(t, windowOf(0, nil), 20) // 21 exchanges outside the floor, 100 bytes and more each
	total := h.Status().Upper
	for _, tt := range []struct {
		name   string
		limits convo.Limits
		want   convo.Outcome
	}{
		{"no limit", convo.Limits{}, convo.OutcomeNotNeeded},
		{"just as much fits", convo.Limits{Window: total, Reserve: -1}, convo.OutcomeNotNeeded},
		{"one less does not", convo.Limits{Window: total - 1, Reserve: -1}, convo.OutcomeApplied},
		{"the reserve counts", convo.Limits{Window: total + 100, Reserve: 101}, convo.OutcomeApplied},
		{"the overhead counts", convo.Limits{Window: total, Reserve: -1, Tools: 10}, convo.OutcomeApplied},
		{"above high", convo.Limits{Window: 2 * total, Reserve: -1, High: total - 1}, convo.OutcomeApplied},
		{"high without a window", convo.Limits{High: total - 1}, convo.OutcomeApplied},
		{"at high", convo.Limits{High: total}, convo.OutcomeNotNeeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fork, err := convo.Restore(h.Snapshot(), &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads, Limits: tt.limits, Strategy: convo.Truncate{}})
			require.NoError(t, err)
			status := fork.Status()
			r, err := fork.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tt.want, r.Outcome)
			assert.True(t, r.Fits)
			if tt.want == convo.OutcomeApplied {
				assert.Equal(t, convo.ReasonHigh, r.Reason)
				assert.Equal(t, "truncate", r.Strategy)
				assert.LessOrEqual(t, r.TokensAfter, status.Low, "down to low water in one step")
				assert.Equal(t, r.TokensAfter, fork.Status().Upper)
				assert.Equal(t, status.Upper, r.TokensBefore)
				assert.Equal(t, len(r.Dropped), r.MessagesBefore-r.MessagesAfter)
				again, err := fork.CompactIfNeeded(t.Context())
				require.NoError(t, err)
				assert.Equal(t, convo.OutcomeNotNeeded, again.Outcome)
			}
		})
	}
}

func TestPrepare(t *testing.T) {
	h := toolTurn(t, windowOf(1000, nil), 20) // the default strategy
	snap, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Same(t, h.Snapshot(), snap)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, "chain", r.Strategy)
	assert.Equal(t, "clear-tool-results", r.Links[1].Strategy)
	assert.Equal(t, convo.OutcomeApplied, r.Links[1].Outcome)
	assert.LessOrEqual(t, snap.Tokens()*9/8, 1000)

	mustAppend(t, h, convo.User(strings.Repeat("long ", 200)))
	snap, r, err = h.Prepare(t.Context())
	var floor *convo.FloorError
	require.ErrorAs(t, err, &floor)
	assert.NotNil(t, snap, "beside an error too")
	assert.False(t, r.Fits)
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
	assert.Empty(t, r.Strategy, "none ran")
	assert.Equal(t, (1000+5)*9/8+1, floor.Floor)
	assert.Equal(t, floor.Floor, floor.System+floor.Newest)
	assert.Equal(t, 1000, floor.Limit)
	require.EqualError(t, err, "convo: cannot fit: 1,131 protected tokens exceed limit 1,000: the newest user message holds 1,126: Rewind takes it back; or raise Limits.Window")
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
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
		assert.Equal(t, convo.ErrNoGain, r.Cause)
		assert.Empty(t, r.Strategy)
		assert.True(t, r.Fits)
	})

	// Above it, what needs no model does what can be done.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 900, Reserve: -1, Low: 400, MinFree: 300, Soft: 800}))
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.Link{
		{Strategy: "summarize", Outcome: convo.OutcomeDeclined, Cause: convo.ErrNoGain},
		{Strategy: "truncate", Outcome: convo.OutcomeApplied},
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
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.False(t, r.Fits)
	})

	// One that declines.
	h = toolTurn(t, windowOf(500, convo.SlidingWindow{KeepLast: 1000}), 20)
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(t.Context())
		var limit *convo.LimitError
		require.ErrorAs(t, err, &limit)
		require.ErrorIs(t, err, convo.ErrNoGain)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
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
	assert.Equal(t, convo.OutcomeApplied, compact(""))
	assert.LessOrEqual(t, h.Status().Upper, total/2, "half of what there was, with no marks")
	assert.Equal(t, convo.OutcomeNotNeeded, compact(""), "nothing appended since")
	assert.Equal(t, convo.OutcomeApplied, compact("the map"), "another focus")
	assert.Equal(t, convo.OutcomeNotNeeded, compact("the map"))
	assert.Equal(t, convo.OutcomeNotNeeded, compact(""))
	mustAppend(t, h, convo.User("and"), convo.Assistant("so"), convo.User("then"), convo.Assistant("yes"))
	assert.Equal(t, convo.OutcomeApplied, compact("the map"))
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
		"MakeRoom":        func() error { _, _, err := zero.MakeRoom(ctx, 1); return err },
		"Recover":         func() error { _, _, err := zero.Recover(ctx, nil, errors.New("prompt is too long")); return err },
		"Handoff":         func() error { _, err := zero.Handoff(ctx, nil, ""); return err },
	} {
		require.ErrorIs(t, call(), convo.ErrClosed, name)
	}
	assert.False(t, zero.CompactInBackground(ctx))
	r, err := zero.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	require.NoError(t, zero.Close())

	h := toolTurn(t, windowOf(500, nil), 20)
	r, err = h.CompactIfNeeded(ctx)
	require.NoError(t, err, "a nil context is context.Background")
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

func TestCompactIfNeeded_EndedContext(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("user pressed escape"))

	h := toolTurn(t, windowOf(5000, nil), 20)
	r, err := h.CompactIfNeeded(ended)
	require.NoError(t, err, "nothing is due")
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)

	h = toolTurn(t, windowOf(500, convo.Summarize{}), 20)
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "user pressed escape")
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
	})
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err, "an ended call leaves nothing behind")
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

func TestCompactIfNeeded_NothingWillEver(t *testing.T) {
	var out bytes.Buffer
	opts := bare()
	opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	h := tour(t, opts)
	for range 3 {
		requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
	}
	assert.Equal(t, 1, strings.Count(out.String(), "this conversation will not be compacted until a provider refuses"), out.String())

	for name, change := range map[string]func(*convo.Options){
		"a window":  func(o *convo.Options) { o.Limits.Window = 10_000 },
		"high":      func(o *convo.Options) { o.Limits.High = 10_000 },
		"a trigger": func(o *convo.Options) { o.Strategy = convo.Chain(convo.Truncate{}, convo.SlidingWindow{KeepLast: 100}) },
	} {
		out.Reset()
		change(opts)
		requireNoFailure(t)(tour(t, opts).CompactIfNeeded(t.Context()))
		assert.Empty(t, out.String(), name)
		opts.Limits, opts.Strategy = convo.Limits{}, nil
	}
}

// Without a window, the first report says what starts a compaction: a refusal.
func TestNew_WithoutAWindow(t *testing.T) {
	h := toolTurn(t, nil, 20)
	mustAppend(t, h, convo.User("go on"))
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	assert.True(t, r.Fits)
	require.ErrorIs(t, r.Cause, convo.ErrNoWindow)
	assert.Contains(t, fmt.Sprint(r), ": without Limits.Window or Limits.High, nothing is compacted until a provider refuses a request as too long; set Limits.Window")
	_, r, err = h.Prepare(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Cause, "only the first report")

	before, sent := h.Len(), 0
	reply, err := h.Run(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if sent++; sent == 1 {
			return convo.Reply{}, errTooLong
		}
		return says("done"), nil
	}, convo.RunOptions{})
	require.NoError(t, err)
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, convo.ReasonOverflow, reply.Reports[0].Reason)
	assert.Less(t, h.Len(), before, "it was compacted then")

	for _, opts := range []*convo.Options{windowOf(100_000, nil), {Limits: convo.Limits{High: 1000}}, {Strategy: convo.SlidingWindow{KeepLast: 100}}} {
		_, r, err := toolTurn(t, opts, 1).Prepare(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.Cause)
	}
}

// A check makes no Status for the Triggers of this package, and calls no Trigger.
func TestCheck_AsksNoTriggerThatCounts(t *testing.T) {
	never := convo.When(func(convo.Status) bool { return false }, convo.Truncate{})
	for _, tt := range []struct {
		strategy convo.CompactionStrategy
		asks     bool
	}{
		{nil, false},
		{convo.SlidingWindow{KeepLast: 10}, false},
		{convo.Chain(convo.ClearMedia{}, convo.SlidingWindow{KeepLast: 10}, convo.Truncate{}), false},
		{convo.Chain(convo.ClearMedia{}, never), true},
		{never, true},
	} {
		h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000}, Strategy: tt.strategy})
		assert.Equal(t, tt.asks, convo.AsksTrigger(h), "%T", tt.strategy)
	}
}

// The check before each request allocates nothing while nothing is due.
func TestCompactIfNeeded_DoesNotAllocate(t *testing.T) {
	for name, opts := range map[string]*convo.Options{
		"a window":  {Limits: convo.Limits{Window: 1 << 30}},
		"no limit":  nil,
		"media":     {Limits: convo.Limits{Window: 1 << 30}, Strategy: convo.ClearMedia{}},
		"a trigger": {Strategy: convo.Chain(convo.SlidingWindow{KeepLast: 1 << 30}, convo.Truncate{})},
	} {
		h := historyOf(t, opts, convo.User("hello"), convo.Assistant("hi"))
		ctx := context.WithValue(t.Context(), ctxKey{}, "a value")
		h.Snapshot()
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.CompactIfNeeded(ctx) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.Prepare(ctx) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.CompactInBackground(ctx) }), name)
	}
}

// The snapshot that Prepare returns was checked against the limit, even if
// OnCompaction appends.
func TestPrepare_AppendedMeanwhile(t *testing.T) {
	var h *convo.History
	times := 1
	opts := windowOf(2000, convo.Truncate{})
	opts.Roles = convo.Relaxed()
	opts.OnCompaction = func(convo.Report) {
		if times > 0 {
			times--
			mustAppend(t, h, convo.User(strings.Repeat("x", 500)), convo.Assistant("I see."), convo.User(strings.Repeat("x", 900)), convo.Assistant("so"))
		}
	}
	h = toolTurn(t, opts, 20)
	snap, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Fits)
	assert.LessOrEqual(t, snap.Tokens()*9/8, 2000, "it has looked again")

	times = 1000
	mustAppend(t, h, convo.User(strings.Repeat("x", 900)), convo.Assistant("x"), convo.User(strings.Repeat("x", 600)))
	snap, r, err = h.Prepare(t.Context())
	if snap.Tokens()*9/8 > 2000 {
		require.Error(t, err)
		assert.False(t, r.Fits)
	}
}

func TestCompact_FocusAfterRollback(t *testing.T) {
	h := toolTurn(t, windowOf(0, convo.Truncate{}), 5)
	at := h.Snapshot()
	for range 10 {
		mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("so ", 100)))
	}
	r, err := h.Compact(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Rollback(at))
	r, err = h.Compact(t.Context(), "x")
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome, "the rollback has undone the first")
}

// A compaction after the final answer, failed or not, puts nothing behind it: it is
// still the user's turn.
func TestCompact_FinalAnswerStaysNewest(t *testing.T) {
	for name, with := range map[string]convo.Summarizer{"applied": canned("short"), "failed": broken(new(int))} {
		t.Run(name, func(t *testing.T) {
			h := toolTurn(t, windowOf(0, convo.Summarize{With: with, MaxTokens: 100, Window: -1}), 20)
			before := h.Snapshot()
			final, _ := before.At(before.Len() - 1)
			r, err := h.Compact(t.Context(), "")
			assert.Equal(t, name, r.Outcome.String())
			assert.Equal(t, name == "failed", err != nil)
			now := h.Snapshot()
			newest, _ := now.At(now.Len() - 1)
			assert.Equal(t, final, newest)
			for _, e := range now.All() {
				_, there := before.Find(e.ID)
				assert.True(t, there, "entry %d was put in", e.ID)
			}
			_, err = h.Append(convo.Assistant("again"))
			require.Error(t, err, "it is not the model's turn")
			mustAppend(t, h, convo.User("thanks"))
		})
	}
}

// Messages are told apart by ID, not by content: of equal ones none is lost.
func TestCompact_EqualMessagesAllStay(t *testing.T) {
	h := historyOf(t, windowOf(3000, convo.Summarize{With: canned("short"), MaxTokens: 100, Window: -1}))
	gone := 0
	for i := range 200 {
		mustAppend(t, h, convo.User("continue"), convo.Assistant("continue"))
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		gone += len(r.Summarised)
		require.Equal(t, 2*i+2, h.Len()+gone)
	}
	require.Positive(t, gone)
	again := reload(t, h, bare())
	assert.Equal(t, idsOf(h.Snapshot()), idsOf(again.Snapshot()))
}

// In a long conversation, few requests change what the one before has sent, so that
// the provider's prompt cache stays good.
func TestPrepare_SeldomRewritesWhatWasSent(t *testing.T) {
	for name, tt := range map[string]struct {
		c    convo.CompactionStrategy
		most int // rewrites of 400 turns
	}{
		"drop":    {convo.Truncate{}, 16},
		"default": {nil, 16},
		"clear":   {convo.Chain(convo.ClearToolResults{KeepLast: 10}, convo.Truncate{}), 30},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, windowOf(40_000, tt.c), convo.System("guide"))
			var last []string
			rewrites, sent, same := 0, 0, 0
			turns := long.Or(300, 500)
			for i := range turns {
				call := callOf("c" + itoa(i))
				mustAppend(t, h, convo.User("go on "+itoa(i)), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 400)), convo.Assistant("ok"))
				s := prepare(t, h)
				texts := textsOf(s)
				shared := 0
				for shared < min(len(texts), len(last)) && texts[shared] == last[shared] {
					shared++
				}
				if i >= 100 { // the window is full
					if shared < len(last) {
						rewrites++
					}
					sent += len(strings.Join(texts, ""))
					same += len(strings.Join(texts[:shared], ""))
				}
				last = texts
			}
			assert.Positive(t, rewrites)
			assert.LessOrEqual(t, rewrites, tt.most*(turns-100)/400)
			assert.Greater(t, float64(same)/float64(sent), 0.93)
		})
	}
}

// Through twenty compactions the first instruction, the rules and the pins stay where
// they are, and there is never more than one summary.
func TestCompact_WhatStaysThroughManyCompactions(t *testing.T) {
	for name, c := range map[string]convo.CompactionStrategy{
		"summary": convo.Summarize{With: new(recorder), MaxTokens: 200, Window: -1},
		"default": nil,
		"window":  convo.SlidingWindow{KeepLast: 6, TriggerAt: 20},
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(4000, c)
			opts.PinFirstUser = true
			h := historyOf(t, opts, convo.System("rules"), convo.User("the task: never delete"), convo.Assistant("I see"))
			call := callOf("c")
			pinned := mustAppend(t, h, convo.User("read it"), convo.Assistant("", call), convo.Result(call, "the key is 7"))
			require.NoError(t, h.Pin(pinned))
			mustAppend(t, h, convo.Assistant("read"))
			applied := 0
			for i := 0; applied < 20 && i < 2000; i++ {
				mustAppend(t, h, convo.User("question "+itoa(i)), convo.Assistant(strings.Repeat("a", 300)))
				r, err := h.CompactIfNeeded(t.Context())
				require.NoError(t, err)
				if r.Outcome != convo.OutcomeApplied {
					continue
				}
				applied++
				msgs := h.Snapshot().Messages()
				index := func(text string) int {
					return slices.IndexFunc(msgs, func(m convo.Message) bool { return m.Text() == text })
				}
				order := []int{index("rules"), index("the task: never delete"), index("the key is 7"), index("question " + itoa(i))}
				require.Zero(t, order[0])
				require.True(t, slices.IsSorted(order), "%v", order)
				require.Positive(t, order[1])
				require.Equal(t, "c", msgs[order[2]-1].ToolCalls()[0].ID, "with its call")
				summaries := 0
				for _, m := range msgs {
					if strings.Contains(m.Text(), "<summary key=") {
						summaries++
						require.Equal(t, convo.RoleUser, m.Role)
					}
				}
				require.LessOrEqual(t, summaries, 1)
				require.Equal(t, name != "window", summaries == 1)
			}
			assert.Equal(t, 20, applied)
		})
	}
}

// A request below the marks is left alone, and nothing is counted for the check.
func TestPrepare_DoesNothingBelowTheMarks(t *testing.T) {
	for name, c := range plainStrategies() {
		if name == "window" || name == "turns" || name == "when" { // they are due by count, or always
			continue
		}
		counted := 0
		opts := windowOf(1_000_000, c)
		opts.Tokenizer = convo.TokenizerFunc(func(s string) int { counted++; return len(s) })
		h := hardTalk(t, opts, 16)
		mustAppend(t, h, convo.Assistant("", callOf("open")))
		counted = 0
		unchanged(t, h, func() {
			s, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
			assert.Equal(t, h.Len(), s.Len())
			assert.False(t, h.CompactInBackground(t.Context()))
		})
		assert.Zero(t, counted, "the check counts nothing anew")
	}
}

// A strategy whose edit never fits is not told of a snapshot that nobody gave.
func TestCompact_StaleTwice(t *testing.T) {
	var h *convo.History
	h = chatOf(t, windowOf(0, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (e convo.Edit, err error) {
		for x := range s.Exchanges() {
			if !x.Floor {
				e.Drop = append(e.Drop, x.IDs()...)
			}
		}
		_, err = h.Rewind(2)
		return e, err
	})), 16, 10)
	r, err := h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrStale)
	require.EqualError(t, err, "convo: the conversation changed while the strategy ran, so that its edit no longer fits; compact again")
	assert.Equal(t, convo.OutcomeStale, r.Outcome)
}

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
	assert.Empty(t, r.Dropped, "the user's first message stays")
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
