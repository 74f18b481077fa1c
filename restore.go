package convo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/callid"
)

// Restore returns a new [History] with the content of a snapshot: entries, IDs, pins,
// summary, key, calibration, title, data and queued messages, which it appends if they
// may follow now. New IDs continue from the last ID at the time of the snapshot.
// Ephemeral messages are left out. Tokens are counted according to opts. To fork a
// conversation, restore a snapshot of a History that is still in use; both share the
// originals of entries that were rewritten, cut or cleared. A snapshot decoded from JSON
// has no originals, so the missing content counts as unread in the report of the next edit.
//
// Options.Roles applies to a list from [NewSnapshot] only: what a History held is accepted
// under every policy. A result without an ID answers the first open call of
// its tool, since recorded results are in the order of their calls. Without
// Options.Repair, the first fault is returned as a [*SnapshotError]. Options out of range
// are reported as by [New].
//
// With Options.Repair, Restore repairs faults, and calls it for each:
//
//   - Calls left open before the newest exchange are answered with error results.
//   - Results that answer no call are dropped.
//   - System messages between calls and their results are put after the results.
//   - Invalid parts are removed, and so are messages left without parts. If two calls of
//     a message have the same ID, the second call gets a new ID.
//   - In a snapshot from NewSnapshot, messages whose roles may not follow one another stay.
//   - In a snapshot from NewSnapshot, results in a user message that follows the calls
//     are put into a tool message, and the rest of it into a user message after that.
//   - In a snapshot from NewSnapshot, results without an ID and without an earlier call
//     become user messages. Their Author is "tool" and the tool's name. For several
//     results it is "tool", and each result begins with its tool's name.
//
// Inserted entries, and all entries after them, get new IDs; Repair is called for each of
// them. A repaired History can be saved and restored without Repair.
func Restore(s *Snapshot, opts *Options) (*History, error) {
	if s == nil {
		return nil, &SnapshotError{Index: -1, Err: errors.New("it is nil; New makes an empty History")}
	}
	from := s.id
	if s.imported && opts != nil && opts.TagKey != "" {
		from = nil
	}
	h, err := newHistory(opts, from)
	if err != nil {
		return nil, err
	}
	l := &loader{setup: &h.setup, to: &h.view, from: s}
	if err := l.fill(); err != nil {
		return nil, err
	}
	h.adoptCalibration(l.from, h.opts.prior(l.from.known().model))
	if err := h.finishLoad(true); err != nil {
		return nil, err
	}
	return h, nil
}

// withKeyOf returns a setup for the conversation with the key of id, and an empty view of it.
func (s *setup) withKeyOf(id *identity) (own *setup, empty *view) {
	own = &setup{opts: s.opts, ident: newIdentity(s.ident.counter, id, ""), noteTokens: s.noteTokens}
	own.ident.hint, own.ident.tool = s.ident.hint, s.ident.tool
	return own, &view{state: state{id: own.ident, keep: keeping{most: maxTotal}}}
}

// restored returns a view with the content of a snapshot except its calibrations.
func (s *setup) restored(at *Snapshot) (*view, error) {
	own, to := s.withKeyOf(at.id)
	return to, (&loader{setup: own, to: to, from: at}).fill()
}

// fill copies the content of the snapshot except its calibrations into an empty view. No
// lock is needed, since the view is not shared yet.
func (l *loader) fill() (err error) {
	defer catch(&err, "Options.Tokenizer")
	v, s := l.to, l.from
	v.last, v.figures, v.meta, v.takenBack, v.left = s.last, s.figures, s.meta, s.takenBack, s.left
	if s.summary != nil {
		v.summary = l.ident.place(s.summary.sum)
	}
	if t := s.tools; t != nil {
		v.tools = l.ident.toolset(t.tools, t.key)
		if v.tools.tokens() == t.tokens() {
			v.tools = t
		}
	}
	if !v.share(s) {
		if err := l.entries(); err != nil {
			return err
		}
	}
	v.request = s.request.Counted(s.list, v.list)
	if l.opts.AsSent {
		v.bindAll()
	}
	v.calls = callsOf(v.list)
	return l.queue()
}

