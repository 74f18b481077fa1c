package convo_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// After an edit by hand, a request that is still above the high mark is
// compacted at the next check.
func TestApply_LeavesTheViewAboveHigh(t *testing.T) {
	opts := windowOf(5000, convo.Truncate{})
	opts.Limits.High = 1000
	h := toolTurn(t, opts, 20)
	r := apply(t, h, convo.Edit{Drop: []convo.ID{3, 4}})
	require.True(t, r.Fits)
	require.Greater(t, r.TokensAfter, 1000)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonHigh, r.Reason)
}

func TestApply_TheLastOfSeveralClearsCounts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		clears []convo.Clear
		want   string
	}{
		{"both for the entry", []convo.Clear{{ID: 4, Text: "one"}, {ID: 4, Text: "two"}}, "two"},
		{"one for the result behind one for the entry", []convo.Clear{{ID: 4, Text: "one"}, {ID: 4, CallID: "c1", Text: "two"}}, "two"},
		{"one for the entry behind one for the result", []convo.Clear{{ID: 4, CallID: "c1", Text: "one"}, {ID: 4, Text: "two"}}, "two"},
		{"others in between", []convo.Clear{{ID: 4, Text: "one"}, {ID: 5, Text: "other"}, {ID: 4, Text: "two"}}, "two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, bare())
			r := apply(t, h, convo.Edit{Clear: tt.clears})
			assert.Equal(t, convo.ID(4), r.Cleared[0])
			e, _ := h.Snapshot().Find(4)
			assert.Equal(t, tt.want, e.Message.Text())
		})
	}
}

// An impossible usage in an edit's summary is ignored, and the edit is applied.
func TestApply_HostileUsage(t *testing.T) {
	for _, usage := range []convo.Usage{{Input: -5, Output: 3}, {Input: 5, CacheRead: 7}, {Input: 5, CacheRead: 3, CacheWrite: 3}, {Output: -1}} {
		h := tour(t, bare())
		r := apply(t, h, convo.Edit{Drop: []convo.ID{6}, Summary: &convo.Summary{Text: "s", Usage: usage}})
		assert.Zero(t, r.Usage)
		sum, ok := h.Snapshot().Summary()
		require.True(t, ok)
		assert.Zero(t, sum.Usage)
	}
}

// The original of a result that stays is not given to Options.Spill.
func TestApply_PinnedMeanwhileIsNotSpilled(t *testing.T) {
	var spilled []string
	opts := bare()
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		spilled = append(spilled, r.CallID)
		return "file", nil
	}
	h := toolTurn(t, opts, 3)
	at := h.Snapshot()
	require.NoError(t, h.Pin(4))
	r, err := h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 6}}})
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{4}, r.Spared)
	assert.Equal(t, []convo.ID{6}, r.Cleared)
	assert.Equal(t, []string{"c1"}, spilled)
}

// A summary stands for what its own link dropped. When all of that was pinned
// since, the summary is not put in, whatever else the edit drops.
func TestApply_SummaryOfWhatWasPinnedMeanwhile(t *testing.T) {
	var h *convo.History
	summarises := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8}, Summary: &convo.Summary{Text: "of three rounds"}}, nil
	})
	drops := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{9, 10}}, h.Pin(3, 6, 7)
	})
	h = toolTurn(t, windowOf(0, convo.Chain(summarises, drops)), 20)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{3, 4, 5, 6, 7, 8}, r.Spared)
	assert.Equal(t, []convo.ID{9, 10}, r.Dropped)
	assert.Empty(t, r.Summarised)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
}

func TestApply_Duration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := bare()
		opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
			time.Sleep(time.Minute)
			return "f", nil
		}
		h := toolTurn(t, opts, 3)
		r := apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
		assert.Equal(t, time.Minute, r.Duration)
	})
}

func TestApply_SpillWithoutUTF8(t *testing.T) {
	opts := bare()
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "file\xff7", nil }
	h := toolTurn(t, opts, 3)
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
	e, _ := h.Snapshot().Find(4)
	assert.Equal(t, "[result of tool cleared: 92 bytes, kept at file\uFFFD7]", e.Message.Text())
}

// PrefixKept is 1 when the last sent request was empty.
func TestApply_PrefixOfAnEmptyRequest(t *testing.T) {
	h := historyOf(t, bare())
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 10}))
	mustAppend(t, h, convo.User("u"), convo.Assistant("a"), convo.User("v"))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{1}})
	assert.InDelta(t, 1, r.PrefixKept, 0)
}

