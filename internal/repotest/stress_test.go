package repotest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/modeltest"
)

// acks holds the texts of messages whose Append returned nil, by the last ID of
// their batch.
type acks struct {
	mu   sync.Mutex
	text map[convo.ID]string
}

func (a *acks) add(id convo.ID, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text[id] = text
}

// gone counts how often reports named each ID.
type gone struct {
	mu  sync.Mutex
	ids map[convo.ID]int
}

func (g *gone) report(r convo.Report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range slices.Concat(r.Dropped, r.Summarised) {
		g.ids[id]++
	}
}

// appendOne appends a user message, or a user message with a whole tool round.
func appendOne(h *convo.History, text string, round bool) (convo.ID, error) {
	if !round {
		return h.Append(convo.User(text))
	}
	call := convo.ToolCall{ID: "c1", Name: "run", Arguments: `{}`}
	return h.Append(convo.User(text+" round"), convo.Assistant("", call), convo.Result(call, text))
}

// appendAll starts n goroutines that append so many messages each, every so many of them
// with a tool round, and do something after each append.
func (a *acks) appendAll(t *testing.T, wg *sync.WaitGroup, h *convo.History, n, each, rounds int, then func(i int) error) {
	for g := range n {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d/%d", g, i)
				id, err := appendOne(h, text, i%rounds == 0)
				if err == nil {
					a.add(id, text)
					err = then(i)
				}
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
}

// While goroutines append and splice, no message is lost: each is in the view as
// it was, once and in order, or named by a report.
func TestTorture_NoMessageIsLost(t *testing.T) {
	lost := &gone{ids: map[convo.ID]int{}}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed(), OnCompaction: lost.report})
	done := &acks{text: map[convo.ID]string{}}

	const appenders, each = 4, 1500
	var appended atomic.Int32
	var wg sync.WaitGroup
	done.appendAll(t, &wg, h, appenders, each, 5, func(int) error { appended.Add(1); return nil })
	for range 2 {
		wg.Go(func() {
			for last := false; !last; {
				last = appended.Load() == appenders*each || t.Failed() // once more when all is there
				at := h.Snapshot()
				_, err := h.SplicePrefix(at, at.Len()/2, "summary")
				if err != nil {
					assert.ErrorIs(t, err, convo.ErrStale)
				}
			}
		})
	}
	wg.Wait()
	assert.Len(t, done.text, appenders*each)
	checkNothingLost(t, h.Snapshot(), done, lost)
}

// checkNothingLost checks that each message is in the view as it was, once and
// in order, or was reported once as part of the summary.
func checkNothingLost(t *testing.T, s *convo.Snapshot, done *acks, lost *gone) {
	t.Helper()
	checkPairs(t, s)
	there := map[convo.ID]string{}
	for _, e := range s.All() {
		there[e.ID] = e.Message.Text()
	}
	for id, text := range done.text {
		got, present := there[id]
		if present == (lost.ids[id] == 1) || lost.ids[id] > 1 {
			t.Errorf("entry %d: present %v, reported gone %d times", id, present, lost.ids[id])
		}
		if present && got != text {
			t.Errorf("entry %d is %q, want %q", id, got, text)
		}
	}
	sum, ok := s.Summary()
	require.True(t, ok)
	covered := map[convo.ID]bool{}
	for _, r := range sum.Covers {
		for id := r.First; id <= r.Last; id++ {
			covered[id] = true
		}
	}
	for id := range lost.ids {
		if !covered[id] {
			t.Errorf("entry %d went and the summary does not cover it", id)
		}
	}
}

// Goroutines append while compactions run in the background with slow summaries,
// and in the foreground when the window is full.
func TestTorture_Background(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Millisecond, time.Hour} { // with a TTL, edits wait
		t.Run(ttl.String(), func(t *testing.T) { tortureBackground(t, ttl) })
	}
}

func tortureBackground(t *testing.T, ttl time.Duration) {
	lost := &gone{ids: map[convo.ID]int{}}
	var applied atomic.Int64
	with := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		return convotest.Slow{For: 2 * time.Millisecond, With: &convotest.Flaky{Every: 5}}.Summarize(ctx, req)
	})
	h := historyOf(t, &convo.Options{
		Roles:    convo.Relaxed(),
		CacheTTL: ttl,
		Limits:   convo.Limits{Window: 60_000, Reserve: -1, High: 50_000, Low: 2_000, Soft: 5_000},
		Strategy: convo.Summarize{With: with, Window: -1},
		OnCompaction: func(r convo.Report) {
			if lost.report(r); r.Outcome == convo.OutcomeApplied {
				applied.Add(1)
			}
		},
	})
	done := &acks{text: map[convo.ID]string{}}

	const appenders = 4
	each := long.Or(2_000, 10_000)
	var wg sync.WaitGroup
	done.appendAll(t, &wg, h, appenders, each, 5, func(i int) error {
		if i%10 == 0 {
			h.CompactInBackground(t.Context())
		}
		_, _, err := h.Prepare(t.Context())
		return err
	})
	wg.Wait()
	_, _ = h.Wait(t.Context())
	t.Logf("%d appends, %d compactions, %d entries left", len(done.text), applied.Load(), h.Len())
	assert.Len(t, done.text, appenders*each)
	assert.Positive(t, applied.Load())
	checkNothingLost(t, h.Snapshot(), done, lost)
	require.NoError(t, h.Close())
}

