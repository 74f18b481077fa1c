// Life measures what the requests of one agent weigh over its life, with nothing to shorten
// them, with the usual trim, and with convo, and draws it:
//
//	go run ./life            # draws docs/img/life.svg from life/life.json
//	go run ./life -measure   # measures first
//
// The agent is that of examples/quickstart: 120 requests with a tool of two kilobytes, against
// a provider that refuses what is above 8,000 tokens.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

const (
	window    = 8_000
	requests  = 120
	condition = "Never change the exported API."

	results = "life/life.json"
	picture = "../docs/img/life.svg"
)

// A Life is what the requests of an agent were.
type Life struct {
	Name      string
	Tokens    []int  // of each request
	Refused   string // the provider's words, if it ended
	Forgotten int    // the first request without the user's condition, from 1; 0: none
}

func main() {
	measure := flag.Bool("measure", false, "measure again")
	flag.Parse()
	if err := run(*measure); err != nil {
		log.Fatal(err)
	}
}

func run(again bool) error {
	if again {
		lives, err := measure()
		if err != nil {
			return err
		}
		data, err := json.MarshalIndent(lives, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(results, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(results)
	if err != nil {
		return err
	}
	var lives []Life
	if err := json.Unmarshal(data, &lives); err != nil {
		return err
	}
	return os.WriteFile(picture, draw(lives), 0o644)
}

// measure lets the three agents live.
func measure() ([]Life, error) {
	var lives []Life
	for _, way := range []struct {
		name string
		trim func([]convo.Message) []convo.Message
	}{{"nothing", func(m []convo.Message) []convo.Message { return m }}, {"the usual trim", trim}, {"convo", nil}} {
		life, err := live(way.trim)
		if err != nil {
			return nil, err
		}
		life.Name = way.name
		lives = append(lives, life)
	}
	return lives, nil
}

// live runs an agent. With a trim, it keeps its messages in a list; without one, in a History.
func live(trim func([]convo.Message) []convo.Message) (Life, error) {
	p := provider.New(provider.Options{Window: window})
	for i := range requests - 1 {
		p.Script(provider.Answer{Blocks: []provider.Block{
			provider.Text(fmt.Sprintf("File %d is next.", i)),
			provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"path":"pkg/file_%d.go"}`, i)},
		}})
	}
	p.Script(provider.Answer{Blocks: []provider.Block{provider.Text("All tests pass.")}})
	server := httptest.NewServer(p)
	defer server.Close()

	tools := []convo.Tool{{Name: "read", Description: "Reads a file."}}
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window, Reserve: 500}, TagKey: "life"})
	if err != nil {
		return Life{}, err
	}
	if err := h.SetTools(tools...); err != nil {
		return Life{}, err
	}
	list := []convo.Message{convo.User("Make the tests pass. " + condition)}
	if _, err := h.Append(list...); err != nil {
		return Life{}, err
	}
	send := func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		return post(ctx, server.URL, s, tools)
	}
	ctx := context.Background()
	for {
		var reply convo.Reply
		if trim == nil {
			reply, err = h.Do(ctx, send)
		} else {
			reply, err = send(ctx, convo.NewSnapshot(trim(list)))
			list = append(list, reply.Messages...)
		}
		if err != nil || len(reply.OpenCalls()) == 0 {
			break
		}
		for _, call := range reply.OpenCalls() {
			result := convo.Result(call, file(call))
			list = append(list, result)
			if trim == nil {
				if _, err := h.Append(result); err != nil {
					return Life{}, err
				}
			}
		}
	}
	var life Life
	for i, r := range p.Requests() {
		if life.Forgotten == 0 && !strings.Contains(string(r.Body), condition) {
			life.Forgotten = i + 1
		}
		if r.Error != "" {
			life.Refused = r.Error
			continue
		}
		life.Tokens = append(life.Tokens, r.Usage.Input)
	}
	return life, nil
}

// trim is what programs do by hand: the oldest messages go, until the rest is three quarters of
// the window, and no result stands without its call.
func trim(list []convo.Message) []convo.Message {
	size := func(list []convo.Message) (tokens int) {
		for _, m := range list {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case convo.Text:
					tokens += len(p) / 4
				case convo.ToolCall:
					tokens += len(p.Arguments) / 4
				case convo.ToolResult:
					tokens += len(p.Text()) / 4
				}
			}
		}
		return tokens
	}
	for len(list) > 1 && (size(list) > window*3/4 || list[0].Role == convo.RoleTool) {
		list = list[1:]
	}
	return list
}

func post(ctx context.Context, url string, snap *convo.Snapshot, tools []convo.Tool) (convo.Reply, error) {
	format := wire.Anthropic{Model: "claude-opus-5-5", Cache: true}
	req, err := format.Encode(snap)
	if err != nil {
		return convo.Reply{}, err
	}
	if len(req.Tools) == 0 {
		if req.Tools, err = format.Tools(tools...); err != nil {
			return convo.Reply{}, err
		}
	}
	body, err := req.With(map[string]any{"model": format.Model, "max_tokens": 500})
	if err != nil {
		return convo.Reply{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return convo.Reply{}, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return convo.Reply{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return convo.Reply{}, err
	}
	in, err := format.Decode(answer)
	return in.Reply(), err
}

// file is what the tool returns.
func file(call convo.ToolCall) string {
	var b strings.Builder
	_, name, _ := strings.Cut(call.Arguments, "pkg/")
	for i := range 24 {
		fmt.Fprintf(&b, "%d\tfunc part%d(ctx context.Context, %s any) error { return nil }\n", i+1, i, name[:6])
	}
	return b.String()
}
