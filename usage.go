package convo

import "slices"

// RecordUsage tells what the provider reported for the request made of at. The
// figure is applied to that snapshot: what came or went since is added or
// subtracted. One that is older than the last one applied is ignored, and so
// is one without input tokens; one for another model than the present is kept
// for that model. Do not report what a summarizer's own request used.
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
	learned := calibrate(min(int64(u.Input), maxTotal), at.raw())
	h.learned = h.learned.with(modelCalibration{at.model, learned, at.version})
	if at.model == h.model {
		h.cal, h.sent = learned, at
		h.measured = h.rawSharedWith(at)
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
// apart by model: a new name starts from the prior, a known one from what was
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
	h.model = name
	h.cal = h.startingCalibration()
	h.sent, h.measured = nil, 0
	h.settle()
	return nil
}

// startingCalibration is what was learned of the model, or the prior.
func (h *History) startingCalibration() calibration {
	if c, ok := h.learned.of(h.model); ok {
		return c
	}
	return calibration{Overhead: min(int64(h.limits.Overhead), maxTotal), Ratio: 1}
}

// estimate is overhead + calibrated total.
func (h *History) estimate() Estimate {
	tokens := h.cal.apply(h.raw())
	e := Estimate{Tokens: clampInt(tokens), Upper: clampInt(upper(tokens))}
	if h.sent != nil {
		e.Measured = clampInt(h.cal.apply(h.measured))
	}
	return e
}

// upper is the bound for an estimate.
func upper(tokens int64) int64 { return tokens + (tokens+upperPrior-1)/upperPrior }

// rawSharedWith returns the raw tokens of what is both in the view and in at.
func (h *History) rawSharedWith(at *Snapshot) int64 {
	n := rawShared(h.sys, at.sys)
	if h.slot == at.slot {
		n += h.slot.tokens()
	}
	if h.eph == at.eph {
		n += h.eph.tokens()
	}
	if h.rewritten > at.version {
		return n + rawShared(h.list, at.list)
	}
	// Nothing but the tail has changed: all up to at's last ID is shared.
	n += h.listRaw
	for _, e := range slices.Backward(h.list) {
		if e.id <= at.last {
			break
		}
		n -= e.tokens
	}
	return n
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
type learned []modelCalibration

type modelCalibration struct {
	Model string `json:"model"`
	calibration
	version uint64 // of the snapshot it was measured on, in this History
}

func (l learned) of(model string) (calibration, bool) {
	for _, c := range l {
		if c.Model == model {
			return c.calibration, true
		}
	}
	return calibration{}, false
}

// version is that of the newest snapshot which a figure for the model was
// applied to.
func (l learned) version(model string) uint64 {
	for _, c := range l {
		if c.Model == model {
			return c.version
		}
	}
	return 0
}

// afresh is what was learned, for another History.
func (l learned) afresh() learned {
	l = slices.Clone(l)
	for i := range l {
		l[i].version = 0
	}
	return l
}

func (l learned) with(c modelCalibration) learned {
	out := make(learned, 0, len(l)+1)
	for _, m := range l {
		if m.Model != c.Model {
			out = append(out, m)
		}
	}
	return append(out, c)
}
