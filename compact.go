package convo

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/causes"
	"github.com/seed-c1b73e60/convo/internal/names"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Prepare compacts if the next request is larger than Limits.High, or if the strategy's
// [Trigger] is due; Options.CacheTTL says when else. It returns the snapshot to send. The
// report has OutcomeNotNeeded if nothing was due; this check takes constant time.
// [History.Do] does this, sends the snapshot and appends the answer.
//
// It returns an error exactly when the request must not be sent:
//   - The request does not fit. The error is a [*FloorError], a [*LimitError], which
//     wraps the strategy's own error if it returned one, or any other reason why the
//     compaction failed, such as an edit that breaks a rule or the end of ctx.
//   - h is closed: [ErrClosed].
//   - The call came from inside a compaction of h, with its ctx: [ErrReentrant].
//
// The snapshot is never nil, not even when there is an error.
func (h *History) Prepare(ctx context.Context) (at *Snapshot, r Report, err error) {
	defer func() { h.failed(err) }()
	var tooLong error
	for range maxRounds {
		at = nil
		if tooLong != nil {
			r = Report{}
		}
		err = h.compactIfNeeded(ctx, &at, &r)
		if at != nil {
			return at, r, nil
		}
		at, tooLong = h.snapshotToSend(&r)
		if err != nil || tooLong == nil {
			return at, r, err
		}
	}
	return at, r, tooLong
}

// snapshotToSend returns the current snapshot. It also returns an error, and
// clears r.Fits, when r says that the request fits but messages appended since
// have made it too long.
func (h *History) snapshotToSend(r *Report) (*Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ident == nil {
		return h.snapshotLocked(), nil
	}
	if !r.Fits || h.fits(h.meter.marks()) && !h.isClosed() {
		return h.prepareLocked(), nil
	}
	h.prepare()
	r.Fits = false
	return h.snapshotLocked(), h.unfitLocked(r, nil)
}

// unfitLocked returns why the next request must not be sent after a compaction with the report r
// that could not free more because of cause, which may be nil.
func (h *History) unfitLocked(r *Report, cause error) error {
	if h.isClosed() {
		return ErrClosed
	}
	return &LimitError{Need: clampInt(h.upper()), Limit: clampInt(h.meter.marks().limit), Compacted: r.Outcome == OutcomeApplied, Err: cause}
}

// prepareLocked returns the snapshot to send.
func (h *History) prepareLocked() *Snapshot {
	h.prepare()
	h.talk.note(nil, false) // another request is made
	return h.snapshotLocked()
}

// compactIfNeeded makes the compaction of Prepare, and writes its report into r, which is zero.
// If there is nothing to do, it sets at to the snapshot to send, unless it has asked a Trigger.
func (h *History) compactIfNeeded(ctx context.Context, at **Snapshot, r *Report) (err error) {
	var n *need
	if ctx, err = h.compacting.enter(ctx); err == nil {
		n, err = h.check(ReasonHigh, "", r, at)
	}
	switch {
	case err == ErrReentrant || err == ErrClosed:
		*r, err = h.notStarted(ReasonHigh, err)
		return err
	case n == nil:
		return nil
	}
	*r, err = h.withSlot(ctx, n.reason, maxRounds, ifDue(ReasonHigh, ""))
	switch {
	case r.Fits:
		return nil
	case h.isClosed():
		return closedBeside(err)
	}
	return err
}

// closedBeside returns ErrClosed, together with err if that is another error.
func closedBeside(err error) error {
	if err == nil || causes.Is(err, ErrClosed) {
		return cmp.Or(err, ErrClosed)
	}
	return errorf("%w (%w)", ErrClosed, err)
}

// Compact runs the strategy, whether a compaction is needed or not. It works down to
// Limits.Low or to half of the present size, whichever is less. The focus says what a
// summary should concentrate on; it may be empty. Limits.MinFree does not apply: any edit
// that frees something is accepted. Summarizers are called even shortly after a failure.
//
// If nothing was appended since the last edit, Compact does nothing and reports
// OutcomeNotNeeded, unless the request does not fit, or focus is not empty and differs
// from the focus of that edit.
//
// The error is nil if an edit was applied or nothing had to be done, even if the request
// is still too long; see Report.Fits. The error matches [ErrNoGain] if the strategy found
// nothing to remove. Otherwise it says what failed.
func (h *History) Compact(ctx context.Context, focus string) (Report, error) {
	focus = text.Valid(focus)
	r, err := h.withSlot(ctx, ReasonManual, 1, ifDue(ReasonManual, focus))
	switch r.Outcome {
	case OutcomeApplied, OutcomeNotNeeded:
		return r, nil
	case OutcomeDeclined:
		return r, cmp.Or(err, r.Cause)
	}
	return r, err
}

