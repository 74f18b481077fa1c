// Package bedrock holds an agent for Bedrock's Converse, written three times.
package bedrock

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

const model = "anthropic.claude-3-haiku-20240307-v1:0"

var system = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: glue.System}}

// tools are the definitions of the tools, which the first two agents send.
var tools = func() *types.ToolConfiguration {
	config := new(types.ToolConfiguration)
	for _, t := range glue.Tools() {
		config.Tools = append(config.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String(t.Name), Description: aws.String(t.Description),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(t.Parameters)},
		}})
	}
	return config
}()
