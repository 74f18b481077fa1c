package convo

import (
	"context"
	"fmt"
)

// Recover is for the moment when a provider refuses a request because it is
// too long: at is the snapshot that was sent, cause what came back. It compacts
// by force, down to low water, and at least to half of what at weighed, and
// says whether sending again makes sense: retry is true when the view now
// weighs less than at did.
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
// When cause is not about length, as Options.IsOverflow says, it returns false,
// NotNeeded and cause itself. In every other case where retry is false the
// error is not nil and wraps both what stood in the way and cause. A snapshot
// of another History is [ErrStale].
func (h *History) Recover(ctx context.Context, at *Snapshot, cause error) (retry bool, report Report, err error) {
	overflow, err := h.isOverflow(cause)
	switch {
	case err != nil:
		r, _ := h.ungone(ReasonOverflow, err)
		return false, r, fmt.Errorf("%w: %w", err, cause)
	case !overflow:
		r := h.present()
		r.Reason = ReasonOverflow
		return false, r, cause
	}
	h.mu.Lock()
	err = h.owns(at)
	h.mu.Unlock()
	if err != nil {
		r, _ := h.ungone(ReasonOverflow, err)
		return false, r, fmt.Errorf("%w: %w", err, cause)
	}
	report, err = h.compactAsked(ctx, ReasonOverflow, func(f *flight) (Report, error) {
		n := need{reason: ReasonOverflow, asked: true}
		h.mu.Lock()
		now := h.scale()
		total := now.upper()
		n.target = min(h.marks.low, now.weigh(at.raw())/2)
		h.mu.Unlock()
		if total <= n.target {
			r := h.present()
			r.Reason = ReasonOverflow
			return r, nil
		}
		return f.try(n)
	})
	h.mu.Lock()
	retry = !h.ended() && h.raw() < at.raw()
	now := h.scale()
	weight, refused := now.upper(), now.weigh(at.raw())
	h.mu.Unlock()
	if retry {
		return true, report, err
	}
	if err == nil {
		if err = report.Cause; err == nil { // more was appended meanwhile than went
			err = &LimitError{Need: clampInt(weight), Limit: clampInt(refused - 1)}
		}
	}
	return false, report, fmt.Errorf("%w: %w", err, cause)
}

func (h *History) isOverflow(err error) (overflow bool, fault error) {
	if err == nil {
		return false, nil
	}
	is := IsOverflow
	if h.opts.IsOverflow != nil {
		is = h.opts.IsOverflow
	}
	defer catch(&fault, "Options.IsOverflow")
	return is(err), nil
}
