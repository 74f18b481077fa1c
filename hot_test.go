package convo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rereader is an agent that must see a file to edit it. It reads again what it does not
// see.
type rereader struct {
	window, size, edits int
	file                func(edit int) int
	careless            bool // it reads each file before it edits it
	resume              bool // the History is saved and restored after each edit

	t           *testing.T
	opts        convo.Options
	h           *convo.History
	rng         *rand.Rand
	calls       int
	read        map[int]bool
	again       int // how often it has read again
	compactions int
	newest      convo.Report // the newest with an edit
	log         bool
}

// run makes the edits.
func (a rereader) run(t *testing.T, o convo.Options) *rereader {
	a.t, a.opts, a.rng, a.read = t, o, rand.New(rand.NewPCG(1, 2)), map[int]bool{}
	a.opts.Limits.Window = a.window
	a.opts.OnCompaction = func(r convo.Report) {
		if r.Outcome == convo.OutcomeApplied {
			a.compactions, a.newest = a.compactions+1, r
			if a.log {
				fmt.Println(a.calls, r, r.Links)
			}
		}
	}
	var err error
	a.h, err = convo.New(&a.opts)
	require.NoError(t, err)
	mustAppend(t, a.h, convo.System("You edit files. "+a.prose(300)), convo.User("Rename the field in all files."))
	for edit := range a.edits {
		a.edit(a.file(edit))
		if a.resume {
			data, err := json.Marshal(a.h.Snapshot())
			require.NoError(t, err)
			s := new(convo.Snapshot)
			require.NoError(t, json.Unmarshal(data, s))
			a.h, err = convo.Restore(s, &a.opts)
			require.NoError(t, err)
		}
	}
	return &a
}

var plainWords = strings.Fields("the of and to in that it for as was with be by on not this are from at which but have an they one all")

// prose returns a text of about the given tokens.
func (a *rereader) prose(tokens int) string {
	var b strings.Builder
	for (convo.Heuristic{}).CountTokens(b.String()) < tokens {
		for range tokens/8 + 1 {
			b.WriteString(plainWords[a.rng.IntN(len(plainWords))] + " ")
		}
	}
	return b.String()
}

// edit edits a file.
func (a *rereader) edit(file int) {
	head := fmt.Sprintf("// file %d\n", file)
	view, _, err := a.h.Prepare(a.t.Context())
	require.NoError(a.t, err)
	if a.careless || !shows(view, head) {
		if a.read[file] {
			a.again++
		}
		a.read[file] = true
		if a.log {
			fmt.Println(a.calls, "reads", file)
		}
		a.call("read_file", fmt.Sprintf(`{"path":"file_%d.go"}`, file), head+a.prose(a.size))
	}
	a.call("edit_file", fmt.Sprintf(`{"path":"file_%d.go","change":%q}`, file, a.prose(20)), "edited")
}

// shows reports whether a result in a view begins with head.
func shows(s *convo.Snapshot, head string) bool {
	for _, m := range s.Messages() {
		for _, r := range m.ToolResults() {
			if strings.HasPrefix(r.Text(), head) {
				return true
			}
		}
	}
	return false
}

// call makes a request that is answered by a call, and appends its result.
func (a *rereader) call(name, arguments, result string) {
	s, _, err := a.h.Prepare(a.t.Context())
	require.NoError(a.t, err)
	require.NoError(a.t, a.h.RecordUsage(s, convo.Usage{Input: s.Tokens(), Output: 50}))
	a.calls++
	c := convo.ToolCall{ID: fmt.Sprintf("call_%d", a.calls), Name: name, Arguments: arguments}
	mustAppend(a.t, a.h, convo.Assistant("Next.", c), convo.Result(c, result))
}

// inTurn returns the files of an agent that edits n files in turn.
func inTurn(n int) func(int) int { return func(edit int) int { return edit % n } }

// An agent whose files fit into the window reads them again once, after the first compaction,
// and not after each, with a model and without, also if the History was restored in between.
func TestClearToolResults_Rereads(t *testing.T) {
	model := convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: "Files are edited."}, nil
	})}, convo.Truncate{})
	oneInThree := func(edit int) int {
		if edit%3 == 0 {
			return 0
		}
		return 1 + edit
	}
	for _, tt := range []struct {
		name  string
		agent rereader
		most  int
	}{
		{"five files of 71 % of the limit", rereader{window: 20_000, size: 2500, edits: 200, file: inTurn(5)}, 10},
		{"five files, restored", rereader{window: 20_000, size: 2500, edits: 100, file: inTurn(5), resume: true}, 10},
		{"one file among others", rereader{window: 32_000, size: 1500, edits: 300, file: oneInThree}, 2},
	} {
		for _, strategy := range []convo.CompactionStrategy{nil, model} {
			a := tt.agent.run(t, convo.Options{Strategy: strategy})
			assert.LessOrEqual(t, a.again, tt.most, tt.name)
			assert.Greater(t, a.compactions, 1, tt.name)
		}
	}
}

