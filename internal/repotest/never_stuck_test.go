package repotest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
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
		calls = append(calls, callOf(fmt.Sprint("c", i)))
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

// blockRound is a call and its result: n blocks that hold about size tokens, and more.
func blockRound(n, size int, more ...convo.Part) []convo.Message {
	r := convo.ToolResult{CallID: "c", Parts: more}
	for range n {
		r.Parts = append(r.Parts, convo.Opaque{Format: "f", JSON: `{"type":"resource","text":"` + words(size/n) + `"}`})
	}
	return []convo.Message{convo.User("go"), convo.Assistant("", callOf("c")), {Role: convo.RoleTool, Parts: []convo.Part{r}}}
}

var hostiles = []hostile{
	{"a result", func(n int) []convo.Message { return hostileRound(1, n) }, true},
	{"a result and a user", func(n int) []convo.Message { return append(hostileRound(1, n), convo.User("and?")) }, true},
	{"a few results", func(n int) []convo.Message { return hostileRound(1+n%7, n) }, true},
	{"many results", func(n int) []convo.Message { return hostileRound(min(1+n/50, 500), n) }, false},
	{"a block in a result", func(n int) []convo.Message { return blockRound(1, n) }, true},
	{"blocks and text in a result", func(n int) []convo.Message {
		return blockRound(1+n%7, n, convo.Text(words(n/2)), convo.Text("so"))
	}, true},
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
// names what cannot be cut. What the error says first helps, or the next one does,
// and then the next smaller append works.
func TestNeverStuck(t *testing.T) {
	appends := long.Or(4_000, 100_000)
	s := &stuck{rng: rand.New(rand.NewPCG(13, 3)), outcomes: map[string]int{}}
	for n := 0; n < appends; n += 40 {
		s.begin(t)
		for range 40 {
			s.append(t)
		}
		require.NoError(t, s.h.Close())
	}
	t.Logf("of %d appends: %v", appends, s.outcomes)
	for _, o := range []string{"fits as it is", "compacted", "cut at append", "results cut", "floor", "Rewind", "Rewind, called again", "Unpin",
		"Restore", "SetSystem", "SetEphemeral", "Tools", "Unqueue"} {
		require.Positive(t, s.outcomes[o], o)
	}
}

// A stuck tries to get a conversation stuck.
type stuck struct {
	rng      *rand.Rand
	h        *convo.History
	opts     *convo.Options
	limits   convo.Limits      // in force
	calm     bool              // nothing but hostile appends
	earlier  []*convo.Snapshot // whose requests fitted
	outcomes map[string]int
}

// begin begins another conversation.
func (s *stuck) begin(t *testing.T) {
	s.opts = &convo.Options{Limits: convo.Limits{Window: []int{1000, 2000, 8000}[s.rng.IntN(3)]}}
	s.opts.Overheads.Media = func(m convo.Media) int { // the address says how many
		var n int
		_, _ = fmt.Sscanf(m.URL, "http://x/%d", &n)
		return n
	}
	if s.rng.IntN(3) == 0 {
		s.opts.MaxResult = -1
	}
	if s.rng.IntN(3) == 0 {
		s.opts.KeepOriginals = -1
	}
	if s.rng.IntN(3) == 0 {
		s.opts.Roles = convo.Relaxed()
	}
	if s.rng.IntN(4) == 0 {
		s.opts.Limits.High = s.opts.Limits.Window / 2
		s.opts.Limits.Low = s.opts.Limits.High - 1 - s.rng.IntN(s.opts.Limits.High/4)
		s.opts.Limits.Soft = s.opts.Limits.High
	}
	if s.rng.IntN(3) == 0 {
		sum := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			if s.rng.IntN(4) == 0 {
				return convo.Summary{}, errors.New("no model")
			}
			return convo.Summary{Text: words(s.rng.IntN(req.MaxTokens))}, nil
		})
		s.opts.Strategy = convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: sum, Window: -1}, convo.Truncate{})
	}
	s.limits = s.opts.Limits
	s.calm = s.rng.IntN(3) == 0
	s.h = historyOf(t, s.opts, convo.System("guide"), convo.User("hello"), convo.Assistant("hi"))
	s.earlier = []*convo.Snapshot{s.h.Snapshot()}
}

