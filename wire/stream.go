package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
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
	// Event returns a *ProviderError if the event says that the provider failed,
	// and a *DecodeError if it is malformed or begins a second answer. After an
	// error, each further event gets the same error.
	Event(name string, data []byte) ([]Delta, error)

	// Done reports whether the provider has said that the answer is complete.
	// Events may follow, such as one with the usage, so go on reading.
	Done() bool

	// Transcript returns what Decode would return of the whole answer. It may be
	// called at any time and any number of times, and what it returns is the
	// caller's. The IDs of calls that came without one stay the same.
	//
	// Before the end, or after a failure, it returns what there is so far, with an
	// error: that of Event, or one that wraps io.ErrUnexpectedEOF. A call that the
	// provider had not ended is in Transcript.Cut, the newest if there are several,
	// and the others are in Transcript.Lost.
	Transcript() (Transcript, error)
}

// A Delta is what an event adds to an answer, to be shown at once. One with no
// field set is not returned.
type Delta struct {
	Text      string
	Reasoning string
	Call      *CallDelta
	Restart   bool // the provider began anew: discard what was shown of this answer
}

// A CallDelta is what an event adds to a tool call. Only the Transcript tells which
// calls are whole.
type CallDelta struct {
	Index     int    // of the call in the answer, counted from 0
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
	e.Type = cmp.Or(stringOf(all["type"]), stringOf(all["__type"]))
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
	err    error    // of Event
	lost   []Loss   // events that no answer has a place for
	minted []string // the IDs that Decode has made, in the order of the calls
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

// transcript decodes an answer that was assembled. halves are the calls in it that
// the provider has not ended, by their index among the calls.
func (s *streamBase) transcript(d *decoder, decode func([]byte) error, answer []byte, halves []int) (Transcript, error) {
	d.minted = &s.minted
	d.partial = !s.done
	if err := decode(answer); err != nil {
		if s.err != nil {
			err = s.err
		}
		return Transcript{Lost: slices.Clone(s.lost)}, err
	}
	d.putHalvesAside(halves)
	t := d.finish()
	t.Lost = append(t.Lost, s.lost...)
	switch {
	case s.err != nil:
		return t, s.err
	case !s.done:
		return t, errCutOff
	}
	return t, nil
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
			if d.out.Cut != nil {
				d.lose(fmt.Sprintf("call %d", cut), "the call "+quote(d.out.Cut.Name)+", which the provider had not ended")
			}
			d.out.Cut, cut = &c, k-1
		}
		if len(m.Parts) > 0 || len(parts) == 0 {
			msgs = append(msgs, m)
		}
	}
	d.out.Messages = msgs
}
