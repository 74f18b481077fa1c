package wire

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/meter"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Every format encodes a projection of the snapshot: the messages in an order that all
// providers accept. System text comes first, each call has one result, results follow
// their calls in call order, nothing is blank, ids are valid for the provider, and parts
// that only another provider understands are left out.

// A profile describes a format to the projection.
type profile struct {
	format string // the Opaque.Format of its blocks
	from   string // Origin.Format of its own answers; empty: format
	model  string // the model that the request is for; empty if not known
	ids    idRule
	names  *names

	accepts func(name string) bool // reports whether the provider accepts the name of a tool

	replay    convo.Replay   // which reasoning is sent; the default is all
	paths     overflow.Paths // how the provider writes the places of a request
	systemSum bool           // the summary is part of the system text
	notes     bool           // notes stay system messages and do not become user messages
	notesLast bool           // notes stand after all messages of the user before the next answer
	bare      bool           // calls need no ids, so ids made by convo are left out
	noIDs     bool           // calls have no ids
	custom    bool           // calls of custom tools do not become function calls
	marks     bool           // the caller's cache marks are sent

	// knows reports whether an opaque block can be sent in a message of a role, or with
	// RoleTool in a result. If it is nil, every block can.
	knows func(o convo.Opaque, role convo.Role) bool

	// compacts reports whether items of a convo.Native can be sent. If it is nil, the
	// format has none; otherwise the writer is a nativeWriter.
	compacts func(items []string) bool

	// named reports whether a field, and not a tag, names the author of a message of a
	// role. If it is nil, all authors are named in tags.
	named func(role convo.Role, author string) bool

	seals SealCheck // whether the model checks that signed reasoning stands where it was made

	maker string // the last model that isOwn compared with model
	same  bool   // whether maker and model are the same
}

// A message is one message of the projection.
type message struct {
	role      convo.Role   // user, assistant or tool; system for a note
	author    string       // for user and assistant, if a field names the author
	parts     []convo.Part // for user and assistant; calls and the marks after them come last, with the ids and names to be sent
	results   []result     // for tool; in call order, with the ids and names to be sent
	own       bool         // for assistant; it was made by the format and model of the profile
	container string       // for assistant; the Origin.Container of an answer in the format of the profile
	thinks    bool         // for assistant; its reasoning is sent
	all       []convo.Part // for assistant; its parts in the snapshot, in their order there

	number int32   // number of the message in the snapshot
	tag    int32   // number of its first parts that are the tag of an author
	places []place // the places of parts; nil: parts are the first parts of the message in the snapshot
	allAt  []place // the places of all; nil: all has the parts of the message in the snapshot
}

// place returns the place of a part.
func (t *message) place(i int) place {
	if t.places != nil {
		return t.places[i]
	}
	return t.placeOfAll(i)
}

// placeOfAll returns the place of a part in the snapshot.
func (t *message) placeOfAll(i int) place {
	if t.allAt != nil {
		return t.allAt[i]
	}
	return place{t.number, int32(i) - t.tag}
}

// split returns a message without its calls, and a message with only its calls.
func (t *message) split() (said, calls message) {
	said, calls = *t, *t
	n := len(t.said())
	places := make([]place, len(t.parts))
	for i := range places {
		places[i] = t.place(i)
	}
	said.parts, said.places = t.parts[:n:n], places[:n:n]
	calls.parts, calls.places = t.parts[n:], places[n:]
	return said, calls
}

// move appends a part to parts. i is the index of the part in the snapshot.
func (t *message) move(i int, part convo.Part) {
	if t.places == nil && i != len(t.parts) {
		t.places = make([]place, len(t.parts), cap(t.parts))
		for k := range t.places {
			t.places[k] = t.placeOfAll(k)
		}
	}
	t.parts = append(t.parts, part)
	if t.places != nil {
		t.places = append(t.places, t.placeOfAll(i))
	}
}

// A result is a result of the projection.
type result struct {
	convo.ToolResult
	at   place
	kept []int // the indices of Parts in the snapshot; nil: Parts are the first parts there
}

// inside returns the index that a part of the result has in the snapshot.
func (r *result) inside(i int) int {
	if r.kept != nil {
		return r.kept[i]
	}
	return i
}

// calls returns the tool calls of a message, which are its last parts. Cache marks can
// follow them.
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

