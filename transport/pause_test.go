package transport_test

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/transport"
)

// answering answers each request with the same body, and keeps the size of the newest request.
type answering struct {
	answer string
	size   int
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	a.size = len(body)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(a.answer)), Request: r}, err
}

// A request above soft is compacted when the program has paused for longer than the provider keeps
// its cache, and not before.
func TestTransport_Pause(t *testing.T) {
	answers := map[string]string{
		provider.FormatAnthropic:       `{"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":23000,"output_tokens":1}}`,
		provider.FormatOpenAIChat:      `{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":23000,"completion_tokens":1}}`,
		provider.FormatOpenAIResponses: `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}],"usage":{"input_tokens":23000,"output_tokens":1}}`,
		provider.FormatGemini:          `{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":23000,"candidatesTokenCount":1}}`,
	}
	marked := func(ttl string) obj {
		return obj{"cache_control": obj{"type": "ephemeral", "ttl": ttl}}
	}
	for _, tt := range []struct {
		format, model string
		extra         obj
		want          time.Duration // 0: no pause counts
	}{
		{provider.FormatAnthropic, "claude-sonnet-5", marked("5m"), 5 * time.Minute},
		{provider.FormatAnthropic, "claude-sonnet-5", marked("1h"), time.Hour},
		{provider.FormatAnthropic, "claude-sonnet-5", nil, 0},
		{provider.FormatAnthropic, "claude-sonnet-5", obj{"cache_control": nil, "metadata": obj{"note": "1h"}}, 0},
		{provider.FormatAnthropic, "claude-sonnet-5", obj{"cache_control": obj{"type": "ephemeral"}, "metadata": obj{"ttl": "1h"}}, 5 * time.Minute},
		{provider.FormatOpenAIChat, "gpt-5.6", nil, 30 * time.Minute},
		{provider.FormatOpenAIChat, "gpt-5.6", obj{"prompt_cache_options": obj{"ttl": "12h"}}, 12 * time.Hour},
		{provider.FormatOpenAIChat, "llama-4", nil, 0},
		{provider.FormatOpenAIResponses, "gpt-5.5", nil, 24 * time.Hour},
		{provider.FormatOpenAIResponses, "gpt-5.5", obj{"prompt_cache_retention": "in_memory"}, time.Hour},
		{provider.FormatGemini, "gemini-3-pro", nil, 24 * time.Hour},
	} {
		t.Run(tt.format+" "+tt.model+" "+tt.want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answering{answer: answers[tt.format]}
				tr := transport.New(transport.Options{Base: a, Logger: logger(t), Idle: -1, History: func(transport.Conversation) *convo.Options {
					return &convo.Options{Limits: convo.Limits{Window: 40_000, High: 30_000, Soft: 2000, Low: 1000}}
				}})
				defer tr.Close()
				p := longProgram(t, tt.format)
				p.client, p.base, p.model, p.extra = &http.Client{Transport: tr}, "https://provider", tt.model, tt.extra
				step := func() (cut bool) {
					size := len(p.body())
					_, err := p.step()
					require.NoError(t, err)
					p.user("and then?")
					return a.size < size
				}
				require.False(t, step(), "larger than soft only")
				time.Sleep(tt.want)
				require.False(t, step(), "the cache still holds it")
				time.Sleep(cmp.Or(tt.want, 100*time.Hour) + time.Second)
				require.Equal(t, tt.want > 0, step())
			})
		})
	}
}
