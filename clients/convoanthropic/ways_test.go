package convoanthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
)

const body = `{"max_tokens":9,"messages":[{"role":"user","content":"<a> & b"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"b":1.0,"a":12345678901234567890}}]}],"model":"m"}`

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
	send := func(params anthropic.MessageNewParams, options ...option.RequestOption) string {
		_, err := client.Messages.New(t.Context(), params, options...)
		require.Error(t, err)
		return got
	}
	assert.Equal(t, body, send(anthropic.MessageNewParams{}, option.WithRequestBody("application/json", []byte(body))))
	assert.Contains(t, send(anthropic.MessageNewParams{}, option.WithRequestBody("application/json", []byte(body)), option.WithJSONSet("top_k", 3)), `"top_k":3`)
	assert.NotContains(t, send(anthropic.MessageNewParams{}, option.WithJSONSet("top_k", 3), option.WithRequestBody("application/json", []byte(body))), `top_k`, "lost")
	override := send(param.Override[anthropic.MessageNewParams](json.RawMessage(body)))
	assert.Contains(t, override, `\u003ca\u003e \u0026 b`, "escaped")
	assert.Contains(t, override, `"a":12345678901234567890`)
	var params anthropic.MessageNewParams
	require.NoError(t, json.Unmarshal([]byte(body), &params))
	assert.NotContains(t, send(params), `"b":1.0,"a":12345678901234567890`, "changed")
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User("1"))
	require.NoError(t, err)
	var wrong *clients.ParamsError
	own := params
	own.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("x"))}
	_, err = h.Do(t.Context(), convoanthropic.Send(newClient("http://127.0.0.1:1"), own, nil))
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "messages", wrong.Field)
	own = params
	own.System = []anthropic.TextBlockParam{{Text: "x"}}
	_, err = h.Do(t.Context(), convoanthropic.Send(newClient("http://127.0.0.1:1"), own, nil))
	require.ErrorAs(t, err, &wrong)
	assert.True(t, strings.Contains(wrong.Error(), "SetSystem"))
}