func TestApply_DroppingWhatCameBeforeTheFirstTurn(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()},
		convo.Assistant("hello"), convo.Assistant("who is there?"), convo.User("me"), convo.Assistant("come in"), convo.User("thanks"))
	assert.Equal(t, 2, h.Status().Turns)
	apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}})
	assert.Equal(t, 2, h.Status().Turns, "it belonged to no turn")
	apply(t, h, convo.Edit{Drop: []convo.ID{3, 4}})
	assert.Equal(t, 1, h.Status().Turns)
}

func TestApply_Stale(t *testing.T) {
	all := convo.Edit{Drop: []convo.ID{2, 6}, Summary: &convo.Summary{Text: "late"}}
	ofCalls := convo.Edit{Drop: []convo.ID{3, 4, 5}, Summary: &convo.Summary{Text: "late"}}
	for _, tt := range []struct {
		name  string
		edit  convo.Edit
		since func(t *testing.T, h *convo.History)
	}{
		{"an entry to drop left the view", convo.Edit{Drop: []convo.ID{2, 6}}, func(t *testing.T, h *convo.History) { apply(t, h, convo.Edit{Drop: []convo.ID{6}}) }},
		{"an entry to clear left the view", convo.Edit{Clear: []convo.Clear{{ID: 4}}}, func(t *testing.T, h *convo.History) { apply(t, h, convo.Edit{Drop: []convo.ID{3, 4, 5}}) }},
		{"floor by rollback, drop", convo.Edit{Drop: []convo.ID{2, 8}}, func(t *testing.T, h *convo.History) { rewind(t, h) }},
		{"another summary", all, func(t *testing.T, h *convo.History) { apply(t, h, convo.Edit{Summary: &convo.Summary{Text: "first"}}) }},
		{"another summary, to empty", convo.Edit{Summary: &convo.Summary{}}, func(t *testing.T, h *convo.History) { apply(t, h, convo.Edit{Summary: &convo.Summary{Text: "first"}}) }},
		{"rewritten", all, func(t *testing.T, h *convo.History) { apply(t, h, rewriteOf(6, convo.Text("x"))) }},
		{"rewritten and pinned", all, func(t *testing.T, h *convo.History) {
			apply(t, h, rewriteOf(6, convo.Text("x")))
			require.NoError(t, h.Pin(6))
		}},
		{"the original forgotten", ofCalls, func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			apply(t, h, forgetting(4, find(t, h, 4).Message.Parts...))
		}},
		{"cleared with a text", ofCalls, func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, Text: "x"}}})
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, Text: "y"}}})
		}},
		{"forgotten", ofCalls, func(t *testing.T, h *convo.History) {
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, Forget: true}}})
		}},
		{"taken back", convo.Edit{Drop: []convo.ID{8}}, func(t *testing.T, h *convo.History) { _, _ = h.Rewind(2) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			at := h.Snapshot()
			tt.since(t, h)
			unchanged(t, h, func() {
				r, err := h.Apply(at, tt.edit)
				require.ErrorIs(t, err, convo.ErrStale)
				assert.Equal(t, convo.OutcomeStale, r.Outcome)
				assert.ErrorIs(t, r.Cause, convo.ErrStale)
			})
		})
	}
	h := tour(t, nil)
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	for name, s := range map[string]*convo.Snapshot{"nil": nil, "zero": {}, "fork": fork.Snapshot()} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Apply(s, all)
			assert.ErrorIs(t, err, convo.ErrStale)
			_, err = h.SplicePrefix(s, 3, "s")
			assert.ErrorIs(t, err, convo.ErrStale)
		})
	}
}

// A summary may take the place of entries that were changed since it was planned, if a
// summarizer reads of them what it did, or if it does not stand for them.
func TestApply_SummaryOfWhatWasChanged(t *testing.T) {
	of := func(first, last convo.ID) *convo.Summary {
		return &convo.Summary{Text: "s", Covers: []convo.Range{{First: first, Last: last}}}
	}
	for name, tt := range map[string]struct {
		edit  convo.Edit
		since func(h *convo.History)
	}{
		"cleared": {convo.Edit{Drop: []convo.ID{3, 4, 5}, Summary: of(3, 5)}, func(h *convo.History) {
			apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}}})
		}},
		"undone": {convo.Edit{Drop: []convo.ID{6}, Summary: of(6, 6)}, func(h *convo.History) {
			require.NoError(t, h.Undo(apply(t, h, rewriteOf(6, convo.Text("x")))))
		}},
		"not covered": {convo.Edit{Drop: []convo.ID{2, 6}, Summary: of(2, 2)}, func(h *convo.History) {
			apply(t, h, rewriteOf(6, convo.Text("x")))
		}},
		"no summary": {convo.Edit{Drop: []convo.ID{2, 6}}, func(h *convo.History) {
			apply(t, h, rewriteOf(6, convo.Text("x")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := tour(t, nil)
			at := h.Snapshot()
			tt.since(h)
			_, err := h.Apply(at, tt.edit)
			require.NoError(t, err)
		})
	}
}

