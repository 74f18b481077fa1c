package convo

import (
	"context"
	"fmt"
	"strings"
)

// Recover compacts after a provider has refused a request because it was too
// long. at is the snapshot that was sent, and cause is the error that came back,
// which must not be nil. Recover works down to Limits.Low or to half the size of
// at, whichever is less. It returns retry true if the view is now smaller than
// at, so that sending again makes sense:
//
//	for {
//		reply, err := send(snap)
//		if err == nil {
//			break
//		}
//		if retry, _, err := h.Recover(ctx, snap, err); !retry {
//			return err
//		}
//		snap = h.Snapshot()
//	}
//
// [History.Do] does this.
//
// As for [History.Compact], Limits.MinFree does not apply, and summarizers are
// called even shortly after a failure. If another compaction of h is running,
// Recover first waits until it has ended, or until ctx ends. A nil ctx never
// ends.
//
// The error is nil exactly when retry is true. If Options.IsOverflow says that
// cause is not about the length, the error is cause itself and the report says
// OutcomeNotNeeded. Otherwise the error wraps both the reason why Recover failed
// and cause; the reason is a [*StaleError] if at is not a snapshot of h. A nil
// cause is a [*ValueError].
func (h *History) Recover(ctx context.Context, at *Snapshot, cause error) (retry bool, report Report, err error) {
	if cause == nil {
		cause = &ValueError{Name: "Recover: cause", Want: "the error that the provider returned"}
	}
	overflow, err := h.isOverflow(cause)
	switch {
	case err != nil:
		r, _ := h.notStarted(ReasonOverflow, err)
		return false, r, fmt.Errorf("%w; the provider said: %w", err, cause)
	case !overflow:
		r := h.notNeededReport()
		r.Reason = ReasonOverflow
		return false, r, cause
	}
	h.mu.Lock()
	err = h.ownsLocked(at)
	h.mu.Unlock()
	if err != nil {
		r, _ := h.notStarted(ReasonOverflow, err)
		return false, r, fmt.Errorf("%w; the provider said: %w", err, cause)
	}
	report, err = h.compactOnRequest(ctx, ReasonOverflow, func(f *flight) (Report, error) {
		n := need{reason: ReasonOverflow, requested: true}
		h.mu.Lock()
		now := h.scaleLocked()
		total := now.Upper()
		n.target = min(h.marks.low, now.Weigh(at.raw())/2)
		h.mu.Unlock()
		if total <= n.target {
			r := h.notNeededReport()
			r.Reason = ReasonOverflow
			return r, nil
		}
		return f.try(n)
	})
	h.mu.Lock()
	retry = !h.endedLocked() && h.raw() < at.raw()
	now := h.scaleLocked()
	weight, refused := now.Upper(), now.Weigh(at.raw())
	h.mu.Unlock()
	if retry {
		return true, report, nil
	}
	if err == nil {
		if err = report.Cause; err == nil { // more was appended meanwhile than was removed
			err = &LimitError{Need: clampInt(weight), Limit: clampInt(refused - 1), Compacted: report.Outcome == OutcomeApplied}
		}
	}
	return false, report, fmt.Errorf("%w; the provider said: %w", err, cause)
}

// isOverflow calls Options.IsOverflow, or IsOverflow if it is not set. A panic
// becomes the fault.
func (h *History) isOverflow(err error) (overflow bool, fault error) {
	isOverflow := IsOverflow
	if h.opts.IsOverflow != nil {
		isOverflow = h.opts.IsOverflow
	}
	defer catch(&fault, "Options.IsOverflow")
	return isOverflow(err), nil
}

// IsOverflow reports whether the text of an error is one that a known provider
// or model server uses to say that a request is too long for the model. Errors
// about rate limits do not count. It is the default of Options.IsOverflow, and
// can be called from a function set there. A nil error is no overflow.
func IsOverflow(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, throttle := range throttleTexts {
		if strings.Contains(text, throttle) {
			return false
		}
	}
	for _, pair := range overflowTexts {
		if _, rest, ok := strings.Cut(text, pair[0]); ok && strings.Contains(rest, pair[1]) {
			return true
		}
	}
	return false
}

// throttleTexts appear in errors about the rate of requests, which may mention
// too many tokens as well. They are in lower case.
var throttleTexts = [...]string{
	"rate limit", "rate_limit", "ratelimit", "throttl", "per minute", "per min", "per day", "quota", "please wait", "(tpm)",
}

// overflowTexts are pairs of texts, in lower case. An error is an overflow if it
// contains both texts of a pair, the second somewhere after the first.
var overflowTexts = [...][2]string{
	{"context_length_exceeded", ""},
	{"maximum context length", ""},
	{"context length", "exceed"},
	{"exceed", "context length"},
	{"longer than", "context length"},
	{"exceed", "context window"},
	{"context window", "exceed"},
	{"contextwindowexceeded", ""},
	{"context_window_exceeded", ""},
	{"exceed", "context limit"},
	{"exceed", "context size"},
	{"exceed_context_size", ""},
	{"prompt is too long", ""},
	{"prompt too long", ""},
	{"input is too long", "model"},
	{"input is too long", "token"},
	{"input length", "exceed"},
	{"input token count", "exceed"},
	{"prompt token count", "exceed"},
	{"token count", "exceeds the maximum"},
	{"maximum prompt length", ""},
	{"maximum allowed input length", ""},
	{"max_model_len", ""},
	{"max_seq_len", ""},
	{"too large for model", "context"},
	{"too long for the context", ""},
	{"reduce the length of the messages", ""},
	{"reduce the length of the input", ""},
	{"too many tokens", ""},
	{"request_too_large", ""},
	{"model_context_window_exceeded", ""},
	{"greater than the context length", ""},
	{"greater than", "n_ctx"},
	{"`inputs` must have less than", "tokens"},
	{"`inputs` tokens + `max_new_tokens`", "must be"},
	{"range of input length should be", ""},
	{"exceeded model token limit", ""},
	{"tokens_limit_reached", ""},
}
