package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Stream returns a [Stream] that reads the events of the Responses API. The stream ends
// with response.completed or response.incomplete, whose response is the answer; items
// that it lacks are taken from the events before. The output_index assigns events to
// items, because some proxies change the IDs.
//
// If a stream breaks off, the items that the provider ended are kept, and the text of the
// others. A refusal is in the Transcript and in no [Delta].
func (f OpenAIResponses) Stream() Stream { return &responsesStream{format: f} }

type responsesStream struct {
	streamBase
	format   OpenAIResponses
	response map[string]json.RawMessage // of the newest event that has one
	output   []outputItem               // of the last event
	items    sequence[*streamedItem]
	newest   *streamedItem
	calls    int
}

// A streamedItem is an item that events describe.
type streamedItem struct {
	index  int
	kind   string
	fields map[string]json.RawMessage // the fields of the item when it began
	whole  json.RawMessage            // the item when it was ended
	call   *CallDelta                 // for a call: its number, ID and name
	slots  map[slotKey]*itemSlot
	thinks bool // reasoning was shown
}

// An itemSlot is a text of an item that arrives in deltas, or a part that holds one.
type itemSlot struct {
	slotKey
	kind  string // of the part
	text  streamedText
	part  json.RawMessage   // a whole part of the list
	notes []json.RawMessage // the annotations
}

// A slotKey is the place of a slot in its item.
type slotKey struct {
	list  string // "content", "summary", or "" for a field of the item itself
	at    int    // in the list
	field string // the name of the field
}

// inOrder returns the slots in the order of their places.
func (it *streamedItem) inOrder() []*itemSlot {
	return slices.SortedFunc(maps.Values(it.slots), func(a, b *itemSlot) int {
		return cmp.Or(strings.Compare(a.list, b.list), cmp.Compare(a.at, b.at), strings.Compare(a.field, b.field))
	})
}

// Event implements [Stream].
func (s *responsesStream) Event(name string, data []byte) ([]Delta, error) {
	return s.event(name, data, s.read)
}

// read reads an event with these fields.
func (s *responsesStream) read(name string, data []byte, all map[string]json.RawMessage) ([]Delta, error) {
	if kind := stringOf(all["type"]); kind != "" {
		name = kind
	}
	if slices.Contains(responsesEnds, name) {
		return s.end(name, all["response"])
	}
	switch name {
	case "response.created":
		return s.created(all["response"])
	case "response.queued", "response.in_progress":
		now, err := optionalFields("response", all["response"])
		if err != nil {
			return nil, err
		}
		if now != nil && !s.done {
			s.id, s.response = cmp.Or(s.id, stringOf(now["id"])), now
		}
		return nil, nil
	case "ping", "keepalive":
		return nil, nil
	case "":
		switch {
		case !isNull(all["output"]): // from a server that does not stream
			return s.end("response."+stringOf(all["status"]), bytes.Clone(data))
		case isError(all):
			return nil, providerError(data)
		}
		return nil, noType(data)
	}
	if isErrorItem(all) {
		return nil, providerError(data)
	}
	if !strings.HasPrefix(name, "response.") {
		s.lose(name, lostEvent)
		return nil, nil
	}
	return s.itemEvent(strings.TrimPrefix(name, "response."), all)
}

// created reads response.created. If its ID is another one, the provider has started
// again.
func (s *responsesStream) created(raw json.RawMessage) ([]Delta, error) {
	all, err := fields("response", raw)
	if err != nil {
		return nil, err
	}
	id := stringOf(all["id"])
	restart, err := s.begin(id)
	var out []Delta
	switch {
	case err != nil:
		return nil, err
	case restart:
		*s = responsesStream{format: s.format}
		s.id = id
		out = []Delta{{Restart: true}}
	}
	if s.response == nil {
		s.response = all
	}
	return out, nil
}

// An outputItem is an item of the answer, as the last event holds it and as the events
// before described it.
type outputItem struct {
	raw  json.RawMessage
	from int // its index in the last event
	item *streamedItem
}

