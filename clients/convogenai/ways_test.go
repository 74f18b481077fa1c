package convogenai_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convogenai"
)

// body is a request of which each field is one that a way may change.
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
