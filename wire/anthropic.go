package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Anthropic is the format of Anthropic's Messages API.
//
// Encode leaves out the reasoning of other providers, reasoning without a
// signature, and reasoning that nothing follows. It removes white space from
// the end of an assistant message. A short text replaces media in assistant
// messages and in error results, and media that the API does not read; it reads
// JPEG, PNG, GIF, WebP, PDF, and text as text/plain. Decode lists in Lost what
// it cannot keep, such as cache marks inside opaque blocks or on blocks that
// cannot have one. The citations of a text are a [convo.Opaque]
// part after it, {"citations":[...]}; they are sent without the fields that
// requests do not have, such as file_id.
//
// Claude Opus since 4.8, Sonnet since 5, Haiku since 5.5, Fable and Mythos take messages
// with the role system among the others, after what the user says and before the next
// answer. A note is sent as one if Model names such a model, and otherwise as a text of the
// user in tags that no other text can forge. Decode makes a note of a message with the role
// system that holds nothing but text. Any other, such as one with clear_at or with
// a new tool, is a [convo.Opaque] part of a user message, {"role":"system",...}, and is sent
// unchanged. If a user message follows it, Encode adds a marker of the assistant between
// them.
//
// A call of a tool that the provider runs, such as a server_tool_use, is sent only with its
// result in the same turn of the assistant, or while the turn may go on. That is at the end
// of the request, or before nothing but results. A result without such a call is not sent.
//
// Code that the provider runs may call tools, also those of the application. The caller of
// such a call is kept in a [convo.Opaque] part before it. While the code waits, the request
// names its container, which is in the Origin of the answer, in Request.Fields. If the
// container is not known, or when the turn ends, the code is not sent, nor is what it has
// called: a call of the application stays, as a call of the model. The results of such calls
// are sent as text.
//
// The API refuses a request if thinking is "enabled" and the current assistant
// turn lost the thinking block that it began with. Encode sets
// Request.NoThinking if
//
//   - the request ends with results or with an assistant message,
//   - the first assistant message since the user's last message does not begin with
//     a thinking block, and
//   - it had one, or may have had one. That is so if it holds reasoning that cannot be
//     sent, if entries between it and the user's message were removed, or if another
//     format or model made it. It is also so if its maker is not known and other messages
//     hold reasoning.
//
// A message that the model made without reasoning, as it may when thinking is
// "adaptive", does not set it.
type Anthropic struct {
	// Model is the model of the request. Thinking is sent back only to the
	// model that made it. If Model is empty, thinking of any model is sent.
	Model string

	SystemSummary bool // send the summary as the last system block; see the package documentation

	// Cache sets cache marks: at most one on the system text, before the summary, and two
	// on messages, if the caller's own marks leave room. CacheLifetime is how long the
	// provider keeps the cache; see CacheMark. With CacheTools, Tools ends with a mark of
	// that lifetime, and it counts as one of the four marks that a request can have.
	Cache         bool
	CacheTools    bool
	CacheLifetime time.Duration

	Seals SealCheck // whether the model checks where signed reasoning stands

	StrictTools bool // Tools asks for arguments that follow the schema exactly

	// Betas lets Encode send what is in beta: messages with the role system that have
	// clear_at, or that add or remove tools, and the block of a [convo.Native] in place of
	// the summary. Request.Headers then names the betas that the request needs. Without
	// Betas these messages are left out and named in Lost, and the text of the summary is
	// sent.
	Betas bool

	// UserLast is for a model that refuses a request which ends with an assistant message.
	// Encode adds a user message then, unless the answer is paused: it ends with a block of a
	// tool that the provider runs. Claude's models since 4.6 are known by their name in Model
	// and do not need it.
	UserLast bool

	params anthropicParams
}

// anthropicParams are what the parameters of a request hold.
type anthropicParams struct {
	toolMarks
	container string // the ID
	tools     string // JSON
}

var anthropicNames = &names{"tools", "system", "messages"}

// Encode returns the request for a snapshot. If the conversation holds only
// system text, the request gets a marker as its message.
func (f Anthropic) Encode(s *convo.Snapshot) (Request, error) { return encode(f, s) }

