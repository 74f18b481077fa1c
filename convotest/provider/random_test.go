package provider_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// words is a random text.
func words(rng *rand.Rand) string {
	return fmt.Sprint("w", rng.IntN(1000), strings.Repeat(" word", rng.IntN(30)))
}

// randomAnswer is an answer of a model, perhaps with what models ought not to send.
func randomAnswer(rng *rand.Rand) (a provider.Answer) {
	add := func(b ...provider.Block) { a.Blocks = append(a.Blocks, b...) }
	call := func() provider.Block { return provider.Call{Name: "read", Arguments: `{"n":1.0}`} }
	if rng.IntN(3) > 0 {
		add(provider.Thinking(words(rng)))
	}
	switch rng.IntN(14) {
	case 0:
		add(provider.Text("\n\n"), call())
	case 1:
		add(call(), provider.Text(words(rng)))
	case 2:
		add(provider.Text(words(rng)), provider.Served{Name: "web_search", Input: `{"query":"q"}`, Result: `[]`}, provider.Text(words(rng)))
	case 3:
		add(provider.Served{Name: "web_search", Input: `{"query":"q"}`}, call())
	case 4:
		add(provider.Text(words(rng) + " "))
	case 5:
		add(provider.Text(""))
	case 6, 7, 8:
		add(provider.Text(words(rng)))
	case 9:
		add(provider.Text(words(rng)), call(), provider.Thinking(words(rng)), call())
	default:
		for range 1 + rng.IntN(3) {
			add(call())
		}
	}
	return a
}

// edit changes a conversation, or fails to.
func edit(rng *rand.Rand, h *convo.History, mark **convo.Snapshot, report *convo.Report) {
	ctx := context.Background()
	switch rng.IntN(16) {
	case 0:
		*report, _ = h.Compact(ctx, "")
	case 1:
		_ = h.Undo(*report)
	case 2:
		_ = h.SetSystem(convo.System(words(rng)))
	case 3:
		_ = h.SetEphemeral(convo.User(words(rng)))
	case 4:
		_ = h.SetEphemeral()
	case 5:
		*mark = h.Snapshot()
	case 6:
		if *mark != nil {
			_ = h.Rollback(*mark)
		}
	case 7, 8:
		s := h.Snapshot()
		if e, ok := s.At(rng.IntN(max(s.Len(), 1))); ok {
			*report, _ = h.Apply(s, convo.Edit{Rewrite: []convo.Rewrite{{ID: e.ID, Parts: []convo.Part{convo.Text(words(rng))}}}})
		}
	case 9:
		*report, _ = h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: words(rng)}})
	case 10:
		_, _ = h.Append(convo.System(words(rng)))
	case 11:
		_, _ = h.Rewind(1)
	}
}

// converse has a random conversation, each request of which is in one of some formats, and
// returns the requests.
func converse(t *testing.T, seed uint64, formats ...formatTest) []provider.Request {
	rng := rand.New(rand.NewPCG(seed, 3))
	s := provider.New(provider.Options{Window: 5000, Answer: func(provider.Request) provider.Answer { return randomAnswer(rng) }})
	server := httptest.NewServer(s)
	defer server.Close()
	opts := &convo.Options{Limits: convo.Limits{Window: 3000, Reserve: -1}}
	if seed%2 == 1 {
		opts.Roles = convo.Relaxed()
		opts.Strategy = convo.Chain(convo.ClearThinking{}, convo.Truncate{})
	}
	h := newHistory(t, opts)
	require.NoError(t, h.SetTools(convo.Tool{Name: "read", Schema: `{"type":"object","properties":{}}`}))
	var mark *convo.Snapshot
	var report convo.Report
	for range 40 {
		edit(rng, h, &mark, &report)
		_, _ = h.Append(convo.User(words(rng)))
		f := formats[rng.IntN(len(formats))]
		c := f.client
		c.url = server.URL + f.path
		reply, err := h.Do(t.Context(), func(ctx context.Context, snap *convo.Snapshot) (convo.Reply, error) {
			reply, err := c.send(ctx, snap)
			if rng.IntN(4) == 0 {
				edit(rng, h, &mark, &report)
			}
			return reply, err
		})
		if err != nil {
			continue
		}
		for _, call := range reply.OpenCalls() {
			if rng.IntN(5) > 0 {
				_, _ = h.Append(convo.Result(call, words(rng)))
			}
		}
		if rng.IntN(3) > 0 {
			_, err := h.AnswerOpenCalls("no")
			require.NoError(t, err)
		}
	}
	return s.Requests()
}

// No format writes a request that its provider refuses, whatever happens to the
// conversation, also if it goes on with another provider. With bonds ignored, Anthropic refuses many.
func TestConversation_Random(t *testing.T) {
	conversations := long.Or(2, 8)
	all := map[string][]formatTest{"all": formatTests()}
	for _, tt := range formatTests() {
		all[tt.name] = []formatTest{tt}
	}
	for name, formats := range all {
		t.Run(name, func(t *testing.T) {
			requests := 0
			for seed := range uint64(conversations) {
				for _, r := range converse(t, seed, formats...) {
					if requests++; r.Error != "" {
						t.Fatalf("seed %d: %s\n%s", seed, r.Error, r.Body)
					}
				}
			}
			t.Logf("%d requests", requests)
			assert.Greater(t, requests, 20*conversations)
		})
	}
	t.Run("bonds ignored", func(t *testing.T) {
		tt := formatTests()[0]
		tt.client.format = wire.Anthropic{Model: "claude-opus-5-5", Seals: wire.SealsUnchecked}
		refused := 0
		for _, r := range converse(t, 0, tt) {
			if strings.Contains(r.Error, "bound to a different conversation") {
				refused++
			}
		}
		assert.Greater(t, refused, 3)
	})
}
