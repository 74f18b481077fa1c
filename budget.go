package convo

import (
	"math"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/sums"
)

// A Budget is a pool of tokens that several histories or sub-agents share. It is safe for
// concurrent use.
//
// A [History] with Options.Budget is charged the upper bound of its next request, which
// may overdraw the pool. A [Reservation] never takes more than is free. From an overdrawn
// pool nothing can be reserved until a compaction, Rollback, Release or Close frees
// enough.
type Budget struct {
	mu    sync.Mutex
	total int64

	// Protected by mu.
	reserved int64    // by reservations that were not released; at most total
	charged  sums.Sum // to histories
}

// NewBudget returns a pool of that many tokens. A negative number counts as 0.
func NewBudget(tokens int) *Budget {
	return &Budget{total: int64(max(tokens, 0))}
}

// Used returns how many tokens are reserved and charged. It is more than the
// size of the pool if the pool is overdrawn.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return clampInt(b.reserved + min(b.charged.Int64(), math.MaxInt64-b.reserved))
}

// Free returns how many tokens can be reserved. It is never negative.
func (b *Budget) Free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return clampInt(b.freeLocked())
}

func (b *Budget) freeLocked() int64 { return max(b.total-b.reserved-b.charged.Int64(), 0) }

// A Reservation holds tokens of a [Budget], or of the window of a [History], until
// Release. It is safe for concurrent use.
type Reservation struct {
	release func() // gives the tokens back; called once, with no lock held
	once    sync.Once
}

// Reserve takes n tokens out of the pool. If fewer are free, it takes none and returns an
// error that matches [ErrBudget]. A negative n is a [*ValueError]; 0 always succeeds.
func (b *Budget) Reserve(n int) (*Reservation, error) {
	if n < 0 {
		return nil, &ValueError{Name: "Reserve", Value: n, Want: "0 or more tokens"}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserveLocked(n)
}

// Release gives the tokens back. Calling it again, or on a nil Reservation, does nothing.
func (r *Reservation) Release() {
	if r == nil || r.release == nil {
		return
	}
	r.once.Do(r.release)
}

// reserveLocked reserves n tokens if they are free.
func (b *Budget) reserveLocked(n int) (*Reservation, error) {
	if free := b.freeLocked(); int64(n) > free {
		return nil, &budgetError{Need: n, Free: clampInt(free)}
	}
	b.reserved += int64(n)
	return &Reservation{release: func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reserved -= int64(n)
	}}, nil
}

// An account is what a Budget charges one History.
type account struct {
	pool    *Budget
	charged int64 // protected by pool.mu
	closed  bool  // nothing is charged any more; protected by pool.mu
}

// set sets the charge to the present size of the History, even if that overdraws the pool.
func (a *account) set(now int64) {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	if !a.closed {
		a.pool.setChargeLocked(a, now)
	}
}

// close gives the charge back. a may be nil.
func (a *account) close() {
	if a == nil {
		return
	}
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	a.pool.setChargeLocked(a, 0)
	a.closed = true
}

// setChargeLocked replaces a charge in the sum of all charges. A negative one counts as 0.
func (b *Budget) setChargeLocked(a *account, now int64) {
	now = max(now, 0)
	b.charged.Add(now - a.charged)
	a.charged = now
}

// reserve sets the charge, as set does, and reserves n tokens. If n tokens are not free then,
// it returns an error and does neither.
func (a *account) reserve(now int64, n int) (*Reservation, error) {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	was := a.charged
	a.pool.setChargeLocked(a, now)
	r, err := a.pool.reserveLocked(n)
	if err != nil {
		a.pool.setChargeLocked(a, was)
	}
	return r, err
}

// most returns the largest charge with which n tokens can be reserved. It may be negative.
func (a *account) most(n int) int64 {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	charged := a.pool.charged.Int64()
	return a.charged - (min(int64(n)-(a.pool.total-a.pool.reserved), math.MaxInt64-charged) + charged)
}
