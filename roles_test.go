package convo_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// after returns a History whose newest message has the role.
func after(t *testing.T, role convo.Role, roles convo.RolePolicy) *convo.History {
	t.Helper()
	c := callOf("c")
	user := []convo.Message{convo.User("u")}
	msgs := map[convo.Role][]convo.Message{
		convo.RoleNone:      nil,
		convo.RoleSystem:    {convo.System("s")},
		convo.RoleUser:      user,
		convo.RoleAssistant: append(user, convo.Assistant("a")),
		convo.RoleTool:      append(user, convo.Assistant("", c), convo.Result(c, "r")),
	}[role]
	h := historyOf(t, nil, msgs...)
	h, err := convo.Restore(h.Snapshot(), &convo.Options{Roles: roles})
	require.NoError(t, err)
	return h
}

func TestAppend_Neighbours(t *testing.T) {
	const n, s, u, a, r = convo.RoleNone, convo.RoleSystem, convo.RoleUser, convo.RoleAssistant, convo.RoleTool
	prefill := convo.Strict()
	prefill.AssistantAfter = append(prefill.AssistantAfter, a)
	noUser := convo.RolePolicy{UserAfter: []convo.Role{n, s}}
	type pairs map[convo.Role][]convo.Role // what may follow what
	for _, tt := range []struct {
		name  string
		roles convo.RolePolicy
		next  pairs
	}{
		{"zero", convo.RolePolicy{}, pairs{n: {s, u}, s: {s, u}, u: {a}, a: {u}, r: {u, a}}},
		{"strict", convo.Strict(), pairs{n: {s, u}, s: {s, u}, u: {a}, a: {u}, r: {u, a}}},
		{"relaxed", convo.Relaxed(), pairs{n: {s, u, a}, s: {s, u, a}, u: {u, a}, a: {u, a}, r: {u, a}}},
		{"prefill", prefill, pairs{n: {s, u}, s: {s, u}, u: {a}, a: {u, a}, r: {u, a}}},
		{"users only first", noUser, pairs{n: {s, u}, s: {s, u}, u: {a}, r: {a}}},
	} {
		for _, prev := range []convo.Role{n, s, u, a, r} {
			for _, next := range []convo.Role{s, u, a, r} {
				t.Run(tt.name+"/"+string(prev)+" then "+string(next), func(t *testing.T) {
					h := after(t, prev, tt.roles)
					msg := map[convo.Role]convo.Message{
						s: convo.System("x"), u: convo.User("x"), a: convo.Assistant("x"), r: convo.Result(callOf("c"), "x"),
					}[next]
					allowed := false
					for _, role := range tt.next[prev] {
						allowed = allowed || role == next
					}
					if allowed {
						mustAppend(t, h, msg)
						return
					}
					unchanged(t, h, func() {
						id, err := h.Append(msg)
						assert.Zero(t, id)
						if next == r {
							var pair *convo.PairError
							require.ErrorAs(t, err, &pair)
							return
						}
						var role *convo.RoleError
						require.ErrorAs(t, err, &role)
						assert.Equal(t, convo.RoleError{Attempted: next, Previous: prev}, *role)
					})
				})
			}
		}
	}
}

func TestAppend_UserAfterUserIsRefused(t *testing.T) {
	h := historyOf(t, nil, convo.User("hello"))
	_, err := h.Append(convo.User("hello?"))
	require.ErrorContains(t, err, "Rewind(1)")
	taken, err := h.Rewind(1)
	require.NoError(t, err)
	require.Equal(t, 1, taken)
	mustAppend(t, h, convo.User("hello?"))
}

func TestAppend_SystemFurtherOnNamesSetSystem(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"))
	_, err := h.Append(convo.System("s"))
	require.ErrorContains(t, err, "SetSystem")
}

