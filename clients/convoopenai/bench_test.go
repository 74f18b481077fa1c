package convoopenai_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
)

// answers is a transport that reads the body of a request and answers with a stream.
type answers struct{ events string }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(a.events)),
	}, err
}

// BenchmarkSend makes requests, each with an answer of 100 deltas and one more question.
func BenchmarkSend(b *testing.B) {
	var events strings.Builder
	for range 100 {
		events.WriteString(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":"and so on "},"finish_reason":null}]}` + "\n\n")
	}
	events.WriteString(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt-5.5","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	for _, n := range []int{10, 1_000, 4_000} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			client := openai.NewClient(option.WithAPIKey("none"), option.WithHTTPClient(&http.Client{Transport: answers{events.String()}}))
			sender := &convoopenai.ChatSender{Client: client, Params: openai.ChatCompletionNewParams{Model: "gpt-5.5"}}
			h, err := convo.New(nil)
			if err != nil {
				b.Fatal(err)
			}
			for i := range n / 2 {
				text := strings.Repeat(fmt.Sprintf("line %d of the \"file\"\n", i), 20)
				if _, err := h.Append(convo.User(text), convo.Assistant(text)); err != nil {
					b.Fatal(err)
				}
			}
			least, rounds := time.Hour, 0
			for b.Loop() {
				rounds++
				if _, err := h.Append(convo.User("And then?")); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				reply, err := sender.Send(b.Context(), h.Snapshot())
				least = min(least, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := h.AppendReply(h.Snapshot(), reply); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(least.Microseconds()), "min-us")
		})
	}
}
