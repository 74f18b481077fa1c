package convo_test

import (
	"context"
	"math/rand/v2"
	"slices"
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
		{1, nil, "1 9"},
		{2, nil, "1 9"}, // no room for 7, which 8 answers
		{3, nil, "1 7 8 9"},
		{4, nil, "1 7 8 9"},
		{5, nil, "1 2 6 7 8 9"}, // the window begins inside a turn
		{6, nil, "1 2 6 7 8 9"}, // without a part of the exchange from 3 to 5
		{7, nil, "1 2 6 7 8 9"},
		{8, nil, "convo: nothing worth removing; go on with the conversation as it is"},
		{2, []convo.ID{4}, "1 3 4 5 9"},
		{100, nil, "convo: nothing worth removing; go on with the conversation as it is"},
	} {
		h := tour(t, bare())
		require.NoError(t, h.Pin(tt.pin...))
		got, _ := planOf(t, convo.SlidingWindow{KeepLast: tt.keep}, h.Snapshot(), convo.Goal{})
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
		{1, 2, nil, "1 9"},
		{4, 2, nil, "1 7 8 9"},
		{2, 3, nil, "1 9"},
		{5, 3, nil, "1 2 6 7 8 9"},
		{2, 1, nil, "1 9"},
		{0, 1, []convo.ID{3}, "1 3 4 5 9"},
		{0, 3, nil, "convo: nothing worth removing; go on with the conversation as it is"},
		{0, 4, nil, "convo: nothing worth removing; go on with the conversation as it is"},
		{3, 1, nil, "1 9"},
		{-2, 2, nil, "1 7 8 9"},
		{0, -1, nil, "1 9"}, // as without Turns
	} {
		h := tour(t, bare())
		require.NoError(t, h.Pin(tt.pin...))
		got, _ := planOf(t, convo.SlidingWindow{KeepLast: tt.keep, KeepTurns: tt.turns}, h.Snapshot(), convo.Goal{})
		assert.Equal(t, tt.want, got, "%+v", tt)
	}
}

// However many user messages come in a row, once they are answered no more than Keep
// entries stay.
func TestSlidingWindow_UsersInARow(t *testing.T) {
	opts := bare()
	opts.Roles = convo.Relaxed()
	opts.Strategy = convo.SlidingWindow{KeepLast: 2}
	h, err := convo.New(opts)
	require.NoError(t, err)
	for range 50 {
		mustAppend(t, h, convo.User("and another thing"))
	}
	mustAppend(t, h, convo.Assistant("a"), convo.User("q"))
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{52}, idsOf(h.Snapshot()))

	for range 50 {
		mustAppend(t, h, convo.User("what now"))
	}
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 51, h.Len(), "all that the model has not answered")
	mustAppend(t, h, convo.Assistant("a"), convo.User("q"), convo.Assistant("b"))
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{104, 105}, idsOf(h.Snapshot()))
}

// The summary leaves with what it stood for, but not while the window has room for
// that, nor if a link before has just made it.
func TestSlidingWindow_Summary(t *testing.T) {
	opts := bare()
	opts.Strategy = convo.SlidingWindow{KeepLast: 3}
	h := tour(t, opts)
	n, err := h.SplicePrefix(h.Snapshot(), 6, "they went there")
	require.NoError(t, err)
	require.Equal(t, 5, n)
	_, err = convo.SlidingWindow{KeepLast: 3}.Compact(t.Context(), h.Snapshot(), convo.Goal{})
	require.ErrorIs(t, err, convo.ErrNoGain, "three entries, and all fit")
	mustAppend(t, h, convo.Assistant("a"))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.True(t, r.SummaryDropped, "%+v", r)
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
	assert.Equal(t, []convo.ID{1, 9, 10}, idsOf(h.Snapshot()))

	opts.Strategy = convo.Chain(convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{2, 3, 4, 5}, Summary: &convo.Summary{Text: "s"}}, nil
	}), convo.SlidingWindow{KeepLast: 2})
	h = tour(t, opts)
	_, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	sum, ok := h.Snapshot().Summary()
	assert.True(t, ok)
	assert.False(t, sum.Time.IsZero())
	assert.Equal(t, []convo.ID{1, 9}, idsOf(h.Snapshot()))
}

