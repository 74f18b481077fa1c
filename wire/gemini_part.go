package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

func appendGeminiCall(b []byte, c convo.ToolCall, sign string) []byte {
	b = appendElement(b, `{"functionCall":{`)
	b = appendStringField(b, "id", c.ID)
	b = appendStringField(b, "name", geminiName(c.Name))
	arguments := object(c.Arguments)
	if kindOf(json.RawMessage(arguments)) != '{' || !json.Valid([]byte(arguments)) {
		arguments = string(append(appendString([]byte(`{"arguments":`), arguments), '}'))
	}
	return closeGemini(append(appendRawField(b, "args", arguments), '}'), sign)
}

// closeGemini ends a part.
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

// appendGeminiPart appends text, media or an opaque part.
func appendGeminiPart(b []byte, part convo.Part, sign string, own bool) []byte {
	switch part := part.(type) {
	case convo.Text:
		return geminiText(b, string(part), false, sign)
	case convo.Media:
		return appendGeminiMedia(b, part, sign)
	case convo.Opaque:
		return appendGeminiOpaque(b, part.JSON, own)
	}
	return b
}

func appendGeminiMedia(b []byte, m convo.Media, sign string) []byte {
	if m.Data == "" {
		m = mediaOf(m.URL, m.MIME)
	}
	switch {
	case m.Data != "" && (m.MIME == "" || !isBase64(m.Data)):
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

// appendGeminiOpaque appends a part as it came, without its signature if
// another model made it. What Gemini would refuse is left out, and so are calls
// and results, which have to be in order.
func appendGeminiOpaque(b []byte, raw string, own bool) []byte {
	if !own {
		raw = withoutSignature(raw)
	}
	part, err := geminiValue([]byte(raw))
	if err != nil {
		return b
	}
	for _, key := range []string{"functionCall", "functionResponse"} {
		if _, v := pick(part, key); v != nil {
			return b
		}
	}
	k := geminiChecker{checker: new(checker)}
	if k.part("", part, "model", &geminiParts{}); len(k.list) > 0 {
		return b
	}
	if text, ok := part["text"].(string); ok && isBlank(text) && !hasSignature(part) {
		return b
	}
	return appendElement(b, raw)
}

func hasSignature(part map[string]any) bool {
	_, v := pick(part, "thoughtSignature")
	return v != nil
}

// withoutSignature returns a JSON object without the field. The others keep
// their bytes and order.
func withoutSignature(raw string) string {
	if !strings.Contains(raw, "ignature") {
		return raw
	}
	d := json.NewDecoder(strings.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return raw
	}
	out := []byte{'{'}
	for d.More() {
		key, err := d.Token()
		var v json.RawMessage
		name, ok := key.(string)
		if err != nil || !ok || d.Decode(&v) != nil {
			return raw
		}
		if name == "thoughtSignature" || name == "thought_signature" {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, name), ':'), bytes.TrimSpace(v)...)
	}
	return string(append(out, '}'))
}

// result appends a result to a list, and what of it stands after the results
// to another.
func (w *geminiWriter) result(list, after []byte, r *convo.ToolResult) (_, _ []byte) {
	key := "output"
	if r.IsError {
		key = "error"
	}
	list = appendElement(list, `{"functionResponse":{`)
	list = appendStringField(list, "id", r.CallID)
	list = appendStringField(list, "name", geminiName(r.Name))
	list = append(appendField(list, "response"), '{')
	list = append(appendStringField(list, key, r.Text()), '}')
	nested := []byte{'['}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case convo.Media:
			if w.nest && nestable(part.MIME) {
				nested = appendGeminiMedia(nested, part, "")
				continue
			}
			kind := part.MIME
			if kind == "" {
				kind = "a file"
			}
			after = geminiText(after, "["+kind+" of the result of "+r.Name+"]", false, "")
			after = appendGeminiMedia(after, part, "")
		case convo.Opaque:
			if w.nest {
				nested = appendGeminiOpaque(nested, part.JSON, false)
			} else {
				after = appendGeminiOpaque(after, part.JSON, false)
			}
		}
	}
	if len(nested) > 1 {
		list = append(append(appendField(list, "parts"), nested...), ']')
	}
	return append(list, "}}"...), after
}

// nestable reports whether a result may hold media of a type.
func nestable(mime string) bool {
	return strings.HasPrefix(mime, "image/") || mime == "application/pdf" || mime == "text/plain"
}

// geminiName is a name as Gemini takes it for a tool.
func geminiName(name string) string {
	ok := name != "" && len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		ok = isNameByte(name[i]) || name[i] == '.' || name[i] == ':'
	}
	if !ok {
		name = toolName(name)
	}
	if c := name[0]; c == '-' || c == '.' || c == ':' || '0' <= c && c <= '9' {
		name = "_" + name
	}
	return name[:min(len(name), 64)]
}
