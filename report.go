package convo

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

// An Outcome says how a compaction ended.
type Outcome uint8

// Outcomes. With Failed and Stale comes an error, and nothing has changed.
const (
	NotNeeded Outcome = iota
	Applied
	Declined
	Failed
	Stale
)

func (o Outcome) String() string {
	return nameOf(o, "not needed", "applied", "declined", "failed", "stale")
}

// A Reason says why a compaction was asked for.
type Reason uint8

// Reasons. ReasonManual is that of every edit made by hand.
const (
	ReasonManual Reason = iota
	ReasonHigh
	ReasonSoft
	ReasonTrigger
	ReasonFit
	ReasonOverflow
)

func (r Reason) String() string {
	return nameOf(r, "manual", "high", "soft", "trigger", "fit", "overflow")
}

// A Report says what a compaction or an edit did. Tokens are upper bounds, as
// [Estimate].Upper.
type Report struct {
	Outcome  Outcome
	Reason   Reason
	Strategy string // its name; empty for an edit made by hand, and where none ran
	Links    []Link // how the links of a Chain did, in order

	// Cause is why nothing was applied, also where the error is nil, or which
	// results could not be cleared.
	Cause error

	// Fits tells whether the next request is within the limit; always, without
	// a window.
	Fits bool

	// What the model sees, summary and ephemeral messages included.
	MessagesBefore, MessagesAfter int
	TokensBefore, TokensAfter     int

	// Entries by ID, ascending: gone with no summary, gone into the summary,
	// cleared, and kept because they were pinned meanwhile.
	Dropped, Summarised, Cleared, Kept []ID

	SummaryDropped bool // the summary was given up, with nothing in its place

	Duration time.Duration
	Usage    Usage // of the summarizer, failed calls included
	Unread   int   // raw tokens of what went into the summary that no summarizer was shown

	// PrefixKept is the share, from 0 to 1, of what was last sent that the
	// next request begins with again after the edit; 1 where none was applied.
	// Sent is the snapshot last given to RecordUsage, or else the view before.
	PrefixKept float64
}

// tell gives a report to the observer and the log. No lock is held; a panic
// is dropped.
func (h *History) tell(r Report) {
	if r.Outcome == NotNeeded || h.ident == nil {
		return
	}
	if h.opts.OnCompaction != nil {
		func() {
			defer func() { _ = recover() }()
			own := r
			own.Dropped, own.Summarised = slices.Clone(r.Dropped), slices.Clone(r.Summarised)
			own.Cleared, own.Kept = slices.Clone(r.Cleared), slices.Clone(r.Kept)
			own.Links = slices.Clone(r.Links)
			h.opts.OnCompaction(own)
		}()
	}
	level := slog.LevelDebug
	switch r.Outcome {
	case Applied:
		level = slog.LevelInfo
	case Failed:
		level = slog.LevelWarn
	}
	defer func() { _ = recover() }()
	h.opts.Logger.Log(context.Background(), level, "convo: compaction "+r.Outcome.String(),
		"reason", r.Reason.String(), "strategy", r.Strategy, "cause", r.Cause, "tokens_before", r.TokensBefore, "tokens_after", r.TokensAfter,
		"dropped", len(r.Dropped), "summarised", len(r.Summarised), "cleared", len(r.Cleared), "kept", len(r.Kept),
		"unread", r.Unread, "fits", r.Fits, "duration", r.Duration)
}

// prefixKept is the share of the raw tokens of sent, ephemeral messages apart,
// that next begins with again.
func prefixKept(sent, next *state) float64 {
	total := sent.raw() - sent.eph.tokens()
	if total == 0 {
		return 1
	}
	same, all := samePrefix(sent.sys, next.sys)
	if all && sent.slot == next.slot {
		list, _ := samePrefix(sent.list, next.list)
		same += sent.slot.tokens() + list
	}
	return float64(same) / float64(total)
}

// samePrefix returns the raw tokens of the entries that both lists begin with,
// and whether that is all of both.
func samePrefix(a, b []*entry) (raw int64, all bool) {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		raw += a[n].tokens
		n++
	}
	return raw, n == len(a) && n == len(b)
}
