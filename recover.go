package convo

import (
	"context"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// Recover compacts after a provider has refused a request because it was too long. at is
// the snapshot that was sent, and cause the provider's error, which must not be nil.
// Recover compacts to Limits.Low or to half the size of at, whichever is less, under the
// rules of [History.Compact]. It returns retry true if the view is now smaller than at,
// so that the next [History.Snapshot] can be sent. [History.Do] calls it at most twice
// for a request.
//
// If the provider has refused a part of the request, such as an image, Recover compacts
// nothing. A line that says what was there takes the place of media, a block or the arguments
// of a call, also in the floor, but not in pinned exchanges. Signed or encrypted reasoning
// is left out from now on. Text is never cleared. What is cleared is what the error names, in
// the words and paths of common providers; [PartError] is for formats that are not of package
// wire. Without a path it is the only such part of the request, or the only image whose header
// shows no size. The report has ReasonRefused; Undo restores all but reasoning.
// Options.OnCompaction gets it once a request was accepted or failed for another reason. If
// the same is refused again, Recover puts it back and returns the first error.
//
// Many errors contain numbers. Recover uses them if the size in the error is between half
// and twice the estimate for at, even if it then fails. The size of the prompt counts as
// a usage report. A limit below the refused size lowers the limits: High, and the other
// marks in proportion. Report.NamedLimit is then set. The lowered limits are saved. They
// last until SetLimits, until SetModel gives another model or other limits, or until Open
// is given other limits. A limit below half of the set limit, or of the estimate if none
// is set, is ignored: a gateway may have fallen back to a small model.
//
// The error is nil if and only if retry is true. If Options.IsOverflow returns false for
// cause, the error is cause itself and the outcome is OutcomeNotNeeded. Otherwise the
// error wraps cause and the reason why Recover failed: [ErrNoGain] if nothing could be
// removed, and an error that matches [ErrStale] if at is a snapshot of another History. If cause is nil,
// the error is a [*ValueError].
func (h *History) Recover(ctx context.Context, at *Snapshot, cause error) (retry bool, report Report, err error) {
	r := &recovery{h: h, at: at, cause: cause}
	_, entered := h.compacting.enter(ctx)
	switch {
	case cause == nil:
		err = &ValueError{Name: "Recover: cause", Want: "the error that the provider returned"}
		report, _ = h.notStarted(ReasonOverflow, err)
	case entered == ErrReentrant:
		report, err = r.notStarted(ReasonOverflow, entered)
	default:
		r.refusal = refusalIn(cause)
		if r.refusal != nil {
			report, err = r.clear(false)
		} else {
			report, err = r.compact(ctx)
		}
	}
	if err != nil {
		h.locked(func() { h.talk.note(h.newestMessage(), true) })
	}
	return err == nil, report, err
}

// A recovery is one call of Recover.
type recovery struct {
	h       *History
	at      *Snapshot
	cause   error
	refusal *refusal // nil: the request was too long
	reports []Report // to be delivered at the end
}

// compact is Recover for a request that was too long.
func (r *recovery) compact(ctx context.Context) (Report, error) {
	h := r.h
	h.prove(noVersion)
	tooLong, err := r.isOverflow()
	if err == nil && !tooLong {
		report := h.notNeededReport()
		report.Reason = ReasonOverflow
		return report, r.cause
	}
	if err == nil {
		h.locked(func() { err = h.ownsLocked(r.at) })
	}
	if err != nil {
		return r.notStarted(ReasonOverflow, err)
	}
	report, err := h.withSlot(ctx, ReasonOverflow, 1, r.compactIn)
	return report, r.outcome(report, err)
}

// compactIn is compact for the compaction that has the slot.
func (r *recovery) compactIn(f *flight) (report Report, err error) {
	h := r.h
	n := need{reason: ReasonOverflow, requested: true, named: h.learnError(r.at, r.cause)}
	var now calibrate.Scale
	h.locked(func() {
		now = h.scale()
		n.target = min(h.meter.marks().low, now.Weigh(r.at.raw())/2)
	})
	if now.Upper() > n.target {
		return f.try(n)
	}
	report = h.notNeededReport()
	report.Reason, report.NamedLimit = ReasonOverflow, n.named
	return report, nil
}

// outcome returns the error of Recover after a compaction. It is nil if the view is smaller
// now than the request that was too long.
func (r *recovery) outcome(report Report, err error) error {
	h := r.h
	var weight, refused int64
	isSmaller := false
	h.change(func() error {
		now := h.scale()
		weight, refused = now.Upper(), now.Weigh(r.at.raw())
		isSmaller = !h.isClosed() && h.raw() < r.at.raw()
		if isSmaller {
			h.prepare()
		}
		return nil
	})
	if err == nil {
		err = report.Cause
	}
	switch {
	case isSmaller:
		return nil
	case err != nil:
	case report.Outcome == OutcomeApplied: // more was appended in the meantime than was removed
		err = &LimitError{Need: clampInt(weight), Limit: clampInt(refused - 1), Compacted: true}
	default: // the conversation is empty
		err = ErrNoGain
	}
	return r.failure(err)
}

// notStarted returns what Recover returns for an err before any compaction.
func (r *recovery) notStarted(reason Reason, err error) (Report, error) {
	report, _ := r.h.notStarted(reason, err)
	return report, r.failure(err)
}

// failure returns the error of Recover for the reason why it failed.
func (r *recovery) failure(err error) error {
	return errorf("%w; the provider said: %w", err, r.cause)
}

// isOverflow calls Options.IsOverflow, or IsOverflow if it is not set, for the error. It
// returns a panic as fault.
func (r *recovery) isOverflow() (tooLong bool, fault error) {
	isOverflow := IsOverflow
	if r.h.opts.IsOverflow != nil {
		isOverflow = r.h.opts.IsOverflow
	}
	defer catch(&fault, "Options.IsOverflow")
	return isOverflow(r.cause) && !r.h.exceedsAlone(r.at, r.cause), nil
}

// exceedsAlone reports whether the request made from at was refused because the answer that
// it asks for exceeds a quota, so that no compaction helps. Our estimate of the request
// shows it, or that a longer request was refused with the same size.
func (h *History) exceedsAlone(at *Snapshot, err error) bool {
	f := overflow.Read(err)
	if !f.Quota {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ownsLocked(at) != nil {
		return false
	}
	return h.meter.exceedsQuota(f, at.raw(), h.scale().Weigh(at.raw()))
}

// IsOverflow reports whether err means that a request was too long for the model. It
// recognizes the errors of common providers, gateways and model servers, and is the
// default of Options.IsOverflow.
//
// It reads at most 64 errors, err and those that it wraps: a few kilobytes at the beginning
// and at the end of their texts. It also calls methods that the errors of official clients
// have: RawJSON, ErrorCode and ErrorMessage, which return a string, HTTPStatusCode, which
// returns an int, and IsContextTooLarge, which returns a bool. Of a pointer to a struct with
// a field StatusCode, it reads that field, Message and Code.
//
// A request with more tokens than an account may use in a minute is an overflow, if the error
// has both sizes. Other errors about rates, quotas, files or a model that loads are none.
// Neither are errors about a field that is too long, about a length in characters, bytes or
// pixels, or about an answer that would fill the window alone. The status 413 is an overflow: it is about
// bytes, but a compaction removes these as well. Joined errors are an overflow if any is.
func IsOverflow(err error) bool {
	return overflow.Is(err)
}

// learnError applies the numbers in a provider's error for the request made from at, a
// snapshot of h, if the size in the error agrees with our estimate. The size of the
// prompt counts as a usage report, and a limit bounds the marks. It returns the
// limit in the error, or 0 if it does not bound the marks.
func (h *History) learnError(at *Snapshot, cause error) (named int) {
	f := overflow.Read(cause) // runs caller-supplied code
	named = h.learnFigures(at, f)
	if named > 0 && f.Quota {
		h.warn("convo: a request alone exceeds what the account may use in a minute, so the limit was lowered: raise the quota, and call SetLimits",
			"quota", f.Limit, "requested", f.Total, "limit", h.Status().Limit)
	}
	return named
}

// learnFigures is learnError for the numbers of an error.
func (h *History) learnFigures(at *Snapshot, f overflow.Figures) (named int) {
	h.change(func() error {
		if h.ownsLocked(at) != nil || at.known().model != h.known().model {
			return nil
		}
		ours := h.scale().Weigh(at.raw())
		theirs := int64(f.Request())
		if theirs < ours/2 || theirs/2 > ours && !f.Quota { // the answer may be most of what exceeds a quota
			return nil // the request of another, or counted in another unit
		}
		if f.Prompt > 0 && at.version >= h.known().learned.version(at.known().model) {
			h.meter.noteReport(h.learn(at, int64(f.Prompt), h.opts.prior(at.known().model)))
			ours = h.scale().Weigh(at.raw())
		}
		named = h.meter.setNamed(f, ours)
		if named > 0 {
			h.newVersion()
		}
		return nil
	})
	return named
}
