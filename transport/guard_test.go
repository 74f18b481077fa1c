package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/wire"
)

// A faulty format panics when it reads an answer.
type faulty struct{ wire.OpenAIChat }

func (f faulty) Decode(data []byte) (wire.Transcript, error) {
	if json.Valid(data) && bytes.Contains(data, []byte("answer")) {
		panic("Decode")
	}
	return f.OpenAIChat.Decode(data)
}

func (faulty) Stream() wire.Stream { return faultyStream{} }

type faultyStream struct{ wire.Stream }

func (faultyStream) Event(string, []byte) ([]wire.Delta, error) { panic("Event") }

// If convo fails while it reads an answer, the program has the answer still.
func TestExchange_FaultyFormat(t *testing.T) {
	answers := map[string]http.Response{
		"refused": {StatusCode: 400, Header: http.Header{"Content-Type": {"application/json"}}},
		"whole":   {StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}},
		"stream":  {StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}},
		"error":   {StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}},
	}
	for name, resp := range answers {
		t.Run(name, func(t *testing.T) {
			text := `{"answer":"` + name + `","usage":{}}`
			if isStream(&resp) {
				text = "data: " + text + "\n\n"
			}
			tr := New(Options{Base: roundTrip(func(*http.Request) (*http.Response, error) {
				resp.Body = io.NopCloser(strings.NewReader(text))
				return &resp, nil
			})})
			body := []byte(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
			r, err := http.NewRequest(http.MethodPost, "https://provider/v1/chat/completions", bytes.NewReader(body))
			require.NoError(t, err)
			a, _ := apiOf(r.URL)
			a.format = faulty{}
			x := &exchange{t: tr, r: r, api: a, came: body}
			require.NoError(t, x.begin())
			got, err := x.run()
			require.NoError(t, err)
			data, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.NoError(t, got.Body.Close())
			require.Equal(t, text, string(data))
			require.Zero(t, x.talk.under)
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
