package convo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors of a History.
var (
	// ErrClosed is returned by every operation that would change a closed
	// [History].
	ErrClosed = errors.New("convo: history is closed")

	// ErrNotFound is matched by an [IDError], and by the error of
	// [History.PinLast] when there is no exchange to pin.
	ErrNotFound = errors.New("convo: not found")

	// ErrStale is matched by a [StaleError]: a [Snapshot] does not match the
	// [History] that it was given to. Take a new snapshot and start from that.
	ErrStale = errors.New("convo: stale snapshot")

	// ErrVersion is returned for saved data in a format that this version of
	// the package cannot read.
	ErrVersion = errors.New("convo: unknown format version")

	// ErrBudget is matched by a [BudgetError].
	ErrBudget = errors.New("convo: budget exhausted")
)

// Errors of a compaction.
var (
	// ErrReentrant is returned when code that runs inside a compaction of a
	// [History], such as a strategy or a summarizer, starts another compaction
	// of the same History, waits for one or calls Do, and when the send of a Do
	// calls Do. Such a call is recognised by its ctx: the one that the code was
	// given, or one derived from it, even after the compaction has ended.
	ErrReentrant = errors.New("convo: called from inside a compaction, or the send of a Do, of the same History; call it when that has returned")

	// ErrNoGain says that a compaction was declined because there was nothing
	// to remove, or too little to be worth it. [History.Apply] returns it for an
	// edit that changed nothing. A strategy returns it to decline.
	ErrNoGain = errors.New("convo: nothing worth removing")

	// ErrBreaker is the cause when a summarizer was not called because it has
	// recently failed: it returned an error, panicked, ended its goroutine,
	// took longer than it may, or wrote a summary that could not be used. The
	// error also wraps that failure. The summarizer is called again after
	// MinFree/2 new tokens; this number doubles with each further failure in a
	// row. Compact, Fit and Recover call it at any time. A strategy returns
	// ErrBreaker to decline.
	ErrBreaker = errors.New("convo: summarizer is backing off after failures")
)

// Errors that a [PairError] unwraps to.
var (
	// ErrDuplicateCall says that two calls of one assistant message have the
	// same ID. A call with an empty ID is given one by [History.Append].
	ErrDuplicateCall = errors.New("convo: two calls in one message have the same ID")

	// ErrNoOpenCall says that a result answers no call of the newest exchange.
	ErrNoOpenCall = errors.New("convo: result answers no call of the newest exchange")

	// ErrAnswered says that a result answers a call that already has one.
	ErrAnswered = errors.New("convo: call already has a result")

	// ErrAmbiguous says that a result without an ID could answer several open
	// calls: there are fewer results than calls, or their names are not in the
	// order of the calls. Set its CallID, as [Result] does, or append the
	// results of all these calls at once, in the order of the calls.
	ErrAmbiguous = errors.New("convo: result without an ID could answer several calls")

	// ErrOpenCalls says that a message other than a result was appended while
	// calls were open. Append their results first, or give the calls up with
	// [History.AnswerOpenCalls].
	ErrOpenCalls = errors.New("convo: a call has no result yet")
)

// A ValueError says that an option, a limit, an argument or a reported figure
// is out of range.
type ValueError struct {
	Name  string // such as "Limits.High"
	Value any    // the value that was given
	Want  string // what is allowed, in words
}

func (e *ValueError) Error() string {
	format := "convo: %s is %v, want %s"
	if _, ok := e.Value.(string); ok {
		format = "convo: %s is %q, want %s"
	}
	return fmt.Sprintf(format, e.Name, e.Value, e.Want)
}

// A MessageError says what is wrong with the content of one message.
type MessageError struct {
	Index  int    // position in the batch or list, from 0
	Role   Role   // of the message
	Part   int    // position among its parts; -1 if the error is about the whole message
	Reason string // in words
}

func (e *MessageError) Error() string {
	if e.Part < 0 {
		return fmt.Sprintf("convo: message %d (%s): %s", e.Index, roleName(e.Role), e.Reason)
	}
	return fmt.Sprintf("convo: message %d (%s), part %d: %s", e.Index, roleName(e.Role), e.Part, e.Reason)
}

