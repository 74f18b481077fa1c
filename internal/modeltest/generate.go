package modeltest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// The methods in this file make messages to append.

func (d *driver) text() string { return strings.Repeat("x", d.n(12)+1) }

func (d *driver) user() message { return message{role: convo.RoleUser, text: d.text()} }

func (d *driver) assistant(calls int) message {
	m := message{role: convo.RoleAssistant}
	if calls == 0 || d.n(3) == 0 {
		m.text = d.text()
	}
	if d.n(3) == 0 {
		m.thought = d.text()
	}
	first := d.n(4) // ids may repeat in later exchanges
	for i := range calls {
		m.calls = append(m.calls, "c"+strconv.Itoa((first+i)%6))
	}
	return m
}

func (d *driver) result(id string) result {
	r := result{id: id, isErr: d.n(5) == 0, noName: d.n(3) == 0}
	if d.n(8) > 0 {
		r.text = strings.Repeat("r", d.n(60)+1)
		if d.n(16) == 0 {
			r.text = strings.Repeat("r ", d.n(255)+1)
		}
	}
	return r
}

// results answers all or some of the open calls, in any order, in one message
// or several.
func (d *driver) results(open []string, all bool) []message {
	var msgs []message
	open = slices.Clone(open)
	for n := len(open); n > 0; n-- {
		i := d.n(len(open))
		r := d.result(open[i])
		if d.n(4) == 0 {
			r.noID = true
		}
		open = slices.Delete(open, i, i+1)
		if k := len(msgs); k > 0 && d.n(3) == 0 {
			msgs[k-1].results = append(msgs[k-1].results, r)
		} else {
			msgs = append(msgs, message{role: convo.RoleTool, results: []result{r}})
		}
		if !all && d.n(2) == 0 {
			break
		}
	}
	return msgs
}

// sensible returns a batch that is mostly accepted.
func (d *driver) sensible() []message {
	if open := d.m.open(); len(open) > 0 {
		return d.results(open, d.n(2) == 0)
	}
	if len(d.m.list) == 0 {
		if d.n(2) == 0 && len(d.m.sys) == 0 {
			return []message{{role: convo.RoleSystem, text: d.text()}, d.user()}
		}
		return []message{d.user()}
	}
	if d.m.relaxed && d.n(6) == 0 {
		return []message{{role: convo.RoleSystem, text: d.text()}}
	}
	switch last := d.m.newest(); {
	case last == convo.RoleUser && d.m.hasFailed() && d.n(3) == 0:
		return []message{d.user()}
	case last == convo.RoleUser:
		return []message{d.assistant(max(d.n(6)-2, 0))}
	case last == convo.RoleTool:
		return []message{d.assistant(max(d.n(5)-1, 0))}
	default:
		if d.n(6) == 0 {
			return []message{d.user(), d.user()}
		}
		return []message{d.user()}
	}
}

// round returns calls and all their results in one batch, if an assistant message
// may come next.
func (d *driver) round() []message {
	if len(d.m.open()) > 0 || len(d.m.list) == 0 || d.m.newest() == convo.RoleAssistant {
		return d.sensible()
	}
	a := d.assistant(d.n(4) + 1)
	return append([]message{a}, d.results(a.calls, true)...)
}

// anything returns a batch that is mostly refused.
func (d *driver) anything() []message {
	var batch []message
	for range d.n(4) {
		switch d.n(5) {
		case 0:
			batch = append(batch, message{role: convo.RoleSystem, text: d.text()})
		case 1:
			batch = append(batch, d.user())
		case 2:
			batch = append(batch, d.assistant(d.n(3)))
		default:
			r := d.result("c" + strconv.Itoa(d.n(7)))
			if d.n(4) == 0 {
				r.noID = true
			}
			batch = append(batch, message{role: convo.RoleTool, results: []result{r}})
		}
	}
	return batch
}

// parts returns parts to replace those of m. They are mostly accepted.
func (d *driver) parts(m message) []convo.Part {
	text := func() convo.Part { return convo.Text(d.text()) }
	var parts []convo.Part
	switch {
	case d.n(30) == 0:
		return nil
	case m.role == convo.RoleTool && d.n(3) == 0:
		return []convo.Part{text()} // the content of the only result
	case m.role == convo.RoleTool:
		parts = m.build().Parts
		for i, p := range parts {
			r := p.(convo.ToolResult)
			r.CallID, r.Name, r.Cleared = m.results[i].id, toolName(m.results[i].id), m.results[i].cleared
			if d.n(3) > 0 {
				r.Parts, r.Cleared = []convo.Part{text()}, false
			}
			if d.n(40) == 0 {
				r.IsError = !r.IsError
			}
			parts[i] = r
		}
	case len(m.calls) > 0 && d.n(3) > 0:
		parts = m.build().Parts
		for i, p := range parts {
			switch p.(type) {
			case convo.Text:
				parts[i] = text()
			case convo.Reasoning:
				parts[i] = convo.Reasoning{Text: d.text()}
			}
		}
		if d.n(20) == 0 {
			parts = append(parts, convo.ToolCall{ID: "c9", Name: toolName("c9"), Arguments: callArguments})
		}
	case d.n(6) == 0:
		parts = m.build().Parts // unchanged
	default:
		parts = []convo.Part{text()}
		if m.role == convo.RoleAssistant && d.n(3) == 0 {
			parts = slices.Insert(parts, 0, convo.Part(convo.Reasoning{Text: d.text()}))
		}
	}
	if len(parts) > 1 && d.n(40) == 0 {
		parts = parts[1:]
	}
	return parts
}

// build returns the message to append.
func (m message) build() convo.Message {
	switch m.role {
	case convo.RoleSystem:
		return convo.System(m.text)
	case convo.RoleUser:
		return convo.User(m.text)
	case convo.RoleAssistant:
		var calls []convo.ToolCall
		for i, id := range m.calls {
			calls = append(calls, convo.ToolCall{ID: id, Name: toolName(id), Arguments: m.arguments(i)})
		}
		out := convo.Assistant(m.text, calls...)
		if m.thought != "" {
			out.Parts = slices.Insert(out.Parts, 0, convo.Part(convo.Reasoning{Text: m.thought}))
		}
		return out
	}
	out := convo.Message{Role: convo.RoleTool}
	for _, r := range m.results {
		p := convo.ToolResult{CallID: r.id, Name: toolName(r.id), IsError: r.isErr}
		if r.noID {
			p.CallID = ""
		}
		if r.noName {
			p.Name = ""
		}
		if r.text != "" {
			p.Parts = []convo.Part{convo.Text(r.text)}
		}
		out.Parts = append(out.Parts, p)
	}
	return out
}
