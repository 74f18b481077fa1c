package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/logs"
)

// The code of the package documentation, which a test of internal/repotest looks up here
// and in the other examples.

// The simplest agent: Run makes requests and runs tools until the model is done.
func Example_agent() {
	ctx := context.Background()
	tools := []convo.Handler{{
		Tool: convo.Tool{Name: "search", Description: "Finds flights."},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("09:10 and 13:45")}, nil
		},
	}}
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}

	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000, Reserve: 16_000}})
	check(err)
	err = h.SetSystem(convo.System("You are a travel agent."))
	check(err)
	id, err := h.Append(convo.User("Window seats only, I am tall. Flights to Rome?"))
	check(err)
	err = h.Pin(id) // stays word for word
	check(err)
	reply, err := h.Run(ctx, send, convo.RunOptions{Tools: tools})
	check(err)
	fmt.Println(reply.Text())
	// Output:
	// At 09:10 and 13:45.
}

// The steps of Do, one by one.
func Example_requests() {
	ctx := context.Background()
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000}})
	if err != nil {
		log.Fatal(err)
	}
	step := func() error {
		snap, _, err := h.Prepare(ctx) // compacts if needed
		if err != nil {
			return err // the request must not be sent
		}
		reply, err := send(ctx, snap) // if it was too long: h.Recover(ctx, snap, err)
		if err != nil {
			return err
		}
		_, err = h.AppendReply(snap, reply) // records the usage
		return err
	}
	if _, err := h.Append(convo.User("Flights to Rome?")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(step(), h.Len())
	// Output:
	// <nil> 2
}

// An earlier state is brought back, and the conversation is forked and moved.
func Example_earlier() {
	ctx := context.Background()
	store, other := new(convotest.MemStore), new(convotest.MemStore)
	h, err := convo.Open(ctx, store, "42", nil)
	if err != nil {
		log.Fatal(err)
	}
	say := func(text string) {
		if _, err := h.Append(convo.User(text), convo.Assistant("Noted.")); err != nil {
			log.Fatal(err)
		}
		if err := h.Save(ctx); err != nil {
			log.Fatal(err)
		}
	}
	say("Flights to Rome?")
	key, seq := h.Saved() // names what was last saved; keep it
	say("No, to Oslo.")
	goBack := func() error {
		earlier, err := convo.Load(ctx, store, key, seq)
		if err != nil {
			return err
		}
		if err := h.Rollback(earlier); err != nil { // h goes on from there
			return err
		}
		if err := logs.Copy(ctx, store, "copy of 42", store, key); err != nil { // a fork: Open the copy and go on in it
			return err
		}
		return h.Attach(ctx, other, "42") // the next Save writes h to another store or key
	}
	if err := goBack(); err != nil {
		log.Fatal(err)
	}
	say("On Monday.")
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: Flights to Rome?
	// 2 assistant: Noted.
	// 5 user: On Monday.
	// 6 assistant: Noted.
}

// The default strategy, with a summary by a model, and without the other links.
func Example_strategies() {
	complete := func(_ context.Context, prompt string) (string, error) { // a small model
		return "The user wants window seats, and has asked for Rome, Oslo and Porto.", nil
	}
	ladder := convo.Chain(convo.ClearMedia{}, convo.ClearToolResults{}, convo.Summarize{With: convo.Extract{}}, convo.Truncate{})
	byModel := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		text, err := complete(ctx, req.Prompt) // a call of your model
		return convo.Summary{Text: text}, err
	})
	mine := ownLadder(complete)
	for _, s := range []convo.CompactionStrategy{ladder, mine, convo.Summarize{With: byModel}} {
		h := longTrip(&convo.Options{Strategy: s})
		report, err := h.Compact(context.Background(), "")
		fmt.Println(report.Strategy, report.Outcome, err)
	}
	// Output:
	// chain applied <nil>
	// chain applied <nil>
	// summarize applied <nil>
}

// ownLadder is the default with a summary by a model.
func ownLadder(complete func(ctx context.Context, prompt string) (string, error)) convo.CompactionStrategy {
	ladder := convo.Chain(
		convo.ClearMedia{},
		convo.ClearToolResults{},
		convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			text, err := complete(ctx, req.Prompt) // a call of your model
			return convo.Summary{Text: text}, err
		})},
		convo.Truncate{},
	)
	return ladder
}

// What a conversation accepts. An error changes nothing.
func Example_messages() {
	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	call := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{"to":"Rome"}`}
	_, err = h.Append(
		convo.User("Flights to Rome?"),        // begins a turn
		convo.Assistant("I look.", call),      // an exchange: the call
		convo.Result(call, "09:10 and 13:45"), // and its result
	)
	fmt.Println(err)
	_, err = h.Append(convo.Result(call, "again"))
	fmt.Println(errors.As(err, new(*convo.PairError)), h.Len())
	_, err = h.Append(convo.Assistant("At 09:10."), convo.Assistant("And 13:45."))
	fmt.Println(errors.As(err, new(*convo.RoleError)), h.Len())
	// Output:
	// <nil>
	// true 3
	// true 3
}

// A compaction by hand, what it removed, and its reversal.
func Example_compaction() {
	h := longTrip(&convo.Options{Limits: convo.Limits{Window: 4_000}})
	if err := h.Pin(2); err != nil { // the first question stays word for word
		log.Fatal(err)
	}
	report, err := h.Compact(context.Background(), "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report)
	fmt.Println("removed or changed:", len(report.Originals()))
	first, _ := h.Snapshot().Find(2)
	fmt.Println("stays:", first)
	err = h.Undo(report)
	fmt.Println("undone:", err, h.Len())
	// Output:
	// compacted 1,755 → 846 of 3,500 tokens: 8 results cleared
	// removed or changed: 8
	// stays: 2 user: And day 1?
	// undone: <nil> 41
}

// The estimate before and after the provider has counted.
func Example_tokens() {
	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	h.Append(convo.System("You are a travel agent."), convo.User("Window seats only, I am tall. Flights to Rome?"))
	snap := h.Snapshot()
	fmt.Printf("%+v\n", h.Tokens())
	h.RecordUsage(snap, convo.Usage{Input: 5210})
	fmt.Printf("%+v\n", h.Tokens())
	h.Append(convo.Assistant("At 09:10 and 13:45."))
	fmt.Printf("%+v\n", h.Tokens())
	// Output:
	// {Tokens:26 Upper:30 Measured:0}
	// {Tokens:5210 Upper:5210 Measured:5210}
	// {Tokens:5224 Upper:5232 Measured:5210}
}

// What a program can show of a conversation.
func Example_seeing() {
	h := longTrip(&convo.Options{
		Limits:       convo.Limits{Window: 1_500, Reserve: 300},
		OnCompaction: func(r convo.Report) { fmt.Println(r) },
	})
	if _, _, err := h.Prepare(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Status())
	fmt.Println(h.Snapshot().Breakdown())
	// Output:
	// compacted 1,755 → 432 of 1,200 tokens: 5 results cleared, 15 messages summarised in 64 tokens
	// 432 of 1,200 tokens (36 %): 26 entries in 10 turns
	// results 105, user 80, assistant 65, summary 64, calls 60, system 10; free 816 and reserve 300 of 1,500
}
