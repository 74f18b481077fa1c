package convo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// answers gives these replies in turn. It fails the test for a request with an open call,
// and when it is asked more often.
func answers(t testing.TB, replies ...convo.Reply) convo.Send {
	return func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		checkRequest(t, s)
		if !assert.NotEmpty(t, replies, "send was called too often") {
			return convo.Reply{}, errors.New("no more answers")
		}
		r := replies[0]
		replies = replies[1:]
		return r, nil
	}
}

// checkRequest checks that a snapshot may be sent.
func checkRequest(t testing.TB, s *convo.Snapshot) {
	if fault := orderFault(s); fault != "" {
		t.Errorf("%s in %v", fault, s)
	}
	open := 0
	for _, e := range s.All() {
		open += len(e.Message.ToolCalls()) - len(e.Message.ToolResults())
	}
	if open != 0 {
		t.Errorf("%d open calls in the request %v", open, s)
	}
}

func says(text string, calls ...convo.ToolCall) convo.Reply {
	return convo.Reply{Messages: []convo.Message{convo.Assistant(text, calls...)}}
}

func callTo(tool, id string) convo.ToolCall {
	return convo.ToolCall{ID: id, Name: tool, Arguments: "{}"}
}

// toolThat is a tool with a function that returns a text.
func toolThat(name string, run func(context.Context, convo.ToolCall) (string, error)) convo.Handler {
	return convo.Handler{Tool: convo.Tool{Name: name}, Run: func(ctx context.Context, c convo.ToolCall) ([]convo.Part, error) {
		s, err := run(ctx, c)
		if s == "" {
			return nil, err
		}
		return []convo.Part{convo.Text(s)}, err
	}}
}

// echo is a tool that returns the ID of the call.
func echo(name string) convo.Handler {
	return toolThat(name, func(_ context.Context, c convo.ToolCall) (string, error) { return "ran " + c.ID, nil })
}

func toolsOf(tools ...convo.Handler) convo.RunOptions { return convo.RunOptions{Tools: tools} }

// talkOf shows each message of the view.
func talkOf(h *convo.History) (all []string) {
	for _, e := range h.Snapshot().All() {
		all = append(all, printMessage(e.Message))
	}
	return all
}

func TestRun_UntilTheModelIsDone(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	a, b := echo("a"), echo("b")
	a.Description, a.Schema = "first", `{"type":"object"}`
	send := answers(t, says("let me see", callTo("a", "c1"), callTo("b", "c2")), says("", callTo("b", "c1")), says("done"))
	reply, err := h.Run(t.Context(), send, toolsOf(a, b))
	require.NoError(t, err)
	assert.Equal(t, "done", reply.Text())
	assert.Equal(t, []convo.ID{7}, reply.IDs)
	assert.Equal(t, []string{
		"user u",
		"assistant let me see call c1a{} call c2b{}", "tool result c1 a ran c1", "tool result c2 b ran c2",
		"assistant call c1b{}", "tool result c1 b ran c1",
		"assistant done",
	}, talkOf(h))
	assert.Equal(t, []convo.Tool{a.Tool, b.Tool}, h.Snapshot().Tools(), "Run calls SetTools")
}

// Without Tools, the body may give the History others: their calls stay open as well.
func TestSteps_BodySetsTools(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	var open []convo.ToolCall
	for reply, err := range h.Steps(t.Context(), answers(t, says("which tool?"), says("", callTo("new", "c1"))), convo.RunOptions{}) {
		require.NoError(t, err)
		if open = reply.OpenCalls(); len(open) == 0 {
			require.NoError(t, h.SetTools(convo.Tool{Name: "new"}))
			mustAppend(t, h, convo.User("the new one"))
		}
	}
	assert.Equal(t, []convo.ToolCall{callTo("new", "c1")}, open)
	assert.Equal(t, 1, h.Status().OpenCalls)
}

// Without Tools those of the History stay, and their calls stay open. With an empty list
// there are none.
func TestRun_Tools(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	own := []convo.Tool{{Name: "own"}, {Name: "own"}, {Opaque: convo.Opaque{Format: "anthropic", JSON: `{"type":"web_search"}`}}}
	require.NoError(t, h.SetTools(own...))
	reply, err := h.Run(t.Context(), answers(t, says("", callTo("own", "c1"), callTo("other", "c2"))), convo.RunOptions{})
	require.NoError(t, err)
	assert.Equal(t, own, h.Snapshot().Tools())
	assert.Equal(t, []convo.ToolCall{callTo("own", "c1")}, reply.OpenCalls())
	assert.Equal(t, `tool result c2 other there is no tool "other"; the tools are own, own error`, talkOf(h)[2])

	_, err = h.Run(t.Context(), answers(t, says("", callTo("own", "c3")), says("done")), convo.RunOptions{Tools: []convo.Handler{}})
	require.NoError(t, err)
	assert.Empty(t, h.Snapshot().Tools())
	assert.Equal(t, []string{`tool result c1 own there is no tool "own" error`, "assistant call c3own{}", `tool result c3 own there is no tool "own" error`, "assistant done"}, talkOf(h)[3:])

	// A key that stands for tools of the SDK's stays as well.
	h = historyOf(t, nil, convo.User("u"))
	require.NoError(t, h.SetToolsKey("of the SDK"))
	version := h.Snapshot().Version()
	_, err = h.Run(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		assert.Equal(t, version, s.Version())
		return says("done"), nil
	}, convo.RunOptions{})
	require.NoError(t, err)
}

// Wrong arguments are refused before anything is done, a tool that is open included.
func TestRun_Arguments(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", callTo("a", "c1")))
	tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) { t.Error("called"); return "", nil })
	for want, f := range map[string]func() error{
		"convo: the send given to Run is <nil>, want a function that calls a model": func() error {
			_, err := h.Run(t.Context(), nil, toolsOf(tool))
			return err
		},
		"convo: RunOptions.Parallel is -1, want 0 or more": func() error {
			_, err := h.Run(t.Context(), never(t), convo.RunOptions{Tools: []convo.Handler{tool}, Parallel: -1})
			return err
		},
		"convo: RunOptions.MaxRequests is -1, want 0 or more": func() error {
			_, err := h.Run(t.Context(), never(t), convo.RunOptions{Tools: []convo.Handler{tool}, MaxRequests: -1})
			return err
		},
		`convo: RunOptions.Tools[1].Name is "a", want a name that no other tool has`: func() error {
			_, err := h.Run(t.Context(), never(t), toolsOf(tool, tool))
			return err
		},
		"convo: tools[0]: Tool.Name is \"\", want a name, or an Opaque for a tool of the provider's": func() error {
			_, err := h.Run(t.Context(), never(t), toolsOf(convo.Handler{}))
			return err
		},
	} {
		unchanged(t, h, func() {
			err := f()
			require.EqualError(t, err, want)
			assert.ErrorAs(t, err, new(*convo.ValueError))
		})
	}
	_, err := new(convo.History).Run(t.Context(), never(t), convo.RunOptions{})
	require.ErrorIs(t, err, convo.ErrClosed)
	//lint:ignore SA1012 a nil ctx never ends
	_, err = historyOf(t, nil, convo.User("u")).Run(nil, answers(t, says("done")), convo.RunOptions{})
	require.NoError(t, err)
}

// Where no answer is due, Run says what Do says, and pays for no request.
func TestRun_NothingIsDue(t *testing.T) {
	for _, h := range []*convo.History{historyOf(t, nil), historyOf(t, nil, convo.User("u"), convo.Assistant("a"))} {
		_, want := h.Do(t.Context(), never(t))
		_, err := h.Run(t.Context(), never(t), convo.RunOptions{})
		require.ErrorAs(t, err, new(*convo.RoleError))
		assert.Equal(t, want, err)
	}
}

