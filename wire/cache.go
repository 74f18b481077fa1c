package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
)

// CacheMark returns a part that marks the end of what stands before it as a place up to
// which the provider caches the request. It stands after a part of a system, user or
// assistant message, or in a tool result, whose end it marks if it is the last part
// there:
//
//	convo.User("The contract: ...", wire.CacheMark(time.Hour), convo.Text("Is it valid?"))
//
// A system message and a result with a mark are written as literals:
//
//	convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text("..."), wire.CacheMark(0)}}
//	convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
//		convo.ToolResult{CallID: call.ID, Name: call.Name, Parts: []convo.Part{convo.Text("..."), wire.CacheMark(0)}},
//	}}
//
// A provider keeps what it has cached for 5 minutes, or for an hour if lifetime is
// longer than 5 minutes.
//
// Anthropic and Converse send marks, and so does OpenAIResponses with the field Cache,
// where they have no lifetime of their own, and a text with a mark is sent as a list of
// one. Decode of these formats returns the marks of a request. The other formats leave
// marks out. A mark whose place cannot have one moves back to the last place in its
// message that can, and is left out if there is none: Anthropic takes none on thinking,
// Bedrock none after reasoning, documents and videos, OpenAI none in what the assistant
// says.
//
// A request has at most four marks, of which the one after the tools is one (see
// Anthropic.CacheTools). If there are more, those in messages give way to those in the
// system text, and older ones to newer ones. Providers refuse a longer lifetime after a
// shorter one, so a mark gets the lifetime of a longer one after it: CacheMark(0) before
// CacheMark(time.Hour) is also for an hour, at the price of that. After tools that are
// marked for 5 minutes, all marks are for 5 minutes.
func CacheMark(lifetime time.Duration) convo.Opaque {
	if isLong(lifetime) {
		return convo.Opaque{Format: cacheFormat, JSON: longMark}
	}
	return convo.Opaque{Format: cacheFormat, JSON: shortMark}
}

// The caller's marks have a format of their own, since several providers take them.
const (
	cacheFormat = "cache"
	shortMark   = `{}`
	longMark    = `{"ttl":"1h"}`
)

// maxMarks is how many marks a request can have.
const maxMarks = 4

func isLong(lifetime time.Duration) bool { return lifetime > 5*time.Minute }

// isMark reports whether a part is the caller's mark, and whether it has the
// longer lifetime. An opaque cachePoint of Converse is also a mark.
func isMark(p convo.Part) (long, ok bool) {
	o, _ := p.(convo.Opaque)
	switch {
	case o.Format == cacheFormat:
		all, _ := fields("-", []byte(o.JSON))
		return stringOf(all["ttl"]) == "1h", true
	case o.Format == FormatConverse && strings.Contains(o.JSON, "cachePoint"):
		all, err := fields("-", []byte(o.JSON))
		if err != nil || len(all) != 1 || isNull(all["cachePoint"]) {
			return false, false
		}
		point, _ := fields("-", all["cachePoint"])
		return stringOf(point["ttl"]) == "1h", true
	}
	return false, false
}

// decodedMark returns the part for the value of cache_control, or of a cachePoint. It is
// not ok for a mark that CacheMark cannot express.
func decodedMark(raw json.RawMessage) (convo.Opaque, bool) {
	all, err := fields("-", raw)
	if err != nil {
		return convo.Opaque{}, false
	}
	o := CacheMark(0)
	for key, v := range all {
		switch ttl := stringOf(v); {
		case key == "type" || isNull(v):
		case key == "ttl" && ttl == "1h":
			o = CacheMark(time.Hour)
		case key != "ttl" || ttl != "5m":
			return convo.Opaque{}, false
		}
	}
	return o, true
}

// A cacheMark is a mark, or a place for one.
type cacheMark struct {
	message int // index of the message; inFront, inSystem or less for what is before the messages
	at      int // offset in the bytes of the message, or of the system text
	long    bool
	of      []partPlace // the caller's parts that it is sent for
}

