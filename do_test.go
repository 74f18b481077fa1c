package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/logs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type sendFunc = func(context.Context, *convo.Snapshot) (convo.Reply, error)

// saying answers with these messages.
func saying(msgs ...convo.Message) sendFunc {
	return func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Messages: msgs}, nil
	}
}

// never fails the test when it is called.
func never(t testing.TB) sendFunc {
	return func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		assert.Fail(t, "send was called")
		return convo.Reply{}, nil
	}
}

var errTooLong = errors.New("400: prompt is too long: 9000 tokens > 8000 maximum")

func TestDo_Appends(t *testing.T) {
	h := historyOf(t, bare(), convo.System("s"), convo.User("where to"))
	call := convo.ToolCall{Name: "tool"} // a provider without ids
	send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		assert.Equal(t, h.Snapshot(), s)
		return convo.Reply{
			Messages: []convo.Message{convo.Assistant("let me see", call)},
			Usage:    convo.Usage{Input: 40},
			Stop:     convo.StopToolCall,
			IDs:      []convo.ID{7}, Queued: 3, Reports: []convo.Report{{}},
		}, nil
	}
	reply, err := h.Do(t.Context(), send)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{3}, reply.IDs)
	assert.Equal(t, convo.StopToolCall, reply.Stop)
	assert.Zero(t, reply.Queued)
	assert.Empty(t, reply.Reports)
	assert.Equal(t, 40, h.Tokens().Measured, "usage is recorded")
	assert.Equal(t, 40+len("let me see")+len("tool")+len(reply.OpenCalls()[0].ID), h.Tokens().Tokens, "for what was sent")

	// The caller has the minted ID, and a copy.
	calls := reply.OpenCalls()
	require.Len(t, calls, 1)
	assert.NotEmpty(t, calls[0].ID)
	assert.True(t, calls[0].Minted)
	reply.Messages[0].Parts[0] = convo.Text("changed")
	e, _ := h.Snapshot().Find(3)
	assert.Equal(t, "let me see", e.Message.Text())
	mustAppend(t, h, convo.Result(calls[0], "here"))

	//lint:ignore SA1012 a nil ctx never ends
	reply, err = h.Do(nil, saying(convo.Assistant("done")))
	require.NoError(t, err)
	assert.Equal(t, "done", reply.Text())
	assert.Equal(t, "suata", rolesOf(h))
}

// An answer may bring its own error results, and only the other calls are open.
// Calls pair with results by occurrence, as in a History: a result answers the first
// open call with its ID, wherever other calls stand.
func TestReply_OpenCallsPairByOccurrence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var reply convo.Reply
		want := []convo.ToolCall{}
		for n := range r.IntN(6) {
			var m convo.Message
			if n%2 == 0 {
				for k := range r.IntN(6) {
					c := convo.ToolCall{ID: string(rune('a' + r.IntN(3))), Name: fmt.Sprintf("%d.%d", n, k)}
					m.Parts = append(m.Parts, c)
					want = append(want, c)
				}
			} else {
				for range r.IntN(6) {
					id := string(rune('a' + r.IntN(4)))
					m.Parts = append(m.Parts, convo.ToolResult{CallID: id})
					if i := slices.IndexFunc(want, func(c convo.ToolCall) bool { return c.ID == id }); i >= 0 {
						want = slices.Delete(want, i, i+1)
					}
				}
			}
			reply.Messages = append(reply.Messages, m)
		}
		require.ElementsMatch(t, want, reply.OpenCalls(), "%+v", reply.Messages)
		require.True(t, slices.IsSortedFunc(reply.OpenCalls(), func(a, b convo.ToolCall) int { return strings.Compare(a.Name, b.Name) }))
	}
}

// 100,000 calls that are answered from the last to the first take no longer than in
// order. A search from the first call for each result would look at five billion.
func TestReply_OpenCallsInReverse(t *testing.T) {
	n := long.Or(20_000, 100_000)
	calls, results := make([]convo.Part, n), make([]convo.Part, n-1)
	for i := range calls {
		calls[i] = convo.ToolCall{ID: fmt.Sprint(i)}
		if i > 0 {
			results[n-1-i] = convo.ToolResult{CallID: fmt.Sprint(i)}
		}
	}
	reply := convo.Reply{Messages: []convo.Message{{Role: convo.RoleAssistant, Parts: calls}, {Role: convo.RoleTool, Parts: results}}}
	assert.Equal(t, []convo.ToolCall{{ID: "0"}}, reply.OpenCalls())
}

func TestReply_OpenCalls(t *testing.T) {
	a, b, c := callOf("a"), callOf("b"), callOf("c")
	r := convo.Reply{Messages: []convo.Message{convo.Assistant("x", a, b, c), convo.ResultError(b, errors.New("no"))}}
	assert.Equal(t, []convo.ToolCall{a, c}, r.OpenCalls())
	assert.Equal(t, "x", r.Text(), "results are no text of the model")
	assert.Empty(t, convo.Reply{}.OpenCalls())
	assert.Empty(t, convo.Reply{}.Text())
}

// asked is toolTurn with a user message that is not answered yet.
func asked(t testing.TB, opts *convo.Options, rounds int) *convo.History {
	t.Helper()
	h := toolTurn(t, opts, rounds)
	mustAppend(t, h, convo.User("go on"))
	return h
}

// Nobody pays for an answer that cannot be appended.
func TestDo_RefusesBeforeItSends(t *testing.T) {
	var role *convo.RoleError
	var pair *convo.PairError
	for _, tt := range []struct {
		name   string
		msgs   []convo.Message
		target any
		text   string
	}{
		{"empty", nil, &role, `convo: message 0: role "assistant" may not come first`},
		{"only system", []convo.Message{convo.System("s")}, &role, `role "assistant" may not follow "system"`},
		{"after an assistant", []convo.Message{convo.User("u"), convo.Assistant("a")}, &role, `role "assistant" may not follow "assistant"`},
		{"open call", []convo.Message{convo.User("u"), convo.Assistant("", callOf("c1"), callOf("c2")), convo.Result(callOf("c1"), "")}, &pair, `(id "c2", tool "tool"); append its result first`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, nil, tt.msgs...)
			unchanged(t, h, func() {
				reply, err := h.Do(t.Context(), never(t))
				require.ErrorAs(t, err, tt.target)
				assert.ErrorContains(t, err, tt.text)
				assert.Zero(t, reply)
				_, appendErr := h.Append(convo.Assistant("x"))
				assert.Equal(t, appendErr, err, "as Append would say")
			})
		})
	}
	_, err := historyOf(t, nil, convo.User("u")).Do(t.Context(), nil)
	var value *convo.ValueError
	assert.ErrorAs(t, err, &value)

	// Nor for a compaction.
	h := toolTurn(t, windowOf(1000, nil), 20)
	reply, err := h.Do(t.Context(), never(t))
	require.ErrorAs(t, err, &role)
	assert.Empty(t, reply.Reports)

	// Where Prepare fails, nothing is sent.
	h = historyOf(t, windowOf(200, nil), convo.User(strings.Repeat("u", 500)))
	_, err = h.Do(t.Context(), never(t))
	var floor *convo.FloorError
	assert.ErrorAs(t, err, &floor)

	// With a ctx that has ended neither.
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	_, err = historyOf(t, nil, convo.User("u")).Do(ctx, never(t))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	assert.EqualError(t, err, "convo: the request was not sent: enough (context canceled)")
}

// An error of send leaves everything as it was, and what it gave is handed on.
func TestDo_SendFails(t *testing.T) {
	h := tour(t, nil)
	boom := errors.New("503")
	partial := convo.Reply{Messages: []convo.Message{convo.Assistant("half an")}, Usage: convo.Usage{Input: 60}, CutOff: &convo.ToolCall{Name: "x"}}
	unchanged(t, h, func() {
		reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return partial, boom })
		assert.Equal(t, boom, err, "as it came")
		assert.Equal(t, partial, reply)
	})
	unchanged(t, h, func() {
		_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { panic(boom) })
		var p *convo.PanicError
		require.ErrorAs(t, err, &p)
		assert.Equal(t, "the send given to Do", p.In)
		assert.Equal(t, boom, p.Value)
		assert.Contains(t, p.Stack, "TestDo_SendFails", "the place of the panic")
	})
	unchanged(t, h, func() {
		calls := 0
		_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { calls++; panic(errTooLong) })
		require.ErrorIs(t, err, errTooLong)
		assert.Equal(t, 1, calls, "a panic is no overflow")
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { runtime.Goexit(); return partial, nil })
	}()
	<-ended
	queue(t, h, "after")
	reply, err := h.Do(t.Context(), saying(convo.Assistant("goes on")))
	require.NoError(t, err, "the slot is free")
	assert.Zero(t, reply.Queued, "what was typed after a failed request stood in this one")
	assert.Equal(t, []string{"after", "goes on"}, textsOf(h.Snapshot())[h.Len()-2:])
}

