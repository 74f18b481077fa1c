package convo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

type planFunc = func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error)

// oldest returns the IDs of the exchanges outside the floor, oldest first.
func oldest(s *convo.Snapshot) [][]convo.ID {
	var all [][]convo.ID
	for x := range s.Exchanges() {
		if !x.Floor {
			all = append(all, x.IDs())
		}
	}
	return all
}

// A strategy may plan what it likes: what breaks a rule is refused with its
// name, and nothing has changed.
func TestHostile_Strategies(t *testing.T) {
	drop := func(ids ...convo.ID) planFunc {
		return func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: ids}, nil
		}
	}
	summary := func(sum convo.Summary) planFunc {
		return func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: slices.Concat(oldest(s)...), Summary: &sum}, nil
		}
	}
	for _, tt := range []struct {
		name string
		plan planFunc
		want string
	}{
		{"an unknown ID", drop(99), "names an entry that the snapshot does not hold (entry 99)"},
		{"a negative ID", drop(-1), "names an entry that the snapshot does not hold (entry -1)"},
		{"half an exchange", drop(3), "drops half an exchange (entry 3)"},
		{"a system entry", drop(1), "names a system entry (entry 1)"},
		{"a pinned entry", drop(5, 6), "drops a pinned exchange (entry 5)"},
		{"the newest exchange", drop(43), "drops the newest exchange (entry 43)"},
		{"the user message of the newest turn", drop(2), "drops a user message of the newest turn (entry 2)"},
		{"clears a pinned result", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 6}}}, nil
		}, "clears a pinned exchange (entry 6)"},
		{"clears what is no result", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 3, CallID: "c0"}}}, nil
		}, "clears a result that is not there (entry 3) (call \"c0\")"},
		{"a blank summary", summary(convo.Summary{Text: " \n"}), "the summary is blank"},
		{"a summary that was cut off", summary(convo.Summary{Text: "and then", Stop: convo.StopLength}), "it is cut off"},
		{"a summary of a tool call", summary(convo.Summary{Text: "x", Stop: convo.StopToolCall}), "the model called a tool"},
		{"a summary of the future", summary(convo.Summary{Text: "x", Covers: []convo.Range{{First: 3, Last: 1000}}}), "covers 3 to 1000"},
		{"a summary that covers backwards", summary(convo.Summary{Text: "x", Covers: []convo.Range{{First: 9, Last: 3}}}), "covers 9 to 3"},
		{"a summary longer than what it replaces", summary(convo.Summary{Text: strings.Repeat("blah ", 2000)}), "the view would grow by"},
		{"a clear that grows", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 4, Text: strings.Repeat("x", 10_000)}}}, nil
		}, "the view would grow by"},
		{"nothing at all", drop(), "too little to gain"},
		{"a panic", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic("boom") }, "panic in CompactionStrategy: boom"},
		{"a panic with nil", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic(nil) }, "panic in CompactionStrategy"},
		{"a panic of the runtime", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			var s *convo.Summary
			return convo.Edit{Drop: []convo.ID{convo.ID(s.Tokens)}}, nil
		}, "panic in CompactionStrategy"},
		{"an error", func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{3, 4}}, errors.New("out of ideas")
		}, "out of ideas"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, convo.StrategyFunc(tt.plan)), 20)
			require.NoError(t, h.Pin(6))
			unchanged(t, h, func() {
				r, err := h.CompactIfNeeded(t.Context())
				require.ErrorContains(t, err, tt.want)
				assert.Equal(t, convo.Failed, r.Outcome)
				assert.False(t, r.Fits)
				_, err = h.Compact(t.Context(), "")
				require.Error(t, err)
			})
			require.True(t, h.CompactInBackground(t.Context()))
			unchanged(t, h, func() {
				_, err := h.Wait(t.Context())
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}

type nameless struct{ convo.Truncate }

func (nameless) Name() string { panic("no name") }

func TestHostile_NamesAndTriggers(t *testing.T) {
	h := toolTurn(t, windowOf(1000, nameless{}), 20)
	unchanged(t, h, func() {
		_, err := h.CompactIfNeeded(t.Context())
		require.ErrorContains(t, err, "panic in CompactionStrategy: no name")
	})

	h = toolTurn(t, windowOf(50_000, panicsWhenDue{}), 20)
	unchanged(t, h, func() {
		r, err := h.CompactIfNeeded(t.Context())
		require.ErrorContains(t, err, "panic in Trigger: not now")
		assert.True(t, r.Fits)
		assert.False(t, errors.Is(err, convo.ErrClosed))
	})

	var nothing *convo.Truncate // a typed nil
	h = toolTurn(t, windowOf(1000, nothing), 20)
	unchanged(t, h, func() {
		_, err := h.CompactIfNeeded(t.Context())
		require.ErrorContains(t, err, "panic in CompactionStrategy")
	})
	h = toolTurn(t, windowOf(10_000, convo.StrategyFunc(nil)), 20)
	_, err := h.Compact(t.Context(), "")
	require.ErrorContains(t, err, "panic in CompactionStrategy")
	_, err = h.Summarize(t.Context(), convo.SummarizerFunc(nil), "")
	require.ErrorContains(t, err, "panic in Summarizer")
}

type panicsWhenDue struct{ convo.Truncate }

func (panicsWhenDue) Due(convo.Status) bool { panic("not now") }

// What a strategy or a summarizer was given is its own: it may keep it, change
// it and use it for ever.
func TestHostile_KeepsAndChanges(t *testing.T) {
	var kept *convo.Snapshot
	vandal := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		for _, list := range [][]convo.Message{req.Messages, req.Pinned} {
			for i := range list {
				for j := range list[i].Parts {
					if r, ok := list[i].Parts[j].(convo.ToolResult); ok && len(r.Parts) > 0 {
						r.Parts[0] = convo.Text("overwritten")
					}
					list[i].Parts[j] = convo.Text("overwritten")
				}
				list[i].Role = "nobody"
			}
		}
		return convo.Summary{Text: "fine", Usage: convo.Usage{Input: -5}, Covers: []convo.Range{{First: 1, Last: 1 << 40}}}, nil
	})
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		snap := *s
		kept = &snap
		defer func() { *s = convo.Snapshot{} }()
		e, err := convo.Summarize{With: vandal, MaxTokens: 50, Window: -1}.Compact(ctx, s, g)
		for x := range s.Exchanges() {
			clear(x.IDs())
		}
		return e, err
	}))
	opts.OnCompaction = func(r convo.Report) {
		clear(r.Summarised)
		clear(r.Links)
		panic("observer")
	}
	h := toolTurn(t, opts, 20)
	require.NoError(t, h.Pin(6))
	before := pictureOf(t, h.Snapshot())
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.ID(3), r.Summarised[0])
	assert.Equal(t, before, pictureOf(t, kept))
	assert.Zero(t, r.Usage, "a negative figure counts for nothing")
	for _, m := range h.Snapshot().Messages() {
		assert.NotContains(t, m.Text(), "overwritten")
	}
	for _, e := range h.Snapshot().All() {
		for _, res := range e.Message.ToolResults() {
			assert.Equal(t, strings.Repeat("x", 92), res.Text())
		}
	}
}

