package replay

import (
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Fault says why a provider would refuse the last recorded list of messages, sent again as it
// is recorded.
type Fault struct {
	Provider string `json:"provider"`
	Lists    int    `json:"lists"`   // how many lists it would refuse: 1 for a session
	Problem  string `json:"problem"` // the first reason, for the first of the lists
	More     int    `json:"more,omitempty"`
}

// A plainFormat writes messages as they are recorded. Package wire repairs what it encodes, so
// that nothing would be left to find.
type plainFormat struct {
	provider string
	rules    wire.Format
	list     string // the field of the messages
	joined   string // the field of messages with their content, if neighbours with one role have to be one message; empty: they do not
	isApart  bool   // results are not joined with other content
	write    func(m *convo.Message) []object
}

type object = map[string]any

var plainFormats = []plainFormat{
	{"Anthropic", wire.Anthropic{}, "messages", "", false, plainAnthropic},
	{"OpenAI (Chat Completions)", wire.OpenAIChat{}, "messages", "", false, plainChat},
	{"OpenAI (Responses)", wire.OpenAIResponses{}, "input", "", false, plainResponses},
	{"Gemini", wire.Gemini{}, "contents", "parts", true, plainGemini},
	{"Bedrock", wire.Converse{}, "messages", "content", false, plainConverse},
}

// faults returns which providers would refuse a list of messages, and why.
func faults(msgs []*convo.Message) (found []Fault) {
	for _, f := range plainFormats {
		body, isEmpty := f.request(msgs)
		if isEmpty {
			continue
		}
		if list := f.rules.Check(body); len(list) > 0 {
			found = append(found, Fault{Provider: f.provider, Lists: 1, Problem: list[0].String(), More: len(list) - 1})
		}
	}
	return found
}

// request returns the request with messages. Each stays where it is, with its own names and
// IDs. The system text at the front, for which each provider has a place, reasoning, and what
// only one provider understands are left out.
func (f *plainFormat) request(msgs []*convo.Message) (body []byte, isEmpty bool) {
	body = append(body, `{"`+f.list+`":[`...)
	start := len(body)
	write := func(element object) {
		if element == nil {
			return
		}
		if len(body) > start {
			body = append(body, ',')
		}
		data, err := json.Marshal(element)
		if err != nil {
			data = []byte("null") // nothing in it can fail
		}
		body = append(body, data...)
	}
	var last object
	var lastRole convo.Role
	for _, m := range msgs {
		for _, next := range f.write(m) {
			isJoined := f.joined != "" && last != nil && last["role"] == next["role"] && (!f.isApart || lastRole == m.Role)
			lastRole = m.Role
			if isJoined {
				last[f.joined] = append(last[f.joined].([]object), next[f.joined].([]object)...)
				continue
			}
			write(last)
			last = next
		}
	}
	write(last)
	return append(body, "]}"...), last == nil
}

// blocks returns what of parts a format has a block for.
func blocks(parts []convo.Part, block func(convo.Part) object) (all []object) {
	for _, p := range parts {
		if r, ok := p.(convo.ToolResult); ok && session.IsMissing(r) {
			continue // it is not recorded
		}
		if b := block(p); b != nil {
			all = append(all, b)
		}
	}
	return all
}

// message returns the one message with some blocks, or none without blocks.
func message(role convo.Role, key string, blocks []object) []object {
	if len(blocks) == 0 {
		return nil
	}
	return []object{{"role": role, key: blocks}}
}

// arguments returns the arguments of a call as JSON. Those that are none are a string.
func arguments(c convo.ToolCall) any {
	switch {
	case c.Arguments == "":
		return object{}
	case json.Valid([]byte(c.Arguments)):
		return json.RawMessage(c.Arguments)
	}
	return c.Arguments
}

// isImage reports whether media is an image by its content.
func isImage(m convo.Media) bool { return m.Data != "" && strings.HasPrefix(m.MIME, "image/") }

func plainAnthropic(m *convo.Message) []object {
	var block func(p convo.Part) object
	block = func(p convo.Part) object {
		switch p := p.(type) {
		case convo.Text:
			return object{"type": "text", "text": string(p)}
		case convo.Media:
			if isImage(p) {
				return object{"type": "image", "source": object{"type": "base64", "media_type": p.MIME, "data": p.Data}}
			}
		case convo.ToolCall:
			return object{"type": "tool_use", "id": p.ID, "name": p.Name, "input": arguments(p)}
		case convo.ToolResult:
			r := object{"type": "tool_result", "tool_use_id": p.CallID, "is_error": p.IsError}
			if content := blocks(p.Parts, block); len(content) > 0 {
				r["content"] = content
			}
			return r
		}
		return nil
	}
	role := m.Role
	if role == convo.RoleTool {
		role = convo.RoleUser
	}
	return message(role, "content", blocks(m.Parts, block))
}

func plainChat(m *convo.Message) []object {
	if m.Role == convo.RoleTool {
		return blocks(m.Parts, func(p convo.Part) object {
			if r, ok := p.(convo.ToolResult); ok {
				return object{"role": "tool", "tool_call_id": r.CallID, "content": r.Text()}
			}
			return nil
		})
	}
	content := blocks(m.Parts, func(p convo.Part) object {
		switch p := p.(type) {
		case convo.Text:
			return object{"type": "text", "text": string(p)}
		case convo.Media:
			if isImage(p) && m.Role == convo.RoleUser {
				return object{"type": "image_url", "image_url": object{"url": "data:" + p.MIME + ";base64," + p.Data}}
			}
		}
		return nil
	})
	calls := blocks(m.Parts, func(p convo.Part) object {
		if c, ok := p.(convo.ToolCall); ok {
			return object{"type": "function", "id": c.ID, "function": object{"name": c.Name, "arguments": c.Arguments}}
		}
		return nil
	})
	all := message(m.Role, "content", content)
	if len(calls) > 0 {
		if all == nil {
			all = []object{{"role": m.Role, "content": nil}}
		}
		all[0]["tool_calls"] = calls
	}
	return all
}

func plainResponses(m *convo.Message) []object {
	kind := "input_text"
	if m.Role == convo.RoleAssistant {
		kind = "output_text"
	}
	content := blocks(m.Parts, func(p convo.Part) object {
		switch p := p.(type) {
		case convo.Text:
			return object{"type": kind, "text": string(p)}
		case convo.Media:
			if isImage(p) && m.Role == convo.RoleUser {
				return object{"type": "input_image", "image_url": "data:" + p.MIME + ";base64," + p.Data}
			}
		}
		return nil
	})
	return append(message(m.Role, "content", content), blocks(m.Parts, func(p convo.Part) object {
		switch p := p.(type) {
		case convo.ToolCall:
			return object{"type": "function_call", "call_id": p.ID, "name": p.Name, "arguments": p.Arguments}
		case convo.ToolResult:
			return object{"type": "function_call_output", "call_id": p.CallID, "output": p.Text()}
		}
		return nil
	})...)
}

func plainGemini(m *convo.Message) []object {
	role := convo.Role("user")
	switch m.Role {
	case convo.RoleAssistant:
		role = "model"
	case convo.RoleSystem:
		role = m.Role
	}
	return message(role, "parts", blocks(m.Parts, func(p convo.Part) object {
		switch p := p.(type) {
		case convo.Text:
			return object{"text": string(p)}
		case convo.Media:
			if isImage(p) {
				return object{"inlineData": object{"mimeType": p.MIME, "data": p.Data}}
			}
		case convo.ToolCall:
			return object{"functionCall": object{"name": p.Name, "args": arguments(p)}}
		case convo.ToolResult:
			return object{"functionResponse": object{"name": p.Name, "response": object{"output": p.Text()}}}
		}
		return nil
	}))
}

func plainConverse(m *convo.Message) []object {
	role := m.Role
	if role == convo.RoleTool {
		role = convo.RoleUser
	}
	return message(role, "content", blocks(m.Parts, func(p convo.Part) object {
		switch p := p.(type) {
		case convo.Text:
			return object{"text": string(p)}
		case convo.Media:
			if isImage(p) && role == convo.RoleUser {
				return object{"image": object{"format": strings.TrimPrefix(p.MIME, "image/"), "source": object{"bytes": p.Data}}}
			}
		case convo.ToolCall:
			return object{"toolUse": object{"toolUseId": p.ID, "name": p.Name, "input": arguments(p)}}
		case convo.ToolResult:
			return object{"toolResult": object{"toolUseId": p.CallID, "content": []object{{"text": p.Text()}}}}
		}
		return nil
	}))
}
