package clienttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// mostEvents is more than the stream of twoCalls has events, in any format.
const mostEvents = 60

// twoCalls is an answer with a part of each kind.
func twoCalls(signs bool) provider.Answer {
	a := provider.Answer{Blocks: []provider.Block{
		provider.Text("I read both."), provider.Call{Name: "read", Arguments: `{"file":"a"}`}, provider.Call{Name: "read", Arguments: `{"file":"b"}`},
	}}
	if signs {
		a.Blocks = append([]provider.Block{provider.Thinking("which files?")}, a.Blocks...)
	}
	return a
}

// testEachEvent has the connection break after each event of an answer, the application stop it
// at each piece that is shown, and the ctx end there. A broken answer is an error and leaves
// nothing; a stopped answer leaves what the provider takes back. The conversation goes on.
func testEachEvent(t *testing.T, c Client) {
	left := errors.New("the user left")
	for _, way := range []string{"cut", "stopped", "cancelled"} {
		t.Run(way, func(t *testing.T) {
			ended, whole := 0, false
			for n := 1; !whole; n++ {
				if n > mostEvents {
					t.Fatalf("the answer was never whole in %d tries", n)
				}
				p := provider.New(provider.Options{})
				first := twoCalls(c.Signs)
				if way == "cut" {
					first.Fault = &provider.Fault{CutAfter: n}
				}
				p.Script(first)
				url := serve(t, p)
				h := history(t, convo.Options{})
				if err := h.SetTools(readTool().Tool); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Append(convo.User("Read both files.")); err != nil {
					t.Fatal(err)
				}
				before := h.Len()
				ctx, stop := context.WithCancelCause(t.Context())
				shown := 0
				reply, err := h.Do(ctx, c.New(url, func(wire.Delta) {
					if shown++; shown == n && way == "stopped" {
						stop(clients.ErrStop)
					} else if shown == n && way == "cancelled" {
						stop(left)
					}
				}, "").Send)
				stop(nil)
				whole = err == nil && len(reply.OpenCalls()) == 2 && (way == "cut" || shown < n)
				switch {
				case way == "cut" && err == nil && len(reply.OpenCalls()) < 2, way == "stopped" && err != nil:
					t.Errorf("event %d: %v, %v", n, reply, err)
				case err != nil && h.Len() != before:
					t.Errorf("event %d: the answer failed, and %d entries of it are kept", n, h.Len()-before)
				case err != nil:
					ended++
				}
				if h.Len() > before && len(reply.OpenCalls()) == 0 { // the end of a turn
					if _, err := h.Append(convo.User("Go on.")); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := h.Run(t.Context(), c.New(url, nil, "").Send, convo.RunOptions{Tools: []convo.Handler{readTool()}}); err != nil {
					t.Errorf("event %d: the conversation does not go on: %v", n, err)
				}
				for _, r := range p.Refused() {
					t.Errorf("event %d: refused: %s: %s", n, r.Error, excerpt(string(r.Body)))
				}
			}
			if way == "cut" && ended == 0 { // the rest of an answer may have come before ctx ended
				t.Error("no answer failed")
			}
		})
	}
}

// testStopInRun stops an answer after each of its events. Whatever had come by then, the
// answer or the error of Run says that the user has stopped it.
func testStopInRun(t *testing.T, c Client) {
	for n, whole := 1, false; !whole; n++ {
		if n > mostEvents {
			t.Fatalf("the answer was never whole in %d tries", n)
		}
		p := provider.New(provider.Options{})
		p.Script(twoCalls(c.Signs))
		ctx, stop := context.WithCancelCause(t.Context())
		var events atomic.Int64 // of all answers
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.ServeHTTP(&stopsAfter{w, int64(n), &events, func() { stop(clients.ErrStop) }, r.Context().Done()}, r)
		}))
		h := history(t, convo.Options{})
		if _, err := h.Append(convo.User("Read both files.")); err != nil {
			t.Fatal(err)
		}
		reply, err := h.Run(ctx, c.New(url, nil, "").Send, convo.RunOptions{Tools: []convo.Handler{readTool()}})
		stop(nil)
		whole = err == nil && reply.Text() == "ok"
		var fault *convo.AnswerError
		switch {
		case whole:
		case err == nil && reply.Stop != convo.StopCancelled:
			t.Errorf("event %d: the answer is %v, want the stop %v", n, reply, convo.StopCancelled)
		case err != nil && (!errors.Is(err, clients.ErrStop) || !strings.Contains(err.Error(), "the user stopped the answer")):
			t.Errorf("event %d: the error is %v, want one that matches ErrStop and says so", n, err)
		case errors.As(err, &fault) && fault.Stop != convo.StopCancelled:
			t.Errorf("event %d: the stop of %v is %v, want %v", n, err, fault.Stop, convo.StopCancelled)
		}
	}
}

// A stopsAfter stops an answer after some events, and waits until the client has gone.
type stopsAfter struct {
	http.ResponseWriter
	most   int64
	events *atomic.Int64
	stop   func()
	gone   <-chan struct{}
}

func (s *stopsAfter) Flush() {
	s.ResponseWriter.(http.Flusher).Flush()
	if s.events.Add(1) == s.most {
		time.Sleep(2 * time.Millisecond) // so that the client reads what came
		s.stop()
		<-s.gone
	}
}

// testSeveralHistories makes the requests of several Histories at once by one sender. Each has
// its own conversation.
func testSeveralHistories(t *testing.T, c Client) {
	p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
		_, name, _ := bytes.Cut(r.Body, []byte("I am guest "))
		return provider.Answer{Blocks: []provider.Block{provider.Text(fmt.Sprintf("Hello, guest %c.", name[0]))}}
	}})
	sender := c.New(serve(t, p), nil, "own")
	var wg sync.WaitGroup
	for guest := range 4 {
		h := history(t, convo.Options{})
		wg.Go(func() {
			for turn := range 10 {
				if _, err := h.Append(convo.User(fmt.Sprintf("I am guest %d, and this is question %d.", guest, turn))); err != nil {
					t.Error(err)
					return
				}
				reply, err := h.Do(t.Context(), sender.Send)
				if want := fmt.Sprintf("Hello, guest %d.", guest); err != nil || reply.Text() != want {
					t.Errorf("guest %d, turn %d: %q, %v, want %q", guest, turn, reply.Text(), err, want)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, r := range p.Requests() {
		others := 0
		for guest := range 4 {
			if strings.Contains(string(r.Body), fmt.Sprintf("I am guest %d", guest)) {
				others++
			}
		}
		if others != 1 {
			t.Errorf("a request holds the questions of %d guests: %s", others, excerpt(string(r.Body)))
		}
	}
}
