package convo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A hostile append is one message, or a round of calls and results, of a size that
// may not fit.
type hostile struct {
	name string
	msgs func(size int) []convo.Message // size: about so many tokens

	// cuttable says that nothing of it can make a request impossible.
	cuttable bool
}

func words(tokens int) string { return strings.Repeat("word ", max(tokens, 1)) }

func hostileRound(n, size int) []convo.Message {
	var calls []convo.ToolCall
	for i := range n {
		calls = append(calls, callOf("c"+itoa(i)))
	}
	msgs := []convo.Message{convo.User("go"), convo.Assistant("", calls...)}
	for i, c := range calls {
		n := size / n
		if i%3 == 0 {
			n /= 10
		}
		msgs = append(msgs, convo.Result(c, words(n)))
	}
	return msgs
}

var hostiles = []hostile{
	{"a result", func(n int) []convo.Message { return hostileRound(1, n) }, true},
	{"a result and a user", func(n int) []convo.Message { return append(hostileRound(1, n), convo.User("and?")) }, true},
	{"a few results", func(n int) []convo.Message { return hostileRound(1+n%7, n) }, true},
	{"many results", func(n int) []convo.Message { return hostileRound(min(1+n/50, 500), n) }, false},
	{"a user message", func(n int) []convo.Message { return []convo.Message{convo.User(words(n))} }, false},
	{"an answer", func(n int) []convo.Message {
		return []convo.Message{convo.User("u"), convo.Assistant(words(n))}
	}, false},
	{"arguments", func(n int) []convo.Message {
		c := convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":"` + words(n) + `"}`}
		return []convo.Message{convo.User("u"), convo.Assistant("", c), convo.Result(c, "ok")}
	}, false},
	{"an image", func(n int) []convo.Message {
		image := convo.Media{MIME: "image/png", URL: fmt.Sprint("http://x/", n)}
		return []convo.Message{{Role: convo.RoleUser, Parts: []convo.Part{image}}}
	}, false},
	{"an image in a result", func(n int) []convo.Message {
		c := callOf("c")
		image := convo.Media{MIME: "image/png", URL: fmt.Sprint("http://x/", n)}
		r := convo.ToolResult{CallID: "c", Parts: []convo.Part{convo.Text(words(n)), image}}
		return []convo.Message{convo.User("u"), convo.Assistant("", c), {Role: convo.RoleTool, Parts: []convo.Part{r}}}
	}, false},
}

// hostileSize returns a size: mostly small, sometimes about the window, now and
// then far above it.
func hostileSize(rng *rand.Rand, window int) int {
	switch rng.IntN(8) {
	case 0:
		return window/2 + rng.IntN(window)
	case 1:
		return window * (1 + rng.IntN(4))
	}
	return 1 + rng.IntN(window/8)
}

// After any single append, Prepare gives a request that fits, or a FloorError that
// names what cannot be cut; after Rewind the next smaller append works.
func TestNeverStuck(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 3))
	outcomes := map[string]int{}
	appends := *modelOps / 20
	if *modelOps != defaultModelOps {
		appends = *modelOps
	}
	for appends > 0 {
		window := []int{1_000, 4_000, 16_000}[rng.IntN(3)]
		opts := &convo.Options{Limits: convo.Limits{Window: window}}
		opts.Overheads.Media = func(m convo.Media) int { // the address says how many
			var n int
			_, _ = fmt.Sscanf(m.URL, "http://x/%d", &n)
			return n
		}
		if rng.IntN(3) == 0 {
			opts.MaxResult = -1
		}
		if rng.IntN(3) == 0 {
			opts.KeepOriginals = -1
		}
		h := historyOf(t, opts, convo.System("guide"), convo.User("hello"), convo.Assistant("hi"))
		for range 40 {
			appends--
			checkNeverStuck(t, h, rng, window, outcomes)
		}
		require.NoError(t, h.Close())
	}
	t.Logf("%v", outcomes)
	for _, o := range []string{"fits as it is", "compacted", "cut at append", "results cut", "floor"} {
		require.Positive(t, outcomes[o], o)
	}
}

// checkNeverStuck makes one hostile append.
func checkNeverStuck(t *testing.T, h *convo.History, rng *rand.Rand, window int, outcomes map[string]int) {
	t.Helper()
	kind := hostiles[rng.IntN(len(hostiles))]
	size := hostileSize(rng, window)
	msgs := kind.msgs(size)
	if last, _ := h.Snapshot().At(h.Len() - 1); last.Message.Role != convo.RoleAssistant {
		mustAppend(t, h, convo.Assistant("seen"))
	}
	id := mustAppend(t, h, msgs...)
	for i := range msgs {
		if e, _ := h.Snapshot().Find(id - convo.ID(i)); e.Missing > 0 {
			outcomes["cut at append"]++
			break
		}
	}
	_, r, err := h.Prepare(t.Context())
	switch {
	case err == nil && r.Outcome == convo.OutcomeNotNeeded:
		outcomes["fits as it is"]++
	case err == nil && len(r.Cut) > 0:
		outcomes["results cut"]++
	case err == nil:
		outcomes["compacted"]++
	default:
		outcomes["floor"]++
		floor, ok := errors.AsType[*convo.FloorError](err)
		require.True(t, ok, "%s of %d in %d: %v", kind.name, size, window, err)
		require.False(t, kind.cuttable, "%s of %d in %d: %v", kind.name, size, window, err)
		require.Greater(t, floor.Newest+floor.Users+floor.Round, floor.Floor/2, "%v", floor)
		require.Contains(t, err.Error(), "Rewind")
		taken, err := h.Rewind(1)
		require.NoError(t, err)
		require.Equal(t, 1, taken)
		mustAppend(t, h, convo.User("something smaller"))
	}
	_, r, err = h.Prepare(t.Context())
	require.NoError(t, err)
	require.True(t, r.Fits)
	require.LessOrEqual(t, h.Status().Upper, h.Status().Limit, "%s of %d in %d", kind.name, size, window)
}

// The sizes that the property is about, in a window of 128,000 tokens.
func TestNeverStuck_Sizes(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		want string // of the error; empty: it fits
	}{
		{"a result of 10 MB", []convo.Message{convo.User("u"), convo.Assistant("", c), convo.Result(c, strings.Repeat("line of a log\n", 750_000))}, ""},
		{"500 parallel results", hostileRound(500, 500_000), ""},
		{"a user message of 2 MB", []convo.Message{convo.User(strings.Repeat("pasted text\n", 170_000))}, "the newest user message holds"},
		{"arguments", []convo.Message{convo.User("u"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":"` + words(40_000) + `"}`}),
			convo.Result(c, words(200_000))}, ""},
		{"an image of a million tokens", []convo.Message{{Role: convo.RoleUser, Parts: []convo.Part{convo.NewMedia("image/png", []byte("x"))}}}, "the newest user message holds"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := &convo.Options{Limits: convo.Limits{Window: 128_000}}
			opts.Overheads.Media = func(convo.Media) int { return 1_000_000 }
			h := historyOf(t, opts, convo.User("hello"), convo.Assistant("hi"))
			mustAppend(t, h, tt.msgs...)
			_, r, err := h.Prepare(t.Context())
			if tt.want == "" {
				require.NoError(t, err)
				require.True(t, r.Fits)
				return
			}
			require.ErrorContains(t, err, tt.want)
			taken, err := h.Rewind(1)
			require.NoError(t, err)
			require.Equal(t, 1, taken)
			mustAppend(t, h, convo.User("something smaller"))
			_, _, err = h.Prepare(t.Context())
			require.NoError(t, err)
		})
	}
}
