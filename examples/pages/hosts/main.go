// Hosts takes over a conversation from a history that was written by hand, and goes on with it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
)

// A row is a message as the old program keeps it.
type row struct{ ID, Role, Content, CallID string }

func main() {
	rows := []row{ // a trim has cut off the call that the first result answers
		{"r7", "tool", "docs private src", "c1"},
		{"r8", "assistant", "There are three folders.", ""},
		{"r9", "user", "Which is the largest?", ""},
		{"r10", "user", "Leave out private.", ""},
	}
	var msgs []convo.Message
	for _, r := range rows {
		m := convo.Message{Role: convo.Role(r.Role), Parts: []convo.Part{convo.Text(r.Content)}, Key: r.ID}
		if m.Role == convo.RoleTool {
			m.Parts = []convo.Part{convo.ToolResult{CallID: r.CallID, Parts: m.Parts}}
		}
		msgs = append(msgs, m)
	}
	h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{
		Limits: convo.Limits{Window: 128_000},
		Roles:  convo.Relaxed(), // two user messages in a row are no fault
		Repair: func(f *convo.SnapshotError) { fmt.Printf("message %d: %s\n", f.Index, f.Mended) },
	})
	if err != nil {
		log.Fatal(err)
	}

	snap, _, err := h.Prepare(context.Background()) // from here on, before each request
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range snap.All() {
		fmt.Println(e.Message.Key, e)
	}
}
