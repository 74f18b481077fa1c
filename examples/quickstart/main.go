// Quickstart runs an agent for forty turns with tool calls, in a context window
// that holds only a few turns. A fake model answers, and a fake tool finds flights.
// convo keeps each request within the window: it clears old tool results, and then
// replaces old turns with a summary. It needs no network.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/seed-c1b73e60/convo"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	turn := 0
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 4_000, Reserve: 500},
		Strategy: convo.Chain(
			convo.ClearToolResults{KeepLast: 1},
			convo.Summarize{With: convo.SummarizerFunc(summarize), MaxTokens: 250},
			convo.Truncate{},
		),
		OnCompaction: func(r convo.Report) { table(out, turn, r) },
	})
	if err != nil {
		return err
	}
	defer h.Close()

	// The task, and a wish of the user that must stay word for word.
	id, err := h.Append(
		convo.System("You are a travel agent."),
		convo.User("Window seats only, I am tall. And nothing before 9 o'clock."),
		convo.Assistant("Noted. Where to?"),
	)
	if err != nil {
		return err
	}
	if err := h.Pin(id - 1); err != nil {
		return err
	}

	ctx := context.Background()
	requests := 0
	for turn = 1; turn <= 40; turn++ {
		if _, err := h.Append(convo.User("How about " + city(turn) + "?")); err != nil {
			return err
		}
		for answered := false; !answered; requests++ {
			// Do compacts the conversation if needed, calls the model, and
			// appends the answer.
			reply, err := h.Do(ctx, model)
			if err != nil {
				return err
			}
			if reply.CutOff != nil || len(reply.Messages) == 0 {
				return fmt.Errorf("the model did not finish its answer: %v", reply)
			}
			for _, call := range reply.OpenCalls() {
				if _, err := h.Append(convo.Result(call, flights(call))); err != nil {
					return err
				}
			}
			answered = len(reply.OpenCalls()) == 0
		}
	}

	s := h.Snapshot()
	fmt.Fprintf(out, "\n%d requests, none above %d tokens. What the model sees at the end:\n\n", requests, h.Status().Limit)
	for _, m := range s.Messages() {
		fmt.Fprintf(out, "  %v\n", m)
	}
	fmt.Fprintln(out, "\nPinned, and still there word for word:")
	for _, id := range s.Pinned() {
		e, _ := s.Find(id)
		fmt.Fprintf(out, "  %v\n", e)
	}
	return nil
}

// table prints what a compaction did.
func table(out io.Writer, turn int, r convo.Report) {
	fmt.Fprintf(out, "\nturn %d: %v, reason %v\n", turn, r.Outcome, r.Reason)
	fmt.Fprintf(out, "             before  after\n")
	fmt.Fprintf(out, "  tokens     %6d %6d\n", r.TokensBefore, r.TokensAfter)
	fmt.Fprintf(out, "  messages   %6d %6d\n", r.MessagesBefore, r.MessagesAfter)
	fmt.Fprintf(out, "  results cleared %d, entries summarised %d, dropped %d\n", len(r.Cleared), len(r.Summarised), len(r.Dropped))
	for _, link := range r.Links {
		fmt.Fprintf(out, "  %-18s %v\n", link.Strategy, link.Outcome)
	}
}
