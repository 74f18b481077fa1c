package convo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/ranges"
)

// Chain returns a strategy that runs its links in order until Goal.Target is reached.
// Each link sees the view as the previous links would leave it. Their edits are combined
// and applied in one step, and Goal.MinFree is asked of the whole. If two links change
// the same entry, the later one wins; content that either of them forgets is forgotten. A
// summary that has read what a later link forgets gives way as Summary.Read says.
//
// A link that declines or fails adds nothing; Report.Links says why. The chain returns an
// error only if no link added anything or ctx has ended. A nil link fails with a
// [*ValueError].
//
// Nothing is dropped unread because a model is down: where the summarizer of a
// [Summarize] fails, or is not called for a while after failures, [Extract] writes the
// summary, as a link "extract" in Report.Links. A strategy that wraps a Summarize is not
// known to be one. NativeSummary of package wire counts as one, as does any strategy with a
// method ByProvider(); if it declines or fails, a Summarize after it takes its place. After a
// summarizer that works, later links free what Goal.Limit needs, and not what Goal.Target
// asks for: they would drop unread what the summarizer left.
//
// A [Summarize] with a model reads the results that a [ClearToolResults] before it clears, in
// one call with what it drops, also where clearing alone reaches the target; see
// Summary.Read. It does not where ClearToolResults.Unread is set, for a [Trigger], or after a
// request was refused as too long. What these clear, and what a summarizer that failed has
// not read, is read from the originals in the next compaction.
//
// A Chain is due as a [Trigger] when one of its links is. A compaction started that way
// runs only the links that are due, each once. In the background and for
// [History.CompactTool], a link that fails or returns [ErrBreaker] ends the chain:
// there is still room, and the next link might drop what can be summarised later.
func Chain(links ...CompactionStrategy) CompactionStrategy {
	return chain(slices.Clone(links))
}

type chain []CompactionStrategy

// Name returns "chain".
func (chain) Name() string { return "chain" }

// Due reports whether a link is due.
func (c chain) Due(s Status) bool {
	return slices.ContainsFunc(c, func(link CompactionStrategy) bool {
		t := triggerOf(link)
		return t != nil && t.Due(s)
	})
}

// A linkKind is what a Chain must know of a strategy.
type linkKind struct {
	// direct says that it is one of this package. These return as soon as ctx has ended, even
	// while caller-supplied code runs, and then still report what they did. So they run on the
	// goroutine that requests the compaction. Any other strategy runs on its own goroutine.
	direct bool

	summarizes bool        // it is Summarize, or asks a provider, or holds such a link
	byProvider bool        // it asks the provider of the model
	clears     bool        // it is ClearToolResults, and a later Summarize is to read the results
	standIn    *extracting // what takes its place if its summarizer fails; nil: it calls no model
}

// readsCleared reports whether the strategy is a Summarize with a model.
func (k linkKind) readsCleared() bool { return k.standIn != nil && !k.byProvider }

// kindOf returns the kind of a strategy.
func kindOf(c CompactionStrategy) (k linkKind) {
	switch c := c.(type) {
	case when:
		return kindOf(c.strategy)
	case chain:
		k.direct, k.summarizes = true, slices.ContainsFunc(c, summarizes)
	case Truncate, SlidingWindow, ClearMedia, ClearThinking:
		k.direct = true
	case ClearToolResults:
		k.direct, k.clears = true, !c.Unread
	case *ClearToolResults:
		k.clears = c != nil && !c.Unread
	case extracting:
		k.direct, k.summarizes = true, true
	case Summarize:
		k = linkKind{direct: true, summarizes: true, standIn: c.standIn()}
	case *Summarize:
		k.summarizes = true
		if c != nil {
			k.standIn = c.standIn()
		}
	case interface{ ByProvider() }:
		k = linkKind{summarizes: true, byProvider: true, standIn: &extracting{name: "extract"}}
	}
	return k
}

func isDirect(c CompactionStrategy) bool        { return kindOf(c).direct }
func summarizes(link CompactionStrategy) bool   { return kindOf(link).summarizes }
func readsCleared(link CompactionStrategy) bool { return kindOf(link).readsCleared() }
func clearsToRead(link CompactionStrategy) bool { return kindOf(link).clears }

