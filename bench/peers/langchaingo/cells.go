package main

import (
	"context"
	"runtime"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func langchainMessages(n int) []llms.ChatMessage {
	list := make([]llms.ChatMessage, n)
	for i, text := range peer.Texts(n) {
		if peer.IsUser(i) {
			list[i] = llms.HumanChatMessage{Content: text}
		} else {
			list[i] = llms.AIChatMessage{Content: text}
		}
	}
	return list
}

// langchainBuffer returns langchaingo's token buffer with n messages. It counts the
// text and the name of the speaker by len/4, which is about what the others count.
func langchainBuffer(n, limit int) (*memory.ConversationTokenBuffer, *memory.ChatMessageHistory) {
	h := memory.NewChatMessageHistory(memory.WithPreviousMessages(langchainMessages(n)))
	return memory.NewConversationTokenBuffer(nil, limit, memory.WithChatHistory(h)), h
}

// langchainWeight returns the tokens that the buffer counts for n messages of
// peer.Text.
func langchainWeight(n int) (int, error) {
	s, err := llms.GetBufferString(langchainMessages(n), "Human", "AI")
	return len(s) / 4, err
}

var (
	langchainIn  = map[string]any{"input": peer.Text}
	langchainOut = map[string]any{"output": peer.Text}
)

func langchainAppend(n int) peer.Case {
	return peer.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		fresh := make([]*memory.ChatMessageHistory, k)
		for i := range fresh {
			fresh[i] = memory.NewChatMessageHistory()
		}
		ctx := context.Background()
		return func(i int) error {
			for j := range n {
				var err error
				if peer.IsUser(j) {
					err = fresh[i].AddUserMessage(ctx, peer.Text)
				} else {
					err = fresh[i].AddAIMessage(ctx, peer.Text)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

// langchainCheck saves one turn under the limit, because the check is part of
// SaveContext.
func langchainCheck(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		limit, err := langchainWeight(n + 1)
		buffer, h := langchainBuffer(n, limit)
		ctx := context.Background()
		base := langchainMessages(n)
		return func(int) error {
			if err := h.SetMessages(ctx, base[:n-2]); err != nil {
				return err
			}
			if err := buffer.SaveContext(ctx, langchainIn, langchainOut); err != nil {
				return err
			}
			list, err := h.Messages(ctx)
			if err == nil && len(list) != n {
				err = peer.ErrOver
			}
			return err
		}, err
	}}
}

func langchainStep(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		limit, err := langchainWeight(n)
		buffer, h := langchainBuffer(n, limit)
		ctx := context.Background()
		return func(int) error {
			if err := buffer.SaveContext(ctx, langchainIn, langchainOut); err != nil {
				return err
			}
			list, err := h.Messages(ctx)
			if err == nil && len(list) != n {
				err = peer.WrongSize(len(list))
			}
			return err
		}, err
	}}
}

// langchainTrim saves one turn after the limit was halved.
func langchainTrim(n int) peer.Case {
	return peer.Case{Once: n >= 10_000, Max: 10_000 / n, New: func(k int) (func(int) error, error) {
		limit, err := langchainWeight(n / 2)
		if err != nil {
			return nil, err
		}
		all := make([]*memory.ConversationTokenBuffer, k)
		for i := range all {
			all[i], _ = langchainBuffer(n-2, limit)
		}
		ctx := context.Background()
		return func(i int) error {
			if err := all[i].SaveContext(ctx, langchainIn, langchainOut); err != nil {
				return err
			}
			list, err := all[i].ChatHistory.Messages(ctx)
			if err == nil && len(list) != n/2 {
				err = peer.WrongSize(len(list))
			}
			return err
		}, nil
	}}
}

func langchainRead(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		_, h := langchainBuffer(n, 0)
		ctx := context.Background()
		return func(int) error {
			list, err := h.Messages(ctx)
			runtime.KeepAlive(list)
			return err
		}, nil
	}}
}

// langchainPrompt reads the text that langchaingo puts into its prompt.
func langchainPrompt(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		buffer, _ := langchainBuffer(n, 0)
		ctx := context.Background()
		return func(int) error {
			vars, err := buffer.LoadMemoryVariables(ctx, nil)
			runtime.KeepAlive(vars)
			return err
		}, nil
	}}
}
