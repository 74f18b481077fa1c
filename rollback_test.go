package convo_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
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
	assert.Empty(t, h.Snapshot().Pinned())
	mustAppend(t, h, convo.User("v"))
	assert.Equal(t, []convo.ID{4}, h.Snapshot().Pinned(), "it is the first user message again")
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
			last := mustAppend(t, h, slices.Repeat([]convo.Message{resultOf(convo.ToolResult{Name: "tool"})}, n-1)...)
			e, _ := h.Snapshot().Find(last - convo.ID(n-2))
			assert.Equal(t, "c0", e.Message.ToolResults()[0].CallID)
			assert.Zero(t, h.Status().OpenCalls)
		})
	}
}

// A result without id and name counts the same number of tokens after a
// rollback.
func TestRollback_ResultsWithoutIDWeighTheSame(t *testing.T) {
	h := historyOf(t, bare(), convo.User("u"), convo.Assistant("", callOf("long call id")))
	at := h.Snapshot()
	mustAppend(t, h, resultOf(convo.ToolResult{}))
	want := h.Snapshot().Tokens()
	require.NoError(t, h.Rollback(at))
	mustAppend(t, h, resultOf(convo.ToolResult{}))
	assert.Equal(t, want, h.Snapshot().Tokens())
}

// A rollback to a snapshot of 20 entries takes back what was appended since, also
// when a compaction has left only 3 of them.
// A turn is taken back as a whole, or down to the last step that was finished.
func TestRollback_StepsOfATurn(t *testing.T) {
	h := tour(t, nil)
	mustAppend(t, h, convo.Assistant("off we go"))
	begin, before := h.Snapshot(), textsOf(h.Snapshot())
	mustAppend(t, h, convo.User("pack"))
	var step *convo.Snapshot
	for i := range 3 {
		reply, err := h.Do(t.Context(), saying(convo.Assistant("", callOf("a"+itoa(i)), callOf("b"+itoa(i)))))
		require.NoError(t, err)
		calls := reply.OpenCalls()
		mustAppend(t, h, convo.Result(calls[0], "done"))
		if i < 2 { // in the third step, the second tool does not return
			mustAppend(t, h, convo.Result(calls[1], "done"))
			step = h.Snapshot()
		}
	}
	require.NoError(t, h.Rollback(step))
	assert.Equal(t, append(before, "pack", "", "done", "done", "", "done", "done"), textsOf(h.Snapshot()))
	assert.Zero(t, h.Status().OpenCalls)
	_, err := h.Do(t.Context(), saying(convo.Assistant("packed")))
	require.NoError(t, err, "the turn goes on")

	require.NoError(t, h.Rollback(begin))
	assert.Equal(t, idsOf(begin), idsOf(h.Snapshot()))
	assert.Equal(t, before, textsOf(h.Snapshot()))
}

func TestRollback_AfterACompaction(t *testing.T) {
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

// A summary of entries that a rollback takes back is refused.
func TestRollback_DuringACompaction(t *testing.T) {
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

// The entries that an edit dropped need not stand next to each other: those
// between them had left the view before the snapshot was made. The edit stays.
func TestRollback_EditWithAHoleStays(t *testing.T) {
	h := toolTurn(t, bare(), 6)
	mustAppend(t, h, convo.User("thanks"))
	apply(t, h, convo.Edit{Drop: []convo.ID{5, 6}})
	at := h.Snapshot()
	mustAppend(t, h, convo.Assistant("gladly"))
	apply(t, h, convo.Edit{Drop: []convo.ID{3, 4, 7, 8}})
	mustAppend(t, h, convo.User("more"))
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{1, 2, 9, 10, 11, 12, 13, 14, 15, 16}, idsOf(h.Snapshot()), "the edit stays")
	assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
}

// A snapshot that lacks entries in the middle of what an edit touched does not
// hold them all: it is restored exactly, or refused.
func TestRollback_SnapshotWithAHole(t *testing.T) {
	h := toolTurn(t, bare(), 6)
	early := h.Snapshot()
	mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
	apply(t, h, convo.Edit{Drop: []convo.ID{5, 6, 15}})
	rewind(t, h)
	at := h.Snapshot()
	require.Equal(t, []convo.ID{1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14}, idsOf(at))
	require.NoError(t, h.Rollback(early)) // brings 5, 6 and 15 back
	mustAppend(t, h, convo.User("more"))
	apply(t, h, convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8}})
	mustAppend(t, h, convo.Assistant("gladly"))
	now := idsOf(h.Snapshot())
	if err := h.Rollback(at); err != nil {
		require.ErrorIs(t, err, convo.ErrStale)
		assert.Equal(t, now, idsOf(h.Snapshot()))
		return
	}
	assert.Equal(t, idsOf(at), idsOf(h.Snapshot()))
	assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
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

// An edit of something newer than the snapshot undoes all edits, also when a later
// one changed older entries only.
func TestRollback_UndoneBehindALaterEditOfOlderEntries(t *testing.T) {
	h := historyOf(t, nil, convo.User("q1"), convo.Assistant("a1"), convo.User("q2"), convo.Assistant("a2"), convo.User("q3"), convo.Assistant("a3"))
	at := h.Snapshot()
	mustAppend(t, h, convo.User("q4"), convo.Assistant("a4"), convo.User("q5"), convo.Assistant("a5"))
	apply(t, h, convo.Edit{Drop: []convo.ID{7, 8}})
	apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}})
	require.NoError(t, h.Rollback(at))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6}, idsOf(h.Snapshot()))
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
	assert.Equal(t, []convo.ID{3, 4, 5}, h.Snapshot().Pinned())
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

// A snapshot that shows an edit which an earlier rollback undid is stale, even
// if all of its entries are in the view again.
func TestRollback_ToAnUndoneEditIsStale(t *testing.T) {
	h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	at := h.Snapshot()
	mustAppend(t, h, convo.User("5"))
	before := h.Snapshot()
	_, err := h.Apply(before, convo.Edit{Drop: []convo.ID{1, 2, 4}})
	require.NoError(t, err)
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	undone := h.Snapshot()
	require.Equal(t, []convo.ID{3}, idsOf(undone))
	require.NoError(t, h.Rollback(at))
	unchanged(t, h, func() { require.ErrorIs(t, h.Rollback(undone), convo.ErrStale) })

	require.NoError(t, h.Pin(1))
	mustAppend(t, h, convo.User("6"))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}})
	require.NoError(t, err)
	edited := h.Snapshot()
	unchanged(t, h, func() { require.ErrorIs(t, h.Rollback(undone), convo.ErrStale) })
	checkSaved(t, h, nil)

	require.NoError(t, h.Rollback(at), "made before the edit that was undone")
	require.Equal(t, []convo.ID{1, 3, 4}, idsOf(h.Snapshot()))
	mustAppend(t, h, convo.User("7"))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{4}})
	require.NoError(t, err)
	require.NoError(t, h.Rollback(at), "again")
	for name, s := range map[string]*convo.Snapshot{"before": before, "undone": undone, "edited": edited} {
		unchanged(t, h, func() { require.ErrorIs(t, h.Rollback(s), convo.ErrStale, name) })
	}
	require.NoError(t, h.Rollback(h.Snapshot()), "made after all that was undone")
	checkSaved(t, h, nil)
}

// The last edit is undone, then the one before it.
func TestRollback_UndoneOneAfterTheOther(t *testing.T) {
	h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	first := h.Snapshot()
	_, err := h.Apply(first, convo.Edit{Drop: []convo.ID{2}})
	require.NoError(t, err)
	second := h.Snapshot()
	for _, at := range []*convo.Snapshot{second, first} {
		mustAppend(t, h, convo.User("more"))
		_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{4}})
		require.NoError(t, err)
		require.NoError(t, h.Rollback(at))
		require.Equal(t, idsOf(at), idsOf(h.Snapshot()))
	}
	unchanged(t, h, func() { require.ErrorIs(t, h.Rollback(second), convo.ErrStale) })
	checkSaved(t, h, nil)
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

// Rewind stops before a turn from which a compaction took anything, and goes on by
// exchanges when that is the newest one.
func TestRewind_StopsAtWhatWasReduced(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  convo.Edit
		taken int
		rest  [][]convo.ID // after each Rewind(1)
	}{
		{"oldest turn dropped", convo.Edit{Drop: []convo.ID{2, 3, 4, 5, 6}}, 2, [][]convo.ID{{1}}},
		{"part of the oldest", convo.Edit{Drop: []convo.ID{2}}, 2, [][]convo.ID{{1, 3, 4, 5, 6}, {1, 3, 4, 5}, {1}}},
		{"a result cleared", convo.Edit{Clear: []convo.Clear{{ID: 4}}}, 2, [][]convo.ID{{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5}, {1, 2}, {1}}},
		{"the middle one", convo.Edit{Drop: []convo.ID{8}, Summary: &convo.Summary{Text: "s"}}, 1, [][]convo.ID{{1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5}, {1, 2}, {1}}},
		{"a summary alone takes nothing", convo.Edit{Summary: &convo.Summary{Text: "s"}}, 3, [][]convo.ID{{1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tour(t, nil)
			_, err := h.Apply(h.Snapshot(), tt.edit)
			require.NoError(t, err)
			taken, err := h.Rewind(10)
			require.NoError(t, err)
			assert.Equal(t, tt.taken, taken)
			f, err := convo.Restore(h.Snapshot(), nil)
			require.NoError(t, err)
			for i, want := range tt.rest {
				for _, h := range []*convo.History{h, f} {
					assert.ElementsMatch(t, want, idsOf(h.Snapshot()))
					taken, err = h.Rewind(1)
					require.NoError(t, err)
					assert.Equal(t, min(1, len(tt.rest)-1-i), taken)
					assert.Equal(t, rawTotal(h.Snapshot()), h.Snapshot().Tokens())
				}
			}
		})
	}
}

