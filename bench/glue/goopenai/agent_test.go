package goopenai

import (
	"net/http"
	"testing"

	"github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/glue"
	"github.com/seed-c1b73e60/convo/bench/glue/gluetest"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

func Test(t *testing.T) {
	provider := func() *gluetest.Provider {
		return &gluetest.Provider{Format: wire.OpenAIChat{}, Stream: gluetest.ChatStream, TooLong: gluetest.ChatTooLong}
	}
	gluetest.Test(t, "go-openai, Chat Completions", provider, func(t *testing.T, file, url string) glue.Ask {
		config := openai.DefaultConfig("none")
		config.BaseURL = url
		switch file {
		case "bare.go":
			return newBare(openai.NewClientWithConfig(config)).Ask
		case "byhand.go":
			return newByHand(openai.NewClientWithConfig(config)).Ask
		case "client.go":
			config.HTTPClient = &http.Client{Transport: clients.Transport(nil)}
			a, err := newWithClient(openai.NewClientWithConfig(config))
			require.NoError(t, err)
			return a.Ask
		}
		t.Fatal("no such agent: " + file)
		return nil
	})
}
