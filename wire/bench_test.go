package wire_test

import (
	"bytes"
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
	"github.com/seed-c1b73e60/convo/wire"
)

// conversation returns 600 messages of a coding agent with some 300 kB of text.
func conversation() *convo.Snapshot { return conversationOf(150).Snapshot() }

// conversationOf returns the conversation of a coding agent with a number of turns of
// four messages each.
func conversationOf(turns int) *convo.History {
	h, err := convo.New(nil)
	if err != nil {
		panic(err)
	}
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

// BenchmarkEncoder encodes the requests of a conversation after two new messages each,
// alternating between an Encoder and its Format alone. It reports the medians, and the
// ratio of the two.
func BenchmarkEncoder(b *testing.B) {
	for _, messages := range []int{1_000, 10_000} {
		for _, name := range []string{"anthropic", "anthropic 2", "converse", "converse 2", "gemini", "openai chat", "ollama", "strict", "responses", "mistral"} {
			b.Run(fmt.Sprintf("%s/n=%d", name, messages), func(b *testing.B) {
				f := formats[name]
				var with, alone []time.Duration
				for b.Loop() {
					e := &wire.Encoder{Format: f}
					for i, s := range pairs(messages, 40) {
						for _, turn := range []int{i % 2, 1 - i%2} {
							start := time.Now()
							if turn == 0 {
								e.Encode(s)
							} else {
								f.Encode(s)
							}
							if took := time.Since(start); i > 0 && turn == 0 {
								with = append(with, took)
							} else if i > 0 {
								alone = append(alone, took)
							}
						}
					}
				}
				slices.Sort(with)
				slices.Sort(alone)
				a, c := with[len(with)/2], alone[len(alone)/2]
				b.ReportMetric(float64(a.Nanoseconds())/1e3, "us/with")
				b.ReportMetric(float64(c.Nanoseconds())/1e3, "us/alone")
				b.ReportMetric(float64(c)/float64(a), "times")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// The allocations of a request after two new messages do not depend on the length of the
// conversation.
func TestEncoder_AllocatesForWhatIsNew(t *testing.T) {
	few, many := pairs(100, 42), pairs(long.Or(1_000, 2_000), 42)
	for name, f := range formats {
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

// Requests as plain structs, with the fields that the conversation needs.
type (
	plainChat struct {
		Messages []struct {
			Role    string  `json:"role"`
			CallID  string  `json:"tool_call_id,omitempty"`
			Content *string `json:"content"`
			Calls   []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls,omitempty"`
		} `json:"messages"`
	}
	plainResponses struct {
		Instructions string `json:"instructions"`
		Input        []struct {
			Type      string `json:"type,omitempty"`
			CallID    string `json:"call_id,omitempty"`
			Role      string `json:"role,omitempty"`
			Content   string `json:"content,omitempty"`
			Name      string `json:"name,omitempty"`
			Arguments string `json:"arguments,omitempty"`
			Output    string `json:"output,omitempty"`
		} `json:"input"`
	}
	plainAnthropic struct {
		System   []plainText `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content []struct {
				Type    string          `json:"type"`
				Text    string          `json:"text,omitempty"`
				CallID  string          `json:"tool_use_id,omitempty"`
				Content string          `json:"content,omitempty"`
				ID      string          `json:"id,omitempty"`
				Name    string          `json:"name,omitempty"`
				Input   json.RawMessage `json:"input,omitempty"`
			} `json:"content"`
		} `json:"messages"`
	}
	plainText struct {
		Type string `json:"type,omitempty"`
		Text string `json:"text"`
	}
	plainGemini struct {
		System struct {
			Parts []plainText `json:"parts"`
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text string `json:"text,omitempty"`
				Call *struct {
					ID   string          `json:"id,omitempty"`
					Name string          `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall,omitempty"`
				Response *struct {
					ID       string `json:"id,omitempty"`
					Name     string `json:"name"`
					Response struct {
						Output string `json:"output"`
					} `json:"response"`
				} `json:"functionResponse,omitempty"`
				Signature string `json:"thoughtSignature,omitempty"`
			} `json:"parts"`
		} `json:"contents"`
	}
	plainConverse struct {
		System   []plainText `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content []struct {
				Text string `json:"text,omitempty"`
				Use  *struct {
					ID    string          `json:"toolUseId"`
					Name  string          `json:"name"`
					Input json.RawMessage `json:"input"`
				} `json:"toolUse,omitempty"`
				Result *struct {
					ID      string      `json:"toolUseId"`
					Content []plainText `json:"content"`
				} `json:"toolResult,omitempty"`
			} `json:"content"`
		} `json:"messages"`
	}
)

// BenchmarkFirst encodes a whole conversation in each format, and marshals the same
// request as plain structs, alternating between the two. It reports the medians, and the
// ratio of the two.
func BenchmarkFirst(b *testing.B) {
	s := conversation()
	for name, plain := range map[string]any{
		"openai chat": new(plainChat), "responses": new(plainResponses), "anthropic": new(plainAnthropic), "gemini": new(plainGemini), "converse": new(plainConverse),
	} {
		b.Run(name, func(b *testing.B) {
			f := formats[name]
			r, err := f.Encode(s)
			if err != nil {
				b.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(r.Body()))
			d.DisallowUnknownFields()
			if err := d.Decode(plain); err != nil {
				b.Fatal(err)
			}
			var ours, theirs []time.Duration
			for b.Loop() {
				start := time.Now()
				r, _ := f.Encode(s)
				size := len(r.Body())
				between := time.Now()
				data, err := json.Marshal(plain)
				ours, theirs = append(ours, between.Sub(start)), append(theirs, time.Since(between))
				if err != nil || len(data) < size*9/10 { // Marshal removes white space from arguments
					b.Fatal(err, len(data), size)
				}
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			a, c := ours[len(ours)/2], theirs[len(theirs)/2]
			b.ReportMetric(float64(a.Microseconds()), "us/Encode")
			b.ReportMetric(float64(c.Microseconds()), "us/Marshal")
			b.ReportMetric(float64(a)/float64(c), "times")
			b.ReportMetric(0, "ns/op")
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

// BenchmarkDecode_Ratio decodes a request in each format, alternating with json.Unmarshal
// of the same bytes into maps and slices. It reports the ratio of the medians.
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

// BenchmarkEncode_Seals encodes a conversation with signed reasoning for a model that
// checks it, alternating with the same for a model that does not. It reports the ratio of
// the medians.
func BenchmarkEncode_Seals(b *testing.B) {
	h, err := convo.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 2000 {
		answer := convo.Assistant("answer").WithReasoning(convo.Reasoning{Text: "hm", Signature: "c2lnbmF0dXJl"})
		if _, err := h.Append(convo.User(fmt.Sprint("question ", i)), answer); err != nil {
			b.Fatal(err)
		}
	}
	s := h.Snapshot()
	var took [2][]float64
	for b.Loop() {
		for i, check := range []wire.SealCheck{wire.SealsUnchecked, wire.SealsChecked} {
			start := time.Now()
			if _, err := (wire.Anthropic{Seals: check}).Encode(s); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start).Seconds())
		}
	}
	median := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(1000*median(took[1]), "checked-ms")
	b.ReportMetric(median(took[1])/median(took[0]), "checked/unchecked")
	b.ReportMetric(0, "ns/op")
}
