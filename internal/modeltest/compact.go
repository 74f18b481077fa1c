package modeltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-c1b73e60/convo"
)

// Compactions. A strategy of package convo makes an edit. While it works, the
// driver performs other operations on the History. When the report says that the
// edit was applied, the model also applies it.

// errTooLong is the error of a provider for a request that is too long.
var errTooLong = errors.New("prompt is too long")

// A scripted strategy returns the edits of another strategy, and lets the driver act
// before and after.
type scripted struct {
	d     *driver
	inner convo.CompactionStrategy
	held  *held // nil: the compaction runs in the foreground
}

func (s *scripted) Name() string { return s.inner.Name() }

func (s *scripted) Due(st convo.Status) bool {
	t, ok := s.inner.(convo.Trigger)
	return ok && t.Due(st)
}

func (s *scripted) Compact(ctx context.Context, at *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	if h := s.held; h != nil {
		if h.calls++; h.calls > 1 {
			return convo.Edit{}, convo.ErrNoGain
		}
		h.started <- at
		<-h.resume
		return s.inner.Compact(ctx, at, g)
	}
	return s.d.during(ctx, at, g)
}

// A held compaction runs in the background and waits for the driver.
type held struct {
	started chan *convo.Snapshot
	resume  chan struct{}
	calls   int // the calls of the strategy
	at      *snapshot
	cuts    map[convo.ID][]result
}

// A plan is what a strategy returned.
type plan struct {
	at   *snapshot
	edit convo.Edit
	err  error
	cuts map[convo.ID][]result // the results that the strategy was shown cut

	// The state when the strategy was called.
	upper, limit int
	trigger      bool // a Trigger was due
}

// pick chooses the strategy.
func (d *driver) pick() {
	sum := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		switch d.n(6) {
		case 0:
			return convo.Summary{}, errors.New("no answer")
		case 1:
			return convo.Summary{Text: words(req.MaxTokens)}, nil
		case 2:
			return convo.Summary{Text: "half", Stop: convo.StopLength}, nil
		}
		return convo.Summary{Text: "sum " + strconv.Itoa(d.m.time)}, nil
	})
	clearAll := convo.ClearToolResults{KeepLast: -1, MinFree: -1}
	summarize := convo.Summarize{With: sum, MaxTokens: 20, KeepTokens: d.n(3)*100 - 1, Window: -1}
	all := []convo.CompactionStrategy{
		convo.Truncate{},
		convo.SlidingWindow{KeepLast: d.n(12), KeepTurns: max(d.n(8)-4, 0), TriggerAt: d.n(20)},
		clearAll,
		summarize,
		convo.Summarize{MaxTokens: 40},
		convo.Summarize{With: sum, MaxTokens: 20, KeepLast: d.n(12), KeepTurns: d.n(4), KeepTokens: d.n(3)*100 - 100, Window: -1},
		convo.Chain(clearAll, summarize, convo.Truncate{}),
		convo.Chain(convo.SlidingWindow{KeepLast: 8}, summarize, convo.Chain(clearAll, convo.Truncate{})),
		convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Truncate{}),
		convo.When(func(s convo.Status) bool { return s.Turns > 1 }, clearAll),
		convo.Chain(convo.When(func(convo.Status) bool { return true }, convo.ClearToolResults{MinFree: 300}), convo.Truncate{}),
		convo.ClearThinking{KeepTurns: d.n(4)},
		convo.Chain(convo.ClearThinking{}, clearAll, summarize, convo.Truncate{}),
	}
	shorten := convo.StrategyFunc(d.shorten).Named("shorten")
	all = append(all, shorten, convo.Chain(clearAll, shorten, summarize), convo.Chain(shorten, clearAll, convo.Truncate{}))
	d.strategy.inner = all[d.n(len(all))]
}

// words returns a text of n different words.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("long" + strconv.Itoa(i) + " ")
	}
	return b.String()
}