func isReasoning(p convo.Part) bool { _, ok := p.(convo.Reasoning); return ok }

// A projector projects the messages of a snapshot, and passes them to a writer. Both can
// go back to an earlier state, to continue with another snapshot that begins with the
// same messages.
type projector struct {
	profile
	writer writer
	seen   *tally
	lost   *losses
	projection

	items    []string   // those that are sent in place of the summary; nil: its text is sent
	released convo.ID   // no signed reasoning up to this entry is sent, since a provider has refused it
	unbound  []convo.ID // the entries of bonds whose signed reasoning is not sent, ascending; only with seals
	bonds    *convo.Snapshot
	at       int // index of the entry of the exchange being projected

	next    message           // passed to the writer, and reused
	keeping keeping           // of the message being read, and reused
	defined writtenTools      // those of the snapshot written last
	text    json.RawMessage   // the system text, if it is not among the messages
	front   []json.RawMessage // the messages of the system text
	unsaid  []loss            // what the system text leaves out
	wrote   bool              // text, front and unsaid are up to date
}

// A projection is the state of a projector after the messages so far.
type projection struct {
	number     int32        // number of the next message
	system     []convo.Part // the parts of all system messages
	places     []place      // the places of system
	summary    int          // index of the summary in system; the length of system if it is not in system
	needsTools bool

	before  bool // the summary is part of the system text, but the snapshot has it as the first message after the system messages
	tools   bool // whether a tool was called since the newest user message
	reasons bool // whether any message holds reasoning
	first   int  // index of the first entry of the newest run of assistant messages and results
	head    int  // index of the first assistant message in it; -1 if there is none
	running bool // the run has not ended
	begun   bool // a message was read that is not part of the system text

	newest convo.Role // of the newest message passed to the writer, notes aside; RoleNone: there is none
	held   []message  // notes to be passed to the writer later; never changed in place
}

// A writer writes the messages of a projection in one format.
type writer interface {
	// grow makes room for n messages, which are about as many as come.
	grow(n int)

	// message writes the next message, which is never empty. It does not keep t.
	message(t *message)

	// system returns the system text, as one text or as messages, and records in lost
	// what it leaves out.
	system(p *projection, lost *losses) (json.RawMessage, []json.RawMessage)

	// request completes a request that already has the system text, with the messages so
	// far. It may change the writer.
	request(p *projector, s *convo.Snapshot, r *Request) error

	// save returns the state of the writer, and restore restores it. States are restored
	// from the newest to the oldest; when one is restored, those that were saved after it
	// become invalid. The writer never changes bytes that a request has.
	save() any
	restore(state any)
}

// noResult is the text of the result that is sent for an open call.
const noResult = "no result"

// Markers are sent where a provider needs a user message and the conversation has none.
const (
	earlierMarker  = "[The earlier part of this conversation is not shown.]"
	continueMarker = "[Continue.]"
)

// newProjector returns a projector for a snapshot.
func newProjector(s *convo.Snapshot, f builtin) *projector {
	p := &projector{seen: new(tally), lost: new(losses)}
	p.defined.by, _ = f.(ToolWriter)
	p.profile, p.writer = f.begin(p.seen, p.lost)
	p.writer.grow(s.Len())
	p.defines(s)
	p.head = -1
	sum, ok := s.Summary()
	if n := &sum.Native; p.compacts != nil && p.isOwn(convo.Origin{Format: n.Format, Model: n.Model}) && p.compacts(n.Items) {
		p.items = n.Items
	}
	p.before = ok && p.systemSum && p.items == nil
	return p
}

// A nativeWriter is the writer of a format whose provider compacts.
type nativeWriter interface {
	// compaction writes the items of a convo.Native. It is called before any message.
	compaction(items []string)
}

// A referrer is the writer of a format in which blocks refer to tools.
type referrer interface {
	// defines sets the tools of the request, and reports whether what is written is also
	// right with these tools.
	defines(tools []convo.Tool) bool
}

// defines tells the writer the tools of a snapshot, and reports whether what is written is also
// right with these tools.
func (p *projector) defines(s *convo.Snapshot) bool {
	w, ok := p.writer.(referrer)
	return !ok || w.defines(s.Tools())
}

// setBonds sets the entries of a snapshot whose signed reasoning is not sent. It reads the whole
// snapshot, and is called only if a message holds reasoning.
func (p *projector) setBonds(s *convo.Snapshot) {
	if p.bonds != s {
		p.bonds, p.unbound = s, p.unboundIn(s)
	}
}

