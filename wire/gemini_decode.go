package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/strictjson"
)

// Decode reads a request, a response, an array of the chunks of a response, a
// list of contents or one content, with keys in camelCase or snake_case.
// Adjacent contents of the model become one message if they hold calls. A result
// becomes the text of its only field, if the field is output, result or error.
// Otherwise it becomes the JSON of its response object, followed by an opaque
// part as a mark. Encode sends such a text as an object while it is one.
func (f Gemini) Decode(data []byte) (Transcript, error) {
	if t, ok, err := f.decodeChunks(data); ok {
		return t, err
	}
	d := f.decoder()
	return d.finish(d.decode(data))
}

func (f Gemini) decoder() *geminiDecoder {
	return &geminiDecoder{decoder: decoder{format: FormatGemini, model: f.model()}}
}

// decodeChunks reads the array of chunks that streamGenerateContent returns without
// server-sent events. It reports whether data is such an array.
func (f Gemini) decodeChunks(data []byte) (Transcript, bool, error) {
	var list []json.RawMessage
	if kindOf(data) != '[' || json.Unmarshal(data, &list) != nil || len(list) == 0 {
		return Transcript{}, false, nil
	}
	first, _ := fields("[0]", list[0])
	if !isGeminiAnswer(first) && isNull(first["error"]) {
		return Transcript{}, false, nil
	}
	s := f.Stream()
	for i, raw := range list {
		_, err := s.Event("", raw)
		if e, ok := errors.AsType[*DecodeError](err); ok {
			return Transcript{}, true, &DecodeError{Path: strings.TrimSuffix(at(atIndex("", i), e.Path), "."), Offset: e.Offset, Reason: e.Reason}
		} else if e, ok := errors.AsType[*ProviderError](err); ok {
			return Transcript{}, true, reported(atIndex("", i), e)
		}
	}
	t, err := s.Transcript()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // an incomplete answer is accepted, as in a single object
	}
	return t, true, err
}

// isGeminiAnswer reports whether an object is an answer, or a chunk of one.
func isGeminiAnswer(all map[string]json.RawMessage) bool {
	_, usage := pickRaw(all, "", "usageMetadata")
	_, feedback := pickRaw(all, "", "promptFeedback")
	return !isNull(all["candidates"]) || usage != nil || feedback != nil
}

type geminiDecoder struct {
	decoder

	// Reused memory for the fields of a part, of the object in the part, and of the
	// response in that object.
	ofPart, ofInside, ofResponse map[string]json.RawMessage
}

func (d *geminiDecoder) decode(data []byte) error {
	if kindOf(data) == '[' {
		return d.contents("", data)
	}
	all, err := fields("", data)
	if err != nil {
		return err
	}
	if path, raw := pickRaw(all, "", "contents"); raw != nil {
		if kindOf(all["model"]) == '"' {
			if err := read("model", "a string", all["model"], &d.model); err != nil {
				return err
			}
			d.model = strings.TrimPrefix(d.model, "models/")
		}
		if path, raw := pickRaw(all, "", "cachedContent"); raw != nil {
			d.lose(path, "the cached content that the request refers to")
		}
		if path, raw := pickRaw(all, "", "systemInstruction"); raw != nil {
			if err := d.content(path, raw, convo.RoleSystem); err != nil {
				return err
			}
		}
		return d.contents(path, raw)
	}
	if saysError(all["error"]) {
		return reported("", providerError(data))
	}
	_, id := pickRaw(all, "", "responseId")
	_, version := pickRaw(all, "", "modelVersion")
	d.out.ID, d.out.Model = stringOf(id), stringOf(version)
	d.model = cmp.Or(d.model, d.out.Model)
	d.out.Usage = d.geminiUsage(pickRaw(all, "", "usageMetadata"))
	switch {
	case isGeminiAnswer(all):
		if path, feedback := pickRaw(all, "", "promptFeedback"); feedback != nil {
			if err := d.feedback(path, feedback); err != nil {
				return err
			}
		}
		if isNull(all["candidates"]) {
			return nil
		}
		return d.candidates(all["candidates"])
	case !isNull(all["content"]): // one candidate
		d.finishReason(all)
		return d.content("content", all["content"], convo.RoleAssistant)
	case !isNull(all["parts"]):
		return d.content("", data, convo.RoleUser)
	}
	return unreadable(all, data, "not a request, response or content: want a field contents, candidates, content or parts")
}

