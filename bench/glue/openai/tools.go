// Package openai holds an agent for OpenAI's Chat Completions, written five times.
package openai

import (
	"github.com/openai/openai-go/v3"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

const model = openai.ChatModelGPT4_1

// tools are the definitions of the tools, which the first four agents send.
var tools = func() (list []openai.ChatCompletionToolUnionParam) {
	for _, t := range glue.Tools() {
		list = append(list, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name:        t.Name,
			Description: openai.String(t.Description),
			Parameters:  t.Parameters,
		}))
	}
	return list
}()
