package clienttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/wire"
)

// testCacheMarks has cache marks among the parameters, in the messages and by the format. The
// provider never gets too many, nor in an order that it refuses.
func testCacheMarks(t *testing.T, c Client) {
	if c.Marked == nil {
		t.Skip("the parameters of the SDK have no cache marks")
	}
	const short, long = 5 * time.Minute, time.Hour
	for _, params := range [][]time.Duration{nil, {short}, {long}, {long, short}, {short, short}, {short, short, short, short}, {long, long, long, long}} {
		for _, own := range [][]time.Duration{nil, {short}, {long}, {short, long}, {long, long, short, short}} {
			t.Run(fmt.Sprint(params, own), func(t *testing.T) {
				p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
					return provider.Answer{Blocks: []provider.Block{provider.Text("The user likes window seats.")}}
				}})
				sender := c.Marked(serve(t, p), params)
				h := history(t, convo.Options{Limits: convo.Limits{Window: 100_000}, Strategy: convo.Summarize{With: sender.Summarizer("")}})
				if err := h.SetSystem(convo.Message{Role: convo.RoleSystem, Parts: []convo.Part{convo.Text(system), wire.CacheMark(long)}}); err != nil {
					t.Fatal(err)
				}
				for turn := range 8 {
					q := convo.User(fmt.Sprint("Question ", turn, "."))
					if turn < len(own) {
						q.Parts = append(q.Parts, wire.CacheMark(own[turn]))
					}
					if _, err := h.Append(q); err != nil {
						t.Fatal(err)
					}
					if _, err := h.Do(t.Context(), sender.Send); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := h.Compact(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				noneRefused(t, p)
			})
		}
	}
}

// testCacheTTL checks how long the provider keeps its cache by the replies: as it documents, or
// as a mark asks for.
func testCacheTTL(t *testing.T, c Client) {
	do := func(t *testing.T, q convo.Message, want time.Duration) {
		h := history(t, convo.Options{})
		if _, err := h.Append(q); err != nil {
			t.Fatal(err)
		}
		reply, err := h.Do(t.Context(), c.New(serve(t, provider.New(provider.Options{})), nil, "").Send)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Usage.CacheTTL != want {
			t.Errorf("CacheTTL is %v, want %v", reply.Usage.CacheTTL, want)
		}
	}
	do(t, convo.User("q"), c.CacheTTL)
	if c.Marked != nil {
		do(t, convo.User("q", wire.CacheMark(time.Hour)), time.Hour)
	}
}
