package convolangchaingo_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	convolangchaingo "github.com/seed-c1b73e60/convo/adapters/langchaingo"
	"github.com/seed-c1b73e60/convo/mirror"
)

var readTool = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: "read", Description: "Reads a page.", Parameters: map[string]any{"type": "object", "properties": map[string]any{"page": map[string]any{"type": "integer"}}}}}

func TestModel_AgainstAProvider(t *testing.T) { adaptertest.Run(t, framework(t)) }

// With a key in the environment, the agent talks to the real service.
func TestModel_Real(t *testing.T) { adaptertest.Real(t, framework) }

// The loop that users of langchaingo write, with its model for the API of OpenAI.
func framework(t *testing.T) adaptertest.Framework[llms.MessageContent] {
	turn := func(t *testing.T, s adaptertest.Service, m *mirror.Mirror[llms.MessageContent], list []llms.MessageContent) ([]llms.MessageContent, error) {
		llm, err := openai.New(openai.WithBaseURL(s.URL), openai.WithToken(s.Key), openai.WithModel(s.Model))
		if err != nil {
			return nil, err
		}
		model := convolangchaingo.New(m, llm)
		for {
			r, err := model.GenerateContent(t.Context(), list, llms.WithTools([]llms.Tool{readTool}), llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
			if err != nil {
				return nil, err
			}
			answer := llms.MessageContent{Role: llms.ChatMessageTypeAI}
			if text := r.Choices[0].Content; text != "" {
				answer.Parts = append(answer.Parts, llms.TextContent{Text: text})
			}
			var results []llms.MessageContent
			for _, c := range r.Choices[0].ToolCalls {
				var in struct{ Page int }
				if err := json.Unmarshal([]byte(c.FunctionCall.Arguments), &in); err != nil {
					return nil, err
				}
				answer.Parts = append(answer.Parts, c)
				results = append(results, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: c.ID, Name: "read", Content: adaptertest.Read(in.Page)}}})
			}
			list = append(append(list, answer), results...)
			if len(results) == 0 {
				return list, nil
			}
		}
	}
	return adaptertest.Framework[llms.MessageContent]{
		API: adaptertest.OpenAI, Row: "langchaingo", Codec: convolangchaingo.Codec(), Turn: turn, Streams: true,
		User: func(text string) llms.MessageContent {
			return llms.TextParts(llms.ChatMessageTypeHuman, text)
		},
	}
}
