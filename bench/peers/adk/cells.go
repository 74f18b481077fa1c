package main

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

const adkAgent = "agent"

func adkEvent(ctx context.Context, i int) *session.Event {
	e := session.NewEvent(ctx, "run")
	if peer.IsUser(i) {
		e.Author, e.Content = "user", genai.NewContentFromText(peer.Text, genai.RoleUser)
	} else {
		e.Author, e.Content = adkAgent, genai.NewContentFromText(peer.Text, genai.RoleModel)
	}
	return e
}

// adkSessions returns k sessions of one service, each with n events.
func adkSessions(k, n int) (session.Service, []session.Session, error) {
	ctx := context.Background()
	svc := session.InMemoryService()
	list := make([]session.Session, k)
	for i := range list {
		r, err := svc.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "user", SessionID: fmt.Sprint("s", i)})
		if err != nil {
			return nil, nil, err
		}
		list[i] = r.Session
		for j := range n {
			if err := svc.AppendEvent(ctx, list[i], adkEvent(ctx, j)); err != nil {
				return nil, nil, err
			}
		}
	}
	return svc, list, nil
}

func adkAppend(n int) peer.Case {
	return peer.Case{Units: n, Max: 1 + 20_000/n, New: func(k int) (func(int) error, error) {
		svc, fresh, err := adkSessions(k, 0)
		ctx := context.Background()
		user, reply := adkEvent(ctx, 0), adkEvent(ctx, 1)
		return func(i int) error {
			for j := range n {
				e := user
				if !peer.IsUser(j) {
					e = reply
				}
				if err := svc.AppendEvent(ctx, fresh[i], e); err != nil {
					return err
				}
			}
			if got := fresh[i].Events().Len(); got != n {
				return peer.WrongSize(got)
			}
			return nil
		}, err
	}}
}

func adkRead(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		svc, list, err := adkSessions(1, n)
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		req := &session.GetRequest{AppName: "app", UserID: "user", SessionID: list[0].ID()}
		return func(int) error {
			got, err := svc.Get(ctx, req)
			if err == nil && got.Session.Events().Len() != n {
				err = peer.WrongSize(got.Session.Events().Len())
			}
			return err
		}, nil
	}}
}

// A silentLLM answers at once and records the number of messages in the request.
type silentLLM struct{ seen int }

func (*silentLLM) Name() string { return "silent" }

func (m *silentLLM) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	m.seen = len(req.Contents)
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText(peer.Text, genai.RoleModel), TurnComplete: true}, nil)
	}
}

// adkTurn runs a whole turn with a model that answers at once, because adk-go makes
// requests only inside a turn.
func adkTurn(n int) peer.Case {
	return peer.Case{Max: 1 + 20_000/n, New: func(k int) (func(int) error, error) {
		svc, list, err := adkSessions(k, n)
		if err != nil {
			return nil, err
		}
		llm := new(silentLLM)
		a, err := llmagent.New(llmagent.Config{Name: adkAgent, Model: llm})
		if err != nil {
			return nil, err
		}
		r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: svc})
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		return func(i int) error {
			for _, err := range r.Run(ctx, "user", list[i].ID(), genai.NewContentFromText(peer.Text, genai.RoleUser), agent.RunConfig{}) {
				if err != nil {
					return err
				}
			}
			if llm.seen != n+1 {
				return peer.WrongSize(llm.seen)
			}
			return nil
		}, nil
	}}
}