// end reads the last event.
func (s *responsesStream) end(name string, raw json.RawMessage) ([]Delta, error) {
	all, err := fields("response", raw)
	if err != nil {
		return nil, err
	}
	var output []json.RawMessage
	if raw := all["output"]; !isNull(raw) {
		if err := read("response.output", "an array of items", raw, &output); err != nil {
			return nil, err
		}
	}
	if s.done {
		if id := stringOf(all["id"]); id != stringOf(s.response["id"]) {
			return nil, errSecondAnswer
		}
		return nil, nil
	}
	s.response, s.id = all, cmp.Or(s.id, stringOf(all["id"]))
	failed := name == "response.failed"
	came := s.items.inOrder()
	items := s.match(output, came)
	if !failed {
		s.output = s.merge(output, items, came)
	}
	var out []Delta
	for i, it := range items {
		if it == nil { // no event described it
			it = s.newItem(s.items.next(), output[i])
			s.add(it)
			items[i] = it
			if it.call != nil {
				out = append(out, Delta{Call: new(*it.call)})
			}
		}
		if it.whole == nil {
			it.end(output[i])
		}
		out = append(out, it.showRest(output[i])...)
	}
	for i, o := range s.output {
		if o.item == nil {
			s.output[i].item = items[o.from]
		}
	}
	if failed {
		e := failedResponse(all, raw)
		s.err = e
		return out, e
	}
	s.done = true
	return out, nil
}

// end records the whole item, unless the provider broke off within it.
func (it *streamedItem) end(raw json.RawMessage) {
	it.fields, _ = optionalFields("-", raw)
	it.name()
	it.whole = raw
	if stringOf(it.fields["status"]) == "incomplete" {
		it.whole = nil
	}
}

// match returns, for each item of the last event, the item that earlier events described.
// That is the item with the same ID or, because IDs may change, the next one of its kind.
func (s *responsesStream) match(output []json.RawMessage, came []*streamedItem) []*streamedItem {
	found := make([]*streamedItem, len(output))
	used := map[*streamedItem]bool{}
	byID := map[string]*streamedItem{}
	for _, it := range came {
		if id := it.id(); id != "" {
			byID[it.kind+" "+id] = it
		}
	}
	for i, raw := range output {
		o := s.newItem(0, raw)
		if it := byID[o.kind+" "+o.id()]; it != nil && !used[it] {
			found[i], used[it] = it, true
		}
	}
	next := map[string]int{}
	for i, raw := range output {
		if found[i] != nil {
			continue
		}
		kind := s.newItem(0, raw).kind
		for k := next[kind]; k < len(came); k++ {
			next[kind] = k + 1
			if it := came[k]; it.kind == kind && !used[it] {
				found[i], used[it] = it, true
				break
			}
		}
	}
	return found
}

// id returns the ID that identifies an item among others of its kind.
func (it *streamedItem) id() string {
	return cmp.Or(stringOf(it.fields["call_id"]), stringOf(it.fields["id"]))
}

// merge returns the items of the last event and the items that it lacks, in the order of
// the events. The found argument is the result of match.
func (s *responsesStream) merge(output []json.RawMessage, found, came []*streamedItem) []outputItem {
	type item struct {
		at int
		outputItem
	}
	at := map[*streamedItem]int{}
	for i, it := range came {
		at[it] = i
	}
	var all []item
	last := -1
	ordered := true
	for i, it := range found {
		if it != nil {
			ordered = ordered && at[it] > last
			last = at[it]
			delete(at, it)
		}
		all = append(all, item{last, outputItem{output[i], i, it}})
	}
	if ordered || len(output) < len(came) {
		for i, it := range came {
			if _, missing := at[it]; !missing {
				continue
			}
			raw := it.whole
			if raw == nil {
				if !it.named() {
					s.lose(atIndex("output", it.index), lostNameless)
					continue
				}
				raw = it.appendTo(nil, false)
			}
			all = append(all, item{i, outputItem{raw: raw, item: it}})
		}
		if len(at) > 0 {
			slices.SortStableFunc(all, func(a, b item) int { return a.at - b.at })
		}
	}
	merged := make([]outputItem, len(all))
	for i, it := range all {
		merged[i] = it.outputItem
	}
	return merged
}

// newItem returns an item. If it is a call, it has no number yet.
func (s *responsesStream) newItem(index int, raw json.RawMessage) *streamedItem {
	it := &streamedItem{index: index}
	it.fields, _ = optionalFields("-", raw)
	it.kind = cmp.Or(stringOf(it.fields["type"]), "message")
	if it.kind == "function_call" || it.kind == "custom_tool_call" && !isServed(s.response["tools"], it.fields) {
		it.call = new(CallDelta)
	}
	it.name()
	return it
}

