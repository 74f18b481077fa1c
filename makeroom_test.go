package convo_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestMakeRoom_Window(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	total := h.Status().Upper

	res, r, err := h.MakeRoom(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "room enough")
	assert.Equal(t, total, h.Status().Upper)
	assert.Equal(t, 3000, h.Status().Limit, "the limit is lower until Release")
	assert.Equal(t, 3000, h.Status().High)

	second, r, err := h.MakeRoom(t.Context(), 2000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, convo.ReasonRoom, r.Reason)
	assert.LessOrEqual(t, h.Status().Upper, 1000, "further than low water, where n needs it")
	assert.Equal(t, 1000, h.Status().Limit)

	res.Release()
	res.Release()
	assert.Equal(t, 2000, h.Status().Limit)
	second.Release()
	assert.Equal(t, 4000, h.Status().Limit)

	// To low water, not just as far as n needs.
	h = toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	_, r, err = h.MakeRoom(t.Context(), 4000-total+1)
	require.NoError(t, err)
	assert.LessOrEqual(t, r.TokensAfter, 2000)
}

func TestMakeRoom_Fails(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	unchanged(t, h, func() {
		for _, tt := range []struct {
			n     int
			check func(error)
		}{
			{-1, func(err error) {
				var v *convo.ValueError
				require.ErrorAs(t, err, &v)
				assert.Equal(t, "MakeRoom", v.Name)
			}},
			{3990, func(err error) {
				var floor *convo.FloorError
				require.ErrorAs(t, err, &floor)
				assert.Equal(t, 20, floor.Floor)
				assert.Equal(t, 3990, floor.Room)
				assert.Equal(t, 4000, floor.Limit)
				assert.ErrorContains(t, err, "cannot fit: 20 protected + 3,990 reserved tokens exceed limit 4,000")
			}},
		} {
			res, r, err := h.MakeRoom(t.Context(), tt.n)
			assert.Nil(t, res)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			tt.check(err)
		}
	})

	// A strategy that frees too little: nothing is deleted, nothing reserved.
	timid := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})
	h = toolTurn(t, windowOf(4000, timid), 20)
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 3000)
		var limit *convo.LimitError
		require.ErrorAs(t, err, &limit)
		assert.Equal(t, 3000, limit.Room)
		assert.Equal(t, 4000, limit.Limit)
	})
	var none *convo.Reservation
	none.Release() // of a MakeRoom that failed
}

func TestMakeRoom_NoLimit(t *testing.T) {
	h := tour(t, nil)
	res, r, err := h.MakeRoom(t.Context(), 1<<30)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	res.Release()
}

func TestMakeRoom_Budget(t *testing.T) {
	pool := convo.NewBudget(5000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	charge := pool.Used()

	res, r, err := h.MakeRoom(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	assert.Equal(t, charge+1000, pool.Used())
	assert.Zero(t, h.Status().Limit, "out of the pool, not of the window")

	other, err := pool.Reserve(1000)
	require.NoError(t, err)
	big, r, err := h.MakeRoom(t.Context(), 2000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, 4000+h.Status().Upper, pool.Used())
	assert.LessOrEqual(t, pool.Used(), 5000)

	// The pool is too small for floor and n, whatever this History gives up.
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 2500)
		var floor *convo.FloorError
		require.ErrorAs(t, err, &floor)
	})
	big.Release()
	other.Release()
	res.Release()
	require.NoError(t, h.Close())
	assert.Zero(t, pool.Used())
}

// Free tokens in the pool do not help a request that does not fit the window.
func TestMakeRoom_AboveTheLimitWithABudget(t *testing.T) {
	pool := convo.NewBudget(100_000)
	opts := windowOf(1000, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	require.Greater(t, h.Status().Upper, 1000)
	res, r, err := h.MakeRoom(t.Context(), 10)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.True(t, r.Fits)
	assert.LessOrEqual(t, h.Status().Upper, 1000)
	assert.Equal(t, h.Status().Upper+10, pool.Used())
	res.Release()
	assert.Equal(t, h.Status().Upper, pool.Used())
}

// The room that MakeRoom made was taken while its strategy ran.
func TestMakeRoom_RoomTakenMeanwhile(t *testing.T) {
	for name, take := range map[string]func(h *convo.History){
		"by another MakeRoom": func(h *convo.History) {
			_, _, err := h.MakeRoom(context.Background(), 700)
			assert.NoError(t, err)
		},
		"by other limits": func(h *convo.History) {
			assert.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h *convo.History
			once := false
			h = toolTurn(t, windowOf(4000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				if !once {
					once = true
					take(h)
				}
				// It would have been enough, had the room not been taken.
				return convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, nil
			})), 20)
			entries := h.Len()
			res, r, err := h.MakeRoom(t.Context(), 2000)
			var limit *convo.LimitError
			require.ErrorAs(t, err, &limit)
			assert.Nil(t, res)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			assert.Equal(t, entries, h.Len())
		})
	}
}

