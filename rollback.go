package convo

import (
	"fmt"
	"slices"
	"sort"

	"github.com/seed-c1b73e60/convo/internal/ranges"
)

// A reversal undid edits, in a rollback or an Undo. It identifies the earlier snapshots that
// show them.
type reversal struct {
	version uint64 // version that the reversal made
	edit    uint64 // edits that made version edit or a later one were undone
}

// maxTakenBack is how many ranges of IDs of entries that were taken back are kept. Beyond it,
// the two oldest become one if both are below the view. An entry between them, which a
// compaction removed, then counts as taken back.
const maxTakenBack = 100

// TakenBack reports whether an entry with the ID was taken back, as by [History.RewindTo],
// and is not in the view again. An entry that is neither in the view nor taken back has left
// by a compaction.
func (s *Snapshot) TakenBack(id ID) bool { return s.isTakenBack(id) }

// isTakenBack reports whether a rollback took back the entry with the ID. For an ID that no
// entry has had, it reports whether a rollback has gone back past it.
func (s *state) isTakenBack(id ID) bool { return s.takenBackUpTo(id) != 0 }

// takenBackUpTo returns the newest ID that was taken back together with the entry with the ID,
// or 0 if that was not taken back.
func (s *state) takenBackUpTo(id ID) ID {
	r, is := ranges.Find(s.takenBack, id)
	if !is || s.find(id) != nil {
		return 0
	}
	return r.Last
}