func (p *projector) unboundIn(s *convo.Snapshot) []convo.ID {
	if sum, ok := s.Summary(); ok && sum.Native.Format != "" && p.items == nil {
		s = s.AsText()
	}
	return s.Unbound()
}

// read passes the messages of a snapshot to the writer, beginning with the entry from. If
// point is not nil, read calls it before each further exchange that begins with a new
// entry, and at the end, with the index of the next entry.
func (p *projector) read(s *convo.Snapshot, from int, point func(at int)) {
	p.lost.s, p.released = s, s.Released()
	var first convo.Message // the first message of an exchange
	var note bool           // first is a note
	var results []convo.Message
	open, last, before, size := false, from, -1, 0
	for i, m := range s.MessagesFrom(from, p.named) {
		size += heldBy(m.Parts)
		isNote := m.Role == convo.RoleSystem && (p.begun || !isSystemAt(s, i))
		if i == before {
			p.lost.extra = append(p.lost.extra, p.number-1)
		}
		before = i
		if open && m.Role == convo.RoleTool {
			results = append(results, m)
		} else {
			if open {
				p.exchange(&first, note, results)
			}
			if i > last && point != nil {
				point(i)
			}
			if p.items != nil && !p.begun && m.Role == convo.RoleUser { // the summary comes first
				p.writer.(nativeWriter).compaction(p.items)
				p.newest, p.begun, open, last = convo.RoleAssistant, true, false, i
				p.number++
				continue
			}
			first, note, results, open, p.at = m, isNote, results[:0], true, i
			if isNote && !p.notes && p.newest != convo.RoleNone && !isBlankMessage(&m) {
				first = s.AsUser(m)
			}
		}
		if !isNote {
			p.follow(i, &m)
		}
		p.begun = p.begun || isNote || m.Role != convo.RoleSystem
		p.number++
		last = i
	}
	if before == s.Len() {
		p.lost.extra = append(p.lost.extra, p.number-1)
	}
	if open {
		p.exchange(&first, note, results)
	}
	if last < s.Len() && point != nil {
		point(s.Len())
	}
	meter.Encoded.Add(int64(size))
}

// isBlankMessage reports whether a message holds only blank texts, or nothing.
func isBlankMessage(m *convo.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p convo.Part) bool { return !isBlankPart(p) })
}

// isSystemAt reports whether the entry with an index is a system message.
func isSystemAt(s *convo.Snapshot, i int) bool {
	e, ok := s.At(i)
	return ok && e.Message.Role == convo.RoleSystem
}

// request returns the request for s. All messages of s must have been read.
func (p *projector) request(s *convo.Snapshot) (Request, error) {
	p.lost.s = s
	if !p.wrote {
		own := losses{s: s}
		p.text, p.front = p.writer.system(&p.projection, &own)
		p.unsaid, p.wrote = own.list, true
	}
	if err := p.defined.read(s, p.format); err != nil {
		return Request{}, err
	}
	p.release()
	r := Request{Tools: p.defined.json, System: p.text, Messages: slices.Clip(p.front), NeedsTools: p.needsTools, names: p.names}
	if err := p.writer.request(p, s, &r); err != nil {
		return Request{}, err
	}
	p.lost.list = append(p.lost.list, p.unsaid...)
	r.Lost = append(p.defined.lost(p.format), p.lost.sorted()...)
	return r, nil
}

// A point is the state that a projector needs to go back to an earlier entry.
type point struct {
	at         int // index of the first entry that was not read
	seen       int // length of seen.log
	lost       int // length of lost.list
	projection projection
	writer     any
}

func (p *projector) point(at int) point {
	return point{at, len(p.seen.log), len(p.lost.list), p.projection, p.writer.save()}
}

func (p *projector) back(to *point) {
	p.wrote = p.wrote && len(p.system) == len(to.projection.system)
	p.seen.back(to.seen)
	p.lost.back(to.lost, to.projection.number)
	p.projection = to.projection
	p.writer.restore(to.writer)
}

