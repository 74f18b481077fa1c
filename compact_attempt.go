package convo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/rereads"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/sums"
	"github.com/seed-c1b73e60/convo/internal/text"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// An attempt runs the strategy once and tries to apply its edit. try makes up to
// three.
type attempt struct {
	need
	f      *flight
	report Report

	// These are separate from the error, because the caller's code may return the
	// same errors.
	stale  bool // the edit turned out to be stale
	closed bool // the History turned out to be closed

	repeated bool // a decline like this one was already reported

	isReady bool // its edit has waited; see Options.CacheTTL

	// What was so when the attempt began. total and minFree are upper bounds, in tokens of the
	// whole request.
	at      *Snapshot
	marks   marks
	view    *Snapshot       // what the strategy sees: at, with cuts
	scale   calibrate.Scale // of view; what is kept is its floor
	floor   floorWeight     // of view
	total   int64           // size of the request
	minFree int64           // the least that the edit must free
	noSpill bool            // Options.Spill must not be called
	goal    Goal

	cuts        []change // of results in the floor, by the History itself; see cut.go
	yields      bool     // the messages of Options.AfterCompaction leave, because the floor does not fit with them
	cutErr      error    // why some were not cut, or why the strategy added nothing
	failed      bool     // the strategy failed, and the cuts are applied without it
	unclearable []Clear  // results that the previous attempt failed to clear
	planErr     error    // of the strategy; nil: none
	work        Effort   // of the strategy
	summary     *Summary // of the edit; nil: none
	unspilled   []Clear  // results that were not cleared, because Options.Spill failed
}

// try makes one attempt. If the edit turns out to be stale, it makes a second
// one, except in the background. If no edit was applied and some results could
// not be cleared, it makes another attempt that leaves those results alone. The
// error is not nil if the request is too long afterwards.
func (f *flight) try(n need) (Report, error) {
	r, unspilled, err := f.attempt(n, nil)
	if r.Outcome == OutcomeStale && !f.unattended && f.ctx.Err() == nil {
		r, unspilled, err = f.attempt(n, nil)
	}
	if r.Outcome != OutcomeApplied && len(unspilled) > 0 && f.ctx.Err() == nil {
		r, _, err = f.attempt(n, unspilled)
	}
	if err == nil && !r.Fits {
		var cause error
		if r.Outcome == OutcomeDeclined {
			cause = r.Cause
		}
		f.h.locked(func() { err = f.h.unfitLocked(&r, cause) })
	}
	return r, err
}

// attempt makes one attempt that does not clear the unclearable results.
func (f *flight) attempt(n need, unclearable []Clear) (r Report, unspilled []Clear, err error) {
	a := &attempt{f: f, need: n, unclearable: unclearable}
	a.report.Reason, a.report.NamedLimit, a.report.Pause = n.reason, n.named, n.pause
	return a.do(a.run)
}

// do makes the attempt with run, and adds its report to the flight, even if the caller's
// code ends the goroutine. It returns the results that could not be cleared.
func (a *attempt) do(run func() error) (r Report, unspilled []Clear, err error) {
	start, f := time.Now(), a.f
	err = errGoexit // unless run returns
	defer func() {
		r, err = a.conclude(err)
		r.Duration = time.Since(start)
		unspilled = a.unspilled
		defer func() { // even if the caller's code ends the goroutine
			if r.Outcome != OutcomeNotNeeded && !a.closed && !(a.repeated && r.Outcome == OutcomeDeclined) {
				f.reports = append(f.reports, r)
			}
		}()
		if r.Outcome != OutcomeApplied || f.h.opts.AfterCompaction == nil {
			return
		}
		if err := f.h.bringBack(&r); err != nil && err != ErrClosed {
			r.Cause = &wording.LeftAside{Err: err, Cause: r.Cause}
		}
	}()
	err = run()
	return r, unspilled, err
}

// run asks the strategy for an edit and applies it.
func (a *attempt) run() error {
	if err := a.start(); err != nil {
		return err
	}
	a.goal.Original = a.f.h.newOriginals(a.at).read
	if err := a.cutFloor(); err != nil {
		return err
	}
	e, err := a.ask()
	if err == nil && a.mayWait(&e) {
		return errReady
	}
	return a.finish(e, err)
}

