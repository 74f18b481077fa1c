package convo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// The tests of this file are named for bugs of five other systems, S1 to S5,
// and reproduce what led to them.

// hardTalk is a conversation of so many turns with what is hard in tool
// rounds: ids that come again in each, parallel calls answered in reverse,
// empty results, errors, signed reasoning. The last user message is not
// answered yet.
func hardTalk(t testing.TB, opts *convo.Options, turns int) *convo.History {
	t.Helper()
	h := historyOf(t, opts, convo.System("guide"), convo.System("rules"))
	c, d := callOf("call_0"), callOf("call_1")
	for i := range turns {
		mustAppend(t, h, convo.User("task "+itoa(i)))
		for j := range i % 4 {
			thought := convo.Reasoning{Text: "think " + itoa(i), Signature: "sig " + itoa(j)}
			calls := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{thought, c, d}}
			mustAppend(t, h, calls, convo.Result(d, ""), convo.Result(c, strings.Repeat("x", 100+10*i)))
			mustAppend(t, h, convo.Assistant("", c), convo.ResultError(c, errors.New("no route")))
		}
		mustAppend(t, h, convo.Assistant("answer "+itoa(i)))
	}
	mustAppend(t, h, convo.User("now this"))
	return h
}

// chatOf is a conversation of n user messages, each answered but the last, of
// so many bytes each.
func chatOf(t testing.TB, opts *convo.Options, n, size int) *convo.History {
	t.Helper()
	h := historyOf(t, opts)
	for range n - 1 {
		mustAppend(t, h, convo.User(strings.Repeat("u", size)), convo.Assistant(strings.Repeat("a", size)))
	}
	mustAppend(t, h, convo.User(strings.Repeat("u", size)))
	return h
}

// Nothing was reserved for what was appended, and a history far too large was
// left alone.
func TestSeeds_S1_1_TruncationGoesByTheHistory(t *testing.T) {
	h := chatOf(t, windowOf(10_000, convo.Truncate{}), 200, 1000)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.LessOrEqual(t, h.Status().Upper, h.Status().Low)

	pool := convo.NewBudget(10_000)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h = chatOf(t, opts, 200, 1000)
	_, r, err = h.Fit(t.Context(), 1000)
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, h.Tokens().Upper+1000, pool.Used())
	assert.LessOrEqual(t, pool.Used(), 10_000)
}

// Each message removed gave back tokens that others had reserved.
func TestSeeds_S1_2_OthersKeepTheirReservations(t *testing.T) {
	pool := convo.NewBudget(10_000)
	others, err := pool.Reserve(9000)
	require.NoError(t, err)
	opts := windowOf(0, convo.Truncate{})
	opts.Budget = pool
	h := chatOf(t, opts, 20, 100)
	require.Greater(t, pool.Used(), pool.Total(), "overdrawn")

	res, r, err := h.Fit(t.Context(), 100)
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Equal(t, 9000+100+h.Tokens().Upper, pool.Used())
	_, err = h.SplicePrefix(h.Snapshot(), h.Len(), "")
	require.NoError(t, err)
	assert.Equal(t, 9000+100+h.Tokens().Upper, pool.Used())
	require.NoError(t, h.Close())
	res.Release()
	res.Release()
	assert.Equal(t, others.Tokens(), pool.Used())
}

// More than there is at all: everything was deleted, and nothing reserved.
func TestSeeds_S1_3_MoreThanTheTotalDeletesNothing(t *testing.T) {
	for _, withPool := range []bool{false, true} {
		opts := windowOf(50_000, convo.Truncate{})
		if withPool {
			opts = windowOf(0, convo.Truncate{})
			opts.Budget = convo.NewBudget(50_000)
		}
		h := chatOf(t, opts, 20, 1000)
		unchanged(t, h, func() {
			res, r, err := h.Fit(t.Context(), 50_001)
			var floor *convo.FloorError
			require.ErrorAs(t, err, &floor)
			assert.Nil(t, res)
			assert.Equal(t, convo.Failed, r.Outcome)
		})
		assert.Equal(t, 39, h.Len())
	}
}

