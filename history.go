package convo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-c1b73e60/convo/internal/calibrate"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Options configures a [History]. Nil and the zero value work. [New] and
// [Restore] copy it.
//
// No lock is held while a function in it runs, so it may call back into the
// History. Only Do must not be called: a Do may be waiting for the function.
// Tokenizer, Overheads.Media, Pin and Repair must not call Save, Reload, Attach or
// Prune either, since a Reload may be waiting for them, and Tokenizer,
// Overheads.Media, Pin and the method Due of a [Trigger] must not call Prepare,
// CompactIfNeeded, Compact, Fit or Recover, since a compaction may be. They get no
// ctx by which such a call could be recognised: it waits until its own ctx ends. If a
// function panics, the panic becomes a [*PanicError], unless the field says otherwise.
type Options struct {
	// Limits says how large a request may be. Zero: there is no limit.
	Limits Limits

	// Roles says which role may follow which. Zero: the same as Strict().
	Roles RolePolicy

	// Tokenizer counts the tokens of a text. Nil: Heuristic.
	Tokenizer Tokenizer

	// Overheads says how many tokens messages weigh in addition to their text.
	Overheads Overheads

	// Priors says what to assume about models before usage is reported. A key
	// is the beginning of a name that SetModel is given. The longest key that
	// matches counts, and "" matches every name. Where none matches, the zero
	// Prior holds.
	Priors map[string]Prior

	// Strategy decides what a compaction removes. Nil:
	// Chain(ClearToolResults{}, Truncate{}).
	Strategy CompactionStrategy

	// IsOverflow reports whether a provider's error means that the request was
	// too long. Recover calls it. Nil: the function IsOverflow.
	IsOverflow func(error) bool

	// Budget is a pool of tokens shared with others. Until Close, it is
	// charged the upper bound of the next request. Nil: none.
	Budget *Budget

	// MaxResult is how many raw tokens the text of a tool result may have.
	// Append cuts the middle out of a longer one, at the border of a line or a
	// word, and puts a marker in its place that says how much is missing. 0: a
	// quarter of Limits.Window less Reserve, but at least 64, and no bound
	// without a Window; negative: no bound; otherwise at least 64.
	MaxResult int

	// KeepOriginals is how many raw tokens of originals to keep in memory: the
	// messages that were rewritten, or whose results were cut or cleared, as they
	// were appended. Report.Left returns them, and a summarizer reads those of
	// results, but what was rewritten as it stands. An original is kept until its
	// entry leaves the view; where there is not room for all, the oldest go first.
	// 0: eight times Limits.Window, and 1,000,000 without a Window; negative: none.
	KeepOriginals int

	// Spill stores the original of a tool result that is about to be cut or
	// cleared, and returns a reference, which the marker mentions. It is called
	// once for each original, and never with what is left of a result that was cut:
	// when such a result is cut or cleared once more, the reference in its marker
	// is used again. It runs on the goroutine that
	// appends or compacts, and must not block. Its ctx is that of the compaction;
	// for Append and Apply it is one that never ends.
	//
	// Append calls Spill when it knows that the messages can be appended, with
	// the ID and the name of the call that the result answers. If another
	// goroutine makes them impossible while Spill runs, Append returns an error
	// and nothing refers to what was stored. An error from Spill makes Append
	// fail, since without the original its text would be lost: nothing is
	// appended, and the same messages can be appended again. Note that there is
	// a MaxResult by default if there is a Window. In an edit, an error only keeps the
	// result from being cleared, and after three errors the edit calls Spill
	// no more. After an edit for which every call failed, Prepare,
	// CompactIfNeeded and CompactInBackground clear no results until MinFree/2
	// new tokens have been appended, and twice as many after each further such
	// edit in a row. Compact, Fit and Recover call Spill anyway.
	Spill func(ctx context.Context, r ToolResult) (ref string, err error)

	// Pin reports whether to pin the exchange of a message that is being
	// appended. It runs on the goroutine that appends, and must not block. The
	// message may still be refused afterwards.
	Pin func(Message) bool

	// PinFirstUser pins the first user message, which usually states the task.
	PinFirstUser bool

	// TagKey makes the key in the tags around summaries and around messages with an
	// Author, the same key each time; see Snapshot.Messages. A program that makes a
	// History anew from rows of its own for each request sets it, since otherwise the
	// bytes of each request differ and no provider finds them in its cache. It should
	// hold a secret and the name of the conversation: a text from somebody who knows
	// it can imitate the tags. A snapshot keeps its key, unless NewSnapshot made it.
	// Empty: a random key.
	TagKey string

	// OnLoad says what Restore does with open tool calls, and with a turn that
	// has no answer. Zero: OnLoadKeep.
	OnLoad OnLoad

	// OnImport says where Restore puts a message of a snapshot that NewSnapshot
	// made: among the system entries, as a user message whose Author is "system"
	// if it has none, or in the summary; PlaceTagged finds the summaries of other
	// systems. A system message that is at the front stays there, unless its
	// place is PlaceSummary. Nil: each message stays where it is, and a system
	// message after others is a RoleError, or moved to the front if Repair is
	// set.
	OnImport func(Message) Place

	// Repair lets Restore repair a faulty conversation, and is called for each
	// repair. Nil: Restore returns an error instead.
	Repair func(Fault)

	// Background lets Do start a compaction in the background when the answer
	// has made the next request larger than Limits.Soft; see
	// CompactInBackground.
	Background bool

	// NoArchive keeps the log short: after Save has written a full record, it removes
	// all records before it, and with them what Archive yields of them and what Load
	// returns. The log is then at most about three times as long as a full record, which
	// Save writes as SaveFull says; so SaveFull shortens it at once. If old records cannot
	// be removed, Save succeeds, Logger gets a line, and the next Save tries again. Open
	// and Attach fail for a Store that is no [Pruner]: the error matches
	// [errors.ErrUnsupported].
	NoArchive bool

	// OnCompaction is called after each compaction or edit that was applied or
	// declined, or that failed, and after an Append that cut results, with
	// ReasonAppend. Of declines that a Trigger leads to over and over, it gets the
	// first one; see Trigger. It runs on the goroutine that made the edit or the
	// append, and several calls may overlap. It must not call Wait or Do. If it
	// panics, the panic is ignored.
	OnCompaction func(Report)

	// Logger gets a line for each report that OnCompaction would get: Info for
	// an edit that was applied, Warn for a compaction that failed and for results
	// that Append cut, Debug for any other. An edit that was applied is a Warn
	// too if a link of a Chain failed or a result could not be cleared; cause
	// says why. If the logger panics, the panic is ignored. Nil: nothing is
	// logged.
	//
	// The message is "convo: compaction " and the outcome. The fields are always
	// these, for the fields of Report: outcome, reason, strategy, cause, fits,
	// limit, tokens_before, tokens_after, messages_before, messages_after;
	// dropped, summarised, cleared, cut, rewritten and kept, which are numbers of entries;
	// summary_before, summary_after, model, calls, unread, not_kept, prefix_kept,
	// named_limit, duration. There are four other lines, at level Warn: "convo: old
	// records not removed", with the fields key and cause, see NoArchive; one for a
	// History that will never be compacted, one for the first limits whose window is
	// Assumed, with the fields window and model, and "convo: usage left aside" for
	// usage that RecordUsage ignores because it cannot be true, and that Do was
	// given and RecordUsage refuses. Its fields are cause, input, raw and model: the
	// input tokens that were reported, the raw tokens of the snapshot, and the model
	// that it was made for.
	Logger *slog.Logger
}

