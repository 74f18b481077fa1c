package convo

import "context"

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
