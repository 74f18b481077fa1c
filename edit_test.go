package convo_test

import (
	"bytes"
	"context"
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
		{"drops part of an exchange", convo.Edit{Drop: []convo.ID{2, 3, 4}}, 3, ""},
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
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.Equal(t, err, r.Cause)
				_, err = at.With(tt.edit)
				require.ErrorAs(t, err, &edit, "With keeps the same rules")
			})
		})
	}
}

func apply(t *testing.T, h *convo.History, e convo.Edit) convo.Report {
	t.Helper()
	r, err := h.Apply(h.Snapshot(), e)
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	return r
}

// A summary that its model had not finished stands for nothing.
func TestApply_UnfinishedSummary(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	for stop := convo.StopLength; stop <= convo.StopRefused+1; stop++ {
		for _, text := range []string{"They went", ""} {
			e := convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: text, Stop: stop}}
			unchanged(t, h, func() {
				_, err := h.Apply(at, e)
				require.ErrorAs(t, err, new(*convo.RefusedError))
				_, err = at.With(e)
				require.ErrorAs(t, err, new(*convo.RefusedError))
			})
		}
	}
}

func TestApply_ZeroEditDeclines(t *testing.T) {
	h := tour(t, nil)
	unchanged(t, h, func() {
		r, err := h.Apply(h.Snapshot(), convo.Edit{})
		require.ErrorIs(t, err, convo.ErrNoGain)
		assert.EqualError(t, err, "convo: the edit is empty; name entries to drop, results to clear, entries to rewrite, or a summary")
		assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
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
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonManual, r.Reason)
	assert.NoError(t, r.Cause)
	assert.Equal(t, len(before.Messages()), r.MessagesBefore)
	assert.Equal(t, len(now.Messages()), r.MessagesAfter)
	assert.Equal(t, before.Tokens(), r.TokensBefore, "measured")
	assert.Equal(t, h.Tokens().Upper, r.TokensAfter)
	assert.False(t, r.Fits)
	assert.Equal(t, convo.Usage{Output: 3}, r.Usage)
	assert.GreaterOrEqual(t, r.Duration.Nanoseconds(), int64(0))
	assert.InDelta(t, float64(len("guide"))/float64(before.Tokens()), r.PrefixKept, 1e-9, "system entries, then another summary")

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
	require.ErrorIs(t, err, convo.ErrNoGain)
	_, err = h.Apply(nil, convo.Edit{Drop: []convo.ID{6}})
	require.Error(t, err)
	var outcomes []convo.Outcome
	for _, r := range seen {
		outcomes = append(outcomes, r.Outcome)
	}
	assert.Equal(t, []convo.Outcome{convo.OutcomeApplied, convo.OutcomeApplied, convo.OutcomeFailed, convo.OutcomeDeclined, convo.OutcomeStale}, outcomes)
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
	h := tour(t, &convo.Options{Tokenizer: byBytes, Spill: func(context.Context, convo.ToolResult) (string, error) { spilled++; return "", nil }})
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
	assert.Equal(t, h.Snapshot().Pinned(), next.Pinned())
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

// Two writers splice by the same snapshot. The second is refused: it would drop what
// the first left.
func TestSplicePrefix_TwoWriters(t *testing.T) {
	for _, summary := range []string{"second", ""} {
		h := historyOf(t, nil)
		for range 7 {
			mustAppend(t, h, convo.User("u"), convo.Assistant("a"))
		}
		at := h.Snapshot()
		mustAppend(t, h, convo.User("new"), convo.Assistant("newer"))
		n, err := h.SplicePrefix(at, 12, "first")
		require.NoError(t, err)
		require.Equal(t, 12, n)
		unchanged(t, h, func() {
			_, err := h.SplicePrefix(at, 12, summary)
			require.ErrorIs(t, err, convo.ErrStale)
		})
		assert.Equal(t, []convo.ID{13, 14, 15, 16}, idsOf(h.Snapshot()))
	}
}

// A tokenizer that panics with ErrStale does not make the edit stale.
func TestApply_ErrStaleOfATokenizer(t *testing.T) {
	opts, stale := bare(), false
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int {
		if stale {
			panic(convo.ErrStale)
		}
		return len(s)
	})
	h := toolTurn(t, opts, 3)
	stale = true
	r, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "x"}})
	require.ErrorIs(t, err, convo.ErrStale)
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
}
