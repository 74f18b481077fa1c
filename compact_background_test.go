package convo_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []convo.Report
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Second)
			return convo.Summary{Text: "so far: " + ctx.Value(ctxKey{}).(string)}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
		h := toolTurn(t, opts, 20)

		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "values stay"))
		r, err := h.Wait(ctx)
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "there was none")

		require.True(t, h.CompactInBackground(ctx))
		cancel() // its end does not reach the flight
		assert.False(t, h.CompactInBackground(ctx), "one is under way")
		r, err = reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "nothing is due, flight or no flight")

		mustAppend(t, h, convo.User("while it is written"), convo.Assistant("it goes on"))
		_, err = h.Wait(ctx)
		require.ErrorIs(t, err, context.Canceled, "the wait ends, not the flight")
		r, err = h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, convo.ReasonSoft, r.Reason)
		assert.Equal(t, []convo.Report{r}, told)
		sum, _ := h.Snapshot().Summary()
		assert.Equal(t, "so far: values stay", sum.Text)
		texts := textsOf(h.Snapshot())
		assert.Equal(t, []string{"while it is written", "it goes on"}, texts[len(texts)-2:])

		again, err := h.Wait(ctx)
		require.NoError(t, err, "at once, even with a context that has ended")
		assert.Equal(t, r, again)
		assert.False(t, h.CompactInBackground(t.Context()), "below the soft mark")
	})
}

// A request exactly at the soft mark starts no compaction.
func TestBackground_AtTheSoftMark(t *testing.T) {
	opts := windowOf(5000, convo.Truncate{})
	h := toolTurn(t, opts, 20)
	total := h.Status().Upper
	require.NoError(t, h.SetLimits(convo.Limits{Window: 5000, Reserve: -1, Low: 500, Soft: total}))
	assert.False(t, h.CompactInBackground(t.Context()))
	require.NoError(t, h.SetLimits(convo.Limits{Window: 5000, Reserve: -1, Low: 500, Soft: total - 1}))
	assert.True(t, h.CompactInBackground(t.Context()))
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.ReasonSoft, r.Reason)
}

type ctxKey struct{}

func TestBackground_NotAgainWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(4000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{3, 4}}, nil // too little, but something
		}))
		opts.Limits.Soft, opts.Limits.Low = 1600, 1000
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		requireNoFailure(t)(h.Wait(t.Context()))
		assert.Greater(t, h.Status().Upper, 1600)
		assert.False(t, h.CompactInBackground(t.Context()))
		require.NoError(t, h.Pin(10))
		assert.False(t, h.CompactInBackground(t.Context()), "a pin gives it nothing to do")
		require.NoError(t, h.Unpin(10))
		assert.True(t, h.CompactInBackground(t.Context()))
		_, _ = h.Wait(t.Context())
	})
}

// A strategy that ends its goroutine in the background is reported like any
// other failure.
func TestBackground_GoexitIsTold(t *testing.T) {
	var told []convo.Report
	opts := windowOf(1000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		runtime.Goexit()
		return convo.Edit{}, nil
	}))
	opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
	h := toolTurn(t, opts, 20)
	require.True(t, h.CompactInBackground(t.Context()))
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Error(t, r.Cause)
	require.Len(t, told, 1)
	assert.Equal(t, convo.OutcomeFailed, told[0].Outcome)
	assert.Equal(t, r, told[0])
}

// Wait waits for the compaction in the background and for OnCompaction, after
// Close too.
func TestWait_Closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := false
		opts := windowOf(1000, deaf(time.Hour))
		opts.OnCompaction = func(convo.Report) {
			time.Sleep(time.Hour)
			told = true
		}
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		start := time.Now()
		require.NoError(t, h.Close())
		assert.Zero(t, time.Since(start), "Close does not wait")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := h.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, r.Cause, convo.ErrClosed)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Equal(t, time.Hour, time.Since(start), "for OnCompaction, and not for the strategy")
		assert.True(t, told)
		time.Sleep(time.Hour)
	})
}

// Wait also waits for an older compaction whose OnCompaction has not returned.
func TestWait_ForThoseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		told := 0
		opts := windowOf(2000, convo.Truncate{})
		opts.OnCompaction = func(convo.Report) {
			mu.Lock()
			told++
			first := told == 1
			mu.Unlock()
			if first {
				time.Sleep(time.Hour)
			}
		}
		h := toolTurn(t, opts, 20)
		start := time.Now()
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		mustAppend(t, h, convo.User(strings.Repeat("x", 900)), convo.Assistant("so"), convo.User("on"), convo.Assistant("and"))
		require.True(t, h.CompactInBackground(t.Context()), "the seat is free")
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

// Once the compaction has ended, Wait returns its report, whatever its ctx says.
func TestWait_PrefersTheReport(t *testing.T) {
	h := toolTurn(t, windowOf(1000, convo.Truncate{}), 20)
	require.True(t, h.CompactInBackground(t.Context()))
	want, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, want.Outcome)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 64 { // a select that is ready twice chooses at random
		r, err := h.Wait(ended)
		require.NoError(t, err)
		require.Equal(t, want, r)
	}
}

// Each call of Wait returns a report of its own.
func TestWait_SharesNothing(t *testing.T) {
	var h *convo.History
	opts := windowOf(1000, convo.Chain(convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		require.NoError(t, h.Pin(4))
		return convo.Edit{
			Drop:    []convo.ID{3, 4, 5, 6, 9, 10, 11, 12},
			Clear:   []convo.Clear{{ID: 40, Text: "."}},
			Summary: &convo.Summary{Text: "x"},
		}, nil
	}), convo.Truncate{}))
	h = toolTurn(t, opts, 20)
	require.True(t, h.CompactInBackground(t.Context()))
	first, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, first.Dropped)
	require.NotEmpty(t, first.Summarised)
	require.NotEmpty(t, first.Cleared)
	require.NotEmpty(t, first.Spared)
	require.NotEmpty(t, first.Links)
	second, err := h.Wait(t.Context())
	require.NoError(t, err)
	for _, ids := range [][]convo.ID{first.Dropped, first.Summarised, first.Cleared, first.Spared} {
		clear(ids)
	}
	clear(first.Links)
	third, err := h.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, second, third)
	for _, ids := range [][]convo.ID{second.Dropped, second.Summarised, second.Cleared, second.Spared} {
		assert.NotContains(t, ids, convo.ID(0))
	}
	assert.NotContains(t, second.Links, convo.Link{})
}

