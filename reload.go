package convo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Reload takes over what others have saved under the key of h since h was last
// saved or opened. If nothing was, nothing changes.
//
// Otherwise the view, the summary, the pins and the queue become what is stored.
// Messages that were appended to h and are in no record, those that an unsaved edit
// took out of the view included, are appended again after what is stored, in their
// order and with their pins, one exchange at a time; moved maps the old ID of each to
// its new one, where they differ. No [RolePolicy] refuses them: two user messages or
// two answers may be next to each other then, as after a compaction.
//
// What cannot be appended is returned as refused, and is no longer in h: results
// whose call is not open in what is stored; system messages that are not stored; and,
// while a call is open in what is stored, everything but its results, unless the policy
// lets a user message interrupt it. How many these are is also logged as a warning.
//
// Messages of the stored queue that h has delivered or Unqueue has taken out leave it,
// and those that were delivered are appended again, with what follows them. If others
// have delivered such a message or taken it out, that is what counts: the one that h
// has delivered is dropped, and its answer stays. What only h has queued goes to the end
// of the queue, and is delivered if [History.Queue] would deliver it.
//
// Entries that Options.Repair has changed count as stored: they are read and repaired
// again, and Repair is told their new IDs. Options.OnLoad has no effect; a result that
// it has made, and that is in no record, stays only if the call is still open in what is
// stored.
//
// The title and the data of [History.SetMeta] become those that are stored too, unless
// SetMeta has changed them since h was last saved. The model, the limits and what usage
// reports have taught stay those of h; what was measured of messages that are appended
// again stays measured. Everything else that was not saved is gone:
// edits, rollbacks, pins of what was saved.
//
// Afterwards, snapshots from before are only for reading: Apply, Rollback,
// RecordUsage and so on return a [*StaleError] for them, Undo takes none of the
// earlier edits back, and an answer that Do waits for is refused.
//
// If the log was deleted, the error matches [ErrNotFound]; Attach begins another. Other
// errors are those of [Open]. After an error nothing has changed. Reload also works
// after Close.
func (h *History) Reload(ctx context.Context) (moved map[ID]ID, refused []Message, err error) {
	ctx, l, err := h.takeOpenLog(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer h.saving.release()
	r, err := readLog(ctx, l.store, l.key, 0)
	switch {
	case err != nil:
		return nil, nil, err
	case r == nil && l.id == "":
		return nil, nil, nil
	case r == nil:
		return nil, nil, fmt.Errorf("%w: the log of %q was deleted; call Attach to begin a new one", ErrNotFound, l.key)
	}
	if d := draftIn(l.drafts, r.ids...); d != nil {
		h.mu.Lock()
		l.storedLocked(d)
		h.mu.Unlock()
	} else if len(l.drafts) > 0 && !slices.Contains(r.ids, l.id) {
		if _, err := h.findDraft(ctx, l, nil); err != nil {
			return nil, nil, err
		}
	}
	if r.newest.ID == l.id {
		return nil, nil, nil
	}
	opts := h.opts
	opts.Budget = nil // what h weighs is charged by h
	theirs, saved, err := r.open(ctx, l.store, &opts)
	if err != nil {
		return nil, nil, err
	}
	m := h.merge(r, theirs.h, saved)
	if len(m.refused) > 0 {
		h.warn("convo: Reload could not append messages and returned them", "messages", len(m.refused), "key", l.key)
	}
	return m.moved, m.refused, nil
}

// merge takes over what was read, of which theirs was made and saved is the picture.
func (h *History) merge(r *reading, theirs *History, saved *picture) *merger {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.log
	m := &merger{h: h, theirs: theirs, moved: make(map[ID]ID), again: make(map[ID]rejoined), base: max(l.last(), l.loaded), made: l.made}
	if r.state.log == l.name && r.newest.Seq <= l.seq { // an old backup was put back
		m.base, m.isBackup = min(m.base, r.state.last), true
	}
	m.mergeLocked(r, saved)
	return m
}

// A merger makes of a History what is stored, and appends what no record holds.
type merger struct {
	h, theirs *History
	base      ID           // entries with higher IDs may be in no record
	isBackup  bool         // what is stored is older than what h has saved
	made      []ID         // results that OnLoad made
	own       [][]departed // exchanges that no record holds, in ascending order
	pinned    map[ID]bool  // the heads of those that are pinned
	idle      map[ID]bool  // results of own that answer no call which is open in what is stored
	moved     map[ID]ID
	refused   []Message
	appended  bool // an exchange was not refused

	held      []*state         // where entries of h were before
	knew      knowledge        // of h before, with the views that usage was reported for
	again     map[ID]rejoined  // entries that were appended again, by their IDs before
	queued    []*queued        // of h, and in no record
	taken     map[*queued]bool // messages of the stored queue that h has delivered or taken out
	delivered map[ID]*queued   // as which of them an entry of own was queued
	elsewhere map[ID]bool      // entries that were queued, and that others have delivered or taken out
	found     map[ID]bool      // entries of theirs that are the same as one of elsewhere
}

// A rejoined is an entry before it was appended again, and after.
type rejoined struct{ was, is *entry }

func (m *merger) mergeLocked(r *reading, saved *picture) {
	h, l, t := m.h, m.h.log, m.theirs
	m.compareQueuesLocked(saved.queue)
	m.collectLocked()
	if l.saved == nil {
		l.saved = noPicture
	}
	if h.meta == l.saved.meta {
		h.meta = t.meta
	}
	m.held = []*state{&h.snapshotLocked().state, &l.saved.state}
	theirs := t.state.keeping(m.held...)
	unlearned := h.named == l.saved.named.limit

	h.newVersionLocked()
	h.reloaded, h.rewritten, h.compacted = h.version, h.version, noVersion
	h.last, h.touched, h.appended = t.last, t.touched, t.appended
	h.summary, h.pins, h.queue = theirs.summary, slices.Clone(t.pins), t.queue
	h.replace(theirs.sys, theirs.list, theirs.originals, theirs.listRaw, theirs.turns, theirs.turn)
	h.seen = 0
	h.sumPins()
	h.calls = callsOf(h.list)
	h.edits, h.reversals = nil, nil
	h.lastFocus, h.lastEdit = "", t.lastEdit
	m.recountLocked()
	h.setSpilledLocked(maps.Clone(h.spilled))
	h.id = newIdentity(h.ident.counter, t.id, "")
	if h.sending != nil {
		h.sending = &sending{last: -1, cancel: h.sending.cancel} // the request does not end where the view does now
	}
	adopted := h.known().model == "" && len(h.known().learned) == 0
	if adopted {
		if t.chosen && !h.chosen {
			h.setLimitsLocked(t.limits)
		}
		h.adoptKnowledgeLocked(t.known().model, r)
		h.heard = t.heard
	}
	if unlearned && h.known().model == t.known().model {
		h.adoptBoundLocked(r.state.named)
	}
	h.releaseViewsLocked(0)
	if !adopted {
		m.knew = *h.known()
		m.recogniseLocked()
	}
	h.sumMeasured(true)

	l.adoptLocked(r, m.storedLocked(saved), h.last)
	if p := h.pictureLocked(); p.scalars != l.saved.scalars || !difference(l.saved, p).isEmpty() {
		h.newVersionLocked() // what h has learned is not stored
	}
	m.appendLocked()
	if m.appended && !adopted {
		m.recogniseLocked()
		h.sumMeasured(true)
		h.newVersionLocked() // the bounds so far are those without what was measured
	}
	if len(m.queued)+len(m.taken) > 0 {
		kept := slices.DeleteFunc(slices.Clone(h.queue), func(q *queued) bool { return m.taken[q] })
		h.queue, h.snap = append(kept, m.queued...), nil
	}
	h.updateChargeLocked()
	if m.appended || len(m.queued) > 0 && !h.awaitsAnswer() {
		h.deliverLocked()
	}
}

// recogniseLocked replaces what is known of the views that usage was reported for, so
// that it names the entries of these views as they are in h after the Reload.
func (m *merger) recogniseLocked() {
	k := m.knew
	k.cal, k.learned = m.recognise(k.cal), slices.Clone(k.learned)
	for i, c := range k.learned {
		if c == m.knew.cal {
			k.learned[i] = k.cal
		} else {
			k.learned[i] = m.recognise(c)
		}
	}
	m.h.knowledge = &k
}

// recognise returns a copy of c whose view names the entries that h has now.
func (m *merger) recognise(c *calibration) *calibration {
	if c == nil || c.at == nil {
		return c
	}
	own, at := *c, *c.at
	at.sys, at.list = m.renamed(at.sys), m.renamed(at.list)
	own.at = &at
	return &own
}

// renamed returns v with the new IDs of entries that were appended again. What has the
// ID of an entry from others is not in the result.
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

// isOwn reports whether h had the entry itself before.
func (m *merger) isOwn(e *entry) bool {
	return slices.ContainsFunc(m.held, func(s *state) bool { return s.find(e.id) == e })
}

// compareQueuesLocked finds out which messages of the stored queue h has too, and what
// has become of them.
func (m *merger) compareQueuesLocked(stored []*queued) {
	h, l := m.h, m.h.log
	m.taken, m.delivered = make(map[*queued]bool), make(map[ID]*queued)
	m.elsewhere, m.found = make(map[ID]bool), make(map[ID]bool)
	stored = slices.Clone(stored)
	find := func(msg *Message) *queued { // and leave it out from now on
		i := slices.IndexFunc(stored, func(q *queued) bool { return reflect.DeepEqual(&q.msg, msg) })
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
	var saved []*queued
	if l.saved != nil {
		saved = l.saved.queue
	}
	same := make(map[*queued]*queued) // the stored ones, by those of h
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
	for id, q := range l.delivered {
		switch theirs := same[q]; {
		case theirs != nil:
			m.delivered[id] = theirs
		case slices.Contains(saved, q):
			m.elsewhere[id] = true
		}
	}
}

// recountLocked takes over what is stored of the tokens ever appended, and of the
// breaker unless h has changed its own.
func (m *merger) recountLocked() {
	h, t := m.h, m.theirs
	more := t.appendedEver - h.appendedEver
	h.appendedEver = t.appendedEver
	h.heldAt += more
	h.spillBreaker.appended += more
	if h.breaker.saved() == h.log.saved.breaker {
		h.breaker = t.breaker
	} else {
		h.breaker.appended = max(h.breaker.appended+more, 0)
	}
}

// storedLocked returns a picture of what is stored, in the entries that h has. saved
// is one in the entries that were read.
func (m *merger) storedLocked(saved *picture) *picture {
	if saved.owner != m.theirs {
		return saved // it had to be repaired
	}
	p, s := *saved, *m.h.snapshotLocked()
	s.knowledge, s.measured, s.meta = saved.knowledge, saved.measured, saved.meta
	p.Snapshot, p.rewritten = &s, m.h.rewritten
	return &p
}

// collectLocked sets m.own: what is in the view, or has left it by an edit, and is
// in no record.
func (m *merger) collectLocked() {
	h, l := m.h, m.h.log
	m.pinned, m.idle = make(map[ID]bool), make(map[ID]bool)
	var all []departed
	for _, list := range [][]*entry{h.sys, h.list} {
		for _, e := range list {
			if e.id <= m.base {
				continue
			}
			if d, ok := l.past[e.id]; ok {
				all = append(all, d) // as it was appended
			} else {
				all = append(all, departed{was: e, original: h.original(e.id)})
			}
			m.pinned[e.head] = m.pinned[e.head] || h.isPinned(e.head)
		}
	}
	for id, d := range l.past {
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
			if i := slices.IndexFunc(others, func(o *entry) bool { return !m.found[o.id] && reflect.DeepEqual(&o.msg, &e.msg) }); i >= 0 {
				m.found[others[i].id] = true
				if id := others[i].id; id != e.id {
					m.moved[e.id] = id
				}
			}
			continue
		}
		heads[e.head] = heads[e.head] || e.head == e.id
		idle := e.msg.Role == RoleTool && !heads[e.head] && !m.isOpenLocked(e)
		if idle && slices.Contains(m.made, e.id) {
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

// isHeldLocked reports whether what is stored holds an entry of h already: as the
// same entry, or as a system message with the same text.
func (m *merger) isHeldLocked(e *entry) bool {
	if theirs := m.theirs.find(e.id); theirs != nil && theirs.sameAs(e) {
		return true
	}
	return e.isSystem() &&
		slices.ContainsFunc(m.theirs.sys, func(s *entry) bool { return reflect.DeepEqual(&s.msg, &e.msg) })
}

// isOpenLocked reports whether the calls that the results in an entry of h answer are
// open in what is stored. A repair may have given the exchange another ID.
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

// appendLocked appends m.own. Messages that still are in the stored queue stay there
// if they are refused.
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

// appendExchangeLocked appends one exchange, or returns false.
func (m *merger) appendExchangeLocked(exchange []departed) bool {
	h := m.h
	batch := make([]pendingEntry, len(exchange))
	lastAppend := h.lastAppend
	for i, d := range exchange {
		e := *d.was
		e.msg, e.inline = e.msg.clone(), [1]Part{}
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
		if slices.Contains(m.made, d.was.id) {
			h.log.made = append(h.log.made, batch[i].id)
		}
		if q := m.delivered[d.was.id]; q != nil {
			h.log.delivered[batch[i].id] = q
		}
	}
	return true
}
