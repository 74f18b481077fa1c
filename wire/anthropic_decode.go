package wire

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Decode reads a request, a response, a list of messages or one message. An
// assistant message alone is a response if it has a field that only responses
// have, such as type or usage. Results in a user message become a tool message.
// Adjacent assistant messages with calls become one message, as in the API. A
// message with the role system becomes a user message with an opaque part. The
// container of an answer is in the Origin of its message; that of a request is
// in the Origin of the last assistant message.
func (f Anthropic) Decode(data []byte) (Transcript, error) {
	d := f.decoder()
	return d.finish(d.decode(data))
}

func (f Anthropic) decoder() *anthropicDecoder {
	return &anthropicDecoder{decoder{format: FormatAnthropic, own: f.Model, names: map[string]string{}}}
}

type anthropicDecoder struct{ decoder }

func (d *anthropicDecoder) decode(data []byte) error {
	if kindOf(data) == '[' {
		return d.list(data)
	}
	all, err := fields("", data)
	if err != nil {
		return err
	}
	d.model = stringOf(all["model"])
	switch {
	case all["messages"] != nil:
		if err := d.system(all["system"]); err != nil {
			return err
		}
		err := d.messages("messages", all["messages"])
		for i := range slices.Backward(d.out.Messages) {
			if m := &d.out.Messages[i]; m.Role == convo.RoleAssistant {
				m.Origin.Container = cmp.Or(m.Origin.Container, containerID(all["container"]))
				break
			}
		}
		return err
	case saysError(all["error"]):
		return reported("", providerError(data))
	case all["role"] != nil:
		return d.single("", data, all)
	}
	if !isNull(all["usage"]) && isNull(all["type"]) && !isError(all) {
		d.answer(stringOf(all["id"]), stringOf(all["model"]))
		d.ended(stringOf(all["stop_reason"]))
		d.out.Usage = d.anthropicUsage(all["usage"])
		d.out.Cleared = d.appliedEdits(all["context_management"])
		return nil
	}
	if name := stringOf(all["type"]); slices.Contains(anthropicEvents, name) {
		return isEvent("", name)
	}
	return unreadable(all, data, "not a request, response or message: want a field messages or role")
}

// list reads a document that is a list of messages. A single assistant message may be an
// answer, with or without the list.
func (d *anthropicDecoder) list(data []byte) error {
	var list []json.RawMessage
	if err := read("", "an array of messages", data, &list); err != nil {
		return err
	}
	if len(list) == 1 {
		if all, ok := strictjson.SplitObject(list[0]); ok && stringOf(all["role"]) == "assistant" {
			return d.single(atIndex("", 0), list[0], all)
		}
	}
	return d.messages("", data)
}

// single reads a message that is the whole document, and an answer if it has a field that
// only answers have. all holds its fields.
func (d *anthropicDecoder) single(path string, data []byte, all map[string]json.RawMessage) error {
	if !slices.ContainsFunc(answerFields, func(key string) bool { return all[key] != nil }) && all["content"] != nil {
		return d.message(path, data)
	}
	d.answer(stringOf(all["id"]), stringOf(all["model"]))
	d.ended(stringOf(all["stop_reason"]))
	d.out.Usage = d.anthropicUsage(all["usage"])
	d.out.Cleared = d.appliedEdits(all["context_management"])
	if isNull(all["content"]) && stringOf(all["role"]) == "assistant" {
		return nil // an empty answer
	}
	return d.message(path, data)
}

// answerFields are the fields that an answer has and a message of a request has not.
var answerFields = []string{"type", "id", "model", "stop_reason", "usage"}

// anthropicEvents are the types of the events of a stream.
var anthropicEvents = []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping"}

func (d *anthropicDecoder) system(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	m := convo.Message{Role: convo.RoleSystem}
	err := d.blocks("system", raw, func(path string, raw json.RawMessage) error {
		return d.block(path, raw, &m)
	})
	if err == nil && len(m.Parts) > 0 {
		d.add(m)
	}
	return err
}

