package convo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/callid"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
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
// a compaction that was applied, declined or not needed.
func requireNoFailure(t testing.TB) func(convo.Report, error) {
	return func(r convo.Report, err error) {
		t.Helper()
		require.NoError(t, err)
		require.NotContains(t, []convo.Outcome{convo.OutcomeFailed, convo.OutcomeStale}, r.Outcome, "%v", r.Cause)
	}
}

// requireFailed checks what Prepare returned when the compaction failed
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

func TestPrepare_Marks(t *testing.T) {
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
			r, err := reportOf(fork.Prepare(t.Context()))
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
				again, err := reportOf(fork.Prepare(t.Context()))
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

func TestPrepare_FloorLeavesTooLittle(t *testing.T) {
	calls := 0
	summarizer := convo.Summarize{With: broken(&calls)}
	h := toolTurn(t, windowOf(0, convo.Chain(summarizer, convo.Truncate{})), 8) // 840 bytes
	require.NoError(t, h.Pin(4, 6, 8, 10, 12, 14))                              // 610 of them

	// Within the limit there is too little to gain, and nothing runs.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 2000, Reserve: -1, High: 900, Low: 400, MinFree: 300, Soft: 800}))
	unchanged(t, h, func() {
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
		assert.Equal(t, convo.ErrNoGain, r.Cause)
		assert.Empty(t, r.Strategy)
		assert.True(t, r.Fits)
	})

	// Above it, what needs no model does what can be done.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 900, Reserve: -1, Low: 400, MinFree: 300, Soft: 800}))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.Link{
		{Strategy: "summarize", Outcome: convo.OutcomeDeclined, Cause: convo.ErrNoGain},
		{Strategy: "truncate", Outcome: convo.OutcomeApplied},
	}, r.Links)
	assert.Zero(t, calls, "no model was called")
}

func TestPrepare_AboveTheLimit(t *testing.T) {
	// A strategy that frees something, and not enough.
	timid := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		e, _ := s.At(2)
		f, _ := s.At(3)
		return convo.Edit{Drop: []convo.ID{e.ID, f.ID}}, nil
	})
	h := toolTurn(t, windowOf(500, timid), 20)
	unchanged(t, h, func() {
		r, err := reportOf(h.Prepare(t.Context()))
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
		r, err := reportOf(h.Prepare(t.Context()))
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
		"Prepare":  func() error { _, _, err := zero.Prepare(ctx); return err },
		"Compact":  func() error { _, err := zero.Compact(ctx, ""); return err },
		"MakeRoom": func() error { _, _, err := zero.MakeRoom(ctx, 1); return err },
		"Recover":  func() error { _, _, err := zero.Recover(ctx, nil, errors.New("prompt is too long")); return err },
		"Handoff":  func() error { _, err := zero.Handoff(ctx, nil, ""); return err },
	} {
		require.ErrorIs(t, call(), convo.ErrClosed, name)
	}
	assert.False(t, zero.CompactInBackground(ctx))
	r, err := zero.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	require.NoError(t, zero.Close())

	h := toolTurn(t, windowOf(500, nil), 20)
	r, err = reportOf(h.Prepare(ctx))
	require.NoError(t, err, "a nil context is context.Background")
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

func TestPrepare_EndedContext(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("user pressed escape"))

	h := toolTurn(t, windowOf(5000, nil), 20)
	r, err := reportOf(h.Prepare(ended))
	require.NoError(t, err, "nothing is due")
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)

	h = toolTurn(t, windowOf(500, convo.Summarize{}), 20)
	unchanged(t, h, func() {
		r, err := reportOf(h.Prepare(ended))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "user pressed escape")
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
	})
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err, "an ended call leaves nothing behind")
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

