package wire_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// hostAnswers are messages as chat hosts send them.
var hostAnswers = []struct {
	name, message string
	parts         []convo.Part // the first parts of the message
	back          string       // the message as it is sent back; empty: as it was received
}{
	// https://openrouter.ai/docs/use-cases/reasoning-tokens, the three kinds of entries.
	{"OpenRouter, all kinds", `{"role":"assistant","content":"4",
		"reasoning_details":[
			{"type":"reasoning.summary","summary":"It adds.","id":"reasoning-summary-1","format":"anthropic-claude-v1","index":0},
			{"type":"reasoning.encrypted","data":"eyJlbmNyeXB0ZWQi","id":"reasoning-encrypted-1","format":"anthropic-claude-v1","index":1},
			{"type":"reasoning.text","text":"Two and two.","signature":null,"id":"reasoning-text-1","format":"anthropic-claude-v1","index":2}]}`,
		[]convo.Part{
			convo.Reasoning{ID: "reasoning-summary-1", Text: "It adds.", Signature: `{"format":"anthropic-claude-v1","index":0,"type":"reasoning.summary"}`},
			convo.Reasoning{ID: "reasoning-encrypted-1", Encrypted: "eyJlbmNyeXB0ZWQi", Signature: `{"format":"anthropic-claude-v1","index":1,"type":"reasoning.encrypted"}`},
			convo.Reasoning{ID: "reasoning-text-1", Text: "Two and two.", Signature: `{"format":"anthropic-claude-v1","index":2,"signature":null,"type":"reasoning.text"}`},
		}, ""},
	// The same page: reasoning repeats the text.
	{"OpenRouter, the text beside the details", `{"role":"assistant","content":null,"reasoning":"Two\n\nand two.",
		"reasoning_details":[{"type":"reasoning.text","text":"Two ","format":"anthropic-claude-v1","index":0,"signature":"c2ln"},{"type":"reasoning.summary","summary":"and two."}],
		"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		[]convo.Part{
			convo.Reasoning{Text: "Two ", Signature: `{"format":"anthropic-claude-v1","index":0,"signature":"c2ln","type":"reasoning.text"}`},
			convo.Reasoning{Text: "and two.", Signature: `{"type":"reasoning.summary"}`},
		},
		`{"role":"assistant","content":null,
		"reasoning_details":[{"type":"reasoning.text","text":"Two ","format":"anthropic-claude-v1","index":0,"signature":"c2ln"},{"type":"reasoning.summary","summary":"and two."}],
		"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
	// The same parts, but the details differ from the text.
	{"a text, and other details", `{"role":"assistant","content":"a","reasoning":"Two and two.","reasoning_details":[{"type":"reasoning.encrypted","data":"ZW5j","id":"","format":"google-gemini-v1"}]}`,
		[]convo.Part{
			convo.Reasoning{ID: "reasoning", Text: "Two and two."},
			convo.Reasoning{Encrypted: "ZW5j", Signature: `{"format":"google-gemini-v1","id":"","type":"reasoning.encrypted"}`},
		}, ""},
	// https://openrouter.ai/docs/client-sdks/python/components/reasoningdetail.md has a fourth kind.
	{"an entry of another kind", `{"role":"assistant","content":"a","reasoning_details":[{"type":"reasoning.server_tool_call","text":"","name":"f","input":{"b":[1.0,null]}},{}]}`,
		[]convo.Part{
			convo.Reasoning{Signature: `{"input":{"b":[1.0,null]},"name":"f","text":"","type":"reasoning.server_tool_call"}`},
			convo.Reasoning{Signature: `{}`},
		}, ""},
	// Details that are not a signature of a call.
	{"odd entries before a call", `{"role":"assistant","content":null,"reasoning_details":[{"type":"x","extra_content":{}},{"text":"hm","extra_content":{}}],"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		[]convo.Part{convo.Reasoning{Signature: `{"extra_content":{},"type":"x"}`}, convo.Reasoning{Text: "hm", Signature: `{"extra_content":{}}`}}, ""},
	// An id that is the name of another field.
	{"an entry with an odd id", `{"role":"assistant","content":"a","reasoning_details":[{"id":"extra_content","data":"ZW5j"},{"id":"reasoning","text":"hm"}]}`,
		[]convo.Part{
			convo.Reasoning{Encrypted: "ZW5j", Signature: `{"id":"extra_content"}`},
			convo.Reasoning{ID: "reasoning", Text: "hm", Signature: `{}`},
		}, ""},
	// https://api-docs.deepseek.com/guides/thinking_mode, which many servers follow.
	{"reasoning_content", `{"role":"assistant","content":"a","reasoning_content":"hm"}`, []convo.Part{convo.Reasoning{ID: "reasoning_content", Text: "hm"}}, ""},
	// https://console.groq.com/docs/reasoning, https://inference-docs.cerebras.ai/capabilities/reasoning
	{"reasoning", `{"role":"assistant","content":"a","reasoning":"hm"}`, []convo.Part{convo.Reasoning{ID: "reasoning", Text: "hm"}}, ""},
	{"one text in two fields", `{"role":"assistant","content":"a","reasoning_content":"hm","reasoning":"hm"}`, []convo.Part{convo.Reasoning{ID: "reasoning_content", Text: "hm"}},
		`{"role":"assistant","content":"a","reasoning_content":"hm"}`},
	{"an empty field before another", `{"role":"assistant","content":"a","reasoning_content":"","reasoning":"hm","reasoning_details":[]}`, []convo.Part{convo.Reasoning{ID: "reasoning", Text: "hm"}},
		`{"role":"assistant","content":"a","reasoning":"hm"}`},
	// https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility": the
	// first of parallel calls is signed.
	{"Google, calls", `{"role":"assistant","content":"Let me see.","tool_calls":[
			{"extra_content":{"google":{"thought_signature":"c2lnbmF0dXJlIEE="}},"id":"c1","type":"function","function":{"name":"check_flight","arguments":"{\"flight\":\"AA100\"}"}},
			{"id":"c2","type":"function","function":{"name":"check_flight","arguments":"{}"}}]}`,
		[]convo.Part{
			convo.Text("Let me see."), convo.Reasoning{Signature: `{"extra_content":{"google":{"thought_signature":"c2lnbmF0dXJlIEE="}}}`},
			convo.ToolCall{ID: "c1", Name: "check_flight", Arguments: `{"flight":"AA100"}`}, convo.ToolCall{ID: "c2", Name: "check_flight", Arguments: "{}"},
		}, ""},
	// The same of a message without calls.
	{"Google, a text", `{"role":"assistant","content":"a","extra_content":{"google":{"thought_signature":"c2ln"}}}`,
		[]convo.Part{convo.Reasoning{ID: "extra_content", Signature: `{"google":{"thought_signature":"c2ln"}}`}}, ""},
	{"extra_content of others", `{"role":"assistant","content":null,"extra_content":{"a":{"b":null}},"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},
			{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"anthropic":{"thinking":"","signature":"c2ln"},"x":7}}]}`,
		[]convo.Part{convo.Reasoning{ID: "extra_content", Signature: `{"a":{"b":null}}`}}, ""},
}

// asked returns a conversation with an answer in it: a question, the answer, a result of
// each call, and a question.
func asked(m convo.Message) []convo.Message {
	msgs := []convo.Message{convo.User("q"), m}
	for _, c := range m.ToolCalls() {
		msgs = append(msgs, convo.Result(c, "r"))
	}
	return append(msgs, convo.User("and"))
}

// The reasoning of a host is sent back unchanged, and only to that host.
func TestOpenAIChat_ReasoningGoesBackToItsHost(t *testing.T) {
	const model = "vendor/model-1"
	for _, tt := range hostAnswers {
		t.Run(tt.name, func(t *testing.T) {
			f := wire.OpenAIChat{Host: "openrouter"}
			in := mustDecode(t, f, []byte(`{"model":"`+model+`","choices":[{"message":`+tt.message+`}]}`))
			assert.Empty(t, in.Lost)
			m := in.Messages[0]
			assert.Equal(t, convo.Origin{Format: "openai-chat@openrouter", Model: model}, m.Origin)
			assert.Equal(t, tt.parts, m.Parts[:len(tt.parts)])
			h := relaxed(t, convo.Overheads{}, asked(m)...)

			back := tt.back
			if back == "" {
				back = tt.message
			}
			plain := withoutReasoning(t, back)
			for _, to := range []struct {
				f    wire.OpenAIChat
				want string
			}{
				{f, back},
				{wire.OpenAIChat{Host: "openrouter", Model: "model-1"}, back},
				{wire.OpenAIChat{Host: "openrouter", Model: model, Reasoning: convo.ReplayAll}, back},
				{wire.OpenAIChat{Host: "openrouter", Model: "other"}, plain},
				{wire.OpenAIChat{Host: "openrouter", Reasoning: convo.ReplayNone}, plain},
				{wire.OpenAIChat{Host: "vercel"}, plain},
				{wire.OpenAIChat{Model: model}, plain},
				{wire.OpenAIChat{}, plain},
			} {
				r := mustEncode(t, to.f, h.Snapshot())
				assert.JSONEq(t, to.want, string(r.Messages[1]), "%+v", to.f)
				assert.Empty(t, to.f.Check(r.Body()))
			}
			for _, other := range []wire.Format{wire.Anthropic{}, wire.Gemini{}, wire.Converse{}, wire.OpenAIResponses{}, wire.OpenAIChat{Dialect: wire.DeepSeek}, wire.OpenAIChat{Dialect: wire.Mistral, Host: "openrouter"}} {
				r := mustEncode(t, other, h.Snapshot())
				for _, secret := range []string{"c2ln", "ZW5j", "eyJl", "Two", "hm"} {
					assert.NotContains(t, string(r.Body()), secret, "%T", other)
				}
			}
		})
	}
}

// withoutReasoning returns a message without the reasoning of hosts.
func withoutReasoning(t *testing.T, message string) string {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(message), &m))
	for _, key := range []string{"reasoning", "reasoning_content", "reasoning_details", "extra_content"} {
		delete(m, key)
	}
	for _, c := range callsOf(m) {
		delete(c.(map[string]any), "extra_content")
	}
	return jsonOf(m)
}

// Without a Host, the same model gets its reasoning back.
func TestOpenAIChat_ReasoningGoesBackToItsModel(t *testing.T) {
	for _, tt := range hostAnswers {
		in := mustDecode(t, wire.OpenAIChat{Model: "m-2026-09-01"}, []byte(tt.message))
		back := tt.back
		if back == "" {
			back = tt.message
		}
		for model, want := range map[string]string{"m": back, "": withoutReasoning(t, back), "m2": withoutReasoning(t, back)} {
			r := mustEncode(t, wire.OpenAIChat{Model: model}, convo.NewSnapshot(asked(in.Messages[0])))
			assert.JSONEq(t, want, string(r.Messages[1]), "%s, model %q", tt.name, model)
		}
	}
}

// Reasoning without a known source is left out, as is the signature of a call that no
// call follows.
func TestOpenAIChat_UnknownReasoningIsLeftOut(t *testing.T) {
	f := wire.OpenAIChat{Host: "h"}
	call := convo.ToolCall{ID: "c1", Name: "f", Arguments: "{}"}
	signed := convo.Reasoning{Signature: `{"extra_content":{"google":{}}}`}
	for _, parts := range [][]convo.Part{
		{convo.Reasoning{Text: "hm"}, convo.Text("a"), call},
		{convo.Reasoning{ID: "rs_1", Text: "hm", Encrypted: "hm"}, convo.Text("a"), call},
		{convo.Reasoning{Text: "hm", Signature: "c2ln"}, convo.Text("a"), call},
		{convo.Reasoning{Text: "hm", Signature: `{"type":"reasoning.text"},"role":"system"`}, convo.Text("a"), call},
		{convo.Reasoning{Text: "hm", Signature: `{"type":oops}`}, convo.Text("a"), call},
		{convo.Reasoning{Text: "hm", Signature: "{\"type\":\"\xff\"}"}, convo.Text("a"), call},
		{convo.Reasoning{ID: "extra_content", Signature: `[1]`}, convo.Text("a"), call},
		{signed, convo.Text("a"), call},
		{convo.Text("a"), call, signed},
	} {
		m := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "openai-chat@h"}, Parts: parts}
		r := mustEncode(t, f, convo.NewSnapshot(asked(m)))
		assert.JSONEq(t, `{"role":"assistant","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`, string(r.Messages[1]))
	}
}

// If messages are joined, each call keeps its own signature, and the signature of another
// host is left out.
func TestOpenAIChat_JoinedMessagesKeepTheirSignatures(t *testing.T) {
	said := func(format, id string) convo.Message {
		return convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: format}, Parts: []convo.Part{
			convo.Reasoning{Signature: `{"extra_content":{"of":"` + id + `"}}`}, convo.ToolCall{ID: id, Name: "f", Arguments: "{}"},
		}}
	}
	text := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "openai-chat@h"}, Parts: []convo.Part{convo.Text("a")}}
	other := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Signature: `{"extra_content":{"of":"nobody"}}`}, convo.Text("a")}}
	f := wire.OpenAIChat{Dialect: wire.StrictAlternation, Host: "h"}
	for _, tt := range []struct {
		msgs []convo.Message
		want string // of the call
	}{
		{[]convo.Message{text, said("openai-chat@h", "aaaaaaaaa")}, `,"extra_content":{"of":"aaaaaaaaa"}`},
		{[]convo.Message{other, said("openai-chat@h", "aaaaaaaaa")}, `,"extra_content":{"of":"aaaaaaaaa"}`},
		{[]convo.Message{text, said("openai-chat", "aaaaaaaaa")}, ``},
		{[]convo.Message{other, said("openai-chat", "aaaaaaaaa")}, ``},
	} {
		r := mustEncode(t, f, convo.NewSnapshot(append([]convo.Message{convo.User("q")}, tt.msgs...)))
		assert.Equal(t, `{"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[{"id":"aaaaaaaaa","type":"function","function":{"name":"f","arguments":"{}"}`+tt.want+`}]}`, string(r.Messages[1]))
	}
}

