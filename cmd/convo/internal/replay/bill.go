package replay

import "github.com/seed-c1b73e60/convo"

// An item is a part of a request. Two items are the same to a provider's cache if their keys
// are equal.
type item struct {
	key    uint64
	tokens int
}

// headKey is the key of the first item of each request. Those of messages are lower, or
// hashes.
const headKey = 1 << 62

// A line holds the items of the next request of a policy. It remembers how much of their
// beginning was in the request before, so that a request takes constant time unless
// something other than the end has changed.
type line struct {
	items   []item
	onlySum bool // items are not kept, since none is ever replaced
	count   int  // of items
	sum     int  // tokens of all items

	sent       int // number of items of the request before
	same       int // number of items at the beginning that the request before has
	sameTokens int
}

func newLine(head []item, onlySum bool) *line {
	l := &line{onlySum: onlySum}
	for _, it := range head {
		l.grow(it)
	}
	return l
}

// grow adds an item at the end.
func (l *line) grow(it item) {
	if !l.onlySum {
		l.items = append(l.items, it)
	}
	l.count++
	l.sum += it.tokens
}

// replace puts other items in the place of all. It returns the tokens of those at the
// beginning that stay.
func (l *line) replace(items []item) (kept int) {
	same := 0
	for same < min(len(l.items), len(items)) && l.items[same].key == items[same].key {
		kept += items[same].tokens
		same++
	}
	if same < l.same {
		l.same, l.sameTokens = same, kept
	}
	l.items, l.count, l.sum = items, len(items), 0
	for _, it := range items {
		l.sum += it.tokens
	}
	return kept
}

// A charge is how the input of one request is billed.
type charge struct {
	total  int
	shared int  // of total: repeats the beginning of the request before
	isNew  bool // the request does not begin with the whole request before

	fresh, cached, written int
}

// request returns the charge of a request with the present items.
func (l *line) request(isCold bool, cacheMin int) charge {
	c := charge{total: l.sum, shared: l.sameTokens, isNew: l.same < l.sent}
	l.sent, l.same, l.sameTokens = l.count, l.count, l.sum
	c.cached = c.shared
	if isCold || c.cached < cacheMin {
		c.cached = 0
	}
	if c.total < cacheMin {
		c.fresh = c.total - c.cached
	} else {
		c.written = c.total - c.cached
	}
	return c
}

// A Bill is what the requests of a policy come to, in estimated tokens.
type Bill struct {
	Largest     int     `json:"largest"`
	Input       int64   `json:"input"`
	Over        int     `json:"over"`       // requests larger than the window
	OverLimit   int     `json:"over_limit"` // requests larger than the window without the reserve
	Compactions int     `json:"compactions"`
	Rewrites    int     `json:"rewrites"` // requests that do not begin with the whole request before
	Later       int64   `json:"later"`    // Input without the first request of each session
	Shared      int64   `json:"shared"`   // of Later: repeats the beginning of the request before
	New         int64   `json:"new"`      // of Input: neither read from the cache nor written to it
	Cached      int64   `json:"cached"`   // of Input: read from the cache
	Written     int64   `json:"written"`  // of Input: written to the cache
	Money       float64 `json:"money,omitempty"`
}

func (b *Bill) add(c charge, window, limit int, isFirst bool) {
	b.Largest = max(b.Largest, c.total)
	b.Input += int64(c.total)
	b.New += int64(c.fresh)
	b.Cached += int64(c.cached)
	b.Written += int64(c.written)
	if c.total > window {
		b.Over++
	}
	if c.total > limit {
		b.OverLimit++
	}
	if isFirst {
		return
	}
	b.Later += int64(c.total)
	b.Shared += int64(c.shared)
	if c.isNew {
		b.Rewrites++
	}
}

// Kept returns the share of the requests' tokens that repeats the beginning of the request
// before, the first request of each session left aside.
func (b *Bill) Kept() float64 {
	if b.Later == 0 {
		return 0
	}
	return float64(b.Shared) / float64(b.Later)
}

func (b *Bill) plus(o *Bill) {
	b.Largest = max(b.Largest, o.Largest)
	b.Input += o.Input
	b.Over += o.Over
	b.OverLimit += o.OverLimit
	b.Compactions += o.Compactions
	b.Rewrites += o.Rewrites
	b.Later += o.Later
	b.Shared += o.Shared
	b.New += o.New
	b.Cached += o.Cached
	b.Written += o.Written
	b.Money += o.Money
}

// Measured is what the provider reported for the requests at the time.
type Measured struct {
	Requests int     `json:"requests"`
	Largest  int     `json:"largest"`
	Input    int64   `json:"input"`
	Over     int     `json:"over"` // requests larger than the window
	New      int64   `json:"new"`
	Cached   int64   `json:"cached"`
	Written  int64   `json:"written"`
	Output   int64   `json:"output"`
	Money    float64 `json:"money,omitempty"`
}

func (m *Measured) add(u *convo.Usage, window int, p Price, isPriced bool) {
	size := sizeOf(u)
	cached := min(max(u.CacheRead, 0), max(u.Input, 0))
	written := min(max(u.CacheWrite, 0), max(u.Input, 0)-cached)
	fresh := max(u.Input, 0) - cached - written
	m.Requests++
	m.Largest = max(m.Largest, size)
	m.Input += int64(max(u.Input, 0))
	m.New += int64(fresh)
	m.Cached += int64(cached)
	m.Written += int64(written)
	m.Output += int64(max(u.Output, 0))
	if size > window {
		m.Over++
	}
	if isPriced {
		m.Money += p.of(int64(fresh), int64(cached), int64(written), int64(max(u.Output, 0)))
	}
}

func (m *Measured) plus(o *Measured) {
	m.Requests += o.Requests
	m.Largest = max(m.Largest, o.Largest)
	m.Input += o.Input
	m.Over += o.Over
	m.New += o.New
	m.Cached += o.Cached
	m.Written += o.Written
	m.Output += o.Output
	m.Money += o.Money
}
