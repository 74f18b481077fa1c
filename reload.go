package convo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Reload loads the changes that other writers have saved under the key of h since h was
// last saved or opened. If there are none, nothing changes.
//
// Otherwise the view, the summary, the pins and the queue are replaced by the stored
// ones. Messages of h that are in no record, also those that an unsaved edit removed from
// the view, are appended again after the stored entries, in order and with their pins,
// one exchange at a time. moved maps their old IDs to the new ones, where they differ. No
// [RolePolicy] refuses them, so two user messages or two answers may be adjacent, as
// after a compaction.
//
// Messages that cannot be appended are returned as refused and removed from h: results
// whose call is not open in the stored view, system messages that are not stored, and,
// while a stored call is open, all but its results, unless the policy lets a user message
// interrupt it. A warning logs their number.
//
// Messages that h has delivered or Unqueue has removed are removed from the stored queue.
// Delivered messages are appended again, with what follows them. If another writer has
// delivered or removed the same message, h drops its copy and keeps the answer. What only
// h has queued goes to the end of the queue, and is delivered if [History.Queue] would do
// so.
//
// Entries that Options.Repair has changed count as stored: they are repaired again, and
// Repair gets their new IDs. Options.OnLoad has no effect. A result that it added, and
// that is in no record, stays only if its call is open there.
//
// The title and the data of [History.SetMeta] also become the stored ones, unless SetMeta
// has changed them since h was last saved. h keeps its model, its limits and its
// calibration. Messages that were measured stay measured. Other unsaved changes are lost:
// edits, rollbacks and pins of saved entries. Earlier snapshots can only be read: methods
// return a [*StaleError] for them. Undo reverts no earlier edit, and an answer that Do
// waits for is refused.
//
// If a backup of the log was put back, what it lacks of h is appended again, as far as it
// is in the view of h or in no record. If the log was deleted, the error matches
// [ErrNotFound]; Attach begins a new one, unless another log was begun under the key.
// Other errors are those of [Open]. An error changes nothing.
func (h *History) Reload(ctx context.Context) (moved map[ID]ID, refused []Message, err error) {
	ctx, b, err := h.takeOpenLog(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer h.saving.release()
	r, err := readLog(ctx, b.store, b.key, 0)
	if err != nil || r == nil && b.id == "" {
		return nil, nil, err
	}
	if r == nil {
		return nil, nil, fmt.Errorf("%w: the log of %q was deleted; call Attach to begin a new one", ErrNotFound, b.key)
	}
	found, err := b.foundIn(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	h.wrote(outcome{stored: found})
	b, _ = h.openLog()
	if r.newest.ID == b.id {
		return nil, nil, nil
	}
	if b.id != "" && r.state.log != b.name {
		return nil, nil, fmt.Errorf("%w: the log of %q was deleted, and another was begun; Open that, and append what is missing", ErrNotFound, b.key)
	}
	isStored, err := b.isStored(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	opts := h.opts
	opts.Budget = nil // h charges its own entries
	theirs, saved, err := r.open(ctx, b.store, &opts)
	if err != nil {
		return nil, nil, err
	}
	m := h.merge(r, theirs.h, saved, isStored)
	if len(m.refused) > 0 {
		h.warn("convo: Reload could not append messages and returned them", "messages", len(m.refused), "key", b.key)
	}
	return m.moved, m.refused, nil
}

// foundIn returns the draft in doubt that is in the log as r read it, or nil if there is
// none.
func (b *logbook) foundIn(ctx context.Context, r *reading) (d *draft, err error) {
	if d = draftIn(b.drafts, r.ids...); d == nil && len(b.drafts) > 0 && !slices.Contains(r.ids, b.id) {
		d, _, err = b.find(ctx, b.drafts)
	}
	return d, err
}

// isStored reports whether the log has the record that h saved last, or no longer reaches
// back to it. It does not have that record if a backup was restored.
func (b *logbook) isStored(ctx context.Context, r *reading) (bool, error) {
	if b.id == "" || slices.Contains(r.ids, b.id) {
		return true, nil
	}
	for rec, err := range records(ctx, b.store, b.key, b.seq) {
		if _, damaged := errors.AsType[*DamageError](err); damaged {
			return true, nil // it may have been that record
		}
		return rec.Seq != b.seq || rec.ID == b.id, err
	}
	return true, nil
}

// common returns the last ID up to which entries of h and theirs agree. An entry of h
// whose ID belongs to a different entry of theirs is not in any record.
func (h *History) common(theirs *state, base ID) ID {
	for _, e := range h.list {
		if e.id > base {
			break
		}
		if t := theirs.find(e.id); t != nil && (t.at != e.at || t.msg.Role != e.msg.Role) {
			return e.id - 1
		}
	}
	return min(base, theirs.last)
}

// merge merges r into h. theirs was made from r, and saved is the picture of r. isStored
// reports whether the last saved state of h is in the log.
func (h *History) merge(r *reading, theirs *History, saved *picture, isStored bool) *merger {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.recorder.book()
	m := &merger{h: h, theirs: theirs, moved: make(map[ID]ID), again: make(map[ID]rejoined), base: max(l.last(), l.loaded), was: cmp.Or(l.saved, noPicture), unsaved: h.recorder.draft(h.pictureLocked(), false)}
	if !isStored || r.state.log == l.name && r.newest.Seq <= l.seq { // an old backup was restored
		m.base, m.isBackup = h.common(&theirs.state, m.base), true
	}
	m.mergeLocked(r, saved)
	return m
}

// A merger replaces the content of a History with the stored content, and appends the
// messages that are in no record.
type merger struct {
	h, theirs *History
	base      ID           // entries with higher IDs may be in no record
	isBackup  bool         // the stored state is older than the saved state of h
	was       *picture     // the record that h saved last
	unsaved   *draft       // what that does not hold
	own       [][]departed // exchanges that are in no record, in ascending order
	pinned    map[ID]bool  // heads of the pinned ones
	idle      map[ID]bool  // results in own that answer no open call of the stored view
	moved     map[ID]ID
	refused   []Message
	appended  bool // an exchange was appended
	released  ID   // no entry of own up to this one is bound
	rekeyed   bool // the tags of the stored state have another key, so no entry of own is bound

	held      []*state         // the states that had the entries of h before the Reload
	knew      knowledge        // of h before the Reload, with the views that usage was reported for
	again     map[ID]rejoined  // entries that were appended again, by their old IDs
	queued    []*queued        // messages of h that are in no record
	taken     map[*queued]bool // messages of the stored queue that h has delivered or removed
	delivered map[ID]*queued   // stored queue messages, by the entries of own that h delivered them as
	elsewhere map[ID]bool      // queued entries that others have delivered or removed
	found     map[ID]bool      // entries of theirs that match an entry of elsewhere
}

// A rejoined is an entry before and after it was appended again.
type rejoined struct{ was, is *entry }

func (m *merger) mergeLocked(r *reading, saved *picture) {
	h, l, t := m.h, m.h.recorder.book(), m.theirs
	m.compareQueuesLocked(saved.view.queue)
	m.collectLocked()
	if h.meta == m.was.view.meta {
		h.meta = t.meta
	}
	m.held = []*state{&h.snapshotLocked().state, &m.was.view.state}
	theirs := t.state.keeping(m.held...)
	unlearned := h.meter.saved().named.limit == m.was.named.limit

	h.newVersion()
	h.reloaded, h.rewritten, h.compactor.compacted = h.version, h.version, noVersion
	m.released = max(h.released, t.released)
	if h.id.key != t.id.key {
		m.rekeyed, h.answers = true, sentView{known: true, open: true} // the tags of what was sent had the other key
	}
	takenBack := h.takenBack
	h.last, h.touched, h.appended, h.released, h.takenBack, h.left = t.last, t.touched, t.appended, min(m.released, t.last), t.takenBack, t.left
	if h.tools.sameAs(m.was.view.tools) && !h.tools.sameAs(t.tools) {
		h.tools = t.tools
	}
	h.summary, h.pins, h.queue = theirs.summary, slices.Clone(t.pins), t.queue
	h.replace(theirs.sys, theirs.list, theirs.originals, theirs.listRaw, theirs.turns, theirs.turn)
	if was, now := orNil(m.was.view.request), orNil(t.request); was.requestHeads != now.requestHeads || was.requestFigures != now.requestFigures {
		h.request = now.withTold(orNil(h.request).told) // others were answered since
	}
	h.seen = 0
	h.sumPins()
	h.calls = callsOf(h.list)
	h.edits, h.reversals = nil, nil
	h.compactor.lastFocus, h.lastEdit = "", t.lastEdit
	m.recountLocked()
	h.setSpilledLocked(maps.Clone(h.spills.spilled))
	h.id = newIdentity(h.ident.counter, t.id, "")
	if h.talk.sending != nil {
		h.talk.sending = &sending{last: -1, cancel: h.talk.sending.cancel} // the request does not end at the end of the new view
	}
	adopted := h.known().model == "" && len(h.known().learned) == 0
	if adopted {
		if theirs := t.meter.saved(); theirs.chosen && !h.meter.saved().chosen {
			h.setLimitsLocked(theirs.limits, false)
		}
		if r.state.model != "" {
			h.meter.setModel()
		}
		h.adoptKnowledge(r, h.opts.prior(r.state.model), h.known().toolsSet)
	}
	if unlearned && h.known().model == t.known().model {
		h.meter.adoptNamed(r.state.named)
	}
	h.releaseViews(0)
	if !adopted {
		m.knew = *h.known()
		m.recogniseLocked()
	}
	h.sumMeasured(true)

	saved = m.storedLocked(saved)
	h.recorder.adopt(l.asRead(r, saved, h.last), keepsake{})
	for _, r := range takenBack {
		if r.Last > h.last { // these IDs name nothing else later
			h.takenBack = append(slices.Clip(h.takenBack), Range{max(r.First, t.last+1), r.Last})
			h.last, h.snap = r.Last, nil
		}
	}
	if p := h.pictureLocked(); p.scalars != saved.scalars || !difference(saved, p).isEmpty() {
		h.newVersion() // what h has learned is not stored
	}
	answers, failed := h.answers, h.talk.failed
	m.appendLocked()
	h.answers = answers // no answer to it was appended
	if r, ok := m.again[failed]; ok {
		h.talk.failed = r.is.id
	} else if failed <= m.base {
		h.talk.failed = failed
	}
	if m.appended && !adopted {
		m.recogniseLocked()
		h.sumMeasured(true)
		h.newVersion() // the bounds so far do not include the measured part
	}
	if len(m.queued)+len(m.taken) > 0 {
		kept := slices.DeleteFunc(slices.Clone(h.queue), func(q *queued) bool { return m.taken[q] })
		h.queue, h.snap = append(kept, m.queued...), nil
	}
	h.updateChargeLocked()
	if m.appended || len(m.queued) > 0 && (!h.awaitsAnswer() || h.hasFailed()) {
		h.deliverLocked()
	}
}

// recogniseLocked makes the views that usage was reported for refer to the entries of h
// after the Reload.
func (m *merger) recogniseLocked() { m.h.knowledge = m.knew.with(m.recognise) }

// recognise returns a copy of c whose view refers to the current entries of h.
func (m *merger) recognise(c *calibration) *calibration {
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
		} else if e := m.h.find(old.id); e == nil || m.isOwn(e) {
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

// compareQueuesLocked finds the messages of the stored queue that h also has, and what
// became of them.
func (m *merger) compareQueuesLocked(stored []*queued) {
	h := m.h
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
		for _, q := range h.queue {
			if find(&q.msg) == nil {
				m.queued = append(m.queued, q)
			}
		}
		for _, e := range h.list[firstAfter(h.list, m.base):] {
			if e.msg.Role != RoleUser {
				continue
			}
			if q := find(&e.msg); q != nil {
				m.delivered[e.id], m.taken[q] = q, true
			}
		}
		return
	}
	saved := m.was.view.queue
	same := make(map[*queued]*queued) // stored messages, by the messages of h
	for _, q := range saved {
		if theirs := find(&q.msg); theirs != nil {
			same[q] = theirs
			if !slices.Contains(h.queue, q) {
				m.taken[theirs] = true
			}
		}
	}
	for _, q := range h.queue {
		if !slices.Contains(saved, q) {
			m.queued = append(m.queued, q)
		}
	}
	for id, q := range m.unsaved.made {
		switch theirs := same[q]; {
		case theirs != nil:
			m.delivered[id] = theirs
		case slices.Contains(saved, q):
			m.elsewhere[id] = true
		}
	}
}

// recountLocked adopts the stored count of the tokens ever appended, and the stored
// breaker unless that of h has changed.
func (m *merger) recountLocked() {
	h, t := m.h, m.theirs
	more := t.appendedEver - h.appendedEver
	h.appendedEver = t.appendedEver
	h.compactor.heldAt += more
	h.spills.spillBreaker.appended += more
	if h.compactor.breaker.saved() == m.was.breaker {
		h.compactor.breaker = t.compactor.breaker
	} else {
		h.compactor.breaker.appended = max(h.compactor.breaker.appended+more, 0)
	}
}

// storedLocked returns a picture of the stored state that uses the entries of h. saved is
// the picture that uses the entries as read.
func (m *merger) storedLocked(saved *picture) *picture {
	if saved.view.owner != m.theirs {
		return saved // it was repaired
	}
	p, s := *saved, *m.h.snapshotLocked()
	s.knowledge, s.measured, s.meta, s.request = saved.view.knowledge, saved.view.measured, saved.view.meta, saved.view.request
	p.view, p.rewritten = &s, m.h.rewritten
	return &p
}

// collectLocked sets m.own to the entries that are in no record, both those in the view
// and those removed from it by an edit.
func (m *merger) collectLocked() {
	h := m.h
	m.pinned, m.idle = make(map[ID]bool), make(map[ID]bool)
	var all []departed
	for _, list := range [][]*entry{h.sys, h.list} {
		for _, e := range list {
			if e.id <= m.base {
				continue
			}
			if d, ok := m.unsaved.past[e.id]; ok {
				all = append(all, d) // as it was appended
			} else {
				all = append(all, departed{was: e, original: h.original(e.id)})
			}
			m.pinned[e.head] = m.pinned[e.head] || h.isPinned(e.head)
		}
	}
	for id, d := range m.unsaved.past {
		if h.find(id) == nil && id > m.base && !d.was.isSystem() {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b departed) int { return int(a.was.id - b.was.id) })
	heads := make(map[ID]bool) // of own exchanges
	for _, d := range all {
		e := d.was
		if m.isHeldLocked(e) {
			continue
		}
		if m.elsewhere[e.id] {
			others := m.theirs.list[firstAfter(m.theirs.list, m.base):]
			if i := slices.IndexFunc(others, func(o *entry) bool { return !m.found[o.id] && o.msg.sameAs(&e.msg) }); i >= 0 {
				m.found[others[i].id] = true
				if id := others[i].id; id != e.id {
					m.moved[e.id] = id
				}
			}
			continue
		}
		heads[e.head] = heads[e.head] || e.head == e.id
		idle := e.msg.Role == RoleTool && !heads[e.head] && !m.isOpenLocked(e)
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

// isMade reports whether Options.OnLoad made the result.
func (m *merger) isMade(e *entry) bool {
	q, ok := m.unsaved.made[e.id]
	return ok && q == nil
}

// isHeldLocked reports whether the stored view already has an entry of h: the same entry,
// or a system message with the same text.
func (m *merger) isHeldLocked(e *entry) bool {
	if theirs := m.theirs.find(e.id); theirs != nil && theirs.sameAs(e) {
		return true
	}
	return e.isSystem() &&
		slices.ContainsFunc(m.theirs.sys, func(s *entry) bool { return s.msg.sameAs(&e.msg) })
}

// isOpenLocked reports whether the calls answered by a tool message of h are open in the
// stored view. A repair may have changed the ID of the exchange.
func (m *merger) isOpenLocked(results *entry) bool {
	c := m.theirs.calls
	if c.openCalls() == 0 {
		return false
	}
	for _, p := range results.msg.Parts {
		if _, err := c.find(p.(ToolResult).CallID, ""); err != nil {
			return false
		}
	}
	own, theirs := m.h.find(results.head), m.theirs.find(c.head)
	return results.head == c.head || own != nil && own.at == theirs.at
}

// appendLocked appends m.own. Refused messages that are still in the stored queue stay
// there.
func (m *merger) appendLocked() {
	for _, exchange := range m.own {
		if !m.idle[exchange[0].was.id] && m.appendExchangeLocked(exchange) {
			continue
		}
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
}

// appendExchangeLocked appends one exchange, and reports whether it was accepted.
func (m *merger) appendExchangeLocked(exchange []departed) bool {
	h := m.h
	batch := make([]pendingEntry, len(exchange))
	lastAppend := h.lastAppend
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
	if _, err := h.appendLocked(batch); err != nil {
		return false
	}
	h.lastAppend, m.appended = lastAppend, true
	for i, d := range exchange {
		if id := batch[i].id; id != d.was.id {
			m.moved[d.was.id] = id
		}
		m.again[d.was.id] = rejoined{d.was, batch[i].entry}
		if q := m.delivered[d.was.id]; q != nil || m.isMade(d.was) {
			h.recorder.add(extra{made: map[ID]*queued{batch[i].id: q}})
		}
	}
	return true
}
