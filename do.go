package convo

import (
	"context"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/wording"
)

// A Send calls a model with a request made of the snapshot, and returns its answer;
// [History.Do] says when it is called and what becomes of the answer. Package wire makes
// the request and reads the answer. Return the provider's error as it is, or wrapped, since
// [IsOverflow] and Recover read it. If Send returns what came until the user stopped the
// answer, and a nil error, that is kept.
type Send = func(ctx context.Context, s *Snapshot) (Reply, error)

// Do makes one request: it compacts if needed, calls send with the snapshot to send, records
// the usage and appends the answer. [History.Run] is a loop around it. In your own, an answer
// with Reply.CutOff or without messages is not finished; go on while it has calls, which you
// answer, or Reply.Queued is above 0.
//
// Do combines [History.Prepare], [History.Recover] and [History.AppendReply], which can also be
// called one by one. It delivers the queue first and after the answer. If send returns an error
// that says the request was too long, or which part of it was refused, Recover mends that and
// send is called again, at most twice for each. With Options.Background, Do ends with a
// compaction in the background, if the next request is larger than Limits.Soft.
//
// send runs on the caller's goroutine, with no lock held, and may append, read and compact. Its
// ctx ends when ctx ends or h is closed. Its snapshot is made for the model and the limits in
// force when it is called. If it panics, the error is a [*PanicError]. Do must not be called
// from send, a strategy, a summarizer or a function in Options, see [ErrReentrant]; such code
// can queue messages with [History.Queue].
//
// An answer holds assistant messages, and the results of tools that the provider or send has
// run. Any other message in it is a RoleError. An answer without messages is no error: Do
// appends nothing and delivers the queue.
//
// An answer whose Stop is StopPause is appended, and Do calls send again with a snapshot that
// ends with it: the provider goes on with its own tools. The Reply holds the messages of all
// these answers, and the sum of their usage. Do calls send for a paused answer at most eight
// times, and not if it holds open calls, or if another message was appended or taken back
// since. The Reply then has StopPause, and the next Do goes on, as after an error.
//
// Before it calls send, Do returns the error of Prepare, or the [*PairError] or [*RoleError]
// that an answer would get now. An error of send leaves the conversation as it was, apart from
// compactions; Do returns it unchanged, or as Recover does. Without one, usage is recorded and
// the answer appended even if ctx has ended since. Usage that cannot be true is logged and
// ignored.
//
// The answer is appended only if the view ends with the same entry as the snapshot that was
// sent. If not, the error matches [ErrStale], and if h was closed, it is ErrClosed. With any
// error, Do returns the last Reply of send, of which only the parts of a paused answer with IDs
// are in the conversation.
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
	if err = a.run(ctx); err != nil {
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
func (a *answer) run(ctx context.Context) (err error) {
	err = errGoexit // unless run returns
	defer func() { a.release(err) }()
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
		return false, closedBeside(wording.WithEnd(ctx, err))
	case panicked, spent, isLast && refusal == nil, refusal != nil && len(a.reply.Messages) > 0: // after content nothing is cleared
		return false, wording.WithEnd(ctx, err)
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
		err = wording.WithEnd(ctx, err)
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
	defer func() {
		if err != nil && a.pauses > 0 {
			a.reply.Stop = StopPause
		}
	}()
	defer catch(&err, "the send given to Do")
	a.reply = Reply{} // if send panics
	a.reply, err = a.send(ctx, at)
	a.reply.IDs, a.reply.Queued, a.reply.Reports = nil, 0, nil
	return err
}

// A Reply is a model's answer to one request. A [Send] returns one, and [History.Do],
// [History.Run] and [History.AppendReply] return it to their caller. A
// Transcript of package wire makes one, also from a stream.
type Reply struct {
	// Messages are the messages to append: an assistant message, perhaps followed by results
	// that the provider or send has for its calls; none if the answer is empty. Do and
	// AppendReply return them as appended, with IDs for calls that had none; Run adds the
	// results of the calls. Results are whole here, even where Options.MaxResult has cut them in
	// the view.
	Messages []Message

	// CutOff is the last call of an unfinished answer, if the call was cut off: its arguments
	// are empty or not a JSON object, and the provider did not mark it as complete. An answer
	// is unfinished if it stopped for length, was refused or broke off, or if no reason was
	// given. The call is not in Messages, and must not be run. Nil: there is none.
	CutOff *ToolCall

	Usage      Usage    // zero: not reported
	Stop       Stop     // why the answer ended; StopDone also if no reason was given. Calls are run whatever it is
	ParamTools []string // names of the tools in the parameters of the request, besides those of the History; Run leaves their calls open. A restart forgets these names: answer their calls before Run

	// Do and AppendReply set the following, and ignore what they are given here.

	IDs     []ID     // of the entries that Messages were appended as; those without one come last
	Queued  int      // how many queued messages were appended after the answer, and wait for one
	Reports []Report // of the compactions made or attempted for this request, of results that were cut (see ReasonAppend), and of a lost prefix (see PrefixKept)
}

// Text returns the text of the messages except results, joined by newlines.
func (r Reply) Text() string {
	var m Message
	for _, next := range r.Messages {
		if next.Role != RoleTool {
			m.Parts = append(m.Parts, next.Parts...)
		}
	}
	return m.Text()
}

// OpenCalls returns the calls that the messages do not answer. Run them and
// answer with [Result], or with [ResultError] if the arguments are not valid.
func (r Reply) OpenCalls() (left []ToolCall) {
	var all []ToolCall
	open, answered := make(map[string][]int), make(map[int]bool) // indices in all
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls() {
			open[c.ID] = append(open[c.ID], len(all))
			all = append(all, c)
		}
		for _, result := range m.ToolResults() {
			if of := open[result.CallID]; len(of) > 0 {
				answered[of[0]], open[result.CallID] = true, of[1:]
			}
		}
	}
	for i, c := range all {
		if !answered[i] {
			left = append(left, c)
		}
	}
	return left
}

