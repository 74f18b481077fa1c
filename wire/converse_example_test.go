package wire_test

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func ExampleConverse() {
	h, err := convo.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := convo.ToolCall{ID: "call|1", Name: "weather", Arguments: `{"city":"Oslo"}`}
	_, err = h.Append(
		convo.System("Be brief."),
		convo.User("How is the weather in Oslo?"),
		convo.Assistant("", call),
		convo.Result(call, "12 degrees"),
		convo.User("And tomorrow?"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	req, err := wire.Converse{}.Encode(h.Snapshot())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", req.System)
	for _, m := range req.Messages {
		fmt.Printf("%s\n", m)
	}
	fmt.Println("send toolConfig:", req.NeedsTools)
	// Output:
	// [{"text":"Be brief."}]
	// {"role":"user","content":[{"text":"How is the weather in Oslo?"}]}
	// {"role":"assistant","content":[{"toolUse":{"toolUseId":"tooluse_6x2gjGIcXQX7GdlWixCWorM4","name":"weather","input":{"city":"Oslo"}}}]}
	// {"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_6x2gjGIcXQX7GdlWixCWorM4","content":[{"text":"12 degrees"}]}},{"text":"And tomorrow?"}]}
	// send toolConfig: true
}

// Check reports why a request was refused.
func ExampleConverse_Check() {
	request := []byte(`{"inferenceConfig":{"maxTokens":100},"messages":[
		{"role":"user","content":[{"text":"Hi"}]},
		{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"weather","input":{}}},{"toolUse":{"toolUseId":"t2","name":"time","input":{}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[],"status":"error"}}]}]}`)
	for _, f := range (wire.Converse{}).Check(request) {
		fmt.Println(f)
		fmt.Println("  ", f.Error)
	}
	// Output:
	// error-empty at messages[2].content[0].toolResult.content: the error result is empty; describe the error in a few words
	//    The content field at messages.2.content.0.toolResult cannot be empty when status value is error.
	// unanswered-call at messages[1].content[1]: the call has no result; send a result for the call in the next message, a user message
	//    Expected toolResult blocks at messages.2.content for the following Ids: t2
	// tool-config at toolConfig: the messages hold tool calls or results, and the request has no toolConfig; send the definitions of the tools in toolConfig, even if the model is not meant to call any
	//    The toolConfig field must be defined when using toolUse and toolResult content blocks.
}
