package convo_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
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
	if role == convo.RoleUser || role == convo.RoleTool {
		return historyOf(t, &convo.Options{Roles: roles}, msgs...) // after Restore its request counts as failed
	}
	h, err := convo.Restore(historyOf(t, nil, msgs...).Snapshot(), &convo.Options{Roles: roles})
	require.NoError(t, err)
	return h
}

func TestAppend_Neighbours(t *testing.T) {
	const n, s, u, a, r = convo.RoleNone, convo.RoleSystem, convo.RoleUser, convo.RoleAssistant, convo.RoleTool
	prefill := convo.RolePolicy{AssistantAfter: []convo.Role{u, r, a}}
	noUser := convo.RolePolicy{UserAfter: []convo.Role{n, s}}
	type pairs map[convo.Role][]convo.Role // what may follow what
	for _, tt := range []struct {
		name  string
		roles convo.RolePolicy
		next  pairs
	}{
		{"zero", convo.RolePolicy{}, pairs{n: {s, u}, s: {s, u}, u: {s, a}, a: {s, u}, r: {s, u, a}}},
		{"as the zero one", convo.RolePolicy{UserAfter: []convo.Role{n, s, a, r}, AssistantAfter: []convo.Role{u, r}}, pairs{n: {s, u}, s: {s, u}, u: {s, a}, a: {s, u}, r: {s, u, a}}},
		{"relaxed", convo.Relaxed(), pairs{n: {s, u, a}, s: {s, u, a}, u: {s, u, a}, a: {s, u, a}, r: {s, u, a}}},
		{"prefill", prefill, pairs{n: {s, u}, s: {s, u}, u: {s, a}, a: {s, u, a}, r: {s, u, a}}},
		{"users only first", noUser, pairs{n: {s, u}, s: {s, u}, u: {s, a}, a: {s}, r: {s, a}}},
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
	roles := convo.RolePolicy{UserAfter: []convo.Role{convo.RoleNone, convo.RoleAssistant}}
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
		_, err := h.Append(convo.User("v"), convo.Result(b, "1"))
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

// noted returns a History with notes after each role, whose entries have the IDs 1 to 10.
func noted(t *testing.T, opts *convo.Options) *convo.History {
	if opts == nil {
		opts = bare()
	}
	c := callOf("c")
	return historyOf(t, opts,
		convo.System("guide"), convo.User("q"), convo.System("it is noon"),
		convo.Assistant("", c), convo.Result(c, "r"), convo.System("it is one"),
		convo.Assistant("a"), convo.System("it is two"), convo.System("be quick"), convo.User("and now"))
}

// A note is an entry of its turn and an exchange of its own. What may follow it is what
// may follow the message before it, and SetSystem leaves it alone.
func TestNotes(t *testing.T) {
	h := noted(t, nil)
	s := h.Snapshot()
	assert.Equal(t, []string{"guide", "q", "it is noon", "", "r", "it is one", "a", "it is two", "be quick", "and now"}, textsOf(s))
	st := h.Status()
	assert.Equal(t, 1, st.System)
	assert.Equal(t, 2, st.Turns)
	var turns, tokens []int
	for _, e := range s.All() {
		turns, tokens = append(turns, e.Turn), append(tokens, e.Tokens)
	}
	assert.Equal(t, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 2}, turns)
	sent := s.AsUser(convo.System("it is noon"))
	require.Equal(t, convo.RoleUser, sent.Role)
	n := 0
	for _, p := range sent.Parts {
		n += len(p.(convo.Text))
	}
	assert.Equal(t, n, tokens[2], "with the tags that it may be sent with")
	_, err := h.Append(convo.User("u"))
	var role *convo.RoleError
	require.ErrorAs(t, err, &role)
	mustAppend(t, h, convo.System("hurry"))
	_, err = h.Append(convo.User("u"))
	require.ErrorAs(t, err, &role, "a note does not change who speaks next")
	assert.Equal(t, convo.RoleUser, role.Previous)
	mustAppend(t, h, convo.Assistant("b"))

	require.NoError(t, h.SetSystem(convo.System("another guide")))
	assert.Equal(t, "another guide", textsOf(h.Snapshot())[0])
	assert.Contains(t, textsOf(h.Snapshot()), "it is noon")
	assert.Equal(t, 1, h.Status().System)
	assert.Equal(t, h.Snapshot().Tokens(), h.Snapshot().Breakdown().System+h.Snapshot().Breakdown().User+h.Snapshot().Breakdown().Assistant+h.Snapshot().Breakdown().Results+h.Snapshot().Breakdown().Calls)

	require.NoError(t, h.Pin(8))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Rewrite: []convo.Rewrite{{ID: 3, Parts: []convo.Part{convo.Text("it is one")}}}})
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3, 4, 5, 6, 7, 8, 9}})
	require.Error(t, err, "pinned")
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 4, 5, 6, 7, 9}})
	require.NoError(t, err)
	assert.Equal(t, []string{"another guide", "it is one", "it is two", "and now", "hurry", "b"}, textsOf(h.Snapshot()))
}

