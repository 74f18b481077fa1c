package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
)

// geminiData are the fields of which a part has exactly one. geminiSide are the
// fields that it can have in addition.
var (
	geminiData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
	geminiSide = []string{"thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"}
)

// geminiKinds returns the name in geminiData for a field in either spelling.
var geminiKinds = func() map[string]string {
	m := map[string]string{}
	for _, k := range geminiData {
		m[k], m[snake(k)] = k, k
	}
	return m
}()

// A geminiPart is a part of a content.
type geminiPart struct {
	kind    string // its field in geminiData; empty if it has none
	path    string // of that field
	data    json.RawMessage
	sign    string
	plain   bool // it has no other fields than kind, thought and a signature
	empty   bool // it holds nothing
	thought bool // it is a thought
}

func readGeminiPart(path string, data json.RawMessage) (geminiPart, error) {
	p := geminiPart{plain: true, empty: true}
	all, err := fields(path, data)
	if err != nil {
		return p, err
	}
	keys := make([]string, 0, 8)
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if isNull(all[key]) {
			continue
		}
		kind := geminiKinds[key]
		switch {
		case kind != "" && p.kind != "":
			return p, &DecodeError{Path: path, Reason: "the part holds both " + p.kind + " and " + kind}
		case kind != "":
			p.kind, p.path, p.data, p.empty = kind, at(path, key), all[key], false
		case key == "thought":
			if err := read(at(path, key), "true or false", all[key], &p.thought); err != nil {
				return p, err
			}
		case key == "thoughtSignature" || key == "thought_signature":
			if err := read(at(path, key), "a string", all[key], &p.sign); err != nil {
				return p, err
			}
			if p.sign == skipSignature || p.sign == "skip_thought_signature_validator" {
				p.sign = "" // Encode adds it where it is needed
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
	opaque := func() convo.Part { return convo.Opaque{Format: FormatGemini, JSON: compact(data)} }
	switch p.kind {
	case "functionCall":
		if !model {
			return &DecodeError{Path: p.path, Reason: "a function call must come from the model"}
		}
		return d.call(p, m)
	case "functionResponse":
		if m.Role != convo.RoleUser {
			return &DecodeError{Path: p.path, Reason: "a function response must come from the user"}
		}
		return d.result(p, answers)
	case "text":
		var text string
		if err := read(p.path, "a string", p.data, &text); err != nil {
			return err
		}
		if !model && (p.sign != "" || p.thought) {
			d.lose(path, "a thought or signature outside of the model's contents")
			p.sign, p.thought = "", false
		}
		switch {
		case !p.plain, p.sign != "" && isBlank(text):
			m.Parts = append(m.Parts, opaque())
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
		d.lose(path, "an empty part")
		return nil
	}
	m.Parts = append(m.Parts, opaque())
	return nil
}

// geminiSigned returns a part, preceded by its signature if there is one.
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

// media reads inlineData and fileData. It returns nil if a History would not
// accept the media.
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

// standardBase64 converts URL-safe or unpadded base64 into standard base64.
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
		return &DecodeError{Path: at(p.path, "name"), Reason: "the call has no function name"}
	}
	if raw := all["args"]; !isNull(raw) {
		c.Arguments = d.arguments(string(raw))
	}
	d.loseRest(p.path, all, "id", "name", "args")
	c = d.named(at(p.path, "id"), m, c)
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
	r.Name = ownName(r.Name)
	if id := r.CallID; !d.nameResult(&r) && id != "" { // as before Gemini 3, by the name
		if r.CallID = ""; !d.nameResult(&r) {
			r.CallID = id
		}
	}
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
				r.Parts = append(r.Parts, convo.Opaque{Format: FormatGemini, JSON: compact(raw)})
			}
		}
	}
	d.loseRest(p.path, all, "id", "name", "response", "parts")
	answers.Parts = append(answers.Parts, r)
	return nil
}

// response reads the response object of a result.
func (d *geminiDecoder) response(path string, raw json.RawMessage, r *convo.ToolResult) {
	all, err := fields(path, raw)
	text, isText := "", len(all) == 0
	switch {
	case err != nil:
		d.lose(path, "a response that is not an object; kept as text")
		text, isText = stringOf(raw), kindOf(raw) == '"'
	case len(all) == 1:
		for _, key := range []string{"output", "result", "error"} {
			if v := all[key]; kindOf(v) == '"' {
				text, isText = stringOf(v), true
			}
		}
		r.IsError = !isNull(all["error"])
	}
	if !isText {
		text = compact(raw)
	}
	if text != "" {
		r.Parts = append(r.Parts, convo.Text(text))
	}
	if err == nil && (!isText || len(all) == 0) {
		r.Parts = append(r.Parts, geminiObject)
	}
}
