package convo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkOpen opens a conversation of 10,000 messages, beside json.Unmarshal of the
// same messages into a plain struct, in turns in one run. It reports the median of
// each, and how many times as long as the plain struct Open takes.
func BenchmarkOpen(b *testing.B) {
	h := longHistory(b)
	ctx, store := context.Background(), new(MemStore)
	if err := h.Attach(ctx, store, "k"); err != nil {
		b.Fatal(err)
	}
	if err := h.Save(ctx); err != nil {
		b.Fatal(err)
	}
	data, err := h.Snapshot().MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	var open, plain []float64
	for b.Loop() {
		start := time.Now()
		if err := json.Unmarshal(data, new(plainSnapshot)); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if _, err := Open(ctx, store, "k", &Options{Roles: Relaxed()}); err != nil {
			b.Fatal(err)
		}
		plain, open = append(plain, between.Sub(start).Seconds()), append(open, time.Since(between).Seconds())
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(1000*median(open), "open-ms")
	b.ReportMetric(median(open)/median(plain), "open/plain")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOpen_After opens conversations of which the view is equal and the log is
// not: it was compacted after 1,000, 100,000 or 1,000,000 messages. It reports how many
// times as long the longer ones take.
func BenchmarkOpen_After(b *testing.B) {
	ctx, store := context.Background(), &FileStore{Dir: b.TempDir(), NoSync: true}
	sizes := []int{1000, 100_000, 1_000_000}
	took := make([][]float64, len(sizes))
	for _, n := range sizes {
		h, err := Open(ctx, store, fmt.Sprint(n), nil)
		if err != nil {
			b.Fatal(err)
		}
		for i := range n / 2 {
			if _, err := h.Append(User("one more question"), Assistant("one more answer")); err != nil {
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
			h, err := Open(ctx, store, fmt.Sprint(n), nil)
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
