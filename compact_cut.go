package convo

import (
	"errors"
	"fmt"
	"math"
	"sort"
)

// When the floor alone is over the limit, no strategy can help. Then an attempt
// cuts tool results that no assistant message has followed yet, before it asks the
// strategy, which sees the view with the cuts. They are part of its edit.

// A cuttable result is one that an attempt may cut.
type cuttable struct {
	in       *entry
	original *original // of in, to be changed; nil: of another result of in
	part     int       // its index in in.msg.Parts
	size     int64     // raw tokens of its text
	least    int64     // raw tokens of the marker
	stored   bool      // its original needs no Options.Spill any more
}

// cutFloor cuts results if the floor is over the limit, until it is at most three
// quarters of it. It returns the size of the floor then, or an error if the limit
// cannot be reached. For Recover it also cuts results if the floor is over the
// target, as far as that helps. For Fit it cuts nothing.
func (a *attempt) cutFloor() (floorWeight, error) {
	floor := a.at.floorWeight()
	weight := a.scale.Weigh(floor.total())
	most, aim := a.limit, a.limit/4*3
	switch {
	case a.reserve != nil, weight <= a.limit && (a.reason != ReasonOverflow || weight <= a.target):
		return floor, a.checkFloor(floor)
	case weight <= a.limit:
		most, aim = math.MaxInt64, a.target/4*3
	}
	over := func(cut, limit int64) bool { return a.scale.Without(cut).Weigh(floor.total()-cut) > limit }
	a.cut(over, most, aim)
	floor = a.view.floorWeight()
	err := a.checkFloor(floor)
	if err != nil && a.cutErr != nil {
		err = fmt.Errorf("%w (%w)", err, a.cutErr)
	}
	return floor, err
}

// cutRest cuts results, for Recover, if the view with the edit of the strategy is
// over the target. It reports whether it has cut any.
func (a *attempt) cutRest(e Edit) bool {
	if a.reason != ReasonOverflow || a.cuts != nil {
		return false
	}
	after, err := a.view.With(e)
	if err != nil {
		return false // carryOut will say so
	}
	over := func(cut, limit int64) bool { return a.scale.Without(cut).Weigh(after.raw()-cut) > limit }
	if !over(0, a.target) {
		return false
	}
	a.cut(over, math.MaxInt64, a.target)
	return a.cuts != nil
}

// cut cuts unanswered results, the longest first, until over no longer says that
// the view with so many raw tokens cut is over aim. It cuts nothing if the view
// would be over most all the same. a.cutErr says why some results could not be cut.
func (a *attempt) cut(over func(cut, limit int64) bool, most, aim int64) {
	defer catch(&a.cutErr, "Options.Tokenizer")
	list := a.cuttable()
	if len(list) == 0 {
		return
	}
	spill := a.f.h.newSpiller(a.f.ctx, false)
	defer spill.close()
	for {
		sizes, least := make([]int64, len(list)), make([]int64, len(list))
		for i, c := range list {
			sizes[i], least[i] = c.size, c.least
		}
		_, all := fairShare(sizes, least, math.MaxInt64)
		if over(all, most) {
			return
		}
		lose := sort.Search(int(min(all, math.MaxInt32)), func(n int) bool { return !over(int64(n), aim) })
		size, _ := fairShare(sizes, least, int64(lose))
		again := false
		kept := list[:0:0]
		for _, c := range list {
			if !c.stored && c.size > max(size, c.least) {
				again = true
				if err := a.store(spill, c); err != nil {
					a.cutErr = errors.Join(a.cutErr, err)
					continue
				}
			}
			kept = append(kept, c)
		}
		if list = kept; !again {
			a.useCuts(list, size)
			return
		}
	}
}

// cuttable returns the results that no assistant message has followed yet. Those of
// a pinned exchange are left out.
func (a *attempt) cuttable() []*cuttable {
	s, counter := &a.at.state, a.f.h.ident.counter
	var list []*cuttable
	for _, e := range s.floor().unanswered().of(s.list) {
		if s.isPinned(e.head) {
			return nil
		}
		_, o := e.replaced(s.original(e.id))
		for i, p := range e.msg.Parts {
			r, ok := p.(ToolResult)
			if !ok || r.Cleared {
				continue
			}
			c := &cuttable{in: e, original: o, part: i, size: counter.texts(r.Parts)}
			_, c.stored = o.refs[i]
			c.stored = c.stored || a.f.h.opts.Spill == nil
			c.measure(counter)
			if c.size > c.least {
				list = append(list, c)
			}
		}
	}
	return list
}

// whole returns the result as it was appended.
func (c *cuttable) whole() ToolResult { return c.original.msg.Parts[c.part].(ToolResult) }

// measure sets c.least.
func (c *cuttable) measure(by *counter) {
	whole := c.whole()
	c.least = by.leastCut(&whole, c.original.refs[c.part])
}

// store gives the original of a result to Options.Spill.
func (a *attempt) store(spill *spiller, c *cuttable) error {
	c.stored = true
	if _, err := spill.store(c.in, c.original, c.part); err != nil {
		return err
	}
	c.measure(a.f.h.ident.counter)
	return nil
}

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
		short, ok := id.cutResult(whole, id.texts(whole.Parts), limit, c.original.refs[c.part])
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
	next := a.at.clipped()
	if _, err := next.perform(&checkedEdit{cuts: a.cuts}, new(prepared)); err != nil {
		a.cuts = nil
		return
	}
	next.version++
	next.sumMeasured(true)
	a.view = &Snapshot{state: next}
	scale := next.scale()
	scale.Prior = a.scale.Prior
	if scale.Known == nil {
		scale.Overhead = a.scale.Overhead
	}
	a.scale = scale
}
