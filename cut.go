package convo

import (
	"errors"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/hosts"
)

// A cut is a place in the list of entries, with the exchanges to drop there. These are all those
// before the place, except the floor, the user messages of the turn that contains the
// place, and the user messages in words.
type cut struct {
	s         *Snapshot
	words     userWords // see wordsOf
	spared    *spare    // see room
	drop      []ID
	remaining int64 // raw tokens of the view without drop, including the summary
}

// A room limits the size of a view after a cut, in raw tokens.
type room struct {
	target int64  // the size to aim at
	share  int64  // the base for fractions of the target: the target of the goal, or the view if that is smaller
	limit  int64  // the size above which only the entries that must stay are kept; noMark: no limit
	most   int64  // the size at which the cut frees enough; noMark: any size
	spared *spare // exchanges that stay; nil: none
}

// room returns the room that the goal leaves for a view of s.
func (g *Goal) room(s *Snapshot) room {
	target := g.target(s)
	r := room{target: target, share: min(target, s.raw()), limit: noMark, most: noMark}
	if g.MinFree > 0 {
		r.most = s.raw() - int64(g.MinFree)
	}
	switch {
	case g.Reason == ReasonOverflow: // the known limit was too high
		r.limit = target
	case g.Limit > 0:
		r.limit = int64(g.Limit)
	}
	r.spared = g.spared
	if r.spared != nil {
		r.most = min(r.most, r.spared.most)
	}
	return r
}

// less returns the room reduced by the given number of tokens. share does not change.
func (r room) less(tokens int64) room {
	r.target -= tokens
	for _, mark := range []*int64{&r.limit, &r.most} {
		if *mark != noMark {
			*mark -= tokens
		}
	}
	return r
}

// tail returns how many tokens a cut keeps in addition to those it must keep. That is the
// rest of the target, but at least a quarter of it. If half the room below the limit is less
// than that quarter, it is at least that.
func (r room) tail(kept int64) int64 {
	least := r.share / 4
	if r.limit != noMark {
		least = min(least, (r.limit-kept)/2)
	}
	return max(r.target-kept, min(least, r.most-kept), 0)
}

// tailBeside returns r.tail(kept), but at most maxTail if that is positive, and 0 if it is
// negative.
func (r room) tailBeside(kept, maxTail int64) int64 {
	if maxTail == 0 {
		return r.tail(kept)
	}
	return min(r.tail(kept), max(maxTail, 0))
}

// large returns the number of tokens from which a message or a result counts as a
// document rather than a remark.
func (r room) large() int64 { return r.share/documentShare/4 + 1 }

// documentShare is what large and the bound of the first message derive from: a document
// has more than a quarter of 1/documentShare of the target, and the first message may have
// half of it.
const documentShare = 8

// wordsShare bounds the user messages in wordsOf to 1/wordsShare of the target.
const wordsShare = 3

// A userWords reports for each entry of a list whether it is one of the user messages
// that are dropped last. Nil: none are.
type userWords []bool

func (w userWords) has(i int) bool { return i < len(w) && w[i] }

// wordsOf returns the user messages outside the floor that are dropped last, and their
// tokens: the first of the list and then the newest before the tail, together at most a
// third of the target. The tail is the newest maxTail tokens besides the floor, as in cutTo,
// and all from list[keep] on. Documents are not included, except that the first message may
// have a sixteenth of the target. kept is the number of tokens that stay in addition; if the
// limit leaves less than a third of the target, that is the bound. What no person wrote is
// not included; see HostMeta.
func (r room) wordsOf(s *state, kept, maxTail int64, keep int) (words userWords, tokens int64) {
	budget := r.share / wordsShare
	if r.limit != noMark {
		budget = min(budget, r.limit-kept)
	}
	// The tail is as long as it is if the words fill their bound. If they do not, all of
	// them are taken, and it does not matter where it begins.
	before := min(keep, s.tailStart(r.tailBeside(kept+max(budget, 0), maxTail)))
	words = make(userWords, len(s.list)) // at first, all candidates
	first, isFirst := len(s.list), true
	least := int64(noMark) // tokens of the smallest candidate
	for a := range walk(s) {
		if a.from >= before {
			break
		}
		isFound := first < len(s.list) // then it is asked below, if need be
		if !a.user || s.list[a.from].note || !isFound && s.list[a.from].msg.isHosts() {
			continue
		}
		if !a.floor && (isFirst && a.tokens <= r.share/documentShare/2 || a.tokens < r.large()) {
			words[a.from] = true
			first, least = min(first, a.from), min(least, a.tokens)
		}
		isFirst = false
	}
	take := func(i int) {
		n := s.list[i].tokens // the message is an exchange of its own
		words[i] = tokens+n <= budget
		if words[i] {
			tokens += n
		}
	}
	if first < len(words) {
		take(first)
	}
	var alike hosts.Echoes
	for i := len(words) - 1; i > first; i-- {
		if tokens+least > budget { // no older one fits
			clear(words[first+1 : i+1])
			break
		}
		if m := &s.list[i].msg; words[i] && (m.isHosts() || m.repeats(&alike)) {
			words[i] = false
		}
		if words[i] {
			take(i)
		}
	}
	return words, tokens
}

