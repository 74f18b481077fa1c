package convotest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/stores"
)

// A Model answers the requests of a test with what the test has written down. Its Send is
// for [convo.History.Do] and [convo.History.Run]:
//
//	m := convotest.NewModel(t,
//		convotest.Step{Sees: []string{"user: Weather?"}, Calls: []convo.ToolCall{{ID: "1", Name: "weather", Arguments: "{}"}}},
//		convotest.Step{Sees: []string{"tool: rain"}, Says: "It rains."},
//	)
//	reply, err := h.Run(ctx, m.Send, convo.RunOptions{Tools: tools})
//
// The test fails if a request does not have what its step expects, if there are more
// requests than steps, and if steps are left when it ends. A Model is safe for concurrent
// use, and works in a testing/synctest bubble.
type Model struct {
	t testing.TB

	mu       sync.Mutex
	steps    []Step
	requests []*convo.Snapshot
}

// A Step is one answer of a [Model], and what the request for it is expected to have.
type Step struct {
	// Sees are the messages of the request after the last one of the assistant, each as its
	// role, a colon and its text, or that of its results, such as "user: Weather?". Nil:
	// they may be any.
	Sees []string

	// The answer is an assistant message with Says and Calls, and Stop if that is not
	// StopDone. If Reply is not nil, it is the answer, and they are not used.
	Says  string
	Calls []convo.ToolCall
	Stop  convo.Stop
	Reply *convo.Reply

	// Usage is that of the answer, unless Reply has one. If Reply has only a CacheTTL, that one
	// stays.
	Usage convo.Usage

	// Err is returned by Send, along with the answer if there is one.
	Err error

	// Delay is how long the answer takes. If ctx ends first, its error is returned.
	Delay time.Duration
}

// ErrScript is returned by Send when no step is left.
var ErrScript = errors.New("convotest: the model's script has no step for this request; add one")

// NewModel returns a Model that answers one request with each step, in order. It fails t
// when t ends if steps are left.
func NewModel(t testing.TB, steps ...Step) *Model {
	t.Helper()
	m := &Model{t: t, steps: slices.Clone(steps)}
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if n := len(m.steps); n > 0 && !t.Failed() {
			t.Errorf("convotest: %d of %d steps of the model were not asked for; the next is %s", n, n+len(m.requests), m.steps[0])
		}
	})
	return m
}

// Send answers a request with the next step.
func (m *Model) Send(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
	m.t.Helper()
	step, n, ok := m.next(s)
	if !ok {
		m.t.Errorf("convotest: request %d has no step; it ends with\n%s", n, indent("  ", sees(s)))
		return convo.Reply{}, ErrScript
	}
	if step.Sees != nil {
		if got := sees(s); !slices.Equal(got, step.Sees) {
			m.t.Errorf("convotest: request %d ends with other messages than step %d expects (- expected, + in the request):\n%s", n, n, difference(step.Sees, got))
		}
	}
	if step.Delay > 0 {
		timer := time.NewTimer(step.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return convo.Reply{}, stores.Ended(ctx)
		}
	}
	return step.reply(), step.Err
}

// next takes the next step and records the request. n is the number of the request.
func (m *Model) next(s *convo.Snapshot) (step Step, n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, s)
	if len(m.steps) == 0 {
		return Step{}, len(m.requests), false
	}
	step, m.steps = m.steps[0], m.steps[1:]
	return step, len(m.requests), true
}

// String returns the number of steps that are left, without their texts.
func (m *Model) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("model(%d requests, %d steps left)", len(m.requests), len(m.steps))
}

// Requests returns the snapshots that Send was called with, in order.
func (m *Model) Requests() []*convo.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// reply returns the answer.
func (s *Step) reply() convo.Reply {
	var r convo.Reply
	switch {
	case s.Reply != nil:
		r = *s.Reply
		r.Messages = slices.Clone(r.Messages)
	case s.Says != "" || len(s.Calls) > 0:
		r = convo.Reply{Messages: []convo.Message{convo.Assistant(s.Says, s.Calls...)}, Stop: s.Stop}
		if r.Stop == convo.StopDone && len(s.Calls) > 0 {
			r.Stop = convo.StopToolCall
		}
	default:
		r.Stop = s.Stop
	}
	if ttl := r.Usage.CacheTTL; r.Usage == (convo.Usage{CacheTTL: ttl}) {
		r.Usage = s.Usage
		r.Usage.CacheTTL = cmp.Or(ttl, s.Usage.CacheTTL)
	}
	return r
}

// String returns the answer, in short.
func (s Step) String() string {
	if s.Err != nil {
		return fmt.Sprintf("an error, %.200q", s.Err.Error())
	}
	return fmt.Sprint(s.reply().Messages)
}

// sees returns the messages of a request after the last one of the assistant, as lines.
func sees(s *convo.Snapshot) (lines []string) {
	msgs := s.Messages()
	first := 0
	for i := range msgs {
		if msgs[i].Role == convo.RoleAssistant {
			first = i + 1
		}
	}
	for _, m := range msgs[first:] {
		lines = append(lines, string(m.Role)+": "+m.Text())
	}
	return lines
}

// difference shows which lines were expected and which are there, in the order of both.
func difference(want, got []string) string {
	same := make([][]int, len(want)+1) // lengths of the longest common lists of what follows
	for i := range same {
		same[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for k := len(got) - 1; k >= 0; k-- {
			if same[i][k] = max(same[i+1][k], same[i][k+1]); want[i] == got[k] {
				same[i][k] = same[i+1][k+1] + 1
			}
		}
	}
	var out []string
	for i, k := 0, 0; i < len(want) || k < len(got); {
		switch {
		case i < len(want) && k < len(got) && want[i] == got[k]:
			out = append(out, indent("    ", want[i:i+1]))
			i, k = i+1, k+1
		case k == len(got) || i < len(want) && same[i+1][k] >= same[i][k+1]:
			out = append(out, indent("  - ", want[i:i+1]))
			i++
		default:
			out = append(out, indent("  + ", got[k:k+1]))
			k++
		}
	}
	return strings.Join(out, "\n")
}

// indent puts a prefix before each line.
func indent(prefix string, lines []string) string {
	return prefix + strings.Join(strings.Split(strings.Join(lines, "\n"), "\n"), "\n"+prefix)
}
