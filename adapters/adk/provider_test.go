package convoadk_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/adapters/adaptertest"
	convoadk "github.com/seed-c1b73e60/convo/adapters/adk"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A watched model keeps the contents of the newest request, and of its answer.
type watched struct {
	model.LLM
	list []*genai.Content
}

func (w *watched) GenerateContent(ctx context.Context, r *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	w.list = slices.Clone(r.Contents)
	return w.LLM.GenerateContent(ctx, r, stream)
}

func TestModel_AgainstAProvider(t *testing.T) { adaptertest.Run(t, framework(t)) }

func TestModel_EditsOfThePast(t *testing.T) {
	adaptertest.Edits(t, framework(t), func(want, got *genai.Content) bool { return want == got })
}

// With a key in the environment, the agent talks to the real service.
func TestModel_Real(t *testing.T) { adaptertest.Real(t, framework) }

// The agent of ADK, with its model for the API of Gemini.
func framework(t *testing.T) adaptertest.Framework[*genai.Content] {
	type page struct {
		Page int `json:"page"`
	}
	read, err := functiontool.New(functiontool.Config{Name: "read", Description: "Reads a page."}, func(_ agent.Context, p page) (map[string]string, error) {
		return map[string]string{"text": adaptertest.Read(p.Page)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	turn := func(t *testing.T, s adaptertest.Service, kept *mirror.Mirror[*genai.Content], list []*genai.Content) ([]*genai.Content, error) {
		beneath, err := gemini.NewModel(t.Context(), s.Model, &genai.ClientConfig{APIKey: s.Key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL}})
		if err != nil {
			return nil, err
		}
		m := &watched{LLM: convoadk.New(kept, beneath)}
		a, err := llmagent.New(llmagent.Config{Name: "reader", Model: m, Instruction: "You read.", Tools: []tool.Tool{read}})
		if err != nil {
			return nil, err
		}
		sessions, err := sessionOf(t.Context(), list[:len(list)-1])
		if err != nil {
			return nil, err
		}
		r, err := runner.New(runner.Config{AppName: "test", Agent: a, SessionService: sessions})
		if err != nil {
			return nil, err
		}
		var last *genai.Content
		for e, err := range r.Run(t.Context(), "user", "session", list[len(list)-1], agent.RunConfig{StreamingMode: agent.StreamingModeSSE}) {
			if err != nil {
				return m.list, err
			}
			if e.Content != nil && !e.Partial {
				last = e.Content
			}
		}
		return append(m.list, last), nil
	}
	return adaptertest.Framework[*genai.Content]{
		API: adaptertest.Gemini, Row: "adk", Model: adaptertest.Gemini.Model, Codec: convoadk.Codec(), Turn: turn, Follows: true, Streams: true, Thinks: true, Options: convo.Options{Roles: convo.Relaxed()},
		User: func(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleUser) },
	}
}

// sessionOf returns a service with a session that holds a list.
func sessionOf(ctx context.Context, list []*genai.Content) (session.Service, error) {
	sessions := session.InMemoryService()
	created, err := sessions.Create(ctx, &session.CreateRequest{AppName: "test", UserID: "user", SessionID: "session"})
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		e := session.NewEvent(ctx, "earlier")
		if e.Content, e.Author = c, "reader"; c.Role == genai.RoleUser && c.Parts[0].FunctionResponse == nil {
			e.Author = "user"
		}
		if err := sessions.AppendEvent(ctx, created.Session, e); err != nil {
			return nil, err
		}
	}
	return sessions, nil
}
