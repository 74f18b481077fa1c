package cost

import (
	"fmt"
	"math"
)

func percentOf(n int) string { return fmt.Sprintf("%d %%", n) }

// A planner chooses limits by the requests so far.
type planner struct {
	grown, steps float64 // tokens that requests grew by in all, and how often they grew
	last         int
}

// see records the size of a request.
func (p *planner) see(tokens int) {
	if d := tokens - p.last; p.last > 0 && d > 0 {
		p.grown += float64(d)
		p.steps++
	}
	p.last = tokens
}

// byGrowth sets Low before each request, so as to balance the cost of a compaction
// with the value of retained tokens. The distance from High to Low is proportional
// to the square root of the growth per request. With a factor of 1 it equals the
// default if a request grows by a fiftieth of High.
func byGrowth(factor float64) Policy {
	return ours(variant{
		name: fmt.Sprintf("convo, Low by measured growth, factor %g", factor),
		start: func(r *oursRun) error {
			r.planner.see(r.used)
			if r.planner.steps < 5 {
				return nil
			}
			high := float64(r.limits.Window - max(r.limits.Reserve, 0))
			growth := r.planner.grown / r.planner.steps
			depth := factor * math.Sqrt(12.5*growth*high)
			r.limits.Low = int(high - min(max(depth, 0.1*high), 0.9*high))
			return r.h.SetLimits(r.limits)
		},
	})
}

// whenCold lowers High for the first request after the cache has expired, when
// rewriting the request costs nothing extra. share is the percentage of the way
// from Low to the usual High. A host knows how long ago its last request was.
func whenCold(share int) Policy {
	return ours(variant{
		name: fmt.Sprintf("convo, High at Low + %d %% of the way while the cache is cold", share),
		start: func(r *oursRun) error {
			limits := r.limits
			if r.m.Cold() {
				high := limits.Window - max(limits.Reserve, 0)
				limits.Low = high / 2
				limits.High = limits.Low + (high-limits.Low)*share/100
			}
			return r.h.SetLimits(limits)
		},
	})
}
