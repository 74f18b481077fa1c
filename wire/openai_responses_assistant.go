package wire

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An assistantWriter writes the items of one assistant message. Calls come
// last, and reasoning stays with the text or call that it led to.
type assistantWriter struct {
	*responsesWriter
	message *message
	calls   []convo.Part // not yet written, with the ids to be sent
	texts   map[int]bool // which of all calls are of custom tools
	written int          // how many calls were

	front, back []responsesItem
	thoughts    []convo.Part // reasoning since the last item
	fields      partFields
	run         []convo.Part   // the content of the message being written
	cites       map[int]string // the annotations of texts in it, by their index
	runID       string
	runPhase    string
}

func (w *responsesWriter) assistant(t *message) {
	a := assistantWriter{responsesWriter: w, message: t, calls: t.calls(), texts: customCalls(t.all, FormatOpenAIResponses)}
	w.customIDs = nil
	for i, part := range t.all {
		if o, ok := part.(convo.Opaque); ok && o.Format == FormatOpenAIResponses {
			if list := attached(o); list != nil {
				if i > 0 && isSaid(t.all[i-1]) { // which is the last of a.run
					a.cite(sentCitations(list, string(t.all[i-1].(convo.Text))))
				}
				continue
			}
		}
		a.part(part)
	}
	a.flush()
	for _, it := range append(a.front, a.back...) {
		w.add(it)
	}
}

func (a *assistantWriter) part(part convo.Part) {
	switch part := part.(type) {
	case convo.Text:
		if !isBlank(string(part)) {
			a.say(part)
		}
	case convo.Media:
		a.say(convo.Text(mediaText(part)))
	case convo.Reasoning:
		a.thoughts = append(a.thoughts, part)
	case convo.ToolCall:
		a.call()
	case convo.Opaque:
		if part.Format == FormatOpenAIResponses {
			a.opaque(part)
		}
	}
}

// say adds a part to the message being written. After reasoning, or fields of a
// text, it begins a new one.
func (a *assistantWriter) say(p convo.Part) {
	if len(a.thoughts) > 0 || a.fields.Type != "" {
		a.flush()
		var thoughts []responsesItem
		thoughts, a.runID = a.lead("msg_", "")
		a.front = append(a.front, thoughts...)
		a.runPhase = a.fields.Phase
		a.fields = partFields{}
	}
	a.run = append(a.run, p)
}

// cite adds annotations to the last part of the message being written, which is a text.
func (a *assistantWriter) cite(annotations json.RawMessage) {
	if annotations == nil {
		return
	}
	if a.cites == nil {
		a.cites = map[int]string{}
	}
	a.cites[len(a.run)-1] = string(annotations)
}

// flush writes the message, if there is one.
func (a *assistantWriter) flush() {
	if len(a.run) == 0 {
		return
	}
	raw := len(a.cites) > 0
	for _, p := range a.run {
		if _, ok := p.(convo.Opaque); ok {
			raw = true
		}
	}
	b := begin(sizeOf(a.run) + 64)
	if a.runID != "" || raw {
		b = appendStringField(b, "type", "message")
	}
	if a.runID != "" {
		b = appendStringField(b, "id", a.runID)
	}
	b = appendStringField(b, "role", "assistant")
	if itemID.MatchString(a.runPhase) {
		b = appendStringField(b, "phase", a.runPhase)
	}
	if a.runID == "" && !raw {
		b = appendStringField(b, "content", joinTexts(a.run, "\n"))
	} else {
		b = append(appendField(b, "content"), '[')
		for i, p := range a.run {
			switch p := p.(type) {
			case convo.Text:
				b = appendPart(b, `"output_text"`, "text", string(p))
				b = append(appendRawField(b[:len(b)-1], "annotations", cmp.Or(a.cites[i], "[]")), '}')
			case convo.Opaque:
				b = appendElement(b, p.JSON)
			}
		}
		b = append(b, ']')
		if a.runID != "" {
			b = appendStringField(b, "status", "completed")
		}
	}
	a.front = append(a.front, responsesItem{kind: "assistant", id: a.runID, raw: append(b, '}')})
	a.run, a.cites, a.runID, a.runPhase = nil, nil, "", ""
}

// call writes the next call, after the reasoning that led to it.
func (a *assistantWriter) call() {
	a.flush()
	for !isCall(a.calls[0]) { // a cache mark, which the API does not take here
		a.calls = a.calls[1:]
	}
	call := a.calls[0].(convo.ToolCall)
	a.calls = a.calls[1:]
	kind, prefix, argument, text := "function_call", "fc_", "arguments", call.Arguments
	if a.texts[a.written] {
		kind, prefix, argument = "custom_tool_call", "ctc_", "input"
		a.customIDs = append(a.customIDs, call.ID)
	} else {
		text = object(text)
	}
	a.written++
	thoughts, id := a.lead(prefix, "")
	b := appendStringField(begin(len(call.ID)+len(call.Name)+quotedLen(text)+96), "type", kind)
	if id != "" {
		b = appendStringField(b, "id", id)
	}
	b = appendStringField(b, "call_id", call.ID)
	b = appendStringField(b, "name", toolName(call.Name))
	if ns := a.fields.Namespace; ns != "" && toolName(ns) == ns {
		b = appendStringField(b, "namespace", ns)
	}
	b = appendStringField(b, argument, text)
	a.fields = partFields{}
	it := responsesItem{kind: "function_call", id: id, raw: append(b, '}')} // also of a custom tool: it has its result
	if a.f.Plain {
		a.front = append(a.front, thoughts...) // such providers pair calls by position, so nothing may stand between them
		a.back = append(a.back, it)
		return
	}
	a.back = append(append(a.back, thoughts...), it)
}

