package convo

// A departure is what one edit took out of the view or changed in it, or what one
// Append cut. It is in memory as long as the report that holds it.
type departure struct {
	gone []departed // in ascending order
	was  state      // without entries; of a report of Append, the pins alone
}

// A departed entry was dropped, or another one took its place.
type departed struct {
	was, now *entry    // now is nil if it was dropped
	original *original // of was; nil if there is none
}

// departureFrom returns what an edit took out of the view before or changed in it.
func departureFrom(before *state, gone []departed) *departure {
	return &departure{gone, state{
		id: before.id, version: before.version, pins: before.pins, summary: before.summary,
		edits: before.edits, touched: before.touched, appended: before.appended,
	}}
}

// Left returns the entries that were dropped or rewritten, or whose results were cut
// or cleared, in ascending order, each as it was appended. Where the original was
// not kept, it is what stood before the compaction, and Entry.Missing says how much
// its results lack; see Options.KeepOriginals.
//
// The entries stay in memory as long as r or a copy of it. The History itself keeps
// only the report that Wait returns.
func (r Report) Left() []Entry {
	if r.left == nil {
		return nil
	}
	out := make([]Entry, len(r.left.gone))
	for i, d := range r.left.gone {
		out[i] = d.was.export(r.left.was.pins, new(partRoom))
		if o := d.original; o != nil {
			out[i].Message, out[i].Tokens, out[i].Missing = o.msg.clone(), clampInt(o.tokens), clampInt(o.missing)
		}
	}
	return out
}

// reportCutsLocked returns a report about the results in a batch that were cut
// when it was appended, or nil if there are none.
func (h *History) reportCutsLocked(batch []pendingEntry) *Report {
	var r *Report
	raw := h.raw()
	for _, a := range batch {
		if a.original == nil {
			continue
		}
		if r == nil {
			r = &Report{Outcome: OutcomeApplied, Reason: ReasonAppend, left: &departure{was: state{pins: h.state.clipped().pins}}}
		}
		r.Cut = append(r.Cut, a.id)
		r.left.gone = append(r.left.gone, departed{a.entry, a.entry, a.original})
		raw += a.missing
	}
	if r == nil {
		return nil
	}
	h.measureBeforeLocked(r)
	r.TokensBefore = clampInt(h.scaleLocked().Weigh(raw))
	return r
}
