package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// Read reads the events of a stream from r, passes them to s, and yields what they add.
// It detects the framing of r from the first bytes: server-sent events, an array of JSON
// values, or a sequence of JSON values, such as one per line. Read does not read the
// binary frames of Bedrock; pass the JSON of each frame to [Stream.Event].
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
// It reads until r or the array ends, even after the end of the answer, because the usage
// may follow. If r stays open, end the loop once s is Done.
//
// The last pair that is yielded has an error if r or an event fails, or if r ends before
// the answer. In the last case the error wraps io.ErrUnexpectedEOF. It shows the beginning
// of r if nothing in it was of the format, or else the lines that are not of server-sent
// events, since they may say why. An event at the end of r without the end of its line is
// read only if its data is a whole JSON value. An error of r after the end of the answer
// is ignored. Read also reads the body of a refused request, and yields a
// *[ProviderError].
//
// An event is kept in memory until it is complete; its size is bounded only by r. Read
// does not close r, and leaves the rest of r unread if the loop ends early.
func Read(r io.Reader, s Stream) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		stopped := errors.New("stopped")
		source := &keptReader{r: r}
		err := readEvents(bufio.NewReader(source), &source.text, func(name string, data []byte) error {
			deltas, err := s.Event(name, data)
			if err == nil && isEnd(data) && len(source.text) > 0 && isSilent(s) {
				return &eventError{source.cutOff(s), -1}
			}
			for _, d := range deltas {
				source.found = true
				if !yield(d, nil) {
					return stopped
				}
			}
			if err != nil {
				return &eventError{err, -1}
			}
			return nil
		})
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			err = source.err // the error of r, if any
		}
		var failed *eventError
		if errors.As(err, &failed) && source.ended && failed.at >= source.size {
			err = source.err // the JSON is broken only because r ended
		}
		failed = nil
		switch {
		case err == stopped:
		case errors.As(err, &failed):
			yield(Delta{}, failed.err)
		case s.Done():
		case err != nil:
			yield(Delta{}, fmt.Errorf("wire: read the stream: %w", err))
		default:
			yield(Delta{}, source.cutOff(s))
		}
	}
}

// A keptReader keeps the first bytes of a reader, and its error unless that is io.EOF.
type keptReader struct {
	r     io.Reader
	err   error
	ended bool
	size  int64
	begin []byte // until a piece of an answer was read
	found bool   // a piece of an answer was read
	text  []byte // lines among server-sent events that are none
}

// errNoElement is the error for an array that neither continues nor ends.
var errNoElement = &eventError{&DecodeError{Reason: "not JSON: the array neither goes on nor ends"}, math.MaxInt64}

// keptBytes is how many of the first bytes a keptReader keeps, and of the text, to find the
// reason of a provider in them. shownBytes is how many of them an error shows, which is
// enough for a sentence with a limit.
const (
	keptBytes  = 64 << 10
	shownBytes = 256
)

func (k *keptReader) Read(p []byte) (n int, err error) {
	n, err = k.r.Read(p)
	k.size += int64(n)
	if err != nil {
		k.ended = true
		if err != io.EOF {
			k.err = err
		}
	}
	if n > 0 && !k.found {
		k.begin = append(k.begin, p[:min(n, keptBytes-len(k.begin))]...)
	}
	return n, err
}

// cutOff returns the error for a stream that ended before the answer.
func (k *keptReader) cutOff(s Stream) error {
	t, err := s.Transcript()
	if err != nil && err != errCutOff {
		return err
	}
	what, shown := "holds nothing of an answer, and begins with", k.begin
	if len(t.Messages) > 0 || t.CutOff != nil || t.ID != "" || t.Model != "" || t.Usage != (convo.Usage{}) {
		what, shown = "ended before the answer did, and says", bytes.TrimSpace(k.text)
	}
	if len(shown) == 0 {
		return errCutOff
	}
	begin, more := string(shown), ""
	if len(shown) > shownBytes {
		begin, more = begin[:shownBytes], "…"
		if reason := reasonIn(string(shown), shownBytes); reason != "" {
			more += fmt.Sprintf(" %q…", reason)
		}
	}
	return fmt.Errorf("wire: the stream %s %q%s: %w", what, begin, more, io.ErrUnexpectedEOF)
}

