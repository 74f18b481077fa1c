package convo

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of a History.
var (
	// ErrClosed is returned by every change of a closed History.
	ErrClosed = errors.New("convo: history is closed")

	// ErrNotFound is matched by an [IDError], and returned by PinLast when there
	// is nothing to pin.
	ErrNotFound = errors.New("convo: not found")

	// ErrStale is returned when a snapshot no longer fits the History: it is
	// of another one or of none, a rollback has taken entries of it back, or
	// what an edit names has changed since.
	ErrStale = errors.New("convo: stale snapshot")

	// ErrVersion is returned for data in a format that this version of the
	// package does not know.
	ErrVersion = errors.New("convo: unknown version")

	// ErrBudget is matched by a [BudgetError].
	ErrBudget = errors.New("convo: budget exhausted")
)

// Errors of a compaction.
var (
	// ErrReentrant is returned when a strategy or summarizer asks the History
	// that called it for another compaction, or waits for one, with its ctx or
	// one made of it; also later, when it has kept that ctx.
	ErrReentrant = errors.New("convo: compaction inside a compaction")

	// ErrNoGain is the cause when a compaction was declined because it could
	// free too little to be worth it. A strategy returns it to decline.
	ErrNoGain = errors.New("convo: too little to gain")

	// ErrBreaker is the cause when a summarizer was not called because it
	// failed a short while ago. A strategy returns it to decline.
	ErrBreaker = errors.New("convo: summarizer failed a short while ago")
)

// Rules of pairing, in a [PairError].
var (
	// ErrDuplicateCall: two calls of one assistant message have the same ID.
	ErrDuplicateCall = errors.New("two calls with one id in one message")

	// ErrNoOpenCall: a result answers no call of the newest exchange.
	ErrNoOpenCall = errors.New("result for no open call")

	// ErrAnswered: a second result answers a call of the newest exchange.
	ErrAnswered = errors.New("second result for one call")

	// ErrOpenCalls: a message other than a result comes while calls are open.
	// Answer them, or see [History.AnswerOpenCalls].
	ErrOpenCalls = errors.New("a call is still open")
)

// A ValueError says that a plain value (an option, a limit, a usage figure)
// is out of its range.
type ValueError struct {
	Name  string // such as "Limits.High"
	Value any
	Want  string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("convo: %s is %v, want %s", e.Name, e.Value, e.Want)
}

// A MessageError says what is wrong inside one message.
type MessageError struct {
	Index  int  // position in the batch or list, from 0
	Role   Role // of the message
	Part   int  // position among its parts, -1 when it is about the message
	Reason string
}

func (e *MessageError) Error() string {
	if e.Part < 0 {
		return fmt.Sprintf("convo: message %d (%s): %s", e.Index, roleName(e.Role), e.Reason)
	}
	return fmt.Sprintf("convo: message %d (%s), part %d: %s", e.Index, roleName(e.Role), e.Part, e.Reason)
}

// A RoleError says that a message may not stand where it was to be put.
type RoleError struct {
	Attempted   Role
	Previous    Role // RoleNone when HasPrevious is false
	HasPrevious bool // false: no message came before
	Index       int  // position in the batch or list, from 0
}

func (e *RoleError) Error() string {
	s := fmt.Sprintf("convo: message %d: %s first", e.Index, e.Attempted)
	if e.HasPrevious {
		s = fmt.Sprintf("convo: message %d: %s after %s", e.Index, e.Attempted, e.Previous)
	}
	switch {
	case e.Attempted == RoleSystem:
		s += "; system messages stand in front, SetSystem replaces them"
	case e.Attempted == RoleUser && e.Previous == RoleUser:
		s += "; after a failed request Rewind(1) takes the user message back"
	}
	return s
}

// A PairError says that calls and results do not pair. It unwraps to
// [ErrDuplicateCall], [ErrNoOpenCall], [ErrAnswered] or [ErrOpenCalls].
type PairError struct {
	Err    error
	CallID string // the call or result at fault; the first open call for ErrOpenCalls
	Name   string // of the tool, as far as known
	Index  int    // position in the batch or list, from 0
}

