package bedrock

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/bench/glue/gluetest"
	"github.com/seed-c1b73e60/convo/wire"
)

func Test(t *testing.T) {
	provider := func() *gluetest.Provider {
		return &gluetest.Provider{Format: wire.Converse{Model: model}, Stream: stream, TooLong: tooLong}
	}
	gluetest.Test(t, "bedrockruntime, Converse", provider, func(t *testing.T, file, url string) glue.Ask {
		client := bedrockruntime.New(bedrockruntime.Options{
			Region: "eu-central-1", BaseEndpoint: aws.String(url), RetryMaxAttempts: 1,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
			}),
		})
		switch file {
		case "bare.go":
			return (&bare{client: client}).Ask
		case "byhand.go":
			return newByHand(client).Ask
		case "client.go":
			a, err := newWithClient(client)
			require.NoError(t, err)
			return a.Ask
		}
		t.Fatal("no such agent: " + file)
		return nil
	})
}

func tooLong(tokens, window int) string {
	return fmt.Sprintf(`{"__type":"ValidationException","message":"The model returned the following errors: prompt is too long: %d tokens > %d maximum"}`, tokens, window)
}

// stream writes events as Bedrock does, as binary messages.
func stream(w io.Writer, a gluetest.Answer) {
	encoder := eventstream.NewEncoder()
	event := func(name string, data any) {
		payload, err := json.Marshal(data)
		if err != nil {
			panic(err)
		}
		var m eventstream.Message
		m.Headers.Set(":event-type", eventstream.StringValue(name))
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		m.Payload = payload
		var b bytes.Buffer
		if err := encoder.Encode(&b, m); err != nil {
			panic(err)
		}
		_, _ = w.Write(b.Bytes()) // the client may be gone
	}
	event("messageStart", map[string]any{"role": "assistant"})
	for _, text := range gluetest.Deltas(a.Text) {
		event("contentBlockDelta", map[string]any{"contentBlockIndex": 0, "delta": map[string]any{"text": text}})
	}
	event("contentBlockStop", map[string]any{"contentBlockIndex": 0})
	reason := "end_turn"
	for i, c := range a.Calls {
		reason = "tool_use"
		event("contentBlockStart", map[string]any{"contentBlockIndex": i + 1, "start": map[string]any{"toolUse": map[string]any{"toolUseId": c.ID, "name": c.Name}}})
		for _, text := range gluetest.Deltas(c.Arguments) {
			event("contentBlockDelta", map[string]any{"contentBlockIndex": i + 1, "delta": map[string]any{"toolUse": map[string]any{"input": text}}})
		}
		event("contentBlockStop", map[string]any{"contentBlockIndex": i + 1})
	}
	event("messageStop", map[string]any{"stopReason": reason})
	event("metadata", map[string]any{"usage": map[string]any{"inputTokens": a.Input, "outputTokens": a.Output, "totalTokens": a.Input + a.Output}, "metrics": map[string]any{"latencyMs": 1}})
}
