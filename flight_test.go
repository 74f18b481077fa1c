package convo_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// slow drops as Truncate does, after so long or when ctx ends.
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

// deaf does the same and never looks at ctx.
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
				r, err := h.CompactIfNeeded(t.Context())
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				outcomes[r.Outcome]++
			})
		}
		wg.Wait()
		assert.Equal(t, map[convo.Outcome]int{convo.Applied: 1, convo.NotNeeded: 9}, outcomes)
		assert.Equal(t, 1, calls, "one flight, and the others found nothing to do")
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

func TestFlight_WaitsUnderItsOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, deaf(time.Hour)), 20)
		go func() { _, _ = h.CompactIfNeeded(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := h.CompactIfNeeded(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, convo.Failed, r.Outcome)
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

// What ignores its context holds up its caller, and nobody else; what it
// returns later is thrown away.
func TestFlight_DeafStrategy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, deaf(time.Hour)), 20)
		start := time.Now()
		first := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := h.CompactIfNeeded(ctx)
			first <- err
		}()
		time.Sleep(time.Minute + 1)
		// The slot is free: another can begin at once.
		second := make(chan error, 1)
		go func() {
			_, err := h.CompactIfNeeded(t.Context())
			second <- err
		}()
		before := h.Snapshot()
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
		assert.Equal(t, time.Hour, time.Since(start))
		assert.Same(t, before, h.Snapshot(), "thrown away")
		require.NoError(t, <-second)
		assert.Equal(t, time.Hour+time.Minute+1, time.Since(start))
		assert.Less(t, h.Status().Upper, 1000)
	})
}

func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []convo.Report
		opts := windowOf(4000, convo.Summarize{With: convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			time.Sleep(time.Minute)
			return convo.Summary{Text: "so far: " + ctx.Value(ctxKey{}).(string)}, nil
		}), MaxTokens: 100, Window: -1})
		opts.Limits.High, opts.Limits.Soft, opts.Limits.Low = 3500, 2000, 1000
		opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
		h := toolTurn(t, opts, 20)

		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "values stay"))
		r, err := h.Wait(ctx)
		require.NoError(t, err)
		assert.Equal(t, convo.NotNeeded, r.Outcome, "there was none")

		require.True(t, h.CompactInBackground(ctx))
		cancel() // its end does not reach the flight
		assert.False(t, h.CompactInBackground(ctx), "one is under way")
		r, err = h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.NotNeeded, r.Outcome, "nothing is due, flight or no flight")

		mustAppend(t, h, convo.User("while it is written"), convo.Assistant("it goes on"))
		_, err = h.Wait(ctx)
		require.ErrorIs(t, err, context.Canceled, "the wait ends, not the flight")
		r, err = h.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.Applied, r.Outcome)
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

type ctxKey struct{}

func TestBackground_NotAgainWithoutAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := windowOf(4000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
			return convo.Edit{Drop: []convo.ID{3, 4}}, nil // too little, but something
		}))
		opts.Limits.Soft, opts.Limits.Low = 1600, 1000
		h := toolTurn(t, opts, 20)
		require.True(t, h.CompactInBackground(t.Context()))
		_, err := h.Wait(t.Context())
		require.NoError(t, err)
		assert.Greater(t, h.Status().Upper, 1600)
		assert.False(t, h.CompactInBackground(t.Context()))
		require.NoError(t, h.Pin(10))
		assert.False(t, h.CompactInBackground(t.Context()), "a pin gives it nothing to do")
		require.NoError(t, h.Unpin(10))
		assert.True(t, h.CompactInBackground(t.Context()))
		_, _ = h.Wait(t.Context())
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
			require.ErrorIs(t, err, convo.ErrStale)
			assert.Equal(t, convo.Stale, r.Outcome)
			assert.Equal(t, 1, runs)
			assert.Equal(t, []convo.Outcome{convo.Applied, convo.Stale}, told)
			continue
		}
		r, err = h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.Applied, r.Outcome)
		assert.Equal(t, 2, runs)
		assert.Equal(t, []convo.Outcome{convo.Applied, convo.Stale, convo.Applied}, told)
	}
}

// More is appended during a flight than it frees: the caller does not get a
// request that is too long, but another round.
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
	r, err := h.CompactIfNeeded(t.Context())
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
		_, err := h.CompactIfNeeded(ctx)
		inside = append(inside, err)
		_, _, err = h.Prepare(ctx)
		inside = append(inside, err)
		_, err = h.Compact(ctx, "")
		inside = append(inside, err)
		_, _, err = h.Fit(ctx, 100_000)
		inside = append(inside, err)
		_, _, err = h.Recover(ctx, s, errors.New("prompt is too long"))
		inside = append(inside, err)
		_, err = h.Wait(ctx)
		inside = append(inside, err)
		assert.False(t, h.CompactInBackground(ctx))

		_, err = other.CompactIfNeeded(ctx)
		assert.NoError(t, err, "another History is free")
		_, err = h.Append(convo.User("a note"))
		assert.NoError(t, err)
		return convo.Truncate{}.Compact(ctx, s, g)
	}))
	h = toolTurn(t, opts, 20)
	other = toolTurn(t, windowOf(1000, nil), 20)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
	require.Len(t, inside, 6)
	for i, err := range inside {
		require.ErrorIs(t, err, convo.ErrReentrant, "%d", i)
	}
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
			require.ErrorIs(t, err, convo.ErrClosed)
			assert.Equal(t, convo.Failed, r.Outcome)
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
			assert.Equal(t, time.Hour, time.Since(start), "Close waits for its goroutine")
		})
	})
	t.Run("foreground and waiters", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, slow(time.Hour)), 20)
			errs := make(chan error, 3)
			for range 3 {
				go func() { _, err := h.CompactIfNeeded(t.Context()); errs <- err }()
			}
			synctest.Wait()
			require.NoError(t, h.Close())
			for range 3 {
				require.ErrorIs(t, <-errs, convo.ErrClosed)
			}
		})
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
		_, err := h.Append(convo.User("late"))
		require.ErrorIs(t, err, convo.ErrClosed)
	})
}

// A test that fails inside a fake ends its goroutine: nothing stays locked.
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
		_, _ = h.CompactIfNeeded(t.Context())
	}()
	<-over
	require.True(t, h.CompactInBackground(t.Context()))
	r, err := h.Wait(t.Context())
	require.ErrorContains(t, err, "ended the goroutine")
	assert.Equal(t, convo.Failed, r.Outcome)
	exit = false
	r, err = h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.Applied, r.Outcome)
}

// What was pinned or appended during a flight is there after it.
func TestFlight_PinMeanwhile(t *testing.T) {
	var h *convo.History
	opts := windowOf(1000, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		e, err := convo.Truncate{}.Compact(ctx, s, g)
		require.NoError(t, h.Pin(6))
		mustAppend(t, h, convo.User("meanwhile"))
		return e, err
	}))
	h = toolTurn(t, opts, 20)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{5, 6}, r.Kept)
	assert.Equal(t, []convo.ID{5, 6}, h.Pinned())
	assert.Equal(t, "meanwhile", textsOf(h.Snapshot())[h.Len()-1])
}

// Others append faster than it can compact: it gives up, and says so.
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
	r, err := h.CompactIfNeeded(t.Context())
	var limit *convo.LimitError
	require.ErrorAs(t, err, &limit)
	assert.False(t, r.Fits)
	assert.Equal(t, convo.Applied, r.Outcome)
	assert.Greater(t, runs, 4)
	assert.Less(t, runs, 20)
}
