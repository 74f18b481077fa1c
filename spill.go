package convo

import (
	"context"
	"errors"
	"fmt"
)

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
}

// maxSpillFailures is after how many failures Options.Spill is taken to be out of
// order, rather than to refuse one result.
const maxSpillFailures = 3

// errNoClear is Goal.NoClear while the breaker is open.
var errNoClear = fmt.Errorf("%w: no result can be cleared, since Options.Spill is backing off after failures; History.Compact calls it anyway", ErrNoGain)

// errSpillDown says that a result was not cleared because Options.Spill was not
// called for it.
var errSpillDown = errors.New("convo: clear result: Options.Spill is backing off after failures")

// marker stores the original of a result in an entry, and returns the text that
// replaces it. A nil spiller stores nothing.
func (s *spiller) marker(id *identity, in *entry, r *ToolResult) (text string, err error) {
	if s == nil || s.h.opts.Spill == nil {
		return markerText(r, ""), nil
	}
	key := spillKey{in, r.CallID}
	s.h.mu.Lock()
	ref, ok := s.h.spilled[key]
	s.h.mu.Unlock()
	if ok {
		return markerText(r, ref), nil
	}
	if s.disabled || s.failed >= maxSpillFailures {
		return "", errSpillDown
	}
	s.failed++ // until the call has succeeded; Spill may also end the goroutine
	if ref, err = s.h.spill(s.ctx, *r); err != nil {
		return "", err
	}
	text = markerText(r, ref)
	if ref != "" && id.text(text) >= id.parts(r.Parts) {
		return "", fmt.Errorf("convo: clear result of call %q: the marker with the reference that Options.Spill returned, of %d bytes, is no shorter than the result; return a shorter one", r.CallID, len(ref))
	}
	s.failed--
	s.succeeded++
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.h.spilled == nil {
		s.h.spilled = make(map[spillKey]string)
	}
	// If the edit is refused and planned again, Spill is not called again.
	s.h.spilled[key] = ref
	return text, nil
}

// close updates the breaker.
func (s *spiller) close() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	switch {
	case s.succeeded > 0:
		s.h.spillBreaker = breaker{}
	case s.failed > 0:
		s.h.spillBreaker.tripLocked(s.h)
	}
}
