package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// fixed returns a strategy that always returns the same edit.
func fixed(e convo.Edit) convo.CompactionStrategy {
	return convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return e, nil })
}

// A link that removes the summary also removes the one that an earlier link has
// put in.
func TestChain_SummaryEmptied(t *testing.T) {
	first := fixed(convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "first"}})
	ranges := fixed(convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "first", Covers: []convo.Range{{First: 3, Last: 4}}}})
	empties := fixed(convo.Edit{Drop: []convo.ID{5, 6}, Summary: &convo.Summary{}})
	last := fixed(convo.Edit{Drop: []convo.ID{7, 8}, Summary: &convo.Summary{Text: "last"}})

	for _, made := range []convo.CompactionStrategy{first, ranges} {
		h := toolTurn(t, windowOf(0, convo.Chain(made, empties)), 20)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{3, 4, 5, 6}, r.Dropped, "no summary stands for them")
		assert.Empty(t, r.Summarised)
		_, ok := h.Snapshot().Summary()
		assert.False(t, ok)

		h = toolTurn(t, windowOf(0, convo.Chain(made, empties, last)), 20)
		r, err = h.Compact(t.Context(), "")
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{3, 4, 5, 6}, r.Dropped)
		assert.Equal(t, []convo.ID{7, 8}, r.Summarised)
		sum, _ := h.Snapshot().Summary()
		assert.Equal(t, "last", sum.Text)
		assert.Equal(t, []convo.Range{{First: 7, Last: 8}}, sum.Covers)
	}
}

func TestChain(t *testing.T) {
	calls := 0
	fails := convo.Summarize{With: broken(&calls), Window: -1}
	t.Run("goes on after a link that failed", func(t *testing.T) {
		h := toolTurn(t, windowOf(1500, convo.Chain(noStandIn(fails), convo.Truncate{})), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		require.Len(t, r.Links, 2)
		assert.Equal(t, convo.OutcomeFailed, r.Links[0].Outcome)
		require.ErrorContains(t, r.Links[0].Cause, "model is down")
		assert.Equal(t, convo.Link{Strategy: "truncate", Outcome: convo.OutcomeApplied}, r.Links[1])
	})
	t.Run("stops when the goal is reached", func(t *testing.T) {
		h := toolTurn(t, windowOf(2000, convo.Chain(convo.ClearToolResults{KeepLast: -1}, convo.Truncate{})), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Len(t, r.Links, 2)
		h = toolTurn(t, windowOf(2299, convo.Chain(convo.Truncate{}, convo.ClearToolResults{})), 20)
		r, err = reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Len(t, r.Links, 1)
	})
	t.Run("fails when no link contributes", func(t *testing.T) {
		h := toolTurn(t, windowOf(1500, convo.Chain(noStandIn(fails), convo.SlidingWindow{KeepLast: 1000})), 20)
		unchanged(t, h, func() {
			r, err := reportOf(h.Prepare(t.Context()))
			require.ErrorContains(t, err, "exceed limit 1,500; strategy summarize: summarizer: model is down; end the strategy")
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		})
	})
	t.Run("a summarizer reads what was there before another link cleared it", func(t *testing.T) {
		rec := new(recorder)
		h := toolTurn(t, windowOf(1000, convo.Chain(convo.ClearToolResults{KeepLast: 8}, convo.Summarize{With: rec, MaxTokens: 50, Window: -1})), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		require.Len(t, r.Links, 2)
		require.Len(t, rec.requests, 1)
		assert.Contains(t, rec.requests[0].Prompt, strings.Repeat("x", 92))
		assert.NotContains(t, rec.requests[0].Prompt, "cleared")
		for _, id := range r.Cleared {
			assert.NotContains(t, r.Summarised, id, "a drop swallows a clear")
		}
	})
	t.Run("the summary covers what its own link dropped", func(t *testing.T) {
		some := convo.StrategyFunc(func(_ context.Context, _ *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8}, Summary: &convo.Summary{Text: "x"}}, nil
		})
		h := toolTurn(t, windowOf(0, convo.Chain(some, convo.Truncate{})), 20)
		require.NoError(t, h.SetLimits(convo.Limits{Window: 900, Reserve: -1, MinFree: 100}))
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.NotEmpty(t, r.Summarised)
		assert.NotEmpty(t, r.Dropped)
		sum, _ := h.Snapshot().Summary()
		assert.Equal(t, []convo.Range{{First: 3, Last: r.Summarised[len(r.Summarised)-1]}}, sum.Covers)
		assert.Greater(t, r.Dropped[0], sum.Covers[0].Last)
	})
	t.Run("of a trigger only the links that are due", func(t *testing.T) {
		h := toolTurn(t, windowOf(0, convo.Chain(convo.Truncate{}, convo.SlidingWindow{KeepLast: 5, TriggerAt: 30}, convo.SlidingWindow{KeepLast: 1, TriggerAt: 300})), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, []convo.Link{{Strategy: "sliding-window", Outcome: convo.OutcomeApplied}}, r.Links)
		assert.Equal(t, convo.ReasonTrigger, r.Reason)
	})
	t.Run("a summary goes deeper rather than leave the rest to be dropped unread", func(t *testing.T) {
		h := toolTurn(t, windowOf(2000, convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{With: canned("x"), MaxTokens: 50, Window: -1}, convo.Truncate{})), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		require.Equal(t, "summarize", r.Links[len(r.Links)-1].Strategy, "%v", r.Links)
		assert.NotEmpty(t, r.Cleared)
		assert.NotEmpty(t, r.Summarised)
		assert.Empty(t, r.Dropped)
		assert.LessOrEqual(t, r.TokensAfter, h.Status().Low)
	})
	t.Run("hostile links", func(t *testing.T) {
		bad := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{4}}, nil // part of an exchange
		})
		panics := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic("boom") })
		h := toolTurn(t, windowOf(1500, convo.Chain(nil, bad, panics, convo.Chain(), convo.Chain(convo.Truncate{}))), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		require.Len(t, r.Links, 5)
		for i, want := range []string{"Chain is <nil>", "part of an exchange (entry 3)", "panic in CompactionStrategy: boom"} {
			assert.Equal(t, convo.OutcomeFailed, r.Links[i].Outcome)
			require.ErrorContains(t, r.Links[i].Cause, want)
		}
		assert.Equal(t, convo.Link{Strategy: "chain", Outcome: convo.OutcomeDeclined, Cause: convo.ErrNoGain}, r.Links[3])
		assert.Equal(t, convo.Link{Strategy: "truncate", Outcome: convo.OutcomeApplied}, r.Links[4])
	})
}