// A History holds one conversation and keeps it inside a context window. It has
// system entries, at most one summary, and the other entries in ascending ID
// order. Tool calls and their results always pair.
//
// All methods may be called by several goroutines at once. No lock is held
// while the caller's code runs, so that code may call back. An operation that
// returns an error has changed nothing that a [Snapshot] shows, unless its
// documentation says otherwise. Create a History with [New] or [Restore]; the
// zero History is empty and closed.
type History struct {
	// These do not change after creation, except maxResult.
	opts            Options
	ident           *identity     // state.id, to be read without the lock
	interruptTokens int64         // tokens of interruptReason
	noteTokens      int64         // tokens of the tags of a note
	trigger         Trigger       // of opts.Strategy; nil: it has none
	maxResult       atomic.Int64  // raw tokens of the text of a result; 0: no bound
	direct          bool          // opts.Strategy returns when its ctx ends
	done            chan struct{} // closed by Close
	compacting      slot          // taken while a compaction runs
	answering       slot          // taken while a Do runs
	saving          slot          // taken while the log is written or compared with

	mu sync.Mutex // protects the fields below
	state
	seen       int       // snapshots may share list[:seen], so it must not be written
	calls      *calls    // of the newest exchange
	snap       *Snapshot // of the current version; nil: not made yet
	limits     Limits    // with defaults
	marks      marks     // limits less what Fit has reserved
	lowTold    bool      // that a usage report was too low was logged
	toolsSet   bool      // Limits.Tools was set after the last usage report
	rising     int       // usage reports in a row above the estimate
	risingTold bool      // that there were many was logged
	named      int       // the most that a provider's error lets a request weigh; 0: none did
	closed     bool
	charge     int64  // what opts.Budget is charged
	fitted     sum128 // what Fit has reserved in the window

	// What is known from usage reports.
	heard       bool            // usage was reported for the current model
	sent        *Snapshot       // of the last report; nil: none, or an entry of it has left the view
	prior       calibrate.Prior // of the current model
	implausible *implausible    // the last report, if it was implausible and ignored

	weight  int64  // upper bound of the next request
	weighed uint64 // the version that weight is of

	// Changes of entries other than by appending.
	reversals []reversal // in ascending order
	rewritten uint64     // version of the last edit, or of what undid one
	heldSince uint64     // version made by the newest Undo; 0: there was none, or an edit was applied since
	heldAt    int64      // appendedEver at that time

	lastAppend int64 // Unix nanoseconds; 0: never
	lastEdit   int64 // Unix nanoseconds; 0: never

	// Where h is saved.
	log      *logbook // nil: it has no Store
	chosen   bool     // SetLimits or SetModel has set the limits, which are saved then
	reloaded uint64   // the version that the last Reload with a change has made; snapshots from before are only for reading

	// State of compactions.
	appendedEver int64   // raw tokens ever appended, including those taken back
	compacted    uint64  // the version that the last compaction made; noVersion: none
	declined     uint64  // 1 more than the newest version for which a triggered compaction was declined; 0: none was
	declineTold  uint64  // 1 more than the version for which such a decline was told last; 0: since the limits were set, none was
	breaker      breaker // for summarizers
	spillBreaker breaker // for opts.Spill
	lastFocus    string  // focus of the compaction that made the last edit; empty: none
	current      *flight // the compaction that started last; nil: it has ended
	background   *background
	sending      *sending            // of the Do that waits for an answer; nil: none does
	warned       bool                // the log says that nothing will ever be compacted
	guessTold    bool                // the log says that the window is a guess
	spilled      map[spillKey]string // references that Spill returned for edits that were not applied yet
}

