package convo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A Prior is what is assumed of a family of models before any usage report.
type Prior struct {
	// Ratio is how many tokens the model makes of text that the Tokenizer
	// counts as 100; 25 to 400. 0: 100.
	Ratio int

	// Margin is by how many percent Estimate.Upper is above Estimate.Tokens
	// until usage is reported; at most 100. It is also what the margin learned
	// from reports starts from. 0: 12.5; negative: none.
	Margin int
}

const (
	minRatio, maxRatio = 0.25, 4 // what a tokenizer may be off by
	priorWeight        = 150     // raw tokens that the ratio of the prior stands for
	priorMargin        = 125     // of 1,000, Prior.Margin's default
	ratioMemory        = 0.97    // what the weight of older samples is multiplied by
	spreadMemory       = 0.95    // the same, for residuals
	outlier            = 2.5     // a sample so many times the ratio, or less than its inverse, says little
	outlierWeight      = 300     // the most raw tokens that it stands for
	maxResidual        = 0.5     // of the drift
	deviations         = 3.5     // how many of them Upper is above Tokens
	someTools          = 4000    // tokens that a first report may be too high before it tells of the ratio
	largeView          = 30_000  // raw tokens of a first view where half of the rest is taken for overhead
	smallDrift         = 400     // tokens of drift that are twice as uncertain as the rest
	minKappa, maxKappa = 0.02, 0.45
)

// priorFaults says what is wrong with the priors.
func priorFaults(priors map[string]Prior) (faults []error) {
	for _, model := range slices.Sorted(maps.Keys(priors)) {
		p := priors[model]
		if p.Ratio != 0 && (p.Ratio < 100*minRatio || p.Ratio > 100*maxRatio) {
			faults = append(faults, &ValueError{Name: fmt.Sprintf("Options.Priors[%q].Ratio", model), Value: p.Ratio, Want: "0, or 25 to 400 percent"})
		}
		if p.Margin > 100 {
			faults = append(faults, &ValueError{Name: fmt.Sprintf("Options.Priors[%q].Margin", model), Value: p.Margin, Want: "at most 100 percent"})
		}
	}
	return faults
}

// prior returns the one for a model: that of the longest name it begins with.
func (o *Options) prior(model string) Prior {
	var found Prior
	length := -1
	for name, p := range o.Priors {
		if len(name) > length && strings.HasPrefix(model, name) {
			found, length = p, len(name)
		}
	}
	return found
}

// ratio is how many tokens a raw token is.
func (p Prior) ratio() float64 {
	if p.Ratio == 0 {
		return 1
	}
	return float64(p.Ratio) / 100
}

// margin is in thousandths.
func (p Prior) margin() int64 {
	if p.Margin == 0 {
		return priorMargin
	}
	return 10 * int64(max(p.Margin, 0))
}

// upper is the bound for so many tokens.
func (p Prior) upper(tokens int64) int64 {
	return tokens + tokens/1000*p.margin() + (tokens%1000*p.margin()+999)/1000
}

// spread is the mean square residual that the prior stands for.
func (p Prior) spread() float64 {
	s := 0.6 * float64(p.margin()) / 1000
	return s * s
}

// A calibration is what usage reports have taught of one model. It never
// changes, a report makes a new one.
//
// The view of the last report weighs what was measured. What came since weighs
// Ratio, learned from the differences between reports, in which the overhead
// cancels out. Of what went, the measured weight goes, in proportion to the
// raw tokens, but for the overhead, which is seen best in the smallest view
// that was ever measured.
type calibration struct {
	Model string `json:"model"`

	Ratio  float64 `json:"ratio"`  // tokens for a raw token of what is new
	Weight float64 `json:"weight"` // raw tokens that it is learned from
	Spread float64 `json:"spread"` // mean square of the residuals, as parts of the drift
	Seen   float64 `json:"seen"`   // how many residuals

	Tokens int64 `json:"tokens"`          // measured, of the last view reported on
	Raw    int64 `json:"raw"`             // its raw tokens
	Doubt  int64 `json:"doubt,omitempty"` // tokens of it that are an estimate

	SmallTokens int64 `json:"small_tokens"` // the same, of the smallest view
	SmallRaw    int64 `json:"small_raw"`

	at      *reported // the last view; nil: not of this History
	version uint64    // of it; 0: not of this History
}

// reported is the view that a report was about. It holds no calibration, so
// that not all earlier views are kept.
type reported struct {
	sys, list []*entry
	slot      *slot
	eph       *ephemeral
	last      ID
	version   uint64
}

func (s *state) reported() *reported {
	return &reported{sys: slices.Clip(s.sys), list: slices.Clip(s.list), slot: s.slot, eph: s.eph, last: s.last, version: s.version}
}

