package convo

import "slices"

// RecordUsage tells what the provider reported for the request made of at. The
// figure is applied to that snapshot: what came or went since is added or
// subtracted. One that is older than the last one applied is ignored, and so
// is one without input tokens; one for another model than the present is kept
// for that model. Do not report what a summarizer's own request used.
//
// A figure that cannot be that of one request, because it is above the window,
// or above four times what was counted and half of the limit beside, is left
// aside, once: when the next one cannot be either, it is believed. One below a
// quarter of what was counted, as it is where cached tokens were left out, is
// taken as a quarter.
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
	model, tokens := at.known().model, max(min(int64(u.Input), maxTotal), at.raw()/maxRatio)
	if h.doubts(model, at, tokens) {
		return nil
	}
	h.change()
	last := h.known().learned.of(model)
	if model == h.known().model {
		last = h.known().cal
	}
	shared := int64(0)
	if last != nil && last.at != nil {
		shared = at.sharedWith(last.at, h.isRewritten(last.at))
	}
	next := last.learn(h.opts.prior(model), h.guess(), h.known().cap, at, shared, tokens)
	k := *h.known()
	k.learned = k.learned.with(next)
	if model == k.model {
		k.cal, h.sent = next, at
	}
	h.knowledge = &k
	if k.cal == next {
		h.sumMeasured(h.isRewritten(next.at))
	}
	h.settle()
	return nil
}

// A doubted figure cannot be that of one request.
type doubted struct {
	model   string
	version uint64 // of the snapshot that it was reported for
}

// doubts reports whether a figure is to be left aside.
func (h *History) doubts(model string, at *Snapshot, tokens int64) bool {
	window := int64(h.limits.Window)
	same := h.doubted != nil && h.doubted.model == model
	switch {
	case h.limits.most() == 0, tokens <= overheadCap(h.limits)+maxRatio*at.raw() && (window == 0 || tokens <= window):
		if same {
			h.doubted = nil
		}
		return false
	case same && h.doubted.version != at.version:
		return false // the second in a row
	}
	h.doubted = &doubted{model, at.version}
	return true
}

// guess is the overhead that the limits state.
func (h *History) guess() int64 { return min(int64(h.limits.Overhead), maxTotal) }

// overheadCap is the most that is taken for overhead. A large one that is none,
// but the weight of a document that was counted as little, must not outlive the
// document.
func overheadCap(l Limits) int64 {
	if l.most() == 0 {
		return maxTotal
	}
	return max(min(int64(l.Overhead), maxTotal), l.most()/2)
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
		c = c.moved(scale{known: c, overhead: c.overhead(overheadCap(h.limits)), old: raw}, raw)
		c.Doubt = c.Tokens
		c.at = h.reported()
	}
	h.knowledge = &knowledge{model: model, cal: c, learned: l, cap: overheadCap(h.limits)}
	h.measured = 0
	if c != nil {
		h.sumMeasured(h.isRewritten(c.at))
	}
}

// resume goes on with what was learned of the view s in another History.
func (h *History) resume(s *Snapshot) {
	model, l := s.known().model, s.carried()
	if c := l.of(model); c != nil {
		if was, is := c.Raw, h.raw(); was > 0 && is > 0 && was != is { // another tokenizer counted
			for _, c := range l {
				c.recount(float64(is) / float64(was))
			}
		}
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

// sumMeasured sums anew what of the view was measured; rewritten: more than the tail has changed since.
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
	cap     int64        // the most that is taken for overhead; 0: maxTotal
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
	// But for the newest two, models let go of the views they were reported on,
	// and the oldest of many are forgotten.
	if n := len(out); n > 1 && out[n-2].at != nil {
		own := *out[n-2]
		own.at = nil
		out[n-2] = &own
	}
	return append(out[max(len(out)-maxModels+1, 0):], c)
}

const maxModels = 32

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