// check returns the need of a compaction if one is due, and nil otherwise; see due of
// compactor. It writes the current figures into r. The error is ErrClosed, or a panic of the
// Trigger, with the need that it was asked for. If nothing is due, no Trigger was asked and at is
// not nil, it is set to the snapshot to send.
func (h *History) check(asked Reason, focus string, r *Report, at **Snapshot) (n *need, err error) {
	var v verdict
	var again int64 // raw tokens that have to be written to the prompt cache again
	lost := false   // it has to be reported that these are many
	h.locked(func() {
		now := h.moment(h.meter.marks())
		again = h.measureBeforeLocked(r)
		if h.isClosed() {
			err = ErrClosed
			return
		}
		h.compactor.due(&now, asked, focus, &v)
		lost = v.alone && !v.due && h.notesLoss(again, now.marks.minFree, r.PrefixEnd)
		if at != nil && r.Fits && !v.due && v.ask == nil {
			*at = h.prepareLocked()
		}
	})
	if err != nil {
		return nil, err
	}
	if v.ask != nil {
		v.due, err = isDue(v.ask, h.Status())
		if h.isClosed() { // by the Trigger
			r.Fits, err = false, ErrClosed
		}
	}
	if lost {
		h.warn("convo: more than Limits.MinFree tokens of the last request have to be written to the prompt cache again", "change", r.PrefixEnd, "prefix_kept", r.PrefixKept, "raw", again)
	}
	if v.noWindow {
		r.Cause = errNoWindow
		h.warn("convo: this conversation will not be compacted until a provider refuses a request as too long: set Limits.Window or Limits.High, or a strategy that is a Trigger")
	}
	if !v.due && err == nil {
		return nil, nil
	}
	return &need{reason: v.reason, focus: focus, target: v.target, pause: v.pause, requested: v.reason == ReasonManual}, err
}

// A need says why to compact, and how far. Sizes are upper bounds, in tokens of
// the whole request.
type need struct {
	reason    Reason
	focus     string
	target    int64
	pause     time.Duration // for Report.Pause
	requested bool          // by Compact, MakeRoom or Recover: MinFree and the breaker do not apply
	named     int           // for Report.NamedLimit

	// For MakeRoom; reserve is nil otherwise.
	room       int64                   // the tokens to reserve
	fromWindow int64                   // how many of them come out of the window and not out of a Budget
	limit      int64                   // the largest request for which they are reserved
	reserve    func(next *state) error // reserves them; called last, with the lock held
}

// maxRounds is the most rounds of one call. More than one is needed only if other
// goroutines append faster than the strategy removes.
const maxRounds = 8

// rounds applies the edit that waits, and makes rounds until one applies no edit, or the
// request fits.
func (f *flight) rounds(most int, round func(*flight) (Report, error)) (r Report, err error) {
	r = f.applyReady()
	for range most {
		now, failed := round(f)
		if now.Outcome == OutcomeNotNeeded && r.Outcome == OutcomeApplied { // by the previous round
			r.Fits = now.Fits
			return r, failed
		}
		r, err = now, failed
		if r.Outcome != OutcomeApplied || r.Fits {
			break
		}
	}
	return r, err
}

// ifDue returns a round that makes an attempt if a compaction is due; see due of compactor.
func ifDue(asked Reason, focus string) func(*flight) (Report, error) {
	return func(f *flight) (r Report, err error) {
		n, err := f.h.check(asked, focus, &r, nil)
		switch {
		case n == nil && err == nil:
			return r, nil
		case err != nil:
			r.Reason, r.Outcome, r.Cause = orNil(n).reason, OutcomeFailed, err
			if err != ErrClosed {
				f.reports = append(f.reports, r)
			}
			return r, err
		}
		return f.try(*n)
	}
}

