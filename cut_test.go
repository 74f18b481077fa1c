package convo_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// In a chat, the default keeps what the user said before the newest messages: far more of it
// than a trim to the same size does.
func TestDefault_UsersWordsOfAChat(t *testing.T) {
	facts := func(strategy convo.CompactionStrategy) (n int) {
		h := historyOf(t, windowOf(4000, strategy))
		for i := range 200 {
			mustAppend(t, h, convo.User(fmt.Sprintf("My friend number %d lives in street %d.", i, 7000+i)))
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			mustAppend(t, h, convo.Assistant(fmt.Sprint("Noted, ", i, ". ", strings.Repeat("That is a fine street. ", 10))))
		}
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		assert.LessOrEqual(t, r.TokensAfter, 4000/2, "%v", r)
		for _, e := range h.Snapshot().All() {
			if e.Message.Role == convo.RoleUser {
				n++
			}
		}
		return n
	}
	trim := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (e convo.Edit, err error) {
		left := s.Tokens()
		for x := range s.Exchanges() {
			if left > g.Target && !x.Floor {
				e.Drop = append(e.Drop, x.IDs()...)
				left -= x.Tokens
			}
		}
		return e, nil
	})
	assert.Greater(t, facts(nil), 2*facts(trim))
}

// Whether a cut drops anything is known without it if more has to leave than the user's words.
func TestCut_DropsAny(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 2))
	text := func(most int) string { return strings.Repeat("x", 1+rnd.IntN(most)) }
	answers := make(map[bool]int)
	for range 3000 {
		h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads})
		for range rnd.IntN(8) {
			mustAppend(t, h, convo.User(text(60)))
			if rnd.IntN(3) == 0 {
				call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
				mustAppend(t, h, convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: text(9), Signature: "s"}, call}}, convo.Result(call, text(90)))
			}
			mustAppend(t, h, convo.Assistant(text(90)))
		}
		if n := h.Len(); n > 0 && rnd.IntN(3) == 0 {
			require.NoError(t, h.Pin(convo.ID(1+rnd.IntN(n))))
		}
		g := convo.Goal{Target: rnd.IntN(500), Limit: max(rnd.IntN(800)-300, 0)}
		says, drops := convo.DropsAny(h.Snapshot(), g, int64(max(rnd.IntN(200)-100, 0)))
		require.Equal(t, drops, says, "%+v: %v", g, h.Snapshot())
		answers[drops]++
	}
	assert.Greater(t, min(answers[false], answers[true]), 300, "%v", answers)
}

// What the user said leaves last: the first message, and then the newest before the tail, up
// to a third of the target. A document leaves in its place.
func TestTruncate_UsersWords(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name  string
		users []int // bytes of the user messages, before the newest
		goal  convo.Goal
		want  string
	}{
		{"all fit", []int{10, 10, 10}, convo.Goal{Target: 800}, "1 3 5 7"},
		{"the first and the newest", append([]int{30}, slices.Repeat([]int{20}, 13)...), convo.Goal{Target: 800}, "1 7 9 11 13 15 17 19 21 23 25 27 29"},
		{"a shorter one before those that do not fit", append([]int{30, 10}, slices.Repeat([]int{20}, 13)...), convo.Goal{Target: 800}, "1 3 9 11 13 15 17 19 21 23 25 27 29 31"},
		{"a document", []int{10, 26, 10}, convo.Goal{Target: 800}, "1 5 7"},
		{"no document", []int{10, 25, 10}, convo.Goal{Target: 800}, "1 3 5 7"},
		{"the first may be longer", []int{50, 10}, convo.Goal{Target: 800}, "1 3 5"},
		{"the first is a document", []int{51, 10}, convo.Goal{Target: 800}, "3 5"},
		{"the limit leaves less", []int{10, 10, 10}, convo.Goal{Target: 800, Limit: 30 + 2}, "1 5 7"},
		{"the limit leaves nothing", []int{10, 10, 10}, convo.Goal{Target: 800, Limit: 5}, "7"},
		{"the target is tiny", []int{10, 10, 10}, convo.Goal{Target: 30}, "7"},
		{"after an overflow", []int{10, 10, 10}, convo.Goal{Target: 30, Limit: 5000, Reason: convo.ReasonOverflow}, "7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads})
			for i, n := range tt.users {
				mustAppend(t, h, convo.User(x(n)), convo.Assistant(x(1000+i)))
			}
			mustAppend(t, h, convo.User("now"))
			got, _ := planOf(t, convo.Truncate{}, h.Snapshot(), tt.goal)
			assert.Equal(t, tt.want, got)
		})
	}
}

// Whatever the conversation, a cut drops none of the user's words while anything else
// could go, and keeps no more than a quarter of the target besides a heavy floor.
func TestTruncate_UsersWordsAtRandom(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads})
		for i := range 5 + rng.IntN(40) {
			c := callOf("c" + itoa(i))
			mustAppend(t, h, convo.User(strings.Repeat("u", 1+rng.IntN(60))))
			if rng.IntN(2) == 0 {
				mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("r", rng.IntN(900))))
			}
			mustAppend(t, h, convo.Assistant(strings.Repeat("a", 1+rng.IntN(200))))
		}
		mustAppend(t, h, convo.User("now"))
		s := h.Snapshot()
		g := convo.Goal{Target: 1 + rng.IntN(s.Tokens())}
		e, err := convo.Truncate{}.Compact(t.Context(), s, g)
		if err != nil {
			require.ErrorIs(t, err, convo.ErrNoGain)
			continue
		}
		next, err := s.With(e)
		require.NoError(t, err)
		floor, words, longest := 0, 0, 0
		for x := range next.Exchanges() {
			first, _ := next.Find(x.First)
			switch {
			case x.Floor:
				floor += x.Tokens
			case first.Message.Role == convo.RoleUser:
				words += x.Tokens
			default:
				longest = max(longest, x.Tokens)
			}
		}
		assert.LessOrEqual(t, next.Tokens(), max(g.Target, floor+words+g.Target/4), "seed %d", seed)
		if first, _ := s.Find(1); first.Tokens <= g.Target/16 {
			_, ok := next.Find(1)
			assert.True(t, ok, "seed %d: the first message", seed)
		}
	}
}

