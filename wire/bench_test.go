package wire_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// conversation returns 600 messages of a coding agent with some 300 kB of text.
func conversation() *convo.Snapshot {
	h, err := convo.New(nil)
	if err != nil {
		panic(err)
	}
	h.Append(convo.System(strings.Repeat("You are a coding agent. ", 40)))
	output := strings.Repeat("func main() {\n\tfmt.Println(\"hello, \\\"world\\\"\")\n}\n", 25)
	for i := range 150 {
		c := convo.ToolCall{ID: fmt.Sprintf("call_%024d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path": "/src/pkg%d/main.go", "line": %d}`, i, i)}
		h.Append(convo.User("Please look at the next file and tell me what it does."),
			convo.Assistant("I will read it.", c), convo.Result(c, output),
			convo.Assistant("It prints a greeting. There is nothing else in it, and no test that covers it so far."))
	}
	return h.Snapshot()
}

// BenchmarkEncode encodes a conversation in each format, and compares that with
// json.Marshal of the same request as maps and slices.
func BenchmarkEncode(b *testing.B) {
	s := conversation()
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		r, err := formats[name].Encode(s)
		if err != nil {
			b.Fatal(err)
		}
		body := r.Body()
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r, _ := formats[name].Encode(s)
				r.Body()
			}
		})
		var tree any
		if err := json.Unmarshal(body, &tree); err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/json.Marshal", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(tree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecode decodes a request in each format, and compares that with
// json.Unmarshal of the same request into maps and slices.
func BenchmarkDecode(b *testing.B) {
	s := conversation()
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		r, err := formats[name].Encode(s)
		if err != nil {
			b.Fatal(err)
		}
		body := r.Body()
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := formats[name].Decode(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/json.Unmarshal", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var tree any
				if err := json.Unmarshal(body, &tree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHard measures conversations that could make Encode quadratic: one id
// for all calls, many neighbouring messages of one role, and many calls in one
// message with their results in another order. It reports how much longer a
// conversation of twice the size takes; 2 is linear.
func BenchmarkHard(b *testing.B) {
	cases := map[string]func(n int) []convo.Message{
		"one id": func(n int) (msgs []convo.Message) {
			c := convo.ToolCall{ID: "call_0", Name: "f"}
			for range n {
				msgs = append(msgs, convo.User("q"), convo.Assistant("", c), convo.Result(c, "r"))
			}
			return msgs
		},
		"neighbours": func(n int) (msgs []convo.Message) {
			for range n {
				msgs = append(msgs, convo.User("q"))
			}
			return msgs
		},
		"calls": func(n int) []convo.Message {
			var calls []convo.ToolCall
			for i := range n {
				calls = append(calls, convo.ToolCall{ID: fmt.Sprint("c", i), Name: "f"})
			}
			msgs := []convo.Message{convo.User("q"), convo.Assistant("", calls...)}
			for _, c := range slices.Backward(calls) {
				msgs = append(msgs, convo.Result(c, "r"))
			}
			return msgs
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		for _, format := range []string{"anthropic", "converse", "gemini", "openai chat", "responses", "strict"} {
			b.Run(name+"/"+format, func(b *testing.B) {
				f := formats[format]
				once, twice := convo.NewSnapshot(cases[name](5_000)), convo.NewSnapshot(cases[name](10_000))
				run := func(s *convo.Snapshot) time.Duration {
					start := time.Now()
					r, err := f.Encode(s)
					if err != nil {
						b.Fatal(err)
					}
					f.Check(r.Body())
					if _, err := f.Decode(r.Body()); err != nil {
						b.Fatal(err)
					}
					return time.Since(start)
				}
				var short, long time.Duration
				for b.Loop() {
					short += run(once)
					long += run(twice)
				}
				b.ReportMetric(float64(short.Milliseconds())/float64(b.N), "ms/5k")
				b.ReportMetric(float64(long)/float64(short), "x-10k-to-5k")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkDecode_Ratio decodes a request in each format, beside json.Unmarshal of
// the same bytes into maps and slices, in turns in one run. It reports how many times
// as long Decode takes, by the medians.
func BenchmarkDecode_Ratio(b *testing.B) {
	s := conversation()
	for _, name := range []string{"anthropic", "converse", "gemini", "openai chat", "responses"} {
		r, err := formats[name].Encode(s)
		if err != nil {
			b.Fatal(err)
		}
		body := r.Body()
		b.Run(name, func(b *testing.B) {
			var decode, plain []float64
			for b.Loop() {
				start := time.Now()
				var tree any
				if err := json.Unmarshal(body, &tree); err != nil {
					b.Fatal(err)
				}
				between := time.Now()
				if _, err := formats[name].Decode(body); err != nil {
					b.Fatal(err)
				}
				plain, decode = append(plain, between.Sub(start).Seconds()), append(decode, time.Since(between).Seconds())
			}
			median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
			b.ReportMetric(1000*median(decode), "decode-ms")
			b.ReportMetric(median(decode)/median(plain), "decode/plain")
			b.ReportMetric(0, "ns/op")
		})
	}
}
