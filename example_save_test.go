package convo_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A conversation is opened, goes on, is saved, and is there again when it is next
// opened, by whatever process.
func ExampleOpen() {
	ctx := context.Background()
	var store convo.Store = new(shelf)

	for _, text := range []string{"Window seats only.", "Flights to Rome?"} {
		h, _ := convo.Open(ctx, store, "42", nil)
		h.Append(convo.User(text), convo.Assistant("Noted."))
		fmt.Println(h.Save(ctx), h.Len())
	}
	// Output:
	// <nil> 2
	// <nil> 4
}

// Two processes have the same conversation open. The one that saves later puts its
// messages behind those of the other.
func ExampleHistory_Reload() {
	ctx := context.Background()
	store := new(shelf)
	a, _ := convo.Open(ctx, store, "42", nil)
	a.Append(convo.User("Window seats only."), convo.Assistant("Noted."))
	a.Save(ctx)

	b, _ := convo.Open(ctx, store, "42", nil)
	a.Append(convo.User("Flights to Rome?"), convo.Assistant("Two."))
	a.Save(ctx)
	b.Append(convo.User("And a hotel."), convo.Assistant("With a view?"))

	err := b.Save(ctx)
	for errors.As(err, new(*convo.ConflictError)) {
		fmt.Println(err)
		moved, refused, _ := b.Reload(ctx)
		fmt.Println(moved, refused)
		err = b.Save(ctx)
	}
	for _, e := range b.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// convo: save "42" as record 2: another has saved record 2; call Reload, then Save
	// map[3:5 4:6] []
	// 1 user: Window seats only.
	// 2 assistant: Noted.
	// 3 user: Flights to Rome?
	// 4 assistant: Two.
	// 5 user: And a hotel.
	// 6 assistant: With a view?
}

// The archive has every message as it was appended.
func ExampleHistory_Archive() {
	ctx := context.Background()
	h, _ := convo.Open(ctx, new(shelf), "42", nil)
	h.Append(convo.User("Window seats only."), convo.Assistant("Noted."), convo.User("Flights to Rome?"))
	h.Save(ctx)
	h.SplicePrefix(h.Snapshot(), 2, "The user likes windows.")
	h.Note("compacted by hand")
	h.Save(ctx)

	fmt.Println(h.Len())
	for a, err := range h.Archive(ctx) {
		switch {
		case err != nil:
			fmt.Println(err)
		case a.Entry != nil:
			fmt.Println(a.Seq, *a.Entry)
		case a.Summary != nil:
			fmt.Println(a.Seq, *a.Summary)
		case a.Note != "":
			fmt.Println(a.Seq, a.Note)
		}
	}
	// Output:
	// 1
	// 1 1 user: Window seats only.
	// 1 2 assistant: Noted.
	// 1 3 user: Flights to Rome?
	// 2 summary(The user likes windows.)
	// 2 compacted by hand
}
