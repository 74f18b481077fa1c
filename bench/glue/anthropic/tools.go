// Package anthropic holds an agent for Anthropic's Messages API, written five times.
package anthropic

import (
	"github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

const (
	model     = "claude-sonnet-5"
	maxTokens = glue.Reserve
)

// tools are the definitions of the tools, which the first four agents send.
var tools = func() (list []anthropic.ToolUnionParam) {
	for _, t := range glue.Tools() {
		list = append(list, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name:        t.Name,
			Description: anthropic.String(t.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: t.Parameters["properties"], Required: t.Parameters["required"].([]string)},
		}})
	}
	return list
}()
