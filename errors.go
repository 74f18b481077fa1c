package convo

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/causes"
	"github.com/seed-c1b73e60/convo/internal/pairs"
	"github.com/seed-c1b73e60/convo/internal/wording"
)

// Errors of a History.
var (
	// ErrClosed is returned by methods that would change a closed [History]; see Close.
	ErrClosed = errors.New("convo: the history is closed; make another with New, Open or Restore")

	// ErrNotFound is matched by the errors for an [ID] that no entry has, for a log or a
	// record that a [Store] does not have, and of [History.PinLast] without an exchange.
	ErrNotFound = errors.New("convo: not found")

	// ErrStale says that a [Snapshot] does not match the [History] that it was given to. It is
	// nil or of another History, Reload has brought in other entries, or what it shows was
	// undone or has changed since. The text says which, and what to do. Start again from a new
	// snapshot.
	ErrStale = errors.New("convo: stale snapshot")

	// ErrVersion is returned for saved data in a format that this version cannot read.
	ErrVersion = errors.New("convo: unknown format version")

	// ErrBudget says that a [Budget] has too few tokens. The [FloorError] of [History.MakeRoom]
	// also matches it if the pool is too small.
	ErrBudget = errors.New("convo: budget exhausted")

	// ErrMaxRequests says that [History.Run] has made RunOptions.MaxRequests requests, and the
	// model was not done. No call is open.
	ErrMaxRequests = errors.New("convo: the model was not done after RunOptions.MaxRequests requests; call Run again to go on, or raise it")

	// ErrNoStore is returned by methods that save or read what was saved, when the [History]
	// was not opened from a [Store]. Use Open, or call Attach.
	ErrNoStore = errors.New("convo: the history has no store; use Open, or call Attach")
)

// errNoWindow is the Cause of the first report of a History that has neither Limits.Window
// nor Limits.High, nor a strategy that is a Trigger; see [New].
var errNoWindow = errors.New("convo: without Limits.Window or Limits.High, nothing is compacted until a provider refuses a request as too long; set Limits.Window")

// Errors of a compaction.
var (
	// ErrReentrant is returned when code that a [History] called calls back what waits for that
	// code. A strategy or summarizer may not start or await a compaction or call Do. Nor may
	// the send of a Do call Do, a tool of Run call Run, or a Store save or reload the History.
	// The call is recognised by the ctx that the code was given, or one derived from it, also
	// after the end. With another ctx, the call waits until that ends.
	ErrReentrant = errors.New("convo: called from inside a compaction, the send of a Do, a tool of Run or a Store of the same History; call it when that has returned")

	// ErrNoGain says that there was nothing to remove, or too little to be worth a compaction.
	// [History.Apply] returns it for an edit that changed nothing, and a strategy to decline.
	ErrNoGain = wording.Advised("nothing worth removing", "go on with the conversation as it is")

	// ErrBreaker is the cause when a summarizer was not called because it has recently failed:
	// it returned an error, panicked, ended its goroutine, took too long, or wrote a summary
	// that could not be used. The error also wraps that failure. The next call is after
	// MinFree/2 new tokens, twice as many after each further failure in a row. Compact,
	// MakeRoom and Recover call it at any time. A strategy returns ErrBreaker to decline.
	ErrBreaker = errors.New("convo: summarizer is backing off after failures; History.Compact calls it anyway")
)

// Errors that a [PairError] unwraps to.
var (
	// ErrNoOpenCall says that a result answers no open call of the newest exchange. Either none
	// has its ID, or the call already has a result.
	ErrNoOpenCall = pairs.ErrNoOpenCall

	// ErrOpenCalls says that a message other than a result was appended while calls were open.
	// Append their results first, or give the calls up with [History.AnswerOpenCalls].
	ErrOpenCalls = errors.New("convo: a call has no result yet")
)

// Other errors that a PairError holds. Its text says what is wrong.
var (
	errDuplicateCall = errors.New("convo: two calls in one message have the same ID")
	errAnswered      = pairs.ErrAnswered
	errAmbiguous     = pairs.ErrAmbiguous
)

