package openai

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// bare is an agent that does nothing about the context window.
type bare struct {
	client   openai.Client
	messages []openai.ChatCompletionMessageParamUnion
}

func newBare(client openai.Client) *bare {
	return &bare{client, []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(glue.System)}}
}

func (a *bare) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, openai.UserMessage(question))
	for {
		answer, err := a.send(ctx, show)
		if err != nil {
			return err
		}
		a.messages = append(a.messages, answer.ToParam())
		for _, call := range answer.ToolCalls {
			result, err := glue.Run(call.Function.Name, call.Function.Arguments)
			if err != nil {
				result = "error: " + err.Error()
			}
			a.messages = append(a.messages, openai.ToolMessage(result, call.ID))
		}
		if len(answer.ToolCalls) == 0 {
			return nil
		}
	}
}

func (a *bare) send(ctx context.Context, show func(string)) (answer openai.ChatCompletionMessage, err error) {
	stream := a.client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: model, Messages: a.messages, Tools: tools})
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			return answer, errors.New("the stream mixes answers")
		}
		if len(chunk.Choices) > 0 {
			show(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return answer, err
	}
	if len(all.Choices) == 0 || all.Choices[0].FinishReason == "" {
		return answer, errors.New("the stream broke off")
	}
	return all.Choices[0].Message, nil
}
