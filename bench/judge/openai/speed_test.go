package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
	"github.com/seed-c1b73e60/convo/wire"
)

// BenchmarkSpeed_Chat writes and reads the request of a long conversation, and reads an
// answer, with package wire and with the SDK.
func BenchmarkSpeed_Chat(b *testing.B) {
	s, f := judgetest.Long(b), wire.OpenAIChat{}
	body, err := s.Request(f)
	require.NoError(b, err)
	var request openai.ChatCompletionNewParams
	require.NoError(b, json.Unmarshal(body, &request))
	judgetest.Speed(b,
		judgetest.Race{Name: "write a request",
			Convo: func() error { _, err := s.Request(f); return err },
			SDK:   func() error { _, err := json.Marshal(request); return err }},
		judgetest.Race{Name: "read a request",
			Convo: func() error { _, err := f.Decode(body); return err },
			SDK:   func() error { var r openai.ChatCompletionNewParams; return json.Unmarshal(body, &r) }},
		judgetest.Race{Name: "read an answer",
			Convo: func() error { _, err := f.Decode([]byte(chatAnswer)); return err },
			SDK:   func() error { var r openai.ChatCompletion; return json.Unmarshal([]byte(chatAnswer), &r) }},
	)
}

// BenchmarkSpeed_Responses does the same for Responses.
func BenchmarkSpeed_Responses(b *testing.B) {
	s, f := judgetest.Long(b), wire.OpenAIResponses{}
	body, err := s.Request(f)
	require.NoError(b, err)
	items := typed(b, body)
	var request responses.ResponseNewParams
	require.NoError(b, json.Unmarshal(items, &request))
	judgetest.Speed(b,
		judgetest.Race{Name: "write a request",
			Convo: func() error { _, err := s.Request(f); return err },
			SDK:   func() error { _, err := json.Marshal(request); return err }},
		judgetest.Race{Name: "read a request",
			Convo: func() error { _, err := f.Decode(body); return err },
			SDK:   func() error { var r responses.ResponseNewParams; return json.Unmarshal(items, &r) }},
		judgetest.Race{Name: "read an answer",
			Convo: func() error { _, err := f.Decode([]byte(response)); return err },
			SDK:   func() error { var r responses.Response; return json.Unmarshal([]byte(response), &r) }},
	)
}

// typed returns a request whose messages have a type, without which the SDK reads none
// of the input.
func typed(b *testing.B, body []byte) []byte {
	var all map[string]json.RawMessage
	var list []map[string]json.RawMessage
	require.NoError(b, json.Unmarshal(body, &all))
	require.NoError(b, json.Unmarshal(all["input"], &list))
	for _, item := range list {
		if item["type"] == nil {
			item["type"] = json.RawMessage(`"message"`)
		}
	}
	var err error
	all["input"], err = json.Marshal(list)
	require.NoError(b, err)
	body, err = json.Marshal(all)
	require.NoError(b, err)
	return body
}

// chatAnswer has the shape of https://platform.openai.com/docs/api-reference/chat/object.
const chatAnswer = `{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"gpt-5.2","choices":[{"index":0,"message":{"role":"assistant",` +
	`"content":"Let me look at both cities. That will take a moment, since each of them is asked for on its own.","refusal":null,"annotations":[],"tool_calls":[` +
	`{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"places\":[{\"city\":\"Rome\"}],\"exact\":true}"}},` +
	`{"id":"call_2","type":"function","function":{"name":"get_weather","arguments":"{\"places\":[{\"city\":\"Lyon\"}],\"exact\":true}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],` +
	`"usage":{"prompt_tokens":1117,"completion_tokens":46,"total_tokens":1163,"prompt_tokens_details":{"cached_tokens":1000,"audio_tokens":0},` +
	`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`

// response has the shape of https://platform.openai.com/docs/api-reference/responses/object.
const response = `{"id":"resp_1","object":"response","created_at":1741476777,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"gpt-5.2",` +
	`"output":[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I can ask for both at once."}],"encrypted_content":"c2VhbGVk"},` +
	`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me look at both cities. That will take a moment.","annotations":[]}]},` +
	`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"places\":[{\"city\":\"Rome\"}],\"exact\":true}","status":"completed"},` +
	`{"type":"function_call","id":"fc_2","call_id":"call_2","name":"get_weather","arguments":"{\"places\":[{\"city\":\"Lyon\"}],\"exact\":true}","status":"completed"}],` +
	`"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"temperature":1,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1,"truncation":"disabled",` +
	`"usage":{"input_tokens":328,"input_tokens_details":{"cached_tokens":256},"output_tokens":52,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":380},"user":null,"metadata":{}}`