// pairAdvice says what to do about what a PairError holds.
var pairAdvice = map[error]string{
	ErrOpenCalls:     "append its result first, or give it up with AnswerOpenCalls",
	errDuplicateCall: "leave the ID empty to have one made",
	errAmbiguous:     "make it with Result, or append the results of all open calls at once, in their order",
	errAnswered:      "leave it out, or take the first result back with Rollback",
	ErrNoOpenCall:    "make it with Result for a call of the newest assistant message, or leave it out",
}

// A ValueError says that an option, a limit, an argument or a figure is out of range.
type ValueError struct {
	Name  string // such as "Limits.High"
	Value any    // the value that was given
	Want  string // what is allowed, in words
}

func (e *ValueError) Error() string { return "convo: " + wording.Value(e.Name, e.Value, e.Want) }

// refuse adds a [*ValueError] to faults if a value is wrong.
func refuse(faults []error, isWrong bool, name string, value any, want string) []error {
	if isWrong {
		faults = append(faults, &ValueError{Name: name, Value: value, Want: want})
	}
	return faults
}

// A MessageError says what is wrong with the content of one message.
type MessageError struct {
	Index  int    // position in the batch or list, from 0
	Role   Role   // of the message
	Part   int    // position among its parts; -1 if the error is about the whole message
	Reason string // in words
}

func (e *MessageError) Error() string {
	part := ""
	if e.Part >= 0 {
		part = fmt.Sprintf(", part %d", e.Part)
	}
	return fmt.Sprintf("convo: message %d (%s)%s: %s", e.Index, wording.RoleName(string(e.Role)), part, e.Reason)
}

// A RoleError says that a message of this role is not allowed in its position, by
// the [RolePolicy] or in an answer.
type RoleError struct {
	Attempted Role // of the message
	Previous  Role // of the message before it; RoleNone if there is none
	Index     int  // position in the batch or list, from 0

	// Answer is set for a message of an answer given to Do, which may hold assistant messages
	// and results only, whatever the RolePolicy says.
	Answer bool
}

func (e *RoleError) Error() string { return "convo: " + wording.RoleError[Role](*e).String() }

// fault returns what is wrong, without the position and the remedy.
func (e *RoleError) fault() string { return wording.RoleError[Role](*e).Fault() }

// A PairError says that a tool call and a result do not match. It matches [ErrOpenCalls] or
// [ErrNoOpenCall], or two calls of one assistant message have the same ID. Or a result without
// an ID could answer several open calls: there are fewer results than calls, or their names are
// not in the order of the calls. Then set its CallID, as [Result] does, or append the results
// of all these calls at once, in order. A call with an empty ID is given one by
// [History.Append].
type PairError struct {
	Err    error
	CallID string   // of the call or result at fault; for ErrOpenCalls, of the first open call
	Name   string   // of the tool; may be empty
	Index  int      // position in the batch or list, from 0
	Calls  []string // the IDs of the calls that a result without an ID could answer
}

func (e *PairError) Error() string {
	s := fmt.Sprintf("convo: message %d: %s", e.Index, e.fault())
	if advice := pairAdvice[e.Err]; advice != "" {
		s += "; " + advice
	}
	return s
}

// fault returns what is wrong, without the position and the remedy.
func (e *PairError) fault() string {
	if e.Err == errAmbiguous {
		return wording.Ambiguous(e.Calls, e.Name)
	}
	return fmt.Sprintf("%s (id %q, tool %q)", withoutPrefix(e.Err), abbreviate(e.CallID), abbreviate(e.Name))
}

// Unwrap returns e.Err.
func (e *PairError) Unwrap() error { return e.Err }

// A maxRequestsError says after how many requests [History.Run] has stopped.
type maxRequestsError struct {
	Max int // how many requests Run has made
}

func (e *maxRequestsError) Error() string {
	return fmt.Sprintf("convo: the model was not done after %s; call Run again to go on, or raise RunOptions.MaxRequests", counted(e.Max, "request", "requests"))
}

