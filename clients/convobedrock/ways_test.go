package convobedrock_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/clienttest"
	"github.com/seed-c1b73e60/convo/clients/convobedrock"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

const arguments = `{"b":1.0,"a":12345678901234567890}`

// The README of clients says what each way of giving a request to the SDK keeps.
func TestWays(t *testing.T) {
	server := clienttest.Record(t)
	client := newClient(server.URL)
	var in bedrockruntime.ConverseStreamInput
	if err := json.Unmarshal([]byte(`{"messages":[{"role":"user","content":[{"text":"x"}]}]}`), &in); err == nil {
		t.Error("a request can now be unmarshalled; mend the README of clients")
	}

	typed := func(input any) {
		in := *params
		in.Messages = []types.Message{
			{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "<a> & b"}}},
			{Role: types.ConversationRoleAssistant, Content: []types.ContentBlock{&types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
				Name: aws.String("n"), ToolUseId: aws.String("t"), Input: document.NewLazyDocument(input),
			}}}},
		}
		client.ConverseStream(t.Context(), &in)
	}
	var decoded any
	if err := json.Unmarshal([]byte(arguments), &decoded); err != nil {
		t.Fatal(err)
	}
	typed(decoded)
	server.Check("typed values", []string{"<a> & b"}, []string{"1.0", "12345678901234567890"})
	typed(json.RawMessage(arguments))
	server.Check("typed values with raw bytes", []string{"<a> & b"}, []string{arguments})

	call := convo.ToolCall{ID: "c", Name: "n", Arguments: arguments}
	clienttest.Do(t, convobedrock.Send(client, params, nil), convo.User("<a> & b"), convo.Assistant("", call), convo.Result(call, "r"))
	server.Check("a middleware", []string{"<a> & b", arguments}, nil)
}

// What the History decides may not be among the parameters.
func TestParams(t *testing.T) {
	filled := *params
	filled.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "x"}}
	clienttest.Refuses(t, "system", func(url string) convo.Send { return convobedrock.Send(newClient(url), &filled, nil) })
}

// Reasoning that the provider needs back, and another model has made, cannot be sent. Then
// thinking is off.
func TestSender_NoThinking(t *testing.T) {
	server := clienttest.Record(t)
	thinks := *params
	thinks.ModelId = aws.String("arn:aws:bedrock:eu-central-1:1:application-inference-profile/x")
	call := convo.ToolCall{ID: "c", Name: "n", Arguments: "{}"}
	for _, name := range []string{"thinking", "reasoning_config"} {
		thinks.AdditionalModelRequestFields = document.NewLazyDocument(map[string]any{"top_k": 5, name: map[string]any{"type": "enabled", "budget_tokens": 1024}})
		send := convobedrock.Send(newClient(server.URL), &thinks, nil)
		clienttest.Do(t, send, convo.User("1"))
		server.Check("a question", []string{`"` + name + `":{`, `"type":"enabled"`, `"top_k":5`}, nil)
		clienttest.Do(t, send, convo.User("1"), thoughts.In(convo.Assistant("", call), convo.Reasoning{Text: "hm"}), convo.Result(call, "r"))
		server.Check("thinking without its signature", []string{`"` + name + `":{"type":"disabled"}`, `"top_k":5`}, []string{"enabled"})
	}
}

// No field of the parameters is lost, also of those that a later version of the SDK adds.
func TestSender_Fields(t *testing.T) {
	fields := clienttest.Params[bedrockruntime.ConverseStreamInput]{
		Base: *params, Owned: []string{"Messages", "System"},
		Values: map[string]any{
			"AdditionalModelRequestFields": document.NewLazyDocument(map[string]any{"top_k": 5}),
			"Messages":                     []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "x"}}}},
			"ModelId":                      aws.String("us." + *params.ModelId),
			"OutputConfig":                 outputConfig,
			"PromptVariables":              map[string]types.PromptVariableValues{"name": &types.PromptVariableValuesMemberText{Value: "x"}},
			"System":                       []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "x"}},
			"ToolConfig": &types.ToolConfiguration{
				Tools:      []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{Name: aws.String("n"), InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(map[string]any{"type": "object"})}}}},
				ToolChoice: &types.ToolChoiceMemberAuto{},
			},
		},
		Alone: func(url string, params bedrockruntime.ConverseStreamInput) error {
			_, err := newClient(url).ConverseStream(t.Context(), &params)
			return err
		},
		Send: func(url string, params bedrockruntime.ConverseStreamInput) convo.Send {
			return convobedrock.Send(newClient(url), &params, nil)
		},
		Section: "Converse", Inside: []string{"InferenceConfig"}, Model: *params.ModelId,
		Summarizer: func(url string, params bedrockruntime.ConverseStreamInput) convo.Summarizer {
			return (&convobedrock.Sender{Client: newClient(url), Params: &params}).Summarizer("")
		},
	}
	if refused := clienttest.Fields(t, fields); len(refused) > 0 {
		t.Error(refused)
	}
	with := func(c types.InferenceConfiguration) bedrockruntime.ConverseStreamInput {
		params := *params
		params.InferenceConfig = &c
		return params
	}
	refused := clienttest.Fields(t, clienttest.Params[types.InferenceConfiguration]{
		Alone:   func(url string, c types.InferenceConfiguration) error { return fields.Alone(url, with(c)) },
		Send:    func(url string, c types.InferenceConfiguration) convo.Send { return fields.Send(url, with(c)) },
		Section: "Converse", Prefix: "InferenceConfig.", Model: *params.ModelId,
		Summarizer: func(url string, c types.InferenceConfiguration) convo.Summarizer {
			return fields.Summarizer(url, with(c))
		},
	})
	if len(refused) > 0 {
		t.Error(refused)
	}
}
