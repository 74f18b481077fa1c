package convo

import (
	"maps"
	"reflect"
	"slices"
	"sort"
)

// A reversal is a rollback or an Undo. It says which snapshots from before show what is
// no longer in the History.
type reversal struct {
	version uint64 // that it made
	last    ID     // entries newer than it were taken back; maxID: none
	edit    uint64 // edits that made this version or a later one were undone; noVersion: none
}

// Rollback takes back every entry that is newer than the snapshot, except system
// entries. Calls that were open in the snapshot are open again.
//
// Edits that were applied since, and the current summary, stay if each of these
// edits changed only entries that the snapshot holds, and none of them changed
// what was floor in the snapshot, pinned exchanges aside (see Exchange.Floor).
// Otherwise the entries and the summary become exactly those of the snapshot.
// System entries, ephemeral messages, limits, calibration, the queue, the title and
// the data of SetMeta, and the pins of entries that remain do not change.
//
// The snapshot may also be one that [Load] has made from the log of this History, and
// that is no newer than what h has saved. Then the entries and the summary become
// exactly those of the snapshot. One of a copy of the log, which went on without h, is
// refused as far as the two can be told apart.
//
// Rollback returns a [*StaleError] and changes nothing if the snapshot is not one of
// this History, or if it shows an entry that another rollback has taken back, or
// an edit that a rollback or Undo has undone.
func (h *History) Rollback(at *Snapshot) error {
	if at != nil && at.loaded != (loaded{}) {
		return h.rollbackToLoaded(at)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ownsLocked(at); err != nil {
		return err
	}
	switch id, undone := h.reversedSinceLocked(at); {
	case id != 0:
		return &StaleError{ID: id, Reason: "was taken back by a rollback since; take a new snapshot"}
	case undone:
		return &StaleError{Reason: "an edit that it shows was undone since; take a new snapshot"}
	}
	if !h.editsStayLocked(at) {
		h.revertLocked(at)
	} else if n := firstAfter(h.list, at.last); n < len(h.list) {
		h.takeBackLocked(n, at.last)
	} else {
		return nil
	}
	h.updateChargeLocked()
	h.deliverLocked()
	return nil
}

// rollbackToLoaded is Rollback for a snapshot of Load.
func (h *History) rollbackToLoaded(at *Snapshot) error {
	if h.ident == nil {
		return ErrClosed
	}
	t, err := h.restored(at)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.log
	switch {
	case h.endedLocked():
		return ErrClosed
	case l == nil || l.name != at.loaded.log || l.key != at.loaded.key:
		return &StaleError{Reason: "it was loaded from another log than that of this History; make a History of it with Restore"}
	case at.loaded.seq > l.seq:
		return &StaleError{Reason: "it is newer than what this History has saved; call Reload"}
	case !l.isOwn(at) || !h.state.sharesEntries(&t.state):
		return &StaleError{Reason: "it was loaded from a copy of the log of this History, which went on without it; make a History of it with Restore"}
	}
	s := Snapshot{state: *t.state.keeping(&h.state, &l.saved.state)}
	h.pins = slices.DeleteFunc(slices.Clone(h.pins), func(head ID) bool { _, ok := index(s.list, head); return !ok })
	h.last = max(h.last, s.last)
	h.revertLocked(&s)
	h.updateChargeLocked()
	h.deliverLocked()
	return nil
}

// Rewind takes back the newest turns as a whole, pinned or not, and returns how
// many it took back. It stops before a turn from which an edit has dropped or
// cleared anything, so it does not go past the summary. When the newest turn is
// one of these itself, Rewind takes back that many of its newest exchanges
// instead, so Rewind(1) always takes back the newest message, a tool result with
// its call. Of what comes before the first turn, it takes exchanges as well. While Do
// waits for an answer, messages that it has taken out of the queue stay: they wait as
// they did there, with new IDs. A negative number is a [*ValueError].
func (h *History) Rewind(turns int) (taken int, err error) {
	if turns < 0 {
		return 0, &ValueError{Name: "Rewind", Value: turns, Want: "0 or more turns"}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return 0, ErrClosed
	}
	queued := h.deliveredForSendLocked()
	taken, n := h.rewindable(turns, len(h.list)-len(queued))
	if taken == 0 {
		return 0, nil
	}
	h.takeBackLocked(n, h.list[n].id-1)
	h.queue = append(queued, h.queue...)
	h.updateChargeLocked()
	if k := h.deliverLocked(); k > 0 && len(queued) > 0 {
		next := *h.sending
		next.first = h.list[len(h.list)-k].id
		h.sending = &next
	}
	return taken, nil
}

// deliveredForSendLocked returns what the Do that waits for its answer has taken out of
// the queue, as it is at the end of the view, or nil if something follows it.
func (h *History) deliveredForSendLocked() (list []*queued) {
	if h.sending == nil || h.sending.first == 0 {
		return nil
	}
	for _, e := range h.list[firstAfter(h.list, h.sending.first-1):] {
		if e.msg.Role != RoleUser {
			return nil
		}
		list = append(list, &queued{msg: e.msg, tokens: e.tokens, pin: h.isPinned(e.id)})
	}
	return list
}

// rewindable returns how many of the newest turns or exchanges of list[:to], at most
// so many, Rewind takes back, and where they begin in the list.
func (s *state) rewindable(most, to int) (taken, from int) {
	from = to
	newest := newestTurn(s.list[:to])
	for taken < most && from > 0 {
		if turn := s.list[from-1].turn; turn != newest && (turn <= s.touched || newest <= s.touched) {
			break
		}
		from = s.beforeRewind(from)
		taken++
	}
	return taken, from
}

// beforeRewind returns where the newest turn of list[:to] begins, which is not
// empty, or its newest exchange, if an edit has taken something from that turn.
func (s *state) beforeRewind(to int) (from int) {
	turn := s.list[to-1].turn
	if turn <= s.touched {
		from, _ = exchangeAt(s.list[:to], to-1)
		return from
	}
	for from = to; from > 0 && s.list[from-1].turn == turn; {
		from--
	}
	return from
}

// rewinds returns how many calls of Rewind(1) take list[i] back.
func (s *state) rewinds(i int) (calls int) {
	for to := len(s.list); to > i; calls++ {
		to = s.beforeRewind(to)
	}
	return calls
}

// reversedSinceLocked returns the oldest entry that at shows and that a rollback has
// taken back since, or 0 if there is none, and whether at shows an edit that was undone
// since.
func (h *History) reversedSinceLocked(at *Snapshot) (takenBack ID, undone bool) {
	last := ID(maxID)
	for _, r := range slices.Backward(h.reversals) {
		if r.version <= at.version {
			break
		}
		last, undone = min(last, r.last), undone || r.edit <= at.lastEdit()
	}
	if n := firstAfter(at.list, last); n < len(at.list) {
		takenBack = at.list[n].id
	}
	return takenBack, undone
}

// reversedLocked records the reversal that has just made the current version. An older
// one that it implies is removed.
func (h *History) reversedLocked(last ID, edit uint64) {
	all := slices.DeleteFunc(h.reversals, func(r reversal) bool { return r.last >= last && r.edit >= edit })
	h.reversals = append(all, reversal{h.version, last, edit})
	if len(h.reversals) > maxReversals {
		second := &h.reversals[1]
		second.last, second.edit = min(second.last, h.reversals[0].last), min(second.edit, h.reversals[0].edit)
		h.reversals = slices.Delete(h.reversals, 0, 1)
	}
}

// maxReversals bounds what is remembered of rollbacks and of Undo. Beyond it the two
// oldest reversals are joined into one that covers at least as much, so a very old
// snapshot may be refused with ErrStale although it need not be.
const maxReversals = 1000

// lastEdit returns the version that the newest edit in the view has made, or 0 if
// there is none.
func (s *state) lastEdit() uint64 {
	if n := len(s.edits); n > 0 {
		return s.edits[n-1].version
	}
	return 0
}

// editsStayLocked reports whether the edits applied since at stay in place in a
// rollback to it. No edit that at shows has been undone.
//
// Edits only remove and change. So every entry of the view with an ID up to at.last
// is also in at: if at.last is 5 and the view has entry 3, at has it too. That is
// why it is enough to compare IDs with at.last.
func (h *History) editsStayLocked(at *Snapshot) bool {
	since := sort.Search(len(h.edits), func(i int) bool { return h.edits[i].version > at.version })
	switch {
	case since == len(h.edits):
		return true
	case h.edits[since].newest > at.last:
		return false
	case len(at.list) == 0:
		return true
	}
	return h.holdsLocked(at.floor().unpinned())
}

// recordEditLocked records the edit that has just made the current version. newest
// is the newest entry that it dropped or changed.
func (h *History) recordEditLocked(newest ID) {
	n := sort.Search(len(h.edits), func(i int) bool { return h.edits[i].newest <= newest })
	h.edits = append(slices.Clip(h.edits[:n]), editMark{h.version, newest})
}

// holdsLocked reports whether all of these entries are in the view, unchanged.
func (h *History) holdsLocked(entries []*entry) bool {
	for _, e := range entries {
		if i, ok := index(h.list, e.id); !ok || h.list[i] != e {
			return false
		}
	}
	return true
}

// takeBackLocked takes back list[n:], which are the entries newer than last.
func (h *History) takeBackLocked(n int, last ID) {
	if h.known().cal != nil {
		raw, pinned := h.rawShared(h.list[n:], h.known().cal.at.list.newerThan(last))
		h.measured, h.pinMeasured = h.measured-raw, h.pinMeasured-pinned
	}
	seen := n < h.seen
	h.cutTail(n, seen)
	if seen {
		h.seen = 0
	}
	h.finishRollbackLocked(last, noVersion)
}

// revertLocked makes the entries and the summary exactly those of the snapshot.
// Every entry of the view with an ID up to at.last is also in at (see
// editsStayLocked), so the pins of these entries stay valid.
func (h *History) revertLocked(at *Snapshot) {
	h.touched = at.touched
	h.unsummarisedLocked(at.summary)
	h.replace(h.sys, slices.Clone(at.list), at.originals, at.listRaw, at.turns, max(at.touched, newestTurn(at.list)))
	h.seen = 0
	h.releaseViewsLocked(0)
	h.summary, h.appended = at.summary, at.appended
	h.edits = at.edits
	h.lastFocus = ""
	h.finishRollbackLocked(at.last, at.lastEdit()+1) // the first version that an undone edit may have made
	h.sumPins()
	h.rewritten = h.version
	h.sumMeasured(true)
}

// finishRollbackLocked updates everything else that depends on the entries, after
// those newer than last were taken back. Edits that made the version edit or a later one
// were undone.
func (h *History) finishRollbackLocked(last ID, edit uint64) {
	h.newVersionLocked()
	h.tookBackLocked(last)
	n := sort.Search(len(h.pins), func(i int) bool { return h.pins[i] > last })
	h.pins = h.pins[:n:n]
	h.setSpilledLocked(maps.Clone(h.spilled))
	h.releaseViewsLocked(last)
	h.calls = callsOf(h.list)
	h.reversedLocked(last, edit)
}

// firstAfter returns the index of the first entry with an ID above last. The list
// is in ascending order.
func firstAfter(list []*entry, last ID) int {
	return sort.Search(len(list), func(i int) bool { return list[i].id > last })
}

// sharesEntries reports whether the entries that two states both have were appended at
// the same time, as those of one conversation were.
func (s *state) sharesEntries(t *state) bool {
	for _, e := range t.list {
		if own := s.find(e.id); own != nil && own.at != e.at {
			return false
		}
	}
	return true
}

// keeping returns s, which was read, but with the entries and the summary of others
// in their place that are the same, and with the originals of these. It changes no
// other figures.
func (s *state) keeping(others ...*state) *state {
	next := *s
	var originals []*original
	pick := func(list []*entry) []*entry {
		list = slices.Clone(list)
		for i, e := range list {
			for _, other := range others {
				own := other.find(e.id)
				if own == nil || !own.sameAs(e) {
					continue
				}
				list[i] = own
				if o := other.original(e.id); o != nil {
					originals = append(originals, o)
				}
				break
			}
		}
		return list
	}
	sys, list := pick(s.sys), pick(s.list)
	next.replace(sys, list, originals, rawOf(list), s.turns, s.turn)
	for _, other := range others {
		if own := other.summary; own != nil && s.summary != nil && own.sum.sameAs(&s.summary.sum) {
			next.summary = own
			break
		}
	}
	return &next
}

// sameAs reports whether two entries have the same ID and hold the same.
func (e *entry) sameAs(f *entry) bool {
	return e == f || e.id == f.id && e.at == f.at && e.turn == f.turn && e.missing == f.missing && reflect.DeepEqual(&e.msg, &f.msg)
}

// sameAs reports whether two summaries say the same of the same entries.
func (s *Summary) sameAs(t *Summary) bool {
	return s.Text == t.Text && s.Updates == t.Updates && s.Time.Equal(t.Time) && slices.Equal(s.Covers, t.Covers)
}
