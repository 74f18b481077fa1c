package convo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
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
		"window":       convo.SlidingWindow{KeepLast: 10},
		"turns":        convo.Chain(convo.SlidingWindow{KeepTurns: 2}, convo.Truncate{}),
		"keep last":    convo.Summarize{KeepLast: 8},
		"keep turns":   convo.Chain(convo.Summarize{KeepTurns: 4, KeepTokens: 300}, convo.Truncate{}),
		"clear":        convo.ClearToolResults{MinFree: -1},
		"extract":      convo.Summarize{},
		"clear, drop":  convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
		"when":         convo.When(func(convo.Status) bool { return true }, convo.Truncate{}),
		"when, drop":   convo.Chain(convo.When(nil, convo.ClearToolResults{}), convo.Truncate{}),
		"clear, sum":   convo.Chain(convo.ClearToolResults{}, convo.Summarize{}),
		"all of them":  convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{KeepTokens: 400}, convo.Truncate{}),
		"think, drop":  convo.Chain(convo.ClearThinking{KeepTurns: 2}, convo.Truncate{}),
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
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	now = now.Add(time.Hour)
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Less(t, h.Len(), before)
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "due again, and nothing has changed")
}

// idleTrigger drops the older half when nothing was appended for half an hour.
type idleTrigger struct {
	convo.Truncate
	now func() time.Time
}

func (i idleTrigger) Due(s convo.Status) bool { return i.now().Sub(s.LastAppend) > 30*time.Minute }

// usersInARow is Strict, but a user message may follow another one: the user's words
// stay where the answers leave.
var usersInARow = convo.RolePolicy{UserAfter: []convo.Role{convo.RoleNone, convo.RoleSystem, convo.RoleUser, convo.RoleAssistant, convo.RoleTool}}

