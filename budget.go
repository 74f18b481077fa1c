package convo

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// Limits says how large a request may be. All sizes are in tokens of the whole
// request, and [Estimate].Upper is compared with them. With the defaults in place,
// Low < Soft <= High <= Window - Reserve and MinFree <= Soft - Low must hold. A
// negative value is an error, except for Reserve.
type Limits struct {
	// Window is the context window of the model. 0: there is no limit.
	Window int

	// Reserve is kept free for the answer. 0: an eighth of Window, at most
	// 16,000; negative: none. It means nothing without a Window.
	Reserve int

	// Tools is what a request carries besides the messages, such as tool
	// definitions; ToolTokens of package wire counts them. It is a first guess,
	// which usage reports correct.
	Tools int

	// High is the size above which CompactIfNeeded starts a compaction. 0:
	// Window - Reserve. It may be set without a Window.
	High int

	// Low is the size that a compaction aims at. 0: half of High.
	Low int

	// Soft is the size above which CompactInBackground starts a compaction. 0:
	// midway between Low and High.
	Soft int

	// MinFree is the least that a compaction must free to be worth its cost. 0:
	// a quarter of High - Low, at most Soft - Low; 1,000 with neither Window nor
	// High.
	MinFree int
}

// limit returns how large a request may be, 0 without a Window.
func (l Limits) limit() int { return l.Window - l.Reserve }

// most returns the limit, or High without a Window; 0 with neither.
func (l Limits) most() int64 {
	if l.Window > 0 {
		return int64(l.limit())
	}
	return int64(l.High)
}

// withDefaults returns l with its defaults in place and Reserve never negative,
// and a *ValueError for each fault.
func (l Limits) withDefaults() (Limits, []error) {
	var faults []error
	fault := func(name string, value any, want string, args ...any) {
		faults = append(faults, &ValueError{Name: name, Value: value, Want: fmt.Sprintf(want, args...)})
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"Window", l.Window}, {"Tools", l.Tools}, {"High", l.High}, {"Low", l.Low}, {"Soft", l.Soft}, {"MinFree", l.MinFree}} {
		if f.value < 0 {
			fault("Limits."+f.name, f.value, "0 or more")
		}
	}
	if l.Window > 0 && l.Reserve >= l.Window {
		fault("Limits.Reserve", l.Reserve, "less than Window, which is %d", l.Window)
	}
	if len(faults) > 0 {
		return l, faults
	}

	set := l
	switch {
	case l.Reserve < 0 || l.Window == 0:
		l.Reserve = 0
	case l.Reserve == 0:
		l.Reserve = min(l.Window/8, 16_000)
	}
	if l.High == 0 {
		l.High = l.limit()
	}
	if l.High == 0 { // neither Window nor High is set
		if l.Low != 0 || l.Soft != 0 {
			fault("Limits", set.list("Low", "Soft"), "Window or High set too")
		}
		l.MinFree = cmp.Or(l.MinFree, 1000)
		return l, faults
	}
	l.Low = cmp.Or(l.Low, l.High/2)
	l.Soft = cmp.Or(l.Soft, l.Low+(l.High-l.Low+1)/2)
	l.MinFree = cmp.Or(l.MinFree, min((l.High-l.Low)/4, max(l.Soft-l.Low, 0)))
	if rules, names := l.clashes(set); len(rules) > 0 {
		fault("Limits", set.list(names...), "%s", strings.Join(rules, "; "))
	}
	return l, faults
}

