package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
	"github.com/seed-c1b73e60/convo/mirror"
)

// A line is a message of a small framework.
type line struct {
	ID      string
	Role    convo.Role
	Text    string
	Calls   []string // IDs
	Results []string // texts, for the calls of the answer before, in order
	Once    bool
	Options any   // of a type that convo does not know
	from    *line // what it was rebuilt from
}

func (l *line) clone() *line {
	c := *l
	return &c
}

func decode(l *line) ([]convo.Message, error) {
	if strings.Contains(l.Text, "undecodable") {
		return nil, errors.New("no")
	}
	var msgs []convo.Message
	if len(l.Results) > 0 {
		m := convo.Message{Role: convo.RoleTool}
		for _, text := range l.Results {
			m.Parts = append(m.Parts, convo.ToolResult{Parts: []convo.Part{convo.Text(text)}})
		}
		msgs = append(msgs, m)
	}
	if l.Role == convo.RoleTool || l.Role == "ui" {
		return msgs, nil
	}
	m := convo.Message{Role: l.Role}
	if l.Text != "" {
		m.Parts = append(m.Parts, convo.Text(l.Text))
	}
	for _, id := range l.Calls {
		m.Parts = append(m.Parts, convo.ToolCall{ID: id, Name: "read", Arguments: "{}"})
	}
	return append(msgs, m), nil
}

func encode(m convo.Message, was **line) (*line, error) {
	l := &line{ID: "made"}
	if was != nil {
		l = (*was).clone()
		l.from = *was
	}
	l.Role, l.Text, l.Results = m.Role, "", nil
	for _, p := range m.Parts {
		switch p := p.(type) {
		case convo.Text:
			l.Text += string(p)
		case convo.ToolResult:
			l.Results = append(l.Results, p.Text())
		}
	}
	return l, nil
}

var (
	byPlace = mirror.Codec[*line]{Decode: decode, Encode: encode, Once: func(l *line) bool { return l.Once }}
	byKey   = mirror.Codec[*line]{Decode: decode, Encode: encode, Once: byPlace.Once, Key: func(l *line) string { return l.ID }}
)

// sameLine reports whether two lines are decoded to the same messages.
func sameLine(was, now *line) bool {
	return was.Role == now.Role && was.Text == now.Text && slices.Equal(was.Calls, now.Calls) && slices.Equal(was.Results, now.Results)
}

var names int

func newLine(role convo.Role, text string) *line {
	names++
	return &line{ID: fmt.Sprint("m", names), Role: role, Text: text, Options: new(int)}
}

func step(text string, n int, size int) []*line {
	call, results := newLine(convo.RoleAssistant, text), newLine(convo.RoleTool, "")
	for i := range n {
		call.Calls = append(call.Calls, fmt.Sprint("c", i))
		results.Results = append(results.Results, fmt.Sprint(call.ID, " ", i, " ", strings.Repeat("found it. ", size)))
	}
	return []*line{call, results}
}

