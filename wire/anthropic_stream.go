package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Stream returns a [Stream] that reads the events of the Messages API. It ends with
// message_stop.
func (f Anthropic) Stream() Stream { return &anthropicStream{format: f} }

type anthropicStream struct {
	streamBase
	format Anthropic
	id     string                     // of the answer
	fields map[string]json.RawMessage // of the answer, but for its content; nil before message_start
	usage  map[string]json.RawMessage
	blocks []*streamedBlock
	calls  int
}

// A streamedBlock is a block of which deltas come.
type streamedBlock struct {
	index  int
	kind   string
	start  json.RawMessage             // the block of content_block_start
	added  map[string]*strings.Builder // what deltas add to the texts of its fields
	others map[string]json.RawMessage  // other values that deltas bring
	lists  map[string][]string         // values that deltas add to lists
	input  strings.Builder             // the arguments of a call
	call   CallDelta                   // of a call: its number, ID and name
	ended  bool
}

// Event implements [Stream].
func (s *anthropicStream) Event(name string, data []byte) ([]Delta, error) {
	if s.err != nil {
		return nil, s.err
	}
	if isEnd(data) {
		return nil, nil
	}
	all, err := fields("", data)
	if err != nil {
		return s.fail(err)
	}
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
		b, err := s.at(all, "")
		if err != nil {
			return s.fail(err)
		}
		b.ended = true
	case "message_delta":
		return s.message(all)
	case "message_stop":
		s.done = true
	case "error":
		return s.fail(providerError(data))
	case "ping":
	case "":
		if e := all["error"]; !isNull(e) {
			return s.fail(providerError(data))
		}
		return s.fail(&DecodeError{Path: "type", Reason: "the event has no type"})
	default:
		s.lost = append(s.lost, Loss{name, lostEvent})
	}
	return nil, nil
}

// lostEvent is the Loss.What of an event that no answer has a place for.
const lostEvent = "an event of an unknown kind"

// start reads message_start. Some proxies send it twice; with another id, the
// provider has begun anew.
func (s *anthropicStream) start(raw json.RawMessage) ([]Delta, error) {
	all, err := fields("message", raw)
	if err != nil {
		return s.fail(err)
	}
	id := stringOf(all["id"])
	var out []Delta
	if s.fields != nil {
		switch {
		case id == s.id:
			return nil, nil
		case s.done:
			return s.fail(errSecondAnswer)
		}
		*s = anthropicStream{format: s.format}
		out = []Delta{{Restart: true}}
	}
	s.id, s.fields = id, all
	s.usage, _ = fields("usage", all["usage"])
	var content []json.RawMessage
	if raw := all["content"]; kindOf(raw) == '[' { // of a server that sends what it has with the start
		if err := read("message.content", "an array of blocks", raw, &content); err != nil {
			return s.fail(err)
		}
	}
	for i, raw := range content {
		b := newStreamedBlock(i, raw)
		b.ended = true
		s.add(b)
	}
	return out, nil
}

// errSecondAnswer is the error of an event that begins another answer.
var errSecondAnswer = &DecodeError{Reason: "a second answer begins behind the end of the first; use a new Stream for it"}

// message reads message_delta, whose usage counts the whole answer.
func (s *anthropicStream) message(all map[string]json.RawMessage) ([]Delta, error) {
	if s.fields == nil {
		s.fields = map[string]json.RawMessage{}
	}
	delta, err := optionalFields("delta", all["delta"])
	if err != nil {
		return s.fail(err)
	}
	maps.Copy(s.fields, delta)
	usage, err := optionalFields("usage", all["usage"])
	if err != nil {
		return s.fail(err)
	}
	if s.usage == nil {
		s.usage = map[string]json.RawMessage{}
	}
	for key, value := range usage {
		if !isNull(value) {
			s.usage[key] = value
		}
	}
	for key, value := range all {
		if key != "type" && key != "delta" && key != "usage" && !isNull(value) {
			s.fields[key] = value
		}
	}
	return nil, nil
}

// block reads content_block_start.
func (s *anthropicStream) block(all map[string]json.RawMessage) ([]Delta, error) {
	index, err := s.index(all)
	if err != nil {
		return s.fail(err)
	}
	if s.done {
		return s.fail(errSecondAnswer)
	}
	raw := all["content_block"]
	if kindOf(raw) != '{' {
		return s.fail(&DecodeError{Path: "content_block", Reason: "want a JSON object, got " + kindName(raw)})
	}
	b := newStreamedBlock(index, raw)
	s.add(b)
	start, _ := fields("content_block", raw)
	switch b.kind {
	case "text":
		return deltaOf(Delta{Text: stringOf(start["text"])}), nil
	case "thinking":
		return deltaOf(Delta{Reasoning: stringOf(start["thinking"])}), nil
	case "tool_use":
		return []Delta{{Call: new(b.call)}}, nil
	}
	return nil, nil
}

// deltaOf returns d, unless it is empty.
func deltaOf(d Delta) []Delta {
	if d == (Delta{}) {
		return nil
	}
	return []Delta{d}
}