// Of a turn from which an edit has taken something, Rewind(n) takes n exchanges,
// none of another turn.
func TestRewind_Exchanges(t *testing.T) {
	c := callOf("c")
	for _, tt := range []struct {
		most, taken int
		want        []convo.ID
	}{
		{0, 0, []convo.ID{1, 2, 3, 6, 7, 8, 9}},
		{1, 1, []convo.ID{1, 2, 3, 6, 7}},
		{2, 2, []convo.ID{1, 2, 3}},
		{3, 3, []convo.ID{1, 2}},
		{9, 3, []convo.ID{1, 2}},
	} {
		h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("", c), convo.Result(c, "5"),
			convo.Assistant("", c), convo.Result(c, "7"), convo.Assistant("", c), convo.Result(c, "9"))
		require.NoError(t, h.Pin(8))
		at := h.Snapshot()
		apply(t, h, convo.Edit{Drop: []convo.ID{4, 5}})
		mustAppend(t, h, convo.Assistant("10"))
		rewind(t, h)
		taken, err := h.Rewind(tt.most)
		require.NoError(t, err)
		assert.Equal(t, tt.taken, taken)
		assert.Equal(t, tt.want, idsOf(h.Snapshot()))
		checkSaved(t, h, nil)
		if tt.taken > 0 {
			require.ErrorIs(t, h.Rollback(at), convo.ErrStale)
		}
	}
}

// What a rollback takes back is freed at once.
func TestRollback_FreesWhatItTakes(t *testing.T) {
	for name, work := range map[string]func(t *testing.T, h *convo.History){
		"nobody looked": func(*testing.T, *convo.History) {},
		"a snapshot":    func(_ *testing.T, h *convo.History) { h.Snapshot() },
		"a report": func(t *testing.T, h *convo.History) {
			require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 5000}))
		},
		"a fork": func(t *testing.T, h *convo.History) {
			f, err := convo.Restore(h.Snapshot(), nil)
			require.NoError(t, err)
			rewind(t, f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("Rewind", func(t *testing.T) {
				h := historyOf(t, nil)
				texts := appendWatched(t, h, 6, turnsOf)
				work(t, h)
				rewind(t, h)
				assert.Zero(t, inMemory(texts[4:]), "taken")
				work(t, h)
				rewind(t, h)
				assert.Zero(t, inMemory(texts[2:]), "taken")
				assert.Equal(t, 2, inMemory(texts))
				assert.Equal(t, 2, h.Len())
				runtime.KeepAlive(h)
			})
			t.Run("Rollback", func(t *testing.T) {
				h := historyOf(t, nil)
				texts := appendWatched(t, h, 4, turnsOf)
				at := h.Snapshot()
				texts = append(texts, appendWatched(t, h, 2, turnsOf)...)
				work(t, h)
				require.NoError(t, h.Rollback(at))
				at = nil
				assert.Zero(t, inMemory(texts[4:]), "taken")
				assert.Equal(t, 4, inMemory(texts))
				assert.Equal(t, 4, h.Len())
				runtime.KeepAlive(h)
			})
			t.Run("Rollback that undoes an edit", func(t *testing.T) {
				h := historyOf(t, nil)
				texts := appendWatched(t, h, 6, turnsOf)
				at := h.Snapshot()
				texts = append(texts, appendWatched(t, h, 4, turnsOf)...)
				apply(t, h, convo.Edit{Drop: []convo.ID{1, 7, 8}})
				work(t, h)
				require.NoError(t, h.Rollback(at))
				at = nil
				assert.Zero(t, inMemory(texts[6:]), "taken")
				assert.Equal(t, 6, inMemory(texts))
				assert.Equal(t, 6, h.Len())
				runtime.KeepAlive(h)
			})
		})
	}
}

// The text that stood in place of a result is freed when the edit is undone.
func TestRollback_FreesTheTextOfAnEditThatItUndoes(t *testing.T) {
	h := historyOf(t, nil, convo.User("go"), convo.Assistant("", callOf("c")), convo.Result(callOf("c"), "sunny"), convo.Assistant("done"))
	at := h.Snapshot()
	mustAppend(t, h, convo.User("more"))
	text, w := watch(10_000)
	apply(t, h, convo.Edit{Drop: []convo.ID{4}, Clear: []convo.Clear{{ID: 3, Text: text}}})
	text = ""
	rewind(t, h)
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 3000}))
	require.NoError(t, h.Rollback(at))
	assert.Zero(t, inMemory([]watched{w}), text)
	runtime.KeepAlive(h)
}

// Originals that were spilled for an edit that was then refused are freed with
// their entries.
func TestRewind_FreesWhatWasSpilled(t *testing.T) {
	h := historyOf(t, &convo.Options{
		Limits: convo.Limits{High: 100, Low: 50},
		Spill:  func(context.Context, convo.ToolResult) (string, error) { return "kept", nil },
		Strategy: convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			return convo.Edit{Clear: []convo.Clear{{ID: 3}}, Summary: &convo.Summary{Text: strings.Repeat("too long ", 10_000)}}, nil
		}),
	}, convo.User("go"))
	texts := appendWatched(t, h, 2, func(i int, text string) convo.Message {
		if i == 0 {
			return convo.Assistant("", callOf("c"))
		}
		return convo.Result(callOf("c"), text)
	})[1:]
	mustAppend(t, h, convo.Assistant("done"))
	r := requireFailed(t)(reportOf(h.Prepare(t.Context())))
	var refused *convo.RefusedError
	require.ErrorAs(t, r.Cause, &refused)
	rewind(t, h)
	assert.Zero(t, inMemory(texts))
	runtime.KeepAlive(h)
}

// Rollbacks one after the other cost the same at any length, and so does an
// append after each: the list is copied once.
func TestRewind_CopiesTheListOnce(t *testing.T) {
	const n = 50_000
	h := appendN(n, nil)
	h.Snapshot()
	_, bytes := measureAllocs(1, func() {
		for range 1000 {
			rewind(t, h)
			mustAppend(t, h, userMsg, replyMsg)
			rewind(t, h)
		}
	})
	t.Logf("%.0f bytes for 2,000 rewinds", bytes)
	assert.Less(t, bytes, 4.0*8*n+1000*5000)
	assert.Equal(t, n-2000, h.Len())
}

// A snapshot stays as it is, whatever is taken back and appended after it.
func TestRewind_LeavesSnapshotsAlone(t *testing.T) {
	h := historyOf(t, nil)
	var all []*convo.Snapshot
	var want [][]string
	for i := range 40 {
		mustAppend(t, h, convo.User(strings.Repeat("u", i+1)), convo.Assistant("a"))
		if i%3 > 0 {
			s := h.Snapshot()
			all, want = append(all, s), append(want, printMessages(s))
		}
		if i%4 == 3 {
			rewind(t, h)
			rewind(t, h)
		}
	}
	for i, s := range all {
		assert.Equal(t, want[i], printMessages(s))
	}
}

// RewindTo goes back to the entry that it is given, or says why it does not.
func TestRewindTo(t *testing.T) {
	for id, want := range map[convo.ID][]convo.ID{
		0: {1}, 1: {1}, 2: {1, 2}, 3: {1, 2, 3}, 4: {1, 2, 3, 4}, 6: {1, 2, 3, 4, 5, 6}, 7: {1, 2, 3, 4, 5, 6, 7}, 8: {1, 2, 3, 4, 5, 6, 7, 8},
	} {
		h := tour(t, nil)
		require.NoError(t, h.Pin(7))
		at := h.Snapshot()
		require.NoError(t, h.RewindTo(id))
		assert.Equal(t, want, idsOf(h.Snapshot()), "%d", id)
		assert.Equal(t, map[convo.ID]int{3: 2, 4: 1}[id], h.Status().OpenCalls, "%d", id)
		require.ErrorIs(t, h.Rollback(at), convo.ErrStale)
		checkSaved(t, h, nil)
	}
	h := tour(t, nil)
	unchanged(t, h, func() {
		require.NoError(t, h.RewindTo(9), "nothing is newer")
		for _, id := range []convo.ID{-1, 10} {
			err := h.RewindTo(id)
			require.ErrorIs(t, err, convo.ErrNotFound)
			assert.ErrorContains(t, err, fmt.Sprintf("entry %d ", id))
		}
	})
	h.Close()
	require.ErrorIs(t, h.RewindTo(3), convo.ErrClosed)
	require.ErrorIs(t, new(convo.History).RewindTo(0), convo.ErrClosed)
}

