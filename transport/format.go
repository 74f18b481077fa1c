package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/models"
	"github.com/seed-c1b73e60/convo/wire"
)

// A provider's API, as the path of a request and its body tell it.
type api struct {
	format interface {
		wire.Format
		wire.Streamer
		wire.Patcher
	}
	name    string // of the format
	list    string // the field that holds the messages
	system  string // the field that holds the system text; empty: it is among the messages
	isCount bool   // the request only counts tokens
}

// apiOf returns the API of a path.
func apiOf(u *url.URL) (a api, ok bool) {
	path := strings.TrimSuffix(u.Path, "/")
	path, a.isCount = strings.CutSuffix(path, "/count_tokens")
	if !a.isCount {
		path, a.isCount = strings.CutSuffix(path, "/input_tokens")
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	model, verb, _ := strings.Cut(last, ":")
	switch {
	case last == "messages", verb == "rawPredict", verb == "streamRawPredict":
		a.format, a.name, a.list, a.system = wire.Anthropic{}, wire.FormatAnthropic, "messages", "system"
	case last == "completions" && strings.HasSuffix(path, "/chat/completions"):
		a.format, a.name, a.list = wire.OpenAIChat{}, wire.FormatOpenAIChat, "messages"
	case last == "responses":
		a.format, a.name, a.list, a.system = wire.OpenAIResponses{}, wire.FormatOpenAIResponses, "input", "instructions"
	case model != "" && (verb == "generateContent" || verb == "streamGenerateContent" || verb == "countTokens"):
		a.format, a.name, a.list, a.system = wire.Gemini{}, wire.FormatGemini, "contents", "systemInstruction"
		a.isCount = verb == "countTokens"
	default:
		return api{}, false
	}
	return a, true
}

// modelOf returns the model that a path names, as those of Gemini and of Vertex do.
func modelOf(u *url.URL) string {
	_, rest, ok := strings.Cut(u.Path, "/models/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, ":")
	return name
}

// A cache mark of Anthropic, and the mark for an hour. A text has \" in place of the quotes.
var (
	cacheMark = regexp.MustCompile(`"cache_control"\s*:\s*\{[^{}]*"ephemeral"`)
	longMark  = regexp.MustCompile(`"cache_control"\s*:\s*\{[^{}]*"ttl"\s*:\s*"1h"`)
)

// cacheTTL returns how long the provider keeps a request to a model in its prompt cache: as it
// documents, or as cache marks in the body ask. 0: it does not, or no time is documented.
func (a api) cacheTTL(model string, body []byte) time.Duration {
	f := wire.Format(a.format)
	switch a.name {
	case wire.FormatAnthropic:
		own := wire.Anthropic{Cache: cacheMark.Match(body)}
		if longMark.Match(body) {
			own.CacheLifetime = time.Hour
		}
		f = own
	case wire.FormatOpenAIChat:
		f = wire.OpenAIChat{Model: model}
	case wire.FormatOpenAIResponses:
		f = wire.OpenAIResponses{Model: model}
	}
	req, _ := f.Encode(convo.NewSnapshot([]convo.Message{convo.User("q")}))
	return req.CacheTTL
}

// checksSeals reports whether a model may refuse signed reasoning that is not where it was made. As
// in package wire, a model of Anthropic's API of which nothing is known may.
func (a api) checksSeals(model string) bool {
	_, version, _ := models.Claude(model)
	return wire.SealsByModel.Checks(model) || a.name == wire.FormatAnthropic && version == 0
}

// lacksThinking reports whether the answers since the user's last words do not begin with thinking.
// Anthropic's API refuses that where thinking is enabled.
func lacksThinking(list [][]byte) bool {
	first := ""
	for _, m := range slices.Backward(list) {
		role, kinds := blocksOf(m)
		if role == "user" && slices.ContainsFunc(kinds, func(kind string) bool { return kind != "tool_result" }) {
			break
		}
		if role == "assistant" && len(kinds) > 0 {
			first = kinds[0]
		}
	}
	return first != "" && !strings.HasSuffix(first, "thinking")
}

// blocksOf returns the role of a message of Anthropic's API, and the types of its blocks.
func blocksOf(m []byte) (role string, kinds []string) {
	_ = fields(m, func(name string, v span) { // what is no message has no role
		switch name {
		case "role":
			role = textOf(v.of(m))
		case "content":
			if m[v.from] == '"' {
				kinds = []string{"text"}
				return
			}
			blocks, _ := elements(m, v)
			for _, b := range blocks {
				var kind string
				_ = fields(b.of(m), func(name string, v span) {
					if name == "type" {
						kind = textOf(v.of(b.of(m)))
					}
				})
				kinds = append(kinds, kind)
			}
		}
	})
	return role, kinds
}

// isOutput reports whether an item of Responses is a part of what the model said in one answer: all
// that it says between two inputs is one message.
func isOutput(a api, item []byte) bool {
	if a.list != "input" {
		return false
	}
	var kind, role string
	err := fields(item, func(field string, v span) {
		switch field {
		case "type":
			kind = strings.Trim(string(v.of(item)), `"`)
		case "role":
			role = strings.Trim(string(v.of(item)), `"`)
		}
	})
	switch {
	case err != nil, strings.HasSuffix(kind, "_output"), strings.HasSuffix(kind, "_response"):
		return false
	case kind == "message" || kind == "":
		return role == "assistant"
	}
	return true
}

// decode returns what the raw messages of a value say to the model, as far as that makes the
// message what it is: without cache marks, and without what programs remind the model of.
func (a api) decode(raw [][]byte) ([]convo.Message, error) {
	all, err := a.decodeAll(raw)
	if err != nil {
		return nil, err
	}
	msgs := all[:0]
	for _, m := range all {
		if m.Parts = plain(m.Role, m.Parts); len(m.Parts) > 0 {
			m.Meta = ""
			msgs = append(msgs, m)
		}
	}
	return msgs, nil
}

func (a api) decodeAll(raw [][]byte) ([]convo.Message, error) {
	data := raw[0]
	if len(raw) > 1 {
		data = splice(nil, span{}, raw)
	}
	t, err := a.format.Decode(data)
	return t.Messages, err
}

// decodeSystem returns the message of a field that holds the system text.
func (a api) decodeSystem(raw []byte) ([]convo.Message, error) {
	list := "[]"
	if a.list == "contents" {
		list = `[{"role":"user","parts":[{"text":"x"}]}]`
	}
	t, err := a.format.Decode(fmt.Appendf(nil, `{%q:%s,%q:%s}`, a.system, raw, a.list, list))
	if err != nil {
		return nil, err
	}
	var msgs []convo.Message
	for _, m := range t.Messages {
		if m.Role == convo.RoleSystem {
			m.Parts, m.Meta = plain(m.Role, m.Parts), ""
			msgs = append(msgs, m)
		}
	}
	return msgs, nil
}

// plain returns parts without cache marks and, in a message of the user, without reminders. It
// changes parts.
func plain(role convo.Role, parts []convo.Part) []convo.Part {
	kept := parts[:0]
	for _, p := range parts {
		switch q := p.(type) {
		case convo.Opaque:
			if q.Format == cacheFormat {
				continue
			}
		case convo.Text:
			if isReminder(role, p) {
				continue
			}
		case convo.ToolResult:
			q.Parts = plain(convo.RoleTool, q.Parts)
			p = q
		}
		kept = append(kept, p)
	}
	return kept
}

var cacheFormat = wire.CacheMark(0).Format

const reminder = "system-reminder"

// isReminder reports whether a program has put a text into a message of the user, in a tag of its
// own, which it moves or removes as it goes on.
func isReminder(role convo.Role, part convo.Part) bool {
	const open, end = "<" + reminder + ">", "</" + reminder + ">"
	t, ok := part.(convo.Text)
	text := strings.TrimSpace(string(t))
	return ok && role == convo.RoleUser && strings.HasPrefix(text, open) && strings.HasSuffix(text, end) && strings.Count(text, open) == 1
}

func (v *value) hasReminders() bool {
	return slices.ContainsFunc(v.raw, func(raw []byte) bool { return bytes.Contains(raw, []byte(reminder)) })
}

// reminders returns the reminders that v begins with.
func (a api) reminders(v *value) (parts []convo.Part) {
	if !v.hasReminders() {
		return nil
	}
	msgs, _ := a.decodeAll(v.raw) // it was decoded before
	for _, m := range msgs {
		for _, p := range m.Parts {
			if o, ok := p.(convo.Opaque); ok && o.Format == cacheFormat {
				continue
			}
			if !isReminder(m.Role, p) {
				return parts
			}
			parts = append(parts, p)
		}
	}
	return parts
}

// seals returns what a provider has signed or encrypted of the reasoning in v.
func (a api) seals(v *value) (all []string) {
	msgs, _ := a.decodeAll(v.raw) // it was decoded before
	for _, m := range msgs {
		for _, p := range m.Parts {
			if r, ok := p.(convo.Reasoning); ok && r.Signature+r.Encrypted != "" {
				all = append(all, r.Signature+r.Encrypted)
			}
		}
	}
	return all
}

// remind returns now, which v says after a compaction, with the reminders of v where they stand.
func (a api) remind(v *value, now []convo.Message) (out []convo.Message, err error) {
	if !v.hasReminders() {
		return now, nil
	}
	was, err := a.decodeAll(v.raw)
	if err != nil {
		return nil, err
	}
	others := false // before this message
	for _, m := range was {
		if m.Role != convo.RoleUser {
			others = true
			continue
		}
		for others && len(now) > 0 && now[0].Role != convo.RoleUser {
			out, now = append(out, now[0]), now[1:]
		}
		if len(plain(m.Role, slices.Clone(m.Parts))) > 0 {
			if len(now) == 0 || now[0].Role != convo.RoleUser { // its reminders have gone with it
				continue
			}
			m, now = weave(m, now[0]), now[1:]
		}
		out = append(out, m)
	}
	return append(out, now...), nil
}

// weave returns now with the reminders of was.
func weave(was, now convo.Message) convo.Message {
	rest := now.Parts
	now.Parts = nil
	for _, p := range was.Parts {
		switch o, ok := p.(convo.Opaque); {
		case isReminder(was.Role, p):
			now.Parts = append(now.Parts, p)
		case ok && o.Format == cacheFormat:
		case len(rest) > 0:
			now.Parts, rest = append(now.Parts, rest[0]), rest[1:]
		}
	}
	now.Parts = append(now.Parts, rest...)
	return now
}

// encode returns the raw messages for a message that is not of the program, such as a summary.
func (a api) encode(msg convo.Message) ([][]byte, error) {
	var calls []convo.ToolCall
	for _, r := range msg.ToolResults() {
		calls = append(calls, convo.ToolCall{ID: r.CallID, Name: r.Name, Arguments: "{}"})
	}
	msgs, before := []convo.Message{msg}, 0
	switch {
	case len(calls) > 0: // a result is sent after its call
		msgs, before = []convo.Message{convo.User("-"), convo.Assistant("", calls...), msg}, 2
		if a.list == "input" {
			before = 1 + len(calls)
		}
	case msg.Role == convo.RoleAssistant:
		msgs, before = []convo.Message{convo.User("-"), msg}, 1
	}
	req, err := a.format.Encode(convo.NewSnapshot(msgs))
	if err != nil {
		return nil, err
	}
	if len(req.Messages) <= before {
		return nil, fmt.Errorf("nothing can be sent for a message of the role %s", msg.Role)
	}
	return bytesOf(req.Messages[before:]), nil
}

func bytesOf(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

func rawsOf(list [][]byte) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

// textOf returns the string that a JSON value is, or "".
func textOf(raw []byte) (s string) {
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func isNull(raw []byte) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }
