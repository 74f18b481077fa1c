package convogoopenai_test

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"testing"

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
		Row: "Chat Completions, go-openai",
		Send: func(url string, show func(wire.Delta)) convo.Send {
			return convogoopenai.Send(newClient(url, withTransport()), params, show)
		},
		Summarizer: func(url string) convo.Summarizer {
			return (&convogoopenai.Sender{Client: newClient(url, withTransport()), Params: params}).Summarizer("")
		},
	})
}

// What the History decides may not be among the parameters, and a client without the
// transport is an error that says so.
func TestErrors(t *testing.T) {
	h, err := convo.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(convo.User("1")); err != nil {
		t.Fatal(err)
	}
	var wrong *clients.ParamsError
	filled := params
	filled.Messages = []openai.ChatCompletionMessage{{Role: "user", Content: "x"}}
	_, err = h.Do(t.Context(), convogoopenai.Send(newClient("http://127.0.0.1:1", withTransport()), filled, nil))
	if !errors.As(err, &wrong) || wrong.Field != "messages" {
		t.Error(err)
	}
	_, err = h.Do(t.Context(), convogoopenai.Send(newClient("http://127.0.0.1:1", http.DefaultClient), params, nil))
	if !errors.Is(err, clients.ErrTransport) {
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
