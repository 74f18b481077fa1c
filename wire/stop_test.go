package wire_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// answers holds, for each format, an answer with a text and a call of delete_all.
// STOP stands for the reason of the end, ARGS for the arguments.
var answers = map[string]struct {
	format wire.Format
	body   string
	stops  map[string]convo.Stop // reasons, as they are in the answer
	text   bool                  // ARGS is a JSON text, not an object
}{
	"chat": {
		wire.OpenAIChat{},
		`{"choices":[{"finish_reason":STOP,"message":{"role":"assistant","content":"I will.","tool_calls":[{"id":"c1","type":"function","function":{"name":"delete_all","arguments":ARGS}}]}}]}`,
		map[string]convo.Stop{`"length"`: convo.StopLength, `"tool_calls"`: convo.StopToolCall, `"stop"`: convo.StopToolCall, `null`: convo.StopToolCall, `"content_filter"`: convo.StopRefused},
		true,
	},
	"ollama": {
		wire.OpenAIChat{Dialect: wire.Ollama},
		`{"done_reason":STOP,"message":{"role":"assistant","content":"I will.","tool_calls":[{"id":"c1","function":{"name":"delete_all","arguments":ARGS}}]}}`,
		map[string]convo.Stop{`"length"`: convo.StopLength, `"stop"`: convo.StopToolCall},
		true,
	},
	"responses": {
		wire.OpenAIResponses{},
		`{"status":"incomplete","incomplete_details":{"reason":STOP},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I will."}]},{"type":"function_call","call_id":"c1","name":"delete_all","arguments":ARGS,"status":"incomplete"}]}`,
		map[string]convo.Stop{`"max_output_tokens"`: convo.StopLength, `null`: convo.StopToolCall, `"content_filter"`: convo.StopRefused},
		true,
	},
	"anthropic": {
		wire.Anthropic{},
		`{"role":"assistant","stop_reason":STOP,"content":[{"type":"text","text":"I will."},{"type":"tool_use","id":"c1","name":"delete_all","input":ARGS}]}`,
		map[string]convo.Stop{`"max_tokens"`: convo.StopLength, `"model_context_window_exceeded"`: convo.StopLength, `"tool_use"`: convo.StopToolCall, `"refusal"`: convo.StopRefused},
		false,
	},
	"converse": {
		wire.Converse{},
		`{"stopReason":STOP,"output":{"message":{"role":"assistant","content":[{"text":"I will."},{"toolUse":{"toolUseId":"c1","name":"delete_all","input":ARGS}}]}}}`,
		map[string]convo.Stop{`"max_tokens"`: convo.StopLength, `"tool_use"`: convo.StopToolCall, `"guardrail_intervened"`: convo.StopRefused},
		false,
	},
	"gemini": {
		wire.Gemini{},
		`{"candidates":[{"finishReason":STOP,"content":{"role":"model","parts":[{"text":"I will."},{"functionCall":{"id":"c1","name":"delete_all","args":ARGS}}]}}]}`,
		map[string]convo.Stop{`"MAX_TOKENS"`: convo.StopLength, `"STOP"`: convo.StopToolCall, `"SAFETY"`: convo.StopRefused},
		false,
	},
}

func TestDecode_Stop(t *testing.T) {
	for name, a := range answers {
		for reason, want := range a.stops {
			t.Run(name+" "+reason, func(t *testing.T) {
				args := `{"x":1}`
				if a.text {
					args = fmt.Sprintf("%q", args)
				}
				in := mustDecode(t, a.format, []byte(strings.NewReplacer("STOP", reason, "ARGS", args).Replace(a.body)))
				assert.Equal(t, want, in.Stop)
				if reason == "null" && name == "responses" {
					reason = `"incomplete"` // this is the status
				}
				assert.Equal(t, strings.Trim(strings.TrimPrefix(reason, "null"), `"`), in.StopReason)
				assert.Nil(t, in.CutOff, "the arguments are whole")
				assert.Empty(t, in.Lost)
				reply := in.Reply()
				assert.Equal(t, want, reply.Stop)
				assert.Len(t, reply.OpenCalls(), 1)
				assert.Equal(t, "I will.", reply.Text())
			})
		}
	}
}

