package goopenai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// byHand is an agent that keeps the conversation inside the context window by
// dropping the oldest turns.
type byHand struct {
	client   *openai.Client
	messages []openai.ChatCompletionMessage
	perByte  float64 // tokens, as the last usage tells
}

func newByHand(client *openai.Client) *byHand {
	return &byHand{client, []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleSystem, Content: glue.System}}, 0.3}
}

func (a *byHand) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: question})
	for {
		if a.tokens() > glue.Window-glue.Reserve {
			a.shrink((glue.Window - glue.Reserve) / 2)
		}
		answer, err := a.send(ctx, show)
		if isTooLong(err) && a.shrink(a.tokens()/2) {
			answer, err = a.send(ctx, show)
		}
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

// tokens estimates the size of the next request.
func (a *byHand) tokens() int { return int(float64(a.size()) * a.perByte) }

func (a *byHand) size() int {
	data, _ := json.Marshal([]any{a.messages, tools})
	return len(data)
}

// shrink drops the oldest turns until the request has at most this many tokens, and
// reports whether it dropped any. The system message and the newest turn stay.
func (a *byHand) shrink(tokens int) (dropped bool) {
	for a.tokens() > tokens {
		next := slices.IndexFunc(a.messages[2:], func(m openai.ChatCompletionMessage) bool { return m.Role == openai.ChatMessageRoleUser })
		if next < 0 {
			break
		}
		a.messages = slices.Delete(a.messages, 1, 2+next)
		dropped = true
	}
	return dropped
}

// isTooLong reports whether the provider found the prompt too long.
func isTooLong(err error) bool {
	var e *openai.APIError
	return errors.As(err, &e) && e.Code == "context_length_exceeded"
}

func (a *byHand) send(ctx context.Context, show func(string)) (answer openai.ChatCompletionMessage, err error) {
	stream, err := a.client.CreateChatCompletionStream(ctx, openai.ChatCompletionRequest{
		Model: model, Messages: a.messages, Tools: tools,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
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
		if u := chunk.Usage; u != nil && u.PromptTokens > 0 {
			a.perByte = float64(u.PromptTokens) / float64(a.size())
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
