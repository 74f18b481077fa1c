package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// Decode returns an error for a response that reports a failure, and the error wraps the
// provider's.
func TestDecode_ErrorOfProvider(t *testing.T) {
	for _, tt := range []struct {
		name     string
		format   wire.Format
		body     string
		want     string // the text of the error after "wire: "
		overflow bool
	}{
		// https://platform.openai.com/docs/guides/error-codes
		{"chat", wire.OpenAIChat{}, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			"the provider reports invalid_request_error, context_length_exceeded: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", true},
		// https://openrouter.ai/docs/api-reference/errors
		{"OpenRouter", wire.OpenAIChat{}, `{"error":{"code":402,"message":"Insufficient credits"},"user_id":"u"}`, "the provider reports 402: Insufficient credits", false},
		// ErrorResponse of vLLM, vllm/entrypoints/openai/protocol.py
		{"vLLM", wire.OpenAIChat{}, `{"object":"error","message":"no such model","type":"NotFoundError","param":null,"code":404}`, "the provider reports NotFoundError, 404: no such model", false},
		{"vLLM, responses", wire.OpenAIResponses{}, `{"object":"error","message":"This model's maximum context length is 10 tokens. However, you requested 20 tokens","type":"BadRequestError","param":null,"code":400}`,
			"the provider reports BadRequestError, 400: This model's maximum context length is 10 tokens. However, you requested 20 tokens", true},
		{"responses, bare", wire.OpenAIResponses{}, `{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`,
			"the provider reports invalid_request_error, context_length_exceeded: Your input exceeds the context window of this model.", true},
		{"above the quota of a minute", wire.OpenAIChat{}, `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 5, Requested 6.","type":"tokens","code":"rate_limit_exceeded"}}`, "the provider reports tokens, rate_limit_exceeded: Request too large for m on tokens per min (TPM): Limit 5, Requested 6.", true},
		{"responses, bare without a code", wire.OpenAIResponses{}, `{"type":"server_error","message":"busy"}`, "the provider reports server_error: busy; wait, and send the request again", false},
		{"responses, in an array", wire.OpenAIResponses{}, `[{"error":{"code":400,"message":"no"}}]`, "the provider reports 400: no", false},
		// https://github.com/google-gemini/gemini-cli/issues/6678: hosts of Google answer an array
		{"chat, in an array", wire.OpenAIChat{Host: "google"}, `[{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`,
			"[0]: the provider reports INVALID_ARGUMENT, 400: The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", true},
		// https://docs.ollama.com/api/errors
		{"Ollama", wire.OpenAIChat{Dialect: wire.Ollama}, `{"error":"the model failed to generate a response"}`, "the provider reports: the model failed to generate a response", false},
		// https://docs.mistral.ai/api: a fault in the request is a detail
		{"Mistral", wire.OpenAIChat{Dialect: wire.Mistral}, `{"detail":"Not authorised"}`, "the provider reports: Not authorised", false},
		{"responses", wire.OpenAIResponses{}, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`,
			"the provider reports invalid_request_error, context_length_exceeded: Your input exceeds the context window of this model.", true},
		// https://platform.openai.com/docs/api-reference/responses-streaming/error
		{"responses, event", wire.OpenAIResponses{}, `{"type":"error","code":"ERR_SOMETHING","message":"Something went wrong","param":null,"sequence_number":1}`, "the provider reports ERR_SOMETHING: Something went wrong", false},
		// https://platform.claude.com/docs/en/api/errors
		{"anthropic", wire.Anthropic{}, `{"type":"error","error":{"type":"not_found_error","message":"The requested resource could not be found."},"request_id":"req_1"}`,
			"the provider reports not_found_error: The requested resource could not be found.", false},
		{"anthropic, too long", wire.Anthropic{}, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}`,
			"the provider reports invalid_request_error: prompt is too long: 215000 tokens > 200000 maximum", true},
		// https://cloud.google.com/apis/design/errors
		{"gemini", wire.Gemini{}, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`,
			"the provider reports INVALID_ARGUMENT, 400: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", true},
		{"gemini, stream", wire.Gemini{}, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]`, "[0]: the provider reports RESOURCE_EXHAUSTED, 429: Quota exceeded; wait, and send the request again", false},
		// https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html
		{"converse", wire.Converse{}, `{"__type":"ValidationException","message":"Input is too long for requested model."}`, "the provider reports ValidationException: Input is too long for requested model.", true},
		{"converse, of a gateway", wire.Converse{}, `{"Message":"Bearer Token has expired"}`, "the provider reports: Bearer Token has expired", false},
		// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
		{"converse, event", wire.Converse{}, `{"throttlingException":{"message":"Slow down"}}`, "the provider reports throttlingException: Slow down; wait, and send the request again", false},
		// https://docs.anthropic.com/en/api/errors
		{"a wrong key", wire.Anthropic{}, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, "the provider reports authentication_error: invalid x-api-key; check the API key, and what it may use", false},
		{"long, and a remedy", wire.Anthropic{}, `{"type":"error","error":{"type":"overloaded_error","message":"` + strings.Repeat("x", 300) + `"}}`, "the provider reports overloaded_error: " + strings.Repeat("x", 200-39) + "…; wait, and send the request again", false},
		{"long", wire.Anthropic{}, `{"type":"error","error":{"type":"t","message":"` + strings.Repeat("é", 1000) + `"}}`, "the provider reports t: " + strings.Repeat("é", 200-24) + "…", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := decodeError(t, tt.format, tt.body)
			assert.EqualError(t, err, "wire: "+tt.want)
			e, ok := errors.AsType[*wire.ProviderError](err)
			require.True(t, ok)
			said, _, _ := strings.Cut(tt.want, "; ")
			assert.Contains(t, e.Message, strings.TrimSuffix(said[strings.LastIndex(said, ": ")+2:], "…"), "the whole message")
			assert.Equal(t, tt.overflow, convo.IsOverflow(err))
		})
	}
}

