package provider_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// An agent runs against the rules in every format, with parallel calls, for as many turns as it
// likes.
func TestRules(t *testing.T) {
	model := provider.Rules(
		provider.Rule{If: "sunny in Rome", Then: provider.Answer{Blocks: []provider.Block{provider.Text("Go to Rome.")}}},
		provider.Rule{If: "Where is it sunny?", Then: provider.Answer{Blocks: []provider.Block{
			provider.Thinking("I ask for both."),
			provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`}, provider.Call{Name: "weather", Arguments: `{"city":"Oslo"}`},
		}}},
	)
	for _, tt := range formatTests() {
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{Window: 6000, Answer: model})
			c := serve(t, s, tt)
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 6000, Reserve: 500}})
			tools := []convo.Handler{{
				Tool: convo.Tool{Name: "weather", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`},
				Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
					if strings.Contains(call.Arguments, "Oslo") {
						return []convo.Part{convo.Text("rain in Oslo")}, nil
					}
					return []convo.Part{convo.Text("sunny in Rome " + strings.Repeat("and warm ", 20))}, nil
				},
			}}
			turns := long.Or(8, 30)
			for range turns {
				mustAppend(t, h, convo.User("Where is it sunny?"))
				reply, err := h.Run(t.Context(), c.send, convo.RunOptions{Tools: tools, Parallel: 2})
				require.NoError(t, err)
				require.Equal(t, "Go to Rome.", reply.Text())
			}
			mustAppend(t, h, convo.User("Thanks."))
			reply, err := h.Do(t.Context(), c.send)
			require.NoError(t, err)
			assert.Equal(t, "ok", reply.Text())
			assert.Empty(t, s.Refused())
			assert.Len(t, s.Requests(), 2*turns+1)
		})
	}
}

func TestRules_OneText(t *testing.T) {
	s := provider.New(provider.Options{Answer: provider.Rules(provider.Rule{If: "hello", Then: provider.Answer{Blocks: []provider.Block{provider.Text("hi")}}})})
	_, got := post(t, s, "/v1/responses", `{"model":"gpt-5.5","input":"hello"}`)
	assert.Contains(t, got, `"hi"`)
}
