package transport_test

import (
	"bytes"
	"fmt"
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

// Where the answers since the user's last words do not begin with the thinking that they began with,
// a request that enables it would be refused: it goes without.
func TestTransport_ThinkingEnabled(t *testing.T) {
	for _, model := range []string{"a-model", "claude-sonnet-4-5"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", model, stream), func(t *testing.T) {
				s, url := server(t, provider.Options{Window: 8000, Answer: func(r provider.Request) provider.Answer {
					blocks := []provider.Block{next(r, 200)}
					if model == "a-model" || !bytes.Contains(r.Body, []byte("tool_result")) { // without interleaved thinking, the first answer has it
						blocks = append([]provider.Block{provider.Thinking("I think.")}, blocks...)
					}
					return provider.Answer{Blocks: blocks}
				}})
				tr := small(t, transport.Options{})
				p := newProgram(t, &http.Client{Transport: tr}, url, provider.FormatAnthropic)
				p.model, p.stream = model, stream
				p.extra = obj{"max_tokens": 2000, "thinking": obj{"type": "enabled", "budget_tokens": 1024}}
				require.Equal(t, 200, p.run(300, nil))
				require.Empty(t, s.Refused())
				all := s.Requests()
				require.Contains(t, string(all[0].Body), `"thinking":{"budget_tokens":1024,"type":"enabled"}`)
				require.Equal(t, model == "a-model", bytes.Contains(all[200].Body, []byte(`"thinking":{"type":"disabled"}`)))
				p.user("And what was the first one?")
				_, err := p.step()
				require.NoError(t, err)
				require.Contains(t, string(s.Requests()[201].Body), `"type":"enabled"`, "a new turn begins")
			})
		}
	}
}
