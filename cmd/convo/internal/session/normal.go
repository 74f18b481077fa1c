package session

import (
	"slices"
	"strconv"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// noResult is the text of the results of calls for which none is recorded.
const noResult = "no result was recorded"

// IsMissing reports whether r stands for a result that was not recorded.
func IsMissing(r convo.ToolResult) bool { return r.IsError && r.Text() == noResult }

// A normalizer turns events as they were recorded into events that Append takes: each
// result follows its call, and each call that is followed by anything has a result.
type normalizer struct {
	counts *Counts
	all    bool // also answer the calls at the end

	results []foundResult
	waiting map[string][]int // indices of results that are not used yet, by key, oldest first
	next    map[string]int   // while going back: where the next call with a key is
	limits  []callLimit      // of the calls that were not reached, in order
	follows []int32          // for each message, the number of the next message that is no result
	out     []Event
	open    []convo.ToolCall // calls without a result, of the newest message
	minted  int
}

// A foundResult is a result in the events as they were recorded.
type foundResult struct {
	at   int // the number of its message
	time time.Time
	part convo.ToolResult
	used bool
}

// resultKey returns the key by which a result is found: its ID, or the name of its tool, or
// that it has neither.
func resultKey(id, name string) string {
	switch {
	case id != "":
		return "i" + id
	case name != "":
		return "n" + name
	}
	return ""
}

// normalize returns the events that Append takes, and counts what it changed.
func normalize(events []Event, c *Counts) []Event {
	n := normalizer{counts: c}
	return n.run(events)
}

// normalView is normalize for the view after a compaction. Calls at its end are answered.
func normalView(msgs []convo.Message) []convo.Message {
	n := normalizer{counts: new(Counts), all: true}
	events := make([]Event, len(msgs))
	for i := range msgs {
		m := msgs[i]
		m.Parts = append([]convo.Part(nil), m.Parts...)
		events[i].Messages = []convo.Message{m}
	}
	var view []convo.Message
	for _, e := range n.run(events) {
		view = append(view, e.Messages...)
	}
	return view
}

// callLimit says which results can answer a call: those before the next call with the same
// key.
type callLimit struct{ id, name, any int }

func (n *normalizer) run(events []Event) []Event {
	total := 0
	for i := range events {
		for j := range events[i].Messages {
			m := &events[i].Messages[j]
			clean(m)
			if m.Role == convo.RoleTool {
				for _, p := range m.Parts {
					n.results = append(n.results, foundResult{at: total, time: events[i].Time, part: p.(convo.ToolResult)})
				}
			}
			total++
		}
	}
	n.waiting = make(map[string][]int)
	for i := range n.results {
		key := resultKey(n.results[i].part.CallID, n.results[i].part.Name)
		n.waiting[key] = append(n.waiting[key], i)
	}
	n.lookAhead(events, total)
	n.out = make([]Event, 0, len(events))
	at := 0
	for i := range events {
		e := events[i]
		events[i] = Event{} // so that its memory can be used again
		if e.Usage != nil && !isValid(*e.Usage) {
			e.Usage = nil
			n.counts.Usages++
		}
		at = n.event(e, at)
	}
	if n.all {
		n.answer()
	}
	for i := range n.results {
		if !n.results[i].used {
			n.counts.Dropped++
		}
	}
	return n.out
}

// lookAhead sets limits and follows.
func (n *normalizer) lookAhead(events []Event, total int) {
	n.next = make(map[string]int)
	n.follows = make([]int32, total)
	next, at := total, total
	for i := len(events) - 1; i >= 0; i-- {
		for j := len(events[i].Messages) - 1; j >= 0; j-- {
			at--
			m := &events[i].Messages[j]
			n.follows[at] = int32(next)
			if m.Role != convo.RoleTool {
				next = at
			}
			if m.Role != convo.RoleAssistant {
				continue
			}
			from := len(n.limits)
			for k := len(m.Parts) - 1; k >= 0; k-- {
				if c, ok := m.Parts[k].(convo.ToolCall); ok {
					n.limits = append(n.limits, callLimit{n.nextCall(resultKey(c.ID, ""), total), n.nextCall(resultKey("", c.Name), total), n.nextCall("", total)})
				}
			}
			if len(n.limits) == from {
				continue
			}
			n.next[""] = at
			for _, p := range m.Parts {
				if c, ok := p.(convo.ToolCall); ok {
					n.next[resultKey(c.ID, "")] = at
					n.next[resultKey("", c.Name)] = at
				}
			}
		}
	}
	n.next = nil
	slices.Reverse(n.limits)
}

func (n *normalizer) nextCall(key string, total int) int {
	if at, ok := n.next[key]; ok {
		return at
	}
	return total
}

// event adds an event, whose first message has the number at, and returns the number of the
// message after it.
func (n *normalizer) event(from Event, at int) int {
	var cur *Event // of from, to which messages are added
	for k, m := range from.Messages {
		at++
		if m.Role == convo.RoleTool {
			cur = nil
			continue
		}
		assistant := m.Role == convo.RoleAssistant
		if len(m.Parts) == 0 && (!assistant || from.Usage == nil) {
			n.counts.Dropped++
			continue
		}
		if len(n.open) > 0 {
			n.answer()
			cur = nil
		}
		if assistant || cur == nil {
			cur = n.add(Event{Time: from.Time})
		}
		if assistant {
			cur.Usage, cur.Model, from.Usage = from.Usage, from.Model, nil
		}
		found := n.pair(&m, at-1)
		from.Messages[k] = m
		if cur.Messages == nil {
			cur.Messages = from.Messages[k : k+1 : k+1]
		} else {
			cur.Messages = append(cur.Messages, m)
		}
		if assistant {
			cur = nil
		}
		n.addResults(found, at-1)
	}
	if from.Usage != nil {
		n.counts.Usages++
	}
	if from.Compaction != nil {
		n.add(Event{Time: from.Time, Compaction: from.Compaction})
	}
	return at
}

func (n *normalizer) add(e Event) *Event {
	n.out = append(n.out, e)
	return &n.out[len(n.out)-1]
}

// pair names the calls of m, which is message at, and returns the results that answer them,
// in the order in which they were recorded. The other calls become n.open.
func (n *normalizer) pair(m *convo.Message, at int) (found []int) {
	var taken map[string]bool
	for i, p := range m.Parts {
		c, ok := p.(convo.ToolCall)
		if !ok {
			continue
		}
		limit := n.limits[0]
		n.limits = n.limits[1:]
		k := n.take(c, at, limit)
		if c.ID == "" || c.Minted {
			if taken == nil {
				taken = ownIDs(m)
			}
			c.ID, c.Minted = n.newID(taken), true
			m.Parts[i] = c
		}
		if k < 0 {
			n.open = append(n.open, c)
			continue
		}
		r := &n.results[k]
		r.used, r.part.CallID, r.part.Name = true, c.ID, c.Name
		found = append(found, k)
	}
	slices.Sort(found)
	return found
}

// newID returns an ID that is not taken, the same each time that a file is read.
func (n *normalizer) newID(taken map[string]bool) string {
	for {
		n.minted++
		if id := "call_" + strconv.Itoa(n.minted); !taken[id] {
			return id
		}
	}
}

// ownIDs returns the IDs of the calls of m that were not made by Decode.
func ownIDs(m *convo.Message) map[string]bool {
	ids := make(map[string]bool)
	for _, p := range m.Parts {
		if c, ok := p.(convo.ToolCall); ok && !c.Minted {
			ids[c.ID] = true
		}
	}
	return ids
}

// addResults adds the results of the calls of message at. Results of one message stay
// together.
func (n *normalizer) addResults(found []int, at int) {
	last := -1
	for _, k := range found {
		r := &n.results[k]
		if r.at > int(n.follows[at]) {
			n.counts.Reordered++
		}
		if r.at == last {
			m := &n.out[len(n.out)-1].Messages[0]
			m.Parts = append(m.Parts, r.part)
		} else {
			n.add(Event{Time: r.time, Messages: []convo.Message{{Role: convo.RoleTool, Parts: []convo.Part{r.part}}}})
		}
		last = r.at
		r.part.Parts = nil
	}
}

// take returns the index of the result that answers a call in message at, or -1.
func (n *normalizer) take(c convo.ToolCall, at int, limit callLimit) int {
	for _, by := range []struct {
		key   string
		limit int
	}{{resultKey(c.ID, ""), limit.id}, {resultKey("", c.Name), limit.name}, {"", limit.any}} {
		list := n.waiting[by.key]
		for len(list) > 0 && n.results[list[0]].at < at {
			list = list[1:]
		}
		found := -1
		if len(list) > 0 && n.results[list[0]].at < by.limit {
			found, list = list[0], list[1:]
		}
		n.waiting[by.key] = list
		if found >= 0 {
			return found
		}
	}
	return -1
}

// answer adds results for the calls that have none.
func (n *normalizer) answer() {
	if len(n.open) == 0 {
		return
	}
	m := convo.Message{Role: convo.RoleTool}
	for _, c := range n.open {
		m.Parts = append(m.Parts, convo.ToolResult{CallID: c.ID, Name: c.Name, Parts: []convo.Part{convo.Text(noResult)}, IsError: true})
	}
	n.counts.Answered += len(n.open)
	n.open = nil
	n.out = append(n.out, Event{Time: n.out[len(n.out)-1].Time, Messages: []convo.Message{m}})
}

// clean removes what a message of its role cannot hold, and makes the IDs of its calls
// different from each other.
func clean(m *convo.Message) {
	switch m.Role {
	case convo.RoleSystem, convo.RoleUser, convo.RoleAssistant, convo.RoleTool:
	default:
		m.Role = convo.RoleUser
	}
	kept := m.Parts[:0]
	var ids map[string]bool
	for _, p := range m.Parts {
		if c, ok := p.(convo.ToolCall); ok && c.ID != "" {
			if ids == nil {
				ids = make(map[string]bool)
			}
			if ids[c.ID] {
				c.ID, c.Minted = "", true
				p = c
			}
			ids[c.ID] = true
		}
		if r, ok := p.(convo.ToolResult); ok {
			r.Parts = slices.DeleteFunc(slices.Clone(r.Parts), func(p convo.Part) bool { return !fits(p, convo.RoleUser) })
			p = r
		}
		if fits(p, m.Role) {
			kept = append(kept, p)
		}
	}
	m.Parts = kept
}

// fits reports whether a message of a role can hold a part.
func fits(p convo.Part, role convo.Role) bool {
	assistant := role == convo.RoleAssistant
	switch p := p.(type) {
	case convo.Text:
		return p != "" && role != convo.RoleTool
	case convo.Reasoning:
		return assistant && p != (convo.Reasoning{})
	case convo.ToolCall:
		return assistant && p.Name != ""
	case convo.ToolResult:
		return role == convo.RoleTool
	case convo.Media:
		if role != convo.RoleUser && !assistant || p.Data == "" && p.URL == "" || p.Data != "" && p.MIME == "" {
			return false
		}
		return text.IsBase64(p.Data)
	case convo.Opaque:
		return role != convo.RoleTool && p.Format != "" && strictjson.Valid([]byte(p.JSON))
	}
	return p != nil
}
