package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

func coversOf(t *testing.T, h *convo.History) []convo.Range {
	t.Helper()
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok)
	return sum.Covers
}

// Ranges of IDs are joined where no entry of the view is between them.
func TestCovers_JoinsAcrossWhatIsNotInTheView(t *testing.T) {
	summary := func() *convo.Summary { return &convo.Summary{Text: "what went"} }
	start := func(t *testing.T) *convo.History {
		return historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"), convo.User("5"), convo.Assistant("6"))
	}
	t.Run("system entries that were replaced", func(t *testing.T) {
		h := start(t)
		require.NoError(t, h.SetSystem(convo.System("7")))
		mustAppend(t, h, convo.User("8"), convo.Assistant("9"), convo.User("10"))
		apply(t, h, convo.Edit{Drop: []convo.ID{6, 8}, Summary: summary()})
		assert.Equal(t, []convo.Range{{First: 6, Last: 6}, {First: 8, Last: 8}}, coversOf(t, h), "it is in place")
		require.NoError(t, h.SetSystem(convo.System("11")))
		apply(t, h, convo.Edit{Drop: []convo.ID{9}, Summary: summary()})
		assert.Equal(t, []convo.Range{{First: 6, Last: 9}}, coversOf(t, h))
	})
	t.Run("entries that were taken back", func(t *testing.T) {
		h := start(t)
		mustAppend(t, h, convo.User("7"), convo.Assistant("8"))
		rewind(t, h)
		mustAppend(t, h, convo.User("9"), convo.Assistant("10"), convo.User("11"))
		apply(t, h, convo.Edit{Drop: []convo.ID{6, 9}, Summary: summary()})
		assert.Equal(t, []convo.Range{{First: 6, Last: 9}}, coversOf(t, h))
	})
	t.Run("entries that stay", func(t *testing.T) {
		h := start(t)
		require.NoError(t, h.Pin(3))
		apply(t, h, convo.Edit{Drop: []convo.ID{1, 2, 4}, Summary: summary()})
		assert.Equal(t, []convo.Range{{First: 1, Last: 2}, {First: 4, Last: 4}}, coversOf(t, h))
		require.NoError(t, h.Unpin(3))
		apply(t, h, convo.Edit{Drop: []convo.ID{3}})
		assert.Len(t, coversOf(t, h), 2, "an edit without a summary leaves it as it is")
		mustAppend(t, h, convo.User("7"))
		apply(t, h, convo.Edit{Drop: []convo.ID{5}, Summary: summary()})
		assert.Equal(t, []convo.Range{{First: 1, Last: 5}}, coversOf(t, h))
	})
	t.Run("ranges in no order that overlap", func(t *testing.T) {
		h := start(t)
		sum := summary()
		sum.Covers = []convo.Range{{First: 5, Last: 6}, {First: 1, Last: 3}, {First: 2, Last: 2}}
		apply(t, h, convo.Edit{Drop: []convo.ID{1, 2, 3}, Summary: sum})
		assert.Equal(t, []convo.Range{{First: 1, Last: 3}, {First: 5, Last: 6}}, coversOf(t, h))
		assert.Equal(t, convo.ID(5), sum.Covers[0].First, "what was given stays as it was")
	})
}

// With the system message replaced in every turn, a summary is no larger after
// many turns than after some.
func TestCovers_DoesNotGrowWithTheTurns(t *testing.T) {
	h := historyOf(t, &convo.Options{
		Limits:   convo.Limits{High: 600, Low: 300, MinFree: 50},
		Strategy: convo.Summarize{},
	})
	size := func(turns int) (ranges, bytes int) {
		for i := range turns {
			require.NoError(t, h.SetSystem(convo.System("It is day "+fmt.Sprint(i)+".")))
			mustAppend(t, h, convo.User("How is the weather where you are?"), convo.Assistant("It is cold, and it rains a little."))
			requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
		}
		data, err := json.Marshal(h.Snapshot())
		require.NoError(t, err)
		return len(coversOf(t, h)), len(data)
	}
	some, small := size(100)
	many, large := size(1000)
	assert.LessOrEqual(t, some, 2)
	assert.LessOrEqual(t, many, 2)
	assert.Less(t, large, 2*small)
}

