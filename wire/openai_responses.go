package wire

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// OpenAIResponses is the format of OpenAI's Responses, and of those that speak
// it: Request.Messages are the items of the input.
//
// System text goes into the instructions, as a JSON string. The provider does
// not keep them with a response, so they belong to every request, also to one
// with a previous_response_id.
//
// Reasoning is sent back in its encrypted form (ask for it with include:
// ["reasoning.encrypted_content"]), directly before the text or call that it
// led to, else not at all. The provider knows the two by their ids. Decode
// keeps the id of the item that came after in Reasoning.Signature; without it,
// reasoning goes back without an id of its own. Of reasoning with several
// summaries the Text holds all, with two empty lines between them.
//
// What the model's other tools do (web_search_call, custom_tool_call and so
// on), and tools that came later (additional_tools), are Opaque: whole items,
// or parts of the content of a message. They are sent as they are, if the
// provider would not refuse them. An Opaque block of the type "convo_fields"
// is no item: it holds fields of the text or call behind it that have no other
// place, the phase of a text and the namespace of a call.
//
// Not carried: ids and status of texts, calls and results, except beside
// reasoning; citations, names of files, the detail of images; which result is
// an error, other than by its text; media in assistant messages, and sounds,
// videos and unusual files anywhere, for which a short text stands; in
// instructions, Opaque blocks.
type OpenAIResponses struct {
	Model     string // the request goes to; own reasoning goes back only to it. Empty: to any
	Developer bool   // system text stands in the input, in messages of the role developer

	// Plain is for DeepSeek, vLLM and others whose reasoning is plain text: it
	// goes back as such, and encrypted reasoning does not.
	Plain bool
}

const responsesFormat = "openai-responses"

var responsesNames = &names{"instructions", "input"}

// Encode writes the request.
func (f OpenAIResponses) Encode(s *convo.Snapshot) (Request, error) {
	prof := profile{format: responsesFormat, model: f.Model, ids: openAIResponsesIDs}
	p, err := project(s, prof)
	if err != nil {
		return Request{}, err
	}
	r := Request{NeedsTools: p.needsTools, names: responsesNames}
	w := responsesWriter{f: f, ids: make(map[string]bool)}
	if f.Developer {
		for _, part := range p.system {
			w.content("developer", []convo.Part{part})
		}
	} else if text := joinTexts(p.system, "\n\n"); text != "" {
		r.System = appendString(nil, text)
	}
	said := prof.assistants(s)
	for i := range p.turns {
		t := &p.turns[i]
		w.turn++
		switch t.role {
		case convo.RoleUser:
			w.content("user", t.parts)
		case convo.RoleAssistant:
			w.assistant(said[0].Parts, t)
			said = said[1:]
		case convo.RoleTool:
			for i := range t.results {
				w.result(&t.results[i])
			}
		}
	}
	r.Messages = settled(w.items)
	if len(r.Messages) == 0 {
		if r.System == nil {
			return Request{}, ErrEmpty
		}
		r.Messages = append(r.Messages, json.RawMessage(`{"role":"user","content":"`+continueMarker+`"}`)) // an input must hold something
	}
	return r, nil
}

// assistants returns the messages that the assistant turns were made of. In a
// turn calls come last; here reasoning still stands before what it led to.
func (p *profile) assistants(s *convo.Snapshot) []convo.Message {
	msgs := s.Messages()
	return slices.DeleteFunc(msgs, func(m convo.Message) bool {
		return m.Role != convo.RoleAssistant || len(p.keep(&m, p.isOwn(m.Origin))) == 0
	})
}

// A responsesItem is an item of the input, and what rules need to know of it.
type responsesItem struct {
	raw    json.RawMessage // nil: left out
	turn   int
	kind   string // its type; of messages the role
	id     string
	whole  bool   // it came as it is
	callID string // of one that did
	next   string // of reasoning: the id of what must stand behind it, if that has one
}

