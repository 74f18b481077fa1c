package convo

import (
	"slices"

	"github.com/seed-c1b73e60/convo/internal/overflow"
)

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
