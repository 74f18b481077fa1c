package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/formats"
	"github.com/seed-c1b73e60/convo/wire"
)

// Requests, answers and lists of messages in the five formats of package wire, which names
// the sources of each. An input is one document, or one for each line. A request and its
// answer may be the fields request and response of one object. Messages one for each line
// are one session.

// A wireReader reads the documents of an input.
type wireReader struct {
	in     *input
	s      *stream
	yield  func(*Session, error) bool
	common string // the format of messages that are the same in several formats
	counts Counts // since the last session

	sessions int // how many were yielded

	// Of the session that is being read, if there is one:
	cur    *Session
	loose  bool   // made of messages, one for each line
	format string // as the messages show it; empty: not known yet
	items  itemReader
	events []Event
	plain  []int // events that were read in the common format
}

// errStop says that the caller wants no more sessions.
var errStop = errors.New("stop")

// isTorn reports whether the input ended in a value.
func isTorn(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

func readWire(in *input, format string, yield func(*Session, error) bool) {
	r := &wireReader{in: in, s: &stream{in: in, blank: true}, yield: yield, common: format}
	err := r.documents()
	if err == nil {
		err = r.end()
	}
	switch {
	case err == errStop:
	case err != nil:
		yield(nil, err)
	case r.counts != (Counts{}):
		yield(&Session{Format: format, Counts: r.counts}, nil)
	case r.sessions == 0:
		yield(nil, &UnknownError{in.name, "there are no messages in it"})
	}
}

func (r *wireReader) documents() error {
	for {
		b, err := r.s.peek()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return r.in.readError(err)
		}
		from := r.s.line
		err = r.document(b)
		switch {
		case err == nil:
		case isTorn(err):
			r.counts.Torn = 1
			r.counts.Records++
			return nil
		case err == errSyntax:
			r.counts.Records++
			r.counts.Unknown++
			if err := r.s.skipLine(from); err != nil && err != io.EOF {
				return r.in.readError(err)
			}
		case err == errStop:
			return err
		default:
			if _, ok := errors.AsType[*LimitError](err); ok {
				return err
			}
			return r.in.readError(err)
		}
		if !r.loose {
			if err := r.end(); err != nil {
				return err
			}
		}
	}
}

// document reads the document that begins with b.
func (r *wireReader) document(b byte) error {
	switch b {
	case '[':
		if err := r.begin(false); err != nil {
			return err
		}
		return r.list()
	case '{':
		return r.object(false)
	}
	if _, err := r.s.value(); err != nil {
		return err
	}
	r.counts.Records++
	r.counts.Unknown++
	return nil
}

// begin begins a session, unless the present session can take more messages.
func (r *wireReader) begin(loose bool) error {
	if r.cur != nil && (!r.loose || loose) {
		return nil
	}
	if err := r.end(); err != nil {
		return err
	}
	r.cur, r.loose = &Session{}, loose
	r.items = itemReader{counts: &r.counts, names: make(map[string]string)}
	return nil
}

// end yields the session that was read, if there is one.
func (r *wireReader) end() error {
	s := r.cur
	if s == nil {
		return nil
	}
	r.flush()
	s.Format = cmp.Or(r.in.format, r.format, r.common)
	for _, i := range r.plain {
		for j := range r.events[i].Messages {
			if m := &r.events[i].Messages[j]; m.Role == convo.RoleAssistant {
				m.Origin.Format = s.Format
			}
		}
	}
	for i := range r.events {
		for j := range r.events[i].Messages {
			if m := &r.events[i].Messages[j]; m.Role == convo.RoleAssistant && m.Origin.Model == "" {
				m.Origin.Model = r.items.model
			}
		}
	}
	events := normalize(r.events, &r.counts)
	for len(events) > 0 && len(events[0].Messages) > 0 && events[0].Messages[0].Role == convo.RoleSystem {
		s.System = append(s.System, events[0].Messages[0])
		if events[0].Messages = events[0].Messages[1:]; len(events[0].Messages) == 0 {
			events = events[1:]
		}
	}
	s.Events, s.Counts = events, r.counts
	was := *r
	*r = wireReader{in: r.in, s: r.s, yield: r.yield, common: r.common, sessions: r.sessions}
	r.in.held = 0
	if len(s.System)+len(s.Tools)+len(s.Events) == 0 {
		r.counts = was.counts
		return nil
	}
	r.sessions++
	if !r.yield(s, nil) {
		return errStop
	}
	return nil
}

// list reads a list of messages.
func (r *wireReader) list() error {
	return r.s.list(func() error {
		raw, err := r.s.value()
		if err != nil {
			return err
		}
		return r.element(raw)
	})
}