// responsesFields are fields of an item that no part has a place for.
type responsesFields struct {
	Type      string
	ID        string
	Phase     string
	Namespace string
}

const fieldsType = "convo_fields"

// A responsesWriter collects items.
type responsesWriter struct {
	f     OpenAIResponses
	ids   map[string]bool // of items
	items []responsesItem
	turn  int
}

func (w *responsesWriter) add(it responsesItem) {
	it.turn = w.turn
	w.items = append(w.items, it)
}

// use takes an id for an item. It reports whether that may be.
func (w *responsesWriter) use(id string) bool {
	if id == "" || w.ids[id] {
		return false
	}
	w.ids[id] = true
	return true
}

var itemID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// isItemID reports whether an id is one that the provider gives to such items.
func isItemID(id, prefix string) bool { return strings.HasPrefix(id, prefix) && itemID.MatchString(id) }

// opaque reads an opaque block. It reports whether the provider takes it: as
// an item, or inside a message of the role (or "result").
func (w *responsesWriter) opaque(o convo.Opaque, role string) (it responsesItem, content, ok bool) {
	var m map[string]any
	if json.Unmarshal([]byte(o.JSON), &m) != nil || m == nil {
		return it, false, false
	}
	k := responsesChecker{checker: new(checker), f: w.f}
	kind := str(m["type"])
	if isContentType(kind) {
		k.part("", m, role)
		return responsesItem{kind: kind}, true, len(k.list) == 0
	}
	it = responsesItem{raw: json.RawMessage(o.JSON), kind: kind, whole: true, id: str(m["id"]), callID: str(m["call_id"])}
	if kind == "" || kind == "message" {
		it.kind = str(m["role"])
	}
	switch kind {
	case "function_call", "function_call_output", fieldsType: // of parts of their own
		return it, false, false
	}
	k.item("", m)
	return it, false, len(k.list) == 0 && role != "result" && role != "developer"
}

func isContentType(kind string) bool {
	return strings.HasPrefix(kind, "input_") || strings.HasPrefix(kind, "output_") || kind == "refusal"
}

// content writes a message of the user or the system; items among the parts
// stand by themselves.
func (w *responsesWriter) content(role string, parts []convo.Part) {
	var run []convo.Part
	flush := func() {
		if len(run) > 0 {
			b := appendStringField([]byte{'{'}, "role", role)
			w.add(responsesItem{kind: role, raw: append(w.appendContent(b, "content", run), '}')})
			run = nil
		}
	}
	for _, part := range parts {
		if o, isOpaque := part.(convo.Opaque); isOpaque {
			it, isContent, ok := w.opaque(o, role)
			if !ok || it.kind == "reasoning" {
				continue
			}
			if !isContent {
				flush()
				if it.id == "" || w.use(it.id) {
					w.add(it)
				}
				continue
			}
		}
		run = append(run, shown(part))
	}
	flush()
}

// shown returns a part, or the text that stands for it.
func shown(part convo.Part) convo.Part {
	if m, ok := part.(convo.Media); ok && responsesMedia(m) == "" {
		return convo.Text(mediaText(m))
	}
	return part
}

// appendContent appends what a user says, or a result: a string if it is one
// text.
func (w *responsesWriter) appendContent(b []byte, key string, parts []convo.Part) []byte {
	if len(parts) == 1 {
		if text, ok := parts[0].(convo.Text); ok {
			return appendStringField(b, key, string(text))
		}
	}
	b = append(appendField(b, key), '[')
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendPart(b, `"input_text"`, "text", string(p))
		case convo.Opaque:
			b = appendElement(b, p.JSON)
		case convo.Media:
			b = appendResponsesMedia(b, p)
		}
	}
	return append(b, ']')
}