// cameBack notes that the entries of a list are in the view again.
func (s *state) cameBack(list []*entry) {
	var back []ID
	for _, r := range s.takenBack {
		back = append(back, idsOf(list[firstAfter(list, r.First-1):firstAfter(list, r.Last)])...)
	}
	s.takenBack = ranges.Minus(s.takenBack, ranges.Of[Range](back))
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

// Rollback takes back every entry that is newer than the snapshot, except system entries. Calls
// that were open in the snapshot are open again.
//
// Later edits and the current summary stay if these edits changed only entries of the snapshot,
// and nothing in its floor but pinned exchanges (see Exchange.Floor). Otherwise the entries and
// the summary become exactly those of the snapshot. System entries, ephemeral messages, limits,
// calibration, the queue, the title and the data of SetMeta, and the pins of entries that
// remain do not change.
//
// The snapshot may also come from [Load] of the log of this History, if it is no newer than the
// last saved state of h. Then the entries and the summary become exactly its own. A snapshot
// from a copy of the log that another History has continued is refused if the two can be
// distinguished.
//
// If the snapshot is from another History, or shows an entry that another rollback has taken
// back, or an edit that was undone, the error matches [ErrStale], and nothing changes.
func (h *History) Rollback(at *Snapshot) error {
	if at != nil && at.loaded != (loaded{}) {
		return h.rollbackToLoaded(at)
	}
	return h.ifOpen(func() error {
		if err := h.ownsLocked(at); err != nil {
			return err
		}
		id, undone := h.reversedSince(at)
		switch {
		case id != 0:
			return &staleError{ID: id, Reason: "was taken back by a rollback since; take a new snapshot"}
		case undone:
			return &staleError{Reason: "an edit that it shows was undone since; take a new snapshot"}
		}
		n, stay := firstAfter(h.list, at.last), h.editsStay(at)
		switch {
		case stay && n == len(h.list):
			return nil
		case stay:
			h.recorder.wentBack(h.rewind(n, at.last, nil))
		default:
			h.recorder.wentBack(h.revert(&at.state))
		}
		h.deliverLocked()
		return nil
	})
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
	return h.ifOpen(func() error {
		saved, err := h.recorder.savedBeside(at)
		switch {
		case err != nil:
			return err
		case !h.sharesEntries(&t.state):
			return errOtherCopy
		}
		h.recorder.wentBack(h.revert(t.state.keeping(&h.state, saved)))
		h.deliverLocked()
		return nil
	})
}

// errOtherCopy is returned for a snapshot of a log that is not that of the History any more.
var errOtherCopy = &staleError{Reason: "it was loaded from a copy of the log of this History, which went on without it; make a History of it with Restore"}

// Rewind takes back the newest turns as a whole, pinned or not, and returns how many it took
// back. It stops before a turn in which an edit has dropped or cleared anything, so it does not
// go past the summary. If the newest turn is itself such a turn, or there is no turn yet,
// Rewind takes back that many of its newest exchanges instead. So Rewind(1) always takes back
// the newest message, and a tool result with its call. While Do waits for an answer, messages
// that it delivered from the queue stay, with new IDs. A summary leaves if all that it stands
// for was taken back. A negative number is a [*ValueError].
func (h *History) Rewind(turns int) (taken int, err error) {
	if turns < 0 {
		return 0, &ValueError{Name: "Rewind", Value: turns, Want: "0 or more turns"}
	}
	err = h.ifOpen(func() error {
		queued := h.usersFrom(h.talk.waits().delivered())
		var n int
		taken, n = h.rewindable(turns, len(h.list)-len(queued))
		if taken > 0 {
			h.rewindLocked(n, h.list[n].id-1, queued)
		}
		return nil
	})
	return taken, err
}

// RewindTo takes back every entry that is newer than id, pinned or not, except system entries,
// to ask for another answer to the message with that ID.
//
// The entry itself may have left the view by a compaction. Calls whose results are taken back
// are open again. The summary and other edits stay. The queue is delivered if that is possible
// now, and messages that a waiting Do delivered from the queue stay, with new IDs.
//
// If the entry was taken back before, as by another user of the conversation, the error matches
// [ErrStale]. If the summary stands for entries newer than id, it would describe what was taken
// back: the error is a [*ValueError], and names the record to [Load] for a Rollback first, if
// it is known. For an ID that no entry has had, the error matches [ErrNotFound]. Then nothing
// has changed. RewindTo(0) takes back everything.
func (h *History) RewindTo(id ID) error { return h.rewindTo(id, id) }

// RewindBefore is [History.RewindTo] for the entries from the one with the ID on, such as a
// question that the user has edited: append then what it was changed to.
func (h *History) RewindBefore(id ID) error { return h.rewindTo(id, id-1) }

// rewindTo takes back every entry that is newer than last, for a caller that has named id.
func (h *History) rewindTo(id, last ID) error {
	return h.ifOpen(func() error {
		if err := h.mayRewindLocked(id, last); err != nil {
			return err
		}
		queued := h.usersFrom(h.talk.waits().delivered())
		if n := len(h.list) - len(queued); n < len(h.list) && id >= h.list[n].id {
			queued = nil // the caller has named one of them
		}
		if n := firstAfter(h.list, last); n < len(h.list)-len(queued) || len(queued) == 0 && h.hasDropped(last) {
			h.rewindLocked(n, last, queued)
		}
		return nil
	})
}

// mayRewindLocked returns an error if a caller that has named id can't take back what is newer
// than last. The error names a way back to before the summary, if the log has one.
func (h *History) mayRewindLocked(id, last ID) error {
	switch {
	case id < 0 || last < 0 || id > h.last:
		return notInView(id)
	case h.isTakenBack(id):
		return &staleError{ID: id, Reason: "was taken back; read the conversation again"}
	}
	if newest := h.summary.newestKept(); newest > last {
		b := h.recorder.book()
		return &ValueError{Name: "the ID to rewind to", Value: id, Want: fmt.Sprintf(
			"that of an entry after %d, the newest that the summary stands for; %s", newest, b.wayBack(id, last, b.exceeds(h.opts.PruneAbove)))}
	}
	return nil
}

// ReplaceRows takes back the entry with the ID and every newer one, and appends rows in their
// place as [History.AppendRows] does, in one step that no other goroutine sees half of. It
// returns the ID of the last one. A row keeps the pin of an entry that was taken back and had
// its key. Signed reasoning that was taken back stays bound to what it was made of; see
// [Snapshot.Unbound]. Other signed reasoning is not bound, except that of the answer to what
// Prepare has returned last. ReplaceRows(0) replaces all entries, and the summary with them;
// then there is no exception.
//
// Errors are those of [History.RewindBefore] and AppendRows; then nothing has changed. While a
// Do waits for an answer, the error matches [ErrStale].
func (h *History) ReplaceRows(id ID, rows ...Message) (ID, error) {
	batch, err := h.newMessages(nil, rows)
	if err != nil {
		return 0, err
	}
	for i := range batch {
		batch[i].row = true
	}
	err = h.ifOpen(func() error {
		_, err := h.keptLocked(id, batch, h.joinsFirst(batch))
		return err
	})
	if err == nil {
		err = h.cutResults(batch)
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
	err = h.ifOpen(func() error {
		n, err := h.keptLocked(id, batch, true)
		if err != nil {
			return err
		}
		h.inherit(batch, n, id == 0)
		switch {
		case id == 0:
			h.recorder.wentBack(h.revert(&state{id: h.id}))
		case n < len(h.list) || h.hasDropped(id-1):
			h.recorder.wentBack(h.rewind(n, id-1, nil))
		}
		if cut, err = h.appendLocked(batch); err != nil {
			return err
		}
		if len(batch) > 0 {
			last = h.last
		}
		h.deliverLocked()
		return nil
	})
	return last, cut, err
}

// inherit gives rows the pins and the bonds of list[n:], whose place they take. If they are
// all that the view has, signed reasoning that is not in the list is not bound.
func (v *view) inherit(rows []pendingEntry, n int, all bool) {
	pinned := make(map[string]bool)
	made := make(map[string]*entry) // by what is signed
	for _, e := range v.list[n:] {
		if key := e.msg.Key; key != "" && v.isPinned(e.head) {
			pinned[key] = true
		}
		if e.msg.isSigned() {
			made[e.msg.seals()] = e
		}
	}
	mayAnswer := v.answers.known && !all // whether a row may be what a request was answered with
	for i := len(rows) - 1; i >= 0; i-- {
		row := &rows[i]
		row.pin = row.pin || pinned[row.msg.Key]
		was, known := made[row.msg.seals()]
		row.bound = known || !mayAnswer
		if known {
			row.bindTo(was.made(), was.own().during)
		}
		mayAnswer = mayAnswer && !row.msg.isSigned()
	}
}

// keptLocked returns how many entries of the list are older than the one with the ID, 0 for
// ID 0, or an error if rows can't take the place of the others. If check is false, it does not
// look at the rows.
func (h *History) keptLocked(id ID, rows []pendingEntry, check bool) (n int, err error) {
	if id != 0 {
		if err := h.mayRewindLocked(id, id-1); err != nil {
			return 0, err
		}
		n = firstAfter(h.list, id-1)
	}
	if h.talk.waits() != nil {
		return 0, &staleError{Reason: "a Do waits for the answer to what would be replaced; wait for it, or cancel its ctx"}
	}
	if check {
		rest := h.without(n)
		err = rest.check(&h.setup, rows, h.talk.hasFailed(rest.newestMessage()))
	}
	return n, err
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

// rewindLocked takes back list[n:], which are the entries newer than last. They end with the
// messages that the waiting Do has delivered from the queue, which are delivered again.
func (h *History) rewindLocked(n int, last ID, queued []*queued) {
	h.recorder.wentBack(h.rewind(n, last, queued))
	if k := h.deliverLocked(); k > 0 && len(queued) > 0 {
		next := *h.talk.waits()
		next.first = h.list[len(h.list)-k].id
		h.talk.wait(&next)
	}
}

// usersFrom returns the messages from the one with the ID to the end of the list, as they
// were in the queue. It returns nil if not all of them are user messages, or the ID is 0.
func (s *state) usersFrom(first ID) (list []*queued) {
	if first == 0 {
		return nil
	}
	for _, e := range s.list[firstAfter(s.list, first-1):] {
		if e.msg.Role != RoleUser {
			return nil
		}
		list = append(list, &queued{msg: e.msg, tokens: e.tokens, pin: s.isPinned(e.id)})
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

// binds reports whether an answer to a view that was sent may be bound. If an edit in
// the view has been undone, reasoning that the edit took out may stand before the answer
// again, and the answer was made without it.
func (v *view) binds(sent sentView) bool {
	return !sent.open && !v.undidSince(sent.version, sent.edit)
}

// undid records that the current version has undone the edits that made the version
// edit or a later one. Both figures ascend in v.reversals, since this implies the older
// reversals of newer edits.
func (v *view) undid(edit uint64) {
	n := len(v.reversals)
	for n > 0 && v.reversals[n-1].edit >= edit {
		n--
	}
	v.reversals = append(slices.Clip(v.reversals[:n]), reversal{v.version, edit})
	if len(v.reversals) > maxReversals {
		v.reversals[1].edit = v.reversals[0].edit
		v.reversals = slices.Delete(v.reversals, 0, 1)
	}
}

// maxReversals is the number of reversals that are recorded. Beyond it, the two oldest
// become a reversal that covers at least as much, so a very old snapshot may be refused with
// ErrStale unnecessarily.
const maxReversals = 1000

// editsStay reports whether the edits applied since at stay in place in a
// rollback to it. No edit that at shows has been undone.
//
// Edits only remove and change entries. So every entry of the view with an ID up to
// at.last is also in at: if at.last is 5 and the view has entry 3, at also has it.
// Comparing IDs with at.last is therefore enough.
func (v *view) editsStay(at *Snapshot) bool {
	since := sort.Search(len(v.edits), func(i int) bool { return v.edits[i].version > at.version })
	if since == len(v.edits) {
		return true
	}
	return v.edits[since].newest <= at.last && (len(at.list) == 0 || v.holds(at.floor().unpinned()))
}

// recordEdit records the edit that has just made the current version. newest
// is the newest entry that it dropped or changed.
func (v *view) recordEdit(newest ID) {
	n := sort.Search(len(v.edits), func(i int) bool { return v.edits[i].newest <= newest })
	v.edits = append(slices.Clip(v.edits[:n]), editMark{v.version, newest})
}

// holds reports whether all of these entries are in the view, unchanged.
func (s *state) holds(entries []*entry) bool {
	return !slices.ContainsFunc(entries, func(e *entry) bool { return s.find(e.id) != e })
}

// rewind takes back list[n:], which are the entries newer than last, and puts again at
// the front of the queue. It returns what the recorder is told, as revert does: entries newer
// than back were taken back, and the summary that was before and is now.
func (v *view) rewind(n int, last ID, again []*queued) (back ID, was, now *placedSummary) {
	if cal := v.known().cal; cal != nil {
		raw, pinned := v.rawShared(v.list[n:], cal.at.list.newerThan(last))
		v.measured, v.pinMeasured = v.measured-raw, v.pinMeasured-pinned
	}
	shared := n < v.seen
	if shared {
		v.seen = 0
	} else {
		v.cutOff = slices.Clone(v.list[n:])
	}
	v.cutTail(n, shared)
	v.queue = append(again, v.queue...)
	v.newVersion()
	v.pins = slices.Clip(v.pins[:sort.Search(len(v.pins), func(i int) bool { return v.pins[i] > last })])
	was, v.summary = v.summary, v.summary.upTo(last)
	if v.summary != was {
		v.sumMeasured(true)
	}
	v.tookBack(last)
	v.cameBack(v.list)
	v.calls = callsOf(v.list)
	v.releaseViews(last)
	return last, was, v.summary
}

// revert makes the entries and the summary exactly those of an earlier view. Every entry of
// v with an ID up to to.last is also there (see editsStay), or to was loaded.
func (v *view) revert(to *state) (back ID, was, now *placedSummary) {
	v.touched = to.touched
	before := v.request
	was = v.summary
	v.replace(v.sys, slices.Clone(to.list), to.originals, max(to.touched, newestTurn(to.list)))
	if v.request != before {
		v.request = v.request.Back()
	}
	v.summary, v.appended, v.left, v.edits = to.summary, to.appended, to.left, to.edits
	v.pins = slices.DeleteFunc(slices.Clone(v.pins), func(head ID) bool { _, ok := index(v.list, head); return !ok })
	v.last = max(v.last, to.last)
	v.tookBack(to.last)
	v.finishUndo(to.lastEdit() + 1) // the first version that an undone edit may have made
	return to.last, was, v.summary
}

// finishUndo gives v a new version, in which the edits that made the version edit or a later
// one were undone.
func (v *view) finishUndo(edit uint64) {
	v.newVersion()
	v.undid(edit)
	v.cameBack(v.list)
	v.calls = callsOf(v.list)
	v.seen, v.rewritten, v.lastFocus = 0, v.version, ""
	v.sumMeasured(true)
	v.releaseViews(0)
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
	next.replace(sys, list, originals, s.turn)
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
	return s.Text == t.Text && s.Updates == t.Updates && s.Time.Equal(t.Time) && slices.Equal(s.Covers, t.Covers) && slices.Equal(s.Read, t.Read) && s.Native.sameAs(&t.Native)
}

// Undo reverts the newest applied edit, whose report is r, of a compaction or of Apply. Entries
// that it dropped or changed are restored, as is the previous summary. Messages appended since
// then stay after them. To revert the edit before, call Undo with its report.
//
// Undo changes no limits, system entries, ephemeral messages, calibration, or pins of entries
// that stay. Afterwards no compaction starts on its own until Limits.MinFree tokens were
// appended, or the request does not fit.
//
// If r is not the report of the newest edit in the view, the error matches [ErrStale], and
// nothing changes. The report of an Append, of an edit that a Rollback has undone, or of
// another History is not, even if h was forked from it.
func (h *History) Undo(r Report) error {
	return h.ifOpen(func() error { return h.undoLocked(r.left, true) })
}

// undoLocked reverts the edit recorded in d. If hold is true, no compaction starts on its own
// for a while.
func (h *History) undoLocked(d *departure, hold bool) error {
	was := h.summary
	if !h.undo(d, hold) {
		return &staleError{Reason: "the report is not that of the newest edit in place; undo edits from the newest on"}
	}
	h.recorder.wentBack(h.last, was, h.summary)
	h.deliverLocked()
	return nil
}

// undo reverts the edit recorded in d. It reports false and changes nothing if that is not the
// newest edit in the view. If hold is true, isHeld reports true for a while.
func (v *view) undo(d *departure, hold bool) bool {
	if d == nil || d.was.id != v.id || d.was.version+1 != v.lastEdit() {
		return false
	}
	v.putBack(d)
	v.unbind(d)
	if s := d.was.summary; !v.tookBackSince(d, s.newestKept()) {
		v.summary = s.back(func(s *placedSummary) bool { return v.tookBackSince(d, s.sum.newestRead()) || v.forgotSince(d, s) })
	}
	v.edits, v.touched = d.was.edits, d.was.touched
	v.appended = min(v.appended+d.was.appended, maxTotal)
	v.finishUndo(d.was.version + 1)
	if hold {
		v.heldSince, v.heldAt = v.version, v.appendedEver
	}
	return true
}

// unbind ends the bonds that the Undo of d has broken: providers refuse an answer after
// reasoning that was taken out when it was made. If the edit has taken out nothing else, such
// answers stay bound, and the reasoning that came back does not. Otherwise they were made of
// another view, and their bonds end for good, since a later edit may restore that view.
func (v *view) unbind(d *departure) {
	cleared, only := make(map[ID]bool), d.was.summary == v.summary
	for _, back := range d.gone {
		if back.now != nil && back.now.marks.has(bare) && !back.was.marks.has(bare) {
			cleared[back.was.id] = true
		} else {
			only = false
		}
	}
	isMade := func(e *entry) bool { return e.id > d.was.last && e.made() != 0 && e.own().during > d.was.version }
	if len(cleared) == 0 || !slices.ContainsFunc(v.list, isMade) {
		return
	}
	list := slices.Clone(v.list)
	for i, e := range list {
		if only && cleared[e.id] || !only && isMade(e) {
			list[i] = e.unmade()
		}
	}
	v.replace(v.sys, list, v.originals, v.turn)
}

// tookBackSince reports whether a rollback has taken back the entry with the ID since the edit
// recorded in d.
func (s *state) tookBackSince(d *departure, id ID) bool {
	return s.takenBackUpTo(id) >= max(d.was.last, 1)
}

// forgotSince reports whether the content of an entry that s has read was forgotten since the
// edit recorded in d.
func (v *view) forgotSince(d *departure, s *placedSummary) bool {
	return slices.ContainsFunc(v.forgotten, func(f forgetting) bool { return f.version > d.was.version && s.hasRead(f.id) })
}

// putBack restores the entries recorded in d to their positions, except exchanges of which a
// rollback has since taken back an entry.
func (v *view) putBack(d *departure) {
	gone := make(map[ID]bool) // heads
	for _, b := range d.gone {
		gone[b.was.head] = gone[b.was.head] || v.tookBackSince(d, b.was.id)
	}
	var back []*entry
	var originals []*original // of back
	for _, b := range d.gone {
		i, in := index(v.list, b.was.id)
		if in && v.list[i] == b.now || b.now == nil && !gone[b.was.head] {
			back = append(back, b.was)
			if b.original != nil {
				originals = append(originals, b.original)
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(v.originals), func(o *original) bool { _, in := index(back, o.id); return in })
	originals = ranges.Merge(kept, originals, func(o *original) ID { return o.id })
	list := merge(back, v.list)
	for i, e := range list { // an entry after a restored call is in a turn with calls
		if i > 0 && list[i-1].tools && list[i-1].turn == e.turn && !e.tools {
			own := *e
			own.setTools(true)
			list[i] = &own
		}
	}
	v.replace(v.sys, list, originals, max(d.was.touched, newestTurn(list)))
}
