package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Stream returns a [Stream] that reads the events of the Messages API. It ends with
// the reason why it ended, if all blocks have, or with message_stop. The blocks are in the order of their indexes; if an index is used again,
// the new block follows the earlier blocks. An answer that is not streamed is one event.
func (f Anthropic) Stream() Stream { return &anthropicStream{format: f} }

type anthropicStream struct {
	streamBase
	format Anthropic
	begun  bool                       // message_start came
	fields map[string]json.RawMessage // of the answer, except its content
	usage  map[string]json.RawMessage
	blocks sequence[*streamedBlock]
	newest *streamedBlock
	calls  int
}

// A streamedBlock is a block that arrives in deltas.
type streamedBlock struct {
	index  int
	kind   string
	start  json.RawMessage            // the block of content_block_start
	fields map[string]json.RawMessage // the fields of start
	texts  map[string]*streamedText   // fields that deltas append to
	others map[string]json.RawMessage // other values from deltas
	lists  map[string][]string        // values that deltas add to lists
	input  streamedText               // the arguments of a call
	call   CallDelta                  // the number, ID and name of a call
	ended  bool
}

// Event implements [Stream].
func (s *anthropicStream) Event(name string, data []byte) ([]Delta, error) {
	return s.event(name, data, s.read)
}

// read reads an event with these fields.
func (s *anthropicStream) read(name string, data []byte, all map[string]json.RawMessage) ([]Delta, error) {
	if kind := stringOf(all["type"]); kind != "" {
		name = kind
	}
	switch name {
	case "message_start":
		return s.start(all["message"])
	case "content_block_start":
		return s.block(all)
	case "content_block_delta":
		return s.delta(all)
	case "content_block_stop":
		b, index, err := s.at(all)
		switch {
		case err != nil:
			return nil, err
		case b == nil:
			return nil, notBegun(index)
		}
		b.ended = true
	case "message_delta":
		return s.message(all)
	case "message_stop":
		s.done = true
	case "message":
		if !s.begun {
			return s.whole(data)
		}
		s.lose(name, lostEvent)
	case "ping":
	case "":
		if isError(all) {
			return nil, providerError(data)
		}
		return nil, noType(data)
	default:
		s.lose(name, lostEvent)
	}
	return nil, nil
}

// start reads message_start. Some proxies send it twice. A new id means that the
// provider has started over; otherwise the fields of an earlier message_delta stay.
func (s *anthropicStream) start(raw json.RawMessage) ([]Delta, error) {
	all, err := fields("message", raw)
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
		*s = anthropicStream{format: s.format}
		s.id = id
		out = []Delta{{Restart: true}}
	case s.begun:
		return nil, nil
	}
	s.begun = true
	fields, usage := s.fields, s.usage
	s.fields, s.usage = maps.Clone(all), nil
	merge(&s.fields, fields)
	s.addUsage("message.usage", all["usage"], &s.usage)
	merge(&s.usage, usage)
	var content []json.RawMessage
	if raw := all["content"]; kindOf(raw) == '[' { // some servers send content with the start
		if err := read("message.content", "an array of blocks", raw, &content); err != nil {
			return nil, err
		}
	}
	for i, raw := range content {
		if kindOf(raw) != '{' {
			return nil, &DecodeError{Path: atIndex("message.content", i), Reason: "want a JSON object, got " + kindName(raw)}
		}
		b := newStreamedBlock(i, raw)
		b.ended = true
		s.add(b)
	}
	return out, nil
}

// whole reads an answer that is not streamed.
func (s *anthropicStream) whole(data []byte) ([]Delta, error) {
	out, err := s.start(data)
	if err != nil {
		return nil, err
	}
	s.done = true
	for _, b := range s.blocks.inOrder() {
		switch b.kind {
		case "text":
			out = append(out, deltaOf(Delta{Text: stringOf(b.fields["text"])})...)
		case "thinking":
			out = append(out, deltaOf(Delta{Reasoning: stringOf(b.fields["thinking"])})...)
		case "tool_use":
			call := b.call
			call.Arguments = compact(b.fields["input"])
			out = append(out, Delta{Call: &call})
		}
	}
	return out, nil
}

// message reads message_delta. Its usage counts the whole answer.
func (s *anthropicStream) message(all map[string]json.RawMessage) ([]Delta, error) {
	delta, err := optionalFields("delta", all["delta"])
	if err != nil {
		return nil, err
	}
	if s.fields == nil {
		s.fields = map[string]json.RawMessage{}
	}
	for key, value := range delta {
		if !isNull(value) || s.fields[key] == nil { // the container may have come before
			s.fields[key] = value
		}
	}
	s.addUsage("usage", all["usage"], &s.usage)
	merge(&s.fields, all, "type", "delta", "usage")
	if stringOf(delta["stop_reason"]) != "" && !slices.ContainsFunc(s.blocks.inOrder(), func(b *streamedBlock) bool { return !b.ended }) {
		s.done = true
	}
	return nil, nil
}