// WithParams returns f for requests that also have params, which is given to
// [Request.With]. Encode counts the cache marks in them, such as those of their tools, and
// refers to these tools. If they name a container, Encode does not.
func (f Anthropic) WithParams(params any) Anthropic {
	data, _ := json.Marshal(params) // With reports an error
	all, _ := fields("", data)
	f.params = anthropicParams{toolMarks: marksOfParams(params), container: containerID(all["container"]), tools: string(all["tools"])}
	return f
}

func (f Anthropic) rule() cacheRule {
	return cacheRuleOf(f.CacheLifetime, f.CacheTools, f.params.toolMarks)
}

func (f Anthropic) begin(_ *tally, lost *losses) (profile, writer) {
	takes := takesNotes(f.Model)
	p := profile{paths: overflow.Dotted, format: FormatAnthropic, model: f.Model, compacts: f.takesCompaction, notes: takes, notesLast: takes, ids: anthropicIDs, accepts: anthropicToolNames, names: anthropicNames, systemSum: f.SystemSummary, marks: true, seals: f.Seals.of(f.Model)}
	return p, &anthropicWriter{f: f, lost: lost, rule: f.rule()}
}

// An anthropicMessage is a message that is being written.
type anthropicMessage struct {
	role    string
	list    []byte      // the message up to its last block; for an opaque message, the whole
	start   int         // length of list before the first block
	solid   int         // length of list up to the last block that can end a message
	room    int         // offset in list where a cache mark of the format can be inserted; 0: none
	spot    int         // offset in list where the caller's mark may be; 0: none
	marks   []cacheMark // of the caller, in order; never changed in place
	thinks  bool        // begins with a thinking block
	results bool        // holds results
	asks    bool        // a user message that holds more than results
	passing bool        // holds a text that the next request does not have
	opaque  bool        // a message with the role system that was read as one block
	betas   []string    // that it needs
	paused  bool        // ends with a block of a tool that the provider runs; a request may end so
	native  bool        // a compaction of the provider

	thoughts []place // of the thinking at the end of list
}

// json returns the message with cache marks. Without marks, it uses the memory after m.list
// if there is room.
func (m *anthropicMessage) json(marks []cacheMark) json.RawMessage {
	end := "]}"
	if m.opaque {
		end = ""
	}
	if len(marks) > 0 {
		return withMarks(m.list, marks, anthropicMark, end)
	}
	return slices.Clip(append(m.list, end...))
}

// added is called after each block that is not thinking. The mark argument
// reports whether the block can have a cache mark of the format.
func (m *anthropicMessage) added(mark bool) {
	m.solid, m.paused, m.thoughts = len(m.list), false, nil
	m.spot = len(m.list) - 1
	if mark {
		m.room = len(m.list) - 1
	}
}

func (m *anthropicMessage) text(s string) {
	m.passing = m.passing || s == continueMarker
	m.list = appendPart(m.list, `"text"`, "text", s)
	m.added(true)
}

// cite adds citations to the last text written.
func (m *anthropicMessage) cite(citations json.RawMessage) {
	if citations != nil {
		m.list = append(appendRawField(m.list[:len(m.list)-1], "citations", string(citations)), '}')
		m.added(true)
	}
}

// mark sets the caller's mark on the last block that can have one.
func (m *anthropicMessage) mark(long bool, at place, lost *losses) {
	if m.spot > 0 {
		m.marks = appendMark(m.marks, m.spot, long, partPlace{at, whole})
	} else {
		lost.tell(at, whole, lostCacheMark, "")
	}
}

// An anthropicWriter collects the messages of a request. Only the last two of them may
// still change.
type anthropicWriter struct {
	f    Anthropic
	lost *losses
	rule cacheRule
	msgs []anthropicMessage
	done doneMessages     // the first of msgs
	size int              // approximate bytes of the message of the projection
	sys  anthropicMessage // its list is the system text that system last returned

	waiting []waitingCall // of the current turn of the assistant; those of a saved state are never changed
	in      string        // the container of the newest answer
	byCode  []string      // the IDs of the calls in it that code has made

	begun   bool         // the following are set
	defined []convo.Tool // of the request
	tools   toolSet      // those of the parameters included

	references []reference // all that were ever written
	refers     bool        // what is written depends on tools in another way
	inline     bool        // a message defines tools, so that those of the request are not known
}

// A savedAnthropic is the state of an anthropicWriter.
type savedAnthropic struct {
	msgs    []anthropicMessage
	done    doneMessages
	last    [2]anthropicMessage // of msgs
	waiting []waitingCall
}

func (w *anthropicWriter) grow(n int) {
	w.msgs, w.done.list = make([]anthropicMessage, 0, n), make([]json.RawMessage, 0, n)
}

func (w *anthropicWriter) save() any {
	s := savedAnthropic{msgs: w.msgs, done: w.done, waiting: w.waiting}
	copy(s.last[:], lastTwo(w.msgs))
	return s
}

func (w *anthropicWriter) restore(state any) {
	s := state.(savedAnthropic)
	w.msgs, w.done, w.waiting = s.msgs, s.done, s.waiting
	copy(lastTwo(w.msgs), s.last[:])
	w.clip()
}

// lastTwo returns the last two elements of a list, or all if there are fewer.
func lastTwo[E any](list []E) []E { return list[max(len(list)-2, 0):] }

// to returns the message to which the next blocks of a role are added. Blocks
// of the user are added to the last message if it is a user message. Blocks
// of the assistant are added only to a message that ends with thinking, because
// thinking cannot end a message.
func (w *anthropicWriter) to(role string) *anthropicMessage {
	if role != "assistant" {
		w.finish()
	}
	if n := len(w.msgs); n > 0 {
		m := &w.msgs[n-1]
		switch {
		case m.role == role && (role == "user" || m.solid < len(m.list)):
			return m
		case m.role == "system" && role == "user":
			w.to("assistant").text(bridgeMarker)
		}
	}
	return w.begin(role)
}

// begin adds a message.
func (w *anthropicWriter) begin(role string) *anthropicMessage {
	b := append(strictjson.Key(appendStringField(begin(w.size), "role", role), "content"), '[')
	return w.push(anthropicMessage{role: role, list: b, start: len(b), solid: len(b)})
}

// push adds a message. All but the last two can then no longer change.
func (w *anthropicWriter) push(m anthropicMessage) *anthropicMessage {
	w.msgs = append(w.msgs, m)
	for i := len(w.done.list); i < len(w.msgs)-2; i++ {
		m := &w.msgs[i]
		w.done.add(m.json(nil), len(m.marks)+len(m.betas) > 0)
	}
	return &w.msgs[len(w.msgs)-1]
}

// ask returns the message to which content of the user other than results is added.
func (w *anthropicWriter) ask() *anthropicMessage {
	w.endTurn()
	return w.to("user")
}

// stand adds a marker as a user message.
func (w *anthropicWriter) stand(marker string) {
	m := w.ask()
	m.text(marker)
	m.asks = true
}

// finish removes thinking from the end of the last message, if it is an
// assistant message.
func (w *anthropicWriter) finish() {
	n := len(w.msgs)
	if n == 0 || w.msgs[n-1].role != "assistant" {
		return
	}
	m := &w.msgs[n-1]
	if m.solid < len(m.list) {
		for _, at := range m.thoughts {
			w.lost.tell(at, whole, lostReasoning, "")
		}
		m.thoughts = nil
		m.list = m.list[:m.solid:m.solid] // restore brings the removed bytes back
	}
	if m.solid == m.start {
		w.msgs = w.msgs[:n-1]
		w.reopen()
	}
}

// reopen is called after messages were removed: the last two may change again.
func (w *anthropicWriter) reopen() {
	w.done.cut(len(w.msgs) - 2)
	w.clip()
}

// clip has the next bytes of the messages that are not done written to new memory, since requests
// have the bytes after them.
func (w *anthropicWriter) clip() {
	for i := len(w.done.list); i < len(w.msgs); i++ {
		w.msgs[i].list = slices.Clip(w.msgs[i].list)
	}
}

