package convo_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestRollback_TakesBackWhatIsNewer(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	c := callOf("c")
	mustAppend(t, h, convo.Assistant("", c), convo.Result(c, "r"), convo.Assistant("x"), convo.User("v"))
	require.NoError(t, h.Rollback(at))
	before, now := pictureOf(t, at), h.Snapshot()
	assert.Equal(t, idsOf(at), idsOf(now))
	assert.Equal(t, textsOf(at), textsOf(now))
	assert.Equal(t, at.Tokens(), now.Tokens())
	assert.EqualValues(t, 14, mustAppend(t, h, convo.Assistant("again")), "no ID is given twice")
	assert.Equal(t, before, pictureOf(t, at))
}

func TestRollback_NothingNewerIsNoChange(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	unchanged(t, h, func() { require.NoError(t, h.Rollback(at)) })
	require.NoError(t, h.Pin(2))
	require.NoError(t, h.SetSystem(convo.System("new")))
	require.NoError(t, h.SetEphemeral(convo.User("e")))
	unchanged(t, h, func() { require.NoError(t, h.Rollback(at)) })
}

func TestRollback_ToEmpty(t *testing.T) {
	h := historyOf(t, &convo.Options{PinFirstUser: true})
	at := h.Snapshot()
	mustAppend(t, h, convo.System("s"), convo.User("u"), convo.Assistant("a"))
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{1}, idsOf(h.Snapshot()), "system entries stay")
	assert.Zero(t, h.Status().Turns)
	assert.Empty(t, h.Pinned())
	mustAppend(t, h, convo.User("v"))
	assert.Equal(t, []convo.ID{4}, h.Pinned(), "it is the first user message again")
}

func TestRollback_OpenCallsAreOpenAgain(t *testing.T) {
	for _, n := range []int{2, 50} {
		t.Run(fmt.Sprint(n, " calls"), func(t *testing.T) {
			list := make([]convo.ToolCall, n)
			for i := range list {
				list[i] = callOf(fmt.Sprint("c", i))
			}
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("", list...), convo.Result(list[1], "1"))
			at := h.Snapshot()
			for range 3 {
				_, err := h.AnswerOpenCalls("given up")
				require.NoError(t, err)
				mustAppend(t, h, convo.Assistant("x"))
				require.NoError(t, h.Rollback(at))
				assert.Equal(t, n-1, h.Status().OpenCalls)
				_, err = h.Append(convo.Result(list[1], "again"))
				require.ErrorIs(t, err, convo.ErrAnswered)
				_, err = h.Append(convo.User("v"))
				require.ErrorIs(t, err, convo.ErrOpenCalls)
			}
			id := mustAppend(t, h, resultOf(convo.ToolResult{Name: "tool"}))
			e, _ := h.Snapshot().Find(id)
			assert.Equal(t, "c0", e.Message.ToolResults()[0].CallID)
			assert.Equal(t, n-2, h.Status().OpenCalls)
		})
	}
}

// A result without id and name weighs the same after a rollback.
func TestRollback_ResultsWithoutIDWeighTheSame(t *testing.T) {
	h := historyOf(t, bare(), convo.User("u"), convo.Assistant("", callOf("long call id")))
	at := h.Snapshot()
	mustAppend(t, h, resultOf(convo.ToolResult{}))
	want := h.Snapshot().Tokens()
	require.NoError(t, h.Rollback(at))
	mustAppend(t, h, resultOf(convo.ToolResult{}))
	assert.Equal(t, want, h.Snapshot().Tokens())
}

