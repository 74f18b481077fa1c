package convo

import "sort"

// An editMark remembers an applied edit that no rollback has undone.
type editMark struct {
	version uint64  // that it made
	touched []Range // the entries it dropped or cleared
}

// A rollbackMark remembers that all entries newer than last were taken back.
// Marks ascend in both, for an older one that took no more says nothing.
type rollbackMark struct {
	version uint64
	last    ID
}

// Rollback takes back every entry newer than the snapshot, system entries
// apart. Calls that were open in it are open again.
//
// Edits applied since stay, and the summary as it is now, when all of them
// touched only entries that the snapshot holds and left its newest exchange
// and its newest turn's user messages in the view, uncleared. Otherwise the
// entries and the summary are exactly the snapshot's again. System entries,
// pins of entries that remain, ephemeral messages, limits and calibration stay
// as they are now.
//
// It returns [ErrStale] for a snapshot that this History did not make, and for
// one of which a rollback has taken entries back.
func (h *History) Rollback(at *Snapshot) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.owns(at); err != nil {
		return err
	}
	if h.tookFrom(at) {
		return ErrStale
	}
	if !h.editsStay(at) {
		h.restore(at)
	} else if n := firstAfter(h.list, at.last); n < len(h.list) {
		h.cut(n, at.last)
	} else {
		return nil
	}
	h.settle()
	return nil
}

// Rewind takes back the newest turns, whole, pinned or not, and tells how many
// went. It stops before a turn of which a reduction took anything, so it never
// goes past the summary. A negative number is a [*ValueError].
func (h *History) Rewind(turns int) (taken int, err error) {
	if turns < 0 {
		return 0, &ValueError{Name: "Rewind", Value: turns, Want: "0 or more turns"}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return 0, ErrClosed
	}
	n := len(h.list)
	for taken < turns && n > 0 && h.list[n-1].turn > h.touched {
		for turn := h.list[n-1].turn; n > 0 && h.list[n-1].turn == turn; {
			n--
		}
		taken++
	}
	if taken == 0 {
		return 0, nil
	}
	h.cut(n, h.list[n].id-1)
	h.settle()
	return taken, nil
}

// tookFrom reports whether a rollback has taken entries of at back.
func (h *History) tookFrom(at *Snapshot) bool {
	since := sort.Search(len(h.rollbacks), func(i int) bool { return h.rollbacks[i].version > at.version })
	return since < len(h.rollbacks) && len(at.list) > 0 && at.list[len(at.list)-1].id > h.rollbacks[since].last
}

// editsStay reports whether all edits applied since at may outlive a rollback
// to it.
func (h *History) editsStay(at *Snapshot) bool {
	edited := false
	for i := len(h.edits) - 1; i >= 0 && h.edits[i].version > at.version; i-- {
		if !at.holdsAll(h.edits[i].touched) {
			return false
		}
		edited = true
	}
	if !edited || len(at.list) == 0 {
		return true
	}
	newest, _ := exchangeAt(at.list, len(at.list)-1)
	from, to := turnUsers(at.list)
	return h.holds(at.list[newest:]) && h.holds(at.list[from:to])
}

// holdsAll reports whether the list has entries with all of these IDs.
func (s *state) holdsAll(ids []Range) bool {
	for _, r := range ids {
		i, ok := index(s.list, r.First)
		last := i + int(r.Last-r.First)
		if !ok || last >= len(s.list) || s.list[last].id != r.Last {
			return false
		}
	}
	return true
}

// holds reports whether all of these very entries are in the view.
func (h *History) holds(entries []*entry) bool {
	for _, e := range entries {
		if i, ok := index(h.list, e.id); !ok || h.list[i] != e {
			return false
		}
	}
	return true
}

// cut takes back the entries from the n-th on, which are those newer than
// last. The list is clipped, so that no append writes what a snapshot sees.
func (h *History) cut(n int, last ID) {
	gone := h.list[n:]
	if h.known().cal != nil {
		was := h.known().cal.at.list
		h.measured -= rawShared(gone, was[firstAfter(was, last):])
	}
	raw := int64(0)
	for _, e := range gone {
		raw += e.tokens
		if h.isPinned(e.head) {
			h.pinRaw -= e.tokens
		}
	}
	turn := 0
	if n > 0 {
		turn = h.list[n-1].turn
	}
	for _, e := range gone {
		if e.turn > turn {
			turn = e.turn
			h.turns--
		}
	}
	h.list = h.list[:n:n]
	h.listRaw -= raw
	h.appended = max(h.appended-raw, 0)
	h.tookBack(last)
}

// restore makes entries and summary exactly the snapshot's again.
func (h *History) restore(at *Snapshot) {
	h.list, h.listRaw = at.list, at.listRaw
	h.slot, h.turns, h.touched, h.appended = at.slot, at.turns, at.touched, at.appended
	for len(h.edits) > 0 && h.edits[len(h.edits)-1].version > at.version {
		h.edits = h.edits[:len(h.edits)-1]
	}
	h.focused = focused{}
	h.tookBack(at.last)
	h.sumPins()
	h.rewritten = h.version
	h.sumMeasured(true)
}

// tookBack ends a rollback of all entries newer than last.
func (h *History) tookBack(last ID) {
	h.change()
	n := sort.Search(len(h.pins), func(i int) bool { return h.pins[i] > last })
	h.pins = h.pins[:n:n]
	h.calls = callsOf(h.list)
	h.turn = h.touched
	if n := len(h.list); n > 0 {
		h.turn = max(h.turn, h.list[n-1].turn)
	}
	for len(h.rollbacks) > 0 && h.rollbacks[len(h.rollbacks)-1].last >= last {
		h.rollbacks = h.rollbacks[:len(h.rollbacks)-1]
	}
	h.rollbacks = append(h.rollbacks, rollbackMark{h.version, last})
}

// firstAfter returns how many entries of an ascending list have an ID up to
// last.
func firstAfter(list []*entry, last ID) int {
	return sort.Search(len(list), func(i int) bool { return list[i].id > last })
}
