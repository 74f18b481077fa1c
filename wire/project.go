package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

// Every format encodes a projection of the snapshot: the messages in the order
// that all providers want. System text comes first, each call has one result,
// results follow their calls in call order, nothing is blank, ids are valid for
// the provider, and parts that only another provider understands are left out.

// A profile describes a format to the projection.
type profile struct {
	format string // in Opaque.Format
	from   string // Origin.Format of its own answers; empty: format
	model  string // the model that the request is for; empty if not known
	ids    idRule
	names  *names

	replay    convo.Replay // which reasoning is sent; the default is all
	systemSum bool         // the summary is part of the system text
	bare      bool         // calls need no ids, so that those made by convo are left out
	marks     bool         // cache marks of the caller's are sent

	// knows reports whether an opaque block can be sent in a message of a role, or with
	// RoleTool in a result. If it is nil, all can.
	knows func(o convo.Opaque, role convo.Role) bool

	// named reports whether a message of a role names its author in a field, and not in
	// tags. If it is nil, none does.
	named func(role convo.Role, author string) bool

	maker string // the last model that isOwn compared with model,
	same  bool   // and whether they are the same
}

// A message is one message of the projection.
type message struct {
	role    convo.Role         // user, assistant or tool
	author  string             // of user and assistant; where a field names it
	parts   []convo.Part       // of user and assistant; calls and the marks behind them come last, with the ids to be sent
	results []convo.ToolResult // of tool; in call order, with the ids to be sent
	own     bool               // of assistant; it was made by the format and model of the profile
	thinks  bool               // of assistant; its reasoning is sent
	all     []convo.Part       // of assistant; its parts in the snapshot, in their order there
}

// calls returns the tool calls of a message, which are its last parts. Cache marks can
// stand behind them.
func (t *message) calls() []convo.Part {
	i := slices.IndexFunc(t.parts, isCall)
	if i < 0 {
		return nil
	}
	return t.parts[i:]
}

// size estimates how many bytes a message takes in JSON.
func (t *message) size() int {
	n := sizeOf(t.parts)
	for i := range t.results {
		n += sizeOf(t.results[i].Parts) + 96
	}
	return n
}

// said returns the parts of a message before its calls.
func (t *message) said() []convo.Part { return t.parts[:len(t.parts)-len(t.calls())] }

func isCall(p convo.Part) bool { _, ok := p.(convo.ToolCall); return ok }

func isReasoning(p convo.Part) bool { _, ok := p.(convo.Reasoning); return ok }

// A projector projects the messages of a snapshot, and gives them to a writer. Both
// can go back to where they were, to go on with another snapshot that begins in the
// same way.
type projector struct {
	profile
	writer writer
	seen   *tally
	projection

	snap  *convo.Snapshot   // that is being read
	next  message           // that the writer is given; used again
	text  json.RawMessage   // the system text, where it is not among the messages
	front []json.RawMessage // the messages of the system text
	wrote bool              // text and front are up to date
}

// A projection is what a projector remembers of the messages so far.
type projection struct {
	system     []convo.Part // Text and Opaque
	summary    int          // index in system of the summary; the length of system if it is not there
	needsTools bool

	before  bool // the summary is part of the system text, and comes as the first message that is not of it
	tools   bool // whether a tool was called since the newest user message
	reasons bool // whether any message holds reasoning
	first   int  // index of the first entry of the newest run of assistant messages and results
	head    int  // index of the first assistant message in it; -1 if there is none
	running bool // the run has not ended
}

// A writer writes the messages of a projection in one format.
type writer interface {
	// message writes the next message, which is never empty. It does not keep t.
	message(t *message)

	// system returns the system text, as a text of its own or as messages.
	system(p *projection) (json.RawMessage, []json.RawMessage)

	// request completes a request that has the system text, with the messages so far. It
	// may change the writer.
	request(p *projector, s *convo.Snapshot, r *Request) error

	// save returns the state of the writer, and restore brings it back. States are
	// restored from the newest to the oldest; those that were saved after one that is
	// restored are lost. Bytes that a request has are never written again.
	save() any
	restore(state any)
}

// noResult is the text of the result that an open call gets in the request.
const noResult = "no result"

// Markers are sent where a provider wants a user message and the conversation
// has none.
const (
	earlierMarker  = "[The earlier part of this conversation is not shown.]"
	continueMarker = "[Continue.]"
)

// newProjector returns a projector for a snapshot.
func newProjector(s *convo.Snapshot, f builtin) *projector {
	p := &projector{seen: new(tally)}
	p.profile, p.writer = f.begin(p.seen)
	p.head = -1
	if p.systemSum {
		_, p.before = s.Summary()
	}
	return p
}