// finish applies the edit of the strategy, which returned err.
func (a *attempt) finish(e Edit, err error) error {
	if err == nil {
		if a.f.unattended || a.isReady {
			e.Summary = namedSince(&e, a.at, a.f.h.Snapshot(), a.f.h.opts.Redact, a.goal.count(a.view))
		}
		a.summary = e.Summary
		a.unspilled, err = a.apply(&e)
		a.stale, a.closed = isStale(err), err == ErrClosed
		if err == nil {
			a.noteReads()
		}
		if a.isReady {
			a.report.Usage = Usage{} // it was reported before
		}
		if err == nil && a.cutErr != nil {
			a.report.Cause = errors.Join(a.report.Cause, a.cutErr)
		}
	}
	if a.report.Outcome != OutcomeApplied && a.f.ctx.Err() != nil {
		a.stale, a.closed = false, false
		err = endOf(a.f.ctx)
	}
	return err
}

// noteReads reports what was read again before the edit, and remembers what the edit has
// dropped.
func (a *attempt) noteReads() {
	reread := &a.f.h.reread
	before := orNil(reread.Load())
	found := readsOf(a.at, SameCall, &before, leastReread(max(a.goal.Limit, a.goal.Low)))
	largest := new(rereads.Read)
	for _, r := range found.Again {
		a.report.AgainTokens = clampInt(int64(a.report.AgainTokens) + r.Size)
		if r.Size > largest.Size {
			largest = r
		}
	}
	a.report.Again = len(found.Again)
	next := before.With(found).After(found, func(id int64) bool {
		return hasID(a.report.Dropped, ID(id)) || hasID(a.report.Summarised, ID(id))
	}, a.at.appended > 0 && 2*int64(a.report.AgainTokens) >= a.at.appended)
	reread.Store(&next)
	if next.IsUnfit() {
		a.f.h.warn("convo: most of what was appended was read again after it had left, since what is in use does not fit: "+a.unfitHelp(largest),
			"again", a.report.Again, "again_tokens", a.report.AgainTokens, "appended", a.at.appended, "limit", a.report.Limit)
	}
}

// unfitHelp says in words what leaves more room for what is in use.
func (a *attempt) unfitHelp(largest *rereads.Read) string {
	var help strings.Builder
	help.WriteString("use a larger window, or fewer files at a time")
	for _, part := range []struct {
		tokens int64
		what   string
	}{
		{a.at.pinRaw, "pinned messages"}, {a.scale.Weigh(0), "tools and overhead"}, {a.at.sysRaw, "system messages"},
		{largest.Size, "one result of " + abbreviate(largest.Tool)},
	} {
		if part.tokens > 0 && 10*part.tokens >= int64(a.report.Limit) {
			help.WriteString(fmt.Sprintf("; %s: %s tokens", part.what, grouped(clampInt(part.tokens))))
		}
	}
	return help.String()
}

// apply applies an edit together with the cuts, and returns the results that were not
// cleared, since their originals could not be stored.
func (a *attempt) apply(e *Edit) ([]Clear, error) {
	ed, err := checkEdit(&a.at.state, e, true)
	if err != nil {
		return nil, err
	}
	ed.changes, ed.yields, ed.noSpill = append(ed.changes, a.cuts...), a.yields, a.noSpill
	ed.focus, ed.acceptLocked = a.focus, a.acceptLocked
	ed.sort()
	return a.f.h.carryOut(a.f.ctx, ed, &a.report)
}

// ask returns the edit of the strategy. If results are cut, or messages yield, the
// strategy is not asked if that reaches the target, and may fail if it reaches the
// limit; the edit is then empty.
func (a *attempt) ask() (e Edit, err error) {
	switch {
	case (a.cuts != nil || a.yields) && a.scale.Upper() <= a.target: // it is not asked
	case !a.setGoal(a.scale.Kept().Upper()):
		err = ErrNoGain
	default:
		e, err = a.plan()
	}
	cut := a.cutRest(e)
	if err == nil || !cut && (a.cuts == nil && !a.yields || a.scale.Upper() > a.limit) {
		return e, err
	}
	if !isDecline(err, a.work.Calls) {
		a.failed, a.cutErr = true, errors.Join(a.cutErr, err)
	}
	a.report.Unread, a.report.NotKept = 0, 0
	return Edit{}, nil
}

// plan asks the strategy for an edit, and copies its work into the report.
func (a *attempt) plan() (Edit, error) {
	h := a.f.h
	own := *a.view // so that a strategy that writes to its snapshot changes only its own copy
	a.goal.Redact = h.opts.Redact
	if h.opts.BeforeCompaction != nil {
		shown, goal := own, a.goal
		failed, err := safely("Options.BeforeCompaction", func() error { return h.opts.BeforeCompaction(a.f.ctx, &shown, &goal) })
		a.planErr = cmp.Or(failed, err)
		if a.planErr != nil {
			return Edit{}, a.planErr
		}
		a.goal.Focus = text.Valid(goal.Focus)
	}
	direct := isDirect(h.opts.Strategy)
	name, e, err := plan(a.f.ctx, h.opts.Strategy, direct, &own, a.goal)
	if err != nil && !direct && !isDecline(err, e.Effort.Calls) {
		err = strategyError(name, err)
	}
	a.planErr = err
	a.work = *e.Effort
	r := &a.report
	r.Strategy, r.Links = name, a.work.Links
	r.Calls, r.Usage, r.Unread, r.NotKept = a.work.Calls, a.work.Usage, a.work.Unread, a.work.NotKept
	return e, err
}