func (d *anthropicDecoder) messages(path string, data []byte) error {
	return elements(path, "an array of messages", data, func(path string, raw json.RawMessage) error { return d.message(path, raw) })
}

func (d *anthropicDecoder) message(path string, data []byte) error {
	all, err := fields(path, data)
	if err != nil {
		return err
	}
	if isNull(all["role"]) {
		return &DecodeError{Path: path, Reason: lacksRole}
	}
	var role string
	if err := read(at(path, "role"), "a string", all["role"], &role); err != nil {
		return err
	}
	content, from := at(path, "content"), len(d.out.Messages)
	switch role {
	case "system":
		return d.systemMessage(path, data)
	case "user":
		err = d.user(content, all["content"])
	case "assistant":
		d.in = containerID(all["container"])
		err = d.assistant(content, all["content"])
	default:
		return &DecodeError{Path: at(path, "role"), Reason: "unknown role " + quote(role)}
	}
	known := []string{"role", "content", "type", "id", "model", "stop_reason", "stop_sequence", "usage", "context_management"}
	if role == "assistant" && d.in != "" {
		known = append(known, "container")
	}
	d.keepRest(from, path, all, known...)
	return err
}

// systemMessage reads a message with the role system. It is a note if it holds nothing but
// text, and otherwise an opaque part of a user message.
func (d *anthropicDecoder) systemMessage(path string, data []byte) error {
	if _, _, ok := anthropicSystemMessage(string(data)); !ok {
		return &DecodeError{Path: at(path, "content"), Reason: "want a text or blocks, none of them blank"}
	}
	if content, ok := plainSystem(data); ok {
		note := convo.Message{Role: convo.RoleSystem}
		err := d.blocks(at(path, "content"), content, func(path string, raw json.RawMessage) error {
			return d.block(path, raw, &note)
		})
		d.add(note)
		return err
	}
	raw, lost := unmarked(string(data))
	m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Opaque{Format: d.format, JSON: raw}}}
	all, _ := fields(path, data)
	var blocks []map[string]json.RawMessage
	_ = json.Unmarshal(all["content"], &blocks)
	for _, l := range lost {
		if last := len(blocks) - 1; l == at(atIndex("content", last), "cache_control") && spotIn(raw) > 0 {
			if mark, ok := decodedMark(blocks[last]["cache_control"]); ok {
				m.Parts = append(m.Parts, mark)
				continue
			}
		}
		d.lose(at(path, l), lostMark)
	}
	d.add(m)
	return nil
}

// blocks calls f with the path and the JSON of each block. A string counts as
// one text block.
func (d *anthropicDecoder) blocks(path string, raw json.RawMessage, f func(string, json.RawMessage) error) error {
	var list []json.RawMessage
	switch kindOf(raw) {
	case '"':
		return f(path, append(append([]byte(`{"type":"text","text":`), raw...), '}'))
	case '[':
		if err := read(path, "an array of blocks", raw, &list); err != nil {
			return err
		}
	default:
		return &DecodeError{Path: path, Reason: "want a string or an array of blocks"}
	}
	for i, raw := range list {
		if err := f(atIndex(path, i), raw); err != nil {
			return err
		}
	}
	return nil
}

// user reads a user message. Each run of results in it becomes a tool message.
func (d *anthropicDecoder) user(path string, raw json.RawMessage) error {
	var list []convo.Message
	err := d.blocks(path, raw, func(path string, raw json.RawMessage) error {
		all, err := fields(path, raw)
		if err != nil {
			return err
		}
		role := convo.RoleUser
		if stringOf(all["type"]) == "tool_result" {
			role = convo.RoleTool
		}
		if n := len(list); n == 0 || list[n-1].Role != role {
			list = append(list, convo.Message{Role: role})
		}
		m := &list[len(list)-1]
		if role == convo.RoleTool {
			return d.result(path, all, m)
		}
		return d.block(path, raw, m)
	})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		list = append(list, convo.Message{Role: convo.RoleUser})
	}
	for _, m := range list {
		d.add(m)
	}
	return nil
}

