// Faq shows what is easily missed: what a model leaves unfinished, what it writes wrongly, and
// the system text of a conversation that is opened again.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

func main() {
	ctx := context.Background()
	store := new(convotest.MemStore)
	h, err := convo.Open(ctx, store, "42", nil)
	check(err)
	check(h.SetSystem(convo.System("You are a travel agent.")))
	_, err = h.Append(convo.User("Flights to Rome?"))
	check(err)

	send := func(context.Context, *convo.Snapshot) (convo.Reply, error) { // the model makes two mistakes
		search := convo.ToolCall{ID: "1", Name: "search", Arguments: "to: Rome"} // not JSON
		book := convo.ToolCall{ID: "2", Name: "book", Arguments: `{"flight":`}   // the answer ends here
		return convo.Reply{Messages: []convo.Message{convo.Assistant("", search)}, CutOff: &book, Stop: convo.StopLength}, nil
	}
	reply, err := h.Do(ctx, send)
	check(err)
	if reply.CutOff != nil {
		fmt.Println("do not run:", reply.CutOff.Name)
	}
	for _, call := range reply.OpenCalls() {
		result := convo.Result(call, "09:10 and 13:45")
		if !call.Valid() {
			result = convo.ResultError(call, errors.New("the arguments are not a JSON object")) // the model tries again
		}
		_, err := h.Append(result)
		check(err)
	}
	check(h.Save(ctx))

	again, err := convo.Open(ctx, store, "42", nil)
	check(err)
	check(again.SetSystem(convo.System("You are a travel agent. Today is Monday."))) // not Append
	for _, e := range again.Snapshot().All() {
		fmt.Println(e)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
