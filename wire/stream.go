package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A Streamer is a [Format] that reads answers while they are being written. All
// formats of this package are.
type Streamer interface {
	// Stream returns a Stream for one answer.
	Stream() Stream
}

// A Stream reads one answer, event by event. [Read] feeds it from the body of an
// HTTP response; a caller with an SDK hands over the JSON of each event. It is not
// safe for concurrent use.
type Stream interface {
	// Event reads an event and returns what it adds, for those who show an answer
	// while it grows. The name is that of the server-sent event or of the frame. It
	// may be empty if data says what it is. Data is not kept.
	//
	// Event returns a *ProviderError if the event says that the provider failed, as
	// one with the name error does whatever its data is, and a *DecodeError if it is
	// malformed, nests deeper than 5,000 levels, or begins a second answer after the
	// end of the first: one with another ID, or content that by the rules of the
	// format cannot belong to the first. After an error, each further event gets the
	// same error.
	Event(name string, data []byte) ([]Delta, error)

	// Done reports whether the provider has said that the answer is complete.
	// Events may follow, such as one with the usage, so go on reading.
	Done() bool

	// Transcript returns what Decode would return of the whole answer. It may be
	// called at any time and any number of times, and what it returns is the
	// caller's. The IDs of calls that came without one stay the same. A part of the
	// answer that Decode would refuse is left out and told in Transcript.Lost.
	//
	// Before the end, or after a failure, it returns what there is so far, with an
	// error: that of Event, or one that wraps io.ErrUnexpectedEOF. A call that the
	// provider had not ended is in Transcript.CutOff, the newest if there are several,
	// and the others are in Transcript.Lost.
	Transcript() (Transcript, error)
}

// A Delta is what an event adds to an answer, to be shown at once. One with no
// field set is not returned. Half a character at the end of a piece waits for the next
// piece; without one, it is U+FFFD in the Transcript, and not shown.
type Delta struct {
	Text      string
	Reasoning string
	Call      *CallDelta
	Restart   bool // the provider began anew: discard what was shown of this answer
}

// A CallDelta is what an event adds to a tool call. Only the Transcript tells which
// calls are whole.
type CallDelta struct {
	Index     int    // tells the calls apart: 0 for the one that began first, and so on
	ID        string // as soon as it is known; empty if the provider gives none
	Name      string // as far as it is known, and as the provider sends it; see FindTool
	Arguments string // the new piece
}

// String says what a delta adds and how much, but none of the content.
func (d Delta) String() string {
	var parts []string
	if d.Restart {
		parts = append(parts, "restart")
	}
	if d.Text != "" {
		parts = append(parts, fmt.Sprintf("%d bytes of text", len(d.Text)))
	}
	if d.Reasoning != "" {
		parts = append(parts, fmt.Sprintf("%d bytes of reasoning", len(d.Reasoning)))
	}
	if d.Call != nil {
		parts = append(parts, d.Call.String())
	}
	return "delta(" + strings.Join(parts, ", ") + ")"
}

// GoString returns the same as String.
func (d Delta) GoString() string { return d.String() }

// String returns the index of the call and the size of the piece.
func (d CallDelta) String() string {
	return fmt.Sprintf("%d bytes of call %d", len(d.Arguments), d.Index)
}

// GoString returns the same as String.
func (d CallDelta) GoString() string { return d.String() }

// A ProviderError is what a provider reports in the place of an answer, or in the
// middle of one. [convo.IsOverflow] knows those that say that a request is too
// long.
type ProviderError struct {
	Type    string // such as "overloaded_error", if the provider gives one
	Code    string // a code or a status, if the provider gives one
	Message string // for people
	JSON    string // the error as it came
}

func (e *ProviderError) Error() string {
	kind := e.Type
	if e.Code != "" && e.Code != kind {
		if kind != "" {
			kind += ", "
		}
		kind += e.Code
	}
	text := e.Message
	if text == "" {
		text = e.JSON
	}
	if kind == "" {
		return "wire: the provider reports: " + text
	}
	return "wire: the provider reports " + kind + ": " + text
}

// providerError reads the error of a provider: an object, which may be in a field
// error, or a text.
func providerError(raw json.RawMessage) *ProviderError {
	e := &ProviderError{JSON: compact(raw)}
	if kindOf(raw) == '"' {
		e.Message = stringOf(raw)
		return e
	}
	all, _ := fields("error", raw)
	if inner := all["error"]; !isNull(inner) {
		if kindOf(inner) == '"' {
			e.Message = stringOf(inner)
		} else if all2, _ := fields("error", inner); all2 != nil {
			all = all2
		}
	}
	if e.Type = cmp.Or(stringOf(all["type"]), stringOf(all["__type"])); e.Type == "error" {
		e.Type = "" // it says only that it is one
	}
	for _, key := range []string{"code", "status"} {
		if raw := all[key]; e.Code == "" && !isNull(raw) {
			if e.Code = stringOf(raw); kindOf(raw) != '"' {
				e.Code = compact(raw)
			}
		}
	}
	e.Type = cmp.Or(e.Type, stringOf(all["status"])) // of Google, beside a code
	for _, key := range []string{"message", "Message", "detail"} {
		if e.Message == "" {
			e.Message = stringOf(all[key])
		}
	}
	return e
}