// Steps yields an answer when its results are in the conversation, so that a break leaves
// it valid, and another Run goes on.
func TestSteps_YieldsAfterTheResults(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	send := answers(t, says("one", callTo("a", "c1")), says("two"))
	for reply, err := range h.Steps(t.Context(), send, toolsOf(echo("a"))) {
		require.NoError(t, err)
		assert.Equal(t, "one", reply.Text())
		assert.Empty(t, reply.OpenCalls())
		assert.Equal(t, []convo.ID{2, 3}, reply.IDs)
		assert.Equal(t, "tool result c1 a ran c1", printMessage(reply.Messages[1]))
		assert.Equal(t, "uat", rolesOf(h))
		break
	}
	require.Equal(t, "uat", rolesOf(h), "nothing after the break")
	fork := decoded(t, h)
	mustAppend(t, fork, convo.User("stop"))

	var texts []string
	steps := h.Steps(t.Context(), send, toolsOf(echo("a")))
	for reply, err := range steps {
		require.NoError(t, err)
		texts = append(texts, reply.Text())
	}
	assert.Equal(t, []string{"two"}, texts)
	for _, err := range steps { // again: nothing is due
		require.ErrorAs(t, err, new(*convo.RoleError))
	}
}

func TestSteps_WithoutRange(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", callTo("a", "c1")))
	unchanged(t, h, func() { h.Steps(t.Context(), never(t), toolsOf(echo("a"))) })
}

// The body may answer what stayed open, and append a message after the last answer.
func TestSteps_BodyGoesOn(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	ask := convo.Handler{Tool: convo.Tool{Name: "ask"}}
	send := answers(t, says("", callTo("ask", "c1")), says("one"), says("two"))
	steps := 0
	for reply, err := range h.Steps(t.Context(), send, toolsOf(ask)) {
		require.NoError(t, err)
		steps++
		switch steps {
		case 1:
			require.Len(t, reply.OpenCalls(), 1)
			mustAppend(t, h, convo.Result(reply.OpenCalls()[0], "approved"))
		case 2:
			mustAppend(t, h, convo.User("and now?"))
		}
	}
	assert.Equal(t, 3, steps)
	assert.Equal(t, "uataua", rolesOf(h))
}

// Calls that are open at the start are run first, also those of an earlier process.
func TestRun_OpenAtTheStart(t *testing.T) {
	a, b, c := callTo("a", "c1"), callTo("a", "c2"), callTo("gone", "c3")
	first := historyOf(t, nil, convo.User("u"), convo.Assistant("see", a, b, c), convo.Result(b, "before"))
	for name, h := range map[string]*convo.History{"the same": first, "an earlier process": decoded(t, first)} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			for reply, err := range h.Steps(t.Context(), answers(t, says("done")), toolsOf(echo("a"))) {
				require.NoError(t, err)
				assert.Equal(t, "done", reply.Text())
				steps++
			}
			assert.Equal(t, 1, steps, "there was one request")
			assert.Equal(t, []string{"tool result c2 a before", "tool result c1 a ran c1", `tool result c3 gone there is no tool "gone"; the tools are a error`, "assistant done"}, talkOf(h)[2:])
		})
	}
}

// If a call stays open, no request is made; the Reply says which.
func TestRun_WaitsForApprovalAtTheStart(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("see", callTo("ask", "c1"), callTo("a", "c2")))
	ask := convo.Handler{Tool: convo.Tool{Name: "ask"}}
	for range 2 { // the second time nothing is run
		reply, err := h.Run(t.Context(), never(t), toolsOf(ask, echo("a")))
		require.NoError(t, err)
		assert.Equal(t, []convo.ToolCall{callTo("ask", "c1")}, reply.OpenCalls())
		assert.Equal(t, []convo.ID{2, 3}, reply.IDs)
		assert.Equal(t, convo.StopToolCall, reply.Stop)
		assert.Equal(t, "uat", rolesOf(h))
	}
	reply, err := h.Run(t.Context(), answers(t, says("done")), toolsOf(echo("ask"), echo("a")))
	require.NoError(t, err, "approved: now a tool runs it")
	assert.Equal(t, "done", reply.Text())
	assert.Equal(t, "tool result c1 ask ran c1", talkOf(h)[3])
}

func TestRun_Approval(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	ask := convo.Handler{Tool: convo.Tool{Name: "ask"}}
	send := answers(t, says("see", callTo("a", "c1"), callTo("ask", "c2"), callTo("a", "c3")), says("done"))
	reply, err := h.Run(t.Context(), send, toolsOf(ask, echo("a")))
	require.NoError(t, err)
	require.Equal(t, []convo.ToolCall{callTo("ask", "c2")}, reply.OpenCalls())
	assert.Equal(t, "see", reply.Text())
	assert.Equal(t, "uatt", rolesOf(h))
	_, err = h.AnswerOpenCalls("the user said no")
	require.NoError(t, err)
	reply, err = h.Run(t.Context(), send, toolsOf(ask, echo("a")))
	require.NoError(t, err)
	assert.Equal(t, "done", reply.Text())

	// A call whose arguments are wrong is not for the user.
	h = historyOf(t, nil, convo.User("u"))
	reply, err = h.Run(t.Context(), answers(t, says("", convo.ToolCall{ID: "c1", Name: "ask", Arguments: "{"}), says("done")), toolsOf(ask))
	require.NoError(t, err)
	assert.Equal(t, "done", reply.Text())
	assert.Equal(t, "tool result c1 ask the arguments are not a JSON object; call the tool again with one error", talkOf(h)[2])
}

// A panickyError cannot be printed.
type panickyError struct{}

func (panickyError) Error() string { panic("in Error") }

// A panickyUnwrap cannot be unwrapped.
type panickyUnwrap struct{}

func (panickyUnwrap) Error() string { return "no map" }
func (panickyUnwrap) Unwrap() error { panic("in Unwrap") }

