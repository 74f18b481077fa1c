package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/bench/glue/gluetest"
	"github.com/seed-c1b73e60/convo/wire"
)

func Test(t *testing.T) {
	provider := func() *gluetest.Provider {
		return &gluetest.Provider{Format: wire.OpenAIChat{}, Stream: stream, TooLong: tooLong}
	}
	gluetest.Test(t, "openai-go, Chat Completions", provider, func(t *testing.T, file, url string) glue.Ask {
		client := openai.NewClient(option.WithBaseURL(url), option.WithAPIKey("none"), option.WithMaxRetries(0))
		switch file {
		case "bare.go":
			return newBare(client).Ask
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
	gluetest.TestStreams(t, "openai-go, Chat Completions", stream, "data: {\"error\":{\"message\":\"The server had an error.\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n", readWithSDK, readWithWire,
		gluetest.Quirk{Name: "an error that is null in each chunk", Spoil: func(s []byte) []byte {
			return bytes.ReplaceAll(s, []byte(`"choices":`), []byte(`"error":null,"choices":`))
		}},
		gluetest.Quirk{Name: "each call has the index 0, as Ollama sends them", Spoil: func(s []byte) []byte {
			return bytes.ReplaceAll(s, []byte(`"index":1`), []byte(`"index":0`))
		}},
		gluetest.Quirk{Name: "the id of the answer changes, as behind some proxies", Spoil: func(s []byte) []byte {
			return bytes.Replace(s, []byte("chatcmpl-1"), []byte("chatcmpl-0"), 2)
		}})
}

func tooLong(tokens, window int) string {
	return fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, window, tokens)
}

// stream writes chunks as OpenAI does: the names of calls first, then their
// arguments in pieces, and the usage in a chunk without choices.
func stream(w io.Writer, a gluetest.Answer) {
	chunk := func(choices, usage any) {
		data, err := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, "usage": usage})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	delta := func(d map[string]any, reason any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": reason}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, text := range gluetest.Deltas(a.Text) {
		delta(map[string]any{"content": text}, nil)
	}
	reason := "stop"
	for i, c := range a.Calls {
		reason = "tool_calls"
		call := func(fields map[string]any) {
			fields["index"] = i
			delta(map[string]any{"tool_calls": []any{fields}}, nil)
		}
		call(map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
		for _, text := range gluetest.Deltas(c.Arguments) {
			call(map[string]any{"function": map[string]any{"arguments": text}})
		}
	}
	delta(map[string]any{}, reason)
	chunk([]any{}, map[string]any{"prompt_tokens": a.Input, "completion_tokens": a.Output, "total_tokens": a.Input + a.Output})
	fmt.Fprint(w, "data: [DONE]\n\n")
}
