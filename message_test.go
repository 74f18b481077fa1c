package convo_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestMessage_Constructors(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f"}
	assert.Empty(t, convo.User("").Parts)
	assert.Empty(t, convo.System("").Parts)
	assert.Equal(t, []convo.Part{call}, convo.Assistant("", call).Parts, "no empty text beside calls")
	assert.Equal(t, []convo.Part{convo.ToolResult{CallID: "c", Name: "f"}}, convo.Result(call, "").Parts)
	assert.Equal(t, "unknown error", convo.ResultError(call, nil).Text())
	assert.True(t, convo.ResultError(call, assert.AnError).ToolResults()[0].IsError)
	assert.Equal(t, convo.Media{MIME: "a/b", Data: "AQI="}, convo.NewMedia("a/b", []byte{1, 2}))
}

func TestMessage_Accessors(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f"}
	m := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{
		convo.Reasoning{Text: "r1"}, convo.Text("a"), call, convo.Reasoning{Signature: "s"}, convo.Text("b"), convo.Reasoning{Text: "r2"},
	}}
	assert.Equal(t, "a\nb", m.Text())
	assert.Equal(t, "r1\nr2", m.Reasoning())
	assert.Equal(t, []convo.ToolCall{call}, m.ToolCalls())
	assert.Empty(t, m.ToolResults())
	two := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
		convo.ToolResult{Parts: []convo.Part{convo.Text("x"), convo.NewMedia("a/b", nil), convo.Text("y")}}, convo.ToolResult{}, convo.ToolResult{Parts: []convo.Part{convo.Text("z")}},
	}}
	assert.Equal(t, "x\ny\nz", two.Text())
	assert.Len(t, two.ToolResults(), 3)
}

func TestToolCall_Valid(t *testing.T) {
	for arguments, want := range map[string]bool{
		"": true, " \n": true, "{}": true, " {\"a\": 1} ": true, `{"a":{"b":[1.0,null]}}`: true,
		"null": false, "[]": false, "1": false, `"{}"`: false, "{": false, "}": false, `{"a":`: false, `{'a':1}`: false,
		"{}{}": false, "{} and more": false, "\ufeff{}": false, "oops": false,
	} {
		assert.Equal(t, want, convo.ToolCall{Arguments: arguments}.Valid(), "%q", arguments)
	}
}

// Every part has a form in JSON, and what has another form is refused.
func TestMessageJSON_Forms(t *testing.T) {
	for data, want := range map[string]convo.Message{
		`{"role":"user","author":"ann","meta":"m","parts":[{"type":"text","text":""},{"type":"media","mime":"a/b","data":"AAAA","url":"u"}]}`: {
			Role: convo.RoleUser, Author: "ann", Meta: "m", Parts: []convo.Part{convo.Text(""), convo.Media{MIME: "a/b", Data: "AAAA", URL: "u"}}},
		`{"role":"assistant","origin":{"format":"f","model":"m","container":"c"},"parts":[{"type":"reasoning","id":"i","text":"t","signature":"s","encrypted":"e"},{"type":"reasoning"},{"type":"tool_call","id":"c","name":"n","arguments":"{}","minted":true},{"type":"opaque","format":"f","json":"1"}]}`: {
			Role: convo.RoleAssistant, Origin: convo.Origin{Format: "f", Model: "m", Container: "c"}, Parts: []convo.Part{
				convo.Reasoning{ID: "i", Text: "t", Signature: "s", Encrypted: "e"}, convo.Reasoning{}, convo.ToolCall{ID: "c", Name: "n", Arguments: "{}", Minted: true}, convo.Opaque{Format: "f", JSON: "1"}}},
		`{"role":"tool","parts":[{"type":"tool_result","name":"n","call_id":"c","is_error":true,"cleared":true,"parts":[{"type":"text","text":"x"},{"type":"media","mime":"a/b","url":"u"},{"type":"opaque","format":"f","json":"{}"}]}]}`: {
			Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Name: "n", IsError: true, Cleared: true, Parts: []convo.Part{
				convo.Text("x"), convo.Media{MIME: "a/b", URL: "u"}, convo.Opaque{Format: "f", JSON: "{}"}}}}},
	} {
		var m convo.Message
		require.NoError(t, json.Unmarshal([]byte(data), &m))
		assert.Equal(t, want, m)
		again, err := json.Marshal(m)
		require.NoError(t, err)
		assert.JSONEq(t, data, string(again))
	}
	for _, data := range []string{
		`{}`, `{"role":""}`, `{"role":"robot"}`, `{"role":"user","extra":1}`, `{"role":"user","parts":[null]}`, `[]`, `"x"`,
		`{"role":"user","parts":[{"type":"text","text":"x","parts":[]}]}`,
		`{"role":"user","parts":[{"type":"text","text":"x","parts":[{"type":"text"}]}]}`,
		`{"role":"user","parts":[{"type":"text","extra":1}]}`,
		`{"role":"user","parts":[{"text":"x"}]}`,
		`{"role":"user","parts":[{"type":"robot"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_result"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_call"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"reasoning"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"robot"}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"text","parts":[]}]}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"text","extra":1}]}]}`,
	} {
		m := convo.User("as it was")
		assert.Error(t, json.Unmarshal([]byte(data), &m), data)
		assert.Equal(t, convo.User("as it was"), m)
	}
	m := convo.User("as it was")
	require.NoError(t, json.Unmarshal([]byte(" null "), &m))
	assert.Equal(t, convo.User("as it was"), m)
	for _, part := range []convo.Part{nil, foreignPart{}, convo.ToolResult{Parts: []convo.Part{convo.ToolResult{}}},
		convo.ToolResult{Parts: []convo.Part{convo.ToolCall{}}}, convo.ToolResult{Parts: []convo.Part{convo.Reasoning{}}}, convo.ToolResult{Parts: []convo.Part{nil}}} {
		_, err := json.Marshal(convo.Message{Role: convo.RoleTool, Parts: []convo.Part{part}})
		assert.ErrorContains(t, err, "is not allowed here", "%#v", part)
	}
}