// entries checks the entries of the snapshot and adds them or copies.
func (l *loader) entries() error {
	for i := range l.from.len() {
		l.at = placement{index: i, old: l.from.at(i)}
		isLeft, err := l.place()
		if isLeft && err == nil {
			err = l.entry()
		}
		for err == nil && len(l.held) > 0 && !l.from.hasResultBehind(i) {
			l.at, l.held = l.held[0], l.held[1:]
			err = l.entry()
		}
		if err != nil {
			return err
		}
	}
	l.summarise()
	turn := l.from.turn
	if l.from.imported {
		turn = newestTurn(l.list)
	}
	l.to.replace(l.sys, l.list, l.originals, turn)
	return nil
}

// finishLoad does what is left to do for a History that was loaded. No lock is needed, since h
// is not shared yet.
func (h *History) finishLoad(deliver bool) error {
	if err := h.settleLoad(deliver); err != nil {
		return err
	}
	h.charge(h.account)
	h.warnDue(true)
	return nil
}

// settleLoad delivers the queue if deliver is set and a user message may follow.
func (h *History) settleLoad(deliver bool) (err error) {
	defer catch(&err, "Options.Tokenizer")
	h.talk.note(h.newestMessage(), true) // the process that made the request has ended
	if err := inRange(h.last, h.turn); err != nil {
		return &SnapshotError{Index: -1, Err: err}
	}
	if deliver {
		h.deliverLocked()
	}
	return nil
}

// share makes v share the entries of a snapshot if possible, and reports whether it did.
// The entries must come from a History, so that they were checked, and both must count
// tokens by default. The list is clipped, so that neither writes to memory that the other
// reads.
func (v *view) share(s *Snapshot) bool {
	if s.owner == nil || s.id == nil || !s.id.isDefault || !v.id.isDefault {
		return false
	}
	c := s.state.clipped()
	v.pins = c.pins
	v.replace(c.sys, c.list, c.originals, s.turn)
	v.seen = len(v.list)
	return true
}

// A loader checks the entries of a snapshot in order, repairs them if Options.Repair is
// set, and collects them or copies of them for a new view.
type loader struct {
	*setup
	to   *view
	from *Snapshot
	own  bool // from is not shared, and nothing is repaired: its entries are used without copying

	counted bool // with own, entries that have token counts need not be counted

	at placement // the entry being checked

	sys, list []*entry
	originals []*original
	queued    []*queued // the queue of from, with the copies in h

	prev       Role                // of the newest entry so far, notes aside
	afterMoved bool                // that entry was moved; see placement
	calls      *calls              // of the newest exchange; nil or room
	room       calls               // memory for calls
	renamed    map[string][]string // new IDs of calls in the newest exchange with a duplicate ID, by that ID
	mended     bool                // Repair was called

	held  []placement // what stands between calls and their results, to be put after these
	texts []string    // of what is put into the summary
	gone  []ID        // of the same
}

// A placement is an entry of a snapshot, and why it is not where it was.
type placement struct {
	index  int    // in the snapshot
	old    *entry // as it was, or a copy that was changed
	moved  bool   // it was no user message in that snapshot, or not in this place, so roles do not refuse it
	err    error  // a fault that is repaired; nil: none
	mended string // how
}

// entry checks l.at.old, and adds it or a copy.
func (l *loader) entry() error {
	e, old := l.at.old, l.at.old
	if !l.own {
		e = &entry{id: old.id, at: old.at, turn: old.turn, final: old.final, note: old.note, marks: old.marks}
		e.setOwn(rare{missing: old.missing(), made: old.made()})
	}
	if err := l.check(e); err != nil || e.msg.Role == RoleNone {
		return err
	}
	role := e.msg.Role
	if l.from.imported && len(l.list) == 0 {
		e.note = false // the entries before it were removed or dropped
	}
	switch {
	case e.isSystem():
		return l.add(e)
	case role == RoleTool:
		return l.results(e)
	case e.note && !l.at.moved && l.calls.Open() > 0 && l.from.hasResultBehind(l.at.index): // between calls and their results
		return l.hold()
	case l.calls.Open() > 0:
		if err := l.answerOpen(); err != nil {
			return err
		}
	}
	if l.from.imported && (!e.note || l.opts.Roles.NoNotes) && !l.at.moved && !l.afterMoved && !l.opts.Roles.allows(l.prev, role) {
		err := &RoleError{Attempted: role, Previous: l.prev, Index: l.at.index}
		if err := l.mend(err, l.nextID(), "kept"); err != nil {
			return err
		}
	}
	e.calls = newCalls(&e.msg, l.ident.counter)
	l.calls = nil
	return l.add(e)
}

