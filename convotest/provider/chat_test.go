package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

func TestChat_Rules(t *testing.T) {
	const ask, said = `{"role":"user","content":"q"}`, `{"role":"assistant","content":"a"}`
	const use = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	const one, two = `{"role":"tool","tool_call_id":"c1","content":"r"}`, `{"role":"tool","tool_call_id":"c2","content":""}`
	body := func(messages ...string) string {
		return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
	}
	changed := func(message, old, new string) string {
		require.Contains(t, message, old)
		return strings.Replace(message, old, new, 1)
	}
	const orphan = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
	unanswered := "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
	checkRules(t, "/v1/chat/completions", []ruleTest{
		{"accepted", body(ask, said, ask), ""},
		{"accepted: a round", body(ask, use, two, one, ask), ""},
		{"accepted: no alternation", body(said, said, `{"role":"system","content":"s"}`, ask, ask), ""},
		{"accepted: no content beside calls", body(ask, changed(use, `"content":null,`, ""), one, two), ""},
		{"model", `{"messages":[` + ask + `]}`, "you must provide a model parameter"},
		{"no messages", `{"model":"m"}`, "Missing required parameter: 'messages'."},
		{"messages of another kind", `{"model":"m","messages":{}}`, "Invalid type for 'messages': expected an array of objects, but got an object instead."},
		{"empty", body(), "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{"role", body(`{"role":"bot","content":"q"}`), "Invalid value: 'bot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."},
		{"no role", body(`{"content":"q"}`), "Missing required parameter: 'messages[0].role'."},
		{"null", body(ask, `{"role":"assistant","content":null}`), "Invalid value for 'content': expected a string, got null."},
		{"no content", body(`{"role":"user"}`), "Invalid value for 'content': expected a string, got null."},
		{"content of another kind", body(`{"role":"user","content":5}`), "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got a number instead."},
		{"empty content", body(`{"role":"user","content":[]}`), "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{"content without type", body(`{"role":"user","content":[{}]}`), "Missing required parameter: 'messages[0].content[0].type'."},
		{"content without text", body(`{"role":"user","content":[{"type":"text"}]}`), "Missing required parameter: 'messages[0].content[0].text'."},
		{"content of the wrong type", body(`{"role":"assistant","content":[{"type":"image_url"}]}`), "Invalid value: 'image_url'. Supported values are: 'text' and 'refusal'."},
		{"an image in a result", body(ask, use, changed(one, `"r"`, `[{"type":"image_url"}]`), two), "Invalid 'messages[2]'. Content blocks are expected to be either text or image_url type."},
		{"no calls", body(ask, `{"role":"assistant","content":"a","tool_calls":[]}`), "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."},
		{"long id", body(ask, changed(use, "c1", strings.Repeat("c", 41)), one, two), "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead."},
		{"no id", body(ask, changed(use, `"id":"c1",`, ""), one, two), "Missing required parameter: 'messages[1].tool_calls[0].id'."},
		{"no name", body(ask, changed(use, `"name":"f"`, `"name":""`), one, two), "Invalid 'messages[1].tool_calls[0].function.name': empty string. Expected a string with minimum length 1, but got an empty string instead."},
		{"name", body(ask, changed(use, `"name":"f"`, `"name":"f.g"`), one, two), "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{"arguments", body(ask, changed(use, `"{}"`, `{}`), one, two), "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead."},
		{"type of a call", body(ask, changed(use, `"type":"function"`, `"type":"x"`), one, two), "Invalid value: 'x'. Supported values are: 'function' and 'custom'."},
		{"author", body(`{"role":"user","content":"q","name":"a b"}`), `Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern '^[^\s<|\\/>]+$'.`},
		{"unanswered", body(ask, use, one, ask), unanswered + "c2"},
		{"unanswered at the end", body(ask, use), unanswered + "c1, c2"},
		{"a result without call", body(ask, one), orphan},
		{"a result after a message", body(ask, use, one, two, ask, one), orphan},
		{"a result too many", body(ask, use, one, two, one), orphan},
		{"a result without id", body(ask, use, `{"role":"tool","content":"r"}`), "Missing required parameter: 'messages[2].tool_call_id'."},
		{"options of a stream", changed(body(ask), `"model"`, `"stream_options":{},"model"`), "The 'stream_options' parameter is only allowed when 'stream' is enabled."},
		{"too many tools", changed(body(ask), `"model"`, `"tools":[`+strings.Repeat(`{"type":"function","function":{"name":"f"}},`, 128)+`{"type":"function","function":{"name":"f"}}],"model"`), "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead."},
		{"a tool's name", changed(body(ask), `"model"`, `"tools":[{"type":"function","function":{"name":"f g"}}],"model"`), "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{"a tool's type", changed(body(ask), `"model"`, `"tools":[{"function":{"name":"f"}}],"model"`), "Missing required parameter: 'tools[0].type'."},
		{"too long", body(changed(ask, `"q"`, `"`+strings.Repeat("x", 5000)+`"`)), "This model's maximum context length is 1000 tokens. However, your messages resulted in 1259 tokens. Please reduce the length of the messages."},
	})
}

func TestChat_Answer(t *testing.T) {
	s := provider.New(provider.Options{Count: func([]byte) int { return 10 }})
	_, got := post(t, s, "/v1/chat/completions", `{"model":"m","messages":[]}`)
	assert.JSONEq(t, `{"error":{"message":"Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.","type":"invalid_request_error","param":"messages","code":"empty_array"}}`, got)
	const head = `{"model":"m","messages":[{"role":"user","content":"a"}`
	post(t, s, "/v1/chat/completions", head+`]}`)
	s.Script(provider.Answer{Stop: "length", Blocks: []provider.Block{provider.Text("a"), provider.Text("b")}})
	_, got = post(t, s, "/v1/chat/completions", head+`,{"role":"user","content":"b"}]}`)
	var a struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got), &a))
	assert.Equal(t, "ab", a.Choices[0].Message.Content)
	assert.Equal(t, "length", a.Choices[0].FinishReason)
	assert.Equal(t, 20, a.Usage.Prompt)
	assert.Equal(t, 10, a.Usage.Details.Cached)
}
