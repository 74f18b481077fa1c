package from_test

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A history that is checked as it grows, a budget that others share, room for an
// answer, and the request.
func Example_llmKernel() {
	ctx := context.Background()
	budget := convo.NewBudget(300)                                                   // let budget = TokenBudget::new(300);
	h := must(convo.New(&convo.Options{Budget: budget, Strategy: convo.Truncate{}})) // let mut history = ConversationHistory::new();
	must(h.Append(convo.User("What is a lifetime?")))                                // history.push(ChatMessage::user("What is a lifetime?"))?;
	must(h.Append(convo.Assistant("How long a reference is valid.")))                // history.push(ChatMessage::assistant("How long a reference is valid."))?;
	_, err := h.Append(convo.Assistant("And more."))                                 // let err = history.push(ChatMessage::assistant("And more.")).unwrap_err();
	fmt.Println(err)                                                                 // println!("{err}");
	for i := range 10 {                                                              // for i in 0..10 {
		must(h.Append(convo.User(fmt.Sprint("And rule ", i, "?"))))    // history.push(ChatMessage::user(format!("And rule {i}?")))?;
		must(h.Append(convo.Assistant("It says who owns the value."))) // history.push(ChatMessage::assistant("It says who owns the value."))?;
	} // }
	check(h.SetSystem(convo.System("You teach Rust."))) // let request = history.clone().into_request("You teach Rust.");
	room, report, err := h.MakeRoom(ctx, 100)           // let removed = history.truncate_to_budget(&budget, 100);
	check(err)
	request := must(wire.OpenAIChat{}.Encode(h.Snapshot())) // let body = serde_json::to_string(&request)?;
	room.Release()                                          // budget.release(100);
	fmt.Println(len(report.Dropped), "messages dropped for", room.Tokens(), "tokens;", len(request.Messages), "messages sent")
	// Output:
	// convo: message 0: role "assistant" may not follow "assistant"; put both into one message, or append what the user said in between, or set Options.Roles to Relaxed() to allow it
	// 5 messages dropped for 100 tokens; 18 messages sent
}
