package gluetest

import (
	"encoding/json"
	"fmt"
	"io"
)

// ChatTooLong is the error of Chat Completions for a request that is too long.
func ChatTooLong(tokens, window int) string {
	return fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, window, tokens)
}

// ChatStream writes chunks as OpenAI does: the names of calls first, then their
// arguments in pieces, and the usage in a chunk without choices.
func ChatStream(w io.Writer, a Answer) {
	chunk := func(choices, usage any) {
		data, err := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1", "choices": choices, "usage": usage})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	delta := func(d map[string]any, reason any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": reason}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, text := range Deltas(a.Text) {
		delta(map[string]any{"content": text}, nil)
	}
	reason := "stop"
	for i, c := range a.Calls {
		reason = "tool_calls"
		call := func(fields map[string]any) {
			fields["index"] = i
			delta(map[string]any{"tool_calls": []any{fields}}, nil)
		}
		call(map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
		for _, text := range Deltas(c.Arguments) {
			call(map[string]any{"function": map[string]any{"arguments": text}})
		}
	}
	delta(map[string]any{}, reason)
	chunk([]any{}, map[string]any{"prompt_tokens": a.Input, "completion_tokens": a.Output, "total_tokens": a.Input + a.Output})
	fmt.Fprint(w, "data: [DONE]\n\n")
}
