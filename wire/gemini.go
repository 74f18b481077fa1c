package wire

import (
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Gemini is the format of Google's generateContent, of the Gemini API and of
// Vertex AI.
//
// Results have a content of their own, as several models answer nothing to
// other parts beside them, and Vertex AI refuses them; what the user says next
// is the content after it. A result is {"output": text}, or {"error": text}.
// Its media stand in that next content, under a line that says whose they are;
// where Model is Gemini 3 or later, images, PDFs and texts go inside the
// result.
//
// A thoughtSignature is a [convo.Reasoning] with a Signature and no Text,
// directly before the part that it belongs to; its ID is that of the call,
// when that is a call. Thoughts with a text are sent back where they were.
//
// Gemini 3 refuses function calls of the current turn that have no signature.
// The first call of each message that has none, made by hand or by another
// model, gets the one that Google gives for this, whatever turn it is of, so
// that requests begin alike. It is left out only where Model says Gemini 1
// or 2.
//
// Not carried: ids of reasoning, and Encrypted; signatures that no text, call
// or media follows; thoughts of a message that says nothing else; the borders
// between texts of one result; which result media belong to, where they stand
// after it.
type Gemini struct {
	// Model is what the request goes to, as in "gemini-3-flash-preview". Own
	// reasoning and signatures go back only to it. Empty: to any. Decode takes
	// it for the model of answers, and of requests that do not say.
	Model string
}

const (
	geminiFormat = "gemini"

	// skipSignature reads skip_thought_signature_validator.
	skipSignature = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
)

var geminiNames = &names{"systemInstruction", "contents"}

func (f Gemini) model() string { return strings.TrimPrefix(f.Model, "models/") }

// geminiGeneration returns the 3 of "gemini-3-flash", 0 where it is not known.
func geminiGeneration(model string) int {
	_, rest, _ := strings.Cut(model, "gemini-")
	n := 0
	for i := 0; i < len(rest) && i < 3 && '0' <= rest[i] && rest[i] <= '9'; i++ {
		n = 10*n + int(rest[i]-'0')
	}
	return n
}

// Encode writes the request.
func (f Gemini) Encode(s *convo.Snapshot) (Request, error) {
	profile := profile{format: geminiFormat, model: f.model(), ids: geminiIDs}
	p, err := project(s, profile)
	if err != nil {
		return Request{}, err
	}
	generation := geminiGeneration(f.Model)
	w := geminiWriter{signs: profile.geminiSigns(s.Messages()), fill: generation == 0 || generation >= 3, nest: generation >= 3}
	r := Request{System: geminiSystem(p.system), NeedsTools: p.needsTools, names: geminiNames}
	for i := range p.turns {
		w.turn(&p.turns[i])
	}
	if len(w.contents) == 0 && r.System == nil {
		return Request{}, ErrEmpty
	}
	r.Messages = make([]json.RawMessage, 0, len(w.contents)+2)
	marker := func(text string) {
		r.Messages = append(r.Messages, geminiContent{role: "user", parts: geminiText([]byte{'['}, text, false, "")}.json())
	}
	if len(w.contents) > 0 && w.contents[0].role == "model" {
		marker(earlierMarker)
	}
	for _, c := range w.contents {
		r.Messages = append(r.Messages, c.json())
	}
	if n := len(w.contents); n == 0 || w.contents[n-1].role == "model" {
		marker(continueMarker)
	}
	return r, nil
}

func geminiSystem(parts []convo.Part) json.RawMessage {
	list := []byte{'['}
	for _, part := range parts {
		switch part := part.(type) {
		case convo.Text:
			list = geminiText(list, string(part), false, "")
		case convo.Opaque:
			list = appendGeminiOpaque(list, part.JSON, false)
		}
	}
	if len(list) == 1 {
		return nil
	}
	return append(append([]byte(`{"parts":`), list...), "]}"...)
}

// geminiSigns says what the signatures of a conversation belong to. The
// projection moves calls, but keeps the order of calls and that of the rest.
type geminiSigns struct {
	calls []string // of every call; empty: none
	next  []bool   // of every own reasoning: it signs the next part, which is no call
}

func (p *profile) geminiSigns(msgs []convo.Message) geminiSigns {
	var out geminiSigns
	for i := range msgs {
		m := &msgs[i]
		if m.Role != convo.RoleAssistant {
			continue
		}
		own := p.isOwn(m.Origin)
		sign, id := "", ""
		for k, part := range m.Parts {
			switch part := part.(type) {
			case convo.Reasoning:
				if !own {
					continue
				}
				next := false
				if part.Text == "" && part.Signature != "" && k+1 < len(m.Parts) {
					switch after := m.Parts[k+1].(type) {
					case convo.ToolCall:
						sign, id = part.Signature, part.ID
					case convo.Text:
						next = !isBlank(string(after))
					case convo.Media:
						next = true
					}
				}
				out.next = append(out.next, next)
			case convo.ToolCall:
				if id != "" && id != part.ID {
					sign = ""
				}
				out.calls = append(out.calls, sign)
				sign, id = "", ""
			}
		}
	}
	return out
}

// A geminiWriter makes contents of turns.
type geminiWriter struct {
	signs    geminiSigns // what is left of them
	fill     bool        // first calls without a signature get one
	nest     bool        // results hold media
	contents []geminiContent
}

type geminiContent struct {
	role    string
	results bool
	parts   []byte // an array that is not closed
}

func (c geminiContent) json() json.RawMessage {
	b := make([]byte, 0, len(c.parts)+32)
	b = appendStringField(append(b, '{'), "role", c.role)
	b = append(appendField(b, "parts"), c.parts...)
	return append(b, "]}"...)
}

// add appends parts, to the newest content if it is of the same kind.
func (w *geminiWriter) add(role string, results bool, parts []byte) {
	if len(parts) == 1 {
		return
	}
	if n := len(w.contents); n > 0 && w.contents[n-1].role == role && w.contents[n-1].results == results {
		last := &w.contents[n-1]
		last.parts = append(append(last.parts, ','), parts[1:]...)
		return
	}
	w.contents = append(w.contents, geminiContent{role, results, parts})
}

func (w *geminiWriter) turn(t *turn) {
	list := []byte{'['}
	switch t.role {
	case convo.RoleAssistant:
		w.assistant(t)
	case convo.RoleTool:
		after := []byte{'['}
		for i := range t.results {
			list, after = w.result(list, after, &t.results[i])
		}
		w.add("user", true, list)
		w.add("user", false, after)
	default:
		for _, part := range t.parts {
			list = appendGeminiPart(list, part, "", false)
		}
		w.add("user", false, list)
	}
}

func (w *geminiWriter) assistant(t *turn) {
	list := []byte{'['}
	said, first, sign := false, true, ""
	for _, part := range t.parts {
		switch part := part.(type) {
		case convo.Reasoning:
			next := w.signs.next[0]
			w.signs.next = w.signs.next[1:]
			switch {
			case next:
				sign = part.Signature
			case !isBlank(part.Text):
				list = geminiText(list, part.Text, true, part.Signature)
			}
		case convo.ToolCall:
			sign = w.signs.calls[0]
			w.signs.calls = w.signs.calls[1:]
			if sign == "" && first && w.fill {
				sign = skipSignature
			}
			list = appendGeminiCall(list, part, sign)
			said, first, sign = true, false, ""
		default:
			n := len(list)
			list = appendGeminiPart(list, part, sign, t.own)
			said, sign = said || len(list) > n, ""
		}
	}
	if said {
		w.add("model", false, list)
	}
}
