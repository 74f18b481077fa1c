package wire_test

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func ExampleGemini() {
	call := convo.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city": "Utrecht"}`}
	h, err := convo.New(nil)
	if err != nil {
		panic(err)
	}
	if _, err := h.Append(
		convo.System("Be brief."),
		convo.User("What is the weather in Utrecht?"),
		convo.Assistant("", call),
		convo.Result(call, "Rain."),
		convo.Assistant("Rain."),
		convo.User("And tomorrow?"),
	); err != nil {
		panic(err)
	}
	req, err := wire.Gemini{Model: "gemini-2.5-flash"}.Encode(h.Snapshot())
	if err != nil {
		panic(err)
	}
	fmt.Println(string(req.System))
	for _, m := range req.Messages {
		fmt.Println(string(m))
	}
	// Output:
	// {"parts":[{"text":"Be brief."}]}
	// {"role":"user","parts":[{"text":"What is the weather in Utrecht?"}]}
	// {"role":"model","parts":[{"functionCall":{"id":"call_1","name":"get_weather","args":{"city": "Utrecht"}}}]}
	// {"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"get_weather","response":{"output":"Rain."}}}]}
	// {"role":"model","parts":[{"text":"Rain."}]}
	// {"role":"user","parts":[{"text":"And tomorrow?"}]}
}

func ExampleGemini_Check() {
	// Refused with "Requests ending with a model turn are not supported."
	request := `{"contents": [
		{"role": "user", "parts": [{"text": "What is the weather?"}]},
		{"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {}}}]},
		{"role": "user", "parts": [
			{"functionResponse": {"name": "get_weather", "response": {"output": "Rain."}}},
			{"text": "And tomorrow?"}]}]}`
	for _, f := range (wire.Gemini{}).Check([]byte(request)) {
		fmt.Println(f)
	}
	// Output:
	// mixed-results at contents[2]: the content holds function responses and other parts; send the other parts in a content of their own, after it
}
