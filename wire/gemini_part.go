package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

func appendGeminiCall(b []byte, c convo.ToolCall, sign string) []byte {
	b = appendElement(b, `{"functionCall":{`)
	b = appendID(b, "id", c.ID)
	b = appendStringField(b, "name", c.Name)
	b = append(appendRawField(b, "args", object(c.Arguments)), '}')
	return closeGemini(b, sign)
}

// closeGemini closes a part, after adding the signature if there is one.
func closeGemini(b []byte, sign string) []byte {
	if sign != "" {
		b = appendStringField(b, "thoughtSignature", sign)
	}
	return append(b, '}')
}

func geminiText(b []byte, text string, thought bool, sign string) []byte {
	b = appendStringField(appendElement(b, "{"), "text", text)
	if thought {
		b = appendRawField(b, "thought", "true")
	}
	return closeGemini(b, sign)
}

// part appends text, media or an opaque part, and records its losses.
func (w *geminiWriter) part(b []byte, part convo.Part, sign string, own bool, at place, inside int) []byte {
	switch part := part.(type) {
	case convo.Text:
		return geminiText(b, string(part), false, sign)
	case convo.Media:
		return w.media(b, part, sign, at, inside)
	case convo.Opaque:
		return w.opaque(b, part.JSON, own, at, inside)
	}
	return b
}

func (w *geminiWriter) media(b []byte, m convo.Media, sign string, at place, inside int) []byte {
	if m.Data == "" {
		m = mediaOf(m.URL, m.MIME)
	}
	switch {
	case m.Data != "" && (m.MIME == "" || !text.IsBase64(m.Data)):
		w.lost.tell(at, inside, lostMedia, "")
		return geminiText(b, mediaText(m), false, sign)
	case m.Data != "":
		b = appendElement(b, `{"inlineData":{`)
		b = appendStringField(b, "mimeType", m.MIME)
		b = appendStringField(b, "data", m.Data)
	default:
		b = appendElement(b, `{"fileData":{`)
		if m.MIME != "" {
			b = appendStringField(b, "mimeType", m.MIME)
		}
		b = appendStringField(b, "fileUri", m.URL)
	}
	return closeGemini(append(b, '}'), sign)
}

// opaque appends an opaque part, without its signature if another model made it. It
// leaves out parts that Gemini would refuse. It also leaves out calls and results, since
// their order could be wrong.
func (w *geminiWriter) opaque(b []byte, raw string, own bool, at place, inside int) []byte {
	signed := raw
	if !own {
		raw = withoutSignature(raw)
	}
	part, err := decodeObject([]byte(raw))
	if err != nil || !isGeminiOpaque(part) {
		w.lost.tell(at, inside, lostBlock, "")
		return b
	}
	if !own && raw != signed {
		if all, _ := decodeObject([]byte(signed)); hasSignature(all) {
			w.lost.tell(at, inside, lostSignature, "")
		}
	}
	return appendElement(b, raw)
}

// isGeminiOpaque reports whether an opaque part can be sent.
func isGeminiOpaque(part map[string]any) bool {
	for _, key := range []string{"functionCall", "functionResponse"} {
		if _, v := pick(part, key); v != nil {
			return false
		}
	}
	k := geminiChecker{checker: checker{format: FormatGemini}}
	k.part("", part, "model", &geminiParts{})
	if len(k.list) > 0 {
		return false
	}
	text, ok := part["text"].(string)
	return !ok || !isBlank(text) || hasSignature(part)
}

func hasSignature(part map[string]any) bool {
	_, v := pick(part, "thoughtSignature")
	return v != nil
}

// withoutSignature returns a part without its signature.
func withoutSignature(raw string) string {
	if !strings.Contains(raw, "ignature") && !strings.Contains(raw, `\u`) {
		return raw // contains neither spelling of the key
	}
	return editFields(raw, func(key string, value json.RawMessage) (json.RawMessage, bool) {
		return value, key != "thoughtSignature" && key != "thought_signature"
	})
}

// result appends a result to list, and the media that must follow the results
// to after.
func (w *geminiWriter) result(list, after []byte, r *result) (_, _ []byte) {
	key := "output"
	if r.IsError {
		key = "error"
	}
	list = appendElement(list, `{"functionResponse":{`)
	list = appendID(list, "id", r.CallID)
	list = appendStringField(list, "name", r.Name)
	if text, ok := geminiResponse(&r.ToolResult); ok {
		list = appendRawField(list, "response", text)
	} else {
		list = append(strictjson.Key(list, "response"), '{')
		list = append(appendStringField(list, key, r.Text()), '}')
	}
	nested := []byte{'['}
	for i, part := range r.Parts {
		switch part := part.(type) {
		case convo.Media:
			if w.nest && nestable(part.MIME) {
				nested = w.media(nested, part, "", r.at, r.inside(i))
				continue
			}
			kind := part.MIME
			if kind == "" {
				kind = "a file"
			}
			after = geminiText(after, "["+kind+" of the result of "+r.Name+"]", false, "")
			after = w.media(after, part, "", r.at, r.inside(i))
		case convo.Opaque:
			if isObjectMark(part) {
				continue
			}
			if w.nest {
				nested = w.opaque(nested, part.JSON, false, r.at, r.inside(i))
			} else {
				after = w.opaque(after, part.JSON, false, r.at, r.inside(i))
			}
		}
	}
	if len(nested) > 1 {
		list = append(append(strictjson.Key(list, "parts"), nested...), ']')
	}
	return append(list, "}}"...), after
}

// geminiResponse returns the response object of a result that came as an object and still
// is one. An empty object has no text.
func geminiResponse(r *convo.ToolResult) (string, bool) {
	found := -1
	for i, part := range r.Parts {
		if _, ok := part.(convo.Text); ok {
			if found >= 0 {
				return "", false
			}
			found = i
		}
	}
	switch {
	case found < 0:
		return "{}", !r.IsError && slices.ContainsFunc(r.Parts, isObjectMark)
	case !isObject(r.Parts, found, FormatGemini):
		return "", false
	}
	text := string(r.Parts[found].(convo.Text))
	all, err := fields("-", []byte(text))
	return compact(json.RawMessage(text)), err == nil && (!r.IsError || !isNull(all["error"]))
}

// nestable reports whether a result can hold media of a MIME type.
func nestable(mime string) bool {
	return strings.HasPrefix(mime, "image/") || mime == "application/pdf" || mime == "text/plain"
}
