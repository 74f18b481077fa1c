package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/formats"
	"github.com/seed-c1b73e60/convo/wire"
)

// formatNames are the names that -format, -from and -to take.
var formatNames = formats.Names()

// newFormat returns the format with a name, for a model.
func newFormat(name, model string) (formats.Format, error) {
	if f := formats.New(name, model); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("there is no format %q; want one of %s", name, strings.Join(formatNames, ", "))
}

// fields returns the fields of a JSON object, or nil.
func fields(raw json.RawMessage) map[string]json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// elements returns the elements of a JSON array, or nil.
func elements(raw json.RawMessage) []json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// str returns a JSON string, or "".
func str(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// modelOf returns the model that a request names, or "".
func modelOf(raw json.RawMessage) string {
	all := fields(raw)
	if m := str(all["modelId"]); m != "" {
		return m
	}
	return str(all["model"])
}

// isRequest reports whether the beginning of an input is that of a request, of an answer or
// of a list of messages, and not that of a session of another program.
func isRequest(head []byte) bool {
	if len(head) == 0 || head[0] == '[' {
		return true
	}
	if bytes.HasPrefix(head, []byte("SQLite format 3")) {
		return false // package session names the program that wrote it
	}
	dec := json.NewDecoder(bytes.NewReader(head))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return true // the reader of documents says what is wrong
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			break
		}
		if slices.Contains([]string{"messages", "contents", "input", "choices", "candidates", "anthropic_version", "modelId", "inferenceConfig", "toolConfig", "systemInstruction", "max_tokens", "generationConfig", "tools", "system"}, key.(string)) {
			return true
		}
		if slices.Contains([]string{"sessionId", "session_id", "payload", "uuid", "parentUuid", "cwd", "timestamp"}, key.(string)) {
			return false
		}
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			break
		}
	}
	return false
}

// recognize returns the format of a request, an answer or a list of messages, and what shows
// it. If nothing does, the format is that of Chat Completions, which is the most common, and
// sign is empty. If raw is none of these, name is empty.
func recognize(raw json.RawMessage) (name, sign string) {
	all := fields(raw)
	list := elements(raw)
	at := ""
	switch {
	case all == nil && len(list) == 0:
		return "", ""
	case all == nil:
	case all["messages"] != nil:
		for _, s := range signs {
			if all[s.field] != nil {
				return s.format, fmt.Sprintf("the field %q", s.field)
			}
		}
		if name, sign := toolSign(all["tools"]); name != "" {
			return name, sign
		}
		if system := elements(all["system"]); len(system) > 0 {
			if block := fields(system[0]); block != nil && block["type"] == nil {
				return wire.FormatConverse, "system[0], which has no type"
			}
		}
		if all["system"] != nil {
			return wire.FormatAnthropic, `the field "system"`
		}
		at, list = "messages", elements(all["messages"])
	case all["contents"] != nil, all["candidates"] != nil, all["systemInstruction"] != nil, all["parts"] != nil:
		return wire.FormatGemini, firstField(all, "contents", "candidates", "systemInstruction", "parts")
	case all["choices"] != nil:
		return wire.FormatOpenAIChat, `the field "choices"`
	case all["stopReason"] != nil && all["output"] != nil:
		return wire.FormatConverse, `the field "stopReason"`
	case all["input"] != nil, all["output"] != nil, all["previous_response_id"] != nil:
		return wire.FormatOpenAIResponses, firstField(all, "input", "output", "previous_response_id")
	case all["stop_reason"] != nil, str(all["type"]) == "message" && all["content"] != nil && all["usage"] != nil:
		return wire.FormatAnthropic, firstField(all, "stop_reason", "type")
	case all["role"] != nil, all["type"] != nil && all["content"] != nil:
		list = []json.RawMessage{raw}
	default:
		return "", ""
	}
	for i, m := range list {
		if name, sign := messageSign(fields(m)); name != "" {
			return name, fmt.Sprintf("%s[%d]%s", at, i, sign)
		}
	}
	if model := modelOf(raw); strings.Contains(model, "claude") {
		return wire.FormatAnthropic, fmt.Sprintf("the model %q", model)
	}
	if at == "" && !slices.ContainsFunc(list, func(m json.RawMessage) bool { return fields(m)["role"] != nil }) {
		return "", ""
	}
	return wire.FormatOpenAIChat, ""
}

