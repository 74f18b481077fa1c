package wire_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

// conversation returns 600 messages of a coding agent with some 300 kB of text.
func conversation() *convo.Snapshot { return conversationOf(150).Snapshot() }

// conversationOf returns the conversation of a coding agent with a number of turns of
// four messages each.
func conversationOf(turns int) *convo.History {
	h := must(convo.New(nil))
	h.Append(convo.System(strings.Repeat("You are a coding agent. ", 40)))
	output := strings.Repeat("func main() {\n\tfmt.Println(\"hello, \\\"world\\\"\")\n}\n", 25)
	for i := range turns {
		c := convo.ToolCall{ID: fmt.Sprintf("call_%024d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path": "/src/pkg%d/main.go", "line": %d}`, i, i)}
		h.Append(convo.User("Please look at the next file and tell me what it does."),
			convo.Assistant("I will read it.", c), convo.Result(c, output),
			convo.Assistant("It prints a greeting. There is nothing else in it, and no test that covers it so far."))
	}
	return h
}

// pairs returns snapshots of a conversation of about the given number of messages. Each
// has two more messages than the previous one.
func pairs(messages, count int) []*convo.Snapshot {
	h := conversationOf(messages / 4)
	list := []*convo.Snapshot{h.Snapshot()}
	for range count {
		h.Append(convo.User("And the next one?"), convo.Assistant("It is like the one before it, but for the name of the package."))
		list = append(list, h.Snapshot())
	}
	return list
}

// laps are the times of two functions that run by turns.
type laps [2][]time.Duration

func (l *laps) time(which int, f func()) {
	start := time.Now()
	f()
	l[which] = append(l[which], time.Since(start))
}

// report reports the medians, and the ratio of the second to the first.
func (l *laps) report(b *testing.B, first, second string) {
	slices.Sort(l[0])
	slices.Sort(l[1])
	one, two := l[0][len(l[0])/2], l[1][len(l[1])/2]
	b.ReportMetric(float64(one.Nanoseconds())/1e3, "us/"+first)
	b.ReportMetric(float64(two.Nanoseconds())/1e3, "us/"+second)
	b.ReportMetric(float64(two)/float64(one), second+"/"+first)
	b.ReportMetric(0, "ns/op")
}

// must panics if a function that is measured fails.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// BenchmarkEncoder encodes the requests of a conversation after two new messages each,
// alternating between an Encoder and its Format alone.
func BenchmarkEncoder(b *testing.B) {
	for _, messages := range []int{1_000, 10_000} {
		for _, name := range []string{"anthropic", "anthropic 2", "converse", "converse 2", "gemini", "openai chat", "ollama", "strict", "responses", "mistral"} {
			b.Run(fmt.Sprintf("%s/n=%d", name, messages), func(b *testing.B) {
				f := formats[name]
				var l laps
				for b.Loop() {
					e := &wire.Encoder{Format: f}
					for i, s := range pairs(messages, 40) {
						if i == 0 {
							e.Encode(s)
							continue
						}
						for _, turn := range []int{i % 2, 1 - i%2} {
							l.time(turn, func() {
								if turn == 0 {
									e.Encode(s)
								} else {
									f.Encode(s)
								}
							})
						}
					}
				}
				l.report(b, "with", "alone")
			})
		}
	}
}

// The allocations of a request after two new messages do not depend on the length of the
// conversation.
func TestEncoder_AllocatesForWhatIsNew(t *testing.T) {
	few, many := pairs(100, 42), pairs(long.Or(1_000, 2_000), 42)
	for _, name := range some(slices.Sorted(maps.Keys(formats)), 0) {
		f := formats[name]
		allocs := func(list []*convo.Snapshot) float64 {
			e := &wire.Encoder{Format: f}
			for _, s := range list[:20] {
				_, _ = e.Encode(s)
			}
			i := 19
			return testing.AllocsPerRun(20, func() {
				i++
				_, _ = e.Encode(list[i])
			})
		}
		short, grown := allocs(few), allocs(many)
		assert.LessOrEqual(t, grown, short+10, "%s: %v allocations after 100 messages", name, short)
		assert.Less(t, short, 80.0, name)
	}
}

// BenchmarkEncode encodes a conversation in each format.
func BenchmarkEncode(b *testing.B) {
	s := conversation()
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(must(formats[name].Encode(s)).Body())))
			b.ReportAllocs()
			for b.Loop() {
				r, _ := formats[name].Encode(s)
				r.Body()
			}
		})
	}
}

// BenchmarkEncode_Ratio encodes a conversation in each format, alternating with
// json.Marshal of the same request as maps and slices.
func BenchmarkEncode_Ratio(b *testing.B) {
	s := conversation()
	for _, name := range []string{"anthropic", "converse", "gemini", "openai chat", "responses"} {
		b.Run(name, func(b *testing.B) {
			tree := readJSON(b, must(formats[name].Encode(s)).Body())
			var l laps
			for b.Loop() {
				l.time(0, func() { must(json.Marshal(tree)) })
				l.time(1, func() { must(formats[name].Encode(s)).Body() })
			}
			l.report(b, "Marshal", "Encode")
		})
	}
}

// BenchmarkDecode decodes a request in each format.
func BenchmarkDecode(b *testing.B) {
	s := conversation()
	for _, name := range slices.Sorted(maps.Keys(formats)) {
		b.Run(name, func(b *testing.B) {
			body := must(formats[name].Encode(s)).Body()
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				must(formats[name].Decode(body))
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
					body := must(f.Encode(s)).Body()
					f.Check(body)
					must(f.Decode(body))
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

// BenchmarkDecode_Ratio decodes a request in each format, alternating with json.Unmarshal
// of the same bytes into maps and slices.
func BenchmarkDecode_Ratio(b *testing.B) {
	s := conversation()
	for _, name := range []string{"anthropic", "converse", "gemini", "openai chat", "responses"} {
		b.Run(name, func(b *testing.B) {
			body := must(formats[name].Encode(s)).Body()
			var l laps
			for b.Loop() {
				l.time(0, func() {
					var tree any
					if err := json.Unmarshal(body, &tree); err != nil {
						b.Fatal(err)
					}
				})
				l.time(1, func() { must(formats[name].Decode(body)) })
			}
			l.report(b, "Unmarshal", "Decode")
		})
	}
}

// BenchmarkEncode_Seals encodes a conversation with signed reasoning for a model that
// checks it, alternating with the same for a model that does not.
func BenchmarkEncode_Seals(b *testing.B) {
	h := historyOf(b)
	for i := range 2000 {
		mustAppend(b, h, convo.User(fmt.Sprint("question ", i)), thoughts.In(convo.Assistant("answer"), convo.Reasoning{Text: "hm", Signature: "c2lnbmF0dXJl"}))
	}
	s := h.Snapshot()
	var l laps
	for b.Loop() {
		for i, check := range []wire.SealCheck{wire.SealsUnchecked, wire.SealsChecked} {
			l.time(i, func() { must(wire.Anthropic{Seals: check}.Encode(s)) })
		}
	}
	l.report(b, "unchecked", "checked")
}
