package convo_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// resultOf makes a tool message with one result as given.
func resultOf(r convo.ToolResult) convo.Message {
	return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{r}}
}

func TestAppend_IDs(t *testing.T) {
	h := historyOf(t, nil)
	id, err := h.Append()
	require.NoError(t, err)
	assert.Zero(t, id)
	assert.EqualValues(t, 3, mustAppend(t, h, convo.System("s"), convo.User("u"), convo.Assistant("a")))
	assert.EqualValues(t, 4, mustAppend(t, h, convo.User("v")))
	_, err = h.Append(convo.User("w"))
	require.Error(t, err)
	assert.EqualValues(t, 5, mustAppend(t, h, convo.Assistant("b")), "a refused message uses no ID up")
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5}, idsOf(h.Snapshot()))
}

func TestAppend_PairErrors(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	named := convo.ToolCall{ID: "n", Name: "other"}
	user := convo.User("u")
	done := []convo.Message{user, convo.Assistant("", a), convo.Result(a, "1")}
	open := []convo.Message{user, convo.Assistant("", a, b)}
	for _, tt := range []struct {
		name   string
		before []convo.Message
		batch  []convo.Message
		want   convo.PairError
	}{
		{"two calls with one id", nil, []convo.Message{user, convo.Assistant("", a, b, a)}, convo.PairError{Err: convo.ErrDuplicateCall, CallID: "a", Name: "tool", Index: 1}},
		{"result first of all", nil, []convo.Message{convo.Result(a, "x")}, convo.PairError{Err: convo.ErrNoOpenCall, CallID: "a", Name: "tool"}},
		{"result after a user", []convo.Message{user}, []convo.Message{convo.Result(a, "x")}, convo.PairError{Err: convo.ErrNoOpenCall, CallID: "a", Name: "tool"}},
		{"unknown id", open, []convo.Message{convo.Result(a, "x"), convo.Result(callOf("z"), "x")}, convo.PairError{Err: convo.ErrNoOpenCall, CallID: "z", Name: "tool", Index: 1}},
		{"unknown name", open, []convo.Message{resultOf(convo.ToolResult{Name: "other"})}, convo.PairError{Err: convo.ErrNoOpenCall, Name: "other"}},
		{"second result", open, []convo.Message{convo.Result(a, "x"), convo.Result(a, "y")}, convo.PairError{Err: convo.ErrAnswered, CallID: "a", Name: "tool", Index: 1}},
		{"second result later", done, []convo.Message{convo.Result(a, "y")}, convo.PairError{Err: convo.ErrAnswered, CallID: "a", Name: "tool"}},
		{"all answered, no id, no name", done, []convo.Message{resultOf(convo.ToolResult{})}, convo.PairError{Err: convo.ErrNoOpenCall}},
		{"earlier exchange", append(done[:3:3], convo.Assistant("", b)), []convo.Message{convo.Result(a, "y")}, convo.PairError{Err: convo.ErrNoOpenCall, CallID: "a", Name: "tool"}},
		{"user while open", open, []convo.Message{convo.Result(a, "x"), user}, convo.PairError{Err: convo.ErrOpenCalls, CallID: "b", Name: "tool", Index: 1}},
		{"assistant while open", open, []convo.Message{convo.Assistant("x")}, convo.PairError{Err: convo.ErrOpenCalls, CallID: "a", Name: "tool"}},
		{"system while open", open, []convo.Message{convo.System("x")}, convo.PairError{Err: convo.ErrOpenCalls, CallID: "a", Name: "tool"}},
		{"open within the batch", nil, []convo.Message{user, convo.Assistant("", named), convo.Assistant("x")}, convo.PairError{Err: convo.ErrOpenCalls, CallID: "n", Name: "other", Index: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, nil, tt.before...)
			unchanged(t, h, func() {
				id, err := h.Append(tt.batch...)
				assert.Zero(t, id)
				var pair *convo.PairError
				require.ErrorAs(t, err, &pair)
				assert.Equal(t, tt.want, *pair)
				for _, kind := range []error{convo.ErrDuplicateCall, convo.ErrNoOpenCall, convo.ErrAnswered, convo.ErrOpenCalls} {
					assert.Equal(t, kind == tt.want.Err, errors.Is(err, kind), "%v", kind)
				}
			})
		})
	}
}

