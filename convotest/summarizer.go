package convotest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
//   - No figure of the usage is negative.
//   - Messages and Pinned of the request are not changed, since a summarizer that
//     wraps another may need them again.
//   - Summarize returns within a minute, and soon after its ctx has ended.
//   - It does not panic, and does not end the goroutine that it is called on.
//   - Several goroutines may call it at once. Run the test with -race.
//   - It may fail, but not for every request.
//   - It is of use: what it returns depends on the request, is not the previous
//     summary, and not its instructions. So let a model that stands in for yours
//     answer with something of the prompt, as [Echo] does.
//
// The requests are made by a [convo.History]: short and long ones, with tool
// calls, with texts that imitate tags, in Chinese, and with and without a
// previous summary, pinned messages, a focus and Sent. If Summarize does not
// return, CheckSummarizer stops and leaves the goroutine that called it behind.
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

// How a summarizer can break a rule.
const (
	ruleText     = "returns a blank text"
	ruleLength   = "returns a text longer than MaxTokens"
	ruleStop     = "returns an unfinished text without an error"
	ruleUsage    = "reports a negative usage figure"
	ruleMessages = "changes the messages of the request"
	ruleEachTime = "fails for every request"
	ruleConstant = "returns the same text for every request"
	rulePrevious = "returns the previous summary unchanged"
	ruleRepeats  = "returns its instructions instead of a summary"
	ruleAtOnce   = "breaks a rule when several goroutines call it: "
)

// A summary is the result of a call of Summarize.
type summary struct {
	convo.Summary
	err error
}

type summarizerCheck struct {
	findings
	s convo.Summarizer
}

func (c *summarizerCheck) all(reqs []request) {
	for _, r := range reqs[:2] {
		end := stop(func(ctx context.Context) summary { return c.ask(ctx, cloneRequest(r.SummaryRequest)) })
		if end.rule != "" {
			c.add(end.rule, end.where(r.place())...)
		}
		if end.isStuck() {
			return
		}
	}
	var failure error
	good := 0
	texts := map[string]bool{}
	previous, unchanged := 0, 0 // requests with a previous summary, and those that got it back
	for _, r := range reqs {
		text, broken, err := c.try(r)
		for _, end := range broken {
			c.add(end.rule, end.where(r.place())...)
			if end.isStuck() {
				return
			}
		}
		switch {
		case err == nil:
			good++
			texts[text] = true
			if r.Previous != "" {
				previous++
				if text == strings.TrimSpace(r.Previous) {
					unchanged++
				}
			}
			if strings.Contains(text, instructionOf(r)) {
				c.add(ruleRepeats, r.place())
			}
		case failure == nil:
			failure = err
		}
	}
	if good > 2 && len(texts) == 1 {
		c.add(ruleConstant)
	}
	if previous > 1 && unchanged == previous {
		c.add(rulePrevious)
	}
	if good == 0 && failure != nil {
		c.add(ruleEachTime, fmt.Sprintf("%.300q", failure))
	}
	if len(c.list) == 0 {
		c.atOnce(reqs)
	}
}

func (c *summarizerCheck) ask(ctx context.Context, req convo.SummaryRequest) summary {
	sum, err := c.s.Summarize(ctx, req)
	return summary{sum, err}
}

// instructionOf returns the beginning of the instruction of a request.
func instructionOf(r request) string { return r.Instruction[:min(len(r.Instruction), 60)] }

// try makes one call, and returns its text, the rules that it broke, and its error.
func (c *summarizerCheck) try(r request) (text string, broken []ending, err error) {
	given := cloneRequest(r.SummaryRequest)
	got, end := finish(func(ctx context.Context) summary { return c.ask(ctx, given) })
	if end.rule != "" {
		return "", []ending{end}, nil
	}
	if !reflect.DeepEqual(given.Messages, r.Messages) || !reflect.DeepEqual(given.Pinned, r.Pinned) {
		broken = append(broken, ending{rule: ruleMessages})
	}
	u := got.Usage
	if min(u.Input, u.CacheRead, u.CacheWrite, u.Output) < 0 {
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
			c.add(ruleAtOnce+end.rule, end.where(r.place())...)
		}
	}
}