// Without an edit, RewindTo leads where Rollback to a snapshot of that moment leads.
func TestRewindTo_IsRollback(t *testing.T) {
	calls := [...]convo.ToolCall{callOf("a"), callOf("b")}
	steps := []convo.Message{
		convo.User("1"), convo.Assistant("2", calls[0], calls[1]), convo.Result(calls[1], "3"), convo.Result(calls[0], "4"), convo.Assistant("5"),
		convo.User("6"), convo.Assistant("7", calls[0]), convo.Result(calls[0], "8"), convo.Assistant("9", calls[1]), convo.Result(calls[1], "10"),
	}
	for n := range steps {
		h, other := historyOf(t, bare()), historyOf(t, bare())
		var at *convo.Snapshot
		for i, m := range steps {
			if i == n {
				at = other.Snapshot()
			}
			mustAppend(t, h, m)
			mustAppend(t, other, m)
		}
		require.NoError(t, h.RewindTo(convo.ID(n)))
		require.NoError(t, other.Rollback(at))
		assert.Equal(t, printOf(other.Snapshot()), printOf(h.Snapshot()))
		one, two := h.Status(), other.Status()
		one.LastAppend, two.LastAppend = time.Time{}, time.Time{}
		assert.Equal(t, two, one)
		next := convo.User("next")
		if one.OpenCalls > 0 {
			next = convo.Result(calls[0], "next")
		}
		_, err := h.Append(next)
		_, otherErr := other.Append(next)
		assert.Equal(t, otherErr, err, "%d", n)
	}
}

// One question is edited three times, in two tabs, each of which shows what it saw last. An
// edit of what another tab has taken back is refused and changes nothing, also in a process
// that has read the conversation anew.
func TestRewindBefore_TwoTabs(t *testing.T) {
	keyed := func(h *convo.History, text string) convo.ID {
		m := convo.User(text)
		m.Key = text
		a := convo.Assistant("answer to " + text)
		a.Key = "a" + text
		return mustAppend(t, h, m, a) - 1
	}
	for name, again := range map[string]func(t *testing.T, h *convo.History) *convo.History{
		"same process": func(_ *testing.T, h *convo.History) *convo.History { return h },
		"Restore":      func(t *testing.T, h *convo.History) *convo.History { return forkOf(t, h, nil) },
		"JSON":         func(t *testing.T, h *convo.History) *convo.History { return reload(t, h, nil) },
		"Open": func(t *testing.T, h *convo.History) *convo.History {
			s := new(shelf)
			require.NoError(t, h.Attach(t.Context(), s, "k"))
			save(t, h)
			return open(t, s, "k", nil)
		},
		"Resume": func(t *testing.T, h *convo.History) *convo.History {
			again, err := convo.Resume(decisionsOf(t, h), rowsOf(h.Snapshot().Messages()...), nil)
			require.NoError(t, err)
			return again
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, nil)
			keyed(h, "zero")
			left := keyed(h, "one") // what the tab on the left shows
			right := left
			edit := func(tab *convo.ID, text string) {
				h = again(t, h)
				require.NoError(t, h.RewindBefore(*tab))
				*tab = keyed(h, text)
			}
			edit(&left, "two")
			for range 2 {
				unchanged(t, h, func() {
					for _, rewind := range []func(convo.ID) error{h.RewindBefore, h.RewindTo} {
						var stale *convo.StaleError
						require.ErrorAs(t, rewind(right), &stale)
						assert.Equal(t, right, stale.ID)
					}
				})
				h = again(t, h)
			}
			right = left // it has read the conversation again
			edit(&right, "three")
			require.ErrorIs(t, h.RewindBefore(left), convo.ErrStale)
			edit(&right, "four")
			require.ErrorIs(t, h.RewindBefore(left), convo.ErrStale)
			assert.Equal(t, []string{"zero", "answer to zero", "four", "answer to four"}, textsOf(h.Snapshot()))
			require.ErrorIs(t, h.RewindBefore(0), convo.ErrNotFound)
			require.ErrorIs(t, h.RewindBefore(right+2), convo.ErrNotFound)
			require.NoError(t, h.RewindBefore(1))
			assert.Zero(t, h.Len())
		})
	}
}

// The ranges of what was taken back stay few, in memory and where they are saved, and none of
// them is lost: what was taken back is refused, and nothing else.
func TestRewindBefore_ManyTimes(t *testing.T) {
	h := historyOf(t, nil)
	var gone, there []convo.ID
	for i := range 300 {
		id := mustAppend(t, h, convo.User("u"), convo.Assistant("a"))
		if there = append(there, id); i%2 == 1 {
			require.NoError(t, h.RewindBefore(id))
			gone, there = append(gone, id), there[:len(there)-1]
			mustAppend(t, h, convo.Assistant("b"))
		}
	}
	assert.Equal(t, 150, convo.TakenBack(h))
	fork := forkOf(t, h, nil)
	apply(t, fork, convo.Edit{Drop: idsOf(fork.Snapshot())[:fork.Len()-4], Summary: &convo.Summary{Text: "sum"}})
	mustAppend(t, fork, convo.User("u"))
	rewind(t, fork)
	assert.Equal(t, 100, convo.TakenBack(fork), "below the view they become fewer")
	for _, id := range gone {
		require.ErrorIs(t, fork.RewindTo(id), convo.ErrStale)
	}
	for _, id := range gone {
		require.ErrorIs(t, h.RewindTo(id), convo.ErrStale)
	}
	for _, id := range slices.Backward(there) {
		require.NoError(t, h.RewindTo(id))
	}
}

// What comes back into the view was not taken back, also after a compaction has dropped it. A
// hundred ranges beside entries in view take none of these with them.
func TestRewindTo_CameBack(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	for range 3 {
		mustAppend(t, h, convo.User("u"), convo.Assistant("a"))
	}
	save(t, h)
	require.NoError(t, h.RewindTo(2))
	mustAppend(t, h, convo.User("other"))
	save(t, h)
	loaded, err := convo.Load(t.Context(), s, "k", 1)
	require.NoError(t, err)
	require.NoError(t, h.Rollback(loaded))
	mustAppend(t, h, convo.User("v"))
	at := h.Snapshot()
	apply(t, h, convo.Edit{Drop: []convo.ID{3, 4}})
	_, err = h.AppendReply(at, convo.Reply{Messages: []convo.Message{convo.Assistant("to v")}})
	require.NoError(t, err)
	require.ErrorIs(t, h.RewindTo(7), convo.ErrStale)
	require.NoError(t, h.RewindTo(3))

	h = historyOf(t, nil)
	for range 120 {
		question := mustAppend(t, h, convo.User("u"), convo.Assistant("a")) - 1
		require.NoError(t, h.RewindTo(question))
		mustAppend(t, h, convo.Assistant("b"))
	}
	assert.Equal(t, 120, convo.TakenBack(h))
	at = h.Snapshot()
	apply(t, h, convo.Edit{Drop: []convo.ID{4, 6}})
	require.NoError(t, h.Rollback(at))
	require.NoError(t, h.RewindTo(4))
}

// What an edit has dropped is taken back also if the view has nothing newer.
func TestRewindTo_Dropped(t *testing.T) {
	for name, rewind := range map[string]func(*convo.History) error{
		"before": func(h *convo.History) error { return h.RewindBefore(2) },
		"to":     func(h *convo.History) error { return h.RewindTo(1) },
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("b"), convo.User("w"))
			r := apply(t, h, convo.Edit{Drop: []convo.ID{2, 3}})
			require.NoError(t, h.RewindTo(3))
			require.NoError(t, rewind(h))
			unchanged(t, h, func() {
				require.ErrorIs(t, h.RewindBefore(2), convo.ErrStale)
				require.NoError(t, h.RewindTo(1))
			})
			require.NoError(t, h.Undo(r))
			assert.Equal(t, []convo.ID{1}, idsOf(h.Snapshot()))
		})
	}
}

// A message that a Do has delivered from the queue is taken back if it is named.
func TestRewindBefore_Delivered(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", callOf("c")))
	queue(t, h, "q")
	_, err := h.AnswerOpenCalls("")
	require.NoError(t, err)
	require.ErrorIs(t, h.RewindBefore(math.MinInt64), convo.ErrNotFound)
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		id := idsOf(h.Snapshot())[h.Len()-1]
		require.NoError(t, h.RewindBefore(id))
		assert.Equal(t, "uat", rolesOf(h))
		return convo.Reply{Messages: []convo.Message{convo.Assistant("late")}}, nil
	})
	require.ErrorIs(t, err, convo.ErrStale)
}

