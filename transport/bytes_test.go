package transport_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/transport"
)

// An upstream takes any body and gives any answer.
type upstream struct {
	body   []byte // of the last request
	header http.Header
	status int
	kind   string
	coding string
	answer []byte
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	u.body, u.header = nil, r.Header
	if r.Body != nil {
		u.body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	h := http.Header{"Content-Type": {u.kind}}
	if u.coding != "" {
		h.Set("Content-Encoding", u.coding)
	}
	return &http.Response{StatusCode: u.status, Header: h, Body: io.NopCloser(bytes.NewReader(u.answer)), Request: r, ProtoMajor: 1, ContentLength: -1}, nil
}

// exchange sends a body through a Transport, and requires that both sides see the other's bytes.
func (u *upstream) exchange(t testing.TB, tr http.RoundTripper, path string, body []byte) {
	r, err := http.NewRequest(http.MethodPost, "http://provider"+path, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-Own", "1")
	resp, err := tr.RoundTrip(r)
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, u.status, resp.StatusCode)
	require.True(t, bytes.Equal(u.answer, got), "another answer than the provider's")
	require.True(t, bytes.Equal(body, u.body), "another body than the program's:\n%.2000s\n%.2000s", body, u.body)
	require.Equal(t, "1", u.header.Get("X-Own"))
}

// answers are answers of providers and what else may come.
func (u *upstream) random(r *rand.Rand) {
	texts := []string{
		`{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":12,"output_tokens":3}}`,
		`{"choices":[{"message":{"role":"assistant","content":"hi"}}],"usage":{"prompt_tokens":12,"completion_tokens":1}}`,
		"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
		": ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n",
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n",
		`{"error":{"message":"nothing here","type":"not_found"}}`, "", "\x00\xff\xfe", "<html>", strings.Repeat("x", 70_000), "data: ", "data: {\"usage\":",
	}
	u.answer = []byte(texts[r.IntN(len(texts))])
	u.status = []int{200, 200, 200, 400, 404, 429, 500, 529}[r.IntN(8)]
	u.kind = []string{"application/json", "text/event-stream", "text/event-stream; charset=utf-8", ""}[r.IntN(4)]
	if u.coding = ""; r.IntN(5) == 0 {
		u.coding = "gzip"
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(u.answer)
		_ = w.Close()
		if u.answer = b.Bytes(); r.IntN(3) == 0 {
			u.answer = u.answer[:r.IntN(len(u.answer))]
		}
	}
}

// randomBody returns a body of a program after some steps, as it stands or damaged.
func randomBody(t *testing.T, r *rand.Rand, p *program) []byte {
	text := func() string {
		words := []string{"a", "Ünï", "日本", "\"", "\\", "\n", "<system-reminder>x</system-reminder>", "{}", "[", "\u2028", strings.Repeat("long ", r.IntN(200))}
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	if r.IntN(4) == 0 || len(p.list) > 40 {
		p.list = nil
	}
	for range r.IntN(4) {
		switch r.IntN(4) {
		case 0:
			p.user(text())
		case 1:
			p.list = append(p.list, obj{"role": "assistant", "content": text()})
		case 2:
			calls := []called{{fmt.Sprint("c", len(p.list)), "read", "x"}}
			switch p.format {
			case provider.FormatAnthropic:
				p.list = append(p.list, obj{"role": "assistant", "content": []any{obj{"type": "tool_use", "id": calls[0].id, "name": "read", "input": obj{"path": text()}}}})
			case provider.FormatOpenAIChat:
				p.list = append(p.list, obj{"role": "assistant", "content": nil, "tool_calls": []any{obj{"id": calls[0].id, "type": "function", "function": obj{"name": "read", "arguments": text()}}}})
			case provider.FormatOpenAIResponses:
				p.list = append(p.list, obj{"type": "reasoning", "summary": []any{}}, obj{"type": "function_call", "call_id": calls[0].id, "name": "read", "arguments": text()})
			default:
				p.list = append(p.list, obj{"role": "model", "parts": []any{obj{"functionCall": obj{"name": "read", "args": obj{"path": text()}}}}})
			}
			p.results(calls, func(called) string { return text() })
		case 3:
			p.list = append(p.list, []any{obj{"role": "user"}, nil, 1, "x", obj{}, obj{"type": "unknown", "x": text()}, []any{}}[r.IntN(7)])
		}
	}
	body := p.body()
	if r.IntN(3) == 0 {
		var b bytes.Buffer
		require.NoError(t, json.Indent(&b, body, "", " "))
		body = b.Bytes()
	}
	switch r.IntN(6) {
	case 0:
		body = body[:r.IntN(len(body)+1)]
	case 1:
		for range 1 + r.IntN(3) {
			body[r.IntN(len(body))] = "{}[]\",:\\0x\x00\xff"[r.IntN(12)]
		}
	}
	return body
}

// Without a compaction, both sides get each other's bytes, whatever they are.
func TestTransport_SameBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	u := &upstream{}
	trs := []*transport.Transport{transport.New(transport.Options{Base: u}), transport.New(transport.Options{Base: u, Watch: true})}
	var programs []*program
	for _, format := range formats {
		for range 3 {
			programs = append(programs, &program{t: t, format: format, model: "m", system: "s"})
		}
	}
	for range long.Or(4000, 100_000) {
		u.random(r)
		p := programs[r.IntN(len(programs))]
		p.stream = r.IntN(2) == 0
		u.exchange(t, trs[r.IntN(2)], p.path(), randomBody(t, r, p))
	}
	require.NotEmpty(t, trs[0].Conversations())
}

func FuzzTransport(f *testing.F) {
	for i := range formats {
		f.Add(uint8(i), []byte(`{"messages":[{"role":"user","content":"x"}],"input":[{"role":"user","content":"x"}],"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{}]}`), []byte(`{"usage":{"input_tokens":1}}`), uint8(i))
	}
	f.Add(uint8(0), []byte(`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}],"tools":[1]}`), []byte("data: {}\n\n"), uint8(1))
	u := &upstream{}
	tr := transport.New(transport.Options{Base: u})
	f.Fuzz(func(t *testing.T, format uint8, body, answer []byte, kind uint8) {
		p := &program{format: formats[int(format)%len(formats)], model: "m", stream: kind%2 == 1}
		u.answer, u.status, u.coding, u.kind = answer, 200, "", "application/json"
		if p.stream {
			u.kind = "text/event-stream"
		}
		if kind&2 != 0 {
			u.coding = "gzip"
		}
		u.exchange(t, tr, p.path(), body)
	})
}