// unread is the text of a summary that a strategy did not write.
var unread = words(1200)

// shortened is the beginning of the texts that the strategy shorten makes.
const shortened = "s "

// shorten is a strategy that rewrites entries outside the floor to shorter ones, the
// oldest first.
func (d *driver) shorten(_ context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	var e convo.Edit
	left := s.Tokens()
	for x := range s.Exchanges() {
		if x.Floor || left <= g.Target {
			continue
		}
		for _, id := range x.IDs() {
			entry, _ := s.Find(id)
			r := convo.Rewrite{ID: id, Parts: entry.Message.Parts, Forget: d.n(4) == 0}
			freed := 0
			for i, p := range r.Parts {
				short := func(text string) []convo.Part {
					if freed >= 0 && d.m.count(text) > d.m.count(shortened+"x") && d.n(3) > 0 {
						freed += d.m.count(text) - d.m.count(shortened+"x")
						return []convo.Part{convo.Text(shortened + "x")}
					}
					return nil
				}
				switch p := p.(type) {
				case convo.Text:
					if parts := short(string(p)); parts != nil {
						r.Parts[i] = parts[0]
					}
				case convo.ToolResult:
					if parts := short(p.Text()); parts != nil {
						p.Parts, p.Cleared = parts, false
						r.Parts[i] = p
					}
				}
			}
			if freed > 0 {
				e.Rewrite = append(e.Rewrite, r)
				left -= freed
			}
		}
	}
	return e, nil
}

// compact calls one of the methods that compact, and checks its error.
func (d *driver) compact() {
	d.pick()
	if d.n(2) == 0 {
		d.setLimits()
	}
	d.plans, d.reports, d.callsHere = nil, nil, 0
	d.take() // unanswered results may be cut
	ctx := context.Background()
	var r convo.Report
	var err error
	switch d.n(6) {
	case 0:
		focus := []string{"", "weather"}[d.n(2)]
		d.say("compact %s %q", d.strategy.Name(), focus)
		r, err = d.h.Compact(ctx, focus)
		d.resolve()
		d.checkCompact(r, err)
	case 1:
		n := d.n(400)
		d.say("fit %d with %s", n, d.strategy.Name())
		var res *convo.Reservation
		res, r, err = d.h.MakeRoom(ctx, n)
		d.resolve()
		d.checkFit(n, res, r, err)
		res.Release()
		return
	case 2:
		at := d.snapshot()
		d.say("recover %d with %s", at.time, d.strategy.Name())
		var retry bool
		retry, r, err = d.h.Recover(ctx, at.real, errTooLong)
		if !retry {
			d.m.requestFailed(nil)
		}
		d.resolve()
		d.checkRecover(at, retry, r, err)
		return
	default:
		d.say("compact if needed, %s", d.strategy.Name())
		r, err = d.prepare(ctx)
		d.resolve()
		d.checkSend(r, err)
	}
	again := d.calls
	if r.Outcome == convo.OutcomeApplied && r.Fits {
		r, err := d.prepare(ctx)
		if r.Outcome != convo.OutcomeNotNeeded || err != nil || d.calls != again {
			d.fail("compacted again, with nothing new: %+v, %v", r, err)
		}
	}
	if r.Outcome == convo.OutcomeDeclined && r.Reason == convo.ReasonTrigger {
		d.checkDeclined()
	}
	d.checkCancelled()
}

// checkDeclined checks that a strategy which found nothing to do when its Trigger was due
// is not called again before something has changed. Then it changes something.
func (d *driver) checkDeclined() {
	ctx, calls := context.Background(), d.calls
	if d.asked == d.h.Snapshot().Version() {
		r, err := d.prepare(ctx)
		if r.Outcome != convo.OutcomeNotNeeded || err != nil || d.calls != calls {
			d.fail("asked again, with nothing new: %+v, %v", r, err)
		}
	}
	d.append([]message{d.user()})
	d.compare()
	d.plans, d.reports, d.callsHere = nil, nil, 0
	d.take()
	d.say("compact if needed again, %s", d.strategy.Name())
	r, err := d.prepare(ctx)
	d.resolve()
	d.checkSend(r, err)
}