// An answer that Append refuses is handed back, and nothing of it is appended.
func TestDo_AnswerIsRefused(t *testing.T) {
	for name, msgs := range map[string][]convo.Message{
		"wrong in itself": {convo.Assistant("fine"), {Role: "robot"}},
		"wrong in place":  {convo.Assistant("fine"), convo.Assistant("twice")},
	} {
		h := tour(t, nil)
		before := printOf(h.Snapshot())
		reply, err := h.Do(t.Context(), saying(msgs...))
		require.Error(t, err, name)
		assert.Equal(t, msgs, reply.Messages)
		assert.Empty(t, reply.IDs)
		assert.Equal(t, before, printOf(h.Snapshot()))
	}
}

// An answer holds no message of the user's or of the system, whatever the policy
// allows, and nothing is done with the rest of it.
func TestDo_AnswerOfOthers(t *testing.T) {
	for _, other := range []convo.Message{convo.User("and I say"), convo.System("s")} {
		for at, msgs := range [][]convo.Message{{other}, {convo.Assistant("fine"), other}, {convo.Assistant("", callOf("c1")), convo.Result(callOf("c1"), strings.Repeat("r", 900)), other}} {
			opts := &convo.Options{Roles: convo.Relaxed(), MaxResult: 100}
			opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
				assert.Fail(t, "Spill was called")
				return "", nil
			}
			h := tour(t, opts)
			unchanged(t, h, func() {
				reply, err := h.Do(t.Context(), saying(msgs...))
				assert.Equal(t, msgs, reply.Messages)
				previous := []convo.Role{convo.RoleUser, convo.RoleAssistant, convo.RoleTool}[at]
				assert.Equal(t, &convo.RoleError{Attempted: other.Role, Previous: previous, Index: at, Answer: true}, err)
			})
		}
	}
}

// Results of an answer that are cut as Append cuts them are in the reports.
func TestDo_ReportsCuts(t *testing.T) {
	var told []convo.Report
	opts := &convo.Options{MaxResult: 100, OnCompaction: func(r convo.Report) { told = append(told, r) }}
	h := historyOf(t, opts, convo.User("u"))
	c := callOf("c1")
	reply, err := h.Do(t.Context(), saying(convo.Assistant("", c), convo.Result(c, strings.Repeat("result ", 900)), convo.Assistant("so")))
	require.NoError(t, err)
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, convo.ReasonAppend, reply.Reports[0].Reason)
	assert.Equal(t, []convo.ID{3}, reply.Reports[0].Shortened)
	assert.Equal(t, told, reply.Reports)
	assert.Equal(t, []convo.ID{2, 3, 4}, reply.IDs)
	assert.Equal(t, strings.Repeat("result ", 900), reply.Messages[1].ToolResults()[0].Text(), "whole, as a row is")
	e, _ := h.Snapshot().Find(3)
	assert.Less(t, len(e.Message.ToolResults()[0].Text()), 900)
}

// After an answer without messages the queue is delivered, under every policy.
func TestDo_NothingToAppendAndAQueue(t *testing.T) {
	empty := func(h *convo.History) sendFunc {
		return func(context.Context, *convo.Snapshot) (convo.Reply, error) {
			queue(t, h, "meanwhile", "and then")
			return convo.Reply{Stop: convo.StopRefused}, nil
		}
	}
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Roles: policy}, convo.User("look"))
			reply, err := h.Do(t.Context(), empty(h))
			require.NoError(t, err)
			assert.Empty(t, reply.IDs)
			assert.Equal(t, 2, reply.Queued)
			assert.Zero(t, h.Status().Queued)
			assert.Equal(t, []string{"look", "meanwhile", "and then"}, textsOf(h.Snapshot()))
		})
	}
	c := callOf("c1")
	h := historyOf(t, nil, convo.User("look"), convo.Assistant("", c), convo.Result(c, "r"))
	reply, err := h.Do(t.Context(), empty(h))
	require.NoError(t, err)
	assert.Equal(t, 2, reply.Queued, "a user message may follow a result")
	assert.Equal(t, "uatuu", rolesOf(h))
}

func TestDo_NothingToAppend(t *testing.T) {
	h := tour(t, bare())
	n := h.Len()
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Usage: convo.Usage{Input: 200}, Stop: convo.StopRefused}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, convo.StopRefused, reply.Stop)
	assert.Empty(t, reply.IDs)
	assert.Equal(t, n, h.Len())
	assert.Equal(t, 200, h.Tokens().Measured)
}

// Usage that is missing or absurd does not fail the call.
func TestDo_StrangeUsage(t *testing.T) {
	for _, tt := range []struct {
		usage  convo.Usage
		logged bool
	}{{convo.Usage{}, false}, {convo.Usage{Input: -5}, true}, {convo.Usage{Input: 3, CacheRead: 9}, true}, {convo.Usage{Input: math.MaxInt}, true}, {convo.Usage{Input: 5001}, true}} {
		var logged bytes.Buffer
		opts := windowOf(5000, nil)
		opts.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		h := tour(t, opts)
		reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
			return convo.Reply{Messages: []convo.Message{convo.Assistant("x")}, Usage: tt.usage}, nil
		})
		require.NoError(t, err)
		assert.Equal(t, tt.usage, reply.Usage)
		assert.Zero(t, h.Tokens().Measured)
		assert.Equal(t, tt.logged, strings.Contains(logged.String(), "level=WARN msg=\"convo: usage left aside\" cause="), logged.String())
	}
}

// After an overflow the request gets smaller and is sent again, at most twice.
func TestDo_Recovers(t *testing.T) {
	for _, tt := range []struct{ fails, sends int }{{0, 1}, {1, 2}, {2, 3}, {3, 3}} {
		t.Run(itoa(tt.fails), func(t *testing.T) {
			h := asked(t, windowOf(100_000, nil), 60)
			sizes := []int{}
			reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				sizes = append(sizes, s.Tokens())
				if len(sizes) <= tt.fails {
					return convo.Reply{Usage: convo.Usage{Output: len(sizes)}}, fmt.Errorf("post: %w", errTooLong)
				}
				return convo.Reply{Messages: []convo.Message{convo.Assistant("it fits")}}, nil
			})
			assert.Len(t, sizes, tt.sends)
			for i := 1; i < len(sizes); i++ {
				assert.LessOrEqual(t, sizes[i], sizes[i-1]/2)
			}
			assert.Len(t, reply.Reports, min(tt.fails, 2))
			for _, r := range reply.Reports {
				assert.Equal(t, convo.ReasonOverflow, r.Reason)
				assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			}
			if tt.fails == 3 {
				require.ErrorIs(t, err, errTooLong)
				assert.Equal(t, 3, reply.Usage.Output, "the last one is handed back")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "it fits", reply.Text())
		})
	}
	// Where nothing can be given up, the error says both.
	h := historyOf(t, nil, convo.User("short"))
	calls := 0
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { calls++; return convo.Reply{}, errTooLong })
	require.ErrorIs(t, err, errTooLong)
	assert.Equal(t, 1, calls)
	assert.Empty(t, reply.IDs)
}

// A compaction for the request is in the reports, in order with those of Recover.
func TestDo_Compacts(t *testing.T) {
	h := asked(t, windowOf(1000, nil), 20)
	sent := 0
	reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		if sent++; sent == 1 {
			return convo.Reply{}, errTooLong
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("x")}}, nil
	})
	require.NoError(t, err)
	var reasons []convo.Reason
	for _, r := range reply.Reports {
		reasons = append(reasons, r.Reason)
	}
	assert.Equal(t, []convo.Reason{convo.ReasonHigh, convo.ReasonOverflow}, reasons)
}

// The answer is appended only behind what it answers.
func TestDo_ViewChanges(t *testing.T) {
	relaxed := &convo.Options{Roles: convo.Relaxed()}
	for _, tt := range []struct {
		name   string
		opts   *convo.Options
		change func(t *testing.T, h *convo.History)
		stale  bool
	}{
		{"nothing", nil, func(*testing.T, *convo.History) {}, false},
		{"a user message", relaxed, func(t *testing.T, h *convo.History) { mustAppend(t, h, convo.User("more")) }, true},
		{"another answer", relaxed, func(t *testing.T, h *convo.History) { mustAppend(t, h, convo.Assistant("mine")) }, true},
		{"taken back", nil, func(t *testing.T, h *convo.History) { _, err := h.Rewind(1); require.NoError(t, err) }, true},
		{"taken back, and said again", nil, func(t *testing.T, h *convo.History) {
			_, err := h.Rewind(1)
			require.NoError(t, err)
			mustAppend(t, h, convo.User("let us go"))
		}, true},
		{"appended and taken back", relaxed, func(t *testing.T, h *convo.History) {
			at := h.Snapshot()
			mustAppend(t, h, convo.User("more"))
			require.NoError(t, h.Rollback(at))
		}, false},
		{"compacted", nil, func(t *testing.T, h *convo.History) {
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
		}, false},
		{"a summary", nil, func(t *testing.T, h *convo.History) {
			_, err := h.SplicePrefix(h.Snapshot(), 8, "sum")
			require.NoError(t, err)
		}, false},
		{"system, ephemeral, limits, model", nil, func(t *testing.T, h *convo.History) {
			require.NoError(t, h.SetSystem(convo.System("other")))
			require.NoError(t, h.SetEphemeral(convo.User("now")))
			require.NoError(t, h.SetModel("m", convo.Limits{Window: 50_000}))
		}, false},
		{"queued", relaxed, func(t *testing.T, h *convo.History) { queue(t, h, "then") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, tt.opts)
			reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				tt.change(t, h)
				return convo.Reply{Messages: []convo.Message{convo.Assistant("answer")}, Usage: convo.Usage{Input: 500}}, nil
			})
			assert.Equal(t, "answer", reply.Text())
			if !tt.stale {
				require.NoError(t, err)
				texts := textsOf(h.Snapshot())
				assert.Equal(t, "answer", texts[len(texts)-1-reply.Queued])
				return
			}
			require.ErrorIs(t, err, convo.ErrStale)
			assert.ErrorContains(t, err, "entry 9 is what the answer is for, and no longer the end of the conversation")
			assert.NotContains(t, textsOf(h.Snapshot()), "answer")
			assert.Positive(t, h.Tokens().Measured, "usage is known all the same")
		})
	}
}