// Length 20 is remembered, a compaction of the same turn shrinks the list to
// 3, the failed prompt comes after: cutting at 20 would leave it.
func TestRollback_B4_RememberedLengthAfterACompaction(t *testing.T) {
	h := historyOf(t, nil)
	for i := range 10 {
		mustAppend(t, h, convo.User(fmt.Sprint("u", i)), convo.Assistant(fmt.Sprint("a", i)))
	}
	at := h.Snapshot()
	_, err := h.SplicePrefix(at, 17, "what went")
	require.NoError(t, err)
	require.Equal(t, []convo.ID{18, 19, 20}, idsOf(h.Snapshot()))
	mustAppend(t, h, convo.User("failed prompt"))
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{18, 19, 20}, idsOf(h.Snapshot()))
	sum, ok := h.Snapshot().Summary()
	assert.True(t, ok)
	assert.Equal(t, "what went", sum.Text)
}

// A rollback during a flight must not let its summary speak of what was taken
// back.
func TestRollback_B4_DuringAFlight(t *testing.T) {
	h := historyOf(t, nil)
	empty := h.Snapshot()
	mustAppend(t, h, convo.User("u"), convo.Assistant("a"), convo.User("v"))
	flight := h.Snapshot()
	require.NoError(t, h.Rollback(empty))
	unchanged(t, h, func() {
		_, err := h.SplicePrefix(flight, 2, "they spoke")
		require.ErrorIs(t, err, convo.ErrStale)
	})
}

// Two writers splice by the same snapshot: the second would take what the
// first left.
func TestSplicePrefix_B5_TwoWriters(t *testing.T) {
	for _, summary := range []string{"second", ""} {
		h := historyOf(t, nil)
		for range 7 {
			mustAppend(t, h, convo.User("u"), convo.Assistant("a"))
		}
		at := h.Snapshot()
		mustAppend(t, h, convo.User("new"), convo.Assistant("newer"))
		n, err := h.SplicePrefix(at, 12, "first")
		require.NoError(t, err)
		require.Equal(t, 12, n)
		unchanged(t, h, func() {
			_, err := h.SplicePrefix(at, 12, summary)
			require.ErrorIs(t, err, convo.ErrStale)
		})
		assert.Equal(t, []convo.ID{13, 14, 15, 16}, idsOf(h.Snapshot()))
	}
}

func TestRollback_EditsThatStay(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  convo.Edit
		want  []convo.ID
		stays bool
	}{
		{"drops older ones", convo.Edit{Drop: []convo.ID{2, 6}}, []convo.ID{1, 3, 4, 5, 7, 8, 9}, true},
		{"clears an older one", convo.Edit{Clear: []convo.Clear{{ID: 4}}}, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, true},
		{"a summary alone", convo.Edit{Summary: &convo.Summary{Text: "s"}}, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, true},
		{"a summary of older ones", convo.Edit{Drop: []convo.ID{2, 3, 4, 5}, Summary: &convo.Summary{Text: "s"}}, []convo.ID{1, 6, 7, 8, 9}, true},
		{"drops the newest of then", convo.Edit{Drop: []convo.ID{9}}, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, false},
		{"drops one that is newer", convo.Edit{Drop: []convo.ID{2, 10}, Summary: &convo.Summary{Text: "s"}}, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, bare())
			at := h.Snapshot()
			mustAppend(t, h, convo.Assistant("x"), convo.User("v"), convo.Assistant("y"))
			edited := h.Snapshot()
			_, err := h.Apply(edited, tt.edit)
			require.NoError(t, err)
			slotNow, has := h.Snapshot().Summary()
			require.NoError(t, h.Rollback(at))
			now := h.Snapshot()
			assert.Equal(t, tt.want, idsOf(now))
			sum, ok := now.Summary()
			if tt.stays {
				assert.Equal(t, slotNow, sum)
				assert.Equal(t, has, ok)
				if len(tt.edit.Clear) > 0 {
					e, _ := now.Find(4)
					assert.True(t, e.Message.ToolResults()[0].Cleared)
				}
			} else {
				assert.Equal(t, textsOf(at), textsOf(now))
				assert.Equal(t, at.Tokens(), now.Tokens())
				assert.False(t, ok)
			}
			assert.Equal(t, rawTotal(now), now.Tokens())
			assert.ErrorIs(t, h.Rollback(edited), convo.ErrStale)
		})
	}
}