// An error next to an answer is the error of Decode, as it is the error of a Stream, even
// if there is content.
func TestDecode_ErrorBesideAnswer(t *testing.T) {
	const long = "maximum context length is 10 tokens"
	for _, tt := range []struct {
		name    string
		format  wire.Format
		body    string
		message string // of the error
	}{
		// https://openrouter.ai/docs/api-reference/errors
		{"OpenRouter, in the choice", wire.OpenAIChat{Host: "openrouter"}, `{"id":"x","choices":[{"error":{"code":502,"message":"` + long + `"},"finish_reason":"error","message":{"role":"assistant","content":""}}]}`, long},
		{"OpenRouter, behind half a text", wire.OpenAIChat{Host: "openrouter"}, `{"id":"x","choices":[{"error":{"code":502,"message":"` + long + `"},"finish_reason":"error","message":{"role":"assistant","content":"half"}}]}`, long},
		{"OpenRouter, no choices", wire.OpenAIChat{Host: "openrouter"}, `{"id":"x","error":{"code":502,"message":"` + long + `"},"choices":[]}`, long},
		{"chat, null", wire.OpenAIChat{}, `{"id":null,"choices":null,"error":{"code":502,"message":"` + long + `"}}`, long},
		{"chat, with a usage", wire.OpenAIChat{}, `{"error":"` + long + `","usage":{"prompt_tokens":7}}`, long},
		{"Ollama", wire.OpenAIChat{Dialect: wire.Ollama}, `{"model":"m","error":"unexpected EOF","done":true,"message":{"role":"assistant","content":"half"}}`, "unexpected EOF"},
		// https://platform.openai.com/docs/api-reference/responses/object
		{"responses", wire.OpenAIResponses{}, `{"id":"r","object":"response","status":"failed","error":{"code":"context_length_exceeded","message":"` + long + `"},"output":[]}`, long},
		{"responses, behind a text", wire.OpenAIResponses{}, `{"id":"r","object":"response","status":"failed","error":{"code":"server_error","message":"no"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`, "no"},
		{"responses, no output", wire.OpenAIResponses{}, `{"id":"r","status":"incomplete","error":{"code":"server_error","message":"no"},"output":null}`, "no"},
		{"responses, no reason", wire.OpenAIResponses{}, `{"id":"r","object":"response","status":"failed","error":null,"output":[]}`, "the response failed"},
		{"responses, event", wire.OpenAIResponses{}, `{"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"no"},"output":[]}}`, "no"},
		{"responses, event without a reason", wire.OpenAIResponses{}, `{"type":"response.failed","response":{"id":"r","output":[]}}`, "the response failed"},
		{"gemini", wire.Gemini{}, `{"error":{"code":400,"message":"` + long + `"},"candidates":[]}`, long},
		{"gemini, behind a text", wire.Gemini{}, `{"error":{"code":503,"message":"busy"},"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]}}]}`, "busy"},
		{"anthropic", wire.Anthropic{}, `{"role":"assistant","content":[],"error":{"type":"api_error","message":"no"}}`, "no"},
		{"converse", wire.Converse{}, `{"output":{},"error":{"message":"no"}}`, "no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := decodeError(t, tt.format, tt.body)
			decoded, ok := errors.AsType[*wire.ProviderError](err)
			require.True(t, ok, "%v", err)
			assert.Equal(t, tt.message, decoded.Message)
			assert.Equal(t, tt.message == long, convo.IsOverflow(err))
			s := tt.format.(wire.Streamer).Stream()
			_, failed := s.Event("", []byte(tt.body))
			streamed, ok := errors.AsType[*wire.ProviderError](failed)
			require.True(t, ok, "%v", failed)
			assert.Equal(t, decoded, streamed)
		})
	}
	for _, body := range []string{`{"object":"error","message":"no","type":"BadRequestError","code":400}`, `{"type":"server_error","message":"no"}`} { // no unknown event
		_, err := wire.OpenAIResponses{}.Stream().Event("", []byte(body))
		assert.ErrorAs(t, err, new(*wire.ProviderError))
	}
	// These are not errors: fields that state that there is no error, items that hold an
	// error, items and events of unknown types, and the error of a response that has
	// ended.
	for _, tt := range []struct {
		format wire.Format
		body   string
	}{
		{wire.OpenAIChat{}, `{"error":null,"choices":[{"error":{},"message":{"role":"assistant","content":"a"}}]}`},
		{wire.OpenAIChat{}, `{"error":{},"choices":[{"error":null,"message":{"role":"assistant","content":"a"}}]}`},
		{wire.OpenAIResponses{}, `{"type":"mcp_call","name":"f","error":"no","output":null}`},
		{wire.OpenAIResponses{}, `{"type":"new_item","message":"hello"}`},
		{wire.OpenAIResponses{}, `{"type":"message","role":"user","content":"a","message":"b","code":1}`},
		{wire.OpenAIResponses{}, `{"status":"completed","error":{"message":"no"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`},
		{wire.Gemini{}, `{"error":null,"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]}}]}`},
	} {
		in := mustDecode(t, tt.format, []byte(tt.body), tt.body)
		assert.Len(t, in.Messages, 1, tt.body)
	}
	_, err := wire.OpenAIResponses{}.Stream().Event("", []byte(`{"type":"gateway.note","message":"hello"}`))
	require.NoError(t, err)
}