// prepare calls Prepare.
func (d *driver) prepare(ctx context.Context) (convo.Report, error) {
	s, r, err := d.h.Prepare(ctx)
	if d.m.failed = 0; err != nil {
		d.m.requestFailed(err)
	}
	if s == nil || s != d.h.Snapshot() {
		d.fail("Prepare returned the snapshot %v, want %v", s, d.h.Snapshot())
	}
	return r, err
}

// checkCancelled checks that a ctx that has ended is an error only when the
// request does not fit, and changes nothing.
func (d *driver) checkCancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before, calls := d.h.Snapshot(), d.calls
	r, err := d.prepare(ctx)
	if d.h.Snapshot() != before || d.calls != calls {
		d.fail("compacted under a ctx that has ended: %+v", r)
	}
	d.checkSend(r, err)
	if r.Outcome == convo.OutcomeFailed && !errors.Is(r.Cause, context.Canceled) {
		if _, isFloor := errors.AsType[*convo.FloorError](r.Cause); !isFloor {
			d.fail("under a ctx that has ended: %v", r.Cause)
		}
	}
}

// during makes an edit in place of the strategy, with other operations before and after.
func (d *driver) during(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	d.calls++
	d.callsHere++
	d.asked = s.Version()
	d.resolveEarlier()
	cut := *d.m
	cuts := d.cuts(s)
	cut.view = d.m.view.withCuts(cuts)
	if got, want := s.Tokens(), cut.raw(); got != want {
		d.fail("the strategy sees %d tokens, want %d", got, want)
	}
	if floor := cut.floorUpper(d.limits); d.limits.Window > 0 && floor > d.limits.Window {
		d.fail("the strategy runs, and the floor alone weighs %d", floor)
	}
	d.inside = true
	defer func() { d.inside = false }()
	p := plan{at: d.picture(s), cuts: cuts, upper: d.upper(d.m), limit: d.limits.Window, trigger: g.Reason == convo.ReasonTrigger}
	d.interleave(ctx)
	e, err := d.strategy.inner.Compact(ctx, s, g)
	if err == nil {
		d.spoil(&e)
	}
	d.interleave(ctx)
	d.m.time++
	p.edit, p.err = e, err
	d.plans = append(d.plans, p)
	return e, err
}

// interleave performs other operations while a strategy works.
func (d *driver) interleave(ctx context.Context) {
	if d.n(3) > 0 {
		return
	}
	if r, err := d.prepare(ctx); !errors.Is(err, convo.ErrReentrant) || r.Fits {
		d.fail("Prepare inside a compaction: %+v, %v", r, err)
	}
	if _, err := d.h.Wait(ctx); !errors.Is(err, convo.ErrReentrant) {
		d.fail("Wait inside a compaction: %v", err)
	}
	if d.h.CompactInBackground(ctx) {
		d.fail("two compactions at once")
	}
	for range d.n(4) + 1 {
		d.m.time++
		d.say("- meanwhile")
		d.act(d.n(55))
		d.compare()
	}
	d.m.time++
}

// spoil sometimes makes an edit break a rule.
func (d *driver) spoil(e *convo.Edit) {
	switch d.n(24) {
	case 0:
		e.Drop = append(e.Drop, d.anyID())
	case 1:
		if len(e.Drop) > 0 {
			e.Drop = slices.Clone(e.Drop)[1:]
		}
	case 2:
		e.Summary = &convo.Summary{Text: " "}
	case 3:
		e.Summary = &convo.Summary{Text: unread}
	case 4:
		e.Clear = append(e.Clear, convo.Clear{ID: d.anyID(), Text: "x"})
	case 5:
		e.Rewrite = append(e.Rewrite, convo.Rewrite{ID: d.anyID(), Parts: []convo.Part{convo.Text(shortened + "x")}})
	}
}

