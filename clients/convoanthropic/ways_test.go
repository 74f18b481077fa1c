package convoanthropic_test

import (
	"encoding/json"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/wire"
)

const body = `{"max_tokens":9,"messages":[{"role":"user","content":"<a> & b"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"b":1.0,"a":12345678901234567890}}]}],"model":"m"}`

// The README of clients says what each way of giving a request to the SDK keeps.
func TestWays(t *testing.T) {
	server := clienttest.Record(t)
	client := newClient(server.URL)
	send := func(params anthropic.MessageNewParams, options ...option.RequestOption) {
		_, err := client.Messages.New(t.Context(), params, options...)
		require.Error(t, err)
	}
	raw := option.WithRequestBody("application/json", []byte(body))
	send(anthropic.MessageNewParams{}, raw)
	server.Check("the body", []string{body}, nil)
	send(anthropic.MessageNewParams{}, raw, option.WithJSONSet("top_k", 3))
	server.Check("a field after the body", []string{`"top_k":3`, body[:len(body)-1]}, nil)
	send(anthropic.MessageNewParams{}, option.WithJSONSet("top_k", 3), raw)
	server.Check("a field before the body", []string{body}, []string{"top_k"})
	send(param.Override[anthropic.MessageNewParams](json.RawMessage(body)))
	server.Check("param.Override", []string{`\u003ca\u003e \u0026 b`, `"a":12345678901234567890`}, []string{"<a> & b"})
	var params anthropic.MessageNewParams
	require.NoError(t, json.Unmarshal([]byte(body), &params))
	send(params)
	server.Check("json.Unmarshal into the parameters", []string{`"name":"n"`}, []string{`"a":12345678901234567890`})
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	messages, system := params, params
	messages.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("x"))}
	system.System = []anthropic.TextBlockParam{{Text: "x"}}
	clienttest.Refuses(t, "messages", func(url string) convo.Send { return convoanthropic.Send(newClient(url), messages, nil) })
	clienttest.Refuses(t, "system", func(url string) convo.Send { return convoanthropic.Send(newClient(url), system, nil) })
}

// Reasoning that the provider needs back, and another model has made, cannot be sent. Then
// thinking is off.
func TestSender_NoThinking(t *testing.T) {
	server := clienttest.Record(t)
	params := params
	params.Model = "a model that is not known"
	params.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	send := convoanthropic.Send(newClient(server.URL), params, nil)
	require.Error(t, clienttest.Do(t, send, convo.User("1")))
	server.Check("a question", []string{`"thinking":{"budget_tokens":1024,"type":"enabled"}`}, nil)
	call := convo.ToolCall{ID: "c", Name: "n", Arguments: "{}"}
	require.Error(t, clienttest.Do(t, send, convo.User("1"), thoughts.In(convo.Assistant("", call), convo.Reasoning{Text: "hm"}), convo.Result(call, "r")))
	server.Check("thinking without its signature", []string{`"thinking":{"type":"disabled"}`}, []string{"enabled"})
	send = convoanthropic.Send(newClient(server.URL), param.Override[anthropic.MessageNewParams](json.RawMessage(`{"model":"m","thinking":{"type":"enabled"}}`)), nil)
	require.Error(t, clienttest.Do(t, send, convo.User("1"), thoughts.In(convo.Assistant("", call), convo.Reasoning{Text: "hm"}), convo.Result(call, "r")))
	server.Check("thinking without its signature, overridden", []string{`"thinking":{"type":"disabled"}`}, []string{"enabled"})
}

// The headers that a request needs are sent along with those of the application.
func TestSender_Headers(t *testing.T) {
	server := clienttest.Record(t)
	format := wire.Anthropic{Betas: true}
	in, err := format.Decode([]byte(`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"system","content":"now","clear_at":"next_user_message"}]}`))
	require.NoError(t, err)
	sender := &convoanthropic.Sender{Client: newClient(server.URL), Params: params, Format: &format, Options: []option.RequestOption{option.WithHeaderAdd("anthropic-beta", "own")}}
	require.Error(t, clienttest.Do(t, sender.Send, in.Messages...))
	server.Check("a message in beta", []string{`"clear_at":"next_user_message"`}, nil)
	assert.Equal(t, []string{"own", "mid-conversation-system-clear-at-2026-08-21"}, server.Header().Values("anthropic-beta"))
}

// The header fields among the parameters, which are not in the body, are those of the request.
func TestSender_HeaderParams(t *testing.T) {
	server := clienttest.Record(t)
	params := params
	params.UserProfileID, params.WorkspaceID = anthropic.String("profile"), anthropic.String("workspace")
	require.Error(t, clienttest.Do(t, convoanthropic.Send(newClient(server.URL), params, nil), convo.User("1")))
	assert.Equal(t, "profile", server.Header().Get("anthropic-user-profile-id"))
	assert.Equal(t, "workspace", server.Header().Get("anthropic-workspace-id"))
}

// No field of the parameters is lost, also of those that a later version of the SDK adds.
func TestSender_Fields(t *testing.T) {
	fields := clienttest.Params[anthropic.MessageNewParams]{
		Base: params, Owned: []string{"Messages", "System"}, Values: map[string]any{"Model": params.Model + "-20260918"},
		Alone: func(url string, params anthropic.MessageNewParams) error {
			client := newClient(url)
			return client.Messages.NewStreaming(t.Context(), params).Err()
		},
		Send: func(url string, params anthropic.MessageNewParams) convo.Send {
			return convoanthropic.Send(newClient(url), params, nil)
		},
		Section: "Anthropic", Inside: []string{"OutputConfig"}, Model: params.Model,
		Summarizer: func(url string, params anthropic.MessageNewParams) convo.Summarizer {
			return (&convoanthropic.Sender{Client: newClient(url), Params: params}).Summarizer("")
		},
	}
	assert.Empty(t, clienttest.Fields(t, fields))
	with := func(o anthropic.OutputConfigParam) anthropic.MessageNewParams {
		params := params
		params.OutputConfig = o
		return params
	}
	assert.Empty(t, clienttest.Fields(t, clienttest.Params[anthropic.OutputConfigParam]{
		Values:  map[string]any{"Format": anthropic.JSONOutputFormatParam{Schema: map[string]any{"type": "object"}}},
		Alone:   func(url string, o anthropic.OutputConfigParam) error { return fields.Alone(url, with(o)) },
		Send:    func(url string, o anthropic.OutputConfigParam) convo.Send { return fields.Send(url, with(o)) },
		Section: "Anthropic", Prefix: "OutputConfig.", Model: params.Model,
		Summarizer: func(url string, o anthropic.OutputConfigParam) convo.Summarizer {
			return fields.Summarizer(url, with(o))
		},
	}))
}
