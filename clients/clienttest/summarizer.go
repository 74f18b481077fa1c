package clienttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
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
