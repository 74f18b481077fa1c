package convo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Compactions of the driver: a strategy of the package plans, the driver acts
// on the History while the flight is under way, and the model applies what was
// planned when the report says so.

// A scripted strategy plans as another one and lets the driver act meanwhile.
type scripted struct {
	d     *driver
	inner convo.CompactionStrategy
	held  *heldFlight // nil: in the foreground
}

func (s *scripted) Name() string { return s.inner.Name() }

func (s *scripted) Due(st convo.Status) bool {
	t, ok := s.inner.(convo.Trigger)
	return ok && t.Due(st)
}

func (s *scripted) Compact(ctx context.Context, at *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	if h := s.held; h != nil {
		if h.rounds++; h.rounds > 1 {
			return convo.Edit{}, convo.ErrNoGain
		}
		h.started <- at
		<-h.land
		return s.inner.Compact(ctx, at, g)
	}
	return s.d.during(ctx, at, g)
}

// A heldFlight is one in the background that waits for the driver.
type heldFlight struct {
	started chan *convo.Snapshot
	land    chan struct{}
	rounds  int
	at      *mSnap
}

// A planned edit is what a strategy returned, not yet seen applied.
type planned struct {
	at   *mSnap
	edit convo.Edit
	err  error

	// As they were when it was planned.
	upper int
	limit int
}

// pick chooses what the scripted strategy plans by.
func (d *driver) pick() {
	sum := convo.SummarizerFunc(func(_ context.Context, req convo.SummaryRequest) (convo.Summary, error) {
		switch d.n(6) {
		case 0:
			return convo.Summary{}, errors.New("no answer")
		case 1:
			return convo.Summary{Text: strings.Repeat("long ", req.MaxTokens)}, nil
		case 2:
			return convo.Summary{Text: "half", Stop: convo.StopLength}, nil
		}
		return convo.Summary{Text: "sum " + itoa(d.m.seq)}, nil
	})
	clearAll := convo.ClearToolResults{KeepLast: -1, MinFreed: -1}
	summarize := convo.Summarize{With: sum, MaxTokens: 20, KeepTokens: d.n(3)*100 - 1, Window: -1}
	all := []convo.CompactionStrategy{
		convo.Truncate{},
		convo.SlidingWindow{Keep: d.n(12), TriggerAt: d.n(20)},
		clearAll,
		summarize,
		convo.Summarize{MaxTokens: 40},
		convo.Chain(clearAll, summarize, convo.Truncate{}),
		convo.Chain(convo.SlidingWindow{Keep: 8}, summarize, convo.Chain(clearAll, convo.Truncate{})),
		convo.Chain(convo.ClearToolResults{KeepLast: 1}, convo.Truncate{}),
	}
	d.strategy.inner = all[d.n(len(all))]
}

// compact asks for a compaction by one of the doors.
func (d *driver) compact() {
	d.pick()
	if d.n(2) == 0 {
		d.setLimits()
	}
	d.attempts, d.told, d.runs = nil, nil, 0
	var r convo.Report
	var err error
	ctx := context.Background()
	switch d.n(6) {
	case 0:
		focus := []string{"", "weather"}[d.n(2)]
		d.say("compact %s %q", d.strategy.Name(), focus)
		r, err = d.h.Compact(ctx, focus)
	case 1:
		n := d.n(400)
		d.say("fit %d with %s", n, d.strategy.Name())
		var res *convo.Reservation
		res, r, err = d.h.Fit(ctx, n)
		if (res != nil) != (err == nil) || res != nil && res.Tokens() != n {
			d.fail("reservation %+v with %v", res, err)
		}
		d.resolve(r, err)
		d.checkReport(r, err, n)
		res.Release()
		return
	case 2:
		at := d.snapshot()
		d.say("recover %d with %s", at.seq, d.strategy.Name())
		var retry bool
		retry, r, err = d.h.Recover(ctx, at.real, errors.New("prompt is too long"))
		d.resolve(r, err)
		if want := d.m.raw() < at.view.raw(); retry != want || !retry && err == nil {
			d.fail("retry %v (%v), want %v", retry, err, want)
		}
		d.checkAttempt(r, err)
		return
	default:
		d.say("compact if needed, %s", d.strategy.Name())
		r, err = d.h.CompactIfNeeded(ctx)
	}
	d.resolve(r, err)
	d.checkReport(r, err, 0)
	if again := d.calls; r.Outcome == convo.Applied && r.Fits {
		// Nothing happened since: the second time is a no-op.
		r, err := d.h.CompactIfNeeded(ctx)
		if r.Outcome != convo.NotNeeded || err != nil || d.calls != again {
			d.fail("compacted again: %+v, %v", r, err)
		}
	}
}

