package convo

import (
	"cmp"
	"slices"
)

// A merger replaces the content of a view with the stored content, and appends the
// messages that are in no record.
type merger struct {
	view, theirs *view
	base         ID           // entries with higher IDs may be in no record
	isBackup     bool         // the stored state is older than the saved state of h
	was          *picture     // the record that h saved last
	unsaved      *draft       // what that does not hold
	own          [][]departed // exchanges that are in no record, in ascending order
	pinned       map[ID]bool  // heads of the pinned ones
	idle         map[ID]bool  // results in own that answer no open call of the stored view
	moved        map[ID]ID
	refused      []Message
	appended     bool     // an exchange was appended
	adopts       bool     // nothing was learned, so that what the records hold counts
	released     ID       // no entry of own up to this one is bound
	rekeyed      bool     // the tags of the stored state have another key, so no entry of own is bound
	answers      sentView // of the view, before the messages were appended again
	lastAppend   int64    // likewise

	held      []*state         // the states that had the entries of h before the Reload
	knew      *knowledge       // of the view before the Reload, with the views that usage was reported for
	again     map[ID]rejoined  // entries that were appended again, by their old IDs
	queued    []*queued        // messages of h that are in no record
	taken     map[*queued]bool // messages of the stored queue that h has delivered or removed
	delivered map[ID]*queued   // stored queue messages, by the entries of own that h delivered them as
	elsewhere map[ID]bool      // queued entries that others have delivered or removed
	found     map[ID]bool      // entries of theirs that match an entry of elsewhere
}

// A rejoined is an entry before and after it was appended again.
type rejoined struct{ was, is *entry }

// replace replaces the content of the view with the stored content. It returns how many raw
// tokens more were ever appended there.
func (m *merger) replace() (more int64) {
	v, t, was := m.view, m.theirs, &m.was.view.state
	m.held = []*state{&m.unsaved.picture.view.state, was}
	stored := t.state.keeping(m.held...)
	v.newVersion()
	v.reloaded, v.rewritten = v.version, v.version
	m.released = max(v.released, t.released)
	if v.id.key != t.id.key {
		m.rekeyed, v.answers = true, sentView{known: true, open: true} // the tags of what was sent had the other key
	}
	if v.meta == was.meta {
		v.meta = t.meta
	}
	if v.tools.sameAs(was.tools) && !v.tools.sameAs(t.tools) {
		v.tools = t.tools
	}
	v.last, v.figures, v.takenBack, v.left = t.last, t.figures, t.takenBack, t.left
	v.released = min(m.released, t.last)
	v.summary, v.pins, v.queue = stored.summary, slices.Clone(t.pins), t.queue
	v.replace(stored.sys, stored.list, stored.originals, stored.turn)
	if a, b := orNil(was.request), orNil(t.request); a.requestHeads != b.requestHeads || a.requestFigures != b.requestFigures {
		v.request = b.withLogged(orNil(v.request).logged) // others were answered since
	}
	v.seen = 0
	v.sumPins()
	v.calls = callsOf(v.list)
	v.edits, v.reversals = nil, nil
	more = t.appendedEver - v.appendedEver
	v.heldAt += more
	v.lastFocus, v.editedAt, v.appendedEver, v.id = "", t.editedAt, t.appendedEver, t.id
	m.answers, m.lastAppend = v.answers, v.lastAppend
	return more
}

// keepTakenBack keeps the IDs that were taken back and are newer than the stored ones.
func (m *merger) keepTakenBack() {
	v := m.view
	for _, r := range m.unsaved.picture.view.takenBack {
		if r.Last > v.last { // these IDs name nothing else later
			v.takenBack = append(slices.Clip(v.takenBack), Range{max(r.First, m.theirs.last+1), r.Last})
			v.last, v.snap = r.Last, nil
		}
	}
}

// finish ends the merge, once all was appended that may be. The next answer is for the same
// view as before, since no answer to it was appended.
func (m *merger) finish() {
	v := m.view
	v.answers, v.lastAppend = m.answers, m.lastAppend
	if m.appended && !m.adopts {
		m.recognise()
		v.newVersion() // the bounds so far do not include the measured part
	}
	if len(m.queued)+len(m.taken) > 0 {
		kept := slices.DeleteFunc(slices.Clone(v.queue), func(q *queued) bool { return m.taken[q] })
		v.queue, v.snap = append(kept, m.queued...), nil
	}
}