// What a refused batch had answered is open again, and in the same order.
func TestAppend_AllOrNothing(t *testing.T) {
	for _, n := range []int{4, 100} { // below and above the number that is looked up
		t.Run(fmt.Sprint(n, " calls"), func(t *testing.T) {
			var list []convo.ToolCall
			for i := range n {
				list = append(list, callOf(fmt.Sprint("c", i)))
			}
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("", list...))
			mustAppend(t, h, convo.Result(list[1], "x"))
			bad := []convo.Message{
				convo.System("s"), convo.Result(list[1], "again"), convo.Result(callOf("z"), ""),
				convo.Assistant("early"), {Role: "robot"}, {Role: convo.RoleUser, Parts: []convo.Part{nil}},
				convo.Assistant("", callOf("d"), callOf("d")),
			}
			for _, m := range bad {
				unchanged(t, h, func() {
					_, err := h.Append(convo.Result(list[2], "y"), convo.Result(list[0], "y"), m)
					require.Error(t, err)
					byName := resultOf(convo.ToolResult{Name: "tool"})
					_, err = h.Append(byName, byName, m)
					require.Error(t, err)
					_, err = h.Append(m)
					require.Error(t, err)
				})
			}
			two := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{
				convo.ToolResult{CallID: "c0"}, convo.ToolResult{CallID: "c1"},
			}}
			unchanged(t, h, func() {
				_, err := h.Append(two)
				require.ErrorIs(t, err, convo.ErrAnswered)
			})
			// By name, or with neither id nor name, the first open call is
			// meant: c0, c2, c3.
			for i := range n - 1 {
				id := mustAppend(t, h, resultOf(convo.ToolResult{Name: []string{"tool", ""}[i%2]}))
				e, _ := h.Snapshot().Find(id)
				want := "c0"
				if i > 0 {
					want = fmt.Sprint("c", i+1)
				}
				require.Equal(t, want, e.Message.ToolResults()[0].CallID)
			}
			require.Zero(t, h.Status().OpenCalls)
			mustAppend(t, h, convo.Assistant("done"))
		})
	}
}

func TestAppend_ReusedCallIDs(t *testing.T) {
	c := callOf("call_0")
	h := historyOf(t, nil, convo.User("u"))
	for i := range 5 {
		mustAppend(t, h, convo.Assistant("", c), convo.Result(c, fmt.Sprint("round ", i)))
	}
	assert.Equal(t, 11, h.Len())
	var got []string
	for x := range h.Snapshot().Exchanges() {
		for _, id := range x.IDs()[1:] {
			e, _ := h.Snapshot().Find(id)
			got = append(got, e.Message.Text())
		}
	}
	assert.Equal(t, []string{"round 0", "round 1", "round 2", "round 3", "round 4"}, got)
}

func TestAppend_ResultsFindTheirCall(t *testing.T) {
	x1, x2, y := convo.ToolCall{ID: "1", Name: "x"}, convo.ToolCall{ID: "2", Name: "x"}, convo.ToolCall{ID: "3", Name: "y"}
	for _, tt := range []struct {
		name    string
		results []convo.ToolResult
		want    []string // ids
	}{
		{"in order", []convo.ToolResult{{CallID: "1"}, {CallID: "2"}, {CallID: "3"}}, []string{"1", "2", "3"}},
		{"in any order", []convo.ToolResult{{CallID: "3"}, {CallID: "1"}, {CallID: "2"}}, []string{"3", "1", "2"}},
		{"by name", []convo.ToolResult{{Name: "y"}, {Name: "x"}, {Name: "x"}}, []string{"3", "1", "2"}},
		{"by first open call", []convo.ToolResult{{}, {}, {}}, []string{"1", "2", "3"}},
		{"mixed", []convo.ToolResult{{CallID: "1"}, {Name: "x"}, {}}, []string{"1", "2", "3"}},
		{"the id counts before the name", []convo.ToolResult{{CallID: "3", Name: "x"}, {Name: "x"}, {}}, []string{"3", "1", "2"}},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, together %v", tt.name, together), func(t *testing.T) {
				h := historyOf(t, nil, convo.User("u"), convo.Assistant("", x1, x2, y))
				m := convo.Message{Role: convo.RoleTool}
				for _, r := range tt.results {
					if m.Parts = append(m.Parts, r); !together {
						mustAppend(t, h, resultOf(r))
					}
				}
				if together {
					mustAppend(t, h, m)
				}
				var got []string
				for _, e := range h.Snapshot().All() {
					for _, r := range e.Message.ToolResults() {
						got = append(got, r.CallID)
						assert.NotEmpty(t, r.Name)
					}
				}
				assert.Equal(t, tt.want, got)
				assert.Zero(t, h.Status().OpenCalls)
			})
		}
	}
}

