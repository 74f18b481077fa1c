package convogoopenai_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convogoopenai"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

// body is a request with the fields that a way may change.
const body = `{"messages":[{"role":"user","content":"<a> & b"},{"role":"assistant","reasoning":"hm","reasoning_details":[{"type":"reasoning.text"}],"tool_calls":[{"id":"t","type":"function","function":{"name":"n","arguments":"{\"b\":1.0}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}],"model":"m"}`

// The README of clients says what each way of giving a request to the SDK keeps.
func TestWays(t *testing.T) {
	server := clienttest.Record(t)
	var request openai.ChatCompletionRequest
	if err := json.Unmarshal([]byte(body), &request); err != nil {
		t.Fatal(err)
	}
	newClient(server.URL, http.DefaultClient).CreateChatCompletion(t.Context(), request)
	server.Check("typed values", []string{`"arguments":"{\"b\":1.0}"`}, []string{`<a> & b`, `reasoning`, `c2ln`})

	call := convo.ToolCall{ID: "c", Name: "n", Arguments: `{"b":1.0}`}
	clienttest.Do(t, convogoopenai.Send(newClient(server.URL, withTransport()), params, nil),
		convo.User("<a> & b"), thoughts.In(convo.Assistant("", call), convo.Reasoning{Text: "hm"}), convo.Result(call, "r"))
	server.Check("clients.Transport", []string{`<a> & b`, `"arguments":"{\"b\":1.0}"`}, nil)
}

// The request for a summary that is made of the prompt alone has no tools, and nothing that
// a provider refuses without them.
func TestSummarizer_Bare(t *testing.T) {
	server := clienttest.Record(t)
	about := []string{`"tools"`, `"tool_choice"`, `"parallel_tool_calls"`}
	prompt := convo.SummaryRequest{Prompt: "Sum it up."}

	sender := &convogoopenai.Sender{Client: newClient(server.URL, withTransport()), Params: openai.ChatCompletionRequest{
		Model: "m", Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: "n"}}},
		ToolChoice: "auto", ParallelToolCalls: true,
	}}
	clienttest.Do(t, sender.Send, convo.User("u"))
	server.Check("an answer", about, nil)
	sender.Summarizer("").Summarize(t.Context(), prompt)
	server.Check("a summary", []string{prompt.Prompt}, about)

	// The SDK refuses these for another model, before it makes a request.
	sender.Params = openai.ChatCompletionRequest{Model: "gpt-4.1", Temperature: 0.5, TopP: 0.5, N: 2, PresencePenalty: 0.5, FrequencyPenalty: 0.5, LogProbs: true, TopLogProbs: 2, User: "u"}
	sender.Summarizer("gpt-5.5-mini").Summarize(t.Context(), prompt)
	server.Check("a summary of another model", []string{prompt.Prompt, `"user":"u"`}, []string{"0.5"})
}

// No field of the parameters is lost, also of those that a later version of the SDK adds.
func TestSender_Fields(t *testing.T) {
	refused := clienttest.Fields(t, clienttest.Params[openai.ChatCompletionRequest]{
		Base:  openai.ChatCompletionRequest{Model: "gpt-4.1"}, // of gpt-5.5 the SDK refuses some
		Owned: []string{"Messages"}, Single: map[string]any{"N": 1}, Unseen: []string{"Stream"},
		Alone: func(url string, params openai.ChatCompletionRequest) error {
			_, err := newClient(url, http.DefaultClient).CreateChatCompletionStream(t.Context(), params)
			return err
		},
		Send: func(url string, params openai.ChatCompletionRequest) convo.Send {
			return convogoopenai.Send(newClient(url, withTransport()), params, nil)
		},
		Values:  map[string]any{"ToolChoice": "auto", "FunctionCall": "auto", "Model": "gpt-4.1-2025-04-14"},
		Section: "Chat Completions, go-openai", Model: "gpt-4.1",
		Summarizer: func(url string, params openai.ChatCompletionRequest) convo.Summarizer {
			return (&convogoopenai.Sender{Client: newClient(url, withTransport()), Params: params}).Summarizer("")
		},
	})
	if len(refused) > 0 {
		t.Error(refused)
	}
}
