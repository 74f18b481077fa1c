package convo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// The package documentation describes the JSON of a message.

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
	r.End()
	if r.Err() != nil {
		return &MessageError{Role: next.Role, Part: part, Reason: r.Err().Error()}
	}
	*m = next
	return nil
}

// jsonSize returns the approximate size of the JSON of m in bytes.
func (m *Message) jsonSize() int {
	n := 64 + len(m.Author) + len(m.Origin.Format) + len(m.Origin.Model) + len(m.Origin.Container) + len(m.Meta) + len(m.Key)
	for _, p := range m.Parts {
		n += 32 + known(p).jsonSize()
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
		k := known(p).kind()
		if k == nil || inResult && !k.inResult {
			return dst, fmt.Errorf("convo: encode message: a part of type %T is not allowed here", p)
		}
		var err error
		dst = strictjson.Text(append(strictjson.Next(dst), '{'), "type", k.name)
		if dst, err = p.appendJSON(dst); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
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
			m.Origin.read(r)
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
	if !slices.Contains(roles, m.Role) {
		r.Fail(fmt.Errorf("unknown role %.40q", string(m.Role)))
	}
	if len(m.Parts) == 0 {
		m.Parts = nil
	}
	return m, part
}

// read reads the members of an object.
func (o *Origin) read(r *strictjson.Reader) {
	for key := range r.Object {
		switch string(key) {
		case "format":
			o.Format = r.Name()
		case "model":
			o.Model = r.Name()
		case "container":
			o.Container = r.Name()
		default:
			r.Unknown(key)
		}
	}
}

// readRole reads a role.
func readRole(r *strictjson.Reader) Role {
	name := r.Bytes()
	for _, role := range roles {
		if string(name) == string(role) {
			return role // which does not allocate
		}
	}
	return Role(name)
}

// partFields are the fields that the JSON of any kind of part has.
type partFields struct {
	id, callID, name, text, signature, encrypted, arguments, mime, data, url, format, block string
	minted, isError, cleared                                                                bool
	parts                                                                                   []Part
}

// readPart reads a part of a message, or of a tool result.
func readPart(r *strictjson.Reader, inResult bool) Part {
	var f partFields
	var own *kind
	hasParts := false
	for key := range r.Object {
		switch {
		case string(key) == "type":
			own = readKind(r, inResult)
		case string(key) == "parts" && !inResult:
			hasParts = !r.Null()
			if hasParts {
				for range r.Array {
					f.parts = append(f.parts, readPart(r, true))
				}
			}
		default:
			f.read(r, key)
		}
	}
	switch {
	case own == nil:
		r.Fail(errors.New("part without a type"))
		return nil
	case hasParts && own != resultKind:
		r.Fail(fmt.Errorf("part of type %q has parts, which only a %s may have", own.name, resultKind.name))
	}
	return own.read(f)
}

// read reads a member that is not the type or the parts.
func (f *partFields) read(r *strictjson.Reader, key []byte) {
	switch string(key) {
	case "id":
		f.id = r.Name()
	case "call_id":
		f.callID = r.Name()
	case "name":
		f.name = r.Name()
	case "text":
		f.text = r.Text()
	case "signature":
		f.signature = r.Text()
	case "encrypted":
		f.encrypted = r.Text()
	case "arguments":
		f.arguments = r.Text()
	case "minted":
		f.minted = r.Bool()
	case "is_error":
		f.isError = r.Bool()
	case "cleared":
		f.cleared = r.Bool()
	case "mime":
		f.mime = r.Name()
	case "data":
		f.data = r.Text()
	case "url":
		f.url = r.Text()
	case "format":
		f.format = r.Name()
	case "json":
		f.block = r.Text()
	default:
		r.Unknown(key)
	}
}

// readKind reads the type of a part. It returns nil if there is none of that name.
func readKind(r *strictjson.Reader, inResult bool) *kind {
	name := r.Bytes()
	for _, k := range kinds {
		if string(name) != k.name {
			continue
		}
		if inResult && !k.inResult {
			r.Fail(fmt.Errorf("part of type %q is not allowed inside a %s", k.name, resultKind.name))
		}
		return k
	}
	r.Fail(fmt.Errorf("unknown part type %.40q", name))
	return nil
}

// content returns the fingerprint of what the model sees of m. Reasoning is left out: a
// signature is not part of what later ones are made for.
func (m *Message) content() fingerprint.Sum {
	sum := fingerprint.Sum(0).String(string(m.Role))
	if m.Author != "" && m.Role != RoleTool {
		sum = sum.String(m.Author)
	}
	return contentOf(sum, m.Parts)
}

func contentOf(sum fingerprint.Sum, parts []Part) fingerprint.Sum {
	for _, p := range parts {
		sum = known(p).sum(sum)
	}
	return sum
}

// Sum returns a fingerprint of what the model reads of m, the same in every process. It
// takes role and author, texts without white space at their ends, calls with arguments as
// JSON values, results without the IDs of their calls, media by their bytes, and opaque
// blocks. Reasoning is left out, as are the key and other fields that no model
// sees. [Resume] compares rows by it.
func (m Message) Sum() uint64 {
	sum := fingerprint.Sum(0).String(string(m.Role))
	if m.Author != "" && m.Role != RoleTool {
		sum = sum.String(text.Valid(m.Author))
	}
	return uint64(sumOf(sum, m.Parts))
}

func sumOf(sum fingerprint.Sum, parts []Part) fingerprint.Sum {
	var said strings.Builder // texts that follow one another
	end := func() {
		if t := strings.TrimSpace(said.String()); t != "" {
			sum = Text(t).rowSum(sum)
		}
		said.Reset()
	}
	for _, p := range parts {
		switch p := p.(type) { // texts that follow one another count as one, whatever reasoning is between them
		case Text:
			said.WriteString(string(p))
		case Reasoning:
		default:
			end()
			sum = known(p).rowSum(sum)
		}
	}
	end()
	return sum
}

// sameJSON returns one text for all texts of a JSON value, and another text as it is.
func sameJSON(s string) string {
	if s == "{}" {
		return s
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return text.Valid(s)
	}
	if _, err := d.Token(); err != io.EOF {
		return text.Valid(s)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return text.Valid(s)
	}
	return string(data)
}
