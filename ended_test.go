package convo_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/logs"
)

// errLeft is the cause with which the tests end a ctx.
var errLeft = errors.New("the user left")

// untilEnd calls f and waits until ctx ends.
func untilEnd(ctx context.Context, f func()) {
	f()
	<-ctx.Done()
}

// A lateStore is a Store whose calls wait until ctx ends, and fail with err(ctx).
type lateStore struct {
	*convotest.MemStore
	end func()
	err func(ctx context.Context) error
}

func (s *lateStore) Append(ctx context.Context, r convo.Record) error {
	if s.end == nil {
		return s.MemStore.Append(ctx, r)
	}
	untilEnd(ctx, s.end)
	return s.err(ctx)
}

func (s *lateStore) Records(ctx context.Context, key string, from uint64) iter.Seq2[convo.Record, error] {
	if s.end == nil {
		return s.MemStore.Records(ctx, key, from)
	}
	return func(yield func(convo.Record, error) bool) {
		untilEnd(ctx, s.end)
		yield(convo.Record{}, s.err(ctx))
	}
}

// ended are the ways in which caller-supplied code returns after its ctx has ended.
var ended = map[string]func(ctx context.Context) error{
	"ctx's error": func(ctx context.Context) error { return ctx.Err() },
	"its cause":   func(ctx context.Context) error { return fmt.Errorf("Post: %w", context.Cause(ctx)) },
	"another":     func(context.Context) error { return errors.New("connection reset") },
	"a panic":     func(context.Context) error { panic("reset") },
}

