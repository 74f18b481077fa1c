package convo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// pngOf returns an image that says that it has these sides.
func pngOf(w, h int) convo.Media {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, uint32(w))
	b = binary.BigEndian.AppendUint32(b, uint32(h))
	return convo.NewMedia("image/png", append(b, 8, 2, 0, 0, 0))
}

// A History for a model that takes fewer images when one is large does not send more than
// that: it loses the large ones, or leaves half as many, so that the next are no edit each.
func TestClearMedia_LargeImages(t *testing.T) {
	const claude = "claude-opus-5-5"
	small, large := pngOf(100, 200), pngOf(2001, 9)
	users := func(n int, of convo.Media) (msgs []convo.Message) {
		for range n {
			msgs = append(msgs, convo.User("see", of), convo.Assistant("yes"))
		}
		return msgs
	}
	oldest := func(n int) (cleared []string) {
		for i := range n {
			cleared = append(cleared, fmt.Sprintf("%d:0", 2*i+1))
		}
		return cleared
	}
	end := []convo.Message{convo.User("and now?")}
	both := convo.User("both", small, large)
	for _, tt := range []struct {
		name  string
		model string
		msgs  []convo.Message
		want  []string // what is cleared: the ID of the entry, and the number of its media that stay
	}{
		{"20, one is large", claude, slices.Concat(users(19, small), users(1, large), end), nil},
		{"21 of the limit", claude, slices.Concat(users(21, pngOf(2000, 2000)), end), nil},
		{"21, an old one is large", claude, slices.Concat(users(5, small), users(1, large), users(15, small), end), []string{"11:0"}},
		{"40, two are large", claude, slices.Concat(users(5, small), users(2, large), users(33, small), end), []string{"11:0", "13:0"}},
		{"one of two in an entry", claude, slices.Concat(users(5, small), []convo.Message{both, convo.Assistant("yes")}, users(15, small), end), []string{"11:1"}},
		{"25, all are large", claude, slices.Concat(users(25, large), end), oldest(15)},
		{"the newest is large", claude, slices.Concat(users(20, small), users(1, large), end), oldest(11)},
		{"the large one is asked about", claude, slices.Concat(users(21, small), []convo.Message{convo.User("this?", large)}), oldest(12)},
		{"more than the model takes", "claude-haiku-4-5", slices.Concat(users(89, small), end), nil},
		{"another model", "gpt-5.5", slices.Concat(users(30, large), end), nil},
		{"no model", "", slices.Concat(users(30, large), end), nil},
		{"DeepSeek, 14", "deepseek-flash", slices.Concat(users(14, pngOf(9, 5000)), end), nil},
		{"DeepSeek, 15", "deepseek-flash", slices.Concat(users(15, pngOf(9, 5000)), end), oldest(8)},
		{"DeepSeek, smaller ones", "deepseek-flash", slices.Concat(users(30, large), end), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}}, tt.msgs...)
			require.NoError(t, h.SetModel(tt.model, convo.Limits{}))
			before := h.Status().Media
			at, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			var got []string
			left := 0
			for _, e := range at.All() {
				n := 0
				for _, p := range e.Message.Parts {
					if _, ok := p.(convo.Media); ok {
						n++
					}
				}
				if left += n; strings.Contains(e.Message.Text(), " cleared: ") {
					got = append(got, fmt.Sprintf("%d:%d", e.ID, n))
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, left, h.Status().Media)
			assert.Equal(t, len(tt.want), before-left)
			assert.Equal(t, tt.want != nil, r.Outcome == convo.OutcomeApplied)
			_, r, err = h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
		})
	}
}