// exchange projects a message, which may be a note, and the tool messages that follow it.
// They are the newest messages that were read.
func (p *projector) exchange(m *convo.Message, note bool, results []convo.Message) {
	t := message{role: m.Role, author: p.author(m), number: p.number - int32(len(results)) - 1}
	if m.Author != "" && t.author == "" && m.Role != convo.RoleTool {
		t.tag = 1
	}
	if note && m.Role == convo.RoleUser {
		t.tag++ // the tag of the note
	}
	if m.Role != convo.RoleAssistant || !slices.ContainsFunc(m.Parts, isCall) {
		p.answers(nil, t.number+1, results)
	}
	m.Parts = p.native(m.Parts, int(t.tag), func(i int, lost string) { p.lost.tell(t.placeOfAll(i), whole, lost, "") })
	switch {
	case note && p.newest != convo.RoleNone:
		p.keep(&t, m.Parts)
		p.addNote(t)
	case m.Role == convo.RoleSystem: // a note before which nothing stands is system text
		p.keep(&t, m.Parts)
		if p.summary == len(p.system) {
			p.summary += len(t.parts)
		}
		p.system = append(p.system, t.parts...)
		for i := range t.parts {
			p.places = append(p.places, t.place(i))
		}
		p.wrote = false
	case p.before:
		p.system = append(p.system, m.Parts...)
		for range m.Parts {
			p.places = append(p.places, nowhere)
		}
		p.before, p.wrote = false, false
	case m.Role == convo.RoleUser:
		p.tools = false
		p.keep(&t, m.Parts)
		p.add(t)
	case m.Role == convo.RoleAssistant:
		t.own, t.all = p.isOwn(m.Origin), m.Parts
		if m.Origin.Format == cmp.Or(p.from, p.format) {
			t.container = m.Origin.Container
		}
		p.tools = p.tools || slices.ContainsFunc(m.Parts, isCall)
		t.thinks = t.own && !p.isUnbound(p.at, m) && (p.replay <= convo.ReplayAll || p.replay == convo.ReplayTools && p.tools)
		p.keep(&t, m.Parts)
		var answers []result
		if len(t.calls()) > 0 {
			answers = p.answers(&t, t.number+1, results)
		}
		p.add(t)
		if len(answers) > 0 {
			p.add(message{role: convo.RoleTool, results: answers})
			p.needsTools = true
		}
	case m.Role == convo.RoleTool:
		p.answers(nil, t.number, []convo.Message{*m})
	default: // there is no such role
		p.keep(&t, m.Parts[:len(m.Parts)-int(t.tag)]) // without the end tag
		for i := range t.parts {
			p.lost.tell(t.place(i), whole, lostPart, "")
		}
	}
}

// author returns the author of a message if a field names it.
func (p *profile) author(m *convo.Message) string {
	if p.named != nil && p.named(m.Role, m.Author) {
		return m.Author
	}
	return ""
}

// follow records which entries belong to the newest run of assistant messages and
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

// add passes a message to the writer unless it is empty.
func (p *projector) add(t message) {
	if len(t.parts) == 0 && len(t.results) == 0 {
		return
	}
	if t.role == convo.RoleAssistant {
		p.release()
	}
	p.newest, p.next = t.role, t
	p.writer.message(&p.next)
}

// addNote passes a note to the writer unless it is empty. A note that follows an answer is
// held until the messages of the user that come next have been passed.
func (p *projector) addNote(t message) {
	switch {
	case len(t.parts) == 0:
	case p.newest == convo.RoleAssistant || p.notesLast:
		p.held = append(slices.Clip(p.held), t)
	default:
		p.release()
		p.next = t
		p.writer.message(&p.next)
	}
}

// release passes the notes that were held to the writer.
func (p *projector) release() {
	for _, t := range p.held {
		p.next = t
		p.writer.message(&p.next)
	}
	p.held = nil
}

// isOwn reports whether an assistant message was made by the format and model of the
// profile. The reasoning of a message is sent back only to its maker.
func (p *profile) isOwn(o convo.Origin) bool {
	if from := cmp.Or(p.from, p.format); o.Format != from || p.model == "" {
		return o.Format == from
	}
	if p.maker != o.Model || o.Model == "" {
		p.maker, p.same = o.Model, models.Same(o.Model, p.model)
	}
	return p.same
}

