package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Stream returns a [Stream] that reads the chunks of Chat Completions, as OpenAI and the
// hosts that have adopted it send them, and the lines of Ollama's /api/chat. The answer
// is complete after its finish_reason, "done":true, or [DONE]. Content after a
// finish_reason may belong to the same answer. It belongs to another answer if it has
// another ID, unless each chunk has its own, or if it has a role, unless several chunks
// have one.
//
// The calls of an answer that broke off count as incomplete, because the format does not
// mark which of them are whole. A refusal is in the Transcript and in no [Delta].
func (f OpenAIChat) Stream() Stream { return &chatStream{format: f} }

type chatStream struct {
	streamBase
	format OpenAIChat

	top    map[string]json.RawMessage // the fields of the chunks, without those below
	usage  map[string]json.RawMessage
	hidden map[string]json.RawMessage // the usage, where some hosts put it elsewhere
	choice map[string]json.RawMessage // the fields of the choice, without the message
	others map[int]bool               // the other choices
	begun  bool                       // there is a choice
	bare   bool                       // an answer of Ollama, without choices

	message streamedValue // without the content and the calls
	content chatStreamContent
	calls   []*chatStreamCall
	byIndex map[string]*chatStreamCall // the newest call with an index
	byID    map[string]*chatStreamCall // the newest call with an ID

	thought halfRune // of the reasoning that was shown

	rotates bool // each chunk has its own ID
	roles   bool // chunks after the first have a role
	closed  bool // [DONE] was received

	said string // an event that has nothing of the format
}

// Event implements [Stream].
func (s *chatStream) Event(name string, data []byte) ([]Delta, error) {
	if isEnd(data) && s.err == nil {
		if err := s.saidOnly(); err != nil {
			return s.fail(err)
		}
		s.done, s.closed = true, true
		return nil, nil
	}
	return s.event(name, data, s.read)
}

// read reads an event with these fields.
func (s *chatStream) read(name string, data []byte, all map[string]json.RawMessage) ([]Delta, error) {
	var choices []map[string]json.RawMessage
	switch message := all["message"]; {
	case !isNull(all["choices"]):
		if err := read("choices", "an array of objects", all["choices"], &choices); err != nil {
			return nil, err
		}
	case kindOf(message) == '{':
		s.bare = s.bare || !s.begun
		choices = []map[string]json.RawMessage{{"delta": message}}
	case isError(all):
		return nil, providerError(data)
	case isNull(all["usage"]) && isNull(all["done"]):
		if kind := stringOf(all["type"]); kind != "" {
			name = kind
		}
		if name != "" && name != "ping" {
			s.lose(name, lostEvent)
			return nil, nil
		}
		if all["choices"] == nil && len(all) > 0 && s.said == "" {
			s.said = excerpt(compact(data), shownBytes)
		}
	}
	second := s.isSecond(stringOf(all["id"]))
	s.head(all)
	var out []Delta
	for i, c := range choices {
		deltas, err := s.chunk(fmt.Sprintf("choices[%d]", i), c, second)
		if err != nil {
			return nil, err
		}
		out = append(out, deltas...)
	}
	if string(all["done"]) == "true" {
		s.done = true
	}
	return out, nil
}

// saidOnly returns an error if nothing but an event without anything of the format came.
func (s *chatStream) saidOnly() error {
	if s.said == "" || s.begun || s.usage != nil {
		return nil
	}
	return fmt.Errorf("wire: the stream holds nothing of an answer, and says %q: %w", s.said, io.ErrUnexpectedEOF)
}

// isSecond reports whether content in a chunk with this ID belongs to another answer, and
// records the ID. Some proxies give each chunk its own ID.
func (s *chatStream) isSecond(id string) bool {
	other := id != "" && s.id != "" && id != s.id
	if id != "" {
		s.id = id
	}
	if other && !s.done {
		s.rotates = true
	}
	return s.closed || s.done && (s.bare || other && !s.rotates)
}

// head reads the fields of a chunk other than the choices.
func (s *chatStream) head(all map[string]json.RawMessage) {
	if s.top == nil {
		s.top = map[string]json.RawMessage{}
	}
	for key, value := range all {
		switch {
		case key == "choices" || key == "message" || key == "usage" || key == "error" || isNull(value):
		case key != "id" && key != "model" || stringOf(s.top[key]) == "":
			s.top[key] = value
		}
	}
	s.addUsage("usage", all["usage"], &s.usage)
	s.addUsage("x_groq.usage", field(all["x_groq"], "usage"), &s.hidden)
}