// A tokenizer that panics, or counts nonsense, makes errors and nothing else.
func TestHostile_Tokenizers(t *testing.T) {
	count := func(s string) int { return len(s) }
	opts := windowOf(1000, convo.ClearToolResults{})
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int { return count(s) })
	h := toolTurn(t, opts, 20)
	count = func(string) int { panic("no vocabulary") }
	unchanged(t, h, func() {
		_, err := h.CompactIfNeeded(t.Context()) // by ClearToolResults
		require.ErrorContains(t, err, "no vocabulary")
		_, err = h.Summarize(t.Context(), nil, "")
		require.ErrorContains(t, err, "no vocabulary")
	})
	for name, bad := range map[string]func(string) int{
		"negative": func(string) int { return -1 },
		"huge":     func(string) int { return math.MaxInt },
		"growing":  func() func(string) int { n := 0; return func(string) int { n += 1000; return n } }(),
	} {
		count = bad
		_, err := h.CompactIfNeeded(t.Context())
		t.Logf("%s: %v", name, err)
		_, err = h.Compact(t.Context(), name)
		t.Logf("%s: %v", name, err)
		checkPairs(t, h.Snapshot())
	}
}

// A summarizer that ignores its context and never comes back holds up its
// caller; what was said meanwhile stays, and others go on.
func TestHostile_NeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		var calls atomic.Int32
		h := toolTurn(t, windowOf(1000, convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			if calls.Add(1) == 1 {
				<-forever
			}
			return convo.Summary{Text: "late"}, nil
		}), MaxTokens: 50, Window: -1}, convo.Truncate{})), 20)
		stuck := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := h.CompactIfNeeded(ctx)
			stuck <- err
		}()
		time.Sleep(2 * time.Second)
		mustAppend(t, h, convo.User("are you there?"))
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.Applied, r.Outcome)
		after := h.Snapshot()
		close(forever)
		require.ErrorIs(t, <-stuck, context.DeadlineExceeded)
		assert.Same(t, after, h.Snapshot())
	})
}

// orderFault says how a view breaks what every view keeps: system entries
// first, results directly after their calls, IDs that ascend. Empty: not.
func orderFault(s *convo.Snapshot) string {
	var open []string
	var last convo.ID
	others := false
	for _, e := range s.All() {
		m := e.Message
		switch {
		case m.Role == convo.RoleSystem && others:
			return fmt.Sprintf("system entry %d is not in front", e.ID)
		case m.Role != convo.RoleSystem && !others:
			others, last = true, 0
		}
		if e.ID <= last {
			return fmt.Sprintf("entry %d after %d", e.ID, last)
		}
		last = e.ID
		if m.Role != convo.RoleTool && len(open) > 0 {
			return fmt.Sprintf("entry %d while calls %v are open", e.ID, open)
		}
		for _, c := range m.ToolCalls() {
			open = append(open, c.ID)
		}
		for _, r := range m.ToolResults() {
			i := slices.Index(open, r.CallID)
			if i < 0 {
				return fmt.Sprintf("entry %d answers no open call", e.ID)
			}
			open = slices.Delete(open, i, i+1)
		}
	}
	return ""
}
