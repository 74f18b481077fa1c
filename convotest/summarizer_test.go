package convotest_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

func TestCheckSummarizer_AcceptsSummarizersThatFollowTheRules(t *testing.T) {
	good := map[string]convo.Summarizer{
		"extract":                         convo.Extract{},
		"echo":                            convotest.Echo{},
		"slow":                            convotest.Slow{For: time.Second, With: convotest.Echo{}},
		"flaky":                           &convotest.Flaky{With: convotest.Echo{}},
		"recorder":                        &convotest.Recorder{With: convo.Extract{}},
		"a model that is sent the prompt": function(func(r convo.SummaryRequest) string { return convotest.Answer(r.Prompt) }),
		"a model that shouts": function(func(r convo.SummaryRequest) string {
			return echo(convo.SummaryRequest{Previous: strings.ToUpper(convotest.Answer(r.Prompt)), MaxTokens: r.MaxTokens})
		}),
		"a model that goes on from Sent": function(func(r convo.SummaryRequest) string {
			if r.Sent == nil {
				return convotest.Answer(r.Prompt)
			}
			return echo(convo.SummaryRequest{Previous: r.Previous, Messages: r.Sent.Messages(), MaxTokens: r.MaxTokens, Count: r.Count})
		}),
		"a model that forgets most words but names": function(func(r convo.SummaryRequest) string {
			rnd := rand.New(rand.NewPCG(uint64(len(r.Prompt)), 5))
			words := slices.DeleteFunc(strings.Fields(convotest.Answer(r.Prompt)), func(w string) bool {
				return !unicode.IsUpper([]rune(w)[0]) && rnd.IntN(3) > 0
			})
			return "They spoke. " + strings.Join(words, " ")
		}),
		"a model that is down half the time":               &convotest.Flaky{First: 9, With: convotest.Echo{}},
		"a model that is down at each update but the last": failsAtUpdates(4),
		"a model that writes figures with commas": function(func(r convo.SummaryRequest) string {
			return strings.NewReplacer("4719", "4,719", "2957", "2,957").Replace(echo(r))
		}),
		"first sentences": function(func(r convo.SummaryRequest) string {
			var texts []string
			for _, m := range r.Messages {
				first, _, _ := strings.Cut(m.Text(), ".")
				texts = append(texts, first)
			}
			return echoOf(r, texts...)
		}),
		"what the user said last": function(func(r convo.SummaryRequest) string {
			last := ""
			for _, m := range r.Messages {
				if m.Role == convo.RoleUser {
					last = cmp.Or(m.Text(), last)
				}
			}
			return echoOf(r, last)
		}),
		"a list of names and figures": function(func(r convo.SummaryRequest) string {
			return echoOf(r, regexp.MustCompile(`[A-Z]\w+|\d+`).FindAllString(echo(convo.SummaryRequest{Messages: r.Messages}), -1)...)
		}),
	}
	for name, s := range good {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { convotest.TestSummarizer(t, s) })
		})
	}
}

// function returns a summarizer that writes what f returns.
func function(f func(convo.SummaryRequest) string) convo.Summarizer {
	return convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: f(r)}, ctx.Err()
	})
}

// echo returns what Echo writes.
func echo(r convo.SummaryRequest) string {
	sum, _ := convotest.Echo{}.Summarize(context.Background(), r)
	return sum.Text
}

// echoOf returns what Echo writes when the messages say these texts.
func echoOf(r convo.SummaryRequest, texts ...string) string {
	r.Messages = nil
	for _, text := range texts {
		r.Messages = append(r.Messages, convo.User(text))
	}
	return echo(r)
}

// A badSummarizer is refused with a report that begins with want.
type badSummarizer struct {
	name string
	s    convo.Summarizer
	want string
}

func checkSummarizers(t *testing.T, tests []badSummarizer) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := convotest.CheckSummarizer(tt.s)
				time.Sleep(time.Minute) // until calls that were left behind have returned
				require.Error(t, err)
				require.Regexp(t, `(?m)^summarizer: `+regexp.QuoteMeta(tt.want), err.Error())
			})
		})
	}
}

// failsAtUpdates returns a summarizer that fails so many requests with a previous
// summary.
func failsAtUpdates(n int) convo.Summarizer {
	var calls atomic.Int64
	return convo.SummarizerFunc(func(ctx context.Context, r convo.SummaryRequest) (convo.Summary, error) {
		if r.Previous != "" && calls.Add(1) <= int64(n) {
			return convo.Summary{}, convotest.ErrFake
		}
		return convotest.Echo{}.Summarize(ctx, r)
	})
}