// Where the floor alone is above the target, a quarter of the target stays besides, or
// half the room below the limit if that is less.
func TestTruncate_HeavyFloor(t *testing.T) {
	for _, tt := range []struct {
		limit int
		want  string
	}{
		{0, "11 12 13 14 15 16"},    // 200 tokens: three messages of 60
		{1700, "11 12 13 14 15 16"}, // half of 700, but no more than that
		{1300, "12 13 14 15 16"},    // half of 300
		{1100, "14 15 16"},          // half of 100
		{1010, "14 15 16"},
	} {
		h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads, Roles: convo.Relaxed()})
		for range 13 {
			mustAppend(t, h, convo.Assistant(strings.Repeat("a", 60)))
		}
		mustAppend(t, h, convo.User("go"), convo.Assistant("so", convo.ToolCall{ID: "c", Name: "t"}), convo.Result(convo.ToolCall{ID: "c", Name: "t"}, strings.Repeat("r", 990)))
		got, _ := planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 800, Limit: tt.limit})
		assert.Equal(t, tt.want, got, "limit %d", tt.limit)
	}
}

// Where a summarizer that works finds too little to summarise, the next link frees what
// the limit needs, and not what the target asks for. Where it fails, the next link goes
// on to the target.
func TestChain_HealthySummarizer(t *testing.T) {
	link := func(err error) convo.CompactionStrategy {
		return convo.Summarize{Window: -1, KeepLast: 1000, MaxTokens: 100, With: convo.SummarizerFunc(
			func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				return convo.Summary{Text: "s"}, err
			})}
	}
	s := toolTurn(t, bare(), 20).Snapshot()
	plan := func(g convo.Goal, links ...convo.CompactionStrategy) string {
		got, _ := planOf(t, convo.Chain(links...), s, g)
		return got
	}
	nothing := convo.ErrNoGain.Error()
	assert.Equal(t, nothing, plan(convo.Goal{Target: 500, Limit: s.Tokens()}, link(nil), convo.Truncate{}))
	assert.Equal(t, nothing, plan(convo.Goal{Target: 500}, link(nil), convo.Truncate{}), "there is no limit")
	assert.Contains(t, plan(convo.Goal{Target: 500, Limit: s.Tokens() - 1}, link(nil), convo.Truncate{}), "sum[", "what is to be kept gives way to the limit")
	failed := noStandIn(convo.Summarize{Window: -1, MaxTokens: 100, With: convo.SummarizerFunc(
		func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{}, errors.New("down")
		})})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43", plan(convo.Goal{Target: 500, Limit: s.Tokens()}, failed, convo.Truncate{}))
}

// MinFree is asked of the whole edit of a Chain, not of each link.
func TestChain_MinFreeOfTheWhole(t *testing.T) {
	h := historyOf(t, bare(), convo.User("q"))
	c := convo.ToolCall{ID: "c", Name: "read"}
	mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 200)))
	for range 20 {
		mustAppend(t, h, convo.Assistant(strings.Repeat("a", 100)), convo.User("go on"))
	}
	mustAppend(t, h, convo.Assistant("done"))
	s := h.Snapshot()
	links := convo.Chain(convo.ClearToolResults{KeepLast: -1}, convo.Truncate{})
	g := convo.Goal{Target: s.Tokens() - 300, Limit: s.Tokens(), MinFree: 250}
	got, next := planOf(t, links, s, g)
	assert.NotEqual(t, convo.ErrNoGain.Error(), got)
	assert.GreaterOrEqual(t, s.Tokens()-next.Tokens(), 250)
	e, err := links.Compact(t.Context(), s, g)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, e.Effort.Links[0].Outcome, "alone it frees less")
	g.MinFree = s.Tokens()
	got, _ = planOf(t, links, s, g)
	assert.Equal(t, convo.ErrNoGain.Error(), got, "all links together free too little")
	g.Limit = s.Tokens() - 1
	got, _ = planOf(t, links, s, g)
	assert.NotEqual(t, convo.ErrNoGain.Error(), got, "but the request does not fit otherwise")
}

// Of results whose calls are the same, only the newest stays, and these go first.
func TestClearToolResults_Same(t *testing.T) {
	h := historyOf(t, bare(), convo.User("q"))
	read := func(path string, id int) {
		c := convo.ToolCall{ID: fmt.Sprint("c", id), Name: "read", Arguments: fmt.Sprintf(`{"path":%q, "n": 1.50}`, path)}
		if id%2 == 1 {
			c.Arguments = fmt.Sprintf(`{ "n":1.50,"path":%q}`, path)
		}
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 200)))
	}
	for i, path := range []string{"a", "b", "a", "c", "b", "d"} {
		read(path, i)
	}
	mustAppend(t, h, convo.Assistant("a"))
	s := h.Snapshot()
	same := convo.ClearToolResults{Same: convo.SameCall}
	got, next := planOf(t, same, s, convo.Goal{Target: s.Tokens() - 300})
	assert.Equal(t, "1 2 3c 4 5c 6 7 8 9 10 11 12 13 14", got, "the first a and the first b, and nothing else")
	got, _ = planOf(t, same, next, convo.Goal{Target: next.Tokens()})
	assert.Equal(t, "1 2 3c 4 5c 6 7c 8 9 10 11 12 13 14", got, "then the others that are old")
	got, _ = planOf(t, convo.ClearToolResults{Same: func(convo.ToolCall) string { return "" }}, s, convo.Goal{Target: s.Tokens() - 300})
	assert.Equal(t, "1 2 3c 4 5c 6 7c 8 9 10 11 12 13 14", got, "no key")

	h = historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.ClearToolResults{Same: func(convo.ToolCall) string { panic("no") }}}, s.Messages()...)
	_, err := h.Compact(t.Context(), "")
	_, ok := errors.AsType[*convo.PanicError](err)
	assert.True(t, ok, "%v", err)
}