// AppendReply records the usage of an answer to a request that was made of the snapshot at, and
// appends its messages. Your own loop calls it with what the model returned; [History.Do] and
// [History.Run] need no such call. It returns the answer as it was appended; see [Reply]. If
// the provider has paused the answer, the next one may follow it.
//
// The answer is bound to what was sent, even if the view has changed since; see
// [Snapshot.Unbound]. Append does the same for the snapshot that Prepare returned last. A
// message that was appended since at was made stands before the answer, and nothing answers it;
// give it to Queue instead.
//
// If the answer is empty or was cut off in a call, the error is an [*AnswerError]: what came
// whole was appended, and its calls are open. After any other error nothing was appended, and r
// is returned without IDs; the usage may have been recorded. The error is one of Append, also
// for a user or system message in an answer. Or it matches [ErrStale]: at is nil, not from this
// History or older than a Reload, or a rollback has taken back what it shows. A usage that
// RecordUsage would refuse is logged.
func (h *History) AppendReply(at *Snapshot, r Reply) (_ Reply, err error) {
	defer func() {
		if !isStale(err) { // the message that was asked is gone
			h.failed(err)
		}
	}()
	r.IDs, r.Queued, r.Reports = nil, 0, nil
	a := &answer{h: h, reply: r}
	if err := h.ifOpen(func() error { return a.mayAppendLocked(at, nil) }); err != nil {
		return r, err
	}
	if _, err := a.append(at); err != nil {
		return r, err
	}
	a.reply.Reports = a.reports
	return a.reply, a.reply.fault(context.Background(), h.Snapshot)
}

// append records the usage of the answer to a request made of the snapshot, and appends the
// answer. It reports whether the answer is paused and goes on.
func (a *answer) append(at *Snapshot) (goesOn bool, err error) {
	batch, err := a.batch(at)
	if err != nil {
		return false, err
	}
	var cut *Report
	err = a.h.ifOpen(func() (err error) {
		err = a.mayAppendLocked(at, batch)
		if err == nil && len(batch) > 0 {
			cut, err = a.appendLocked(at, batch)
		}
		if err == nil {
			if u := a.reply.Usage; u != (Usage{}) || a.h.answeredFor != at.version {
				a.h.cachedFor(at, u.CacheTTL)
			}
			goesOn = a.endLocked(len(batch) == 0)
		}
		return err
	})
	if cut != nil {
		a.h.deliver(*cut)
		a.report(cut.clone())
	}
	return goesOn, err
}

// mayAppendLocked returns an error if the batch of an answer to a request made of the snapshot
// may not be appended.
func (a *answer) mayAppendLocked(at *Snapshot, batch []pendingEntry) error {
	h := a.h
	if a.send != nil {
		if len(batch) > 0 && !h.talk.waits().isFor(h.newestID()) {
			return &staleError{ID: at.newestID(), Reason: "is what the answer is for, and no longer the end of the conversation; the answer is in the Reply"}
		}
		return nil
	}
	if err := h.ownsLocked(at); err != nil {
		return err
	}
	if id, _ := h.reversedSince(at); id != 0 {
		return &staleError{ID: id, Reason: "was taken back, and the answer to it is not appended; ask the model again"}
	}
	return nil
}

