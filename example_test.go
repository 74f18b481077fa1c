package convo_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
)

func Example() {
	ctx := context.Background()
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 128_000, Reserve: 16_000},
		Strategy: convo.Chain(
			convo.ClearToolResults{},
			convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
				text, err := complete(ctx, req.Prompt)
				return convo.Summary{Text: text}, err
			})},
			convo.Truncate{},
		),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	id, err := h.Append(
		convo.System("You are a travel agent."),
		convo.User("Window seats only, I am tall. Flights to Rome?"),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.Pin(id); err != nil { // stays word for word, whatever goes
		log.Fatal(err)
	}

	for done := false; !done; {
		reply, err := h.Do(ctx, send) // compacts if needed, sends, and appends the answer
		if err != nil {
			log.Fatal(err)
		}
		for _, call := range reply.OpenCalls() {
			if _, err := h.Append(convo.Result(call, search(call.Arguments))); err != nil {
				log.Fatal(err)
			}
		}
		done = len(reply.OpenCalls()) == 0
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 system: You are a travel agent.
	// 2 user: Window seats only, I am tall. Flights to Rome?
	// 3 assistant: call search({"to":"Rome"})
	// 4 tool: result of search(09:10 and 13:45)
	// 5 assistant: At 09:10 and 13:45.
}

// send stands for a call of a model.
func send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	reply := convo.Reply{Usage: convo.Usage{Input: 100 + 20*len(msgs), Output: 20}}
	if msgs[len(msgs)-1].Role == convo.RoleTool {
		reply.Messages = []convo.Message{convo.Assistant("At 09:10 and 13:45.")}
	} else {
		reply.Messages = []convo.Message{convo.Assistant("", convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`})}
	}
	return reply, nil
}

// complete stands for a call of a small model.
func complete(context.Context, string) (string, error) { return "The user looked at flights.", nil }

// search stands for a tool.
func search(string) string { return "09:10 and 13:45" }

// Without a strategy, old messages can be dropped by hand.
func Example_byHand() {
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 128_000, Reserve: 16_000},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	search := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`}
	id, err := h.Append(
		convo.System("You are a travel agent."),
		convo.User("Window seats only, I am tall. Flights to Rome?"),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.Pin(id); err != nil { // stays word for word, whatever goes
		log.Fatal(err)
	}
	if _, err := h.Append(convo.Assistant("", search)); err != nil {
		log.Fatal(err)
	}

	// What no provider would accept is refused, and nothing has changed.
	_, err = h.Append(convo.User("Hello?"))
	fmt.Println(err)

	_, err = h.Append(
		convo.Result(search, "09:10, 13:45"),
		convo.Assistant("At 09:10 and 13:45."),
		convo.User("The first one, please."),
	)
	if err != nil {
		log.Fatal(err)
	}

	// Give up the first five entries for a summary. The pinned one stays.
	dropped, err := h.SplicePrefix(h.Snapshot(), 5, "There are flights at 09:10 and 13:45.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dropped, "entries went")
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// convo: message 0: a call has no result yet (id "c1", tool "search"); append its result first, or give it up with AnswerOpenCalls
	// 3 entries went
	// 1 system: You are a travel agent.
	// 2 user: Window seats only, I am tall. Flights to Rome?
	// 6 user: The first one, please.
}
