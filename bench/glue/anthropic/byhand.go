package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// byHand is an agent that keeps the conversation inside the context window by
// dropping the oldest turns.
type byHand struct {
	client   anthropic.Client
	messages []anthropic.MessageParam
	perByte  float64 // tokens, as the last usage tells
}

func newByHand(client anthropic.Client) *byHand { return &byHand{client: client, perByte: 0.3} }

func (a *byHand) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, anthropic.NewUserMessage(anthropic.NewTextBlock(question)))
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

// tokens estimates the size of the next request.
func (a *byHand) tokens() int { return int(float64(a.size()) * a.perByte) }

func (a *byHand) size() int {
	data, _ := json.Marshal([]any{a.messages, tools})
	return len(data)
}

// shrink drops the oldest turns until the request has at most this many tokens, and
// reports whether it dropped any. The newest turn stays.
func (a *byHand) shrink(tokens int) (dropped bool) {
	for a.tokens() > tokens {
		next := slices.IndexFunc(a.messages[1:], func(m anthropic.MessageParam) bool {
			return m.OfUser != nil && m.OfUser.Content[0].OfToolResult == nil
		})
		if next < 0 {
			break
		}
		a.messages = slices.Delete(a.messages, 0, 1+next)
		dropped = true
	}
	return dropped
}

// isTooLong reports whether the provider found the prompt too long.
func isTooLong(err error) bool {
	var e *anthropic.Error
	return errors.As(err, &e) && (e.StatusCode == 413 || strings.Contains(e.RawJSON(), "prompt is too long"))
}

func (a *byHand) send(ctx context.Context, show func(string)) (answer anthropic.Message, err error) {
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
	if u := answer.Usage; err == nil && u.InputTokens > 0 {
		a.perByte = float64(u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens) / float64(a.size())
	}
	return answer, err
}