// A partPlace is the place of a part, or of one in a result.
type partPlace struct {
	place
	inside int // index in the parts of the result; whole: it is in none
}

const (
	inSystem = -2
	inFront  = -1 // in the marker before the first message
)

func (m cacheMark) compare(other cacheMark) int {
	return cmp.Or(cmp.Compare(m.message, other.message), cmp.Compare(m.at, other.at))
}

// appendMark adds the caller's mark at an offset. If that has one already, the longer
// lifetime counts. It does not write to the memory of marks.
func appendMark(marks []cacheMark, at int, long bool, of ...partPlace) []cacheMark {
	if n := len(marks); n > 0 && marks[n-1].at == at {
		long = long || marks[n-1].long
		of = slices.Concat(marks[n-1].of, of)
		marks = marks[:n-1]
	}
	return append(slices.Clip(marks), cacheMark{at: at, long: long, of: of})
}

// tell notes that a mark is not sent.
func (m cacheMark) tell(lost *losses) {
	for _, p := range m.of {
		lost.tell(p.place, p.inside, lostCacheMark, "")
	}
}

// A cacheRule says which marks a request gets.
type cacheRule struct {
	long  bool // the marks of the format have the longer lifetime
	tools bool // there is one after the tools
}

// choose returns the marks of a request in their order: those of the caller, given in
// their order, and as many of those of the format as there is room for, given in the
// order in which they matter. CacheMark tells the rules. Those of the caller for which there
// is no room are told.
func (c cacheRule) choose(own, auto []cacheMark, lost *losses) []cacheMark {
	room := maxMarks
	if c.tools {
		room--
	}
	if over := len(own) - room; over > 0 {
		first := slices.IndexFunc(own, func(m cacheMark) bool { return m.message > inSystem })
		if first < 0 {
			first = len(own)
		}
		n := min(over, len(own)-first)
		for _, m := range slices.Concat(own[:over-n], own[first:first+n]) {
			m.tell(lost)
		}
		own = slices.Concat(own[over-n:first], own[first+n:])
	}
	marks := slices.Clone(own)
	for _, m := range auto {
		same := func(other cacheMark) bool { return m.compare(other) == 0 }
		if len(marks) < room && !slices.ContainsFunc(marks, same) {
			m.long = c.long
			marks = append(marks, m)
		}
	}
	slices.SortFunc(marks, cacheMark.compare)
	long := false
	for i := range slices.Backward(marks) {
		long = (long || marks[i].long) && (c.long || !c.tools)
		marks[i].long = long
	}
	return marks
}

// marksOf returns the marks of one message, of marks in their order.
func marksOf(marks []cacheMark, message int) []cacheMark {
	from, _ := slices.BinarySearchFunc(marks, message, func(m cacheMark, i int) int { return cmp.Compare(m.message, i) })
	n := 0
	for from+n < len(marks) && marks[from+n].message == message {
		n++
	}
	return marks[from : from+n]
}

// withMarks returns raw with the bytes of a mark at each place, and then end.
func withMarks(raw []byte, marks []cacheMark, bytes func(long bool) string, end string) json.RawMessage {
	b := make([]byte, 0, len(raw)+len(end)+48*len(marks))
	done := 0
	for _, m := range marks {
		b = append(append(b, raw[done:m.at]...), bytes(m.long)...)
		done = m.at
	}
	return append(append(b, raw[done:]...), end...)
}

// anthropicMark returns the field of a block that is a mark.
func anthropicMark(long bool) string {
	if long {
		return `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// responsesMark returns the field of a part of the content that is a mark.
func responsesMark(bool) string { return `,"prompt_cache_breakpoint":{"mode":"explicit"}` }

// converseMark returns the element of a list that is a mark.
func converseMark(long bool) string {
	if long {
		return `,{"cachePoint":{"type":"default","ttl":"1h"}}`
	}
	return `,{"cachePoint":{"type":"default"}}`
}
