package convotest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// oldest drops the oldest exchanges that are not floor, until the target is
// reached, but no more than most.
func oldest(most int) convo.CompactionStrategy {
	return convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		var e convo.Edit
		dropped, left := 0, s.Tokens()
		for x := range s.Exchanges() {
			if !x.Floor && left > g.Target && dropped < most {
				e.Drop = append(e.Drop, x.IDs()...)
				left -= x.Tokens
				dropped++
			}
		}
		return e, nil // with nothing in it, it declines
	}).Named("oldest")
}

// results drops tool results, but not their calls.
type results struct{}

func (results) Name() string { return "results" }

func (results) Compact(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
	var e convo.Edit
	for x := range s.Exchanges() {
		if !x.Floor && x.First != x.Last {
			e.Drop = append(e.Drop, x.IDs()[1:]...)
		}
	}
	return e, nil
}

func ExampleCheckStrategy() {
	fmt.Println(convotest.CheckStrategy(oldest(1000)))
	fmt.Println(convotest.CheckStrategy(oldest(20)))
	fmt.Println(convotest.CheckStrategy(results{}))
	// Output:
	// <nil>
	// strategy "oldest": stops short of the target, though it can free more (case "many turns", goal "target 0", 962 tokens are left, the target is 0); go on until no more than Goal.Target is left, or nothing that can go
	// strategy "results": drops part of an exchange (case "tool rounds", goal "tight", entry 4); drop all that Exchange.IDs returns, or none of it
}

func ExampleCheckSummarizer() {
	// It returns the beginning of the last message, which is nothing if that is
	// empty, and never looks at the previous summary.
	last := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: fmt.Sprintf("%.40s", req.Messages[len(req.Messages)-1].Text())}, nil
	})
	fmt.Println(convotest.CheckSummarizer(last))
	fmt.Println(convotest.CheckSummarizer(convotest.Echo{}))
	// Output:
	// summarizer: returns a blank text (request "errors and empty results"); return an error if the model wrote nothing
	// summarizer: keeps nothing of the previous summary (request "previous summary", which holds ["Zimmerwald" "2957"]); send SummaryRequest.Prompt, which holds it, or begin with SummaryRequest.Previous: what it says is nowhere else
	// <nil>
}

// Answer stands in for the model behind a summarizer of your own.
func ExampleAnswer() {
	model := func(ctx context.Context, prompt string) (string, error) {
		return convotest.Answer(prompt), ctx.Err()
	}
	mine := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		text, err := model(ctx, req.Prompt)
		return convo.Summary{Text: text}, err
	})
	fmt.Println(convotest.CheckSummarizer(mine))
	// Output: <nil>
}

// A summarizer that fails does not change the conversation.
func ExampleFailing() {
	h, err := convo.New(&convo.Options{Strategy: convo.Summarize{With: convotest.Failing{}}})
	if err != nil {
		log.Fatal(err)
	}
	for range 50 {
		if _, err := h.Append(convo.User("How far is it from here to there?"), convo.Assistant("It is some way along the river.")); err != nil {
			log.Fatal(err)
		}
	}
	report, err := h.Compact(context.Background(), "")
	fmt.Println(report.Outcome, h.Len(), errors.Is(err, convotest.ErrFake))
	// Output: failed 100 true
}

// A Recorder shows the requests to a summarizer.
func ExampleRecorder() {
	rec := &convotest.Recorder{With: convotest.Canned{Text: "They spoke about the way."}}
	h, err := convo.New(&convo.Options{Strategy: convo.Summarize{With: rec}})
	if err != nil {
		log.Fatal(err)
	}
	for range 50 {
		if _, err := h.Append(convo.User("How far is it from here to there?"), convo.Assistant("It is some way along the river.")); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := h.Compact(context.Background(), "distances"); err != nil {
		log.Fatal(err)
	}
	sum, _ := h.Snapshot().Summary()
	fmt.Println(sum.Text)
	for _, req := range rec.Requests() {
		fmt.Println(req.Focus, req.MaxTokens, req.Messages[0].Text())
	}
	// Output:
	// They spoke about the way.
	// distances 500 It is some way along the river.
}
