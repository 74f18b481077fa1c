package modeltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
)

// A driver performs one sequence of operations on a History and on the model.
type driver struct {
	choices
	t          testing.TB
	checkSaved func(testing.TB, *convo.History, *convo.Options)
	stats      *Stats

	h      *convo.History
	m      *model
	opts   convo.Options
	limits convo.Limits
	kept   []*snapshot     // taken earlier, to be reused
	shown  *convo.Snapshot // the last snapshot that compare read
	older  int             // the summary whose older ones compare has read
	forked *snapshot       // a snapshot of a History that continued after this one was made from it
	log    []string

	shelf *shelf       // the shelf that the History is saved in; nil: none yet
	made  convo.Limits // the limits that the History was made with

	acting *driver // the rival that is acting; nil: none

	answering bool // a request is running, and the end of the view is unchanged

	strategy  scripted
	plans     []plan         // the plans of the running compaction that were not yet seen to be applied
	reports   []convo.Report // the reports passed to OnCompaction
	edits     []convo.Report // the reports of edits that were not undone, roughly in order
	oldReport *convo.Report  // the report of an edit of another History
	rounds    []convo.ID     // the unanswered results in recent snapshots
	undoneAt  int            // when Undo last reverted an edit
	told      bool           // it was reported that a trigger finds nothing to do; no edit was made and no limit set since
	mayBeTold bool           // it was reported before a rollback, which may have undone an edit
	asked     uint64         // the version for which the strategy last ran in the foreground
	inside    bool           // a strategy is working in the foreground
	calls     int            // how often the strategy ran in total
	callsHere int            // how often it ran in the running compaction
}

// run performs the operations that c chooses, and compares after each.
func run(t testing.TB, c choices, opts Options, stats *Stats) {
	d := &driver{choices: c, t: t, checkSaved: opts.CheckSaved, stats: stats}
	stats.begin()
	defer func() {
		if r := recover(); r != nil && r != any(unseen{}) {
			panic(r)
		}
	}()
	relaxed, pinFirst := d.n(2) == 1, d.n(3) == 0
	d.opts = convo.Options{PinFirstUser: pinFirst}
	count := counter(convo.Heuristic{}.CountTokens)
	if d.n(2) == 0 {
		count = func(s string) int { return len(s) }
		d.opts.Tokenizer = convo.TokenizerFunc(count)
	}
	d.m = newModel(count, relaxed, pinFirst)
	d.m.replay = convo.Replay(d.n(4))
	d.opts.Overheads.Reasoning = d.m.replay
	if relaxed {
		d.opts.Roles = convo.Relaxed()
	}
	d.strategy = scripted{d: d, inner: convo.Truncate{}}
	d.opts.Strategy = &d.strategy
	d.m.keepOriginals = d.n(3) > 0
	d.opts.KeepOriginals = -1
	if d.m.keepOriginals {
		d.opts.KeepOriginals = 1 << 30
	}
	d.opts.OnCompaction = func(r convo.Report) {
		d := cmp.Or(d.acting, d)
		d.reports = append(d.reports, r)
		if r.Reason == convo.ReasonTrigger && r.Outcome == convo.OutcomeDeclined {
			if d.told {
				d.fail("told twice that a trigger finds nothing to do: %v", r)
			}
			d.told, d.mayBeTold = true, false
		}
		if r.Outcome == convo.OutcomeApplied && r.Reason != convo.ReasonAppend {
			d.told, d.mayBeTold = false, false
		}
		if r.Outcome == convo.OutcomeApplied && r.Reason != convo.ReasonAppend {
			d.edits = append(d.edits, r)
		}
	}
	h, err := convo.New(&d.opts)
	if err != nil {
		t.Fatal(err)
	}
	d.h = h
	for d.more() {
		d.m.time++
		d.step()
		stats.Operations++
		d.compare()
	}
	d.finishHeld()
	d.checkKept()
	d.close()
	d.compare()
	stats.Delivered += d.m.delivered
	stats.end(d.h.Len())
}

