package wire_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Providers answer under longer names than they are asked by: own reasoning
// goes back all the same.
func TestDecode_ModelOfAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		f      wire.Format
		answer string
	}{
		{wire.Anthropic{Model: "claude"}, `{"type":"message","role":"assistant","model":"claude-20251001","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"a"}]}`},
		{wire.OpenAIChat{Dialect: wire.DeepSeek, Model: "deepseek-chat"}, `{"model":"deepseek-v4","choices":[{"message":{"role":"assistant","reasoning_content":"c2ln","content":"a"}}]}`},
		{wire.OpenAIResponses{Model: "gpt-5"}, `{"object":"response","model":"gpt-5-2025-08-07","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`},
	} {
		in, err := tt.f.Decode([]byte(tt.answer))
		require.NoError(t, err)
		msgs := append([]convo.Message{convo.User("q")}, in.Messages...)
		r, err := tt.f.Encode(convo.NewSnapshot(append(msgs, convo.User("and"))))
		require.NoError(t, err)
		assert.Contains(t, string(r.Body()), "c2ln", "%T", tt.f)
	}
}

// Where nobody gives ids, a result belongs to the next call of its name.
func TestOllama_ResultsByName(t *testing.T) {
	f := wire.OpenAIChat{Dialect: wire.Ollama}
	in, err := f.Decode([]byte(`{"messages":[{"role":"user","content":"q"},
		{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}]},
		{"role":"tool","tool_name":"g","content":"of g"},{"role":"tool","tool_name":"f","content":"of f"}]}`))
	require.NoError(t, err)
	h, err := convo.New(nil)
	require.NoError(t, err)
	for _, m := range in.Messages {
		_, err := h.Append(m)
		require.NoError(t, err)
	}
	for _, s := range []*convo.Snapshot{convo.NewSnapshot(in.Messages), h.Snapshot()} {
		r, err := f.Encode(s)
		require.NoError(t, err)
		require.Len(t, r.Messages, 4)
		assert.Contains(t, string(r.Messages[2]), `"tool_name":"f","content":"of f"`)
		assert.Contains(t, string(r.Messages[3]), `"tool_name":"g","content":"of g"`)
	}
}

func TestCheck_NotJSON(t *testing.T) {
	for name, f := range formats {
		for _, body := range []string{``, `{`, `null`, `[]`, `{"messages":[]}}`, `{"messages":[]} x`, "\ufeff{}"} {
			found := f.Check([]byte(body))
			require.NotEmpty(t, found, "%s: %s", name, body)
			assert.Equal(t, "json", found[0].Rule, "%s: %s", name, body)
		}
	}
}

// A snapshot that nobody has checked: what comes out is JSON all the same, and
// nothing in it can add a field.
func TestEncode_UncheckedSnapshot(t *testing.T) {
	msgs := []convo.Message{convo.User("q")}
	for i, arguments := range []string{"oops", `{"a":1}},"x":{`, "{\"a\":\"\xff\"}", "[]", "null", `"s"`} {
		msgs = append(msgs, convo.Assistant("", convo.ToolCall{ID: fmt.Sprint("c", i), Name: "f", Arguments: arguments}))
	}
	for _, format := range []string{"openai-chat", "deepseek", "mistral", "ollama", "openai-responses", "anthropic", "gemini", "converse"} {
		for _, raw := range []string{"oops", "null", "5", "{}", `{"a":1}},{`, `{"type":""}`, `{"text":""}`, "{\"type\":\"\xff\"}"} {
			msgs = append(msgs, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("x"), convo.Opaque{Format: format, JSON: raw}}})
		}
	}
	s := convo.NewSnapshot(append(msgs, convo.User("end")))
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		r, err := formats[name].Encode(s)
		require.NoError(t, err, name)
		require.True(t, json.Valid(r.Body()), name)
		assert.Empty(t, formats[name].Check(r.Body()), "%s: %s", name, r.Body())
	}
}

func TestOpenAIChat_DecodeNamesWhatIsLost(t *testing.T) {
	in, err := wire.OpenAIChat{}.Decode([]byte(`{"messages":[
		{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://x/y","detail":"low"}}]},
		{"role":"assistant","content":null,"reasoning_content":"hm","reasoning":"hm","tool_calls":[{"id":"c","type":"function","extra_content":{"google":{}},"function":{"name":"f","arguments":"{}"}}]}]}`))
	require.NoError(t, err)
	var paths []string
	for _, l := range in.Lost {
		paths = append(paths, l.Path)
	}
	assert.Equal(t, []string{
		"messages[0].content[0].cache_control", "messages[0].content[1].image_url.detail",
		"messages[1].reasoning", "messages[1].tool_calls[0].extra_content",
	}, paths)
}

func TestPrefixShare_SeesAllThatIsSent(t *testing.T) {
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
		{wire.OpenAIChat{Dialect: wire.DeepSeek}, thought("x"), thought("y")},
	} {
		a, err := tt.f.Encode(convo.NewSnapshot([]convo.Message{convo.User("q"), tt.a}))
		require.NoError(t, err)
		b, err := tt.f.Encode(convo.NewSnapshot([]convo.Message{convo.User("q"), tt.b}))
		require.NoError(t, err)
		assert.Less(t, wire.PrefixShare(a, b), 1.0)
		assert.Equal(t, 1.0, wire.PrefixShare(a, a))
	}
}

// BenchmarkHard measures what is hard: one id for every call, many neighbours of
// one role, many calls in one message with their results in another order. It
// reports how much longer twice as many take: 2 is linear.
func BenchmarkHard(b *testing.B) {
	cases := map[string]func(n int) []convo.Message{
		"one id": func(n int) (msgs []convo.Message) {
			c := convo.ToolCall{ID: "call_0", Name: "f"}
			for range n {
				msgs = append(msgs, convo.User("q"), convo.Assistant("", c), convo.Result(c, "r"))
			}
			return msgs
		},
		"neighbours": func(n int) (msgs []convo.Message) {
			for range n {
				msgs = append(msgs, convo.User("q"))
			}
			return msgs
		},
		"calls": func(n int) []convo.Message {
			var calls []convo.ToolCall
			for i := range n {
				calls = append(calls, convo.ToolCall{ID: fmt.Sprint("c", i), Name: "f"})
			}
			msgs := []convo.Message{convo.User("q"), convo.Assistant("", calls...)}
			for _, c := range slices.Backward(calls) {
				msgs = append(msgs, convo.Result(c, "r"))
			}
			return msgs
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		for _, format := range []string{"anthropic", "converse", "gemini", "openai chat", "responses", "strict"} {
			b.Run(name+"/"+format, func(b *testing.B) {
				f := formats[format]
				once, twice := convo.NewSnapshot(cases[name](5_000)), convo.NewSnapshot(cases[name](10_000))
				run := func(s *convo.Snapshot) time.Duration {
					start := time.Now()
					r, err := f.Encode(s)
					if err != nil {
						b.Fatal(err)
					}
					f.Check(r.Body())
					if _, err := f.Decode(r.Body()); err != nil {
						b.Fatal(err)
					}
					return time.Since(start)
				}
				var short, long time.Duration
				for b.Loop() {
					short += run(once)
					long += run(twice)
				}
				b.ReportMetric(float64(short.Milliseconds())/float64(b.N), "ms/5k")
				b.ReportMetric(float64(long)/float64(short), "x-10k-to-5k")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
