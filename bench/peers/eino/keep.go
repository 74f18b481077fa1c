package main

import (
	"context"
	"errors"
	"strings"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/reduction"
	"github.com/cloudwego/eino/adk/middlewares/summarization"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A keeper holds an agent's state, on which middlewares run before each request.
type keeper struct {
	before []adk.ChatModelAgentMiddleware
	state  adk.ChatModelAgentState
	apart  []peer.Apart
}

func newSummaryKeeper(job peer.Job) (peer.Keep, error) {
	mw, _, err := einoSummaries(job.Limit, true)
	return &keeper{before: []adk.ChatModelAgentMiddleware{mw}}, err
}

func newClearKeeper(job peer.Job) (peer.Keep, error) {
	mw, err := einoClearing(job.Limit)
	return &keeper{before: []adk.ChatModelAgentMiddleware{mw}}, err
}

// newCostKeeper returns a keeper whose middlewares act at the limit, count as the
// job says, and have their defaults otherwise. eino's request for a summary has a
// system message of its own, so it cannot use the cache and is recorded in
// Apart.
func newCostKeeper(job peer.Job, reduce bool) (peer.Keep, error) {
	ctx := context.Background()
	k := new(keeper)
	count := func(list []*schema.Message) int {
		n := 0
		for _, m := range list {
			n += job.Measure.Weigh(messageOf(m))
		}
		return n
	}
	if reduce {
		mw, err := reduction.New(ctx, &reduction.Config{
			SkipTruncation:    true,
			MaxTokensForClear: int64(job.Limit),
			TokenCounter: func(_ context.Context, list []*schema.Message, _ []*schema.ToolInfo) (int64, error) {
				return int64(count(list)), nil
			},
		})
		if err != nil {
			return nil, err
		}
		k.before = append(k.before, mw)
	}
	mw, err := summarization.New(ctx, &summarization.Config{
		Model: summarizer(func(in []*schema.Message) string {
			k.apart = append(k.apart, peer.Apart{Input: count(in), Output: job.Measure.Weigh(peer.Message{Role: "assistant", Text: job.Summary})})
			return job.Summary
		}),
		Trigger: &summarization.TriggerCondition{ContextTokens: job.Limit},
		TokenCounter: func(_ context.Context, in *summarization.TokenCounterInput) (int, error) {
			return count(in.Messages), nil
		},
	})
	k.before = append(k.before, mw)
	return k, err
}

// summarizer is a model that answers at once.
type summarizer func(in []*schema.Message) string

func (f summarizer) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	return schema.AssistantMessage(f(in), nil), nil
}

func (summarizer) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return nil, errors.New("streaming is not supported")
}

// number is the key of a message's number in Extra, which eino keeps.
const number = "number"

func (k *keeper) Add(m peer.Message) error {
	said := &schema.Message{Role: schema.RoleType(m.Role), Content: m.Text, ToolCallID: m.Answers, ToolName: m.Tool, Extra: map[string]any{number: m.N}}
	for _, c := range m.Calls {
		said.ToolCalls = append(said.ToolCalls, schema.ToolCall{ID: c.ID, Type: "function", Function: schema.FunctionCall{Name: c.Name, Arguments: c.Args}})
	}
	k.state.Messages = append(k.state.Messages, said)
	return nil
}

func (k *keeper) Request() (peer.Request, error) {
	ctx := context.Background()
	k.apart = nil
	for _, mw := range k.before {
		_, state, err := mw.BeforeModelRewriteState(ctx, &k.state, &adk.ModelContext{})
		if err != nil {
			return peer.Request{}, err
		}
		k.state = *state
	}
	r := peer.Request{Apart: k.apart}
	for _, m := range k.state.Messages {
		r.View = append(r.View, messageOf(m))
	}
	return r, nil
}

func messageOf(said *schema.Message) peer.Message {
	m := peer.Message{N: peer.Made, Role: string(said.Role), Text: said.Content, Answers: said.ToolCallID, Tool: said.ToolName}
	if n, ok := said.Extra[number].(int); ok {
		m.N = n
	}
	for _, c := range said.ToolCalls {
		m.Calls = append(m.Calls, peer.Call{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
	}
	text := []string{m.Text}
	for _, p := range said.UserInputMultiContent {
		text = append(text, p.Text)
	}
	m.Text = strings.Join(text, "")
	return m
}