// Whatever is called with a ctx that ends fails with an error that matches both ctx's error
// and its cause, however the caller's code returns.
func TestErrors_EndedContext(t *testing.T) {
	for how, returns := range ended {
		send := func(end func()) convo.Send {
			return func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
				untilEnd(ctx, end)
				return convo.Reply{}, returns(ctx)
			}
		}
		full := func(end func()) *convo.History { // only a strategy that waits for ctx makes it fit
			return historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.StrategyFunc(func(ctx context.Context, _ *convo.Snapshot, _ convo.Goal) (convo.Edit, error) {
				untilEnd(ctx, end)
				return convo.Edit{}, returns(ctx)
			})}, append(smallTalk(30), convo.User("the last"))...)
		}
		byModel := func(end func()) *convo.History {
			return historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.Summarize{Window: -1, With: convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
				untilEnd(ctx, end)
				return convo.Summary{}, returns(ctx)
			})}}, append(smallTalk(30), convo.User("the last"))...)
		}
		stored := func(end func()) (*lateStore, *convo.History) {
			s := &lateStore{MemStore: new(convotest.MemStore), err: returns}
			h, err := convo.Open(t.Context(), s, "chat", nil)
			require.NoError(t, err)
			mustAppend(t, h, convo.User("q"))
			require.NoError(t, h.Save(t.Context()))
			mustAppend(t, h, convo.Assistant("a"))
			s.end = end
			return s, h
		}
		for name, call := range map[string]func(ctx context.Context, end func()) error{
			"Do": func(ctx context.Context, end func()) error {
				_, err := historyOf(t, nil, convo.User("q")).Do(ctx, send(end))
				return err
			},
			"Run": func(ctx context.Context, end func()) error {
				_, err := historyOf(t, nil, convo.User("q")).Run(ctx, send(end), convo.RunOptions{})
				return err
			},
			"Run, in a tool": func(ctx context.Context, end func()) error {
				h := historyOf(t, nil, convo.User("q"), convo.Assistant("", callOf("c")))
				_, err := h.Run(ctx, send(func() {}), convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "tool"}, Run: func(ctx context.Context, _ convo.ToolCall) ([]convo.Part, error) {
					untilEnd(ctx, end)
					return nil, returns(ctx)
				}}}})
				return err
			},
			"Steps": func(ctx context.Context, end func()) (last error) {
				for _, err := range historyOf(t, nil, convo.User("q")).Steps(ctx, send(end), convo.RunOptions{}) {
					last = err
				}
				return last
			},
			"Prepare": func(ctx context.Context, end func()) error {
				_, _, err := full(end).Prepare(ctx)
				return err
			},
			"CompactIfNeeded": func(ctx context.Context, end func()) error {
				_, err := full(end).CompactIfNeeded(ctx)
				return err
			},
			"Compact": func(ctx context.Context, end func()) error {
				_, err := full(end).Compact(ctx, "")
				return err
			},
			"Compact, in a summarizer": func(ctx context.Context, end func()) error {
				_, err := byModel(end).Compact(ctx, "")
				return err
			},
			"MakeRoom": func(ctx context.Context, end func()) error {
				_, _, err := full(end).MakeRoom(ctx, 10)
				return err
			},
			"Recover": func(ctx context.Context, end func()) error {
				h := full(end)
				_, _, err := h.Recover(ctx, h.Snapshot(), errTooLong)
				return err
			},
			"Handoff": func(ctx context.Context, end func()) error {
				_, err := historyOf(t, nil, append(smallTalk(30), convo.User("the last"))...).Handoff(ctx, convo.SummarizerFunc(func(ctx context.Context, _ convo.SummaryRequest) (convo.Summary, error) {
					untilEnd(ctx, end)
					return convo.Summary{}, returns(ctx)
				}), "")
				return err
			},
			"Wait": func(ctx context.Context, end func()) error {
				release, started := make(chan struct{}), make(chan struct{})
				h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 500}, Strategy: convo.StrategyFunc(func(context.Context, *convo.Snapshot, convo.Goal) (convo.Edit, error) {
					close(started)
					<-release
					return convo.Edit{}, nil
				})}, append(smallTalk(30), convo.User("the last"))...)
				h.CompactInBackground(t.Context())
				<-started
				go end()
				_, err := h.Wait(ctx)
				close(release)
				_, again := h.Wait(t.Context())
				require.NoError(t, again)
				return err
			},
			"Save": func(ctx context.Context, end func()) error {
				_, h := stored(end)
				return h.Save(ctx)
			},
			"Reload": func(ctx context.Context, end func()) error {
				_, h := stored(end)
				_, _, err := h.Reload(ctx)
				return err
			},
			"Open": func(ctx context.Context, end func()) error {
				s, _ := stored(end)
				_, err := convo.Open(ctx, s, "chat", nil)
				return err
			},
			"Load": func(ctx context.Context, end func()) error {
				s, _ := stored(end)
				_, err := convo.Load(ctx, s, "chat", 0)
				return err
			},
			"Copy": func(ctx context.Context, end func()) error {
				s, _ := stored(end)
				return logs.Copy(ctx, new(convotest.MemStore), "copy", s, "chat")
			},
			"Archive": func(ctx context.Context, end func()) (last error) {
				_, h := stored(end)
				for _, err := range h.Archive(ctx, convo.Range{First: 1, Last: 9}) {
					last = err
				}
				return last
			},
		} {
			if ofStore[name] && how != "ctx's error" && how != "its cause" {
				continue // what a Store has found out, such as a conflict, remains as it is
			}
			t.Run(name+", "+how, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				err := call(ctx, func() { cancel(errLeft) })
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, errLeft)
				assert.NotContains(t, err.Error(), "\n")

				if givesLess[name] {
					return
				}
				ctx, stop := context.WithTimeoutCause(t.Context(), time.Millisecond, errLeft)
				defer stop()
				err = call(ctx, func() {})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorIs(t, err, errLeft)
			})
		}
	}
}

// ofStore are the calls in which a Store returns the error, and givesLess are those that give
// a model less time than ctx has.
var (
	ofStore   = map[string]bool{"Save": true, "Reload": true, "Open": true, "Load": true, "Copy": true, "Archive": true}
	givesLess = map[string]bool{"Compact, in a summarizer": true}
)
