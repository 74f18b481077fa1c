package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
	"github.com/seed-c1b73e60/convo/wire"
)

// BenchmarkSpeed writes and reads the request of a long conversation, and reads an
// answer, with package wire and with the SDK.
func BenchmarkSpeed(b *testing.B) {
	s, f := judgetest.Long(b), wire.Anthropic{}
	body, err := s.Request(f)
	require.NoError(b, err)
	var request anthropic.MessageNewParams
	require.NoError(b, json.Unmarshal(body, &request))
	judgetest.Speed(b,
		judgetest.Race{Name: "write a request",
			Convo: func() error { _, err := s.Request(f); return err },
			SDK:   func() error { _, err := json.Marshal(request); return err }},
		judgetest.Race{Name: "read a request",
			Convo: func() error { _, err := f.Decode(body); return err },
			SDK:   func() error { var r anthropic.MessageNewParams; return json.Unmarshal(body, &r) }},
		judgetest.Race{Name: "read an answer",
			Convo: func() error { _, err := f.Decode([]byte(answer)); return err },
			SDK:   func() error { var r anthropic.Message; return json.Unmarshal([]byte(answer), &r) }},
	)
}

// answer has the shape of https://docs.claude.com/en/api/messages.
const answer = `{"id":"msg_01","type":"message","role":"assistant","model":"claude-opus-5","content":[` +
	`{"type":"thinking","thinking":"The user wants the weather in two cities. I can ask for both at once.","signature":"c2lnbmVk"},` +
	`{"type":"text","text":"Let me look at both cities. That will take a moment, since each of them is asked for on its own."},` +
	`{"type":"tool_use","id":"toolu_01","name":"get_weather","input":{"places":[{"city":"Rome"}],"exact":true}},` +
	`{"type":"tool_use","id":"toolu_02","name":"get_weather","input":{"places":[{"city":"Lyon"}],"exact":true}}],` +
	`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":2095,"cache_creation_input_tokens":10,"cache_read_input_tokens":2000,"output_tokens":503}}`