// Room was looked for before each removal, and not after the last one.
func TestSeeds_S1_4_TheLastRemovalCounts(t *testing.T) {
	h := chatOf(t, windowOf(400, convo.Truncate{}), 2, 100) // the newest weighs 113
	unchanged(t, h, func() {
		_, _, err := h.Fit(t.Context(), 400-113+1)
		require.Error(t, err)
	})
	res, _, err := h.Fit(t.Context(), 400-113)
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{3}, idsOf(h.Snapshot()), "all that could go went")
	assert.Equal(t, 287, res.Tokens())
	assert.Equal(t, 113, h.Status().Limit)
}

// 0 removed meant that it fits or that it cannot fit, and each call reserved
// without telling.
func TestSeeds_S1_5_TheAnswerIsPlain(t *testing.T) {
	for _, tt := range []struct {
		name     string
		n        int
		outcome  convo.Outcome
		reserved bool
	}{
		{"it just fits", 2862, convo.NotNeeded, true},
		{"room was made", 2863, convo.Applied, true},
		{"it cannot fit", 4900, convo.Failed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := chatOf(t, windowOf(5000, convo.Truncate{}), 10, 100)
			res, r, err := h.Fit(t.Context(), tt.n)
			assert.Equal(t, tt.outcome, r.Outcome)
			assert.Equal(t, tt.reserved, res != nil)
			assert.Equal(t, tt.reserved, err == nil)
			assert.Equal(t, tt.outcome == convo.Applied, len(r.Dropped) > 0)
		})
	}

	h := chatOf(t, windowOf(5000, convo.Truncate{}), 2, 100)
	var held []*convo.Reservation
	for range 5 {
		res, _, err := h.Fit(t.Context(), 100)
		require.NoError(t, err)
		held = append(held, res)
	}
	assert.Equal(t, 4500, h.Status().Limit)
	for _, res := range held {
		assert.Equal(t, 100, res.Tokens())
		res.Release()
	}
	assert.Equal(t, 5000, h.Status().Limit)
}

// What truncation left began with an assistant or a tool message, was refused
// by the library's own append, and held halves of tool rounds.
func TestSeeds_S1_6_7_RolesAndPairsAfterEveryCut(t *testing.T) {
	for name, c := range plainStrategies() {
		t.Run(name, func(t *testing.T) {
			whole := hardTalk(t, windowOf(0, c), 16)
			applied := 0
			for window := 300; window < 9000; window += 150 {
				opts := windowOf(window, c)
				h, err := convo.Restore(whole.Snapshot(), opts)
				require.NoError(t, err)
				r, err := h.CompactIfNeeded(t.Context())
				if err != nil {
					assert.False(t, r.Fits)
					assert.Equal(t, whole.Len(), h.Len())
					continue
				}
				if r.Outcome == convo.Applied {
					applied++
				}
				s := h.Snapshot()
				checkPairs(t, s)
				again := historyOf(t, nil)
				for _, e := range s.All() { // as a new conversation, under Strict
					if _, err := again.Append(e.Message); err != nil {
						t.Fatalf("window %d: %v leaves %v", window, err, idsOf(s))
					}
				}
				first, _ := s.At(s.Len() - 1)
				assert.Equal(t, "now this", first.Message.Text(), "the newest user message")
			}
			assert.Positive(t, applied)
		})
	}
}

// Removal from the front, one at a time, took four times as long for twice as
// many. Nothing is counted again, and what is allocated grows as the list does.
func TestSeeds_S1_8_TruncationIsLinear(t *testing.T) {
	bytesFor := func(n int) float64 {
		counted := 0
		opts := windowOf(n, convo.Truncate{})
		opts.Tokenizer = convo.TokenizerFunc(func(s string) int { counted++; return len(s) })
		h := chatOf(t, opts, n, 10)
		counted = 0
		_, bytes := measureAllocs(1, func() {
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			require.Greater(t, len(r.Dropped), n)
		})
		assert.Zero(t, counted)
		return bytes
	}
	small, large := bytesFor(5000), bytesFor(40_000)
	assert.Less(t, large, 12*small)
}

