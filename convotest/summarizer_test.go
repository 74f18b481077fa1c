package convotest_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

func TestCheckSummarizer_AcceptsSummarizersThatFollowTheRules(t *testing.T) {
	good := map[string]convo.Summarizer{
		"extract":  convo.Extract{},
		"echo":     convotest.Echo{},
		"slow":     convotest.Slow{For: time.Second, With: convotest.Echo{}},
		"flaky":    &convotest.Flaky{With: convotest.Echo{}},
		"recorder": &convotest.Recorder{With: convo.Extract{}},
	}
	for name, s := range good {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { convotest.TestSummarizer(t, s) })
		})
	}
}

func TestCheckSummarizer_NamesTheBrokenRule(t *testing.T) {
	type req = convo.SummaryRequest
	always := func(sum convo.Summary) convo.Summarizer {
		return convo.SummarizerFunc(func(context.Context, req) (convo.Summary, error) { return sum, nil })
	}
	// changing returns a summarizer that changes the request.
	changing := func(change func(*req)) convo.Summarizer {
		return convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			change(&r)
			return convotest.Canned{}.Summarize(ctx, r)
		})
	}
	var inside atomic.Int32
	tests := []struct {
		name string
		s    convo.Summarizer
		want string // how the text after the name begins
	}{
		{"nil", nil, `is nil`},
		{"empty", convotest.Empty{}, `returns a blank text (request "short")`},
		{"blank", always(convo.Summary{Text: " \n\t"}), `returns a blank text`},
		{"too long", always(convo.Summary{Text: strings.Repeat("more ", 1000)}), `returns a text longer than MaxTokens (request "short", `},
		{"too long for few tokens", always(convo.Summary{Text: strings.Repeat("more ", 90)}), `returns a text longer than MaxTokens (request "few tokens", `},
		{"growing", &convotest.Growing{}, `returns a text longer than MaxTokens`},
		{"cut off", convotest.CutOff{}, `returns an unfinished text without an error (request "short", Stop is "length")`},
		{"tool call", always(convo.Summary{Text: "x", Stop: convo.StopToolCall}), `returns an unfinished text without an error (request "short", Stop is "tool call")`},
		{"no text and refused", always(convo.Summary{Stop: convo.StopRefused}), `returns an unfinished text without an error`},
		{"usage", convotest.Canned{Usage: convo.Usage{Output: -1}}, `reports a negative usage figure`},
		{"usage beside an error", convo.SummarizerFunc(func(_ context.Context, r req) (convo.Summary, error) {
			return convo.Summary{Usage: convo.Usage{Input: -5}}, convotest.ErrFake
		}), `reports a negative usage figure`},
		{"changes a message", changing(func(r *req) { r.Messages[0] = convo.User("other") }), `changes the messages of the request (request "short")`},
		{"changes a part", changing(func(r *req) {
			for _, m := range r.Messages {
				for i := range m.Parts {
					m.Parts[i] = convo.Text("other")
				}
			}
		}), `changes the messages of the request`},
		{"changes a result", changing(func(r *req) {
			for _, m := range r.Messages {
				for _, result := range m.ToolResults() {
					clear(result.Parts)
				}
			}
		}), `changes the messages of the request (request "long, with tool calls")`},
		{"changes a pinned message", changing(func(r *req) { clear(r.Pinned) }), `changes the messages of the request (request "pinned")`},
		{"never done", convotest.Slow{}, `does not return within a minute (request "short")`},
		{"panicking", convotest.Panicking{}, `panics (request "short", "convotest: fake summarizer panicked"`},
		{"panics without a previous summary", convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			return convo.Summary{Text: "x" + r.Previous[:1]}, nil
		}), `panics (request "short"`},
		{"panics at few tokens", convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			return convo.Summary{Text: fmt.Sprint(1 / (r.MaxTokens / 100))}, nil
		}), `panics (request "few tokens"`},
		{"ends the goroutine", convo.SummarizerFunc(func(context.Context, req) (convo.Summary, error) {
			runtime.Goexit()
			panic("not reached")
		}), `ends the goroutine that it is called on`},
		{"failing", convotest.Failing{}, `fails for every request ("convotest: fake summarizer failed")`},
		{"says the same each time", convotest.Canned{}, `returns the same text for every request`},
		{"a model that says ok", always(convo.Summary{Text: "OK.", Usage: convo.Usage{Input: 100, Output: 2}}), `returns the same text for every request`},
		{"keeps the previous summary", convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			if r.Previous != "" {
				return convo.Summary{Text: r.Previous}, nil
			}
			return convotest.Echo{}.Summarize(ctx, r)
		}), `returns the previous summary unchanged`},
		{"repeats the prompt", convo.SummarizerFunc(func(_ context.Context, r req) (convo.Summary, error) {
			return convo.Summary{Text: r.Prompt[:min(len(r.Prompt), r.MaxTokens)]}, nil
		}), `returns its instructions instead of a summary (request "short")`},
		{"not for several", convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				panic("two at once")
			}
			time.Sleep(time.Second)
			return convotest.Echo{}.Summarize(ctx, r)
		}), `breaks a rule when several goroutines call it: panics (request "`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := convotest.CheckSummarizer(tt.s)
				require.Error(t, err)
				require.Regexp(t, `(?m)^summarizer: `+regexp.QuoteMeta(tt.want), err.Error())
			})
		})
	}
}

func TestCheckSummarizer_NoticesThatCtxIsIgnored(t *testing.T) {
	const rule = `does not return after ctx has ended (request "short", `
	synctest.Test(t, func(t *testing.T) {
		var deaf convotest.Deaf
		defer deaf.Release()
		require.ErrorContains(t, convotest.CheckSummarizer(&deaf), rule+"ctx had ended before the call)")

		looksOnce := convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
			if ctx.Err() != nil {
				return convo.Summary{}, ctx.Err()
			}
			return deaf.Summarize(ctx, r)
		})
		require.ErrorContains(t, convotest.CheckSummarizer(looksOnce), rule+"ctx ended during the call)")
	})
}

// The built-in requests cover what the doc comment of CheckSummarizer lists.
func TestRequests_CoverTheDocumentedCases(t *testing.T) {
	all, err := convotest.Requests()
	require.NoError(t, err)
	previous, pinned, focus, sent, few := 0, 0, 0, 0, 0
	for name, r := range all {
		require.NotEmpty(t, r.Prompt, name)
		require.NotEmpty(t, r.Instruction, name)
		require.NotEmpty(t, r.Messages, name)
		require.NotNil(t, r.Count, name)
		require.Positive(t, r.MaxTokens, name)
		count := func(n *int, is bool) {
			if is {
				*n++
			}
		}
		count(&previous, r.Previous != "")
		count(&pinned, len(r.Pinned) > 0)
		count(&focus, r.Focus != "")
		count(&sent, r.Sent != nil)
		count(&few, r.MaxTokens == 64)
	}
	require.Len(t, all, 12)
	require.Equal(t, []int{2, 1, 1, 1, 1}, []int{previous, pinned, focus, sent, few})
	require.Greater(t, all["long, with tool calls"].Count(all["long, with tool calls"].Prompt), 2000)
}
