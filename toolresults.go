package convo

import (
	"context"
	"slices"
)

// ClearToolResults is a [CompactionStrategy] that clears old tool results: a
// marker that names the tool and the size takes the place of the content, call
// and error flag stay. It works inside one long turn too.
//
// To keep the provider's prompt cache, it clears as much as it can at once, and
// nothing when that frees too little. With Options.Spill, the originals are
// kept and the markers say where.
type ClearToolResults struct {
	KeepLast int // the newest exchanges with calls keep their results; 0: 3, negative: none but the floor
	MinFreed int // raw tokens; 0: Goal.MinFree, negative: whatever it is
}

// Name returns "clear-tool-results".
func (ClearToolResults) Name() string { return "clear-tool-results" }

// Compact plans what to clear.
func (c ClearToolResults) Compact(_ context.Context, s *Snapshot, g Goal) (Edit, error) {
	keep := c.KeepLast
	if keep == 0 {
		keep = 3
	}
	var rounds []atom
	for w := walk(&s.state); ; {
		a, ok := w.next()
		if !ok {
			break
		}
		if hasCalls(&s.list[a.from].msg) {
			rounds = append(rounds, a)
		}
	}
	var e Edit
	var freed int64
	counter := s.counter()
	for _, a := range rounds[:max(len(rounds)-max(keep, 0), 0)] {
		if a.floor {
			continue
		}
		for _, result := range s.list[a.from+1 : a.to] {
			freed += e.clearIn(result, counter, g.run)
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

// clearIn adds the results of an entry that are worth it, and returns what that
// frees.
func (e *Edit) clearIn(in *entry, counter *counter, run *run) (freed int64) {
	for _, p := range in.msg.Parts {
		r, ok := p.(ToolResult)
		if !ok || r.Cleared || run != nil && slices.Contains(run.kept, Clear{ID: in.id, CallID: r.CallID}) {
			continue
		}
		gain := counter.parts(r.Parts) - counter.text(markerText(&r, ""))
		if gain <= 0 {
			continue
		}
		freed += gain
		e.Clear = append(e.Clear, Clear{ID: in.id, CallID: r.CallID})
	}
	return freed
}
