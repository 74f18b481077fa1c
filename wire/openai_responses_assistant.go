package wire

import (
	"cmp"
	"encoding/json"
	"iter"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// An assistantWriter writes the items of one assistant message. Calls come last, and
// reasoning stays directly before the text or call that it led to.
type assistantWriter struct {
	*responsesWriter
	message *message
	calls   []convo.Part // not yet written, with the ids to be sent
	texts   map[int]bool // which of all calls are of custom tools
	written int          // number of calls written

	at          place // the place of the part that is being read
	front, back []responsesItem
	thoughts    []convo.Part // reasoning since the last item
	places      []place      // of thoughts
	fields      partFields
	fieldsAt    place
	run         []convo.Part   // the content of the message being written
	cites       map[int]string // the annotations of texts in it, by their index
	runID       string
	runPhase    string
}

func (w *responsesWriter) assistant(t *message) {
	a := assistantWriter{responsesWriter: w, message: t, calls: t.calls(), texts: customCalls(t.all, FormatOpenAIResponses)}
	w.customIDs, w.callers = nil, nil
	for i, part := range t.all {
		a.at = t.placeOfAll(i)
		if o, ok := part.(convo.Opaque); ok && o.Format == FormatOpenAIResponses {
			if list := citationsIn(o); list != nil {
				if i > int(t.tag) && isSaid(t.all[i-1]) { // this is the last part of a.run
					sent, _ := a.lost.citations(a.at, list, string(t.all[i-1].(convo.Text)))
					a.cite(sent)
				}
				continue
			}
		}
		a.part(part)
	}
	a.flush()
	for i, p := range a.thoughts { // reasoning that no item follows
		a.loseThought(a.places[i], p)
	}
	a.drop(a.fields.Phase, a.fields.Namespace, a.fields.Call, a.fields.CallerID)
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
		a.lost.tell(a.at, whole, lostMedia, "")
		a.say(convo.Text(mediaText(part)))
	case convo.Reasoning:
		a.think(part)
	case convo.ToolCall:
		a.call()
	case convo.Opaque:
		if _, mark := isMark(part); mark {
			a.lost.tell(a.at, whole, lostCacheMark, "")
		} else if part.Format == FormatOpenAIResponses {
			a.opaque(part)
		}
	}
}

// think keeps reasoning, to write it before the next item.
func (a *assistantWriter) think(p convo.Part) {
	a.thoughts, a.places = append(a.thoughts, p), append(a.places, a.at)
}

// loseThought records that reasoning is left out.
func (a *assistantWriter) loseThought(at place, p convo.Part) {
	if r, ok := p.(convo.Reasoning); !ok {
		a.lost.tell(at, whole, lostBlock, "")
	} else if a.message.thinks {
		a.lost.reasoning(at, r, convo.Reasoning{})
	}
}

// drop forgets the fields block that was read. It records the block as lost if one of the
// unsent values is not empty.
func (a *assistantWriter) drop(unsent ...string) {
	if a.fields.Type != "" && strings.Join(unsent, "") != "" {
		a.lost.tell(a.fieldsAt, whole, lostBlock, "")
	}
	a.fields = partFields{}
}

