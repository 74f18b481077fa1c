package convo

import "time"

// Status holds what a status line shows: plain numbers as of one moment.
type Status struct {
	Entries   int // all, system entries included
	System    int
	Turns     int
	OpenCalls int
	Tokens    int // as in Estimate
	Upper     int

	// The limits in force, see [Limits]; less by what Fit has reserved. What
	// does not exist, such as a Limit without a Window, is 0.
	Window, Limit, High, Low, Soft, MinFree int

	Appended   int       // raw tokens since the last applied edit
	LastAppend time.Time // zero: never
	LastEdit   time.Time
}

// Status returns the numbers of now. It costs the same at any length.
func (h *History) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.status()
}

func (h *History) status() Status {
	e, marks := h.estimate(), h.marks
	return Status{
		Entries:    h.state.len(),
		System:     len(h.sys),
		Turns:      h.turns,
		OpenCalls:  h.calls.openCalls(),
		Tokens:     e.Tokens,
		Upper:      e.Upper,
		Window:     h.limits.Window,
		Limit:      orZero(marks.limit),
		High:       orZero(marks.high),
		Low:        orZero(marks.low),
		Soft:       orZero(marks.soft),
		MinFree:    h.limits.MinFree,
		Appended:   clampInt(h.appended),
		LastAppend: timeOf(h.lastAppend),
		LastEdit:   timeOf(h.lastEdit),
	}
}

// status is what a snapshot alone can tell.
func (s *Snapshot) status() Status {
	raw := clampInt(s.raw())
	return Status{
		Entries:   s.len(),
		System:    len(s.sys),
		Turns:     s.turns,
		OpenCalls: callsOf(s.list).openCalls(),
		Tokens:    raw,
		Upper:     raw,
		Appended:  clampInt(s.appended),
	}
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
