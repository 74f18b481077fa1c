// Strategies writes a strategy of one's own, checks it, and uses it in the default's place.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// answers drops the oldest answers and their tool rounds. What the user says stays.
type answers struct{}

func (answers) Name() string { return "answers" }

func (answers) Compact(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	var e convo.Edit
	left := s.Tokens()
	for x := range s.Exchanges() { // oldest first
		if left <= g.Target {
			break
		}
		if x.Floor { // pinned, or of the newest turn: an edit must not drop it
			continue
		}
		if first, _ := s.Find(x.First); first.Message.Role == convo.RoleUser {
			continue
		}
		e.Drop = append(e.Drop, x.IDs()...) // the whole exchange: a call leaves with its result
		left -= x.Tokens
	}
	return e, nil // an Edit with nothing in it declines
}

func main() {
	fmt.Println(convotest.CheckStrategy(answers{}))

	h, err := convo.New(&convo.Options{
		Limits:       convo.Limits{Window: 1_000},
		Strategy:     convo.Chain(convo.ClearToolResults{}, answers{}, convo.Truncate{}),
		OnCompaction: func(r convo.Report) { fmt.Println(r) },
	})
	if err != nil {
		log.Fatal(err)
	}
	for day := range 30 {
		if _, err := h.Append(convo.User(fmt.Sprint("What shall we do on day ", day, "?"))); err != nil {
			log.Fatal(err)
		}
		if _, _, err := h.Prepare(context.Background()); err != nil {
			log.Fatal(err)
		}
		if _, err := h.Append(convo.Assistant("A walk along the river, a museum if it rains, and dinner at the harbour.")); err != nil {
			log.Fatal(err)
		}
	}
}
