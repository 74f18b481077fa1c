package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

func TestAnthropic_Rules(t *testing.T) {
	const use, result = `{"type":"tool_use","id":"t1","name":"f","input":{}}`, `{"type":"tool_result","tool_use_id":"t1","content":"r"}`
	const search, found = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`
	body := func(messages string) string {
		return `{"model":"claude-opus-5","max_tokens":9,"messages":[` + messages + `]}`
	}
	user := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	said := func(blocks string) string { return `{"role":"assistant","content":[` + blocks + `]}` }
	old := strings.NewReplacer("claude-opus-5", "claude-opus-4-5")
	ask := user(text("q"))
	const prefill = "This model does not support assistant message prefill. The conversation must end with a user message."
	const unanswered = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
	const waits = "messages.1: `web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block"
	checkRules(t, "/v1/messages", []ruleTest{
		{"accepted", body(ask), ""},
		{"accepted: a string", body(`{"role":"user","content":"q"}`), ""},
		{"accepted: a round", body(ask + "," + said(text("a")+","+use) + "," + user(result+","+text("q"))), ""},
		{"accepted: users in a row", body(ask + "," + ask), ""},
		{"accepted: assistant first", body(said(text("a")) + "," + ask), ""},
		{"accepted: assistant last", old.Replace(body(ask + "," + said(text("a")))), ""},
		{"accepted: a search", body(ask + "," + said(search+","+found+","+text("a")) + "," + ask), ""},
		{"accepted: a paused answer", body(ask + "," + said(search)), ""},
		{"accepted: a search waits for a tool", body(ask + "," + said(search+","+use) + "," + user(result)), ""},
		{"accepted: system after a user", strings.Replace(body(ask+`,{"role":"system","content":"s"}`), "opus-5", "opus-5-5", 1), ""},
		{"not JSON", `{`, "The request body is not valid JSON: unexpected EOF"},
		{"model", `{"max_tokens":9,"messages":[` + ask + `]}`, "model: Field required"},
		{"max_tokens", `{"model":"m","messages":[` + ask + `]}`, "max_tokens: Field required"},
		{"messages", `{"model":"m","max_tokens":9}`, "messages: Field required"},
		{"messages of another kind", `{"model":"m","max_tokens":9,"messages":5}`, "messages: Input should be a valid list"},
		{"no message", body(""), "messages: at least one message is required"},
		{"a field", strings.Replace(body(ask), `"max_tokens"`, `"max_token":1,"max_tokens"`, 1), "max_token: Extra inputs are not permitted"},
		{"a field of a message", body(`{"role":"user","content":"q","name":"n"}`), "messages.0.name: Extra inputs are not permitted"},
		{"a field of a block", body(user(`{"type":"text","text":"q","x":1}`)), "messages.0.content.0.text.x: Extra inputs are not permitted"},
		{"role", body(`{"role":"tool","content":"q"}`), "messages.0.role: Input should be 'user' or 'assistant'"},
		{"system in an old model", old.Replace(body(ask + `,{"role":"system","content":"s"}`)), "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role."},
		{"system after the assistant", body(ask + "," + said(text("a")) + `,{"role":"system","content":"s"},` + ask), "messages.2: a `system` message must follow a `user` message, and must be last or precede an `assistant` message"},
		{"system text", strings.Replace(body(ask), `"messages"`, `"system":[{"type":"image"}],"messages"`, 1), "system.0.type: Input should be 'text'"},
		{"system of another kind", strings.Replace(body(ask), `"messages"`, `"system":5,"messages"`, 1), "system: Input should be a valid list"},
		{"no content", body(`{"role":"user"}`), "messages.0.content: Field required"},
		{"content of another kind", body(`{"role":"user","content":5}`), "messages.0.content: Input should be a valid list"},
		{"empty content", body(ask + "," + said("") + "," + ask), "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{"empty text", body(user(text(""))), "messages: text content blocks must be non-empty"},
		{"blank text", body(user(text(`\n`))), "messages: text content blocks must contain non-whitespace text"},
		{"no type", body(user(`{}`)), "messages.0.content.0.type: Field required"},
		{"a call of the user", body(user(use)), "messages.0: `tool_use` blocks can only be in `assistant` messages"},
		{"a result of the assistant", body(ask + "," + said(result)), "messages.1: `tool_result` blocks can only be in `user` messages"},
		{"id", body(ask + "," + said(strings.Replace(use, "t1", "t.1", 1))), "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		{"name", body(ask + "," + said(strings.Replace(use, `"f"`, `"f.g"`, 1))), "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"input", body(ask + "," + said(strings.Replace(use, `{}`, `"{}"`, 1))), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		{"unanswered", body(ask + "," + said(use) + "," + ask), unanswered},
		{"unanswered at the end", body(ask + "," + said(use)), unanswered},
		{"a text after a call", body(ask + "," + said(use+","+text("a")) + "," + user(result)), unanswered},
		{"a text before a result", body(ask + "," + said(use) + "," + user(text("q")+","+result)), unanswered},
		{"an unknown result", body(ask + "," + said(text("a")) + "," + user(result)), "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."},
		{"two results", body(ask + "," + said(use) + "," + user(result+","+result)), "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1"},
		{"an id twice", body(ask + "," + said(use+","+use) + "," + user(result)), "messages.1.content.1: `tool_use` ids must be unique"},
		{"an error without text", body(ask + "," + said(use) + "," + user(`{"type":"tool_result","tool_use_id":"t1","is_error":true}`)), "messages.2.content.0: content cannot be empty if `is_error` is true"},
		{"an image", body(user(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"AA=="}}`)), "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"},
		{"a search without result", body(ask + "," + said(search+","+text("a")) + "," + ask), waits},
		{"a paused answer and a user", body(ask + "," + said(search) + "," + ask), waits},
		{"a text after the result of a tool", body(ask + "," + said(search+","+use) + "," + user(result+","+text("q"))), waits},
		{"a result without search", body(ask + "," + said(found+","+text("a")) + "," + ask), "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: s1. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it."},
		{"prefill", body(ask + "," + said(text("a"))), prefill},
		{"space at the end", old.Replace(body(ask + "," + said(text("a ")))), "messages: final assistant content cannot end with trailing whitespace"},
		{"unsigned thinking", body(ask + "," + said(thinking("h")+","+text("a")) + "," + ask), "messages.1.content.0.thinking.signature: Field required"},
		{"thinking at the end of a message", body(ask + "," + said(text("a")+`,{"type":"redacted_thinking","data":"d"}`) + "," + ask), ""},
		{"thinking at the end", old.Replace(body(ask + "," + said(`{"type":"redacted_thinking","data":"d"}`))), "messages.1: The final block in an assistant message cannot be `thinking`."},
		{"no thinking first", strings.Replace(body(ask+","+said(use)+","+user(result)), `"messages"`, `"thinking":{"type":"enabled","budget_tokens":1024},"messages"`, 1), "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."},
		{"cache marks", body(user(strings.Repeat(`{"type":"text","text":"q","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}`)), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"cache marks on tools, too", strings.Replace(body(user(strings.Repeat(`{"type":"text","text":"q","cache_control":{"type":"ephemeral"}},`, 3)+text("q"))), `"messages"`, `"cache_control":{"type":"ephemeral"},"tools":[{"name":"a","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages"`, 1), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{"an hour after five minutes", strings.Replace(body(user(`{"type":"text","text":"q","cache_control":{"type":"ephemeral","ttl":"1h"}}`)), `"messages"`, `"tools":[{"name":"a","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages"`, 1), "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."},
		{"a tool's name", strings.Replace(body(ask), `"messages"`, `"tools":[{"name":"a b","input_schema":{"type":"object"}}],"messages"`, 1), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"},
		{"a tool's schema", strings.Replace(body(ask), `"messages"`, `"tools":[{"name":"a"}],"messages"`, 1), "tools.0.custom.input_schema: Field required"},
		{"tools of one name", strings.Replace(body(ask), `"messages"`, `"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}],"messages"`, 1), "tools: Tool names must be unique."},
		{"too long", body(user(text(strings.Repeat("x", 5000)))), "prompt is too long: 1259 tokens > 1000 maximum"},
		{"a signature that nobody made", strings.Replace(body(ask+","+said(`{"type":"thinking","thinking":"h","signature":"c2ln"},`+text("a"))+","+ask), "opus-5", "opus-5-5", 1), "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."},
	})
}

// Literal errors have the form of the API.
func TestAnthropic_Error(t *testing.T) {
	status, got := post(t, provider.New(provider.Options{}), "/v1/messages", `{"model":"m","max_tokens":1,"messages":[]}`)
	assert.Equal(t, 400, status)
	var e struct {
		Type      string
		Error     struct{ Type, Message string }
		RequestID string `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(got), &e))
	assert.Equal(t, "error", e.Type)
	assert.Equal(t, "invalid_request_error", e.Error.Type)
	assert.NotEmpty(t, e.RequestID)
}

// Models differ in what they accept.
func TestAnthropic_Models(t *testing.T) {
	for _, tt := range []struct {
		model                  string
		prefill, system, seals bool // refused, accepted, checked
	}{
		{"claude-3-5-sonnet-20241022", false, false, false},
		{"claude-3-opus-20240229", false, false, false},
		{"claude-sonnet-4-5-20250929", false, false, false},
		{"claude-opus-4-6", true, false, false},
		{"claude-opus-4-8", true, true, false},
		{"claude-sonnet-5", true, true, false},
		{"claude-fable-5", true, true, false},
		{"anthropic.claude-fable-5.1", true, true, true},
		{"claude-haiku-5-5@20261001", true, true, true},
		{"us.anthropic.claude-opus-5-5-20261001-v1:0", true, true, true},
		{"claude-next-7", true, true, true},
		{"another", true, true, true},
	} {
		try := func(messages string) bool {
			_, got := post(t, provider.New(provider.Options{}), "/v1/messages", `{"model":"`+tt.model+`","max_tokens":1,"messages":[`+messages+`]}`)
			return strings.Contains(got, "end_turn")
		}
		const said = `,{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"c2ln"},{"type":"text","text":"a"}]}`
		assert.Equal(t, tt.prefill, !try(question+`,{"role":"assistant","content":"a"}`), tt.model)
		assert.Equal(t, tt.system, try(question+`,{"role":"system","content":"a"}`), tt.model)
		assert.Equal(t, tt.seals, !try(question+said+","+again), tt.model)
	}
}

func TestAnthropic_Usage(t *testing.T) {
	s := provider.New(provider.Options{Count: func([]byte) int { return 100 }})
	usage := func(messages string) provider.Usage {
		_, got := post(t, s, "/v1/messages", `{"model":"m","max_tokens":1,"tools":[{"name":"t","input_schema":{"type":"object"}}],"system":"s","messages":[`+messages+`]}`)
		var a struct {
			Usage struct {
				Input  int `json:"input_tokens"`
				Read   int `json:"cache_read_input_tokens"`
				Write  int `json:"cache_creation_input_tokens"`
				Output int `json:"output_tokens"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got), &a))
		u := provider.Usage{Input: a.Usage.Input + a.Usage.Read + a.Usage.Write, CacheRead: a.Usage.Read, CacheWrite: a.Usage.Write, Output: a.Usage.Output}
		all := s.Requests()
		assert.Equal(t, u, all[len(all)-1].Usage)
		return u
	}
	marked := strings.Replace(question, `"text":"a"`, `"text":"a","cache_control":{"type":"ephemeral"}`, 1)
	assert.Equal(t, provider.Usage{Input: 300, Output: 100}, usage(question))
	assert.Equal(t, provider.Usage{Input: 300, CacheWrite: 300, Output: 100}, usage(marked))
	assert.Equal(t, provider.Usage{Input: 300, CacheRead: 300, Output: 100}, usage(marked))
	assert.Equal(t, provider.Usage{Input: 400, CacheRead: 300, CacheWrite: 100, Output: 100}, usage(question+","+strings.Replace(marked, `"a"`, `"b"`, 1)))
	assert.Equal(t, provider.Usage{Input: 300, CacheWrite: 300, Output: 100}, usage(strings.Replace(marked, `"a"`, `"A"`, 1)))
	s.Script(provider.Answer{Usage: &provider.Usage{Input: 9, CacheRead: 2, Output: 1}})
	assert.Equal(t, provider.Usage{Input: 9, CacheRead: 2, Output: 1}, usage(marked))
}