// Whatever a strategy cuts, what stays could be appended again message by message,
// no tool round is split, and the newest user message is there.
func TestStrategies_LeaveValidRolesAndPairs(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			whole := hardTalk(t, windowOf(0, c), 16)
			applied := 0
			for window := 300; window < 9000; window += long.Or(450, 150) {
				opts := windowOf(window, c)
				h, err := convo.Restore(whole.Snapshot(), opts)
				require.NoError(t, err)
				r, err := reportOf(h.Prepare(t.Context()))
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
				again := historyOf(t, &convo.Options{Roles: usersInARow})
				for _, e := range s.All() { // as a new conversation
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
			h := historyOf(t, windowOf(50_000, c(rec)), convo.User("hi"), convo.Assistant("hello"))
			task := mustAppend(t, h, convo.User("do it all"))
			applied := 0
			prepare := func() {
				s, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				if r.Outcome == convo.OutcomeApplied {
					applied++
				}
				require.LessOrEqual(t, h.Status().Upper, 50_000)
				require.True(t, containsID(idsOf(s), task), "the user message of the turn")
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
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
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
		"window":  convo.SlidingWindow{KeepLast: 1},
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
			if name == "keep turns" { // all is of the newest turn
				require.ErrorIs(t, err, convo.ErrNoGain)
				return
			}
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
			r, err := reportOf(h.Prepare(t.Context())) // in the middle of the round
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
// calls included. ClearThinking takes out all reasoning of the oldest ones.
func TestStrategies_KeepReasoningWordForWord(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			whole := hardTalk(t, windowOf(0, c), 30)
			h, err := convo.Restore(whole.Snapshot(), windowOf(8000, c))
			require.NoError(t, err)
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
			signed := 0
			for _, e := range h.Snapshot().All() {
				if e.Message.Role != convo.RoleAssistant {
					continue
				}
				before, _ := whole.Snapshot().Find(e.ID)
				if name == "think, drop" && signed == 0 {
					before.Message.Parts = slices.DeleteFunc(before.Message.Parts, func(p convo.Part) bool {
						_, thought := p.(convo.Reasoning)
						return thought && e.Message.Reasoning() == ""
					})
				}
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
		r, err := reportOf(toolTurn(t, windowOf(1000, c), 20).Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, want, r.Strategy)
	}
	assert.Equal(t, "func", f.Named("").Name())
}

// A strategy that says impossible things of its work is not believed: a negative
// number counts as 0, and a Usage that no provider can have reported is ignored.
func TestWork_OutOfRange(t *testing.T) {
	usage := convo.Usage{Input: 10, CacheRead: 4, Output: 2}
	for name, tt := range map[string]struct{ work, want convo.Effort }{
		"in range":            {convo.Effort{Calls: 2, Usage: usage, Unread: 7}, convo.Effort{Calls: 2, Usage: usage, Unread: 7}},
		"not kept":            {convo.Effort{NotKept: 3}, convo.Effort{NotKept: 3}},
		"less than none kept": {convo.Effort{NotKept: -3}, convo.Effort{}},
		"calls":               {convo.Effort{Calls: -3, Usage: usage, Unread: 7}, convo.Effort{Usage: usage, Unread: 7}},
		"unread":              {convo.Effort{Calls: 2, Usage: usage, Unread: -1}, convo.Effort{Calls: 2, Usage: usage}},
		"input":               {convo.Effort{Calls: 2, Usage: convo.Usage{Input: -1}}, convo.Effort{Calls: 2}},
		"output":              {convo.Effort{Calls: 2, Usage: convo.Usage{Input: 10, Output: -1}}, convo.Effort{Calls: 2}},
		"more cache than all": {convo.Effort{Calls: 2, Usage: convo.Usage{Input: 10, CacheRead: 6, CacheWrite: 5}}, convo.Effort{Calls: 2}},
	} {
		for _, chained := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", chained), func(t *testing.T) {
				work := tt.work
				c := fixed(convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "s"}, Effort: &work})
				if chained {
					c = convo.Chain(c)
				}
				r, err := toolTurn(t, windowOf(0, c), 20).Compact(t.Context(), "")
				require.NoError(t, err)
				require.Equal(t, convo.OutcomeApplied, r.Outcome)
				assert.Equal(t, tt.want, convo.Effort{Calls: r.Calls, Usage: r.Usage, Unread: r.Unread, NotKept: r.NotKept})
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
		_, _, err := h.Prepare(t.Context())
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
				return convo.Edit{Effort: &convo.Effort{Calls: calls}}, fmt.Errorf("a History inside: %w", cause)
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

// hanging is a summarizer that ignores its ctx and returns only after a day.
var hanging = convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
	time.Sleep(24 * time.Hour)
	return convo.Summary{Text: "late"}, nil
})

// A call of a model has a bound of its own. After it the next links run, under the
// same ctx, and there is time left for them.
func TestTimeout_NextLinksRun(t *testing.T) {
	for _, with := range []struct {
		name string
		convo.Summarizer
	}{{"looks at its ctx", convotest.Slow{}}, {"ignores its ctx", hanging}} {
		for _, tt := range []struct {
			name     string
			timeout  time.Duration // Summarize.Timeout
			deadline time.Duration // of ctx; 0: none
			want     time.Duration // when the model was given up
			says     string
		}{
			{"a minute", 0, 0, time.Minute, "no answer within 1m0s; raise Summarize.Timeout"},
			{"a timeout", 10 * time.Second, 0, 10 * time.Second, "no answer within 10s; raise Summarize.Timeout"},
			{"a far deadline", 0, time.Hour, time.Minute, "no answer within 1m0s; raise Summarize.Timeout"},
			{"a deadline", 0, 20 * time.Second, 15 * time.Second, "no answer within three quarters of the time until the deadline of ctx"},
			{"no bound but a deadline", -1, 20 * time.Second, 15 * time.Second, "no answer within three quarters of the time until the deadline of ctx"},
			{"a long timeout and a deadline", 18 * time.Second, 20 * time.Second, 15 * time.Second, "no answer within three quarters of the time until the deadline of ctx"},
		} {
			t.Run(with.name+", "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					summarize := convo.Summarize{With: with, Window: -1, Timeout: tt.timeout}
					h := toolTurn(t, windowOf(1000, convo.Chain(summarize, convo.Truncate{})), 20)
					ctx, cancel := context.WithCancel(t.Context())
					if tt.deadline > 0 {
						ctx, cancel = context.WithTimeout(t.Context(), tt.deadline)
					}
					defer cancel()
					start := time.Now()
					r, err := reportOf(h.Prepare(ctx))
					require.NoError(t, err)
					require.NoError(t, ctx.Err())
					assert.Equal(t, tt.want, time.Since(start))
					assert.Equal(t, convo.OutcomeApplied, r.Outcome)
					assert.Equal(t, 1, r.Calls)
					require.Len(t, r.Links, 2)
					require.ErrorContains(t, r.Links[0].Cause, tt.says)
					require.ErrorIs(t, r.Links[0].Cause, context.DeadlineExceeded)
					assert.Equal(t, convo.OutcomeApplied, r.Links[1].Outcome)
					time.Sleep(25 * time.Hour)
				})
			})
		}
	}
}