// The complete enumerations of the published clients, and further values of hosts.
func TestStopOf(t *testing.T) {
	const done, length, call, refused = convo.StopDone, convo.StopLength, convo.StopToolCall, convo.StopRefused
	for source, reasons := range map[string]map[string]convo.Stop{
		"Chat Completions: ChatCompletionChoice of openai-go v3.96.0": {"stop": done, "length": length, "tool_calls": call, "content_filter": refused, "function_call": call},
		"Responses: ResponseIncompleteDetails of openai-go v3.96.0":   {"max_output_tokens": length, "max_messages": length, "content_filter": refused, "steered": length},
		"Anthropic: BetaStopReason of anthropic-sdk-go v1.84.0": {"end_turn": done, "max_tokens": length, "stop_sequence": done, "tool_use": call, "pause_turn": convo.StopPause,
			"compaction": done, "refusal": refused, "model_context_window_exceeded": length},
		"Gemini: FinishReason of genai v1.77.0": {"FINISH_REASON_UNSPECIFIED": done, "STOP": done, "MAX_TOKENS": length, "SAFETY": refused, "RECITATION": refused, "LANGUAGE": refused,
			"OTHER": refused, "BLOCKLIST": refused, "PROHIBITED_CONTENT": refused, "SPII": refused, "MALFORMED_FUNCTION_CALL": refused, "IMAGE_SAFETY": refused,
			"UNEXPECTED_TOOL_CALL": refused, "TOO_MANY_TOOL_CALLS": length, "IMAGE_PROHIBITED_CONTENT": refused, "NO_IMAGE": refused, "IMAGE_RECITATION": refused,
			"IMAGE_OTHER": refused, "CONTINUATION": length},
		"Gemini: BlockedReason of genai v1.77.0": {"SAFETY": refused, "OTHER": refused, "BLOCKLIST": refused, "PROHIBITED_CONTENT": refused, "IMAGE_SAFETY": refused,
			"MODEL_ARMOR": refused, "JAILBREAK": refused},
		// https://ai.google.dev/api/generate-content#FinishReason
		"Gemini: the REST reference": {"MALFORMED_RESPONSE": refused, "MISSING_THOUGHT_SIGNATURE": refused},
		"Converse: StopReason of bedrockruntime v1.63.12": {"end_turn": done, "tool_use": call, "max_tokens": length, "stop_sequence": done, "guardrail_intervened": refused,
			"content_filtered": refused, "malformed_model_output": refused, "malformed_tool_use": refused, "model_context_window_exceeded": length},
		// https://docs.mistral.ai/api/#tag/chat
		"Mistral": {"stop": done, "length": length, "model_length": length, "error": refused, "tool_calls": call},
		// https://docs.cohere.com/reference/chat and, before it, the v1 of the same
		"Cohere": {"COMPLETE": done, "STOP_SEQUENCE": done, "MAX_TOKENS": length, "TOOL_CALL": call, "ERROR": refused, "TIMEOUT": refused,
			"ERROR_TOXIC": refused, "ERROR_LIMIT": length, "USER_CANCEL": refused},
		// https://api-docs.deepseek.com/api/create-chat-completion
		"DeepSeek": {"insufficient_system_resource": length},
		// https://docs.z.ai/api-reference/llm/chat-completion
		"Z.ai":           {"sensitive": refused, "network_error": refused, "model_context_window_exceeded": length},
		"vLLM, SGLang":   {"abort": refused, "length": length, "stop": done},
		"Together":       {"eos": done, "stop": done, "length": length, "tool_calls": call},
		"of no provider": {"": done, "sunset": done},
		"status, failed": {"failed": refused, "cancelled": refused},
		"in other cases": {"Max_Tokens": length, "stop": done, "Safety": refused},
	} {
		for reason, want := range reasons {
			assert.Equal(t, want, wire.StopOf(reason), "%s: %s", source, reason)
		}
	}
}

// An answer that pauses, or in which the provider has compacted, is read like any other
// answer.
func TestDecode_StopReasons(t *testing.T) {
	for reason, want := range map[string]convo.Stop{"pause_turn": convo.StopPause, "compaction": convo.StopDone} {
		in := mustDecode(t, wire.Anthropic{}, []byte(`{"role":"assistant","stop_reason":"`+reason+`","content":[{"type":"text","text":"So far."},{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]}`))
		assert.Equal(t, want, in.Stop)
		assert.Equal(t, reason, in.StopReason)
		assert.Len(t, in.Messages[0].Parts, 2)
		assert.Nil(t, in.CutOff)
	}
}

