package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"regexp"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// trip is a short conversation with a tool round.
func trip() *convo.Snapshot {
	call := convo.ToolCall{ID: "call_1", Name: "search", Arguments: `{"to":"Rome","max":1.0}`}
	h, _ := convo.New(nil)
	h.Append(
		convo.System("You are a travel agent."),
		convo.User("Flights to Rome?"),
		convo.Assistant("I will look.", call),
		convo.Result(call, "09:10 and 13:45"),
		convo.Assistant("At 09:10 and 13:45."),
		convo.User("The first one."),
	)
	return h.Snapshot()
}

func show(r wire.Request, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	if r.System != nil {
		fmt.Printf("%s\n", r.System)
	}
	for _, m := range r.Messages {
		fmt.Printf("%s\n", m)
	}
}

func ExampleOpenAIChat() {
	show(wire.OpenAIChat{}.Encode(trip()))
	// Output:
	// {"role":"system","content":"You are a travel agent."}
	// {"role":"user","content":"Flights to Rome?"}
	// {"role":"assistant","content":"I will look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"search","arguments":"{\"to\":\"Rome\",\"max\":1.0}"}}]}
	// {"role":"tool","tool_call_id":"call_1","content":"09:10 and 13:45"}
	// {"role":"assistant","content":"At 09:10 and 13:45."}
	// {"role":"user","content":"The first one."}
}

// Mistral needs ids of nine letters and digits, and Ollama needs arguments as an object.
func ExampleOpenAIChat_dialects() {
	for _, d := range []wire.Dialect{wire.Mistral, wire.Ollama} {
		r, _ := wire.OpenAIChat{Dialect: d}.Encode(trip())
		fmt.Printf("%s\n", r.Messages[2])
	}
	// Output:
	// {"role":"assistant","content":"I will look.","tool_calls":[{"id":"tEAszH9by","type":"function","function":{"name":"search","arguments":"{\"to\":\"Rome\",\"max\":1.0}"}}]}
	// {"role":"assistant","content":"I will look.","tool_calls":[{"id":"call_1","function":{"name":"search","arguments":{"to":"Rome","max":1.0}}}]}
}

// Check reports why the provider refuses a request, even if Encode did not make it.
func ExampleOpenAIChat_Check() {
	body := []byte(`{"model": "gpt-5", "messages": [
		{"role": "user", "content": "Flights?"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]},
		{"role": "user", "content": "Hello?"}]}`)
	for _, f := range (wire.OpenAIChat{}).Check(body) {
		fmt.Println(f)
		fmt.Println(f.Error)
	}
	// Output:
	// unanswered-call at messages[1].tool_calls[0]: the call has no result; send a result for the call directly after the message that holds it
	// An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1
}

// Decode reads a response: the messages for Append, and the usage for
// RecordUsage.
func ExampleOpenAIChat_Decode() {
	in, err := wire.OpenAIChat{}.Decode([]byte(`{"model": "gpt-5", "choices": [{"message": {"role": "assistant", "content": "At 09:10."}}],
		"usage": {"prompt_tokens": 120, "completion_tokens": 6, "prompt_tokens_details": {"cached_tokens": 64}}}`))
	fmt.Println(in.Messages[0], err)
	fmt.Println(in.Usage.Input, "tokens read,", in.Usage.CacheRead, "of them from the cache;", in.Usage.Output, "written")

	_, err = wire.OpenAIChat{}.Decode([]byte(`{"choices": [{"message": {"role": "robot"}}]}`))
	var wrong *wire.DecodeError
	fmt.Println(errors.As(err, &wrong), err)
	// Output:
	// assistant: At 09:10. <nil>
	// 120 tokens read, 64 of them from the cache; 6 written
	// true wire: choices[0].message.role: unknown role "robot"; check that the input is complete and in this format
}

// PrefixShare returns how much of the last request the provider can read from its cache.
func ExamplePrefixShare() {
	h, _ := convo.Restore(trip(), nil)
	before, _ := wire.OpenAIChat{}.Encode(h.Snapshot())
	h.Append(convo.Assistant("Booked."), convo.User("Thanks."))
	after, _ := wire.OpenAIChat{}.Encode(h.Snapshot())
	fmt.Println(wire.PrefixShare(before, after))

	h.SplicePrefix(h.Snapshot(), 5, "Flights to Rome were looked up.")
	cut, _ := wire.OpenAIChat{}.Encode(h.Snapshot())
	fmt.Printf("%.2f\n", wire.PrefixShare(after, cut))
	// Output:
	// 1
	// 0.10
}

// OverheadsFor counts only the reasoning that the format sends. Chat Completions has no
// place for reasoning. DeepSeek gets it back in turns in which a tool was called.
func ExampleOverheadsFor() {
	answer := convo.Assistant("At 09:10.")
	answer.Origin.Format = "deepseek"
	answer.Parts = append([]convo.Part{convo.Reasoning{Text: strings.Repeat("Let me think. ", 1000)}}, answer.Parts...)
	for _, f := range []wire.OpenAIChat{{}, {Dialect: wire.DeepSeek}, {Dialect: wire.DeepSeek, Reasoning: convo.ReplayAll}} {
		h, err := convo.New(&convo.Options{Overheads: wire.OverheadsFor(f, "deepseek-v4")})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := h.Append(convo.User("Flights?"), answer, convo.User("And back?")); err != nil {
			log.Fatal(err)
		}
		req, err := f.Encode(h.Snapshot())
		fmt.Println(h.Tokens().Tokens, "tokens,", len(req.Body()), "bytes", err)
	}
	// Output:
	// 18 tokens, 132 bytes <nil>
	// 18 tokens, 155 bytes <nil>
	// 3827 tokens, 14155 bytes <nil>
}

// SystemSummary sends the summary with the system text, after the cache mark, so that a
// new summary does not move the mark.
func ExampleAnthropic_systemSummary() {
	h, err := convo.Restore(trip(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := h.SplicePrefix(h.Snapshot(), 5, "Flights to Rome were looked up."); err != nil {
		log.Fatal(err)
	}
	req, err := wire.Anthropic{SystemSummary: true, Cache: true}.Encode(h.Snapshot())
	if err != nil {
		log.Fatal(err)
	}
	key := regexp.MustCompile(`key=\\"@[a-z]+\\"`) // it is random
	fmt.Println(strings.ReplaceAll(key.ReplaceAllString(string(req.System), "key=..."), "},{", "},\n{"))
	// Output:
	// [{"type":"text","text":"You are a travel agent.","cache_control":{"type":"ephemeral"}},
	// {"type":"text","text":"<summary key=...>\nWhat went before in this conversation, in short:\nFlights to Rome were looked up.\n</summary key=...>"}]
}

// A program keeps its own messages, with what convo has cleared written into them.
func ExamplePatcher() {
	raw := json.RawMessage(`{"role": "tool", "tool_call_id": "call_1", "content": "36 flights ...", "trace": 7}`)
	t, err := wire.OpenAIChat{}.Decode(raw)
	if err != nil {
		log.Fatal(err)
	}
	now := t.Messages[0]
	result := now.ToolResults()[0]
	result.Parts, result.Cleared = []convo.Part{convo.Text("[cleared]")}, true
	now.Parts = []convo.Part{result}
	messages, err := wire.OpenAIChat{}.Patch([]json.RawMessage{raw}, now)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", messages[0])
	// Output:
	// {"role": "tool", "tool_call_id": "call_1", "content": "[cleared]", "trace": 7}
}
