package convo_test

import (
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of the tour, in bytes: 1 system 5 | 2 user 8 | 3, 4, 5 a tool round 134 |
// 6 assistant 5 || 7 user 7 | 8 assistant 6 || 9 user 9.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target int
		pin    []convo.ID
		want   string
	}{
		{"small enough", 174, nil, "convo: nothing worth removing"},
		{"a turn that begins soon after is where the cut goes", 40, nil, "1 7 8 9"},
		{"nothing but the newest turn", 20, nil, "1 9"},
		{"the floor stays", 0, nil, "1 9"},
		{"a pin stays", 0, []convo.ID{8}, "1 8 9"},
		{"a pin of a result keeps its exchange", 0, []convo.ID{5}, "1 3 4 5 9"},
		{"a pin and the user of its turn", 150, []convo.ID{5}, "1 3 4 5 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, bare())
			require.NoError(t, h.Pin(tt.pin...))
			s := h.Snapshot()
			got, next := planOf(t, convo.Truncate{}, s, convo.Goal{Target: tt.target})
			assert.Equal(t, tt.want, got)
			if next != s && next.Tokens() > tt.target {
				for x := range next.Exchanges() {
					assert.True(t, x.Floor, "above the target, and %d is not floor", x.First)
				}
			}
		})
	}
}

func TestTruncate_InsideOneTurn(t *testing.T) {
	h := toolTurn(t, bare(), 20)
	got, next := planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 500})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43", got)
	assert.LessOrEqual(t, next.Tokens(), 500)

	// And one message later the turn is not the newest any more: its user
	// message stays all the same while part of the turn does.
	mustAppend(t, h, convo.User("thanks"))
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 500})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43 44", got)
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 150})
	assert.Equal(t, "1 2 41 42 43 44", got)
	got, _ = planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 100})
	assert.Equal(t, "1 44", got, "the next turn begins soon after the cut")
}

// A view that weighs exactly the target is within it.
func TestTruncate_AtTheTarget(t *testing.T) {
	s := toolTurn(t, bare(), 20).Snapshot()
	_, next := planOf(t, convo.Truncate{}, s, convo.Goal{Target: 500})
	same, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: next.Tokens()})
	assert.Equal(t, "1 2 35 36 37 38 39 40 41 42 43", same)
	less, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: next.Tokens() - 1})
	assert.Equal(t, "1 2 37 38 39 40 41 42 43", less)

	got, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: s.Tokens()})
	assert.Equal(t, "convo: nothing worth removing", got)
	got, _ = planOf(t, convo.Truncate{}, s, convo.Goal{Target: s.Tokens() - 1})
	assert.NotEqual(t, "convo: nothing worth removing", got)
}

// A cut inside a turn moves to the start of the next turn when that is within a
// quarter of what is kept.
func TestTruncate_ToTheNextTurn(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		between int // bytes from the cut to the next turn
		want    string
	}{
		{49, "4 5 6"}, {50, "4 5 6"}, {51, "1 3 4 5 6"},
	} {
		s := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: bare().Overheads, Roles: convo.Relaxed()},
			convo.User("u"), convo.Assistant(x(1000)), convo.Assistant(x(tt.between)),
			convo.User("v"), convo.Assistant("a"), convo.User("w"),
		).Snapshot()
		got, _ := planOf(t, convo.Truncate{}, s, convo.Goal{Target: 200 + len("w")})
		assert.Equal(t, tt.want, got, "%d between", tt.between)
	}
}

func TestTruncate_SignedReasoning(t *testing.T) {
	signed := func(c convo.ToolCall) convo.Message {
		m := convo.Assistant("", c)
		m.Parts = append([]convo.Part{convo.Reasoning{Text: "hm", Signature: "sig"}}, m.Parts...)
		return m
	}
	make := func(second func(convo.ToolCall) convo.Message) *convo.Snapshot {
		c1, c2, c3 := callOf("c1"), callOf("c2"), callOf("c3")
		return historyOf(t, bare(), convo.User("the task"),
			signed(c1), convo.Result(c1, strings.Repeat("x", 50)),
			second(c2), convo.Result(c2, strings.Repeat("x", 50)),
			convo.Assistant("", c3), convo.Result(c3, strings.Repeat("x", 50)),
		).Snapshot()
	}
	unsigned := func(c convo.ToolCall) convo.Message { return convo.Assistant("", c) }

	got, _ := planOf(t, convo.Truncate{}, make(unsigned), convo.Goal{Target: 150})
	assert.Equal(t, "1 2 3 6 7", got, "the signed one goes last of the turn")
	got, _ = planOf(t, convo.Truncate{}, make(unsigned), convo.Goal{Target: 80})
	assert.Equal(t, "1 6 7", got, "and goes when all else is not enough")
	got, _ = planOf(t, convo.Truncate{}, make(signed), convo.Goal{Target: 150})
	assert.Equal(t, "1 4 5 6 7", got, "another reasoning later takes its place")
}

func TestTruncate_SummaryGoesLast(t *testing.T) {
	opts := bare()
	opts.Strategy = convo.Truncate{}
	h := tour(t, opts)
	_, err := h.SplicePrefix(h.Snapshot(), 6, "what was said "+strings.Repeat("and said ", 20))
	require.NoError(t, err)
	sum, _ := h.Snapshot().Summary()

	// There is more to drop than the summary: it stays.
	got, _ := planOf(t, convo.Truncate{}, h.Snapshot(), convo.Goal{Target: 0})
	assert.Equal(t, "sum[{2 6}] 1 9", got)

	// The request fits only without it.
	require.NoError(t, h.SetLimits(convo.Limits{Window: 100, Reserve: -1}))
	require.Greater(t, sum.Tokens, 100)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.True(t, r.SummaryDropped)
	assert.True(t, r.Fits)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
}

// Truncation counts no text again, and what it allocates grows as the list does.
func TestTruncate_IsLinear(t *testing.T) {
	bytesFor := func(n int) float64 {
		counted := 0
		opts := windowOf(n, convo.Truncate{})
		opts.Tokenizer = convo.TokenizerFunc(func(s string) int { counted++; return len(s) })
		h := chatOf(t, opts, n, 10)
		counted = 0
		_, bytes := measureAllocs(1, func() {
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			require.Greater(t, len(r.Dropped), n)
		})
		assert.Zero(t, counted)
		return bytes
	}
	small, large := bytesFor(5000), bytesFor(40_000)
	assert.Less(t, large, 12*small)
}