// Whatever a tool does, its call gets a result, and the model reads what was wrong.
func TestRun_ToolFails(t *testing.T) {
	handler := func(run func() ([]convo.Part, error)) convo.Handler {
		return convo.Handler{Tool: convo.Tool{Name: "a"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) { return run() }}
	}
	opaque := echo("a")
	opaque.Opaque = convo.Opaque{Format: "openai-responses", JSON: `{"type":"custom"}`}
	fine := handler(func() ([]convo.Part, error) { return []convo.Part{convo.Text("x")}, nil })
	seen := &convo.PanicError{In: "Options.Spill", Value: "boom", Stack: "s"}
	like := "the history is closed; make another with New, Open or Restore; grep: PanicError.Stack says where; PanicError.Stack says where"
	shared := make([]convo.Part, 1, 8)
	shared[0] = convo.Text("part")
	for name, tt := range map[string]struct {
		tool   convo.Handler
		args   string
		want   string
		logged string
	}{
		"error":               {tool: handler(func() ([]convo.Part, error) { return nil, errors.New("no map") }), want: "no map error"},
		"error of convo":      {tool: handler(func() ([]convo.Part, error) { return nil, convo.ErrClosed }), want: "the conversation was closed error"},
		"wrapped":             {tool: handler(func() ([]convo.Part, error) { return nil, fmt.Errorf("sub-agent: %w", convo.ErrClosed) }), want: "sub-agent: convo: the conversation was closed error"},
		"joined":              {tool: handler(func() ([]convo.Part, error) { return nil, errors.Join(seen, convo.ErrClosed) }), want: "panic in Options.Spill: boom; the conversation was closed error"},
		"panic in a panic":    {tool: handler(func() ([]convo.Part, error) { return nil, &convo.PanicError{In: "a Store", Value: seen, Stack: "s"} }), want: "panic in a Store: panic in Options.Spill: boom error"},
		"Unwrap that panics":  {tool: handler(func() ([]convo.Part, error) { return nil, panickyUnwrap{} }), want: "no map error"},
		"like one of convo":   {tool: handler(func() ([]convo.Part, error) { return nil, errors.New(like) }), want: like + " error"},
		"error and parts":     {tool: handler(func() ([]convo.Part, error) { return shared, errors.New("exit 1") }), want: "part\nexit 1 error"},
		"nothing":             {tool: handler(func() ([]convo.Part, error) { return nil, nil }), want: ""},
		"panic":               {tool: handler(func() ([]convo.Part, error) { panic("boom") }), want: `panic in the tool "a": boom error`, logged: `cause="convo: panic in the tool \"a\": boom"`},
		"panic nil":           {tool: handler(func() ([]convo.Part, error) { panic(nil) }), want: `panic in the tool "a": panic called with nil argument error`, logged: "panic called with nil"},
		"Goexit":              {tool: handler(func() ([]convo.Part, error) { runtime.Goexit(); return nil, nil }), want: "the tool ended its goroutine with runtime.Goexit error", logged: "runtime.Goexit"},
		"error that panics":   {tool: handler(func() ([]convo.Part, error) { return nil, panickyError{} }), want: "%!v(PANIC=Error method: in Error) error"},
		"nil part":            {tool: handler(func() ([]convo.Part, error) { return []convo.Part{nil}, nil }), want: "the tool returned what no result can hold: <nil> inside a tool result, which may hold only Text, Media and Opaque error"},
		"a call":              {tool: handler(func() ([]convo.Part, error) { return []convo.Part{callOf("x")}, nil }), want: "the tool returned what no result can hold: convo.ToolCall inside a tool result, which may hold only Text, Media and Opaque error"},
		"media without data":  {tool: handler(func() ([]convo.Part, error) { return []convo.Part{convo.Media{}}, nil }), want: "the tool returned what no result can hold: media with neither Data nor URL; set one of them error"},
		"blank arguments":     {tool: fine, args: " ", want: "x"},
		"broken arguments":    {tool: fine, args: `{"a":`, want: "the arguments are not a JSON object; call the tool again with one error"},
		"arguments are text":  {tool: fine, args: "ls -l", want: "the arguments are not a JSON object; call the tool again with one error"},
		"a tool of free text": {tool: opaque, args: "ls -l", want: "ran c1"},
		"unknown":             {tool: echo("b"), want: `there is no tool "a"; the tools are b error`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			opts := bare()
			opts.Logger = slog.New(slog.NewTextHandler(&out, nil))
			opts.Limits.Window = 100_000
			h := historyOf(t, opts, convo.User("u"))
			call := convo.ToolCall{ID: "c1", Name: "a", Arguments: tt.args}
			reply, err := h.Run(t.Context(), answers(t, says("", call), says("done")), toolsOf(tt.tool))
			require.NoError(t, err)
			assert.Equal(t, "done", reply.Text())
			assert.Equal(t, strings.TrimSuffix("tool result c1 a "+tt.want, "\n"), talkOf(h)[2])
			if tt.logged == "" {
				assert.Empty(t, out.String())
			} else {
				assert.Contains(t, out.String(), `level=WARN msg="convo: a tool panicked" tool=a cause=`)
				assert.Contains(t, out.String(), tt.logged)
				assert.Contains(t, out.String(), "run_test.go", "with the stack")
			}
		})
	}
	assert.Equal(t, []convo.Part{convo.Text("part"), nil}, shared[:2], "what a tool returns is not written to")
}

// Results keep what is not text.
func TestRun_Parts(t *testing.T) {
	photo := convo.NewMedia("image/png", []byte("x"))
	tool := convo.Handler{Tool: convo.Tool{Name: "a"}, Run: func(context.Context, convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{convo.Text("see"), photo}, nil
	}}
	h := historyOf(t, nil, convo.User("u"))
	_, err := h.Run(t.Context(), answers(t, says("", callTo("a", "c1")), says("done")), toolsOf(tool))
	require.NoError(t, err)
	e, _ := h.Snapshot().Find(3)
	assert.Equal(t, []convo.Part{convo.ToolResult{CallID: "c1", Name: "a", Parts: []convo.Part{convo.Text("see"), photo}}}, e.Message.Parts)
}

// When ctx ends while a tool runs, its result and those of the calls after it are
// appended: nothing is open.
func TestRun_CtxEnds(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tool := toolThat("a", func(ctx context.Context, c convo.ToolCall) (string, error) {
		cancel(why)
		<-ctx.Done()
		return "half", ctx.Err()
	})
	ask := convo.Handler{Tool: convo.Tool{Name: "ask"}}
	h := historyOf(t, nil, convo.User("u"))
	send := answers(t, says("", callTo("a", "c1"), callTo("a", "c2"), callTo("b", "c3")))
	steps := 0
	var last error
	for _, err := range h.Steps(ctx, send, toolsOf(tool, ask)) {
		steps++
		last = err
	}
	assert.Equal(t, 2, steps, "the answer, and the error")
	require.ErrorIs(t, last, why)
	assert.EqualError(t, last, "convo: the request was not sent: enough (context canceled)")
	assert.Equal(t, []string{
		"tool result c1 a half\ncontext canceled error",
		"tool result c2 a the call was not run: enough (context canceled) error",
		`tool result c3 b there is no tool "b"; the tools are a, ask error`,
	}, talkOf(h)[2:])
	_, err := h.Run(t.Context(), answers(t, says("done")), toolsOf(tool, ask))
	require.NoError(t, err)

	// A call that waits for approval stays open.
	h = historyOf(t, nil, convo.User("u"))
	reply, err := h.Run(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, nil }, toolsOf(ask))
	require.ErrorIs(t, err, why)
	assert.Zero(t, reply)
	ctx, cancel = context.WithCancelCause(t.Context())
	reply, err = h.Run(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		cancel(why) // and keeps what came
		return says("", callTo("a", "c1"), callTo("ask", "c2")), nil
	}, toolsOf(tool, ask))
	require.NoError(t, err)
	assert.Equal(t, []convo.ToolCall{callTo("ask", "c2")}, reply.OpenCalls())
	assert.Equal(t, "tool result c1 a the call was not run: enough (context canceled) error", talkOf(h)[2])

	// With a ctx that has ended before, nothing changes.
	h = historyOf(t, nil, convo.User("u"), convo.Assistant("", callTo("a", "c1")))
	unchanged(t, h, func() {
		_, err := h.Run(ctx, never(t), toolsOf())
		require.EqualError(t, err, "convo: the request was not sent: enough (context canceled)")
	})
}