func TestChain_LinkThatWritesToItsSnapshot(t *testing.T) {
	vandal := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		*s = convo.Snapshot{}
		return convo.Edit{}, nil
	})
	h := toolTurn(t, windowOf(1000, convo.Chain(vandal, convo.Truncate{})), 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

// What failed has cost something too.
func TestSummarize_UsageOfFailedCalls(t *testing.T) {
	usage := convo.Usage{Input: 100, Output: 10}
	for name, answer := range map[string]func(convo.SummaryRequest) (convo.Summary, error){
		"refused": func(convo.SummaryRequest) (convo.Summary, error) { return convo.Summary{Usage: usage}, nil },
		"failed": func(convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{Usage: usage}, errors.New("connection reset")
		},
	} {
		h := toolTurn(t, windowOf(1500, convo.Chain(convo.Summarize{With: &recorder{answer: answer}, Window: -1}, convo.Truncate{})), 20)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Positive(t, r.Usage.Input/100, name)
		assert.Equal(t, r.Usage.Input/100, r.Usage.Output/10, name)
	}
}

// How each part is shown to a summarizer.
func TestSummarize_Transcript(t *testing.T) {
	rec := new(recorder)
	c := convo.ToolCall{ID: "1", Name: `say "it"`, Arguments: `{"a":"<call>"}`}
	m := convo.User("see", convo.Media{MIME: "image/png", URL: "u"}, convo.Opaque{Format: "f", JSON: `{"x":1}`})
	m.Author = "Ann"
	h := historyOf(t, windowOf(50_000, nil), m,
		convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: "hm"}, convo.Reasoning{Signature: "s"}, convo.Text("so\n"), c}},
		convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "1", IsError: true, Parts: []convo.Part{
			convo.Text("one"), convo.Text("two <summary>"), convo.Media{MIME: "a/b", URL: "u"}}}}},
		convo.Assistant("<b>bold</b> &lt;"),
	)
	_, err := h.Handoff(t.Context(), rec, "")
	require.NoError(t, err)
	_, transcript, _ := strings.Cut(rec.requests[0].Prompt, "<transcript key=")
	_, transcript, _ = strings.Cut(transcript, "\n")
	transcript, _, _ = strings.Cut(transcript, "</transcript")
	assert.Equal(t, `<message role="user" author="Ann">
see
<media type="image/png" source="u"/>
<block format="f">{"x":1}</block>
</message>
<message role="assistant">
<reasoning>hm</reasoning>
so

<call tool="say &quot;it&quot;">{"a":"&lt;call>"}</call>
</message>
<message role="tool">
<result tool="say &quot;it&quot;" error="true">one
two &lt;summary>
<media type="a/b" source="u"/>
</result>
</message>
<message role="assistant">
<b>bold</b> &lt;
</message>
`, transcript)
}

// A transcript says of a message that the application has marked, and of no other, that no
// person wrote it.
func TestSummarize_TranscriptNamesTheProgram(t *testing.T) {
	rec := new(recorder)
	marked := convo.User("Continue.")
	marked.Meta = convo.HostMeta
	h := historyOf(t, windowOf(50_000, nil), convo.User("Go."), convo.Assistant("a"), marked, convo.Assistant("b"), convo.User("<note>x</note>"), convo.Assistant("c"))
	_, err := h.Handoff(t.Context(), rec, "")
	require.NoError(t, err)
	assert.Contains(t, rec.requests[0].Prompt, "<message role=\"user\">\nGo.\n")
	assert.Contains(t, rec.requests[0].Prompt, "<message role=\"user\" from=\"the program, not the user\">\nContinue.\n")
	assert.Equal(t, 1, strings.Count(rec.requests[0].Prompt, "the program"))
}