// How large images are is known after a restart, a rollback and an Undo.
func TestClearMedia_LargeImagesAreCounted(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}, Strategy: convo.ClearMedia{TriggerAt: -1}})
	require.NoError(t, h.SetModel("claude-opus-5-5", convo.Limits{}))
	for range 15 {
		mustAppend(t, h, convo.User("see", pngOf(10, 10)), convo.Assistant("yes"))
	}
	assert.Equal(t, 600, h.Status().MostMedia)
	at := h.Snapshot()
	mustAppend(t, h, convo.User("see", pngOf(10, 2001)), convo.Assistant("yes"))
	assert.Equal(t, 20, h.Status().MostMedia)
	again, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assert.Equal(t, 20, again.Status().MostMedia)
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, 600, h.Status().MostMedia)
	assert.Zero(t, historyOf(t, nil, convo.User("see", pngOf(3000, 1))).Status().MostMedia)

	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	for range 30 {
		mustAppend(t, h, convo.User("see", pngOf(5000, 1)), convo.Assistant("yes"))
	}
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "TriggerAt says never")
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Less(t, h.Status().Media, 21)
	require.NoError(t, h.Undo(r))
	assert.Equal(t, 45, h.Status().Media)
	assert.Equal(t, 20, h.Status().MostMedia)
}

// A check reads no image.
func TestClearMedia_CheckAllocates(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}})
	require.NoError(t, h.SetModel("claude-opus-5-5", convo.Limits{}))
	for range 20 {
		mustAppend(t, h, convo.User("see", pngOf(5000, 1)), convo.Assistant("yes"))
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		r, err := reportOf(h.Prepare(t.Context()))
		if err != nil || r.Outcome != convo.OutcomeNotNeeded {
			t.Error(r, err)
		}
	}))
}

// thoughtful returns an answer whose signed reasoning is long.
func thoughtful(text string) convo.Message {
	return thoughts.In(convo.Assistant(text), convo.Reasoning{Text: strings.Repeat("thinking about "+text+" ", 30), Signature: "sig of " + text})
}

// thinkers returns a History with turns that have signed reasoning. The answer to turn i
// has the ID 2i+2.
func thinkers(t *testing.T, opts *convo.Options, turns int) *convo.History {
	h := historyOf(t, opts)
	for i := range turns {
		mustAppend(t, h, convo.User(fmt.Sprint("question ", i)))
		mustAppend(t, h, thoughtful(fmt.Sprint("answer ", i)))
	}
	require.Empty(t, h.Snapshot().Unbound())
	return h
}

// sealedIn returns the IDs of the entries with signed reasoning.
func sealedIn(s *convo.Snapshot) (ids []convo.ID) {
	for _, e := range s.All() {
		for _, p := range e.Message.Parts {
			if r, ok := p.(convo.Reasoning); ok && r.Signature != "" {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids
}

func TestClearThinking(t *testing.T) {
	for name, tt := range map[string]struct {
		c    convo.ClearThinking
		pins []convo.ID
		want []convo.ID // with reasoning
	}{
		"all but the newest turn": {want: []convo.ID{10}},
		"more turns":              {c: convo.ClearThinking{KeepTurns: 3}, want: []convo.ID{6, 8, 10}},
		"negative":                {c: convo.ClearThinking{KeepTurns: -1}, want: []convo.ID{10}},
		"up to a pinned answer":   {pins: []convo.ID{6}, want: []convo.ID{6, 8, 10}},
		"another entry is pinned": {pins: []convo.ID{3}, want: []convo.ID{10}},
	} {
		t.Run(name, func(t *testing.T) {
			h := thinkers(t, &convo.Options{Strategy: tt.c}, 5)
			require.NoError(t, h.Pin(tt.pins...))
			before := h.Snapshot()
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			s := h.Snapshot()
			assert.Equal(t, tt.want, sealedIn(s))
			assert.Zero(t, r.Released)
			assert.Empty(t, s.Unbound())
			assert.Equal(t, before.Len(), s.Len())
			assert.Less(t, s.Tokens(), before.Tokens())

			mustAppend(t, h, convo.User("more"))
			id := mustAppend(t, h, thoughtful("more"))
			assert.True(t, h.Snapshot().Bound(id))
			r, err = h.Compact(t.Context(), "")
			if len(tt.pins) == 0 || tt.pins[0] != 6 {
				require.NoError(t, err)
				assert.NotEmpty(t, r.Rewritten)
			}
			assert.Empty(t, h.Snapshot().Unbound())

			data, err := json.Marshal(h.Snapshot())
			require.NoError(t, err)
			loaded := new(convo.Snapshot)
			require.NoError(t, json.Unmarshal(data, loaded))
			again, err := convo.Restore(loaded, nil)
			require.NoError(t, err)
			assert.Empty(t, again.Snapshot().Unbound(), "also when it was saved and loaded")
		})
	}
}

// Where reasoning does not count, or there is none, ClearThinking declines.
func TestClearThinking_Declines(t *testing.T) {
	h := thinkers(t, &convo.Options{Strategy: convo.ClearThinking{}, Overheads: convo.Overheads{Reasoning: convo.ReplayNone}}, 5)
	_, err := h.Compact(t.Context(), "")
	assert.ErrorIs(t, err, convo.ErrNoGain)
	h = historyOf(t, &convo.Options{Strategy: convo.ClearThinking{}}, convo.User("a"), convo.Assistant("b"), convo.User("c"), convo.Assistant("d"))
	_, err = h.Compact(t.Context(), "")
	assert.ErrorIs(t, err, convo.ErrNoGain)
}

// Reasoning that is taken out of the middle ends the bonds after it: the provider checks
// the reasoning before each block, unless none is left.
func TestClearThinking_FromTheFrontOnly(t *testing.T) {
	h := thinkers(t, nil, 5)
	bare := func(id convo.ID) convo.Edit {
		e, ok := h.Snapshot().Find(id)
		require.True(t, ok)
		return convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: e.Message.Parts[1:]}}}
	}
	r, err := h.Apply(h.Snapshot(), bare(6))
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{8, 10}, h.Snapshot().Unbound())
	require.NoError(t, h.Undo(r))
	assert.Empty(t, h.Snapshot().Unbound())
	for _, id := range []convo.ID{2, 4} {
		_, err = h.Apply(h.Snapshot(), bare(id))
		require.NoError(t, err)
		assert.Empty(t, h.Snapshot().Unbound())
	}
}