// read gives the writer the messages of a snapshot from an entry on. It calls point
// where it has read no message of the next entry, or before it, and the entry begins an
// exchange; and at the end.
func (p *projector) read(s *convo.Snapshot, from int, point func(at int)) {
	p.snap = s
	var first convo.Message // of an exchange
	var results []convo.Message
	open, last := false, from
	for i, m := range s.MessagesNamed(from, p.named) {
		if open && m.Role == convo.RoleTool {
			results = append(results, m)
		} else {
			if open {
				p.exchange(&first, results)
			}
			if i > last && point != nil {
				point(i)
			}
			first, results, open = m, results[:0], true
		}
		p.follow(i, &m)
		last = i
	}
	if open {
		p.exchange(&first, results)
	}
	if last < s.Len() && point != nil {
		point(s.Len())
	}
}

// request returns the request for what was read of s, which is all of it.
func (p *projector) request(s *convo.Snapshot) (Request, error) {
	if !p.wrote {
		p.text, p.front = p.writer.system(&p.projection)
		p.wrote = true
	}
	r := Request{System: p.text, Messages: slices.Clip(p.front), NeedsTools: p.needsTools, names: p.names}
	if err := p.writer.request(p, s, &r); err != nil {
		return Request{}, err
	}
	return r, nil
}

// A point is what a projector needs to go back to a place.
type point struct {
	at         int // index of the first entry that was not read
	seen       int // length of seen.log
	projection projection
	writer     any
}

func (p *projector) point(at int) point {
	return point{at, len(p.seen.log), p.projection, p.writer.save()}
}

func (p *projector) back(to *point) {
	p.wrote = p.wrote && len(p.system) == len(to.projection.system)
	p.seen.back(to.seen)
	p.projection = to.projection
	p.writer.restore(to.writer)
}

// exchange projects a message and the tool messages that follow it.
func (p *projector) exchange(m *convo.Message, results []convo.Message) {
	m.Parts = p.native(m.Parts)
	switch {
	case m.Role == convo.RoleSystem:
		p.system = append(p.system, p.keep(m, false)...)
		p.summary, p.wrote = len(p.system), false
	case p.before:
		p.system = append(p.system, m.Parts...)
		p.before, p.wrote = false, false
	case m.Role == convo.RoleUser:
		p.tools = false
		p.add(message{role: m.Role, author: p.author(m), parts: p.keep(m, false)})
	case m.Role == convo.RoleAssistant:
		t := message{role: m.Role, author: p.author(m), own: p.isOwn(m.Origin), all: m.Parts}
		p.tools = p.tools || slices.ContainsFunc(m.Parts, isCall)
		t.thinks = t.own && (p.replay <= convo.ReplayAll || p.replay == convo.ReplayTools && p.tools)
		t.parts = p.keep(m, t.thinks)
		answers := p.answers(results, t.calls())
		p.add(t)
		if len(answers) > 0 {
			p.add(message{role: convo.RoleTool, results: answers})
			p.needsTools = true
		}
	}
	// Tool messages are read by answers. Results without a call are left out.
}

// author returns the author of a message if a field names it.
func (p *profile) author(m *convo.Message) string {
	if p.named != nil && p.named(m.Role, m.Author) {
		return m.Author
	}
	return ""
}

// follow notes which entries belong to the newest run of assistant messages and
// results.
func (p *projector) follow(at int, m *convo.Message) {
	p.reasons = p.reasons || slices.ContainsFunc(m.Parts, isReasoning)
	switch m.Role {
	case convo.RoleSystem:
		p.running, p.head = false, -1
	case convo.RoleUser:
		p.running = false
	default:
		if !p.running {
			p.running, p.first, p.head = true, at, -1
		}
		if m.Role == convo.RoleAssistant && p.head < 0 {
			p.head = at
		}
	}
}

// add gives a message to the writer unless it is empty.
func (p *projector) add(t message) {
	if len(t.parts) > 0 || len(t.results) > 0 {
		p.next = t
		p.writer.message(&p.next)
	}
}

// isOwn reports whether an assistant message was made by the format and model
// of the profile. Only its maker gets the reasoning of a message back.
func (p *profile) isOwn(o convo.Origin) bool {
	if from := cmp.Or(p.from, p.format); o.Format != from || p.model == "" {
		return o.Format == from
	}
	if p.maker != o.Model || o.Model == "" {
		p.maker, p.same = o.Model, sameModel(o.Model, p.model)
	}
	return p.same
}

// keep returns the parts of a message that can be sent, in order, but with the
// calls last. thinks says whether its reasoning is.
func (p *profile) keep(m *convo.Message, thinks bool) []convo.Part {
	parts := make([]convo.Part, 0, len(m.Parts))
	calls := false
	cites := false // the part before is a text that is sent, or belongs to one
	for _, part := range m.Parts {
		keep, isText := true, false
		switch part := part.(type) {
		case convo.Text:
			keep = !isBlank(string(part))
			isText = keep
		case convo.Reasoning:
			keep = thinks
		case convo.ToolCall:
			calls, keep = true, false
		case convo.Opaque:
			if _, mark := isMark(part); mark {
				keep = p.marks && !calls && len(parts) > 0
			} else if keep = p.isBlock(part, m.Role); keep && isAttachment(part) {
				keep, isText = cites, cites
			}
		}
		cites = isText
		if keep {
			parts = append(parts, part)
		}
	}
	if !calls {
		return parts
	}
	after := false // a call
	for _, part := range m.Parts {
		_, mark := isMark(part)
		after = after || isCall(part)
		if isCall(part) || mark && p.marks && after {
			parts = append(parts, part)
		}
	}
	return parts
}