// keep sets t.parts to the parts that can be sent, in order, but with the calls last.
func (p *projector) keep(t *message, parts []convo.Part) {
	if text, ok := single(parts); ok && t.tag == 0 && !isBlank(string(text)) {
		t.parts = parts[:1:1]
		return
	}
	t.parts = make([]convo.Part, 0, len(parts))
	k := &p.keeping
	*k = keeping{projector: p, message: *t, parts: parts, seal: p.sealOf(t, parts)}
	for i, part := range parts {
		keep, lost := false, lostPart
		if f := kindOfPart(part).keep; f != nil {
			keep, lost = f(k, i, part)
		}
		if lost != "" {
			p.lost.tell(t.placeOfAll(i), whole, lost, "")
		}
		_, isText := part.(convo.Text)
		k.cites = keep && isText && i >= int(t.tag)
		k.seal.read(part, keep)
		if keep {
			t.move(i, part)
			k.message.parts = t.parts
		}
	}
	if !k.calls {
		return
	}
	after := false // a call
	for i, part := range parts {
		_, mark := isMark(part)
		after = after || isCall(part)
		if isCall(part) || mark && p.marks && after {
			t.move(i, part)
		}
	}
}

// single returns the only part of a message, if that is a text.
func single(parts []convo.Part) (text convo.Text, ok bool) {
	if len(parts) == 1 {
		text, ok = parts[0].(convo.Text)
	}
	return text, ok
}

// saysCustom reports whether a block only marks the call after it as a call of a custom
// tool, and the call is sent as one.
func (p *profile) saysCustom(o convo.Opaque, after []convo.Part) bool {
	if !p.custom || o.Format != p.format || len(after) == 0 || !isCall(after[0]) {
		return false
	}
	f, ok := fieldsOf(o)
	return ok && f == partFields{Type: fieldsType, Call: customCall}
}

// answers sets the ids and names to be sent in the calls of t, and returns one result for
// each call. That is the first result with its id in the tool messages that follow and
// that answers no earlier call, or else noResult. The number is that of the first tool
// message. If t is nil, all results are recorded as lost.
func (p *projector) answers(t *message, number int32, after []convo.Message) []result {
	var given []result
	for i := range after {
		for k, part := range after[i].Parts {
			at := place{number + int32(i), int32(k)}
			if r, ok := part.(convo.ToolResult); ok {
				given = append(given, result{ToolResult: r, at: at})
			} else if text, ok := part.(convo.Text); !ok || !isBlank(string(text)) {
				p.lost.tell(at, whole, lostPart, "")
			}
		}
	}
	if t == nil {
		for i := range given {
			p.lost.tell(given[i].at, whole, lostResult, "")
		}
		return nil
	}
	calls := t.calls()
	waiting := make(map[resultKey][]int, len(given)) // indices of the results that answer no call yet
	for k, r := range given {
		key := keyOf(r.CallID, r.Name)
		waiting[key] = append(waiting[key], k)
	}
	// If some calls of a message had ids and some did not, those without could not be
	// distinguished from calls that other results answer.
	bare := p.noIDs || p.bare && !slices.ContainsFunc(calls, func(p convo.Part) bool { return isCall(p) && !p.(convo.ToolCall).Minted })
	results := make([]result, 0, len(calls))
	used := 0
	for i, part := range calls {
		call, ok := part.(convo.ToolCall)
		if !ok {
			continue // a cache mark
		}
		at := t.place(len(t.parts) - len(calls) + i)
		var r result
		key := keyOf(call.ID, call.Name)
		if len(waiting[key]) == 0 && call.ID == "" {
			key.name = "" // a result may have neither id nor name
		}
		if mine := waiting[key]; len(mine) > 0 {
			waiting[key] = mine[1:]
			r = given[mine[0]]
			p.keepResult(&r)
			used++
		} else {
			r.Parts, r.IsError, r.at = []convo.Part{convo.Text(noResult)}, true, nowhere
		}
		id, name := call.ID, call.Name
		call.ID = ""
		if !bare {
			call.ID = p.seen.assign(p.ids, id)
			if call.ID != id && id != "" && !call.Minted {
				p.lost.tell(at, whole, lostCallID, call.ID)
			}
		}
		call.Name = sentName(name, p.accepts)
		if call.Name != name {
			p.lost.tell(at, whole, lostName, call.Name)
		}
		r.CallID, r.Name = call.ID, call.Name
		results = append(results, r)
		calls[i] = call
	}
	if used < len(given) {
		p.unanswered(t.all, given, waiting)
	}
	return results
}