// recognise makes the views that usage was reported for refer to the entries of the view
// after the Reload.
func (m *merger) recognise() {
	if !m.adopts {
		m.knew = cmp.Or(m.knew, m.view.known())
		m.view.knowledge = m.knew.with(m.recognised)
	}
	m.view.sumMeasured(true)
}

// recognised returns a copy of c whose view refers to the current entries of h.
func (m *merger) recognised(c *calibration) *calibration {
	if c == nil || c.at == nil {
		return c
	}
	own, at := *c, *c.at
	at.sys, at.list = m.renamed(at.sys), m.renamed(at.list)
	own.at = &at
	return &own
}

// renamed returns v with the new IDs of entries that were appended again. Entries whose
// IDs now belong to entries of others are left out.
func (m *merger) renamed(v shown) shown {
	traces := make([]trace, 0, v.len())
	for i := range v.len() {
		old := v.at(i)
		if r, ok := m.again[old.id]; ok && r.was.trace() == old {
			traces = append(traces, r.is.trace())
		} else if e := m.view.find(old.id); e == nil || m.isOwn(e) {
			traces = append(traces, old)
		}
	}
	slices.SortFunc(traces, func(a, b trace) int { return cmp.Compare(a.id, b.id) })
	return shown{traces: traces}
}

// isOwn reports whether h had the entry before the Reload.
func (m *merger) isOwn(e *entry) bool {
	return slices.ContainsFunc(m.held, func(s *state) bool { return s.find(e.id) == e })
}

// compareQueues finds the messages of the stored queue that the view also has, and what
// became of them.
func (m *merger) compareQueues(stored []*queued) {
	m.taken, m.delivered = make(map[*queued]bool), make(map[ID]*queued)
	m.elsewhere, m.found = make(map[ID]bool), make(map[ID]bool)
	stored = slices.Clone(stored)
	find := func(msg *Message) *queued { // and leave it out from now on
		i := slices.IndexFunc(stored, func(q *queued) bool { return q.msg.sameAs(msg) })
		if i < 0 {
			return nil
		}
		q := stored[i]
		stored = slices.Delete(stored, i, i+1)
		return q
	}
	if m.isBackup {
		m.compareBackup(find)
		return
	}
	saved := m.was.view.queue
	same := make(map[*queued]*queued) // stored messages, by those of the view
	for _, q := range saved {
		if theirs := find(&q.msg); theirs != nil {
			same[q] = theirs
			if !slices.Contains(m.view.queue, q) {
				m.taken[theirs] = true
			}
		}
	}
	for _, q := range m.view.queue {
		if !slices.Contains(saved, q) {
			m.queued = append(m.queued, q)
		}
	}
	for id, q := range m.unsaved.made {
		if theirs := same[q]; theirs != nil {
			m.delivered[id] = theirs
		} else if slices.Contains(saved, q) {
			m.elsewhere[id] = true
		}
	}
}

// compareBackup is compareQueues for a stored state that is older than the saved one.
func (m *merger) compareBackup(find func(*Message) *queued) {
	for _, q := range m.view.queue {
		if find(&q.msg) == nil {
			m.queued = append(m.queued, q)
		}
	}
	for _, e := range m.view.list[firstAfter(m.view.list, m.base):] {
		if e.msg.Role != RoleUser {
			continue
		}
		if q := find(&e.msg); q != nil {
			m.delivered[e.id], m.taken[q] = q, true
		}
	}
}

// stored returns a picture of the stored state that uses the entries of the view. saved is
// the picture that uses the entries as read.
func (m *merger) stored(r *reading, saved *picture) *picture {
	if r.mended {
		return saved
	}
	p, s := *saved, &Snapshot{state: m.view.clipped()}
	m.view.seen = len(m.view.list)
	s.knowledge, s.measured, s.meta, s.request = saved.view.knowledge, saved.view.measured, saved.view.meta, saved.view.request
	p.view, p.rewritten = s, m.view.rewritten
	return &p
}

// collect sets m.own to the entries that are in no record, both those in the view and
// those removed from it by an edit.
func (m *merger) collect() {
	m.pinned, m.idle = make(map[ID]bool), make(map[ID]bool)
	heads := make(map[ID]bool) // of own exchanges
	for _, d := range m.unrecorded() {
		e := d.was
		if m.isHeld(e) || m.isElsewhere(e) {
			continue
		}
		heads[e.head] = heads[e.head] || e.head == e.id
		idle := e.msg.Role == RoleTool && !heads[e.head] && !m.isOpen(e)
		if idle && m.isMade(e) {
			continue
		}
		m.idle[e.id] = idle
		if n := len(m.own); n > 0 && !idle {
			if first := m.own[n-1][0].was; e.head == first.head && !e.isSystem() && !m.idle[first.id] {
				m.own[n-1] = append(m.own[n-1], d)
				continue
			}
		}
		m.own = append(m.own, []departed{d})
	}
}