// While room was made, somebody else took it: the caller went on deleting.
func TestSeeds_S1_9_RoomTakenMeanwhile(t *testing.T) {
	pool := convo.NewBudget(5000)
	var other *convo.Reservation
	opts := windowOf(0, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if other == nil {
			var err error
			other, err = pool.Reserve(pool.Free())
			require.NoError(t, err)
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	opts.Budget = pool
	h := toolTurn(t, opts, 20)
	unchanged(t, h, func() {
		res, _, err := h.Fit(t.Context(), 3000)
		require.ErrorIs(t, err, convo.ErrBudget)
		assert.Nil(t, res)
	})
	assert.Equal(t, other.Tokens()+h.Tokens().Upper, pool.Used())
	other.Release()
	res, _, err := h.Fit(t.Context(), 3000)
	require.NoError(t, err)
	assert.Equal(t, 3000+h.Tokens().Upper, pool.Used())
	res.Release()
}

// The compaction lands while the request is on its way; the usage of that
// request then made the next one compact again, and the one after it.
func TestSeeds_S2_B1_NoSecondCompactionByStaleUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			calls++
			time.Sleep(time.Minute)
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3000, 2000, 1000
		h := toolTurn(t, opts, 20)
		for range 5 {
			mustAppend(t, h, convo.User("go on"))
			sent, _, err := h.Prepare(t.Context())
			require.NoError(t, err)
			h.CompactInBackground(t.Context())
			time.Sleep(2 * time.Minute) // until the answer comes
			require.NoError(t, h.RecordUsage(sent, convo.Usage{Input: sent.Tokens()}))
			mustAppend(t, h, convo.Assistant("done"))
			assert.Less(t, h.Status().Upper, 1200)
		}
		assert.Equal(t, 1, calls)
	})
}

// Who waited for a flight and gave up left the slot free, and a second flight
// could begin beside the first.
func TestSeeds_S2_B3_WaiterDoesNotFreeTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, running := 0, 0
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			calls++
			running++
			assert.Equal(t, 1, running)
			time.Sleep(time.Hour)
			running--
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.Soft, opts.Limits.Low = 2000, 1000
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := h.Wait(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = h.Compact(ctx, "")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
			assert.False(t, h.CompactInBackground(t.Context()), "it still flies")
		}
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.Applied, r.Outcome)
		assert.Equal(t, 1, calls)
	})
}

// A compaction by hand beside one in the background cut by a count of an older
// list, and took all that was left.
func TestSeeds_S2_B5_ByHandWhileOneFlies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		gone := map[convo.ID]int{}
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Minute)
			return convo.Summary{Text: req.Previous + "+"}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.Soft, opts.Limits.Low = 2000, 1200
		opts.OnCompaction = func(r convo.Report) {
			mu.Lock()
			defer mu.Unlock()
			for _, id := range r.Summarised {
				gone[id]++
			}
			assert.Empty(t, r.Dropped)
		}
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() {
			r, err := h.Compact(t.Context(), "the map")
			assert.NoError(t, err)
			assert.Equal(t, convo.Applied, r.Outcome)
		})
		synctest.Wait()
		last := mustAppend(t, h, convo.User("meanwhile"), convo.Assistant("yes"))
		wg.Wait()
		_, err := h.Wait(t.Context())
		require.NoError(t, err)
		s := h.Snapshot()
		for id := convo.ID(1); id <= last; id++ {
			want := 1
			if _, there := s.Find(id); there {
				want = 0
			}
			assert.Equal(t, want, gone[id], "entry %d", id)
		}
		sum, _ := s.Summary()
		assert.Equal(t, "++", sum.Text, "the second updates the first")
		texts := textsOf(s)
		assert.Equal(t, []string{"meanwhile", "yes"}, texts[len(texts)-2:])
	})
}

