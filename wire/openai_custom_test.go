package wire_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// customFields is the block before a call of a custom tool.
func customFields(format string) convo.Opaque {
	return convo.Opaque{Format: format, JSON: `{"type":"convo_fields","call":"custom"}`}
}

// The forms of a call of a custom tool and of its result are those of
// https://platform.openai.com/docs/api-reference/chat/create (messages, tool_calls) and
// https://platform.openai.com/docs/guides/function-calling (custom tools).
const (
	customChat = `{"messages":[{"role":"user","content":"Say hello."},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"custom","custom":{"name":"code_exec","input":"print(\"hello world\")"}},` +
		`{"id":"call_2","type":"function","function":{"name":"f","arguments":"{\"invalid_arguments\":\"oops\"}"}},` +
		`{"id":"call_3","type":"custom","custom":{"name":"code_exec","input":" {\"invalid_arguments\":\"x\"}\n"}}]},` +
		`{"role":"tool","tool_call_id":"call_1","content":"hello world"},{"role":"tool","tool_call_id":"call_2","content":"no"},{"role":"tool","tool_call_id":"call_3","content":"odd"}]}`
	customResponses = `{"input":[{"role":"user","content":"Say hello."},` +
		`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e1"},` +
		`{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"code_exec","input":"print(\"hello world\")"},` +
		`{"type":"function_call","call_id":"call_2","name":"f","arguments":"{\"invalid_arguments\":\"oops\"}"},` +
		`{"type":"custom_tool_call","call_id":"call_3","name":"code_exec","namespace":"tools","input":" {\"invalid_arguments\":\"x\"}\n"},` +
		`{"type":"custom_tool_call_output","call_id":"call_1","output":"hello world"},{"type":"function_call_output","call_id":"call_2","output":"no"},{"type":"custom_tool_call_output","call_id":"call_3","output":"odd"}]}`
)

// A call of a custom tool is a call whose arguments are its input. It is sent back byte
// for byte, for any input. A function call with broken JSON stays a function call.
func TestCustomCalls_GoBackAsTheyCame(t *testing.T) {
	for _, tt := range []struct {
		f       wire.Format
		request string
	}{{wire.OpenAIChat{}, customChat}, {wire.OpenAIResponses{}, customResponses}} {
		assert.Empty(t, tt.f.Check([]byte(tt.request)))
		in := mustDecode(t, tt.f, []byte(tt.request))
		assert.Empty(t, in.Lost)
		require.Len(t, in.Messages, 5)
		var calls []convo.ToolCall
		for _, c := range in.Messages[1].ToolCalls() {
			calls = append(calls, convo.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		assert.Equal(t, []convo.ToolCall{
			{ID: "call_1", Name: "code_exec", Arguments: `print("hello world")`},
			{ID: "call_2", Name: "f", Arguments: "oops"},
			{ID: "call_3", Name: "code_exec", Arguments: " {\"invalid_arguments\":\"x\"}\n"},
		}, calls)
		for i, text := range []string{"hello world", "no", "odd"} {
			r := in.Messages[2+i].ToolResults()[0]
			assert.Equal(t, convo.ToolResult{CallID: calls[i].ID, Name: calls[i].Name, Parts: []convo.Part{convo.Text(text)}}, r)
		}
		r := mustEncode(t, tt.f, restored(t, in))
		assert.Equal(t, tt.request, string(r.Body()))
	}
}

// In other formats a call of a custom tool is a function call with its input inside an
// object.
func TestCustomCalls_AreFunctionCallsElsewhere(t *testing.T) {
	msgs := func(format string) []convo.Message {
		return []convo.Message{convo.User("q"),
			{Role: convo.RoleAssistant, Parts: []convo.Part{customFields(format), convo.ToolCall{ID: "abcdefghi", Name: "sql", Arguments: "SELECT 1"}}},
			convo.Result(convo.ToolCall{ID: "abcdefghi", Name: "sql"}, "1"), convo.Assistant("1")}
	}
	for name, f := range formats {
		for _, format := range []string{"openai-chat", "openai-responses", "deepseek", "mistral", "ollama"} {
			r := mustEncode(t, f, convo.NewSnapshot(msgs(format)))
			body := string(r.Body())
			assert.Empty(t, f.Check(r.Body()), name)
			assert.NotContains(t, body, "convo_fields", name)
			chat, isChat := f.(wire.OpenAIChat)
			_, isResponses := f.(wire.OpenAIResponses)
			custom := isChat && chat.Dialect == wire.OpenAI && format == "openai-chat" || isResponses && format == "openai-responses"
			assert.Equal(t, custom, strings.Contains(body, `"input":"SELECT 1"`), "%s: %s", name, body)
			assert.Equal(t, !custom, strings.Contains(body, "invalid_arguments"), "%s: %s", name, body)
		}
	}
	for _, f := range []wire.OpenAIChat{{}, {Dialect: wire.DeepSeek}, {Dialect: wire.StrictAlternation}} {
		in := mustDecode(t, f, []byte(customChat))
		for _, other := range []wire.Format{wire.OpenAIChat{Dialect: wire.StrictAlternation}, wire.OpenAIResponses{}} {
			r := mustEncode(t, other, restored(t, in))
			assert.Contains(t, string(r.Body()), `{\"invalid_arguments\":\"print(\\\"hello world\\\")\"}`)
		}
	}
}

// A block that marks a call of a custom tool is directly before the call; anywhere else
// it has no effect.
func TestCustomCalls_NeedTheBlockDirectlyBefore(t *testing.T) {
	call := convo.ToolCall{ID: "c1", Name: "f", Arguments: "x"}
	for _, f := range []struct {
		wire.Format
		name string
	}{{wire.OpenAIChat{}, "openai-chat"}, {wire.OpenAIResponses{}, "openai-responses"}} {
		for _, tt := range []struct {
			parts []convo.Part
			want  int
		}{
			{[]convo.Part{customFields(f.name), call}, 1},
			{[]convo.Part{call, customFields(f.name), convo.ToolCall{ID: "c2", Name: "f", Arguments: "x"}}, 1},
			{[]convo.Part{customFields(f.name), call, convo.ToolCall{ID: "c2", Name: "f", Arguments: "x"}}, 1},
			{[]convo.Part{customFields(f.name), convo.Text("a"), call}, 0},
			{[]convo.Part{call, customFields(f.name)}, 0},
			{[]convo.Part{customFields("elsewhere"), call}, 0},
		} {
			r := mustEncode(t, f, convo.NewSnapshot([]convo.Message{convo.User("q"), {Role: convo.RoleAssistant, Parts: tt.parts}}))
			assert.Empty(t, f.Check(r.Body()))
			assert.Equal(t, tt.want, strings.Count(string(r.Body()), `"input":"x"`), "%s", r.Body())
		}
	}
}

// An answer that was cut off in the input of a custom tool has no call, because the text
// of the input does not show whether it is whole. The block with the call's fields is
// also removed.
func TestCustomCalls_ThatWereCutOffAreNotRun(t *testing.T) {
	cut := &convo.ToolCall{ID: "c1", Name: "sql", Arguments: "{}"}
	for _, tt := range []struct {
		f      wire.Format
		answer string
		cut    bool
	}{
		{wire.OpenAIChat{}, `{"choices":[{"finish_reason":"length","message":{"role":"assistant","content":"So:","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sql","input":"{}"}}]}}]}`, true},
		{wire.OpenAIChat{}, `{"choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":"So:","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sql","input":"{}"}}]}}]}`, false},
		{wire.OpenAIResponses{}, `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So:"}]},{"type":"custom_tool_call","call_id":"c1","name":"sql","input":"{}"}]}`, true},
		{wire.OpenAIResponses{}, `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So:"}]},{"type":"custom_tool_call","status":"completed","call_id":"c1","name":"sql","input":"{}"}]}`, false},
	} {
		in := mustDecode(t, tt.f, []byte(tt.answer))
		require.Len(t, in.Messages, 1)
		if tt.cut {
			assert.Equal(t, cut, in.CutOff)
			assert.Equal(t, []convo.Part{convo.Text("So:")}, in.Messages[0].Parts)
		} else {
			assert.Nil(t, in.CutOff)
			assert.Equal(t, []convo.ToolCall{*cut}, in.Reply().OpenCalls())
		}
	}
	for _, tt := range []struct {
		f      wire.Format
		events []event
	}{
		{wire.OpenAIChat{}, chunks(`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"custom","custom":{"name":"sql","input":""}}]}}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"custom":{"input":"{}"}}]}}]}`)},
		{wire.OpenAIResponses{}, chunks(responsesHead, `{"type":"response.output_item.added","output_index":0,"item":{"type":"custom_tool_call","call_id":"c1","name":"sql","input":""}}`,
			`{"type":"response.custom_tool_call_input.delta","output_index":0,"delta":"{}"}`, `{"type":"response.custom_tool_call_input.done","output_index":0,"input":"{}"}`)},
	} {
		s, deltas := feed(t, tt.f, tt.events)
		got, err := s.Transcript()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, cut, got.CutOff)
		assert.Empty(t, got.Messages)
		_, _, calls := shown(deltas)
		assert.Equal(t, []convo.ToolCall{*cut}, calls)
	}
}

// recordedStream feeds a recorded stream, or skips the test.
func recordedStream(t *testing.T, f wire.Format, name string) (wire.Transcript, []wire.Delta) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(streams, name))
	if err != nil {
		t.Skipf("no recorded streams, which are not part of the repository: %v", err)
	}
	in, deltas := streamed(t, f, chunks(strings.Split(strings.TrimSpace(string(data)), "\n")...))
	return in, deltas
}

