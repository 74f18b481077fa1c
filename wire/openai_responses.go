package wire

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// OpenAIResponses is the format of OpenAI's Responses API, and of other providers that
// have adopted it. Request.Messages are the items of the input.
//
// System text goes into Request.System, the instructions, as a JSON string. The provider
// does not store instructions with a response, so send them with every request, even with
// a previous_response_id.
//
// Reasoning is sent back in its encrypted form, for which a request asks with include:
// ["reasoning.encrypted_content"]. It must be directly before the text or call that it
// led to; otherwise it is left out. The provider recognizes both by their ids. Decode
// keeps the id of the item that followed in Reasoning.Signature; reasoning without it is
// sent without its own id. If reasoning has several summaries, Text holds all of them,
// separated by two empty lines.
//
// Items of other tools (web_search_call and so on), and tools that were added later
// (additional_tools), are Opaque. Each is a whole item, or a part of the content of a
// message. They are sent unchanged, or left out if the provider would refuse them. An
// Opaque block of the type "convo_fields" is not an item. It holds fields of the text or
// call after it that have no other place: the phase of a text, the namespace of a call,
// and that the call is one of a custom tool.
//
// The Arguments of a call of a custom tool are its input, which is any text. In other
// formats it is a function call, with the input inside an object. The custom_tool_call
// items of xAI's search are calls that xAI has run, and Opaque.
//
// The format has no place for the ids and the status of texts, calls and results, except
// next to reasoning; for file names and the detail of images; or for Opaque blocks in the
// instructions. The annotations of a text are an Opaque part after it,
// {"annotations":[...]}. They are sent unless they name positions that the text does not
// have, or lack a field that the provider needs. An error result begins with "Error: ". A
// short text replaces media in assistant messages, sound, video and unusual files, and
// media at a URL that does not begin with http:// or https://.
type OpenAIResponses struct {
	// Model is the model of the request. Reasoning is sent back only to the
	// model that made it. If Model is empty, reasoning of any model is sent.
	Model string

	// Reasoning selects which reasoning is sent back. The default is all of it.
	Reasoning convo.Replay

	SystemSummary bool // send the summary at the end of the system text; see the package documentation
	Developer     bool // send system text in the input, in messages with the role developer
	StrictTools   bool // Tools asks for arguments that follow the schema exactly

	// Cache sends the marks of CacheMark that are in user messages and results, and in
	// system text if Developer is set. Models since gpt-5.6 take them. A parameter of the
	// request sets how long the provider keeps its cache.
	Cache bool

	// Plain is for DeepSeek, vLLM and other servers whose reasoning is plain text. With
	// Plain, plain reasoning is sent back, and encrypted reasoning is not.
	Plain bool
}

var responsesNames = &names{"tools", "instructions", "input"}

// Encode returns the request for a snapshot.
func (f OpenAIResponses) Encode(s *convo.Snapshot) (Request, error) { return encode(f, s) }

func (f OpenAIResponses) begin(seen *tally, lost *losses) (profile, writer) {
	p := profile{format: FormatOpenAIResponses, compacts: f.takesCompaction, seals: SealsUnchecked, model: f.Model, ids: openAIResponsesIDs, accepts: openAIToolNames, names: responsesNames, replay: f.Reasoning, systemSum: f.SystemSummary, notes: true, marks: f.Cache}
	return p, &responsesWriter{f: f, seen: seen, lost: lost, sys: new([]cacheMark)}
}

// A responsesItem is an item of the input.
type responsesItem struct {
	raw     json.RawMessage // nil: reasoning that cannot be sent
	message int             // number of the message in the projection
	kind    string          // its type, or the role of a message
	id      string
	whole   bool   // it was an Opaque block
	callID  string // for an Opaque block
	marks   []cacheMark
	next    string // for reasoning: the id of the item that must follow, if it has one
	at      place  // for reasoning and for an Opaque block
	by      string // for a call of a function and its output: the callID of the program that makes the call
	byAt    place  // for such a call: the place of the part that says so
}

// noteItems identifies the items of a note.
type noteItems struct {
	message int // their number
	note    message
}