// say adds a part to the message being written. After reasoning, or fields of a text, it
// begins a new message.
func (a *assistantWriter) say(p convo.Part) {
	if len(a.thoughts) > 0 || a.fields.Type != "" {
		a.flush()
		var thoughts []responsesItem
		thoughts, a.runID = a.lead("msg_", "")
		a.front = append(a.front, thoughts...)
		unsent := a.fields.Phase
		if openAIToolNames(a.fields.Phase) {
			a.runPhase, unsent = a.fields.Phase, ""
		}
		a.drop(unsent, a.fields.Namespace, a.fields.Call, a.fields.CallerID)
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
	if a.runPhase != "" {
		b = appendStringField(b, "phase", a.runPhase)
	}
	if a.runID == "" && !raw {
		b = appendStringField(b, "content", joinTexts(a.run, "\n"))
	} else {
		b = append(strictjson.Key(b, "content"), '[')
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
	for !isCall(a.calls[0]) { // a cache mark, which the API does not accept here
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
	b = appendStringField(b, "name", call.Name)
	unsent := a.fields.Namespace
	if openAIToolNames(unsent) {
		b = appendStringField(b, "namespace", unsent)
		unsent = ""
	}
	b = appendStringField(b, argument, text)
	if kind == "custom_tool_call" {
		a.fields.Call = ""
	}
	it := responsesItem{kind: "function_call", id: id, raw: append(b, '}')} // also for a call of a custom tool: it has its result
	if a.fields.Caller == programKind && a.fields.CallerID != "" {
		it.by, it.byAt = a.fields.CallerID, a.fieldsAt
		a.callers = append(a.callers, call.ID, it.by)
		a.fields.CallerID = ""
	}
	a.drop(unsent, a.fields.Phase, a.fields.Call, a.fields.CallerID)
	if a.f.Plain {
		a.front = append(a.front, thoughts...) // such providers pair calls by position, so nothing may stand between them
		a.back = append(a.back, it)
		return
	}
	a.back = append(append(a.back, thoughts...), it)
}

func (a *assistantWriter) opaque(o convo.Opaque) {
	if f, ok := fieldsOf(o); ok {
		a.drop(a.fields.Phase, a.fields.Namespace, a.fields.Call, a.fields.CallerID)
		a.fields, a.fieldsAt = f, a.at
		return
	}
	it, content, ok := a.responsesWriter.opaque(o, "assistant")
	it.at = a.at
	switch {
	case it.kind == "reasoning": // also an item that cannot be sent, which takes the next item with it
		a.think(o)
	case !ok:
		a.lost.tell(a.at, whole, lostBlock, "")
	case content:
		a.say(o)
	case it.kind == "compaction" && !a.message.own, // only its maker can read it
		it.id != "" && a.seen.has(itemName, it.id): // it occurs twice
		a.lost.tell(a.at, whole, lostBlock, "")
	default:
		a.flush()
		thoughts, _ := a.lead("", it.id)
		a.drop(a.fields.Phase, a.fields.Namespace, a.fields.Call, a.fields.CallerID)
		a.front = append(a.front, thoughts...)
		if it.id != "" {
			a.seen.add(itemName, it.id)
		}
		a.front = append(a.front, it)
	}
}

// lead returns the reasoning before an item. If the item already has an id, itemID is
// that id; otherwise lead returns the id that the item should get, which begins with
// prefix. Reasoning that cannot be sent becomes an item without JSON, which shows settled
// that it is missing.
func (a *assistantWriter) lead(prefix, itemID string) (items []responsesItem, id string) {
	thoughts := a.thoughts
	a.thoughts = nil
	for i, p := range thoughts {
		it := responsesItem{kind: "reasoning", at: a.places[i]}
		_, it.whole = p.(convo.Opaque)
		if a.message.thinks && (a.f.Plain || i == len(thoughts)-1) { // only the last encrypted one leads to the item
			switch p := p.(type) {
			case convo.Reasoning:
				it.raw, id = a.thought(it.at, p, prefix, itemID)
			case convo.Opaque:
				it.raw, id = a.wholeThought(p, prefix, itemID)
			}
			it.next = cmp.Or(id, itemID)
		}
		if it.raw == nil {
			a.loseThought(it.at, p)
		}
		items = append(items, it)
	}
	a.places = nil
	return items, id
}

// thought writes reasoning at a place. It returns nil if the reasoning cannot be sent,
// and otherwise also the id that the next item should get.
func (a *assistantWriter) thought(at place, r convo.Reasoning, prefix, itemID string) (raw json.RawMessage, id string) {
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
		} else if r.ID != "" {
			a.lost.tell(at, whole, lostProof, "")
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
	case r.ID != "":
		a.lost.tell(at, whole, lostProof, "")
	}
	b = append(strictjson.Key(b, "summary"), '[')
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
	k := responsesChecker{checker: checker{format: FormatOpenAIResponses}}
	k.item("", m)
	own := str(m["id"])
	switch {
	case len(k.list) > 0, !a.f.Plain && str(m["encrypted_content"]) == "":
		return nil, ""
	case own != "" && (a.seen.has(itemName, own) || own == itemID):
		return nil, ""
	case isPlainThought(m) != a.f.Plain:
		return nil, ""
	case a.f.Plain:
	case own != "" && itemID == "":
		id = a.fields.ID
		if prefix == "" || !isItemID(id, prefix) || id == own || !a.use(id) {
			return nil, ""
		}
	case own == "" && itemID != "":
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
	return kind == "assistant" || kind == programKind || strings.HasSuffix(kind, "_call") || kind == "item_reference" || kind == "mcp_list_tools" || kind == "mcp_approval_request"
}

// needsOutput reports whether calls of a kind need an output.
func needsOutput(kind string) bool {
	switch kind {
	case "function_call", "custom_tool_call", "shell_call", "apply_patch_call", "computer_call", programKind:
		return true
	}
	return false
}

// programKind is the type of a program that the provider runs. It waits for its output
// while it calls functions, over any number of requests.
const programKind = "program"

// waitsFor reports whether a program without an output may be sent with items of these
// types after it: the provider goes on with it when it has the outputs at the end. Any
// message ends the turn.
func waitsFor(kinds iter.Seq[string]) bool {
	last := ""
	for last = range kinds {
		if last == "" || last == "message" {
			return false
		}
	}
	return strings.HasSuffix(last, "_output")
}
