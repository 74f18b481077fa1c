package convo

// Queue accepts user messages that arrive while the model or its tools are working, and
// appends them as soon as a user message is allowed: when no call is open and the
// [RolePolicy] allows one. Queued messages are appended in order, after the batch that
// made it possible, and stay together as one run of user messages. They never interrupt
// calls.
//
// If the conversation is empty, ends with an assistant message without open calls, and
// not with an answer that is paused, or with a message whose request has failed, the
// messages are appended at once. Otherwise an answer is due, and they are delivered by
// the next Append, AppendReply, AnswerOpenCalls, Do, Rollback, Rewind or Restore that
// makes it possible; while Do waits for an answer, not between the request and that
// answer.
//
// Queued messages are not entries. They have no IDs, do not appear in snapshots or
// counts, and are not affected by rollbacks. Status.Queued is their number,
// Snapshot.Queued returns them, and Unqueue removes them. They are part of the JSON of a
// snapshot and are saved with the conversation; [History.Reload] merges them with the
// queue of another writer.
//
// Messages are copied, checked and counted as by [History.Append]. If one is invalid or
// no user message, Queue queues none and returns a [*MessageError].
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
	h.requeue(append(h.queue, more...))
	if !h.awaitsAnswer() || h.hasFailed() {
		h.deliverLocked()
	}
	return nil
}

// Unqueue removes all queued messages and returns them in order, as stored.
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
	h.requeue(nil)
	return msgs
}

// awaitsAnswer reports whether the newest message awaits an answer of the model.
func (s *state) awaitsAnswer() bool {
	newest := s.newestRole()
	return newest == RoleUser || newest == RoleTool
}

// deliverLocked appends the queue if a user message may follow now, and returns
// how many messages it appended. After a paused answer, the queue waits for its rest.
func (h *History) deliverLocked() int {
	n := len(h.queue)
	if n == 0 || h.isAnswerDue() || h.isPaused() || !h.takesUser() {
		return 0
	}
	batch := make([]pendingEntry, n)
	for i, q := range h.queue {
		batch[i] = pendingEntry{entry: &entry{msg: q.msg, tokens: q.tokens}, pin: q.pin, row: i > 0}
	}
	if _, err := h.appendLocked(batch); err != nil {
		return 0 // the IDs are used up, so they stay in the queue
	}
	made := make(map[ID]*queued, n)
	for i, q := range h.queue {
		made[batch[i].id] = q
	}
	h.recorder.add("", made)
	h.swapQueue(nil)
	return n
}

// takesUser reports whether a user message may follow.
func (h *History) takesUser() bool {
	return h.openCount() == 0 && (h.opts.Roles.allows(h.newestRole(), RoleUser) || h.hasFailed())
}

// hasFailed reports whether the newest message is a user message or a result whose request has
// failed, so that a user message may follow it under every policy.
func (h *History) hasFailed() bool { return h.failedIn(&h.state) }

// failedIn is hasFailed for a view.
func (h *History) failedIn(s *state) bool {
	e := s.newestMessage()
	return e != nil && e.id == h.talk.failed && e.msg.Role != RoleAssistant && h.talk.sending == nil
}

// setFailed takes note that a request that ends with the newest message has ended with err. A
// nil error is none. If err says that the conversation does not fit, it would not fit with
// another message either, and nothing is noted.
func (h *History) setFailed(err error) {
	if err == nil || isTooLarge(err) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setFailedLocked()
}

func (h *History) setFailedLocked() {
	if e := h.newestMessage(); e != nil {
		h.talk.failed = e.id
	}
}

// isAnswerDue reports whether a Do is waiting for an answer that may still
// be appended.
func (h *History) isAnswerDue() bool {
	return h.talk.sending != nil && h.talk.sending.last == h.newestID()
}