// unanswered records the given results that are not sent: those that are still waiting.
func (p *projector) unanswered(all []convo.Part, given []result, waiting map[resultKey][]int) {
	for key, list := range waiting {
		what := lostResult
		for _, part := range all {
			if call, ok := part.(convo.ToolCall); ok && key == keyOf(call.ID, call.Name) {
				what = lostSecond
			}
		}
		for _, k := range list {
			p.lost.tell(given[k].at, whole, what, "")
		}
	}
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

// keepResult removes from a result what cannot be sent.
func (p *projector) keepResult(r *result) {
	parts := p.native(r.Parts, 0, func(i int, lost string) { p.lost.tell(r.at, i, lost, "") })
	r.Parts = make([]convo.Part, 0, len(parts))
	for i, part := range parts {
		keep, lost := false, lostPart
		if f := kindOfPart(part).keepInResult; f != nil {
			keep, lost = f(&p.profile, part)
		}
		if !keep {
			if lost != "" {
				p.lost.tell(r.at, i, lost, "")
			}
			continue
		}
		if r.kept == nil && i != len(r.Parts) {
			r.kept = make([]int, len(r.Parts), len(parts))
			for k := range r.kept {
				r.kept[k] = k
			}
		}
		r.Parts = append(r.Parts, part)
		if r.kept != nil {
			r.kept = append(r.kept, i)
		}
	}
}

// isBlock reports whether an opaque part is a block of this format that can be sent in a
// message of a role.
func (p *profile) isBlock(o convo.Opaque, role convo.Role) bool {
	if o.Format != p.format || !strictjson.IsObject(o.JSON) {
		return false
	}
	return p.knows == nil || p.knows(o, role)
}

// merged returns messages of one role as one message.
func merged(group []message) message {
	t := group[0]
	if len(group) > 1 {
		n := 0
		for k := range group {
			n += len(group[k].parts)
			t.own, t.thinks = t.own && group[k].own, t.thinks || group[k].thinks
		}
		t.all, t.allAt = nil, nil
		for k := range group {
			for i, p := range group[k].all {
				if group[k].thinks || isCall(p) { // other reasoning is not sent
					t.all, t.allAt = append(t.all, p), append(t.allAt, group[k].placeOfAll(i))
				}
			}
		}
		t.parts, t.places = make([]convo.Part, 0, n), make([]place, 0, n)
		for _, calls := range []bool{false, true} {
			for k := range group {
				from, to := 0, len(group[k].said())
				if calls {
					from, to = to, len(group[k].parts)
				}
				for i := from; i < to; i++ {
					t.parts, t.places = append(t.parts, group[k].parts[i]), append(t.places, group[k].place(i))
				}
			}
		}
	}
	t.parts = slices.Clip(t.parts)
	return t
}

// marker returns a message with a text that is not part of the conversation.
func marker(role convo.Role, text string) *message {
	return &message{role: role, parts: []convo.Part{convo.Text(text)}, tag: 1}
}

// mediaText returns the text that replaces media that a format cannot send.
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

// bridgeMarker is the text of an assistant message that a provider needs and that the
// conversation does not have.
const bridgeMarker = "[No answer.]"

// resultText returns a result as one text.
func resultText(r *convo.ToolResult) string {
	text := joinTexts(r.Parts, "\n")
	if r.IsError {
		text = "Error: " + text
	}
	return text
}

// A builtin is a format of this package.
type builtin interface {
	Format

	// begin returns the profile of the format, and a writer that has written nothing. The
	// writer counts names in seen, and records in lost what it leaves out.
	begin(seen *tally, lost *losses) (profile, writer)
}

// encode returns the request for a snapshot in a format of this package.
func encode(f builtin, s *convo.Snapshot) (Request, error) {
	if s == nil {
		return Request{}, ErrEmpty
	}
	p := newProjector(s, f)
	p.read(s, 0, nil)
	overflow.Encoded(s, f)
	return p.request(s)
}

func init() {
	overflow.BodyOf = func(snapshot, format any) (overflow.Body, error) {
		if b, ok := format.(overflow.Body); ok { // it was not written by a format
			return b, nil
		}
		s, f := snapshot.(*convo.Snapshot), format.(builtin)
		p := newProjector(s, f)
		p.read(s, 0, nil)
		r, err := p.request(s)
		return overflow.Body{JSON: r.Body(), Paths: p.paths}, err
	}
}
