package convo_test

import (
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
