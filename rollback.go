package convo

import (
	"fmt"
	"maps"
	"slices"
	"sort"
)

// A reversal undid edits, in a rollback or an Undo. It identifies the earlier snapshots that
// show them.
type reversal struct {
	version uint64 // version that the reversal made
	edit    uint64 // edits that made version edit or a later one were undone
}

// maxTakenBack is the number of ranges of IDs that a History keeps of what was taken back.
// Beyond it, the two oldest become one if both are below the view, so what left by a
// compaction between them may count as taken back.
const maxTakenBack = 100

// TakenBack reports whether an entry with the ID was taken back, as by [History.RewindTo],
// and is not in the view again. An entry that is neither in the view nor taken back has left
// by a compaction.
func (s *Snapshot) TakenBack(id ID) bool { return s.isTakenBack(id) }

// isTakenBack reports whether a rollback took back the entry with the ID. Where there never
// was an entry, it reports whether one of that time would have been.
func (s *state) isTakenBack(id ID) bool { return s.takenBackUpTo(id) != 0 }

// takenBackUpTo returns the newest ID that was taken back together with the entry with the ID,
// or 0 if that was not taken back.
func (s *state) takenBackUpTo(id ID) ID {
	i := sort.Search(len(s.takenBack), func(i int) bool { return s.takenBack[i].Last >= id })
	if i == len(s.takenBack) || s.takenBack[i].First > id || s.find(id) != nil {
		return 0
	}
	return s.takenBack[i].Last
}

// cameBack notes that the entries of a list are in the view again.
func (s *state) cameBack(list []*entry) {
	var left []Range
	for _, r := range s.takenBack {
		for _, e := range list[firstAfter(list, r.First-1):firstAfter(list, r.Last)] {
			if e.id > r.First {
				left = append(left, Range{r.First, e.id - 1})
			}
			r.First = e.id + 1
		}
		if r.First <= r.Last {
			left = append(left, r)
		}
	}
	s.takenBack = left
	s.left = slices.DeleteFunc(slices.Clone(s.left), func(r leftRow) bool { _, ok := index(list, r.id); return ok })
}

// tookBack notes that the entries newer than last were taken back.
func (s *state) tookBack(last ID) {
	s.cutLeft(last)
	if s.last <= last {
		return
	}
	all, r := s.takenBack, Range{last + 1, s.last}
	n := len(all)
	for ; n > 0 && all[n-1].Last >= last; n-- {
		r.First = min(r.First, all[n-1].First)
	}
	all = append(slices.Clip(all[:n]), r)
	for len(all) > maxTakenBack && (len(s.list) == 0 || all[1].Last < s.list[0].id) {
		all[1].First = all[0].First
		all = all[1:]
	}
	s.takenBack = all
}