// All that is appended while a summary is written is there afterwards, in order,
// behind the summary.
func TestBackground_KeepsWhatIsAppendedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(100_000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Hour)
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1, Timeout: -1})
		opts.Limits.Soft, opts.Limits.Low = 2000, 1000
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		var want []string
		for i := range 231 {
			m := convo.User("new " + itoa(i))
			if i%2 == 1 {
				m = convo.Assistant("new " + itoa(i))
			}
			mustAppend(t, h, m)
			want = append(want, m.Text())
		}
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, r.Summarised)
		texts := textsOf(h.Snapshot())
		assert.Equal(t, want, texts[len(texts)-231:])
		assert.Contains(t, texts[1], "short", "the summary stands right after the system entries")
	})
}

// A summary of what was rewritten while it was made is not put in place.
func TestBackground_RewrittenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(100_000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Hour)
			return convo.Summary{Text: "said: " + req.Messages[0].Text()[:14]}, nil
		}), MaxTokens: 100, Window: -1, Timeout: -1})
		opts.Limits.Soft, opts.Limits.Low = 2000, 1000
		h := historyOf(t, opts, convo.User("my key is 1234"+strings.Repeat(" and so on", 40)), convo.Assistant(strings.Repeat("a", 4000)), convo.User("q"), convo.Assistant("a"), convo.User("r"))
		require.True(t, h.CompactInBackground(t.Context()))
		synctest.Wait()
		apply(t, h, forgetting(1, convo.Text("my key is ****")))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeStale, r.Outcome)
		_, ok := h.Snapshot().Summary()
		assert.False(t, ok)
		assert.Equal(t, 5, h.Len())
	})
}

// A compaction by hand beside one in the background waits for it and updates its
// summary. Each entry goes once, and what is appended in the meantime stays.
func TestBackground_CompactByHandMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		gone := map[convo.ID]int{}
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Second)
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
			assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		})
		synctest.Wait()
		last := mustAppend(t, h, convo.User("meanwhile"), convo.Assistant("yes"))
		wg.Wait()
		requireNoFailure(t)(h.Wait(t.Context()))
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

// Above the limit, Prepare waits for the compaction in the background. When that
// fails, it tries what else there is, or returns an error.
func TestBackground_PrepareWaitsAndLooksAgain(t *testing.T) {
	for _, fallback := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			var c convo.CompactionStrategy = convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				calls++
				time.Sleep(time.Second)
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
				assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			} else {
				require.ErrorIs(t, err, convo.ErrBreaker)
			}
			assert.Equal(t, 2, calls, "the call was repeated, and not made again right after that")
			r, err = h.Wait(t.Context())
			require.NoError(t, err)
			require.ErrorContains(t, r.Cause, "model is down")
		})
	}
}

// slow is Truncate after a delay, or until ctx ends.
func slow(d time.Duration) convo.CompactionStrategy {
	return convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		select {
		case <-time.After(d):
			return convo.Truncate{}.Compact(ctx, s, g)
		case <-ctx.Done():
			return convo.Edit{}, ctx.Err()
		}
	})
}

// deaf is Truncate after a delay, and ignores ctx.
func deaf(d time.Duration) convo.CompactionStrategy {
	return convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		time.Sleep(d)
		return convo.Truncate{}.Compact(context.Background(), s, g)
	})
}

func TestFlight_WaitersLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		inner := slow(time.Minute)
		h := toolTurn(t, windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			calls++
			return inner.Compact(ctx, s, g)
		})), 20)
		start := time.Now()
		var mu sync.Mutex
		outcomes := map[convo.Outcome]int{}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				r, err := reportOf(h.Prepare(t.Context()))
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				outcomes[r.Outcome]++
			})
		}
		wg.Wait()
		assert.Equal(t, map[convo.Outcome]int{convo.OutcomeApplied: 1, convo.OutcomeNotNeeded: 9}, outcomes)
		assert.Equal(t, 1, calls, "one flight, and the others found nothing to do")
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

func TestFlight_WaitsUnderItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, deaf(time.Hour)), 20)
		go func() { _, _, _ = h.Prepare(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := reportOf(h.Prepare(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.False(t, r.Fits)
		assert.Equal(t, time.Second, time.Since(start))

		// It was a waiter, and has not freed the slot of the one that flies.
		assert.False(t, h.CompactInBackground(t.Context()))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = h.Compact(ctx, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)

		time.Sleep(2 * time.Hour)
		assert.Less(t, h.Status().Upper, 1000, "the first one was applied")
	})
}

// OnCompaction is also told of a call that gave up waiting for another compaction
// because its ctx ended.
func TestFlight_WaiterThatGivesUpIsTold(t *testing.T) {
	for name, compact := range map[string]func(*convo.History, context.Context) (convo.Report, error){
		"Prepare": func(h *convo.History, ctx context.Context) (convo.Report, error) { return reportOf(h.Prepare(ctx)) },
		"Compact": func(h *convo.History, ctx context.Context) (convo.Report, error) { return h.Compact(ctx, "") },
		"MakeRoom": func(h *convo.History, ctx context.Context) (convo.Report, error) {
			_, r, err := h.MakeRoom(ctx, 10)
			return r, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var reports []convo.Report
				told := func() []convo.Report {
					mu.Lock()
					defer mu.Unlock()
					return slices.Clone(reports)
				}
				opts := windowOf(1000, deaf(time.Hour))
				opts.OnCompaction = func(r convo.Report) {
					mu.Lock()
					defer mu.Unlock()
					reports = append(reports, r)
				}
				h := toolTurn(t, opts, 20)
				var wg sync.WaitGroup
				wg.Go(func() { requireNoFailure(t)(reportOf(h.Prepare(t.Context()))) })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r, err := compact(h, ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, []convo.Report{r}, told(), "at once, while the other one is running")
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.ErrorIs(t, r.Cause, context.DeadlineExceeded)
				wg.Wait()
				require.Len(t, told(), 2)
				assert.Equal(t, convo.OutcomeApplied, told()[1].Outcome)
			})
		})
	}
}

// A strategy that ignores its ctx delays no call once ctx has ended, and what it
// returns late is thrown away.
func TestFlight_DeafStrategy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, deaf(time.Hour)), 20)
		start := time.Now()
		first := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _, err := h.Prepare(ctx)
			first <- err
		}()
		time.Sleep(time.Minute + 1)
		// The slot is free: another can begin at once.
		second := make(chan error, 1)
		go func() {
			_, _, err := h.Prepare(t.Context())
			second <- err
		}()
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
		assert.Equal(t, time.Minute+1, time.Since(start), "its caller is free too")
		before := h.Snapshot()
		time.Sleep(time.Hour - time.Minute)
		synctest.Wait()
		assert.Same(t, before, h.Snapshot(), "thrown away")
		require.NoError(t, <-second)
		assert.Equal(t, time.Hour+time.Minute+1, time.Since(start))
		assert.Less(t, h.Status().Upper, 1000)
	})
}

