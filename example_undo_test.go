package convo_test

import (
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo"
)

// A report hands over what left, and Undo puts it back, with what was appended
// since behind it.
func ExampleHistory_Undo() {
	h, _ := convo.New(nil)
	h.Append(convo.User("Window seats only."), convo.Assistant("Noted."), convo.User("Flights to Rome?"))
	report, _ := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "The user likes windows."}})
	for _, e := range report.Originals() {
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

// An image that was looked at long ago still weighs. Here all but the newest message
// lose theirs, in one edit, so that the prompt cache suffers once.
func ExampleRewrite() {
	h, _ := convo.New(nil)
	for _, day := range []string{"Monday", "Tuesday", "Wednesday"} {
		h.Append(convo.User("This is "+day+".", convo.NewMedia("image/png", []byte("..."))), convo.Assistant("It rains."))
	}
	h.Append(convo.User("Which day was the driest?", convo.NewMedia("image/png", []byte("..."))))

	snap := h.Snapshot()
	isMedia := func(p convo.Part) bool { _, ok := p.(convo.Media); return ok }
	var edit convo.Edit
	for i, e := range snap.All() {
		if i < snap.Len()-1 && slices.ContainsFunc(e.Message.Parts, isMedia) {
			parts := append(slices.DeleteFunc(e.Message.Parts, isMedia), convo.Text("[an image was here]"))
			edit.Rewrite = append(edit.Rewrite, convo.Rewrite{ID: e.ID, Parts: parts})
		}
	}
	report, err := h.Apply(snap, edit)
	fmt.Println(report.Rewritten, err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// [1 3 5] <nil>
	// 1 user: This is Monday. [an image was here]
	// 2 assistant: It rains.
	// 3 user: This is Tuesday. [an image was here]
	// 4 assistant: It rains.
	// 5 user: This is Wednesday. [an image was here]
	// 6 assistant: It rains.
	// 7 user: Which day was the driest? media(image/png, 3 bytes)
}

// A secret that must go leaves nothing behind: neither the report nor Undo has it.
func ExampleRewrite_forget() {
	h, _ := convo.New(nil)
	id, _ := h.Append(convo.User("Log in with hunter2, please."))

	report, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{
		{ID: id, Parts: []convo.Part{convo.Text("Log in with [redacted], please.")}, Forget: true},
	}})
	fmt.Println(report.Originals(), err)
	fmt.Println(h.Undo(report))
	fmt.Println(h.Snapshot().Messages())
	// Output:
	// [1 user: Log in with [redacted], please.] <nil>
	// <nil>
	// [user: Log in with [redacted], please.]
}
