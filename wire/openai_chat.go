package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A Dialect is a variant of OpenAI's Chat Completions.
type Dialect uint8

const (
	// OpenAI is the format as OpenAI defines it.
	OpenAI Dialect = iota

	// DeepSeek needs the reasoning of turns with tool calls back in reasoning_content.
	DeepSeek

	// Mistral needs tool call ids of nine letters and digits, a user message first, an
	// assistant message between a result and a user message, and no content field in a
	// message of only calls. Its reasoning is a part of the content.
	Mistral

	// Ollama is the format of Ollama's own /api/chat. Calls whose ID was made by convo
	// are sent without one, as they were received.
	Ollama

	// StrictAlternation is for chat templates that need alternating user and assistant
	// messages, apart from calls and their results, and one system message. These are the
	// templates of older Mistral models, of Devstral and Ministral in llama.cpp or vLLM,
	// and vLLM's for Gemma 3 with tools. Calls have ids of nine letters and digits, as
	// some of these templates need.
	StrictAlternation

	// Gemma is StrictAlternation for chat templates that have only user and assistant
	// messages: those of Gemma 1 to 3 and Llama 2, and Mistral's first. The system text
	// is sent before the first text of the first user message, followed by an empty line,
	// as Google recommends. A call is sent as text of the assistant,
	// {"tool_call":{"name":...,"arguments":{...}}}, and a result as text of the user,
	// {"tool_response":{"name":...,"content":"..."}}, in the order of the calls. Decode
	// reads all of this as plain text. Request.NeedsTools is never set. The templates of
	// Llama 3 support tools, but refuse two calls in one message; use Gemma with them for
	// conversations in which another model made parallel calls.
	//
	// Because calls and results are sent as text, a user who types such a text sends the
	// same bytes as a result.
	Gemma
)

// OpenAIChat is the format of OpenAI's Chat Completions, and of the many other providers
// and servers that have adopted it.
//
// Reasoning is sent back as it was received, but only to the host that made it, because
// OpenAI, which sends none, and strict servers refuse unknown fields. DeepSeek, Ollama
// and Mistral have their own place for reasoning. Other hosts send it in
// reasoning_content, reasoning or reasoning_details, or sign a message or a call in
// extra_content; set Host or Model to send that back. Reasoning that was received both in
// reasoning_details and as a text is sent back in reasoning_details.
//
// The format has no place for some parts of a conversation. A short text replaces media
// in assistant messages and in results; images in results are sent in a user message
// after them, if the dialect allows that. A short text also replaces media at a URL that
// does not begin with http:// or https://, unless Host is set, because some hosts read
// other URLs, such as gs://. An error result begins with "Error: ". The texts of one
// result are joined. The author of a message is named in its text, as the History shows
// it, or in a field if Names is set. Decode reads the field name of user and assistant
// messages as their author; the name of a system message is lost.
//
// The Arguments of a call of a custom tool are its input, which is any text. An Opaque
// block of the type "convo_fields" before the call marks it. The dialect OpenAI sends a
// call of a custom tool; the others send a function call, with the input inside an
// object.
type OpenAIChat struct {
	Dialect Dialect // what the server takes; zero: OpenAI

	// Host names the server, such as "openrouter", if its answers and requests differ
	// from those of the maker of the dialect. It is part of the Origin of answers, whose
	// Format is then "openai-chat@openrouter", so reasoning is sent back only to the host
	// that sent it. Opaque parts are sent to any host of the dialect.
	Host string

	// Model is the model of the request. Reasoning is sent back only to the model that
	// made it. If Model is empty, reasoning of any model is sent. Decode records Model as
	// the maker of answers.
	Model string

	// Reasoning selects which of its own reasoning a host gets back. The default is all
	// of it, except that DeepSeek gets the reasoning of turns with tool calls
	// (ReplayTools), which it needs; it ignores the rest. If neither Host nor Model is
	// set, the dialects OpenAI, StrictAlternation and Gemma send no reasoning.
	Reasoning convo.Replay

	// SplitCalls is for chat templates that refuse an assistant message with both content
	// and calls, as those of older Mistral models do (v2, v3). The content before the
	// calls is then sent as its own message, followed by a short user message, because
	// such templates join or refuse two assistant messages in a row.
	SplitCalls bool

	SystemSummary bool // send the summary as the last system message; see the package documentation
	Developer     bool // send system messages with the role developer
	StrictTools   bool // Tools asks for arguments that follow the schema exactly
	Audio         bool // the model takes audio; otherwise a short text replaces it

	// With Names, the dialect OpenAI names authors of user and assistant messages in the
	// field name, if it takes the name: 1 to 64 characters without spaces, control
	// characters and < > | \ /. Other authors are named in a tag. Without Names all are,
	// because not every host takes the field, and not every model sees it.
	Names bool
}

