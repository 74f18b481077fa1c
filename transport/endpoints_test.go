package transport_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// A recorder answers everything with an empty answer, and keeps the newest request.
type recorder struct {
	path, encoding, accepts string
	trailer                 http.Header
	body                    []byte
	err                     error
}

func (c *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	c.path, c.encoding, c.accepts = r.URL.Path, r.Header.Get("Content-Encoding"), r.Header.Get("Accept-Encoding")
	c.trailer = r.Trailer
	c.body, _ = io.ReadAll(r.Body)
	if c.err != nil {
		return nil, c.err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: r}, nil
}

// longProgram returns a program with a conversation that is larger than the window of small.
func longProgram(t *testing.T, format string) *program {
	p := newProgram(t, nil, "", format)
	for i := range 40 {
		calls := []called{{id: "c" + string(rune('a'+i%26)) + string(rune('a'+i/26)), name: "read", path: "src/f1.go"}}
		switch format {
		case provider.FormatAnthropic:
			p.list = append(p.list, obj{"role": "assistant", "content": []any{obj{"type": "tool_use", "id": calls[0].id, "name": "read", "input": obj{"path": "x"}}}})
		case provider.FormatOpenAIChat:
			p.list = append(p.list, obj{"role": "assistant", "content": nil, "tool_calls": []any{obj{"id": calls[0].id, "type": "function", "function": obj{"name": "read", "arguments": "{}"}}}})
		case provider.FormatOpenAIResponses:
			p.list = append(p.list, obj{"type": "function_call", "call_id": calls[0].id, "name": "read", "arguments": "{}"})
		default:
			calls[0].id = ""
			p.list = append(p.list, obj{"role": "model", "parts": []any{obj{"functionCall": obj{"name": "read", "args": obj{"path": "x"}}}}})
		}
		p.results(calls, file)
	}
	return p
}

func post(t *testing.T, tr http.RoundTripper, path string, body []byte, header ...string) {
	r, err := http.NewRequest(http.MethodPost, "https://provider"+path, bytes.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := tr.RoundTrip(r)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
}

func TestTransport_Paths(t *testing.T) {
	tests := []struct {
		path, format string
		follows      bool
	}{
		{"/v1/messages", provider.FormatAnthropic, true},
		{"/some/proxy/v1/messages", provider.FormatAnthropic, true},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-5:rawPredict", provider.FormatAnthropic, true},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-5:streamRawPredict", provider.FormatAnthropic, true},
		{"/v1/chat/completions", provider.FormatOpenAIChat, true},
		{"/api/v1/chat/completions", provider.FormatOpenAIChat, true},
		{"/v1/completions", provider.FormatOpenAIChat, false},
		{"/v1/responses", provider.FormatOpenAIResponses, true},
		{"/responses", provider.FormatOpenAIResponses, true},
		{"/v1beta/models/gemini-3:generateContent", provider.FormatGemini, true},
		{"/v1beta/models/gemini-3:streamGenerateContent", provider.FormatGemini, true},
		{"/v1beta/models/gemini-3:embedContent", provider.FormatGemini, false},
		{"/v1/messages/batches", provider.FormatAnthropic, false},
		{"/v1/models", provider.FormatAnthropic, false},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			c := &recorder{}
			tr := small(t, transport.Options{Base: c})
			body := longProgram(t, tt.format).body()
			post(t, tr, tt.path, body)
			require.Equal(t, tt.path, c.path)
			require.Equal(t, tt.follows, len(c.body) < len(body))
			require.Equal(t, tt.follows, len(tr.Conversations()) == 1)
		})
	}
}

// The endpoints that count get the messages that would be sent, and begin no conversation.
func TestTransport_Count(t *testing.T) {
	tests := []struct{ path, count, format string }{
		{"/v1/messages", "/v1/messages/count_tokens", provider.FormatAnthropic},
		{"/v1/responses", "/v1/responses/input_tokens", provider.FormatOpenAIResponses},
		{"/v1beta/models/gemini-3:generateContent", "/v1beta/models/gemini-3:countTokens", provider.FormatGemini},
	}
	for _, tt := range tests {
		t.Run(tt.count, func(t *testing.T) {
			c := &recorder{}
			tr := small(t, transport.Options{Base: c})
			body := longProgram(t, tt.format).body()
			post(t, tr, tt.count, body)
			require.Equal(t, string(body), string(c.body))
			require.Empty(t, tr.Conversations())
			post(t, tr, tt.path, body)
			sent := c.body
			post(t, tr, tt.count, body)
			require.Equal(t, string(sent), string(c.body))
			require.Less(t, len(sent), len(body))
		})
	}
}