// Parallel calls run at the same time, and their results come in the order of the calls.
func TestRun_Parallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for parallel, want := range map[int]time.Duration{0: 15, 1: 15, 2: 8, 3: 5, 9: 5} {
			var mu sync.Mutex
			now, most := 0, 0
			add := func(n int) { mu.Lock(); defer mu.Unlock(); now += n; most = max(most, now) }
			tool := toolThat("a", func(_ context.Context, c convo.ToolCall) (string, error) {
				add(1)
				time.Sleep(time.Duration(c.ID[1]-'0') * time.Second)
				add(-1)
				return "ran " + c.ID, nil
			})
			h := historyOf(t, nil, convo.User("u"))
			start := time.Now()
			send := answers(t, says("", callTo("a", "c5"), callTo("a", "c4"), callTo("a", "c3"), callTo("a", "c2"), callTo("a", "c1")), says("done"))
			_, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{tool}, Parallel: parallel})
			require.NoError(t, err)
			assert.Equal(t, want*time.Second, time.Since(start), "%d", parallel)
			assert.Equal(t, min(max(parallel, 1), 5), most)
			for i, line := range talkOf(h)[2:7] {
				assert.Equal(t, fmt.Sprintf("tool result c%d a ran c%[1]d", 5-i), line)
			}
		}
	})
}

// An Alone call waits for those before it, and those after it wait for its end.
func TestRun_Alone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		note := func(s string) { mu.Lock(); defer mu.Unlock(); log = append(log, s) }
		tool := toolThat("a", func(_ context.Context, c convo.ToolCall) (string, error) {
			note("+" + c.ID)
			time.Sleep(time.Second)
			note("-" + c.ID)
			return "", nil
		})
		alone := tool
		alone.Name, alone.Alone = "alone", true
		h := historyOf(t, nil, convo.User("u"))
		send := answers(t, says("", callTo("a", "1"), callTo("a", "2"), callTo("alone", "3"), callTo("alone", "4"), callTo("a", "5"), callTo("a", "6")), says("done"))
		start := time.Now()
		_, err := h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{tool, alone}, Parallel: 8})
		require.NoError(t, err)
		assert.Equal(t, 4*time.Second, time.Since(start))
		slices.Sort(log[0:2])
		slices.Sort(log[2:4])
		slices.Sort(log[8:10])
		slices.Sort(log[10:12])
		assert.Equal(t, "+1 +2 -1 -2 +3 -3 +4 -4 +5 +6 -5 -6", strings.Join(log, " "))
	})
}

// The calls of tools in the parameters of a request stay open, and those of unknown tools are
// answered.
func TestRun_ParamTools(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	asked := 0
	send := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		asked++
		reply := says("", callTo("own", "c1"), callTo("none", "c2"), callTo("a", "c3"))
		reply.ParamTools = []string{"own"}
		return reply, nil
	}
	for range 2 { // the second Run finds the call open
		reply, err := h.Run(t.Context(), send, toolsOf(echo("a")))
		require.NoError(t, err)
		require.Len(t, reply.OpenCalls(), 1)
		assert.Equal(t, "own", reply.OpenCalls()[0].Name)
		assert.Equal(t, 1, asked)
		assert.Len(t, reply.Messages, 3)
	}
}

// If the ctx of Run ended during such an answer, the error says why.
func TestRun_AnswerStopped(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	ctx, stop := context.WithCancelCause(t.Context())
	cause := errors.New("the user stopped")
	_, err := h.Run(ctx, func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		stop(cause)
		return convo.Reply{Stop: convo.StopCancelled}, nil
	}, convo.RunOptions{})
	require.EqualError(t, err, "convo: the answer is empty (the user stopped (context canceled)); ask the model again")
	require.ErrorAs(t, err, new(*convo.AnswerError))
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, context.Canceled)
}

// An answer from which the loop cannot go on is an error that says so.
func TestRun_AnswerIsNone(t *testing.T) {
	cut := &convo.ToolCall{ID: "c9", Name: "write", Arguments: `{"te`}
	thought := convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: "hm"}}}
	for _, tt := range []struct {
		name  string
		reply convo.Reply
		want  string
		roles string
	}{
		{"empty", convo.Reply{}, "convo: the answer is empty (stop: done); ask the model again", "u"},
		{"refused", convo.Reply{Stop: convo.StopRefused}, "convo: the answer is empty (stop: refused); ask the model again", "u"},
		{"a pause without a message", convo.Reply{Stop: convo.StopPause}, "convo: the answer is empty (stop: pause); ask the model again", "u"},
		{"only reasoning", convo.Reply{Messages: []convo.Message{thought}, Stop: convo.StopLength},
			"convo: the answer is empty (stop: length); let the model write more tokens, and append a user message to go on, or take the answer back with RewindTo", "ua"},
		{"cut off", convo.Reply{CutOff: cut, Stop: convo.StopLength},
			`convo: the answer was cut off in a call of tool "write" (stop: length); let the model write more tokens, and ask the model again`, "u"},
		{"cut off after text", convo.Reply{Messages: says("let me").Messages, CutOff: cut},
			`convo: the answer was cut off in a call of tool "write" (stop: done); append a user message to go on, or take the answer back with RewindTo`, "ua"},
		{"cut off after a call", convo.Reply{Messages: says("", callTo("a", "c1")).Messages, CutOff: cut},
			`convo: the answer was cut off in a call of tool "write" (stop: done); ask the model again`, "uat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("u"))
			reply, err := h.Run(t.Context(), answers(t, tt.reply), toolsOf(echo("a")))
			require.EqualError(t, err, tt.want)
			var fault *convo.AnswerError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, tt.reply.CutOff, fault.CutOff)
			assert.Equal(t, tt.reply.Stop, fault.Stop)
			assert.Equal(t, tt.reply.CutOff, reply.CutOff)
			assert.Equal(t, tt.roles, rolesOf(h), "calls that came whole were run")
			assert.Zero(t, h.Status().OpenCalls)
			if tt.roles != "ua" { // as the error says
				_, err = h.Run(t.Context(), answers(t, says("done")), toolsOf(echo("a")))
				require.NoError(t, err)
			} else {
				mustAppend(t, h, convo.User("go on"))
			}
		})
	}

	// Empty text is nothing, also where it may be appended.
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("u"))
	_, err := h.Run(t.Context(), answers(t, convo.Reply{Messages: []convo.Message{{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("")}}}}), toolsOf())
	require.ErrorAs(t, err, new(*convo.AnswerError))
}

// Text that stopped for length, a refusal in words and what came until the user stopped
// the answer are kept.
func TestRun_KeepsText(t *testing.T) {
	for _, stop := range []convo.Stop{convo.StopLength, convo.StopRefused, convo.StopDone} {
		h := historyOf(t, nil, convo.User("u"))
		reply, err := h.Run(t.Context(), answers(t, convo.Reply{Messages: says("half an").Messages, Stop: stop}), toolsOf())
		require.NoError(t, err)
		assert.Equal(t, stop, reply.Stop)
		assert.Equal(t, []string{"user u", "assistant half an"}, talkOf(h))
	}
}

func TestRun_SendFails(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	boom := errors.New("503")
	n := 0
	send := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if n++; n == 1 {
			return says("", callTo("a", "c1")), nil
		}
		return says("half"), boom
	}
	reply, err := h.Run(t.Context(), send, toolsOf(echo("a")))
	assert.Equal(t, boom, err, "as it came")
	assert.Equal(t, "half", reply.Text())
	assert.Equal(t, "uat", rolesOf(h))
}

// endless always calls a tool.
func endless(t testing.TB, requests *int) convo.Send {
	return func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		checkRequest(t, s)
		*requests++
		return says("", callTo("a", "c1")), nil
	}
}