// A stale edit in the background is not tried again; in the foreground it is.
func TestFlight_Stale(t *testing.T) {
	for _, background := range []bool{true, false} {
		runs := 0
		var h *convo.History
		var told []convo.Outcome
		opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if runs++; runs == 1 {
				if _, err := h.SplicePrefix(s, 10, ""); err != nil { // takes away what the edit names
					return convo.Edit{}, err
				}
			}
			return convo.Truncate{}.Compact(ctx, s, g)
		}))
		opts.OnCompaction = func(r convo.Report) { told = append(told, r.Outcome) }
		h = toolTurn(t, opts, 20)
		var r convo.Report
		var err error
		if background {
			require.True(t, h.CompactInBackground(t.Context()))
			r, err = h.Wait(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, r.Cause, convo.ErrStale)
			assert.Equal(t, convo.OutcomeStale, r.Outcome)
			assert.Equal(t, 1, runs)
			assert.Equal(t, []convo.Outcome{convo.OutcomeApplied, convo.OutcomeStale}, told)
			continue
		}
		r, err = reportOf(h.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, 2, runs)
		assert.Equal(t, []convo.Outcome{convo.OutcomeApplied, convo.OutcomeStale, convo.OutcomeApplied}, told)
	}
}

// When more is appended during a compaction than it frees, Prepare
// compacts again rather than return a request that is too long.
func TestFlight_LooksAgain(t *testing.T) {
	runs := 0
	var h *convo.History
	opts := windowOf(2000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if runs++; runs < 4 {
			for range 20 {
				c := callOf("more" + itoa(runs))
				mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 90)))
			}
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	h = toolTurn(t, opts, 20)
	mustAppend(t, h, convo.User("go on"))
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.True(t, r.Fits)
	assert.Equal(t, 4, runs)
	assert.LessOrEqual(t, h.Status().Upper, 2000)
}

func TestFlight_Reentrant(t *testing.T) {
	var h, other *convo.History
	var inside []error
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour) // a child is marked too
		defer cancel()
		_, _, err := h.Prepare(ctx)
		inside = append(inside, err)
		_, _, err = h.Prepare(ctx)
		inside = append(inside, err)
		_, err = h.Compact(ctx, "")
		inside = append(inside, err)
		for _, n := range []int{100_000, 1, 0} {
			var res *convo.Reservation
			res, _, err = h.MakeRoom(ctx, n)
			assert.Nil(t, res)
			inside = append(inside, err)
		}
		_, _, err = h.Recover(ctx, s, errors.New("prompt is too long"))
		inside = append(inside, err)
		_, err = h.Wait(ctx)
		inside = append(inside, err)
		assert.False(t, h.CompactInBackground(ctx))

		_, _, err = other.Prepare(ctx)
		assert.NoError(t, err, "another History is free")
		_, err = h.Append(convo.User("a note"))
		assert.NoError(t, err)
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	h = toolTurn(t, opts, 20)
	other = toolTurn(t, windowOf(1000, nil), 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	require.Len(t, inside, 8)
	for i, err := range inside {
		require.ErrorIs(t, err, convo.ErrReentrant, "%d", i)
	}
}

// A Tokenizer and a Trigger get no ctx that marks the compaction which calls them. What
// they start waits for that compaction until its own ctx ends, as Options says.
func TestCompact_FromCodeWithoutACtx(t *testing.T) {
	for name, ask := range map[string]func(*convo.History, context.Context) error{
		"Compact":  func(h *convo.History, ctx context.Context) error { _, err := h.Compact(ctx, ""); return err },
		"MakeRoom": func(h *convo.History, ctx context.Context) error { _, _, err := h.MakeRoom(ctx, 1); return err },
	} {
		t.Run("Tokenizer and "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h *convo.History
				var inside error
				asked := false
				opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
					asked = true
					g.Count("a text")
					return convo.Truncate{}.Compact(ctx, s, g)
				}))
				opts.Tokenizer = convo.TokenizerFunc(func(text string) int {
					if asked && inside == nil {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						inside = ask(h, ctx)
					}
					return len(text)
				})
				h = toolTurn(t, opts, 20)
				r, err := reportOf(h.Prepare(t.Context()))
				require.NoError(t, err)
				assert.Equal(t, convo.OutcomeApplied, r.Outcome)
				assert.ErrorIs(t, inside, context.DeadlineExceeded)
			})
		})
	}
	t.Run("Trigger", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var h *convo.History
			var inside error
			asked := false
			first := convo.When(func(convo.Status) bool { return true }, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
				asked = true
				return convo.Edit{}, nil
			}))
			due := convo.When(func(convo.Status) bool {
				if asked && inside == nil {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, inside = h.Compact(ctx, "")
				}
				return false
			}, convo.ClearToolResults{})
			h = toolTurn(t, windowOf(100_000, convo.Chain(first, due)), 2)
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
			assert.ErrorIs(t, inside, context.DeadlineExceeded)
		})
	})
}

func TestClose_EndsFlights(t *testing.T) {
	t.Run("background", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, slow(time.Hour)), 20)
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			start := time.Now()
			before := h.Snapshot()
			require.NoError(t, h.Close())
			assert.Zero(t, time.Since(start), "it listens to its context")
			r, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, r.Cause, convo.ErrClosed)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			assert.False(t, r.Fits, "a closed History sends nothing")
			assert.Equal(t, before.Messages(), h.Snapshot().Messages())
			require.NoError(t, h.Close())
		})
	})
	t.Run("deaf background", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, deaf(time.Hour)), 20)
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			start := time.Now()
			require.NoError(t, h.Close())
			assert.Zero(t, time.Since(start))
			r, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, r.Cause, convo.ErrClosed)
			assert.Zero(t, time.Since(start), "nobody waits for it")
			time.Sleep(2 * time.Hour)
		})
	})
	t.Run("foreground and waiters", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, slow(time.Hour)), 20)
			errs := make(chan error, 3)
			for range 3 {
				go func() { _, _, err := h.Prepare(t.Context()); errs <- err }()
			}
			synctest.Wait()
			require.NoError(t, h.Close())
			for range 3 {
				require.ErrorIs(t, <-errs, convo.ErrClosed)
			}
		})
	})
	t.Run("from a strategy", func(t *testing.T) {
		var h *convo.History
		h = toolTurn(t, windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			assert.NoError(t, h.Close())
			return convo.Truncate{}.Compact(ctx, s, g)
		})), 20)
		before := h.Snapshot()
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, r.Cause, convo.ErrClosed)
		assert.Equal(t, before.Messages(), h.Snapshot().Messages())
	})
	t.Run("from an observer", func(t *testing.T) {
		var h *convo.History
		closed := make(chan struct{})
		opts := windowOf(1000, convo.Truncate{})
		opts.OnCompaction = func(convo.Report) {
			assert.NoError(t, h.Close())
			close(closed)
		}
		h = toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		<-closed
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		_, err = h.Append(convo.User("late"))
		require.ErrorIs(t, err, convo.ErrClosed)
	})
}