func newStreamedBlock(index int, raw json.RawMessage) *streamedBlock {
	all, _ := fields("content_block", raw)
	b := &streamedBlock{index: index, kind: stringOf(all["type"]), start: raw}
	b.call.ID, b.call.Name = stringOf(all["id"]), stringOf(all["name"])
	return b
}

// add puts a block in its place, instead of one with its index.
func (s *anthropicStream) add(b *streamedBlock) {
	if b.kind == "tool_use" {
		b.call.Index = s.calls
		s.calls++
	}
	i, again := slices.BinarySearchFunc(s.blocks, b.index, func(b *streamedBlock, index int) int { return cmp.Compare(b.index, index) })
	if again {
		s.blocks[i] = b
		return
	}
	s.blocks = slices.Insert(s.blocks, i, b)
}

// index returns the index of the block that an event is about.
func (s *anthropicStream) index(all map[string]json.RawMessage) (index int, err error) {
	if err := read("index", "a number", all["index"], &index); err != nil {
		return 0, err
	}
	return index, nil
}

// at returns the block that an event is about. Where it has not begun, one of that
// kind does now, if it needs nothing else.
func (s *anthropicStream) at(all map[string]json.RawMessage, kind string) (*streamedBlock, error) {
	index, err := s.index(all)
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(s.blocks, index, func(b *streamedBlock, index int) int { return cmp.Compare(b.index, index) })
	if ok {
		return s.blocks[i], nil
	}
	if kind == "" {
		return nil, &DecodeError{Path: "index", Reason: fmt.Sprintf("block %d has not begun", index)}
	}
	b := newStreamedBlock(index, json.RawMessage(`{"type":"`+kind+`","`+kind+`":""}`))
	s.add(b)
	return b, nil
}

// delta reads content_block_delta. Texts in it are appended to the field of that
// name; a kind of delta that is not known here, too, is read so.
func (s *anthropicStream) delta(all map[string]json.RawMessage) ([]Delta, error) {
	if s.done {
		return s.fail(errSecondAnswer)
	}
	delta, err := fields("delta", all["delta"])
	if err != nil {
		return s.fail(err)
	}
	kind := stringOf(delta["type"])
	begins := ""
	switch kind {
	case "text_delta":
		begins = "text"
	case "thinking_delta":
		begins = "thinking"
	}
	b, err := s.at(all, begins)
	if err != nil {
		return s.fail(err)
	}
	var out Delta
	for key, value := range delta {
		switch {
		case key == "type" || isNull(value):
		case key == "partial_json":
			piece := stringOf(value)
			b.input.WriteString(piece)
			if b.kind == "tool_use" && piece != "" {
				out.Call = new(b.call)
				out.Call.Arguments = piece
			}
		case kind == "citations_delta" && key == "citation":
			b.append("citations", string(value))
		case kindOf(value) == '"':
			piece := stringOf(value)
			b.write(key, piece)
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

// write appends to the text of a field.
func (b *streamedBlock) write(key, piece string) {
	if b.added == nil {
		b.added = map[string]*strings.Builder{}
	}
	if b.added[key] == nil {
		b.added[key] = new(strings.Builder)
	}
	b.added[key].WriteString(piece)
}

// append adds a value to the list of a field.
func (b *streamedBlock) append(key, value string) {
	if b.lists == nil {
		b.lists = map[string][]string{}
	}
	b.lists[key] = append(b.lists[key], value)
}

// appendTo appends the block as it would be in an answer that was not streamed.
func (b *streamedBlock) appendTo(out []byte) []byte {
	written := map[string]bool{}
	value := func(key string, raw json.RawMessage) json.RawMessage {
		switch {
		case b.added[key] != nil:
			return appendString(nil, stringOf(raw)+b.added[key].String())
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
			out = append(append(appendString(append(out, ','), key), ':'), value(key, nil)...)
		}
	}
	return append(out, '}')
}

// keys returns the fields that deltas have brought, in order.
func (b *streamedBlock) keys() (keys []string) {
	if !isBlank(b.input.String()) {
		keys = append(keys, "input")
	}
	for key := range b.added {
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
	answer := []byte(`{"role":"assistant"`)
	for _, key := range sortedKeys(s.fields) {
		if key != "role" && key != "content" && key != "usage" {
			answer = append(append(appendString(append(answer, ','), key), ':'), s.fields[key]...)
		}
	}
	answer = append(answer, `,"usage":`...)
	answer = appendObject(answer, s.usage)
	answer = append(answer, `,"content":[`...)
	var halves []int
	var lost []Loss
	n, calls := 0, 0
	for _, b := range s.blocks {
		if !b.ended && !s.done {
			switch b.kind {
			case "text", "thinking":
			case "tool_use":
				halves = append(halves, calls)
			default:
				lost = append(lost, Loss{fmt.Sprintf("content[%d]", b.index), "a block that the provider had not ended"})
				continue
			}
		}
		if b.kind == "tool_use" {
			calls++
		}
		if n++; n > 1 {
			answer = append(answer, ',')
		}
		answer = b.appendTo(answer)
	}
	answer = append(answer, "]}"...)
	d := s.format.decoder()
	t, err := s.transcript(&d.decoder, d.decode, answer, halves)
	t.Lost = append(t.Lost, lost...)
	return t, err
}
