// Background shows a conversation that continues while a slow model writes a
// summary of its older part. It needs no network.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/seed-c1b73e60/convo"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "%4.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	h, err := convo.New(&convo.Options{
		// Above 1,000 tokens a summary starts in the background. Above 2,000 a
		// request waits for it.
		Limits: convo.Limits{Window: 2_000, Reserve: -1, Soft: 1_000, Low: 500},
		Strategy: convo.Chain(
			convo.Summarize{With: convo.SummarizerFunc(slowModel), MaxTokens: 100, Window: 100_000},
			convo.Truncate{},
		),
	})
	if err != nil {
		return err
	}
	defer h.Close() // cancels a compaction that is still running

	ctx := context.Background()
	for turn := 1; turn <= 30; turn++ {
		if _, _, err := h.Prepare(ctx); err != nil {
			return err
		}
		if _, err := h.Append(
			convo.User(fmt.Sprintf("Question %d: what about the next town on the way, and the one after it?", turn)),
			convo.Assistant("It has an old bridge, a market on Tuesdays, and two inns that take guests late at night."),
		); err != nil {
			return err
		}
		if h.CompactInBackground(ctx) {
			say("turn %d: %d tokens, a summary is being written", turn, h.Tokens().Upper)
		}
		time.Sleep(50 * time.Millisecond) // the user reads
		say("turn %d: %d messages, %d tokens", turn, h.Len(), h.Tokens().Upper)
	}

	report, err := h.Wait(ctx)
	if err != nil {
		return err
	}
	if report.Outcome != convo.OutcomeApplied {
		return report.Cause
	}
	say("last compaction: %v, %d messages summarised, %d tokens reduced to %d",
		report.Outcome, len(report.Summarised), report.TokensBefore, report.TokensAfter)
	sum, _ := h.Snapshot().Summary()
	say("the summary covers messages %d to %d and was updated %d times", sum.Covers[0].First, sum.Covers[0].Last, sum.Updates)
	say("the newest message is still %d of 60", newest(h))
	return nil
}

// slowModel takes the place of a call to a model with req.Prompt as the user
// message.
func slowModel(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	select {
	case <-time.After(300 * time.Millisecond):
		return convo.Summary{Text: fmt.Sprintf("The user asks about towns; %d more messages were about that.", len(req.Messages))}, nil
	case <-ctx.Done():
		return convo.Summary{}, ctx.Err()
	}
}

func newest(h *convo.History) convo.ID {
	s := h.Snapshot()
	e, _ := s.At(s.Len() - 1)
	return e.ID
}
