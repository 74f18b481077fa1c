package convo

import (
	"errors"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/cuts"
	"github.com/seed-c1b73e60/convo/internal/hosts"
)

// A cut is what leaves at a place in the list: all exchanges before it, except the floor, the
// user messages of the turn that contains the place, and the user messages in words.
type cut struct {
	s         *Snapshot
	words     userWords
	drop      []ID
	remaining int64 // raw tokens of the view without drop, including the summary
}

// A userWords reports for each entry of a list whether it is one of the user messages
// that are dropped last. Nil: none are.
type userWords []bool

func (w userWords) has(i int) bool { return i < len(w) && w[i] }

// A room limits the size of a view after a cut.
type room struct {
	cuts.Room
	spared *spare // exchanges that stay; nil: none
}

// room returns the room that the goal leaves for a view of s.
func (g *Goal) room(s *Snapshot) room {
	target := g.target(s)
	r := room{cuts.Room{Target: target, Share: min(target, s.raw()), Limit: noMark, Most: noMark}, g.spared}
	if g.MinFree > 0 {
		r.Most = s.raw() - min(int64(g.MinFree), s.raw()+1)
	}
	switch {
	case g.Reason == ReasonOverflow: // the known limit was too high
		r.Limit = target
	case g.Limit > 0:
		r.Limit = int64(g.Limit)
	}
	if r.spared != nil {
		r.Most = min(r.Most, r.spared.most)
	}
	return r
}

// exchanges returns the exchanges of the list, for a cut.
func (s *state) exchanges(spared *spare) *cuts.List {
	var alike hosts.Echoes
	l := &cuts.List{
		Exchanges: make([]cuts.Exchange, 0, len(s.list)),

		IsHosts: func(i int) bool { return s.list[i].msg.isHosts() },
		Repeats: func(i int) bool { return s.list[i].msg.repeats(&alike) },
	}
	for x := range walk(s) {
		x.Spared = spared.has(s.list[x.From])
		l.Exchanges = append(l.Exchanges, x)
	}
	return l
}

// words returns the raw tokens of the user's words that are dropped last, if kept and what is
// spared stay besides; see MarkWords of cuts.List.
func (r room) words(s *state, kept, maxTail int64) int64 {
	l := s.exchanges(r.spared)
	return l.MarkWords(r.Room, kept, maxTail, len(l.Exchanges))
}

// walk yields the exchanges of the list, oldest first.
func walk(s *state) iter.Seq[cuts.Exchange] {
	return func(yield func(cuts.Exchange) bool) {
		floor, sealed := s.floor(), sealedFirst(s.list)
		turn, inHead := -1, false // of the exchange before; the turn has had only user messages so far
		for at := 0; at < len(s.list); {
			e := s.list[at]
			inHead = (inHead || e.turn != turn) && (e.msg.Role == RoleUser || e.note)
			turn = e.turn
			x := cuts.Exchange{From: at, Turn: turn, Floor: floor.has(at), User: inHead, Note: e.note, LastResort: e == sealed}
			for at < len(s.list) && s.list[at].head == e.head {
				x.Tokens += s.list[at].tokens
				at++
			}
			x.To = at
			if !yield(x) {
				return
			}
		}
	}
}

// newest returns the start of the newest exchanges of a list that hold at least the given
// numbers of entries and turns. A number below 1 means none.
func newest(list []*entry, entries, turns int) int {
	place := len(list)
	if entries > 0 && place > 0 {
		place, _ = exchangeAt(list, max(place-entries, 0))
	}
	begin := len(list)
	for ; turns > 0 && begin > 0; turns-- {
		begin, _ = turnUsers(list[:begin])
	}
	return min(place, begin)
}

// cutTo plans a cut after which the view, with its summary, is no larger than r.Target, or than
// the entries that must stay plus a tail; see Cut of cuts.List. The entries from list[keep] on
// always stay.
func cutTo(s *Snapshot, r room, maxTail int64, keep int) cut {
	l := s.exchanges(r.spared)
	c := cut{s: s, words: make(userWords, len(s.list))}
	c.collect(l.Cut(r.Room, s.raw(), s.floorWeight().total()+s.summary.tokens(), maxTail, l.At(keep)))
	for _, x := range l.Exchanges {
		c.words[x.From] = x.Word
	}
	return c
}