func TestDecode_Answer(t *testing.T) {
	for _, tt := range []struct {
		format wire.Format
		body   string
	}{
		{wire.OpenAIChat{Model: "own"}, `{"id":"r1","model":"m-2026","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"a"}}]}`},
		{wire.OpenAIResponses{Model: "own"}, `{"id":"r1","model":"m-2026","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`},
		{wire.Anthropic{Model: "own"}, `{"id":"r1","model":"m-2026","role":"assistant","stop_reason":"end_turn","content":[{"type":"text","text":"a"}]}`},
		{wire.Gemini{Model: "own"}, `{"responseId":"r1","modelVersion":"m-2026","candidates":[{"finishReason":"STOP","content":{"role":"model","parts":[{"text":"a"}]}}]}`},
	} {
		t.Run(fmt.Sprintf("%T", tt.format), func(t *testing.T) {
			in := mustDecode(t, tt.format, []byte(tt.body))
			assert.Equal(t, "r1", in.ID)
			assert.Equal(t, "m-2026", in.Model)
			assert.Equal(t, "own", in.Messages[0].Origin.Model)
			assert.Empty(t, in.Lost)
		})
	}
}

// The last call of an answer that the model did not finish is moved to CutOff if its
// arguments are empty or not a JSON object.
func TestDecode_Cut(t *testing.T) {
	for name, reasons := range map[string][2][]string{ // unfinished, and finished
		"chat":      {{`"length"`, `"content_filter"`, `"error"`, "null"}, {`"stop"`, `"tool_calls"`}},
		"ollama":    {{`"length"`, "null"}, {`"stop"`}},
		"responses": {{`"max_output_tokens"`, `"content_filter"`, "null"}, nil},
		"anthropic": {{`"max_tokens"`, `"refusal"`, "null"}, {`"tool_use"`, `"end_turn"`}},
		"converse":  {{`"max_tokens"`, `"guardrail_intervened"`, "null"}, {`"tool_use"`, `"end_turn"`}},
	} {
		a := answers[name]
		cut := map[string]string{"{}": "", "null": ""} // the arguments that are reported for it
		if a.text {
			cut = map[string]string{`""`: "", `"  "`: "  ", `"{\"path\": \"/ho"`: `{"path": "/ho`, "null": "", `"[1]"`: "[1]"}
		}
		for args, want := range cut {
			for _, reason := range reasons[0] {
				in := mustDecode(t, a.format, []byte(strings.NewReplacer("STOP", reason, "ARGS", args).Replace(a.body)))
				require.NotNil(t, in.CutOff)
				assert.Equal(t, convo.ToolCall{ID: "c1", Name: "delete_all", Arguments: want}, *in.CutOff)
				assert.Empty(t, in.Lost, "nothing of it is in the messages")
				require.Len(t, in.Messages, 1)
				assert.Empty(t, in.Messages[0].ToolCalls())
				assert.Equal(t, "I will.", in.Messages[0].Text())
				assert.Equal(t, in.CutOff, in.Reply().CutOff)

				assert.NotEqual(t, convo.StopToolCall, in.Stop)
			}
			for _, reason := range reasons[1] { // the same call in an answer that was finished
				in := mustDecode(t, a.format, []byte(strings.NewReplacer("STOP", reason, "ARGS", args).Replace(a.body)))
				assert.Nil(t, in.CutOff)
				assert.Len(t, in.Messages[0].ToolCalls(), 1)
			}
		}
	}
}

