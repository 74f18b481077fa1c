package main

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

func main() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 1_000}, OnCompaction: func(r convo.Report) {
		fmt.Println("compacted:", r.TokensBefore, "->", r.TokensAfter, "tokens,", len(r.Dropped), "messages dropped")
	}})
	var snap *convo.Snapshot
	for day := 1; day <= 60 && err == nil; day++ {
		if _, err = h.Append(convo.User(fmt.Sprintf("Day %d: which trains go to Rome?", day))); err != nil {
			break
		}
		if snap, _, err = h.Prepare(context.Background()); err != nil { // compacts if needed
			break
		}
		_, err = h.Append(convo.Assistant(fmt.Sprintf("(your model's answer to %d messages)", len(snap.Messages()))))
	}
	fmt.Println(h, err)
}