func TestPrepare_NothingWillEver(t *testing.T) {
	var out bytes.Buffer
	opts := bare()
	opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
	h := tour(t, opts)
	for range 3 {
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	}
	assert.Equal(t, 1, strings.Count(out.String(), "this conversation will not be compacted until a provider refuses"), out.String())

	for name, change := range map[string]func(*convo.Options){
		"a window":  func(o *convo.Options) { o.Limits.Window = 10_000 },
		"high":      func(o *convo.Options) { o.Limits.High = 10_000 },
		"a trigger": func(o *convo.Options) { o.Strategy = convo.Chain(convo.Truncate{}, convo.SlidingWindow{KeepLast: 100}) },
	} {
		out.Reset()
		change(opts)
		requireNoFailure(t)(reportOf(tour(t, opts).Prepare(t.Context())))
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
func TestPrepare_DoesNotAllocate(t *testing.T) {
	for name, opts := range map[string]*convo.Options{
		"a window":  {Limits: convo.Limits{Window: 1 << 30}},
		"no limit":  nil,
		"media":     {Limits: convo.Limits{Window: 1 << 30}, Strategy: convo.ClearMedia{}},
		"a trigger": {Strategy: convo.Chain(convo.SlidingWindow{KeepLast: 1 << 30}, convo.Truncate{})},
	} {
		h := historyOf(t, opts, convo.User("hello"), convo.Assistant("hi"))
		ctx := context.WithValue(t.Context(), ctxKey{}, "a value")
		h.Snapshot()
		assert.Zero(t, testing.AllocsPerRun(100, func() { reportOf(h.Prepare(ctx)) }), name)
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
		r, err := reportOf(h.Prepare(t.Context()))
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
				r, err := reportOf(h.Prepare(t.Context()))
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

func TestMakeRoom_Window(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	total := h.Status().Upper

	res, r, err := h.MakeRoom(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "room enough")

	assert.Equal(t, total, h.Status().Upper)
	assert.Equal(t, 3000, h.Status().Limit, "the limit is lower until Release")
	assert.Equal(t, 3000, h.Status().High)

	second, r, err := h.MakeRoom(t.Context(), 2000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonRoom, r.Reason)
	assert.LessOrEqual(t, h.Status().Upper, 1000, "further than low water, where n needs it")
	assert.Equal(t, 1000, h.Status().Limit)

	res.Release()
	res.Release()
	assert.Equal(t, 2000, h.Status().Limit)
	second.Release()
	assert.Equal(t, 4000, h.Status().Limit)

	// To low water, not just as far as n needs.
	h = toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	_, r, err = h.MakeRoom(t.Context(), 4000-total+1)
	require.NoError(t, err)
	assert.LessOrEqual(t, r.TokensAfter, 2000)
}

func TestMakeRoom_Fails(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	unchanged(t, h, func() {
		for _, tt := range []struct {
			n     int
			check func(error)
		}{
			{-1, func(err error) {
				var v *convo.ValueError
				require.ErrorAs(t, err, &v)
				assert.Equal(t, "MakeRoom", v.Name)
			}},
			{3990, func(err error) {
				var floor *convo.FloorError
				require.ErrorAs(t, err, &floor)
				assert.Equal(t, 20, floor.Floor)
				assert.Equal(t, 3990, floor.Room)
				assert.Equal(t, 4000, floor.Limit)
				assert.ErrorContains(t, err, "cannot fit: 20 protected + 3,990 reserved tokens exceed limit 4,000")
			}},
		} {
			res, r, err := h.MakeRoom(t.Context(), tt.n)
			assert.Nil(t, res)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			tt.check(err)
		}
	})

	// A strategy that frees too little: nothing is deleted, nothing reserved.
	timid := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})
	h = toolTurn(t, windowOf(4000, timid), 20)
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 3000)
		var limit *convo.LimitError
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, 3000, limit.Room)
		assert.Equal(t, 4000, limit.Limit)
	})
	var none *convo.Reservation
	none.Release() // of a MakeRoom that failed
}

func TestMakeRoom_NoLimit(t *testing.T) {
	h := tour(t, nil)
	res, r, err := h.MakeRoom(t.Context(), 1<<30)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	res.Release()
}

func TestMakeRoom_Budget(t *testing.T) {
	pool := convo.NewBudget(5000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	charge := pool.Used()

	res, r, err := h.MakeRoom(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	assert.Equal(t, charge+1000, pool.Used())
	assert.Zero(t, h.Status().Limit, "out of the pool, not of the window")

	other, err := pool.Reserve(1000)
	require.NoError(t, err)
	big, r, err := h.MakeRoom(t.Context(), 2000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, 4000+h.Status().Upper, pool.Used())
	assert.LessOrEqual(t, pool.Used(), 5000)

	// The pool is too small for floor and n, whatever this History gives up.
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 2500)
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
	})
	big.Release()
	other.Release()
	res.Release()
	require.NoError(t, h.Close())
	assert.Zero(t, pool.Used())
}

