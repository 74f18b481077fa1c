package convo

import "slices"

// Queue accepts user messages that arrive while the model or its tools are working, and appends
// them as soon as a user message is allowed: when no call is open and the [RolePolicy] allows
// one. They are appended in order, after the batch that made it possible, and stay together as
// one run of user messages. They never interrupt calls.
//
// If the conversation is empty, ends with an assistant message without open calls, and not with
// an answer that is paused, or with a message whose request has failed, the messages are
// appended at once. Otherwise an answer is due, and they are delivered by the next Append,
// AppendReply, AnswerOpenCalls, Do, Rollback, Rewind or Restore that makes it possible. While
// Do waits for an answer, they are not delivered before it.
//
// Queued messages are not entries. They have no IDs, do not appear in snapshots or counts, and
// are not affected by rollbacks. Status.Queued is their number, [Snapshot.Queued] returns them,
// and Unqueue removes them. They are part of the JSON of a snapshot and are saved with the
// conversation; [History.Reload] merges them with the queue of another writer.
//
// Messages are copied, checked and counted as by [History.Append]. If one is invalid or no user
// message, Queue queues none and returns a [*MessageError].
func (h *History) Queue(msgs ...Message) error {
	more, err := h.newQueued(msgs)
	if err != nil {
		return err
	}
	return h.ifOpen(func() error {
		if len(more) == 0 {
			return nil
		}
		h.requeue(append(h.queue, more...))
		if !h.awaitsAnswer() || h.talk.hasFailed(h.newestMessage()) {
			h.deliverLocked()
		}
		return nil
	})
}

// Unqueue removes all queued messages and returns them in order, as stored.
func (h *History) Unqueue() (msgs []Message) {
	h.change(func() error {
		if len(h.queue) > 0 {
			msgs = h.snapshotLocked().Queued()
			h.requeue(nil)
		}
		return nil
	})
	return msgs
}

// awaitsAnswer reports whether the newest message awaits an answer of the model.
func (s *state) awaitsAnswer() bool {
	newest := s.newestRole()
	return newest == RoleUser || newest == RoleTool
}

// takesUser reports whether a user message may follow. failed says that the request of the
// newest message has failed.
func (v *view) takesUser(roles *RolePolicy, failed bool) bool {
	return v.openCount() == 0 && (failed || roles.allows(v.newestRole(), RoleUser))
}

// awaitsNext reports whether another request is to be made: no call is open, and the newest
// message awaits an answer or, if paused is true, is a paused answer.
func (v *view) awaitsNext(paused bool) bool {
	return v.openCount() == 0 && (v.awaitsAnswer() || paused && v.isPaused())
}

// onlyOpen returns the results in a batch whose calls are open. It returns an error if the
// entry head no longer begins the newest exchange.
func (v *view) onlyOpen(head ID, batch []pendingEntry) ([]pendingEntry, error) {
	if !v.isNewest(head) {
		return nil, &staleError{ID: head, Reason: "holds the calls that were run, and is no longer the end of the conversation; their results are in the Reply"}
	}
	return slices.DeleteFunc(batch, func(a pendingEntry) bool {
		return !v.isOpenCall(head, a.msg.Parts[0].(ToolResult).CallID)
	}), nil
}

// answerFault returns the error that an assistant message would get now.
func (v *view) answerFault(roles *RolePolicy) error {
	if v.openCount() > 0 {
		return openError(v.calls)
	}
	if prev := v.newestRole(); !v.isPaused() && !roles.allows(prev, RoleAssistant) {
		return &RoleError{Attempted: RoleAssistant, Previous: prev}
	}
	return nil
}

// deliverLocked appends the queue if a user message may follow now, and returns
// how many messages it appended.
func (h *History) deliverLocked() int {
	if !h.talk.mayDeliver(&h.view, &h.opts.Roles) {
		return 0
	}
	list := h.queue
	batch := make([]pendingEntry, len(list))
	for i, q := range list {
		batch[i] = pendingEntry{entry: &entry{msg: q.msg, tokens: q.tokens}, pin: q.pin, row: i > 0}
	}
	if _, err := h.appendLocked(batch); err != nil {
		return 0 // the IDs are used up, so they stay in the queue
	}
	made := make(map[ID]*queued, len(list))
	for i, q := range list {
		made[batch[i].id] = q
	}
	h.recorder.add("", made)
	h.swapQueue(nil)
	return len(list)
}

// failed records that a request that ends with the newest message has ended with err. A nil
// error is none. If err says that the conversation does not fit, it would not fit with another
// message either, and nothing is recorded.
func (h *History) failed(err error) {
	if err == nil || isTooLarge(err) {
		return
	}
	h.locked(func() { h.talk.note(h.newestMessage(), true) })
}