// A RoleError says that the [RolePolicy] does not allow a role where the message
// stands.
type RoleError struct {
	Attempted Role // of the message
	Previous  Role // of the message before it; RoleNone if there is none
	Index     int  // position in the batch or list, from 0
}

func (e *RoleError) Error() string {
	remedy := "set Options.Roles to allow it"
	switch {
	case e.Attempted == RoleSystem:
		remedy = "system messages come first, and SetSystem replaces them"
	case e.Attempted == RoleUser && e.Previous == RoleUser && e.Index > 0:
		remedy = "put both into one message, or set Options.Roles to Relaxed() to allow it"
	case e.Attempted == RoleUser && e.Previous == RoleUser:
		remedy = "after a failed request, call Rewind(1) to take back the unanswered message"
	case e.Attempted == RoleAssistant && e.Previous == RoleAssistant:
		remedy = "put both into one message, or append what the user said in between, or set Options.Roles to Relaxed() to allow it"
	case e.Attempted == RoleAssistant && (e.Previous == RoleNone || e.Previous == RoleSystem):
		remedy = "append the user message that it answers before it, or set Options.Roles to Relaxed() to allow it"
	}
	return fmt.Sprintf("convo: message %d: %s; %s", e.Index, e.fault(), remedy)
}

// fault returns what is wrong, without the position and the remedy.
func (e *RoleError) fault() string {
	if e.Previous == RoleNone {
		return fmt.Sprintf("role %s may not come first", roleName(e.Attempted))
	}
	return fmt.Sprintf("role %s may not follow %s", roleName(e.Attempted), roleName(e.Previous))
}

// A PairError says that a tool call and a result do not match. It unwraps to
// [ErrDuplicateCall], [ErrNoOpenCall], [ErrAnswered], [ErrAmbiguous] or
// [ErrOpenCalls].
type PairError struct {
	Err    error
	CallID string   // of the call or result at fault; for ErrOpenCalls, of the first open call
	Name   string   // of the tool; may be empty
	Index  int      // position in the batch or list, from 0
	Calls  []string // for ErrAmbiguous: the IDs of the calls that the result could answer
}

func (e *PairError) Error() string {
	s := fmt.Sprintf("convo: message %d: %s", e.Index, e.fault())
	switch e.Err {
	case ErrOpenCalls:
		s += "; append its result first, or give it up with AnswerOpenCalls"
	case ErrDuplicateCall:
		s += "; leave the ID empty to have one made"
	case ErrAmbiguous:
		s += "; make it with Result, or append the results of all open calls at once, in their order"
	}
	return s
}

// fault returns what is wrong, without the position and the remedy.
func (e *PairError) fault() string {
	if e.Err == ErrAmbiguous {
		const most = 8
		calls := fmt.Sprintf("%q", e.Calls[:min(len(e.Calls), most)])
		if more := len(e.Calls) - most; more > 0 {
			calls += fmt.Sprintf(" and %d more", more)
		}
		return fmt.Sprintf("result without an ID could answer the calls %s (tool %q)", calls, e.Name)
	}
	return fmt.Sprintf("%s (id %q, tool %q)", withoutPrefix(e.Err), e.CallID, e.Name)
}

// Unwrap returns e.Err.
func (e *PairError) Unwrap() error { return e.Err }

// An IDError says that no entry of the view has the ID. It matches
// [ErrNotFound].
type IDError struct{ ID ID }

func (e *IDError) Error() string { return fmt.Sprintf("convo: entry %d is not in the view", e.ID) }

// Is reports whether target is [ErrNotFound].
func (e *IDError) Is(target error) bool { return target == ErrNotFound }

// A StaleError says why a [Snapshot] does not match the [History] that it was
// given to: it is nil, another History or none made it, a rollback has since taken
// back an entry or undone an edit that it shows, or what an edit names is not as it
// was. It matches [ErrStale].
type StaleError struct {
	Reason string // in words, with what to do
	ID     ID     // of the entry that Reason is about; 0 if it is about none
}

