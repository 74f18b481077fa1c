package wire_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// withoutMinted returns copies of msgs without the IDs that Decode made. Each ID must be
// unique, and each call must be marked.
func withoutMinted(t testing.TB, msgs []convo.Message) []convo.Message {
	t.Helper()
	minted := map[string]bool{}
	var out []convo.Message
	for _, m := range msgs {
		parts := m.Parts
		m.Parts = nil
		for _, p := range parts {
			switch q := p.(type) {
			case convo.ToolCall:
				if q.Minted {
					require.NotEmpty(t, q.ID)
					require.False(t, minted[q.ID], "the ID of another call")
					minted[q.ID] = true
					q.ID, q.Minted = "", false
				}
				require.False(t, strings.HasPrefix(q.ID, "call_") && len(q.ID) == 21, "an ID that is not marked")
				p = q
			case convo.ToolResult:
				if minted[q.CallID] {
					q.CallID = ""
				}
				p = q
			}
			m.Parts = append(m.Parts, p)
		}
		for i, p := range m.Parts { // a signature has the ID of its call
			if r, ok := p.(convo.Reasoning); ok && minted[r.ID] {
				r.ID = ""
				m.Parts[i] = r
			}
		}
		out = append(out, m)
	}
	return out
}

// If a provider answers with several calls of one tool and no ids, each call gets an ID,
// so that results may come in any order. The next request has no ids, because the answer
// had none.
func TestDecode_CallsWithoutIDs(t *testing.T) {
	for name, tt := range map[string]struct {
		f            wire.Format
		answer, want string
	}{
		"gemini": {wire.Gemini{Model: "gemini-2.5-pro"},
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"n":1}}},{"functionCall":{"name":"f","args":{"n":2}}}]}}]}`,
			`[{"functionResponse":{"name":"f","response":{"output":"first"}}},{"functionResponse":{"name":"f","response":{"output":"second"}}}]`},
		"ollama": {wire.OpenAIChat{Dialect: wire.Ollama},
			`{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"n":1}}},{"function":{"name":"f","arguments":{"n":2}}}]}}`,
			`{"role":"tool","tool_name":"f","content":"first"},{"role":"tool","tool_name":"f","content":"second"}`},
	} {
		in := mustDecode(t, tt.f, []byte(tt.answer), name)
		calls := in.Messages[0].ToolCalls()
		require.Len(t, calls, 2, name)
		h := historyOf(t, convo.User("q"), in.Messages[0])
		for i, said := range []string{"second", "first"} { // as they are ready
			mustAppend(t, h, convo.Result(calls[1-i], said))
		}
		r := mustEncode(t, tt.f, h.Snapshot())
		body := string(r.Body())
		assert.Contains(t, body, tt.want, name)
		assert.NotContains(t, body, calls[0].ID, name)
		assert.NotContains(t, body, `"id"`, name)
		assert.Empty(t, tt.f.Check([]byte(body)), name)

		// Decoded again, the results still belong to their calls.
		back := mustDecode(t, tt.f, []byte(body))
		h2, err := convo.Restore(convo.NewSnapshot(back.Messages), nil)
		require.NoError(t, err)
		again := mustEncode(t, tt.f, h2.Snapshot())
		assert.Equal(t, body, string(again.Body()), name)
	}
}

// If one of the calls of a message has its own ID, all are sent with an ID.
func TestEncode_SendsMintedIDsBesideOthers(t *testing.T) {
	msgs := []convo.Message{
		convo.User("q"),
		convo.Assistant("", convo.ToolCall{ID: "made", Minted: true, Name: "f"}, convo.ToolCall{ID: "given", Name: "f"}),
		convo.Result(convo.ToolCall{ID: "given", Name: "f"}, "of given"), convo.Result(convo.ToolCall{ID: "made", Name: "f"}, "of made"),
	}
	for _, f := range []wire.Format{wire.Gemini{}, wire.OpenAIChat{Dialect: wire.Ollama}, wire.OpenAIChat{}} {
		r := mustEncode(t, f, convo.NewSnapshot(msgs))
		assert.Equal(t, 2, strings.Count(string(r.Body()), `"made"`), "%T", f)
		assert.Equal(t, 2, strings.Count(string(r.Body()), `"given"`), "%T", f)
	}
	msgs[1].Parts[1] = convo.ToolCall{ID: "given", Minted: true, Name: "f"}
	r := mustEncode(t, wire.OpenAIChat{}, convo.NewSnapshot(msgs))
	assert.Contains(t, string(r.Body()), `"made"`, "where ids are needed, these are sent")
}

// A call with the id of an earlier call of its message gets another id, in every format
// that can hold such a message, and results keep their order.
func TestDecode_CallsWithTheSameID(t *testing.T) {
	for name, tt := range map[string]struct {
		f    wire.Format
		body string
	}{
		"openai chat": {wire.OpenAIChat{}, `[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"g","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c","content":"of f"},{"role":"tool","tool_call_id":"c","content":"of g"}]`},
		"anthropic": {wire.Anthropic{}, `[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"tool_use","id":"c","name":"g","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"of f"},{"type":"tool_result","tool_use_id":"c","content":"of g"}]}]`},
		"converse": {wire.Converse{}, `[{"role":"user","content":[{"text":"q"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"f","input":{}}},{"toolUse":{"toolUseId":"c","name":"g","input":{}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"c","content":[{"text":"of f"}]}},{"toolResult":{"toolUseId":"c","content":[{"text":"of g"}]}}]}]`},
		"gemini": {wire.Gemini{}, `[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"c","name":"f"}},{"functionCall":{"id":"c","name":"g"}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"output":"of f"}}},{"functionResponse":{"id":"c","name":"g","response":{"output":"of g"}}}]}]`},
	} {
		in := mustDecode(t, tt.f, []byte(tt.body), name)
		require.Len(t, in.Lost, 1, name)
		assert.Equal(t, "an id that another call of the message has, too", in.Lost[0].What, name)
		h := historyOf(t)
		_, err := h.Append(in.Messages...)
		require.NoError(t, err, name)
		for _, e := range h.Snapshot().All() {
			for _, r := range e.Message.ToolResults() {
				assert.Equal(t, "of "+r.Name, r.Text(), name)
			}
		}
	}
}