// size returns a size for an append.
func (s *stuck) size() int { return hostileSize(s.rng, s.opts.Limits.Window) }

// newest returns the role of the newest message.
func (s *stuck) newest() convo.Role {
	e, _ := s.h.Snapshot().At(s.h.Len() - 1)
	return e.Message.Role
}

// disturb does something else than to append. The request need not fit afterwards.
func (s *stuck) disturb(t *testing.T) {
	t.Helper()
	h, rng := s.h, s.rng
	any := func() convo.ID {
		e, _ := h.Snapshot().At(rng.IntN(h.Len()))
		return e.ID
	}
	switch rng.IntN(12) {
	case 0, 1, 2, 3:
		at := h.Snapshot()
		if rng.IntN(4) == 0 {
			at = s.earlier[rng.IntN(len(s.earlier))]
		}
		if err := h.RecordUsage(at, convo.Usage{Input: at.Tokens()*(30+rng.IntN(200))/100 + rng.IntN(200)}); err != nil {
			require.ErrorIs(t, err, convo.ErrStale)
		}
	case 4, 5:
		if err := h.Pin(any()); err != nil {
			require.ErrorContains(t, err, "system")
		}
	case 6:
		require.NoError(t, h.SetEphemeral(convo.User(words(s.size()/4))))
	case 7:
		require.NoError(t, h.SetSystem(convo.System(words(s.size()/4))))
	case 8:
		limits := s.opts.Limits
		limits.Window = limits.Window * (50 + rng.IntN(100)) / 100
		limits.High, limits.Soft, limits.Low = 0, 0, 0
		if rng.IntN(3) == 0 {
			limits.Tools = rng.IntN(limits.Window)
		}
		s.limits = limits
		if rng.IntN(2) == 0 {
			require.NoError(t, h.SetLimits(limits))
		} else {
			require.NoError(t, h.SetModel([]string{"", "a", "b"}[rng.IntN(3)], limits))
		}
	case 9:
		at := h.Snapshot()
		_, _, _ = h.Recover(t.Context(), at, fmt.Errorf("maximum context length is %d tokens, you requested %d", at.Tokens()*(40+rng.IntN(80))/100, at.Tokens()))
	case 10:
		require.NoError(t, h.Queue(convo.User(words(s.size()))))
	case 11:
		_, _ = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{any()}, Summary: &convo.Summary{Text: words(s.size() / 8)}})
	}
}

// append makes one hostile append, after which the conversation must go on.
func (s *stuck) append(t *testing.T) {
	t.Helper()
	h, calm := s.h, s.calm
	if !calm && s.rng.IntN(2) == 0 {
		s.disturb(t)
	}
	kind := hostiles[s.rng.IntN(len(hostiles))]
	size := s.size()
	msgs := kind.msgs(size)
	if len(msgs) > 1 && s.newest() == convo.RoleTool && s.rng.IntN(2) == 0 {
		msgs = msgs[1:] // in the same turn
	}
	for s.newest() == convo.RoleUser || s.newest() == convo.RoleTool && msgs[0].Role == convo.RoleUser {
		mustAppend(t, h, convo.Assistant("seen")) // and then what is queued
	}
	id := mustAppend(t, h, msgs...)
	if !calm && s.rng.IntN(4) == 0 {
		s.disturb(t)
	}
	for i := range msgs {
		if e, _ := h.Snapshot().Find(id - convo.ID(i)); e.Missing > 0 {
			s.outcomes["cut at append"]++
			break
		}
	}
	what := fmt.Sprintf("%s of %d in %d", kind.name, size, s.opts.Limits.Window)
	_, r, err := h.Prepare(t.Context())
	switch {
	case err == nil && r.Outcome == convo.OutcomeNotNeeded:
		s.outcomes["fits as it is"]++
	case err == nil && len(r.Shortened) > 0:
		s.outcomes["results cut"]++
	case err == nil:
		s.outcomes["compacted"]++
	default:
		s.outcomes["floor"]++
		if floor, ok := errors.AsType[*convo.FloorError](err); ok && calm {
			require.False(t, kind.cuttable, "%s: %v", what, err)
			require.Greater(t, floor.Newest+floor.Calls+floor.Users+floor.Round, floor.Floor/2, "%v", floor)
			require.Regexp(t, "Rewind.* takes", err.Error())
		}
		s.help(t, err, what)
		h = s.h // there may have been a restart
		if newest := s.newest(); newest == convo.RoleUser || newest == convo.RoleTool {
			mustAppend(t, h, convo.Assistant("seen"))
		}
		if s.newest() != convo.RoleUser {
			mustAppend(t, h, convo.User("something smaller"))
		}
		if _, r, err = h.Prepare(t.Context()); err != nil {
			s.help(t, err, what)
			h = s.h
		}
	}
	require.True(t, r.Fits || err != nil)
	require.LessOrEqual(t, h.Status().Upper, h.Status().Limit, what)
	s.earlier = append(s.earlier, h.Snapshot())
}