// hold keeps a note between calls and their results, until these were added.
func (l *loader) hold() error {
	l.at.moved, l.at.mended = true, "put after the results"
	l.at.err = &RoleError{Attempted: RoleSystem, Previous: l.prev, Index: l.at.index}
	if l.opts.Repair == nil {
		return l.report(&SnapshotError{Err: l.at.err})
	}
	l.held = append(l.held, l.at)
	return nil
}

// check sets e.msg to a checked copy of the message of l.at.old, repaired if necessary. e may
// be l.at.old. The role of e.msg is RoleNone if the whole message was dropped.
func (l *loader) check(e *entry) error {
	old := l.at.old
	if old.msg.Role != RoleTool {
		l.renamed = nil // this is another exchange
	}
	var err error
	if l.own {
		err = e.msg.check(true)
	} else {
		e.msg = old.msg
		err = e.msg.checkShared(&e.inline)
	}
	if err == nil && l.from.imported && e.msg.isEmpty() && !l.opts.Roles.KeepEmpty {
		err = &MessageError{Role: old.msg.Role, Part: -1, Reason: "empty message; RolePolicy.KeepEmpty allows it"}
	}
	if err == nil {
		return nil
	}
	err = atIndex(err, l.at.index)
	e.msg = l.repaired(old.msg)
	if e.msg.Role == RoleNone {
		return l.mend(err, 0, "dropped")
	}
	const mended = "invalid parts removed"
	if l.opts.Repair == nil || l.at.err != nil {
		return l.mend(err, old.id, mended)
	}
	l.at.err, l.at.mended = err, mended // add reports it, with the ID that the entry gets
	return nil
}

// repaired returns m without invalid parts. Its role is RoleNone if nothing remains.
func (l *loader) repaired(m Message) Message {
	parts := m.Parts
	m.Parts = nil
	seen := make(map[string]bool)
	for _, p := range parts {
		own, reason := checkPart(p, m.Role, false)
		if reason != "" {
			continue
		}
		if c, ok := own.(ToolCall); ok {
			if seen[c.ID] {
				if l.renamed == nil {
					l.renamed = make(map[string][]string)
				}
				oldID := c.ID
				c.ID, c.Minted = callid.New(), true
				l.renamed[oldID] = append(l.renamed[oldID], c.ID)
				own = c
			}
			seen[c.ID] = true
		}
		m.Parts = append(m.Parts, own)
	}
	if m.check(true) != nil || m.isEmpty() && !l.opts.Roles.KeepEmpty {
		return Message{}
	}
	return m
}

// results adds a tool message. Results that answer no open call are dropped.
func (l *loader) results(e *entry) error {
	matched := e.msg.Parts[:0]
	for _, p := range e.msg.Parts {
		r := p.(ToolResult)
		k, err := l.calls.Find(r.CallID, r.Name)
		if names := l.renamed[r.CallID]; err != nil && len(names) > 0 {
			r.CallID, l.renamed[r.CallID] = names[0], names[1:]
			k, err = l.calls.Find(r.CallID, r.Name)
		}
		if err != nil {
			err := &PairError{Err: err, CallID: r.CallID, Name: r.Name, Index: l.at.index}
			if err := l.mend(err, 0, "dropped a result that answers no call"); err != nil {
				return err
			}
			continue
		}
		l.calls.Answer(k)
		r.CallID, r.Name = cmp.Or(r.CallID, l.calls.List[k].ID), cmp.Or(r.Name, l.calls.List[k].Name)
		if was := p.(ToolResult); r.CallID != was.CallID || r.Name != was.Name {
			p = r
		}
		matched = append(matched, p)
	}
	if len(matched) == 0 {
		return nil
	}
	clear(e.msg.Parts[len(matched):])
	e.msg.Parts = matched
	return l.add(e)
}

