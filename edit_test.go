package convo_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestApply_EditErrors(t *testing.T) {
	sum := func(ranges ...convo.Range) *convo.Summary { return &convo.Summary{Text: "s", Covers: ranges} }
	for _, tt := range []struct {
		name   string
		edit   convo.Edit
		id     convo.ID
		callID string
	}{
		{"drops half an exchange", convo.Edit{Drop: []convo.ID{2, 3, 4}}, 3, ""},
		{"drops a result alone", convo.Edit{Drop: []convo.ID{5}}, 3, ""},
		{"drops a system entry", convo.Edit{Drop: []convo.ID{1, 2}}, 1, ""},
		{"drops a pinned exchange", convo.Edit{Drop: []convo.ID{6}}, 6, ""},
		{"drops a user message of the newest turn", convo.Edit{Drop: []convo.ID{9}}, 9, ""},
		{"drops the newest exchange", convo.Edit{Drop: []convo.ID{10, 11}}, 10, ""},
		{"drops what is not there", convo.Edit{Drop: []convo.ID{2, 99}}, 99, ""},
		{"drops ID 0", convo.Edit{Drop: []convo.ID{0, 2}}, 0, ""},
		{"drops one that went before", convo.Edit{Drop: []convo.ID{7}}, 7, ""},
		{"clears what is not there", convo.Edit{Clear: []convo.Clear{{ID: 99}}}, 99, ""},
		{"clears a system entry", convo.Edit{Clear: []convo.Clear{{ID: 1}}}, 1, ""},
		{"clears a user message", convo.Edit{Clear: []convo.Clear{{ID: 2}}}, 2, ""},
		{"clears the calls", convo.Edit{Clear: []convo.Clear{{ID: 3}}}, 3, ""},
		{"clears a result of another entry", convo.Edit{Clear: []convo.Clear{{ID: 4, CallID: "c2"}}}, 4, "c2"},
		{"clears in the newest exchange", convo.Edit{Clear: []convo.Clear{{ID: 11}}}, 11, ""},
		{"clears in a pinned exchange", convo.Edit{Clear: []convo.Clear{{ID: 13}}}, 13, ""},
		{"blank summary", convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: " \n"}}, 0, ""},
		{"covers from 0", convo.Edit{Summary: sum(convo.Range{First: 0, Last: 2})}, 0, ""},
		{"covers backwards", convo.Edit{Summary: sum(convo.Range{First: 3, Last: 2})}, 0, ""},
		{"covers what was not given", convo.Edit{Summary: sum(convo.Range{First: 1, Last: 99})}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{7}})
			require.NoError(t, err)
			d := callOf("d")
			mustAppend(t, h, convo.Assistant("", d), convo.Result(d, "r"))
			if tt.id == 13 {
				mustAppend(t, h, convo.Assistant("", d), convo.Result(d, "r"), convo.Assistant("x"), convo.User("v"))
				require.NoError(t, h.Pin(12))
			}
			require.NoError(t, h.Pin(6))
			at := h.Snapshot()
			unchanged(t, h, func() {
				r, err := h.Apply(at, tt.edit)
				var edit *convo.EditError
				require.ErrorAs(t, err, &edit)
				assert.Equal(t, tt.id, edit.ID)
				assert.Equal(t, tt.callID, edit.CallID)
				assert.NotEmpty(t, edit.Rule)
				assert.Equal(t, convo.Failed, r.Outcome)
				assert.Equal(t, err, r.Cause)
				_, err = at.With(tt.edit)
				require.ErrorAs(t, err, &edit, "With keeps the same rules")
			})
		})
	}
}

