package convo

import "context"

// Queue takes user messages that arrive while the model or its tools are at
// work, and appends them as soon as a user message is allowed: when no call is
// open and the [RolePolicy] allows one. They are appended after the batch
// that made it possible, in the order in which they were queued. Under every
// policy they stay together, so that several of them are one run of user
// messages, and they never interrupt calls.
//
// In a conversation that is empty or ends with an assistant message without open
// calls, that is at once. Otherwise an answer is due, and the next Append,
// AnswerOpenCalls, Do, Rollback, Rewind or Restore after which it is possible
// delivers them. Only while Do waits for its answer, nothing comes between the
// request and that answer.
//
// Until then they are no entries: they have no IDs, no snapshot shows them, no
// count includes them, and no rollback takes them back. Status.Queued says how
// many there are, and Unqueue takes them back. The JSON of a snapshot carries
// them, so that they are saved with the conversation; [History.Reload] says what
// becomes of those that another writer has as well.
//
// Messages are copied, checked and counted as by [History.Append]. One that is
// wrong, or no user message, is a [*MessageError], and none is queued.
func (h *History) Queue(msgs ...Message) error {
	more, err := h.newQueued(msgs)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	if len(more) == 0 {
		return nil
	}
	h.queue = append(h.queue, more...)
	h.snap = nil // the version stays: the next request is the same
	if !h.awaitsAnswer() {
		h.deliverLocked()
	}
	return nil
}

// Unqueue takes back all messages that wait in the queue, in order, as they were
// stored. It also works after Close.
func (h *History) Unqueue() []Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return nil
	}
	msgs := make([]Message, len(h.queue))
	for i := range h.queue {
		msgs[i] = h.queue[i].msg.clone()
	}
	h.queue, h.snap = nil, nil
	return msgs
}

// newQueued copies, checks and counts messages for the queue. It runs the
// caller's code, so no lock may be held.
func (h *History) newQueued(msgs []Message) ([]*queued, error) {
	batch, err := h.newEntriesOf(RoleUser, msgs, "Queue takes user messages only; see Append")
	if err != nil {
		return nil, err
	}
	list := make([]*queued, len(batch))
	for i, a := range batch {
		list[i] = &queued{msg: a.msg, tokens: a.tokens, pin: a.pin}
	}
	return list, nil
}

// awaitsAnswer reports whether the newest message is one that a model answers.
func (s *state) awaitsAnswer() bool {
	newest := s.newestRole()
	return newest == RoleUser || newest == RoleTool
}

// deliverLocked appends the queue if a user message may follow now, and returns
// how many messages it appended.
func (h *History) deliverLocked() int {
	n := len(h.queue)
	if n == 0 || h.calls.openCalls() > 0 || h.isAnswerDueLocked() || !h.opts.Roles.allows(h.newestRole(), RoleUser) {
		return 0
	}
	batch := make([]pendingEntry, n)
	for i, q := range h.queue {
		batch[i] = pendingEntry{entry: &entry{msg: q.msg, tokens: q.tokens}, pin: q.pin, goesOn: i > 0}
	}
	if _, err := h.appendLocked(batch); err != nil {
		return 0 // the IDs are used up, so they stay in the queue
	}
	if h.log != nil {
		for i, q := range h.queue {
			h.log.delivered[batch[i].id] = q
		}
	}
	h.queue = nil
	return n
}

// A sending is a request that is on its way: a Do waits for the answer. It does not
// change.
type sending struct {
	last   ID // of the newest entry in the request, system entries aside
	first  ID // of the entries that Do has taken out of the queue; 0: none
	cancel context.CancelCauseFunc
}

// isAnswerDueLocked reports whether a Do is waiting for an answer that may still
// be appended.
func (h *History) isAnswerDueLocked() bool { return h.sending != nil && h.sending.last == h.newestID() }