// All calls for one summary together leave a quarter of the time.
func TestTimeout_OfSeveralCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &convotest.Recorder{With: convotest.Slow{For: 7 * time.Second}}
		h := toolTurn(t, windowOf(1500, convo.Chain(convo.Summarize{With: rec, MaxTokens: 100, Window: 3600, KeepTokens: -1}, convo.Truncate{})), 40)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		r, err := reportOf(h.Prepare(ctx))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, 3, rec.Calls(), "the third has no time left")
		assert.Equal(t, 15*time.Second, time.Since(start))
	})
}

// A summary that arrives in time is used, however close the bound is, and a
// negative timeout bounds nothing.
func TestTimeout_InTime(t *testing.T) {
	for timeout, takes := range map[time.Duration]time.Duration{0: time.Minute - 1, time.Second: time.Second - 1, -1: 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, convo.Summarize{With: convotest.Slow{For: takes}, MaxTokens: 100, Window: -1, Timeout: timeout}), 20)
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			assert.NotEmpty(t, r.Summarised)
		})
	}
}

// When ctx itself ends, by a cancel or by its deadline, nothing is given up: not
// even what a link before the one that was waited for had planned. The strategy
// may be one of the package or one of the caller, and may look at its ctx or not.
func TestEndedContext_GivesNothingUp(t *testing.T) {
	type summarize = func(context.Context) error // waits
	waits := map[string]summarize{
		"looks at its ctx": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"ignores its ctx":  func(context.Context) error { time.Sleep(24 * time.Hour); return nil },
	}
	strategies := map[string]func(wait summarize) convo.CompactionStrategy{
		"a summarizer": func(wait summarize) convo.CompactionStrategy {
			return convo.Summarize{Window: -1, Timeout: -1, With: convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
				return convo.Summary{Text: "late"}, wait(ctx)
			})}
		},
		"a strategy": func(wait summarize) convo.CompactionStrategy {
			return convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				if err := wait(ctx); err != nil {
					return convo.Edit{}, err
				}
				return convo.Truncate{}.Compact(ctx, s, g)
			})
		},
	}
	ends := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	}
	for strategyName, make := range strategies {
		for waitName, wait := range waits {
			for endName, end := range ends {
				for _, inChain := range []bool{false, true} {
					for _, fits := range []bool{false, true} {
						if endName == "deadline" && strategyName == "a summarizer" {
							continue // its call ends before ctx does
						}
						t.Run(strategyName+" that "+waitName+", "+endName, func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								c := make(wait)
								if inChain {
									c = convo.Chain(convo.ClearToolResults{KeepLast: 15, MinFree: -1}, c, convo.Truncate{})
								}
								opts := windowOf(1000, c)
								if fits {
									opts.Limits = convo.Limits{Window: 40_000, Reserve: -1, High: 1000}
								}
								h := toolTurn(t, opts, 20)
								before := h.Snapshot()
								ctx, cancel := end(t.Context())
								defer cancel()
								start := time.Now()
								snap, r, err := h.Prepare(ctx)
								assert.Equal(t, time.Second, time.Since(start))
								if fits {
									require.NoError(t, err)
								} else {
									require.ErrorIs(t, err, ctx.Err())
								}
								assert.Equal(t, fits, r.Fits)
								assert.Equal(t, convo.OutcomeFailed, r.Outcome)
								require.ErrorIs(t, r.Cause, ctx.Err())
								assert.Same(t, before, snap)
								time.Sleep(25 * time.Hour)
								assert.Same(t, before, h.Snapshot())
							})
						})
					}
				}
			}
		}
	}
}

