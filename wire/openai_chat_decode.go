package wire

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Decode reads a request, a response, a list of messages or one message.
// Developer messages become system messages.
func (f OpenAIChat) Decode(data []byte) (Transcript, error) {
	d := f.decoder()
	return d.finish(f.decode(&d, data))
}

func (f OpenAIChat) decoder() decoder {
	return decoder{format: f.format(), from: f.origin(), own: f.Model, names: map[string]string{}}
}

func (f OpenAIChat) decode(d *decoder, data []byte) error {
	if kindOf(data) == '[' {
		return f.decodeList(d, "", data)
	}
	all, err := fields("", data)
	if err != nil {
		return err
	}
	if raw := all["model"]; kindOf(raw) == '"' {
		if err := read("model", "a string", raw, &d.model); err != nil {
			return err
		}
	}
	switch {
	case all["messages"] != nil:
		return f.decodeList(d, "messages", all["messages"])
	case saysError(all["error"]) && all["role"] == nil:
		return reported("", providerError(data))
	case d.minted == nil && (stringOf(all["object"]) == "chat.completion.chunk" || string(all["done"]) == "false"): // otherwise a Stream made it
		return isEvent("", "chunk")
	case all["choices"] != nil:
		d.answer(stringOf(all["id"]), d.model)
		return f.decodeChoices(d, all)
	case kindOf(all["message"]) == '{': // an answer of Ollama, or one choice
		d.answer(stringOf(all["id"]), d.model)
		d.ended(cmp.Or(stringOf(all["done_reason"]), stringOf(all["finish_reason"])))
		d.out.Usage = d.chatUsage(all, f.Dialect == Ollama)
		d.loseContent("", all, chatBookkeeping)
		return f.decodeMessage(d, "message", all["message"])
	case all["role"] != nil:
		return f.decodeMessage(d, "", data)
	case !isNull(all["usage"]) && !isError(all):
		d.answer(stringOf(all["id"]), d.model)
		d.ended("")
		d.out.Usage = d.chatUsage(all, f.Dialect == Ollama)
		return nil
	}
	return unreadable(all, data, "not a request, response or message: want a field messages, choices, message or role")
}

func (f OpenAIChat) decodeList(d *decoder, path string, data []byte) error {
	return elements(path, "an array of messages", data, func(path string, raw json.RawMessage) error {
		return f.decodeMessage(d, path, raw)
	})
}

func (f OpenAIChat) decodeChoices(d *decoder, all map[string]json.RawMessage) error {
	var choices []map[string]json.RawMessage
	if err := read("choices", "an array of objects", all["choices"], &choices); err != nil {
		return err
	}
	for i, c := range choices {
		if saysError(c["error"]) {
			return reported(at(atIndex("choices", i), "error"), providerError(c["error"]))
		}
	}
	d.out.Usage = d.chatUsage(all, f.Dialect == Ollama)
	d.loseContent("", all, chatBookkeeping)
	for i, c := range choices {
		path := atIndex("choices", i) + ".message"
		if i > 0 {
			d.lose(path, lostChoice)
			continue
		}
		d.loseContent(atIndex("choices", i), c, choiceBookkeeping)
		d.ended(stringOf(c["finish_reason"]))
		if isNull(c["message"]) {
			if kindOf(c["delta"]) == '{' {
				return isEvent(atIndex("choices", i), "chunk")
			}
			if isNull(c["finish_reason"]) {
				return &DecodeError{Path: path, Reason: "the choice has no message"}
			}
			continue // the content was filtered
		}
		if err := f.decodeMessage(d, path, c["message"]); err != nil {
			return err
		}
	}
	return nil
}

// loseContent records the fields of an answer that may hold content and are not in known.
// Empty fields are ignored.
func (d *decoder) loseContent(path string, all map[string]json.RawMessage, known []string) {
	rest := make(map[string]json.RawMessage)
	for key, raw := range all {
		if text := compact(raw); text != `""` && text != "[]" && text != "{}" {
			rest[key] = raw
		}
	}
	d.loseRest(path, rest, known...)
}

// chatBookkeeping are the fields of an answer that are read, and fields in which servers
// report on their work and on the filters of their hosts.
var chatBookkeeping = []string{
	"choices", "message", "usage", "id", "model", "error", "finish_reason", "done", "done_reason", "index", "type", "object", "status",
	"created", "created_at", "system_fingerprint", "service_tier", "obfuscation", "provider", "request_id", "user_id", "seed", "metadata",
	"x_groq", "usage_breakdown", "time_info", "timings", "metrics", "cost", "estimated_cost", "nvext", "base_resp", "kv_transfer_params",
	"prompt_filter_results", "prompt_token_ids", "input_sensitive", "input_sensitive_type", "output_sensitive", "output_sensitive_type",
	"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration", "remote_model", "remote_host",
}