// A compaction inside the turn does not keep the question from being asked again.
func TestRewindTo_AfterACompactionInTheTurn(t *testing.T) {
	long := func() (*convo.History, convo.ID) {
		h := historyOf(t, bare(), convo.User("before"), convo.Assistant("answer"))
		question := mustAppend(t, h, convo.User("question"))
		for i := range 4 {
			c := callOf(itoa(i))
			mustAppend(t, h, convo.Assistant("", c), convo.Result(c, "result"))
		}
		return h, question
	}
	h, _ := long()
	apply(t, h, convo.Edit{Drop: []convo.ID{4, 5}})
	require.NoError(t, h.RewindTo(4), "an entry that was dropped")
	assert.Equal(t, []convo.ID{1, 2, 3}, idsOf(h.Snapshot()))
	h, question := long()
	apply(t, h, convo.Edit{Drop: []convo.ID{4, 5}})
	require.NoError(t, h.RewindTo(question))
	assert.Equal(t, []convo.ID{1, 2, 3}, idsOf(h.Snapshot()))
	_, err := h.Do(t.Context(), saying(convo.Assistant("another answer")))
	require.NoError(t, err)
	require.ErrorIs(t, h.RewindTo(4), convo.ErrStale, "it was taken back with what followed it")

	// A summary that stands for some of it would describe what was taken back.
	h, question = long()
	r := apply(t, h, convo.Edit{Drop: []convo.ID{1, 2, 4, 5}, Summary: &convo.Summary{Text: "sum"}})
	unchanged(t, h, func() {
		err := h.RewindTo(question)
		require.EqualError(t, err, "convo: the ID to rewind to is 3, want that of an entry after 5, the newest that the summary stands for; Rollback to a snapshot from before that compaction, or Undo it first")
		assert.ErrorAs(t, err, new(*convo.ValueError))
		require.Error(t, h.RewindTo(4))
	})
	require.NoError(t, h.RewindTo(5))
	assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()))
	require.NoError(t, h.Undo(r))
	require.NoError(t, h.RewindTo(question))
	assert.Equal(t, []convo.ID{1, 2, 3}, idsOf(h.Snapshot()))

	// One that stands for what is older stays.
	h, question = long()
	apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "sum"}})
	require.NoError(t, h.RewindTo(question))
	_, ok := h.Snapshot().Summary()
	assert.True(t, ok)
	assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()))
}

// For an entry older than the last compaction, the error says which record is from before
// it, as far as the log in memory tells. What the error says leads to the question.
func TestRewindBefore_OlderThanTheCompaction(t *testing.T) {
	const archive = "Save, Load the record that Archive names for this entry, Rollback to it, and try again"
	const gone = "in no record"
	compact := func(h *convo.History) { // all but the newest turn
		ids := idsOf(h.Snapshot())
		apply(t, h, convo.Edit{Drop: ids[:len(ids)-2], Summary: &convo.Summary{Text: "sum"}})
	}
	save := func(h *convo.History) { require.NoError(t, h.Save(t.Context())) }
	compactTwice := func(h *convo.History) {
		compact(h)
		save(h)
		mustAppend(t, h, convo.User("fourth"), convo.Assistant("answer"))
		save(h)
		compact(h)
		save(h)
	}
	for name, tt := range map[string]struct {
		change func(s convo.Store, h *convo.History) *convo.History // after 1 to 6, in two records
		id     convo.ID
		want   string
	}{
		"saved before and after": {func(_ convo.Store, h *convo.History) *convo.History { compact(h); save(h); return h }, 3, "record 2"},
		"not saved after":        {func(_ convo.Store, h *convo.History) *convo.History { compact(h); return h }, 3, "record 2"},
		"opened": {func(s convo.Store, h *convo.History) *convo.History {
			compact(h)
			save(h)
			return open(t, s, "a", nil)
		}, 3, "record 2"},
		"two compactions, the second question": {func(_ convo.Store, h *convo.History) *convo.History { compactTwice(h); return h }, 5, "record 4"},
		"two compactions, the first question": {func(_ convo.Store, h *convo.History) *convo.History {
			compact(h)
			save(h)
			mustAppend(t, h, convo.User("third"), convo.Assistant("answer"))
			compact(h)
			save(h)
			return h
		}, 1, "record 2"},
		"opened after two compactions": {func(s convo.Store, h *convo.History) *convo.History {
			compactTwice(h)
			return open(t, s, "a", nil)
		}, 5, "record 4"},
		"pruned up to the record": {func(_ convo.Store, h *convo.History) *convo.History {
			require.NoError(t, h.SaveFull(t.Context()))
			compact(h)
			save(h)
			require.NoError(t, h.Prune(t.Context(), time.Now().Add(time.Hour)))
			return h
		}, 3, "record 3"},
		"the newest of its record": {func(_ convo.Store, h *convo.History) *convo.History {
			mustAppend(t, h, convo.User("fourth"))
			save(h)
			mustAppend(t, h, convo.Assistant("answer"), convo.User("fifth"), convo.Assistant("answer"))
			compact(h)
			save(h)
			return h
		}, 7, "record 3"},
		"a full record after it": {func(s convo.Store, h *convo.History) *convo.History {
			compact(h)
			require.NoError(t, h.SaveFull(t.Context()))
			return open(t, s, "a", nil)
		}, 3, archive},
		"another process": {func(s convo.Store, h *convo.History) *convo.History {
			other := open(t, s, "a", nil)
			compact(other)
			save(other)
			_, _, err := h.Reload(t.Context())
			require.NoError(t, err)
			return h
		}, 3, "record 2"},
		"pruned": {func(_ convo.Store, h *convo.History) *convo.History {
			compact(h)
			require.NoError(t, h.Prune(t.Context(), time.Time{}))
			return h
		}, 3, gone},
		"pruned above a size that is far away": {func(s convo.Store, _ *convo.History) *convo.History {
			h := open(t, s, "a", &convo.Options{PruneAbove: 1 << 20})
			compact(h)
			save(h)
			return h
		}, 3, "record 2"},
		"pruned above a size that is reached": {func(s convo.Store, _ *convo.History) *convo.History {
			h := open(t, s, "a", &convo.Options{PruneAbove: 1})
			compact(h)
			save(h)
			return h
		}, 3, ""},
		"never saved before it": {func(_ convo.Store, h *convo.History) *convo.History {
			mustAppend(t, h, convo.User("fourth"), convo.Assistant("answer"), convo.User("fifth"), convo.Assistant("answer"))
			compact(h)
			return h
		}, 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &convotest.MemStore{}
			h := open(t, s, "a", nil)
			mustAppend(t, h, convo.User("first"), convo.Assistant("answer"), convo.User("second"), convo.Assistant("answer"))
			save(h)
			mustAppend(t, h, convo.User("third"), convo.Assistant("answer"))
			save(h)
			h = tt.change(s, h)
			var err error
			unchanged(t, h, func() { err = h.RewindBefore(tt.id) })
			require.ErrorAs(t, err, new(*convo.ValueError))
			_, way, _ := strings.Cut(err.Error(), "stands for; ")
			var seq uint64
			switch tt.want {
			case "":
				require.Equal(t, "Rollback to a snapshot from before that compaction, or Undo it first", way)
				return
			case archive, gone:
				require.Equal(t, archive, way)
				for a, err := range h.Archive(t.Context(), convo.Range{First: tt.id, Last: tt.id}) {
					require.NoError(t, err)
					if a.Entry != nil {
						seq = a.Seq
					}
				}
				if tt.want == gone {
					require.Zero(t, seq)
					return
				}
			default:
				require.Equal(t, "Save, Load "+tt.want+", Rollback to it, and try again", way)
				_, err := fmt.Sscanf(tt.want, "record %d", &seq)
				require.NoError(t, err)
			}
			save(h)
			at, err := convo.Load(t.Context(), s, "a", seq)
			require.NoError(t, err)
			require.NoError(t, h.Rollback(at))
			require.NoError(t, h.RewindBefore(tt.id))
			mustAppend(t, h, convo.User("edited"))
			save(h)
			unchanged(t, h, func() { require.ErrorIs(t, h.RewindBefore(tt.id), convo.ErrStale) })
		})
	}
}

// The queue is delivered where that is possible, and what a waiting Do has delivered
// stays.
func TestRewindTo_Queue(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", callOf("c")))
	queue(t, h, "queued")
	require.NoError(t, h.RewindTo(1))
	assert.Equal(t, []string{"u"}, textsOf(h.Snapshot()))
	require.NoError(t, h.RewindTo(0))
	assert.Equal(t, []string{"queued"}, textsOf(h.Snapshot()))

	h = historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("u"))
	queue(t, h, "queued")
	_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		unchanged(t, h, func() { require.NoError(t, h.RewindTo(1), "nothing else is newer") })
		require.NoError(t, h.RewindTo(0))
		assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()))
		assert.Equal(t, []string{"queued"}, textsOf(h.Snapshot()))
		require.NoError(t, h.RewindTo(0))
		assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()), "it is still for this Do")
		return convo.Reply{Messages: []convo.Message{convo.Assistant("late")}}, nil
	})
	require.ErrorIs(t, err, convo.ErrStale)
}

