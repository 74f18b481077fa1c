package wire

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Converse is the format of Amazon Bedrock's Converse API. Request.System is
// the field "system", an array of blocks. If Request.NeedsTools is set, the API
// refuses the request without a toolConfig.
//
// The format does not carry everything:
//
//	reasoning of others, and reasoning without signature   left out
//	reasoning at the end of a message                      left out
//	media in assistant messages                            a short text
//	media at a URL that does not begin with s3://          a short text
//	sound, and files that are not documents                a short text
//	text documents of types that the API does not know     sent as txt
//	names of documents                                     derived from the content
//
// Media at an s3:// URL are sent as s3Location, which Nova takes and Claude
// does not.
//
// Decode reads json blocks in results as text, and leaves out cachePoint
// blocks. Calls and results in one assistant message belong to tools that the
// provider runs; they become Opaque.
type Converse struct {
	// Model is the model of the request. Reasoning is sent back only to the model
	// that made it. If Model is empty, reasoning of any model is sent.
	Model string

	// SystemSummary sends the summary as the last system block; see the package
	// documentation.
	SystemSummary bool

	// Cache adds cachePoint blocks after the system text, but before a summary in
	// it, and in the newest two user messages.
	Cache bool

	// ResultsAlone is for models that take nothing but results in a user
	// message with results, such as Llama and Mistral. What the user says after
	// the results is then sent in a message of its own, after a short assistant
	// message. Claude and Nova take both in one message.
	ResultsAlone bool
}

const converseFormat = "converse"

var converseNames = &names{"toolConfig", "system", "messages"}

const (
	documentMarker = "[Document]"          // added to documents, since the API wants a text in the message
	silentError    = "[No error message.]" // the text of an error result that has none, which the API refuses
	cachePoint     = `{"cachePoint":{"type":"default"}}`
)

// Encode returns the request for a snapshot. It sets NoThinking if the request
// ends with results and the first answer since the user's last message has
// lost, or may have lost, the reasoning that it began with: Claude refuses such
// a request while thinking is on.
func (f Converse) Encode(s *convo.Snapshot) (Request, error) {
	to := profile{format: converseFormat, model: f.Model, ids: converseIDs, systemSum: f.SystemSummary, knows: isConverseBlock}
	p, err := project(s, to)
	if err != nil {
		return Request{}, err
	}
	for i := range p.messages {
		t := &p.messages[i]
		if t.role == convo.RoleAssistant {
			t.parts = replayable(t.parts)
		} else {
			t.parts = introduced(t.parts)
		}
	}
	p.messages = slices.DeleteFunc(p.messages, func(t message) bool { return len(t.parts)+len(t.results) == 0 })
	if len(p.system)+len(p.messages) == 0 {
		return Request{}, ErrEmpty
	}
	messages := userFirst(p.merged())
	if f.ResultsAlone {
		messages = bridged(messages)
	}
	w := converseWriter{documents: make(map[string]bool), repeats: make(map[string]uint64), needsTools: p.needsTools}
	if f.Cache {
		w.marks = markedMessages(messages)
	}
	r := Request{System: f.system(&p), NoThinking: startsUnthinking(messages) && to.lostThinking(s), names: converseNames}
	r.Messages = w.messages(userLast(messages))
	r.NeedsTools = w.needsTools
	return r, nil
}

// markedMessages returns the indices of the messages that get a cachePoint: the
// last message of each of the newest two runs of results and user messages that
// the next request will hold too. One of the two has the place of a mark in the
// previous request, so that its cache entry is found.
func markedMessages(messages []message) []int {
	var marks []int
	next := convo.RoleNone
	for i := len(messages) - 1; i >= 0 && len(marks) < 2; i-- {
		t := &messages[i]
		passing := len(t.parts) == 1 && t.parts[0] == convo.Part(convo.Text(continueMarker))
		if t.role != convo.RoleAssistant && next != convo.RoleUser && !passing {
			marks = append(marks, i)
		}
		next = t.role
	}
	return marks
}

