package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
)

var anthropicParams = anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 4096}

func anthropicClient(c *http.Client) anthropic.Client {
	return anthropic.NewClient(option.WithAPIKey("key"), option.WithHTTPClient(c), option.WithBaseURL("http://bench.invalid"))
}

func anthropicSend(c *http.Client) convo.Send {
	return convoanthropic.Send(anthropicClient(c), anthropicParams, nil)
}

func anthropicSDK(c *http.Client) (add func(bool, string), request func(context.Context) (string, error)) {
	client, params := anthropicClient(c), anthropicParams
	add = func(user bool, text string) {
		m := anthropic.NewAssistantMessage(anthropic.NewTextBlock(text))
		if user {
			m = anthropic.NewUserMessage(anthropic.NewTextBlock(text))
		}
		params.Messages = append(params.Messages, m)
	}
	request = func(ctx context.Context) (string, error) {
		stream := client.Messages.NewStreaming(ctx, params)
		var m anthropic.Message
		for stream.Next() {
			if err := m.Accumulate(stream.Current()); err != nil {
				return "", err
			}
		}
		if stream.Err() != nil || len(m.Content) == 0 {
			return "", stream.Err()
		}
		return m.Content[0].Text, stream.Close()
	}
	return add, request
}

// anthropicEvent is an event of a stream.
func anthropicEvent(name, fields string) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, fields)
}

var anthropicStart = anthropicEvent("message_start", `,"message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1000,"output_tokens":1}}`)

// anthropicAnswer is a stream as in https://docs.claude.com/en/docs/build-with-claude/streaming.
var anthropicAnswer = func() []byte {
	var b bytes.Buffer
	event := func(name, fields string) { b.Write(anthropicEvent(name, fields)) }
	b.Write(anthropicStart)
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	for i := range deltas {
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":`+quoted(piece(i))+`}`)
	}
	event("content_block_stop", `,"index":0`)
	event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":300}`)
	event("message_stop", "")
	return b.Bytes()
}()