// unreadable returns the error for an object that Decode finds no messages in. want says
// what has them.
func unreadable(all map[string]json.RawMessage, data []byte, want string) error {
	if isError(all) {
		return reported("", providerError(data))
	}
	return &DecodeError{Reason: want}
}

// isError reports whether an object is what providers answer where something failed.
func isError(all map[string]json.RawMessage) bool {
	if saysError(all["error"]) || stringOf(all["type"]) == "error" {
		return true
	}
	return kindOf(all["message"]) == '"' || kindOf(all["Message"]) == '"' || !isNull(all["detail"])
}

// reported returns the error of Decode for the error of a provider.
func reported(path string, e *ProviderError) error {
	reason := strings.TrimPrefix(e.Error(), "wire: ")
	if short := fmt.Sprintf("%.200s", reason); short != reason {
		reason = short + "…"
	}
	return &DecodeError{Path: path, Reason: reason, Err: e}
}

// isEvent returns the error of Decode for an event of a stream.
func isEvent(path, name string) error {
	return &DecodeError{Path: path, Reason: "an event of a stream, " + quote(name) + ", and no whole answer; a Stream reads all its events"}
}

// errCutOff is the error of a Transcript that is not complete.
var errCutOff = fmt.Errorf("wire: the stream ended before the answer did: %w", io.ErrUnexpectedEOF)

// A streamBase is what the streams of all formats have. They assemble the answer
// that the provider would have sent without a stream, and let Decode read that.
type streamBase struct {
	done   bool
	err    error          // of Event
	id     string         // of the answer
	lost   []Loss         // what no answer has a place for
	minted map[int]string // the IDs that Decode has made, by the number of the call
}

// Done implements [Stream].
func (s *streamBase) Done() bool { return s.done }

// fail keeps the error that ends a stream.
func (s *streamBase) fail(err error) ([]Delta, error) {
	s.err = err
	return nil, err
}

// isEnd reports whether data is no event but the word that ends some streams.
func isEnd(data []byte) bool { return string(data) == "[DONE]" }

// maxEventDepth is how deep an event may nest. The answer that is made of it nests
// deeper, and encoding/json reads no more than 10,000 levels.
const maxEventDepth = 5000

// open returns the fields of an event, or the error that it reports.
func (s *streamBase) open(name string, data []byte) (map[string]json.RawMessage, error) {
	if name == "error" {
		if !strictjson.Valid(data) {
			data = strictjson.AppendString(nil, string(data))
		}
		return nil, providerError(data)
	}
	all, err := fields("", data)
	switch {
	case err != nil:
		return nil, err
	case nestsDeeper(data, maxEventDepth):
		return nil, &DecodeError{Reason: fmt.Sprintf("the event nests deeper than %d levels", maxEventDepth)}
	case stringOf(all["type"]) == "error", saysError(all["error"]) && isNull(all["output"]): // else it is a whole response
		return nil, providerError(data)
	}
	return all, nil
}

