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
	h.warnDue(false)
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
	err = h.change(func() error {
		if err := h.ownsLocked(at); err != nil {
			return err
		}
		h.setSent(at)
		h.answered(at)
		tokens, model := int64(u.request()), at.known().model
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
	return doubt, err
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
