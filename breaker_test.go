package convo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
)

// aboveHigh returns a History above its high mark and far below its limit.
func aboveHigh(t testing.TB, c convo.CompactionStrategy) *convo.History {
	t.Helper()
	h, _ := aboveHighTold(t, c)
	return h
}

// aboveHighTold is aboveHigh with the reports that Options.OnCompaction is
// given.
func aboveHighTold(t testing.TB, c convo.CompactionStrategy) (h *convo.History, told *[]convo.Report) {
	t.Helper()
	opts := windowOf(40_000, c)
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	told = new([]convo.Report)
	var mu sync.Mutex
	opts.OnCompaction = func(r convo.Report) {
		mu.Lock()
		defer mu.Unlock()
		*told = append(*told, r)
	}
	return toolTurn(t, opts, 30), told
}

// check runs CompactIfNeeded on a goroutine of its own, which the code under
// test may end.
func check(ctx context.Context, h *convo.History) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = h.CompactIfNeeded(ctx)
	}()
	<-over
}

// Every call of a summarizer counts as a failure, however it ends, unless its
// summary was used.
func TestBreaker_CountsCallsThatWereMade(t *testing.T) {
	type answer = func(h *convo.History) (convo.Summary, error)
	for name, tt := range map[string]answer{
		"an error":            func(*convo.History) (convo.Summary, error) { return convo.Summary{}, errors.New("down") },
		"another's ErrStale":  func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrStale },
		"another's ErrClosed": func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrClosed },
		"ErrStale, wrapped": func(*convo.History) (convo.Summary, error) {
			return convo.Summary{}, fmt.Errorf("x: %w", convo.ErrStale)
		},
		"ErrNoGain":             func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrNoGain },
		"ErrBreaker":            func(*convo.History) (convo.Summary, error) { return convo.Summary{}, convo.ErrBreaker },
		"another's cancel":      func(*convo.History) (convo.Summary, error) { return convo.Summary{}, context.Canceled },
		"a panic":               func(*convo.History) (convo.Summary, error) { panic("x") },
		"a panic with ErrStale": func(*convo.History) (convo.Summary, error) { panic(convo.ErrStale) },
		"a panic with ErrNoGain": func(*convo.History) (convo.Summary, error) {
			panic(convo.ErrNoGain)
		},
		"a goroutine that ends": func(*convo.History) (convo.Summary, error) {
			runtime.Goexit()
			return convo.Summary{}, nil
		},
		"an edit of its own": func(h *convo.History) (convo.Summary, error) {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Summary: &convo.Summary{Text: "mine"}})
			return convo.Summary{Text: "x"}, err
		},
		"a pin of all": func(h *convo.History) (convo.Summary, error) {
			for id := convo.ID(2); id <= 60; id++ {
				if err := h.Pin(id); err != nil {
					return convo.Summary{}, err
				}
			}
			return convo.Summary{Text: "x"}, nil
		},
		"an empty summary": func(*convo.History) (convo.Summary, error) { return convo.Summary{}, nil },
	} {
		for _, where := range []string{"alone", "in a ladder"} {
			t.Run(name+", "+where, func(t *testing.T) {
				var h *convo.History
				calls := 0
				var c convo.CompactionStrategy = convo.Summarize{Window: -1, With: convo.SummarizerFunc(
					func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
						calls++
						return tt(h)
					})}
				if where == "in a ladder" {
					c = convo.Chain(convo.ClearToolResults{MinResult: 1 << 30}, c)
				}
				h = aboveHigh(t, c)
				for range 50 {
					check(t.Context(), h)
					for _, id := range h.Snapshot().Pinned() {
						require.NoError(t, h.Unpin(id))
					}
				}
				want := 2 // a call that fails is repeated once
				if name == "an edit of its own" || name == "a pin of all" {
					want = 1
				}
				assert.Equal(t, want, calls)
			})
		}
	}
}

