package main

import (
	"context"
	"fmt"
	"runtime"

	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"
	"trpc.group/trpc-go/trpc-agent-go/session/summary"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// trpcCounter is the counter that trpc-agent-go has unless another one is set: a token for
// every four characters.
var trpcCounter = model.NewSimpleTokenCounter()

func trpcMessages(n int) []model.Message {
	list := make([]model.Message, n)
	for i, text := range peer.Texts(n) {
		if peer.IsUser(i) {
			list[i] = model.NewUserMessage(text)
		} else {
			list[i] = model.NewAssistantMessage(text)
		}
	}
	return list
}

func trpcEvent(m model.Message, author string) *event.Event {
	return event.NewResponseEvent("run", author, &model.Response{Choices: []model.Choice{{Message: m}}, Done: true})
}

// trpcSessions returns k empty sessions of one service. Its default limit of 1,000
// events is lifted, so that a session can hold all messages of a column.
func trpcSessions(k int) (*inmemory.SessionService, []*session.Session, error) {
	svc := inmemory.NewSessionService(inmemory.WithSessionEventLimit(1 << 30))
	list := make([]*session.Session, k)
	for i := range list {
		s, err := svc.CreateSession(context.Background(), session.Key{AppName: "app", UserID: "user", SessionID: fmt.Sprint("s", i)}, nil)
		if err != nil {
			return nil, nil, err
		}
		list[i] = s
	}
	return svc, list, nil
}

func trpcAppend(n int) peer.Case {
	user, reply := trpcEvent(model.NewUserMessage(peer.Text), "user"), trpcEvent(model.NewAssistantMessage(peer.Text), "agent")
	return peer.Case{Units: n, Max: 1 + 20_000/n, New: func(k int) (func(int) error, error) {
		svc, fresh, err := trpcSessions(k)
		ctx := context.Background()
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
			if got := len(fresh[i].Events); got != n {
				return peer.WrongSize(got)
			}
			return nil
		}, err
	}}
}

// trpcFilled returns a session with n events.
func trpcFilled(n int) (*inmemory.SessionService, *session.Session, error) {
	svc, list, err := trpcSessions(1)
	if err != nil {
		return nil, nil, err
	}
	for i, m := range trpcMessages(n) {
		author := "user"
		if !peer.IsUser(i) {
			author = "agent"
		}
		if err := svc.AppendEvent(context.Background(), list[0], trpcEvent(m, author)); err != nil {
			return nil, nil, err
		}
	}
	return svc, list[0], nil
}

// trpcDue returns the check whether a summary is due.
func trpcDue(limit int) summary.Checker { return summary.CheckTokenThreshold(limit) }

// trpcCheckSummary checks whether a summary is due.
func trpcCheckSummary(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		_, sess, err := trpcFilled(n)
		due := trpcDue((n + n/8 + 1) * peer.PerMessage)
		return func(int) error {
			if due(sess) {
				return peer.ErrOver
			}
			return nil
		}, err
	}}
}

// trpcCheckTailoring calls the tailoring with a request that fits.
func trpcCheckTailoring(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		n |= 1 // the tailoring removes answers at the end, so the last message is the user's
		s := model.NewHeadOutStrategy(trpcCounter)
		list := trpcMessages(n)
		ctx := context.Background()
		return func(int) error {
			out, err := s.TailorMessages(ctx, list, n*peer.PerMessage)
			if err == nil && len(out) != n {
				err = peer.ErrOver
			}
			return err
		}, nil
	}}
}

// trpcStep does one turn: the user's message, the tailoring, the answer. The turn
// after it continues with the tailored list, which keeps the list short.
func trpcStep(n int, s model.TailoringStrategy) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		list := trpcMessages(n)
		ctx, next := context.Background(), peer.Next(n)
		return func(i int) error {
			list = append(list, model.NewUserMessage(next(2*i)))
			out, err := s.TailorMessages(ctx, list, n*peer.PerMessage)
			if err != nil {
				return err
			}
			if len(out) == 0 || len(out) > n {
				return peer.WrongSize(len(out))
			}
			list = append(out, model.NewAssistantMessage(next(2*i+1)))
			return nil
		}, nil
	}}
}

func trpcTrim(n int, s model.TailoringStrategy) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		list := trpcMessages(n | 1)
		ctx := context.Background()
		return func(int) error {
			out, err := s.TailorMessages(ctx, list, n/2*peer.PerMessage)
			if err == nil && (len(out) > n/2 || len(out) < n/2-2) {
				err = peer.WrongSize(len(out))
			}
			runtime.KeepAlive(out)
			return err
		}, nil
	}}
}

func trpcRead(n int) peer.Case {
	return peer.Case{New: func(int) (func(int) error, error) {
		svc, sess, err := trpcFilled(n)
		if err != nil {
			return nil, err
		}
		ctx := context.Background()
		key := session.Key{AppName: "app", UserID: "user", SessionID: sess.ID}
		return func(int) error {
			got, err := svc.GetSession(ctx, key)
			if err == nil && len(got.Events) != n {
				err = peer.WrongSize(len(got.Events))
			}
			return err
		}, nil
	}}
}
