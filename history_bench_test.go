package convo_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

var text400 = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 9)[:400]

var (
	userMsg  = convo.User(text400)
	replyMsg = convo.Assistant(text400)
)

// appendN appends n messages of 400 bytes to a fresh History, one by one.
func appendN(n int, each func(*convo.History)) *convo.History {
	h, _ := convo.New(nil)
	for i := range n {
		m := userMsg
		if i%2 == 1 {
			m = replyMsg
		}
		if _, err := h.Append(m); err != nil {
			panic(err)
		}
		if each != nil {
			each(h)
		}
	}
	return h
}

// A floorList does the least that Append has to do: it locks a mutex, appends a
// pointer to a new entry, makes the same estimate and checks UTF-8.
type floorList struct {
	mu    sync.Mutex
	list  []*floorEntry
	total int
}

type floorEntry struct {
	msg    convo.Message
	tokens int
}

func floorN(n int) *floorList {
	l := new(floorList)
	for i := range n {
		m := userMsg
		if i%2 == 1 {
			m = replyMsg
		}
		text := string(m.Parts[0].(convo.Text))
		if !utf8.ValidString(text) {
			panic("not UTF-8")
		}
		e := &floorEntry{m, convo.Heuristic{}.CountTokens(text)}
		l.mu.Lock()
		l.list = append(l.list, e)
		l.total += e.tokens
		l.mu.Unlock()
	}
	return l
}

// BenchmarkAppend measures 100,000 appends into a fresh history beside the
// floor, in turns in one run, and reports the ratios.
func BenchmarkAppend(b *testing.B) {
	const n = 100_000
	var ours, floor, snap time.Duration
	for b.Loop() {
		start := time.Now()
		floorN(n)
		floor += time.Since(start)
		start = time.Now()
		appendN(n, nil)
		ours += time.Since(start)
		start = time.Now()
		appendN(n, func(h *convo.History) { h.Snapshot() })
		snap += time.Since(start)
	}
	perOp := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N) / n }
	b.ReportMetric(perOp(ours), "ns/append")
	b.ReportMetric(perOp(floor), "ns/floor")
	b.ReportMetric(float64(ours)/float64(floor), "x-floor")
	b.ReportMetric(float64(snap)/float64(ours), "x-append-with-snapshot")
	b.ReportMetric(0, "ns/op")
}

var sizes = []int{10, 1_000, 100_000, 1_000_000}

// sized returns a history of n entries, made once.
var sized = func() func(n int) *convo.History {
	made := map[int]*convo.History{}
	return func(n int) *convo.History {
		if made[n] == nil {
			h, _ := convo.New(nil)
			batch := make([]convo.Message, 0, n)
			for i := range n {
				if i%2 == 0 {
					batch = append(batch, convo.User("question"))
				} else {
					batch = append(batch, convo.Assistant("answer"))
				}
			}
			if _, err := h.Append(batch...); err != nil {
				panic(err)
			}
			made[n] = h
		}
		return made[n]
	}
}()

func forEachSize(b *testing.B, f func(b *testing.B, h *convo.History, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			h := sized(n)
			b.ReportAllocs()
			f(b, h, n)
		})
	}
}

// fork returns a history with the same entries. The first append to it copies
// the pointers.
func fork(b *testing.B, h *convo.History) *convo.History {
	f, err := convo.Restore(h.Snapshot(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func BenchmarkAppendAt(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		f := fork(b, h)
		f.Append(userMsg, replyMsg)
		for b.Loop() {
			f.Append(userMsg, replyMsg)
		}
	})
}

func BenchmarkAppendThenSnapshotAt(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		f := fork(b, h)
		f.Append(userMsg, replyMsg)
		for b.Loop() {
			f.Append(userMsg, replyMsg)
			f.Snapshot()
		}
	})
}

func BenchmarkSnapshotUnchanged(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		for b.Loop() {
			h.Snapshot()
		}
	})
}

func BenchmarkLen(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		for b.Loop() {
			h.Len()
		}
	})
}

func BenchmarkStatus(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		for b.Loop() {
			h.Status()
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		for b.Loop() {
			h.Tokens()
		}
	})
}

func BenchmarkMessages(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		s := h.Snapshot()
		for b.Loop() {
			s.Messages()
		}
	})
}

// BenchmarkPin pins and unpins an exchange far back while up to a thousand are
// pinned.
func BenchmarkPin(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, n int) {
		f := fork(b, h)
		for i := range min(n/2, 1000) {
			if err := f.Pin(convo.ID(2 * (i + 1))); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			f.Pin(1)
			f.Unpin(1)
		}
	})
}

// BenchmarkRollback takes back one message at a time, newest first; appending
// a thousand of them is not measured.
func BenchmarkRollback(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, _ int) {
		f := fork(b, h)
		var at []*convo.Snapshot
		for b.Loop() {
			if len(at) == 0 {
				b.StopTimer()
				for range 1000 {
					at = append(at, f.Snapshot())
					f.Append(userMsg, replyMsg)
				}
				b.StartTimer()
			}
			last := len(at) - 1
			if err := f.Rollback(at[last]); err != nil {
				b.Fatal(err)
			}
			at = at[:last]
		}
	})
}

func BenchmarkSplicePrefix(b *testing.B) {
	forEachSize(b, func(b *testing.B, h *convo.History, n int) {
		for b.Loop() {
			b.StopTimer()
			f := fork(b, h)
			at := f.Snapshot()
			b.StartTimer()
			if _, err := f.SplicePrefix(at, n/2, "summary"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSpliceHalf cuts 32k and 64k exchanges to half, and copies 32k
// pointers and counts, in turns in one run.
func BenchmarkSpliceHalf(b *testing.B) {
	const n = 32 << 10
	var half, twice, bare time.Duration
	list, counts := make([]*floorEntry, n), make([]int, n)
	cut := func(n int) time.Duration {
		f := fork(b, sized(n))
		at := f.Snapshot()
		runtime.GC() // what making the fork left behind
		start := time.Now()
		if _, err := f.SplicePrefix(at, n/2, "summary"); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	for b.Loop() {
		half += cut(n)
		twice += cut(2 * n)
		start := time.Now()
		for range 10 {
			own, sums := make([]*floorEntry, n), make([]int, n)
			copy(own, list)
			copy(sums, counts)
			list, counts = own, sums
		}
		bare += time.Since(start) / 10
	}
	b.ReportMetric(float64(half.Microseconds())/float64(b.N), "us/32k")
	b.ReportMetric(float64(twice)/float64(half), "x-64k-to-32k")
	b.ReportMetric(float64(half)/float64(bare), "x-copy")
	b.ReportMetric(0, "ns/op")
}
