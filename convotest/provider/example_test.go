package provider_test

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
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// A conversation with a tool, streamed by a provider that checks it.
func Example() {
	s := provider.New(provider.Options{Window: 8000})
	server := httptest.NewServer(s)
	defer server.Close()
	s.Script(
		provider.Answer{Blocks: []provider.Block{provider.Thinking("I need the timetable."), provider.Call{Name: "trains", Arguments: `{"to":"Rome"}`}}},
		provider.Answer{Blocks: []provider.Block{provider.Text("At 9:10.")}},
	)

	format := wire.Anthropic{Model: "claude-opus-5-5", Cache: true}
	send := func(ctx context.Context, snap *convo.Snapshot) (convo.Reply, error) {
		req, err := format.Encode(snap)
		if err != nil {
			return convo.Reply{}, err
		}
		body, err := req.With(map[string]any{"model": format.Model, "max_tokens": 1000, "stream": true})
		if err != nil {
			return convo.Reply{}, err
		}
		post, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/messages", bytes.NewReader(body))
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
		for _, err := range wire.Read(resp.Body, stream) {
			if err != nil {
				return convo.Reply{}, err
			}
		}
		in, err := stream.Transcript()
		return in.Reply(), err
	}

	h, err := convo.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.SetTools(convo.Tool{Name: "trains", Schema: `{"type":"object","properties":{"to":{"type":"string"}}}`}); err != nil {
		log.Fatal(err)
	}
	if _, err := h.Append(convo.User("When is the next train to Rome?")); err != nil {
		log.Fatal(err)
	}
	for done := false; !done; {
		reply, err := h.Do(context.Background(), send)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(reply.Text())
		for _, call := range reply.OpenCalls() {
			fmt.Println(call.Name, call.Arguments)
			if _, err := h.Append(convo.Result(call, "9:10 and 13:45")); err != nil {
				log.Fatal(err)
			}
		}
		done = len(reply.OpenCalls()) == 0
	}
	fmt.Printf("\n%d requests, %d refused\n", len(s.Requests()), len(s.Refused()))
	// Output:
	// trains {"to":"Rome"}
	// At 9:10.
	// 2 requests, 0 refused
}