// An error from a summarizer or a panic is a failure, even if its value is
// ErrNoGain or ErrStale: it is not taken for a compaction that declined, or for
// a stale snapshot.
func TestBreaker_ErrorsOfStrangersAreFailures(t *testing.T) {
	for _, cause := range []error{convo.ErrStale, convo.ErrClosed, convo.ErrNoGain, convo.ErrBreaker} {
		fails := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			return convo.Summary{}, cause
		})
		panics := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) { panic(cause) })
		for name, c := range map[string]convo.CompactionStrategy{
			"a summarizer's error":       convo.Summarize{Window: -1, With: fails},
			"a summarizer's panic":       convo.Summarize{Window: -1, With: panics},
			"a summarizer's, in a chain": convo.Chain(noStandIn(convo.Summarize{Window: -1, With: fails})),
			"a strategy's panic":         convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) { panic(cause) }),
		} {
			t.Run(fmt.Sprintf("%s, %v", name, cause), func(t *testing.T) {
				h, told := aboveHighTold(t, c)
				r := requireFailed(t)(h.CompactIfNeeded(t.Context()))
				require.ErrorIs(t, r.Cause, cause)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.Equal(t, []convo.Report{r}, *told)
			})
		}
	}
	for _, cause := range []error{convo.ErrStale, convo.ErrClosed} { // of another History, and told as any other
		var told []convo.Report
		opts := windowOf(1000, convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
			return convo.Edit{}, cause
		}))
		opts.OnCompaction = func(r convo.Report) { told = append(told, r) }
		h := toolTurn(t, opts, 20)
		r, err := h.CompactIfNeeded(t.Context())
		require.ErrorIs(t, err, cause)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		require.Len(t, told, 1)
		assert.Equal(t, convo.OutcomeFailed, told[0].Outcome)
	}
}

// The breaker stays closed when no summarizer was called.
func TestBreaker_NotOpenedWithoutACall(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for name, tt := range map[string]struct {
		first convo.CompactionStrategy
		ctx   context.Context
	}{
		"a ctx that was over":        {convo.ClearToolResults{MinFree: 1 << 30}, over},
		"a link that is not a model": {convo.SlidingWindow{KeepLast: 1000}, over},
	} {
		t.Run(name, func(t *testing.T) {
			rec := new(recorder)
			var c convo.CompactionStrategy = convo.Summarize{With: rec, Window: -1, MaxTokens: 200}
			h, told := aboveHighTold(t, convo.Chain(tt.first, c))
			for i := range 3 {
				r := requireFailed(t)(h.CompactIfNeeded(tt.ctx))
				require.ErrorIs(t, r.Cause, context.DeadlineExceeded)
				assert.Len(t, *told, i+1)
			}
			assert.Empty(t, rec.requests)
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			assert.Len(t, rec.requests, 1)
		})
	}
	t.Run("a strategy of the caller's own", func(t *testing.T) {
		runs := 0
		h := aboveHigh(t, convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
			runs++
			assert.NoError(t, g.NoModel)
			return convo.Truncate{}.Compact(ctx, s, g)
		}))
		r := requireFailed(t)(h.CompactIfNeeded(over))
		require.ErrorIs(t, r.Cause, context.DeadlineExceeded)
		assert.Zero(t, runs)
		requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
		assert.Equal(t, 1, runs)
	})
	t.Run("a window that holds no request", func(t *testing.T) {
		rec := new(recorder)
		h, told := aboveHighTold(t, convo.Summarize{With: rec, Window: 100})
		for i := range 3 { // the mistake is the caller's, and reported each time
			r := requireFailed(t)(h.CompactIfNeeded(t.Context()))
			require.ErrorContains(t, r.Cause, "Summarize.Window")
			assert.Len(t, *told, i+1)
		}
		assert.Empty(t, rec.requests)
	})
}

// A compaction that called no model says nothing about the summarizer, so the
// count of its failures stays.
func TestBreaker_KeptWhileNoModelIsCalled(t *testing.T) {
	calls, cuts := 0, false
	cutter := convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if !cuts {
			return convo.Edit{}, convo.ErrNoGain
		}
		return convo.Truncate{}.Compact(ctx, s, g)
	})
	h := aboveHigh(t, convo.Chain(cutter, noStandIn(convo.Summarize{With: broken(&calls), Window: -1})))
	add := func(n int) { mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("x", n))) }
	for calls < 6 {
		_, _ = h.CompactIfNeeded(t.Context())
		add(10)
	}
	add(1000) // the breaker is closed
	cuts = true
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, r.Outcome)
	cuts = false
	add(1000)
	r = requireFailed(t)(h.CompactIfNeeded(t.Context()))
	require.ErrorContains(t, r.Cause, "model is down")
	require.Equal(t, 8, calls)
	add(450) // more than MinFree/2, less than eight times that
	requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
	assert.Equal(t, 8, calls)
}

// A summarizer that ignores its ctx is abandoned when ctx ends. That counts as a
// failure from then on, not from when the call returns, and the summary it
// returns then is no success.
func TestBreaker_AbandonedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		h := aboveHigh(t, convo.Summarize{Window: -1, Timeout: -1, With: convo.SummarizerFunc(
			func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
				mu.Lock()
				calls++
				mu.Unlock()
				time.Sleep(time.Hour)
				return convo.Summary{Text: "late"}, nil
			})})
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			go func() { _, _ = h.CompactIfNeeded(ctx) }()
			time.Sleep(2 * time.Second)
		}
		mu.Lock()
		assert.Equal(t, 1, calls)
		mu.Unlock()
		time.Sleep(2 * time.Hour) // it has returned
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.ErrorIs(t, r.Cause, convo.ErrBreaker)
		assert.Equal(t, 1, calls)

		// It was one failure, not two: MinFree/2 more, and it is asked again.
		mustAppend(t, h, convo.User("and"), convo.Assistant(strings.Repeat("x", 100)))
		requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
		assert.Equal(t, 2, calls)
	})
}