func newHistory(t testing.TB, o *convo.Options) *convo.History {
	h, err := convo.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

// newMirror returns a new History and a Mirror of it.
func newMirror[M any](t testing.TB, o *convo.Options, c mirror.Codec[M]) (*convo.History, *mirror.Mirror[M]) {
	h := newHistory(t, o)
	return h, mirror.New(h, c)
}

func look(t testing.TB, h *convo.History, m *mirror.Mirror[*line]) []*line {
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	return view
}

func texts(list []*line) (all []string) {
	for _, l := range list {
		all = append(all, l.Text+strings.Join(l.Results, "+"))
	}
	return all
}

// same reports the first place where two lists do not hold the same values.
func same(t testing.TB, want, got []*line) {
	t.Helper()
	require.Equal(t, texts(want), texts(got))
	for i := range want {
		require.Same(t, want[i], got[i], "value %d", i)
	}
}

// syncs synchronizes a list, which the view then holds unchanged.
func syncs(t testing.TB, h *convo.History, m *mirror.Mirror[*line], list []*line) {
	t.Helper()
	require.NoError(t, m.Sync(list))
	same(t, list, look(t, h, m))
}

func TestMirror_GivesBackTheSameValues(t *testing.T) {
	for name, codec := range map[string]mirror.Codec[*line]{"by place": byPlace, "by key": byKey} {
		t.Run(name, func(t *testing.T) {
			h, m := newMirror(t, nil, codec)
			list := []*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Hello")}
			for range 3 {
				syncs(t, h, m, list)
				list = append(list, step("looking", 2, 1)...)
			}
			require.NoError(t, m.Sync(list))
			require.NoError(t, m.Sync(list)) // nothing new
			assert.Equal(t, len(list)+3, h.Len(), "an entry for each result")
			same(t, list, look(t, h, m))
			if codec.Key != nil {
				e, _ := h.Snapshot().At(1)
				assert.Equal(t, list[1].ID, e.Message.Key)
			}
			for i, l := range list { // a framework that makes its values anew
				list[i] = l.clone()
			}
			syncs(t, h, m, list)
		})
	}
}

func TestMirror_SystemMessages(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	require.NoError(t, h.SetSystem(convo.System("of the host")))
	user := newLine(convo.RoleUser, "Hello")
	require.NoError(t, m.Sync([]*line{user}))
	assert.Equal(t, []string{"of the host", "Hello"}, texts(look(t, h, m)))

	one, two := newLine(convo.RoleSystem, "one"), newLine(convo.RoleSystem, "two")
	require.NoError(t, m.Sync([]*line{one, two, user}))
	same(t, []*line{one, two, user}, look(t, h, m))
	again := newLine(convo.RoleSystem, "one") // another key, as a framework gives it in each run
	require.NoError(t, m.Sync([]*line{again, user}))
	same(t, []*line{again, user}, look(t, h, m))

	note := newLine(convo.RoleSystem, "The user is in Rome now.")
	list := append([]*line{again, user}, step("looking", 1, 1)...)
	list = append(list, note)
	syncs(t, h, m, list)
	require.NoError(t, m.Sync(list[1:]))
	same(t, list[1:], look(t, h, m))
}

func TestMirror_RebuildsOnlyWhatWasChanged(t *testing.T) {
	h, m := newMirror(t, nil, byPlace)
	list := []*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Hello")}
	for range 3 {
		list = append(list, step("looking", 2, 20)...)
	}
	list = append(list, newLine(convo.RoleAssistant, "done"))
	require.NoError(t, m.Sync(list))
	s := h.Snapshot()
	e, _ := s.At(4)
	call := e.Message.ToolResults()[0].CallID
	r, err := h.Apply(s, convo.Edit{Clear: []convo.Clear{{ID: e.ID, CallID: call}}})
	require.NoError(t, err)
	require.NoError(t, m.Sync(list))
	view := look(t, h, m)
	for i := range list {
		if i == 3 {
			assert.Same(t, list[3], view[3].from)
			assert.Same(t, list[3].Options, view[3].Options)
			assert.Equal(t, list[3].Results[0], view[3].Results[0])
			assert.Contains(t, view[3].Results[1], "cleared")
			continue
		}
		assert.Same(t, list[i], view[i])
	}
	require.NoError(t, h.Undo(r))
	same(t, list, look(t, h, m))

	ids := []convo.ID{e.ID - 2, e.ID - 1, e.ID}
	r, err = h.Apply(h.Snapshot(), convo.Edit{Drop: ids, Summary: &convo.Summary{Text: "They looked."}})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, m.Sync(list))
		view = look(t, h, m)
		require.Len(t, view, len(list)-1)
		assert.Same(t, list[0], view[0])
		assert.Equal(t, convo.RoleUser, view[1].Role)
		assert.Contains(t, view[1].Text, "They looked.")
		same(t, slices.Concat(list[1:2], list[4:]), view[2:])
	}
	require.NoError(t, h.Undo(r))
	view = look(t, h, m) // the values were let go, so they are made anew
	assert.Equal(t, texts(list), texts(view))
	syncs(t, h, m, list)
}

func TestMirror_CutAtAppend(t *testing.T) {
	h, m := newMirror(t, &convo.Options{MaxResult: 64}, byPlace)
	list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 2, 1)...)
	list[2].Results[1] = strings.Repeat("all of it. ", 500)
	require.NoError(t, m.Sync(list))
	view := look(t, h, m)
	same(t, list[:2], view[:2])
	assert.Same(t, list[2], view[2].from)
	assert.Equal(t, list[2].Results[0], view[2].Results[0])
	assert.Less(t, len(view[2].Results[1]), 1000)
	require.NoError(t, m.Sync(list), "the list is as it was")
}

