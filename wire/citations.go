package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

// isCitations reports whether an opaque part holds the citations of the text before it.
func isCitations(o convo.Opaque) bool { return citationsIn(o) != nil }

// citationsIn returns the list of citations in an opaque part, or nil if the part does not
// hold the citations of the text before it.
func citationsIn(o convo.Opaque) json.RawMessage {
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

// citationsPart returns the part that holds the citations of the text before it.
func citationsPart(format string, list json.RawMessage) convo.Opaque {
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