func (w *anthropicWriter) request(p *projector, s *convo.Snapshot, r *Request) error {
	w.finish()
	w.size = 0
	if w.isStranded() {
		w.endTurn()
	}
	n := len(w.msgs)
	if n == 0 && r.System == nil {
		return ErrEmpty
	}
	var first anthropicWriter // a marker before the messages
	if n > 0 && w.msgs[0].role == "assistant" && !w.msgs[0].native {
		first.stand(earlierMarker)
	}
	if n > 0 && w.msgs[n-1].role == "assistant" && !w.msgs[n-1].paused {
		native := w.msgs[n-1].native
		w.endTurn()
		if native || w.f.UserLast || refusesAssistantLast(w.f.Model) {
			w.stand(continueMarker)
		}
	} else if n == 0 {
		w.stand(continueMarker)
	}
	r.NoThinking = p.seals != SealsChecked && w.isPlain() && p.lacksThinking(s)
	w.contain(r)
	w.rule.own = p.defined.marks
	marks := w.marks(&first)
	r.CacheTTL = w.rule.lifetime(marks)
	if of := marksOf(marks, inSystem); r.System != nil && len(of) > 0 {
		r.System = withMarks(r.System, of, anthropicMark, "")
	}
	var betas []string
	for i := range w.done.special(len(w.msgs)) {
		betas = append(betas, w.msgs[i].betas...)
	}
	slices.Sort(betas)
	if len(betas) > 0 {
		r.Headers = map[string]string{"anthropic-beta": strings.Join(slices.Compact(betas), ",")}
	}
	r.references = slices.Clip(w.references)
	r.Messages = make([]json.RawMessage, 0, len(w.msgs)+1)
	for i := range first.msgs {
		r.Messages = append(r.Messages, first.msgs[i].json(marksOf(marks, inFront)))
	}
	r.Messages = w.done.appendTo(r.Messages, len(w.msgs), marks, func(i int, marks []cacheMark) json.RawMessage { return w.msgs[i].json(marks) })
	return nil
}

// marks returns the cache marks of the request. The marks of the format are on the system
// text and on the newest two user messages that the next request will also hold. If there
// is room for fewer, the newest message comes first, and then the system text.
func (w *anthropicWriter) marks(first *anthropicWriter) []cacheMark {
	var own, auto []cacheMark
	for _, m := range w.sys.marks {
		m.message = inSystem
		own = append(own, m)
	}
	for i := range w.done.special(len(w.msgs)) {
		for _, m := range w.msgs[i].marks {
			m.message = i
			own = append(own, m)
		}
	}
	if w.f.Cache {
		for i := len(w.msgs) - 1; i >= 0 && len(auto) < 2; i-- {
			if m := &w.msgs[i]; m.role == "user" && m.room > 0 && !m.passing {
				auto = append(auto, cacheMark{message: i, at: m.room})
			}
		}
		if len(auto) < 2 && len(first.msgs) > 0 {
			auto = append(auto, cacheMark{message: inFront, at: first.msgs[0].room})
		}
		if w.sys.room > 0 {
			auto = slices.Insert(auto, min(len(auto), 1), cacheMark{message: inSystem, at: w.sys.room})
		}
	}
	return w.rule.choose(own, auto, w.lost)
}

func (w *anthropicWriter) message(t *message) {
	w.size = t.size()
	switch t.role {
	case convo.RoleTool:
		m := w.to("user")
		for i := range t.results {
			w.result(m, &t.results[i])
		}
	case convo.RoleUser:
		w.user(t)
	case convo.RoleAssistant:
		w.assistant(t)
	case convo.RoleSystem:
		w.note(t)
	}
}

// note writes a message with the role system. It holds texts only.
func (w *anthropicWriter) note(t *message) {
	var m *anthropicMessage
	for i, p := range t.parts {
		text, isText := p.(convo.Text)
		long, isMark := isMark(p)
		switch {
		case isText && m == nil:
			w.beforeSystem()
			m = w.begin("system")
			m.text(string(text))
		case isText:
			m.text(string(text))
		case isMark && m != nil:
			m.mark(long, t.place(i), w.lost)
		case isMark:
			w.lost.tell(t.place(i), whole, lostCacheMark, "")
		default:
			what := lostBlock
			if _, ok := p.(convo.Media); ok {
				what = lostMedia
			}
			w.lost.tell(t.place(i), whole, what, "")
		}
	}
}

