package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// The chat files of Gemini CLI since 0.5. Source: google-gemini/gemini-cli at 5411f11,
// packages/core/src/services/chatRecordingTypes.ts and chatRecordingService.ts.
//
// A file is a list of changes, one for each line: a message, which replaces the one with its
// ID; $rewindTo, which takes a message and all after it away; and $set, whose messages
// replace the list. Older files are one object with the list. Calls and their results are in
// the message of the model.

// A geminiRecord is a message. The list after a compaction shares records with what was said
// before, so that a line which replaces a message replaces it in both.
type geminiRecord struct {
	id    string
	msgs  []convo.Message
	usage *convo.Usage
	model string
	time  time.Time
}

// replace puts a message that was written again in the place of r. What the provider has
// counted stays.
func (r *geminiRecord) replace(again *geminiRecord) {
	usage := cmp.Or(again.usage, r.usage)
	*r = *again
	r.usage = usage
}

// A geminiStep is a message, or a compaction with the list that was set.
type geminiStep struct {
	record  *geminiRecord
	compact bool
	view    []*geminiRecord
	time    time.Time
}

type geminiReader struct {
	in    *input
	s     *Session
	steps []geminiStep
	start int                      // of the steps after the newest compaction
	view  []*geminiRecord          // of the newest compaction
	byID  map[string]geminiPlace   // of the list
	known map[string]*geminiRecord // all that was read, by ID
}

// A geminiPlace is where a message is in the list: in the view, or after it.
type geminiPlace struct {
	viewed bool
	index  int
}

