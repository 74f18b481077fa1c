package convo

import "context"

// A talk knows which request waits for its answer, and how the last one ended.
type talk struct {
	answering  slot     // taken while a Do runs
	running    slot     // taken while a step of Run runs
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

// delivered returns the first message that the waiting Do has delivered from the queue, or 0
// if there is none.
func (t *talk) delivered() ID {
	if t.sending == nil {
		return 0
	}
	return t.sending.first
}

// redelivered notes that what the waiting Do has delivered from the queue begins with that ID.
func (t *talk) redelivered(first ID) {
	next := *t.sending
	next.first = first
	t.sending = &next
}