// New returns an empty History. If options are out of range, the error joins a
// [*ValueError] for each of them.
func New(opts *Options) (*History, error) {
	h, err := newHistory(opts, nil)
	if err != nil {
		return nil, err
	}
	h.updateChargeLocked()
	h.warnAssumed()
	return h, nil
}

// newHistory returns an empty History. If from is not nil, it takes over the key
// of that identity.
func newHistory(opts *Options, from *identity) (h *History, err error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	limits, faults := o.Limits.withDefaults()
	faults = append(faults, o.Roles.faults()...)
	faults = append(faults, priorFaults(o.Priors)...)
	if o.MaxResult > 0 && o.MaxResult < minMaxResult {
		faults = append(faults, &ValueError{Name: "Options.MaxResult", Value: o.MaxResult, Want: "at least 64 tokens; 0 for the default, or a negative value for no bound"})
	}
	if r := o.Overheads.Reasoning; r > ReplayNone {
		faults = append(faults, &ValueError{Name: "Options.Overheads.Reasoning", Value: int(r), Want: "ReplayDefault, ReplayAll, ReplayTools or ReplayNone"})
	}
	if o.OnLoad < OnLoadKeep || o.OnLoad > OnLoadDropTurn {
		faults = append(faults, &ValueError{Name: "Options.OnLoad", Value: int(o.OnLoad), Want: "OnLoadKeep, OnLoadClose, OnLoadDrop or OnLoadDropTurn"})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	o.Roles = o.Roles.withDefaults()
	o.Priors = maps.Clone(o.Priors)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Strategy == nil {
		o.Strategy = Chain(ClearToolResults{}, Truncate{})
	}
	h = &History{
		opts:       o,
		trigger:    triggerOf(o.Strategy),
		direct:     isDirect(o.Strategy),
		limits:     limits,
		done:       make(chan struct{}),
		compacting: newSlot(),
		answering:  newSlot(),
		saving:     newSlot(),
		compacted:  noVersion,
		weighed:    noVersion,
	}
	h.ident = newIdentity(newCounter(o.Tokenizer, o.Overheads), from, o.TagKey)
	h.id = h.ident
	h.prior = o.prior("").arithmetic()
	h.updateMarksLocked()
	h.keepOriginalsLocked()
	h.knowledge = &knowledge{cap: overheadCap(limits)}
	defer catch(&err, "Options.Tokenizer")
	h.interruptTokens = h.ident.text(interruptReason)
	h.noteTokens = h.ident.noteTokens()
	return h, nil
}

// keepOriginalsLocked sets the bounds that follow from the window: of a result, and
// of the originals that are kept.
func (h *History) keepOriginalsLocked() {
	bound := int64(h.opts.MaxResult)
	if bound == 0 && h.limits.Window > 0 {
		bound = max(int64(h.limits.limit())/4, minMaxResult)
	}
	h.maxResult.Store(max(bound, 0))
	if keep := keepOriginals(h.opts.KeepOriginals, h.limits.Window); keep != h.keep {
		h.keep = keep
		h.replace(h.sys, h.list, h.originals, h.listRaw, h.turns, h.turn)
	}
}

// newVersionLocked gives the view a new version, so that the next snapshot is a
// new one. Each change calls it once.
func (h *History) newVersionLocked() {
	h.version++
	h.snap = nil
}

// updateChargeLocked charges opts.Budget the upper bound of the next request.
// It is called at the end of each change.
func (h *History) updateChargeLocked() {
	if h.opts.Budget != nil && !h.closed {
		h.opts.Budget.recharge(&h.charge, h.upperLocked())
	}
}

func (h *History) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endedLocked()
}

