package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-c1b73e60/convo"
)

// Anthropic is the format of Anthropic's Messages API.
//
// Not carried: reasoning of other makers, and reasoning without a signature;
// media in assistant messages and of kinds that the API does not read, which a
// short text names (it reads JPEG, PNG, GIF, WebP, PDF, and text as
// text/plain); media in error results; the names of results. Trailing space
// of the last text of an assistant message is cut off, and reasoning that
// nothing follows is left out. Decode names what it cannot keep: cache marks,
// citations of texts, the caller of a call.
//
// A message with the role system among the others is an [convo.Opaque] part of
// a user message, {"role":"system",...}, and is written as it was. It stands
// after a user message and before one of the assistant, or at the end; where
// a user message follows it, the assistant has a marker in between.
//
// Request.NoThinking is set when a turn of the assistant is under way (the
// request ends with results or with the assistant), its first message does not
// begin with a thinking block, and one of these says that such a block is
// missing: that message holds reasoning that cannot be sent; entries between
// the user's message and it are gone from the conversation; another format or
// model made it, or nobody knows who did and there is reasoning elsewhere. The
// API refuses such a request when thinking is "enabled"; a message of the
// model itself that is in place and holds no reasoning never had any, as
// happens when thinking is "adaptive".
type Anthropic struct {
	Model    string // the request goes to; own thinking goes back only to it. Empty: to any
	Cache    bool   // set cache marks: at most one on the system text and two on messages
	UserLast bool   // the last message must be the user's: models from 4.6 on
}

const anthropicFormat = "anthropic"

var anthropicNames = &names{"system", "messages"}

// Encode writes the request. A request needs a message: where a conversation
// has none, a marker is sent.
func (f Anthropic) Encode(s *convo.Snapshot) (Request, error) {
	p, err := project(s, profile{format: anthropicFormat, model: f.Model, ids: anthropicIDs})
	if err != nil {
		return Request{}, err
	}
	w := anthropicWriter{served: make(map[string]bool)}
	for i := range p.turns {
		w.turn(&p.turns[i])
	}
	w.finish()
	if len(w.msgs) > 0 && w.msgs[0].role == "assistant" {
		first := anthropicWriter{}
		first.stand(earlierMarker)
		w.msgs = append(first.msgs, w.msgs...)
	}
	r := Request{NeedsTools: p.needsTools, names: anthropicNames}
	if r.System = w.systemText(p.system, f.Cache); r.System == nil && len(w.msgs) == 0 {
		return Request{}, ErrEmpty
	}
	if n := len(w.msgs); n == 0 || f.UserLast && w.msgs[n-1].role == "assistant" && !w.msgs[n-1].paused {
		w.stand(continueMarker)
	}
	r.NoThinking = w.isPlain() && f.lacksThinking(s)
	if f.Cache {
		w.mark()
	}
	r.Messages = make([]json.RawMessage, len(w.msgs))
	for i := range w.msgs {
		r.Messages[i] = w.msgs[i].json()
	}
	return r, nil
}

// An anthropicMessage is a message in the making.
type anthropicMessage struct {
	role    string
	list    []byte // the blocks: an array without its end; of system: the message
	solid   int    // its length up to the last block that may end a message
	room    int    // where a cache mark may stand in it; 0: nowhere
	thinks  bool   // begins with a thinking block
	results bool   // answers calls
	asks    bool   // of the user, with more than results
	passing bool   // a later request has other blocks in its place
	paused  bool   // ends with a block of a tool that the provider runs
}

func (m *anthropicMessage) json() json.RawMessage {
	if m.role == "system" {
		return m.list
	}
	b := appendStringField(append(make([]byte, 0, len(m.list)+32), '{'), "role", m.role)
	b = append(appendField(b, "content"), m.list...)
	return append(b, "]}"...)
}

