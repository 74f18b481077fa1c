package convo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// planOf returns what a strategy leaves of a snapshot: the IDs that stay, with a
// mark at those that are cleared.
func planOf(t *testing.T, c convo.CompactionStrategy, s *convo.Snapshot, g convo.Goal) (string, *convo.Snapshot) {
	t.Helper()
	e, err := c.Compact(t.Context(), s, g)
	if err != nil {
		return err.Error(), s
	}
	next, err := s.With(e)
	require.NoError(t, err)
	var b strings.Builder
	if sum, ok := next.Summary(); ok {
		fmt.Fprintf(&b, "sum%v ", sum.Covers)
	}
	for _, x := range next.All() {
		fmt.Fprintf(&b, "%d", x.ID)
		for _, r := range x.Message.ToolResults() {
			if r.Cleared {
				b.WriteByte('c')
			}
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String()), next
}

// plainStrategies returns strategies that need no model, by name.
func plainStrategies() map[string]convo.CompactionStrategy {
	return map[string]convo.CompactionStrategy{
		"truncate":     convo.Truncate{},
		"window":       convo.SlidingWindow{Keep: 10},
		"turns":        convo.Chain(convo.SlidingWindow{Turns: 2}, convo.Truncate{}),
		"keep last":    convo.Summarize{KeepLast: 8},
		"keep turns":   convo.Chain(convo.Summarize{KeepTurns: 4, KeepTokens: 300}, convo.Truncate{}),
		"clear":        convo.ClearToolResults{MinFreed: -1},
		"extract":      convo.Summarize{},
		"clear, drop":  convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
		"when":         convo.When(func(convo.Status) bool { return true }, convo.Truncate{}),
		"when, drop":   convo.Chain(convo.When(nil, convo.ClearToolResults{}), convo.Truncate{}),
		"clear, sum":   convo.Chain(convo.ClearToolResults{}, convo.Summarize{}),
		"all of them":  convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{KeepTokens: 400}, convo.Truncate{}),
		"summary only": convo.Summarize{KeepTokens: -1},
	}
}

func TestStrategies_EndedContextAndEmpty(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range plainStrategies() {
		for _, s := range []*convo.Snapshot{new(convo.Snapshot), convo.NewSnapshot(nil), historyOf(t, nil).Snapshot()} {
			_, err := c.Compact(t.Context(), s, convo.Goal{})
			require.ErrorIs(t, err, convo.ErrNoGain, name)
		}
		e, err := c.Compact(ended, toolTurn(t, nil, 30).Snapshot(), convo.Goal{Target: 100, MinFree: 1})
		if err == nil {
			assert.Nil(t, e.Summary, "%s summarises after the end", name)
		}
	}
}

// A strategy may use the Goal it was given after the compaction is over.
func TestGoal_IsOfUseLater(t *testing.T) {
	var kept convo.Goal
	h := toolTurn(t, windowOf(0, convo.StrategyFunc(func(_ context.Context, _ *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		kept = g
		return convo.Edit{}, nil
	})), 20)
	r, err := h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	kept.Target = 500
	e, err := convo.Chain(convo.Summarize{}, convo.Truncate{}).Compact(t.Context(), h.Snapshot(), kept)
	require.NoError(t, err)
	assert.NotEmpty(t, e.Drop)
	assert.Empty(t, r.Links)
}

func TestTrigger(t *testing.T) {
	// A trigger by time, as a user would write it.
	now := time.Now()
	idle := idleTrigger{Truncate: convo.Truncate{}, now: func() time.Time { return now }}
	h := toolTurn(t, windowOf(0, idle), 20)
	before := h.Len()
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	now = now.Add(time.Hour)
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Less(t, h.Len(), before)
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "due again, and nothing has changed")
}

// idleTrigger drops the older half when nothing was appended for half an hour.
type idleTrigger struct {
	convo.Truncate
	now func() time.Time
}

func (i idleTrigger) Due(s convo.Status) bool { return i.now().Sub(s.LastAppend) > 30*time.Minute }

