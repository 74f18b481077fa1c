package convo

import (
	"context"
	"fmt"
	"strings"
)

// A Reply is a model's answer to one request. The function given to [History.Do]
// returns one, and Do returns it to its caller. A [Builder] makes one of a stream,
// and the Transcript that package wire decodes turns into one.
type Reply struct {
	// Messages are what to append: an assistant message, perhaps followed by
	// results that the provider or send has for its calls. An answer that holds
	// nothing has none. Do returns them as they were appended, with the IDs that
	// calls without one were given.
	Messages []Message

	// Cut is the last call of an answer that the model did not finish, if the
	// call was cut off: its arguments are empty or no JSON object, and the
	// provider did not say that it is whole. An answer is unfinished if it
	// stopped for length, was refused or broke off, or if no reason was given. It is
	// not in Messages, and must not be run. Nil: there is none.
	CutOff *ToolCall

	Usage Usage // zero: not reported
	Stop  Stop  // why the answer ended; StopDone too if no reason was given

	// Do sets the following, and ignores what send sets here.

	IDs     []ID     // of the entries that Messages were appended as
	Queued  int      // how many queued messages were appended after the answer, and wait for one
	Reports []Report // of the compactions made or attempted for this request, and of results that were cut; see ReasonAppend
}

// Text returns the text of the messages, joined by newlines, without that of
// results.
func (r Reply) Text() string {
	var m Message
	for _, next := range r.Messages {
		if next.Role != RoleTool {
			m.Parts = append(m.Parts, next.Parts...)
		}
	}
	return m.Text()
}

// OpenCalls returns the calls that the messages themselves do not answer: those
// to run, and to answer with [Result], or with [ResultError] where the arguments
// are not valid.
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

// Format prints the beginning of each message, and the call that was cut off.
// The verb %+v also prints the IDs of entries and
// calls.
func (r Reply) Format(f fmt.State, verb rune) { printTo(f, verb, r.print) }

func (r Reply) print(ids bool) string {
	if len(r.Messages) == 0 && r.CutOff == nil && r.Stop == StopDone {
		return "reply(empty)"
	}
	texts := []string{r.Stop.String()}
	for _, m := range r.Messages {
		texts = append(texts, m.print(ids))
	}
	if r.CutOff != nil {
		texts = append(texts, "cut off: "+r.CutOff.print(ids))
	}
	if n := len(texts) - maxPrintedParts; n > 0 {
		texts = append(texts[:maxPrintedParts], fmt.Sprintf("… (%d more)", n))
	}
	return "reply(" + strings.Join(texts, "; ") + ")" + printIDs(r.IDs, ids && len(r.IDs) > 0)
}

