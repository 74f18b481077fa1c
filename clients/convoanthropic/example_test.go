package convoanthropic_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients/convoanthropic"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// agent answers each line of in until the end, in a window that never fills. It streams the
// answers to out, runs tools, keeps the first line of the user, and compacts in the
// background.
func agent(ctx context.Context, client anthropic.Client, in io.Reader, out io.Writer) error {
	params := anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 1024}
	sender := &convoanthropic.Sender{Client: client, Params: params, Show: func(d wire.Delta) { fmt.Fprint(out, d.Text) }}
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 200_000}, Background: true, PinFirstUser: true,
		Strategy: convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: sender.Summarizer("claude-haiku-5-5")}, convo.Truncate{}),
	})
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.SetSystem(convo.System("You know the weather.")); err != nil {
		return err
	}
	weather := convo.Handler{
		Tool: convo.Tool{Name: "weather", Description: "The weather in a city", Schema: `{"type":"object","properties":{"city":{"type":"string"}}}`},
		Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("sunny, 21 °C")}, nil
		},
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if _, err := h.Append(convo.User(lines.Text())); err != nil {
			return err
		}
		reply, err := h.Run(ctx, sender.Send, convo.RunOptions{Tools: []convo.Handler{weather}})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, " [%d tokens]\n", reply.Usage.Input)
	}
	return nil
}

// A sender takes one line; the rest is the agent's own.
func ExampleSend() {
	p := provider.New(provider.Options{}) // stands for the provider
	p.Script(
		provider.Answer{Blocks: []provider.Block{provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`}}},
		provider.Answer{Blocks: []provider.Block{provider.Text("It is sunny.")}},
	)
	server := httptest.NewServer(p)
	defer server.Close()
	ctx, client := context.Background(), newClient(server.URL)
	params := anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 1024}
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000}})
	check(err)
	_, err = h.Append(convo.User("How is the weather in Rome?"))
	check(err)
	send := convoanthropic.Send(client, params, nil) // the client and the parameters stay yours
	weather := convo.Handler{
		Tool: convo.Tool{Name: "weather", Description: "The weather in a city"},
		Run: func(ctx context.Context, call convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("sunny, 21 °C")}, nil
		},
	}
	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: []convo.Handler{weather}})
	check(err)
	fmt.Println(reply.Text())
	// Output: It is sunny.
}

func Example() {
	p := provider.New(provider.Options{}) // stands for the provider
	p.Script(
		provider.Answer{Blocks: []provider.Block{provider.Text("Let me look. "), provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`}}},
		provider.Answer{Blocks: []provider.Block{provider.Text("It is sunny.")}, Usage: &provider.Usage{Input: 300, Output: 5}},
	)
	server := httptest.NewServer(p)
	defer server.Close()
	if err := agent(context.Background(), newClient(server.URL), strings.NewReader("How is the weather in Rome?\n"), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: Let me look. It is sunny. [300 tokens]
}

// A summarizer with parameters of its own has a sender of its own.
func ExampleSender_Summarizer() {
	client := newClient("http://localhost")

	cheap := &convoanthropic.Sender{Client: client, Params: anthropic.MessageNewParams{Model: "claude-haiku-5-5", MaxTokens: 20_000}}
	strategy := convo.Summarize{With: cheap.Summarizer("")}

	fmt.Println(strategy)
	// Output: summarize(with convo.SummarizerFunc)
}

// A list that a program has kept until now becomes a History.
func ExampleSend_list() {
	p := provider.New(provider.Options{}) // stands for the provider
	p.Script(provider.Answer{Blocks: []provider.Block{provider.Text("Rain.")}})
	server := httptest.NewServer(p)
	defer server.Close()
	send := convoanthropic.Send(newClient(server.URL), anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 1024}, nil)
	call := anthropic.NewToolUseBlock("t1", map[string]any{"city": "Rome"}, "weather")
	call.OfToolUse.Caller.OfDirect = new(anthropic.NewDirectCallerParam())
	list := []anthropic.MessageParam{
		anthropic.NewUserMessage(anthropic.NewTextBlock("How is the weather in Rome?")),
		anthropic.NewAssistantMessage(call),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock("t1", "sunny, 21 °C", false), anthropic.NewTextBlock("And tomorrow?")),
	}
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	data, err := json.Marshal(list) // []anthropic.MessageParam
	check(err)
	in, err := wire.Anthropic{}.Decode(data)
	check(err)
	fmt.Println("lost:", in.Lost)
	h, err := convo.Restore(convo.NewSnapshot(in.Messages), &convo.Options{Limits: convo.Limits{Window: 200_000}, AsSent: true})
	check(err)
	_, err = h.Run(context.Background(), send, convo.RunOptions{}) // the list ends with a question
	check(err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// lost: []
	// 1 user: How is the weather in Rome?
	// 2 assistant: call weather({"city":"Rome"})
	// 3 tool: result of weather(sunny, 21 °C)
	// 4 user: And tomorrow?
	// 5 assistant: Rain.
}

// Faults of a provider, for tests: an overload, a connection that ends, and a slow stream.
func Example_faults() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000}})
	if err != nil {
		log.Fatal(err)
	}
	show := func(d wire.Delta) { fmt.Print(d.Text, "|") } // with it the request asks for a stream

	s := provider.New(provider.Options{Window: 200_000})
	server := httptest.NewServer(s)
	defer server.Close()
	client := anthropic.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))
	params := anthropic.MessageNewParams{Model: "claude-opus-5-5", MaxTokens: 1024}
	send := convoanthropic.Send(client, params, show)
	story := []provider.Block{provider.Text("Once upon a time.")}
	s.Script(
		provider.Answer{Fault: &provider.Fault{Status: 529, RetryAfter: time.Second}},
		provider.Answer{Blocks: story, Fault: &provider.Fault{CutAfter: 3}}, // events
		provider.Answer{Blocks: story, Fault: &provider.Fault{Wait: 20 * time.Millisecond, Pause: 5 * time.Millisecond}},
	)
	for range 3 {
		_, _ = h.Append(convo.User("Tell me a story.")) // after an error the user types again
		_, err := h.Run(context.Background(), send, convo.RunOptions{})
		fmt.Println("failed:", err != nil)
	}
	fmt.Println(len(s.Requests()), "requests,", len(s.Refused()), "refused")
	// Output:
	// failed: true
	// failed: true
	// Once upo|n a time|.|failed: false
	// 3 requests, 0 refused
}
