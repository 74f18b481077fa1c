package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// CacheMark returns a part that asks the provider to cache the request up to this place.
// The mark follows a part of a system, user or assistant message, or of a tool result. As
// the last part of a result, it marks the end of the result:
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
// A provider keeps its cache for 5 minutes, or for an hour if lifetime is longer than
// 5 minutes.
//
// Anthropic and Converse send marks. OpenAIResponses sends them if its field Cache is
// set; its marks have no lifetime, and a text with a mark is sent as a list of one.
// Decode of these formats returns the marks of a request. The other formats leave marks
// out. If a mark cannot be in its place, it moves back to the last place in its message
// that can have a mark, and is left out if there is none. Anthropic takes no mark on
// thinking, Bedrock none after reasoning, documents and videos, OpenAI none in assistant
// messages.
//
// A request has at most four marks, including the mark after the tools (see
// Anthropic.CacheTools), those of opaque tools given to SetTools, and those that WithParams
// of the format has found in the parameters. If there are more, marks in messages are dropped before marks in the system text, and older marks before
// newer ones. Providers refuse a longer lifetime after a shorter one, so a mark gets the
// lifetime of a longer mark after it: CacheMark(0) before CacheMark(time.Hour) also lasts
// an hour, and is billed for an hour. After tools that are marked for 5 minutes, all marks
// are for 5 minutes.
func CacheMark(lifetime time.Duration) convo.Opaque {
	if isLong(lifetime) {
		return convo.Opaque{Format: cacheFormat, JSON: longMark}
	}
	return convo.Opaque{Format: cacheFormat, JSON: shortMark}
}

// The caller's marks have their own format, since several providers take them.
const (
	cacheFormat = "cache"
	shortMark   = `{}`
	longMark    = `{"ttl":"1h"}`
)

// markFields are the fields that are cache marks.
var markFields = []string{"cache_control", "prompt_cache_breakpoint"}

// maxMarks is the maximum number of marks in a request.
const maxMarks = 4

func isLong(lifetime time.Duration) bool { return lifetime > shortLife }

// isMark reports whether a part is the caller's mark, and whether it has the
// longer lifetime. The block of a format that is a mark is also one.
func isMark(p convo.Part) (long, ok bool) {
	o, _ := p.(convo.Opaque)
	mark := json.RawMessage(o.JSON)
	if o.Format != cacheFormat {
		key := formatRules[o.Format].mark
		if key == "" || !strings.Contains(o.JSON, key) {
			return false, false
		}
		all, err := fields("-", mark)
		mark = all[key]
		if err != nil || len(all) != 1 || isNull(mark) {
			return false, false
		}
	}
	return inner(mark, "ttl") == "1h", true
}

// decodedMark returns the part for the value of cache_control, or of a cachePoint. It
// returns false for a mark that CacheMark cannot express.
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
	message int // index of the message; inFront, inSystem or less: before the messages
	at      int // offset in the bytes of the message, or of the system text
	long    bool
	of      []partPlace // the caller's parts that the mark is for
}

// A partPlace is the place of a part, or of a part in a result.
type partPlace struct {
	place
	inside int // index in the parts of the result; whole: the part itself
}

const (
	inSystem = -2
	inFront  = -1 // in the marker before the first message
)

func (m cacheMark) compare(other cacheMark) int {
	return cmp.Or(cmp.Compare(m.message, other.message), cmp.Compare(m.at, other.at))
}

// appendMark adds the caller's mark at an offset. If the offset already has a mark, the
// longer lifetime is used. The marks argument is not changed.
func appendMark(marks []cacheMark, at int, long bool, of ...partPlace) []cacheMark {
	if n := len(marks); n > 0 && marks[n-1].at == at {
		long = long || marks[n-1].long
		of = slices.Concat(marks[n-1].of, of)
		marks = marks[:n-1]
	}
	return append(slices.Clip(marks), cacheMark{at: at, long: long, of: of})
}

// How long providers keep a request: short and long are those of cache marks. OpenAI documents
// a least time since GPT-5.6, and before that the longest; Gemini documents the longest.
const (
	shortLife     = 5 * time.Minute
	longLife      = time.Hour
	openAILife    = 30 * time.Minute
	oldOpenAILife = 24 * time.Hour
	geminiLife    = 24 * time.Hour
)

