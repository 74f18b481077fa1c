// Command anthropic has the types of anthropic-sdk-go judge the requests of package wire.
package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(messages) }

var beta = regexp.MustCompile(`"type":"(?:tool_addition|mcp_tool_use|advisor_tool_result|compaction)"`)

var messages = &judge.Judge{
	Name: "anthropic-sdk-go, MessageNewParams",
	Sees: []string{"role", "field", "shape", "block"},
	Formats: map[string]wire.Format{
		"anthropic":         wire.Anthropic{},
		"anthropic cache":   wire.Anthropic{Model: "m", Cache: true, UserLast: true},
		"anthropic hour":    wire.Anthropic{Cache: true, CacheTools: true, CacheLifetime: time.Hour},
		"anthropic summary": wire.Anthropic{Cache: true, SystemSummary: true},
	},
	Read: func(body []byte) []judge.Objection {
		body = judge.With(body, `"model":"m","max_tokens":1`)
		var p anthropic.MessageNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			return judge.Unread(body)
		}
		again, err := json.Marshal(p)
		if err != nil {
			return judge.Unread(body)
		}
		list := append(judge.Same(body, again, true), judge.Strict(p)...)
		if beta.Match(body) {
			for i, o := range list {
				list[i].Path = strings.Replace(o.Path, "messages[]", "messages[] of the beta", 1)
			}
		}
		return list
	},
	Known: append(judge.Numbers("input"), judge.Known{
		Path: "messages[] of the beta.content", Wrong: "judge", Recorded: true,
		Because: "A part of a beta, such as mcp_tool_use, of a recorded request that the API took. It stands in the types of the beta only.",
	}, judge.Known{
		Why: "the SDK cannot hold a number", Wrong: "judge",
		Because: "A number above 1.8e308, such as 1e400, is valid JSON, but none that the SDK can hold. wire sends the arguments of a model with the bytes that they came with.",
	}),
}