// start fills in what is so now, and most of the goal.
func (a *attempt) start() error {
	h := a.f.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isClosed() {
		a.closed = true
		return ErrClosed
	}
	h.measureBeforeLocked(&a.report)
	now := h.moment(h.meter.marks())
	undone, noModel := h.compactor.restraints(&now)
	if !a.requested && undone != 0 {
		return ErrNoGain // an edit was undone after this compaction was found to be due
	}
	a.at, a.marks, a.scale, a.minFree = h.snapshotLocked(), *now.marks, h.scale(), 1
	a.total = a.scale.Upper()
	if a.reserve == nil {
		a.limit = a.marks.limit
	}
	a.goal = Goal{
		Reason: a.reason, Focus: a.focus, Unclearable: a.unclearable, Window: a.marks.set.Window, Status: h.statusLocked(),
		before: orNil(h.reread.Load()),
	}
	a.goal.Sent, a.goal.SentTokens = h.lastSent()
	if !a.requested {
		down := h.spills.start(&now).down
		a.minFree = max(a.marks.minFree, 1)
		a.goal.NoClear, a.goal.NoModel, a.noSpill = down, noModel, down != nil
	}
	return nil
}

// show sets the view that is passed to the strategy.
func (a *attempt) show(view *Snapshot) {
	a.view, a.floor = view, view.floorWeight()
	a.scale = view.scale()
	if a.scale.Known != nil {
		a.scale.KeptOld = min(a.floor.measured, a.floor.total(), a.scale.Known.Raw)
	}
	a.scale.KeptFresh = a.floor.total() - a.scale.KeptOld
}

// checkFloor returns an error if the floor alone is over the limit, so that no
// strategy can help.
func (a *attempt) checkFloor() error {
	w, floor := a.floor, a.scale.Kept().Upper()
	if floor <= a.limit {
		return nil
	}
	e := &FloorError{
		Floor: clampInt(floor),
		Room:  clampInt(a.fromWindow),
		Limit: clampInt(a.limit + a.fromWindow),
		Tools: clampInt(a.scale.Weigh(0)),

		NewestRole:    w.newestRole,
		ToolsReported: a.scale.Known != nil && a.at.known().assumed() < a.scale.Overhead,
		Queued:        len(a.at.queue),
	}
	calls := a.takeCalls(&w)
	e.RewindRound, e.RewindUsers = a.rewinds()
	// The size of the messages is divided in proportion to their raw tokens.
	tools := 0
	shares := sums.Divide(floor-a.scale.Weigh(0), w.tools, w.system, w.newest, w.round, calls, w.users, w.pinned, w.ephemeral)
	for i, to := range []*int{&tools, &e.System, &e.Newest, &e.Round, &e.Calls, &e.Users, &e.Pinned, &e.Ephemeral} {
		*to = clampInt(shares[i])
	}
	e.Tools += tools
	if a.isShortOfBudget(a.limit) { // even if only the floor is left
		e.Room, e.Limit, e.Pool = clampInt(a.room), clampInt(a.limit+a.room), true
		return a.tooLarge(floor, a.limit, e)
	}
	return e
}

// takeCalls subtracts the tool calls of the newest exchange and of the unanswered
// round from their shares, and returns their raw tokens.
func (a *attempt) takeCalls(w *floorWeight) (calls int64) {
	f := a.view.floor()
	take := func(part bounds, share *int64) {
		var kinds Breakdown
		for _, e := range part.of(a.view.list) {
			kinds.addEntry(e, a.f.h.ident.counter)
		}
		n := min(int64(kinds.Calls), *share) // a pinned exchange has another share
		*share -= n
		calls += n
	}
	take(bounds{f.newest, len(a.view.list)}, &w.newest)
	take(f.round, &w.round)
	return calls
}

