// Package goopenai holds an agent for Chat Completions with github.com/sashabaranov/go-openai,
// written three times.
package goopenai

import (
	"github.com/sashabaranov/go-openai"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

const model = "gpt-4.1"

// tools are the definitions of the tools, which the first two agents send.
var tools = func() (list []openai.Tool) {
	for _, t := range glue.Tools() {
		list = append(list, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: t.Parameters,
		}})
	}
	return list
}()