// Errors for malformed input name what is expected and what was found, and no Go types.
func TestDecode_SaysWhatIsWanted(t *testing.T) {
	for _, tt := range []struct {
		format     wire.Format
		body, want string
	}{
		{wire.OpenAIChat{}, `{"choices":7}`, "wire: choices: want an array of objects, got a number"},
		{wire.OpenAIChat{}, `{"choices":{}}`, "wire: choices: want an array of objects, got an object"},
		{wire.OpenAIChat{}, `{"choices":[7]}`, "wire: choices: want an array of objects"},
		{wire.OpenAIChat{}, `[{"content":"a"}]`, "wire: [0]: the message has no role; check that the input is complete and in this format"},
		{wire.OpenAIChat{}, `{"messages":[{"role":null,"content":"a","error":"no"}]}`, "wire: messages[0]: the message has no role; check that the input is complete and in this format"},
		{wire.OpenAIChat{}, `[{"role":7}]`, "wire: [0].role: want a string, got a number"},
		{wire.Anthropic{}, `[{"content":"a"}]`, "wire: [0]: the message has no role; check that the input is complete and in this format"},
		{wire.OpenAIResponses{}, `[{"type":"reasoning","summary":[{"type":1}]}]`, "wire: summary: want an array of texts"},
		{wire.OpenAIResponses{}, `[{"type":"reasoning","summary":{"text":"a"}}]`, "wire: summary: want an array of texts, got an object"},
		{wire.Gemini{}, `{"contents":[{"role":{}}]}`, "wire: contents[0].role: want a string, got an object"},
	} {
		_, err := tt.format.Decode([]byte(tt.body))
		assert.EqualError(t, err, tt.want, tt.body)
	}
}

