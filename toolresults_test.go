package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		{"too little by the goal", convo.ClearToolResults{}, convo.Goal{MinFree: 1000}, "convo: nothing worth removing"},
		{"too little by its own", convo.ClearToolResults{MinFreed: 1000}, convo.Goal{}, "convo: nothing worth removing"},
		{"its own counts, not the goal's", convo.ClearToolResults{MinFreed: -1}, convo.Goal{MinFree: 1000}, "1 2 3 4c 5 6c 7 8c 9 10 11 12 13 14 15"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := h.Snapshot()
			got, next := planOf(t, tt.c, s, tt.g)
			assert.Equal(t, tt.want, got)
			if next != s {
				again, _ := planOf(t, tt.c, next, convo.Goal{})
				assert.Equal(t, "convo: nothing worth removing", again, "the second time there is nothing to do")
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
	assert.Equal(t, "convo: nothing worth removing", got, "a marker longer than the result frees nothing")
}

// One result that cannot be kept is enough for the ladder to go on.
func TestClearToolResults_OneSpillFails(t *testing.T) {
	opts := windowOf(3000, convo.Chain(convo.ClearToolResults{KeepLast: -1}, convo.Truncate{}))
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("disk full") }
	opts.MaxResult = -1
	c := callOf("c")
	h := historyOf(t, opts, convo.User("the task"), convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 5000)), convo.Assistant("so"))
	r, err := h.CompactIfNeeded(t.Context())
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
		5000: "convo: nothing worth removing",
	} {
		got, _ := planOf(t, convo.ClearToolResults{KeepLast: -1, Least: least}, h.Snapshot(), convo.Goal{})
		assert.Equal(t, want, got, "Least %d", least)
	}
}