// All operations run at once. Snapshots never change, views stay valid, and what
// is left in the end is what was acknowledged and not taken.
func TestTorture_Everything(t *testing.T) {
	lost := &gone{ids: map[convo.ID]int{}}
	pool := convo.NewBudget(math.MaxInt32)
	h := historyOf(t, &convo.Options{
		Roles:        convo.Relaxed(),
		Limits:       convo.Limits{Window: 4000, Reserve: -1},
		CacheTTL:     time.Hour,
		Strategy:     convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Summarize{With: &convotest.Flaky{}, Window: -1}, convo.Truncate{}),
		OnCompaction: lost.report,
		Budget:       pool,
	})
	done := &acks{text: map[convo.ID]string{}}
	const each = 450

	var wg sync.WaitGroup
	done.appendAll(t, &wg, h, 3, each, 3, func(int) error { return nil })
	worker := func(seed uint64, step func(rng *rand.Rand)) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 9))
			for range each / 3 {
				step(rng)
			}
		})
	}
	worker(1, func(rng *rand.Rand) { // pins
		at := h.Snapshot()
		if at.Len() == 0 {
			return
		}
		e, _ := at.At(rng.IntN(at.Len()))
		if err := h.Pin(e.ID); err != nil {
			assert.ErrorIs(t, err, convo.ErrNotFound)
		}
		if rng.IntN(2) == 0 {
			if err := h.Unpin(e.ID); err != nil {
				assert.ErrorIs(t, err, convo.ErrNotFound)
			}
		}
	})
	worker(2, func(rng *rand.Rand) { // splices
		at := h.Snapshot()
		if _, err := h.SplicePrefix(at, rng.IntN(at.Len()+1), "summary"); err != nil {
			assert.ErrorIs(t, err, convo.ErrStale)
		}
	})
	worker(3, func(rng *rand.Rand) { // rollbacks
		if rng.IntN(3) > 0 {
			if _, err := h.Rewind(rng.IntN(2)); err != nil {
				t.Errorf("rewind: %v", err)
			}
			return
		}
		at := h.Snapshot()
		if err := h.Rollback(at); err != nil {
			assert.ErrorIs(t, err, convo.ErrStale)
		}
	})
	worker(4, func(rng *rand.Rand) { // the rest
		at := h.Snapshot()
		assert.NoError(t, h.RecordUsage(at, convo.Usage{Input: rng.IntN(10_000)}))
		assert.NoError(t, h.SetSystem(convo.System("s")))
		assert.NoError(t, h.SetEphemeral(convo.User("e")))
		_, err := h.AnswerOpenCalls("")
		assert.NoError(t, err)
		_ = h.Status()
	})
	worker(5, func(rng *rand.Rand) { // compactions
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(2000))*time.Microsecond)
		defer cancel()
		var r convo.Report
		var err error
		switch rng.IntN(6) {
		case 0:
			h.CompactInBackground(ctx)
			// OutcomeNotNeeded: there was none to wait for, whatever was reported since.
			if r, err = h.Wait(ctx); err == nil && !r.Fits && r.Cause == nil && r.Outcome != convo.OutcomeApplied && r.Outcome != convo.OutcomeNotNeeded {
				t.Errorf("does not fit, and no cause: %+v", r)
			}
			return
		case 1:
			r, err = h.Compact(ctx, "")
			if done := r.Outcome == convo.OutcomeApplied || r.Outcome == convo.OutcomeNotNeeded; done != (err == nil) {
				t.Errorf("outcome %v beside %v", r.Outcome, err)
			}
			return
		case 2:
			var res *convo.Reservation
			res, r, err = h.MakeRoom(ctx, 1000)
			res.Release()
		case 3:
			_, _, _ = h.Recover(ctx, h.Snapshot(), errors.New("prompt is too long"))
			return
		default:
			_, r, err = h.Prepare(ctx)
		}
		if !r.Fits && err == nil {
			t.Errorf("does not fit, and no error: %+v", r)
		}
	})
	worker(6, func(*rand.Rand) { // readers
		s := h.Snapshot()
		before := modeltest.Print(s)
		checkPairs(t, s)
		if after := modeltest.Print(s); after != before {
			t.Errorf("snapshot %d changed", s.Version())
		}
	})
	wg.Wait()

	s := h.Snapshot()
	checkPairs(t, s)
	for _, e := range s.All() {
		if want, ok := done.text[e.ID]; ok && e.Message.Text() != want {
			t.Errorf("entry %d is %q, want %q", e.ID, e.Message.Text(), want)
		}
		if lost.ids[e.ID] > 0 && e.Message.Role != convo.RoleSystem {
			t.Logf("entry %d was dropped and a rollback put it back", e.ID)
		}
	}
	assert.Equal(t, h.Tokens().Upper, pool.Used())
	require.NoError(t, h.Close())
	assert.Zero(t, pool.Used())
}

// Unless histories overdraw a pool, no more is ever reserved than it holds.
func TestTorture_BudgetNeverOvercommits(t *testing.T) {
	pool := convo.NewBudget(1000)
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 4))
			var held []*convo.Reservation
			for range 5000 {
				if r, err := pool.Reserve(rng.IntN(400)); err == nil {
					held = append(held, r)
				} else {
					assert.ErrorIs(t, err, convo.ErrBudget)
				}
				if used := pool.Used(); used > 1000 || used < 0 {
					t.Errorf("%d of 1000 used", used)
				}
				if len(held) > 0 && rng.IntN(2) == 0 {
					r := held[0]
					held = held[1:]
					go r.Release() // only the first of the two has an effect
					r.Release()
				}
			}
			for _, r := range held {
				r.Release()
			}
		})
	}
	wg.Wait()
	assert.Zero(t, pool.Used())
	assert.Equal(t, 1000, pool.Free())
}
