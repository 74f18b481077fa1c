package cost

import (
	"time"

	"github.com/seed-c1b73e60/convo"
)

// An Item is a message for billing. Two messages are the same to the provider's
// cache if their keys are equal.
type Item struct {
	Key    uint64
	Tokens int
}

// A Cache describes a provider's prompt cache.
type Cache struct {
	Min int           // shorter prefixes are not read from the cache, shorter requests not written to it
	TTL time.Duration // the cache is empty after a longer pause; 0 means never
}

// defaultCache is the cache of the tables: 1,024 tokens, no expiry.
var defaultCache = Cache{Min: 1024}

// Prices are prices of one token, in units of an uncached input token.
type Prices struct {
	Name                          string
	Read, Write, Uncached, Output float64
}

// Profiles returns the price profiles of the tables. They follow the price lists of
// providers in 2026, with uncached input at 1.
func Profiles() []Prices {
	return []Prices{
		{Name: "anthropic-5m", Read: 0.1, Write: 1.25, Uncached: 1, Output: 5},
		{Name: "openai-like", Read: 0.1, Write: 1, Uncached: 1, Output: 5},
		{Name: "deepseek-like", Read: 0.25, Write: 1, Uncached: 1, Output: 5},
	}
}

// request returns the price of a request, without its answer. Its first shared
// tokens are the same as in the request before.
func (p Prices) request(c Cache, shared, tokens int) float64 {
	b := c.split(shared, tokens)
	return p.Read*float64(b.Read) + p.Write*float64(b.Write) + p.Uncached*float64(b.Uncached)
}

// A Bill holds the number of tokens at each price.
type Bill struct{ Read, Write, Uncached, Output int64 }

// Units returns what the tokens cost.
func (b Bill) Units(p Prices) float64 {
	return p.Read*float64(b.Read) + p.Write*float64(b.Write) + p.Uncached*float64(b.Uncached) + p.Output*float64(b.Output)
}

func (b Bill) plus(o Bill) Bill {
	return Bill{b.Read + o.Read, b.Write + o.Write, b.Uncached + o.Uncached, b.Output + o.Output}
}

// split returns the bill of one request without its answer.
func (c Cache) split(shared, tokens int) Bill {
	if shared < c.Min {
		shared = 0
	}
	b := Bill{Read: int64(shared)}
	if tokens < c.Min {
		b.Uncached = int64(tokens - shared)
	} else {
		b.Write = int64(tokens - shared)
	}
	return b
}

// A Tally is the result of a replay.
type Tally struct {
	Requests int
	Rewrites int   // requests that do not begin with the whole request before
	Over     int   // requests above the limit
	Input    int64 // tokens of all requests
	Later    int64 // Input without the first request of each conversation
	Shared   int64 // the part of Later that repeats the beginning of the request before
	Last     int64 // tokens of the last request of each conversation

	Bill      // the requests of the conversation
	Side Bill // the requests for summaries
}

// Units returns what everything cost, including summaries.
func (t Tally) Units(p Prices) float64 { return t.Bill.plus(t.Side).Units(p) }

// Mean returns the mean number of tokens of a request.
func (t Tally) Mean() float64 { return ratio(t.Input, int64(t.Requests)) }

// HitRate returns the fraction of the input that was read from the cache.
func (t Tally) HitRate() float64 { return ratio(t.Read, t.Input) }

// Reuse returns the fraction of the input that repeats the beginning of the
// request before, not counting first requests.
func (t Tally) Reuse() float64 { return ratio(t.Shared, t.Later) }

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func (t Tally) plus(o Tally) Tally {
	return Tally{
		Requests: t.Requests + o.Requests,
		Rewrites: t.Rewrites + o.Rewrites,
		Over:     t.Over + o.Over,
		Input:    t.Input + o.Input,
		Later:    t.Later + o.Later,
		Shared:   t.Shared + o.Shared,
		Last:     t.Last + o.Last,
		Bill:     t.Bill.plus(o.Bill),
		Side:     t.Side.plus(o.Side),
	}
}

// A Meter bills one conversation, request by request.
type Meter struct {
	Cache Cache
	Limit int
	Tally

	last []Item
	idle time.Duration
	sent func() // called after each request, if it is not nil
}

// Wait adds a pause before the next request.
func (m *Meter) Wait(d time.Duration) { m.idle += d }

// Cold reports whether the cache has expired.
func (m *Meter) Cold() bool { return m.Cache.TTL > 0 && m.idle > m.Cache.TTL }

// Request bills a request of the conversation with its answer.
func (m *Meter) Request(view []Item, output int) convo.Usage {
	same, shared, tokens := compare(m.last, view)
	first := m.Requests == 0
	m.Requests++
	m.Input += int64(tokens)
	m.Last = int64(tokens)
	if !first {
		m.Later += int64(tokens)
		m.Shared += int64(shared)
		if same < len(m.last) {
			m.Rewrites++
		}
	}
	if tokens > m.Limit {
		m.Over++
	}
	if m.Cold() {
		shared = 0
	}
	b := m.Cache.split(shared, tokens)
	b.Output = int64(output)
	m.Bill = m.Bill.plus(b)
	m.last, m.idle = view, 0
	if m.sent != nil {
		m.sent()
	}
	return convo.Usage{Input: tokens, CacheRead: int(b.Read), CacheWrite: int(b.Write), Output: output}
}

// Ride bills a request for a summary that begins with the last request of the
// conversation, so that it can be read from the cache.
func (m *Meter) Ride(view []Item, output int) {
	_, shared, tokens := compare(m.last, view)
	if m.Cold() {
		shared = 0
	}
	b := m.Cache.split(shared, tokens)
	b.Output = int64(output)
	m.Side = m.Side.plus(b)
	m.idle = 0
}

// Apart bills a separate request for a summary, which does not use the cache.
func (m *Meter) Apart(tokens, output int) {
	m.Side = m.Side.plus(Bill{Uncached: int64(tokens), Output: int64(output)})
}

// compare returns the number of items that two requests have in common at the
// beginning, the tokens of these items, and the tokens of the newer request.
func compare(older, newer []Item) (same, shared, tokens int) {
	for same < min(len(older), len(newer)) && older[same].Key == newer[same].Key {
		shared += newer[same].Tokens
		same++
	}
	for _, it := range newer {
		tokens += it.Tokens
	}
	return same, shared, tokens
}
