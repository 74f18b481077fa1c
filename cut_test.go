package convo_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A result is cut between lines where there are lines, and between words where
// there are words.
func TestMaxResult_CutsAtBorders(t *testing.T) {
	lines, words := strings.Repeat("a line of the log\n", 300), strings.Repeat("word ", 1000)
	cut := throughAppend(t, 400, []convo.Part{convo.Text(lines)})
	head, tail, ok := strings.Cut(string(cut[0].(convo.Text)), "\n[cut: ")
	require.True(t, ok)
	assert.Zero(t, len(head)%len("a line of the log\n"), "%q", head)
	_, tail, _ = strings.Cut(tail, "]\n")
	assert.Zero(t, len(tail)%len("a line of the log\n"), "%q", tail)
	assert.Greater(t, len(head), 2*len(tail), "more from the beginning")

	cut = throughAppend(t, 400, []convo.Part{convo.Text(words)})
	head, tail, _ = strings.Cut(string(cut[0].(convo.Text)), "\n[cut: ")
	_, tail, _ = strings.Cut(tail, "]\n")
	assert.True(t, strings.HasSuffix(head, " ") && strings.HasPrefix(tail, "word"), "%q and %q", head, tail)
}

// Without MaxResult, the bound is a quarter of the limit in force.
func TestMaxResult_FollowsTheWindow(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		name   string
		opts   convo.Options
		limits convo.Limits // set later; zero: none
		want   int
	}{
		{"no window", convo.Options{}, convo.Limits{}, 100_000},
		{"only High", convo.Options{Limits: convo.Limits{High: 1000}}, convo.Limits{}, 100_000},
		{"a window", convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 2000}}, convo.Limits{}, 1500},
		{"a small window", convo.Options{Limits: convo.Limits{Window: 200}}, convo.Limits{}, 64},
		{"set later", convo.Options{Limits: convo.Limits{Window: 8000}}, convo.Limits{Window: 4000, Reserve: -1}, 1000},
		{"none", convo.Options{MaxResult: -1, Limits: convo.Limits{Window: 8000}}, convo.Limits{}, 100_000},
		{"set", convo.Options{MaxResult: 300, Limits: convo.Limits{Window: 8000}}, convo.Limits{}, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Tokenizer = byBytes
			h := historyOf(t, &tt.opts, convo.User("u"), convo.Assistant("", c))
			if tt.limits != (convo.Limits{}) {
				require.NoError(t, h.SetLimits(tt.limits))
			}
			id := mustAppend(t, h, convo.Result(c, strings.Repeat("x", 100_000)))
			e, _ := h.Snapshot().Find(id)
			assert.InDelta(t, tt.want, len(e.Message.Text()), 2)
			assert.LessOrEqual(t, len(e.Message.Text()), tt.want)
			assert.Equal(t, 100_000-len(e.Message.Text()), e.Missing)
		})
	}
}

// What Append cuts is reported, and logged as a warning.
func TestAppend_ReportsCuts(t *testing.T) {
	var reports []convo.Report
	var log strings.Builder
	opts := bare()
	opts.Limits.Window, opts.Limits.Reserve = 4000, -1
	opts.OnCompaction = func(r convo.Report) { reports = append(reports, r) }
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c, d := callOf("c"), callOf("d")
	long := strings.Repeat("x", 3000)
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", c, d))
	require.Empty(t, reports)
	mustAppend(t, h, convo.Result(c, "short"), convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Parts: []convo.Part{convo.Text(long)}}}})
	require.Len(t, reports, 1)
	r := reports[0]
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonAppend, r.Reason)
	assert.Equal(t, []convo.ID{4}, r.Cut)
	assert.Equal(t, h.Status().Upper, r.TokensAfter)
	assert.InDelta(t, 3400, r.TokensBefore, 50, "what it would be without the cut")
	assert.True(t, r.Fits)
	left := r.Left()
	require.Len(t, left, 1)
	assert.Equal(t, convo.ID(4), left[0].ID)
	assert.Equal(t, long, left[0].Message.Text())
	assert.Equal(t, "d", left[0].Message.ToolResults()[0].CallID, "paired")
	assert.Zero(t, left[0].Missing)
	assert.Contains(t, log.String(), "level=WARN")
	assert.Contains(t, log.String(), "reason=append")
	assert.Contains(t, log.String(), "cut=1")

	// A refused append reports nothing.
	_, err := h.Append(convo.Result(c, long))
	require.Error(t, err)
	assert.Len(t, reports, 1)
	assert.ErrorIs(t, h.Undo(r), convo.ErrStale)
}