// Is reports whether target is [ErrMaxRequests].
func (e *maxRequestsError) Is(target error) bool { return target == ErrMaxRequests }

// notInView returns the error for an ID that no entry of the view has.
func notInView(id ID) error {
	return fmt.Errorf("%w: entry %d is not in the view; Snapshot.All lists those that are", ErrNotFound, id)
}

// A staleError says why a [Snapshot] does not match the [History] that it was given to.
type staleError struct {
	Reason string // in words, with what to do
	ID     ID     // of the entry that Reason is about; 0 if it is about none
}

func (e *staleError) Error() string {
	if e.ID == 0 {
		return "convo: stale snapshot: " + e.Reason
	}
	return fmt.Sprintf("convo: stale snapshot: entry %d %s", e.ID, e.Reason)
}

// Is reports whether target is [ErrStale].
func (e *staleError) Is(target error) bool { return target == ErrStale }

// isStale reports whether an error of this package is itself a staleError. A
// staleError from the caller's code is wrapped.
func isStale(err error) bool {
	_, stale := err.(*staleError)
	return stale
}

// An EditError says that an [Edit] breaks a rule. No part of it was applied.
type EditError struct {
	Rule   string // how the edit breaks the rule, in words
	ID     ID     // of the entry at fault; 0 if no entry is
	CallID string // of the call or result at fault
}

func (e *EditError) Error() string { return "convo: " + wording.Edit(e.Rule, int64(e.ID), e.CallID) }

// A budgetError says that a [Budget] has too few tokens. It matches [ErrBudget].
type budgetError struct {
	Need, Free int // tokens
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("convo: budget exhausted: need %s tokens, %s are free; release a Reservation or compact a History that uses the budget", grouped(e.Need), grouped(e.Free))
}

// Is reports whether target is [ErrBudget].
func (e *budgetError) Is(target error) bool { return target == ErrBudget }

// A FloorError says that the floor, which no compaction removes, exceeds the limit, even with
// its tool results cut, so no strategy was run. Its text names the shares of at least 2 % of
// Limit, the largest first, each with a remedy, to be followed in this order.
//
// All figures are upper bounds in tokens, and the shares add up to Floor. An entry that belongs
// to several counts in Pinned if a compaction could drop it, or cut its results, were it not
// pinned, and otherwise in the first.
type FloorError struct {
	Floor int  // the size of the floor
	Room  int  // what MakeRoom was asked to reserve in addition
	Limit int  // for both together
	Pool  bool // whether Limit comes from Options.Budget and not from the window

	// The shares of Floor.
	System    int // system messages
	Newest    int // the newest exchange, without its calls
	Round     int // a tool round that no assistant message has followed yet, with user messages after it, without its calls
	Calls     int // the tool calls of the newest exchange and of Round, with their arguments
	Users     int // the other user messages of the newest turn, and those of the turn of Round
	Pinned    int // pinned exchanges
	Ephemeral int // ephemeral messages
	Tools     int // tool definitions, and all else that a request carries besides messages

	NewestRole Role // of the message that the newest exchange begins with

	// ToolsReported says that Tools is what usage reports have shown. Only the next report can
	// lower it, so the text names Tools last.
	ToolsReported bool

	// How many calls of Rewind(1) take Round and all of Users back. The first takes Newest
	// back.
	RewindRound, RewindUsers int

	// How many messages wait in the queue, which Rewind would append: Unqueue them first.
	Queued int
}

func (e *FloorError) Error() string { return "convo: " + wording.Floor[Role](*e).String() }

// A LimitError says that the next request is larger than the limit, and that compaction
// did not help. Figures are upper bounds in tokens.
type LimitError struct {
	Need  int // the size of the request as it is, or as a refused edit would have left it
	Room  int // what MakeRoom was asked to reserve in addition
	Limit int // the target for both: the limit, or for Recover less than the refused size

	Compacted bool // Need is the size that an edit left, or would have left; false: nothing could be removed

	Err error // why no edit was applied, such as the error of the strategy; nil: not known
}

