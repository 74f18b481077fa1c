package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

func TestTokens_OfEachPart(t *testing.T) {
	c := convo.ToolCall{ID: "id1", Name: "name", Arguments: `{"a":1}`}
	u := convo.User("u")
	for _, tt := range []struct {
		name string
		msgs []convo.Message
		want int // of the last message, with the default overheads
	}{
		{"text", []convo.Message{convo.User("12345")}, 4 + 5},
		{"texts", []convo.Message{convo.User("12345", convo.Text("678"))}, 4 + 8},
		{"reasoning", []convo.Message{u, {Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{ID: "no", Text: "123", Signature: "45", Encrypted: "6"}}}}, 4 + 6},
		{"call", []convo.Message{u, convo.Assistant("hi", c)}, 4 + 2 + 8 + 3 + 4 + 7},
		{"result", []convo.Message{u, convo.Assistant("", c), convo.Result(c, "12345")}, 4 + 4 + 3 + 4 + 5},
		{"result without id and name", []convo.Message{u, convo.Assistant("", c), resultOf(convo.ToolResult{Parts: []convo.Part{convo.Text("12345")}})}, 4 + 4 + 3 + 4 + 5},
		{"error result", []convo.Message{u, convo.Assistant("", c), convo.ResultError(c, errors.New("123"))}, 4 + 4 + 3 + 4 + 3},
		{"opaque", []convo.Message{convo.User("", convo.Opaque{Format: "f", JSON: `{"x":1}`})}, 4 + 7},
		{"image", []convo.Message{convo.User("", convo.NewMedia("image/png", make([]byte, 3<<20)))}, 4 + 1600},
		{"document", []convo.Message{convo.User("", convo.Media{MIME: "application/pdf", URL: "https://example.com/a.pdf"})}, 4 + 3000},
		{"image in a result", []convo.Message{u, convo.Assistant("", c), resultOf(convo.ToolResult{CallID: "id1", Name: "name", Parts: []convo.Part{
			convo.Text("12"), convo.NewMedia("image/jpeg", make([]byte, 3<<20)), convo.Opaque{Format: "f", JSON: "1"}}})}, 4 + 4 + 3 + 4 + 2 + 1600 + 1},
		{"meta and origin are free", []convo.Message{{Role: convo.RoleUser, Meta: "xyz", Origin: convo.Origin{Model: "m"}, Parts: []convo.Part{convo.Text("1")}}}, 4 + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Tokenizer: byBytes}, tt.msgs...)
			e, ok := h.Snapshot().At(h.Len() - 1)
			require.True(t, ok)
			assert.Equal(t, tt.want, e.Tokens)
			assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
			assert.Equal(t, h.Snapshot().Tokens(), h.Tokens().Tokens)
		})
	}
}

func TestTokens_Overheads(t *testing.T) {
	c := callOf("c")
	msgs := []convo.Message{convo.User("u", convo.NewMedia("image/png", []byte("x"))), convo.Assistant("", c), convo.Result(c, "")}
	texts := 1 + 2*len("c"+"tool") + len("{}")
	for _, tt := range []struct {
		name string
		over convo.Overheads
		want int
	}{
		{"default", convo.Overheads{}, 3*4 + 8 + 4 + 1600},
		{"other", convo.Overheads{Message: 10, Call: 20, Result: 30, Media: func(convo.Media) int { return 5 }}, 3*10 + 20 + 30 + 5},
		{"none", convo.Overheads{Message: -1, Call: -1, Result: -1, Media: func(convo.Media) int { return -7 }}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: tt.over}, msgs...)
			assert.Equal(t, tt.want+texts, h.Tokens().Tokens)
		})
	}
}

func TestTokens_HeuristicIsTheDefault(t *testing.T) {
	text := strings.Repeat("one word more ", 50)
	h := historyOf(t, nil, convo.User(text))
	assert.Equal(t, 4+convo.Heuristic{}.CountTokens(text), h.Tokens().Tokens)
	big := historyOf(t, nil, convo.User("look", convo.NewMedia("image/png", make([]byte, 3<<20))))
	assert.Less(t, big.Tokens().Tokens, 10_000, "an image is not counted by its bytes")
}

// The raw total is the sum of what is in the view, whatever happened.
func TestTokens_TotalIsTheSum(t *testing.T) {
	h := tour(t, bare())
	total := func(ephemeral int) {
		t.Helper()
		assert.Equal(t, rawTotal(h.Snapshot())+ephemeral, h.Snapshot().Tokens())
		assert.Equal(t, h.Snapshot().Tokens(), h.Tokens().Tokens)
		assert.Equal(t, h.Tokens().Tokens, h.Status().Tokens)
	}
	total(0)
	at := h.Snapshot()
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	total(4)
	require.NoError(t, h.SetSystem(convo.System("one"), convo.System("two")))
	total(4)
	apply(t, h, convo.Edit{Drop: []convo.ID{2}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}})
	total(4)
	mustAppend(t, h, convo.Assistant("", callOf("c")))
	_, err := h.AnswerOpenCalls("")
	require.NoError(t, err)
	total(4)
	mustAppend(t, h, convo.User("v"), convo.Assistant("x"))
	apply(t, h, convo.Edit{Drop: []convo.ID{9}})
	total(4)
	require.NoError(t, h.Rollback(at))
	total(4)
	rewind(t, h)
	total(4)
	require.NoError(t, h.SetEphemeral())
	total(0)
}

