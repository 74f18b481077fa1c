// Package rereads says which results of calls a model has asked for again after they had left its
// view, and which tools it calls again regardless of what it can see.
package rereads

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/fingerprint"
)

// A Read is a result of a call. Sizes are in raw tokens, with what was cut or cleared.
type Read struct {
	ID           int64 // of the entry
	CallID, Tool string
	Size         int64
	End          int64 // the size of the list up to it
	Cleared      bool

	// Add sets these.
	Apart int64 // tokens between it and the result in Gone
	Gone  int64 // the entry with the result of the call before, which was cleared or dropped; 0: none
}

// far is Apart where the call before was dropped earlier than by the last edit.
const far = math.MaxInt64

// A View is what the calls in a view show.
type View struct {
	Newest map[uint64]*Read // the newest result of the calls with one key
	Again  []*Read          // new results of calls whose results before had left

	edits   int             // before the view
	dropped map[uint64]drop // before the view
	seen    map[string]int  // by tool, the number of new results of calls whose results before were in the view
}

// Add adds the next result of the view, of a call with a key. isNew says that it was appended
// since the last edit.
func (v *View) Add(key string, now Read, isNew bool) {
	k := uint64(fingerprint.Sum(0).String(key))
	was := v.Newest[k]
	d, dropped := v.dropped[k]
	switch {
	case was != nil && was.Cleared:
		now.Gone, now.Apart = was.ID, now.End-was.End
	case was == nil && dropped:
		now.Gone = d.id
		if isNew && d.edit < v.edits {
			now.Apart = far
		}
	}
	switch {
	case now.Cleared || !isNew:
	case now.Gone != 0:
		v.Again = append(v.Again, &now)
	case was != nil:
		v.seen[now.Tool]++
	}
	v.Newest[k] = &now
}

// A tally counts results of a tool whose calls were made again: after the result before had
// left, and while it could be seen.
type tally struct{ again, seen int }

// A Past is what is remembered of the calls in earlier views. It is never written to.
type Past struct {
	Calls  int   // results that were read again after they had left
	Tokens int64 // of these

	dropped []drop           // calls whose exchanges were dropped; the newest last
	edits   int              // by compactions
	tallies map[string]tally // by tool
	row     int              // newest compactions in a row for which most of what was new was read again
}

// A drop is a call whose result was dropped.
type drop struct {
	key  uint64
	id   int64 // of the entry with the result
	edit int   // number of the edit
}

// Bounds of a Past.
const (
	mostDropped = 1024
	mostTallies = 64
)

// View returns a View for the next view, without results.
func (p *Past) View() *View {
	v := &View{Newest: make(map[uint64]*Read), edits: p.edits, seen: make(map[string]int), dropped: make(map[uint64]drop, len(p.dropped))}
	for _, d := range p.dropped {
		v.dropped[d.key] = d
	}
	return v
}

// HasDropped reports whether calls are remembered whose results were dropped.
func (p *Past) HasDropped() bool { return len(p.dropped) > 0 }

// With returns p with what a view shows.
func (p Past) With(v *View) Past {
	p.tallies = maps.Clone(p.tallies)
	if p.tallies == nil {
		p.tallies = make(map[string]tally)
	}
	add := func(tool string, t tally) {
		if was, ok := p.tallies[tool]; ok || len(p.tallies) < mostTallies {
			p.tallies[tool] = tally{was.again + t.again, was.seen + t.seen}
		}
	}
	for tool, n := range v.seen {
		add(tool, tally{seen: n})
	}
	for _, r := range v.Again {
		add(r.Tool, tally{again: 1})
		p.Calls++
		p.Tokens += r.Size
	}
	return p
}

// IsCareless reports whether calls of a tool are made again regardless of what can be seen.
func (p *Past) IsCareless(tool string) bool { return 4*p.tallies[tool].seen > p.tallies[tool].again }

// After returns p after an edit of a view, of which it has all: it remembers the calls whose
// results the edit has dropped, and forgets those that were made again much later. isMost says
// that most of what was new was read again.
func (p Past) After(v *View, dropped func(id int64) bool, isMost bool) Past {
	p.edits++
	p.dropped = slices.Clone(p.dropped)
	for key, read := range v.Newest {
		gone := dropped(read.ID)
		if gone || read.Apart == far {
			p.dropped = slices.DeleteFunc(p.dropped, func(d drop) bool { return d.key == key })
		}
		if gone {
			p.dropped = append(p.dropped, drop{key, read.ID, p.edits})
		}
	}
	slices.SortFunc(p.dropped, func(a, b drop) int { return cmp.Compare(a.id, b.id) })
	p.dropped = p.dropped[max(len(p.dropped)-mostDropped, 0):]
	p.row++
	if !isMost {
		p.row = 0
	}
	return p
}

// IsUnfit reports whether to say that what is in use does not fit: at the third compaction in
// a row that shows it, and whenever their number has doubled since.
func (p *Past) IsUnfit() bool {
	n := p.row / 3
	return p.row%3 == 0 && n > 0 && n&(n-1) == 0
}
