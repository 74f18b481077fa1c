package bedrock

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// bare is an agent that does nothing about the context window.
type bare struct {
	client   *bedrockruntime.Client
	messages []types.Message
}

func (a *bare) Ask(ctx context.Context, question string, show func(string)) error {
	before := len(a.messages)
	a.messages = append(a.messages, types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}})
	for {
		answer, err := a.send(ctx, show)
		if err != nil {
			a.messages = a.messages[:before] // two user messages in a row are refused
			return err
		}
		a.messages = append(a.messages, answer)
		results := types.Message{Role: types.ConversationRoleUser}
		for _, block := range answer.Content {
			call, ok := block.(*types.ContentBlockMemberToolUse)
			if !ok {
				continue
			}
			arguments, err := call.Value.Input.MarshalSmithyDocument()
			if err != nil {
				return err
			}
			result := types.ToolResultBlock{ToolUseId: call.Value.ToolUseId}
			text, err := glue.Run(aws.ToString(call.Value.Name), string(arguments))
			if err != nil {
				text, result.Status = err.Error(), types.ToolResultStatusError
			}
			result.Content = []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: text}}
			results.Content = append(results.Content, &types.ContentBlockMemberToolResult{Value: result})
		}
		if len(results.Content) == 0 {
			return nil
		}
		a.messages = append(a.messages, results)
	}
}

func (a *bare) send(ctx context.Context, show func(string)) (answer types.Message, err error) {
	answer.Role = types.ConversationRoleAssistant
	out, err := a.client.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
		ModelId: aws.String(model), System: system, Messages: a.messages, ToolConfig: tools,
	})
	if err != nil {
		return answer, err
	}
	stream := out.GetStream()
	defer stream.Close()
	text, arguments, ended := "", "", false
	var call *types.ToolUseBlock
	for event := range stream.Events() {
		switch event := event.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			if start, ok := event.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
				call, arguments = &types.ToolUseBlock{ToolUseId: start.Value.ToolUseId, Name: start.Value.Name}, ""
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch delta := event.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				show(delta.Value)
				text += delta.Value
			case *types.ContentBlockDeltaMemberToolUse:
				arguments += aws.ToString(delta.Value.Input)
			}
		case *types.ConverseStreamOutputMemberContentBlockStop:
			switch {
			case call != nil:
				var input map[string]any
				if err := json.Unmarshal([]byte(arguments), &input); err != nil {
					return answer, err
				}
				call.Input = document.NewLazyDocument(input)
				answer.Content = append(answer.Content, &types.ContentBlockMemberToolUse{Value: *call})
				call = nil
			case text != "":
				answer.Content = append(answer.Content, &types.ContentBlockMemberText{Value: text})
				text = ""
			}
		case *types.ConverseStreamOutputMemberMessageStop:
			ended = true
		}
	}
	if err := stream.Err(); err != nil {
		return answer, err
	}
	if !ended {
		return answer, errors.New("the stream broke off")
	}
	return answer, nil
}
