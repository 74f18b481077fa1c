package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// ToolTokens returns the tokens that the tool definitions of a request take with a model,
// for [convo.Limits].Tools:
//
//	limits.Tools, err = wire.ToolTokens("claude-opus-5", tools, nil)
//
// The tools argument is the JSON of the request, in the format of any provider: the array
// of tools, or an object that holds it in "tools" or in "toolConfig", such as the whole
// request. Empty input, null and an empty array take 0 tokens. A nil tokenizer means
// [convo.Heuristic]. If tools is not JSON or not a list of objects, ToolTokens returns a
// *DecodeError.
//
//   - OpenAI is counted by the recipe of its Cookbook ("How to count tokens with
//     tiktoken"): for each function 7, or 10 up to GPT-4, and its name and description.
//     Parameters add 3; for each parameter 3, and its name, type and description; for an
//     enum 3 for each value, minus 3, and the values; and 12 if there is any function.
//     Nested parameters count like parameters. Everything that the recipe does not mention
//     counts as JSON.
//   - Anthropic is counted as JSON, with the system prompt that it adds for tools ("Tool
//     use", section "Pricing", October 2026). The prompt depends on the model and on
//     whether tool_choice forces a call, which only a whole request shows. It has 286 or
//     406 tokens with Claude Opus 5, 354 or 474 with Sonnet 5 and unlisted models, 496 or
//     588 with Haiku 4.5.
//   - Others are counted as JSON.
//
// The result is a first estimate, which usage reports correct.
func ToolTokens(model string, tools []byte, t convo.Tokenizer) (int, error) {
	list, forced, err := toolList(tools)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	if t == nil {
		t = convo.Heuristic{}
	}
	r := rulesOf(model)
	if r == nil {
		r = &modelRules{}
	}
	c := toolCounter{tokenizer: t, function: r.function}
	n, functions := int64(0), false
	for i, raw := range list {
		tool, err := fields(atIndex("tools", i), raw)
		if err != nil {
			return 0, err
		}
		f, ok := openAIFunction(tool)
		if ok && r.function > 0 {
			functions = true
			n += c.openAI(f)
		} else {
			n += c.text(compact(raw))
		}
	}
	if functions {
		n += 12
	}
	if forced {
		n += r.prompt.forced
	} else {
		n += r.prompt.auto
	}
	return int(min(n, math.MaxInt32)), nil
}

// toolList returns the tools, and reports whether the model must call one.
func toolList(data []byte) (list []json.RawMessage, forced bool, err error) {
	if isNull(bytes.TrimSpace(data)) {
		return nil, false, nil
	}
	path, at := "", data
	if kindOf(data) == '{' {
		all, err := fields("", data)
		if err != nil {
			return nil, false, err
		}
		path, at = "tools", all["tools"]
		choice := all["tool_choice"]
		if config := all["toolConfig"]; isNull(at) && !isNull(config) {
			if all, err = fields("toolConfig", config); err != nil {
				return nil, false, err
			}
			path, at, choice = "toolConfig.tools", all["tools"], all["toolChoice"]
		} else if isNull(choice) {
			choice = all["toolChoice"]
		}
		if isNull(at) {
			return nil, false, nil
		}
		forced = isForced(choice)
	}
	return list, forced, read(path, "an array of tools", at, &list)
}

// isForced reports whether a tool_choice of Anthropic, or a toolChoice of Converse,
// forces the model to call a tool.
func isForced(choice json.RawMessage) bool {
	if kindOf(choice) != '{' {
		return false
	}
	all, err := fields("-", choice)
	if err != nil {
		return false
	}
	kind := stringOf(all["type"])
	return kind == "any" || kind == "tool" || kind == "" && (!isNull(all["any"]) || !isNull(all["tool"]))
}

// openAIFunction returns the function in a tool of Chat Completions or Responses. It
// returns false for other tools.
func openAIFunction(tool map[string]json.RawMessage) (map[string]json.RawMessage, bool) {
	if stringOf(tool["type"]) != "function" {
		return nil, false
	}
	if kindOf(tool["function"]) != '{' {
		return tool, true
	}
	f, err := fields("-", tool["function"])
	return f, err == nil
}

// A toolCounter counts functions by OpenAI's recipe.
type toolCounter struct {
	tokenizer convo.Tokenizer
	function  int64
}

func (c *toolCounter) text(s string) int64 {
	if s == "" {
		return 0
	}
	return min(max(int64(c.tokenizer.CountTokens(s)), 0), math.MaxInt32)
}

func (c *toolCounter) openAI(f map[string]json.RawMessage) int64 {
	n := c.function + c.text(label(f["name"])+":"+description(f))
	if kindOf(f["parameters"]) == '{' {
		n += c.schema(f["parameters"], 0)
	}
	return n
}

// schema counts the fields of a JSON schema, except its type and description,
// which properties counts.
func (c *toolCounter) schema(raw json.RawMessage, depth int) int64 {
	all, err := fields("-", raw)
	if err != nil || depth > maxDepth {
		return c.text(compact(raw))
	}
	var n int64
	for key, value := range all {
		switch kind := kindOf(value); {
		case key == "type" || key == "description" || key == "required" || key == "title" || key == "$schema":
		case key == "additionalProperties" && kind != '{':
		case key == "properties" && kind == '{':
			n += c.properties(value, depth)
		case key == "items" && kind == '{':
			n += c.schema(value, depth+1)
		case key == "enum" && kind == '[':
			n += c.enum(value)
		default:
			n += c.text(key + ":" + compact(value))
		}
	}
	return n
}

func (c *toolCounter) properties(raw json.RawMessage, depth int) int64 {
	all, err := fields("-", raw)
	if err != nil || len(all) == 0 {
		return 0
	}
	n := int64(3)
	for name, value := range all {
		n += 3
		if kindOf(value) != '{' {
			n += c.text(name + ":" + compact(value))
			continue
		}
		p, err := fields("-", value)
		if err != nil {
			continue
		}
		n += c.text(name+":"+label(p["type"])+":"+description(p)) + c.schema(value, depth+1)
	}
	return n
}

func (c *toolCounter) enum(raw json.RawMessage) int64 {
	var list []json.RawMessage
	if read("-", "an array", raw, &list) != nil || len(list) == 0 {
		return 0
	}
	n := int64(-3)
	for _, v := range list {
		n += 3 + c.text(label(v))
	}
	return n
}

// label returns the value of a JSON string, or the JSON of any other value.
func label(raw json.RawMessage) string {
	if kindOf(raw) == '"' {
		return stringOf(raw)
	}
	return compact(raw)
}

func description(all map[string]json.RawMessage) string {
	s := ""
	if kindOf(all["description"]) == '"' {
		s = label(all["description"])
	}
	return strings.TrimSuffix(s, ".")
}