func rewind(t *testing.T, h *convo.History) {
	t.Helper()
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, 1, taken)
}

// What a History remembers of edits does not grow with their number, whatever
// they touch.
func TestApply_MarksOfEditsAreFew(t *testing.T) {
	for name, edit := range map[string]func(h *convo.History, i int) convo.Edit{
		"dropping": func(h *convo.History, _ int) convo.Edit { return dropOf(h, 0) },
		"a summary": func(_ *convo.History, i int) convo.Edit {
			return convo.Edit{Summary: &convo.Summary{Text: fmt.Sprint("what went ", i)}}
		},
		"dropping newest": func(h *convo.History, _ int) convo.Edit { return dropOf(h, h.Len()-3) },
		"dropping in between, newest first": func(h *convo.History, i int) convo.Edit {
			return dropOf(h, h.Len()-3-i%4)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, nil)
			for i := range 20 {
				mustAppend(t, h, convo.User(fmt.Sprint("question ", i)), convo.Assistant("answer"))
			}
			for i := range 500 {
				mustAppend(t, h, convo.User(fmt.Sprint("question ", i)), convo.Assistant("answer"))
				r, err := h.Apply(h.Snapshot(), edit(h, i))
				require.NoError(t, err)
				require.Equal(t, convo.OutcomeApplied, r.Outcome)
				require.LessOrEqual(t, convo.EditMarks(h), 5)
			}
		})
	}
}

// Edits that touch ever older entries, with nothing appended in between, leave
// one mark each: no more than there are entries.
func TestApply_MarksOfEditsAreNoMoreThanEntries(t *testing.T) {
	h := historyOf(t, nil)
	for i := range 50 {
		mustAppend(t, h, convo.User(fmt.Sprint("question ", i)), convo.Assistant("answer"))
	}
	entries := h.Len()
	before := h.Snapshot()
	for h.Len() > 3 {
		_, err := h.Apply(h.Snapshot(), dropOf(h, h.Len()-3))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, convo.EditMarks(h), entries)
	mustAppend(t, h, convo.User("more"), convo.Assistant("yes"), convo.User("and?"))
	_, err := h.Apply(h.Snapshot(), dropOf(h, h.Len()-2))
	require.NoError(t, err)
	require.Equal(t, 1, convo.EditMarks(h), "the last one touched the newest entry")
	require.NoError(t, h.Rollback(before))
	require.Equal(t, entries, h.Len())
	require.Zero(t, convo.EditMarks(h), "all are undone")
}

// What is remembered of rollbacks is bounded, and an old snapshot that shows what
// was taken back or undone is refused all the same.
func TestRollback_ManyOfThem(t *testing.T) {
	h := historyOf(t, nil)
	talk := func() {
		mustAppend(t, h, convo.User("u"), convo.Assistant("a"))
	}
	for range 20 {
		talk()
	}
	dropAt := func(i int) {
		_, err := h.Apply(h.Snapshot(), dropOf(h, i))
		require.NoError(t, err)
	}
	var undone, taken *convo.Snapshot
	for i := range long.Or(1100, 3000) {
		talk()
		at := h.Snapshot()
		dropAt(at.Len() - 4)
		if i == 0 {
			undone = h.Snapshot()
			talk()
			taken = h.Snapshot()
		}
		convo.Revert(h, at)
		dropAt(at.Len() - 5)
	}
	require.ErrorIs(t, h.Rollback(undone), convo.ErrStale)
	require.ErrorIs(t, h.Rollback(taken), convo.ErrStale)
	reversals, most := convo.Reversals(h)
	assert.Equal(t, most, reversals)
}

// dropOf returns the edit that drops the i-th entry of h.
func dropOf(h *convo.History, i int) convo.Edit {
	e, _ := h.Snapshot().At(i)
	return convo.Edit{Drop: []convo.ID{e.ID}}
}

// What a compaction has dropped is taken back by a rewind behind it, also after Open.
func TestRewindTo_DroppedBeforeOpen(t *testing.T) {
	for _, reopens := range []bool{false, true} {
		store := &convotest.MemStore{}
		h, err := convo.Open(t.Context(), store, "s", nil)
		require.NoError(t, err)
		for range 3 {
			_, err := h.Append(convo.User("question"), convo.Assistant("answer"))
			require.NoError(t, err)
		}
		_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2, 3, 4}})
		require.NoError(t, err)
		if reopens {
			require.NoError(t, h.Save(t.Context()))
			require.NoError(t, h.Close())
			h, err = convo.Open(t.Context(), store, "s", nil)
			require.NoError(t, err)
		}
		require.NoError(t, h.RewindBefore(5))
		require.NoError(t, h.RewindTo(0))
		_, err = h.Append(convo.User("new"))
		require.NoError(t, err)
		assert.True(t, h.Snapshot().TakenBack(1))
		require.ErrorIs(t, h.RewindBefore(2), convo.ErrStale)
		assert.Equal(t, 1, h.Len())
		require.NoError(t, h.Close())
	}
}

// A panic during a change leaves the lock free and the view as it was. No code of the caller
// runs under the lock, and no input is known to cause a panic, so the test breaks a part.
func TestHistory_Panics(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "f", Arguments: "{}"}
	var h *convo.History
	var at, later *convo.Snapshot
	var edit convo.Report
	changes := map[string]func() error{
		"Rewind":              func() error { _, err := h.Rewind(1); return err },
		"RewindTo":            func() error { return h.RewindTo(4) },
		"Rollback":            func() error { return h.Rollback(later) },
		"Rollback of an edit": func() error { return h.Rollback(at) },
		"ReplaceRows":         func() error { _, err := h.ReplaceRows(5, convo.User("row")); return err },
		"ReplaceRows of all":  func() error { _, err := h.ReplaceRows(0, convo.User("row")); return err },
		"Undo":                func() error { return h.Undo(edit) },
		"Apply":               func() error { _, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}}); return err },
		"AnswerOpenCalls":     func() error { _, err := h.AnswerOpenCalls("stopped"); return err },
	}
	for name, change := range changes {
		for _, shared := range []bool{false, true} {
			h = historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"), convo.User("5"), convo.Assistant("6"))
			at = h.Snapshot()
			edit = apply(t, h, convo.Edit{Drop: []convo.ID{1, 2}})
			later = h.Snapshot()
			mustAppend(t, h, convo.User("7"), convo.Assistant("", call))
			if shared {
				h.Snapshot()
			}
			before, mend := convo.PartsOf(h), convo.BreakBudget(h)
			assert.Panics(t, func() { _ = change() }, name)
			mend()
			assert.True(t, reflect.DeepEqual(before, convo.PartsOf(h)), name)
			require.NoError(t, change(), name)
			assert.False(t, reflect.DeepEqual(before, convo.PartsOf(h)), name)
			checkPairs(t, h.Snapshot())
		}
	}
}

// Without a saved record there is no way back to before the summary but an Undo.
func TestHistory_RewindToUnsaved(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("b"))
	_, err := h.SplicePrefix(h.Snapshot(), 2, "summary")
	require.NoError(t, err)
	err = h.RewindTo(0)
	assert.ErrorAs(t, err, new(*convo.ValueError))
	assert.ErrorContains(t, err, "Undo it first")
}

// Undo brings back what an edit took, and leaves what came later.
func TestUndo(t *testing.T) {
	h := tour(t, nil)
	before := h.Snapshot()
	require.NoError(t, h.RecordUsage(before, convo.Usage{Input: 900}))
	estimate := h.Tokens()
	first := apply(t, h, convo.Edit{Drop: []convo.ID{2, 6}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "one"}})
	mustAppend(t, h, convo.Assistant("so"), convo.User("go on"))
	require.NoError(t, h.Pin(8))
	second := apply(t, h, convo.Edit{Drop: []convo.ID{3, 4, 5}, Summary: &convo.Summary{Text: "two"}})

	unchanged(t, h, func() { require.ErrorIs(t, h.Undo(first), convo.ErrStale, "not the newest") })
	require.NoError(t, h.Undo(second))
	assert.Equal(t, []convo.ID{1, 3, 4, 5, 7, 8, 9, 10, 11}, idsOf(h.Snapshot()))
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "one", sum.Text)
	assert.Zero(t, sum.Updates)
	unchanged(t, h, func() { require.ErrorIs(t, h.Undo(second), convo.ErrStale, "once") })

	require.NoError(t, h.Undo(first))
	s := h.Snapshot()
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, idsOf(s))
	assert.Equal(t, textsOf(before), textsOf(s)[:9])
	_, ok := s.Summary()
	assert.False(t, ok)
	assert.Equal(t, []convo.ID{8}, s.Pinned())
	assert.Equal(t, rawTotal(s), s.Tokens())
	require.NoError(t, h.Rollback(before))
	assert.Equal(t, estimate, h.Tokens(), "as measured")
	unchanged(t, h, func() { require.ErrorIs(t, h.Undo(first), convo.ErrStale) })
}