// name records the ID and the name of a call.
func (it *streamedItem) name() {
	if it.call != nil {
		it.call.ID = cmp.Or(stringOf(it.fields["call_id"]), it.call.ID)
		it.call.Name = cmp.Or(stringOf(it.fields["name"]), it.call.Name)
	}
}

// argument returns the field with the arguments of a call.
func (it *streamedItem) argument() string {
	if it.kind == "custom_tool_call" {
		return "input"
	}
	return "arguments"
}

// named reports whether an item can be read: a call needs a name.
func (it *streamedItem) named() bool { return it.call == nil || it.call.Name != "" }

// count gives a call its number.
func (s *responsesStream) count(it *streamedItem) {
	if it.call != nil {
		it.call.Index = s.calls
		s.calls++
	}
}

// add adds an item.
func (s *responsesStream) add(it *streamedItem) {
	s.count(it)
	s.items.add(it.index, it)
	s.newest = it
}

// itemAt returns the item that an event describes, or nil. Without an index, it returns
// the newest item.
func (s *responsesStream) itemAt(all map[string]json.RawMessage) (it *streamedItem, index int, err error) {
	raw := all["output_index"]
	if isNull(raw) {
		if s.newest == nil {
			return nil, 0, nil
		}
		return s.newest, s.newest.index, nil
	}
	if err := read("output_index", "a whole number", raw, &index); err != nil {
		return nil, 0, err
	}
	return s.items.at(index), index, nil
}

// A slotEvent describes the text that a kind of event adds to.
type slotEvent struct {
	item  string // the kind of item
	list  string
	index string // the field with the place in the list
	kind  string // of the part
	value string // the field of the last event of its kind that has the whole text
}

var slotEvents = map[string]slotEvent{
	"output_text":                {"message", "content", "content_index", "output_text", "text"},
	"refusal":                    {"message", "content", "content_index", "refusal", "refusal"},
	"reasoning_text":             {"reasoning", "content", "content_index", "reasoning_text", "text"},
	"reasoning_summary_text":     {"reasoning", "summary", "summary_index", "summary_text", "text"},
	"function_call_arguments":    {"function_call", "", "", "arguments", "arguments"},
	"mcp_call_arguments":         {"mcp_call", "", "", "arguments", "arguments"},
	"custom_tool_call_input":     {"custom_tool_call", "", "", "input", "input"},
	"code_interpreter_call_code": {"code_interpreter_call", "", "", "code", "code"},
}

// itemEvent reads an event that describes an item. Unknown kinds add nothing to the whole
// item, and are ignored; an unknown event without an item is lost.
func (s *responsesStream) itemEvent(name string, all map[string]json.RawMessage) (out []Delta, err error) {
	it, index, err := s.itemAt(all)
	if err != nil {
		return nil, err
	}
	kind, verb := name, ""
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		kind, verb = name[:i], name[i+1:]
	}
	slot, known := slotEvents[kind]
	if s.done {
		if name == "output_item.added" || known && verb == "delta" {
			return nil, errSecondAnswer
		}
		return nil, nil
	}
	switch {
	case kind == "output_item":
		raw := all["item"]
		if kindOf(raw) != '{' {
			return nil, &DecodeError{Path: "item", Reason: "want a JSON object, got " + kindName(raw)}
		}
		o := s.newItem(index, raw)
		isNew := it == nil || it.kind != o.kind
		if verb == "added" && isNull(all["output_index"]) {
			o.index, isNew = s.items.next(), true
		} else if verb == "added" && it != nil && it.whole != nil { // if it is not a repetition, the server does not count indexes
			isNew = o.id() == "" || o.id() != it.id()
		}
		switch {
		case isNew:
			it = o
			s.add(it)
		case it.whole == nil: // the item began with a delta
			it.fields = o.fields
			it.name()
		}
		if verb == "done" {
			it.end(raw)
		}
		if isNew && it.call != nil {
			out = append(out, Delta{Call: new(*it.call)})
		}
		return append(out, it.showRest(raw)...), nil
	case kind == "content_part", kind == "reasoning_summary_part":
		list, key := "content", "content_index"
		if kind != "content_part" {
			list, key = "summary", "summary_index"
		}
		part := all["part"]
		inside, err := fields("part", part)
		if err != nil {
			return nil, err
		}
		at, err := placeIn(all, key)
		if err != nil {
			return nil, err
		}
		of := "message"
		if list == "summary" || stringOf(inside["type"]) == "reasoning_text" {
			of = "reasoning"
		}
		it = s.orNew(it, index, of)
		b := it.slot(list, at, stringOf(inside["type"]))
		if b.known() == "" || verb == "done" {
			b.part = part
		}
		return it.showPart(b, inside), nil
	case name == "output_text.annotation.added":
		at, err := placeIn(all, "content_index")
		if err == nil && it != nil && !isNull(all["annotation"]) {
			b := it.slot("content", at, "output_text")
			b.notes = append(b.notes, all["annotation"])
		}
		return nil, err
	case known && (verb == "delta" || verb == "done"):
		at, err := placeIn(all, slot.index)
		if err != nil {
			return nil, err
		}
		it = s.orNew(it, index, slot.item)
		b := it.slot(slot.list, at, slot.kind)
		if verb == "delta" {
			return it.show(b, all["delta"]), nil
		}
		return it.showTo(b, stringOf(all[slot.value])), nil
	case isNull(all["output_index"]) && isNull(all["item_id"]):
		s.lose("response."+name, lostEvent)
	}
	return nil, nil
}

