package convo

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A flight is a running compaction, from taking off to landing: others that want
// one wait until it has landed. It holds the slot of its History all that time.
// If its ctx ends, the slot is released at once, and whatever the
// caller's code returns later is discarded.
type flight struct {
	h       *History
	ctx     context.Context // for the caller's code; it carries the flightKey, and Close cancels it
	cancel  context.CancelCauseFunc
	release sync.Once // releases the slot

	unattended bool        // it runs in the background
	stop       func() bool // keeps the end of ctx from releasing the slot
	unwatched  bool        // stop was called in time

	reports []Report // to be delivered once the slot is released

	running *attempt // nil: none; History.mu protects it
}

// flightKey is the key of the value that marks the ctx of a compaction of h.
type flightKey struct{ h *History }

// isInside reports whether ctx is that of a compaction of h, or derived from it.
func (h *History) isInside(ctx context.Context) bool { return ctx.Value(flightKey{h}) != nil }

// withSlot waits for the slot, runs work, releases the slot, and then delivers
// the reports.
func (h *History) withSlot(ctx context.Context, reason Reason, work func(*flight) (Report, error)) (Report, error) {
	select {
	case h.slot <- struct{}{}:
	default:
		select {
		case h.slot <- struct{}{}:
		case <-h.done:
			return h.notStarted(reason, ErrClosed)
		case <-ctx.Done():
			r, err := h.notStarted(reason, endOf(ctx))
			h.deliver(r)
			return r, err
		}
	}
	f := h.start(ctx)
	if f == nil {
		return h.notStarted(reason, ErrClosed)
	}
	defer f.deliverReports() // even if the caller's code ends the goroutine
	defer f.finish()
	return work(f)
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
	f.watchContext()
	return f
}

// watchContext makes the end of ctx release the slot.
func (f *flight) watchContext() {
	f.stop, f.unwatched = context.AfterFunc(f.ctx, f.releaseSlot), false
}

// unwatchContext makes f keep the slot even if ctx ends, until watchContext is
// called again. It returns an error if ctx has ended already: another compaction
// may hold the slot by then, so the result of this one must not be used.
func (f *flight) unwatchContext() error {
	if !f.stop() {
		return endOf(f.ctx)
	}
	f.unwatched = true
	return nil
}

// releaseSlot releases the slot, once. An attempt that is still running has been
// abandoned; the breaker counts it before another compaction can start.
func (f *flight) releaseSlot() {
	f.release.Do(func() {
		f.h.mu.Lock()
		if f.running != nil {
			f.h.countAbandonedLocked(f.running)
		}
		f.h.current = nil // also lets go of the caller's ctx
		f.h.mu.Unlock()
		<-f.h.slot
	})
}

// finish ends the compaction and releases the slot.
func (f *flight) finish() {
	f.releaseSlot()
	f.stop()
	f.cancel(nil)
}

// deliverReports passes the reports to Options.OnCompaction and the log. The slot
// must have been released.
func (f *flight) deliverReports() {
	for _, r := range f.reports {
		f.h.deliver(r)
	}
	f.reports = nil
}

// endOf returns the error for a compaction whose ctx has ended. It wraps both
// ctx's error and its cause.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("convo: compaction stopped: %w", cause)
	}
	return fmt.Errorf("convo: compaction stopped: %w (%w)", cause, err)
}

// notStarted returns the report of a compaction that could not start because of
// cause, and cause itself.
func (h *History) notStarted(reason Reason, cause error) (Report, error) {
	r := h.notNeededReport()
	r.Outcome, r.Reason, r.Cause = OutcomeFailed, reason, cause
	r.Fits = r.Fits && cause != ErrClosed && cause != ErrReentrant // the request must not be sent then
	return r, cause
}

// notNeededReport returns the report of a compaction that is not needed.
func (h *History) notNeededReport() (r Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.measureBeforeLocked(&r)
	return r
}
