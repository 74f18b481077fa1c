package convo

import (
	"context"
	"sync"
	"sync/atomic"
)

// A slot lets one operation of a kind run at a time on a History: a compaction, a Do, a
// step of Run, or an access to the log. It is a channel of one, so that a waiter can stop
// when its ctx ends.
type slot chan struct{}

// slots are the locks of operations of a History. They are taken before its lock.
type slots struct {
	compacting lane          // taken while a compaction runs
	answering  slot          // taken while a Do runs
	running    slot          // taken while a step of Run runs
	saving     slot          // taken while the log is written or compared with
	curing     sync.Mutex    // held while Recover clears what a provider has refused, or puts it back
	done       chan struct{} // closed by close
	open       atomic.Bool   // until then; the zero History counts as closed
}

// init makes the slots of a History that is open.
func (s *slots) init() {
	for _, p := range [...]*slot{&s.compacting.slot, &s.answering, &s.running, &s.saving} {
		*p = make(slot, 1)
	}
	s.done = make(chan struct{})
	s.open.Store(true)
}

// isClosed reports whether the History is closed. While its lock is held, that stays so.
func (s *slots) isClosed() bool { return !s.open.Load() }

// close closes the History, whose lock is held, and reports whether it was open.
func (s *slots) close() bool {
	wasOpen := s.open.Swap(false)
	if wasOpen {
		close(s.done)
	}
	return wasOpen
}

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
// has marked ctx, waiting for the slot would never end, and the error is ErrReentrant. It is
// ErrClosed for the zero slot.
func (s slot) enter(ctx context.Context) (context.Context, error) {
	switch {
	case s == nil:
		return ctx, ErrClosed
	case ctx == nil:
		return context.Background(), nil
	case ctx.Value(s) != nil:
		return ctx, ErrReentrant
	}
	return ctx, nil
}

// A lane is the slot of compactions. They can be stopped from outside, and the newest in the
// background can be waited for.
type lane struct {
	slot
	cancel atomic.Pointer[context.CancelCauseFunc] // of the operation; nil: none runs
	newest atomic.Pointer[background]              // nil: there was none
}

// A background is a compaction that runs on its own goroutine.
type background struct {
	previous *background   // its reports may not be delivered yet; nil: none
	done     chan struct{} // closed when all reports up to this one are delivered
	report   Report        // to be read once done is closed
}

// flightContext returns the ctx for the caller's code that the compaction in the slot runs. It ends
// when the History is closed. If it is closed already, flightContext releases the slot, and the error
// is ErrClosed.
func (s *slots) flightContext(ctx context.Context) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(s.compacting.mark(ctx))
	s.compacting.cancel.Store(&cancel)
	if s.isClosed() {
		s.compacting.end(ErrClosed)
		return nil, ErrClosed
	}
	return ctx, nil
}

// stop ends the ctx of the operation that runs, if there is one.
func (l *lane) stop(cause error) {
	if cancel := l.cancel.Swap(nil); cancel != nil {
		(*cancel)(cause) // which also releases the ctx
	}
}

// end ends the operation, with its ctx, and releases the slot.
func (l *lane) end(cause error) {
	l.stop(cause)
	l.release()
}
