package convo

import "context"

// Fit makes room for n more tokens and reserves them in one step, or says
// exactly why it cannot and has deleted and reserved nothing. Use it before
// something large comes in, or to set a share of the window aside.
//
// With Options.Budget the tokens come out of the pool; without one out of the
// window: the limit is lower by n until Release. When there is room enough,
// nothing is compacted and the report says NotNeeded; otherwise the strategy
// works down to low water, or further where n needs it. When floor and n
// together are too much, the error is a [*FloorError], and a [*BudgetError] too
// where it is the pool that is short, and no strategy runs. A negative n is a
// [*ValueError].
func (h *History) Fit(ctx context.Context, n int) (*Reservation, Report, error) {
	if n < 0 {
		err := &ValueError{Name: "Fit", Value: n, Want: "0 or more tokens"}
		r, _ := h.ungone(ReasonFit, err)
		return nil, r, err
	}
	if h.ident == nil {
		r, err := h.ungone(ReasonFit, ErrClosed)
		return nil, r, err
	}
	if res, r, err := h.takeRoom(n); res != nil || err != nil {
		return res, r, err
	}
	var res *Reservation
	r, err := h.compactAsked(ctx, ReasonFit, func(f *flight) (r Report, err error) {
		if res, r, err = h.takeRoom(n); res != nil || err != nil {
			return r, err
		}
		want := h.needRoom(n, &res)
		if r, err = f.try(want); res != nil {
			return r, err
		}
		var now Report
		if res, now, _ = h.takeRoom(n); res != nil { // room came from elsewhere meanwhile
			return now, nil
		}
		if err == nil {
			err = &LimitError{Need: now.TokensAfter, Limit: clampInt(want.limit)}
		}
		return r, err
	})
	return res, r, err
}

// takeRoom reserves n tokens when they are free; it returns nil when they are
// not.
func (h *History) takeRoom(n int) (res *Reservation, r Report, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Reason = ReasonFit
	if h.ended() {
		h.measureBefore(&r)
		r.Outcome, r.Cause = Failed, ErrClosed
		return nil, r, ErrClosed
	}
	limit := h.marks.limit
	total := h.upper()
	switch {
	case total > limit:
	case h.opts.Budget != nil:
		res, _ = h.opts.Budget.Reserve(n)
	case limit == noMark || int64(n) <= limit-total:
		res = h.takeWindow(n)
	}
	h.measureBefore(&r)
	return res, r, nil
}

// takeWindow lowers the limit by n until Release.
func (h *History) takeWindow(n int) *Reservation {
	held := min(int64(n), maxTotal) // no sum of them overflows
	h.fitted += held
	h.mark()
	return &Reservation{history: h, tokens: n, held: held}
}

// needRoom says what it takes to reserve n tokens. The reservation is put into
// res in the step that makes the room.
func (h *History) needRoom(n int, res **Reservation) need {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.marks
	pool := h.opts.Budget
	want := need{reason: ReasonFit, asked: true, room: int64(n)}
	want.keep = want.room
	want.limit = m.limit - want.room
	want.reserve = func(*state) error {
		*res = h.takeWindow(n)
		return nil
	}
	if pool != nil {
		want.keep = 0
		want.limit = min(m.limit, h.charge-pool.deficit(n))
		want.reserve = func(next *state) error {
			if err := pool.exchange(&h.charge, h.scaleOf(next).upper(), n); err != nil {
				return err
			}
			*res = &Reservation{budget: pool, tokens: n}
			return nil
		}
	}
	want.target = min(m.low, want.limit)
	return want
}
