package convo_test

import (
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

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
	assert.Equal(t, []convo.ID{4}, r.Shortened)
	assert.Equal(t, h.Status().Upper, r.TokensAfter)
	assert.InDelta(t, 3400, r.TokensBefore, 50, "what it would be without the cut")
	assert.True(t, r.Fits)
	left := r.Originals()
	require.Len(t, left, 1)
	assert.Equal(t, convo.ID(4), left[0].ID)
	assert.Equal(t, long, left[0].Message.Text())
	assert.Equal(t, "d", left[0].Message.ToolResults()[0].CallID, "paired")
	assert.Zero(t, left[0].Missing)
	assert.Contains(t, log.String(), "level=WARN")
	assert.Contains(t, log.String(), "reason=append")
	assert.Contains(t, log.String(), "shortened=1")

	// A refused append reports nothing.
	_, err := h.Append(convo.Result(c, long))
	require.Error(t, err)
	assert.Len(t, reports, 1)
	assert.ErrorIs(t, h.Undo(r), convo.ErrStale)
}

// checkCut appends a result with a bound in bytes: what stays is the beginning and
// the end of it around a marker, within the bound, and is not cut again.
func checkCut(t *testing.T, whole string, limit int) {
	t.Helper()
	limit = 64 + limit%1000
	whole = strings.ToValidUTF8(whole, "\uFFFD")
	parts := throughAppend(t, limit, []convo.Part{convo.Text(whole)})
	got := string(parts[0].(convo.Text))
	if len(whole) <= limit {
		require.Equal(t, whole, got)
		return
	}
	require.LessOrEqual(t, len(got), limit)
	require.True(t, utf8.ValidString(got))
	ok := false
	for _, m := range regexp.MustCompile(`\n\[cut: (\d+) bytes left out\]\n`).FindAllStringSubmatchIndex(got, -1) {
		head, tail := got[:m[0]], got[m[1]:]
		ok = ok || strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail) && got[m[2]:m[3]] == itoa(len(whole)-len(head)-len(tail))
	}
	require.True(t, ok, "%q is no cut of %q", got, whole)
	require.Equal(t, parts, throughAppend(t, limit, parts))
}

func TestMaxResult_Property(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		var whole strings.Builder
		for range rng.IntN(200) {
			whole.WriteString([]string{"a", "\n", " ", "é", "😀", "\n[cut: 5 bytes left out]\n", "word ", "\xff"}[rng.IntN(8)])
		}
		checkCut(t, whole.String(), rng.IntN(1000))
	}
}

func FuzzMaxResult(f *testing.F) {
	f.Add(strings.Repeat("line\n", 100), 100)
	f.Add(strings.Repeat("😀 ", 100)+"\n[cut: 1 bytes left out]\n", 0)
	f.Fuzz(func(t *testing.T, whole string, limit int) {
		if limit >= 0 {
			checkCut(t, whole[:min(len(whole), 10_000)], limit)
		}
	})
}

func TestCutRef(t *testing.T) {
	for _, tt := range []struct {
		parts []convo.Part
		ref   string
		cut   bool
	}{
		{nil, "", false},
		{[]convo.Part{convo.Text("whole")}, "", false},
		{[]convo.Part{convo.Text("a\n[cut: 5 bytes left out]\nb")}, "", true},
		{[]convo.Part{convo.Text("a\n[cut: 15 bytes left out, kept at x]\nb")}, "x", true},
		{[]convo.Part{convo.Text("a"), convo.NewMedia("image/png", []byte("x")), convo.Text("\n[cut: 5 bytes left out, kept at x]\n")}, "x", true},

		// What looks like a marker, with and without one behind it.
		{[]convo.Part{convo.Text("\n[cut: short]\n")}, "", false},
		{[]convo.Part{convo.Text("\n[cut: short]\n[cut: 5 bytes left out, kept at x]\n")}, "x", true},
		{[]convo.Part{convo.Text("\n[cut: 5 bytes left out, lost]\n[cut: 5 bytes left out]\n")}, "", true},
		{[]convo.Part{convo.Text("\n[cut: 5 bytes left out, kept at x"), convo.Text("\n[cut: 5 bytes left out, kept at y]\n")}, "y", true},
		{[]convo.Part{convo.Text("\n[cut: , kept at x]\n")}, "", false},
		{[]convo.Part{convo.Text("\n[cut: 5 bytes left out]")}, "", false},
	} {
		ref, cut := convo.CutRef(&convo.ToolResult{Parts: tt.parts})
		assert.Equal(t, tt.cut, cut, "%q", tt.parts)
		assert.Equal(t, tt.ref, ref, "%q", tt.parts)
	}
}