func TestAppend_EmptyResultIsAnAnswer(t *testing.T) {
	c := callOf("c")
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", c), convo.Result(c, ""))
	assert.Zero(t, h.Status().OpenCalls)
	mustAppend(t, h, convo.Assistant("nothing came"))
}

// 20,000 calls of one message answered from the last to the first: looking
// through them all for each result would take minutes.
func TestAppend_ManyCallsAnsweredInReverse(t *testing.T) {
	const n = 20_000
	list := make([]convo.ToolCall, n)
	for i := range list {
		list[i] = convo.ToolCall{ID: fmt.Sprint("c", i), Name: "t"}
	}
	h := historyOf(t, bare(), convo.User("u"), convo.Assistant("", list...))
	for _, c := range slices.Backward(list[n/2:]) {
		mustAppend(t, h, convo.Result(c, "x"))
	}
	batch := make([]convo.Message, 0, n/2)
	for _, c := range slices.Backward(list[:n/2]) {
		batch = append(batch, convo.Result(c, "x"))
	}
	mustAppend(t, h, batch...)
	assert.Zero(t, h.Status().OpenCalls)
	assert.Equal(t, n+2, h.Len())
	exchanges := 0
	for range h.Snapshot().Exchanges() {
		exchanges++
	}
	assert.Equal(t, 2, exchanges)
}

func TestAppend_CopiesWhatItIsGiven(t *testing.T) {
	m := convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("one"), convo.Text("two")}}
	inner := []convo.Part{convo.Text("result")}
	c := callOf("c")
	h := historyOf(t, nil, m, convo.Assistant("", c), resultOf(convo.ToolResult{CallID: "c", Parts: inner}))
	before := stateOf(t, h)
	m.Parts[0], inner[0] = convo.Text("changed"), convo.Text("changed")
	e, _ := h.Snapshot().At(0)
	e.Message.Parts[1] = convo.Text("changed")
	h.Snapshot().Messages()[2].Parts[0].(convo.ToolResult).Parts[0] = convo.Text("changed")
	assert.Equal(t, before, stateOf(t, h))
}

func TestAnswerOpenCalls(t *testing.T) {
	a, b, c := callOf("a"), callOf("b"), callOf("c")
	for _, tt := range []struct{ name, reason, want string }{
		{"with a reason", "timed out", "timed out"},
		{"without", "", "no result"},
		{"invalid UTF-8", "bad \xff", "bad \uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, nil, convo.User("u"), convo.Assistant("", a, b, c), convo.Result(b, "ok"))
			n, err := h.AnswerOpenCalls(tt.reason)
			require.NoError(t, err)
			assert.Equal(t, 2, n)
			e, _ := h.Snapshot().Find(5)
			r := e.Message.ToolResults()[0]
			assert.Equal(t, convo.ToolResult{CallID: "c", Name: "tool", Parts: []convo.Part{convo.Text(tt.want)}, IsError: true}, r)
			unchanged(t, h, func() {
				n, err = h.AnswerOpenCalls("again")
				require.NoError(t, err)
				assert.Zero(t, n)
			})
			mustAppend(t, h, convo.Assistant("on"))
		})
	}
}

