package convoopenai_test

import (
	"cmp"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func TestChat(t *testing.T) {
	params := openai.ChatCompletionNewParams{Model: "gpt-5.5"}
	clienttest.Run(t, clienttest.Client{
		Row: "Chat Completions",
		Send: func(url string, show func(wire.Delta)) convo.Send {
			return convoopenai.Chat(newClient(url), params, show)
		},
		Summarizer: func(url string) convo.Summarizer {
			return (&convoopenai.ChatSender{Client: newClient(url), Params: params}).Summarizer("")
		},
	})
}

func TestResponses(t *testing.T) {
	params := responses.ResponseNewParams{Model: "gpt-5.5"}
	clienttest.Run(t, clienttest.Client{
		Signs: true, Row: "Responses",
		Send: func(url string, show func(wire.Delta)) convo.Send {
			return convoopenai.Responses(newClient(url), params, show)
		},
		Summarizer: func(url string) convo.Summarizer {
			return (&convoopenai.ResponsesSender{Client: newClient(url), Params: params}).Summarizer("")
		},
	})
}

// With a key in the environment, the senders talk to the real service.
func TestReal(t *testing.T) {
	service := clienttest.Service{Key: "OPENAI_API_KEY", Base: "OPENAI_BASE_URL", Path: "/v1"}
	service.Send = func(model string) convo.Send {
		return convoopenai.Chat(openai.NewClient(), openai.ChatCompletionNewParams{Model: cmp.Or(model, "gpt-5.5-mini")}, nil)
	}
	t.Run("Chat", func(t *testing.T) { clienttest.Real(t, service) })
	service.Send = func(model string) convo.Send {
		return convoopenai.Responses(openai.NewClient(), responses.ResponseNewParams{Model: cmp.Or(model, "gpt-5.5-mini")}, nil)
	}
	t.Run("Responses", func(t *testing.T) { clienttest.Real(t, service) })
}
