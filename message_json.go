package convo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo/internal/text"
)

// The package documentation describes the JSON of a message.

type messageJSON struct {
	Role   Role          `json:"role"`
	Author string        `json:"author,omitempty"`
	Origin Origin        `json:"origin,omitzero"`
	Meta   string        `json:"meta,omitempty"`
	Parts  []messagePart `json:"parts,omitempty"`
}

// partJSON has the fields of every kind of part, except a result's own parts.
type partJSON struct {
	Type      string  `json:"type"`
	ID        string  `json:"id,omitempty"`
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Text      *string `json:"text,omitempty"`
	Signature string  `json:"signature,omitempty"`
	Encrypted string  `json:"encrypted,omitempty"`
	Arguments string  `json:"arguments,omitempty"`
	Minted    bool    `json:"minted,omitempty"`
	IsError   bool    `json:"is_error,omitempty"`
	Cleared   bool    `json:"cleared,omitempty"`
	MIME      string  `json:"mime,omitempty"`
	Data      string  `json:"data,omitempty"`
	URL       string  `json:"url,omitempty"`
	Format    string  `json:"format,omitempty"`
	JSON      string  `json:"json,omitempty"`
}

// A messagePart is a part of a message, a resultPart one of a tool result. They
// are two types, so that a result cannot hold another result.
type (
	messagePart struct{ Part }
	resultPart  struct{ Part }
)

type messagePartJSON struct {
	partJSON
	Parts []resultPart `json:"parts,omitempty"`
}

func (p messagePart) MarshalJSON() ([]byte, error) {
	out := messagePartJSON{partJSON: fieldsOf(p.Part)}
	if r, ok := p.Part.(ToolResult); ok {
		for _, q := range r.Parts {
			out.Parts = append(out.Parts, resultPart{q})
		}
	}
	return marshalPart(out.Type, p.Part, out)
}

func (p resultPart) MarshalJSON() ([]byte, error) {
	out := fieldsOf(p.Part)
	if out.Type == typeResult || out.Type == typeCall || out.Type == typeReasoning {
		out.Type = ""
	}
	return marshalPart(out.Type, p.Part, out)
}

// marshalPart encodes v, which holds the fields of p. kind is the type of the
// part, empty if p is not allowed there.
func marshalPart(kind string, p Part, v any) ([]byte, error) {
	if kind == "" {
		return nil, fmt.Errorf("convo: encode message: a part of type %T is not allowed here", p)
	}
	return json.Marshal(v)
}

func (p *messagePart) UnmarshalJSON(data []byte) error {
	var in messagePartJSON
	if err := decodeStrict(data, &in); err != nil {
		return err
	}
	var err error
	if p.Part, err = in.part(); err != nil {
		return err
	}
	r, ok := p.Part.(ToolResult)
	if !ok {
		if in.Parts != nil {
			return fmt.Errorf("part of type %q has parts, which only a %s may have", in.Type, typeResult)
		}
		return nil
	}
	for _, q := range in.Parts {
		r.Parts = append(r.Parts, q.Part)
	}
	p.Part = r
	return nil
}

func (p *resultPart) UnmarshalJSON(data []byte) error {
	var in partJSON
	if err := decodeStrict(data, &in); err != nil {
		return err
	}
	switch in.Type {
	case typeResult, typeCall, typeReasoning:
		return fmt.Errorf("part of type %q is not allowed inside a %s", in.Type, typeResult)
	}
	var err error
	p.Part, err = in.part()
	return err
}

const (
	typeText      = "text"
	typeReasoning = "reasoning"
	typeCall      = "tool_call"
	typeResult    = "tool_result"
	typeMedia     = "media"
	typeOpaque    = "opaque"
)

// fieldsOf returns the fields of a part. Their Type is empty when the package
// does not know the part's type.
func fieldsOf(p Part) partJSON {
	switch p := p.(type) {
	case Text:
		return partJSON{Type: typeText, Text: new(text.Valid(string(p)))}
	case Reasoning:
		out := partJSON{Type: typeReasoning, ID: text.Valid(p.ID), Signature: text.Valid(p.Signature), Encrypted: text.Valid(p.Encrypted)}
		if p.Text != "" {
			out.Text = new(text.Valid(p.Text))
		}
		return out
	case ToolCall:
		return partJSON{Type: typeCall, ID: text.Valid(p.ID), Name: text.Valid(p.Name), Arguments: text.Valid(p.Arguments), Minted: p.Minted}
	case ToolResult:
		return partJSON{Type: typeResult, CallID: text.Valid(p.CallID), Name: text.Valid(p.Name), IsError: p.IsError, Cleared: p.Cleared}
	case Media:
		return partJSON{Type: typeMedia, MIME: text.Valid(p.MIME), Data: text.Valid(p.Data), URL: text.Valid(p.URL)}
	case Opaque:
		return partJSON{Type: typeOpaque, Format: text.Valid(p.Format), JSON: text.Valid(p.JSON)}
	}
	return partJSON{}
}

