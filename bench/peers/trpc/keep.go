package main

import (
	"context"
	"strconv"

	"trpc.group/trpc-go/trpc-agent-go/model"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// tailored returns a keeper that applies a strategy to the whole conversation
// before each request, as the model layer of trpc-agent-go does. If the strategy
// returns an overflow error, the request counts as reported too long.
func tailored(name string, strategy func(model.TokenCounter) model.TailoringStrategy) peer.Keeper {
	return peer.Keeper{Name: name, New: func(job peer.Job) (peer.Keep, error) {
		return &keeper{strategy: strategy(weigher(job.Measure)), limit: job.Limit}, nil
	}}
}

type keeper struct {
	strategy model.TailoringStrategy
	limit    int
	list     []model.Message
}

// Add stores the number of the message in ReasoningSignature, which nothing else
// uses here.
func (k *keeper) Add(m peer.Message) error {
	said := model.Message{Role: model.Role(m.Role), Content: m.Text, ToolID: m.Answers, ToolName: m.Tool, ReasoningSignature: strconv.Itoa(m.N)}
	for _, c := range m.Calls {
		said.ToolCalls = append(said.ToolCalls, model.ToolCall{ID: c.ID, Type: "function", Function: model.FunctionDefinitionParam{Name: c.Name, Arguments: []byte(c.Args)}})
	}
	k.list = append(k.list, said)
	return nil
}

func (k *keeper) Request() (peer.Request, error) {
	out, err := k.strategy.TailorMessages(context.Background(), append([]model.Message(nil), k.list...), k.limit)
	r := peer.Request{TooLong: err != nil}
	for _, m := range out {
		r.View = append(r.View, messageOf(m))
	}
	return r, nil
}

func messageOf(t model.Message) peer.Message {
	m := peer.Message{N: peer.Made, Role: string(t.Role), Text: t.Content, Answers: t.ToolID, Tool: t.ToolName}
	if n, err := strconv.Atoi(t.ReasoningSignature); err == nil {
		m.N = n
	}
	for _, c := range t.ToolCalls {
		m.Calls = append(m.Calls, peer.Call{ID: c.ID, Name: c.Function.Name, Args: string(c.Function.Arguments)})
	}
	return m
}

// A weigher counts tokens as the job says.
type weigher peer.Measure

func (w weigher) CountTokens(_ context.Context, m model.Message) (int, error) {
	return peer.Measure(w).Weigh(messageOf(m)), nil
}

func (w weigher) CountTokensRange(ctx context.Context, list []model.Message, start, end int) (int, error) {
	n := 0
	for _, m := range list[max(start, 0):min(end, len(list))] {
		one, _ := w.CountTokens(ctx, m)
		n += one
	}
	return n, nil
}