func TestApply_Stale(t *testing.T) {
	all := convo.Edit{Drop: []convo.ID{2, 6}, Summary: &convo.Summary{Text: "late"}}
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
		{"taken back", convo.Edit{Drop: []convo.ID{8}}, func(t *testing.T, h *convo.History) { _, _ = h.Rewind(2) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			at := h.Snapshot()
			tt.since(t, h)
			unchanged(t, h, func() {
				r, err := h.Apply(at, tt.edit)
				require.ErrorIs(t, err, convo.ErrStale)
				assert.Equal(t, convo.Stale, r.Outcome)
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

func apply(t *testing.T, h *convo.History, e convo.Edit) convo.Report {
	t.Helper()
	r, err := h.Apply(h.Snapshot(), e)
	require.NoError(t, err)
	require.Equal(t, convo.Applied, r.Outcome)
	return r
}

func rewind(t *testing.T, h *convo.History) {
	t.Helper()
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, 1, taken)
}

func TestApply_ClearOfWhatRollbackMadeFloor(t *testing.T) {
	c := callOf("c")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"))
	mustAppend(t, h, convo.Assistant("x"), convo.User("v"))
	at := h.Snapshot()
	rewind(t, h)
	_, err := h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err, "the exchange is not the newest")

	h = historyOf(t, nil, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"), convo.User("v"))
	at = h.Snapshot()
	rewind(t, h)
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
	require.NoError(t, h.SetModel("other"))
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
	assert.Equal(t, []convo.ID{4, 6}, r.Kept)
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
			require.NoError(t, err)
			assert.Equal(t, []convo.ID{2}, r.Kept)
			assert.Equal(t, convo.Declined, r.Outcome)
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
		require.NoError(t, err)
		assert.Equal(t, convo.Declined, r.Outcome, "the standard marker changes nothing twice")
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
	h := tour(t, &convo.Options{Spill: func(convo.ToolResult) (string, error) { spilled++; return "", nil }})
	r := apply(t, h, convo.Edit{Drop: []convo.ID{5, 4, 3, 3}, Clear: []convo.Clear{{ID: 4}}})
	assert.Equal(t, []convo.ID{3, 4, 5}, r.Dropped)
	assert.Empty(t, r.Cleared)
	assert.Zero(t, spilled)
}

func TestApply_SpillKeepsWhatIsCleared(t *testing.T) {
	full := errors.New("disk full")
	var kept []string
	h := tour(t, &convo.Options{Tokenizer: byBytes, Spill: func(r convo.ToolResult) (string, error) {
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
		require.NoError(t, err)
		assert.Equal(t, convo.Declined, r.Outcome)
		assert.ErrorIs(t, r.Cause, full)
	})
}

func TestApply_SummarySlot(t *testing.T) {
	h := tour(t, nil)
	for range 3 {
		mustAppend(t, h, convo.Assistant("x"), convo.User("y"))
	}
	apply(t, h, convo.Edit{Drop: []convo.ID{2, 6}, Summary: &convo.Summary{Text: "one", Usage: convo.Usage{Input: 5}, Stop: convo.StopLength}})
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok)
	assert.Equal(t, []convo.Range{{First: 2, Last: 2}, {First: 6, Last: 6}}, sum.Covers)
	assert.Zero(t, sum.Updates)
	assert.False(t, sum.Time.IsZero())
	assert.Equal(t, convo.Usage{Input: 5}, sum.Usage)
	assert.Equal(t, convo.StopLength, sum.Stop)

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
		require.NoError(t, err)
		assert.Equal(t, convo.Declined, r.Outcome)
	})
}

func TestApply_ZeroEditDeclines(t *testing.T) {
	h := tour(t, nil)
	unchanged(t, h, func() {
		r, err := h.Apply(h.Snapshot(), convo.Edit{})
		require.NoError(t, err)
		assert.Equal(t, convo.Declined, r.Outcome)
		assert.True(t, r.Fits)
	})
}

func TestApply_DoesNotKeepTheEdit(t *testing.T) {
	h := tour(t, nil)
	e := convo.Edit{Drop: []convo.ID{6, 2}, Clear: []convo.Clear{{ID: 5}, {ID: 4}}, Summary: &convo.Summary{Text: "s"}}
	apply(t, h, e)
	assert.Equal(t, convo.Edit{Drop: []convo.ID{6, 2}, Clear: []convo.Clear{{ID: 5}, {ID: 4}}, Summary: &convo.Summary{Text: "s"}}, e)
}

func TestApply_Report(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 300, Reserve: -1}
	h := tour(t, opts)
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	before := h.Snapshot()
	require.NoError(t, h.RecordUsage(before, convo.Usage{Input: before.Tokens()}))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{6}, Summary: &convo.Summary{Text: "s", Usage: convo.Usage{Output: 3}}})
	now := h.Snapshot()
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, convo.ReasonManual, r.Reason)
	assert.NoError(t, r.Cause)
	assert.Equal(t, len(before.Messages()), r.MessagesBefore)
	assert.Equal(t, len(now.Messages()), r.MessagesAfter)
	assert.Equal(t, before.Tokens(), r.TokensBefore, "measured")
	assert.Equal(t, h.Tokens().Upper, r.TokensAfter)
	assert.False(t, r.Fits)
	assert.Equal(t, convo.Usage{Output: 3}, r.Usage)
	assert.GreaterOrEqual(t, r.Duration.Nanoseconds(), int64(0))
	assert.InDelta(t, float64(len("guide"))/float64(before.Tokens()-len("rain")), r.PrefixKept, 1e-9, "system entries, then another summary")

	r = apply(t, h, convo.Edit{Clear: []convo.Clear{{ID: 4, Text: "x"}}})
	assert.Equal(t, []convo.ID{4}, r.Cleared)
	assert.True(t, r.Fits)
	assert.Zero(t, h.Status().Appended)
	assert.False(t, h.Status().LastEdit.IsZero())
}