// close closes the History and checks that it refuses every change.
func (d *driver) close() {
	d.say("close")
	if err := d.h.Close(); err != nil {
		d.fail("Close: %v", err)
	}
	ctx := context.Background()
	s := d.h.Snapshot()
	_, appendErr := d.h.Append(convo.User("late"))
	_, applyErr := d.h.Apply(s, convo.Edit{Summary: &convo.Summary{Text: "late"}})
	sent, prepared, prepareErr := d.h.Prepare(ctx)
	_, compactErr := d.h.Compact(ctx, "")
	_, _, fitErr := d.h.MakeRoom(ctx, 1)
	retry, _, recoverErr := d.h.Recover(ctx, s, errTooLong)
	_, doErr := d.h.Do(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { panic("sent") })
	for _, call := range []struct {
		name string
		err  error
	}{
		{"Append", appendErr}, {"Apply", applyErr}, {"Prepare", prepareErr},
		{"Compact", compactErr}, {"MakeRoom", fitErr}, {"Recover", recoverErr},
		{"Do", doErr}, {"Queue", d.h.Queue(convo.User("late"))},
	} {
		if !errors.Is(call.err, convo.ErrClosed) {
			d.fail("%s after Close: %v", call.name, call.err)
		}
	}
	if prepared.Fits || retry || sent == nil {
		d.fail("a closed History lets send: %+v, retry %v, snapshot %v", prepared, retry, sent)
	}
	if _, err := d.h.Wait(ctx); err != nil {
		d.fail("Wait after Close: %v", err)
	}
}

// failureOf returns the kind of an error.
func failureOf(err error) failure {
	role, _ := errors.AsType[*convo.RoleError](err)
	edit, _ := errors.AsType[*convo.EditError](err)
	pair, _ := errors.AsType[*convo.PairError](err)
	switch {
	case err == nil:
		return success
	case role != nil:
		return badRole
	case errors.Is(err, convo.ErrNoOpenCall) && strings.Contains(err.Error(), "already has a result"):
		return answered
	case errors.Is(err, convo.ErrNoOpenCall):
		return noOpenCall
	case pair != nil && pair.Calls != nil:
		return ambiguous
	case errors.Is(err, convo.ErrOpenCalls):
		return openCalls
	case edit != nil:
		return badEdit
	case errors.Is(err, convo.ErrStale):
		return stale
	case errors.Is(err, convo.ErrNoGain):
		return noGain
	case errors.Is(err, convo.ErrNotFound):
		return notFound
	}
	return failure(err.Error())
}

// want fails the test unless the operation failed as in the model.
func (d *driver) want(operation string, err error, want failure) {
	d.t.Helper()
	d.say("%s: %q", operation, want)
	if got := failureOf(err); got != want {
		d.fail("%s: got %q (%v), want %q", operation, got, err, want)
	}
}

// say adds a line to the log that a failure prints.
func (d *driver) say(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

// fail ends the test and prints the end of the log.
func (d *driver) fail(format string, args ...any) {
	d.t.Helper()
	tail := d.log
	d.t.Fatalf("%s\nafter %d lines of log, which end with:\n%s", fmt.Sprintf(format, args...), len(d.log), strings.Join(tail, "\n"))
}

// step performs one operation. The number of values in a case is its share of
// 78.
func (d *driver) step() {
	switch op := d.n(78); {
	case op < 56:
		d.act(op)
	case op < 59:
		if d.strategy.held == nil {
			d.do()
		}
	case op < 60:
		d.finishHeld()
		d.reload()
	case op < 63:
		switch {
		case d.strategy.held != nil:
		case d.n(4) == 0:
			d.refuse()
		default:
			d.compact()
		}
	case op < 64:
		d.background()
	case op < 67:
		d.finishHeld()
		d.save()
	default:
		d.append(d.sensible())
		d.append(d.sensible())
	}
}

// act performs an operation that may also run while a strategy is working.
func (d *driver) act(op int) {
	switch {
	case op < 20:
		d.append(d.sensible())
	case op < 30:
		d.append(d.round())
	case op < 33:
		d.append(d.anything())
	case op < 36:
		d.pin()
	case op < 40:
		d.keep()
	case op < 41:
		d.splice()
	case op < 43:
		d.edit()
	case op < 44:
		d.takeBack()
	case op < 46:
		d.system()
	case op < 48:
		d.ephemeral()
	case op < 49:
		d.answerOpen()
	case op < 51:
		d.usage()
	case op < 53:
		d.enqueue()
	case op < 54:
		switch d.n(3) {
		case 0:
			d.unqueue()
		case 1:
			d.meta()
		}
	case op < 55:
		d.undo()
	default:
		d.model()
	}
}
