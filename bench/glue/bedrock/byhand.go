package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/seed-c1b73e60/convo/bench/glue"
)

// byHand is an agent that keeps the conversation inside the context window by
// dropping the oldest turns.
type byHand struct {
	client   *bedrockruntime.Client
	messages []types.Message
	perByte  float64 // tokens, as the last usage tells
}

func newByHand(client *bedrockruntime.Client) *byHand { return &byHand{client: client, perByte: 0.3} }

func (a *byHand) Ask(ctx context.Context, question string, show func(string)) error {
	a.messages = append(a.messages, types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: question}}})
	for {
		if a.tokens() > glue.Window-glue.Reserve {
			a.shrink((glue.Window - glue.Reserve) / 2)
		}
		answer, err := a.send(ctx, show)
		if isTooLong(err) && a.shrink(a.tokens()/2) {
			answer, err = a.send(ctx, show)
		}
		if err != nil {
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

// tokens estimates the size of the next request.
func (a *byHand) tokens() int { return int(float64(a.size()) * a.perByte) }

func (a *byHand) size() int {
	data, _ := json.Marshal(a.messages)
	return len(data)
}

// shrink drops the oldest turns until the request has at most this many tokens, and
// reports whether it dropped any. The newest turn stays.
func (a *byHand) shrink(tokens int) (dropped bool) {
	for a.tokens() > tokens {
		next := slices.IndexFunc(a.messages[1:], func(m types.Message) bool {
			_, isText := m.Content[0].(*types.ContentBlockMemberText)
			return m.Role == types.ConversationRoleUser && isText
		})
		if next < 0 {
			break
		}
		a.messages = slices.Delete(a.messages, 0, 1+next)
		dropped = true
	}
	return dropped
}

// isTooLong reports whether the provider found the prompt too long.
func isTooLong(err error) bool {
	var e *types.ValidationException
	return errors.As(err, &e) && strings.Contains(e.ErrorMessage(), "too long")
}

func (a *byHand) send(ctx context.Context, show func(string)) (answer types.Message, err error) {
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
		case *types.ConverseStreamOutputMemberMetadata:
			if u := event.Value.Usage; u != nil && aws.ToInt32(u.InputTokens) > 0 {
				a.perByte = float64(aws.ToInt32(u.InputTokens)) / float64(a.size())
			}
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