func TestMirror_SeveralMessagesOfOneValue(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 2, 5)...)
	list[2].Role, list[2].Text = convo.RoleUser, "and hurry"
	list = append(list, newLine(convo.RoleAssistant, "done"), newLine(convo.RoleUser, "thanks"))
	require.NoError(t, m.Sync(list))
	assert.Equal(t, len(list)+2, h.Len())
	same(t, list, look(t, h, m))
	e, _ := h.Snapshot().At(4)
	assert.Equal(t, list[2].ID+"#2", e.Message.Key)

	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3, 4}}) // the answer and its results, not the text
	require.NoError(t, err)
	require.NoError(t, m.Sync(list))
	view := look(t, h, m)
	require.Len(t, view, 4)
	assert.Equal(t, "and hurry", view[1].Text)
	assert.Empty(t, view[1].Results)
	assert.Same(t, list[2], view[1].from)

	require.NoError(t, h.RewindTo(5))
	require.NoError(t, m.Sync(list))
	assert.Equal(t, []string{"Hello", "and hurry", "done", "thanks"}, texts(look(t, h, m)))

	h, m = newMirror(t, nil, byPlace)
	syncs(t, h, m, list[:3])
	require.NoError(t, h.RewindTo(3), "a part of the value is taken back")
	syncs(t, h, m, list[:3])
}

func TestMirror_Add(t *testing.T) {
	for name, codec := range map[string]mirror.Codec[*line]{"by place": byPlace, "by key": byKey} {
		t.Run(name, func(t *testing.T) {
			h, m := newMirror(t, nil, codec)
			list := append([]*line{newLine(convo.RoleUser, "Hello")}, step("looking", 1, 1)...)
			require.NoError(t, m.Sync(list[:2]))
			typed := newLine(convo.RoleUser, "Also look there.")
			require.NoError(t, m.Add(typed))
			same(t, list[:2], look(t, h, m)) // a call is open
			require.NoError(t, m.Sync(list))
			want := append(slices.Clone(list), typed)
			same(t, want, look(t, h, m))
			for range 3 {
				more := step("looking", 1, 1)
				list, want = append(list, more...), append(want, more...)
				require.NoError(t, m.Sync(list))
				same(t, want, look(t, h, m))
			}
			require.NoError(t, m.Sync(want), "the host has stored it where it was said")
			same(t, want, look(t, h, m))
			assert.Equal(t, len(want), h.Len())
			require.ErrorAs(t, m.Sync(append(slices.Clone(list), typed)), new(*mirror.PastError), "it was there before")

			list = append(slices.Clone(want), step("looking", 1, 1)...)
			require.NoError(t, m.Sync(list[:len(list)-1])) // a call is open
			typed = newLine(convo.RoleUser, "Faster!")
			require.NoError(t, m.Add(typed))
			syncs(t, h, m, append(list, typed)) // a message that waits is in the view once
		})
	}
}

func TestMirror_AddWaitsForItsRole(t *testing.T) {
	h, m := newMirror(t, nil, byPlace)
	list := []*line{newLine(convo.RoleUser, "Hello")}
	require.NoError(t, m.Sync(list))
	typed := newLine(convo.RoleUser, "Anyone?")
	require.NoError(t, m.Add(typed))
	same(t, list, look(t, h, m))
	list = append(list, newLine(convo.RoleAssistant, "Yes."))
	require.NoError(t, m.Sync(list))
	same(t, append(list, typed), look(t, h, m))
	assert.Error(t, m.Add(newLine(convo.RoleUser, "undecodable")))
}

func TestMirror_OnceAndUnseen(t *testing.T) {
	h, m := newMirror(t, &convo.Options{Roles: convo.Relaxed()}, byPlace)
	list := []*line{newLine(convo.RoleUser, "Hello"), newLine(convo.RoleAssistant, "I will.")}
	goOn := newLine(convo.RoleUser, "Go on.")
	goOn.Once = true
	require.NoError(t, m.Sync(append(slices.Clone(list), goOn)))
	assert.Equal(t, 2, h.Len())
	same(t, append(slices.Clone(list), goOn), look(t, h, m))
	list = append(list, goOn, newLine(convo.RoleAssistant, "Done."))
	require.NoError(t, m.Sync(list))
	same(t, slices.Delete(slices.Clone(list), 2, 3), look(t, h, m))

	spinner, bar := newLine("ui", "spinner"), newLine("ui", "bar") // not for the model
	require.NoError(t, m.Sync(append(slices.Clone(list), spinner, bar)))
	assert.Equal(t, 3, h.Len())
	list = append(list, newLine(convo.RoleUser, "Thanks."), spinner)
	for range 2 {
		require.NoError(t, m.Sync(list), "a message was put before them")
		assert.Equal(t, 4, h.Len())
	}
}

