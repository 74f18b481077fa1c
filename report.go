package convo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/ranges"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// An Outcome says how a compaction or an edit ended.
type Outcome uint8

// Outcomes. With all but OutcomeApplied, the view has not changed.
const (
	OutcomeNotNeeded Outcome = iota // nothing was due or new
	OutcomeApplied                  // an edit was applied
	OutcomeDeclined                 // nothing was worth removing; Cause says why
	OutcomeFailed                   // Cause says what failed
	OutcomeStale                    // the conversation changed, so that the edit no longer applied
	OutcomeReady                    // the edit is applied later; see Options.CacheTTL
)

// String returns the outcome in lower case, such as "not needed".
func (o Outcome) String() string {
	return wording.NameOf(o, "not needed", "applied", "declined", "failed", "stale", "ready")
}

// A Reason says why a compaction was started.
type Reason uint8

// Reasons to start a compaction.
const (
	ReasonManual   Reason = iota // Compact was called, or an edit was made by hand
	ReasonHigh                   // the request was larger than Limits.High
	ReasonSoft                   // the request was larger than Limits.Soft; see CompactInBackground and Options.CacheTTL
	ReasonTrigger                // the strategy's Trigger was due
	ReasonRoom                   // MakeRoom was called
	ReasonOverflow               // Recover was called
	ReasonAppend                 // Append cut results longer than Options.MaxResult
	ReasonRefused                // a provider refused a part of the request; see History.Recover
	ReasonTool                   // the model asked for it; see CompactTool
)

// String returns the reason in lower case, such as "manual".
func (r Reason) String() string {
	return wording.NameOf(r, "manual", "high", "soft", "trigger", "room", "overflow", "append", "refused", "tool")
}

// A Report describes a compaction or an edit. Sizes are in tokens. Sizes of requests
// are upper bounds, as in [Estimate].Upper.
type Report struct {
	Outcome  Outcome
	Reason   Reason
	Strategy string // its name; empty: none ran, or the edit was made by hand
	Links    []Link // what each link of a Chain did, in order

	// Cause says why no edit was applied, even if the error is nil. If an edit was applied, it
	// says why some results could not be cleared, why the strategy added nothing to a cut of
	// results, or why the messages of Options.AfterCompaction were left aside. It
	// says in the first report of a History that it needs a window. Nil otherwise.
	Cause error

	// Fits reports whether the next request is within Limit and may be sent, which it may not
	// with ErrClosed and ErrReentrant, and after Close. Limit is the same as in Status.
	Fits  bool
	Limit int

	// NamedLimit is the limit in the error given to Recover. The limits were lowered to it,
	// less the room for the answer, which gives Limit. 0: the limits did not change.
	NamedLimit int

	// The next request before and after the edit. Messages are counted as the model sees them,
	// with the summary and ephemeral messages. The summary has raw tokens, 0 if there is none.
	MessagesBefore, MessagesAfter int
	TokensBefore, TokensAfter     int
	SummaryBefore, SummaryAfter   int

	// IDs of entries, in ascending order. Originals returns all but Spared as they were.
	Dropped    []ID          // dropped, and not summarised
	Summarised []ID          // dropped, and covered by the summary
	Cleared    []ID          // stayed, with results cleared
	Read       []ID          // stayed, and were read for the summary; see Summary.Read
	Shortened  []ID          // stayed, with results cut
	Rewritten  []ID          // stayed, with other parts; see Rewrite
	Forgotten  []ID          // of these, those whose content was forgotten; keep no copy of it
	Remembered []ID          // of these, those that the summary has read and may still say: put another in its place
	Refused    []RefusedPart // of Rewritten, the parts that a provider has refused; see History.Recover
	Spared     []ID          // were to be dropped or changed, but were pinned after the edit was planned

	SummaryDropped bool // the summary was removed and not replaced

	// Pause is the time since the newest answer, if Reason is ReasonSoft and the provider's
	// cache is empty after it, so that the edit costs nothing more; see Options.CacheTTL.
	Pause time.Duration

	// Results since the edit before whose calls had been answered before, by results that have
	// left the view: how many there are, and their raw tokens.
	Again, AgainTokens int

	Duration time.Duration
	Calls    int    // calls of models, including those that failed
	Usage    Usage  // of these calls
	Model    string // the model that wrote the summary; empty: none did, or it is not known

	// Unread is how many raw tokens no summarizer was shown and none can read any more: of what
	// was dropped, of media, and what cut and cleared results lack. These count once: when the
	// original is no longer kept, or, with a Store, when the entry leaves.
	Unread int

	Released int // entries whose signed reasoning is no longer bound, and so not sent to a model that checks this; see Snapshot.Unbound
	NotKept  int // entries that the strategy was to keep, but dropped so that the request fits

	// PrefixKept is the fraction, from 0 to 1, of the last answered request that is also the
	// start of the next one, and so may hit the prompt cache. A load keeps it. Without an
	// answer it is 1, and an edit compares with the view before it.
	PrefixKept float64
	PrefixEnd  string // what ends that start: "model", "tools", with names where they are known, "system", "edit", "rollback" or "ephemeral"; empty: nothing

	left    *departure // nil: nothing left the view or was changed in it
	wasBack bool       // what a refusal had cleared was put back
	yielded bool       // messages of Options.AfterCompaction left the view
}