// A summary by a model is refused if it repeats itself, whatever called the model,
// and no other is.
func TestSummary_Repeats(t *testing.T) {
	loop := strings.Repeat("I will check the file. ", 12)
	const reason = "the summary repeats itself, over and over: \"will check the file. I\"; if that happens again, use another model to summarise"
	edit := func(w *convo.Effort) convo.CompactionStrategy {
		return fixed(convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, Summary: &convo.Summary{Text: loop}, Effort: w})
	}
	byModel := convo.Summarize{With: canned(loop), Window: -1}
	for name, tt := range map[string]struct {
		c                convo.CompactionStrategy
		refused, byModel bool
	}{
		"Summarize":                       {byModel, true, true},
		"a chain":                         {convo.Chain(noStandIn(byModel)), true, true},
		"a strategy":                      {edit(&convo.Effort{Calls: 1}), true, false},
		"one that says nothing":           {edit(nil), true, false},
		"one that calls no model":         {edit(&convo.Effort{}), false, false},
		"in a chain":                      {convo.Chain(edit(nil)), true, false},
		"behind one that failed":          {convo.Chain(convo.Summarize{With: failing("down"), Window: -1}, edit(&convo.Effort{})), false, false},
		"a strategy that holds that":      {wrapped{convo.Chain(convo.Summarize{With: failing("down"), Window: -1}, edit(&convo.Effort{}))}, false, false},
		"a strategy that holds Summarize": {wrapped{byModel}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := toolTurn(t, windowOf(0, tt.c), 20)
			r, err := h.Compact(t.Context(), "")
			if !tt.refused {
				require.NoError(t, err)
				return
			}
			refused, ok := errors.AsType[*convo.RefusedError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, reason, refused.Reason)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			calls := 1
			if tt.byModel {
				calls = 2 // the call is repeated
			}
			assert.Equal(t, calls, r.Calls)
		})
	}

	// Extract copies what was said. By hand, anything goes.
	h := historyOf(t, windowOf(0, convo.Summarize{KeepTokens: -1, MaxTokens: 4000}), convo.User(strings.Repeat(loop, 20)), convo.Assistant("ok"), convo.User(strings.Repeat("and ", 4000)), convo.Assistant("ok"), convo.User("bye"))
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	sum, _ := h.Snapshot().Summary()
	require.Contains(t, sum.Text, strings.Repeat("and ", 50))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: loop}})
	require.NoError(t, err)
	mustAppend(t, h, convo.Assistant("a"), convo.User("b"))
	dropped, err := h.SplicePrefix(h.Snapshot(), 2, loop)
	require.NoError(t, err)
	assert.Positive(t, dropped)
	_, err = h.Handoff(t.Context(), canned(loop), "")
	require.ErrorContains(t, err, "the summary repeats itself")
}

// wrapped is a strategy of the caller's around another.
type wrapped struct{ convo.CompactionStrategy }

func failing(text string) convo.Summarizer {
	return convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New(text)
	})
}