// MakeRoom makes room for n more tokens and reserves them, in one step. Use it before
// something large is appended, or to keep a part of the window free. Call
// [Reservation.Release] when the tokens are no longer needed. With Options.Budget, they
// come out of that pool. Without it they come out of the window: until Release, the limit
// is lower by n.
//
// If there is enough room, MakeRoom removes nothing and reports OutcomeNotNeeded.
// Otherwise the strategy works down to Limits.Low, or further if n requires it, under the
// rules of [History.Compact].
//
// On an error the reservation is nil. If the floor and n together are too large, no
// strategy runs and the error is a [*FloorError]; it also matches [ErrBudget] if the pool
// is too small. A negative n is a [*ValueError]. Other errors say why the compaction
// failed or was not enough.
func (h *History) MakeRoom(ctx context.Context, n int) (*Reservation, Report, error) {
	ctx, err := h.compacting.enter(ctx)
	if n < 0 {
		err = &ValueError{Name: "MakeRoom", Value: n, Want: "0 or more tokens"}
	}
	if err != nil {
		r, err := h.notStarted(ReasonRoom, err)
		return nil, r, err
	}
	if res, r, err := h.reserveIfFree(n); res != nil || err != nil {
		return res, r, err
	}
	var res *Reservation
	r, err := h.withSlot(ctx, ReasonRoom, 1, func(f *flight) (r Report, err error) {
		res, r, err = h.reserveIfFree(n)
		if res != nil || err != nil {
			return r, err
		}
		want := h.needFor(n, &res)
		r, err = f.try(want)
		if res != nil {
			return r, err
		}
		var now Report
		if res, now, _ = h.reserveIfFree(n); res != nil { // the room was freed in the meantime
			return now, nil
		}
		if err == nil {
			err = h.noRoom(n, r.Outcome == OutcomeApplied)
		}
		return r, err
	})
	return res, r, err
}

// noRoom returns the error of a MakeRoom for n tokens that found too little room after
// its compaction.
func (h *History) noRoom(n int, compacted bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	total, limit, room := h.upper(), h.meter.marks().limit, int64(n)
	if pool := h.opts.Budget; pool != nil && total <= limit {
		return &budgetError{Need: n, Free: pool.Free()}
	} else if pool != nil {
		room = 0
	}
	return &LimitError{Need: clampInt(total), Room: clampInt(room), Limit: clampInt(limit), Compacted: compacted}
}

// reserveIfFree reserves n tokens if they are free. Otherwise the reservation is
// nil. The only error is ErrClosed.
func (h *History) reserveIfFree(n int) (res *Reservation, r Report, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.measureBeforeLocked(&r)
	r.Reason = ReasonRoom
	if h.isClosed() {
		r.Outcome, r.Cause = OutcomeFailed, ErrClosed
		return nil, r, ErrClosed
	}
	limit, total := h.meter.marks().limit, h.upper()
	switch {
	case total > limit:
	case h.opts.Budget != nil:
		res, _ = h.opts.Budget.Reserve(n)
	case limit == noMark || int64(n) <= limit-total:
		res = h.reserveWindowLocked(n)
	}
	return res, r, nil
}

// reserveWindowLocked lowers the limit by n until Release.
func (h *History) reserveWindowLocked(n int) *Reservation {
	h.meter.reserve(n)
	return &Reservation{release: func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.meter.reserve(-n)
	}}
}

// needFor returns the need of a MakeRoom for n tokens. The step that makes the room
// also stores the reservation in res.
func (h *History) needFor(n int, res **Reservation) need {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.meter.marks()
	want := need{reason: ReasonRoom, requested: true, room: int64(n)}
	if h.account != nil {
		want.limit = min(m.limit, h.account.most(n))
		want.reserve = func(next *state) (err error) {
			*res, err = h.account.reserve(next.scale().Upper(), n)
			return err
		}
	} else {
		want.fromWindow, want.limit = want.room, m.limit-want.room
		want.reserve = func(*state) error {
			*res = h.reserveWindowLocked(n)
			return nil
		}
	}
	want.target = min(m.low, want.limit)
	return want
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
	case <-ctx.Done():
		select {
		case <-b.done: // prefer a report over the end of ctx
		default:
			return h.notStarted(ReasonSoft, errorf("%s: %w", stoppedWaiting, causeOf(ctx)))
		}
	}
	return b.report.clone(), nil
}

// errReady is the error of an attempt whose edit waits.
var errReady = errors.New("convo: the edit waits")

// mayWait reports whether the edit of an attempt waits, and then keeps it in the History.
func (a *attempt) mayWait(e *Edit) bool {
	if !a.f.unattended || a.reason != ReasonSoft || a.cuts != nil || a.yields || a.f.ctx.Err() != nil {
		return false
	}
	h := a.f.h
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.moment(h.meter.marks())
	if h.isClosed() || now.upper > now.marks.high || !now.mustWait(h.opts.CacheTTL) {
		return false
	}
	h.compactor.swapReady(&readyEdit{*e, a.at, a.goal.MinFree, a.goal.NoClear != nil, a.report.Strategy, a.work})
	h.measureBeforeLocked(&a.report)
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
	f.h.locked(func() {
		now := f.h.moment(f.h.meter.marks())
		ready, pause = f.h.compactor.swapReady(nil), now.pause(f.h.opts.CacheTTL)
	})
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
		m, read := entry.msg, n.Keep
		if hasID(e.Drop, entry.id) && !now.isPinned(entry.head) { // an exchange that was pinned in the meantime stays
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
