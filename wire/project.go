package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

// Every format encodes a projection of the snapshot: the messages in the order
// that all providers want. System text comes first, each call has one result,
// results follow their calls in call order, nothing is blank, ids are valid for
// the provider, and parts that only another provider understands are left out.

// A profile describes a format to the projection.
type profile struct {
	format string // in Origin.Format and Opaque.Format
	model  string // the model that the request is for; empty if not known
	ids    idRule

	replay    convo.Replay            // which reasoning is sent; the default is all
	systemSum bool                    // the summary is part of the system text
	bare      bool                    // calls need no ids, so that those made by convo are left out
	knows     func(convo.Opaque) bool // reports whether an opaque block can be sent; nil: all can

	maker string // the last model that isOwn compared with model,
	same  bool   // and whether they are the same
}

// A message is one message of the projection.
type message struct {
	role    convo.Role         // user, assistant or tool
	parts   []convo.Part       // of user and assistant; calls come last, with the ids to be sent
	results []convo.ToolResult // of tool; in call order, with the ids to be sent
	own     bool               // of assistant; it was made by the format and model of the profile
	thinks  bool               // of assistant; its reasoning is sent
	all     []convo.Part       // of assistant; its parts in the snapshot, in their order there
}

// calls returns the tool calls of a message, which are its last parts.
func (t *message) calls() []convo.Part {
	i := slices.IndexFunc(t.parts, isCall)
	if i < 0 {
		return nil
	}
	return t.parts[i:]
}

// said returns the parts of a message before its calls.
func (t *message) said() []convo.Part { return t.parts[:len(t.parts)-len(t.calls())] }

func isCall(p convo.Part) bool { _, ok := p.(convo.ToolCall); return ok }

type projection struct {
	system     []convo.Part // Text and Opaque
	summary    int          // index in system of the summary; the length of system if it is not there
	messages   []message
	needsTools bool
}

// noResult is the text of the result that an open call gets in the request.
const noResult = "no result"

// Markers are sent where a provider wants a user message and the conversation
// has none.
const (
	earlierMarker  = "[The earlier part of this conversation is not shown.]"
	continueMarker = "[Continue.]"
)

func project(s *convo.Snapshot, p profile) (projection, error) {
	var out projection
	if s == nil {
		return out, ErrEmpty
	}
	msgs := s.Messages()
	ids := p.ids.assigner()
	sum := -1 // index of the summary, if it is part of the system text
	if _, ok := s.Summary(); ok && p.systemSum {
		sum = slices.IndexFunc(msgs, func(m convo.Message) bool { return m.Role != convo.RoleSystem })
	}
	tools := false // whether a tool was called since the newest user message
	for i := range msgs {
		m := &msgs[i]
		switch {
		case m.Role == convo.RoleSystem:
			out.system = append(out.system, p.keep(m, false)...)
			out.summary = len(out.system)
		case i == sum:
			out.system = append(out.system, m.Parts...)
		case m.Role == convo.RoleUser:
			tools = false
			out.add(message{role: m.Role, parts: p.keep(m, false)})
		case m.Role == convo.RoleAssistant:
			t := message{role: m.Role, own: p.isOwn(m.Origin), all: m.Parts}
			tools = tools || slices.ContainsFunc(m.Parts, isCall)
			t.thinks = t.own && (p.replay <= convo.ReplayAll || p.replay == convo.ReplayTools && tools)
			t.parts = p.keep(m, t.thinks)
			calls := t.calls()
			results := p.answers(msgs[i+1:], calls, ids)
			out.add(t)
			if len(results) > 0 {
				out.add(message{role: convo.RoleTool, results: results})
				out.needsTools = true
			}
		}
		// Tool messages are read by answers. Results without a call are left
		// out.
	}
	if len(out.system) == 0 && len(out.messages) == 0 {
		return out, ErrEmpty
	}
	return out, nil
}

// add appends a message unless it is empty.
func (out *projection) add(t message) {
	if len(t.parts) > 0 || len(t.results) > 0 {
		out.messages = append(out.messages, t)
	}
}

// isOwn reports whether an assistant message was made by the format and model
// of the profile. Only its maker gets the reasoning of a message back.
func (p *profile) isOwn(o convo.Origin) bool {
	if o.Format != p.format || p.model == "" {
		return o.Format == p.format
	}
	if p.maker != o.Model || o.Model == "" {
		p.maker, p.same = o.Model, sameModel(o.Model, p.model)
	}
	return p.same
}

// keep returns the parts of a message that can be sent, in order, but with the
// calls last. thinks says whether its reasoning is.
func (p *profile) keep(m *convo.Message, thinks bool) []convo.Part {
	parts := make([]convo.Part, 0, len(m.Parts))
	var calls []convo.Part
	for _, part := range m.Parts {
		switch part := part.(type) {
		case convo.Text:
			if !isBlank(string(part)) {
				parts = append(parts, part)
			}
		case convo.Reasoning:
			if thinks {
				parts = append(parts, part)
			}
		case convo.ToolCall:
			calls = append(calls, part)
		case convo.Opaque:
			if p.isBlock(part) {
				parts = append(parts, part)
			}
		default:
			parts = append(parts, part)
		}
	}
	return append(parts, calls...)
}