func TestSameCall(t *testing.T) {
	key := func(args string) string { return convo.SameCall(convo.ToolCall{Name: "t", Arguments: args}) }
	assert.Equal(t, key(`{"a":1,"b":{"d":2,"c":[1,2]}}`), key(" {\n\"b\":{\"c\":[1,2],\"d\":2},\"a\":1}"))
	assert.NotEqual(t, key(`{"a":9007199254740993}`), key(`{"a":9007199254740992}`), "numbers are compared as they are written")
	assert.NotEqual(t, key(`{"a":[1,2]}`), key(`{"a":[2,1]}`))
	assert.NotEqual(t, key(`{}`), convo.SameCall(convo.ToolCall{Name: "u", Arguments: `{}`}))
	for _, args := range []string{"", "x", "[]", `{"a":`, "null"} {
		assert.Empty(t, key(args), args)
	}
}

// Older media become a line, in user messages and in results.
func TestClearMedia(t *testing.T) {
	png := convo.NewMedia("image/png", make([]byte, 3001))
	page := convo.Media{MIME: "application/pdf", URL: "https://example.com/a.pdf"}
	user := func(parts ...convo.Part) convo.Message { return convo.Message{Role: convo.RoleUser, Parts: parts} }
	opts := &convo.Options{Overheads: convo.Overheads{Media: func(convo.Media) int { return 1000 }}}
	c := callOf("c")
	shot := convo.Result(c, "")
	shot.Parts[0] = convo.ToolResult{CallID: "c", Name: "tool", Parts: []convo.Part{convo.Text("here"), png}}
	h := historyOf(t, opts, user(convo.Text("look"), png, page), convo.Assistant("", c), shot, convo.Assistant("I see."),
		user(png), convo.Assistant("Another."), user(convo.Text("and this"), png))
	s := h.Snapshot()
	assert.Equal(t, 5, h.Status().Media)
	plan := func(z convo.ClearMedia, g convo.Goal) (string, *convo.Snapshot) {
		e, err := z.Compact(t.Context(), s, g)
		if err != nil {
			return err.Error(), s
		}
		next, err := s.With(e)
		require.NoError(t, err)
		var ids []string
		for _, r := range e.Rewrite {
			ids = append(ids, fmt.Sprint(r.ID))
		}
		return strings.Join(ids, " "), next
	}
	for _, tt := range []struct {
		name string
		z    convo.ClearMedia
		g    convo.Goal
		want string
	}{
		{"three stay", convo.ClearMedia{}, convo.Goal{Target: 4900}, "1"},
		{"one stays", convo.ClearMedia{KeepLast: 1}, convo.Goal{Target: 4900}, "1 3 5"},
		{"all but the floor", convo.ClearMedia{KeepLast: -1}, convo.Goal{Target: 4900}, "1 3 5"},
		{"more, to reach the target", convo.ClearMedia{}, convo.Goal{Target: 2500}, "1 3"},
		{"all that may go", convo.ClearMedia{}, convo.Goal{Target: 10}, "1 3 5"},
		{"too little", convo.ClearMedia{}, convo.Goal{Target: 4900, MinFree: 5000}, "convo: nothing worth removing; go on with the conversation as it is"},
		{"a trigger", convo.ClearMedia{KeepLast: 2}, convo.Goal{Reason: convo.ReasonTrigger, Low: 100}, "1 3"},
	} {
		got, _ := plan(tt.z, tt.g)
		assert.Equal(t, tt.want, got, tt.name)
	}
	_, next := plan(convo.ClearMedia{KeepLast: -1}, convo.Goal{})
	e, _ := next.Find(1)
	assert.Equal(t, "look\n[image/png cleared: 3,001 bytes]\n[application/pdf cleared: https://example.com/a.pdf]", e.Message.Text())
	e, _ = next.Find(3)
	assert.Equal(t, "here\n[image/png cleared: 3,001 bytes]", e.Message.ToolResults()[0].Text())

	assert.False(t, convo.ClearMedia{}.Due(convo.Status{Media: 89}))
	assert.True(t, convo.ClearMedia{}.Due(convo.Status{Media: 90}))
	assert.True(t, convo.ClearMedia{TriggerAt: 5}.Due(h.Status()))
	assert.False(t, convo.ClearMedia{TriggerAt: -1}.Due(convo.Status{Media: 1000}))
}

