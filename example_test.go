package convo_test

import (
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
)

func Example() {
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 128_000, Reserve: 16_000},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	search := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`}
	id, err := h.Append(
		convo.System("You are a travel agent."),
		convo.User("Window seats only, I am tall. Flights to Rome?"),
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.Pin(id); err != nil { // stays word for word, whatever goes
		log.Fatal(err)
	}
	if _, err := h.Append(convo.Assistant("", search)); err != nil {
		log.Fatal(err)
	}

	// What no provider would accept is refused, and nothing has changed.
	_, err = h.Append(convo.User("Hello?"))
	fmt.Println(err)

	_, err = h.Append(
		convo.Result(search, "09:10, 13:45"),
		convo.Assistant("At 09:10 and 13:45."),
		convo.User("The first one, please."),
	)
	if err != nil {
		log.Fatal(err)
	}

	// Give up the first five entries for a summary. The pinned one stays.
	dropped, err := h.SplicePrefix(h.Snapshot(), 5, "There are flights at 09:10 and 13:45.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dropped, "entries went")
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// convo: message 0: a call is still open (id "c1", tool "search")
	// 3 entries went
	// 1 system: You are a travel agent.
	// 2 user: Window seats only, I am tall. Flights to Rome?
	// 6 user: The first one, please.
}