// choiceBookkeeping are the same fields of a choice.
var choiceBookkeeping = []string{
	"message", "delta", "index", "finish_reason", "native_finish_reason", "finish_message", "finish_details", "stop_reason", "matched_stop",
	"error", "usage", "seed", "token_ids", "content_filter_results", "content_filter_offsets", "content_filter_result",
}

// lostChoice is the Loss.What of an answer that is one of several.
const lostChoice = "a choice after the first one"

func (f OpenAIChat) decodeMessage(d *decoder, path string, data []byte) error {
	all, err := fields(path, data)
	if err != nil {
		return err
	}
	if isNull(all["role"]) {
		if strings.HasPrefix(path, "[") && saysError(all["error"]) { // hosts of Google send errors in this form
			return reported(path, providerError(data))
		}
		return &DecodeError{Path: path, Reason: lacksRole}
	}
	var role string
	if err := read(at(path, "role"), "a string", all["role"], &role); err != nil {
		return err
	}
	m := convo.Message{}
	known := []string{"role", "content"}
	if raw := all["name"]; !isNull(raw) && role != "tool" { // in a result, it names the tool
		known = append(known, "name")
		if err := read(at(path, "name"), "a string", raw, &m.Author); err != nil {
			return err
		}
	}
	switch role {
	case "system", "developer":
		m.Role = convo.RoleSystem
	case "user":
		m.Role = convo.RoleUser
	case "assistant":
		m.Role, m.Origin = convo.RoleAssistant, d.origin()
		reasoning, err := f.decodeReasoning(d, path, all, &m)
		if err != nil {
			return err
		}
		known = append(known, reasoning...)
	case "tool":
		return f.decodeResult(d, path, all)
	default:
		return &DecodeError{Path: at(path, "role"), Reason: "unknown role " + quote(role)}
	}
	if m.Parts, err = d.chatContent(path, all["content"], m.Parts, m.Role); err != nil {
		return err
	}
	if m.Role == convo.RoleAssistant {
		known = append(known, "tool_calls", "refusal")
		if string(all["prefix"]) == "false" { // Mistral sends this in each answer
			known = append(known, "prefix")
		}
		if err := f.decodeCalls(d, path, all["tool_calls"], &m); err != nil {
			return err
		}
		if raw := all["refusal"]; !isNull(raw) && string(raw) != `""` {
			m.Parts = append(m.Parts, convo.Opaque{Format: d.format, JSON: `{"type":"refusal","refusal":` + compact(raw) + `}`})
		}
	}
	if raw := all["images"]; f.Dialect == Ollama && !isNull(raw) {
		var images []string
		if err := read(at(path, "images"), "an array of strings", raw, &images); err != nil {
			return err
		}
		for _, data := range images {
			m.Parts = append(m.Parts, convo.Media{MIME: "image/png", Data: data})
		}
		known = append(known, "images")
	}
	d.add(m)
	d.keepRest(len(d.out.Messages)-1, path, all, known...)
	return nil
}

func (f OpenAIChat) decodeResult(d *decoder, path string, all map[string]json.RawMessage) error {
	var r convo.ToolResult
	for _, field := range []struct {
		key string
		to  *string
	}{{"tool_call_id", &r.CallID}, {"name", &r.Name}, {"tool_name", &r.Name}} {
		if raw := all[field.key]; !isNull(raw) {
			if err := read(at(path, field.key), "a string", raw, field.to); err != nil {
				return err
			}
		}
	}
	r.Name = ownName(r.Name)
	d.nameResult(&r)
	var err error
	if r.Parts, err = d.chatContent(path, all["content"], nil, convo.RoleTool); err != nil {
		return err
	}
	d.add(convo.Message{Role: convo.RoleTool, Parts: []convo.Part{r}})
	d.keepRest(len(d.out.Messages)-1, path, all, "role", "content", "tool_call_id", "name", "tool_name")
	return nil
}

func (f OpenAIChat) decodeCalls(d *decoder, path string, data json.RawMessage, m *convo.Message) error {
	if isNull(data) {
		return nil
	}
	path = at(path, "tool_calls")
	var calls []json.RawMessage
	if err := read(path, "an array of calls", data, &calls); err != nil {
		return err
	}
	for i, raw := range calls {
		call, custom, extra, err := f.chatCall(d, atIndex(path, i), raw)
		if err != nil {
			return err
		}
		if extra != "" {
			m.Parts = append(m.Parts, signedCall(extra))
		}
		if custom && d.format == FormatOpenAIChat {
			m.Parts = append(m.Parts, d.fieldsBlock(partFields{Call: customCall}))
		}
		d.addCall(atIndex(path, i)+".id", m, call)
	}
	return nil
}

