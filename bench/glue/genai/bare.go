package genai

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// bare is an agent that does nothing about the context window.
type bare struct {
	client   *genai.Client
	contents []*genai.Content
}

func (a *bare) Ask(ctx context.Context, question string, show func(string)) error {
	a.contents = append(a.contents, genai.NewContentFromText(question, genai.RoleUser))
	for {
		answer, err := a.send(ctx, show)
		if err != nil {
			return err
		}
		a.contents = append(a.contents, answer)
		var results []*genai.Part
		for _, part := range answer.Parts {
			call := part.FunctionCall
			if call == nil {
				continue
			}
			args, err := json.Marshal(call.Args)
			if err != nil {
				return err
			}
			result := genai.NewPartFromFunctionResponse(call.Name, nil)
			result.FunctionResponse.ID = call.ID
			if text, err := glue.Run(call.Name, string(args)); err != nil {
				result.FunctionResponse.Response = map[string]any{"error": err.Error()}
			} else {
				result.FunctionResponse.Response = map[string]any{"output": text}
			}
			results = append(results, result)
		}
		if len(results) == 0 {
			return nil
		}
		a.contents = append(a.contents, genai.NewContentFromParts(results, genai.RoleUser))
	}
}

func (a *bare) send(ctx context.Context, show func(string)) (*genai.Content, error) {
	config := &genai.GenerateContentConfig{Tools: tools, SystemInstruction: genai.NewContentFromText(glue.System, genai.RoleUser)}
	answer := &genai.Content{Role: genai.RoleModel}
	var reason genai.FinishReason
	for chunk, err := range a.client.Models.GenerateContentStream(ctx, model, a.contents, config) {
		if err != nil {
			return nil, err
		}
		if len(chunk.Candidates) == 0 {
			continue
		}
		reason = chunk.Candidates[0].FinishReason
		if content := chunk.Candidates[0].Content; content != nil {
			for _, part := range content.Parts {
				if part.Text == "" && part.FunctionCall == nil {
					continue // Gemini sends empty parts, and refuses them
				}
				if !part.Thought {
					show(part.Text)
				}
				answer.Parts = append(answer.Parts, part)
			}
		}
	}
	if reason == "" {
		return nil, errors.New("the stream broke off")
	}
	return answer, nil
}