// When a rollback makes the edit stale, the summarizer has not failed.
func TestBreaker_RollbackMeanwhile(t *testing.T) {
	var h *convo.History
	calls := 0
	var outcomes []convo.Outcome
	opts := windowOf(40_000, convo.Summarize{Window: -1, MaxTokens: 200, KeepTokens: -1, With: convo.SummarizerFunc(
		func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
			if calls++; calls == 1 {
				_, err := h.Rewind(1)
				return convo.Summary{Text: "stale"}, err
			}
			return convo.Summary{Text: "fine"}, nil
		})})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	opts.OnCompaction = func(r convo.Report) { outcomes = append(outcomes, r.Outcome) }
	h = toolTurn(t, opts, 30)
	mustAppend(t, h, convo.User("more"), convo.Assistant(strings.Repeat("so ", 100)), convo.User("thanks"))
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, 2, calls, "tried again at once")
	assert.Equal(t, []convo.Outcome{convo.OutcomeStale, convo.OutcomeApplied}, outcomes)
}

// A summary that a Chain refuses, because it frees nothing, counts as a failure of the
// summarizer.
func TestBreaker_SummaryThatAChainRefuses(t *testing.T) {
	runs := 0
	own := convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if g.NoModel != nil {
			return convo.Edit{}, convo.ErrBreaker
		}
		runs++
		e := convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "x"}}
		next, err := s.With(e)
		if err != nil {
			return e, err
		}
		e.Summary.Text = strings.Repeat("x", s.Tokens()-next.Tokens()+2)
		return e, nil
	})
	h := aboveHigh(t, convo.Chain(own, convo.Truncate{}))
	for range 5 {
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome, "by the next link")
		mustAppend(t, h, convo.User("and"), convo.Assistant("so"))
		l := convo.Limits{Window: 40_000, Reserve: -1, High: h.Status().Upper - 1, MinFree: 200}
		l.Low = l.High - 300
		l.Soft = l.High - 1
		require.NoError(t, h.SetLimits(l))
	}
	assert.Equal(t, 1, runs)
}

func TestBreaker(t *testing.T) {
	calls := 0
	opts := windowOf(40_000, convo.Summarize{With: broken(&calls), Window: -1})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	h := toolTurn(t, opts, 30) // above high water
	// Each failure doubles what must be appended until the next try, from
	// MinFree/2 to High - Low.
	var gaps []int
	appended := 0
	for len(gaps) < 6 {
		before := calls
		r, err := h.CompactIfNeeded(t.Context())
		require.NoError(t, err)
		assert.True(t, r.Fits)
		if calls > before {
			require.ErrorContains(t, r.Cause, "model is down")
			assert.Equal(t, convo.OutcomeFailed, r.Outcome)
			gaps = append(gaps, appended*9/8)
			appended = 0
		} else {
			assert.Equal(t, convo.OutcomeDeclined, r.Outcome)
			assert.ErrorIs(t, r.Cause, convo.ErrBreaker)
		}
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		appended += 9
	}
	for i, least := range []int{0, 100, 200, 400, 800, 1000} {
		assert.InDelta(t, least, gaps[i], 11)
	}

	// What is asked for by hand is not bound by it.
	before := calls
	_, err := h.Compact(t.Context(), "")
	require.Error(t, err)
	assert.Equal(t, before+2, calls, "and it is repeated")
}

func TestBreaker_Resets(t *testing.T) {
	calls, down := 0, true
	with := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		if calls++; down {
			return convo.Summary{}, errors.New("model is down")
		}
		return convo.Summary{Text: "fine"}, nil
	})
	opts := windowOf(40_000, convo.Summarize{With: with, Window: -1, MaxTokens: 200})
	opts.Limits.High, opts.Limits.Low, opts.Limits.MinFree = 3000, 2000, 200
	h := toolTurn(t, opts, 30)
	requireFailed(t)(h.CompactIfNeeded(t.Context()))
	for down = false; calls == 2; {
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		requireNoFailure(t)(h.CompactIfNeeded(t.Context()))
	}
	assert.LessOrEqual(t, h.Status().Upper, 2000)
	// After the success, a failure counts as the first again.
	var r convo.Report
	for down = true; calls == 3; {
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		r, _ = h.CompactIfNeeded(t.Context())
	}
	requireFailed(t)(r, nil)
	appended := 0
	for calls == 5 {
		mustAppend(t, h, convo.User("and"), convo.Assistant("I see."))
		appended += 9
		_, _ = h.CompactIfNeeded(t.Context())
	}
	assert.LessOrEqual(t, appended*9/8, 111)
}

