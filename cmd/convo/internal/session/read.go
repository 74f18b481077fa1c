package session

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/formats"
)

// Options say how to read an input. The zero Options are useful.
type Options struct {
	Format     string // one of Formats; empty: recognise it
	MaxLine    int64  // the most bytes of a line, or of a message in a list; 0: 256 MiB
	MaxSession int64  // the most memory for a session, in bytes, roughly; 0: 1 GiB
}

// The formats, as Session and Options name them. The wire formats have the names of
// package wire.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Pi         = "pi"
	Kit        = "kit"
	GeminiCLI  = "gemini-cli"
)

// Formats returns the names of the formats that Read reads.
func Formats() []string {
	return append([]string{ClaudeCode, Codex, Pi, Kit, GeminiCLI}, formats.Main()...)
}

// Read yields the sessions of one input, recognised by content: the session file of another
// program, or requests, answers and lists of messages in a wire format, as one JSON document
// or one for each line. name is used in errors only.
//
// Read holds one session at a time; reading goes on when the loop asks for the next one.
// The last pair has an error if the input cannot be read to its end. Errors are an
// [*UnknownError], a [*DatabaseError], a [*LimitError] or that of r. Damaged lines are
// counted and give no error. Those after the last session are in the Counts of a Session
// without Events.
//
// The sequence can be ranged over once.
func Read(r io.Reader, name string, o Options) iter.Seq2[*Session, error] {
	return func(yield func(*Session, error) bool) {
		in := newInput(r, name, o)
		format, err := in.recognize()
		if err != nil {
			yield(nil, err)
			return
		}
		var read func(*input) (*Session, error)
		switch format {
		case ClaudeCode:
			read = readClaude
		case Codex:
			read = readCodex
		case Pi, Kit:
			read = readPi
		case GeminiCLI:
			read = readGeminiCLI
		default:
			readWire(in, format, yield)
			return
		}
		s, err := read(in)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(s, nil)
	}
}

// An input is what is left to read of a file.
type input struct {
	r          *bufio.Reader
	name       string
	format     string // that the caller named
	maxLine    int64
	maxSession int64
	held       int64 // estimate of the memory of the session that is being read
	line       []byte
}

// headSize is how many bytes are looked at to recognise a format. Records without any sign
// of their program may come first, and they may be long.
const headSize = 256 << 10

func newInput(r io.Reader, name string, o Options) *input {
	return &input{
		r: bufio.NewReaderSize(r, headSize), name: name, format: o.Format,
		maxLine: cmp.Or(max(o.MaxLine, 0), 256<<20), maxSession: cmp.Or(max(o.MaxSession, 0), 1<<30),
	}
}

// hold counts memory that the session takes, and returns an error if it is too much.
func (in *input) hold(n int) error {
	if in.held += int64(n); in.held > in.maxSession {
		return &LimitError{in.name, "session", in.maxSession}
	}
	return nil
}

// readError returns an error of the reader with the name of the input, unless it has it.
func (in *input) readError(err error) error {
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", in.name, err)
}

// next returns the next line that is not blank, without its end, until the next call. last
// reports that the input ended without the end of this line. After the last line it returns
// io.EOF.
func (in *input) next() (line []byte, last bool, err error) {
	for {
		line, last, err = in.anyLine()
		if err != nil || len(line) > 0 {
			return line, last, err
		}
	}
}

func (in *input) anyLine() (line []byte, last bool, err error) {
	const enough = 1 << 20 // more is not kept for the next line
	if cap(in.line) > enough {
		in.line = nil
	}
	in.line = in.line[:0]
	for {
		chunk, err := in.r.ReadSlice('\n')
		if int64(len(in.line)+len(chunk)) > in.maxLine {
			return nil, false, &LimitError{in.name, "line", in.maxLine}
		}
		if err == nil && len(in.line) == 0 {
			return trimSpace(chunk), false, nil
		}
		in.line = append(in.line, chunk...)
		switch {
		case err == nil:
			return trimSpace(in.line), false, nil
		case err == bufio.ErrBufferFull:
			if n := len(in.line); n == cap(in.line) { // not more than needed at the end of a long line
				in.line = slices.Grow(in.line, max(n/2, headSize))
			}
		case err == io.EOF:
			if len(trimSpace(in.line)) == 0 {
				return nil, true, io.EOF
			}
			return trimSpace(in.line), true, nil
		default:
			return nil, false, in.readError(err)
		}
	}
}

func trimSpace(line []byte) []byte {
	for len(line) > 0 && isSpace(line[0]) {
		line = line[1:]
	}
	for len(line) > 0 && isSpace(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return line
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// records yields the fields of each line, and counts those that are not an object. The
// fields are valid until the next one.
func (in *input) records(c *Counts) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		for {
			line, last, err := in.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			c.Records++
			all, ok := parseObject(line)
			if !ok {
				if last || in.atEnd() {
					c.Torn = 1
				} else {
					c.Unknown++
				}
				continue
			}
			if !yield(all, nil) {
				return
			}
		}
	}
}

// atEnd reports whether nothing follows.
func (in *input) atEnd() bool {
	_, err := in.r.Peek(1)
	return err == io.EOF
}

// isFormat reports whether a name is one of Formats.
func isFormat(name string) bool { return slices.Contains(Formats(), name) }

func formatList() string { return strings.Join(Formats(), ", ") }
