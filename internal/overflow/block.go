package overflow

import (
	"encoding/json"
	"strings"
)

// Fields are those of a block that only a provider understands.
type Fields map[string]any

// FieldsOf returns the fields of a JSON object, or nil if the text is none.
func FieldsOf(object string) (f Fields) {
	_ = json.Unmarshal([]byte(object), &f)
	return f
}

// Refuses reports whether a block with these fields is of the kind that is refused.
func (r *Refusal) Refuses(f Fields) bool {
	switch r.Kind {
	case Image:
		return f["type"] == "image"
	case Document:
		return f["type"] == "document"
	case Encrypted:
		return f["type"] == "reasoning"
	case Reference:
		return refersTo(map[string]any(f), r.Name)
	case Container:
		id, ok := f.Container().(string)
		return ok && (r.Name == "" || r.Name == id)
	case Block:
		return r.Name == "" || f["id"] == r.Name || f["tool_use_id"] == r.Name
	}
	return false
}

// Container returns the ID of the container in which the code of the block ran, or nil.
func (f Fields) Container() any { return f["container_id"] }

// IsPartner reports whether one of two blocks is the result of the other.
func (f Fields) IsPartner(g Fields) bool { return f.isCallOf(g) || g.isCallOf(f) }

func (f Fields) isCallOf(result Fields) bool {
	id, ok := f["id"].(string)
	return ok && id != "" && result["tool_use_id"] == id
}

// refersTo reports whether a JSON value holds a reference to a tool.
func refersTo(v any, tool string) bool {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "tool_reference" && v["tool_name"] == tool {
			return true
		}
		for _, in := range v {
			if refersTo(in, tool) {
				return true
			}
		}
	case []any:
		for _, in := range v {
			if refersTo(in, tool) {
				return true
			}
		}
	}
	return false
}

// Texts are the strings in a JSON value, and the data in those that are data URLs.
type Texts map[string]bool

// TextsIn returns the texts of a JSON value.
func TextsIn(v any) Texts {
	texts := make(Texts)
	for s := range Strings(v) {
		texts[s] = true
		if _, data, ok := strings.Cut(s, ";base64,"); ok {
			texts[data] = true
		}
	}
	return texts
}

// Has reports whether s is one of the texts and not empty.
func (t Texts) Has(s string) bool { return s != "" && t[s] }

// leastShared is the length of a string that a block shares with a part of the body only if
// they are the same.
const leastShared = 16

// HasOf reports whether a long string of a block is one of the texts.
func (t Texts) HasOf(f Fields) bool {
	for s := range Strings(map[string]any(f)) {
		if len(s) >= leastShared && t[s] {
			return true
		}
	}
	return false
}
