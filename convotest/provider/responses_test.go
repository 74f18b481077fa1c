package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
)

func TestResponses_Rules(t *testing.T) {
	const ask, said = `{"role":"user","content":"q"}`, `{"role":"assistant","content":[{"type":"output_text","text":"a"}]}`
	const use, output = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`, `{"type":"function_call_output","call_id":"c1","output":"r"}`
	const custom = `{"type":"custom_tool_call","call_id":"c1","name":"f","input":"i"}`
	body := func(items ...string) string { return `{"model":"m","input":[` + strings.Join(items, ",") + `]}` }
	changed := func(item, old, new string) string {
		require.Contains(t, item, old)
		return strings.Replace(item, old, new, 1)
	}
	const program, ran = `{"type":"program","id":"cm_1","call_id":"p1","code":"f()"}`, `{"type":"program_output","id":"cmo_1","call_id":"p1","result":"r"}`
	const shell = `{"type":"shell_call","id":"sh_1","call_id":"p1","action":{"commands":["ls"]}}`
	s := provider.New(provider.Options{})
	s.Script(provider.Answer{Blocks: []provider.Block{provider.Thinking("h")}})
	_, got := post(t, s, "/v1/responses", `{"model":"m","input":"q","include":["reasoning.encrypted_content"]}`)
	_, think, _ := strings.Cut(got, `"output":[`)
	think, _, _ = strings.Cut(think, `],"status"`)
	require.Contains(t, think, "encrypted_content")
	_, id, _ := strings.Cut(think, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	nameless := strings.Replace(think, `"id":"`+id+`",`, "", 1)
	bare := `{"type":"reasoning","id":"rs_9","summary":[]}`
	follows := "Item '" + id + "' of type 'reasoning' was provided without its required following item."
	checkRules(t, "/v1/responses", []ruleTest{
		{"accepted", body(ask, said, ask), ""},
		{"accepted: a text", `{"model":"m","input":"q"}`, ""},
		{"accepted: a round", body(ask, use, output), ""},
		{"accepted: a result later", body(ask, use, ask, output), ""},
		{"accepted: a custom tool", body(ask, custom, changed(output, "function_call", "custom_tool_call")), ""},
		{"accepted: reasoning", body(ask, think, use, output, nameless, said), ""},
		{"accepted: an item of the provider's", body(ask, think, `{"type":"web_search_call","id":"ws_1","status":"completed"}`), ""},
		{"accepted: a program under way", body(ask, program, use, output), ""},
		{"accepted: a program", body(ask, program, use, output, ran, said), ""},
		{"accepted: a shell", body(ask, shell, changed(ran, "program", "shell_call")), ""},
		{"model", `{"input":"q"}`, "Missing required parameter: 'model'."},
		{"no input", `{"model":"m"}`, "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided."},
		{"input of another kind", `{"model":"m","input":5}`, "Invalid type for 'input': expected one of a string or array of objects, but got a number instead."},
		{"a previous answer", changed(body(ask), `"model"`, `"previous_response_id":"resp_x","model"`), "Previous response with id 'resp_x' not found."},
		{"role", body(`{"role":"tool","content":"q"}`), "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."},
		{"no type", body(`{}`), "Missing required parameter: 'input[0].type'."},
		{"no content", body(`{"role":"user"}`), "Missing required parameter: 'input[0].content'."},
		{"content of another kind", body(`{"role":"user","content":5}`), "Invalid type for 'input[0].content': expected one of an array of objects or string, but got a number instead."},
		{"content of the user from the assistant", body(changed(said, "output_text", "input_text")), "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."},
		{"content of no type", body(`{"role":"user","content":[{"type":"text","text":"q"}]}`), "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'."},
		{"unanswered", body(ask, use), "No tool output found for function call c1."},
		{"an unanswered program", body(ask, program, use, output, ask), "No tool output found for program p1."},
		{"an unanswered shell", body(ask, shell), "No tool output found for shell call p1."},
		{"the output of no program", body(ask, ran, said), "No tool call found for program output with call_id p1."},
		{"an unknown result", body(ask, output), "No tool call found for function call output with call_id c1."},
		{"a result of another kind", body(ask, custom, output), "No tool call found for function call output with call_id c1."},
		{"a result before its call", body(ask, output, use), "No tool call found for function call output with call_id c1."},
		{"no result", body(ask, use, changed(output, `,"output":"r"`, "")), "Missing required parameter: 'input[2].output'."},
		{"long id", body(ask, changed(use, "c1", strings.Repeat("c", 65))), "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead."},
		{"name", body(ask, changed(use, `"f"`, `"f.g"`)), "Invalid 'input[1].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{"arguments", body(ask, changed(use, `"{}"`, `{}`)), "Invalid type for 'input[1].arguments': expected a string, but got an object instead."},
		{"id of an item", body(ask, changed(use, "fc_1", "call_1"), output), "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'."},
		{"reasoning at the end", body(ask, think), follows},
		{"reasoning without id at the end", body(ask, nameless), "Item 'input[1]' of type 'reasoning' was provided without its required following item."},
		{"an item twice", body(ask, use, output, use), "Duplicate item found with id fc_1. Remove duplicate items from your input and try again."},
		{"reasoning before a user", body(ask, think, ask), follows},
		{"reasoning before a result", body(ask, use, think, output), follows},
		{"reasoning of another server", body(ask, changed(bare, `"summary"`, `"encrypted_content":"x","summary"`), said), "The encrypted content for item rs_9 could not be verified. Reason: Encrypted content could not be decrypted or parsed."},
		{"reasoning that is not stored", changed(body(ask, bare, said), `"model"`, `"store":false,"model"`), "Item with id 'rs_9' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."},
		{"reasoning that nobody has", body(ask, bare, said), "Item with id 'rs_9' not found."},
		{"reasoning without summary", body(ask, changed(bare, `,"summary":[]`, ""), said), "Missing required parameter: 'input[1].summary'."},
		{"a tool's name", changed(body(ask), `"model"`, `"tools":[{"type":"function","name":"f g"}],"model"`), "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."},
		{"too long", body(changed(ask, `"q"`, `"`+strings.Repeat("x", 5000)+`"`)), "Your input exceeds the context window of this model. Please adjust your input and try again."},
	})
}

func TestResponses_Incomplete(t *testing.T) {
	s := provider.New(provider.Options{})
	s.Script(provider.Answer{Stop: "max_output_tokens", Blocks: []provider.Block{provider.Text("a"), provider.Served{Name: "web_search", Input: `{"type":"search"}`}}})
	_, got := post(t, s, "/v1/responses", `{"model":"m","input":"q"}`)
	assert.Contains(t, got, `"incomplete_details":{"reason":"max_output_tokens"}`)
	assert.Contains(t, got, `"type":"web_search_call"`)
}
