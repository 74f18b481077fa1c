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

// mark works out the marks: the limits, less by what Fit has reserved.
func (h *History) mark() {
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
	h.marks = m
}

// orZero is a mark as Status shows it.
func orZero(mark int64) int {
	if mark == noMark {
		return 0
	}
	return clampInt(mark)
}
