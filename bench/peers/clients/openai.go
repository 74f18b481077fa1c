package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convoopenai"
)

var chatParams = openai.ChatCompletionNewParams{Model: "gpt-5.5"}

func openaiClient(c *http.Client) openai.Client {
	return openai.NewClient(option.WithAPIKey("key"), option.WithHTTPClient(c), option.WithBaseURL("http://bench.invalid/v1"))
}

func chatSend(c *http.Client) convo.Send { return convoopenai.Chat(openaiClient(c), chatParams, nil) }

func chatSDK(c *http.Client) (add func(bool, string), request func(context.Context) (string, error)) {
	client, params := openaiClient(c), chatParams
	add = func(user bool, text string) {
		m := openai.AssistantMessage(text)
		if user {
			m = openai.UserMessage(text)
		}
		params.Messages = append(params.Messages, m)
	}
	request = func(ctx context.Context) (string, error) {
		stream := client.Chat.Completions.NewStreaming(ctx, params)
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			all.AddChunk(stream.Current())
		}
		if stream.Err() != nil || len(all.Choices) == 0 {
			return "", stream.Err()
		}
		return all.Choices[0].Message.Content, stream.Close()
	}
	return add, request
}

// chatAnswer is a stream as in https://platform.openai.com/docs/api-reference/chat-streaming.
var chatAnswer = func() []byte {
	var b bytes.Buffer
	chunk := func(choices, more string) {
		fmt.Fprintf(&b, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1741570283,\"model\":\"gpt-5.5\",\"choices\":[%s]%s}\n\n", choices, more)
	}
	chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`, "")
	for i := range deltas {
		chunk(`{"index":0,"delta":{"content":`+quoted(piece(i))+`},"finish_reason":null}`, "")
	}
	chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	chunk("", `,"usage":{"prompt_tokens":1000,"completion_tokens":300,"total_tokens":1300}`)
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}()