func TestAppend_RoleErrorNamesThePlaceInTheBatch(t *testing.T) {
	h := historyOf(t, nil)
	_, err := h.Append(convo.System("s"), convo.User("u"), convo.Assistant("a"), convo.Assistant("b"))
	var role *convo.RoleError
	require.ErrorAs(t, err, &role)
	assert.Equal(t, convo.RoleError{Attempted: convo.RoleAssistant, Previous: convo.RoleAssistant, Index: 3}, *role)
	assert.Zero(t, h.Len())
}

func TestAppend_SummaryAndEphemeralAreNobodysNeighbours(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.SetEphemeral(convo.User("it rains")))
	_, err := h.SplicePrefix(h.Snapshot(), 9, "a tour")
	require.NoError(t, err)
	_, err = h.Append(convo.User("no"))
	require.Error(t, err)
	mustAppend(t, h, convo.Assistant("yes"), convo.User("more"))
}

func TestAppend_TablesAreCopied(t *testing.T) {
	roles := convo.Strict()
	h := historyOf(t, &convo.Options{Roles: roles}, convo.User("u"))
	roles.UserAfter[0], roles.UserAfter[1] = convo.RoleUser, convo.RoleUser
	_, err := h.Append(convo.User("v"))
	require.Error(t, err)
}

func TestNew_UnknownRolesInATable(t *testing.T) {
	_, err := convo.New(&convo.Options{Roles: convo.RolePolicy{
		UserAfter:      []convo.Role{"robot"},
		AssistantAfter: []convo.Role{convo.RoleUser, "ghost"},
	}})
	assert.ElementsMatch(t, []string{"Options.Roles.UserAfter", "Options.Roles.AssistantAfter"}, valueErrors(t, err))
}

// A user message that interrupts a tool round answers the open calls in the same
// step.
func TestAppend_Interrupt(t *testing.T) {
	a, b, c := callOf("a"), callOf("b"), callOf("c")
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()},
		convo.User("u"), convo.Assistant("", a, b, c), convo.Result(b, "done"))
	id := mustAppend(t, h, convo.User("stop"), convo.Assistant("stopped"))
	assert.EqualValues(t, 7, id)
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6, 7}, idsOf(h.Snapshot()))
	for i, want := range []string{"a", "c"} {
		e, ok := h.Snapshot().Find(convo.ID(4 + i))
		require.True(t, ok)
		r := e.Message.ToolResults()[0]
		assert.Equal(t, want, r.CallID)
		assert.Equal(t, "tool", r.Name)
		assert.True(t, r.IsError)
		assert.Equal(t, "interrupted by the user", r.Text())
		assert.Equal(t, 1, e.Turn)
	}
	for x := range h.Snapshot().Exchanges() {
		if x.First == 2 {
			assert.EqualValues(t, 5, x.Last, "the answers belong to the exchange")
		}
	}
	assert.Zero(t, h.Status().OpenCalls)
}

func TestAppend_InterruptWeighsWhatAResultWeighs(t *testing.T) {
	a := callOf("a")
	for _, opts := range []convo.Options{{}, *bare(), {Tokenizer: byBytes}} {
		opts.Roles = convo.Relaxed()
		h := historyOf(t, &opts, convo.User("u"), convo.Assistant("", a))
		mustAppend(t, h, convo.User("stop"))
		answer := convo.ToolResult{CallID: "a", Name: "tool", Parts: []convo.Part{convo.Text("interrupted by the user")}, IsError: true}
		same := historyOf(t, &opts, convo.User("u"), convo.Assistant("", a),
			convo.Message{Role: convo.RoleTool, Parts: []convo.Part{answer}}, convo.User("stop"))
		assert.Equal(t, same.Tokens(), h.Tokens())
	}
}

