package convo

import (
	"context"
	"errors"
	"sync"
)

// A CompactionStrategy decides what a History gives up.
//
// A History calls Compact with no lock held, on the goroutine that asked for
// the compaction, and not twice at once, unless a call has not returned after
// its ctx ended. Compact must return soon after ctx has ended; what it returns
// later is thrown away. It may append to the
// History and read it; a compaction of the same History with ctx, or a context
// made of it, is [ErrReentrant].
type CompactionStrategy interface {
	// Name is short and always the same; it appears in reports.
	Name() string

	// Compact returns what to give up of s, in whole exchanges and nothing of
	// the floor; the History refuses anything else and stays as it was. The
	// zero Edit declines, and so do the errors ErrNoGain and ErrBreaker, which
	// say why.
	Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error)
}

// StrategyFunc makes a function a [CompactionStrategy] with the name "func".
type StrategyFunc func(ctx context.Context, s *Snapshot, g Goal) (Edit, error)

// Name returns "func".
func (f StrategyFunc) Name() string { return "func" }

// Compact calls f.
func (f StrategyFunc) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	return f(ctx, s, g)
}

// A Trigger is a [CompactionStrategy] that may be due before the request is too
// large: by count, turns or time.
type Trigger interface {
	// Due is asked at every check that finds the request small enough. It must
	// be quick and must not wait, and runs without a lock on the goroutine of
	// the caller.
	Due(Status) bool
}

// A Goal is what a compaction is to reach. Its figures are raw tokens, to be
// compared with Exchange.Tokens, Snapshot.Tokens and Count as they are.
type Goal struct {
	Target  int  // the view should weigh no more; 0 with ReasonTrigger: the strategy decides
	MinFree int  // an edit with a summary must free at least this
	NoModel bool // call no model now: decline, or do without
	Reason  Reason
	Focus   string           // what a summary should dwell on, from Compact
	Count   func(string) int // raw tokens of a text

	run *run // nil outside of a History
}

// A Link says how one strategy of a [Chain] did.
type Link struct {
	Strategy string
	Outcome  Outcome // Applied, Declined or Failed
	Cause    error   // why it added nothing
}

// count is Count, or how the snapshot counts where there is none.
func (g *Goal) count(s *Snapshot) func(string) int {
	switch {
	case g.Count != nil:
		return g.Count
	case s.id != nil:
		return func(text string) int { return clampInt(s.id.text(text)) }
	}
	return Heuristic{}.CountTokens
}

// target is how far a strategy goes that has no measure of its own.
func (g *Goal) target(s *Snapshot) int64 {
	switch {
	case g.Reason != ReasonTrigger || g.Target > 0:
		return int64(max(g.Target, 0))
	case g.run != nil && g.run.low > 0:
		return g.run.low
	}
	return s.raw() / 2
}

// A run is what one attempt knows beside its goal, and what the strategies
// tell about it. Its methods work on nil.
type run struct {
	base   *Snapshot // before any link
	sent   sent
	status Status
	low    int64   // raw tokens at low water, 0: none
	limit  int64   // raw tokens that a request may hold, 0: no limit
	window int     // of the History
	noGain bool    // NoModel because the floor leaves too little
	kept   []Clear // results that could not be cleared a moment ago

	mu sync.Mutex
	// Protects following.
	links  []Link
	usage  Usage
	unread int64
	failed bool // a summarizer failed, or what it wrote was refused
}

func (r *run) link(name string, err error) {
	if r == nil {
		return
	}
	l := Link{Strategy: name, Outcome: Applied, Cause: err}
	switch {
	case isDecline(err):
		l.Outcome = Declined
	case err != nil:
		l.Outcome = Failed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = append(r.links, l)
}

// summarized tells what a call cost and how it ended.
func (r *run) summarized(u Usage, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage = r.usage.plus(u)
	r.failed = r.failed || err != nil
}

func (r *run) skipped(tokens int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unread += tokens
}

// told puts what was told into a report.
func (r *run) told(to *Report) (failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to.Links = append([]Link(nil), r.links...)
	to.Usage, to.Unread = r.usage, clampInt(r.unread)
	return r.failed
}

// without says why no model may be called.
func (r *run) without() error {
	if r != nil && r.noGain {
		return ErrNoGain
	}
	return ErrBreaker
}

// plan asks a strategy. What it panics with is the error.
func plan(ctx context.Context, c CompactionStrategy, s *Snapshot, g Goal) (name string, e Edit, err error) {
	defer catch(&err, "CompactionStrategy")
	name = c.Name()
	e, err = c.Compact(ctx, s, g)
	if err == nil && e.isZero() {
		err = ErrNoGain
	}
	if err != nil {
		e = Edit{}
	}
	return name, e, err
}

// isDecline reports whether a strategy's error says nothing but that there is
// nothing to do.
func isDecline(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case interface{ Unwrap() []error }:
		all := true
		for _, err := range e.Unwrap() {
			all = all && isDecline(err)
		}
		return all
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		return isDecline(wrapped)
	}
	return err == ErrNoGain || err == ErrBreaker
}

// triggerOf returns what may be due early in a strategy, nil when nothing is.
func triggerOf(c CompactionStrategy) Trigger {
	if links, ok := c.(chain); ok {
		for _, link := range links {
			if triggerOf(link) != nil {
				return links
			}
		}
		return nil
	}
	t, _ := c.(Trigger)
	return t
}

// isDue asks a trigger.
func isDue(t Trigger, s Status) (due bool, err error) {
	if t == nil {
		return false, nil
	}
	defer catch(&err, "Trigger")
	return t.Due(s), nil
}
