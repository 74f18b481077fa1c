package convo

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
)

// Options configures a [History], which copies it. Nil and the zero value work.
//
// No lock is held while a function in it runs, so it may call the History, except for
// methods that may be waiting for it. No function may call Do or Run. Tokenizer,
// Overheads.Media, Pin and Repair must also not call Save, Reload, Attach or Prune.
// Tokenizer, Overheads.Media, Pin, AfterCompaction, Redact, Due of a [Trigger] and Same of
// [ClearToolResults] must not call Prepare, Compact, MakeRoom, Recover or
// Wait. They get no ctx, so such a call is not recognised: it waits until its own ctx
// ends. A panic becomes a [*PanicError], unless the field says otherwise.
type Options struct {
	Limits    Limits     // how large a request may be; zero: there is no limit, see [New]
	Roles     RolePolicy // which role may follow which; zero: strict
	Tokenizer Tokenizer  // counts the tokens of a text; nil: Heuristic
	Overheads Overheads  // what messages weigh in addition to their text

	// Priors says what to assume about models before usage is reported. A key is the beginning
	// of a name given to SetModel. The longest that matches is used, and "" matches every
	// name. Without a match, the zero Prior is used.
	Priors map[string]Prior

	// Strategy decides what a compaction removes. Nil: Chain(ClearMedia{}, ClearToolResults{},
	// Summarize{With: Extract{}}, Truncate{}).
	Strategy CompactionStrategy

	// IsOverflow reports whether a provider's error means that the request was too long.
	// Recover calls it. Nil: the function IsOverflow.
	IsOverflow func(error) bool

	Budget *Budget // a pool of tokens shared with others, charged until Close; nil: none

	// MaxResult is how many raw tokens a tool result may have besides its media, for which see
	// ClearMedia. In a longer one, Append replaces opaque parts, the largest first, and then the
	// middle of the text by markers that say how much is missing. 0: a quarter of Window -
	// Reserve, but at least 64, and no bound without a Window; negative: no bound; else at least 64.
	MaxResult int

	// KeepOriginals is how many raw tokens of originals to keep in memory: messages as they
	// were before they were rewritten, or their results cut or cleared. Report.Originals
	// returns them. A summarizer reads those of results, from the log if they are not in
	// memory, but rewritten messages as they are now. An original is kept until its entry
	// leaves the view; without enough room, the oldest go first. 0: eight times Limits.Window,
	// or 1,000,000 without a Window; negative: none. Besides, if a [Chain] reads results that were
	// cleared unread, as many tokens of these as Limits.Window are kept, or 125,000 without one.
	KeepOriginals int

	// Spill stores the original of a tool result that is about to be cut or cleared, and
	// returns a reference, which the marker mentions. It is called once for each original; for
	// the rest of a cut result, the reference in its marker is reused. Do not make a reference
	// of the call's ID alone: models use IDs again. Spill runs on the goroutine that appends
	// or compacts, and must not block. Its ctx is that of the compaction, or for Append and
	// Apply one that never ends.
	//
	// Append calls Spill after checking that the messages can be appended, with the ID and the
	// name of the call that the result answers. If Spill fails, or another goroutine changes
	// that while it runs, nothing is appended, and the same messages can be appended again.
	//
	// In an edit, an error only keeps the result from being cleared, and after three errors the
	// edit does not call Spill again. After an edit for which every call failed, Prepare
	// and CompactInBackground clear no results until MinFree/2 new tokens have
	// been appended, and twice as many after each further such edit in a row. Compact, MakeRoom
	// and Recover call Spill anyway.
	Spill func(ctx context.Context, r ToolResult) (ref string, err error)

	// Pin reports whether to pin the exchange of a message that is being appended. It runs on
	// the goroutine that appends, and must not block. The message may still be refused.
	Pin func(Message) bool

	// Key returns a Message.Key for a message without one that is being appended or queued,
	// such as an answer: the key of the row that the application makes of it. It is called like
	// Pin. Nil or "": the message stays without one.
	//
	// Do, Run, Steps and AppendReply return the messages with their keys. Append copies what
	// it is given, so set Message.Key before Append where the message becomes a row.
	Key func(Message) string

	// Time returns when a message that is being appended was made. It is called like Key, and
	// after it. Nil, or the zero time: now. A year outside of 1678 to 2261 makes Append fail.
	Time func(Message) time.Time

	PinFirstUser bool // pin the first user message, which usually states the task

	// TagKey determines the key in the tags around summaries and messages with an Author; see
	// Snapshot.Messages. Set it if the program rebuilds the History for each request: with
	// random keys, each request has other bytes, and provider caches miss. It should contain a
	// secret and the name of the conversation: an author who has it can imitate the tags. A
	// snapshot keeps its key, unless NewSnapshot made it. Empty: a random key.
	TagKey string

	// AsSent says that a conversation imported by NewSnapshot or Restore is exactly what was
	// sent: each answer was made after what precedes it. Its signed reasoning is then bound,
	// see Snapshot.Unbound. Otherwise reasoning that comes without a fingerprint is not bound.
	AsSent bool

	// IsSummary reports whether a message that Restore imports from NewSnapshot is a summary
	// that another system wrote, see SummaryTagged: its text becomes a part of the summary. It is
	// not called for messages with calls or results. Nil: none is.
	IsSummary func(Message) bool

	// Repair lets Restore repair a conversation, and gets each repair. Nil: an error instead.
	Repair func(*SnapshotError)

	// Background lets Do start a compaction in the background, as CompactInBackground does,
	// when the answer has made the next request larger than Limits.Soft. A loop of your own
	// calls CompactInBackground after AppendReply.
	Background bool

	// CacheTTL is how long the provider keeps a request in its prompt cache, where the next
	// request is not found after a compaction. If the newest entry of the assistant is older
	// than that, a compaction costs nothing more: Prepare then also
	// compacts a request that is only above Limits.Soft, for ReasonSoft. 0: the pause is
	// Reply.CacheTTL of the newest answer. Less than 0: no pause counts.
	//
	// If CacheTTL is above 0, the edit of a compaction in the background waits for that pause,
	// or until the request is larger than Limits.High: its report has OutcomeReady, and the
	// work of the strategy. The next compaction applies it first, and reports no work for it.
	// An edit that waits is not saved. With 0 or less, edits wait for no pause. Neither is made
	// in a round of tool calls with signed reasoning; see CompactInBackground.
	CacheTTL time.Duration

	// PruneAbove bounds the log in bytes: Record.Data, and 300 for each record; 0: no bound. Save
	// removes from a longer log all records before the newest full one, which Archive and Load then
	// no longer return. What Open reads stays, about three times a full record; SaveFull shortens
	// it. If removing fails, Save succeeds, Logger gets a line, and the next Save tries again. For
	// a Store that is no [Pruner], the error of Open and Attach matches [errors.ErrUnsupported].
	PruneAbove int64

	// BeforeCompaction is called before a strategy is asked for an edit, with the view and the
	// goal. It may set the Focus of the goal; other changes are ignored. If it returns an
	// error, the strategy is not asked, and the error is the Cause of the report, whose
	// outcome is OutcomeDeclined for ErrNoGain and OutcomeFailed otherwise. It should return
	// soon, at the latest when ctx ends. An attempt that is made once more calls it again.
	// Nil: no call.
	BeforeCompaction func(ctx context.Context, s *Snapshot, g *Goal) error

	// AfterCompaction returns messages that must be in the next request after a compaction,
	// such as open files, rules or a to-do list. They are ephemeral messages, checked as by
	// SetEphemeral, which leaves them alone and puts its own after them. They stay until the
	// next call replaces them; none removes them.
	//
	// It is called for each edit that a compaction applied, before Prepare returns and before
	// OnCompaction. The report still counts the messages of the call before. It is not called
	// for Apply and SplicePrefix, nor after Open or Restore. It should return soon. If the
	// messages are invalid, if the function panics, or if the request with them would be larger
	// than Limits.High, those of the call before stay, and Report.Cause says why. A compaction
	// that could not reach the limit otherwise removes them. Nil: no call.
	AfterCompaction func(Report) []Message

	// SummaryHint is a line that the model sees after each summary, such as recall.Hint. It is counted,
	// but no summarizer sees it, Snapshot.Summary lacks it, and nothing saves it. Empty: none.
	SummaryHint string

	// RecallTool names a tool that returns a message by its ID, such as recall.ToolName. New markers
	// then say "kept at recall(id=12)", where they are shorter than the result. Empty: none.
	RecallTool string

	// Redact changes a message before a summarizer, Extract or [History.Handoff] sees it, such
	// as to remove a secret. It gets a copy of each message to be summarised or given for
	// context; the role stays. The conversation itself does not change, and
	// SummaryRequest.Sent is nil. Your own strategy calls Goal.Redact. Nil: no change.
	Redact func(Message) Message

	// OnCompaction is called after each compaction or edit that was applied or declined, or
	// that failed, and after an Append that cut results, with ReasonAppend; once for repeated
	// declines that a Trigger leads to. It runs on the goroutine that made the edit or the
	// append, and calls may overlap. It must not call Wait or Do. A panic in it is ignored.
	OnCompaction func(Report)

	// Logger gets a line for each report that OnCompaction would get: Info for an edit that
	// was applied, Warn for a compaction that failed and for results that Append cut, Debug
	// for any other. An applied edit is a Warn if a link of a Chain failed, a result could not
	// be cleared or messages of AfterCompaction were left aside; cause says why. A panic of
	// the logger is ignored. Nil: nothing is logged.
	//
	// The message is "convo: compaction " and the outcome. Its fields, always these, have the
	// fields of Report: outcome, reason, strategy, cause, fits, limit, tokens_before,
	// tokens_after, messages_before, messages_after, summary_before, summary_after, model,
	// calls, unread, not_kept, again, again_tokens, released, prefix_kept, prefix_end,
	// named_limit, duration. Also dropped, summarised, cleared, shortened, rewritten and kept,
	// which are numbers of entries, and dropped_first: whether the user's first message was
	// dropped unread.
	//
	// The other lines are at level Warn; docs/logging.md shows all, and says what each is
	// logged for.
	Logger *slog.Logger
}