func TestApply_ClearOfWhatRollbackMadeFloor(t *testing.T) {
	c := callOf("c")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"))
	mustAppend(t, h, convo.Assistant("x"), convo.User("v"))
	at := h.Snapshot()
	rewind(t, h)
	_, err := h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err, "the exchange is not the newest")

	h = historyOf(t, nil, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"))
	unanswered := h.Snapshot()
	mustAppend(t, h, convo.Assistant("x"), convo.User("v"))
	at = h.Snapshot()
	require.NoError(t, h.Rollback(unanswered))
	unchanged(t, h, func() {
		_, err := h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
		require.ErrorIs(t, err, convo.ErrStale)
	})
}

func TestApply_WhatNeverMakesItStale(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	mustAppend(t, h, convo.Assistant("x"), convo.User("v"))
	require.NoError(t, h.SetSystem(convo.System("new")))
	require.NoError(t, h.SetEphemeral(convo.User("e")))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 1000}))
	require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 500}))
	require.NoError(t, h.SetModel("other", convo.Limits{}))
	r, err := h.Apply(at, convo.Edit{Drop: []convo.ID{2, 6, 7}, Clear: []convo.Clear{{ID: 5}}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2, 6, 7}, r.Summarised)
	assert.Equal(t, []convo.ID{12, 3, 4, 5, 8, 9, 10, 11}, idsOf(h.Snapshot()))
}

func TestApply_PinnedMeanwhileIsKeptAndNamed(t *testing.T) {
	h := tour(t, bare())
	at := h.Snapshot()
	require.NoError(t, h.Pin(4, 6))
	r, err := h.Apply(at, convo.Edit{Drop: []convo.ID{2, 6}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{2}, r.Summarised)
	assert.Equal(t, []convo.ID{4, 6}, r.Spared)
	assert.Empty(t, r.Cleared)
	assert.Equal(t, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, idsOf(h.Snapshot()))
	e, _ := h.Snapshot().Find(4)
	assert.False(t, e.Message.ToolResults()[0].Cleared)
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, []convo.Range{{First: 2, Last: 2}}, sum.Covers)

	t.Run("all of it", func(t *testing.T) {
		h := tour(t, nil)
		at := h.Snapshot()
		require.NoError(t, h.Pin(2))
		unchanged(t, h, func() {
			r, err := h.Apply(at, convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: "s"}})
			require.Equal(t, convo.ErrNoGain, err)
			assert.Equal(t, []convo.ID{2}, r.Spared)
			assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
		})
	})
}

func TestApply_Clear(t *testing.T) {
	h := tour(t, nil)
	before := h.Snapshot()
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 5, CallID: "c2", Text: "no longer needed"}}})
	marker, _ := h.Snapshot().Find(4)
	r := marker.Message.ToolResults()[0]
	assert.Equal(t, convo.ToolResult{CallID: "c1", Name: "tool", Cleared: true, Parts: r.Parts}, r)
	assert.Contains(t, r.Text(), "tool")
	assert.Contains(t, r.Text(), "100 bytes")
	explicit, _ := h.Snapshot().Find(5)
	r = explicit.Message.ToolResults()[0]
	assert.Equal(t, convo.ToolResult{CallID: "c2", Name: "tool", IsError: true, Cleared: true, Parts: []convo.Part{convo.Text("no longer needed")}}, r)
	assert.Less(t, h.Snapshot().Tokens(), before.Tokens())
	assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
	old, _ := before.Find(4)
	assert.Equal(t, strings.Repeat("road ", 20), old.Message.Text(), "the snapshot stays")

	unchanged(t, h, func() {
		r, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 5}}})
		require.Equal(t, convo.ErrNoGain, err)
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome, "the standard marker changes nothing twice")
	})
}

