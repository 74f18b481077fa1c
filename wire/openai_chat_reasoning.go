package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// The hosts of Chat Completions send reasoning in several places. A [convo.Reasoning]
// also records the place, so that it is sent back as it was received:
//
//   - For a text in a field of the message, ID is the name of the field.
//   - For an entry of reasoning_details, Text is the text or the summary, Encrypted the
//     data and ID the id. Signature is a JSON object with all other fields.
//   - For the extra_content of the message, ID is "extra_content", and Signature the
//     content.
//   - The extra_content of a call is directly before the call, and before the block with
//     the call's other fields. Only Signature is set, to {"extra_content": ...}.
//   - For a thinking part in the content of Mistral, Text is the text. Signature is a
//     JSON object with the other fields if there are any besides the type.
//
// DeepSeek and Ollama have one field each, whose text has no ID.

const detailsField = "reasoning_details"

// reasoningFields are the fields in which hosts send reasoning as one text.
var reasoningFields = []string{"reasoning_content", "reasoning", "thinking"}

// oneField reports whether the dialect has one field for reasoning and no other place.
func (f OpenAIChat) oneField() bool { return f.Dialect == DeepSeek || f.Dialect == Ollama }

// toHost reports whether fields that OpenAI refuses can be sent.
func (f OpenAIChat) toHost() bool { return !f.oneField() && (f.Host != "" || f.Model != "") }

// origin returns the Origin.Format of answers.
func (f OpenAIChat) origin() string {
	if f.Host == "" {
		return f.format()
	}
	return f.format() + "@" + f.Host
}

// decodeReasoning reads the reasoning of an answer, and returns the fields of the
// message in which it may be.
func (f OpenAIChat) decodeReasoning(d *decoder, path string, all map[string]json.RawMessage, m *convo.Message) ([]string, error) {
	var text *convo.Reasoning
	for _, key := range reasoningFields {
		raw := all[key]
		switch {
		case isNull(raw) || string(raw) == `""`:
		case kindOf(raw) != '"' || text != nil && text.Text != stringOf(raw):
			d.lose(at(path, key), "reasoning that is not one string, or a second one")
		case text == nil:
			text = &convo.Reasoning{ID: key}
			if err := read(at(path, key), "a string", raw, &text.Text); err != nil {
				return nil, err
			}
		}
	}
	if f.oneField() {
		if text != nil {
			m.Parts = append(m.Parts, convo.Reasoning{Text: text.Text})
		}
		return reasoningFields, nil
	}
	details, err := d.details(at(path, detailsField), all[detailsField])
	if err != nil {
		return nil, err
	}
	if text != nil && !tellsSame(details, text.Text) {
		m.Parts = append(m.Parts, *text)
	}
	m.Parts = append(m.Parts, details...)
	if extra := d.extra(path, all); extra != "" {
		m.Parts = append(m.Parts, convo.Reasoning{ID: extraField, Signature: extra})
	}
	return append(slices.Clip(reasoningFields), detailsField, extraField), nil
}

// details reads the entries of reasoning_details.
func (d *decoder) details(path string, data json.RawMessage) (parts []convo.Part, err error) {
	if !isNull(data) && kindOf(data) != '[' {
		d.lose(path, lostField)
		return nil, nil
	}
	if isNull(data) {
		return nil, nil
	}
	err = elements(path, "an array of objects", data, func(path string, raw json.RawMessage) error {
		if kindOf(raw) != '{' {
			d.lose(path, lostField)
			return nil
		}
		all, err := fields(path, raw)
		if err != nil {
			return err
		}
		var r convo.Reasoning
		for _, field := range []struct {
			key string
			to  *string
		}{{detailText(all), &r.Text}, {"data", &r.Encrypted}, {"id", &r.ID}} {
			if text := stringOf(all[field.key]); text != "" && text != extraField {
				*field.to = text
				delete(all, field.key)
			}
		}
		r.Signature = compact(appendObject(nil, all))
		parts = append(parts, r)
		return nil
	})
	return parts, err
}

// detailText returns the name of the field with the text of an entry.
func detailText(all map[string]json.RawMessage) string {
	if stringOf(all["type"]) == "reasoning.summary" {
		return "summary"
	}
	return "text"
}

// tellsSame reports whether reasoning has the same text as text, apart from white space.
func tellsSame(parts []convo.Part, text string) bool {
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.(convo.Reasoning).Text)
	}
	squeeze := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, s)
	}
	return squeeze(all.String()) == squeeze(text)
}