func TestMirror_EntriesOfTheHistory(t *testing.T) {
	h, m := newMirror(t, nil, byPlace)
	list := []*line{newLine(convo.RoleUser, "Hello")}
	require.NoError(t, m.Sync(list))
	_, err := h.Append(convo.Assistant("by hand"), convo.Message{Role: convo.RoleUser, Author: "Ann", Parts: []convo.Part{convo.Text("me too")}})
	require.NoError(t, err)
	require.NoError(t, h.SetEphemeral(convo.User("It is noon.")))
	view := look(t, h, m)
	require.Len(t, view, 4)
	assert.Same(t, list[0], view[0])
	assert.Equal(t, "by hand", view[1].Text)
	assert.Contains(t, view[2].Text, "Ann", "who spoke stands in tags")
	assert.Equal(t, "It is noon.", view[3].Text)
	list = append(list, newLine(convo.RoleAssistant, "by hand"))
	require.NoError(t, m.Sync(list))
	assert.Same(t, list[1], look(t, h, m)[1])
	assert.Equal(t, 3, h.Len())
}

// A list may hold user messages one after the other, under every policy.
func TestMirror_UsersInARow(t *testing.T) {
	for _, roles := range []convo.RolePolicy{convo.RolePolicy{}, convo.Relaxed(), {UserAfter: []convo.Role{convo.RoleNone, convo.RoleAssistant}}} {
		h := newHistory(t, &convo.Options{Roles: roles})
		m := mirror.New(h, byPlace)
		list := []*line{newLine(convo.RoleUser, "a"), newLine(convo.RoleUser, "b")}
		require.NoError(t, m.Sync(list))
		list = append(list, newLine(convo.RoleUser, "c"), newLine(convo.RoleAssistant, "d"), newLine(convo.RoleUser, "e"), newLine(convo.RoleUser, "f"))
		require.NoError(t, m.Sync(list))
		same(t, list, look(t, h, m))
		again := resume(t, m, list, byPlace)
		view, _, err := again.Prepare(t.Context(), list)
		require.NoError(t, err)
		assert.Equal(t, texts(list), texts(view))
	}
}

func TestMirror_Errors(t *testing.T) {
	whole := append([]*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Hello")}, step("looking", 1, 1)...)
	again := whole[3].clone() // a turn that is tried again, as a user interface does it
	again.ID = "again"
	edited := func(i int) []*line {
		list := slices.Clone(whole)
		list[i] = list[i].clone()
		list[i].Text, list[i].Results = "edited", nil
		return list
	}
	for _, c := range []struct {
		name  string
		list  []*line
		index int
		last  convo.ID
		want  string
	}{
		{"a user message was edited", edited(1), 1, 0, "content"},
		{"an answer was edited", edited(2), 2, 2, "content"},
		{"the end is missing", whole[:3], 3, 3, "missing"},
		{"all is missing", nil, 0, 0, "missing"},
		{"one is missing", slices.Delete(slices.Clone(whole), 1, 2), 1, 0, "different message"},
		{"one was put between", slices.Insert(slices.Clone(whole), 2, newLine(convo.RoleUser, "new")), 2, 2, "different message"},
		{"the end was made again", append(slices.Clone(whole[:3]), again), 3, 3, "different message"},
		{"two have changed places", []*line{whole[0], whole[2], whole[1], whole[3]}, 1, 0, "different message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, m := newMirror(t, nil, byKey)
			require.NoError(t, m.Sync(whole))
			before := h.Snapshot()
			err := m.Sync(c.list)
			var past *mirror.PastError
			require.ErrorAs(t, err, &past)
			assert.Equal(t, c.index, past.Index)
			assert.Equal(t, c.last, past.Last)
			assert.Contains(t, err.Error(), c.want)
			assert.Equal(t, before.Version(), h.Snapshot().Version(), "nothing has changed")
			same(t, whole, look(t, h, m))

			require.NoError(t, h.RewindTo(past.Last))
			switch err := m.Sync(c.list); {
			case strings.HasPrefix(c.name, "two") || strings.HasPrefix(c.name, "one was") || strings.HasPrefix(c.name, "one is") || c.name == "an answer was edited" || c.name == "a user message was edited":
				// The list itself may break the rules of Append; then nothing of it is appended.
				if err != nil {
					assert.NotErrorAs(t, err, &past)
				}
			default:
				require.NoError(t, err)
				if len(c.list) > 0 {
					same(t, c.list, look(t, h, m))
				}
			}
			require.NoError(t, h.RewindTo(0))
			syncs(t, h, m, whole)
		})
	}
	h, m := newMirror(t, nil, byPlace)
	assert.ErrorContains(t, m.Sync([]*line{newLine(convo.RoleUser, "undecodable")}), "message 0")
	assert.ErrorAs(t, m.Sync([]*line{newLine(convo.RoleAssistant, "a"), newLine(convo.RoleUser, "b")}), new(*convo.RoleError))
	assert.Zero(t, h.Len())
	var broken *convo.PanicError
	err := m.Sync([]*line{newLine(convo.RoleUser, "a"), nil})
	assert.ErrorAs(t, err, &broken)
	assert.ErrorContains(t, err, "mirror: message 1: ", "which one it is")
	assert.ErrorAs(t, mirror.New(h, mirror.Codec[*line]{}).Sync([]*line{nil}), &broken)
}