// geminiList reads an array, or one object that replaces the array.
func geminiList(path, want string, data json.RawMessage) ([]json.RawMessage, error) {
	if kindOf(data) == '{' {
		return []json.RawMessage{data}, nil
	}
	var list []json.RawMessage
	err := read(path, want, data, &list)
	return list, err
}

func (d *geminiDecoder) contents(path string, data []byte) error {
	list, err := geminiList(path, "an array of contents", data)
	if err != nil {
		return err
	}
	for i, raw := range list {
		if err := d.content(atIndex(path, i), raw, convo.RoleUser); err != nil {
			return err
		}
	}
	return nil
}

func (d *geminiDecoder) candidates(data json.RawMessage) error {
	list, err := geminiList("candidates", "an array of candidates", data)
	if err != nil {
		return err
	}
	for i, raw := range list {
		path := atIndex("candidates", i)
		if i > 0 {
			d.lose(path, "a candidate after the first one")
			continue
		}
		c, err := fields(path, raw)
		if err != nil {
			return err
		}
		d.finishReason(c)
		if !isNull(c["content"]) { // missing if blocked, or for a malformed call
			if err := d.content(at(path, "content"), c["content"], convo.RoleAssistant); err != nil {
				return err
			}
		}
		d.loseRest(path, c, "content", "index", "finishReason", "finishMessage", "safetyRatings", "tokenCount", "avgLogprobs", "logprobsResult")
	}
	return nil
}

// feedback reads why a prompt was blocked.
func (d *geminiDecoder) feedback(path string, data json.RawMessage) error {
	all, err := fields(path, data)
	if err != nil {
		return err
	}
	if _, raw := pickRaw(all, "", "blockReason"); stringOf(raw) != "" {
		d.ended(stringOf(raw))
		d.out.Stop, d.finished = convo.StopRefused, false
	}
	return nil
}

// finishReason reads why a candidate ended.
func (d *geminiDecoder) finishReason(candidate map[string]json.RawMessage) {
	_, raw := pickRaw(candidate, "", "finishReason")
	if reason := stringOf(raw); reason != "" || !d.answered {
		d.ended(reason)
	}
}

// content reads a content. The role argument is used if the content has no
// role, and always for system text.
func (d *geminiDecoder) content(path string, data json.RawMessage, role convo.Role) error {
	all, err := fields(path, data)
	if err != nil {
		return err
	}
	if raw := all["role"]; !isNull(raw) && role != convo.RoleSystem {
		name, ok := strictjson.Unquote(raw)
		if !ok {
			var text string
			if err := read(at(path, "role"), "a string", raw, &text); err != nil {
				return err
			}
			name = text
		}
		switch name {
		case "model":
			role = convo.RoleAssistant
		case "user", "function":
			role = convo.RoleUser
		case "":
		default:
			return &DecodeError{Path: at(path, "role"), Reason: "unknown role " + quote(name)}
		}
	}
	var list []json.RawMessage
	parts := at(path, "parts")
	if raw := all["parts"]; !isNull(raw) {
		if list, err = geminiList(parts, "an array of parts", raw); err != nil {
			return err
		}
	}
	n := len(d.out.Messages)
	defer func() { d.keepRest(n, path, all, "role", "parts") }()
	goesOn := role == convo.RoleAssistant && n > 0 && d.out.Messages[n-1].Role == role && len(d.calls.ids) > 0
	m, answers := convo.Message{Role: role}, convo.Message{Role: convo.RoleTool}
	switch {
	case goesOn:
		m, d.calls.of = d.out.Messages[n-1], &m
	case role == convo.RoleAssistant:
		m.Origin, d.calls = d.origin(), messageCalls{}
	}
	for i, raw := range list {
		if err := d.part(spot{list: parts, index: i}, raw, &m, &answers); err != nil {
			return err
		}
	}
	if len(answers.Parts) > 0 {
		d.out.Messages = append(d.out.Messages, answers)
	}
	switch {
	case goesOn: // the results of its calls follow this content
		d.out.Messages[n-1] = m
	case len(m.Parts) > 0, role != convo.RoleSystem && len(answers.Parts) == 0:
		d.out.Messages = append(d.out.Messages, m)
	}
	return nil
}
