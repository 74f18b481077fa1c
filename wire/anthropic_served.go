package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Anthropic pairs the blocks of tools that it runs by their ids. A call and its result
// are in the same turn of the assistant. The turn goes on after a user message that holds
// nothing but results, and after another assistant message. A call may wait for its
// result only while the turn has not ended: if the answer was paused, or if it also calls
// tools of the application, in which case the provider runs its own once it has their
// results.

// A waitingCall is a call of a tool that the provider runs, without its result so far.
type waitingCall struct {
	id  string
	mcp bool // the tool is that of an MCP server
	at  place

	// Where the block is, once it is written:
	message  int // index in msgs; -1: not written
	from, to int // offsets in the list of the message

	// State of the message before the block:
	solid, spot, room int
	thoughts          []place
}

// isServedCall reports whether a block of a type is a call of a tool that the provider
// runs.
func isServedCall(kind string) bool { return strings.HasSuffix(kind, "_tool_use") }

// isServedResult reports whether a block of a type is the result of such a call.
func isServedResult(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }

// isServerBlock reports whether a block belongs to a tool that the provider
// runs. A request can end with such a block, and the provider continues the
// turn.
func isServerBlock(kind string) bool { return isServedCall(kind) || isServedResult(kind) }

// isMCP reports whether a block is the call or the result of a tool of an MCP server.
func isMCP(kind string) bool { return strings.HasPrefix(kind, "mcp_") }

// servedResult returns the type of the result of a call, whose tool has a name.
func servedResult(kind, name string) string {
	switch {
	case isMCP(kind):
		name = "mcp"
	case strings.HasPrefix(name, "tool_search_tool_"):
		name = "tool_search"
	}
	return name + "_tool_result"
}

// pair notes a block of a tool that the provider runs. It reports false if the block
// cannot be sent: a result without its call in the turn, or a call whose id another one
// has.
func (w *anthropicWriter) pair(kind string, all map[string]json.RawMessage, at place) bool {
	if isServedResult(kind) {
		id := stringOf(all["tool_use_id"])
		i := slices.IndexFunc(w.waiting, func(c waitingCall) bool { return c.id == id && c.mcp == isMCP(kind) })
		if i < 0 {
			return false
		}
		w.waiting = slices.Delete(slices.Clone(w.waiting), i, i+1)
		return true
	}
	id := stringOf(all["id"])
	if id == "" || slices.ContainsFunc(w.waiting, func(c waitingCall) bool { return c.id == id }) {
		return false
	}
	w.waiting = append(slices.Clip(w.waiting), waitingCall{id: id, mcp: isMCP(kind), at: at, message: -1})
	return true
}

// serve writes a block of a tool that the provider runs to the last message.
func (w *anthropicWriter) serve(block string, at place) {
	m := &w.msgs[len(w.msgs)-1]
	c := waitingCall{message: len(w.msgs) - 1, from: len(m.list), solid: m.solid, spot: m.spot, room: m.room, thoughts: m.thoughts}
	m.list = appendElement(m.list, block)
	m.added(false)
	m.paused = true
	for i := range w.waiting { // which pair has made for this message, if one is not written
		if old := &w.waiting[i]; old.message < 0 && old.at == at {
			c.id, c.mcp, c.at, c.to = old.id, old.mcp, old.at, len(m.list)
			*old = c
		}
	}
}

// endTurn ends the turn of the assistant. Calls that still wait for their results are
// removed.
func (w *anthropicWriter) endTurn() {
	if len(w.waiting) == 0 {
		return
	}
	w.finish()
	w.msgs = slices.Clone(w.msgs) // a saved state has the messages as they are
	for i := range slices.Backward(w.waiting) {
		c := &w.waiting[i]
		w.lost.tell(c.at, whole, lostBlock, "")
		w.msgs[c.message].remove(c, w.lost)
	}
	w.waiting = nil
	w.msgs = slices.DeleteFunc(w.msgs, func(m anthropicMessage) bool { return m.role == "assistant" && len(m.list) == m.start })
	for n := -1; n != len(w.msgs); {
		n = len(w.msgs)
		w.finish()
	}
}

// remove removes a call from the message. Calls before it can be removed after it.
func (m *anthropicMessage) remove(c *waitingCall, lost *losses) {
	to := c.to
	if c.from == m.start && to < len(m.list) {
		to++ // the comma
	}
	n := to - c.from
	m.list, m.closed = slices.Concat(m.list[:c.from], m.list[to:]), nil
	m.thinks = m.thinks || bytes.HasPrefix(m.list[m.start:], []byte(`{"type":"thinking"`)) || bytes.HasPrefix(m.list[m.start:], []byte(`{"type":"redacted_thinking"`))
	if m.solid == c.to {
		m.solid, m.thoughts = c.solid, slices.Concat(c.thoughts, m.thoughts)
	} else {
		m.solid -= n
	}
	moved := func(at *int, before int) {
		if *at >= to {
			*at -= n
		} else if *at >= c.from {
			*at = before
		}
	}
	moved(&m.spot, c.spot)
	moved(&m.room, c.room)
	marks := m.marks
	m.marks = nil
	for _, k := range marks {
		if k.at >= c.from && k.at < to {
			k.tell(lost)
			continue
		}
		if k.at >= to {
			k.at -= n
		}
		m.marks = append(m.marks, k)
	}
}
