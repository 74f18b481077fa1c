package main

import (
	"context"
	"errors"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A talkKeeper holds the newest user message until its answer arrives, because
// SaveContext takes both at once.
type talkKeeper struct {
	buffer *memory.ConversationTokenBuffer
	user   *peer.Message // not yet in the history
}

func newTalkKeeper(job peer.Job) (peer.Keep, error) {
	return &talkKeeper{buffer: memory.NewConversationTokenBuffer(nil, job.Limit)}, nil
}

func (k *talkKeeper) Add(m peer.Message) error {
	ctx := context.Background()
	switch {
	case m.Role == "user":
		k.user = &m
		return nil
	case k.user != nil && len(m.Calls) == 0:
		in := k.user.Text
		k.user = nil
		return k.buffer.SaveContext(ctx, map[string]any{"input": in}, map[string]any{"output": m.Text})
	case k.user != nil:
		if err := k.buffer.ChatHistory.AddMessage(ctx, llms.HumanChatMessage{Content: k.user.Text}); err != nil {
			return err
		}
		k.user = nil
	}
	if m.Role == "tool" {
		return k.buffer.ChatHistory.AddMessage(ctx, llms.ToolChatMessage{ID: m.Answers, Content: m.Text})
	}
	said := llms.AIChatMessage{Content: m.Text}
	for _, c := range m.Calls {
		said.ToolCalls = append(said.ToolCalls, llms.ToolCall{ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: c.Args}})
	}
	return k.buffer.ChatHistory.AddMessage(ctx, said)
}

func (k *talkKeeper) Request() (peer.Request, error) {
	msgs, err := k.buffer.ChatHistory.Messages(context.Background())
	var r peer.Request
	for _, m := range msgs {
		switch m := m.(type) {
		case llms.HumanChatMessage:
			r.View = append(r.View, peer.Message{N: peer.Made, Role: "user", Text: m.Content})
		case llms.ToolChatMessage:
			r.View = append(r.View, peer.Message{N: peer.Made, Role: "tool", Text: m.Content, Answers: m.ID})
		case llms.AIChatMessage:
			said := peer.Message{N: peer.Made, Role: "assistant", Text: m.Content}
			for _, c := range m.ToolCalls {
				said.Calls = append(said.Calls, peer.Call{ID: c.ID, Name: c.FunctionCall.Name, Args: c.FunctionCall.Arguments})
			}
			r.View = append(r.View, said)
		}
	}
	if k.user != nil {
		r.View = append(r.View, *k.user)
	}
	return r, err
}

// A bufferKeeper keeps questions and answers in a ConversationTokenBuffer. The
// buffer counts neither the system message nor the question that is being asked,
// so its limit is lower by their tokens.
type bufferKeeper struct {
	buffer *memory.ConversationTokenBuffer
	system []peer.Message
	saved  []peer.Message
	asked  []peer.Message
}

func newBufferKeeper(job peer.Job) (peer.Keep, error) {
	longest, system, began := 0, 0, false
	for _, m := range job.Messages {
		began = began || m.Role != "system"
		if !began {
			system += job.Measure.Weigh(m)
		}
		if m.Role == "user" {
			longest = max(longest, job.Measure.Weigh(m))
		}
	}
	return &bufferKeeper{buffer: memory.NewConversationTokenBuffer(nil, job.Limit-system-longest)}, nil
}

func (k *bufferKeeper) Add(m peer.Message) error {
	switch m.Role {
	case "system":
		k.system = append(k.system, m)
	case "user":
		k.asked = append(k.asked, m)
	case "assistant":
		if len(k.asked) != 1 {
			return errors.New("an answer must follow exactly one question")
		}
		question := k.asked[0]
		k.asked = nil
		k.saved = append(k.saved, question, m)
		return k.buffer.SaveContext(context.Background(), map[string]any{"input": question.Text}, map[string]any{"output": m.Text})
	}
	return nil
}

func (k *bufferKeeper) Request() (peer.Request, error) {
	kept, err := k.buffer.ChatHistory.Messages(context.Background())
	if err != nil {
		return peer.Request{}, err
	}
	view := append([]peer.Message(nil), k.system...)
	view = append(view, k.saved[len(k.saved)-len(kept):]...) // the buffer drops the oldest
	return peer.Request{View: append(view, k.asked...)}, nil
}