func TestRun_MaxRequests(t *testing.T) {
	for given, want := range map[int]int{0: 50, 1: 1, 3: 3} {
		h := historyOf(t, nil, convo.User("u"))
		requests := 0
		reply, err := h.Run(t.Context(), endless(t, &requests), convo.RunOptions{Tools: []convo.Handler{echo("a")}, MaxRequests: given})
		assert.Equal(t, &convo.MaxRequestsError{Max: want}, err)
		assert.Zero(t, reply, "the last step has no answer")
		assert.Equal(t, want, requests)
		assert.Zero(t, h.Status().OpenCalls)
		assert.Equal(t, 1+2*want, h.Len())
		_, err = h.Run(t.Context(), answers(t, says("done")), toolsOf(echo("a")))
		require.NoError(t, err, "it goes on")
	}
	// A model that is done with the last request is done.
	_, err := historyOf(t, nil, convo.User("u")).Run(t.Context(), answers(t, says("done")), convo.RunOptions{MaxRequests: 1})
	require.NoError(t, err)
}

// Requests for a paused answer, and those made again because one was too long, count.
func TestRun_MaxRequestsCountsAll(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	requests := 0
	paused := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		requests++
		return convo.Reply{Messages: says("more").Messages, Stop: convo.StopPause}, nil
	}
	reply, err := h.Run(t.Context(), paused, convo.RunOptions{MaxRequests: 4})
	assert.Equal(t, &convo.MaxRequestsError{Max: 4}, err)
	assert.Equal(t, 4, requests)
	assert.Equal(t, "uaaaa", rolesOf(h))
	assert.Len(t, reply.IDs, 4, "what was appended before")
	assert.Equal(t, convo.StopPause, reply.Stop)
	reply, err = h.Run(t.Context(), answers(t, says("done")), convo.RunOptions{})
	require.NoError(t, err)
	assert.Equal(t, "done", reply.Text())

	// Without a bound, a pause that Do gives up is gone on with.
	requests = 0
	_, err = historyOf(t, nil, convo.User("u")).Run(t.Context(), paused, convo.RunOptions{MaxRequests: 30})
	require.ErrorAs(t, err, new(*convo.MaxRequestsError))
	assert.Equal(t, 30, requests)

	// A pause after which nothing more comes is the end.
	h = historyOf(t, nil, convo.User("u"))
	reply, err = h.Run(t.Context(), answers(t, convo.Reply{Messages: says("all").Messages, Stop: convo.StopPause}, convo.Reply{}), convo.RunOptions{})
	require.NoError(t, err)
	assert.Equal(t, "all", reply.Text())

	opts := windowOf(100_000, convo.Truncate{})
	opts.IsOverflow = func(error) bool { return true }
	h = toolTurn(t, opts, 20)
	mustAppend(t, h, convo.User("go on"))
	requests = 0
	before := h.Len()
	reply, err = h.Run(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		requests++
		return convo.Reply{}, errTooLong
	}, convo.RunOptions{MaxRequests: 1})
	assert.Equal(t, &convo.MaxRequestsError{Max: 1}, err, "no overflow itself")
	assert.Equal(t, 1, requests)
	assert.Less(t, h.Len(), before)
	assert.Len(t, reply.Reports, 1, "compacted for what the provider said")
}

// The queue is delivered after the results, and after the last answer, and answered.
func TestRun_Queue(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) {
		queue(t, h, "during the tool")
		return "ran", nil
	})
	n := 0
	send := func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
		checkRequest(t, s)
		switch n++; n {
		case 1:
			return says("", callTo("a", "c1")), nil
		case 2:
			queue(t, h, "during the answer")
			return says("first"), nil
		}
		return says("second"), nil
	}
	var queued []int
	for reply, err := range h.Steps(t.Context(), send, toolsOf(tool)) {
		require.NoError(t, err)
		queued = append(queued, reply.Queued)
	}
	assert.Equal(t, []int{1, 1, 0}, queued)
	assert.Equal(t, []string{
		"user u", "assistant call c1a{}", "tool result c1 a ran", "user during the tool",
		"assistant first", "user during the answer", "assistant second",
	}, talkOf(h))
}

// A call that another goroutine answers keeps that answer; those that have not begun are
// not run then.
func TestRun_AnsweredMeanwhile(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	var ran []string
	tool := toolThat("a", func(_ context.Context, c convo.ToolCall) (string, error) {
		ran = append(ran, c.ID)
		if c.ID == "c1" {
			mustAppend(t, h, convo.Result(callTo("a", "c2"), "by hand"))
		}
		if c.ID == "c3" {
			_, err := h.AnswerOpenCalls("given up")
			require.NoError(t, err)
		}
		return "ran", nil
	})
	send := answers(t, says("", callTo("a", "c1"), callTo("a", "c2")), says("", callTo("a", "c3"), callTo("a", "c4")), says("done"))
	var replies []convo.Reply
	for reply, err := range h.Steps(t.Context(), send, toolsOf(tool)) {
		require.NoError(t, err)
		assert.Empty(t, reply.OpenCalls(), "results of others are there as well")
		replies = append(replies, reply)
	}
	assert.Equal(t, []string{"c1", "c3"}, ran)
	assert.Equal(t, []string{
		"user u", "assistant call c1a{} call c2a{}", "tool result c2 a by hand", "tool result c1 a ran",
		"assistant call c3a{} call c4a{}", "tool result c3 a given up error", "tool result c4 a given up error",
		"assistant done",
	}, talkOf(h))
	assert.Equal(t, []convo.ID{2, 3, 4}, replies[0].IDs)
}

// When the calls were taken back, or a message follows them, Run says so, and gives the
// results to no other call with their IDs.
func TestRun_TakenBackMeanwhile(t *testing.T) {
	again := func(t *testing.T, h *convo.History) {
		require.NoError(t, h.RewindTo(1))
		mustAppend(t, h, convo.Assistant("another", callTo("a", "c1"), callTo("a", "c2")))
	}
	for name, change := range map[string]func(*testing.T, *convo.History){
		"taken back":  func(t *testing.T, h *convo.History) { require.NoError(t, h.RewindTo(1)) },
		"made again":  again,
		"interrupted": func(t *testing.T, h *convo.History) { mustAppend(t, h, convo.User("stop")) },
	} {
		t.Run(name, func(t *testing.T) {
			roles := convo.RolePolicy{Interrupt: true}
			h := historyOf(t, &convo.Options{Roles: roles}, convo.User("u"))
			var ran []string
			var after string
			tool := toolThat("a", func(_ context.Context, c convo.ToolCall) (string, error) {
				change(t, h)
				after = stateOf(t, h)
				ran = append(ran, c.ID)
				return "late", nil
			})
			reply, err := h.Run(t.Context(), answers(t, says("", callTo("a", "c1"), callTo("a", "c2"))), toolsOf(tool))
			require.ErrorIs(t, err, convo.ErrStale)
			var stale *convo.StaleError
			require.ErrorAs(t, err, &stale)
			assert.Equal(t, convo.ID(2), stale.ID)
			assert.Equal(t, []string{"c1"}, ran, "the second call was not open any more")
			assert.Equal(t, after, stateOf(t, h))
			assert.Equal(t, "tool result c1 a late", printMessage(reply.Messages[1]), "what was done is not lost")
			assert.Len(t, reply.IDs, 1)
		})
	}
}

// Close ends the ctx of tools.
func TestRun_Close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := historyOf(t, nil, convo.User("u"))
		tool := toolThat("a", func(ctx context.Context, c convo.ToolCall) (string, error) {
			h.Close()
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		reply, err := h.Run(t.Context(), answers(t, says("", callTo("a", "c1"), callTo("a", "c2"))), toolsOf(tool))
		require.ErrorIs(t, err, convo.ErrClosed)
		require.Len(t, reply.Messages, 3)
		assert.Equal(t, "tool result c1 a the conversation was closed error", printMessage(reply.Messages[1]))
		assert.Equal(t, "tool result c2 a the call was not run: the conversation was closed (context canceled) error", printMessage(reply.Messages[2]))
		_, err = h.Run(t.Context(), never(t), toolsOf())
		require.ErrorIs(t, err, convo.ErrClosed)
	})
}