// By default, the number of images stays below what providers take, and the count is
// right after every kind of change.
func TestClearMedia_IsDue(t *testing.T) {
	png := convo.NewMedia("image/png", []byte("x"))
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1_000_000}})
	counted := func(s *convo.Snapshot) (n int) {
		for _, m := range s.Messages() {
			for _, p := range m.Parts {
				if _, ok := p.(convo.Media); ok {
					n++
				}
			}
		}
		return n
	}
	var last convo.Report
	for range 300 {
		at := h.Snapshot()
		mustAppend(t, h, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{png}})
		s, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, counted(s), 90)
		require.Equal(t, counted(s), h.Status().Media)
		if r.Outcome == convo.OutcomeApplied {
			fork, err := convo.Restore(at, nil)
			require.NoError(t, err)
			require.Equal(t, counted(at), fork.Status().Media)
			last = r
		}
		mustAppend(t, h, convo.Assistant("yes"))
	}
	at := h.Snapshot()
	require.NoError(t, h.Undo(last))
	assert.Greater(t, h.Status().Media, counted(at))
	assert.Equal(t, counted(h.Snapshot()), h.Status().Media)
	at = h.Snapshot()
	mustAppend(t, h, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{png, png}})
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, counted(at), h.Status().Media)
	_, err := h.Rewind(2)
	require.NoError(t, err)
	assert.Equal(t, counted(h.Snapshot()), h.Status().Media)
	require.NoError(t, h.SetSystem(convo.System("s")))
	assert.Equal(t, counted(h.Snapshot()), h.Status().Media)
	again, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assert.Equal(t, h.Status().Media, again.Status().Media)
}

// A report says that what was dropped was not read, and whether the user's first
// message was among it.
func TestReport_DroppedUnread(t *testing.T) {
	h := historyOf(t, windowOf(0, convo.SlidingWindow{KeepLast: 2}), convo.User("the task"), convo.Assistant("yes"), convo.User("and"), convo.Assistant("so"), convo.User("on"))
	r, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(r), "4 messages dropped unread, the user's first (8 tokens) among them")
	assert.Equal(t, len("the task")+len("yes")+len("and")+len("so"), r.Unread)
	mustAppend(t, h, convo.Assistant("ok"), convo.User("more"))
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(r), "messages dropped unread;")
}

// Where the summarizer of a Chain fails, or is not called after failures, Extract writes
// the summary in its place, and the report says why. In the background there is time to
// wait for the summarizer.
func TestChain_StandIn(t *testing.T) {
	down := errors.New("503 Service Unavailable")
	strategy := convo.Chain(convo.ClearToolResults{MinResult: 1 << 30}, convo.Summarize{With: convotest.Failing{Err: down}, Window: -1}, convo.Truncate{})
	h := aboveHigh(t, strategy)
	for i := range 3 {
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Empty(t, r.Dropped, "nothing is dropped unread")
		assert.NotEmpty(t, r.Summarised)
		assert.Zero(t, r.Unread)
		require.Len(t, r.Links, 3)
		assert.Equal(t, convo.OutcomeDeclined, r.Links[0].Outcome)
		require.ErrorIs(t, r.Links[1].Cause, down)
		assert.Equal(t, convo.Link{Strategy: "extract", Outcome: convo.OutcomeApplied}, r.Links[2])
		assert.Equal(t, convo.OutcomeFailed, r.Links[1].Outcome)
		assert.Contains(t, fmt.Sprint(r), "; strategy summarize: summarizer: 503 Service Unavailable")
		if i == 2 {
			break
		}
		for h.Status().Upper <= 3000 {
			mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("word ", 10)))
		}
	}
	mustAppend(t, h, convo.User("and"))
	upper := h.Status().Upper
	require.NoError(t, h.SetLimits(convo.Limits{Window: 40_000, High: upper - 1, Low: upper / 3, Soft: upper - 2, MinFree: 200}))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.ErrorIs(t, r.Links[1].Cause, convo.ErrBreaker, "the summarizer is not called for a while")
	assert.Equal(t, "extract", r.Links[2].Strategy)
	assert.Zero(t, r.Calls)

	opts := windowOf(40_000, strategy)
	opts.Limits.High, opts.Limits.Low, opts.Limits.Soft = 30_000, 1000, 1500
	h = toolTurn(t, opts, 30)
	require.True(t, h.CompactInBackground(t.Context()))
	r, err = h.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
	require.ErrorIs(t, r.Cause, down)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
}

// BeforeCompaction hears of a compaction before the strategy is asked: it may set the
// focus, and an error refuses the compaction.
func TestBeforeCompaction(t *testing.T) {
	rec := new(recorder)
	var refuse error
	calls := 0
	opts := windowOf(40_000, convo.Summarize{With: rec, MaxTokens: 100, Window: -1})
	opts.Limits.High, opts.Limits.Low = 3000, 1500
	opts.BeforeCompaction = func(ctx context.Context, s *convo.Snapshot, g *convo.Goal) error {
		calls++
		require.NoError(t, ctx.Err())
		assert.Positive(t, s.Len())
		g.Focus += " and the port"
		g.Target, g.MinFree = 0, 1<<30 // ignored
		return refuse
	}
	h := toolTurn(t, opts, 30)
	refuse = errors.New("the user is in a derivation")
	unchanged(t, h, func() {
		r := requireFailed(t)(reportOf(h.Prepare(t.Context())))
		require.ErrorIs(t, r.Cause, refuse)
		assert.Empty(t, rec.requests)
	})
	refuse = convo.ErrNoGain
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
	refuse = nil
	r, err = h.Compact(t.Context(), "the host")
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, "the host and the port", rec.requests[0].Focus)
	assert.Equal(t, 3, calls)

	opts.BeforeCompaction = func(context.Context, *convo.Snapshot, *convo.Goal) error { panic("x") }
	r = requireFailed(t)(reportOf(toolTurn(t, opts, 30).Prepare(t.Context())))
	_, ok := errors.AsType[*convo.PanicError](r.Cause)
	assert.True(t, ok)
	opts.BeforeCompaction = func(context.Context, *convo.Snapshot, *convo.Goal) error { return errors.New("not now") }
	opts.Limits = convo.Limits{Window: 1000}
	_, _, err = toolTurn(t, opts, 30).Prepare(t.Context())
	require.ErrorContains(t, err, "not now", "the request does not fit, so it must not be sent")
}