func (d *anthropicDecoder) assistant(path string, raw json.RawMessage) error {
	m := convo.Message{Role: convo.RoleAssistant, Origin: d.origin()}
	err := d.blocks(path, raw, func(path string, raw json.RawMessage) error {
		return d.block(path, raw, &m)
	})
	if err != nil {
		return err
	}
	m.Parts = withoutEmpty(m.Parts)
	if n := len(d.out.Messages); n > 0 {
		// The results for both messages follow the second message.
		if last := &d.out.Messages[n-1]; last.Role == convo.RoleAssistant && len(last.ToolCalls()) > 0 {
			m.Parts = append(last.Parts, m.Parts...)
			m.Origin.Container = cmp.Or(m.Origin.Container, last.Origin.Container)
			d.out.Messages = d.out.Messages[:n-1]
		}
	}
	d.add(m)
	return nil
}

// block reads a block other than a result.
func (d *anthropicDecoder) block(path string, raw json.RawMessage, m *convo.Message) error {
	all, err := fields(path, raw)
	if err != nil {
		return err
	}
	kind := stringOf(all["type"])
	if kind == "" {
		return &DecodeError{Path: at(path, "type"), Reason: "the block has no type"}
	}
	assistant := m.Role == convo.RoleAssistant
	switch kind {
	case "text":
		text, err := d.string(path, all, "text")
		if err != nil {
			return err
		}
		if text != "" || assistant {
			m.Parts = append(m.Parts, convo.Text(text))
		}
		d.cite(path, "citations", all["citations"], m, text)
		d.mark(path, all, m, text != "")
		d.loseRest(path, all, "type", "text", "citations", "cache_control")
		return nil
	case "tool_use", "thinking", "redacted_thinking":
		if !assistant {
			return &DecodeError{Path: path, Reason: "a " + kind + " block must be in an assistant message"}
		}
		return d.own(path, kind, all, m)
	case "tool_result":
		return &DecodeError{Path: path, Reason: "a tool_result block must be in a user message"}
	case "image", "document":
		if media, ok := mediaBlock(kind, all); ok && m.Role != convo.RoleSystem {
			m.Parts = append(m.Parts, media)
			d.mark(path, all, m, true)
			return nil
		}
	}
	block, lost := unmarked(string(raw))
	for _, l := range lost {
		if l != "cache_control" {
			d.lose(at(path, l), lostMark)
		}
	}
	m.Parts = append(m.Parts, convo.Opaque{Format: d.format, JSON: block})
	d.mark(path, all, m, true)
	return nil
}

// own reads a block that only assistant messages can hold.
func (d *anthropicDecoder) own(path, kind string, all map[string]json.RawMessage, m *convo.Message) (err error) {
	var r convo.Reasoning
	switch kind {
	case "thinking":
		if r.Text, err = d.string(path, all, "thinking"); err != nil {
			return err
		}
		if !isNull(all["signature"]) {
			r.Signature, err = d.string(path, all, "signature")
		}
		m.Parts = append(m.Parts, r)
		d.mark(path, all, m, false)
		d.loseRest(path, all, "type", "thinking", "signature", "cache_control")
		return err
	case "redacted_thinking":
		r.Encrypted, err = d.string(path, all, "data")
		m.Parts = append(m.Parts, r)
		d.mark(path, all, m, false)
		d.loseRest(path, all, "type", "data", "cache_control")
		return err
	}
	var c convo.ToolCall
	if !isNull(all["id"]) {
		if c.ID, err = d.string(path, all, "id"); err != nil {
			return err
		}
	}
	if c.Name, err = d.string(path, all, "name"); err != nil {
		return err
	}
	if c.Name == "" {
		return &DecodeError{Path: path, Reason: "the call has no name"}
	}
	if input := all["input"]; !isNull(input) {
		c.Arguments = d.arguments(string(input))
	}
	d.wroteObject(all["input"])
	known := []string{"type", "id", "name", "input", "cache_control"}
	if f, ok := callerOf(all["caller"]); ok {
		known = append(known, "caller")
		if f != (partFields{}) {
			m.Parts = append(m.Parts, d.fieldsBlock(f))
		}
	}
	d.addCall(at(path, "id"), m, c)
	d.mark(path, all, m, true)
	d.loseRest(path, all, known...)
	return nil
}