// Run waits for the tools that it has started.
func TestRun_WaitsForTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) {
			time.Sleep(time.Hour)
			return "done at last", nil
		})
		h := historyOf(t, nil, convo.User("u"))
		_, err := h.Run(ctx, answers(t, says("", callTo("a", "c1"), callTo("a", "c2"))), convo.RunOptions{Tools: []convo.Handler{tool}, Parallel: 2})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, []string{"tool result c1 a done at last", "tool result c2 a done at last"}, talkOf(h)[2:])
	})
}

// A Run inside another of the same History would wait for itself.
func TestRun_Reentrant(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	tool := toolThat("a", func(ctx context.Context, c convo.ToolCall) (string, error) {
		_, err := h.Run(ctx, never(t), toolsOf())
		require.ErrorIs(t, err, convo.ErrReentrant)
		sub := historyOf(t, nil, convo.User("a task"))
		reply, err := sub.Run(ctx, answers(t, says("of a sub-agent")), toolsOf())
		return reply.Text(), err
	})
	n := 0
	reply, err := h.Run(t.Context(), func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
		_, err := h.Run(ctx, never(t), toolsOf())
		require.ErrorIs(t, err, convo.ErrReentrant)
		if n++; n == 1 {
			return says("", callTo("a", "c1")), nil
		}
		return says("done"), nil
	}, toolsOf(tool))
	require.NoError(t, err)
	assert.Equal(t, "done", reply.Text())
	assert.Equal(t, "tool result c1 a of a sub-agent", talkOf(h)[2])
	assert.Equal(t, []convo.Tool{tool.Tool}, h.Snapshot().Tools(), "a refused Run sets no tools")

	mustAppend(t, h, convo.User("v"))
	_, err = h.Do(t.Context(), func(ctx context.Context, _ *convo.Snapshot) (convo.Reply, error) {
		_, err := h.Run(ctx, never(t), toolsOf())
		require.ErrorIs(t, err, convo.ErrReentrant, "nor in the send of a Do")
		return says("done"), nil
	})
	require.NoError(t, err)
}

// Another Run waits while a step is made, so it does not run the same calls again. Then
// it makes the next step, and the first finds that there is nothing left to do.
func TestRun_OneStepAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := historyOf(t, nil, convo.User("u"))
		ran := 0
		tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) {
			ran++
			time.Sleep(time.Minute)
			return "ran", nil
		})
		send := answers(t, says("", callTo("a", "c1")), says("done"))
		ended := make(chan convo.Reply)
		go func() {
			reply, err := h.Run(t.Context(), send, toolsOf(tool))
			assert.NoError(t, err)
			ended <- reply
		}()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Run(ctx, never(t), toolsOf(tool))
		require.EqualError(t, err, "convo: the request was not sent: context deadline exceeded")

		reply, err := h.Run(t.Context(), send, toolsOf(tool))
		require.NoError(t, err)
		assert.Equal(t, "done", reply.Text())
		assert.Len(t, (<-ended).Messages, 2)
		assert.Equal(t, 1, ran)
		assert.Equal(t, "uata", rolesOf(h))
	})
}

// If the results cannot be appended, they are in the Reply.
func TestRun_SpillFails(t *testing.T) {
	opts := windowOf(2000, nil)
	opts.MaxResult = 100
	fails := true
	opts.Spill = func(context.Context, convo.ToolResult) (string, error) {
		if fails {
			return "", errors.New("disk full")
		}
		return "file 1", nil
	}
	h := historyOf(t, opts, convo.User("u"))
	tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) { return strings.Repeat("long ", 100), nil })
	reply, err := h.Run(t.Context(), answers(t, says("", callTo("a", "c1"))), toolsOf(tool))
	require.ErrorContains(t, err, "disk full")
	assert.Equal(t, "ua", rolesOf(h))
	assert.Len(t, reply.IDs, 1)
	require.Len(t, reply.Messages, 2)
	fails = false
	fork := decoded(t, h)
	_, err = fork.Append(reply.Messages[len(reply.IDs):]...)
	require.NoError(t, err, "they can be appended again")

	// A result that is cut is reported, also that of a call found open.
	reply, err = h.Run(t.Context(), answers(t, says("done")), toolsOf(tool))
	require.NoError(t, err)
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, convo.ReasonAppend, reply.Reports[0].Reason)
	assert.Contains(t, talkOf(h)[2], "file 1")
	mustAppend(t, h, convo.User("v"))
	for reply, err = range h.Steps(t.Context(), answers(t, says("", callTo("a", "c2")), says("done")), toolsOf(tool)) {
		require.NoError(t, err)
		break
	}
	require.Len(t, reply.Reports, 1)
	assert.Equal(t, []convo.ID{7}, reply.Reports[0].Shortened)
}

// A call that is answered while Spill runs keeps that answer; one that is taken back is
// an error.
func TestRun_AnsweredWhileSpilling(t *testing.T) {
	for _, back := range []bool{false, true} {
		opts := windowOf(2000, nil)
		opts.MaxResult = 100
		var h *convo.History
		opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
			if back {
				require.NoError(t, h.RewindTo(1))
			} else {
				mustAppend(t, h, convo.Result(callTo("a", "c1"), "by hand"))
			}
			return "ref", nil
		}
		h = historyOf(t, opts, convo.User("u"))
		tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) { return strings.Repeat("long ", 100), nil })
		_, err := h.Run(t.Context(), answers(t, says("", callTo("a", "c1")), says("done")), toolsOf(tool))
		if back {
			require.ErrorIs(t, err, convo.ErrStale)
			assert.Equal(t, "u", rolesOf(h))
		} else {
			require.NoError(t, err)
			assert.Equal(t, "tool result c1 a by hand", talkOf(h)[2])
		}
	}
}

// A panic of the Tokenizer while results are counted is an error, and does not lose them.
func TestRun_TokenizerPanics(t *testing.T) {
	opts := bare()
	opts.Tokenizer = convo.TokenizerFunc(func(s string) int {
		if strings.Contains(s, "boom") {
			panic("count")
		}
		return len(s)
	})
	h := historyOf(t, opts, convo.User("u"))
	tool := toolThat("a", func(context.Context, convo.ToolCall) (string, error) { return "boom", nil })
	reply, err := h.Run(t.Context(), answers(t, says("", callTo("a", "c1"))), toolsOf(tool))
	require.ErrorAs(t, err, new(*convo.PanicError))
	assert.Len(t, reply.Messages, 2)
	assert.Equal(t, 1, h.Status().OpenCalls)
}

// An answer with results that send has makes only the other calls open.
func TestRun_AnswerWithResults(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	reply := convo.Reply{Messages: []convo.Message{
		convo.Assistant("", callTo("server", "s1")), convo.Result(callTo("server", "s1"), "found"),
		convo.Assistant("and", callTo("a", "c1"), callTo("server", "s2")), convo.Result(callTo("server", "s2"), "found"),
	}}
	last, err := h.Run(t.Context(), answers(t, reply, says("done")), toolsOf(echo("a")))
	require.NoError(t, err)
	assert.Equal(t, "done", last.Text())
	assert.Equal(t, "uatatta", rolesOf(h))
	assert.Equal(t, "tool result c1 a ran c1", talkOf(h)[5])
}

