package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Some fields of a block do not fit into the part that the block becomes. They are kept
// in an opaque part next to it, a JSON object that is not a block. It precedes the part if
// a stream sends the fields before the content, such as the ID of an item in Responses.
// Otherwise it follows the part, like the citations of a text.

// isAttachment reports whether an opaque part holds the citations of the text before it.
func isAttachment(o convo.Opaque) bool { return attached(o) != nil }

// attached returns the list of citations in an opaque part, or nil if the part does not
// hold the citations of the text before it.
func attached(o convo.Opaque) json.RawMessage {
	keys := formatRules[o.Format].citations
	if len(keys) == 0 || !strings.Contains(o.JSON, keys[0]) {
		return nil
	}
	list := json.RawMessage(o.JSON)
	for _, key := range keys {
		all, err := fields("-", list)
		if err != nil || len(all) != 1 {
			return nil
		}
		list = all[key]
	}
	if kindOf(list) != '[' {
		return nil
	}
	return list
}

// attachment returns the part that holds the citations of the text before it.
func attachment(format string, list json.RawMessage) convo.Opaque {
	raw := compact(list)
	for _, key := range slices.Backward(formatRules[format].citations) {
		raw = `{"` + key + `":` + raw + "}"
	}
	return convo.Opaque{Format: format, JSON: raw}
}

// citationFields are the fields that requests have for each type of citation, in the order
// in which they are written. All of them are required, but a title may be null. Answers
// of Anthropic have more fields.
var citationFields = map[string][]string{
	// Anthropic: TextCitationParam
	"char_location":              {"cited_text", "document_index", "document_title", "start_char_index", "end_char_index"},
	"page_location":              {"cited_text", "document_index", "document_title", "start_page_number", "end_page_number"},
	"content_block_location":     {"cited_text", "document_index", "document_title", "start_block_index", "end_block_index"},
	"web_search_result_location": {"cited_text", "encrypted_index", "title", "url"},
	"search_result_location":     {"cited_text", "search_result_index", "source", "start_block_index", "end_block_index", "title"},

	// OpenAI: the annotations of an output_text
	"url_citation":            {"start_index", "end_index", "url", "title"},
	"file_citation":           {"file_id", "filename", "index"},
	"container_file_citation": {"container_id", "file_id", "filename", "start_index", "end_index"},
	"file_path":               {"file_id", "index"},
}

// sentCitations returns the citations in a list in the form of a request, or nil if a
// request takes none of them. It also reports whether a request takes all of them.
// Citations of places outside text are left out, since text may have been cut.
func sentCitations(list json.RawMessage, text string) (sent json.RawMessage, whole bool) {
	var citations []json.RawMessage
	if json.Unmarshal(list, &citations) != nil {
		return nil, false
	}
	whole = true
	length := utf8.RuneCountInString(text)
	b := []byte{'['}
	for _, raw := range citations {
		all, err := fields("-", raw)
		if err != nil {
			whole = false
			continue
		}
		kind := stringOf(all["type"])
		keys := citationFields[kind]
		fits := keys != nil
		for _, key := range keys {
			v, ok := all[key]
			fits = fits && ok && (!isNull(v) || strings.HasSuffix(key, "title"))
		}
		for _, key := range []string{"start_index", "end_index"} {
			if slices.Contains(keys, key) && fits {
				var n int
				fits = json.Unmarshal(all[key], &n) == nil && 0 <= n && n <= length
			}
		}
		whole = whole && fits
		if !fits {
			continue
		}
		b = appendStringField(appendElement(b, "{"), "type", kind)
		for _, key := range keys {
			b = appendRawField(b, key, strings.ToValidUTF8(compact(all[key]), "\uFFFD"))
		}
		b = append(b, '}')
	}
	if len(b) == 1 {
		return nil, whole
	}
	return append(b, ']'), whole
}

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
	return ok && i+1 < len(parts) && parts[i+1] == convo.Part(objectMark(format)) && isObjectText(string(text))
}

func isObjectText(text string) bool {
	return kindOf(json.RawMessage(text)) == '{' && strictjson.Valid([]byte(text)) && utf8.ValidString(text)
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
	if kindOf(json.RawMessage(text)) != '{' || !utf8.ValidString(text) || !strictjson.Valid([]byte(text)) {
		return nil
	}
	all, _ := fields("-", []byte(text))
	return all
}

func isCall(p convo.Part) bool { _, ok := p.(convo.ToolCall); return ok }

// extraField is the field of a call in which Gemini's hosts send its signature.
const extraField = "extra_content"