// appendLocked appends the batch of an answer to a request made of the snapshot. It returns a
// report of what was cut in it, or nil.
func (a *answer) appendLocked(at *Snapshot, batch []pendingEntry) (cut *Report, err error) {
	h, r := a.h, &a.reply
	batch[0].goesOn = at.isPaused() && at.newestID() == h.newestID()
	was := h.expect(viewSent(at))
	h.answered(at)
	if cut, err = h.appendLocked(batch); err != nil {
		h.expect(was)
		return nil, err
	}
	h.talk.answered(r.ParamTools)
	r.Messages, r.IDs = make([]Message, len(batch)), make([]ID, len(batch))
	for i, e := range batch {
		r.Messages[i], r.IDs[i] = e.given(), e.id
	}
	return cut, nil
}

// endLocked ends the request whose answer was appended, and delivers the queue. It reports
// true, and Do goes on waiting, if the answer is paused.
func (a *answer) endLocked(isEmpty bool) (goesOn bool) {
	h := a.h
	newest := h.newestID()
	switch {
	case a.send == nil:
	case !isEmpty && h.isPaused() && a.pauses < maxPauses:
		a.before, a.first, a.paused = a.all(), 0, newest
		a.pauses++
		a.reply = Reply{Stop: StopPause}
		h.talk.wait(&sending{last: newest, view: a.sent.view, cancel: a.sent.cancel}) // so that the queue waits
		return true
	default:
		h.talk.wait(nil)
	}
	if isEmpty {
		h.talk.note(h.newestMessage(), true)
	}
	a.reply.Queued = h.deliverLocked()
	return false
}

// batch records the usage of the answer to a request made of the snapshot, and returns its
// messages as a batch.
func (a *answer) batch(at *Snapshot) ([]pendingEntry, error) {
	h, r := a.h, &a.reply
	if r.Usage != (Usage{}) {
		if err := h.RecordUsage(at, r.Usage); err != nil && err != ErrClosed {
			h.warnOfUsage(at, r.Usage, err)
		}
	}
	h.prove(at.version)
	prev := at.newestRole()
	for i, m := range r.Messages {
		if m.Role == RoleUser || m.Role == RoleSystem {
			return nil, &RoleError{Attempted: m.Role, Previous: prev, Index: i, Answer: true}
		}
		prev = m.Role
	}
	batch, err := h.newMessages(nil, r.Messages)
	if err == nil {
		err = h.cutLong(batch)
	}
	if err != nil {
		return nil, err
	}
	if n := len(batch); n > 0 && r.Stop == StopPause {
		batch[n-1].marks.set(paused, true)
	}
	return batch, nil
}

// An AnswerError says that a loop cannot go on from an answer, because it was cut off
// inside a call, or holds nothing or only reasoning. What came whole was appended, and
// [History.Run] has run the calls that came whole. If the ctx of Run has ended, the error
// matches its error and its cause.
type AnswerError struct {
	CutOff *ToolCall // the call that was cut off; nil: the answer holds nothing
	Stop   Stop      // why the answer ended

	appended bool  // the conversation ends with a part of it
	open     bool  // a call is open
	cause    error // why ctx ended, or nil
}

// Unwrap returns why the ctx of Run has ended, or nil.
func (e *AnswerError) Unwrap() error { return e.cause }

func (e *AnswerError) Error() string {
	why := "stop: " + e.Stop.String()
	if e.cause != nil {
		why = withoutPrefix(e.cause)
	}
	return "convo: " + wording.Answer(orNil(e.CutOff).Name, e.CutOff != nil, e.Stop == StopLength, e.appended, e.open, why)
}

// fault returns an *AnswerError if a loop cannot go on from an answer that was appended, and
// nil otherwise. now returns the view.
func (r *Reply) fault(ctx context.Context, now func() *Snapshot) error {
	if r.CutOff == nil && (r.Stop == StopPause && len(r.Messages) > 0 || r.saysAnything()) {
		return nil
	}
	at := now()
	e := &AnswerError{CutOff: r.CutOff, Stop: r.Stop, appended: at.newestRole() == RoleAssistant && !at.isPaused(), open: len(at.OpenCalls()) > 0}
	if ctx.Err() != nil {
		e.cause = causeOf(ctx)
	}
	return e
}

// saysAnything reports whether the answer holds anything besides reasoning.
func (r *Reply) saysAnything() bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool {
		m.Parts = withoutReasoning(m.Parts)
		return !m.isEmpty()
	})
}