func (w *anthropicWriter) user(t *message) {
	for i, p := range t.parts {
		switch p := p.(type) {
		case convo.Text:
			w.ask().text(string(p))
		case convo.Media:
			m := w.ask()
			m.list = w.appendMedia(m.list, p, t.place(i), whole)
			m.added(true)
		case convo.Opaque:
			if long, ok := isMark(p); ok {
				if n := len(w.msgs); n > 0 && w.msgs[n-1].role != "assistant" {
					w.msgs[n-1].mark(long, t.place(i), w.lost)
				} else {
					w.lost.tell(t.place(i), whole, lostCacheMark, "")
				}
				continue
			}
			if list := citationsIn(p); list != nil {
				if text, ok := t.parts[i-1].(convo.Text); ok {
					sent, _ := w.lost.citations(t.place(i), list, string(text))
					w.msgs[len(w.msgs)-1].cite(sent)
				}
				continue
			}
			if raw, marks, ok := anthropicSystemMessage(p.JSON); ok {
				betas := systemBetas(raw)
				if len(betas) > 0 && !w.f.Betas {
					w.lost.tell(t.place(i), whole, lostBlock, "")
					continue
				}
				if !w.changes(raw) {
					w.lost.tell(t.place(i), whole, lostReference, "")
					continue
				}
				w.unmarked(marks, t.place(i), whole)
				w.systemMessage(raw, betas)
				continue
			}
			raw, _, ok := w.opaque(p.JSON, "user", t.place(i), whole)
			if !ok {
				continue
			}
			m := w.ask()
			m.list = appendElement(m.list, raw)
			m.added(false)
		default:
			continue
		}
		if m := &w.msgs[len(w.msgs)-1]; m.role == "user" {
			m.asks = true
		}
	}
}

// systemMessage writes a message with the role system that was read as one block.
func (w *anthropicWriter) systemMessage(raw string, betas []string) {
	w.beforeSystem()
	w.push(anthropicMessage{role: "system", opaque: true, betas: betas, list: []byte(raw), spot: spotIn(raw)})
}

// beforeSystem makes a user message, or a message with the role system, the last one.
func (w *anthropicWriter) beforeSystem() {
	w.endTurn()
	w.finish()
	switch n := len(w.msgs); {
	case n == 0:
		w.stand(earlierMarker)
	case w.msgs[n-1].role == "assistant":
		w.stand(continueMarker)
	}
}

// A sentBlock is a part of an assistant message that is sent, or a cache mark.
type sentBlock struct {
	convo.Part
	kind string // the type of an Opaque block; for citations, those that are sent
	at   place
}

func (w *anthropicWriter) assistant(t *message) {
	thinkingFirst(t)
	w.in, w.byCode = t.container, nil
	blocks := make([]sentBlock, 0, len(t.parts))
	last, empty := -1, true // index of the last block that is not thinking
	changed := false        // a block before the next one is not sent as the model wrote it
	checked := w.f.Seals.of(w.f.Model) != SealsUnchecked
	callers := callersIn(t)
	for i, p := range t.parts {
		said := "" // after the block
		block := sentBlock{Part: p, at: t.place(i)}
		if _, ok := isMark(p); ok {
			blocks = append(blocks, block)
			continue
		}
		switch q := p.(type) {
		case convo.Reasoning:
			sent := convo.Reasoning{Encrypted: q.Encrypted}
			if q.Signature != "" {
				sent = convo.Reasoning{Text: q.Text, Signature: q.Signature}
			}
			if checked && (changed || len(w.waiting) > 0) {
				sent = convo.Reasoning{} // a user message would remove the waiting call before it
			}
			w.lost.reasoning(block.at, q, sent)
			if sent == (convo.Reasoning{}) {
				continue
			}
		case convo.Media:
			w.lost.tell(block.at, whole, lostMedia, "")
			block.Part = convo.Text(mediaText(q))
		case convo.Opaque:
			if _, ok := fieldsOf(q); ok {
				if !isCallerAt(callers, block.at) {
					w.lost.tell(block.at, whole, lostBlock, "")
				}
				continue // written with the call
			}
			if list := citationsIn(q); list != nil {
				if text, ok := t.parts[i-1].(convo.Text); ok {
					sent, all := w.lost.citations(block.at, list, string(text))
					block.kind, changed = string(sent), changed || !all
					blocks = append(blocks, block)
				}
				continue
			}
			raw, kind, ok := w.opaque(q.JSON, "assistant", block.at, whole)
			if !ok {
				changed = true
				continue
			}
			if kind == toolSearchResult {
				raw, said = w.refer(raw, block.at, whole)
				changed = changed || said != ""
			}
			block.Part, block.kind = convo.Opaque{JSON: raw}, kind // without a Format
		}
		if !isReasoning(p) {
			last = len(blocks)
		}
		blocks, empty = append(blocks, block), false
		if said != "" {
			last = len(blocks)
			blocks = append(blocks, sentBlock{Part: convo.Text(said), at: nowhere})
		}
	}
	if empty {
		for _, b := range blocks {
			w.lost.unsaid(b.at, whole, b.Part)
		}
		return
	}
	m := w.to("assistant")
	calls := 0
	for i := range blocks {
		switch p := blocks[i].Part.(type) {
		case convo.Reasoning:
			m.thinks = m.thinks || len(m.list) == m.start
			m.list = appendThinking(m.list, p)
			m.thoughts = append(m.thoughts, blocks[i].at)
		case convo.Text:
			text := string(p)
			if i == last {
				text = strings.TrimRightFunc(text, unicode.IsSpace)
			}
			m.text(text)
		case convo.Opaque:
			if long, ok := isMark(p); ok {
				m.mark(long, blocks[i].at, w.lost)
				continue
			}
			if p.Format != "" { // citations
				if blocks[i].kind != "" {
					m.cite(json.RawMessage(blocks[i].kind))
				}
				continue
			}
			if isServerBlock(blocks[i].kind) {
				w.serve(p.JSON, blocks[i].at)
				continue
			}
			m.list = appendElement(m.list, p.JSON)
			m.added(false)
		case convo.ToolCall:
			m.list = appendPart(m.list, `"tool_use"`, "id", p.ID)
			m.list = appendStringField(m.list[:len(m.list)-1], "name", p.Name)
			m.list = appendRawField(m.list, "input", object(p.Arguments))
			if by, ok := callers[calls]; ok {
				w.called(m, p.ID, by)
			}
			m.list = append(m.list, '}')
			m.added(true)
			calls++
		}
	}
}