// Whatever a strategy cuts, what stays could be appended again message by message
// under Strict, no tool round is split, and the newest user message is there.
func TestStrategies_LeaveValidRolesAndPairs(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			whole := hardTalk(t, windowOf(0, c), 16)
			applied := 0
			for window := 300; window < 9000; window += 150 {
				opts := windowOf(window, c)
				h, err := convo.Restore(whole.Snapshot(), opts)
				require.NoError(t, err)
				r, err := h.CompactIfNeeded(t.Context())
				if err != nil {
					assert.False(t, r.Fits)
					assert.Equal(t, whole.Len(), h.Len())
					continue
				}
				if r.Outcome == convo.OutcomeApplied {
					applied++
				}
				s := h.Snapshot()
				checkPairs(t, s)
				again := historyOf(t, nil)
				for _, e := range s.All() { // as a new conversation, under Strict
					if _, err := again.Append(e.Message); err != nil {
						t.Fatalf("window %d: %v leaves %v", window, err, idsOf(s))
					}
				}
				first, _ := s.At(s.Len() - 1)
				assert.Equal(t, "now this", first.Message.Text(), "the newest user message")
			}
			assert.Positive(t, applied)
		})
	}
}

// A turn that alone is too long is cut between its tool rounds, and what it is about
// stays. Each compaction makes room for many rounds.
func TestStrategies_CutInsideALongTurn(t *testing.T) {
	for name, c := range map[string]func(*recorder) convo.CompactionStrategy{
		"summary": func(rec *recorder) convo.CompactionStrategy {
			return convo.Summarize{With: rec, MaxTokens: 500, Window: -1}
		},
		"truncate": func(*recorder) convo.CompactionStrategy { return convo.Truncate{} },
		"default":  func(*recorder) convo.CompactionStrategy { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			rec := new(recorder)
			h := historyOf(t, windowOf(50_000, c(rec)), convo.User("hi"), convo.Assistant("hello"), convo.User("do it all"))
			applied := 0
			prepare := func() {
				s, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				if r.Outcome == convo.OutcomeApplied {
					applied++
				}
				require.LessOrEqual(t, h.Status().Upper, 50_000)
				require.Contains(t, textsOf(s), "do it all")
			}
			for i := range 200 {
				call := callOf("c" + itoa(i))
				mustAppend(t, h, convo.Assistant("", call))
				prepare()
				mustAppend(t, h, convo.Result(call, strings.Repeat("x", 1000)))
				prepare()
			}
			assert.Positive(t, applied)
			assert.LessOrEqual(t, applied, 10, "of 225,000 tokens, 25,000 go each time")
			for _, req := range rec.requests {
				assert.Greater(t, len(req.Messages), 20)
			}
		})
	}
}

// A strategy is told how far to go, and a history twice too large keeps half of its
// tokens.
func TestGoal_SaysHowFarToCut(t *testing.T) {
	var goal convo.Goal
	own := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		goal = g
		var e convo.Edit
		left := s.Tokens()
		for x := range s.Exchanges() {
			if !x.Floor && left > g.Target {
				e.Drop = append(e.Drop, x.IDs()...)
				left -= x.Tokens
			}
		}
		return e, nil
	})
	for name, c := range map[string]convo.CompactionStrategy{"own": own, "truncate": convo.Truncate{}} {
		h := toolTurn(t, windowOf(20_000, c), 200)
		requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
		assert.LessOrEqual(t, h.Status().Upper, 10_000, name)
		assert.Greater(t, h.Status().Upper, 10_000-130, "%s goes further than the next exchange", name)
	}
	assert.Equal(t, convo.ReasonHigh, goal.Reason)
	assert.Equal(t, 10_000*8/9, goal.Target)
	assert.Positive(t, goal.MinFree)
	assert.Equal(t, 3, goal.Count("abc"))
}