func TestMirror_AfterARestart(t *testing.T) {
	store := &convotest.MemStore{}
	ctx := context.Background()
	h, err := convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	m := mirror.New(h, byKey)
	list := []*line{newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Hello")}
	for range 4 {
		list = append(list, step("looking", 2, 10)...)
	}
	require.NoError(t, m.Sync(list))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{3, 4, 5, 6, 7, 8}, Summary: &convo.Summary{Text: "They looked."}})
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 10}, {ID: 11}}})
	require.NoError(t, err)
	want := look(t, h, m)
	require.NoError(t, h.Save(ctx))
	require.NoError(t, h.Close())

	h, err = convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	defer h.Close()
	for i := range list {
		list[i] = list[i].clone()
	}
	m = mirror.New(h, byKey)
	list = append(list, newLine(convo.RoleAssistant, "Done."))
	require.NoError(t, m.Sync(list))
	view := look(t, h, m)
	assert.Equal(t, append(texts(want), "Done."), texts(view))
	for _, l := range list[8:] {
		assert.True(t, slices.Contains(view, l) || slices.ContainsFunc(view, func(v *line) bool { return v.from == l }))
	}
	require.NoError(t, m.Sync(list))
	require.ErrorAs(t, m.Sync(list[:5]), new(*mirror.PastError))
	require.ErrorAs(t, mirror.New(h, byPlace).Sync(list), new(*mirror.PastError), "without keys")
}

func TestMirror_LetsValuesGo(t *testing.T) {
	h, m := newMirror(t, &convo.Options{KeepOriginals: -1}, byPlace)
	var refs []weak.Pointer[line]
	func() {
		list := []*line{newLine(convo.RoleUser, "Hello")}
		for range 50 {
			list = append(list, step("looking", 1, 1)...)
		}
		require.NoError(t, m.Sync(list))
		for _, l := range list {
			refs = append(refs, weak.Make(l))
		}
	}()
	living := func() (n int) {
		runtime.GC()
		for _, r := range refs {
			if r.Value() != nil {
				n++
			}
		}
		return n
	}
	require.Equal(t, len(refs), living())
	var drop []convo.ID
	for id := convo.ID(2); id < 92; id++ {
		drop = append(drop, id)
	}
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: drop})
	require.NoError(t, err)
	look(t, h, m)
	assert.Equal(t, h.Len(), living())

	require.NoError(t, h.RewindTo(1))
	require.NoError(t, m.Sync([]*line{newLine(convo.RoleUser, "Hello")}))
	assert.Zero(t, living(), "what was taken back")
	runtime.KeepAlive(m)
}

func TestMirror_Seals(t *testing.T) {
	type turn = convo.Message
	var model string
	codec := mirror.Codec[*turn]{
		Decode: func(m *turn) ([]convo.Message, error) { return []convo.Message{*m}, nil },
		Encode: func(m convo.Message, _ **turn) (*turn, error) { return &m, nil },
		Seals:  func(name string) bool { model = name; return name == "checks" },
	}
	h, m := newMirror(t, nil, codec)
	user, answer := convo.User("Hello"), thoughts.In(convo.Assistant("Hi."), convo.Reasoning{Text: "hm", Signature: "s"})
	require.NoError(t, m.Sync([]*turn{&user}))
	_, _, err := h.Prepare(context.Background())
	require.NoError(t, err)
	require.NoError(t, m.Sync([]*turn{&user, &answer}))
	require.NoError(t, thoughts.Refuse(t.Context(), h))
	require.NoError(t, h.SetModel("does not", convo.Limits{}))
	view, err := m.View(h.Snapshot())
	require.NoError(t, err)
	assert.Len(t, view[1].Parts, 1, "a provider has refused it, whatever Seals says of the model")

	h, m = newMirror(t, nil, codec)
	require.NoError(t, m.Sync([]*turn{&user}))
	_, _, err = h.Prepare(context.Background())
	require.NoError(t, err)
	require.NoError(t, m.Sync([]*turn{&user, &answer}))
	require.NoError(t, h.SetSystem(convo.System("Be brief.")))
	for name, want := range map[string]int{"checks": 1, "does not": 2} {
		require.NoError(t, h.SetModel(name, convo.Limits{}))
		view, err := m.View(h.Snapshot())
		require.NoError(t, err)
		assert.Equal(t, name, model)
		assert.Len(t, view[2].Parts, want)
	}
}

