package convo

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
	ignore, doubt := h.meter.judge(at, int64(u.request()))
	if !ignore {
		h.learnLocked(at, int64(u.request()))
	}
	return doubt, nil
}

// learnLocked applies a report of the given number of tokens for the request made from at,
// which must not be older than the last report for its model.
func (h *History) learnLocked(at *Snapshot, tokens int64) {
	h.meter.noteReport(h.learn(at, tokens, h.opts.prior(at.known().model)))
	h.updateChargeLocked()
}

// warnOfUsage logs that the usage reported for a snapshot was ignored.
func (s *setup) warnOfUsage(at *Snapshot, u Usage, cause error) {
	s.warn("convo: usage left aside", "cause", cause, "input", u.Input, "raw", at.raw(), "model", at.known().model)
}

// warnAssumed logs, once, that the window is a guess. It calls the caller's logger, so no lock
// may be held.
func (h *History) warnAssumed() {
	h.mu.Lock()
	due := !h.endedLocked() && h.meter.dueAssumed()
	window, model := h.meter.marks().set.Window, h.known().model
	h.mu.Unlock()
	if due {
		h.warn("convo: the window of the model is not known and was assumed: set Limits.Window", "window", window, "model", model)
	}
}

// warnRising logs, once, that reports keep growing faster than the requests. It calls the
// caller's logger, so no lock may be held.
func (h *History) warnRising() {
	h.mu.Lock()
	due, model := h.meter.dueRising(), h.known().model
	h.mu.Unlock()
	if due {
		h.warn("convo: reported usage grows faster than the requests, which makes compactions more frequent: report each request alone, without what earlier ones used", "reports", manyRising, "model", model)
	}
}

// Tokens returns the estimated size of the next request, in constant time.
func (h *History) Tokens() Estimate {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.estimate()
}
