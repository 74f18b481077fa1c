package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
)

// Two writers add to one log. Each names the record that it has seen last; the one
// who is late is told.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "chats")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	store := &filestore.Store{Dir: dir}

	// A History makes records when it is saved. These are made by hand.
	record := func(seq uint64, id, prev, data string) convo.Record {
		name := func(letter string) string { return strings.Repeat(letter, 26*len(letter)) }
		return convo.Record{
			LogInfo: convo.LogInfo{Key: "trip to Rome", Seq: seq}, Full: seq == 1, Format: 1,
			ID: name(id), Prev: name(prev), Data: []byte(data),
		}
	}
	fmt.Println(store.Append(ctx, record(1, "a", "", `{"said":"hello"}`)))
	fmt.Println(store.Append(ctx, record(2, "b", "a", `{"said":"Flights?"}`)))
	err = store.Append(ctx, record(2, "c", "a", `{"said":"Hotels?"}`))
	fmt.Println(errors.As(err, new(*convo.ConflictError)), err)

	for r, err := range store.Records(ctx, "trip to Rome", 0) {
		fmt.Println(r.Seq, string(r.Data), err)
	}
	// Output:
	// <nil>
	// <nil>
	// true convo: save "trip to Rome" as record 2: another has saved record 2; call Reload, then Save
	// 1 {"said":"hello"} <nil>
	// 2 {"said":"Flights?"} <nil>
}
