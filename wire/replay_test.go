package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// thinking returns a conversation of a maker with three turns: an answer; an answer, then
// calls with an answer to their result; an answer. Each message of the assistant has
// reasoning, "thought 1" to "thought 5".
func thinking(format string) []convo.Message {
	var n byte
	says := func(text string, calls ...convo.ToolCall) convo.Message {
		n++
		m := convo.Assistant(text, calls...)
		m.Origin = convo.Origin{Format: format, Model: "m"}
		r := convo.Reasoning{Text: "thought " + string('0'+n)}
		switch format {
		case "openai-responses":
			r = convo.Reasoning{Encrypted: "thought " + string('0'+n)}
		case "openai-chat", "openai-chat@h":
			r.ID = "reasoning_content"
		}
		m.Parts = append([]convo.Part{r}, m.Parts...)
		return m
	}
	c := convo.ToolCall{ID: "c1", Name: "look", Arguments: "{}"}
	return []convo.Message{
		convo.User("one"), says("1"),
		convo.User("two"), says("2"), says("", c), convo.Result(c, "r"), says("4"),
		convo.User("three"), says("5"), convo.User("end"),
	}
}

func relaxed(t *testing.T, o convo.Overheads, msgs ...convo.Message) *convo.History {
	t.Helper()
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Overheads: o, Tokenizer: convo.TokenizerFunc(func(s string) int { return len(s) })})
	require.NoError(t, err)
	for _, m := range msgs {
		mustAppend(t, h, m)
	}
	return h
}

// The reasoning that a format sends is the reasoning that OverheadsFor counts and a
// Breakdown shows.
func TestReplay_CountsAreOfWhatIsSent(t *testing.T) {
	for name, tt := range map[string]struct {
		f     wire.Format
		maker string
		want  string // the digits of the thoughts
	}{
		"chat":             {wire.OpenAIChat{}, "openai-chat", ""},
		"chat, all":        {wire.OpenAIChat{Reasoning: convo.ReplayAll}, "openai-chat", ""},
		"chat, model":      {wire.OpenAIChat{Model: "m"}, "openai-chat", "12345"},
		"chat, host":       {wire.OpenAIChat{Host: "h"}, "openai-chat@h", "12345"},
		"chat, host tools": {wire.OpenAIChat{Host: "h", Reasoning: convo.ReplayTools}, "openai-chat@h", "34"},
		"chat, host none":  {wire.OpenAIChat{Host: "h", Reasoning: convo.ReplayNone}, "openai-chat@h", ""},
		"mistral":          {wire.OpenAIChat{Dialect: wire.Mistral}, "mistral", "12345"},
		"mistral, none":    {wire.OpenAIChat{Dialect: wire.Mistral, Reasoning: convo.ReplayNone}, "mistral", ""},
		"strict":           {wire.OpenAIChat{Dialect: wire.StrictAlternation}, "openai-chat", ""},
		"strict, model":    {wire.OpenAIChat{Dialect: wire.StrictAlternation, Model: "m"}, "openai-chat", "12345"},
		"gemma":            {wire.OpenAIChat{Dialect: wire.Gemma}, "openai-chat", ""},
		"deepseek":         {wire.OpenAIChat{Dialect: wire.DeepSeek}, "deepseek", "34"},
		"deepseek, all":    {wire.OpenAIChat{Dialect: wire.DeepSeek, Reasoning: convo.ReplayAll}, "deepseek", "12345"},
		"deepseek, none":   {wire.OpenAIChat{Dialect: wire.DeepSeek, Reasoning: convo.ReplayNone}, "deepseek", ""},
		"ollama":           {wire.OpenAIChat{Dialect: wire.Ollama}, "ollama", "12345"},
		"ollama, tools":    {wire.OpenAIChat{Dialect: wire.Ollama, Reasoning: convo.ReplayTools}, "ollama", "34"},
		"responses":        {wire.OpenAIResponses{}, "openai-responses", "12345"},
		"responses, tools": {wire.OpenAIResponses{Reasoning: convo.ReplayTools}, "openai-responses", "34"},
		"responses, none":  {wire.OpenAIResponses{Reasoning: convo.ReplayNone}, "openai-responses", ""},
	} {
		t.Run(name, func(t *testing.T) {
			msgs := thinking(tt.maker)
			h := relaxed(t, wire.OverheadsFor(tt.f, ""), msgs...)
			r := mustEncode(t, tt.f, h.Snapshot())
			assert.Empty(t, tt.f.Check(r.Body()))
			var sent strings.Builder
			for _, digit := range []string{"1", "2", "3", "4", "5"} {
				if strings.Contains(string(r.Body()), "thought "+digit) {
					sent.WriteString(digit)
				}
			}
			assert.Equal(t, tt.want, sent.String())
			assert.Equal(t, len(tt.want)*len("thought 1"), h.Snapshot().Breakdown().Reasoning)

			without := relaxed(t, convo.Overheads{Reasoning: convo.ReplayNone}, msgs...)
			assert.Equal(t, without.Tokens().Tokens+len(tt.want)*len("thought 1"), h.Tokens().Tokens)
		})
	}
	assert.Equal(t, convo.ReplayDefault, wire.OverheadsFor(wire.Anthropic{}, "claude-opus-5").Reasoning)
	assert.Equal(t, wire.Overheads("gpt-4o").Message, wire.OverheadsFor(wire.OpenAIChat{}, "gpt-4o").Message)
}

// The documented example of DeepSeek's thinking mode: in a turn with calls the reasoning
// of all its answers is sent back, also in later turns.
func TestReplay_DeepSeekGetsBackTheReasoningOfTurnsWithCalls(t *testing.T) {
	f := wire.OpenAIChat{Dialect: wire.DeepSeek}
	r := mustEncode(t, f, convo.NewSnapshot(thinking("deepseek")))
	assert.Equal(t, `{"role":"assistant","content":"1","reasoning_content":""}`, string(r.Messages[1]))
	assert.Equal(t, `{"role":"assistant","content":null,"reasoning_content":"thought 3","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}`, string(r.Messages[4]))
	assert.Equal(t, `{"role":"assistant","content":"4","reasoning_content":"thought 4"}`, string(r.Messages[6]))
	assert.Equal(t, `{"role":"assistant","content":"5","reasoning_content":""}`, string(r.Messages[8]))
}
