package wire

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

// thinkingFirst puts the tag that names the author of a message behind the
// thinking that it begins with.
func thinkingFirst(parts []convo.Part) []convo.Part {
	tag, ok := parts[0].(convo.Text)
	if !ok || !strings.HasPrefix(string(tag), `<from key="`) {
		return parts
	}
	n := 1
	for n < len(parts) {
		if _, ok := parts[n].(convo.Reasoning); !ok {
			break
		}
		n++
	}
	return slices.Concat(parts[1:n], parts[:1], parts[n:])
}

func appendThinking(b []byte, r convo.Reasoning) []byte {
	if r.Signature == "" {
		return appendPart(b, `"redacted_thinking"`, "data", r.Encrypted)
	}
	b = appendPart(b, `"thinking"`, "thinking", r.Text)
	return append(appendStringField(b[:len(b)-1], "signature", r.Signature), '}')
}

// anthropicMedia returns media as the API takes them, and the type of their
// block; that is empty where the API takes no such media. A document of type
// text/plain has its text as data.
func anthropicMedia(m convo.Media) (convo.Media, string) {
	if m.Data == "" {
		m = mediaOf(m.URL, m.MIME)
	}
	mime, _, _ := strings.Cut(m.MIME, ";")
	kind := ""
	switch {
	case mime == "image/jpg":
		mime, kind = "image/jpeg", "image"
	case isAnthropicImage(mime), mime == "" && m.Data == "":
		kind = "image"
	case mime == "application/pdf":
		kind = "document"
	case strings.HasPrefix(mime, "text/") && m.Data != "":
		text, err := base64.StdEncoding.DecodeString(m.Data)
		if err == nil && utf8.Valid(text) && !isBlank(string(text)) {
			return convo.Media{MIME: "text/plain", Data: string(text)}, "document"
		}
	}
	switch {
	case m.Data == "" && !strings.HasPrefix(m.URL, "https://"), !isBase64(m.Data):
		return m, ""
	case kind != "":
		m.MIME = mime
	}
	return m, kind
}

// appendAnthropicMedia appends the block of media, or a text that names them.
func appendAnthropicMedia(b []byte, m convo.Media) []byte {
	as, kind := anthropicMedia(m)
	if kind == "" {
		return appendPart(b, `"text"`, "text", mediaText(m))
	}
	source := "base64"
	switch {
	case as.Data == "":
		source = "url"
	case as.MIME == "text/plain":
		source = "text"
	}
	b = appendElement(b, `{"type":"`+kind+`","source":{"type":"`+source+`"`)
	if as.Data == "" {
		b = appendStringField(b, "url", as.URL)
	} else {
		b = appendStringField(appendStringField(b, "media_type", as.MIME), "data", as.Data)
	}
	return append(b, "}}"...)
}

func isAnthropicImage(mime string) bool {
	return mime == "image/jpeg" || mime == "image/png" || mime == "image/gif" || mime == "image/webp"
}

// anthropicToolName keeps names that this API takes and others do not.
func anthropicToolName(name string) string {
	if len(name) <= 128 && anthropicIDs.valid(name) {
		return name
	}
	return toolName(name)
}

// anthropicInput returns the arguments of a call as the JSON object that they
// are, in a History.
func anthropicInput(arguments string) string {
	text := object(arguments)
	if kindOf(json.RawMessage(text)) == '{' && json.Valid([]byte(text)) {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return string(append(appendString([]byte(`{"arguments":`), text), '}'))
}

// opaque returns a block without its cache marks, and its type. It is not ok
// where the API would not take it: in such a place, or at all.
func (w *anthropicWriter) opaque(raw, where string) (block, kind string, ok bool) {
	all, err := fields("", []byte(raw))
	if err != nil {
		return "", "", false
	}
	kind = stringOf(all["type"])
	switch kind {
	case "", "tool_use", "tool_result", "thinking", "redacted_thinking":
		return "", "", false // they have parts of their own
	case "text":
		text := stringOf(all["text"])
		if isBlank(text) || where == "assistant" && text != strings.TrimRightFunc(text, unicode.IsSpace) {
			return "", "", false
		}
	case "image":
		source, err := fields("", all["source"])
		if err == nil && stringOf(source["type"]) == "base64" && !isAnthropicImage(stringOf(source["media_type"])) {
			return "", "", false
		}
	}
	if where == "assistant" {
		if strings.HasSuffix(kind, "_tool_result") && !w.served[stringOf(all["tool_use_id"])] {
			return "", "", false
		}
		if strings.HasSuffix(kind, "tool_use") {
			w.served[stringOf(all["id"])] = true
		}
	}
	block, _ = unmarked(raw)
	return block, kind, true
}

// isServerBlock reports whether a block of this type, at the end, is of a turn
// that the provider has paused and goes on with.
func isServerBlock(kind string) bool {
	return strings.HasSuffix(kind, "_tool_use") || strings.HasSuffix(kind, "_tool_result")
}

// anthropicSystemMessage returns the JSON of an opaque part that is a system
// message of its own.
func anthropicSystemMessage(raw string) (string, bool) {
	all, err := fields("", []byte(raw))
	if err != nil || all["type"] != nil || stringOf(all["role"]) != "system" {
		return "", false
	}
	content := all["content"]
	if kindOf(content) == '"' {
		raw, _ = unmarked(raw)
		return raw, !isBlank(stringOf(content))
	}
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 {
		return "", false
	}
	for _, b := range blocks {
		switch kind := stringOf(b["type"]); kind {
		case "", "tool_use", "tool_result", "thinking", "redacted_thinking", "image":
			return "", false
		case "text":
			if isBlank(stringOf(b["text"])) {
				return "", false
			}
		}
	}
	raw, _ = unmarked(raw)
	return raw, true
}

// stringOf reads a JSON string; anything else is empty.
func stringOf(raw json.RawMessage) string {
	var s string
	if kindOf(raw) == '"' {
		_ = json.Unmarshal(raw, &s)
	}
	return s
}

// unmarked returns a block, or a message, as compact JSON without its cache
// marks, and where they stood.
func unmarked(raw string) (string, []string) {
	raw = strings.ToValidUTF8(compact(json.RawMessage(raw)), "\uFFFD")
	var lost []string
	if !strings.Contains(raw, "cache_control") && !strings.Contains(raw, `\u`) {
		return raw, nil
	}
	const key = "cache_control"
	without := func(raw, path string) string {
		return editFields(raw, func(k string, v json.RawMessage) (json.RawMessage, bool) {
			if k == key && !isNull(v) {
				lost = append(lost, at(path, key))
			}
			return v, k != key
		})
	}
	raw = editFields(without(raw, ""), func(k string, v json.RawMessage) (json.RawMessage, bool) {
		var list []json.RawMessage
		if k != "content" || json.Unmarshal(v, &list) != nil || list == nil {
			return v, true
		}
		b := []byte{'['}
		for i, e := range list {
			b = appendElement(b, without(string(e), atIndex("content", i)))
		}
		return append(b, ']'), true
	})
	return raw, lost
}

// editFields returns a JSON object with its fields as edit returns them, in
// their order. What is no object stays as it is.
func editFields(raw string, edit func(string, json.RawMessage) (json.RawMessage, bool)) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return raw
	}
	b := []byte{'{'}
	for dec.More() {
		token, err := dec.Token()
		key, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return raw
		}
		if value, ok = edit(key, value); ok {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(append(appendString(b, key), ':'), value...)
		}
	}
	return string(append(b, '}'))
}