// rewinds returns how many calls of Rewind(1) take back the unanswered round, and
// the user messages of the floor; 0 means none.
func (a *attempt) rewinds() (round, users int) {
	f := a.at.floor()
	first := f.users
	if f.round.from < f.round.to {
		round = a.at.rewinds(f.round.from)
		if f.asked.from < f.asked.to {
			first = f.asked
		}
	}
	if first.from < first.to {
		users = a.at.rewinds(min(first.from, f.tail))
	}
	return round, users
}

// setGoal fills in the rest of the goal. It reports whether the strategy should
// run: it should not if the request fits and dropping everything but the floor
// would free less than minFree.
func (a *attempt) setGoal(floor int64) bool {
	counter, total := a.f.h.ident.counter, a.scale.Upper()
	a.goal.Count = func(text string) int { return clampInt(counter.text(text)) }
	if total-max(floor, a.target) < a.minFree { // the target of a Trigger is 0
		if a.reason != ReasonTrigger {
			if total <= a.limit {
				return false
			}
			a.minFree = 1
		}
		a.goal.NoModel = ErrNoGain
	}
	fits := int64(noMark)
	if a.limit != noMark {
		fits = max(a.scale.HoldsWorst(a.limit), 1)
		a.goal.Limit = clampInt(fits)
	}
	if a.reason != ReasonTrigger {
		a.goal.Target = clampInt(max(min(a.scale.Holds(a.target), fits), 0))
	}
	a.goal.MinFree = clampInt(a.scale.Frees(a.minFree))
	if a.marks.low != noMark {
		a.goal.Low = clampInt(max(a.scale.Holds(a.marks.low), 1))
	}
	return true
}

// acceptLocked refuses an edit that checkLocked refuses, or whose ctx has ended.
// Otherwise it makes the reservation for MakeRoom.
func (a *attempt) acceptLocked(before, next *state) error {
	if err := a.checkLocked(before, next); err != nil {
		return err
	}
	if a.f.ctx.Err() != nil {
		return endOf(a.f.ctx) // the caller has given up
	}
	if a.reserve != nil {
		return a.reserve(next)
	}
	return nil
}

// checkLocked refuses an edit that makes the view larger, leaves it too large, or frees
// too little. It changes nothing.
func (a *attempt) checkLocked(before, next *state) error {
	h, after := a.f.h, next.scale()
	now := h.moment(h.meter.marks())
	undone, _ := h.compactor.restraints(&now)
	if !a.requested && undone > a.at.version {
		return &staleError{Reason: "an edit was undone since, which holds compactions up; see History.Undo"}
	}
	freed := before.raw() - next.raw()
	// The edit is judged by the request that it was made for: messages appended
	// since do not count, except for MakeRoom, which must reserve its room now.
	weight, limit := after.Without(before.raw()-a.at.raw()).Upper(), a.limit
	if a.reserve != nil {
		weight, limit = after.Upper(), min(a.limit, now.marks.limit-a.fromWindow)
	}
	switch {
	case freed < 0:
		return &RefusedError{Reason: fmt.Sprintf("the view would grow by %s tokens", grouped(clampInt(-freed)))}
	case weight > limit && (a.reserve != nil || a.total > a.limit):
		return a.tooLarge(weight, limit, nil)
	}
	if err := a.summary.checkUsable(freed-(a.at.raw()-a.view.raw()), int64(a.goal.MinFree)); err != nil {
		return err
	}
	if freed == 0 && a.reason != ReasonTrigger {
		return ErrNoGain
	}
	return nil
}

// conclude completes the report of an attempt that returned err. It returns no
// error for a decline, unless the request is too long.
func (a *attempt) conclude(err error) (Report, error) {
	r := &a.report
	if err == errReady {
		r.Outcome, r.Unread, r.NotKept = OutcomeReady, 0, 0 // nothing has left yet
		return *r, nil
	}
	ending, h := a.ending(err), a.f.h
	h.locked(func() {
		now := h.moment(h.meter.marks())
		a.repeated = h.compactor.ended(&now, ending)
		if r.Outcome != OutcomeApplied {
			r.Fits, r.Unread, r.NotKept = now.fits() && !h.isClosed(), 0, 0
		}
	})
	if isDecline(err, a.work.Calls) {
		r.Outcome, r.Cause, err = OutcomeDeclined, err, nil
	}
	if err == nil && r.Outcome == OutcomeDeclined && a.total > a.limit && (a.reserve != nil || !r.Fits) {
		err = a.tooLarge(a.total, a.limit, r.Cause)
	}
	if err != nil {
		r.Outcome = OutcomeFailed
		if a.stale {
			r.Outcome = OutcomeStale
			err = worded("the conversation changed while the strategy ran, so that its edit no longer fits; compact again", err)
		}
		if a.planErr != nil && err == a.planErr && a.total > a.limit && (a.reserve != nil || !r.Fits) {
			err = a.tooLarge(a.total, a.limit, err)
		}
		r.Cause = err
	}
	return *r, err
}