// clashes returns the rules that l breaks, which has its defaults in place, and
// the names of the limits in these rules. set holds the limits without defaults:
// where possible, the rules name only limits that the caller has set.
func (l Limits) clashes(set Limits) (rules, names []string) {
	if set.Low == 0 && set.Soft != 0 && l.Soft <= l.Low {
		rules = append(rules, fmt.Sprintf("Low < Soft, with the default Low of %d", l.Low))
		names = append(names, "Soft")
	}
	type limit struct {
		name  string
		value int
		isSet bool
	}
	ascending := slices.DeleteFunc([]limit{
		{"Low", l.Low, set.Low != 0},
		{"Soft", l.Soft, set.Soft != 0},
		{"High", l.High, set.High != 0},
		{"Window", l.limit(), set.Window != 0},
	}, func(m limit) bool { return !m.isSet })
	for i := range max(len(ascending)-1, 0) {
		a, b := ascending[i], ascending[i+1]
		sign, least := "<=", a.value
		if a.name == "Low" {
			sign, least = "<", a.value+1
		}
		if b.value >= least {
			continue
		}
		rule := fmt.Sprintf("%s %s %s", a.name, sign, b.name)
		names = append(names, a.name, b.name)
		if b.name == "Window" {
			names = append(names, "Reserve")
			rule += fmt.Sprintf(" - Reserve, which is %d", b.value)
			if set.Reserve == 0 {
				rule += fmt.Sprintf(" with the default Reserve of %d", l.Reserve)
			}
		}
		rules = append(rules, rule)
	}
	if l.Low < l.Soft && l.MinFree > l.Soft-l.Low {
		rule := fmt.Sprintf("MinFree <= Soft - Low, which is %d", l.Soft-l.Low)
		switch {
		case set.Soft == 0 && set.Low == 0:
			rule += fmt.Sprintf(" with the default Soft of %d and Low of %d", l.Soft, l.Low)
		case set.Soft == 0:
			rule += fmt.Sprintf(" with the default Soft of %d", l.Soft)
		case set.Low == 0:
			rule += fmt.Sprintf(" with the default Low of %d", l.Low)
		}
		rules = append(rules, rule)
		names = append(names, "MinFree", "Soft", "Low")
	}
	return rules, names
}

// A limitsText is some limits as an error prints them, without quotes.
type limitsText string

// list returns the named limits that are not 0 as text, in the order of the
// fields.
func (l Limits) list(names ...string) limitsText {
	var fields []string
	for _, f := range []struct {
		name  string
		value int
	}{{"Window", l.Window}, {"Reserve", l.Reserve}, {"High", l.High}, {"Low", l.Low}, {"Soft", l.Soft}, {"MinFree", l.MinFree}} {
		if f.value != 0 && slices.Contains(names, f.name) {
			fields = append(fields, fmt.Sprintf("%s: %d", f.name, f.value))
		}
	}
	return limitsText("{" + strings.Join(fields, ", ") + "}")
}

// A Budget is a pool of tokens that several histories or sub-agents share. It is
// safe for concurrent use.
//
// A [History] with Options.Budget is charged the upper bound of its next request,
// and anything else may hold a [Reservation]. Reserving never takes more than is
// free. The charge of a History, however, follows its estimate and may overdraw
// the pool; then nothing can be reserved until enough is given back by a
// compaction, Rollback, Release or Close.
type Budget struct {
	mu    sync.Mutex
	total int64

	// Protected by mu.
	reserved int64  // by reservations that were not released; at most total
	charged  sum128 // to histories
}

// A sum128 is a sum of amounts from 0 to MaxInt64 that does not overflow.
type sum128 struct{ high, low uint64 }

// add adds an amount.
func (s *sum128) add(n int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(n), 0)
	s.high += carry
}

// sub subtracts an amount that was added.
func (s *sum128) sub(n int64) {
	var borrow uint64
	s.low, borrow = bits.Sub64(s.low, uint64(n), 0)
	s.high -= borrow
}

// int64 returns the sum, or MaxInt64 if it is more.
func (s sum128) int64() int64 {
	if s.high > 0 {
		return math.MaxInt64
	}
	return int64(min(s.low, math.MaxInt64))
}

// NewBudget returns a pool of that many tokens. A negative number counts as 0.
func NewBudget(tokens int) *Budget {
	return &Budget{total: int64(max(tokens, 0))}
}