// chunk reads a choice of a chunk. The second argument reports whether its content
// belongs to another answer.
func (s *chatStream) chunk(path string, c map[string]json.RawMessage, second bool) ([]Delta, error) {
	if saysError(c["error"]) {
		return nil, providerError(c["error"])
	}
	index := 0
	if raw := c["index"]; !isNull(raw) {
		if err := read(path+".index", "a whole number", raw, &index); err != nil {
			return nil, err
		}
	}
	if index != 0 {
		if s.others == nil {
			s.others = map[int]bool{}
		}
		s.others[index] = true
		return nil, nil
	}
	raw, at, whole := c["delta"], path+".delta", false
	if isNull(raw) && !isNull(c["message"]) { // from a server that does not stream
		raw, at, whole = c["message"], path+".message", true
	}
	delta, err := optionalFields(at, raw)
	if err != nil {
		return nil, err
	}
	role := !isNull(delta["role"])
	if (second || s.done && role && !s.roles) && addsContent(delta) {
		return nil, errSecondAnswer
	}
	s.roles = s.roles || role && s.begun && !s.done
	s.begun = true
	if s.choice == nil {
		s.choice = map[string]json.RawMessage{}
	}
	for key, value := range c {
		switch {
		case key == "delta" || key == "message" || isNull(value):
		case key == "finish_reason" && string(value) == `""`:
		case key == "usage":
			s.addUsage(path+".usage", value, &s.hidden)
		default:
			s.choice[key] = value
		}
	}
	out, err := s.add(at, delta)
	if err != nil {
		return nil, err
	}
	reason := string(s.choice["finish_reason"])
	s.done = s.done || whole || reason != "" && reason != `"error"` // whose error may follow
	return out, nil
}

// addsContent reports whether a delta has content.
func addsContent(delta map[string]json.RawMessage) bool {
	for _, key := range []string{"content", "tool_calls", "refusal", "reasoning_content", "reasoning", "thinking", detailsField} {
		switch string(delta[key]) {
		case "", "null", `""`, "[]":
		default:
			return true
		}
	}
	return false
}

// add adds a delta to the message.
func (s *chatStream) add(path string, delta map[string]json.RawMessage) (out []Delta, err error) {
	out = append(out, deltaOf(Delta{Reasoning: s.reasoningIn(delta)})...)
	for _, key := range sortedKeys(delta) {
		switch key {
		case "role", "content", "tool_calls":
		case "index": // the index of the choice, repeated
		default:
			s.message.addField(key, delta[key], 0)
		}
	}
	if raw := delta["content"]; !isNull(raw) {
		if err := s.content.add(path+".content", raw, &out); err != nil {
			return nil, err
		}
	}
	if raw := delta["tool_calls"]; !isNull(raw) {
		err = elements(path+".tool_calls", "an array of calls", raw, func(path string, raw json.RawMessage) error {
			piece, err := fields(path, raw)
			if err == nil {
				out = append(out, s.addCall(piece)...)
			}
			return err
		})
	}
	return out, err
}

// reasoningIn returns the reasoning in a delta. Some hosts send it twice.
func (s *chatStream) reasoningIn(delta map[string]json.RawMessage) string {
	for _, key := range reasoningFields {
		if stringOf(delta[key]) != "" {
			return s.thought.join(delta[key])
		}
	}
	var text strings.Builder
	if raw := delta[detailsField]; kindOf(raw) == '[' {
		var details []struct{ Text, Summary json.RawMessage }
		if json.Unmarshal(raw, &details) == nil {
			for _, d := range details {
				text.WriteString(s.thought.join(d.Text) + s.thought.join(d.Summary))
			}
		}
	}
	return text.String()
}

// A chatStreamContent is the content of the message: a text, or a list of parts.
type chatStreamContent struct {
	text  streamedText
	parts *streamedValue

	half, thought halfRune // of the texts and thoughts of parts that were shown
}