// Free tokens in the pool do not help a request that does not fit the window.
func TestMakeRoom_AboveTheLimitWithABudget(t *testing.T) {
	pool := convo.NewBudget(100_000)
	opts := windowOf(1000, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	require.Greater(t, h.Status().Upper, 1000)
	res, r, err := h.MakeRoom(t.Context(), 10)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.True(t, r.Fits)
	assert.LessOrEqual(t, h.Status().Upper, 1000)
	assert.Equal(t, h.Status().Upper+10, pool.Used())
	res.Release()
	assert.Equal(t, h.Status().Upper, pool.Used())
}

// The room that MakeRoom made was taken while its strategy ran.
func TestMakeRoom_RoomTakenMeanwhile(t *testing.T) {
	for name, take := range map[string]func(h *convo.History){
		"by another MakeRoom": func(h *convo.History) {
			_, _, err := h.MakeRoom(context.Background(), 700)
			assert.NoError(t, err)
		},
		"by other limits": func(h *convo.History) {
			assert.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h *convo.History
			once := false
			h = toolTurn(t, windowOf(4000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				if !once {
					once = true
					take(h)
				}
				// It would have been enough, had the room not been taken.
				return convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, nil
			})), 20)
			entries := h.Len()
			res, r, err := h.MakeRoom(t.Context(), 2000)
			var limit *convo.LimitError
			require.ErrorAs(t, err, &limit)
			assert.Nil(t, res)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			assert.Equal(t, entries, h.Len())
		})
	}
}

func TestMakeRoom_PoolTooSmall(t *testing.T) {
	pool := convo.NewBudget(1000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 0)
	held, err := pool.Reserve(900)
	require.NoError(t, err)
	_, _, err = h.MakeRoom(t.Context(), 500)
	require.ErrorIs(t, err, convo.ErrBudget, "another holder's Release would help")
	var short *convo.BudgetError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, convo.BudgetError{Need: 500, Free: 80}, *short)
	held.Release()
	res, _, err := h.MakeRoom(t.Context(), 500)
	require.NoError(t, err)
	res.Release()

	pool = convo.NewBudget(math.MaxInt)
	_, err = pool.Reserve(math.MaxInt)
	require.NoError(t, err)
	toolTurn(t, &convo.Options{Budget: pool}, 1)
	assert.Equal(t, math.MaxInt, pool.Used())
	assert.Zero(t, pool.Free())
}

// However much is reserved and charged, no sum overflows, and releasing gives
// all of it back.
func TestMakeRoom_NoSumOverflows(t *testing.T) {
	h := toolTurn(t, windowOf(0, nil), 0)
	var held []*convo.Reservation
	for range 2100 {
		res, _, err := h.MakeRoom(t.Context(), math.MaxInt)
		require.NoError(t, err)
		held = append(held, res)
	}
	require.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
	for _, res := range held {
		require.Zero(t, h.Status().Limit)
		res.Release()
	}
	assert.Equal(t, 1000, h.Status().Limit)
}

// A history that is too large is truncated whether or not anybody reserved tokens
// for its messages: its size is what counts.
func TestMakeRoom_TruncatesByTheSizeOfTheHistory(t *testing.T) {
	h := chatOf(t, windowOf(10_000, convo.Truncate{}), 200, 1000)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.LessOrEqual(t, h.Status().Upper, h.Status().Low)

	pool := convo.NewBudget(10_000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h = chatOf(t, opts, 200, 1000)
	_, r, err = h.MakeRoom(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, h.Tokens().Upper+1000, pool.Used())
	assert.LessOrEqual(t, pool.Used(), 10_000)
}

// Dropping entries gives back what the history itself was charged, and nothing that
// others have reserved in the same pool.
func TestMakeRoom_LeavesReservationsOfOthers(t *testing.T) {
	pool := convo.NewBudget(10_000)
	_, err := pool.Reserve(9000)
	require.NoError(t, err)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := chatOf(t, opts, 20, 100)
	require.Greater(t, pool.Used(), 10_000, "overdrawn")

	res, r, err := h.MakeRoom(t.Context(), 100)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, 9000+100+h.Tokens().Upper, pool.Used())
	_, err = h.SplicePrefix(h.Snapshot(), h.Len(), "")
	require.NoError(t, err)
	assert.Equal(t, 9000+100+h.Tokens().Upper, pool.Used())
	require.NoError(t, h.Close())
	res.Release()
	res.Release()
	assert.Equal(t, 9000, pool.Used())
}

// Asking for more than there is at all drops nothing and reserves nothing.
func TestMakeRoom_MoreThanTheTotalDropsNothing(t *testing.T) {
	for _, withPool := range []bool{false, true} {
		opts := windowOf(50_000, convo.Truncate{})
		if withPool {
			opts = windowOf(0, convo.Truncate{})
			opts.Budget = convo.NewBudget(50_000)
		}
		h := chatOf(t, opts, 20, 1000)
		unchanged(t, h, func() {
			res, r, err := h.MakeRoom(t.Context(), 50_001)
			var floor *convo.FloorError
			require.ErrorAs(t, err, &floor)
			assert.Nil(t, res)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		})
		assert.Equal(t, 39, h.Len())
	}
}

// Room is reserved when the very last entry that can go makes it.
func TestMakeRoom_CountsTheLastDrop(t *testing.T) {
	h := chatOf(t, windowOf(400, convo.Truncate{}), 2, 100) // the newest weighs 113
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 400-113+1)
		require.Error(t, err)
	})
	_, _, err := h.MakeRoom(t.Context(), 400-113)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()), "all that could go went")

	assert.Equal(t, 113, h.Status().Limit)
}

