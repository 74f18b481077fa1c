package genai

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
)

// readWithSDK reads an answer with the SDK, which has no accumulator.
func readWithSDK(ctx context.Context, url string, show func(string)) (convo.Reply, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		return convo.Reply{}, err
	}
	var r convo.Reply
	var text string
	var calls []convo.ToolCall
	var reason genai.FinishReason
	for chunk, err := range client.Models.GenerateContentStream(ctx, model, genai.Text("hello"), nil) {
		if err != nil {
			return convo.Reply{}, err
		}
		if u := chunk.UsageMetadata; u != nil {
			r.Usage = convo.Usage{Input: int(u.PromptTokenCount), CacheRead: int(u.CachedContentTokenCount), Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount)}
		}
		if len(chunk.Candidates) == 0 {
			continue
		}
		reason = chunk.Candidates[0].FinishReason
		if chunk.Candidates[0].Content == nil {
			continue
		}
		for _, part := range chunk.Candidates[0].Content.Parts {
			switch {
			case part.Thought:
			case part.FunctionCall != nil:
				args, err := json.Marshal(part.FunctionCall.Args)
				if err != nil {
					return convo.Reply{}, err
				}
				calls = append(calls, convo.ToolCall{ID: part.FunctionCall.ID, Name: part.FunctionCall.Name, Arguments: string(args)})
			default:
				show(part.Text)
				text += part.Text
			}
		}
	}
	if reason == "" {
		return convo.Reply{}, errors.New("the stream broke off")
	}
	r.Messages = []convo.Message{convo.Assistant(text, calls...)}
	return r, nil
}