// Messages that are appended while the request is prepared are in it.
func TestDo_AppendedMeanwhile(t *testing.T) {
	var h *convo.History
	runs := 0
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		runs++
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	opts.Roles = convo.Relaxed()
	opts.OnCompaction = func(convo.Report) {
		if runs == 1 {
			mustAppend(t, h, convo.User("one more"))
		}
	}
	h = asked(t, opts, 20)
	reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		texts := textsOf(s)
		assert.Equal(t, "one more", texts[len(texts)-1])
		return convo.Reply{Messages: []convo.Message{convo.Assistant("x")}}, nil
	})
	require.NoError(t, err)
	assert.Len(t, reply.Reports, 1)
}

// When the view changes while the request is prepared, so that no answer may
// follow, nothing is sent.
func TestDo_RefusesAfterPrepare(t *testing.T) {
	var h *convo.History
	opts := windowOf(1000, nil)
	opts.OnCompaction = func(convo.Report) { mustAppend(t, h, convo.Assistant("", callOf("mine"))) }
	h = asked(t, opts, 20)
	reply, err := h.Do(t.Context(), never(t))
	require.ErrorIs(t, err, convo.ErrOpenCalls)
	assert.Len(t, reply.Reports, 1)
}

// Queued messages are delivered before the request, and behind its answer.
func TestDo_Queue(t *testing.T) {
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			c := callOf("c1")
			h := historyOf(t, &convo.Options{Roles: policy}, convo.User("look"), convo.Assistant("", c), convo.Result(c, "r"))
			queue(t, h, "before")
			require.Equal(t, 1, h.Status().Queued, "an answer is due")
			reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				if name == "never after a result" {
					assert.NotContains(t, textsOf(s), "before")
				} else {
					assert.Equal(t, []string{"r", "before"}, textsOf(s)[2:])
				}
				queue(t, h, "meanwhile", "and then")
				assert.NotZero(t, h.Status().Queued)
				return convo.Reply{Messages: []convo.Message{convo.Assistant("answer")}}, nil
			})
			require.NoError(t, err)
			texts := textsOf(h.Snapshot())
			want := []string{"answer", "meanwhile", "and then"}
			if name == "never after a result" {
				want = []string{"answer", "before", "meanwhile", "and then"}
			}
			assert.Equal(t, want, texts[len(texts)-len(want):])
			assert.Equal(t, len(want)-1, reply.Queued)
			e, _ := h.Snapshot().Find(reply.IDs[0])
			assert.Equal(t, "answer", e.Message.Text(), "IDs names the answer only")

			// An answer with calls delivers nothing until they are answered.
			reply, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				queue(t, h, "while tools run")
				return convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("c2"))}}, nil
			})
			require.NoError(t, err)
			assert.Zero(t, reply.Queued)
			assert.Equal(t, 1, h.Status().Queued)
		})
	}
}

// What arrives between the answer and its append does not come between them.
func TestDo_QueueWhileAppending(t *testing.T) {
	var h *convo.History
	opts := &convo.Options{Roles: convo.Relaxed()}
	opts.Pin = func(m convo.Message) bool {
		if m.Text() == "second" {
			queue(t, h, "late")
		}
		return false
	}
	h = historyOf(t, opts, convo.User("u"), convo.Assistant("first"))
	reply, err := h.Do(t.Context(), saying(convo.Assistant("second")))
	require.NoError(t, err)
	assert.Equal(t, 1, reply.Queued)
	assert.Equal(t, []string{"u", "first", "second", "late"}, textsOf(h.Snapshot()))
}

func TestDo_OneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("u"))
		running, sends := 0, 0
		send := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
			running++
			sends++
			assert.Equal(t, 1, running)
			time.Sleep(time.Minute)
			running--
			return convo.Reply{Messages: []convo.Message{convo.Assistant("x")}}, nil
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := h.Do(t.Context(), send)
				assert.NoError(t, err)
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Do(ctx, never(t))
		require.ErrorIs(t, err, context.DeadlineExceeded, "it waits under its own ctx")
		assert.Equal(t, time.Second, time.Since(start))
		wg.Wait()
		assert.Equal(t, 5, sends)
		assert.Equal(t, 5*time.Minute, time.Since(start))
		assert.Equal(t, "uaaaaa", rolesOf(h))
	})
}

func TestDo_Reentrant(t *testing.T) {
	h, other := tour(t, nil), tour(t, nil)
	_, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour) // a child is marked too
		defer cancel()
		_, err := h.Do(ctx, never(t))
		assert.ErrorIs(t, err, convo.ErrReentrant)
		_, err = other.Do(ctx, saying(convo.Assistant("x")))
		assert.NoError(t, err, "other Histories are free")
		_, err = h.Compact(ctx, "")
		assert.NoError(t, err, "and so is a compaction")
		return convo.Reply{Messages: []convo.Message{convo.Assistant("x")}}, nil
	})
	require.NoError(t, err)

	// From inside a compaction.
	var inside error
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		_, inside = h.Do(ctx, never(t))
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	h = asked(t, opts, 20)
	_, err = h.Do(t.Context(), saying(convo.Assistant("x")))
	require.NoError(t, err)
	assert.ErrorIs(t, inside, convo.ErrReentrant)
}

// Once send has returned without an error, the answer is appended even if ctx has
// ended.
func TestDo_LateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := tour(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		reply, err := h.Do(ctx, func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			return convo.Reply{Messages: []convo.Message{convo.Assistant("paid for")}, Usage: convo.Usage{Input: 90}}, nil
		})
		require.NoError(t, err)
		assert.Len(t, reply.IDs, 1)
		assert.Equal(t, 90, h.Tokens().Measured)
	})
}

// Close ends the ctx of a request, and what comes of it is handed back.
func TestDo_Close(t *testing.T) {
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := tour(t, nil)
			type end struct {
				reply convo.Reply
				err   error
			}
			first, second := make(chan end, 1), make(chan end, 1)
			go func() {
				reply, err := h.Do(t.Context(), func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
					<-ctx.Done()
					assert.Equal(t, convo.ErrClosed, context.Cause(ctx))
					got := convo.Reply{Messages: []convo.Message{convo.Assistant("half")}}
					if fails {
						return got, ctx.Err()
					}
					return got, nil
				})
				first <- end{reply, err}
			}()
			synctest.Wait()
			go func() {
				reply, err := h.Do(t.Context(), never(t))
				second <- end{reply, err}
			}()
			synctest.Wait()
			n := h.Len()
			require.NoError(t, h.Close())
			got := <-first
			require.ErrorIs(t, got.err, convo.ErrClosed)
			assert.Equal(t, fails, errors.Is(got.err, context.Canceled))
			assert.Equal(t, "half", got.reply.Text())
			assert.Equal(t, n, h.Len())
			got = <-second
			require.ErrorIs(t, got.err, convo.ErrClosed, "a waiter too")
			_, err := h.Do(t.Context(), never(t))
			require.ErrorIs(t, err, convo.ErrClosed)
		})
	}
	var zero convo.History
	_, err := zero.Do(t.Context(), never(t))
	require.ErrorIs(t, err, convo.ErrClosed)
}

// With Options.Background, an answer above the soft mark starts a compaction.
func TestDo_Background(t *testing.T) {
	for _, background := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			opts := windowOf(4000, slow(time.Minute))
			opts.Limits.Soft = 3000
			opts.Background = background
			h := asked(t, opts, 20)
			require.Less(t, h.Tokens().Upper, 3000, "below the mark before the answer")
			ctx, cancel := context.WithCancel(t.Context())
			_, err := h.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				return convo.Reply{}, errors.New("503")
			})
			require.Error(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, waitFor(t, h).Outcome, "no answer, no compaction")
			_, err = h.Do(ctx, saying(convo.Assistant(strings.Repeat("x", 800))))
			cancel() // the compaction goes on
			require.NoError(t, err)
			upper := h.Tokens().Upper
			require.Greater(t, upper, 3000)
			if !background {
				assert.Equal(t, convo.OutcomeNotNeeded, waitFor(t, h).Outcome)
				return
			}
			r := waitFor(t, h)
			assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			assert.Equal(t, convo.ReasonSoft, r.Reason)
			assert.Less(t, h.Tokens().Upper, upper)
		})
	}
}

// waitFor returns the report of the compaction in the background.
func waitFor(t testing.TB, h *convo.History) convo.Report {
	t.Helper()
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	return r
}

