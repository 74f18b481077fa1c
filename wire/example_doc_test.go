package wire_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/tiktoken"
	"github.com/seed-c1b73e60/convo/wire"
)

// The code of docs/counting.md and docs/formats.md.

// post stands for a call of a provider.
func post(_ context.Context, body []byte) ([]byte, error) {
	if !strings.Contains(string(body), `"max_tokens":1024`) {
		return nil, fmt.Errorf("unexpected request %s", body)
	}
	return []byte(`{"type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"At 09:10."}],"stop_reason":"end_turn","usage":{"input_tokens":20,"output_tokens":5}}`), nil
}

// A Send without an SDK.
func ExampleAnthropic_send() {
	send := func(ctx context.Context, snap *convo.Snapshot) (convo.Reply, error) {
		req, err := wire.Anthropic{}.Encode(snap)
		if err != nil {
			return convo.Reply{}, err
		}
		body, err := req.With(map[string]any{"model": "claude-opus-5-5", "max_tokens": 1024})
		if err != nil {
			return convo.Reply{}, err
		}
		answer, err := post(ctx, body) // {"max_tokens": ..., "model": ..., "tools": [...], "system": [...], "messages": [...]}
		if err != nil {
			return convo.Reply{}, err
		}
		in, err := wire.Anthropic{}.Decode(answer) // messages, usage, why it stopped; or the provider's error
		return in.Reply(), err
	}
	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := h.Append(convo.User("When is the next train?")); err != nil {
		log.Fatal(err)
	}
	reply, err := h.Do(context.Background(), send)
	fmt.Println(reply.Text(), err)
	// Output: At 09:10. <nil>
}

// printStream prints an answer while it comes.
func printStream(resp *http.Response) (convo.Reply, error) {
	stream := wire.Anthropic{}.Stream()
	for delta, err := range wire.Read(resp.Body, stream) { // server-sent events, or JSON values
		if err != nil {
			return convo.Reply{}, err // cut off, or the provider's error; stream.Transcript has what came before
		}
		fmt.Print(delta.Text)
	}
	in, err := stream.Transcript()
	return in.Reply(), err
}

// exactly makes a History that counts as a provider does.
func exactly(toolsJSON []byte) (*convo.History, error) {
	exact, err := tiktoken.New("gpt-5") // nothing is downloaded
	if err != nil {
		return nil, err
	}
	tools, err := wire.ToolTokens("gpt-5", toolsJSON, exact) // what the tool definitions add
	if err != nil {
		return nil, err
	}
	return convo.New(&convo.Options{
		Tokenizer: exact,                                         // nil: Heuristic
		Overheads: wire.OverheadsFor(wire.OpenAIChat{}, "gpt-5"), // messages, media, and what reasoning is sent, by the provider's rules
		Limits:    convo.Limits{Window: 400_000, Tools: tools},
	})
}

// Exact counts, with the tools that the program sends.
func ExampleToolTokens_history() {
	h, err := exactly([]byte(`[{"type":"function","function":{"name":"search","parameters":{"type":"object"}}}]`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Tokens().Tokens > 0, h.Status().Window)
	// Output: true 400000
}

// What a stream shows while it comes is in the answer at the end.
func ExampleRead_print() {
	reply, err := printStream(&http.Response{Body: io.NopCloser(strings.NewReader(`data: {"type":"message_start","message":{"role":"assistant","usage":{"input_tokens":20}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"At 09:10."}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

`))})
	fmt.Println("", reply.Usage.Input, err)
	// Output: At 09:10. 20 <nil>
}