// Nor is anything given up when ctx ends after the strategy has returned.
func TestEndedContext_JustBeforeTheEdit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	armed := false
	opts := windowOf(1500, convo.ClearToolResults{MinFree: -1})
	opts.Tokenizer = convo.TokenizerFunc(func(text string) int {
		if armed {
			cancel()
		}
		return len(text)
	})
	h := toolTurn(t, opts, 20)
	armed = true
	unchanged(t, h, func() {
		_, _, err := h.Prepare(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A caller that waits for the compaction of another gives nothing up either.
func TestEndedContext_OfAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, convo.Summarize{With: convotest.Slow{For: 30 * time.Second}, Window: -1, MaxTokens: 100}), 20)
		first := make(chan error, 1)
		go func() { _, _, err := h.Prepare(t.Context()); first <- err }()
		synctest.Wait()
		before := h.Snapshot()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, r, err := h.Prepare(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Same(t, before, h.Snapshot())
		require.NoError(t, <-first, "the other goes on")
	})
}

// Close waits for nothing, and frees everybody who waits for a strategy or a
// summarizer, even one that ignores its ctx.
func TestClose_WaitsForNothing(t *testing.T) {
	for name, c := range map[string]convo.CompactionStrategy{
		"strategy":   deaf(24 * time.Hour),
		"summarizer": convo.Summarize{With: hanging, Window: -1, Timeout: -1},
		"link":       convo.Chain(deaf(24*time.Hour), convo.Truncate{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := toolTurn(t, windowOf(1000, c), 20)
				errs := make(chan error, 3)
				//lint:ignore SA1012 a nil ctx never ends
				go func() { _, _, err := h.Prepare(nil); errs <- err }()
				go func() { _, err := h.Compact(context.Background(), ""); errs <- err }()
				go func() { _, _, err := h.MakeRoom(context.Background(), 10); errs <- err }()
				synctest.Wait()
				before, start := h.Snapshot(), time.Now()
				require.NoError(t, h.Close())
				for range 3 {
					require.ErrorIs(t, <-errs, convo.ErrClosed)
				}
				assert.Zero(t, time.Since(start))
				time.Sleep(25 * time.Hour)
				assert.Equal(t, before.Messages(), h.Snapshot().Messages())
			})
		})
	}
}

// Handoff returns when its ctx ends, whatever the summarizer does, and has no
// other bound.
func TestHandoff_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(0, nil), 20)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		start := time.Now()
		_, err := h.Handoff(ctx, hanging, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 2*time.Hour, time.Since(start))
		time.Sleep(25 * time.Hour)
	})
}

// A strategy or summarizer that ends its goroutine ends one of its own: its
// caller gets an error.
func TestGoexit_IsAnError(t *testing.T) {
	exits := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		runtime.Goexit()
		return convo.Summary{}, nil
	})
	strategy := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		runtime.Goexit()
		return convo.Edit{}, nil
	})
	for name, c := range map[string]convo.CompactionStrategy{
		"a strategy": strategy, "a link": convo.Chain(strategy), "a summarizer": convo.Summarize{With: exits, Window: -1},
	} {
		h := toolTurn(t, windowOf(1000, c), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.ErrorContains(t, err, "ended the goroutine with runtime.Goexit; return an error instead", name)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome, name)
		calls := 1
		if name == "a summarizer" {
			calls = 2
		}
		assert.Equal(t, calls, r.Calls, "%s is taken to have called a model", name)
	}
	h := toolTurn(t, windowOf(1000, convo.Chain(strategy, convo.Summarize{With: exits, Window: -1}, convo.Truncate{})), 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome, "by the last link")
	require.NoError(t, h.SetLimits(convo.Limits{}))
	_, err = h.Handoff(t.Context(), exits, "")
	require.ErrorContains(t, err, "ended the goroutine")
}