// The hint is what the model sees after each summary. It is counted, and is nowhere else.
func TestSummaryHint(t *testing.T) {
	const hint = "The tool recall finds what left."
	store := new(convotest.MemStore)
	withHint := func(s string) *convo.Options {
		opts := bare()
		opts.SummaryHint = s
		return opts
	}
	seen := func(h *convo.History) string { return textsOf(h.Snapshot())[0] }
	h, err := convo.Open(t.Context(), store, "k", withHint(" "+hint+"\n"))
	require.NoError(t, err)
	mustAppend(t, h, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	assert.NotContains(t, strings.Join(textsOf(h.Snapshot()), "\n"), hint, "there is no summary")
	plain, err := convo.Restore(h.Snapshot(), bare())
	require.NoError(t, err)
	for _, h := range []*convo.History{h, plain} {
		apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "what went", Names: "a.go"}})
	}
	require.NoError(t, h.Save(t.Context()))

	assert.Contains(t, seen(h), "a.go\n\n"+hint+"\n</")
	assert.Equal(t, strings.ReplaceAll(seen(h), "\n\n"+hint, ""), seen(plain))
	more := len("\n\n" + hint)
	assert.Equal(t, plain.Snapshot().Tokens()+more, h.Snapshot().Tokens())
	assert.Equal(t, plain.Snapshot().SummaryTokens("x")+more, h.Snapshot().SummaryTokens("x"))
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "what went", sum.Text)
	assert.Equal(t, "a.go", sum.Names)
	assert.Equal(t, h.Snapshot().Breakdown().Summary, sum.Tokens)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.NotContains(t, string(data), hint)

	other, err := convo.Open(t.Context(), store, "k", withHint("Another line."))
	require.NoError(t, err)
	assert.Contains(t, seen(other), "a.go\n\nAnother line.\n</", "each History has its own")
	assert.Equal(t, h.Snapshot().Tokens()-len(hint)+len("Another line."), other.Snapshot().Tokens())
	apply(t, other, convo.Edit{Summary: &convo.Summary{Text: "anew"}})
	require.NoError(t, other.Save(t.Context()))
	_, _, err = h.Reload(t.Context())
	require.NoError(t, err)
	assert.Contains(t, seen(h), "anew\n\n"+hint+"\n</")
	apply(t, h, convo.Edit{Summary: &convo.Summary{Text: "once more"}})
	assert.Contains(t, seen(h), "once more\n\n"+hint+"\n</", "after a Reload too")

	// No summarizer sees it, and a summary that was copied with it does not get it twice.
	opts := withHint(hint)
	opts.Strategy = convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		assert.NotContains(t, req.Prompt+req.Instruction+req.Previous, hint)
		return convo.Summary{Text: "new"}, nil
	})}
	h, err = convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	for i := range 20 {
		mustAppend(t, h, convo.User(strings.Repeat("u", 100)), convo.Assistant(itoa(i)))
	}
	_, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, seen(h), "new\n\n"+hint+"\n</")

	opts.IsSummary = func(m convo.Message) bool { return strings.HasPrefix(m.Text(), "Summary:") }
	h, err = convo.Restore(convo.NewSnapshot([]convo.Message{convo.User("Summary: old\n\n" + hint), convo.User("q")}), opts)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(seen(h), hint))
}

// No text of a hint forges the tags of a summary.
func TestSummaryHint_IsMasked(t *testing.T) {
	opts := bare()
	h := historyOf(t, opts, convo.User("1"), convo.Assistant("2"), convo.User("3"))
	apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "s"}})
	text := textsOf(h.Snapshot())[0]
	opts.SummaryHint = text[strings.LastIndex(text, "<"):]
	h, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(textsOf(h.Snapshot())[0], opts.SummaryHint))
	assert.True(t, strings.HasSuffix(textsOf(h.Snapshot())[0], opts.SummaryHint))
}