// Summarizers that follow every rule of the interface and are of no use.
func TestCheckSummarizer_FailsUselessSummarizers(t *testing.T) {
	type req = convo.SummaryRequest
	without := func(pattern string) convo.Summarizer {
		return function(func(r req) string { return "So: " + regexp.MustCompile(pattern).ReplaceAllString(echo(r), "") })
	}
	// limited cuts a text as who takes a token for four bytes.
	limited := func(r req, text string) string { return strings.ToValidUTF8(text[:min(len(text), 4*r.MaxTokens)], "") }
	tests := []badSummarizer{
		{"ignores the previous summary", function(func(r req) string { r.Previous = ""; return echo(r) }),
			`keeps nothing of the previous summary (request "previous summary", which holds ["Zimmerwald" "2957"]); send SummaryRequest.Prompt, which holds it`},
		{"asks a model for the messages alone", function(func(r req) string {
			_, transcript, _ := strings.Cut(r.Prompt, "\n<transcript")
			return convotest.Answer(fmt.Sprintf("Write at most %d tokens.\n\n<transcript", r.MaxTokens) + transcript)
		}), `keeps nothing of the previous summary`},
		{"counts", function(func(r req) string { return fmt.Sprintf("%d messages, %d bytes", len(r.Messages), len(r.Prompt)) }),
			`keeps nothing of what the messages say (request "short", which holds ["Ravenholt" "4719"]); send SummaryRequest.Prompt, which holds the messages`},
		{"numbers its summaries", &numbering{}, `keeps nothing of what the messages say`},
		{"keeps the previous summary alone", function(func(r req) string {
			return "So far: " + limited(req{MaxTokens: r.MaxTokens / 2}, r.Previous) + fmt.Sprint(len(r.Messages))
		}),
			`keeps nothing of what the messages say`},
		{"reads the pinned messages alone", function(func(r req) string {
			return echo(req{Previous: r.Previous, Messages: append(r.Pinned, convo.User(fmt.Sprint(len(r.Messages)))), MaxTokens: r.MaxTokens})
		}), `keeps nothing of what the messages say`},
		{"loses numbers", without(`\d+`), `keeps no number that the messages hold (request "short", which holds ["4719"]); leave numbers as they are`},
		{"loses names", without(`[A-Z]\w+`), `keeps no name that the messages hold (request "short", which holds ["Ravenholt"]); leave names as they are`},
		{"loses names and numbers", without(`[A-Z]\w+|\d+`), `keeps nothing of what the messages say`},
		{"answers with the prompt", function(func(r req) string { return limited(r, r.Prompt[strings.Index(r.Prompt, "</transcript"):]) }),
			`returns text of the prompt around the transcript instead of a summary (request "short", `},
		{"answers with the end of the prompt", function(func(r req) string { return r.Prompt[max(len(r.Prompt)-2*r.MaxTokens, 0):] }),
			`returns text of the prompt around the transcript instead of a summary (request "short", "Now write the summary of the transcript.")`},
		{"answers with the instruction", function(func(r req) string {
			return r.Instruction[len(r.Instruction)-90:] + echo(req{Messages: r.Messages, MaxTokens: r.MaxTokens / 2})
		}),
			`returns text of the prompt around the transcript instead of a summary (request "short", "Summarise the conversation above`},
		{"takes four bytes for a token", function(func(r req) string {
			var said []string
			for _, m := range r.Messages {
				said = append(said, m.Text())
			}
			return limited(r, "So: "+r.Previous+strings.Join(said, " "))
		}), `returns a text longer than MaxTokens (request "long, with tool calls", `},
		{"as long whatever is asked for", function(func(r req) string { r.MaxTokens = 400; return echo(r) }), `returns a text longer than MaxTokens (request "few tokens", `},
		{"listens to ctx half a minute late", convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			time.Sleep(30 * time.Second)
			return convo.Summary{Text: echo(r)}, ctx.Err()
		}), `does not return after ctx has ended (request "short", ctx had ended before the call); pass ctx on`},
		{"an empty text each time there is a previous summary", function(func(r req) string {
			if r.Previous != "" {
				return ""
			}
			return echo(r)
		}), `returns a blank text (request "previous summary")`},
		{"fails at each update", failsAtUpdates(1 << 30), `fails for every request with a previous summary ("convotest: the fake summarizer failed, as it was told to; set its Err to return another error"); summarise those too`},
	}
	checkSummarizers(t, tests)
}

// A numbering summarizer writes another text each time, whatever it is asked.
type numbering struct{ n atomic.Int64 }

func (s *numbering) Summarize(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
	return convo.Summary{Text: fmt.Sprintf("This is summary number %d.", s.n.Add(1))}, ctx.Err()
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
	tests := []badSummarizer{
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
		{"panics without a previous summary", function(func(r req) string { return "x" + r.Previous[:1] }), `panics (request "short"`},
		{"panics at few tokens", function(func(r req) string { return fmt.Sprint(1 / (r.MaxTokens / 100)) }), `panics (request "few tokens"`},
		{"ends the goroutine", convo.SummarizerFunc(func(context.Context, req) (convo.Summary, error) {
			runtime.Goexit()
			panic("not reached")
		}), `ends the goroutine that it is called on`},
		{"failing", convotest.Failing{}, `fails for every request ("convotest: the fake summarizer failed, as it was told to; set its Err to return another error")`},
		{"says the same each time", convotest.Canned{}, `returns the same text for every request`},
		{"a model that says ok", always(convo.Summary{Text: "OK.", Usage: convo.Usage{Input: 100, Output: 2}}), `returns the same text for every request`},
		{"keeps the previous summary", function(func(r req) string { return cmp.Or(r.Previous, echo(r)) }), `returns the previous summary unchanged`},
		{"repeats the prompt", function(func(r req) string { return r.Prompt[:min(len(r.Prompt), r.MaxTokens)] }), `returns text of the prompt around the transcript instead of a summary (request "short", `},
		{"not for several", convo.SummarizerFunc(func(ctx context.Context, r req) (convo.Summary, error) {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				panic("two at once")
			}
			time.Sleep(time.Second)
			return convotest.Echo{}.Summarize(ctx, r)
		}), `breaks a rule when several goroutines call it: panics (request "`},
	}
	checkSummarizers(t, tests)
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
