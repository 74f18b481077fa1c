package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// geminiData are the fields of a part that say what it is, geminiSide those
// that stand beside them.
var (
	geminiData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
	geminiSide = []string{"thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"}
)

// A geminiPart is a part by its fields.
type geminiPart struct {
	kind    string // as in geminiData; empty: of another kind
	path    string
	data    json.RawMessage
	sign    string
	plain   bool // there is nothing else than that, and thought
	empty   bool // there is nothing
	thought bool // it is one
}

func readGeminiPart(path string, data json.RawMessage) (geminiPart, error) {
	p := geminiPart{plain: true, empty: true}
	all, err := fields(path, data)
	if err != nil {
		return p, err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if isNull(all[key]) {
			continue
		}
		i := slices.IndexFunc(geminiData, func(k string) bool { return key == k || key == snake(k) })
		switch {
		case i >= 0 && p.kind != "":
			return p, &DecodeError{Path: path, Reason: "a part that is both " + p.kind + " and " + geminiData[i]}
		case i >= 0:
			p.kind, p.path, p.data, p.empty = geminiData[i], at(path, key), all[key], false
		case key == "thought":
			if err := read(at(path, key), "true or false", all[key], &p.thought); err != nil {
				return p, err
			}
		case key == "thoughtSignature" || key == "thought_signature":
			if err := read(at(path, key), "a string", all[key], &p.sign); err != nil {
				return p, err
			}
			if p.sign == skipSignature || p.sign == "skip_thought_signature_validator" {
				p.sign = "" // Encode puts it where one is wanted
			}
		default:
			p.plain = false
			p.empty = p.empty && slices.ContainsFunc(geminiSide, func(k string) bool { return key == k || key == snake(k) })
		}
	}
	p.empty = p.empty && p.sign == ""
	return p, nil
}

// part reads a part into a message, and a result into answers.
func (d *geminiDecoder) part(path string, data json.RawMessage, m, answers *convo.Message) error {
	p, err := readGeminiPart(path, data)
	if err != nil {
		return err
	}
	model := m.Role == convo.RoleAssistant
	opaque := convo.Opaque{Format: geminiFormat, JSON: compact(data)}
	switch p.kind {
	case "functionCall":
		if !model {
			return &DecodeError{Path: p.path, Reason: "a call of " + string(m.Role)}
		}
		return d.call(p, m)
	case "functionResponse":
		if m.Role != convo.RoleUser {
			return &DecodeError{Path: p.path, Reason: "a result of " + string(m.Role)}
		}
		return d.result(p, answers)
	case "text":
		var text string
		if err := read(p.path, "a string", p.data, &text); err != nil {
			return err
		}
		if !model && (p.sign != "" || p.thought) {
			d.lose(path, "a thought or signature that is not the model's")
			p.sign, p.thought = "", false
		}
		switch {
		case !p.plain, p.sign != "" && isBlank(text):
			m.Parts = append(m.Parts, opaque)
		case p.thought && text != "":
			m.Parts = append(m.Parts, convo.Reasoning{Text: text, Signature: p.sign})
		case text != "":
			m.Parts = append(m.Parts, geminiSigned(p.sign, convo.Text(text))...)
		}
		return nil
	case "inlineData", "fileData":
		media, err := d.media(p)
		if err != nil {
			return err
		}
		if media != nil && p.plain && !p.thought && (model || p.sign == "") && m.Role != convo.RoleSystem {
			m.Parts = append(m.Parts, geminiSigned(p.sign, *media)...)
			return nil
		}
	}
	if p.empty {
		d.lose(path, "a part that holds nothing")
		return nil
	}
	m.Parts = append(m.Parts, opaque)
	return nil
}

// geminiSigned returns a part with its signature.
func geminiSigned(sign string, p convo.Part) []convo.Part {
	if sign == "" {
		return []convo.Part{p}
	}
	r := convo.Reasoning{Signature: sign}
	if c, ok := p.(convo.ToolCall); ok {
		r.ID = c.ID
	}
	return []convo.Part{r, p}
}

