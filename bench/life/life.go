// Package life measures what the requests of one agent weigh over its life, with nothing to shorten
// them, with the usual trim, and with convo, and draws it.
//
// The agent is that of examples/quickstart: 120 requests with a tool that returns 1.6 kB, against
// a provider that refuses what is above 8,000 tokens.
package life

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

const (
	window    = 8_000
	requests  = 120
	condition = "Never change the exported API."
)

// A Life is what the requests of an agent were.
type Life struct {
	Name      string
	Tokens    []int  // of each request
	Refused   string // the provider's words, if it ended
	Forgotten int    // the first request without the user's condition, from 1; 0: none
}

// Measure lets the three agents live.
func Measure() ([]Life, error) {
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
			provider.Call{Name: read.Name, Arguments: fmt.Sprintf(`{"path":"pkg/file_%d.go"}`, i)},
		}})
	}
	p.Script(provider.Answer{Blocks: []provider.Block{provider.Text("All tests pass.")}})
	server := httptest.NewServer(p)
	defer server.Close()
	send := func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) { return post(ctx, server.URL, s) }
	task := convo.User("Make the tests pass. " + condition)
	if trim == nil {
		if err := inHistory(task, send); err != nil {
			return Life{}, err
		}
	} else {
		inList(task, send, trim)
	}
	return lifeOf(p.Requests()), nil
}

// read is the tool of the agent.
var read = convo.Tool{Name: "read", Description: "Reads a file."}

func inHistory(task convo.Message, send convo.Send) error {
	h, err := convo.New(&convo.Options{Limits: convo.Limits{Window: window, Reserve: 500}, TagKey: "life"})
	if err != nil {
		return err
	}
	if _, err := h.Append(task); err != nil {
		return err
	}
	reads := convo.Handler{Tool: read, Run: func(_ context.Context, call convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{convo.Text(file(call))}, nil
	}}
	_, err = h.Run(context.Background(), send, convo.RunOptions{Tools: []convo.Handler{reads}, MaxRequests: requests})
	return err
}

// inList ends when the provider refuses a request.
func inList(task convo.Message, send convo.Send, trim func([]convo.Message) []convo.Message) {
	list := []convo.Message{task}
	for {
		reply, err := send(context.Background(), convo.NewSnapshot(trim(list)))
		if err != nil || len(reply.OpenCalls()) == 0 {
			return
		}
		list = append(list, reply.Messages...)
		for _, call := range reply.OpenCalls() {
			list = append(list, convo.Result(call, file(call)))
		}
	}
}

func lifeOf(requests []provider.Request) (life Life) {
	for i, r := range requests {
		if life.Forgotten == 0 && !strings.Contains(string(r.Body), condition) {
			life.Forgotten = i + 1
		}
		if r.Error != "" {
			life.Refused = r.Error
			continue
		}
		life.Tokens = append(life.Tokens, r.Usage.Input)
	}
	return life
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

// post makes a request, as a program without an SDK does.
func post(ctx context.Context, url string, snap *convo.Snapshot) (convo.Reply, error) {
	format := wire.Anthropic{Model: "claude-opus-5-5", Cache: true}
	req, err := format.Encode(snap)
	if err != nil {
		return convo.Reply{}, err
	}
	if len(req.Tools) == 0 {
		if req.Tools, err = format.Tools(read); err != nil {
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
