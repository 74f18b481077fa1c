package convotest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-c1b73e60/convo"
)

// TestSummarizer runs [CheckSummarizer] and calls t.Error for each broken rule.
func TestSummarizer(t testing.TB, s convo.Summarizer) {
	t.Helper()
	report(t, CheckSummarizer(s))
}

// CheckSummarizer calls a summarizer with about two dozen requests, and returns
// the broken rules as joined errors. The rules:
//
//   - The text is not blank, and has no more tokens than the MaxTokens of the
//     request, as counted by its Count. One request allows 64, the others 500.
//   - Stop is StopDone, unless there is an error.
//   - No count in the usage is negative.
//   - Messages and Pinned of the request are not changed, since a summarizer that
//     wraps another may need them again.
//   - Summarize returns within a minute, and soon after its ctx has ended.
//   - It does not panic or call runtime.Goexit.
//   - It is safe for concurrent use. Run the test with -race.
//   - It may fail, but not for every request, nor for every request with a previous
//     summary.
//   - It is useful. The summary is not the same for every request, not the unchanged
//     previous summary, and not the text of the prompt around the transcript. The
//     summaries keep at least one of the names in the messages of the requests, one of
//     the numbers, and one name or number of the previous summaries. The requests of
//     this package contain few of these, and state them plainly.
//
// A function that replaces your model must also answer with something from its prompt,
// as [Answer] does:
//
//	model := func(ctx context.Context, prompt string) (string, error) {
//		return convotest.Answer(prompt), ctx.Err()
//	}
//
// The requests are made by a [convo.History]: short and long requests, with tool
// calls, with texts that imitate tags, in Chinese, and with and without a
// previous summary, pinned messages, a focus and Sent. If Summarize does not
// return, CheckSummarizer stops and leaks the goroutine that called it.
func CheckSummarizer(s convo.Summarizer) error {
	if s == nil {
		return errors.New("summarizer: is nil; pass the summarizer to check")
	}
	all, err := requests()
	if err != nil {
		return err
	}
	c := summarizerCheck{s: s}
	c.of = "summarizer"
	c.all(all)
	return c.err()
}

// The rules that a summarizer can break.
var (
	ruleText     = rule{"returns a blank text", "return an error if the model wrote nothing"}
	ruleLength   = rule{"returns a text longer than MaxTokens", "bound the model's output, and return an error for what is longer as Count counts it"}
	ruleStop     = rule{"returns an unfinished text without an error", "return an error unless Stop is StopDone"}
	ruleUsage    = rule{"reports a negative usage figure", "leave at 0 what the provider does not report"}
	ruleMessages = rule{"changes the messages of the request", "copy what you change, with its parts"}
	ruleEachTime = rule{"fails for every request", "if it calls a model, let a stand-in answer, such as Answer"}
	ruleConstant = rule{"returns the same text for every request", remedyKept}
	rulePrevious = rule{"returns the previous summary unchanged", "add what the messages say; SummaryRequest.Prompt asks a model for that"}
	ruleRepeats  = rule{"returns text of the prompt around the transcript instead of a summary", "return what the model answers, and let a stand-in for it answer as Answer does"}
	ruleForgets  = rule{"keeps nothing of the previous summary", "send SummaryRequest.Prompt, which holds it, or begin with SummaryRequest.Previous: what it says is nowhere else"}
	ruleNothing  = rule{"keeps nothing of what the messages say", remedyKept}
	ruleNames    = rule{"keeps no name that the messages hold", "leave names as they are, since the conversation goes on with them"}
	ruleNumbers  = rule{"keeps no number that the messages hold", "leave numbers as they are, since the conversation goes on with them"}
	ruleUpdate   = rule{"fails for every request with a previous summary", "summarise those too: after the first summary, each request has one"}
)

// remedyKept is the remedy for a summary that is unrelated to the messages.
const remedyKept = "send SummaryRequest.Prompt, which holds the messages, or read SummaryRequest.Messages; a stand-in for a model answers with something of its prompt, as Answer does"

// A summary is the result of a call to Summarize.
type summary struct {
	convo.Summary
	err error
}

type summarizerCheck struct {
	findings
	s     convo.Summarizer
	stuck bool // a call did not return, so the check must stop
}

func (c *summarizerCheck) all(reqs []request) {
	for _, r := range reqs[:2] {
		end := stop(func(ctx context.Context) summary { return c.ask(ctx, cloneRequest(r.SummaryRequest)) })
		if end.isBad() {
			c.add(end.rule, end.where(r.place())...)
		}
		if end.isStuck() {
			return
		}
	}
	var failure, noUpdate error
	var got answers
	for _, r := range reqs {
		err := c.askOnce(r, &got)
		if c.stuck {
			return
		}
		failure = cmp.Or(failure, err)
		if r.Previous != "" {
			noUpdate = cmp.Or(noUpdate, err)
		}
	}
	if len(got.all) > 0 && !got.has(updates) { // a model may be down for a while
		for _, r := range slices.Repeat(reqs, 4) {
			if r.Previous == "" {
				continue
			}
			if _ = c.askOnce(r, &got); c.stuck {
				return
			}
		}
	}
	switch {
	case len(got.all) == 0 && failure != nil:
		c.add(ruleEachTime, fmt.Sprintf("%.300q", failure))
	case len(got.all) > 2 && got.isConstant():
		c.add(ruleConstant, fmt.Sprintf("%.60q", got.all[0].text))
	default:
		c.kept(got)
		if len(got.all) > 0 && !got.has(updates) && noUpdate != nil {
			c.add(ruleUpdate, fmt.Sprintf("%.300q", noUpdate))
		}
	}
	if len(c.list) == 0 {
		c.atOnce(reqs)
	}
}

