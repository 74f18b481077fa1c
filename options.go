package convo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Options configures a [History], which copies it. Nil and the zero value work.
//
// No lock is held while a function in it runs, so it may call the History, except for methods
// that may be waiting for it. No function may call Do or Run. Tokenizer, Overheads.Media, Pin
// and Repair must also not call Save, Reload, Attach or Prune. Tokenizer, Overheads.Media, Pin,
// AfterCompaction, Redact, Due of a [Trigger] and Same of [ClearToolResults] must not call
// Prepare, Compact, MakeRoom, Recover or Wait. They get no ctx, so such a call is not
// recognised: it waits until its own ctx ends. A panic becomes a [*PanicError], unless the
// field says otherwise.
type Options struct {
	Limits    Limits     // how large a request may be; zero: there is no limit, see [New]
	Roles     RolePolicy // which role may follow which; zero: strict
	Tokenizer Tokenizer  // counts the tokens of a text; nil: Heuristic
	Overheads Overheads  // what messages weigh in addition to their text

	// Priors says what to assume about models before usage is reported, by the beginning of the
	// name given to SetModel. The longest key that matches is used; "" matches every name.
	// Without a match, the zero Prior is used.
	Priors map[string]Prior

	// Strategy decides what a compaction removes. Nil: Chain(ClearMedia{}, ClearToolResults{},
	// Summarize{With: Extract{}}, Truncate{}).
	Strategy CompactionStrategy

	// IsOverflow reports whether the error given to Recover means that the request was too
	// long. Nil: the function IsOverflow.
	IsOverflow func(error) bool

	Budget *Budget // a pool of tokens shared with others, charged until Close; nil: none

	// MaxResult is how many raw tokens a tool result may have besides its media, for which see
	// ClearMedia. In a longer one, Append replaces opaque parts, the largest first, and then the
	// middle of the text by markers that say how much is missing. 0: a quarter of Window -
	// Reserve, but at least 64, and no bound without a Window; negative: no bound; else at
	// least 64.
	MaxResult int

	// KeepOriginals is how many raw tokens of originals to keep in memory: messages as they
	// were before they were rewritten, or their results cut or cleared, for Report.Originals
	// and for summarizers. These read rewritten messages as they are now, and results from the
	// log if they are not in memory. An original is kept until its entry leaves the view;
	// without enough room, the oldest go first. 0: eight times Limits.Window, or 1,000,000
	// without a Window; negative: none. Besides, if a [Chain] reads results that were cleared
	// unread, as many tokens of these as Limits.Window are kept, or 125,000 without one.
	KeepOriginals int

	// Spill stores the original of a tool result that is about to be cut or cleared, and
	// returns a reference, which the marker mentions. It is called once for each original; for
	// the rest of a cut result, the reference in its marker is reused. Do not make a reference
	// of the call's ID alone: models use IDs again. Spill runs on the goroutine that appends or
	// compacts, and must not block. Its ctx is that of the compaction, or for Append and Apply
	// a ctx that never ends.
	//
	// Append calls Spill after checking that the messages can be appended, with the ID and the
	// name of the call that the result answers. If Spill fails, or another goroutine changes
	// that while it runs, nothing is appended, and the same messages can be appended again.
	//
	// In an edit, an error only keeps the result from being cleared, and after three errors the
	// edit does not call Spill again. After an edit for which every call failed, Prepare and
	// CompactInBackground clear no results until MinFree/2 new tokens have been appended, and
	// twice as many after each further such edit in a row. Compact, MakeRoom and Recover call
	// Spill anyway.
	Spill func(ctx context.Context, r ToolResult) (ref string, err error)

	// Pin reports whether to pin the exchange of a message that is being appended. It runs on
	// the goroutine that appends, and must not block. The message may still be refused.
	Pin func(Message) bool

	// Key returns a Message.Key for a message that has none and is being appended or queued,
	// such as an answer: the key of the row that the application makes of it. It is called like
	// Pin. Nil or "": the message stays without one. Do, Run, Steps and AppendReply return the
	// messages with their keys; Append copies what it is given, so set Message.Key before it.
	Key func(Message) string

	// Time returns when a message that is being appended was made. It is called like Key, and
	// after it. Nil, or the zero time: now. A year outside of 1678 to 2261 makes Append fail.
	Time func(Message) time.Time

	PinFirstUser bool // pin the first user message, which usually states the task

	// TagKey determines the key in the tags around summaries and messages with an Author; see
	// Snapshot.Messages. Set it if the program rebuilds the History for each request: with
	// random keys, provider caches miss. It should contain a secret and the name of the
	// conversation: an author who has it can imitate the tags. A snapshot keeps its key, unless
	// NewSnapshot made it. Empty: a random key.
	TagKey string

	// AsSent says that a conversation imported by NewSnapshot or Restore is exactly what was
	// sent: each answer was made after what precedes it. Otherwise signed reasoning that comes
	// without a fingerprint is not bound; see Snapshot.Unbound.
	AsSent bool

	// IsSummary reports whether a message that Restore imports from NewSnapshot is a summary
	// that another system wrote, such as by a tag that it begins with: its text becomes a part
	// of the summary. It is not called for messages with calls or results. Nil: none is.
	IsSummary func(Message) bool

	// Repair lets Restore repair a conversation, and gets each repair. Nil: an error instead.
	Repair func(*SnapshotError)

	// Background lets Do start a compaction in the background, as CompactInBackground does,
	// when the answer has made the next request larger than Limits.Soft. A loop of your own
	// calls CompactInBackground after AppendReply.
	Background bool

	// CacheTTL is how long the provider keeps a request in its prompt cache, where the next
	// request is not found after a compaction. After a longer pause a compaction costs nothing
	// more: Prepare then also compacts a request that is only above Limits.Soft, for
	// ReasonSoft. The pause begins with the newest answer: when it or its usage was recorded,
	// or else when its message was appended. 0: the time is Usage.CacheTTL of the newest
	// answer. Less than 0: no pause counts.
	//
	// If CacheTTL is above 0, the edit of a compaction in the background waits for that pause,
	// or until the request is larger than Limits.High: its report has OutcomeReady, and the
	// work of the strategy. The next compaction applies it first, and reports no work for it.
	// An edit that waits is not saved. With 0 or less, edits wait for no pause. Neither is made
	// in a round of tool calls with signed reasoning; see CompactInBackground.
	CacheTTL time.Duration

	// PruneAbove bounds the log in bytes: Record.Data, and 300 for each record; 0: no bound. Save
	// removes from a longer log all records before the newest full one, which Archive and Load then
	// no longer return. What Open reads stays, about three times a full record; Prune shortens it.
	// If removing fails, Save succeeds, Logger gets a line, and the next Save tries again. For
	// a Store that is no [Pruner], the error of Open and Attach matches [errors.ErrUnsupported].
	PruneAbove int64

	// BeforeCompaction is called before a strategy is asked for an edit, with the view and the
	// goal, of which it may set the Focus; other changes are ignored. If it returns an error,
	// the strategy is not asked, and the error is the Cause of the report, whose outcome is
	// OutcomeDeclined for ErrNoGain and OutcomeFailed otherwise. It should return soon, at the
	// latest when ctx ends. An attempt that is made once more calls it again. Nil: no call.
	BeforeCompaction func(ctx context.Context, s *Snapshot, g *Goal) error

	// AfterCompaction returns messages that must be in the next request after a compaction,
	// such as open files, rules or a to-do list. They are ephemeral messages, checked as by
	// SetEphemeral, which leaves them alone and puts its own after them. They stay until the
	// next call replaces them; none removes them.
	//
	// It is called for each edit that a compaction applied, before Prepare returns and before
	// OnCompaction, but not for Apply and SplicePrefix, nor after Open or Restore. The report
	// still counts the messages of the call before. It should return soon. If the messages are
	// invalid, if the function panics, or if the request with them would be larger than
	// Limits.High, those of the call before stay, and Report.Cause says why. A compaction that
	// could not reach the limit otherwise removes them. Nil: no call.
	AfterCompaction func(Report) []Message

	// SummaryHint is a line that the model sees after each summary, such as recall.Hint. It is
	// counted, but no summarizer sees it, Snapshot.Summary lacks it, and nothing saves it.
	// Empty: none.
	SummaryHint string

	// RecallTool names a tool that returns a message by its ID, such as recall.ToolName. New
	// markers then say "kept at recall(id=12)", where they are shorter than the result. Empty:
	// none.
	RecallTool string

	// Redact changes a message before a summarizer, Extract or [History.Handoff] sees it, such
	// as to remove a secret. It gets a copy of each message to be summarised or given for
	// context; the role stays. The conversation itself does not change, and SummaryRequest.Sent
	// is nil. Your own strategy calls Goal.Redact. Nil: no change.
	Redact func(Message) Message

	// OnCompaction is called after each compaction or edit that was applied or declined, or
	// that failed, and after an Append that cut results, with ReasonAppend; once for repeated
	// declines that a Trigger leads to. It runs on the goroutine that made the edit or the
	// append, and calls may overlap. It must not call Wait or Do. A panic in it is ignored.
	OnCompaction func(Report)

	// Logger gets a line for each report that OnCompaction would get: Info for an edit that was
	// applied, Warn for a compaction that failed and for results that Append cut, Debug for any
	// other. An applied edit is a Warn if a link of a Chain failed, a result could not be
	// cleared or messages of AfterCompaction were left aside; cause says why. A panic of the
	// logger is ignored. Nil: nothing is logged.
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
	faults = refuse(faults, o.MaxResult > 0 && o.MaxResult < minMaxResult, "Options.MaxResult", o.MaxResult, "at least 64 tokens; 0 for the default, or a negative value for no bound")
	faults = refuse(faults, o.Overheads.Reasoning > ReplayNone, "Options.Overheads.Reasoning", int(o.Overheads.Reasoning), "ReplayDefault, ReplayAll, ReplayTools or ReplayNone")
	faults = refuse(faults, o.PruneAbove < 0, "Options.PruneAbove", o.PruneAbove, "a number of bytes, or 0 for no bound")
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
		isRatio := p.Ratio == 0 || p.Ratio >= 100*calibrate.MinRatio && p.Ratio <= 100*calibrate.MaxRatio
		faults = refuse(faults, !isRatio, fmt.Sprintf("Options.Priors[%q].Ratio", model), p.Ratio, "0, or 25 to 400")
		faults = refuse(faults, p.Margin > 100, fmt.Sprintf("Options.Priors[%q].Margin", model), p.Margin, "at most 100 percent")
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
	own := calibrate.Prior{Ratio: 1, Margin: defaultMargin} // tokens for one raw token, and thousandths
	if found.Ratio != 0 {
		own.Ratio = float64(found.Ratio) / 100
	}
	if found.Margin != 0 {
		own.Margin = 10 * int64(max(found.Margin, 0))
	}
	return own
}

