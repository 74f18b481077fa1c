package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Anthropic pairs the blocks of tools that it runs by their ids. A call and its result are
// in the same turn of the assistant. The turn goes on after a user message that holds
// nothing but results, and after another assistant message. A call may wait for its result
// only while the turn has not ended: if the answer was paused, or if it also calls tools of
// the application. Then the provider runs its own tools once it has their results. Code that
// the provider runs may itself call tools: the blocks of these name it as their caller, and
// go with it.

// A waitingCall is a call of a tool that the provider runs, without its result so far, or what
// the code of such a call has called, which goes with it.
type waitingCall struct {
	id  string // empty for a result, and for the caller of a call of the application
	mcp bool   // the tool is that of an MCP server
	at  place

	caller   string // ID of the call whose code made it; empty: the model did
	answered bool   // only its caller waits
	code     bool   // the tool runs code
	in       string // the container of its code; empty: not known

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
		i := slices.IndexFunc(w.waiting, func(c waitingCall) bool { return c.id == id && id != "" && c.mcp == isMCP(kind) && !c.answered })
		if i < 0 {
			return false
		}
		w.waiting = slices.Clone(w.waiting)
		if by := w.waiting[i].caller; by != "" {
			w.waiting[i].answered = true
			w.waiting = append(w.waiting, waitingCall{at: at, caller: by, message: -1})
			w.touch(by)
			return true
		}
		w.waiting = slices.DeleteFunc(slices.Delete(w.waiting, i, i+1), func(c waitingCall) bool { return c.caller == id && (c.answered || c.id == "") })
		for k := range w.waiting {
			if w.waiting[k].caller == id {
				w.waiting[k].caller = ""
			}
		}
		return true
	}
	id, by := stringOf(all["id"]), inner(all["caller"], "tool_id")
	if id == "" || by != "" && !w.runs(by) || slices.ContainsFunc(w.waiting, func(c waitingCall) bool { return c.id == id }) {
		return false
	}
	w.waiting = append(slices.Clone(w.waiting), waitingCall{id: id, mcp: isMCP(kind), at: at, caller: by, code: strings.HasSuffix(stringOf(all["name"]), "code_execution"), in: w.in, message: -1})
	w.touch(by)
	return true
}

// runs reports whether the call with an ID waits for its result, and may call others.
func (w *anthropicWriter) runs(id string) bool {
	return slices.ContainsFunc(w.waiting, func(c waitingCall) bool { return c.id == id && c.caller == "" && !c.answered })
}

// touch records the container of the newest answer as that of the code of a call, which has
// called something in it.
func (w *anthropicWriter) touch(caller string) {
	for i := range w.waiting {
		if c := &w.waiting[i]; c.id == caller && caller != "" && w.in != "" {
			c.in = w.in
		}
	}
}

// A codeCaller says which code made a call of the application, and where the part is that
// says so.
type codeCaller struct {
	partFields
	at place
}

// callersIn returns the callers of the calls of a message, by their index among the calls.
func callersIn(t *message) (callers map[int]codeCaller) {
	n := 0
	for i, p := range t.all {
		if !isCall(p) {
			continue
		}
		if i > 0 {
			o, _ := t.all[i-1].(convo.Opaque)
			if f, ok := fieldsOf(o); ok && o.Format == FormatAnthropic && f.CallerID != "" {
				if callers == nil {
					callers = map[int]codeCaller{}
				}
				callers[n] = codeCaller{f, t.placeOfAll(i - 1)}
			}
		}
		n++
	}
	return callers
}

// isCallerAt reports whether the part at a place is one of callers.
func isCallerAt(callers map[int]codeCaller, at place) bool {
	for _, c := range callers {
		if c.at == at {
			return true
		}
	}
	return false
}

