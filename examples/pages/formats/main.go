// Formats sends one conversation to two providers, and says what the second cannot take.
package main

import (
	"fmt"
	"log"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() {
	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := h.Append(convo.User("Is it sunny in Rome?")); err != nil {
		log.Fatal(err)
	}
	answer := []byte(`{"type":"message","role":"assistant","model":"claude-opus-5-5","content":[
		{"type":"thinking","thinking":"I look it up.","signature":"c2ln"},
		{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Rome"}}],
		"stop_reason":"tool_use","usage":{"input_tokens":21,"output_tokens":30}}`)
	in, err := wire.Anthropic{}.Decode(answer)
	if err != nil {
		log.Fatal(err)
	}
	reply := in.Reply()
	if _, err := h.AppendReply(h.Snapshot(), reply); err != nil { // Do and Run call it
		log.Fatal(err)
	}
	if _, err := h.Append(convo.Result(reply.OpenCalls()[0], "sunny, 21 °C")); err != nil {
		log.Fatal(err)
	}

	for _, format := range []wire.Format{wire.Anthropic{Model: "claude-opus-5-5"}, wire.OpenAIChat{}} {
		req, err := format.Encode(h.Snapshot())
		if err != nil {
			log.Fatal(err)
		}
		body, err := req.With(map[string]any{"max_tokens": 1024})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("findings:", format.Check(body), "lost:", req.Lost)
		for _, m := range req.Messages {
			fmt.Printf("\t%s\n", m)
		}
	}
}