// A call of a custom tool may be signed. If a call was cut off, its signature is removed
// with it.
func TestOpenAIChat_SignedCallsOfOtherKinds(t *testing.T) {
	f := wire.OpenAIChat{Host: "h"}
	const custom = `{"role":"assistant","content":"a","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"f","input":"x"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}`
	in := mustDecode(t, f, []byte(custom))
	assert.Empty(t, in.Lost)
	r := mustEncode(t, f, convo.NewSnapshot(asked(in.Messages[0])))
	assert.JSONEq(t, custom, string(r.Messages[1]))

	for _, kind := range []string{`"function":{"name":"f","arguments":"{\"n"}`, `"custom":{"name":"f","input":"x"}`} {
		call := `{"index":0,"id":"c1","extra_content":{"google":{"thought_signature":"c2ln"}},` + kind + `}`
		s, _ := feed(t, f, chunks(`{"choices":[{"index":0,"delta":{"content":"a","tool_calls":[`+call+`]}}]}`))
		cut, err := s.Transcript()
		require.Error(t, err)
		whole := mustDecode(t, f, []byte(`{"choices":[{"message":{"role":"assistant","content":"a","tool_calls":[`+call+`]},"finish_reason":"length"}]}`))
		for _, got := range []wire.Transcript{cut, whole} {
			require.NotNil(t, got.CutOff, kind)
			assert.Equal(t, []convo.Part{convo.Text("a")}, got.Messages[0].Parts, kind)
		}
	}
}