// askOnce makes one call, and adds its text to got. It returns the error of the call.
func (c *summarizerCheck) askOnce(r request, got *answers) error {
	text, broken, err := c.try(r)
	for _, end := range broken {
		c.add(end.rule, end.where(r.place())...)
		c.stuck = c.stuck || end.isStuck()
	}
	if err != nil || len(broken) > 0 {
		return err
	}
	got.all = append(got.all, answer{r, text})
	for _, frame := range framesOf(r) {
		if strings.Contains(text, frame) {
			c.add(ruleRepeats, r.place(), fmt.Sprintf("%q", frame))
		}
	}
	return nil
}

// kept checks that the summaries keep something of the messages. A useful summarizer
// keeps at least one of the names and numbers in twelve requests.
func (c *summarizerCheck) kept(got answers) {
	if prev := got.where(updates); len(prev) > 1 && !slices.ContainsFunc(prev, func(a answer) bool { return a.text != strings.TrimSpace(a.Previous) }) {
		c.add(rulePrevious)
		return
	}
	lost := func(ask func(request) bool, facts ...string) (bool, []string) {
		asked := got.where(ask)
		if len(asked) == 0 || slices.ContainsFunc(asked, func(a answer) bool { return holdsAny(a.text, facts) }) {
			return false, nil
		}
		return true, []string{asked[0].place(), fmt.Sprintf("which holds %q", facts)}
	}
	if is, where := lost(updates, earlierName, earlierNumber); is {
		c.add(ruleForgets, where...)
	}
	names, where := lost(request.tells, factName)
	numbers, _ := lost(request.tells, factNumber)
	switch {
	case names && numbers:
		c.add(ruleNothing, where[0], fmt.Sprintf("which holds %q", []string{factName, factNumber}))
	case names:
		c.add(ruleNames, where...)
	case numbers:
		_, where := lost(request.tells, factNumber)
		c.add(ruleNumbers, where...)
	}
}

// holdsAny reports whether a text contains one of the facts, ignoring case and commas.
func holdsAny(text string, facts []string) bool {
	text = strings.ToLower(strings.ReplaceAll(text, ",", ""))
	return slices.ContainsFunc(facts, func(fact string) bool { return strings.Contains(text, strings.ToLower(fact)) })
}

// answers holds the texts that a summarizer returned.
type answers struct{ all []answer }

// An answer is a text that a summarizer returned, with its request.
type answer struct {
	request
	text string
}

// where returns the answers to some of the requests.
func (a *answers) where(ask func(request) bool) (some []answer) {
	for _, one := range a.all {
		if ask(one.request) {
			some = append(some, one)
		}
	}
	return some
}

func (a *answers) has(ask func(request) bool) bool { return len(a.where(ask)) > 0 }

// isConstant reports whether all answers are the same.
func (a *answers) isConstant() bool {
	return !slices.ContainsFunc(a.all, func(one answer) bool { return one.text != a.all[0].text })
}

func (c *summarizerCheck) ask(ctx context.Context, req convo.SummaryRequest) summary {
	sum, err := c.s.Summarize(ctx, req)
	return summary{sum, err}
}

// framesOf returns texts from the prompts of a request that are not part of the
// transcript.
func framesOf(r request) []string {
	last := func(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
	return []string{r.Instruction[:min(len(r.Instruction), 60)], last(r.Instruction), last(r.Prompt)}
}

// try makes one call, and returns its text, the rules that it broke, and its error.
func (c *summarizerCheck) try(r request) (text string, broken []ending, err error) {
	given := cloneRequest(r.SummaryRequest)
	got, end := finish(func(ctx context.Context) summary { return c.ask(ctx, given) })
	if end.isBad() {
		return "", []ending{end}, nil
	}
	if !reflect.DeepEqual(given.Messages, r.Messages) || !reflect.DeepEqual(given.Pinned, r.Pinned) {
		broken = append(broken, ending{rule: ruleMessages})
	}
	u := got.Usage
	if min(u.Input, u.CacheRead, u.CacheWrite, u.CacheWriteLong, u.InputAudio, u.Extra, u.Output, u.Reasoning, u.OutputAudio) < 0 {
		broken = append(broken, ending{ruleUsage, fmt.Sprintf("%+v", u)})
	}
	if got.err != nil {
		return "", broken, got.err
	}
	text = strings.TrimSpace(strings.ToValidUTF8(got.Text, "\uFFFD"))
	switch n := r.Count(text); {
	case got.Stop != convo.StopDone:
		broken = append(broken, ending{ruleStop, fmt.Sprintf("Stop is %q", got.Stop.String())})
	case text == "":
		broken = append(broken, ending{rule: ruleText})
	case n > r.MaxTokens:
		broken = append(broken, ending{ruleLength, fmt.Sprintf("%d of %d tokens", n, r.MaxTokens)})
	}
	return text, broken, nil
}

// atOnce makes several calls at the same time, two for each request.
func (c *summarizerCheck) atOnce(reqs []request) {
	reqs = append(reqs[:4:4], reqs[:4]...)
	broken := make([][]ending, len(reqs))
	var wg sync.WaitGroup
	for i, r := range reqs {
		wg.Go(func() { _, broken[i], _ = c.try(r) })
	}
	wg.Wait()
	for i, r := range reqs {
		for _, end := range broken[i] {
			c.add(rule{"breaks a rule when several goroutines call it: " + end.rule.broken, "let no two calls share what one of them changes"}, end.where(r.place())...)
		}
	}
}