// Several agents read one list, each with a window of its own.
func TestMirror_Race(t *testing.T) {
	var list []*line
	list = append(list, newLine(convo.RoleSystem, "Be brief."), newLine(convo.RoleUser, "Hello"))
	for range 40 {
		list = append(list, step("looking", 2, 10)...)
	}
	var wg sync.WaitGroup
	for agent := range 3 {
		h, m := newMirror(t, &convo.Options{Limits: convo.Limits{Window: 2000 + 1000*agent}}, byKey)
		for n := 2; n <= len(list); n += 2 {
			_, _, err := m.Prepare(context.Background(), list[:n])
			require.NoError(t, err)
		}
		for worker := range 3 {
			wg.Go(func() {
				for i := range 20 {
					switch worker {
					case 0:
						assert.NoError(t, m.Sync(list))
					case 1:
						assert.NoError(t, m.Add(&line{ID: fmt.Sprint("typed", agent, i), Role: convo.RoleUser, Text: "typed"}))
					case 2:
						_, err := m.View(h.Snapshot())
						assert.NoError(t, err)
					}
				}
			})
		}
	}
	wg.Wait()
}

// A random framework beside a simple model: each entry of the view is looked up in the
// list by its text, and must be the value of the list if its message is as it was decoded.
func TestMirror_Random(t *testing.T) {
	for seed := range long.Or[uint64](40, 200) {
		random := rand.New(rand.NewPCG(seed, 1))
		codec := byPlace
		if seed%2 == 0 {
			codec = byKey
		}
		h, m := newMirror(t, &convo.Options{Roles: convo.Relaxed(), MaxResult: 200}, codec)
		list := []*line{newLine(convo.RoleSystem, "Be brief.")}
		typed := map[*line]bool{}
		var reports []convo.Report
		for range 60 {
			list = slices.Clone(list)
			open := len(list) > 0 && len(list[len(list)-1].Calls) > 0
			switch op := random.IntN(12); {
			case open:
				full := step("", len(list[len(list)-1].Calls), random.IntN(60))
				list = append(list, full[1])
			case op < 3:
				list = append(list, newLine(convo.RoleUser, ""))
				list[len(list)-1].Text = list[len(list)-1].ID + " asks"
			case op < 8:
				l := step("", 1+random.IntN(3), 1)[0]
				l.Text = l.ID + " looks"
				list = append(list, l)
			case op == 8:
				l := newLine(convo.RoleUser, "")
				l.Text = l.ID + " typed"
				require.NoError(t, m.Add(l))
				typed[l] = true
			case op == 9:
				r, err := h.Compact(context.Background(), "")
				if err == nil {
					reports = append(reports, r)
				}
			case op == 10 && len(reports) > 0:
				_ = h.Undo(reports[len(reports)-1])
				reports = reports[:len(reports)-1]
			case op == 11: // taken back on both sides
				n := 1 + random.IntN(len(list))
				if len(list[n-1].Calls) > 0 { // a call that has left cannot be opened again
					n++
				}
				var past *mirror.PastError
				if err := m.Sync(list[:n]); err == nil || errors.As(err, &past) && h.RewindTo(past.Last) == nil {
					list = list[:n]
					reports = nil // Undo would bring back what the list has no more
				}
			}
			require.NoError(t, m.Sync(list), "seed %d", seed)
			check(t, h, m, list, typed, seed)
		}
	}
}

func check(t *testing.T, h *convo.History, m *mirror.Mirror[*line], list []*line, typed map[*line]bool, seed uint64) {
	values := map[string]*line{}
	name := func(msg convo.Message) string {
		text := msg.Text()
		if msg.Role == convo.RoleSystem {
			return text
		}
		return string(msg.Role) + strings.SplitN(text, " ", 2)[0]
	}
	for _, l := range list {
		msgs, _ := decode(l)
		values[name(msgs[0])] = l
	}
	for l := range typed {
		msgs, _ := decode(l)
		values[name(msgs[0])] = l
	}
	view := look(t, h, m)
	s := h.Snapshot()
	summary, _ := s.Summary()
	for _, e := range entriesOfValues(s) {
		if summary.Text != "" && e.Message.Role != convo.RoleSystem {
			require.Contains(t, view[0].Text, "summary", "seed %d", seed)
			view, summary.Text = view[1:], ""
		}
		require.NotEmpty(t, view)
		got := view[0]
		view = view[1:]
		l := values[name(e.Message)]
		if l == nil { // its beginning was cleared or cut
			require.NotNil(t, got.from, "seed %d: %v", seed, e)
			continue
		}
		msgs, _ := decode(l)
		if typed[l] && got.ID == "made" { // it was let go when it left the view, and came back by Undo
			require.Equal(t, l.Text, got.Text)
			continue
		}
		if msgs[0].Text() == e.Message.Text() {
			require.Same(t, l, got, "seed %d: %v", seed, e)
		} else {
			require.Same(t, l, got.from, "seed %d: %v", seed, e)
			require.Equal(t, e.Message.Text(), strings.Join(got.Results, "\n"), "seed %d", seed)
		}
	}
	if summary.Text != "" { // nothing but the summary is left
		view = view[1:]
	}
	require.Empty(t, view, "seed %d: %v", seed, texts(view))
}