// Undo brings back nothing that a rewind has taken back since the edit.
func TestUndo_AfterRewind(t *testing.T) {
	call := convo.ToolCall{ID: "a", Name: "run", Arguments: "{}"}
	newHistory := func() *convo.History {
		return historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("", call), convo.Result(call, "5"), convo.Assistant("6"), convo.User("7"))
	}
	h := newHistory()
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2, 6}})
	require.NoError(t, h.RewindTo(3))
	mustAppend(t, h, convo.Assistant("8"))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{1, 2, 3, 8}, idsOf(h.Snapshot()))
	require.ErrorIs(t, h.RewindTo(6), convo.ErrStale)

	// A call whose result was taken back stays away with it.
	h = newHistory()
	r = apply(t, h, convo.Edit{Drop: []convo.ID{4, 5}})
	require.NoError(t, h.RewindTo(4))
	mustAppend(t, h, convo.Assistant("8"))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{1, 2, 3, 8}, idsOf(h.Snapshot()))

	// So does a summary that stands for what was taken back.
	h = newHistory()
	apply(t, h, convo.Edit{Drop: []convo.ID{2, 3, 4, 5}, Summary: &convo.Summary{Text: "s"}})
	r = apply(t, h, convo.Edit{Summary: &convo.Summary{}})
	require.NoError(t, h.RewindTo(1))
	require.NoError(t, h.Undo(r))
	_, ok := h.Snapshot().Summary()
	assert.False(t, ok)
	assert.Equal(t, []convo.ID{1}, idsOf(h.Snapshot()))

	// What left between two rewinds comes back, however many rewinds there were.
	h = newHistory()
	for range 101 {
		mustAppend(t, h, convo.Assistant("a"), convo.User("u"), convo.Assistant("b"))
		ids := idsOf(h.Snapshot())
		require.NoError(t, h.RewindTo(ids[len(ids)-2]))
	}
	before := idsOf(h.Snapshot())
	r = apply(t, h, convo.Edit{Drop: before[1 : len(before)-1]})
	mustAppend(t, h, convo.Assistant("a"))
	_, err := h.Rewind(1)
	require.NoError(t, err)
	require.NoError(t, h.Undo(r))
	assert.Equal(t, before[:len(before)-1], idsOf(h.Snapshot()))
}

func TestUndo_Refuses(t *testing.T) {
	h := tour(t, nil)
	at := h.Snapshot()
	r := apply(t, h, convo.Edit{Drop: []convo.ID{6}})
	shown := h.Snapshot()
	other := tour(t, nil)
	theirs := apply(t, other, convo.Edit{Drop: []convo.ID{6}})
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	unchanged(t, h, func() {
		for name, r := range map[string]convo.Report{"zero": {}, "of another": theirs} {
			require.ErrorIs(t, h.Undo(r), convo.ErrStale, name)
		}
		_, declined := h.Apply(h.Snapshot(), convo.Edit{})
		require.Error(t, declined)
	})
	require.ErrorIs(t, fork.Undo(r), convo.ErrStale)

	require.NoError(t, h.Undo(r))
	unchanged(t, h, func() {
		require.ErrorIs(t, h.Rollback(shown), convo.ErrStale, "it shows an edit that was undone")
	})
	require.NoError(t, h.Rollback(at))

	// A rollback that undoes an edit leaves the one before to be undone.
	first := apply(t, h, convo.Edit{Drop: []convo.ID{6}})
	mustAppend(t, h, convo.Assistant("x"))
	between := h.Snapshot()
	mustAppend(t, h, convo.User("y"), convo.Assistant("z"), convo.User("w"))
	second := apply(t, h, convo.Edit{Drop: []convo.ID{12}})
	require.NoError(t, h.Rollback(between))
	require.ErrorIs(t, h.Undo(second), convo.ErrStale)
	require.NoError(t, h.Undo(first))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, idsOf(h.Snapshot()))

	r = apply(t, h, convo.Edit{Drop: []convo.ID{6}})
	require.NoError(t, h.Close())
	require.ErrorIs(t, h.Undo(r), convo.ErrClosed)
	require.ErrorIs(t, new(convo.History).Undo(r), convo.ErrClosed)
}

// always is due at each check.
type always struct{ convo.Truncate }

func (always) Due(convo.Status) bool { return true }

// After an Undo, nothing is compacted unasked until MinFree was appended or the
// request does not fit.
func TestUndo_Holds(t *testing.T) {
	opts := windowOf(1000, always{})
	opts.Priors = map[string]convo.Prior{"": {Margin: -1}}
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 600, 300, 100
	h := historyOf(t, opts, convo.User("u"), convo.Assistant(strings.Repeat("a", 500)), convo.User("v"), convo.Assistant("b"), convo.User("w"))
	mustAppend(t, h, convo.Assistant(strings.Repeat("c", 200)), convo.User("x"))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Undo(r))

	needed := func(want convo.Outcome) {
		t.Helper()
		r, err := reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, want, r.Outcome)
	}
	needed(convo.OutcomeNotNeeded)
	assert.False(t, h.CompactInBackground(t.Context()))
	mustAppend(t, h, convo.Assistant(strings.Repeat("d", 98)))
	needed(convo.OutcomeNotNeeded)
	mustAppend(t, h, convo.User("yy"))
	needed(convo.OutcomeApplied)

	// What is asked for is done, with nothing new since.
	mustAppend(t, h, convo.Assistant(strings.Repeat("d", 500)), convo.User("z"))
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Undo(r))
	r, err = h.Compact(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.NoError(t, h.Undo(r))
	require.NoError(t, h.SetLimits(convo.Limits{Window: h.Status().Upper - 1, Reserve: -1}))
	needed(convo.OutcomeApplied) // it does not fit
}

// A compaction that is running unasked does not take back what Undo put back.
func TestUndo_DuringACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *convo.History
		resume := make(chan struct{})
		calls := 0
		slow := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if calls++; calls > 1 {
				return convo.Edit{}, errors.New("asked again")
			}
			<-resume
			return convo.Truncate{}.Compact(ctx, s, g)
		})
		opts := windowOf(1000, slow)
		opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 600, 300, 10
		h = historyOf(t, opts, convo.User("u"), convo.Assistant(strings.Repeat("a", 500)), convo.User("v"), convo.Assistant("b"), convo.User("w"))
		r := apply(t, h, convo.Edit{Drop: []convo.ID{3}})
		mustAppend(t, h, convo.Assistant(strings.Repeat("c", 200)), convo.User("x"))
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		require.NoError(t, h.Undo(r))
		before := textsOf(h.Snapshot())
		close(resume)
		got, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeStale, got.Outcome)
		assert.Equal(t, before, textsOf(h.Snapshot()))
	})
}

// What Undo takes back is held in memory by reports and not by the History, so any number
// of edits can be taken back.
func TestUndo_ManyEdits(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	var reports []convo.Report
	for range 1200 {
		id := mustAppend(t, h, convo.Assistant("a"), convo.User("v"))
		reports = append(reports, apply(t, h, convo.Edit{Drop: []convo.ID{id - 1}}))
	}
	undone := 0
	for i := len(reports) - 1; i >= 0; i-- {
		if h.Undo(reports[i]) != nil {
			break
		}
		undone++
	}
	assert.Equal(t, 1200, undone)
	assert.Equal(t, 1201+1200, h.Len())
}

// A user message after one of a turn that has lost what followed begins a turn, so
// that Undo can put that back in between.
func TestUndo_KeepsTurnsApart(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("u"), convo.Assistant("a"), convo.User("v"), convo.Assistant("b"), convo.User("w"))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{4}})
	rewind(t, h)
	mustAppend(t, h, convo.User("x"), convo.User("y"))
	assert.Equal(t, 3, find(t, h, 6).Turn)
	assert.Equal(t, 3, find(t, h, 7).Turn)
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 6, 7}, idsOf(h.Snapshot()))
	checkSaved(t, h, &convo.Options{Roles: convo.Relaxed()})
}

// Reasoning after a call that is back is sent, and counted, for its turn has a call
// again.
func TestUndo_ReasoningBehindACall(t *testing.T) {
	opts := bare()
	opts.Overheads.Reasoning = convo.ReplayTools
	opts.Roles = convo.Relaxed()
	h := historyOf(t, opts)
	c := callOf("c")
	thought := thoughts.In(convo.Assistant("b"), convo.Reasoning{Text: "one two three four five"})
	mustAppend(t, h, convo.User("1"), convo.Assistant("", c), convo.Result(c, "r"), convo.Assistant("a"), convo.User("5"))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{2, 3, 4}})
	_, err := h.Rewind(1)
	require.NoError(t, err)
	mustAppend(t, h, thought)
	idle := find(t, h, 6).Tokens
	require.NoError(t, h.Undo(r))
	assert.Greater(t, find(t, h, 6).Tokens, idle)
	restored, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	for i, e := range restored.Snapshot().All() {
		own, _ := h.Snapshot().At(i)
		assert.Equal(t, e.Tokens, own.Tokens, "entry %d", e.ID)
	}
	tokens, err := h.Count(thought)
	require.NoError(t, err)
	assert.Equal(t, find(t, h, 6).Tokens, tokens)
}

