package convo

import (
	"context"
	"math"
)

// Prepare compacts if needed, and returns the snapshot to send. It returns the
// snapshot beside every error too:
//
//	snap, report, err := h.Prepare(ctx)
//	if err != nil && !report.Fits {
//		return err // the request would be too long
//	}
func (h *History) Prepare(ctx context.Context) (*Snapshot, Report, error) {
	for range maxRounds - 1 {
		r, err := h.CompactIfNeeded(ctx)
		s, late := h.lateFor(&r)
		if err != nil || late == nil {
			return s, r, err
		}
	}
	r, err := h.CompactIfNeeded(ctx)
	s, late := h.lateFor(&r)
	if err == nil && late != nil {
		err = late
	}
	return s, r, err
}

// lateFor returns the snapshot of now, and an error when it is too long because
// of what was appended since r.
func (h *History) lateFor(r *Report) (*Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ident == nil || !r.Fits || h.fits() {
		return h.snapshot(), nil
	}
	r.Fits = false
	return h.snapshot(), &LimitError{Need: clampInt(h.upper()), Limit: clampInt(h.marks.limit)}
}

// CompactIfNeeded runs the strategy when the next request weighs more than
// high water, or the strategy's [Trigger] is due, and applies what it plans.
// Otherwise it returns NotNeeded at once, at the same cost for any length.
//
// When another compaction of h is under way it waits for its end, under ctx,
// and looks again. A compaction that was declined is no error while the
// request fits. When it does not fit, there is always an error: a
// [*FloorError], a [*LimitError], what the strategy failed with, or why ctx
// ended; so this is all a caller has to ask:
//
//	if err != nil && !report.Fits {
//		return err
//	}
//
// A call from inside a strategy or summarizer, with its ctx, is
// [ErrReentrant].
func (h *History) CompactIfNeeded(ctx context.Context) (r Report, err error) {
	if h.ident == nil {
		return h.ungone(ReasonHigh, ErrClosed)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if h.isInside(ctx) {
		return h.ungone(ReasonHigh, ErrReentrant)
	}
	reason, err := h.check(false, &r)
	switch {
	case err == nil && reason == notDue:
		return r, nil
	case err == ErrClosed:
		return h.ungone(ReasonHigh, err)
	}
	return h.fly(ctx, min(reason, ReasonTrigger), flyIfDue)
}

func flyIfDue(f *flight) (Report, error) { return f.compactIfDue(false) }

// Compact runs the strategy now, down to low water, and at least to half of
// what there is. What the strategy's summary should dwell on is the focus; it
// may be empty.
//
// It returns NotNeeded when nothing was appended since the last applied edit;
// with a focus, since the last one that was applied for the same focus. An
// edit need not free MinFree, only something. Waiting and errors are those of
// CompactIfNeeded.
func (h *History) Compact(ctx context.Context, focus string) (Report, error) {
	focus = validText(focus)
	return h.compactAsked(ctx, ReasonManual, func(f *flight) (Report, error) {
		n := need{reason: ReasonManual, focus: focus, asked: true}
		h.mu.Lock()
		total := h.upper()
		n.target = min(h.marks.low, total/2)
		idle := h.isIdle(focus) && h.fits()
		h.mu.Unlock()
		if idle {
			return h.present(), nil
		}
		return f.try(n)
	})
}

// compactAsked boards a flight for a compaction that was asked for.
func (h *History) compactAsked(ctx context.Context, why Reason, work func(*flight) (Report, error)) (Report, error) {
	if h.ident == nil {
		return h.ungone(why, ErrClosed)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if h.isInside(ctx) {
		return h.ungone(why, ErrReentrant)
	}
	return h.fly(ctx, why, work)
}

// isIdle reports whether nothing was appended since the last edit that was
// applied for the focus, or for any when that is empty.
func (h *History) isIdle(focus string) bool {
	if focus == "" {
		return h.appended == 0 && (h.lastEdit != 0 || h.touched > 0 || h.slot != nil)
	}
	return h.focused.has(focus, h.appendedEver)
}

// notDue is no reason to compact.
const notDue = Reason(math.MaxUint8)

// check tells why a compaction is due now; soft also looks at the soft mark.
// It puts the numbers of now into r.
func (h *History) check(soft bool, r *Report) (reason Reason, err error) {
	h.mu.Lock()
	m := h.marks
	total := h.upper()
	h.measure(r, total, m.limit)
	var status Status
	warn := false
	reason = notDue
	switch {
	case h.ended():
		err = ErrClosed
	case h.compacted == h.version && total <= m.limit:
	case total > m.high:
		reason = ReasonHigh
	case soft && total > m.soft:
		reason = ReasonSoft
	case h.trigger != nil:
		status = h.status()
		reason = ReasonTrigger // to be asked
	case m.high == noMark && !h.warned:
		h.warned, warn = true, true
	}
	h.mu.Unlock()
	if reason == ReasonTrigger {
		var due bool
		if due, err = isDue(h.trigger, status); !due && err == nil {
			reason = notDue
		}
	}
	if warn {
		h.warnEndless()
	}
	return reason, err
}

// warnEndless tells the log, once, that nothing bounds this conversation.
func (h *History) warnEndless() {
	defer func() { _ = recover() }()
	h.opts.Logger.Warn("convo: nothing will ever be compacted: Limits set neither Window nor High, and the strategy is no Trigger")
}

// A need says why a compaction is wanted, and how far.
type need struct {
	reason Reason
	focus  string
	target int64 // of the whole request
	asked  bool  // MinFree and the breaker do not bind

	// For Fit: what is asked for, how much of it comes out of the window, the
	// limit that this leaves, and what reserves it, under the lock and last of
	// all.
	room    int64
	keep    int64
	limit   int64
	reserve func(next *state) error
}

// maxRounds bounds how often one call compacts, while others append faster
// than it can.
const maxRounds = 8

// compactIfDue compacts as long as something is due and the request does not
// fit.
func (f *flight) compactIfDue(soft bool) (r Report, err error) {
	for range maxRounds {
		var now Report
		var reason Reason
		if reason, err = f.h.check(soft, &now); err != nil {
			now.Reason = min(reason, ReasonTrigger)
			return f.fail(now, err)
		}
		if reason == notDue {
			if r.Outcome == Applied { // in the round before
				r.Fits = now.Fits
				return r, nil
			}
			return now, nil
		}
		n := need{reason: reason}
		if reason != ReasonTrigger {
			f.h.mu.Lock()
			n.target = f.h.marks.low
			f.h.mu.Unlock()
		}
		if r, err = f.try(n); r.Outcome != Applied || r.Fits {
			return r, err
		}
	}
	return r, err
}

// fail reports an error from before an attempt.
func (f *flight) fail(r Report, err error) (Report, error) {
	r.Outcome, r.Cause = Failed, err
	if err != ErrClosed {
		f.reports = append(f.reports, r)
	}
	return r, err
}
