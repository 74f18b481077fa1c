package genai

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// byHand is an agent that keeps the conversation inside the context window by
// dropping the oldest turns.
type byHand struct {
	client   *genai.Client
	contents []*genai.Content
	perByte  float64 // tokens, as the last usage tells
}

func newByHand(client *genai.Client) *byHand { return &byHand{client: client, perByte: 0.3} }

func (a *byHand) Ask(ctx context.Context, question string, show func(string)) error {
	a.contents = append(a.contents, genai.NewContentFromText(question, genai.RoleUser))
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

// tokens estimates the size of the next request.
func (a *byHand) tokens() int { return int(float64(a.size()) * a.perByte) }

func (a *byHand) size() int {
	data, _ := json.Marshal([]any{a.contents, tools})
	return len(data)
}

// shrink drops the oldest turns until the request has at most this many tokens, and
// reports whether it dropped any. The newest turn stays.
func (a *byHand) shrink(tokens int) (dropped bool) {
	for a.tokens() > tokens {
		next := slices.IndexFunc(a.contents[1:], func(c *genai.Content) bool {
			return c.Role == genai.RoleUser && c.Parts[0].FunctionResponse == nil
		})
		if next < 0 {
			break
		}
		a.contents = slices.Delete(a.contents, 0, 1+next)
		dropped = true
	}
	return dropped
}

// isTooLong reports whether the provider found the prompt too long.
func isTooLong(err error) bool {
	var e genai.APIError
	return errors.As(err, &e) && strings.Contains(e.Message, "input token count") && strings.Contains(e.Message, "exceeds the maximum")
}

func (a *byHand) send(ctx context.Context, show func(string)) (*genai.Content, error) {
	config := &genai.GenerateContentConfig{Tools: tools, SystemInstruction: genai.NewContentFromText(glue.System, genai.RoleUser)}
	answer := &genai.Content{Role: genai.RoleModel}
	var reason genai.FinishReason
	input := 0
	for chunk, err := range a.client.Models.GenerateContentStream(ctx, model, a.contents, config) {
		if err != nil {
			return nil, err
		}
		if chunk.UsageMetadata != nil {
			input = int(chunk.UsageMetadata.PromptTokenCount)
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
	if input > 0 {
		a.perByte = float64(input) / float64(a.size())
	}
	return answer, nil
}