// add adds a piece of the content, and appends what it shows to out.
func (c *chatStreamContent) add(path string, raw json.RawMessage, out *[]Delta) error {
	if kindOf(raw) == '"' {
		*out = append(*out, deltaOf(Delta{Text: c.addText(raw)})...)
		return nil
	}
	return elements(path, "a string or an array of parts", raw, func(path string, raw json.RawMessage) error {
		if c.parts == nil {
			c.parts = &streamedValue{list: []*streamedValue{}}
			if c.text.Len() > 0 {
				c.half = c.text.half
				c.parts.list = append(c.parts.list, &streamedValue{order: []string{"type", "text"}, fields: map[string]*streamedValue{
					"type": {raw: json.RawMessage(`"text"`)}, "text": {text: &c.text},
				}})
			}
		}
		if kindOf(raw) == '"' {
			*out = append(*out, deltaOf(Delta{Text: c.addText(raw)})...)
			return nil
		}
		part, err := fields(path, raw)
		if err != nil {
			return err
		}
		c.parts.addElement(raw, 1)
		switch stringOf(part["type"]) {
		case "text":
			*out = append(*out, deltaOf(Delta{Text: c.half.join(part["text"])})...)
		case "thinking":
			var text strings.Builder
			text.WriteString(c.thought.join(part["thinking"]))
			var list []struct{ Text json.RawMessage }
			if kindOf(part["thinking"]) == '[' && json.Unmarshal(part["thinking"], &list) == nil {
				for _, p := range list {
					text.WriteString(c.thought.join(p.Text))
				}
			}
			*out = append(*out, deltaOf(Delta{Reasoning: text.String()})...)
		}
		return nil
	})
}

// addText adds a JSON string, and returns what it shows.
func (c *chatStreamContent) addText(raw json.RawMessage) string {
	if c.parts == nil {
		return c.text.add(raw)
	}
	if string(raw) != `""` {
		c.parts.addElement(json.RawMessage(`{"type":"text","text":`+string(raw)+`}`), 1)
	}
	return c.half.join(raw)
}

// A chatStreamCall is a call that arrives in pieces.
type chatStreamCall struct {
	number    int
	id        string
	name      strings.Builder
	arguments streamedText
	written   objectScanner
	custom    bool          // the arguments are a text
	rest      streamedValue // the other fields
	function  streamedValue // the other fields of the function
}

// addCall adds an element of tool_calls. Its index or its ID selects the call; without
// both, it is the newest call. A name begins a new call if the call has another ID, or
// arguments that the piece cannot continue, and always if the piece has no index and a
// new ID or none.
func (s *chatStream) addCall(piece map[string]json.RawMessage) []Delta {
	inside, argument := piece["function"], "arguments"
	custom := isNull(inside) && !isNull(piece["custom"])
	if custom {
		inside, argument = piece["custom"], "input"
	}
	function, _ := optionalFields("-", inside)
	id, name := stringOf(piece["id"]), stringOf(function["name"])
	raw := function[argument]
	text := stringOf(raw)
	if kindOf(raw) != '"' && !isNull(raw) {
		text = string(raw)
		raw = strictjson.AppendString(nil, text)
	}
	index := string(piece["index"])
	if isNull(piece["index"]) {
		index = ""
	}

	var c *chatStreamCall
	switch n := len(s.calls); {
	case index != "":
		c = s.byIndex[index]
	case s.byID[id] != nil:
		c = s.byID[id]
	case name == "" && n > 0:
		c = s.calls[n-1]
	}
	if c != nil && c.ends(id, name, text) {
		c = nil
	}
	if c == nil {
		c = &chatStreamCall{number: len(s.calls)}
		s.calls = append(s.calls, c)
		if s.byIndex == nil {
			s.byIndex, s.byID = map[string]*chatStreamCall{}, map[string]*chatStreamCall{}
		}
	}
	c.custom = c.custom || custom
	if index != "" {
		s.byIndex[index] = c
	}
	if c.id == "" && id != "" {
		c.id = id
		s.byID[id] = c
	}
	if so := c.name.String(); name != "" && name != so && (so == "" || !c.written.begun) {
		c.name.WriteString(name)
	}
	for key, value := range piece {
		if key != "id" && key != "index" && key != "function" && key != "custom" {
			c.rest.addField(key, value, 1)
		}
	}
	for key, value := range function {
		if key != "name" && key != argument {
			c.function.addField(key, value, 1)
		}
	}
	if text != "" {
		text = c.arguments.add(raw)
		c.written.scan(text)
	}
	return []Delta{{Call: &CallDelta{Index: c.number, ID: c.id, Name: c.name.String(), Arguments: text}}}
}

// ends reports whether a piece begins another call, so that c is complete. Only a name
// begins a call: some servers make a new ID for each piece.
func (c *chatStreamCall) ends(id, name, arguments string) bool {
	switch {
	case name == "":
		return false
	case id != "" && c.id != "":
		return id != c.id
	case c.written.ended:
		return !isBlank(arguments) || name != c.name.String()
	}
	return c.written.begun && name != c.name.String()
}