// A setup is what does not change after a History was made, but for maxResult.
type setup struct {
	opts            Options
	reads           bool         // whether Options.Strategy reads results that were cleared unread
	ident           *identity    // state.id, to be read without the lock
	interruptTokens int64        // tokens of interruptReason
	noteTokens      int64        // tokens of the tags of a note
	account         *account     // with Options.Budget; nil: without
	maxResult       atomic.Int64 // raw tokens of the text of a result; 0: no bound
}

// newEntries copies, checks and counts messages, and appends an entry for each
// to batch. It runs the caller's code, so no lock may be held.
func (s *setup) newEntries(batch []pendingEntry, msgs []Message) (_ []pendingEntry, err error) {
	defer catch(&err, "Options.Tokenizer")
	for i := range msgs {
		e, err := s.newEntry(&msgs[i])
		if err != nil {
			return nil, atIndex(err, i)
		}
		a := pendingEntry{entry: e}
		if e.msg.Role == RoleAssistant {
			e.calls = newCalls(&e.msg, s.ident.counter)
		}
		if s.opts.Pin != nil {
			if a.pin, err = safely("Options.Pin", func() bool { return s.opts.Pin(e.msg.clone()) }); err != nil {
				return nil, err
			}
		}
		batch = append(batch, a)
	}
	return batch, nil
}

