// Package moving_test has the programs of five systems from which docs/hosts.md says how to
// move. A comment in them is a line of the other system.
package moving_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/filestore"
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

// A turn loop with three marks: old results are cleared, a summary is written in
// the background, and at the highest mark the turn waits for it. A turn that fails
// is taken back.
func Example_defectAgent() {
	ctx := context.Background()
	h := must(convo.New(&convo.Options{ // let history: Arc<dyn History> = Arc::new(VecHistory::new());
		// let window = 2_000;
		// let soft = window * 70 / 100;
		Limits: convo.Ratios(2_000, 0.70, 0.85), // let hard = window * 85 / 100;
		Strategy: convo.Chain(
			convo.When(func(s convo.Status) bool { return s.Upper >= s.Window*60/100 }, convo.ClearToolResults{KeepLast: 3}), // let micro = window * 60 / 100;
			convo.Summarize{With: convo.SummarizerFunc(summarize)},
			convo.Truncate{},
		),
		Background:   true,
		OnCompaction: func(r convo.Report) { fmt.Println(r.Reason, r.Strategy, r.Outcome) }, // let on_done = |report| println!("{report:?}");
	}))
	for i := range 24 { // for i in 0..24 {
		turn := h.Snapshot()                                                   // let committed = history.len();
		must(h.Append(convo.User(fmt.Sprint("List the files of folder ", i)))) // history.append(user(format!("List the files of folder {i}")));
		for done := false; !done; {                                            // loop {
			// if history.token_estimate() >= Some(micro) {
			// history.replace(clear_old_results(history.snapshot(), 3));
			// }
			// if history.token_estimate() >= Some(soft) {
			// slot.try_spawn(history.clone(), ctx.clone(), soft, on_done);
			// }
			// if history.token_estimate() >= Some(hard) {
			// slot.await_in_flight().await;
			// compact::run_sync(&*history, &ctx, hard).await;
			// }
			// let request = sanitize(history.snapshot());
			reply, err := h.Do(ctx, model) // let response = provider.complete(request).await;
			// history.record_input_tokens(response.usage.input);
			// history.append(response.message);
			if err != nil { // if response.is_err() {
				check(h.Rollback(turn)) // history.truncate(committed);
				break                   // break;
			} // }
			must(h.Wait(ctx))
			for _, call := range reply.OpenCalls() { // for call in calls {
				must(h.Append(convo.Result(call, run(call)))) // history.append(run(call).await);
			} // }
			done = len(reply.OpenCalls()) == 0 // if calls.is_empty() {
			// break;
			// }
		} // }
	} // }
	fmt.Println(h.Status())            // println!("{:?}", session.context_status().await);
	report := must(h.Compact(ctx, "")) // let report = session.compact_now().await?;
	fmt.Println(report.Outcome)
	// Output:
	// trigger chain applied
	// trigger chain declined
	// trigger chain applied
	// trigger chain declined
	// soft chain applied
	// 1,059 of 1,750 tokens (60 %): 50 entries in 14 turns; compacts above 1,700
	// manual chain applied
	// applied
}

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

// An agent with one tool that keeps its newest messages and summarises the rest.
func Example_dsAPI() {
	ctx := context.Background()
	h := must(convo.New(&convo.Options{ // let mut agent = DeepseekAgent::new(&token)
		Limits: convo.Limits{High: 600}, // .with_summarizer(LlmSummarizer::new(ApiClient::new(&token)).token_threshold(600)
		Strategy: convo.Summarize{
			With:     convo.SummarizerFunc(summarize),
			KeepLast: 6, // .retain_last(6))
		},
	}))
	must(h.Append(convo.System("You may list folders."))) // .with_system_prompt("You may list folders.")
	for i := range 8 {                                    // for i in 0..8 {
		must(h.Append(convo.User(fmt.Sprint("What is in folder ", i, "?")))) // let mut stream = agent.chat(&format!("What is in folder {i}?"));
		for done := false; !done; {                                          // while let Some(event) = stream.next().await {
			// match event {
			reply := must(h.Do(ctx, model))          // Err(e) => return Err(e),
			fmt.Print(reply.Text())                  // Ok(AgentEvent::Token(text)) => print!("{text}"),
			for _, call := range reply.OpenCalls() { // Ok(AgentEvent::ToolCall(call)) => {
				fmt.Print("[", call.Name, "] ")               // print!("[{}] ", call.name)
				must(h.Append(convo.Result(call, run(call)))) // .add_tool(Folders);
			}
			// }
			// }
			done = len(reply.OpenCalls()) == 0
		} // }
		// agent = stream.into_agent().unwrap();
	} // }
	fmt.Println()
	fmt.Println(h)
	// Output:
	// [list] There you are.[list] There you are.[list] There you are.[list] There you are.[list] There you are.[list] There you are.[list] There you are.[list] There you are.
	// History(10 entries, 3 turns, 334 tokens)
}

// must returns v. It stands where a program in Rust has a question mark, and a
// program in Go returns the error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// model stands for a call of a model. It lists a folder before it answers a user
// who asks for one.
func model(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	msgs := s.Messages()
	last := msgs[len(msgs)-1]
	answer := convo.Assistant("There you are.")
	if last.Role == convo.RoleUser && strings.Contains(last.Text(), "folder") {
		answer = convo.Assistant("", convo.ToolCall{ID: "c1", Name: "list", Arguments: "{}"})
	}
	return convo.Reply{Messages: []convo.Message{answer}, Usage: convo.Usage{Input: s.Tokens() + 50}}, nil
}

// run stands for a tool.
func run(call convo.ToolCall) string {
	return call.Name + ": " + strings.Repeat("a file, ", 20) + "a file"
}

// summarize stands for a call of a small model.
func summarize(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
	return convo.Summary{Text: fmt.Sprint("What was said in ", len(req.Messages), " messages.")}, nil
}
