package wire

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Stream returns a [Stream] that reads the events of ConverseStream. The name of an event
// is the type of its frame. An event may instead be in an object under that name, such as
// {"messageStop":{...}}. The stream ends with messageStop. An exception is a
// [ProviderError] of that Type. An answer that is not streamed is one event.
func (f Converse) Stream() Stream { return &converseStream{format: f} }

type converseStream struct {
	streamBase
	format Converse
	role   string                     // empty before messageStart
	fields map[string]json.RawMessage // of the answer, except its output and usage
	usage  map[string]json.RawMessage
	blocks sequence[*streamedContent]
	calls  int
}

// A streamedContent is a block that arrives in deltas.
type streamedContent struct {
	index  int
	kind   string                     // text, reasoningText, redactedContent, toolUse, or another
	text   streamedText               // a text, reasoning, or the input of a toolUse
	sign   streamedText               // the signature of reasoning
	blobs  []string                   // the pieces of redactedContent, in base64
	start  string                     // the beginning of a block of another kind
	fields map[string]json.RawMessage // fields that deltas add
	list   []string                   // elements that deltas add: citations of a text, content of other kinds
	call   CallDelta                  // the number, ID and name of a call
	ours   bool                       // a call that the provider does not answer itself
	whole  string                     // the block of an answer that is not streamed
	ended  bool
}

// converseEvents are the names of the events.
var converseEvents = []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}

// Event implements [Stream].
func (s *converseStream) Event(name string, data []byte) ([]Delta, error) {
	return s.event(name, data, s.read)
}

// read reads an event with these fields.
func (s *converseStream) read(name string, data []byte, all map[string]json.RawMessage) ([]Delta, error) {
	for _, key := range sortedKeys(all) { // an object around the event
		raw := all[key]
		if kindOf(raw) != '{' || !slices.Contains(converseEvents, key) && !isException(key) && (name != "" || len(all) > 1) {
			continue
		}
		inside, err := fields(key, raw)
		if err != nil {
			return nil, err
		}
		name, data, all = key, raw, inside
		break
	}
	switch name {
	case "messageStart", "contentBlockStart", "contentBlockDelta":
		if s.done {
			return nil, errSecondAnswer
		}
	}
	switch name {
	case "messageStart":
		s.role = stringOf(all["role"])
	case "contentBlockStart":
		return s.block(all)
	case "contentBlockDelta":
		return s.delta(all)
	case "contentBlockStop":
		b, _, err := s.at(all)
		if err != nil {
			return nil, err
		}
		if b != nil { // otherwise the block is empty
			b.ended = true
		}
	case "messageStop":
		merge(&s.fields, all)
		s.done = true
	case "metadata":
		s.addUsage("usage", all["usage"], &s.usage)
		merge(&s.fields, all, "usage")
	default:
		switch {
		case isException(name), isError(all):
			e := providerError(data)
			if name != "" {
				e.Type = name
			}
			return nil, e
		case name == "" && !isNull(all["output"]):
			return s.whole(all)
		case name == "":
			return nil, &DecodeError{Reason: "the event has no name"}
		}
		s.lose(name, lostEvent)
	}
	return nil, nil
}

// whole reads an answer that is not streamed.
func (s *converseStream) whole(all map[string]json.RawMessage) ([]Delta, error) {
	if s.done || s.role != "" {
		return nil, errSecondAnswer
	}
	output, err := fields("output", all["output"])
	if err != nil {
		return nil, err
	}
	message, err := optionalFields("output.message", output["message"])
	if err != nil {
		return nil, err
	}
	var content []json.RawMessage
	if raw := message["content"]; !isNull(raw) {
		if err := read("output.message.content", "an array of blocks", raw, &content); err != nil {
			return nil, err
		}
	}
	var out []Delta
	for i, raw := range content {
		block, err := fields(atIndex("output.message.content", i), raw)
		if err != nil {
			return nil, err
		}
		b := &streamedContent{index: i, whole: string(raw), ended: true}
		s.blocks.add(i, b)
		if call, _ := optionalFields("-", block["toolUse"]); len(call) > 0 && stringOf(call["type"]) != serverToolUse {
			b.ours, b.call = true, CallDelta{Index: s.calls, ID: stringOf(call["toolUseId"]), Name: stringOf(call["name"])}
			s.calls++
			shown := b.call
			shown.Arguments = compact(call["input"])
			out = append(out, Delta{Call: &shown})
		}
		reasoning, _ := optionalFields("-", block["reasoningContent"])
		text, _ := optionalFields("-", reasoning["reasoningText"])
		out = append(out, deltaOf(Delta{Text: stringOf(block["text"]), Reasoning: stringOf(text["text"])})...)
	}
	s.role, s.done = "assistant", true
	s.addUsage("usage", all["usage"], &s.usage)
	merge(&s.fields, all, "output", "usage")
	return out, nil
}

