package convo_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// hanging is a summarizer that ignores its ctx and returns only after a day.
var hanging = convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
	time.Sleep(24 * time.Hour)
	return convo.Summary{Text: "late"}, nil
})

// A call of a model has a bound of its own. After it the next links run, under the
// same ctx, and there is time left for them.
func TestTimeout_NextLinksRun(t *testing.T) {
	for _, with := range []struct {
		name string
		convo.Summarizer
	}{{"looks at its ctx", convotest.Slow{}}, {"ignores its ctx", hanging}} {
		for _, tt := range []struct {
			name     string
			timeout  time.Duration // Summarize.Timeout
			deadline time.Duration // of ctx; 0: none
			want     time.Duration // when the model was given up
			says     string
		}{
			{"a minute", 0, 0, time.Minute, "no answer within 1m0s; raise Summarize.Timeout"},
			{"a timeout", 10 * time.Second, 0, 10 * time.Second, "no answer within 10s; raise Summarize.Timeout"},
			{"a far deadline", 0, time.Hour, time.Minute, "no answer within 1m0s; raise Summarize.Timeout"},
			{"a deadline", 0, 20 * time.Second, 15 * time.Second, "no answer within three quarters of the time until the deadline of ctx"},
			{"no bound but a deadline", -1, 20 * time.Second, 15 * time.Second, "no answer within three quarters of the time until the deadline of ctx"},
			{"a long timeout and a deadline", 18 * time.Second, 20 * time.Second, 15 * time.Second, "no answer within three quarters of the time until the deadline of ctx"},
		} {
			t.Run(with.name+", "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					summarize := convo.Summarize{With: with, Window: -1, Timeout: tt.timeout}
					h := toolTurn(t, windowOf(1000, convo.Chain(summarize, convo.Truncate{})), 20)
					ctx, cancel := context.WithCancel(t.Context())
					if tt.deadline > 0 {
						ctx, cancel = context.WithTimeout(t.Context(), tt.deadline)
					}
					defer cancel()
					start := time.Now()
					r, err := h.CompactIfNeeded(ctx)
					require.NoError(t, err)
					require.NoError(t, ctx.Err())
					assert.Equal(t, tt.want, time.Since(start))
					assert.Equal(t, convo.OutcomeApplied, r.Outcome)
					assert.Equal(t, 1, r.Calls)
					require.Len(t, r.Links, 2)
					require.ErrorContains(t, r.Links[0].Cause, tt.says)
					require.ErrorIs(t, r.Links[0].Cause, context.DeadlineExceeded)
					assert.Equal(t, convo.OutcomeApplied, r.Links[1].Outcome)
					time.Sleep(25 * time.Hour)
				})
			})
		}
	}
}

// All calls for one summary together leave a quarter of the time.
func TestTimeout_OfSeveralCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &convotest.Recorder{With: convotest.Slow{For: 7 * time.Second}}
		h := toolTurn(t, windowOf(1500, convo.Chain(convo.Summarize{With: rec, MaxTokens: 100, Window: 2500, KeepTokens: -1}, convo.Truncate{})), 40)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		r, err := h.CompactIfNeeded(ctx)
		require.NoError(t, err)
		assert.Equal(t, convo.OutcomeApplied, r.Outcome)
		assert.Equal(t, 3, rec.Calls(), "the third has no time left")
		assert.Equal(t, 15*time.Second, time.Since(start))
	})
}

// A summary that arrives in time is used, however close the bound is, and a
// negative timeout bounds nothing.
func TestTimeout_InTime(t *testing.T) {
	for timeout, takes := range map[time.Duration]time.Duration{0: time.Minute - 1, time.Second: time.Second - 1, -1: 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			h := toolTurn(t, windowOf(1000, convo.Summarize{With: convotest.Slow{For: takes}, MaxTokens: 100, Window: -1, Timeout: timeout}), 20)
			r, err := h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			assert.Equal(t, convo.OutcomeApplied, r.Outcome)
			assert.NotEmpty(t, r.Summarised)
		})
	}
}