// Redact gets what is summarised, what the user said that stays, the summary so far, and then the
// message after it, so that numbered placeholders stay the same from one version to the next.
func TestRedact_Order(t *testing.T) {
	var seen []string
	opts := windowOf(0, convo.Summarize{With: new(recorder), MaxTokens: 200, Window: -1, KeepLast: 1})
	opts.Redact = func(m convo.Message) convo.Message {
		first, _, _ := strings.Cut(m.Text(), " ")
		seen = append(seen, first)
		return m
	}
	long := func(first string) string { return first + strings.Repeat(" and so on", 100) }
	h := historyOf(t, opts, convo.User(long("first")), convo.Assistant(long("1")), convo.User(long("second")), convo.Assistant(long("2")), convo.User("third"))
	_, err := h.Compact(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, []string{"first", "1", "second", "2", "third"}, seen)
	sum, _ := h.Snapshot().Summary()
	_, err = h.Append(convo.Assistant(long("3")), convo.User("fourth"))
	require.NoError(t, err)
	seen = nil
	_, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	said, _, _ := strings.Cut(sum.Text, " ")
	assert.Equal(t, []string{"3", "third", said, "fourth"}, seen)
}

// A summarizer sees no message, for whatever purpose, but through Redact.
func TestRedact(t *testing.T) {
	secret := "hunter2"
	var seen []string
	for name, with := range map[string]convo.Summarizer{"a model": nil, "Extract": convo.Extract{}} {
		rec := new(recorder)
		if with == nil {
			with = rec
		}
		opts := windowOf(0, convo.Chain(convo.Summarize{With: with, MaxTokens: 200, Window: -1, KeepTokens: -1}))
		opts.Redact = func(m convo.Message) convo.Message {
			for i, p := range m.Parts {
				switch p := p.(type) {
				case convo.Text:
					m.Parts[i] = convo.Text(strings.ReplaceAll(string(p), secret, "****"))
				case convo.ToolCall:
					p.Arguments = strings.ReplaceAll(p.Arguments, secret, "****")
					m.Parts[i] = p
				case convo.ToolResult:
					p.Parts = []convo.Part{convo.Text(strings.ReplaceAll(p.Text(), secret, "****"))}
					m.Parts[i] = p
				}
			}
			m.Role = convo.RoleSystem // the role stays
			return m
		}
		c := callOf("c")
		c.Arguments = `{"password":"hunter2"}`
		h := historyOf(t, opts, convo.System("the key is hunter2"), convo.User("log in with hunter2"), convo.Assistant("", c), convo.Result(c, "hunter2 is right"),
			convo.Assistant(strings.Repeat("hunter2 ", 100)), convo.User("pinned hunter2"), convo.Assistant("ok"), convo.User("bye"))
		require.NoError(t, h.Pin(6))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Snapshot().Tokens()}))
		before := h.Snapshot().Messages()
		_, err := h.Handoff(t.Context(), with, "")
		require.NoError(t, err)
		assert.Equal(t, before, h.Snapshot().Messages(), "what Redact gets is a copy")
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
		sum, ok := h.Snapshot().Summary()
		require.True(t, ok)
		assert.NotContains(t, sum.Text+sum.Names, secret, name)
		for _, req := range rec.requests {
			assert.NotContains(t, fmt.Sprintf("%s %#v %#v %#v", req.Prompt, req.Messages, req.System, req.Pinned), secret)
			assert.Nil(t, req.Sent)
			for _, m := range req.Messages {
				assert.NotEqual(t, convo.RoleSystem, m.Role)
			}
			seen = append(seen, req.Prompt)
		}
	}
	require.Len(t, seen, 2)
	assert.Contains(t, seen[0], "****")

	opts := windowOf(0, convo.Summarize{})
	opts.Redact = func(convo.Message) convo.Message { panic("x") }
	_, err := toolTurn(t, opts, 30).Compact(t.Context(), "")
	_, ok := errors.AsType[*convo.PanicError](err)
	assert.True(t, ok, "%v", err)
}

// A summary that is a little too long is shortened by the model, once, and then cut at a
// sentence.
func TestSummarize_Shortens(t *testing.T) {
	said := []string{"The user wants a train to Rome.", "It must leave before nine in the morning.", "Two seats at a window are enough.", "Nothing was booked yet, since the site was down.",
		"The next thing is to try the other site.", "Its address stands in the notes of Monday."}
	long := "## Goal\n" + strings.Join(said, " ")
	cut := "## Goal\n" + strings.Join(said[:4], " ")
	word := func(first rune) string { // of 300 letters, without an end of a sentence
		var b strings.Builder
		for i := range 300 {
			b.WriteRune(first + rune(i*i%17+i%7))
		}
		return b.String()
	}
	for _, tt := range []struct {
		name    string
		answers []convo.Summary // of the calls in turn
		err     error           // of the second call
		want    string
		calls   int
	}{
		{"the model shortens it", []convo.Summary{{Text: long, Usage: convo.Usage{Output: 7}}, {Text: "short", Usage: convo.Usage{Output: 3}}}, nil, "short", 2},
		{"the model does not", []convo.Summary{{Text: long}, {Text: long + " And more."}}, nil, cut, 2},
		{"the model fails", []convo.Summary{{Text: long}, {}}, errors.New("down"), cut, 2},
		{"one word", []convo.Summary{{Text: word('a')}, {Text: word('A')[:290]}}, nil, word('A')[:200], 2},
		{"it fits", []convo.Summary{{Text: cut}}, nil, cut, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var prompts []string
			with := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
				prompts = append(prompts, req.Prompt)
				if len(prompts) > 1 {
					return tt.answers[len(prompts)-1], tt.err
				}
				return tt.answers[0], nil
			})
			h := toolTurn(t, windowOf(0, convo.Summarize{With: with, MaxTokens: 200, Window: -1}), 20)
			r, err := h.Compact(t.Context(), "")
			require.NoError(t, err)
			sum, _ := h.Snapshot().Summary()
			assert.Equal(t, tt.want, sum.Text)
			assert.Equal(t, tt.calls, r.Calls)
			require.Len(t, prompts, tt.calls)
			if tt.calls == 2 {
				assert.Contains(t, prompts[1], strings.TrimSpace(tt.answers[0].Text))
				assert.Contains(t, prompts[1], "at most 200 tokens")
			}
			if tt.want == "short" {
				assert.Equal(t, 10, r.Usage.Output, "of both calls")
			}
		})
	}
}