// A responsesWriter collects the items of a request.
type responsesWriter struct {
	f         OpenAIResponses
	seen      *tally // the ids of the items so far, and other ids
	lost      *losses
	items     []responsesItem
	notes     []noteItems  // until the first user message
	customIDs []string     // the ids of the calls of custom tools in the newest assistant message
	callers   []string     // the ids of the calls in it that programs make, each followed by the callID of the program
	sys       *[]cacheMark // the marks in the messages that system last returned
	number    int          // number of the message in the projection
	unsettled int          // number of messages whose items settled must look at together with those of others
}

func (w *responsesWriter) grow(n int) { w.items = make([]responsesItem, 0, n) }

func (w *responsesWriter) save() any { return *w }

func (w *responsesWriter) restore(state any) { *w = state.(responsesWriter) }

func (w *responsesWriter) message(t *message) {
	from := len(w.items)
	w.number++
	switch t.role {
	case convo.RoleUser:
		w.content("user", t.parts, t.place)
	case convo.RoleSystem:
		role := "system"
		if w.f.Developer {
			role = "developer"
		}
		if !slices.ContainsFunc(w.items, func(it responsesItem) bool { return it.kind == "user" }) {
			w.notes = append(slices.Clip(w.notes), noteItems{w.number, *t})
		}
		w.content(role, t.parts, t.place)
	case convo.RoleAssistant:
		w.assistant(t)
	case convo.RoleTool:
		for i := range t.results {
			w.result(&t.results[i])
		}
	}
	reasons, paired := false, false
	for i := range w.items[from:] {
		it := &w.items[from+i]
		reasons, paired = reasons || it.kind == "reasoning", paired || it.isPaired()
	}
	switch {
	case paired:
		w.unsettled++
	case reasons:
		w.items = append(w.items[:from], settled(w.items[from:], w.lost)...)
	}
}

func (w *responsesWriter) request(p *projector, _ *convo.Snapshot, r *Request) error {
	r.CacheTTL = lifetimeOf(w.f.Model)
	items := w.items
	if w.unsettled > 0 {
		items = settled(slices.Clone(items), w.lost)
	}
	if len(w.notes) > 0 {
		items = w.lead(items, p, r)
	}
	front := len(r.Messages)
	own := slices.Clone(*w.sys)
	r.Messages = slices.Grow(slices.Clip(r.Messages), len(items)+1)
	var programs []string // those before the item
	for i := range items {
		it := &items[i]
		raw := it.raw
		switch {
		case it.kind == programKind:
			programs = append(programs, it.callID)
		case it.by != "" && slices.Contains(programs, it.by):
			raw = slices.Concat(raw[:len(raw)-1], appendStringField([]byte(`,"caller":{"type":"program"`), "caller_id", it.by), []byte("}}"))
		case it.by != "" && it.kind == "function_call":
			w.lost.tell(it.byAt, whole, lostBlock, "")
		}
		r.Messages = append(r.Messages, raw)
		for _, m := range items[i].marks {
			m.message = i
			own = append(own, m)
		}
	}
	if len(own) > 0 {
		marks := cacheRule{}.choose(own, nil, w.lost)
		for i := range r.Messages {
			at := i - front
			if at < 0 {
				at = inSystem + at + 1
			}
			if of := marksOf(marks, at); len(of) > 0 {
				r.Messages[i] = withMarks(r.Messages[i], of, responsesMark, "")
			}
		}
	}
	if len(r.Messages) == 0 {
		if r.System == nil {
			return ErrEmpty
		}
		r.Messages = append(r.Messages, json.RawMessage(`{"role":"user","content":"`+continueMarker+`"}`)) // the input must not be empty
	}
	return nil
}

// lead moves the notes before which nothing is sent into the system text, because the
// model would read them as system text. It returns the other items.
func (w *responsesWriter) lead(items []responsesItem, p *projector, r *Request) []responsesItem {
	all := p.projection
	for _, n := range w.notes {
		own := 0
		for own < len(items) && items[own].message == n.message {
			own++
		}
		if own == 0 && len(items) > 0 && items[0].message < n.message {
			break
		}
		items = items[own:]
		all.system = append(slices.Clip(all.system), n.note.parts...)
		for i := range n.note.parts {
			all.places = append(slices.Clip(all.places), n.note.place(i))
		}
	}
	if len(all.system) > len(p.system) {
		r.System, r.Messages = w.system(&all, w.lost)
		p.wrote = false // w keeps the system text of all
	}
	return items
}

