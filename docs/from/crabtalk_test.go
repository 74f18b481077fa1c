package from_test

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// Two people and a guest agent in one conversation, facts for one run only, a turn
// taken back, a summary, and the conversation loaded again.
func Example_crabtalk() {
	ctx := context.Background()
	by := func(author string, m convo.Message) convo.Message { m.Author = author; return m }
	options := &convo.Options{
		Limits:   convo.Limits{High: 100_000},                            // let threshold = Some(100_000);
		Strategy: convo.Summarize{With: convo.SummarizerFunc(summarize)}, // let agent = AgentBuilder::new(model).build();
	}
	store := new(convotest.MemStore)
	h := must(convo.Open(ctx, store, "crab", options)) // let mut chat = Conversation::new(1, "crab", "tg:1");
	for i := range 6 {                                 // for i in 0..6 {
		must(h.Append(by("Ann", convo.User(fmt.Sprint("What does plan ", i, " cost in a year?"))))) // chat.history.push(HistoryEntry::user_with_sender(format!("What does plan {i} cost in a year?"), "tg:1"));
		// chat.history.retain(|e| !e.auto_injected);
		check(h.SetEphemeral(convo.User("Today is Monday."))) // chat.history.insert(chat.history.len() - 1, HistoryEntry::user("Today is Monday.").auto_injected());
		must(h.Do(ctx, model))                                // agent.run(&mut chat.history, events).await;
	} // }
	must(h.Append(by("Ben", convo.User("What does the accountant say?")))) // chat.history.push(HistoryEntry::user_with_sender("What does the accountant say?", "tg:2"));
	// let mut guest = HistoryEntry::assistant("The yearly one, by a tenth.", None, None);
	// guest.agent = "accountant".into();
	must(h.Append(by("accountant", convo.Assistant("The yearly one, by a tenth.")))) // chat.history.push(guest);
	must(h.Append(by("Ann", convo.User("Then we take the other one."))))             // chat.history.push(HistoryEntry::user_with_sender("Then we take the other one.", "tg:1"));
	fmt.Println(must(h.Rewind(1)), "turn taken back")                                // runtime.rewind(chat.id, 1).await?;
	msgs := h.Snapshot().Messages()                                                  // let wire: Vec<_> = chat.history.iter().map(HistoryEntry::to_wire_message).collect();
	fmt.Println(msgs[len(msgs)-1].Author)                                            // println!("{:?}", wire.last());
	note := must(h.Handoff(ctx, convo.SummarizerFunc(summarize), ""))                // let note = runtime.compact_conversation(chat.id).await;
	fmt.Println(note.Text)
	// let summary = agent.compact(&chat.history).await.unwrap();
	report := must(h.Compact(ctx, "")) // chat.history = vec![HistoryEntry::user(&summary)];
	fmt.Println(report.Outcome)
	check(h.Save(ctx)) // chat.append_messages(&chat.history[pre_run_len..]);
	// chat.append_compact(&summary);
	// chat.rewrite_meta();
	// let (meta, history) = Conversation::load_context(&path)?;
	again := must(convo.Open(ctx, store, "crab", options)) // let again = Conversation { history, ..Conversation::new(2, meta.agent, meta.created_by) };
	fmt.Println(again)                                     // println!("{again:?}");
	// Output:
	// 1 turn taken back
	// accountant
	// What was said in 14 messages.
	// applied
	// History(2 entries, 1 turn, 169 tokens)
}
