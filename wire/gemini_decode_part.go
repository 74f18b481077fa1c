package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
	"github.com/seed-c1b73e60/convo/internal/text"
)

// A part has exactly one of the fields in geminiData. It can also have the
// fields in geminiSide.
var (
	geminiData = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
	geminiSide = []string{"thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"}
)

// geminiKinds maps a field in either spelling to its name in geminiData.
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
	where   spot   // the place of that field
	data    json.RawMessage
	sign    string
	plain   bool // has only the fields kind, thought and a signature
	empty   bool // holds nothing
	thought bool // is a thought
}

// readGeminiPart reads a part. It stores the fields in room, which can be reused.
func readGeminiPart(room *map[string]json.RawMessage, where spot, data json.RawMessage) (geminiPart, error) {
	p := geminiPart{plain: true, empty: true}
	all, err := fieldsInto(room, where, data)
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
			return p, &DecodeError{Path: where.String(), Reason: "the part holds both " + p.kind + " and " + kind}
		case kind != "":
			p.kind, p.data, p.empty = kind, all[key], false
			p.where = where
			p.where.key = key
		case key == "thought":
			var thought bool
			if err := read(where.at(key), "true or false", all[key], &thought); err != nil {
				return p, err
			}
			p.thought = thought
		case key == "thoughtSignature" || key == "thought_signature":
			if p.sign, err = stringField(where, all, key); err != nil {
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
func (d *geminiDecoder) part(where spot, data json.RawMessage, m, answers *convo.Message) error {
	p, err := readGeminiPart(&d.ofPart, where, data)
	if err != nil {
		return err
	}
	model := m.Role == convo.RoleAssistant
	opaque := func() convo.Part { return convo.Opaque{Format: FormatGemini, JSON: compact(data)} }
	switch p.kind {
	case "functionCall":
		if !model {
			return &DecodeError{Path: p.where.String(), Reason: "a function call must come from the model"}
		}
		return d.call(p, m)
	case "functionResponse":
		if m.Role != convo.RoleUser {
			return &DecodeError{Path: p.where.String(), Reason: "a function response must come from the user"}
		}
		return d.result(p, answers)
	case "text":
		text, ok := strictjson.Unquote(p.data)
		if !ok {
			var s string
			if err := read(p.where.String(), "a string", p.data, &s); err != nil {
				return err
			}
			text = s
		}
		if !model && (p.sign != "" || p.thought) {
			d.lose(where.String(), "a thought or signature outside of the model's contents")
			p.sign, p.thought = "", false
		}
		switch {
		case !p.plain, p.sign != "" && isBlank(text):
			m.Parts = append(m.Parts, opaque())
		case p.thought && text != "":
			m.Parts = append(m.Parts, convo.Reasoning{Text: text, Signature: p.sign})
		case text != "":
			m.Parts = appendSigned(m.Parts, p.sign, convo.Text(text))
		}
		return nil
	case "inlineData", "fileData":
		media, err := d.media(p)
		if err != nil {
			return err
		}
		if media != nil && p.plain && !p.thought && (model || p.sign == "") && m.Role != convo.RoleSystem {
			m.Parts = appendSigned(m.Parts, p.sign, *media)
			return nil
		}
	}
	if p.empty {
		d.lose(where.String(), "an empty part")
		return nil
	}
	m.Parts = append(m.Parts, opaque())
	return nil
}

// appendSigned appends a part, after its signature if there is one.
func appendSigned(parts []convo.Part, sign string, p convo.Part) []convo.Part {
	if sign != "" {
		r := convo.Reasoning{Signature: sign}
		if c, ok := p.(convo.ToolCall); ok {
			r.ID = c.ID
		}
		parts = append(parts, r)
	}
	return append(parts, p)
}

// media reads inlineData and fileData. It returns nil if a History would not
// accept the media.
func (d *geminiDecoder) media(p geminiPart) (*convo.Media, error) {
	path := p.where.String()
	all, err := fields(path, p.data)
	if err != nil {
		return nil, err
	}
	var m convo.Media
	to := map[string]*string{"mimeType": &m.MIME, "data": &m.Data}
	if p.kind == "fileData" {
		to = map[string]*string{"mimeType": &m.MIME, "fileUri": &m.URL}
	}
	for key, v := range to {
		_, raw := pickRaw(all, path, key)
		if raw != nil && json.Unmarshal(raw, v) != nil {
			return nil, nil
		}
	}
	m.Data = standardBase64(m.Data)
	if p.kind == "inlineData" && (m.Data == "" || m.MIME == "" || !text.IsBase64(m.Data)) || p.kind == "fileData" && m.URL == "" || strings.HasPrefix(m.URL, "data:") {
		return nil, nil
	}
	d.loseRest(path, all, "mimeType", "mime_type", "data", "fileUri", "file_uri")
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
	all, err := fieldsInto(&d.ofInside, p.where, p.data)
	if err != nil {
		return err
	}
	var c convo.ToolCall
	if c.ID, err = stringField(p.where, all, "id"); err != nil {
		return err
	}
	if c.Name, err = stringField(p.where, all, "name"); err != nil {
		return err
	}
	if c.Name == "" {
		return &DecodeError{Path: p.where.at("name"), Reason: "the call has no function name"}
	}
	if raw := all["args"]; !isNull(raw) {
		c.Arguments = d.arguments(string(raw))
	}
	if strings.EqualFold(d.out.StopReason, "MALFORMED_FUNCTION_CALL") { // otherwise Gemini sends complete calls
		d.wroteObject(all["args"])
	}
	d.loseRestAt(p.where, all, "id", "name", "args")
	c = d.named(p.where.at("id"), m, c)
	m.Parts = appendSigned(m.Parts, p.sign, c)
	return nil
}

func (d *geminiDecoder) result(p geminiPart, answers *convo.Message) error {
	all, err := fieldsInto(&d.ofInside, p.where, p.data)
	if err != nil {
		return err
	}
	var r convo.ToolResult
	if r.CallID, err = stringField(p.where, all, "id"); err != nil {
		return err
	}
	if r.Name, err = stringField(p.where, all, "name"); err != nil {
		return err
	}
	r.Name = ownName(r.Name)
	if id := r.CallID; !d.nameResult(&r) && id != "" { // match by name, as before Gemini 3
		r.CallID = ""
		if !d.nameResult(&r) {
			r.CallID = id
		}
	}
	if raw := all["response"]; !isNull(raw) {
		d.response(p.where, raw, &r)
	}
	if raw := all["parts"]; !isNull(raw) {
		path := p.where.at("parts")
		list, err := geminiList(path, "an array of parts", raw)
		if err != nil {
			return err
		}
		for i, raw := range list {
			q, err := readGeminiPart(&d.ofPart, spot{list: path, index: i}, raw)
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
	d.loseRestAt(p.where, all, "id", "name", "response", "parts")
	answers.Parts = append(answers.Parts, r)
	return nil
}

// response reads the response object of the result at where.
func (d *geminiDecoder) response(where spot, raw json.RawMessage, r *convo.ToolResult) {
	all, err := fieldsInto(&d.ofResponse, where, raw)
	text, isText := "", len(all) == 0
	switch {
	case err != nil:
		d.lose(where.at("response"), "a response that is not an object; kept as text")
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
		r.Parts = append(r.Parts, objectMark(FormatGemini))
	}
}
