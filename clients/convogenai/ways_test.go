package convogenai_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convogenai"
)

// body is a request with the fields that a way may change.
const body = `{"contents":[{"role":"user","parts":[{"text":"<a> & b"}]},{"role":"model","parts":[{"functionCall":{"name":"n","args":{"b":1.0,"a":12345678901234567890}},"thoughtSignature":"c2ln","newField":7}]}]}`

// The README of clients says what each way of giving a request to the SDK keeps.
func TestWays(t *testing.T) {
	server := clienttest.Record(t)
	var request struct {
		Contents []*genai.Content `json:"contents"`
	}
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	client := newClient(server.URL, http.DefaultClient)
	client.Models.GenerateContent(t.Context(), model, request.Contents, nil)
	server.Check("typed values", []string{`"thoughtSignature":"c2ln"`}, []string{`12345678901234567890`, `1.0`, `newField`})

	var extra map[string]any
	if err := json.Unmarshal([]byte(body), &extra); err != nil {
		t.Fatal(err)
	}
	config := &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{ExtraBody: extra}}
	client.Models.GenerateContent(t.Context(), model, genai.Text("x"), config)
	server.Check("ExtraBody", []string{`newField`, `"thoughtSignature":"c2ln"`}, []string{`12345678901234567890`, `1.0`})

	extra = map[string]any{"contents": json.RawMessage(body[len(`{"contents":`) : len(body)-1])}
	config = &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{ExtraBody: extra}}
	client.Models.GenerateContent(t.Context(), model, genai.Text("x"), config)
	server.Check("ExtraBody with raw bytes", []string{`newField`, `"b":1.0,"a":12345678901234567890`}, []string{`<a> & b`})

	call := convo.ToolCall{ID: "c", Name: "n", Arguments: `{"b":1.0,"a":12345678901234567890}`}
	clienttest.Do(t, convogenai.Send(newClient(server.URL, withTransport()), model, nil, nil), convo.User("<a> & b"), convo.Assistant("", call), convo.Result(call, "r"))
	server.Check("clients.Transport", []string{`<a> & b`, `"args":{"b":1.0,"a":12345678901234567890}`}, nil)
}

// No field of the configuration is lost, also of those that a later version of the SDK adds. Some
// are for one of its two services, and refused by the SDK for the other.
func TestSender_Fields(t *testing.T) {
	vertex := func(url string, client *http.Client) *genai.Client {
		c, err := genai.NewClient(t.Context(), &genai.ClientConfig{Backend: genai.BackendVertexAI, Project: "p", Location: "europe-west4", HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	alone := func(c *genai.Client, config *genai.GenerateContentConfig) (err error) {
		for _, err = range c.Models.GenerateContentStream(t.Context(), model, genai.Text("q"), config) {
		}
		return err
	}
	var refused [][]string
	for name, newClient := range map[string]func(string, *http.Client) *genai.Client{"Gemini": newClient, "Vertex": vertex} {
		t.Run(name, func(t *testing.T) {
			refused = append(refused, clienttest.Fields(t, clienttest.Params[genai.GenerateContentConfig]{
				Owned: []string{"SystemInstruction"}, Single: map[string]any{"CandidateCount": int32(1)}, Unseen: []string{"AutomaticContinuation"},
				Values: map[string]any{"HTTPOptions": &genai.HTTPOptions{ExtraBody: map[string]any{"more": "x"}}},
				Alone: func(url string, config genai.GenerateContentConfig) error {
					return alone(newClient(url, http.DefaultClient), &config)
				},
				Send: func(url string, config genai.GenerateContentConfig) convo.Send {
					return convogenai.Send(newClient(url, withTransport()), model, &config, nil)
				},
				Section: "generateContent", Inside: []string{"HTTPOptions"}, Model: model,
				Summarizer: func(url string, config genai.GenerateContentConfig) convo.Summarizer {
					return (&convogenai.Sender{Client: newClient(url, withTransport()), Model: model, Config: &config}).Summarizer("")
				},
			}))
			clienttest.Fields(t, clienttest.Params[genai.HTTPOptions]{
				// A request to BaseURL arrives elsewhere, and RetryOptions repeat one.
				Unseen: []string{"BaseURL", "BaseURLResourceScope", "RetryOptions"},
				Values: map[string]any{
					"BaseURL": "", "Headers": http.Header{"X-Own": {"x"}}, "Timeout": new(time.Minute), "ExtraBody": map[string]any{"more": "x"},
					"ExtrasRequestProvider": func(body map[string]any) map[string]any { body["more"] = "x"; return body },
				},
				Alone: func(url string, o genai.HTTPOptions) error {
					return alone(newClient(url, http.DefaultClient), &genai.GenerateContentConfig{HTTPOptions: &o})
				},
				Send: func(url string, o genai.HTTPOptions) convo.Send {
					return convogenai.Send(newClient(url, withTransport()), model, &genai.GenerateContentConfig{HTTPOptions: &o}, nil)
				},
				Section: "generateContent", Prefix: "HTTPOptions.", Model: model,
				Summarizer: func(url string, o genai.HTTPOptions) convo.Summarizer {
					return (&convogenai.Sender{Client: newClient(url, withTransport()), Model: model, Config: &genai.GenerateContentConfig{HTTPOptions: &o}}).Summarizer("")
				},
			})
		})
	}
	for _, field := range refused[0] {
		if slices.Contains(refused[1], field) {
			t.Errorf("the SDK refuses %s for both services", field)
		}
	}
}
