package clienttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// testExtra gives parameters as fields for which the SDK has no types. They are those of its
// own types.
func testExtra(t *testing.T, c Client) {
	if c.Extra == nil {
		t.Skip("the SDK has types for all fields")
	}
	for _, override := range []bool{false, true} {
		name := map[bool]string{false: "fields", true: "override"}[override]
		extra, r := c, Record(t)
		again := func(url string, s Sender) Sender { // with the fields that s sends
			_ = Do(t, s.Send, convo.User("q"))
			var fields map[string]any
			if err := json.Unmarshal([]byte(r.Body()), &fields); err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(fields, func(name string, _ any) bool { return name == "messages" || name == "input" || name == "stream" })
			return c.Extra(url, fields, override)
		}
		extra.New = func(url string, _ func(wire.Delta), own string) Sender { return again(url, c.New(r.URL, nil, own)) }
		t.Run("tool, "+name, func(t *testing.T) { testOwnToolInRun(t, extra) })
		t.Run("same tool, "+name, func(t *testing.T) { testSameTool(t, extra) })
		if c.Marked != nil {
			extra.Marked = func(url string, lifetimes []time.Duration) Sender { return again(url, c.Marked(r.URL, lifetimes)) }
			t.Run("marks, "+name, func(t *testing.T) { testCacheMarks(t, extra) })
		}
		t.Run("model, "+name, func(t *testing.T) { testExtraModel(t, c, override) })
	}
}

// testExtraModel names a model in a field for which the SDK has no type. It is the model of
// the parameters, and that of the History takes its place.
func testExtraModel(t *testing.T, c Client, override bool) {
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
	}})
	url := serve(t, p)
	if err := Do(t, c.New(url, nil, "").Send, convo.User("q")); err != nil {
		t.Fatal(err)
	}
	usual := p.Requests()[0].Model
	fields := map[string]any{"model": c.Small, "max_tokens": 500, "stream": false}
	if override && p.Requests()[0].Format == provider.FormatAnthropic {
		fields["cache_control"] = map[string]any{"type": "ephemeral"}
	}
	sender := c.Extra(url, fields, override)
	h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: sender.Summarizer("")}})
	for i, model := range []string{"", usual, "", usual, usual} {
		if err := h.SetModel(model, convo.Limits{Window: 100_000}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Append(convo.User(fmt.Sprint("Question ", i, strings.Repeat(" word", 1000)))); err != nil {
			t.Fatal(err)
		}
		reply, err := h.Do(t.Context(), sender.Send)
		if err != nil || reply.Usage.Input == 0 {
			t.Fatalf("%v, %v, want an answer with its usage", reply, err)
		}
		want := c.Small
		if model != "" {
			want = model
		}
		if got := p.Requests()[i+1].Model; got != want {
			t.Errorf("request %d is for the model %q, want %q", i, got, want)
		}
	}
	if r, err := h.Compact(t.Context(), ""); err != nil || r.Outcome != convo.OutcomeApplied {
		t.Fatal(r, err)
	}
	if got := p.Requests()[6].Model; got != c.Small {
		t.Errorf("the summary is by the model %q, want %q", got, c.Small)
	}
	noneRefused(t, p)
}
