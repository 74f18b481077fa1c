package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/filestore"
)

// An agent answers questions of 400 bytes. For each it makes a request, calls a tool with a result
// of 1,600 bytes, makes a second request, and saves.
type agent struct {
	h    *convo.History
	text func(int) string
	turn int
	sent []int // the bytes of each request
}

// window is that of an agent, in tokens.
const window = 200_000

// dir is where an agent saves.
var dir = filepath.Join(os.TempDir(), fmt.Sprint("convo-bench-", os.Getpid()))

// newAgent returns an agent that has had n turns, the newest through send.
func newAgent(n int, sender func(*http.Client) convo.Send) (*agent, convo.Send, error) {
	store := &filestore.Store{Dir: dir, NoSync: true}
	h, err := convo.Open(context.Background(), store, "agent", &convo.Options{Limits: convo.Limits{Window: window}})
	if err != nil {
		return nil, nil, err
	}
	a := &agent{h: h, text: peer.Next(0)}
	send := sender(&http.Client{Transport: a})
	for range n {
		if err := a.take(without, true); err != nil {
			return nil, nil, err
		}
	}
	store.NoSync = false
	return a, send, a.take(send, true)
}

// take takes a turn.
func (a *agent) take(send convo.Send, save bool) error {
	a.turn++
	ctx, first := context.Background(), 5*a.turn
	if _, err := a.h.Append(convo.User(a.text(first))); err != nil {
		return err
	}
	read := convo.Handler{
		Tool: convo.Tool{Name: "read", Description: "Reads a file", Schema: `{"type":"object","properties":{"path":{"type":"string"}}}`},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			var result strings.Builder
			for i := range 4 {
				result.WriteString(a.text(first + 1 + i))
			}
			return []convo.Part{convo.Text(result.String())}, nil
		},
	}
	reply, err := a.h.Run(ctx, send, convo.RunOptions{Tools: []convo.Handler{read}})
	if err == nil && reply.Text() != answer {
		err = fmt.Errorf("the answer is %v", reply)
	}
	if err == nil && save {
		err = a.h.Save(ctx)
	}
	return err
}

// without answers without a client.
func without(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
	if newest, _ := s.At(s.Len() - 1); newest.Message.Role == convo.RoleUser {
		return convo.Reply{Messages: []convo.Message{convo.Assistant("I read it.", convo.ToolCall{ID: "c1", Name: "read", Arguments: `{"path":"a.go"}`})}}, nil
	}
	return convo.Reply{Messages: []convo.Message{convo.Assistant(answer)}}, nil
}

// RoundTrip implements [http.RoundTripper]. The first request of a turn gets a call, and the second
// one the answer. Four bytes of a request are a token.
func (a *agent) RoundTrip(r *http.Request) (*http.Response, error) {
	counted := new(counter)
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, counted), r.Body}
	resp, err := canned{}.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if len(a.sent)%2 == 0 {
		body = chatCall
		if strings.HasSuffix(r.URL.Path, "/messages") {
			body = anthropicCall
		}
	}
	a.sent = append(a.sent, counted.n)
	body = bytes.Replace(body, []byte(`_tokens":1000`), fmt.Appendf(nil, `_tokens":%d`, counted.n/4), 1)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// A counter counts what is written to it.
type counter struct{ n int }

func (c *counter) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}

// turns are turns of an agent after n others, each with a save.
func turns(n int, sender func(*http.Client) convo.Send) peer.Case {
	return agentCase(n, sender, func(a *agent, send convo.Send, _ int) (func(int) error, error) {
		return func(int) error { return a.take(send, true) }, nil
	})
}

// copies are copies of what the same turns send.
func copies(n int, sender func(*http.Client) convo.Send) peer.Case {
	return agentCase(n, sender, func(a *agent, send convo.Send, k int) (func(int) error, error) {
		before := len(a.sent)
		for range k {
			if err := a.take(send, false); err != nil {
				return nil, err
			}
		}
		sent, from, to := a.sent[before:], make([]byte, 2<<20), make([]byte, 2<<20)
		return func(i int) error {
			for _, n := range sent[2*i : 2*i+2] {
				copy(to[:n], from)
			}
			return nil
		}, nil
	})
}

func agentCase(n int, sender func(*http.Client) convo.Send, ops func(*agent, convo.Send, int) (func(int) error, error)) peer.Case {
	return peer.Case{Max: 200, New: func(k int) (func(int) error, error) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		a, send, err := newAgent(n, sender)
		if err != nil {
			return nil, err
		}
		return ops(a, send, k)
	}}
}

// chatCall and anthropicCall are streams with a call of the tool.
var (
	chatCall = bytes.Join([][]byte{
		chatChunk(`{"index":0,"delta":{"role":"assistant","content":"I read it."},"finish_reason":null}`, ""),
		chatChunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}`, ""),
		chatChunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}`, ""),
		chatChunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a.go\"}"}}]},"finish_reason":null}`, ""),
		chatChunk(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`, ""),
		chatChunk("", `,"usage":{"prompt_tokens":1000,"completion_tokens":30,"total_tokens":1030}`),
		[]byte("data: [DONE]\n\n"),
	}, nil)
	anthropicCall = bytes.Join([][]byte{
		anthropicStart,
		anthropicEvent("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`),
		anthropicEvent("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"I read it."}`),
		anthropicEvent("content_block_stop", `,"index":0`),
		anthropicEvent("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"c1","name":"read","input":{}}`),
		anthropicEvent("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}`),
		anthropicEvent("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"\"a.go\"}"}`),
		anthropicEvent("content_block_stop", `,"index":1`),
		anthropicEvent("message_delta", `,"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":30}`),
		anthropicEvent("message_stop", ""),
	}, nil)
)
