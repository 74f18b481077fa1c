package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

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

// chatChunk is an event of a stream of Chat Completions.
func chatChunk(choices, more string) []byte {
	return fmt.Appendf(nil, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1741570283,\"model\":\"gpt-5.5\",\"choices\":[%s]%s}\n\n", choices, more)
}

// chatAnswer is a stream as in https://platform.openai.com/docs/api-reference/chat-streaming.
var chatAnswer = func() []byte {
	var b bytes.Buffer
	chunk := func(choices, more string) { b.Write(chatChunk(choices, more)) }
	chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`, "")
	for i := range deltas {
		chunk(`{"index":0,"delta":{"content":`+quoted(piece(i))+`},"finish_reason":null}`, "")
	}
	chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	chunk("", `,"usage":{"prompt_tokens":1000,"completion_tokens":300,"total_tokens":1300}`)
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}()

var responsesParams = responses.ResponseNewParams{Model: "gpt-5.5", Store: openai.Bool(false)}

func responsesSend(c *http.Client) convo.Send {
	return convoopenai.Responses(openaiClient(c), responsesParams, nil)
}

func responsesSDK(c *http.Client) (add func(bool, string), request func(context.Context) (string, error)) {
	client, params := openaiClient(c), responsesParams
	add = func(user bool, text string) {
		role := responses.EasyInputMessageRoleAssistant
		if user {
			role = responses.EasyInputMessageRoleUser
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, responses.ResponseInputItemParamOfMessage(text, role))
	}
	request = func(ctx context.Context) (text string, err error) {
		stream := client.Responses.NewStreaming(ctx, params)
		for stream.Next() {
			if event := stream.Current(); event.Type == "response.completed" {
				text = event.Response.OutputText()
			}
		}
		if stream.Err() != nil {
			return "", stream.Err()
		}
		return text, stream.Close()
	}
	return add, request
}

// responsesAnswer is a stream as in https://platform.openai.com/docs/api-reference/responses-streaming.
var responsesAnswer = func() []byte {
	var b bytes.Buffer
	n := 0
	event := func(name, fields string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", name, name, n, fields)
		n++
	}
	response := func(status, output, usage string) string {
		return `"response":{"id":"resp_1","object":"response","created_at":1741570283,"status":"` + status + `","error":null,"incomplete_details":null,"instructions":null,"model":"gpt-5.5","output":[` + output + `],"parallel_tool_calls":true,"store":false,"tool_choice":"auto","tools":[],"usage":` + usage + `}`
	}
	part := func(text string) string {
		return `{"type":"output_text","text":` + text + `,"annotations":[],"logprobs":[]}`
	}
	item := func(status, content string) string {
		return `{"id":"msg_1","type":"message","status":"` + status + `","role":"assistant","content":[` + content + `]}`
	}
	const place = `"item_id":"msg_1","output_index":0,"content_index":0,`
	event("response.created", response("in_progress", "", "null"))
	event("response.in_progress", response("in_progress", "", "null"))
	event("response.output_item.added", `"output_index":0,"item":`+item("in_progress", ""))
	event("response.content_part.added", place+`"part":`+part(`""`))
	for i := range deltas {
		event("response.output_text.delta", place+`"logprobs":[],"delta":`+quoted(piece(i)))
	}
	text := quoted(answer)
	event("response.output_text.done", place+`"logprobs":[],"text":`+text)
	event("response.content_part.done", place+`"part":`+part(text))
	event("response.output_item.done", `"output_index":0,"item":`+item("completed", part(text)))
	event("response.completed", response("completed", item("completed", part(text)), `{"input_tokens":1000,"input_tokens_details":{"cached_tokens":0},"output_tokens":300,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1300}`))
	return b.Bytes()
}()
