package convo

import (
	"slices"
	"sync"

	"github.com/seed-c1b73e60/convo/internal/overflow"
)

// A refusals knows what a provider has refused.
type refusals struct {
	curing    sync.Mutex // held while Recover clears what a provider has refused, or puts it back
	toldCures []Report   // to be delivered once curing is free
	encodings []encoding // of the requests since the newest answer, the last few
	cure      *cure      // what was cleared since a provider refused it, until a request is accepted; nil: nothing
}

// An encoding is a snapshot and the format that has encoded it.
type encoding struct {
	at     *Snapshot
	format any
}

// mostEncodings is how many snapshots a History remembers as encoded.
const mostEncodings = 4

// A cure is what Recover clears after a refusal.
type cure struct {
	refusal overflow.Refusal
	named   []Place // of a PlaceError; nil: it was none
	cause   error   // of the provider, the first one
	places  []Place
	release ID // signed reasoning up to this entry is left out; 0: none is

	// These are set once it is applied.
	report   Report
	version  uint64 // of the view
	released ID     // h.released before
}

// settle ends the trial of the cure in place, if there is one: the provider has accepted a request
// that was made since, or has refused it for another reason. version is that of the accepted request,
// or noVersion. The report is left in h.toldCures.
func (h *History) settle(version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if version != noVersion {
		h.refusals.encodings = slices.DeleteFunc(h.refusals.encodings, func(e encoding) bool { return e.at.version <= version })
	}
	if c := h.refusals.cure; c != nil && version >= c.version {
		h.refusals.cure, h.refusals.toldCures = nil, append(h.refusals.toldCures, c.report)
	}
}

// isOnTrial reports whether there is a request that was not answered, or a cure in place, and
// returns the version of the view.
func (h *History) isOnTrial() (version uint64, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.refusals.cure != nil || len(h.refusals.encodings) > 0
}

// prove is settle, and delivers the report.
func (h *History) prove(version uint64) {
	if _, is := h.isOnTrial(); !is {
		return
	}
	h.refusals.curing.Lock()
	h.settle(version)
	told := h.refusals.toldCures
	h.refusals.toldCures = nil
	h.refusals.curing.Unlock()
	for _, r := range told {
		h.deliver(r)
	}
}
