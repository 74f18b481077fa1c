package convo

import (
	"context"
	"errors"
	"slices"
)

// A Send calls a model with a request made of the snapshot, and returns its answer;
// [History.Do] says when it is called and what becomes of the answer. Package wire makes
// the request and reads the answer. If Send returns what came until the user stopped the
// answer, and a nil error, that is kept.
type Send = func(ctx context.Context, s *Snapshot) (Reply, error)

// Do makes one request: it compacts if needed, calls send with the snapshot to send,
// records the usage and appends the answer. [History.Run] is a loop around it. In your
// own, an answer with Reply.CutOff or without messages is not finished; go on while it
// has calls, which you answer, or Reply.Queued is above 0.
//
// Do combines [History.Prepare], [History.Recover] and [History.AppendReply], which can
// also be called one by one. It delivers the queue first and after the answer; see
// [History.Queue]. If send returns an error that says the request was too long, or which part
// of it was refused, Recover mends that and send is called again, at most twice for each.
// With Options.Background, Do starts a compaction in the background when the answer has made
// the next request larger than Limits.Soft.
//
// send runs on the caller's goroutine, with no lock held, and may append, read and
// compact. Its ctx ends when ctx ends or h is closed. Its snapshot is made for the model
// and the limits in force when it is called; see [Snapshot.Model]. If it panics, the
// error is a [*PanicError].
//
// Do must not be called from send, a strategy, a summarizer or a function in Options;
// such code can queue messages with [History.Queue]. With the ctx that the code was
// given, or one derived from it, the error is ErrReentrant. With any other, the call
// waits until that ctx ends.
//
// An answer holds assistant messages, and the results of tools that the provider or send
// has run. Any other message in it is a RoleError. An answer without messages is no
// error: Do appends nothing and delivers the queue.
//
// An answer whose Stop is StopPause is appended, and Do calls send again with a snapshot
// that ends with it: the provider goes on with its own tools. The Reply holds the
// messages of all these answers, and the sum of their usage. Do calls send for a paused
// answer at most eight times, and not if it holds open calls, or if another message was
// appended or taken back since. The Reply then has StopPause, and the next Do goes on, as
// after an error.
//
// Before it calls send, Do returns the error of Prepare, or the [*PairError] or
// [*RoleError] that an answer would get now. An error of send leaves the conversation as
// it was, apart from compactions; Do returns it unchanged, or as Recover does. Without
// one, usage is recorded and the answer appended even if ctx has ended since. Usage that
// cannot be true is logged and ignored.
//
// The answer is appended only if the view ends with the same entry as the snapshot that
// was sent. If not, the error matches [ErrStale], and if h was closed, it is ErrClosed.
// With any error, Do returns the last Reply of send. Nothing of it is in the conversation
// but the parts of a paused answer with IDs.
func (h *History) Do(ctx context.Context, send Send) (reply Reply, err error) {
	if send == nil {
		return Reply{}, &ValueError{Name: "the send given to Do", Want: "a function that calls a model"}
	}
	ctx, err = h.compacting.enter(ctx)
	if err == nil {
		ctx, err = h.answering.enter(ctx)
	}
	if err == nil {
		err = h.answering.take(ctx, h.done, notSent)
	}
	if err != nil {
		h.failed(err)
		return Reply{}, err
	}
	a := &answer{h: h, send: send}
	err = errGoroutineEnded // until run returns
	func() {
		defer func() { a.release(err) }()
		err = a.run(ctx)
	}()
	if err != nil {
		h.prove(noVersion)
	}
	a.reply = a.all()
	a.reply.Reports = a.reports
	if err == nil && h.opts.Background {
		h.CompactInBackground(ctx)
	}
	return a.reply, err
}

// These say how often Do sends again after a request that was too long, or of which a part
// was refused, and how often in all.
const (
	maxRetries    = 2
	maxAllRetries = 3
)

// maxPauses is how often Do sends a paused answer back.
const maxPauses = 8

// An answer is one call of Do, which holds the History's slot for answers, or of AppendReply.
type answer struct {
	h       *History
	send    Send     // nil: AppendReply
	reply   Reply    // what send returned last
	first   ID       // of the entries that were taken out of the queue for it; 0: none
	asked   ID       // the newest message of the request
	sent    *sending // the request
	reports []Report

	paused ID    // the end of the view, if that is a paused answer which the next one continues; 0: it is not
	pauses int   // how many paused answers were appended
	before Reply // these answers
}

// notSent begins the error of a Do whose ctx ended before anything was sent.
const notSent = "the request was not sent"

// errGoroutineEnded is the error of a send that ends its goroutine.
var errGoroutineEnded = errors.New("convo: send ended its goroutine")

// release frees the slot for answers. err is the error of Do.
func (a *answer) release(err error) {
	a.h.locked(func() {
		a.h.talk.wait(nil)
		if e := a.h.newestMessage(); err != nil && !isTooLarge(err) && e != nil && e.id == a.asked {
			a.h.talk.note(e, true)
		}
	})
	a.h.answering.release()
}

// run sends the request and appends the answer, and goes on with it while it is paused.
func (a *answer) run(ctx context.Context) error {
	if err := a.check(); err != nil {
		return err
	}
	marked, cancel := context.WithCancelCause(a.h.answering.mark(ctx))
	defer cancel(nil)
	for {
		at, err := a.request(ctx, marked, cancel)
		if at == nil || err != nil {
			return err
		}
		goesOn, err := a.append(at)
		if !goesOn || err != nil {
			return err
		}
	}
}

