package transport_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/convotest/provider"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/transport"
)

// A switched transport may be replaced, as by a restart of the proxy.
type switched struct {
	mu  sync.RWMutex // held by requests until their answers begin
	now *transport.Transport
}

func (s *switched) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.now.RoundTrip(r)
}

func (s *switched) restart(now *transport.Transport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.now
	s.now = now
	return was.Close()
}

var owner = regexp.MustCompile(`owner-\d+-`)

// Many conversations at once, with forks, aborts, failures of the provider and restarts: nothing is
// mixed, nothing is refused, and no goroutine is left.
func TestTransport_Day(t *testing.T) {
	lives, steps := long.Or(1, 5), long.Or(12, 50)
	before := runtime.NumGoroutine()
	s, url := server(t, provider.Options{Window: 8000, Answer: func(r provider.Request) provider.Answer {
		seen := owner.FindAll(r.Body, -1)
		name := string(seen[len(seen)-1])
		blocks := []provider.Block{provider.Text("reading for " + name), provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"path":"%s/f%d"}`, name, len(r.Body))}}
		if len(r.Body)%3 == 0 {
			blocks = append(blocks, provider.Call{Name: "read", Arguments: fmt.Sprintf(`{"path":"%s/g"}`, name)})
		}
		return provider.Answer{Blocks: blocks}
	}})
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	dir := transport.Dir(t.TempDir())
	start := func() *transport.Transport {
		return transport.New(transport.Options{Base: base, Store: dir, History: smallHistory, Logger: logger(t)})
	}
	tr := switched{now: start()}
	client := &http.Client{Transport: &tr}
	result := func(c called) string {
		name, _, _ := strings.Cut(c.path, "/")
		return strings.Repeat(name+" some text of a file\n", 40)
	}
	var all sync.WaitGroup
	live := func(i int) {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		p := &program{t: t, client: client, base: url, format: formats[i%len(formats)], model: "gemini-2.5-pro", system: "You are an agent."}
		p.user("Begin, all of you.") // many begin alike
		if p.format != provider.FormatGemini {
			p.user(fmt.Sprintf("owner-%d- reads.", i))
		} else {
			p.list = nil
			p.user(fmt.Sprintf("Begin, all of you. owner-%d- reads.", i))
		}
		branches := []*program{p}
		for range steps {
			q := branches[r.IntN(len(branches))]
			q.stream = r.IntN(2) == 0
			switch r.IntN(20) {
			case 0:
				if len(branches) < 3 && len(q.list) > 4 {
					own := *q
					own.list = slices.Clone(q.list)
					own.user(fmt.Sprintf("owner-%d- another branch", i))
					branches = append(branches, &own)
				}
			case 1: // the program goes away
				abort(t, q, r)
				continue
			case 2:
				s.Script(provider.Answer{Fault: &provider.Fault{Status: []int{429, 529, 500}[r.IntN(3)]}}) // for anyone
			}
			calls, err := q.step()
			if err != nil {
				if !assert.NotContains(t, err.Error(), "status 400", "conversation %d", i) {
					return
				}
				continue
			}
			q.results(calls, result)
		}
	}
	for i := range 50 {
		all.Go(func() {
			for n := range lives {
				live(50*n + i)
			}
		})
	}
	stop := make(chan struct{})
	var restarts sync.WaitGroup
	restarts.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
				assert.NoError(t, tr.restart(start()))
			}
		}
	})
	all.Wait()
	close(stop)
	restarts.Wait()
	require.NoError(t, tr.now.Close())
	require.Empty(t, refusedFor(s))
	for _, r := range s.Requests() {
		names := owner.FindAllString(string(r.Body), -1)
		slices.Sort(names)
		require.LessOrEqual(t, len(slices.Compact(names)), 1, "two conversations in one request")
	}
	base.CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+3 }, 10*time.Second, 10*time.Millisecond, "goroutines are left")
}

// abort sends the list of a program, which goes away before it has the answer, or reads only some of it.
func abort(t *testing.T, p *program, r *rand.Rand) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base+p.path(), bytes.NewReader(p.body()))
	if !assert.NoError(t, err) {
		return
	}
	if r.IntN(2) == 0 {
		cancel()
	}
	if resp, err := p.client.Do(req); err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, int64(r.IntN(200)))
		cancel()
		_ = resp.Body.Close()
	}
}

// refusedFor returns what the provider said to requests that it refused.
func refusedFor(s *provider.Server) (errs []string) {
	for _, r := range s.Refused() {
		errs = append(errs, r.Format+": "+r.Error)
	}
	return errs
}
