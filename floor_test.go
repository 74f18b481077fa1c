package convo_test

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// floorIDs returns the IDs of the exchanges that no compaction may take.
func floorIDs(s *convo.Snapshot) (ids []convo.ID) {
	for x := range s.Exchanges() {
		if x.Floor {
			ids = append(ids, x.IDs()...)
		}
	}
	return ids
}

// A round of tool calls is floor until an assistant message follows, with the
// user messages of its turn, and whatever users say in between.
func TestFloor_UnansweredRound(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	opts := &convo.Options{Roles: convo.Relaxed()}
	h := historyOf(t, opts, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.User("4"), convo.Assistant("5"),
		convo.Assistant("", c, d), convo.Result(c, "7"), convo.Result(d, "8"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.User("9"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8, 9}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.User("10"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8, 9, 10}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.Assistant("11"))
	assert.Equal(t, []convo.ID{9, 10, 11}, floorIDs(h.Snapshot()))
}

// A user message behind large results does not let them vanish before the model
// has seen them.
func TestFloor_UserBehindLargeResults(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 8000}},
		convo.User("first"), convo.Assistant(strings.Repeat("an old answer ", 1600)),
		convo.User("read both"), convo.Assistant("", c, d),
		convo.Result(c, strings.Repeat("left ", 1400)), convo.Result(d, strings.Repeat("right ", 1400)), convo.User("and be quick"))
	s, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{1, 3, 4, 5, 6, 7}, idsOf(s))
}

// What a pin keeps weighs what it was measured to weigh, however much of the rest
// leaves.
func TestFloor_PinnedAndMeasured(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 8000}, MaxResult: -1}, convo.System("guide"))
	report := func() {
		s := h.Snapshot()
		require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens() * 12 / 10}))
	}
	require.NoError(t, h.Pin(mustAppend(t, h, convo.User(strings.Repeat("word ", 80)))))
	report()
	mustAppend(t, h, convo.Assistant(strings.Repeat("ans ", 50)), convo.User(strings.Repeat("word ", 50)))
	report()
	mustAppend(t, h, convo.Assistant(strings.Repeat("ans ", 1200)))
	c := callOf("c")
	mustAppend(t, h, convo.User(strings.Repeat("word ", 1500)), convo.Assistant("fine"), convo.User("go"),
		convo.Assistant("", c), convo.Result(c, strings.Repeat("data ", 3909)))
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Fits)
}

// What the last report measured of the floor gets no margin, even while other messages
// that it did not measure are in the view.
func TestFloor_MeasuredNextToFresh(t *testing.T) {
	h := historyOf(t, bare())
	require.NoError(t, h.Pin(mustAppend(t, h, convo.User(strings.Repeat("p", 1000)))))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 1000}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 2000)), convo.User("next"))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 1010, Reserve: -1}))
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.LessOrEqual(t, h.Status().Upper, 1010)
}

// With messages in the queue, Rewind appends them in the place of what it takes
// back; so the error says to call Unqueue first, and that leads on.
func TestFloor_RemedyWithAQueue(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000}}, convo.User("hello"), convo.Assistant("hi"))
	mustAppend(t, h, convo.User(strings.Repeat("long ", 2000)))
	require.NoError(t, h.Queue(convo.User("and be quick")))
	_, _, err := h.Prepare(t.Context())
	require.ErrorContains(t, err, "the newest user message holds 1,8")
	require.ErrorContains(t, err, ": call Unqueue, then Rewind takes it back;")
	assert.Len(t, h.Unqueue(), 1)
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	assert.Equal(t, 1, taken)
	mustAppend(t, h, convo.User("shorter"))
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
}

// Where an edit has dropped something of the newest turn, Rewind takes its newest
// exchange back, also after a restart.
func TestFloor_RemedyInOneTurn(t *testing.T) {
	opts := &convo.Options{Limits: convo.Limits{Window: 1000}}
	h := historyOf(t, opts, convo.User("go "+strings.Repeat("far ", 100)))
	round := func(arguments string) {
		c := convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":"` + arguments + `"}`}
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("word ", 150)))
	}
	for range 10 {
		round("")
		requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
	}
	sent, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	round(strings.Repeat("word ", 2000))
	f, err := convo.Restore(h.Snapshot(), opts)
	require.NoError(t, err)
	for _, h = range []*convo.History{h, f} {
		_, _, err = h.Prepare(t.Context())
		require.ErrorContains(t, err, ": the arguments of the newest calls hold 1,754: Rewind takes them back; the newest assistant message and its results hold 1")
		require.ErrorContains(t, err, ": that takes it back too; other user messages of the newest turn hold 1")
		require.ErrorContains(t, err, ": Rewind(1), called "+itoa((sent.Len()+1)/2)+" times more, takes them back; or raise")
		floor, _ := errors.AsType[*convo.FloorError](err)
		taken, err := h.Rewind(1)
		require.NoError(t, err)
		assert.Equal(t, 1, taken)
		assert.Equal(t, idsOf(sent), idsOf(h.Snapshot()))
		again, err := convo.Restore(h.Snapshot(), opts)
		require.NoError(t, err)
		round("")
		_, _, err = h.Prepare(t.Context())
		require.NoError(t, err)
		for range floor.RewindUsers - 1 {
			assert.Positive(t, again.Len())
			rewind(t, again)
		}
		assert.Zero(t, again.Len())
	}
}

