package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo/wire"
)

func BenchmarkNext(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		list := pairs(n, 400)
		for _, name := range []string{"anthropic", "converse", "gemini", "openai chat", "responses"} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				e := &wire.Encoder{Format: formats[name]}
				least := time.Hour
				for b.Loop() {
					for i, s := range list {
						start := time.Now()
						e.Encode(s)
						if i > 0 {
							least = min(least, time.Since(start))
						}
					}
				}
				b.ReportMetric(float64(least.Nanoseconds())/1000, "min-us")
			})
		}
	}
}
