package openai

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/seed-c1b73e60/convo"
)

// readWithSDK reads an answer with the accumulator of the SDK.
func readWithSDK(ctx context.Context, url string, show func(string)) (convo.Reply, error) {
	client := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: model})
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			return convo.Reply{}, errors.New("the stream mixes answers")
		}
		if len(chunk.Choices) > 0 {
			show(chunk.Choices[0].Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return convo.Reply{}, err
	}
	if len(all.Choices) == 0 || all.Choices[0].FinishReason == "" {
		return convo.Reply{}, errors.New("the stream broke off")
	}
	answer := convo.Assistant(all.Choices[0].Message.Content)
	for _, c := range all.Choices[0].Message.ToolCalls {
		answer.Parts = append(answer.Parts, convo.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return convo.Reply{
		Messages: []convo.Message{answer},
		Usage: convo.Usage{
			Input: int(all.Usage.PromptTokens), Output: int(all.Usage.CompletionTokens),
			CacheRead: int(all.Usage.PromptTokensDetails.CachedTokens),
		},
	}, nil
}
