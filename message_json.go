package convo

import (
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// The package documentation describes the JSON of a message.

const (
	typeText      = "text"
	typeReasoning = "reasoning"
	typeCall      = "tool_call"
	typeResult    = "tool_result"
	typeMedia     = "media"
	typeOpaque    = "opaque"
)

// MarshalJSON encodes m in the stable form that docs/format.md describes. Arguments and
// opaque blocks keep their bytes; invalid UTF-8 is replaced by U+FFFD. It returns an
// error for a part of an unknown type, and for a tool result that holds anything but
// Text, Media and Opaque.
func (m Message) MarshalJSON() ([]byte, error) {
	return appendMessage(make([]byte, 0, m.jsonSize()), &m)
}

// UnmarshalJSON decodes the form that MarshalJSON writes. It returns a [*MessageError],
// and leaves m unchanged, when a field, a part's type or the role is unknown, a key
// occurs twice in one object, or data continues after the message. Append checks whether
// the role may hold the parts.
func (m *Message) UnmarshalJSON(data []byte) error {
	r := strictjson.NewReader(data)
	next, part := *m, -1
	if !r.Null() {
		next, part = readMessage(r, nil)
	}
	if r.End(); r.Err() != nil {
		return &MessageError{Role: next.Role, Part: part, Reason: r.Err().Error()}
	}
	*m = next
	return nil
}

// jsonSize returns the approximate size of the JSON of m in bytes. Of results it
// counts only the texts, since an unchecked message may hold itself.
func (m *Message) jsonSize() int {
	n := 64 + len(m.Author) + len(m.Origin.Format) + len(m.Origin.Model) + len(m.Origin.Container) + len(m.Meta) + len(m.Key)
	for _, p := range m.Parts {
		n += 32
		switch p := p.(type) {
		case Text:
			n += len(p) + len(p)/16
		case Reasoning:
			n += 64 + len(p.ID) + len(p.Text) + len(p.Text)/16 + len(p.Signature) + len(p.Encrypted)
		case ToolCall:
			n += 64 + len(p.ID) + len(p.Name) + len(p.Arguments) + len(p.Arguments)/8
		case ToolResult:
			texts := textSize(p.Parts)
			n += 64 + len(p.CallID) + len(p.Name) + texts + texts/16 + 32*len(p.Parts)
		case Media:
			n += 32 + len(p.MIME) + len(p.Data) + len(p.URL)
		case Opaque:
			n += 32 + len(p.Format) + len(p.JSON) + len(p.JSON)/8
		}
	}
	return n
}

// appendMessage appends the JSON of m.
func appendMessage(dst []byte, m *Message) ([]byte, error) {
	dst = strictjson.AppendString(append(dst, `{"role":`...), string(m.Role))
	dst = strictjson.Text(dst, "author", m.Author)
	if o := m.Origin; o != (Origin{}) {
		dst = append(strictjson.Key(dst, "origin"), '{')
		dst = strictjson.Text(dst, "format", o.Format)
		dst = strictjson.Text(dst, "model", o.Model)
		dst = strictjson.Text(dst, "container", o.Container)
		dst = append(dst, '}')
	}
	dst = strictjson.Text(dst, "meta", m.Meta)
	dst = strictjson.Text(dst, "key", m.Key)
	dst, err := appendParts(dst, m.Parts, false)
	return append(dst, '}'), err
}

// appendParts appends the member of an object with the parts of a message, or of a
// tool result.
func appendParts(dst []byte, parts []Part, inResult bool) ([]byte, error) {
	if len(parts) == 0 {
		return dst, nil
	}
	dst = append(strictjson.Key(dst, "parts"), '[')
	for _, p := range parts {
		kind := typeOf(p)
		if kind == "" || inResult && !inResults(kind) {
			return dst, fmt.Errorf("convo: encode message: a part of type %T is not allowed here", p)
		}
		dst = strictjson.Text(append(strictjson.Next(dst), '{'), "type", kind)
		switch p := p.(type) {
		case Text:
			dst = strictjson.AppendString(strictjson.Key(dst, "text"), string(p))
		case Reasoning:
			dst = strictjson.Text(dst, "id", p.ID)
			dst = strictjson.Text(dst, "text", p.Text)
			dst = strictjson.Text(dst, "signature", p.Signature)
			dst = strictjson.Text(dst, "encrypted", p.Encrypted)
		case ToolCall:
			dst = strictjson.Text(dst, "id", p.ID)
			dst = strictjson.Text(dst, "name", p.Name)
			dst = strictjson.Text(dst, "arguments", p.Arguments)
			dst = strictjson.Bool(dst, "minted", p.Minted)
		case ToolResult:
			dst = strictjson.Text(dst, "call_id", p.CallID)
			dst = strictjson.Text(dst, "name", p.Name)
			dst = strictjson.Bool(dst, "is_error", p.IsError)
			dst = strictjson.Bool(dst, "cleared", p.Cleared)
			var err error
			if dst, err = appendParts(dst, p.Parts, true); err != nil {
				return dst, err
			}
		case Media:
			dst = strictjson.Text(dst, "mime", p.MIME)
			dst = strictjson.Text(dst, "data", p.Data)
			dst = strictjson.Text(dst, "url", p.URL)
		case Opaque:
			dst = strictjson.Text(dst, "format", p.Format)
			dst = strictjson.Text(dst, "json", p.JSON)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// typeOf returns the type of a part as JSON names it, empty if there is none.
func typeOf(p Part) string {
	switch p.(type) {
	case Text:
		return typeText
	case Reasoning:
		return typeReasoning
	case ToolCall:
		return typeCall
	case ToolResult:
		return typeResult
	case Media:
		return typeMedia
	case Opaque:
		return typeOpaque
	}
	return ""
}

// inResults reports whether a tool result may hold parts of this type.
func inResults(kind string) bool {
	return kind == typeText || kind == typeMedia || kind == typeOpaque
}

// readMessage reads a message. A single part is put into inline, if that is not
// nil. part is the index of the part that could not be read, or -1.
func readMessage(r *strictjson.Reader, inline *[1]Part) (m Message, part int) {
	part = -1
	if inline != nil {
		m.Parts = inline[:0]
	}
	for key := range r.Object {
		switch string(key) {
		case "role":
			m.Role = readRole(r)
		case "author":
			m.Author = r.Name()
		case "origin":
			for key := range r.Object {
				switch string(key) {
				case "format":
					m.Origin.Format = r.Name()
				case "model":
					m.Origin.Model = r.Name()
				case "container":
					m.Origin.Container = r.Name()
				default:
					r.Unknown(key)
				}
			}
		case "meta":
			m.Meta = r.Text()
		case "key":
			m.Key = r.Text()
		case "parts":
			for i := range r.Array {
				m.Parts = append(m.Parts, readPart(r, false))
				if r.Err() != nil {
					part = i
				}
			}
		default:
			r.Unknown(key)
		}
	}
	switch m.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	default:
		r.Fail(fmt.Errorf("unknown role %.40q", string(m.Role)))
	}
	if len(m.Parts) == 0 {
		m.Parts = nil
	}
	return m, part
}

// readRole reads a role.
func readRole(r *strictjson.Reader) Role {
	name := r.Bytes()
	for _, role := range []Role{RoleUser, RoleAssistant, RoleTool, RoleSystem} {
		if string(name) == string(role) {
			return role // which does not allocate
		}
	}
	return Role(name)
}

// readPart reads a part of a message, or of a tool result.
func readPart(r *strictjson.Reader, inResult bool) Part {
	// The fields of every kind of part.
	var kind, id, callID, name, text, signature, encrypted, arguments, mime, data, url, format, block string
	var minted, isError, cleared, hasParts bool
	var parts []Part
	for key := range r.Object {
		switch string(key) {
		case "type":
			kind = readType(r, inResult)
		case "id":
			id = r.Name()
		case "call_id":
			callID = r.Name()
		case "name":
			name = r.Name()
		case "text":
			text = r.Text()
		case "signature":
			signature = r.Text()
		case "encrypted":
			encrypted = r.Text()
		case "arguments":
			arguments = r.Text()
		case "minted":
			minted = r.Bool()
		case "is_error":
			isError = r.Bool()
		case "cleared":
			cleared = r.Bool()
		case "mime":
			mime = r.Name()
		case "data":
			data = r.Text()
		case "url":
			url = r.Text()
		case "format":
			format = r.Name()
		case "json":
			block = r.Text()
		case "parts":
			if inResult {
				r.Unknown(key)
			} else if hasParts = !r.Null(); hasParts {
				for range r.Array {
					parts = append(parts, readPart(r, true))
				}
			}
		default:
			r.Unknown(key)
		}
	}
	if hasParts && kind != typeResult {
		r.Fail(fmt.Errorf("part of type %q has parts, which only a %s may have", kind, typeResult))
	}
	switch kind {
	case typeText:
		return Text(text)
	case typeReasoning:
		return Reasoning{ID: id, Text: text, Signature: signature, Encrypted: encrypted}
	case typeCall:
		return ToolCall{ID: id, Name: name, Arguments: arguments, Minted: minted}
	case typeResult:
		return ToolResult{CallID: callID, Name: name, Parts: parts, IsError: isError, Cleared: cleared}
	case typeMedia:
		return Media{MIME: mime, Data: data, URL: url}
	case typeOpaque:
		return Opaque{Format: format, JSON: block}
	}
	r.Fail(errors.New("part without a type"))
	return nil
}

// readType reads the type of a part.
func readType(r *strictjson.Reader, inResult bool) string {
	name := r.Bytes()
	for _, kind := range []string{typeText, typeCall, typeResult, typeReasoning, typeMedia, typeOpaque} {
		if string(name) != kind {
			continue
		}
		if inResult && !inResults(kind) {
			r.Fail(fmt.Errorf("part of type %q is not allowed inside a %s", kind, typeResult))
		}
		return kind
	}
	r.Fail(fmt.Errorf("unknown part type %.40q", name))
	return ""
}