// A long second turn was never cut: each step summarised the summary anew, and
// the request stayed as large as it was.
func TestSeeds_S2_B6_LongSecondTurn(t *testing.T) {
	for name, c := range map[string]func(*recorder) convo.CompactionStrategy{
		"summary": func(rec *recorder) convo.CompactionStrategy {
			return convo.Summarize{With: rec, MaxTokens: 500, Window: -1}
		},
		"truncate": func(*recorder) convo.CompactionStrategy { return convo.Truncate{} },
		"default":  func(*recorder) convo.CompactionStrategy { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			rec := new(recorder)
			h := historyOf(t, windowOf(50_000, c(rec)), convo.User("hi"), convo.Assistant("hello"), convo.User("do it all"))
			applied := 0
			prepare := func() {
				s, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				if r.Outcome == convo.Applied {
					applied++
				}
				require.LessOrEqual(t, h.Status().Upper, 50_000)
				require.Contains(t, textsOf(s), "do it all")
			}
			for i := range 200 {
				call := callOf("c" + itoa(i))
				mustAppend(t, h, convo.Assistant("", call))
				prepare()
				mustAppend(t, h, convo.Result(call, strings.Repeat("x", 1000)))
				prepare()
			}
			assert.Positive(t, applied)
			assert.LessOrEqual(t, applied, 10, "of 225,000 tokens, 25,000 go each time")
			for _, req := range rec.requests {
				assert.Greater(t, len(req.Messages), 20)
			}
		})
	}
}

// Results cleared in a copy of the list, written back over a splice that came
// in between: what had gone was there again.
func TestSeeds_S2_B7_ClearDoesNotUndoASplice(t *testing.T) {
	h := toolTurn(t, bare(), 20)
	at := h.Snapshot()
	_, err := h.SplicePrefix(at, 12, "what went")
	require.NoError(t, err)
	last := mustAppend(t, h, convo.User("meanwhile"))
	before := idsOf(h.Snapshot())

	_, err = h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 20}}})
	require.NoError(t, err)
	assert.Equal(t, before, idsOf(h.Snapshot()))
	assert.Equal(t, last, before[len(before)-1])
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "what went", sum.Text)
	e, _ := h.Snapshot().Find(20)
	assert.True(t, e.Message.ToolResults()[0].Cleared)

	unchanged(t, h, func() {
		_, err := h.Apply(at, convo.Edit{Clear: []convo.Clear{{ID: 4}, {ID: 22}}})
		require.ErrorIs(t, err, convo.ErrStale, "4 has gone")
	})
}

// Above the limit the request waited for the flight and went out as it was,
// even when the flight had failed.
func TestSeeds_S2_WaitsForTheFlightAndLooksAgain(t *testing.T) {
	for _, fallback := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			var c convo.CompactionStrategy = convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				calls++
				time.Sleep(time.Minute)
				return convo.Summary{}, errors.New("model is down")
			}), Window: -1}
			if fallback {
				c = convo.Chain(c, convo.Truncate{})
			}
			opts := windowOf(3000, c)
			opts.Limits.Soft, opts.Limits.Low = 2000, 1000
			h := toolTurn(t, opts, 20)
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("a", 700)), convo.User("so")) // above the limit
			_, r, err := h.Prepare(t.Context())
			assert.Equal(t, fallback, r.Fits)
			assert.Equal(t, fallback, h.Status().Upper <= 3000)
			if fallback {
				require.NoError(t, err)
				assert.Equal(t, convo.Applied, r.Outcome)
			} else {
				require.ErrorIs(t, err, convo.ErrBreaker)
			}
			assert.Equal(t, 1, calls, "not asked again right after it failed")
			_, err = h.Wait(t.Context())
			require.ErrorContains(t, err, "model is down")
		})
	}
}

// The provider gives each round the same call id: a pin by id held them all.
func TestSeeds_S3_PinOfAReusedID(t *testing.T) {
	h := historyOf(t, bare(), convo.User("u"))
	c := callOf("call_0")
	for range 5 {
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, "r"))
	}
	require.NoError(t, h.Pin(7))
	assert.Equal(t, []convo.ID{6, 7}, h.Pinned())
	_, err := h.SplicePrefix(h.Snapshot(), 100, "s")
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{1, 6, 7, 10, 11}, idsOf(h.Snapshot()))
}

