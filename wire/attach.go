package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Some fields of a block have no place in the part that the block becomes. They are kept
// in an opaque part directly after it, an object that is no block of its own: the
// citations of a text, and the mark of a result that it came as an object.

// citationKeys are the fields for the citations of a text, by format.
var citationKeys = map[string]string{FormatAnthropic: "citations", FormatOpenAIResponses: "annotations", FormatConverse: "citationsContent"}

// isAttachment reports whether an opaque part holds the citations of the text before it.
func isAttachment(o convo.Opaque) bool { return attached(o) != nil }

// attached returns the list of citations in an opaque part that holds those of the text
// before it, or nil.
func attached(o convo.Opaque) json.RawMessage {
	key := citationKeys[o.Format]
	if key == "" || !strings.Contains(o.JSON, key) {
		return nil
	}
	all, err := fields("-", []byte(o.JSON))
	if err != nil || len(all) != 1 {
		return nil
	}
	list := all[key]
	if o.Format == FormatConverse {
		content, err := fields("-", list)
		if err != nil || len(content) != 1 {
			return nil
		}
		list = content["citations"]
	}
	if kindOf(list) != '[' {
		return nil
	}
	return list
}

// attachment returns the part that holds the citations of the text before it.
func attachment(format string, list json.RawMessage) convo.Opaque {
	raw := `{"` + citationKeys[format] + `":` + compact(list) + "}"
	if format == FormatConverse {
		raw = `{"citationsContent":{"citations":` + compact(list) + "}}"
	}
	return convo.Opaque{Format: format, JSON: raw}
}

// citationFields are the fields that requests have for a citation of a type, in the order
// in which they are written. All of them are required, though a title may be null. Answers
// of Anthropic have others.
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

// sentCitations returns the citations in a list as a request takes them back, or nil if
// it takes none of them, and whether it takes all. Those of places that text does not have
// are left out, since it may have been cut.
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
		if whole = whole && fits; !fits {
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

// The parts after the text of a result that came as an object, and not as a text.
var (
	geminiObject   = convo.Opaque{Format: FormatGemini, JSON: `{"response":{}}`}
	converseObject = convo.Opaque{Format: FormatConverse, JSON: `{"json":{}}`}
)

// isObject reports whether parts[i] is a text that came as an object, as mark after it
// says, and that still is one.
func isObject(parts []convo.Part, i int, mark convo.Opaque) bool {
	text, ok := parts[i].(convo.Text)
	return ok && i+1 < len(parts) && parts[i+1] == convo.Part(mark) && isObjectText(string(text))
}

func isObjectText(text string) bool {
	return kindOf(json.RawMessage(text)) == '{' && strictjson.Valid([]byte(text)) && utf8.ValidString(text)
}
