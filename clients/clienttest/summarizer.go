package clienttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/clients"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// testSummarizer compacts with the client's own summarizer. Only the model of the conversation
// has it in its cache, and gets it again with an instruction; another one gets a prompt.
func testSummarizer(t *testing.T, c Client) {
	for _, tt := range []struct {
		model string
		rides bool
	}{{"", true}, {c.Small, false}} {
		t.Run("model "+tt.model, func(t *testing.T) {
			p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
				return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
			}})
			url := serve(t, p)
			h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: c.New(url, nil, "").Summarizer(tt.model)}})
			for i := range 40 {
				if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Do(t.Context(), c.New(url, nil, "").Send); err != nil {
					t.Fatal(err)
				}
			}
			r, err := h.Compact(t.Context(), "")
			if err != nil || r.Outcome != convo.OutcomeApplied {
				t.Fatal(r, err)
			}
			sum, _ := h.Snapshot().Summary()
			if sum.Text != "The user likes window seats." || sum.Usage.Input == 0 || sum.Model == "" {
				t.Errorf("the summary is %+v, want the text, the usage and the model of the answer", sum)
			}
			noneRefused(t, p)
			asked := p.Requests()[40]
			if n := strings.Count(string(asked.Body), `"role":"user"`); n > 1 != tt.rides {
				t.Errorf("the request for the summary has %d messages of the user; that it holds the whole conversation should be %t: %s", n, tt.rides, excerpt(string(asked.Body)))
			}
			if tt.model != "" && asked.Model != tt.model {
				t.Errorf("the summary was asked of %q, want %q", asked.Model, tt.model)
			}
		})
	}
}

// testOwnTool has a tool among the parameters. It stands before that of the History, and stays
// where a summarizer sends the conversation again, since the cache begins with it.
func testOwnTool(t *testing.T, c Client) {
	for _, tt := range []struct {
		model   string
		handler bool // the History has a tool also
		stays   bool
	}{{"", true, true}, {"", false, true}, {c.Small, true, false}, {c.Small, false, false}} {
		t.Run(fmt.Sprintf("model %s, tool of the History %t", tt.model, tt.handler), func(t *testing.T) {
			asked := 0
			p := provider.New(provider.Options{Answer: func(r provider.Request) provider.Answer {
				if asked++; asked > 1 {
					return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
				}
				return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "own", Arguments: "{}"}}}
			}})
			sender := c.New(serve(t, p), nil, "own")
			h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: sender.Summarizer(tt.model)}})
			if tt.handler {
				if err := h.SetTools(readTool().Tool); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Append(convo.User(strings.Repeat("A long question. ", 400))); err != nil {
				t.Fatal(err)
			}
			reply, err := h.Do(t.Context(), sender.Send)
			if err != nil || len(reply.OpenCalls()) != 1 {
				t.Fatal(reply, err)
			}
			if _, err := h.Append(convo.Result(reply.OpenCalls()[0], strings.Repeat("a result ", 400))); err != nil {
				t.Fatal(err)
			}
			for i := range 40 {
				if _, err := h.Do(t.Context(), sender.Send); err != nil {
					t.Fatal(err)
				}
				if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Do(t.Context(), sender.Send); err != nil {
				t.Fatal(err)
			}
			if r, err := h.Compact(t.Context(), ""); err != nil || r.Outcome != convo.OutcomeApplied {
				t.Fatal(r, err)
			}
			noneRefused(t, p)
			first, last := string(p.Requests()[0].Body), string(p.Requests()[len(p.Requests())-1].Body)
			const name = `"name":%q`
			own, read := strings.Index(first, fmt.Sprintf(name, "own")), strings.Index(first, fmt.Sprintf(name, "read"))
			if own < 0 || read >= 0 != tt.handler || tt.handler && own > read {
				t.Errorf("the tool of the parameters stands at %d and that of the History at %d: %s", own, read, excerpt(first))
			}
			if stays := strings.Contains(last, `"description":"of the parameters"`); stays != tt.stays {
				t.Errorf("the request for the summary has the tool of the parameters: %t, want %t: %s", stays, tt.stays, excerpt(last))
			}
		})
	}
}

// testOwnToolInRun has the model call a tool of the parameters in Run. The call stays open, as
// does that of a tool without a Run; the calls of other tools are answered.
func testOwnToolInRun(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	p.Script(provider.Answer{Blocks: []provider.Block{
		provider.Call{Name: "read", Arguments: "{}"}, provider.Call{Name: "own", Arguments: "{}"}, provider.Call{Name: "none", Arguments: "{}"},
	}})
	send := c.New(serve(t, p), nil, "own").Send
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Read.")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Run finds the call open
		reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{readTool()}})
		if err != nil {
			t.Fatal(err)
		}
		open := reply.OpenCalls()
		if len(open) != 1 || open[0].Name != "own" || len(p.Requests()) != 1 {
			t.Fatalf("after %d requests the open calls are %v, want only that of the tool in the parameters, after 1", len(p.Requests()), open)
		}
		if text := fmt.Sprint(reply.Messages); !strings.Contains(text, `there is no tool "none"`) || strings.Contains(text, `no tool "own"`) {
			t.Errorf("the results are %s", text)
		}
	}
	if _, err := h.AnswerOpenCalls("done by hand"); err != nil {
		t.Fatal(err)
	}
	if reply, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{readTool()}}); err != nil || reply.Text() != "ok" {
		t.Errorf("%v, %v", reply, err)
	}
	noneRefused(t, p)
}

// testSameTool has one tool both in the parameters and in the History. That is an error before
// anything is sent, also for a summary.
func testSameTool(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	url := serve(t, p)
	own := c.New(url, nil, "own")
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: own.Summarizer("")}})
	if err := h.SetTools(convo.Tool{Name: "own", Schema: `{"type":"object"}`}); err != nil {
		t.Fatal(err)
	}
	var wrong *clients.ParamsError
	for i := range 40 {
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 50)))); err != nil {
			t.Fatal(err)
		}
		if reply, err := h.Do(t.Context(), own.Send); !errors.As(err, &wrong) || !strings.Contains(err.Error(), `the tool "own"`) {
			t.Fatalf("%v, %v, want a *clients.ParamsError that names the tool", reply, err)
		}
		if _, err := h.Do(t.Context(), c.New(url, nil, "").Send); err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.Compact(t.Context(), "")
	if !errors.As(errors.Join(err, r.Cause), &wrong) {
		t.Errorf("%v, %v, want a *clients.ParamsError", r, err)
	}
	if n := len(p.Requests()); n != 40 {
		t.Errorf("%d requests were made, want those of the other sender, 40", n)
	}
	noneRefused(t, p)
}
