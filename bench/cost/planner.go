package cost

import (
	"fmt"
	"math"
)

func percentOf(n int) string { return fmt.Sprintf("%d %%", n) }

// A planner sets marks from what it has seen, through the public API alone.
type planner struct {
	grown, steps float64 // tokens that requests grew by, and how often
	last         int
}

// see takes up what a request weighed.
func (p *planner) see(tokens int) {
	if d := tokens - p.last; p.last > 0 && d > 0 {
		p.grown += float64(d)
		p.steps++
	}
	p.last = tokens
}

// byGrowth sets Low before each request so deep that what a compaction costs
// and what retained tokens are worth balance: the depth goes by the root of the
// growth per request. A factor of 1 is as deep as the default where a request
// grows by a fiftieth of High.
func byGrowth(factor float64) Policy {
	return ours(variant{
		name: fmt.Sprintf("convo, Low by measured growth, factor %g", factor),
		cuts: true,
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

// whenCold lowers High for the first request after the cache has expired, to so
// many percent of the way from Low to High: a compaction costs nothing then.
// How long ago the last request was is what a host knows.
func whenCold(share int) Policy {
	return ours(variant{
		name: fmt.Sprintf("convo, High at Low + %d %% of the way while the cache is cold", share),
		cuts: true,
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
