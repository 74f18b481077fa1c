package convo_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// addUp checks that the kinds add up to the estimate, and with what is free and
// reserved to the window.
func addUp(t testing.TB, b convo.Breakdown, estimate int) {
	t.Helper()
	kinds := []int{b.System, b.Tools, b.Summary, b.User, b.Assistant, b.Reasoning, b.Calls, b.Results, b.Media, b.Ephemeral}
	sum := 0
	for _, n := range kinds {
		assert.GreaterOrEqual(t, n, 0)
		sum += n
	}
	assert.Equal(t, estimate, sum, "%+v", b)
	assert.LessOrEqual(t, b.Pinned, sum)
	if b.Window > 0 {
		assert.Equal(t, b.Window, sum+b.Free+b.Reserve)
	} else {
		assert.Zero(t, b.Free)
		assert.Zero(t, b.Reserve)
	}
}

// Without a usage report and with a tokenizer that counts bytes, each kind is what
// was appended.
func TestBreakdown_Kinds(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 1000, Reserve: 100, Tools: 50}
	opts.Overheads.Media = func(convo.Media) int { return 30 }
	call := convo.ToolCall{ID: "1", Name: "run", Arguments: "{}"}
	asks := convo.Assistant("so", call)
	asks.Parts = append([]convo.Part{convo.Reasoning{Text: "hmm", Signature: "sig"}}, asks.Parts...)
	answers := convo.Result(call, "0123456789")
	result := answers.Parts[0].(convo.ToolResult)
	result.Parts = append(result.Parts, convo.NewMedia("image/png", []byte{1}))
	answers.Parts[0] = result
	h := historyOf(t, opts, convo.System("guide"), convo.User("where?", convo.NewMedia("image/png", []byte{1})), asks, answers, convo.Assistant("there"))
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	require.NoError(t, h.Pin(5))
	want := convo.Breakdown{
		System: 5, Tools: 50, User: 6, Assistant: 2 + 5, Reasoning: 6, Calls: 6, Results: 4 + 10, Media: 60, Ephemeral: 4,
		Pinned: 5, Free: 900 - 158, Reserve: 100, Window: 1000, High: 900, Low: 450, Soft: 675,
	}
	got := h.Snapshot().Breakdown()
	assert.Equal(t, want, got)
	addUp(t, got, h.Tokens().Tokens)
	assert.Equal(t, "media 60, tools 50, results 14, assistant 7, user 6, reasoning 6, calls 6, system 5, ephemeral 4 (pinned 5); free 742 and reserve 100 of 1,000", got.String())

	// The snapshot keeps the window it was made with.
	s := h.Snapshot()
	require.NoError(t, h.SetLimits(convo.Limits{Window: 200, Reserve: -1, Tools: 70}))
	assert.Equal(t, got, s.Breakdown())
	addUp(t, h.Snapshot().Breakdown(), h.Tokens().Tokens)
	assert.Negative(t, historyOf(t, windowOf(10, nil), convo.User(strings.Repeat("x", 50))).Snapshot().Breakdown().Free)

	// With keeps it as well; other snapshots have none.
	next, err := s.With(convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "short"}})
	require.NoError(t, err)
	b := next.Breakdown()
	assert.Equal(t, 1000, b.Window)
	assert.Positive(t, b.Summary)
	assert.Zero(t, b.Calls+b.Results+b.Reasoning)
	addUp(t, b, 1000-b.Reserve-b.Free)
	loose := convo.NewSnapshot([]convo.Message{convo.User("where?")})
	addUp(t, loose.Breakdown(), loose.Tokens())
	assert.Equal(t, convo.Breakdown{}, new(convo.Snapshot).Breakdown())
	assert.Equal(t, "empty", convo.Breakdown{}.String())
}

// A snapshot that Load made has the limits that its record holds, if SetLimits or SetModel
// set them.
func TestBreakdown_Load(t *testing.T) {
	store := &convotest.MemStore{}
	h, err := convo.Open(t.Context(), store, "k", windowOf(1000, nil))
	require.NoError(t, err)
	defer h.Close()
	mustAppend(t, h, convo.User("Hello."))
	require.NoError(t, h.Save(t.Context()))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 2000, Reserve: -1, Tools: 70, High: 1500}))
	require.NoError(t, h.Save(t.Context()))
	for seq, want := range map[uint64]convo.Breakdown{1: {}, 2: {Window: 2000, High: 1500, Low: 750, Soft: 1125, Tools: 70}} {
		s, err := convo.Load(t.Context(), store, "k", seq)
		require.NoError(t, err)
		got := s.Breakdown()
		want.User, want.Free = got.User, max(want.Window-got.User-want.Tools, 0)
		assert.Positive(t, got.User)
		assert.Equal(t, want, got, "record %d", seq)
	}
}

