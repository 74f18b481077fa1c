package transport_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/transport"
)

const rule = "never write into the folder vendor"

func TestTransport_Agent(t *testing.T) {
	for _, format := range formats {
		for _, stream := range []bool{false, true} {
			name := format
			if stream {
				name += " stream"
			}
			t.Run(name, func(t *testing.T) {
				s, url := serve(t, 8000, 60)
				tr := transport.New(transport.Options{Logger: logger(t), History: func(transport.Conversation) *convo.Options {
					return &convo.Options{Limits: convo.Limits{Window: 8000, Reserve: 600}}
				}})
				defer tr.Close()
				p := &program{t: t, client: &http.Client{Transport: tr}, base: url, format: format, stream: stream, model: "gemini-2.5-pro", system: "You are an agent."}
				p.user("Read all files, one after the other; " + rule + ".")
				steps := 0
				for {
					calls, err := p.step()
					require.NoError(t, err, "request %d", steps)
					if len(calls) == 0 {
						break
					}
					p.results(calls, file)
					steps++
				}
				require.Equal(t, 60, steps)
				require.Empty(t, s.Refused())
				all := s.Requests()
				require.Len(t, all, 61)
				require.Contains(t, string(all[60].Body), rule)
				require.Len(t, tr.Conversations(), 1)
			})
		}
	}
}