// A summary that has read an entry gives way to the one from before, if the entry is taken back or
// forgotten. The summary of an edit stays, whatever that edit forgets.
func TestSummary_GivesWayToTheOneBefore(t *testing.T) {
	type history struct {
		*convo.History
		before  *convo.Snapshot // its newest entry is 4
		reading convo.Report
		started chan bool // the compaction in the background has its snapshot
		goOn    chan bool // it returns its edit
	}
	forgetting := func(id convo.ID) []convo.Rewrite {
		return []convo.Rewrite{{ID: id, Parts: []convo.Part{convo.Text("removed")}, Forget: true}}
	}
	summary := func(text string, read ...convo.ID) *convo.Summary {
		s := &convo.Summary{Text: text}
		for _, id := range read {
			s.Read = append(s.Read, convo.Range{First: id, Last: id})
		}
		return s
	}
	edits := func(list ...convo.Edit) func(*testing.T, history) {
		return func(t *testing.T, h history) {
			for _, e := range list {
				apply(t, h.History, e)
			}
		}
	}
	undoes := func(e convo.Edit) func(*testing.T, history) {
		return func(t *testing.T, h history) { require.NoError(t, h.Undo(apply(t, h.History, e))) }
	}
	rewindsTo := func(id convo.ID, list ...convo.Edit) func(*testing.T, history) {
		return func(t *testing.T, h history) {
			edits(list...)(t, h)
			require.NoError(t, h.RewindTo(id))
		}
	}
	chains := func(links ...convo.Edit) func(*testing.T, history) {
		return func(t *testing.T, h history) {
			var list []convo.CompactionStrategy
			for _, e := range links {
				list = append(list, fixed(e))
			}
			e, err := convo.Chain(list...).Compact(t.Context(), h.Snapshot(), convo.Goal{})
			require.NoError(t, err)
			apply(t, h.History, e)
		}
	}
	shorter := convo.Rewrite{ID: 4, Parts: []convo.Part{convo.Text("short")}}
	// The summary "one" stands for 1 and 2, and "two" has read 5.
	for _, tt := range []struct {
		name string
		do   func(*testing.T, history)
		want string // the text, and what it has read
	}{
		{"nothing", edits(), "two [5]"},
		{"RewindTo", rewindsTo(4), "one []"},
		{"RewindTo behind it", rewindsTo(6), "two [5]"},
		{"Rewind", func(t *testing.T, h history) {
			n, err := h.Rewind(2)
			require.NoError(t, err)
			require.Equal(t, 2, n)
		}, "one []"},
		{"Rollback", func(t *testing.T, h history) { require.NoError(t, h.Rollback(h.before)) }, "one []"},
		{"Undo", func(t *testing.T, h history) { require.NoError(t, h.Undo(h.reading)) }, "one []"},
		{"Forget", edits(convo.Edit{Rewrite: forgetting(5)}), "one []"},
		{"Forget and drop", edits(convo.Edit{Rewrite: forgetting(5), Drop: []convo.ID{5}}), "one []"},
		{"Forget of another", edits(convo.Edit{Rewrite: forgetting(3)}), "two [5]"},
		{"Undo of a Forget", undoes(convo.Edit{Rewrite: forgetting(5)}), "one []"},
		{"a summary", edits(convo.Edit{Summary: summary("three")}), "three [5]"},
		{"a summary, then RewindTo", rewindsTo(4, convo.Edit{Summary: summary("three")}), "one []"},
		{"a summary, then Forget", edits(convo.Edit{Summary: summary("three")}, convo.Edit{Rewrite: forgetting(5)}), "one []"},
		{"Forget with a summary", edits(convo.Edit{Rewrite: forgetting(5), Summary: summary("three")}), "three []"},
		{"Forget with a summary and a drop", edits(convo.Edit{Rewrite: forgetting(5), Drop: []convo.ID{3}, Summary: summary("three")}), "three []"},
		{"Forget with a summary that has read it", edits(convo.Edit{Rewrite: forgetting(5), Summary: summary("three", 5)}), "three [5]"},
		{"Forget with a summary that has read another, then RewindTo", rewindsTo(5, convo.Edit{Rewrite: forgetting(5), Summary: summary("three", 6)}), "one []"},
		{"Forget of what is not taken out, with a summary, then Forget", edits(
			convo.Edit{Drop: []convo.ID{3}, Summary: summary("of another strategy")},
			convo.Edit{Rewrite: forgetting(5), Summary: summary("three", 6)},
			convo.Edit{Rewrite: forgetting(6)},
		), "three [5 6]"},
		{"Forget with an empty summary", edits(convo.Edit{Rewrite: forgetting(5), Summary: summary("")}), " []"},
		{"Undo of a Forget, and of the edit before it", func(t *testing.T, h history) {
			older := apply(t, h.History, convo.Edit{Rewrite: []convo.Rewrite{shorter}})
			require.NoError(t, h.Undo(apply(t, h.History, convo.Edit{Rewrite: forgetting(5)})))
			require.NoError(t, h.Undo(older))
		}, "one []"},
		{"Undo of the edit before a Forget of another", func(t *testing.T, h history) {
			older := apply(t, h.History, convo.Edit{Rewrite: []convo.Rewrite{shorter}})
			require.NoError(t, h.Undo(apply(t, h.History, convo.Edit{Rewrite: forgetting(3)})))
			require.NoError(t, h.Undo(older))
		}, "two [5]"},
		{"Undo of a Forget with a summary", undoes(convo.Edit{Rewrite: forgetting(5), Summary: summary("three")}), "one []"},
		{"a chain that forgets, then summarises", chains(
			convo.Edit{Rewrite: forgetting(5)},
			convo.Edit{Drop: []convo.ID{3}, Summary: summary("three", 5)},
		), "three [5]"},
		{"a chain that summarises, then forgets what its summary has read", chains(
			convo.Edit{Rewrite: []convo.Rewrite{shorter}, Summary: summary("three", 6)},
			convo.Edit{Rewrite: forgetting(6)},
		), "two [5]"},
		{"a chain that summarises, then forgets what the summary before has read", chains(
			convo.Edit{Rewrite: []convo.Rewrite{shorter}, Summary: summary("three", 6)},
			convo.Edit{Rewrite: forgetting(5)},
		), "one []"},
		{"overtaken in the background", func(t *testing.T, h history) {
			require.True(t, h.CompactInBackground(t.Context()))
			<-h.started
			apply(t, h.History, convo.Edit{Rewrite: forgetting(5)})
			close(h.goOn)
			r, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeStale, r.Outcome)
		}, "one []"},
		{"reopened", func(t *testing.T, h history) {
			data, err := h.Snapshot().MarshalJSON()
			require.NoError(t, err)
			var saved convo.Snapshot
			require.NoError(t, saved.UnmarshalJSON(data))
			again, err := convo.Restore(&saved, nil)
			require.NoError(t, err)
			apply(t, again, convo.Edit{Rewrite: forgetting(5)})
			require.NoError(t, h.RewindTo(4))
			sum, _ := again.Snapshot().Summary()
			require.Equal(t, "one", sum.Text)
		}, "one []"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := history{started: make(chan bool), goOn: make(chan bool)}
			h.History = historyOf(t, windowOf(1000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
				h.started <- true
				<-h.goOn
				return convo.Edit{Drop: []convo.ID{3}, Summary: summary("late")}, nil
			})))
			for i := range 3 {
				if i == 2 {
					h.before = h.Snapshot()
				}
				mustAppend(t, h.History, convo.User(strings.Repeat("question ", 60)+itoa(i)), convo.Assistant(strings.Repeat("answer ", 60)))
			}
			mustAppend(t, h.History, convo.User("and now?"))
			apply(t, h.History, convo.Edit{Drop: []convo.ID{1, 2}, Summary: summary("one")})
			h.reading = apply(t, h.History, convo.Edit{Summary: summary("two", 5)})
			tt.do(t, h)
			sum, _ := h.Snapshot().Summary()
			var read []convo.ID
			for _, r := range sum.Read {
				for id := r.First; id <= r.Last; id++ {
					read = append(read, id)
				}
			}
			assert.Equal(t, tt.want, fmt.Sprint(sum.Text, " ", read))
		})
	}
}