// placeIn returns the index in a list that an event names.
func placeIn(all map[string]json.RawMessage, key string) (at int, err error) {
	if raw := all[key]; key != "" && !isNull(raw) {
		err = read(key, "a whole number", raw, &at)
	}
	return at, err
}

// orNew returns it or, if it is nil, a new item of a kind.
func (s *responsesStream) orNew(it *streamedItem, index int, kind string) *streamedItem {
	if it == nil {
		raw := `{"type":"` + kind + `"`
		if kind == "message" {
			raw += `,"role":"assistant"`
		}
		it = s.newItem(index, json.RawMessage(raw+"}"))
		s.add(it)
	}
	return it
}

// slot returns the slot at a place. It adds the slot if there is none.
func (it *streamedItem) slot(list string, at int, kind string) *itemSlot {
	key := slotKey{list: list, at: at}
	if list == "" {
		key.field = kind
	}
	b := it.slots[key]
	if b == nil {
		if it.slots == nil {
			it.slots = map[slotKey]*itemSlot{}
		}
		b = &itemSlot{slotKey: key, kind: kind}
		it.slots[key] = b
	}
	return b
}

// known returns the name of the field with the text of a part, or "" for a part of an
// unknown kind.
func (b *itemSlot) known() string {
	switch b.kind {
	case "output_text", "reasoning_text", "summary_text":
		return "text"
	case "refusal":
		return "refusal"
	}
	return ""
}

// show records a piece of a text, and returns what it shows.
func (it *streamedItem) show(b *itemSlot, raw json.RawMessage) []Delta {
	first := b.text.Builder.Len() == 0
	piece := b.text.add(raw)
	switch {
	case piece == "":
		return nil
	case b.kind == "output_text":
		return []Delta{{Text: piece}}
	case b.kind == "summary_text" || b.kind == "reasoning_text":
		if first && it.thinks {
			piece = summarySep + piece
		}
		it.thinks = true
		return []Delta{{Reasoning: piece}}
	case b.kind == it.argument() && it.call != nil:
		call := new(*it.call)
		call.Arguments = piece
		return []Delta{{Call: call}}
	}
	return nil
}

// showTo shows the rest of a text that was received whole, and keeps that text.
func (it *streamedItem) showTo(b *itemSlot, text string) []Delta {
	if rest, ok := strings.CutPrefix(text, b.text.Builder.String()); ok {
		b.text.half = ""
		return it.show(b, strictjson.AppendString(nil, rest))
	}
	if text != "" && strings.ContainsRune(b.text.String(), '\uFFFD') { // a delta held half a character
		b.text = streamedText{}
		b.text.WriteString(text)
	}
	return nil
}

// showPart shows the rest of a part.
func (it *streamedItem) showPart(b *itemSlot, part map[string]json.RawMessage) []Delta {
	if key := b.known(); key != "" {
		return it.showTo(b, stringOf(part[key]))
	}
	return nil
}