// The cause of ctx is told together with its error.
func TestEndedContext_Cause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []convo.CompactionStrategy{deaf(time.Hour), convo.Summarize{With: hanging, Window: -1, Timeout: -1}} {
			h := toolTurn(t, windowOf(1000, c), 20)
			// Not even a cause that means something else to this package is
			// taken for it.
			for _, cause := range []error{errors.New("the user pressed Esc"), convo.ErrNoGain, convo.ErrBreaker} {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				r, err := h.Compact(ctx, "")
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.Equal(t, 1, r.Calls)
			}
		}
		time.Sleep(25 * time.Hour)
	})
}

// Strategies of the package run on the goroutine that asks, and say what they
// did up to the end of ctx.
func TestEndedContext_SaysWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		with := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			if calls.Add(1) == 2 {
				time.Sleep(time.Hour)
			}
			return convo.Summary{Text: "so far", Usage: convo.Usage{Input: 100, Output: 10}}, nil
		})
		h := toolTurn(t, windowOf(1500, convo.Chain(convo.Summarize{With: with, MaxTokens: 100, Window: 3600, KeepTokens: -1}, convo.Truncate{})), 40)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, err := reportOf(h.Prepare(ctx))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 2, r.Calls)
		assert.Equal(t, convo.Usage{Input: 100, Output: 10}, r.Usage)
		require.Len(t, r.Links, 1)
		assert.Equal(t, "summarize", r.Links[0].Strategy)
		time.Sleep(time.Hour)
	})
}

func TestClearToolResults(t *testing.T) {
	h := toolTurn(t, bare(), 6) // results 4, 6, 8, 10, 12, 14; the answer is the newest exchange
	all := "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"
	for _, tt := range []struct {
		name string
		c    convo.ClearToolResults
		g    convo.Goal
		want string
	}{
		{"three keep theirs", convo.ClearToolResults{}, convo.Goal{Target: 1000}, "1 2 3 4c 5 6c 7 8c 9 10 11 12 13 14 15"},
		{"one keeps its", convo.ClearToolResults{KeepLast: 1}, convo.Goal{Target: 1000}, "1 2 3 4c 5 6c 7 8c 9 10c 11 12c 13 14 15"},
		{"all but the floor", convo.ClearToolResults{KeepLast: -1}, convo.Goal{}, "1 2 3 4c 5 6c 7 8c 9 10c 11 12c 13 14c 15"},
		{"all, where the target is out of reach", convo.ClearToolResults{}, convo.Goal{Target: 10}, "1 2 3 4c 5 6c 7 8c 9 10c 11 12c 13 14c 15"},
		{"of the newest no more than it takes", convo.ClearToolResults{KeepLast: 100}, convo.Goal{Target: 600}, "1 2 3 4c 5 6 7 8 9 10 11 12 13 14 15"},
		{"too little by the goal", convo.ClearToolResults{}, convo.Goal{MinFree: 1000}, "convo: nothing worth removing; go on with the conversation as it is"},
		{"too little by its own", convo.ClearToolResults{MinFree: 1000}, convo.Goal{}, "convo: nothing worth removing; go on with the conversation as it is"},
		{"its own counts, not the goal's", convo.ClearToolResults{MinFree: -1}, convo.Goal{Target: 1000, MinFree: 1000}, "1 2 3 4c 5 6c 7 8c 9 10 11 12 13 14 15"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := h.Snapshot()
			got, next := planOf(t, tt.c, s, tt.g)
			assert.Equal(t, tt.want, got)
			if next != s {
				again, _ := planOf(t, tt.c, next, tt.g)
				assert.Equal(t, "convo: nothing worth removing; go on with the conversation as it is", again, "the second time there is nothing to do")
			}
			for _, e := range next.All() {
				for _, r := range e.Message.ToolResults() {
					if r.Cleared {
						assert.Equal(t, "[result of tool cleared: 92 bytes]", r.Text())
					}
				}
			}
		})
	}
	assert.Equal(t, all, strings.Trim(fmt.Sprint(idsOf(h.Snapshot())), "[]"))

	small := toolTurn(t, nil, 0)
	c := callOf("c")
	mustAppend(t, small, convo.User("and"), convo.Assistant("", c), convo.Result(c, "ok"), convo.Assistant("so"))
	got, _ := planOf(t, convo.ClearToolResults{KeepLast: -1, MinFree: -1}, small.Snapshot(), convo.Goal{})
	assert.Equal(t, "convo: nothing worth removing; go on with the conversation as it is", got, "a marker longer than the result frees nothing")
}

