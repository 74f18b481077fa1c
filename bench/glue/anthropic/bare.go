package anthropic

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// bare is an agent that does nothing about the context window.
type bare struct {
	client   anthropic.Client
	messages []anthropic.MessageParam
}

func (a *bare) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, anthropic.NewUserMessage(anthropic.NewTextBlock(question)))
	for {
		answer, err := a.send(ctx, show)
		if err != nil {
			return err
		}
		a.messages = append(a.messages, answer.ToParam())
		var results []anthropic.ContentBlockParamUnion
		for _, block := range answer.Content {
			if block.Type != "tool_use" {
				continue
			}
			result, err := glue.Run(block.Name, string(block.Input))
			if err != nil {
				result = err.Error()
			}
			results = append(results, anthropic.NewToolResultBlock(block.ID, result, err != nil))
		}
		if len(results) == 0 {
			return nil
		}
		a.messages = append(a.messages, anthropic.NewUserMessage(results...))
	}
}

func (a *bare) send(ctx context.Context, show func(string)) (answer anthropic.Message, err error) {
	stream := a.client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: model, MaxTokens: maxTokens, Tools: tools,
		System: []anthropic.TextBlockParam{{Text: glue.System}}, Messages: a.messages,
	})
	defer stream.Close()
	for stream.Next() {
		event := stream.Current()
		if err := answer.Accumulate(event); err != nil {
			return answer, err
		}
		show(event.Delta.Text)
	}
	if err = stream.Err(); err == nil && answer.StopReason == "" {
		err = errors.New("the stream broke off")
	}
	return answer, err
}
