package agent_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// ask is the agent to be tested.
func ask(ctx context.Context, send convo.Send, question string) (string, error) {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 8_000}})
	if err != nil {
		return "", err
	}
	if _, err := h.Append(convo.User(question)); err != nil {
		return "", err
	}
	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: []convo.Handler{{
		Tool: convo.Tool{Name: "weather", Description: "The weather in a city"},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("rain")}, nil
		},
	}}})
	return reply.Text(), err
}

func TestAsk(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "weather", Arguments: `{"city":"Bern"}`}
	m := convotest.NewModel(t, // it fails t where a request is not what a step expects
		convotest.Step{Sees: []string{"user: Do I need an umbrella in Bern?"}, Calls: []convo.ToolCall{call}},
		convotest.Step{Sees: []string{"tool: rain"}, Says: "Yes."},
	)
	answer, err := ask(t.Context(), m.Send, "Do I need an umbrella in Bern?")
	require.NoError(t, err)
	assert.Equal(t, "Yes.", answer)
}

// Your own strategy, summarizer and store are checked in one line each.
func TestStrategy(t *testing.T) {
	convotest.TestStrategy(t, convo.SlidingWindow{KeepLast: 20})
}
