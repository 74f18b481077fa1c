package convotest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An entryFault is a rule that an edit breaks, and the entry at fault.
type entryFault struct {
	rule rule
	id   convo.ID
}

// An exchange is an exchange of a snapshot.
type exchange struct {
	ids   []convo.ID
	floor string // why it is floor, such as "a pinned exchange"; empty if it is not
}

// exchangesOf returns the exchange of each entry. It determines the floor from
// the entries, so that it does not rely on Exchange.Floor.
func exchangesOf(s *convo.Snapshot) map[convo.ID]*exchange {
	of := make(map[convo.ID]*exchange)
	var newest *exchange // ignoring notes, unless there is nothing else
	front := true
	for x := range s.Exchanges() {
		first, _ := s.Find(x.First)
		ex := &exchange{ids: x.IDs()}
		system := first.Message.Role == convo.RoleSystem
		front = front && system && !isNote(s, first)
		switch {
		case front:
			ex.floor = "a system entry"
		case first.Pinned:
			ex.floor = "a pinned exchange"
		}
		if !front && (!system || newest == nil) {
			newest = ex
		}
		for _, id := range ex.ids {
			of[id] = ex
		}
	}
	if newest == nil {
		return of
	}
	mark := func(ex *exchange, floor string) {
		if ex.floor == "" {
			ex.floor = floor
		}
	}
	mark(newest, "the newest exchange")
	markUsers := func(of map[convo.ID]*exchange, turn int, floor string) {
		for _, e := range s.All() {
			if e.Turn != turn || e.Message.Role == convo.RoleSystem {
				continue
			}
			if e.Message.Role != convo.RoleUser {
				break
			}
			mark(of[e.ID], floor)
		}
	}
	last, _ := s.At(s.Len() - 1)
	markUsers(of, last.Turn, "a user message of the newest turn")
	for i := s.Len() - 1; i >= 0; i-- {
		e, _ := s.At(i)
		if e.Message.Role == convo.RoleSystem {
			mark(of[e.ID], "a note that no assistant message has followed yet")
			continue
		}
		if e.Message.Role == convo.RoleTool {
			mark(of[e.ID], "a round of tool calls that no assistant message has followed yet")
			markUsers(of, e.Turn, "a user message before such a round")
		}
		if e.Message.Role != convo.RoleUser {
			break
		}
	}
	return of
}

// isNote reports whether a system message comes after other messages. If a compaction has
// removed the messages in between, isNote relies on the turn or the ID.
func isNote(s *convo.Snapshot, e convo.Entry) bool {
	if e.Turn > 0 {
		return true
	}
	for _, other := range s.All() {
		if other.Message.Role != convo.RoleSystem && other.ID < e.ID && other.Turn == 0 {
			return true
		}
	}
	return false
}

// entryFaults returns the rules that an edit breaks by the entries that it
// names.
func entryFaults(s *convo.Snapshot, e convo.Edit) (wrong []entryFault) {
	of := exchangesOf(s)
	named := make(map[convo.ID]bool)
	for _, id := range e.Drop {
		named[id] = true
	}
	unknown := rule{"names an entry that the snapshot does not hold", "take the IDs from Snapshot.All or Snapshot.Exchanges of the snapshot that Compact is given"}
	floor := func(what string) rule {
		return rule{what, "leave alone every exchange whose Exchange.Floor is true"}
	}
	for _, id := range e.Drop {
		x := of[id]
		if x == nil {
			wrong = append(wrong, entryFault{unknown, id})
			continue
		}
		if x.floor != "" {
			wrong = append(wrong, entryFault{floor("drops " + x.floor), id})
		}
		if slices.ContainsFunc(x.ids, func(id convo.ID) bool { return !named[id] }) {
			wrong = append(wrong, entryFault{rule{"drops part of an exchange", "drop all that Exchange.IDs returns, or none of it"}, id})
		}
	}
	for _, c := range e.Clear {
		x := of[c.ID]
		if x == nil {
			wrong = append(wrong, entryFault{unknown, c.ID})
			continue
		}
		if x.floor != "" {
			wrong = append(wrong, entryFault{floor("clears " + x.floor), c.ID})
		}
		entry, _ := s.Find(c.ID)
		if !slices.ContainsFunc(entry.Message.ToolResults(), func(r convo.ToolResult) bool { return c.CallID == "" || c.CallID == r.CallID }) {
			wrong = append(wrong, entryFault{rule{"clears a result that the entry does not hold", "set Clear.CallID to that of a result in the entry, or leave it empty to clear all"}, c.ID})
		}
	}
	seen := make(map[convo.ID]bool)
	for _, r := range e.Rewrite {
		switch x := of[r.ID]; {
		case x == nil:
			wrong = append(wrong, entryFault{unknown, r.ID})
		case x.floor != "":
			wrong = append(wrong, entryFault{floor("rewrites " + x.floor), r.ID})
		case seen[r.ID]:
			wrong = append(wrong, entryFault{rule{"rewrites an entry twice", "name each entry once in Edit.Rewrite"}, r.ID})
		case !named[r.ID] && slices.ContainsFunc(e.Clear, func(c convo.Clear) bool { return c.ID == r.ID }):
			wrong = append(wrong, entryFault{rule{"rewrites an entry and clears a result in it", "put what stands for the result into Rewrite.Parts"}, r.ID})
		}
		seen[r.ID] = true
	}
	return wrong
}

