package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Decode reads a request, a response, a list of messages or one message. A user
// message that holds results and other blocks becomes a tool message followed by
// a user message. A response does not name its model, so the maker of assistant
// messages is the model in the field modelId, or else f.Model.
func (f Converse) Decode(data []byte) (Transcript, error) {
	d := f.decoder()
	return d.finish(d.decode(data))
}

func (f Converse) decoder() *converseDecoder {
	return &converseDecoder{decoder{format: FormatConverse, model: f.Model, names: map[string]string{}}}
}

type converseDecoder struct{ decoder }

func (d *converseDecoder) decode(data []byte) error {
	if kindOf(data) == '[' {
		return d.list("", data)
	}
	all, err := fields("", data)
	if err != nil {
		return err
	}
	if raw := all["modelId"]; !isNull(raw) {
		if err := read("modelId", "a string", raw, &d.model); err != nil {
			return err
		}
	}
	switch {
	case all["messages"] != nil:
		if err := d.system(all["system"]); err != nil {
			return err
		}
		return d.list("messages", all["messages"])
	case saysError(all["error"]):
		return reported("", providerError(data))
	case all["output"] != nil, all["stopReason"] != nil, all["usage"] != nil:
		output, err := optionalFields("output", all["output"])
		if err != nil {
			return err
		}
		d.ended(stringOf(all["stopReason"]))
		d.out.Usage = d.converseUsage(all["usage"])
		if isNull(output["message"]) {
			return nil
		}
		return d.message("output.message", output["message"])
	case all["role"] != nil:
		return d.message("", data)
	}
	for _, key := range sortedKeys(all) {
		switch raw := all[key]; {
		case kindOf(raw) != '{':
		case slices.Contains(converseEvents, key):
			return isEvent("", key)
		case isException(key):
			e := providerError(raw)
			e.Type = cmp.Or(e.Type, key)
			return reported("", e)
		}
	}
	if !isNull(all["contentBlockIndex"]) {
		return isEvent("", "contentBlockDelta")
	}
	return unreadable(all, data, "not a request, response or message: want a field messages, output or role")
}

func (d *converseDecoder) system(data json.RawMessage) error {
	blocks, err := converseBlocks("system", data)
	if err != nil {
		return err
	}
	m := convo.Message{Role: convo.RoleSystem}
	for _, b := range blocks {
		p, err := d.common(b)
		if err != nil {
			return err
		}
		m.Parts = d.join(b, m.Parts, p)
	}
	if len(m.Parts) > 0 {
		d.add(m)
	}
	return nil
}

// join appends the part of a block to parts. The part may be nil. A cache mark cannot be
// the first part.
func (d *converseDecoder) join(b converseBlock, parts []convo.Part, p convo.Part) []convo.Part {
	if p == nil {
		return parts
	}
	if _, mark := isMark(p); mark && len(parts) == 0 {
		d.lose(b.path, lostMark)
		return parts
	}
	return append(parts, p)
}

func (d *converseDecoder) list(path string, data []byte) error {
	return elements(path, "an array of messages", data, func(path string, raw json.RawMessage) error { return d.message(path, raw) })
}

func (d *converseDecoder) message(path string, data []byte) error {
	all, err := fields(path, data)
	if err != nil {
		return err
	}
	var role string
	if err := read(at(path, "role"), "a string", all["role"], &role); err != nil {
		return err
	}
	if role != "user" && role != "assistant" {
		return &DecodeError{Path: at(path, "role"), Reason: "unknown role " + quote(role)}
	}
	blocks, err := converseBlocks(at(path, "content"), all["content"])
	if err != nil {
		return err
	}
	from := len(d.out.Messages)
	if role == "assistant" {
		err = d.assistant(blocks)
	} else {
		err = d.user(blocks)
	}
	d.keepRest(from, path, all, "role", "content")
	return err
}

// A converseBlock is one element of a content: an object with one field.
type converseBlock struct {
	path  string
	kind  string // the name of the field
	value json.RawMessage
	raw   json.RawMessage
}

func (b *converseBlock) valuePath() string { return b.path + "." + b.kind }

func (b *converseBlock) opaque() convo.Part {
	return convo.Opaque{Format: FormatConverse, JSON: compact(b.raw)}
}