// responsesMedia says how media are sent: as "image", "file", or "" for not.
func responsesMedia(m convo.Media) string {
	kind, sub, _ := strings.Cut(m.MIME, "/")
	switch {
	case m.Data == "" && strings.HasPrefix(m.URL, "data:"):
		return ""
	case kind == "image" && (m.Data == "" || slices.Contains(imageTypes, sub)), m.MIME == "":
		return "image"
	case kind == "text",
		kind == "application" && (sub == "pdf" || sub == "json" || sub == "rtf" || sub == "msword" || strings.HasPrefix(sub, "vnd.")),
		kind == "application" && m.Data == "":
		return "file"
	}
	return ""
}

func appendResponsesMedia(b []byte, m convo.Media) []byte {
	if responsesMedia(m) == "image" {
		b = appendElement(b, `{"type":"input_image","detail":"auto"`)
		return append(appendStringField(b, "image_url", dataURL(m)), '}')
	}
	if m.Data == "" {
		return appendPart(b, `"input_file"`, "file_url", m.URL)
	}
	_, sub, _ := strings.Cut(m.MIME, "/")
	b = appendElement(b, `{"type":"input_file"`)
	b = appendStringField(b, "filename", "file."+extension(sub))
	return append(appendStringField(b, "file_data", dataURL(m)), '}')
}

// result writes a result: a text, or a list where there is more than text.
func (w *responsesWriter) result(r *convo.ToolResult) {
	rich := false
	var parts []convo.Part
	if r.IsError {
		parts = append(parts, convo.Text("Error:"))
	}
	for _, p := range r.Parts {
		switch p := p.(type) {
		case convo.Media:
			rich = rich || responsesMedia(p) != ""
		case convo.Opaque:
			if _, content, ok := w.opaque(p, "result"); !content || !ok {
				continue
			}
			rich = true
		}
		parts = append(parts, shown(p))
	}
	b := []byte(`{"type":"function_call_output"`)
	b = appendStringField(b, "call_id", r.CallID)
	if rich {
		b = w.appendContent(b, "output", parts)
	} else {
		b = appendStringField(b, "output", resultText(r))
	}
	w.add(responsesItem{kind: "function_call_output", raw: append(b, '}')})
}

// settled returns the items without those that the provider would refuse for
// what stands beside them: reasoning with nothing after it, items that came
// after reasoning which is gone, outputs and calls of other tools than
// functions without each other. Leaving one out may leave another alone.
func settled(items []responsesItem) []json.RawMessage {
	for n := -1; n != len(items); {
		n = len(items)
		items = unpaired(items)
		bare, kept := -1, items[:0]
		for i, it := range items {
			switch {
			case it.kind == "reasoning":
				next := i + 1
				for next < len(items) && items[next].kind == "reasoning" {
					next++
				}
				if it.raw != nil && (next == len(items) || items[next].turn != it.turn || !mayFollow(items[next].kind) || it.next != "" && it.next != items[next].id) {
					it.raw = nil
				}
				bare = -1
				if it.raw == nil {
					bare = it.turn
				}
			case it.turn == bare && it.whole && it.id != "":
				continue
			}
			kept = append(kept, it)
		}
		items = kept
	}
	out := make([]json.RawMessage, 0, len(items))
	for _, it := range items {
		if it.raw != nil {
			out = append(out, it.raw)
		}
	}
	return out
}

// unpaired returns the items without outputs that answer nothing before them,
// and calls that nothing answers.
func unpaired(items []responsesItem) []responsesItem {
	type key struct{ kind, id string }
	open := map[key][]int{}
	drop := map[int]bool{}
	for i, it := range items {
		kind, isOutput := strings.CutSuffix(it.kind, "_output")
		k := key{kind, it.callID}
		switch {
		case kind == "function_call" || !needsOutput(kind):
		case !isOutput && len(open[k]) > 0:
			drop[i] = true // a second one of this id
		case !isOutput:
			open[k] = append(open[k], i)
		case len(open[k]) == 0:
			drop[i] = true
		default:
			open[k] = nil
		}
	}
	for _, list := range open {
		for _, i := range list {
			drop[i] = true
		}
	}
	kept := items[:0]
	for i, it := range items {
		if !drop[i] {
			kept = append(kept, it)
		}
	}
	return kept
}