// One result that cannot be kept is enough for the ladder to go on.
func TestClearToolResults_OneSpillFails(t *testing.T) {
	opts := windowOf(3000, convo.Chain(convo.ClearToolResults{KeepLast: -1}, convo.Truncate{}))
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") }
	opts.MaxResult = -1
	c := callOf("c")
	h := historyOf(t, opts, convo.User("the task"), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 5000)), convo.Assistant("so"))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{2, 3}, r.Dropped)
	assert.True(t, r.Fits)
}

func TestClearToolResults_Least(t *testing.T) {
	h := historyOf(t, bare(), convo.User("q"))
	for i, size := range []int{511, 512, 60, 513, 600} {
		call := convo.ToolCall{ID: fmt.Sprint("c", i), Name: "tool"}
		mustAppend(t, h, convo.Assistant("", call), convo.Result(call, strings.Repeat("x", size)))
	}
	mustAppend(t, h, convo.Assistant("a"))
	for least, want := range map[int]string{
		512:  "1 2 3 4 5c 6 7 8 9c 10 11c 12",
		513:  "1 2 3 4 5 6 7 8 9c 10 11c 12",
		0:    "1 2 3c 4 5c 6 7c 8 9c 10 11c 12",
		-1:   "1 2 3c 4 5c 6 7c 8 9c 10 11c 12",
		5000: "convo: nothing worth removing; go on with the conversation as it is",
	} {
		got, _ := planOf(t, convo.ClearToolResults{KeepLast: -1, MinResult: least}, h.Snapshot(), convo.Goal{})
		assert.Equal(t, want, got, "Least %d", least)
	}
}

// Of the tour, in bytes: 1 system 5 | 2 user 8 | 3, 4, 5 a tool round 134 |
// 6 assistant 5 || 7 user 7 | 8 assistant 6 || 9 user 9.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target int
		pin    []convo.ID
		want   string
	}{
		{"small enough", 174, nil, "convo: nothing worth removing; go on with the conversation as it is"},
		{"a turn that begins soon after is where the cut goes", 40, nil, "1 7 8 9"},
		{"nothing but the newest turn", 20, nil, "1 9"},
		{"the floor stays", 0, nil, "1 9"},
		{"a pin stays", 0, []convo.ID{8}, "1 8 9"},
		{"a pin of a result keeps its exchange", 0, []convo.ID{5}, "1 3 4 5 9"},
		{"a pin, and a quarter of the target", 150, []convo.ID{5}, "convo: nothing worth removing; go on with the conversation as it is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, bare())
			require.NoError(t, h.Pin(tt.pin...))
			s := h.Snapshot()
			got, next := planOf(t, convo.Truncate{}, s, convo.Goal{Target: tt.target})
			assert.Equal(t, tt.want, got)
			if next != s && next.Tokens() > tt.target*5/4 {
				for x := range next.Exchanges() {
					assert.True(t, x.Floor, "above the target, and %d is not floor", x.First)
				}
			}
		})
	}
}

func TestTruncate_InsideOneTurn(t *testing.T) {
	h := toolTurn(t, bare(), 20)
	got, next := planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 500})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43", got)
	assert.LessOrEqual(t, next.Tokens(), 500)

	// And one message later the turn is not the newest any more: its user
	// message stays all the same while part of the turn does.
	mustAppend(t, h, convo.User("thanks"))
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 500})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43 44", got)
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 150})
	assert.Equal(t, "1 2 41 42 43 44", got)
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 100})
	assert.Equal(t, "1 44", got, "the next turn begins soon after the cut")

	// So does one that is too long for the user's words.
	h = historyOf(t, bare(), convo.User(strings.Repeat("u", 90)))
	for i := range 20 {
		c := callOf("c" + itoa(i))
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)))
	}
	mustAppend(t, h, convo.Assistant("done"), convo.User("thanks"))
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 500})
	assert.Equal(t, "1 36 37 38 39 40 41 42 43", got)
}

