package convo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/names"
)

// A background is a compaction that runs on its own goroutine.
type background struct {
	previous *background   // its reports may not be delivered yet; nil: none
	done     chan struct{} // closed when all reports up to this one are delivered
	report   Report        // to be read once done is closed
}

// CompactInBackground starts a compaction on its own goroutine if the next request is
// larger than Limits.Soft, or if the strategy's Trigger is due. It returns at once and
// reports whether it started one. It starts none while another compaction of h is
// running, or if nothing has changed since the last compaction that was applied.
//
// The conversation can go on in the meantime: messages that are appended stay, in order.
// [History.Wait] returns the report. The strategy sees the values of ctx, but the
// compaction stops when h is closed, and not when ctx ends.
//
// Its edit waits, with OutcomeReady in the report, while a round of tool calls is under
// way whose answers have signed reasoning: the edit would end the bond of the reasoning
// from which the model goes on, see [Snapshot.Bound]. The first Prepare or
// CompactIfNeeded after the round applies it, as does any when the request is larger than
// Limits.High.
func (h *History) CompactInBackground(ctx context.Context) bool {
	ctx, err := h.callerContext(ctx)
	if err != nil {
		return false
	}
	var r Report
	if _, due, err := h.check(true, &r); !due && err == nil {
		return false
	}
	if !h.compactor.compacting.tryTake() {
		return false
	}
	f := h.start(context.WithoutCancel(ctx))
	if f == nil {
		return false
	}
	f.unattended = true
	b := &background{done: make(chan struct{})}
	h.mu.Lock()
	b.previous, h.compactor.background = h.compactor.background, b
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
// Options.OnCompaction has returned. It returns the report of that compaction, or one
// with OutcomeNotNeeded if there was none. After Close, it waits until the compaction
// that Close cancelled has ended.
//
// The error only says why Wait could not wait: ctx ended first, or the call came from
// inside a compaction of h ([ErrReentrant]). The report says whether the compaction
// succeeded.
func (h *History) Wait(ctx context.Context) (Report, error) {
	ctx, err := h.compactor.compacting.enter(ctx)
	if err != nil {
		return h.notStarted(ReasonSoft, err)
	}
	h.mu.Lock()
	b := h.compactor.background
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

// A readyEdit is the edit of a compaction in the background that waits until it costs
// nothing; see Options.CacheTTL and CompactInBackground.
type readyEdit struct {
	a *attempt
	e Edit
}

// errReady is the error of an attempt whose edit waits.
var errReady = errors.New("convo: the edit waits")

// mayWait reports whether the edit of an attempt waits, and then keeps it in the History.
func (a *attempt) mayWait(e *Edit) bool {
	h := a.f.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if !a.f.unattended || a.reason != ReasonSoft || h.endedLocked() || a.f.ctx.Err() != nil ||
		h.upper() > h.meter.marks().high || !h.mustWaitLocked() {
		return false
	}
	h.compactor.ready = &readyEdit{a, *e}
	h.measureBeforeLocked(&a.report)
	return true
}

// applyReady applies the edit that waits, if there is one, and returns its report. The
// outcome is OutcomeNotNeeded if there is none.
func (f *flight) applyReady() (r Report) {
	h := f.h
	h.mu.Lock()
	ready := h.compactor.ready
	if f.ctx.Err() == nil {
		h.compactor.ready = nil
	}
	h.mu.Unlock()
	if ready == nil || f.ctx.Err() != nil {
		return r
	}
	a := *ready.a
	a.f, a.isReady = f, true
	a.report = Report{Reason: a.report.Reason, NamedLimit: a.report.NamedLimit, Strategy: a.report.Strategy, Unread: a.work.Unread, NotKept: a.work.NotKept}
	r, _, _ = a.do(func() error { return a.finish(ready.e, nil) })
	if r.Outcome == OutcomeFailed && f.ctx.Err() != nil { // the next compaction applies it
		h.mu.Lock()
		if h.compactor.ready == nil && !h.endedLocked() {
			h.compactor.ready = ready
		}
		h.mu.Unlock()
	}
	return r
}

// isReadyLocked reports whether an edit waits that can still be applied.
func (h *History) isReadyLocked() bool {
	if h.compactor.ready == nil || h.rewritten > h.compactor.ready.a.at.version {
		return false
	}
	n := len(h.compactor.ready.e.Drop)
	return n == 0 || h.find(h.compactor.ready.e.Drop[n-1]) != nil
}

// mustWaitLocked reports whether an edit for ReasonSoft would cost something that it costs
// no longer after a while.
func (h *History) mustWaitLocked() bool {
	return h.opts.CacheTTL > 0 && !h.isColdLocked() || h.isInSealedRoundLocked()
}

// isInSealedRoundLocked reports whether a round of tool calls is under way and one of its
// newest answers has signed reasoning. The model goes on from it, and an edit of what
// stands before it ends its bond.
func (h *History) isInSealedRoundLocked() bool {
	const newest = 64 // entries, so that this takes constant time
	for i, e := range slices.Backward(h.list[max(len(h.list)-newest, 0):]) {
		switch {
		case e.msg.Role == RoleUser, i == len(h.list)-1 && e.msg.Role == RoleAssistant && e.calls == nil:
			return false
		case e.made() != 0 && e.id > h.released && e.msg.isSigned():
			return true
		}
	}
	return false
}

// isColdLocked reports whether the newest entry of the assistant is older than
// Options.CacheTTL, so that the provider's cache no longer holds the request.
func (h *History) isColdLocked() bool {
	if h.opts.CacheTTL <= 0 {
		return false
	}
	for _, e := range slices.Backward(h.list) {
		if e.msg.Role == RoleAssistant {
			at := e.time()
			return !at.IsZero() && time.Since(at) > h.opts.CacheTTL
		}
	}
	return false
}

// nameWhatCameUp adds to the Names of the summary what the messages appended since the
// snapshot of the attempt use, and only the entries that leave hold. They take the place
// of the last of these names where there is no room for all.
func (a *attempt) nameWhatCameUp(e *Edit) {
	defer catch(new(error), "Options.Tokenizer or Options.Redact")
	redact := a.f.h.opts.Redact
	if e.Summary == nil || e.Summary.Text == "" || len(e.Drop) == 0 {
		return
	}
	now := a.f.h.Snapshot()
	from, _ := index(now.list, a.at.newestID()+1)
	if from >= len(now.list) {
		return
	}
	used := make(map[string]bool)
	var order []string
	for _, entry := range now.list[from:] {
		m := redacted(&entry.msg, redact)
		for _, text := range m.texts {
			for name := range names.Of(text) {
				if !used[name] && len(order) < mostUsedNames {
					used[name] = true
					order = append(order, name)
				}
			}
		}
	}
	remove := func(text string) {
		for name := range names.Of(text) {
			delete(used, name)
		}
	}
	remove(e.Summary.Text)
	remove(e.Summary.Names)
	left := make(map[string]bool, len(used)) // of used, what the entries that leave hold
	for i := range a.at.len() {
		entry := a.at.at(i)
		_, leaves := slices.BinarySearch(e.Drop, entry.id)
		leaves = leaves && !now.isPinned(entry.head) // an exchange that was pinned in the meantime stays
		m := entry.msg
		if leaves {
			m = redacted(&m, redact)
		}
		for _, text := range m.texts {
			if !leaves {
				remove(text)
				continue
			}
			for name := range names.Of(text) {
				if used[name] {
					left[name] = true
				}
			}
		}
	}
	order = slices.DeleteFunc(order, func(name string) bool { return !used[name] || !left[name] })
	if len(order) == 0 {
		return
	}
	count := a.goal.count(a.view)
	most := max(count(namesLine+e.Summary.Names), min(mostNames, count(e.Summary.Text)/4))
	line := ""
	for _, name := range append(order, strings.Fields(e.Summary.Names)...) {
		longer := strings.TrimSpace(line + " " + name)
		if count(namesLine+longer) > most {
			break
		}
		line = longer
	}
	if line != "" {
		sum := *e.Summary
		sum.Names = line
		e.Summary = &sum
	}
}

// mostUsedNames bounds the work of nameWhatCameUp.
const mostUsedNames = 1000

// A flight is a running compaction. It holds the slot of its History, so other
// compactions wait until it ends. If its ctx ends, it ends at once: a strategy
// that does not return is abandoned on its own goroutine.
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
	if err := h.compactor.compacting.take(ctx, h.done, stoppedWaiting); err != nil {
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
	f.ctx, f.cancel = context.WithCancelCause(h.compactor.compacting.mark(ctx))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		f.cancel(ErrClosed)
		h.compactor.compacting.release()
		return nil
	}
	h.compactor.current = f
	return f
}

// finish ends the compaction and releases the slot.
func (f *flight) finish() {
	f.cancel(nil)
	f.h.mu.Lock()
	f.h.compactor.current = nil // also releases the caller's ctx
	f.h.mu.Unlock()
	f.h.compactor.compacting.release()
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