func TestAppend_InterruptRules(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	open := []convo.Message{convo.User("u"), convo.Assistant("", a, b)}
	for _, tt := range []struct {
		name   string
		before []convo.Message
		batch  []convo.Message
		err    error
		callID string
		index  int
	}{
		{"further on in the batch", nil, append(open[:2:2], convo.User("v")), convo.ErrOpenCalls, "a", 2},
		{"after a result of the batch", open, []convo.Message{convo.Result(a, ""), convo.User("v")}, convo.ErrOpenCalls, "b", 1},
		{"late result in the batch", open, []convo.Message{convo.User("v"), convo.Result(a, "late")}, convo.ErrNoOpenCall, "a", 1},
		{"late result in the next", append(open[:2:2], convo.Result(a, ""), convo.Result(b, ""), convo.User("v")),
			[]convo.Message{convo.Result(a, "late")}, convo.ErrNoOpenCall, "a", 0},
		{"an assistant message does not interrupt", open, []convo.Message{convo.Assistant("x")}, convo.ErrOpenCalls, "a", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, tt.before...)
			unchanged(t, h, func() {
				_, err := h.Append(tt.batch...)
				var pair *convo.PairError
				require.ErrorAs(t, err, &pair)
				assert.ErrorIs(t, err, tt.err)
				assert.Equal(t, tt.callID, pair.CallID)
				assert.Equal(t, tt.index, pair.Index)
			})
		})
	}
}

func TestAppend_RefusedInterruptLeavesTheCallsOpen(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.User("u"), convo.Assistant("", a, b))
	unchanged(t, h, func() {
		_, err := h.Append(convo.User("v"), convo.System("s"))
		require.Error(t, err)
	})
	assert.EqualValues(t, 4, mustAppend(t, h, convo.Result(b, "1"), convo.Result(a, "2")))
	assert.EqualValues(t, 5, mustAppend(t, h, convo.User("v")))
}

func TestAppend_StrictDoesNotInterrupt(t *testing.T) {
	h := historyOf(t, nil, convo.User("u"), convo.Assistant("", callOf("a")))
	_, err := h.Append(convo.User("v"))
	require.ErrorIs(t, err, convo.ErrOpenCalls)
}

func TestAppend_KeepEmpty(t *testing.T) {
	empty := map[string]convo.Message{
		"user without parts":      {Role: convo.RoleUser},
		"user with empty text":    {Role: convo.RoleUser, Parts: []convo.Part{convo.Text("")}},
		"system without parts":    convo.System(""),
		"assistant without parts": convo.Assistant(""),
	}
	for name, m := range empty {
		t.Run(name, func(t *testing.T) {
			strict := historyOf(t, nil)
			_, err := strict.Append(convo.System("s"), m)
			var fault *convo.MessageError
			require.ErrorAs(t, err, &fault)
			assert.Equal(t, 1, fault.Index)
			assert.Equal(t, -1, fault.Part)

			relaxed := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, m)
			assert.Equal(t, 1, relaxed.Len())
			assert.Len(t, relaxed.Snapshot().Messages(), 1)
		})
	}
}

// A user message that interrupts a tool round is checked behind the answers: a
// table that allows it only there, and not behind the calls, accepts it.
func TestAppend_InterruptUnderACustomTable(t *testing.T) {
	roles := convo.RolePolicy{UserAfter: []convo.Role{convo.RoleNone, convo.RoleTool}, Interrupt: true}
	h := historyOf(t, &convo.Options{Roles: roles}, convo.User("u"), convo.Assistant("", callOf("a")))
	mustAppend(t, h, convo.User("stop"))
	assert.Equal(t, []convo.ID{1, 2, 3, 4}, idsOf(h.Snapshot()))
	mustAppend(t, h, convo.Assistant("stopped"))
	_, err := h.Append(convo.User("more"))
	require.Error(t, err, "there was nothing to answer")
}

// Each call of Relaxed returns a table of its own.
func TestRelaxed_TablesAreApart(t *testing.T) {
	p := convo.Relaxed()
	want := slices.Clone(p.AssistantAfter)
	clear(p.UserAfter)
	assert.Equal(t, want, p.AssistantAfter)
}
