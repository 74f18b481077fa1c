package wire

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Converse is the format of Amazon Bedrock's Converse API. [Request.System] is
// the field "system", an array of blocks. Where Request.NeedsTools is set, the
// API refuses the request without toolConfig.
//
// Not carried as such:
//
//	reasoning of others, and what no signature proves   left out
//	reasoning at the end of a message without calls     left out
//	media in assistant messages                         a short text
//	media at an address that is not s3://               a short text
//	sounds, and files that are no document              a short text
//	MIME types of texts that the API has no name for    sent as txt
//	names of documents                                  made of the content
//
// Decode reads json blocks of results as text, drops cachePoint blocks, and
// keeps as Opaque what the provider ran itself: calls and results in one
// assistant message.
//
// Images, documents and videos at an s3:// address go as s3Location, which
// Nova takes and Claude does not.
type Converse struct {
	Model string // the request goes to; own reasoning goes back only to it. Empty: to any
	Cache bool   // cachePoint blocks behind the system text and in the newest two user turns

	// ResultsAlone is for models that take nothing beside the results in a user
	// turn: Llama, Mistral. What the user says after them then follows behind a
	// short assistant turn. Claude and Nova take both in one.
	ResultsAlone bool
}

const converseFormat = "converse"

var converseNames = &names{"system", "messages"}

const (
	documentMarker = "[Document]"          // goes with documents, which the API takes only beside a text
	silentError    = "[No error message.]" // an error has to say something
	cachePoint     = `{"cachePoint":{"type":"default"}}`
)

// Encode writes the request. NoThinking is set when the newest turn is at its
// tools and the reasoning is gone that its first answer began with: Claude then
// refuses to think.
func (f Converse) Encode(s *convo.Snapshot) (Request, error) {
	to := profile{format: converseFormat, model: f.Model, ids: converseIDs, knows: isConverseBlock}
	p, err := project(s, to)
	if err != nil {
		return Request{}, err
	}
	for i := range p.turns {
		t := &p.turns[i]
		if t.role == convo.RoleAssistant {
			t.parts = replayable(t.parts)
		} else {
			t.parts = introduced(t.parts)
		}
	}
	p.turns = slices.DeleteFunc(p.turns, func(t turn) bool { return len(t.parts)+len(t.results) == 0 })
	if len(p.system)+len(p.turns) == 0 {
		return Request{}, ErrEmpty
	}
	turns := userFirst(p.merged())
	if f.ResultsAlone {
		turns = bridged(turns)
	}
	w := converseWriter{documents: make(map[string]bool), repeats: make(map[string]uint64), needsTools: p.needsTools}
	if f.Cache {
		w.marks = markedTurns(turns)
	}
	r := Request{System: f.system(p.system), NoThinking: startsUnthinking(turns) && to.lostThinking(s), names: converseNames}
	r.Messages = w.messages(userLast(turns))
	r.NeedsTools = w.needsTools
	return r, nil
}

// markedTurns returns the last turns of the newest two user messages that
// later requests hold too: what the one before has cached is found again.
func markedTurns(turns []turn) []int {
	var marks []int
	next := convo.RoleNone
	for i := len(turns) - 1; i >= 0 && len(marks) < 2; i-- {
		t := &turns[i]
		passing := len(t.parts) == 1 && t.parts[0] == convo.Part(convo.Text(continueMarker))
		if t.role != convo.RoleAssistant && next != convo.RoleUser && !passing {
			marks = append(marks, i)
		}
		next = t.role
	}
	return marks
}

// replayable returns the parts of an assistant message that the provider takes
// back: reasoning has to be signed or encrypted, and is never the last.
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

// introduced returns the parts of a user message with a text before documents
// that come without one.
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

// startsUnthinking reports whether the last message holds results, and the
// first answer since the user has asked does not begin with reasoning.
func startsUnthinking(turns []turn) bool {
	isResults := func(i int) bool { return i >= 0 && turns[i].role == convo.RoleTool }
	i := len(turns) - 1
	if turns[i].role == convo.RoleUser && isResults(i-1) {
		i--
	}
	if !isResults(i) {
		return false
	}
	for turns[i].role != convo.RoleUser || isResults(i-1) {
		i--
	}
	switch p := turns[i+1].parts[0].(type) {
	case convo.Reasoning:
		return false
	case convo.Opaque:
		return opaqueKind(p) != "reasoningContent"
	}
	return true
}