// newEntry copies, checks and counts a message. It runs the caller's code, so no lock
// may be held.
func (s *setup) newEntry(m *Message) (*entry, error) {
	if s.ident == nil {
		return nil, ErrClosed
	}
	e := &entry{msg: *m}
	err := e.msg.checkShared(&e.inline)
	if err == nil && !s.opts.Roles.KeepEmpty && e.msg.isEmpty() {
		err = &MessageError{Role: m.Role, Part: -1, Reason: "empty message; RolePolicy.KeepEmpty allows it"}
	}
	if err != nil {
		return nil, err
	}
	s.ident.weigh(e)
	return e, nil
}

// newMessages is newEntries for messages of the conversation: it calls Options.Key and
// Options.Time.
func (s *setup) newMessages(batch []pendingEntry, msgs []Message) ([]pendingEntry, error) {
	batch, err := s.newEntries(batch, msgs)
	if err != nil {
		return nil, err
	}
	for i := range batch {
		if err := s.identify(batch[i].entry); err != nil {
			return nil, atIndex(err, i)
		}
	}
	return batch, nil
}

// identify sets the key of the message of e, if it has none, and the time of e.
func (s *setup) identify(e *entry) (err error) {
	if err := s.name(&e.msg); err != nil || s.opts.Time == nil {
		return err
	}
	defer catch(&err, "Options.Time")
	t := s.opts.Time(e.msg.clone())
	at, ok := nanoseconds(t)
	if !ok {
		return &MessageError{Role: e.msg.Role, Part: -1, Reason: fmt.Sprintf("Options.Time returned %v; want a year from 1678 to 2261, or the zero time", t)}
	}
	if at != noTime {
		e.at = at
	}
	return nil
}

