package convo

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// An Outcome says how a compaction or an edit ended.
type Outcome uint8

// Outcomes. With all but OutcomeApplied, nothing has changed.
const (
	OutcomeNotNeeded Outcome = iota // nothing was due, or nothing was new
	OutcomeApplied                  // an edit was applied
	OutcomeDeclined                 // nothing was worth removing; Cause says why
	OutcomeFailed                   // Cause says what failed
	OutcomeStale                    // the conversation changed meanwhile, so that the edit no longer fitted
)

// String returns the outcome in lower case, such as "not needed".
func (o Outcome) String() string {
	return nameOf(o, "not needed", "applied", "declined", "failed", "stale")
}

// A Reason says why a compaction was started.
type Reason uint8

// Reasons to start a compaction.
const (
	ReasonManual   Reason = iota // Compact was called, or an edit was made by hand
	ReasonHigh                   // the request was larger than Limits.High
	ReasonSoft                   // the request was larger than Limits.Soft
	ReasonTrigger                // the strategy's Trigger was due
	ReasonFit                    // Fit was called
	ReasonOverflow               // Recover was called
)

// String returns the reason in lower case, such as "manual".
func (r Reason) String() string {
	return nameOf(r, "manual", "high", "soft", "trigger", "fit", "overflow")
}

// A Report says what a compaction or an edit did. Sizes are in tokens. Those of
// requests are upper bounds, as [Estimate].Upper.
type Report struct {
	Outcome  Outcome
	Reason   Reason
	Strategy string // its name; empty: none ran, or the edit was made by hand
	Links    []Link // what each link of a Chain did, in order

	// Cause says why no edit was applied, even if the error is nil. If an edit
	// was applied, it says why some results could not be cleared. Nil otherwise.
	Cause error

	// Fits reports whether the next request is within the limit. Without a
	// Window it always is.
	Fits bool

	// NamedLimit is how large a request may be by the error given to Recover,
	// which has lowered the limits to it. 0: the limits are as they were.
	NamedLimit int

	// The next request. Messages are counted as the model sees them, including
	// the summary and ephemeral messages.
	MessagesBefore int // before the edit
	MessagesAfter  int // after it
	TokensBefore   int // before the edit
	TokensAfter    int // after it

	// IDs of entries, in ascending order.
	Dropped    []ID // dropped, and not summarised
	Summarised []ID // dropped, and the summary stands for them
	Cleared    []ID // stayed, with results cleared
	Kept       []ID // were to be dropped or cleared, but were pinned after the edit was planned

	SummaryDropped bool // the summary was removed, and no other took its place

	Duration time.Duration
	Calls    int   // calls of models, including those that failed
	Usage    Usage // of these calls
	Unread   int   // raw tokens of summarised entries that no summarizer was shown

	// PrefixKept is the fraction, from 0 to 1, of the last sent request that
	// the next one still starts with, and so may hit the prompt cache. It is 1
	// if no edit was applied. The last sent request is that of the snapshot
	// last given to RecordUsage, or without one, the view before the edit.
	PrefixKept float64
}

// clone returns a copy that shares no slices with r.
func (r Report) clone() Report {
	r.Dropped, r.Summarised = slices.Clone(r.Dropped), slices.Clone(r.Summarised)
	r.Cleared, r.Kept = slices.Clone(r.Cleared), slices.Clone(r.Kept)
	r.Links = slices.Clone(r.Links)
	return r
}

// deliver gives a report to Options.OnCompaction and to the log. No lock may be held.
// A panic is ignored.
func (h *History) deliver(r Report) {
	if r.Outcome == OutcomeNotNeeded || h.ident == nil {
		return
	}
	if h.opts.OnCompaction != nil {
		func() {
			defer func() { _ = recover() }()
			h.opts.OnCompaction(r.clone())
		}()
	}
	level := slog.LevelDebug
	switch r.Outcome {
	case OutcomeApplied:
		level = slog.LevelInfo
	case OutcomeFailed:
		level = slog.LevelWarn
	}
	defer func() { _ = recover() }()
	h.opts.Logger.Log(context.Background(), level, "convo: compaction "+r.Outcome.String(),
		"reason", r.Reason.String(), "strategy", r.Strategy, "cause", r.Cause, "tokens_before", r.TokensBefore, "tokens_after", r.TokensAfter,
		"dropped", len(r.Dropped), "summarised", len(r.Summarised), "cleared", len(r.Cleared), "kept", len(r.Kept),
		"unread", r.Unread, "fits", r.Fits, "named_limit", r.NamedLimit, "duration", r.Duration)
}

// warn logs a warning. No lock may be held. A panic is ignored.
func (h *History) warn(text string, cause error) {
	defer func() { _ = recover() }()
	var args []any
	if cause != nil {
		args = []any{"cause", cause}
	}
	h.opts.Logger.Warn(text, args...)
}

// prefixKept returns the fraction of the raw tokens of sent with which next still
// starts. Ephemeral messages do not count.
func prefixKept(sent *reported, next *state) float64 {
	total := sent.raw
	if total == 0 {
		return 1
	}
	same, all := samePrefix(sent.sys, next.sys)
	if all && sent.summary == next.summary {
		list, _ := samePrefix(sent.list, next.list)
		same += sent.summary.tokens() + list
	}
	return float64(same) / float64(total)
}

// samePrefix returns the raw tokens of the entries with which both lists start,
// and whether the lists are the same.
func samePrefix(a shown, b []*entry) (raw int64, all bool) {
	n := 0
	for n < a.len() && n < len(b) && a.at(n) == b[n].trace() {
		raw += b[n].tokens
		n++
	}
	return raw, n == a.len() && n == len(b)
}

// measureBeforeLocked sets the sizes in a report, those after the edit too, to
// those of the current view.
func (h *History) measureBeforeLocked(r *Report) {
	h.measureLocked(r, h.upperLocked(), h.marks.limit)
}

// measureLocked is measureBeforeLocked for a given upper bound of the next request
// and a given limit.
func (h *History) measureLocked(r *Report, total, limit int64) {
	r.MessagesBefore, r.TokensBefore = h.messages(), clampInt(total)
	r.MessagesAfter, r.TokensAfter = r.MessagesBefore, r.TokensBefore
	r.Fits, r.PrefixKept = total <= limit, 1
}

// fitsLocked reports whether the next request is within the limit.
func (h *History) fitsLocked() bool { return h.upperLocked() <= h.marks.limit }

// A Link says what one strategy of a [Chain] did.
type Link struct {
	Strategy string  // its name
	Outcome  Outcome // OutcomeApplied, OutcomeDeclined or OutcomeFailed
	Cause    error   // why it contributed nothing; nil: it did
	Calls    int     // calls of models, including those that failed
}

// Work says what it took to plan an edit. It is used even if the strategy also
// returns an error.
type Work struct {
	Calls  int    // calls of models, including those that failed
	Usage  Usage  // of all calls
	Unread int    // raw tokens of summarised entries that no summarizer was shown
	Links  []Link // what each link of a Chain did, in order
}

// wastedCall reports whether a link called a model and contributed nothing.
func (w *Work) wastedCall() bool {
	return slices.ContainsFunc(w.Links, func(l Link) bool { return l.Calls > 0 && l.Outcome != OutcomeApplied })
}