// object reads an object: a request, an answer, a message, or both of the former.
func (r *wireReader) object(inside bool) error {
	all := object{}
	streamed := false
	err := r.s.object(func(key string) error {
		b, err := r.s.peek()
		if err != nil {
			return err
		}
		isList := b == '[' && (key == "messages" || key == "contents" || key == "input")
		isObject := b == '{' && !inside && (key == "request" || key == "response")
		if isList || isObject {
			streamed = true
			if err := r.begin(false); err != nil {
				return err
			}
			switch {
			case isObject:
				return r.object(true)
			case key == "input":
				r.format = cmp.Or(r.format, wire.FormatOpenAIResponses)
			case key == "contents":
				r.format = cmp.Or(r.format, wire.FormatGemini)
			}
			return r.list()
		}
		raw, err := r.s.value()
		if err != nil {
			return err
		}
		all[key] = slices.Clone(raw)
		return r.in.hold(len(raw) + len(key) + 64)
	})
	if err != nil {
		return err
	}
	return r.fields(all, streamed, inside)
}

// fields reads the fields of an object other than lists of messages, which were read if
// streamed is set. inside says that the object is a field of another one.
func (r *wireReader) fields(all object, streamed, inside bool) error {
	if format := answerFormat(all); format != "" && !streamed {
		loose := r.loose && !inside
		if loose || r.cur == nil {
			if err := r.end(); err != nil {
				return err
			}
		}
		if err := r.begin(false); err != nil {
			return err
		}
		return r.answer(all, format)
	}
	isInput := all.kind("input") == '"' && !all.has("type") || all.kind("instructions") == '"'
	if !streamed && !isInput {
		if all.has("role") || all["parts"] != nil || slices.Contains(itemKinds, all.text("type")) {
			if err := r.begin(true); err != nil {
				return err
			}
			return r.element(all.document())
		}
		r.counts.Records++
		r.counts.Unknown++
		return nil
	}
	if err := r.begin(false); err != nil {
		return err
	}
	if isInput {
		r.format = cmp.Or(r.format, wire.FormatOpenAIResponses)
		if text := all.text("input"); text != "" {
			r.counts.Records++
			r.events = append(r.events, Event{Messages: []convo.Message{convo.User(text)}})
		}
	}
	s := r.cur
	r.items.model = cmp.Or(r.items.model, all.text("model"), all.text("modelId"))
	s.ID, s.Title = cmp.Or(s.ID, all.text("id")), cmp.Or(s.Title, all.text("title"))
	r.system(all)
	tools, format := toolsOf(all)
	s.Tools, r.format = append(s.Tools, tools...), cmp.Or(r.format, format)
	return nil
}

// system reads the system text of a request.
func (r *wireReader) system(all object) {
	if text := all.text("instructions"); text != "" {
		r.cur.System = append(r.cur.System, convo.System(text))
	}
	var t wire.Transcript
	var err error
	for _, key := range []string{"systemInstruction", "system_instruction"} {
		if all.kind(key) == '{' {
			t, err = wire.Gemini{}.Decode(object{key: all[key], "contents": json.RawMessage("[]")}.document())
		}
	}
	if raw := all["system"]; isThere(raw) {
		doc := object{"system": raw, "messages": json.RawMessage("[]")}.document()
		if list := listOf(raw); len(list) > 0 && !objectOf(list[0]).has("type") {
			r.format = cmp.Or(r.format, wire.FormatConverse)
			t, err = wire.Converse{}.Decode(doc)
		} else {
			r.format = cmp.Or(r.format, wire.FormatAnthropic)
			t, err = wire.Anthropic{}.Decode(doc)
		}
	}
	if err != nil {
		r.counts.Records++
		r.counts.Unknown++
		return
	}
	for _, m := range t.Messages {
		if clean(&m); len(m.Parts) > 0 && m.Role == convo.RoleSystem {
			r.cur.System = append(r.cur.System, m)
		}
	}
}

// answerFormat returns the format of an object that is an answer, or "".
func answerFormat(all object) string {
	switch {
	case all.kind("choices") == '[':
		return wire.FormatOpenAIChat
	case all.kind("candidates") == '[', all.kind("usageMetadata") == '{', all.kind("promptFeedback") == '{':
		return wire.FormatGemini
	case all.is("object", "response"), all.kind("output") == '[' && !all.has("type"):
		return wire.FormatOpenAIResponses
	case all.kind("output") == '{' && !all.has("type"):
		return wire.FormatConverse
	case all.is("type", "message") && all.is("role", "assistant") && (all.has("usage") || all.has("stop_reason")):
		return wire.FormatAnthropic
	case all.kind("message") == '{' && all["done"] != nil:
		return wire.FormatOllama
	}
	return ""
}

// decode reads a message or an answer in a format.
func decode(format string, data []byte) (wire.Transcript, error) {
	if f := formats.New(format, ""); f != nil {
		return f.Decode(data)
	}
	return wire.OpenAIChat{}.Decode(data)
}