// Once the History is closed, no code of the caller is called.
func TestClose_DuringACompaction(t *testing.T) {
	var h *convo.History
	asked := 0
	counts := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		asked++
		return convo.Edit{Drop: []convo.ID{3, 4}}, nil
	})
	closes := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		return convo.Edit{}, h.Close()
	})
	for _, tt := range []struct {
		name     string
		limit    int
		strategy convo.CompactionStrategy
		spill    func(context.Context, convo.ToolResult) (string, error)
		asked    int
	}{
		{"by the strategy", 1500, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{3, 4}}, h.Close()
		}), nil, 0},
		{"between two links", 1500, convo.Chain(closes, counts), nil, 0},
		{"by a trigger, before the flight", 5000, &closesWhenDue{counts, 1, func() { h.Close() }}, nil, 0},
		{"by a trigger, in the flight", 5000, &closesWhenDue{counts, 2, func() { h.Close() }}, nil, 0},
		{"between two calls of a summarizer", 1500, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			asked++
			return convo.Summary{Text: "so far"}, h.Close()
		}), MaxTokens: 100, Window: 3600, KeepTokens: -1}, nil, 1},
		{"by Spill", 1500, convo.ClearToolResults{MinFree: -1}, func(context.Context, convo.ToolResult) (string, error) { return "f", h.Close() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = 0
			opts := windowOf(tt.limit, tt.strategy)
			opts.Spill = tt.spill
			h = toolTurn(t, opts, 20)
			before := idsOf(h.Snapshot())
			r, err := reportOf(h.Prepare(t.Context()))
			require.ErrorIs(t, err, convo.ErrClosed)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			assert.Equal(t, tt.asked, asked)
			assert.Equal(t, before, idsOf(h.Snapshot()))
		})
	}
}

// closesWhenDue closes the History when it is asked for the n-th time.
type closesWhenDue struct {
	convo.CompactionStrategy
	n     int
	close func()
}

func (c *closesWhenDue) Due(convo.Status) bool {
	if c.n--; c.n == 0 {
		c.close()
	}
	return true
}

// A call that waits for another compaction returns when the History is closed.
func TestClose_FreesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, deaf(time.Hour)), 20)
		go func() { _, _, _ = h.Prepare(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		errs := make(chan error, 4)
		go func() { _, _, err := h.Prepare(t.Context()); errs <- err }()
		go func() { _, err := h.Compact(t.Context(), ""); errs <- err }()
		go func() { _, _, err := h.MakeRoom(t.Context(), 10); errs <- err }()
		go func() { _, _, err := h.Prepare(t.Context()); errs <- err }()
		synctest.Wait()
		require.NoError(t, h.Close())
		for range 4 {
			require.ErrorIs(t, <-errs, convo.ErrClosed)
		}
		assert.Zero(t, time.Since(start))
		time.Sleep(2 * time.Hour)
	})
}

// An abandoned compaction that ends while a later one runs does not disturb it:
// Close still cancels the later one, and its slot stays taken.
func TestFlight_AbandonedEndsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		h := toolTurn(t, windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			if runs.Add(1) == 1 {
				return deaf(time.Hour).Compact(ctx, s, g)
			}
			return slow(10*time.Hour).Compact(ctx, s, g)
		})), 20)
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _, err := h.Prepare(ctx)
			first <- err
		}()
		time.Sleep(2 * time.Minute)
		go func() { _, _, err := h.Prepare(t.Context()); second <- err }()
		time.Sleep(time.Hour)
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
		assert.EqualValues(t, 2, runs.Load())
		assert.False(t, h.CompactInBackground(t.Context()), "the later one is under way")
		start := time.Now()
		require.NoError(t, h.Close())
		require.ErrorIs(t, <-second, convo.ErrClosed)
		assert.Zero(t, time.Since(start))
	})
}

// When a strategy ends its goroutine, as a failing test does, nothing stays
// locked.
func TestFlight_Goexit(t *testing.T) {
	exit := true
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if exit {
			runtime.Goexit()
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	h := toolTurn(t, opts, 20)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _, _ = h.Prepare(t.Context())
	}()
	<-over
	require.True(t, h.CompactInBackground(t.Context()))
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, r.Cause, "ended the goroutine")
	assert.Equal(t, convo.OutcomeFailed, r.Outcome)
	exit = false
	r, err = reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
}

// What is pinned or appended during a compaction is there after it.
func TestFlight_PinMeanwhile(t *testing.T) {
	var h *convo.History
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		e, err := convo.Truncate{}.Compact(ctx, s, g)
		require.NoError(t, h.Pin(6))
		mustAppend(t, h, convo.User("meanwhile"))
		return e, err
	}))
	h = toolTurn(t, opts, 20)
	r, err := reportOf(h.Prepare(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 6}, r.Spared)
	assert.Equal(t, []convo.ID{5, 6}, h.Snapshot().Pinned())
	assert.Equal(t, "meanwhile", textsOf(h.Snapshot())[h.Len()-1])
}

// When others append faster than it can compact, Prepare gives up with
// an error.
func TestFlight_GivesUp(t *testing.T) {
	runs := 0
	var h *convo.History
	opts := windowOf(2000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		runs++
		for range 20 {
			c := callOf("more" + itoa(runs))
			mustAppend(t, h, convo.Assistant("", c), convo.Result(c, strings.Repeat("x", 90)))
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	h = toolTurn(t, opts, 20)
	mustAppend(t, h, convo.User("go on"))
	r, err := reportOf(h.Prepare(t.Context()))
	var limit *convo.LimitError
	require.ErrorAs(t, err, &limit)
	assert.False(t, r.Fits)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Greater(t, runs, 4)
	assert.Less(t, runs, 20)
}

// A strategy that ends its goroutine is reported like any other failure.
func TestGoexit_IsTold(t *testing.T) {
	for _, background := range []bool{true, false} {
		var told []convo.Report
		opts := windowOf(1000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			runtime.Goexit()
			return convo.Edit{}, nil
		}))
		opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
		h := toolTurn(t, opts, 20)
		if background {
			require.True(t, h.CompactInBackground(t.Context()))
			r, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.ErrorContains(t, r.Cause, "ended the goroutine")
			assert.Equal(t, []convo.Report{r}, told)
		} else {
			check(t.Context(), h)
		}
		require.Len(t, told, 1)
		assert.Equal(t, convo.OutcomeFailed, told[0].Outcome)
		assert.Equal(t, convo.ReasonHigh, told[0].Reason)
		assert.Equal(t, h.Status().Upper, told[0].TokensAfter)
		require.ErrorContains(t, told[0].Cause, "ended the goroutine")
	}
}

