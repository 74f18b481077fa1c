// Saving keeps a conversation in files: two processes write to it, one stops without a
// word, a secret is taken out, and an old question is edited.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
)

func main() {
	dir, err := os.MkdirTemp("", "chats")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store := &filestore.Store{Dir: dir}

	a, err := convo.Open(ctx, store, "42", nil) // a new conversation: the key is not in use
	check(err)
	id, err := a.Append(convo.User("The password is hunter2."))
	check(err)
	check(a.Save(ctx)) // from here on it survives a crash

	b, err := convo.Open(ctx, store, "42", nil) // another process
	check(err)
	_, err = b.Append(convo.Assistant("Noted."))
	check(err)
	check(b.Save(ctx))

	_, err = a.Append(convo.Assistant("Thank you."))
	check(err)
	err = a.Save(ctx)
	fmt.Println(errors.As(err, new(*convo.ConflictError)), err)
	_, _, err = a.Reload(ctx) // a's answer goes after b's
	check(err)
	check(a.Save(ctx))

	_, err = a.Apply(a.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{
		{ID: id, Parts: []convo.Part{convo.Text("The password is [removed].")}, Forget: true},
	}})
	check(err)
	check(a.Save(ctx))
	check(a.Prune(ctx, time.Time{})) // removes the records that still hold it
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	check(err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		check(err)
		fmt.Println("the file holds the password:", bytes.Contains(text, []byte("hunter2")))
	}

	c, err := convo.Open(ctx, store, "42", nil) // after a crash of both
	check(err)
	for _, e := range c.Snapshot().All() {
		fmt.Println(e)
	}

	question, err := c.Append(convo.User("Trains to Rome?"))
	check(err)
	_, err = c.Append(convo.Assistant("At 09:10."), convo.User("Thanks."), convo.Assistant("Anything else?"))
	check(err)
	check(c.Save(ctx))
	_, err = c.Append(convo.User("A hotel."), convo.Assistant("Hotel B."))
	check(err)
	_, err = c.Apply(c.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3, 4, 5, 6, 7}, Summary: &convo.Summary{Text: "A train at 09:10."}})
	check(err) // a compaction
	fmt.Println(c.RewindBefore(question))
	check(edit(ctx, c, store, question, "Trains to Milan?"))
	for _, e := range c.Snapshot().All() {
		fmt.Println(e)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
