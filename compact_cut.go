package convo

import (
	"errors"
	"math"
	"sort"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
)

// When the floor alone is over the limit, no strategy can help. An attempt then
// first cuts tool results that no assistant message has followed yet. The strategy
// sees the view with the cuts, which become part of its edit.

// A cuttable result is one that an attempt may cut.
type cuttable struct {
	in       *entry
	original *original // of in, to be changed; nil: of another result of in
	part     int       // its index in in.msg.Parts
	size     int64     // raw tokens of its content
	least    int64     // raw tokens of the marker
	measured bool      // the last usage report measured in
	stored   bool      // its original needs no Options.Spill any more
}

// cutFloor cuts results if the floor is over the limit, until the floor is at
// most three quarters of it; before that, the messages of Options.AfterCompaction
// yield. It returns an error if the limit cannot be reached. If only the user's words and
// a summary do not fit beside the floor, it cuts as much as these take. For Recover it
// also cuts results if the floor is over the target, as far as that helps. For MakeRoom
// it cuts nothing.
func (a *attempt) cutFloor() error {
	a.show(a.at)
	if back, own := a.at.eph.split(); back != nil && a.scale.Kept().Upper() > a.limit {
		a.yields = true
		a.show(&Snapshot{state: *a.at.withEphemeral(own)})
	}
	floor := a.scale.Kept()
	weight, most, aim := floor.Upper(), a.limit, a.limit/4*3
	beside := int64(0)
	if a.reserve == nil && a.total > a.limit && weight <= a.limit {
		beside = a.beside()
	}
	switch {
	case weight <= a.limit && weight > a.limit-beside:
		aim = a.limit - beside
	case a.reserve != nil, weight <= a.limit && (a.reason != ReasonOverflow || weight <= a.target):
		return a.checkFloor()
	case weight <= a.limit:
		most, aim = math.MaxInt64, a.target/4*3
	}
	a.cut(floor, most, aim)
	err := a.checkFloor()
	if err != nil && a.cutErr != nil {
		err = errorf("%w (%w)", err, a.cutErr)
	}
	return err
}

// beside returns what should stay beside the floor if it can, as an upper bound: the user's
// words that are dropped last, and a summary of the default length with its names. If an
// edit finds less room, it drops these. It returns 0 if there is room for them.
func (a *attempt) beside() int64 {
	if a.limit == noMark {
		return 0
	}
	r := room{share: min(max(a.scale.Holds(a.target), 1), a.at.raw()), limit: noMark, most: noMark}
	// By default a summary has an eighth of the target, its names a quarter of that, and the
	// tags around it no more than another eighth.
	summary := max(a.at.summary.tokens(), r.share/8*11/8, min(leastRoom, a.limit/16))
	if a.scale.Worst(a.floor.total()+r.share/wordsShare+summary) <= a.limit {
		return 0 // it fits, whatever the user has said
	}
	_, words := r.wordsOf(&a.at.state, 0, -1, len(a.at.list))
	return a.scale.Worst(a.floor.total()+words+summary) - a.scale.Kept().Upper()
}

// leastRoom is the room in tokens for a summary beside a heavy floor.
const leastRoom = 500

// cutRest cuts results, for Recover, if the view with the edit of the strategy is
// over the target. It reports whether it has cut any.
func (a *attempt) cutRest(e Edit) bool {
	if a.reason != ReasonOverflow || a.cuts != nil {
		return false
	}
	after, err := a.view.with(e, true)
	if err != nil {
		return false // carryOut will say so
	}
	rest := after.scale()
	if rest.Upper() <= a.target {
		return false
	}
	a.cut(rest, math.MaxInt64, a.target)
	return a.cuts != nil
}

