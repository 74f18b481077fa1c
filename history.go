package convo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-c1b73e60/convo/internal/rereads"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A History holds one conversation and keeps it inside a context window. It has system
// entries, at most one summary, and the other entries in ascending ID order. Tool calls
// and their results always pair. Create a History with [New], [Open], [Restore] or
// [Resume]; the zero History is empty and closed.
//
// # Errors
//
// A method returns an error exactly if it did not do what it was asked to, and has then
// changed nothing that a [Snapshot] shows, unless its documentation says otherwise. A
// compaction that fails is not an error of Prepare and Do while the
// request fits: it is in Outcome and Cause of the [Report], logged as a warning, and
// passed to Options.OnCompaction.
//
// A nil ctx never ends. If a method fails because its ctx has ended, the error matches
// ctx.Err and context.Cause, whatever a Send or a Store returned.
//
// # Concurrency
//
// All methods are safe for concurrent use. One Do of a History runs at a time, and one
// compaction; other callers wait until it ends or their own ctx does, and then check
// again. No lock is held while the caller's code runs, so that code may call back;
// [Options] says what it must not call. A strategy and each call of a summarizer run on a
// goroutine of their own: when ctx ends, or the History is closed, the caller returns,
// and a late result is discarded. A panic in OnCompaction or Logger is ignored; any other
// becomes the operation's [*PanicError]. No goroutine outlives the call that started it,
// except that of CompactInBackground, which Close cancels and Wait waits for, and code of
// the caller that ignores its ctx.
//
// # Costs
//
// Append takes amortised constant time; the first one after a rollback or an edit copies the
// pointers of the view. Snapshot, Len, Status, Tokens, pinning the newest exchange, and Prepare
// with nothing to do take constant time; any other pin takes time linear in the number of pins.
// Rollback and Rewind take time linear in what they take back, or in the view if a snapshot
// shares it, and edits, Undo and compactions in the view. Entries that left are freed, unless a
// kept snapshot or report shares memory.
type History struct {
	setup
	slots

	reread atomic.Pointer[rereads.Past] // written by the compaction that has the slot; nil: nothing is known

	mu sync.Mutex // protects the parts
	parts
}

// parts are what a History is made of. Each is a value: a copy of them does not change.
type parts struct {
	view
	meter     meter
	compactor compactor
	recorder  recorder
	talk      talk
	spills    spills
	refusals  refusals
}

// New returns an empty [History]. If options are out of range, the error joins a [*ValueError]
// for each of them.
//
// Set Limits.Window. Without it, and without Limits.High or a strategy that is a [Trigger], the
// conversation is compacted only when a provider refuses a request as too long. The Cause of
// the first report of Prepare then says so, and Options.Logger gets a line.
func New(opts *Options) (*History, error) {
	h, err := newHistory(opts, nil)
	if err != nil {
		return nil, err
	}
	h.charge(h.account)
	h.warnDue(true)
	return h, nil
}

// newHistory returns an empty History. If from is not nil, it uses the key of
// from.
func newHistory(opts *Options, from *identity) (h *History, err error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	limits, faults := o.check()
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	o.Roles = o.Roles.withDefaults()
	o.Priors = maps.Clone(o.Priors)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Strategy == nil {
		o.Strategy = Chain(ClearMedia{}, ClearToolResults{}, extracting{name: Summarize{}.Name()}, Truncate{})
	}
	h = &History{setup: setup{opts: o, reads: readsUnread(o.Strategy)}}
	h.meter = newMeter(limits)
	h.compactor = newCompactor(triggersOf(o.Strategy), o.CacheTTL)
	h.slots.init()
	h.ident = newIdentity(newCounter(o.Tokenizer, o.Overheads), from, o.TagKey)
	h.ident.hint = strings.TrimSpace(text.Valid(o.SummaryHint))
	h.ident.tool = text.Valid(o.RecallTool)
	h.view = view{state: state{id: h.ident, knowledge: knowledge{prior: o.prior("")}.within(limits, false)}}
	h.keepOriginalsLocked()
	if o.Budget != nil {
		h.account = &account{pool: o.Budget}
	}
	defer catch(&err, "Options.Tokenizer")
	h.interruptTokens = h.ident.text(interruptReason)
	h.noteTokens = h.ident.noteTokens()
	return h, nil
}