// system returns the system text as instructions, or as messages if Developer is set.
func (w *responsesWriter) system(p *projection, lost *losses) (text json.RawMessage, list []json.RawMessage) {
	if w.f.Developer {
		own := responsesWriter{f: w.f, seen: new(tally), lost: lost}
		for i := 0; i < len(p.system); {
			n := i + 1 // a part, and the marks after it
			for n < len(p.system) {
				if _, mark := isMark(p.system[n]); !mark {
					break
				}
				n++
			}
			own.content("developer", p.system[i:n], func(k int) place { return p.places[i+k] })
			i = n
		}
		*w.sys = nil
		for i, it := range own.items {
			list = append(list, it.raw)
			for _, m := range it.marks {
				m.message = inSystem + 1 + i - len(own.items)
				*w.sys = append(*w.sys, m)
			}
		}
	} else if all := joinTexts(p.system, "\n\n"); all != "" {
		text = strictjson.AppendString(nil, all)
	}
	if !w.f.Developer {
		lost.unjoined(p.system, p.places)
	}
	return text, list
}

func (w *responsesWriter) add(it responsesItem) {
	if it.whole && it.kind == "custom_tool_call" { // no later call gets its id
		w.seen.add(sentID, it.callID)
		w.seen.add(blockCall, it.callID)
	}
	it.message, it.raw = w.number, slices.Clip(it.raw)
	w.items = append(w.items, it)
}

// use records that an item has an id. It returns false if the id is empty or another item
// has it.
func (w *responsesWriter) use(id string) bool {
	if id == "" || w.seen.has(itemName, id) {
		return false
	}
	w.seen.add(itemName, id)
	return true
}

// isItemID reports whether the provider could have given id to an item whose
// ids begin with prefix.
func isItemID(id, prefix string) bool { return strings.HasPrefix(id, prefix) && openAIToolNames(id) }

// opaque returns the item for an opaque block. The result content reports whether the
// block is part of the content of a message, and ok whether the provider accepts the
// block there, in a message with the given role or in a "result".
func (w *responsesWriter) opaque(o convo.Opaque, role string) (it responsesItem, content, ok bool) {
	var m map[string]any
	if json.Unmarshal([]byte(o.JSON), &m) != nil || m == nil || !utf8.ValidString(o.JSON) {
		return it, false, false
	}
	k := responsesChecker{checker: checker{format: FormatOpenAIResponses}}
	kind := str(m["type"])
	if isContentType(kind) {
		if kind == "refusal" && str(m["refusal"]) == "" {
			return it, false, false
		}
		k.part("", m, role)
		return responsesItem{kind: kind}, true, len(k.list) == 0
	}
	it = responsesItem{raw: json.RawMessage(o.JSON), kind: kind, whole: true, id: str(m["id"]), callID: str(m["call_id"])}
	if kind == "" || kind == "message" {
		it.kind = str(m["role"])
	}
	switch kind {
	case "function_call", "function_call_output", fieldsType: // written from other parts
		return it, false, false
	case "custom_tool_call":
		if w.seen.has(sentID, it.callID) && !w.seen.has(blockCall, it.callID) { // a ToolCall has this id
			return it, false, false
		}
	}
	k.item("", m)
	return it, false, len(k.list) == 0 && role != "result" && role != "developer"
}

func isContentType(kind string) bool {
	return strings.HasPrefix(kind, "input_") || strings.HasPrefix(kind, "output_") || kind == "refusal"
}