// A RefusedPart is a part of an entry that a provider has refused; see [PartError].
type RefusedPart struct {
	ID     ID     // of the entry
	Key    string // of its message
	Part   int    // index of the part
	Inside int    // index in the parts of that result; -1: the part itself
	Words  string // what the provider says
}

// clone returns a copy that shares no slices with r.
func (r Report) clone() Report {
	for _, ids := range []*[]ID{&r.Dropped, &r.Summarised, &r.Cleared, &r.Read, &r.Shortened, &r.Spared, &r.Rewritten, &r.Forgotten, &r.Remembered} {
		*ids = slices.Clone(*ids)
	}
	r.Links, r.Refused = slices.Clone(r.Links), slices.Clone(r.Refused)
	return r
}

// deliver passes a report to Options.OnCompaction and logs it. No lock may be held.
// Panics are ignored.
func (s *setup) deliver(r Report) {
	if r.Outcome == OutcomeNotNeeded || s.ident == nil {
		return
	}
	if s.opts.OnCompaction != nil {
		func() {
			defer func() { _ = recover() }()
			s.opts.OnCompaction(r.clone())
		}()
	}
	level := slog.LevelDebug
	switch {
	case r.Outcome == OutcomeFailed, r.Reason == ReasonAppend, r.Outcome == OutcomeApplied && r.trouble() != nil:
		level = slog.LevelWarn
	case r.Outcome == OutcomeApplied:
		level = slog.LevelInfo
	}
	defer func() { _ = recover() }()
	s.opts.Logger.LogAttrs(context.Background(), level, "convo: compaction "+r.Outcome.String(), r.attrs()...)
}

// trouble returns Cause, and for an edit that was applied also why links of a Chain
// failed.
func (r *Report) trouble() error {
	if r.Outcome != OutcomeApplied {
		return r.Cause
	}
	var causes []error
	for _, l := range r.Links {
		if l.Outcome == OutcomeFailed {
			causes = append(causes, l.Cause)
		}
	}
	switch {
	case len(causes) == 0:
		return r.Cause
	case len(causes) == 1 && r.Cause == nil:
		return causes[0]
	}
	return errors.Join(append(causes, r.Cause)...)
}