// standIn returns the strategy that takes the place of z if its summarizer fails, or nil if z
// calls no model.
func (z Summarize) standIn() *extracting {
	if !callsModel(z.With) {
		return nil
	}
	z.With = nil
	return &extracting{"extract", z}
}

// trigger returns c if one of its links is a Trigger, and nil otherwise.
func (c chain) trigger() Trigger {
	if slices.ContainsFunc(c, func(link CompactionStrategy) bool { return triggerOf(link) != nil }) {
		return c
	}
	return nil
}

// triggersOf returns the Triggers of a strategy.
func triggersOf(c CompactionStrategy) triggers {
	t, list := countingIn(c)
	isOther := func(c counting) bool { _, ok := c.(ClearMedia); return !ok }
	return triggers{t, list, t == nil && !slices.ContainsFunc(list, isOther)}
}

// countingIn returns the counting Triggers of a strategy if it has no others, and otherwise its
// Trigger. A type that embeds one of them, or points to it, may have a Due of its own.
func countingIn(c CompactionStrategy) (t Trigger, list []counting) {
	switch c := c.(type) {
	case ClearMedia, SlidingWindow:
		return nil, []counting{c.(counting)}
	case chain:
		for _, link := range c {
			t, more := countingIn(link)
			if t != nil {
				return c, nil
			}
			list = append(list, more...)
		}
		return nil, list
	}
	return triggerOf(c), nil
}

// Compact runs the links and returns their combined edit. If they leave too much because
// of what they spare, and no model was called, they run once more and spare nothing.
func (c chain) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	g.maySpare, g.spared, g.allFree = true, nil, g.MinFree
	r := c.run(ctx, s, g)
	if p := r.e.Effort.spare; p != nil && r.view.raw() > p.most && r.e.Effort.Calls == 0 && ctx.Err() == nil {
		g.maySpare = false
		r = c.run(ctx, s, g)
	}
	return r.edit()
}

// run runs the links once.
func (c chain) run(ctx context.Context, s *Snapshot, g Goal) *chainRun {
	if g.Status == (Status{}) {
		g.Status = s.status()
	}
	if g.Original == nil {
		g.Original = s.toRead
	}
	r := &chainRun{links: c, from: s, view: s, goal: g, original: g.Original, e: Edit{Effort: new(Effort)}, changes: make(map[ID]*linkedChange)}
	for i := range c {
		if ctx.Err() != nil {
			r.ended = causeOf(ctx)
			break
		}
		if r.mayRun(i) && !r.run(ctx, i) {
			break
		}
	}
	return r
}

// A chainRun is a compaction by a chain.
type chainRun struct {
	links            chain
	from, view       *Snapshot // before the links, and after those that ran
	goal             Goal      // of the next link
	original         func(context.Context, ID) (Entry, bool)
	failed, declined []error
	ended            error // why not all links have run: ctx has ended; nil: it has not
	cleared          bool  // a ClearToolResults has cleared results that the summarizer is to read
	waits            bool  // these are cleared when the summarizer can read them

	// The edits and the work of the links so far.
	e       Edit // but for changes
	changes map[ID]*linkedChange
}

// reached reports whether the target is reached.
func (r *chainRun) reached() bool { return r.view.raw() <= int64(r.goal.Target) }

// mayRun reports whether the i-th link runs, and sets its goal.
func (r *chainRun) mayRun(i int) bool {
	link, g := r.links[i], &r.goal
	g.readFrom = 0
	if g.Reason == ReasonTrigger { // then each link that is due is judged alone
		due, err := isDue(triggerOf(link), g.Status)
		if err != nil {
			r.failed = append(r.failed, err)
		}
		return due && err == nil
	}
	reads := readsCleared(link) && g.Reason != ReasonOverflow && slices.ContainsFunc(r.links[:i], clearsToRead)
	if r.reached() && !(reads && r.cleared) {
		return false
	}
	g.MinFree = clampInt(max(int64(g.allFree)-(r.from.raw()-r.view.raw()), 0))
	if i < len(r.links)-1 && !summarizes(link) {
		g.MinFree = 0
	}
	if reads {
		g.readFrom = r.from.raw()
	}
	return true
}

