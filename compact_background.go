package convo

import (
	"context"
)

// A background is a compaction that runs on a goroutine of its own.
type background struct {
	previous *background   // its reports may still be being delivered; nil: none
	done     chan struct{} // closed when all reports up to this one are delivered
	report   Report        // to be read once done is closed
}

// CompactInBackground starts a compaction on a goroutine of its own if the next
// request is larger than Limits.Soft, or if the strategy's [Trigger] is due. It
// returns at once and reports whether it started one. It starts none while
// another compaction of h is running, or if nothing has changed since the last
// compaction that was applied.
//
// The conversation can go on meanwhile: messages that are appended stay, in
// order. Use [History.Wait] to learn how the compaction ended. The strategy sees
// the values of ctx, but the compaction does not stop when ctx ends; it stops
// when h is closed.
func (h *History) CompactInBackground(ctx context.Context) bool {
	ctx, err := h.callerContext(ctx)
	if err != nil {
		return false
	}
	var r Report
	if _, due, err := h.check(true, &r); !due && err == nil {
		return false
	}
	if !h.compacting.tryTake() {
		return false
	}
	f := h.start(context.WithoutCancel(ctx))
	if f == nil {
		return false
	}
	f.unattended = true
	b := &background{done: make(chan struct{})}
	h.mu.Lock()
	b.previous, h.background = h.background, b
	h.mu.Unlock()
	go b.run(f)
	return true
}

func (b *background) run(f *flight) {
	defer close(b.done)
	defer b.waitForPrevious()
	defer f.deliverReports()
	defer f.finish()
	returned := false
	defer func() {
		if returned {
			return
		}
		if len(f.reports) == 0 { // the Trigger ended the goroutine
			r, _ := f.h.notStarted(ReasonSoft, errGoexit)
			f.reports = append(f.reports, r)
		}
		b.report = f.reports[len(f.reports)-1]
	}()
	b.report, _ = f.compactIfDue(true)
	returned = true
}

// waitForPrevious waits until the reports of the previous compaction in the
// background have been delivered.
func (b *background) waitForPrevious() {
	if b.previous != nil {
		<-b.previous.done
		b.previous = nil
	}
}

// Wait waits until the newest compaction in the background has ended and
// Options.OnCompaction has returned. It returns the report of that compaction,
// or one with OutcomeNotNeeded if there was none. Wait also works after Close:
// it then waits until the compaction that Close cancelled has ended. A nil ctx
// never ends.
//
// The error only says why Wait could not wait: ctx ended while the compaction
// goes on, or the call came from inside a compaction of h ([ErrReentrant]).
// Whether the compaction succeeded is in the report.
func (h *History) Wait(ctx context.Context) (Report, error) {
	ctx, err := h.compacting.enter(ctx)
	if err != nil {
		return h.notStarted(ReasonSoft, err)
	}
	h.mu.Lock()
	b := h.background
	h.mu.Unlock()
	if b == nil {
		return h.notNeededReport(), nil
	}
	select {
	case <-b.done:
		return b.report.clone(), nil
	default: // prefer a report over the end of ctx
	}
	select {
	case <-b.done:
		return b.report.clone(), nil
	case <-ctx.Done():
		return h.notStarted(ReasonSoft, errorf("%s: %w", stoppedWaiting, causeOf(ctx)))
	}
}

// A slot lets one operation of a kind run at a time on a History: a compaction, a Do,
// or what reads or writes the log. It is a channel of one, so that a waiter can stop
// when its ctx ends.
type slot chan struct{}

func newSlot() slot { return make(slot, 1) }

// tryTake takes the slot if it is free.
func (s slot) tryTake() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// take waits for the slot until ctx ends or done is closed. stopped begins the error
// for a ctx that has ended. A free slot is taken even then.
func (s slot) take(ctx context.Context, done <-chan struct{}, stopped string) error {
	if s.tryTake() {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-done:
		return ErrClosed
	case <-ctx.Done():
		return errorf("%s: %w", stopped, causeOf(ctx))
	}
}

func (s slot) release() { <-s }

// mark returns a ctx for the caller's code that the operation in the slot runs.
func (s slot) mark(ctx context.Context) context.Context { return context.WithValue(ctx, s, true) }

// enter returns ctx, or one that never ends if it is nil. If the operation in the slot
// has marked ctx, waiting for the slot would never end, and the error is ErrReentrant.
func (s slot) enter(ctx context.Context) (context.Context, error) {
	switch {
	case ctx == nil:
		return context.Background(), nil
	case ctx.Value(s) != nil:
		return ctx, ErrReentrant
	}
	return ctx, nil
}

// A flight is a running compaction, from taking off to landing: others that want
// one wait until it has landed. It holds the slot of its History all that time.
// If its ctx ends, it ends at once: a strategy that does not return is abandoned
// on a goroutine of its own.
type flight struct {
	h      *History
	ctx    context.Context // for the caller's code; it is marked, and Close cancels it
	cancel context.CancelCauseFunc

	unattended bool     // it runs in the background
	reports    []Report // to be delivered once the slot is released
}

// withSlot waits for the slot, runs work, releases the slot, and then delivers
// the reports.
func (h *History) withSlot(ctx context.Context, reason Reason, work func(*flight) (Report, error)) (r Report, err error) {
	if err := h.compacting.take(ctx, h.done, stoppedWaiting); err != nil {
		r, err := h.notStarted(reason, err)
		if err != ErrClosed {
			h.deliver(r)
		}
		return r, err
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

// stoppedWaiting begins the error of a caller whose ctx has ended while another
// compaction goes on.
const stoppedWaiting = "stopped waiting for a compaction, which goes on"

// start returns a flight for a caller that has just taken the slot. If h is
// closed, it releases the slot and returns nil.
func (h *History) start(ctx context.Context) *flight {
	f := &flight{h: h}
	f.ctx, f.cancel = context.WithCancelCause(h.compacting.mark(ctx))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		f.cancel(ErrClosed)
		h.compacting.release()
		return nil
	}
	h.current = f
	return f
}

// finish ends the compaction and releases the slot.
func (f *flight) finish() {
	f.cancel(nil)
	f.h.mu.Lock()
	f.h.current = nil // also releases the caller's ctx
	f.h.mu.Unlock()
	f.h.compacting.release()
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
