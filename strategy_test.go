package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// planOf is what a strategy makes of a snapshot: the IDs that are left, and
// which of them are cleared.
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

// Of the tour, in bytes: 1 system 5 | 2 user 8 | 3, 4, 5 a tool round 134 |
// 6 assistant 5 || 7 user 7 | 8 assistant 6 || 9 user 9.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target int
		pin    []convo.ID
		want   string
	}{
		{"small enough", 174, nil, "convo: too little to gain"},
		{"a turn that begins soon after is where the cut goes", 40, nil, "1 7 8 9"},
		{"nothing but the newest turn", 20, nil, "1 9"},
		{"the floor stays", 0, nil, "1 9"},
		{"a pin stays", 0, []convo.ID{8}, "1 8 9"},
		{"a pin of a result keeps its exchange", 0, []convo.ID{5}, "1 3 4 5 9"},
		{"a pin and the user of its turn", 150, []convo.ID{5}, "1 3 4 5 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, bare())
			require.NoError(t, h.Pin(tt.pin...))
			s := h.Snapshot()
			got, next := planOf(t, convo.Truncate{}, s, convo.Goal{Target: tt.target})
			assert.Equal(t, tt.want, got)
			if next != s && next.Tokens() > tt.target {
				for x := range next.Exchanges() {
					assert.True(t, x.Floor, "above the target, and %d is not floor", x.First)
				}
			}
		})
	}
}

// toolTurn is one user message and n tool rounds, each of two entries, with an
// answer at the end.
func toolTurn(t testing.TB, opts *convo.Options, n int) *convo.History {
	t.Helper()
	h := historyOf(t, opts, convo.System("guide"), convo.User("the task"))
	for i := range n {
		c := callOf(fmt.Sprintf("c%d", i))
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)))
	}
	mustAppend(t, h, convo.Assistant("done"))
	return h
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
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.True(t, r.SummaryDropped)
	assert.True(t, r.Fits)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
}

func TestSlidingWindow(t *testing.T) {
	for _, tt := range []struct {
		keep int
		pin  []convo.ID
		want string
	}{
		{0, nil, "1 9"},
		{2, nil, "1 7 8 9"}, // 7 is the user message of the turn that the window begins in
		{3, nil, "1 7 8 9"},
		{4, nil, "1 2 6 7 8 9"},
		{5, nil, "1 2 3 4 5 6 7 8 9"},
		{2, []convo.ID{4}, "1 3 4 5 7 8 9"},
		{100, nil, "convo: too little to gain"},
	} {
		h := tour(t, bare())
		require.NoError(t, h.Pin(tt.pin...))
		got, _ := planOf(t, convo.SlidingWindow{Keep: tt.keep}, h.Snapshot(), convo.Goal{})
		if tt.keep == 5 {
			assert.Equal(t, "convo: too little to gain", got)
			continue
		}
		assert.Equal(t, tt.want, got, "keep %d, pinned %v", tt.keep, tt.pin)
	}
}

func TestSlidingWindow_Due(t *testing.T) {
	for _, tt := range []struct{ keep, at, entries, due int }{
		{keep: 5, at: 0, entries: 5},
		{keep: 5, at: 0, entries: 6, due: 1},
		{keep: 5, at: 10, entries: 9},
		{keep: 5, at: 10, entries: 10, due: 1},
		{keep: 5, at: 3, entries: 5}, // never with nothing to drop
		{keep: 0, at: 0, entries: 1},
		{keep: 0, at: 0, entries: 2, due: 1},
	} {
		w := convo.SlidingWindow{Keep: tt.keep, TriggerAt: tt.at}
		assert.Equal(t, tt.due == 1, w.Due(convo.Status{Entries: tt.entries + 2, System: 2}), "%+v", tt)
	}
	opts := bare()
	opts.Strategy = convo.SlidingWindow{Keep: 3, TriggerAt: 6}
	h := tour(t, opts) // eight entries that are not system entries
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Equal(t, []convo.ID{1, 7, 8, 9}, idsOf(h.Snapshot()))
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
		{"three keep theirs", convo.ClearToolResults{}, convo.Goal{}, "1 2 3 4c 5 6c 7 8c 9 10 11 12 13 14 15"},
		{"one keeps its", convo.ClearToolResults{KeepLast: 1}, convo.Goal{}, "1 2 3 4c 5 6c 7 8c 9 10c 11 12c 13 14 15"},
		{"all but the floor", convo.ClearToolResults{KeepLast: -1}, convo.Goal{}, "1 2 3 4c 5 6c 7 8c 9 10c 11 12c 13 14c 15"},
		{"too little by the goal", convo.ClearToolResults{}, convo.Goal{MinFree: 1000}, "convo: too little to gain"},
		{"too little by its own", convo.ClearToolResults{MinFreed: 1000}, convo.Goal{}, "convo: too little to gain"},
		{"its own counts, not the goal's", convo.ClearToolResults{MinFreed: -1}, convo.Goal{MinFree: 1000}, "1 2 3 4c 5 6c 7 8c 9 10 11 12 13 14 15"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := h.Snapshot()
			got, next := planOf(t, tt.c, s, tt.g)
			assert.Equal(t, tt.want, got)
			if next != s {
				again, _ := planOf(t, tt.c, next, convo.Goal{})
				assert.Equal(t, "convo: too little to gain", again, "the second time there is nothing to do")
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
	got, _ := planOf(t, convo.ClearToolResults{KeepLast: -1, MinFreed: -1}, small.Snapshot(), convo.Goal{})
	assert.Equal(t, "convo: too little to gain", got, "a marker longer than the result frees nothing")
}

func TestClearToolResults_Spill(t *testing.T) {
	kept := map[string]string{}
	opts := bare()
	opts.Strategy = convo.ClearToolResults{KeepLast: 2}
	opts.Limits = convo.Limits{Window: 700, Reserve: -1}
	opts.Spill = func(r convo.ToolResult) (string, error) {
		if r.CallID == "c1" {
			return "", errors.New("disk full")
		}
		kept[r.CallID] = r.Text()
		return "file-" + r.CallID, nil
	}
	h := toolTurn(t, opts, 6)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, []convo.ID{4, 8, 10}, r.Cleared)
	require.ErrorContains(t, r.Cause, "disk full")
	assert.Equal(t, strings.Repeat("x", 92), kept["c0"])
	e, _ := h.Snapshot().Find(4)
	assert.Equal(t, "[result of tool cleared: 92 bytes, kept at file-c0]", e.Message.ToolResults()[0].Text())
	e, _ = h.Snapshot().Find(6)
	assert.Len(t, e.Message.ToolResults()[0].Text(), 92, "what could not be kept stays")
}

// plainStrategies are those without a model, by name.
func plainStrategies() map[string]convo.CompactionStrategy {
	return map[string]convo.CompactionStrategy{
		"truncate":     convo.Truncate{},
		"window":       convo.SlidingWindow{Keep: 10},
		"clear":        convo.ClearToolResults{MinFreed: -1},
		"extract":      convo.Summarize{},
		"clear, drop":  convo.Chain(convo.ClearToolResults{}, convo.Truncate{}),
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
