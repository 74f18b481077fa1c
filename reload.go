package convo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
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
// Repair gets their new IDs.
//
// The title and the data of [History.SetMeta] also become the stored ones, unless SetMeta
// has changed them since h was last saved. h keeps its model, its limits and its
// calibration. Messages that were measured stay measured. Other unsaved changes are lost:
// edits, rollbacks and pins of saved entries. Earlier snapshots can only be read: methods
// return an error that matches [ErrStale] for them. Undo reverts no earlier edit, and an answer
// that Do waits for is refused.
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
	if r.id == b.id {
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
	own, theirs := h.withKeyOf(p.view.id)
	saved, err := r.load(own, theirs, p)
	if err != nil {
		return nil, nil, r.inRecord(err)
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
	found = draftIn(b.drafts, r.recent...)
	if found == nil && len(b.drafts) > 0 && !slices.Contains(r.recent, b.id) {
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
	case r.name != b.name:
		return false, fmt.Errorf("%w: the log of %q was deleted, and another was begun; Open that, and append what is missing", ErrNotFound, b.key)
	case slices.Contains(r.recent, b.id):
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
		view: &h.view, theirs: theirs, base: max(b.last, b.loaded),
		was: cmp.Or(b.saved, noPicture), unsaved: h.recorder.draft(h.pictureLocked(), false),
		moved: make(map[ID]ID), again: make(map[ID]rejoined),
	}
	if !isStored || r.name == b.name && r.seq <= b.seq { // an old backup was restored
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
	h.sumMeasured(true)
	saved = m.stored(r, saved)
	h.recorder.adopt(b.asRead(r, saved, h.last), keepsake{})
	m.keepTakenBack()
	h.appendAgainLocked(m)
	appended := len(m.again) > 0
	if p := h.pictureLocked(); appended || p.scalars != saved.scalars || !difference(saved, p).isEmpty() {
		h.newVersion() // what h has learned is not stored, and the bounds so far do not include the measured part
	}
	if appended || len(m.queued) > 0 && (!h.awaitsAnswer() || h.talk.hasFailed(h.newestMessage())) {
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
			_, err := h.appendLocked(batch)
			isAppended = err == nil
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

// A merger replaces the content of a view with the stored content, and appends the
// messages that are in no record.
type merger struct {
	view, theirs *view
	base         ID           // entries with higher IDs may be in no record
	isBackup     bool         // the stored state is older than the saved state of h
	was          *picture     // the record that h saved last
	unsaved      *draft       // what that does not hold
	own          [][]departed // exchanges that are in no record, in ascending order
	idle         map[ID]bool  // results in own that answer no open call of the stored view
	moved        map[ID]ID
	refused      []Message
	adopts       bool     // nothing was learned, so that what the records hold counts
	released     ID       // no entry of own up to this one is bound
	answers      sentView // of the view, before the messages were appended again
	lastAppend   int64    // likewise

	held      []*state         // the states that had the entries of h before the Reload
	again     map[ID]rejoined  // entries that were appended again, by their old IDs
	queued    []*queued        // messages of h that are in no record
	taken     map[*queued]bool // messages of the stored queue that h has delivered or removed
	delivered map[ID]*queued   // stored queue messages, by the entries of own that h delivered them as
	elsewhere map[ID]bool      // queued entries that others have delivered or removed
	others    []*entry         // entries of theirs that may be one of elsewhere
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
	if v.meta == was.meta {
		v.meta = t.meta
	}
	if v.tools.sameAs(was.tools) && !v.tools.sameAs(t.tools) {
		v.tools = t.tools
	}
	v.last, v.figures, v.takenBack, v.left = t.last, t.figures, t.takenBack, t.left
	v.released = min(m.released, t.last)
	if v.id.key != t.id.key { // the tags of what was sent had the other key
		m.released, v.answers = maxID, sentView{known: true, open: true}
	}
	v.summary, v.pins, v.queue = stored.summary, slices.Clone(t.pins), t.queue
	v.replace(stored.sys, stored.list, stored.originals, stored.turn)
	if a, b := orNil(was.request), orNil(t.request); a.Heads != b.Heads || a.Figures != b.Figures {
		v.request = b.WithLogged(orNil(v.request).Logged) // others were answered since
	}
	v.seen = 0
	v.answeredAt, v.cacheTTL = time.Time{}, 0 // another process may have asked since
	v.calls = callsOf(v.list)
	v.edits, v.reversals, v.forgotten = nil, nil, nil
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
	if !m.adopts { // the views that usage was reported for refer to the entries after the Reload
		v.knowledge = v.known().with(m.recognised)
	}
	v.sumMeasured(true)
	if len(m.queued)+len(m.taken) > 0 {
		kept := slices.DeleteFunc(slices.Clone(v.queue), func(q *queued) bool { return m.taken[q] })
		v.queue, v.snap = append(kept, m.queued...), nil
	}
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
	m.elsewhere, m.others = make(map[ID]bool), slices.Clone(m.theirs.list[firstAfter(m.theirs.list, m.base):])
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
	saved := m.was.view.queue
	if m.isBackup { // the stored queue is older: messages are compared with those of h as it is now
		saved = nil
	}
	made := make(map[*queued]ID) // the entries that messages were delivered as
	for id, q := range m.unsaved.made {
		made[q] = id
	}
	for _, q := range saved {
		theirs, id := find(&q.msg), made[q] // 0, which is no entry: it was not delivered
		if theirs == nil {
			m.elsewhere[id] = true
			continue
		}
		m.delivered[id] = theirs
		if !slices.Contains(m.view.queue, q) {
			m.taken[theirs] = true
		}
	}
	for _, q := range m.view.queue {
		isHeld := slices.Contains(saved, q) || m.isBackup && find(&q.msg) != nil
		if !isHeld {
			m.queued = append(m.queued, q)
		}
	}
	for _, e := range m.view.list[firstAfter(m.view.list, m.base):] {
		if !m.isBackup || e.msg.Role != RoleUser {
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
	m.idle = make(map[ID]bool)
	heads := make(map[ID]bool) // of own exchanges
	for _, d := range m.unrecorded() {
		e := d.was
		if m.isHeld(e) || m.isElsewhere(e) {
			continue
		}
		heads[e.head] = heads[e.head] || e.head == e.id
		idle := e.msg.Role == RoleTool && !heads[e.head] && !m.isOpen(e)
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

// unrecorded returns the entries that may be in no record, as they were appended, in order.
func (m *merger) unrecorded() (all []departed) {
	v, past := m.view, m.unsaved.past
	for i := range v.len() {
		e := v.at(i)
		if _, isPast := past[e.id]; e.id > m.base && !isPast {
			all = append(all, departed{was: e, original: v.original(e.id)})
		}
	}
	for id, d := range past {
		if id > m.base && (!d.was.isSystem() || v.find(id) != nil) {
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
	i := slices.IndexFunc(m.others, func(o *entry) bool { return o.msg.sameAs(&e.msg) })
	if i < 0 {
		return true
	}
	if id := m.others[i].id; id != e.id {
		m.moved[e.id] = id
	}
	m.others = slices.Delete(m.others, i, i+1)
	return true
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
	if c.Open() == 0 {
		return false
	}
	for _, p := range results.msg.Parts {
		if _, err := c.Find(p.(ToolResult).CallID, ""); err != nil {
			return false
		}
	}
	own, theirs := m.view.find(results.head), m.theirs.find(c.Head)
	return results.head == c.Head || own != nil && own.at == theirs.at
}

// refuse adds the messages of an exchange to those that Reload returns. Messages that are
// still in the stored queue stay there.
func (m *merger) refuse(exchange []departed) {
	for _, d := range exchange {
		if q := m.delivered[d.was.id]; q != nil {
			delete(m.taken, q)
			continue
		}
		m.refused = append(m.refused, pendingEntry{entry: d.was, original: d.original}.given())
	}
}

// batch returns copies of the entries of an exchange, to be appended.
func (m *merger) batch(exchange []departed) []pendingEntry {
	batch := make([]pendingEntry, len(exchange))
	for i, d := range exchange {
		e := *d.was
		e.msg, e.inline = e.msg.clone(), [1]Part{}
		if e.id <= m.released {
			e.setMade(0) // the entry may get a newer ID
		}
		batch[i] = pendingEntry{entry: &e, pin: m.unsaved.picture.view.isPinned(d.was.head), again: true}
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
	made := make(map[ID]*queued)
	for i, d := range exchange {
		id := batch[i].id
		if id != d.was.id {
			m.moved[d.was.id] = id
		}
		m.again[d.was.id] = rejoined{d.was, batch[i].entry}
		if q := m.delivered[d.was.id]; q != nil {
			made[id] = q
		}
	}
	return made
}
