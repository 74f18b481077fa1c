package provider_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// A longRun is what a long conversation has shown.
type longRun struct {
	requests, refused, lostTurns int
	compactions                  int
	sent, left                   int // thinking blocks in requests, and left out of them
	input, cached                int // tokens
}

func (r longRun) String() string {
	return fmt.Sprintf("%d requests, %d refused, %d turns lost, %d compactions, %d thinking blocks sent and %d left out, %d %% of the input from the cache",
		r.requests, r.refused, r.lostTurns, r.compactions, r.sent, r.left, 100*r.cached/max(r.input, 1))
}

// talkLong has a conversation with a model that checks where its thinking
// stands. In each turn it thinks, calls two tools at once, thinks, calls one more, and
// answers; in every fifth it also searches, and its provider pauses.
func talkLong(t *testing.T, turns, window int, f wire.Anthropic, each func(h *convo.History)) (run longRun) {
	s := provider.New(provider.Options{Window: window})
	server := httptest.NewServer(s)
	defer server.Close()
	c := client{format: f, url: server.URL + "/v1/messages", params: map[string]any{"model": f.Model, "max_tokens": 99}}
	h, err := convo.New(&convo.Options{
		Limits:       convo.Limits{Window: window, Reserve: window / 15},
		OnCompaction: func(r convo.Report) { run.compactions += map[convo.Outcome]int{convo.OutcomeApplied: 1}[r.Outcome] },
	})
	require.NoError(t, err)
	require.NoError(t, h.SetSystem(convo.System("You keep the books.")))
	require.NoError(t, h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object","properties":{"n":{"type":"number"}}}`}))
	for turn := range turns {
		call := func(n int) provider.Block {
			return provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"n":%d}`, 10*turn+n)}
		}
		answers := []provider.Answer{
			{Blocks: []provider.Block{provider.Thinking(fmt.Sprint("first ", turn)), call(1), call(2)}},
			{Blocks: []provider.Block{provider.Thinking(fmt.Sprint("second ", turn)), provider.Text("One more."), call(3)}},
			{Blocks: []provider.Block{provider.Thinking(fmt.Sprint("third ", turn)), provider.Text(fmt.Sprint("The sum of ", turn, " is known."))}},
		}
		if turn%5 == 0 {
			id := fmt.Sprint("srvtoolu_", turn)
			answers = append(answers[:2],
				provider.Answer{Blocks: []provider.Block{provider.Thinking("searching"), provider.Served{ID: id, Name: "web_search", Input: `{"query":"q"}`}}},
				provider.Answer{Blocks: []provider.Block{provider.Served{ID: id, Name: "web_search", Result: `[]`}, provider.Thinking("found"), provider.Text("Found.")}})
		}
		s.Script(answers...)
		mustAppend(t, h, convo.User(fmt.Sprintf("question %d: %s", turn, strings.Repeat("and so on ", 10))))
		for calls := 1; calls > 0; {
			if each != nil {
				each(h)
			}
			reply, err := h.Do(t.Context(), func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
				req, err := f.Encode(s)
				for _, l := range req.Lost {
					if l.What == "reasoning" {
						run.left++
					}
				}
				if err != nil {
					return convo.Reply{}, err
				}
				return c.send(ctx, s)
			})
			if err != nil { // the rest of the script is for the next turn
				run.lostTurns++
				_, _ = h.Rewind(1)
				break
			}
			calls = len(reply.OpenCalls())
			for _, call := range reply.OpenCalls() {
				mustAppend(t, h, convo.Result(call, strings.Repeat("a line of a file that was read\n", 30)))
			}
		}
	}
	for _, r := range s.Requests() {
		run.requests++
		if r.Error != "" {
			run.refused++
			continue
		}
		run.sent += strings.Count(string(r.Body), `"type":"thinking"`)
		run.input += r.Usage.Input
		run.cached += r.Usage.CacheRead
	}
	return run
}

// A long conversation that is compacted again and again is never refused, and most
// of its thinking goes back. Without the check of bonds it ends at the first compaction.
func TestConversation_Long(t *testing.T) {
	turns, window := long.Or(40, 400), long.Or(7_500, 30_000)
	f := wire.Anthropic{Model: "claude-opus-5-5", Cache: true}
	bound := talkLong(t, turns, window, f, nil)
	t.Log("with bonds:           ", bound)
	requests := 0
	none := talkLong(t, turns, window, f, func(h *convo.History) { // ends all bonds
		requests++
		require.NoError(t, h.SetSystem(convo.System(fmt.Sprint("You keep the books. This is request ", requests, "."))))
	})
	t.Log("no thinking goes back:", none)
	f.Seals = wire.SealsUnchecked
	off := talkLong(t, turns, window, f, nil)
	t.Log("bonds ignored:        ", off)
	assert.Zero(t, bound.refused)
	assert.Zero(t, bound.lostTurns)
	assert.GreaterOrEqual(t, bound.compactions, turns/20)
	assert.Greater(t, bound.sent, bound.requests)
	assert.Less(t, none.sent, bound.sent/100, "only in the rest of a paused answer")
	assert.Greater(t, off.lostTurns, turns/4)
}
