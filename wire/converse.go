package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Converse is the format of Amazon Bedrock's Converse API. Request.System is
// the field "system", an array of blocks. If Request.NeedsTools is set, the API
// refuses the request without a toolConfig.
//
// The format cannot represent everything:
//
//	reasoning of others, and reasoning without signature   left out
//	reasoning at the end of a message                      left out
//	media in assistant messages                            a short text
//	media at a URL that does not begin with s3://          a short text
//	sound, and files that are not documents                a short text
//	text documents of types that the API does not know     sent as txt
//	names of documents                                     derived from the content
//
// Media at an s3:// URL are sent as s3Location. Nova takes it, Claude does not.
//
// Decode reads a json block in a result as a text and, after it, a [convo.Opaque]
// part, {"json":{}}; Encode sends the text as a json block while it is a JSON
// object. A citationsContent block becomes its text and, after it, an Opaque part
// with the citations. Calls and results in one assistant message belong to tools
// that the provider runs; they become Opaque. Encode leaves out such a call without its
// result in the message, and a result without its call.
type Converse struct {
	// Model is the model of the request. Reasoning is sent back only to the model
	// that made it. If Model is empty, reasoning of any model is sent.
	Model string

	// SystemSummary sends the summary as the last system block; see the package
	// documentation.
	SystemSummary bool

	// Cache adds cachePoint blocks after the system text, but before a summary in
	// it, and in the newest two user messages, if the caller's own marks leave
	// room. CacheLifetime is how long the provider keeps the cache; see CacheMark.
	// With CacheTools, Tools ends with a cachePoint of that lifetime, and it counts
	// as one of the four marks that a request can have.
	Cache         bool
	CacheTools    bool
	CacheLifetime time.Duration

	// ResultsAlone is for models that accept only results in a user message
	// with results, such as Llama and Mistral. User text after the results is
	// then sent as a separate message, after a short assistant message. Claude
	// and Nova take both in one message.
	ResultsAlone bool

	Seals SealCheck // whether the model checks where signed reasoning stands

	params toolMarks // of the parameters
}

var converseNames = &names{"toolConfig", "system", "messages"}

const (
	documentMarker = "[Document]"          // added to documents, since the API wants a text in the message
	silentError    = "[No error message.]" // the text of an error result that has none, since the API refuses an empty one
)

// Encode returns the request for a snapshot. It sets NoThinking if the request ends with
// results and the first answer since the user's last message has lost, or may have lost,
// the reasoning that it began with. Claude refuses such a request while thinking is on.
func (f Converse) Encode(s *convo.Snapshot) (Request, error) { return encode(f, s) }

// WithParams returns f for requests that also have params, which is given to
// [Request.With]. Encode counts the cache marks in them, such as those of their tools.
func (f Converse) WithParams(params any) Converse {
	f.params = marksOfParams(params)
	return f
}

func (f Converse) rule() cacheRule { return cacheRuleOf(f.CacheLifetime, f.CacheTools, f.params) }

func (f Converse) begin(seen *tally, lost *losses) (profile, writer) {
	p := profile{paths: overflow.Foreign, format: FormatConverse, model: f.Model, ids: converseIDs, accepts: openAIToolNames, names: converseNames, systemSum: f.SystemSummary, knows: isConverseBlock, marks: true, seals: f.Seals.of(f.Model)}
	return p, &converseWriter{f: f, seen: seen, lost: lost, rule: f.rule(), sys: new(converseMessage)}
}