// oddArguments are arguments that models wrote when they made a mistake or were cut off,
// and arguments that look like Encode's form of these.
var oddArguments = []string{
	`{"path": "a.go", "text": "cut o`, `{'path': 'a.go'}`, `{"a":1}{"b":2}`, `{"a":1} and so on`, "oops", "[1, 2]", "null", "7", `"text"`, `""`, "{", "}", "\\", `\"`,
	"line\nbreak\ttab\x01", "<tool>x</tool>", "日本語", strings.Repeat("[", 20_000), strings.Repeat(`{"a":`, 12_000) + "1" + strings.Repeat("}", 12_000),
	`{"invalid_arguments":"oops"}`, `{"invalid_arguments":"{}"}`, ` { "invalid_arguments" : "a" } `, `{"invalid_arguments":1}`, `{"invalid_arguments":"a","b":2}`,
	`{"arguments":"oops"}`, `{"invalid_arguments":"{\"invalid_arguments\":\"x\"}"}`,
}

// callInText returns a call that is sent as a text, in the form of a message with a call.
func callInText(t *testing.T, f wire.Format, body []byte) []byte {
	t.Helper()
	in := mustDecode(t, f, body)
	var said struct {
		Call json.RawMessage `json:"tool_call"`
	}
	require.NoError(t, json.Unmarshal([]byte(in.Messages[1].Text()), &said))
	return []byte(`{"role":"assistant","tool_calls":[{"id":"c","function":` + string(said.Call) + `}]}`)
}