// block reads content_block_start. Some proxies send it twice.
func (s *anthropicStream) block(all map[string]json.RawMessage) ([]Delta, error) {
	index := s.blocks.next()
	if raw := all["index"]; !isNull(raw) {
		if err := read("index", "a whole number", raw, &index); err != nil {
			return nil, err
		}
	}
	if s.done {
		return nil, errSecondAnswer
	}
	raw := all["content_block"]
	if kindOf(raw) != '{' {
		return nil, &DecodeError{Path: "content_block", Reason: "want a JSON object, got " + kindName(raw)}
	}
	b := newStreamedBlock(index, raw)
	if !isNull(all["index"]) && s.blocks.at(index).isAgain(b) {
		return nil, nil
	}
	s.add(b)
	switch b.kind {
	case "text":
		return deltaOf(Delta{Text: b.text("text").Builder.String()}), nil
	case "thinking":
		return deltaOf(Delta{Reasoning: b.text("thinking").Builder.String()}), nil
	case "tool_use":
		return []Delta{{Call: new(b.call)}}, nil
	}
	return nil, nil
}

// isAgain reports whether o is b sent again: b began with the same content, has not
// ended, and has an ID or nothing was added to it. b may be nil.
func (b *streamedBlock) isAgain(o *streamedBlock) bool {
	if b == nil || b.ended || string(b.start) != string(o.start) {
		return false
	}
	return o.call.ID != "" || len(b.others)+len(b.lists)+b.input.Len() == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(b.texts)), func(key string) bool {
		return b.texts[key].Len() > len(stringOf(b.fields[key]))
	})
}

func newStreamedBlock(index int, raw json.RawMessage) *streamedBlock {
	all, _ := fields("content_block", raw)
	b := &streamedBlock{index: index, kind: stringOf(all["type"]), start: raw, fields: all}
	b.call.ID, b.call.Name = stringOf(all["id"]), stringOf(all["name"])
	return b
}

// add adds a block.
func (s *anthropicStream) add(b *streamedBlock) {
	if b.kind == "tool_use" {
		b.call.Index = s.calls
		s.calls++
	}
	s.blocks.add(b.index, b)
	s.newest = b
}

// at returns the block that an event is for, or nil, and its index. An event without an
// index is for the newest block.
func (s *anthropicStream) at(all map[string]json.RawMessage) (b *streamedBlock, index int, err error) {
	raw := all["index"]
	if isNull(raw) {
		return s.newest, s.blocks.next(), nil
	}
	if err := read("index", "a whole number", raw, &index); err != nil {
		return nil, 0, err
	}
	return s.blocks.at(index), index, nil
}

func notBegun(index int) error {
	return &DecodeError{Path: "index", Reason: fmt.Sprintf("block %d has not begun", index)}
}

// deltaBegins maps kinds of deltas to the kinds of blocks that they can begin. These
// blocks need no content_block_start.
var deltaBegins = map[string]string{"text_delta": "text", "thinking_delta": "thinking"}

// delta reads content_block_delta. Its texts are appended to the fields of the same
// name; unknown kinds of deltas are read in the same way.
func (s *anthropicStream) delta(all map[string]json.RawMessage) ([]Delta, error) {
	if s.done {
		return nil, errSecondAnswer
	}
	delta, err := fields("delta", all["delta"])
	if err != nil {
		return nil, err
	}
	b, index, err := s.at(all)
	if err != nil {
		return nil, err
	}
	kind := stringOf(delta["type"])
	own := deltaBegins[kind]
	switch {
	case own == "":
		if b == nil {
			return nil, notBegun(index)
		}
	case b != nil && b.kind == "": // the start has no type
		b.start = json.RawMessage(withFields(string(b.start), map[string]json.RawMessage{"type": strictjson.AppendString(nil, own)}))
		b.kind = own
	case b == nil, b.kind != own && (b.kind == "text" || b.kind == "thinking" || b.kind == "tool_use"):
		b = newStreamedBlock(index, json.RawMessage(`{"type":"`+own+`","`+own+`":""}`))
		s.add(b)
	}
	var out Delta
	for key, value := range delta {
		switch {
		case key == "type" || isNull(value):
		case key == "partial_json":
			piece := b.input.add(value)
			if b.kind == "tool_use" && piece != "" {
				out.Call = new(b.call)
				out.Call.Arguments = piece
			}
		case kind == "citations_delta" && key == "citation":
			b.append("citations", string(value))
		case kindOf(value) == '"':
			piece := b.text(key).add(value)
			switch {
			case kind == "text_delta" && key == "text":
				out.Text = piece
			case kind == "thinking_delta" && key == "thinking":
				out.Reasoning = piece
			}
		default:
			if b.others == nil {
				b.others = map[string]json.RawMessage{}
			}
			b.others[key] = value
		}
	}
	return deltaOf(out), nil
}

