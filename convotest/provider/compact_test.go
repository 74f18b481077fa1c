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
	answer string         // to requests to compact; "": that of the server
}

func newLab(t *testing.T, tt compactTest, opts convo.Options, links ...convo.CompactionStrategy) *lab {
	l := &lab{tt: tt, s: provider.New(provider.Options{})}
	server := httptest.NewServer(l.s)
	t.Cleanup(server.Close)
	l.url = server.URL
	opts.Strategy = convo.Chain(append([]convo.CompactionStrategy{wire.NativeSummary{Format: tt.format, Post: l.post}}, links...)...)
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
	if l.answer != "" {
		return []byte(l.answer), nil
	}
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
	mustAppend(t, l.h, convo.User(question))
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
			mustAppend(t, l.h, convo.Result(call, strings.Repeat("result ", 20)))
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

// When the provider says no, or answers with something else than one compaction, the next
// strategy makes room, the report has the provider's words, and the conversation goes on.
func TestCompact_Refused(t *testing.T) {
	fault := func(kind, code, text string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q,"details":{"error_code":%q}},"request_id":"req_1"}`, kind, text, code)
	}
	message := func(content, stop string) string {
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[%s],"stop_reason":%q,"usage":{"input_tokens":0,"output_tokens":0}}`, content, stop)
	}
	item := `{"id":"cmp_1","type":"compaction","encrypted_content":"ZW5j"}`
	for _, tt := range []struct {
		format         int // index in compactTests
		answer, reason string
	}{
		{0, fault("invalid_request_error", "compaction_block_misplaced", "messages.2.content.0: `compaction` block must be sent first"), "must be sent first"},
		{0, fault("invalid_request_error", "compaction_block_ambiguous", "messages: more than one `compaction` block"), "more than one"},
		{0, fault("invalid_request_error", "compaction_signature_invalid", "messages.0.content.0.signature: Invalid `signature` in `compaction` block"), "Invalid `signature`"},
		{0, fault("invalid_request_error", "compaction_content_mismatch", "messages.0.content.0: the content does not match its signature"), "does not match"},
		{0, fault("invalid_request_error", "compaction_incomplete_turn", "messages: the last `assistant` turn ends in a tool call with no result"), "no result"},
		{0, fault("invalid_request_error", "compaction_nothing_to_summarize", "messages: there is nothing to summarize"), "nothing to summarize"},
		{0, fault("overloaded_error", "compaction_unavailable", "Compaction is temporarily unavailable."), "temporarily unavailable"},
		{0, message(`{"type":"compaction","content":null}`, "compaction"), "failed"},
		{0, message("", "end_turn"), "0 blocks"},
		{0, message(`{"type":"compaction","content":"a","signature":"s"},{"type":"compaction","content":"b","signature":"s"}`, "compaction"), "2 blocks"},
		{0, "<html>502 Bad Gateway</html>", "JSON"},
		{1, `{"error":{"message":"The server is currently unable to compact this conversation.","type":"server_error","param":null,"code":"server_error"}}`, "unable to compact"},
		{1, `{"id":"resp_1","object":"response.compaction","output":[]}`, "0"},
		{1, `{"id":"resp_1","object":"response.compaction","output":[` + item + "," + item + `]}`, "2"},
	} {
		t.Run(compactTests[tt.format].name+" "+tt.reason, func(t *testing.T) {
			l := newLab(t, compactTests[tt.format], convo.Options{}, convo.Truncate{})
			for turn := range 6 {
				l.turn(t, fmt.Sprintf("question %d", turn))
			}
			l.answer = tt.answer
			r, err := l.h.Compact(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
			require.Len(t, r.Links, 2)
			require.ErrorContains(t, r.Links[0].Cause, tt.reason)
			assert.Equal(t, "extract", r.Links[1].Strategy)
			assert.NotEmpty(t, l.posted)
			for turn := range 3 {
				l.turn(t, fmt.Sprintf("question %d", 6+turn))
			}
			assert.Empty(t, l.s.Refused())
		})
	}
}

// After ClearThinking, the reasoning that stays is sent and accepted.
func TestClearThinking_RoundTrip(t *testing.T) {
	l := newLab(t, compactTests[0], convo.Options{})
	h := newHistory(t, &convo.Options{Strategy: convo.ClearThinking{KeepTurns: 2}})
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