// A call that was made counts as a failure even if the caller's ctx ended it:
// callers build timeouts out of cancel functions.
func TestBreaker_EndedContext(t *testing.T) {
	var calls atomic.Int32
	waits := convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
		calls.Add(1)
		<-ctx.Done()
		return convo.Summary{}, ctx.Err()
	})
	for _, tt := range []struct {
		name  string
		ctx   func(context.Context) (context.Context, context.CancelFunc)
		calls int
	}{
		{"cancelled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, 1},
		{"timed out", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls.Store(0)
				opts := windowOf(40_000, convo.Summarize{With: waits, Window: -1})
				opts.Limits.High = 3000
				h := toolTurn(t, opts, 30)
				for range 2 {
					ctx, cancel := tt.ctx(t.Context())
					_, _ = h.CompactIfNeeded(ctx)
					cancel()
				}
				assert.EqualValues(t, tt.calls, calls.Load())
			})
		})
	}
}

// A summary that frees nothing counts as a failure of the summarizer.
func TestBreaker_SummaryThatFreesNothing(t *testing.T) {
	calls := 0
	opts := windowOf(40_000, convo.StrategyFunc(func(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		if g.NoModel != nil {
			return convo.Edit{}, convo.ErrBreaker
		}
		calls++
		e := convo.Edit{Drop: []convo.ID{3, 4}, Summary: &convo.Summary{Text: "x"}}
		next, err := s.With(e)
		if err != nil {
			return e, err
		}
		e.Summary.Text = strings.Repeat("x", 1+s.Tokens()-next.Tokens())
		return e, nil
	}))
	opts.Limits.High = 1000
	h := toolTurn(t, opts, 20)
	for range 20 {
		_, _ = h.CompactIfNeeded(t.Context())
	}
	assert.Equal(t, 1, calls)
}

// A summarizer that takes back what it reads, each time, is excused once.
func TestBreaker_RollbackByTheSummarizer(t *testing.T) {
	var h *convo.History
	calls := 0
	h = aboveHigh(t, convo.Summarize{Window: -1, With: convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		calls++
		_, err := h.Rewind(1000)
		for range 40 {
			mustAppend(t, h, convo.User(strings.Repeat("u", 1000)), convo.Assistant(strings.Repeat("a", 1000)))
		}
		return convo.Summary{Text: "short"}, err
	})})
	h2 := h.Snapshot()
	require.Positive(t, h2.Len())
	_, _ = h.CompactIfNeeded(t.Context())
	require.Equal(t, 2, calls, "one more try after a rollback, in the same call")
	for range 50 {
		_, _ = h.CompactIfNeeded(t.Context())
	}
	assert.LessOrEqual(t, calls, 12, "what is appended closes the breaker again, later each time")
}

// Behind the breaker, the failure that opened it can still be seen, alone and in
// a ladder. The end of a ctx that is not the caller's own cannot.
func TestBreaker_ShowsTheFailure(t *testing.T) {
	unavailable := errors.New("503 Service Unavailable")
	fails := convo.Summarize{Window: -1, With: convotest.Failing{Err: unavailable}}
	for name, c := range map[string]convo.CompactionStrategy{
		"alone": fails, "in a ladder": convo.Chain(convo.ClearToolResults{MinResult: 1 << 30}, noStandIn(fails)),
	} {
		opts := windowOf(1000, c)
		h := toolTurn(t, opts, 20)
		_, err := h.CompactIfNeeded(t.Context())
		require.ErrorIs(t, err, unavailable, name)
		require.NotErrorIs(t, err, convo.ErrBreaker, name)
		for range 2 {
			r, err := h.CompactIfNeeded(t.Context())
			require.ErrorIs(t, err, convo.ErrBreaker, name)
			require.ErrorIs(t, err, unavailable, name)
			assert.ErrorContains(t, err, "; summarizer is backing off after failures, the last of which was: ", name)
			assert.Equal(t, convo.OutcomeFailed, r.Outcome, name)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	h := toolTurn(t, windowOf(1000, convo.Summarize{Window: -1, With: convo.SummarizerFunc(
		func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
			cancel()
			return convo.Summary{}, ctx.Err()
		})}), 20)
	_, err := h.CompactIfNeeded(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = h.CompactIfNeeded(t.Context())
	require.ErrorIs(t, err, convo.ErrBreaker)
	require.NotErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "context canceled")
}
