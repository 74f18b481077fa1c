package goopenai

import (
	"context"
	"errors"
	"io"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// bare is an agent that does nothing about the context window.
type bare struct {
	client   *openai.Client
	messages []openai.ChatCompletionMessage
}

func newBare(client *openai.Client) *bare {
	return &bare{client, []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleSystem, Content: glue.System}}}
}

func (a *bare) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: question})
	for {
		answer, err := a.send(ctx, show)
		if err != nil {
			return err
		}
		a.messages = append(a.messages, answer)
		for _, call := range answer.ToolCalls {
			result, err := glue.Run(call.Function.Name, call.Function.Arguments)
			if err != nil {
				result = "error: " + err.Error()
			}
			a.messages = append(a.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, Content: result, ToolCallID: call.ID})
		}
		if len(answer.ToolCalls) == 0 {
			return nil
		}
	}
}

func (a *bare) send(ctx context.Context, show func(string)) (answer openai.ChatCompletionMessage, err error) {
	stream, err := a.client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: model, Messages: a.messages, Tools: tools,
	})
	if err != nil {
		return answer, err
	}
	defer stream.Close()
	answer.Role = openai.ChatMessageRoleAssistant
	ended := false
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return answer, err
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		choice := chunk.Choices[0]
		ended = ended || choice.FinishReason != ""
		show(choice.Delta.Content)
		answer.Content += choice.Delta.Content
		for _, c := range choice.Delta.ToolCalls {
			if c.ID != "" {
				answer.ToolCalls = append(answer.ToolCalls, openai.ToolCall{ID: c.ID, Type: c.Type, Function: openai.FunctionCall{Name: c.Function.Name}})
			}
			if c.Index == nil || *c.Index >= len(answer.ToolCalls) {
				return answer, errors.New("a call without its beginning")
			}
			answer.ToolCalls[*c.Index].Function.Arguments += c.Function.Arguments
		}
	}
	if !ended {
		return answer, errors.New("the stream broke off")
	}
	return answer, nil
}