// check returns the limits with their defaults, and an error for each value out
// of range.
func (o *Options) check() (limits Limits, faults []error) {
	limits, faults = o.Limits.withDefaults()
	faults = append(faults, o.Roles.faults()...)
	faults = append(faults, priorFaults(o.Priors)...)
	if o.MaxResult > 0 && o.MaxResult < minMaxResult {
		faults = append(faults, &ValueError{Name: "Options.MaxResult", Value: o.MaxResult, Want: "at least 64 tokens; 0 for the default, or a negative value for no bound"})
	}
	if r := o.Overheads.Reasoning; r > ReplayNone {
		faults = append(faults, &ValueError{Name: "Options.Overheads.Reasoning", Value: int(r), Want: "ReplayDefault, ReplayAll, ReplayTools or ReplayNone"})
	}
	if o.PruneAbove < 0 {
		faults = append(faults, &ValueError{Name: "Options.PruneAbove", Value: o.PruneAbove, Want: "a number of bytes, or 0 for no bound"})
	}
	return limits, faults
}

// A Prior says what to assume about a family of models before any usage is
// reported. The zero Prior trusts the Tokenizer.
type Prior struct {
	// Ratio is how many tokens the model makes of a text that the Tokenizer counts as 100
	// tokens: 25 to 400. 0: 100.
	Ratio int

	// Margin is by how many percent Estimate.Upper is above Estimate.Tokens until usage is
	// reported: at most 100. Learning starts from it. 0: 12.5; negative: none.
	Margin int
}

