package filestore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/seed-c1b73e60/convo"
)

// tailSize is the number of bytes that are read first at the end of a log. Most records
// that are not full are shorter.
const tailSize = 32 << 10

// A logTail is the end of a log.
type logTail struct {
	logLine        // the newest record; if its ID is "", there is none
	end     int64  // offset of the end of its line
	torn    int64  // number of bytes after its line
	sum     uint64 // sum of its line, if this store remembers it
}

// readTail reads the last complete line of the first size bytes. It skips an incomplete
// line after that: one without a newline or with a NUL. Another byte instead of the newline
// of a complete line is damage. Key is empty if the key is not known.
func readTail(f io.ReaderAt, key string, size int64) (logTail, error) {
	var text []byte
	for n := min(size, tailSize); ; n = min(size, 4*n) {
		more := make([]byte, n)
		fresh := n - int64(len(text))
		if _, err := f.ReadAt(more[:fresh], size-n); err != nil && err != io.EOF {
			return logTail{}, err
		}
		copy(more[fresh:], text)
		text = more
		whole := text
		if i := bytes.LastIndexByte(whole, '\n') + 1; i < len(whole) {
			if changedEnd(whole[i:]) != nil {
				return logTail{end: size}, lastDamage(f, key, size)
			}
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

// changedEnd returns an error if text is a complete line with another byte instead of its
// newline. A crash leaves no other byte than a NUL there.
func changedEnd(text []byte) error {
	end := len(text) - 1
	if text[end] == 0 {
		return nil
	}
	if _, err := parseLine(text[:end]); err != nil && !errors.Is(err, convo.ErrVersion) {
		return nil
	}
	return fmt.Errorf("the line ends with the byte %#02x instead of a newline", text[end])
}

// startOfLast returns the index of the last line in text. The text ends with a newline,
// or is empty.
func startOfLast(text []byte) int {
	const block = 4 << 10 // IndexByte is many times faster than LastIndexByte
	for end := max(0, len(text)-1); end > 0; end -= min(end, block) {
		if part := text[max(0, end-block):end]; bytes.IndexByte(part, '\n') >= 0 {
			return max(0, end-block) + bytes.LastIndexByte(part, '\n') + 1
		}
	}
	return 0
}

// checkKey returns an error if the line belongs to the log of another key.
func (l *logLine) checkKey(key string) error {
	if key != "" && l.Key != key {
		return fmt.Errorf("the record is of the key %.40q", l.Key)
	}
	return nil
}

// damageOr returns the error to report for an error in the line at the offset at: nil,
// an error that matches ErrVersion, or a *DamageError.
func damageOr(f io.ReaderAt, key string, at int64, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, convo.ErrVersion) {
		return laterVersion(key, at, err)
	}
	s := newScan(f, key, 0, at)
	s.skip()
	return &convo.DamageError{Key: key, Offset: at, Seq: s.whole, Err: err}
}

// laterVersion adds to err the position of a line that a later release has written.
func laterVersion(key string, at int64, err error) error {
	return fmt.Errorf("%w, in the log of %.40q at byte %d; a later release reads it", err, key, at)
}

// lastDamage returns the error for the last damage in the first end bytes, or nil.
func lastDamage(f io.ReaderAt, key string, end int64) error {
	s := newScan(f, key, 0, end)
	damage, err := s.skip()
	if err != io.EOF {
		return err
	}
	if damage == nil {
		return nil
	}
	return damage
}

// errLine matches errors in a line, as opposed to errors in reading it.
var errLine = errors.New("convo: bad line")

// A logScan reads lines. After damage it continues with the next valid line.
type logScan struct {
	f    io.ReaderAt
	key  string
	r    *bufio.Reader
	off  int64  // offset of the next line
	end  int64  // offset at which to stop
	text []byte // a line longer than the buffer of r
	last error  // what is wrong with the last byte, if the line before it was read

	begun bool // a record was read
	seq   uint64
	id    string
	full  int64  // offset of the newest full record; -1: not known
	whole uint64 // Seq of the newest record that follows a full record without damage

	ahead *logLine // the next record, if already read
	fault error    // the next error, if already found
}

func newScan(f io.ReaderAt, key string, start, end int64) *logScan {
	return &logScan{f: f, key: key, off: start, end: end, r: bufio.NewReaderSize(io.NewSectionReader(f, start, end-start), 64<<10), full: -1}
}

// next returns the next record, a *DamageError for the damaged lines before it, or
// io.EOF. After any error other than a *DamageError, the scan has ended.
func (s *logScan) next() (logLine, error) {
	if l := s.ahead; l != nil {
		s.ahead = nil
		s.take(l)
		return *l, nil
	}
	if s.fault != nil {
		return logLine{}, s.fault
	}
	var damage *convo.DamageError
	for {
		at := s.off
		l, err := s.read()
		switch {
		case err == nil && damage == nil:
			s.take(&l)
			return l, nil
		case err == nil:
			s.ahead = &l
			return logLine{}, damage
		case errors.Is(err, convo.ErrVersion):
			err = laterVersion(s.key, at, withoutMark(err))
		case errors.Is(err, errLine):
			if damage == nil {
				damage = &convo.DamageError{Key: s.key, Offset: at, Seq: s.whole, Err: withoutMark(err)}
			}
			s.full = -1
			if l.Seq > s.seq && isAfterGap(err) {
				s.ahead = &l
				return logLine{}, damage
			}
			continue
		}
		s.fault = err
		if damage != nil {
			return logLine{}, damage
		}
		return logLine{}, err
	}
}

// take updates the state of the scan for a record that was read.
func (s *logScan) take(l *logLine) {
	if l.Full {
		s.full = l.at
	}
	if l.Full || s.begun && s.whole == s.seq && l.Seq == s.seq+1 && l.Prev == s.id {
		s.whole = l.Seq
	}
	s.begun, s.seq, s.id = true, l.Seq, l.ID
}

// skip reads up to the end, and returns the last damage and the error that ended it.
func (s *logScan) skip() (last *convo.DamageError, err error) {
	for {
		_, err := s.next()
		if damage, ok := errors.AsType[*convo.DamageError](err); ok {
			last = damage
		} else if err != nil {
			return last, err
		}
	}
}

// A lineError is an error in a line. If gap is set, the line itself is valid, but does not
// follow the line before it.
type lineError struct {
	error
	gap bool
}

func (e lineError) Is(target error) bool { return target == errLine }
func (e lineError) Unwrap() error        { return e.error }

func withoutMark(err error) error {
	if e, ok := errors.AsType[lineError](err); ok {
		return e.error
	}
	return err
}

func isAfterGap(err error) bool {
	e, ok := errors.AsType[lineError](err)
	return ok && e.gap
}

// read returns the next record, io.EOF, or a lineError. It may be called again after a
// lineError.
func (s *logScan) read() (logLine, error) {
	at := s.off
	text, err := s.line()
	if err != nil {
		return logLine{}, err
	}
	l, err := parseLine(text)
	l.at = at
	l.Data = bytes.Clone(l.Data)
	if err == nil {
		err = l.checkKey(s.key)
	}
	if err != nil {
		return logLine{}, lineError{error: err}
	}
	if err := s.follows(&l); err != nil {
		return l, lineError{err, true}
	}
	return l, nil
}

// line returns the next line. A changed newline at the end is a line of its own.
func (s *logScan) line() ([]byte, error) {
	if err := s.last; err != nil {
		s.last = nil
		s.off++
		return nil, lineError{error: err}
	}
	text, err := s.r.ReadSlice('\n')
	s.off += int64(len(text))
	if err == bufio.ErrBufferFull {
		s.text = append(s.text[:0], text...)
		size := len(text)
		for err == bufio.ErrBufferFull {
			text, err = s.r.ReadSlice('\n')
			s.off += int64(len(text))
			if size += len(text); size <= maxLine {
				s.text = append(s.text, text...)
			}
		}
		text = s.text
		if size > maxLine && (err == nil || err == io.EOF) {
			return nil, lineError{error: errors.New("the line is longer than any record is")}
		}
	}
	if err == io.EOF && len(text) > 0 {
		if s.last = changedEnd(text); s.last != nil {
			s.off--
			return text[:len(text)-1], nil
		}
		return nil, lineError{error: errors.New("the line has no end")}
	}
	return text, err
}

// follows returns an error if l cannot follow the last record read.
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
	case s.full >= 0 && l.back != l.at-s.full:
		return fmt.Errorf("record %d does not lead to the full record before it", l.Seq)
	}
	return nil
}

// findFull returns the offset of the newest full record with a Seq of at most most, or
// 0 if all full records are newer. It reads only the headers of full records.
func findFull(f io.ReaderAt, t *logTail, most uint64) (int64, error) {
	l := t.logLine
	for !l.Full || l.Seq > most {
		if l.back == 0 || l.back > l.at {
			return 0, nil
		}
		var text [maxHeader]byte
		older := logLine{at: l.at - l.back}
		n, err := f.ReadAt(text[:], older.at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if _, err = older.parseHeader(text[:n]); err != nil || !older.Full || older.Seq >= l.Seq {
			return 0, errLine // a later record should lead to a full one
		}
		l = older
	}
	return l.at, nil
}