func TestApply_ClearOneOfSeveralResults(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	both := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{CallID: "a", Parts: []convo.Part{convo.Text("one")}},
		convo.ToolResult{CallID: "b", Parts: []convo.Part{convo.Text("two"), convo.NewMedia("image/png", []byte("x"))}},
	}}
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b), both, convo.Assistant("x"), convo.User("v"))
	apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3, CallID: "b", Text: "gone"}}})
	e, _ := h.Snapshot().Find(3)
	results := e.Message.ToolResults()
	assert.Equal(t, "one", results[0].Text())
	assert.False(t, results[0].Cleared)
	assert.Equal(t, []convo.Part{convo.Text("gone")}, results[1].Parts)

	r := apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	assert.Equal(t, []convo.ID{3}, r.Cleared)
	e, _ = h.Snapshot().Find(3)
	assert.True(t, e.Message.ToolResults()[0].Cleared)
	assert.Equal(t, "gone", e.Message.ToolResults()[1].Text(), "cleared before, stays as it is")
}

func TestApply_DropSwallowsClear(t *testing.T) {
	spilled := 0
	h := tour(t, &convo.Options{Spill: func(context.Context, convo.ToolResult) (string, error) { spilled++; return "", nil }})
	r := apply(t, h, convo.Edit{Drop: []convo.ID{5, 4, 3, 3}, Clear: []convo.Clear{{ID: 4}}})
	assert.Equal(t, []convo.ID{3, 4, 5}, r.Dropped)
	assert.Empty(t, r.Cleared)
	assert.Zero(t, spilled)
}

func TestApply_SpillKeepsWhatIsCleared(t *testing.T) {
	full := errors.New("disk full")
	var kept []string
	h := tour(t, &convo.Options{Tokenizer: byBytes, Spill: func(_ context.Context, r convo.ToolResult) (string, error) {
		if r.CallID == "c2" {
			return "", full
		}
		kept = append(kept, r.Text())
		r.Parts[0] = convo.Text("changed")
		return "file 7", nil
	}})
	r := apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 5}}})
	assert.Equal(t, []string{strings.Repeat("road ", 20)}, kept)
	assert.Equal(t, []convo.ID{4}, r.Cleared)
	assert.ErrorIs(t, r.Cause, full)
	e, _ := h.Snapshot().Find(4)
	assert.Contains(t, e.Message.Text(), "file 7")
	e, _ = h.Snapshot().Find(5)
	assert.Equal(t, "no map", e.Message.Text(), "what could not be kept stays")

	unchanged(t, h, func() {
		r, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 5}}})
		require.ErrorIs(t, err, full)
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
		assert.ErrorIs(t, r.Cause, full)
	})
}

func TestApply_SummarySlot(t *testing.T) {
	h := tour(t, nil)
	for range 3 {
		mustAppend(t, h, convo.Assistant("x"), convo.User("y"))
	}
	apply(t, h, convo.Edit{Drop: []convo.ID{2, 6}, Summary: &convo.Summary{Text: "one", Usage: convo.Usage{Input: 5}}})
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok)
	assert.Equal(t, []convo.Range{{First: 2, Last: 2}, {First: 6, Last: 6}}, sum.Covers)
	assert.Zero(t, sum.Updates)
	assert.False(t, sum.Time.IsZero())
	assert.Equal(t, convo.Usage{Input: 5}, sum.Usage)

	apply(t, h, convo.Edit{Drop: []convo.ID{7}, Summary: &convo.Summary{Text: "two"}})
	sum, _ = h.Snapshot().Summary()
	assert.Equal(t, "two", sum.Text)
	assert.Equal(t, []convo.Range{{First: 2, Last: 2}, {First: 6, Last: 7}}, sum.Covers)
	assert.Equal(t, 1, sum.Updates)

	apply(t, h, convo.Edit{Drop: []convo.ID{8}})
	still, _ := h.Snapshot().Summary()
	assert.Equal(t, sum, still, "an edit without a summary leaves the slot")
	still.Covers[0].First = 99
	again, _ := h.Snapshot().Summary()
	assert.EqualValues(t, 2, again.Covers[0].First, "it is a copy")

	covers := []convo.Range{{First: 1, Last: 4}}
	apply(t, h, convo.Edit{Summary: &convo.Summary{Text: "three", Covers: covers}})
	covers[0].First = 4
	sum, _ = h.Snapshot().Summary()
	assert.Equal(t, []convo.Range{{First: 1, Last: 4}, {First: 6, Last: 7}}, sum.Covers)
	assert.Equal(t, 2, sum.Updates)
	assert.Len(t, h.Snapshot().Messages(), h.Len()+1, "never a second")

	apply(t, h, convo.Edit{Summary: &convo.Summary{}})
	_, ok = h.Snapshot().Summary()
	assert.False(t, ok)
	assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
	unchanged(t, h, func() {
		r, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{}})
		require.Equal(t, convo.ErrNoGain, err)
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
	})
}

