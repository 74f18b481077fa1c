package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// Reasoning is sent back to the model that wrote it, under any name of the
// model.
func TestEncode_NamesOfOneModel(t *testing.T) {
	for _, tt := range []struct {
		made, asked string
		same        bool
	}{
		{"claude-opus-4-8", "claude-opus-4-8", true},
		{"claude-opus-4-8-20260901", "claude-opus-4-8", true},
		{"claude-opus-4-8", "us.anthropic.claude-opus-4-8-20260901-v1:0", true},
		{"anthropic.claude-opus-4-8-v1:0", "global.anthropic.claude-opus-4-8-v2:1", true},
		{"arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8", true},
		{"claude-opus-4-8@20260901", "claude-opus-4-8", true},
		{"anthropic/claude-opus-4-8", "claude-opus-4-8", true},
		{"models/gemini-3-pro", "gemini-3-pro", true},
		{"gemini-2.5-flash-001", "publishers/google/models/gemini-2.5-flash", true},
		{"gpt-5-2026-08-07", "GPT-5", true},
		{"deepseek/deepseek-v3.1", "deepseek-v3.1", true},
		{"us-gov.anthropic.claude-opus-4-8", "claude-opus-4-8", true},

		{"claude-opus-4-8", "claude-opus-4-7", false},
		{"claude-opus-4-8-latest", "claude-opus-4-8", false},
		{"claude-opus-4-8-latest", "claude-opus-4-8-latest", true},
		{"anthropic/claude-opus-latest", "claude-opus-latest", false},
		{"gpt-5-mini", "gpt-5", false},
		{"gpt-4.1", "gpt-4", false},
		{"deepseek-v3", "deepseek-v2", false},
		{"deepseek-v3", "deepseek", false},
		{"qwen3.5-plus", "qwen3-plus", false},
		{"llama3.1", "1", false},
		{"-20260901", "-20260902", false},
		{"", "claude-opus-4-8", false},
	} {
		h := historyOf(t)
		m := thoughts.In(convo.Assistant("a"), convo.Reasoning{Text: "because", Signature: "c2ln"})
		m.Origin = convo.Origin{Format: "anthropic", Model: tt.made}
		mustAppend(t, h, convo.User("q"), m, convo.User("next"))
		req := mustEncode(t, wire.Anthropic{Model: tt.asked}, h.Snapshot())
		if tt.same {
			assert.Contains(t, string(req.Body()), "because", "%s %s", tt.made, tt.asked)
		} else {
			assert.NotContains(t, string(req.Body()), "because", "%s %s", tt.made, tt.asked)
		}
	}
}
