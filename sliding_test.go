package convo_test

import (
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSlidingWindow(t *testing.T) {
	for _, tt := range []struct {
		keep int
		pin  []convo.ID
		want string
	}{
		{0, nil, "1 9"},
		{2, nil, "1 7 8 9"}, // 7 is the user message of the turn that the window begins in
		{3, nil, "1 7 8 9"},
		{4, nil, "1 2 6 7 8 9"},
		{5, nil, "1 2 3 4 5 6 7 8 9"},
		{2, []convo.ID{4}, "1 3 4 5 7 8 9"},
		{100, nil, "convo: nothing worth removing"},
	} {
		h := tour(t, bare())
		require.NoError(t, h.Pin(tt.pin...))
		got, _ := planOf(t, convo.SlidingWindow{Keep: tt.keep}, h.Snapshot(), convo.Goal{})
		if tt.keep == 5 {
			assert.Equal(t, "convo: nothing worth removing", got)
			continue
		}
		assert.Equal(t, tt.want, got, "keep %d, pinned %v", tt.keep, tt.pin)
	}
}

func TestSlidingWindow_Turns(t *testing.T) {
	for _, tt := range []struct {
		keep, turns int
		pin         []convo.ID
		want        string
	}{
		{0, 1, nil, "1 9"},
		{0, 2, nil, "1 7 8 9"},
		{1, 2, nil, "1 7 8 9"},
		{4, 2, nil, "1 2 6 7 8 9"}, // four entries begin in the first turn
		{2, 1, nil, "1 7 8 9"},
		{0, 1, []convo.ID{3}, "1 3 4 5 9"},
		{0, 3, nil, "convo: nothing worth removing"},
		{0, 4, nil, "convo: nothing worth removing"},
		{3, 1, nil, "1 7 8 9"},
		{-2, 2, nil, "1 7 8 9"},
		{0, -1, nil, "1 9"}, // as without Turns
	} {
		h := tour(t, bare())
		require.NoError(t, h.Pin(tt.pin...))
		got, _ := planOf(t, convo.SlidingWindow{Keep: tt.keep, Turns: tt.turns}, h.Snapshot(), convo.Goal{})
		assert.Equal(t, tt.want, got, "%+v", tt)
	}
}

func TestSlidingWindow_DueByTurns(t *testing.T) {
	for _, tt := range []struct {
		w              convo.SlidingWindow
		entries, turns int
		want           bool
	}{
		{convo.SlidingWindow{Turns: 3}, 100, 3, false},
		{convo.SlidingWindow{Turns: 3}, 100, 4, true},
		{convo.SlidingWindow{Turns: 3, TriggerAt: 6}, 100, 5, false},
		{convo.SlidingWindow{Turns: 3, TriggerAt: 6}, 100, 6, true},
		{convo.SlidingWindow{Turns: 3, TriggerAt: 2}, 100, 3, false}, // never with nothing to drop
		{convo.SlidingWindow{Turns: 3, Keep: 20}, 20, 8, false},
		{convo.SlidingWindow{Turns: 3, Keep: 20}, 21, 8, true},
		{convo.SlidingWindow{Turns: 3, Keep: 20}, 100, 3, false},
		{convo.SlidingWindow{Turns: -3}, 2, 1, true},
	} {
		assert.Equal(t, tt.want, tt.w.Due(convo.Status{Entries: tt.entries + 2, System: 2, Turns: tt.turns}), "%+v", tt)
	}
	opts := bare()
	opts.Strategy = convo.SlidingWindow{Turns: 2}
	h := tour(t, opts) // three turns
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Equal(t, []convo.ID{1, 7, 8, 9}, idsOf(h.Snapshot()))
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
}

func TestSlidingWindow_Due(t *testing.T) {
	for _, tt := range []struct{ keep, at, entries, due int }{
		{keep: 5, at: 0, entries: 5},
		{keep: 5, at: 0, entries: 6, due: 1},
		{keep: 5, at: 10, entries: 9},
		{keep: 5, at: 10, entries: 10, due: 1},
		{keep: 5, at: 3, entries: 5}, // never with nothing to drop
		{keep: 0, at: 0, entries: 1},
		{keep: 0, at: 0, entries: 2, due: 1},
	} {
		w := convo.SlidingWindow{Keep: tt.keep, TriggerAt: tt.at}
		assert.Equal(t, tt.due == 1, w.Due(convo.Status{Entries: tt.entries + 2, System: 2}), "%+v", tt)
	}
	opts := bare()
	opts.Strategy = convo.SlidingWindow{Keep: 3, TriggerAt: 6}
	h := tour(t, opts) // eight entries that are not system entries
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Equal(t, []convo.ID{1, 7, 8, 9}, idsOf(h.Snapshot()))
}
