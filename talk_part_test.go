package convo

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// viewWith returns a view of empty messages with these roles, whose IDs begin at 1.
func viewWith(roles ...Role) *view {
	v := new(view)
	for i, role := range roles {
		v.list = append(v.list, &entry{id: ID(i + 1), head: ID(i + 1), msg: Message{Role: role}})
	}
	return v
}

func TestTalk_Failed(t *testing.T) {
	user := &entry{id: 1, msg: Message{Role: RoleUser}}
	result := &entry{id: 2, msg: Message{Role: RoleTool}}
	answer := &entry{id: 3, msg: Message{Role: RoleAssistant}}
	cases := []struct {
		name   string
		do     func(tk *talk)
		newest *entry
		want   bool
	}{
		{"nothing was asked", func(*talk) {}, user, false},
		{"no message", func(tk *talk) { tk.note(nil, true) }, nil, false},
		{"a user message", func(tk *talk) { tk.note(user, true) }, user, true},
		{"a result", func(tk *talk) { tk.note(result, true) }, result, true},
		{"an answer", func(tk *talk) { tk.note(answer, true) }, answer, false},
		{"another message since", func(tk *talk) { tk.note(user, true) }, result, false},
		{"noted again with the same newest message", func(tk *talk) { tk.note(user, true); tk.note(user, false) }, user, true},
		{"noted again with another newest message", func(tk *talk) { tk.note(user, true); tk.note(result, false) }, user, false},
		{"another request is made", func(tk *talk) { tk.note(user, true); tk.note(nil, false) }, user, false},
		{"a Do waits", func(tk *talk) { tk.note(user, true); tk.wait(&sending{last: 1}) }, user, false},
		{"a Do has waited", func(tk *talk) { tk.note(user, true); tk.wait(&sending{last: 1}); tk.wait(nil) }, user, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var tk talk
			c.do(&tk)
			assert.Equal(t, c.want, tk.hasFailed(c.newest))
		})
	}
}

func TestTalk_MayDeliver(t *testing.T) {
	strict, relaxed := RolePolicy{}.withDefaults(), Relaxed()
	queue := []*queued{{msg: User("and then?")}}
	cases := []struct {
		name  string
		view  *view
		roles *RolePolicy
		do    func(tk *talk, v *view)
		want  bool
	}{
		{"empty conversation", viewWith(), &strict, nil, true},
		{"after an answer", viewWith(RoleUser, RoleAssistant), &strict, nil, true},
		{"after a user message", viewWith(RoleUser), &strict, nil, false},
		{"after a user message, with another policy", viewWith(RoleUser), &relaxed, nil, true},
		{"after a user message whose request has failed", viewWith(RoleUser), &strict, func(tk *talk, v *view) { tk.note(v.list[0], true) }, true},
		{"empty queue", viewWith(), &strict, func(_ *talk, v *view) { v.swapQueue(nil) }, false},
		{"an open call", viewWith(RoleUser, RoleAssistant), &strict, func(_ *talk, v *view) { v.calls = &calls{head: 2, list: []call{{id: "c"}}, open: 1} }, false},
		{"a paused answer", viewWith(RoleUser, RoleAssistant), &strict, func(_ *talk, v *view) { v.list[1].marks.set(paused, true) }, false},
		{"a Do waits for this answer", viewWith(RoleUser), &relaxed, func(tk *talk, _ *view) { tk.wait(&sending{last: 1}) }, false},
		{"a Do waits for an earlier answer", viewWith(RoleUser, RoleAssistant), &strict, func(tk *talk, _ *view) { tk.wait(&sending{last: 1}) }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var tk talk
			c.view.swapQueue(queue)
			if c.do != nil {
				c.do(&tk, c.view)
			}
			assert.Equal(t, c.want, tk.mayDeliver(c.view, c.roles))
		})
	}
}

func TestTalk_Renumber(t *testing.T) {
	cancelled := false
	was := talk{failed: 7, sending: &sending{last: 7, first: 6, cancel: func(error) { cancelled = true }}}
	tk := was
	tk.renumber(was, func(id ID) ID { return id + 2 })
	assert.EqualValues(t, 9, tk.failed)
	assert.False(t, tk.waits().isFor(7), "the answer is not appended")
	assert.Zero(t, tk.waits().delivered())
	tk.waits().cancel(nil)
	assert.True(t, cancelled, "Close cancels it")
	assert.EqualValues(t, 6, was.sending.first, "what was is unchanged")

	tk.wait(nil)
	tk.renumber(talk{failed: 7}, func(ID) ID { return 0 })
	assert.Zero(t, tk.failed)
	assert.Nil(t, tk.waits())
	assert.Zero(t, tk.waits().delivered())
	assert.False(t, tk.waits().isFor(0))
}

func TestTalk_ParamTools(t *testing.T) {
	var tk talk
	assert.False(t, tk.isParamTool("search"))
	tk.answered([]string{"search", "fetch"})
	assert.True(t, tk.isParamTool("search"))
	tk.answered(nil)
	assert.False(t, tk.isParamTool("search"))
}
