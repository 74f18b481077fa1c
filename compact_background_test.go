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

	"github.com/seed-c1b73e60/convo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		r, err = h.CompactIfNeeded(t.Context())
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
	require.NotEmpty(t, first.Kept)
	require.NotEmpty(t, first.Links)
	second, err := h.Wait(t.Context())
	require.NoError(t, err)
	for _, ids := range [][]convo.ID{first.Dropped, first.Summarised, first.Cleared, first.Kept} {
		clear(ids)
	}
	clear(first.Links)
	third, err := h.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, second, third)
	for _, ids := range [][]convo.ID{second.Dropped, second.Summarised, second.Cleared, second.Kept} {
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
			return convo.Summary{Text: "said: " + req.Messages[0].Text()}, nil
		}), MaxTokens: 100, Window: -1, Timeout: -1})
		opts.Limits.Soft, opts.Limits.Low = 2000, 1000
		h := historyOf(t, opts, convo.User("my key is 1234"), convo.Assistant(strings.Repeat("a", 4000)), convo.User("q"), convo.Assistant("a"), convo.User("r"))
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
// summary. Each entry goes once, and what is appended meanwhile stays.
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
			assert.Equal(t, 1, calls, "not asked again right after it failed")
			r, err = h.Wait(t.Context())
			require.NoError(t, err)
			require.ErrorContains(t, r.Cause, "model is down")
		})
	}
}
