package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// Gemini is the format of generateContent in Google's Gemini API and Vertex AI.
//
// Results are sent in a separate content: if a content also holds other parts,
// some models answer nothing, and Vertex AI refuses the request. The next user
// text is the content after it. A result is {"output": text}, or {"error":
// text}. Its media are sent in the next content, after a line that names the
// tool. If Model is Gemini 3 or later, images, PDFs and text documents are sent
// inside the result.
//
// A call whose ID was made by convo is sent without an ID, and so is its result,
// unless another call of the message has its own ID. The API takes both.
//
// A thoughtSignature is a [convo.Reasoning] with a Signature and no Text,
// directly before the part that it belongs to. If that part is a call, the
// reasoning has the ID of the call. Thoughts with text are sent back in their
// places.
//
// Gemini 3 refuses function calls of the current turn without a signature. If
// the first call of a message has none, because it was made by hand or by
// another model, it is sent with the signature that Google documents for this
// case. This is done in all turns, so that later requests begin with the same
// bytes. The signature is left out only if Model is Gemini 1 or 2.
//
// A result that came as another object becomes a text with its JSON, followed by
// a [convo.Opaque] part, {"response":{}}. It is sent as an object while the text
// is one; if an edit changes that, it is sent as an ordinary text.
//
// The format cannot represent the ID and Encrypted of reasoning, and signatures without a
// text, call or media after them. Nor can it represent thoughts of a message that holds
// nothing else, and the boundaries between the texts of one result. Decode lists in Lost
// the groundingMetadata and citationMetadata of a candidate.
type Gemini struct {
	// Model is the model of the request, such as "gemini-3-flash-preview".
	// Reasoning and signatures are sent back only to the model that made them.
	// If Model is empty, those of any model are sent. Decode uses Model as the
	// maker of answers, and of requests that name no model.
	Model string

	SystemSummary bool // send the summary as the last part of the system instruction; see the package documentation
}

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

// geminiMixes reports whether a model takes a function response and other parts in one
// content. Models up to Gemini 3.0 do.
func geminiMixes(model string) bool {
	n := geminiGeneration(model)
	return n == 1 || n == 2 || n == 3 && !strings.Contains(model, "gemini-3.")
}

// Encode returns the request for a snapshot.
func (f Gemini) Encode(s *convo.Snapshot) (Request, error) { return encode(f, s) }

func (f Gemini) begin(_ *tally, lost *losses) (profile, writer) {
	p := profile{format: FormatGemini, seals: SealsUnchecked, model: f.model(), ids: geminiIDs, accepts: geminiToolNames, names: geminiNames, systemSum: f.SystemSummary, bare: true}
	generation := geminiGeneration(f.Model)
	return p, &geminiWriter{lost: lost, fill: generation == 0 || generation >= 3, nest: generation >= 3}
}

// geminiSigns records which parts the signatures of a message belong to. The
// projection moves calls after the other parts, but keeps the order among the calls,
// and among the other parts.
type geminiSigns struct {
	calls []string // for each call: its signature, or ""
	next  []bool   // for each reasoning: whether it signs the next part, not a call
	used  []bool   // for each reasoning: whether it signs a call
}

func signsOf(t *message) geminiSigns {
	var out geminiSigns
	sign, id, from := "", "", -1
	for k, part := range t.all {
		switch part := part.(type) {
		case convo.Reasoning:
			if !t.own {
				continue
			}
			next := false
			if part.Text == "" && part.Signature != "" && k+1 < len(t.all) {
				switch after := t.all[k+1].(type) {
				case convo.ToolCall:
					sign, id, from = part.Signature, part.ID, len(out.used)
				case convo.Text:
					next = !isBlank(string(after))
				case convo.Media:
					next = true
				}
			}
			out.next, out.used = append(out.next, next), append(out.used, false)
		case convo.ToolCall:
			if id != "" && id != part.ID {
				sign = ""
			}
			out.calls = append(out.calls, sign)
			if sign != "" {
				out.used[from] = true
			}
			sign, id = "", ""
		}
	}
	return out
}

// A geminiWriter writes messages of the projection as contents. Only the last content may
// still change.
type geminiWriter struct {
	fill     bool // the first call of a message gets a signature if it has none
	nest     bool // results can hold media
	lost     *losses
	contents []geminiContent
	last     geminiContent // last element of contents when the state is saved
}

func (w *geminiWriter) grow(n int) { w.contents = make([]geminiContent, 0, n) }

func (w *geminiWriter) save() any {
	s := *w
	if n := len(s.contents); n > 0 {
		s.last = s.contents[n-1]
	}
	return s
}

func (w *geminiWriter) restore(state any) {
	*w = state.(geminiWriter)
	if n := len(w.contents); n > 0 {
		w.contents[n-1] = w.last
		w.contents[n-1].raw = slices.Clip(w.last.raw)
	}
}

// The beginning of a content, which depends on its role.
const (
	geminiUser  = `{"role":"user","parts":[`
	geminiModel = `{"role":"model","parts":[`
)

type geminiContent struct {
	head    string // geminiUser or geminiModel
	results bool   // holds results
	raw     []byte // the content up to its last part
	closed  []byte // the whole content; nil while it may still change
}

