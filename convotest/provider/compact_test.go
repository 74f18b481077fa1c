package provider_test

import (
	"bytes"
	"context"
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

// A compactTest is a format whose provider compacts.
type compactTest struct {
	name    string
	format  wire.Compacter
	path    string // of requests
	compact string // of requests to compact
	params  map[string]any
}

var compactTests = []compactTest{
	{
		"anthropic", wire.Anthropic{Model: "claude-opus-5-5", Betas: true, Cache: true}, "/v1/messages", "/v1/messages",
		map[string]any{"model": "claude-opus-5-5", "max_tokens": 99},
	},
	{
		"responses", wire.OpenAIResponses{Model: "gpt-5.5"}, "/v1/responses", "/v1/responses/compact",
		map[string]any{"model": "gpt-5.5", "store": false, "include": []string{"reasoning.encrypted_content"}},
	},
}

// A lab is a conversation with a provider that compacts.
type lab struct {
	tt     compactTest
	s      *provider.Server
	url    string
	h      *convo.History
	posted []wire.Request // to compact
}

func newLab(t *testing.T, tt compactTest, opts convo.Options, links ...convo.CompactionStrategy) *lab {
	l := &lab{tt: tt, s: provider.New(provider.Options{})}
	server := httptest.NewServer(l.s)
	t.Cleanup(server.Close)
	l.url = server.URL
	opts.Strategy = convo.Chain(append([]convo.CompactionStrategy{convo.NativeSummary{With: wire.NativeSummarizer(tt.format, l.post)}}, links...)...)
	var err error
	l.h, err = convo.New(&opts)
	require.NoError(t, err)
	require.NoError(t, l.h.SetSystem(convo.System("Rules.")))
	require.NoError(t, l.h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object"}`}))
	return l
}

// post sends a request to compact.
func (l *lab) post(ctx context.Context, r wire.Request) ([]byte, error) {
	l.posted = append(l.posted, r)
	params := maps.Clone(l.tt.params)
	delete(params, "store")
	delete(params, "include")
	body, err := r.With(params)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+l.tt.compact, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range r.Headers {
		post.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(post)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// turn appends a question and answers it, with a round of tool calls.
func (l *lab) turn(t *testing.T, question string) (reports []convo.Report) {
	t.Helper()
	l.script(question)
	_, err := l.h.Append(convo.User(question))
	require.NoError(t, err)
	c := client{format: l.tt.format.(interface {
		wire.Format
		wire.Streamer
	}), url: l.url + l.tt.path, params: l.tt.params}
	for calls := 1; calls > 0; {
		reply, err := l.h.Do(t.Context(), c.send)
		require.NoError(t, err)
		reports = append(reports, reply.Reports...)
		calls = len(reply.OpenCalls())
		for _, call := range reply.OpenCalls() {
			_, err := l.h.Append(convo.Result(call, strings.Repeat("result ", 20)))
			require.NoError(t, err)
		}
	}
	return reports
}

// compacts makes the server answer requests to compact with blocks, and all others with a
// turn.
func (l *lab) script(question string) {
	l.s.Script(
		provider.Answer{Blocks: []provider.Block{provider.Thinking("what to read for " + question), provider.Text("I read."), provider.Call{Name: "read", Arguments: `{"n":1.0}`}}},
		provider.Answer{Blocks: []provider.Block{provider.Thinking("what it says"), provider.Text("The answer to " + question)}},
	)
}

func (l *lab) lastBody() string {
	all := l.s.Requests()
	return string(all[len(all)-1].Body)
}

// After a compaction by the provider, the conversation goes on for many turns without a
// refusal, and the reasoning of the turns that stayed is sent.
func TestCompact_RoundTrip(t *testing.T) {
	for _, tt := range compactTests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, tt, convo.Options{})
			for turn := range 60 {
				if turn%6 == 5 {
					l.s.Script(provider.Answer{Blocks: []provider.Block{provider.Text(fmt.Sprintf("Summary %d of the conversation.", turn))}})
					thoughts := strings.Count(l.lastBody(), `"type":"thinking"`) + strings.Count(l.lastBody(), `"type":"reasoning"`)
					r, err := l.h.Compact(t.Context(), "")
					require.NoError(t, err)
					require.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
					assert.Equal(t, "native", r.Links[0].Strategy)
					assert.Zero(t, r.Released, "%v", r)
					assert.Positive(t, thoughts)
					sum, ok := l.h.Snapshot().Summary()
					require.True(t, ok)
					assert.NotEmpty(t, sum.Native.Items)
					assert.NotEmpty(t, sum.Text)
				}
				for _, r := range l.turn(t, fmt.Sprintf("question %d", turn)) {
					require.NotEqual(t, convo.OutcomeApplied, r.Outcome)
				}
				if turn%6 == 5 {
					body := l.lastBody()
					assert.Equal(t, 1, strings.Count(body, `"type":"compaction"`))
					kept := strings.Count(body, `"type":"thinking"`) + strings.Count(body, `"type":"reasoning"`)
					assert.Greater(t, kept, 2, "the kept turn has its reasoning")
				}
			}
			assert.Empty(t, l.s.Refused())
			assert.Len(t, l.posted, 10)
			require.Empty(t, l.h.Snapshot().Unbound())
		})
	}
}

// After ClearThinking, the reasoning that stays is sent and accepted.
func TestClearThinking_RoundTrip(t *testing.T) {
	l := newLab(t, compactTests[0], convo.Options{})
	h, err := convo.New(&convo.Options{Strategy: convo.ClearThinking{KeepTurns: 2}})
	require.NoError(t, err)
	l.h = h
	for turn := range 30 {
		if turn%5 == 4 {
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			assert.NotEmpty(t, r.Rewritten)
			assert.Empty(t, h.Snapshot().Unbound())
		}
		l.turn(t, fmt.Sprintf("question %d", turn))
		if turn%5 == 4 {
			assert.Equal(t, 5, strings.Count(l.lastBody(), `"type":"thinking"`), "two for each of two turns, and one of this turn")
		}
	}
	assert.Empty(t, l.s.Refused())
}