// defaultMargin is the default of Prior.Margin, 12.5 percent, in thousandths as
// package calibrate has it.
const defaultMargin = 125

// priorFaults returns a *ValueError for each field that is out of range.
func priorFaults(priors map[string]Prior) (faults []error) {
	for model, p := range priors {
		if p.Ratio != 0 && (p.Ratio < 100*calibrate.MinRatio || p.Ratio > 100*calibrate.MaxRatio) {
			faults = append(faults, &ValueError{Name: fmt.Sprintf("Options.Priors[%q].Ratio", model), Value: p.Ratio, Want: "0, or 25 to 400"})
		}
		if p.Margin > 100 {
			faults = append(faults, &ValueError{Name: fmt.Sprintf("Options.Priors[%q].Margin", model), Value: p.Margin, Want: "at most 100 percent"})
		}
	}
	sort.SliceStable(faults, func(i, j int) bool { return faults[i].Error() < faults[j].Error() })
	return faults
}

// prior returns the Prior for a model: that of the longest key that its name
// begins with.
func (o *Options) prior(model string) calibrate.Prior {
	var found Prior
	length := -1
	for name, p := range o.Priors {
		if len(name) > length && strings.HasPrefix(model, name) {
			found, length = p, len(name)
		}
	}
	return found.arithmetic()
}

// arithmetic returns p in the units of package calibrate: Ratio as tokens for one
// raw token, and Margin in thousandths.
func (p Prior) arithmetic() calibrate.Prior {
	own := calibrate.Prior{Ratio: 1, Margin: defaultMargin}
	if p.Ratio != 0 {
		own.Ratio = float64(p.Ratio) / 100
	}
	if p.Margin != 0 {
		own.Margin = 10 * int64(max(p.Margin, 0))
	}
	return own
}
