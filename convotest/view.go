package convotest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// An entryFault is a rule that an edit breaks by the entries it names.
type entryFault struct {
	rule string
	id   convo.ID
}

// An exchange of a snapshot, with what makes it floor; empty when it is none.
type exchange struct {
	ids   []convo.ID
	floor string
}

// exchangesOf returns the exchange of each entry. It goes by the entries
// themselves, and not by what the package says of its exchanges' floor.
func exchangesOf(s *convo.Snapshot) map[convo.ID]*exchange {
	of := make(map[convo.ID]*exchange)
	var newest *exchange
	for x := range s.Exchanges() {
		first, _ := s.Find(x.First)
		ex := &exchange{ids: x.IDs()}
		switch {
		case first.Message.Role == convo.RoleSystem:
			ex.floor = "a system entry"
		case first.Pinned:
			ex.floor = "a pinned exchange"
		}
		if first.Message.Role != convo.RoleSystem {
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
	last, _ := s.Find(newest.ids[0])
	for _, e := range s.All() {
		if e.Turn != last.Turn || e.Message.Role == convo.RoleSystem {
			continue
		}
		if e.Message.Role != convo.RoleUser {
			break
		}
		mark(of[e.ID], "a user message of the newest turn")
	}
	return of
}

// entryFaults returns what is wrong with the entries that an edit names.
func entryFaults(s *convo.Snapshot, e convo.Edit) (wrong []entryFault) {
	of := exchangesOf(s)
	named := make(map[convo.ID]bool)
	for _, id := range e.Drop {
		named[id] = true
	}
	const unknown = "names an entry that the snapshot does not hold"
	for _, id := range e.Drop {
		x := of[id]
		if x == nil {
			wrong = append(wrong, entryFault{unknown, id})
			continue
		}
		if x.floor != "" {
			wrong = append(wrong, entryFault{"drops " + x.floor, id})
		}
		if slices.ContainsFunc(x.ids, func(id convo.ID) bool { return !named[id] }) {
			wrong = append(wrong, entryFault{"drops half an exchange", id})
		}
	}
	for _, c := range e.Clear {
		x := of[c.ID]
		if x == nil {
			wrong = append(wrong, entryFault{unknown, c.ID})
			continue
		}
		if x.floor != "" {
			wrong = append(wrong, entryFault{"clears " + x.floor, c.ID})
		}
		entry, _ := s.Find(c.ID)
		if !slices.ContainsFunc(entry.Message.ToolResults(), func(r convo.ToolResult) bool { return c.CallID == "" || c.CallID == r.CallID }) {
			wrong = append(wrong, entryFault{"clears a result that is not there", c.ID})
		}
	}
	return wrong
}

// viewFault says what is out of order in what a model is to see, empty when
// nothing is.
func viewFault(msgs []convo.Message) string {
	front := true
	open := make(map[string]int) // calls of the newest message with calls
	for i, m := range msgs {
		front = front && m.Role == convo.RoleSystem
		switch {
		case m.Role == convo.RoleSystem && !front:
			return fmt.Sprintf("message %d is a system message behind others", i)
		case m.Role != convo.RoleTool && len(open) > 0:
			return fmt.Sprintf("message %d stands between calls and their results", i)
		}
		for _, r := range m.ToolResults() {
			if open[r.CallID] == 0 {
				return fmt.Sprintf("message %d has a result for no open call", i)
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

// floorFault says what of the floor of before is gone or changed, empty when
// all of it is there.
func floorFault(before, after *convo.Snapshot) string {
	of := exchangesOf(before)
	for _, was := range before.All() {
		x := of[was.ID]
		if x.floor == "" {
			continue
		}
		is, ok := after.Find(was.ID)
		if !ok {
			return fmt.Sprintf("entry %d, %s, is gone", was.ID, x.floor)
		}
		if !reflect.DeepEqual(was.Message, is.Message) {
			return fmt.Sprintf("entry %d, %s, has changed", was.ID, x.floor)
		}
	}
	if shows(before, recalled) && !shows(after, recalled) {
		return "the ephemeral message is gone"
	}
	return ""
}

// A picture is all that a snapshot shows, to compare.
type picture struct {
	entries []convo.Entry
	said    string // in all messages that the model sees
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