// attrs returns the fields of a log line. Their keys are documented at
// Options.Logger.
func (r *Report) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("outcome", r.Outcome.String()),
		slog.String("reason", r.Reason.String()),
		slog.String("strategy", r.Strategy),
		slog.Any("cause", r.trouble()),
		slog.Bool("fits", r.Fits),
		slog.Int("limit", r.Limit),
		slog.Int("tokens_before", r.TokensBefore),
		slog.Int("tokens_after", r.TokensAfter),
		slog.Int("messages_before", r.MessagesBefore),
		slog.Int("messages_after", r.MessagesAfter),
		slog.Int("dropped", len(r.Dropped)),
		slog.Bool("dropped_first", strings.Contains(r.firstNote(), "first")),
		slog.Int("summarised", len(r.Summarised)),
		slog.Int("cleared", len(r.Cleared)),
		slog.Int("shortened", len(r.Shortened)),
		slog.Int("rewritten", len(r.Rewritten)),
		slog.Int("kept", len(r.Spared)),
		slog.Int("summary_before", r.SummaryBefore),
		slog.Int("summary_after", r.SummaryAfter),
		slog.String("model", r.Model),
		slog.Int("calls", r.Calls),
		slog.Int("unread", r.Unread),
		slog.Int("not_kept", r.NotKept),
		slog.Int("again", r.Again),
		slog.Int("again_tokens", r.AgainTokens),
		slog.Int("released", r.Released),
		slog.Float64("prefix_kept", r.PrefixKept),
		slog.String("prefix_end", r.PrefixEnd),
		slog.Int("named_limit", r.NamedLimit),
		slog.Duration("duration", r.Duration),
	}
}

// LogValue returns the fields of a line of Options.Logger.
func (r Report) LogValue() slog.Value { return slog.GroupValue(r.attrs()...) }

// Format prints the result in one line, or why nothing was done; %+v adds the IDs of the
// entries.
func (r Report) Format(f fmt.State, verb rune) { wording.Print(f, verb, r.print) }

func (r *Report) print(ids bool) string {
	if r.Reason == ReasonAppend {
		return fmt.Sprintf("cut at append: %s%s, %s → %s tokens", counted(len(r.Shortened), "result", "results"), printIDs(r.Shortened, ids),
			grouped(r.TokensBefore), grouped(r.TokensAfter))
	}
	if r.Reason == ReasonRefused && r.Outcome == OutcomeApplied && len(r.Refused) == 0 {
		return fmt.Sprintf("signed reasoning of %s is left out from now on, because a provider refused it", counted(r.Released, "message", "messages"))
	}
	var b strings.Builder
	switch r.Outcome {
	case OutcomeApplied:
		fmt.Fprintf(&b, "compacted %s → %s", grouped(r.TokensBefore), wording.OfLimit(r.TokensAfter, r.Limit))
	case OutcomeNotNeeded:
		fmt.Fprintf(&b, "no compaction needed at %s", wording.OfLimit(r.TokensAfter, r.Limit))
	default:
		fmt.Fprintf(&b, "compaction %v at %s", r.Outcome, wording.OfLimit(r.TokensAfter, r.Limit))
	}
	if done := r.done(ids); len(done) > 0 {
		b.WriteString(": " + strings.Join(done, ", "))
	} else if r.Outcome != OutcomeApplied && r.Cause != nil {
		b.WriteString(": " + wording.Short(r.Cause))
	}
	for _, note := range r.notes(ids) {
		b.WriteString("; " + note)
	}
	return b.String()
}

// done returns the effects of an edit, for String.
func (r *Report) done(ids bool) (done []string) {
	for _, d := range []struct {
		list            []ID
		one, many, rest string
	}{
		{r.Shortened, "result cut", "results cut", ""},
		{r.Cleared, "result cleared", "results cleared", r.readNote()},
		{r.Rewritten, "message rewritten", "messages rewritten", ""},
		{r.Dropped, "message dropped", "messages dropped", r.firstNote()},
		{r.Summarised, "message summarised", "messages summarised", r.summaryNote()},
	} {
		if len(d.list) > 0 {
			done = append(done, counted(len(d.list), d.one, d.many)+d.rest+printIDs(d.list, ids))
		}
	}
	switch {
	case r.SummaryDropped:
		done = append(done, "summary dropped")
	case r.yielded && len(done) == 0:
		done = append(done, "messages of AfterCompaction removed")
	case r.Outcome == OutcomeApplied && len(done) == 0:
		done = append(done, fmt.Sprintf("summary of %s tokens", grouped(r.SummaryAfter)))
	}
	return done
}

// firstNote says whether the user's first message was dropped.
func (r *Report) firstNote() string {
	if r.left == nil {
		return ""
	}
	for _, d := range r.left.gone {
		if d.was.id == r.left.first && hasID(r.Dropped, d.was.id) {
			return fmt.Sprintf(" unread, the user's first (%s) among them", counted(clampInt(d.was.tokens), "token", "tokens"))
		}
	}
	return " unread"
}

