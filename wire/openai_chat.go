package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A Dialect is a provider or server that speaks the format of OpenAI's Chat
// Completions in a way of its own.
type Dialect uint8

// Dialects. StrictAlternation is for chat templates that want user and
// assistant in turns and one system message: Gemma, Llama 2, older Mistral.
const (
	OpenAI            Dialect = iota
	DeepSeek                  // reasoning_content goes back with each answer
	Mistral                   // ids of nine characters, no user after a result
	Ollama                    // the native /api/chat
	StrictAlternation         // served by llama.cpp, vLLM and others
)

// OpenAIChat is the format of OpenAI's Chat Completions, and of the many that
// speak it.
//
// Not carried: reasoning (DeepSeek and Ollama: their own), media in assistant
// messages and, as such, in results: images of results follow in a user
// message where the dialect takes them, else a short text names them; that a
// result is an error, for which "Error: " stands before its text; where the
// texts of a result part. Authors are named in the text, as the History shows
// them.
type OpenAIChat struct {
	Dialect   Dialect
	Model     string // the request goes to; own reasoning goes back only to it. Empty: to any. Decode takes it for the maker of answers
	Developer bool   // system messages have the role developer
	Audio     bool   // the model hears; for others a text names what there is to hear
}

var chatNames = &names{"", "messages"}

func (f OpenAIChat) format() string {
	switch f.Dialect {
	case DeepSeek:
		return "deepseek"
	case Mistral:
		return "mistral"
	case Ollama:
		return "ollama"
	}
	return "openai-chat"
}

// oneSystem reports whether all system text is one message.
func (f OpenAIChat) oneSystem() bool { return f.Dialect >= Mistral }

// Encode writes the request.
func (f OpenAIChat) Encode(s *convo.Snapshot) (Request, error) {
	ids := openAIChatIDs
	if f.Dialect == Mistral {
		ids = mistralIDs
	}
	thinks := f.Dialect == DeepSeek || f.Dialect == Ollama
	p, err := project(s, profile{format: f.format(), model: f.Model, ids: ids, noReasoning: !thinks, knows: hasType})
	if err != nil {
		return Request{}, err
	}
	p.turns = slices.DeleteFunc(p.turns, onlyThinks)
	if len(p.system)+len(p.turns) == 0 {
		return Request{}, ErrEmpty
	}
	r := Request{NeedsTools: p.needsTools, names: chatNames}
	r.Messages = f.appendSystem(make([]json.RawMessage, 0, len(p.turns)+1), p.system)
	for _, t := range f.turns(&p) {
		r.Messages = f.appendTurn(r.Messages, &t)
	}
	return r, nil
}

// hasType reports whether a block names its type.
func hasType(o convo.Opaque) bool {
	all, err := fields("-", []byte(o.JSON))
	return err == nil && kindOf(all["type"]) == '"' && string(all["type"]) != `""`
}

// onlyThinks reports whether an assistant turn has neither content nor calls.
func onlyThinks(t turn) bool {
	return t.role == convo.RoleAssistant && !slices.ContainsFunc(t.parts, func(p convo.Part) bool {
		_, thought := p.(convo.Reasoning)
		return !thought
	})
}

// turns are those of the projection in the order that the dialect wants.
func (f OpenAIChat) turns(p *projection) []turn {
	switch f.Dialect {
	case Mistral:
		return userLast(bridged(p.turns))
	case StrictAlternation:
		turns := userFirst(p.merged())
		return bridged(turns)
	}
	return p.turns
}

// bridgeMarker is what an assistant says between results and a user message
// where nothing was said.
const bridgeMarker = "[No answer.]"

// bridged returns the turns with an assistant turn between results and the
// user.
func bridged(turns []turn) []turn {
	var out []turn
	for i, t := range turns {
		if i > 0 && t.role == convo.RoleUser && turns[i-1].role == convo.RoleTool {
			out = append(out, turn{role: convo.RoleAssistant, parts: []convo.Part{convo.Text(bridgeMarker)}})
		}
		out = append(out, t)
	}
	return out
}

func (f OpenAIChat) appendSystem(list []json.RawMessage, parts []convo.Part) []json.RawMessage {
	role := "system"
	if f.Developer {
		role = "developer"
	}
	if f.oneSystem() && len(parts) > 1 {
		parts = []convo.Part{convo.Text(joinTexts(parts, "\n\n"))}
	}
	for _, part := range parts {
		b := appendStringField([]byte{'{'}, "role", role)
		switch part := part.(type) {
		case convo.Text:
			b = appendStringField(b, "content", string(part))
		case convo.Opaque:
			b = append(appendRawField(b, "content", "["+part.JSON), ']')
		}
		list = append(list, append(b, '}'))
	}
	return list
}