// unrecorded returns the entries that may be in no record, as they were appended, in
// order. It sets m.pinned.
func (m *merger) unrecorded() (all []departed) {
	v, past := m.view, m.unsaved.past
	for i := range v.len() {
		e := v.at(i)
		if e.id <= m.base {
			continue
		}
		d, ok := past[e.id]
		if !ok {
			d = departed{was: e, original: v.original(e.id)}
		}
		all = append(all, d)
		m.pinned[e.head] = m.pinned[e.head] || v.isPinned(e.head)
	}
	for id, d := range past {
		if v.find(id) == nil && id > m.base && !d.was.isSystem() {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b departed) int { return int(a.was.id - b.was.id) })
	return all
}

// isElsewhere reports whether others have taken the message of an entry out of the queue.
// If they have appended it, the entry has moved there.
func (m *merger) isElsewhere(e *entry) bool {
	if !m.elsewhere[e.id] {
		return false
	}
	others := m.theirs.list[firstAfter(m.theirs.list, m.base):]
	i := slices.IndexFunc(others, func(o *entry) bool { return !m.found[o.id] && o.msg.sameAs(&e.msg) })
	if i < 0 {
		return true
	}
	m.found[others[i].id] = true
	if id := others[i].id; id != e.id {
		m.moved[e.id] = id
	}
	return true
}

// isMade reports whether Options.OnLoad made the result.
func (m *merger) isMade(e *entry) bool {
	q, ok := m.unsaved.made[e.id]
	return ok && q == nil
}

// isHeld reports whether the stored view already has an entry of h: the same entry,
// or a system message with the same text.
func (m *merger) isHeld(e *entry) bool {
	if theirs := m.theirs.find(e.id); theirs != nil && theirs.sameAs(e) {
		return true
	}
	return e.isSystem() &&
		slices.ContainsFunc(m.theirs.sys, func(s *entry) bool { return s.msg.sameAs(&e.msg) })
}

// isOpen reports whether the calls answered by a tool message of h are open in the
// stored view. A repair may have changed the ID of the exchange.
func (m *merger) isOpen(results *entry) bool {
	c := m.theirs.calls
	if c.openCalls() == 0 {
		return false
	}
	for _, p := range results.msg.Parts {
		if _, err := c.find(p.(ToolResult).CallID, ""); err != nil {
			return false
		}
	}
	own, theirs := m.view.find(results.head), m.theirs.find(c.head)
	return results.head == c.head || own != nil && own.at == theirs.at
}

// refuse adds the messages of an exchange to those that Reload returns. Messages that are
// still in the stored queue stay there.
func (m *merger) refuse(exchange []departed) {
	for _, d := range exchange {
		if q := m.delivered[d.was.id]; q != nil {
			delete(m.taken, q)
			continue
		}
		msg := d.was.msg
		if d.original != nil {
			msg = d.original.msg
		}
		m.refused = append(m.refused, msg.clone())
	}
}

// batch returns copies of the entries of an exchange, to be appended.
func (m *merger) batch(exchange []departed) []pendingEntry {
	batch := make([]pendingEntry, len(exchange))
	for i, d := range exchange {
		e := *d.was
		e.msg, e.inline = e.msg.clone(), [1]Part{}
		if e.id <= m.released || m.rekeyed {
			e.setMade(0) // the entry may get a newer ID
		}
		batch[i] = pendingEntry{entry: &e, pin: m.pinned[d.was.head], again: true}
		if d.original != nil {
			o := *d.original
			o.msg, o.read = o.msg.clone(), o.read.clone()
			batch[i].original = &o
		}
	}
	return batch
}

// rejoin takes note that an exchange was appended. It returns what keepsake.made holds of
// it.
func (m *merger) rejoin(exchange []departed, batch []pendingEntry) map[ID]*queued {
	m.appended = true
	made := make(map[ID]*queued)
	for i, d := range exchange {
		id := batch[i].id
		if id != d.was.id {
			m.moved[d.was.id] = id
		}
		m.again[d.was.id] = rejoined{d.was, batch[i].entry}
		if q := m.delivered[d.was.id]; q != nil || m.isMade(d.was) {
			made[id] = q
		}
	}
	return made
}
