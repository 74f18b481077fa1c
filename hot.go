package convo

import (
	"hash/fnv"
	"maps"
	"slices"
)

// A spare says what a compaction leaves in the view although its target is not reached:
// results that were read again after they had left.
type spare struct {
	heads map[ID]bool // of the exchanges that stay
	most  int64       // raw tokens of the largest view with which that is worth it
	left  int64       // raw tokens of the view after the links of a Chain so far
}

// has reports whether an entry stays. A nil spare has none.
func (p *spare) has(e *entry) bool { return p != nil && p.heads[e.head] }

// tokens returns the raw tokens of what stays besides the floor.
func (p *spare) tokens(s *state) (n int64) {
	if p == nil {
		return 0
	}
	for w := walk(s); ; {
		a, ok := w.next()
		if !ok {
			return n
		}
		if !a.floor && p.has(s.list[a.from]) {
			n += a.tokens
		}
	}
}

// spare returns what stays if the exchanges with the given heads do. It returns nil if the
// compaction would then free less than Goal.MinFree, or leave less than a twentieth of the
// limit below the mark that it began at.
func (g *Goal) spare(s *Snapshot, heads map[ID]bool) *spare {
	if g.Limit <= 0 || !g.maySpare || g.Reason != ReasonHigh && !g.hasTime() {
		return nil
	}
	raw := func(tokens int) int64 { // of a size in tokens
		return portion(int64(g.Limit), int64(tokens), int64(max(g.Status.Limit, 1)))
	}
	mark := g.Status.High
	if g.Reason == ReasonSoft {
		mark = g.Status.Soft
	}
	p := &spare{heads: heads, most: int64(g.Limit)}
	if mark > 0 && mark < g.Status.Limit {
		p.most = raw(mark)
	}
	minFree := max(int64(g.MinFree), raw(min(g.Status.MinFree, g.Status.Limit)), 1)
	p.most = min(p.most-int64(g.Limit)/20, s.raw()-minFree)
	kept := s.floorWeight().total() + p.tokens(&s.state)
	_, words := g.room(s).wordsOf(&s.state, kept)
	if kept+words+max(s.summary.tokens(), int64(maxSummary(g.Low))) > p.most {
		return nil
	}
	return p
}

// A lastRead is the newest result of the calls with one key.
type lastRead struct {
	at      Clear
	tool    string
	size    int64 // raw tokens, with what was cleared
	end     int64 // raw tokens up to it in the list, with what was cut or cleared
	isClear bool
	apart   int64 // raw tokens between it and the result in gone
	gone    ID    // the entry with the result of the call before, which was cleared; 0: none
}

// reads is what the calls in a view show about what was read again.
type reads struct {
	newest map[uint64]*lastRead // by key
	again  []*lastRead          // new results of calls whose results before had left
	seen   map[string]int       // by tool, the number of new results of calls whose results before were in the view
}

// readsOf returns what s shows. New is what was appended since the last edit. Results with
// fewer than least tokens do not count.
func readsOf(s *Snapshot, same func(ToolCall) string, before *pastReads, least int64) *reads {
	found := &reads{newest: make(map[uint64]*lastRead), seen: make(map[string]int)}
	total, end := int64(0), int64(0)
	for _, e := range s.list {
		total += e.tokens + e.missing()
	}
	head := 0
	var calls []ToolCall
	for i, e := range s.list {
		end += e.tokens + e.missing()
		if e.msg.Role != RoleTool {
			head, calls = i, nil
			continue
		}
		if e.tokens+e.missing() < least {
			continue
		}
		if calls == nil {
			calls = s.list[head].msg.ToolCalls()
		}
		for r := range eachOf[ToolResult](e.msg.Parts) {
			c := slices.IndexFunc(calls, func(c ToolCall) bool { return c.ID == r.CallID })
			if c < 0 {
				continue
			}
			if key := same(calls[c]); key != "" {
				now := &lastRead{at: Clear{ID: e.id, CallID: r.CallID}, tool: r.Name, size: s.counter().parts(r.Parts), end: end, isClear: r.Cleared}
				if r.Cleared {
					now.size += e.missing()
				}
				found.add(hashOf(key), now, before, total-end < s.appended)
			}
		}
	}
	return found
}