// rawTotal sums up what is in the view but the ephemeral messages.
func rawTotal(s *convo.Snapshot) int {
	sum, _ := s.Summary()
	total := sum.Tokens
	for _, e := range s.All() {
		total += e.Tokens
	}
	return total
}

func TestRollback_UndoneWhenTheNewestExchangeWasTouched(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		name string
		edit convo.Edit
	}{
		{"cleared", convo.Edit{Clear: []convo.Clear{{ID: 3}}}},
		{"dropped", convo.Edit{Drop: []convo.ID{2, 3}}},
		{"its user message dropped", convo.Edit{Drop: []convo.ID{1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("", c), convo.Result(c, "r"))
			at := h.Snapshot()
			mustAppend(t, h, convo.Assistant("x"), convo.User("v"))
			_, err := h.Apply(h.Snapshot(), tt.edit)
			require.NoError(t, err)
			require.NoError(t, h.Rollback(at))
			assert.Equal(t, []convo.ID{1, 2, 3}, idsOf(h.Snapshot()))
			e, _ := h.Snapshot().Find(3)
			assert.False(t, e.Message.ToolResults()[0].Cleared)
		})
	}
}

func TestRollback_WhatStaysAsItIsNow(t *testing.T) {
	h := tour(t, bare())
	at := h.Snapshot()
	require.NoError(t, h.SetSystem(convo.System("new guide")))
	require.NoError(t, h.SetEphemeral(convo.User("rain")))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 5000}))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: h.Snapshot().Tokens() + 50}))
	require.NoError(t, h.Pin(4))
	mustAppend(t, h, convo.Assistant("x"), convo.User("v"))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{9}})
	require.NoError(t, err)
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{10, 2, 3, 4, 5, 6, 7, 8, 9}, idsOf(h.Snapshot()))
	assert.Contains(t, textsOf(h.Snapshot()), "rain")
	assert.Equal(t, 5000, h.Status().Window)
	assert.Equal(t, h.Snapshot().Tokens()+50, h.Tokens().Tokens)
	assert.Equal(t, []convo.ID{3, 4, 5}, h.Pinned())
}

func TestRollback_Stale(t *testing.T) {
	h := tour(t, nil)
	first := h.Snapshot()
	mustAppend(t, h, convo.Assistant("x"))
	second := h.Snapshot()
	require.NoError(t, h.Rollback(first))
	mustAppend(t, h, convo.Assistant("y"), convo.User("v"))
	data, err := first.MarshalJSON()
	require.NoError(t, err)
	var loaded convo.Snapshot
	require.NoError(t, loaded.UnmarshalJSON(data))
	with, err := first.With(convo.Edit{Drop: []convo.ID{2}})
	require.NoError(t, err)
	fork, err := convo.Restore(first, nil)
	require.NoError(t, err)
	for name, s := range map[string]*convo.Snapshot{
		"nil": nil, "zero": {}, "taken back": second, "from JSON": &loaded, "from With": with,
		"imported": convo.NewSnapshot(nil), "of a fork": fork.Snapshot(),
	} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, h, func() { assert.ErrorIs(t, h.Rollback(s), convo.ErrStale) })
		})
	}
	require.NoError(t, h.Rollback(first), "the older one stays good")
}

func TestRollback_SnapshotsNeverChange(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	at := h.Snapshot()
	pictures := map[*convo.Snapshot]string{}
	for i := range 20 {
		mustAppend(t, h, convo.Assistant(fmt.Sprint("a", i)))
		s := h.Snapshot()
		pictures[s] = pictureOf(t, s)
		mustAppend(t, h, convo.User(fmt.Sprint("b", i)))
		if i%2 == 0 {
			require.NoError(t, h.Rollback(s))
			mustAppend(t, h, convo.User(fmt.Sprint("c", i)))
		}
		require.NoError(t, h.Rollback(at))
	}
	for s, want := range pictures {
		assert.Equal(t, want, pictureOf(t, s))
	}
}

