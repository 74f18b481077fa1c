package convo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
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

// open returns the calls without a result that one could answer.
func (r *round) open(answered []bool, id, name string) (open []int) {
	for i, c := range r.calls {
		if !answered[i] && (id == c.ID || id == "" && (name == "" || name == c.Name)) {
			open = append(open, i)
		}
	}
	return open
}

// match returns the call that each result of a batch answers, or why one answers
// none: those with an ID first, then those of a tool that has as many results as
// open calls, and then the others in the order of the calls.
func (r *round) match(batch []convo.ToolResult) (matched []int, err error) {
	answered := slices.Clone(r.answered)
	matched = make([]int, len(batch))
	take := func(k, i int) { matched[k], answered[i] = i, true }
	withoutID := map[string]int{} // results without an ID, by name
	sum := 0
	for k, res := range batch {
		open := r.open(answered, res.CallID, "")
		switch {
		case res.CallID == "":
			withoutID[res.Name]++
			sum++
		case len(open) > 0:
			take(k, open[0])
		case slices.ContainsFunc(r.calls, func(c convo.ToolCall) bool { return c.ID == res.CallID }):
			return nil, convo.ErrAnswered
		default:
			return nil, convo.ErrNoOpenCall
		}
	}
	few := sum < len(r.open(answered, "", ""))
	var others []int // results
	toolOpen := map[string]int{}
	for name := range withoutID {
		toolOpen[name] = len(r.open(answered, "", name))
	}
	for k, res := range batch {
		switch {
		case res.CallID != "":
		case res.Name == "" || toolOpen[res.Name] > withoutID[res.Name]:
			others = append(others, k)
		default:
			open := r.open(answered, "", res.Name)
			if len(open) == 0 {
				return nil, convo.ErrNoOpenCall
			}
			take(k, open[0])
		}
	}
	for _, k := range others {
		open := r.open(answered, "", "")
		switch name := batch[k].Name; {
		case len(open) == 0:
			return nil, convo.ErrNoOpenCall
		case few, name != "" && r.calls[open[0]].Name != name:
			return nil, convo.ErrAmbiguous
		}
		take(k, open[0])
	}
	return matched, nil
}

// Results pair with calls by the plain rule, and a batch that is refused leaves all
// calls as they were, for few calls and for many.
func TestAppend_ResultsAgainstThePlainRule(t *testing.T) {
	rounds := long.Or(10, 30)
	outcomes := map[error]int{}
	for _, n := range []int{7, 32, 33, 100} {
		rng := rand.New(rand.NewPCG(7, uint64(n)))
		for range rounds {
			r := roundOf(t, n)
			for open := n; open > 0; {
				var results []convo.ToolResult
				most := 1 + rng.IntN(4)
				whole := rng.IntN(8) == 0 // answers everything
				for i := range n {
					if c := r.calls[i]; whole && !r.answered[i] {
						results = append(results, convo.ToolResult{CallID: c.ID, Name: c.Name})
					}
				}
				for !whole && len(results) < most {
					c := r.calls[rng.IntN(n)]
					results = append(results, convo.ToolResult{CallID: c.ID, Name: c.Name})
				}
				rng.Shuffle(len(results), func(i, k int) { results[i], results[k] = results[k], results[i] })
				var batch []convo.Message
				for k := range results {
					res := &results[k]
					res.Parts = []convo.Part{convo.Text("done")}
					switch rng.IntN(8) {
					case 0, 1:
						res.CallID = ""
					case 2:
						res.CallID, res.Name = "", ""
					case 3:
						if !whole {
							res.CallID = "unknown"
						}
					}
					if k > 0 && rng.IntN(2) == 0 { // in one message with the one before
						m := &batch[len(batch)-1]
						m.Parts = append(m.Parts, *res)
						continue
					}
					batch = append(batch, resultOf(*res))
				}
				matched, want := r.match(results)
				_, err := r.h.Append(batch...)
				require.ErrorIs(t, err, want, "of %d calls", n)
				outcomes[want]++
				if err == nil {
					open -= len(matched)
					var got []string
					s := r.h.Snapshot()
					for i := s.Len() - len(batch); i < s.Len(); i++ {
						e, _ := s.At(i)
						for _, res := range e.Message.ToolResults() {
							got = append(got, res.CallID)
						}
					}
					for k, i := range matched {
						r.answered[i] = true
						require.Equal(t, r.calls[i].ID, got[k])
					}
				}
				require.Equal(t, open, r.h.Status().OpenCalls)
				if left := r.open(r.answered, "", ""); len(left) > 0 {
					var pair *convo.PairError
					_, err := r.h.Append(convo.User("and now?"))
					require.ErrorAs(t, err, &pair)
					require.Equal(t, r.calls[left[0]].ID, pair.CallID, "the first open call")
				}
			}
		}
	}
	for _, want := range []error{nil, convo.ErrAnswered, convo.ErrNoOpenCall, convo.ErrAmbiguous} {
		assert.Greater(t, outcomes[want], 2*rounds, "%v", want)
	}
}

