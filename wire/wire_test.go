package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// The names of the formats are saved with conversations, so they stay as they are, and
// an answer has that of the format which decoded it.
func TestFormatNames(t *testing.T) {
	for _, tt := range []struct {
		format  wire.Format
		name    string
		want    string
		message string
	}{
		{wire.OpenAIChat{}, wire.FormatOpenAIChat, "openai-chat", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.StrictAlternation}, wire.FormatOpenAIChat, "openai-chat", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.DeepSeek}, wire.FormatDeepSeek, "deepseek", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.Mistral}, wire.FormatMistral, "mistral", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIChat{Dialect: wire.Ollama}, wire.FormatOllama, "ollama", `{"role":"assistant","content":"a"}`},
		{wire.OpenAIResponses{}, wire.FormatOpenAIResponses, "openai-responses", `{"role":"assistant","content":"a"}`},
		{wire.Anthropic{}, wire.FormatAnthropic, "anthropic", `{"role":"assistant","content":"a"}`},
		{wire.Gemini{}, wire.FormatGemini, "gemini", `{"role":"model","parts":[{"text":"a"}]}`},
		{wire.Converse{}, wire.FormatConverse, "converse", `{"role":"assistant","content":[{"text":"a"}]}`},
	} {
		assert.Equal(t, tt.want, tt.name)
		in, err := tt.format.Decode([]byte(tt.message))
		require.NoError(t, err)
		require.Len(t, in.Messages, 1)
		assert.Equal(t, convo.Origin{Format: tt.want}, in.Messages[0].Origin)
	}
}