// An event of a stream is not an answer, and Decode reports this.
func TestDecode_EventOfStream(t *testing.T) {
	for _, tt := range []struct {
		format wire.Format
		body   string
		want   string
	}{
		{wire.OpenAIChat{}, `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, `an event of a stream, "chunk"`},
		{wire.OpenAIChat{}, `{"object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7}}`, `an event of a stream, "chunk"`},
		{wire.OpenAIChat{}, `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, `choices[0]: an event of a stream, "chunk"`},
		{wire.OpenAIChat{Dialect: wire.Ollama}, `{"model":"m","message":{"role":"assistant","content":"a"},"done":false}`, `an event of a stream, "chunk"`},
		{wire.OpenAIResponses{}, `{"type":"response.output_text.delta","delta":"a"}`, `an event of a stream, "response.output_text.delta"`},
		{wire.OpenAIResponses{}, `{"type":"response.created","response":{"id":"r1","output":[]}}`, `an event of a stream, "response.created"`},
		{wire.OpenAIResponses{}, `{"type":"response.completed"}`, `an event of a stream, "response.completed"`},
		{wire.Anthropic{}, `{"type":"message_start","message":{"role":"assistant","content":[]}}`, `an event of a stream, "message_start"`},
		{wire.Anthropic{}, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`, `an event of a stream, "content_block_delta"`},
		{wire.Converse{}, `{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"a"}}}`, `an event of a stream, "contentBlockDelta"`},
		{wire.Converse{}, `{"contentBlockIndex":0,"delta":{"text":"a"}}`, `an event of a stream, "contentBlockDelta"`},
		{wire.OpenAIChat{}, "data: {\"choices\":[]}\n\n", "server-sent events and no JSON"},
		{wire.Anthropic{}, "\nevent: ping\ndata: {}\n\n", "server-sent events and no JSON"},
		{wire.OpenAIResponses{}, "event: x\ndata: {}\n\n", "server-sent events and no JSON"},
		{wire.Gemini{}, "data: {}\n\n", "server-sent events and no JSON"},
		{wire.Converse{}, "data: {}\n\n", "server-sent events and no JSON"},
	} {
		t.Run(tt.body, func(t *testing.T) {
			err := decodeError(t, tt.format, tt.body)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorContains(t, err, "Stream")
			assert.False(t, errors.As(err, new(*wire.ProviderError)))
		})
	}
	for _, kind := range []string{"completed", "incomplete", "cancelled", "done"} { // these hold the whole response
		in := mustDecode(t, wire.OpenAIResponses{}, []byte(`{"type":"response.`+kind+`","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}}`))
		assert.Equal(t, "a", in.Messages[0].Text())
	}
	// The last line of an answer by Ollama also holds the whole answer.
	in := mustDecode(t, wire.OpenAIChat{Dialect: wire.Ollama}, []byte(`{"message":{"role":"assistant","content":"a"},"done":true,"done_reason":"stop"}`))
	assert.Equal(t, "a", in.Messages[0].Text())
}
