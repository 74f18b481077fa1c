package convo

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
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

// A lastRead is the newest result of the calls with one key.
type lastRead struct {
	id      ID
	callID  string
	tool    string
	size    int64 // raw tokens, with what was cleared
	end     int64 // raw tokens up to it in the list, with what was cut or cleared
	isClear bool
	apart   int64 // raw tokens between it and the result in gone
	gone    ID    // the entry with the result of the call before, which was cleared; 0: none
}

// reads is what the calls in a view show about what was read again.
type reads struct {
	newest  map[uint64]*lastRead   // by key
	again   []*lastRead            // new results of calls whose results before had left
	dropped map[uint64]droppedRead // of the view before
	seen    map[string]int         // by tool, the number of new results of calls whose results before were in the view
}

// readsOf returns what s shows. New is what was appended since the last edit. Results with
// fewer than least tokens do not count.
func readsOf(s *Snapshot, same func(ToolCall) string, before *pastReads, least int64) *reads {
	found := &reads{newest: make(map[uint64]*lastRead), seen: make(map[string]int), dropped: make(map[uint64]droppedRead, len(before.dropped))}
	for _, d := range before.dropped {
		found.dropped[d.key] = d
	}
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
				now := &lastRead{id: e.id, callID: r.CallID, tool: r.Name, size: (e.tokens + e.missing()) / int64(len(e.msg.Parts)), end: end, isClear: r.Cleared}
				found.add(uint64(fingerprint.Sum(0).String(key)), now, before, total-end < s.appended)
			}
		}
	}
	return found
}

// add adds a result.
func (f *reads) add(key uint64, now *lastRead, before *pastReads, isNew bool) {
	was := f.newest[key]
	d, dropped := f.dropped[key]
	switch {
	case was != nil && was.isClear:
		now.gone, now.apart = was.id, now.end-was.end
	case was == nil && dropped:
		now.gone = d.id
		if isNew && d.edit < before.edits {
			now.apart = maxTotal
		}
	}
	switch {
	case now.isClear || !isNew:
	case now.gone != 0:
		f.again = append(f.again, now)
	case was != nil:
		f.seen[now.tool]++
	}
	f.newest[key] = now
}

// SameCall is for ClearToolResults.Same. It returns the same key for calls of the same tool
// with the same arguments, regardless of the order of fields and of white space. It returns no
// key for arguments that are not a JSON object.
func SameCall(c ToolCall) string {
	if !c.Valid() || strings.TrimSpace(c.Arguments) == "" {
		return ""
	}
	return c.Name + " " + sameJSON(c.Arguments)
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

// leastReread returns the least size of a result that counts as read again, in raw tokens, for
// a view of at most the given size.
func leastReread(most int) int64 { return int64(max(most, 0)) / 256 }

// A tally counts results of a tool whose calls were made again: after the result before had
// left, and while it could be seen.
type tally struct{ again, seen int }

// isCareless reports whether calls are made again regardless of what can be seen.
func (t tally) isCareless() bool { return 4*t.seen > t.again }

// A pastReads is what a History remembers of the calls in its views. It is never written to.
type pastReads struct {
	dropped []droppedRead    // calls whose exchanges were dropped; the newest last
	edits   int              // by compactions
	tallies map[string]tally // by tool
	calls   int              // results that were read again after they had left
	tokens  int64            // of these
	row     int              // newest compactions in a row for which most of what was new was read again
}

// A droppedRead is a call whose result was dropped.
type droppedRead struct {
	key  uint64
	id   ID  // of the entry with the result
	edit int // number of the edit
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

// isUnfit reports whether to say that what is in use does not fit: at the third compaction in
// a row that shows it, and whenever their number has doubled since.
func (p *pastReads) isUnfit() bool {
	n := p.row / 3
	return p.row%3 == 0 && n > 0 && n&(n-1) == 0
}

// drop remembers the calls whose results an edit has dropped, and forgets those that were made
// again much later.
func (p *pastReads) drop(found *reads, r *Report) {
	p.edits++
	dropped := slices.Clone(p.dropped)
	for key, read := range found.newest {
		_, gone := slices.BinarySearch(r.Dropped, read.id)
		if !gone {
			_, gone = slices.BinarySearch(r.Summarised, read.id)
		}
		if gone || read.apart == maxTotal {
			dropped = slices.DeleteFunc(dropped, func(d droppedRead) bool { return d.key == key })
		}
		if gone {
			dropped = append(dropped, droppedRead{key, read.id, p.edits})
		}
	}
	slices.SortFunc(dropped, func(a, b droppedRead) int { return cmp.Compare(a.id, b.id) })
	p.dropped = dropped[max(len(dropped)-mostDropped, 0):]
}
