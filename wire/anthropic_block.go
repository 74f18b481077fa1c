package wire

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// thinkingFirst moves the tag that names the author of a message after the
// thinking at its beginning, since the API wants thinking first. Cache marks
// stay after the tag.
func thinkingFirst(t *message) {
	tag, ok := t.parts[0].(convo.Text)
	if !ok || !strings.HasPrefix(string(tag), `<from key="`) {
		return
	}
	var thoughts []int
	own, n := []int{0}, 1
	for ; n < len(t.parts); n++ {
		if _, mark := isMark(t.parts[n]); mark {
			own = append(own, n)
		} else if isReasoning(t.parts[n]) {
			thoughts = append(thoughts, n)
		} else {
			break
		}
	}
	if len(thoughts) == 0 {
		return
	}
	parts, places := make([]convo.Part, 0, len(t.parts)), make([]place, 0, len(t.parts))
	for _, i := range append(thoughts, own...) {
		parts, places = append(parts, t.parts[i]), append(places, t.place(i))
	}
	for ; n < len(t.parts); n++ {
		parts, places = append(parts, t.parts[n]), append(places, t.place(n))
	}
	t.parts, t.places = parts, places
}

func appendThinking(b []byte, r convo.Reasoning) []byte {
	if r.Signature == "" {
		return appendPart(b, `"redacted_thinking"`, "data", r.Encrypted)
	}
	b = appendPart(b, `"thinking"`, "thinking", r.Text)
	return append(appendStringField(b[:len(b)-1], "signature", r.Signature), '}')
}

// anthropicMedia returns media as the API takes them, and the type of their
// block. The type is empty if the API does not take them. The Data of a text
// document is its plain text.
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
	case m.Data == "" && !strings.HasPrefix(m.URL, "https://"), !text.IsBase64(m.Data):
		return m, ""
	case kind != "":
		m.MIME = mime
	}
	return m, kind
}

// appendMedia appends a block for media at a place, or a short text if the API does not
// take them.
func (w *anthropicWriter) appendMedia(b []byte, m convo.Media, place place, inside int) []byte {
	as, kind := anthropicMedia(m)
	if kind == "" {
		w.lost.tell(place, inside, lostMedia, "")
		return appendPart(b, `"text"`, "text", mediaText(m))
	}
	if mime, _, _ := strings.Cut(m.MIME, ";"); as.MIME == "text/plain" && mime != as.MIME {
		w.lost.tell(place, inside, lostType, "")
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

// opaque returns a block without its cache marks, and its type. It reports
// whether the API accepts the block in where: a message of a role, the system
// text or a "result". Losses are recorded for the place.
func (w *anthropicWriter) opaque(raw, where string, place place, inside int) (block, kind string, ok bool) {
	defer func() {
		if !ok {
			w.lost.tell(place, inside, lostBlock, "")
		}
	}()
	all, err := fields("", []byte(raw))
	if err != nil {
		return "", "", false
	}
	kind = stringOf(all["type"])
	switch kind {
	case "", "tool_use", "tool_result", "thinking", "redacted_thinking":
		return "", "", false // written from other parts
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
	if isServerBlock(kind) && (where != "assistant" || !w.pair(kind, all, place)) {
		return "", "", false
	}
	block, marks := unmarked(raw)
	w.unmarked(marks, place, inside)
	return block, kind, true
}

// unmarked records that a block at a place is sent without its cache marks.
func (w *anthropicWriter) unmarked(marks []string, place place, inside int) {
	if len(marks) > 0 {
		w.lost.tell(place, inside, lostCacheMark, "")
	}
}

// anthropicSystemMessage returns the JSON of an opaque part that is a message
// with the role system, without its cache marks, and the paths of those marks.
// It returns false for other parts.
func anthropicSystemMessage(raw string) (_ string, marks []string, ok bool) {
	all, err := fields("", []byte(raw))
	if err != nil || all["type"] != nil || stringOf(all["role"]) != "system" {
		return "", nil, false
	}
	content := all["content"]
	if kindOf(content) == '"' {
		raw, marks = unmarked(raw)
		return raw, marks, !isBlank(stringOf(content))
	}
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(content, &blocks) != nil || len(blocks) == 0 {
		return "", nil, false
	}
	for _, b := range blocks {
		switch kind := stringOf(b["type"]); kind {
		case "", "tool_use", "tool_result", "thinking", "redacted_thinking", "image":
			return "", nil, false
		case "text":
			if isBlank(stringOf(b["text"])) {
				return "", nil, false
			}
		default:
			if isServerBlock(kind) {
				return "", nil, false
			}
		}
	}
	raw, marks = unmarked(raw)
	return raw, marks, true
}

// plainSystem returns the content of a message with the role system that holds nothing but
// text and cache marks. The message was accepted by anthropicSystemMessage.
func plainSystem(data []byte) (content json.RawMessage, ok bool) {
	only := func(all map[string]json.RawMessage, names ...string) bool {
		for name := range all {
			if !slices.Contains(names, name) {
				return false
			}
		}
		return true
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil || !only(all, "role", "content") {
		return nil, false
	}
	var blocks []map[string]json.RawMessage
	if kindOf(all["content"]) == '[' && json.Unmarshal(all["content"], &blocks) != nil {
		return nil, false
	}
	for _, b := range blocks {
		if stringOf(b["type"]) != "text" || !only(b, "type", "text", "cache_control") {
			return nil, false
		}
	}
	return all["content"], true
}

// The betas that a message with the role system can need.
const (
	betaClearAt     = "mid-conversation-system-clear-at-2026-08-21"
	betaToolChanges = "mid-conversation-tool-changes-2026-07-01"
)

// systemBetas returns the betas that a message with the role system needs.
func systemBetas(raw string) (betas []string) {
	all, err := fields("-", []byte(raw))
	if err != nil {
		return nil
	}
	if !isNull(all["clear_at"]) {
		betas = append(betas, betaClearAt)
	}
	var blocks []map[string]json.RawMessage
	if json.Unmarshal(all["content"], &blocks) == nil && slices.ContainsFunc(blocks, isToolChange) {
		betas = append(betas, betaToolChanges)
	}
	return betas
}

// isToolChange reports whether a block adds or removes a tool in mid-conversation.
func isToolChange(block map[string]json.RawMessage) bool {
	kind := stringOf(block["type"])
	return kind == "tool_addition" || kind == "tool_removal"
}

// spotIn returns the offset where a cache mark can be inserted into the last block of a
// message with the role system, or 0. The message is compact and has no marks.
func spotIn(raw string) int {
	all, err := fields("-", []byte(raw))
	content := `"content":` + string(all["content"])
	i := strings.Index(raw, content)
	if err != nil || i < 0 || !strings.HasSuffix(content, `"}]`) {
		return 0
	}
	return i + len(content) - len("}]")
}

// unmarked returns a block or a message as compact JSON without its cache
// marks, and the paths of those marks.
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