// MakeRoom tells apart: there was room, room was made, and there can be no room. Each
// reservation is handed over, to be released.
func TestMakeRoom_SaysWhetherItReserved(t *testing.T) {
	for _, tt := range []struct {
		name     string
		n        int
		outcome  convo.Outcome
		reserved bool
	}{
		{"it just fits", 2862, convo.OutcomeNotNeeded, true},
		{"room was made", 2863, convo.OutcomeApplied, true},
		{"it cannot fit", 4900, convo.OutcomeFailed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := chatOf(t, windowOf(5000, convo.Truncate{}), 10, 100)
			res, r, err := h.MakeRoom(t.Context(), tt.n)
			assert.Equal(t, tt.outcome, r.Outcome)
			assert.Equal(t, tt.reserved, res != nil)
			assert.Equal(t, tt.reserved, err == nil)
			assert.Equal(t, tt.outcome == convo.OutcomeApplied, len(r.Dropped) > 0)
		})
	}

	h := chatOf(t, windowOf(5000, convo.Truncate{}), 2, 100)
	var held []*convo.Reservation
	for range 5 {
		res, _, err := h.MakeRoom(t.Context(), 100)
		require.NoError(t, err)
		held = append(held, res)
	}
	assert.Equal(t, 4500, h.Status().Limit)
	for _, res := range held {

		res.Release()
	}
	assert.Equal(t, 5000, h.Status().Limit)
}

// When somebody else takes the room in the pool that a compaction makes, nothing is
// dropped and the error is ErrBudget.
func TestMakeRoom_RoomTakenByAnotherReserver(t *testing.T) {
	pool := convo.NewBudget(5000)
	var other *convo.Reservation
	held := 0
	opts := windowOf(0, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if other == nil {
			var err error
			held = pool.Free()
			other, err = pool.Reserve(held)
			require.NoError(t, err)
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	unchanged(t, h, func() {
		res, _, err := h.MakeRoom(t.Context(), 3000)
		require.ErrorIs(t, err, convo.ErrBudget)
		assert.Nil(t, res)
	})
	assert.Equal(t, held+h.Tokens().Upper, pool.Used())
	other.Release()
	res, _, err := h.MakeRoom(t.Context(), 3000)
	require.NoError(t, err)
	assert.Equal(t, 3000+h.Tokens().Upper, pool.Used())
	res.Release()
}

func TestMakeRoom_SaysWhy(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	for _, n := range []int{-1, 0, 10, 2000, 10_000} {
		_, r, _ := h.MakeRoom(t.Context(), n)
		assert.Equal(t, convo.ReasonRoom, r.Reason, "%d", n)
	}
	require.NoError(t, h.Close())
	_, r, err := h.MakeRoom(t.Context(), 1)
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Equal(t, convo.ReasonRoom, r.Reason)
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
}

// What is appended while a strategy plans counts: the room is reserved now.
func TestMakeRoom_GrownMeanwhile(t *testing.T) {
	var h *convo.History
	var at *convo.Snapshot
	calls := 0
	opts := bare()
	opts.Limits = convo.Limits{Window: 1000, Reserve: -1, Low: 100}
	opts.Strategy = convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		var e convo.Edit
		if calls++; calls == 1 { // the edit will be stale
			for x := range s.Exchanges() {
				if !x.Floor {
					e.Drop = append(e.Drop, x.IDs()...)
				}
			}
			return e, h.Rollback(at)
		}
		mustAppend(t, h, convo.User(strings.Repeat("w", 900)), convo.Assistant("a"))
		e.Drop = idsOf(s)[:2]
		return e, nil
	})
	talk := func(turns int) {
		for range turns {
			mustAppend(t, h, convo.User(strings.Repeat("u", 50)), convo.Assistant(strings.Repeat("a", 50)))
		}
	}
	h = historyOf(t, opts)
	talk(4)
	at = h.Snapshot()
	talk(5)
	limit := h.Status().Limit
	res, _, err := h.MakeRoom(t.Context(), 300)
	require.Error(t, err)
	assert.Nil(t, res)
	assert.Equal(t, 2, calls)
	assert.Equal(t, limit, h.Status().Limit, "nothing stays reserved")
}