// replayable returns the parts of an assistant message without reasoning that
// Bedrock would refuse: reasoning must be signed or encrypted, and cannot be
// the last part.
func replayable(parts []convo.Part) []convo.Part {
	parts = slices.DeleteFunc(parts, func(p convo.Part) bool {
		r, ok := p.(convo.Reasoning)
		return ok && r.Signature == "" && r.Encrypted == ""
	})
	for n := len(parts) - 1; n >= 0; n-- {
		if _, ok := parts[n].(convo.Reasoning); !ok {
			break
		}
		parts = parts[:n]
	}
	return parts
}

// introduced returns the parts of a user message, with a text before the first
// document if the message has no text.
func introduced(parts []convo.Part) []convo.Part {
	first := -1
	for i, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			return parts
		case convo.Media:
			if kind, _ := converseMedia(p); kind == "document" && first < 0 {
				first = i
			}
		case convo.Opaque:
			if opaqueKind(p) == "document" && first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return parts
	}
	return slices.Insert(parts, first, convo.Part(convo.Text(documentMarker)))
}

// startsUnthinking reports whether the request ends with results, and the first
// answer since the user's last message does not begin with reasoning.
func startsUnthinking(messages []message) bool {
	isResults := func(i int) bool { return i >= 0 && messages[i].role == convo.RoleTool }
	i := len(messages) - 1
	if messages[i].role == convo.RoleUser && isResults(i-1) {
		i--
	}
	if !isResults(i) {
		return false
	}
	for messages[i].role != convo.RoleUser || isResults(i-1) {
		i--
	}
	switch p := messages[i+1].parts[0].(type) {
	case convo.Reasoning:
		return false
	case convo.Opaque:
		return opaqueKind(p) != "reasoningContent"
	}
	return true
}

// lostThinking reports whether the first answer of the newest turn has lost
// reasoning, or may have: another model made it, or the entry before it has
// left the conversation.
func (p profile) lostThinking(s *convo.Snapshot) bool {
	i := s.Len() - 1
	e, ok := s.At(i)
	for ok && e.Message.Role == convo.RoleUser { // user messages after the results
		i--
		e, ok = s.At(i)
	}
	var head convo.Entry
	for ok && (e.Message.Role == convo.RoleAssistant || e.Message.Role == convo.RoleTool) {
		if e.Message.Role == convo.RoleAssistant {
			head = e
		}
		i--
		e, ok = s.At(i)
	}
	origin := head.Message.Origin
	own := p.isOwn(origin)
	for _, part := range head.Message.Parts {
		if r, ok := part.(convo.Reasoning); ok && (!own || r.Signature == "" && r.Encrypted == "") {
			return true
		}
	}
	return head.ID > e.ID+1 || !own && origin != (convo.Origin{})
}

// isConverseBlock reports whether an opaque block can be sent: it has a kind,
// and is not a blank text.
func isConverseBlock(o convo.Opaque) bool {
	kind := opaqueKind(o)
	if kind == "text" {
		all, err := fields("-", []byte(o.JSON))
		var text string
		return err == nil && json.Unmarshal(all["text"], &text) == nil && !isBlank(text)
	}
	return kind != ""
}

// opaqueKind returns the kind of a block, which is its first key.
func opaqueKind(o convo.Opaque) string {
	d := json.NewDecoder(strings.NewReader(o.JSON))
	if t, _ := d.Token(); t != json.Delim('{') {
		return ""
	}
	t, _ := d.Token()
	kind, _ := t.(string)
	return kind
}

func (f Converse) system(sys *projection) json.RawMessage {
	if len(sys.system) == 0 {
		return nil
	}
	b := []byte{'['}
	point := len(sys.system) // where the cachePoint is
	if sys.summary > 0 {
		point = sys.summary
	}
	for i, p := range sys.system {
		if f.Cache && i == point {
			b = appendElement(b, cachePoint)
		}
		switch p := p.(type) {
		case convo.Text:
			b = appendConverseText(b, string(p))
		case convo.Opaque:
			b = appendElement(b, p.JSON)
		}
	}
	if f.Cache && point == len(sys.system) {
		b = appendElement(b, cachePoint)
	}
	return append(b, ']')
}