// endedLocked reports whether h is closed. The zero History counts as closed.
func (h *History) endedLocked() bool { return h.closed || h.ident == nil }

// ownsLocked returns an error if h is closed or the snapshot is not one of h.
func (h *History) ownsLocked(at *Snapshot) error {
	switch {
	case h.endedLocked():
		return ErrClosed
	case at == nil:
		return &StaleError{Reason: "it is nil; take one with History.Snapshot"}
	case at.owner == nil:
		return &StaleError{Reason: "it belongs to no History, since With, NewSnapshot, Load or JSON made it; make a History of it with Restore"}
	case at.owner != h:
		return &StaleError{Reason: "another History made it; take one of this History"}
	case at.version < h.reloaded:
		return errReloaded
	}
	return nil
}

// errReloaded is returned for a snapshot from before the last Reload.
var errReloaded = &StaleError{Reason: "Reload has brought in what others have saved since; take a new snapshot"}

// Snapshot returns an immutable picture of the view as it is. It allocates one
// small object after a change, and nothing otherwise. It also works after Close.
func (h *History) Snapshot() *Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.snapshotLocked()
}

func (h *History) snapshotLocked() *Snapshot {
	if h.snap == nil {
		h.snap = &Snapshot{
			owner:   h,
			setting: setting{int64(h.limits.Window), int64(h.limits.Reserve), h.assumedOverheadLocked(), h.prior},
			state:   h.state.clipped(),
		}
		h.seen = len(h.list)
	}
	return h.snap
}

