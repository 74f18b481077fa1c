package convo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
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
	mustAppend(t, h, convo.User("v"))
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
		h := historyOf(t, &convo.Options{Limits: convo.Limits{Overhead: n}})
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