// A caller that gives up waiting for a compaction leaves the slot taken: no second
// one can start beside the first.
func TestFlight_WaiterDoesNotFreeTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, running := 0, 0
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			calls++
			running++
			assert.Equal(t, 1, running)
			time.Sleep(time.Hour)
			running--
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1, Timeout: -1})
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
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, 1, calls)
	})
}

// While a model writes a summary for one History, the others, and appends to the
// same one, go on.
func TestFlight_DoesNotBlockAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		shared := convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			if first {
				first = false
				time.Sleep(time.Hour)
			}
			return convo.Summary{Text: "short"}, nil
		}), MaxTokens: 100, Window: -1, Timeout: -1}
		slow, other := toolTurn(t, windowOf(2000, shared), 20), toolTurn(t, windowOf(2000, shared), 20)
		require.True(t, slow.CompactInBackground(t.Context()))
		synctest.Wait()
		start := time.Now()
		r, err := reportOf(other.Prepare(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		mustAppend(t, slow, convo.User("are you there?"), convo.Assistant("yes"))
		slow.Snapshot().Messages()
		assert.Zero(t, time.Since(start))
		requireNoFailure(t)(slow.Wait(t.Context()))
	})
}

// A dueFunc is Truncate with a Trigger.
type dueFunc struct {
	convo.Truncate
	due func() bool
}

func (d dueFunc) Due(convo.Status) bool { return d.due() }

// A request of a closed History must not be sent, however and whenever it was closed.
func TestClosed_NeverFits(t *testing.T) {
	closed := func(t *testing.T, r convo.Report, err error) {
		t.Helper()
		require.ErrorIs(t, err, convo.ErrClosed)
		assert.False(t, r.Fits)
	}
	t.Run("by OnCompaction", func(t *testing.T) {
		var h *convo.History
		opts := windowOf(1000, convo.Truncate{})
		opts.OnCompaction = func(convo.Report) { _ = h.Close() }
		h = toolTurn(t, opts, 20)
		_, r, err := h.Prepare(t.Context())
		closed(t, r, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	})
	for _, due := range []bool{false, true} {
		t.Run("by the Trigger", func(t *testing.T) {
			var h *convo.History
			h = toolTurn(t, windowOf(4000, dueFunc{due: func() bool { _ = h.Close(); return due }}), 20)
			r, err := reportOf(h.Prepare(t.Context()))
			closed(t, r, err)
		})
	}
	t.Run("by a strategy that then returns an error", func(t *testing.T) {
		var h *convo.History
		opts := windowOf(4000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{}, errors.Join(h.Close(), errors.New("boom"))
		}))
		opts.Limits.High = 2000
		h = toolTurn(t, opts, 20)
		_, r, err := h.Prepare(t.Context())
		closed(t, r, err)
	})
	t.Run("while another waits whose ctx has ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for range 20 { // select takes either
				opts := windowOf(4000, slow(time.Minute))
				opts.Limits.High = 2000
				h := toolTurn(t, opts, 20)
				require.True(t, h.CompactInBackground(t.Context()))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					r, err := reportOf(h.Prepare(ctx))
					closed(t, r, err)
				}()
				synctest.Wait()
				require.NoError(t, h.Close())
				cancel()
				<-done
				_, _ = h.Wait(t.Context())
			}
		})
	})
}

// Who stops waiting for a compaction says that it goes on.
func TestStoppedWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(2500, slow(time.Minute)), 20)
		require.True(t, h.CompactInBackground(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		const want = "convo: stopped waiting for a compaction, which goes on: context deadline exceeded"
		_, err := h.Wait(ctx)
		require.EqualError(t, err, want)
		_, err = h.Compact(ctx, "")
		require.EqualError(t, err, want)
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
	})
}

// waiting returns a History above Limits.Soft, of which a compaction in the background
// has ended with OutcomeReady, and the reports so far. ttl is Options.CacheTTL.
func waiting(t *testing.T, ttl time.Duration, change ...func(*convo.Options)) (h *convo.History, told *[]convo.Report, calls *atomic.Int32) {
	t.Helper()
	calls, told = new(atomic.Int32), new([]convo.Report)
	opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		calls.Add(1)
		return convo.Summary{Text: "so far", Usage: convo.Usage{Output: 5}, Model: "m"}, nil
	}), MaxTokens: 100, Window: -1})
	opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
	opts.CacheTTL = ttl
	opts.OnCompaction = func(r convo.Report) { *told = append(*told, r) }
	for _, f := range change {
		f(opts)
	}
	h = toolTurn(t, opts, 20)
	require.True(t, h.CompactInBackground(t.Context()))
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	if ttl <= 0 {
		require.Equal(t, convo.OutcomeApplied, r.Outcome)
		return h, told, calls
	}
	require.Equal(t, convo.OutcomeReady, r.Outcome)
	assert.Equal(t, 1, r.Calls)
	assert.Equal(t, 5, r.Usage.Output)
	assert.Equal(t, r.TokensBefore, r.TokensAfter)
	assert.True(t, r.Fits)
	assert.Contains(t, fmt.Sprint(r), "compaction ready at")
	assert.Len(t, *told, 1)
	_, has := h.Snapshot().Summary()
	assert.False(t, has, "nothing has changed yet")
	return h, told, calls
}

