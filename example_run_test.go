package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An agent with a tool: Run makes requests until the model is done.
func ExampleHistory_Run() {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	if err != nil {
		log.Fatal(err)
	}
	flights := convo.Handler{
		Tool: convo.Tool{Name: "search", Description: "Finds flights.", Schema: `{"type":"object","properties":{"to":{"type":"string"}}}`},
		Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
			var args struct{ To string }
			if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
				return nil, err // the model reads it, and tries again
			}
			return []convo.Part{convo.Text("09:10 and 13:45")}, nil
		},
	}
	if _, err := h.Append(convo.User("Flights to Rome?")); err != nil {
		log.Fatal(err)
	}
	reply, err := h.Run(context.Background(), send, convo.RunOptions{Tools: []convo.Handler{flights}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text())
	// Output:
	// At 09:10 and 13:45.
}

// Each answer is shown when its tools have run.
func ExampleHistory_Steps() {
	h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	h.Append(convo.User("Flights to Rome?"))
	flights := convo.Handler{Tool: convo.Tool{Name: "search"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{convo.Text("09:10 and 13:45")}, nil
	}}
	for reply, err := range h.Steps(context.Background(), send, convo.RunOptions{Tools: []convo.Handler{flights}}) {
		if err != nil {
			log.Fatal(err)
		}
		for _, m := range reply.Messages {
			fmt.Println(m)
		}
	}
	// Output:
	// assistant: call search({"to":"Rome"})
	// tool: result of search(09:10 and 13:45)
	// assistant: At 09:10 and 13:45.
}

// A tool without Run leaves its calls open, for the user to approve. Between the two
// calls of Run the conversation may be saved, and opened by another process.
func ExampleHistory_Run_approval() {
	ctx := context.Background()
	h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	h.Append(convo.User("Flights to Rome?"))
	asks := convo.Handler{Tool: convo.Tool{Name: "search"}}

	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: []convo.Handler{asks}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("May it", reply.OpenCalls()[0].Name, "for", reply.OpenCalls()[0].Arguments)

	runs := asks
	runs.Run = func(context.Context, convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{convo.Text("09:10 and 13:45")}, nil
	}
	reply, err = h.Run(ctx, send, convo.RunOptions{Tools: []convo.Handler{runs}}) // runs the open call first
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text())
	// Output:
	// May it search for {"to":"Rome"}
	// At 09:10 and 13:45.
}

// Regenerate: the question stays, and is answered again.
func ExampleHistory_RewindTo() {
	ctx := context.Background()
	h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	tries := 0
	send := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		tries++
		return convo.Reply{Messages: []convo.Message{convo.Assistant(fmt.Sprint("Idea ", tries))}}, nil
	}

	question, _ := h.Append(convo.User("An idea for a present?"))
	h.Run(ctx, send, convo.RunOptions{})

	if err := h.RewindTo(question); err != nil {
		log.Fatal(err)
	}
	if _, err := h.Run(ctx, send, convo.RunOptions{}); err != nil {
		log.Fatal(err)
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: An idea for a present?
	// 3 assistant: Idea 2
}

// Edit my last message: it is taken back with all that follows it, and the new text is
// appended in its place.
func ExampleHistory_RewindBefore() {
	ctx := context.Background()
	h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		msgs := s.Messages()
		return convo.Reply{Messages: []convo.Message{convo.Assistant("You said: " + msgs[len(msgs)-1].Text())}}, nil
	}

	question, _ := h.Append(convo.User("Flights to Roma?"))
	h.Run(ctx, send, convo.RunOptions{})

	if err := h.RewindBefore(question); err != nil {
		log.Fatal(err)
	}
	h.Append(convo.User("Flights to Rome?"))
	if _, err := h.Run(ctx, send, convo.RunOptions{}); err != nil {
		log.Fatal(err)
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 3 user: Flights to Rome?
	// 4 assistant: You said: Flights to Rome?
}

// Stop and keep what came: when the user stops the answer, send returns the part that has
// arrived, with a nil error. It is in the conversation then, and a call that had not come
// whole is not.
func ExampleSend() {
	h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	h.Append(convo.User("Tell me a long story."))
	ctx, stop := context.WithCancel(context.Background())
	stream := func(yield func(string) bool) { // of a provider
		_ = yield("Once upon") && yield(" a time") && yield(" there was")
	}

	send := func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
		var said strings.Builder
		for delta := range stream {
			if ctx.Err() != nil {
				break // an error would throw it away
			}
			said.WriteString(delta)
			if delta == " a time" {
				stop() // the user presses a key
			}
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant(said.String())}, Stop: convo.StopDone}, nil
	}
	reply, err := h.Run(ctx, send, convo.RunOptions{})
	fmt.Println(reply.Text(), err)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// Once upon a time <nil>
	// 1 user: Tell me a long story.
	// 2 assistant: Once upon a time
}

// A program that has a loop of its own needs seven lines, numbered here. The promises are
// those of Run: a request that would be too long is compacted first, a message that no
// provider takes is refused, and after an error the user can go on.
func Example_yourOwnLoop() {
	ctx := context.Background()
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 128_000}})
	if err != nil {
		log.Fatal(err)
	}
	ask := func(question string) error { return ask(ctx, h, send, question) }
	if err := ask("Flights to Rome?"); err != nil {
		log.Fatal(err)
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: Flights to Rome?
	// 2 assistant: call search({"to":"Rome"})
	// 3 tool: result of search(09:10 and 13:45)
	// 4 assistant: At 09:10 and 13:45.
}

// ask is the loop. It answers a question.
func ask(ctx context.Context, h *convo.History, send convo.Send, question string) error {
	if err := runCalls(h); err != nil { // 1: left by a crash, or a cut-off answer
		return err
	}
	if _, err := h.Append(convo.User(question)); err != nil { // 2
		return err
	}
	for h.Status().AwaitsAnswer { // 3
		snap, _, err := h.Prepare(ctx) // 4
		if err != nil {
			return giveUp(h, snap, err)
		}
		reply, err := send(ctx, snap) // your call of the model
		if err != nil {
			if retry, _, err := h.Recover(ctx, snap, err); !retry { // 5
				return giveUp(h, snap, err)
			}
			continue
		}
		if _, err := h.AppendReply(snap, reply); err != nil { // 6
			return err
		}
		if err := runCalls(h); err != nil { // 7
			return err
		}
	}
	return nil
}

// runCalls runs the calls that are open.
func runCalls(h *convo.History) error {
	for _, call := range h.Snapshot().OpenCalls() {
		if _, err := h.Append(convo.Result(call, search(call.Arguments))); err != nil {
			return err
		}
	}
	return nil
}

// giveUp returns err. If not even a compaction makes the question fit, it takes the question
// back: it would not fit with the next one either.
func giveUp(h *convo.History, snap *convo.Snapshot, err error) error {
	isTooLarge := errors.As(err, new(*convo.FloorError)) || errors.As(err, new(*convo.LimitError)) || errors.Is(err, convo.ErrNoGain)
	if e, _ := snap.At(snap.Len() - 1); isTooLarge && e.Message.Role == convo.RoleUser {
		_, _ = h.Rewind(1)
	}
	return err
}