// DeepSeek and Ollama have one field for reasoning; other fields are listed in Lost.
func TestOpenAIChat_OneFieldForReasoning(t *testing.T) {
	const message = `{"role":"assistant","content":"a","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}],"extra_content":{"a":1},
		"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{}"},"extra_content":{"a":1}}]}`
	for _, d := range []wire.Dialect{wire.DeepSeek, wire.Ollama} {
		f := wire.OpenAIChat{Dialect: d}
		in := mustDecode(t, f, []byte(message))
		assert.Equal(t, convo.Reasoning{Text: "hm"}, in.Messages[0].Parts[0])
		lost := pathsOf(in.Lost)
		assert.Equal(t, []string{"tool_calls[0].extra_content", "extra_content", "reasoning_details"}, lost)
		r := mustEncode(t, f, convo.NewSnapshot(asked(in.Messages[0])))
		assert.Equal(t, 1, strings.Count(string(r.Body()), "hm"))
	}
}

// https://docs.mistral.ai/capabilities/reasoning/: thinking is a part of the content, and
// Mistral recommends sending it back.
func TestMistral_ThinkingGoesBackAsItCame(t *testing.T) {
	f := wire.OpenAIChat{Dialect: wire.Mistral}
	for _, tt := range []struct {
		content string
		parts   []convo.Part
		back    string // empty: as it was received
	}{
		{`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"4"}]`, []convo.Part{convo.Reasoning{Text: "hm"}, convo.Text("4")}, ""},
		{`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}],"closed":true},{"type":"text","text":"4"}]`,
			[]convo.Part{convo.Reasoning{Text: "hm", Signature: `{"closed":true,"type":"thinking"}`}, convo.Text("4")}, ""},
		{`[{"type":"text","text":"3"},{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]},{"type":"text","text":"4"}]`,
			[]convo.Part{convo.Text("3"), convo.Reasoning{Text: "hm"}, convo.Text("4")},
			`[{"type":"text","text":"3"},{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"4"}]`},
		{`[{"type":"thinking","thinking":[],"signature":"c2ln"},{"type":"text","text":"4"}]`,
			[]convo.Part{convo.Reasoning{Signature: `{"signature":"c2ln","type":"thinking"}`}, convo.Text("4")}, ""},
		{`[{"type":"thinking","thinking":"hm"},{"type":"text","text":"4"}]`, []convo.Part{convo.Reasoning{Text: "hm"}, convo.Text("4")},
			`[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"4"}]`},
		{`[{"type":"thinking","thinking":[{"type":"text","text":"hm","x":1}]},{"type":"text","text":"4"}]`,
			[]convo.Part{convo.Opaque{Format: "mistral", JSON: `{"type":"thinking","thinking":[{"type":"text","text":"hm","x":1}]}`}, convo.Text("4")}, ""},
		{`[{"type":"thinking","thinking":[]},{"type":"text","text":"4"}]`, []convo.Part{convo.Text("4")}, `"4"`},
		// The SDK github.com/mistralai/client-python: a thought may hold references.
		{`[{"type":"thinking","thinking":[{"type":"reference","reference_ids":[1]}]},{"type":"text","text":"4"}]`,
			[]convo.Part{convo.Opaque{Format: "mistral", JSON: `{"type":"thinking","thinking":[{"type":"reference","reference_ids":[1]}]}`}, convo.Text("4")}, ""},
	} {
		in := mustDecode(t, f, []byte(`{"model":"magistral-medium-2509","choices":[{"message":{"role":"assistant","content":`+tt.content+`}}]}`))
		assert.Empty(t, in.Lost)
		assert.Equal(t, tt.parts, in.Messages[0].Parts)
		h := relaxed(t, convo.Overheads{}, asked(in.Messages[0])...)
		back := tt.back
		if back == "" {
			back = tt.content
		}
		r := mustEncode(t, f, h.Snapshot())
		assert.JSONEq(t, `{"role":"assistant","content":`+back+`}`, string(r.Messages[1]))
		assert.Empty(t, f.Check(r.Body()))
		if _, ok := tt.parts[0].(convo.Opaque); ok {
			continue
		}
		for _, other := range []wire.OpenAIChat{{Dialect: wire.Mistral, Model: "mistral-large"}, {Dialect: wire.Mistral, Reasoning: convo.ReplayNone}, {Dialect: wire.Mistral, Host: "h"}, {Host: "h"}} {
			r := mustEncode(t, other, h.Snapshot())
			assert.NotContains(t, string(r.Messages[1]), "thinking")
		}
	}
	// In other dialects it is a part like any other.
	in := mustDecode(t, wire.OpenAIChat{}, []byte(`{"role":"assistant","content":[{"type":"thinking","thinking":[]}]}`))
	assert.Equal(t, []convo.Part{convo.Opaque{Format: "openai-chat", JSON: `{"type":"thinking","thinking":[]}`}}, in.Messages[0].Parts)
	// Fields that Mistral does not have are for hosts.
	m := convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Format: "mistral", Model: "m"}, Parts: []convo.Part{
		convo.Reasoning{ID: "reasoning", Text: "hm"}, convo.Reasoning{ID: "rs", Text: "ha", Signature: `{"type":"thinking"}`}, convo.Text("a"),
		convo.Reasoning{Signature: `{"extra_content":{}}`}, convo.ToolCall{ID: "abcdefghi", Name: "f", Arguments: "{}"},
	}}
	const calls = `"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}`
	assert.Contains(t, lines(t, f, asked(m)...), `{"role":"assistant","content":"a",`+calls+`}]}`)
	assert.Contains(t, lines(t, wire.OpenAIChat{Dialect: wire.Mistral, Model: "m"}, asked(m)...),
		`{"role":"assistant","content":"a","reasoning":"hm","reasoning_details":[{"id":"rs","text":"ha","type":"thinking"}],`+calls+`,"extra_content":{}}]}`)
	// With calls and without a text, the thought is the whole content.
	in = mustDecode(t, f, []byte(`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}],"tool_calls":[{"id":"abcdefghi","function":{"name":"f","arguments":"{}"}}]}`))
	r := mustEncode(t, f, convo.NewSnapshot(asked(in.Messages[0])))
	assert.JSONEq(t, `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}],"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}`, string(r.Messages[1]))
}