// Torture: answers, queued messages, appends, rollbacks and compactions at once.
func TestTorture_Do(t *testing.T) {
	h := historyOf(t, windowOf(3000, nil), convo.User("u"))
	var wg sync.WaitGroup
	answered := make(chan string, 10_000)
	for i := range 3 {
		wg.Go(func() {
			for j := range 60 {
				name := fmt.Sprintf("answer %d %d", i, j)
				assert.NoError(t, h.Queue(convo.User("what about "+name)))
				reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
					runtime.Gosched()
					return convo.Reply{Messages: []convo.Message{convo.Assistant(name, callOf("c1"))}}, nil
				})
				if err != nil {
					assert.True(t, errors.Is(err, convo.ErrStale) || errors.Is(err, convo.ErrOpenCalls) || errors.As(err, new(*convo.RoleError)), "%v", err)
					continue
				}
				assert.Len(t, reply.IDs, 1)
				answered <- name
				for _, c := range reply.OpenCalls() {
					_, err := h.Append(convo.Result(c, strings.Repeat("r", 100)))
					_, given := errors.AsType[*convo.PairError](err) // by another goroutine
					assert.True(t, err == nil || given, "%v", err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 40 {
			assert.NoError(t, h.Queue(convo.User(fmt.Sprint("queued ", i))))
			_, _ = h.Rewind(1)
			_, _ = h.Compact(t.Context(), "")
			_, _ = h.AnswerOpenCalls("")
			runtime.Gosched()
		}
	})
	wg.Wait()
	close(answered)
	_, err := h.AnswerOpenCalls("")
	require.NoError(t, err)
	checkSaved(t, h, windowOf(3000, nil))
	seen := map[string]bool{}
	for name := range answered {
		assert.False(t, seen[name])
		seen[name] = true
	}
	assert.NotEmpty(t, seen)
}

// An agent with tools: one call makes a request, and the loop runs the tools.
func ExampleHistory_Do() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := h.Append(convo.User("Flights to Rome?")); err != nil {
		log.Fatal(err)
	}
	for done := false; !done; {
		reply, err := h.Do(context.Background(), send)
		if err != nil {
			log.Fatal(err)
		}
		for _, call := range reply.OpenCalls() {
			if _, err := h.Append(convo.Result(call, search(call.Arguments))); err != nil {
				log.Fatal(err)
			}
		}
		done = len(reply.OpenCalls()) == 0 && reply.Queued == 0
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: Flights to Rome?
	// 2 assistant: call search({"to":"Rome"})
	// 3 tool: result of search(09:10 and 13:45)
	// 4 assistant: At 09:10 and 13:45.
}

// A watchedContext calls a function each time somebody asks whether it has ended.
type watchedContext struct {
	context.Context
	asked func()
}

func (c watchedContext) Err() error {
	c.asked()
	return c.Context.Err()
}

// A model or limits that are set between Prepare and the request are those that the
// request is prepared for.
func TestDo_ModelSetMeanwhile(t *testing.T) {
	for name, set := range map[string]func(h *convo.History) error{
		"another model": func(h *convo.History) error { return h.SetModel("other", convo.Limits{}) },
		"a small one":   func(h *convo.History) error { return h.SetModel("small", convo.Limits{Window: 1000}) },
		"small limits":  func(h *convo.History) error { return h.SetLimits(convo.Limits{Window: 1000}) },
	} {
		t.Run(name, func(t *testing.T) {
			for when := range 8 { // at each moment at which Do asks its ctx
				h := historyOf(t, windowOf(4000, convo.Truncate{}))
				for range 10 {
					mustAppend(t, h, convo.User(strings.Repeat("word ", 100)), convo.Assistant(strings.Repeat("word ", 100)))
				}
				mustAppend(t, h, convo.User("and then?"))
				n, sending := 0, false
				ctx := watchedContext{t.Context(), func() {
					if n == when && !sending {
						assert.NoError(t, set(h))
					}
					n++
				}}
				_, err := h.Do(ctx, func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
					sending = true
					assert.Equal(t, h.Snapshot().Model(), s.Model())
					assert.LessOrEqual(t, s.Tokens(), h.Status().Limit)
					return convo.Reply{Messages: []convo.Message{convo.Assistant("fine")}}, nil
				})
				require.NoError(t, err)
			}
		})
	}
}

// An answer that holds nothing but a call that was cut off leaves the question
// without an answer, and another may follow it.
func TestDo_OnlyCut(t *testing.T) {
	h := historyOf(t, nil, convo.User("delete the old logs"))
	cut := convo.Reply{CutOff: &convo.ToolCall{ID: "1", Name: "delete_all"}, Stop: convo.StopLength}
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return cut, nil })
	require.NoError(t, err)
	assert.Empty(t, reply.Messages)
	assert.Equal(t, "delete_all", reply.CutOff.Name)
	mustAppend(t, h, convo.User("well?"))
}

// Without its reference, a long result of an answer is not cut, and so not appended.
func TestDo_SpillFails(t *testing.T) {
	opts := bare()
	opts.MaxResult = 64
	errFull := errors.New("no space")
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", errFull }
	h := historyOf(t, opts, convo.User("where to"))
	c := callOf("c")
	unchanged(t, h, func() {
		reply, err := h.Do(t.Context(), saying(convo.Assistant("", c), convo.Result(c, strings.Repeat("long ", 40)), convo.Assistant("there")))
		require.ErrorIs(t, err, errFull)
		assert.Len(t, reply.Messages, 3, "the answer is in the Reply")
		assert.Empty(t, reply.IDs)
	})
}

// pausing answers with the texts, one in each answer. All but the last are paused.
func pausing(t *testing.T, h *convo.History, texts ...string) sendFunc {
	n := 0
	return func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		require.Less(t, n, len(texts))
		if n > 0 {
			e, _ := s.At(s.Len() - 1)
			assert.Equal(t, texts[n-1], e.Message.Text(), "the request ends with the paused answer")
		}
		r := convo.Reply{Messages: []convo.Message{convo.Assistant(texts[n])}, Usage: convo.Usage{Input: 10 + n, Output: 1}}
		if n++; n < len(texts) {
			r.Stop = convo.StopPause
		}
		return r, nil
	}
}

// Do goes on with a paused answer, also where no assistant message may follow another one.
func TestDo_GoesOnAfterAPause(t *testing.T) {
	h := historyOf(t, bare(), convo.User("search"))
	reply, err := h.Do(t.Context(), pausing(t, h, "one", "two", "three"))
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\nthree", reply.Text())
	assert.Equal(t, convo.StopDone, reply.Stop)
	assert.Equal(t, convo.Usage{Input: 33, Output: 3}, reply.Usage)
	require.Len(t, reply.IDs, 3)
	for i, id := range reply.IDs {
		e, ok := h.Snapshot().At(1 + i)
		require.True(t, ok)
		assert.Equal(t, id, e.ID)
		assert.Equal(t, reply.Messages[i], e.Message)
	}
	again, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Snapshot().Len(), again.Snapshot().Len(), "it can be restored")
	_, err = h.Append(convo.Assistant("four"))
	assert.ErrorAs(t, err, new(*convo.RoleError), "no other message of the assistant may follow")
}

// After eight continuations the Reply has StopPause, and the next Do goes on.
func TestDo_PausesAgainAndAgain(t *testing.T) {
	h := historyOf(t, bare(), convo.User("search"))
	send := pausing(t, h, strings.Split("123456789ab", "")...)
	reply, err := h.Do(t.Context(), send)
	require.NoError(t, err)
	assert.Equal(t, convo.StopPause, reply.Stop)
	assert.Len(t, reply.Messages, 9)
	assert.Len(t, reply.IDs, 9)
	reply, err = h.Do(t.Context(), send)
	require.NoError(t, err)
	assert.Equal(t, convo.StopDone, reply.Stop)
	assert.Equal(t, "a\nb", reply.Text())
	_, err = h.Do(t.Context(), never(t))
	assert.ErrorAs(t, err, new(*convo.RoleError))
}

func TestDo_GoingOnFails(t *testing.T) {
	failed := errors.New("no connection")
	for name, tt := range map[string]struct {
		send func(h *convo.History) (convo.Reply, error)
		want error  // nil: a RoleError
		says string // what the Reply says
		ids  int
		stop convo.Stop
	}{
		"send":  {func(*convo.History) (convo.Reply, error) { return convo.Reply{}, failed }, failed, "one", 1, convo.StopPause},
		"panic": {func(*convo.History) (convo.Reply, error) { panic(failed) }, failed, "one", 1, convo.StopPause},
		"another role": {func(*convo.History) (convo.Reply, error) {
			return convo.Reply{Messages: []convo.Message{convo.User("x")}, Stop: convo.StopLength}, nil
		}, nil, "one\nx", 1, convo.StopLength},
		"a user": {func(h *convo.History) (convo.Reply, error) {
			_, err := h.Append(convo.User("stop"))
			return convo.Reply{Messages: []convo.Message{convo.Assistant("two")}}, err
		}, convo.ErrStale, "one\ntwo", 1, convo.StopDone},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, bare(), convo.User("search"))
			n := 0
			reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				if n++; n == 1 {
					return convo.Reply{Messages: []convo.Message{convo.Assistant("one")}, Stop: convo.StopPause}, nil
				}
				return tt.send(h)
			})
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			} else {
				require.ErrorAs(t, err, new(*convo.RoleError))
			}
			assert.Equal(t, 2, n)
			assert.Equal(t, tt.says, reply.Text())
			assert.Len(t, reply.IDs, tt.ids)
			assert.Equal(t, tt.stop, reply.Stop)
			reply, err = h.Do(t.Context(), saying(convo.Assistant("three")))
			require.NoError(t, err, "the conversation goes on")
			assert.Equal(t, "three", reply.Text())
		})
	}
}

