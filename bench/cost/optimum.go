package cost

import (
	"math"
	"slices"
)

// A problem is to send conversations at least cost.
//
// The policies it ranges over know the future. Before each request they may
// move the cut to a later atom, and clear more results, oldest first; they
// never take either back. A request holds the system messages, the user
// messages of the turn that the cut is inside of, and all atoms from the cut
// on, as the library's own strategies leave them; the newest exchange and the
// user messages of the newest turn stay. Every request is within the limit,
// unless nothing but the floor is left. Truncate, ClearToolResults and chains
// of them are such policies at any marks, so what bounds the class bounds them.
// Summaries, holes in the middle and limits that are broken are outside.
type problem struct {
	cs     []*Conversation
	setup  Setup
	prices Prices
	clears bool // may clear, not only cut

	points []point // by ascending price
}

// A point is the least cost where each retained token earns so much.
type point struct {
	earns   float64
	value   float64 // cost less earnings
	cost    float64
	tokens  float64 // of all requests
	rewrite int
}

// A bound is what is known about the least cost with at least so many retained
// tokens: Lower by duality, Upper because there is such a plan.
type bound struct {
	Lower, Upper float64
	Rewrites     int     // of the plan
	Tokens       float64 // of the plan's requests
}

const mostEarned = 1e6 // more than what is rewritten to retain one token more

// least returns the bound for requests that weigh at least tokens in all,
// over the conversations together.
func (p *problem) least(tokens float64) bound {
	low, high := p.solve(0), point{}
	if low.tokens >= tokens {
		return bound{low.cost, low.cost, low.rewrite, low.tokens}
	}
	if high = p.solve(mostEarned); high.tokens < tokens {
		return bound{Lower: math.NaN(), Upper: math.NaN()}
	}
	best := low.value
	for range 64 {
		for _, q := range p.points {
			if q.tokens < tokens && q.earns > low.earns {
				low = q
			}
			if q.tokens >= tokens && q.earns < high.earns {
				high = q
			}
			best = max(best, q.value+q.earns*tokens)
		}
		// Where the lines of both meet is as high as the dual can be.
		meet := (high.cost - low.cost) / (high.tokens - low.tokens)
		if !(meet > low.earns && meet < high.earns) {
			break
		}
		if top := low.value + low.earns*tokens + (meet-low.earns)*(tokens-low.tokens); top-best <= 1e-6*best {
			break
		}
		p.solve(meet)
	}
	return bound{best, high.cost, high.rewrite, high.tokens}
}

// solve returns the point for a price, and keeps it.
func (p *problem) solve(earns float64) point {
	if i := slices.IndexFunc(p.points, func(q point) bool { return q.earns == earns }); i >= 0 {
		return p.points[i]
	}
	sum := point{earns: earns}
	for _, c := range p.cs {
		s := search{l: c.plan, setup: p.setup, prices: p.prices, earns: earns, clears: p.clears}
		best := s.run()
		sum.value += best.value
		sum.tokens += best.tokens
		sum.cost += best.value + earns*best.tokens
		sum.rewrite += best.rewrites
		for _, r := range c.plan.requests {
			sum.cost += p.prices.Output * float64(r.output)
			sum.value += p.prices.Output * float64(r.output)
		}
	}
	p.points = append(p.points, sum)
	return sum
}

// A state is the best way to a cut and a number of cleared results.
type state struct {
	value    float64
	tokens   float64
	rewrites int
}

var unreachable = state{value: math.Inf(1)}

// A search is the dynamic programme: over requests, the least value for every
// cut and every number of cleared results.
//
// A row holds the states of one cut. Moving the cut costs the same from
// wherever it was, but for the user messages that stay in front when the turn
// does, so a running minimum over rows serves all; clearing deeper costs by
// where the first new one is, so a running minimum along the row does.
type search struct {
	l      *layout
	setup  Setup
	prices Prices
	earns  float64
	clears bool

	rows, next [][]state // by cut, from the cleared count of the cut on
	arena      [2][]state
	first      int // cut that is still reachable
}

func (s *search) run() state {
	l := s.l
	s.rows, s.next = make([][]state, len(l.atoms)+1), make([][]state, len(l.atoms)+1)
	size := 0
	for c := range l.atoms {
		size += s.width(c, l.clear[len(l.atoms)])
	}
	s.arena[0], s.arena[1] = make([]state, size+1), make([]state, size+1)
	for i := range l.requests {
		s.step(i)
	}
	best := unreachable
	for _, row := range s.rows {
		for _, st := range row {
			if st.value < best.value {
				best = st
			}
		}
	}
	if len(l.requests) == 0 {
		return state{}
	}
	return best
}

// width is how many states a cut has.
func (s *search) width(cut, cleared int) int {
	if !s.clears {
		return 1
	}
	return max(cleared-s.l.clear[cut], 0) + 1
}

