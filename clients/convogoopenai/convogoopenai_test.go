package convogoopenai_test

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convogoopenai"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string, client *http.Client) *openai.Client {
	config := openai.DefaultConfig("none")
	config.BaseURL, config.HTTPClient = url+"/v1", client
	return openai.NewClientWithConfig(config)
}

var params = openai.ChatCompletionRequest{Model: "gpt-5.5"}

func withTransport() *http.Client { return &http.Client{Transport: clients.Transport(nil)} }

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Row: "Chat Completions, go-openai", Small: "gpt-5.5-mini", CacheTTL: 24 * time.Hour,
		New: func(url string, show func(wire.Delta), own string) clienttest.Sender {
			params := params
			if own != "" {
				params.ParallelToolCalls = true
				params.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: own, Description: "of the parameters"}}}
			}
			return &convogoopenai.Sender{Client: newClient(url, withTransport()), Params: params, Show: show}
		},
		Strict: func(url string, schema bool) clienttest.Sender {
			params := openai.ChatCompletionRequest{Model: "gpt-5.5", MaxCompletionTokens: 1024, Stop: []string{clienttest.StopSequence}, Store: true}
			if schema {
				params.ResponseFormat = &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
			}
			return &convogoopenai.Sender{Client: newClient(url, withTransport()), Params: params}
		},
	})
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	filled := params
	filled.Messages = []openai.ChatCompletionMessage{{Role: "user", Content: "x"}}
	clienttest.Refuses(t, "messages", func(url string) convo.Send {
		return convogoopenai.Send(newClient(url, withTransport()), filled, nil)
	})
}

// A client without the transport is an error that says so, and an error of the SDK is not.
func TestTransport(t *testing.T) {
	err := clienttest.Do(t, convogoopenai.Send(newClient(clienttest.Record(t).URL, http.DefaultClient), params, nil), convo.User("1"))
	if !errors.Is(err, clients.ErrTransport) {
		t.Error(err)
	}
	err = clienttest.Do(t, convogoopenai.Send(newClient(clienttest.Record(t).URL, withTransport()), openai.ChatCompletionRequest{Model: "o1", MaxTokens: 9}, nil), convo.User("1"))
	if err == nil || errors.Is(err, clients.ErrTransport) {
		t.Error(err)
	}
}

// With a key in the environment, the sender talks to the real service.
func TestReal(t *testing.T) {
	clienttest.Real(t, clienttest.Service{Key: "OPENAI_API_KEY", Base: "OPENAI_BASE_URL", Path: "/v1", Send: func(model string) convo.Send {
		config := openai.DefaultConfig(os.Getenv("OPENAI_API_KEY"))
		config.BaseURL, config.HTTPClient = cmp.Or(os.Getenv("OPENAI_BASE_URL"), config.BaseURL), withTransport()
		return convogoopenai.Send(openai.NewClientWithConfig(config), openai.ChatCompletionRequest{Model: cmp.Or(model, "gpt-5.5-mini")}, nil)
	}})
}
