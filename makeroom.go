package convo

import "context"

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
		return &BudgetError{Need: n, Free: pool.Free()}
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
	r.Reason = ReasonRoom
	if h.isClosed() {
		h.measureBeforeLocked(&r)
		r.Outcome, r.Cause, r.Fits = OutcomeFailed, ErrClosed, false
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
	h.measureBeforeLocked(&r)
	return res, r, nil
}

// reserveWindowLocked lowers the limit by n until Release.
func (h *History) reserveWindowLocked(n int) *Reservation {
	h.meter.reserve(n)
	return &Reservation{tokens: n, release: func() {
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