// What was changed and then taken back stays away, also where nothing newer is left.
func TestUndo_OfWhatRewindTookBack(t *testing.T) {
	h := historyOf(t, nil, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.Assistant("4"))
	r := apply(t, h, rewriteOf(4, convo.Text("other")))
	_, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, []convo.ID{1, 2}, idsOf(h.Snapshot()))
	require.NoError(t, h.Undo(r))
	assert.Equal(t, []string{"1", "2"}, textsOf(h.Snapshot()))
	mustAppend(t, h, convo.User("5"))
	assert.Equal(t, []string{"1", "2", "5"}, textsOf(h.Snapshot()))
}

// Reasoning that an Undo brings back stays bound if nothing was answered without it.
func TestUndo_Bound(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	for _, text := range []string{"a", "b"} {
		_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{signed(text)}})
		require.NoError(t, err)
		mustAppend(t, h, convo.User("next"))
	}
	r := apply(t, h, convo.Edit{Rewrite: []convo.Rewrite{{ID: 2, Parts: []convo.Part{convo.Text("a")}}}})
	require.True(t, h.Snapshot().Bound(4))
	require.NoError(t, h.Undo(r))
	assert.True(t, h.Snapshot().Bound(2))
	assert.True(t, h.Snapshot().Bound(4))
}

func said(h *convo.History) (texts []string) {
	for _, e := range h.Snapshot().All() {
		texts = append(texts, e.Message.Text())
	}
	return texts
}

func row(key, text string) convo.Message {
	m := convo.User(text)
	m.Key = key
	return m
}

func TestHistory_ReplaceRows(t *testing.T) {
	h := historyOf(t, nil)
	answer := convo.Assistant("b")
	answer.Key = "b"
	_, err := h.AppendRows(row("a", "a"), answer, row("c", "c"), row("d", "d"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(3, 4))

	last, err := h.ReplaceRows(3, row("new", "new"), row("d", "d, edited"))
	require.NoError(t, err)
	assert.Equal(t, convo.ID(6), last)
	assert.Equal(t, []string{"a", "b", "new", "d, edited"}, said(h))
	assert.Equal(t, []convo.ID{6}, h.Snapshot().Pinned(), "by its key")
	assert.True(t, h.Snapshot().TakenBack(4))
	assert.False(t, h.Snapshot().TakenBack(2))
	assert.False(t, h.Snapshot().TakenBack(6))
	assert.False(t, h.Snapshot().TakenBack(7), "it does not exist yet")

	_, err = h.ReplaceRows(2)
	require.NoError(t, err, "nothing in its place")
	assert.Equal(t, []string{"a"}, said(h))
}

// ReplaceRows(0) begins anew: the summary goes too, and what belongs to no entry stays.
func TestHistory_ReplaceAll(t *testing.T) {
	ctx := context.Background()
	store := &convotest.MemStore{}
	h, err := convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.SetSystem(convo.System("Be brief.")))
	require.NoError(t, h.SetMeta("title", "data"))
	require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
	_, err = h.AppendRows(row("a", "a"), convo.Assistant("b"), row("c", "c"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(4))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	require.NoError(t, h.Save(ctx))
	_, err = h.ReplaceRows(2, row("x", "x"))
	require.ErrorAs(t, err, new(*convo.ValueError), "the summary stands for it")
	_, err = h.ReplaceRows(0, row("c", "c"), convo.Assistant("d"))
	require.NoError(t, err)
	check := func(h *convo.History) {
		assert.Equal(t, []string{"Be brief.", "c", "d"}, said(h))
		_, has := h.Snapshot().Summary()
		assert.False(t, has)
		assert.Equal(t, []convo.ID{5}, h.Snapshot().Pinned())
		title, data := h.Snapshot().Meta()
		assert.Equal(t, "title data", title+" "+data)
		assert.Len(t, h.Snapshot().Tools(), 1)
		assert.True(t, h.Snapshot().TakenBack(3))
	}
	check(h)
	require.NoError(t, h.Save(ctx))
	again, err := convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	defer again.Close()
	check(again)
	found := 0
	for a, err := range h.Archive(ctx) {
		require.NoError(t, err)
		if a.Entry != nil && a.Entry.Message.Text() == "b" {
			found++
		}
	}
	assert.Positive(t, found, "the archive keeps what was taken back")
}

// What cannot be appended takes nothing back.
func TestHistory_ReplaceRowsRefused(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "read", Arguments: "{}"}
	h := historyOf(t, &convo.Options{MaxResult: 64, Spill: func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("full") }})
	_, err := h.AppendRows(row("a", "a"), convo.Assistant("b"), row("c", "c"))
	require.NoError(t, err)
	before := h.Snapshot()
	for name, c := range map[string]struct {
		id   convo.ID
		rows []convo.Message
		want any
	}{
		"an empty message":    {2, []convo.Message{convo.User("")}, new(*convo.MessageError)},
		"a role":              {3, []convo.Message{convo.Assistant("d")}, new(*convo.RoleError)},
		"a result of no call": {2, []convo.Message{convo.Result(call, "r")}, new(*convo.PairError)},
		"an entry to come":    {9, []convo.Message{convo.User("d")}, nil},
		"no ID":               {-1, nil, nil},
		"a Spill that fails":  {2, []convo.Message{convo.Assistant("", call), convo.Result(call, string(make([]byte, 4000)))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.ReplaceRows(c.id, c.rows...)
			require.Error(t, err)
			if c.want != nil {
				assert.ErrorAs(t, err, c.want)
			}
			assert.Equal(t, before.Version(), h.Snapshot().Version())
		})
	}
	require.NoError(t, h.RewindTo(1))
	_, err = h.ReplaceRows(2, convo.User("d"))
	require.ErrorIs(t, err, convo.ErrStale, "it was taken back")
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		_, err := h.ReplaceRows(1, convo.User("d"))
		assert.ErrorIs(t, err, convo.ErrStale)
		return convo.Reply{}, errors.New("stop")
	})
	require.Error(t, err)
	assert.Equal(t, []string{"a"}, said(h))
	_, err = new(convo.History).ReplaceRows(0)
	require.ErrorIs(t, err, convo.ErrClosed)
}

// Rows may interrupt open calls anywhere, and a note may come before everything else.
func TestHistory_AppendRows(t *testing.T) {
	call := func(id string) convo.Message {
		return convo.Assistant("", convo.ToolCall{ID: id, Name: "read", Arguments: "{}"})
	}
	rows := []convo.Message{convo.System("note"), convo.User("a"), call("1"), convo.User("b"), convo.User("c"), call("2"), convo.User("d")}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	last, err := h.AppendRows(rows...)
	require.NoError(t, err)
	assert.Equal(t, convo.ID(9), last)
	require.NoError(t, h.SetSystem(convo.System("Be brief.")))
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, s.UnmarshalJSON(data))
	again, err := convo.Restore(&s, &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	defer again.Close()
	for _, h := range []*convo.History{h, again} {
		require.NoError(t, h.SetSystem(convo.System("Be calm.")))
		assert.Equal(t, []string{"Be calm.", "note", "a", "", "interrupted by the user", "b", "c", "", "interrupted by the user", "d"}, said(h))
	}

	h = historyOf(t, nil)
	_, err = h.AppendRows(rows...)
	require.ErrorAs(t, err, new(*convo.PairError), "the strict policy lets no user interrupt")
	assert.Zero(t, h.Len())
	h = historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	_, err = h.Append(rows...)
	require.ErrorAs(t, err, new(*convo.PairError), "only the first message of an Append interrupts")
	_, err = h.AppendRows(append(rows, call("3"), convo.Result(convo.ToolCall{ID: "x"}, ""))...)
	require.ErrorAs(t, err, new(*convo.PairError))
	assert.Zero(t, h.Len())
}

