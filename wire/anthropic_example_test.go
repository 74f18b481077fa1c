package wire_test

import (
	"fmt"
	"log"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// The user interrupts while a tool runs. The request holds a result for the
// call, and the user's text after it.
func ExampleAnthropic() {
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
	if err != nil {
		log.Fatal(err)
	}
	call := convo.ToolCall{ID: "toolu_1", Name: "weather", Arguments: `{"city":"Rome","days":1.0}`}
	answer := convo.Assistant("Let me look.", call)
	answer.Origin = convo.Origin{Format: "anthropic", Model: "claude-opus-4-8"}
	answer.Parts = append([]convo.Part{convo.Reasoning{Text: "They need the forecast.", Signature: "c2ln"}}, answer.Parts...)
	for _, m := range []convo.Message{convo.System("Be brief."), convo.User("Will it rain in Rome?"), answer, convo.User("Never mind, in Oslo?")} {
		if _, err := h.Append(m); err != nil {
			log.Fatal(err)
		}
	}

	req, err := wire.Anthropic{Model: "claude-opus-4-8", UserLast: true}.Encode(h.Snapshot())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("system   %s\n", req.System)
	for _, m := range req.Messages {
		fmt.Printf("message  %s\n", m)
	}
	fmt.Println("tools", req.NeedsTools, "- without thinking", req.NoThinking)
	// Output:
	// system   [{"type":"text","text":"Be brief."}]
	// message  {"role":"user","content":[{"type":"text","text":"Will it rain in Rome?"}]}
	// message  {"role":"assistant","content":[{"type":"thinking","thinking":"They need the forecast.","signature":"c2ln"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Rome","days":1.0}}]}
	// message  {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"interrupted by the user","is_error":true},{"type":"text","text":"Never mind, in Oslo?"}]}
	// tools true - without thinking false
}

// Check reports why a request was refused.
func ExampleAnthropic_Check() {
	request := `{"messages":[
		{"role":"user","content":"Will it rain in Rome?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}]},
		{"role":"user","content":"Never mind."}]}`
	for _, f := range (wire.Anthropic{}).Check([]byte(request)) {
		fmt.Println(f)
		fmt.Println(f.Error)
	}
	// Output:
	// unanswered-call at messages[1].content[0]: the call has no result; send a result for the call at the start of the next user message
	// messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
}

// The caller's mark after the contract keeps it cached for an hour; the other marks
// follow the conversation.
func ExampleCacheMark() {
	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	contract := convo.User("The contract: ...", wire.CacheMark(time.Hour), convo.Text("Is it valid?"))
	for _, m := range []convo.Message{convo.System("Be brief."), contract, convo.Assistant("Yes."), convo.User("Until when?")} {
		if _, err := h.Append(m); err != nil {
			log.Fatal(err)
		}
	}
	for _, f := range []wire.Format{wire.Anthropic{Cache: true}, wire.Converse{}} {
		req, err := f.Encode(h.Snapshot())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(req.Messages[0]))
	}
	// Output:
	// {"role":"user","content":[{"type":"text","text":"The contract: ...","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Is it valid?","cache_control":{"type":"ephemeral"}}]}
	// {"role":"user","content":[{"text":"The contract: ..."},{"cachePoint":{"type":"default","ttl":"1h"}},{"text":"Is it valid?"}]}
}

// The citations of an answer are sent back to Claude, and become a text for another
// model.
func Example_citations() {
	answer := `{"role":"assistant","model":"claude-opus-5","content":[
		{"type":"text","text":"It opens at nine.","citations":[{"type":"web_search_result_location",
			"url":"https://museum.example/hours","title":"Opening hours","cited_text":"From 9 a.m.","encrypted_index":"Eo8B"}]}]}`
	in, err := wire.Anthropic{}.Decode([]byte(answer))
	if err != nil {
		log.Fatal(err)
	}
	s := convo.NewSnapshot([]convo.Message{convo.User("When does the museum open?"), in.Messages[0], convo.User("And on Sundays?")})
	for _, f := range []wire.Format{wire.Anthropic{}, wire.OpenAIChat{}} {
		req, err := f.Encode(s)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(req.Messages[1]))
	}
	// Output:
	// {"role":"assistant","content":[{"type":"text","text":"It opens at nine.","citations":[{"type":"web_search_result_location","cited_text":"From 9 a.m.","encrypted_index":"Eo8B","title":"Opening hours","url":"https://museum.example/hours"}]}]}
	// {"role":"assistant","content":"It opens at nine.\n[Source: Opening hours, https://museum.example/hours]"}
}
