package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Read reads the events of a stream from r, gives them to s, and yields what they
// add. The first bytes tell how r is framed: server-sent events, an array of JSON
// values, or JSON values one after another, such as one a line. The binary frames of
// Bedrock are not read here; give the JSON of each to [Stream.Event].
//
//	s := wire.Anthropic{}.Stream()
//	for delta, err := range wire.Read(resp.Body, s) {
//		if err != nil {
//			return err // s.Transcript has what came before
//		}
//		fmt.Print(delta.Text)
//	}
//	answer, err := s.Transcript()
//
// The last pair that is yielded has an error if r or an event does, or if r ends
// before the answer: that error wraps io.ErrUnexpectedEOF. An error of r behind the
// end of the answer is left aside. An event is kept in memory until it is complete;
// there is no bound on its size but that of r. Read does not close r, and leaves the
// rest of it when the loop ends early.
func Read(r io.Reader, s Stream) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		stopped := errors.New("stopped")
		err := readEvents(bufio.NewReader(r), func(name string, data []byte) error {
			deltas, err := s.Event(name, data)
			for _, d := range deltas {
				if !yield(d, nil) {
					return stopped
				}
			}
			if err != nil {
				return &eventError{err}
			}
			return nil
		})
		var failed *eventError
		switch {
		case err == stopped:
		case errors.As(err, &failed):
			yield(Delta{}, failed.err)
		case s.Done():
		case err != nil:
			yield(Delta{}, fmt.Errorf("wire: read the stream: %w", err))
		default:
			yield(Delta{}, errCutOff)
		}
	}
}

// An eventError is an error of Stream.Event, and not of the reader.
type eventError struct{ err error }

func (e *eventError) Error() string { return e.err.Error() }

// readEvents calls event for each event in r. It stops at the first error.
func readEvents(r *bufio.Reader, event func(name string, data []byte) error) error {
	first, err := skipSpace(r)
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case first == '[' || first == '{':
		return readValues(r, first == '[', event)
	}
	return readSSE(r, event)
}

// skipSpace passes over a byte order mark and white space, and returns the byte that
// follows.
func skipSpace(r *bufio.Reader) (byte, error) {
	if mark, _ := r.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = r.Discard(3)
	}
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, r.UnreadByte()
		}
	}
}

// readValues reads JSON values, which may be the elements of an array.
func readValues(r *bufio.Reader, array bool, event func(string, []byte) error) error {
	dec := json.NewDecoder(r)
	if array {
		if _, err := dec.Token(); err != nil {
			return err
		}
	}
	for !array || dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			if err == io.EOF {
				return nil
			}
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				return &eventError{&DecodeError{Offset: syntax.Offset, Reason: "not JSON: " + err.Error()}}
			}
			return err
		}
		if err := event("", raw); err != nil {
			return err
		}
	}
	return nil
}

// readSSE reads server-sent events. A line that is itself a JSON object counts as
// data: so some gateways report errors.
func readSSE(r *bufio.Reader, event func(string, []byte) error) error {
	var name string
	var data, line []byte
	var skipLF bool // the last line ended with CR, which LF may follow
	has := false
	dispatch := func() error {
		defer func() { name, data, has = "", data[:0], false }()
		if d := bytes.TrimSpace(data); has && len(d) > 0 {
			return event(name, d)
		}
		return nil
	}
	for {
		var err error
		line, err = appendLine(r, line[:0], &skipLF)
		if err != nil && err != io.EOF {
			return err
		}
		ended := err == io.EOF
		if len(line) == 0 {
			if err := dispatch(); err != nil || ended {
				return err
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if line[0] == '{' {
			field, value = []byte("data"), line
		}
		switch string(field) {
		case "data":
			if has {
				data = append(data, '\n')
			}
			data, has = append(data, value...), true
		case "event":
			name = string(value)
		}
		if ended {
			return dispatch()
		}
	}
}

// appendLine appends a line without its end, which is LF, CR or both. With io.EOF,
// the line is the last one and may be empty.
func appendLine(r *bufio.Reader, line []byte, skipLF *bool) ([]byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return line, err
		}
		if *skipLF {
			if *skipLF = false; c == '\n' {
				continue
			}
		}
		switch c {
		case '\r':
			*skipLF = true
			return line, nil
		case '\n':
			return line, nil
		}
		line = append(line, c)
	}
}