func TestClear_FreesTheOriginal(t *testing.T) {
	const n = 10
	calls := make([]convo.Part, n)
	for i := range calls {
		calls[i] = callOf(string(rune('a' + i)))
	}
	h := historyOf(t, &convo.Options{KeepOriginals: -1}, convo.User("go"), convo.Message{Role: convo.RoleAssistant, Parts: calls})
	texts := appendWatched(t, h, n, func(i int, text string) convo.Message {
		return convo.Result(calls[i].(convo.ToolCall), text)
	})
	mustAppend(t, h, convo.Assistant("done"), convo.User("more"))
	require.Equal(t, n, inMemory(texts))

	var e convo.Edit
	for i := range n {
		e.Clear = append(e.Clear, convo.Clear{ID: convo.ID(3 + i)})
	}
	apply(t, h, e)
	assert.Zero(t, inMemory(texts), "of %d originals", n)
	assert.Equal(t, n+4, h.Len())
	runtime.KeepAlive(h)
}

// What leaves the view is freed, even if usage was reported for a snapshot that
// shows it.
func TestApply_FreesWhatItDrops(t *testing.T) {
	drop := func(t *testing.T, h *convo.History) { apply(t, h, convo.Edit{Drop: []convo.ID{1, 2, 3, 4}}) }
	report := func(t *testing.T, h *convo.History, at *convo.Snapshot) {
		require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 1000 + at.Tokens()}))
	}
	for name, work := range map[string]func(t *testing.T, h *convo.History){
		"no report": drop,
		"a report before": func(t *testing.T, h *convo.History) {
			report(t, h, h.Snapshot())
			drop(t, h)
		},
		"a report of the view before": func(t *testing.T, h *convo.History) {
			at := h.Snapshot()
			drop(t, h)
			report(t, h, at)
		},
		"reports for two models": func(t *testing.T, h *convo.History) {
			report(t, h, h.Snapshot())
			require.NoError(t, h.SetModel("another", convo.Limits{}))
			report(t, h, h.Snapshot())
			drop(t, h)
		},
		"an edit that was undone and made again": func(t *testing.T, h *convo.History) {
			at := h.Snapshot()
			report(t, h, at)
			mustAppend(t, h, convo.User("a"), convo.Assistant("b"), convo.User("c"))
			apply(t, h, convo.Edit{Drop: []convo.ID{5, 7}})
			require.NoError(t, h.Rollback(at))
			drop(t, h)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, nil)
			texts := appendWatched(t, h, 6, turnsOf)
			work(t, h)
			assert.Zero(t, inMemory(texts[:4]), "dropped")
			assert.Equal(t, 2, inMemory(texts[4:]), "kept")
			assert.Equal(t, 2, h.Len())
			runtime.KeepAlive(h)
		})
	}
}

// Clearing a result by a snapshot that is older than a splice leaves the splice and
// what was appended as they are.
func TestApply_ClearDoesNotUndoASplice(t *testing.T) {
	h := toolTurn(t, bare(), 20)
	at := h.Snapshot()
	_, err := h.SplicePrefix(at, 12, "what went")
	require.NoError(t, err)
	last := mustAppend(t, h, convo.User("meanwhile"))
	before := idsOf(h.Snapshot())

	_, err = h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 20}}})
	require.NoError(t, err)
	assert.Equal(t, before, idsOf(h.Snapshot()))
	assert.Equal(t, last, before[len(before)-1])
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "what went", sum.Text)
	e, _ := h.Snapshot().Find(20)
	assert.True(t, e.Message.ToolResults()[0].Cleared)

	unchanged(t, h, func() {
		_, err := h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 22}}})
		require.ErrorIs(t, err, convo.ErrStale, "4 has gone")
	})
}

// An edit that names more entries than the view still holds is stale.
func TestHistory_ApplyAfterALongRollback(t *testing.T) {
	h := toolTurn(t, nil, 0)
	early := h.Snapshot()
	for range 100 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
	}
	at := h.Snapshot()
	ids := idsOf(at)
	require.NoError(t, h.Rollback(early))
	unchanged(t, h, func() {
		_, err := h.Apply(at, convo.Edit{Drop: ids[3 : len(ids)-2]})
		require.ErrorIs(t, err, convo.ErrStale)
	})
}
