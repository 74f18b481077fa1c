package convo

import (
	"fmt"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
)

// RecordUsage corrects the estimate with the size that the provider reported for the
// request made from the snapshot at, which is Input - Extra. The estimate adds what has
// entered the view since, and subtracts what has left it. Do not report the usage of a
// summarizer's own request.
//
// From the differences between reports, RecordUsage learns how many tokens the model
// makes of a raw token; whatever the requests carry in addition to their messages cancels
// out. From the errors of estimates, it learns how far Estimate.Upper must be above
// Tokens for the part that the last report does not cover. Both are kept separately for
// each model (see [History.SetModel]), survive compactions, and are saved. A report for a
// snapshot that was made for another model counts for that model.
//
// These reports are ignored:
//
//   - a report without tokens, or for a snapshot older than that of the last report for
//     its model;
//   - a figure above Limits.Window, as it was when the snapshot was made, because no
//     request of that size is answered; it may be the sum of several requests;
//   - if there is a limit, a figure above 4 × raw + max(Limits.Tools, limit/2), where raw
//     is the number of raw tokens of the view, unless the previous figure for that model,
//     for another snapshot, was ignored for the same reason;
//   - a figure below a quarter of the raw tokens: it lacks a part of the request, most
//     often the tokens that the provider read from its cache.
//
// Ignored figures are logged as warnings, those below a quarter only once. A long run of
// reports above the estimate, as sums over several requests are, is also logged once.
//
// RecordUsage returns a [*StaleError] for a snapshot that is not from this History, and a
// [*ValueError] if a figure is negative or greater than the figure that it is a part of.
func (h *History) RecordUsage(at *Snapshot, u Usage) error {
	doubt, err := h.recordUsage(at, u)
	if doubt != nil {
		h.warnOfUsage(at, u, doubt)
	}
	h.warnRising()
	if err == nil {
		h.prove(at.version)
	}
	return err
}

// warnRising logs, once, that reports keep growing faster than the requests. It calls the
// caller-supplied logger, so no lock may be held.
func (h *History) warnRising() {
	h.mu.Lock()
	warn := h.meter.rising == manyRising && !h.meter.risingTold
	h.meter.risingTold = h.meter.risingTold || warn
	model := h.known().model
	h.mu.Unlock()
	if warn {
		h.warn("convo: reported usage grows faster than the requests, which makes compactions more frequent: report each request alone, without what earlier ones used", "reports", manyRising, "model", model)
	}
}

// manyRising is the number of consecutive reports, each above the estimate by more than a
// hundredth, that causes a warning.
const manyRising = 12