func TestTokens_UpperIsAnEighthMore(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 2, 7: 8, 8: 9, 9: 11, 16: 18, 100: 113, 8000: 9000} {
		h := historyOf(t, &convo.Options{Limits: convo.Limits{Tools: n}})
		assert.Equal(t, convo.Estimate{Tokens: n, Upper: want}, h.Tokens())
		assert.Equal(t, []int{n, want}, []int{h.Status().Tokens, h.Status().Upper})
	}
}

func TestTokens_EachTextIsCountedOnce(t *testing.T) {
	counted := map[string]int{}
	opts := &convo.Options{Tokenizer: convo.TokenizerFunc(func(s string) int { counted[s]++; return len(s) })}
	h := historyOf(t, opts, convo.User("alpha"), convo.Assistant("beta"))
	for range 10 {
		h.Tokens()
		h.Status()
		h.Snapshot().Tokens()
	}
	mustAppend(t, h, convo.User("gamma"))
	_, err := h.SplicePrefix(h.Snapshot(), 1, "delta")
	require.NoError(t, err)
	for _, text := range []string{"alpha", "beta", "gamma", "delta"} {
		assert.Equal(t, 1, counted[text], text)
	}
	assert.Zero(t, counted[""], "an empty text is not asked about")
}

// The arguments of a call, and reasoning, count like text.
func TestTokens_ArgumentsAndReasoningCount(t *testing.T) {
	big := convo.ToolCall{ID: "c", Name: "write", Arguments: `{"text":"` + strings.Repeat("lorem ipsum ", 34_000) + `"}`}
	opts := &convo.Options{Limits: convo.Limits{Window: 60_000}, Strategy: convo.Truncate{}}
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", big), convo.Result(big, "ok"), convo.Assistant("done"), convo.User("next"))
	require.Greater(t, h.Status().Upper, 60_000)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{1, 5}, idsOf(h.Snapshot()))

	thought := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: strings.Repeat("hm, ", 100_000)}, convo.Text("so")}}
	h = historyOf(t, opts, convo.User("u"), thought, convo.User("next"))
	assert.Greater(t, h.Status().Upper, 60_000, "reasoning too")
}

// What Overheads.Reasoning says is not sent weighs nothing: in the History, in its
// breakdown, after a rewrite and after a load.
func TestTokens_ReasoningThatIsNotSent(t *testing.T) {
	c := callOf("c")
	thinks := func(text string, calls ...convo.ToolCall) convo.Message {
		m := convo.Assistant(text, calls...)
		m.Parts = append([]convo.Part{convo.Reasoning{Text: "0123456789"}}, m.Parts...)
		return m
	}
	msgs := []convo.Message{
		convo.User("u"), thinks("a"), // no tool is called in this turn
		convo.User("u"), thinks("b"), thinks("", c), convo.Result(c, "r"), thinks("d"), thinks("e"),
		convo.User("u"), thinks("f"),
	}
	for _, tt := range []struct {
		replay convo.Replay
		thinks []bool // which of the messages of the assistant count
	}{
		{convo.ReplayDefault, []bool{true, true, true, true, true, true}},
		{convo.ReplayAll, []bool{true, true, true, true, true, true}},
		{convo.ReplayTools, []bool{false, false, true, true, true, false}},
		{convo.ReplayNone, []bool{false, false, false, false, false, false}},
	} {
		t.Run(fmt.Sprint(tt.replay), func(t *testing.T) {
			opts := &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Reasoning: tt.replay}, Roles: convo.Relaxed()}
			check := func(h *convo.History, text int) {
				t.Helper()
				s, i, sum := h.Snapshot(), 0, 0
				for _, e := range s.All() {
					if e.Message.Role != convo.RoleAssistant {
						continue
					}
					want := 4 + text
					if len(e.Message.ToolCalls()) > 0 {
						want = 4 + 8 + len("c"+"tool"+"{}")
					}
					if tt.thinks[i] {
						want, sum = want+10, sum+10
					}
					assert.Equal(t, want, e.Tokens, "%d", e.ID)
					assert.Zero(t, e.Missing)
					i++
				}
				assert.Equal(t, sum, s.Breakdown().Reasoning)
				assert.Equal(t, rawTotal(s), s.Tokens())
			}
			alone := historyOf(t, opts, msgs...)
			check(alone, 1)
			batch, err := convo.New(opts)
			require.NoError(t, err)
			_, err = batch.Append(msgs...)
			require.NoError(t, err)
			check(batch, 1)
			again, err := convo.Restore(batch.Snapshot(), opts)
			require.NoError(t, err)
			check(again, 1)

			// A batch whose results are spilled is checked twice before it is appended.
			spilling := *opts
			spilling.MaxResult, spilling.Spill = 64, func(context.Context, convo.ToolResult) (string, error) { return "ref", nil }
			twice, err := convo.New(&spilling)
			require.NoError(t, err)
			long := slices.Clone(msgs)
			long[5] = convo.Result(c, strings.Repeat("long ", 100))
			_, err = twice.Append(long...)
			require.NoError(t, err)
			check(twice, 1)

			var e convo.Edit
			for _, entry := range batch.Snapshot().All() {
				if m := entry.Message; m.Role == convo.RoleAssistant && len(m.ToolCalls()) == 0 {
					e.Rewrite = append(e.Rewrite, convo.Rewrite{ID: entry.ID, Parts: []convo.Part{m.Parts[0], convo.Text("other")}})
				}
			}
			r, err := batch.Apply(batch.Snapshot(), e)
			require.NoError(t, err)
			check(batch, 5)
			again, err = convo.Restore(batch.Snapshot(), opts)
			require.NoError(t, err)
			check(again, 5)
			require.NoError(t, batch.Undo(r))
			check(batch, 1)
		})
	}
	_, err := convo.New(&convo.Options{Overheads: convo.Overheads{Reasoning: 4}})
	value, ok := errors.AsType[*convo.ValueError](err)
	require.True(t, ok)
	assert.Equal(t, "Options.Overheads.Reasoning", value.Name)
}