// isException reports whether an event is a failure of the provider.
func isException(name string) bool { return strings.HasSuffix(name, "Exception") }

// at returns the newest block with the index of an event, and the index. The block is nil
// if there is none, or if it has ended.
func (s *converseStream) at(all map[string]json.RawMessage) (*streamedContent, int, error) {
	index := 0
	if raw := all["contentBlockIndex"]; !isNull(raw) {
		if err := read("contentBlockIndex", "a whole number", raw, &index); err != nil {
			return nil, 0, err
		}
	}
	if b := s.blocks.at(index); b != nil && !b.ended {
		return b, index, nil
	}
	return nil, index, nil
}

// block reads contentBlockStart. It is sent for calls and for other blocks that are
// neither text nor reasoning.
func (s *converseStream) block(all map[string]json.RawMessage) ([]Delta, error) {
	last, index, err := s.at(all)
	if err != nil {
		return nil, err
	}
	start, err := optionalFields("start", all["start"])
	if err != nil {
		return nil, err
	}
	for _, kind := range sortedKeys(start) {
		raw := start[kind]
		if isNull(raw) {
			continue
		}
		own, err := fields(at("start", kind), raw)
		if err != nil {
			return nil, err
		}
		call := CallDelta{Index: s.calls, ID: stringOf(own["toolUseId"]), Name: stringOf(own["name"])}
		if last != nil && last.kind == kind && call.ID != "" && call.ID == last.call.ID {
			continue // repeated
		}
		b := &streamedContent{index: index, kind: kind, start: string(raw), call: call}
		s.blocks.add(index, b)
		b.ours = kind == "toolUse" && stringOf(own["type"]) != serverToolUse
		if b.ours {
			s.calls++
			return []Delta{{Call: new(b.call)}}, nil
		}
	}
	return nil, nil
}

// delta reads contentBlockDelta.
func (s *converseStream) delta(all map[string]json.RawMessage) ([]Delta, error) {
	b, index, err := s.at(all)
	if err != nil {
		return nil, err
	}
	delta, err := fields("delta", all["delta"])
	if err != nil {
		return nil, err
	}
	of := func(kind string) *streamedContent { // a new kind ends the block before
		if b == nil || b.kind != kind {
			b = &streamedContent{index: index, kind: kind}
			s.blocks.add(index, b)
		}
		return b
	}
	add := func(kind, value string) {
		b := of(kind)
		b.list = append(b.list, value)
	}
	var out Delta
	for _, key := range sortedKeys(delta) {
		raw := delta[key]
		switch kind := kindOf(raw); {
		case isNull(raw):
		case key == "text" && kind == '"':
			out.Text = of("text").text.add(raw)
		case key == "citation":
			add("text", string(raw))
		case key == "reasoningContent" && kind == '{':
			own, err := fields("delta.reasoningContent", raw)
			if err != nil {
				return nil, err
			}
			for _, key := range sortedKeys(own) {
				switch raw := own[key]; {
				case isNull(raw):
				case key == "text":
					out.Reasoning = of("reasoningText").text.add(raw)
				case key == "signature":
					of("reasoningText").sign.add(raw)
				case key == "redactedContent":
					b := of("redactedContent")
					b.blobs = append(b.blobs, stringOf(raw))
				default:
					s.lose(at("delta.reasoningContent", key), lostField)
				}
			}
		case key == "toolUse" && kind == '{':
			own, err := fields("delta.toolUse", raw)
			if err != nil {
				return nil, err
			}
			if b == nil || b.kind != "toolUse" {
				return nil, &DecodeError{Path: "contentBlockIndex", Reason: fmt.Sprintf("block %d is no call that has begun", index)}
			}
			piece := b.text.add(own["input"])
			if b.ours && piece != "" {
				out.Call = new(b.call)
				out.Call.Arguments = piece
			}
		case kind == '{':
			own, err := fields(at("delta", key), raw)
			if err != nil {
				return nil, err
			}
			merge(&of(key).fields, own)
		case kind == '[':
			err := elements(at("delta", key), "an array", raw, func(_ string, raw json.RawMessage) error {
				add(key, string(raw))
				return nil
			})
			if err != nil {
				return nil, err
			}
		default:
			s.lose(at("delta", key), lostField)
		}
	}
	return deltaOf(out), nil
}

