package recipes_test

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// handoff returns a History that begins with a summary of h, and with what is pinned in h.
func handoff(ctx context.Context, h *convo.History, with convo.Summarizer, question string) (*convo.History, error) {
	summary, err := h.Handoff(ctx, with, "what the next agent needs")
	if err != nil {
		return nil, err
	}
	next, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}, Roles: convo.Relaxed()})
	if err != nil {
		return nil, err
	}
	if _, err := next.Apply(next.Snapshot(), convo.Edit{Summary: &summary}); err != nil {
		return nil, err
	}
	s := h.Snapshot()
	for _, id := range s.Pinned() {
		e, _ := s.Find(id)
		if id, err = next.Append(e.Message); err != nil {
			return nil, err
		}
		if err := next.Pin(id); err != nil {
			return nil, err
		}
	}
	_, err = next.Append(convo.User(question))
	return next, err
}

func Example_handoff() {
	ctx := context.Background()
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	check(err)
	rule, err := h.Append(convo.User("Never change the exported API."))
	check(err)
	check(h.Pin(rule))
	_, err = h.Append(convo.Assistant("I will not."), convo.User("Which test fails?"), convo.Assistant("TestParse fails."))
	check(err)

	writer := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		return convo.Summary{Text: "TestParse fails."}, nil // of a model
	})
	next, err := handoff(ctx, h, writer, "Repair the test.")
	check(err)
	defer next.Close()
	_, err = next.Run(ctx, script(convo.Assistant("It passes.")), convo.RunOptions{})
	check(err)
	sum, _ := next.Snapshot().Summary()
	fmt.Println(sum)
	for _, e := range next.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// summary(TestParse fails.)
	// 1 user: Never change the exported API.
	// 2 user: Repair the test.
	// 3 assistant: It passes.
}