// The newest user message and the round that follows it stay, with more parallel
// results than the tail is to hold, and with a call that was never answered.
func TestStrategies_KeepTheNewestPrompt(t *testing.T) {
	var calls []convo.ToolCall
	for i := range 12 {
		calls = append(calls, callOf("c"+itoa(i)))
	}
	for name, c := range map[string]convo.CompactionStrategy{
		"summary": convo.Summarize{With: canned("short"), MaxTokens: 100, Window: -1, KeepTokens: -1},
		"window":  convo.SlidingWindow{Keep: 1},
		"drop":    convo.Truncate{},
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(0, c)
			opts.Roles = convo.Relaxed()
			h := historyOf(t, opts, convo.System("SYS"), convo.User("old"), convo.Assistant(strings.Repeat("a", 2000)),
				convo.User("PROMPT"), convo.Assistant("", calls...))
			for _, call := range calls[:11] {
				mustAppend(t, h, convo.Result(call, strings.Repeat("r", 100)))
			}
			compact := func(newest ...string) {
				t.Helper()
				r, err := h.Compact(t.Context(), "")
				require.NoError(t, err)
				require.Equal(t, convo.OutcomeApplied, r.Outcome)
				texts := textsOf(h.Snapshot())
				assert.Equal(t, newest, texts[len(texts)-len(newest):])
				checkPairs(t, h.Snapshot())
			}
			compact(append([]string{"PROMPT", ""}, slices.Repeat([]string{strings.Repeat("r", 100)}, 11)...)...)
			assert.Equal(t, 1, h.Status().OpenCalls)

			mustAppend(t, h, convo.User("NEWER PROMPT"), convo.Assistant("on it")) // the open call is answered by that
			compact("NEWER PROMPT", "on it")
		})
	}
}

// Calls and results stay together where call ids are reused, and a result without
// text is an answer like any other.
func TestStrategies_ReusedCallIDsAndEmptyResults(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, windowOf(0, c), convo.User("the task"))
			for i := range 40 {
				call := convo.ToolCall{ID: "call_0", Name: "tool", Arguments: fmt.Sprintf(`{"i":%d}`, i)}
				text := "" // of every third, and of the newest
				if i%3 > 0 {
					text = call.Arguments + strings.Repeat("x", 200)
				}
				mustAppend(t, h, convo.Assistant("", call), convo.Result(call, text))
			}
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
			args := ""
			rounds := 0
			for _, e := range h.Snapshot().All() {
				for _, call := range e.Message.ToolCalls() {
					require.Empty(t, args, "a call without its result")
					args = call.Arguments
				}
				for _, res := range e.Message.ToolResults() {
					require.NotEmpty(t, args, "a result without its call")
					if text := res.Text(); text != "" && !res.Cleared {
						assert.True(t, strings.HasPrefix(text, args), "%s answers %s", text[:10], args)
					}
					args = ""
					rounds++
				}
			}
			assert.Empty(t, args)
			assert.Positive(t, rounds)
			newest, _ := h.Snapshot().At(h.Len() - 1)
			assert.EqualValues(t, 81, newest.ID, "the newest message, an empty result")
		})
	}
}

// A call whose tool is still running, or waits for an approval, stays with its round.
func TestStrategies_LeaveOpenCalls(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			h := toolTurn(t, windowOf(2000, c), 20)
			mustAppend(t, h, convo.User("deploy it"))
			a, b := callOf("approve"), callOf("build")
			mustAppend(t, h, convo.Assistant("wait", a, b), convo.Result(b, strings.Repeat("b", 300)))
			open := idsOf(h.Snapshot())[h.Len()-3:]
			r, err := h.CompactIfNeeded(t.Context()) // in the middle of the round
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
			ids := idsOf(h.Snapshot())
			assert.Equal(t, open, ids[len(ids)-3:])
			assert.Equal(t, 1, h.Status().OpenCalls)
			newest, _ := h.Snapshot().Find(open[2])
			assert.False(t, newest.Message.ToolResults()[0].Cleared)
			mustAppend(t, h, convo.Result(a, "approved"), convo.Assistant("deployed"))
			checkPairs(t, h.Snapshot())
		})
	}
}