// editOf returns the model's form of an edit.
func editOf(e convo.Edit) edit {
	out := edit{drop: slices.Clone(e.Drop), clear: slices.Clone(e.Clear), rewrite: e.Rewrite, byStrategy: true}
	slices.Sort(out.drop)
	out.drop = slices.Compact(out.drop)
	if e.Summary != nil {
		out.setSummary, out.summary, out.reads = true, shownSummary(*e.Summary), idsIn(e.Summary.Read)
		out.goesBack = e.Summary.Text != unread
		if e.Summary.Covers != nil {
			out.covers = append([]convo.ID{}, idsIn(e.Summary.Covers)...) // not nil, if empty
		}
	}
	return out
}

// shownSummary returns what the model sees of a summary.
func shownSummary(s convo.Summary) string {
	if s.Names == "" {
		return s.Text
	}
	return s.Text + namesLine + s.Names
}

const namesLine = "\n\nNames that came up before: "

// resolveEarlier applies the edit that the strategy returned earlier in the same call, if
// the History shows that it was applied.
func (d *driver) resolveEarlier() {
	if len(d.plans) == 0 {
		return
	}
	p := d.plans[len(d.plans)-1]
	d.plans = nil
	if d.h.Snapshot().Tokens() == d.m.raw() {
		return
	}
	e := editOf(p.edit)
	e.cuts = d.cuts(d.h.Snapshot())
	if _, fail := d.m.apply(p.at, e); fail != success {
		d.fail("the view has changed, and the model says %q", fail)
	}
	d.stats.saw.edits++
}

// resolve updates the model as the report of the last run of the strategy states.
func (d *driver) resolve() {
	if len(d.plans) == 0 {
		d.say("the strategy did not run")
		d.resolveCuts()
		return
	}
	defer d.resolveCuts()
	p := d.plans[len(d.plans)-1]
	d.plans = nil
	d.m.time++
	// A later report may describe an attempt that ended before the strategy ran.
	ran := slices.DeleteFunc(slices.Clone(d.reports), func(r convo.Report) bool { return r.Strategy == "" })
	if (d.told || d.mayBeTold) && p.trigger && len(ran) == d.callsHere-1 {
		d.say("declined, and not told again")
		d.stats.saw.untold = true
		return
	}
	if len(ran) != d.callsHere {
		d.fail("the strategy ran %d times, and there are %d reports", d.callsHere, len(ran))
	}
	r, isUnseen := d.withCutsAgain(ran[len(ran)-1])
	if p.err != nil && len(r.Shortened) == 0 {
		if r.Outcome == convo.OutcomeApplied || r.Outcome == convo.OutcomeStale && !d.mayBeStale(p, r) {
			d.fail("the strategy returned %v, and the report says %v", p.err, r.Outcome)
		}
		return
	}
	e := editOf(p.edit)
	if p.err != nil {
		e = edit{} // the History's own cuts were applied without the strategy
	}
	if r.Outcome == convo.OutcomeApplied {
		e.cuts = d.toCut(p, r)
	}
	before := *d.m
	before.view = d.m.view.clone()
	after := *d.m
	after.view = d.m.view.clone()
	after.applied, after.forgotten = slices.Clone(d.m.applied), maps.Clone(d.m.forgotten)
	did, want := after.apply(p.at, e)
	freed := before.raw() - after.raw()
	d.say("edit drop %v clear %d summary %v: %q, frees %d; report %v, %v", e.drop, len(e.clear), e.setSummary, want, freed, r.Outcome, r.Cause)
	switch r.Outcome {
	case convo.OutcomeApplied:
		if want != success {
			d.fail("applied, and the model says %q", want)
		}
		d.checkChange(r, did)
		if freed < 0 {
			d.fail("the view grew by %d", -freed)
		}
		if r.TokensBefore != d.upper(&before) || r.TokensAfter != d.upper(&after) {
			d.fail("%d tokens before and %d after, want %d and %d", r.TokensBefore, r.TokensAfter, d.upper(&before), d.upper(&after))
		}
		since := before.raw() - p.at.view.raw()
		if left := after.scale(d.limits).without(since).upper(); p.limit > 0 && p.upper > p.limit && left > p.limit {
			d.fail("the request was too long, the limit is %d, and the edit that was applied leaves %d", p.limit, left)
		}
		*d.m = after
		d.note(before.view, did, want)
		if isUnseen {
			panic(unseen{})
		}
	case convo.OutcomeDeclined:
		if want != success && want != noGain {
			d.fail("declined, and the model says %q", want)
		}
	case convo.OutcomeStale:
		if want != stale && d.undoneAt <= p.at.time && !d.mayBeStale(p, r) {
			d.fail("stale, and the model says %q", want)
		}
		d.stats.saw.stale = true
	case convo.OutcomeFailed:
		switch want {
		case badEdit:
			if _, ok := errors.AsType[*convo.EditError](r.Cause); !ok {
				d.fail("an edit that breaks a rule failed with: %v", r.Cause)
			}
		case stale:
			d.fail("a stale edit failed with: %v", r.Cause)
		}
	default:
		d.fail("the strategy ran, and the report says %v", r.Outcome)
	}
}

