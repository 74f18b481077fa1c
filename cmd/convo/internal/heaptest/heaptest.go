// Package heaptest measures memory in tests of the command.
package heaptest

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Peak returns the largest heap while f runs, less that before, in bytes. How much garbage it
// holds depends on the load of the machine.
func Peak(f func()) uint64 {
	runtime.GC()
	return most(f, func() uint64 { return read("/memory/classes/heap/objects:bytes") })
}

// Live returns the largest part of the heap that is in use while f runs, less that before, in
// bytes. It collects the garbage again and again, and counts none.
func Live(f func()) uint64 {
	return most(f, func() uint64 {
		runtime.GC()
		return read("/gc/heap/live:bytes")
	})
}

func read(metric string) uint64 {
	s := []metrics.Sample{{Name: metric}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// most returns the largest value of heap while f runs, less that before.
func most(f func(), heap func() uint64) uint64 {
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