// collect sets what is dropped.
func (c *cut) collect(drop []cuts.Exchange) {
	c.drop, c.remaining = make([]ID, 0, len(drop)), c.s.raw()
	for _, x := range drop {
		for _, e := range c.s.list[x.From:x.To] {
			c.drop = append(c.drop, e.id)
		}
		c.remaining -= x.Tokens
	}
}

// dropsAny reports whether cutTo drops anything if nothing but the floor has to stay. It
// usually does not look for the user's words.
func dropsAny(s *Snapshot, r room, maxTail int64) bool {
	kept := s.floorWeight().total() + s.summary.tokens()
	if r.spared != nil {
		kept += s.exchanges(r.spared).Spared()
	}
	if s.raw()-kept-r.Share/cuts.WordsShare > r.Tail(kept, maxTail) {
		return true // whatever stays of these, and however long the tail is
	}
	return len(cutTo(s, r, maxTail, len(s.list)).drop) > 0
}

// room returns how many tokens a new summary may have after the cut if the view may have
// the given raw tokens.
func (c *cut) room(view int64) int64 {
	return view - (c.remaining - c.s.summary.tokens()) - int64(c.s.SummaryTokens(""))
}

// sealedFirst returns the first assistant message of the newest turn if its
// reasoning is sealed and no later message of the turn has reasoning. Otherwise
// it returns nil. Providers expect such a message in every request until the turn
// is over, so it is dropped last.
func sealedFirst(list []*entry) *entry {
	from, _ := turnUsers(list)
	var first *entry
	for _, e := range list[from:] {
		if e.msg.Role != RoleAssistant {
			continue
		}
		switch {
		case first == nil && e.msg.isSigned():
			first = e
		case first == nil, slices.ContainsFunc(e.msg.Parts, isA[Reasoning]):
			return nil
		}
	}
	return first
}

// When the floor alone is over the limit, no strategy can help. An attempt then
// first cuts tool results that no assistant message has followed yet. The strategy
// sees the view with the cuts, which become part of its edit.

// A cuttable is a result that an attempt may cut.
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
	r := room{Room: cuts.Room{Share: min(max(a.scale.Holds(a.target), 1), a.at.raw()), Limit: noMark, Most: noMark}}
	// By default a summary has an eighth of the target, its names a quarter of that, and the
	// tags around it no more than another eighth.
	summary := max(a.at.summary.tokens(), r.Share/8*11/8, min(leastRoom, a.limit/16))
	if a.scale.Worst(a.floor.total()+r.Share/cuts.WordsShare+summary) <= a.limit {
		return 0 // it fits, whatever the user has said
	}
	words := r.words(&a.at.state, 0, -1)
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
		list = slices.DeleteFunc(list, func(c *cuttable) bool {
			if c.stored || c.size <= max(size, c.least) {
				return false
			}
			again, c.stored = true, true
			if _, err := spill.store(c.in, c.original, c.part); err != nil {
				a.cutErr = errors.Join(a.cutErr, err)
				return true
			}
			c.measure(a.f.h.ident)
			return false
		})
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
			a.cuts = append(a.cuts, change{id: c.in.id, from: c.in, r: &replacement{from: c.in, to: to, original: c.original}})
			n++
		}
		a.cuts[n-1].r.to.msg.Parts[c.part] = short
	}
	if a.cuts == nil {
		return
	}
	for _, c := range a.cuts {
		c.r.to.tokens = id.message(&c.r.to.msg)
		c.r.to.setMissing(c.r.original)
	}
	done, err := a.view.edited(&checkedEdit{changes: a.cuts}, new(prepared), Report{})
	if err != nil {
		a.cuts = nil
		return
	}
	a.show(&Snapshot{state: done.state})
}
