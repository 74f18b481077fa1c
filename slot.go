package convo

import (
	"context"
	"sync"
)

// A slot lets one operation of a kind run at a time on a History: a compaction, a Do, a
// step of Run, or an access to the log. It is a channel of one, so that a waiter can stop
// when its ctx ends.
type slot chan struct{}

func newSlot() slot { return make(slot, 1) }

// tryTake takes the slot if it is free.
func (s slot) tryTake() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// take waits for the slot until ctx ends or done is closed. stopped begins the error
// for a ctx that has ended. A free slot is taken even if ctx has ended.
func (s slot) take(ctx context.Context, done <-chan struct{}, stopped string) error {
	if s.tryTake() {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-done:
		return ErrClosed
	case <-ctx.Done():
		return errorf("%s: %w", stopped, causeOf(ctx))
	}
}

func (s slot) release() { <-s }

// mark returns a ctx for the caller's code that the operation in the slot runs.
func (s slot) mark(ctx context.Context) context.Context { return context.WithValue(ctx, s, true) }

// enter returns ctx, or one that never ends if it is nil. If the operation in the slot
// has marked ctx, waiting for the slot would never end, and the error is ErrReentrant.
func (s slot) enter(ctx context.Context) (context.Context, error) {
	switch {
	case ctx == nil:
		return context.Background(), nil
	case ctx.Value(s) != nil:
		return ctx, ErrReentrant
	}
	return ctx, nil
}

// A lane is a slot whose operation can be stopped from outside.
type lane struct {
	slot
	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the operation; nil: none runs
}

// begin returns the ctx for the caller's code that the operation in the slot runs. It
// ends by stop.
func (l *lane) begin(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(l.mark(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel = cancel
	return ctx
}

// stop ends the ctx of the operation that runs, if there is one.
func (l *lane) stop(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel(cause)
		l.cancel = nil // which also releases the ctx
	}
}

// end ends the operation, with its ctx, and releases the slot.
func (l *lane) end(cause error) {
	l.stop(cause)
	l.release()
}