// recordUsage is RecordUsage without logging. It also returns why a report was ignored,
// if that is to be logged.
func (h *History) recordUsage(at *Snapshot, u Usage) (doubt, err error) {
	if err := u.fault(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ownsLocked(at); err != nil {
		return nil, err
	}
	h.setSent(at)
	h.answered(at)
	if u.request() == 0 || at.version < h.known().learned.version(at.known().model) {
		return nil, nil
	}
	tokens := int64(u.request())
	if least := at.raw() / calibrate.MaxRatio; tokens < least {
		if h.meter.lowTold {
			return nil, nil
		}
		h.meter.lowTold = true
		return &ValueError{Name: "Usage.Input", Value: tokens, Want: fmt.Sprintf("at least %d for a view of %d raw tokens: include the tokens that the provider read from its cache; later figures that are too low are ignored without a warning", least, at.raw())}, nil
	}
	if doubt := h.doubtLocked(at, min(tokens, maxTotal)); doubt != nil {
		return doubt, nil
	}
	h.applyUsageLocked(at, tokens)
	return nil, nil
}

// warnOfUsage logs that the usage reported for a snapshot was ignored.
func (h *History) warnOfUsage(at *Snapshot, u Usage, cause error) {
	h.warn("convo: usage left aside", "cause", cause, "input", u.Input, "raw", at.raw(), "model", at.known().model)
}

// applyUsageLocked applies a report of the given number of tokens for the request made
// from at, which must not be older than the last report for its model.
func (h *History) applyUsageLocked(at *Snapshot, tokens int64) {
	model := at.known().model
	tokens = max(min(tokens, maxTotal), at.raw()/calibrate.MaxRatio)
	h.newVersion()
	last := h.known().learned.of(model)
	if model == h.known().model {
		last = h.known().cal
	}
	shared := int64(0)
	if last != nil && last.at != nil {
		shared, _ = at.sharedWith(last.at, h.isRewrittenLocked(last.at))
	}
	h.meter.rising++
	if last == nil || last.at == nil || tokens*100 <= 101*last.expects(shared, at.raw(), h.known().cap) {
		h.meter.rising = 0
	}
	next := &calibration{Model: model, at: at.reported(), version: at.version}
	next.Calibration = last.figures().Learn(calibrate.Report{
		Tokens: tokens, Raw: at.raw(),
		Last: last != nil && last.at != nil, Shared: shared,
		Prior: h.opts.prior(model).arithmetic(), Overhead: h.assumedOverheadLocked(), MaxOverhead: h.known().cap,
	})
	h.plain++
	h.meter.toolsSet, h.meter.resumed = false, nil
	k := *h.known()
	k.learned = k.learned.with(next)
	if model == k.model {
		k.cal, h.meter.sent, h.meter.heard = next, at, true
	}
	h.knowledge = &k
	if id, _ := h.reversedSince(at); id != 0 || h.rewritten > at.version {
		h.releaseViewsLocked(0) // at shows entries that have left the view
		next = h.known().learned.of(model)
	}
	if h.known().cal == next {
		h.sumMeasured(h.isRewrittenLocked(next.at))
	}
	h.updateChargeLocked()
}

// seenAgainLocked is called when the system entries, the tools or the ephemeral messages
// were set. If they are those of the Decisions that h was resumed from, they count as
// measured where they did then.
func (h *History) seenAgainLocked() {
	was, cal := h.meter.resumed, h.known().cal
	if was == nil || cal == nil || cal.at == nil {
		return
	}
	f, at := h.frame(), *cal.at
	if was.sysSeen && f.sys == was.frame.sys {
		at.sys = shown{entries: slices.Clip(h.sys)}
	}
	if was.toolsSeen && f.tools == was.frame.tools {
		at.tools = h.tools
	}
	if was.ephemeralSeen && f.eph == was.frame.eph {
		at.eph = h.eph
	}
	own := *cal
	own.at = &at
	h.knowledge = h.known().with(func(c *calibration) *calibration {
		if c == cal {
			return &own
		}
		return c
	})
	h.sumMeasured(h.isRewrittenLocked(&at))
}

// An implausible is a report that was ignored because it was implausible.
type implausible struct {
	model   string
	version uint64 // of the snapshot that the report was for
}

// doubtLocked returns why to ignore a report of the given number of tokens, or nil.
func (h *History) doubtLocked(at *Snapshot, tokens int64) error {
	if window := at.setting.window; window > 0 && tokens > window {
		return &ValueError{Name: "Usage.Input", Value: tokens, Want: fmt.Sprintf("at most Limits.Window, which is %d: report each request alone, or raise Limits.Window", window)}
	}
	model := at.known().model
	same := h.meter.implausible != nil && h.meter.implausible.model == model
	most := calibrate.MaxRatio*at.raw() + overheadCap(h.meter.limits)
	switch {
	case h.meter.limits.most() == 0 || tokens <= most:
		if same {
			h.meter.implausible = nil
		}
		return nil
	case same && h.meter.implausible.version != at.version:
		return nil // accept the second one in a row
	}
	h.meter.implausible = &implausible{model, at.version}
	return &ValueError{Name: "Usage.Input", Value: tokens, Want: fmt.Sprintf("at most %d for a view of %d raw tokens, unless the next report says so too", most, at.raw())}
}

// assumedOverheadLocked returns the overhead to assume for a model until usage is
// reported for it. This is the overhead of the model with the last report, since the
// tools belong to the conversation, but not less than Limits.Tools. If Limits.Tools was
// set after that report, it is used alone.
func (h *History) assumedOverheadLocked() int64 {
	stated := min(int64(h.meter.limits.Tools), maxTotal)
	if l := h.known().learned; len(l) > 0 && !h.meter.toolsSet {
		return max(stated, l[len(l)-1].Overhead(h.known().cap))
	}
	return stated
}

// overheadCap returns the maximum overhead to learn. Without this bound, a document that
// was counted as far too small would look like a large overhead, and still be counted
// after it has left the view.
func overheadCap(l Limits) int64 {
	if l.most() == 0 {
		return maxTotal
	}
	return max(min(int64(l.Tools), maxTotal), l.most()/2)
}

// Tokens returns the estimated size of the next request, in constant time.
func (h *History) Tokens() Estimate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.estimateLocked()
}

