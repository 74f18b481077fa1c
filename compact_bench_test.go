package convo_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// BenchmarkCompactIfNeeded measures the check with nothing to do, beside an
// uncontended Lock and Unlock in the same run.
func BenchmarkCompactIfNeeded(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		opts convo.Options
	}{
		{"window", convo.Options{Limits: convo.Limits{Window: 1 << 30}}},
		{"no limit", convo.Options{}},
		{"trigger", convo.Options{Strategy: convo.SlidingWindow{Keep: 1 << 30}}},
	} {
		for _, n := range []int{10, 1_000_000} {
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				h, err := convo.Restore(sized(n).Snapshot(), &c.opts)
				if err != nil {
					b.Fatal(err)
				}
				h.Append(userMsg)
				var mu sync.Mutex
				held := 0
				var check, lock time.Duration
				const batch = 10_000
				b.ReportAllocs()
				for b.Loop() {
					start := time.Now()
					for range batch {
						h.CompactIfNeeded(ctx)
					}
					check += time.Since(start)
					start = time.Now()
					for range batch {
						mu.Lock()
						held++
						mu.Unlock()
					}
					lock += time.Since(start)
				}
				b.ReportMetric(float64(check.Nanoseconds())/float64(b.N)/batch, "ns/check")
				b.ReportMetric(float64(check)/float64(lock), "x-lock")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkPrepareNothingCanGo appends and prepares with every message pinned
// above high water, with and without reports of usage, and reports how much longer
// twice as many take: 2 is linear.
func BenchmarkPrepareNothingCanGo(b *testing.B) {
	run := func(n int, reported bool) time.Duration {
		h, err := convo.New(&convo.Options{Limits: convo.Limits{High: 1000}, Pin: func(convo.Message) bool { return true }})
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		for range n {
			h.Append(convo.User("a question"))
			s, _, _ := h.Prepare(context.Background())
			h.Append(convo.Assistant("an answer"))
			if reported {
				h.RecordUsage(s, convo.Usage{Input: s.Tokens() + 10})
			}
		}
		return time.Since(start)
	}
	for _, c := range []struct {
		name     string
		reported bool
	}{{"alone", false}, {"reported", true}} {
		b.Run(c.name, func(b *testing.B) {
			var once, twice time.Duration
			for b.Loop() {
				once += run(8_000, c.reported)
				twice += run(16_000, c.reported)
			}
			b.ReportMetric(float64(once.Milliseconds())/float64(b.N), "ms/8k")
			b.ReportMetric(float64(twice)/float64(once), "x-16k-to-8k")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// rounds returns a history of n exchanges: three tool rounds to each user
// message, made once.
var rounds = func() func(n int) *convo.History {
	made := map[int]*convo.History{}
	return func(n int) *convo.History {
		if made[n] != nil {
			return made[n]
		}
		h, _ := convo.New(nil)
		result := strings.Repeat("a line of what the tool said\n", 8)
		var batch []convo.Message
		for i := range n {
			switch c := callOf(fmt.Sprint("c", i)); i % 5 {
			case 0:
				batch = append(batch, convo.User("and the next one, please"))
			case 4:
				batch = append(batch, convo.Assistant("here it is"))
			default:
				batch = append(batch, convo.Assistant("", c), convo.Result(c, result))
			}
		}
		if _, err := h.Append(batch...); err != nil {
			panic(err)
		}
		made[n] = h
		return h
	}
}()

// compactHalf compacts a fork to half and returns how long that took.
func compactHalf(b *testing.B, h *convo.History, c convo.CompactionStrategy) time.Duration {
	f, err := convo.Restore(h.Snapshot(), &convo.Options{Strategy: c})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC() // what making the fork left behind
	start := time.Now()
	r, err := f.Compact(context.Background(), "")
	took := time.Since(start)
	if err != nil || r.Outcome != convo.OutcomeApplied {
		b.Fatal(r.Outcome, err)
	}
	return took
}

// BenchmarkTruncateHalf truncates 32k and 64k exchanges to half, and copies
// 32k pointers and counts, in turns in one run.
func BenchmarkTruncateHalf(b *testing.B) {
	const n = 32 << 10
	var half, twice, bare time.Duration
	list, counts := make([]*floorEntry, n), make([]int, n)
	for b.Loop() {
		half += compactHalf(b, sized(n), convo.Truncate{})
		twice += compactHalf(b, sized(2*n), convo.Truncate{})
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

// BenchmarkStrategies compacts 1k to 64k exchanges to half, each size four
// times the one before, and reports how much longer each takes: 4 is linear.
func BenchmarkStrategies(b *testing.B) {
	strategies := plainStrategies()
	strategies["window"] = convo.SlidingWindow{Keep: 500}
	strategies["echo"] = convo.Summarize{With: convotest.Canned{}, Window: -1}
	strategies["fold"] = convo.Summarize{With: convotest.Canned{}, Window: 30_000, MaxTokens: 500}
	for _, name := range slices.Sorted(maps.Keys(strategies)) {
		b.Run(name, func(b *testing.B) {
			sizes := []int{1 << 10, 4 << 10, 16 << 10, 64 << 10}
			took := make([]time.Duration, len(sizes))
			for b.Loop() {
				for i, n := range sizes {
					took[i] += compactHalf(b, rounds(n), strategies[name])
				}
			}
			b.ReportMetric(float64(took[3].Microseconds())/float64(b.N)/1000, "ms/64k")
			for i := range took[1:] {
				b.ReportMetric(float64(took[i+1])/float64(took[i]), fmt.Sprintf("x-%dk-to-%dk", sizes[i+1]>>10, sizes[i]>>10))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