func TestApply_ObserverAndLoggerAreTold(t *testing.T) {
	var seen []convo.Report
	var log bytes.Buffer
	opts := &convo.Options{
		OnCompaction: func(r convo.Report) {
			seen = append(seen, r)
			for i := range r.Dropped {
				r.Dropped[i] = 0
			}
			panic("dropped")
		},
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	h := tour(t, opts)
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2}})
	assert.Equal(t, []convo.ID{2}, r.Dropped, "the observer has a copy")
	_, err := h.SplicePrefix(h.Snapshot(), 5, "secret words")
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{99}})
	require.Error(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{})
	require.NoError(t, err)
	_, err = h.Apply(nil, convo.Edit{Drop: []convo.ID{6}})
	require.Error(t, err)
	var outcomes []convo.Outcome
	for _, r := range seen {
		outcomes = append(outcomes, r.Outcome)
	}
	assert.Equal(t, []convo.Outcome{convo.Applied, convo.Applied, convo.Failed, convo.Declined, convo.Stale}, outcomes)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	require.Len(t, lines, 5)
	for i, level := range []string{"INFO", "INFO", "WARN", "DEBUG", "DEBUG"} {
		assert.Contains(t, lines[i], "level="+level)
	}
	assert.NotContains(t, log.String(), "secret")
}

// panicky is a log handler that panics.
type panicky struct{ slog.Handler }

func (panicky) Enabled(context.Context, slog.Level) bool  { return true }
func (panicky) Handle(context.Context, slog.Record) error { panic("log") }

func TestApply_PanickingLoggerIsDropped(t *testing.T) {
	h := tour(t, &convo.Options{Logger: slog.New(panicky{slog.DiscardHandler})})
	apply(t, h, convo.Edit{Drop: []convo.ID{2}})
	assert.Equal(t, 8, h.Len())
}

func TestSplicePrefix(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		pin     []convo.ID
		want    []convo.ID
		dropped int
	}{
		{"negative", -1, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"smallest", math.MinInt, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"zero", 0, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"system counts and stays", 1, nil, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
		{"one", 2, nil, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"into the calls", 3, nil, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"into the results", 4, nil, []convo.ID{1, 3, 4, 5, 6, 7, 8, 9}, 1},
		{"the whole exchange", 5, nil, []convo.ID{1, 6, 7, 8, 9}, 4},
		{"into a turn", 7, nil, []convo.ID{1, 8, 9}, 6},
		{"all but the floor", 9, nil, []convo.ID{1, 9}, 7},
		{"clamped", 1000, nil, []convo.ID{1, 9}, 7},
		{"largest", math.MaxInt, nil, []convo.ID{1, 9}, 7},
		{"pinned stays", 9, []convo.ID{4, 8}, []convo.ID{1, 3, 4, 5, 8, 9}, 3},
		{"all pinned", 3, []convo.ID{2}, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			require.NoError(t, h.Pin(tt.pin...))
			at := h.Snapshot()
			mustAppend(t, h, convo.Assistant("later"))
			dropped, err := h.SplicePrefix(at, tt.n, "s")
			require.NoError(t, err)
			assert.Equal(t, tt.dropped, dropped)
			want := append(tt.want[:len(tt.want):len(tt.want)], 10)
			assert.Equal(t, want, idsOf(h.Snapshot()))
			_, ok := h.Snapshot().Summary()
			assert.Equal(t, tt.dropped > 0, ok, "when nothing goes the slot is left alone")
			assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
		})
	}
}

func TestSplicePrefix_EmptySummaryLeavesTheSlot(t *testing.T) {
	for _, blank := range []string{"", " \t\n"} {
		h := tour(t, nil)
		_, err := h.SplicePrefix(h.Snapshot(), 2, "one")
		require.NoError(t, err)
		n, err := h.SplicePrefix(h.Snapshot(), 4, blank)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		sum, ok := h.Snapshot().Summary()
		require.True(t, ok)
		assert.Equal(t, "one", sum.Text)
	}
}

func TestWith_IsPure(t *testing.T) {
	spilled := 0
	h := tour(t, &convo.Options{Tokenizer: byBytes, Spill: func(convo.ToolResult) (string, error) { spilled++; return "", nil }})
	require.NoError(t, h.Pin(8))
	at := h.Snapshot()
	e := convo.Edit{Drop: []convo.ID{2, 6}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}}
	picture := pictureOf(t, at)
	var next *convo.Snapshot
	unchanged(t, h, func() {
		var err error
		next, err = at.With(e)
		require.NoError(t, err)
	})
	assert.Equal(t, picture, pictureOf(t, at))
	assert.Zero(t, spilled)
	apply(t, h, e)
	assert.Equal(t, idsOf(h.Snapshot()), idsOf(next))
	assert.Equal(t, textsOf(h.Snapshot()), textsOf(next))
	assert.Equal(t, h.Snapshot().Tokens(), next.Tokens())
	assert.Equal(t, h.Pinned(), next.Pinned())
	_, err := h.Apply(next, convo.Edit{Drop: []convo.ID{7}})
	assert.ErrorIs(t, err, convo.ErrStale, "it belongs to none")

	again, err := next.With(convo.Edit{Drop: []convo.ID{7}})
	require.NoError(t, err)
	assert.Equal(t, next.Len()-1, again.Len())
	fork, err := convo.Restore(again, nil)
	require.NoError(t, err)
	mustAppend(t, fork, convo.Assistant("on"))
	var zero convo.Snapshot
	_, err = zero.With(convo.Edit{Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
}

// More is to go than the view holds by now.
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