// What was sent with the reasoning of a turn goes on being counted when the calls of
// the turn have been dropped, also after a load.
func TestTokens_ReasoningAfterDroppedCalls(t *testing.T) {
	opts := &convo.Options{Overheads: convo.Overheads{Reasoning: convo.ReplayTools}}
	call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
	h := historyOf(t, opts, convo.User("u"), convo.Assistant("", call), convo.Result(call, "r"),
		thoughts.In(convo.Assistant("a"), convo.Reasoning{Text: "one two three four five six"}), convo.User("v"))
	apply(t, h, convo.Edit{Drop: []convo.ID{2, 3}})
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	again, err := convo.Restore(snapshotOf(t, string(data)), opts)
	require.NoError(t, err)
	assert.Equal(t, h.Tokens(), again.Tokens())
	assert.Equal(t, h.Snapshot().Tokens(), again.Snapshot().Tokens())
}

// Count agrees with Append on reasoning that is sent with tool calls only.
func TestCount_Reasoning(t *testing.T) {
	c := callOf("c")
	thinks := func(calls ...convo.ToolCall) convo.Message {
		return thoughts.In(convo.Assistant("a", calls...), convo.Reasoning{Text: "0123456789"})
	}
	for _, replay := range []convo.Replay{convo.ReplayAll, convo.ReplayTools, convo.ReplayNone} {
		h := historyOf(t, &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Reasoning: replay}, Roles: convo.Relaxed()})
		for _, m := range []convo.Message{thinks(), convo.User("u"), thinks(), thinks(c), convo.Result(c, "r"), thinks(), convo.User("u"), thinks()} {
			n, err := h.Count(m)
			require.NoError(t, err)
			assert.Equal(t, n, find(t, h, mustAppend(t, h, m)).Tokens, "%v %v", replay, m)
		}
	}
}

// Of imported messages, those behind the calls of a turn count with their reasoning.
func TestTokens_ReasoningOfAnImport(t *testing.T) {
	opts := &convo.Options{Overheads: convo.Overheads{Reasoning: convo.ReplayTools}}
	call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
	msgs := []convo.Message{
		convo.User("u"), convo.Assistant("", call), convo.Result(call, "r"),
		thoughts.In(convo.Assistant("a"), convo.Reasoning{Text: "one two three four five six"}),
	}
	h, err := convo.Restore(convo.NewSnapshot(msgs), opts)
	require.NoError(t, err)
	assert.Equal(t, historyOf(t, opts, msgs...).Tokens(), h.Tokens())
}

// Reasoning that is not sent would spoil the ratio that usage reports show: after turns
// with much of it, a large message would be underestimated.
func TestUpper_AfterReasoningThatIsNotSent(t *testing.T) {
	for _, replay := range []convo.Replay{convo.ReplayTools, convo.ReplayNone} {
		opts := &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Reasoning: replay}, Limits: convo.Limits{Window: 400_000}}
		h, err := convo.New(opts)
		require.NoError(t, err)
		sent := 0 // bytes of what the provider reads: text alone
		say := func(m convo.Message) {
			mustAppend(t, h, m)
			sent += len(m.Text()) + 4
		}
		truth := func() int { return sent * 13 / 10 }
		for range 10 {
			say(convo.User(strings.Repeat("ask ", 100)))
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: truth(), Output: 3000}))
			say(thoughts.In(convo.Assistant("The answer."), convo.Reasoning{Text: strings.Repeat("I think. ", 1000)}))
		}
		say(convo.User(strings.Repeat("large ", 10_000)))
		assert.GreaterOrEqual(t, h.Tokens().Upper, truth(), replay)
		assert.InEpsilon(t, truth(), h.Tokens().Tokens, 0.02, replay)
	}
}