// answers gives the calls the ids to be sent, if any, and returns one result for each
// call: the first one with its id in the tool messages that follow and that
// answers no earlier call, or else one that says noResult.
func (p *profile) answers(after []convo.Message, calls []convo.Part, ids *idAssigner) []convo.ToolResult {
	if len(calls) == 0 {
		return nil
	}
	var given []convo.ToolResult
	for i := range after {
		if after[i].Role != convo.RoleTool {
			break
		}
		given = append(given, after[i].ToolResults()...)
	}
	waiting := make(map[resultKey][]int, len(given)) // indices of the results that answer no call yet
	for k, r := range given {
		waiting[keyOf(r.CallID, r.Name)] = append(waiting[keyOf(r.CallID, r.Name)], k)
	}
	// Some of the calls of a message with ids and some without could not be told
	// from results that answer another one.
	bare := p.bare && !slices.ContainsFunc(calls, func(p convo.Part) bool { return !p.(convo.ToolCall).Minted })
	results := make([]convo.ToolResult, len(calls))
	for i, part := range calls {
		call := part.(convo.ToolCall)
		key := keyOf(call.ID, call.Name)
		if len(waiting[key]) == 0 && call.ID == "" {
			key.name = "" // a result may have neither id nor name
		}
		if mine := waiting[key]; len(mine) > 0 {
			waiting[key] = mine[1:]
			results[i] = given[mine[0]]
			results[i].Parts = p.keepResult(results[i].Parts)
		} else {
			results[i] = convo.ToolResult{Parts: []convo.Part{convo.Text(noResult)}, IsError: true}
		}
		if bare {
			call.ID = ""
		} else {
			call.ID = ids.assign(call.ID)
		}
		results[i].CallID, results[i].Name = call.ID, call.Name
		calls[i] = call
	}
	return results
}

// A resultKey pairs calls and results: by id or, if they have no ids, by the
// name of the tool.
type resultKey struct{ id, name string }

func keyOf(id, name string) resultKey {
	if id != "" {
		name = ""
	}
	return resultKey{id, name}
}

func (p *profile) keepResult(parts []convo.Part) []convo.Part {
	kept := make([]convo.Part, 0, len(parts))
	for _, part := range parts {
		switch part := part.(type) {
		case convo.Text:
			if !isBlank(string(part)) {
				kept = append(kept, part)
			}
		case convo.Opaque:
			if p.isBlock(part) {
				kept = append(kept, part)
			}
		default:
			kept = append(kept, part)
		}
	}
	return kept
}

// isBlock reports whether an opaque part is a block of this format.
func (p *profile) isBlock(o convo.Opaque) bool {
	if o.Format != p.format || kindOf(json.RawMessage(o.JSON)) != '{' || !json.Valid([]byte(o.JSON)) || !utf8.ValidString(o.JSON) {
		return false
	}
	return p.knows == nil || p.knows(o)
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// merged returns the messages with neighbours of one role merged into one.
// Messages of results are not merged.
func (out *projection) merged() []message {
	var messages []message
	for i := 0; i < len(out.messages); {
		t := out.messages[i]
		end := i + 1
		for end < len(out.messages) && out.messages[end].role == t.role && t.role != convo.RoleTool {
			end++
		}
		if group := out.messages[i:end]; len(group) > 1 {
			var said, calls []convo.Part
			for k := range group {
				said, calls = append(said, group[k].said()...), append(calls, group[k].calls()...)
				t.own = t.own && group[k].own
			}
			t.parts = append(said, calls...)
		}
		t.parts = slices.Clip(t.parts)
		messages = append(messages, t)
		i = end
	}
	return messages
}

// userFirst returns the messages with a marker in front if they do not begin
// with a user message.
func userFirst(messages []message) []message {
	if len(messages) > 0 && messages[0].role == convo.RoleUser {
		return messages
	}
	return slices.Insert(messages, 0, message{role: convo.RoleUser, parts: []convo.Part{convo.Text(earlierMarker)}})
}

// userLast returns the messages with a marker at the end if the last one is an
// assistant message.
func userLast(messages []message) []message {
	if n := len(messages); n > 0 && messages[n-1].role == convo.RoleAssistant {
		return append(messages, message{role: convo.RoleUser, parts: []convo.Part{convo.Text(continueMarker)}})
	}
	return messages
}

// joinTexts joins the texts of parts. Media are replaced by a short text, and
// other parts are left out.
func joinTexts(parts []convo.Part, sep string) string {
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case convo.Text:
			texts = append(texts, string(p))
		case convo.Media:
			texts = append(texts, mediaText(p))
		}
	}
	return strings.Join(texts, sep)
}

// mediaText returns the text that stands for media that a format cannot carry.
func mediaText(m convo.Media) string {
	kind := m.MIME
	if kind == "" {
		kind = "a file"
	}
	if m.Data == "" && m.URL != "" {
		return "[" + kind + " at " + m.URL + "]"
	}
	return "[" + kind + ", not shown]"
}