// A strategy was not told how far to go, and a cut of a history twice too
// large left a handful of messages.
func TestSeeds_S3_CutsAsFarAsTheGoal(t *testing.T) {
	var goal convo.Goal
	own := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		goal = g
		var e convo.Edit
		left := s.Tokens()
		for x := range s.Exchanges() {
			if !x.Floor && left > g.Target {
				e.Drop = append(e.Drop, x.IDs()...)
				left -= x.Tokens
			}
		}
		return e, nil
	})
	for name, c := range map[string]convo.CompactionStrategy{"own": own, "truncate": convo.Truncate{}} {
		h := toolTurn(t, windowOf(20_000, c), 200)
		_, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.LessOrEqual(t, h.Status().Upper, 10_000, name)
		assert.Greater(t, h.Status().Upper, 10_000-130, "%s goes further than the next exchange", name)
	}
	assert.Equal(t, convo.ReasonHigh, goal.Reason)
	assert.Equal(t, 10_000*8/9, goal.Target)
	assert.Positive(t, goal.MinFree)
	assert.Equal(t, 3, goal.Count("abc"))
}

// A first report on a few bytes, most of it tool schemas, made a ratio that
// held everything after it for a hundred times too large; a later small one
// counted as much as a large one.
func TestSeeds_S3_CalibrationIsNotFooled(t *testing.T) {
	h := historyOf(t, bare(), convo.User(strings.Repeat("u", 20)))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 3000}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("a", 100_000)))
	assert.Equal(t, 103_000-20+20, h.Tokens().Tokens)
	at := h.Snapshot()
	for _, input := range []int{0, 0, 0} { // no figure, not a ratio of 0
		require.NoError(t, h.RecordUsage(at, convo.Usage{Input: input}))
	}
	assert.Equal(t, 103_000, h.Tokens().Tokens)
	require.NoError(t, h.RecordUsage(at, convo.Usage{Input: 53_000}))
	assert.Equal(t, 53_000, h.Tokens().Tokens)
	mustAppend(t, h, convo.User("hi"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 53_007}))
	mustAppend(t, h, convo.Assistant(strings.Repeat("b", 100_000)))
	assert.InDelta(t, 103_000, h.Tokens().Tokens, 3500, "two bytes of seven tokens change little")
}

// Who had spoken was forgotten on a reload.
func TestSeeds_S4_SendersSurvive(t *testing.T) {
	say := func(role convo.Role, who string) convo.Message {
		return convo.Message{Role: role, Author: who, Parts: []convo.Part{convo.Text("hello")}}
	}
	h := historyOf(t, nil, say(convo.RoleUser, "Ada"), say(convo.RoleAssistant, "guest"))
	again := reload(t, h, nil)
	assert.Equal(t, h.Snapshot().Messages(), again.Snapshot().Messages())
	for i, want := range []string{"Ada", "guest"} {
		e, _ := again.Snapshot().At(i)
		assert.Equal(t, want, e.Message.Author)
	}
}

// Injected messages were counted among the real ones: when fewer came than
// went, real messages were not saved, and a run that failed was a panic.
func TestSeeds_S4_C1_EphemeralMessagesHideNone(t *testing.T) {
	for _, tt := range []struct{ before, now int }{{3, 1}, {2, 0}, {0, 3}, {5, 5}} {
		t.Run(fmt.Sprintf("%d then %d", tt.before, tt.now), func(t *testing.T) {
			inject := func(h *convo.History, n int) {
				var set []convo.Message
				for i := range n {
					set = append(set, convo.User("recalled "+itoa(i)))
				}
				require.NoError(t, h.SetEphemeral(set...))
			}
			h := historyOf(t, nil)
			inject(h, tt.before)
			mustAppend(t, h, convo.User("first"), convo.Assistant("one"))
			run := h.Snapshot()
			inject(h, tt.now)
			mustAppend(t, h, convo.User("second"))
			failed := h.Snapshot()
			mustAppend(t, h, convo.Assistant("two"))

			saved := textsOf(reload(t, h, nil).Snapshot())
			assert.Equal(t, []string{"first", "one", "second", "two"}, saved)
			assert.Len(t, h.Snapshot().Messages(), 4+tt.now)
			require.NoError(t, h.Rollback(failed))
			require.NoError(t, h.Rollback(run))
			assert.Equal(t, []string{"first", "one"}, textsOf(reload(t, h, nil).Snapshot()))
		})
	}
}
