package clienttest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/meter"
)

// testEncodes makes requests of conversations of several lengths in turn. Each but the first
// encodes only what is new, however long its conversation is.
func testEncodes(t *testing.T, c Client) {
	const size = 100 // bytes of a message
	text := strings.Repeat("0123456789", size/10)
	p := provider.New(provider.Options{Answer: func(provider.Request) provider.Answer {
		return provider.Answer{Blocks: []provider.Block{provider.Text(text)}}
	}})
	sender := c.New(serve(t, p), nil, "")
	var list []*convo.History
	for _, n := range []int{200, 1000} {
		h := history(t, convo.Options{})
		for range n / 2 {
			if _, err := h.Append(convo.User(text), convo.Assistant(text)); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, h)
	}
	for turn := range 3 {
		for _, h := range list {
			if _, err := h.Append(convo.User(text)); err != nil {
				t.Fatal(err)
			}
			before := meter.Encoded.Load()
			if _, err := h.Do(t.Context(), sender.Send); err != nil {
				t.Fatal(err)
			}
			encoded, all := int(meter.Encoded.Load()-before), (h.Len()-2)*size+len(system)
			if turn == 0 && encoded != all || turn > 0 && encoded > 4*size {
				t.Errorf("request %d of a conversation of %d messages encodes %d bytes", turn, h.Len(), encoded)
			}
		}
	}
}

// testAtOnce makes requests of one conversation at the same time. Each has the bytes that it has
// alone.
func testAtOnce(t *testing.T, c Client) {
	p := provider.New(provider.Options{})
	sender := c.New(serve(t, p), nil, "")
	h := history(t, convo.Options{})
	var at []*convo.Snapshot
	for i := range 20 {
		if _, err := h.Append(convo.User(fmt.Sprint("question ", i))); err != nil {
			t.Fatal(err)
		}
		at = append(at, h.Snapshot())
		if _, err := h.Append(convo.Assistant(fmt.Sprint("answer ", i))); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range at {
				if _, err := sender.Send(t.Context(), at[(7*i+n)%len(at)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	bodies := map[string]bool{}
	for _, r := range p.Requests() {
		bodies[string(r.Body)] = true
	}
	if len(p.Requests()) != 4*len(at) || len(bodies) != len(at) {
		t.Errorf("%d requests have %d bodies, want %d", len(p.Requests()), len(bodies), len(at))
	}
}