func (e *LimitError) Error() string { return "convo: " + wording.Limit(*e).String() }

// Unwrap returns e.Err.
func (e *LimitError) Unwrap() error { return e.Err }

// A RefusedError says why the result of a strategy or a summarizer was not used. A
// summary is refused if it is empty, its Stop is not StopDone, it is more than four times
// as long as requested, or its edit frees too little. One by a model is also refused if it
// ends in a loop of words or numbers, or loops of words, numbers or signs are four fifths of
// it or more. A loop is the same four or more times in a row, in at least 200 bytes and a
// sixteenth of the text. White space is ignored. Lists of similar lines, and equal rows of a
// table followed by other text, are not refused.
type RefusedError struct {
	Reason string // in words
}

func (e *RefusedError) Error() string { return "convo: refused: " + e.Reason }

// A SnapshotError says what is wrong in a snapshot or its JSON, and where. It unwraps to
// the cause, such as a [PairError]. Options.Repair gets one for each fault that [Restore] has
// repaired, and for each entry that got another ID because of a repair.
type SnapshotError struct {
	Index int   // the entry's index, as in Snapshot.At; -1: the whole snapshot is at fault, Restore inserted the entry, or it was queued
	ID    ID    // of the entry in the snapshot; 0: not known, Restore inserted the entry, or it was queued
	Err   error // for Repair: *MessageError, *RoleError or *PairError; nil: only the ID changed

	// For Options.Repair.
	NewID  ID     // of the entry in the History; 0: Restore dropped the entry
	Mended string // description of the repair
}

func (e *SnapshotError) Error() string {
	at := fmt.Sprintf("convo: snapshot entry %d (ID %d): ", e.Index, e.ID)
	switch {
	case e.Mended != "" && e.Err == nil:
		return at + e.Mended
	case e.Mended != "":
		return at + e.Mended + ": " + withoutPrefix(e.Err)
	}
	cause := withoutPrefix(e.Err)
	if e.Index < 0 {
		return "convo: snapshot: " + cause + e.remedy()
	}
	const repair = "; Options.Repair makes Restore repair it"
	switch err := e.Err.(type) {
	case *PairError:
		cause = err.fault() + repair
	case *RoleError:
		cause = err.fault() + "; set Options.Roles to allow it, or Options.Repair to keep it all the same"
	case *MessageError:
		cause += repair
	default:
		cause += e.remedy()
	}
	return at + cause
}

// remedy returns what to do about data that is not as it was written, unless the cause has
// a remedy of its own.
func (e *SnapshotError) remedy() string {
	switch e.Err.(type) {
	case *PairError, *RoleError, *RefusedError, *ValueError, *PanicError:
		return ""
	}
	if causes.Is(e.Err, ErrVersion) || strings.Contains(fmt.Sprint(e.Err), "; ") {
		return ""
	}
	return wording.AsWritten
}

// Unwrap returns e.Err.
func (e *SnapshotError) Unwrap() error { return e.Err }

// A ConflictError says that another writer has added to the log of a conversation, has
// deleted it, or has begun one under the same key. After a [History.Save],
// [History.Reload] takes over what was added; if the log was deleted, Have is 0, and
// [History.Attach] begins a new one. Prune, Attach, Append of a [Store] and Copy of package logs
// also return it.
type ConflictError struct {
	Key  string
	Have uint64 // Seq of the newest record in the store; 0: there is none
	Want uint64 // Seq of the record that was to be added
	ID   string // of the newest record in the store; empty: there is none
}

func (e *ConflictError) Error() string { return "convo: " + wording.Conflict(e.Key, e.Have, e.Want) }

// A DamageError says that the log of a conversation is damaged. [Salvage] copies what can
// be read to a whole log, which opens. [Load] also returns the whole states, and
// [History.Archive] the messages.
type DamageError struct {
	Key    string
	Offset int64  // where in a file, in bytes; -1: not known
	Seq    uint64 // of the newest record before the damage whose state is whole; 0: none
	Err    error  // what is wrong
}

