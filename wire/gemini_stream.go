package wire

import (
	"encoding/json"
	"maps"

	"github.com/seed-c1b73e60/convo"
)

// Stream returns a [Stream] that reads the chunks of streamGenerateContent. It ends
// with a finishReason, or with the blockReason of a prompt. Content after the end belongs
// to another answer if its responseId is different. In chunks without a responseId, it
// does if the chunks before the end had no finishReason, since some servers write one into
// each chunk.
func (f Gemini) Stream() Stream { return &geminiStream{format: f} }

type geminiStream struct {
	streamBase
	format    Gemini
	fields    map[string]json.RawMessage // of the answer, except its candidates and usage
	usage     map[string]json.RawMessage
	candidate map[string]json.RawMessage // the first candidate, except its content; nil if there is none
	content   map[string]json.RawMessage // of that candidate, except its parts; nil if there is none
	parts     []*streamedPart
	calls     int
	open      *streamedPart // the call that has not ended
	shown     []Delta       // deltas of the current event
	others    map[int]bool  // indices of further candidates

	says    bool // the current chunk adds content
	unended bool // a chunk with content had no finishReason
	over    bool // content of the current chunk belongs to another answer
}

// A streamedPart is a complete part, or a text or a call that arrives in pieces.
type streamedPart struct {
	raw     json.RawMessage
	text    streamedText
	thought bool                       // the text is a thought
	side    map[string]json.RawMessage // of a call: the fields next to functionCall
	fields  map[string]json.RawMessage // of a call: the fields in functionCall
	args    geminiArgs
	call    CallDelta // the number, ID and name of a call
}

// Event implements [Stream].
func (s *geminiStream) Event(name string, data []byte) ([]Delta, error) {
	return s.event(name, data, s.read)
}

// read reads an event with these fields.
func (s *geminiStream) read(_ string, data []byte, all map[string]json.RawMessage) ([]Delta, error) {
	if !isGeminiAnswer(all) && isError(all) {
		return nil, providerError(data)
	}
	s.shown = nil
	_, raw := pickRaw(all, "", "responseId")
	switch restart, err := s.begin(stringOf(raw)); {
	case err != nil:
		return nil, err
	case restart:
		*s = geminiStream{format: s.format}
		s.id = stringOf(raw)
		s.shown = []Delta{{Restart: true}}
	}
	err := s.chunk(all)
	return s.shown, err
}

func (s *geminiStream) chunk(all map[string]json.RawMessage) error {
	merge(&s.fields, all, "candidates", "usageMetadata", "usage_metadata")
	path, raw := pickRaw(all, "", "usageMetadata")
	s.addUsage(path, raw, &s.usage)
	path, raw = pickRaw(all, "", "promptFeedback")
	feedback, err := optionalFields(path, raw)
	if err != nil {
		return err
	}
	if _, reason := pickRaw(feedback, "", "blockReason"); stringOf(reason) != "" {
		s.done = true
	}
	if isNull(all["candidates"]) {
		return nil
	}
	list, err := geminiList("candidates", "an array of candidates", all["candidates"])
	if err != nil {
		return err
	}
	for i, raw := range list {
		path := atIndex("candidates", i)
		c, err := fields(path, raw)
		if err != nil {
			return err
		}
		if raw := c["index"]; !isNull(raw) {
			if err := read(at(path, "index"), "a whole number", raw, &i); err != nil {
				return err
			}
		}
		if i != 0 {
			if s.others == nil {
				s.others = map[int]bool{}
			}
			s.others[i] = true
			continue
		}
		if err := s.first(path, c); err != nil {
			return err
		}
	}
	return nil
}

// first reads the content that a chunk adds to the first candidate.
func (s *geminiStream) first(path string, c map[string]json.RawMessage) error {
	s.says, s.over = false, s.done && s.unended
	merge(&s.candidate, c, "content")
	if !isNull(c["content"]) {
		path := at(path, "content")
		content, err := fields(path, c["content"])
		if err != nil {
			return err
		}
		merge(&s.content, content, "parts")
		var list []json.RawMessage
		if raw := content["parts"]; !isNull(raw) {
			if list, err = geminiList(at(path, "parts"), "an array of parts", raw); err != nil {
				return err
			}
		}
		for i, raw := range list {
			if err := s.part(spot{list: at(path, "parts"), index: i}, raw); err != nil {
				return err
			}
		}
	}
	s.unended = s.unended || s.says && s.reason() == ""
	if reason := s.reason(); reason != "" {
		s.done = true
		if stop := StopOf(reason); stop == convo.StopDone || stop == convo.StopToolCall {
			s.endCall() // the end of the call may be missing
		}
	}
	return nil
}

// reason returns why the answer ended, if it has.
func (s *geminiStream) reason() string {
	_, raw := pickRaw(s.candidate, "", "finishReason")
	reason := stringOf(raw)
	if reason == "FINISH_REASON_UNSPECIFIED" {
		return ""
	}
	return reason
}