func TestMakeRoom_PoolTooSmall(t *testing.T) {
	pool := convo.NewBudget(1000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := toolTurn(t, opts, 0)
	held, err := pool.Reserve(900)
	require.NoError(t, err)
	_, _, err = h.MakeRoom(t.Context(), 500)
	require.ErrorIs(t, err, convo.ErrBudget, "another holder's Release would help")
	var short *convo.BudgetError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, convo.BudgetError{Need: 500, Free: 80}, *short)
	held.Release()
	res, _, err := h.MakeRoom(t.Context(), 500)
	require.NoError(t, err)
	res.Release()

	pool = convo.NewBudget(math.MaxInt)
	_, err = pool.Reserve(math.MaxInt)
	require.NoError(t, err)
	toolTurn(t, &convo.Options{Budget: pool}, 1)
	assert.Equal(t, math.MaxInt, pool.Used())
	assert.Zero(t, pool.Free())
}

// However much is reserved and charged, no sum overflows, and releasing gives
// all of it back.
func TestMakeRoom_NoSumOverflows(t *testing.T) {
	h := toolTurn(t, windowOf(0, nil), 0)
	var held []*convo.Reservation
	for range 2100 {
		res, _, err := h.MakeRoom(t.Context(), math.MaxInt)
		require.NoError(t, err)
		held = append(held, res)
	}
	require.NoError(t, h.SetLimits(convo.Limits{Window: 1000, Reserve: -1}))
	for _, res := range held {
		require.Zero(t, h.Status().Limit)
		res.Release()
	}
	assert.Equal(t, 1000, h.Status().Limit)
}

// A history that is too large is truncated whether or not anybody reserved tokens
// for its messages: its size is what counts.
func TestMakeRoom_TruncatesByTheSizeOfTheHistory(t *testing.T) {
	h := chatOf(t, windowOf(10_000, convo.Truncate{}), 200, 1000)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.LessOrEqual(t, h.Status().Upper, h.Status().Low)

	pool := convo.NewBudget(10_000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h = chatOf(t, opts, 200, 1000)
	_, r, err = h.MakeRoom(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, h.Tokens().Upper+1000, pool.Used())
	assert.LessOrEqual(t, pool.Used(), 10_000)
}

// Dropping entries gives back what the history itself was charged, and nothing that
// others have reserved in the same pool.
func TestMakeRoom_LeavesReservationsOfOthers(t *testing.T) {
	pool := convo.NewBudget(10_000)
	_, err := pool.Reserve(9000)
	require.NoError(t, err)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := chatOf(t, opts, 20, 100)
	require.Greater(t, pool.Used(), 10_000, "overdrawn")

	res, r, err := h.MakeRoom(t.Context(), 100)
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, 9000+100+h.Tokens().Upper, pool.Used())
	_, err = h.SplicePrefix(h.Snapshot(), h.Len(), "")
	require.NoError(t, err)
	assert.Equal(t, 9000+100+h.Tokens().Upper, pool.Used())
	require.NoError(t, h.Close())
	res.Release()
	res.Release()
	assert.Equal(t, 9000, pool.Used())
}

// Asking for more than there is at all drops nothing and reserves nothing.
func TestMakeRoom_MoreThanTheTotalDropsNothing(t *testing.T) {
	for _, withPool := range []bool{false, true} {
		opts := windowOf(50_000, convo.Truncate{})
		if withPool {
			opts = windowOf(0, convo.Truncate{})
			opts.Budget = convo.NewBudget(50_000)
		}
		h := chatOf(t, opts, 20, 1000)
		unchanged(t, h, func() {
			res, r, err := h.MakeRoom(t.Context(), 50_001)
			var floor *convo.FloorError
			require.ErrorAs(t, err, &floor)
			assert.Nil(t, res)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		})
		assert.Equal(t, 39, h.Len())
	}
}

// Room is reserved when the very last entry that can go makes it.
func TestMakeRoom_CountsTheLastDrop(t *testing.T) {
	h := chatOf(t, windowOf(400, convo.Truncate{}), 2, 100) // the newest weighs 113
	unchanged(t, h, func() {
		_, _, err := h.MakeRoom(t.Context(), 400-113+1)
		require.Error(t, err)
	})
	_, _, err := h.MakeRoom(t.Context(), 400-113)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()), "all that could go went")
	assert.Equal(t, 113, h.Status().Limit)
}

// MakeRoom tells apart: there was room, room was made, and there can be no room. Each
// reservation is handed over, to be released.
func TestMakeRoom_SaysWhetherItReserved(t *testing.T) {
	for _, tt := range []struct {
		name     string
		n        int
		outcome  convo.Outcome
		reserved bool
	}{
		{"it just fits", 2862, convo.OutcomeNotNeeded, true},
		{"room was made", 2863, convo.OutcomeApplied, true},
		{"it cannot fit", 4900, convo.OutcomeFailed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := chatOf(t, windowOf(5000, convo.Truncate{}), 10, 100)
			res, r, err := h.MakeRoom(t.Context(), tt.n)
			assert.Equal(t, tt.outcome, r.Outcome)
			assert.Equal(t, tt.reserved, res != nil)
			assert.Equal(t, tt.reserved, err == nil)
			assert.Equal(t, tt.outcome == convo.OutcomeApplied, len(r.Dropped) > 0)
		})
	}

	h := chatOf(t, windowOf(5000, convo.Truncate{}), 2, 100)
	var held []*convo.Reservation
	for range 5 {
		res, _, err := h.MakeRoom(t.Context(), 100)
		require.NoError(t, err)
		held = append(held, res)
	}
	assert.Equal(t, 4500, h.Status().Limit)
	for _, res := range held {
		res.Release()
	}
	assert.Equal(t, 5000, h.Status().Limit)
}