// A paused answer can go on after it was saved and opened, in a copy, and after what came
// next was taken back.
func TestDo_PauseIsKept(t *testing.T) {
	ctx := t.Context()
	store := new(convotest.MemStore)
	for name, again := range map[string]func(t *testing.T, h *convo.History) *convo.History{
		"opened": func(t *testing.T, h *convo.History) *convo.History {
			require.NoError(t, h.Save(ctx))
			require.NoError(t, h.Close())
			h, err := convo.Open(ctx, store, "opened", bare())
			require.NoError(t, err)
			return h
		},
		"read from JSON": func(t *testing.T, h *convo.History) *convo.History {
			data, err := json.Marshal(h.Snapshot())
			require.NoError(t, err)
			s := new(convo.Snapshot)
			require.NoError(t, json.Unmarshal(data, s))
			h, err = convo.Restore(s, bare())
			require.NoError(t, err)
			return h
		},
		"restored with another counter": func(t *testing.T, h *convo.History) *convo.History {
			opts := bare()
			opts.Tokenizer = convo.TokenizerFunc(func(s string) int { return len(s) })
			h, err := convo.Restore(h.Snapshot(), opts)
			require.NoError(t, err)
			return h
		},
		"reloaded": func(t *testing.T, h *convo.History) *convo.History {
			require.NoError(t, h.SaveFull(ctx))
			other, err := convo.Open(ctx, store, "reloaded", bare())
			require.NoError(t, err)
			require.NoError(t, other.SetMeta("title", ""))
			require.NoError(t, other.Save(ctx))
			_, _, err = h.Reload(ctx)
			require.NoError(t, err)
			return h
		},
		"rolled back": func(t *testing.T, h *convo.History) *convo.History {
			at := h.Snapshot()
			_, err := h.Do(ctx, saying(convo.Assistant("two")))
			require.NoError(t, err)
			require.NoError(t, h.Rollback(at))
			return h
		},
		"rewound": func(t *testing.T, h *convo.History) *convo.History {
			id, err := h.Append(convo.User("stop"))
			require.NoError(t, err)
			require.NoError(t, h.RewindBefore(id))
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.Open(ctx, store, name, bare())
			require.NoError(t, err)
			mustAppend(t, h, convo.User("search"))
			failed := errors.New("no connection")
			n := 0
			_, err = h.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				if n++; n > 1 {
					return convo.Reply{}, failed
				}
				return convo.Reply{Messages: []convo.Message{convo.Assistant("one")}, Stop: convo.StopPause}, nil
			})
			require.ErrorIs(t, err, failed)
			h = again(t, h)
			reply, err := h.Do(ctx, saying(convo.Assistant("two")))
			require.NoError(t, err)
			assert.Equal(t, "two", reply.Text())
			_, err = h.Do(ctx, never(t))
			assert.ErrorAs(t, err, new(*convo.RoleError), "the answer has ended")
		})
	}
}

// What was queued waits for the end of the answer, and an open call for its result.
func TestDo_PauseAndOthers(t *testing.T) {
	h := historyOf(t, bare(), convo.User("search"))
	send := pausing(t, h, "one", "two")
	reply, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		require.NoError(t, h.Queue(convo.User("next")))
		return send(ctx, s)
	})
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo", reply.Text())
	assert.Equal(t, 2, reply.Queued)

	h = historyOf(t, bare(), convo.User("search"))
	call := convo.ToolCall{ID: "c", Name: "look"}
	reply, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", call)}, Stop: convo.StopPause}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, convo.StopPause, reply.Stop)
	assert.Len(t, reply.OpenCalls(), 1)
	_, err = h.Append(convo.Result(call, "1"))
	require.NoError(t, err)

	h = historyOf(t, bare(), convo.User("search"))
	reply, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Stop: convo.StopPause}, nil
	})
	require.NoError(t, err, "an empty answer")
	assert.Empty(t, reply.Messages)
	assert.Equal(t, convo.StopPause, reply.Stop)
}

// A user message that comes before the rest ends the paused answer.
func TestDo_PauseThatAUserEnds(t *testing.T) {
	var h *convo.History
	looked := 0
	h = historyOf(t, windowOf(4000, dueFunc{due: func() bool {
		if h != nil && h.Snapshot().Len() == 2 {
			looked++
			mustAppend(t, h, convo.User("stop"))
		}
		return false
	}}), convo.User("search"))
	reply, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("one")}, Stop: convo.StopPause}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 1, looked)
	assert.Equal(t, "one", reply.Text())
	assert.Len(t, reply.IDs, 1)
	assert.Equal(t, convo.StopPause, reply.Stop)
	reply, err = h.Do(t.Context(), saying(convo.Assistant("two")))
	require.NoError(t, err)
	assert.Equal(t, "two", reply.Text())
}

// A request of a paused answer that is too long is sent again.
func TestDo_PauseAndOverflow(t *testing.T) {
	h := historyOf(t, bare(), convo.User("a"), convo.Assistant("b"), convo.User(strings.Repeat("long ", 300)), convo.Assistant("b"), convo.User("search"))
	n := 0
	reply, err := h.Do(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		n++
		switch n {
		case 1:
			return convo.Reply{Messages: []convo.Message{convo.Assistant("one")}, Stop: convo.StopPause}, nil
		case 2:
			return convo.Reply{}, errTooLong
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("two")}}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Equal(t, "one\ntwo", reply.Text())
}

// errLeft is the cause with which the tests end a ctx.
var errLeft = errors.New("the user left")

// untilEnd calls f and waits until ctx ends.
func untilEnd(ctx context.Context, f func()) {
	f()
	<-ctx.Done()
}

// A lateStore is a Store whose calls wait until ctx ends, and fail with err(ctx).
type lateStore struct {
	*convotest.MemStore
	end func()
	err func(ctx context.Context) error
}

func (s *lateStore) Append(ctx context.Context, r convo.Record) error {
	if s.end == nil {
		return s.MemStore.Append(ctx, r)
	}
	untilEnd(ctx, s.end)
	return s.err(ctx)
}

func (s *lateStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	if s.end == nil {
		return s.MemStore.Records(ctx, key, from)
	}
	return func(yield func(convo.Record, error) bool) {
		untilEnd(ctx, s.end)
		yield(convo.Record{}, s.err(ctx))
	}
}

// ended are the ways in which caller-supplied code returns after its ctx has ended.
var ended = map[string]func(ctx context.Context) error{
	"ctx's error": func(ctx context.Context) error { return ctx.Err() },
	"its cause":   func(ctx context.Context) error { return fmt.Errorf("Post: %w", context.Cause(ctx)) },
	"another":     func(context.Context) error { return errors.New("connection reset") },
	"a panic":     func(context.Context) error { panic("reset") },
}