// A recorded stream of a thinking model of Mistral.
func TestMistral_RecordedThinking(t *testing.T) {
	recordedEvents(t, "mistral__mistral-reasoning", func(e event) bool { return strings.Contains(e.data, `"finish_reason":"stop"`) }, func(t *testing.T, events []event) {
		f := wire.OpenAIChat{Dialect: wire.Mistral}
		got, deltas := streamed(t, f, events)
		assert.Empty(t, got.Lost)
		require.Len(t, got.Messages[0].Parts, 2)
		thought := got.Messages[0].Parts[0].(convo.Reasoning)
		_, reasoning, _ := shown(deltas)
		assert.Equal(t, reasoning, thought.Text)
		assert.NotEmpty(t, thought.Text)
		r := mustEncode(t, f, convo.NewSnapshot(asked(got.Messages[0])))
		assert.Contains(t, string(r.Messages[1]), `"content":[{"thinking":[{"type":"text","text":`+jsonOf(thought.Text))
	})
}

// lines returns the system text and the messages of a request, which Check must accept, one
// per line.
func lines(t testing.TB, f wire.Format, msgs ...convo.Message) string {
	t.Helper()
	r := mustEncode(t, f, convo.NewSnapshot(msgs))
	assert.Empty(t, faults(f, r.Body()), "%+v", f)
	return linesOf(r)
}

