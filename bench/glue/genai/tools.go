// Package genai holds an agent for Gemini's generateContent, written five times.
package genai

import (
	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

const model = "gemini-3-flash-preview"

// tools are the definitions of the tools, which the first four agents send.
var tools = func() []*genai.Tool {
	tool := new(genai.Tool)
	for _, t := range glue.Tools() {
		tool.FunctionDeclarations = append(tool.FunctionDeclarations, &genai.FunctionDeclaration{
			Name:                 t.Name,
			Description:          t.Description,
			ParametersJsonSchema: t.Parameters,
		})
	}
	return []*genai.Tool{tool}
}()