// Messages and compactions of all kinds go on while Run works. For the race detector.
func TestTorture_Run(t *testing.T) {
	rounds := long.Or(40, 150)
	opts := windowOf(3000, nil)
	opts.Roles = convo.Relaxed()
	opts.Background = true
	h := historyOf(t, opts, convo.User("u"))
	var working sync.WaitGroup
	tool := toolThat("a", func(ctx context.Context, c convo.ToolCall) (string, error) {
		runtime.Gosched()
		switch c.ID[0] % 4 {
		case 0:
			return "", errors.New("failed")
		case 1:
			panic("boom")
		}
		return strings.Repeat("r", 100), h.Queue(convo.User("by a tool"))
	})
	ask := convo.Handler{Tool: convo.Tool{Name: "ask"}}
	for i := range 2 {
		working.Go(func() {
			n := i
			for range rounds {
				_ = h.Queue(convo.User("go on"))
				_, err := h.Run(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
					checkRequest(t, s)
					n++
					names := []string{"a", "ask", "none", "a"}
					if n%3 == 0 {
						return says("done " + itoa(n)), nil
					}
					return says("", callTo(names[n%4], fmt.Sprint(n%4, "x")), callTo("a", fmt.Sprint(n%7, "y")), callTo("a", "z")), nil
				}, convo.RunOptions{Tools: []convo.Handler{tool, ask}, Parallel: 1 + i, MaxRequests: 5})
				var most *convo.MaxRequestsError
				var pair *convo.PairError
				var role *convo.RoleError
				assert.True(t, err == nil || errors.Is(err, convo.ErrStale) || errors.As(err, &most) || errors.As(err, &pair) || errors.As(err, &role), "%v", err)
			}
		})
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			switch i % 8 {
			case 0:
				_, _ = h.AnswerOpenCalls("")
			case 1:
				_, _ = h.Append(convo.User("interrupts"))
			case 2:
				_, _ = h.Rewind(1)
			case 3:
				_ = h.RewindTo(max(0, idsOf(h.Snapshot())[0]))
			case 4:
				_, _ = h.Compact(t.Context(), "")
			case 5:
				_ = h.SetEphemeral(convo.User("now"))
			case 6:
				_ = h.PinLast()
			case 7:
				_ = h.Status().String() + printOf(h.Snapshot())
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	working.Wait()
	close(stop)
	others.Wait()
	r, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, convo.OutcomeFailed, r.Outcome, "%v", r.Cause) // it may be stale, after what the others have done
	_, err = h.AnswerOpenCalls("")
	require.NoError(t, err)
	checkPairs(t, h.Snapshot())
	checkSaved(t, h, opts)
}

