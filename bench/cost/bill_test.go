package cost

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
)

func items(tokens ...int) []Item {
	out := make([]Item, len(tokens))
	for i, n := range tokens {
		out[i] = Item{Key: uint64(n), Tokens: n}
	}
	return out
}

func TestMeter(t *testing.T) {
	m := &Meter{Cache: Cache{Min: 100, TTL: time.Minute}, Limit: 300}
	anthropic := Profiles()[0]
	for _, step := range []struct {
		name   string
		idle   time.Duration
		view   []Item
		output int
		want   Bill
		shared int64
		units  float64 // of this step
	}{
		{"too short for the cache", 0, items(40, 20), 10, Bill{Uncached: 60, Output: 10}, 0, 60 + 50},
		{"written", 0, items(40, 20, 90), 10, Bill{Write: 150, Output: 10}, 60, 150*1.25 + 50},
		{"read and written", 0, items(40, 20, 90, 50), 10, Bill{Read: 150, Write: 50, Output: 10}, 150, 15 + 62.5 + 50},
		{"a pause as long as the time to live", time.Minute, items(40, 20, 90, 50, 10), 0, Bill{Read: 200, Write: 10}, 200, 20 + 12.5},
		{"a longer one", time.Minute + 1, items(40, 20, 90, 50, 10, 30), 0, Bill{Write: 240}, 210, 300},
		{"rewritten behind a prefix that is too short to read", 0, items(40, 90, 50), 0, Bill{Write: 180}, 40, 225},
		{"rewritten behind a prefix", 0, items(40, 90, 60), 0, Bill{Read: 130, Write: 60}, 130, 13 + 75},
		{"a prefix that is too short, request too", 0, items(40), 1, Bill{Uncached: 40, Output: 1}, 40, 45},
	} {
		before := m.Tally
		m.Wait(step.idle)
		u := m.Request(step.view, step.output)
		got := Bill{m.Read - before.Read, m.Write - before.Write, m.Uncached - before.Uncached, m.Output - before.Output}
		assert.Equal(t, step.want, got, step.name)
		assert.Equal(t, step.shared, m.Shared-before.Shared, step.name)
		assert.InDelta(t, step.units, m.Units(anthropic)-before.Units(anthropic), 1e-9, step.name)
		assert.Equal(t, convo.Usage{Input: sum(step.view), CacheRead: int(got.Read), CacheWrite: int(got.Write), Output: step.output}, u, step.name)
	}
	assert.Equal(t, 8, m.Requests)
	assert.Equal(t, 3, m.Rewrites)
	assert.Equal(t, 0, m.Over)
	assert.Equal(t, int64(60+150+200+210+240+180+190+40), m.Input)
	assert.Equal(t, m.Input-60, m.Later)
	assert.InDelta(t, float64(m.Input)/8, m.Mean(), 1e-9)

	m.Request(items(301), 0)
	assert.Equal(t, 1, m.Over)
	m.Ride(items(301, 20), 5)
	assert.Equal(t, Bill{Read: 301, Write: 20, Output: 5}, m.Side)
	m.Apart(70, 5)
	assert.Equal(t, Bill{Read: 301, Write: 20, Uncached: 70, Output: 10}, m.Side)
}