func firstField(all map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		if all[name] != nil {
			return fmt.Sprintf("the field %q", name)
		}
	}
	return ""
}

// signs are fields of a request with messages that only one format has.
var signs = []struct{ field, format string }{
	{"toolConfig", wire.FormatConverse}, {"inferenceConfig", wire.FormatConverse}, {"modelId", wire.FormatConverse},
	{"additionalModelRequestFields", wire.FormatConverse}, {"guardrailConfig", wire.FormatConverse},
	{"anthropic_version", wire.FormatAnthropic}, {"anthropic_beta", wire.FormatAnthropic}, {"thinking", wire.FormatAnthropic},
	{"stop_sequences", wire.FormatAnthropic}, {"context_management", wire.FormatAnthropic}, {"mcp_servers", wire.FormatAnthropic},
	{"max_completion_tokens", wire.FormatOpenAIChat}, {"response_format", wire.FormatOpenAIChat}, {"stream_options", wire.FormatOpenAIChat},
	{"reasoning_effort", wire.FormatOpenAIChat}, {"parallel_tool_calls", wire.FormatOpenAIChat}, {"frequency_penalty", wire.FormatOpenAIChat},
	{"presence_penalty", wire.FormatOpenAIChat}, {"logprobs", wire.FormatOpenAIChat}, {"n", wire.FormatOpenAIChat},
}

// toolSign returns the format that a list of tools shows.
func toolSign(raw json.RawMessage) (name, sign string) {
	for i, tool := range elements(raw) {
		all := fields(tool)
		switch {
		case all["input_schema"] != nil:
			return wire.FormatAnthropic, fmt.Sprintf("tools[%d].input_schema", i)
		case all["function"] != nil:
			return wire.FormatOpenAIChat, fmt.Sprintf("tools[%d].function", i)
		}
	}
	return "", ""
}

// messageSign returns the format that a message or an item shows, and where in it.
func messageSign(m map[string]json.RawMessage) (name, sign string) {
	switch {
	case m == nil:
		return "", ""
	case m["parts"] != nil:
		return wire.FormatGemini, ".parts"
	case m["tool_calls"] != nil:
		return wire.FormatOpenAIChat, ".tool_calls"
	case m["tool_call_id"] != nil:
		return wire.FormatOpenAIChat, ".tool_call_id"
	case m["type"] != nil && str(m["type"]) != "message", m["type"] != nil && m["role"] != nil:
		return wire.FormatOpenAIResponses, ".type"
	}
	for i, block := range elements(m["content"]) {
		all := fields(block)
		if all == nil {
			continue
		}
		kind := str(all["type"])
		switch kind {
		case "":
			if len(all) == 1 {
				return wire.FormatConverse, fmt.Sprintf(".content[%d], which has no type", i)
			}
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use":
			return wire.FormatAnthropic, fmt.Sprintf(".content[%d] of the type %q", i, kind)
		case "image":
			return wire.FormatAnthropic, fmt.Sprintf(".content[%d] of the type %q", i, kind)
		case "image_url", "input_audio", "refusal", "file":
			return wire.FormatOpenAIChat, fmt.Sprintf(".content[%d] of the type %q", i, kind)
		case "input_text", "output_text", "input_image", "input_file":
			return wire.FormatOpenAIResponses, fmt.Sprintf(".content[%d] of the type %q", i, kind)
		}
		if all["cache_control"] != nil {
			return wire.FormatAnthropic, fmt.Sprintf(".content[%d].cache_control", i)
		}
		if kind == "text" && str(m["role"]) == "assistant" { // in Chat Completions it is nearly always a string
			return wire.FormatAnthropic, fmt.Sprintf(".content[%d] of the assistant, a block of text", i)
		}
	}
	switch role := str(m["role"]); role {
	case "system", "developer", "tool":
		return wire.FormatOpenAIChat, fmt.Sprintf(".role %q", role)
	}
	return "", ""
}
