package openai

import (
	"bytes"
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
		return &gluetest.Provider{Format: wire.OpenAIChat{}, Stream: gluetest.ChatStream, TooLong: gluetest.ChatTooLong}
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
	gluetest.TestStreams(t, "openai-go, Chat Completions", gluetest.ChatStream, "data: {\"error\":{\"message\":\"The server had an error.\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n", readWithSDK, readWithWire,
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
