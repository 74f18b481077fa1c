package transport_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// Each event reaches the program before the next one is written.
func TestTransport_StreamsAtOnce(t *testing.T) {
	events := map[string]string{
		provider.FormatAnthropic:       `{"type":"ping","n":%d}`,
		provider.FormatOpenAIChat:      `{"choices":[{"delta":{"content":"%d"}}]}`,
		provider.FormatOpenAIResponses: `{"type":"response.output_text.delta","delta":"%d"}`,
		provider.FormatGemini:          `{"candidates":[{"content":{"parts":[{"text":"%d"}]}}]}`,
	}
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			seen := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 5 {
					_, _ = fmt.Fprintf(w, "data: "+events[format]+"\n\n", i)
					w.(http.Flusher).Flush()
					<-seen
				}
			}))
			defer server.Close()
			tr := small(t, transport.Options{})
			p := newProgram(t, nil, server.URL, format)
			p.stream = true
			resp, err := (&http.Client{Transport: tr}).Post(server.URL+p.path(), "application/json", strings.NewReader(string(p.body())))
			require.NoError(t, err)
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			for i := range 5 {
				require.True(t, lines.Scan())
				require.Equal(t, "data: "+fmt.Sprintf(events[format], i), lines.Text())
				require.True(t, lines.Scan())
				seen <- struct{}{}
			}
			require.False(t, lines.Scan())
		})
	}
}

// What a program sends to name its conversation keeps those apart that begin alike.
func TestTransport_Keys(t *testing.T) {
	tests := []struct {
		name, format string
		header       string
		extra        func(id string) obj
		key          func(*http.Request) string
	}{
		{name: "session of pi", format: provider.FormatOpenAIResponses, header: "Session_id"},
		{name: "session of Codex", format: provider.FormatOpenAIResponses, header: "Session-Id"},
		{name: "session of opencode and crush", format: provider.FormatOpenAIChat, header: "X-Session-Id"},
		{name: "prompt_cache_key", format: provider.FormatOpenAIResponses, extra: func(id string) obj { return obj{"prompt_cache_key": id} }},
		{name: "prompt_cache_key of Chat Completions", format: provider.FormatOpenAIChat, extra: func(id string) obj { return obj{"prompt_cache_key": id} }},
		{name: "user_id of Claude Code", format: provider.FormatAnthropic, extra: func(id string) obj { return obj{"metadata": obj{"user_id": "user_x_session_" + id}} }},
		{name: "session_id of Gemini CLI", format: provider.FormatGemini, extra: func(id string) obj { return obj{"session_id": id} }},
		{name: "session affinity", format: provider.FormatOpenAIChat, header: "X-Session-Affinity"},
		{name: "own", format: provider.FormatOpenAIChat, header: "X-Own", key: func(r *http.Request) string { return r.Header.Get("X-Own") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &recorder{}
			tr := small(t, transport.Options{Base: c, Key: tt.key})
			for range 2 {
				for _, id := range []string{"one", "two"} {
					p := newProgram(t, nil, "", tt.format)
					var header []string
					if tt.header != "" {
						header = []string{tt.header, id}
					}
					if tt.extra != nil {
						p.extra = tt.extra(id)
					}
					post(t, tr, p.path(), p.body(), header...)
				}
			}
			all := tr.Conversations()
			require.Len(t, all, 2)
			require.Contains(t, all[0].Key, "two")
			require.Contains(t, all[1].Key, "one")
			require.Equal(t, 2, all[0].Requests)
		})
	}
}

// As many conversations as are kept, in turns, all go on.
func TestTransport_MostInTurns(t *testing.T) {
	c := &recorder{}
	tr := small(t, transport.Options{Base: c, Most: 2})
	programs := make([]*program, 2)
	for i := range programs {
		programs[i] = newProgram(t, nil, "", provider.FormatOpenAIChat)
		programs[i].user(fmt.Sprint("conversation ", i))
	}
	for i := range 5 {
		for _, p := range programs {
			post(t, tr, p.path(), p.body())
			appendStep(p, i)
		}
	}
	for _, k := range tr.Conversations() {
		require.Equal(t, 5, k.Requests)
	}
}

