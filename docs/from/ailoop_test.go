package from_test

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/filestore"
)

// A history with a budget and a summary, two pins, and a file to go on from.
func Example_ailoop() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", ""))
	defer os.RemoveAll(dir)
	store := &filestore.Store{Dir: dir} // let store = JsonFileHistoryStore::new(dir.join("chat.json"));
	options := &convo.Options{
		Limits: convo.Limits{Window: 1_200, Reserve: 200}, // let builder = History::builder(1_200).reserved_tokens(200)
		Strategy: convo.Summarize{
			With:     convo.SummarizerFunc(summarize), // .strategy(Box::new(SummarizeStrategy::new(model)))
			Window:   200_000,
			KeepLast: 4, // .preserve_n_last(4);
		},
	}
	h := must(convo.Open(ctx, store, "chat", options))                      // let mut history = builder.build();
	must(h.Append(convo.User("Never touch the folder named private.")))     // history.add_message(user("Never touch the folder named private."));
	check(h.PinLast())                                                      // history.pin_last();
	list := convo.ToolCall{ID: "c1", Name: "list", Arguments: `{"in":"/"}`} // let list = tool_call("c1", "list", json!({"in": "/"}));
	call := must(h.Append(convo.Assistant("", list)))                       // history.add_message(assistant(list));
	must(h.Append(convo.Result(list, "docs private src")))                  // history.add_message(tool_result("c1", "docs private src"));
	check(h.Pin(call))                                                      // history.pin_with_tool_result(1);
	for i := range 30 {                                                     // for i in 0..30 {
		must(h.Append(convo.Assistant("Done. The folder is in order, and nothing else was changed."))) // history.add_message(assistant("Done. ..."));
		must(h.Append(convo.User(fmt.Sprint("Then tidy up the next folder, which is number ", i))))    // history.add_message(user(format!("Then ... {i}")));
	} // }
	report := must(h.CompactIfNeeded(ctx))                                          // if let Some(report) = history.compact_if_needed().await? {
	fmt.Println(report.MessagesBefore, "->", report.MessagesAfter, report.Strategy) // println!("{} -> {} {}", report.before, report.after, report.strategy);
	// }
	// let snapshot = ConversationSnapshot::new(history.messages().to_vec(), history.pinned().to_vec())?;
	check(h.Save(ctx)) // store.save(&snapshot).await?;
	// let saved = store.load().await?.unwrap();
	again := must(convo.Open(ctx, store, "chat", options)) // let again = History::from_messages(builder, saved.messages, saved.pinned)?;
	fmt.Println(again, "pinned:", again.Pinned())
	// Output:
	// 63 -> 9 summarize
	// History(8 entries, 4 turns, 173 tokens) pinned: [1 2 3]
}