// lifetime returns how long the provider keeps the messages of a request with these marks.
func (c cacheRule) lifetime(marks []cacheMark) (longest time.Duration) {
	if c.params.end {
		longest = shortLife
	}
	for _, m := range marks {
		if m.message > inSystem {
			longest = max(longest, shortLife)
		}
		if m.message > inSystem && m.long {
			longest = longLife
		}
	}
	if c.params.long {
		longest = longLife
	}
	return longest
}

// tell records that a mark is not sent.
func (m cacheMark) tell(lost *losses) {
	for _, p := range m.of {
		lost.tell(p.place, p.inside, lostCacheMark, "")
	}
}

// A cacheRule selects the marks of a request.
type cacheRule struct {
	long   bool       // the marks of the format have the longer lifetime
	tools  bool       // there is a mark after the tools
	own    *toolMarks // nil: no opaque tool is among the tools
	params toolMarks
}

// cacheRuleOf returns the rule of a format with these options.
func cacheRuleOf(lifetime time.Duration, tools bool, params toolMarks) cacheRule {
	return cacheRule{long: (isLong(lifetime) || params.long) && !params.short, tools: tools && params.count < maxMarks, params: params}
}

// toolMarks are cache marks in the tools of a request, among which are opaque ones, or in its
// parameters.
type toolMarks struct {
	count int
	short bool // one of them is for 5 minutes
	end   bool // the parameters mark the end of the request
	long  bool // they do so for an hour
}

// marksIn returns the marks in a list of tools, or nil if no opaque tool of the format is
// among them.
func marksIn(list json.RawMessage, tools []convo.Tool, format string) *toolMarks {
	if !slices.ContainsFunc(tools, func(t convo.Tool) bool { return t.Opaque.Format == format }) {
		return nil
	}
	if formatRules[format].tools != "" {
		all, _ := fields("", list)
		list = all["tools"]
	}
	m := new(toolMarks)
	m.add(list)
	return m
}

// add adds the marks in a list of tools.
func (m *toolMarks) add(list json.RawMessage) {
	elements, _ := strictjson.SplitArray(list)
	for _, raw := range elements {
		all, _ := fields("", raw)
		for _, key := range []string{"cache_control", "cachePoint"} {
			if mark, err := fields("", all[key]); err == nil {
				m.count++
				m.short = m.short || stringOf(mark["ttl"]) != "1h"
			}
		}
	}
}

// marksOfParams returns the marks in the parameters of a request: in their tools, and the
// cache_control of the request, which the provider moves to its end.
func marksOfParams(params any) (m toolMarks) {
	data, err := json.Marshal(params)
	if err != nil {
		return m // as With reports
	}
	all, _ := fields("", data)
	config, _ := fields("", all["toolConfig"])
	m.add(all["tools"])
	m.add(config["tools"])
	if mark, err := fields("", all["cache_control"]); err == nil {
		m.count++
		m.end = true
		m.long = stringOf(mark["ttl"]) == "1h"
		m.short = m.short || !m.long
	}
	return m
}

// choose returns the marks of a request in order, by the rules of CacheMark. They are the
// caller's marks, and as many marks of the format as there is room for. own is in order,
// and auto begins with the most important mark. The caller's marks without room are
// recorded as lost.
func (c cacheRule) choose(own, auto []cacheMark, lost *losses) []cacheMark {
	room, short := maxMarks-c.params.count, c.params.short
	switch {
	case c.own != nil:
		room, short = room-c.own.count, short || c.own.short
	case c.tools:
		room, short = room-1, short || !c.long
	}
	room = max(room, 0)
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
	long := c.params.long
	for i := range slices.Backward(marks) {
		long = (long || marks[i].long) && !short
		marks[i].long = long
	}
	return marks
}

// marksOf returns the marks of one message. The marks argument must be in order.
func marksOf(marks []cacheMark, message int) []cacheMark {
	from, _ := slices.BinarySearchFunc(marks, message, func(m cacheMark, i int) int { return cmp.Compare(m.message, i) })
	n := 0
	for from+n < len(marks) && marks[from+n].message == message {
		n++
	}
	return marks[from : from+n]
}

// withMarks returns raw with the bytes of a mark inserted at each place, followed by end.
func withMarks(raw []byte, marks []cacheMark, bytes func(long bool) string, end string) json.RawMessage {
	b := make([]byte, 0, len(raw)+len(end)+48*len(marks))
	done := 0
	for _, m := range marks {
		b = append(append(b, raw[done:m.at]...), bytes(m.long)...)
		done = m.at
	}
	return append(append(b, raw[done:]...), end...)
}