// asRequest returns the request with a single message. A message alone would be read as an
// answer, which may have been cut off. The model may be empty.
func asRequest(format string, message []byte, model string) []byte {
	key := "messages"
	if format == wire.FormatGemini {
		key = "contents"
	}
	all := object{key: slices.Concat([]byte("["), message, []byte("]"))}
	if model != "" {
		all["model"] = quote(model)
	}
	return all.document()
}

// answer reads an answer.
func (r *wireReader) answer(all object, format string) error {
	r.counts.Records++
	r.flush()
	t, err := decode(format, all.document())
	if err != nil {
		r.counts.Unknown++
		return nil
	}
	if r.format = cmp.Or(r.format, format); r.format == wire.FormatOllama {
		r.format = wire.FormatOpenAIChat
	}
	r.cur.ID = cmp.Or(r.cur.ID, t.ID)
	if len(t.Messages) == 0 && t.Usage != (convo.Usage{}) {
		t.Messages = []convo.Message{{Role: convo.RoleAssistant}}
	}
	for i, m := range t.Messages {
		e := Event{Messages: t.Messages[i : i+1 : i+1]}
		if m.Role == convo.RoleAssistant {
			if e.Model = t.Model; t.Usage != (convo.Usage{}) {
				u := t.Usage
				e.Usage, t.Usage = &u, convo.Usage{}
			}
		}
		r.events = append(r.events, e)
	}
	return r.in.hold(sizeOf(t.Messages))
}

// element reads a message, an item, or an answer in a list of answers.
func (r *wireReader) element(raw []byte) error {
	all := objectOf(raw)
	if all == nil {
		r.counts.Records++
		r.counts.Unknown++
		return nil
	}
	if format := answerFormat(all); format != "" {
		return r.answer(all, format)
	}
	r.counts.Records++
	format := messageFormat(all)
	plain := format == ""
	if r.in.format != "" {
		format, plain = r.in.format, false
	}
	if !plain {
		r.format = cmp.Or(r.format, format)
	} else if format = cmp.Or(r.format, r.common); format == wire.FormatGemini && all["parts"] == nil {
		format = wire.FormatOpenAIChat // a message with text alone; those of Gemini have parts
	}
	if format == wire.FormatOpenAIResponses {
		if r.items.isOutput(all) {
			return r.in.hold(r.items.add(all, raw) + 64)
		}
		r.flush()
		return r.add(r.items.input(all, raw), plain)
	}
	r.flush()
	t, err := decode(format, asRequest(format, raw, ""))
	if err != nil {
		r.counts.Unknown++
		return nil
	}
	return r.add(t.Messages, plain)
}

// add adds messages that were read.
func (r *wireReader) add(msgs []convo.Message, plain bool) error {
	for i := range msgs {
		if msgs[i].Role == convo.RoleAssistant {
			if r.goesOn(msgs[i]) {
				continue
			}
			if plain {
				r.plain = append(r.plain, len(r.events))
			}
		}
		r.events = append(r.events, Event{Messages: msgs[i : i+1 : i+1]})
	}
	return r.in.hold(sizeOf(msgs))
}

// goesOn adds a message of the model to the one before it, if that has calls and the format
// joins such messages: the results for both follow. It reports whether it did so.
func (r *wireReader) goesOn(m convo.Message) bool {
	if len(r.events) == 0 || r.format == wire.FormatOpenAIChat || r.format == wire.FormatOpenAIResponses {
		return false
	}
	e := &r.events[len(r.events)-1]
	if len(e.Messages) != 1 || e.Messages[0].Role != convo.RoleAssistant || len(e.Messages[0].ToolCalls()) == 0 {
		return false
	}
	e.Messages[0].Parts = append(e.Messages[0].Parts, m.Parts...)
	r.counts.Merged++
	return true
}

// flush adds the items of an answer that were read.
func (r *wireReader) flush() {
	for _, m := range r.items.flush() {
		r.events = append(r.events, Event{Messages: []convo.Message{m}})
	}
}

// messageFormat returns the format that a message shows, or "" if it is the same in several
// formats.
func messageFormat(all object) string {
	switch role := all.text("role"); {
	case all["parts"] != nil:
		return wire.FormatGemini
	case !all.has("role"), all.has("phase"), all.is("type", "message"):
		return wire.FormatOpenAIResponses
	case role == "tool" || role == "function", all.has("tool_calls"), all.has("tool_call_id"), all.has("reasoning_content"), all.has("reasoning"), all.has("audio"):
		return wire.FormatOpenAIChat
	}
	for _, raw := range all.list("content") {
		b := objectOf(raw)
		switch kind := b.text("type"); kind {
		case "text":
		case "":
			if len(b) > 0 {
				return wire.FormatConverse
			}
		case "input_text", "output_text", "input_image", "input_file":
			return wire.FormatOpenAIResponses
		case "image_url", "input_audio", "file", "refusal", "video_url":
			return wire.FormatOpenAIChat
		default:
			return wire.FormatAnthropic
		}
	}
	return ""
}
