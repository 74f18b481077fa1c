package from_test

import (
	"context"
	"fmt"

	"github.com/seed-c1b73e60/convo"
)

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
