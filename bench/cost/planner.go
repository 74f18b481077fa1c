package cost

import (
	"fmt"
	"math"

	"github.com/seed-c1b73e60/convo"
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

// whenCold is convo told how long the provider keeps its cache, as the clients do. Limits.Soft
// is the given percentage of the way from Low to High: a request above it is compacted after a
// longer pause. No time passes here, so the History is told of each such pause when it has
// ended, by a lifetime that is over at once.
func whenCold(share int) Policy {
	return ours(variant{
		name: fmt.Sprintf("convo, after a pause from Low + %d %% of the way to High", share),
		set: func(o *convo.Options, _ *oursRun) {
			high := o.Limits.Window - max(o.Limits.Reserve, 0)
			o.Limits.Low = high / 2
			o.Limits.Soft = o.Limits.Low + (high-o.Limits.Low)*share/100
		},
		start: func(r *oursRun) error {
			if r.snap == nil || !r.m.Cold() {
				return nil
			}
			return r.h.RecordUsage(r.snap, convo.Usage{CacheTTL: 1})
		},
	})
}