// callerOf returns the fields for the caller of a call, none if that is the model. It returns
// false for other callers than code.
func callerOf(raw json.RawMessage) (f partFields, ok bool) {
	all, err := fields("-", raw)
	if err != nil {
		return f, false
	}
	kind, id := stringOf(all["type"]), stringOf(all["tool_id"])
	switch {
	case kind == "direct" && len(all) == 1:
		return f, true
	case kind != "" && id != "" && len(all) == 2:
		return partFields{Caller: kind, CallerID: id}, true
	}
	return f, false
}

func (d *anthropicDecoder) result(path string, all map[string]json.RawMessage, m *convo.Message) (err error) {
	var r convo.ToolResult
	if r.CallID, err = d.string(path, all, "tool_use_id"); err != nil {
		return err
	}
	d.nameResult(&r)
	if raw := all["is_error"]; !isNull(raw) {
		if err := read(at(path, "is_error"), "true or false", raw, &r.IsError); err != nil {
			return err
		}
	}
	if raw := all["content"]; !isNull(raw) {
		in := convo.Message{Role: convo.RoleTool}
		err := d.blocks(at(path, "content"), raw, func(path string, raw json.RawMessage) error {
			return d.block(path, raw, &in)
		})
		if err != nil {
			return err
		}
		r.Parts = in.Parts
	}
	end := convo.Message{Parts: r.Parts}
	d.mark(path, all, &end, true)
	r.Parts = end.Parts
	m.Parts = append(m.Parts, r)
	d.loseRest(path, all, "type", "tool_use_id", "content", "is_error", "cache_control")
	return nil
}

// string reads a string field that must be present.
func (d *anthropicDecoder) string(path string, all map[string]json.RawMessage, key string) (string, error) {
	var s string
	if kindOf(all[key]) != '"' {
		return "", &DecodeError{Path: at(path, key), Reason: "want a string"}
	}
	return s, read(at(path, key), "a string", all[key], &s)
}

// mark reads the cache mark of a block. The mark becomes a part after the block. The
// takes argument reports whether the block can have a mark.
func (d *anthropicDecoder) mark(path string, all map[string]json.RawMessage, m *convo.Message, takes bool) {
	raw := all["cache_control"]
	if isNull(raw) {
		return
	}
	mark, ok := decodedMark(raw)
	if !ok || !takes {
		d.lose(at(path, "cache_control"), lostMark)
		return
	}
	if n := len(m.Parts); n > 0 && m.Parts[n-1] == convo.Part(mark) {
		return // the result and its last block have the same mark
	}
	m.Parts = append(m.Parts, mark)
}

// mediaBlock reads an image or a document. It returns false if the block has
// other fields than its source, or if Encode would write it differently.
func mediaBlock(kind string, all map[string]json.RawMessage) (m convo.Media, ok bool) {
	for key, raw := range all {
		if key != "type" && key != "source" && key != "cache_control" && !isNull(raw) {
			return m, false
		}
	}
	source, err := fields("", all["source"])
	if err != nil {
		return m, false
	}
	for key := range source {
		if key != "type" && key != "media_type" && key != "data" && key != "url" {
			return m, false
		}
	}
	mime, data := stringOf(source["media_type"]), stringOf(source["data"])
	switch from := stringOf(source["type"]); {
	case from == "base64" && data != "":
		m.MIME, m.Data = mime, data
	case from == "url":
		m.URL = stringOf(source["url"])
		if kind == "document" {
			m.MIME = "application/pdf"
		}
	case from == "text" && mime == "text/plain":
		m.MIME, m.Data = mime, base64.StdEncoding.EncodeToString([]byte(data))
	}
	_, as := anthropicMedia(m)
	return m, as == kind
}