// media reads inlineData and fileData; nil is what a History would not take.
func (d *geminiDecoder) media(p geminiPart) (*convo.Media, error) {
	all, err := fields(p.path, p.data)
	if err != nil {
		return nil, err
	}
	var m convo.Media
	to := map[string]*string{"mimeType": &m.MIME, "data": &m.Data}
	if p.kind == "fileData" {
		to = map[string]*string{"mimeType": &m.MIME, "fileUri": &m.URL}
	}
	for key, v := range to {
		_, raw := pickRaw(all, p.path, key)
		if raw != nil && json.Unmarshal(raw, v) != nil {
			return nil, nil
		}
	}
	m.Data = standardBase64(m.Data)
	if p.kind == "inlineData" && (m.Data == "" || m.MIME == "" || !isBase64(m.Data)) || p.kind == "fileData" && m.URL == "" || strings.HasPrefix(m.URL, "data:") {
		return nil, nil
	}
	d.loseRest(p.path, all, "mimeType", "mime_type", "data", "fileUri", "file_uri")
	return &m, nil
}

// standardBase64 returns base64 of the alphabet for addresses, padded or not,
// in the standard one.
func standardBase64(s string) string {
	if strings.ContainsAny(s, "-_") {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	if n := len(s) % 4; n > 1 && !strings.HasSuffix(s, "=") {
		s += "=="[n-2:]
	}
	return s
}

func (d *geminiDecoder) call(p geminiPart, m *convo.Message) error {
	all, err := fields(p.path, p.data)
	if err != nil {
		return err
	}
	var c convo.ToolCall
	for key, to := range map[string]*string{"id": &c.ID, "name": &c.Name} {
		if raw := all[key]; !isNull(raw) {
			if err := read(at(p.path, key), "a string", raw, to); err != nil {
				return err
			}
		}
	}
	if c.Name == "" {
		return &DecodeError{Path: at(p.path, "name"), Reason: "a call without a function name"}
	}
	if raw := all["args"]; !isNull(raw) {
		c.Arguments = d.arguments(at(p.path, "args"), string(raw))
	}
	d.loseRest(p.path, all, "id", "name", "args")
	id := c.ID
	if _, ok := d.open.ids[id]; ok {
		d.lose(at(p.path, "id"), "an id that another call of the message has")
		c.ID = ""
	}
	d.calls = append(d.calls, c)
	d.open.add(id, c.Name)
	m.Parts = append(m.Parts, geminiSigned(p.sign, c)...)
	return nil
}

func (d *geminiDecoder) result(p geminiPart, answers *convo.Message) error {
	all, err := fields(p.path, p.data)
	if err != nil {
		return err
	}
	var r convo.ToolResult
	for key, to := range map[string]*string{"id": &r.CallID, "name": &r.Name} {
		if raw := all[key]; !isNull(raw) {
			if err := read(at(p.path, key), "a string", raw, to); err != nil {
				return err
			}
		}
	}
	d.answer(&r)
	if raw := all["response"]; !isNull(raw) {
		d.response(at(p.path, "response"), raw, &r)
	}
	if raw := all["parts"]; !isNull(raw) {
		path := at(p.path, "parts")
		list, err := geminiList(path, "an array of parts", raw)
		if err != nil {
			return err
		}
		for i, raw := range list {
			q, err := readGeminiPart(atIndex(path, i), raw)
			if err != nil {
				return err
			}
			var media *convo.Media
			if q.kind == "inlineData" || q.kind == "fileData" {
				if media, err = d.media(q); err != nil {
					return err
				}
			}
			switch {
			case media != nil:
				r.Parts = append(r.Parts, *media)
			case !q.empty:
				r.Parts = append(r.Parts, convo.Opaque{Format: geminiFormat, JSON: compact(raw)})
			}
		}
	}
	d.loseRest(p.path, all, "id", "name", "response", "parts")
	answers.Parts = append(answers.Parts, r)
	return nil
}

// answer finds the call of a result: the open one with its id, or else with
// its name, as models before Gemini 3 do.
func (d *geminiDecoder) answer(r *convo.ToolResult) {
	i := d.open.byID(r.CallID)
	if i < 0 {
		i = d.open.byName(r.Name)
	}
	if i >= 0 {
		r.CallID, r.Name = d.calls[i].ID, d.calls[i].Name
	}
}

// response reads the object that a result is.
func (d *geminiDecoder) response(path string, raw json.RawMessage, r *convo.ToolResult) {
	text := compact(raw)
	var all map[string]json.RawMessage
	switch {
	case json.Unmarshal(raw, &all) != nil:
		d.lose(path, "not an object; kept as text")
		_ = json.Unmarshal(raw, &text) // a string
	case len(all) == 0:
		text = ""
	case len(all) == 1:
		for _, key := range []string{"output", "result", "error"} {
			if v := all[key]; kindOf(v) == '"' {
				_ = json.Unmarshal(v, &text)
			}
		}
		r.IsError = !isNull(all["error"])
	}
	if text != "" {
		r.Parts = append(r.Parts, convo.Text(text))
	}
}