// chatCall reads a call. It returns whether the call is of a custom tool, and its
// extra_content, if any.
func (f OpenAIChat) chatCall(d *decoder, path string, data []byte) (c convo.ToolCall, custom bool, extra string, err error) {
	all, err := fields(path, data)
	if err != nil {
		return c, false, "", err
	}
	if raw := all["id"]; !isNull(raw) {
		if err := read(at(path, "id"), "a string", raw, &c.ID); err != nil {
			return c, false, "", err
		}
	}
	kind, argument := "function", "arguments"
	if custom = isNull(all[kind]) && !isNull(all["custom"]); custom {
		kind, argument = "custom", "input"
	}
	var function map[string]json.RawMessage
	if raw := all[kind]; !isNull(raw) {
		if function, err = fields(at(path, kind), raw); err != nil {
			return c, custom, "", err
		}
	}
	if raw := function["name"]; !isNull(raw) {
		if err := read(at(at(path, kind), "name"), "a string", raw, &c.Name); err != nil {
			return c, custom, "", err
		}
	}
	if c.Name == "" {
		return c, custom, "", &DecodeError{Path: path, Reason: "the call has no function name"}
	}
	text := ""
	switch raw := function[argument]; {
	case kindOf(raw) == '"':
		if err := read(at(at(path, kind), argument), "a string", raw, &text); err != nil {
			return c, custom, "", err
		}
	case !isNull(raw):
		text = string(raw)
	}
	c.Arguments = d.callText(text, custom, false)
	if !f.oneField() {
		extra = d.extra(path, all)
		delete(all, extraField)
	}
	d.loseRest(path, all, "id", "type", kind, "index")
	d.loseRest(at(path, kind), function, "name", argument, "index")
	return c, custom, extra, nil
}

// chatContent reads the content of a message or result: a string, an array of
// parts, or null. Parts that only this format knows become opaque.
func (d *decoder) chatContent(path string, data json.RawMessage, parts []convo.Part, role convo.Role) ([]convo.Part, error) {
	path = at(path, "content")
	switch {
	case isNull(data):
		return parts, nil
	case kindOf(data) == '"':
		var text string
		if err := read(path, "a string", data, &text); err != nil {
			return nil, err
		}
		if text != "" {
			parts = append(parts, convo.Text(text))
		}
		return parts, nil
	}
	var list []json.RawMessage
	if err := read(path, "a string or an array of parts", data, &list); err != nil {
		return nil, err
	}
	for i, raw := range list {
		p, err := d.chatPart(atIndex(path, i), raw, role)
		if err != nil {
			return nil, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// chatPart reads a part of a content. It returns nil for an empty part.
func (d *decoder) chatPart(path string, data json.RawMessage, role convo.Role) (convo.Part, error) {
	if kindOf(data) == '"' {
		var text string
		err := read(path, "a string", data, &text)
		return convo.Text(text), err
	}
	if kindOf(data) != '{' {
		return nil, &DecodeError{Path: path, Reason: "want a string or an object, got " + kindName(data)}
	}
	all, err := fields(path, data)
	if err != nil {
		return nil, err
	}
	var kind string
	if raw := all["type"]; kindOf(raw) == '"' {
		if err := read(at(path, "type"), "a string", raw, &kind); err != nil {
			return nil, err
		}
	}
	if kind == "" {
		return nil, &DecodeError{Path: path, Reason: "the part has no type"}
	}
	if raw := all["text"]; kind == "text" && kindOf(raw) == '"' {
		d.loseRest(path, all, "type", "text")
		var text string
		err := read(at(path, "text"), "a string", raw, &text)
		return convo.Text(text), err
	}
	opaque := convo.Opaque{Format: d.format, JSON: compact(data)}
	if isEmptyRefusal(all) {
		return nil, nil
	}
	if kind == "thinking" && role == convo.RoleAssistant && d.format == FormatMistral {
		switch r, ok := thinkingIn(all); {
		case !ok:
			return opaque, nil
		case r == convo.Reasoning{}:
			return nil, nil
		default:
			return r, nil
		}
	}
	if role != convo.RoleUser && role != convo.RoleTool {
		return opaque, nil
	}
	var m convo.Media
	switch kind {
	case "image_url":
		m = mediaOf(inner(all["image_url"], "url"), "")
	case "input_audio":
		m = convo.Media{MIME: "audio/" + inner(all["input_audio"], "format"), Data: inner(all["input_audio"], "data")}
	case "file":
		if url := inner(all["file"], "file_data"); strings.HasPrefix(url, "data:") {
			m = mediaOf(url, "")
		}
	case "document_url":
		var url string
		if read(path, "a string", all["document_url"], &url) == nil {
			m = convo.Media{MIME: "application/pdf", URL: url}
		}
	}
	if m.Data == "" && m.URL == "" || !text.IsBase64(m.Data) {
		return opaque, nil
	}
	d.loseRest(path, all, "type", kind)
	if inside, err := fields("-", all[kind]); err == nil {
		d.loseRest(at(path, kind), inside, "url", "format", "data", "file_data")
	}
	return m, nil
}