// What no compaction takes: a note that the model has not seen yet, or a pinned one.
func TestNotes_Floor(t *testing.T) {
	floor := func(h *convo.History) (ids []convo.ID) {
		for x := range h.Snapshot().Exchanges() {
			if x.Floor {
				ids = append(ids, x.IDs()...)
			}
		}
		return ids
	}
	h := noted(t, nil)
	assert.Equal(t, []convo.ID{1, 8, 9, 10}, floor(h))
	mustAppend(t, h, convo.Assistant("b"))
	assert.Equal(t, []convo.ID{1, 10, 11}, floor(h))
	mustAppend(t, h, convo.System("late"))
	assert.Equal(t, []convo.ID{1, 10, 11, 12}, floor(h), "and the exchange before it is the newest")
	require.NoError(t, h.PinLast())
	mustAppend(t, h, convo.User("q"), convo.Assistant("b"))
	assert.Equal(t, []convo.ID{1, 12, 13, 14}, floor(h))

	c := callOf("c")
	opts := bare()
	opts.Roles = convo.Relaxed()
	h = historyOf(t, opts, convo.User("q"), convo.Assistant("", c), convo.Result(c, "r"), convo.System("n"))
	assert.Equal(t, []convo.ID{1, 2, 3, 4}, floor(h), "results that the model has not seen")
	mustAppend(t, h, convo.User("q"), convo.System("n"), convo.User("q"))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5, 6, 7}, floor(h), "nor those, and they are one turn of user messages")
	assert.Equal(t, 2, h.Status().Turns)
	require.NoError(t, h.SetLimits(convo.Limits{Window: 60, Reserve: -1}))
	_, _, err := h.Prepare(t.Context())
	var large *convo.FloorError
	require.ErrorAs(t, err, &large)
	shares := large.System + large.Newest + large.Calls + large.Round + large.Users + large.Pinned + large.Ephemeral + large.Tools
	assert.Equal(t, large.Floor, shares)
}

// Notes come back where they were from JSON, from a log, and after a Reload.
func TestNotes_ComeBack(t *testing.T) {
	store := new(convotest.MemStore)
	opts := bare()
	h := noted(t, opts)
	want := textsOf(h.Snapshot())
	require.NoError(t, h.Attach(t.Context(), store, "key"))
	mustAppend(t, h, convo.Assistant("b"))
	require.NoError(t, h.Save(t.Context()))
	mustAppend(t, h, convo.System("unsaved"))
	other, err := convo.Open(t.Context(), store, "key", opts)
	require.NoError(t, err)
	assert.Equal(t, append(slices.Clone(want), "b"), textsOf(other.Snapshot()))
	assert.Equal(t, 1, other.Status().System)
	require.NoError(t, other.SetSystem(convo.System("theirs")))
	mustAppend(t, other, convo.User("theirs"))
	require.NoError(t, other.Save(t.Context()))
	require.NoError(t, h.SetSystem(convo.System("ours")))
	_, refused, err := h.Reload(t.Context())
	require.NoError(t, err)
	require.Len(t, refused, 1)
	assert.Equal(t, "ours", refused[0].Text(), "a system entry does not come back as a note")
	assert.Equal(t, append(append([]string{"theirs"}, want[1:]...), "b", "theirs", "unsaved"), textsOf(h.Snapshot()))

	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	s := new(convo.Snapshot)
	require.NoError(t, json.Unmarshal(data, s))
	again, err := convo.Restore(s, opts)
	require.NoError(t, err)
	assert.Equal(t, textsOf(h.Snapshot()), textsOf(again.Snapshot()))
	assert.Equal(t, h.Tokens(), again.Tokens())
}