// toCut returns the cuts by the History that are part of an applied edit, including cuts
// that a pin has since prevented.
func (d *driver) toCut(p plan, r convo.Report) map[convo.ID][]result {
	cuts := d.cuts(d.h.Snapshot())
	// A later round may also have cut results.
	maps.DeleteFunc(cuts, func(id convo.ID, _ []result) bool { return !slices.Contains(r.Shortened, id) })
	for id, results := range p.cuts {
		if _, ok := cuts[id]; !ok {
			cuts[id] = results
		}
	}
	if r.Reason != convo.ReasonOverflow || len(p.cuts) > 0 {
		return cuts
	}
	// Recover cuts once more after the strategy. Only the report shows which of the
	// results pinned since then it would have cut.
	for _, x := range p.at.view.unansweredResults() {
		now, ok := d.m.find(x.id)
		if ok && d.m.isPinned(now) && !p.at.view.isPinned(x) && slices.Contains(r.Spared, x.id) {
			cuts[x.id] = x.msg.results
		}
	}
	return cuts
}

// mayBeStale reports whether the cuts by the History itself may have become stale since p
// was made, because an edit was undone, or because a result has left the view or changed.
func (d *driver) mayBeStale(p plan, r convo.Report) bool {
	isGone := func(id convo.ID) bool {
		now, ok := d.m.find(id)
		then, _ := p.at.view.find(id)
		return !ok || !slices.Equal(now.msg.results, then.msg.results)
	}
	for id := range p.cuts {
		if d.undoneAt > p.at.time || isGone(id) {
			return true
		}
	}
	if r.Reason != convo.ReasonOverflow {
		return false
	}
	results := p.at.view.unansweredResults()
	return slices.ContainsFunc(results, func(x entry) bool { return isGone(x.id) })
}