// Whatever is called with a ctx that ends fails with an error that matches both ctx's error
// and its cause, however the caller's code returns.
func TestErrors_EndedContext(t *testing.T) {
	for how, returns := range ended {
		send := func(end func()) convo.Send {
			return func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
				untilEnd(ctx, end)
				return convo.Reply{}, returns(ctx)
			}
		}
		full := func(end func()) *convo.History { // only a strategy that waits for ctx makes it fit
			return historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
				untilEnd(ctx, end)
				return convo.Edit{}, returns(ctx)
			})}, append(smallTalk(30), convo.User("the last"))...)
		}
		byModel := func(end func()) *convo.History {
			return historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.Summarize{Window: -1, With: convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
				untilEnd(ctx, end)
				return convo.Summary{}, returns(ctx)
			})}}, append(smallTalk(30), convo.User("the last"))...)
		}
		stored := func(end func()) (*lateStore, *convo.History) {
			s := &lateStore{MemStore: new(convotest.MemStore), err: returns}
			h, err := convo.Open(t.Context(), s, "chat", nil)
			require.NoError(t, err)
			mustAppend(t, h, convo.User("q"))
			require.NoError(t, h.Save(t.Context()))
			mustAppend(t, h, convo.Assistant("a"))
			s.end = end
			return s, h
		}
		for name, call := range map[string]func(ctx context.Context, end func()) error{
			"Do": func(ctx context.Context, end func()) error {
				_, err := historyOf(t, nil, convo.User("q")).Do(ctx, send(end))
				return err
			},
			"Run": func(ctx context.Context, end func()) error {
				_, err := historyOf(t, nil, convo.User("q")).Run(ctx, send(end), convo.RunOptions{})
				return err
			},
			"Run, in a tool": func(ctx context.Context, end func()) error {
				h := historyOf(t, nil, convo.User("q"), convo.Assistant("", callOf("c")))
				_, err := h.Run(ctx, send(func() {}), convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(ctx context.Context, _ convo.ToolCall) ([]convo.Part, error) {
					untilEnd(ctx, end)
					return nil, returns(ctx)
				}}}})
				return err
			},
			"Steps": func(ctx context.Context, end func()) (last error) {
				for _, err := range historyOf(t, nil, convo.User("q")).Steps(ctx, send(end), convo.RunOptions{}) {
					last = err
				}
				return last
			},
			"Prepare": func(ctx context.Context, end func()) error {
				_, _, err := full(end).Prepare(ctx)
				return err
			},
			"Compact": func(ctx context.Context, end func()) error {
				_, err := full(end).Compact(ctx, "")
				return err
			},
			"Compact, in a summarizer": func(ctx context.Context, end func()) error {
				_, err := byModel(end).Compact(ctx, "")
				return err
			},
			"MakeRoom": func(ctx context.Context, end func()) error {
				_, _, err := full(end).MakeRoom(ctx, 10)
				return err
			},
			"Recover": func(ctx context.Context, end func()) error {
				h := full(end)
				_, _, err := h.Recover(ctx, h.Snapshot(), errTooLong)
				return err
			},
			"Handoff": func(ctx context.Context, end func()) error {
				_, err := historyOf(t, nil, append(smallTalk(30), convo.User("the last"))...).Handoff(ctx, convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
					untilEnd(ctx, end)
					return convo.Summary{}, returns(ctx)
				}), "")
				return err
			},
			"Wait": func(ctx context.Context, end func()) error {
				release, started := make(chan struct{}), make(chan struct{})
				h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
					close(started)
					<-release
					return convo.Edit{}, nil
				})}, append(smallTalk(30), convo.User("the last"))...)
				h.CompactInBackground(t.Context())
				<-started
				go end()
				_, err := h.Wait(ctx)
				close(release)
				_, again := h.Wait(t.Context())
				require.NoError(t, again)
				return err
			},
			"Save": func(ctx context.Context, end func()) error {
				_, h := stored(end)
				return h.Save(ctx)
			},
			"Reload": func(ctx context.Context, end func()) error {
				_, h := stored(end)
				_, _, err := h.Reload(ctx)
				return err
			},
			"Open": func(ctx context.Context, end func()) error {
				s, _ := stored(end)
				_, err := convo.Open(ctx, s, "chat", nil)
				return err
			},
			"Load": func(ctx context.Context, end func()) error {
				s, _ := stored(end)
				_, err := convo.Load(ctx, s, "chat", 0)
				return err
			},
			"Copy": func(ctx context.Context, end func()) error {
				s, _ := stored(end)
				return logs.Copy(ctx, new(convotest.MemStore), "copy", s, "chat")
			},
			"Archive": func(ctx context.Context, end func()) (last error) {
				_, h := stored(end)
				for _, err := range h.Archive(ctx, convo.Range{First: 1, Last: 9}) {
					last = err
				}
				return last
			},
		} {
			if ofStore[name] && how != "ctx's error" && how != "its cause" {
				continue // what a Store has found out, such as a conflict, remains as it is
			}
			t.Run(name+", "+how, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				err := call(ctx, func() { cancel(errLeft) })
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, errLeft)
				assert.NotContains(t, err.Error(), "\n")

				if givesLess[name] {
					return
				}
				ctx, stop := context.WithTimeoutCause(t.Context(), time.Millisecond, errLeft)
				defer stop()
				err = call(ctx, func() {})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, errLeft)
			})
		}
	}
}

// ofStore are the calls in which a Store returns the error, and givesLess are those that give
// a model less time than ctx has.
var (
	ofStore   = map[string]bool{"Save": true, "Reload": true, "Open": true, "Load": true, "Copy": true, "Archive": true}
	givesLess = map[string]bool{"Compact, in a summarizer": true}
)

// badAnswers are the ways in which a request fails, or its answer is of no use.
func badAnswers() map[string]convo.Send {
	fails := func(err error) convo.Send {
		return func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, err }
	}
	returns := func(r convo.Reply) convo.Send {
		return func(context.Context, *convo.Snapshot) (convo.Reply, error) { return r, nil }
	}
	of := func(parts ...convo.Part) []convo.Message {
		return []convo.Message{{Role: convo.RoleAssistant, Parts: parts}}
	}
	cut := &convo.ToolCall{ID: "9", Name: "search", Arguments: `{"to":`}
	return map[string]convo.Send{
		"500":                           fails(errors.New("500 internal server error")),
		"network":                       fails(errors.New("connection reset by peer")),
		"ctx ended":                     fails(context.Canceled),
		"empty":                         returns(convo.Reply{}),
		"reasoning only":                returns(convo.Reply{Messages: of(convo.Reasoning{Text: "hm"})}),
		"two calls with one ID":         returns(convo.Reply{Messages: of(callOf("c"), callOf("c")), Stop: convo.StopToolCall}),
		"cut off in a call":             returns(convo.Reply{CutOff: cut, Stop: convo.StopLength}),
		"cut off after a whole call":    returns(convo.Reply{Messages: of(callOf("c")), CutOff: cut, Stop: convo.StopLength}),
		"too long, and nothing to drop": fails(errTooLong),
		"too long, with a number":       fails(errors.New("400: prompt is too long: 5939 tokens > 1 maximum")),
	}
}

// After whatever the model or the network does, the user types again, and is answered: with
// the loop of the README, with Do and with Run, under every policy that lets a user speak,
// also if the process ends in between.
func TestFailed_UserGoesOn(t *testing.T) {
	loops := map[string]func(h *convo.History, send convo.Send, question string) error{
		"loop of the README": func(h *convo.History, send convo.Send, question string) error {
			return ask(context.Background(), h, send, question)
		},
		"Do": func(h *convo.History, send convo.Send, question string) error {
			if err := runCalls(h); err != nil {
				return err
			}
			if _, err := h.Append(convo.User(question)); err != nil {
				return err
			}
			_, err := h.Do(context.Background(), send)
			return err
		},
		"Run": func(h *convo.History, send convo.Send, question string) error {
			if _, err := h.Append(convo.User(question)); err != nil {
				return err
			}
			_, err := h.Run(context.Background(), send, convo.RunOptions{Tools: []convo.Handler{{
				Tool: convo.Tool{Name: callOf("c").Name},
				Run:  func(context.Context, convo.ToolCall) ([]convo.Part, error) { return []convo.Part{convo.Text("r")}, nil },
			}}})
			return err
		},
	}
	policies := policies()
	for loop, ask := range loops {
		for name, policy := range policies {
			for fault, send := range badAnswers() {
				if fault == "cut off after a whole call" && loop != "Run" && !slices.Contains(policy.UserAfter, convo.RoleTool) && policy.UserAfter != nil {
					continue // under this policy the results are for the model first
				}
				for _, restart := range []bool{false, true} {
					t.Run(fmt.Sprint(loop, "/", name, "/", fault, "/restart ", restart), func(t *testing.T) {
						opts := &convo.Options{Roles: policy}
						s := new(shelf)
						h := open(t, s, "k", opts)
						for n := range 3 { // an outage of three questions
							_ = ask(h, send, fmt.Sprint("question ", n))
							if restart {
								save(t, h)
								h = open(t, s, "k", opts)
							}
						}
						require.NoError(t, ask(h, saying(convo.Assistant("answer")), "question 3"))
						texts := strings.Join(textsOf(h.Snapshot()), " ")
						for n := range 4 {
							want := 1
							if n < 3 && loop == "loop of the README" && strings.HasPrefix(fault, "too long") {
								want = 0 // the loop takes back what does not fit
							}
							assert.Equal(t, want, strings.Count(texts, fmt.Sprint("question ", n)))
						}
						assert.True(t, strings.HasSuffix(texts, "question 3 answer"), texts)
						checkPairs(t, h.Snapshot())
						checkSaved(t, h, nil)
					})
				}
			}
		}
	}
}

