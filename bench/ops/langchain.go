package ops

import (
	"context"
	"io"
	"log"
	"runtime"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// quietLog turns the process's log off: langchaingo writes a warning to it at
// every count. What it returns turns it on again.
func quietLog() (restore func()) {
	old := log.Writer()
	log.SetOutput(io.Discard)
	return func() { log.SetOutput(old) }
}

func langchainMessages(n int) []llms.ChatMessage {
	list := make([]llms.ChatMessage, n)
	for i := range list {
		if isUser(i) {
			list[i] = llms.HumanChatMessage{Content: text}
		} else {
			list[i] = llms.AIChatMessage{Content: text}
		}
	}
	return list
}

// langchainBuffer is its token buffer over n messages. A message weighs about
// as with the others: its text and the name of the speaker, by four.
func langchainBuffer(n, limit int) (*memory.ConversationTokenBuffer, *memory.ChatMessageHistory) {
	h := memory.NewChatMessageHistory(memory.WithPreviousMessages(langchainMessages(n)))
	return memory.NewConversationTokenBuffer(nil, limit, memory.WithChatHistory(h)), h
}

// langchainWeight is what n messages of text weigh there.
func langchainWeight(n int) (int, error) {
	s, err := llms.GetBufferString(langchainMessages(n), "Human", "AI")
	return len(s) / 4, err
}

var (
	langchainIn  = map[string]any{"input": text}
	langchainOut = map[string]any{"output": text}
)

func langchainAppend(n int) measure.Case {
	return measure.Case{Units: n, Max: 1 + 1_000_000/n, New: func(k int) (func(int) error, error) {
		fresh := make([]*memory.ChatMessageHistory, k)
		for i := range fresh {
			fresh[i] = memory.NewChatMessageHistory()
		}
		ctx := context.Background()
		return func(i int) error {
			for j := range n {
				var err error
				if isUser(j) {
					err = fresh[i].AddUserMessage(ctx, text)
				} else {
					err = fresh[i].AddAIMessage(ctx, text)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, nil
	}}
}

// langchainCheck saves one turn under the limit: the check has no call of its
// own.
func langchainCheck(n int) measure.Case {
	return measure.Case{New: func(int) (func(int) error, error) {
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
				err = errOver
			}
			return err
		}, err
	}}
}

func langchainStep(n int) measure.Case {
	return measure.Case{New: func(int) (func(int) error, error) {
		limit, err := langchainWeight(n)
		buffer, h := langchainBuffer(n, limit)
		ctx := context.Background()
		return func(int) error {
			if err := buffer.SaveContext(ctx, langchainIn, langchainOut); err != nil {
				return err
			}
			list, err := h.Messages(ctx)
			if err == nil && len(list) != n {
				err = wrongSize(len(list))
			}
			return err
		}, err
	}}
}

// langchainTrim saves one turn when the limit was halved meanwhile.
func langchainTrim(n int) measure.Case {
	return measure.Case{Once: n >= 10_000, Max: 10_000 / n, New: func(k int) (func(int) error, error) {
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
				err = wrongSize(len(list))
			}
			return err
		}, nil
	}}
}

func langchainRead(n int) measure.Case {
	return measure.Case{New: func(int) (func(int) error, error) {
		_, h := langchainBuffer(n, 0)
		ctx := context.Background()
		return func(int) error {
			list, err := h.Messages(ctx)
			runtime.KeepAlive(list)
			return err
		}, nil
	}}
}

// langchainPrompt reads the text that goes into its prompt.
func langchainPrompt(n int) measure.Case {
	return measure.Case{New: func(int) (func(int) error, error) {
		buffer, _ := langchainBuffer(n, 0)
		ctx := context.Background()
		return func(int) error {
			vars, err := buffer.LoadMemoryVariables(ctx, nil)
			runtime.KeepAlive(vars)
			return err
		}, nil
	}}
}
