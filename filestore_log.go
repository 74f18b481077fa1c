package convo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// tailSize is how many bytes are read first at the end of a log. Most records that
// are not full are shorter.
const tailSize = 32 << 10

// A logTail is what is at the end of a log.
type logTail struct {
	logLine       // the newest record; ID "": there is none
	end     int64 // of its line
	torn    int64 // bytes after it
}

// readTail reads the last line of the first size bytes. A line after it that was
// not written whole, which lacks its newline or holds a NUL, is passed over. Key may
// be empty, for a key that is not known.
func readTail(f io.ReaderAt, key string, size int64) (logTail, error) {
	for n := min(size, tailSize); ; n = min(size, 4*n) {
		text := make([]byte, n)
		if _, err := f.ReadAt(text, size-n); err != nil && err != io.EOF {
			return logTail{}, err
		}
		whole := text
		if i := bytes.LastIndexByte(whole, '\n') + 1; i < len(whole) {
			whole = whole[:i]
		} else if i := startOfLast(whole); bytes.IndexByte(whole[i:], 0) >= 0 {
			whole = whole[:i]
		}
		start := startOfLast(whole)
		if start == 0 && n < size {
			if n < 2*maxLine {
				continue
			}
			return logTail{end: size}, damageOr(f, key, size-n, errors.New("there is no newline for longer than any record is"))
		}
		t := logTail{end: size - n + int64(len(whole)), torn: n - int64(len(whole))}
		if len(whole) == 0 {
			return t, nil
		}
		var err error
		t.logLine, err = parseLine(whole[start:])
		t.at = size - n + int64(start)
		if err == nil {
			err = t.checkKey(key)
		}
		if err == nil && !t.Full && (t.back == 0 || t.back > t.at) {
			err = errors.New("the record has no full one before it")
		}
		return t, damageOr(f, key, t.at, err)
	}
}

// startOfLast returns where the last line in text begins. The text ends with a
// newline, or is empty.
func startOfLast(text []byte) int {
	return bytes.LastIndexByte(text[:max(0, len(text)-1)], '\n') + 1
}

// checkKey returns an error if the line is of the log of another key.
func (l *logLine) checkKey(key string) error {
	if key != "" && l.Key != key {
		return fmt.Errorf("the record is of the key %.40q", l.Key)
	}
	return nil
}

// damageOr returns the error for a fault in the line that begins at a place: nil,
// ErrVersion, or a *DamageError.
func damageOr(f io.ReaderAt, key string, at int64, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("%w, in the log of %.40q at byte %d; a later release reads it", err, key, at)
	}
	return &DamageError{Key: key, Offset: at, Seq: goodBefore(f, key, at), Err: err}
}

// goodBefore returns the Seq of the newest record before a place that can be
// loaded: no damage is between it and the full record that it rests on.
func goodBefore(f io.ReaderAt, key string, at int64) uint64 {
	s := newScan(f, key, 0, at)
	var seq uint64
	for {
		l, err := s.read()
		switch {
		case err == nil:
			seq = l.Seq
		case s.off >= at || !errors.Is(err, errLine):
			return seq
		default:
			s.begun = false
		}
	}
}

// errLine marks what is wrong with a line, rather than with reading it.
var errLine = errors.New("convo: bad line")

// A logScan reads lines from a full record on.
type logScan struct {
	f    io.ReaderAt
	key  string
	r    *bufio.Reader
	off  int64  // of the next line
	end  int64  // where to stop
	text []byte // a line longer than the buffer of r

	begun bool // a record was read, on which the next one rests
	seq   uint64
	id    string
	full  int64 // offset of the newest full record
}

func newScan(f io.ReaderAt, key string, start, end int64) *logScan {
	return &logScan{f: f, key: key, off: start, end: end, r: bufio.NewReaderSize(io.NewSectionReader(f, start, end-start), 64<<10)}
}

// next returns the next record, or io.EOF.
func (s *logScan) next() (logLine, error) {
	at, seq, begun := s.off, s.seq, s.begun
	l, err := s.read()
	switch {
	case err == nil || !errors.Is(err, errLine):
		return l, err
	case errors.Is(err, ErrVersion) || !begun:
		return l, damageOr(s.f, s.key, at, withoutMark(err))
	}
	return l, &DamageError{Key: s.key, Offset: at, Seq: seq, Err: withoutMark(err)}
}

// A lineError is what is wrong with a line.
type lineError struct{ error }

func (e lineError) Is(target error) bool { return target == errLine }
func (e lineError) Unwrap() error        { return e.error }

func withoutMark(err error) error {
	if e, ok := errors.AsType[lineError](err); ok {
		return e.error
	}
	return err
}

// read returns the next record, io.EOF, or a lineError, after which it can go on.
func (s *logScan) read() (logLine, error) {
	at := s.off
	text, err := s.line()
	if err != nil {
		return logLine{}, err
	}
	l, err := parseLine(text)
	l.at = at
	if err == nil {
		err = l.checkKey(s.key)
	}
	if err == nil {
		err = s.follows(&l)
	}
	if err != nil {
		return l, lineError{err}
	}
	if l.Full {
		s.full = at
	}
	s.begun, s.seq, s.id = true, l.Seq, l.ID
	return l, nil
}

// line returns the next line.
func (s *logScan) line() ([]byte, error) {
	text, err := s.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		s.text = append(s.text[:0], text...)
		for err == bufio.ErrBufferFull {
			text, err = s.r.ReadSlice('\n')
			if s.text = append(s.text, text...); len(s.text) > maxLine {
				return nil, lineError{errors.New("the line is longer than any record is")}
			}
		}
		text = s.text
	}
	s.off += int64(len(text))
	if err == io.EOF && len(text) > 0 {
		return nil, lineError{errors.New("the line has no end")}
	}
	return text, err
}

// follows returns an error if l cannot follow the record that was read last.
func (s *logScan) follows(l *logLine) error {
	switch {
	case !s.begun && !l.Full:
		return errors.New("the first record is not full")
	case !s.begun:
		return nil
	case l.Seq != s.seq+1:
		return fmt.Errorf("record %d follows record %d", l.Seq, s.seq)
	case l.Prev != s.id:
		return fmt.Errorf("record %d does not name the one before it", l.Seq)
	case l.back != l.at-s.full:
		return fmt.Errorf("record %d does not lead to the full record before it", l.Seq)
	}
	return nil
}

// findFull returns where the newest full record with a Seq of at most most begins, or
// the first record if all full ones are newer. It reads the headers of the full
// records on the way.
func findFull(f io.ReaderAt, t *logTail, most uint64) (int64, error) {
	l := t.logLine
	for !l.Full || l.Seq > most {
		if l.back == 0 || l.back > l.at {
			return 0, nil
		}
		// The byte before it is read too, to see that a line begins here.
		var text [1 + maxHeader]byte
		older := logLine{at: l.at - l.back}
		from := min(older.at, 1)
		n, err := f.ReadAt(text[1-from:], older.at-from)
		if err != nil && err != io.EOF {
			return older.at, err
		}
		if from == 1 && text[0] != '\n' {
			return older.at, lineError{errors.New("no line begins here")}
		}
		if _, err = older.parseHeader(text[1 : 1-from+int64(n)]); err != nil || !older.Full || older.Seq >= l.Seq {
			return older.at, lineError{errors.New("this is not the full record that a later one rests on")}
		}
		l = older
	}
	return l.at, nil
}
