package convo

import (
	"cmp"
	"context"

	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// Recover compacts after a provider has refused a request because it was too
// long. at is the snapshot that was sent, and cause is the error that came back,
// which must not be nil. Recover works down to Limits.Low or to half the size of
// at, whichever is less. It returns retry true if the view is now smaller than
// at, so that sending again makes sense:
//
//	for {
//		reply, err := send(snap)
//		if err == nil {
//			break
//		}
//		if retry, _, err := h.Recover(ctx, snap, err); !retry {
//			return err
//		}
//		snap = h.Snapshot()
//	}
//
// [History.Do] does this.
//
// Many errors name numbers, which Recover believes if the size that they state is
// between half and twice the estimate for at. The size of the prompt counts as a
// usage report. A limit that is less than what was refused lowers the limits: High,
// and the other marks in proportion. That is saved, and lasts until SetLimits, or until
// SetModel names another model or other limits, or Open is given other ones. Report.NamedLimit says so. A limit of less
// than half of the one that was set, or of the estimate if none was, does not: it
// is that of a small model which a gateway fell back to. All this holds even if
// Recover then fails.
//
// As for [History.Compact], Limits.MinFree does not apply, and summarizers are
// called even shortly after a failure. If another compaction of h is running,
// Recover first waits until it has ended, or until ctx ends. A nil ctx never
// ends.
//
// The error is nil exactly when retry is true. If Options.IsOverflow says that
// cause is not about the length, the error is cause itself and the report says
// OutcomeNotNeeded. Otherwise the error wraps both the reason why Recover failed
// and cause; the reason is [ErrNoGain] if nothing could be removed, and a
// [*StaleError] if at is a snapshot of another History. A nil cause is a
// [*ValueError].
func (h *History) Recover(ctx context.Context, at *Snapshot, cause error) (retry bool, report Report, err error) {
	if cause == nil {
		err := &ValueError{Name: "Recover: cause", Want: "the error that the provider returned"}
		r, _ := h.notStarted(ReasonOverflow, err)
		return false, r, err
	}
	if _, err := h.compacting.enter(ctx); err != nil {
		r, _ := h.notStarted(ReasonOverflow, ErrReentrant)
		return false, r, errorf("%w; the provider said: %w", ErrReentrant, cause)
	}
	overflow, err := h.isOverflow(cause)
	switch {
	case err != nil:
		r, _ := h.notStarted(ReasonOverflow, err)
		return false, r, errorf("%w; the provider said: %w", err, cause)
	case !overflow:
		r := h.notNeededReport()
		r.Reason = ReasonOverflow
		return false, r, cause
	}
	h.mu.Lock()
	err = h.ownsLocked(at)
	h.mu.Unlock()
	if err != nil {
		r, _ := h.notStarted(ReasonOverflow, err)
		return false, r, errorf("%w; the provider said: %w", err, cause)
	}
	report, err = h.compactOnRequest(ctx, ReasonOverflow, func(f *flight) (Report, error) {
		n := need{reason: ReasonOverflow, requested: true, named: h.learn(at, cause)}
		h.mu.Lock()
		now := h.scaleLocked()
		total := now.Upper()
		n.target = min(h.marks.low, now.Weigh(at.raw())/2)
		h.mu.Unlock()
		if total <= n.target {
			r := h.notNeededReport()
			r.Reason, r.NamedLimit = ReasonOverflow, n.named
			return r, nil
		}
		return f.try(n)
	})
	h.mu.Lock()
	retry = !h.endedLocked() && h.raw() < at.raw()
	now := h.scaleLocked()
	weight, refused := now.Upper(), now.Weigh(at.raw())
	h.mu.Unlock()
	if retry {
		return true, report, nil
	}
	if err == nil {
		switch err = report.Cause; {
		case err != nil:
		case report.Outcome == OutcomeApplied: // more was appended meanwhile than was removed
			err = &LimitError{Need: clampInt(weight), Limit: clampInt(refused - 1), Compacted: true}
		default: // the conversation is empty
			err = ErrNoGain
		}
	}
	return false, report, errorf("%w; the provider said: %w", err, cause)
}

// isOverflow calls Options.IsOverflow, or IsOverflow if it is not set. A panic
// becomes the fault.
func (h *History) isOverflow(err error) (overflow bool, fault error) {
	isOverflow := IsOverflow
	if h.opts.IsOverflow != nil {
		isOverflow = h.opts.IsOverflow
	}
	defer catch(&fault, "Options.IsOverflow")
	return isOverflow(err), nil
}

// IsOverflow reports whether an error says that a request was too long for the
// model, as known providers, gateways and model servers say it. It is the
// default of Options.IsOverflow, and can be called from a function set there.
//
// It reads the texts of err and of the errors that err wraps, the results of
// their methods RawJSON, ErrorCode and ErrorMessage, all of which return a
// string, and the status of their method HTTPStatusCode, an int; the errors of
// the official clients have these. It reads a few kilobytes at the beginning
// and at the end of a text, and no more than 64 errors.
//
// An error about the rate of requests, about a quota, about a file, or about
// loading a model is no overflow. Nor is one about a field that is too long, such as
// the description of a tool, or about a length in characters, bytes or pixels. Nor
// is one about an answer that would fill the window alone, since no shorter
// conversation would help. The status 413 Request Entity Too Large is one, although
// it is about bytes: a compaction removes bytes, too, but it cannot know how many
// are too many. Of errors that are joined, one that is an overflow is enough. A nil
// error is no overflow.
func IsOverflow(err error) bool {
	return overflow.Is(err)
}

// learn takes over what a provider's error says of the request that was made from
// at, a snapshot of h, if the size that it states agrees with ours: the size of
// the prompt as a usage report, and a limit as a bound on the marks. It returns
// the limit that was named, or 0 if there is no bound.
func (h *History) learn(at *Snapshot, cause error) (named int) {
	f := overflow.Read(cause) // this runs the caller's code
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ownsLocked(at) != nil || at.known().model != h.known().model {
		return 0
	}
	ours := h.scaleLocked().Weigh(at.raw())
	theirs := int64(f.Request())
	if theirs < ours/2 || theirs/2 > ours {
		return 0 // the request of another, or counted in another unit
	}
	if f.Prompt > 0 && at.version >= h.known().learned.version(at.known().model) {
		h.applyUsageLocked(at, int64(f.Prompt))
		ours = h.scaleLocked().Weigh(at.raw())
	}
	room := f.Limit - f.Output
	if f.Output == 0 && h.limits.Window > f.Limit {
		room -= int(int64(h.limits.Reserve) * int64(f.Limit) / int64(h.limits.Window)) // the answer needs its share
	}
	switch {
	case f.Limit == 0, f.Limit >= f.Refused(), room <= 0:
		return 0
	case int64(f.Limit) < cmp.Or(h.limits.most(), ours)/2: // that of a small model which a gateway fell back to
		return 0
	case int64(room) >= h.marks.limit:
		return 0
	}
	h.newVersionLocked()
	h.named = room
	h.updateMarksLocked()
	return f.Limit
}