// Bytes behind a message's JSON are refused, even if UnmarshalJSON is called
// directly.
func TestMessageJSON_TrailingBytes(t *testing.T) {
	data := `{"role":"user","parts":[{"type":"text","text":"u"}]}`
	for _, behind := range []string{"x", " {}", ",", "]", "\v", data} {
		var m convo.Message
		err := m.UnmarshalJSON([]byte(data + behind))
		_, ok := errors.AsType[*convo.MessageError](err)
		assert.True(t, ok, "%q: %v", behind, err)
		assert.Zero(t, m)
	}
	var m convo.Message
	require.NoError(t, m.UnmarshalJSON([]byte(" "+data+" \r\n\t")))
	assert.Equal(t, "u", m.Text())
	require.Error(t, m.UnmarshalJSON([]byte("null\v")))
	require.NoError(t, m.UnmarshalJSON([]byte(" null\n")))
	assert.Equal(t, "u", m.Text())
}

// What can be decoded can be encoded, and decodes to the same message again.
func FuzzMessageJSON(f *testing.F) {
	for _, s := range []string{
		`{"role":"user","parts":[{"type":"text","text":"hi"}]}`,
		`{"role":"assistant","origin":{"format":"f","model":"m","container":"c"},"parts":[{"type":"reasoning","text":"t","signature":"s"},{"type":"tool_call","id":"c","name":"n","arguments":"{\"a\": 1.0}"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","call_id":"c","is_error":true,"parts":[{"type":"text","text":"r"},{"type":"media","mime":"image/png","data":"AAAA"}]}]}`,
		`{"role":"user","author":"bob","meta":"m","parts":[{"type":"opaque","format":"f","json":"{}"}]}`,
		`{"role":"tool","parts":[{"type":"tool_result","parts":[{"type":"tool_result"}]}]}`,
		`{"role":"robot"}`, `null`, `{"role":"user","parts":[null]}`, `[[[[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m convo.Message
		if json.Unmarshal(data, &m) != nil {
			require.Equal(t, convo.Message{}, m, "a failed decode leaves the target alone")
			return
		}
		once, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("decoded %s and cannot encode it: %v", data, err)
		}
		if m.Role == convo.RoleNone {
			return // null
		}
		var again convo.Message
		require.NoError(t, json.Unmarshal(once, &again))
		require.Equal(t, m, again)
	})
}
