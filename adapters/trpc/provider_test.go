package convotrpc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/model/openai"
	"trpc.group/trpc-go/trpc-agent-go/runner"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/function"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	convotrpc "github.com/seed-c1b73e60/convo/adapters/trpc"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A watched model keeps the messages of the newest request, and of its answer.
type watched struct {
	model.Model
	list []model.Message
}

func (w *watched) GenerateContent(ctx context.Context, r *model.Request) (<-chan *model.Response, error) {
	w.list = slices.Clone(r.Messages)
	return w.Model.GenerateContent(ctx, r)
}

type page struct {
	Page int `json:"page"`
}

func TestModel_AgainstAProvider(t *testing.T) { adaptertest.Run(t, framework(t)) }

// With a key in the environment, the agent talks to the real service.
func TestModel_Real(t *testing.T) { adaptertest.Real(t, framework) }

// The agent of trpc-agent-go, with its model for the API of OpenAI.
func framework(t *testing.T) adaptertest.Framework[model.Message] {
	read := function.NewFunctionTool(func(_ context.Context, p page) (string, error) { return adaptertest.Read(p.Page), nil },
		function.WithName("read"), function.WithDescription("Reads a page."))
	sessions := inmemory.NewSessionService() // what a restart leaves
	turn := func(t *testing.T, s adaptertest.Service, kept *mirror.Mirror[model.Message], list []model.Message) ([]model.Message, error) {
		beneath := openai.New(s.Model, openai.WithBaseURL(s.URL), openai.WithAPIKey(s.Key))
		m := &watched{Model: convotrpc.New(kept, beneath)}
		a := llmagent.New("reader", llmagent.WithModel(m), llmagent.WithInstruction("You read."), llmagent.WithTools([]tool.Tool{read}))
		r := runner.NewRunner("test", a, runner.WithSessionService(sessions))
		defer r.Close()
		events, err := r.Run(t.Context(), "user", "session", list[len(list)-1])
		if err != nil {
			return nil, err
		}
		for e := range events {
			if e.Error != nil {
				err = errors.New(e.Error.Message)
			}
			if e.Response != nil && len(e.Choices) > 0 && !e.IsPartial && e.Choices[0].Message.Role == model.RoleAssistant && len(e.Choices[0].Message.ToolCalls) == 0 {
				m.list = append(m.list, e.Choices[0].Message)
			}
		}
		return slices.DeleteFunc(m.list, isSystem), err
	}
	return adaptertest.Framework[model.Message]{
		API: adaptertest.OpenAI, Row: "trpc", Codec: convotrpc.Codec(), Turn: turn, User: model.NewUserMessage, Options: convo.Options{Roles: convo.Relaxed()},
	}
}

func isSystem(m model.Message) bool { return m.Role == model.RoleSystem }
