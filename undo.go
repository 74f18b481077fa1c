package convo

import "slices"

// Undo reverts the newest applied edit, whose report is r. The edit may come from a
// compaction or from Apply. Entries that it dropped or changed are restored, as is the
// previous summary. Messages appended since then stay after them. To revert the edit
// before, call Undo with its report.
//
// Undo changes no limits, system entries, ephemeral messages, calibration, or pins of
// entries that stay. Afterwards no compaction starts on its own until Limits.MinFree
// tokens were appended, or the request does not fit.
//
// Undo returns a [*StaleError] and changes nothing if r is not the report of the newest edit
// in the view. The report of an Append, of an edit that a Rollback has undone, or of another
// History is not, even if h was forked from it.
func (h *History) Undo(r Report) error {
	return h.ifOpen(func() error { return h.undoLocked(r.left, true) })
}

// undoLocked reverts the edit recorded in d. If hold is true, no compaction starts on its own
// for a while.
func (h *History) undoLocked(d *departure, hold bool) error {
	was := h.summary
	if !h.undo(d, hold) {
		return &StaleError{Reason: "the report is not that of the newest edit in place; undo edits from the newest on"}
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
		for s != nil && s.before != nil && v.tookBackSince(d, s.sum.newestRead()) {
			s = s.before
		}
		v.summary = s.unread(nil)
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
	list, made := slices.Clone(v.list), false
	for i, e := range list {
		if len(cleared) > 0 && e.id > d.was.last && e.made() != 0 && e.own().during > d.was.version {
			made = true
			if !only {
				list[i] = e.unmade()
			}
		}
	}
	if !made {
		return
	}
	for i, e := range list {
		if only && cleared[e.id] {
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
	originals = merged(kept, originals, func(o *original) ID { return o.id })
	list := merged(v.list, back, func(e *entry) ID { return e.id })
	for i, e := range list { // an entry after a restored call is in a turn with calls
		if i > 0 && list[i-1].tools && list[i-1].turn == e.turn && !e.tools {
			own := *e
			own.setTools(true)
			list[i] = &own
		}
	}
	v.replace(v.sys, list, originals, max(d.was.touched, newestTurn(list)))
}

// merged merges two ascending lists. If both have an ID, it takes the element of b.
func merged[T any](a, b []T, id func(T) ID) []T {
	all := make([]T, 0, len(a)+len(b))
	for _, x := range b {
		for len(a) > 0 && id(a[0]) < id(x) {
			all, a = append(all, a[0]), a[1:]
		}
		if len(a) > 0 && id(a[0]) == id(x) {
			a = a[1:]
		}
		all = append(all, x)
	}
	return append(all, a...)
}