// The order that the templates published with mistral-common need, in
// https://github.com/mistralai/mistral-common: a user message first, no content that is
// null or empty, and, up to v3, no content next to calls.
func TestMistral_Order(t *testing.T) {
	call := convo.ToolCall{ID: "abcdefghi", Name: "f", Arguments: "{}"}
	mistral := wire.OpenAIChat{Dialect: wire.Mistral}
	assert.Equal(t, `{"role":"system","content":"s"}
{"role":"user","content":"[The earlier part of this conversation is not shown.]"}
{"role":"assistant","content":"a"}
{"role":"user","content":"q"}`, lines(t, mistral, convo.System("s"), convo.Assistant("a"), convo.User("q")))
	assert.Equal(t, `{"role":"user","content":"[The earlier part of this conversation is not shown.]"}
{"role":"assistant","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"abcdefghi","content":"r"}`, lines(t, mistral, convo.Assistant("", call), convo.Result(call, "r")))
	assert.Equal(t, `{"role":"system","content":"s"}
{"role":"user","content":"[The earlier part of this conversation is not shown.]"}`, lines(t, mistral, convo.System("s")))
	msgs := []convo.Message{convo.User("q"), convo.Assistant("Let me see.", call), convo.Result(call, "r"), convo.Assistant("a"), convo.User("and")}
	const calls = `"tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"abcdefghi","content":"r"}
`
	assert.Equal(t, `{"role":"user","content":"q"}
{"role":"assistant","content":"Let me see.",`+calls+`{"role":"assistant","content":"a"}
{"role":"user","content":"and"}`, lines(t, mistral, msgs...))
	mistral.SplitCalls = true
	assert.Equal(t, `{"role":"user","content":"q"}
{"role":"assistant","content":"Let me see."}
{"role":"user","content":"[Continue.]"}
{"role":"assistant",`+calls+`{"role":"assistant","content":"a"}
{"role":"user","content":"and"}`, lines(t, mistral, msgs...))
	assert.Equal(t, `{"role":"user","content":[{"type":"text","text":"q"}]}
{"role":"assistant","content":[{"type":"text","text":"Let me see."}]}
{"role":"user","content":[{"type":"text","text":"[Continue.]"}]}
{"role":"assistant",`+calls+`{"role":"assistant","content":[{"type":"text","text":"a"}]}
{"role":"user","content":[{"type":"text","text":"and"}]}`, lines(t, wire.OpenAIChat{Dialect: wire.StrictAlternation, SplitCalls: true}, msgs...))
	for content, want := range map[string]int{`"content":"",`: 0, ``: 0, `"content":null,`: 1, `"content":"a",`: 1, `"content":[{"type":"text","text":"a"}],`: 1} {
		assert.Len(t, mistral.Check([]byte(`{"messages":[{"role":"user","content":"q"},{"role":"assistant",`+content+strings.ReplaceAll(calls, "\n", ",")[:len(calls)-1]+`]}`)), want, content)
	}
	msgs[1].Parts = slices.Insert(msgs[1].Parts, 0, convo.Part(convo.Reasoning{ID: "reasoning", Text: "hm"}))
	msgs[1].Origin.Format = "openai-chat@h"
	assert.Contains(t, lines(t, wire.OpenAIChat{Host: "h", SplitCalls: true}, msgs...), `
{"role":"assistant","content":"Let me see.","reasoning":"hm"}
{"role":"user","content":"[Continue.]"}
{"role":"assistant","tool_calls":`)
	msgs[1].Parts = slices.Delete(msgs[1].Parts, 1, 2)
	assert.Contains(t, lines(t, wire.OpenAIChat{Host: "h", SplitCalls: true}, msgs...), `
{"role":"assistant","reasoning":"hm","tool_calls":`, "nothing is to be split")
}