// content writes a user or system message. Parts that are whole items are
// written between the messages for the other parts. placeOf returns the places of parts.
func (w *responsesWriter) content(role string, parts []convo.Part, placeOf func(int) place) {
	var run []convo.Part
	var places []partPlace // the places of run
	flush := func() {
		if len(run) > 0 {
			b := appendStringField(begin(sizeOf(run)), "role", role)
			b, marks := w.appendContent(b, "content", run, places)
			w.add(responsesItem{kind: role, raw: append(b, '}'), marks: marks})
			run, places = nil, nil
		}
	}
	for i, part := range parts {
		if _, mark := isMark(part); mark {
			if len(run) > 0 {
				run, places = append(run, part), append(places, partPlace{placeOf(i), whole})
			} else {
				w.lost.tell(placeOf(i), whole, lostCacheMark, "")
			}
			continue
		}
		if o, isOpaque := part.(convo.Opaque); isOpaque {
			it, isContent, ok := w.opaque(o, role)
			if !ok || it.kind == "reasoning" {
				w.lost.tell(placeOf(i), whole, lostBlock, "")
				continue
			}
			if !isContent {
				flush()
				it.at = placeOf(i)
				if it.id == "" || w.use(it.id) {
					w.add(it)
				} else {
					w.lost.tell(it.at, whole, lostBlock, "")
				}
				continue
			}
		}
		as, ok := shown(part)
		if !ok {
			w.lost.tell(placeOf(i), whole, lostMedia, "")
		}
		run, places = append(run, as), append(places, partPlace{placeOf(i), whole})
	}
	flush()
}

// shown returns a part, or the text that replaces it if it cannot be sent.
func shown(part convo.Part) (_ convo.Part, ok bool) {
	if m, ok := part.(convo.Media); ok && responsesMedia(m) == "" {
		return convo.Text(mediaText(m)), false
	}
	return part, true
}

// appendContent appends the content of a user message or a result, and returns the cache
// marks in it. The places argument has the places of the parts. The content is a string
// if there is only one text.
func (w *responsesWriter) appendContent(b []byte, key string, parts []convo.Part, places []partPlace) (_ []byte, marks []cacheMark) {
	if len(parts) == 1 {
		if text, ok := parts[0].(convo.Text); ok {
			return appendStringField(b, key, string(text)), nil
		}
	}
	b = append(strictjson.Key(b, key), '[')
	for i, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendPart(b, `"input_text"`, "text", string(p))
		case convo.Opaque:
			if long, mark := isMark(p); mark {
				marks = appendMark(marks, len(b)-1, long, places[i])
			} else {
				b = appendElement(b, p.JSON)
			}
		case convo.Media:
			b = appendResponsesMedia(b, p)
		}
	}
	return append(b, ']'), marks
}

