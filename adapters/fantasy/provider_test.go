package convofantasy_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	convofantasy "github.com/seed-c1b73e60/convo/adapters/fantasy"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// An agent of fantasy with its provider for Anthropic, against a server that refuses what
// Anthropic would refuse: a hundred steps with signed thinking and parallel calls in a small
// window.
func TestAgent_AgainstAProvider(t *testing.T) {
	asked := 0
	p := provider.New(provider.Options{Window: 8_000, Answer: func(provider.Request) provider.Answer {
		asked++
		blocks := []provider.Block{provider.Thinking(fmt.Sprint("thought ", asked))}
		for i := range asked % 3 {
			blocks = append(blocks, provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"page":%d}`, 10*asked+i)})
		}
		if asked%3 == 0 {
			blocks = append(blocks, provider.Text(fmt.Sprint("Answer ", asked)))
		}
		return provider.Answer{Blocks: blocks}
	}})
	server := httptest.NewServer(p)
	defer server.Close()
	api, err := anthropic.New(anthropic.WithBaseURL(server.URL), anthropic.WithAPIKey("none"))
	require.NoError(t, err)
	model, err := api.LanguageModel(t.Context(), "claude-opus-5-5")
	require.NoError(t, err)
	compactions := 0
	h := newHistory(t, &convo.Options{Limits: window, OnCompaction: func(r convo.Report) {
		if r.Outcome == convo.OutcomeApplied {
			compactions++
		}
	}})
	a := convofantasy.New(h, convofantasy.Codec())
	agent := fantasy.NewAgent(model, fantasy.WithSystemPrompt("You read."), fantasy.WithTools(readTool()), fantasy.WithPrepareStep(a.PrepareStep), fantasy.WithMaxRetries(0))
	var list []fantasy.Message
	for turn := range 35 {
		prompt := fmt.Sprint("Question ", turn)
		if turn == 0 {
			prompt = question
		}
		r, err := agent.Stream(t.Context(), fantasy.AgentStreamCall{Messages: list, Prompt: prompt})
		require.NoError(t, err, "turn %d", turn)
		list = append(list, fantasy.NewUserMessage(prompt))
		for _, s := range r.Steps {
			list = append(list, s.Messages...)
		}
	}
	for _, r := range p.Refused() {
		t.Errorf("refused: %s", r.Error)
	}
	assert.Positive(t, compactions)
	all := p.Requests()
	assert.Contains(t, string(all[len(all)-1].Body), "treasure")
	signed := 0
	for _, r := range all {
		signed += strings.Count(string(r.Body), `"type":"thinking"`)
	}
	t.Logf("%d requests, %d compactions, %d thinking blocks", len(all), compactions, signed)
	assert.Positive(t, signed)
}