// Of any conversation, what is kept is the floor and the longest window that fits.
func TestSlidingWindow_LongestThatFits(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h, err := convo.New(&convo.Options{Roles: convo.Relaxed()})
		require.NoError(t, err)
		mustAppend(t, h, convo.System("s"))
		for range rng.IntN(12) {
			switch rng.IntN(4) {
			case 0:
				mustAppend(t, h, convo.Assistant("a"))
			case 1:
				mustAppend(t, h, convo.Assistant("", callOf("c")), convo.Result(callOf("c"), "r"))
			case 2:
				mustAppend(t, h, convo.System("note"))
			default:
				for range 1 + rng.IntN(4) {
					mustAppend(t, h, convo.User("u"))
				}
			}
			if rng.IntN(6) == 0 {
				_ = h.PinLast()
			}
		}
		s, keep := h.Snapshot(), 1+rng.IntN(8)
		all := slices.Collect(s.Exchanges())[h.Status().System:]
		kept := func(from int) (ids []convo.ID) { // by a window that begins there
			head := true
			for i, x := range all {
				e, _ := s.Find(x.First)
				head = (head || all[i-1].Turn != x.Turn) && e.Message.Role != convo.RoleAssistant
				if i >= from || head && from < len(all) && x.Turn == all[from].Turn {
					ids = append(ids, x.IDs()...)
				}
			}
			return ids
		}
		from := 0
		for from < len(all) && len(kept(from)) > keep {
			from++
		}
		want := kept(from)
		for x := range s.Exchanges() {
			if x.Floor {
				want = append(want, x.IDs()...)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		e, err := convo.SlidingWindow{KeepLast: keep}.Compact(t.Context(), s, convo.Goal{})
		if err != nil {
			require.ErrorIs(t, err, convo.ErrNoGain)
		}
		next, err := s.With(e)
		require.NoError(t, err)
		require.Equal(t, want, idsOf(next), "seed %d, keep %d of %v", seed, keep, all)
	}
}

func TestSlidingWindow_DueByTurns(t *testing.T) {
	for _, tt := range []struct {
		w              convo.SlidingWindow
		entries, turns int
		want           bool
	}{
		{convo.SlidingWindow{KeepTurns: 3}, 100, 3, false},
		{convo.SlidingWindow{KeepTurns: 3}, 100, 4, true},
		{convo.SlidingWindow{KeepTurns: 3, TriggerAt: 6}, 100, 5, false},
		{convo.SlidingWindow{KeepTurns: 3, TriggerAt: 6}, 100, 6, true},
		{convo.SlidingWindow{KeepTurns: 3, TriggerAt: 2}, 100, 3, false}, // never with nothing to drop
		{convo.SlidingWindow{KeepTurns: 3, KeepLast: 20}, 20, 3, false},
		{convo.SlidingWindow{KeepTurns: 3, KeepLast: 20}, 20, 8, true},
		{convo.SlidingWindow{KeepTurns: 3, KeepLast: 20}, 21, 3, true},
		{convo.SlidingWindow{KeepTurns: 3, KeepLast: 20, TriggerAt: 30}, 20, 29, false},
		{convo.SlidingWindow{KeepTurns: -3}, 2, 1, true},
	} {
		assert.Equal(t, tt.want, tt.w.Due(convo.Status{Entries: tt.entries + 2, System: 2, Turns: tt.turns}), "%+v", tt)
	}
	opts := bare()
	opts.Strategy = convo.SlidingWindow{KeepTurns: 2}
	h := tour(t, opts) // three turns
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Equal(t, []convo.ID{1, 7, 8, 9}, idsOf(h.Snapshot()))
	r, err = reportOf(h.Prepare(t.Context()))
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
		w := convo.SlidingWindow{KeepLast: tt.keep, TriggerAt: tt.at}
		assert.Equal(t, tt.due == 1, w.Due(convo.Status{Entries: tt.entries + 2, System: 2}), "%+v", tt)
	}
	opts := bare()
	opts.Strategy = convo.SlidingWindow{KeepLast: 3, TriggerAt: 6}
	h := tour(t, opts) // eight entries that are not system entries
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonTrigger, r.Reason)
	assert.Equal(t, []convo.ID{1, 7, 8, 9}, idsOf(h.Snapshot()))
}
