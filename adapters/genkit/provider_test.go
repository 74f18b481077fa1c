package convogenkit_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core/api"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/anthropic"

	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	convogenkit "github.com/seed-c1b73e60/convo/adapters/genkit"
	"github.com/seed-c1b73e60/convo/mirror"
)

func TestWindow_AgainstAProvider(t *testing.T) { adaptertest.Run(t, framework(t)) }

// With a key in the environment, the agent talks to the real service.
func TestWindow_Real(t *testing.T) { adaptertest.Real(t, framework) }

// inOrder puts the results of calls into the order of the calls: genkit runs tools at the same
// time, and adds each result when it has it, so that each run of the test would have other requests.
func inOrder(context.Context) (*ai.Hooks, error) {
	return &ai.Hooks{WrapModel: func(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
		for i, m := range p.Request.Messages {
			if m.Role == ai.RoleTool && i > 0 {
				calls := p.Request.Messages[i-1].Content
				at := func(result *ai.Part) int {
					return slices.IndexFunc(calls, func(call *ai.Part) bool {
						return call.IsToolRequest() && call.ToolRequest.Ref == result.ToolResponse.Ref
					})
				}
				slices.SortStableFunc(m.Content, func(a, b *ai.Part) int { return cmp.Compare(at(a), at(b)) })
			}
		}
		return next(ctx, p)
	}}, nil
}

// Generate of genkit, with its plugin for the API of Anthropic.
func framework(t *testing.T) adaptertest.Framework[*ai.Message] {
	type page struct {
		Page int `json:"page"`
	}
	turn := func(t *testing.T, s adaptertest.Service, m *mirror.Mirror[*ai.Message], list []*ai.Message) ([]*ai.Message, error) {
		plugin := &anthropic.Anthropic{APIKey: s.Key, BaseURL: s.URL}
		g := genkit.Init(t.Context(), genkit.WithPlugins(plugin))
		model, err := plugin.DefineModel(g, s.Model, &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, Tools: true, SystemRole: true}})
		if err != nil {
			return nil, err
		}
		genkit.RegisterAction(g, model.(api.Registerable))
		read := genkit.DefineTool(g, "read", "Reads a page.", func(_ *ai.ToolContext, p page) (string, error) {
			if p.Page%4 == 0 {
				time.Sleep(time.Millisecond) // so that the results of two calls often change places
			}
			return adaptertest.Read(p.Page), nil
		})
		w := convogenkit.New(m)
		r, err := genkit.Generate(t.Context(), g, ai.WithModel(model), ai.WithSystem("You read."), ai.WithMessages(list...),
			ai.WithTools(read), ai.WithUse(ai.MiddlewareFunc(inOrder), w.Middleware()), ai.WithConfig(map[string]any{"max_tokens": 500}))
		if err != nil {
			return nil, err
		}
		list = nil
		for _, m := range r.History() {
			if m.Role != ai.RoleSystem {
				list = append(list, m)
			}
		}
		return list, nil
	}
	return adaptertest.Framework[*ai.Message]{
		API: adaptertest.Anthropic, Row: "genkit", Model: "claude-opus-5-5", Codec: convogenkit.Codec(), Turn: turn, Thinks: true,
		User: func(text string) *ai.Message { return ai.NewUserTextMessage(text) },
	}
}
