package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
	"github.com/seed-c1b73e60/convo/wire"
)

// BenchmarkSpeed writes and reads the request of a long conversation, and reads an
// answer, with package wire and with the SDK.
func BenchmarkSpeed(b *testing.B) {
	s, f := judgetest.Long(b), wire.Gemini{Model: "gemini-3-flash"}
	body, err := s.Request(f)
	require.NoError(b, err)
	var r request
	require.NoError(b, json.Unmarshal(body, &r))
	judgetest.Speed(b,
		judgetest.Race{Name: "write a request",
			Convo: func() error { _, err := s.Request(f); return err },
			SDK:   func() error { _, err := json.Marshal(r); return err }},
		judgetest.Race{Name: "read a request",
			Convo: func() error { _, err := f.Decode(body); return err },
			SDK:   func() error { var again request; return json.Unmarshal(body, &again) }},
		judgetest.Race{Name: "read an answer",
			Convo: func() error { _, err := f.Decode([]byte(answer)); return err },
			SDK:   func() error { var r genai.GenerateContentResponse; return json.Unmarshal([]byte(answer), &r) }},
	)
}

// answer has the shape of https://ai.google.dev/api/generate-content.
const answer = `{"candidates":[{"content":{"role":"model","parts":[{"text":"I can ask for both at once.","thought":true},` +
	`{"text":"Let me look at both cities. That will take a moment, since each of them is asked for on its own."},` +
	`{"functionCall":{"id":"a1","name":"get_weather","args":{"places":[{"city":"Rome"}],"exact":true}},"thoughtSignature":"c2lnbmVk"},` +
	`{"functionCall":{"id":"a2","name":"get_weather","args":{"places":[{"city":"Lyon"}],"exact":true}}}]},"finishReason":"STOP","index":0}],` +
	`"usageMetadata":{"promptTokenCount":1117,"candidatesTokenCount":46,"totalTokenCount":1200,"thoughtsTokenCount":37,"cachedContentTokenCount":1000,"promptTokensDetails":[{"modality":"TEXT","tokenCount":1117}]},` +
	`"modelVersion":"gemini-3-flash","responseId":"r1"}`
