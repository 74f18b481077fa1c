package session

import "fmt"

// An UnknownError is returned for an input that is in none of the formats.
type UnknownError struct {
	Name   string // of the input
	Reason string // what it is instead, and what to do
}

func (e *UnknownError) Error() string { return e.Name + ": " + e.Reason }

// A DatabaseError is returned for a SQLite database, which this package does not read.
type DatabaseError struct {
	Name    string // of the input
	Program string // that the tables belong to; empty: not known
	Hint    string // what reads it
}

func (e *DatabaseError) Error() string {
	program := ""
	if e.Program != "" {
		program = " of " + e.Program
	}
	return fmt.Sprintf("%s: a SQLite database%s, which cannot be read here: %s", e.Name, program, e.Hint)
}

// A LimitError is returned for an input with a line or a session above a limit of Options.
type LimitError struct {
	Name  string // of the input
	What  string // what is too large: "line" or "session"
	Limit int64  // in bytes
}

func (e *LimitError) Error() string {
	limit := fmt.Sprintf("%d bytes", e.Limit)
	if e.Limit >= 1<<20 && e.Limit%(1<<20) == 0 {
		limit = fmt.Sprintf("%d MiB", e.Limit>>20)
	}
	if e.What == "line" {
		return fmt.Sprintf("%s: a line or value of more than %s: split the file", e.Name, limit)
	}
	return fmt.Sprintf("%s: the session takes more than %s of memory: split the file", e.Name, limit)
}
