package convoeino_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	convoeino "github.com/seed-c1b73e60/convo/adapters/eino"
	"github.com/seed-c1b73e60/convo/mirror"
)

func TestWindow_AgainstAProvider(t *testing.T) { adaptertest.Run(t, framework(t)) }

// With a key in the environment, the agent talks to the real service.
func TestWindow_Real(t *testing.T) { adaptertest.Real(t, framework) }

// The agent of eino's adk, with the model of eino-ext for the API of OpenAI.
func framework(t *testing.T) adaptertest.Framework[*schema.Message] {
	type page struct {
		Page int `json:"page"`
	}
	read, err := utils.InferTool("read", "Reads a page.", func(_ context.Context, p page) (string, error) { return adaptertest.Read(p.Page), nil })
	if err != nil {
		t.Fatal(err)
	}
	turn := func(t *testing.T, s adaptertest.Service, m *mirror.Mirror[*schema.Message], list []*schema.Message) ([]*schema.Message, error) {
		model, err := openai.NewChatModel(t.Context(), &openai.ChatModelConfig{APIKey: s.Key, BaseURL: s.URL, Model: s.Model})
		if err != nil {
			return nil, err
		}
		w := convoeino.New(m)
		agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
			Name: "reader", Description: "reads", Instruction: "You read.", Model: model, MaxIterations: 100,
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{read}}},
			Handlers:    []adk.ChatModelAgentMiddleware{w},
		})
		if err != nil {
			return nil, err
		}
		list = slices.Clone(list)
		events := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent, EnableStreaming: true}).Run(t.Context(), list)
		var failed error
		for e, ok := events.Next(); ok; e, ok = events.Next() { // to the end: the agent still works after an error
			if e.Err != nil {
				failed = errors.Join(failed, e.Err)
			} else if e.Output != nil && e.Output.MessageOutput != nil {
				said, err := e.Output.MessageOutput.GetMessage()
				failed = errors.Join(failed, err)
				list = append(list, said)
			}
		}
		if failed != nil {
			return nil, failed
		}
		inOrder(list)
		return list, nil
	}
	return adaptertest.Framework[*schema.Message]{
		API: adaptertest.OpenAI, Row: "eino", Codec: convoeino.Codec(), Turn: turn, Streams: true, User: schema.UserMessage,
	}
}

// inOrder puts the results of parallel calls in the order of the calls, in which the requests
// have them. The events of a run have them as the tools end.
func inOrder(list []*schema.Message) {
	for i, m := range list {
		n := len(m.ToolCalls)
		if n < 2 || i+1+n > len(list) {
			continue
		}
		at := func(r *schema.Message) int {
			return slices.IndexFunc(m.ToolCalls, func(c schema.ToolCall) bool { return c.ID == r.ToolCallID })
		}
		slices.SortStableFunc(list[i+1:i+1+n], func(a, b *schema.Message) int { return at(a) - at(b) })
	}
}