// Do makes one request: it compacts if needed, calls send with the snapshot to
// send, records the usage and appends the answer.
//
//	for done := false; !done; {
//		reply, err := h.Do(ctx, send)
//		if err != nil {
//			return err
//		}
//		if reply.CutOff != nil || len(reply.Messages) == 0 {
//			return fmt.Errorf("the model did not finish its answer: %v", reply)
//		}
//		for _, call := range reply.OpenCalls() {
//			if _, err = h.Append(convo.Result(call, run(call))); err != nil {
//				return err
//			}
//		}
//		done = len(reply.OpenCalls()) == 0 && reply.Queued == 0
//	}
//
// Do is made of [History.Prepare], [History.Recover], [History.RecordUsage] and
// [History.Append], which can be called one by one instead. It first delivers the
// queue (see [History.Queue]), and does so again after the answer. If send
// returns an error which says that the request was too long, Recover makes it
// smaller and send is called again, at most twice more. With Options.Background,
// Do starts a compaction in the background when the answer has made the next
// request larger than Limits.Soft.
//
// The snapshot is made for the model and the limits in force when send is called;
// [Snapshot.Model] names the model.
//
// One Do of a History runs at a time; another waits for it until its own ctx
// ends. Send runs on the goroutine of the caller, with no lock held. Its ctx ends
// when ctx does, and when h is closed. It may append and read, and compact. If it
// panics, that is a [*PanicError].
//
// No code that Do may be waiting for can call Do: neither send, nor a strategy, a
// summarizer, or a function in Options, such as OnCompaction or Spill. With the
// ctx that the code was given, or with one derived from it, that is ErrReentrant.
// With any other ctx it waits for the very Do that waits for it, until that ctx
// ends. Such code can give what it has to say to the model to Queue.
//
// Before it calls send, Do returns the [*PairError] or [*RoleError] that an
// assistant message would get now, to avoid requesting an answer that cannot
// be appended, and any error of Prepare. An error of send leaves the conversation
// as it was, apart from compactions; Do returns it as it is, or as Recover does.
// When send returns no error, usage is recorded and the answer appended even if
// ctx has ended meanwhile. Usage that cannot be true is logged and left aside. An
// answer without messages appends nothing and is no error; it delivers the queue if
// a user message may follow what it left unanswered. Otherwise the queue waits, as
// Status.Queued says: call Do again, or Rewind, which delivers it in place of the
// message that was not answered.
//
// An answer holds assistant messages, and the results of tools that the provider or
// send has run. Any other message in it is a RoleError.
//
// The answer is appended only if the view ends with the same entry as the
// snapshot that was sent. It may have been compacted in between, but where a
// message was appended or taken back, the error matches [ErrStale]. If h was
// closed, it is ErrClosed. Beside any error, Do returns what send returned last,
// and nothing of it is in the conversation. A nil ctx never ends.
func (h *History) Do(ctx context.Context, send func(context.Context, *Snapshot) (Reply, error)) (Reply, error) {
	if send == nil {
		return Reply{}, &ValueError{Name: "the send given to Do", Want: "a function that calls a model"}
	}
	ctx, err := h.callerContext(ctx)
	if err == nil {
		ctx, err = h.answering.enter(ctx)
	}
	if err == nil {
		err = h.answering.take(ctx, h.done, notSent)
	}
	if err != nil {
		return Reply{}, err
	}
	a := &answer{h: h, send: send}
	func() {
		defer a.release() // even if send ends the goroutine
		err = a.run(ctx)
	}()
	a.reply.Reports = a.reports
	if err == nil && h.opts.Background {
		h.CompactInBackground(ctx)
	}
	return a.reply, err
}

// maxRetries is how often Do sends again after a request that was too long.
const maxRetries = 2

// An answer is one call of Do, which holds the History's slot for answers.
type answer struct {
	h       *History
	send    func(context.Context, *Snapshot) (Reply, error)
	reply   Reply // what send returned last
	first   ID    // of the entries that were taken out of the queue for it; 0: none
	reports []Report
}

// notSent begins the error of a Do whose ctx ended before anything was sent.
const notSent = "the request was not sent"

// release frees the slot for answers.
func (a *answer) release() {
	a.h.mu.Lock()
	a.h.sending = nil
	a.h.mu.Unlock()
	a.h.answering.release()
}

// run sends the request, again if it was too long, and appends the answer.
func (a *answer) run(ctx context.Context) error {
	if err := a.check(); err != nil {
		return err
	}
	marked, cancel := context.WithCancelCause(a.h.answering.mark(ctx))
	defer cancel(nil)
	for retries := 0; ; retries++ {
		at, err := a.prepare(ctx, cancel)
		if err != nil {
			return err
		}
		if err = a.call(marked, at); err == nil {
			return a.append(at)
		}
		_, panicked := err.(*PanicError)
		switch {
		case a.h.isClosed():
			return closedBeside(err)
		case panicked, retries == maxRetries:
			return err
		}
		retry, r, err := a.h.Recover(ctx, at, err)
		a.report(r)
		if !retry {
			return err
		}
	}
}

