package convo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// viewOf returns a view with a message of each role.
func viewOf(roles ...Role) *view {
	v := &view{state: state{id: newIdentity(newCounter(nil, Overheads{}), nil, ""), keep: keeping{most: defaultOriginals}}}
	v.grow(roles...)
	return v
}

// grow appends a message of each role, as an Append of all of them does.
func (v *view) grow(roles ...Role) {
	v.newVersion()
	for _, r := range roles {
		turn := newestTurn(v.list)
		if r == RoleUser {
			turn++
		}
		v.last++
		e := &entry{msg: Message{Role: r, Parts: []Part{Text("a text")}}, id: v.last, head: v.last, turn: turn}
		v.id.weigh(e)
		v.append(e, nil)
		v.appendedEver += e.tokens
	}
	v.calls = callsOf(v.list)
}

// checkTotals checks what a view knows about its list.
func checkTotals(t *testing.T, v *view) {
	t.Helper()
	assert.Equal(t, rawOf(v.list), v.listRaw)
	assert.Equal(t, countTurns(v.list), v.turns)
	var own state
	own.replace(nil, v.list, nil, 0)
	assert.Equal(t, own.fold, v.fold)
}

func TestView_Rewind(t *testing.T) {
	for _, seen := range []int{0, 3, 4} {
		v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant)
		v.pins, v.queue, v.seen = []ID{1, 3}, []*queued{{tokens: 1}}, seen
		before, version := v.state.clipped(), v.version
		again := []*queued{{tokens: 2}}
		v.rewind(2, 2, again)
		assert.Equal(t, []ID{1, 2}, idsOf(v.list))
		assert.Equal(t, version+1, v.version)
		assert.Equal(t, []ID{1}, v.pins)
		assert.Equal(t, []*queued{again[0], before.queue[0]}, v.queue)
		assert.Equal(t, []Range{{3, 4}}, v.takenBack)
		assert.True(t, v.isTakenBack(3))
		assert.False(t, v.isTakenBack(2))
		checkTotals(t, v)
		v.grow(RoleUser)
		assert.Equal(t, []ID{1, 2, 5}, idsOf(v.list))
		if seen == 4 {
			assert.Equal(t, []ID{1, 2, 3, 4}, idsOf(before.list), "what a snapshot shows does not change")
		}
	}
}

// summarise drops entries of a view and puts a summary in their place.
func summarise(t *testing.T, v *view, drop ...ID) *departure {
	ed, err := checkEdit(&v.state, &Edit{Drop: drop, Summary: &Summary{Text: "they met"}}, false)
	require.NoError(t, err)
	was := v.state.clipped()
	done, err := v.edit(ed, v.id.prepare(&v.state, ed, nil), Report{})
	require.NoError(t, err)
	assert.Equal(t, was, v.state, "a plan changes nothing")
	require.True(t, done.changed)
	assert.Equal(t, drop, done.report.Summarised)
	v.commit(done, "their names")
	checkTotals(t, v)
	return done.report.left
}

func TestView_Undo(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	whole := v.state.clipped()
	left := summarise(t, v, 1, 2)
	assert.Equal(t, []ID{3, 4, 5}, idsOf(v.list))
	assert.Equal(t, ID(2), v.summary.sum.newestCovered())
	assert.Equal(t, "their names", v.lastFocus)
	assert.Equal(t, v.version, v.rewritten)
	assert.Zero(t, v.appended)
	shown := v.state.clipped()

	require.True(t, v.undo(left, true))
	assert.Equal(t, whole.list, v.list)
	assert.Nil(t, v.summary)
	assert.Empty(t, v.lastFocus)
	assert.True(t, v.undidSince(shown.version, shown.lastEdit()))
	assert.False(t, v.undidSince(whole.version, whole.lastEdit()))
	checkTotals(t, v)
	assert.Equal(t, v.version, v.heldSince)
	assert.Equal(t, v.appendedEver, v.heldAt)
	v.grow(RoleAssistant)

	version := v.version
	assert.False(t, v.undo(left, true), "it is not in place any more")
	assert.False(t, v.undo(nil, true))
	assert.Equal(t, version, v.version)

	left = summarise(t, v, 1, 2)
	require.True(t, v.undo(left, false))
	assert.Zero(t, v.heldSince, "it was not to be held")
}

// A rollback between an edit and its Undo has taken back what must not come back.
func TestView_UndoAfterRewind(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	left := summarise(t, v, 3, 4)
	v.rewind(firstAfter(v.list, 1), 1, nil)
	require.True(t, v.undo(left, false))
	assert.Equal(t, []ID{1}, idsOf(v.list))
	assert.Equal(t, []Range{{2, 5}}, v.takenBack)
}