// changesOf are all the ways to change a History; each is valid for one that
// is open and holds entry 1.
func changesOf(h *convo.History) map[string]func() error {
	at := h.Snapshot()
	return map[string]func() error{
		"Append":          func() error { _, err := h.Append(convo.User("u")); return err },
		"Append nothing":  func() error { _, err := h.Append(); return err },
		"AnswerOpenCalls": func() error { _, err := h.AnswerOpenCalls(""); return err },
		"SetSystem":       func() error { return h.SetSystem(convo.System("s")) },
		"SetEphemeral":    func() error { return h.SetEphemeral(convo.User("e")) },
		"SetLimits":       func() error { return h.SetLimits(convo.Limits{}) },
		"SetModel":        func() error { return h.SetModel("m") },
		"Pin":             func() error { return h.Pin(1) },
		"Unpin":           func() error { return h.Unpin(1) },
		"PinLast":         func() error { return h.PinLast() },
		"Rollback":        func() error { return h.Rollback(at) },
		"Rewind":          func() error { _, err := h.Rewind(1); return err },
		"Apply":           func() error { _, err := h.Apply(at, convo.Edit{Drop: []convo.ID{1}}); return err },
		"SplicePrefix":    func() error { _, err := h.SplicePrefix(at, 1, "s"); return err },
		"RecordUsage":     func() error { return h.RecordUsage(at, convo.Usage{Input: 1}) },
	}
}

func TestHistory_ZeroIsEmptyAndClosed(t *testing.T) {
	var h convo.History
	for name, change := range changesOf(&h) {
		t.Run(name, func(t *testing.T) { assert.ErrorIs(t, change(), convo.ErrClosed) })
	}
	assert.Zero(t, h.Len())
	assert.Zero(t, h.Status())
	assert.Zero(t, h.Tokens())
	assert.Empty(t, h.Pinned())
	assert.Empty(t, h.Snapshot().Messages())
	assert.NotEmpty(t, h.String())
	assert.NoError(t, h.Close())
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	mustAppend(t, fork, convo.User("u"))
}

func TestHistory_Closed(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.Pin(2))
	changes := changesOf(h)
	before := stateOf(t, h)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	for name, change := range changes {
		t.Run(name, func(t *testing.T) { assert.ErrorIs(t, change(), convo.ErrClosed) })
	}
	assert.Equal(t, before, stateOf(t, h))
	assert.Equal(t, []convo.ID{2}, h.Pinned())
	_, err := convo.Restore(h.Snapshot(), nil)
	assert.NoError(t, err)
}

// Each way that runs code of the caller, and what becomes of a panic there.
func TestHistory_PanicsChangeNothing(t *testing.T) {
	boom := errors.New("boom")
	armed := false
	fuse := func() {
		if armed {
			panic(boom)
		}
	}
	image := convo.User("look", convo.NewMedia("image/png", []byte("x")))
	count := convo.TokenizerFunc(func(s string) int { fuse(); return len(s) })
	for _, tt := range []struct {
		name   string
		opts   convo.Options
		change func(h *convo.History) error
	}{
		{"tokenizer, Append", convo.Options{Tokenizer: count}, func(h *convo.History) error { _, err := h.Append(convo.Assistant("x")); return err }},
		{"media, Append", convo.Options{Overheads: convo.Overheads{Media: func(convo.Media) int { fuse(); return 1 }}},
			func(h *convo.History) error { _, err := h.Append(convo.Assistant("x"), image); return err }},
		{"pin, Append", convo.Options{Pin: func(convo.Message) bool { fuse(); return true }}, func(h *convo.History) error { _, err := h.Append(convo.Assistant("x")); return err }},
		{"tokenizer, SetSystem", convo.Options{Tokenizer: count}, func(h *convo.History) error { return h.SetSystem(convo.System("x")) }},
		{"tokenizer, SetEphemeral", convo.Options{Tokenizer: count}, func(h *convo.History) error { return h.SetEphemeral(convo.User("x")) }},
		{"tokenizer, AnswerOpenCalls", convo.Options{Tokenizer: count}, func(h *convo.History) error { _, err := h.AnswerOpenCalls("x"); return err }},
		{"tokenizer, summary", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Summary: &convo.Summary{Text: "x"}})
			return err
		}},
		{"tokenizer, clear", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			return err
		}},
		{"tokenizer, With", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := h.Snapshot().With(convo.Edit{Clear: []convo.Clear{{ID: 4}}})
			return err
		}},
		{"tokenizer, Restore", convo.Options{Tokenizer: count}, func(h *convo.History) error {
			_, err := convo.Restore(h.Snapshot(), &convo.Options{Tokenizer: count})
			return err
		}},
		{"spill, Append", convo.Options{MaxResult: 256, Spill: func(convo.ToolResult) (string, error) { fuse(); return "", nil }}, func(h *convo.History) error {
			_, err := h.Append(convo.Assistant("", callOf("c")), convo.Result(callOf("c"), strings.Repeat("x", 300)))
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			armed = false
			h := tour(t, &tt.opts)
			unchanged(t, h, func() {
				armed = true
				err := tt.change(h)
				armed = false
				var p *convo.PanicError
				require.ErrorAs(t, err, &p)
				assert.Equal(t, boom, p.Value)
				assert.ErrorIs(t, err, boom)
				assert.NotEmpty(t, p.In)
			})
			mustAppend(t, h, convo.Assistant("goes on"))
		})
	}
	t.Run("New", func(t *testing.T) {
		armed = true
		h, err := convo.New(&convo.Options{Tokenizer: count})
		armed = false
		assert.Nil(t, h)
		assert.ErrorIs(t, err, boom)
	})
}