// called writes the caller of a call of the application, if its code still waits.
func (w *anthropicWriter) called(m *anthropicMessage, id string, by codeCaller) {
	if !w.runs(by.CallerID) {
		w.lost.tell(by.at, whole, lostBlock, "")
		return
	}
	c := waitingCall{caller: by.CallerID, at: by.at, message: len(w.msgs) - 1, from: len(m.list), solid: m.solid, spot: m.spot, room: m.room, thoughts: m.thoughts}
	m.list = append(appendStringField(appendStringField(append(strictjson.Key(m.list, "caller"), '{'), "type", by.Caller), "tool_id", by.CallerID), '}')
	c.to = len(m.list)
	w.waiting = append(slices.Clone(w.waiting), c)
	w.touch(by.CallerID)
	w.byCode = append(w.byCode, id)
}

// isStranded reports whether code that has called a tool waits in a container that is not
// known. The provider refuses such a request.
func (w *anthropicWriter) isStranded() bool {
	return w.f.params.container == "" && slices.ContainsFunc(w.waiting, func(c waitingCall) bool {
		return c.in == "" && slices.ContainsFunc(w.waiting, func(inner waitingCall) bool { return c.id != "" && inner.caller == c.id })
	})
}

// contain names the container of the newest code that waits, unless the parameters name one.
func (w *anthropicWriter) contain(r *Request) {
	for i := range slices.Backward(w.waiting) {
		c := &w.waiting[i]
		if c.id == "" || c.caller != "" || c.in == "" || !c.code {
			continue
		}
		if own := w.f.params.container; own == "" {
			r.Fields = map[string]json.RawMessage{containerField: strictjson.AppendString(nil, c.in)}
		} else if own != c.in {
			w.lost.tell(c.at, whole, lostContainer, own)
		}
		return
	}
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
			c.caller, c.answered, c.code, c.in = old.caller, old.answered, old.code, old.in
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
		w.done.cut(c.message)
	}
	w.waiting = nil
	w.msgs = slices.DeleteFunc(w.msgs, func(m anthropicMessage) bool { return m.role == "assistant" && len(m.list) == m.start })
	w.reopen()
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
	m.paused = false
	m.list = slices.Concat(m.list[:c.from], m.list[to:])
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

// defines sets the tools of the request. It reports false if what is written refers to tools
// and the tools are others than before.
func (w *anthropicWriter) defines(tools []convo.Tool) bool {
	if w.begun && slices.Equal(tools, w.defined) {
		return true
	}
	w.begun, w.defined, w.tools = true, tools, toolSet{}
	for _, t := range tools {
		if t.Opaque == (convo.Opaque{}) {
			w.tools.name(sentName(t.Name, anthropicToolNames), "")
		} else if t.Opaque.Format == FormatAnthropic {
			w.tools.add(json.RawMessage("[" + t.Opaque.JSON + "]"))
		}
	}
	w.tools.add(json.RawMessage(w.f.params.tools))
	return len(w.references) == 0 && !w.refers
}

// changes reports whether the request has the tools that a message with the role system adds
// or removes. Such a message may define a tool itself.
func (w *anthropicWriter) changes(raw string) bool {
	all, _ := fields("-", []byte(raw))
	blocks, _ := strictjson.SplitArray(all["content"])
	for _, b := range blocks {
		block, _ := fields("-", b)
		if !isToolChange(block) {
			continue
		}
		w.refers = true
		switch kind := inner(block["tool"], "type"); {
		case kind == toolReference && !w.inline && w.tools.lacks(inner(block["tool"], "name")):
			return false
		case !strings.HasSuffix(kind, "_reference"):
			w.inline = true
		}
	}
	return true
}

// refer returns what is sent for a block that refers to tools; see toolSet.refer.
func (w *anthropicWriter) refer(raw string, at place, inside int) (block, text string) {
	if w.inline {
		return raw, ""
	}
	block, text = w.tools.refer(raw)
	if text != "" {
		w.lost.tell(at, inside, lostReference, "")
	}
	if x := (reference{raw, asSent(block, text)}); !slices.Contains(w.references, x) {
		w.references = append(w.references, x)
	}
	return block, text
}