// extra returns the extra_content of a message or of a call. The path is that of the
// message or call.
func (d *decoder) extra(path string, all map[string]json.RawMessage) string {
	raw := all[extraField]
	if isNull(raw) {
		return ""
	}
	if kindOf(raw) != '{' {
		d.lose(at(path, extraField), lostField)
		return ""
	}
	return compact(raw)
}

// signedCall returns the extra_content of a call as a part before it.
func signedCall(extra string) convo.Reasoning {
	return convo.Reasoning{Signature: `{"` + extraField + `":` + extra + `}`}
}

// thinkingIn reads a thinking part of Mistral. It returns false if the part holds
// anything but texts.
func thinkingIn(all map[string]json.RawMessage) (r convo.Reasoning, ok bool) {
	switch raw := all["thinking"]; kindOf(raw) {
	case '"':
		r.Text = stringOf(raw)
	case '[':
		var list []map[string]json.RawMessage
		if read("-", "texts", raw, &list) != nil {
			return r, false
		}
		for _, p := range list {
			if len(p) != 2 || stringOf(p["type"]) != "text" || kindOf(p["text"]) != '"' {
				return r, false
			}
			r.Text += stringOf(p["text"])
		}
	default:
		return r, false
	}
	delete(all, "thinking")
	if len(all) > 1 {
		r.Signature = compact(appendObject(nil, all))
	}
	return r, true
}

// thinkingPart returns reasoning as a thinking part of Mistral, or "" if it was not
// received as such a part.
func thinkingPart(r convo.Reasoning) string {
	all := map[string]json.RawMessage{}
	if r.Signature != "" {
		all = objectIn(r.Signature)
		if stringOf(all["type"]) != "thinking" {
			return ""
		}
	} else if r.Text == "" {
		return ""
	}
	if r.ID != "" || r.Encrypted != "" {
		return ""
	}
	list := []byte{'['}
	if r.Text != "" {
		list = appendPart(list, `"text"`, "text", r.Text)
	}
	all["type"], all["thinking"] = json.RawMessage(`"thinking"`), append(list, ']')
	return string(appendObject(nil, all))
}

// hostReasoning is the reasoning of a message in the fields of the message.
type hostReasoning struct {
	texts   map[string][]convo.Part // by the names of the fields
	details []byte                  // an array that is not closed; nil: none
	extra   string
}

// add adds reasoning, and returns as much of it as is sent. Reasoning that was not
// received in a field is left out.
func (h *hostReasoning) add(r convo.Reasoning) (sent convo.Reasoning) {
	switch {
	case r.Signature == "":
		if r.Text != "" && slices.Contains(reasoningFields, r.ID) {
			if h.texts == nil {
				h.texts = map[string][]convo.Part{}
			}
			h.texts[r.ID] = append(h.texts[r.ID], convo.Text(r.Text))
			sent = convo.Reasoning{ID: r.ID, Text: r.Text}
		}
	case r.ID == extraField:
		if objectIn(r.Signature) != nil {
			h.extra = r.Signature
			sent = convo.Reasoning{ID: r.ID, Signature: r.Signature}
		}
	default:
		all := objectIn(r.Signature)
		if all == nil {
			return sent
		}
		for _, field := range []struct{ key, value string }{{detailText(all), r.Text}, {"data", r.Encrypted}, {"id", r.ID}} {
			if field.value != "" {
				all[field.key] = strictjson.AppendString(nil, field.value)
			}
		}
		if h.details == nil {
			h.details = []byte{'['}
		} else {
			h.details = append(h.details, ',')
		}
		h.details = appendObject(h.details, all)
		sent = r
	}
	return sent
}

// appendTo appends the fields to a message.
func (h *hostReasoning) appendTo(b []byte) []byte {
	for _, key := range reasoningFields {
		if text := joinTexts(h.texts[key], "\n"); text != "" {
			b = appendStringField(b, key, text)
		}
	}
	if h.details != nil {
		b = append(append(strictjson.Key(b, detailsField), h.details...), ']')
	}
	if h.extra != "" {
		b = appendRawField(b, extraField, h.extra)
	}
	return b
}

// callExtras returns the extra_content of each call of a message, or "" for a call
// without any, and the places of the reasoning that holds them.
func callExtras(t *message) (extras []string, signed []place) {
	if !t.thinks {
		return nil, nil
	}
	extra, at := "", nowhere
	for i, p := range t.all {
		switch p := p.(type) {
		case convo.ToolCall:
			extras = append(extras, extra)
			if extra != "" {
				signed = append(signed, at)
			}
			extra = ""
		case convo.Reasoning:
			extra, at = callExtra(p), t.placeOfAll(i)
		case convo.Opaque: // the fields of the call
			if _, ok := fieldsOf(p); !ok {
				extra = ""
			}
		default:
			extra = ""
		}
	}
	return extras, signed
}
