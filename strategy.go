package convo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/causes"
	"github.com/seed-c1b73e60/convo/internal/rereads"
)

// A CompactionStrategy decides what to remove from a conversation.
//
// A [History] calls Compact without holding a lock, on a goroutine of its own. Calls do
// not overlap, except that the next may start when the ctx of one has ended. Compact
// should then return soon: nothing waits for it, its result is discarded, and it counts
// as having called a model without success.
//
// Compact may read the History and append to it. A call that needs another compaction of
// it, with ctx or one derived from it, fails with [ErrReentrant].
type CompactionStrategy interface {
	// Name returns a short name that identifies the strategy in reports, always the same.
	Name() string

	// Compact returns an edit of s that reduces it to g.Target. The edit may only drop whole
	// exchanges, must leave the floor alone, and must not make the view larger, whatever it
	// rewrites; the History refuses any other edit and does not change. To decline, Compact
	// returns the zero Edit, ErrNoGain or ErrBreaker, or an error that wraps nothing else,
	// with an Edit whose Effort.Calls is 0. Any other error means that the compaction failed,
	// as does one of these after a call to a model. A model's summary is refused if it repeats
	// itself; see RefusedError. Compact must not modify anything that s and g refer to.
	Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error)
}

// StrategyFunc adapts a function to a [CompactionStrategy]. Its name is "func";
// use [StrategyFunc.Named] to give it another.
type StrategyFunc func(ctx context.Context, s *Snapshot, g Goal) (Edit, error)

// Name returns "func".
func (f StrategyFunc) Name() string { return "func" }

// Compact calls f.
func (f StrategyFunc) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	return f(ctx, s, g)
}

// Named returns f as a strategy with the given name, for reports and log lines. An empty
// name means "func".
func (f StrategyFunc) Named(name string) CompactionStrategy {
	return namedStrategy{f, cmp.Or(name, f.Name())}
}

// A namedStrategy is a StrategyFunc with a name.
type namedStrategy struct {
	StrategyFunc
	name string
}

// Name returns the name.
func (s namedStrategy) Name() string { return s.name }

// A Goal describes what a compaction should reach. It carries everything that the
// strategies of this package use, so that other strategies can do the same. All sizes are
// raw tokens, so they can be compared directly with Exchange.Tokens, Snapshot.Tokens and
// the results of Count. In a Goal made by hand, any field may be left at its zero value.
type Goal struct {
	Target  int // the largest size that the view should have; 0 with ReasonTrigger: the strategy decides
	MinFree int // the least that an edit with a summary must free; the History refuses an edit that frees less
	Limit   int // the size up to which the view fits, whatever its content; 0: no limit
	Low     int // the size of a view whose request has Limits.Low tokens; 0: there is no such mark
	Window  int // Limits.Window, for a summarizer without its own window

	Reason Reason // why the compaction was started
	Focus  string // what a summary should concentrate on, as passed to [History.Compact]; may be empty
	Status Status // of the History when the compaction began, for the triggers of strategies that are wrapped

	// Sent is the snapshot last passed to RecordUsage, and SentTokens the tokens of its
	// request. Sent is nil if there is none, or if something in it has since left the view.
	Sent       *Snapshot
	SentTokens int

	// NoModel, if not nil, forbids calling a model, and NoClear clearing tool results. They say
	// why; a strategy that needs what is forbidden returns them as its error.
	NoModel, NoClear error

	Unclearable []Clear // results that must not be cleared: Options.Spill has just failed for them

	Redact func(Message) Message // Options.Redact: it changes what a summarizer may see; may be nil

	Count func(string) int // returns the raw tokens of a text; nil: use the counter of the snapshot

	// Original returns an entry as a summarizer should read it, as it was before this
	// compaction, and reports whether the entry was in the view then. A result that was cut or
	// cleared is complete there, as far as its original is kept (see Options.KeepOriginals) or
	// is in the log of the History, which is read once. Entry.Missing is the part that is in
	// neither. Text that an edit put in place of a result is kept, as is what an edit or an
	// earlier link has rewritten. Nil: use the entries of the snapshot.
	Original func(ctx context.Context, id ID) (Entry, bool)

	before   rereads.Past // what the History remembers of the calls in earlier views
	spared   *spare       // what an earlier link of a Chain leaves; nil: nothing
	maySpare bool         // a Chain sees to it that enough is freed if something is spared
	allFree  int          // MinFree for all links of that Chain
	readFrom int64        // for a Summarize in a Chain that reads what earlier links have cleared: raw tokens of the view before these; 0: it does not
}

// count returns g.Count, or the counter of s if g has none.
func (g *Goal) count(s *Snapshot) func(string) int {
	if g.Count != nil {
		return g.Count
	}
	counter := s.counter()
	return func(text string) int { return clampInt(counter.text(text)) }
}

// isOwn reports whether the strategy decides how far to go.
func (g *Goal) isOwn() bool { return g.Reason == ReasonTrigger && g.Target <= 0 }

// hasTime reports whether the compaction may as well happen later.
func (g *Goal) hasTime() bool { return g.Reason == ReasonSoft || g.Reason == ReasonTool }

