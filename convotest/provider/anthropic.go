package provider

import (
	"fmt"
	"strings"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) cachesAll() bool { return false }

func (anthropic) tooLong(tokens, window int) *problem {
	return &problem{status: 400, kind: "invalid_request_error", text: fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, window)}
}

func (anthropic) fault(c *call, p *problem) any {
	e := object{"type": p.kind, "message": p.text}
	if p.code != "" {
		e["details"] = with(p.details, "error_code", p.code)
	}
	return object{"type": "error", "error": e, "request_id": fmt.Sprintf("req_%d", c.id)}
}

func (anthropic) parts(c *call) (parts []part) {
	for _, t := range list(c.all["tools"]) {
		parts = append(parts, newPart("tools", t))
	}
	parts = append(parts, textParts("system", c.all["system"])...)
	for _, m := range list(c.all["messages"]) {
		parts = append(parts, textParts(str(obj(m)["role"]), obj(m)["content"])...)
	}
	if n := len(parts); n > 0 && c.all["cache_control"] != nil {
		parts[n-1].marked = true
	}
	return parts
}

// textParts returns the parts of a text or of a list of blocks.
func textParts(role string, content any) (parts []part) {
	if text, ok := content.(string); ok {
		return []part{newPart(role, object{"type": "text", "text": text})}
	}
	for _, b := range list(content) {
		parts = append(parts, newPart(role, b))
	}
	return parts
}

// content returns the blocks of an answer, signed.
func (anthropic) content(c *call, a Answer) []any {
	blocks := []any{}
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case Text:
			blocks = append(blocks, object{"type": "text", "text": string(b), "citations": nil})
		case Thinking:
			blocks = append(blocks, object{"type": "thinking", "thinking": string(b), "signature": ""})
		case Call:
			blocks = append(blocks, calledBy(b.Caller, object{"type": "tool_use", "id": b.ID, "name": b.Name, "input": value(b.Arguments)}))
		case Served:
			if b.Input != "" {
				blocks = append(blocks, calledBy(b.Caller, object{"type": "server_tool_use", "id": b.ID, "name": b.Name, "input": value(b.Input)}))
			}
			if b.Result != "" {
				blocks = append(blocks, calledBy(b.Caller, object{"type": b.Name + "_tool_result", "tool_use_id": b.ID, "content": value(b.Result)}))
			}
		case Raw:
			blocks = append(blocks, value(string(b)))
		}
	}
	AnthropicSeals.walkMessages(c.all, list(c.all["messages"])).sign(blocks)
	return blocks
}

// calledBy returns a block with its caller, unless that is the model.
func calledBy(id string, block object) object {
	if id == "" {
		return block
	}
	return with(block, "caller", object{"type": "code_execution_20260120", "tool_id": id})
}

// container returns the container of an answer: that of the request, or a new one if the
// answer runs code, or nil.
func container(c *call, blocks []any) any {
	id := containerOf(c.all)
	for _, b := range blocks {
		if id == "" && obj(b)["type"] == "server_tool_use" && runsCode(obj(b)) {
			id = fmt.Sprintf("container_%d", c.id)
		}
	}
	if id == "" {
		return nil
	}
	return object{"id": id, "expires_at": "2026-11-27T12:05:00Z", "skills": nil}
}

// containerOf returns the ID of the container that a request names, or "".
func containerOf(all object) string {
	if id := str(all["container"]); id != "" {
		return id
	}
	return str(obj(all["container"])["id"])
}

// runsCode reports whether a call of a tool that the provider runs is for code.
func runsCode(b object) bool { return strings.HasSuffix(str(b["name"]), "code_execution") }

func (anthropic) stop(a Answer) string {
	if a.Stop != "" {
		return a.Stop
	}
	for _, b := range a.Blocks {
		if b, ok := b.(Served); ok && b.Result == "" && !a.calls() {
			return "pause_turn"
		}
	}
	if a.calls() {
		return "tool_use"
	}
	return "end_turn"
}

func (f anthropic) write(c *call, a Answer, u Usage) {
	if c.all["compaction"] != nil {
		f.compaction(c, a, u)
		return
	}
	usage := object{
		"input_tokens": u.Input - u.CacheRead - u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		"cache_creation_input_tokens": u.CacheWrite, "output_tokens": u.Output,
	}
	content := f.content(c, a)
	message := object{
		"id": fmt.Sprintf("msg_%d", c.id), "type": "message", "role": "assistant", "model": c.req.Model,
		"content": content, "stop_reason": f.stop(a), "stop_sequence": nil, "usage": usage, "container": container(c, content),
	}
	if c.req.Stream {
		f.stream(c, message)
		return
	}
	c.send(200, message)
}

func (f anthropic) stream(c *call, message object) {
	event := func(kind string, fields object) { c.event(kind, with(fields, "type", kind)) }
	start := with(with(with(message, "content", []any{}), "stop_reason", nil), "container", nil)
	start["usage"] = with(obj(message["usage"]), "output_tokens", 1)
	event("message_start", object{"message": start})
	event("ping", object{})
	for i, b := range list(message["content"]) {
		begin, deltas := f.deltas(obj(b))
		event("content_block_start", object{"index": i, "content_block": begin})
		for _, d := range deltas {
			event("content_block_delta", object{"index": i, "delta": d})
		}
		event("content_block_stop", object{"index": i})
	}
	delta := object{"stop_reason": message["stop_reason"], "stop_sequence": nil, "container": message["container"]}
	event("message_delta", object{"delta": delta, "usage": message["usage"]})
	event("message_stop", object{})
}

// deltas returns how a block begins in a stream, and what is added to it.
func (anthropic) deltas(b object) (begin object, deltas []object) {
	add := func(kind, key, text string) {
		for _, piece := range pieces(text) {
			deltas = append(deltas, object{"type": kind, key: piece})
		}
	}
	switch b["type"] {
	case "text":
		add("text_delta", "text", str(b["text"]))
		return with(b, "text", ""), deltas
	case "thinking":
		add("thinking_delta", "thinking", str(b["thinking"]))
		deltas = append(deltas, object{"type": "signature_delta", "signature": b["signature"]})
		return with(with(b, "thinking", ""), "signature", ""), deltas
	case "tool_use", "server_tool_use", "mcp_tool_use":
		deltas = append(deltas, object{"type": "input_json_delta", "partial_json": ""})
		add("input_json_delta", "partial_json", string(marshal(b["input"])))
		return with(b, "input", object{}), deltas
	}
	return b, nil
}
