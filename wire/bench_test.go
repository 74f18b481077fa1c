package wire_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
)

// conversation is 600 messages of a coding agent, some 400 kB of text.
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

// BenchmarkEncode writes a conversation in each format, beside json.Marshal of
// the same request read into maps and slices.
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

// BenchmarkDecode reads a request in each format, beside json.Unmarshal of it
// into maps and slices.
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