// A summary that was never saved, and has read what was forgotten since, is written nowhere.
func TestSummary_OfWhatWasForgottenIsNotSaved(t *testing.T) {
	forget := convo.Edit{Rewrite: []convo.Rewrite{{ID: 3, Parts: []convo.Part{convo.Text("removed")}, Forget: true}}}
	for _, edits := range [][]convo.Edit{
		{forget},
		{{Rewrite: forget.Rewrite, Summary: &convo.Summary{Text: "three"}}},
		{{Summary: &convo.Summary{Text: "three"}}, forget},
	} {
		h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
		store := new(shelf)
		require.NoError(t, h.Attach(t.Context(), store, "k"))
		require.NoError(t, h.Save(t.Context()))
		apply(t, h, convo.Edit{Drop: []convo.ID{1}, Summary: &convo.Summary{Text: "one"}})
		apply(t, h, convo.Edit{Summary: &convo.Summary{Text: "secret", Read: []convo.Range{{First: 3, Last: 3}}}})
		for _, e := range edits {
			apply(t, h, e)
		}
		require.NoError(t, h.Save(t.Context()))
		for r, err := range store.Records(t.Context(), "k", 1) {
			require.NoError(t, err)
			assert.NotContains(t, string(r.Data), "secret")
		}
	}
}

