// Quickstart runs an agent for 120 requests against a provider that refuses a request of
// more than 8,000 tokens. With -without, the agent keeps its messages by itself, and the
// provider refuses one after a few steps. Both run in this process, without a network.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

func main() {
	without := flag.Bool("without", false, "send the whole conversation each time")
	flag.Parse()
	if err := run(os.Stdout, *without); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer, without bool) error {
	provider, send := serve(8_000)
	defer provider.Close()

	requests, err := agent(context.Background(), out, send, without)
	if err != nil {
		fmt.Fprintf(out, "request %d: %v\n", requests, err)
		return nil
	}
	last := provider.last()
	fmt.Fprintf(out, "%d requests, the largest of %d tokens\n", requests, provider.largest())
	fmt.Fprintf(out, "the user's condition is in the last request: %v\n", strings.Contains(last, condition))
	return nil
}

const condition = "Never change the exported API."

// agent works until the model calls no more tools, and returns the number of requests.
func agent(ctx context.Context, out io.Writer, send convo.Send, without bool) (requests int, err error) {
	h, err := convo.New(&convo.Options{
		Limits:       convo.Limits{Window: 8_000, Reserve: 500},
		OnCompaction: func(r convo.Report) { fmt.Fprintln(out, r) },
	})
	if err != nil {
		return 0, err
	}
	if err := h.SetTools(convo.Tool{Name: "read", Description: "Reads a file."}); err != nil {
		return 0, err
	}
	if _, err := h.Append(convo.User("Make the tests pass. " + condition)); err != nil {
		return 0, err
	}
	for {
		requests++
		var reply convo.Reply
		if without {
			if reply, err = send(ctx, h.Snapshot()); err == nil { // all there is
				_, err = h.Append(reply.Messages...)
			}
		} else {
			reply, err = h.Do(ctx, send) // compacts if needed, sends, appends the answer
		}
		if err != nil || len(reply.OpenCalls()) == 0 {
			return requests, err
		}
		for _, call := range reply.OpenCalls() {
			if _, err := h.Append(convo.Result(call, read(call.Arguments))); err != nil {
				return requests, err
			}
		}
	}
}
