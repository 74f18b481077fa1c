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

	// The limits in force, see [Limits]. Without a Window, Limit is 0.
	Window, Limit, High, Low, Soft, MinFree int

	Appended   int       // raw tokens since the last applied edit
	LastAppend time.Time // zero: never
	LastEdit   time.Time
}

// Status returns the numbers of now. It costs the same at any length.
func (h *History) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.estimate()
	return Status{
		Entries:    h.state.len(),
		System:     len(h.sys),
		Turns:      h.turns,
		OpenCalls:  h.calls.openCalls(),
		Tokens:     e.Tokens,
		Upper:      e.Upper,
		Window:     h.limits.Window,
		Limit:      h.limits.limit(),
		High:       h.limits.High,
		Low:        h.limits.Low,
		Soft:       h.limits.Soft,
		MinFree:    h.limits.MinFree,
		Appended:   clampInt(h.appended),
		LastAppend: timeOf(h.lastAppend),
		LastEdit:   timeOf(h.lastEdit),
	}
}

func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
