package convo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The JSON of a message:
//
//	{"role": "assistant", "author": "", "origin": {"format": "", "model": ""}, "meta": "", "parts": [
//	  {"type": "text", "text": ""},
//	  {"type": "reasoning", "id": "", "text": "", "signature": "", "encrypted": ""},
//	  {"type": "tool_call", "id": "", "name": "", "arguments": "{}", "minted": false},
//	  {"type": "tool_result", "call_id": "", "name": "", "is_error": false, "cleared": false, "parts": [...]},
//	  {"type": "media", "mime": "", "data": "", "url": ""},
//	  {"type": "opaque", "format": "", "json": "{}"}]}
//
// Empty fields are left out. Arguments and opaque blocks are strings, so that
// their bytes stay. Unknown fields and types are errors.

type messageJSON struct {
	Role   Role      `json:"role"`
	Author string    `json:"author,omitempty"`
	Origin Origin    `json:"origin,omitzero"`
	Meta   string    `json:"meta,omitempty"`
	Parts  []outPart `json:"parts,omitempty"`
}

// partJSON has the fields of all parts but the parts of a result.
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

// outPart is a part of a message, inPart one of a result. They are two types,
// so that no input can nest deeper.
type (
	outPart struct{ Part }
	inPart  struct{ Part }
)

type outPartJSON struct {
	partJSON
	Parts []inPart `json:"parts,omitempty"`
}

func (p outPart) MarshalJSON() ([]byte, error) {
	out := outPartJSON{partJSON: fieldsOf(p.Part)}
	if r, ok := p.Part.(ToolResult); ok {
		for _, q := range r.Parts {
			out.Parts = append(out.Parts, inPart{q})
		}
	}
	return marshalPart(out.Type, p.Part, out)
}

func (p inPart) MarshalJSON() ([]byte, error) {
	out := fieldsOf(p.Part)
	if out.Type == typeResult || out.Type == typeCall || out.Type == typeReasoning {
		out.Type = ""
	}
	return marshalPart(out.Type, p.Part, out)
}

func marshalPart(kind string, p Part, v any) ([]byte, error) {
	if kind == "" {
		return nil, fmt.Errorf("convo: encode message: a part of type %T may not stand here", p)
	}
	return json.Marshal(v)
}

func (p *outPart) UnmarshalJSON(data []byte) error {
	var in outPartJSON
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
			return fmt.Errorf("part of type %q with parts of its own", in.Type)
		}
		return nil
	}
	for _, q := range in.Parts {
		r.Parts = append(r.Parts, q.Part)
	}
	p.Part = r
	return nil
}

func (p *inPart) UnmarshalJSON(data []byte) error {
	var in partJSON
	if err := decodeStrict(data, &in); err != nil {
		return err
	}
	switch in.Type {
	case typeResult, typeCall, typeReasoning:
		return fmt.Errorf("part of type %q inside a tool result", in.Type)
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

// fieldsOf returns the fields of a part, with no Type for a part of no known
// type.
func fieldsOf(p Part) partJSON {
	switch p := p.(type) {
	case Text:
		return partJSON{Type: typeText, Text: new(validText(string(p)))}
	case Reasoning:
		out := partJSON{Type: typeReasoning, ID: validText(p.ID), Signature: validText(p.Signature), Encrypted: validText(p.Encrypted)}
		if p.Text != "" {
			out.Text = new(validText(p.Text))
		}
		return out
	case ToolCall:
		return partJSON{Type: typeCall, ID: validText(p.ID), Name: validText(p.Name), Arguments: validText(p.Arguments), Minted: p.Minted}
	case ToolResult:
		return partJSON{Type: typeResult, CallID: validText(p.CallID), Name: validText(p.Name), IsError: p.IsError, Cleared: p.Cleared}
	case Media:
		return partJSON{Type: typeMedia, MIME: validText(p.MIME), Data: validText(p.Data), URL: validText(p.URL)}
	case Opaque:
		return partJSON{Type: typeOpaque, Format: validText(p.Format), JSON: validText(p.JSON)}
	}
	return partJSON{}
}

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
	return nil, fmt.Errorf("part of unknown type %.40q", f.Type)
}

// MarshalJSON writes m in the package's own stable form, which is described in
// the package documentation. Arguments and opaque blocks keep their bytes.
func (m Message) MarshalJSON() ([]byte, error) {
	out := messageJSON{
		Role:   Role(validText(string(m.Role))),
		Author: validText(m.Author),
		Origin: Origin{Format: validText(m.Origin.Format), Model: validText(m.Origin.Model)},
		Meta:   validText(m.Meta),
	}
	for _, p := range m.Parts {
		out.Parts = append(out.Parts, outPart{p})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote. An unknown field, part or role is
// a [*MessageError], and m stays as it was.
func (m *Message) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	var in messageJSON
	if err := decodeStrict(data, &in); err != nil {
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
			return &MessageError{Role: in.Role, Part: i, Reason: "nil part"}
		}
		next.Parts = append(next.Parts, p.Part)
	}
	*m = next
	return nil
}

func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func isNull(data []byte) bool { return string(bytes.TrimSpace(data)) == "null" }