// tooLarge returns the error for a request of weight tokens that is over the given
// limit. If cause is nil, that is the size that a refused edit would have left.
// Otherwise it is the unchanged size, and cause says why.
func (a *attempt) tooLarge(weight, limit int64, cause error) error {
	if a.isShortOfBudget(limit) {
		err := &budgetError{Need: clampInt(a.room), Free: clampInt(max(a.room+limit-weight, 0))}
		if cause == nil {
			return err
		}
		return errorf("%w (%w)", err, cause)
	}
	return &LimitError{Need: clampInt(weight), Room: clampInt(a.fromWindow), Limit: clampInt(limit + a.fromWindow), Compacted: cause == nil, Err: cause}
}

// isShortOfBudget reports whether limit is what Options.Budget leaves for the
// request after the room for MakeRoom, and not what the window leaves.
func (a *attempt) isShortOfBudget(limit int64) bool {
	return a.reserve != nil && a.f.h.opts.Budget != nil && limit < a.marks.limit
}

// ending returns how the attempt has ended. err is its error.
func (a *attempt) ending(err error) *ending {
	e, applied := new(ending), a.report.Outcome == OutcomeApplied
	if a.at != nil {
		e.at = a.at.version
		declined := isDecline(err, a.work.Calls) || err == nil && a.report.Outcome == OutcomeDeclined && a.work.Calls == 0
		e.declined = a.reason == ReasonTrigger && declined
	}
	switch {
	case a.work.Calls == 0, a.isReady && !applied: // the summarizer has returned long before
		return e
	case applied && !a.failed && !a.work.wastedCall():
		e.call = calledWell
		return e
	}
	e.call, e.cause = calledInVain, a.failure(err)
	switch {
	case a.failed:
		e.cause = a.cutErr
	case a.stale && !a.work.wastedCall():
		e.call = calledInTime
	}
	return e
}

// failure returns why the attempt called a model in vain. err is the error of the
// attempt.
func (a *attempt) failure(err error) error {
	if i := slices.IndexFunc(a.work.Links, Link.wastedCall); i >= 0 {
		err = a.work.Links[i].Cause
	}
	err = cmp.Or(err, a.report.Cause)
	if err != nil && a.f.ctx.Err() != nil {
		// Later calls also return this error. It must not match the end of another
		// call's ctx.
		err = errors.New(fmt.Sprint(err))
	}
	return err
}

// readsOf returns what s shows. New is what was appended since the last edit. Results with
// fewer than least tokens do not count.
func readsOf(s *Snapshot, same func(ToolCall) string, before *rereads.Past, least int64) *rereads.View {
	found := before.View()
	total, end := int64(0), int64(0)
	for _, e := range s.list {
		total += e.tokens + e.missing()
	}
	head := 0
	var calls []ToolCall
	for i, e := range s.list {
		end += e.tokens + e.missing()
		if e.msg.Role != RoleTool {
			head, calls = i, nil
			continue
		}
		if e.tokens+e.missing() < least {
			continue
		}
		if calls == nil {
			calls = s.list[head].msg.ToolCalls()
		}
		for r := range eachOf[ToolResult](e.msg.Parts) {
			c := slices.IndexFunc(calls, func(c ToolCall) bool { return c.ID == r.CallID })
			if c < 0 {
				continue
			}
			if key := same(calls[c]); key != "" {
				now := rereads.Read{ID: int64(e.id), CallID: r.CallID, Tool: r.Name, Size: (e.tokens + e.missing()) / int64(len(e.msg.Parts)), End: end, Cleared: r.Cleared}
				found.Add(key, now, total-end < s.appended)
			}
		}
	}
	return found
}

// SameCall is for ClearToolResults.Same. It returns the same key for calls of the same tool
// with the same arguments, regardless of the order of fields and of white space. It returns no
// key for arguments that are not a JSON object.
func SameCall(c ToolCall) string {
	if !c.Valid() || strings.TrimSpace(c.Arguments) == "" {
		return ""
	}
	return c.Name + " " + strictjson.Canonical(c.Arguments)
}

// hasCleared reports whether a result in s is cleared.
func (s *state) hasCleared() bool {
	return slices.ContainsFunc(s.list, func(e *entry) bool { return hasCleared(&e.msg) })
}

// leastReread returns the least size of a result that counts as read again, in raw tokens, for
// a view of at most the given size.
func leastReread(most int) int64 { return int64(max(most, 0)) / 256 }
