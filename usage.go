package convo

import "slices"

// RecordUsage tells what the provider reported for the request made of at. The
// figure is applied to that snapshot: what came or went since is added or
// subtracted. One that is older than the last one applied is ignored, and so
// is one without input tokens; one for another model than the present is kept
// for that model. Do not report what a summarizer's own request used.
//
// What is new after a report is weighed by a ratio learned from the
// differences between reports, in which all that a request carries beside its
// messages cancels out; [Estimate].Upper is above Tokens by what earlier
// reports were off, for what is new or has gone. What is learned survives
// compactions, is kept apart by model ([History.SetModel]), and is saved with
// a [Snapshot].
//
// It returns [ErrStale] for a snapshot that this History did not make, and a
// [*ValueError] for a negative figure.
func (h *History) RecordUsage(at *Snapshot, u Usage) error {
	if err := u.fault(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.owns(at); err != nil {
		return err
	}
	if u.Input == 0 || at.version < h.learned.version(at.model) {
		return nil
	}
	h.change()
	last := h.learned.of(at.model)
	if at.model == h.model {
		last = h.cal
	}
	shared := int64(0)
	if last != nil && last.at != nil {
		shared = at.sharedWith(last.at, h.isRewritten(last.at))
	}
	next := last.learn(h.opts.prior(at.model), at, shared, min(int64(u.Input), maxTotal))
	h.learned = h.learned.with(next)
	if at.model == h.model {
		h.cal, h.sent = next, at
		h.sumMeasured(h.isRewritten(next.at))
	}
	h.settle()
	return nil
}

// Tokens returns what the next request weighs. It costs the same at any
// length.
func (h *History) Tokens() Estimate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.estimate()
}

// SetModel names the model that the next requests go to. Calibration is kept
// apart by model: a new name starts from its [Prior], a known one from what was
// learned. The name is empty at first.
func (h *History) SetModel(name string) error {
	name = validText(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return ErrClosed
	}
	if name == h.model {
		return nil
	}
	h.change()
	h.model, h.sent = name, nil
	h.anchor()
	h.settle()
	return nil
}

// anchor takes what is known of the model for the view as it is.
func (h *History) anchor() {
	h.prior = h.opts.prior(h.model)
	h.cal, h.measured = h.learned.of(h.model), 0
	switch {
	case h.cal == nil:
	case h.cal.at != nil:
		h.sumMeasured(h.isRewritten(h.cal.at))
	default: // measured in another History, on another view
		raw := h.raw()
		was := scale{known: h.cal, overhead: h.cal.overhead(), old: raw}
		h.cal = h.cal.moved(was, raw)
		h.cal.Doubt = h.cal.Tokens
		h.cal.at = h.reported()
		h.measured = raw
	}
}

// resume goes on with what was learned of the view in another History.
func (h *History) resume() {
	if c := h.learned.of(h.model); c != nil {
		c.Raw = h.raw()
		c.at = h.reported()
	}
	h.anchor()
}

// estimate is overhead + calibrated total.
func (h *History) estimate() Estimate {
	w := h.scale()
	e := Estimate{Tokens: clampInt(w.tokens()), Upper: clampInt(w.upper())}
	if h.sent != nil {
		e.Measured = clampInt(w.measured())
	}
	return e
}

// sharedWith returns the raw tokens of what is both in s and in an older view.
// rewritten: more than the tail has changed since.
func (s *state) sharedWith(old *reported, rewritten bool) int64 {
	n := rawShared(s.sys, old.sys)
	if s.slot == old.slot {
		n += s.slot.tokens()
	}
	if s.eph == old.eph {
		n += s.eph.tokens()
	}
	if rewritten {
		return n + rawShared(s.list, old.list)
	}
	n += s.listRaw // all up to old's last ID is shared
	for _, e := range slices.Backward(s.list) {
		if e.id <= old.last {
			break
		}
		n -= e.tokens
	}
	return n
}

// sumMeasured sums anew what of the view was measured.
// rewritten: more than the tail has changed since.
func (s *state) sumMeasured(rewritten bool) {
	if s.cal != nil {
		s.measured = s.sharedWith(s.cal.at, rewritten)
	}
}

// isRewritten reports whether more than the tail has changed since a view.
func (h *History) isRewritten(since *reported) bool {
	return since != nil && h.rewritten > since.version
}

// rawShared returns the raw tokens of the entries that are in both lists.
func rawShared(a, b []*entry) int64 {
	var n int64
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].id < b[0].id:
			a = a[1:]
		case a[0].id > b[0].id:
			b = b[1:]
		default:
			if a[0] == b[0] {
				n += a[0].tokens
			}
			a, b = a[1:], b[1:]
		}
	}
	return n
}

// learned holds calibrations by model. It is never changed, only replaced.
type learned []*calibration

// of returns what is known of the model, nil when that is nothing.
func (l learned) of(model string) *calibration {
	for _, c := range l {
		if c.Model == model {
			return c
		}
	}
	return nil
}

// version is that of the newest snapshot which a figure for the model was
// applied to.
func (l learned) version(model string) uint64 {
	if c := l.of(model); c != nil {
		return c.version
	}
	return 0
}

func (l learned) with(c *calibration) learned {
	out := make(learned, 0, len(l)+1)
	for _, m := range l {
		if m.Model != c.Model {
			out = append(out, m)
		}
	}
	return append(out, c)
}

// carried is what was learned, for another History that begins with this view.
func (s *state) carried() learned {
	if len(s.learned) == 0 {
		return nil
	}
	out := make(learned, len(s.learned))
	for i, c := range s.learned {
		own := *c
		if c.Model == s.model && s.cal != nil {
			left := s.withoutEphemeral()
			own = *s.cal.moved(left.scale(), left.raw())
		}
		own.at, own.version = nil, 0
		out[i] = &own
	}
	return out
}

// withoutEphemeral is s as it is saved.
func (s *state) withoutEphemeral() state {
	left := *s
	if s.eph != nil && s.cal != nil && s.cal.at.eph == s.eph {
		left.measured -= s.eph.tokens()
	}
	left.eph = nil
	return left
}
