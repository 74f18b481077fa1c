package convofantasy_test

import (
	"testing"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	convofantasy "github.com/seed-c1b73e60/convo/adapters/fantasy"
	"github.com/seed-c1b73e60/convo/mirror"
)

func TestAgent_AgainstAProvider(t *testing.T) { adaptertest.Run(t, framework(t)) }

func TestAgent_EditsOfThePast(t *testing.T) {
	adaptertest.Edits(t, framework(t), func(want, got fantasy.Message) bool { return &want.Content[0] == &got.Content[0] })
}

// With a key in the environment, the agent talks to the real service.
func TestAgent_Real(t *testing.T) { adaptertest.Real(t, framework) }

// An agent of fantasy, with its provider for the API of Anthropic.
func framework(t *testing.T) adaptertest.Framework[fantasy.Message] {
	turn := func(t *testing.T, s adaptertest.Service, m *mirror.Mirror[fantasy.Message], list []fantasy.Message) ([]fantasy.Message, error) {
		api, err := anthropic.New(anthropic.WithBaseURL(s.URL), anthropic.WithAPIKey(s.Key))
		if err != nil {
			return nil, err
		}
		model, err := api.LanguageModel(t.Context(), s.Model)
		if err != nil {
			return nil, err
		}
		a := convofantasy.New(m)
		agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt("You read."), fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep), fantasy.WithMaxRetries(0))
		prompt, _ := fantasy.AsMessagePart[fantasy.TextPart](list[len(list)-1].Content[0])
		r, err := agent.Stream(t.Context(), fantasy.AgentStreamCall{Messages: list[:len(list)-1], Prompt: prompt.Text})
		if err != nil {
			return nil, err
		}
		for _, s := range r.Steps {
			list = append(list, s.Messages...)
		}
		return list, nil
	}
	return adaptertest.Framework[fantasy.Message]{
		API: adaptertest.Anthropic, Row: "fantasy", Codec: convofantasy.Codec(), Turn: turn, Follows: true, Streams: true, Thinks: true, Serves: true,
		User: func(text string) fantasy.Message { return fantasy.NewUserMessage(text) },
	}
}
