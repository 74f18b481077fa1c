package transport_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/transport"
)

// A conversation takes at most twice the bytes of its newest request and 1.3 kB for each message,
// with and without compactions, and no body of a request stays.
func TestTransport_Memory(t *testing.T) {
	for _, window := range []int{0, 50_000} {
		for _, format := range formats {
			t.Run(fmt.Sprint(format, window), func(t *testing.T) {
				c := &recorder{}
				tr := transport.New(transport.Options{Base: c, History: func(transport.Conversation) *convo.Options {
					return &convo.Options{Limits: convo.Limits{Window: window}}
				}})
				p := newProgram(t, &http.Client{Transport: tr}, "https://provider", format)
				const steps = 500
				before := heap()
				for i := range steps {
					appendStep(p, i)
					if i%50 == 49 {
						post(t, tr, p.path(), p.body())
					}
				}
				size := len(p.body())
				p.list, c.body = nil, nil
				used := heap() - before
				t.Logf("%d bytes for a request of %d", used, size)
				require.Less(t, used, 2*size+1300*2*steps)
				require.Len(t, tr.Conversations(), 1)
			})
		}
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