func TestView_Revert(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	whole := &Snapshot{state: v.state.clipped()}
	summarise(t, v, 1, 2)
	v.grow(RoleAssistant)
	v.pins = []ID{4, 6}
	assert.True(t, v.editsStay(whole), "it changed nothing in the floor")
	v.revert(&whole.state)
	assert.Equal(t, whole.list, v.list)
	assert.Nil(t, v.summary)
	assert.Equal(t, []ID{4}, v.pins)
	assert.Equal(t, []Range{{6, 6}}, v.takenBack)
	assert.Equal(t, ID(6), v.last)
	checkTotals(t, v)
	id, undone := v.reversedSince(whole)
	assert.Zero(t, id)
	assert.False(t, undone)
}

// An edit that no longer fits the view changes nothing.
func TestState_EditedRefuses(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	ed, err := checkEdit(&v.state, &Edit{Drop: []ID{3, 4}, Summary: &Summary{Text: "they met"}}, false)
	require.NoError(t, err)
	p := v.id.prepare(&v.state, ed, nil)
	gone := viewOf(RoleUser, RoleAssistant)
	other := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleUser)
	summarise(t, other, 1, 2)
	for name, s := range map[string]*state{"entries have left": &gone.state, "another summary": &other.state} {
		was := s.clipped()
		_, err := s.edited(ed, p, Report{})
		assert.ErrorIs(t, err, ErrStale, name)
		assert.Equal(t, was, *s, name)
	}
}

func TestState_Rewindable(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleAssistant, RoleAssistant, RoleUser)
	for _, c := range []struct{ touched, most, to, taken, from int }{
		{0, 0, 6, 0, 6},
		{0, 1, 6, 1, 5},
		{0, 2, 6, 2, 2},
		{0, 9, 6, 3, 0},
		{0, 1, 5, 1, 2},
		{0, 1, 0, 0, 0},
		{2, 9, 6, 1, 5},
		{3, 2, 6, 1, 5},
		{2, 2, 5, 2, 3},
	} {
		v.touched = c.touched
		taken, from := v.rewindable(c.most, c.to)
		assert.Equal(t, []int{c.taken, c.from}, []int{taken, from}, "%+v", c)
	}
}

func TestState_UsersFrom(t *testing.T) {
	v := viewOf(RoleUser, RoleAssistant, RoleUser, RoleUser)
	v.pins = []ID{4}
	assert.Len(t, v.usersFrom(3), 2)
	assert.True(t, v.usersFrom(4)[0].pin)
	assert.Empty(t, v.usersFrom(2), "not all are user messages")
	assert.Empty(t, v.usersFrom(0))
	assert.Empty(t, v.usersFrom(5))
}

func TestMerged(t *testing.T) {
	type item struct {
		id   ID
		from string
	}
	list := func(from string, ids ...ID) (all []item) {
		for _, id := range ids {
			all = append(all, item{id, from})
		}
		return all
	}
	for _, c := range []struct{ a, b, want []item }{
		{nil, nil, []item{}},
		{list("a", 1, 3), nil, list("a", 1, 3)},
		{nil, list("b", 2), list("b", 2)},
		{list("a", 1, 3, 5), list("b", 2, 3, 6), []item{{1, "a"}, {2, "b"}, {3, "b"}, {5, "a"}, {6, "b"}}},
	} {
		assert.Equal(t, c.want, merged(c.a, c.b, func(i item) ID { return i.id }))
	}
}

// Many calls are found as few are, whatever was answered and opened again.
func TestCalls_Keyed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := Message{Role: RoleAssistant}
	for i := range manyCalls + 8 {
		m.Parts = append(m.Parts, ToolCall{ID: string(rune('a' + i)), Name: string(rune('A' + i%3))})
	}
	e := &entry{id: 1, msg: m, calls: newCalls(&m, newCounter(nil, Overheads{}))}
	many, few := e.begin(), e.begin()
	require.NotNil(t, many.keyed)
	few.keyed = nil
	var answered []int
	for range 10_000 {
		id, name := "", ""
		switch r.IntN(3) {
		case 0:
			id = string(rune('a' + r.IntN(manyCalls+9)))
		case 1:
			name = string(rune('A' + r.IntN(4)))
		}
		i, err := many.find(id, name)
		j, want := few.find(id, name)
		require.Equal(t, want, err)
		require.Equal(t, j, i)
		for n := range 5 {
			require.Equal(t, few.hasOpen("A", n), many.hasOpen("A", n))
		}
		if err == nil {
			many.answer(i)
			few.answer(i)
			answered = append(answered, i)
		}
		if err != nil || r.IntN(8) == 0 {
			n := len(answered) - r.IntN(len(answered)+1)
			many.reopen(answered[n:])
			few.reopen(answered[n:])
			answered = slices.Clip(answered[:n])
		}
		require.Equal(t, few.open, many.open)
	}
}
