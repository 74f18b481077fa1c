package wording

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/causes"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// An Error is an error with a text of its own.
type Error struct {
	Text string // without "convo: "
	Err  error  // what it wraps; nil: nothing
}

func (e *Error) Error() string { return "convo: " + e.Text }

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// A List is what errors.Join returns, but its errors can be read.
type List []error

func (e List) Error() string { return errors.Join(e...).Error() }

// Unwrap returns the errors.
func (e List) Unwrap() []error { return e }

// An advised error has a remedy, which the text of another error leaves out.
type advised struct{ fault, remedy string }

func (e *advised) Error() string { return "convo: " + e.fault + "; " + e.remedy }

// Advised returns an error whose remedy Plain leaves out.
func Advised(fault, remedy string) error { return &advised{fault, remedy} }

// Errorf is fmt.Errorf for a text around other errors, which begins with the only "convo: ". It
// wraps all errors among args.
func Errorf(format string, args ...any) error {
	var wrapped []error
	for i, a := range args {
		if err, ok := a.(error); ok {
			wrapped = append(wrapped, err)
			args[i] = Plain(err)
		}
	}
	e := &Error{Text: fmt.Sprintf(strings.ReplaceAll(format, "%w", "%s"), args...), Err: wrapped[0]}
	if len(wrapped) > 1 {
		e.Err = List(wrapped)
	}
	return e
}

// Plain returns the text of an error on one line, for use in the text of another: without
// "convo: " and without the remedy of an Advised.
func Plain(err error) string {
	s := strings.ReplaceAll(fmt.Sprint(err), "\nconvo: ", "; ")
	return strings.TrimPrefix(causes.Reworded(s, err, func(e error) string {
		if e, ok := e.(*advised); ok {
			return e.fault
		}
		return ""
	}), "convo: ")
}

// Short returns an error's text in one line. The middle of a long text is left out, because
// the first cause is often at the end.
func Short(err error) string {
	const most = 240
	s := strings.Join(strings.Fields(strings.ReplaceAll(Plain(err), "convo: ", "")), " ")
	if len(s) > most {
		s = s[:text.Floor(s, most/2)] + " … " + s[text.Ceil(s, len(s)-most/2):]
	}
	return s
}

// A LeftAside says why the messages of Options.AfterCompaction were left aside.
type LeftAside struct {
	Err   error
	Cause error // what else went wrong; may be nil
}

// Text returns the text without Cause.
func (e *LeftAside) Text() string {
	return "messages of AfterCompaction left aside: " + Short(e.Err)
}

func (e *LeftAside) Error() string {
	s := "convo: " + e.Text()
	if e.Cause != nil {
		s += "; " + Short(e.Cause)
	}
	return s
}

// Unwrap returns both errors.
func (e *LeftAside) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// CauseOf returns why ctx ended: an error that wraps both ctx's error and its cause.
func CauseOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if causes.Is(cause, err) {
		return cause
	}
	return Errorf("%w (%w)", cause, err)
}

// WithEnd returns an error of caller-supplied code. If ctx has ended, the error also matches
// ctx's error and its cause.
func WithEnd(ctx context.Context, err error) error {
	end := ctx.Err()
	if err == nil || end == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch isEnd, isCause := causes.Is(err, end), causes.Is(err, cause); {
	case isEnd && isCause:
		return err
	case isEnd:
		return Errorf("%w (%w)", err, cause)
	case isCause:
		return Errorf("%w (%w)", err, end)
	}
	return Errorf("%w (%w)", err, CauseOf(ctx))
}

// WithBothEnds returns an error of a Store. If it is ctx's error or its cause, it matches both;
// any other error remains as it is, such as a conflict that was found as ctx ended.
func WithBothEnds(ctx context.Context, err error) error {
	if end := ctx.Err(); err == nil || end == nil || !causes.Is(err, end) && !causes.Is(err, context.Cause(ctx)) {
		return err
	}
	return WithEnd(ctx, err)
}

// A Limit is a LimitError of package convo.
type Limit struct {
	Need, Room, Limit int
	Compacted         bool
	Err               error
}

