package convo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
)

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