// Two user messages with no failed request between them stay refused, in one Append and in two.
func TestFailed_OnlyAfterARequest(t *testing.T) {
	refused := func(t *testing.T, h *convo.History, msgs ...convo.Message) {
		t.Helper()
		unchanged(t, h, func() {
			_, err := h.Append(msgs...)
			require.ErrorAs(t, err, new(*convo.RoleError))
		})
	}
	fail := func(t *testing.T, h *convo.History) {
		t.Helper()
		_, err := h.Do(t.Context(), badAnswers()["500"])
		require.Error(t, err)
	}
	u, v := convo.User("u"), convo.User("v")
	h := historyOf(t, nil, u)
	refused(t, h, v)
	fail(t, h)
	refused(t, h, v, convo.User("w"))
	mustAppend(t, h, convo.System("a note"), v)
	refused(t, h, convo.User("w"))
	mustAppend(t, h, convo.Assistant("a"), u)
	refused(t, h, v)

	// While a Do waits for its answer, nothing follows the question.
	h = historyOf(t, nil, u)
	fail(t, h)
	_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		refused(t, h, v)
		require.NoError(t, h.Queue(v))
		assert.Equal(t, 1, h.Status().Queued)
		return convo.Reply{Messages: []convo.Message{convo.Assistant("a")}}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"u", "a", "v"}, textsOf(h.Snapshot()))
	refused(t, h, u)

	// While a request of an own loop is under way, the queue waits, and an answer ends what
	// failed before it.
	h = historyOf(t, nil, u)
	s, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	retry, _, err := h.Recover(t.Context(), s, errors.New("500"))
	require.False(t, retry, "%v", err)
	s, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	require.NoError(t, h.Queue(v))
	refused(t, h, v)
	_, err = h.AppendReply(s, convo.Reply{Messages: []convo.Message{convo.Assistant("to u")}})
	require.NoError(t, err)
	assert.Equal(t, []string{"u", "to u", "v"}, textsOf(h.Snapshot()))
	require.NoError(t, h.RewindTo(1))
	refused(t, h, v)

	// A reply to a message that was taken back says nothing of the one in its place.
	h = historyOf(t, nil, u)
	s = h.Snapshot()
	require.NoError(t, h.RewindBefore(1))
	mustAppend(t, h, v)
	_, err = h.AppendReply(s, convo.Reply{Messages: []convo.Message{convo.Assistant("to u")}})
	require.ErrorIs(t, err, convo.ErrStale)
	refused(t, h, u)

	// Nor is what was queued during a request with an empty answer one that was asked.
	h = historyOf(t, nil, u)
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		return convo.Reply{}, h.Queue(v)
	})
	require.NoError(t, err)
	refused(t, h, u)

	// A conversation that does not fit would not fit with another message.
	h = historyOf(t, &convo.Options{Limits: convo.Limits{Window: 600, Reserve: 100}}, convo.User(strings.Repeat("long ", 900)))
	for range 2 {
		_, _, err = h.Prepare(t.Context())
		require.ErrorAs(t, err, new(*convo.FloorError))
		refused(t, h, v)
		_, err = h.Do(t.Context(), saying(convo.Assistant("a")))
		require.ErrorAs(t, err, new(*convo.FloorError))
		refused(t, h, v)
		_, err = h.Run(t.Context(), saying(convo.Assistant("a")), convo.RunOptions{})
		require.ErrorAs(t, err, new(*convo.FloorError))
		refused(t, h, v)
	}
	rewind(t, h)
	mustAppend(t, h, v)
}

// If what was asked again and again fills the window, Rewind(1) takes the run back, as the
// error says.
func TestFailed_RunFillsTheWindow(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000, Reserve: 100}}, convo.User("before"), convo.Assistant("a"))
	var floor *convo.FloorError
	for err := error(nil); floor == nil; errors.As(err, &floor) {
		mustAppend(t, h, convo.User(strings.Repeat("well? ", 60)))
		_, err = h.Do(t.Context(), badAnswers()["500"])
		require.Less(t, h.Len(), 30)
	}
	assert.ErrorContains(t, floor, "Rewind")
	rewind(t, h)
	assert.Equal(t, []string{"before", "a"}, textsOf(h.Snapshot()))
}

// The second message joins the turn of the first. What was queued joins it too, and a Reload
// leaves the mark where it is.
func TestFailed_TurnQueueAndReload(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("1"), convo.Assistant("2"))
	mustAppend(t, b, convo.User("mine"))
	_, err := b.Do(t.Context(), badAnswers()["500"])
	require.Error(t, err)
	mustAppend(t, a, convo.User("theirs"), convo.Assistant("4"))
	save(t, a)
	takeOver(t, b)
	require.NoError(t, b.Queue(convo.User("queued")))
	assert.Zero(t, b.Status().Queued)
	assert.Equal(t, []string{"1 1", "2 2", "3 theirs", "4 4", "5 mine", "6 queued"}, linesOf(b))
	first, _ := b.Snapshot().Find(5)
	second, _ := b.Snapshot().Find(6)
	assert.Equal(t, first.Turn, second.Turn)
	save(t, b)
	checkOpened(t, s, "k", nil, b)

	mustAppend(t, a, convo.User("5"))
	takeOver(t, a)
	_, err = a.Append(convo.User("6"))
	require.ErrorAs(t, err, new(*convo.RoleError), "a Reload is no failed request")
}

// Rows may hold two user messages in a row, in AppendRows and Resume; all other rules hold.
func TestAppendRows(t *testing.T) {
	for name, policy := range policies() {
		h := historyOf(t, &convo.Options{Roles: policy})
		rows := []convo.Message{keyed("1", convo.User("1")), keyed("2", convo.User("2")), keyed("3", convo.Assistant("3")), keyed("4", convo.User("4"))}
		last, err := h.AppendRows(rows...)
		require.NoError(t, err, name)
		assert.Equal(t, convo.ID(4), last)
		rows = append(rows, keyed("5", convo.User("5")))
		_, err = h.AppendRows(rows[4])
		require.NoError(t, err, name)
		again, err := convo.Resume(decisionsOf(t, h), rowsOf(rows...), &convo.Options{Roles: policy})
		require.NoError(t, err, name)
		assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
		more := append(rows, keyed("6", convo.User("6")))
		again, err = convo.Resume(decisionsOf(t, h), rowsOf(more...), &convo.Options{Roles: policy})
		require.NoError(t, err, name)
		assert.Equal(t, 6, again.Len())
	}
	h := historyOf(t, nil)
	_, err := h.AppendRows(convo.Assistant("a"))
	require.ErrorAs(t, err, new(*convo.RoleError))
	mustAppend(t, h, convo.User("u"), convo.Assistant("", callOf("c")))
	_, err = h.AppendRows(convo.User("v"))
	require.ErrorIs(t, err, convo.ErrOpenCalls)
}

func TestSnapshot_OpenCallsAndQueued(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b))
	assert.Equal(t, []convo.ToolCall{a, b}, h.Snapshot().OpenCalls())
	mustAppend(t, h, convo.Result(a, "r"))
	queue(t, h, "q1", "q2")
	s := reload(t, h, nil).Snapshot() // in another process
	assert.Equal(t, []convo.ToolCall{b}, s.OpenCalls())
	assert.Equal(t, []convo.Message{convo.User("q1"), convo.User("q2")}, s.Queued())
	s.Queued()[0].Parts[0] = convo.Text("changed")
	assert.Equal(t, "q1", s.Queued()[0].Text())
	mustAppend(t, h, convo.Result(b, "r"), convo.Assistant("done"))
	assert.Empty(t, h.Snapshot().OpenCalls())
	assert.Empty(t, h.Snapshot().Queued())
	assert.Empty(t, new(convo.Snapshot).OpenCalls())
	assert.Empty(t, new(convo.Snapshot).Queued())
}

func TestPrint_Usage(t *testing.T) {
	u := convo.Usage{Input: 12_400, CacheRead: 11_000, Extra: 7, Output: 310, Reasoning: 200}
	assert.Equal(t, "12,400 read (11,000 from the cache, 7 beyond the request), 310 written (200 reasoning)", fmt.Sprint(u))
	assert.Equal(t, "0 read, 0 written", fmt.Sprint(convo.Usage{}))

}

func replyOf(msgs ...convo.Message) convo.Reply { return convo.Reply{Messages: msgs} }

// The Reply has what the History added to the messages, as that of Do has.
func TestAppendReply_ReturnsAsAppended(t *testing.T) {
	opts := bare()
	opts.Key = func(m convo.Message) string { return "row of " + string(m.Role) }
	opts.MaxResult = 64
	h := historyOf(t, opts, convo.User("q"))
	at := h.Snapshot()
	require.NoError(t, h.Queue(convo.User("queued")))
	long := convo.Text(strings.Repeat("a long result, ", 100))
	call := convo.ToolCall{Name: "served", Arguments: "{}"}
	given := convo.Reply{
		Messages: []convo.Message{convo.Assistant("", call), {Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Name: "served", Parts: []convo.Part{long}}}}, convo.Assistant("done")},
		IDs:      []convo.ID{99}, Queued: 99, Reports: []convo.Report{{}},
	}
	reply, err := h.AppendReply(at, given)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2, 3, 4}, reply.IDs)
	assert.NotEmpty(t, reply.Messages[0].ToolCalls()[0].ID)
	assert.Equal(t, "row of assistant", reply.Messages[0].Key)
	assert.Equal(t, string(long), reply.Messages[1].ToolResults()[0].Text(), "whole, also where the view has it cut")
	assert.Equal(t, 1, reply.Queued)
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, convo.ReasonAppend, reply.Reports[0].Reason)
	assert.Empty(t, given.Messages[0].Key, "the caller's messages stay as they are")
	assert.Empty(t, given.Messages[0].ToolCalls()[0].ID)
	assert.True(t, h.Status().AwaitsAnswer, "the queued message waits")
}

func TestAppendReply_RecordsUsage(t *testing.T) {
	h := historyOf(t, nil, convo.User("q"))
	reply := replyOf(convo.Assistant("a"))
	reply.Usage = convo.Usage{Input: 500, Output: 3}
	_, err := h.AppendReply(h.Snapshot(), reply)
	require.NoError(t, err)
	assert.Equal(t, 500, h.Tokens().Measured)

	_, err = h.Append(convo.User("r"))
	require.NoError(t, err)
	reply.Usage.Input = -1
	_, err = h.AppendReply(h.Snapshot(), reply)
	assert.NoError(t, err, "a usage that cannot be is left aside")
	assert.Equal(t, 500, h.Tokens().Measured)

	_, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.User("no")}, Usage: convo.Usage{Input: 600}})
	require.ErrorAs(t, err, new(*convo.RoleError))
	assert.Equal(t, 600, h.Tokens().Measured, "the request was made, whatever became of its answer")
}