func TestTransport_Encodings(t *testing.T) {
	c := &recorder{}
	tr := small(t, transport.Options{Base: c})
	body := longProgram(t, provider.FormatAnthropic).body()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(body)
	require.NoError(t, w.Close())

	post(t, tr, "/v1/messages", packed.Bytes(), "Content-Encoding", "gzip", "Accept-Encoding", "gzip, br, zstd")
	require.Empty(t, c.encoding)
	require.Equal(t, "gzip", c.accepts)
	require.True(t, bytes.HasPrefix(c.body, []byte(`{"max_tokens"`)))
	require.Less(t, len(c.body), len(body))

	post(t, tr, "/v1/messages", packed.Bytes(), "Content-Encoding", "zstd", "Accept-Encoding", "br")
	require.Equal(t, "zstd", c.encoding)
	require.Equal(t, "br", c.accepts)
	require.Equal(t, packed.Bytes(), c.body)

	short := newProgram(t, nil, "", provider.FormatAnthropic).body()
	packed.Reset()
	w.Reset(&packed)
	_, _ = w.Write(short)
	require.NoError(t, w.Close())
	post(t, tr, "/v1/messages", packed.Bytes(), "Content-Encoding", "gzip", "Accept-Encoding", "br")
	require.Equal(t, "gzip", c.encoding, "what is not changed stays as it came")
	require.Equal(t, "identity", c.accepts)
	require.Equal(t, packed.Bytes(), c.body)

	for accepts, want := range map[string]string{
		"gzip": "gzip", "br, GZIP;q=0.5": "gzip", "gzip;q=1.0, *;q=0": "gzip",
		"gzip;q=0": "identity", "br, gzip; q=0.00": "identity", "identity": "identity",
	} {
		post(t, tr, "/v1/messages", short, "Accept-Encoding", accepts)
		require.Equal(t, want, c.accepts, accepts)
	}
}

// A request with a trailer passes, since it has one only in chunks.
func TestTransport_Trailer(t *testing.T) {
	c := &recorder{}
	tr := small(t, transport.Options{Base: c})
	body := longProgram(t, provider.FormatAnthropic).body()
	r, err := http.NewRequest(http.MethodPost, "https://provider/v1/messages", bytes.NewReader(body))
	require.NoError(t, err)
	r.ContentLength, r.Trailer = -1, http.Header{"Digest": {"x"}}
	resp, err := tr.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, body, c.body)
	require.Equal(t, r.Trailer, c.trailer)
}

// A Logger that panics, or another function of the program, keeps no request.
func TestTransport_Panics(t *testing.T) {
	options := map[string]transport.Options{
		"Logger":  {Logger: slog.New(slog.NewTextHandler(panics{}, nil))},
		"Key":     {Key: func(*http.Request) string { panic("key") }},
		"History": {History: func(transport.Conversation) *convo.Options { panic("history") }},
	}
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			c := &recorder{}
			o.Base = c
			tr := transport.New(o)
			for _, body := range [][]byte{longProgram(t, provider.FormatAnthropic).body(), []byte("no JSON")} {
				post(t, tr, "/v1/messages", body)
				require.Equal(t, string(body), string(c.body))
			}
		})
	}
}

type panics struct{}

func (panics) Write([]byte) (int, error) { panic("log") }

// What cannot be followed passes.
func TestTransport_Passes(t *testing.T) {
	signed := []string{"Authorization", "AWS4-HMAC-SHA256 Credential=x"}
	stored := longProgram(t, provider.FormatOpenAIResponses)
	stored.extra = obj{"previous_response_id": "resp_1"}
	conversation := longProgram(t, provider.FormatOpenAIResponses)
	conversation.extra = obj{"conversation": obj{"id": "conv_1"}}
	tests := []struct {
		name   string
		body   []byte
		path   string
		header []string
	}{
		{"a signed body", longProgram(t, provider.FormatAnthropic).body(), "/v1/messages", signed},
		{"an upgrade", longProgram(t, provider.FormatOpenAIResponses).body(), "/v1/responses", []string{"Upgrade", "websocket", "Connection", "Upgrade"}},
		{"an earlier answer", stored.body(), "/v1/responses", nil},
		{"a stored conversation", conversation.body(), "/v1/responses", nil},
		{"two lists", []byte(`{"messages":[],"messages":[]}`), "/v1/messages", nil},
		{"no list", []byte(`{"model":"x"}`), "/v1/messages", nil},
		{"a text", []byte(`{"input":"hello"}`), "/v1/responses", nil},
		{"no JSON", []byte(`hello`), "/v1/messages", nil},
		{"deep", []byte(`{"messages":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`), "/v1/messages", nil},
		{"large", []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("x", 200_000) + `"}]}`), "/v1/messages", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &recorder{}
			tr := small(t, transport.Options{Base: c, MaxBody: 150_000})
			post(t, tr, tt.path, tt.body, tt.header...)
			require.Equal(t, string(tt.body), string(c.body))
			require.Empty(t, tr.Conversations())
		})
	}
}

// An error of the way to the provider is the program's.
func TestTransport_BaseFails(t *testing.T) {
	broken := errors.New("no route")
	c := &recorder{err: broken}
	tr := small(t, transport.Options{Base: c})
	r, err := http.NewRequest(http.MethodPost, "https://provider/v1/messages", bytes.NewReader(longProgram(t, provider.FormatAnthropic).body()))
	require.NoError(t, err)
	_, err = tr.RoundTrip(r)
	require.ErrorIs(t, err, broken)
}