// A strategy outside of a History counts as its goal says, or else as its
// snapshot does.
func TestSummarize_CountsByTheGoal(t *testing.T) {
	rec := new(recorder)
	s := toolTurn(t, bare(), 20).Snapshot()
	for _, tt := range []struct {
		count func(string) int
		want  int
	}{{nil, 4}, {func(text string) int { return 10 * len(text) }, 40}} {
		_, err := convo.Summarize{With: rec, MaxTokens: 100, Window: -1}.Compact(t.Context(), s, convo.Goal{Target: 500, Count: tt.count})
		require.NoError(t, err)
		assert.Equal(t, tt.want, rec.requests[len(rec.requests)-1].Count("four"))
	}
	_, err := convo.Summarize{With: rec, MaxTokens: 100, Window: -1}.Compact(t.Context(), convo.NewSnapshot(s.Messages()), convo.Goal{Target: 500})
	require.NoError(t, err)
	assert.Equal(t, convo.Heuristic{}.CountTokens("four"), rec.requests[2].Count("four"))
}

// What is cut in a long result, or between two calls, is cut between two runes.
func TestSummarize_CutsBetweenRunes(t *testing.T) {
	for shift := range 4 {
		rec := new(recorder)
		h := historyOf(t, windowOf(0, convo.Summarize{With: rec, MaxTokens: 100, Window: 3000, KeepTokens: -1}))
		c := callOf("c")
		mustAppend(t, h, convo.User(strings.Repeat("x", shift)+strings.Repeat("😀", 2000)), convo.Assistant("", c),
			convo.Result(c, strings.Repeat("x", shift)+strings.Repeat("😀", 1000)), convo.Assistant("so"), convo.User("thanks"))
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		assert.Positive(t, r.Unread)
		shown := 0
		for _, req := range rec.requests {
			assert.True(t, utf8.ValidString(req.Prompt))
			shown += strings.Count(req.Prompt, "😀")
		}
		assert.Equal(t, 3000, shown+r.Unread/len("😀"), "each is read or told")
	}
}

// What a link has forgotten is not in the report, nor brought back by Undo, when a
// later link drops it.
func TestChain_ForgetsWhatIsDropped(t *testing.T) {
	for name, e := range map[string]convo.Edit{
		"clear":   {Clear: []convo.Clear{{ID: 4, Text: "x", Forget: true}}},
		"rewrite": forgetting(4, convo.Text("x")),
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(10_000, convo.Chain(fixed(e), fixed(convo.Edit{Drop: []convo.ID{3, 4, 5}, Clear: []convo.Clear{{ID: 4}}})))
			opts.Limits.Low = 1
			h := tour(t, opts)
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			assert.Equal(t, []convo.ID{3, 4, 5}, r.Dropped)
			assert.Equal(t, "x", r.Originals()[1].Message.Text())
			require.NoError(t, h.Undo(r))
			assert.Equal(t, "x", find(t, h, 4).Message.Text())
		})
	}
}

// A summarizer reads the text that a link before it has put in the place of a result.
func TestChain_ClearedIsReadAsItStands(t *testing.T) {
	for _, text := range []string{"", "hidden"} {
		var read string
		opts := windowOf(10_000, convo.Chain(fixed(convo.Edit{Clear: []convo.Clear{{ID: 4, Text: text}}}), convo.Summarize{
			KeepTokens: -1, Window: -1,
			With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
				read = req.Prompt
				return convo.Summary{Text: "s"}, nil
			}),
		}))
		opts.Limits.Low = 1
		c := callOf("c")
		h := historyOf(t, opts, convo.System("guide"), convo.User("u"), convo.Assistant("", c), convo.Result(c, strings.Repeat("road ", 200)),
			convo.Assistant(strings.Repeat("a", 2000)), convo.User("v"))
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		require.NotEmpty(t, r.Summarised, "%v", r)
		assert.Equal(t, text == "", strings.Contains(read, "road road"))
		assert.Contains(t, read, text)
	}
}

// above returns a function that reports whether a request weighs more than n.
func above(n int) func(convo.Status) bool {
	return func(s convo.Status) bool { return s.Upper > n }
}

// dueAlways is due at every check.
func dueAlways(convo.Status) bool { return true }

func TestWhen(t *testing.T) {
	h := toolTurn(t, windowOf(100_000, convo.Chain(
		convo.When(above(1_500), convo.ClearToolResults{KeepLast: 2, MinFree: -1}),
		convo.Truncate{},
	)), 10)
	require.Less(t, h.Status().Upper, 1_500)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)

	call := convo.ToolCall{ID: "long", Name: "search"}
	mustAppend(t, h, convo.User("Go on."), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 500)))
	before := h.Len()
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Len(t, r.Links, 1, "only the link that is due")
	assert.Equal(t, "clear-tool-results", r.Links[0].Strategy)
	assert.Equal(t, before, h.Len())
}

// Under another reason a strategy runs as it would without When.
func TestWhen_OtherReasons(t *testing.T) {
	never := func(convo.Status) bool { return false }
	for name, plain := range plainStrategies() {
		for _, due := range []func(convo.Status) bool{nil, never} {
			var reports [2]convo.Report
			for i, c := range []convo.CompactionStrategy{plain, convo.When(due, plain)} {
				whole := hardTalk(t, windowOf(0, c), 16)
				h, err := convo.Restore(whole.Snapshot(), windowOf(2_000, c))
				require.NoError(t, err)
				reports[i], _ = h.Compact(t.Context(), "")
				reports[i].Duration = 0
				assert.Equal(t, plain.Name(), c.Name())
			}
			assert.Equal(t, fmt.Sprint(reports[0]), fmt.Sprint(reports[1]), name)
			assert.Equal(t, reports[0].Links, reports[1].Links, name)
			assert.Equal(t, reports[0].Dropped, reports[1].Dropped, name)
		}
	}
}

