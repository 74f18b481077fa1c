package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

func Example() {
	ctx := context.Background()
	h, err := convo.New(&convo.Options{
		Limits: convo.Limits{Window: 128_000, Reserve: 16_000},
		Strategy: convo.Chain(
			convo.ClearToolResults{},
			convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
				text, err := complete(ctx, req.Prompt)
				return convo.Summary{Text: text}, err
			})},
			convo.Truncate{},
		),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

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

	for done := false; !done; {
		reply, err := h.Do(ctx, send) // compacts if needed, sends, and appends the answer
		if err != nil {
			log.Fatal(err)
		}
		for _, call := range reply.OpenCalls() {
			if _, err := h.Append(convo.Result(call, search(call.Arguments))); err != nil {
				log.Fatal(err)
			}
		}
		done = len(reply.OpenCalls()) == 0
	}
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 system: You are a travel agent.
	// 2 user: Window seats only, I am tall. Flights to Rome?
	// 3 assistant: call search({"to":"Rome"})
	// 4 tool: result of search(09:10 and 13:45)
	// 5 assistant: At 09:10 and 13:45.
}

// send stands for a call of a model.
func send(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	reply := convo.Reply{Usage: convo.Usage{Input: 100 + 20*len(msgs), Output: 20}}
	if msgs[len(msgs)-1].Role == convo.RoleTool {
		reply.Messages = []convo.Message{convo.Assistant("At 09:10 and 13:45.")}
	} else {
		reply.Messages = []convo.Message{convo.Assistant("", convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`})}
	}
	return reply, nil
}

// complete stands for a call of a small model.
func complete(context.Context, string) (string, error) { return "The user looked at flights.", nil }

// search stands for a tool.
func search(string) string { return "09:10 and 13:45" }

// Without a strategy, old messages can be dropped by hand.
func Example_byHand() {
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
	// convo: message 0: a call has no result yet (id "c1", tool "search"); append its result first, or give it up with AnswerOpenCalls
	// 3 entries went
	// 1 system: You are a travel agent.
	// 2 user: Window seats only, I am tall. Flights to Rome?
	// 6 user: The first one, please.
}

// A conversation is opened, goes on, is saved, and is there again when it is next
// opened, by whatever process.
func ExampleOpen() {
	ctx := context.Background()
	store := new(convotest.MemStore)

	for _, text := range []string{"Window seats only.", "Flights to Rome?"} {
		h, _ := convo.Open(ctx, store, "42", nil)
		h.Append(convo.User(text), convo.Assistant("Noted."))
		fmt.Println(h.Save(ctx), h.Len())
	}
	// Output:
	// <nil> 2
	// <nil> 4
}

// A server opens a conversation for each request, and holds nothing in between. Any
// number of processes may serve one store: with a filestore.Store on one machine, with
// module sqlstore on many. Here a second message comes in, and is answered and saved,
// while the model still answers the first one.
func Example_server() {
	store := new(convotest.MemStore)
	opts := &convo.Options{Limits: convo.Limits{Window: 128_000}}
	var meanwhile func()
	send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		question := s.Messages()[s.Len()-1].Text()
		if f := meanwhile; f != nil {
			meanwhile = nil
			f()
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("You said: " + question)}}, nil
	}

	chat := func(ctx context.Context, key, text string) (string, error) {
		h, err := convo.Open(ctx, store, key, opts) // empty, if the key is not in use
		if err != nil {
			return "", err
		}
		defer h.Close()
		if _, err := h.Append(convo.User(text)); err != nil {
			return "", err
		}
		reply, err := h.Do(ctx, send)
		if err != nil {
			return "", err
		}
		err = h.Save(ctx)
		for errors.As(err, new(*convo.ConflictError)) { // another was faster: ours goes behind
			var refused []convo.Message
			if _, refused, err = h.Reload(ctx); len(refused) > 0 {
				return "", errors.New("please say that again")
			}
			if err == nil {
				err = h.Save(ctx)
			}
		}
		return reply.Text(), err
	}

	ctx := context.Background()
	meanwhile = func() { fmt.Println(chat(ctx, "42", "And a hotel.")) }
	fmt.Println(chat(ctx, "42", "Flights to Rome?"))
	h, _ := convo.Open(ctx, store, "42", opts)
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// You said: And a hotel. <nil>
	// You said: Flights to Rome? <nil>
	// 1 user: And a hotel.
	// 2 assistant: You said: And a hotel.
	// 3 user: Flights to Rome?
	// 4 assistant: You said: Flights to Rome?
}

// A conversation goes back to what it was when it was saved earlier.
func ExampleLoad() {
	ctx := context.Background()
	store := new(convotest.MemStore)
	h, _ := convo.Open(ctx, store, "42", nil)
	h.Append(convo.User("Flights to Rome?"), convo.Assistant("Two."))
	h.Save(ctx)
	key, seq := h.Saved()
	h.Append(convo.User("Make it Oslo."), convo.Assistant("None."))
	h.Save(ctx)

	earlier, err := convo.Load(ctx, store, key, seq)
	if err == nil {
		err = h.Rollback(earlier)
	}
	fmt.Println(err, h.Save(ctx))
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// <nil> <nil>
	// 1 user: Flights to Rome?
	// 2 assistant: Two.
}

// A copy goes on in another way than the conversation that it was made of. Rollback to
// what Load returns of the copy begins it at an earlier state.
func ExampleCopy() {
	ctx := context.Background()
	store := new(convotest.MemStore)
	h, _ := convo.Open(ctx, store, "42", nil)
	h.Append(convo.User("Flights to Rome?"), convo.Assistant("Two."))
	h.Save(ctx)

	fmt.Println(convo.Copy(ctx, store, "42 by train", store, "42"))
	fork, _ := convo.Open(ctx, store, "42 by train", nil)
	fork.Append(convo.User("And trains?"), convo.Assistant("One, at night."))
	fmt.Println(fork.Save(ctx))
	h.Append(convo.User("Book the first."), convo.Assistant("Done."))
	fmt.Println(h.Save(ctx))
	for _, h := range []*convo.History{h, fork} {
		key, seq := h.Saved()
		newest, _ := h.Snapshot().At(2)
		fmt.Println(key, seq, newest)
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// 42 2 3 user: Book the first.
	// 42 by train 2 3 user: And trains?
}

// What was said must not stay: it is taken out of the view, and then out of the store.
func ExampleHistory_Prune() {
	ctx := context.Background()
	h, _ := convo.Open(ctx, new(convotest.MemStore), "42", nil)
	id, _ := h.Append(convo.User("My password is hunter2."))
	h.Append(convo.Assistant("Noted."))
	h.Save(ctx)

	_, err := h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: id, Parts: []convo.Part{convo.Text("My password is [removed].")}, Forget: true}}})
	fmt.Println(err, h.Prune(ctx, time.Time{})) // saves all there is, and removes all records before
	for a, err := range h.Archive(ctx) {
		fmt.Println(a.Entry, err)
	}
	// Output:
	// <nil> <nil>
	// 1 user: My password is [removed]. <nil>
	// 2 assistant: Noted. <nil>
}

// Two processes have the same conversation open. The one that saves later puts its
// messages behind those of the other.
func ExampleHistory_Reload() {
	ctx := context.Background()
	store := new(convotest.MemStore)
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
	h, _ := convo.Open(ctx, new(convotest.MemStore), "42", nil)
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

// A list in pages, and the conversations that are due to expire.
func ExampleListOptions() {
	ctx := context.Background()
	store := new(convotest.MemStore)
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 {
		at := day.AddDate(0, 0, i)
		r := convo.Record{LogInfo: convo.LogInfo{Key: fmt.Sprintf("ann/%d", i), Seq: 1, Created: at, Updated: at}, ID: fmt.Sprintf("%026d", i), Full: true}
		if err := store.Append(ctx, r); err != nil {
			panic(err)
		}
	}
	opts := convo.ListOptions{Prefix: "ann/"}
	for page := 1; page <= 2; page++ {
		n := 0
		for head, err := range store.List(ctx, opts) {
			if err != nil {
				panic(err)
			}
			fmt.Println("page", page, head.Key)
			opts.After = head // the next page begins here
			if n++; n == 2 {
				break
			}
		}
	}
	for head, err := range store.List(ctx, convo.ListOptions{UpdatedBefore: day.AddDate(0, 0, 2)}) {
		fmt.Println("expires:", head.Key, err, store.Delete(ctx, head.Key))
	}
	// Output:
	// page 1 ann/4
	// page 1 ann/3
	// page 2 ann/2
	// page 2 ann/1
	// expires: ann/1 <nil> <nil>
	// expires: ann/0 <nil> <nil>
}
