package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ollama/ollama/api"

	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
	"github.com/seed-c1b73e60/convo/wire"
)

// BenchmarkSpeed writes and reads the request of a long conversation, and reads an
// answer, with package wire and with the SDK.
func BenchmarkSpeed(b *testing.B) {
	s, f := judgetest.Long(b), wire.OpenAIChat{Dialect: wire.Ollama}
	body, err := s.Request(f)
	require.NoError(b, err)
	var request api.ChatRequest
	require.NoError(b, json.Unmarshal(body, &request))
	judgetest.Speed(b,
		judgetest.Race{Name: "write a request",
			Convo: func() error { _, err := s.Request(f); return err },
			SDK:   func() error { _, err := json.Marshal(request); return err }},
		judgetest.Race{Name: "read a request",
			Convo: func() error { _, err := f.Decode(body); return err },
			SDK:   func() error { var r api.ChatRequest; return json.Unmarshal(body, &r) }},
		judgetest.Race{Name: "read an answer",
			Convo: func() error { _, err := f.Decode([]byte(answer)); return err },
			SDK:   func() error { var r api.ChatResponse; return json.Unmarshal([]byte(answer), &r) }},
	)
}

// answer has the shape of https://github.com/ollama/ollama/blob/main/docs/api.md.
const answer = `{"model":"qwen3","created_at":"2026-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"Let me look at both cities. That will take a moment, since each of them is asked for on its own.",` +
	`"thinking":"I can ask for both at once.","tool_calls":[{"id":"call_1","function":{"index":0,"name":"get_weather","arguments":{"places":[{"city":"Rome"}],"exact":true}}},` +
	`{"id":"call_2","function":{"index":1,"name":"get_weather","arguments":{"places":[{"city":"Lyon"}],"exact":true}}}]},"done":true,"done_reason":"stop",` +
	`"total_duration":5191566416,"load_duration":2154458,"prompt_eval_count":1117,"prompt_eval_duration":383809000,"eval_count":46,"eval_duration":4799921000}`