// An assistant message that stays is exactly as it was, its signed reasoning and its
// calls included.
func TestStrategies_KeepReasoningWordForWord(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			whole := hardTalk(t, windowOf(0, c), 30)
			h, err := convo.Restore(whole.Snapshot(), windowOf(8000, c))
			require.NoError(t, err)
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
			signed := 0
			for _, e := range h.Snapshot().All() {
				if e.Message.Role != convo.RoleAssistant {
					continue
				}
				before, _ := whole.Snapshot().Find(e.ID)
				require.Equal(t, before.Message, e.Message)
				if e.Message.Reasoning() != "" {
					signed++
				}
			}
			if name != "summary only" && name != "window" {
				assert.Positive(t, signed)
			}
		})
	}
}

func TestClearToolResults_SeveralInOneMessage(t *testing.T) {
	long := strings.Repeat("x", 92)
	result := func(id, text string, cleared bool) convo.Part {
		return convo.ToolResult{CallID: id, Cleared: cleared, Parts: []convo.Part{convo.Text(text)}}
	}
	h := historyOf(t, bare(), convo.User("the task"), convo.Assistant("", callOf("a"), callOf("b"), callOf("c"), callOf("d")),
		convo.Message{Role: convo.RoleTool, Parts: []convo.Part{result("a", "short", false), result("b", long, true), result("c", long, false), result("d", long, false)}},
		convo.Assistant("done"))
	e, err := convo.ClearToolResults{KeepLast: -1}.Compact(t.Context(), h.Snapshot(), convo.Goal{})
	require.NoError(t, err)
	assert.Equal(t, convo.Edit{Clear: []convo.Clear{{ID: 3, CallID: "c"}, {ID: 3, CallID: "d"}}}, e)
}

// The name of a StrategyFunc is the one that reports show.
func TestStrategyFunc_Named(t *testing.T) {
	f := convo.StrategyFunc(convo.Truncate{}.Compact)
	for want, c := range map[string]convo.CompactionStrategy{"func": f, "mine": f.Named("mine")} {
		r, err := toolTurn(t, windowOf(1000, c), 20).CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, r.Strategy)
	}
	assert.Equal(t, "func", f.Named("").Name())
}

// A strategy that says impossible things of its work is not believed: a negative
// number counts as 0, and a Usage that no provider can have reported is ignored.
func TestWork_OutOfRange(t *testing.T) {
	usage := convo.Usage{Input: 10, CacheRead: 4, Output: 2}
	for name, tt := range map[string]struct{ work, want convo.Work }{
		"in range":            {convo.Work{Calls: 2, Usage: usage, Unread: 7}, convo.Work{Calls: 2, Usage: usage, Unread: 7}},
		"not kept":            {convo.Work{NotKept: 3}, convo.Work{NotKept: 3}},
		"less than none kept": {convo.Work{NotKept: -3}, convo.Work{}},
		"calls":               {convo.Work{Calls: -3, Usage: usage, Unread: 7}, convo.Work{Usage: usage, Unread: 7}},
		"unread":              {convo.Work{Calls: 2, Usage: usage, Unread: -1}, convo.Work{Calls: 2, Usage: usage}},
		"input":               {convo.Work{Calls: 2, Usage: convo.Usage{Input: -1}}, convo.Work{Calls: 2}},
		"output":              {convo.Work{Calls: 2, Usage: convo.Usage{Input: 10, Output: -1}}, convo.Work{Calls: 2}},
		"more cache than all": {convo.Work{Calls: 2, Usage: convo.Usage{Input: 10, CacheRead: 6, CacheWrite: 5}}, convo.Work{Calls: 2}},
	} {
		for _, chained := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", chained), func(t *testing.T) {
				work := tt.work
				c := fixed(convo.Edit{Drop: []convo.ID{3, 4}, Work: &work})
				if chained {
					c = convo.Chain(c)
				}
				r, err := toolTurn(t, windowOf(0, c), 20).Compact(t.Context(), "")
				require.NoError(t, err)
				require.Equal(t, convo.OutcomeApplied, r.Outcome)
				assert.Equal(t, tt.want, convo.Work{Calls: r.Calls, Usage: r.Usage, Unread: r.Unread, NotKept: r.NotKept})
				for _, l := range r.Links {
					assert.Equal(t, tt.want.Calls, l.Calls)
				}
				assert.Equal(t, tt.work, work, "what the strategy holds is not written to")
			})
		}
	}
}

