// Package heaptest measures memory in tests of the command.
package heaptest

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Peak returns the largest heap while f runs, less that before, in bytes.
func Peak(f func()) uint64 {
	runtime.GC()
	heap := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before, most := heap(), atomic.Uint64{}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			most.Store(max(most.Load(), heap()))
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return max(most.Load(), before) - before
}
