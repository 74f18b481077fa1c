package transport_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// A model of the same provider writes the summaries, with the credentials of the program.
func TestTransport_SummaryModel(t *testing.T) {
	for _, model := range []string{"*", "a-small-model"} {
		for _, format := range formats {
			t.Run(format+" "+model, func(t *testing.T) {
				const summary = "Goal: chat about many things. State: the talk went on, question by question, and nothing is open. The user never wants the folder vendor touched."
				asked := 0
				s, url := server(t, provider.Options{Window: 8000, Answer: func(r provider.Request) provider.Answer {
					newest := r.Body[bytes.LastIndex(r.Body, []byte("talk about, "))+1:]
					if r.Model == "a-small-model" || bytes.Contains(newest, []byte("summary")) {
						asked++
						assert.Equal(t, "secret", r.Header.Get("X-Key"))
						assert.Empty(t, r.Header.Get("Idempotency-Key"), "the answer may be that of another request")
						return provider.Answer{Blocks: []provider.Block{provider.Text(summary)}}
					}
					return provider.Answer{Blocks: []provider.Block{provider.Text(strings.Repeat("word ", 100))}}
				}})
				tr := transport.New(transport.Options{Logger: logger(t), SummaryModel: model, History: func(transport.Conversation) *convo.Options {
					return &convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 600, High: 5000}}
				}})
				defer tr.Close()
				p := newProgram(t, &http.Client{Transport: keyed{tr}}, url, format)
				p.stream = true
				for range 60 {
					_, err := p.step()
					require.NoError(t, err)
					p.user(strings.Repeat("another thing to talk about, ", 10))
				}
				require.Empty(t, refusedFor(s))
				require.Positive(t, asked)
				all := s.Requests()
				require.Contains(t, string(all[len(all)-1].Body), "question by question")
				if model != "*" || format == provider.FormatAnthropic || format == provider.FormatGemini {
					return // the program has set no cache mark, and Gemini takes no two messages of the user in a row
				}
				for _, r := range all {
					newest := r.Body[bytes.LastIndex(r.Body, []byte("talk about, "))+1:]
					if bytes.Contains(newest, []byte("summary")) {
						require.Greater(t, r.Usage.CacheRead, r.Usage.Input/2, "the request for a summary has another beginning")
					}
				}
			})
		}
	}
}

// keyed adds a key to each request.
type keyed struct{ base http.RoundTripper }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Key", "secret")
	r.Header.Set("Idempotency-Key", "one")
	return k.base.RoundTrip(r)
}
