package anthropic

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/seed-c1b73e60/convo"
)

// readWithSDK reads an answer with the accumulator of the SDK.
func readWithSDK(ctx context.Context, url string, show func(string)) (convo.Reply, error) {
	client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: model, MaxTokens: maxTokens})
	defer stream.Close()
	var all anthropic.Message
	for stream.Next() {
		event := stream.Current()
		if err := all.Accumulate(event); err != nil {
			return convo.Reply{}, err
		}
		show(event.Delta.Text)
	}
	if err := stream.Err(); err != nil {
		return convo.Reply{}, err
	}
	if all.StopReason == "" {
		return convo.Reply{}, errors.New("the stream broke off")
	}
	answer := convo.Message{Role: convo.RoleAssistant}
	for _, block := range all.Content {
		switch block.Type {
		case "text":
			answer.Parts = append(answer.Parts, convo.Text(block.Text))
		case "tool_use":
			answer.Parts = append(answer.Parts, convo.ToolCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)})
		}
	}
	u := all.Usage
	return convo.Reply{
		Messages: []convo.Message{answer},
		Usage: convo.Usage{
			Input:     int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
			CacheRead: int(u.CacheReadInputTokens), CacheWrite: int(u.CacheCreationInputTokens), Output: int(u.OutputTokens),
		},
	}, nil
}