// Due takes the place of the strategy's own, and of that of each link.
func TestWhen_ReplacesTriggers(t *testing.T) {
	window := convo.SlidingWindow{KeepLast: 2}
	for _, c := range []convo.CompactionStrategy{
		convo.When(nil, window),
		convo.When(nil, convo.Chain(window, convo.Chain(window))),
		convo.When(above(math.MaxInt), convo.When(dueAlways, window)),
	} {
		h := toolTurn(t, windowOf(0, c), 10)
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	}

	h := toolTurn(t, windowOf(0, convo.When(dueAlways, convo.Chain(convo.ClearToolResults{MinFree: -1}, convo.Truncate{}))), 10)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Len(t, r.Links, 2, "all links of a Chain are due")
}

func TestWhen_Faults(t *testing.T) {
	run := func(c convo.CompactionStrategy) convo.Report {
		h := toolTurn(t, windowOf(0, c), 10)
		before := h.Snapshot()
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Same(t, before, h.Snapshot())
		return r
	}
	var value *convo.ValueError
	require.ErrorAs(t, run(convo.When(dueAlways, nil)).Cause, &value)
	assert.Equal(t, "convo: strategy of When is <nil>, want a strategy", value.Error())
	require.ErrorAs(t, run(convo.Chain(convo.When(dueAlways, nil))).Cause, &value)

	var panicked *convo.PanicError
	boom := func(convo.Status) bool { panic("boom") }
	require.ErrorAs(t, run(convo.When(boom, convo.Truncate{})).Cause, &panicked)
	assert.Equal(t, "Trigger", panicked.In)
	require.ErrorAs(t, run(convo.Chain(convo.When(boom, convo.Truncate{}))).Cause, &panicked)
	assert.Equal(t, "Trigger", panicked.In)

	// A strategy that does not look at its ctx delays no caller.
	release := make(chan struct{})
	defer close(release)
	deaf := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		<-release
		return convo.Edit{}, nil
	})
	h := toolTurn(t, windowOf(0, convo.When(dueAlways, deaf)), 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := reportOf(h.Prepare(ctx))
	require.NoError(t, err)
	assert.ErrorIs(t, r.Cause, context.Canceled)
}

// A Trigger that is due all the time, over a conversation without anything to
// clear.
func TestTrigger_DeclinesAreToldOnce(t *testing.T) {
	var log strings.Builder
	told, asked := 0, 0
	clears := convo.ClearToolResults{KeepLast: 1}
	clearOld := func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		g.Target = s.Tokens() // the newest result stays
		return clears.Compact(ctx, s, g)
	}
	counted := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		asked++
		return clearOld(ctx, s, g)
	})
	opts := windowOf(0, convo.When(dueAlways, counted))
	opts.Limits = convo.Limits{Window: 100_000, MinFree: 150}
	opts.OnCompaction = func(convo.Report) { told++ }
	opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := historyOf(t, opts)
	check := func(want convo.Outcome) {
		t.Helper()
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, want, r.Outcome)
	}
	for i := range 20 {
		mustAppend(t, h, convo.User("And now?"))
		check(convo.OutcomeDeclined)
		assert.Equal(t, i+1, asked)
		check(convo.OutcomeNotNeeded)
		assert.False(t, h.CompactInBackground(t.Context()), "nothing has changed")
		mustAppend(t, h, convo.Assistant("Nothing."))
	}
	assert.Equal(t, 20, asked, "not again while nothing has changed")
	assert.Equal(t, 1, told)
	assert.Equal(t, 1, strings.Count(log.String(), "compaction declined"))

	for range 2 { // the first of the two can be cleared
		call := convo.ToolCall{ID: "c", Name: "search"}
		mustAppend(t, h, convo.User("Search."), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 400)), convo.Assistant("Found."))
	}
	check(convo.OutcomeApplied)
	assert.Equal(t, 2, told)
	for range 3 {
		mustAppend(t, h, convo.User("And now?"), convo.Assistant("Nothing."))
		check(convo.OutcomeDeclined)
	}
	assert.Equal(t, 3, told, "once more after an edit")

	require.NoError(t, h.SetLimits(convo.Limits{Window: 90_000, MinFree: 150}))
	check(convo.OutcomeDeclined)
	assert.Equal(t, 4, told, "and after a change of limits")
	require.NoError(t, h.SetLimits(convo.Limits{Window: 90_000, MinFree: 150}))
	check(convo.OutcomeDeclined)
	assert.Equal(t, 5, told, "and after the same limits were set")
	require.NoError(t, h.Pin(1))
	check(convo.OutcomeDeclined)
	assert.Equal(t, 5, told)
	r, err := h.Compact(t.Context(), "")
	require.ErrorIs(t, err, convo.ErrNoGain)
	assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
	assert.Equal(t, 6, told, "what was asked for is always told")
}

