package convo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/names"
)

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
// way whose answers have signed reasoning. The edit would end the bond of the reasoning
// from which the model goes on; see [Snapshot.Unbound]. The first Prepare
// after the round applies it, as does any when the request is larger than Limits.High.
func (h *History) CompactInBackground(ctx context.Context) bool {
	ctx, err := h.compacting.enter(ctx)
	if err != nil {
		return false
	}
	var r Report
	if n, err := h.check(ReasonSoft, "", &r, nil); n == nil && err == nil || !h.compacting.tryTake() {
		return false
	}
	ctx, err = h.flightContext(context.WithoutCancel(ctx))
	if err != nil {
		return false
	}
	b := &background{previous: h.compacting.newest.Load(), done: make(chan struct{})}
	h.compacting.newest.Store(b)
	go b.run(&flight{h: h, ctx: ctx, unattended: true})
	return true
}

func (b *background) run(f *flight) {
	defer close(b.done)
	defer b.waitForPrevious()
	defer f.deliverReports()
	defer f.h.compacting.end(nil)
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
	b.report, _ = f.rounds(maxRounds, ifDue(ReasonSoft, ""))
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
	ctx, err := h.compacting.enter(ctx)
	if err == ErrReentrant {
		return h.notStarted(ReasonSoft, err)
	}
	b := h.compacting.newest.Load()
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

// errReady is the error of an attempt whose edit waits.
var errReady = errors.New("convo: the edit waits")

// mayWait reports whether the edit of an attempt waits, and then keeps it in the History.
func (a *attempt) mayWait(e *Edit) bool {
	if !a.f.unattended || a.reason != ReasonSoft || a.cuts != nil || a.yields || a.f.ctx.Err() != nil {
		return false
	}
	return a.f.h.keepReady(&readyEdit{*e, a.at, a.goal.MinFree, a.goal.NoClear != nil, a.report.Strategy, a.work}, &a.report)
}

// keepReady keeps an edit for ReasonSoft if it must wait, and then fills in the sizes in the
// report.
func (h *History) keepReady(ready *readyEdit, r *Report) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isClosed() || h.upper() > h.meter.marks().high || !h.mustWait(h.opts.CacheTTL) {
		return false
	}
	h.compactor.swapReady(ready)
	h.measureBeforeLocked(r)
	return true
}

// applyReady applies the edit that waits, if there is one, and returns its report. The
// outcome is OutcomeNotNeeded if there is none.
func (f *flight) applyReady() (r Report) {
	if f.ctx.Err() != nil {
		return r
	}
	var ready *readyEdit
	var pause time.Duration
	f.h.locked(func() { ready, pause = f.h.compactor.swapReady(nil), f.h.pause(f.h.opts.CacheTTL) })
	if ready == nil {
		return r
	}
	a := &attempt{f: f, need: need{reason: ReasonSoft}, isReady: true, work: ready.work}
	a.at, a.view, a.limit = ready.at, ready.at, noMark // it was below the limit
	a.goal.MinFree, a.noSpill = ready.minFree, ready.noSpill
	a.report = Report{Reason: ReasonSoft, Pause: pause, Strategy: ready.strategy, Unread: ready.work.Unread, NotKept: ready.work.NotKept}
	r, _, _ = a.do(func() error { return a.finish(ready.edit, nil) })
	if r.Outcome == OutcomeFailed && f.ctx.Err() != nil {
		f.h.locked(func() { f.h.compactor.swapReady(ready) }) // the next compaction applies it
	}
	return r
}

// A flight is a running compaction. It holds the slot of its History, so other
// compactions wait until it ends. If its ctx ends, it ends at once: a strategy
// that does not return is abandoned on its own goroutine.
type flight struct {
	h   *History
	ctx context.Context // for the caller's code; it is marked, and Close cancels it

	unattended bool     // it runs in the background
	reports    []Report // to be delivered once the slot is released
}

// withSlot waits for the slot, makes rounds, releases the slot, and then delivers the
// reports. ctx is that of the caller.
func (h *History) withSlot(ctx context.Context, reason Reason, most int, round func(*flight) (Report, error)) (r Report, err error) {
	ctx, err = h.compacting.enter(ctx)
	if err != nil {
		return h.notStarted(reason, err)
	}
	if err := h.compacting.take(ctx, h.done, stoppedWaiting); err != nil {
		r, err := h.notStarted(reason, err)
		if err != ErrClosed {
			h.deliver(r)
		}
		return r, err
	}
	ctx, err = h.flightContext(ctx)
	if err != nil {
		return h.notStarted(reason, err)
	}
	f := &flight{h: h, ctx: ctx}
	defer func() { r.Fits = r.Fits && !h.isClosed() }() // OnCompaction may have closed it
	defer f.deliverReports()                            // even if the caller's code ends the goroutine
	defer h.compacting.end(nil)
	return f.rounds(most, round)
}

// stoppedWaiting begins the error of a caller whose ctx has ended while another
// compaction goes on.
const stoppedWaiting = "stopped waiting for a compaction, which goes on"

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

// namedSince returns the summary of an edit of the view was with more Names: those that the
// messages appended since then use, and that only entries hold which leave. They take the
// place of the last of its names where there is no room for all.
func namedSince(e *Edit, was, now *Snapshot, redact func(Message) Message, count func(string) int) *Summary {
	sum := e.Summary
	defer catch(new(error), "Options.Tokenizer or Options.Redact")
	if sum == nil || sum.Text == "" || len(e.Drop) == 0 {
		return sum
	}
	from, _ := index(now.list, was.newestID()+1)
	if from >= len(now.list) {
		return sum
	}
	var n names.Since
	for _, entry := range now.list[from:] {
		m := redacted(&entry.msg, redact)
		for _, text := range m.texts {
			n.Use(text)
		}
	}
	n.Keep(sum.Text)
	n.Keep(sum.Names)
	for i := range was.len() {
		entry := was.at(i)
		_, leaves := slices.BinarySearch(e.Drop, entry.id)
		m, read := entry.msg, n.Keep
		if leaves && !now.isPinned(entry.head) { // an exchange that was pinned in the meantime stays
			m, read = redacted(&m, redact), n.Leave
		}
		for _, text := range m.texts {
			read(text)
		}
	}
	most := max(count(namesLine+sum.Names), min(mostNames, count(sum.Text)/4))
	line := n.Line(strings.Fields(sum.Names), func(line string) bool { return count(namesLine+line) <= most })
	if line == "" {
		return sum
	}
	own := *sum
	own.Names = line
	return &own
}
