package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-c1b73e60/convo"
)

// Every format is written from one projection of the snapshot, which is in
// order already: system text in front, results directly after their calls and
// in call order, one for each call, nothing blank, ids that the provider
// takes, and no part that only another provider understands.

// A profile is what the projection has to know of a format.
type profile struct {
	format string // as in Origin.Format and Opaque.Format
	model  string // the request goes to; empty: unknown
	ids    idRule

	noReasoning bool                    // the format carries none
	knows       func(convo.Opaque) bool // whether a block is one at all; nil: each is
}

// A turn is one message of the projection.
type turn struct {
	role    convo.Role         // user, assistant or tool
	parts   []convo.Part       // of user and assistant; calls come last and have wire ids
	results []convo.ToolResult // of tool; in call order, with wire ids
	own     bool               // an assistant turn that the format and model at hand have made
}

// calls returns the calls of a turn: they are its last parts.
func (t *turn) calls() []convo.Part {
	i := slices.IndexFunc(t.parts, isCall)
	if i < 0 {
		return nil
	}
	return t.parts[i:]
}

// said returns the parts of a turn before its calls.
func (t *turn) said() []convo.Part { return t.parts[:len(t.parts)-len(t.calls())] }

func isCall(p convo.Part) bool { _, ok := p.(convo.ToolCall); return ok }

type projection struct {
	system     []convo.Part // Text and Opaque
	turns      []turn
	needsTools bool
}

// noResult answers a call that is open in the snapshot.
const noResult = "no result"

// Markers stand where a provider wants a user turn and there is none.
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
	for i := range msgs {
		m := &msgs[i]
		switch m.Role {
		case convo.RoleSystem:
			out.system = append(out.system, p.keep(m, false)...)
		case convo.RoleUser:
			out.add(turn{role: m.Role, parts: p.keep(m, false)})
		case convo.RoleAssistant:
			t := turn{role: m.Role, own: p.isOwn(m.Origin)}
			t.parts = p.keep(m, t.own)
			calls := t.calls()
			results := p.answers(msgs[i+1:], calls, ids)
			out.add(t)
			if len(results) > 0 {
				out.add(turn{role: convo.RoleTool, results: results})
				out.needsTools = true
			}
		}
		// Tool messages were taken by the calls before them; others answer
		// nothing.
	}
	if len(out.system) == 0 && len(out.turns) == 0 {
		return out, ErrEmpty
	}
	return out, nil
}

// add appends a turn that says anything.
func (out *projection) add(t turn) {
	if len(t.parts) > 0 || len(t.results) > 0 {
		out.turns = append(out.turns, t)
	}
}

// isOwn reports whether what an assistant message holds for its maker alone
// may be sent: reasoning with its signatures.
func (p *profile) isOwn(o convo.Origin) bool {
	return o.Format == p.format && (p.model == "" || o.Model == p.model)
}

// keep returns the parts of a message that the format understands, none of
// them blank; calls last, and otherwise in their order.
func (p *profile) keep(m *convo.Message, own bool) []convo.Part {
	parts := make([]convo.Part, 0, len(m.Parts))
	var calls []convo.Part
	for _, part := range m.Parts {
		switch part := part.(type) {
		case convo.Text:
			if !isBlank(string(part)) {
				parts = append(parts, part)
			}
		case convo.Reasoning:
			if own && !p.noReasoning {
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

// answers gives the calls wire ids and returns a result for each: the first
// with its id in the tool messages that follow, by occurrence, or one that
// says that there is none.
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
	waiting := make(map[resultKey][]int, len(given)) // positions, by what they answer
	for k, r := range given {
		waiting[keyOf(r.CallID, r.Name)] = append(waiting[keyOf(r.CallID, r.Name)], k)
	}
	results := make([]convo.ToolResult, len(calls))
	for i, part := range calls {
		call := part.(convo.ToolCall)
		key := keyOf(call.ID, call.Name)
		if len(waiting[key]) == 0 && call.ID == "" {
			key.name = "" // of no name either
		}
		if mine := waiting[key]; len(mine) > 0 {
			waiting[key] = mine[1:]
			results[i] = given[mine[0]]
			results[i].Parts = p.keepResult(results[i].Parts)
		} else {
			results[i] = convo.ToolResult{Parts: []convo.Part{convo.Text(noResult)}, IsError: true}
		}
		call.ID = ids.assign(call.ID)
		results[i].CallID, results[i].Name = call.ID, call.Name
		calls[i] = call
	}
	return results
}

// A resultKey says which call a result answers: the one with its id, or, where
// nobody has given ids, the next of its name.
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

// isBlock reports whether an opaque part can be a block of this format: it is
// a JSON object that says what it is.
func (p *profile) isBlock(o convo.Opaque) bool {
	if o.Format != p.format || kindOf(json.RawMessage(o.JSON)) != '{' || !json.Valid([]byte(o.JSON)) || !utf8.ValidString(o.JSON) {
		return false
	}
	return p.knows == nil || p.knows(o)
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// merged returns the turns with neighbours of one role made one. Results stay
// turns of their own.
func (out *projection) merged() []turn {
	var turns []turn
	for i := 0; i < len(out.turns); {
		t := out.turns[i]
		end := i + 1
		for end < len(out.turns) && out.turns[end].role == t.role && t.role != convo.RoleTool {
			end++
		}
		if group := out.turns[i:end]; len(group) > 1 {
			var said, calls []convo.Part
			for k := range group {
				said, calls = append(said, group[k].said()...), append(calls, group[k].calls()...)
				t.own = t.own && group[k].own
			}
			t.parts = append(said, calls...)
		}
		t.parts = slices.Clip(t.parts)
		turns = append(turns, t)
		i = end
	}
	return turns
}

// userFirst returns the turns with a marker in front when they do not begin
// with a user turn.
func userFirst(turns []turn) []turn {
	if len(turns) > 0 && turns[0].role == convo.RoleUser {
		return turns
	}
	return slices.Insert(turns, 0, turn{role: convo.RoleUser, parts: []convo.Part{convo.Text(earlierMarker)}})
}

// userLast returns the turns with a marker at the end when the last one is an
// assistant turn.
func userLast(turns []turn) []turn {
	if n := len(turns); n > 0 && turns[n-1].role == convo.RoleAssistant {
		return append(turns, turn{role: convo.RoleUser, parts: []convo.Part{convo.Text(continueMarker)}})
	}
	return turns
}

// joinTexts returns the texts of parts, one below the other; media are named.
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

// mediaText stands for media where a format cannot carry it.
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