// An edit that gives nothing up is a decline, too.
func TestTrigger_EditWithoutGainIsToldOnce(t *testing.T) {
	told := 0
	opts := windowOf(0, convo.When(dueAlways, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Clear: []convo.Clear{{ID: 3}}}, nil
	})))
	opts.Limits = convo.Limits{Window: 100_000, MinFree: 150}
	opts.OnCompaction = func(convo.Report) { told++ }
	h := historyOf(t, opts)
	call := convo.ToolCall{ID: "c", Name: "search"}
	mustAppend(t, h, convo.User("Search."), convo.Assistant("", call), convo.Result(call, strings.Repeat("x", 400)), convo.Assistant("Found."))
	for i, want := range []convo.Outcome{convo.OutcomeApplied, convo.OutcomeDeclined, convo.OutcomeDeclined, convo.OutcomeDeclined} {
		mustAppend(t, h, convo.User("And now?"), convo.Assistant("Nothing."))
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, want, r.Outcome, "%d: %v", i, r.Cause)
	}
	assert.Equal(t, 2, told)
}

// A failure is told each time.
func TestTrigger_FailuresAreTold(t *testing.T) {
	told := 0
	opts := windowOf(0, convo.When(dueAlways, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, assert.AnError
	})))
	opts.OnCompaction = func(convo.Report) { told++ }
	h := toolTurn(t, opts, 4)
	for i := range 3 {
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Equal(t, i+1, told)
	}
}

// An eager is a strategy with a Due of its own, whatever ClearMedia says.
type eager struct {
	convo.ClearMedia
	asked *int
}

func (e eager) Due(convo.Status) bool { *e.asked++; return true }

func (eager) Compact(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
	return convo.Edit{Drop: idsOf(s)[:1]}, nil
}

// A strategy that embeds one of convo's is asked by its own Due.
func TestTrigger_Embedded(t *testing.T) {
	for _, chained := range []bool{false, true} {
		asked := 0
		var strategy convo.CompactionStrategy = eager{asked: &asked}
		if chained {
			strategy = convo.Chain(convo.ClearMedia{}, strategy)
		}
		h := historyOf(t, windowOf(100_000, strategy), convo.User("a"), convo.Assistant("b"), convo.User("c"), convo.Assistant("d"), convo.User("e"))
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Positive(t, asked)
		assert.Equal(t, convo.ReasonTrigger, r.Reason)
	}
}

// The panic of a nil strategy is the cause of a report, and no lock stays held.
func TestTrigger_NilPointer(t *testing.T) {
	for name, strategy := range map[string]convo.CompactionStrategy{"media": (*convo.ClearMedia)(nil), "window": (*convo.SlidingWindow)(nil)} {
		t.Run(name, func(t *testing.T) {
			h, err := convo.New(windowOf(100_000, strategy))
			require.NoError(t, err)
			mustAppend(t, h, convo.User("a"))
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err, "the request fits")
			var p *convo.PanicError
			require.ErrorAs(t, r.Cause, &p)
			done := make(chan int)
			go func() { done <- h.Len() }()
			select {
			case n := <-done:
				assert.Equal(t, 1, n)
			case <-time.After(time.Minute):
				t.Fatal("the lock is held")
			}
		})
	}
}

// research appends steps of an agent that reads. Each result holds a fact.
func research(t *testing.T, h *convo.History, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		call := convo.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, i)}
		_, err := h.Append(convo.Assistant("", call), convo.Result(call, fmt.Sprintf("fact-%d is here. ", i)+strings.Repeat("lorem ipsum ", 100)))
		require.NoError(t, err)
	}
}

// A factKeeper is a summarizer that keeps each fact that it is shown.
type factKeeper struct {
	seen []string // the facts of each call
	fail error
}

func (k *factKeeper) Summarize(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	var shown []string
	for _, m := range req.Messages {
		for _, r := range m.ToolResults() {
			shown = append(shown, regexp.MustCompile(`fact-\d+`).FindAllString(r.Text(), -1)...)
		}
	}
	k.seen = append(k.seen, strings.Join(shown, " "))
	if k.fail != nil {
		return convo.Summary{}, k.fail
	}
	return convo.Summary{Text: strings.TrimSpace(req.Previous + " " + strings.Join(shown, " "))}, nil
}

func readingHistory(t *testing.T, k *factKeeper, change func(*convo.Options)) *convo.History {
	t.Helper()
	o := &convo.Options{
		Limits: convo.Limits{Window: 4000}, Tokenizer: convo.Heuristic{},
		Strategy: convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: k, Window: -1}, convo.Truncate{}),
	}
	if change != nil {
		change(o)
	}
	h, err := convo.New(o)
	require.NoError(t, err)
	_, err = h.Append(convo.User("Find out what is there."))
	require.NoError(t, err)
	return h
}

// Results are read by the model before they are cleared, although clearing alone is enough.
func TestChain_ReadsWhatIsCleared(t *testing.T) {
	k := new(factKeeper)
	h := readingHistory(t, k, nil)
	research(t, h, 0, 10)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, 1, r.Calls)
	assert.NotEmpty(t, r.Cleared)
	assert.Empty(t, r.Summarised)
	assert.Empty(t, r.Dropped)
	assert.Zero(t, r.Unread)
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok)
	assert.Equal(t, k.seen[0], sum.Text)
	assert.Contains(t, sum.Text, "fact-0 fact-1")
	var ids []convo.ID
	for _, x := range sum.Read {
		for id := x.First; id <= x.Last; id++ {
			ids = append(ids, id)
		}
	}
	assert.Equal(t, r.Cleared, ids)
	assert.Equal(t, r.Cleared, r.Read)
	assert.Regexp(t, `: 7 results cleared and read in \d+ tokens \(\d\.\d s\)`, fmt.Sprint(r))

	// What was read is not read again when its exchange is dropped.
	for steps := 10; steps < 200; steps += 5 {
		research(t, h, steps, steps+5)
		r, err = h.Compact(t.Context(), fmt.Sprint("from ", steps))
		require.NoError(t, err)
		require.Zero(t, r.Unread, r)
	}
	first, _ := h.Snapshot().At(1)
	require.Greater(t, first.ID, convo.ID(100), "exchanges were dropped")
	for i := range 150 {
		n := 0
		for _, seen := range k.seen {
			n += strings.Count(seen+" ", fmt.Sprintf("fact-%d ", i))
		}
		assert.Equal(t, 1, n, "fact-%d", i)
	}
}

