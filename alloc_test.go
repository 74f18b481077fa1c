package convo_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
)

// measureAllocs returns allocations and bytes for each of n steps.
func measureAllocs(n int, f func()) (allocs, bytes float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
}

// The first number to hold of an append: at most 2 allocations and 256 bytes
// beyond the message, and 1 allocation more with a snapshot after each.
func TestAppend_Allocations(t *testing.T) {
	const n = 100_000
	allocs, bytes := measureAllocs(n, func() { appendN(n, nil) })
	t.Logf("%.2f allocations, %.0f bytes an append", allocs, bytes)
	assert.LessOrEqual(t, allocs, 2.0)
	assert.LessOrEqual(t, bytes, 256.0)

	with, _ := measureAllocs(n, func() { appendN(n, func(h *convo.History) { h.Snapshot() }) })
	t.Logf("%.2f allocations with a snapshot", with)
	assert.LessOrEqual(t, with, allocs+1.01)
}

func TestReading_DoesNotAllocate(t *testing.T) {
	h := appendN(1000, nil)
	h.Snapshot()
	for name, f := range map[string]func(){
		"Snapshot": func() { h.Snapshot() },
		"Len":      func() { h.Len() },
		"Status":   func() { h.Status() },
		"Tokens":   func() { h.Tokens() },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

// The check before each request allocates nothing while nothing is due.
func TestCompactIfNeeded_DoesNotAllocate(t *testing.T) {
	for name, opts := range map[string]*convo.Options{
		"a window":  {Limits: convo.Limits{Window: 1 << 30}},
		"no limit":  nil,
		"a trigger": {Strategy: convo.Chain(convo.SlidingWindow{Keep: 1 << 30}, convo.Truncate{})},
	} {
		h := historyOf(t, opts, convo.User("hello"), convo.Assistant("hi"))
		ctx := context.WithValue(t.Context(), ctxKey{}, "a value")
		h.Snapshot()
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.CompactIfNeeded(ctx) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.Prepare(ctx) }), name)
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.CompactInBackground(ctx) }), name)
	}
}