// After usage reports, changes of model and of limits, and compactions too, the
// kinds add up.
func TestBreakdown_AddsUp(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 13))
		opts := windowOf(3000, nil)
		opts.Tokenizer = nil
		opts.Limits.Tools = rng.IntN(300)
		opts.Priors = map[string]convo.Prior{"b": {Ratio: 150}}
		h := toolTurn(t, opts, 10)
		for range 60 {
			switch rng.IntN(7) {
			case 0:
				require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1 + h.Tokens().Tokens*(50+rng.IntN(100))/100}))
			case 1:
				require.NoError(t, h.SetModel(string("ab"[rng.IntN(2)]), convo.Limits{}))
			case 2:
				require.NoError(t, h.SetEphemeral(convo.User(strings.Repeat("rain ", rng.IntN(9)+1))))
			case 3:
				require.NoError(t, h.SetLimits(convo.Limits{Window: 2000 + rng.IntN(2000), Tools: rng.IntN(500)}))
			case 4:
				_, _ = h.Compact(t.Context(), "")
			default:
				c := callOf("d")
				mustAppend(t, h, convo.User("go on"), convo.Assistant("so", c), convo.Result(c, strings.Repeat("it is so ", rng.IntN(30))), convo.Assistant("ok"))
				require.NoError(t, h.Pin(h.Snapshot().Pinned()...))
			}
			addUp(t, h.Snapshot().Breakdown(), h.Tokens().Tokens)
		}
	}
}

// A few unexpected tokens are not tools, unless there are some.
func TestBreakdown_NoTools(t *testing.T) {
	one := []convo.Tool{{Name: "t"}}
	for _, tt := range []struct {
		tools      []convo.Tool
		more, want int
	}{{nil, 4, 0}, {nil, 40, 40}, {one, 4, 1 + 4}} {
		h := historyOf(t, windowOf(1000, nil), convo.User("how far is it"), convo.Assistant("a mile"), convo.User("let us go"))
		require.NoError(t, h.SetTools(tt.tools...))
		require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Tokens().Tokens + tt.more}))
		b := h.Snapshot().Breakdown()
		assert.Equal(t, tt.want, b.Tools)
		addUp(t, b, h.Tokens().Tokens)
	}
	h := historyOf(t, nil)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 4}))
	addUp(t, h.Snapshot().Breakdown(), 4)
}

// A tokenizer that panics does not reach the caller.
func TestBreakdown_Panic(t *testing.T) {
	panics := false
	opts := bare()
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int {
		if panics {
			panic("no vocabulary")
		}
		return len(s)
	})
	h := toolTurn(t, opts, 3)
	panics = true
	b := h.Snapshot().Breakdown()
	addUp(t, b, h.Tokens().Tokens)
	assert.Zero(t, b.Calls)
}

// The raw tokens of the entries add up to Snapshot.Tokens, and a Breakdown to the estimate,
// after a usage report and in a snapshot that was read from JSON.
func TestBreakdown_AndEntries(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 10_000}}, smallTalk(20)...)
	raw := h.Snapshot().Tokens()
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 2 * raw}))
	for name, s := range map[string]*convo.Snapshot{"as it was": h.Snapshot(), "from JSON": decoded(t, h).Snapshot()} {
		entries, exchanges := 0, 0
		for _, e := range s.All() {
			entries += e.Tokens
		}
		for x := range s.Exchanges() {
			exchanges += x.Tokens
		}
		assert.Equal(t, raw, s.Tokens(), name)
		assert.Equal(t, raw, entries, name)
		assert.Equal(t, raw, exchanges, name)
		b := s.Breakdown()
		assert.Equal(t, 2*raw, b.Tools+b.User+b.Assistant, name)
	}
}

// smallTalk returns n smallTalk with their answers.
func smallTalk(n int) (msgs []convo.Message) {
	for i := range n {
		msgs = append(msgs, convo.User("a question of some words "+itoa(i)), convo.Assistant("an answer of a few more words than that"))
	}
	return msgs
}