// target returns the default size for a strategy to aim at: Target, or for a trigger Low,
// or half of the view.
func (g *Goal) target(s *Snapshot) int64 {
	switch {
	case !g.isOwn():
		return int64(max(g.Target, 0))
	case g.Low > 0:
		return int64(g.Low)
	}
	return s.raw() / 2
}

// original returns the entry that a summarizer should read. It must be in s.
func (g *Goal) original(ctx context.Context, s *Snapshot, id ID) Entry {
	if g.Original != nil {
		if e, ok := g.Original(ctx, id); ok {
			return e
		}
	}
	e, _ := s.toRead(ctx, id)
	return e
}

// plan calls strategy c for an edit, unless ctx has ended already. It returns when ctx
// ends, even if the strategy does not; direct means that c itself returns then (see
// linkKind). A panic of the strategy becomes the error. The Effort of the returned edit
// is never nil.
func plan(ctx context.Context, c CompactionStrategy, direct bool, s *Snapshot, g Goal) (name string, e Edit, err error) {
	if ctx.Err() != nil {
		return "", Edit{Effort: &Effort{}}, causeOf(ctx)
	}
	name, e, err = callStrategy(ctx, c, direct, s, g)
	if e.Effort == nil {
		e.Effort = new(Effort)
		if g.NoModel == nil && (err != nil && !isDecline(err, 0) || err == nil && e.hasSummary()) {
			e.Effort.Calls = 1 // assumed, so that the breaker counts a strategy that does not report its calls
		}
	}
	work := *e.Effort
	work.Calls, work.Unread, work.NotKept = max(work.Calls, 0), max(work.Unread, 0), max(work.NotKept, 0)
	work.Links = slices.Clone(work.Links)
	if work.Usage.fault() != nil {
		work.Usage = Usage{}
	}
	e.Effort = &work
	if err == nil && e.hasSummary() && e.Summary.Native.Format == "" && work.askedForSummary() {
		err = e.Summary.repeats()
	}
	if err != nil {
		e = Edit{Effort: e.Effort}
	}
	return name, e, err
}

// callStrategy calls c and turns a panic or an empty edit into an error.
func callStrategy(ctx context.Context, c CompactionStrategy, direct bool, s *Snapshot, g Goal) (name string, e Edit, err error) {
	const in = "CompactionStrategy"
	defer catch(&err, in)
	name = c.Name()
	if direct {
		e, err = c.Compact(ctx, s, g)
	} else {
		e, err = await(ctx, in, func() (Edit, error) { return c.Compact(ctx, s, g) })
	}
	if err == nil && e.isZero() {
		err = ErrNoGain
	}
	return name, e, err
}

// orNoGain returns an edit that is worth it, or ErrNoGain.
func orNoGain(e Edit, isWorth bool) (Edit, error) {
	if !isWorth {
		return Edit{}, ErrNoGain
	}
	return e, nil
}

// isDecline reports whether a strategy's error only means that the strategy declined,
// that is, whether it is only ErrNoGain, ErrBreaker or both, however wrapped. calls is
// the strategy's Effort.Calls: a strategy that has called a model has not declined. A
// panic is never a decline, whatever it wraps, nor is an error whose own methods panic.
func isDecline(err error, calls int) bool {
	return calls == 0 && causes.Only(err, func(err error) (declined, known bool) {
		switch err.(type) {
		case *PanicError:
			return false, true
		case *breakerError: // regardless of the failure
			return true, true
		}
		declined = err == ErrNoGain || err == ErrBreaker
		return declined, declined
	})
}

// strategyError returns the error of a strategy, prefixed with its name.
func strategyError(name string, err error) error {
	return worded(fmt.Sprintf("strategy %s: %s", name, withoutPrefix(err)), err)
}

// triggerOf returns the Trigger of a strategy, or nil if it has none.
func triggerOf(c CompactionStrategy) Trigger {
	if c, ok := c.(interface{ trigger() Trigger }); ok { // a Chain is a Trigger only if one of its links is
		return c.trigger()
	}
	t, _ := c.(Trigger)
	return t
}

// status returns the part of a Status that a snapshot alone provides.
func (s *Snapshot) status() Status {
	out, raw := s.numbers(), clampInt(s.raw())
	out.OpenCalls, out.Tokens, out.Upper, out.Appended = callsOf(s.list).Open(), raw, raw, clampInt(s.appended)
	return out
}

// await calls f on its own goroutine and returns the results of f. If ctx ends first, it
// returns the cause, and the results of f are discarded. So f must not write to anything
// that its caller reads. If f panics or ends the goroutine, await returns an error; in
// describes f as PanicError.In does.
func await[T any](ctx context.Context, in string, f func() (T, error)) (T, error) {
	type outcome struct {
		got T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		out := outcome{err: errGoexit} // unless f returns
		defer func() { done <- out }()
		defer catch(&out.err, in)
		out.got, out.err = f()
	}()
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
		select {
		case out = <-done: // both happened at once
		default:
			out.err = causeOf(ctx)
		}
	}
	return out.got, out.err
}