// tailStart returns the start of the newest entries that have at most the given tokens
// besides the floor.
func (s *state) tailStart(tokens int64) int {
	f := s.floor()
	for i := len(s.list); i > 0; i-- {
		e := s.list[i-1]
		if f.hasUnpinned(i-1) || s.isPinned(e.head) {
			continue
		}
		tokens -= e.tokens
		if tokens < 0 {
			return i
		}
	}
	return 0
}

// A listExchange is an exchange of the list of entries.
type listExchange struct {
	from, to   int // the entries from list[from] up to, but not including, list[to]
	tokens     int64
	turn       int
	floor      bool
	user       bool // one of the user messages that begin a turn, or a note among them
	lastResort bool // every strategy should drop it only as a last resort; see sealedFirst
}

// walk yields the exchanges of the list, oldest first.
func walk(s *state) iter.Seq[listExchange] {
	return func(yield func(listExchange) bool) {
		floor, sealed := s.floor(), sealedFirst(s.list)
		turn, inHead := -1, false // of the exchange before; the turn has had only user messages so far
		for at := 0; at < len(s.list); {
			e := s.list[at]
			inHead = (inHead || e.turn != turn) && (e.msg.Role == RoleUser || e.note)
			turn = e.turn
			a := listExchange{from: at, turn: turn, floor: floor.has(at), user: inHead, lastResort: e == sealed}
			for at < len(s.list) && s.list[at].head == e.head {
				a.tokens += s.list[at].tokens
				at++
			}
			a.to = at
			if !yield(a) {
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

// cutTo plans a cut after which the view, with its summary, is no larger than r.target,
// or than the entries that must stay plus r.tail. If maxTail is positive, the additional
// entries have at most maxTail tokens; if it is negative, there are none. The entries
// from list[keep] on always stay.
func cutTo(s *Snapshot, r room, maxTail int64, keep int) cut {
	kept := s.floorWeight().total() + s.summary.tokens()
	kept += r.spared.tokens(&s.state)
	c := cut{s: s, spared: r.spared, remaining: s.raw()}
	var tokens int64
	c.words, tokens = r.wordsOf(&s.state, kept, maxTail, keep)
	kept += tokens
	budget := r.tailBeside(kept, maxTail)

	// Walk forward until the rest is small enough. The user messages of a turn are only
	// subtracted after the end of the turn, because a cut inside the turn keeps them.
	left := c.remaining - kept
	place, held := 0, int64(0)
	turn := -1
	for a := range walk(&s.state) {
		if a.turn != turn {
			left, held, turn = left-held, 0, a.turn
		}
		if left <= budget {
			break
		}
		switch {
		case a.floor || a.lastResort || c.stays(a.from):
		case a.user:
			held += a.tokens
		default:
			left -= a.tokens
		}
		place = a.to
	}
	c.collect(min(c.moveToTurn(place, budget/4), keep), left-held > budget)
	return c
}

// dropsAny reports whether cutTo drops anything if nothing but the floor has to stay. It
// usually does not look for the user's words.
func dropsAny(s *Snapshot, r room, maxTail int64) bool {
	kept := s.floorWeight().total() + s.summary.tokens() + r.spared.tokens(&s.state)
	if s.raw()-kept-r.share/wordsShare > r.tailBeside(kept, maxTail) {
		return true // whatever stays of these, and however long the tail is
	}
	return len(cutTo(s, r, maxTail, len(s.list)).drop) > 0
}

// stays reports whether list[i] is dropped only as a last resort.
func (c *cut) stays(i int) bool { return c.words.has(i) || c.spared.has(c.s.list[i]) }

// room returns how many tokens a new summary may have after the cut if the view may have
// the given raw tokens.
func (c *cut) room(view int64) int64 {
	return view - (c.remaining - c.s.summary.tokens()) - int64(c.s.SummaryTokens(""))
}

// moveToTurn returns the start of the next turn if place is inside a turn and the move
// drops at most near more tokens. Otherwise it returns place.
func (c *cut) moveToTurn(place int, near int64) int {
	s := c.s
	if !s.isInside(place) {
		return place
	}
	turn := s.list[place].turn
	floor := s.floor()
	var between int64
	for i := place; i < len(s.list); i++ {
		if s.list[i].turn != turn {
			return i
		}
		if !floor.has(i) && !c.stays(i) {
			between += s.list[i].tokens
		}
		if between > near {
			break
		}
	}
	return place
}

// collect sets c.drop to the exchanges that a cut at place drops. If place is the end of
// the list and the cut still frees too little, this includes the exchange with lastResort.
func (c *cut) collect(place int, tooLittle bool) {
	list := c.s.list
	inside := c.s.isInside(place)
	c.drop = make([]ID, 0, place)
	for a := range walk(&c.s.state) {
		if a.from >= place {
			break
		}
		if a.floor || c.stays(a.from) || a.user && inside && a.turn == list[place].turn || a.lastResort && !(tooLittle && place == len(list)) {
			continue
		}
		c.remaining -= a.tokens
		for _, e := range list[a.from:a.to] {
			c.drop = append(c.drop, e.id)
		}
	}
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

// tokens returns the raw tokens of what stays besides the floor.
func (p *spare) tokens(s *state) (n int64) {
	if p == nil {
		return 0
	}
	for a := range walk(s) {
		if !a.floor && p.has(s.list[a.from]) {
			n += a.tokens
		}
	}
	return n
}

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