// The edit of a compaction in the background waits for a pause or for Limits.High, and is
// applied by whichever compaction comes first.
func TestCacheTTL_EditWaits(t *testing.T) {
	applied := func(t *testing.T, h *convo.History, r convo.Report, calls *atomic.Int32) {
		t.Helper()
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		assert.Equal(t, convo.ReasonSoft, r.Reason)
		assert.Zero(t, r.Calls, "they were reported before")
		assert.Zero(t, r.Usage)
		assert.NotEmpty(t, r.Summarised)
		assert.Equal(t, "m", r.Model)
		assert.EqualValues(t, 1, calls.Load())
		sum, _ := h.Snapshot().Summary()
		assert.Equal(t, "so far", sum.Text)
	}
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	run("a pause", func(t *testing.T) {
		h, told, calls := waiting(t, 5*time.Minute)
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."), convo.User("so?"))
		time.Sleep(5 * time.Minute)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "the request may still be in the cache")
		assert.False(t, h.CompactInBackground(t.Context()), "an edit waits already")
		time.Sleep(time.Second)
		s, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		applied(t, h, r, calls)
		assert.Len(t, *told, 2)
		assert.Less(t, s.Tokens(), 2000)
		assert.Equal(t, "so?", s.Messages()[s.Len()].Text(), "what was appended since stays")
	})
	run("a pause, in the background", func(t *testing.T) {
		h, _, calls := waiting(t, time.Minute)
		time.Sleep(2 * time.Minute)
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("high", func(t *testing.T) {
		h, _, calls := waiting(t, time.Hour)
		mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("a", 1200)), convo.User("so?"))
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("by hand", func(t *testing.T) {
		h, _, calls := waiting(t, time.Hour)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("room", func(t *testing.T) {
		h, told, calls := waiting(t, time.Hour)
		_, _, err := h.MakeRoom(t.Context(), 2500)
		require.NoError(t, err)
		applied(t, h, (*told)[1], calls)
	})
	run("no option", func(t *testing.T) {
		h, told, _ := waiting(t, 0)
		_, has := h.Snapshot().Summary()
		assert.True(t, has)
		assert.Len(t, *told, 1)
		time.Sleep(1000 * time.Hour)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
	})
	run("stale", func(t *testing.T) {
		h, told, calls := waiting(t, time.Hour)
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4}})
		require.NoError(t, err)
		require.True(t, h.CompactInBackground(t.Context()), "another one is written")
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeReady, r.Outcome)
		assert.EqualValues(t, 2, calls.Load())
		assert.Equal(t, convo.OutcomeStale, (*told)[len(*told)-2].Outcome)
	})
	run("a rollback of all it covers", func(t *testing.T) {
		h, _, calls := waiting(t, time.Hour)
		_, err := h.Rewind(1)
		require.NoError(t, err)
		mustAppend(t, h, convo.User(strings.Repeat("a", 2500)))
		require.True(t, h.CompactInBackground(t.Context()))
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 1, calls.Load(), "nothing is left to summarise")
	})
	run("a compaction that is given up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		end := func() {}
		h, told, calls := waiting(t, time.Hour, func(opts *convo.Options) {
			opts.Tokenizer = convo.TokenizerFunc(func(text string) int { end(); return len(text) })
		})
		end = cancel
		_, err := h.Compact(ctx, "")
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, convo.OutcomeFailed, (*told)[1].Outcome)
		r, err := h.Compact(t.Context(), "")
		require.NoError(t, err)
		applied(t, h, r, calls)
	})
	run("close", func(t *testing.T) {
		h, told, _ := waiting(t, time.Hour)
		require.NoError(t, h.Close())
		_, err := h.Compact(t.Context(), "")
		require.ErrorIs(t, err, convo.ErrClosed)
		assert.Len(t, *told, 1)
	})
}

// withSoft returns options with an Options.CacheTTL. toolTurn of 20 rounds is between their soft
// and their high mark.
func withSoft(ttl time.Duration) *convo.Options {
	opts := windowOf(4000, convo.Truncate{})
	opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
	opts.CacheTTL = ttl
	return opts
}

// After a pause longer than CacheTTL, a request above Limits.Soft is compacted. The pause
// is measured from the newest entry of the assistant, also after a restart.
func TestCacheTTL_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := withSoft(5 * time.Minute)
		h := toolTurn(t, opts, 20)
		time.Sleep(4 * time.Minute)
		mustAppend(t, h, convo.User("and"))
		data, err := json.Marshal(h.Snapshot())
		require.NoError(t, err)
		for _, restart := range []bool{false, true} {
			if restart {
				s := new(convo.Snapshot)
				require.NoError(t, json.Unmarshal(data, s))
				h, err = convo.Restore(s, opts)
				require.NoError(t, err)
			}
			r, err := reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			if !restart {
				assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome)
				time.Sleep(2 * time.Minute)
				r, err = reportOf(h.Prepare(t.Context()))
				require.NoError(t, err)
			}
			assert.Equal(t, convo.OutcomeApplied, r.Outcome, "after a restart: %v", restart)
			assert.Equal(t, convo.ReasonSoft, r.Reason)
			assert.LessOrEqual(t, h.Status().Upper, 1000)
			time.Sleep(time.Hour)
			r, err = reportOf(h.Prepare(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "below soft a pause changes nothing")
		}
	})
}

// What a client says about the cache of its provider counts where Options.CacheTTL is 0.
func TestUsage_CacheTTL(t *testing.T) {
	const ttl = 5 * time.Minute
	type answer func(context.Context, *convo.History, convo.Reply) (convo.Reply, error)
	do := func(ctx context.Context, h *convo.History, r convo.Reply) (convo.Reply, error) {
		return h.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { return r, nil })
	}
	record := func(_ context.Context, h *convo.History, r convo.Reply) (convo.Reply, error) {
		at := h.Snapshot()
		r.IDs = []convo.ID{mustAppend(t, h, r.Messages...)}
		return r, h.RecordUsage(at, r.Usage)
	}
	appendReply := func(_ context.Context, h *convo.History, r convo.Reply) (convo.Reply, error) {
		return h.AppendReply(h.Snapshot(), r)
	}
	for name, tt := range map[string]struct {
		option time.Duration
		told   []time.Duration // by each answer
		answer answer
		from   time.Duration // the longest pause after which nothing is due; 0: nothing ever is
	}{
		"Do":                      {0, []time.Duration{ttl}, do, ttl},
		"AppendReply":             {0, []time.Duration{ttl}, appendReply, ttl},
		"RecordUsage":             {0, []time.Duration{ttl, time.Hour}, record, time.Hour},
		"not recorded any more":   {0, []time.Duration{ttl, 0}, record, 0},
		"the newest answer":       {0, []time.Duration{ttl, time.Hour}, do, time.Hour},
		"not told any more":       {0, []time.Duration{ttl, 0}, do, 0},
		"negative":                {0, []time.Duration{-ttl}, do, 0},
		"the option is longer":    {time.Hour, []time.Duration{ttl}, do, time.Hour},
		"the option is shorter":   {time.Minute, []time.Duration{ttl}, do, time.Minute},
		"the option says no time": {-1, []time.Duration{ttl}, do, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := toolTurn(t, withSoft(tt.option), 20)
				for _, ttl := range tt.told {
					mustAppend(t, h, convo.User("and"))
					r, err := tt.answer(t.Context(), h, convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}, Usage: convo.Usage{CacheTTL: ttl}})
					require.NoError(t, err)
					assert.Equal(t, ttl, r.Usage.CacheTTL)
				}
				mustAppend(t, h, convo.User("so?"))
				time.Sleep(cmp.Or(tt.from, 1000*time.Hour))
				_, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "%v", r)
				time.Sleep(time.Second)
				_, r, err = h.Prepare(t.Context())
				require.NoError(t, err)
				if tt.from == 0 {
					assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "%v", r)
					return
				}
				assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
				assert.Equal(t, convo.ReasonSoft, r.Reason)
				assert.Equal(t, tt.from+time.Second, r.Pause)
				assert.Contains(t, fmt.Sprint(r), "; after a pause of "+r.Pause.String())
				assert.LessOrEqual(t, h.Status().Upper, 1000)
			})
		})
	}
}

