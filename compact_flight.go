package convo

import "context"

// A flight is a running compaction, from taking off to landing: others that want
// one wait until it has landed. It holds the slot of its History all that time.
// If its ctx ends, it ends at once: a strategy that does not return is left behind
// on a goroutine of its own.
type flight struct {
	h      *History
	ctx    context.Context // for the caller's code; it carries the flightKey, and Close cancels it
	cancel context.CancelCauseFunc

	unattended bool     // it runs in the background
	reports    []Report // to be delivered once the slot is released
}

// flightKey is the key of the value that marks the ctx of a compaction of h.
type flightKey struct{ h *History }

// isInside reports whether ctx is that of a compaction of h, or derived from it.
func (h *History) isInside(ctx context.Context) bool { return ctx.Value(flightKey{h}) != nil }

// withSlot waits for the slot, runs work, releases the slot, and then delivers
// the reports.
func (h *History) withSlot(ctx context.Context, reason Reason, work func(*flight) (Report, error)) (r Report, err error) {
	select {
	case h.slot <- struct{}{}:
	default:
		select {
		case h.slot <- struct{}{}:
		case <-h.done:
			return h.notStarted(reason, ErrClosed)
		case <-ctx.Done():
			r, err := h.notStarted(reason, stoppedWaiting(ctx))
			h.deliver(r)
			return r, err
		}
	}
	f := h.start(ctx)
	if f == nil {
		return h.notStarted(reason, ErrClosed)
	}
	defer func() { r.Fits = r.Fits && !h.isClosed() }() // OnCompaction may have closed it
	defer f.deliverReports()                            // even if the caller's code ends the goroutine
	defer f.finish()
	return work(f)
}

// stoppedWaiting returns the error of a caller whose ctx has ended while another
// compaction goes on.
func stoppedWaiting(ctx context.Context) error {
	return errorf("stopped waiting for a compaction, which goes on: %w", causeOf(ctx))
}

// start returns a flight for a caller that has just taken the slot. If h is
// closed, it releases the slot and returns nil.
func (h *History) start(ctx context.Context) *flight {
	f := &flight{h: h}
	f.ctx, f.cancel = context.WithCancelCause(context.WithValue(ctx, flightKey{h}, true))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		f.cancel(ErrClosed)
		<-h.slot
		return nil
	}
	h.current = f
	return f
}

// finish ends the compaction and releases the slot.
func (f *flight) finish() {
	f.cancel(nil)
	f.h.mu.Lock()
	f.h.current = nil // also lets go of the caller's ctx
	f.h.mu.Unlock()
	<-f.h.slot
}

// deliverReports passes the reports to Options.OnCompaction and the log. The slot
// must have been released.
func (f *flight) deliverReports() {
	for _, r := range f.reports {
		f.h.deliver(r)
	}
	f.reports = nil
}

// notStarted returns the report of a compaction that could not start because of
// cause, and cause itself.
func (h *History) notStarted(reason Reason, cause error) (Report, error) {
	r := h.notNeededReport()
	r.Outcome, r.Reason, r.Cause = OutcomeFailed, reason, cause
	r.Fits = r.Fits && cause != ErrReentrant // the request must not be sent then
	return r, cause
}

// notNeededReport returns the report of a compaction that is not needed.
func (h *History) notNeededReport() (r Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.measureBeforeLocked(&r)
	return r
}