// leaveOut removes the parts of a message that Bedrock would refuse. Reasoning must be
// signed or encrypted, and cannot be the last part. Cache marks after removed reasoning
// apply to the part before it, if there is one. Calls and results in blocks need each
// other. A model that checks seals refuses the reasoning after a block that is left out.
func (w *converseWriter) leaveOut(t *message) {
	isMark := func(i int) bool { _, mark := isMark(t.parts[i]); return mark }
	unpaired := unpairedTools(t.parts)
	last := len(t.parts) - 1 // the last part that is sent, apart from cache marks and reasoning
	for last >= 0 && (isReasoning(t.parts[last]) || isThought(t.parts[last]) || isMark(last) || unpaired[last]) {
		last--
	}
	checked, changed := w.f.Seals.of(w.f.Model) != SealsUnchecked, false
	lost := func(i, kept int) bool {
		if unpaired[i] {
			changed = checked
			return true
		}
		r, ok := t.parts[i].(convo.Reasoning)
		if ok || isThought(t.parts[i]) {
			return i > last || changed || ok && r.Signature == "" && r.Encrypted == ""
		}
		return kept == 0 && isMark(i)
	}
	parts, places := t.parts[:0], []place(nil)
	for i, p := range t.parts {
		leave := lost(i, len(parts))
		if places == nil && leave {
			places = make([]place, i, len(t.parts))
			for k := range places {
				places[k] = t.place(k)
			}
		}
		if leave {
			if r, ok := p.(convo.Reasoning); ok {
				w.lost.reasoning(t.place(i), r, convo.Reasoning{})
			} else {
				w.lost.unsaid(t.place(i), whole, p)
			}
			continue
		}
		parts = append(parts, p)
		if places != nil {
			places = append(places, t.place(i))
		}
	}
	t.parts = parts
	if places != nil {
		t.places = places
	}
}

// introduced inserts a text before the first document of a user message, if the message
// has no text.
func introduced(t *message) {
	first := -1
	for i, p := range t.parts {
		kind := ""
		switch p := p.(type) {
		case convo.Text:
			return
		case convo.Media:
			kind, _ = converseMedia(p)
		case convo.Opaque:
			kind = opaqueKind(p)
		}
		if kind == "document" && first < 0 {
			first = i
		}
	}
	if first < 0 {
		return
	}
	places := make([]place, len(t.parts))
	for i := range places {
		places[i] = t.place(i)
	}
	t.parts = slices.Insert(t.parts, first, convo.Part(convo.Text(documentMarker)))
	t.places = slices.Insert(places, first, nowhere)
}

// isConverseBlock reports whether an opaque block can be sent in a message of a role. The
// block must be an object with one field, without findings by Check. Calls, results and
// reasoning are sent only in assistant messages; see also leaveOut.
func isConverseBlock(o convo.Opaque, role convo.Role) bool {
	all, err := decodeObject([]byte(o.JSON))
	if err != nil || len(all) != 1 {
		return false
	}
	k := converseChecker{checker: checker{format: FormatConverse}}
	for _, b := range k.blocks("", "", []any{all}) {
		if b.kind == "text" {
			k.text(b)
			continue
		}
		all := b.fields()
		if all == nil {
			return false
		}
		switch b.kind {
		case "toolUse", "toolResult":
			_, named := all["toolUseId"].(string)
			_, typed := all["type"].(string)
			if role != convo.RoleAssistant || !named || !typed && all["type"] != nil {
				return false
			}
		case "reasoningContent":
			k.reasoning("", b, false)
			if role != convo.RoleAssistant {
				return false
			}
		}
	}
	return len(k.list) == 0
}

// isThought reports whether a part is an opaque block of reasoning.
func isThought(p convo.Part) bool {
	o, ok := p.(convo.Opaque)
	return ok && o.Format == FormatConverse && opaqueKind(o) == "reasoningContent"
}