// withCutsAgain returns the report r of the strategy's last run, joined with that of a later
// round which has cut one of the same results once more: the text between the two cuts
// cannot be read, so the conversation ends after the comparison.
func (d *driver) withCutsAgain(r convo.Report) (joined convo.Report, isUnseen bool) {
	if r.Outcome != convo.OutcomeApplied {
		return r, false
	}
	at := len(d.reports)
	for at > 0 && d.reports[at-1].Strategy == "" {
		at--
	}
	isAgain := func(id convo.ID) bool { return slices.Contains(r.Shortened, id) }
	for i, later := range d.reports[at:] {
		isCut := later.Outcome == convo.OutcomeApplied && later.Reason != convo.ReasonAppend
		if !isCut || !slices.ContainsFunc(later.Shortened, isAgain) {
			continue
		}
		r.Shortened = slices.Sorted(slices.Values(slices.Concat(r.Shortened, later.Shortened)))
		r.Shortened, r.TokensAfter = slices.Compact(r.Shortened), later.TokensAfter
		d.reports = slices.Concat(d.reports[:at], d.reports[at+i+1:])
		return r, true
	}
	return r, false
}

// resolveCuts makes the cuts in the model that the History made without its strategy.
func (d *driver) resolveCuts() {
	if n := len(d.reports); n > 0 && d.reports[n-1].Strategy == "" {
		d.resolveCut(d.reports[n-1])
	}
}

// resolveCut is resolveCuts for one report.
func (d *driver) resolveCut(r convo.Report) {
	if r.Outcome != convo.OutcomeApplied || len(r.Shortened) == 0 || r.Reason == convo.ReasonAppend {
		return
	}
	d.m.time++
	before := d.m.view.clone()
	did, want := d.m.apply(d.picture(d.h.Snapshot()), edit{cuts: d.cuts(d.h.Snapshot())})
	d.say("cut %v: %q", r.Shortened, want)
	if want != success {
		d.fail("cut %v, and the model says %q", r.Shortened, want)
	}
	d.checkChange(r, did)
	d.note(before, did, want)
	d.m.time++
}

// upper returns the upper bound of a request.
func (d *driver) upper(m *model) int { return m.scale(d.limits).upper() }

// fits reports whether the next request is within the limit.
func (d *driver) fits() bool {
	return d.limits.Window == 0 || d.upper(d.m) <= d.limits.Window
}

// checkSend checks the error of Prepare: there is one
// exactly when the request is too long.
func (d *driver) checkSend(r convo.Report, err error) {
	d.checkReport(r, err)
	if (err == nil) != d.fits() {
		d.fail("error %v, at %d of %d tokens", err, d.upper(d.m), d.limits.Window)
	}
}

// checkCompact checks the error of Compact: none when an edit was applied or nothing is
// new since the last edit, ErrNoGain when there was nothing to remove, and otherwise the
// cause of the failure.
func (d *driver) checkCompact(r convo.Report, err error) {
	d.checkReport(r, err)
	switch r.Outcome {
	case convo.OutcomeApplied, convo.OutcomeNotNeeded:
		if err != nil {
			d.fail("Compact: %v, with the error %v", r.Outcome, err)
		}
	case convo.OutcomeDeclined:
		if !errors.Is(err, convo.ErrNoGain) {
			d.fail("Compact declined with %v, want ErrNoGain", err)
		}
	default:
		if err == nil || err != r.Cause {
			d.fail("Compact failed with %v, because of %v", err, r.Cause)
		}
	}
}

// checkFit checks the error of MakeRoom: none when n tokens are reserved.
func (d *driver) checkFit(n int, res *convo.Reservation, r convo.Report, err error) {
	if (res != nil) != (err == nil) {
		d.fail("reservation %+v with the error %v", res, err)
	}
	d.checkCause(r)
	d.checkFloor(err, n)
	if upper := d.upper(d.m); err == nil && d.limits.Window > 0 && upper+n > d.limits.Window {
		d.fail("reserved %d beside %d of %d tokens", n, upper, d.limits.Window)
	}
}

// checkRecover checks the error of Recover: none exactly when sending again
// makes sense, which it does when the view weighs less than what was sent.
func (d *driver) checkRecover(sent *snapshot, retry bool, r convo.Report, err error) {
	d.checkCause(r)
	d.checkFloor(err, 0)
	if want := d.m.raw() < sent.view.raw(); retry != want || retry != (err == nil) {
		d.fail("retry %v with the error %v, want %v", retry, err, want)
	}
	if err != nil && !errors.Is(err, errTooLong) {
		d.fail("the error %v does not wrap %q", err, errTooLong)
	}
}

