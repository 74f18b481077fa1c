// Command mistral judges the requests of package wire for Mistral by the rules of the
// request validators of mistral-common. It runs no code of Mistral's: mistral-common is
// a Python package, so its rules stand here in other words, written from
// https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py
// (version 3 for the older tokenizers, 13 for the newer ones; mode serving). In the same
// way it judges those in dialect StrictAlternation by the chat template with tools of
// Mistral Small 3.1,
// https://github.com/ggml-org/llama.cpp/blob/master/models/templates/mistralai-Mistral-Small-3.1-24B-Instruct-2503.jinja
package main

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(judges...) }

var judges = append(validators, template)

var validators = []*judge.Judge{
	{Name: "mistral-common, validator 13", Own: true, Sees: []string{"role", "none", "id"}, Formats: formats, Read: func(body []byte) []judge.Objection { return read(body, true) }},
	{Name: "mistral-common, validator 3", Own: true, Sees: []string{"role", "none", "id"}, Formats: formats, Read: func(body []byte) []judge.Objection { return read(body, false) }, Known: []judge.Known{{
		Why: "text and calls in one message", Format: "mistral", Wrong: "both may be",
		Because: "The API takes text beside calls, and so do tokenizers from version 7 on; those before lose one of them. Dialect Mistral writes for the API, and with SplitCalls for those.",
	}}},
}

var template = &judge.Judge{
	Name: "template of Mistral Small 3.1", Own: true, Sees: []string{"role", "twice", "id"},
	Formats: map[string]wire.Format{
		"strict":         wire.OpenAIChat{Dialect: wire.StrictAlternation},
		"strict summary": wire.OpenAIChat{Dialect: wire.StrictAlternation, SystemSummary: true, Host: "h"},
		"split":          wire.OpenAIChat{Dialect: wire.StrictAlternation, SplitCalls: true},
	},
	Read: readTemplate,
	Known: []judge.Known{{
		Format: "strict", Why: "text beside calls is lost", Wrong: "both may be",
		Because: "The template leaves out what stands beside calls. Other strict templates do not; SplitCalls is for those that do.",
	}, {
		Why: "neither text nor image", Wrong: "both may be", Recorded: true,
		Because: "A file of a recorded conversation with OpenAI, which wire keeps as a part that it does not know, and sends in all dialects of the format.",
	}},
}

var formats = map[string]wire.Format{
	"mistral":         wire.OpenAIChat{Dialect: wire.Mistral},
	"mistral summary": wire.OpenAIChat{Dialect: wire.Mistral, SystemSummary: true},
	"mistral host":    wire.OpenAIChat{Dialect: wire.Mistral, Host: "h"},
	"split":           wire.OpenAIChat{Dialect: wire.Mistral, SplitCalls: true},
}

var (
	id   = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	name = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// readTemplate returns what the template objects to, and what it leaves out.
func readTemplate(body []byte) (list []judge.Objection) {
	object := func(path, why string) { list = append(list, judge.Objection{Path: path, Why: why}) }
	var r struct{ Messages []message }
	if json.Unmarshal(body, &r) != nil {
		return []judge.Objection{{Why: "another shape"}}
	}
	if len(r.Messages) > 0 && r.Messages[0].Role == "system" {
		r.Messages = r.Messages[1:]
	}
	turns := 0
	for _, m := range r.Messages {
		if m.Role != "tool" && len(m.ToolCalls) == 0 {
			if (m.Role == "user") != (turns%2 == 0) {
				object("messages[].role", "user and assistant do not alternate")
			}
			turns++
		}
		switch m.Role {
		case "user":
			var parts []struct{ Type string }
			if json.Unmarshal(m.Content, &parts) == nil && slices.ContainsFunc(parts, func(p struct{ Type string }) bool { return p.Type != "text" && p.Type != "image_url" }) {
				object("messages[].content[]", "neither text nor image")
			}
		case "assistant":
			if m.says() && len(m.ToolCalls) > 0 {
				object("messages[]", "text beside calls is lost")
			}
			for _, c := range m.ToolCalls {
				if len(c.ID) < 9 {
					object("messages[].tool_calls[].id", "shorter than nine letters")
				}
			}
		case "tool":
			if m.ToolCallID == nil || len(*m.ToolCallID) < 9 {
				object("messages[].tool_call_id", "shorter than nine letters")
			}
		default:
			object("messages[].role", "not a role")
		}
	}
	return list
}

// followers are the roles that may follow a role.
var followers = map[string][]string{
	"system":    {"user", "assistant", "system"},
	"user":      {"assistant", "system", "user"},
	"assistant": {"assistant", "user", "tool"},
	"tool":      {"assistant", "tool"},
}

type message struct {
	Role       string
	Content    json.RawMessage
	Name       *string
	ToolCallID *string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string
		Function struct{ Name string }
	} `json:"tool_calls"`
}

// says reports whether a message has a content that is not empty.
func (m *message) says() bool {
	return !slices.Contains([]string{"", "null", `""`, "[]"}, string(m.Content))
}

// read returns what a validator objects to. The newer ones look at the ids of results,
// and the older ones at their number.
func read(body []byte, newer bool) (list []judge.Objection) {
	object := func(path, why string) { list = append(list, judge.Objection{Path: path, Why: why}) }
	var r struct {
		Messages []message
		Tools    []struct{ Function struct{ Name string } }
	}
	if json.Unmarshal(body, &r) != nil {
		return []judge.Objection{{Why: "another shape"}}
	}
	if len(r.Messages) == 0 {
		return []judge.Objection{{Path: "messages", Why: "empty"}}
	}
	if len(r.Messages) > 1 && r.Messages[len(r.Messages)-1].Role == "assistant" {
		object("messages", "ends with the assistant")
	}
	for _, t := range r.Tools {
		if !name.MatchString(t.Function.Name) {
			object("tools[].function.name", "not a name")
		}
	}
	var open, answered []string
	settle := func() {
		if len(open) != len(answered) {
			object("messages[]", "as many results as calls are wanted")
		}
		open, answered = nil, nil
	}
	for i, m := range r.Messages {
		switch {
		case followers[m.Role] == nil:
			object("messages[].role", "not a role")
		case i > 0 && !slices.Contains(followers[r.Messages[i-1].Role], m.Role):
			object("messages[].role", m.Role+" after "+r.Messages[i-1].Role)
		case len(r.Messages) == 1 && m.Role != "user" && m.Role != "system":
			object("messages[].role", m.Role+" alone")
		}
		switch m.Role {
		case "system":
			if len(m.Content) == 0 || string(m.Content) == "null" {
				object("messages[].content", "a system message without content")
			}
		case "tool":
			switch {
			case m.ToolCallID == nil || !id.MatchString(*m.ToolCallID):
				object("messages[].tool_call_id", "not nine letters and digits")
			case newer && slices.Contains(answered, *m.ToolCallID):
				object("messages[].tool_call_id", "a second result")
			case newer && !slices.Contains(open, *m.ToolCallID):
				object("messages[].tool_call_id", "the result of no call")
			}
			if m.ToolCallID != nil {
				answered = append(answered, *m.ToolCallID)
			}
			if m.Name != nil && !name.MatchString(*m.Name) {
				object("messages[].name", "not a name")
			}
		case "assistant":
			settle()
			if !newer && m.says() == (len(m.ToolCalls) > 0) {
				why := "neither text nor calls"
				if m.says() {
					why = "text and calls in one message"
				}
				object("messages[]", why)
			}
			for _, c := range m.ToolCalls {
				switch {
				case !id.MatchString(c.ID):
					object("messages[].tool_calls[].id", "not nine letters and digits")
				case newer && slices.Contains(open, c.ID):
					object("messages[].tool_calls[].id", "twice in one message")
				}
				if !name.MatchString(c.Function.Name) {
					object("messages[].tool_calls[].function.name", "not a name")
				}
				open = append(open, c.ID)
			}
		}
	}
	settle()
	return list
}
