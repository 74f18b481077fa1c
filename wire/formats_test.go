package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/wire"
)

// formats are all of the package, with the settings that differ in what they
// write.
var formats = map[string]wire.Format{
	"openai chat":   wire.OpenAIChat{},
	"openai chat 2": wire.OpenAIChat{Developer: true, Audio: true},
	"deepseek":      wire.OpenAIChat{Dialect: wire.DeepSeek},
	"mistral":       wire.OpenAIChat{Dialect: wire.Mistral},
	"ollama":        wire.OpenAIChat{Dialect: wire.Ollama},
	"strict":        wire.OpenAIChat{Dialect: wire.StrictAlternation},
	"responses":     wire.OpenAIResponses{},
	"responses 2":   wire.OpenAIResponses{Developer: true, Model: "m1"},
	"responses 3":   wire.OpenAIResponses{Plain: true},
	"anthropic":     wire.Anthropic{},
	"anthropic 2":   wire.Anthropic{Model: "m1", Cache: true, UserLast: true},
	"gemini":        wire.Gemini{},
	"gemini 2":      wire.Gemini{Model: "m1"},
	"gemini 3":      wire.Gemini{Model: "gemini-3-x"},
	"converse":      wire.Converse{},
	"converse 2":    wire.Converse{Model: "m1", ResultsAlone: true, Cache: true},
}

var requests = flag.Int("wire.requests", 16_000, "requests that TestFormats_Random encodes")

var origins = []convo.Origin{
	{}, {Format: "openai-chat", Model: "m1"}, {Format: "deepseek", Model: "m1"}, {Format: "ollama", Model: "m1"}, {Format: "mistral"},
	{Format: "anthropic", Model: "m1"}, {Format: "gemini", Model: "m1"}, {Format: "converse", Model: "m1"}, {Format: "openai-responses", Model: "m1"},
}

// strategies that reduce the random conversations.
var strategies = []convo.CompactionStrategy{
	convo.Truncate{}, convo.SlidingWindow{Keep: 6}, convo.ClearToolResults{KeepLast: -1, MinFreed: -1}, convo.Summarize{},
	convo.Summarize{With: convotest.Echo{}, MaxTokens: 80, Window: -1},
	convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{KeepTokens: 50}, convo.Truncate{}),
}

// Whatever a conversation went through, each format writes what its Check
// accepts, the same bytes each time, and a request that begins as the one
// before it did.
func TestFormats_Random(t *testing.T) {
	names := slices.Sorted(maps.Keys(formats))
	count := map[string]int{}
	total, seed := 0, uint64(0)
	var entries, reduced, assistantFirst, openCalls, stable int
	for ; total < *requests; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Strategy: strategies[rng.IntN(len(strategies))]})
		require.NoError(t, err)
		g := &generator{rng: rng, h: h, origins: origins}
		for range rng.IntN(3) {
			h.Append(convo.System(g.text()))
		}
		var before map[string]wire.Request
		for range 4 {
			for range 1 + rng.IntN(12) {
				g.step()
			}
			changed, ephemeral := disturb(t, g)
			s := h.Snapshot()
			entries += s.Len()
			if changed {
				reduced++
				before = nil
			}
			if h.Status().OpenCalls > 0 {
				openCalls++
			}
			if e, ok := firstOther(s); ok && e.Message.Role == convo.RoleAssistant {
				assistantFirst++
			}
			now := map[string]wire.Request{}
			for _, name := range names {
				r, err := formats[name].Encode(s)
				if err != nil {
					require.ErrorIs(t, err, wire.ErrEmpty)
					continue
				}
				body := r.Body()
				if !json.Valid(body) {
					t.Fatalf("seed %d, %s: not JSON: %s", seed, name, body)
				}
				if found := formats[name].Check(body); len(found) > 0 {
					t.Fatalf("seed %d, %s: %v\n%s", seed, name, found, body)
				}
				again, _ := formats[name].Encode(s)
				if !bytes.Equal(body, again.Body()) {
					t.Fatalf("seed %d, %s: two encodings of one snapshot", seed, name)
				}
				if old, ok := before[name]; ok {
					stable++
					if share := wire.PrefixShare(old, r); share != 1 {
						t.Fatalf("seed %d, %s: begins as the request before by %v\n%s\n%s", seed, name, share, old.Body(), body)
					}
				}
				count[name]++
				total++
				now[name] = r
			}
			before = nil
			if h.Status().OpenCalls == 0 && !ephemeral && endsWithUser(s) {
				before = now
			}
		}
		require.NoError(t, h.SetEphemeral())
	}
	t.Logf("%d requests of %d conversations (%v): %d reduced, %d begin with the assistant, %d with open calls, %d compared with the one before",
		total, seed, count, reduced, assistantFirst, openCalls, stable)
	assert.Positive(t, reduced)
	assert.Positive(t, assistantFirst)
	assert.Positive(t, openCalls)
	assert.Positive(t, stable)
}

func firstOther(s *convo.Snapshot) (convo.Entry, bool) {
	for _, e := range s.All() {
		if e.Message.Role != convo.RoleSystem {
			return e, true
		}
	}
	return convo.Entry{}, false
}

// endsWithUser reports whether no marker stands in for a user turn at the end.
func endsWithUser(s *convo.Snapshot) bool {
	e, ok := s.At(s.Len() - 1)
	return ok && (e.Message.Role == convo.RoleTool || e.Message.Role == convo.RoleUser && strings.TrimSpace(e.Message.Text()) != "")
}

// disturb does now and then what makes requests hard, and tells whether the
// next request may begin in another way than the last, and whether it shows
// ephemeral messages.
func disturb(t *testing.T, g *generator) (changed, ephemeral bool) {
	h := g.h
	require.NoError(t, h.SetEphemeral())
	switch g.n(6) {
	case 0: // by the strategy
		r, _ := h.Compact(t.Context(), "")
		return r.Outcome == convo.Applied, false
	case 1: // by hand, so that anything may come first
		s := h.Snapshot()
		var e convo.Edit
		for x := range s.Exchanges() {
			if !x.Floor && g.n(3) == 0 {
				e.Drop = append(e.Drop, x.IDs()...)
			}
		}
		if g.n(2) == 0 && len(e.Drop) > 0 {
			e.Summary = &convo.Summary{Text: "what went before"}
		}
		r, _ := h.Apply(s, e)
		return r.Outcome == convo.Applied, false
	case 2:
		require.NoError(t, h.SetEphemeral(convo.User("it is "+g.text())))
		return true, true
	}
	return false, false
}

// What a summarizer sends is accepted too.
func TestFormats_SummarizersRequest(t *testing.T) {
	rec := new(convotest.Recorder)
	h, err := convo.New(&convo.Options{Roles: convo.Relaxed(), Strategy: convo.Summarize{With: rec, Window: -1}})
	require.NoError(t, err)
	g := &generator{rng: rand.New(rand.NewPCG(1, 1)), h: h, origins: origins}
	for range 400 {
		g.step()
		if g.n(20) == 0 {
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 100}))
			_, _ = h.Compact(t.Context(), "")
		}
	}
	reqs := rec.Requests()
	require.NotEmpty(t, reqs)
	for name, f := range formats {
		for _, req := range reqs {
			lists := [][]convo.Message{{convo.User(req.Prompt)}}
			if req.Sent != nil {
				lists = append(lists, append(req.Sent.Messages(), convo.User(req.Instruction)))
			}
			for _, msgs := range lists {
				r, err := f.Encode(convo.NewSnapshot(msgs))
				require.NoError(t, err)
				assert.Empty(t, f.Check(r.Body()), name)
			}
		}
	}
}