// checkReport checks rules that hold for all reports of Prepare and
// Compact.
func (d *driver) checkReport(r convo.Report, err error) {
	d.checkCause(r)
	d.checkFloor(err, 0)
	if r.Fits != d.fits() {
		d.fail("fits %v, at %d of %d tokens", r.Fits, d.upper(d.m), d.limits.Window)
	}
}

// checkCause checks that a report has a cause when nothing was applied, and that
// OnCompaction was called.
func (d *driver) checkCause(r convo.Report) {
	switch r.Outcome {
	case convo.OutcomeNotNeeded:
		return
	case convo.OutcomeDeclined, convo.OutcomeFailed, convo.OutcomeStale:
		if r.Cause == nil {
			d.fail("%v without a cause", r.Outcome)
		}
	}
	quiet := (d.told || d.mayBeTold) && r.Reason == convo.ReasonTrigger && r.Outcome == convo.OutcomeDeclined
	if len(d.reports) == 0 && !quiet {
		d.fail("%v, and OnCompaction was not called", r.Outcome)
	}
}

// checkFloor checks the numbers of a FloorError; room is the number of tokens that
// MakeRoom should reserve.
func (d *driver) checkFloor(err error, room int) {
	floor, ok := errors.AsType[*convo.FloorError](err)
	if !ok || d.limits.Window == 0 {
		return
	}
	want := d.m.floorUpper(d.limits)
	if floor.Floor != want || floor.Limit != d.limits.Window || floor.Room != room || want+room <= d.limits.Window {
		d.fail("%v, want a floor of %d", floor, want)
	}
	if shares := floor.System + floor.Newest + floor.Calls + floor.Round + floor.Users + floor.Pinned + floor.Ephemeral + floor.Tools; shares != floor.Floor {
		d.fail("the shares of %v add up to %d", floor, shares)
	}
}

// setLimits sets small limits or no limits.
func (d *driver) setLimits() {
	l := convo.Limits{Tools: d.m.tools}
	if d.n(5) > 0 {
		l.Window, l.Reserve = 150+d.n(1500), -1
		if d.n(2) == 0 {
			l.High = l.Window - d.n(l.Window/3)
		}
		if d.n(2) == 0 {
			l.Low = l.Window/4 + d.n(l.Window/4)
		}
		if d.n(2) == 0 {
			l.MinFree = d.n(l.Window/16) + 1
		}
	}
	d.say("set limits %+v", l)
	if err := d.h.SetLimits(l); err == nil {
		d.told, d.m.toolsSet = false, true
		d.limits = l
	}
}