// anthropicEmptyError is the text of an error result that has none. The API
// refuses an empty text.
const anthropicEmptyError = "unknown error"

func (w *anthropicWriter) result(m *anthropicMessage, r *result) {
	parts := make([]convo.Part, 0, len(r.Parts))
	inside := make([]int, 0, len(r.Parts)) // indices of parts in the snapshot
	var marks []cacheMark                  // of the caller; at is the number of parts before the mark
	onlyText := r.IsError || slices.Contains(w.byCode, r.CallID)
	for i, p := range r.Parts {
		if long, ok := isMark(p); ok {
			marks = appendMark(marks, len(parts), long, partPlace{r.at, r.inside(i)})
			continue
		}
		switch q := p.(type) {
		case convo.Media:
			if _, kind := anthropicMedia(q); kind == "" || onlyText {
				w.lost.tell(r.at, r.inside(i), lostMedia, "")
				p = convo.Text(mediaText(q))
			}
		case convo.Opaque:
			raw, kind, ok := w.opaque(q.JSON, "result", r.at, r.inside(i))
			if !ok {
				continue
			}
			if onlyText && kind != "text" {
				w.lost.tell(r.at, r.inside(i), lostBlock, "")
				continue
			}
			p = convo.Opaque{JSON: raw}
			if kind == toolReference {
				if _, text := w.refer(raw, r.at, r.inside(i)); text != "" {
					p = convo.Text(text)
				}
			}
		}
		parts, inside = append(parts, p), append(inside, r.inside(i))
	}
	if len(parts) == 0 && r.IsError {
		parts = append(parts, convo.Text(anthropicEmptyError))
	}
	mark := func(behind, at int) {
		for _, k := range marks {
			switch {
			case k.at != behind:
			case at > 0:
				m.marks = appendMark(m.marks, at, k.long, k.of...)
			default:
				k.tell(w.lost)
			}
		}
	}
	if len(parts) > 0 {
		mark(0, m.spot)
	}
	b := appendPart(m.list, `"tool_result"`, "tool_use_id", r.CallID)
	b = b[:len(b)-1]
	only := convo.Text("")
	if len(parts) == 1 {
		only, _ = parts[0].(convo.Text)
	}
	if only != "" {
		b = appendStringField(b, "content", string(only))
		m.passing = m.passing || r.IsError && only == noResult
	} else if len(parts) > 0 {
		b = append(strictjson.Key(b, "content"), '[')
		for i, p := range parts {
			switch p := p.(type) {
			case convo.Text:
				b = appendPart(b, `"text"`, "text", string(p))
			case convo.Media:
				b = w.appendMedia(b, p, r.at, inside[i])
			case convo.Opaque:
				b = appendElement(b, p.JSON)
			}
			if i < len(parts)-1 {
				mark(i+1, len(b)-1)
			}
		}
		b = append(b, ']')
	}
	if r.IsError {
		b = appendRawField(b, "is_error", "true")
	}
	m.list = append(b, '}')
	m.results = true
	m.added(true)
	mark(len(parts), m.spot)
}