// The errors of MakeRoom name what was to be reserved, and the bound that the caller
// has set: that of the window, or that of the pool.
func TestMakeRoom_ErrorTexts(t *testing.T) {
	declines := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, nil })
	drops := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})
	for name, tt := range map[string]struct {
		c            convo.CompactionStrategy
		window, pool int
		n            int
		want         []string
		not          string
	}{
		"window":          {declines, 3000, 0, 1000, []string{"2,427 tokens + 1,000 reserved exceed limit 3,000; nothing worth removing; reserve less"}, "after compaction"},
		"window, refused": {drops, 3000, 0, 1000, []string{"2,308 tokens after compaction + 1,000 reserved exceed limit 3,000; reserve less"}, "nothing"},
		"pool":            {declines, 0, 3000, 1000, []string{"budget exhausted: need 1,000 tokens, 573 are free", "nothing worth removing"}, "Window"},
		"pool, refused":   {drops, 0, 3000, 1000, []string{"budget exhausted: need 1,000 tokens, 692 are free"}, "Window"},
		"pool, floor":     {declines, 0, 3000, 5000, []string{"budget exhausted: need 5,000 tokens", "+ 5,000 reserved tokens exceed limit 3,000", "or use a larger Budget"}, "Window"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(tt.window, tt.c)
			if tt.pool > 0 {
				opts.Budget = convo.NewBudget(tt.pool)
			}
			_, r, err := toolTurn(t, opts, 20).MakeRoom(t.Context(), tt.n)
			assert.Equal(t, err, r.Cause)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), tt.not)
			if tt.pool > 0 {
				assert.ErrorIs(t, err, convo.ErrBudget)
			}
		})
	}
}

func askToCompact(id, next string) convo.ToolCall {
	return convo.ToolCall{ID: id, Name: new(convo.History).CompactTool().Name, Arguments: fmt.Sprintf(`{"next":%q}`, next)}
}

// answerCompact returns the result of a call of CompactTool.
func answerCompact(h *convo.History, ctx context.Context, call convo.ToolCall) convo.Message {
	parts, err := h.CompactTool().Run(ctx, call)
	if err != nil {
		return convo.ResultError(call, err)
	}
	return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: call.ID, Name: call.Name, Parts: parts}}}
}

// toldWindow is windowOf with the reports that OnCompaction is given.
func toldWindow(window int, c convo.CompactionStrategy) (*convo.Options, *[]convo.Report) {
	told := new([]convo.Report)
	opts := windowOf(window, c)
	opts.OnCompaction = func(r convo.Report) { *told = append(*told, r) }
	return opts, told
}

func answerOf(t *testing.T, m convo.Message) convo.ToolResult {
	t.Helper()
	require.Equal(t, convo.RoleTool, m.Role)
	require.Len(t, m.ToolResults(), 1)
	return m.ToolResults()[0]
}

func TestCompactTool_ProvidersTakeIt(t *testing.T) {
	for _, w := range []wire.ToolWriter{wire.OpenAIChat{}, wire.OpenAIResponses{}, wire.Anthropic{}, wire.Gemini{}, wire.Converse{}} {
		_, err := w.Tools(new(convo.History).CompactTool().Tool)
		require.NoError(t, err)
	}
}

// The compaction happens while the call and another one are open; both stay, after the
// summary, and so does the result.
func TestAnswerCompact(t *testing.T) {
	var req convo.SummaryRequest
	opts, told := toldWindow(8000, convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, r convo.SummaryRequest) (convo.Summary, error) {
		req = r
		return convo.Summary{Text: "what went before"}, nil
	})}, convo.Truncate{}))
	h := toolTurn(t, opts, 50)
	call, other := askToCompact("c", "write the report in out.md"), callOf("other")
	mustAppend(t, h, convo.User("go on"), convo.Assistant("", call, other))
	before := h.Status()
	require.LessOrEqual(t, before.Upper, before.High, "no compaction is due")

	result := answerCompact(h, t.Context(), call)
	r := answerOf(t, result)
	assert.Equal(t, "c", r.CallID)
	assert.False(t, r.IsError)
	assert.Contains(t, r.Text(), "older messages were removed")
	assert.Equal(t, "write the report in out.md", req.Focus)
	require.Len(t, *told, 1)
	assert.Equal(t, convo.OutcomeApplied, (*told)[0].Outcome)
	assert.Equal(t, convo.ReasonTool, (*told)[0].Reason)
	assert.Equal(t, "tool", (*told)[0].Reason.String())
	assert.LessOrEqual(t, h.Status().Upper, before.Upper/2)
	assert.Equal(t, 2, h.Status().OpenCalls)

	mustAppend(t, h, result, convo.Result(other, "x"))
	s, p, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, p.Outcome)
	msgs := s.Messages()
	assert.Contains(t, msgs[1].Text(), "what went before")
	n := len(msgs)
	assert.Equal(t, []convo.ToolCall{call, other}, msgs[n-3].ToolCalls())
	assert.Equal(t, r, msgs[n-2].ToolResults()[0])

	// Soon after it, too little is new.
	r = answerOf(t, answerCompact(h, t.Context(), askToCompact("d", "go on")))
	assert.False(t, r.IsError)
	assert.Contains(t, r.Text(), "Nothing was removed")
	assert.Equal(t, msgs, h.Snapshot().Messages())
}