// add adds a result.
func (f *reads) add(key uint64, now *lastRead, before *pastReads, isNew bool) {
	was := f.newest[key]
	switch {
	case now.isClear:
	case was == nil && isNew && slices.Contains(before.dropped, key):
		f.again = append(f.again, now)
	case was == nil:
	case was.isClear:
		now.gone, now.apart = was.at.ID, now.end-was.end
		if isNew {
			f.again = append(f.again, now)
		}
	case isNew:
		f.seen[now.tool]++
	}
	f.newest[key] = now
}

// hashOf returns the hash of a key.
func hashOf(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return h.Sum64()
}

// leases is for how many times as many messages a result is spared as lay between its call
// and the one before.
const leases = 16

// hot returns the results that the model has shown to need: those of calls that were made
// again after their results had been cleared, and not much later. It also returns the heads
// of their exchanges, and of those with the cleared results, which show it to the next
// compaction. The calls of a tool do not count if they are often made again although their
// results can be seen.
func (c ClearToolResults) hot(s *Snapshot, g *Goal) (results map[Clear]bool, heads map[ID]bool) {
	if !s.hasCleared() {
		return nil, nil
	}
	same := c.Same
	if same == nil {
		same = SameCall
	}
	found := readsOf(s, same, &g.before, g.leastRead())
	tallies := g.before.with(found).tallies
	reach := 2 * max(int64(g.Limit), int64(g.Low)) // a result that lies farther back could not have stayed
	results, heads = make(map[Clear]bool), make(map[ID]bool)
	for _, r := range found.newest {
		lent := leases * int64(r.at.ID-r.gone)
		if r.isClear || r.gone == 0 || r.apart > reach || int64(s.last-r.at.ID) > lent || tallies[r.tool].isCareless() {
			continue
		}
		results[r.at] = true
		for _, id := range []ID{r.at.ID, r.gone} {
			heads[s.find(id).head] = true
		}
	}
	return results, heads
}

// hasCleared reports whether a result in s is cleared.
func (s *state) hasCleared() bool {
	return slices.ContainsFunc(s.list, func(e *entry) bool {
		for r := range eachOf[ToolResult](e.msg.Parts) {
			if r.Cleared {
				return true
			}
		}
		return false
	})
}

// leastRead returns the least size of a result that counts as read again, in raw tokens.
func (g *Goal) leastRead() int64 { return int64(max(g.Limit, g.Low)) / 256 }

// A tally counts results of a tool whose calls were made again: after the result before had
// left, and while it could be seen.
type tally struct{ again, seen int }

// isCareless reports whether calls are made again regardless of what can be seen.
func (t tally) isCareless() bool { return 4*t.seen > t.again }

// A pastReads is what a History remembers of the calls in its views. It is never written to.
type pastReads struct {
	dropped []uint64         // keys of calls whose exchanges were dropped; the newest last
	tallies map[string]tally // by tool
	calls   int              // results that were read again after they had left
	tokens  int64            // of these
	row     int              // newest compactions in a row for which most of what was new was read again
}

// Bounds of a pastReads.
const (
	mostDropped = 1024
	mostTallies = 64
)

// with returns p with what a view shows.
func (p pastReads) with(found *reads) pastReads {
	p.tallies = maps.Clone(p.tallies)
	if p.tallies == nil {
		p.tallies = make(map[string]tally)
	}
	add := func(tool string, t tally) {
		if was, ok := p.tallies[tool]; ok || len(p.tallies) < mostTallies {
			p.tallies[tool] = tally{was.again + t.again, was.seen + t.seen}
		}
	}
	for tool, n := range found.seen {
		add(tool, tally{seen: n})
	}
	for _, r := range found.again {
		add(r.tool, tally{again: 1})
		p.calls++
		p.tokens += r.size
	}
	return p
}

// drop remembers the calls whose results an edit has dropped.
func (p *pastReads) drop(found *reads, r *Report) {
	p.dropped = slices.Clone(p.dropped)
	for key, read := range found.newest {
		_, dropped := slices.BinarySearch(r.Dropped, read.at.ID)
		_, summarised := slices.BinarySearch(r.Summarised, read.at.ID)
		if (dropped || summarised) && !slices.Contains(p.dropped, key) {
			p.dropped = append(p.dropped, key)
		}
	}
	p.dropped = p.dropped[max(len(p.dropped)-mostDropped, 0):]
}
