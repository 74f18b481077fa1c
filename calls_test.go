package convo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A round is an exchange of n calls, every third with the same name, and the
// simple rule for which call a result answers.
type round struct {
	h        *convo.History
	calls    []convo.ToolCall
	answered []bool
}

func roundOf(t *testing.T, n int) *round {
	r := &round{answered: make([]bool, n)}
	parts := make([]convo.Part, n)
	for i := range parts {
		c := convo.ToolCall{ID: fmt.Sprintf("c%d", i), Name: fmt.Sprintf("tool%d", i%3), Arguments: "{}"}
		parts[i], r.calls = c, append(r.calls, c)
	}
	r.h = historyOf(t, nil, convo.User("go"), convo.Message{Role: convo.RoleAssistant, Parts: parts})
	return r
}

// match returns the call that a result answers, or why it answers none.
func (r *round) match(answered []bool, id, name string) (int, error) {
	err := convo.ErrNoOpenCall
	for i, c := range r.calls {
		if id == c.ID || id == "" && (name == "" || name == c.Name) {
			if !answered[i] {
				return i, nil
			}
			if id != "" {
				err = convo.ErrAnswered
			}
		}
	}
	return -1, err
}

// A result answers the first open call with its id, and a batch that is refused
// leaves all calls as they were, for few calls and for many.
func TestAppend_ResultsAgainstThePlainRule(t *testing.T) {
	for _, n := range []int{7, 32, 33, 100} {
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		refused, taken := 0, 0
		for range 30 {
			r := roundOf(t, n)
			open := n
			for open > 0 {
				var batch []convo.Message
				var want error
				var matched []int
				after := append([]bool(nil), r.answered...)
				for range 1 + rng.IntN(4) {
					c := r.calls[rng.IntN(n)]
					res := convo.ToolResult{CallID: c.ID, Name: c.Name, Parts: []convo.Part{convo.Text("done")}}
					switch rng.IntN(8) {
					case 0:
						res.CallID = ""
					case 1:
						res.CallID, res.Name = "", ""
					case 2:
						res.CallID = "unknown"
					}
					batch = append(batch, convo.Message{Role: convo.RoleTool, Parts: []convo.Part{res}})
					if want == nil {
						var i int
						if i, want = r.match(after, res.CallID, res.Name); want == nil {
							after[i], matched = true, append(matched, i)
						}
					}
				}
				_, err := r.h.Append(batch...)
				require.ErrorIs(t, err, want, "of %d calls", n)
				if err == nil {
					r.answered, open = after, open-len(matched)
					s := r.h.Snapshot()
					for k, i := range matched {
						e, _ := s.At(s.Len() - len(matched) + k)
						require.Equal(t, r.calls[i].ID, e.Message.Parts[0].(convo.ToolResult).CallID)
					}
					taken++
				} else {
					refused++
				}
				require.Equal(t, open, r.h.Status().OpenCalls)
				if i, err := r.match(r.answered, "", ""); err == nil {
					var pair *convo.PairError
					_, err := r.h.Append(convo.User("and now?"))
					require.ErrorAs(t, err, &pair)
					require.Equal(t, r.calls[i].ID, pair.CallID, "the first open call")
				}
			}
		}
		assert.Positive(t, refused)
		assert.Positive(t, taken)
	}
}

// Refusing a batch of results costs the same for any number of calls, answered
// or not.
func TestAppend_RefusedResultsCostTheSameAtAnyLength(t *testing.T) {
	cost := func(n int) float64 {
		r := roundOf(t, n)
		for _, c := range r.calls[1:] {
			mustAppend(t, r.h, convo.Result(c, "done"))
		}
		first, bad := convo.Result(r.calls[0], "done"), convo.Result(callOf("unknown"), "done")
		return testing.AllocsPerRun(20, func() {
			_, err := r.h.Append(first, bad)
			assert.ErrorIs(t, err, convo.ErrNoOpenCall)
		})
	}
	few, many := cost(40), cost(4000)
	t.Logf("%.0f allocations with 40 calls, %.0f with 4,000", few, many)
	assert.LessOrEqual(t, many, few+2)
}

// resultOf returns a tool message with one result.
func resultOf(r convo.ToolResult) convo.Message {
	return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{r}}
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

// The 20,000 calls of one message are answered from the last to the first. If
// each result looked through all calls, this would take minutes.
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