func (l Limit) String() string {
	s := fmt.Sprintf("cannot fit: %s tokens", text.Grouped(l.Need))
	if l.Compacted {
		s += " after compaction"
	}
	remedy := "end the strategy with Truncate in a Chain, or raise Limits.Window"
	if l.Room > 0 {
		s += fmt.Sprintf(" + %s reserved", text.Grouped(l.Room))
		remedy = "reserve less, or " + remedy
	}
	s += fmt.Sprintf(" exceed limit %s; ", text.Grouped(l.Limit))
	if l.Err != nil {
		s += Plain(l.Err) + "; "
	}
	return s + remedy
}

// Value returns the text of a ValueError.
func Value(name string, value any, want string) string {
	is := fmt.Sprint(value)
	switch v := value.(type) {
	case string:
		is = strconv.Quote(v)
	case int:
		is = text.Grouped(v)
	}
	return fmt.Sprintf("%s is %s, want %s", name, is, want)
}

// Edit returns the text of an EditError. What follows a semicolon in the rule is its remedy.
func Edit(rule string, id int64, callID string) string {
	fault, remedy, more := strings.Cut(rule, "; ")
	s := "edit: " + fault
	if id != 0 {
		s += fmt.Sprintf(" (entry %d)", id)
	}
	if callID != "" {
		s += fmt.Sprintf(" (call %q)", callID)
	}
	if more {
		s += "; " + remedy
	}
	return s
}

// Ambiguous says which calls of a tool a result without an ID could answer.
func Ambiguous(calls []string, tool string) string {
	const most = 8
	short := slices.Clone(calls[:min(len(calls), most)])
	for i, id := range short {
		short[i] = Abbreviate(id)
	}
	list := fmt.Sprintf("%q", short)
	if more := len(calls) - most; more > 0 {
		list += fmt.Sprintf(" and %s more", text.Grouped(more))
	}
	return fmt.Sprintf("result without an ID could answer the calls %s (tool %q)", list, Abbreviate(tool))
}

// Answer returns the text of an AnswerError: of an answer that was cut off in the call of a tool,
// or of an empty one. long says that it was as long as it may be, and why how it ended.
func Answer(tool string, cutOff, long, appended, open bool, why string) string {
	fault := "is empty"
	if cutOff {
		fault = fmt.Sprintf("was cut off in a call of tool %q", Abbreviate(tool))
	}
	remedy := "ask the model again"
	switch {
	case open:
		remedy = "append the results of the open calls, and " + remedy
	case appended:
		remedy = "append a user message to go on, or take the answer back with RewindTo"
	}
	if long {
		remedy = "let the model write more tokens, and " + remedy
	}
	return fmt.Sprintf("the answer %s (%s); %s", fault, why, remedy)
}

// AsWritten is the remedy for data that is not as it was written.
const AsWritten = "; pass the data as it was written"

// Damage returns the text of a DamageError.
func Damage(key string, offset int64, seq uint64, err error) string {
	at := ""
	if offset >= 0 {
		at = fmt.Sprintf(" at byte %d", offset)
	}
	way := "no state before that is whole"
	if seq > 0 {
		way = fmt.Sprintf("record %d is the newest whole one before that", seq)
	}
	cause := strings.TrimSuffix(Plain(err), AsWritten)
	return fmt.Sprintf("the log of %q is damaged%s: %s; %s; Salvage copies what can be read to another key", key, at, cause, way)
}

// Conflict returns the text of a ConflictError.
func Conflict(key string, have, want uint64) string {
	switch {
	case have == 0:
		return fmt.Sprintf("save %q as record %d: the log was deleted; call Attach to begin a new one", key, want)
	case want == 1:
		return fmt.Sprintf("save %q: the key is in use; Open it, or choose another key", key)
	}
	return fmt.Sprintf("save %q as record %d: another has saved record %d; call Reload, then Save", key, want, have)
}

// Row returns the text of a RowError.
func Row(key, fault string, err error) string {
	s := fmt.Sprintf("row %q %s", Abbreviate(key), rowAdvice[fault])
	if err != nil {
		s += ": " + Plain(err)
	}
	return s
}

var rowAdvice = map[string]string{
	"missing":    "is missing; give it, or take it out of the view before it is deleted, as with Edit.Drop",
	"changed":    "is not what it was when the view was made; Decisions.Accept takes it as it is",
	"twice":      "is there twice; give each message a key of its own",
	"unexpected": "cannot stand here; give the rows that Needs names, in the order in which they were appended, without those that were taken back; a message that was queued comes after the results or the answer that it waited for",
}

// Abbreviate returns the beginning of a text that is printed or quoted.
func Abbreviate(s string) string { return text.Abbreviate(s, 64) }