// lostThinking reports whether the first answer of the newest turn had
// reasoning that does not go back, or may have had it: it is another model's,
// or the one before it is gone.
func (p profile) lostThinking(s *convo.Snapshot) bool {
	i := s.Len() - 1
	e, ok := s.At(i)
	for ok && e.Message.Role == convo.RoleUser { // beside the results
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

// isConverseBlock reports whether an opaque block has a kind, and is no text
// without any.
func isConverseBlock(o convo.Opaque) bool {
	kind := opaqueKind(o)
	if kind == "text" {
		all, err := fields("-", []byte(o.JSON))
		var text string
		return err == nil && json.Unmarshal(all["text"], &text) == nil && !isBlank(text)
	}
	return kind != ""
}

// opaqueKind returns what a block calls itself: its first key.
func opaqueKind(o convo.Opaque) string {
	d := json.NewDecoder(strings.NewReader(o.JSON))
	if t, _ := d.Token(); t != json.Delim('{') {
		return ""
	}
	t, _ := d.Token()
	kind, _ := t.(string)
	return kind
}

func (f Converse) system(parts []convo.Part) json.RawMessage {
	if len(parts) == 0 {
		return nil
	}
	b := []byte{'['}
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			b = appendConverseText(b, string(p))
		case convo.Opaque:
			b = appendElement(b, p.JSON)
		}
	}
	if f.Cache {
		b = appendElement(b, cachePoint)
	}
	return append(b, ']')
}

// A converseWriter writes the messages of one request.
type converseWriter struct {
	documents  map[string]bool   // names that are taken, in lower case
	repeats    map[string]uint64 // names that were made, by content
	needsTools bool
	marks      []int // turns whose messages get a cachePoint
	markable   int   // where in the message at hand one may stand; 0: nowhere
}

// messages writes the turns. Results and what the user says after them are one
// message.
func (w *converseWriter) messages(turns []turn) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(turns))
	for i := 0; i < len(turns); i++ {
		role := "user"
		if turns[i].role == convo.RoleAssistant {
			role = "assistant"
		}
		b := appendStringField([]byte{'{'}, "role", role)
		b = append(appendField(b, "content"), '[')
		w.markable = 0
		b = w.turn(b, &turns[i])
		if turns[i].role == convo.RoleTool && i+1 < len(turns) && turns[i+1].role == convo.RoleUser {
			i++
			b = w.turn(b, &turns[i])
		}
		if w.markable > 0 && slices.Contains(w.marks, i) {
			b = slices.Insert(b, w.markable, []byte(","+cachePoint)...)
		}
		list = append(list, append(b, "]}"...))
	}
	return list
}

func (w *converseWriter) turn(b []byte, t *turn) []byte {
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

// result writes a result. Its status is left to its default where it is a
// success: some models do not know the field.
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

// converseFormats are the formats by their MIME types. The first of a format
// is what Decode makes of it.
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

// converseMedia returns the block and the format of media, nothing where the
// API has none.
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

// documentNames makes names that say nothing, for a model reads them as it
// reads a prompt. They are made of the content, so that they stay when the
// documents before them go.
var documentNames = idRule{prefix: "document-", length: len("document-") + 8}

var documentNamePattern = regexp.MustCompile(`^[\p{L}\p{N}\s()\[\]-]{1,200}$`)

// validDocumentName is the rule of the API, which also refuses names that come
// twice in a request.
func validDocumentName(name string) bool {
	return documentNamePattern.MatchString(name) && !doubleSpace.MatchString(name)
}

var doubleSpace = regexp.MustCompile(`\s\s`)

// documentName returns a name that the request does not have yet: the one
// given, or one made of the content.
func (w *converseWriter) documentName(name, content string) string {
	for !validDocumentName(name) || w.documents[strings.ToLower(name)] {
		name = documentNames.derive(content, w.repeats[content])
		w.repeats[content]++
	}
	w.documents[strings.ToLower(name)] = true
	return name
}

// opaque writes a block as it is. Only a document with a name that the API
// would refuse gets another.
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

// objectOf writes fields as a JSON object, sorted by their keys.
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
