package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Some fields of a block do not fit into the part that the block becomes. They are kept
// in an opaque part next to it, a JSON object that is not a block. It precedes the part if
// a stream sends the fields before the content, such as the ID of an item in Responses.
// Otherwise it follows the part, as the citations of a text do (citations.go).

// objectMark returns the part that follows the text of a result that came as an object.
func objectMark(format string) convo.Opaque {
	return convo.Opaque{Format: format, JSON: formatRules[format].object}
}

// isObjectMark reports whether a part follows the text of a result that came as an object.
func isObjectMark(p convo.Part) bool {
	o, _ := p.(convo.Opaque)
	return o.JSON != "" && o.JSON == formatRules[o.Format].object
}

// isObject reports whether parts[i] is a text that came as an object in a format and
// still is one.
func isObject(parts []convo.Part, i int, format string) bool {
	text, ok := parts[i].(convo.Text)
	return ok && i+1 < len(parts) && parts[i+1] == convo.Part(objectMark(format)) && strictjson.IsObject(string(text))
}

// fieldsType is the type of the block before a text or a call that holds its partFields.
const fieldsType = "convo_fields"

// partFields are the fields in a block of fieldsType.
type partFields struct {
	Type      string
	ID        string // of the item in Responses
	Phase     string // of a text
	Namespace string // of a call
	Call      string // customCall, or empty for a function call

	// Of a call that code makes which the provider runs: what the provider calls the code,
	// and the ID of the call of that code.
	Caller   string
	CallerID string `json:"caller_id"`
}

// customCall is the partFields.Call of a call of a custom tool.
const customCall = "custom"

// fieldsOf returns the fields in a block, and whether it is a block of fieldsType.
func fieldsOf(o convo.Opaque) (f partFields, ok bool) {
	ok = strings.Contains(o.JSON, fieldsType) && json.Unmarshal([]byte(o.JSON), &f) == nil && f.Type == fieldsType
	return f, ok
}

// withoutFields returns the parts before a removed call, without the block that holds the
// fields of the call, and without its extra_content or signature.
func withoutFields(parts []convo.Part, call convo.ToolCall) []convo.Part {
	ofCall := func(p convo.Part) bool {
		switch p := p.(type) {
		case convo.Opaque:
			_, ok := fieldsOf(p)
			return ok
		case convo.Reasoning:
			return callExtra(p) != "" || p == convo.Reasoning{ID: call.ID, Signature: p.Signature}
		}
		return false
	}
	n := len(parts)
	for n > 0 && ofCall(parts[n-1]) {
		n--
	}
	return slices.Clip(parts[:n])
}

// customCalls returns which calls of a message came as calls of a custom tool in a
// format, by their index among the calls. It returns nil if there are none.
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

// objectIn returns the fields of a JSON object, or nil if text is not an object.
func objectIn(text string) map[string]json.RawMessage {
	if !strictjson.IsObject(text) {
		return nil
	}
	all, _ := fields("-", []byte(text))
	return all
}

func isCall(p convo.Part) bool { _, ok := p.(convo.ToolCall); return ok }

// extraField is the field of a call in which Gemini's hosts send its signature.
const extraField = "extra_content"