// unpairedTools returns the indices of opaque results without a call before them, and of
// opaque calls without a result after them.
func unpairedTools(parts []convo.Part) map[int]bool {
	var tools []converseTool
	var at []int
	for i, p := range parts {
		o, ok := p.(convo.Opaque)
		if !ok || o.Format != FormatConverse {
			continue
		}
		if kind := opaqueKind(o); kind == "toolUse" || kind == "toolResult" {
			all, _ := decodeObject([]byte(o.JSON))
			in, _ := all[kind].(map[string]any)
			use := kind == "toolUse"
			tools, at = append(tools, converseTool{use: use, result: !use, id: str(in["toolUseId"]), server: use && in["type"] == serverToolUse}), append(at, i)
		}
	}
	if tools == nil {
		return nil
	}
	left := map[int]bool{}
	for _, i := range serverTools(tools) {
		left[at[i]] = true
	}
	for i, t := range tools {
		if t.use && !t.server {
			left[at[i]] = true
		}
	}
	return left
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

// A converseWriter writes the messages of one request. Adjacent messages of one role are
// merged, and so are results and the user message after them.
type converseWriter struct {
	f             Converse
	seen          *tally
	lost          *losses
	rule          cacheRule
	sys           *converseMessage // its raw is the system text that system last returned
	needsTools    bool
	group         []message  // messages of one role, not written yet
	role          convo.Role // of the last group written
	list          []converseMessage
	done          doneMessages    // the first of list
	last          converseMessage // last element of list when the state is saved
	converseMarks                 // of the message that is being written
}

// A converseMessage is a message of the request. Only the last one may still change.
type converseMessage struct {
	raw     []byte // the message up to its last block
	user    bool
	results bool // begins with results
	thinks  bool // begins with reasoning
	passing bool // ends with a text that the next request does not have
	converseMarks
}

// converseMarks are the cache marks of a message, and the places for more.
type converseMarks struct {
	markable int         // offset in the message where a cachePoint of the format can be; 0: none
	spot     int         // offset where the caller's mark may be; 0: none
	marks    []cacheMark // of the caller, in order; never changed in place
}

// mark sets the caller's mark after the last block that can have one.
func (m *converseMarks) mark(long bool, at partPlace, lost *losses) {
	if m.spot > 0 {
		m.marks = appendMark(m.marks, m.spot, long, at)
	} else {
		lost.tell(at.place, at.inside, lostCacheMark, "")
	}
}

// json returns the message with cache marks. Without marks, it uses the memory after m.raw if
// there is room.
func (m *converseMessage) json(marks []cacheMark) json.RawMessage {
	if len(marks) > 0 {
		return withMarks(m.raw, marks, converseMark, "]}")
	}
	return slices.Clip(append(m.raw, "]}"...))
}

func (w *converseWriter) grow(n int) {
	w.list, w.done.list = make([]converseMessage, 0, n), make([]json.RawMessage, 0, n)
}

func (w *converseWriter) save() any {
	s := *w
	if n := len(s.list); n > 0 {
		s.last = s.list[n-1]
	}
	return s
}

func (w *converseWriter) restore(state any) {
	*w = state.(converseWriter)
	if n := len(w.list); n > 0 {
		w.list[n-1] = w.last
		w.list[n-1].raw = slices.Clip(w.last.raw)
	}
}

func (w *converseWriter) message(t *message) {
	w.leaveOut(t)
	if t.role == convo.RoleUser {
		introduced(t)
	}
	if len(t.parts)+len(t.results) == 0 {
		return
	}
	if len(w.group) > 0 && (w.group[0].role != t.role || t.role == convo.RoleTool) {
		w.flush()
	}
	w.group = append(w.group, *t)
}

// flush writes the group, which is not empty.
func (w *converseWriter) flush() {
	t := merged(w.group)
	w.group = nil
	switch {
	case w.role == convo.RoleNone && t.role != convo.RoleUser:
		w.write(marker(convo.RoleUser, earlierMarker))
	case w.f.ResultsAlone && w.role == convo.RoleTool && t.role == convo.RoleUser:
		w.write(marker(convo.RoleAssistant, bridgeMarker))
	}
	w.write(&t)
}

// write writes a message. A user message becomes part of the results before it.
func (w *converseWriter) write(t *message) {
	if t.role != convo.RoleUser || w.role != convo.RoleTool {
		for i := len(w.done.list); i < len(w.list); i++ {
			w.done.add(w.list[i].json(nil), len(w.list[i].marks) > 0)
		}
		w.list = append(w.list, converseMessage{user: t.role != convo.RoleAssistant, results: t.role == convo.RoleTool})
		m := &w.list[len(w.list)-1]
		role := "assistant"
		if m.user {
			role = "user"
		} else {
			m.thinks = beginsWithThought(t)
		}
		m.raw = append(strictjson.Key(appendStringField(begin(t.size()), "role", role), "content"), '[')
	}
	m := &w.list[len(w.list)-1]
	w.converseMarks = m.converseMarks
	m.raw = w.blocks(m.raw, t)
	m.converseMarks, m.passing = w.converseMarks, len(t.parts) == 1 && t.parts[0] == convo.Part(convo.Text(continueMarker))
	w.role = t.role
}

func beginsWithThought(t *message) bool {
	return isReasoning(t.parts[0]) || isThought(t.parts[0])
}

func (w *converseWriter) request(p *projector, s *convo.Snapshot, r *Request) error {
	if len(p.system)+len(w.list)+len(w.group) == 0 {
		return ErrEmpty
	}
	if len(w.group) > 0 {
		w.flush()
	} else if len(w.list) == 0 {
		w.write(marker(convo.RoleUser, earlierMarker))
	}
	r.NoThinking = p.seals != SealsChecked && w.startsUnthinking() && p.lostThinking(s)
	w.rule.own = p.defined.marks
	marks := w.choose()
	r.CacheTTL = w.rule.lifetime(marks)
	if w.role == convo.RoleAssistant {
		w.write(marker(convo.RoleUser, continueMarker))
	}
	r.Messages = w.done.appendTo(make([]json.RawMessage, 0, len(w.list)), len(w.list), marks, func(i int, marks []cacheMark) json.RawMessage { return w.list[i].json(marks) })
	if of := marksOf(marks, inSystem); r.System != nil && len(of) > 0 {
		r.System = withMarks(r.System, of, converseMark, "")
	}
	r.NeedsTools = r.NeedsTools || w.needsTools
	return nil
}

// choose returns the cache marks of the request. The marks of the format are in the system
// text and in the newest two user messages that the next request will also hold. One of
// the two has the place of a mark in the previous request, so its cache entry is found.
// If there is room for fewer, the newest message comes first, and then the system text.
func (w *converseWriter) choose() []cacheMark {
	var own, auto []cacheMark
	for _, m := range w.sys.marks {
		m.message = inSystem
		own = append(own, m)
	}
	for i := range w.done.special(len(w.list)) {
		for _, m := range w.list[i].marks {
			m.message = i
			own = append(own, m)
		}
	}
	if w.f.Cache {
		looked := 0
		for i := len(w.list) - 1; i >= 0 && looked < 2; i-- {
			if m := &w.list[i]; m.user && !m.passing {
				looked++
				if m.markable > 0 {
					auto = append(auto, cacheMark{message: i, at: m.markable})
				}
			}
		}
		if w.sys.markable > 0 {
			auto = slices.Insert(auto, min(len(auto), 1), cacheMark{message: inSystem, at: w.sys.markable})
		}
	}
	return w.rule.choose(own, auto, w.lost)
}

// startsUnthinking reports whether the request ends with results, and the first
// answer since the user's last message does not begin with reasoning.
func (w *converseWriter) startsUnthinking() bool {
	i := len(w.list) - 1
	if !w.list[i].results {
		return false
	}
	for !w.list[i].user || w.list[i].results {
		i--
	}
	return !w.list[i+1].thinks
}

// lostThinking reports whether the first answer of the newest turn has lost
// reasoning, or may have lost it: another model made the answer, or the entry
// before it was removed from the conversation.
func (p *projector) lostThinking(s *convo.Snapshot) bool {
	if p.head < 0 {
		return false
	}
	head, _ := s.At(p.head)
	before, _ := s.At(p.first - 1)
	origin := head.Message.Origin
	own := p.isOwn(origin)
	for _, part := range head.Message.Parts {
		if r, ok := part.(convo.Reasoning); ok && (!own || r.Signature == "" && r.Encrypted == "") {
			return true
		}
	}
	return head.ID > before.ID+1 || !own && origin != (convo.Origin{})
}

// system returns the system text as blocks, or nil if there is none.
func (w *converseWriter) system(sys *projection, lost *losses) (json.RawMessage, []json.RawMessage) {
	if len(sys.system) == 0 {
		return nil, nil
	}
	m := converseMessage{raw: []byte{'['}}
	point := len(sys.system) // where the cachePoint of the format is
	if sys.summary > 0 {
		point = sys.summary
	}
	for i, p := range sys.system {
		long, mark := isMark(p)
		switch p := p.(type) {
		case convo.Text, convo.Media:
			lost.unsaid(sys.places[i], whole, p)
			m.raw = appendConverseText(m.raw, textOf(p))
		case convo.Opaque:
			if mark {
				m.mark(long, partPlace{sys.places[i], whole}, lost)
			} else if !isCitations(p) {
				m.raw = appendElement(m.raw, p.JSON)
			} else {
				lost.tell(sys.places[i], whole, lostBlock, "")
			}
		}
		m.spot = len(m.raw)
		if i < point {
			m.markable = len(m.raw)
		}
	}
	*w.sys = m
	return append(m.raw, ']'), nil
}

// blocks appends the blocks of a message.
func (w *converseWriter) blocks(b []byte, t *message) []byte {
	for i := range t.results {
		b = w.result(b, &t.results[i])
		w.markable, w.spot = len(b), len(b)
		for k, p := range t.results[i].Parts {
			if long, ok := isMark(p); ok {
				w.mark(long, partPlace{t.results[i].at, t.results[i].inside(k)}, w.lost)
			}
		}
	}
	for i, p := range t.parts {
		switch p := p.(type) {
		case convo.Text:
			if i+1 < len(t.parts) {
				if o, ok := t.parts[i+1].(convo.Opaque); ok {
					if list := citationsIn(o); list != nil {
						b = appendCited(b, string(p), list)
						w.markable, w.spot = len(b), len(b)
						continue
					}
				}
			}
			b = appendConverseText(b, string(p))
			w.markable, w.spot = len(b), len(b)
		case convo.Reasoning:
			sent := p
			sent.ID = ""
			if p.Signature == "" {
				sent.Text = ""
			}
			w.lost.reasoning(t.place(i), p, sent)
			b = appendConverseReasoning(b, p)
		case convo.ToolCall:
			b = appendElement(b, `{"toolUse":{`)
			b = appendStringField(b, "toolUseId", p.ID)
			b = appendStringField(b, "name", p.Name)
			b = append(appendRawField(b, "input", object(p.Arguments)), "}}"...)
			w.spot = len(b)
		case convo.Media:
			kind := ""
			if t.role == convo.RoleUser {
				kind, _ = converseMedia(p)
				b = w.media(b, p, t.place(i), whole)
			} else {
				w.lost.tell(t.place(i), whole, lostMedia, "")
				b = appendConverseText(b, mediaText(p))
			}
			if kind == "" || kind == "image" {
				w.spot = len(b)
			}
		case convo.Opaque:
			if long, ok := isMark(p); ok {
				w.mark(long, partPlace{t.place(i), whole}, w.lost)
				continue
			}
			if isCitations(p) {
				continue // belongs to the text before it
			}
			b = w.opaque(b, p, t.place(i), whole)
			switch opaqueKind(p) {
			case "document", "video", "reasoningContent":
			default:
				w.spot = len(b)
			}
		}
	}
	return b
}

// appendCited appends a text with citations.
func appendCited(b []byte, text string, citations json.RawMessage) []byte {
	b = appendStringField(appendElement(b, `{"citationsContent":{"content":[{`), "text", text)
	b = appendRawField(append(b, "}]"...), "citations", strings.ToValidUTF8(compact(citations), "\uFFFD"))
	return append(b, "}}"...)
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
func (w *converseWriter) result(b []byte, r *result) []byte {
	b = appendElement(b, `{"toolResult":{`)
	b = appendStringField(b, "toolUseId", r.CallID)
	b = append(strictjson.Key(b, "content"), '[')
	from := len(b)
	for i, p := range r.Parts {
		switch p := p.(type) {
		case convo.Text:
			if isObject(r.Parts, i, FormatConverse) {
				b = append(appendElement(b, `{"json":`+compact(json.RawMessage(p))), '}')
			} else {
				b = appendConverseText(b, string(p))
			}
		case convo.Media:
			b = w.media(b, p, r.at, r.inside(i))
		case convo.Opaque:
			if _, mark := isMark(p); !mark && !isObjectMark(p) && !isCitations(p) {
				b = w.opaque(b, p, r.at, r.inside(i))
			}
		}
	}
	if r.IsError && len(b) == from {
		b = appendConverseText(b, silentError)
	}
	b = append(b, ']')
	if r.IsError {
		b = appendStringField(b, "status", "error")
	}
	return append(b, "}}"...)
}

func (w *converseWriter) media(b []byte, m convo.Media, at place, inside int) []byte {
	kind, format := converseMedia(m)
	if kind == "document" && format == "txt" && !strings.HasPrefix(strings.ToLower(strings.TrimSpace(m.MIME)), "text/plain") {
		w.lost.tell(at, inside, lostType, "")
	}
	if kind == "" {
		w.lost.tell(at, inside, lostMedia, "")
		return appendConverseText(b, mediaText(m))
	}
	b = appendElement(b, `{"`+kind+`":{`)
	b = appendStringField(b, "format", format)
	if kind == "document" {
		b = appendStringField(b, "name", w.documentName("", m.Data+m.URL))
	}
	if m.Data != "" {
		b = appendStringField(append(strictjson.Key(b, "source"), '{'), "bytes", m.Data)
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
// name as part of the prompt. A name depends only on the content, so a document
// keeps it when earlier documents are removed from the conversation.
var documentNames = idRule{prefix: "document-", length: len("document-") + 8}

// maxDocumentName is the maximum number of characters in the name of a document.
const maxDocumentName = 200

// validDocumentName reports whether the API accepts the name of a document: letters,
// digits, single spaces, and ()[]-. It also refuses two documents with one name.
func validDocumentName(name string) bool {
	n, space := 0, false
	for _, c := range name {
		wasSpace := space
		space = strings.ContainsRune(" \t\n\f\r", c)
		n++
		switch {
		case n > maxDocumentName, space && wasSpace:
			return false
		case !space && !unicode.In(c, unicode.L, unicode.N) && !strings.ContainsRune("()[]-", c):
			return false
		}
	}
	return n > 0
}

// documentName returns a name that no document of the request has yet: the
// given name if it is valid, or a name derived from the content.
func (w *converseWriter) documentName(name, content string) string {
	for !validDocumentName(name) || w.seen.has(documentIn, strings.ToLower(name)) {
		name = documentNames.derive(content, w.seen.count(documentFor, content))
		w.seen.add(documentFor, content)
	}
	w.seen.add(documentIn, strings.ToLower(name))
	return name
}

// opaque writes a block unchanged, but renames a document if the API would
// refuse its name.
func (w *converseWriter) opaque(b []byte, o convo.Opaque, at place, inside int) []byte {
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
			w.lost.tell(at, inside, lostDocument, to)
			document["name"] = strictjson.AppendString(nil, to)
			return appendElement(b, `{"document":`+objectOf(document)+"}")
		}
	}
	return appendElement(b, o.JSON)
}

// objectOf returns a JSON object with the fields sorted by key.
func objectOf(all map[string]json.RawMessage) string {
	b := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, key), ':')
		b = append(b, compact(all[key])...)
	}
	return string(append(b, '}'))
}