func converseBlocks(path string, data json.RawMessage) ([]converseBlock, error) {
	if isNull(data) {
		return nil, nil
	}
	var list []json.RawMessage
	if err := read(path, "an array of blocks", data, &list); err != nil {
		return nil, err
	}
	blocks := make([]converseBlock, 0, len(list))
	for i, raw := range list {
		b := converseBlock{path: atIndex(path, i), raw: raw}
		all, err := fields(b.path, raw)
		if err != nil {
			return nil, err
		}
		for key, value := range all {
			if isNull(value) {
				delete(all, key)
				continue
			}
			b.kind, b.value = key, value
		}
		if len(all) != 1 {
			return nil, &DecodeError{Path: b.path, Reason: "want a block, which is an object with one field"}
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// common reads a block that has the same meaning in every message: text, or a
// block that becomes Opaque. It returns nil for an empty text.
func (d *converseDecoder) common(b converseBlock) (convo.Part, error) {
	switch b.kind {
	case "text":
		var text string
		if err := read(b.valuePath(), "a string", b.value, &text); err != nil || text == "" {
			return nil, err
		}
		return convo.Text(text), nil
	case "cachePoint":
		mark, ok := decodedMark(b.value)
		if !ok {
			d.lose(b.path, lostMark)
			return nil, nil
		}
		return mark, nil
	}
	return b.opaque(), nil
}

func (d *converseDecoder) user(blocks []converseBlock) error {
	var results, said []convo.Part
	for _, b := range blocks {
		var p convo.Part
		var err error
		switch b.kind {
		case "toolResult":
			if p, err = d.result(b); err == nil {
				results = append(results, p)
			}
			p = nil
		case "toolUse", "reasoningContent":
			err = &DecodeError{Path: b.path, Reason: "a " + b.kind + " block must be in an assistant message"}
		default:
			p, err = d.media(b)
		}
		if err != nil {
			return err
		}
		if _, mark := isMark(p); mark && len(said) == 0 && len(results) > 0 {
			end := results[len(results)-1].(convo.ToolResult)
			end.Parts = append(end.Parts, p)
			results[len(results)-1] = end
			continue
		}
		said = d.join(b, said, p)
	}
	if len(results) > 0 {
		d.add(convo.Message{Role: convo.RoleTool, Parts: results})
	}
	if len(said) > 0 || len(results) == 0 {
		d.add(convo.Message{Role: convo.RoleUser, Parts: said})
	}
	return nil
}

// media reads an image, a document or a video. It reads other blocks as common
// does.
func (d *converseDecoder) media(b converseBlock) (convo.Part, error) {
	switch b.kind {
	case "image", "document", "video":
	default:
		return d.common(b)
	}
	all, err := fields(b.valuePath(), b.value)
	if err != nil {
		return nil, err
	}
	var m convo.Media
	var format string
	_ = json.Unmarshal(all["format"], &format)
	for _, f := range converseFormats {
		if f.kind == b.kind && f.format == format {
			m.MIME = f.mime
			break
		}
	}
	var source map[string]json.RawMessage
	_ = json.Unmarshal(all["source"], &source)
	if len(source) == 1 && source["bytes"] != nil {
		_ = json.Unmarshal(source["bytes"], &m.Data)
	} else if len(source) == 1 {
		var location map[string]json.RawMessage
		_ = json.Unmarshal(source["s3Location"], &location)
		if len(location) == 1 {
			_ = json.Unmarshal(location["uri"], &m.URL)
		}
	}
	known := []string{"format", "source"}
	if b.kind == "document" {
		known = append(known, "name")
	}
	for key := range all {
		if !slices.Contains(known, key) {
			m.MIME = "" // convo.Media cannot hold this field
		}
	}
	if kind, _ := converseMedia(m); kind != b.kind || !text.IsBase64(m.Data) {
		return b.opaque(), nil
	}
	if !isNull(all["name"]) {
		d.lose(b.valuePath()+".name", "the name of a document")
	}
	return m, nil
}

func (d *converseDecoder) result(b converseBlock) (convo.Part, error) {
	path := b.valuePath()
	all, err := fields(path, b.value)
	if err != nil {
		return nil, err
	}
	var r convo.ToolResult
	var status string
	if err := readString(path, "toolUseId", all, &r.CallID); err != nil {
		return nil, err
	}
	if err := readString(path, "status", all, &status); err != nil {
		return nil, err
	}
	r.IsError = status == "error"
	d.nameResult(&r)
	blocks, err := converseBlocks(path+".content", all["content"])
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		p, err := d.media(b)
		if err != nil {
			return nil, err
		}
		if b.kind == "json" {
			p = convo.Text(compact(b.value)) // every format can send a text
		}
		if p != nil {
			r.Parts = append(r.Parts, p)
		}
		if b.kind == "json" && kindOf(b.value) == '{' {
			r.Parts = append(r.Parts, objectMark(FormatConverse))
		}
	}
	d.loseRest(path, all, "toolUseId", "status", "content")
	return r, nil
}

// readString reads a string field that may be missing.
func readString(path, key string, all map[string]json.RawMessage, to *string) error {
	if isNull(all[key]) {
		return nil
	}
	return read(path+"."+key, "a string", all[key], to)
}

func (d *converseDecoder) assistant(blocks []converseBlock) error {
	tools := make([]converseTool, len(blocks))
	for i, b := range blocks {
		if b.kind != "toolUse" && b.kind != "toolResult" {
			continue
		}
		all, err := fields(b.valuePath(), b.value)
		if err != nil {
			return err
		}
		var kind string
		if err := readString(b.valuePath(), "toolUseId", all, &tools[i].id); err != nil {
			return err
		}
		if err := readString(b.valuePath(), "type", all, &kind); err != nil {
			return err
		}
		tools[i].use, tools[i].result = b.kind == "toolUse", b.kind == "toolResult"
		tools[i].server = tools[i].use && kind == serverToolUse
	}
	for _, i := range serverTools(tools) {
		if tools[i].result {
			return &DecodeError{Path: blocks[i].path, Reason: "the result is in an assistant message that does not hold its call"}
		}
	}
	m := convo.Message{Role: convo.RoleAssistant, Origin: d.origin()}
	for i, b := range blocks {
		var p convo.Part
		var err error
		switch {
		case tools[i].use && !tools[i].server:
			err = d.call(b, &m)
		case b.kind == "reasoningContent":
			p, err = d.reasoning(b)
		case b.kind == "citationsContent":
			var cited bool
			if cited, err = d.cited(b, &m); !cited {
				p = b.opaque()
			}
		default:
			p, err = d.common(b)
			if p == nil && err == nil && b.kind == "text" && slices.ContainsFunc(blocks[i:], func(b converseBlock) bool { return b.kind == "reasoningContent" }) {
				p = convo.Text("") // the reasoning was made after it
			}
		}
		if err != nil {
			return err
		}
		m.Parts = d.join(b, m.Parts, p)
	}
	d.add(m)
	return nil
}

// cited reads a text with citations. It returns false if the block holds more than that.
func (d *converseDecoder) cited(b converseBlock, m *convo.Message) (bool, error) {
	all, err := fields(b.valuePath(), b.value)
	if err != nil {
		return false, err
	}
	var content []map[string]json.RawMessage
	var text strings.Builder
	citations := all["citations"]
	fits := json.Unmarshal(all["content"], &content) == nil && (kindOf(citations) == '[' || isNull(citations))
	for key := range all {
		fits = fits && (key == "content" || key == "citations")
	}
	for _, c := range content {
		fits = fits && len(c) == 1 && kindOf(c["text"]) == '"'
		text.WriteString(stringOf(c["text"]))
	}
	if !fits || isBlank(text.String()) {
		return false, nil
	}
	m.Parts = append(m.Parts, convo.Text(text.String()))
	d.cite(b.valuePath(), "citations", citations, m, text.String())
	return true, nil
}

// serverToolUse is the type of a call to a tool that the provider runs.
const serverToolUse = "server_tool_use"

// A converseTool describes a block of an assistant message that is a call or a
// result.
type converseTool struct {
	use, result, server bool
	id                  string
}

// serverTools marks the calls to tools that the provider runs: the calls whose
// results follow in the same message. It returns the indices of results without a call,
// and of calls marked already that have no result, in order.
func serverTools(tools []converseTool) (alone []int) {
	open := map[string][]int{}
	for i, t := range tools {
		switch {
		case t.use:
			open[t.id] = append(open[t.id], i)
		case t.result:
			uses := open[t.id]
			if len(uses) == 0 {
				alone = append(alone, i)
				continue
			}
			tools[uses[len(uses)-1]].server = true
			open[t.id] = uses[:len(uses)-1]
		}
	}
	for _, uses := range open {
		for _, i := range uses {
			if tools[i].server {
				alone = append(alone, i)
			}
		}
	}
	slices.Sort(alone)
	return alone
}

func (d *converseDecoder) call(b converseBlock, m *convo.Message) error {
	path := b.valuePath()
	all, err := fields(path, b.value)
	if err != nil {
		return err
	}
	var c convo.ToolCall
	if err := readString(path, "toolUseId", all, &c.ID); err != nil {
		return err
	}
	if err := readString(path, "name", all, &c.Name); err != nil {
		return err
	}
	if c.Name == "" {
		return &DecodeError{Path: path, Reason: "the call has no name"}
	}
	if !isNull(all["input"]) {
		c.Arguments = d.arguments(string(all["input"]))
	}
	d.wroteObject(all["input"])
	d.loseRest(path, all, "toolUseId", "name", "input", "type")
	d.addCall(path+".toolUseId", m, c)
	return nil
}

func (d *converseDecoder) reasoning(b converseBlock) (convo.Part, error) {
	path := b.valuePath()
	all, err := fields(path, b.value)
	if err != nil {
		return nil, err
	}
	var r convo.Reasoning
	text, redacted := all["reasoningText"], all["redactedContent"]
	switch {
	case !isNull(text) && !isNull(redacted):
		return nil, &DecodeError{Path: path, Reason: "the block holds both reasoningText and redactedContent"}
	case !isNull(redacted):
		if err := readString(path, "redactedContent", all, &r.Encrypted); err != nil {
			return nil, err
		}
		d.loseRest(path, all, "redactedContent")
		return r, nil
	case isNull(text):
		return b.opaque(), nil
	}
	d.loseRest(path, all, "reasoningText")
	path += ".reasoningText"
	if all, err = fields(path, text); err != nil {
		return nil, err
	}
	if err := readString(path, "text", all, &r.Text); err != nil {
		return nil, err
	}
	if err := readString(path, "signature", all, &r.Signature); err != nil {
		return nil, err
	}
	d.loseRest(path, all, "text", "signature")
	return r, nil
}