// A call that cannot be carried out gets a result that says so, and changes nothing.
func TestAnswerCompact_Refuses(t *testing.T) {
	full := func(t *testing.T, c convo.CompactionStrategy) (*convo.History, *[]convo.Report) {
		opts, told := toldWindow(8000, c)
		return toolTurn(t, opts, 50), told
	}
	const secret = "https://key@host"
	down := convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("503 of " + secret)
	})}, convo.Truncate{})
	unchanged := func(t *testing.T, h *convo.History, ctx context.Context, call convo.ToolCall) convo.ToolResult {
		t.Helper()
		before := h.Snapshot()
		r := answerOf(t, answerCompact(h, ctx, call))
		assert.Same(t, before, h.Snapshot())
		assert.NotContains(t, r.Text(), secret)
		return r
	}

	for args, want := range map[string]string{
		"": "not a JSON object", "x": "not a JSON object", "[]": "not a JSON object", `{"next":1}`: "not a JSON object",
		"{}": "say what you do next", `{"next":" \n"}`: "say what you do next",
	} {
		h, told := full(t, convo.Truncate{})
		r := unchanged(t, h, t.Context(), convo.ToolCall{ID: "c", Name: "compact", Arguments: args})
		assert.True(t, r.IsError, args)
		assert.Contains(t, r.Text(), want, args)
		assert.Empty(t, *told, args)
	}

	t.Run("a summarizer that fails", func(t *testing.T) {
		h, told := full(t, down)
		r := unchanged(t, h, t.Context(), askToCompact("c", "go on"))
		assert.True(t, r.IsError)
		require.Len(t, *told, 1)
		assert.Equal(t, convo.OutcomeFailed, (*told)[0].Outcome)
		assert.ErrorContains(t, (*told)[0].Cause, secret)
		r = unchanged(t, h, t.Context(), askToCompact("c", "go on"))
		assert.Contains(t, r.Text(), "Nothing was removed")
		assert.Zero(t, (*told)[1].Calls, "the breaker is open")
	})
	t.Run("too little to free", func(t *testing.T) {
		opts, _ := toldWindow(8000, convo.Truncate{})
		h := toolTurn(t, opts, 10)
		assert.False(t, unchanged(t, h, t.Context(), askToCompact("c", "go on")).IsError)
		_, err := h.Compact(t.Context(), "")
		require.NoError(t, err, "by hand it would free something")
	})
	t.Run("ctx has ended", func(t *testing.T) {
		h, _ := full(t, convo.Truncate{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.True(t, unchanged(t, h, ctx, askToCompact("c", "go on")).IsError)
	})
	t.Run("closed", func(t *testing.T) {
		h, _ := full(t, convo.Truncate{})
		require.NoError(t, h.Close())
		assert.True(t, unchanged(t, h, t.Context(), askToCompact("c", "go on")).IsError)
		answerOf(t, answerCompact(new(convo.History), t.Context(), askToCompact("c", "go on")))
	})
	t.Run("within a compaction", func(t *testing.T) {
		var h *convo.History
		opts, _ := toldWindow(8000, convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			assert.True(t, answerOf(t, answerCompact(h, ctx, askToCompact("c", "go on"))).IsError)
			return convo.Edit{}, convo.ErrNoGain
		}))
		h = toolTurn(t, opts, 50)
		_, err := h.Compact(t.Context(), "")
		require.ErrorIs(t, err, convo.ErrNoGain)
	})
}

// Above high it is the compaction that Prepare would make, with all links of the chain.
func TestAnswerCompact_WhenDue(t *testing.T) {
	calls := 0
	opts, told := toldWindow(4000, convo.Chain(convo.Summarize{With: broken(&calls)}, convo.Truncate{}))
	h := toolTurn(t, opts, 50)
	mustAppend(t, h, convo.User("go on"), convo.Assistant("", askToCompact("c", "go on")))
	require.Greater(t, h.Status().Upper, h.Status().High)
	r := answerOf(t, answerCompact(h, nil, askToCompact("c", strings.Repeat("é", 5000))))
	assert.False(t, r.IsError)
	assert.Equal(t, convo.ReasonHigh, (*told)[0].Reason)
	assert.Equal(t, convo.OutcomeApplied, (*told)[0].Outcome)
}

