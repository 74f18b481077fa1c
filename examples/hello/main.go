package main

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

func main() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 1_000}, OnCompaction: func(r convo.Report) {
		fmt.Println(r)
	}})
	for day := 1; day <= 60 && err == nil; day++ {
		if _, err = h.Append(convo.User(fmt.Sprintf("Day %d: which trains go to Rome?", day))); err == nil {
			_, err = h.Do(context.Background(), model) // compacts if needed, sends, appends the answer
		}
	}
	fmt.Println(h, err)
}

func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) { // a call of your model
	answer := fmt.Sprintf("(your model's answer to %d messages)", len(s.Messages()))
	return convo.Reply{Messages: []convo.Message{convo.Assistant(answer)}}, nil
}