// isSilent reports whether the answer so far has no content, and no reason why it ended.
func isSilent(s Stream) bool {
	t, _ := s.Transcript()
	return len(t.Messages) == 0 && t.CutOff == nil && t.StopReason == ""
}

// longError is how many bytes the error of a provider shows.
const longError = 1 << 10

// excerpt returns the first bytes of a text, and the reason of a provider behind them.
func excerpt(s string, first int) string {
	if len(s) <= first {
		return s
	}
	begin := s[:text.Floor(s, first)] + "…"
	if reason := reasonIn(s, first); reason != "" {
		begin += " " + reason + "…"
	}
	return begin
}

// reasonIn returns the part of a text, behind its first bytes, that has a reason of which
// package convo knows what to do, or "" if there is none, or the first bytes have it.
func reasonIn(s string, first int) string {
	has := func(s string) bool {
		err := errors.New(s)
		return convo.IsOverflow(err) || overflow.IsSealBroken(err)
	}
	s = s[:min(len(s), keptBytes)]
	if has(s[:first]) {
		return ""
	}
	const long, step = 512, 64
	part := func(at int) string {
		at = min(max(at, 0), len(s))
		return s[text.Floor(s, at):text.Floor(s, min(at+long, len(s)))]
	}
	at := max(first-long/2, 0)
	for at < len(s) && !has(part(at)) {
		at += long / 2
	}
	if at >= len(s) {
		return ""
	}
	for has(part(at + step)) { // to its beginning
		at += step
	}
	return part(at - step)
}

// An eventError is an error of Stream.Event, and not of the reader.
type eventError struct {
	err error
	at  int64 // the number of bytes read when r was found not to be JSON, or -1
}

func (e *eventError) Error() string { return e.err.Error() }

// readEvents calls event for each event in r, and adds to text what readSSE says. It stops
// at the first error.
func readEvents(r *bufio.Reader, text *[]byte, event func(name string, data []byte) error) error {
	first, err := skipSpace(r)
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case first == '[' || first == '{':
		return readValues(r, first == '[', event)
	}
	return readSSE(r, text, event)
}

// skipSpace skips a byte order mark and white space, and returns the next byte.
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
	for {
		if array && !dec.More() {
			if _, err := dec.Token(); err != nil {
				return errNoElement
			}
			return nil
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			if err == io.EOF {
				return nil
			}
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				return &eventError{&DecodeError{Offset: syntax.Offset, Reason: "not JSON: " + err.Error()}, syntax.Offset}
			}
			return err
		}
		if err := event("", raw); err != nil {
			return err
		}
	}
}

// readSSE reads server-sent events. A line that is a JSON object counts as data, because
// some gateways report errors in this form. Lines that have no field are added to text.
func readSSE(r *bufio.Reader, text *[]byte, event func(string, []byte) error) error {
	var name string
	var data, line []byte
	var skipLF bool // the last line ended with CR, which LF may follow
	has := false
	dispatch := func(whole bool) error {
		defer func() { name, data, has = "", data[:0], false }()
		d := bytes.TrimSpace(data)
		if !has || len(d) == 0 || !whole && !isEnd(d) && !strictjson.Valid(d) {
			return nil
		}
		return event(name, d)
	}
	for {
		var err error
		line, err = appendLine(r, line[:0], &skipLF)
		if err != nil && err != io.EOF {
			return err
		}
		ended := err == io.EOF
		if len(line) == 0 {
			// The text of an error is complete at the end of its line.
			if err := dispatch(!ended || name == "error"); err != nil || ended {
				return err
			}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if line[0] == '{' && strictjson.Valid(line) {
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
		case "", "id", "retry":
		default:
			if len(line) > len("event") && len(*text) <= keptBytes { // no beginning of a name
				*text = append(append(*text, line...), '\n')
			}
		}
		if ended {
			return dispatch(false)
		}
	}
}

// appendLine appends a line without its end, which is LF, CR or both. With io.EOF, the
// line is the last and may be empty.
func appendLine(r *bufio.Reader, line []byte, skipLF *bool) ([]byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return line, err
		}
		if *skipLF {
			*skipLF = false
			if c == '\n' {
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
