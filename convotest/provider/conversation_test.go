package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// A client sends snapshots to a server.
type client struct {
	format interface {
		wire.Format
		wire.Streamer
	}
	url    string
	params map[string]any
	stream bool
}

// send makes a request.
func (c *client) send(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
	req, err := c.format.Encode(s)
	if err != nil {
		return convo.Reply{}, err
	}
	body, err := req.With(c.params)
	if err != nil {
		return convo.Reply{}, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return convo.Reply{}, err
	}
	for name, value := range req.Headers {
		post.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(post)
	if err != nil {
		return convo.Reply{}, err
	}
	defer resp.Body.Close()
	if c.stream && resp.StatusCode == http.StatusOK {
		stream := c.format.Stream()
		for _, err := range wire.Read(resp.Body, stream) {
			if err != nil {
				return convo.Reply{}, err
			}
		}
		in, err := stream.Transcript()
		return in.Reply(), err
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return convo.Reply{}, err
	}
	in, err := c.format.Decode(data)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(resp.Status), err)
	}
	return in.Reply(), err
}

// A formatTest is a format, and where its requests are sent.
type formatTest struct {
	name   string
	client client
	path   string
}

// serve starts a server, and returns the client of a format.
func serve(t *testing.T, s *provider.Server, tt formatTest) client {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := tt.client
	c.url = server.URL + tt.path
	return c
}

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	t.Helper()
	h, err := convo.New(o)
	require.NoError(t, err)
	return h
}

func mustAppend(t testing.TB, h *convo.History, msgs ...convo.Message) {
	t.Helper()
	_, err := h.Append(msgs...)
	require.NoError(t, err)
}

// chatOptions returns what a stream needs to report usage.
func chatOptions(stream bool) map[string]any {
	if !stream {
		return nil
	}
	return map[string]any{"stream_options": map[string]any{"include_usage": true}}
}

func formatTests() []formatTest {
	var list []formatTest
	for _, stream := range []bool{false, true} {
		name := map[bool]string{false: " whole", true: " streamed"}[stream]
		with := func(model string, more map[string]any) map[string]any {
			p := map[string]any{"model": model}
			maps.Copy(p, more)
			if stream {
				p["stream"] = true
			}
			return p
		}
		list = append(list,
			formatTest{"anthropic" + name, client{format: wire.Anthropic{Model: "claude-opus-5-5", Cache: true}, params: with("claude-opus-5-5", map[string]any{"max_tokens": 99}), stream: stream}, "/v1/messages"},
			formatTest{"chat" + name, client{format: wire.OpenAIChat{}, params: with("gpt-5.5", chatOptions(stream)), stream: stream}, "/v1/chat/completions"},
			formatTest{"responses" + name, client{format: wire.OpenAIResponses{}, params: with("gpt-5.5", map[string]any{"store": false, "include": []string{"reasoning.encrypted_content"}}), stream: stream}, "/v1/responses"},
			formatTest{"gemini" + name, client{format: wire.Gemini{Model: "gemini-3-pro"}, stream: stream}, map[bool]string{false: "/v1beta/models/gemini-3-pro:generateContent", true: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"}[stream]},
		)
	}
	const bedrock = "anthropic.claude-opus-5-5-v1:0" // its streams are tested below clients, with the SDK
	return append(list, formatTest{"converse whole", client{format: wire.Converse{Model: bedrock, Cache: true}}, "/model/" + bedrock + "/converse"})
}

// A conversation through convo is never refused, and the model's reasoning comes back.
func TestConversation(t *testing.T) {
	for _, tt := range formatTests() {
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{})
			c := serve(t, s, tt)
			h := newHistory(t, nil)
			require.NoError(t, h.SetSystem(convo.System("rules <&>")))
			require.NoError(t, h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object","properties":{"n":{"type":"number"}}}`}))
			for turn := range 6 {
				s.Script(
					provider.Answer{Blocks: []provider.Block{provider.Thinking("thought é one"), provider.Text("I read both of them, naïvely."), provider.Call{Name: "read", Arguments: `{"n":1.0}`}, provider.Call{Name: "read", Arguments: `{"n":12345678901234567890}`}}},
					provider.Answer{Blocks: []provider.Block{provider.Thinking("thought two"), provider.Call{Name: "read"}}},
					provider.Answer{Blocks: []provider.Block{provider.Text(fmt.Sprint("answer ", turn))}},
				)
				mustAppend(t, h, convo.User("question"))
				for calls := 1; calls > 0; {
					reply, err := h.Do(t.Context(), c.send)
					require.NoError(t, err)
					require.Nil(t, reply.CutOff)
					assert.Positive(t, reply.Usage.Input)
					calls = len(reply.OpenCalls())
					for _, call := range reply.OpenCalls() {
						mustAppend(t, h, convo.Result(call, "result"))
					}
				}
			}
			assert.Empty(t, s.Refused())
			all := s.Requests()
			require.Len(t, all, 18)
			last := all[len(all)-1]
			assert.Positive(t, last.Usage.CacheRead)
			for _, want := range []string{"naïvely", "answer 4", "12345678901234567890", "1.0"} {
				assert.Contains(t, string(last.Body), want)
			}
			assert.Len(t, h.Snapshot().Messages(), 1+6*7)
		})
	}
}