// useModelLocked makes model the current one. l holds the calibrations of all models.
func (h *History) useModelLocked(model string, l learned) {
	h.meter.prior = h.opts.prior(model).arithmetic()
	c := l.of(model)
	if c != nil && c.at == nil { // learned in another History, from another view
		raw := h.raw()
		own := *c
		own.Calibration = c.Moved(calibrate.Scale{Known: &c.Calibration, Overhead: c.Overhead(overheadCap(h.meter.limits)), Old: raw}, raw)
		own.Doubt = own.Tokens
		own.at = h.reportedViewLocked()
		c = &own
	}
	h.meter.named = 0
	h.updateMarksLocked()
	h.knowledge = &knowledge{model: model, cal: c, learned: l, cap: overheadCap(h.meter.limits)}
	h.measured, h.pinMeasured = 0, 0
	if c != nil {
		h.sumMeasured(h.isRewrittenLocked(c.at))
	}
}

// adoptCalibrationLocked adopts the model of s and the calibrations of all models. s may
// be a snapshot of another History.
func (h *History) adoptCalibrationLocked(s *Snapshot) {
	model, l := s.known().model, s.carried()
	if c := l.of(model); c != nil {
		if was, is := c.Raw, h.raw(); was > 0 && is > 0 && was != is { // s was counted by another tokenizer
			for _, c := range l {
				factor := float64(is) / float64(was)
				c.Recount(factor, 0, 0)
			}
		}
		c.Raw = h.raw()
		c.at = h.reportedViewLocked()
	}
	h.useModelLocked(model, l)
}

// reportedViewLocked returns the current view for a calibration. The view shares its
// entries, as a snapshot does.
func (h *History) reportedViewLocked() *reported {
	h.seen = len(h.list)
	return h.reported()
}

// releaseViewsLocked lets go of the views that usage was reported for, if they show an entry
// newer than after.
func (h *History) releaseViewsLocked(after ID) {
	h.meter.release(after)
	h.releaseTraces(after)
}

// release lets go of the view of the last report, if it shows an entry newer than after: it
// would keep entries in memory that have left the view.
func (m *meter) release(after ID) {
	if m.sent != nil && firstAfter(m.sent.list, after) < len(m.sent.list) {
		m.sent = nil
	}
}

// estimateLocked returns the estimated size of the next request.
func (h *History) estimateLocked() Estimate {
	s := h.scaleLocked()
	e := Estimate{Tokens: clampInt(s.Tokens()), Upper: clampInt(s.Upper())}
	if h.meter.heard {
		e.Measured = clampInt(s.Measured())
	}
	return e
}

// isRewrittenLocked reports whether entries have changed since that view in any way other
// than appending entries or taking back the newest ones.
func (h *History) isRewrittenLocked(since *reported) bool {
	return since != nil && h.rewritten > since.version
}

// scaleLocked returns the scale for estimates of the current view.
func (h *History) scaleLocked() calibrate.Scale { return h.scaleOfLocked(&h.state) }

// upperLocked returns the upper bound of the next request. It is computed once after each
// change.
func (h *History) upperLocked() int64 {
	if h.meter.weighed == h.version {
		return h.meter.weight
	}
	return h.updateWeightLocked()
}

// updateWeightLocked is the slow path of upperLocked. It is separate so that the fast
// path can be inlined.
func (h *History) updateWeightLocked() int64 {
	h.meter.weight, h.meter.weighed = h.scaleLocked().Upper(), h.version
	return h.meter.weight
}

// scaleOfLocked returns the scale for estimates of a view of h.
func (h *History) scaleOfLocked(s *state) calibrate.Scale {
	scale := s.scale()
	scale.Prior = h.meter.prior
	if scale.Known == nil {
		scale.Overhead = h.assumedOverheadLocked()
	}
	return scale
}

// lastSentLocked returns the snapshot of the last usage report and the tokens of its
// request. The snapshot is nil if there is none, or if an entry that it shows has since
// left the view.
func (h *History) lastSentLocked() (*Snapshot, int) {
	if h.meter.sent == nil {
		return nil, 0
	}
	return h.meter.sent, clampInt(h.known().cal.Tokens)
}
