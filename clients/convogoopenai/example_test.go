package convogoopenai_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/clients/convogoopenai"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// agent answers each line of in until the end, in a window that never fills. It streams the
// answers to out, runs tools, keeps the first line of the user, and compacts in the
// background.
func agent(ctx context.Context, client *openai.Client, in io.Reader, out io.Writer) error {
	params := openai.ChatCompletionRequest{Model: "gpt-5.5"}
	sender := &convogoopenai.Sender{Client: client, Params: params, Show: func(d wire.Delta) { fmt.Fprint(out, d.Text) }}
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 200_000}, Background: true, PinFirstUser: true,
		Strategy: convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: sender.Summarizer("gpt-5.5-mini")}, convo.Truncate{}),
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

func Example() {
	p := provider.New(provider.Options{}) // stands for the provider
	p.Script(
		provider.Answer{Blocks: []provider.Block{provider.Text("Let me look. "), provider.Call{Name: "weather", Arguments: `{"city":"Rome"}`}}},
		provider.Answer{Blocks: []provider.Block{provider.Text("It is sunny.")}, Usage: &provider.Usage{Input: 300, Output: 5}},
	)
	server := httptest.NewServer(p)
	defer server.Close()
	client := newClient(server.URL, &http.Client{Transport: clients.Transport(nil)}) // without it, clients.ErrTransport
	if err := agent(context.Background(), client, strings.NewReader("How is the weather in Rome?\n"), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: Let me look. It is sunny. [300 tokens]
}
