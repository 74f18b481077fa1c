package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/convogenai"
)

const genaiModel = "gemini-3.8-flash"

func genaiClient(c *http.Client) *genai.Client {
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "key", HTTPClient: c, HTTPOptions: genai.HTTPOptions{BaseURL: "http://bench.invalid"},
	})
	if err != nil {
		panic(err) // it has a key
	}
	return client
}

func genaiSend(c *http.Client) convo.Send {
	return convogenai.Send(genaiClient(&http.Client{Transport: clients.Transport(c.Transport)}), genaiModel, nil, nil)
}

func genaiSDK(c *http.Client) (add func(bool, string), request func(context.Context) (string, error)) {
	client := genaiClient(c)
	var contents []*genai.Content
	add = func(user bool, text string) {
		role := genai.Role(genai.RoleModel)
		if user {
			role = genai.RoleUser
		}
		contents = append(contents, genai.NewContentFromText(text, role))
	}
	request = func(ctx context.Context) (text string, err error) {
		for piece, err := range client.Models.GenerateContentStream(ctx, genaiModel, contents, nil) {
			if err != nil {
				return "", err
			}
			text += piece.Text()
		}
		return text, nil
	}
	return add, request
}

// genaiAnswer is a stream as in https://ai.google.dev/api/generate-content.
var genaiAnswer = func() []byte {
	var b bytes.Buffer
	for i := range deltas {
		more := ""
		if i == deltas-1 {
			more = `"finishReason":"STOP",`
		}
		fmt.Fprintf(&b, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":%s}],\"role\":\"model\"},%s\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":1000,\"candidatesTokenCount\":%d,\"totalTokenCount\":%d},\"modelVersion\":%q,\"responseId\":\"r1\"}\r\n\r\n", quoted(piece(i)), more, 3*i+3, 3*i+1003, genaiModel)
	}
	return b.Bytes()
}()
