package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/bench/judge/judgetest"
	"github.com/seed-c1b73e60/convo/wire"
)

// BenchmarkSpeed writes the request of a long conversation, and reads a long answer,
// with package wire and with the SDK. The SDK does both inside a call of its client
// only, which takes about as long as the call of the last race.
func BenchmarkSpeed(b *testing.B) {
	s, f := judgetest.Long(b), wire.Converse{}
	body, err := s.Request(f)
	require.NoError(b, err)
	in := bedrockruntime.ConverseInput{ModelId: aws.String("m")}
	for _, m := range judge.List(body, "messages") {
		message, err := readMessage(m)
		require.NoError(b, err)
		in.Messages = append(in.Messages, message)
	}
	require.NoError(b, readRest(body, &in))
	hello := bedrockruntime.ConverseInput{ModelId: aws.String("m"), Messages: []types.Message{
		{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "hello"}}}}}
	read := func(answer string) judgetest.Race {
		return judgetest.Race{
			Convo: func() error { _, err := f.Decode([]byte(answer)); return err },
			SDK:   func() error { _, err := (&wireTap{answer: []byte(answer)}).call(&hello); return err },
		}
	}
	answer, least := read(answer), read(least)
	answer.Name, least.Name = "read an answer", "read as little as possible"
	judgetest.Speed(b, judgetest.Race{Name: "write a request",
		Convo: func() error { _, err := s.Request(f); return err },
		SDK:   func() error { _, err := write(&in); return err }}, answer, least)
}

// These have the shape of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
const (
	answer = `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"I can ask for both at once.","signature":"c2lnbmVk"}}},` +
		`{"text":"Let me look at both cities. That will take a moment, since each of them is asked for on its own."},` +
		`{"toolUse":{"toolUseId":"tooluse_1","name":"get_weather","input":{"places":[{"city":"Rome"}],"exact":true}}},` +
		`{"toolUse":{"toolUseId":"tooluse_2","name":"get_weather","input":{"places":[{"city":"Lyon"}],"exact":true}}}]}},"stopReason":"tool_use",` +
		`"usage":{"inputTokens":1117,"outputTokens":46,"totalTokens":1163,"cacheReadInputTokens":1000,"cacheWriteInputTokens":0},"metrics":{"latencyMs":1275}}`
	least = `{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn"}`
)
