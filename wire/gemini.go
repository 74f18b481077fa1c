package wire

import (
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Gemini is the format of generateContent in Google's Gemini API and Vertex AI.
//
// Results are sent in a content of their own, because some models answer
// nothing, and Vertex AI refuses the request, if other parts stand next to
// them. What the user says next is the content after it. A result is {"output":
// text}, or {"error": text}. Its media are sent in the next content, after a
// line that names the tool. If Model is Gemini 3 or later, images, PDFs and
// text documents are sent inside the result.
//
// A call whose ID was made by convo is sent without one, and so is its result,
// unless another call of the message has an ID of its own: the API takes both.
//
// A thoughtSignature is a [convo.Reasoning] with a Signature and no Text,
// directly before the part that it belongs to. If that part is a call, the
// reasoning has its ID. Thoughts with text are sent back where they were.
//
// Gemini 3 refuses function calls of the current turn without a signature. If
// the first call of a message has none, because it was made by hand or by
// another model, it is sent with the signature that Google documents for this
// case. That holds for all turns, so that later requests begin with the same
// bytes. It is left out only if Model is Gemini 1 or 2.
//
// The format has no place for the ID and Encrypted of reasoning, for signatures
// that no text, call or media follows, for thoughts of a message that holds
// nothing else, and for the boundaries between the texts of one result.
type Gemini struct {
	// Model is the model of the request, such as "gemini-3-flash-preview".
	// Reasoning and signatures are sent back only to the model that made them.
	// If Model is empty, those of any model are sent. Decode takes Model for the
	// maker of answers, and of requests that name no model.
	Model string

	SystemSummary bool // send the summary as the last part of the system instruction; see the package documentation
}

const (
	geminiFormat = "gemini"

	// skipSignature is base64 for "skip_thought_signature_validator", which
	// Google documents for calls that Gemini did not make.
	skipSignature = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
)

var geminiNames = &names{"tools", "systemInstruction", "contents"}

func (f Gemini) model() string { return strings.TrimPrefix(f.Model, "models/") }

// geminiGeneration returns the 3 in "gemini-3-flash", or 0 if the name holds no
// such number.
func geminiGeneration(model string) int {
	_, rest, _ := strings.Cut(model, "gemini-")
	n := 0
	for i := 0; i < len(rest) && i < 3 && '0' <= rest[i] && rest[i] <= '9'; i++ {
		n = 10*n + int(rest[i]-'0')
	}
	return n
}

// Encode returns the request for a snapshot.
func (f Gemini) Encode(s *convo.Snapshot) (Request, error) {
	profile := profile{format: geminiFormat, model: f.model(), ids: geminiIDs, systemSum: f.SystemSummary, bare: true}
	p, err := project(s, profile)
	if err != nil {
		return Request{}, err
	}
	generation := geminiGeneration(f.Model)
	w := geminiWriter{signs: profile.geminiSigns(s.Messages()), fill: generation == 0 || generation >= 3, nest: generation >= 3}
	r := Request{System: geminiSystem(p.system), NeedsTools: p.needsTools, names: geminiNames}
	for i := range p.messages {
		w.message(&p.messages[i])
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

// geminiSigns says which parts the signatures of a conversation belong to. The
// projection moves calls after the other parts of their message, but keeps the
// order among the calls, and among the other parts.
type geminiSigns struct {
	calls []string // for each call: its signature, or ""
	next  []bool   // for each own reasoning: it signs the next part, which is not a call
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

// A geminiWriter writes messages of the projection as contents.
type geminiWriter struct {
	signs    geminiSigns // of the parts that are not written yet
	fill     bool        // the first call of a message gets a signature if it has none
	nest     bool        // results can hold media
	contents []geminiContent
}

type geminiContent struct {
	role    string
	results bool   // it holds results
	parts   []byte // a JSON array that is not closed
}

func (c geminiContent) json() json.RawMessage {
	b := make([]byte, 0, len(c.parts)+32)
	b = appendStringField(append(b, '{'), "role", c.role)
	b = append(appendField(b, "parts"), c.parts...)
	return append(b, "]}"...)
}

// add appends parts to the last content if that has the same role and kind, or
// else in a new one.
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

func (w *geminiWriter) message(t *message) {
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

func (w *geminiWriter) assistant(t *message) {
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