// name gives m the key that Options.Key returns, if it has none.
func (s *setup) name(m *Message) (err error) {
	if s.opts.Key == nil || m.Key != "" {
		return nil
	}
	defer catch(&err, "Options.Key")
	m.Key = s.opts.Key(m.clone())
	return m.checkKey()
}

// isLong reports whether a holds results that may be longer than Options.MaxResult.
func (s *setup) isLong(a pendingEntry) bool {
	bound := s.maxResult.Load()
	return bound > 0 && a.msg.Role == RoleTool && a.tokens > bound
}

// joinsFirst reports whether a batch must have its IDs and pairs before cutResults, which may
// call Options.Spill or name entries in markers.
func (s *setup) joinsFirst(batch []pendingEntry) bool {
	return slices.ContainsFunc(batch, s.isLong) && (s.opts.Spill != nil || s.ident.tool != "")
}

// cutResults cuts the results of a batch that are longer than Options.MaxResult. It runs
// the caller's code, so no lock may be held.
func (s *setup) cutResults(batch []pendingEntry) (err error) {
	defer catch(&err, "Options.Tokenizer")
	for i := range batch {
		a := &batch[i]
		if !s.isLong(*a) {
			continue
		}
		if a.original, err = s.cut(a.entry, s.maxResult.Load()); err != nil {
			return atIndex(err, i)
		}
	}
	return nil
}

// cut cuts the results of e whose content has more than bound tokens, and
// returns the original of e, or nil if there are none.
func (s *setup) cut(e *entry, bound int64) (*original, error) {
	var o *original
	for i, p := range e.msg.Parts {
		r := p.(ToolResult)
		if s.ident.content(r.Parts) <= bound {
			continue
		}
		if s.ident.leastCut(&r, "") > bound {
			continue // the marker alone is longer
		}
		ref, err := s.spill(context.Background(), r)
		if err != nil {
			return nil, err
		}
		short, ok := s.ident.cutResult(r, bound, s.ident.cutPlace(&r, ref, e.id, bound))
		if !ok {
			return nil, &MessageError{Role: RoleTool, Part: i, Reason: fmt.Sprintf("Spill returned a reference of %s bytes, too long for MaxResult of %s tokens; return a shorter one", grouped(len(ref)), grouped(clampInt(bound)))}
		}
		if o == nil {
			o = newOriginal(e)
			o.msg.Parts = slices.Clone(e.msg.Parts)
		}
		if s.opts.Spill != nil {
			o.setRef(i, ref)
		}
		e.msg.Parts[i] = short
	}
	if o != nil {
		o.read = o.msg
		e.tokens = s.ident.message(&e.msg)
		e.setMissing(o)
	}
	return o, nil
}

