package convo

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// longHistory returns a History of 10,000 messages, a quarter of them results.
func longHistory(b *testing.B) *History {
	b.Helper()
	h, err := New(&Options{Roles: Relaxed()})
	if err != nil {
		b.Fatal(err)
	}
	say := strings.Repeat("The quick brown fox jumps over the \"lazy\" dog.\n", 9)[:400]
	for range 2500 {
		call := ToolCall{ID: NewCallID(), Name: "read", Arguments: `{"path": "main.go", "lines": [1, 200]}`}
		if _, err := h.Append(User(say), Assistant("", call), Result(call, say), Assistant(say)); err != nil {
			b.Fatal(err)
		}
	}
	return h
}

// BenchmarkSnapshotJSON writes and reads a snapshot of 10,000 messages, directly and
// through encoding/json, beside encoding/json with a plain struct of the same shape,
// in turns in one run. It reports the median of each, and how many times as long as the
// plain struct it takes.
func BenchmarkSnapshotJSON(b *testing.B) {
	s := longHistory(b).Snapshot()
	data, err := s.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	var plain plainSnapshot
	if err := json.Unmarshal(data, &plain); err != nil {
		b.Fatal(err)
	}
	took := map[string][]float64{}
	run := func(name string, f func() error) {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(name, err)
		}
		took[name] = append(took[name], time.Since(start).Seconds())
	}
	median := func(name string) float64 { slices.Sort(took[name]); return took[name][len(took[name])/2] }
	for b.Loop() {
		run("plain-write", func() error { _, err := json.Marshal(&plain); return err })
		run("write", func() error { _, err := s.MarshalJSON(); return err })
		run("json-write", func() error { _, err := json.Marshal(s); return err })
		run("plain-read", func() error { return json.Unmarshal(data, new(plainSnapshot)) })
		run("read", func() error { return new(Snapshot).UnmarshalJSON(data) })
		run("json-read", func() error { return json.Unmarshal(data, new(Snapshot)) })
	}
	for _, name := range []string{"write", "json-write", "read", "json-read"} {
		_, how, through := strings.Cut(name, "-")
		if !through {
			how = name
		}
		b.ReportMetric(1000*median(name), name+"-ms")
		b.ReportMetric(median(name)/median("plain-"+how), name+"/plain")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(testing.AllocsPerRun(1, func() { new(Snapshot).UnmarshalJSON(data) }), "read-allocs")
	b.ReportMetric(testing.AllocsPerRun(1, func() { json.Unmarshal(data, new(plainSnapshot)) }), "plain-allocs")
}
