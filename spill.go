package convo

import (
	"context"
	"errors"
	"fmt"
	"maps"
)

// A spillKey names a tool result in an entry.
type spillKey struct {
	in     *entry
	callID string
}

// keep drops the references for entries that are not in the view. A nil view has none.
func (s *spills) keep(view *state) {
	if view == nil {
		s.spilled = nil
		return
	}
	own := maps.Clone(s.spilled)
	maps.DeleteFunc(own, func(key spillKey, _ string) bool { return !view.holds([]*entry{key.in}) })
	s.spilled = own
}

// reloaded keeps what is known of the entries of a view after a Reload. more is how many more
// tokens were ever appended.
func (s *spills) reloaded(more int64, view *state) {
	s.spillBreaker.appended += more
	s.keep(view)
}

// A spiller calls Options.Spill for the results that one edit clears. After
// maxSpillFailures failures it stops calling.
//
// If all calls for an edit failed, a breaker stops automatic compactions from
// calling Options.Spill for a while.
type spiller struct {
	h                 *History
	ctx               context.Context // for Options.Spill
	disabled          bool            // Options.Spill must not be called
	succeeded, failed int             // calls
	cause             error           // of the last call that failed

	known map[spillKey]string // references for edits that were not applied yet; read only
	added map[spillKey]string // references that this spiller has added
}

func (h *History) newSpiller(ctx context.Context, disabled bool) *spiller {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &spiller{h: h, ctx: ctx, disabled: disabled, known: h.spills.spilled, added: map[spillKey]string{}}
}

// After this many failures, Options.Spill is assumed to be down, rather than to
// refuse one result.
const maxSpillFailures = 3

// noClearError returns Goal.NoClear while the breaker is open because of cause.
func noClearError(cause error) error {
	return errorf("%w: no result can be cleared, since Options.Spill is not called for a while after failures, the last of which was: %s; History.Compact calls it anyway", ErrNoGain, withoutPrefix(cause))
}

// errSpillDown is the cause if a result was not cleared because Options.Spill was not
// called for it.
var errSpillDown = errors.New("convo: clear result: Options.Spill is not called for a while after failures")

// marker stores the result in the i-th part of an entry as a summarizer reads it,
// which is its original unless it was rewritten, and returns the text that replaces
// it. A nil spiller stores nothing.
func (s *spiller) marker(id *identity, in *entry, o *original, i int) (text string, err error) {
	whole := o.read.Parts[i].(ToolResult)
	if s == nil || s.h.opts.Spill == nil {
		return markerText(&whole, o.refs[i]), nil
	}
	succeeded := s.succeeded
	ref, err := s.store(in, o, i)
	if err != nil {
		return "", err
	}
	text = markerText(&whole, ref)
	r := in.msg.Parts[i].(ToolResult)
	if ref != "" && id.text(text) >= id.parts(r.Parts) {
		err := fmt.Errorf("convo: clear result of call %q: the marker with the reference that Options.Spill returned, of %s bytes, is no shorter than the result; return a shorter one", r.CallID, grouped(len(ref)))
		if s.succeeded > succeeded { // the call came to nothing
			s.succeeded--
			s.failed++
			s.cause = err
			delete(s.added, spillKey{in, r.CallID})
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
	key := spillKey{in, whole.CallID}
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
	if ref, err = s.h.spill(s.ctx, whole); err != nil {
		s.cause = err
		return "", err
	}
	s.failed--
	s.succeeded++
	s.added[key] = ref
	o.setRef(i, ref)
	return ref, nil
}

// close updates the breaker and stores the references in the History, so that
// Options.Spill is not called again if the edit is refused and the next edit clears the
// same results.
func (s *spiller) close() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	switch {
	case s.succeeded > 0:
		s.h.spills.spillBreaker = breaker{}
	case s.failed > 0:
		s.h.spills.spillBreaker.tripLocked(s.h, s.cause)
	}
	if len(s.added) == 0 {
		return
	}
	maps.Copy(s.added, s.h.spills.spilled)
	s.h.spills.spilled = s.added
	s.h.spills.keep(&s.h.state)
}
