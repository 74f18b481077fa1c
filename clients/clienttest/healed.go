package clienttest

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
)

// testHealed runs a tool that returns an image which no provider reads, between others. A client
// whose provider refuses it goes on without it, and with everything else.
func testHealed(t *testing.T, c Client) {
	asked := 0
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		if asked++; asked == 1 {
			return provider.Answer{Blocks: []provider.Block{provider.Call{Name: "look", Arguments: `{"n":1}`}}}
		}
		return provider.Answer{Blocks: []provider.Block{provider.Text("I have seen it.")}}
	}})
	good := convo.Media{MIME: "image/gif", Data: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"}
	bad := convo.Media{MIME: "image/png", Data: base64.StdEncoding.EncodeToString([]byte("this is no image, but the page of an error"))}
	h := history(t, convo.Options{})
	if _, err := h.Append(convo.User("Look at these.", good)); err != nil {
		t.Fatal(err)
	}
	look := convo.Handler{
		Tool: convo.Tool{Name: "look", Description: "takes a picture", Schema: `{"type":"object","properties":{"n":{"type":"integer"}}}`},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("two pictures"), bad, good}, nil
		},
	}
	for step, err := range h.Steps(t.Context(), c.New(serve(t, p), nil, "").Send, convo.RunOptions{Tools: []convo.Handler{look}}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range step.Reports {
			if len(r.Refused) != 1 || r.Refused[0].Part != 0 || r.Refused[0].Inside != 1 {
				t.Errorf("cleared was %v", r.Refused)
			}
		}
	}
	refused, last := len(p.Refused()), string(p.Requests()[len(p.Requests())-1].Body)
	if refused > 1 || strings.Contains(last, bad.Data) == (refused == 1) || strings.Count(last, good.Data) != 2 {
		t.Errorf("%d refusals, and the last request is %.3000s", refused, last)
	}
	t.Logf("%d refused", refused)
}
