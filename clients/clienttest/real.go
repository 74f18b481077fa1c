package clienttest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// A Service is the real service of an SDK.
type Service struct {
	Key, Base string // the variables of the environment with its key and its address
	Path      string // of the address, such as "/v1"

	// Send returns a Send of a client that reads the environment, for a model; "" is one
	// that the service has.
	Send func(model string) convo.Send
}

// Real talks to the service whose key is in the environment, and is skipped without one. The
// variable CONVO_MODEL names another model. Then it does the same with a server of package
// provider, whose address it puts into the environment.
func Real(t *testing.T, s Service) {
	t.Run("service", func(t *testing.T) {
		if os.Getenv(s.Key) == "" {
			t.Skipf("no %s in the environment; set it, and %s for another address, to talk to the real service", s.Key, s.Base)
		}
		talk(t, s.Send(os.Getenv("CONVO_MODEL")))
	})
	t.Run("stand-in", func(t *testing.T) {
		asked := 0
		p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
			if asked++; asked%2 == 1 {
				return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "secret_word", Arguments: `{}`}}}
			}
			return provider.Answer{Blocks: []provider.Block{provider.Text("The word is plum.")}}
		}})
		t.Setenv(s.Key, "none")
		t.Setenv(s.Base, serve(t, p)+s.Path)
		talk(t, s.Send(""))
		noneRefused(t, p)
	})
}

// talk has a short conversation with a tool, a compaction in the middle, and a question about
// what was pinned.
func talk(t *testing.T, send convo.Send) {
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, PinFirstUser: true})
	if err := h.SetSystem(convo.System("You have a tool that tells the secret word. Call it whenever you are asked for the word, and answer in one sentence.")); err != nil {
		t.Fatal(err)
	}
	called := 0
	tools := []convo.Handler{{
		Tool: convo.Tool{Name: "secret_word", Description: "Tells the secret word.", Schema: `{"type":"object","properties":{}}`},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			called++
			return []convo.Part{convo.Text("plum")}, nil
		},
	}}
	for i := range 20 { // so that there is something to compact
		note := fmt.Sprintf("Note %d: the train of the line %d leaves at %d past the hour, from platform %d.", i, i%4, 3*i, i%7)
		if _, err := h.Append(convo.User(note), convo.Assistant("Noted.")); err != nil {
			t.Fatal(err)
		}
	}
	for i, question := range []string{"What is the secret word? Ask the tool.", "Once more, please: ask the tool for the word.", "And again: ask the tool for the word."} {
		if i == 2 {
			if r, err := h.Compact(t.Context(), ""); err != nil || r.Outcome != convo.OutcomeApplied {
				t.Error(r, err)
			}
		}
		if _, err := h.Append(convo.User(question)); err != nil {
			t.Fatal(err)
		}
		reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: tools})
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if !strings.Contains(strings.ToLower(reply.Text()), "plum") || reply.Usage.Input == 0 {
			t.Errorf("%s: %v, usage %+v", question, reply, reply.Usage)
		}
		t.Log(fmt.Sprint(question, " ", reply.Text()), reply.Usage.Input, "tokens")
	}
	if called < 2 {
		t.Errorf("the tool was called %d times", called)
	}
}