func (f OpenAIChat) appendTurn(list []json.RawMessage, t *turn) []json.RawMessage {
	switch t.role {
	case convo.RoleUser:
		b := appendStringField(begin(sizeOf(t.parts)), "role", "user")
		return append(list, append(f.appendContent(b, t.parts), '}'))
	case convo.RoleAssistant:
		return append(list, f.assistant(t))
	}
	var media []convo.Part
	for i := range t.results {
		r := &t.results[i]
		b := appendStringField(begin(sizeOf(r.Parts)), "role", "tool")
		b = appendStringField(b, "tool_call_id", r.CallID)
		if f.Dialect == Ollama {
			b = appendStringField(b, "tool_name", toolName(r.Name))
		}
		b = appendStringField(b, "content", resultText(r))
		list = append(list, append(b, '}'))
		for _, p := range r.Parts {
			if m, ok := p.(convo.Media); ok && f.showsAfter(m) {
				media = append(media, convo.Text("["+m.MIME+" of the result of "+r.Name+"]"), m)
			}
		}
	}
	if len(media) > 0 {
		b := appendStringField([]byte{'{'}, "role", "user")
		list = append(list, append(f.appendContent(b, media), '}'))
	}
	return list
}

// showsAfter reports whether media of a result follow in a user message.
func (f OpenAIChat) showsAfter(m convo.Media) bool {
	return f.Dialect == OpenAI && strings.HasPrefix(m.MIME, "image/")
}

// resultText is a result as one text.
func resultText(r *convo.ToolResult) string {
	text := joinTexts(r.Parts, "\n")
	if r.IsError {
		text = "Error: " + text
	}
	return text
}

func (f OpenAIChat) assistant(t *turn) json.RawMessage {
	b := appendStringField(begin(sizeOf(t.parts)), "role", "assistant")
	said, calls := t.said(), t.calls()
	var texts, thoughts []convo.Part
	raw := false
	for _, p := range said {
		switch p := p.(type) {
		case convo.Text, convo.Media:
			texts = append(texts, p)
		case convo.Reasoning:
			if p.Text != "" {
				thoughts = append(thoughts, convo.Text(p.Text))
			}
		case convo.Opaque:
			raw = true
		}
	}
	switch {
	case raw, f.Dialect == StrictAlternation && len(texts) > 0:
		b = append(appendField(b, "content"), '[')
		for _, p := range said {
			switch p := p.(type) {
			case convo.Text:
				b = appendPart(b, `"text"`, "text", string(p))
			case convo.Media:
				b = appendPart(b, `"text"`, "text", mediaText(p))
			case convo.Opaque:
				b = appendElement(b, p.JSON)
			}
		}
		b = append(b, ']')
	case len(texts) == 0 && len(calls) > 0 && f.Dialect != Ollama:
		b = appendRawField(b, "content", "null")
	default:
		b = appendStringField(b, "content", joinTexts(texts, "\n"))
	}
	switch f.Dialect {
	case DeepSeek: // wanted with each answer of a turn with calls, and ignored elsewhere
		b = appendStringField(b, "reasoning_content", joinTexts(thoughts, "\n"))
	case Ollama:
		if len(thoughts) > 0 {
			b = appendStringField(b, "thinking", joinTexts(thoughts, "\n"))
		}
	}
	if len(calls) > 0 {
		b = append(appendField(b, "tool_calls"), '[')
		for _, p := range calls {
			b = f.appendCall(b, p.(convo.ToolCall))
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func (f OpenAIChat) appendCall(b []byte, c convo.ToolCall) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	b = appendStringField(append(b, '{'), "id", c.ID)
	if f.Dialect != Ollama {
		b = appendStringField(b, "type", "function")
	}
	b = append(appendField(b, "function"), '{')
	b = appendStringField(b, "name", toolName(c.Name))
	if f.Dialect == Ollama {
		b = appendRawField(b, "arguments", object(c.Arguments))
	} else {
		b = appendStringField(b, "arguments", object(c.Arguments))
	}
	return append(b, "}}"...)
}

// toolName is a name as all providers take it: others refuse what a model has
// made up.
func toolName(name string) string {
	ok := name != "" && len(name) <= 64
	for i := 0; ok && i < len(name); i++ {
		ok = isNameByte(name[i])
	}
	if ok {
		return name
	}
	b := []byte(name)
	for i, c := range b {
		if !isNameByte(c) {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b[:min(len(b), 64)])
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// appendContent appends the content of a user message.
func (f OpenAIChat) appendContent(b []byte, parts []convo.Part) []byte {
	if f.Dialect == Ollama {
		return appendOllamaContent(b, parts)
	}
	texts, rich := 0, 0
	for _, p := range parts {
		if _, ok := p.(convo.Text); ok || f.Dialect == DeepSeek {
			texts++
		} else {
			rich++
		}
	}
	if rich == 0 && f.Dialect != StrictAlternation && (texts == 1 || f.Dialect != OpenAI) {
		return appendStringField(b, "content", joinTexts(parts, "\n"))
	}
	b = append(appendField(b, "content"), '[')
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendPart(b, `"text"`, "text", string(p))
		case convo.Opaque:
			b = appendElement(b, p.JSON)
		case convo.Media:
			b = f.appendMedia(b, p)
		}
	}
	return append(b, ']')
}

func appendOllamaContent(b []byte, parts []convo.Part) []byte {
	var texts []convo.Part
	var images []string
	for _, p := range parts {
		if m, ok := p.(convo.Media); ok && strings.HasPrefix(m.MIME, "image/") && m.Data != "" {
			images = append(images, m.Data)
			continue
		}
		texts = append(texts, p)
	}
	b = appendStringField(b, "content", joinTexts(texts, "\n"))
	if len(images) > 0 {
		b = append(appendField(b, "images"), '[')
		for i, data := range images {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, data)
		}
		b = append(b, ']')
	}
	return b
}

// appendPart appends {"type": kind, key: value} to an array; kind is quoted.
func appendPart(b []byte, kind, key, value string) []byte {
	b = appendElement(b, `{"type":`+kind)
	return append(appendStringField(b, key, value), '}')
}

// appendElement appends raw JSON to an array.
func appendElement(b []byte, raw string) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return append(b, raw...)
}