// Where the results that are not answered leave no room for the user's words and a
// summary, they are cut a little: nothing is dropped unread for them.
func TestCut_WordsBesideResults(t *testing.T) {
	opts := windowOf(4000, convo.Chain(convo.ClearToolResults{}, convo.Summarize{With: canned("- so far")}, convo.Truncate{}))
	opts.MaxResult = -1
	c, d := callOf("c"), callOf("d")
	for _, size := range []int{1700, 1740, 1760, 1780, 1800} {
		h := historyOf(t, opts, convo.User("the task: port the parser"), convo.Assistant(strings.Repeat("yes ", 200)), convo.User("go on"))
		mustAppend(t, h, convo.Assistant("", c, d), convo.Result(c, strings.Repeat("c", size)), convo.Result(d, strings.Repeat("d", size)))
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.True(t, r.Fits)
		assert.Empty(t, r.Dropped, "%d: %v", size, r)
	}
}

// Whatever room the results that are not answered leave, they are cut before the user's words
// or the summary leave, also where the provider counts twice as many tokens.
func TestCut_WordsAndSummaryBesideResults(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prose := func(words int) string {
		var b strings.Builder
		for range words {
			fmt.Fprintf(&b, "word%d ", rng.IntN(1000))
		}
		return b.String()
	}
	for _, ratio := range []int{1, 2} {
		window := 16_000 * ratio
		for size := 4_000; size <= 7_000; size += 100 {
			opts := windowOf(window, nil)
			opts.MaxResult = -1
			opts.Tokenizer = convo.TokenizerFunc(func(text string) int { return len(strings.Fields(text)) })
			h := historyOf(t, opts, convo.User("Task: port the parser to package store7."))
			send := func(m convo.Message) {
				s, _, err := h.Prepare(t.Context())
				require.NoError(t, err)
				require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens() * ratio, Output: 10}))
				mustAppend(t, h, m)
			}
			for i := range 60 {
				send(convo.Assistant(prose(400)))
				mustAppend(t, h, convo.User(fmt.Sprintf("Rule %d: never touch file%d.", i, 1000+i)))
			}
			c, d := callOf("c"), callOf("d")
			send(convo.Assistant("", c, d))
			mustAppend(t, h, convo.Result(c, prose(size)), convo.Result(d, prose(size)))
			_, r, err := h.Prepare(t.Context())
			require.NoError(t, err)
			what := fmt.Sprintf("%d words a result, ratio %d: %v", size, ratio, r)
			assert.Empty(t, r.Dropped, what)
			_, ok := h.Snapshot().Summary()
			assert.True(t, ok, what)
			users := 0
			for _, e := range h.Snapshot().All() {
				if e.Message.Role == convo.RoleUser {
					users++
				}
			}
			assert.Equal(t, 61, users, what)
		}
	}
}

// What a cut allocates is a few lists, of whatever length: nothing for each user message.
func TestTruncate_Allocations(t *testing.T) {
	allocs := func(n int) float64 {
		s := appendN(n, nil).Snapshot()
		g := convo.Goal{Target: s.Tokens() / 2}
		return testing.AllocsPerRun(5, func() {
			_, err := convo.Truncate{}.Compact(t.Context(), s, g)
			require.NoError(t, err)
		})
	}
	assert.LessOrEqual(t, allocs(10_000), allocs(100)+1)
}

// floorIDs returns the IDs of the exchanges that no compaction may take.
func floorIDs(s *convo.Snapshot) (ids []convo.ID) {
	for x := range s.Exchanges() {
		if x.Floor {
			ids = append(ids, x.IDs()...)
		}
	}
	return ids
}

// A round of tool calls is floor until an assistant message follows, with the
// user messages of its turn, and whatever users say in between.
func TestFloor_UnansweredRound(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	opts := &convo.Options{Roles: convo.Relaxed()}
	h := historyOf(t, opts, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.User("4"), convo.Assistant("5"),
		convo.Assistant("", c, d), convo.Result(c, "7"), convo.Result(d, "8"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.User("9"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8, 9}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.User("10"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8, 9, 10}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.Assistant("11"))
	assert.Equal(t, []convo.ID{9, 10, 11}, floorIDs(h.Snapshot()))
}

// A user message after large results does not let them vanish before the model
// has seen them.
func TestFloor_UserBehindLargeResults(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 8000}},
		convo.User("first"), convo.Assistant(strings.Repeat("an old answer ", 1600)),
		convo.User("read both"), convo.Assistant("", c, d),
		convo.Result(c, strings.Repeat("left ", 1400)), convo.Result(d, strings.Repeat("right ", 1400)), convo.User("and be quick"))
	s, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{1, 3, 4, 5, 6, 7}, idsOf(s))
}