// A hostileError panics when it is asked what it wraps, and a circularError wraps
// itself.
type (
	hostileError  struct{}
	circularError struct{}
)

func (hostileError) Error() string      { return "hostile" }
func (hostileError) Unwrap() error      { panic("Unwrap") }
func (circularError) Error() string     { return "circular" }
func (e circularError) Unwrap() error   { return e }
func (e circularError) Is(_ error) bool { return true } // so that errors.Is ends

// Errors of the caller's code are looked at with care: their methods may panic.
func TestErrors_WhoseMethodsPanic(t *testing.T) {
	for _, hostile := range []error{hostileError{}, circularError{}} {
		fails := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, hostile })
		summarizer := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) { return convo.Summary{}, hostile })
		for name, c := range map[string]convo.CompactionStrategy{
			"alone": fails, "in a chain": convo.Chain(fails), "of a summarizer": convo.Summarize{With: summarizer, Window: -1},
		} {
			h := toolTurn(t, windowOf(1000, c), 20)
			_, r, err := h.Prepare(t.Context())
			require.Error(t, err, name)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome, name)
			assert.ErrorContains(t, err, hostile.Error(), name)
			require.True(t, h.CompactInBackground(t.Context()), name)
			_, err = h.Wait(t.Context())
			require.NoError(t, err, name)
		}
		opts := windowOf(1000, convo.Chain(fails, convo.Truncate{}))
		h := toolTurn(t, opts, 20)
		_, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		_, _, err = h.Recover(t.Context(), h.Snapshot(), hostile)
		require.Error(t, err)
		mustAppend(t, h, convo.User("more"))
		_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, hostile })
		require.ErrorContains(t, err, hostile.Error())
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(hostile)
		_, err = h.Compact(ctx, "")
		require.Error(t, err)
		_, err = h.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, nil })
		require.Error(t, err)
	}
}

// A strategy that has called a model has not declined, whatever its error wraps.
func TestCompactionStrategy_DeclinesWithoutACall(t *testing.T) {
	for calls, want := range []convo.Outcome{convo.OutcomeDeclined, convo.OutcomeFailed} {
		for _, cause := range []error{convo.ErrNoGain, convo.ErrBreaker} {
			c := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
				return convo.Edit{Work: &convo.Work{Calls: calls}}, fmt.Errorf("a History inside: %w", cause)
			})
			r, err := toolTurn(t, windowOf(4000, c), 20).Compact(t.Context(), "")
			assert.Equal(t, want, r.Outcome)
			require.ErrorIs(t, err, cause)
			r, err = toolTurn(t, windowOf(4000, convo.Chain(c, convo.Truncate{})), 20).Compact(t.Context(), "")
			require.NoError(t, err)
			assert.Equal(t, want, r.Links[0].Outcome)
		}
	}
}

// The error of a strategy says what it is about.
func TestCompactionStrategy_ErrorText(t *testing.T) {
	boom := errors.New("boom")
	c := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, boom }).Named("mine")
	_, r, err := toolTurn(t, windowOf(1000, c), 20).Prepare(t.Context())
	require.ErrorIs(t, err, boom)
	require.Equal(t, err, r.Cause)
	require.EqualError(t, err, "convo: cannot fit: 2,427 tokens exceed limit 1,000; strategy mine: boom; end the strategy with Truncate in a Chain, or raise Limits.Window")
	_, err = toolTurn(t, windowOf(4000, c), 20).Compact(t.Context(), "")
	require.EqualError(t, err, "convo: strategy mine: boom")
}