// templateRoles returns the roles of a request that the templates of old Mistral models
// count: users, and the assistant without calls. It fails the test if a message breaks a
// rule of v3 of these templates.
func templateRoles(t *testing.T, body []byte) (roles []string) {
	t.Helper()
	var all struct{ Messages []map[string]any }
	require.NoError(t, json.Unmarshal(body, &all))
	for i, m := range all.Messages {
		content, has := m["content"]
		require.False(t, has && (content == nil || content == "") && m["role"] == "assistant", "%s", body)
		calls := callsOf(m)
		require.False(t, has && len(calls) > 0, "%s", body)
		for _, c := range calls {
			require.Regexp(t, `^[a-zA-Z0-9]{9}$`, c.(map[string]any)["id"])
		}
		switch role := m["role"].(string); {
		case role == "system":
			require.Zero(t, i)
		case role == "user" || role == "assistant" && len(calls) == 0:
			roles = append(roles, role)
		}
	}
	return roles
}

// The roles of any conversation alternate as the templates count them.
func TestOpenAIChat_StrictDialectsAlternate(t *testing.T) {
	split := wire.OpenAIChat{Dialect: wire.StrictAlternation, SplitCalls: true}
	gemma := wire.OpenAIChat{Dialect: wire.Gemma}
	tools := 0
	for seed := range long.Or(70, 200) {
		h := relaxedOf(t)
		g := &generator{rng: rand.New(rand.NewPCG(uint64(seed), 21)), h: h, origins: origins}
		if seed%2 == 0 {
			h.Append(convo.System("s"))
		}
		for range 20 {
			g.step()
		}
		for _, f := range []wire.OpenAIChat{split, gemma} {
			r := mustEncode(t, f, h.Snapshot())
			for i, role := range templateRoles(t, r.Body()) {
				require.Equal(t, []string{"user", "assistant"}[i%2], role, "%s", r.Body())
			}
			if f.Dialect == wire.Gemma {
				require.NotContains(t, string(r.Body()), `"tool_calls"`)
				require.NotContains(t, string(r.Body()), `"role":"tool"`)
				require.False(t, r.NeedsTools)
				tools += strings.Count(string(r.Body()), `{\"tool_response\":`)
			}
		}
	}
	assert.Positive(t, tools)
}