// What a pin keeps weighs what it was measured to weigh, however much of the rest
// leaves.
func TestFloor_PinnedAndMeasured(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 8000}, MaxResult: -1}, convo.System("guide"))
	report := func() {
		s := h.Snapshot()
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens() * 12 / 10}))
	}
	require.NoError(t, h.Pin(mustAppend(t, h, convo.User(strings.Repeat("word ", 80)))))
	report()
	mustAppend(t, h, convo.Assistant(strings.Repeat("ans ", 50)), convo.User(strings.Repeat("word ", 50)))
	report()
	mustAppend(t, h, convo.Assistant(strings.Repeat("ans ", 1200)))
	c := callOf("c")
	mustAppend(t, h, convo.User(strings.Repeat("word ", 1500)), convo.Assistant("fine"), convo.User("go"),
		convo.Assistant("", c), convo.Result(c, strings.Repeat("data ", 3909)))
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Fits)
}

// What the last report measured of the floor gets no margin, even while other messages
// that it did not measure are in the view.
func TestFloor_MeasuredNextToFresh(t *testing.T) {
	h := historyOf(t, bare())
	require.NoError(t, h.Pin(mustAppend(t, h, convo.User(strings.Repeat("p", 1000)))))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1000}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 2000)), convo.User("next"))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 1010, Reserve: -1}))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.LessOrEqual(t, h.Status().Upper, 1010)
}

// With messages in the queue, Rewind appends them in the place of what it takes
// back; so the error says to call Unqueue first, and that leads on.
func TestFloor_RemedyWithAQueue(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000}}, convo.User("hello"), convo.Assistant("hi"))
	mustAppend(t, h, convo.User(strings.Repeat("long ", 2000)))
	require.NoError(t, h.Queue(convo.User("and be quick")))
	_, _, err := h.Prepare(t.Context())
	require.ErrorContains(t, err, "the newest user message holds 1,8")
	require.ErrorContains(t, err, ": call Unqueue, then Rewind takes it back;")
	assert.Len(t, h.Unqueue(), 1)
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	assert.Equal(t, 1, taken)
	mustAppend(t, h, convo.User("shorter"))
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
}

// Where an edit has dropped something of the newest turn, Rewind takes its newest
// exchange back, also after a restart.
func TestFloor_RemedyInOneTurn(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 1000}}
	h := historyOf(t, opts, convo.User("go "+strings.Repeat("far ", 100)))
	round := func(arguments string) {
		c := convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":"` + arguments + `"}`}
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("word ", 150)))
	}
	for range 10 {
		round("")
		requireNoFailure(t)(reportOf(h.Prepare(t.Context())))
	}
	sent, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	round(strings.Repeat("word ", 2000))
	f, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	for _, h = range []*convo.History{h, f} {
		_, _, err = h.Prepare(t.Context())
		require.ErrorContains(t, err, ": the arguments of the newest calls hold 1,754: Rewind takes them back; the newest assistant message and its results hold 1")
		require.ErrorContains(t, err, ": that takes it back too; other user messages of the newest turn hold 1")
		require.ErrorContains(t, err, ": Rewind(1), called "+itoa((sent.Len()+1)/2)+" times more, takes them back; or raise")
		floor, _ := errors.AsType[*convo.FloorError](err)
		taken, err := h.Rewind(1)
		require.NoError(t, err)
		assert.Equal(t, 1, taken)
		assert.Equal(t, idsOf(sent), idsOf(h.Snapshot()))
		again, err := convo.Restore(h.Snapshot(), opts)
		require.NoError(t, err)
		round("")
		_, _, err = h.Prepare(t.Context())
		require.NoError(t, err)
		for range floor.RewindUsers - 1 {
			assert.Positive(t, again.Len())
			rewind(t, again)
		}
		assert.Zero(t, again.Len())
	}
}

// The remedies of an error take back what they name and no more, when they are
// followed one after the other.
func TestFloor_RemediesInOrder(t *testing.T) {
	c := convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":"` + strings.Repeat("word ", 1500) + `"}`}
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000}}, convo.User("hello"), convo.Assistant("hi"),
		convo.User("read it"), convo.Assistant("", c), convo.Result(c, "done"), convo.User(strings.Repeat("long ", 2000)))
	_, _, err := h.Prepare(t.Context())
	require.ErrorContains(t, err, ": Rewind takes it back; the arguments of unanswered calls hold ")
	require.ErrorContains(t, err, ": Rewind again takes them back;")
	rewind(t, h)
	assert.Equal(t, 5, h.Len())
	rewind(t, h)
	assert.Equal(t, 2, h.Len())
	mustAppend(t, h, convo.User("shorter"))
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
}

