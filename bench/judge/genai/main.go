// Command genai has the types of google.golang.org/genai judge the requests of package
// wire.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"

	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/judge"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() { judge.Main(contents) }

// A request is what the SDK sends, which has no type of its own there.
type request struct {
	Contents          []*genai.Content `json:"contents,omitempty"`
	SystemInstruction *genai.Content   `json:"systemInstruction,omitempty"`
	Tools             []*genai.Tool    `json:"tools,omitempty"`
}

var contents = &judge.Judge{
	Name: "genai, Content and Tool",
	Sees: []string{"role", "field", "shape", "block"},
	Formats: map[string]wire.Format{
		"gemini":   wire.Gemini{},
		"gemini 2": wire.Gemini{Model: "gemini-2.5-flash", SystemSummary: true},
		"gemini 3": wire.Gemini{Model: "gemini-3-flash"},
	},
	Read: func(body []byte) []judge.Objection {
		var r request
		if err := json.Unmarshal(body, &r); err != nil {
			if urlAlphabet.Match(body) {
				return []judge.Objection{{Path: "thoughtSignature", Why: "the SDK cannot read the URL alphabet of base64"}}
			}
			return judge.Unread(body)
		}
		again, err := json.Marshal(r)
		if err != nil {
			return judge.Unread(body)
		}
		list := append(judge.Same(body, again, false), judge.Strict(r)...)
		for _, c := range r.Contents {
			if c == nil || c.Role != genai.RoleUser && c.Role != genai.RoleModel {
				list = append(list, judge.Objection{Path: "contents[].role", Why: "neither user nor model"})
				continue
			}
			for _, p := range c.Parts {
				list = append(list, data(p)...)
			}
		}
		return list
	},
	Known: append(judge.Numbers("args"), judge.Known{
		Path: "thoughtSignature", Why: "the SDK cannot read the URL alphabet of base64", Wrong: "judge", Recorded: true,
		Because: "A signature of a recorded request that the API took. The API reads both alphabets of base64, and wire sends a signature as it came.",
	}, judge.Known{
		Path: "tool_type", Why: "gone", Wrong: "judge", Recorded: true,
		Because: "A field in snake_case, of a recorded request that the API took. The API reads both spellings, and the SDK one.",
	}, judge.Known{
		Path: "functionCall.args", Why: "gone, it was an object and empty", Wrong: "judge",
		Because: "The SDK leaves out empty arguments. To the API both are the same.",
	}, judge.Known{
		Path: "functionResponse.response", Why: "gone, it was an object and empty", Wrong: "judge",
		Because: "The SDK leaves out the empty object of a result, which the API wants.",
	}, judge.Known{
		Path: "toolCall.args", Why: "gone, it was an object and empty", Wrong: "judge",
		Because: "The SDK leaves out empty arguments. To the API both are the same.",
	}, judge.Known{
		Why: "the SDK cannot hold a number", Wrong: "both may be",
		Because: "A number above 1.8e308, such as 1e400, is valid JSON, but none that the SDK can hold, nor the Struct that the API documents for args. wire sends the arguments of a model with the bytes that they came with.",
	}),
}

var urlAlphabet = regexp.MustCompile(`"thoughtSignature":"[^"]*[-_]`)

// data objects to a part without data, or with data of two kinds: the fields of the
// SDK's Part that the API documents as "data" are a union.
func data(p *genai.Part) []judge.Objection {
	if p == nil {
		return []judge.Objection{{Path: "contents[].parts[]", Why: "null"}}
	}
	set := 0
	for _, v := range []any{p.CodeExecutionResult, p.ExecutableCode, p.FileData, p.FunctionCall, p.FunctionResponse, p.InlineData, p.Text, p.ToolCall, p.ToolResponse} {
		if !reflect.ValueOf(v).IsZero() {
			set++
		}
	}
	switch {
	case set != 1:
		return []judge.Objection{{Path: "contents[].parts[]", Why: fmt.Sprintf("%d kinds of data", set)}}
	case p.FunctionCall != nil && p.FunctionCall.Name == "":
		return []judge.Objection{{Path: "contents[].parts[].functionCall.name", Why: "required, and not there"}}
	case p.FunctionResponse != nil && (p.FunctionResponse.Name == "" || p.FunctionResponse.Response == nil):
		return []judge.Objection{{Path: "contents[].parts[].functionResponse", Why: "name and response are required, and not there"}}
	case p.InlineData != nil && (p.InlineData.MIMEType == "" || len(p.InlineData.Data) == 0):
		return []judge.Objection{{Path: "contents[].parts[].inlineData", Why: "mimeType and data are required, and not there"}}
	case p.FileData != nil && p.FileData.FileURI == "":
		return []judge.Objection{{Path: "contents[].parts[].fileData.fileUri", Why: "required, and not there"}}
	}
	return nil
}