// The rules for the tools of each kind of model.
var (
	converseTools = toolRule{names: openAIToolNames}
	claudeTools   = toolRule{names: openAIToolNames, root: anthropicTools.root, keys: anthropicTools.keys}
	novaTools     = toolRule{
		names: openAIToolNames,
		only:  map[string]bool{"type": true, "properties": true, "required": true},
		drop:  map[string]bool{"$schema": true, "$id": true, "$comment": true, "title": true},
	}
)

// tools returns the rule for the model.
func (f Converse) tools() toolRule {
	switch model := models.Plain(f.Model); {
	case strings.HasPrefix(model, "claude"):
		return claudeTools
	case strings.HasPrefix(model, "nova-micro"), strings.HasPrefix(model, "nova-lite"), strings.HasPrefix(model, "nova-pro"), strings.HasPrefix(model, "nova-premier"):
		return novaTools
	}
	return converseTools
}

// Tools implements [ToolWriter].
func (f Converse) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	functions, err := f.tools().write(tools, false, func(b []byte, t convo.Tool, schema string) []byte {
		b = appendTool(append(b, `"toolSpec":{`...), t, "inputSchema", `{"json":`+schema+"}")
		return append(b, '}')
	})
	list, err := withOwn(functions, err, tools, FormatConverse)
	if list == nil {
		return nil, err
	}
	if r := f.rule(); r.tools {
		list = slices.Concat(list[:len(list)-1], []byte(converseMark(r.long)), []byte("]"))
	}
	return slices.Concat([]byte(`{"tools":`), list, []byte(`}`)), nil
}

func (w *converseWriter) asked() bool {
	if n := len(w.group); n > 0 {
		return w.group[n-1].role != convo.RoleAssistant
	}
	return w.role != convo.RoleNone && w.role != convo.RoleAssistant
}

// converseMark returns a mark as an element of a list.
func converseMark(long bool) string {
	if long {
		return `,{"cachePoint":{"type":"default","ttl":"1h"}}`
	}
	return `,{"cachePoint":{"type":"default"}}`
}
