package main

import (
	"bytes"
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convobedrock"
)

var bedrockParams = bedrockruntime.ConverseStreamInput{ModelId: aws.String("anthropic.claude-opus-5-5-v1:0")}

func bedrockClient(c *http.Client) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String("http://bench.invalid"), HTTPClient: c,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "key"}, nil
		}),
	})
}

func bedrockSend(c *http.Client) convo.Send {
	return convobedrock.Send(bedrockClient(c), &bedrockParams, nil)
}

func bedrockSDK(c *http.Client) (add func(bool, string), request func(context.Context) (string, error)) {
	client, params := bedrockClient(c), bedrockParams
	add = func(user bool, text string) {
		role := types.ConversationRoleAssistant
		if user {
			role = types.ConversationRoleUser
		}
		params.Messages = append(params.Messages, types.Message{Role: role, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: text}}})
	}
	request = func(ctx context.Context) (text string, err error) {
		out, err := client.ConverseStream(ctx, &params)
		if err != nil {
			return "", err
		}
		stream := out.GetStream()
		defer stream.Close()
		for event := range stream.Events() {
			if block, ok := event.(*types.ConverseStreamOutputMemberContentBlockDelta); ok {
				if delta, ok := block.Value.Delta.(*types.ContentBlockDeltaMemberText); ok {
					text += delta.Value
				}
			}
		}
		return text, stream.Err()
	}
	return add, request
}

// bedrockAnswer is a stream as in https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.
var bedrockAnswer = func() []byte {
	var b bytes.Buffer
	event := func(name, payload string) {
		m := eventstream.Message{Payload: []byte(payload)}
		for _, h := range [][2]string{{":event-type", name}, {":content-type", "application/json"}, {":message-type", "event"}} {
			m.Headers.Set(h[0], eventstream.StringValue(h[1]))
		}
		if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
			panic(err) // a buffer takes it
		}
	}
	event("messageStart", `{"role":"assistant"}`)
	for i := range deltas {
		event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":`+quoted(piece(i))+`}}`)
	}
	event("contentBlockStop", `{"contentBlockIndex":0}`)
	event("messageStop", `{"stopReason":"end_turn"}`)
	event("metadata", `{"usage":{"inputTokens":1000,"outputTokens":300,"totalTokens":1300},"metrics":{"latencyMs":1000}}`)
	return b.Bytes()
}()