// A snapshot made after an edit that a later rollback undid: whatever that
// means for the entries, calls and results still pair.
func TestRollback_AcrossAnUndoneEditKeepsPairs(t *testing.T) {
	c := callOf("c")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("", c))
	at := h.Snapshot()
	mustAppend(t, h, convo.Result(c, "r"), convo.User("w"))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{4, 5}})
	require.NoError(t, err)
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	between := h.Snapshot()
	require.Equal(t, []convo.ID{1, 2, 3}, idsOf(between))
	require.NoError(t, h.Rollback(at))
	require.Equal(t, []convo.ID{1, 2, 3, 4}, idsOf(h.Snapshot()))
	mustAppend(t, h, convo.Result(c, "r2"))

	if err := h.Rollback(between); err != nil {
		require.ErrorIs(t, err, convo.ErrStale)
	}
	open := 0
	for x := range h.Snapshot().Exchanges() {
		if x.Open {
			open++
		}
	}
	assert.Equal(t, open, h.Status().OpenCalls)
	_, err = h.Append(convo.Assistant("x"))
	if open > 0 {
		assert.ErrorIs(t, err, convo.ErrOpenCalls)
	} else {
		assert.NoError(t, err)
	}
}

func TestRewind(t *testing.T) {
	for _, tt := range []struct {
		turns, taken int
		want         []convo.ID
	}{
		{0, 0, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{1, 1, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8}},
		{2, 2, []convo.ID{1, 2, 3, 4, 5, 6}},
		{3, 3, []convo.ID{1}},
		{100, 3, []convo.ID{1}},
	} {
		t.Run(fmt.Sprint(tt.turns), func(t *testing.T) {
			h := tour(t, nil)
			require.NoError(t, h.Pin(2, 7, 9))
			taken, err := h.Rewind(tt.turns)
			require.NoError(t, err)
			assert.Equal(t, tt.taken, taken)
			assert.Equal(t, tt.want, idsOf(h.Snapshot()))
			assert.Equal(t, 3-tt.taken, h.Status().Turns)
			assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
		})
	}
}

func TestRewind_Negative(t *testing.T) {
	h := tour(t, nil)
	unchanged(t, h, func() {
		_, err := h.Rewind(-1)
		var value *convo.ValueError
		require.ErrorAs(t, err, &value)
	})
}

func TestRewind_TakesAnOpenRoundAlong(t *testing.T) {
	h := tour(t, nil)
	mustAppend(t, h, convo.Assistant("", callOf("c")))
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	assert.Equal(t, 1, taken)
	assert.Zero(t, h.Status().OpenCalls)
	mustAppend(t, h, convo.User("again"))
}

// It stops before a turn of which a reduction took anything.
func TestRewind_StopsAtWhatWasReduced(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  convo.Edit
		taken int
	}{
		{"oldest turn dropped", convo.Edit{Drop: []convo.ID{2, 3, 4, 5, 6}}, 2},
		{"part of the oldest", convo.Edit{Drop: []convo.ID{2}}, 2},
		{"a result cleared", convo.Edit{Clear: []convo.Clear{{ID: 4}}}, 2},
		{"the middle one", convo.Edit{Drop: []convo.ID{8}, Summary: &convo.Summary{Text: "s"}}, 1},
		{"a summary alone takes nothing", convo.Edit{Summary: &convo.Summary{Text: "s"}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			_, err := h.Apply(h.Snapshot(), tt.edit)
			require.NoError(t, err)
			taken, err := h.Rewind(10)
			require.NoError(t, err)
			assert.Equal(t, tt.taken, taken)
			unchanged(t, h, func() {
				taken, err = h.Rewind(1)
				require.NoError(t, err)
				assert.Zero(t, taken)
			})
		})
	}
}