// A usage with nothing but a lifetime is no measurement: the estimates are as without a usage.
func TestUsage_CacheTTLAlone(t *testing.T) {
	estimates := func(u convo.Usage) (list []convo.Estimate) {
		h := historyOf(t, bare(), convo.User("q"))
		for _, u := range []convo.Usage{u, {Input: 400}, u} {
			_, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
				return convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}, Usage: u}, nil
			})
			require.NoError(t, err)
			list = append(list, h.Tokens())
			mustAppend(t, h, convo.User("and"))
			require.NoError(t, h.RecordUsage(h.Snapshot(), u))
			list = append(list, h.Tokens())
		}
		return list
	}
	assert.Equal(t, estimates(convo.Usage{}), estimates(convo.Usage{CacheTTL: time.Hour}))
}

// A pause begins with the newest answer, however its usage was told.
func TestPause_Begins(t *testing.T) {
	const ttl = 5 * time.Minute
	usage := func(ttl time.Duration) convo.Usage { return convo.Usage{CacheTTL: ttl} }
	ok := []convo.Message{convo.Assistant("ok")}
	for name, tt := range map[string]struct {
		option time.Duration
		answer func(t *testing.T, h *convo.History)
		want   time.Duration // the pause of a request an hour later
	}{
		"AppendReply after RecordUsage": {0, func(t *testing.T, h *convo.History) {
			at := h.Snapshot()
			require.NoError(t, h.RecordUsage(at, usage(ttl)))
			_, err := h.AppendReply(at, convo.Reply{Messages: ok})
			require.NoError(t, err)
		}, time.Hour},
		"a late report": {0, func(t *testing.T, h *convo.History) {
			old := h.Snapshot()
			mustAppend(t, h, convo.Assistant("first"), convo.User("and"))
			_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: ok, Usage: usage(ttl)})
			require.NoError(t, err)
			require.NoError(t, h.RecordUsage(old, convo.Usage{Input: 10, CacheTTL: 2 * time.Hour}))
		}, time.Hour},
		"appended with the next request": {ttl, func(t *testing.T, h *convo.History) {
			require.NoError(t, h.RecordUsage(h.Snapshot(), usage(0)))
			time.Sleep(time.Minute)
			mustAppend(t, h, ok...)
		}, time.Hour + time.Minute},
		"later answers without usage": {ttl, func(t *testing.T, h *convo.History) {
			require.NoError(t, h.RecordUsage(h.Snapshot(), usage(0)))
			for range 3 {
				time.Sleep(time.Minute)
				mustAppend(t, h, convo.Assistant("ok"), convo.User("and"))
			}
			mustAppend(t, h, convo.Assistant("ok"))
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := toolTurn(t, withSoft(tt.option), 20)
				mustAppend(t, h, convo.User("and"))
				tt.answer(t, h)
				time.Sleep(time.Hour)
				mustAppend(t, h, convo.User("so?"))
				_, r, err := h.Prepare(t.Context())
				require.NoError(t, err)
				assert.Equal(t, tt.want, r.Pause, "%v", r)
			})
		})
	}
}

// The last part of an answer that was paused says how long the provider keeps the request.
func TestUsage_CacheTTLOfAPausedAnswer(t *testing.T) {
	h := historyOf(t, bare(), convo.User("q"))
	told := []time.Duration{time.Minute, time.Hour}
	r, err := h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		reply := convo.Reply{Messages: []convo.Message{convo.Assistant("part")}, Usage: convo.Usage{Input: 10, CacheTTL: told[0]}}
		if told = told[1:]; len(told) > 0 {
			reply.Stop = convo.StopPause
		}
		return reply, nil
	})
	require.NoError(t, err)
	require.Empty(t, told)
	assert.Equal(t, convo.Usage{Input: 20, CacheTTL: time.Hour}, r.Usage)
}

// After a Reload, the pause begins with the newest answer that another process has saved.
func TestPause_Reload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, store := toolTurn(t, withSoft(5*time.Minute), 20), new(convotest.MemStore)
		require.NoError(t, h.Attach(t.Context(), store, "k"))
		answer := func(h *convo.History) {
			mustAppend(t, h, convo.User("and"))
			_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}})
			require.NoError(t, err)
			require.NoError(t, h.Save(t.Context()))
		}
		answer(h)
		other, err := convo.Open(t.Context(), store, "k", windowOf(4000, convo.Truncate{}))
		require.NoError(t, err)
		time.Sleep(time.Hour)
		answer(other)
		_, _, err = h.Reload(t.Context())
		require.NoError(t, err)
		mustAppend(t, h, convo.User("so?"))
		time.Sleep(time.Minute)
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeNotNeeded, r.Outcome, "%v", r)
	})
}

// An edit made in the background does not wait for the pause that only an answer has told, and
// no pause makes a compaction in the background due.
func TestUsage_CacheTTLInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, withSoft(0), 20)
		mustAppend(t, h, convo.User("and"))
		_, err := h.AppendReply(h.Snapshot(), convo.Reply{Messages: []convo.Message{convo.Assistant("ok")}, Usage: convo.Usage{CacheTTL: time.Hour}})
		require.NoError(t, err)
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "%v", r)
		assert.Zero(t, r.Pause, "it is due without one")
		assert.NotContains(t, fmt.Sprint(r), "pause")
	})
}

// A summary that was written in the background names what the messages appended since
// use, and what only the entries that leave hold.
func TestBackground_NamesWhatCameUp(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			opts := windowOf(8000, convo.Summarize{With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				time.Sleep(time.Second)
				return convo.Summary{Text: "The user began a piece of work, which touches many hosts of the company, such as db-3.internal. " +
					"The assistant looked at each in turn, wrote down what it saw there, and found nothing that is wrong. " +
					"What is left to do is a last look at all the lists, a word to the people who keep them, and a short note about it."}, nil
			}), MaxTokens: 200, Window: -1})
			opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 7000, 2000, 1000
			opts.CacheTTL = wait
			opts.Redact = func(m convo.Message) convo.Message {
				m.Parts = []convo.Part{convo.Text(strings.ReplaceAll(m.Text(), "pass build-98", "pass"))}
				return m
			}
			h := historyOf(t, opts, convo.User("begin"))
			rare := []string{"t-4711", "t-4712", "db-3.internal"}
			mustAppend(t, h, convo.Assistant("I saw "+strings.Join(rare, " and ")+", and the pass build-98."), convo.User("go on"))
			for i := range 400 { // names that are as good, and come later
				mustAppend(t, h, convo.Assistant("next-"+itoa(i)), convo.User("go on"))
			}
			mustAppend(t, h, convo.Assistant("ok"))
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			mustAppend(t, h, convo.User("Is db-3.internal what t-4711 was about, and build-99?"), convo.Assistant("No, t-4711 is about build-98."), convo.User("so?"))
			time.Sleep(2 * time.Second)
			_, err := h.Wait(t.Context())
			require.NoError(t, err)
			_, err = h.Compact(t.Context(), "")
			require.NoError(t, err)
			sum, ok := h.Snapshot().Summary()
			require.True(t, ok)
			names := strings.Fields(sum.Names)
			require.Equal(t, "t-4711", names[0])
			assert.NotContains(t, names[1:], "t-4711", "it is there once")
			assert.NotContains(t, names, "build-98", "Redact takes it out of what leaves")
			assert.NotContains(t, names, "t-4712", "it is one of many, and no message asked for it")
			assert.NotContains(t, names, "build-99", "nothing that leaves has it")
			assert.NotContains(t, names, "db-3.internal", "the text of the summary has it")
		})
	}
}

