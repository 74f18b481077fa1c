package talks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

func TestJudge(t *testing.T) {
	user := peer.Message{Role: "user", Text: "q"}
	ask := peer.Message{Role: "assistant", Calls: []peer.Call{{ID: "a"}, {ID: "b"}}}
	a, b := peer.Message{Role: "tool", Answers: "a"}, peer.Message{Role: "tool", Answers: "b"}
	reply := peer.Message{Role: "assistant", Text: "r"}
	for _, tt := range []struct {
		name   string
		req    []peer.Message
		newest peer.Message
		want   verdict
	}{
		{"plain", []peer.Message{user, reply, user}, user, verdict{}},
		{"answered", []peer.Message{user, ask, a, b}, b, verdict{}},
		{"answered in another order", []peer.Message{user, ask, b, a}, a, verdict{}},
		{"same ids again", []peer.Message{user, ask, a, b, ask, a, b}, b, verdict{}},
		{"empty", nil, user, verdict{headless: true, stale: true}},
		{"result missing", []peer.Message{user, ask, a, reply, user}, user, verdict{unanswered: true}},
		{"result missing at the end", []peer.Message{user, ask, b}, b, verdict{unanswered: true}},
		{"results too late", []peer.Message{user, ask, user, a, b}, b, verdict{unanswered: true, orphan: true}},
		{"result twice", []peer.Message{user, ask, a, a, b}, b, verdict{orphan: true}},
		{"result of an earlier call", []peer.Message{user, ask, a, b, reply, a}, a, verdict{orphan: true}},
		{"begins with a result", []peer.Message{a, user}, user, verdict{orphan: true, headless: true}},
		{"begins with an answer", []peer.Message{reply, user}, user, verdict{headless: true}},
		{"newest gone", []peer.Message{user, reply}, user, verdict{stale: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, judge(tt.req, tt.newest))
		})
	}
}

func TestMake(t *testing.T) {
	const n = 100
	var parallel, again, empty, heavy int
	for seed := range uint64(n) {
		list := Make(seed, true)
		assert.Equal(t, list, Make(seed, true), "the same seed")
		assert.Equal(t, verdict{}, judge(list, list[len(list)-1]), "whole conversations are valid")
		for i, m := range list {
			require.Equal(t, i, m.N)
		}
		ids := map[string]bool{}
		weight, hasParallel, hasAgain, hasEmpty := 0, false, false, false
		for _, m := range list {
			weight += peer.MeasureLenFour.Weigh(m)
			hasParallel = hasParallel || len(m.Calls) > 1
			hasEmpty = hasEmpty || m.Role == "tool" && m.Text == ""
			for _, c := range m.Calls {
				hasAgain = hasAgain || ids[c.ID]
				ids[c.ID] = true
			}
		}
		for c, is := range map[*int]bool{&parallel: hasParallel, &again: hasAgain, &empty: hasEmpty, &heavy: weight > 2*Budget} {
			if is {
				*c++
			}
		}
		for _, m := range Make(seed, false) {
			assert.False(t, m.Role == "tool" && m.Text == "")
		}
	}
	assert.Greater(t, parallel, n/2)
	assert.Greater(t, again, n/10)
	assert.Greater(t, empty, n/2)
	assert.Greater(t, heavy, n*9/10)
}

// play runs conversations with a function that returns the request for the
// messages so far, or nil if it is too long.
func play(t *testing.T, view func(said []peer.Message) []peer.Message) Tally {
	got, err := Play(func(job peer.Job) ([]peer.Request, error) {
		var out []peer.Request
		for _, ask := range job.Asks {
			v := view(job.Messages[:ask])
			out = append(out, peer.Request{View: v, TooLong: v == nil})
		}
		return out, nil
	}, 5, true)
	require.NoError(t, err)
	return got
}

func TestPlay(t *testing.T) {
	whole := play(t, func(said []peer.Message) []peer.Message { return said })
	assert.Greater(t, whole.Requests, 300)
	assert.Equal(t, Tally{Requests: whole.Requests}, whole)

	alone := play(t, func(said []peer.Message) []peer.Message { return said[len(said)-1:] })
	assert.Equal(t, whole.Requests-5, alone.Trimmed, "all but the first request of a conversation")
	assert.Equal(t, alone.Orphans, alone.Headless)
	assert.Equal(t, alone.Orphans, alone.Broken)
	assert.Positive(t, alone.Broken)
	assert.Positive(t, alone.Weight)
	assert.Zero(t, alone.Stale)

	none := play(t, func([]peer.Message) []peer.Message { return nil })
	assert.Equal(t, Tally{Requests: whole.Requests, Refused: whole.Requests}, none)

	_, err := Play(func(peer.Job) ([]peer.Request, error) { return nil, nil }, 1, true)
	assert.ErrorContains(t, err, "0 requests, want")
}
