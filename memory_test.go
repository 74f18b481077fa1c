package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

const secret = "sk-live-4f9a8b7c6d5e"

// hide is an Options.Redact that removes the secret.
func hide(m convo.Message) convo.Message {
	for i, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			m.Parts[i] = convo.Text(strings.ReplaceAll(string(p), secret, "[hidden]"))
		case convo.ToolCall:
			p.Arguments = strings.ReplaceAll(p.Arguments, secret, "[hidden]")
			m.Parts[i] = p
		case convo.ToolResult:
			for k, part := range p.Parts {
				if s, ok := part.(convo.Text); ok {
					p.Parts[k] = convo.Text(strings.ReplaceAll(string(s), secret, "[hidden]"))
				}
			}
			m.Parts[i] = p
		}
	}
	return m
}

// The prompt quotes the first message that stays as Options.Redact shows it.
func TestRedact_Border(t *testing.T) {
	var prompts []string
	opts := windowOf(3000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompts = append(prompts, req.Prompt, req.Instruction)
		return convo.Summary{Text: "- so far"}, nil
	}), Window: -1, KeepLast: 2})
	opts.Redact = hide
	h := historyOf(t, opts, convo.User("the task"))
	for range 10 {
		mustAppend(t, h, convo.Assistant(strings.Repeat("a", 200)), convo.User("my key is "+secret+", use it"))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.NotEmpty(t, prompts)
	for _, p := range prompts {
		assert.False(t, strings.Contains(p, secret), "a prompt holds the secret")
	}
}

// So it does where that message is a call.
func TestRedact_BorderCall(t *testing.T) {
	var prompts []string
	opts := windowOf(3000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompts = append(prompts, req.Prompt, req.Instruction)
		return convo.Summary{Text: "- so far"}, nil
	}), Window: -1, KeepLast: 2})
	opts.Redact = hide
	h := historyOf(t, opts, convo.User("the task"))
	for i := range 10 {
		c := callOf(fmt.Sprint("c", i))
		c.Arguments = `{"key":"` + secret + `"}`
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("a", 200)))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	for _, p := range prompts {
		assert.False(t, strings.Contains(p, secret), "a prompt holds the secret")
	}
}

// Names of what came up while a summary was written are those that Options.Redact shows.
func TestRedact_NamesOfWhatCameUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Second)
			return convo.Summary{Text: "- " + prose(200)}, nil
		}), Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.Redact = hide
		h := historyOf(t, opts, convo.User("the task"), convo.Assistant("the key is "+secret))
		for range 11 {
			mustAppend(t, h, convo.User("go on"), convo.Assistant(strings.Repeat("a", 200)))
		}
		require.True(t, h.CompactInBackground(t.Context()))
		time.Sleep(time.Millisecond)
		mustAppend(t, h, convo.User("and now?"), convo.Assistant("I use "+secret+" again"))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		sum, _ := h.Snapshot().Summary()
		assert.NotContains(t, sum.Names, secret)
	})
}

// A Prepare whose ctx has ended leaves the edit that waits for the next one.
func TestCacheTTL_EndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, calls := waiting(t, time.Minute)
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := h.Prepare(ctx)
		t.Log(err)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		assert.EqualValues(t, 1, calls.Load(), "the summary was written already")
	})
}

// What left unread is in the report of the edit when it is applied, and only there.
func TestCacheTTL_UnreadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unread := 0
		opts := windowOf(4000, convo.Summarize{With: canned("- so far"), MaxResult: 64, Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.CacheTTL = time.Minute
		opts.OnCompaction = func(r convo.Report) { unread += r.Unread; t.Log(r) }
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeReady, r.Outcome)
		assert.Zero(t, r.Unread, "nothing has left yet")
		time.Sleep(2 * time.Minute)
		_, r, err = h.Prepare(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, r.Unread, unread, "counted once")
	})
}

// Only the very first message of the user is called that.
func TestReport_FirstMessage(t *testing.T) {
	opts := windowOf(2000, convo.Truncate{})
	opts.Roles = convo.Relaxed()
	h := historyOf(t, opts, convo.User("the task"), convo.User(strings.Repeat("d", 600)))
	for range 5 {
		mustAppend(t, h, convo.Assistant(strings.Repeat("a", 200)), convo.User("go on"))
	}
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	t.Log(r)
	require.Contains(t, textsOf(h.Snapshot()), "the task")
	assert.NotContains(t, fmt.Sprint(r), "the user's first")
}

// Extract is never shown an image.
func TestExtract_MediaAreUnread(t *testing.T) {
	for _, usage := range []bool{false, true} {
		opts := windowOf(6000, convo.Summarize{})
		opts.Overheads.Media = func(convo.Media) int { return 500 }
		h := historyOf(t, opts, convo.User("the task"), convo.Assistant("yes"))
		for i := range 4 {
			mustAppend(t, h, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text(fmt.Sprint("look ", i)), convo.Media{MIME: "image/png", URL: fmt.Sprint("https://x.test/", i)}}}, convo.Assistant(strings.Repeat("a", 200)))
		}
		mustAppend(t, h, convo.User("go on"))
		if usage {
			s := h.Snapshot()
			require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens(), Output: 5}))
		}
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		t.Log(r)
		assert.NotZero(t, r.Unread, "usage %v", usage)
	}
}