func TestMessage_Sum(t *testing.T) {
	call := func(arguments string) convo.Message {
		return convo.Assistant(" Well. ", convo.ToolCall{ID: "1", Name: "read", Arguments: arguments})
	}
	result := func(id, text string) convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}}}
	}
	for name, c := range map[string]struct {
		a, b convo.Message
		same bool
	}{
		"white space":     {convo.User("a"), convo.User(" a\n"), true},
		"parts":           {convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("a"), convo.Text("b")}}, convo.User("ab"), true},
		"reasoning":       {thoughts.In(convo.Assistant("a"), convo.Reasoning{Text: "t", Signature: "s"}), convo.Assistant("a"), true},
		"key":             {row("k", "a"), convo.User("a"), true},
		"invalid":         {convo.User("a\xff"), convo.User("a\uFFFD"), true},
		"JSON":            {call(`{"a":1,"b":[1, 2]}`), call("{\"b\":[1,2],\n\"a\":1}"), true},
		"no JSON":         {call(""), call("{}"), true},
		"IDs":             {result("1", "a"), result("2", "a"), true},
		"role":            {convo.User("a"), convo.Assistant("a"), false},
		"text":            {convo.User("a"), convo.User("b"), false},
		"inner space":     {convo.User("a b"), convo.User("a  b"), false},
		"arguments":       {call(`{"a":1}`), call(`{"a":2}`), false},
		"numbers":         {call(`{"a":1}`), call(`{"a":1.0}`), false},
		"half JSON":       {call(`{"a":1}`), call(`{"a":1`), false},
		"a bracket":       {call(`{"a":1}`), call(`{"a":1}]`), false},
		"two values":      {call(`{"a":1}`), call(`{"a":1}{"a":2}`), false},
		"container":       {convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Container: "c"}, Parts: []convo.Part{convo.Text("a")}}, convo.Assistant("a"), true},
		"media":           {convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png", Data: "AA=="}}}, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png", Data: "AB=="}}}, false},
		"place of a text": {convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("a"), convo.Media{URL: "u"}}}, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Media{URL: "u"}, convo.Text("a")}}, false},
	} {
		if c.same {
			assert.Equal(t, c.a.Sum(), c.b.Sum(), name)
		} else {
			assert.NotEqual(t, c.a.Sum(), c.b.Sum(), name)
		}
	}
	assert.NotPanics(t, func() { convo.Message{Parts: []convo.Part{nil}}.Sum() })
}

// The sums are saved in Decisions, so they must never change.
func TestMessage_SumGolden(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "read", Arguments: `{"b":[1, 2.50],"a":"ä"}`}
	cleared := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "1", Cleared: true, Parts: []convo.Part{convo.Text("gone")}}}}
	for _, c := range []struct {
		m    convo.Message
		want uint64
	}{
		{convo.Message{}, 0xc0c933306b404e08},
		{convo.System("Be brief."), 0x974afd3795ffb28a},
		{convo.User("The quick brown fox jumps over the lazy dog."), 0x19b54b0e2baf1eb8},
		{convo.Message{Role: convo.RoleUser, Author: "Ann", Parts: []convo.Part{convo.Text("Hm."), convo.Media{MIME: "image/png", Data: "AA=="}, convo.Media{MIME: "image/png", URL: "https://example.com/a.png"}}}, 0xf57e5f33183f75ff},
		{thoughts.In(convo.Assistant("Well.", call), convo.Reasoning{Text: "t", Signature: "s"}), 0x5a0d050dbdd05c78},
		{convo.Result(call, "a result"), 0xd596d3b248c365fc},
		{convo.ResultError(call, errors.New("no such file")), 0xd23b72c2b85212b5},
		{cleared, 0xb3bc8dd0d26bb518},
		{convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Opaque{Format: "anthropic", JSON: `{"type":"x"}`}}}, 0xf4590085e0f3757a},
	} {
		assert.Equal(t, c.want, c.m.Sum(), "%v: %#x", c.m, c.m.Sum())
	}
}

// The rows of entries that are taken back are not needed, and others may come in their place.
func TestDecisions_RewindTo(t *testing.T) {
	ask := func(i int) convo.Message { return row(string(rune('a'+i)), "question") }
	for _, n := range []int{4, 40} { // with keys that are listed or not
		h := historyOf(t, nil)
		var rows []convo.Message
		for i := range n {
			m := row("", "x")
			m.Key = string(rune('A' + i))
			if i%2 == 1 {
				m.Role = convo.RoleAssistant
			}
			rows = append(rows, m)
		}
		_, err := h.AppendRows(rows...)
		require.NoError(t, err)
		require.NoError(t, h.Pin(1, 4))
		data, err := h.Decisions()
		require.NoError(t, err)
		for last := range n {
			d, err := convo.ReadDecisions(data)
			require.NoError(t, err)
			require.NoError(t, d.RewindTo(convo.ID(last)))
			other := append(append([]convo.Message(nil), rows[:last]...), ask(last))
			if last%2 == 1 {
				other[last].Role = convo.RoleAssistant
			}
			again, err := convo.Resume(d, rowsOf(other...), nil)
			require.NoError(t, err, "%d of %d", last, n)
			assert.Equal(t, last+1, again.Len())
			assert.True(t, last == n || again.Snapshot().TakenBack(convo.ID(last+1)))
			e, _ := again.Snapshot().At(last)
			assert.Equal(t, convo.ID(n+1), e.ID, "no ID is used again")
			require.NoError(t, again.Close())
		}
	}
	d, err := convo.ReadDecisions(func() []byte {
		h := historyOf(t, nil)
		_, err := h.AppendRows(row("a", "a"), convo.Assistant("b"), row("c", "c"))
		require.NoError(t, err)
		_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "s"}})
		require.NoError(t, err)
		data, err := h.Decisions()
		require.NoError(t, err)
		return data
	}())
	require.NoError(t, err)
	require.ErrorAs(t, d.RewindTo(1), new(*convo.ValueError))
	require.NoError(t, d.RewindTo(2))
	for _, d := range []*convo.Decisions{nil, new(convo.Decisions)} {
		require.ErrorAs(t, d.RewindTo(1), new(*convo.ValueError))
		d.Accept("key")
		keys, from := d.Needs()
		assert.Empty(t, keys)
		assert.Empty(t, from)
		_, err := convo.Resume(d, nil, nil)
		require.ErrorAs(t, err, new(*convo.ValueError))
	}
}

// Reasoning stays bound to what it was made of, whatever stands before it by now.
func TestHistory_ReplaceRowsKeepsBonds(t *testing.T) {
	row := func(key string, m convo.Message) convo.Message {
		m.Key = key
		return m
	}
	h := historyOf(t, nil, row("a", convo.User("a")), row("b", signed("b")), row("c", convo.User("c")), row("d", signed("d")), row("e", convo.User("e")))
	require.Empty(t, h.Snapshot().Unbound())
	_, err := h.ReplaceRows(3, row("c", convo.User("c")), row("d", signed("d")), row("new", convo.User("new")))
	require.NoError(t, err)
	assert.Empty(t, h.Snapshot().Unbound(), "the same stands before d")
	_, err = h.ReplaceRows(6, row("c", convo.User("c, edited")), row("d", signed("d")))
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{10}, h.Snapshot().Unbound(), "something else stands before d")
	_, err = h.ReplaceRows(0, row("x", convo.User("x")), row("b", signed("b")), row("y", convo.User("y")), row("z", signed("z")))
	require.NoError(t, err)
	assert.Len(t, h.Snapshot().Unbound(), 2)
}

// Reasoning of a row that has left the view before is not bound where it comes back; that of
// the answer to the request under way is, whatever was appended since.
func TestHistory_ReplaceRowsBackInTheView(t *testing.T) {
	row := func(key string, m convo.Message) convo.Message {
		m.Key = key
		return m
	}
	for _, isAsking := range []bool{false, true} {
		h := historyOf(t, nil, row("a", convo.User("a")), row("b", signed("b")), row("c", convo.User("c")), row("d", signed("d")), row("e", convo.User("e")))
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}})
		require.NoError(t, err)
		if isAsking {
			_, _, err = h.Prepare(t.Context())
			require.NoError(t, err)
		}
		last, err := h.ReplaceRows(3, row("c", convo.User("c, edited")), row("b", signed("b")), row("e", convo.User("e")), row("d", signed("d")), row("f", convo.User("f")))
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{last - 3, last - 1}, h.Snapshot().Unbound())
	}
	h := historyOf(t, nil, row("a", convo.User("a")))
	_, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	typed, err := h.AppendRows(row("typed", convo.User("typed")))
	require.NoError(t, err)
	_, err = h.ReplaceRows(typed, row("b", signed("b")), row("typed", convo.User("typed")))
	require.NoError(t, err)
	assert.Empty(t, h.Snapshot().Unbound())
}

// The container of an answer is kept wherever the answer is: in the log, in the rows of an
// application and in a snapshot.
func TestOrigin_Container(t *testing.T) {
	answer := signed("it runs", callOf("c"))
	answer.Origin = convo.Origin{Format: "f", Model: "m", Container: "container_1"}
	rows := []convo.Message{keyed("1", convo.User("u")), keyed("2", answer)}
	want := func(h *convo.History) {
		t.Helper()
		s := h.Snapshot()
		e, _ := s.Find(2)
		assert.Equal(t, answer.Origin, e.Message.Origin)
		assert.True(t, s.Bound(2))
	}
	store := new(convotest.MemStore)
	h, err := convo.Open(t.Context(), store, "k", nil)
	require.NoError(t, err)
	mustAppend(t, h, rows[0])
	_, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: rows[1:]})
	require.NoError(t, err)
	want(h)
	require.NoError(t, h.Save(t.Context()))
	again, err := convo.Open(t.Context(), store, "k", nil)
	require.NoError(t, err)
	want(again)
	again, err = convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	want(again)
	again, err = convo.Resume(decisionsOf(t, h), rowsOf(rows...), nil)
	require.NoError(t, err)
	want(again)
}