// When somebody else takes the room in the pool that a compaction makes, nothing is
// dropped and the error is ErrBudget.
func TestMakeRoom_RoomTakenByAnotherReserver(t *testing.T) {
	pool := convo.NewBudget(5000)
	var other *convo.Reservation
	held := 0
	opts := windowOf(0, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if other == nil {
			var err error
			held = pool.Free()
			other, err = pool.Reserve(held)
			require.NoError(t, err)
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	unchanged(t, h, func() {
		res, _, err := h.MakeRoom(t.Context(), 3000)
		require.ErrorIs(t, err, convo.ErrBudget)
		assert.Nil(t, res)
	})
	assert.Equal(t, held+h.Tokens().Upper, pool.Used())
	other.Release()
	res, _, err := h.MakeRoom(t.Context(), 3000)
	require.NoError(t, err)
	assert.Equal(t, 3000+h.Tokens().Upper, pool.Used())
	res.Release()
}

func TestMakeRoom_SaysWhy(t *testing.T) {
	h := toolTurn(t, windowOf(4000, convo.Truncate{}), 20)
	for _, n := range []int{-1, 0, 10, 2000, 10_000} {
		_, r, _ := h.MakeRoom(t.Context(), n)
		assert.Equal(t, convo.ReasonRoom, r.Reason, "%d", n)
	}
	require.NoError(t, h.Close())
	_, r, err := h.MakeRoom(t.Context(), 1)
	require.ErrorIs(t, err, convo.ErrClosed)
	assert.Equal(t, convo.ReasonRoom, r.Reason)
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
}

// What is appended while a strategy plans counts: the room is reserved now.
func TestMakeRoom_GrownMeanwhile(t *testing.T) {
	var h *convo.History
	var at *convo.Snapshot
	calls := 0
	opts := bare()
	opts.Limits = convo.Limits{Window: 1000, Reserve: -1, Low: 100}
	opts.Strategy = convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
		var e convo.Edit
		if calls++; calls == 1 { // the edit will be stale
			for x := range s.Exchanges() {
				if !x.Floor {
					e.Drop = append(e.Drop, x.IDs()...)
				}
			}
			return e, h.Rollback(at)
		}
		mustAppend(t, h, convo.User(strings.Repeat("w", 900)), convo.Assistant("a"))
		e.Drop = idsOf(s)[:2]
		return e, nil
	})
	talk := func(turns int) {
		for range turns {
			mustAppend(t, h, convo.User(strings.Repeat("u", 50)), convo.Assistant(strings.Repeat("a", 50)))
		}
	}
	h = historyOf(t, opts)
	talk(4)
	at = h.Snapshot()
	talk(5)
	limit := h.Status().Limit
	res, _, err := h.MakeRoom(t.Context(), 300)
	require.Error(t, err)
	assert.Nil(t, res)
	assert.Equal(t, 2, calls)
	assert.Equal(t, limit, h.Status().Limit, "nothing stays reserved")
}

// The errors of MakeRoom name what was to be reserved, and the bound that the caller
// has set: that of the window, or that of the pool.
func TestMakeRoom_ErrorTexts(t *testing.T) {
	declines := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { return convo.Edit{}, nil })
	drops := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})
	for name, tt := range map[string]struct {
		c            convo.CompactionStrategy
		window, pool int
		n            int
		want         []string
		not          string
	}{
		"window":          {declines, 3000, 0, 1000, []string{"2,427 tokens + 1,000 reserved exceed limit 3,000; nothing worth removing; reserve less"}, "after compaction"},
		"window, refused": {drops, 3000, 0, 1000, []string{"2,308 tokens after compaction + 1,000 reserved exceed limit 3,000; reserve less"}, "nothing"},
		"pool":            {declines, 0, 3000, 1000, []string{"budget exhausted: need 1,000 tokens, 573 are free", "nothing worth removing"}, "Window"},
		"pool, refused":   {drops, 0, 3000, 1000, []string{"budget exhausted: need 1,000 tokens, 692 are free"}, "Window"},
		"pool, floor":     {declines, 0, 3000, 5000, []string{"budget exhausted: need 5,000 tokens", "+ 5,000 reserved tokens exceed limit 3,000", "or use a larger Budget"}, "Window"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := windowOf(tt.window, tt.c)
			if tt.pool > 0 {
				opts.Budget = convo.NewBudget(tt.pool)
			}
			_, r, err := toolTurn(t, opts, 20).MakeRoom(t.Context(), tt.n)
			assert.Equal(t, err, r.Cause)
			for _, want := range tt.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), tt.not)
			if tt.pool > 0 {
				assert.ErrorIs(t, err, convo.ErrBudget)
			}
		})
	}
}