func (c *calibration) valid() bool {
	if c == nil {
		return false
	}
	within := func(x, low, high float64) bool { return low <= x && x <= high }
	ok := within(c.Ratio, minRatio, maxRatio) && within(c.Weight, 0, maxTotal) &&
		within(c.Spread, 0, 1) && within(c.Seen, 0, 1000)
	for _, n := range []int64{c.Tokens, c.Raw, c.Doubt, c.SmallTokens, c.SmallRaw} {
		ok = ok && 0 <= n && n <= maxTotal
	}
	return ok
}

// overhead is what requests carry beside the view, at most so much.
func (c *calibration) overhead(most int64) int64 {
	if most == 0 {
		most = maxTotal
	}
	if c.Raw == 0 {
		return min(c.Tokens, most)
	}
	small := c.SmallTokens - round(c.Ratio*float64(c.SmallRaw))
	return max(min(small, c.Tokens-round(c.Ratio/2*float64(c.Raw)), most), 0)
}

// recount turns raw tokens into those of a tokenizer that makes so many times
// as many.
func (c *calibration) recount(times float64) {
	c.Ratio = min(max(c.Ratio/times, minRatio), maxRatio)
	c.Raw = min(round(float64(c.Raw)*times), maxTotal)
	c.SmallRaw = min(round(float64(c.SmallRaw)*times), maxTotal)
}

// kappa is which part of the drift Upper adds to Tokens.
func (c *calibration) kappa() float64 {
	return min(max(deviations*math.Sqrt(c.Spread), minKappa), maxKappa)
}

// learn returns what is known after a report of so many tokens for at. shared
// are at's raw tokens that the last view reported on has too, guess is the
// overhead to begin with, most the most of it. c may be nil.
func (c *calibration) learn(p Prior, guess, most int64, at *Snapshot, shared, tokens int64) *calibration {
	next := calibration{
		Model: at.known().model, Ratio: p.ratio(), Weight: priorWeight, Spread: p.spread(), Seen: 1,
		SmallRaw: math.MaxInt64,
	}
	if c != nil {
		next = *c
	}
	raw := at.raw()
	if c != nil && c.at != nil {
		next.compare(scale{known: c, overhead: c.overhead(most), old: shared, gone: c.Raw - shared, fresh: raw - shared}, tokens)
	}
	if excess := float64(tokens-guess-someTools) - next.Ratio*float64(raw); c == nil && excess > 0 && raw > 0 {
		// The larger the view, the more of what was not expected is its own.
		part := float64(raw) / math.Hypot(float64(raw), largeView)
		next.Ratio = min(next.Ratio+float64(part*part*excess)/float64(raw), 2*next.Ratio, maxRatio)
	}
	if raw > 0 { // the overhead is not negative
		next.Ratio = max(min(next.Ratio, float64(tokens)/float64(raw)), minRatio)
	}
	if raw/2 <= next.SmallRaw {
		next.SmallTokens, next.SmallRaw = tokens, raw
	}
	next.Tokens, next.Raw, next.Doubt = tokens, raw, 0
	next.at, next.version = at.reported(), at.version
	return &next
}

// compare learns from what was expected of a view and what was measured.
func (c *calibration) compare(was scale, tokens int64) {
	residual := float64(tokens - was.tokens())
	if drift := was.drift(); drift > 0 {
		z := residual / (drift + min(drift, smallDrift))
		z = min(max(z, -maxResidual), maxResidual)
		seen := float64(c.Seen*spreadMemory) + 1
		c.Spread = float64(float64(c.Spread*(seen-1))+float64(z*z)) / seen
		c.Seen = seen
	}
	if was.fresh <= 0 || was.gone > was.fresh/10 {
		return
	}
	fresh := float64(was.fresh)
	sample := c.Ratio + residual/fresh
	weight := fresh
	if low, high := c.Ratio/outlier, c.Ratio*outlier; sample < low || sample > high {
		sample, weight = min(max(sample, low), high), min(fresh, outlierWeight)
	}
	old := max(float64(c.Weight*ratioMemory), priorWeight)
	c.Weight = min(old+weight, maxTotal)
	c.Ratio = float64(float64(c.Ratio*old)+float64(sample*weight)) / (old + weight)
	c.Ratio = min(max(c.Ratio, minRatio), maxRatio)
}

// moved is c for a History that begins with view s, which was was in the old
// one: what was estimated of it stands for a measured figure, in doubt.
func (c *calibration) moved(was scale, raw int64) *calibration {
	next := *c
	next.Tokens, next.Raw = min(max(was.tokens(), 0), maxTotal), raw
	next.Doubt = min(round(was.drift()), maxTotal)
	return &next
}

