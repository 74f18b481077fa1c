package convo

import (
	"cmp"
	"slices"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
)

// estimate returns the estimated size of the next request.
func (s *state) estimate() Estimate {
	scale := s.scale()
	e := Estimate{Tokens: clampInt(scale.Tokens()), Upper: clampInt(scale.Upper())}
	if s.known().reported {
		e.Measured = clampInt(scale.Measured())
	}
	return e
}

// upper returns the upper bound of the next request. It is computed once after each change.
func (v *view) upper() int64 {
	if v.weighed != v.version+1 {
		v.weigh()
	}
	return v.weight
}

// weigh is the slow path of upper. It is separate so that the fast path can be inlined.
func (v *view) weigh() { v.weight, v.weighed = v.scale().Upper(), v.version+1 }

// lastSent returns the snapshot of the last usage report and the tokens of its request. The
// snapshot is nil if there is none, or if an entry that it shows has since left the view.
func (v *view) lastSent() (*Snapshot, int) {
	if v.sent == nil {
		return nil, 0
	}
	return v.sent, clampInt(v.known().cal.Tokens)
}

// isRewritten reports whether entries have changed since a report in any way other than
// appending entries or taking back the newest ones.
func (v *view) isRewritten(since *reported) bool {
	return since != nil && v.rewritten > since.version
}

// learn makes a new version of the view, in which the provider has counted that many tokens
// for the request made from at. It must not be older than the last report for its model, whose
// prior is given. The result reports whether the estimate was below it by more than a
// hundredth.
func (v *view) learn(at *Snapshot, tokens int64, prior calibrate.Prior) (above bool) {
	model, k := at.known().model, *v.known()
	tokens = max(min(tokens, maxTotal), at.raw()/calibrate.MaxRatio)
	v.newVersion()
	last, shared := k.learned.of(model), int64(0)
	if model == k.model {
		last = k.cal
	}
	isKnown := last != nil && last.at != nil
	if isKnown {
		shared, _ = at.sharedWith(last.at, v.isRewritten(last.at))
		above = tokens*100 > 101*last.Scale(k.cap, shared, at.raw()).Tokens()
	}
	next := &calibration{Model: model, at: at.reported(), version: at.version}
	next.Calibration = last.figures().Learn(calibrate.Report{
		Tokens: tokens, Raw: at.raw(),
		Last: isKnown, Shared: shared,
		Prior: prior, Overhead: k.assumed(), MaxOverhead: k.cap,
	})
	v.plain++
	k.toolsSet, k.resumed, k.learned = false, nil, k.learned.with(next)
	if model == k.model {
		k.cal, k.reported, v.sent = next, true, at
	}
	v.knowledge = &k
	if id, _ := v.reversedSince(at); id != 0 || v.rewritten > at.version {
		v.releaseViews(0) // at shows entries that have left the view
	}
	if model == k.model {
		v.sumMeasured(v.isRewritten(v.known().cal.at))
	}
	return above
}

// setModel makes model, with its prior, that of the next requests. l holds the calibrations of
// all models.
func (v *view) setModel(model string, prior calibrate.Prior, l learned) {
	was, c := v.known(), l.of(model)
	if c != nil && c.at == nil { // learned in another History, from another view
		raw := v.raw()
		own := *c
		own.Calibration = c.Moved(calibrate.Scale{Known: &c.Calibration, Overhead: c.Overhead(was.cap), Old: raw}, raw)
		own.Doubt = own.Tokens
		own.at = v.reportedView()
		c = &own
	}
	v.sent = nil
	v.knowledge = &knowledge{model: model, prior: prior, cal: c, learned: l, cap: was.cap, tools: was.tools, toolsSet: was.toolsSet}
	v.sumMeasured(c != nil && v.isRewritten(c.at))
}

// adoptCalibration adopts the model of s, with its prior, and the calibrations of all models.
// s may be a snapshot of another History.
func (v *view) adoptCalibration(s *Snapshot, prior calibrate.Prior) {
	model, l := s.known().model, s.carried()
	if c := l.of(model); c != nil {
		if was, is := c.Raw, v.raw(); was > 0 && is > 0 && was != is { // s was counted by another tokenizer
			for _, c := range l {
				c.Recount(float64(is)/float64(was), 0, 0)
			}
		}
		c.Raw = v.raw()
		c.at = v.reportedView()
	}
	v.setModel(model, prior, l)
}

