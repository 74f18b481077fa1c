package judge

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Template is a chat template that a model was published with.
type Template struct {
	Name string
	Text string

	// Render runs the template with these variables. An error that a template has raised
	// by itself is a *Raised.
	Render func(variables map[string]any) error
}

// Raised is an exception that a template raises by itself, by which it refuses a
// request.
type Raised struct{ Why string }

func (r *Raised) Error() string { return "raises: " + r.Why }

// Textual are the formats for templates that know no tools.
var Textual = map[string]wire.Format{
	"gemma":         wire.OpenAIChat{Dialect: wire.Gemma},
	"gemma summary": wire.OpenAIChat{Dialect: wire.Gemma, SystemSummary: true},
}

// Alternating are the formats for templates that know no tools, and take a system
// message.
var Alternating = map[string]wire.Format{
	"gemma":          wire.OpenAIChat{Dialect: wire.Gemma},
	"strict":         withoutCalls{wire.OpenAIChat{Dialect: wire.StrictAlternation}},
	"strict summary": withoutCalls{wire.OpenAIChat{Dialect: wire.StrictAlternation, SystemSummary: true}},
}

// Llama are the formats for the templates of Llama 3, which know tools.
var Llama = map[string]wire.Format{
	"openai chat": wire.OpenAIChat{},
	"strict":      wire.OpenAIChat{Dialect: wire.StrictAlternation},
	"gemma":       wire.OpenAIChat{Dialect: wire.Gemma},
}

// withoutCalls is a format for conversations without calls. Others have no request.
type withoutCalls struct{ wire.Format }

func (f withoutCalls) Encode(s *convo.Snapshot) (wire.Request, error) {
	for _, e := range s.All() {
		if len(e.Message.ToolCalls()) > 0 {
			return wire.Request{}, wire.ErrEmpty
		}
	}
	return f.Format.Encode(s)
}

// ofTemplates explains what templates object to.
var ofTemplates = []Known{{
	Why: "raises: Cannot put tools in the first user message", Format: "openai chat", Wrong: "judge",
	Because: "A request of system text and tools alone: the template puts the tools into the first message of the user. OpenAI takes it.",
}, {
	Path: "with custom calls", Format: "openai chat", Why: "does not run", Wrong: "both may be",
	Because: "Custom tools are OpenAI's own, and the template wants functions. A conversation that OpenAI's models have had with them needs another dialect on another host.",
}, {
	Why: "raises: This model only supports single tool-calls at once!", Wrong: "both may be",
	Because: "Llama 3 calls one tool at a time. A conversation with parallel calls of another model can be sent to it in dialect Gemma, as text.",
}, {
	Path: "with calls", Format: "openai chat", Why: "does not run", Wrong: "judge",
	Because: "A conversation that begins with a call of the assistant: the template takes the first message for the user's, and its content is null. OpenAI takes it.",
}}

// ByTemplate returns a judge that runs a template. Before that it does what a host does
// (vLLM, and llama.cpp in the same way): a content that is a list of texts becomes one
// text if the template does not look into lists, and the arguments of a call become the
// object that they hold. Since no host knows what a template does with a sound or a
// file, such parts become a text.
func ByTemplate(t Template, engine string, formats map[string]wire.Format) *Judge {
	lists := strings.Contains(t.Text, "content'] is string") || strings.Contains(t.Text, "content'] is not string") || strings.Contains(t.Text, "content is string") || strings.Contains(t.Text, `["content"] is string`)
	sees := []string{"role"}
	if strings.Contains(t.Text, "System role not") || strings.Contains(t.Text, "System messages are not") {
		sees = append(sees, "system")
	}
	switch {
	case strings.Contains(t.Text, "System messages are not"):
		sees = sees[1:] // it takes any other
	case strings.Contains(t.Text, "single tool-calls"):
		sees[0] = "calls"
	case strings.Contains(t.Text, "must alternate"):
		sees[0] = "twice"
	}
	return &Judge{
		Name: t.Name + ", " + engine, Formats: formats, Known: ofTemplates, Sees: sees,
		Read: func(body []byte) []Objection {
			var r struct {
				Messages []map[string]any
				Tools    []any
			}
			if json.Unmarshal(body, &r) != nil {
				return []Objection{{Why: "not JSON"}}
			}
			messages := make([]any, len(r.Messages))
			for i, m := range r.Messages {
				host(m, lists)
				messages[i] = m
			}
			variables := map[string]any{"messages": messages, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true}
			if len(r.Tools) > 0 {
				variables["tools"] = r.Tools
			}
			if err := t.Render(variables); err == nil {
				return nil
			} else if bytes.Contains(body, []byte(`"type":"custom"`)) {
				return []Objection{{Path: "with custom calls", Why: err.Error()}}
			} else if bytes.Contains(body, []byte(`"tool_calls":[`)) {
				return []Objection{{Path: "with calls", Why: err.Error()}}
			} else {
				return []Objection{{Path: "without calls", Why: err.Error()}}
			}
		},
	}
}

// host changes a message as a host does before it runs a template.
func host(m map[string]any, lists bool) {
	if parts, ok := m["content"].([]any); ok {
		var texts []string
		var kept []any
		for _, p := range parts {
			p, _ := p.(map[string]any)
			switch p["type"] {
			case "text":
				text, _ := p["text"].(string)
				texts, kept = append(texts, text), append(kept, p)
			case "image_url":
				texts, kept = append(texts, "<image>"), append(kept, map[string]any{"type": "image"})
			default:
				texts, kept = append(texts, "<file>"), append(kept, map[string]any{"type": "text", "text": "<file>"})
			}
		}
		m["content"] = strings.Join(texts, "\n")
		if lists {
			m["content"] = kept
		}
	}
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		c, _ := c.(map[string]any)
		f, _ := c["function"].(map[string]any)
		var args map[string]any
		if text, ok := f["arguments"].(string); ok && json.Unmarshal([]byte(text), &args) == nil {
			f["arguments"] = args
		}
	}
	if len(calls) == 0 {
		delete(m, "tool_calls") // the templates ask whether it is there
	}
}
