package convo

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A flight is a compaction under way. It holds the one seat of its History
// from take to land. When its ctx ends, the seat is free at once, and what
// the caller's code returns later is thrown away.
type flight struct {
	h      *History
	ctx    context.Context // for the caller's code: it marks the flight, and ends with Close
	cancel context.CancelCauseFunc
	once   sync.Once

	unattended bool        // in the background
	stop       func() bool // keeps the end of ctx from freeing the seat
	disarmed   bool        // stop was called in time

	reports []Report // to be told after landing
}

// flightKey marks the context that a History hands to the caller's code.
type flightKey struct{ h *History }

// isInside reports whether ctx is one that a flight of h handed out.
func (h *History) isInside(ctx context.Context) bool { return ctx.Value(flightKey{h}) != nil }

// fly waits for the seat, runs work, and tells what came of it when the seat
// is free again.
func (h *History) fly(ctx context.Context, why Reason, work func(*flight) (Report, error)) (Report, error) {
	select {
	case h.seat <- struct{}{}:
	default:
		select {
		case h.seat <- struct{}{}:
		case <-h.done:
			return h.ungone(why, ErrClosed)
		case <-ctx.Done():
			r, err := h.ungone(why, endOf(ctx))
			h.tell(r)
			return r, err
		}
	}
	f := h.board(ctx)
	if f == nil {
		return h.ungone(why, ErrClosed)
	}
	defer f.land() // also when the caller's code ends the goroutine
	r, err := work(f)
	f.land()
	f.tell()
	return r, err
}

// board makes a flight for who has just taken the seat; nil when h is closed.
func (h *History) board(ctx context.Context) *flight {
	f := &flight{h: h}
	f.ctx, f.cancel = context.WithCancelCause(context.WithValue(ctx, flightKey{h}, true))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		f.cancel(ErrClosed)
		<-h.seat
		return nil
	}
	h.current = f
	f.arm()
	return f
}

// arm has the flight landed when ctx ends.
func (f *flight) arm() {
	f.stop, f.disarmed = context.AfterFunc(f.ctx, f.leave), false
}

// disarm says why what was made may not be used any more: ctx has ended, and
// the seat may be another's by now. After nil, ctx no longer matters, until
// the flight is armed again.
func (f *flight) disarm() error {
	if !f.stop() {
		return endOf(f.ctx)
	}
	f.disarmed = true
	return nil
}

// leave frees the seat, once.
func (f *flight) leave() { f.once.Do(func() { <-f.h.seat }) }

// land ends a flight.
func (f *flight) land() {
	f.h.mu.Lock()
	if f.h.current == f {
		f.h.current = nil // nor the ctx of its caller
	}
	f.h.mu.Unlock()
	f.leave()
	f.stop()
	f.cancel(nil)
}

// tell tells all reports of a flight that has landed.
func (f *flight) tell() {
	for _, r := range f.reports {
		f.h.tell(r)
	}
	f.reports = nil
}

// endOf is the error of a context that has ended, with its cause.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("convo: compaction ended: %w", cause)
	}
	return fmt.Errorf("convo: compaction ended: %w (%w)", cause, err)
}

// ungone is the report of a compaction that has not begun.
func (h *History) ungone(why Reason, cause error) (Report, error) {
	r := h.present()
	r.Outcome, r.Reason, r.Cause = Failed, why, cause
	return r, cause
}

// present is the report of a compaction that is not needed.
func (h *History) present() (r Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.measureBefore(&r)
	return r
}

// A background is a flight that nobody waits for.
type background struct {
	telling chan struct{} // closed when it has landed and its report is being told
	over    chan struct{} // closed when its goroutine is about to end
	report  Report
	err     error
}

// CompactInBackground starts a compaction on a goroutine of its own when the
// soft mark is passed or the strategy's [Trigger] is due, and tells whether it
// did. It does nothing while another compaction of h is under way, nor when
// nothing has changed since the last one that was applied.
//
// The conversation goes on meanwhile: what is appended stays, in order. The
// strategy gets the values of ctx, not its end; [History.Close] ends it.
func (h *History) CompactInBackground(ctx context.Context) bool {
	if h.ident == nil {
		return false
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if h.isInside(ctx) {
		return false
	}
	var r Report
	if reason, err := h.check(true, &r); reason == notDue && err == nil {
		return false
	}
	select {
	case h.seat <- struct{}{}:
	default:
		return false
	}
	f := h.board(context.WithoutCancel(ctx))
	if f == nil {
		return false
	}
	f.unattended = true
	b := &background{telling: make(chan struct{}), over: make(chan struct{})}
	b.err = errors.New("convo: the strategy ended the goroutine")
	h.mu.Lock()
	h.background = b
	h.mu.Unlock()
	go b.run(f)
	return true
}

func (b *background) run(f *flight) {
	defer close(b.over)
	defer f.tell()
	defer close(b.telling)
	defer f.land()
	defer func() {
		if b.report.Outcome == NotNeeded && b.err != nil { // the goroutine was ended
			b.report, _ = f.h.ungone(ReasonSoft, b.err)
			f.reports = append(f.reports, b.report)
		}
	}()
	b.report, b.err = f.compactIfDue(true)
}

// Wait returns the outcome of the newest compaction in the background: when it
// is over, at once if it is already. NotNeeded when there was none. When ctx
// ends first its error is returned, and the compaction goes on; when h is
// closed first, [ErrClosed].
func (h *History) Wait(ctx context.Context) (Report, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if h.isInside(ctx) {
		return h.ungone(ReasonSoft, ErrReentrant)
	}
	h.mu.Lock()
	b := h.background
	h.mu.Unlock()
	if b == nil {
		return h.present(), nil
	}
	select {
	case <-b.over:
		return b.report, b.err
	default:
	}
	select {
	case <-b.over:
		return b.report, b.err
	case <-h.done:
		return h.ungone(ReasonSoft, ErrClosed)
	case <-ctx.Done():
		return h.ungone(ReasonSoft, endOf(ctx))
	}
}

// Close ends h: reading works afterwards, every change is [ErrClosed]. What
// was charged to a Budget is released. A compaction under way is cancelled;
// Close waits for one in the background to end, so a strategy or summarizer
// must not call it. An OnCompaction may: when the outcome is already being told,
// Close does not wait. Closing twice is fine.
func (h *History) Close() error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		if h.opts.Budget != nil {
			h.opts.Budget.follow(&h.charge, 0)
		}
		if h.done != nil {
			close(h.done)
		}
	}
	f, b := h.current, h.background
	h.mu.Unlock()
	if f != nil {
		f.cancel(ErrClosed)
	}
	if b == nil {
		return nil
	}
	select {
	case <-b.telling: // Options.OnCompaction may close
	default:
		<-b.over
	}
	return nil
}
