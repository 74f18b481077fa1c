// Command mistral judges the requests of package wire for Mistral by the rules of the
// request validators of mistral-common. It runs no code of Mistral's: mistral-common is
// a Python package, so its rules stand here in other words, written from
// https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py
// (version 3 for the older tokenizers, 13 for the newer ones; mode serving).
package main

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(validators...) }

var validators = []*judge.Judge{
	{Name: "mistral-common, validator 13", Own: true, Sees: []string{"role", "none", "id"}, Formats: formats, Read: func(body []byte) []judge.Objection { return read(body, true) }},
	{Name: "mistral-common, validator 3", Own: true, Sees: []string{"role", "none", "id"}, Formats: formats, Read: func(body []byte) []judge.Objection { return read(body, false) }, Known: []judge.Known{{
		Why: "text and calls in one message", Wrong: "both may be",
		Because: "The API takes text beside calls, and so do tokenizers from version 7 on; those before lose one of them. Dialect Mistral writes for the API.",
	}}},
}

var formats = map[string]wire.Format{
	"mistral":         wire.OpenAIChat{Dialect: wire.Mistral},
	"mistral summary": wire.OpenAIChat{Dialect: wire.Mistral, SystemSummary: true},
}

var (
	id   = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	name = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

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
