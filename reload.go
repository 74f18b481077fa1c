package convo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Reload loads the changes that other writers have saved under the key of h since h was
// last saved or opened. If there are none, nothing changes.
//
// Otherwise the view, the summary, the pins and the queue are replaced by the stored
// ones. Messages of h that are in no record, also those that an unsaved edit removed, are
// appended again after the stored entries, in order, with their pins, one exchange at a
// time. moved maps their old IDs to the new ones, where they differ. No [RolePolicy]
// refuses them, so two user messages or two answers may be adjacent.
//
// Messages that cannot be appended are returned as refused and removed from h: results
// whose call is not open in the stored view, and system messages that are not stored.
// While a stored call is open, all but its results are refused, unless the policy lets a
// user message interrupt it. A warning logs their number.
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
	r, found, err := b.readNewest(ctx)
	if err != nil || r == nil {
		return nil, nil, err
	}
	h.wrote(outcome{stored: found})
	b, _ = h.openLog()
	if r.newest.ID == b.id {
		return nil, nil, nil
	}
	isStored, err := b.isStored(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.start(ctx, b.store, false)
	if err != nil {
		return nil, nil, err
	}
	own := h.withKeyOf(p.view.id)
	theirs := &view{state: state{id: own.ident, keep: keeping{most: maxTotal}}}
	_, saved, err := r.load(own, theirs, p)
	if err != nil {
		return nil, nil, err
	}
	var m *merger
	h.change(func() error {
		m = h.mergeLocked(r, theirs, saved, isStored)
		return nil
	})
	if len(m.refused) > 0 {
		h.warn("convo: Reload could not append messages and returned them", "messages", len(m.refused), "key", b.key)
	}
	return m.moved, m.refused, nil
}

// readNewest reads the log. It also returns the draft in doubt that is in the log, or nil if
// there is none. The reading is nil if there is no log and there was none before.
func (b *logbook) readNewest(ctx context.Context) (r *reading, found *draft, err error) {
	r, err = readLog(ctx, b.store, b.key, 0)
	if err != nil || r == nil && b.id == "" {
		return nil, nil, err
	}
	if r == nil {
		return nil, nil, fmt.Errorf("%w: the log of %q was deleted; call Attach to begin a new one", ErrNotFound, b.key)
	}
	found = draftIn(b.drafts, r.ids...)
	if found == nil && len(b.drafts) > 0 && !slices.Contains(r.ids, b.id) {
		found, _, err = b.find(ctx, b.drafts)
	}
	return r, found, err
}

// isStored reports whether the log has the record that h saved last, or no longer reaches
// back to it. It does not have that record if a backup was restored. The error matches
// ErrNotFound if r is of another log.
func (b *logbook) isStored(ctx context.Context, r *reading) (bool, error) {
	switch {
	case b.id == "":
		return true, nil
	case r.state.log != b.name:
		return false, fmt.Errorf("%w: the log of %q was deleted, and another was begun; Open that, and append what is missing", ErrNotFound, b.key)
	case slices.Contains(r.ids, b.id):
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

// common returns the last ID up to which entries of s and theirs agree. An entry of s
// whose ID belongs to a different entry of theirs is not in any record.
func (s *state) common(theirs *state, base ID) ID {
	for _, e := range s.list {
		if e.id > base {
			break
		}
		if t := theirs.find(e.id); t != nil && (t.at != e.at || t.msg.Role != e.msg.Role) {
			return e.id - 1
		}
	}
	return min(base, theirs.last)
}

// mergeLocked merges r into h. theirs was made from r, and saved is the picture of r. isStored
// reports whether the last saved state of h is in the log.
func (h *History) mergeLocked(r *reading, theirs *view, saved *picture, isStored bool) *merger {
	b := h.recorder.book()
	m := &merger{
		view: &h.view, theirs: theirs, base: max(b.last(), b.loaded),
		was: cmp.Or(b.saved, noPicture), unsaved: h.recorder.draft(h.pictureLocked(), false),
		moved: make(map[ID]ID), again: make(map[ID]rejoined),
	}
	if !isStored || r.state.log == b.name && r.newest.Seq <= b.seq { // an old backup was restored
		m.base, m.isBackup = h.common(&theirs.state, m.base), true
	}
	m.compareQueues(saved.view.queue)
	m.collect()
	unlearned := h.meter.saved().named.limit == m.was.named.limit
	more := m.replace()
	h.compactor.adopt(m.was.breaker, saved.breaker, more)
	h.adoptLearnedLocked(m, r, saved)
	if unlearned && h.known().model == r.state.model {
		h.meter.adoptNamed(r.state.named)
	}
	h.releaseViews(0)
	m.recognise()
	saved = m.stored(r, saved)
	h.recorder.adopt(b.asRead(r, saved, h.last), keepsake{})
	m.keepTakenBack()
	if p := h.pictureLocked(); p.scalars != saved.scalars || !difference(saved, p).isEmpty() {
		h.newVersion() // what h has learned is not stored
	}
	h.appendAgainLocked(m)
	if m.appended || len(m.queued) > 0 && (!h.awaitsAnswer() || h.talk.hasFailed(h.newestMessage())) {
		h.deliverLocked()
	}
	return m
}

// adoptLearnedLocked adopts what the records hold of the model, if h has learned nothing.
func (h *History) adoptLearnedLocked(m *merger, r *reading, saved *picture) {
	m.adopts = h.known().model == "" && len(h.known().learned) == 0
	if !m.adopts {
		return
	}
	if saved.chosen && !h.meter.saved().chosen {
		h.setLimitsLocked(saved.limits, false)
	}
	if r.state.model != "" {
		h.meter.setModel(nil)
	}
	h.adoptKnowledge(r, h.opts.prior(r.state.model), h.known().toolsSet)
}

// appendAgainLocked appends the messages that are in no record.
func (h *History) appendAgainLocked(m *merger) {
	talked := h.talk
	for _, exchange := range m.own {
		batch := m.batch(exchange)
		isAppended := false
		if !m.idle[exchange[0].was.id] {
			isAppended = h.appendLocked(batch) == nil
		}
		if isAppended {
			h.recorder.add("", m.rejoin(exchange, batch))
		} else {
			m.refuse(exchange)
		}
	}
	m.finish()
	h.talk.renumber(talked, func(id ID) ID {
		if r, isAgain := m.again[id]; isAgain {
			return r.is.id
		}
		if id <= m.base {
			return id
		}
		return 0
	})
}