// The remedies of an error take back what they name and no more, when they are
// followed one after the other.
func TestFloor_RemediesInOrder(t *testing.T) {
	c := convo.ToolCall{ID: "c", Name: "f", Arguments: `{"x":"` + strings.Repeat("word ", 1500) + `"}`}
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 1000}}, convo.User("hello"), convo.Assistant("hi"),
		convo.User("read it"), convo.Assistant("", c), convo.Result(c, "done"), convo.User(strings.Repeat("long ", 2000)))
	_, _, err := h.Prepare(t.Context())
	require.ErrorContains(t, err, ": Rewind takes it back; the arguments of unanswered calls hold ")
	require.ErrorContains(t, err, ": Rewind again takes them back;")
	rewind(t, h)
	assert.Equal(t, 5, h.Len())
	rewind(t, h)
	assert.Equal(t, 2, h.Len())
	mustAppend(t, h, convo.User("shorter"))
	_, _, err = h.Prepare(t.Context())
	require.NoError(t, err)
}

// What the floor weighs, and how much of it was measured, is kept up to date without
// looking at all entries, whatever is done to a History.
func TestFloor_WeightOfRandomHistories(t *testing.T) {
	seeds := long.Or(100, 300)
	measuredPins, edits, reverts := 0, 0, 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 21))
		opts := &convo.Options{Roles: convo.Relaxed(), Limits: convo.Limits{Window: 1500}, MaxResult: -1, Logger: slog.New(slog.DiscardHandler)}
		if seed%3 == 0 {
			opts.Pin = func(m convo.Message) bool { return r.IntN(2) == 0 }
		}
		store := new(convotest.MemStore)
		h, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		other, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		snaps, reports := []*convo.Snapshot{h.Snapshot()}, []convo.Report{}
		word := func() string { return strings.Repeat("word ", 1+r.IntN(60)) }
		some := func() convo.ID {
			if ids := idsOf(h.Snapshot()); len(ids) > 0 {
				return ids[r.IntN(len(ids))]
			}
			return 0
		}
		for step := range 60 {
			op := r.IntN(18)
			switch op {
			case 0, 1:
				h.Append(convo.User(word()))
			case 2, 3:
				h.Append(convo.Assistant(word()))
			case 4, 5:
				c, d := callOf("c"), callOf("d")
				msgs := []convo.Message{convo.Assistant("", c, d), convo.Result(c, word()), convo.Result(d, word())}
				h.Append(msgs[:1+r.IntN(3)]...)
			case 6:
				h.AnswerOpenCalls("")
			case 7:
				h.Pin(some(), some())
			case 8:
				h.Unpin(some())
			case 9, 10:
				at := snaps[max(len(snaps)-1-r.IntN(3), 0)]
				h.RecordUsage(at, convo.Usage{Input: at.Tokens() + at.Tokens()*r.IntN(40)/100})
			case 11:
				if rep, _ := h.Compact(t.Context(), ""); rep.Outcome == convo.OutcomeApplied {
					reports = append(reports, rep)
					edits++
				}
			case 12:
				h.SplicePrefix(h.Snapshot(), r.IntN(h.Len()+1), []string{"", "so far"}[r.IntN(2)])
			case 13:
				h.Rewind(r.IntN(2))
			case 14:
				if h.Rollback(snaps[r.IntN(len(snaps))]) == nil {
					reverts++
				}
			case 15:
				if len(reports) > 0 && h.Undo(reports[len(reports)-1]) == nil {
					reverts++
				}
			case 16:
				h.SetEphemeral([]convo.Message{convo.User("a fact")}[:r.IntN(2)]...)
				h.SetModel([]string{"", "small", "large"}[r.IntN(3)], convo.Limits{})
				if r.IntN(4) == 0 {
					h.SetSystem(convo.System(word()))
				}
			case 17:
				switch r.IntN(3) {
				case 0:
					other.Reload(t.Context())
					other.Append(convo.User(word()), convo.Assistant(word()))
					other.Save(t.Context())
				case 1:
					if h.Save(t.Context()) != nil {
						h.Reload(t.Context())
					}
				case 2:
					if h.Save(t.Context()) == nil {
						h, err = convo.Open(t.Context(), store, "k", opts)
						require.NoError(t, err)
						snaps, reports = nil, nil
					}
				}
			}
			snaps = append(snaps, h.Snapshot())
			total, measured, wantTotal, wantMeasured := convo.FloorOf(h)
			require.Equal(t, wantTotal, total, "seed %d, step %d, operation %d", seed, step, op)
			require.Equal(t, wantMeasured, measured, "seed %d, step %d, operation %d", seed, step, op)
			if measured > 0 && len(h.Snapshot().Pinned()) > 0 {
				measuredPins++
			}
		}
	}
	t.Logf("%d states with pins and something measured, %d edits, %d reverts", measuredPins, edits, reverts)
	require.Greater(t, min(measuredPins/10, edits, reverts), seeds/3, "the cases are too easy")
}