// help does what errors of Prepare say first, until there is none.
func (s *stuck) help(t *testing.T, err error, what string) {
	t.Helper()
	if s.rng.IntN(4) == 0 {
		s.restart(t)
		if _, _, err = s.h.Prepare(t.Context()); err == nil {
			return
		}
	}
	for range 12 {
		_, ok := errors.AsType[*convo.FloorError](err)
		require.True(t, ok, "%s: %v", what, err)
		s.outcomes[s.follow(t, err)]++
		if _, _, err = s.h.Prepare(t.Context()); err == nil {
			return
		}
	}
	require.NoError(t, err, what)
}

// restart saves the conversation and restores it.
func (s *stuck) restart(t *testing.T) {
	t.Helper()
	data, err := json.Marshal(s.h.Snapshot())
	require.NoError(t, err)
	var saved convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &saved))
	opts := *s.opts
	opts.Limits = s.limits
	restored, err := convo.Restore(&saved, &opts)
	require.NoError(t, err)
	require.NoError(t, s.h.Close())
	s.h, s.earlier = restored, []*convo.Snapshot{restored.Snapshot()}
	s.outcomes["Restore"]++
}

// follow does what a FloorError says first, and returns what that was.
func (s *stuck) follow(t *testing.T, err error) string {
	t.Helper()
	h, before := s.h, s.h.Snapshot()
	_, text, _ := strings.Cut(err.Error(), ": cannot fit: ")
	_, text, _ = strings.Cut(text, ": ")
	share, _, _ := strings.Cut(text, ";")
	_, remedy, _ := strings.Cut(share, ": ")
	if unqueue := "call Unqueue, then "; strings.HasPrefix(remedy, unqueue) {
		require.NotEmpty(t, h.Unqueue(), "%v", err)
		s.outcomes["Unqueue"]++
		remedy = remedy[len(unqueue):]
	}
	verb, _, _ := strings.Cut(remedy, " ")
	switch {
	case verb == "Rewind":
		taken, err := h.Rewind(1)
		require.NoError(t, err)
		require.Equal(t, 1, taken)
	case verb == "Rewind(1),":
		var calls int
		_, err := fmt.Sscanf(remedy, "Rewind(1), called %d times, takes", &calls)
		require.NoError(t, err, remedy)
		for range calls {
			taken, err := h.Rewind(1)
			require.NoError(t, err)
			require.Equal(t, 1, taken)
		}
		verb = "Rewind, called again"
	case strings.HasPrefix(remedy, "Unpin"):
		require.NoError(t, h.Unpin(h.Snapshot().Pinned()...))
		verb = "Unpin"
	case verb == "SetSystem":
		require.NoError(t, h.SetSystem(convo.System("brief")))
	case verb == "SetEphemeral":
		require.NoError(t, h.SetEphemeral())
	case verb == "define":
		s.limits = convo.Limits{Window: h.Status().Limit, Reserve: -1}
		require.NoError(t, h.SetLimits(s.limits))
		verb = "Tools"
	default:
		t.Fatalf("%q of %v", remedy, err)
	}
	require.NotSame(t, before, h.Snapshot(), "%v", err)
	return verb
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
		{"a block of 10 MB in a result", blockRound(1, 2_000_000), ""},
		{"50,000 blocks in a result", blockRound(50_000, 2_000_000), ""},
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