// cut cuts unanswered results, the longest first, until the view, whose scale is
// rest, is at most aim. It cuts nothing if the view would still be larger than
// most. a.cutErr says why some results could not be cut.
func (a *attempt) cut(rest calibrate.Scale, most, aim int64) {
	defer catch(&a.cutErr, "Options.Tokenizer")
	list := a.cuttable()
	if len(list) == 0 {
		return
	}
	spill, end := a.f.h.newSpiller(a.f.ctx, false)
	defer end()
	for {
		longest := int64(0)
		for _, c := range list {
			longest = max(longest, c.size)
		}
		if afterCuts(rest, list, 0) > most {
			return
		}
		less := sort.Search(int(longest), func(n int) bool { return afterCuts(rest, list, longest-int64(n)) <= aim })
		size := longest - int64(less)
		again := false
		kept := list[:0:0]
		for _, c := range list {
			if !c.stored && c.size > max(size, c.least) {
				again, c.stored = true, true
				if _, err := spill.store(c.in, c.original, c.part); err != nil {
					a.cutErr = errors.Join(a.cutErr, err)
					continue
				}
				c.measure(a.f.h.ident)
			}
			kept = append(kept, c)
		}
		list = kept
		if !again {
			a.useCuts(list, size)
			return
		}
	}
}

// afterCuts returns the size of the view, whose scale is rest, when results are cut
// to the given size. Shorter results stay as they are, and none is cut below its
// least size.
func afterCuts(rest calibrate.Scale, list []*cuttable, size int64) int64 {
	var last *entry
	for _, c := range list {
		lost := c.size - max(size, c.least)
		if lost <= 0 {
			continue
		}
		if c.measured && c.in != last { // a cut makes it a new entry, which is not measured
			rest.Old -= c.in.tokens
			rest.Gone += c.in.tokens
			rest.Fresh += c.in.tokens
		}
		rest.Fresh -= lost
		last = c.in
	}
	return rest.Upper()
}

// cuttable returns the results that no assistant message has followed yet, except
// those of pinned exchanges.
func (a *attempt) cuttable() []*cuttable {
	s, counter := &a.at.state, a.f.h.ident.counter
	var list []*cuttable
	var reported shown // by the view of the last usage report
	if cal := s.known().cal; cal != nil {
		reported = cal.at.list
	}
	for _, e := range s.floor().unanswered().of(s.list) {
		if s.isPinned(e.head) {
			return nil
		}
		_, o := e.replaced(s.original(e.id))
		measured := reported.has(e)
		for i, p := range e.msg.Parts {
			r, ok := p.(ToolResult)
			if !ok || r.Cleared {
				continue
			}
			c := &cuttable{in: e, original: o, part: i, size: counter.content(r.Parts), measured: measured}
			_, c.stored = o.refs[i]
			c.stored = c.stored || a.f.h.opts.Spill == nil
			c.measure(a.f.h.ident)
			if c.size > c.least {
				list = append(list, c)
			}
		}
	}
	return list
}

// whole returns the result as it was appended or rewritten.
func (c *cuttable) whole() ToolResult { return c.original.read.Parts[c.part].(ToolResult) }

// measure sets c.least.
func (c *cuttable) measure(by *identity) {
	whole := c.whole()
	c.least = by.leastCut(&whole, c.place(by))
}

// place returns where the marker says that the result is kept.
func (c *cuttable) place(by *identity) string { return by.placeOf(c.original.refs[c.part], c.in.id) }

// useCuts cuts the results to the given size, and lets the strategy see the view
// with the cuts.
func (a *attempt) useCuts(list []*cuttable, size int64) {
	id := a.f.h.ident
	for _, c := range list {
		limit := max(size, c.least)
		if c.size <= limit {
			continue
		}
		whole := c.whole()
		short, ok := id.cutResult(whole, limit, c.place(id))
		if !ok {
			continue
		}
		n := len(a.cuts)
		if n == 0 || a.cuts[n-1].from != c.in {
			to, _ := c.in.replaced(nil)
			a.cuts = append(a.cuts, replacement{from: c.in, to: to, original: c.original})
			n++
		}
		a.cuts[n-1].to.msg.Parts[c.part] = short
	}
	if a.cuts == nil {
		return
	}
	for _, r := range a.cuts {
		r.to.tokens = id.message(&r.to.msg)
		r.to.setMissing(r.original)
	}
	done, err := a.view.edited(&checkedEdit{cuts: a.cuts}, new(prepared), Report{})
	if err != nil {
		a.cuts = nil
		return
	}
	a.show(&Snapshot{state: done.state})
}
