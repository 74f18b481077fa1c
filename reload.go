package convo

import (
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
// order and with their pins, one exchange at a time; moved tells the new ID of each
// whose ID changed. If the [RolePolicy] or the pairing of calls and results refuses an
// exchange, it and all after it are returned as refused, and are no longer in h; a
// system message that is refused is returned alone, since the stored ones stand.
//
// Entries that Options.Repair has changed count as stored: they are read and repaired
// again, and Repair is told their new IDs. Options.OnLoad has no effect; a result that
// it has made, and that is in no record, stays only if the call is still open in what is
// stored.
//
// The title and the data of [History.SetMeta] become those that are stored too, unless
// SetMeta has changed them since h was last saved. The model, the limits and what usage
// reports have taught stay those of h. Everything else that was not saved is gone:
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
	defer h.releaseLog()
	r, err := readLog(ctx, l.store, l.key, 0, 0)
	switch {
	case err != nil:
		return nil, nil, err
	case r == nil && l.id == "":
		return nil, nil, nil
	case r == nil:
		return nil, nil, fmt.Errorf("%w: the log of %q was deleted; Attach begins another", ErrNotFound, l.key)
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
	theirs, saved, err := r.open(&opts)
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := merger{h: h, theirs: theirs.h, moved: make(map[ID]ID), base: max(l.last(), l.loaded), made: l.made}
	if r.state.log == l.name && r.newest.Seq <= l.seq {
		m.base = min(m.base, r.state.last) // an old backup was put back
	}
	m.mergeLocked(r, saved)
	return m.moved, m.refused, nil
}

// A merger makes of a History what is stored, and appends what no record holds.
type merger struct {
	h, theirs *History
	base      ID           // entries with higher IDs may be in no record
	made      []ID         // results that OnLoad made
	own       [][]departed // exchanges that no record holds, in ascending order
	pinned    map[ID]bool  // the heads of those that are pinned
	moved     map[ID]ID
	refused   []Message
	appended  bool // an exchange was not refused
}

func (m *merger) mergeLocked(r *reading, saved *picture) {
	h, l, t := m.h, m.h.log, m.theirs
	m.collectLocked()
	queue := m.ownQueueLocked()
	if l.saved == nil {
		l.saved = noPicture
	}
	if h.meta == l.saved.meta {
		h.meta = t.meta
	}
	theirs := t.state.keeping(&h.state, &l.saved.state)

	h.newVersionLocked()
	h.reloaded, h.rewritten, h.compacted = h.version, h.version, noVersion
	h.last, h.touched, h.appended = t.last, t.touched, t.appended
	h.summary, h.pins, h.queue = theirs.summary, slices.Clone(t.pins), t.queue
	h.replace(theirs.sys, theirs.list, theirs.originals, theirs.listRaw, theirs.turns, theirs.turn)
	h.seen = 0
	h.sumPins()
	h.calls = callsOf(h.list)
	h.edits, h.applied, h.rollbacks, h.undone = nil, nil, nil, nil
	h.lastFocus, h.lastEdit = "", t.lastEdit
	m.recountLocked()
	h.setSpilledLocked(maps.Clone(h.spilled))
	h.id = newIdentity(h.ident.counter, t.id)
	if h.sending != nil {
		h.sending = &sending{last: -1, cancel: h.sending.cancel} // the request does not end where the view does now
	}
	if h.known().model == "" && len(h.known().learned) == 0 {
		if t.chosen && !h.chosen {
			h.setLimitsLocked(t.limits)
		}
		h.adoptKnowledgeLocked(t.known().model, &r.state)
		h.heard = t.heard
	}
	h.sumMeasured(true)
	h.releaseViewsLocked(0)

	l.adoptLocked(r, m.storedLocked(saved), h.last)
	if !difference(l.saved, h.pictureLocked()).isEmpty() {
		h.newVersionLocked() // what h has learned is not stored
	}
	m.appendLocked()
	if len(queue) > 0 {
		h.queue = append(slices.Clip(h.queue), queue...)
		h.snap = nil
	}
	h.updateChargeLocked()
	if m.appended {
		h.deliverLocked()
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
	m.pinned = make(map[ID]bool)
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
		if h.find(id) == nil && id > m.base && d.was.msg.Role != RoleSystem {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b departed) int { return int(a.was.id - b.was.id) })
	for _, d := range all {
		if m.isHeldLocked(d.was) {
			continue
		}
		if n := len(m.own); n > 0 && m.goesWith(m.own[n-1][0].was, m.own[n-1][len(m.own[n-1])-1].was, d.was) {
			m.own[n-1] = append(m.own[n-1], d)
			continue
		}
		m.own = append(m.own, []departed{d})
	}
}

// goesWith reports whether e is to be appended together with the exchange from first
// to prev: it belongs to it, or both were queued and so come in one run.
func (m *merger) goesWith(first, prev, e *entry) bool {
	return e.head == first.head && e.msg.Role != RoleSystem ||
		e.msg.Role == RoleUser && prev.msg.Role == RoleUser && e.turn == prev.turn && e.id > prev.id+1
}

// isHeldLocked reports whether what is stored holds an entry of h already: as the
// same entry, as a system message with the same text, or in the queue; or, for a
// result that OnLoad made, whether the call is not open there.
func (m *merger) isHeldLocked(e *entry) bool {
	if theirs := m.theirs.find(e.id); theirs != nil && theirs.sameAs(e) {
		return true
	}
	switch e.msg.Role {
	case RoleSystem:
		return slices.ContainsFunc(m.theirs.sys, func(s *entry) bool { return reflect.DeepEqual(&s.msg, &e.msg) })
	case RoleUser:
		return m.wasQueuedLocked(&e.msg)
	case RoleTool:
		return slices.Contains(m.made, e.id) && !m.isOpenLocked(e)
	}
	return false
}

// isOpenLocked reports whether the call that a result of h answers is open in what is
// stored. A repair may have given the exchange another ID.
func (m *merger) isOpenLocked(result *entry) bool {
	c := m.theirs.calls
	if c.openCalls() == 0 {
		return false
	}
	if _, err := c.find(result.msg.Parts[0].(ToolResult).CallID, ""); err != nil {
		return false
	}
	own, theirs := m.h.find(result.head), m.theirs.find(c.head)
	return result.head == c.head || own != nil && own.at == theirs.at
}

// ownQueueLocked returns the messages of the queue that no record holds.
func (m *merger) ownQueueLocked() []queued {
	return slices.DeleteFunc(slices.Clone(m.h.queue), func(q queued) bool { return m.wasQueuedLocked(&q.msg) })
}

// wasQueuedLocked reports whether a message is one of the queue as it was last saved.
func (m *merger) wasQueuedLocked(msg *Message) bool {
	saved := m.h.log.saved
	return saved != nil && slices.ContainsFunc(saved.queue, func(q queued) bool { return sameParts(&q.msg, msg) })
}

// sameParts reports whether two messages share their parts, as a queued message and
// the entry do that it becomes.
func sameParts(a, b *Message) bool {
	return len(a.Parts) > 0 && len(a.Parts) == len(b.Parts) && &a.Parts[0] == &b.Parts[0]
}

// appendLocked appends m.own.
func (m *merger) appendLocked() {
	stop := false
	for _, exchange := range m.own {
		if stop || !m.appendExchangeLocked(exchange) {
			stop = stop || exchange[0].was.msg.Role != RoleSystem
			for _, d := range exchange {
				msg := d.was.msg
				if d.original != nil {
					msg = d.original.msg
				}
				m.refused = append(m.refused, msg.clone())
			}
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
		batch[i] = pendingEntry{entry: &e, pin: m.pinned[d.was.head], again: true, goesOn: i > 0 && e.msg.Role == RoleUser}
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
		if slices.Contains(m.made, d.was.id) {
			h.log.made = append(h.log.made, batch[i].id)
		}
	}
	return true
}