// A History that is saved, compacted, added to and closed while Run works: Run ends, even
// with tools that ignore ctx, and what was saved can be opened.
func TestTorture_RunUntilClosed(t *testing.T) {
	for round := range 20 {
		opts := windowOf(3000, nil)
		opts.Roles = convo.Relaxed()
		h := historyOf(t, opts, convo.User("u"))
		store := new(convotest.MemStore)
		require.NoError(t, h.Attach(t.Context(), store, "k"))
		deaf := toolThat("a", func(context.Context, convo.ToolCall) (string, error) {
			time.Sleep(time.Millisecond)
			return strings.Repeat("r", 100), nil
		})
		alone := deaf
		alone.Name, alone.Alone = "alone", true
		var working sync.WaitGroup
		working.Go(func() {
			for n := 0; ; n++ {
				_, err := h.Run(t.Context(), func(_ context.Context, s *convo.Snapshot) (convo.Reply, error) {
					checkRequest(t, s)
					return says("", callTo("a", "x"), callTo("alone", "y"), callTo("a", "z")), nil
				}, convo.RunOptions{Tools: []convo.Handler{deaf, alone}, Parallel: 8, MaxRequests: 1})
				if errors.Is(err, convo.ErrClosed) {
					return
				}
				if err != nil && !errors.As(err, new(*convo.MaxRequestsError)) && !errors.Is(err, convo.ErrStale) {
					t.Errorf("request %d: %v", n, err)
					return
				}
			}
		})
		for _, f := range []func(){
			func() { _, _ = h.Append(convo.User("interrupts")) },
			func() { _ = h.Queue(convo.User("queued")) },
			func() { _ = h.Save(t.Context()) },
			func() { h.CompactInBackground(t.Context()) },
		} {
			working.Go(func() {
				for h.Queue() == nil {
					f()
					time.Sleep(200 * time.Microsecond)
				}
			})
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		require.NoError(t, h.Close())
		working.Wait()
		again, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		checkPairs(t, again.Snapshot())
	}
}

// A runModel is a simple model of what a conversation must hold while Run works on it: the
// messages as talkOf shows them. It also writes the script of the model and the tools, by
// chance, as it is asked.
type runModel struct {
	*testing.T
	r        *rand.Rand
	h        *convo.History
	want     []string
	open     []convo.ToolCall // that wait for a result, in order
	queue    []string
	paused   bool // the conversation ends with a paused answer
	said     bool // the answer to which that belongs holds anything
	cancel   context.CancelFunc
	parallel int
	running  atomic.Int32
	ids      int
	left     int    // how many requests may be made
	fault    string // with which the Run must end; empty: with none
	failed   int    // the length of want when a request failed
}

const approvedTool, aloneTool = "ask", "alone"

// tools are all tools. ask says whether calls of approvedTool are left open.
func (m *runModel) tools(ask bool) []convo.Handler {
	var all []convo.Handler
	for _, name := range []string{"fine", "fails", "both", "panics", "exits", "wrong", "cancels", "queues", approvedTool, aloneTool} {
		all = append(all, convo.Handler{Tool: convo.Tool{Name: name}, Alone: name == aloneTool, Run: m.run})
		if name == approvedTool && ask {
			all[len(all)-1].Run = nil
		}
	}
	return all
}

// run is all tools.
func (m *runModel) run(ctx context.Context, c convo.ToolCall) ([]convo.Part, error) {
	now := m.running.Add(1)
	assert.LessOrEqual(m, int(now), m.parallel)
	if c.Name == aloneTool {
		assert.EqualValues(m, 1, now)
	}
	time.Sleep(time.Duration(len(c.ID)*17%5) * time.Second)
	if c.Name == aloneTool {
		assert.EqualValues(m, 1, m.running.Load())
	}
	m.running.Add(-1)
	fine := []convo.Part{convo.Text("ran " + c.ID)}
	switch c.Name {
	case "fails":
		return nil, errors.New("no " + c.ID)
	case "both":
		return fine, errors.New("exit 1")
	case "panics":
		panic("boom")
	case "exits":
		runtime.Goexit()
	case "wrong":
		return []convo.Part{nil}, nil
	case "cancels":
		m.cancel()
	case "queues":
		assert.NoError(m, m.h.Queue(convo.User("queued by a tool")))
	}
	return fine, nil
}

// answered does what the calls of an answer must do. ask is as for tools.
func (m *runModel) answered(ask, ended bool) {
	var left []convo.ToolCall
	for _, c := range m.open {
		result := ""
		switch {
		case c.Name == "none":
			result = `there is no tool "none"; the tools are fine, fails, both, panics, exits, wrong, cancels, queues, ask, alone error`
		case !c.Valid():
			result = "the arguments are not a JSON object; call the tool again with one error"
		case c.Name == approvedTool && ask:
			left = append(left, c)
			continue
		case ended:
			result = "the call was not run: context canceled error"
		case c.Name == "fails":
			result = "no " + c.ID + " error"
		case c.Name == "both":
			result = "ran " + c.ID + "\nexit 1 error"
		case c.Name == "panics":
			result = `panic in the tool "panics": boom error`
		case c.Name == "exits":
			result = "the tool ended its goroutine with runtime.Goexit error"
		case c.Name == "wrong":
			result = "the tool returned what no result can hold: <nil> inside a tool result, which may hold only Text, Media and Opaque error"
		default:
			result = "ran " + c.ID
		}
		if c.Name == "cancels" && c.Valid() && !ended {
			ended = true
			m.fault = "ctx"
		}
		if c.Name == "queues" && result == "ran "+c.ID {
			m.queue = append(m.queue, "user queued by a tool")
		}
		m.want = append(m.want, "tool result "+c.ID+" "+c.Name+" "+result)
	}
	m.open = left
	m.deliver()
}

// deliver appends the queue if a user message may follow.
func (m *runModel) deliver() {
	if last := m.want[len(m.want)-1]; len(m.open) == 0 && (!strings.HasPrefix(last, "user") || m.failed == len(m.want)) && len(m.queue) > 0 {
		m.want, m.queue, m.paused = append(m.want, m.queue...), nil, false
	}
}

// check checks that the conversation is what it must be.
func (m *runModel) check(s *convo.Snapshot) {
	m.Helper()
	var got []string
	for _, e := range s.All() {
		got = append(got, printMessage(e.Message))
	}
	require.Equal(m, m.want, got)
}

// answer is a Send. It writes the answer, and what must become of it.
func (m *runModel) answer(ask bool) convo.Send {
	return func(ctx context.Context, s *convo.Snapshot) (convo.Reply, error) {
		m.check(s)
		checkRequest(m, s)
		require.Positive(m, m.left, "no more requests")
		m.left--
		if m.r.IntN(8) == 0 {
			m.fault = "send"
			return says("lost", callTo("fine", "x")), errors.New("send")
		}
		var reply convo.Reply
		msg := convo.Message{Role: convo.RoleAssistant}
		if m.r.IntN(3) == 0 {
			msg.Parts = append(msg.Parts, convo.Reasoning{Text: "hm"})
		}
		said := m.paused && m.said
		if m.r.IntN(3) > 0 {
			said = true
			msg.Parts = append(msg.Parts, convo.Text(fmt.Sprint("answer ", len(m.want))))
		}
		if m.r.IntN(4) > 0 {
			names := []string{"fine", "fails", "both", "panics", "exits", "wrong", "queues", approvedTool, aloneTool, "none"}
			if m.parallel == 1 {
				names = append(names, "cancels")
			}
			for range 1 + m.r.IntN(4) {
				said = true
				m.ids++
				c := callTo(names[m.r.IntN(len(names))], strings.Repeat("c", 1+m.ids%7)+itoa(m.ids%40))
				if m.r.IntN(8) == 0 {
					c.Arguments = "{"
				}
				msg.Parts = append(msg.Parts, c)
				m.open = append(m.open, c)
			}
		}
		if len(msg.Parts) > 0 {
			reply.Messages = []convo.Message{msg}
			m.want = append(m.want, printMessage(msg))
		} else {
			m.failed = len(m.want)
		}
		m.paused = false
		switch m.r.IntN(6) {
		case 0:
			reply.CutOff, m.fault = &convo.ToolCall{Name: "x"}, "answer"
		case 1:
			reply.Stop = convo.StopLength
		case 2:
			if m.paused = len(msg.Parts) > 0 && len(m.open) == 0; m.paused {
				reply.Stop, m.said = convo.StopPause, said
				return reply, nil
			}
		}
		if !said {
			m.fault = "answer"
		}
		if m.r.IntN(6) == 0 { // while Do waits
			require.NoError(m, m.h.Queue(convo.User("queued")))
			m.queue = append(m.queue, "user queued")
		}
		fault := m.fault
		m.fault = ""
		m.answered(ask, ctx.Err() != nil)
		if fault != "" {
			m.fault = fault
		}
		return reply, nil
	}
}

// due reports whether the model must answer.
func (m *runModel) due() bool {
	return len(m.open) == 0 && (m.paused || !strings.HasPrefix(m.want[len(m.want)-1], "assistant"))
}

// round makes one Run, or some of its steps, and checks how it ends.
func (m *runModel) round() {
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(m.Context())
	defer m.cancel()
	ask := m.r.IntN(3) > 0
	o := convo.RunOptions{Tools: m.tools(ask), Parallel: m.r.IntN(4), MaxRequests: 1 + m.r.IntN(6)}
	m.parallel, m.left, m.fault, m.said = max(o.Parallel, 1), o.MaxRequests, "", false
	if m.parallel > 1 { // which calls have begun before the call that cancels is not known
		for _, c := range m.open {
			if c.Name == "cancels" {
				return
			}
		}
	}
	if len(m.open) > 0 {
		m.answered(ask, false)
	}
	m.deliver()
	steps := 1 + m.r.IntN(8)
	var err error
	var reply convo.Reply
	for reply, err = range m.h.Steps(ctx, m.answer(ask), o) {
		if err == nil {
			m.check(m.h.Snapshot())
			require.ElementsMatch(m, m.open, reply.OpenCalls())
		}
		if steps--; steps == 0 {
			break
		}
	}
	if err != nil {
		m.failed = len(m.want)
	}
	switch {
	case err == nil && steps == 0:
		// A fault of the next step is not seen.
	case err == nil:
		require.True(m, m.fault == "" || m.fault == "ctx" && len(m.open) > 0, m.fault)
		require.False(m, m.due(), "the model was not done")
	case errors.As(err, new(*convo.MaxRequestsError)):
		require.Contains(m, []string{"", "ctx"}, m.fault)
		require.Zero(m, m.left)
		require.True(m, m.due(), "%v %v %v %v", m.want, m.open, m.paused, m.queue)
	case errors.As(err, new(*convo.AnswerError)):
		require.Equal(m, "answer", m.fault)
	case errors.Is(err, context.Canceled):
		require.Equal(m, "ctx", m.fault)
	default:
		require.EqualError(m, err, "send")
		require.Equal(m, "send", m.fault)
	}
	m.check(m.h.Snapshot())
	status := m.h.Status()
	require.Equal(m, len(m.open), status.OpenCalls)
	require.Equal(m, len(m.queue), status.Queued)
	checkPairs(m, m.h.Snapshot())
}

// next makes an answer due again.
func (m *runModel) next() {
	if len(m.open) > 0 && m.r.IntN(3) == 0 { // the user says no
		_, err := m.h.AnswerOpenCalls("no")
		require.NoError(m, err)
		for _, c := range m.open {
			m.want = append(m.want, "tool result "+c.ID+" "+c.Name+" no error")
		}
		m.open = nil
		m.deliver()
	}
	if m.r.IntN(10) == 0 { // a restart
		queue := m.h.Unqueue()
		m.h = decoded(m.T, m.h)
		require.NoError(m, m.h.Queue(queue...))
		m.paused, m.failed = false, len(m.want)
		m.deliver()
	}
	if len(m.open) == 0 && !m.due() || m.paused {
		mustAppend(m, m.h, convo.User("and?"))
		m.want, m.paused = append(m.want, "user and?"), false
	}
}

// Whatever models and tools do, the conversation holds what it must, each request is one
// that may be sent, and Run ends as it must.
func TestRun_Random(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(long.Or(25, 200)) {
			m := &runModel{T: t, r: rand.New(rand.NewPCG(seed, 7)), want: []string{"user u"}}
			m.h = historyOf(t, nil, convo.User("u"))
			for range 20 {
				m.round()
				m.next()
			}
		}
	})
}
