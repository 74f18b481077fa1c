// Quickstart shows the heart of convo: it keeps a conversation with tool calls,
// pins a message, gives up old ones for a summary while a new question comes
// in, and saves and loads the rest. It needs no network.
package main

import (
	"encoding/json"
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
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 8_000, Reserve: 1_000}})
	if err != nil {
		return err
	}
	defer h.Close()

	// The task, and a wish that must never be forgotten.
	if _, err := h.Append(convo.System("You are a travel agent.")); err != nil {
		return err
	}
	wish, err := h.Append(convo.User("Window seats only, I am tall."))
	if err != nil {
		return err
	}
	if err := h.Pin(wish); err != nil {
		return err
	}
	if _, err := h.Append(convo.Assistant("Noted. Where to?")); err != nil {
		return err
	}

	// Turns with tool calls.
	for i, city := range []string{"Lisbon", "Oslo", "Rome"} {
		call := convo.ToolCall{
			ID:        fmt.Sprintf("call_%d", i),
			Name:      "flights",
			Arguments: fmt.Sprintf(`{"to":%q}`, city),
		}
		if _, err := h.Append(
			convo.User("How about "+city+"?"),
			convo.Assistant("", call),
			convo.Result(call, "09:10, 13:45 and 18:30, seats 12A and 30F are free"),
			convo.Assistant("Three flights to "+city+" a day, and there is a window seat."),
		); err != nil {
			return err
		}
	}

	// What does not fit is refused, and nothing changes.
	_, err = h.Append(convo.Result(convo.ToolCall{ID: "call_9"}, "?"))
	fmt.Fprintln(out, "refused:", err)

	// Somebody writes a summary of the first eleven entries; meanwhile the user
	// goes on.
	sent := h.Snapshot()
	if _, err := h.Append(convo.User("Rome it is. Book it.")); err != nil {
		return err
	}
	before := h.Tokens()
	dropped, err := h.SplicePrefix(sent, 11, "The user looked at flights to Lisbon and Oslo.")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d entries gave way to a summary: %d tokens before, %d after\n\n", dropped, before.Tokens, h.Tokens().Tokens)

	// What the model is to see now. The pinned wish is still there.
	for _, e := range h.Snapshot().All() {
		pin := " "
		if e.Pinned {
			pin = "*"
		}
		fmt.Fprintf(out, "%s %v\n", pin, e)
	}

	// Save and load. IDs and pins stay.
	saved, err := json.Marshal(h.Snapshot())
	if err != nil {
		return err
	}
	var s convo.Snapshot
	if err := json.Unmarshal(saved, &s); err != nil {
		return err
	}
	again, err := convo.Restore(&s, nil)
	if err != nil {
		return err
	}
	defer again.Close()
	fmt.Fprintf(out, "\nloaded: %d entries, pinned %v\n", again.Len(), again.Pinned())
	return nil
}