// What the floor weighs, and how much of it was measured, is kept up to date without
// looking at all entries, whatever is done to a History.
func TestFloor_WeightOfRandomHistories(t *testing.T) {
	seeds := long.Or(100, 300)
	measuredPins, edits, reverts := 0, 0, 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 21))
		opts := &convo.Options{Roles: convo.Relaxed(), Limits: convo.Limits{Window: 1500}, MaxResult: -1, Logger: slog.New(slog.DiscardHandler)}
		if seed%3 == 0 {
			opts.Pin = func(m convo.Message) bool { return r.IntN(2) == 0 }
		}
		store := new(convotest.MemStore)
		h, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		other, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		snaps, reports := []*convo.Snapshot{h.Snapshot()}, []convo.Report{}
		word := func() string { return strings.Repeat("word ", 1+r.IntN(60)) }
		some := func() convo.ID {
			if ids := idsOf(h.Snapshot()); len(ids) > 0 {
				return ids[r.IntN(len(ids))]
			}
			return 0
		}
		for step := range 60 {
			op := r.IntN(18)
			switch op {
			case 0, 1:
				h.Append(convo.User(word()))
			case 2, 3:
				h.Append(convo.Assistant(word()))
			case 4, 5:
				c, d := callOf("c"), callOf("d")
				msgs := []convo.Message{convo.Assistant("", c, d), convo.Result(c, word()), convo.Result(d, word())}
				h.Append(msgs[:1+r.IntN(3)]...)
			case 6:
				h.AnswerOpenCalls("")
			case 7:
				h.Pin(some(), some())
			case 8:
				h.Unpin(some())
			case 9, 10:
				at := snaps[max(len(snaps)-1-r.IntN(3), 0)]
				h.RecordUsage(at, convo.Usage{Input: at.Tokens() + at.Tokens()*r.IntN(40)/100})
			case 11:
				if rep, _ := h.Compact(t.Context(), ""); rep.Outcome == convo.OutcomeApplied {
					reports = append(reports, rep)
					edits++
				}
			case 12:
				h.SplicePrefix(h.Snapshot(), r.IntN(h.Len()+1), []string{"", "so far"}[r.IntN(2)])
			case 13:
				h.Rewind(r.IntN(2))
			case 14:
				if h.Rollback(snaps[r.IntN(len(snaps))]) == nil {
					reverts++
				}
			case 15:
				if len(reports) > 0 && h.Undo(reports[len(reports)-1]) == nil {
					reverts++
				}
			case 16:
				h.SetEphemeral([]convo.Message{convo.User("a fact")}[:r.IntN(2)]...)
				h.SetModel([]string{"", "small", "large"}[r.IntN(3)], convo.Limits{})
				if r.IntN(4) == 0 {
					h.SetSystem(convo.System(word()))
				}
			case 17:
				switch r.IntN(3) {
				case 0:
					other.Reload(t.Context())
					other.Append(convo.User(word()), convo.Assistant(word()))
					other.Save(t.Context())
				case 1:
					if h.Save(t.Context()) != nil {
						h.Reload(t.Context())
					}
				case 2:
					if h.Save(t.Context()) == nil {
						h, err = convo.Open(t.Context(), store, "k", opts)
						require.NoError(t, err)
						snaps, reports = nil, nil
					}
				}
			}
			snaps = append(snaps, h.Snapshot())
			total, measured, wantTotal, wantMeasured := convo.FloorOf(h)
			require.Equal(t, wantTotal, total, "seed %d, step %d, operation %d", seed, step, op)
			require.Equal(t, wantMeasured, measured, "seed %d, step %d, operation %d", seed, step, op)
			if measured > 0 && len(h.Snapshot().Pinned()) > 0 {
				measuredPins++
			}
		}
	}
	t.Logf("%d states with pins and something measured, %d edits, %d reverts", measuredPins, edits, reverts)
	require.Greater(t, min(measuredPins/10, edits, reverts), seeds/3, "the cases are too easy")
}

// The user's words outlive what hosts say in the user's role, however often and however new it
// is, and the summary does not say that the user said it.
func TestDefault_HostsTextLeavesFirst(t *testing.T) {
	notice := "The background task build finished with exit code 0 after some seconds, and its output is in the file"
	for name, host := range map[string]func(i int) convo.Message{
		"a tag": func(i int) convo.Message {
			return convo.User(fmt.Sprintf("<task-notification>task b%d is done</task-notification>", i))
		},
		"a mark": func(i int) convo.Message {
			m := convo.User(fmt.Sprint("Go on with step ", i))
			m.Meta = convo.HostMeta
			return m
		},
		"repetition": func(i int) convo.Message { return convo.User(fmt.Sprintf("%s out/%d.txt (%d s)", notice, i, i*7)) },
	} {
		h := historyOf(t, windowOf(20_000, nil), host(0))
		var facts []string
		for i := range 300 {
			if i%15 == 0 && len(facts) < 10 {
				facts = append(facts, fmt.Sprintf("Remember that my friend %s lives in street %d.", strings.Repeat(string(rune('a'+i/15)), 5), 100+i))
				mustAppend(t, h, convo.Assistant("ok"), convo.User(facts[len(facts)-1]))
			}
			_, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			mustAppend(t, h, convo.Assistant(strings.Repeat("I work on it. ", 40)), host(i+1))
		}
		_, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		s := h.Snapshot()
		var view strings.Builder
		hosts := 0
		for _, e := range s.All() {
			view.WriteString(e.Message.Text() + "\n")
			if e.Message.Role == convo.RoleUser && !strings.HasPrefix(e.Message.Text(), "Remember") {
				hosts++
			}
		}
		for _, fact := range facts {
			assert.Contains(t, view.String(), fact, name)
		}
		assert.Less(t, hosts, 30, name)
		sum, ok := s.Summary()
		require.True(t, ok)
		_, said, _ := strings.Cut(sum.Text, "The user said:\n")
		said, _, _ = strings.Cut(said, "The assistant said:")
		assert.LessOrEqual(t, strings.Count(said, "\n"), 4, "%s: %s", name, sum.Text)
	}
}

// What people say does not count as a repetition, in no script and with no form.
func TestDefault_RepetitionsAreOfHosts(t *testing.T) {
	han := []rune("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏")
	for name, text := range map[string]func(i int) string{
		"short":   func(i int) string { return fmt.Sprintf("Order %d has arrived.", i) },
		"Chinese": func(i int) string { return strings.Repeat(string(han[i%24])+string(han[i/24%24]), 30) },
		"paths":   func(i int) string { return strings.Repeat(fmt.Sprintf("src/a%d/b_%d.go ", i, i*7), 12) },
		"prose": func(i int) string {
			return strings.Repeat(string(rune('a'+i%26))+string(rune('a'+i/26))+" is here, ", 12)
		},
	} {
		h := historyOf(t, windowOf(200_000, nil), convo.User("go"))
		for i := range 100 {
			mustAppend(t, h, convo.Assistant(strings.Repeat("a", 3000)), convo.User(text(i)))
		}
		_, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		users := 0
		for _, e := range h.Snapshot().All() {
			if e.Message.Role == convo.RoleUser {
				users++
			}
		}
		assert.Equal(t, 101, users, name)
	}
}