// A loop ends with an error, and not in silence, if the answer leaves nothing to go on
// with. What came whole is in the conversation.
func TestAppendReply_AnswerErrors(t *testing.T) {
	cut := &convo.ToolCall{ID: "x", Name: "write"}
	for _, test := range []struct {
		name  string
		reply convo.Reply
		text  string
		ends  []string
	}{
		{"empty", convo.Reply{}, "convo: the answer is empty (stop: done); ask the model again", []string{"user"}},
		{"reasoning", replyOf(thoughts.In(convo.Assistant(""), convo.Reasoning{Text: "hm"})), "convo: the answer is empty (stop: done); append a user message to go on, or take the answer back with RewindTo", []string{"user", "assistant"}},
		{"cut off", convo.Reply{CutOff: cut, Stop: convo.StopLength}, `convo: the answer was cut off in a call of tool "write" (stop: length); let the model write more tokens, and ask the model again`, []string{"user"}},
		{"cut off after a call", convo.Reply{Messages: []convo.Message{convo.Assistant("", callOf("c"))}, CutOff: cut}, `convo: the answer was cut off in a call of tool "write" (stop: done); append the results of the open calls, and ask the model again`, []string{"user", "assistant"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("q"))
			reply, err := h.AppendReply(h.Snapshot(), test.reply)
			require.EqualError(t, err, test.text)
			require.ErrorAs(t, err, new(*convo.AnswerError))
			assert.Len(t, reply.IDs, len(test.reply.Messages))
			var roles []string
			for _, m := range h.Snapshot().Messages() {
				roles = append(roles, string(m.Role))
			}
			assert.Equal(t, test.ends, roles)
		})
	}
}

// A refused answer comes back as it was given.
func TestAppendReply_RefusedComesBack(t *testing.T) {
	h := historyOf(t, nil, convo.User("q"))
	for name, reply := range map[string]convo.Reply{
		"a user message":        replyOf(convo.Assistant("a"), convo.User("b")),
		"a system message":      replyOf(convo.System("s")),
		"a result of no call":   replyOf(convo.Result(callOf("x"), "r")),
		"two in a row":          replyOf(convo.Assistant("a"), convo.Assistant("b")),
		"a message with faults": replyOf(convo.Message{Role: convo.RoleAssistant}),
	} {
		unchanged(t, h, func() {
			reply.Stop = convo.StopLength
			got, err := h.AppendReply(h.Snapshot(), reply)
			assert.Error(t, err, name)
			assert.Equal(t, reply, got, name)
		})
	}
	require.NoError(t, h.Close())
	_, err := h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("a")))
	require.ErrorIs(t, err, convo.ErrClosed)
}

// The next answer continues a paused answer, as with Do, and only that.
func TestAppendReply_Pauses(t *testing.T) {
	h := historyOf(t, nil, convo.User("q"))
	half := replyOf(convo.Assistant("one"))
	half.Stop = convo.StopPause
	_, err := h.AppendReply(h.Snapshot(), half)
	require.NoError(t, err)
	assert.True(t, h.Status().AwaitsAnswer)
	again := restoreOf(t, readBack(t, h.Snapshot()))
	assert.True(t, again.Status().AwaitsAnswer, "a paused answer stays one in a snapshot")

	paused := h.Snapshot()
	require.NoError(t, h.Queue(convo.User("typed meanwhile")))
	assert.Equal(t, 1, h.Status().Queued, "it waits for the rest of the answer")
	mustAppend(t, h, convo.System("a note"))
	assert.True(t, h.Status().AwaitsAnswer, "a note is no message of the turn")
	unchanged(t, h, func() {
		_, err = h.AppendReply(paused, replyOf(convo.Assistant("two")))
		require.ErrorAs(t, err, new(*convo.RoleError), "what was sent does not end with the note")
	})
	reply, err := h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("two")))
	require.NoError(t, err)
	assert.Equal(t, 1, reply.Queued)
	assert.True(t, h.Status().AwaitsAnswer)
	unchanged(t, h, func() {
		_, err = h.AppendReply(paused, replyOf(convo.Assistant("two again"), convo.Assistant("and again")))
		require.ErrorAs(t, err, new(*convo.RoleError))
	})
	_, err = h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("to what was typed")))
	require.NoError(t, err)
	assert.False(t, h.Status().AwaitsAnswer)
	_, err = h.AppendReply(h.Snapshot(), replyOf(convo.Assistant("three")))
	require.ErrorAs(t, err, new(*convo.RoleError))
	restoreOf(t, readBack(t, h.Snapshot()))
}

// An answer to a question that was taken back does not become the answer to another one.
func TestAppendReply_TakenBack(t *testing.T) {
	h := historyOf(t, nil, convo.User("one"), convo.Assistant("a"), convo.User("two"))
	at := h.Snapshot()
	_, err := h.Rewind(1)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("three"))
	unchanged(t, h, func() {
		_, err := h.AppendReply(at, replyOf(convo.Assistant("to two")))
		require.EqualError(t, err, "convo: stale snapshot: entry 3 was taken back, and the answer to it is not appended; ask the model again")
		require.ErrorIs(t, err, convo.ErrStale)
	})
}

func TestStatus_AwaitsAnswer(t *testing.T) {
	h := historyOf(t, nil)
	awaits := func() bool { return h.Status().AwaitsAnswer }
	assert.False(t, awaits(), "of an empty conversation")
	require.NoError(t, h.SetSystem(convo.System("s")))
	assert.False(t, awaits(), "of one with system text")
	mustAppend(t, h, convo.User("q"))
	assert.True(t, awaits())
	mustAppend(t, h, convo.Assistant("", callOf("a"), callOf("b")))
	assert.False(t, awaits(), "calls are open")
	mustAppend(t, h, convo.Result(callOf("a"), "r"))
	assert.False(t, awaits(), "a call is open")
	mustAppend(t, h, convo.Result(callOf("b"), "r"))
	assert.True(t, awaits())
	mustAppend(t, h, convo.Assistant("a"))
	assert.False(t, awaits())
}

// A loop of one's own makes the same requests as Run, whatever the model answers, and its
// conversation ends the same.
func TestAppendReply_LoopIsRun(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var script []convo.Reply
		for range 1 + rng.IntN(8) {
			r := convo.Reply{Usage: convo.Usage{Input: 10 + rng.IntN(90)}}
			var calls []convo.ToolCall
			for range rng.IntN(3) {
				calls = append(calls, convo.ToolCall{ID: fmt.Sprint("c", len(script), len(calls)), Name: "t", Arguments: "{}"})
			}
			switch rng.IntN(8) {
			case 0:
				r.Stop = convo.StopPause
				r.Messages = []convo.Message{convo.Assistant("half")}
			case 1:
				r.Stop = convo.StopLength
				r.CutOff = &convo.ToolCall{Name: "t"}
			default:
				r.Messages = []convo.Message{convo.Assistant("text", calls...)}
			}
			script = append(script, r)
		}
		script = append(script, replyOf(convo.Assistant("end")), replyOf(convo.Assistant("answer to what was queued")))
		queue := rng.IntN(len(script) - 1)

		play := func(own bool) (requests []string, h *convo.History, err error) {
			opts := bare()
			opts.Limits = convo.Limits{Window: 400}
			h = historyOf(t, opts, convo.User("q"))
			n := 0
			send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
				requests = append(requests, fmt.Sprintf("%+v", s.Messages()))
				if n == queue {
					require.NoError(t, h.Queue(convo.User("typed meanwhile")))
				}
				n++
				return script[n-1], nil
			}
			if !own {
				_, err = h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{{
					Tool: convo.Tool{Name: "t"},
					Run:  func(context.Context, convo.ToolCall) ([]convo.Part, error) { return []convo.Part{convo.Text("r")}, nil },
				}}})
				return requests, h, err
			}
			require.NoError(t, h.SetTools(convo.Tool{Name: "t"}))
			for h.Status().AwaitsAnswer {
				s, _, err := h.Prepare(t.Context())
				if err != nil {
					return requests, h, err
				}
				reply, err := send(t.Context(), s)
				require.NoError(t, err)
				reply, err = h.AppendReply(s, reply)
				for _, c := range reply.OpenCalls() {
					mustAppend(t, h, convo.Result(c, "r"))
				}
				if err != nil {
					return requests, h, err
				}
			}
			return requests, h, nil
		}
		want, run, runErr := play(false)
		got, own, ownErr := play(true)
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, run.Snapshot().Messages(), own.Snapshot().Messages(), "seed %d", seed)
		if _, ok := errors.AsType[*convo.AnswerError](runErr); ok {
			require.EqualError(t, ownErr, runErr.Error(), "seed %d", seed)
		} else {
			require.NoError(t, runErr)
			require.NoError(t, ownErr)
		}
	}
}