// Every format sends any arguments as an object that Check accepts, and Decode restores
// what the model wrote.
func checkArguments(t *testing.T, arguments string) {
	t.Helper()
	call := convo.ToolCall{ID: "c12345678", Name: "f", Arguments: arguments}
	h := historyOf(t)
	id, err := h.Append(convo.User("q"), convo.Assistant("", call))
	require.NoError(t, err)
	e, ok := h.Snapshot().Find(id)
	require.True(t, ok)
	stored := e.Message.ToolCalls()[0].Arguments
	mustAppend(t, h, convo.ResultError(call, fmt.Errorf("not a JSON object")))
	for name, f := range formats {
		r := mustEncode(t, f, h.Snapshot())
		require.Empty(t, f.Check(r.Body()), "%s: %.500s", name, r.Body())
		body := r.Body()
		if chat, ok := f.(wire.OpenAIChat); ok && chat.Dialect == wire.Gemma {
			body = callInText(t, f, body)
		}
		in := mustDecode(t, f, body, name)
		var got []convo.ToolCall
		for _, m := range in.Messages {
			got = append(got, m.ToolCalls()...)
		}
		require.Len(t, got, 1, name)
		want := stored
		if strings.TrimSpace(stored) == "" {
			want = "{}"
		}
		// If a provider takes arguments as an object and not as text, white space around
		// a valid object is lost. To keep it, Encode would have to send the object inside
		// another object, which the model would read as its own call.
		sent := got[0].Arguments
		switch strings.Fields(name)[0] {
		case "ollama", "gemma", "anthropic", "gemini", "converse":
			if got[0].Valid() {
				want, sent = strings.TrimSpace(want), strings.TrimSpace(sent)
			}
		}
		require.Equal(t, want, sent, name)
		require.Equal(t, convo.ToolCall{Arguments: want}.Valid(), got[0].Valid(), name)
		for _, l := range in.Lost {
			require.NotContains(t, l.Path, "rguments", name)
		}
	}
}

// Arguments come back as they were.
func FuzzArguments(f *testing.F) {
	for _, arguments := range append(oddArguments, "", " \n", "{}", `{"n": 1.0, "big": 12345678901234567890}`, " {\"n\" : 1 }\n") {
		f.Add(arguments)
	}
	f.Fuzz(func(t *testing.T, arguments string) { checkArguments(t, arguments) })
}

// Arguments are the same on every path from the model to the History.
func TestArguments_AreTreatedAlike(t *testing.T) {
	for _, arguments := range oddArguments {
		raw, err := json.Marshal(arguments)
		require.NoError(t, err)
		decoded := mustDecode(t, wire.OpenAIChat{}, fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":%s}}]}`, raw))
		events := []event{{data: `{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}]}`}}
		for piece := range slices.Chunk([]rune(arguments), 7) {
			part, err := json.Marshal(string(piece))
			require.NoError(t, err)
			events = append(events, event{data: fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}}]}`, part)})
		}
		events = append(events, event{data: `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`}, event{data: "[DONE]"})
		stream, _ := streamed(t, wire.OpenAIChat{}, events)
		call := convo.ToolCall{ID: "c", Name: "f", Arguments: arguments}
		saved, err := json.Marshal(convo.Assistant("", call))
		require.NoError(t, err)
		var loaded convo.Message
		require.NoError(t, json.Unmarshal(saved, &loaded))
		if strings.HasPrefix(arguments, `{"invalid_arguments":"`) && !strings.Contains(arguments, `"b"`) || strings.HasPrefix(arguments, ` { "inv`) {
			continue // Decode reads these as Encode's form of other arguments
		}
		for path, m := range map[string]convo.Message{"Decode": decoded.Messages[0], "Stream": stream.Messages[0], "JSON": loaded} {
			assert.Equal(t, []convo.ToolCall{call}, m.ToolCalls(), path)
			h := historyOf(t)
			_, err = h.Append(convo.User("q"), m)
			require.NoError(t, err, "%s: %.100s", path, arguments)
			back, err := convo.Restore(h.Snapshot(), nil)
			require.NoError(t, err)
			e, _ := back.Snapshot().At(1)
			assert.Equal(t, []convo.ToolCall{call}, e.Message.ToolCalls(), path)
		}
	}
}