// run runs the i-th link. It reports whether the next one may run.
func (r *chainRun) run(ctx context.Context, i int) bool {
	link, g, reached := r.links[i], &r.goal, r.reached()
	next, outcome, err := r.runLink(ctx, i, link)
	g.spared = r.e.Effort.spare
	kind := kindOf(link)
	leaves := outcome != OutcomeApplied && kind.byProvider && slices.ContainsFunc(r.links[i+1:], summarizes) // its place to the next one
	isDown := outcome == OutcomeFailed || errors.Is(err, ErrBreaker)
	if z := kind.standIn; z != nil && isDown && !reached && !leaves && !g.hasTime() && g.Reason != ReasonTrigger && ctx.Err() == nil {
		r.failed, g.readFrom = append(r.failed, err), 0
		next, outcome, err = r.runLink(ctx, i, *z)
		isDown = outcome == OutcomeFailed || errors.Is(err, ErrBreaker)
	}
	r.waits = r.waits || isDown && reached && g.hasTime()
	last := false
	if kind.summarizes && !leaves && !isDown && g.Reason != ReasonTrigger && g.Reason != ReasonOverflow {
		last = g.Limit <= 0               // without a limit, nothing has to be dropped unread
		g.Target = max(g.Target, g.Limit) // no later link drops unread what the summarizer could not free
	}
	switch outcome {
	case OutcomeApplied:
		r.view, r.cleared = next, r.cleared || kind.clears
		g.Original = r.originals(next)
	case OutcomeDeclined:
		r.declined = append(r.declined, err)
	default:
		r.failed = append(r.failed, err)
	}
	return !last && (leaves || !isDown || !g.hasTime())
}

// edit returns the combined edit, or why there is none.
func (r *chainRun) edit() (Edit, error) {
	freed := r.from.raw() - r.view.raw()
	isTooLittle := freed < int64(r.goal.allFree) && r.goal.Reason != ReasonTrigger && (r.goal.Limit <= 0 || r.from.raw() <= int64(r.goal.Limit))
	var err error = ErrNoGain
	switch {
	case r.ended != nil:
		err = r.ended
	case r.view != r.from && !isTooLittle && !r.waits:
		return r.combined(), nil
	case r.view != r.from && !r.waits:
	case len(r.failed) > 0:
		err = errors.Join(r.failed...)
	case len(r.declined) > 0:
		err = errors.Join(r.declined...)
	}
	return Edit{Effort: r.e.Effort}, err
}

// readsUnread reports whether a strategy reads results that were cleared before they were read.
func readsUnread(c CompactionStrategy) bool {
	links, ok := c.(chain)
	i := slices.IndexFunc(links, clearsToRead)
	return ok && i >= 0 && slices.ContainsFunc(links[i:], readsCleared)
}

// An extracting is Summarize with Extract: in the default strategy, and in the place of a
// summarizer that failed. It is another type so that programs that do not use Summarize
// do not contain its prompts.
type extracting struct {
	name string
	as   Summarize // With is nil, which means Extract
}

// Name returns the name.
func (e extracting) Name() string { return e.name }

// Compact returns what Compact of Summarize returns.
func (e extracting) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	return e.as.compact(ctx, s, g, (*writer).extract)
}

