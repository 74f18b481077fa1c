// Command ollama has the types of Ollama's own server and client judge the requests of
// package wire.
package main

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/ollama/ollama/api"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(chat) }

// roles are those that Ollama's server tells apart.
var roles = []string{"system", "user", "assistant", "tool"}

var chat = &judge.Judge{
	Name: "ollama/api, ChatRequest",
	Sees: []string{"role", "field", "shape"},
	Formats: map[string]wire.Format{
		"ollama":       wire.OpenAIChat{Dialect: wire.Ollama},
		"ollama model": wire.OpenAIChat{Dialect: wire.Ollama, Model: "m", SystemSummary: true},
	},
	Read: func(body []byte) []judge.Objection {
		body = judge.With(body, `"model":"m"`)
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		var r api.ChatRequest
		if err := d.Decode(&r); err != nil {
			return judge.Unread(body)
		}
		again, err := json.Marshal(r)
		if err != nil {
			return judge.Unread(body)
		}
		list := judge.Same(body, again, false)
		for _, m := range r.Messages {
			if !slices.Contains(roles, m.Role) {
				list = append(list, judge.Objection{Path: "messages[].role", Why: "not a role"})
			}
			for _, c := range m.ToolCalls {
				if c.Function.Name == "" {
					list = append(list, judge.Objection{Path: "messages[].tool_calls[].function.name", Why: "required, and not there"})
				}
			}
		}
		return list
	},
	Known: append(judge.Numbers("arguments"), judge.Known{
		Path: "tool_calls[].function.index", Why: "missing", Wrong: "judge",
		Because: "The client writes the index of a call in any case. The server reads a call without one, and its own templates do not ask for it.",
	}, judge.Known{
		Path: "properties.n.minimum", Why: "gone, it was a number", Wrong: "judge",
		Because: "The types hold some keywords of JSON Schema only, so the server forgets the others, such as minimum.",
	}, judge.Known{
		Why: "the SDK cannot hold a number", Wrong: "both may be",
		Because: "A number above 1.8e308, such as 1e400, is valid JSON, but none that Ollama can hold. wire sends the arguments of a model with the bytes that they came with; Ollama would not have read them either.",
	}),
}