// adoptKnowledge adopts the model and the calibrations in the records, with the prior of that
// model. It reports whether the calibrations had to be converted.
func (v *view) adoptKnowledge(r *reading, prior calibrate.Prior, toolsSet bool) (recounted bool) {
	was := v.known()
	k, recounted := r.state.knowledgeOf(&v.state, r.counted, r.mended)
	k.prior, k.cap, k.tools, k.toolsSet, k.resumed = prior, was.cap, was.tools, toolsSet, was.resumed
	v.knowledge = k
	v.sumMeasured(true)
	return recounted
}

// setLimits makes the limits those of the next requests. See knowledge.within.
func (v *view) setLimits(l Limits, tools bool) {
	v.newVersion()
	v.knowledge = v.known().within(l, tools)
}

// setResumed notes that the view was made from Decisions with that frame.
func (v *view) setResumed(f *measuredFrame) {
	k, frame := *v.known(), *f
	k.resumed = &frame
	v.knowledge = &k
}

// seenAgain is called when the system entries, the tools or the ephemeral messages were set.
// If they are those of the Decisions that the view was resumed from, they count as measured
// where they did then.
func (v *view) seenAgain() {
	was, cal := v.known().resumed, v.known().cal
	if was == nil || cal == nil || cal.at == nil {
		return
	}
	f, at := v.frame(), *cal.at
	if was.sysSeen && f.Sys == was.Sys {
		at.sys = shown{entries: slices.Clip(v.sys)}
	}
	if was.toolsSeen && f.Tools == was.Tools {
		at.tools = v.tools
	}
	if was.ephemeralSeen && f.Eph == was.Eph {
		at.eph = v.eph
	}
	own := *cal
	own.at = &at
	v.knowledge = v.known().with(func(c *calibration) *calibration {
		if c == cal {
			return &own
		}
		return c
	})
	v.sumMeasured(v.isRewritten(&at))
}

// reportedView returns the current view for a calibration. The view shares its entries, as a
// snapshot does.
func (v *view) reportedView() *reported {
	v.seen = len(v.list)
	return v.reported()
}

// releaseViews drops the references to views that usage was reported for, if they show an
// entry newer than after. Otherwise they would keep entries in memory that have left the view.
// The token counts of these views stay known.
func (v *view) releaseViews(after ID) {
	if v.sent != nil && firstAfter(v.sent.list, after) < len(v.sent.list) {
		v.sent = nil
	}
	v.knowledge = v.known().with(func(c *calibration) *calibration { return c.withTraces(after) })
}

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
// RecordUsage returns an error that matches [ErrStale] for a snapshot that is not from this
// History, and a [*ValueError] if a figure is negative or greater than the figure that it is a
// part of.
func (h *History) RecordUsage(at *Snapshot, u Usage) error {
	var doubt error // why the report is ignored, if that is to be logged
	err := h.change(func() error {
		if err := cmp.Or(u.fault(), h.ownsLocked(at)); err != nil {
			return err
		}
		h.setSent(at)
		h.answered(at)
		tokens, model := int64(u.request()), at.known().model
		h.cachedFor(at, u.CacheTTL)
		if tokens == 0 || at.version < h.known().learned.version(model) {
			return nil
		}
		var ignore bool
		ignore, doubt = h.meter.judge(at, tokens)
		if !ignore {
			h.meter.noteReport(h.learn(at, tokens, h.opts.prior(model)))
		}
		return nil
	})
	if doubt != nil {
		h.warnOfUsage(at, u, doubt)
	}
	h.warnDue(false)
	if err == nil {
		h.prove(at.version)
	}
	return err
}

// warnOfUsage logs that the usage reported for a snapshot was ignored.
func (s *setup) warnOfUsage(at *Snapshot, u Usage, cause error) {
	s.warn("convo: usage left aside", "cause", cause, "input", u.Input, "raw", at.raw(), "model", at.known().model)
}

// warnDue logs, each once, that reports keep growing faster than the requests and, if the
// caller has set limits, that the window is a guess. It calls the caller's logger, so no lock
// may be held.
func (h *History) warnDue(isSet bool) {
	var due warnings
	var window int
	var model string
	h.locked(func() {
		if !h.isClosed() {
			due, window, model = h.meter.due(isSet), h.meter.marks().set.Window, h.known().model
		}
	})
	if due.assumed {
		h.warn("convo: the window of the model is not known and was assumed: set Limits.Window", "window", window, "model", model)
	}
	if due.rising {
		h.warn("convo: reported usage grows faster than the requests, which makes compactions more frequent: report each request alone, without what earlier ones used", "reports", manyRising, "model", model)
	}
}

// Tokens returns the estimated size of the next request, in constant time.
func (h *History) Tokens() Estimate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.estimate()
}
