// Package cli is what the subcommands of convo have in common: where they read and write,
// their flags, their exit codes, and how they print for a terminal.
package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// The exit codes of all subcommands.
const (
	OK          = 0   // done, and there is nothing to report
	Findings    = 1   // done, and there is something to report, or the result is not good enough
	Usage       = 2   // the command line is wrong; nothing was read
	Unreadable  = 3   // an input cannot be read, though the others were, or the output cannot be written
	Interrupted = 130 // stopped by an interrupt
)

// A Command is a subcommand.
type Command struct {
	Name string
	Help string // one line

	// Run does the work and returns the exit code. The arguments do not include the name.
	Run func(ctx Context, env *Env, args []string) int
}

// An Env is where a subcommand reads and writes.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// Direct is Stdout without a buffer, for another program.
	Direct io.Writer

	StdinTerminal  bool
	StdoutTerminal bool
	StderrTerminal bool

	Width int  // the columns of the output: those of the terminal, or 80
	Color bool // whether to write escape sequences for colours
}

// NewEnv returns the Env for three streams. Those that are files may be terminals.
func NewEnv(stdin io.Reader, stdout, stderr io.Writer) *Env {
	env := &Env{Stdin: stdin, Stdout: stdout, Stderr: stderr, Direct: stdout, Width: 80}
	env.StdinTerminal, _ = terminal(stdin)
	env.StderrTerminal, _ = terminal(stderr)
	var width int
	if env.StdoutTerminal, width = terminal(stdout); env.StdoutTerminal {
		if width > 0 {
			env.Width = max(width, 20)
		}
		env.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && colors(stdout)
	}
	return env
}

// Buffered calls run with an Env whose Stdout is buffered, and returns the exit code. A reader
// of the output that goes away, as head does, is no error.
func (e *Env) Buffered(run func(*Env) int) int {
	out := bufio.NewWriterSize(e.Stdout, 1<<16)
	inner := *e
	inner.Stdout = out
	code := run(&inner)
	if err := out.Flush(); err != nil && !isBrokenPipe(err) {
		return e.Fail(Unreadable, "the output cannot be written: %w", plain(err))
	}
	return code
}

// Fail prints an error and returns the exit code.
func (e *Env) Fail(code int, format string, args ...any) int {
	e.Note("convo: "+format, args...)
	return code
}

// Note prints a line for a person to the standard error.
func (e *Env) Note(format string, args ...any) {
	text := Visible(fmt.Errorf(format, args...).Error()) + "\n"
	if e.StderrTerminal {
		var b strings.Builder
		for line := range strings.Lines(text) {
			if Columns(line) > e.Width {
				line = Wrap(line, e.Width, "")
			}
			b.WriteString(line)
		}
		text = b.String()
	}
	_, _ = io.WriteString(e.Stderr, text)
}

// isBrokenPipe reports whether a write failed because its reader has gone away.
func isBrokenPipe(err error) bool {
	for _, broken := range brokenPipe {
		if errors.Is(err, broken) {
			return true
		}
	}
	return errors.Is(err, io.ErrClosedPipe)
}

// WriteJSON writes JSON and a line break. For a terminal, control characters in it are
// escaped; the value stays the same.
func (e *Env) WriteJSON(data []byte) {
	if e.StdoutTerminal {
		data = visibleJSON(data)
	}
	_, _ = e.Stdout.Write(append(data, '\n')) // the writer keeps its error
}

// plain returns the cause of an error about a file, without the operation and the name.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