var chatNames = &names{"tools", "", "messages"}

func (f OpenAIChat) format() string {
	switch f.Dialect {
	case DeepSeek:
		return FormatDeepSeek
	case Mistral:
		return FormatMistral
	case Ollama:
		return FormatOllama
	}
	return FormatOpenAIChat
}

// strict reports whether the dialect needs alternating roles.
func (f OpenAIChat) strict() bool { return f.Dialect == StrictAlternation || f.Dialect == Gemma }

// ordered reports whether the dialect needs a user message first, and an assistant
// message between a result and a user message.
func (f OpenAIChat) ordered() bool { return f.Dialect == Mistral || f.strict() }

// noContent reports whether a message of only calls has no content field. OpenAI and
// DeepSeek take null there, and Ollama an empty text.
func (f OpenAIChat) noContent() bool { return f.SplitCalls || f.ordered() }

// oneSystem reports whether the dialect needs all system text in one message.
func (f OpenAIChat) oneSystem() bool { return f.Dialect >= Mistral }

// systemRole returns the role of system messages.
func (f OpenAIChat) systemRole() string {
	if f.Developer {
		return "developer"
	}
	return "system"
}

// replay returns which reasoning is sent back.
func (f OpenAIChat) replay() convo.Replay {
	switch {
	case !f.oneField() && !f.toHost() && f.Dialect != Mistral: // the format has no place for it
		return convo.ReplayNone
	case f.Reasoning != convo.ReplayDefault:
		return f.Reasoning
	case f.Dialect == DeepSeek:
		return convo.ReplayTools
	}
	return convo.ReplayAll
}

// Encode returns the request for a snapshot.
func (f OpenAIChat) Encode(s *convo.Snapshot) (Request, error) { return encode(f, s) }

func (f OpenAIChat) begin(_ *tally, lost *losses) (profile, writer) {
	ids := openAIChatIDs
	if f.ordered() {
		ids = mistralIDs
	}
	p := profile{format: f.format(), seals: f.seals(), from: f.origin(), named: f.named(), custom: f.Dialect == OpenAI, model: f.Model, ids: ids, accepts: openAIToolNames, names: chatNames, replay: f.replay(), systemSum: f.SystemSummary, notes: !f.oneSystem(), bare: f.Dialect == Ollama, noIDs: f.Dialect == Gemma, knows: f.takes}
	return p, &chatWriter{OpenAIChat: f, lost: lost}
}

