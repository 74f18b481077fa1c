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
)

// A Streamer is a [Format] that reads answers while they are being written. All formats
// of this package are Streamers.
type Streamer interface {
	// Stream returns a Stream for one answer.
	Stream() Stream
}

// A Stream reads one answer, event by event. [Read] passes it the events in the body of
// an HTTP response; a program that uses an SDK passes it the JSON of each event. A Stream
// is not safe for concurrent use.
type Stream interface {
	// Event reads an event and returns what it adds to the answer. The name is that of
	// the server-sent event or of the frame. It may be empty if data states the type of
	// the event. Data is not kept.
	//
	// Event returns a *ProviderError if the event reports an error of the provider, as any event with the name error does, unless the
	// answer is complete: then the error is in Transcript.Lost. It returns a *DecodeError if the event is malformed, which wraps a
	// *ProviderError if data is a text, nests deeper than 5,000 levels, or begins a second answer after the end of the first. A second
	// answer has another ID, or content that by the rules of the format cannot belong to the first. After an error, further calls return
	// the same error.
	Event(name string, data []byte) ([]Delta, error)

	// Done reports whether the provider has marked the answer as complete. Further events
	// may follow, such as an event with the usage, so keep reading.
	Done() bool

	// Transcript returns what Decode would return for the whole answer. It may be called
	// at any time and any number of times, and the caller owns the result. Calls without
	// an ID get the same new ID each time. A part of the answer that Decode would refuse
	// is left out and listed in Transcript.Lost.
	//
	// Before the end, or after a failure, it returns the answer so far with an error: the
	// error of Event, or an error that wraps io.ErrUnexpectedEOF. The newest call that
	// the provider had not ended is in Transcript.CutOff, and any others are in
	// Transcript.Lost.
	Transcript() (Transcript, error)
}

// A Delta is what an event adds to an answer, for immediate display. Event does not
// return a Delta with no field set. If a piece ends in half a character, the half is
// shown with the next piece; if no second half follows, it is U+FFFD in the Transcript,
// and not shown.
type Delta struct {
	Text      string
	Reasoning string
	Call      *CallDelta
	Restart   bool // the provider started again: discard what was shown of this answer
}

// A CallDelta is what an event adds to a tool call. Only the Transcript shows which calls
// are whole.
type CallDelta struct {
	Index     int    // identifies the call: 0 for the call that began first, and so on
	ID        string // once it is received; empty if the provider sends none
	Name      string // the name so far, as the provider sends it; see FindTool
	Arguments string // the new piece
}

// String describes what a delta adds and how much, without any of the content.
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

// A ProviderError is an error that a provider reports instead of an answer or within one.
// [convo.IsOverflow] recognizes errors for requests that are too long.
type ProviderError struct {
	Type    string // such as "overloaded_error", if the provider sends one
	Code    string // a code or a status, if the provider sends one
	Message string // a text for people
	JSON    string // the error as it was received
}

// RawJSON returns JSON, as the errors of SDKs do.
func (e *ProviderError) RawJSON() string { return e.JSON }

func (e *ProviderError) Error() string { return "wire: " + e.fault() + e.remedy() }

// fault returns what is wrong, in the words of the provider.
func (e *ProviderError) fault() string {
	kind := e.Type
	if e.Code != "" && e.Code != kind {
		if kind != "" {
			kind += ", "
		}
		kind += e.Code
	}
	text := excerpt(cmp.Or(e.Message, e.JSON), longError)
	if kind == "" {
		return "the provider reports: " + text
	}
	return "the provider reports " + kind + ": " + text
}

// remedy returns what to do about the error, if its type or code says so.
func (e *ProviderError) remedy() string {
	if strings.HasPrefix(e.Message, "Request too large") { // for the quota of the account: waiting does not help
		return ""
	}
	kind := strings.ToLower(e.Type + " " + e.Code)
	has := func(word string) bool { return strings.Contains(kind, word) }
	switch e.Code {
	case "401", "403":
		return keyRemedy
	case "429", "500", "502", "503", "504", "529":
		return laterRemedy
	}
	switch {
	case slices.ContainsFunc([]string{"authentication", "permission", "accessdenied"}, has):
		return keyRemedy
	case slices.ContainsFunc([]string{"rate_limit", "overloaded", "throttling", "unavailable", "server_error"}, has):
		return laterRemedy
	}
	return ""
}

const (
	keyRemedy   = "; check the API key, and what it may use"
	laterRemedy = "; wait, and send the request again"
)