// added is called after each block, except those of thinking.
func (m *anthropicMessage) added(mark bool) {
	m.solid, m.paused = len(m.list), false
	if mark {
		m.room = len(m.list) - 1
	}
}

func (m *anthropicMessage) text(s string) {
	m.passing = m.passing || s == continueMarker
	m.list = appendPart(m.list, `"text"`, "text", s)
	m.added(true)
}

// An anthropicWriter collects the messages of a request.
type anthropicWriter struct {
	msgs   []anthropicMessage
	served map[string]bool // ids of calls of tools that the provider runs
}

// to returns the message that the next blocks of a role go into. Blocks of the
// user always go into the last one that is the user's; of the assistant only
// where it ends with thinking, which may not end a message.
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
	w.msgs = append(w.msgs, anthropicMessage{role: role, list: []byte{'['}, solid: 1})
	return &w.msgs[len(w.msgs)-1]
}

// stand puts a marker where a message of the user is wanted.
func (w *anthropicWriter) stand(marker string) {
	m := w.to("user")
	m.text(marker)
	m.asks = true
}

// finish cuts thinking off that nothing follows.
func (w *anthropicWriter) finish() {
	n := len(w.msgs)
	if n == 0 || w.msgs[n-1].role != "assistant" {
		return
	}
	m := &w.msgs[n-1]
	if m.list = m.list[:m.solid]; m.solid == 1 {
		w.msgs = w.msgs[:n-1]
	}
}

func (w *anthropicWriter) turn(t *turn) {
	switch t.role {
	case convo.RoleTool:
		m := w.to("user")
		for i := range t.results {
			w.result(m, &t.results[i])
		}
	case convo.RoleUser:
		w.user(t.parts)
	case convo.RoleAssistant:
		w.assistant(t.parts)
	}
}

