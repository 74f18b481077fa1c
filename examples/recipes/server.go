// Package recipes has the programs of docs/recipes.md.
package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/wire"
)

// A Server answers chats. Its fields are set before Handler is called, once.
type Server struct {
	Send    func(show func(wire.Delta)) convo.Send // such as (&convoanthropic.Sender{Client: client, Params: params, Show: show}).Send
	Options convo.Options
	Tools   []convo.Handler

	mu    sync.Mutex
	chats map[string]*chat
}

type chat struct {
	h    *convo.History
	turn sync.Mutex              // held while a question is answered
	stop context.CancelCauseFunc // of the newest request, guarded by Server.mu
}

// An input is the body of a request. ID is that of a question.
type input struct {
	ID   convo.ID
	Text string
}

// An event is sent to the browser as JSON.
type event struct {
	Question convo.ID `json:"question,omitempty"` // the ID for edit and regenerate
	Text     string   `json:"text,omitempty"`     // the next piece of the answer
	Restart  bool     `json:"restart,omitempty"`  // the answer begins again: remove the pieces
	Error    string   `json:"error,omitempty"`
	Done     bool     `json:"done,omitempty"`
}

// Handler returns the handler of all requests. Call it once.
func (s *Server) Handler() http.Handler {
	s.chats = map[string]*chat{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{chat}/message", s.answer(func(h *convo.History, in input) (convo.ID, error) {
		return h.Append(convo.User(in.Text))
	}))
	mux.HandleFunc("POST /{chat}/edit", s.answer(func(h *convo.History, in input) (convo.ID, error) {
		if in.Text == "" {
			return 0, errors.New("no text")
		}
		if err := h.RewindBefore(in.ID); err != nil {
			return 0, err
		}
		return h.Append(convo.User(in.Text))
	}))
	mux.HandleFunc("POST /{chat}/regenerate", s.answer(func(h *convo.History, in input) (convo.ID, error) {
		return in.ID, h.RewindTo(in.ID)
	}))
	mux.HandleFunc("POST /{chat}/stop", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = s.chat(r.PathValue("chat"), nil)
	})
	return mux
}

// answer returns a handler that puts a question with ask, and streams the answer. An answer
// that the chat still streams is stopped, and what has come of it is kept.
func (s *Server) answer(ask func(*convo.History, input) (convo.ID, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithCancelCause(context.WithoutCancel(r.Context()))
		context.AfterFunc(r.Context(), func() { stop(clients.ErrStop) }) // a closed tab is a stop
		var in input
		err := json.NewDecoder(r.Body).Decode(&in)
		c, err2 := s.chat(r.PathValue("chat"), stop)
		if err := errors.Join(err, err2); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.turn.Lock()
		defer c.turn.Unlock()
		id, err := ask(c.h, in)
		if err != nil {
			code := http.StatusBadRequest
			if errors.Is(err, convo.ErrStale) {
				code = http.StatusConflict // another tab took the question back
			}
			http.Error(w, err.Error(), code)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(e event) {
			data, _ := json.Marshal(e)
			fmt.Fprintf(w, "data: %s\n\n", data)
			_ = http.NewResponseController(w).Flush()
		}
		send(event{Question: id})
		show := func(d wire.Delta) {
			if d.Text != "" || d.Restart {
				send(event{Text: d.Text, Restart: d.Restart})
			}
		}
		_, err = c.h.Run(ctx, s.Send(show), convo.RunOptions{Tools: s.Tools})
		if err != nil && !errors.Is(context.Cause(ctx), clients.ErrStop) {
			send(event{Error: err.Error()}) // the question stays: regenerate asks again
			return
		}
		send(event{Done: true})
	}
}

// chat returns the chat with the name. It stops the answer that the chat streams, and stop will
// stop the next one.
func (s *Server) chat(name string, stop context.CancelCauseFunc) (*chat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[name]
	if c == nil {
		h, err := convo.New(&s.Options)
		if err != nil {
			return nil, err
		}
		c = &chat{h: h}
		s.chats[name] = c
	}
	if c.stop != nil {
		c.stop(clients.ErrStop)
	}
	c.stop = stop
	return c, nil
}