// The model asks for a compaction when a part of its work is done.
func ExampleHistory_CompactTool() {
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 6000},
		Strategy: convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{Text: "The user wants a train to Rome. The timetables were read."}, nil
		})},
		OnCompaction: func(r convo.Report) { fmt.Println(r.Outcome, "by", r.Reason) },
	})
	if err != nil {
		log.Fatal(err)
	}
	h.Append(convo.System("You are a travel agent."), convo.User("Find a train to Rome, then book it."))
	for i := range 8 {
		read := convo.ToolCall{ID: callid.New(), Name: "timetable", Arguments: fmt.Sprintf(`{"page":%d}`, i)}
		h.Append(convo.Assistant("", read), convo.Result(read, strings.Repeat("09:10 Rome, 10:10 Bari. ", 30)))
	}

	tool := h.CompactTool() // for RunOptions.Tools; in a loop of your own, for SetTools
	// The model answers:
	call := convo.ToolCall{ID: "c1", Name: "compact", Arguments: `{"next":"Book the 09:10 to Rome."}`}
	h.Append(convo.Assistant("", call))
	result, _ := tool.Run(context.Background(), call)
	h.Append(convo.Result(call, string(result[0].(convo.Text))))

	summary, _ := h.Snapshot().Summary()
	fmt.Println(summary.Text)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// applied by tool
	// The user wants a train to Rome. The timetables were read.
	// 1 system: You are a travel agent.
	// 2 user: Find a train to Rome, then book it.
	// 15 assistant: call timetable({"page":6})
	// 16 tool: result of timetable(09:10 Rome, 10:10 Bari. 09:10 Rome, 10:10 Bari. 09:10 Rome, 10:1… (720 bytes))
	// 17 assistant: call timetable({"page":7})
	// 18 tool: result of timetable(09:10 Rome, 10:10 Bari. 09:10 Rome, 10:10 Bari. 09:10 Rome, 10:1… (720 bytes))
	// 19 assistant: call compact({"next":"Book the 09:10 to Rome."})
	// 20 tool: result of compact(Done: older messages were removed. Go on with what you wanted to… (73 bytes))
}

// ofOptions are the functions that a History calls without a ctx, with what they must not
// call, as Options says. None may call Do or Run. Repair and IsSummary are not among them,
// since Restore and Open call them before there is a History.
var ofOptions = map[string][]string{
	"Tokenizer":       append(slices.Clone(waitForReload), waitForCompaction...),
	"Overheads.Media": append(slices.Clone(waitForReload), waitForCompaction...),
	"Pin":             append(slices.Clone(waitForReload), waitForCompaction...),
	"AfterCompaction": waitForCompaction,
	"Due":             waitForCompaction,
	"Key":             nil,
	"Time":            nil,
	"IsOverflow":      nil,
	"OnCompaction":    {"Wait"},
	"Logger":          nil,
	"Same":            waitForCompaction,
	"Redact":          waitForCompaction,
}

var (
	waitForReload     = []string{"Save", "Reload", "Attach", "Prune"}
	waitForCompaction = []string{"Prepare", "Compact", "MakeRoom", "Recover", "Wait"}
)

// A method that a function of Options calls returns, unless Options says that the function
// must not call it.
func TestOptions_WhatFunctionsMayCall(t *testing.T) {
	methods := map[string]func(*convo.History, context.Context) error{
		"Prepare":  func(h *convo.History, ctx context.Context) error { _, _, err := h.Prepare(ctx); return err },
		"Compact":  func(h *convo.History, ctx context.Context) error { _, err := h.Compact(ctx, ""); return err },
		"MakeRoom": func(h *convo.History, ctx context.Context) error { _, _, err := h.MakeRoom(ctx, 1); return err },
		"Recover": func(h *convo.History, ctx context.Context) error {
			_, _, err := h.Recover(ctx, h.Snapshot(), errors.New("prompt is too long"))
			return err
		},
		"Wait": func(h *convo.History, ctx context.Context) error { _, err := h.Wait(ctx); return err },
		"CompactTool": func(h *convo.History, ctx context.Context) error {
			_, _ = h.CompactTool().Run(ctx, convo.ToolCall{ID: "c", Name: "compact", Arguments: "{}"})
			return ctx.Err()
		},
		"CompactInBackground": func(h *convo.History, ctx context.Context) error { h.CompactInBackground(ctx); return nil },
		"Handoff": func(h *convo.History, ctx context.Context) error {
			_, err := h.Handoff(ctx, convo.Extract{}, "")
			return err
		},
		"Save":   (*convo.History).Save,
		"Reload": func(h *convo.History, ctx context.Context) error { _, _, err := h.Reload(ctx); return err },
		"Attach": func(h *convo.History, ctx context.Context) error {
			return h.Attach(ctx, new(convotest.MemStore), "other")
		},
		"Prune":  func(h *convo.History, ctx context.Context) error { return h.Prune(ctx, time.Time{}) },
		"Append": func(h *convo.History, _ context.Context) error { _, err := h.Append(convo.User("a note")); return err },
		"Queue":  func(h *convo.History, _ context.Context) error { return h.Queue(convo.User("a note")) },
		"Apply": func(h *convo.History, _ context.Context) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1}})
			return err
		},
		"SetSystem": func(h *convo.History, _ context.Context) error { return h.SetSystem(convo.System("be brief")) },
	}
	var called sync.Map
	for of, mustNot := range ofOptions {
		for method, call := range methods {
			var waits atomic.Bool
			synctest.Test(t, func(t *testing.T) {
				var inside atomic.Bool
				everything(t, func(name string, h *convo.History) {
					if name != of || h == nil || waits.Load() || !inside.CompareAndSwap(false, true) {
						return
					}
					defer inside.Store(false)
					called.Store(of, true)
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					if errors.Is(call(h, ctx), context.DeadlineExceeded) {
						waits.Store(true)
					}
				})
			})
			if waits.Load() {
				assert.Contains(t, mustNot, method, of)
			}
		}
		_, isCalled := called.Load(of)
		assert.True(t, isCalled, of)
	}
}