func (a *assistantWriter) opaque(o convo.Opaque) {
	if f, ok := fieldsOf(o); ok {
		a.fields = f
		return
	}
	it, content, ok := a.responsesWriter.opaque(o, "assistant")
	switch {
	case !ok:
	case content:
		a.say(o)
	case it.kind == "reasoning":
		a.thoughts = append(a.thoughts, o)
	case it.kind == "compaction" && !a.message.own: // only its maker can read it
	case it.id != "" && a.seen.has(itemName, it.id): // it occurs twice
	default:
		a.flush()
		thoughts, _ := a.lead("", it.id)
		a.fields = partFields{}
		a.front = append(a.front, thoughts...)
		if it.id != "" {
			a.seen.add(itemName, it.id)
		}
		a.front = append(a.front, it)
	}
}

// lead writes the reasoning before an item. If the item has an id already, that
// is itemID; otherwise lead returns the id that the item should get, which
// begins with prefix. Reasoning that cannot be sent becomes an item without
// JSON, so that settled sees that it is missing.
func (a *assistantWriter) lead(prefix, itemID string) (items []responsesItem, id string) {
	thoughts := a.thoughts
	a.thoughts = nil
	for i, p := range thoughts {
		it := responsesItem{kind: "reasoning"}
		if a.message.thinks && (a.f.Plain || i == len(thoughts)-1) { // only the last encrypted one leads to the item
			switch p := p.(type) {
			case convo.Reasoning:
				it.raw, id = a.thought(p, prefix, itemID)
			case convo.Opaque:
				it.raw, id = a.wholeThought(p, prefix, itemID)
			}
			it.next = cmp.Or(id, itemID)
		}
		items = append(items, it)
	}
	return items, id
}

// thought writes reasoning. It returns nil if that cannot be sent, and
// otherwise the id that the next item should get.
func (a *assistantWriter) thought(r convo.Reasoning, prefix, itemID string) (raw json.RawMessage, id string) {
	b := []byte(`{"type":"reasoning"`)
	if a.f.Plain == (r.Encrypted != "") {
		return nil, ""
	}
	if a.f.Plain {
		if isBlank(r.Text) {
			return nil, ""
		}
		if isItemID(r.ID, "") && a.use(r.ID) {
			b = appendStringField(b, "id", r.ID)
		}
		b = append(b, `,"summary":[],"content":[`...)
		b = appendPart(b, `"reasoning_text"`, "text", r.Text)
		return append(b, "]}"...), ""
	}
	follows := itemID != "" || prefix != "" && isItemID(r.Signature, prefix) && !a.seen.has(itemName, r.Signature)
	switch {
	case follows && isItemID(r.ID, "rs_") && r.ID != itemID && a.use(r.ID):
		b = appendStringField(b, "id", r.ID)
		if itemID == "" && a.use(r.Signature) {
			id = r.Signature
		}
	case itemID != "": // the provider expects reasoning with an id before such an item
		return nil, ""
	}
	b = append(appendField(b, "summary"), '[')
	for text := range strings.SplitSeq(r.Text, summarySep) {
		if text != "" {
			b = appendPart(b, `"summary_text"`, "text", text)
		}
	}
	b = append(b, ']')
	return append(appendStringField(b, "encrypted_content", r.Encrypted), '}'), id
}

// wholeThought is like thought, for reasoning that is an Opaque block.
func (a *assistantWriter) wholeThought(o convo.Opaque, prefix, itemID string) (raw json.RawMessage, id string) {
	var m map[string]any
	if json.Unmarshal([]byte(o.JSON), &m) != nil {
		return nil, ""
	}
	own := str(m["id"])
	switch {
	case own != "" && (a.seen.has(itemName, own) || own == itemID):
		return nil, ""
	case isPlainThought(m) != a.f.Plain:
		return nil, ""
	case a.f.Plain:
	case own != "" && itemID == "":
		if id = a.fields.ID; prefix == "" || !isItemID(id, prefix) || id == own || !a.use(id) {
			return nil, ""
		}
	case str(m["encrypted_content"]) == "", own == "" && itemID != "":
		return nil, ""
	}
	if own != "" {
		a.seen.add(itemName, own)
	}
	return json.RawMessage(o.JSON), id
}

// isPlainThought reports whether a reasoning item holds plain text. Then it
// need not be followed by the item that it led to.
func isPlainThought(m map[string]any) bool {
	content, _ := m["content"].([]any)
	return len(content) > 0 && str(m["encrypted_content"]) == ""
}

// summarySep separates the summaries in Reasoning.Text.
const summarySep = "\n\n\n"

// mayFollow reports whether reasoning can lead to an item of a kind.
func mayFollow(kind string) bool {
	return kind == "assistant" || strings.HasSuffix(kind, "_call") || kind == "item_reference" || kind == "mcp_list_tools" || kind == "mcp_approval_request"
}

// needsOutput reports whether calls of a kind need an output.
func needsOutput(kind string) bool {
	switch kind {
	case "function_call", "custom_tool_call", "shell_call", "apply_patch_call", "computer_call":
		return true
	}
	return false
}
