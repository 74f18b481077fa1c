package ops

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	user := turn{role: "user", text: "q"}
	ask := turn{role: "assistant", calls: []call{{id: "a"}, {id: "b"}}}
	a, b := turn{role: "tool", answers: "a"}, turn{role: "tool", answers: "b"}
	reply := turn{role: "assistant", text: "r"}
	for _, tt := range []struct {
		name   string
		req    []turn
		newest turn
		want   verdict
	}{
		{"plain", []turn{user, reply, user}, user, verdict{}},
		{"answered", []turn{user, ask, a, b}, b, verdict{}},
		{"answered in another order", []turn{user, ask, b, a}, a, verdict{}},
		{"same ids again", []turn{user, ask, a, b, ask, a, b}, b, verdict{}},
		{"empty", nil, user, verdict{headless: true, stale: true}},
		{"result missing", []turn{user, ask, a, reply, user}, user, verdict{unanswered: true}},
		{"result missing at the end", []turn{user, ask, b}, b, verdict{unanswered: true}},
		{"results too late", []turn{user, ask, user, a, b}, b, verdict{unanswered: true, orphan: true}},
		{"result twice", []turn{user, ask, a, a, b}, b, verdict{orphan: true}},
		{"result of an earlier call", []turn{user, ask, a, b, reply, a}, a, verdict{orphan: true}},
		{"begins with a result", []turn{a, user}, user, verdict{orphan: true, headless: true}},
		{"begins with an answer", []turn{reply, user}, user, verdict{headless: true}},
		{"newest gone", []turn{user, reply}, user, verdict{stale: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, judge(tt.req, tt.newest))
		})
	}
}

func TestTalk(t *testing.T) {
	const n = 100
	var parallel, again, empty, heavy int
	for seed := range uint64(n) {
		list := talk(seed, true)
		assert.Equal(t, list, talk(seed, true), "the same seed")
		assert.Equal(t, verdict{}, judge(list, list[len(list)-1]), "whole talks are in order")
		ids := map[string]bool{}
		weight, hasParallel, hasAgain, hasEmpty := 0, false, false, false
		for _, m := range list {
			weight += weigh(m)
			hasParallel = hasParallel || len(m.calls) > 1
			hasEmpty = hasEmpty || m.role == "tool" && m.text == ""
			for _, c := range m.calls {
				hasAgain = hasAgain || ids[c.id]
				ids[c.id] = true
			}
		}
		for c, is := range map[*int]bool{&parallel: hasParallel, &again: hasAgain, &empty: hasEmpty, &heavy: weight > 2*pairBudget} {
			if is {
				*c++
			}
		}
		for _, m := range talk(seed, false) {
			assert.False(t, m.role == "tool" && m.text == "")
		}
	}
	assert.Greater(t, parallel, n/2)
	assert.Greater(t, again, n/10)
	assert.Greater(t, empty, n/2)
	assert.Greater(t, heavy, n*9/10)
}

func TestWays(t *testing.T) {
	defer quietLog()()
	const talks = 15
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			got, err := w.play(talks, true)
			require.NoError(t, err)
			assert.Greater(t, got.requests, 1000)
			assert.Greater(t, got.trimmed, got.requests/4, "the budget is felt")
			switch w.name {
			case ways()[0].name:
				assert.Zero(t, got.broken)
				assert.Zero(t, got.stale)
				assert.Zero(t, got.refused)
				assert.LessOrEqual(t, got.weight, got.trimmed*pairBudget)
			case "eino summarization", "eino clearing":
				assert.Zero(t, got.broken)
			default:
				assert.NotZero(t, got.broken)
			}
		})
	}
}
