// Costs sends the conversation of one agent under three policies, and adds up what a provider
// with a prompt cache asks for.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

const window = 16_000

func main() {
	fmt.Println("policy           sent  cached    paid")
	bill("trim", convo.Limits{}, trim) // without limits, the History itself removes nothing
	bill("convo", convo.Limits{Window: window}, nil)
	bill("convo, low", convo.Limits{Window: window, Low: 3_500}, nil)
}

// trim drops the oldest exchange until the rest has at most 14,000 tokens.
func trim(h *convo.History) {
	for h.Tokens().Tokens > 14_000 {
		for x := range h.Snapshot().Exchanges() {
			if !x.Floor { // the user's message and the newest exchange stay
				_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: x.IDs()})
				check(err)
				break
			}
		}
	}
}

// bill runs the agent and prints, in thousands of input tokens, what was sent, what of it was
// in the cache, and what it costs if a cached token costs a tenth.
func bill(name string, limits convo.Limits, before func(*convo.History)) {
	p := provider.New(provider.Options{Window: window})
	server := httptest.NewServer(p)
	defer server.Close()
	h, err := convo.New(&convo.Options{Limits: limits})
	check(err)
	_, err = h.Append(convo.User("Make the tests pass. Never change the exported API."))
	check(err)
	var used convo.Usage
	for step := range 200 {
		if before != nil {
			before(h)
		}
		snap, _, err := h.Prepare(context.Background())
		check(err)
		reply := post(server.URL, snap)
		check(h.RecordUsage(snap, reply.Usage))
		used.Input += reply.Usage.Input
		used.CacheRead += reply.Usage.CacheRead
		call := convo.ToolCall{ID: fmt.Sprint("c", step), Name: "read", Arguments: fmt.Sprintf(`{"file":%d}`, step)}
		result := strings.Repeat(fmt.Sprintf("line of file %d\n", step), 120)
		_, err = h.Append(convo.Assistant("The next file.", call), convo.Result(call, result))
		check(err)
	}
	paid := used.Input - used.CacheRead + used.CacheRead/10
	fmt.Printf("%-12s %7dk %6d%% %6dk\n", name, used.Input/1000, 100*used.CacheRead/used.Input, paid/1000)
}

// post sends a request of Chat Completions.
func post(url string, snap *convo.Snapshot) convo.Reply {
	req, err := wire.OpenAIChat{}.Encode(snap)
	check(err)
	body, err := req.With(map[string]any{"model": "gpt-5"})
	check(err)
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	check(err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	check(err)
	in, err := wire.OpenAIChat{}.Decode(answer)
	check(err)
	return in.Reply()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
