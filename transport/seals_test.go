package transport_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// Signed reasoning goes where the request differs from the one that it was made after, also for a
// model of which nothing is known.
func TestTransport_Seals(t *testing.T) {
	for _, format := range formats {
		for _, model := range []string{"a-model", "claude-opus-5-5"} {
			t.Run(format+" "+model, func(t *testing.T) {
				s, url := server(t, provider.Options{Window: 8000, Answer: func(r provider.Request) provider.Answer {
					return provider.Answer{Blocks: []provider.Block{provider.Thinking("I think."), next(r, 60)}}
				}})
				tr := small(t, transport.Options{})
				p := newProgram(t, &http.Client{Transport: tr}, url, format)
				p.model = model
				if format == provider.FormatOpenAIResponses {
					p.extra = obj{"include": []string{"reasoning.encrypted_content"}}
				}
				require.Equal(t, 60, p.run(100, nil))
				require.Empty(t, s.Refused())
				require.Contains(t, string(s.Requests()[60].Body), rule)
			})
		}
	}
}

// Programs that do the same task at once do not get in each other's way: what they have of signed
// reasoning tells their lists apart, even if all else is the same.
func TestTransport_SealsTellApart(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			s, url := server(t, provider.Options{Window: 8000, Answer: func(r provider.Request) provider.Answer {
				return provider.Answer{Blocks: []provider.Block{provider.Thinking("I think."), next(r, 60)}}
			}})
			tr := small(t, transport.Options{})
			var programs sync.WaitGroup
			for range 4 {
				programs.Go(func() {
					p := newProgram(t, &http.Client{Transport: tr}, url, format)
					if format == provider.FormatOpenAIResponses {
						p.extra = obj{"include": []string{"reasoning.encrypted_content"}}
					}
					assert.Equal(t, 60, p.run(100, nil))
				})
			}
			programs.Wait()
			require.Empty(t, s.Refused())
		})
	}
}