func TestChain_DoesNotRead(t *testing.T) {
	k := new(factKeeper)
	h := readingHistory(t, k, func(o *convo.Options) {
		o.Strategy = convo.Chain(convo.ClearToolResults{Unread: true}, convo.Summarize{With: k, Window: -1})
	})
	research(t, h, 0, 10)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.NotEmpty(t, r.Cleared, r)
	assert.Empty(t, k.seen, "Unread is set")

	h = readingHistory(t, k, func(o *convo.Options) {
		o.Strategy = convo.Chain(convo.When(dueAlways, convo.ClearToolResults{}), convo.Summarize{With: k, Window: -1})
	})
	research(t, h, 0, 8)
	_, r, err = h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.NotEmpty(t, r.Cleared, r)
	assert.Empty(t, k.seen, "a trigger clears")

	h = readingHistory(t, k, nil)
	research(t, h, 0, 10)
	_, r, err = h.Recover(t.Context(), h.Snapshot(), errors.New("prompt is too long: 3200 tokens > 3000 maximum"))
	require.NoError(t, err)
	assert.NotEmpty(t, r.Cleared, r)
	assert.Empty(t, k.seen, "the request was refused")
}

// A panic of Options.Redact is named as its own, also for a result that was read before and whose
// exchange is dropped.
func TestChain_RedactPanics(t *testing.T) {
	k := new(factKeeper)
	h := readingHistory(t, k, func(o *convo.Options) {
		o.Redact = func(m convo.Message) convo.Message {
			for _, r := range m.ToolResults() {
				fact, _, _ := strings.Cut(r.Text(), " ")
				if strings.HasPrefix(fact, "fact-") && strings.Contains(strings.Join(k.seen, " ")+" ", fact+" ") {
					panic("boom")
				}
			}
			return m
		}
	})
	for steps := 0; ; steps += 5 {
		require.Less(t, steps, 200)
		research(t, h, steps, steps+5)
		r, _ := h.Compact(t.Context(), fmt.Sprint("from ", steps))
		for _, l := range r.Links {
			var p *convo.PanicError
			if errors.As(l.Cause, &p) {
				assert.Equal(t, "Options.Redact", p.In)
				return
			}
		}
	}
}

// What a summarizer that failed has not read is cleared anyway, and read from the
// originals in the next compaction.
func TestChain_ReadsLater(t *testing.T) {
	k := &factKeeper{fail: errors.New("overloaded")}
	h := readingHistory(t, k, func(o *convo.Options) { o.KeepOriginals = -1 })
	research(t, h, 0, 10)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.NotEmpty(t, r.Cleared)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)

	k.fail = nil
	research(t, h, 10, 18)
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok, r)
	assert.Contains(t, sum.Text, "fact-0 fact-1")
}

// A rollback to before a result that was read puts back the summary that stood before, and so
// does forgetting the result.
func TestChain_TakesBackWhatWasRead(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(h *convo.History, read convo.ID) error
	}{
		{"RewindTo", func(h *convo.History, read convo.ID) error { return h.RewindTo(read - 2) }},
		{"Forget", func(h *convo.History, read convo.ID) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: read, Forget: true}}})
			return err
		}},
		{"reopened", func(h *convo.History, read convo.ID) error {
			data, err := h.Snapshot().MarshalJSON()
			if err != nil {
				return err
			}
			var s convo.Snapshot
			if err := s.UnmarshalJSON(data); err != nil {
				return err
			}
			again, err := convo.Restore(&s, nil)
			if err != nil {
				return err
			}
			if err := again.RewindTo(read - 2); err != nil {
				return err
			}
			if _, ok := again.Snapshot().Summary(); ok {
				return errors.New("the summary stayed")
			}
			return h.RewindTo(read - 2)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := new(factKeeper)
			h := readingHistory(t, k, nil)
			research(t, h, 0, 10)
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			require.NoError(t, test.do(h, r.Cleared[len(r.Cleared)-1]))
			_, ok := h.Snapshot().Summary()
			assert.False(t, ok)
		})
	}
}

// After exchanges were dropped and results read in one call, a rollback to before these results
// leaves a summary of what was dropped.
func TestChain_TakesBackWhatWasReadBesideDrops(t *testing.T) {
	k := new(factKeeper)
	h := readingHistory(t, k, nil)
	_, err := h.Append(convo.Assistant("What shall I note?"))
	require.NoError(t, err)
	for i := range 30 {
		_, err := h.Append(convo.User(fmt.Sprintf("Note number %d. ", i)+strings.Repeat("words and more ", 20)), convo.Assistant(strings.Repeat("an answer ", 40)))
		require.NoError(t, err)
	}
	_, err = h.Append(convo.User("Now look."))
	require.NoError(t, err)
	research(t, h, 0, 8)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.NotEmpty(t, r.Summarised)
	sum, _ := h.Snapshot().Summary()
	require.NotEmpty(t, sum.Read, r)
	assert.Equal(t, 1, r.Calls)
	assert.Contains(t, sum.Text, "fact-0")

	require.NoError(t, h.RewindTo(r.Cleared[0]-2))
	sum, ok := h.Snapshot().Summary()
	require.True(t, ok)
	assert.NotContains(t, sum.Text, "fact-")
	assert.Empty(t, sum.Read)
	assert.NotEmpty(t, sum.Covers)
}