// responsesMedia returns how media are sent: as an "image", as a "file", or ""
// if they cannot be sent.
func responsesMedia(m convo.Media) string {
	kind, sub, _ := strings.Cut(m.MIME, "/")
	switch {
	case m.Data == "" && !isWebURL(m.URL):
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

// result writes a result. Its output is a string if it holds only text.
func (w *responsesWriter) result(r *result) {
	rich := false
	var parts []convo.Part
	var places []partPlace // the places of parts
	if r.IsError {
		parts, places = append(parts, convo.Text("Error:")), append(places, partPlace{nowhere, whole})
	}
	for i, p := range r.Parts {
		at := partPlace{r.at, r.inside(i)}
		if _, mark := isMark(p); mark {
			if len(parts) > 0 {
				parts, places, rich = append(parts, p), append(places, at), true
			} else {
				w.lost.tell(r.at, at.inside, lostCacheMark, "")
			}
			continue
		}
		as, ok := shown(p)
		switch p := p.(type) {
		case convo.Media:
			rich = rich || ok
			if !ok {
				w.lost.tell(r.at, r.inside(i), lostMedia, "")
			}
		case convo.Opaque:
			if _, content, ok := w.opaque(p, "result"); !content || !ok {
				w.lost.tell(r.at, r.inside(i), lostBlock, "")
				continue
			}
			rich = true
		}
		parts, places = append(parts, as), append(places, at)
	}
	kind := "function_call_output"
	if slices.Contains(w.customIDs, r.CallID) {
		kind = "custom_tool_call_output"
	}
	b := appendStringField(begin(sizeOf(parts)+64), "type", kind)
	b = appendStringField(b, "call_id", r.CallID)
	var marks []cacheMark
	if rich {
		b, marks = w.appendContent(b, "output", parts, places)
	} else {
		b = appendStringField(b, "output", resultText(&r.ToolResult))
	}
	it := responsesItem{kind: "function_call_output", raw: append(b, '}'), marks: marks}
	if i := slices.Index(w.callers, r.CallID); i >= 0 && i%2 == 0 {
		it.by = w.callers[i+1]
	}
	w.add(it)
}

// settled returns the items without those that the provider would refuse because of their
// neighbours. These are reasoning without the item that it led to, items that followed
// reasoning which is left out, and calls and outputs of tools other than functions that
// have no counterpart. Since leaving one item out can affect others, it repeats until
// nothing changes. It records in lost what it leaves out.
func settled(items []responsesItem, lost *losses) []responsesItem {
	for n := -1; n != len(items); {
		n = len(items)
		items = unpaired(items, lost)
		bare, kept := -1, items[:0]
		for i, it := range items {
			switch {
			case it.kind == "reasoning":
				next := i + 1
				for next < len(items) && items[next].kind == "reasoning" {
					next++
				}
				if it.raw != nil && (next == len(items) || items[next].message != it.message || !mayFollow(items[next].kind) || it.next != "" && it.next != items[next].id) {
					it.raw = nil
					it.tell(lost)
				}
				bare = -1
				if it.raw == nil {
					bare = it.message
				}
			case it.message == bare && it.whole && it.id != "":
				it.tell(lost)
				continue
			case !it.whole:
				bare = -1 // what follows does not come right after the reasoning
			}
			kept = append(kept, it)
		}
		items = kept
	}
	return slices.DeleteFunc(items, func(it responsesItem) bool { return it.raw == nil })
}

// tell records that an item is left out. The item is reasoning or an Opaque block.
func (it *responsesItem) tell(lost *losses) {
	what := lostBlock
	if it.kind == "reasoning" && !it.whole {
		what = lostReasoning
	}
	lost.tell(it.at, whole, what, "")
}

// isPaired reports whether an item is a call or an output of a tool other than a
// function. Whether it is sent depends on items of other messages.
func (it *responsesItem) isPaired() bool {
	kind := strings.TrimSuffix(it.kind, "_output")
	return kind != "function_call" && needsOutput(kind)
}

// kindsAfter yields the types of items, which is "message" for each message.
func kindsAfter(items []responsesItem) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range items {
			kind := items[i].kind
			switch kind {
			case "user", "assistant", "system", "developer":
				kind = "message"
			}
			if !yield(kind) {
				return
			}
		}
	}
}

// unpaired returns the items without outputs that follow no call, and without calls that
// have no output. It looks only at tools other than functions; the projection has already
// paired the results of functions.
func unpaired(items []responsesItem, lost *losses) []responsesItem {
	type key struct{ kind, id string }
	open := map[key][]int{}
	drop := map[int]bool{}
	for i, it := range items {
		kind, isOutput := strings.CutSuffix(it.kind, "_output")
		k := key{kind, it.callID}
		switch {
		case kind == "function_call" || !needsOutput(kind):
		case !isOutput && len(open[k]) > 0:
			drop[i] = true // a second call with this id
		case !isOutput:
			open[k] = append(open[k], i)
		case len(open[k]) == 0:
			drop[i] = true
		default:
			open[k] = nil
		}
	}
	for k, list := range open {
		for _, i := range list {
			drop[i] = k.kind != programKind || !waitsFor(kindsAfter(items[i+1:]))
		}
	}
	kept := items[:0]
	for i := range items {
		it := items[i]
		if drop[i] {
			it.tell(lost)
		} else {
			kept = append(kept, it)
		}
	}
	return kept
}

// Tools implements [ToolWriter]. Without StrictTools it marks tools as not strict,
// because they are strict by default.
func (f OpenAIResponses) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	functions, err := openAITools.write(tools, f.StrictTools, func(b []byte, t convo.Tool, schema string) []byte {
		b = appendTool(appendStringField(b, "type", "function"), t, "parameters", schema)
		return fmt.Appendf(b, `,"strict":%v`, f.StrictTools)
	})
	return withOwn(functions, err, tools, FormatOpenAIResponses)
}

// responsesMark returns a mark as a field of a part of the content.
func responsesMark(bool) string { return `,"prompt_cache_breakpoint":{"mode":"explicit"}` }