// An objectScanner finds the end of a JSON object that arrives in pieces.
type objectScanner struct {
	begun, ended bool // something other than space was read; the object is complete
	depth        int
	text, escape bool // inside a string; after a backslash in it
}

func (o *objectScanner) scan(s string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case o.escape:
			o.escape = false
		case o.text:
			o.escape, o.text = c == '\\', c != '"'
		case c == '"':
			o.text, o.begun = true, true
		case c == '{' || c == '[':
			o.depth++
			o.begun, o.ended = true, false
		case c == '}' || c == ']':
			o.depth--
			o.ended = o.depth == 0
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			o.begun = true
		}
	}
}

// appendTo appends the call in the form of an answer.
func (c *chatStreamCall) appendTo(b []byte) []byte {
	kind, argument := "function", "arguments"
	if c.custom {
		kind, argument = "custom", "input"
	}
	b = append(b, '{')
	if c.id != "" {
		b = appendStringField(b, "id", c.id)
	}
	for _, key := range c.rest.keys() {
		b = c.rest.fields[key].appendTo(append(strictjson.AppendString(comma(b), key), ':'))
	}
	b = append(strictjson.Key(b, kind), '{')
	b = appendStringField(b, "name", c.name.String())
	for _, key := range c.function.keys() {
		b = c.function.fields[key].appendTo(append(strictjson.AppendString(comma(b), key), ':'))
	}
	b = c.arguments.appendTo(strictjson.Key(b, argument))
	return append(b, "}}"...)
}

// Transcript implements [Stream].
func (s *chatStream) Transcript() (Transcript, error) {
	var parts []answerPart
	add := func(field string, value interface{ appendTo([]byte) []byte }) *answerPart {
		parts = append(parts, answerPart{path: field, field: field, json: value.appendTo(nil)})
		return &parts[len(parts)-1]
	}
	element := func(list string, i int, value interface{ appendTo([]byte) []byte }) *answerPart {
		p := add(list, value)
		p.path, p.element = atIndex(list, i), true
		return p
	}
	switch {
	case s.content.parts != nil:
		for i, p := range s.content.parts.list {
			element("content", i, p)
		}
	case s.content.text.Len() > 0:
		add("content", &s.content.text)
	}
	for _, key := range s.message.keys() {
		if f := s.message.fields[key]; f.text == nil || f.text.Len() > 0 {
			add(key, f)
		}
	}
	var lost []Loss
	for i, c := range s.calls {
		if c.name.Len() == 0 {
			lost = append(lost, Loss{atIndex("tool_calls", i), lostNameless})
			continue
		}
		p := element("tool_calls", i, c)
		p.isCall, p.number, p.half = true, c.number, !s.done
	}
	for _, index := range slices.Sorted(maps.Keys(s.others)) {
		lost = append(lost, Loss{fmt.Sprintf("choices[%d].message", index), lostChoice})
	}
	t, err := s.transcript(parts, lost, s.answer, func() (*decoder, func([]byte) error) {
		d := s.format.decoder()
		return &d, func(data []byte) error { return s.format.decode(&d, data) }
	})
	if err == errCutOff {
		err = cmp.Or(s.saidOnly(), err)
	}
	return t, err
}

// answer returns the answer in the form of a response without a stream.
func (s *chatStream) answer(parts []answerPart, bare bool) []byte {
	message := []byte(`{"role":"assistant"`)
	list := "" // that is open
	for _, p := range parts {
		if list != "" && list != p.field {
			message, list = append(message, ']'), ""
		}
		switch {
		case list != "":
			message = append(message, ',')
		case p.element:
			message, list = append(strictjson.Key(message, p.field), '['), p.field
		default:
			message = append(strictjson.AppendString(append(message, ','), p.field), ':')
		}
		message = append(message, p.json...)
	}
	if list != "" {
		message = append(message, ']')
	}
	message = append(message, '}')

	answer := map[string]json.RawMessage{}
	choice := map[string]json.RawMessage{}
	if !bare {
		maps.Copy(answer, s.top)
		delete(answer, "messages") // a field of requests
		usage := s.usage
		if usage == nil {
			usage = s.hidden
		}
		if usage != nil {
			answer["usage"] = appendObject(nil, usage)
		}
		maps.Copy(choice, s.choice)
	}
	choice["message"] = message
	switch {
	case s.bare && s.begun:
		answer["message"] = message
	case s.begun:
		answer["choices"] = slices.Concat([]byte{'['}, appendObject(nil, choice), []byte{']'})
	default:
		answer["choices"] = json.RawMessage("[]")
	}
	return appendObject(nil, answer)
}