func (e *PairError) Error() string {
	return fmt.Sprintf("convo: message %d: %v (id %q, tool %q)", e.Index, e.Err, e.CallID, e.Name)
}

func (e *PairError) Unwrap() error { return e.Err }

// An IDError says that no entry of the view has the ID. It matches
// [ErrNotFound].
type IDError struct{ ID ID }

func (e *IDError) Error() string { return fmt.Sprintf("convo: entry %d: not in the view", e.ID) }

// Is reports whether target is [ErrNotFound].
func (e *IDError) Is(target error) bool { return target == ErrNotFound }

// An EditError says that an [Edit] breaks a rule. Nothing was applied.
type EditError struct {
	Rule   string // in words
	ID     ID     // the entry at fault, 0 when it is none
	CallID string // the result at fault, for a Clear
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

// A BudgetError says that a [Budget] has too little left. It matches
// [ErrBudget].
type BudgetError struct {
	Need, Free int // tokens
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("convo: budget: need %d tokens, %d are free", e.Need, e.Free)
}

// Is reports whether target is [ErrBudget].
func (e *BudgetError) Is(target error) bool { return target == ErrBudget }

// A FloorError says that what no reduction may take is more than the limit: a
// larger window, fewer pins or less to be kept free are the only ways out. No
// strategy was run. Tokens are upper bounds; the shares add up to Floor.
type FloorError struct {
	Floor int // what stays at least
	Room  int // what Fit was to keep free beside it
	Limit int // of both together

	System, Newest, Users, Pinned, Ephemeral, Overhead int // Newest: the newest exchange; Users: of the newest turn
}

func (e *FloorError) Error() string {
	room := ""
	if e.Room > 0 {
		room = fmt.Sprintf(", with %d to be kept free,", e.Room)
	}
	return fmt.Sprintf("convo: floor of %d tokens%s above the limit of %d (system %d, newest exchange %d, user messages of the newest turn %d, pinned %d, ephemeral %d, overhead %d)",
		e.Floor, room, e.Limit, e.System, e.Newest, e.Users, e.Pinned, e.Ephemeral, e.Overhead)
}

// A LimitError says that a compaction would not have brought the request under
// the limit, and was not applied. Tokens are upper bounds.
type LimitError struct {
	Need  int // what the request would weigh after it
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("convo: request of %d tokens after compaction, above the limit of %d", e.Need, e.Limit)
}

// A RefusedError says why what a strategy or a summarizer returned was not
// used.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "convo: refused: " + e.Reason }

// A SnapshotError says what is wrong in a snapshot's JSON, or in a snapshot
// that [Restore] was given, and where. It unwraps to the cause, such as a
// [PairError].
type SnapshotError struct {
	Index int // position as Snapshot.At counts, -1 when it is about the whole
	ID    ID  // of the entry, 0 when unknown
	Err   error
}

func (e *SnapshotError) Error() string {
	cause := strings.TrimPrefix(fmt.Sprint(e.Err), "convo: ")
	if e.Index < 0 {
		return "convo: snapshot: " + cause
	}
	return fmt.Sprintf("convo: snapshot entry %d (ID %d): %s", e.Index, e.ID, cause)
}

func (e *SnapshotError) Unwrap() error { return e.Err }

// A PanicError is what a panic of the caller's code (a strategy, a tokenizer,
// Options.Pin) becomes.
type PanicError struct {
	In    string // the option or interface whose code panicked, as far as it is known: Options.Tokenizer for all that counts, CompactionStrategy for all that it calls
	Value any    // what was given to panic
}

func (e *PanicError) Error() string { return fmt.Sprintf("convo: panic in %s: %v", e.In, e.Value) }

// Unwrap returns the value of the panic when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// catch turns a panic of the caller's code into an error. It is deferred.
func catch(err *error, in string) {
	if v := recover(); v != nil {
		*err = &PanicError{In: in, Value: v}
	}
}

func roleName(r Role) string {
	if r == RoleNone {
		return "no role"
	}
	return fmt.Sprintf("%.20q", string(r))
}
