// Package heaptest measures memory in tests of the command.
package heaptest

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const stopped = "gcstoptheworld=1"

// Alone reports whether nothing is allocated while garbage is collected, so that what Live
// returns does not depend on the load of the machine. Otherwise it runs the test in a process
// where that is so.
func Alone(t *testing.T) bool {
	if strings.Contains(os.Getenv("GODEBUG"), stopped) {
		return true
	}
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	test.Env = append(os.Environ(), "GODEBUG="+strings.TrimPrefix(os.Getenv("GODEBUG")+","+stopped, ","))
	out, err := test.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own: %v", err)
	}
	return false
}

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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
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
	<-ended
	return max(most.Load(), before) - before
}
