package convo_test

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

// A report hands over what left, and Undo puts it back, with what was appended
// since behind it.
func ExampleHistory_Undo() {
	h, _ := convo.New(nil)
	h.Append(convo.User("Window seats only."), convo.Assistant("Noted."), convo.User("Flights to Rome?"))
	report, _ := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "The user likes windows."}})
	for _, e := range report.Left() {
		fmt.Println("left:", e)
	}
	h.Append(convo.Assistant("Two."))

	fmt.Println(h.Undo(report))
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// left: 1 user: Window seats only.
	// left: 2 assistant: Noted.
	// <nil>
	// 1 user: Window seats only.
	// 2 assistant: Noted.
	// 3 user: Flights to Rome?
	// 4 assistant: Two.
}
