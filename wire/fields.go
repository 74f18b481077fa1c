package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Some fields of a text or a call in OpenAI's formats have no place in a part. They are
// kept in an Opaque block of the type fieldsType directly before it.

const fieldsType = "convo_fields"

// partFields are the fields in such a block.
type partFields struct {
	Type      string
	ID        string // of the item in Responses
	Phase     string // of a text
	Namespace string // of a call
	Call      string // customCall, or empty for a function call
}

// customCall is partFields.Call of a call of a custom tool.
const customCall = "custom"

// fieldsOf returns the fields in a block, and whether it is one that holds such.
func fieldsOf(o convo.Opaque) (f partFields, ok bool) {
	ok = strings.Contains(o.JSON, fieldsType) && json.Unmarshal([]byte(o.JSON), &f) == nil && f.Type == fieldsType
	return f, ok
}

// withoutFields returns the parts in front of a call that is taken out, without the
// block that holds the fields of the call, and without its extra_content.
func withoutFields(parts []convo.Part) []convo.Part {
	ofCall := func(p convo.Part) bool {
		switch p := p.(type) {
		case convo.Opaque:
			_, ok := fieldsOf(p)
			return ok
		case convo.Reasoning:
			return callExtra(p) != ""
		}
		return false
	}
	n := len(parts)
	for n > 0 && ofCall(parts[n-1]) {
		n--
	}
	return slices.Clip(parts[:n])
}

// customCalls returns which of the calls of a message came as calls of a custom tool in
// a format, by their index among the calls. It is nil if there is none.
func customCalls(parts []convo.Part, format string) (custom map[int]bool) {
	n := 0
	for i, p := range parts {
		if !isCall(p) {
			continue
		}
		if i > 0 {
			if o, ok := parts[i-1].(convo.Opaque); ok && o.Format == format {
				if f, ok := fieldsOf(o); ok && f.Call == customCall {
					if custom == nil {
						custom = make(map[int]bool)
					}
					custom[n] = true
				}
			}
		}
		n++
	}
	return custom
}

// callExtra returns the extra_content that reasoning keeps for the call after it, or
// "" if it is other reasoning.
func callExtra(r convo.Reasoning) string {
	if r.ID+r.Text+r.Encrypted != "" {
		return ""
	}
	all := objectIn(r.Signature)
	if raw := all[extraField]; len(all) == 1 && kindOf(raw) == '{' {
		return string(raw)
	}
	return ""
}

// objectIn returns the fields of a JSON object, or nil if text is none.
func objectIn(text string) map[string]json.RawMessage {
	if kindOf(json.RawMessage(text)) != '{' || !utf8.ValidString(text) || !strictjson.Valid([]byte(text)) {
		return nil
	}
	all, _ := fields("-", []byte(text))
	return all
}

func isCall(p convo.Part) bool { _, ok := p.(convo.ToolCall); return ok }

// extraField is the field of a call in which Gemini's hosts send its signature.
const extraField = "extra_content"