// A name that an exchange holds which was pinned in the meantime has not left.
func TestBackground_NamesNothingPinned(t *testing.T) {
	for _, pin := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts := windowOf(2000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (e convo.Edit, err error) {
				time.Sleep(time.Second)
				for x := range s.Exchanges() {
					if !x.Floor {
						e.Drop = append(e.Drop, x.IDs()...)
					}
				}
				e.Summary = &convo.Summary{Text: "The user began a piece of work, which touches many hosts of the company. The assistant looked at each in turn, wrote down what it saw there, and found nothing that is wrong."}
				return e, nil
			}))
			opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 1800, 500, 300
			h := historyOf(t, opts, convo.User("begin"))
			held := mustAppend(t, h, convo.Assistant("I saw ticket-4711."))
			mustAppend(t, h, convo.User(strings.Repeat("go on, ", 250)), convo.Assistant("ok"), convo.User("and now"))
			require.True(t, h.CompactInBackground(t.Context()))
			synctest.Wait()
			mustAppend(t, h, convo.Assistant("It is like ticket-4711."))
			if pin {
				require.NoError(t, h.Pin(held))
			}
			r, err := h.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, convo.OutcomeApplied, r.Outcome)
			sum, ok := h.Snapshot().Summary()
			require.True(t, ok)
			if pin {
				assert.Empty(t, sum.Names)
			} else {
				assert.Equal(t, "ticket-4711", sum.Names)
			}
		})
	}
}

// Below Limits.High, no compaction that was not asked for takes place in a round of tool
// calls with signed reasoning.
func TestCompact_WaitsForTheEndOfARound(t *testing.T) {
	c := callOf("c")
	think := func(calls ...convo.ToolCall) convo.Message {
		return thoughts.In(convo.Assistant("", calls...), convo.Reasoning{Text: "hm", Signature: "sig"})
	}
	start := func(t *testing.T, ttl time.Duration, round ...convo.Message) *convo.History {
		h := toolTurn(t, withSoft(ttl), 20)
		mustAppend(t, h, convo.User("now"))
		mustAppend(t, h, round...)
		return h
	}
	background := func(t *testing.T, h *convo.History) convo.Outcome {
		require.True(t, h.CompactInBackground(t.Context()))
		r, err := h.Wait(t.Context())
		require.NoError(t, err)
		return r.Outcome
	}
	prepare := func(t *testing.T, h *convo.History) convo.Outcome {
		_, r, err := h.Prepare(t.Context())
		require.NoError(t, err)
		return r.Outcome
	}
	for name, tt := range map[string]struct {
		round []convo.Message
		waits bool
	}{
		"results":               {[]convo.Message{think(c), convo.Result(c, "r")}, true},
		"an open call":          {[]convo.Message{think(c)}, true},
		"a note after":          {[]convo.Message{think(c), convo.Result(c, "r"), convo.System("n")}, true},
		"reasoning before":      {[]convo.Message{think(c), convo.Result(c, "r"), convo.Assistant("", c), convo.Result(c, "r")}, true},
		"an answer":             {[]convo.Message{think(c), convo.Result(c, "r"), think()}, false},
		"a user message":        {[]convo.Message{think(c), convo.Result(c, "r"), convo.User("stop")}, false},
		"reasoning not signed":  {[]convo.Message{thoughts.In(convo.Assistant("", c), convo.Reasoning{Text: "hm"}), convo.Result(c, "r")}, false},
		"no reasoning":          {[]convo.Message{convo.Assistant("", c), convo.Result(c, "r")}, false},
		"reasoning before that": {[]convo.Message{think(), convo.User("go"), convo.Assistant("", c), convo.Result(c, "r")}, false},
	} {
		if name == "an answer" {
			tt.round[2].Parts = append(tt.round[2].Parts, convo.Text("a"))
		}
		if name == "reasoning before that" {
			tt.round[0].Parts = append(tt.round[0].Parts, convo.Text("a"))
		}
		t.Run(name, func(t *testing.T) {
			want := convo.OutcomeApplied
			if tt.waits {
				want = convo.OutcomeReady
			}
			h := start(t, 0, tt.round...)
			assert.Equal(t, want, background(t, h))
			if !tt.waits {
				return
			}
			assert.Equal(t, convo.OutcomeNotNeeded, prepare(t, h))
			assert.False(t, h.CompactInBackground(t.Context()), "an edit waits already")
			if h.Status().OpenCalls > 0 {
				mustAppend(t, h, convo.Result(c, "r"))
			}
			mustAppend(t, h, convo.Assistant("done"))
			assert.Equal(t, convo.OutcomeApplied, prepare(t, h), "the round is over")

			h = start(t, 0, tt.round...)
			convo.Release(h)
			assert.Equal(t, convo.OutcomeApplied, background(t, h), "nothing is bound")

			h = start(t, 0, tt.round...)
			assert.Equal(t, want, background(t, h))
			require.NoError(t, h.SetLimits(convo.Limits{Window: 3000, High: 2100, Soft: 2000, Low: 1000}))
			assert.Equal(t, convo.OutcomeApplied, prepare(t, h), "above high it runs")

			synctest.Test(t, func(t *testing.T) {
				h := start(t, time.Minute, tt.round...)
				time.Sleep(time.Hour)
				assert.Equal(t, convo.OutcomeNotNeeded, prepare(t, h))
				if h.Status().OpenCalls > 0 {
					mustAppend(t, h, convo.Result(c, "r"))
				}
				mustAppend(t, h, convo.User("so?"))
				assert.Equal(t, convo.OutcomeApplied, prepare(t, h))
			})
		})
	}
}