// runLink runs a link in the i-th place, counted from 0, and adds what it did. It
// returns the view with the link's edit, or why there is none.
func (r *chainRun) runLink(ctx context.Context, i int, link CompactionStrategy) (next *Snapshot, outcome Outcome, err error) {
	if link == nil {
		err := &ValueError{Name: fmt.Sprintf("link %d of Chain", i), Value: link, Want: "a strategy"}
		r.e.Effort.Links = append(r.e.Effort.Links, Link{Strategy: "nil", Outcome: OutcomeFailed, Cause: err})
		return nil, OutcomeFailed, err
	}
	own := *r.view // so that a link that writes to its snapshot changes only its own copy
	name, e, err := plan(ctx, link, isDirect(link), &own, r.goal)
	from := max(r.view.raw(), r.goal.readFrom)
	if err == nil {
		next, err = r.view.withChecked(e, r.goal, from)
	}
	if err == nil && next.raw() >= from && r.goal.Reason != ReasonTrigger {
		err = ErrNoGain
	}
	r.addWork(e.Effort)
	l := Link{Strategy: name, Outcome: OutcomeApplied, Calls: e.Effort.Calls}
	switch {
	case err == nil:
	case isDecline(err, e.Effort.Calls):
		l.Outcome = OutcomeDeclined
	default:
		l.Outcome = OutcomeFailed
		err = strategyError(name, err)
	}
	l.Cause = err
	if e.Effort.Links != nil {
		l.Calls = 0 // they are counted in its own links
	}
	if e.Effort.Links == nil || err != nil {
		r.e.Effort.Links = append(r.e.Effort.Links, l)
	}
	if err != nil {
		return nil, l.Outcome, err
	}
	r.addEdit(e, next)
	return next, OutcomeApplied, nil
}

// withChecked returns s with the edit of a link. It returns an error if the edit makes the view
// larger than from tokens, or if its summary may not be used.
func (s *Snapshot) withChecked(e Edit, g Goal, from int64) (*Snapshot, error) {
	next, err := s.with(e, true)
	if err != nil {
		return nil, err
	}
	freed := from - next.raw()
	if freed < 0 {
		return nil, &RefusedError{Reason: fmt.Sprintf("the view would grow by %s tokens", grouped(clampInt(-freed)))}
	}
	return next, e.Summary.checkUsable(freed, int64(g.MinFree))
}

// addWork adds the work of a link.
func (r *chainRun) addWork(w *Effort) {
	r.e.Effort.Calls += w.Calls
	r.e.Effort.Usage = r.e.Effort.Usage.plus(w.Usage)
	r.e.Effort.Links = append(r.e.Effort.Links, w.Links...)
	if w.spare != nil {
		r.e.Effort.spare = w.spare
	}
}

// originals returns the Goal.Original for the next link, which sees view. Content
// that links have rewritten, forgotten or cleared with a text is read as it stands;
// the rest is read as the first link reads it.
func (r *chainRun) originals(view *Snapshot) func(context.Context, ID) (Entry, bool) {
	stands := make(map[ID]bool)
	for id, x := range r.changes {
		stands[id] = x.rewrite != nil || slices.ContainsFunc(x.clears, func(l Clear) bool { return l.Forget || l.Text != "" })
	}
	return func(ctx context.Context, id ID) (Entry, bool) {
		if stands[id] {
			return view.toRead(ctx, id)
		}
		return r.original(ctx, id)
	}
}

// A linkedChange is what links do to one entry: they clear results in it, or
// rewrite it.
type linkedChange struct {
	clears  []Clear
	rewrite *Rewrite
}

// forgets reports whether the original of the entry, or of a result, is forgotten.
func (x *linkedChange) forgets() bool {
	return x.rewrite != nil && x.rewrite.Forget || slices.ContainsFunc(x.clears, func(l Clear) bool { return l.Forget })
}

// change returns what links do to an entry so far.
func (r *chainRun) change(id ID) *linkedChange {
	if r.changes[id] == nil {
		r.changes[id] = new(linkedChange)
	}
	return r.changes[id]
}