// The results of one round and the user message after them are one message.
func TestGemma_ToolsAreText(t *testing.T) {
	a, b := convo.ToolCall{ID: "a", Name: "f", Arguments: `{"n":1.0}`}, convo.ToolCall{ID: "b", Name: "odd name", Arguments: "oops"}
	assert.Equal(t, `{"role":"user","content":[{"type":"text","text":"q"}]}
{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"text","text":"{\"tool_call\":{\"name\":\"f\",\"arguments\":{\"n\":1.0}}}"},{"type":"text","text":"{\"tool_call\":{\"name\":\"odd_20name_xef5bac77\",\"arguments\":{\"invalid_arguments\":\"oops\"}}}"}]}
{"role":"user","content":[{"type":"text","text":"{\"tool_response\":{\"name\":\"f\",\"content\":\"one\\n\\\"two\\\"\"}}"},{"type":"text","text":"{\"tool_response\":{\"name\":\"odd_20name_xef5bac77\",\"content\":\"Error: no\"}}"},{"type":"text","text":"stop"}]}
{"role":"assistant","content":[{"type":"text","text":"well"}]}
{"role":"user","content":[{"type":"text","text":"and"}]}`,
		lines(t, wire.OpenAIChat{Dialect: wire.Gemma}, convo.User("q"), convo.Assistant("Let me see.", a, b),
			convo.ResultError(b, fmt.Errorf("no")), convo.Result(a, "one\n\"two\""), convo.User("stop"), convo.Assistant("well"), convo.User("and")))
}

// The templates of Gemma 1 and 2, and Mistral's first, refuse a system message. Google
// recommends the system text in the first user message, before the user's text:
// https://ai.google.dev/gemma/docs/core/prompt-structure
func TestGemma_SystemTextIsOfTheUser(t *testing.T) {
	png := convo.Media{MIME: "image/png", Data: "eA=="}
	block := convo.Opaque{Format: "openai-chat", JSON: `{"type":"text","text":"x"}`}
	for _, tt := range []struct {
		msgs       []convo.Message
		want, lost string
	}{
		{[]convo.Message{convo.System("Only reply like a \"pirate\"."), convo.System("Be kind."), convo.User("What is it?"), convo.Assistant("Arrr, 'tis 42,")},
			`{"role":"user","content":[{"type":"text","text":"Only reply like a \"pirate\".\n\nBe kind.\n\nWhat is it?"}]}
{"role":"assistant","content":[{"type":"text","text":"Arrr, 'tis 42,"}]}`, ""},
		{[]convo.Message{convo.System("s"), convo.User("", png)},
			`{"role":"user","content":[{"type":"text","text":"s\n\n"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}`, ""},
		{[]convo.Message{convo.System("s")},
			`{"role":"user","content":[{"type":"text","text":"s\n\n[The earlier part of this conversation is not shown.]"}]}`, ""},
		{[]convo.Message{convo.System("s"), convo.Assistant("a")},
			`{"role":"user","content":[{"type":"text","text":"s\n\n[The earlier part of this conversation is not shown.]"}]}
{"role":"assistant","content":[{"type":"text","text":"a"}]}`, ""},
		{[]convo.Message{{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("s"), png, block}}, convo.User("q")},
			`{"role":"user","content":[{"type":"text","text":"s\n\n[image/png, not shown]\n\nq"}]}`, "entry 1, part 1: media\nentry 1, part 2: block"},
		{[]convo.Message{{Role: convo.RoleSystem, Parts: []convo.Part{block}}, convo.User("q")},
			`{"role":"user","content":[{"type":"text","text":"q"}]}`, "entry 1, part 0: block"},
	} {
		f := wire.OpenAIChat{Dialect: wire.Gemma}
		r := mustEncode(t, f, convo.NewSnapshot(tt.msgs))
		assert.Equal(t, tt.want, lines(t, f, tt.msgs...))
		lost := listed(r.Lost)
		assert.Equal(t, tt.lost, strings.Join(lost, "\n"))
	}
}

