package provider

import (
	"fmt"
	"strings"
)

// chat is the Chat Completions API.
type chat struct{ openAI }

func (chat) tooLong(tokens, window int) *problem {
	return &problem{
		status: 400, kind: "invalid_request_error", code: "context_length_exceeded", param: "messages",
		text: fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", window, tokens),
	}
}

func (chat) parts(c *call) (parts []part) {
	for _, t := range list(c.all["tools"]) {
		parts = append(parts, newPart("tools", t))
	}
	for _, m := range list(c.all["messages"]) {
		parts = append(parts, newPart("", m))
	}
	return parts
}

// A chatCheck checks the messages.
type chatCheck struct {
	openAICheck
	open []string // the ids of calls without result
	call int      // index of the message with them
}

func (chat) check(c *call) *problem {
	var k chatCheck
	if str(c.all["model"]) == "" {
		k.add("", "", "you must provide a model parameter")
	}
	messages, ok := c.all["messages"].([]any)
	switch {
	case c.all["messages"] == nil:
		k.missing("messages")
	case !ok:
		k.add("invalid_type", "messages", "Invalid type for 'messages': expected an array of objects, but got %s instead.", kindOf(c.all["messages"]))
	case len(messages) == 0:
		k.empty("messages")
	}
	if c.all["stream_options"] != nil && !c.req.Stream {
		k.add("", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	k.tools(c.all, func(t object) object { return obj(t["function"]) }, ".function")
	for i, m := range messages {
		k.message(i, obj(m))
	}
	k.answered()
	return k.first
}

// answered checks that no call waits for its result.
func (k *chatCheck) answered() {
	if len(k.open) > 0 {
		k.add("", fmt.Sprintf("messages.[%d].role", k.call+1), "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(k.open, ", "))
	}
	k.open = nil
}

func (k *chatCheck) message(i int, m object) {
	path := fmt.Sprintf("messages[%d]", i)
	role := str(m["role"])
	if role != "tool" {
		k.answered()
		k.call = -1
	}
	switch role {
	case "system", "developer", "user", "function":
		k.content(path, role, m)
	case "assistant":
		k.assistant(i, path, m)
	case "tool":
		k.result(i, m)
		k.content(path, role, m)
	case "":
		k.missing(path + ".role")
	default:
		k.value(path+".role", role, "'system', 'assistant', 'user', 'function', 'tool', and 'developer'")
	}
	if name, ok := m["name"].(string); ok && role != "tool" && !openAIAuthors.MatchString(name) {
		k.add("invalid_value", path+".name", `Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[^\s<|\\/>]+$'.`, path)
	}
}

// chatContent are the types of content by role.
var chatContent = map[string]string{
	"system": "'text'", "developer": "'text'", "function": "'text'", "tool": "'text'",
	"user":      "'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'",
	"assistant": "'text' and 'refusal'",
}

func (k *chatCheck) content(path, role string, m object) {
	switch content := m["content"].(type) {
	case string:
	case nil:
		k.add("", strings.Replace(path, "[", ".[", 1)+".content", "Invalid value for 'content': expected a string, got null.")
	case []any:
		if len(content) == 0 {
			k.empty(path + ".content")
		}
		for j, p := range content {
			path := fmt.Sprintf("%s.content[%d]", path, j)
			kind := str(obj(p)["type"])
			if kind != "" && role == "tool" && kind != "text" {
				k.add("invalid_value", path, "Invalid '%s'. Content blocks are expected to be either text or image_url type.", strings.TrimSuffix(path, fmt.Sprintf(".content[%d]", j)))
			}
			switch {
			case kind == "":
				k.missing(path + ".type")
			case !strings.Contains(chatContent[role], "'"+kind+"'"):
				k.value(path+".type", kind, chatContent[role])
			case kind == "text":
				k.text(path+".text", obj(p)["text"])
			case kind == "image_url":
				k.image(str(obj(obj(p)["image_url"])["url"]), "image_parse_error", "", "You uploaded an unsupported image. Please make sure your image is valid.")
			}
		}
	default:
		k.add("invalid_type", path+".content", "Invalid type for '%s.content': expected one of a string or array of objects, but got %s instead.", path, kindOf(content))
	}
}

func (k *chatCheck) assistant(i int, path string, m object) {
	calls, ok := m["tool_calls"].([]any)
	if ok && len(calls) == 0 {
		k.empty(path + ".tool_calls")
	}
	if m["content"] != nil || len(calls) == 0 && m["refusal"] == nil && m["function_call"] == nil && m["audio"] == nil {
		k.content(path, "assistant", m)
	}
	for j, call := range calls {
		call, path := obj(call), fmt.Sprintf("%s.tool_calls[%d]", path, j)
		k.text(path+".id", call["id"])
		k.limit(path+".id", str(call["id"]), 40)
		switch kind := str(call["type"]); kind {
		case "function":
			k.name(path+".function.name", str(obj(call["function"])["name"]))
			k.text(path+".function.arguments", obj(call["function"])["arguments"])
			k.limit(path+".function.arguments", str(obj(call["function"])["arguments"]), maxArguments)
		case "custom":
			k.name(path+".custom.name", str(obj(call["custom"])["name"]))
			k.text(path+".custom.input", obj(call["custom"])["input"])
			k.limit(path+".custom.input", str(obj(call["custom"])["input"]), maxArguments)
		case "":
			k.missing(path + ".type")
		default:
			k.value(path+".type", kind, "'function' and 'custom'")
		}
		k.open = append(k.open, str(call["id"]))
	}
	if k.call = -1; len(calls) > 0 {
		k.call = i
	}
}

// result checks which call a tool message answers.
func (k *chatCheck) result(i int, m object) {
	id := str(m["tool_call_id"])
	if id == "" {
		k.missing(fmt.Sprintf("messages[%d].tool_call_id", i))
	}
	for j, open := range k.open {
		if open == id {
			k.open = append(k.open[:j:j], k.open[j+1:]...)
			return
		}
	}
	if i == 0 || k.call < 0 || len(k.open) == 0 {
		k.add("", fmt.Sprintf("messages.[%d].role", i), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
	}
}

func (chat) usage(u Usage) object {
	return object{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}
}

func (f chat) write(c *call, a Answer, u Usage) {
	stop := a.Stop
	if stop == "" {
		if stop = "stop"; a.calls() {
			stop = "tool_calls"
		}
	}
	head := object{"id": fmt.Sprintf("chatcmpl-%d", c.id), "created": c.id, "model": c.req.Model}
	if c.req.Stream {
		f.stream(c, a, u, with(head, "object", "chat.completion.chunk"), stop)
		return
	}
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	var calls []any
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case Text:
			message["content"] = str(message["content"]) + string(b)
		case Thinking:
			message["reasoning_content"] = str(message["reasoning_content"]) + string(b)
		case Call:
			calls = append(calls, object{"id": b.ID, "type": "function", "function": object{"name": b.Name, "arguments": b.Arguments}})
		}
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	answer := with(head, "object", "chat.completion")
	answer["choices"] = []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": stop}}
	answer["usage"] = f.usage(u)
	c.send(200, answer)
}

func (f chat) stream(c *call, a Answer, u Usage, head object, stop string) {
	chunk := func(delta object, stop any) {
		c.event("", with(head, "choices", []any{object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": stop}}))
	}
	chunk(object{"role": "assistant", "content": "", "refusal": nil}, nil)
	calls := 0
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case Text:
			for _, piece := range pieces(string(b)) {
				chunk(object{"content": piece}, nil)
			}
		case Thinking:
			for _, piece := range pieces(string(b)) {
				chunk(object{"reasoning_content": piece}, nil)
			}
		case Call:
			call := object{"index": calls, "id": b.ID, "type": "function", "function": object{"name": b.Name, "arguments": ""}}
			chunk(object{"tool_calls": []any{call}}, nil)
			for _, piece := range pieces(b.Arguments) {
				chunk(object{"tool_calls": []any{object{"index": calls, "function": object{"arguments": piece}}}}, nil)
			}
			calls++
		}
	}
	chunk(object{}, stop)
	if obj(c.all["stream_options"])["include_usage"] == true {
		end := with(head, "choices", []any{})
		end["usage"] = f.usage(u)
		c.event("", end)
	}
	c.event("", "[DONE]")
}
