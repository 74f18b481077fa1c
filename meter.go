package convo

import "github.com/seed-c1b73e60/convo/internal/calibrate"

// A meter knows what the next request may weigh, from its raw tokens and from what providers
// have reported, and what it must not be above.
type meter struct {
	limits Limits // with defaults
	marks  marks  // limits less what MakeRoom has reserved
	fitted sum128 // what MakeRoom has reserved in the window
	named  int    // the limit that a provider's error named; 0: none
	chosen bool   // SetLimits or SetModel has set the limits, so they are saved
	charge int64  // what Options.Budget is charged

	heard       bool            // usage was reported for the current model
	sent        *Snapshot       // of the last report; nil: none, or an entry of it has left the view
	prior       calibrate.Prior // of the current model
	implausible *implausible    // the last report, if it was implausible and ignored
	lowTold     bool            // a usage report that was too low was logged
	toolsSet    bool            // Limits.Tools was set after the last usage report
	rising      int             // usage reports in a row above the estimate
	risingTold  bool            // many such reports were logged
	guessTold   bool            // it was logged that the window is a guess
	overQuota   refusedSize     // of the last request that exceeded a quota alone
	resumed     *rowList        // of the Decisions that it was made from, until usage is reported; nil: none

	weight  int64  // upper bound of the next request
	weighed uint64 // the version that weight is of
}

// A refusedSize is the size of a request in the error about it, and its raw tokens.
type refusedSize struct {
	total int
	raw   int64
}

// updateMarksLocked computes the marks again after a change of the limits, of
// the reservations of MakeRoom or of the limit that Recover has learned.
func (h *History) updateMarksLocked() {
	limits := h.meter.limits
	if h.meter.named > 0 {
		limits = limits.within(h.meter.named)
	}
	m := marks{limit: noMark, minFree: int64(limits.MinFree)}
	if limits.Window > 0 {
		m.limit = max(int64(limits.limit())-h.meter.fitted.int64(), 0)
	}
	m.high, m.soft, m.low = m.limit, m.limit, m.limit
	if limits.High > 0 {
		m.high = min(m.limit, int64(limits.High))
		m.soft = min(m.limit, int64(limits.Soft))
		m.low = min(m.limit, int64(limits.Low))
	}
	h.meter.marks = m
}