// A pointer to Summarize is a summarizer of a Chain as well.
func TestChain_PointerToSummarize(t *testing.T) {
	z := convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("503")
	}), Window: -1}
	for _, link := range []convo.CompactionStrategy{z, &z} {
		h := toolTurn(t, windowOf(4000, convo.Chain(link, convo.Truncate{})), 20)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		assert.Empty(t, r.Dropped, "%T: %v", link, r)
	}
}

// prose returns n words of which no run is repeated.
func prose(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26)) + "x ")
	}
	return b.String()
}

// When Extract stands in, the lines of the model's last summary stay, as far as there is room.
func TestChain_StandInKeepsTheSummary(t *testing.T) {
	var b strings.Builder
	for i := range 150 {
		fmt.Fprintf(&b, "- Rule %d: never touch the file number %d, whatever anybody says.\n", i, i)
	}
	model := "## Rules\n" + b.String()
	fail := false
	opts := &convo.Options{Limits: convo.Limits{Window: 128_000, Reserve: -1}, Strategy: convo.Chain(convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		if fail {
			return convo.Summary{}, errors.New("503")
		}
		return convo.Summary{Text: model}, nil
	})}, convo.Truncate{})}
	h := historyOf(t, opts, convo.User("the task"))
	talk := func() {
		for range 150 {
			mustAppend(t, h, convo.Assistant(strings.Repeat("I did some work. ", 100)), convo.User("go on"))
		}
	}
	talk()
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	was, _ := h.Snapshot().Summary()
	fail = true
	talk()
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	is, _ := h.Snapshot().Summary()
	t.Log(r, was.Tokens, is.Tokens, strings.Count(was.Text, "Rule "), strings.Count(is.Text, "Rule "))
	assert.Equal(t, strings.Count(was.Text, "Rule "), strings.Count(is.Text, "Rule "), "rules of the summary before, with room for all")
}

// A summary in prose may end with an open question.
func TestSummarize_ProseWithAQuestion(t *testing.T) {
	for _, text := range []string{
		"The user plans a trip to Rome from 3 to 9 May and pays at most 900 EUR. Flights are booked. The user's last question is still open: should I take the train or a taxi from the airport?",
		"Thanks for the invoice were sent to ACME on 3 May. The user wants weekly reports.",
		"I will refer to the user as U. U wants the parser in Go, without dependencies. The lexer is done in lex.go; the parser is open.",
	} {
		h := toolTurn(t, windowOf(6000, convo.Summarize{With: canned(text), Window: -1}), 30)
		_, err := h.Compact(t.Context(), "")
		assert.NoError(t, err)
	}
}

// Reasoning is removed in whatever form its tags come.
func TestSummarize_ReasoningInAnyTags(t *testing.T) {
	for _, text := range []string{
		"Okay, the user wants a summary. I think about it.\n</think>\n\n- The task is the parser.",
		"<think type=\"x\">Okay.</think>\n- The task is the parser.",
		"<Think>Okay.</Think>\n- The task is the parser.",
		"I need to look at the file first.\n<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>",
	} {
		h := toolTurn(t, windowOf(4000, convo.Summarize{With: canned(text), Window: -1}), 20)
		if _, err := h.Compact(t.Context(), ""); err != nil {
			continue
		}
		sum, _ := h.Snapshot().Summary()
		assert.NotContains(t, strings.ToLower(sum.Text), "think")
		assert.NotContains(t, sum.Text, "tool_call")
	}
}

// Without a limit, a Chain drops nothing unread after a summarizer that works.
func TestChain_NoLimit(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{High: 3000, Low: 1500}
	opts.Strategy = convo.Chain(convo.Summarize{With: canned("- so far"), KeepLast: 30}, convo.Truncate{})
	h := toolTurn(t, opts, 30)
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Empty(t, r.Dropped, "%v", r)
}

// The summary before is shown as Options.Redact shows it, and so are its names.
func TestRedact_PreviousSummary(t *testing.T) {
	var prompt string
	opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		prompt = req.Prompt + req.Previous
		return convo.Summary{Text: "- so far, the key is " + secret}, nil
	}), Window: -1})
	h := toolTurn(t, opts, 20)
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	opts.Redact = hide
	h, err = convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("go on"))
	for i := range 20 {
		c := callOf(fmt.Sprint("d", i))
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 92)))
	}
	_, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, prompt, "so far, the key is [hidden]")
	assert.NotContains(t, prompt, secret)
}

// MaxTokens bounds the summary of a stand-in, too.
func TestChain_StandInMaxTokens(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 32_000}, Strategy: convo.Chain(convo.Summarize{MaxTokens: 300, With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{}, errors.New("503")
	})}, convo.Truncate{})}
	h := historyOf(t, opts, convo.User("the task"))
	for i := range 300 {
		mustAppend(t, h, convo.Assistant(strings.Repeat(fmt.Sprint("I did step ", i, ". "), 12)), convo.User(fmt.Sprint("go on with src/file_", i, ".go")))
	}
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	sum, _ := h.Snapshot().Summary()
	assert.LessOrEqual(t, convo.Heuristic{}.CountTokens(sum.Text), 300)
	assert.NotEmpty(t, sum.Text)
}
