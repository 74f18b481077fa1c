package convo

import (
	"context"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/overflow"
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

// A refusals holds what a provider has refused.
type refusals struct {
	encodings []encoding // of the requests since the newest answer, the last few
	cure      *cure      // what was cleared since a provider refused it, until a request is accepted; nil: nothing
}

// An encoding is a snapshot and the format that has encoded it.
type encoding struct {
	at     *Snapshot
	format any
}

// mostEncodings is how many encodings are kept.
const mostEncodings = 4

// A refusal is what the error of a provider says about a part of a request.
type refusal struct {
	overflow.Refusal
	named []RefusedPart // of a PartError; nil: it was none
	cause error         // of the provider
}

// A clearing is what is cleared in a view after a refusal.
type clearing struct {
	places  []RefusedPart // ascending
	release ID            // signed reasoning up to this entry is left out; 0: none is
}

// A cure is what Recover has cleared after a refusal.
type cure struct {
	refusal
	clearing
	report   Report
	version  uint64 // of the view with the cure
	released ID     // state.released before
}

// encoded records that a format has encoded a snapshot.
func (r *refusals) encoded(at *Snapshot, format any) {
	r.encodings = slices.DeleteFunc(r.encodings, func(e encoding) bool { return e.at == at })
	if len(r.encodings) == mostEncodings {
		r.encodings = slices.Delete(r.encodings, 0, 1)
	}
	r.encodings = append(r.encodings, encoding{at, format})
}

// of returns the format that has encoded a snapshot, and the cure in place. Each may be nil.
func (r *refusals) of(at *Snapshot) (format any, inPlace *cure) {
	if i := slices.IndexFunc(r.encodings, func(e encoding) bool { return e.at == at }); i >= 0 {
		format = r.encodings[i].format
	}
	return format, r.cure
}

// try puts a cure in place, until settle ends its trial.
func (r *refusals) try(c *cure) { r.cure = c }

// newestVersion is at least the version of any view.
const newestVersion = noVersion - 1

// settle ends the trial of the cure in place, and returns it, or nil: the provider has accepted
// a request of that version of the view, or with noVersion, has refused one for another reason.
func (r *refusals) settle(version uint64) (c *cure) {
	if version != noVersion {
		r.encodings = slices.DeleteFunc(r.encodings, func(e encoding) bool { return e.at.version <= version })
	}
	if r.cure != nil && version >= r.cure.version {
		c, r.cure = r.cure, nil
	}
	return c
}

// prove ends the trial of the cure in place, as settle does, and delivers its report.
func (h *History) prove(version uint64) {
	var c *cure
	h.locked(func() { c = h.refusals.settle(version) })
	if c != nil {
		h.deliver(c.report)
	}
}