// What was sent is asked about in one call, also where a transcript of it would not leave a part
// of the window free. If the provider finds that too long, the transcript is split.
func TestSummarize_AsksAfterWhatWasSent(t *testing.T) {
	for _, fails := range []bool{false, true} {
		var sent []bool
		with := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			sent = append(sent, req.Sent != nil)
			if fails && len(sent) <= 2 {
				return convo.Summary{}, errors.New("prompt is too long: 20000 tokens > 16000 maximum")
			}
			return convo.Summary{Text: "what was found"}, nil
		})
		h := readingHistory(t, nil, func(o *convo.Options) {
			o.Limits = convo.Limits{Window: 16_000, Reserve: 1000}
			o.Strategy = convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: with})
		})
		research(t, h, 0, 47)
		s := h.Snapshot()
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens(), Output: 10}))
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		_, ok := h.Snapshot().Summary()
		assert.True(t, ok, r)
		if want := []bool{true}; !fails {
			assert.Equal(t, want, sent)
		} else {
			assert.Equal(t, []bool{true, false, false, false}, sent)
		}
	}
}

// Whatever is taken back or forgotten, no summary tells it, and nothing that the agent has read
// is lost while a model reads: it stands in the view, in the summary or in an original.
func TestChain_ReadsAgainstAModel(t *testing.T) {
	for seed := range long.Or(40, 2000) {
		rnd := rand.New(rand.NewPCG(uint64(seed), 52))
		k := new(factKeeper)
		h := readingHistory(t, k, func(o *convo.Options) { o.Roles = convo.Relaxed() })
		live := make(map[int]convo.ID) // the entry that holds each fact
		last, steps := convo.Report{}, 0
		for range 60 {
			s := h.Snapshot()
			newest, _ := s.At(s.Len() - 1)
			k.fail = nil
			switch rnd.IntN(8) {
			case 0:
				_ = h.RewindTo(newest.ID - convo.ID(2*rnd.IntN(6))) // which may be refused
			case 1:
				if _, err := h.Rewind(1 + rnd.IntN(2)); err != nil {
					t.Fatal(err)
				}
			case 2:
				if err := h.Undo(last); err != nil {
					require.ErrorIs(t, err, convo.ErrStale)
				}
			case 3:
				data, err := s.MarshalJSON()
				require.NoError(t, err)
				var again convo.Snapshot
				require.NoError(t, again.UnmarshalJSON(data))
				same, err := again.MarshalJSON()
				require.NoError(t, err)
				require.JSONEq(t, string(data), string(same))
			case 4:
				k.fail = errors.New("overloaded")
				fallthrough
			case 5:
				r, err := h.Compact(t.Context(), fmt.Sprint(steps))
				if err != nil && k.fail == nil {
					require.ErrorIs(t, err, convo.ErrNoGain)
				}
				if r.Outcome == convo.OutcomeApplied {
					last = r
				}
			default:
				n := 1 + rnd.IntN(6)
				if len(s.OpenCalls()) > 0 {
					_, err := h.AnswerOpenCalls("")
					require.NoError(t, err)
				}
				research(t, h, steps, steps+n)
				for i := range n {
					e, _ := h.Snapshot().At(h.Snapshot().Len() - 1 - 2*(n-1-i))
					live[steps+i] = e.ID
				}
				steps += n
			}
			s = h.Snapshot()
			maps.DeleteFunc(live, func(_ int, id convo.ID) bool { return s.TakenBack(id) })
			sum, _ := s.Summary()
			for _, fact := range regexp.MustCompile(`fact-(\d+)(?:\s|$)`).FindAllStringSubmatch(sum.Text, -1) {
				n, _ := strconv.Atoi(fact[1])
				require.Contains(t, live, n, "seed %d: the summary tells what was taken back", seed)
			}
		}
	}
}

// A link that forgets what the summary of a link before it has read leaves the summary from before
// that reading, with what has left.
func TestChain_ForgetsWhatALinkHasRead(t *testing.T) {
	var forgotten []convo.Clear
	forget := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		sum, ok := s.Summary()
		require.True(t, ok)
		require.NotEmpty(t, sum.Read)
		forgotten = nil
		for _, r := range sum.Read {
			if e, _ := s.Find(r.First); e.Message.Role == convo.RoleTool {
				forgotten = append(forgotten, convo.Clear{ID: r.First, Text: "-", Forget: true})
			}
		}
		return convo.Edit{Clear: forgotten}, nil
	})
	for _, drops := range []bool{false, true} {
		k := new(factKeeper)
		h := readingHistory(t, k, nil)
		own := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			g.Target = 1200
			return convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: k, Window: -1}).Compact(ctx, s, g)
		})
		mustAppend(t, h, convo.Assistant(strings.Repeat("long ", 100)), convo.User("go on"))
		for i := 0; drops && i < 30; i++ {
			mustAppend(t, h, convo.Assistant(strings.Repeat("an answer ", 40)), convo.User("go on"))
		}
		research(t, h, 0, 20)
		e, err := convo.Chain(own, forget).Compact(t.Context(), h.Snapshot(), convo.Goal{Limit: 4000})
		require.NoError(t, err)
		require.NoError(t, e.Effort.Links[len(e.Effort.Links)-1].Cause)
		r := apply(t, h, e)
		sum, ok := h.Snapshot().Summary()
		assert.Equal(t, drops, ok, r)
		assert.NotContains(t, sum.Text, "fact-")
		assert.Empty(t, sum.Read)
		assert.Equal(t, drops, len(sum.Covers) > 0)
		assert.Len(t, r.Forgotten, len(forgotten))
	}
}

