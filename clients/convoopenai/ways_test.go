package convoopenai_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
)

const body = `{"messages":[{"role":"user","content":"<a> & b"},{"role":"assistant","tool_calls":[{"id":"t","type":"function","function":{"name":"n","arguments":"{\"b\":1.0}"}}]}],"model":"m"}`

// The README of clients says what each way of giving a request to the SDK keeps.
func TestWays(t *testing.T) {
	server := clienttest.Record(t)
	client := newClient(server.URL)
	send := func(params openai.ChatCompletionNewParams, options ...option.RequestOption) {
		client.Chat.Completions.New(t.Context(), params, options...)
	}
	raw := option.WithRequestBody("application/json", []byte(body))
	send(openai.ChatCompletionNewParams{}, raw)
	server.Check("the body", []string{body}, nil)
	send(openai.ChatCompletionNewParams{}, raw, option.WithJSONSet("seed", 3))
	server.Check("a field after the body", []string{`"seed":3`, body[:len(body)-1]}, nil)
	send(openai.ChatCompletionNewParams{}, option.WithJSONSet("seed", 3), raw)
	server.Check("a field before the body", []string{body}, []string{"seed"})
	send(param.Override[openai.ChatCompletionNewParams](json.RawMessage(body)))
	server.Check("param.Override", []string{body}, nil)

	var params responses.ResponseNewParams
	if err := json.Unmarshal([]byte(`{"model":"m","input":[{"role":"user","content":"hello"}]}`), &params); err != nil {
		t.Fatal(err)
	}
	client.Responses.New(t.Context(), params)
	server.Check("json.Unmarshal into the parameters of Responses", []string{`"model":"m"`}, []string{"hello"})
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	clienttest.Refuses(t, "messages", func(url string) convo.Send {
		return convoopenai.Chat(newClient(url), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}}, nil)
	})
	clienttest.Refuses(t, "instructions", func(url string) convo.Send {
		return convoopenai.Responses(newClient(url), responses.ResponseNewParams{Model: "m", Instructions: openai.String("x")}, nil)
	})
}

// The request for a summary that is made of the prompt alone has no tools, and nothing that
// a provider refuses without them.
func TestSummarizer_Bare(t *testing.T) {
	server := clienttest.Record(t)
	about := []string{`"tools"`, `"tool_choice"`, `"parallel_tool_calls"`}
	prompt := convo.SummaryRequest{Prompt: "Sum it up."}

	chat := &convoopenai.ChatSender{Client: newClient(server.URL), Params: openai.ChatCompletionNewParams{
		Model: "m", Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "n"})},
		ToolChoice:        openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("auto")},
		ParallelToolCalls: openai.Bool(true),
	}}
	clienttest.Do(t, chat.Send, convo.User("u"))
	server.Check("an answer of Chat Completions", about, nil)
	chat.Summarizer("").Summarize(t.Context(), prompt)
	server.Check("a summary of Chat Completions", []string{prompt.Prompt}, about)

	own := &convoopenai.ResponsesSender{Client: newClient(server.URL), Params: responses.ResponseNewParams{
		Model: "m", Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("n", nil, false)},
		ToolChoice:        responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsAuto)},
		ParallelToolCalls: openai.Bool(true),
	}}
	clienttest.Do(t, own.Send, convo.User("u"))
	server.Check("an answer of Responses", about, nil)
	own.Summarizer("").Summarize(t.Context(), prompt)
	server.Check("a summary of Responses", []string{prompt.Prompt}, about)
}

// No field of the parameters is lost, also of those that a later version of the SDK adds.
func TestSenders_Fields(t *testing.T) {
	t.Run("Chat", func(t *testing.T) {
		refused := clienttest.Fields(t, clienttest.Params[openai.ChatCompletionNewParams]{
			Base: openai.ChatCompletionNewParams{Model: "gpt-5.5"}, Owned: []string{"Messages"}, Single: map[string]any{"N": openai.Int(1)},
			Alone: func(url string, params openai.ChatCompletionNewParams) error {
				client := newClient(url)
				return client.Chat.Completions.NewStreaming(t.Context(), params).Err()
			},
			Send: func(url string, params openai.ChatCompletionNewParams) convo.Send {
				return convoopenai.Chat(newClient(url), params, nil)
			},
			Values: map[string]any{
				"ResponseFormat": openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}},
				"ToolChoice":     openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("auto")},
				"Model":          "gpt-5.5-2026-04-23",
				"FunctionCall":   openai.ChatCompletionNewParamsFunctionCallUnion{OfFunctionCallMode: openai.String("auto")},
			},
			Section: "Chat Completions", Model: "gpt-5.5",
			Summarizer: func(url string, params openai.ChatCompletionNewParams) convo.Summarizer {
				return (&convoopenai.ChatSender{Client: newClient(url), Params: params}).Summarizer("")
			},
		})
		if len(refused) > 0 {
			t.Error(refused)
		}
	})
	t.Run("Responses", func(t *testing.T) {
		base := responses.ResponseNewParams{Model: "gpt-5.5"}
		fields := clienttest.Params[responses.ResponseNewParams]{
			Base: base, Owned: []string{"Input", "Instructions", "PreviousResponseID", "Conversation"},
			Alone: func(url string, params responses.ResponseNewParams) error {
				client := newClient(url)
				return client.Responses.NewStreaming(t.Context(), params).Err()
			},
			Send: func(url string, params responses.ResponseNewParams) convo.Send {
				return convoopenai.Responses(newClient(url), params, nil)
			},
			Values:  map[string]any{"Model": "gpt-5.5-2026-04-23", "ToolChoice": responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsAuto)}},
			Section: "Responses", Inside: []string{"Reasoning", "Text"}, Model: "gpt-5.5",
			Summarizer: func(url string, params responses.ResponseNewParams) convo.Summarizer {
				return (&convoopenai.ResponsesSender{Client: newClient(url), Params: params}).Summarizer("")
			},
		}
		reasoning := func(r shared.ReasoningParam) responses.ResponseNewParams {
			params := base
			params.Reasoning = r
			return params
		}
		text := func(c responses.ResponseTextConfigParam) responses.ResponseNewParams {
			params := base
			params.Text = c
			return params
		}
		refused := slices.Concat(clienttest.Fields(t, fields), clienttest.Fields(t, clienttest.Params[shared.ReasoningParam]{
			Alone:   func(url string, r shared.ReasoningParam) error { return fields.Alone(url, reasoning(r)) },
			Send:    func(url string, r shared.ReasoningParam) convo.Send { return fields.Send(url, reasoning(r)) },
			Section: "Responses", Prefix: "Reasoning.", Model: "gpt-5.5",
			Summarizer: func(url string, r shared.ReasoningParam) convo.Summarizer {
				return fields.Summarizer(url, reasoning(r))
			},
		}), clienttest.Fields(t, clienttest.Params[responses.ResponseTextConfigParam]{
			Values:  map[string]any{"Format": responses.ResponseFormatTextConfigUnionParam{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}},
			Alone:   func(url string, c responses.ResponseTextConfigParam) error { return fields.Alone(url, text(c)) },
			Send:    func(url string, c responses.ResponseTextConfigParam) convo.Send { return fields.Send(url, text(c)) },
			Section: "Responses", Prefix: "Text.", Model: "gpt-5.5",
			Summarizer: func(url string, c responses.ResponseTextConfigParam) convo.Summarizer {
				return fields.Summarizer(url, text(c))
			},
		}))
		if len(refused) > 0 {
			t.Error(refused)
		}
	})
}