// Files that do not fit are counted, and the log says what helps.
func TestReport_Again(t *testing.T) {
	var log bytes.Buffer
	a := rereader{window: 20_000, size: 2500, edits: 200, file: inTurn(7)}.run(t, convo.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s := a.h.Status()
	assert.Greater(t, a.again, 150)
	assert.InDelta(t, a.again, s.Again, 8, "those after the last compaction are not counted yet")
	assert.InDelta(t, 2520*s.Again, s.AgainTokens, float64(200*s.Again))
	assert.Positive(t, a.newest.Again)
	assert.Contains(t, fmt.Sprint(a.newest), fmt.Sprintf("%d results of ", a.newest.Again))
	warning := "since what is in use does not fit: use a larger window, or fewer files at a time; one result of read_file: 2,5"
	n := strings.Count(log.String(), warning)
	assert.Greater(t, n, 2, "at the 3rd, 6th, 12th, ... compaction in a row")
	assert.Less(t, n, 8)

	a = rereader{window: 20_000, size: 2500, edits: 200, file: inTurn(3)}.run(t, convo.Options{})
	assert.Equal(t, a.again, a.h.Status().Again)
}

// A tool whose calls are made again although their results can be seen has none that stay.
func TestClearToolResults_Careless(t *testing.T) {
	a := rereader{window: 20_000, size: 2500, edits: 100, file: inTurn(4), careless: true}.run(t, convo.Options{})
	_, err := a.h.Compact(t.Context(), "")
	require.NoError(t, err)
	for _, m := range a.h.Snapshot().Messages()[2:] {
		for _, r := range m.ToolResults() {
			assert.Less(t, len(r.Text()), 200)
		}
	}
}

// hotView returns a conversation in which the file a was cleared and read again, and others
// were read once since.
func hotView(t *testing.T, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	n := 0
	read := func(path string) convo.ID {
		n++
		c := convo.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: "read", Arguments: fmt.Sprintf(`{"path":%q}`, path)}
		return mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat(path+" text ", 300)))
	}
	mustAppend(t, h, convo.User("go"))
	id := read("a")
	read("b")
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: id, CallID: "call_1"}}})
	require.NoError(t, err)
	read("a")
	for i := range 6 {
		read(fmt.Sprint("b", i))
	}
	return h
}

// hotCleared returns the IDs of the calls whose results an edit clears.
func hotCleared(t *testing.T, c convo.CompactionStrategy, h *convo.History, g convo.Goal) (calls []string) {
	e, err := c.Compact(t.Context(), h.Snapshot(), g)
	require.NoError(t, err)
	for _, x := range e.Clear {
		calls = append(calls, x.CallID)
	}
	return calls
}

// A result that was read again is cleared last: not if the target is reached without, nor in
// a Chain if the rest fits well.
func TestClearToolResults_Hot(t *testing.T) {
	h := hotView(t, nil)
	size := h.Status().Tokens
	clearAll := convo.ClearToolResults{}
	others := []string{"call_2", "call_4", "call_5", "call_6"}
	assert.Equal(t, others, hotCleared(t, clearAll, h, convo.Goal{Target: size * 2 / 3}))
	sorted := slices.Sorted(slices.Values(hotCleared(t, clearAll, h, convo.Goal{Target: size / 3})))
	assert.Contains(t, sorted, "call_3")
	chain := convo.Chain(clearAll, convo.Truncate{})
	goal := convo.Goal{Target: size / 3, Limit: size - 1, Reason: convo.ReasonHigh}
	assert.NotContains(t, hotCleared(t, chain, h, goal), "call_3")
	goal.Reason = convo.ReasonRoom
	assert.Contains(t, hotCleared(t, chain, h, goal), "call_3")
}

// A Chain that cannot free enough without such results clears them.
func TestChain_HotInVain(t *testing.T) {
	h := hotView(t, nil)
	for range 20 {
		mustAppend(t, h, convo.User(strings.Repeat("words ", 300)), convo.Assistant("Well."))
	}
	size := h.Status().Tokens
	goal := convo.Goal{Target: size / 3, MinFree: size / 2, Limit: size - 1, Reason: convo.ReasonHigh}
	assert.NotContains(t, hotCleared(t, convo.Chain(convo.ClearToolResults{KeepLast: -1}, convo.Truncate{}), h, goal), "call_3")
	b, _ := h.Snapshot().Find(5)
	b0, _ := h.Snapshot().Find(9)
	goal.MinFree = b.Tokens + 6*b0.Tokens // the others free a little less
	assert.Contains(t, hotCleared(t, convo.Chain(convo.ClearToolResults{KeepLast: -1}, convo.Summarize{KeepLast: 100}), h, goal), "call_3")
}
