package convo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// An attempt is one run of the strategy, and what is made of its edit.
type attempt struct {
	need
	f      *flight
	report Report

	at      *Snapshot
	scale   scale // of that moment
	marks   marks
	total   int64 // what the request weighs
	minFree int64 // of tokens, at least
	goal    Goal
	run     run
	summary *Summary // of the edit

	unspilled []Clear // results whose originals found no place
}

// try makes one attempt, in the foreground a second one when the first went
// stale, and another one when it failed because results could not be cleared:
// without them.
func (f *flight) try(n need) (Report, error) {
	r, kept, err := f.attempt(n, nil)
	if r.Outcome == Stale && !f.unattended && f.ctx.Err() == nil {
		r, kept, err = f.attempt(n, nil)
	}
	if r.Outcome != Applied && len(kept) > 0 && f.ctx.Err() == nil {
		r, _, err = f.attempt(n, kept)
	}
	if err == nil && !r.Fits {
		s := f.h.Status()
		err = &LimitError{Need: s.Upper, Limit: s.Limit}
	}
	return r, err
}

// attempt makes one attempt, without clearing what is to be kept, and keeps its
// report. It returns the results that could not be cleared.
func (f *flight) attempt(n need, keep []Clear) (Report, []Clear, error) {
	start := time.Now()
	if f.disarmed {
		f.arm()
	}
	a := attempt{f: f, need: n}
	a.run.kept = keep
	a.report.Reason = n.reason
	err := a.make()
	r := a.report
	r.Duration = time.Since(start)
	if r.Outcome != Applied {
		r.Unread = 0
	}
	if err != nil {
		r.Outcome, r.Cause = Failed, err
		if errors.Is(err, ErrStale) {
			r.Outcome = Stale
		}
	}
	if r.Outcome != NotNeeded && err != ErrClosed {
		f.reports = append(f.reports, r)
	}
	return r, a.unspilled, err
}

func (a *attempt) make() error {
	blocked, err := a.begin()
	if err != nil {
		return err
	}
	floor := a.at.floorWeight()
	if err := a.checkFloor(floor); err != nil {
		return err
	}
	if !a.aim(a.scale.weigh(floor.total()), blocked) {
		a.report.Outcome, a.report.Cause = Declined, ErrNoGain
		return nil
	}
	own := *a.at // what the strategy does to it stays with the strategy
	name, e, err := plan(a.f.ctx, a.f.h.opts.Strategy, &own, a.goal)
	a.report.Strategy = name
	failed := a.run.told(&a.report)
	if err == nil {
		a.summary = e.Summary
		a.unspilled, err = a.f.h.carryOut(a.at, &e, &a.report, a.accept)
	}
	if a.report.Outcome != Applied && a.f.ctx.Err() != nil {
		err = endOf(a.f.ctx)
	}
	a.f.h.remember(a, err, failed || err != nil && !isDecline(err))
	return a.conclude(err)
}

// begin takes down what the attempt goes by, and tells whether the breaker is
// open.
func (a *attempt) begin() (blocked bool, err error) {
	h := a.f.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return false, ErrClosed
	}
	h.measureBefore(&a.report)
	a.at, a.scale, a.marks = h.snapshot(), h.scale(), h.marks
	a.total = a.scale.upper()
	if a.reserve == nil {
		a.limit = a.marks.limit
	}
	a.minFree = 1
	if !a.asked {
		a.minFree = max(int64(h.limits.MinFree), 1)
	}
	a.run.base, a.run.sent = a.at, h.lastSent()
	a.run.status, a.run.window = h.status(), h.limits.Window
	return !a.asked && h.breaker.isOpen(h), nil
}

// checkFloor refuses to try when what no reduction may take is too much.
func (a *attempt) checkFloor(w floorWeight) error {
	if a.scale.weigh(w.total()) <= a.limit {
		return nil
	}
	e := &FloorError{
		Floor:    clampInt(a.scale.weigh(w.total())),
		Room:     clampInt(a.keep),
		Limit:    clampInt(a.limit + a.keep),
		Overhead: clampInt(a.scale.weigh(0)),
	}
	raw, weight := int64(0), a.scale.weigh(0)
	for _, share := range []struct {
		raw int64
		to  *int
	}{{w.system, &e.System}, {w.newest, &e.Newest}, {w.users, &e.Users}, {w.pinned, &e.Pinned}, {w.ephemeral, &e.Ephemeral}} {
		raw += share.raw
		*share.to = clampInt(a.scale.weigh(raw) - weight)
		weight = a.scale.weigh(raw)
	}
	if pool := a.f.h.opts.Budget; a.reserve != nil && pool != nil && a.limit < a.marks.limit {
		free := max(a.room+a.limit-a.scale.weigh(w.total()), 0) // when all else is given up
		return fmt.Errorf("%w (%w)", &BudgetError{Need: clampInt(a.room), Free: clampInt(free)}, e)
	}
	return e
}