// Conversations are bounded in number, and those under way stay.
func TestTransport_Most(t *testing.T) {
	c := &recorder{}
	tr := small(t, transport.Options{Base: c, Most: 3})
	for i := range 10 {
		p := newProgram(t, nil, "", provider.FormatOpenAIChat)
		p.user(fmt.Sprint("conversation ", i))
		post(t, tr, p.path(), p.body())
	}
	all := tr.Conversations()
	require.Len(t, all, 3)
	for _, k := range all {
		require.Equal(t, 2, k.History.Len()-k.History.Status().System)
	}
	require.NoError(t, tr.Close())
	require.Empty(t, tr.Conversations())
	p := newProgram(t, nil, "", provider.FormatOpenAIChat)
	post(t, tr, p.path(), p.body())
	require.Equal(t, string(p.body()), string(c.body), "a closed Transport lets requests pass")
	require.Empty(t, tr.Conversations())
}

// A request whose ctx ends does not wait until the conversation is compacted.
func TestTransport_WaitEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &recorder{}
		end := make(chan struct{})
		var log bytes.Buffer
		tr := transport.New(transport.Options{Base: c, Logger: slog.New(slog.NewTextHandler(&log, nil)), History: func(transport.Conversation) *convo.Options {
			return &convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 600}, BeforeCompaction: func(context.Context, *convo.Snapshot, *convo.Goal) error {
				<-end
				return nil
			}}
		}})
		p := longProgram(t, provider.FormatAnthropic)
		var first sync.WaitGroup
		first.Go(func() { post(t, tr, p.path(), p.body()) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://provider"+p.path(), bytes.NewReader(p.body()))
		require.NoError(t, err)
		resp, err := tr.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, string(p.body()), string(c.body), "it passes as it came, for Base to say that ctx has ended")
		require.Empty(t, log.String())
		close(end)
		first.Wait()
		require.Less(t, len(c.body), len(p.body()))
	})
}

// The window follows the model, unless the application has set one.
func TestTransport_Window(t *testing.T) {
	for _, own := range []int{0, 9000} {
		tr := transport.New(transport.Options{Base: &recorder{}, History: func(transport.Conversation) *convo.Options {
			return &convo.Options{Limits: convo.Limits{Window: own}}
		}})
		for _, model := range []string{"gpt-4o", "claude-opus-5", "no-model"} {
			p := newProgram(t, nil, "", provider.FormatOpenAIChat)
			p.model, p.extra = model, obj{"tools": nil}
			p.user("a second message")
			p.user("a third message")
			post(t, tr, p.path(), p.body())
			want := transport.Window(model)
			if own != 0 {
				want = own
			}
			require.Equal(t, want, tr.Conversations()[0].History.Status().Window, model)
		}
		require.Len(t, tr.Conversations(), 1)
		require.NoError(t, tr.Close())
	}
}

// The beginning of a compressed answer is looked at no further than that of another one.
func TestTransport_StreamExpands(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(make([]byte, 1<<24))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	size := packed.Len()
	tr := small(t, transport.Options{Base: roundTrip(func(r *http.Request) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(iotest.OneByteReader(&packed)),
			Header: http.Header{"Content-Type": {"text/event-stream"}, "Content-Encoding": {"gzip"}}}
	})})
	p := longProgram(t, provider.FormatAnthropic)
	r, err := http.NewRequest(http.MethodPost, "https://provider"+p.path(), bytes.NewReader(p.body()))
	require.NoError(t, err)
	resp, err := tr.RoundTrip(r)
	require.NoError(t, err)
	require.Less(t, size-packed.Len(), 1000, "bytes read before the program has the answer")
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Len(t, data, size)
	require.NoError(t, resp.Body.Close())
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// A conversation that begins with the same messages as a longer one, such as the same task once more,
// goes on as one.
func TestTransport_SameAgain(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			c := &recorder{}
			tr := small(t, transport.Options{Base: c})
			for run := range 3 {
				p := newProgram(t, nil, "", format)
				for i := range 60 {
					post(t, tr, p.path(), p.body())
					appendStep(p, i)
				}
				require.Less(t, len(c.body), len(p.body())/2)
				require.LessOrEqual(t, len(tr.Conversations()), run+1)
			}
		})
	}
}

// The usage of a stream is read, also where the model writes of usage and of messages.
func TestTransport_StreamUsage(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			_, url := server(t, provider.Options{Answer: func(provider.Request) provider.Answer {
				return provider.Answer{
					Blocks: []provider.Block{provider.Text(strings.Repeat("The usage of a message; ", 40))},
					Usage:  &provider.Usage{Input: 123, Output: 10},
				}
			}})
			tr := small(t, transport.Options{})
			p := newProgram(t, &http.Client{Transport: tr}, url, format)
			p.stream = true
			_, err := p.step()
			require.NoError(t, err)
			require.Equal(t, 123, tr.Conversations()[0].History.Tokens().Measured)
		})
	}
}