// text returns the text of a field. It begins with the value from the start.
func (b *streamedBlock) text(key string) *streamedText {
	if b.texts == nil {
		b.texts = map[string]*streamedText{}
	}
	if b.texts[key] == nil {
		b.texts[key] = new(streamedText)
		b.texts[key].add(b.fields[key])
	}
	return b.texts[key]
}

// append adds a value to the list of a field.
func (b *streamedBlock) append(key, value string) {
	if b.lists == nil {
		b.lists = map[string][]string{}
	}
	b.lists[key] = append(b.lists[key], value)
}

// appendTo appends the block in the form of an answer that is not streamed.
func (b *streamedBlock) appendTo(out []byte) []byte {
	written := map[string]bool{}
	value := func(key string, raw json.RawMessage) json.RawMessage {
		switch {
		case b.texts[key] != nil && (b.texts[key].Len() > 0 || kindOf(raw) == '"' || raw == nil):
			return b.texts[key].appendTo(nil)
		case b.lists[key] != nil:
			var list []json.RawMessage
			_ = json.Unmarshal(raw, &list)
			v := []byte{'['}
			for i, raw := range list {
				if i > 0 {
					v = append(v, ',')
				}
				v = append(v, raw...)
			}
			for i, raw := range b.lists[key] {
				if i > 0 || len(list) > 0 {
					v = append(v, ',')
				}
				v = append(v, raw...)
			}
			return append(v, ']')
		case b.others[key] != nil:
			return b.others[key]
		case key == "input" && !isBlank(b.input.String()):
			return json.RawMessage(object(b.input.String()))
		}
		return raw
	}
	block := editFields(string(b.start), func(key string, raw json.RawMessage) (json.RawMessage, bool) {
		written[key] = true
		return value(key, raw), true
	})
	out = append(out, strings.TrimSuffix(block, "}")...)
	for _, key := range b.keys() {
		if !written[key] {
			out = append(append(strictjson.AppendString(comma(out), key), ':'), value(key, nil)...)
		}
	}
	return append(out, '}')
}

// keys returns the fields that deltas added, in order.
func (b *streamedBlock) keys() (keys []string) {
	if !isBlank(b.input.String()) {
		keys = append(keys, "input")
	}
	for key := range b.texts {
		keys = append(keys, key)
	}
	for key := range b.lists {
		keys = append(keys, key)
	}
	for key := range b.others {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Transcript implements [Stream].
func (s *anthropicStream) Transcript() (Transcript, error) {
	var parts []answerPart
	var lost []Loss
	for _, b := range s.blocks.inOrder() {
		p := answerPart{path: atIndex("content", b.index), isCall: b.kind == "tool_use", number: b.call.Index, ended: b.ended}
		switch {
		case b.kind == "":
			lost = append(lost, Loss{p.path, "a block without a type"})
			continue
		case p.isCall && b.call.Name == "":
			lost = append(lost, Loss{p.path, lostNameless})
			continue
		case b.ended || s.done || b.kind == "text" || b.kind == "thinking":
		case p.isCall:
			p.half = true
		default:
			lost = append(lost, Loss{p.path, "a block that the provider had not ended"})
			continue
		}
		p.json = b.appendTo(nil)
		if b.kind == "thinking" && !b.ended && !s.done {
			p.json = []byte(editFields(string(p.json), func(key string, raw json.RawMessage) (json.RawMessage, bool) {
				return raw, key != "signature" // it may be incomplete
			}))
		}
		parts = append(parts, p)
	}
	return s.transcript(parts, lost, s.answer, func() (*decoder, func([]byte) error) {
		d := s.format.decoder()
		return &d.decoder, d.decode
	})
}

// answer returns the answer in the form without a stream.
func (s *anthropicStream) answer(blocks []answerPart, bare bool) []byte {
	answer := []byte(`{"role":"assistant"`)
	if !bare {
		for _, key := range sortedKeys(s.fields) {
			if key != "role" && key != "content" && key != "usage" && key != "messages" {
				answer = append(append(strictjson.AppendString(append(answer, ','), key), ':'), s.fields[key]...)
			}
		}
		answer = appendObject(append(answer, `,"usage":`...), s.usage)
	}
	return append(appendParts(append(answer, `,"content":`...), blocks), '}')
}