// aim sets the goal, and reports whether there is enough to gain.
func (a *attempt) aim(floor int64, blocked bool) bool {
	counter := a.f.h.ident.counter
	a.goal = Goal{
		NoModel: blocked,
		Reason:  a.reason,
		Focus:   a.focus,
		Count:   func(text string) int { return clampInt(counter.text(text)) },
		run:     &a.run,
	}
	switch {
	case a.reason == ReasonTrigger:
		a.run.noGain = a.total-floor < a.minFree
	case a.total-max(floor, a.target) < a.minFree:
		if a.total <= a.limit {
			return false
		}
		a.run.noGain = true
		a.minFree = 1
	}
	a.goal.NoModel = blocked || a.run.noGain
	if a.reason != ReasonTrigger {
		a.goal.Target = clampInt(max(a.scale.holds(a.target), 0))
	}
	a.goal.MinFree = clampInt(a.scale.frees(a.minFree))
	if a.marks.low != noMark {
		a.run.low = max(a.scale.holds(a.marks.low), 1)
	}
	if a.limit != noMark {
		a.run.limit = max(a.scale.holds(a.limit), 1)
	}
	return true
}

// accept looks at what the edit has made of the view. It runs under the lock,
// and after nil the edit is in force.
func (a *attempt) accept(before, next *state) error {
	freed := before.raw() - next.raw()
	now := a.f.h.scaleOf(next)
	weight, limit := now.without(before.raw()-a.at.raw()).upper(), a.limit // of the request it was made for
	if a.reserve != nil {
		weight, limit = now.upper(), min(a.limit, a.f.h.marks.limit-a.keep)
	}
	switch {
	case freed < 0:
		return &RefusedError{Reason: fmt.Sprintf("the view would grow by %d tokens", -freed)}
	case a.total > a.limit && weight > limit:
		return &LimitError{Need: clampInt(weight), Limit: clampInt(limit)}
	}
	if err := a.summary.fit(freed, int64(a.goal.MinFree)); err != nil {
		return err
	}
	if freed == 0 && a.reason != ReasonTrigger {
		return ErrNoGain
	}
	if err := a.f.disarm(); err != nil {
		return err
	}
	if a.reserve != nil {
		if err := a.reserve(next); err != nil {
			return err
		}
	}
	a.f.h.focused.note(a.focus, a.f.h.appendedEver)
	return nil
}

// conclude makes an error of a decline that leaves the request too long.
func (a *attempt) conclude(err error) error {
	r := &a.report
	if isDecline(err) {
		r.Outcome, r.Cause, err = Declined, err, nil
	}
	if err != nil || r.Outcome != Declined || a.total <= a.limit || a.reserve == nil && r.Fits {
		return err
	}
	return fmt.Errorf("%w (%w)", &LimitError{Need: clampInt(a.total), Limit: clampInt(a.limit)}, r.Cause)
}

// focused remembers for what Compact was applied since the newest append.
type focused struct {
	appended int64 // History.appendedEver then
	by       []string
}

func (f *focused) note(focus string, appended int64) {
	if focus == "" {
		return
	}
	if f.appended != appended {
		*f = focused{appended: appended}
	}
	f.by = append(f.by, focus)
}

func (f *focused) has(focus string, appended int64) bool {
	return f.appended == appended && slices.Contains(f.by, focus)
}

// A breaker keeps a History from calling a summarizer that has failed, until
// enough was appended.
type breaker struct {
	failures int
	appended int64 // History.appendedEver at the last failure
}

// isOpen reports whether no model may be called now. The lock is held.
func (b *breaker) isOpen(h *History) bool {
	if b.failures == 0 {
		return false
	}
	wait := max(int64(h.limits.MinFree)/2, 1)
	most := max(int64(h.limits.High-h.limits.Low), wait)
	for range min(b.failures-1, 62) {
		wait = min(wait*2, most)
	}
	return h.scale().part(h.appendedEver-b.appended) < wait
}

// remember keeps what an attempt says about the summarizer, and looks whether
// the request fits by now.
func (h *History) remember(a *attempt, err error, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.report.Outcome != Applied {
		a.report.Fits = h.fits()
	}
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrClosed):
	case a.f.ctx.Err() == context.Canceled && a.report.Outcome != Applied:
		// The caller gave up, not the summarizer.
	case failed && !a.goal.NoModel:
		h.breaker.failures = min(h.breaker.failures+1, math.MaxInt32)
		h.breaker.appended = h.appendedEver
	case a.report.Outcome == Applied && !a.goal.NoModel:
		h.breaker = breaker{}
	}
}
