package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// An outage has the status, the error and the header of the provider. It is no refusal, and
// the History takes it for no overflow.
func TestFault_Status(t *testing.T) {
	words := map[int]map[string]string{
		429: {"anthropic": "rate_limit_error", "chat": "rate_limit_exceeded", "responses": "rate_limit_exceeded", "gemini": "RESOURCE_EXHAUSTED", "converse": "Too many requests"},
		503: {"anthropic": "overloaded_error", "chat": "server_error", "responses": "server_error", "gemini": "UNAVAILABLE", "converse": "unable to process"},
		529: {"anthropic": "overloaded_error", "chat": "server_error", "responses": "server_error", "gemini": "UNAVAILABLE", "converse": "unable to process"},
		500: {"anthropic": "api_error", "chat": "server_error", "responses": "server_error", "gemini": "INTERNAL", "converse": "unexpected error"},
	}
	for _, tt := range formatTests() {
		t.Run(tt.name, func(t *testing.T) {
			for status, word := range words {
				s := provider.New(provider.Options{})
				s.Script(provider.Answer{Fault: &provider.Fault{Status: status, RetryAfter: 1500 * time.Millisecond}}, provider.Answer{Blocks: []provider.Block{provider.Text("now")}})
				c := serve(t, s, tt)
				resp, err := http.Post(c.url, "application/json", strings.NewReader(accepted(t, tt)))
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				resp.Body.Close()
				assert.Equal(t, status, resp.StatusCode)
				assert.Equal(t, "2", resp.Header.Get("Retry-After"))
				kind, _, _ := strings.Cut(tt.name, " ")
				assert.Contains(t, string(body), word[kind])
				_, err = tt.client.format.Decode(body)
				assert.Error(t, err)
				assert.False(t, convo.IsOverflow(err), "%s", body)
				assert.Empty(t, s.Refused())
				assert.Equal(t, status, s.Requests()[0].Status)

				reply, err := once(t, c)
				require.NoError(t, err)
				assert.Equal(t, "now", reply.Text())
			}
		})
	}
}

// A request that alone exceeds the quota is refused. The History takes it for an overflow
// where the provider says how large the request was, and that is with what the answer may
// have.
func TestQuota(t *testing.T) {
	for _, tt := range formatTests() {
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{Quota: 3_000})
			c := serve(t, s, tt)
			_, err := once(t, c)
			require.NoError(t, err)

			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 20_000}})
			for range 50 {
				mustAppend(t, h, convo.User(strings.Repeat("question ", 40)), convo.Assistant("answer"))
			}
			mustAppend(t, h, convo.User("the newest question"))
			_, err = h.Do(t.Context(), c.send)
			refused := s.Refused()
			require.NotEmpty(t, refused)
			assert.Equal(t, http.StatusTooManyRequests, refused[0].Status)
			if kind, _, _ := strings.Cut(tt.name, " "); kind != "chat" && kind != "responses" {
				require.Error(t, err)
				assert.Equal(t, 17_500, h.Status().Limit)
				return
			}
			require.NoError(t, err)
			assert.Len(t, refused, 1)
			assert.LessOrEqual(t, h.Status().Limit, 3_000)
		})
	}
	s := provider.New(provider.Options{Quota: 3_000})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","max_tokens":2995,"messages":[{"role":"user","content":"question"}]}`))
	require.NoError(t, err)
	resp.Body.Close()
	require.Len(t, s.Refused(), 1)
	assert.Contains(t, s.Refused()[0].Error, "Limit 3000, Requested 30")
}

// accepted returns a request that the server accepts.
func accepted(t *testing.T, tt formatTest) string {
	t.Helper()
	req, err := tt.client.format.Encode(convo.NewSnapshot([]convo.Message{convo.User("question")}))
	require.NoError(t, err)
	body, err := req.With(tt.client.params)
	require.NoError(t, err)
	return string(body)
}

// once asks a question.
func once(t *testing.T, c client) (convo.Reply, error) {
	t.Helper()
	h := newHistory(t, nil)
	mustAppend(t, h, convo.User("question"))
	return h.Do(t.Context(), c.send)
}

// A stream that is cut is an error wherever it is cut before its end, and none of it is kept.
func TestFault_CutAfter(t *testing.T) {
	for _, tt := range formatTests() {
		if !tt.client.stream {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			whole := false
			for events := 1; !whole && events < 50; events++ {
				s := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
					return provider.Answer{
						Blocks: []provider.Block{provider.Text("one and two"), provider.Call{Name: "read", Arguments: `{"n":1.0}`}},
						Fault:  &provider.Fault{CutAfter: events},
					}
				}})
				reply, err := once(t, serve(t, s, tt))
				if whole = err == nil; whole {
					assert.Equal(t, "one and two", reply.Text(), "after %d events", events)
					assert.Len(t, reply.OpenCalls(), 1, "after %d events", events)
				}
				if events == 1 {
					assert.Error(t, err)
				}
			}
			assert.True(t, whole, "the stream is never whole")
		})
	}
}

// An unknown event changes nothing.
func TestFault_Foreign(t *testing.T) {
	const foreign = `{"type":"surprise","index":0}`
	for _, tt := range formatTests() {
		if !tt.client.stream {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{})
			s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("one and two")}, Fault: &provider.Fault{Foreign: foreign}})
			s.Script(provider.Answer{Fault: &provider.Fault{Foreign: foreign}})
			c := serve(t, s, tt)
			reply, err := once(t, c)
			require.NoError(t, err)
			assert.Equal(t, "one and two", reply.Text())
			resp, err := http.Post(c.url, "application/json", strings.NewReader(accepted(t, tt)))
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Contains(t, string(body), foreign)
		})
	}
}

// A wait ends when the client goes away.
func TestFault_Wait(t *testing.T) {
	s := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Fault: &provider.Fault{Wait: time.Hour}}
	}})
	server := httptest.NewServer(s)
	defer server.Close() // waits for the handlers
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	tt := formatTests()[0]
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+tt.path, strings.NewReader(accepted(t, tt)))
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(r)
	assert.True(t, errors.Is(err, context.Canceled), err)
}

// The events of a slow stream come one after the other.
func TestFault_Pause(t *testing.T) {
	for _, tt := range formatTests() {
		if !tt.client.stream {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{})
			s.Script(provider.Answer{Blocks: []provider.Block{provider.Text("one and two")}, Fault: &provider.Fault{Pause: 5 * time.Millisecond}})
			start := time.Now()
			reply, err := once(t, serve(t, s, tt))
			require.NoError(t, err)
			assert.Equal(t, "one and two", reply.Text())
			assert.GreaterOrEqual(t, time.Since(start), 10*time.Millisecond)
		})
	}
}