// A recorded stream of OpenAI with a call of a custom tool, and one of xAI with calls of
// that type which xAI has run itself and which must not be run again.
func TestCustomCalls_InRecordedStreams(t *testing.T) {
	in, deltas := recordedStream(t, wire.OpenAIResponses{}, "openai__responses__openai-custom-tool.1.chunks.txt")
	want := []convo.ToolCall{{ID: "call_custom_sql_001", Name: "write_sql", Arguments: "SELECT * FROM users WHERE age > 25"}}
	assert.Equal(t, want, in.Reply().OpenCalls())
	_, _, calls := shown(deltas)
	assert.Equal(t, want, calls)
	r := mustEncode(t, wire.OpenAIResponses{}, convo.NewSnapshot(append(in.Messages, convo.Result(want[0], "none"))))
	assert.Equal(t, `{"input":[{"type":"custom_tool_call","call_id":"call_custom_sql_001","name":"write_sql","input":"SELECT * FROM users WHERE age > 25"},`+
		`{"type":"custom_tool_call_output","call_id":"call_custom_sql_001","output":"none"}]}`, string(r.Body()))

	in, deltas = recordedStream(t, wire.OpenAIResponses{}, "xai__responses__xai-x-search-tool.chunks.txt")
	assert.Empty(t, in.Reply().OpenCalls())
	_, _, calls = shown(deltas)
	assert.Empty(t, calls)
	blocks := 0
	for _, p := range in.Messages[0].Parts {
		if o, ok := p.(convo.Opaque); ok && strings.Contains(o.JSON, `"custom_tool_call"`) {
			blocks++
		}
	}
	assert.Equal(t, 2, blocks)
}

// In a response with x_search, calls of custom tools that the request defines are for the
// caller.
func TestCustomCalls_BesideThoseOfXSearch(t *testing.T) {
	const body = `{"id":"r","status":"completed","tools":[{"type":"x_search"},{"type":"custom","name":"sql"}],"output":[` +
		`{"type":"custom_tool_call","id":"ctc_1","call_id":"xs_1","name":"x_keyword_search","input":"{}","status":"completed"},` +
		`{"type":"custom_tool_call","id":"ctc_2","call_id":"c1","name":"sql","input":"SELECT 1","status":"completed"}]}`
	in := mustDecode(t, wire.OpenAIResponses{}, []byte(body))
	assert.Equal(t, []convo.ToolCall{{ID: "c1", Name: "sql", Arguments: "SELECT 1"}}, in.Reply().OpenCalls())
	in = mustDecode(t, wire.OpenAIResponses{}, []byte(strings.Replace(body, `"x_search"`, `"web_search"`, 1)))
	assert.Len(t, in.Reply().OpenCalls(), 2)
}

