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
// Undo returns a [*StaleError] and changes nothing if r is not the report of the newest
// edit in the view, such as one of Append, of another History, even that which h was
// forked from, or of an edit that a Rollback has undone.
func (h *History) Undo(r Report) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	d := r.left
	if d == nil || d.was.id != h.id || d.was.version+1 != h.state.lastEdit() {
		return &StaleError{Reason: "the report is not that of the newest edit in place; undo edits from the newest on"}
	}
	h.putBackLocked(d)
	h.unbindLocked(d)
	if s := d.was.summary; !h.tookBackSince(d, s.newestCovered()) {
		h.putBackSummaryLocked(s)
	}
	h.edits, h.touched = d.was.edits, d.was.touched
	h.appended = min(h.appended+d.was.appended, maxTotal)
	h.newVersion()
	h.undidLocked(d.was.version + 1)
	h.cameBack(h.list)
	h.compactor.heldSince, h.compactor.heldAt = h.version, h.appendedEver
	h.calls = callsOf(h.list)
	h.compactor.lastFocus = ""
	h.sumPins()
	h.rewritten = h.version
	h.sumMeasured(true)
	h.releaseViews(0)
	h.updateChargeLocked()
	h.deliverLocked()
	return nil
}

// unbindLocked ends the bonds that the Undo of d has broken: providers refuse an answer after
// reasoning that was taken out when it was made. If the edit has taken out nothing else, such
// answers stay bound, and the reasoning that came back does not. Otherwise they were made of
// another view, and their bonds end for good, since a later edit may restore that view.
func (h *History) unbindLocked(d *departure) {
	cleared, only := make(map[ID]bool), d.was.summary == h.summary
	for _, back := range d.gone {
		if back.now != nil && back.now.marks.has(bare) && !back.was.marks.has(bare) {
			cleared[back.was.id] = true
		} else {
			only = false
		}
	}
	list, made := slices.Clone(h.list), false
	for i, e := range list {
		if len(cleared) > 0 && e.id > d.was.last && e.made() != 0 && e.own().during > d.was.version {
			if made = true; !only {
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
	h.replace(h.sys, list, h.originals, h.listRaw, h.turns, h.turn)
}

// tookBackSince reports whether a rollback has taken back the entry with the ID since the edit
// recorded in d.
func (s *state) tookBackSince(d *departure, id ID) bool {
	return s.takenBackUpTo(id) >= max(d.was.last, 1)
}

// putBackLocked restores the entries recorded in d to their positions, except exchanges of
// which a rollback has since taken back an entry.
func (h *History) putBackLocked(d *departure) {
	gone := make(map[ID]bool) // heads
	for _, back := range d.gone {
		gone[back.was.head] = gone[back.was.head] || h.tookBackSince(d, back.was.id)
	}
	list := make([]*entry, 0, len(h.list)+len(d.gone))
	originals := make([]*original, 0, len(h.originals)+len(d.gone))
	add := func(e *entry, o *original) {
		list = append(list, e)
		if o != nil {
			originals = append(originals, o)
		}
	}
	rest, kept := h.list, h.originals
	for _, back := range d.gone {
		for len(rest) > 0 && rest[0].id < back.was.id {
			add(rest[0], nil)
			rest = rest[1:]
		}
		for len(kept) > 0 && kept[0].id < back.was.id {
			originals, kept = append(originals, kept[0]), kept[1:]
		}
		switch {
		case back.now == nil && !gone[back.was.head]:
			add(back.was, back.original)
		case len(rest) > 0 && rest[0] == back.now:
			add(back.was, back.original)
			rest = rest[1:]
			if len(kept) > 0 && kept[0].id == back.was.id {
				kept = kept[1:]
			}
		}
	}
	list, originals = append(list, rest...), append(originals, kept...)
	for i, e := range list { // an entry after a restored call is in a turn with calls
		if i > 0 && list[i-1].tools && list[i-1].turn == e.turn && !e.tools {
			own := *e
			own.setTools(true)
			list[i] = &own
		}
	}
	h.replace(h.sys, list, originals, rawOf(list), countTurns(list), max(d.was.touched, newestTurn(list)))
	h.seen = 0
}

// isHeldLocked reports whether compactions must not start on their own, because an edit
// was undone and fewer than MinFree tokens were appended since. It matters only while the
// request fits.
func (h *History) isHeldLocked() bool {
	return h.compactor.heldSince != 0 && h.scale().Part(h.appendedEver-h.compactor.heldAt) < max(h.meter.marks().minFree, 1)
}
