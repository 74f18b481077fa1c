package convoopenai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
)

const body = `{"messages":[{"role":"user","content":"<a> & b"},{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"n","arguments":"{\"b\":1.0}"}}]}],"model":"m"}`

// The README of clients says what each way of giving a request to the SDK keeps.
func TestWays(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got = string(data)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	client := newClient(server.URL)
	send := func(params openai.ChatCompletionNewParams, options ...option.RequestOption) string {
		got = ""
		client.Chat.Completions.New(t.Context(), params, options...)
		return got
	}
	raw := option.WithRequestBody("application/json", []byte(body))
	if s := send(openai.ChatCompletionNewParams{}, raw); s != body {
		t.Error(s)
	}
	if s := send(openai.ChatCompletionNewParams{}, raw, option.WithJSONSet("seed", 3)); !strings.Contains(s, `"seed":3`) {
		t.Error(s)
	}
	if s := send(openai.ChatCompletionNewParams{}, option.WithJSONSet("seed", 3), raw); strings.Contains(s, `seed`) {
		t.Error("not lost", s)
	}
	if s := send(param.Override[openai.ChatCompletionNewParams](json.RawMessage(body))); s != body {
		t.Error(s)
	}
	var params responses.ResponseNewParams
	if err := json.Unmarshal([]byte(`{"model":"m","input":[{"role":"user","content":"hello"}]}`), &params); err != nil {
		t.Fatal(err)
	}
	got = ""
	client.Responses.New(t.Context(), params)
	if strings.Contains(got, "hello") {
		t.Error("the input of a Responses request is no longer lost; mend the README of clients", got)
	}
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	h, err := convo.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Append(convo.User("1")); err != nil {
		t.Fatal(err)
	}
	var wrong *clients.ParamsError
	client := newClient("http://127.0.0.1:1")
	_, err = h.Do(t.Context(), convoopenai.Chat(client, openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}}, nil))
	if !errors.As(err, &wrong) || wrong.Field != "messages" {
		t.Error(err)
	}
	_, err = h.Do(t.Context(), convoopenai.Responses(client, responses.ResponseNewParams{Model: "m", Instructions: openai.String("x")}, nil))
	if !errors.As(err, &wrong) || wrong.Field != "instructions" {
		t.Error(err)
	}
}
