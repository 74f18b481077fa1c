package convo

import (
	"context"
	"slices"
)

// A talk knows which request waits for its answer, and how the last one ended.
type talk struct {
	sending    *sending // of the Do that waits for an answer; nil: none does
	failed     ID       // the newest message when a request failed; 0: none has
	paramTools []string // of the newest answer
}

// A sending is a request whose answer Do is waiting for. It is immutable.
type sending struct {
	last   ID // of the newest entry in the request, system entries aside
	first  ID // of the entries that Do has taken out of the queue; 0: none
	view   sentView
	cancel context.CancelCauseFunc
}

// isFor reports whether the answer may be appended to a view that ends with this entry. s may
// be nil.
func (s *sending) isFor(newest ID) bool { return s != nil && s.last == newest }

// delivered returns the first message that Do has taken out of the queue for the request, or 0
// if there is none. s may be nil.
func (s *sending) delivered() ID { return orNil(s).first }

// waits returns the request whose answer a Do waits for, or nil.
func (t *talk) waits() *sending { return t.sending }

// wait makes s the request whose answer a Do waits for. If s is nil, no Do waits any more.
func (t *talk) wait(s *sending) { t.sending = s }

// hasFailed reports whether the request that ends with the newest message has failed, so that
// a user message may follow it under every policy. newest is nil if there is no message.
func (t *talk) hasFailed(newest *entry) bool {
	return newest != nil && newest.id == t.failed && newest.msg.Role != RoleAssistant && t.sending == nil
}

// note records that the request that ends with the newest message has failed. If it has not,
// note forgets the failure of any other. newest is nil if there is no message.
func (t *talk) note(newest *entry, failed bool) {
	var id ID
	if newest != nil {
		id = newest.id
	}
	switch {
	case failed:
		t.failed = id
	case id != t.failed:
		t.failed = 0
	}
}

// mayDeliver reports whether the queue may be appended to a view. It may not while a Do waits
// for the answer to that view, or after a paused answer.
func (t *talk) mayDeliver(v *view, roles *RolePolicy) bool {
	return len(v.queue) > 0 && !t.sending.isFor(v.newestID()) && !v.isPaused() && v.takesUser(roles, t.hasFailed(v.newestMessage()))
}

// answered records which tools the parameters of the newest answered request have declared.
func (t *talk) answered(paramTools []string) { t.paramTools = paramTools }

// isParamTool reports whether the parameters of the newest answered request declare a tool.
func (t *talk) isParamTool(name string) bool { return slices.Contains(t.paramTools, name) }

// renumber makes t what was was, after a Reload has given entries other IDs. now returns the
// ID of an entry, or 0 if it is gone. The Do that waits gets no answer appended, since its
// request does not end at the end of the new view.
func (t *talk) renumber(was talk, now func(ID) ID) {
	t.failed = now(was.failed)
	if was.sending != nil {
		t.sending = &sending{last: -1, cancel: was.sending.cancel}
	}
}