// Different calls are sent with different ids, even if one has the id that another was
// replaced by, and a result has the id of its call.
func TestMistral_IDsStayDifferent(t *testing.T) {
	f, nine := wire.OpenAIChat{Dialect: wire.Mistral}, regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	own := []string{"", "c1", "call_0123456789", "toolu_01", "abcdefghi", "ABCDEFGHI", "abcdefgh", "abcdefghij", "日本語日本語日本語", "a-b_c.d:e"}
	for i := range long.Or(300, 2000) {
		own = append(own, fmt.Sprintf("call_%d", i), fmt.Sprintf("%09d", i))
	}
	for range long.Or(3, 4) { // other calls have the ids that replace these
		var msgs []convo.Message
		for i, id := range own {
			call := convo.ToolCall{ID: id, Name: "f", Arguments: "{}"}
			msgs = append(msgs, convo.Assistant("", call), convo.Result(call, fmt.Sprint("of ", i)))
		}
		r := mustEncode(t, f, convo.NewSnapshot(msgs))
		require.Empty(t, f.Check(r.Body()))
		in := mustDecode(t, f, r.Body())
		seen := map[string]bool{}
		n := 0
		for k, m := range in.Messages {
			for _, c := range m.ToolCalls() {
				require.True(t, nine.MatchString(c.ID), c.ID)
				require.False(t, seen[c.ID], c.ID)
				seen[c.ID] = true
				answer := in.Messages[k+1].ToolResults()[0]
				require.Equal(t, c.ID, answer.CallID)
				require.Equal(t, fmt.Sprint("of ", n), answer.Text())
				n++
			}
		}
		require.Equal(t, len(own), n)
		more := slices.Clone(own[:100])
		for id := range seen {
			more = append(more, id)
		}
		slices.Sort(more)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		own = more[:min(len(more), 3000)]
	}
}

// An empty refusal is left out.
func TestRefusal_EmptyIsNothing(t *testing.T) {
	for _, tt := range []struct {
		f    wire.Format
		body string
		want []convo.Part
	}{
		{wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":"a","refusal":""}}]}`, []convo.Part{convo.Text("a")}},
		{wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":[{"type":"refusal","refusal":""},{"type":"refusal","refusal":null},{"type":"text","text":"a"}]}}]}`, []convo.Part{convo.Text("a")}},
		{wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":null,"refusal":""},"finish_reason":"stop"}]}`, nil},
		{wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"no"}}]}`, []convo.Part{convo.Opaque{Format: "openai-chat", JSON: `{"type":"refusal","refusal":"no"}`}}},
		{wire.OpenAIResponses{}, `{"object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":""}]}]}`, []convo.Part{convo.Text("a")}},
		{wire.OpenAIResponses{}, `{"object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]}`, []convo.Part{convo.Opaque{Format: "openai-responses", JSON: `{"type":"refusal","refusal":"no"}`}}},
	} {
		in := mustDecode(t, tt.f, []byte(tt.body))
		assert.Empty(t, in.Lost, tt.body)
		if tt.want == nil {
			assert.Empty(t, in.Messages)
			continue
		}
		require.Len(t, in.Messages, 1, tt.body)
		assert.Equal(t, tt.want, in.Messages[0].Parts, tt.body)
		r := mustEncode(t, tt.f, convo.NewSnapshot(asked(in.Messages[0])))
		assert.Equal(t, strings.Contains(tt.body, `"no"`), strings.Contains(string(r.Body()), "refusal"))
	}
	// A stored empty refusal is not sent.
	for _, f := range []wire.Format{wire.OpenAIChat{}, wire.OpenAIResponses{}} {
		format := map[bool]string{true: "openai-chat", false: "openai-responses"}[f == wire.Format(wire.OpenAIChat{})]
		m := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("a"), convo.Opaque{Format: format, JSON: `{"type":"refusal","refusal":""}`}}}
		assert.NotContains(t, lines(t, f, convo.User("q"), m, convo.User("and")), "refusal")
	}
}