// entriesOfValues returns the entries of s, with those of one value as one: its results.
func entriesOfValues(s *convo.Snapshot) (all []convo.Entry) {
	for _, e := range s.All() {
		if n := len(all); n > 0 && e.Message.Role == convo.RoleTool && all[n-1].Message.Role == convo.RoleTool {
			all[n-1].Message.Parts = append(all[n-1].Message.Parts, e.Message.Parts...)
			continue
		}
		all = append(all, e)
	}
	return all
}

func FuzzMirror_RewrittenList(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6})
	f.Add([]byte{0, 0, 1, 1, 200, 7, 9, 9, 9, 3})
	f.Add([]byte{250, 2, 250, 3, 10, 250, 4, 11, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		h := newHistory(t, &convo.Options{Roles: convo.Relaxed()})
		codec := byPlace
		if len(ops) > 0 && ops[0]%2 == 0 {
			codec = byKey
		}
		m := mirror.New(h, codec)
		var list []*line
		for i, op := range ops {
			if i > 200 {
				return
			}
			list = slices.Clone(list)
			at := 0
			if len(list) > 0 {
				at = int(op/8) % len(list)
			}
			switch op % 8 {
			case 0:
				list = append(list, &line{ID: fmt.Sprint(i), Role: convo.RoleUser, Text: fmt.Sprint(op % 3)})
			case 1:
				list = append(list, &line{ID: fmt.Sprint(i), Role: convo.RoleAssistant, Text: fmt.Sprint(op % 3), Calls: []string{"a"}})
			case 2:
				list = append(list, &line{ID: fmt.Sprint(i), Role: convo.RoleTool, Results: []string{"r"}})
			case 3:
				if len(list) > 0 {
					list = slices.Delete(list, at, at+1)
				}
			case 4:
				if len(list) > 0 {
					list[at] = list[at].clone()
					list[at].Text += "x"
				}
			case 5:
				if len(list) > 1 {
					list[at], list[0] = list[0], list[at]
				}
			case 6:
				_, _ = h.Compact(context.Background(), "")
			case 7:
				_ = m.Add(&line{ID: fmt.Sprint(i), Role: convo.RoleUser, Text: "typed"})
			}
			before := h.Len()
			err := m.Sync(list)
			var past *mirror.PastError
			if errors.As(err, &past) {
				require.Equal(t, before, h.Len())
				require.LessOrEqual(t, past.Index, len(list))
				if h.RewindTo(past.Last) != nil {
					return // a summary stands for what was taken back
				}
				err = m.Sync(list)
				require.False(t, errors.As(err, &past), "again: %v", err)
			}
			_, err2 := m.View(h.Snapshot())
			require.NoError(t, err2)
			if err == nil {
				require.NoError(t, m.Sync(list), "the same list again")
			}
		}
	})
}

func TestSend(t *testing.T) {
	tooLong, down := errors.New("prompt is too long: 900 tokens > 500 maximum"), errors.New("down")
	for _, c := range []struct {
		name  string
		fails []error
		calls int
		want  error
	}{
		{"well", nil, 1, nil},
		{"too long once", []error{tooLong}, 2, nil},
		{"too long always", []error{tooLong, tooLong, tooLong, tooLong}, 3, tooLong},
		{"down", []error{down}, 1, down},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, m := newMirror(t, nil, byPlace)
			list := []*line{newLine(convo.RoleUser, "Hello")}
			for range 20 {
				list = append(list, step("looking", 1, 10)...)
			}
			calls, last := 0, len(list)+1
			answer, err := mirror.Send(t.Context(), m, list, func(view []*line, s *convo.Snapshot) (string, error) {
				require.Less(t, len(strings.Join(texts(view), "")), len(strings.Join(texts(list), ""))+1)
				require.LessOrEqual(t, len(view), last)
				calls++
				if calls <= len(c.fails) {
					return "", c.fails[calls-1]
				}
				return "done", nil
			})
			assert.Equal(t, c.calls, calls)
			if c.want == nil {
				require.NoError(t, err)
				assert.Equal(t, "done", answer)
			} else {
				require.ErrorIs(t, err, c.want)
			}
		})
	}
}