// viewFault describes what is out of order in the messages for the model. It returns
// "" if they are in order.
func viewFault(msgs []convo.Message) string {
	open := make(map[string]int) // calls of the newest message with calls
	for i, m := range msgs {
		switch {
		case m.Role != convo.RoleTool && len(open) > 0:
			return fmt.Sprintf("message %d is between calls and their results", i)
		}
		for _, r := range m.ToolResults() {
			if open[r.CallID] == 0 {
				return fmt.Sprintf("message %d has a result that answers no open call", i)
			}
			if open[r.CallID]--; open[r.CallID] == 0 {
				delete(open, r.CallID)
			}
		}
		for _, c := range m.ToolCalls() {
			open[c.ID]++
		}
	}
	return ""
}

// floorFault describes what part of the floor of before is missing or changed in after.
// It returns "" if the floor is unchanged.
func floorFault(before, after *convo.Snapshot) string {
	of := exchangesOf(before)
	for _, was := range before.All() {
		x := of[was.ID]
		if x.floor == "" {
			continue
		}
		is, ok := after.Find(was.ID)
		if !ok {
			return fmt.Sprintf("entry %d, %s, is missing", was.ID, x.floor)
		}
		if !reflect.DeepEqual(was.Message, is.Message) && !isCut(was, is) {
			return fmt.Sprintf("entry %d, %s, has changed", was.ID, x.floor)
		}
	}
	if shows(before, recalled) && !shows(after, recalled) {
		return "the ephemeral message is missing"
	}
	return ""
}

// isCut reports whether the History has cut results of an entry, which it does if
// the floor alone exceeds the limit.
func isCut(was, is convo.Entry) bool {
	return !was.Pinned && is.Missing > was.Missing &&
		!slices.ContainsFunc(is.Message.ToolResults(), func(r convo.ToolResult) bool { return r.Cleared })
}

// A picture is the content of a snapshot, for comparison.
type picture struct {
	entries []convo.Entry
	said    string // the roles and texts of all messages that the model sees
	summary convo.Summary
	tokens  int
	version uint64
}

func pictureOf(s *convo.Snapshot) picture {
	p := picture{tokens: s.Tokens(), version: s.Version()}
	for _, e := range s.All() {
		p.entries = append(p.entries, e)
	}
	var said strings.Builder
	for _, m := range s.Messages() {
		said.WriteString(string(m.Role) + m.Text())
	}
	p.said = said.String()
	p.summary, _ = s.Summary()
	return p
}

func (p picture) is(q picture) bool { return reflect.DeepEqual(p, q) }

func jsonOf(s *convo.Snapshot) string {
	data, err := json.Marshal(s)
	return fmt.Sprint(string(data), err)
}

func shows(s *convo.Snapshot, text string) bool {
	return slices.ContainsFunc(s.Messages(), func(m convo.Message) bool { return m.Text() == text })
}