// Total returns the size of the pool.
func (b *Budget) Total() int { return clampInt(b.total) }

// Used returns how many tokens are reserved and charged. It is more than Total if
// the pool is overdrawn.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return clampInt(b.reserved + min(b.charged.int64(), math.MaxInt64-b.reserved))
}

// Free returns how many tokens can be reserved. It is never negative.
func (b *Budget) Free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return clampInt(b.freeLocked())
}

func (b *Budget) freeLocked() int64 { return max(b.total-b.reserved-b.charged.int64(), 0) }

// A Reservation holds tokens of a [Budget], or of the window of a [History], until
// Release. It is safe for concurrent use.
type Reservation struct {
	tokens  int
	release func() // gives the tokens back; called once, with no lock held
	once    sync.Once
}

// Reserve takes n tokens out of the pool. If fewer are free, it takes none and
// returns a [*BudgetError]. A negative n is a [*ValueError]; 0 can always be
// reserved.
func (b *Budget) Reserve(n int) (*Reservation, error) {
	if n < 0 {
		return nil, &ValueError{Name: "Reserve", Value: n, Want: "0 or more tokens"}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if int64(n) > b.freeLocked() {
		return nil, &BudgetError{Need: n, Free: clampInt(b.freeLocked())}
	}
	return b.reserveLocked(n), nil
}

// Tokens returns how many tokens were reserved.
func (r *Reservation) Tokens() int { return r.tokens }

// Release gives the tokens back. Calling it again, or on a nil Reservation, does
// nothing.
func (r *Reservation) Release() {
	if r == nil || r.release == nil {
		return
	}
	r.once.Do(r.release)
}

// reserveLocked reserves n tokens, which must be free.
func (b *Budget) reserveLocked(n int) *Reservation {
	b.reserved += int64(n)
	return &Reservation{tokens: n, release: func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reserved -= int64(n)
	}}
}

// exchange sets a charge to its new value and reserves n tokens, or returns an
// error and does neither.
func (b *Budget) exchange(charge *int64, now int64, n int) (*Reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := *charge
	b.setChargeLocked(charge, now)
	if free := b.freeLocked(); int64(n) > free {
		b.setChargeLocked(charge, was)
		return nil, &BudgetError{Need: n, Free: clampInt(free)}
	}
	return b.reserveLocked(n), nil
}

// deficit returns how many tokens are missing to reserve n. It is negative if more
// than n are free.
func (b *Budget) deficit(n int) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	charged := b.charged.int64()
	return min(int64(n)-(b.total-b.reserved), math.MaxInt64-charged) + charged
}

// follow sets a charge to its new value.
func (b *Budget) follow(charge *int64, now int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.setChargeLocked(charge, now)
}

// setChargeLocked sets a charge to its new value, at least 0.
func (b *Budget) setChargeLocked(charge *int64, now int64) {
	now = max(now, 0)
	b.charged.sub(*charge)
	b.charged.add(now)
	*charge = now
}

// marks are limits less what Fit has reserved, in tokens of the whole request. A
// mark that does not exist is noMark.
type marks struct {
	limit, high, soft, low int64
}

const (
	noMark    = math.MaxInt64
	noVersion = math.MaxUint64
)

// markLocked recomputes the marks.
func (h *History) markLocked() {
	m := marks{noMark, noMark, noMark, noMark}
	if h.limits.Window > 0 {
		m.limit = max(int64(h.limits.limit())-h.fitted.int64(), 0)
	}
	m.high, m.soft, m.low = m.limit, m.limit, m.limit
	if h.limits.High > 0 {
		m.high = min(m.limit, int64(h.limits.High))
		m.soft = min(m.limit, int64(h.limits.Soft))
		m.low = min(m.limit, int64(h.limits.Low))
	}
	h.marks = m
}

// orZero returns a mark as it is in a Status, where 0 says that there is none.
func orZero(mark int64) int {
	if mark == noMark {
		return 0
	}
	return clampInt(mark)
}