// When ctx itself ends, by a cancel or by its deadline, nothing is given up: not
// even what a link before the one that was waited for had planned. The strategy
// may be one of the package or one of the caller, and may look at its ctx or not.
func TestEndedContext_GivesNothingUp(t *testing.T) {
	type summarize = func(context.Context) error // waits
	waits := map[string]summarize{
		"looks at its ctx": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"ignores its ctx":  func(context.Context) error { time.Sleep(24 * time.Hour); return nil },
	}
	strategies := map[string]func(wait summarize) convo.CompactionStrategy{
		"a summarizer": func(wait summarize) convo.CompactionStrategy {
			return convo.Summarize{Window: -1, Timeout: -1, With: convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
				return convo.Summary{Text: "late"}, wait(ctx)
			})}
		},
		"a strategy": func(wait summarize) convo.CompactionStrategy {
			return convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
				if err := wait(ctx); err != nil {
					return convo.Edit{}, err
				}
				return convo.Truncate{}.Compact(ctx, s, g)
			})
		},
	}
	ends := map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	}
	for strategyName, make := range strategies {
		for waitName, wait := range waits {
			for endName, end := range ends {
				for _, inChain := range []bool{false, true} {
					for _, fits := range []bool{false, true} {
						if endName == "deadline" && strategyName == "a summarizer" {
							continue // its call ends before ctx does
						}
						t.Run(strategyName+" that "+waitName+", "+endName, func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								c := make(wait)
								if inChain {
									c = convo.Chain(convo.ClearToolResults{KeepLast: 15, MinFreed: -1}, c, convo.Truncate{})
								}
								opts := windowOf(1000, c)
								if fits {
									opts.Limits = convo.Limits{Window: 40_000, Reserve: -1, High: 1000}
								}
								h := toolTurn(t, opts, 20)
								before := h.Snapshot()
								ctx, cancel := end(t.Context())
								defer cancel()
								start := time.Now()
								snap, r, err := h.Prepare(ctx)
								assert.Equal(t, time.Second, time.Since(start))
								if fits {
									require.NoError(t, err)
								} else {
									require.ErrorIs(t, err, ctx.Err())
								}
								assert.Equal(t, fits, r.Fits)
								assert.Equal(t, convo.OutcomeFailed, r.Outcome)
								require.ErrorIs(t, r.Cause, ctx.Err())
								assert.Same(t, before, snap)
								time.Sleep(25 * time.Hour)
								assert.Same(t, before, h.Snapshot())
							})
						})
					}
				}
			}
		}
	}
}

// Nor is anything given up when ctx ends after the strategy has returned.
func TestEndedContext_JustBeforeTheEdit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	armed := false
	opts := windowOf(1500, convo.ClearToolResults{MinFreed: -1})
	opts.Tokenizer = convo.TokenizerFunc(func(text string) int {
		if armed {
			cancel()
		}
		return len(text)
	})
	h := toolTurn(t, opts, 20)
	armed = true
	unchanged(t, h, func() {
		_, err := h.CompactIfNeeded(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A caller that waits for the compaction of another gives nothing up either.
func TestEndedContext_OfAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(1000, convo.Summarize{With: convotest.Slow{For: 30 * time.Second}, Window: -1, MaxTokens: 100}), 20)
		first := make(chan error, 1)
		go func() { _, err := h.CompactIfNeeded(t.Context()); first <- err }()
		synctest.Wait()
		before := h.Snapshot()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, r, err := h.Prepare(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome)
		assert.Same(t, before, h.Snapshot())
		require.NoError(t, <-first, "the other goes on")
	})
}

// Close waits for nothing, and frees everybody who waits for a strategy or a
// summarizer, even one that ignores its ctx.
func TestClose_WaitsForNothing(t *testing.T) {
	for name, c := range map[string]convo.CompactionStrategy{
		"strategy":   deaf(24 * time.Hour),
		"summarizer": convo.Summarize{With: hanging, Window: -1, Timeout: -1},
		"link":       convo.Chain(deaf(24*time.Hour), convo.Truncate{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := toolTurn(t, windowOf(1000, c), 20)
				errs := make(chan error, 3)
				//lint:ignore SA1012 a nil ctx never ends
				go func() { _, err := h.CompactIfNeeded(nil); errs <- err }()
				go func() { _, err := h.Compact(context.Background(), ""); errs <- err }()
				go func() { _, _, err := h.Fit(context.Background(), 10); errs <- err }()
				synctest.Wait()
				before, start := h.Snapshot(), time.Now()
				require.NoError(t, h.Close())
				for range 3 {
					require.ErrorIs(t, <-errs, convo.ErrClosed)
				}
				assert.Zero(t, time.Since(start))
				time.Sleep(25 * time.Hour)
				assert.Equal(t, before.Messages(), h.Snapshot().Messages())
			})
		})
	}
}

