package transport_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// bodies returns the bodies of n steps of a program, the first of about size bytes. Each step adds
// two messages.
func bodies(b *testing.B, format string, size, n int) (all [][]byte) {
	t := &testing.T{}
	p := newProgram(t, nil, "", format)
	for i := 0; len(all) < n; i++ {
		appendStep(p, i)
		if len(p.list)*700 > size {
			all = append(all, p.body())
		}
	}
	return all
}

// appendStep appends a call and its result.
func appendStep(p *program, i int) {
	c := called{id: fmt.Sprint("call", i), name: "read", path: fmt.Sprintf("src/f%d.go", i)}
	switch p.format {
	case provider.FormatAnthropic:
		p.list = append(p.list, obj{"role": "assistant", "content": []any{obj{"type": "tool_use", "id": c.id, "name": "read", "input": obj{"path": c.path}}}})
	case provider.FormatOpenAIChat:
		p.list = append(p.list, obj{"role": "assistant", "content": nil, "tool_calls": []any{obj{"id": c.id, "type": "function", "function": obj{"name": "read", "arguments": "{}"}}}})
	case provider.FormatOpenAIResponses:
		p.list = append(p.list, obj{"type": "function_call", "call_id": c.id, "name": "read", "arguments": "{}"})
	default:
		p.list = append(p.list, obj{"role": "model", "parts": []any{obj{"functionCall": obj{"id": c.id, "name": "read", "args": obj{"path": c.path}}}}})
	}
	p.results([]called{c}, file)
}

// BenchmarkTransport sends bodies of 1 MB, each with two more messages than the one before, and
// compares that with json.Valid of the body and with the copy that a proxy makes.
func BenchmarkTransport(b *testing.B) {
	for _, format := range formats {
		all := bodies(b, format, 1<<20, 200)
		send := func(b *testing.B, tr http.RoundTripper, path string, body []byte) {
			r, err := http.NewRequest(http.MethodPost, "https://provider"+path, bytes.NewReader(body))
			require.NoError(b, err)
			resp, err := tr.RoundTrip(r)
			require.NoError(b, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		p := &program{format: format, model: "gemini-2.5-pro"}
		for _, watch := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/watch=%v", format, watch), func(b *testing.B) {
				b.ReportAllocs()
				var tr *transport.Transport
				c := &recorder{}
				i := 0
				for b.Loop() {
					if i%(len(all)) == 0 {
						b.StopTimer()
						tr = transport.New(transport.Options{Base: c, Watch: watch})
						send(b, tr, p.path(), all[0])
						i = 1
						b.StartTimer()
					}
					send(b, tr, p.path(), all[i])
					i++
				}
			})
		}
		b.Run(format+"/valid", func(b *testing.B) {
			b.SetBytes(int64(len(all[0])))
			for b.Loop() {
				if !json.Valid(all[0]) {
					b.Fatal()
				}
			}
		})
	}
}