// part returns the part that the fields describe.
func (f *partJSON) part() (Part, error) {
	text := ""
	if f.Text != nil {
		text = *f.Text
	}
	switch f.Type {
	case typeText:
		return Text(text), nil
	case typeReasoning:
		return Reasoning{ID: f.ID, Text: text, Signature: f.Signature, Encrypted: f.Encrypted}, nil
	case typeCall:
		return ToolCall{ID: f.ID, Name: f.Name, Arguments: f.Arguments, Minted: f.Minted}, nil
	case typeResult:
		return ToolResult{CallID: f.CallID, Name: f.Name, IsError: f.IsError, Cleared: f.Cleared}, nil
	case typeMedia:
		return Media{MIME: f.MIME, Data: f.Data, URL: f.URL}, nil
	case typeOpaque:
		return Opaque{Format: f.Format, JSON: f.JSON}, nil
	}
	return nil, fmt.Errorf("unknown part type %.40q", f.Type)
}

// MarshalJSON encodes m in the stable form that the package documentation
// describes. Arguments and opaque blocks keep their bytes; invalid UTF-8 is
// replaced by U+FFFD. It returns an error for a part of an unknown type, and
// for a tool result that holds anything but [Text], [Media] and [Opaque].
func (m Message) MarshalJSON() ([]byte, error) {
	out := messageJSON{
		Role:   Role(text.Valid(string(m.Role))),
		Author: text.Valid(m.Author),
		Origin: Origin{Format: text.Valid(m.Origin.Format), Model: text.Valid(m.Origin.Model)},
		Meta:   text.Valid(m.Meta),
	}
	for _, p := range m.Parts {
		out.Parts = append(out.Parts, messagePart{p})
	}
	return json.Marshal(out)
}

// UnmarshalJSON decodes what MarshalJSON has written. It returns a
// [*MessageError], and leaves m unchanged, when a field, a part's type or the
// role is unknown, when a key occurs twice in one object, and when data
// continues after the message. Whether the role may hold the parts is checked
// by [History.Append].
func (m *Message) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	var in messageJSON
	err := decodeStrict(data, &in)
	if err == nil {
		err = checkKeys(data)
	}
	if err != nil {
		return &MessageError{Role: in.Role, Part: -1, Reason: err.Error()}
	}
	switch in.Role {
	case RoleSystem, RoleUser, RoleAssistant, RoleTool:
	default:
		return &MessageError{Role: in.Role, Part: -1, Reason: "unknown role"}
	}
	next := Message{Role: in.Role, Author: in.Author, Origin: in.Origin, Meta: in.Meta}
	for i, p := range in.Parts {
		if p.Part == nil { // JSON null
			return &MessageError{Role: in.Role, Part: i, Reason: "part is null"}
		}
		next.Parts = append(next.Parts, p.Part)
	}
	*m = next
	return nil
}

// decodeStrict decodes data into v. It returns an error for a field that v does
// not have, and for anything after the first value.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("unexpected data after the JSON value")
	}
	return nil
}

// checkKeys returns an error for a key that occurs twice in one object, and for
// one that differs from its field's name in case; decodeStrict notices neither.
// data is valid JSON.
func checkKeys(data []byte) error {
	type object struct {
		keys [][]byte // the keys so far; nil for an array
		key  bool     // whether the next string is a key
	}
	var open []object // the objects and arrays around the current byte
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{':
			open = append(open, object{keys: make([][]byte, 0, 4), key: true})
		case '[':
			open = append(open, object{})
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			top := &open[len(open)-1]
			top.key = top.keys != nil
		case '"':
			from := i
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if len(open) == 0 || !open[len(open)-1].key {
				continue
			}
			top := &open[len(open)-1]
			top.key = false
			key, err := keyOf(data[from : i+1])
			if err != nil {
				return err
			}
			for _, k := range top.keys {
				if bytes.Equal(k, key) {
					return fmt.Errorf("duplicate key %q", key)
				}
			}
			top.keys = append(top.keys, key)
		}
	}
	return nil
}

// keyOf returns a key without its quotes. It returns an error for a key that
// holds anything but lower-case letters and underscores, since no field's name
// does.
func keyOf(quoted []byte) ([]byte, error) {
	key := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var s string
		if err := json.Unmarshal(quoted, &s); err != nil {
			return nil, err
		}
		key = []byte(s)
	}
	for _, c := range key {
		if c != '_' && (c < 'a' || c > 'z') {
			return nil, fmt.Errorf("unknown field %q", key)
		}
	}
	return key, nil
}

func isNull(data []byte) bool { return string(bytes.Trim(data, " \t\r\n")) == "null" }
