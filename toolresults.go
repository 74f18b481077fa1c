package convo

import "context"

// ClearToolResults is a [CompactionStrategy] that clears old tool results. It
// replaces the content of a result by a marker that names the tool and the size;
// the call and the error flag stay. It works inside a single long turn too, and
// calls no model.
//
// Each edit costs a part of the provider's prompt cache, so ClearToolResults
// clears as many results as it can at once, and none if that would free too
// little. If Options.Spill is set, it stores the originals first, and the markers
// say where they are.
type ClearToolResults struct {
	// KeepLast is the number of newest exchanges with tool calls that keep their
	// results. 0 means 3. If it is negative, only the floor keeps its results.
	KeepLast int

	// MinFreed is the least to free, in raw tokens. 0 means Goal.MinFree. If it
	// is negative, any gain is enough.
	MinFreed int

	// Least is the size that a result must have to be cleared, in raw tokens of its
	// content. A smaller one is left. Less than 1 means that each result is cleared
	// that is larger than its marker.
	Least int
}

// Name returns "clear-tool-results".
func (ClearToolResults) Name() string { return "clear-tool-results" }

// Compact returns an edit that clears old results. It returns [ErrNoGain] if that
// would free too little, and g.NoClear if it is set.
func (c ClearToolResults) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	if g.NoClear != nil {
		return Edit{}, g.NoClear
	}
	keep := c.KeepLast
	if keep == 0 {
		keep = 3
	}
	var toolExchanges []listExchange // those with tool calls
	for w := walk(&s.state); ; {
		a, ok := w.next()
		if !ok {
			break
		}
		if hasCalls(&s.list[a.from].msg) {
			toolExchanges = append(toolExchanges, a)
		}
	}
	var e Edit
	var freed int64
	unclearable := make(map[Clear]bool, len(g.Unclearable))
	for _, u := range g.Unclearable {
		unclearable[Clear{ID: u.ID, CallID: u.CallID}] = true
	}
	counter := s.counter()
	for _, a := range toolExchanges[:max(len(toolExchanges)-max(keep, 0), 0)] {
		if a.floor {
			continue
		}
		for _, result := range s.list[a.from+1 : a.to] {
			freed += e.clearIn(result, int64(c.Least), counter, unclearable)
		}
	}
	least := int64(max(c.MinFreed, 1))
	if c.MinFreed == 0 {
		least = int64(max(g.MinFree, 1))
	}
	if freed < least {
		return Edit{}, ErrNoGain
	}
	return e, nil
}

// clearIn adds to e the results of an entry that are longer than their markers and
// have at least so many raw tokens. It returns the raw tokens that clearing them frees.
func (e *Edit) clearIn(in *entry, least int64, counter *counter, unclearable map[Clear]bool) (freed int64) {
	for _, p := range in.msg.Parts {
		r, ok := p.(ToolResult)
		if !ok || r.Cleared || unclearable[Clear{ID: in.id, CallID: r.CallID}] {
			continue
		}
		size := counter.parts(r.Parts)
		gain := size - counter.text(markerText(&r, ""))
		if gain <= 0 || size < least {
			continue
		}
		freed += gain
		e.Clear = append(e.Clear, Clear{ID: in.id, CallID: r.CallID})
	}
	return freed
}
