package convotest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

// A fakeT is a test that fails without ending this one.
type fakeT struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (t *fakeT) Helper()          {}
func (t *fakeT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *fakeT) Failed() bool     { t.mu.Lock(); defer t.mu.Unlock(); return len(t.errors) > 0 }
func (t *fakeT) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

// end ends the test and returns how it has failed.
func (t *fakeT) end() string {
	for _, f := range t.cleanups {
		f()
	}
	return strings.Join(t.errors, "\n")
}

func asked(t *testing.T, text string) *convo.History {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = h.Append(convo.User(text))
	require.NoError(t, err)
	return h
}

// A Model answers with its steps, and records the requests.
func TestModel(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "weather", Arguments: "{}"}
	fail := errors.New("503")
	m := convotest.NewModel(t,
		convotest.Step{Err: fail},
		convotest.Step{Sees: []string{"user: Weather?"}, Calls: []convo.ToolCall{call}, Usage: convo.Usage{Input: 9, Output: 2}},
		convotest.Step{Sees: []string{"tool: rain"}, Says: "It rains.", Stop: convo.StopLength},
		convotest.Step{Reply: &convo.Reply{Messages: []convo.Message{convo.Assistant("Bye.")}}},
	)
	h := asked(t, "Weather?")
	_, err := h.Do(t.Context(), m.Send)
	require.ErrorIs(t, err, fail)
	reply, err := h.Do(t.Context(), m.Send)
	require.NoError(t, err)
	assert.Equal(t, []convo.ToolCall{call}, reply.OpenCalls())
	assert.Equal(t, convo.StopToolCall, reply.Stop)
	assert.Equal(t, 9, reply.Usage.Input)
	_, err = h.Append(convo.Result(call, "rain"))
	require.NoError(t, err)
	reply, err = h.Do(t.Context(), m.Send)
	require.NoError(t, err)
	assert.Equal(t, "It rains.", reply.Text())
	assert.Equal(t, convo.StopLength, reply.Stop)
	_, err = h.Append(convo.User("Bye"))
	require.NoError(t, err)
	reply, err = h.Do(t.Context(), m.Send)
	require.NoError(t, err)
	assert.Equal(t, "Bye.", reply.Text())
	require.Len(t, m.Requests(), 4)
	assert.Equal(t, 5, m.Requests()[3].Len())
}

// The usage of a step is that of its Reply, and a lifetime of the cache alone is none.
func TestModel_Usage(t *testing.T) {
	told, step := convo.Usage{Input: 9, CacheTTL: time.Hour}, convo.Usage{Input: 5, CacheTTL: time.Minute}
	for name, tt := range map[string]struct{ reply, want convo.Usage }{
		"of the step":   {convo.Usage{}, step},
		"of the Reply":  {told, told},
		"only a time":   {convo.Usage{CacheTTL: time.Hour}, convo.Usage{Input: 5, CacheTTL: time.Hour}},
		"only a figure": {convo.Usage{Output: 1}, convo.Usage{Output: 1}},
	} {
		m := convotest.NewModel(t, convotest.Step{Reply: &convo.Reply{Usage: tt.reply}, Usage: step})
		reply, err := m.Send(t.Context(), convo.NewSnapshot(nil))
		require.NoError(t, err)
		assert.Equal(t, tt.want, reply.Usage, name)
	}
}

// A test fails where script and requests disagree, and says how.
func TestModel_Fails(t *testing.T) {
	for name, tt := range map[string]struct {
		steps    []convotest.Step
		requests int
		want     string
	}{
		"as written": {[]convotest.Step{{Says: "a"}}, 1, ""},
		"any":        {[]convotest.Step{{Sees: nil, Says: "a"}}, 1, ""},
		"other words": {[]convotest.Step{{Sees: []string{"user: one", "user: more"}, Says: "a"}}, 1,
			"convotest: request 1 ends with other messages than step 1 expects (- expected, + in the request):\n    user: one\n  - user: more\n  + user: two\n  + lines"},
		"none": {[]convotest.Step{{Sees: []string{}, Says: "a"}}, 1,
			"convotest: request 1 ends with other messages than step 1 expects (- expected, + in the request):\n  + user: one\n  + user: two\n  + lines"},
		"too many":       {nil, 1, "convotest: request 1 has no step; it ends with\n  user: one\n  user: two\n  lines"},
		"too few":        {[]convotest.Step{{Says: "a"}, {Says: "b"}, {Err: errors.New("x")}}, 1, `convotest: 2 of 3 steps of the model were not asked for; the next is [assistant: b]`},
		"an error left":  {[]convotest.Step{{Err: errors.New("x")}}, 0, `convotest: 1 of 1 steps of the model were not asked for; the next is an error, "x"`},
		"failed already": {[]convotest.Step{{Sees: []string{"user: one", "user: two\nlines", "x"}}, {Says: "b"}}, 1, "convotest: request 1 ends with other messages than step 1 expects (- expected, + in the request):\n    user: one\n    user: two\n    lines\n  - x"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := new(fakeT)
			m := convotest.NewModel(fake, tt.steps...)
			s := convo.NewSnapshot([]convo.Message{convo.User("before"), convo.Assistant("said"), convo.User("one"), convo.User("two\nlines")})
			for range tt.requests {
				_, err := m.Send(t.Context(), s)
				assert.Equal(t, name == "too many", errors.Is(err, convotest.ErrScript))
			}
			assert.Equal(t, tt.want, fake.end())
		})
	}
}

// A delay ends early with its ctx.
func TestModel_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := convotest.NewModel(t, convotest.Step{Delay: time.Hour, Says: "a"}, convotest.Step{Delay: time.Hour, Says: "b"})
		start := time.Now()
		reply, err := m.Send(t.Context(), asked(t, "q").Snapshot())
		require.NoError(t, err)
		assert.Equal(t, "a", reply.Text())
		assert.Equal(t, time.Hour, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = m.Send(ctx, asked(t, "q").Snapshot())
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// Several agents may share a Model.
func TestModel_Concurrent(t *testing.T) {
	m := convotest.NewModel(t, make([]convotest.Step, 50)...)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { _, _ = m.Send(context.Background(), convo.NewSnapshot([]convo.Message{convo.User("q")})) })
	}
	all.Wait()
	assert.Len(t, m.Requests(), 50)
}

// The test of an agent that looks the weather up.
func ExampleModel() {
	t := new(fakeT) // in a test, its *testing.T
	call := convo.ToolCall{ID: "1", Name: "weather", Arguments: `{"city":"Bern"}`}
	m := convotest.NewModel(t,
		convotest.Step{Sees: []string{"user: Do I need an umbrella in Bern?"}, Calls: []convo.ToolCall{call}},
		convotest.Step{Sees: []string{"tool: rain"}, Says: "Yes."},
	)
	h, _ := convo.New(nil)
	h.Append(convo.User("Do I need an umbrella in Bern?"))
	reply, err := h.Run(context.Background(), m.Send, convo.RunOptions{Tools: []convo.Handler{{
		Tool: convo.Tool{Name: "weather"},
		Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
			return []convo.Part{convo.Text("snow")}, nil
		},
	}}})
	fmt.Println(reply.Text(), err)
	fmt.Println(t.end())
	// Output:
	// Yes. <nil>
	// convotest: request 2 ends with other messages than step 2 expects (- expected, + in the request):
	//   - tool: rain
	//   + tool: snow
}
