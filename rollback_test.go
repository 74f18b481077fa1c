package convo_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
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
	r := requireFailed(t)(h.CompactIfNeeded(t.Context()))
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