// json returns the block in the form of an answer that is not streamed. The signature of
// an incomplete block is left out, since it may be incomplete.
func (b *streamedContent) json(whole bool) string {
	if b.whole != "" {
		return b.whole
	}
	out := []byte{'{'}
	list := "[" + strings.Join(b.list, ",") + "]"
	switch b.kind {
	case "text":
		if len(b.list) == 0 {
			out = appendStringField(out, "text", b.text.String())
			break
		}
		out = append(strictjson.Key(out, "citationsContent"), `{"content":[{`...)
		out = append(appendStringField(out, "text", b.text.String()), "}]"...)
		out = append(appendRawField(out, "citations", list), '}')
	case "reasoningText":
		out = append(strictjson.Key(out, "reasoningContent"), `{"reasoningText":{`...)
		out = appendStringField(out, "text", b.text.String())
		if b.sign.Len() > 0 && whole {
			out = appendStringField(out, "signature", b.sign.String())
		}
		out = append(out, "}}"...)
	case "redactedContent":
		out = append(strictjson.Key(out, "reasoningContent"), '{')
		out = append(appendStringField(out, "redactedContent", joinBase64(b.blobs)), '}')
	default:
		added := maps.Clone(b.fields)
		if b.kind == "toolUse" {
			merge(&added, map[string]json.RawMessage{"input": json.RawMessage(object(b.text.String()))})
		} else if len(b.list) > 0 {
			merge(&added, map[string]json.RawMessage{"content": json.RawMessage(list)})
		}
		out = append(append(strictjson.AppendString(out, b.kind), ':'), withFields(cmp.Or(b.start, "{}"), added)...)
	}
	return string(append(out, '}'))
}

// joinBase64 joins pieces that are each encoded in base64, and returns the base64 of the
// whole.
func joinBase64(pieces []string) string {
	if len(pieces) == 1 {
		return pieces[0]
	}
	var all []byte
	for _, p := range pieces {
		b, err := base64.StdEncoding.DecodeString(p)
		if err != nil {
			return strings.Join(pieces, "")
		}
		all = append(all, b...)
	}
	return base64.StdEncoding.EncodeToString(all)
}

// Transcript implements [Stream].
func (s *converseStream) Transcript() (Transcript, error) {
	var parts []answerPart
	var lost []Loss
	for _, b := range s.blocks.inOrder() {
		p := answerPart{path: atIndex("content", b.index), isCall: b.ours, number: b.call.Index, ended: b.ended}
		switch {
		case b.ours && b.call.Name == "":
			lost = append(lost, Loss{p.path, lostNameless})
			continue
		case b.ended || s.done || b.kind == "text" || b.kind == "reasoningText":
		case b.ours:
			p.half = true
		default:
			lost = append(lost, Loss{p.path, "a block that the provider had not ended"})
			continue
		}
		p.json = []byte(b.json(b.ended || s.done))
		parts = append(parts, p)
	}
	return s.transcript(parts, lost, s.answer, func() (*decoder, func([]byte) error) {
		d := s.format.decoder()
		return &d.decoder, d.decode
	})
}

// answer returns the answer in the form without a stream.
func (s *converseStream) answer(blocks []answerPart, bare bool) []byte {
	answer := map[string]json.RawMessage{"usage": appendObject(nil, s.usage)}
	if !bare {
		merge(&answer, s.fields, "output", "usage", "messages", "modelId")
	}
	if s.role != "" || len(blocks) > 0 {
		answer["output"] = append(appendParts([]byte(`{"message":{"role":"assistant","content":`), blocks), "}}"...)
	}
	return appendObject(nil, answer)
}