// addChanges adds what a link clears and rewrites. next is the view after it.
func (r *chainRun) addChanges(e Edit, next *Snapshot) {
	for _, w := range e.Rewrite {
		x := r.change(w.ID)
		w.Forget = w.Forget || x.forgets()
		*x = linkedChange{rewrite: &w}
	}
	clears := make(map[ID][]Clear)
	for _, l := range e.Clear {
		clears[l.ID] = append(clears[l.ID], l)
	}
	for id, list := range clears {
		x, entry := r.change(id), next.find(id)
		switch {
		case x.rewrite == nil:
			x.clears = append(x.clears, list...)
		case entry == nil: // it is also dropped
			x.rewrite.Forget = x.rewrite.Forget || slices.ContainsFunc(list, func(l Clear) bool { return l.Forget })
		case clearsAll(entry, list):
			for i := range list {
				list[i].Forget = list[i].Forget || x.rewrite.Forget
			}
			*x = linkedChange{clears: list}
		default: // some results are cleared, and the others stay rewritten
			both := linkedChange{clears: list, rewrite: x.rewrite}
			x.rewrite = &Rewrite{ID: id, Parts: entry.msg.Parts, Forget: both.forgets()}
		}
	}
}

// clearsAll reports whether clears name every result of an entry.
func clearsAll(e *entry, clears []Clear) bool {
	c := change{texts: clears}
	return !slices.ContainsFunc(e.msg.ToolResults(), func(r ToolResult) bool { return c.matches(r.CallID) == nil })
}

// addEdit adds the edit of a link. next is the view after it. Covers of the combined summary lists
// the IDs that it stands for, without those that other links dropped.
func (r *chainRun) addEdit(e Edit, next *Snapshot) {
	r.e.Drop = append(r.e.Drop, e.Drop...)
	r.addChanges(e, next)
	r.e.Effort.Unread = addClamped(r.e.Effort.Unread, e.Effort.Unread)
	r.e.Effort.NotKept = addClamped(r.e.Effort.NotKept, e.Effort.NotKept)
	if r.e.Summary != nil && e.Summary == nil && r.view.summary != next.summary { // it has read what this link forgets
		own := orNil(next.summary).sum
		own.Covers, r.e.Summary.Read = []Range{}, nil
		e.Summary = &own
	}
	if e.Summary == nil {
		return
	}
	own, was := *e.Summary, orNil(r.e.Summary)
	switch {
	case own.Text == "":
		own.Covers, was.Covers = nil, nil
	case own.Covers == nil:
		own.Covers = ranges.Of[Range](slices.Sorted(slices.Values(e.Drop)))
	}
	own.Covers = append(append([]Range{}, was.Covers...), own.Covers...) // nil would be all that the edit drops
	own.Read = slices.Concat(was.Read, own.Read)
	r.e.Summary = &own
}

// combined returns the combined edit.
func (r *chainRun) combined() Edit {
	for _, id := range slices.Sorted(maps.Keys(r.changes)) {
		x := r.changes[id]
		r.e.Clear = append(r.e.Clear, x.clears...)
		if x.rewrite != nil {
			r.e.Rewrite = append(r.e.Rewrite, *x.rewrite)
		}
	}
	return r.e
}

// When returns the strategy as a [Trigger] that is due when due reports true for the
// status of the History, such as to clear old results at a mark below the others.
//
// A compaction that starts for another reason runs the strategy as if When were not
// there. The strategy keeps its name; due replaces its own Due, and for a [Chain] that of
// all links. A nil due is never due, and a nil strategy fails with a [*ValueError]. The
// rules for Due of a Trigger apply to due, which may be called more than once for one
// compaction.
func When(due func(Status) bool, strategy CompactionStrategy) CompactionStrategy {
	links, ok := strategy.(chain)
	if !ok {
		return when{strategy, due}
	}
	own := make(chain, len(links))
	for i, link := range links {
		own[i] = When(due, link)
	}
	return own
}

// when is a strategy with another Trigger.
type when struct {
	strategy CompactionStrategy
	due      func(Status) bool
}

// Name returns the name of the strategy.
func (w when) Name() string {
	if w.strategy == nil {
		return "nil"
	}
	return w.strategy.Name()
}

// Due calls the function given to When.
func (w when) Due(s Status) bool { return w.due != nil && w.due(s) }

// Compact calls Compact of the strategy.
func (w when) Compact(ctx context.Context, s *Snapshot, g Goal) (Edit, error) {
	if w.strategy == nil {
		return Edit{}, &ValueError{Name: "strategy of When", Value: w.strategy, Want: "a strategy"}
	}
	return w.strategy.Compact(ctx, s, g)
}