// providerError reads the error of a provider: an object, which may be in a field error,
// or a string.
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
	if e.Type == "error" {
		e.Type = "" // this type means only that it is an error
	}
	for _, key := range []string{"code", "status"} {
		if raw := all[key]; e.Code == "" && !isNull(raw) {
			e.Code = stringOf(raw)
			if kindOf(raw) != '"' {
				e.Code = compact(raw)
			}
		}
	}
	e.Type = cmp.Or(e.Type, stringOf(all["status"])) // Google sends it in addition to a code
	for _, key := range []string{"message", "Message", "detail", "msg"} {
		if e.Message == "" {
			e.Message = stringOf(all[key])
		}
	}
	if code, said := baseResp(all); e.Message == "" && said != "" {
		e.Code, e.Message = cmp.Or(e.Code, code), said
	}
	if reason := stringOf(field(all["metadata"], "raw")); reason != "" && e.Message != "" {
		e.Message += ": " + reason // OpenRouter has the words of the provider there
	}
	return e
}

// unreadable returns the error for an object in which Decode finds no messages. The want
// argument describes what has messages.
func unreadable(all map[string]json.RawMessage, data []byte, want string) error {
	if isError(all) {
		return reported("", providerError(data))
	}
	return &DecodeError{Reason: want}
}

// isError reports whether an object is an error of a provider.
func isError(all map[string]json.RawMessage) bool {
	if saysError(all["error"]) || stringOf(all["type"]) == "error" {
		return true
	}
	_, said := baseResp(all)
	return kindOf(all["message"]) == '"' || kindOf(all["Message"]) == '"' || !isNull(all["detail"]) || stringOf(all["msg"]) != "" || said != ""
}

// field returns a field of an object, or nil.
func field(raw json.RawMessage, key string) json.RawMessage {
	if kindOf(raw) != '{' {
		return nil
	}
	all, _ := fields("-", raw)
	return all[key]
}

// baseResp returns the error that MiniMax reports in an answer, or nothing.
func baseResp(all map[string]json.RawMessage) (code, said string) {
	raw := all["base_resp"]
	code = string(field(raw, "status_code"))
	if code == "0" {
		return "", ""
	}
	return code, stringOf(field(raw, "status_msg"))
}

// reported returns the error of Decode for an error of a provider.
func reported(path string, e *ProviderError) error {
	reason := e.fault()
	if short := fmt.Sprintf("%.200s", reason); short != reason {
		reason = short + "…"
	}
	return &DecodeError{Path: path, Reason: reason + e.remedy(), Err: e}
}

// isEvent returns the error of Decode for an event of a stream.
func isEvent(path, name string) error {
	return &DecodeError{Path: path, Reason: "an event of a stream, " + quote(name) + ", and no whole answer; a Stream reads all its events"}
}

// errCutOff is the error of a Transcript that is not complete.
var errCutOff = fmt.Errorf("wire: the stream ended before the answer did: %w", io.ErrUnexpectedEOF)

// A streamBase is the common part of the streams of all formats. They assemble the answer
// that the provider would have sent without a stream, and decode it.
type streamBase struct {
	done   bool
	err    error          // the error of Event
	id     string         // the ID of the answer
	lost   []Loss         // what has no place in an answer
	minted map[int]string // the IDs that Decode made, by the number of the call
}

// Done implements [Stream].
func (s *streamBase) Done() bool { return s.done }

// event reads an event with read, which gets its fields. An error ends the stream.
func (s *streamBase) event(name string, data []byte, read func(name string, data []byte, all map[string]json.RawMessage) ([]Delta, error)) ([]Delta, error) {
	all, err := s.open(name, data)
	if all == nil && err == nil {
		return nil, nil
	}
	var out []Delta
	if err == nil {
		out, err = read(name, data, all)
	}
	if err != nil {
		return s.fail(err)
	}
	return out, nil
}

// fail records the error that ends a stream. An error that the provider reports after the end
// of the answer is lost.
func (s *streamBase) fail(err error) ([]Delta, error) {
	if e, ok := err.(*ProviderError); ok && s.done {
		s.lose("error", "an error after the end of the answer: "+excerpt(e.fault(), shownBytes))
		return nil, nil
	}
	s.err = err
	return nil, err
}

// isEnd reports whether data is [DONE], which ends some streams and is not an event.
func isEnd(data []byte) bool { return string(data) == "[DONE]" }

// maxEventDepth is the maximum nesting of an event. The answer that is assembled from
// events nests deeper, and encoding/json reads at most 10,000 levels.
const maxEventDepth = 5000