// Len returns the number of entries in the view, including system entries.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.len()
}

// Find returns the entry with the ID, and whether the view has one. It is the same
// as Find of a [Snapshot]. It tells, for example, which IDs Append gave to calls
// that had none:
//
//	id, err := h.Append(message)
//	...
//	e, _ := h.Find(id)
//	for _, call := range e.Message.ToolCalls() {
func (h *History) Find(id ID) (Entry, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.find(id)
	if e == nil {
		return Entry{}, false
	}
	return e.export(h.pins, new(partRoom)), true
}

// String describes h in a few words, without any text of the conversation.
func (h *History) String() string {
	s := h.Status()
	return fmt.Sprintf("History(%s, %s, %s)", counted(s.Entries, "entry", "entries"), counted(s.Turns, "turn", "turns"), counted(s.Tokens, "token", "tokens"))
}

// SetLimits replaces the limits, and ends the bound of a limit that a provider
// named to Recover. It removes nothing: call Prepare or CompactIfNeeded to compact
// to the new limits. If limits are out of range or clash, nothing changes, and the
// error joins a [*ValueError] for each fault.
func (h *History) SetLimits(l Limits) error {
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	defer h.warnAssumed()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	h.setLimitsLocked(limits)
	h.toolsSet = true
	h.updateChargeLocked()
	return nil
}

// warnAssumed logs that the window is a guess, once. It runs the caller's logger, so
// no lock may be held.
func (h *History) warnAssumed() {
	h.mu.Lock()
	warn := h.limits.Assumed && !h.guessTold && !h.endedLocked()
	h.guessTold = h.guessTold || warn
	window, model := h.limits.Window, h.known().model
	h.mu.Unlock()
	if warn {
		h.warn("convo: the window of the model is not known and was assumed: set Limits.Window", "window", window, "model", model)
	}
}

// setLimitsLocked replaces the limits by others, which have their defaults.
func (h *History) setLimitsLocked(limits Limits) {
	h.newVersionLocked()
	h.limits, h.named, h.declineTold = limits, 0, 0
	h.chosen = true
	h.updateMarksLocked()
	h.keepOriginalsLocked()
	k := *h.known()
	k.cap = overheadCap(limits)
	h.knowledge = &k
}

// Status is what a status line may show of a [History] at one moment. Sizes are
// in tokens.
type Status struct {
	Entries   int // including system entries
	System    int // system entries
	Turns     int // with at least one entry in the view
	OpenCalls int // tool calls without a result
	Queued    int // messages that wait in the queue; see [History.Queue]
	Unsaved   int // changes since the state that was last saved; 0: Save would write nothing, or there is no Store
	Torn      int // bytes at the end of the log that are no whole record: a crash interrupted a Save before it returned, or the newest record is damaged; the next Save removes them
	Tokens    int // as in Estimate
	Upper     int // as in Estimate

	// The limits with their defaults, less what Fit has reserved, see
	// [Limits], and within what Recover has learned. Limit is Window - Reserve.
	// A limit that does not exist is 0, such as Limit without a Window.
	Window, Limit, High, Low, Soft, MinFree int

	// Assumed says that Window is a guess; see Limits.Assumed.
	Assumed bool

	// Originals is how many raw tokens the originals have that are kept in
	// memory; see Options.KeepOriginals.
	Originals int

	Appended   int       // raw tokens since the last applied edit
	LastAppend time.Time // zero: never
	LastEdit   time.Time // when an edit was last applied; zero: never
}

