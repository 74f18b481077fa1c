package openai

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// byHand is an agent that keeps the conversation inside the context window by
// dropping the oldest turns.
type byHand struct {
	client   openai.Client
	messages []openai.ChatCompletionMessageParamUnion
	perByte  float64 // tokens, as the last usage tells
}

func newByHand(client openai.Client) *byHand {
	return &byHand{client, []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(glue.System)}, 0.3}
}

func (a *byHand) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, openai.UserMessage(question))
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
		next := slices.IndexFunc(a.messages[2:], func(m openai.ChatCompletionMessageParamUnion) bool { return m.OfUser != nil })
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
	var e *openai.Error
	return errors.As(err, &e) && (e.Code == "context_length_exceeded" || strings.Contains(e.Message, "maximum context length"))
}

func (a *byHand) send(ctx context.Context, show func(string)) (answer openai.ChatCompletionMessage, err error) {
	stream := a.client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: model, Messages: a.messages, Tools: tools,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
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
	if all.Usage.PromptTokens > 0 {
		a.perByte = float64(all.Usage.PromptTokens) / float64(a.size())
	}
	return all.Choices[0].Message, nil
}
