// Command openai has the types of openai-go judge the requests of package wire.
package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(chat, items) }

var chat = &judge.Judge{
	Name: "openai-go, ChatCompletionNewParams",
	Sees: []string{"role", "field", "shape", "block"},
	Formats: map[string]wire.Format{
		"openai chat":           wire.OpenAIChat{},
		"openai chat developer": wire.OpenAIChat{Developer: true, Audio: true, Names: true, SystemSummary: true},
		"mistral":               wire.OpenAIChat{Dialect: wire.Mistral},
		"mistral split":         wire.OpenAIChat{Dialect: wire.Mistral, SplitCalls: true},
		"strict":                wire.OpenAIChat{Dialect: wire.StrictAlternation},
		"gemma":                 wire.OpenAIChat{Dialect: wire.Gemma},
		"host":                  wire.OpenAIChat{Host: "h"},
	},
	Read: func(body []byte) []judge.Objection {
		return read[openai.ChatCompletionNewParams](judge.With(body, `"model":"m"`))
	},
	Known: []judge.Known{{
		Format: "mistral", Path: "messages[].content[]", Why: "0 variants", Wrong: "judge",
		Because: "document_url and thinking are parts that Mistral has and OpenAI has not.",
	}, {
		Format: "host", Path: ".reasoning_content", Why: "gone", Wrong: "judge", Because: ofHosts,
	}, {
		Format: "host", Path: ".reasoning", Why: "gone", Wrong: "judge", Because: ofHosts,
	}, {
		Format: "host", Path: ".reasoning_details", Why: "gone", Wrong: "judge", Because: ofHosts,
	}, {
		Format: "host", Path: ".extra_content", Why: "gone", Wrong: "judge", Because: ofHosts,
	}},
}

const ofHosts = "Fields in which hosts other than OpenAI send reasoning, and take it back."

var items = &judge.Judge{
	Name: "openai-go, ResponseNewParams",
	Sees: []string{"role", "field", "shape", "block"},
	Formats: map[string]wire.Format{
		"responses":           wire.OpenAIResponses{},
		"responses developer": wire.OpenAIResponses{Model: "m", Developer: true},
		"responses cache":     wire.OpenAIResponses{Developer: true, Cache: true, SystemSummary: true},
		"responses plain":     wire.OpenAIResponses{Plain: true},
	},
	Read: func(body []byte) []judge.Objection {
		// The SDK forgets the whole input when it does not know one item, so each is read
		// alone. A message needs no type, but the SDK tells the items apart by it.
		var list []judge.Objection
		for _, item := range judge.List(body, "input") {
			var message struct{ Type, Role, ID string }
			if json.Unmarshal(item, &message) == nil && message.Type == "" && message.Role != "" {
				item = judge.With(item, `"type":"message"`)
			}
			for _, o := range read[responses.ResponseNewParams](slices.Concat([]byte(`{"model":"m","input":[`), item, []byte("]}"))) {
				if kind := message.Type; kind != "" {
					switch {
					case message.ID != "" && message.Role != "":
						kind += " with an id"
					case message.Role == "assistant":
						kind += " of the assistant"
					}
					o.Path = strings.Replace(o.Path, "input[]", "input["+kind+"]", 1)
				}
				list = append(list, o)
			}
		}
		var rest map[string]json.RawMessage
		if err := json.Unmarshal(body, &rest); err != nil {
			return []judge.Objection{{Why: "not JSON"}}
		}
		delete(rest, "input")
		rest["model"] = json.RawMessage(`"m"`)
		body, err := json.Marshal(rest)
		if err != nil {
			return []judge.Objection{{Why: "not JSON"}}
		}
		return append(list, read[responses.ResponseNewParams](body)...)
	},
	Known: append([]judge.Known{{
		Path: "input[reasoning].id", Why: "missing", Wrong: "judge",
		Because: "The type wants the id of a reasoning item. Codex, OpenAI's own client, sends reasoning without it, as wire does with reasoning whose place in its answer is not known.",
	}, {
		Path: "input[message of the assistant].content[]", Why: "0 variants", Wrong: "judge",
		Because: "The type has no output_text in a message without an id. Codex, OpenAI's own client, sends what the assistant said so, as wire does with a text that has annotations.",
	}}, asRecorded...),
}

// asRecorded explains items that OpenAI has made, and has taken back in recorded
// requests, and that its own types do not hold.
var asRecorded = func() (list []judge.Known) {
	for path, why := range map[string]string{".content[]": "0 variants", ".id": "gone", ".status": "gone"} {
		list = append(list, judge.Known{Path: "input[message with an id]" + path, Why: why, Wrong: "judge", Recorded: true,
			Because: "The message of an answer, as recorded requests that the API took have it: the SDK takes it for a message to the model."})
	}
	for _, path := range []string{"code_interpreter_call].outputs", "image_generation_call].result", "image_generation_call].status"} {
		list = append(list, judge.Known{Path: "input[" + path, Why: "required, and not there", Wrong: "judge", Recorded: true,
			Because: "An item of a tool of OpenAI's, of a recorded request that the API took without this field."})
	}
	return list
}()

// read reads a request into a type of the SDK, and compares it with what the SDK
// writes of it.
func read[T any](body []byte) []judge.Objection {
	var p T
	if err := json.Unmarshal(body, &p); err != nil {
		return judge.Unread(body)
	}
	again, err := json.Marshal(p)
	if err != nil {
		return judge.Unread(body)
	}
	return append(judge.Same(body, again, false), judge.Strict(p)...)
}
