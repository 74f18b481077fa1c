package transport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// bodies returns the bodies of n steps of a program, the first of about size bytes. Each step adds
// two messages.
func bodies(b *testing.B, format string, size, n int) (all [][]byte) {
	t := &testing.T{}
	p := newProgram(t, nil, "", format)
	p.model = "a-model" // whose window is not known
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
// reports how long a Transport takes beside json.Valid of the body, and beside that the longest of a
// hundred.
func BenchmarkTransport(b *testing.B) {
	for _, format := range formats {
		all := bodies(b, format, 1<<20, 200)
		p := &program{format: format, model: "a-model"}
		for _, watch := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/watch=%v", format, watch), func(b *testing.B) {
				b.ReportAllocs()
				var tr *transport.Transport
				var took, valid []time.Duration
				send := func(body []byte) {
					r, err := http.NewRequest(http.MethodPost, "https://provider"+p.path(), bytes.NewReader(body))
					require.NoError(b, err)
					resp, err := tr.RoundTrip(r)
					require.NoError(b, err)
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				for i := 0; b.Loop(); i++ {
					if i%(len(all)-1) == 0 {
						b.StopTimer()
						tr = transport.New(transport.Options{Base: empty{}, Watch: watch})
						send(all[0])
						b.StartTimer()
					}
					start := time.Now()
					send(all[1+i%(len(all)-1)])
					took = append(took, time.Since(start))
					start = time.Now()
					if !json.Valid(all[0]) {
						b.Fatal("not valid")
					}
					valid = append(valid, time.Since(start))
				}
				slices.Sort(took)
				slices.Sort(valid)
				at := func(all []time.Duration, share float64) float64 { return float64(all[int(share*float64(len(all)-1))]) }
				b.ReportMetric(at(took, 0.5)/at(valid, 0.5), "p50-of-valid")
				b.ReportMetric(at(took, 0.99)/at(valid, 0.5), "p99-of-valid")
			})
		}
	}
}

// empty answers each request with an empty object.
type empty struct{}

func (empty) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
}

// BenchmarkProxy sends streams through a reverse proxy with and without a Transport, in turns, each
// with two more messages than the one before. It reports how long requests take until the first
// byte and until the last one, with a Transport as a share of the time without.
func BenchmarkProxy(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 100 {
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"word \"}}]}\n\n")
			w.(http.Flusher).Flush()
		}
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	require.NoError(b, err)
	base := http.DefaultTransport.(*http.Transport).Clone()
	for _, size := range []int{10 << 10, 1 << 20, 10 << 20} {
		b.Run(fmt.Sprint(size>>10, "kB"), func(b *testing.B) {
			all := bodies(b, provider.FormatOpenAIChat, size, 20)
			var clients []func(body []byte) (first, last time.Duration)
			for _, watched := range []bool{false, true} {
				proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, Transport: base}
				if watched {
					proxy.Transport = transport.New(transport.Options{Base: base})
				}
				server := httptest.NewServer(proxy)
				defer server.Close()
				clients = append(clients, func(body []byte) (first, last time.Duration) {
					start := time.Now()
					resp, err := server.Client().Post(server.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body))
					require.NoError(b, err)
					_, err = resp.Body.Read(make([]byte, 1))
					first = time.Since(start)
					if _, copyErr := io.Copy(io.Discard, resp.Body); watched { // a ReverseProxy alone loses an answer now and then
						require.NoError(b, errors.Join(err, copyErr))
					}
					require.NoError(b, resp.Body.Close())
					return first, time.Since(start)
				})
				clients[len(clients)-1](all[0])
			}
			var firsts, lasts [2][]time.Duration
			for i := 0; b.Loop(); i++ {
				for k, send := range clients {
					first, last := send(all[i%len(all)])
					firsts[k], lasts[k] = append(firsts[k], first), append(lasts[k], last)
				}
			}
			for _, m := range []struct {
				name  string
				share float64
				of    [2][]time.Duration
			}{{"p50", 0.5, lasts}, {"p99", 0.99, lasts}, {"first-p50", 0.5, firsts}, {"first-p99", 0.99, firsts}} {
				var at [2]float64
				for k, all := range m.of {
					slices.Sort(all)
					at[k] = float64(all[int(m.share*float64(len(all)-1))])
				}
				b.ReportMetric(at[1]/at[0], m.name+"-ratio")
				if m.share == 0.5 {
					b.ReportMetric(at[1]/1e6, m.name+"-ms")
				}
			}
		})
	}
}
