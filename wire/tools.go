package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// ToolTokens returns what the tool definitions of a request weigh with a
// model, for [convo.Limits].Overhead:
//
//	limits.Overhead, err = wire.ToolTokens("claude-opus-5", tools, nil)
//
// The tools are JSON as the caller sends them, in the format of any provider:
// the array, or an object that has it as "tools" or in "toolConfig", such as
// the whole request. Nothing, null and an empty array weigh 0. A nil tokenizer
// is [convo.Heuristic]. What is not JSON or no list of objects is a
// *DecodeError.
//
//   - OpenAI, by the recipe of its Cookbook (How to count tokens with
//     tiktoken): 7 for each function, 10 up to GPT-4, and its name and
//     description; 3 for having parameters and 3 for each, and its name, type and
//     description; 3 for each value of an enum, less 3, and the value; 12 for
//     having functions. Parameters of parameters count like parameters, what the
//     recipe does not speak of as JSON.
//   - Anthropic (Tool use: Pricing, October 2026): the JSON, and the system
//     prompt that comes with tools. It differs by model and by whether tool_choice
//     forces a call, which only a whole request tells: 286 or 406 with Claude Opus
//     5, 354 or 474 with Sonnet 5 and with those not in the list, 496 or 588 with
//     Haiku 4.5.
//   - Others: the JSON.
//
// It is a first guess; a usage report takes its place.
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

// A toolsPrompt is what Anthropic adds to a request with tools: where the model
// may call one, and where it has to.
type toolsPrompt struct{ auto, forced int64 }

// toolList finds the tools, and tells whether one has to be called.
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

// isForced reads the choice of Anthropic and of Converse.
func isForced(choice json.RawMessage) bool {
	if kindOf(choice) != '{' {
		return false
	}
	all, err := fields("-", choice)
	if err != nil {
		return false
	}
	kind, _ := plainString(all["type"])
	return kind == "any" || kind == "tool" || kind == "" && (!isNull(all["any"]) || !isNull(all["tool"]))
}

// openAIFunction returns the function that a tool of Chat Completions or of
// Responses is, if it is one.
func openAIFunction(tool map[string]json.RawMessage) (map[string]json.RawMessage, bool) {
	if kind, _ := plainString(tool["type"]); kind != "function" {
		return nil, false
	}
	if kindOf(tool["function"]) != '{' {
		return tool, true
	}
	f, err := fields("-", tool["function"])
	return f, err == nil
}

// A toolCounter counts functions as OpenAI shows them to its models.
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

// maxDepth is how deep parameters are looked through. What is deeper counts as
// JSON.
const maxDepth = 32

// schema counts what stands in a JSON schema, beside what its property's line
// says of it.
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

// label is a string, or the JSON of what is none.
func label(raw json.RawMessage) string {
	if s, ok := plainString(raw); ok {
		return s
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