// After many compactions, a rollback to before the newest result that was read leaves what the
// model wrote before that reading.
func TestChain_TakesBackTheNewestReadingOnly(t *testing.T) {
	k := new(factKeeper)
	h := readingHistory(t, k, func(o *convo.Options) { o.Limits = convo.Limits{Window: 4000, Low: 1750} })
	var last convo.Report
	for steps := 0; steps < 120; steps += 6 {
		research(t, h, steps, steps+6)
		r, err := h.Compact(t.Context(), fmt.Sprint(steps))
		require.NoError(t, err)
		last = r
	}
	before, _ := h.Snapshot().Summary()
	require.NotEmpty(t, last.Read)
	require.NoError(t, h.RewindTo(last.Read[0]-2))
	after, ok := h.Snapshot().Summary()
	require.True(t, ok)
	facts := regexp.MustCompile(`fact-\d+`)
	assert.Greater(t, 2*len(facts.FindAllString(after.Text, -1)), len(facts.FindAllString(before.Text, -1)))
	assert.NotContains(t, after.Text, "fact-119")
}

// What was forgotten does not come back with an Undo, and a summary that a strategy has copied
// changes no other.
func TestChain_ForgottenStays(t *testing.T) {
	h := readingHistory(t, new(factKeeper), nil)
	research(t, h, 0, 10)
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	copied, _ := h.Snapshot().Summary()
	forgot, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: r.Cleared[0], Forget: true}}})
	require.NoError(t, err)
	require.NoError(t, h.Undo(forgot))
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)

	copied.Text += " and more"
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}, Summary: &copied})
	require.NoError(t, err)
	other := readingHistory(t, new(factKeeper), nil)
	research(t, other, 0, 10)
	_, err = other.Compact(t.Context(), "")
	require.NoError(t, err)
	data, err := other.Snapshot().MarshalJSON()
	require.NoError(t, err)
	assert.NotContains(t, string(data), `"covers"`)
	require.NoError(t, new(convo.Snapshot).UnmarshalJSON(data))
}

// TestChain_SecondsThatPrepareWaits measures how long Prepare waits for a model: an agent makes
// 500 steps of five seconds, and the model needs ten seconds for a summary. docs/strategies.md
// has the figures.
func TestChain_SecondsThatPrepareWaits(t *testing.T) {
	const window, steps, step, summary = 20_000, 500, 5 * time.Second, 10 * time.Second
	var rows strings.Builder
	for _, tt := range []struct {
		name       string
		limits     convo.Limits
		unread     bool
		background bool
	}{
		{"`ClearToolResults{Unread: true}`", convo.Limits{Window: window}, true, false},
		{"the chain", convo.Limits{Window: window}, false, false},
		{"with soft at 0.7, without `Background`", convo.Ratios(window, 0.7, 0.85), false, false},
		{"with `Background`", convo.Limits{Window: window}, false, true},
		{"with `Background`, soft at 0.7 and high at 0.85", convo.Ratios(window, 0.7, 0.85), false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := new(factKeeper)
			slow := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
				time.Sleep(summary)
				sum, err := k.Summarize(ctx, req)
				sum.Text = sum.Text[max(len(sum.Text)-800, 0):]
				return sum, err
			})
			h := readingHistory(t, k, func(o *convo.Options) {
				o.Limits = tt.limits
				o.Strategy = convo.Chain(convo.ClearToolResults{Unread: tt.unread}, convo.Summarize{With: slow, Window: -1}, convo.Truncate{})
			})
			waits, all, longest := 0, time.Duration(0), time.Duration(0)
			for i := range steps {
				begin := time.Now()
				_, _, err := h.Prepare(t.Context())
				require.NoError(t, err)
				if d := time.Since(begin); d > 0 {
					waits, all, longest = waits+1, all+d, max(longest, d)
				}
				time.Sleep(step)
				research(t, h, i, i+1)
				if tt.background {
					h.CompactInBackground(t.Context())
				}
			}
			require.NoError(t, h.Close())
			_, err := h.Wait(context.Background())
			require.NoError(t, err)
			fmt.Fprintf(&rows, "| %s | %d | %d | %.0f s | %.0f s |\n", tt.name, len(k.seen), waits, all.Seconds(), longest.Seconds())
		})
	}
	page, err := os.ReadFile("docs/strategies.md")
	require.NoError(t, err)
	if !strings.Contains(string(page), rows.String()) {
		t.Errorf("docs/strategies.md lacks the rows\n%s", &rows)
	}
}
