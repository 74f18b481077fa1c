package transport_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/transport"
)

// A faultyStore does what its functions do.
type faultyStore struct {
	load, save func(ctx context.Context) error
}

func (s faultyStore) Load(ctx context.Context, _ string) ([]byte, error) { return nil, s.load(ctx) }

func (s faultyStore) Save(ctx context.Context, _ string, _ []byte) error { return s.save(ctx) }

// Whatever a Store does, requests go out, made smaller, and the conversation can be forgotten.
func TestTransport_FaultyStore(t *testing.T) {
	fine := func(context.Context) error { return nil }
	faults := map[string]func(ctx context.Context, end <-chan struct{}) error{
		"fails":                func(context.Context, <-chan struct{}) error { return errors.New("no disk") },
		"panics":               func(context.Context, <-chan struct{}) error { panic("no disk") },
		"waits for ctx":        func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"waits and forgets it": func(_ context.Context, end <-chan struct{}) error { <-end; return nil },
	}
	for name, fault := range faults {
		for _, method := range []string{"Load", "Save"} {
			t.Run(method+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					end := make(chan struct{})
					defer close(end)
					bad := func(ctx context.Context) error { return fault(ctx, end) }
					s := faultyStore{bad, fine}
					if method == "Save" {
						s = faultyStore{fine, bad}
					}
					c := &recorder{}
					tr := transport.New(transport.Options{Base: c, Store: s, Most: 1, History: smallHistory})
					for _, format := range formats {
						p := longProgram(t, format)
						post(t, tr, p.path(), p.body())
						require.Less(t, len(c.body), len(p.body()))
						require.Len(t, tr.Conversations(), 1)
					}
				})
			})
		}
	}
}

// What one conversation stores does not remove what is stored of others that begin alike.
func TestTransport_StoreTogether(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			c, dir := &recorder{}, transport.Dir(t.TempDir())
			first := small(t, transport.Options{Base: c, Store: dir})
			var programs []*program
			var sent [][]byte
			for i := range 3 {
				p := longProgram(t, format)
				p.user(fmt.Sprint("branch ", i))
				for k := range 20 {
					appendStep(p, k)
				}
				post(t, first, p.path(), p.body())
				programs, sent = append(programs, p), append(sent, c.body)
			}
			for i, p := range programs { // one after the other, each after a restart
				appendStep(p, 100)
				tr := small(t, transport.Options{Base: c, Store: dir})
				post(t, tr, p.path(), p.body())
				require.Greater(t, common(c.body, sent[i]), len(sent[i])/2, "program %d begins with other bytes than before", i)
				for k := range 30 { // something else is decided
					appendStep(p, 200+k)
				}
				post(t, tr, p.path(), p.body())
			}
		})
	}
}