// A call is whole when the provider has ended it.
func TestDecode_EndedCall(t *testing.T) {
	for name, tt := range map[string]struct {
		format wire.Format
		body   string
	}{
		"the whole of Responses":   {wire.OpenAIResponses{}, `{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"now","arguments":""}]}`},
		"Responses says completed": {wire.OpenAIResponses{}, `{"incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"c1","name":"now","arguments":"","status":"completed"}]}`},
		"Gemini sends whole calls": {wire.Gemini{}, `{"candidates":[{"finishReason":"MAX_TOKENS","content":{"role":"model","parts":[{"functionCall":{"name":"now"}}]}}]}`},
		"a text follows":           {wire.Anthropic{}, `{"role":"assistant","stop_reason":"max_tokens","content":[{"type":"tool_use","id":"c1","name":"now","input":{}},{"type":"text","text":"And"}]}`},
		"an object is whole":       {wire.OpenAIChat{}, `{"choices":[{"finish_reason":"length","message":{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"now","arguments":"{}"}}]}}]}`},
		"it is in a request":       {wire.Anthropic{}, `{"messages":[{"role":"assistant","stop_reason":"max_tokens","content":[{"type":"tool_use","id":"c1","name":"now","input":{}}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := mustDecode(t, tt.format, []byte(tt.body))
			assert.Nil(t, in.CutOff)
			assert.Len(t, in.Messages[0].ToolCalls(), 1)
		})
	}
}

// A call that Gemini reports as malformed is moved to CutOff, as with Converse, and its
// signature and fields are removed.
func TestGemini_MalformedCall(t *testing.T) {
	answer := func(reason, parts string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"finishReason":"` + reason + `"}]}`
	}
	const malformed = "MALFORMED_FUNCTION_CALL"
	const whole = `{"functionCall":{"name":"ls","args":{"x":1}},"thoughtSignature":"s1"}`
	for name, tt := range map[string]struct {
		reason, parts string
		calls         []string // their names
		cut           string   // the name of the call in CutOff
		kept          int      // parts of the message
	}{
		"no arguments":              {malformed, `{"text":"I will."},{"functionCall":{"name":"delete_all"}}`, nil, "delete_all", 1},
		"null":                      {malformed, `{"text":"I will."},{"functionCall":{"name":"delete_all","args":null}}`, nil, "delete_all", 1},
		"an empty object":           {malformed, `{"text":"I will."},{"functionCall":{"name":"delete_all","args":{}}}`, nil, "delete_all", 1},
		"a signature":               {malformed, `{"text":"I will."},{"functionCall":{"name":"delete_all"},"thoughtSignature":"s"}`, nil, "delete_all", 1},
		"nothing else":              {malformed, `{"functionCall":{"id":"c1","name":"delete_all"},"thoughtSignature":"s"}`, nil, "delete_all", 0},
		"after a whole one":         {malformed, whole + `,{"functionCall":{"name":"delete_all"}}`, []string{"ls"}, "delete_all", 2},
		"in lower case":             {strings.ToLower(malformed), `{"functionCall":{"name":"delete_all"}}`, nil, "delete_all", 0},
		"an object, as in Converse": {malformed, `{"functionCall":{"name":"delete_all","args":{"x":1}}}`, []string{"delete_all"}, "", 1},
		"text follows":              {malformed, `{"functionCall":{"name":"now"}},{"text":"And"}`, []string{"now"}, "", 2},
		"whole, too long":           {"MAX_TOKENS", `{"functionCall":{"name":"now"},"thoughtSignature":"s"}`, []string{"now"}, "", 2},
		"whole, done":               {"STOP", `{"functionCall":{"name":"now"}}`, []string{"now"}, "", 1},
	} {
		check := func(t *testing.T, in wire.Transcript) {
			t.Helper()
			var calls []string
			kept := 0
			for _, m := range in.Messages {
				kept += len(m.Parts)
				for _, c := range m.ToolCalls() {
					calls = append(calls, c.Name)
				}
			}
			assert.Equal(t, tt.calls, calls)
			assert.Equal(t, tt.kept, kept, "%v", in.Messages)
			assert.Len(t, in.Reply().OpenCalls(), len(tt.calls))
			assert.Equal(t, convo.StopToolCall == in.Stop, tt.reason == "STOP")
			assert.Empty(t, in.Lost)
			if tt.cut == "" {
				assert.Nil(t, in.CutOff)
				return
			}
			require.NotNil(t, in.CutOff)
			assert.Equal(t, tt.cut, in.CutOff.Name)
			assert.Empty(t, in.CutOff.Arguments)
			assert.NotEmpty(t, in.CutOff.ID)
			assert.Equal(t, in.CutOff, in.Reply().CutOff)
		}
		t.Run(name, func(t *testing.T) {
			in := mustDecode(t, wire.Gemini{}, []byte(answer(tt.reason, tt.parts)))
			check(t, in)
		})
		t.Run(name+", streamed", func(t *testing.T) {
			s := wire.Gemini{}.Stream()
			for _, data := range []string{
				`{"candidates":[{"content":{"role":"model","parts":[` + tt.parts + `]}}]}`,
				`{"candidates":[{"finishReason":"` + tt.reason + `"}]}`,
			} {
				_, err := s.Event("", []byte(data))
				require.NoError(t, err)
			}
			in, err := s.Transcript()
			require.NoError(t, err)
			check(t, in)
			again, err := s.Transcript()
			require.NoError(t, err)
			assert.Equal(t, in, again)
		})
	}

	// A call that arrives in pieces is moved to CutOff, and no earlier call is.
	s := wire.Gemini{}.Stream()
	for _, data := range []string{
		`{"candidates":[{"content":{"role":"model","parts":[` + whole + `]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"delete_all","willContinue":true}}]}}]}`,
		`{"candidates":[{"finishReason":"` + malformed + `"}]}`,
	} {
		_, err := s.Event("", []byte(data))
		require.NoError(t, err)
	}
	in, err := s.Transcript()
	require.NoError(t, err)
	require.NotNil(t, in.CutOff)
	assert.Equal(t, "delete_all", in.CutOff.Name)
	require.Len(t, in.Reply().OpenCalls(), 1)
	assert.Equal(t, `{"x":1}`, in.Reply().OpenCalls()[0].Arguments)
}

func TestDecode_CutLeavesNothing(t *testing.T) {
	in := mustDecode(t, wire.Anthropic{}, []byte(`{"role":"assistant","stop_reason":"max_tokens","content":[{"type":"tool_use","id":"c1","name":"delete_all","input":{}}]}`))
	assert.Empty(t, in.Messages)
	assert.Equal(t, "delete_all", in.CutOff.Name)
}

func TestTranscript_Reply(t *testing.T) {
	in := wire.Transcript{
		Messages: []convo.Message{convo.Assistant(""), {Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("")}}, convo.Assistant("x")},
		Usage:    convo.Usage{Input: 3},
		Stop:     convo.StopLength,
		CutOff:   &convo.ToolCall{Name: "t"},
	}
	got := in.Reply()
	assert.Equal(t, convo.Reply{Messages: in.Messages[2:], Usage: in.Usage, Stop: in.Stop, CutOff: in.CutOff}, got)
	assert.Len(t, in.Messages, 3)
	assert.Equal(t, convo.Assistant("x"), in.Messages[2])
}

