package wire_test

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func ExampleOpenAIResponses() {
	show(wire.OpenAIResponses{}.Encode(trip()))
	// Output:
	// "You are a travel agent."
	// {"role":"user","content":"Flights to Rome?"}
	// {"role":"assistant","content":"I will look."}
	// {"type":"function_call","call_id":"call_1","name":"search","arguments":"{\"to\":\"Rome\",\"max\":1.0}"}
	// {"type":"function_call_output","call_id":"call_1","output":"09:10 and 13:45"}
	// {"role":"assistant","content":"At 09:10 and 13:45."}
	// {"role":"user","content":"The first one."}
}

// Reasoning is sent back to the model that made it, with the item that it led
// to.
func ExampleOpenAIResponses_reasoning() {
	in, _ := wire.OpenAIResponses{}.Decode([]byte(`{"object":"response","model":"gpt-5","output":[
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
		{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"At 09:10."}]}]}`))
	s := convo.NewSnapshot(in.Messages)
	show(wire.OpenAIResponses{Model: "gpt-5"}.Encode(s))
	show(wire.OpenAIResponses{Model: "gpt-6"}.Encode(s))
	// Output:
	// {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}
	// {"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"At 09:10.","annotations":[]}],"status":"completed"}
	// {"role":"assistant","content":"At 09:10."}
}

// Check reports why the provider refuses a request. Here the message that the
// reasoning led to has lost its id.
func ExampleOpenAIResponses_Check() {
	body := []byte(`{"model":"gpt-5","input":[
		{"role":"user","content":"When?"},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
		{"role":"assistant","content":"At 09:10."}]}`)
	for _, f := range (wire.OpenAIResponses{}).Check(body) {
		fmt.Println(f)
		fmt.Println(f.Error)
	}
	// Output:
	// reasoning-item at input[1]: the item that the reasoning led to has lost its id; send that item with its own id, or the reasoning without an id
	// Item 'rs_1' of type 'reasoning' was provided without its required following item.
}