// during stands in for the strategy, under way.
func (d *driver) during(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
	d.calls++
	d.runs++
	d.settleEarlier(s)
	if got, want := s.Tokens(), d.m.raw(); got != want {
		d.fail("the strategy sees %d tokens, want %d", got, want)
	}
	if floor := d.m.scale(d.limits).weigh(d.floorRaw()); d.limit() > 0 && floor > d.limit() {
		d.fail("the strategy runs, with a floor of %d", floor)
	}
	at := &mSnap{real: s, print: printOf(s), view: d.m.mView.copy(), seq: d.m.seq, model: d.m.model}
	p := planned{at: at, upper: d.upper(d.m), limit: d.limit()}
	d.interleave(ctx)
	e, err := d.strategy.inner.Compact(ctx, s, g)
	if err == nil {
		d.spoil(&e)
	}
	d.interleave(ctx)
	d.m.seq++
	p.edit, p.err = e, err
	d.attempts = append(d.attempts, p)
	return e, err
}

// interleave acts while a strategy runs.
func (d *driver) interleave(ctx context.Context) {
	if d.n(3) > 0 {
		return
	}
	if _, err := d.h.CompactIfNeeded(ctx); !errors.Is(err, convo.ErrReentrant) {
		d.fail("from inside: %v", err)
	}
	if d.h.CompactInBackground(ctx) {
		d.fail("a flight inside a flight")
	}
	for range d.n(4) + 1 {
		d.m.seq++
		d.say("- meanwhile")
		d.act(d.n(51))
		d.compare()
	}
	d.m.seq++
}

// spoil makes an edit that breaks a rule, now and then.
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
		e.Summary = &convo.Summary{Text: strings.Repeat("much too long ", 400)}
	case 4:
		e.Clear = append(e.Clear, convo.Clear{ID: d.anyID(), Text: "x"})
	}
}

// modelEdit is an edit as the model has it; read is what its summary covers,
// as the report says.
func modelEdit(e convo.Edit) mEditOf {
	out := mEditOf{drop: slices.Clone(e.Drop), clear: slices.Clone(e.Clear)}
	slices.Sort(out.drop)
	out.drop = slices.Compact(out.drop)
	if e.Summary != nil {
		out.setSum, out.sum = true, e.Summary.Text
	}
	return out
}

// settleEarlier applies what an earlier attempt of the same flight planned, if
// the snapshot shows that it was.
func (d *driver) settleEarlier(s *convo.Snapshot) {
	if len(d.attempts) == 0 {
		return
	}
	p := d.attempts[len(d.attempts)-1]
	d.attempts = nil
	if p.err != nil || s.Tokens() == d.m.raw() {
		return
	}
	e := modelEdit(p.edit)
	e.covers, e.coversKnown = coveredBy(s), true
	r, kind := d.m.apply(p.at, e)
	if kind != "" || r.outcome != convo.Applied {
		d.fail("another view before the next round, and the model says %q %v", kind, r.outcome)
	}
	d.hard.edits++
}

