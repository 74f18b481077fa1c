package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A provider has everything that an agent needs from a format.
type provider interface {
	wire.Format
	wire.Streamer
	wire.ToolWriter
}

// An agent without an SDK: it streams answers, runs tools, and compacts and continues if
// the provider reports that the request was too long.
func Example_agent() {
	server := httptest.NewServer(fakeProvider()) // stands for the provider
	defer server.Close()

	var format provider = wire.Anthropic{Cache: true}
	tools := []convo.Tool{{
		Name:        "trains.search", // Anthropic refuses the dot, so another name is sent, and Decode restores this one
		Description: "Searches trains.",
		Schema:      `{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`,
	}}
	run := map[string]func(arguments string) string{
		"trains.search": func(arguments string) string { return "9:10 and 13:45" },
	}
	definitions, err := format.Tools(tools...)
	if err != nil {
		log.Fatal(err)
	}
	encoder := &wire.Encoder{Format: format}

	send := func(ctx context.Context, snap *convo.Snapshot) (convo.Reply, error) {
		req, err := encoder.Encode(snap)
		if err != nil {
			return convo.Reply{}, err
		}
		req.Tools = definitions
		body, err := req.With(map[string]any{"model": "claude-opus-5", "max_tokens": 1024, "stream": true})
		if err != nil {
			return convo.Reply{}, err
		}
		post, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, bytes.NewReader(body))
		if err != nil {
			return convo.Reply{}, err
		}
		resp, err := http.DefaultClient.Do(post)
		if err != nil {
			return convo.Reply{}, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK { // Decode returns the provider's error
			data, err := io.ReadAll(resp.Body)
			if err == nil {
				_, err = format.Decode(data)
			}
			return convo.Reply{}, errors.Join(errors.New(resp.Status), err)
		}
		stream := format.Stream()
		for delta, err := range wire.Read(resp.Body, stream) {
			if err != nil {
				return convo.Reply{}, err
			}
			fmt.Print(delta.Text)
		}
		in, err := stream.Transcript()
		return in.Reply(), err
	}

	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: 200_000}, OnCompaction: func(r convo.Report) {
		fmt.Println("too long:", len(r.Dropped), "messages dropped")
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, question := range []string{"Which trains go to Rome?", "And to Oslo?"} {
		if _, err := h.Append(convo.User(question)); err != nil {
			log.Fatal(err)
		}
		for done := false; !done; {
			reply, err := h.Do(context.Background(), send)
			if err != nil {
				log.Fatal(err)
			}
			if reply.CutOff != nil || len(reply.Messages) == 0 {
				log.Fatal("the model did not finish its answer: ", reply)
			}
			for _, call := range reply.OpenCalls() {
				result := "there is no such tool"
				if tool, ok := wire.FindTool(tools, call.Name); ok {
					result = run[tool.Name](call.Arguments)
				}
				fmt.Println(call.Name, call.Arguments, "->", result)
				if _, err := h.Append(convo.Result(call, result)); err != nil {
					log.Fatal(err)
				}
			}
			done = len(reply.OpenCalls()) == 0
		}
		fmt.Println()
	}
	// Output:
	// {"max_tokens":1024,"model":"claude-opus-5","stream":true,"tools":[{"name":"trains_2esearch_xd427c913","description":"Searches trains.","input_schema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}],"messages":[{"role":"user","content":[{"type":"text","text":"Which trains go to Rome?","cache_control":{"type":"ephemeral"}}]}]}
	// trains.search {"to":"Rome"} -> 9:10 and 13:45
	// At 9:10 and 13:45.
	// too long: 2 messages dropped
	// There is none.
}

// fakeProvider answers the requests of the example, the third one with an error. It prints
// the first.
func fakeProvider() http.HandlerFunc {
	event := func(data string) string { return "data: " + data + "\n\n" }
	text := func(text string) string {
		return event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+text+`"}}`) +
			event(`{"type":"content_block_stop","index":0}`) + event(`{"type":"message_stop"}`)
	}
	call := event(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"trains_2esearch_xd427c913"}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"to\":\"Rome\"}"}}`) +
		event(`{"type":"content_block_stop","index":0}`) + event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`) + event(`{"type":"message_stop"}`)
	answers := []string{call, text("At 9:10 and 13:45."), `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 200 tokens > 60 maximum"}}`, text("There is none.")}
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); n == 0 {
			fmt.Printf("%s\n", body)
		}
		if n == 2 {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, answers[n])
		n++
	}
}