func readGeminiCLI(in *input) (*Session, error) {
	r := &geminiReader{in: in, s: &Session{Format: GeminiCLI}, byID: make(map[string]geminiPlace), known: make(map[string]*geminiRecord)}
	if r.isDocument() {
		if err := r.document(); err != nil {
			return nil, err
		}
	} else {
		for all, err := range in.records(&r.s.Counts) {
			if err == nil {
				err = r.record(all)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return r.s, nil
}

// isDocument reports whether the file is one object, with lines in it or with its messages.
func (r *geminiReader) isDocument() bool {
	head, _ := r.in.r.Peek(headSize)
	head = trimSpace(head)
	all, end := peekObject(head)
	return all["messages"] != nil || end == 0 && all["projectHash"] != nil
}

// document reads an older file.
func (r *geminiReader) document() error {
	s := &stream{in: r.in}
	fields := object{}
	err := s.object(func(key string) error {
		b, err := s.peek()
		if err != nil {
			return err
		}
		if key == "messages" && b == '[' {
			return s.list(func() error {
				raw, err := s.value()
				if err != nil {
					return err
				}
				r.s.Counts.Records++
				return r.message(objectOf(raw))
			})
		}
		raw, err := s.value()
		if err != nil {
			return err
		}
		fields[key] = slices.Clone(raw)
		return r.in.hold(len(raw))
	})
	if err == nil {
		if _, err = s.peek(); err == nil {
			err = errSyntax // more follows
		} else if err == io.EOF {
			err = nil
		}
	}
	_, tooLarge := errors.AsType[*LimitError](err)
	switch {
	case err == nil:
	case isTorn(err):
		r.s.Counts.Torn = 1
	case err == errSyntax:
		r.s.Counts.Records++
		r.s.Counts.Unknown++
	case tooLarge:
		return err
	default:
		return r.in.readError(err)
	}
	r.fields(fields)
	return nil
}

// fields reads what is said about the session.
func (r *geminiReader) fields(all object) {
	s := r.s
	s.ID = cmp.Or(all.text("sessionId"), s.ID)
	s.Title = cmp.Or(all.text("summary"), s.Title)
}

func (r *geminiReader) record(all object) error {
	switch {
	case all["$rewindTo"] != nil:
		r.rewind(all.text("$rewindTo"))
	case all["$set"] != nil:
		set := all.object("$set")
		r.fields(set)
		if set.kind("messages") == '[' {
			return r.set(set.list("messages"))
		}
	case all["sessionId"] != nil && all["id"] == nil:
		r.fields(all)
		for _, raw := range all.list("messages") {
			if err := r.message(objectOf(raw)); err != nil {
				return err
			}
		}
	default:
		return r.message(all)
	}
	return nil
}

// message adds a message to the list, or replaces one.
func (r *geminiReader) message(all object) error {
	rec, err := r.read(all)
	if rec == nil {
		return err
	}
	if _, ok := r.byID[rec.id]; ok && rec.id != "" {
		if len(rec.msgs) > 0 {
			r.s.Counts.Dropped++
		}
		r.known[rec.id].replace(rec)
		return nil
	}
	r.add(rec)
	return nil
}

func (r *geminiReader) add(rec *geminiRecord) {
	if rec.id != "" {
		r.byID[rec.id], r.known[rec.id] = geminiPlace{index: len(r.steps)}, rec
	}
	r.steps = append(r.steps, geminiStep{record: rec, time: rec.time})
}

// read returns the record of a message, or nil if it is none.
func (r *geminiReader) read(all object) (*geminiRecord, error) {
	kind := all.text("type")
	rec := &geminiRecord{id: all.text("id"), time: all.time("timestamp")}
	switch kind {
	case "user":
		rec.msgs = r.decode(rec, asRequest(wire.FormatGemini, object{"role": quote("user"), "parts": partList(all["content"])}.document(), ""))
	case "gemini":
		rec.model = all.text("model")
		r.answer(all, rec)
		r.usage(all.object("tokens"), rec)
	case "info", "warning", "error":
	default:
		r.s.Counts.Unknown++
		return nil, nil
	}
	return rec, r.in.hold(160 + 2*len(rec.id) + sizeOf(rec.msgs))
}

// decode reads contents in the form of the Gemini API.
func (r *geminiReader) decode(rec *geminiRecord, data []byte) []convo.Message {
	t, err := wire.Gemini{Model: rec.model}.Decode(data)
	if err != nil {
		r.s.Counts.Unknown++
		return nil
	}
	return t.Messages
}

// partList returns the content of a message as a list of parts. It is a text, a part, or a
// list of both.
func partList(raw json.RawMessage) json.RawMessage {
	list := listOf(raw)
	if list == nil && isThere(raw) {
		list = []json.RawMessage{raw}
	}
	b := []byte{'['}
	for _, raw := range list {
		if kindOf(raw) == '"' {
			raw = object{"text": raw}.document()
		}
		if kindOf(raw) != '{' {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return append(b, ']')
}

// answer reads a message of the model, with its calls and their results. Thoughts are left
// out, because the program does not send them again.
func (r *geminiReader) answer(all object, rec *geminiRecord) {
	calls, results := []byte(nil), []byte(nil)
	for _, raw := range all.list("toolCalls") {
		o := objectOf(raw)
		if o.text("name") == "" {
			r.s.Counts.Unknown++
			continue
		}
		call := object{"name": o["name"], "args": json.RawMessage("{}")}
		if o.has("id") {
			call["id"] = o["id"]
		}
		if o.kind("args") == '{' {
			var args bytes.Buffer
			if json.Compact(&args, o["args"]) == nil {
				call["args"] = args.Bytes()
			}
		}
		calls = appendPart(calls, object{"functionCall": call.document()}.document())
		results = appendResult(results, o)
	}
	parts := partList(all["content"])
	parts = parts[:len(parts)-1]
	if len(calls) > 0 {
		if len(parts) > 1 {
			parts = append(parts, ',')
		}
		parts = append(parts, calls...)
	}
	doc := slices.Concat([]byte(`[{"role":"model","parts":`), parts, []byte("]}"))
	if len(results) > 0 {
		doc = slices.Concat(doc, []byte(`,{"role":"user","parts":[`), results, []byte("]}"))
	}
	rec.msgs = r.decode(rec, append(doc, ']'))
}

func appendPart(b, part []byte) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	return append(b, part...)
}

// appendResult appends the result of a call, if there is one. It is usually the part that
// was sent; anything else becomes the output of the function.
func appendResult(b []byte, call object) []byte {
	if !call.has("result") {
		return b
	}
	n := len(b)
	for _, raw := range listOf(partList(call["result"])) {
		part := objectOf(raw)
		response := part.object("functionResponse")
		if response == nil {
			continue
		}
		if n == len(b) {
			response["name"] = call["name"]
			delete(response, "id")
			if call.has("id") {
				response["id"] = call["id"]
			}
			part["functionResponse"] = response.document()
			b = appendPart(b, part.document())
		}
	}
	if n == len(b) {
		output := call["result"]
		if kindOf(output) != '"' {
			output = quote(string(output))
		}
		response := object{"name": call["name"], "response": object{"output": output}.document()}
		if call.has("id") {
			response["id"] = call["id"]
		}
		b = appendPart(b, object{"functionResponse": response.document()}.document())
	}
	return b
}

// usage reads the usage of an answer. Cached tokens are part of its input, thoughts are not
// part of its output, and results of the provider's own tools are not part of its input.
func (r *geminiReader) usage(u object, rec *geminiRecord) {
	if u == nil {
		return
	}
	tool, thoughts := u.number("tool"), u.number("thoughts")
	usage := convo.Usage{
		Input: sum(u.number("input"), tool), CacheRead: u.number("cached"), Extra: tool,
		Output: sum(u.number("output"), thoughts), Reasoning: thoughts,
	}
	if usage != (convo.Usage{}) {
		rec.usage = &usage
	}
}

// rewind takes a message and all after it away. Like the program, it takes everything away
// if there is no such message.
func (r *geminiReader) rewind(id string) {
	place, ok := r.byID[id]
	if !ok {
		r.s.Counts.Unknown++
		place = geminiPlace{viewed: r.view != nil}
		if !place.viewed {
			place.index = r.start
		}
	}
	from := place.index
	if place.viewed {
		from = r.start
		for _, rec := range r.view[place.index:] {
			delete(r.byID, rec.id)
		}
		r.view = r.view[:place.index]
		r.steps[r.start-1].view = r.view
	}
	for _, step := range r.steps[from:] {
		delete(r.byID, step.record.id)
		r.s.Counts.Dropped += len(step.record.msgs)
	}
	clear(r.steps[from:])
	r.steps = r.steps[:from]
}

// set replaces the list. If all that was in the list is still there, in its order, it is
// an update, and otherwise a compaction.
func (r *geminiReader) set(list []json.RawMessage) error {
	recs := make([]*geminiRecord, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, raw := range list {
		r.s.Counts.Records++
		rec, err := r.read(objectOf(raw))
		if err != nil {
			return err
		}
		if rec == nil || rec.id != "" && seen[rec.id] {
			continue
		}
		seen[rec.id] = true
		recs = append(recs, rec)
	}
	var now []*geminiRecord
	now = append(now, r.view...)
	for _, step := range r.steps[r.start:] {
		now = append(now, step.record)
	}
	update := len(recs) >= len(now)
	for i := range now {
		update = update && recs[i].id == now[i].id && recs[i].id != ""
	}
	if update {
		for i, rec := range recs {
			if i < len(now) {
				now[i].replace(rec)
			} else {
				r.add(rec)
			}
		}
		return nil
	}
	clear(r.byID)
	view := make([]*geminiRecord, len(recs))
	for i, rec := range recs {
		if old := r.known[rec.id]; old != nil && rec.id != "" {
			old.replace(rec) // kept
			rec = old
		}
		view[i] = rec
		if rec.id != "" {
			r.byID[rec.id], r.known[rec.id] = geminiPlace{viewed: true, index: i}, rec
		}
	}
	var at time.Time
	if n := len(r.steps); n > 0 {
		at = r.steps[n-1].time
	}
	r.steps = append(r.steps, geminiStep{compact: true, view: view, time: at})
	r.start, r.view = len(r.steps), view
	return r.in.hold(64 * len(view))
}

func (r *geminiReader) finish() error {
	events := make([]Event, 0, len(r.steps))
	said := make(map[*geminiRecord]bool)
	for _, step := range r.steps {
		if !step.compact {
			rec := step.record
			said[rec] = true
			events = append(events, Event{Time: rec.time, Messages: slices.Clone(rec.msgs), Usage: rec.usage, Model: rec.model})
			continue
		}
		c := &Compaction{}
		var view []convo.Message
		for _, rec := range step.view {
			if !said[rec] && c.Summary == "" && len(rec.msgs) > 0 && rec.msgs[0].Role == convo.RoleUser {
				c.Summary = rec.msgs[0].Text()
			}
			said[rec] = true
			view = append(view, rec.msgs...)
		}
		if err := r.in.hold(sizeOfView(view)); err != nil {
			return err
		}
		c.View = normalView(view)
		events = append(events, Event{Time: step.time, Compaction: c})
	}
	r.steps, r.view, r.byID, r.known = nil, nil, nil, nil
	r.s.Events = normalize(events, &r.s.Counts)
	return nil
}
