package convo_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A table stands for the messages of an application, which other programs read, too, and
// for the conversation's row in another table.
type table struct {
	rows      []convo.Message
	decisions []byte
	stored    uint64
}

// add stores a message, and the decisions if there are new ones.
func (t *table) add(h *convo.History, m convo.Message) {
	m.Key = fmt.Sprint("row-", len(t.rows))
	if _, err := h.Append(m); err != nil {
		log.Fatal(err)
	}
	t.rows = append(t.rows, m)
	t.decide(h)
}

func (t *table) decide(h *convo.History) {
	if now := h.Status().Decisions; t.decisions == nil || now != t.stored {
		var err error
		if t.decisions, err = h.Decisions(); err != nil {
			log.Fatal(err)
		}
		t.stored = now
	}
}

// from yields the rows with the keys, and all rows from the one with the key from on.
func (t *table) from(keys []string, from string) iter.Seq2[convo.Message, error] {
	return func(yield func(convo.Message, error) bool) {
		begun := from == ""
		for _, m := range t.rows {
			begun = begun || m.Key == from
			if (begun || slices.Contains(keys, m.Key)) && !yield(m, nil) {
				return
			}
		}
	}
}

// An application has its messages in rows of its own. It stores what the History has decided
// beside them, and makes the History again from both.
func ExampleResume() {
	opts := &convo.Options{Limits: convo.Limits{Window: 1_000}}
	h, err := convo.New(opts)
	if err != nil {
		log.Fatal(err)
	}
	t := new(table)
	t.decide(h)
	for i := range 100 {
		t.add(h, convo.User(fmt.Sprintf("What does page %d of the report say?", i)))
		if _, _, err := h.Prepare(context.Background()); err != nil {
			log.Fatal(err)
		}
		t.add(h, convo.Assistant(fmt.Sprintf("Page %d says what the page before it says.", i)))
	}

	// The program starts again.
	d, err := convo.ReadDecisions(t.decisions)
	if err != nil {
		log.Fatal(err)
	}
	again, err := convo.Resume(d, t.from(d.Needs()), opts)
	if err != nil {
		log.Fatal(err)
	}
	_, from := d.Needs()
	fmt.Printf("%d rows, needed from %s on\n", len(t.rows), from)
	fmt.Println("the same view:", whatIsSeen(h) == whatIsSeen(again), h.Tokens() == again.Tokens())
	// Output:
	// 200 rows, needed from row-172 on
	// the same view: true true
}

// whatIsSeen returns what the model sees.
func whatIsSeen(h *convo.History) string {
	var b strings.Builder
	for _, m := range h.Snapshot().Messages() {
		fmt.Fprintln(&b, m)
	}
	return b.String()
}
