package convo

import (
	"cmp"
	"fmt"
	"math/bits"
	"sort"
	"strings"
)

// A Breakdown shows what fills the window of a request, in tokens. The fields from System
// to Ephemeral add up to Estimate.Tokens; together with Free and Reserve they add up to
// Window. The raw tokens of entries and exchanges add up to Snapshot.Tokens instead.
type Breakdown struct {
	System    int // system messages
	Tools     int // the tools of SetTools, and Limits.Tools, or what usage reports have shown to be sent besides, if that may be a tool
	Summary   int // the summary
	User      int // user messages, except media
	Assistant int // assistant messages, except reasoning, calls and media
	Reasoning int // the model's reasoning
	Calls     int // tool calls
	Results   int // tool results, except media
	Media     int // images and other files in all of these messages
	Ephemeral int // ephemeral messages

	Pinned int // the share of pinned exchanges in the above

	Free    int // of the window; negative if the request is too large
	Reserve int // Limits.Reserve, for the answer
	Window  int // Limits.Window; if it is 0, so are Free and Reserve

	High, Low, Soft int // Limits, with their defaults; 0: there is none
}

// kinds returns the fields that add up to the estimate, in their order.
func (b *Breakdown) kinds() []*int {
	return []*int{&b.System, &b.Tools, &b.Summary, &b.User, &b.Assistant, &b.Reasoning, &b.Calls, &b.Results, &b.Media, &b.Ephemeral}
}

// String lists the parts that are not 0 in one line, largest first:
//
//	results 52,100, user 9,300, tools 4,000, system 1,200 (pinned 2,000); free 45,400 and reserve 16,000 of 128,000
func (b Breakdown) String() string {
	names := []string{"system", "tools", "summary", "user", "assistant", "reasoning", "calls", "results", "media", "ephemeral"}
	type kind struct {
		name   string
		tokens int
	}
	var all []kind
	for i, n := range b.kinds() {
		if *n != 0 {
			all = append(all, kind{names[i], *n})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].tokens > all[j].tokens })
	texts := make([]string, len(all))
	for i, k := range all {
		texts[i] = k.name + " " + grouped(k.tokens)
	}
	out := cmp.Or(strings.Join(texts, ", "), "empty")
	if b.Pinned > 0 {
		out += fmt.Sprintf(" (pinned %s)", grouped(b.Pinned))
	}
	if b.Window > 0 {
		out += fmt.Sprintf("; free %s and reserve %s of %s", grouped(b.Free), grouped(b.Reserve), grouped(b.Window))
	}
	return out
}

// Breakdown returns the parts of the request for this snapshot, with the limits and the
// estimate in force when the snapshot was made. A snapshot from [Load] has the limits
// that SetLimits or SetModel had set. Others without a History have none.
//
// It counts messages with several kinds of content again, in time linear in the view. If
// the Tokenizer panics, the message is counted by its role.
func (s *Snapshot) Breakdown() Breakdown {
	var raw Breakdown // in raw tokens
	raw.Tools, raw.System, raw.Summary, raw.Ephemeral = clampInt(s.tools.tokens()), clampInt(s.sysRaw), clampInt(s.summary.tokens()), clampInt(s.eph.tokens())
	counter := s.counter()
	for _, e := range s.list {
		raw.addEntry(e, counter)
	}
	scale := s.scale()
	if s.owner == nil && scale.Prior.Ratio == 0 { // no History has made the snapshot
		scale.Prior.Ratio = 1
	}
	var b Breakdown
	whole := s.raw()
	overhead := scale.Overhead
	if scale.Known != nil && whole > 0 && overhead < leastTool && s.tools.tokens() == 0 {
		overhead = 0 // it is a part of the messages
	}
	rest := scale.Tokens() - overhead
	// Rounding the sums, and not the shares, keeps the total.
	sum, shared := int64(0), int64(0)
	to := b.kinds()
	for i, n := range raw.kinds() {
		sum += int64(*n)
		share := portion(rest, sum, whole)
		*to[i] = clampInt(share - shared)
		shared = share
	}
	b.Tools = clampInt(int64(b.Tools) + overhead)
	b.Pinned = clampInt(portion(rest, s.pinRaw, whole))
	b.High, b.Low, b.Soft = clampInt(s.setting.high), clampInt(s.setting.low), clampInt(s.setting.soft)
	if w := s.setting.window; w > 0 {
		b.Window, b.Reserve = clampInt(w), clampInt(s.setting.reserve)
		b.Free = clampInt(w - s.setting.reserve - scale.Tokens())
	}
	return b
}

// leastTool is fewer tokens than any definition of a tool takes up in a request.
const leastTool = 16

// portion returns n * part / whole, or 0 if whole is 0. No argument is negative,
// and part is at most whole.
func portion(n, part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(max(n, 0)), uint64(part))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return int64(quotient)
}

// addEntry adds the raw tokens of an entry that is not a system message.
func (b *Breakdown) addEntry(e *entry, counter *counter) {
	own := &b.Assistant // for the message itself
	switch e.msg.Role {
	case RoleUser:
		own = &b.User
	case RoleTool:
		own = &b.Results
	case RoleSystem:
		own = &b.System
	}
	rest := e.tokens
	if !e.isPlain() {
		var parts Breakdown
		if parts.addParts(&e.msg, counter) == nil {
			if counter.over.Reasoning == ReplayTools && !e.tools {
				parts.Reasoning = 0 // it is not sent
			}
			for _, p := range []struct{ from, to *int }{{&parts.Reasoning, &b.Reasoning}, {&parts.Calls, &b.Calls}, {&parts.Media, &b.Media}} {
				n := min(int64(*p.from), rest)
				*p.to += int(n)
				rest -= n
			}
		}
	}
	*own += clampInt(rest)
}

// isPlain reports whether all parts of an entry are counted by its role.
func (e *entry) isPlain() bool {
	for p := range e.msg.allParts {
		switch p.(type) {
		case Reasoning, ToolCall, Media:
			return false
		}
	}
	return true
}

// addParts adds the reasoning, calls and media of m. The only error is a panic of the
// Tokenizer.
func (b *Breakdown) addParts(m *Message, counter *counter) (err error) {
	defer catch(&err, "Options.Tokenizer")
	for p := range m.allParts {
		var to *int
		switch p.(type) {
		case Reasoning:
			to = &b.Reasoning
		case ToolCall:
			to = &b.Calls
		case Media:
			to = &b.Media
		default:
			continue
		}
		*to += clampInt(p.tokens(counter))
	}
	return nil
}