// named returns a function that reports whether an author is named in a field, or nil if
// none are.
func (f OpenAIChat) named() func(convo.Role, string) bool {
	if !f.Names || f.Dialect != OpenAI {
		return nil
	}
	return func(role convo.Role, author string) bool {
		return (role == convo.RoleUser || role == convo.RoleAssistant) && isChatName(author) && utf8.ValidString(author) &&
			!strings.ContainsFunc(author, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	}
}

// takes reports whether the content of a message of a role may hold a block. A refusal
// without a text is left out. The content of Ollama has no parts.
func (f OpenAIChat) takes(o convo.Opaque, role convo.Role) bool {
	part, err := decodeObject([]byte(o.JSON))
	if err != nil || part["type"] == fieldsType || part["type"] == "refusal" && str(part["refusal"]) == "" || f.Dialect == Ollama {
		return false
	}
	k := chatChecker{checker: checker{format: FormatOpenAIChat}, f: f}
	k.part("", 0, part, string(role))
	return len(k.list) == 0
}

// onlyThinks reports whether an assistant message holds only reasoning.
func onlyThinks(t *message) bool {
	return t.role == convo.RoleAssistant && !slices.ContainsFunc(t.parts, func(p convo.Part) bool { return !isReasoning(p) })
}

// A chatWriter writes messages of the projection in the order that the dialect needs.
type chatWriter struct {
	OpenAIChat
	lost  *losses
	list  []json.RawMessage
	role  convo.Role // of the last message in list; of the media of results, tool
	group []message  // for strict dialects: messages of one role, not written yet
}

func (w *chatWriter) grow(n int) { w.list = make([]json.RawMessage, 0, n) }

func (w *chatWriter) save() any { return *w }

func (w *chatWriter) restore(state any) { *w = state.(chatWriter) }

func (w *chatWriter) message(t *message) {
	if w.Dialect == Gemma {
		t = w.toolsAsText(t)
	}
	switch {
	case onlyThinks(t):
		for i, p := range t.parts {
			w.lost.reasoning(t.place(i), p.(convo.Reasoning), convo.Reasoning{})
		}
	case !w.strict():
		w.write(t)
	default:
		if len(w.group) > 0 && (w.group[0].role != t.role || t.role == convo.RoleTool) {
			w.flush()
		}
		w.group = append(w.group, *t)
	}
}

// toolsAsText returns a message with its calls or results as text.
func (w *chatWriter) toolsAsText(t *message) *message {
	out := *t
	switch t.role {
	case convo.RoleAssistant:
		said, _ := t.split()
		out.parts, out.places = said.parts, said.places
		for _, p := range t.calls() {
			c := p.(convo.ToolCall)
			b := appendStringField([]byte(`{"tool_call":{`), "name", c.Name)
			b = append(appendRawField(b, "arguments", object(c.Arguments)), "}}"...)
			out.parts, out.places = append(out.parts, convo.Text(w.lost.s.Mask(string(b)))), append(out.places, nowhere)
		}
	case convo.RoleTool:
		out = message{role: convo.RoleUser}
		for _, r := range t.results {
			var images, rest []convo.Part
			for i, p := range r.Parts {
				if m, ok := p.(convo.Media); ok && strings.HasPrefix(m.MIME, "image/") {
					images = append(images, p)
				} else {
					rest = append(rest, p)
					w.lost.unsaid(r.at, r.inside(i), p)
				}
			}
			r.Parts = rest
			b := appendStringField([]byte(`{"tool_response":{`), "name", r.Name)
			b = append(appendStringField(b, "content", resultText(&r.ToolResult)), "}}"...)
			out.parts = append(append(out.parts, convo.Text(w.lost.s.Mask(string(b)))), images...)
		}
		out.places = slices.Repeat([]place{nowhere}, len(out.parts))
	}
	return &out
}

// flush writes the group, which is not empty.
func (w *chatWriter) flush() {
	t := merged(w.group)
	w.group = nil
	w.write(&t)
}

// write writes a message, after the message that the dialect needs between it and the
// previous one. If calls need their own message, it writes two.
func (w *chatWriter) write(t *message) {
	switch {
	case !w.ordered():
	case w.role == convo.RoleNone && t.role != convo.RoleUser:
		w.put(marker(convo.RoleUser, earlierMarker))
	case w.role == convo.RoleTool && t.role == convo.RoleUser:
		w.put(marker(convo.RoleAssistant, bridgeMarker))
	}
	if w.SplitCalls && len(t.calls()) > 0 && slices.ContainsFunc(t.said(), w.isContent) {
		said, calls := t.split()
		w.put(&said)
		w.put(marker(convo.RoleUser, continueMarker))
		t = &calls
	}
	w.put(t)
}

// isContent reports whether a part of an assistant message is sent in its content.
func (f OpenAIChat) isContent(p convo.Part) bool {
	r, ok := p.(convo.Reasoning)
	return !ok || f.Dialect == Mistral && thinkingPart(r) != ""
}

// put writes a message unchanged.
func (w *chatWriter) put(t *message) {
	from := len(w.list)
	w.list, w.role = w.appendMessage(w.list, t), t.role
	for i, m := range w.list[from:] {
		w.list[from+i] = slices.Clip(m)
	}
}

func (w *chatWriter) request(p *projector, _ *convo.Snapshot, r *Request) error {
	if len(p.system)+len(w.list)+len(w.group) == 0 {
		return ErrEmpty
	}
	if len(w.group) > 0 {
		w.flush()
	}
	r.CacheTTL = lifetimeOf(w.Model)
	switch {
	case w.ordered() && w.role == convo.RoleNone:
		w.put(marker(convo.RoleUser, earlierMarker))
	case w.Dialect == Mistral && w.role == convo.RoleAssistant:
		w.put(marker(convo.RoleUser, continueMarker))
	}
	if w.Dialect == Gemma {
		r.NeedsTools = false
		r.Messages = w.withSystem(p.system)
		return nil
	}
	r.Messages = slices.Concat(r.Messages, w.list)
	return nil
}

// withSystem returns the messages with the system text in the first, which is a user
// message.
func (w *chatWriter) withSystem(parts []convo.Part) []json.RawMessage {
	list := slices.Clone(w.list)
	system := joinTexts(parts, "\n\n")
	if system == "" {
		return list
	}
	const before, text = `{"role":"user","content":[`, `{"type":"text","text":"`
	first, rest := list[0][:len(before)], list[0][len(before):]
	said := strictjson.AppendString(nil, system+"\n\n")
	said = said[1 : len(said)-1] // without the quotes
	if bytes.HasPrefix(rest, []byte(text)) {
		list[0] = slices.Concat(first, []byte(text), said, rest[len(text):])
	} else {
		list[0] = slices.Concat(first, []byte(text), said, []byte(`"},`), rest)
	}
	return list
}

// system returns the system text, in one message if the dialect needs that. For the
// dialect Gemma it returns nothing; request adds the system text to the first user
// message.
func (w *chatWriter) system(p *projection, lost *losses) (_ json.RawMessage, list []json.RawMessage) {
	role, parts := w.systemRole(), p.system
	if w.Dialect == Gemma {
		lost.unjoined(parts, p.places)
		return nil, nil
	}
	if w.oneSystem() && len(parts) > 1 {
		parts = []convo.Part{convo.Text(joinTexts(parts, "\n\n"))}
		lost.unjoined(p.system, p.places)
	}
	for i := 0; i < len(parts); i++ {
		b := appendStringField([]byte{'{'}, "role", role)
		switch part := parts[i].(type) {
		case convo.Text:
			n := 1
			if len(parts) == len(p.places) {
				n = taggedTexts(parts[i:], p.places[i:])
			}
			b = appendStringField(b, "content", joinTexts(parts[i:i+n], "\n"))
			i += n - 1
		case convo.Opaque:
			b = append(appendRawField(b, "content", "["+part.JSON), ']')
		case convo.Media:
			b = appendStringField(b, "content", mediaText(part))
			lost.tell(p.places[i], whole, lostMedia, "")
		}
		list = append(list, append(b, '}'))
	}
	return nil, list
}

// taggedTexts returns how many of the parts are the texts of one message and the tags
// around them. It returns 1 if the first part is not a tag, or if the message also holds
// other parts.
func taggedTexts(parts []convo.Part, places []place) int {
	if len(places) < 2 || places[0].part >= 0 || places[1] != (place{places[0].message, 0}) {
		return 1
	}
	for i, p := range parts {
		if places[i].message != places[0].message {
			return i
		}
		if _, ok := p.(convo.Text); !ok {
			return 1
		}
	}
	return len(parts)
}

func (w *chatWriter) appendMessage(list []json.RawMessage, t *message) []json.RawMessage {
	switch t.role {
	case convo.RoleUser:
		b := appendStringField(begin(sizeOf(t.parts)), "role", "user")
		b = appendID(b, "name", t.author)
		return append(list, append(w.appendContent(b, t.parts, t.place), '}'))
	case convo.RoleSystem:
		b := appendStringField(begin(sizeOf(t.parts)), "role", w.systemRole())
		return append(list, append(w.appendContent(b, t.parts, t.place), '}'))
	case convo.RoleAssistant:
		return append(list, w.assistant(t))
	}
	var media []convo.Part
	for i := range t.results {
		r := &t.results[i]
		b := appendStringField(begin(sizeOf(r.Parts)), "role", "tool")
		b = appendID(b, "tool_call_id", r.CallID)
		if w.Dialect == Ollama {
			b = appendStringField(b, "tool_name", r.Name)
		}
		b = appendStringField(b, "content", resultText(&r.ToolResult))
		list = append(list, append(b, '}'))
		for i, p := range r.Parts {
			switch p := p.(type) {
			case convo.Opaque:
				w.lost.tell(r.at, r.inside(i), lostBlock, "")
			case convo.Media:
				if w.showsAfter(p) {
					media = append(media, convo.Text("["+p.MIME+" of the result of "+r.Name+"]"), p)
				} else {
					w.lost.tell(r.at, r.inside(i), lostMedia, "")
				}
			}
		}
	}
	if len(media) > 0 {
		b := appendStringField([]byte{'{'}, "role", "user")
		list = append(list, append(w.appendContent(b, media, func(int) place { return nowhere }), '}'))
	}
	return list
}

// showsAfter reports whether media of a result are sent in a user message that follows.
func (f OpenAIChat) showsAfter(m convo.Media) bool {
	return f.Dialect == OpenAI && strings.HasPrefix(m.MIME, "image/")
}

func (w *chatWriter) assistant(t *message) json.RawMessage {
	b := appendStringField(begin(sizeOf(t.parts)), "role", "assistant")
	b = appendID(b, "name", t.author)
	said, calls := t.said(), t.calls()
	var texts, thoughts []convo.Part
	var host hostReasoning
	var extras []string
	var signed []place // of the reasoning that goes with the calls
	if w.toHost() {
		extras, signed = callExtras(t)
	}
	raw := false // the content is a list with parts other than texts
	for i, p := range said {
		switch p := p.(type) {
		case convo.Text, convo.Media:
			texts = append(texts, p)
			w.lost.unsaid(t.place(i), whole, p)
		case convo.Reasoning:
			sent := p
			switch {
			case w.oneField():
				sent = (convo.Reasoning{Text: p.Text})
				if p.Text != "" {
					thoughts = append(thoughts, convo.Text(p.Text))
				}
			case w.isContent(p):
				raw = true
			case w.toHost() && callExtra(p) == "":
				sent = host.add(p)
			case !slices.Contains(signed, t.place(i)):
				sent = convo.Reasoning{}
			}
			w.lost.reasoning(t.place(i), p, sent)
		case convo.Opaque:
			raw = true
		}
	}
	switch {
	case raw, w.strict() && len(texts) > 0:
		b = append(strictjson.Key(b, "content"), '[')
		for _, p := range said {
			switch p := p.(type) {
			case convo.Text, convo.Media:
				b = appendPart(b, `"text"`, "text", textOf(p))
			case convo.Opaque:
				b = appendElement(b, p.JSON)
			case convo.Reasoning:
				if w.isContent(p) {
					b = appendElement(b, thinkingPart(p))
				}
			}
		}
		b = append(b, ']')
	case len(texts) == 0 && len(calls) > 0 && w.noContent():
	case len(texts) == 0 && len(calls) > 0 && w.Dialect != Ollama:
		b = appendRawField(b, "content", "null")
	default:
		b = appendStringField(b, "content", joinTexts(texts, "\n"))
	}
	switch w.Dialect {
	case DeepSeek: // the field is required in turns with calls, and ignored elsewhere
		b = appendStringField(b, "reasoning_content", joinTexts(thoughts, "\n"))
	case Ollama:
		if len(thoughts) > 0 {
			b = appendStringField(b, "thinking", joinTexts(thoughts, "\n"))
		}
	}
	if w.toHost() {
		b = host.appendTo(b)
	}
	if len(calls) > 0 {
		b = append(strictjson.Key(b, "tool_calls"), '[')
		custom := customCalls(t.all, FormatOpenAIChat)
		for i, p := range calls {
			b = w.appendCall(b, p.(convo.ToolCall), custom[i])
			if i < len(extras) && extras[i] != "" {
				b = append(appendRawField(b[:len(b)-1], extraField, extras[i]), '}')
			}
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendCall appends a call to an array. The custom argument reports whether it is a call
// of a custom tool, which only OpenAI has.
func (f OpenAIChat) appendCall(b []byte, c convo.ToolCall, custom bool) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	b = appendID(append(b, '{'), "id", c.ID)
	if custom && f.Dialect == OpenAI {
		b = append(appendStringField(b, "type", "custom"), `,"custom":{`...)
		b = appendStringField(b, "name", c.Name)
		return append(appendStringField(b, "input", c.Arguments), "}}"...)
	}
	if f.Dialect != Ollama {
		b = appendStringField(b, "type", "function")
	}
	b = append(strictjson.Key(b, "function"), '{')
	b = appendStringField(b, "name", c.Name)
	if f.Dialect == Ollama {
		b = appendRawField(b, "arguments", object(c.Arguments))
	} else {
		b = appendStringField(b, "arguments", object(c.Arguments))
	}
	return append(b, "}}"...)
}

// appendContent appends the content field of a user message. placeOf returns the places
// of the parts.
func (w *chatWriter) appendContent(b []byte, parts []convo.Part, placeOf func(int) place) []byte {
	if w.Dialect == Ollama {
		return w.appendOllamaContent(b, parts, placeOf)
	}
	texts, rich := 0, 0
	for _, p := range parts {
		if _, ok := p.(convo.Text); ok || w.Dialect == DeepSeek {
			texts++
		} else {
			rich++
		}
	}
	if rich == 0 && !w.strict() && (texts == 1 || w.Dialect != OpenAI) {
		for i, p := range parts {
			w.lost.unsaid(placeOf(i), whole, p)
		}
		return appendStringField(b, "content", joinTexts(parts, "\n"))
	}
	b = append(strictjson.Key(b, "content"), '[')
	for i, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendPart(b, `"text"`, "text", string(p))
		case convo.Opaque:
			b = appendElement(b, p.JSON)
		case convo.Media:
			var ok bool
			if b, ok = w.appendMedia(b, p); !ok {
				w.lost.tell(placeOf(i), whole, lostMedia, "")
			}
		}
	}
	return append(b, ']')
}

func (w *chatWriter) appendOllamaContent(b []byte, parts []convo.Part, placeOf func(int) place) []byte {
	var texts []convo.Part
	var images []string
	for i, p := range parts {
		if m, ok := p.(convo.Media); ok && strings.HasPrefix(m.MIME, "image/") && m.Data != "" {
			images = append(images, m.Data)
			continue
		}
		w.lost.unsaid(placeOf(i), whole, p)
		texts = append(texts, p)
	}
	b = appendStringField(b, "content", joinTexts(texts, "\n"))
	if len(images) > 0 {
		b = append(strictjson.Key(b, "images"), '[')
		for i, data := range images {
			if i > 0 {
				b = append(b, ',')
			}
			b = strictjson.AppendString(b, data)
		}
		b = append(b, ']')
	}
	return b
}

// appendMedia appends media to an array, or a short text that replaces them if they
// cannot be sent.
func (f OpenAIChat) appendMedia(b []byte, m convo.Media) (_ []byte, ok bool) {
	kind, sub, _ := strings.Cut(m.MIME, "/")
	switch {
	case m.Data == "" && m.URL != "" && f.Host == "" && !isWebURL(m.URL) && !strings.HasPrefix(m.URL, "data:"):
		return appendPart(b, `"text"`, "text", mediaText(m)), false
	case kind == "image" || m.MIME == "" && m.URL != "":
		b = appendElement(b, `{"type":"image_url","image_url":{`)
		return append(appendStringField(b, "url", dataURL(m)), "}}"...), true
	case f.Dialect == Mistral && m.URL != "" && m.Data == "":
		return appendPart(b, `"document_url"`, "document_url", m.URL), true
	case m.Data == "" || f.Dialect != OpenAI, kind == "audio" && !f.Audio:
		return appendPart(b, `"text"`, "text", mediaText(m)), false
	case kind == "audio" && (sub == "wav" || sub == "mp3" || sub == "mpeg"):
		b = appendElement(b, `{"type":"input_audio","input_audio":{`)
		b = appendStringField(b, "data", m.Data)
		return append(appendStringField(b, "format", strings.Replace(sub, "mpeg", "mp3", 1)), "}}"...), true
	}
	b = appendElement(b, `{"type":"file","file":{`)
	b = appendStringField(b, "filename", "file."+extension(sub))
	return append(appendStringField(b, "file_data", dataURL(m)), "}}"...), true
}

// tools returns the rule for the dialect and the host.
func (f OpenAIChat) tools() toolRule {
	switch {
	case f.Dialect != OpenAI:
		return localTools
	case f.Host != "":
		return hostTools
	}
	return openAITools
}

// Tools implements [ToolWriter].
func (f OpenAIChat) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	functions, err := f.tools().write(tools, f.StrictTools, func(b []byte, t convo.Tool, schema string) []byte {
		b = append(appendStringField(b, "type", "function"), `,"function":{`...)
		b = appendTool(b, t, "parameters", schema)
		if f.StrictTools {
			b = append(b, `,"strict":true`...)
		}
		return append(b, '}')
	})
	return withOwn(functions, err, tools, f.format())
}

// seals says whether the model checks where its signed reasoning stands. Hosts that are
// reached with this format offer many models; those that are not known count as not
// checking.
func (f OpenAIChat) seals() SealCheck {
	if checksSeals(f.Model) {
		return SealsChecked
	}
	return SealsUnchecked
}
