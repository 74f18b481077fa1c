package convo

import "math"

// marks are the limits as they bind now, in tokens of a whole request. One
// that does not exist is noMark.
type marks struct {
	limit, high, soft, low int64
}

const (
	noMark    = math.MaxInt64
	noVersion = math.MaxUint64
)

// marks returns the limits, less by what Fit has reserved.
func (h *History) marks() marks {
	m := marks{noMark, noMark, noMark, noMark}
	if h.limits.Window > 0 {
		m.limit = max(int64(h.limits.limit())-h.fitted, 0)
	}
	m.high, m.soft, m.low = m.limit, m.limit, m.limit
	if h.limits.High > 0 {
		m.high = min(m.limit, int64(h.limits.High))
		m.soft = min(m.limit, int64(h.limits.Soft))
		m.low = min(m.limit, int64(h.limits.Low))
	}
	return m
}

// orZero is a mark as Status shows it.
func orZero(mark int64) int {
	if mark == noMark {
		return 0
	}
	return clampInt(mark)
}

// weigh returns what a request weighs at most whose view has so many raw
// tokens: what limits are compared with.
func (c calibration) weigh(raw int64) int64 { return upper(c.apply(raw)) }

// part returns what a part of a view weighs at most.
func (c calibration) part(raw int64) int64 { return upper(c.share(raw)) }

// holds returns the most raw tokens that a view may have to weigh no more than
// so much, -1 when that is too little for an empty one.
func (c calibration) holds(tokens int64) int64 {
	if c.weigh(0) > tokens {
		return -1
	}
	low, high := int64(0), int64(maxTotal) // it is in between
	for low < high {
		mid := low + (high-low+1)/2
		if c.weigh(mid) > tokens {
			high = mid - 1
		} else {
			low = mid
		}
	}
	return low
}

// frees returns how many raw tokens must go from a view for it to weigh so
// much less.
func (c calibration) frees(raw, tokens int64) int64 {
	return raw - c.holds(c.weigh(raw)-tokens)
}