func (e *DamageError) Error() string {
	return "convo: " + wording.Damage(e.Key, e.Offset, e.Seq, e.Err)
}

// Unwrap returns e.Err.
func (e *DamageError) Unwrap() error { return e.Err }

// A PanicError reports a panic in caller-supplied code, such as a strategy, a
// tokenizer or Options.Pin.
type PanicError struct {
	// In names the option or the interface whose code panicked, if it is known:
	// Options.Tokenizer for code that counts tokens, CompactionStrategy for a strategy and
	// what it calls.
	In string

	Value any    // the argument of panic
	Stack string // of the goroutine that panicked, as [debug.Stack] prints it
}

func (e *PanicError) Error() string {
	s := "convo: " + e.fault()
	if e.Stack != "" {
		s += "; PanicError.Stack says where"
	}
	return s
}

// fault returns the text of e without the prefix, and without saying where to look.
func (e *PanicError) fault() string {
	value := e.Value
	if err, ok := value.(error); ok {
		value = withoutPrefix(err)
	}
	return fmt.Sprintf("panic in %s: %v", e.In, value)
}

// Unwrap returns Value if it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// catch, when deferred, turns a panic in the caller's code into a
// [*PanicError].
func catch(err *error, in string) {
	if v := recover(); v != nil {
		*err = &PanicError{In: in, Value: v, Stack: string(debug.Stack())}
	}
}

// safely returns what f returns, or an error if that panics.
func safely[T any](in string, f func() T) (got T, err error) {
	defer catch(&err, in)
	return f(), nil
}

// A wordedError is an error with another text.
type wordedError = wording.Error

// worded returns an error that wraps err, which may be nil, and has another text, without
// "convo: ".
func worded(text string, err error) error { return &wordedError{Text: text, Err: err} }

// errorf is fmt.Errorf for a text around other errors, which begins with the only "convo: ". It
// wraps all errors among args.
func errorf(format string, args ...any) error { return wording.Errorf(format, args...) }

// isTooLarge reports whether err, which a method of this package returns, says that the
// conversation does not fit. It does not call methods of the caller's errors, which may panic
// or wrap in a circle.
func isTooLarge(err error) bool {
	switch e := err.(type) {
	case *FloorError, *LimitError:
		return true
	case *wordedError:
		return isTooLarge(e.Err)
	case wording.List:
		return slices.ContainsFunc(e, isTooLarge)
	}
	return false
}

// withoutPrefix returns the text of an error on one line, for use in the text of another.
func withoutPrefix(err error) string { return wording.Plain(err) }

// causeOf returns why ctx ended: an error that wraps both ctx's error and its cause.
func causeOf(ctx context.Context) error { return wording.CauseOf(ctx) }

// endOf returns the error of a compaction whose ctx has ended.
func endOf(ctx context.Context) error {
	return errorf("compaction stopped: %w", causeOf(ctx))
}

// errGoexit is the error of an operation during which the caller's code ended the
// goroutine that it was called on.
var errGoexit = errors.New("convo: code called by the compaction ended the goroutine with runtime.Goexit; return an error instead")

// A RowError is returned by [Resume] for a row that does not fit the [Decisions].
type RowError struct {
	// Key is the key of the row. Among rows that Needs does not name one by one, it may be
	// that of a row nearby: of the row found in place of a missing one. A row that is "changed"
	// has changed. Key is empty if the row has none.
	Key string

	// Fault is "missing" if the view shows the row, or new rows follow it, and the application
	// did not give it. It is "changed" if the view shows the row, and it is not as it was. It is
	// "twice" if two rows have the key, and "unexpected" if the row is not allowed there.
	Fault string

	Err error // why the row cannot be appended; may be nil
}

func (e *RowError) Error() string { return "convo: " + wording.Row(e.Key, e.Fault, e.Err) }

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }
