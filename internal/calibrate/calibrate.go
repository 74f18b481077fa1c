// Package calibrate estimates the size of a request from the sizes that a
// provider reported for earlier requests. It works on numbers alone and does not
// depend on messages or snapshots.
//
// Two units are used. Raw tokens are counted by a local tokenizer; tokens are
// counted by the provider. The view is the part of a request that the model sees
// as the conversation, in raw tokens. The overhead is everything else in a
// request, such as tool definitions, in tokens.
package calibrate

import "math"

// A Prior holds the assumptions about a model before its first usage report.
type Prior struct {
	Ratio  float64 // tokens per raw token
	Margin int64   // distance of the upper bound above the estimate, in thousandths
}

const (
	// MinRatio and MaxRatio bound the ratio of tokens to raw tokens.
	MinRatio, MaxRatio = 0.25, 4

	// MaxTotal is the largest total accepted from outside. Sums of a few such
	// totals do not overflow.
	MaxTotal = 1 << 52
)

const (
	priorWeight   = 150    // the weight of the prior's ratio, in raw tokens
	ratioMemory   = 0.97   // the weight of older samples is multiplied by this for each new one
	spreadMemory  = 0.95   // the same, for residuals
	outlier       = 2.5    // a sample is an outlier above this many times the ratio, or below the ratio divided by it
	outlierWeight = 300    // the highest weight of an outlier, in raw tokens
	maxResidual   = 0.5    // the largest residual, as a fraction of the drift
	deviations    = 3.5    // number of standard deviations from the estimate to the upper bound
	someTools     = 4000   // up to this many unexpected tokens in a first report are attributed to tool definitions
	largeView     = 30_000 // raw tokens of a first view for which half of the other unexpected tokens are attributed to overhead
	goneDrift     = 0.4    // the drift for each token that has left the view
	keptRatio     = 0.9    // a report that is too low for the view lowers the ratio at most to this share of it
	smallDrift    = 400    // up to this many tokens of drift count twice in the bound
	recountMargin = 125    // the minimum margin after a change of the local tokenizer, as for Prior.Margin
	recountSeen   = 5      // the maximum number of earlier residuals that count after such a change
	minMargin     = 0.02   // bounds of the fraction of the drift that the upper bound adds
	maxMargin     = 0.45
)

// upper returns the upper bound for an estimate that is based on the prior alone.
func (p Prior) upper(tokens int64) int64 {
	return tokens + tokens/1000*p.Margin + (tokens%1000*p.Margin+999)/1000
}

// spread returns the mean square residual that corresponds to the margin.
func (p Prior) spread() float64 {
	s := 0.6 * float64(p.Margin) / 1000
	return s * s
}

// A Calibration contains what was learned about one model from usage reports.
//
// The size of the view of the last report is its measured size. An addition since
// then counts as Ratio tokens per raw token; the ratio is learned from the
// differences between reports, in which the overhead cancels out. A removal from
// the view subtracts its share of the measured size, without the overhead. The
// overhead is best estimated from the smallest view ever measured.
type Calibration struct {
	Ratio  float64 // tokens per new raw token
	Weight float64 // raw tokens that Ratio was learned from
	Spread float64 // mean square of the residuals, as fractions of the drift
	Seen   float64 // number of residuals that Spread was learned from; older ones count less

	Tokens int64 // tokens measured for the last reported view
	Raw    int64 // raw tokens of that view
	Doubt  int64 // the part of Tokens that is itself an estimate

	SmallTokens int64 // tokens measured for the smallest reported view
	SmallRaw    int64 // raw tokens of that view
}

// Valid reports whether every field is within its bounds. Learn always returns a
// valid Calibration.
func (c *Calibration) Valid() bool {
	if c == nil {
		return false
	}
	within := func(x, low, high float64) bool { return low <= x && x <= high }
	ok := within(c.Ratio, MinRatio, MaxRatio) && within(c.Weight, 0, MaxTotal) &&
		within(c.Spread, 0, 1) && within(c.Seen, 0, 1000)
	for _, n := range []int64{c.Tokens, c.Raw, c.Doubt, c.SmallTokens, c.SmallRaw} {
		ok = ok && 0 <= n && n <= MaxTotal
	}
	return ok
}

// Overhead estimates the tokens of a request outside its view. The result is at
// most limit, or MaxTotal if limit is 0.
func (c *Calibration) Overhead(limit int64) int64 {
	if limit == 0 {
		limit = MaxTotal
	}
	if c.Raw == 0 {
		return min(c.Tokens, limit)
	}
	small := c.SmallTokens - round(c.Ratio*float64(c.SmallRaw))
	return max(min(small, c.Tokens-round(c.Ratio/2*float64(c.Raw)), limit), 0)
}

// Scale returns the scale of a view of raw tokens, old of which were in the view of the last
// report. maxOverhead is the limit for Overhead.
func (c *Calibration) Scale(maxOverhead, old, raw int64) Scale {
	return Scale{Known: c, Overhead: c.Overhead(maxOverhead), Old: old, Gone: c.Raw - old, Fresh: raw - old}
}