// nestsDeeper reports whether objects and arrays nest deeper than so many levels in JSON.
func nestsDeeper(data []byte, levels int) bool {
	if len(data) <= 2*levels {
		return false
	}
	depth := 0
	for i := 0; i >= 0 && i < len(data); {
		switch data[i] {
		case '"':
			i = strictjson.SkipString(data, i)
			continue
		case '{', '[':
			if depth++; depth > levels {
				return true
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return false
}

// begin notes the ID of the answer that an event begins. It reports whether that is
// another one than the answer so far, which is discarded then. An answer that comes
// without an ID is the same.
func (s *streamBase) begin(id string) (restart bool, err error) {
	switch {
	case id == "" || id == s.id:
		return false, nil
	case s.id == "":
		s.id = id
		return false, nil
	case s.done:
		return false, errSecondAnswer
	}
	return true, nil
}

// errSecondAnswer is the error of an event that begins another answer.
var errSecondAnswer = &DecodeError{Reason: "a second answer begins behind the end of the first; use a new Stream for it"}

// maxLost is how many different losses a stream tells. A server may send new names
// without end.
const maxLost = 64

// lostMore is the Loss.What that stands for all further losses.
const lostMore = "more of what is lost than is listed here"

// lose adds to what is lost, unless it was said before.
func (s *streamBase) lose(path, what string) {
	const longest = 128
	if len(path) > longest {
		path = path[:text.Floor(path, longest)] + "…"
	}
	l := Loss{path, what}
	switch n := len(s.lost); {
	case n > maxLost || slices.Contains(s.lost, l):
	case n == maxLost:
		s.lost = append(s.lost, Loss{"", lostMore})
	default:
		s.lost = append(s.lost, l)
	}
}

// addUsage notes a usage, which counts the whole answer so far.
func (s *streamBase) addUsage(path string, raw json.RawMessage, to *map[string]json.RawMessage) {
	if isNull(raw) {
		return
	}
	if kindOf(raw) != '{' {
		s.lose(path, lostFigure)
		return
	}
	usage, _ := fields(path, raw)
	merge(to, usage)
}

// An answerPart is a piece of an answer that Decode reads or refuses by itself: a block,
// an item, a call or a field.
type answerPart struct {
	path string // for Lost
	json []byte

	field   string // of the message of Chat Completions
	element bool   // of the list in this field

	isCall bool
	number int  // of the call: CallDelta.Index
	half   bool // the provider had not ended the call
	ended  bool // the provider has ended the call, and not only the answer
}

// transcript decodes the answer that assemble makes of its parts. What Decode refuses is
// left out and told in Lost. Without the rest of the answer, which is bare then, each
// part is tried by itself.
func (s *streamBase) transcript(parts []answerPart, assemble func(parts []answerPart, bare bool) []byte, decoder func() (*decoder, func([]byte) error)) (Transcript, error) {
	if s.minted == nil {
		s.minted = map[int]string{}
	}
	d, err := s.decode(parts, assemble(parts, false), decoder)
	var lost []Loss
	if err != nil {
		var read []answerPart
		for _, p := range parts {
			one := []answerPart{p}
			if _, err := s.decode(one, assemble(one, true), decoder); err != nil {
				lost = append(lost, Loss{p.path, lostUnread + reasonOf(err)})
				continue
			}
			read = append(read, p)
		}
		parts = read
		if d, err = s.decode(parts, assemble(parts, false), decoder); err != nil {
			lost = append(lost, Loss{"", lostUnread + reasonOf(err)})
			d, err = s.decode(parts, assemble(parts, true), decoder)
		}
	}
	lost = append(lost, s.lost...)
	if err != nil {
		return Transcript{Lost: lost}, cmp.Or(s.err, err)
	}
	var halves []int
	calls := 0
	for _, p := range parts {
		if p.isCall {
			if p.half {
				halves = append(halves, calls)
			}
			calls++
			d.open = d.open && !(p.ended && d.out.StopReason == "")
		}
	}
	d.putHalvesAside(halves)
	t := d.finish()
	t.Lost = append(t.Lost, lost...)
	switch {
	case s.err != nil:
		return t, s.err
	case !s.done:
		return t, errCutOff
	}
	return t, nil
}

// appendParts appends an array of parts.
func appendParts(b []byte, parts []answerPart) []byte {
	b = append(b, '[')
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p.json...)
	}
	return append(b, ']')
}

// lostUnread begins the Loss.What of a part of a streamed answer that Decode refuses.
const lostUnread = "what cannot be read: "

// reasonOf returns the reason of a DecodeError.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*DecodeError](err); ok {
		return e.Reason
	}
	return err.Error()
}

// decode decodes an answer of these parts.
func (s *streamBase) decode(parts []answerPart, answer []byte, decoder func() (*decoder, func([]byte) error)) (*decoder, error) {
	d, decode := decoder()
	d.minted, d.partial = s.minted, !s.done
	for _, p := range parts {
		if p.isCall {
			d.numbers = append(d.numbers, p.number)
		}
	}
	return d, decode(answer)
}

// putHalvesAside takes calls out of the answer that the provider has not ended.
// halves are in order.
func (d *decoder) putHalvesAside(halves []int) {
	if len(halves) == 0 {
		return
	}
	k, cut := 0, 0 // indexes of the next call, and of that in Cut
	var msgs []convo.Message
	for _, m := range d.out.Messages {
		parts := m.Parts
		m.Parts = nil
		for _, p := range parts {
			c, ok := p.(convo.ToolCall)
			if ok {
				k++
			}
			if !ok || len(halves) == 0 || halves[0] != k-1 {
				m.Parts = append(m.Parts, p)
				continue
			}
			halves = halves[1:]
			m.Parts = withoutFields(m.Parts)
			if d.out.CutOff != nil {
				d.lose(fmt.Sprintf("call %d", cut), "the call "+quote(d.out.CutOff.Name)+", which the provider had not ended")
			}
			d.out.CutOff, cut = &c, k-1
		}
		if len(m.Parts) > 0 || len(parts) == 0 {
			msgs = append(msgs, m)
		}
	}
	d.out.Messages = msgs
}

// saysError reports whether the field error of an event says that there is one.
func saysError(raw json.RawMessage) bool {
	switch kindOf(raw) {
	case 0, 'n', 'f':
		return false
	case '"':
		return string(raw) != `""`
	case '{':
		return len(figuresOf(raw)) > 0
	}
	return true
}

// lostNameless is the Loss.What of a call that cannot be read.
const lostNameless = "a call without a name"

// comma appends a comma if there is a field before the next one.
func comma(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return b
}

// lostEvent is the Loss.What of an event that no answer has a place for.
const lostEvent = "an event of an unknown kind"

// deltaOf returns d, unless it is empty.
func deltaOf(d Delta) []Delta {
	if d == (Delta{}) {
		return nil
	}
	return []Delta{d}
}