func (f OpenAIChat) appendMedia(b []byte, m convo.Media) []byte {
	kind, sub, _ := strings.Cut(m.MIME, "/")
	switch {
	case kind == "image" || m.MIME == "" && m.URL != "":
		b = appendElement(b, `{"type":"image_url","image_url":{`)
		return append(appendStringField(b, "url", dataURL(m)), "}}"...)
	case f.Dialect == Mistral && m.URL != "" && m.Data == "":
		return appendPart(b, `"document_url"`, "document_url", m.URL)
	case m.Data == "" || f.Dialect != OpenAI:
		return appendPart(b, `"text"`, "text", mediaText(m))
	case kind == "audio" && !f.Audio:
		return appendPart(b, `"text"`, "text", mediaText(m))
	case kind == "audio" && (sub == "wav" || sub == "mp3" || sub == "mpeg"):
		b = appendElement(b, `{"type":"input_audio","input_audio":{`)
		b = appendStringField(b, "data", m.Data)
		return append(appendStringField(b, "format", strings.Replace(sub, "mpeg", "mp3", 1)), "}}"...)
	}
	b = appendElement(b, `{"type":"file","file":{`)
	b = appendStringField(b, "filename", "file."+extension(sub))
	return append(appendStringField(b, "file_data", dataURL(m)), "}}"...)
}

// dataURL is where media are: their address, or a data URL.
func dataURL(m convo.Media) string {
	if m.Data == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Data
}

// mediaOf is the opposite of dataURL.
func mediaOf(url, mime string) convo.Media {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return convo.Media{MIME: mime, URL: url}
	}
	head, data, ok := strings.Cut(rest, ",")
	kind, isBase64 := strings.CutSuffix(head, ";base64")
	if !ok || !isBase64 || kind == "" {
		return convo.Media{MIME: mime, URL: url}
	}
	return convo.Media{MIME: kind, Data: data}
}

// extension makes the end of a file's name of a MIME subtype.
func extension(sub string) string {
	switch sub {
	case "plain", "":
		return "txt"
	case "markdown":
		return "md"
	}
	var b []byte
	for i := range len(sub) {
		if c := sub[i]; isNameByte(c) {
			b = append(b, c)
		}
	}
	return string(b)
}