func (e *StaleError) Error() string {
	if e.ID == 0 {
		return "convo: stale snapshot: " + e.Reason
	}
	return fmt.Sprintf("convo: stale snapshot: entry %d %s", e.ID, e.Reason)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// isStale reports whether an error of this package is a StaleError itself. One
// that the caller's code has returned or panicked with is wrapped.
func isStale(err error) bool {
	_, stale := err.(*StaleError)
	return stale
}

// An EditError says that an [Edit] breaks a rule. Nothing of it was applied.
type EditError struct {
	Rule   string // what the edit does against the rules, in words
	ID     ID     // of the entry at fault; 0 if no entry is
	CallID string // of the result at fault, for a Clear
}

func (e *EditError) Error() string {
	s := "convo: edit: " + e.Rule
	if e.ID != 0 {
		s += fmt.Sprintf(" (entry %d)", e.ID)
	}
	if e.CallID != "" {
		s += fmt.Sprintf(" (call %q)", e.CallID)
	}
	return s
}

// A BudgetError says that a [Budget] has too few tokens left. It matches
// [ErrBudget].
type BudgetError struct {
	Need, Free int // tokens
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("convo: budget exhausted: need %d tokens, %d are free; release a Reservation or compact a History that uses the budget", e.Need, e.Free)
}

// Is reports whether target is [ErrBudget].
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// A FloorError says that the floor, which no compaction removes, exceeds the
// limit, and that cutting tool results does not help, so no strategy was run.
// Its text names the shares, the largest first, each with what makes it
// smaller.
//
// All figures are upper bounds in tokens. The shares add up to Floor. An entry
// that belongs to several counts in Pinned if a compaction could drop it, or cut
// its results, were it not pinned, and otherwise in the first of the others.
type FloorError struct {
	Floor int // the size of the floor
	Room  int // what Fit was asked to reserve beside it
	Limit int // for both together

	Pool bool // whether Limit is what Options.Budget leaves, and not what the window does

	// The shares of Floor.
	System    int // system messages
	Newest    int // the newest exchange
	Round     int // tool calls and results that no assistant message has followed yet, behind which user messages came
	Users     int // the other user messages of the newest turn, and those of the turn of Round
	Pinned    int // pinned exchanges
	Ephemeral int // ephemeral messages
	Tools     int // tool definitions, and whatever else a request carries beside messages

	NewestRole Role // of the message that the newest exchange begins with
}

func (e *FloorError) Error() string {
	newest := "the newest exchange holds %s: Rewind takes it back"
	switch e.NewestRole {
	case RoleUser:
		newest = "the newest user message holds %s: Rewind takes it back"
	case RoleAssistant:
		newest = "the newest assistant message and its results hold %s, though results may be cut: Rewind takes the turn back"
	}
	users := "other user messages of the newest turn hold %s: Rewind takes it back"
	if e.Round > 0 { // the round's turn is the one before the newest
		users = "other user messages of the two newest turns hold %s: Rewind(2) takes them back"
	}
	type share struct {
		tokens int
		text   string
	}
	shares := []share{
		{e.System, "system messages hold %s: SetSystem replaces them"},
		{e.Newest, newest},
		{e.Round, "unanswered tool calls and results hold %s, though results may be cut: Rewind(2) takes their turn back"},
		{e.Users, users},
		{e.Pinned, "pinned exchanges hold %s: Unpin them"},
		{e.Ephemeral, "ephemeral messages hold %s: SetEphemeral replaces them"},
		{e.Tools, "tool definitions and the like hold %s: define fewer tools"},
		{e.Room, "Fit is to reserve %s: reserve less"},
	}
	slices.SortStableFunc(shares, func(a, b share) int { return cmp.Compare(b.tokens, a.tokens) })
	var s strings.Builder
	fmt.Fprintf(&s, "convo: cannot fit: %s protected", grouped(e.Floor))
	if e.Room > 0 {
		fmt.Fprintf(&s, " + %s reserved", grouped(e.Room))
	}
	fmt.Fprintf(&s, " tokens exceed limit %s: ", grouped(e.Limit))
	for _, share := range shares {
		if share.tokens > 0 {
			fmt.Fprintf(&s, share.text+"; ", grouped(share.tokens))
		}
	}
	if e.Pool {
		return s.String() + "or use a larger Budget"
	}
	return s.String() + "or raise Limits.Window"
}

// A LimitError says that the next request is larger than the limit, and that
// compaction did not help. Figures are upper bounds in tokens.
type LimitError struct {
	Need  int // the size of the request as it is, or as a refused edit would have left it
	Room  int // what Fit was asked to reserve beside it
	Limit int // what both had to come down to: the limit, and for Recover less than what was refused

	// Compacted reports whether Need is what an edit left, or would have left.
	// If not, nothing could be removed.
	Compacted bool

	Err error // why no edit was applied, such as the error of the strategy; nil: not known
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("convo: cannot fit: %d tokens", e.Need)
	if e.Compacted {
		s += " after compaction"
	}
	remedy := "end the strategy with Truncate in a Chain, or raise Limits.Window"
	if e.Room > 0 {
		s += fmt.Sprintf(" + %d reserved", e.Room)
		remedy = "reserve less, or " + remedy
	}
	s += fmt.Sprintf(" exceed limit %d; ", e.Limit)
	if e.Err != nil {
		s += withoutPrefix(e.Err) + "; "
	}
	return s + remedy
}

// Unwrap returns e.Err.
func (e *LimitError) Unwrap() error { return e.Err }

// A RefusedError says why the result of a strategy or a summarizer was not
// used.
type RefusedError struct {
	Reason string // in words
}

func (e *RefusedError) Error() string { return "convo: refused: " + e.Reason }

// A SnapshotError says what is wrong with a snapshot's JSON, or with a snapshot
// given to [Restore], and where. It unwraps to the cause, such as a
// [PairError].
type SnapshotError struct {
	Index int // the entry's index, as in Snapshot.At; -1 if the error is about the whole snapshot
	ID    ID  // of the entry; 0 if it is not known
	Err   error
}

func (e *SnapshotError) Error() string {
	cause := withoutPrefix(e.Err)
	if e.Index < 0 {
		return "convo: snapshot: " + cause
	}
	const repair = "; Options.Repair makes Restore repair it"
	switch err := e.Err.(type) {
	case *PairError:
		cause = err.fault() + repair
	case *RoleError:
		cause = err.fault() + repair
	case *MessageError:
		cause += repair
	}
	return fmt.Sprintf("convo: snapshot entry %d (ID %d): %s", e.Index, e.ID, cause)
}

// Unwrap returns e.Err.
func (e *SnapshotError) Unwrap() error { return e.Err }

// A PanicError reports a panic in code of the caller's, such as a strategy, a
// tokenizer or Options.Pin.
type PanicError struct {
	// In names the option or the interface whose code panicked, as far as that
	// is known. It is Options.Tokenizer for all code that counts tokens, and
	// CompactionStrategy for a strategy and all that it calls.
	In string

	Value any // the argument of panic
}

func (e *PanicError) Error() string { return fmt.Sprintf("convo: panic in %s: %v", e.In, e.Value) }

// Unwrap returns Value if it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// catch, when deferred, turns a panic in the caller's code into a
// [*PanicError].
func catch(err *error, in string) {
	if v := recover(); v != nil {
		*err = &PanicError{In: in, Value: v}
	}
}

// A wordedError is another error in other words.
type wordedError struct {
	text string // without "convo: "
	err  error
}

func (e *wordedError) Error() string { return "convo: " + e.text }

func (e *wordedError) Unwrap() error { return e.err }

// matches is errors.Is for an error of the caller's, whose methods may panic: then
// it does not match.
func matches(err, target error) (is bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// withoutPrefix returns the text of an error in one line, to stand inside the text
// of another.
func withoutPrefix(err error) string {
	s := strings.ReplaceAll(fmt.Sprint(err), "\nconvo: ", "; ")
	return strings.TrimPrefix(s, "convo: ")
}

// roleName returns r as an error quotes it.
func roleName(r Role) string {
	if r == RoleNone {
		return "no role"
	}
	return fmt.Sprintf("%.20q", string(r))
}
