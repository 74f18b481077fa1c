package convo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"weak"
)

// A spills remembers what Options.Spill has stored.
type spills struct {
	refs    map[spillKey]string // that Spill returned for edits that were not applied yet; never written
	breaker breaker
}

// A spillKey names a tool result in an entry.
type spillKey struct {
	in     weak.Pointer[entry] // so that entries that have left the view are freed
	callID string
}

func keyOf(in *entry, r *ToolResult) spillKey { return spillKey{weak.Make(in), r.CallID} }

// A spiller calls Options.Spill for the results that one edit clears. After
// maxSpillFailures failures it stops calling.
type spiller struct {
	setup             *setup
	ctx               context.Context // for Options.Spill
	disabled          bool            // Options.Spill must not be called
	applied           bool            // the edit was applied
	down              error           // why no result should be cleared for a compaction that was not asked for; nil: it may be
	succeeded, failed int             // calls
	cause             error           // of the last call that failed

	known map[spillKey]string // references for edits that were not applied yet
	added map[spillKey]string // references that this spiller has added
}

// start returns a spiller for one edit, without what belongs to the operation.
func (s *spills) start(now *moment) *spiller {
	p := &spiller{known: s.refs, added: map[spillKey]string{}}
	if now.isOpen(&s.breaker) {
		p.down = errorf("%w: no result can be cleared, since Options.Spill is not called for a while after failures, the last of which was: %s; History.Compact calls it anyway", ErrNoGain, withoutPrefix(s.breaker.Cause))
	}
	return p
}

// end stores the references of p, so that Options.Spill is not called again if the edit
// was refused and the next one clears the same results. If all calls of Spill have failed,
// the breaker keeps compactions that was not asked for from calling it for a while.
func (s *spills) end(now *moment, p *spiller) {
	switch {
	case p.succeeded > 0:
		s.breaker = breaker{}
	case p.failed > 0:
		s.breaker.Trip(now.appendedEver, p.cause)
	}
	if !p.applied {
		maps.Copy(p.added, s.refs)
	}
	maps.DeleteFunc(p.added, func(key spillKey, _ string) bool {
		e := key.in.Value()
		return e == nil || now.at.find(e.id) != e
	})
	s.refs = p.added
}

// newSpiller returns a spiller for one edit, and a function that ends it.
func (h *History) newSpiller(ctx context.Context, disabled bool) (p *spiller, end func()) {
	h.locked(func() {
		now := h.moment(h.meter.marks())
		p = h.spills.start(&now)
	})
	p.setup, p.ctx, p.disabled = &h.setup, ctx, disabled
	return p, func() {
		h.locked(func() {
			now := h.moment(h.meter.marks())
			h.spills.end(&now, p)
		})
	}
}

// After this many failures, Options.Spill is assumed to be down, rather than to
// refuse one result.
const maxSpillFailures = 3

// errSpillDown is the cause if a result was not cleared because Options.Spill was not
// called for it.
var errSpillDown = errors.New("convo: clear result: Options.Spill is not called for a while after failures")

// marker stores the result in the i-th part of an entry as a summarizer reads it,
// which is its original unless it was rewritten, and returns the text that replaces
// it. A nil spiller stores nothing.
func (s *spiller) marker(id *identity, in *entry, o *original, i int) (text string, err error) {
	whole := o.read.Parts[i].(ToolResult)
	if s == nil || s.setup.opts.Spill == nil {
		return id.marker(&whole, o.refs[i], in.id, id.parts(in.msg.Parts[i].(ToolResult).Parts)), nil
	}
	succeeded := s.succeeded
	ref, err := s.store(in, o, i)
	if err != nil {
		return "", err
	}
	r := in.msg.Parts[i].(ToolResult)
	size := id.parts(r.Parts)
	text = id.marker(&whole, ref, in.id, size)
	if ref != "" && id.text(text) >= size {
		err := fmt.Errorf("convo: clear result of call %q: the marker with the reference that Options.Spill returned, of %s bytes, is no shorter than the result; return a shorter one", r.CallID, grouped(len(ref)))
		if s.succeeded > succeeded { // the call came to nothing
			s.succeeded--
			s.failed++
			s.cause = err
			delete(s.added, keyOf(in, &r))
		}
		return "", err
	}
	return text, nil
}

// store returns the reference to the result in the i-th part of an entry, as a
// summarizer reads it. If there is none yet, it calls Options.Spill and sets the
// reference in o. o must not be shared yet.
func (s *spiller) store(in *entry, o *original, i int) (ref string, err error) {
	if ref, ok := o.refs[i]; ok {
		return ref, nil
	}
	whole := o.read.Parts[i].(ToolResult)
	if o.missing > 0 {
		if ref, cut := cutRef(&whole); cut { // the rest of what Spill was given when it was cut
			o.setRef(i, ref)
			return ref, nil
		}
	}
	key := keyOf(in, &whole)
	for _, refs := range []map[spillKey]string{s.added, s.known} {
		if ref, ok := refs[key]; ok {
			o.setRef(i, ref)
			return ref, nil
		}
	}
	if s.disabled || s.failed >= maxSpillFailures {
		return "", errSpillDown
	}
	s.failed++ // counted in advance, because Spill may end the goroutine
	s.cause = errGoexit
	if ref, err = s.setup.spill(s.ctx, whole); err != nil {
		s.cause = err
		return "", err
	}
	s.failed--
	s.succeeded++
	s.added[key] = ref
	o.setRef(i, ref)
	return ref, nil
}
