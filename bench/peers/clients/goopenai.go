package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/convogoopenai"
)

var goopenaiParams = openai.ChatCompletionRequest{Model: "gpt-5.5"}

func goopenaiClient(c *http.Client) *openai.Client {
	config := openai.DefaultConfig("key")
	config.BaseURL, config.HTTPClient = "http://bench.invalid/v1", c
	return openai.NewClientWithConfig(config)
}

func goopenaiSend(c *http.Client) convo.Send {
	return convogoopenai.Send(goopenaiClient(&http.Client{Transport: clients.Transport(c.Transport)}), goopenaiParams, nil)
}

func goopenaiSDK(c *http.Client) (add func(bool, string), request func(context.Context) (string, error)) {
	client, params := goopenaiClient(c), goopenaiParams
	add = func(user bool, text string) {
		role := openai.ChatMessageRoleAssistant
		if user {
			role = openai.ChatMessageRoleUser
		}
		params.Messages = append(params.Messages, openai.ChatCompletionMessage{Role: role, Content: text})
	}
	request = func(ctx context.Context) (text string, err error) {
		stream, err := client.CreateChatCompletionStream(ctx, params)
		if err != nil {
			return "", err
		}
		defer stream.Close()
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return text, nil
			}
			if err != nil {
				return "", err
			}
			for _, c := range chunk.Choices {
				text += c.Delta.Content
			}
		}
	}
	return add, request
}