func (w *anthropicWriter) user(parts []convo.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			w.to("user").text(string(p))
		case convo.Media:
			m := w.to("user")
			m.list = appendAnthropicMedia(m.list, p)
			m.added(true)
		case convo.Opaque:
			if raw, ok := anthropicSystemMessage(p.JSON); ok {
				w.system(raw)
				continue
			}
			raw, _, ok := w.opaque(p.JSON, "user")
			if !ok {
				continue
			}
			m := w.to("user")
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

// system writes a system message among the others: after one of the user.
func (w *anthropicWriter) system(raw string) {
	w.finish()
	switch n := len(w.msgs); {
	case n == 0:
		w.stand(earlierMarker)
	case w.msgs[n-1].role == "assistant":
		w.stand(continueMarker)
	}
	w.msgs = append(w.msgs, anthropicMessage{role: "system", list: []byte(raw)})
}

func (w *anthropicWriter) assistant(parts []convo.Part) {
	parts = thinkingFirst(parts)
	var blocks []convo.Part // that are sent
	kinds := make([]string, 0, len(parts))
	last := -1 // of them that is no thinking
	for _, p := range parts {
		kind := ""
		switch q := p.(type) {
		case convo.Reasoning:
			if q.Signature == "" && q.Encrypted == "" {
				continue
			}
		case convo.Media:
			p = convo.Text(mediaText(q))
		case convo.Opaque:
			raw, k, ok := w.opaque(q.JSON, "assistant")
			if !ok {
				continue
			}
			p, kind = convo.Opaque{JSON: raw}, k
		case convo.Text, convo.ToolCall:
		default:
			continue
		}
		if _, ok := p.(convo.Reasoning); !ok {
			last = len(blocks)
		}
		blocks, kinds = append(blocks, p), append(kinds, kind)
	}
	if len(blocks) == 0 {
		return
	}
	m := w.to("assistant")
	for i, p := range blocks {
		switch p := p.(type) {
		case convo.Reasoning:
			m.thinks = m.thinks || len(m.list) == 1
			m.list = appendThinking(m.list, p)
		case convo.Text:
			text := string(p)
			if i == last {
				text = strings.TrimRightFunc(text, unicode.IsSpace)
			}
			m.text(text)
		case convo.Opaque:
			m.list = appendElement(m.list, p.JSON)
			m.added(false)
			m.paused = isServerBlock(kinds[i])
		case convo.ToolCall:
			m.list = appendPart(m.list, `"tool_use"`, "id", p.ID)
			m.list = appendStringField(m.list[:len(m.list)-1], "name", anthropicToolName(p.Name))
			m.list = append(appendRawField(m.list, "input", anthropicInput(p.Arguments)), '}')
			m.added(true)
		}
	}
}

// anthropicEmptyError stands in an error result that says nothing, which the
// API does not take.
const anthropicEmptyError = "unknown error"

func (w *anthropicWriter) result(m *anthropicMessage, r *convo.ToolResult) {
	parts := make([]convo.Part, 0, len(r.Parts))
	for _, p := range r.Parts {
		switch q := p.(type) {
		case convo.Media:
			if _, kind := anthropicMedia(q); kind == "" || r.IsError { // an error is text alone
				p = convo.Text(mediaText(q))
			}
		case convo.Opaque:
			raw, kind, ok := w.opaque(q.JSON, "result")
			if !ok || r.IsError && kind != "text" {
				continue
			}
			p = convo.Opaque{JSON: raw}
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 && r.IsError {
		parts = append(parts, convo.Text(anthropicEmptyError))
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
		b = append(appendField(b, "content"), '[')
		for _, p := range parts {
			switch p := p.(type) {
			case convo.Text:
				b = appendPart(b, `"text"`, "text", string(p))
			case convo.Media:
				b = appendAnthropicMedia(b, p)
			case convo.Opaque:
				b = appendElement(b, p.JSON)
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
}

// systemText returns the system field, nil for none.
func (w *anthropicWriter) systemText(parts []convo.Part, cache bool) json.RawMessage {
	m := anthropicMessage{list: []byte{'['}}
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			m.text(string(p))
		case convo.Opaque:
			if raw, kind, ok := w.opaque(p.JSON, "system"); ok && kind == "text" {
				m.list = appendElement(m.list, raw)
			}
		}
	}
	if len(m.list) == 1 {
		return nil
	}
	if cache {
		m.setMark()
	}
	return append(m.list, ']')
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

func (m *anthropicMessage) setMark() {
	if m.room > 0 {
		m.list = slices.Insert(m.list, m.room, []byte(cacheMark)...)
	}
}

// mark marks the newest two messages of the user that later requests hold too.
func (w *anthropicWriter) mark() {
	for i, left := len(w.msgs)-1, 2; i >= 0 && left > 0; i-- {
		if m := &w.msgs[i]; m.role == "user" && m.room > 0 && !m.passing {
			m.setMark()
			left--
		}
	}
}

// isPlain reports whether a turn of the assistant is under way and does not
// begin with thinking.
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

// lacksThinking reports whether the thinking is missing that the newest turn
// of the assistant began with; see Anthropic.
func (f Anthropic) lacksThinking(s *convo.Snapshot) bool {
	i := s.Len() - 1
	roleAt := func(i int) convo.Role {
		e, _ := s.At(i)
		return e.Message.Role
	}
	for roleAt(i) == convo.RoleUser { // after the results
		i--
	}
	head := -1
	for role := roleAt(i); role == convo.RoleAssistant || role == convo.RoleTool; role = roleAt(i) {
		if role == convo.RoleAssistant {
			head = i
		}
		i--
	}
	if head < 0 {
		return false
	}
	first, _ := s.At(head)
	before, _ := s.At(head - 1)
	p := profile{format: anthropicFormat, model: f.Model}
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
	for i := range s.Len() {
		e, _ := s.At(i)
		for _, part := range e.Message.Parts {
			if _, ok := part.(convo.Reasoning); ok {
				return true
			}
		}
	}
	return false
}