// String says in one line how full the window is:
//
//	41,200 of 112,000 tokens (36 %): 30 entries in 15 turns, 2 open calls; compacts above 98,000
func (s Status) String() string {
	out := ofLimit(s.Upper, s.Limit)
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

// Status returns the current numbers of h. It costs the same however long the
// conversation is.
func (h *History) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.statusLocked()
}

func (h *History) statusLocked() Status {
	e, marks := h.estimateLocked(), h.marks
	return Status{
		Entries:    h.state.len(),
		System:     len(h.sys),
		Turns:      h.turns,
		OpenCalls:  h.calls.openCalls(),
		Queued:     len(h.queue),
		Unsaved:    h.unsavedLocked(),
		Torn:       h.tornLocked(),
		Tokens:     e.Tokens,
		Upper:      e.Upper,
		Window:     h.limits.Window,
		Assumed:    h.limits.Assumed,
		Limit:      orZero(marks.limit, h.limits.Window),
		High:       orZero(marks.high, clampInt(h.limits.most())),
		Low:        orZero(marks.low, clampInt(h.limits.most())),
		Soft:       orZero(marks.soft, clampInt(h.limits.most())),
		MinFree:    clampInt(marks.minFree),
		Originals:  clampInt(h.originalRaw),
		Appended:   clampInt(h.appended),
		LastAppend: timeOf(h.lastAppend),
		LastEdit:   timeOf(h.lastEdit),
	}
}

// timeOf returns the time of Unix nanoseconds, where 0 stands for never.
func timeOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// SetSystem replaces all system entries by the given system messages, which get
// new IDs; without messages it removes them. It may be called at any time, even
// while tool calls are open. With the messages that are in place already, it changes
// nothing, so it may be called before each request.
//
// Messages are copied and checked as by [History.Append]. SetSystem returns a
// [*MessageError] for one that is wrong or has another role; then nothing
// changes.
func (h *History) SetSystem(msgs ...Message) error {
	batch, err := h.newEntriesOf(RoleSystem, msgs, "SetSystem takes system messages only; see Append")
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	if slices.EqualFunc(h.sys, batch, func(e *entry, a pendingEntry) bool { return reflect.DeepEqual(e.msg, a.msg) }) {
		return nil
	}
	if err := inRange(h.last+ID(len(batch)), h.turn); err != nil {
		return err
	}
	h.newVersionLocked()
	now := time.Now().UnixNano()
	sys := make([]*entry, len(batch))
	for i, a := range batch {
		h.last++
		a.id, a.head, a.at = h.last, h.last, now
		sys[i] = a.entry
	}
	if h.known().cal != nil {
		h.measured -= h.sysShared(h.known().cal.at)
	}
	for _, e := range h.sys {
		h.leftLocked(departed{was: e}, false)
	}
	h.replace(sys, h.list, h.originals, h.listRaw, h.turns, h.turn)
	h.updateChargeLocked()
	return nil
}

// SetEphemeral replaces all ephemeral messages by the given ones; without messages it
// removes them. They are for facts about the moment, such as recalled memories or the
// state of the environment. The model sees them right before the user messages of the
// newest turn. They are counted, but have no IDs and are neither saved nor restored.
//
// They may have any role, in any order. A system message is sent at that place, as a
// note is; see [RolePolicy]. An assistant message may hold tool calls if the messages
// right after it answer all of them.
//
// Messages are copied and checked as by [History.Append], but no result is cut.
// SetEphemeral returns a [*MessageError] for a message that is wrong, and a
// [*PairError] for calls and results that do not pair; then nothing changes.
func (h *History) SetEphemeral(msgs ...Message) error {
	if h.ident == nil {
		return ErrClosed
	}
	batch, err := h.newEntries(nil, msgs)
	if err != nil {
		return err
	}
	eph, err := h.newEphemeral(batch)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.endedLocked() {
		return ErrClosed
	}
	h.newVersionLocked()
	if h.known().cal != nil && h.known().cal.at.eph == h.eph {
		h.measured -= h.eph.tokens()
	}
	h.eph = eph
	h.updateChargeLocked()
	return nil
}

