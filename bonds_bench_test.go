package convo_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// BenchmarkSealed does the same to two conversations of 10,000 messages, in turns in one
// run: the reasoning of the one is signed, that of the other is not. It reports the median
// for the signed one, and how many times as long as the other it takes: to append a
// message, to append one and take a snapshot, to compact to half, and to find what is
// bound in a snapshot.
func BenchmarkSealed(b *testing.B) {
	const n = 10_000
	messages := func(signature string) (list []convo.Message) {
		for i := range n / 2 {
			answer := thoughts.In(convo.Assistant(text400), convo.Reasoning{Text: "hm", Signature: signature})
			list = append(list, convo.User(text400+strconv.Itoa(i)), answer)
		}
		return list
	}
	kinds := [2][]convo.Message{messages(""), messages("c2lnbmF0dXJl")}
	fill := func(list []convo.Message, each func(*convo.History)) *convo.History {
		h, err := convo.New(nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range list {
			if _, err := h.Append(m); err != nil {
				b.Fatal(err)
			}
			each(h)
		}
		return h
	}
	work := []struct {
		name string
		per  float64 // how many times it does it
		do   func(list []convo.Message, full *convo.History) time.Duration
	}{
		{"append", n, func(list []convo.Message, _ *convo.History) time.Duration {
			start := time.Now()
			fill(list, func(*convo.History) {})
			return time.Since(start)
		}},
		{"append-snapshot", n, func(list []convo.Message, _ *convo.History) time.Duration {
			start := time.Now()
			fill(list, func(h *convo.History) { h.Snapshot() })
			return time.Since(start)
		}},
		{"compact", 1, func(_ []convo.Message, full *convo.History) time.Duration {
			return compactHalf(b, full, convo.Truncate{})
		}},
		{"check", n, func(_ []convo.Message, full *convo.History) time.Duration {
			s := full.Snapshot()
			start := time.Now()
			if len(s.Unbound()) > 0 {
				b.Fatal("not bound")
			}
			return time.Since(start)
		}},
	}
	full := [2]*convo.History{}
	for i, list := range kinds {
		full[i] = fill(list, func(*convo.History) {})
	}
	took := make([][2][]float64, len(work))
	for b.Loop() {
		for w, work := range work {
			for i, list := range kinds {
				took[w][i] = append(took[w][i], float64(work.do(list, full[i]).Nanoseconds())/work.per)
			}
		}
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	for w, work := range work {
		plain, signed := median(took[w][0]), median(took[w][1])
		b.ReportMetric(signed, "ns/"+work.name)
		b.ReportMetric(signed/plain, "x-unsigned-"+work.name)
	}
	b.ReportMetric(0, "ns/op")
}
