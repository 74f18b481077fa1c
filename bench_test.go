package convo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
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

// BenchmarkPrepare measures the check with nothing to do, beside an
// uncontended Lock and Unlock in the same run.
func BenchmarkPrepare(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		opts convo.Options
	}{
		{"window", convo.Options{Limits: convo.Limits{Window: 1 << 30}}},
		{"no limit", convo.Options{}},
		{"trigger", convo.Options{Strategy: convo.SlidingWindow{KeepLast: 1 << 30}}},
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
						reportOf(h.Prepare(ctx))
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
	strategies["window"] = convo.SlidingWindow{KeepLast: 500}
	strategies["echo"] = convo.Summarize{With: convotest.Canned{}, Window: -1}
	strategies["fold"] = convo.Summarize{With: convotest.Canned{}, Window: 30_000, MaxTokens: 500}
	strategies["extract"] = convo.Summarize{With: convo.Extract{}, Window: -1}
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

// BenchmarkOpen opens a conversation of 10,000 messages, beside json.Unmarshal of the
// same messages into a plain struct, in turns in one run: from memory, and from a file with
// one record and with 5,000. It reports the median of each, and how many times as long as
// the plain struct Open takes.
func BenchmarkOpen(b *testing.B) {
	for _, bb := range []struct {
		name    string
		store   convo.Store
		records int
	}{
		{"memory-1", new(convotest.MemStore), 1},
		{"file-1", &filestore.Store{Dir: b.TempDir(), NoSync: true}, 1},
		{"file-5000", &filestore.Store{Dir: b.TempDir(), NoSync: true}, 5000},
	} {
		b.Run(bb.name, func(b *testing.B) { benchmarkOpen(b, bb.store, bb.records) })
	}
}

func benchmarkOpen(b *testing.B, store convo.Store, records int) {
	ctx := context.Background()
	whole := convo.LongHistory(b)
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	if err != nil {
		b.Fatal(err)
	}
	if err := h.Attach(ctx, store, b.Name()); err != nil {
		b.Fatal(err)
	}
	n := whole.Len() / records
	for i, e := range whole.Snapshot().All() {
		if _, err := h.Append(e.Message); err != nil {
			b.Fatal(err)
		}
		if i%n == n-1 {
			if err := h.Save(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
	data, err := h.Snapshot().MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	var open, plain []float64
	for b.Loop() {
		start := time.Now()
		if err := json.Unmarshal(data, new(convo.PlainSnapshot)); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if _, err := convo.Open(ctx, store, b.Name(), &convo.Options{Roles: convo.Relaxed()}); err != nil {
			b.Fatal(err)
		}
		plain, open = append(plain, between.Sub(start).Seconds()), append(open, time.Since(between).Seconds())
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(1000*median(open), "open-ms")
	b.ReportMetric(median(open)/median(plain), "open/plain")
	read := 0
	for range store.Records(ctx, b.Name(), 0) {
		read++
	}
	b.ReportMetric(float64(read), "records")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOpen_After opens conversations of which the view is equal and the log is
// not: it was compacted after 1,000, 100,000 or 1,000,000 messages. It reports how many
// times as long the longer ones take.
func BenchmarkOpen_After(b *testing.B) {
	ctx, store := context.Background(), &filestore.Store{Dir: b.TempDir(), NoSync: true}
	sizes := []int{1000, 100_000, 1_000_000}
	took := make([][]float64, len(sizes))
	for _, n := range sizes {
		h, err := convo.Open(ctx, store, fmt.Sprint(n), nil)
		if err != nil {
			b.Fatal(err)
		}
		for i := range n / 2 {
			if _, err := h.Append(convo.User("one more question"), convo.Assistant("one more answer")); err != nil {
				b.Fatal(err)
			}
			if i%250 == 249 {
				if _, err := h.SplicePrefix(h.Snapshot(), h.Snapshot().Len()-100, ""); err != nil {
					b.Fatal(err)
				}
			}
			if i%10 == 9 {
				if err := h.Save(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	for b.Loop() {
		for i, n := range sizes {
			start := time.Now()
			h, err := convo.Open(ctx, store, fmt.Sprint(n), nil)
			if err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start).Seconds())
			if h.Len() != 100 {
				b.Fatalf("%d entries", h.Len())
			}
		}
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(1e6*median(took[0]), "1k-µs")
	b.ReportMetric(median(took[1])/median(took[0]), "100k/1k")
	b.ReportMetric(median(took[2])/median(took[0]), "1M/1k")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkSave measures the save of a turn, a question and an answer, beside a write
// and a sync of as many bytes to an open file, in turns, and reports the ratio of the
// medians. It means something where the write takes more than 100 µs.
func BenchmarkSave(b *testing.B) {
	ctx := b.Context()
	dir := b.TempDir()
	h, err := convo.Open(ctx, &filestore.Store{Dir: dir}, "k", nil)
	require.NoError(b, err)
	bare, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	require.NoError(b, err)
	defer func() { _ = bare.Close() }()
	text := strings.Repeat("Which trains go to Rome? ", 20)
	var size int64
	var ours, least []time.Duration
	for b.Loop() {
		_, err := h.Append(convo.User(text), convo.Assistant(text))
		require.NoError(b, err)
		start := time.Now()
		require.NoError(b, h.Save(ctx))
		ours = append(ours, time.Since(start))

		files, err := os.ReadDir(dir)
		require.NoError(b, err)
		info, err := files[0].Info()
		require.NoError(b, err)
		line := make([]byte, info.Size()-size)
		size = info.Size()
		start = time.Now()
		_, err = bare.Write(line)
		require.NoError(b, err)
		require.NoError(b, bare.Sync())
		least = append(least, time.Since(start))
	}
	slices.Sort(ours)
	slices.Sort(least)
	own, bottom := ours[len(ours)/2], least[len(least)/2]
	b.ReportMetric(float64(own.Microseconds()), "µs/save")
	b.ReportMetric(float64(bottom.Microseconds()), "µs/bare")
	if bottom > 100*time.Microsecond {
		b.ReportMetric(float64(own)/float64(bottom), "x-bare")
	} else {
		b.Log("a bare write and sync takes less than 100 µs here; the ratio means nothing")
	}
	b.ReportMetric(0, "ns/op")
}
