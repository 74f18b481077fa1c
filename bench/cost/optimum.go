package cost

import (
	"math"
	"slices"
)

// A problem is to send conversations at the lowest cost, for a class of policies
// that the package documentation describes. Every request is within the limit,
// unless nothing but the floor is left.
type problem struct {
	cs     []*Conversation
	setup  Setup
	prices Prices
	clears bool // policies may clear results, not only cut

	points []point // solutions so far
}

// A point is the best plan for a given reward for each retained token.
type point struct {
	earns   float64 // the reward
	value   float64 // cost minus rewards
	cost    float64
	tokens  float64 // of all requests
	rewrite int     // requests that do not begin with the whole request before
}

// A bound limits the lowest cost for a given number of retained tokens. Lower
// follows from duality, and Upper is the cost of a plan.
type bound struct {
	Lower, Upper float64
	Rewrites     int     // of the plan
	Tokens       float64 // of the plan's requests
}

const mostEarned = 1e6 // a reward so high that retaining more is always better

// least returns the bound for plans whose requests have at least the given number
// of tokens, over all conversations together.
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
		// The dual is at most as high as the point where both lines meet.
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

// solve returns the point for a reward, and keeps it in p.points.
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

// A state is the best way to reach a cut and a number of cleared results.
type state struct {
	value    float64
	tokens   float64
	rewrites int
}

var unreachable = state{value: math.Inf(1)}

// A search is the dynamic programming. Request by request, it finds the lowest
// value for every cut and every number of cleared results.
//
// A row holds the states of one cut. The cost of moving a cut does not depend on
// where it was, except that the user messages of the turn stay in front if the new
// cut is in the same turn. So a running minimum over the rows covers all earlier
// cuts, and a second one those of the same turn. The cost of clearing more
// depends on the first exchange that is newly cleared, so a running minimum along
// the row covers that.
type search struct {
	l      *layout
	setup  Setup
	prices Prices
	earns  float64
	clears bool

	rows, next [][]state  // by cut; a row begins with the number of clearable exchanges before the cut
	arena      [2][]state // memory for rows, used in turn
	first      int        // the first cut that is still reachable
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

// width returns the number of states of a cut.
func (s *search) width(cut, cleared int) int {
	if !s.clears {
		return 1
	}
	return max(cleared-s.l.clear[cut], 0) + 1
}

// step computes the states after request i from those before it.
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

// bare returns the state after a request that holds only system messages.
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

// fill computes the states of one cut. before is the number of atoms of the last
// request. all and turn have the best states of all earlier cuts, and of those in
// the same turn.
func (s *search) fill(i int, r request, cut, before int, cold bool, row []state, all, turn *lowest) {
	l, cache, p := s.l, s.setup.Cache, s.prices
	base := l.clear[cut]
	old := s.rows[cut]
	inFront := l.sys + l.atoms[cut].head
	whole := inFront + l.upTo[r.atoms] - l.upTo[cut] + l.gain[base]
	grown := l.upTo[r.atoms] - l.upTo[before]
	saves := func(shared int) float64 { // what the cache saves for a shared prefix
		if cold || shared < cache.Min {
			return 0
		}
		return (p.Write - p.Read) * float64(shared)
	}
	ofTurn, ofAll := saves(inFront), saves(l.sys)
	deeper, stays := unreachable, 0.0 // the best state with fewer cleared results, and what the cache saves from it

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
			// The prefix that is still shared if more is cleared after this state.
			at := l.at[base+k]
			shared := inFront + l.upTo[at] - l.upTo[cut] - l.gain[base+k] + l.gain[base] + l.lead[base+k]
			if now := saves(min(shared, tokens-grown)); old[k].value-now < deeper.value-stays {
				deeper, stays = old[k], now
			}
		}
	}
}

// or returns st, or if it is better, o with the given saving and one more rewrite.
func (st state) or(o state, saves float64) state {
	if o.value-saves < st.value {
		o.value -= saves
		o.rewrites++
		return o
	}
	return st
}

// A lowest holds, for each number of cleared results, the best state with at most
// that many.
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

// add adds the states of a row whose first state has from cleared results.
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
