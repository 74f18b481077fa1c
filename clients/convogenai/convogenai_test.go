package convogenai_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"testing"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convogenai"
	"github.com/seed-c1b73e60/convo/wire"
)

func newClient(url string, client *http.Client) *genai.Client {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "none", HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	if err != nil {
		panic(err)
	}
	return c
}

const model = "gemini-3.8-flash"

func withTransport() *http.Client { return &http.Client{Transport: clients.Transport(nil)} }

func Test(t *testing.T) {
	clienttest.Run(t, clienttest.Client{
		Signs: true,
		Row:   "generateContent",
		Send: func(url string, show func(wire.Delta)) convo.Send {
			return convogenai.Send(newClient(url, withTransport()), model, nil, show)
		},
		Summarizer: func(url string) convo.Summarizer {
			return (&convogenai.Sender{Client: newClient(url, withTransport()), Model: model}).Summarizer("")
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
	filled := &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText("x", "user")}
	_, err = h.Do(t.Context(), convogenai.Send(newClient("http://127.0.0.1:1", withTransport()), model, filled, nil))
	if !errors.As(err, &wrong) || wrong.Field != "systemInstruction" {
		t.Error(err)
	}
	_, err = h.Do(t.Context(), convogenai.Send(newClient("http://127.0.0.1:1", http.DefaultClient), model, nil, nil))
	if !errors.Is(err, clients.ErrTransport) {
		t.Error(err)
	}
}

// With a key in the environment, the sender talks to the real service.
func TestReal(t *testing.T) {
	clienttest.Real(t, clienttest.Service{Key: "GEMINI_API_KEY", Base: "GOOGLE_GEMINI_BASE_URL", Send: func(name string) convo.Send {
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{Backend: genai.BackendGeminiAPI, HTTPClient: withTransport()})
		if err != nil {
			t.Fatal(err)
		}
		return convogenai.Send(client, cmp.Or(name, model), nil, nil)
	}})
}
