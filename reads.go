package convo

import (
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo/internal/rereads"
)

// A spare says what a compaction leaves in the view although its target is not reached:
// results that were read again after they had left.
type spare struct {
	heads map[ID]bool // of the exchanges that stay
	most  int64       // raw tokens of the largest view with which that is worth it
	left  int64       // raw tokens of the view after the links of a Chain so far
}

// has reports whether an entry stays. A nil spare has none.
func (p *spare) has(e *entry) bool { return p != nil && p.heads[e.head] }

// readsOf returns what s shows. New is what was appended since the last edit. Results with
// fewer than least tokens do not count.
func readsOf(s *Snapshot, same func(ToolCall) string, before *rereads.Past, least int64) *rereads.View {
	found := before.View()
	total, end := int64(0), int64(0)
	for _, e := range s.list {
		total += e.tokens + e.missing()
	}
	head := 0
	var calls []ToolCall
	for i, e := range s.list {
		end += e.tokens + e.missing()
		if e.msg.Role != RoleTool {
			head, calls = i, nil
			continue
		}
		if e.tokens+e.missing() < least {
			continue
		}
		if calls == nil {
			calls = s.list[head].msg.ToolCalls()
		}
		for r := range eachOf[ToolResult](e.msg.Parts) {
			c := slices.IndexFunc(calls, func(c ToolCall) bool { return c.ID == r.CallID })
			if c < 0 {
				continue
			}
			if key := same(calls[c]); key != "" {
				now := rereads.Read{ID: int64(e.id), CallID: r.CallID, Tool: r.Name, Size: (e.tokens + e.missing()) / int64(len(e.msg.Parts)), End: end, Cleared: r.Cleared}
				found.Add(key, now, total-end < s.appended)
			}
		}
	}
	return found
}

// SameCall is for ClearToolResults.Same. It returns the same key for calls of the same tool
// with the same arguments, regardless of the order of fields and of white space. It returns no
// key for arguments that are not a JSON object.
func SameCall(c ToolCall) string {
	if !c.Valid() || strings.TrimSpace(c.Arguments) == "" {
		return ""
	}
	return c.Name + " " + sameJSON(c.Arguments)
}

// hasCleared reports whether a result in s is cleared.
func (s *state) hasCleared() bool {
	return slices.ContainsFunc(s.list, func(e *entry) bool { return hasCleared(&e.msg) })
}

// leastReread returns the least size of a result that counts as read again, in raw tokens, for
// a view of at most the given size.
func leastReread(most int) int64 { return int64(max(most, 0)) / 256 }