// showRest shows the rest of an item.
func (it *streamedItem) showRest(raw json.RawMessage) (out []Delta) {
	all, _ := optionalFields("-", raw)
	for _, list := range []string{"summary", "content"} {
		var parts []json.RawMessage
		if kindOf(all[list]) != '[' || it.kind != "message" && it.kind != "reasoning" {
			continue
		}
		_ = json.Unmarshal(all[list], &parts)
		for i, part := range parts {
			inside, _ := optionalFields("-", part)
			kind := stringOf(inside["type"])
			if b := it.slot(list, i, kind); b.kind == kind {
				out = append(out, it.showPart(b, inside)...)
			}
		}
	}
	if it.call != nil {
		if text := stringOf(all[it.argument()]); text != "" {
			out = append(out, it.showTo(it.slot("", 0, it.argument()), text)...)
		}
	}
	return out
}

// appendTo appends an item as the events have described it so far. The half argument
// reports whether the item is incomplete. Encrypted reasoning is then left out.
func (it *streamedItem) appendTo(b []byte, half bool) []byte {
	all := map[string]json.RawMessage{}
	for key, value := range it.fields {
		if !half || key != "encrypted_content" {
			all[key] = value
		}
	}
	lists := map[string][]byte{}
	for _, slot := range it.inOrder() {
		if slot.list == "" {
			all[slot.field] = slot.text.appendTo(nil)
			continue
		}
		list := lists[slot.list]
		if list == nil {
			list = []byte{'['}
		} else {
			list = append(list, ',')
		}
		lists[slot.list] = slot.appendTo(list)
	}
	for key, list := range lists {
		all[key] = append(list, ']')
	}
	return appendObject(b, all)
}

// appendTo appends a part.
func (b *itemSlot) appendTo(out []byte) []byte {
	if b.part != nil {
		return append(out, b.part...)
	}
	key := b.known()
	out = appendStringField(append(out, '{'), "type", b.kind)
	if key != "" {
		out = appendStringField(out, key, b.text.String())
	}
	if len(b.notes) > 0 {
		out = append(strictjson.Key(out, "annotations"), '[')
		for i, note := range b.notes {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, note...)
		}
		out = append(out, ']')
	}
	return append(out, '}')
}

// says reports whether an item that did not end holds any text.
func (it *streamedItem) says() bool {
	for _, b := range it.slots {
		if b.text.Len() > 0 || b.part != nil {
			return true
		}
	}
	return false
}

// Transcript implements [Stream].
func (s *responsesStream) Transcript() (Transcript, error) {
	output := s.output
	var lost []Loss
	if !s.done {
		output = nil
		for _, it := range s.items.inOrder() {
			raw := it.whole
			switch {
			case raw != nil:
			case it.kind == "message" || it.kind == "reasoning":
				if !it.says() {
					continue
				}
				raw = it.appendTo(nil, true)
			case it.call != nil && it.named():
				raw = it.appendTo(nil, true)
			default:
				lost = append(lost, Loss{atIndex("output", it.index), "an item that the provider had not ended: " + quote(it.kind)})
				continue
			}
			output = append(output, outputItem{raw: raw, item: it})
		}
	}
	var parts []answerPart
	for _, o := range output {
		p := answerPart{path: atIndex("output", o.item.index), json: o.raw, isCall: o.item.call != nil}
		if p.isCall {
			p.number, p.ended = o.item.call.Index, o.item.whole != nil
			p.half = !s.done && !p.ended
		}
		parts = append(parts, p)
	}
	return s.transcript(parts, lost, s.answer, func() (*decoder, func([]byte) error) {
		d := &responsesDecoder{decoder: decoder{format: FormatOpenAIResponses, own: s.format.Model, names: map[string]string{}}}
		return &d.decoder, func(data []byte) error { return d.decode("", data) }
	})
}

// answer returns the answer in the form of a response without a stream.
func (s *responsesStream) answer(items []answerPart, bare bool) []byte {
	answer := []byte{'{'}
	for _, key := range sortedKeys(s.response) {
		switch {
		case key == "output" || key == "type" || key == "response" || key == "error" && s.err != nil || bare && key != "tools":
		default:
			answer = append(append(strictjson.AppendString(comma(answer), key), ':'), s.response[key]...)
		}
	}
	return append(appendParts(strictjson.Key(answer, "output"), items), '}')
}