// open returns the fields of an event, or the error that it reports. It returns nil for
// what is no event, and the same error again after a stream has failed.
func (s *streamBase) open(name string, data []byte) (map[string]json.RawMessage, error) {
	if s.err != nil || isEnd(data) {
		return nil, s.err
	}
	if name == "error" {
		if !strictjson.Valid(data) {
			data = strictjson.AppendString(nil, string(data))
		}
		return nil, providerError(data)
	}
	all, err := fields("", data)
	switch {
	case err != nil && isText(data):
		if !strictjson.Valid(data) {
			data = strictjson.AppendString(nil, string(data))
		}
		return nil, reported("", providerError(data))
	case err != nil:
		return nil, err
	case nestsDeeper(data, maxEventDepth):
		return nil, &DecodeError{Reason: fmt.Sprintf("the event nests deeper than %d levels", maxEventDepth)}
	case stringOf(all["type"]) == "error", saysError(all["error"]) && isNull(all["output"]): // with output, it is a whole response
		return nil, providerError(data)
	}
	return all, nil
}

// isText reports whether the data of an event is a text, and not JSON that is malformed.
func isText(data []byte) bool {
	switch {
	case strictjson.Valid(data):
		return kindOf(data) == '"'
	case len(data) > 1 && data[0] == '[':
		return 'A' <= data[1] && data[1] <= 'Z' // such as [ERROR]
	}
	return len(data) > 0 && data[0] != '{' && data[0] != '[' && data[0] != '"'
}

// noType is the error for an event that does not say what it is.
func noType(data []byte) error {
	return &DecodeError{Path: "type", Reason: "the event has no type: " + excerpt(compact(data), shownBytes)}
}

// nestsDeeper reports whether objects and arrays in data nest deeper than a number of
// levels.
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
			depth++
			if depth > levels {
				return true
			}
		case '}', ']':
			depth--
		}
		i++
	}
	return false
}

// begin records the ID of the answer that an event begins. It reports whether the ID
// differs from that of the answer so far, which is then discarded. An answer without an
// ID counts as the same.
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
var errSecondAnswer = &DecodeError{Reason: "a second answer begins after the end of the first; use a new Stream for it"}

// lose adds to what is lost.
func (s *streamBase) lose(path, what string) { s.lost = withLosses(s.lost, Loss{path, what}) }

// addUsage records a usage, which counts the whole answer so far.
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
	path string // the path in Lost
	json []byte

	field   string // the field of a message of Chat Completions
	element bool   // an element of the list in field

	isCall bool
	number int  // for a call: CallDelta.Index
	half   bool // the provider did not end the call
	ended  bool // the provider ended the call, and not only the answer
}

// transcript decodes the answer that assemble builds from parts. If Decode refuses it,
// each part is decoded alone, in an answer without other fields, which is bare; parts
// that fail are left out and listed in Lost, with the losses outside of parts.
func (s *streamBase) transcript(parts []answerPart, lost []Loss, assemble func(parts []answerPart, bare bool) []byte, decoder func() (*decoder, func([]byte) error)) (Transcript, error) {
	if s.minted == nil {
		s.minted = map[int]string{}
	}
	d, err := s.decode(parts, assemble(parts, false), decoder)
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
	if err != nil {
		return Transcript{Lost: withLosses(nil, slices.Concat(lost, s.lost)...)}, cmp.Or(s.err, err)
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
	fields := d.out.Lost // mostly losses of fields; other losses come before them
	d.out.Lost = nil
	d.putHalvesAside(halves)
	t, _ := d.finish(nil)
	t.Lost = withLosses(nil, slices.Concat(t.Lost, lost, fields, s.lost)...)
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

// decode decodes an answer that has these parts.
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

// putHalvesAside removes the calls that the provider has not ended from the answer. The
// halves are in order.
func (d *decoder) putHalvesAside(halves []int) {
	if len(halves) == 0 {
		return
	}
	d.open = false // because the newest call is one of them
	k, cut := 0, 0 // indexes of the next call and of the next element of Cut
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
			m.Parts = withoutFields(m.Parts, c)
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

// saysError reports whether the field error of an event holds an error.
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

// comma appends a comma if b already holds a field.
func comma(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return b
}

// lostEvent is the Loss.What of an event that has no place in an answer.
const lostEvent = "an event of an unknown kind"

// deltaOf returns d, unless it is empty.
func deltaOf(d Delta) []Delta {
	if d == (Delta{}) {
		return nil
	}
	return []Delta{d}
}