// answers gives the calls the ids to be sent, if any, and returns one result for each
// call: the first one with its id in the tool messages that follow and that
// answers no earlier call, or else one that says noResult.
func (p *projector) answers(after []convo.Message, calls []convo.Part) []convo.ToolResult {
	if len(calls) == 0 {
		return nil
	}
	var given []convo.ToolResult
	for i := range after {
		for _, part := range after[i].Parts {
			if r, ok := part.(convo.ToolResult); ok {
				given = append(given, r)
			}
		}
	}
	waiting := make(map[resultKey][]int, len(given)) // indices of the results that answer no call yet
	for k, r := range given {
		key := keyOf(r.CallID, r.Name)
		waiting[key] = append(waiting[key], k)
	}
	// Some of the calls of a message with ids and some without could not be told
	// from results that answer another one.
	bare := p.bare && !slices.ContainsFunc(calls, func(p convo.Part) bool { return isCall(p) && !p.(convo.ToolCall).Minted })
	results := make([]convo.ToolResult, 0, len(calls))
	for i, part := range calls {
		call, ok := part.(convo.ToolCall)
		if !ok {
			continue // a cache mark
		}
		var r convo.ToolResult
		key := keyOf(call.ID, call.Name)
		if len(waiting[key]) == 0 && call.ID == "" {
			key.name = "" // a result may have neither id nor name
		}
		if mine := waiting[key]; len(mine) > 0 {
			waiting[key] = mine[1:]
			r = given[mine[0]]
			r.Parts = p.keepResult(p.native(r.Parts))
		} else {
			r = convo.ToolResult{Parts: []convo.Part{convo.Text(noResult)}, IsError: true}
		}
		if bare {
			call.ID = ""
		} else {
			call.ID = p.seen.assign(p.ids, call.ID)
		}
		r.CallID, r.Name = call.ID, call.Name
		results = append(results, r)
		calls[i] = call
	}
	return results
}

// A resultKey pairs calls and results: by id or, if they have no ids, by the
// name of the tool.
type resultKey struct{ id, name string }

func keyOf(id, name string) resultKey {
	if id != "" {
		name = ""
	}
	return resultKey{id, name}
}

func (p *profile) keepResult(parts []convo.Part) []convo.Part {
	kept := make([]convo.Part, 0, len(parts))
	for _, part := range parts {
		switch part := part.(type) {
		case convo.Text:
			if !isBlank(string(part)) {
				kept = append(kept, part)
			}
		case convo.Opaque:
			_, mark := isMark(part)
			if mark && p.marks || !mark && p.isBlock(part, convo.RoleTool) {
				kept = append(kept, part)
			}
		default:
			kept = append(kept, part)
		}
	}
	return kept
}

// isBlock reports whether an opaque part is a block of this format that can be sent in a
// message of a role.
func (p *profile) isBlock(o convo.Opaque, role convo.Role) bool {
	if o.Format != p.format || kindOf(json.RawMessage(o.JSON)) != '{' || !json.Valid([]byte(o.JSON)) || !utf8.ValidString(o.JSON) {
		return false
	}
	return p.knows == nil || p.knows(o, role)
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// merged returns messages of one role as one.
func merged(group []message) message {
	t := group[0]
	if len(group) > 1 {
		var said, calls, all []convo.Part
		for k := range group {
			said, calls = append(said, group[k].said()...), append(calls, group[k].calls()...)
			t.own, t.thinks = t.own && group[k].own, t.thinks || group[k].thinks
			if group[k].thinks {
				all = append(all, group[k].all...)
			} else { // its reasoning is not sent
				all = append(all, group[k].calls()...)
			}
		}
		t.parts, t.all = append(said, calls...), all
	}
	t.parts = slices.Clip(t.parts)
	return t
}

// marker returns a message with a text that is not part of the conversation.
func marker(role convo.Role, text string) *message {
	return &message{role: role, parts: []convo.Part{convo.Text(text)}}
}

// joinTexts joins the texts of parts. Media are replaced by a short text, and
// other parts are left out.
func joinTexts(parts []convo.Part, sep string) string {
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			texts = append(texts, string(p))
		case convo.Media:
			texts = append(texts, mediaText(p))
		}
	}
	return strings.Join(texts, sep)
}

// mediaText returns the text that stands for media that a format cannot carry.
func mediaText(m convo.Media) string {
	kind := m.MIME
	if kind == "" {
		kind = "a file"
	}
	if m.Data == "" && m.URL != "" {
		return "[" + kind + " at " + m.URL + "]"
	}
	return "[" + kind + ", not shown]"
}
