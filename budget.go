package convo

import (
	"cmp"
	"fmt"
	"math"
	"sync"
)

// Limits say how large a request may be. All figures are tokens of the whole
// request, and are compared with [Estimate].Upper. Low < Soft <= High <=
// Window - Reserve and MinFree <= Soft - Low must hold, after the defaults.
type Limits struct {
	Window   int // of the model; 0: no limit
	Reserve  int // kept free for the answer; 0: an eighth of Window, at most 16,000; negative: none
	Overhead int // what a request carries beside the messages (tool schemas; package wire has ToolTokens), a first guess until usage is reported
	High     int // above it CompactIfNeeded starts; 0: Window - Reserve; may be set without a Window
	Low      int // down to it a compaction works; 0: half of High
	Soft     int // above it CompactInBackground starts; 0: midway between Low and High
	MinFree  int // least that is worth a compaction; 0: a quarter of High - Low, at most Soft - Low; 1,000 without a High
}

// limit is what a request may weigh, 0 without a Window.
func (l Limits) limit() int { return l.Window - l.Reserve }

// most is what a request may weigh by any limit, 0 for no bound.
func (l Limits) most() int64 {
	if l.Window > 0 {
		return int64(l.limit())
	}
	return int64(l.High)
}

// withDefaults returns l with every default in place, Reserve never negative,
// and all that is wrong with it.
func (l Limits) withDefaults() (Limits, []error) {
	var faults []error
	fault := func(name string, value int, want string, args ...any) {
		faults = append(faults, &ValueError{Name: "Limits." + name, Value: value, Want: fmt.Sprintf(want, args...)})
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"Window", l.Window}, {"Overhead", l.Overhead}, {"High", l.High}, {"Low", l.Low}, {"Soft", l.Soft}, {"MinFree", l.MinFree}} {
		if f.value < 0 {
			fault(f.name, f.value, "0 or more")
		}
	}
	if l.Window > 0 && l.Reserve >= l.Window {
		fault("Reserve", l.Reserve, "less than Window, %d", l.Window)
	}
	if len(faults) > 0 {
		return l, faults
	}

	switch {
	case l.Reserve < 0 || l.Window == 0:
		l.Reserve = 0
	case l.Reserve == 0:
		l.Reserve = min(l.Window/8, 16_000)
	}
	if l.High == 0 {
		l.High = l.limit()
	}
	if l.High == 0 { // nothing sets a mark
		for _, f := range []struct {
			name  string
			value int
		}{{"Low", l.Low}, {"Soft", l.Soft}} {
			if f.value != 0 {
				fault(f.name, f.value, "0 without a Window or High")
			}
		}
		l.MinFree = cmp.Or(l.MinFree, 1000)
		return l, faults
	}
	if l.Window > 0 && l.High > l.limit() {
		fault("High", l.High, "at most Window - Reserve, %d", l.limit())
	}
	l.Low = cmp.Or(l.Low, l.High/2)
	l.Soft = cmp.Or(l.Soft, l.Low+(l.High-l.Low+1)/2)
	l.MinFree = cmp.Or(l.MinFree, min((l.High-l.Low)/4, max(l.Soft-l.Low, 0)))
	if l.Soft <= l.Low {
		fault("Soft", l.Soft, "more than Low, %d", l.Low)
	}
	if l.Soft > l.High {
		fault("Soft", l.Soft, "at most High, %d", l.High)
	}
	if l.Soft > l.Low && l.MinFree > l.Soft-l.Low {
		fault("MinFree", l.MinFree, "at most Soft - Low, %d", l.Soft-l.Low)
	}
	return l, faults
}

// A Budget is a pool of tokens that several histories or sub-agents draw on.
// Each [History] that has it in its options is charged what its next request
// weighs at most; others hold a [Reservation]. It is safe for concurrent use.
//
// Reservations never overcommit the pool. The charge of a History follows its
// estimate and may overdraw the pool: then nothing is free until a reduction,
// a rollback, a Release or a Close pays back.
type Budget struct {
	mu    sync.Mutex
	total int64

	reserved, charged int64 // sums of live reservations, never above total, and of charges
}

// NewBudget makes a pool of so many tokens; of none, when it is negative.
func NewBudget(tokens int) *Budget {
	return &Budget{total: int64(max(tokens, 0))}
}

// Total returns the size of the pool.
func (b *Budget) Total() int { return clampInt(b.total) }

// Used returns what is reserved and charged. It is more than Total when the
// pool is overdrawn.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return clampInt(b.reserved + min(b.charged, math.MaxInt64-b.reserved))
}

// Free returns what can be reserved, never less than 0.
func (b *Budget) Free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return clampInt(b.free())
}

func (b *Budget) free() int64 { return max(b.total-b.reserved-b.charged, 0) }

// A Reservation is a share of a [Budget], or of the window of a [History],
// held until Release. It is safe for concurrent use.
type Reservation struct {
	budget  *Budget
	history *History
	tokens  int
	held    int64 // of the history's window
	once    sync.Once
}

// Reserve takes n tokens out of the pool, all or none. It returns a
// [*BudgetError] when fewer are free, and a [*ValueError] for a negative n;
// 0 can always be reserved.
func (b *Budget) Reserve(n int) (*Reservation, error) {
	if n < 0 {
		return nil, &ValueError{Name: "Reserve", Value: n, Want: "0 or more tokens"}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if int64(n) > b.free() {
		return nil, &BudgetError{Need: n, Free: clampInt(b.free())}
	}
	b.reserved += int64(n)
	return &Reservation{budget: b, tokens: n}, nil
}

// Tokens returns how many tokens were reserved.
func (r *Reservation) Tokens() int { return r.tokens }

// Release gives the tokens back. It does so once, however often it is called;
// on nil it does nothing.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.once.Do(func() {
		if b := r.budget; b != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reserved -= int64(r.tokens)
		}
		if h := r.history; h != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.fitted -= r.held
			h.mark()
		}
	})
}

// exchange moves a charge to what it is now and takes n tokens, both or
// neither.
func (b *Budget) exchange(charge *int64, now int64, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if free := max(b.total-b.reserved-(b.charged-*charge+now), 0); int64(n) > free {
		return &BudgetError{Need: n, Free: clampInt(free)}
	}
	b.reserved += int64(n)
	b.charged += now - *charge
	*charge = now
	return nil
}

// deficit is how many tokens short the pool is of n, below 0 when it has more.
func (b *Budget) deficit(n int) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(int64(n)-(b.total-b.reserved), math.MaxInt64-b.charged) + b.charged
}

// follow moves a charge to what it should be now.
func (b *Budget) follow(charge *int64, now int64) {
	now = min(now, math.MaxInt64/1024) // no sum of charges overflows
	b.mu.Lock()
	defer b.mu.Unlock()
	b.charged += now - *charge
	*charge = now
}
