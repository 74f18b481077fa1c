package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// A user message with an image, and an answer that interleaves reasoning, text
// and a call. Printing stays short.
func ExampleMessage() {
	photo := convo.NewMedia("image/png", make([]byte, 3_000_000))
	fmt.Println(convo.User("What is this?", photo))

	answer := convo.Message{
		Role:   convo.RoleAssistant,
		Origin: convo.Origin{Format: "anthropic", Model: "claude"},
		Parts: []convo.Part{
			convo.Reasoning{Text: "Looks like a bird.", Signature: "c2ln"},
			convo.Text("Let me look it up."),
			convo.ToolCall{ID: "c1", Name: "lookup", Arguments: `{"scale": 1.0}`},
		},
	}
	fmt.Println(answer)
	// Output:
	// user: What is this? media(image/png, 3000000 bytes)
	// assistant: reasoning(Looks like a bird.) Let me look it up. call lookup({"scale": 1.0})
}

// The JSON of a message is stable, and keeps the bytes of arguments.
func ExampleMessage_MarshalJSON() {
	call := convo.ToolCall{ID: "c1", Name: "pay", Arguments: `{"n": 12345678901234567890, "x": 1.0}`}
	data, err := json.Marshal(convo.Assistant("", call))
	fmt.Println(string(data), err)
	// Output:
	// {"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"pay","arguments":"{\"n\": 12345678901234567890, \"x\": 1.0}"}]} <nil>
}

// A Builder puts a stream together. Arguments that are no JSON become a call
// with none, and an error result that the model can learn from.
func ExampleBuilder() {
	var b convo.Builder
	b.Text("Let me ")
	b.Text("see.")
	b.ToolCall(0, convo.ToolCall{ID: "c1", Name: "weather"})
	b.ToolCall(0, convo.ToolCall{Arguments: `{"city":`})
	b.ToolCall(1, convo.ToolCall{ID: "c2", Name: "time"})
	b.ToolCall(0, convo.ToolCall{Arguments: `"Oslo"}`})
	b.ToolCall(1, convo.ToolCall{Arguments: `{"zone": CET`})

	for _, m := range b.Messages() {
		fmt.Println(m)
	}
	// Output:
	// assistant: Let me see. call weather({"city":"Oslo"}) call time({})
	// tool: error of time(arguments are not a JSON object: {"zone": CET)
}

// Errors are typed and say what came before and where.
func ExampleHistory_Append() {
	h, _ := convo.New(nil)
	_, err := h.Append(convo.User("Hi"), convo.Assistant("Hello"), convo.Assistant("Hello?"))
	fmt.Println(err)
	if role, ok := errors.AsType[*convo.RoleError](err); ok {
		fmt.Println(role.Attempted, role.Previous, role.Index)
	}
	fmt.Println(h.Len())

	_, err = h.Append(convo.User("Hi"), convo.Result(convo.ToolCall{ID: "c7"}, "42"))
	fmt.Println(errors.Is(err, convo.ErrNoOpenCall))
	// Output:
	// convo: message 2: assistant after assistant
	// assistant assistant 2
	// 0
	// true
}

// Relaxed lets the user interrupt a tool round.
func ExampleRelaxed() {
	h, _ := convo.New(&convo.Options{Roles: convo.Relaxed()})
	call := convo.ToolCall{ID: "c1", Name: "search", Arguments: `{}`}
	h.Append(convo.User("Search for it."), convo.Assistant("", call))
	h.Append(convo.User("Stop, something else."))
	for _, e := range h.Snapshot().All() {
		fmt.Println(e)
	}
	// Output:
	// 1 user: Search for it.
	// 2 assistant: call search({})
	// 3 tool: error of search(interrupted by the user)
	// 4 user: Stop, something else.
}

// A table of your own: like Strict, but an assistant message may come first.
func ExampleRolePolicy() {
	roles := convo.Strict()
	roles.AssistantAfter = append(roles.AssistantAfter, convo.RoleNone)
	h, _ := convo.New(&convo.Options{Roles: roles})
	_, err := h.Append(convo.Assistant("Welcome!"), convo.User("Hi"))
	fmt.Println(err)
	// Output:
	// <nil>
}

// A long result is cut at the door; Spill keeps the original.
func ExampleOptions_spill() {
	files := map[string]string{}
	h, _ := convo.New(&convo.Options{
		MaxResult: 256,
		Spill: func(r convo.ToolResult) (string, error) {
			files[r.CallID+".txt"] = r.Text()
			return r.CallID + ".txt", nil
		},
	})
	call := convo.ToolCall{ID: "c1", Name: "cat", Arguments: `{}`}
	_, err := h.Append(convo.User("Show it."), convo.Assistant("", call), convo.Result(call, strings.Repeat("line\n", 1000)))
	e, _ := h.Snapshot().At(2)
	text := e.Message.Text()
	fmt.Println(err, len(text), len(files["c1.txt"]))
	fmt.Println(strings.Contains(text, "[cut: 5000 bytes in all, kept at c1.txt]"))
	// Output:
	// <nil> 256 5000
	// true
}
