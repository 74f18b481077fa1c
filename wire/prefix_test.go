package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func TestPrefixShare_ComparesAllContent(t *testing.T) {
	image := func(data string) convo.Message { return convo.User("look", convo.NewMedia("image/png", []byte(data))) }
	thought := func(text string) convo.Message {
		return convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "deepseek"}, Parts: []convo.Part{convo.Reasoning{Text: text}, convo.Text("a")}}
	}
	for _, tt := range []struct {
		f    wire.Format
		a, b convo.Message
	}{
		{wire.OpenAIChat{Dialect: wire.Ollama}, image("x"), image("y")},
		{wire.OpenAIChat{}, image("x"), image("y")},
		{wire.OpenAIChat{Dialect: wire.DeepSeek, Reasoning: convo.ReplayAll}, thought("x"), thought("y")},
	} {
		a, err := tt.f.Encode(convo.NewSnapshot([]convo.Message{convo.User("q"), tt.a}))
		require.NoError(t, err)
		b, err := tt.f.Encode(convo.NewSnapshot([]convo.Message{convo.User("q"), tt.b}))
		require.NoError(t, err)
		assert.Less(t, wire.PrefixShare(a, b), 1.0)
		assert.Equal(t, 1.0, wire.PrefixShare(a, a))
	}
}