// A converseWriter writes the messages of one request.
type converseWriter struct {
	documents  map[string]bool   // names of the documents so far, in lower case
	repeats    map[string]uint64 // how many names were derived from a content
	needsTools bool
	marks      []int // indices of the messages that get a cachePoint
	markable   int   // offset in the current message where it can stand; 0: nowhere
}

// messages writes the messages. Results and a user message after them become
// one.
func (w *converseWriter) messages(messages []message) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(messages))
	for i := 0; i < len(messages); i++ {
		role := "user"
		if messages[i].role == convo.RoleAssistant {
			role = "assistant"
		}
		b := appendStringField([]byte{'{'}, "role", role)
		b = append(appendField(b, "content"), '[')
		w.markable = 0
		b = w.message(b, &messages[i])
		if messages[i].role == convo.RoleTool && i+1 < len(messages) && messages[i+1].role == convo.RoleUser {
			i++
			b = w.message(b, &messages[i])
		}
		if w.markable > 0 && slices.Contains(w.marks, i) {
			b = slices.Insert(b, w.markable, []byte(","+cachePoint)...)
		}
		list = append(list, append(b, "]}"...))
	}
	return list
}

func (w *converseWriter) message(b []byte, t *message) []byte {
	for i := range t.results {
		b = w.result(b, &t.results[i])
		w.markable = len(b)
	}
	for _, p := range t.parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendConverseText(b, string(p))
			w.markable = len(b)
		case convo.Reasoning:
			b = appendConverseReasoning(b, p)
		case convo.ToolCall:
			b = appendElement(b, `{"toolUse":{`)
			b = appendStringField(b, "toolUseId", p.ID)
			b = appendStringField(b, "name", toolName(p.Name))
			b = append(appendRawField(b, "input", object(p.Arguments)), "}}"...)
		case convo.Media:
			if t.role == convo.RoleUser {
				b = w.media(b, p)
			} else {
				b = appendConverseText(b, mediaText(p))
			}
		case convo.Opaque:
			b = w.opaque(b, p)
		}
	}
	return b
}

func appendConverseText(b []byte, text string) []byte {
	return append(appendStringField(appendElement(b, "{"), "text", text), '}')
}

func appendConverseReasoning(b []byte, r convo.Reasoning) []byte {
	if r.Signature != "" {
		b = appendElement(b, `{"reasoningContent":{"reasoningText":{`)
		b = appendStringField(b, "text", r.Text)
		b = append(appendStringField(b, "signature", r.Signature), "}}}"...)
	}
	if r.Encrypted != "" {
		b = appendElement(b, `{"reasoningContent":{`)
		b = append(appendStringField(b, "redactedContent", r.Encrypted), "}}"...)
	}
	return b
}

// result writes a result. The field status is written only for errors, since
// some models do not know it and its default is success.
func (w *converseWriter) result(b []byte, r *convo.ToolResult) []byte {
	b = appendElement(b, `{"toolResult":{`)
	b = appendStringField(b, "toolUseId", r.CallID)
	b = append(appendField(b, "content"), '[')
	for _, p := range r.Parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendConverseText(b, string(p))
		case convo.Media:
			b = w.media(b, p)
		case convo.Opaque:
			b = w.opaque(b, p)
		}
	}
	if r.IsError && len(r.Parts) == 0 {
		b = appendConverseText(b, silentError)
	}
	b = append(b, ']')
	if r.IsError {
		b = appendStringField(b, "status", "error")
	}
	return append(b, "}}"...)
}

func (w *converseWriter) media(b []byte, m convo.Media) []byte {
	kind, format := converseMedia(m)
	if kind == "" {
		return appendConverseText(b, mediaText(m))
	}
	b = appendElement(b, `{"`+kind+`":{`)
	b = appendStringField(b, "format", format)
	if kind == "document" {
		b = appendStringField(b, "name", w.documentName("", m.Data+m.URL))
	}
	if m.Data != "" {
		b = appendStringField(append(appendField(b, "source"), '{'), "bytes", m.Data)
		return append(b, "}}}"...)
	}
	b = appendStringField(appendRawField(b, "source", `{"s3Location":{`), "uri", m.URL)
	return append(b, "}}}}"...)
}