// A summary that gave way is not part of what the last usage report has measured: an edit, which sums
// that up again, changes nothing.
func TestSummary_ThatGaveWayIsNotMeasured(t *testing.T) {
	upper := func(edited bool) int {
		h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
		apply(t, h, convo.Edit{Summary: &convo.Summary{Text: strings.Repeat("what was read ", 100), Read: []convo.Range{{First: 3, Last: 3}}}})
		s := h.Snapshot()
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: 2 * s.Tokens()}))
		require.NoError(t, h.RewindTo(2))
		text := strings.Repeat("new ", 100)
		if edited {
			id := mustAppend(t, h, convo.User("other"))
			apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: []convo.Part{convo.Text(text)}}}})
		} else {
			mustAppend(t, h, convo.User(text))
		}
		return h.Tokens().Upper
	}
	assert.Equal(t, upper(true), upper(false))
}

// nativeOf returns what a provider makes of a conversation.
func nativeOf(items ...string) convo.Summary {
	return convo.Summary{Native: convo.Native{Format: "anthropic", Model: "m", Items: items}, Usage: convo.Usage{Input: 500, Output: 40}, Model: "m"}
}

// talk returns a History with a number of turns, with signed answers.
func talk(t *testing.T, opts *convo.Options, turns int) *convo.History {
	h := historyOf(t, opts, convo.System("guide"))
	for i := range turns {
		mustAppend(t, h, convo.User(fmt.Sprintf("question %d, which is not a short one, since it must count", i)))
		_, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		mustAppend(t, h, signed(fmt.Sprintf("answer %d, which is as long as the question", i)))
	}
	return h
}

func boundOf(h *convo.History) (ids []convo.ID) {
	for _, e := range h.Snapshot().All() {
		if h.Snapshot().Bound(e.ID) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// What was made after a native summary is not bound without it, and what was made before it
// is bound with it and without it.
func TestNative_Undo(t *testing.T) {
	h := talk(t, bare(), 4) // IDs 2 to 9
	s := h.Snapshot()
	require.Equal(t, []convo.ID{3, 5, 7, 9}, boundOf(h))
	sum := nativeOf(`{"type":"compaction"}`)
	sum.Text, sum.Native.Compacted = "what went before", s.Before(5)
	r, err := h.Apply(s, convo.Edit{Drop: []convo.ID{2, 3, 4}, Summary: &sum})
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 7, 9}, boundOf(h))
	mustAppend(t, h, convo.User("q"), signed("late"))
	assert.Equal(t, []convo.ID{5, 7, 9, 11}, boundOf(h))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{3, 5, 7, 9}, boundOf(h))

	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3, 4}, Summary: &convo.Summary{Text: "what went before"}})
	require.NoError(t, err)
	assert.Empty(t, boundOf(h), "another summary ends all bonds")
}

// A pinned exchange that the provider was given is sent again, and ends the bonds after it.
func TestNative_Pinned(t *testing.T) {
	h := talk(t, bare(), 4)
	require.NoError(t, h.Pin(3))
	sum := nativeOf(`{"type":"compaction"}`)
	sum.Text, sum.Native.Compacted = "what went before", h.Snapshot().Before(5)
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 4}, Summary: &sum})
	require.NoError(t, err)
	assert.Empty(t, boundOf(h))
}

// A native summary is checked when it is applied, and when it is read.
func TestNative_Faults(t *testing.T) {
	h := talk(t, bare(), 3)
	sum := nativeOf("{}")
	var wrong *convo.EditError
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &sum})
	require.ErrorAs(t, err, &wrong, "no text")
	sum.Text, sum.Native.Items = "text", []string{"[]"}
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &sum})
	require.ErrorAs(t, err, &wrong)
	sum.Native.Items = []string{"{}"}
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &sum})
	require.NoError(t, err)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	require.Contains(t, string(data), `"items":["{}"]`)
	for _, bad := range []string{`"items":[]`, `"items":["5"]`, `"items":[5]`, `"items":["{}"],"stood_for":["x"]`} {
		broken := []byte(strings.Replace(string(data), `"items":["{}"]`, bad, 1))
		assert.Error(t, json.Unmarshal(broken, new(convo.Snapshot)), bad)
	}
}