// Results that one Append brings in the order of their calls, each with its ID, its
// name or neither, for all calls or some, answer their own calls, or are refused.
func TestAppend_ResultsInOrderAnswerTheirCalls(t *testing.T) {
	accepted, refused := 0, 0
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rng.IntN(5)
		if seed%100 == 0 {
			n = 40 // more than are searched one by one
		}
		var calls []convo.ToolCall
		for i := range n {
			calls = append(calls, convo.ToolCall{ID: fmt.Sprint("id", i), Name: string(rune('a' + rng.IntN(1+int(seed%3)))), Arguments: "{}"})
		}
		var batch []convo.Message
		var said strings.Builder
		whole := rng.IntN(2) == 0
		for _, c := range calls {
			if !whole && rng.IntN(3) == 0 {
				continue
			}
			r := convo.ToolResult{Parts: []convo.Part{convo.Text(c.ID)}}
			switch rng.IntN(3) {
			case 0:
				r.CallID = c.ID
			case 1:
				r.Name = c.Name
			}
			said.WriteString(fmt.Sprintf(" %s: id %q, name %q;", c.ID, r.CallID, r.Name))
			batch = append(batch, resultOf(r))
		}
		if len(batch) == 0 {
			continue
		}
		h := historyOf(t, nil, convo.User("go"), convo.Assistant("", calls...))
		if _, err := h.Append(batch...); err != nil {
			require.ErrorIs(t, err, convo.ErrAmbiguous)
			require.False(t, whole, "all calls have their results, in order: %s", said.String())
			refused++
			continue
		}
		accepted++
		for _, m := range h.Snapshot().Messages() {
			for _, r := range m.ToolResults() {
				require.Equal(t, r.Text(), r.CallID, "seed %d:%s", seed, said.String())
			}
		}
	}
	assert.Greater(t, accepted, 1000)
	assert.Greater(t, refused, 300)
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
		{"no id, several calls", open, []convo.Message{convo.Result(a, "x"), resultOf(convo.ToolResult{Name: "other"})}, convo.PairError{Err: convo.ErrNoOpenCall, Name: "other", Index: 1}},
		{"no id, one of two calls", open, []convo.Message{resultOf(convo.ToolResult{Name: "tool"})}, convo.PairError{Err: convo.ErrAmbiguous, Name: "tool", Calls: []string{"a", "b"}}},
		{"no id, later in a run", append(done[:3:3], convo.Assistant("", a, b, named)), []convo.Message{convo.Result(named, "x"), resultOf(convo.ToolResult{})}, convo.PairError{Err: convo.ErrAmbiguous, Calls: []string{"a", "b"}, Index: 1}},
		{"no id, not in order", []convo.Message{user, convo.Assistant("", a, named, b)}, []convo.Message{resultOf(convo.ToolResult{}), resultOf(convo.ToolResult{Name: "tool"}), resultOf(convo.ToolResult{})}, convo.PairError{Err: convo.ErrAmbiguous, Name: "tool", Calls: []string{"a", "b"}, Index: 1}},
		{"no id, the calls of its name before it", []convo.Message{user, convo.Assistant("", a, b, named)}, []convo.Message{resultOf(convo.ToolResult{}), resultOf(convo.ToolResult{}), resultOf(convo.ToolResult{Name: "tool"})}, convo.PairError{Err: convo.ErrAmbiguous, Name: "tool", Calls: []string{"a", "b"}, Index: 2}},
		{"no id, then a user", open, []convo.Message{resultOf(convo.ToolResult{Name: "tool"}), user}, convo.PairError{Err: convo.ErrAmbiguous, Name: "tool", Calls: []string{"a", "b"}}},
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
				for _, kind := range []error{convo.ErrDuplicateCall, convo.ErrNoOpenCall, convo.ErrAnswered, convo.ErrAmbiguous, convo.ErrOpenCalls} {
					isKind := kind == tt.want.Err || kind == convo.ErrNoOpenCall && tt.want.Err == convo.ErrAnswered
					assert.Equal(t, isKind, errors.Is(err, kind), "%v", kind)
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
		{"by the only name", []convo.ToolResult{{Name: "y"}, {CallID: "1"}, {Name: "x"}}, []string{"3", "1", "2"}},
		{"mixed", []convo.ToolResult{{CallID: "1"}, {Name: "x"}, {}}, []string{"1", "2", "3"}},
		{"the id counts before the name", []convo.ToolResult{{CallID: "3", Name: "x"}, {CallID: "1"}, {}}, []string{"3", "1", "2"}},
		{"by name, together", []convo.ToolResult{{Name: "y"}, {Name: "x"}, {Name: "x"}}, []string{"3", "1", "2"}},
		{"neither id nor name, together", []convo.ToolResult{{}, {}, {}}, []string{"1", "2", "3"}},
		{"the ids of later results count, together", []convo.ToolResult{{}, {CallID: "3"}, {Name: "x"}}, []string{"1", "3", "2"}},
		{"a name after none, together", []convo.ToolResult{{}, {Name: "x"}, {Name: "y"}}, []string{"1", "2", "3"}},
		{"a tool that is answered in full, together", []convo.ToolResult{{Name: "y"}, {}, {Name: "x"}}, []string{"3", "1", "2"}},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in one message %v", tt.name, together), func(t *testing.T) {
				if !together && (strings.Contains(tt.name, "together")) {
					h := historyOf(t, nil, convo.User("u"), convo.Assistant("", x1, x2, y))
					var pair *convo.PairError
					for _, r := range tt.results {
						if _, err := h.Append(resultOf(r)); err != nil {
							require.ErrorAs(t, err, &pair)
							break
						}
					}
					require.ErrorIs(t, pair, convo.ErrAmbiguous)
					assert.Contains(t, pair.Error(), `calls ["1" "2"`, "the error names the calls")
					return
				}
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
