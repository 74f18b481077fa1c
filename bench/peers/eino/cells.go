package main

import (
	"context"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/adk/middlewares/reduction"
	"github.com/cloudwego/eino/adk/middlewares/summarization"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// cannedModel answers every request with one summary.
type cannedModel struct{ calls int }

func (m *cannedModel) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	m.calls++
	return schema.AssistantMessage(peer.Text, nil), nil
}

func (m *cannedModel) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	msg, err := m.Generate(ctx, in, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{msg}), err
}

// einoSummaries returns eino's summarization with a model that answers at once. By default,
// it keeps up to 30,000 tokens of user messages besides the summary; with alone, nothing.
func einoSummaries(limit int, alone bool) (adk.ChatModelAgentMiddleware, *cannedModel, error) {
	m := new(cannedModel)
	config := &summarization.Config{Model: m, Trigger: &summarization.TriggerCondition{ContextTokens: limit}}
	if alone {
		config.Finalize = func(_ context.Context, _ []*schema.Message, summary *schema.Message) ([]*schema.Message, error) {
			return []*schema.Message{schema.UserMessage(summary.Content)}, nil
		}
	}
	mw, err := summarization.New(context.Background(), config)
	return mw, m, err
}

// einoClearing returns eino's clearing of tool results, counting by len/4.
func einoClearing(limit int) (adk.ChatModelAgentMiddleware, error) {
	return reduction.New(context.Background(), &reduction.Config{
		SkipTruncation:    true,
		MaxTokensForClear: int64(limit),
		TokenCounter: func(_ context.Context, list []*schema.Message, _ []*schema.ToolInfo) (int64, error) {
			n := 0
			for _, m := range list {
				n += einoWeight(m)
			}
			return int64(n), nil
		},
	})
}

func einoWeight(m *schema.Message) int {
	n := peer.LenFour(m.Content)
	for _, c := range m.ToolCalls {
		n += peer.LenFour(c.ID) + peer.LenFour(c.Function.Name) + peer.LenFour(c.Function.Arguments)
	}
	return n + peer.LenFour(m.ToolCallID)
}

// einoMessages returns n messages. If usage is set, the last answer carries the
// provider's usage.
func einoMessages(n int, usage bool) []*schema.Message {
	list := make([]*schema.Message, n)
	for i, text := range peer.Texts(n) {
		if peer.IsUser(i) {
			list[i] = schema.UserMessage(text)
			continue
		}
		list[i] = schema.AssistantMessage(text, nil)
		if usage && i >= n-2 {
			list[i].ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{TotalTokens: (i + 1) * peer.PerMessage}}
		}
	}
	return list
}

func einoAppend(n int) peer.Case {
	user, reply := schema.UserMessage(peer.Text), schema.AssistantMessage(peer.Text, nil)
	return peer.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		fresh := make([]adk.ChatModelAgentState, k)
		return func(i int) error {
			for j := range n {
				m := user
				if !peer.IsUser(j) {
					m = reply
				}
				fresh[i].Messages = append(fresh[i].Messages, m)
			}
			return nil
		}, nil
	}}
}

func einoCheck(n int, usage bool) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		mw, m, err := einoSummaries((n+1)*peer.PerMessage, false)
		return einoPass(mw, einoMessages(n, usage), func() bool { return m.calls > 0 }), err
	}}
}

func einoCheckClearing(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		mw, err := einoClearing((n + 1) * peer.PerMessage)
		return einoPass(mw, einoMessages(n, false), func() bool { return false }), err
	}}
}

func einoPass(mw adk.ChatModelAgentMiddleware, list []*schema.Message, over func() bool) func(int) error {
	ctx := context.Background()
	state := &adk.ChatModelAgentState{Messages: list}
	return func(int) error {
		_, after, err := mw.BeforeModelRewriteState(ctx, state, nil)
		if err == nil && (over() || len(after.Messages) != len(list)) {
			err = peer.ErrOver
		}
		return err
	}
}

// einoStep does one turn: the user's message, the middleware, the answer.
func einoStep(n int, alone bool) peer.Case {
	return peer.Case{Step: max(n/2, 1), New: func(k int) (func(int) error, error) {
		mw, m, err := einoSummaries(n*peer.PerMessage, alone)
		ctx := context.Background()
		state := &adk.ChatModelAgentState{Messages: einoMessages(n, false)}
		next := peer.Next(n)
		return func(i int) error {
			state.Messages = append(state.Messages, schema.UserMessage(next(2*i)))
			_, after, err := mw.BeforeModelRewriteState(ctx, state, nil)
			if err != nil {
				return err
			}
			state = after
			state.Messages = append(state.Messages, schema.AssistantMessage(next(2*i+1), nil))
			if i == k-1 && k > n && m.calls == 0 {
				return peer.ErrIdle
			}
			return nil
		}, err
	}}
}

// einoTrim replaces everything with a summary and user messages, because eino cannot keep a half.
func einoTrim(n int, alone bool) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		mw, m, err := einoSummaries(n*peer.PerMessage/2, alone)
		ctx := context.Background()
		state := &adk.ChatModelAgentState{Messages: einoMessages(n, false)}
		return func(int) error {
			before := m.calls
			_, after, err := mw.BeforeModelRewriteState(ctx, state, nil)
			if err == nil && (m.calls != before+1 || len(after.Messages) != 1) {
				err = peer.ErrIdle
			}
			return err
		}, err
	}}
}