// A nil snapshot is an error of the caller, and not of the codec.
func TestMirror_ViewOfNil(t *testing.T) {
	h, err := convo.New(nil)
	require.NoError(t, err)
	_, err = mirror.New(h, codec).View(nil)
	require.ErrorAs(t, err, new(*convo.ValueError))
	assert.EqualError(t, err, "convo: the snapshot given to View is <nil>, want one of the History, such as Prepare returns")
}

// A snapshot of another History shows what that says, also where its IDs are those of
// other entries. A copy has the keys, and so the values.
func TestMirror_ViewOfAnother(t *testing.T) {
	_, m := newMirror(t, nil, byPlace)
	list := []*line{newLine(convo.RoleUser, "first"), newLine(convo.RoleAssistant, "mine")}
	require.NoError(t, m.Sync(list))
	other := newHistory(t, nil)
	_, err := other.Append(convo.User("first"), convo.Assistant("another's"))
	require.NoError(t, err)
	view, err := m.View(other.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, 2)
	assert.Equal(t, []string{"first", "another's"}, texts(view))
	fork, err := convo.Restore(m.History().Snapshot(), nil)
	require.NoError(t, err)
	defer fork.Close()
	view, err = m.View(fork.Snapshot())
	require.NoError(t, err)
	same(t, list, view)
}

// A key that two messages have is an error at once, and not only when Resume looks for the
// rows. System messages have no rows.
func TestSync_KeyTwice(t *testing.T) {
	h, m := newMirror(t, nil, byKey)
	list := []*line{newLine(convo.RoleSystem, "s"), newLine(convo.RoleSystem, "t"), newLine(convo.RoleUser, "one"), newLine(convo.RoleAssistant, "two")}
	list[1].ID = list[0].ID
	list[3].ID = list[2].ID
	err := m.Sync(list)
	require.ErrorContains(t, err, "mirror: message 3: convo: row")
	row, ok := errors.AsType[*convo.RowError](err)
	require.True(t, ok)
	assert.Equal(t, "twice", row.Fault)
	assert.Equal(t, list[2].ID, row.Key)
	assert.Zero(t, h.Len())
	list[3].ID = "another"
	require.NoError(t, m.Sync(list))
	assert.Equal(t, 4, h.Len())
}

// A host stores an image that a result shows, or what was typed while a tool ran, between the
// results of parallel calls. Providers want the results first.
func TestMirror_MessageBetweenResults(t *testing.T) {
	codec := byPlace
	codec.Decode = func(l *line) ([]convo.Message, error) {
		if l.Role == convo.RoleTool {
			return []convo.Message{{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: l.Calls[0], Parts: []convo.Part{convo.Text(l.Text)}}}}}, nil
		}
		return decode(l)
	}
	result := func(call, text string) *line {
		l := newLine(convo.RoleTool, text)
		l.Calls = []string{call}
		return l
	}
	call := newLine(convo.RoleAssistant, "looking")
	call.Calls = []string{"c0", "c1", "c2"}
	again := newLine(convo.RoleAssistant, "again")
	again.Calls = []string{"c0"}
	image, typed := newLine(convo.RoleUser, "image"), newLine(convo.RoleUser, "typed")
	zero, one, two, last := result("c0", "zero"), result("c1", "one"), result("c2", "two"), result("c0", "last")
	list := []*line{newLine(convo.RoleUser, "Hello"), call, one, image, zero, typed, two, again, image.clone(), last}
	want := []*line{list[0], call, zero, one, two, image, typed, again, last, list[8]}

	opts := &convo.Options{Roles: convo.Relaxed()}
	h, m := newMirror(t, opts, codec)
	for _, n := range []int{1, len(list) - 3, len(list), len(list)} {
		require.NoError(t, m.Sync(list[:n]))
	}
	same(t, want, look(t, h, m))
	data, err := m.Decisions()
	require.NoError(t, err)
	for i, l := range list {
		list[i] = l.clone()
	}
	m, done, err := mirror.Resume(data, list, codec, opts)
	require.NoError(t, err)
	defer m.History().Close()
	assert.Nil(t, done.Past)
	require.NoError(t, m.Sync(list))
	assert.Equal(t, texts(want), texts(look(t, m.History(), m)))
}
