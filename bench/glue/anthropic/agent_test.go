package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/bench/glue/gluetest"
	"github.com/seed-c1b73e60/convo/wire"
)

func Test(t *testing.T) {
	provider := func() *gluetest.Provider {
		return &gluetest.Provider{Format: wire.Anthropic{}, Stream: stream, TooLong: tooLong}
	}
	gluetest.Test(t, "anthropic-sdk-go, Messages", provider, func(t *testing.T, file, url string) glue.Ask {
		client := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
		switch file {
		case "bare.go":
			return (&bare{client: client}).Ask
		case "byhand.go":
			return newByHand(client).Ask
		case "steps.go":
			a, err := newWithSteps(client)
			require.NoError(t, err)
			return a.Ask
		case "convo.go":
			a, err := newWithDo(client)
			require.NoError(t, err)
			return a.Ask
		case "client.go":
			a, err := newWithClient(client)
			require.NoError(t, err)
			return a.Ask
		}
		t.Fatal("no such agent: " + file)
		return nil
	})
}

func TestStreams(t *testing.T) {
	gluetest.TestStreams(t, "anthropic-sdk-go, Messages", stream, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", readWithSDK, readWithWire,
		gluetest.Quirk{Name: "the answer begins twice, as behind some proxies", Spoil: func(s []byte) []byte {
			first, rest, _ := bytes.Cut(s, []byte("\n\n"))
			return slices.Concat(first, []byte("\n\n"), first, []byte("\n\n"), rest)
		}},
		gluetest.Quirk{Name: "events without a name", Spoil: func(s []byte) []byte {
			return regexp.MustCompile(`(?m)^event: .*\n`).ReplaceAll(s, nil)
		}})
}

func tooLong(tokens, window int) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: %d tokens > %d maximum"},"request_id":"req_1"}`, tokens, window)
}

// stream writes events as Anthropic does: the blocks one after the other, the
// arguments of calls in pieces, and the usage at both ends.
func stream(w io.Writer, a gluetest.Answer) {
	event := func(kind string, fields map[string]any) {
		fields["type"] = kind
		data, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	event("message_start", map[string]any{"message": map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": a.Input, "output_tokens": 1},
	}})
	event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	event("ping", map[string]any{})
	for _, text := range gluetest.Deltas(a.Text) {
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": text}})
	}
	event("content_block_stop", map[string]any{"index": 0})
	reason := "end_turn"
	for i, c := range a.Calls {
		reason = "tool_use"
		event("content_block_start", map[string]any{"index": i + 1, "content_block": map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}})
		for _, text := range gluetest.Deltas(c.Arguments) {
			event("content_block_delta", map[string]any{"index": i + 1, "delta": map[string]any{"type": "input_json_delta", "partial_json": text}})
		}
		event("content_block_stop", map[string]any{"index": i + 1})
	}
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": a.Output}})
	event("message_stop", map[string]any{})
}