// converseFormats are the API's names for MIME types. Decode uses the first
// MIME type of a name.
var converseFormats = []struct{ mime, kind, format string }{
	{"image/png", "image", "png"}, {"image/jpeg", "image", "jpeg"}, {"image/jpg", "image", "jpeg"},
	{"image/gif", "image", "gif"}, {"image/webp", "image", "webp"},
	{"application/pdf", "document", "pdf"}, {"text/csv", "document", "csv"}, {"text/html", "document", "html"},
	{"text/markdown", "document", "md"}, {"text/plain", "document", "txt"}, {"application/msword", "document", "doc"},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "document", "docx"},
	{"application/vnd.ms-excel", "document", "xls"},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "document", "xlsx"},
	{"video/mp4", "video", "mp4"}, {"video/x-matroska", "video", "mkv"}, {"video/quicktime", "video", "mov"},
	{"video/webm", "video", "webm"}, {"video/x-flv", "video", "flv"}, {"video/mpeg", "video", "mpeg"},
	{"video/mpg", "video", "mpg"}, {"video/x-ms-wmv", "video", "wmv"}, {"video/3gpp", "video", "three_gp"},
}

// converseMedia returns the kind of block and the format for media, or empty
// strings if the API does not take them.
func converseMedia(m convo.Media) (kind, format string) {
	if m.Data == "" && !strings.HasPrefix(m.URL, "s3://") {
		return "", ""
	}
	mime, _, _ := strings.Cut(m.MIME, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	for _, f := range converseFormats {
		if f.mime == mime {
			return f.kind, f.format
		}
	}
	if strings.HasPrefix(mime, "text/") {
		return "document", "txt"
	}
	return "", ""
}

// documentNames derives neutral names for documents, because the model reads a
// name as part of the prompt. They depend only on the content, so that a
// document keeps its name when earlier documents leave the conversation.
var documentNames = idRule{prefix: "document-", length: len("document-") + 8}

var documentNamePattern = regexp.MustCompile(`^[\p{L}\p{N}\s()\[\]-]{1,200}$`)

// validDocumentName reports whether the API accepts the name of a document. It
// also refuses two documents with one name.
func validDocumentName(name string) bool {
	return documentNamePattern.MatchString(name) && !doubleSpace.MatchString(name)
}

var doubleSpace = regexp.MustCompile(`\s\s`)

// documentName returns a name that no document of the request has yet: the
// given one if it is valid, or one derived from the content.
func (w *converseWriter) documentName(name, content string) string {
	for !validDocumentName(name) || w.documents[strings.ToLower(name)] {
		name = documentNames.derive(content, w.repeats[content])
		w.repeats[content]++
	}
	w.documents[strings.ToLower(name)] = true
	return name
}

// opaque writes a block unchanged, except that a document gets another name if
// the API would refuse its own.
func (w *converseWriter) opaque(b []byte, o convo.Opaque) []byte {
	switch opaqueKind(o) {
	case "toolUse", "toolResult":
		w.needsTools = true
	case "document":
		block, err := fields("", []byte(o.JSON))
		if err != nil {
			break
		}
		document, err := fields("", block["document"])
		if err != nil {
			break
		}
		var name string
		_ = json.Unmarshal(document["name"], &name)
		if to := w.documentName(name, o.JSON); to != name {
			document["name"] = appendString(nil, to)
			return appendElement(b, `{"document":`+objectOf(document)+"}")
		}
	}
	return appendElement(b, o.JSON)
}

// objectOf returns fields as a JSON object, sorted by key.
func objectOf(all map[string]json.RawMessage) string {
	b := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
		b = append(b, compact(all[key])...)
	}
	return string(append(b, '}'))
}