// A scale weighs a view in tokens, at one moment.
type scale struct {
	known    *calibration // nil: the prior holds
	overhead int64        // beside the view
	old      int64        // raw tokens of what was measured
	gone     int64        // of what was measured, and is in the view no longer
	fresh    int64        // of what was not measured
	prior    Prior
}

// scale weighs the view as it is.
func (h *History) scale() scale { return h.scaleOf(&h.state) }

// upper is what the next request weighs at most. It is worked out once after a
// change.
func (h *History) upper() int64 {
	if h.weighed == h.version+1 {
		return h.weight
	}
	return h.weighAnew()
}

func (h *History) weighAnew() int64 {
	h.weight, h.weighed = h.scale().upper(), h.version+1
	return h.weight
}

// scaleOf weighs a view of the History.
func (h *History) scaleOf(s *state) scale {
	w := s.scale()
	w.prior = h.prior
	if w.known == nil {
		w.overhead = h.guess()
	}
	return w
}

// scale weighs s by what was learned alone.
func (s *state) scale() scale {
	raw := s.raw()
	c := s.known().cal
	if c == nil {
		return scale{fresh: raw}
	}
	old := min(s.measured, raw, c.Raw)
	return scale{known: c, overhead: c.overhead(s.known().cap), old: old, gone: c.Raw - old, fresh: raw - old}
}

// ratios returns the tokens for a raw token of what was measured and of what
// was not.
func (w *scale) ratios() (old, fresh float64) {
	if w.known == nil {
		return 1, w.prior.ratio()
	}
	if w.known.Raw == 0 {
		return w.known.Ratio, w.known.Ratio
	}
	return float64(w.known.Tokens-w.overhead) / float64(w.known.Raw), w.known.Ratio
}

// tokens is the best guess.
func (w scale) tokens() int64 {
	old, fresh := w.ratios()
	return w.overhead + round(float64(old*float64(w.old))+float64(fresh*float64(w.fresh)))
}

// drift is in how many tokens the view differs from the one that was measured.
func (w scale) drift() float64 {
	old, fresh := w.ratios()
	d := float64(fresh*float64(w.fresh)) + float64(old*float64(min(w.gone, w.old)))
	if w.known != nil {
		d += float64(w.known.Doubt)
	}
	return d
}

// upper is what limits are compared with: a bound that the true count should
// stay under.
func (w scale) upper() int64 {
	if w.known == nil {
		return w.prior.upper(w.tokens())
	}
	old, fresh := w.ratios()
	d := w.drift()
	n := float64(old*float64(w.old)) + float64(fresh*float64(w.fresh)) + float64(w.known.kappa()*(d+min(d, smallDrift)))
	return w.overhead + int64(math.Ceil(n-1e-6))
}

// measured is which part of tokens was measured.
func (w scale) measured() int64 {
	w.fresh = 0
	return w.tokens()
}

// holding is the scale of a view of so many raw tokens: what was measured goes
// first, for it is older, and what comes was not measured.
func (w scale) holding(raw int64) scale {
	more := raw - w.old - w.fresh
	if more >= 0 {
		w.fresh += more
		return w
	}
	cut := min(-more, w.old)
	w.old -= cut
	w.gone += cut
	w.fresh = max(w.fresh+more+cut, 0)
	return w
}

// without takes back what came last.
func (w scale) without(raw int64) scale {
	raw = max(raw, 0)
	cut := min(raw, w.fresh)
	w.fresh -= cut
	w.old = max(w.old-(raw-cut), 0)
	return w
}

// weigh returns what a request weighs at most whose view has so many raw
// tokens.
func (w scale) weigh(raw int64) int64 { return w.holding(raw).upper() }

// part returns what so many raw tokens of something new weigh at most before
// any of it is measured.
func (w scale) part(raw int64) int64 {
	_, fresh := w.ratios()
	return w.prior.upper(round(fresh * float64(raw)))
}

// holds returns the most raw tokens that a view may have to weigh no more than
// so much, -1 when that is too little for an empty one.
func (w scale) holds(tokens int64) int64 {
	if w.weigh(0) > tokens {
		return -1
	}
	low, high := int64(0), int64(maxTotal) // it is in between
	for low < high {
		mid := low + (high-low+1)/2
		if w.weigh(mid) > tokens {
			high = mid - 1
		} else {
			low = mid
		}
	}
	return low
}

// frees returns how many raw tokens must go from a view for it to weigh so
// much less.
func (w scale) frees(tokens int64) int64 {
	return w.old + w.fresh - w.holds(w.upper()-tokens)
}

func round(x float64) int64 { return int64(math.Round(x)) }