// Rollback takes back every entry that is newer than the snapshot, except system entries.
// Calls that were open in the snapshot are open again.
//
// Later edits and the current summary stay if these edits changed only entries of the
// snapshot, and changed nothing in its floor except pinned exchanges (see
// Exchange.Floor). Otherwise the entries and the summary become exactly those of the
// snapshot. System entries, ephemeral messages, limits, calibration, the queue, the title
// and the data of SetMeta, and the pins of entries that remain do not change.
//
// The snapshot may also come from [Load] of the log of this History, if it is no newer
// than the last saved state of h. Then the entries and the summary become exactly those
// of the snapshot. A snapshot from a copy of the log that another History has continued
// is refused if the two can be distinguished.
//
// Rollback returns a [*StaleError] and changes nothing if the snapshot is from another
// History, or if it shows an entry that another rollback has taken back, or an edit that
// a rollback or Undo has undone.
func (h *History) Rollback(at *Snapshot) error {
	if at != nil && at.loaded != (loaded{}) {
		return h.rollbackToLoaded(at)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ownsLocked(at); err != nil {
		return err
	}
	switch id, undone := h.reversedSince(at); {
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
	l := h.recorder.book()
	switch {
	case h.endedLocked():
		return ErrClosed
	case l.store == nil || l.name != at.loaded.log || l.key != at.loaded.key:
		return &StaleError{Reason: "it was loaded from another log than that of this History; make a History of it with Restore"}
	case at.loaded.seq > l.seq:
		return &StaleError{Reason: "it is newer than what this History has saved; call Reload"}
	case !l.isOwn(at) || !h.state.sharesEntries(&t.state):
		return &StaleError{Reason: "it was loaded from a copy of the log of this History, which went on without it; make a History of it with Restore"}
	}
	s := Snapshot{state: *t.state.keeping(&h.state, &l.saved.view.state)}
	h.pins = slices.DeleteFunc(slices.Clone(h.pins), func(head ID) bool { _, ok := index(s.list, head); return !ok })
	h.last = max(h.last, s.last)
	h.revertLocked(&s)
	h.updateChargeLocked()
	h.deliverLocked()
	return nil
}

// Rewind takes back the newest turns as a whole, pinned or not, and returns how many it
// took back. It stops before a turn in which an edit has dropped or cleared anything, so
// it does not go past the summary. If the newest turn is itself such a turn, or there is
// no turn yet, Rewind takes back that many of its newest exchanges instead, so Rewind(1)
// always takes back the newest message, and a tool result with its call. While Do waits
// for an answer, messages that it delivered from the queue stay, with new IDs. If turns
// is negative, the error is a [*ValueError]. [History.RewindTo] goes back to a certain
// entry.
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
	h.rewindLocked(n, h.list[n].id-1, queued)
	return taken, nil
}

// RewindTo takes back every entry that is newer than id, pinned or not, except system
// entries, to ask for another answer to the message with that ID. [History.RewindBefore]
// takes that message back as well.
//
// The entry itself may have left the view by a compaction. Calls whose results are taken
// back are open again. The summary and other edits stay. The queue is delivered if that is
// possible now, and messages that a waiting Do delivered from the queue stay, with new IDs.
//
// If the entry was taken back before, as by another user of the conversation, the error
// matches [ErrStale]. If the summary stands for entries newer than id, it would describe
// what was taken back: the error is a [*ValueError], and names the record to [Load] for a
// Rollback first, if it is known. For an ID that no entry has had, the error matches
// [ErrNotFound]. Then nothing has changed. RewindTo(0) takes back everything.
func (h *History) RewindTo(id ID) error { return h.rewindTo(id, id) }

// RewindBefore takes back the entry with the ID and every newer one, as [History.RewindTo]
// takes back the newer ones, such as a question that the user has edited:
//
//	err := h.RewindBefore(question) // then append what it was changed to
func (h *History) RewindBefore(id ID) error { return h.rewindTo(id, id-1) }

// rewindTo takes back every entry that is newer than last, for a caller that has named id.
func (h *History) rewindTo(id, last ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.mayRewindLocked(id, last); err != nil {
		return err
	}
	queued := h.deliveredForSendLocked()
	if n := len(h.list) - len(queued); n < len(h.list) && id >= h.list[n].id {
		queued = nil // the caller has named one of them
	}
	if n := firstAfter(h.list, last); n < len(h.list)-len(queued) || len(queued) == 0 && (id > last && h.find(id) == nil || h.hasDropped(last)) {
		h.rewindLocked(n, last, queued)
	}
	return nil
}

// mayRewindLocked returns an error if a caller that has named id can't take back what is
// newer than last.
func (h *History) mayRewindLocked(id, last ID) error {
	switch {
	case h.endedLocked():
		return ErrClosed
	case id < 0 || last < 0 || id > h.last:
		return notInView(id)
	case h.isTakenBack(id):
		return &StaleError{ID: id, Reason: "was taken back; read the conversation again"}
	}
	if newest := h.summary.newestCovered(); newest > last {
		return &ValueError{Name: "the ID to rewind to", Value: id, Want: fmt.Sprintf(
			"that of an entry after %d, the newest that the summary stands for; %s", newest, h.recorder.book().wayBack(h.opts.NoArchive, id, last))}
	}
	return nil
}

// ReplaceRows takes back the entry with the ID and every newer one, and appends rows in
// their place as [History.AppendRows] does, in one step: no other goroutine sees one without
// the other. It returns the ID of the last one. A row keeps the pin of an entry that was
// taken back and had its key. Signed reasoning that was taken back stays bound to what it was
// made of; see [Snapshot.Bound]. Other signed reasoning is not bound, except that of the answer
// to what Prepare has returned last. ReplaceRows(0) replaces all entries, and the summary with
// them; then there is no exception.
//
// Errors are those of [History.RewindBefore] and AppendRows; then nothing has changed. While
// a Do waits for an answer, the error is a [*StaleError].
func (h *History) ReplaceRows(id ID, rows ...Message) (ID, error) {
	if h.ident == nil {
		return 0, ErrClosed
	}
	batch, err := h.newMessages(nil, rows)
	if err != nil {
		return 0, err
	}
	for i := range batch {
		batch[i].row = true
	}
	h.mu.Lock()
	rest, err := h.withoutLocked(id)
	h.mu.Unlock()
	if err == nil {
		err = rest.cutLong(batch)
	}
	if err != nil {
		return 0, err
	}
	last, cut, err := h.replaceRows(id, batch)
	if cut != nil {
		h.deliver(*cut)
	}
	return last, err
}

func (h *History) replaceRows(id ID, batch []pendingEntry) (last ID, cut *Report, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest, err := h.withoutLocked(id)
	if err == nil && len(batch) > 0 {
		_, err = rest.joinLocked(batch)
	}
	if err != nil {
		return 0, nil, err
	}
	n := len(rest.list)
	pinned := make(map[string]bool)
	made := make(map[string]*entry) // by what is signed
	for _, e := range h.list[n:] {
		if key := e.msg.Key; key != "" && h.isPinned(e.head) {
			pinned[key] = true
		}
		if e.msg.isSigned() {
			made[e.msg.seals()] = e
		}
	}
	for isNewest, i := h.answers.known, len(batch)-1; i >= 0; i-- { // the newest may be what a request was answered with
		batch[i].pin = batch[i].pin || pinned[batch[i].msg.Key]
		was, known := made[batch[i].msg.seals()]
		if batch[i].bound = known || id == 0 || !isNewest; known {
			batch[i].setMadeLike(was)
		}
		isNewest = isNewest && !batch[i].msg.isSigned()
	}
	switch {
	case id == 0:
		h.revertLocked(&Snapshot{state: state{id: h.id}})
	case n < len(h.list) || h.find(id) == nil || h.hasDropped(id-1):
		h.takeBackLocked(n, id-1)
	}
	if len(batch) > 0 {
		if last, err = h.appendLocked(batch); err != nil {
			return 0, nil, err
		}
		cut = h.reportCutsLocked(batch)
	}
	h.updateChargeLocked()
	h.deliverLocked()
	return last, cut, nil
}

// withoutLocked returns a History that stands for h without the entry with the ID and every
// newer one, and with ID 0 without all entries and the summary. It is for checks only.
func (h *History) withoutLocked(id ID) (*History, error) {
	if id != 0 {
		if err := h.mayRewindLocked(id, id-1); err != nil {
			return nil, err
		}
	} else if h.endedLocked() {
		return nil, ErrClosed
	}
	if h.talk.sending != nil {
		return nil, &StaleError{Reason: "a Do waits for the answer to what would be replaced; wait for it, or cancel its ctx"}
	}
	n := 0
	if id > 0 {
		n = firstAfter(h.list, id-1)
	}
	rest := &History{setup: setup{ident: h.ident, opts: h.opts, noteTokens: h.noteTokens, interruptTokens: h.interruptTokens}, view: view{state: h.state}, talk: talk{failed: h.talk.failed}}
	rest.maxResult.Store(h.maxResult.Load())
	rest.cutTail(n, true)
	rest.calls = callsOf(rest.list)
	return rest, nil
}

// hasDropped reports whether an entry newer than last has left the view and was not taken back.
// The view has no newer one but system entries.
func (s *state) hasDropped(last ID) bool {
	for id := last + 1; id <= s.last; id++ {
		if s.find(id) != nil {
			continue
		}
		to := s.takenBackUpTo(id)
		if to == 0 {
			return true
		}
		id = to
	}
	return false
}

// newestCovered returns the newest entry that s stands for, or 0 if there is none.
func (s *placedSummary) newestCovered() ID {
	if s == nil {
		return 0
	}
	return s.sum.newestCovered()
}

func (s *Summary) newestCovered() ID {
	if s == nil || len(s.Covers) == 0 {
		return 0
	}
	return s.Covers[len(s.Covers)-1].Last
}

// rewindLocked takes back list[n:], which are the entries newer than last and end with the
// messages that the waiting Do has delivered from the queue, and delivers these again.
func (h *History) rewindLocked(n int, last ID, queued []*queued) {
	h.takeBackLocked(n, last)
	h.queue = append(queued, h.queue...)
	h.updateChargeLocked()
	if k := h.deliverLocked(); k > 0 && len(queued) > 0 {
		next := *h.talk.sending
		next.first = h.list[len(h.list)-k].id
		h.talk.sending = &next
	}
}

// deliveredForSendLocked returns the messages that the waiting Do delivered from the
// queue, if they are at the end of the view, or nil if anything follows them.
func (h *History) deliveredForSendLocked() (list []*queued) {
	if h.talk.sending == nil || h.talk.sending.first == 0 {
		return nil
	}
	for _, e := range h.list[firstAfter(h.list, h.talk.sending.first-1):] {
		if e.msg.Role != RoleUser {
			return nil
		}
		list = append(list, &queued{msg: e.msg, tokens: e.tokens, pin: h.isPinned(e.id)})
	}
	return list
}

// rewindable returns how many of the newest turns or exchanges of list[:to] Rewind takes
// back, at most most, and where they begin in the list.
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

// beforeRewind returns the start of the newest turn of list[:to], or of its newest
// exchange if an edit has dropped or cleared part of that turn. list[:to] must not be
// empty.
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

// rewinds returns the number of calls of Rewind(1) that take back list[i].
func (s *state) rewinds(i int) (calls int) {
	for to := len(s.list); to > i; calls++ {
		to = s.beforeRewind(to)
	}
	return calls
}

// reversedSince returns the oldest entry that at shows and that a rollback has
// since taken back, or 0 if there is none. It also reports whether at shows an edit that
// has since been undone.
func (v *view) reversedSince(at *Snapshot) (takenBack ID, undone bool) {
	for _, r := range v.takenBack {
		for n := firstAfter(at.list, r.First-1); n < len(at.list) && at.list[n].id <= r.Last && takenBack == 0; n++ {
			if v.find(at.list[n].id) == nil {
				takenBack = at.list[n].id
			}
		}
	}
	return takenBack, v.undidSince(at.version, at.lastEdit())
}

// undidSince reports whether an edit has been undone since a version of the view,
// whose newest edit had made the version edit.
func (v *view) undidSince(version, edit uint64) bool {
	first := sort.Search(len(v.reversals), func(i int) bool { return v.reversals[i].version > version })
	return first < len(v.reversals) && v.reversals[first].edit <= edit
}

// bindsLocked reports whether an answer to a view that was sent may be bound. If an edit in
// the view has been undone, reasoning that the edit took out may stand before the answer
// again, and the answer was made without it.
func (h *History) bindsLocked(sent sentView) bool {
	return !sent.open && !h.undidSince(sent.version, sent.edit)
}

// undidLocked records that the current version has undone the edits that made the version
// edit or a later one. Both figures ascend in h.reversals, since this implies the older
// reversals of newer edits.
func (h *History) undidLocked(edit uint64) {
	n := len(h.reversals)
	for n > 0 && h.reversals[n-1].edit >= edit {
		n--
	}
	h.reversals = append(h.reversals[:n], reversal{h.version, edit})
	if len(h.reversals) > maxReversals {
		h.reversals[1].edit = h.reversals[0].edit
		h.reversals = slices.Delete(h.reversals, 0, 1)
	}
}

// maxReversals is the number of reversals that are recorded. Beyond it, the two oldest
// become one that covers at least as much, so a very old snapshot may be refused with
// ErrStale unnecessarily.
const maxReversals = 1000

// editsStayLocked reports whether the edits applied since at stay in place in a
// rollback to it. No edit that at shows has been undone.
//
// Edits only remove and change entries. So every entry of the view with an ID up to
// at.last is also in at: if at.last is 5 and the view has entry 3, at also has it.
// Comparing IDs with at.last is therefore enough.
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
	h.putBackSummaryLocked(at.summary)
	before := h.request
	h.replace(h.sys, slices.Clone(at.list), at.originals, at.listRaw, at.turns, max(at.touched, newestTurn(at.list)))
	if h.request != before {
		h.request = h.request.back()
	}
	h.seen = 0
	h.releaseViews(0)
	h.appended, h.left = at.appended, at.left
	h.edits = at.edits
	h.compactor.lastFocus = ""
	h.finishRollbackLocked(at.last, at.lastEdit()+1) // the first version that an undone edit may have made
	h.sumPins()
	h.rewritten = h.version
	h.sumMeasured(true)
}

