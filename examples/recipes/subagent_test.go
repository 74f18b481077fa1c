package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
)

// subagent returns a tool that answers each call with a History of its own. Of all that the
// subagent does, the agent gets the last answer.
func subagent(send convo.Send, tools ...convo.Handler) convo.Handler {
	return convo.Handler{
		Tool: convo.Tool{
			Name: "research", Description: "Finds an answer in the files.",
			Schema: `{"type":"object","properties":{"question":{"type":"string"}},"required":["question"]}`,
		},
		Run: func(ctx context.Context, call convo.ToolCall) ([]convo.Part, error) {
			var args struct{ Question string }
			if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
				return nil, err // the model reads it, and tries again
			}
			h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
			if err != nil {
				return nil, err
			}
			defer h.Close()
			if _, err := h.Append(convo.User(args.Question)); err != nil {
				return nil, err
			}
			reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools, MaxRequests: 20})
			if errors.Is(err, convo.ErrMaxRequests) {
				return nil, errors.New("no answer was found in 20 steps; ask for a part of it")
			}
			if err != nil {
				return nil, err
			}
			return []convo.Part{convo.Text(reply.Text())}, nil
		},
	}
}

func Example_subagent() {
	list := convo.Handler{Tool: convo.Tool{Name: "list"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{convo.Text("a.go b.go c.md")}, nil
	}}
	small := script( // two models, or one: each History has its own requests
		convo.Assistant("", convo.ToolCall{Name: "list", Arguments: `{}`}),
		convo.Assistant("There are two."),
	)
	large := script(
		convo.Assistant("", convo.ToolCall{Name: "research", Arguments: `{"question":"How many Go files are there?"}`}),
		convo.Assistant("You have two Go files."),
	)

	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	check(err)
	_, err = h.Append(convo.User("Count my Go files."))
	check(err)
	_, err = h.Run(context.Background(), large, convo.RunOptions{Tools: []convo.Handler{subagent(small, list)}, Parallel: 4})
	check(err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: Count my Go files.
	// 2 assistant: call research({"question":"How many Go files are there?"})
	// 3 tool: result of research(There are two.)
	// 4 assistant: You have two Go files.
}

// If the subagent gives up, the agent reads what to do.
func TestSubagent_GivesUp(t *testing.T) {
	small := func(context.Context, *convo.Snapshot) (convo.Reply, error) { // calls a tool again and again
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", convo.ToolCall{Name: "list", Arguments: `{}`})}}, nil
	}
	_, err := subagent(small).Run(t.Context(), convo.ToolCall{Arguments: `{"question":"Which file is the best?"}`})
	assert.EqualError(t, err, "no answer was found in 20 steps; ask for a part of it")
}

// script stands for a model, which gives these answers.
func script(answers ...convo.Message) convo.Send {
	return func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		answer := answers[0]
		answers = answers[1:]
		return convo.Reply{Messages: []convo.Message{answer}}, nil
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