// readNote says that a summarizer has read what was cleared.
func (r *Report) readNote() string {
	switch {
	case len(ranges.Within(r.Cleared, ranges.Of[Range](r.Read))) == 0:
		return ""
	case len(r.Summarised) > 0:
		return " and read"
	}
	return " and read" + r.summaryNote()
}

// mediaNote says how many media are among what was summarised, of which a summarizer is
// shown only the kind and the size.
func (r *Report) mediaNote() string {
	n := 0
	for _, d := range orNil(r.left).gone {
		if hasID(r.Summarised, d.was.id) {
			n += d.was.msg.media()
		}
	}
	if n == 0 {
		return ""
	}
	return ", " + counted(n, "image or document", "images or documents") + " among them"
}

// summaryNote says how long the summary is, who wrote it and how long that took.
func (r *Report) summaryNote() string {
	return wording.Written(r.SummaryAfter, r.Model, r.Calls, r.Duration)
}

// notes returns further details, for String.
func (r *Report) notes(ids bool) (notes []string) {
	note := func(is bool, format string, args ...any) {
		if is {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	note(r.Outcome == OutcomeNotNeeded && r.PrefixKept < 1 && r.PrefixEnd != "", "%.0f %% of the last request stays, up to the %s", 100*r.PrefixKept, abbreviate(r.PrefixEnd))
	note(r.Pause > 0, "after a pause of %v", r.Pause.Round(time.Second))
	note(len(r.Spared) > 0, "%s pinned kept%s", grouped(len(r.Spared)), printIDs(r.Spared, ids))
	note(len(r.Remembered) > 0, "the summary may still say %s%s", counted(len(r.Remembered), "forgotten message", "forgotten messages"), printIDs(r.Remembered, ids))
	note(r.NamedLimit > 0, "the provider named a limit of %s", grouped(r.NamedLimit))
	not := "summarised"
	if len(r.Summarised) > 0 {
		not = "read by the summarizer"
	}
	note(r.Unread > 0, "%s tokens not %s%s", grouped(r.Unread), not, r.mediaNote())
	note(r.Released > 0, "signed reasoning of %s no longer bound", counted(r.Released, "message", "messages"))
	note(r.NotKept > 0, "%s had to go for the request to fit", counted(r.NotKept, "message that was to be kept", "messages that were to be kept"))
	note(r.Again > 0, "%s of %s tokens read again after leaving", counted(r.Again, "result", "results"), grouped(r.AgainTokens))
	if r.Outcome == OutcomeApplied {
		for _, l := range r.Links {
			if l.Outcome == OutcomeFailed {
				notes = append(notes, wording.Short(l.Cause))
			}
		}
		cause := r.Cause
		aside, ok := cause.(*wording.LeftAside)
		if ok {
			cause = aside.Cause
		}
		if cause != nil {
			notes = append(notes, "not all results cleared: "+wording.Short(cause))
		}
		if ok {
			notes = append(notes, aside.Text())
		}
	}
	note(!r.Fits, "the request must not be sent")
	return notes
}

// printIDs returns a list of IDs in brackets if ids is true.
func printIDs(list []ID, ids bool) string {
	if !ids {
		return ""
	}
	return " [" + printRanges(ranges.Of[Range](list)) + "]"
}

// warn logs a warning with keys and values. No lock may be held. A panic is
// ignored.
func (s *setup) warn(text string, args ...any) {
	defer func() { _ = recover() }()
	s.opts.Logger.Warn(text, args...)
}

// measureBeforeLocked sets all sizes in a report, including those after the edit, to
// the sizes of the current view. It returns the raw tokens of the last request that have to be
// read again.
func (h *History) measureBeforeLocked(r *Report) (again int64) {
	total, limit := h.upper(), h.meter.marks().limit
	r.MessagesBefore, r.TokensBefore = h.messages(), clampInt(total)
	r.MessagesAfter, r.TokensAfter = r.MessagesBefore, r.TokensBefore
	r.SummaryBefore = clampInt(h.summary.tokens())
	r.SummaryAfter = r.SummaryBefore
	r.Fits, r.Limit = total <= limit && !h.isClosed(), orZero(limit, h.meter.marks().set.Window)
	r.PrefixKept, r.PrefixEnd, again = h.keptPrefix()
	return again
}

// A Link describes what one strategy of a [Chain] did.
type Link struct {
	Strategy string  // its name
	Outcome  Outcome // OutcomeApplied, OutcomeDeclined or OutcomeFailed
	Cause    error   // why it contributed nothing; nil: it did
	Calls    int     // calls of models, including those that failed
}

// Effort is the work of planning an edit, and counts even if that fails.
type Effort struct {
	Calls   int    // calls of models, including those that failed
	Usage   Usage  // of all calls
	Unread  int    // raw tokens of summarised entries that no summarizer was shown
	Links   []Link // what each link of a Chain did, in order
	NotKept int    // entries that the strategy was to keep, such as by KeepLast of Summarize, but dropped so that the request fits

	spare *spare // what ClearToolResults leaves for later links of a Chain to spare; nil: nothing
}

// A spare says what a compaction leaves in the view although its target is not reached:
// results that were read again after they had left.
type spare struct {
	heads map[ID]bool // of the exchanges that stay
	most  int64       // raw tokens of the largest view with which that is worth it
}

// has reports whether an entry stays. A nil spare has none.
func (p *spare) has(e *entry) bool { return p != nil && p.heads[e.head] }

// wastedCall reports whether a link called a model and contributed nothing, and no later
// link called one with more success.
func (w *Effort) wastedCall() bool {
	for _, l := range slices.Backward(w.Links) {
		switch {
		case l.wastedCall():
			return true
		case l.Calls > 0:
			return false
		}
	}
	return false
}

// askedForSummary reports whether a model may have written the summary of the planned
// edit: whether a model was called and, in a Chain, by a link whose edit is part of it.
func (w *Effort) askedForSummary() bool {
	if w.Links == nil {
		return w.Calls > 0
	}
	return slices.ContainsFunc(w.Links, func(l Link) bool { return l.Calls > 0 && l.Outcome == OutcomeApplied })
}

// wastedCall reports whether l called a model and contributed nothing.
func (l Link) wastedCall() bool { return l.Calls > 0 && l.Outcome != OutcomeApplied }

// A departure holds the entries that one edit removed or changed, or that one Append
// cut. It stays in memory as long as its report.
type departure struct {
	gone []departed // in ascending order
	was  state      // without entries; of a report of Append, the pins alone

	first ID // the user's first message, if it was in the view; 0: it was not
}

// A departed entry was dropped or replaced.
type departed struct {
	was, now *entry    // now is nil if it was dropped
	original *original // of was; nil if there is none
}

// departureFrom returns the departure of the entries that an edit removed from before or
// changed in it.
func departureFrom(before *state, gone []departed) *departure {
	first := ID(0)
	if i := slices.IndexFunc(before.list, func(e *entry) bool { return e.msg.Role == RoleUser }); i >= 0 && before.list[i].turn == 1 {
		first = before.list[i].id
	}
	return &departure{first: first, gone: gone, was: state{
		id: before.id, version: before.version, pins: before.pins, summary: before.summary,
		edits: before.edits, figures: before.figures, last: before.last,
	}}
}

// Originals returns the entries that were dropped or rewritten, or whose results were cut or
// cleared, in ascending order, each as it was appended. If an original was not kept (see
// Options.KeepOriginals), the entry is as it was before the compaction, and its results lack
// Entry.Missing tokens. The entries stay in memory as long as r or a copy of it. The History
// keeps only the report that Wait returns.
func (r Report) Originals() []Entry {
	if r.left == nil {
		return nil
	}
	out := make([]Entry, len(r.left.gone))
	for i, d := range r.left.gone {
		out[i] = d.was.export(r.left.was.pins, new(partRoom))
		if o := d.original; o != nil {
			out[i].Message, out[i].Tokens, out[i].Missing = o.msg.clone(), clampInt(o.tokens), clampInt(o.missing)
		}
	}
	return out
}

// Status describes a [History] at one moment. Sizes are in tokens.
type Status struct {
	Entries   int // including system entries
	System    int // system entries
	Turns     int // with at least one entry in the view
	OpenCalls int // tool calls without a result
	Media     int // images, documents and other media, including those in results
	MostMedia int // how many of them the model takes: fewer if one is a large image; 0: not known, or Media is small
	Queued    int // messages waiting in the queue; see [History.Queue]
	Unsaved   int // changes since the last saved state; 0: Save would write nothing, or there is no Store
	Torn      int // bytes at the end of the log that are not a whole record: a crash interrupted a Save before it returned, or the newest record is damaged; the next Save removes them
	Tokens    int // as in Estimate
	Upper     int // as in Estimate

	// The limits with their defaults, less the tokens that MakeRoom reserved (see [Limits]),
	// and within the limit that Recover found. Limit is Window - Reserve. 0: no such limit.
	Window, Limit, High, Low, Soft, MinFree int

	// AwaitsAnswer reports whether it is the model's turn: no call is open, and the newest
	// message is from the user or a tool, or is an answer that its provider has paused. A loop
	// that runs while it is set needs a bound, since a model may call tools without end.
	AwaitsAnswer bool

	Assumed bool // whether Window is a guess; see Limits.Assumed

	// Decisions grows with each change that the messages themselves do not show, such as a
	// compaction, a cut, a pin, a rollback, a queued message or new limits. So does a Prepare
	// of more than the last one had, if nothing has answered that. When it has changed, store
	// what [History.Decisions] returns.
	Decisions uint64

	Again       int // results up to the last compaction that were read again after they had left, as in Report; not saved
	AgainTokens int // their raw tokens

	Originals  int       // raw tokens of the originals kept in memory; see Options.KeepOriginals
	Appended   int       // raw tokens since the last applied edit
	LastAppend time.Time // zero: never
	LastEdit   time.Time // when an edit was last applied; zero: never
}

// String describes in one line how full the window is.
func (s Status) String() string {
	out := wording.OfLimit(s.Upper, s.Limit)
	if s.Limit > 0 {
		out += fmt.Sprintf(" (%d %%)", int(100*float64(s.Upper)/float64(s.Limit)))
	}
	out += fmt.Sprintf(": %s in %s", counted(s.Entries, "entry", "entries"), counted(s.Turns, "turn", "turns"))
	if s.OpenCalls > 0 {
		out += ", " + counted(s.OpenCalls, "open call", "open calls")
	}
	if s.High > 0 && s.High != s.Limit {
		out += "; compacts above " + grouped(s.High)
	}
	return out
}

// Status returns the current numbers of h, in constant time.
func (h *History) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.statusLocked()
}

func (h *History) statusLocked() Status {
	s, e, marks, b := h.numbers(), h.estimate(), h.meter.marks(), h.recorder.book()
	again, most := orNil(h.reread.Load()), clampInt(marks.set.most())
	s.OpenCalls, s.Queued, s.AwaitsAnswer = h.openCount(), len(h.queue), h.awaitsNext(true)
	s.Unsaved, s.Torn = b.unsaved(&h.state, h.compactor.saved()), clampInt(b.torn)
	s.Tokens, s.Upper = e.Tokens, e.Upper
	s.Window, s.Assumed, s.MinFree = marks.set.Window, marks.set.Assumed, clampInt(marks.minFree)
	s.Limit = orZero(marks.limit, marks.set.Window)
	s.High, s.Low, s.Soft = orZero(marks.high, most), orZero(marks.low, most), orZero(marks.soft, most)
	s.Decisions = h.decisions()
	s.Again, s.AgainTokens = again.Calls, clampInt(again.Tokens)
	s.Originals, s.Appended = clampInt(h.originalRaw), clampInt(h.appended)
	s.LastAppend, s.LastEdit = h.times()
	return s
}

// numbers returns a Status with the numbers of entries, turns and media, in constant time.
func (s *state) numbers() Status {
	most, _ := s.mediaLimit()
	return Status{Entries: s.len(), System: len(s.sys), Turns: s.turns, Media: s.media, MostMedia: most}
}

// timeOf returns the time of Unix nanoseconds, or the zero time for 0.
func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
