package session

import (
	"bytes"
	"errors"
	"io"

	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// A valueScanner finds the end of a JSON value that comes in pieces.
type valueScanner struct {
	begun   bool
	depth   int
	text    bool // in a string
	escaped bool // after a backslash
	plain   bool // in a number or a word
}

// scan reads the next piece. It returns how many of its bytes belong to the value, whether
// the value has ended, and whether a value can go on like this.
func (s *valueScanner) scan(data []byte) (n int, done, ok bool) {
	for i, c := range data {
		switch {
		case s.text:
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				if s.text = false; s.depth == 0 {
					return i + 1, true, true
				}
			case c < ' ':
				return i, false, false
			}
		case s.plain && (isSpace(c) || c == ',' || c == ':' || c == ']' || c == '}'):
			return i, true, true
		case s.plain:
		case c == '"':
			s.text, s.begun = true, true
		case c == '{' || c == '[':
			s.depth++
			s.begun = true
		case c == '}' || c == ']':
			if s.depth--; s.depth < 0 {
				return i, false, false
			}
			if s.depth == 0 {
				return i + 1, true, true
			}
		case s.depth > 0:
		case isSpace(c) || c == ',' || c == ':':
			return i, false, false
		default:
			s.plain, s.begun = true, true
		}
	}
	return len(data), false, true
}

// errSyntax is returned for input that is not JSON.
var errSyntax = errors.New("not JSON")

// A stream reads JSON values one by one, so that a long list is never held as a whole.
type stream struct {
	in    *input
	buf   []byte
	line  int  // number of line ends so far
	blank bool // the line has nothing but white space so far
}

// peek returns the next byte that is not white space.
func (s *stream) peek() (byte, error) {
	for {
		b, err := s.in.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b == '\n' {
			s.line++
			s.blank = true
		}
		if !isSpace(b) {
			return b, s.in.r.UnreadByte()
		}
	}
}

// skip reads a byte that peek returned.
func (s *stream) skip() {
	_, _ = s.in.r.Discard(1)
	s.blank = false
}

// value returns the next value, until the next call.
func (s *stream) value() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, err
	}
	if cap(s.buf) > 1<<20 {
		s.buf = nil
	}
	s.buf = s.buf[:0]
	var scan valueScanner
	for {
		if _, err := s.in.r.Peek(1); err != nil {
			if err == io.EOF && scan.plain && scan.depth == 0 {
				return s.valid()
			}
			return nil, unexpected(err)
		}
		chunk, _ := s.in.r.Peek(s.in.r.Buffered())
		n, done, ok := scan.scan(chunk)
		if int64(len(s.buf)+n) > s.in.maxLine {
			return nil, &LimitError{s.in.name, "line", s.in.maxLine}
		}
		if ends := bytes.Count(chunk[:n], []byte{'\n'}); ends > 0 {
			s.line += ends
			s.blank = len(trimSpace(chunk[bytes.LastIndexByte(chunk[:n], '\n'):n])) == 0
		} else if n > 0 {
			s.blank = false
		}
		s.buf = append(s.buf, chunk[:n]...)
		_, _ = s.in.r.Discard(n)
		switch {
		case !ok:
			return nil, errSyntax
		case done:
			return s.valid()
		}
	}
}

func (s *stream) valid() ([]byte, error) {
	if !strictjson.Valid(s.buf) {
		return nil, errSyntax
	}
	return s.buf, nil
}

// unexpected returns err, or io.ErrUnexpectedEOF for io.EOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// list calls f at each element of the list that comes next. f reads the element.
func (s *stream) list(f func() error) error { return s.items('[', ']', f) }

// object calls f at each value of the object that comes next. f reads the value.
func (s *stream) object(f func(key string) error) error {
	return s.items('{', '}', func() error {
		b, err := s.peek()
		if err != nil {
			return unexpected(err)
		}
		if b != '"' {
			return errSyntax
		}
		raw, err := s.value()
		if err != nil {
			return unexpected(err)
		}
		key := textOf(raw)
		if b, err = s.peek(); err != nil {
			return unexpected(err)
		}
		if b != ':' {
			return errSyntax
		}
		s.skip()
		return f(key)
	})
}

// items calls f at each element between two brackets.
func (s *stream) items(open, end byte, f func() error) error {
	b, err := s.peek()
	if err != nil {
		return unexpected(err)
	}
	if b != open {
		return errSyntax
	}
	s.skip()
	for first := true; ; first = false {
		b, err := s.peek()
		if err != nil {
			return unexpected(err)
		}
		if first && b == end {
			s.skip()
			return nil
		}
		if err := f(); err != nil {
			return unexpected(err)
		}
		if b, err = s.peek(); err != nil {
			return unexpected(err)
		}
		switch b {
		case end:
			s.skip()
			return nil
		case ',':
			s.skip()
		default:
			return errSyntax
		}
	}
}

// skipLine skips the rest of a line that cannot be read. The value that cannot be read
// began in line from; if the next line has been reached, it is read from its beginning.
func (s *stream) skipLine(from int) error {
	if s.blank && s.line > from {
		return nil
	}
	for {
		_, err := s.in.r.ReadSlice('\n')
		if err == nil {
			s.line++
			s.blank = true
			return nil
		}
		if err.Error() != "bufio: buffer full" {
			return err
		}
	}
}