// close returns the whole content. It uses the memory after c.raw if there is room.
func (c *geminiContent) close() json.RawMessage {
	if c.closed == nil {
		c.closed = slices.Clip(append(c.raw, "]}"...))
	}
	return c.closed
}

// add adds the parts after the head in raw to the last content, if it has the same head
// and kind. Otherwise it adds raw as a new content.
func (w *geminiWriter) add(head string, results bool, raw []byte) {
	if len(raw) == len(head) {
		return
	}
	if n := len(w.contents); n > 0 && w.contents[n-1].head == head && w.contents[n-1].results == results {
		last := &w.contents[n-1]
		last.raw, last.closed = append(append(last.raw, ','), raw[len(head):]...), nil
		return
	}
	if n := len(w.contents); n > 0 {
		w.contents[n-1].close()
	}
	w.contents = append(w.contents, geminiContent{head: head, results: results, raw: raw})
}

func (w *geminiWriter) message(t *message) {
	size := t.size()
	switch t.role {
	case convo.RoleAssistant:
		w.assistant(t, append(make([]byte, 0, size+64), geminiModel...))
	case convo.RoleTool:
		raw, after := append(make([]byte, 0, size+64), geminiUser...), []byte(geminiUser)
		for i := range t.results {
			raw, after = w.result(raw, after, &t.results[i])
		}
		w.add(geminiUser, true, raw)
		w.add(geminiUser, false, after)
	default:
		raw := append(make([]byte, 0, size+64), geminiUser...)
		for i, part := range t.parts {
			raw = w.part(raw, part, "", false, t.place(i), whole)
		}
		w.add(geminiUser, false, raw)
	}
}

// assistant adds a message. raw holds the head of a content.
func (w *geminiWriter) assistant(t *message, raw []byte) {
	signs := signsOf(t)
	said, first, sign, signed := false, true, "", 0
	for i, part := range t.parts {
		switch part := part.(type) {
		case convo.Reasoning:
			var sent convo.Reasoning
			switch {
			case signs.next[signed]:
				sign = part.Signature
				sent.Signature = sign
			case signs.used[signed]:
				sent.Signature, sent.ID = part.Signature, part.ID
			case !isBlank(part.Text):
				raw = geminiText(raw, part.Text, true, part.Signature)
				sent.Text, sent.Signature = part.Text, part.Signature
			}
			w.lost.reasoning(t.place(i), part, sent)
			signed++
		case convo.ToolCall:
			sign = signs.calls[0]
			signs.calls = signs.calls[1:]
			if sign == "" && first && w.fill {
				sign = skipSignature
			}
			raw = appendGeminiCall(raw, part, sign)
			said, first, sign = true, false, ""
		default:
			n := len(raw)
			raw = w.part(raw, part, sign, t.own, t.place(i), whole)
			said, sign = said || len(raw) > n, ""
		}
	}
	if said {
		w.add(geminiModel, false, raw)
		return
	}
	for i, part := range t.parts {
		if r, ok := part.(convo.Reasoning); ok {
			w.lost.reasoning(t.place(i), r, convo.Reasoning{})
		}
	}
}

func (w *geminiWriter) request(_ *projector, _ *convo.Snapshot, r *Request) error {
	n := len(w.contents)
	if n == 0 && r.System == nil {
		return ErrEmpty
	}
	r.CacheTTL = geminiLife
	marker := func(text string) {
		r.Messages = append(r.Messages, append(geminiText([]byte(geminiUser), text, false, ""), "]}"...))
	}
	r.Messages = make([]json.RawMessage, 0, n+2)
	if n > 0 && w.contents[0].head == geminiModel {
		marker(earlierMarker)
	}
	for i := range w.contents {
		r.Messages = append(r.Messages, w.contents[i].close())
	}
	if n == 0 || w.contents[n-1].head == geminiModel {
		marker(continueMarker)
	}
	return nil
}

// system returns the system text as an instruction, or nil if there is none.
func (w *geminiWriter) system(p *projection, lost *losses) (json.RawMessage, []json.RawMessage) {
	const head = `{"parts":[`
	raw := []byte(head)
	own := geminiWriter{lost: lost}
	for i, part := range p.system {
		if m, ok := part.(convo.Media); ok {
			lost.tell(p.places[i], whole, lostMedia, "")
			part = convo.Text(mediaText(m))
		}
		raw = own.part(raw, part, "", false, p.places[i], whole)
	}
	if len(raw) == len(head) {
		return nil, nil
	}
	return append(raw, "]}"...), nil
}

var geminiTools = toolRule{
	names: geminiToolNames,
	refuse: map[string]bool{"not": true, "if": true, "then": true, "else": true, "patternProperties": true,
		"dependentSchemas": true, "dependentRequired": true, "unevaluatedProperties": true, "unevaluatedItems": true,
		"contains": true, "propertyNames": true},
}

// Tools implements [ToolWriter].
func (f Gemini) Tools(tools ...convo.Tool) (json.RawMessage, error) {
	functions, err := geminiTools.write(tools, false, func(b []byte, t convo.Tool, schema string) []byte {
		return appendTool(b, t, "parametersJsonSchema", schema)
	})
	if functions != nil {
		functions = slices.Concat([]byte(`[{"functionDeclarations":`), functions, []byte(`}]`))
	}
	return withOwn(functions, err, tools, FormatGemini)
}