// background starts a compaction in the background and holds it, or finishes the held
// one.
func (d *driver) background() {
	if d.strategy.held != nil {
		d.finishHeld()
		return
	}
	d.pick()
	d.setLimits()
	d.plans, d.reports = nil, nil
	d.take() // unanswered results may be cut
	h := &held{started: make(chan *convo.Snapshot), resume: make(chan struct{})}
	d.strategy.held = h
	if !d.h.CompactInBackground(context.Background()) {
		d.strategy.held = nil
		return
	}
	ended, waited := make(chan struct{}), d.h
	go func() {
		defer close(ended)
		_, _ = waited.Wait(context.Background())
	}()
	select {
	case s := <-h.started:
		h.at, h.cuts = d.picture(s), d.cuts(s)
		d.say("%s runs in the background", d.strategy.Name())
		d.m.time++
		if d.h.CompactInBackground(context.Background()) {
			d.fail("two compactions at once in the background")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := d.h.Wait(ctx); !errors.Is(err, context.Canceled) {
			d.fail("Wait under a ctx that has ended: %v", err)
		}
	case <-ended: // before the strategy ran
		d.strategy.held = nil
		d.resolveCuts()
	}
}

// unseen ends a conversation in which two attempts or rounds of a compaction cut the same
// result, because the text between the two cuts cannot be read.
type unseen struct{}

// finishHeld lets the held compaction end.
func (d *driver) finishHeld() {
	h := d.strategy.held
	if h == nil {
		return
	}
	d.m.time++
	p := plan{at: h.at, cuts: h.cuts}
	inner := d.strategy.inner
	d.strategy.inner = convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		p.trigger = g.Reason == convo.ReasonTrigger
		p.edit, p.err = inner.Compact(ctx, s, g)
		return p.edit, p.err
	})
	d.reports, d.callsHere = nil, 1
	d.say("the background goes on")
	close(h.resume)
	if _, err := d.h.Wait(context.Background()); err != nil {
		d.fail("Wait: %v", err) // Wait does not return the compaction's error
	}
	d.strategy.held, d.strategy.inner = nil, inner
	reports := d.reports
	if len(reports) > 0 && reports[0].Outcome == convo.OutcomeApplied {
		d.addNames(&p)
	}
	d.plans = []plan{p}
	d.reports = reports[:min(len(reports), 1)] // the report of the first run
	for _, r := range reports[len(d.reports):] {
		if slices.ContainsFunc(r.Shortened, func(id convo.ID) bool { return slices.Contains(reports[0].Shortened, id) }) {
			panic(unseen{})
		}
	}
	d.resolve()
	d.m.time++
	for _, r := range reports[min(len(reports), 1):] { // the strategy then had nothing to remove
		d.resolveCut(r)
	}
}

// addNames sets the names in the summary of a plan that was applied to those in the
// History, which adds the names that came up while the strategy worked. It fails the test
// unless a message appended since then and a dropped entry have each of them, and nothing
// else in the view of the plan has it.
func (d *driver) addNames(p *plan) {
	sum, ok := d.h.Snapshot().Summary()
	was, had := p.at.real.Summary()
	if p.edit.Summary == nil || !ok || had && was.Updates == sum.Updates {
		return // the History has no new summary
	}
	old := strings.Fields(p.edit.Summary.Names)
	for name := range strings.FieldsSeq(sum.Names) {
		if slices.Contains(old, name) {
			continue
		}
		has := func(e entry) bool { return slices.Contains(e.msg.words(), name) }
		leaves := func(e entry) bool { return slices.Contains(p.edit.Drop, e.id) && !d.m.isPinned(e) }
		cameUp := slices.ContainsFunc(d.m.list, func(e entry) bool { return e.id > p.at.view.last && has(e) })
		left, stayed := false, slices.Contains(wordsOf(sum.Text), name)
		for _, e := range slices.Concat(p.at.view.sys, p.at.view.list) {
			left, stayed = left || leaves(e) && has(e), stayed || !leaves(e) && has(e)
		}
		if !cameUp || !left || stayed {
			d.fail("the summary names %q: appended since then %v, dropped %v, still in the view %v", name, cameUp, left, stayed)
		}
	}
	own := *p.edit.Summary
	own.Names = sum.Names
	p.edit.Summary = &own
}

// words returns the words in the texts, the arguments and the results of m.
func (m message) words() []string {
	words := wordsOf(m.text)
	for i := range m.calls {
		words = append(words, wordsOf(m.arguments(i))...)
	}
	for _, r := range m.results {
		words = append(words, wordsOf(r.text)...)
	}
	return words
}

// wordsOf returns the words of a text, as far as the random texts have names.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.'
	})
	for i := range words {
		words[i] = strings.TrimRight(words[i], ".")
	}
	return words
}

// String returns the form of a plan in a log.
func (p plan) String() string { return fmt.Sprintf("%v of %d: %v", p.edit.Drop, p.at.time, p.err) }