// newEphemeral returns a set of ephemeral messages, nil for an empty batch. Their calls
// and results must pair among themselves.
func (h *History) newEphemeral(batch []pendingEntry) (*ephemeral, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	alone := &History{ident: h.ident, noteTokens: h.noteTokens, opts: Options{Roles: Relaxed()}}
	alone.opts.Roles.Interrupt = false
	alone.mu.Lock()
	defer alone.mu.Unlock()
	j, err := alone.joinLocked(batch)
	if err != nil {
		return nil, err
	}
	if j.open.openCalls() > 0 {
		k := j.open.firstOpen()
		return nil, &PairError{Err: ErrOpenCalls, CallID: k.id, Name: k.name, Index: len(batch)}
	}
	eph := new(ephemeral)
	for _, a := range batch {
		if a.msg.Role == RoleSystem {
			a.setNote(true, h.noteTokens)
		}
		eph.msgs = append(eph.msgs, a.msg)
		eph.raw += a.tokens
	}
	return eph, nil
}

// newEntriesOf is newEntries for messages that must all be of one role. reason is
// the error's text for another role.
func (h *History) newEntriesOf(role Role, msgs []Message, reason string) ([]pendingEntry, error) {
	if h.ident == nil {
		return nil, ErrClosed
	}
	for i, m := range msgs {
		if m.Role != role {
			return nil, &MessageError{Index: i, Role: m.Role, Part: -1, Reason: reason}
		}
	}
	return h.newEntries(nil, msgs)
}

// SetModel names the model that the next requests go to, and replaces the limits
// in the same step, so that no request is made for one model with the limits of
// another. Zero limits keep those in force. Limits that are wrong are reported as
// by [History.SetLimits], and then the model stays too. The name is empty at
// first.
//
// Another name or other limits end the bound of a limit that a provider named to
// Recover. With the name and the limits in force, SetModel changes nothing, so it may
// be called before each request.
//
// What usage reports teach is kept separately for each model: a new name starts
// from its [Prior], a known one from what was learned about it. SetModel removes
// nothing: the next Prepare or Do compacts if the new model needs it.
func (h *History) SetModel(name string, l Limits) error {
	name = text.Valid(name)
	limits, faults := l.withDefaults()
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	defer h.warnAssumed()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.endedLocked():
		return ErrClosed
	case name == h.known().model && (l == Limits{} || limits == h.limits):
		return nil
	}
	if l != (Limits{}) {
		h.setLimitsLocked(limits)
		h.toolsSet = h.toolsSet || l.Tools > 0
	}
	if name != h.known().model {
		h.newVersionLocked()
		h.sent, h.heard = nil, false
		h.useModelLocked(name, h.known().learned)
	}
	h.updateChargeLocked()
	return nil
}

// Close closes h. Afterwards h can still be read, and every change returns
// [ErrClosed]. What was charged to a Budget is given back.
//
// Close cancels a running compaction, and the ctx of a request that Do has sent,
// and waits for nothing, so it may be called from anywhere. Whoever waits for that
// compaction returns, even if a strategy or a summarizer does not; [History.Wait]
// waits for the one in the background to be reported. Close may be called more than
// once, and always returns nil.
func (h *History) Close() error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		if h.opts.Budget != nil {
			h.opts.Budget.recharge(&h.charge, 0)
		}
		if h.done != nil {
			close(h.done)
		}
	}
	f, s := h.current, h.sending
	h.mu.Unlock()
	if f != nil {
		f.cancel(ErrClosed)
	}
	if s != nil {
		s.cancel(ErrClosed)
	}
	return nil
}