// A request of Do over HTTP, without an SDK: post calls the provider.
func ExampleTranscript_Reply() {
	post := func(context.Context, []byte) ([]byte, error) {
		return []byte(`{"role": "assistant", "stop_reason": "end_turn", "content": [{"type": "text", "text": "At 09:10 and 13:45."}],
			"usage": {"input_tokens": 21, "output_tokens": 9}}`), nil
	}
	format := wire.Anthropic{Model: "claude-opus-4-8"}
	send := func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		req, err := format.Encode(s)
		if err != nil {
			return convo.Reply{}, err
		}
		answer, err := post(ctx, req.Body()) // with the model, the tools and max_tokens
		if err != nil {
			return convo.Reply{}, err
		}
		in, err := format.Decode(answer)
		return in.Reply(), err
	}

	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = h.Append(convo.User("Flights to Rome?"))
	reply, doErr := h.Do(context.Background(), send)
	fmt.Println(reply.Text(), reply.Stop, errors.Join(err, doErr))
	fmt.Println(h.Tokens().Measured, "tokens in the request")
	// Output:
	// At 09:10 and 13:45. done <nil>
	// 21 tokens in the request
}

// A valid answer without content is not an error: its usage counts, and the reason why it
// stopped is kept.
func TestDecode_AnswersWithoutMessage(t *testing.T) {
	for _, tt := range []struct {
		format wire.Format
		answer string
		stop   convo.Stop
		reason string
	}{
		{wire.OpenAIChat{}, `{"choices":[],"usage":{"prompt_tokens":7}}`, convo.StopDone, ""},
		{wire.OpenAIChat{}, `{"choices":null,"usage":{"prompt_tokens":7}}`, convo.StopDone, ""},
		{wire.OpenAIChat{}, `{"usage":{"prompt_tokens":7}}`, convo.StopDone, ""},
		{wire.OpenAIResponses{}, `{"status":"completed","usage":{"input_tokens":7}}`, convo.StopDone, "completed"},
		{wire.OpenAIResponses{}, `{"output":null,"status":"completed","usage":{"input_tokens":7}}`, convo.StopDone, "completed"},
		{wire.OpenAIResponses{}, `{"output":[],"status":"completed","usage":{"input_tokens":7}}`, convo.StopDone, "completed"},
		{wire.Anthropic{}, `{"usage":{"input_tokens":7},"stop_reason":"refusal"}`, convo.StopRefused, "refusal"},
		{wire.Anthropic{}, `{"role":"assistant","content":[],"stop_reason":"refusal","usage":{"input_tokens":7}}`, convo.StopRefused, "refusal"},
		{wire.Anthropic{}, `{"role":"assistant","content":null,"usage":{"input_tokens":7}}`, convo.StopDone, ""},
		{wire.Gemini{}, `{"candidates":[],"usageMetadata":{"promptTokenCount":7}}`, convo.StopDone, ""},
		{wire.Gemini{}, `{"candidates":[{}],"usageMetadata":{"promptTokenCount":7}}`, convo.StopDone, ""},
		{wire.Gemini{}, `{"candidates":[{"content":{},"finishReason":"NO_IMAGE"}],"usageMetadata":{"promptTokenCount":7}}`, convo.StopRefused, "NO_IMAGE"},
		{wire.Gemini{}, `[{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":7}}]`, convo.StopRefused, "SAFETY"},
		{wire.Converse{}, `{"usage":{"inputTokens":7}}`, convo.StopDone, ""},
		{wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":7}}`, convo.StopRefused, "content_filter"},
		{wire.OpenAIChat{}, `{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}}`, convo.StopDone, "stop"},
		{wire.OpenAIChat{}, `{"choices":[{"message":null,"finish_reason":"content_filter"}],"usage":{"prompt_tokens":7}}`, convo.StopRefused, "content_filter"},
		{wire.OpenAIResponses{}, `{"output":[],"status":"incomplete","incomplete_details":{"reason":"content_filter"},"usage":{"input_tokens":7}}`, convo.StopRefused, "content_filter"},
		{wire.OpenAIResponses{}, `{"output":[{"type":"message","role":"assistant","content":[]}],"status":"completed","usage":{"input_tokens":7}}`, convo.StopDone, "completed"},
		{wire.Anthropic{}, `{"role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":7}}`, convo.StopDone, "end_turn"},
		{wire.Gemini{}, `{"promptFeedback":{"blockReason":"OTHER"},"usageMetadata":{"promptTokenCount":7}}`, convo.StopRefused, "OTHER"},
		{wire.Gemini{}, `{"candidates":[],"prompt_feedback":{"block_reason":"SAFETY"},"usageMetadata":{"promptTokenCount":7}}`, convo.StopRefused, "SAFETY"},
		{wire.Gemini{}, `{"usageMetadata":{"promptTokenCount":7},"modelVersion":"m"}`, convo.StopDone, ""},
		{wire.Gemini{}, `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}],"usageMetadata":{"promptTokenCount":7}}`, convo.StopRefused, "MALFORMED_FUNCTION_CALL"},
		{wire.Gemini{}, `{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7}}`, convo.StopDone, "STOP"},
		{wire.Gemini{}, `{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7}}`, convo.StopDone, "STOP"},
		{wire.Converse{}, `{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"end_turn","usage":{"inputTokens":7}}`, convo.StopDone, "end_turn"},
		{wire.Converse{}, `{"output":{},"stopReason":"guardrail_intervened","usage":{"inputTokens":7}}`, convo.StopRefused, "guardrail_intervened"},
		{wire.Converse{}, `{"output":null,"stopReason":"guardrail_intervened","usage":{"inputTokens":7}}`, convo.StopRefused, "guardrail_intervened"},
		{wire.Converse{}, `{"stopReason":"guardrail_intervened","usage":{"inputTokens":7}}`, convo.StopRefused, "guardrail_intervened"},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			got := mustDecode(t, tt.format, []byte(tt.answer))
			assert.Empty(t, got.Messages)
			assert.Equal(t, 7, got.Usage.Input)
			assert.Equal(t, tt.stop, got.Stop)
			assert.Equal(t, tt.reason, got.StopReason)
		})
	}
}

// A message of Anthropic is an answer, alone or as a list of one message: an empty input
// at its end may be incomplete.
func TestAnthropic_CutInAListOfOne(t *testing.T) {
	for reason, cut := range map[string]bool{`"max_tokens"`: true, `null`: true, `"tool_use"`: false, `"end_turn"`: false} {
		message := `{"id":"m","role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"n","input":{}}],"stop_reason":` + reason + `}`
		alone := mustDecode(t, wire.Anthropic{}, []byte(message))
		assert.Equal(t, cut, alone.CutOff != nil, reason)
		listed := mustDecode(t, wire.Anthropic{}, []byte("["+message+"]"))
		assert.Equal(t, alone, listed, reason)
		history := mustDecode(t, wire.Anthropic{}, []byte(`[{"role":"user","content":"q"},`+message+"]"))
		assert.Nil(t, history.CutOff, "the messages of a request, which wait for the result")
	}
}