// request sends the request, again if it was too long or a part of it was refused. It returns
// the snapshot that was sent, or nil if a paused answer is no longer the end of the
// conversation.
func (a *answer) request(ctx, marked context.Context, cancel context.CancelCauseFunc) (*Snapshot, error) {
	var n retries
	for {
		at, err := a.prepare(ctx, cancel)
		if at == nil || err != nil {
			return nil, err
		}
		if err = a.call(marked, at); err == nil {
			return at, nil
		}
		again, err := a.recover(ctx, at, err, &n)
		if !again {
			return nil, err
		}
	}
}

// retries are how often a request was sent again.
type retries struct{ tooLong, refused int }

// recover reports whether the request made of at can be sent again after an error of send. If
// not, it returns the error of Do.
func (a *answer) recover(ctx context.Context, at *Snapshot, err error, n *retries) (again bool, _ error) {
	_, panicked := err.(*PanicError)
	_, spent := err.(*maxRequestsError)
	count, refusal := &n.tooLong, refusalIn(err)
	if refusal != nil {
		count = &n.refused
	}
	isLast := n.tooLong+n.refused == maxAllRetries || *count == maxRetries
	switch {
	case a.h.isClosed():
		return false, closedBeside(withEnd(ctx, err))
	case panicked, spent, isLast && refusal == nil, refusal != nil && len(a.reply.Messages) > 0: // after content nothing is cleared
		return false, withEnd(ctx, err)
	}
	*count++
	var r Report
	if isLast {
		r, err = (&recovery{h: a.h, at: at, cause: err, refusal: refusal}).clear(true)
	} else {
		again, r, err = a.h.Recover(ctx, at, err)
	}
	if r.wasBack { // what the last report tells was put back
		for i, told := range slices.Backward(a.reports) {
			if told.Reason == ReasonRefused && told.Outcome == OutcomeApplied {
				a.reports = slices.Delete(a.reports, i, i+1)
				break
			}
		}
	}
	a.report(r)
	if !again {
		err = withEnd(ctx, err)
	}
	return again, err
}

// all returns the whole answer: the paused answers, and what send returned last.
func (a *answer) all() Reply {
	r := a.reply
	if a.pauses > 0 {
		r.Messages = slices.Concat(a.before.Messages, r.Messages)
		r.IDs = slices.Concat(a.before.IDs, r.IDs)
		r.Usage = a.before.Usage.plus(r.Usage)
	}
	return r
}

// check delivers the queue, and returns an error if no answer may be appended.
func (a *answer) check() error {
	h := a.h
	return h.ifOpen(func() error {
		if n := h.deliverLocked(); n > 0 {
			a.first = h.list[len(h.list)-n].id
		}
		if h.isPaused() {
			a.paused = h.newestID()
		}
		if e := h.newestMessage(); e != nil {
			a.asked = e.id
		}
		return h.answerFault(&h.opts.Roles)
	})
}

// prepare returns the snapshot to send, and records that it is being sent. It returns nil
// if a paused answer of this Do is no longer the end of the conversation.
func (a *answer) prepare(ctx context.Context, cancel context.CancelCauseFunc) (*Snapshot, error) {
	for {
		at, r, err := a.h.Prepare(ctx)
		a.report(r)
		if isLost := func(r Report) bool { return r.PrefixKept < 1 }; isLost(r) && !slices.ContainsFunc(a.reports, isLost) {
			a.reports = append(a.reports, r)
		}
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errorf("%s: %w", notSent, causeOf(ctx))
		}
		ok, err := a.begin(at, cancel)
		switch {
		case err != nil:
			return nil, err
		case ok:
			return at, nil
		case a.pauses > 0 && a.paused == 0:
			return nil, nil
		}
	}
}

// begin records that the snapshot is being sent. It does not, and ok is false, if the view has
// another end now, Reload has brought in other entries, the snapshot is for another model, or
// it does not fit the limits in force.
func (a *answer) begin(at *Snapshot, cancel context.CancelCauseFunc) (ok bool, err error) {
	h := a.h
	err = h.ifOpen(func() error {
		if a.paused != 0 && h.newestID() != a.paused {
			a.paused = 0
			if a.pauses > 0 {
				h.talk.wait(nil)
				a.reply.Queued = h.deliverLocked()
				return nil
			}
		}
		if h.newestID() != at.newestID() || h.isBeforeReload(&at.state) || h.known().model != at.Model() || !h.fits(h.meter.marks()) {
			return nil
		}
		if err := h.answerFault(&h.opts.Roles); err != nil {
			return err
		}
		if e := at.newestMessage(); e != nil {
			a.asked = e.id
		}
		a.sent = &sending{last: at.newestID(), first: a.first, view: viewSent(at), cancel: cancel}
		h.talk.wait(a.sent)
		ok = true
		return nil
	})
	return ok, err
}

// report keeps a report, unless nothing was done or attempted.
func (a *answer) report(r Report) {
	if r.Outcome != OutcomeNotNeeded {
		a.reports = append(a.reports, r)
	}
}

// call calls send.
func (a *answer) call(ctx context.Context, at *Snapshot) (err error) {
	defer catch(&err, "the send given to Do")
	before := Reply{}
	if a.pauses > 0 {
		before.Stop = StopPause
	}
	a.reply = before // if send panics
	a.reply, err = a.send(ctx, at)
	a.reply.IDs, a.reply.Queued, a.reply.Reports = nil, 0, nil
	if err != nil && a.pauses > 0 {
		a.reply.Stop = StopPause
	}
	return err
}