func coveredBy(s *convo.Snapshot) []convo.ID {
	var ids []convo.ID
	sum, _ := s.Summary()
	for _, r := range sum.Covers {
		for id := r.First; id <= r.Last; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// resolve lets the model do what the report says was done.
func (d *driver) resolve(r convo.Report, err error) {
	if len(d.attempts) == 0 {
		d.say("no attempt: %v, %v", r.Outcome, err)
		return
	}
	p := d.attempts[len(d.attempts)-1]
	d.attempts = nil
	d.m.seq++
	ran := slices.DeleteFunc(slices.Clone(d.told), func(r convo.Report) bool { return r.Strategy == "" })
	if len(ran) != d.runs {
		d.fail("%d reports of %d runs of the strategy", len(ran), d.runs)
	}
	r, err = ran[len(ran)-1], nil // a later attempt may have ended before the strategy
	if r.Outcome == convo.Failed || r.Outcome == convo.Stale {
		err = r.Cause
	}
	if p.err != nil {
		if r.Outcome == convo.Applied || r.Outcome == convo.Stale {
			d.fail("planned %v, and the report says %v", p.err, r.Outcome)
		}
		return
	}
	e := modelEdit(p.edit)
	before := *d.m
	before.mView = d.m.mView.copy()
	trial := *d.m
	trial.mView = d.m.mView.copy()
	trial.edits = slices.Clone(d.m.edits)
	if r.Outcome == convo.Applied && e.sum != "" {
		e.coversKnown = true
		e.covers = slices.Concat(before.covers, r.Summarised)
		slices.Sort(e.covers)
		e.covers = slices.Compact(e.covers)
	}
	did, kind := trial.apply(p.at, e)
	freed := before.raw() - trial.raw()
	d.say("planned drop %v clear %d summary %v: %q, %v, frees %d; report %v, %v", e.drop, len(e.clear), e.setSum, kind, did.outcome, freed, r.Outcome, err)
	switch r.Outcome {
	case convo.Applied:
		if kind != "" || did.outcome != convo.Applied {
			d.fail("applied, and the model says %q, %v", kind, did.outcome)
		}
		gone := slices.Concat(r.Dropped, r.Summarised)
		slices.Sort(gone)
		if !slices.Equal(gone, did.gone) || !slices.Equal(r.Cleared, did.cleared) || !slices.Equal(r.Kept, did.kept) {
			d.fail("report %+v, want %+v", r, did)
		}
		if freed < 0 {
			d.fail("the view grew by %d", -freed)
		}
		if r.TokensBefore != d.upper(&before) || r.TokensAfter != d.upper(&trial) {
			d.fail("%d tokens before and %d after, want %d and %d", r.TokensBefore, r.TokensAfter, d.upper(&before), d.upper(&trial))
		}
		since := before.raw() - p.at.view.raw()
		if left := trial.scale(d.limits).without(since).upper(); p.limit > 0 && p.upper > p.limit && left > p.limit {
			d.fail("an edit made above the limit that leaves %d of %d", left, p.limit)
		}
		*d.m = trial
		d.note(before.mView, did, kind)
	case convo.Stale:
		if kind != "stale" {
			d.fail("stale, and the model says %q", kind)
		}
		d.hard.sawStale = true
	case convo.Failed:
		if kind == "edit" {
			if _, ok := errors.AsType[*convo.EditError](err); !ok && !strings.Contains(err.Error(), "edit") {
				d.fail("an edit that breaks a rule: %v", err)
			}
		} else if kind == "stale" {
			d.fail("a stale edit: %v", err)
		}
	}
}

// limit is the limit in force, 0 for none.
func (d *driver) limit() int { return d.limits.Window }

// upper is what a request weighs at most.
func (d *driver) upper(m *model) int { return m.scale(d.limits).upper() }

func (d *driver) floorRaw() int {
	n := d.m.ephTokens()
	for _, e := range d.m.sys {
		n += e.msg.tokens()
	}
	for _, e := range d.m.list {
		if d.m.hardFloor(e) || d.m.pinned(e) {
			n += e.msg.tokens()
		}
	}
	return n
}

// checkReport looks at what any compaction promises; room is what Fit keeps
// free.
func (d *driver) checkReport(r convo.Report, err error, room int) {
	d.checkAttempt(r, err)
	if !r.Fits && err == nil {
		d.fail("does not fit, and no error: %+v", r)
	}
	limit := d.limit()
	upper := d.upper(d.m)
	if room == 0 && limit > 0 && r.Fits != (upper <= limit) {
		d.fail("fits %v, at %d of %d", r.Fits, upper, limit)
	}
	if room > 0 && err == nil && limit > 0 && upper+room > limit {
		d.fail("made room for %d at %d of %d", room, upper, limit)
	}
	if floor, ok := errors.AsType[*convo.FloorError](err); ok && limit > 0 {
		if want := d.m.scale(d.limits).weigh(d.floorRaw()); floor.Floor != want || floor.Limit != limit || floor.Room != room || want+room <= limit {
			d.fail("%v, want %d", floor, want)
		}
		if sum := floor.System + floor.Newest + floor.Users + floor.Pinned + floor.Ephemeral + floor.Overhead; sum != floor.Floor {
			d.fail("shares of %d: %v", sum, floor)
		}
	}
}

func (d *driver) checkAttempt(r convo.Report, err error) {
	if (r.Outcome == convo.Failed || r.Outcome == convo.Stale) && err == nil || r.Outcome == convo.Declined && r.Cause == nil {
		d.fail("%v, with cause %v and error %v", r.Outcome, r.Cause, err)
	}
	if r.Outcome != convo.NotNeeded && len(d.told) == 0 {
		d.fail("%v, and nothing told", r.Outcome)
	}
}

// setLimits puts a small window in force.
func (d *driver) setLimits() {
	l := convo.Limits{Overhead: d.m.guess}
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
		d.limits = l
	}
}

// background starts a flight that is held, or lands the one that is.
func (d *driver) background() {
	if d.strategy.held != nil {
		d.landHeld()
		return
	}
	d.pick()
	d.setLimits()
	held := &heldFlight{started: make(chan *convo.Snapshot), land: make(chan struct{})}
	d.strategy.held = held
	if !d.h.CompactInBackground(context.Background()) {
		d.strategy.held = nil
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = d.h.Wait(context.Background())
	}()
	select {
	case s := <-held.started:
		held.at = &mSnap{real: s, print: printOf(s), view: d.m.mView.copy(), seq: d.m.seq, model: d.m.model}
		d.say("background flight of %s", d.strategy.Name())
		d.m.seq++
		if d.h.CompactInBackground(context.Background()) {
			d.fail("two flights in the background")
		}
	case <-over: // without the strategy
		d.strategy.held = nil
	}
}

// landHeld lets the held flight go on to its end.
func (d *driver) landHeld() {
	held := d.strategy.held
	if held == nil {
		return
	}
	d.m.seq++
	var edit convo.Edit
	var planErr error
	inner := d.strategy.inner
	d.strategy.inner = convo.StrategyFunc(func(ctx context.Context, s *convo.Snapshot, g convo.Goal) (convo.Edit, error) {
		edit, planErr = inner.Compact(ctx, s, g)
		return edit, planErr
	})
	d.attempts, d.told, d.runs = nil, nil, 1
	d.say("lands")
	close(held.land)
	r, err := d.h.Wait(context.Background())
	d.strategy.held, d.strategy.inner = nil, inner
	d.attempts = []planned{{at: held.at, edit: edit, err: planErr}}
	d.told = d.told[:min(len(d.told), 1)] // of the first round
	d.resolve(r, err)
	d.m.seq++
}

// String keeps the log readable.
func (p planned) String() string { return fmt.Sprintf("%v of %d: %v", p.edit.Drop, p.at.seq, p.err) }