// spill calls Options.Spill with the original of a result.
func (s *setup) spill(ctx context.Context, r ToolResult) (ref string, err error) {
	if s.opts.Spill == nil {
		return "", nil
	}
	defer catch(&err, "Options.Spill")
	r.Parts = slices.Clone(r.Parts)
	ref, err = s.opts.Spill(ctx, r)
	if err != nil {
		return "", errorf("spill result of call %q: %w", r.CallID, err)
	}
	return text.Valid(ref), nil
}

// newEphemeral returns a set of ephemeral messages, or nil without messages. Their calls and
// results must pair among themselves. It runs the caller's code, so no lock may be held.
func (s *setup) newEphemeral(msgs []Message) (*ephemeral, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	batch, err := s.newEntries(nil, msgs)
	if err != nil {
		return nil, err
	}
	free := &setup{ident: s.ident, noteTokens: s.noteTokens, opts: Options{Roles: Relaxed()}}
	free.opts.Roles.Interrupt = false
	j, err := new(view).join(free, batch, false)
	if err != nil {
		return nil, err
	}
	if j.open.Open() > 0 {
		err := openError(j.open)
		err.Index = len(batch)
		return nil, err
	}
	eph := new(ephemeral)
	for _, a := range batch {
		if a.msg.Role == RoleSystem {
			a.setNote(true, s.noteTokens)
		}
		eph.add(a.msg, a.tokens)
	}
	return eph, nil
}

// answerOpen marks the open calls of c as answered. It returns an error result for each,
// with IDs that follow last, and the indices of the calls. turn is the turn of the calls,
// reason the text of the results and tokens its count.
func (s *setup) answerOpen(c *calls, last ID, turn int, reason string, tokens int64) (results []*entry, answered []int) {
	if c.Open() == 0 {
		return nil, nil
	}
	now := time.Now().UnixNano()
	for i := range c.List {
		k := &c.List[i]
		if k.Answered {
			continue
		}
		e := &entry{
			id:     last + ID(len(results)+1),
			head:   c.Head,
			at:     now,
			turn:   turn,
			tools:  true,
			tokens: int64(s.ident.over.Message+s.ident.over.Result) + k.IDTokens + k.NameTokens + tokens,
		}
		e.inline[0] = ToolResult{CallID: k.ID, Name: k.Name, Parts: []Part{Text(reason)}, IsError: true}
		e.msg = Message{Role: RoleTool, Parts: e.inline[:]}
		results, answered = append(results, e), append(answered, i)
		c.Answer(i)
	}
	return results, answered
}

// newEntriesOf is newEntries for messages that must all have one role. reason is the text
// of the error for another role.
func (s *setup) newEntriesOf(role Role, msgs []Message, reason string) ([]pendingEntry, error) {
	if s.ident == nil {
		return nil, ErrClosed
	}
	if i := slices.IndexFunc(msgs, func(m Message) bool { return m.Role != role }); i >= 0 {
		return nil, &MessageError{Index: i, Role: msgs[i].Role, Part: -1, Reason: reason}
	}
	return s.newEntries(nil, msgs)
}

// newQueued copies, checks and counts messages for the queue. It runs caller-supplied
// code, so no lock may be held.
func (s *setup) newQueued(msgs []Message) ([]*queued, error) {
	batch, err := s.newEntriesOf(RoleUser, msgs, "Queue takes user messages only; see Append")
	if err != nil {
		return nil, err
	}
	list := make([]*queued, len(batch))
	for i, a := range batch {
		if err := s.name(&a.msg); err != nil {
			return nil, atIndex(err, i)
		}
		list[i] = &queued{msg: a.msg, tokens: a.tokens, pin: a.pin}
	}
	return list, nil
}