// Recount adapts c to another local tokenizer that counts factor times as many
// raw tokens for the same text. For the remaining part of the last reported view, it
// counts is raw tokens, and the old tokenizer counted was. The factor is a mean over
// many texts, so the next estimates may be less accurate: Recount increases the
// spread, which is soon learned again.
func (c *Calibration) Recount(factor float64, was, is int64) {
	c.Spread, c.Seen = max(c.Spread, Prior{Margin: recountMargin}.spread()), min(c.Seen, recountSeen)
	c.Ratio = min(max(c.Ratio/factor, MinRatio), MaxRatio)
	c.Raw = min(is+round(float64(c.Raw-min(was, c.Raw))*factor), MaxTotal)
	c.SmallRaw = min(round(float64(c.SmallRaw)*factor), MaxTotal)
}

// Moved returns the calibration for another conversation that begins with a view
// of n raw tokens, whose scale is was. The estimated part of that view's size is
// treated as if it had been measured, and recorded in Doubt.
func (c *Calibration) Moved(was Scale, n int64) Calibration {
	next := *c
	next.Tokens, next.Raw = min(max(was.Tokens(), 0), MaxTotal), n
	next.Doubt = min(round(was.drift()), MaxTotal)
	return next
}

// A Report is a provider's usage report for one request.
type Report struct {
	Tokens int64 // all tokens of the request
	Raw    int64 // raw tokens of its view

	// Last reports whether the view of the previous report is still known. If it
	// is, Shared is the number of raw tokens that both views have in common.
	Last   bool
	Shared int64

	Prior       Prior
	Overhead    int64 // the overhead given by the caller, used for the first report
	MaxOverhead int64 // the limit for Calibration.Overhead
}

// Learn returns the calibration after a report. c is the calibration before it,
// or nil if there was none. Learn does not change c.
func (c *Calibration) Learn(r Report) Calibration {
	next := Calibration{Ratio: r.Prior.Ratio, Weight: priorWeight, Spread: r.Prior.spread(), Seen: 1, SmallRaw: math.MaxInt64}
	if c != nil {
		next = *c
	}
	if c != nil && r.Last {
		next.compare(c.Scale(r.MaxOverhead, r.Shared, r.Raw), r.Tokens)
	}
	if excess := float64(r.Tokens-r.Overhead-someTools) - next.Ratio*float64(r.Raw); c == nil && excess > 0 && r.Raw > 0 {
		// The larger the view, the more of the unexpected size is attributed to it
		// rather than to the overhead.
		part := float64(r.Raw) / math.Hypot(float64(r.Raw), largeView)
		next.Ratio = min(next.Ratio+float64(part*part*excess)/float64(r.Raw), 2*next.Ratio, MaxRatio)
	}
	if r.Raw > 0 { // the overhead is never negative
		most := float64(r.Tokens) / float64(r.Raw)
		if c != nil { // the report may lack a part of the request
			most = max(most, float64(keptRatio*c.Ratio))
		}
		next.Ratio = max(min(next.Ratio, most), MinRatio)
	}
	if r.Raw/2 <= next.SmallRaw {
		next.SmallTokens, next.SmallRaw = r.Tokens, r.Raw
	}
	next.Tokens, next.Raw, next.Doubt = r.Tokens, r.Raw, 0
	return next
}

// compare learns from the difference between the expected and the measured size
// of a view.
func (c *Calibration) compare(was Scale, tokens int64) {
	residual := float64(tokens - was.Tokens())
	if drift := was.drift(); drift > 0 {
		z := residual / (drift + min(drift, smallDrift))
		z = min(max(z, -maxResidual), maxResidual)
		seen := float64(c.Seen*spreadMemory) + 1
		c.Spread = float64(float64(c.Spread*(seen-1))+float64(z*z)) / seen
		c.Seen = seen
	}
	if was.Fresh <= 0 || was.Gone > was.Fresh/10 {
		return
	}
	fresh := float64(was.Fresh)
	sample := c.Ratio + residual/fresh
	weight := fresh
	if low, high := c.Ratio/outlier, c.Ratio*outlier; sample < low || sample > high {
		sample, weight = min(max(sample, low), high), min(fresh, outlierWeight)
	}
	old := max(float64(c.Weight*ratioMemory), priorWeight)
	c.Weight = min(old+weight, MaxTotal)
	c.Ratio = float64(float64(c.Ratio*old)+float64(sample*weight)) / (old + weight)
	c.Ratio = min(max(c.Ratio, MinRatio), MaxRatio)
}

// marginFraction returns the fraction of the drift that the upper bound adds to
// the estimate.
func (c *Calibration) marginFraction() float64 {
	return min(max(deviations*math.Sqrt(c.Spread), minMargin), maxMargin)
}

func round(x float64) int64 { return int64(math.Round(x)) }