// system returns the system text as blocks, or nil if there is none.
func (w *anthropicWriter) system(sys *projection, lost *losses) (json.RawMessage, []json.RawMessage) {
	m := anthropicMessage{list: []byte{'['}}
	own := anthropicWriter{lost: lost}
	room := 0 // before the summary
	for i, p := range sys.system {
		if i == sys.summary {
			room = m.room
		}
		switch p := p.(type) {
		case convo.Text, convo.Media:
			lost.unsaid(sys.places[i], whole, p)
			m.text(textOf(p))
		case convo.Opaque:
			if long, ok := isMark(p); ok {
				m.mark(long, sys.places[i], lost)
			} else if raw, kind, ok := own.opaque(p.JSON, "system", sys.places[i], whole); ok && kind == "text" {
				m.list = appendElement(m.list, raw)
				m.spot = len(m.list) - 1
			} else if ok {
				lost.tell(sys.places[i], whole, lostBlock, "")
			}
		}
	}
	m.room = cmp.Or(room, m.room)
	w.sys = m
	if len(m.list) == 1 {
		return nil, nil
	}
	return append(m.list, ']'), nil
}

// isPlain reports whether the request ends in the middle of an assistant turn
// that does not begin with thinking.
func (w *anthropicWriter) isPlain() bool {
	i := len(w.msgs) - 1
	for i >= 0 && w.msgs[i].role == "system" {
		i--
	}
	if i >= 0 && w.msgs[i].role == "user" {
		if !w.msgs[i].results {
			return false
		}
		i--
	}
	plain := false
	for ; i >= 0 && !w.msgs[i].asks; i-- {
		if w.msgs[i].role == "assistant" {
			plain = !w.msgs[i].thinks
		}
	}
	return plain
}

// lacksThinking reports whether the newest assistant turn has lost, or may have
// lost, the thinking that it began with. The doc comment of Anthropic lists the
// cases.
func (p *projector) lacksThinking(s *convo.Snapshot) bool {
	if p.head < 0 {
		return false
	}
	first, _ := s.At(p.head)
	before, _ := s.At(p.head - 1)
	own := p.isOwn(first.Message.Origin)
	for _, part := range first.Message.Parts {
		if r, ok := part.(convo.Reasoning); ok && (!own || r.Signature == "" && r.Encrypted == "") {
			return true
		}
	}
	switch {
	case first.ID > before.ID+1:
		return true
	case own:
		return false
	case first.Message.Origin != convo.Origin{}:
		return true
	}
	return p.reasons
}

// Tools implements [ToolWriter]. With CacheTools the mark is on the last tool, unless that
// is an opaque one with a mark of its own.
func (f Anthropic) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	functions, err := anthropicTools.write(tools, f.StrictTools, func(b []byte, t convo.Tool, schema string) []byte {
		b = appendTool(b, t, "input_schema", schema)
		if f.StrictTools {
			b = append(b, `,"strict":true`...)
		}
		return b
	})
	list, err := withOwn(functions, err, tools, FormatAnthropic)
	if r := f.rule(); list != nil && r.tools && !isMarked(tools, FormatAnthropic) {
		list = slices.Concat(list[:len(list)-2], []byte(anthropicMark(r.long)), []byte("}]"))
	}
	return list, err
}

// isMarked reports whether the last opaque tool of a format has a cache mark.
func isMarked(tools []convo.Tool, format string) bool {
	for _, t := range slices.Backward(tools) {
		if t.Opaque.Format == format {
			all, _ := fields("", []byte(t.Opaque.JSON))
			return all["cache_control"] != nil
		}
	}
	return false
}

func (w *anthropicWriter) asked() bool {
	n := len(w.msgs)
	return n > 0 && (w.msgs[n-1].role != "assistant" || w.msgs[n-1].paused || w.msgs[n-1].native)
}

// anthropicMark returns a mark as a field of a block.
func anthropicMark(long bool) string {
	if long {
		return `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}
