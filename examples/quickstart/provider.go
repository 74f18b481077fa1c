package main

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

// A server stands for Anthropic's API and its model, which reads 119 files and is done.
type server struct {
	*provider.Server
	http *httptest.Server
}

func serve(window int) (server, convo.Send) {
	p := provider.New(provider.Options{Window: window})
	for i := range 119 {
		p.Script(provider.Answer{Blocks: []provider.Block{
			provider.Text(fmt.Sprintf("File %d is next.", i)),
			provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"path":"pkg/file_%d.go"}`, i)},
		}})
	}
	p.Script(provider.Answer{Blocks: []provider.Block{provider.Text("All tests pass.")}})
	s := server{p, httptest.NewServer(p)}
	return s, func(ctx context.Context, snap *convo.Snapshot) (convo.Reply, error) {
		return post(ctx, s.http.URL, snap)
	}
}

func (s server) Close() { s.http.Close() }

// largest returns the tokens of the largest request.
func (s server) largest() (tokens int) {
	for _, r := range s.Requests() {
		tokens = max(tokens, r.Usage.Input)
	}
	return tokens
}

// last returns the body of the last request.
func (s server) last() string {
	all := s.Requests()
	return string(all[len(all)-1].Body)
}

// post makes a request, as a program without an SDK does.
func post(ctx context.Context, url string, snap *convo.Snapshot) (convo.Reply, error) {
	format := wire.Anthropic{Model: "claude-opus-5-5", Cache: true}
	req, err := format.Encode(snap)
	if err != nil {
		return convo.Reply{}, err
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
	in, err := format.Decode(answer) // also the provider's error
	return in.Reply(), err
}

// read is a tool with long results.
func read(arguments string) string {
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, "%d\tfunc part%d(ctx context.Context, %s any) error { return nil }\n", i+1, i, strings.Trim(arguments[len(`{"path":"pkg/`):], `"}`)[:6])
	}
	return b.String()
}
