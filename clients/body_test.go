package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

const hello = `data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"

// sendBody makes the request of one message as an SDK does that makes at most so many attempts.
func sendBody(t *testing.T, text string, attempts int, do func(*http.Request) (*http.Response, error)) (convo.Reply, error) {
	req, err := wire.OpenAIChat{}.Encode(convo.NewSnapshot([]convo.Message{convo.User(text)}))
	require.NoError(t, err)
	return clients.SendBody(t.Context(), req, nil, wire.OpenAIChat{}, nil, func(body []byte, through clients.Middleware) clients.Stream[lines] {
		var resp *http.Response
		for range attempts {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com", bytes.NewReader(body))
			require.NoError(t, err)
			if resp, err = through(r, do); err != nil {
				return lines{bufio.NewScanner(strings.NewReader("")), http.NoBody}
			}
			if resp.StatusCode != http.StatusTooManyRequests {
				break
			}
			resp.Body.Close()
		}
		return lines{bufio.NewScanner(resp.Body), resp.Body}
	})
}

// The memory of a body is not used again before the transport has closed the body, also if it
// does so long after the answer.
func TestSendBody_UsedUntilClosed(t *testing.T) {
	texts := []string{strings.Repeat("a", 10_000), strings.Repeat("b", 10_000), strings.Repeat("c", 10_000), strings.Repeat("d", 10_000)}
	var sent []*http.Request
	for _, text := range texts {
		_, err := sendBody(t, text, 1, func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(hello))}, nil
		})
		require.NoError(t, err)
	}
	for i, r := range sent {
		again, err := r.GetBody()
		require.NoError(t, err)
		for _, body := range []io.ReadCloser{r.Body, again} {
			data, err := io.ReadAll(body)
			require.NoError(t, err)
			assert.JSONEq(t, `{"messages":[{"role":"user","content":"`+texts[i]+`"}]}`, string(data))
			require.NoError(t, body.Close())
			require.NoError(t, body.Close())
		}
		_, err = r.GetBody()
		require.ErrorContains(t, err, "the request has ended")
		_, err = r.Body.Read(make([]byte, 1))
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	}
}

// The error of an SDK may hold the request. An application reads its body when it likes.
func TestSendBody_FailedStays(t *testing.T) {
	var kept []byte
	req, err := wire.OpenAIChat{}.Encode(convo.NewSnapshot([]convo.Message{convo.User("first")}))
	require.NoError(t, err)
	_, err = clients.SendBody(t.Context(), req, nil, wire.OpenAIChat{}, nil, func(body []byte, _ clients.Middleware) clients.Stream[lines] {
		kept = body
		return lines{bufio.NewScanner(iotestError{}), http.NoBody}
	})
	require.Error(t, err)
	for range 10 {
		_, err := sendBody(t, "second", 1, func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(hello))}, nil
		})
		require.NoError(t, err)
	}
	assert.Contains(t, string(kept), "first")
}

type iotestError struct{}

func (iotestError) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// A body takes no new memory after the first ones.
func TestSendBody_Reuses(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	least := uint64(1 << 62)
	for range 20 {
		var before, after runtime.MemStats
		req, err := wire.OpenAIChat{}.Encode(convo.NewSnapshot([]convo.Message{convo.User(text)}))
		require.NoError(t, err)
		runtime.ReadMemStats(&before)
		_, err = clients.SendBody(t.Context(), req, nil, wire.OpenAIChat{}, nil, func(body []byte, through clients.Middleware) clients.Stream[lines] {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com", bytes.NewReader(body))
			require.NoError(t, err)
			resp, err := through(r, func(r *http.Request) (*http.Response, error) {
				r.Body.Close()
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(hello))}, nil
			})
			require.NoError(t, err)
			return lines{bufio.NewScanner(resp.Body), resp.Body}
		})
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	assert.Less(t, least, uint64(100_000))
}

// A server that answers 429 before it has read the body still gets the right bytes, and so do
// the requests that are made in the meantime. Run it with the race detector.
func TestBodies_AnsweredBeforeRead(t *testing.T) {
	var early, whole, wrong atomic.Int64
	check := func(data []byte) {
		if i := bytes.Index(data, []byte("text ")); i >= 0 && i+6 < len(data) {
			letter := data[i+5]
			text, _, _ := bytes.Cut(data[i+5:], []byte(`"`))
			if len(bytes.Trim(text, string(letter))) > 0 {
				wrong.Add(1)
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if early.Add(1)%2 == 0 {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			check(data)
			whole.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, hello)
			return
		}
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		data, _ := io.ReadAll(buffered) // what the transport still writes
		check(data)
	}))
	defer server.Close()
	do := func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Host = strings.TrimPrefix(server.URL, "http://")
		r.Host = ""
		return server.Client().Transport.RoundTrip(r)
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range 6 {
				text := "text " + strings.Repeat(string(rune('A'+(4*i+n)%26)), 1<<20)
				if i%2 == 0 {
					_, _ = sendBody(t, text, 3, do)
					continue
				}
				req, err := wire.OpenAIChat{}.Encode(convo.NewSnapshot([]convo.Message{convo.User(text)}))
				if !assert.NoError(t, err) {
					return
				}
				client := &http.Client{Transport: clients.Transport(roundTrip(do))}
				_, _ = clients.Through(t.Context(), req, wire.OpenAIChat{}, nil, func(ctx context.Context) error {
					for range 3 {
						r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com", strings.NewReader(`{"model":"m"}`))
						if err != nil {
							return err
						}
						resp, err := client.Do(r)
						if err != nil {
							continue
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode == http.StatusOK {
							return nil
						}
					}
					return fmt.Errorf("429 too many requests")
				})
			}
		})
	}
	wg.Wait()
	assert.Zero(t, wrong.Load())
	assert.Positive(t, whole.Load())
	t.Log(early.Load(), whole.Load())
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