// A view that weighs exactly the target is within it.
func TestTruncate_AtTheTarget(t *testing.T) {
	s := toolTurn(t, bare(), 20).Snapshot()
	_, next := planOf(t, convo.Truncate{}, s, convo.Goal{Target: 500})
	same, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: next.Tokens()})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43", same)
	less, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: next.Tokens() - 1})
	assert.Equal(t, "1 2 37 38 39 40 41 42 43", less)

	got, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: s.Tokens()})
	assert.Equal(t, "convo: nothing worth removing; go on with the conversation as it is", got)
	got, _ = planOf(t, convo.Truncate{}, s, convo.Goal{Target: s.Tokens() - 1})
	assert.NotEqual(t, "convo: nothing worth removing; go on with the conversation as it is", got)
}

// A cut inside a turn moves to the start of the next turn when that is within a
// quarter of what is kept.
func TestTruncate_ToTheNextTurn(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		between int // bytes from the cut to the next turn
		want    string
	}{
		{48, "1 4 5 6"}, {49, "1 4 5 6"}, {50, "1 3 4 5 6"},
	} {
		s := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads, Roles: convo.Relaxed()},
			convo.User("u"), convo.Assistant(x(1000)), convo.Assistant(x(tt.between)),
			convo.User("v"), convo.Assistant("a"), convo.User("w"),
		).Snapshot()
		got, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: 200 + len("w")})
		assert.Equal(t, tt.want, got, "%d between", tt.between)
	}
}

func TestTruncate_SignedReasoning(t *testing.T) {
	signed := func(c convo.ToolCall) convo.Message {
		m := convo.Assistant("", c)
		m.Parts = append([]convo.Part{convo.Reasoning{Text: "hm", Signature: "sig"}}, m.Parts...)
		return m
	}
	make := func(second func(convo.ToolCall) convo.Message) *convo.Snapshot {
		c1, c2, c3 := callOf("c1"), callOf("c2"), callOf("c3")
		return historyOf(t, bare(), convo.User("the task"),
			signed(c1), convo.Result(c1, strings.Repeat("x", 50)),
			second(c2), convo.Result(c2, strings.Repeat("x", 50)),
			convo.Assistant("", c3), convo.Result(c3, strings.Repeat("x", 50)),
		).Snapshot()
	}
	unsigned := func(c convo.ToolCall) convo.Message { return convo.Assistant("", c) }

	got, _ := planOf(t, convo.Truncate{}, make(unsigned), convo.Goal{Target: 150})
	assert.Equal(t, "1 2 3 6 7", got, "the signed one goes last of the turn")
	got, _ = planOf(t, convo.Truncate{}, make(unsigned), convo.Goal{Target: 80})
	assert.Equal(t, "1 6 7", got, "and goes when all else is not enough")
	got, _ = planOf(t, convo.Truncate{}, make(signed), convo.Goal{Target: 150})
	assert.Equal(t, "1 4 5 6 7", got, "another reasoning later takes its place")
}

func TestTruncate_SummaryGoesLast(t *testing.T) {
	opts := bare()
	opts.Strategy = convo.Truncate{}
	h := tour(t, opts)
	_, err := h.SplicePrefix(h.Snapshot(), 6, "what was said "+strings.Repeat("and said ", 20))
	require.NoError(t, err)
	sum, _ := h.Snapshot().Summary()

	// There is more to drop than the summary: it stays.
	got, _ := planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 0})
	assert.Equal(t, "sum[{2 6}] 1 9", got)

	// The request fits only without it.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 100, Reserve: -1}))
	require.Greater(t, sum.Tokens, 100)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.True(t, r.SummaryDropped)
	assert.True(t, r.Fits)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
}

// Truncation counts no text again, and what it allocates grows as the list does.
func TestTruncate_IsLinear(t *testing.T) {
	bytesFor := func(n int) float64 {
		counted := 0
		opts := windowOf(n, convo.Truncate{})
		opts.Tokenizer = convo.TokenizerFunc(func(s string) int { counted++; return len(s) })
		h := chatOf(t, opts, n, 10)
		counted = 0
		_, bytes := measureAllocs(1, func() {
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			require.Greater(t, len(r.Dropped), n)
		})
		assert.Zero(t, counted)
		return bytes
	}
	small, large := bytesFor(2500), bytesFor(20_000)
	assert.Less(t, large, 12*small)
}