// No lock is held while code of the caller runs.
func TestHistory_CallbacksMayCallBack(t *testing.T) {
	var h *convo.History
	calls := 0
	read := func() {
		if h != nil {
			calls++
			h.Status()
			h.Snapshot().Messages()
			_ = h.SetModel(fmt.Sprint("model ", calls))
		}
	}
	opts := &convo.Options{
		Tokenizer:    convo.TokenizerFunc(func(s string) int { read(); return len(s) }),
		Pin:          func(convo.Message) bool { read(); return false },
		Spill:        func(convo.ToolResult) (string, error) { read(); return "ref", nil },
		Overheads:    convo.Overheads{Media: func(convo.Media) int { read(); return 1 }},
		OnCompaction: func(convo.Report) { read() },
	}
	h = tour(t, opts)
	mustAppend(t, h, convo.Assistant("x"), convo.User("y", convo.NewMedia("image/png", []byte("z"))))
	require.NoError(t, h.SetSystem(convo.System("s")))
	require.NoError(t, h.SetEphemeral(convo.User("e")))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}, Clear: []convo.Clear{{ID: 4}}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	require.NoError(t, h.Rollback(h.Snapshot()))
	_, err = h.AnswerOpenCalls("x")
	require.NoError(t, err)
	assert.Greater(t, calls, 10)
}

func TestHistory_StrangeCounts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count int
		over  convo.Overheads
	}{
		{name: "negative", count: -5},
		{name: "smallest", count: math.MinInt},
		{name: "largest", count: math.MaxInt},
		{name: "huge overheads", over: convo.Overheads{Message: math.MaxInt, Call: math.MaxInt, Result: math.MaxInt}},
		{name: "negative media", over: convo.Overheads{Media: func(convo.Media) int { return math.MinInt }}},
		{name: "huge media", over: convo.Overheads{Media: func(convo.Media) int { return math.MaxInt }}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := &convo.Options{
				Tokenizer: convo.TokenizerFunc(func(string) int { return tt.count }), Overheads: tt.over,
				Limits: convo.Limits{Window: 1000, Overhead: math.MaxInt}, Budget: convo.NewBudget(100),
			}
			h := tour(t, opts)
			last := h.Status()
			for range 100 {
				mustAppend(t, h, convo.Assistant("x"), convo.User("y", convo.NewMedia("image/png", []byte("z"))))
				s := h.Status()
				require.GreaterOrEqual(t, s.Tokens, last.Tokens)
				require.GreaterOrEqual(t, s.Upper, s.Tokens)
				require.GreaterOrEqual(t, s.Appended, 0)
				require.GreaterOrEqual(t, opts.Budget.Used(), 0)
				last = s
			}
			require.NoError(t, h.Close())
			assert.Zero(t, opts.Budget.Used())
		})
	}
}