// What an Undo restores of the reasoning is bound if all answers since were made with it, and
// otherwise they are. Providers refuse an answer that was made without the reasoning that stands
// before it, or right after other reasoning.
func TestClearThinking_Undo(t *testing.T) {
	clear := func(t *testing.T, h *convo.History, drop bool) convo.Report {
		s := h.Snapshot()
		e, err := convo.ClearThinking{}.Compact(t.Context(), s, convo.Goal{})
		require.NoError(t, err)
		require.Len(t, e.Rewrite, 5)
		if drop {
			e.Drop, e.Rewrite = []convo.ID{1, 2}, e.Rewrite[1:]
		}
		r, err := h.Apply(s, e)
		require.NoError(t, err)
		return r
	}
	begin := func(t *testing.T) *convo.History {
		h := thinkers(t, nil, 5)
		mustAppend(t, h, convo.User("more"))
		return h
	}
	answer := func(t *testing.T, h *convo.History, at *convo.Snapshot) {
		_, err := h.AppendReply(at, convo.Reply{Messages: []convo.Message{thoughtful("more")}})
		require.NoError(t, err)
	}
	for name, drop := range map[string]bool{"alone": false, "and other messages leave": true} {
		t.Run(name, func(t *testing.T) {
			h := begin(t)
			sent := h.Snapshot()
			r := clear(t, h, drop)
			answer(t, h, sent)
			require.NoError(t, h.Undo(r))
			assert.Empty(t, h.Snapshot().Unbound(), "an answer that was under way")

			h = begin(t)
			r = clear(t, h, drop)
			answer(t, h, h.Snapshot())
			require.NoError(t, h.Undo(r))
			if !drop {
				assert.Equal(t, []convo.ID{2, 4, 6, 8, 10}, h.Snapshot().Unbound(), "an answer made without it")
			} else {
				assert.Equal(t, []convo.ID{12}, h.Snapshot().Unbound(), "an answer made of another view")
			}

			h = begin(t)
			r = clear(t, h, drop)
			sent = h.Snapshot()
			require.NoError(t, h.Undo(r))
			answer(t, h, sent)
			assert.Equal(t, []convo.ID{12}, h.Snapshot().Unbound(), "an answer made without it that was under way")

			h = begin(t)
			r = clear(t, h, drop)
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			require.NoError(t, h.Undo(r))
			mustAppend(t, h, thoughtful("more"))
			assert.Equal(t, []convo.ID{12}, h.Snapshot().Unbound(), "such an answer, with Append")
		})
	}
}

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