// answerOpen adds an error result for each call that is open before l.at.old.
func (l *loader) answerOpen() error {
	newest := l.list[len(l.list)-1]
	results, answered := l.setup.answerOpen(l.calls, l.to.last, newest.turn, noResult, l.ident.text(noResult))
	for i, e := range results {
		e.at = newest.at
		l.to.last, l.list = e.id, append(l.list, e)
		k := &l.calls.List[answered[i]]
		err := &PairError{Err: ErrOpenCalls, CallID: k.ID, Name: k.Name, Index: l.at.index}
		if err := l.report(&SnapshotError{Index: -1, NewID: e.id, Err: err, Mended: "answered with an error result"}); err != nil {
			return err
		}
	}
	l.prev, l.afterMoved = RoleTool, false
	return nil
}

// add adds an entry, with a new ID if an earlier entry got one.
func (l *loader) add(e *entry) error {
	old := l.at.old
	if old.id <= l.from.released {
		e.setMade(0) // it may get a newer ID
	}
	if e.isSystem() {
		e.head, e.turn = e.id, 0
		l.sys = append(l.sys, e)
	} else {
		e.id = l.nextID()
		e.head, l.to.last = e.id, max(l.to.last, e.id)
		l.follow(e)
		l.list = append(l.list, e)
	}
	if !l.counted || e.tokens == 0 {
		l.ident.weigh(e)
	}
	if !e.note && (!e.isSystem() || len(l.list) == 0) {
		l.prev, l.afterMoved = e.msg.Role, l.at.moved
	}
	if o := l.from.original(old.id); o != nil {
		own := *o
		own.id = e.id
		own.tokens, _ = l.ident.entry(e, &own.msg)
		own.readTokens, _ = l.ident.entry(e, &own.read)
		e.setMissing(&own)
		l.originals = append(l.originals, &own)
	}
	if _, pinned := slices.BinarySearch(l.from.pins, old.id); pinned {
		l.to.pins = withPin(l.to.pins, e.head)
	}
	mended := l.at.mended
	switch {
	case l.at.err == nil && e.id == old.id:
		return nil
	case l.at.err == nil:
		mended = "new ID"
	}
	return l.mend(l.at.err, e.id, mended)
}

// nextID returns the ID in the view of l.at.old, which is in the list: a new one if it was moved
// or split, or if an earlier entry got one.
func (l *loader) nextID() ID {
	if n := len(l.list); n > 0 && l.at.old.id <= l.list[n-1].id {
		return l.to.last + 1
	}
	return l.at.old.id
}

// follow sets what an entry of the list has from those before it.
func (l *loader) follow(e *entry) {
	newest := &entry{}
	if n := len(l.list); n > 0 {
		newest = l.list[n-1]
	}
	switch {
	case e.msg.Role == RoleTool:
		e.head, e.turn = l.calls.Head, newest.turn
	case l.from.imported:
		e.turn = newest.turn
		if e.msg.Role == RoleUser && l.prev != RoleUser {
			e.turn++
		}
	}
	if e.calls != nil {
		l.calls = e.beginIn(&l.room)
	}
	e.tools = l.at.old.tools || e.msg.Role == RoleTool || e.calls != nil || newest.tools && newest.turn == e.turn
}

// queue adds copies of the queued messages of the snapshot.
func (l *loader) queue() error {
	roles := &l.opts.Roles
	defer func(keep bool) { roles.KeepEmpty = keep }(roles.KeepEmpty)
	roles.KeepEmpty = true // what was accepted stays
	l.queued, l.at = slices.Clone(l.from.queue), placement{index: -1, old: new(entry)}
	for i, q := range l.from.queue {
		list, err := l.newQueued([]Message{q.msg})
		wrong, ok := err.(*MessageError)
		switch {
		case !ok && err != nil:
			return err
		case ok:
			wrong.Index, wrong.Reason = i, "in the queue: "+wrong.Reason
			if err := l.mend(wrong, 0, "dropped from the queue"); err != nil {
				return err
			}
		default:
			l.queued[i] = list[0]
		}
		l.to.queue = append(l.to.queue, list...)
	}
	return nil
}

// mend reports that a fault of l.at.old is repaired, which has the ID newID now.
func (l *loader) mend(err error, newID ID, mended string) error {
	return l.report(&SnapshotError{Index: l.at.index, ID: l.at.old.id, NewID: newID, Err: err, Mended: mended})
}

