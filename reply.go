package convo

import (
	"context"
	"fmt"
	"slices"
	"time"
)

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
	Stop       Stop     // why the answer ended; StopDone also if no reason was given
	ParamTools []string // names of the tools in the parameters of the request, besides those of the History; Run leaves their calls open, but not in another process: answer them there before Run

	// CacheTTL is how long the provider keeps the request in its prompt cache. It counts, until the
	// next answer, where Options.CacheTTL is 0, but lets no edit wait. The senders of the client
	// modules set it to what the provider documents for the marks and parameters of the request;
	// your own Send may. It is not saved. 0 or less: not known, so that no pause counts.
	CacheTTL time.Duration

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
func (r Reply) OpenCalls() []ToolCall {
	var all []ToolCall
	open := make(map[string][]int) // the open calls by ID, as indices of all, in order
	answered := make(map[int]bool)
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls() {
			open[c.ID] = append(open[c.ID], len(all))
			all = append(all, c)
		}
		for _, result := range m.ToolResults() {
			if calls := open[result.CallID]; len(calls) > 0 {
				open[result.CallID], answered[calls[0]] = calls[1:], true
			}
		}
	}
	var left []ToolCall
	for i, c := range all {
		if !answered[i] {
			left = append(left, c)
		}
	}
	return left
}

// AppendReply records the usage of an answer to a request that was made of the snapshot
// at, and appends its messages. Your own loop calls it with what the model returned;
// [History.Do] and [History.Run] need no such call.
//
// The Reply that it returns has the messages as they were appended, with IDs for calls that
// had none and the keys of Options.Key. It also has the number of queued messages that were
// appended after them. If the provider has paused the answer, the next one may follow it.
//
// The answer is bound to what was sent, even if the view has changed since; see
// [Snapshot.Unbound]. Append does the same for the snapshot that Prepare returned last. A
// message that was appended since at was made stands before the answer, and nothing answers
// it; give it to Queue instead.
//
// If the answer is empty or was cut off in a call, the error is an [*AnswerError]: what came
// whole was appended, and its calls are open. After any other error nothing was appended, and
// r is returned without IDs; the usage may have been recorded. The error is one of Append,
// also for a user or system message in an answer. Or it matches [ErrStale]: at is nil, not
// from this History or older than a Reload, or a rollback has taken back what it shows. A
// usage that RecordUsage would refuse is logged.
func (h *History) AppendReply(at *Snapshot, r Reply) (_ Reply, err error) {
	if h.ident == nil {
		return r, ErrClosed
	}
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
			a.h.cachedFor(a.reply.CacheTTL)
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
	fault := "is empty"
	if e.CutOff != nil {
		fault = fmt.Sprintf("was cut off in a call of tool %q", abbreviate(e.CutOff.Name))
	}
	remedy := "ask the model again"
	switch {
	case e.open:
		remedy = "append the results of the open calls, and " + remedy
	case e.appended:
		remedy = "append a user message to go on, or take the answer back with RewindTo"
	}
	if e.Stop == StopLength {
		remedy = "let the model write more tokens, and " + remedy
	}
	why := "stop: " + e.Stop.String()
	if e.cause != nil {
		why = withoutPrefix(e.cause)
	}
	return fmt.Sprintf("convo: the answer %s (%s); %s", fault, why, remedy)
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
