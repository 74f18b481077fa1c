package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Where a compaction starts, and how far it goes, with the defaults and with limits from
// shares of the window.
func ExampleLimits() {
	for _, limits := range []convo.Limits{
		{Window: 200_000},
		convo.Ratios(200_000, 0, 0),
		{Window: 1_000_000, High: 200_000}, // long requests cost more
	} {
		h, err := convo.New(&convo.Options{Limits: limits})
		if err != nil {
			fmt.Println(err)
			return
		}
		s := h.Status()
		fmt.Printf("above %d down to %d, in the background above %d\n", s.High, s.Low, s.Soft)
	}
	// Output:
	// above 184000 down to 92000, in the background above 138000
	// above 170000 down to 85000, in the background above 140000
	// above 200000 down to 100000, in the background above 150000
}

// What no compaction may remove is larger than the limit. The error says what it is, and
// what to do.
func ExampleFloorError() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 1_000, Reserve: 200}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = h.Append(convo.User(strings.Repeat("The whole book, word for word. ", 150))); err != nil {
		fmt.Println(err)
		return
	}
	_, _, err = h.Prepare(context.Background())
	fmt.Println(err)
	if floor, ok := errors.AsType[*convo.FloorError](err); ok && floor.Newest > floor.Limit {
		taken, err := h.Rewind(1) // and ask for a shorter message
		fmt.Println(taken, err)
	}
	// Output:
	// convo: cannot fit: 1,247 protected tokens exceed limit 800: the newest user message holds 1,247: Rewind takes it back; or raise Limits.Window
	// 1 <nil>
}

// Each strategy gets the view as the one before it leaves it, and one edit is made of both.
func ExampleChain() {
	h := longTrip(&convo.Options{
		Limits:   convo.Limits{Window: 1_500, Reserve: 300, Low: 300},
		Strategy: convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.SlidingWindow{KeepTurns: 5}),
	})
	_, report, err := h.Prepare(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, link := range report.Links {
		fmt.Println(link)
	}
	fmt.Println(len(report.Cleared), "cleared,", len(report.Dropped), "dropped")
	// Output:
	// clear-tool-results applied
	// sliding-window applied
	// 5 cleared, 20 dropped
}

func ExampleIsOverflow() {
	fmt.Println(convo.IsOverflow(errors.New("400 Bad Request: prompt is too long: 212042 tokens > 200000 maximum")))
	fmt.Println(convo.IsOverflow(errors.New("429 Too Many Requests: limit of 30000 tokens per minute exceeded")))
	// Output:
	// true
	// false
}