// check delivers the queue, and returns an error if no answer may be appended.
func (a *answer) check() error {
	a.h.mu.Lock()
	defer a.h.mu.Unlock()
	if a.h.endedLocked() {
		return ErrClosed
	}
	if n := a.h.deliverLocked(); n > 0 {
		a.first = a.h.list[len(a.h.list)-n].id
	}
	return a.h.answerFaultLocked()
}

// answerFaultLocked returns the error that an assistant message would get now.
func (h *History) answerFaultLocked() error {
	if h.calls.openCalls() > 0 {
		k := h.calls.firstOpen()
		return &PairError{Err: ErrOpenCalls, CallID: k.id, Name: k.name}
	}
	if prev := h.newestRole(); !h.opts.Roles.allows(prev, RoleAssistant) {
		return &RoleError{Attempted: RoleAssistant, Previous: prev}
	}
	return nil
}

// prepare returns the snapshot to send, and notes that it is on its way.
func (a *answer) prepare(ctx context.Context, cancel context.CancelCauseFunc) (*Snapshot, error) {
	for {
		at, r, err := a.h.Prepare(ctx)
		a.report(r)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, errorf("%s: %w", notSent, causeOf(ctx))
		}
		if ok, err := a.begin(at, cancel); ok || err != nil {
			return at, err
		}
	}
}

// begin notes that the snapshot is on its way, unless something was appended or
// taken back, or Reload has brought in other entries, in the moment since it was made,
// or it is for another model, or does not fit the limits in force.
func (a *answer) begin(at *Snapshot, cancel context.CancelCauseFunc) (ok bool, err error) {
	a.h.mu.Lock()
	defer a.h.mu.Unlock()
	if a.h.endedLocked() {
		return false, ErrClosed
	}
	if a.h.newestID() != at.newestID() || at.version < a.h.reloaded || a.h.known().model != at.Model() || !a.h.fitsLocked() {
		return false, nil
	}
	if err := a.h.answerFaultLocked(); err != nil {
		return false, err
	}
	a.h.sending = &sending{last: at.newestID(), first: a.first, cancel: cancel}
	return true, nil
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
	a.reply = Reply{}
	a.reply, err = a.send(ctx, at)
	a.reply.IDs, a.reply.Queued = nil, 0
	return err
}

// append records the usage of the request that was made of the snapshot, and
// appends the answer.
func (a *answer) append(at *Snapshot) error {
	h := a.h
	if err := h.RecordUsage(at, a.reply.Usage); err != nil && err != ErrClosed {
		h.warnOfUsage(at, a.reply.Usage, err)
	}
	prev := at.newestRole()
	for i, m := range a.reply.Messages {
		if m.Role == RoleUser || m.Role == RoleSystem {
			return &RoleError{Attempted: m.Role, Previous: prev, Index: i, Answer: true}
		}
		prev = m.Role
	}
	batch, err := h.newEntries(nil, a.reply.Messages)
	if err != nil {
		return err
	}
	if err := h.cutLong(batch); err != nil {
		return err
	}
	var cut *Report
	defer func() {
		if cut != nil {
			h.deliver(*cut)
		}
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.endedLocked():
		return ErrClosed
	case len(batch) == 0:
		h.sending = nil
		a.reply.Queued = h.deliverLocked()
		return nil
	case !h.isAnswerDueLocked():
		return &StaleError{ID: at.newestID(), Reason: "is what the answer is for, and no longer the end of the conversation; the answer is in the Reply"}
	}
	if _, err := h.appendLocked(batch); err != nil {
		return err
	}
	if cut = h.reportCutsLocked(batch); cut != nil {
		a.report(cut.clone())
	}
	a.reply.Messages = make([]Message, len(batch))
	for i, e := range batch {
		a.reply.Messages[i] = e.msg.clone()
		a.reply.IDs = append(a.reply.IDs, e.id)
	}
	h.sending = nil
	a.reply.Queued = h.deliverLocked()
	return nil
}