// An import keeps system messages where they are. Without Repair it refuses one between a
// call and its result, with it that one stands after the results.
func TestNotes_Import(t *testing.T) {
	c := callOf("c")
	msgs := []convo.Message{
		convo.System("s"), convo.User("q"), convo.System("n"), convo.Assistant("", c), convo.System("between"), convo.Result(c, "r"),
		convo.Assistant("a"), convo.User("u"), convo.System("last"),
	}
	_, err := convo.Restore(convo.NewSnapshot(msgs), nil)
	var wrong *convo.SnapshotError
	var role *convo.RoleError
	require.ErrorAs(t, err, &wrong)
	require.ErrorAs(t, err, &role)
	assert.Equal(t, 4, role.Index)

	var faults []*convo.SnapshotError
	h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Repair: func(f *convo.SnapshotError) { faults = append(faults, f) }})
	require.NoError(t, err)
	want := []string{"s", "q", "n", "", "r", "between", "a", "u", "last"}
	assert.Equal(t, want, textsOf(h.Snapshot()))
	assert.Equal(t, 1, h.Status().System)
	require.NotEmpty(t, faults)
	i := slices.IndexFunc(faults, func(f *convo.SnapshotError) bool { return f.Err != nil })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "put after the results", faults[i].Mended)
	assert.Equal(t, 4, faults[i].Index)
	again, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err, "a repaired History needs no Repair")
	assert.Equal(t, want, textsOf(again.Snapshot()))
}

// With NoNotes, a system message after others is refused, by Append, AppendRows and Restore,
// and SetSystem still works. A user message may follow one whose request has failed.
func TestRolePolicy_NoNotes(t *testing.T) {
	opts := &convo.Options{Roles: convo.RolePolicy{NoNotes: true}}
	h := historyOf(t, opts, convo.System("s"), convo.System("more"), convo.User("u"))
	refused := func(previous convo.Role) {
		t.Helper()
		for _, add := range []func(...convo.Message) (convo.ID, error){h.Append, h.AppendRows} {
			unchanged(t, h, func() {
				_, err := add(convo.System("note"))
				var role *convo.RoleError
				require.ErrorAs(t, err, &role)
				assert.Equal(t, convo.RoleError{Attempted: convo.RoleSystem, Previous: previous}, *role)
			})
		}
	}
	refused(convo.RoleUser)
	_, err := h.Append(convo.User("v"))
	require.ErrorAs(t, err, new(*convo.RoleError), "no request has failed")
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) { return convo.Reply{}, errors.New("503") })
	require.Error(t, err)
	refused(convo.RoleUser)
	mustAppend(t, h, convo.User("v"), convo.Assistant("a"))
	refused(convo.RoleAssistant)
	require.NoError(t, h.SetSystem(convo.System("other")))
	assert.Equal(t, "suua", rolesOf(h))

	list := convo.NewSnapshot([]convo.Message{convo.System("s"), convo.User("u"), convo.System("note"), convo.Assistant("a")})
	_, err = convo.Restore(list, opts)
	require.ErrorAs(t, err, new(*convo.RoleError))
	_, err = convo.Restore(list, nil)
	require.NoError(t, err, "the default takes notes")
	noted := historyOf(t, nil, convo.User("u"), convo.System("note"))
	_, err = convo.Restore(noted.Snapshot(), opts)
	require.NoError(t, err, "what a History held is accepted")
}