func (s *geminiStream) part(where spot, raw json.RawMessage) error {
	p, err := readGeminiPart(new(map[string]json.RawMessage), where, raw)
	if err != nil {
		return err
	}
	var text string
	switch p.kind {
	case "functionCall":
		return s.call(where.String(), p, raw)
	case "text":
		if err := read(p.where.String(), "a string", p.data, &text); err != nil {
			return err
		}
		if text == "" && p.plain && p.sign == "" {
			return nil
		}
	}
	s.says = true
	if s.over {
		return errSecondAnswer
	}
	s.endCall() // a part after a call shows that the call is complete
	if p.kind != "text" || !p.plain || p.sign != "" {
		s.parts = append(s.parts, &streamedPart{raw: raw})
	} else {
		n := len(s.parts)
		if n == 0 || s.parts[n-1].text.Len() == 0 || s.parts[n-1].thought != p.thought {
			s.parts = append(s.parts, &streamedPart{thought: p.thought})
			n++
		}
		text = s.parts[n-1].text.add(p.data)
	}
	switch {
	case p.sign != "" && isBlank(text): // Decode keeps the part as it is
	case p.thought:
		s.shown = append(s.shown, deltaOf(Delta{Reasoning: text})...)
	default:
		s.shown = append(s.shown, deltaOf(Delta{Text: text})...)
	}
	return nil
}

// endCall ends the open call, if there is one.
func (s *geminiStream) endCall() {
	if s.open == nil {
		return
	}
	if rest := s.open.args.end(); rest != "" {
		call := s.open.call
		call.Arguments = rest
		s.shown = append(s.shown, Delta{Call: &call})
	}
	s.open = nil
}

// call reads a functionCall: a whole call, the first piece of a call, or another piece of
// the open call.
func (s *geminiStream) call(path string, p geminiPart, raw json.RawMessage) error {
	all, err := fields(p.where.String(), p.data)
	if err != nil {
		return err
	}
	_, more := pickRaw(all, "", "willContinue")
	goesOn := kindOf(more) == 't'
	partialPath, partial := pickRaw(all, p.where.String(), "partialArgs")
	id, name := stringOf(all["id"]), stringOf(all["name"])
	if name != "" && (s.open == nil || id == "" || id != s.open.call.ID) {
		s.says = true
		if s.over {
			return errSecondAnswer
		}
		s.endCall()
		s.parts = append(s.parts, &streamedPart{raw: raw, call: CallDelta{Index: s.calls, ID: id, Name: name}})
		s.open = s.parts[len(s.parts)-1]
		s.calls++
		if !goesOn && partial == nil {
			call := s.open.call
			if !isNull(all["args"]) {
				call.Arguments = string(all["args"])
			}
			s.open, s.shown = nil, append(s.shown, Delta{Call: &call})
			return nil
		}
		s.open.raw = nil
	}
	c := s.open
	switch {
	case c != nil:
	case len(all) == 0: // the end of a call that has already ended
		return nil
	default:
		return &DecodeError{Path: p.where.at("name"), Reason: "the call has no function name"}
	}
	side, err := fields(path, raw)
	if err != nil {
		return err
	}
	merge(&c.side, side, "functionCall", "function_call")
	merge(&c.fields, all, "willContinue", "will_continue", "partialArgs", "partial_args")
	if id != "" {
		c.call.ID = id
	}
	call := c.call
	if partial != nil {
		err := elements(partialPath, "an array of arguments", partial, func(path string, raw json.RawMessage) error {
			piece, err := c.args.read(path, raw)
			call.Arguments += piece
			return err
		})
		if err != nil {
			return err
		}
	}
	if call.Arguments != "" || name != "" {
		s.shown = append(s.shown, Delta{Call: &call})
	}
	if !goesOn {
		s.endCall()
	}
	return nil
}

// json returns the part in the form of an answer that is not streamed. half reports
// whether it is a call that the provider has not ended.
func (p *streamedPart) json(half bool) string {
	switch {
	case p.raw != nil:
		return string(p.raw)
	case p.fields == nil:
		return string(geminiText([]byte{'['}, p.text.String(), p.thought, "")[1:])
	}
	call, part := maps.Clone(p.fields), maps.Clone(p.side)
	if half { // a signature needs its call
		delete(part, "thoughtSignature")
		delete(part, "thought_signature")
	}
	if p.args.root != nil {
		call["args"] = p.args.root.appendTo(nil)
	}
	part["functionCall"] = appendObject(nil, call)
	return string(appendObject(nil, part))
}

// Transcript implements [Stream].
func (s *geminiStream) Transcript() (Transcript, error) {
	var parts []answerPart
	for i, p := range s.parts {
		half := p == s.open
		parts = append(parts, answerPart{path: at("candidates[0].content", atIndex("parts", i)), json: []byte(p.json(half)), isCall: p.call.Name != "", number: p.call.Index, half: half})
	}
	return s.transcript(parts, nil, s.answer, func() (*decoder, func([]byte) error) {
		d := s.format.decoder()
		return &d.decoder, d.decode
	})
}

// answer returns the answer in the form without a stream.
func (s *geminiStream) answer(parts []answerPart, bare bool) []byte {
	if bare {
		return append(appendParts([]byte(`{"candidates":[{"content":{"role":"model","parts":`), parts), "}}]}"...)
	}
	list := []byte{'['}
	if s.candidate != nil || len(s.others) > 0 {
		candidate := maps.Clone(s.candidate)
		if s.content != nil {
			content := maps.Clone(s.content)
			content["parts"] = appendParts(nil, parts)
			candidate["content"] = appendObject(nil, content)
		}
		list = appendObject(list, candidate)
	}
	for range s.others { // Decode lists them in Lost
		list = appendElement(list, "{}")
	}
	all := map[string]json.RawMessage{}
	merge(&all, s.fields)
	all["candidates"], all["usageMetadata"] = append(list, ']'), appendObject(nil, s.usage)
	return appendObject(nil, all)
}
