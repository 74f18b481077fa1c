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
	if u.Input == 0 || at.version < h.known().learned.version(at.known().model) {
		return nil
	}
	h.change()
	last := h.known().learned.of(at.known().model)
	if at.known().model == h.known().model {
		last = h.known().cal
	}
	shared := int64(0)
	if last != nil && last.at != nil {
		shared = at.sharedWith(last.at, h.isRewritten(last.at))
	}
	next := last.learn(h.opts.prior(at.known().model), at, shared, min(int64(u.Input), maxTotal))
	k := *h.known()
	k.learned = k.learned.with(next)
	h.knowledge = &k
	if at.known().model == k.model {
		k.cal, h.sent = next, at
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
	if name == h.known().model {
		return nil
	}
	h.change()
	h.sent = nil
	h.anchor(name, h.known().learned)
	h.settle()
	return nil
}

// anchor takes what was learned of the model for the view as it is.
func (h *History) anchor(model string, l learned) {
	h.prior = h.opts.prior(model)
	c := l.of(model)
	if c != nil && c.at == nil { // measured in another History, on another view
		raw := h.raw()
		c = c.moved(scale{known: c, overhead: c.overhead(), old: raw}, raw)
		c.Doubt = c.Tokens
		c.at = h.reported()
	}
	h.knowledge = &knowledge{model: model, cal: c, learned: l}
	h.measured = 0
	if c != nil {
		h.sumMeasured(h.isRewritten(c.at))
	}
}

// resume goes on with what was learned of the view s in another History.
func (h *History) resume(s *Snapshot) {
	model, l := s.known().model, s.carried()
	if c := l.of(model); c != nil {
		c.Raw = h.raw()
		c.at = h.reported()
	}
	h.anchor(model, l)
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
	if s.known().cal != nil {
		s.measured = s.sharedWith(s.known().cal.at, rewritten)
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

// knowledge is what is known of models. It is never changed, only replaced.
type knowledge struct {
	model   string       // that of the next requests
	cal     *calibration // of it; nil: no report
	learned learned      // of all
}

var nothing knowledge

func (s *state) known() *knowledge {
	if s.knowledge == nil {
		return &nothing
	}
	return s.knowledge
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
	if len(s.known().learned) == 0 {
		return nil
	}
	out := make(learned, len(s.known().learned))
	for i, c := range s.known().learned {
		own := *c
		if c.Model == s.known().model && s.known().cal != nil {
			left := s.withoutEphemeral()
			own = *s.known().cal.moved(left.scale(), left.raw())
		}
		own.at, own.version = nil, 0
		out[i] = &own
	}
	return out
}

// withoutEphemeral is s as it is saved.
func (s *state) withoutEphemeral() state {
	left := *s
	if s.eph != nil && s.known().cal != nil && s.known().cal.at.eph == s.eph {
		left.measured -= s.eph.tokens()
	}
	left.eph = nil
	return left
}