// A provider whose window is smaller than the host thinks refuses requests, and the
// conversation goes on.
func TestConversation_TooLong(t *testing.T) {
	for _, tt := range formatTests() {
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{Window: 2000})
			c := serve(t, s, tt)
			h := newHistory(t, &convo.Options{Limits: convo.Limits{Window: 100_000}})
			for range 30 {
				mustAppend(t, h, convo.User(strings.Repeat("a question ", 60)))
				reply, err := h.Do(t.Context(), c.send)
				require.NoError(t, err)
				assert.Equal(t, "ok", reply.Text())
			}
			refused := s.Refused()
			require.NotEmpty(t, refused)
			assert.Less(t, len(refused), 10)
		})
	}
}

// Do goes on with a paused answer until it is whole.
func TestConversation_Paused(t *testing.T) {
	for _, tt := range formatTests() {
		if !strings.HasPrefix(tt.name, "anthropic") {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			s := provider.New(provider.Options{})
			c := serve(t, s, tt)
			search := provider.Served{ID: "srvtoolu_1", Name: "web_search", Input: `{"query":"q"}`}
			found := provider.Served{ID: "srvtoolu_1", Name: "web_search", Result: `[]`}
			s.Script(
				provider.Answer{Blocks: []provider.Block{provider.Thinking("h"), provider.Text("one"), search}},
				provider.Answer{Blocks: []provider.Block{found, provider.Thinking("h"), provider.Text("two")}},
			)
			h := newHistory(t, nil)
			mustAppend(t, h, convo.User("q"))
			reply, err := h.Do(t.Context(), c.send)
			require.NoError(t, err)
			assert.Equal(t, "one\ntwo", reply.Text())
			assert.Len(t, s.Requests(), 2)
			mustAppend(t, h, convo.User("q"))
			_, err = h.Do(t.Context(), c.send)
			require.NoError(t, err)
			assert.Empty(t, s.Refused())
			last := s.Requests()[2]
			assert.Equal(t, 2, strings.Count(string(last.Body), `"type":"thinking"`))
		})
	}
}

// What was made after thinking was cleared is not bound when the thinking is back.
func TestConversation_ClearedThinkingComesBack(t *testing.T) {
	s := provider.New(provider.Options{})
	server := httptest.NewServer(s)
	defer server.Close()
	c := client{format: wire.Anthropic{Model: "claude-opus-5-5"}, url: server.URL + "/v1/messages", params: map[string]any{"model": "claude-opus-5-5", "max_tokens": 99}}
	h := newHistory(t, nil)
	turn := func(blocks ...provider.Block) {
		s.Script(provider.Answer{Blocks: blocks})
		mustAppend(t, h, convo.User("q"))
		_, err := h.Do(t.Context(), c.send)
		require.NoError(t, err)
	}
	turn(provider.Thinking("one"), provider.Text("a"))
	turn(provider.Text("b"))
	e, err := convo.ClearThinking{}.Compact(t.Context(), h.Snapshot(), convo.Goal{})
	require.NoError(t, err)
	r, err := h.Apply(h.Snapshot(), e)
	require.NoError(t, err)
	turn(provider.Thinking("two"), provider.Text("c"))
	require.NoError(t, h.Undo(r))
	turn(provider.Text("d"))
	assert.Empty(t, s.Refused())
}