// keepOriginalsLocked sets the bounds that follow from the window: of a result, and
// of the originals that are kept.
func (h *History) keepOriginalsLocked() {
	bound := int64(h.opts.MaxResult)
	if bound == 0 && h.meter.marks().set.Window > 0 {
		bound = max(int64(h.meter.marks().set.sizes().Limit())/4, minMaxResult)
	}
	h.maxResult.Store(max(bound, 0))
	keep := keepOriginals(h.opts.KeepOriginals, h.meter.marks().set.Window, h.reads)
	keep.archived = h.recorder.book().store != nil
	h.setKeep(keep)
}

// locked calls f with the lock held. f leaves what a snapshot shows as it is.
func (h *History) locked(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// change calls f with the lock held, and charges Options.Budget the size of the next request
// after it. If either panics, all parts stay as they were.
func (h *History) change(f func() error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.parts
	defer func() {
		if p := recover(); p != nil {
			h.restore(&was.view)
			h.parts = was
			panic(p)
		}
		h.settle()
	}()
	err := f()
	h.charge(h.account)
	return err
}

// ifOpen is change, or returns ErrClosed if h is closed.
func (h *History) ifOpen(f func() error) error {
	return h.change(func() error {
		if h.isClosed() {
			return ErrClosed
		}
		return f()
	})
}

// Logger returns Options.Logger, or a logger that discards everything.
func (h *History) Logger() *slog.Logger {
	if h.ident == nil {
		return slog.New(slog.DiscardHandler)
	}
	return h.opts.Logger
}

// ownsLocked returns an error if h is closed or the snapshot is not from h.
func (h *History) ownsLocked(at *Snapshot) error {
	switch {
	case h.isClosed():
		return ErrClosed
	case at == nil:
		return &staleError{Reason: "it is nil; take one with History.Snapshot"}
	case at.owner == nil:
		return &staleError{Reason: "it belongs to no History, since With, NewSnapshot, Load or JSON made it; make a History of it with Restore"}
	case at.owner != h:
		return &staleError{Reason: "another History made it; take one of this History"}
	case h.isBeforeReload(&at.state):
		return errReloaded
	}
	return nil
}

// errReloaded is returned for a snapshot from before the last Reload.
var errReloaded = &staleError{Reason: "Reload has brought in what others have saved since; take a new snapshot"}

// Snapshot returns an immutable picture of the current view. It allocates one small
// object after a change, and nothing otherwise.
func (h *History) Snapshot() *Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.snapshotLocked()
}

func (h *History) snapshotLocked() *Snapshot {
	s, isNew := h.view.snapshot()
	if isNew {
		s.owner, s.setting = h, h.meter.marks().set.sizes()
	}
	return s
}

// Len returns the number of entries in the view, including system entries.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.len()
}

// String describes h in a few words, without any text of the conversation.
func (h *History) String() string {
	s := h.Status()
	return fmt.Sprintf("History(%s, %s, %s)", counted(s.Entries, "entry", "entries"), counted(s.Turns, "turn", "turns"), counted(s.Tokens, "token", "tokens"))
}

// Close closes h. Afterwards h can be read, summarised by Handoff, saved, reloaded and pruned,
// and Unqueue still empties the queue; any other change returns [ErrClosed]. Its charge to a
// [Budget] is given back.
//
// Close cancels a running compaction, and the ctx of a request that Do has sent. It does not
// wait, so it may be called from anywhere. Callers that wait for that compaction return, even
// if a strategy or a summarizer does not. [History.Wait] waits for the report of a compaction
// in the background. Close may be called more than once, and always returns nil.
func (h *History) Close() error {
	h.prove(noVersion)
	var s *sending
	h.locked(func() {
		if h.slots.close() {
			h.account.close()
		}
		s = h.talk.waits()
	})
	h.compacting.stop(ErrClosed)
	if s != nil {
		s.cancel(ErrClosed)
	}
	return nil
}

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

// enter returns ctx, or a ctx that never ends if it is nil. If the operation in the slot
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
// when the History is closed. If it is closed already, flightContext releases the slot, and the
// error is ErrClosed.
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