// putBackSummaryLocked makes s, which an edit has replaced, the summary again.
func (h *History) putBackSummaryLocked(s *placedSummary) {
	if s != h.summary {
		h.recorder.unsummarised(s)
		h.summary = s
	}
}

// finishRollbackLocked updates everything else that depends on the entries, after those
// newer than last were taken back. The edits that made the version edit or a later one
// were undone.
func (h *History) finishRollbackLocked(last ID, edit uint64) {
	h.newVersion()
	h.recorder.tookBack(last)
	n := sort.Search(len(h.pins), func(i int) bool { return h.pins[i] > last })
	h.pins = h.pins[:n:n]
	h.setSpilledLocked(maps.Clone(h.spills.spilled))
	h.releaseViews(last)
	h.calls = callsOf(h.list)
	h.tookBack(last)
	h.cameBack(h.list)
	if edit != noVersion {
		h.undidLocked(edit)
	}
}

// firstAfter returns the index of the first entry with an ID above last. The list
// is in ascending order.
func firstAfter(list []*entry, last ID) int {
	return sort.Search(len(list), func(i int) bool { return list[i].id > last })
}

// sharesEntries reports whether the entries that two states have in common were appended
// at the same time, as in one conversation.
func (s *state) sharesEntries(t *state) bool {
	for _, e := range t.list {
		if own := s.find(e.id); own != nil && own.at != e.at {
			return false
		}
	}
	return true
}

// keeping returns a copy of s, which was read, with each entry and the summary replaced
// by the equal one of others, if any, and with the originals of these entries. It changes
// no other figures.
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

// sameAs reports whether two entries have the same ID and content.
func (e *entry) sameAs(f *entry) bool {
	return e == f || e.id == f.id && e.at == f.at && e.turn == f.turn && e.missing() == f.missing() && e.final == f.final && e.marks == f.marks && e.msg.sameAs(&f.msg)
}

// sameAs reports whether two summaries are equal, apart from their tokens.
func (s *Summary) sameAs(t *Summary) bool {
	return s.Text == t.Text && s.Updates == t.Updates && s.Time.Equal(t.Time) && slices.Equal(s.Covers, t.Covers) && s.Native.sameAs(&t.Native)
}
