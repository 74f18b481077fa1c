package convo

// hotReads are results that the model has shown to need.
type hotReads struct {
	results map[Clear]bool // those that are not cleared
	heads   map[ID]bool    // of their exchanges, and of those with the cleared results before them
	away    int64          // raw tokens of the others, which are cleared
}

// leases is for how many times as many messages a result is spared as lay between its call
// and the one before.
const leases = 16

// hot returns the results that the model has shown to need: those of calls that were made
// again after their results had been cleared, and not much later. It also returns the heads
// of their exchanges, and of those with the cleared results, which show it to the next
// compaction. The calls of a tool do not count if they are often made again although their
// results can be seen.
func (c ClearToolResults) hot(s *Snapshot, g *Goal) (h hotReads) {
	if len(g.before.dropped) == 0 && !s.hasCleared() {
		return h
	}
	same := c.Same
	if same == nil {
		same = SameCall
	}
	found := readsOf(s, same, &g.before, leastReread(max(g.Limit, g.Low)))
	tallies := g.before.with(found).tallies
	reach := 2 * int64(max(g.Limit, g.Low, g.Target)) // a result that lies farther back could not have stayed
	h.results, h.heads = make(map[Clear]bool), make(map[ID]bool)
	for _, r := range found.newest {
		lent := leases * int64(r.id-r.gone)
		if r.gone == 0 || r.apart > reach || int64(s.last-r.id) > lent || tallies[r.tool].isCareless() {
			continue
		}
		if r.isClear {
			h.away += r.size
			continue
		}
		h.results[Clear{ID: r.id, CallID: r.callID}] = true
		for _, id := range []ID{r.id, r.gone} {
			if e := s.find(id); e != nil {
				h.heads[e.head] = true
			}
		}
	}
	return h
}

// spare returns what stays if the exchanges with the given heads do. It returns nil if the
// compaction would then free less than Goal.MinFree, or leave less than a twentieth of the
// limit below the mark that it began at.
func (g *Goal) spare(s *Snapshot, h hotReads) *spare {
	if g.Limit <= 0 || !g.maySpare || g.Reason != ReasonHigh && !g.hasTime() {
		return nil
	}
	mark := g.Status.High
	if g.Reason == ReasonSoft {
		mark = g.Status.Soft
	}
	p := &spare{heads: h.heads, most: int64(g.Limit)}
	if mark > 0 && mark < g.Status.Limit {
		p.most = portion(p.most, int64(mark), int64(g.Status.Limit)) // in raw tokens
	}
	p.most = min(p.most-int64(g.Limit)/20, s.raw()-int64(max(g.allFree, 1)))
	kept := s.floorWeight().total() + p.tokens(&s.state)
	_, words := g.room(s).wordsOf(&s.state, kept, 0, len(s.list))
	if kept+h.away+words+max(s.summary.tokens(), int64(maxSummary(g.Low))) > p.most {
		return nil
	}
	return p
}