// Handoff returns when its ctx ends, whatever the summarizer does, and has no
// other bound.
func TestHandoff_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := toolTurn(t, windowOf(0, nil), 20)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		start := time.Now()
		_, err := h.Handoff(ctx, hanging, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 2*time.Hour, time.Since(start))
		time.Sleep(25 * time.Hour)
	})
}

// A strategy or summarizer that ends its goroutine ends one of its own: its
// caller gets an error.
func TestGoexit_IsAnError(t *testing.T) {
	exits := convo.SummarizerFunc(func(context.Context, convo.SummaryRequest) (convo.Summary, error) {
		runtime.Goexit()
		return convo.Summary{}, nil
	})
	strategy := convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
		runtime.Goexit()
		return convo.Edit{}, nil
	})
	for name, c := range map[string]convo.CompactionStrategy{
		"a strategy": strategy, "a link": convo.Chain(strategy), "a summarizer": convo.Summarize{With: exits, Window: -1},
	} {
		h := toolTurn(t, windowOf(1000, c), 20)
		r, err := h.CompactIfNeeded(t.Context())
		require.ErrorContains(t, err, "ended the goroutine with runtime.Goexit; return an error instead", name)
		assert.Equal(t, convo.OutcomeFailed, r.Outcome, name)
		assert.Equal(t, 1, r.Calls, "%s is taken to have called a model", name)
	}
	h := toolTurn(t, windowOf(1000, convo.Chain(strategy, convo.Summarize{With: exits, Window: -1}, convo.Truncate{})), 20)
	r, err := h.CompactIfNeeded(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome, "by the last link")
	require.NoError(t, h.SetLimits(convo.Limits{}))
	_, err = h.Handoff(t.Context(), exits, "")
	require.ErrorContains(t, err, "ended the goroutine")
}

// The cause of ctx is told together with its error.
func TestEndedContext_Cause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []convo.CompactionStrategy{deaf(time.Hour), convo.Summarize{With: hanging, Window: -1, Timeout: -1}} {
			h := toolTurn(t, windowOf(1000, c), 20)
			// Not even a cause that means something else to this package is
			// taken for it.
			for _, cause := range []error{errors.New("the user pressed Esc"), convo.ErrNoGain, convo.ErrBreaker} {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				r, err := h.Compact(ctx, "")
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, context.Canceled)
				assert.Equal(t, convo.OutcomeFailed, r.Outcome)
				assert.Equal(t, 1, r.Calls)
			}
		}
		time.Sleep(25 * time.Hour)
	})
}

// Strategies of the package run on the goroutine that asks, and say what they
// did up to the end of ctx.
func TestEndedContext_SaysWhatWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		with := convo.SummarizerFunc(func(ctx context.Context, req convo.SummaryRequest) (convo.Summary, error) {
			if calls.Add(1) == 2 {
				time.Sleep(time.Hour)
			}
			return convo.Summary{Text: "so far", Usage: convo.Usage{Input: 100, Output: 10}}, nil
		})
		h := toolTurn(t, windowOf(1500, convo.Chain(convo.Summarize{With: with, MaxTokens: 100, Window: 2500, KeepTokens: -1}, convo.Truncate{})), 40)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, err := h.CompactIfNeeded(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, 2, r.Calls)
		assert.Equal(t, convo.Usage{Input: 100, Output: 10}, r.Usage)
		require.Len(t, r.Links, 1)
		assert.Equal(t, "summarize", r.Links[0].Strategy)
		time.Sleep(time.Hour)
	})
}