// step goes from one request to the next.
func (s *search) step(i int) {
	r := s.l.requests[i]
	arena := s.arena[i%2]
	clear(s.next)
	if r.atoms == 0 {
		s.next[0] = arena[:1]
		s.next[0][0] = s.bare(i)
		s.rows, s.next = s.next, s.rows
		return
	}
	cold := s.isCold(i)
	before := 0
	if i > 0 {
		before = s.l.requests[i-1].atoms
	}
	all, turn := newLowest(r.clears), newLowest(r.clears)
	for cut := s.first; cut <= r.newest; cut++ {
		a := &s.l.atoms[cut]
		if !a.canCut {
			continue
		}
		if cut > 0 && s.l.atoms[cut-1].turn != a.turn {
			turn.reset()
		}
		row := arena[:s.width(cut, r.clears)]
		arena = arena[len(row):]
		s.next[cut] = row
		s.fill(i, r, cut, before, cold, row, all, turn)
		all.add(s.rows[cut], s.l.clear[cut])
		turn.add(s.rows[cut], s.l.clear[cut])
		if cut == s.first && cut < r.newest && !slices.ContainsFunc(row, func(st state) bool { return st.value < math.Inf(1) }) {
			s.first++
		}
	}
	for s.first < r.newest && !s.l.atoms[s.first].canCut {
		s.first++
	}
	s.rows, s.next = s.next, s.rows
}

// bare is the state after a request that holds nothing but system messages.
func (s *search) bare(i int) state {
	var st state
	shared := 0
	if i > 0 {
		st = s.rows[0][0]
		if !s.isCold(i) {
			shared = s.l.sys
		}
	}
	st.value += s.prices.request(s.setup.Cache, shared, s.l.sys) - s.earns*float64(s.l.sys)
	st.tokens += float64(s.l.sys)
	return st
}

func (s *search) isCold(i int) bool {
	return i == 0 || s.setup.Cache.TTL > 0 && s.setup.Clock.before(i) > s.setup.Cache.TTL
}

// fill finds the states of one cut. before is how many atoms the last request
// had, all and turn the best of earlier cuts, of all and of the same turn.
func (s *search) fill(i int, r request, cut, before int, cold bool, row []state, all, turn *lowest) {
	l, cache, p := s.l, s.setup.Cache, s.prices
	base := l.clear[cut]
	old := s.rows[cut]
	inFront := l.sys + l.atoms[cut].head
	whole := inFront + l.upTo[r.atoms] - l.upTo[cut] + l.gain[base]
	grown := l.upTo[r.atoms] - l.upTo[before]
	saves := func(shared int) float64 { // in a request that is long enough for the cache
		if cold || shared < cache.Min {
			return 0
		}
		return (p.Write - p.Read) * float64(shared)
	}
	ofTurn, ofAll := saves(inFront), saves(l.sys)
	deeper, stays := unreachable, 0.0 // the best state with fewer cleared, and what it saves

	for k := range row {
		row[k] = unreachable
		tokens := whole - l.gain[base+k]
		if tokens <= s.setup.Limit() || cut == r.newest && k == len(row)-1 {
			price := p.Write
			if tokens < cache.Min {
				price = p.Uncached
			}
			switch {
			case i == 0:
				row[k] = state{}
			default:
				if k < len(old) {
					row[k] = old[k]
					row[k].value -= saves(tokens - grown)
				}
				row[k] = row[k].or(deeper, stays)
				row[k] = row[k].or(turn.at(base+k), ofTurn)
				row[k] = row[k].or(all.at(base+k), ofAll)
			}
			row[k].value += (price - s.earns) * float64(tokens)
			row[k].tokens += float64(tokens)
		}
		if k < len(old) && base+k < len(l.at) && old[k].value < math.Inf(1) {
			// What stays of this state when more is cleared.
			at := l.at[base+k]
			shared := inFront + l.upTo[at] - l.upTo[cut] - l.gain[base+k] + l.gain[base] + l.lead[base+k]
			if now := saves(min(shared, tokens-grown)); old[k].value-now < deeper.value-stays {
				deeper, stays = old[k], now
			}
		}
	}
}

// or returns the better of s and of o, which saves so much, with the history
// rewritten.
func (st state) or(o state, saves float64) state {
	if o.value-saves < st.value {
		o.value -= saves
		o.rewrites++
		return o
	}
	return st
}

// lowest holds, by number of cleared results, the best state with no more of
// them.
type lowest struct{ best []state }

func newLowest(clears int) *lowest {
	l := &lowest{make([]state, clears+1)}
	l.reset()
	return l
}

func (l *lowest) reset() {
	for i := range l.best {
		l.best[i] = unreachable
	}
}

func (l *lowest) at(cleared int) state { return l.best[min(cleared, len(l.best)-1)] }

// add takes up a row that begins with so many cleared.
func (l *lowest) add(row []state, from int) {
	best := unreachable
	for i := from; i < len(l.best) && row != nil; i++ {
		if i-from < len(row) && row[i-from].value < best.value {
			best = row[i-from]
		}
		if best.value < l.best[i].value {
			l.best[i] = best
		}
	}
}