// report calls Options.Repair. If that is nil, it returns the fault as an error of l.at.
func (l *loader) report(f *SnapshotError) (err error) {
	if l.opts.Repair == nil {
		return &SnapshotError{Index: l.at.index, ID: l.at.old.id, Err: f.Err}
	}
	defer catch(&err, "Options.Repair")
	l.mended = true
	l.opts.Repair(f)
	return nil
}

// load fills an empty view with the state read, of which p is a picture. It returns a picture of
// what is in the log, with the entries of the view unless Repair has changed any.
func (r *reading) load(with *setup, to *view, p *picture) (saved *picture, err error) {
	l := &loader{setup: with, to: to, from: p.view, own: with.opts.Repair == nil}
	l.counted = l.own && r.state.counter != "" && r.state.counter == with.ident.name()
	if err := l.fill(); err != nil {
		return nil, err
	}
	r.counted, r.mended = to.raw(), l.mended
	if l.mended && r.state.counter == with.ident.name() {
		r.counted = r.state.counted // what was mended is not counted in another way
	}
	to.appendedEver = p.ever
	if !p.edited.IsZero() {
		to.editedAt = p.edited.UnixNano()
	}
	if n := len(to.list); n > 0 && to.list[n-1].at != noTime {
		to.lastAppend = to.list[n-1].at
	}
	to.newVersion()
	to.rewritten = to.version // the measured view is only known in part
	recounted := to.adoptKnowledge(r, with.opts.prior(r.state.model), p.toolsSet)
	if l.mended {
		if p, err = r.picture(true); err != nil {
			return nil, err
		}
	} else {
		p.view = &Snapshot{state: to.clipped()}
		to.seen, p.rewritten = len(to.list), to.rewritten
	}
	p.view.queue, p.recounted = l.queued, recounted // the same messages as in the view
	return p, nil
}

// picture returns the combined content of the records. If count is false, the entries
// have no calls and only the tokens that the records give. An error is a
// *SnapshotError.
func (r *reading) picture(count bool) (*picture, error) {
	in := &r.state
	s, err := in.state(count)
	if err != nil {
		return nil, err
	}
	p := &picture{view: &Snapshot{state: s}, scalars: in.scalars}
	counted := in.counted
	if count {
		counted = p.view.raw()
	}
	p.view.knowledge, p.recounted = in.knowledgeOf(&p.view.state, counted, false)
	if k := p.view.known(); k.reported && k.cal == nil {
		return nil, asSnapshotError(fmt.Errorf("usage was reported for the model %.40q, and there is no calibration of it", k.model))
	}
	p.view.sumMeasured(true)
	p.view.loaded = loaded{key: r.key, log: in.log, seq: r.seq, id: r.id}
	return p, nil
}

// state checks in and returns the state that it describes. If count is not set, the
// entries get no calls, and only the tokens that were read.
func (in *stateJSON) state(count bool) (state, error) {
	if err := in.check(); err != nil {
		return state{}, asSnapshotError(err)
	}
	sys, list := orNil(in.system), in.entries
	s := state{
		id:   &identity{counter: newCounter(nil, Overheads{}), key: in.key},
		last: in.last, figures: in.figures, meta: meta{orNil(in.title), orNil(in.meta)}, pins: in.pins,
		knowledge: &knowledge{model: in.model, learned: orNil(in.learned)}, queue: orNil(in.queue), takenBack: orNil(in.back),
	}
	if left := orNil(in.left); left.id > 0 {
		s.left = []leftRow{left}
	}
	if err := in.finish(&s, count); err != nil {
		return s, err
	}
	for _, pin := range s.pins {
		if i, ok := index(list, pin); !ok || list[i].head != pin {
			return s, &SnapshotError{Index: -1, ID: pin, Err: fmt.Errorf("pin %d is not the first entry of an exchange", pin)}
		}
	}
	s.replace(sys, list, nil, in.turn)
	if t := in.tools; t != nil {
		s.tools = s.id.toolset(t.tools, t.key)
	}
	if in.summary != nil && in.summary.Text != "" {
		s.summary = s.id.place(*in.summary)
	}
	s.request = s.requestOf(in.heads, in.sent)
	return s, nil
}

// loaded returns the view of p, for the limits that were saved with it.
func (p *picture) loaded() *Snapshot {
	p.view.setting, p.view.knowledge = p.limits.sizes(), p.view.known().within(p.limits, true)
	return p.view
}