// everything has a History call each function, which calls f with its name.
func everything(t *testing.T, f func(string, *convo.History)) {
	var h *convo.History
	var store convotest.MemStore
	opts := &convo.Options{
		Limits:          convo.Limits{Window: 2000},
		Tokenizer:       convo.TokenizerFunc(func(text string) int { f("Tokenizer", h); return len(text) }),
		Overheads:       convo.Overheads{Media: func(convo.Media) int { f("Overheads.Media", h); return 10 }},
		IsOverflow:      func(error) bool { f("IsOverflow", h); return true },
		Pin:             func(convo.Message) bool { f("Pin", h); return false },
		Key:             func(convo.Message) string { f("Key", h); return "" },
		Time:            func(convo.Message) time.Time { f("Time", h); return time.Time{} },
		AfterCompaction: func(convo.Report) []convo.Message { f("AfterCompaction", h); return nil },
		Redact:          func(m convo.Message) convo.Message { f("Redact", h); return m },
		OnCompaction:    func(convo.Report) { f("OnCompaction", h) },
		Logger:          slog.New(handlerFunc(func() { f("Logger", h) })),
		Strategy: convo.Chain(
			convo.When(func(convo.Status) bool { f("Due", h); return true }, convo.ClearToolResults{
				KeepLast: -1, Same: func(c convo.ToolCall) string { f("Same", h); return c.Arguments },
			}),
			convo.Summarize{With: convo.Extract{}}, convo.Truncate{},
		),
	}
	ctx := t.Context()
	h, err := convo.Open(ctx, &store, "k", opts)
	require.NoError(t, err)
	defer h.Close()
	more := func(h *convo.History) {
		image := convo.Media{MIME: "image/png", URL: "https://example.com/i.png"}
		_, _ = h.Append(convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("look"), image}})
		for _, id := range []string{"1", "2"} {
			_, _ = h.Append(convo.Assistant("", convo.ToolCall{ID: id, Name: "read", Arguments: "{}"}))
			_, _ = h.Append(convo.Result(convo.ToolCall{ID: id, Name: "read"}, strings.Repeat("words ", 50)))
		}
		_, _ = h.Append(convo.Assistant(strings.Repeat("words ", 50)), convo.User("next"), convo.Assistant("done"))
	}
	for range 3 {
		_, _, _ = h.Prepare(ctx) // below the limit, for Due
		more(h)
		_ = h.Save(ctx)
		other, err := convo.Open(ctx, &store, "k", &convo.Options{Roles: convo.Relaxed()})
		require.NoError(t, err)
		more(other)
		_, _ = other.Append(convo.Assistant("two in a row"))
		_ = other.Save(ctx)
		more(h)
		_, _, _ = h.Reload(ctx)
		_ = h.Save(ctx)
		_, _, _ = h.Prepare(ctx)
		_, _, _ = h.Recover(ctx, h.Snapshot(), errors.New("prompt is too long"))
		_, _ = h.Handoff(ctx, convo.Extract{}, "")
		h.CompactInBackground(ctx)
		_, _ = h.Wait(ctx)
	}
}

// A handlerFunc is a slog.Handler without a lock of its own.
type handlerFunc func()

func (handlerFunc) Enabled(context.Context, slog.Level) bool    { return true }
func (f handlerFunc) Handle(context.Context, slog.Record) error { f(); return nil }
func (f handlerFunc) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f handlerFunc) WithGroup(string) slog.Handler             { return f }