// A call in an Opaque block, which a program with an SDK may keep, does not share its ID
// with a ToolCall.
func TestCustomCalls_InBlocksHaveIDsOfTheirOwn(t *testing.T) {
	block := func(role convo.Role, raw string) convo.Message {
		return convo.Message{Role: role, Parts: []convo.Part{item(raw)}}
	}
	call := block(convo.RoleAssistant, `{"type":"custom_tool_call","call_id":"c1","name":"sql","input":"block"}`)
	output := block(convo.RoleUser, `{"type":"custom_tool_call_output","call_id":"c1","output":"r"}`)
	part := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{customFields("openai-responses"), convo.ToolCall{ID: "c1", Name: "sql", Arguments: "part"}}}
	result := convo.Result(convo.ToolCall{ID: "c1", Name: "sql"}, "s")
	for _, tt := range []struct {
		msgs   []convo.Message
		blocks int
	}{
		{[]convo.Message{call, output, part, result}, 1},
		{[]convo.Message{call, part, result, output}, 1},
		{[]convo.Message{part, result, call, output}, 0},
		{[]convo.Message{call, output, call, output}, 2},
	} {
		f := wire.OpenAIResponses{}
		r := mustEncode(t, f, convo.NewSnapshot(tt.msgs))
		assert.Empty(t, f.Check(r.Body()), "%s", r.Body())
		assert.Equal(t, tt.blocks, strings.Count(string(r.Body()), `"block"`), "%s", r.Body())
		assert.Equal(t, strings.Count(string(r.Body()), `"custom_tool_call"`), strings.Count(string(r.Body()), `"custom_tool_call_output"`))
	}
}

// For any conversation, Decode reads from a request of OpenAI which calls are of custom
// tools, and their inputs, and Encode writes them again.
func TestCustomCalls_SurviveInRandomConversations(t *testing.T) {
	custom, other := 0, 0
	for seed := range long.Or[uint64](80, 500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h := relaxedOf(t)
		g := &generator{rng: rng, h: h, origins: []convo.Origin{{}, {Format: "openai-chat"}, {Format: "openai-responses"}}}
		for range 1 + g.n(16) {
			g.step()
		}
		for _, f := range []wire.Format{wire.OpenAIChat{}, wire.OpenAIResponses{}} {
			r, err := f.Encode(h.Snapshot())
			if err != nil {
				require.ErrorIs(t, err, wire.ErrEmpty)
				continue
			}
			in := mustDecode(t, f, r.Body())
			again := mustEncode(t, f, restored(t, in))
			inputs := inputsOf(t, r.Body())
			require.Equal(t, inputs, inputsOf(t, again.Body()), "seed %d: %s", seed, r.Body())
			for _, in := range inputs {
				if strings.HasPrefix(in, "custom") {
					custom++
				} else {
					other++
				}
			}
		}
	}
	assert.Positive(t, custom)
	assert.Positive(t, other)
}

// inputsOf returns the kinds and the inputs of the calls in a request of OpenAI.
func inputsOf(t *testing.T, body []byte) (all []string) {
	t.Helper()
	type function struct{ Arguments, Input string }
	var r struct {
		Messages []struct {
			Calls []struct {
				Type     string
				Function *function
				Custom   *function
			} `json:"tool_calls"`
		}
		Input []struct {
			Type             string
			Arguments, Input string
		}
	}
	require.NoError(t, json.Unmarshal(body, &r))
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			if c.Custom != nil {
				all = append(all, c.Type+" "+c.Custom.Input)
			} else {
				all = append(all, c.Type+" "+c.Function.Arguments)
			}
		}
	}
	for _, it := range r.Input {
		switch it.Type {
		case "function_call", "custom_tool_call":
			all = append(all, it.Type+" "+it.Arguments+it.Input)
		}
	}
	return all
}
