package convo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

func TestSnapshot_At(t *testing.T) {
	s := tour(t, nil).Snapshot()
	for _, i := range []int{-1, 9, 10} {
		_, ok := s.At(i)
		assert.False(t, ok, "%d", i)
	}
	for i := range 9 {
		e, ok := s.At(i)
		assert.True(t, ok)
		assert.EqualValues(t, i+1, e.ID)
		found, ok := s.Find(e.ID)
		assert.True(t, ok)
		assert.Equal(t, e, found)
	}
	for _, id := range []convo.ID{-1, 0, 10} {
		_, ok := s.Find(id)
		assert.False(t, ok, "%d", id)
	}
}

// A loop over a snapshot may stop anywhere.
func TestSnapshot_RangesEndEarly(t *testing.T) {
	s := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.System("one"), convo.System("two"), convo.User("u"), convo.User("v")).Snapshot()
	for stop := range 4 {
		n := 0
		for i := range s.All() {
			assert.Equal(t, n, i)
			if n++; i == stop {
				break
			}
		}
		assert.Equal(t, stop+1, n)
		n = 0
		for x := range s.Exchanges() {
			if n++; int(x.First) == stop+1 {
				break
			}
		}
		assert.Equal(t, stop+1, n)
	}
}

func TestSnapshot_Exchanges(t *testing.T) {
	h := tour(t, bare())
	c := callOf("open")
	mustAppend(t, h, convo.Assistant("", c, callOf("answered")), convo.Result(callOf("answered"), "r"))
	require.NoError(t, h.Pin(4))
	type row struct {
		first, last convo.ID
		tokens      int
		floor, open bool
		turn        int
	}
	var got []row
	for x := range h.Snapshot().Exchanges() {
		got = append(got, row{x.First, x.Last, x.Tokens, x.Floor, x.Open, x.Turn})
		ids := x.IDs()
		assert.Equal(t, x.First, ids[0])
		assert.Equal(t, x.Last, ids[len(ids)-1])
	}
	assert.Equal(t, []row{
		{1, 1, 5, true, false, 0}, {2, 2, 8, false, false, 1}, {3, 5, 134, true, false, 1}, {6, 6, 5, false, false, 1},
		{7, 7, 7, false, false, 2}, {8, 8, 6, false, false, 2}, {9, 9, 9, true, false, 3}, {10, 11, 10 + 14 + 13, true, true, 3},
	}, got)
}

// NewSnapshot makes system messages system entries, before any Restore.
func TestNewSnapshot_SystemEntries(t *testing.T) {
	s := convo.NewSnapshot([]convo.Message{convo.System("one"), convo.System("two"), convo.User("u"), convo.Assistant("a"), convo.User("v")})
	var floor []bool
	for x := range s.Exchanges() {
		floor = append(floor, x.Floor)
	}
	assert.Equal(t, []bool{true, true, false, false, true}, floor)
	_, err := s.With(convo.Edit{Drop: []convo.ID{2}})
	require.ErrorContains(t, err, "names a system entry (entry 2)")
	next, err := s.With(convo.Edit{Drop: []convo.ID{3}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two"}, textsOf(next)[:2], "the summary stands behind all of them")
	sum, _ := next.Summary()
	assert.Equal(t, s.Tokens()-5+sum.Tokens, next.Tokens()) // 4 for the message, 1 for its text
}

func TestReading_DoesNotAllocate(t *testing.T) {
	h := appendN(1000, nil)
	h.Snapshot()
	for name, f := range map[string]func(){
		"Snapshot": func() { h.Snapshot() },
		"Len":      func() { h.Len() },
		"Status":   func() { h.Status() },
		"Tokens":   func() { h.Tokens() },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

func TestNewSnapshot_SystemMessagesInFront(t *testing.T) {
	s := convo.NewSnapshot([]convo.Message{convo.System("one"), convo.System("two"), convo.System("three"), convo.User("u"), convo.Assistant("a")})
	h, err := convo.Restore(s, nil)
	require.NoError(t, err)
	assert.Equal(t, 3, h.Status().System)
	assert.Equal(t, []string{"one", "two", "three", "u", "a"}, textsOf(h.Snapshot()))
	assert.Equal(t, []convo.ID{1, 2, 3, 4, 5}, idsOf(h.Snapshot()))
	h, err = convo.Restore(convo.NewSnapshot([]convo.Message{convo.System("one"), convo.System("two")}), nil)
	require.NoError(t, err)
	assert.Equal(t, 2, h.Status().System)
}

// A snapshot that was not checked by Restore is safe to read and to plan with.
func TestNewSnapshot_IsSafeToRead(t *testing.T) {
	text := convo.Text("t")
	s := convo.NewSnapshot([]convo.Message{
		convo.User("u"), convo.Assistant("", toolC),
		{Role: convo.RoleTool, Parts: []convo.Part{text, convo.ToolResult{CallID: "c"}, &text, nil}},
		{Role: "robot", Parts: []convo.Part{foreignPart{text}}}, convo.System("s"), convo.User("v"),
		convo.Assistant("", toolC),
	})
	_ = printOf(s)
	next, err := s.With(convo.Edit{Clear: []convo.Clear{{ID: 3}}})
	require.NoError(t, err)
	_ = printOf(next)
	open := false
	for x := range s.Exchanges() {
		open = x.Open
	}
	assert.True(t, open, "the newest exchange")
	h, err := convo.Restore(s, &convo.Options{Repair: func(convo.Fault) {}})
	require.NoError(t, err)
	checkPairs(t, h.Snapshot())
	assert.Equal(t, 1, h.Status().OpenCalls)
	reload(t, h, nil)
}

func TestNewSnapshot_Options(t *testing.T) {
	msgs := []convo.Message{convo.User("12345"), convo.Assistant("1234567")}
	opts := &convo.Options{Tokenizer: byBytes, Overheads: convo.Overheads{Message: 100}}
	s := convo.NewSnapshot(msgs, nil, opts, nil)
	assert.Equal(t, 212, s.Tokens())
	h, err := convo.Restore(s, opts)
	require.NoError(t, err)
	assert.Equal(t, s.Tokens(), h.Snapshot().Tokens())

	plain := convo.NewSnapshot(msgs).Tokens()
	assert.NotEqual(t, 212, plain)
	assert.Equal(t, plain, convo.NewSnapshot(msgs, nil).Tokens())
	boom := func(s string) int { panic("boom") }
	assert.Equal(t, plain, convo.NewSnapshot(msgs, &convo.Options{Tokenizer: convo.TokenizerFunc(boom)}).Tokens())
}

// A loop over all entries does not allocate for each of them, and what it hands out
// may be changed.
func TestSnapshot_AllAllocations(t *testing.T) {
	const n = 10_000
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	for i := range n {
		mustAppend(t, h, convo.User(fmt.Sprint("message ", i)))
	}
	s := h.Snapshot()
	size := 0
	read := func() {
		for _, e := range s.All() {
			size += len(e.Message.Parts[0].(convo.Text))
		}
	}
	assert.Less(t, testing.AllocsPerRun(5, read), float64(n/200))
	assert.Positive(t, size)

	call := convo.ToolCall{ID: "c", Name: "search"}
	for range 50 {
		mustAppend(t, h, convo.Assistant("two parts", call), convo.Result(call, "found"), convo.User("and", convo.Text("more")))
	}
	s = h.Snapshot()
	before, err := s.MarshalJSON()
	require.NoError(t, err)
	var got []convo.Entry
	for _, e := range s.All() {
		got = append(got, e)
	}
	for _, e := range got { // each change stays where it is made
		for i, p := range e.Message.Parts {
			if r, ok := p.(convo.ToolResult); ok {
				assert.Equal(t, "found", r.Text())
				r.Parts[0] = convo.Text("hostile")
				_ = append(r.Parts, convo.Text("hostile"))
				continue
			}
			assert.NotContains(t, fmt.Sprint(p), "hostile")
			e.Message.Parts[i] = convo.Text("hostile")
		}
		_ = append(e.Message.Parts, convo.Text("hostile"))
	}
	after, err := s.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	for i, e := range s.All() {
		if i == 3 {
			break
		}
		assert.Equal(t, fmt.Sprint("message ", i), e.Message.Text())
	}
}

func assertMeta(t *testing.T, s *convo.Snapshot, title, data string) {
	t.Helper()
	gotTitle, gotData := s.Meta()
	assert.Equal(t, title, gotTitle)
	assert.Equal(t, data, gotData)
}

// What SetMeta was given outlives everything but another SetMeta, and changes
// nothing else.
func TestSetMeta_Stays(t *testing.T) {
	h := tour(t, nil)
	old := h.Snapshot()
	require.NoError(t, h.SetMeta("Rome", `{"user": 7}`))
	at := h.Snapshot()
	assertMeta(t, old, "", "")
	assertMeta(t, at, "Rome", `{"user": 7}`)
	assert.Equal(t, old.Version(), at.Version())
	assert.Equal(t, old.Messages(), at.Messages())
	require.NoError(t, h.SetMeta("Rome", `{"user": 7}`))
	assert.Same(t, at, h.Snapshot())

	require.NoError(t, h.Rollback(old))
	_, err := h.Rewind(1)
	require.NoError(t, err)
	assertMeta(t, h.Snapshot(), "Rome", `{"user": 7}`)
	fork, err := convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	assertMeta(t, fork.Snapshot(), "Rome", `{"user": 7}`)
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	again, err := convo.Restore(snapshotOf(t, string(data)), nil)
	require.NoError(t, err)
	assertMeta(t, again.Snapshot(), "Rome", `{"user": 7}`)
	checkSaved(t, h, nil)

	require.NoError(t, h.SetMeta("", ""))
	assertMeta(t, h.Snapshot(), "", "")
	assertMeta(t, fork.Snapshot(), "Rome", `{"user": 7}`)
}

func TestSetMeta_Bounds(t *testing.T) {
	h := tour(t, nil)
	require.NoError(t, h.SetMeta(strings.Repeat("t", 256), strings.Repeat("d", 65_536)))
	checkSaved(t, h, nil)
	before := h.Snapshot()
	for _, tt := range []struct{ title, data, want string }{
		{strings.Repeat("t", 257), "", "convo: title is \"257 bytes long\", want at most 256 bytes"},
		{"", strings.Repeat("d", 65_537), "convo: data is \"65,537 bytes long\", want at most 65,536 bytes"},
		{strings.Repeat("a\xff", 65), "", "convo: title is \"260 bytes long\", want at most 256 bytes"},
	} {
		err := h.SetMeta(tt.title, tt.data)
		require.EqualError(t, err, tt.want)
		assert.ErrorAs(t, err, new(*convo.ValueError))
		assert.Same(t, before, h.Snapshot())
	}
	require.NoError(t, h.SetMeta("a\xffb", "c\xff\xfed"))
	assertMeta(t, h.Snapshot(), "a\uFFFDb", "c\uFFFDd")
}

// The title and the data are saved, also alone, and a list shows the title.
func TestSetMeta_Saved(t *testing.T) {
	s := new(shelf)
	h := open(t, s, "k", nil)
	require.NoError(t, h.SetMeta("Rome", "7"))
	assert.Equal(t, 1, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)
	mustAppend(t, h, convo.User("hello"))
	save(t, h)
	require.NoError(t, h.SetMeta("Paris", ""))
	assert.Equal(t, 1, h.Status().Unsaved)
	save(t, h)
	checkOpened(t, s, "k", nil, h)
	titles := func() (titles []string) {
		for head, err := range s.List(t.Context(), convo.ListOptions{}) {
			require.NoError(t, err)
			titles = append(titles, head.Title)
		}
		return titles
	}
	assert.Equal(t, []string{"Paris"}, titles())
	for i, want := range [][2]string{{"Rome", "7"}, {"Rome", "7"}, {"Paris", ""}} {
		at, err := convo.Load(t.Context(), s, "k", uint64(i+1))
		require.NoError(t, err)
		assertMeta(t, at, want[0], want[1])
	}
	require.NoError(t, h.SetMeta("", ""))
	save(t, h)
	checkOpened(t, s, "k", nil, h)
	assert.Equal(t, []string{""}, titles())
}

// Reload takes over the title and the data, unless SetMeta has changed one of them.
func TestSetMeta_Reload(t *testing.T) {
	s := new(shelf)
	a, b := pair(t, s, nil, convo.User("hello"))
	require.NoError(t, a.SetMeta("Rome", "7"))
	save(t, a)
	takeOver(t, b)
	assertMeta(t, b.Snapshot(), "Rome", "7")
	assert.Zero(t, b.Status().Unsaved)

	require.NoError(t, a.SetMeta("Paris", "8"))
	save(t, a)
	require.NoError(t, b.SetMeta("Oslo", "7"))
	takeOver(t, b)
	assertMeta(t, b.Snapshot(), "Oslo", "7")
	save(t, b)
	checkOpened(t, s, "k", nil, b)
	takeOver(t, a)
	assertMeta(t, a.Snapshot(), "Oslo", "7")
}

// collect returns the messages of s from an entry on, and their indices.
func collect(s *convo.Snapshot, from int) (at []int, msgs []convo.Message) {
	for i, m := range s.MessagesFrom(from, nil) {
		at, msgs = append(at, i), append(msgs, m)
	}
	return at, msgs
}

// collectNamed returns the messages of s from an entry on as a format shows them that
// names b in a field.
func collectNamed(s *convo.Snapshot, from int) (msgs []convo.Message) {
	for _, m := range s.MessagesFrom(from, func(_ convo.Role, author string) bool { return author == "b" }) {
		msgs = append(msgs, m)
	}
	return msgs
}

// A message whose author is named elsewhere comes as it is. No tag stands around it, and
// no key is spread over it and its neighbours.
func TestSnapshot_MessagesFromNamed(t *testing.T) {
	by := func(role convo.Role, author, text string) convo.Message {
		return convo.Message{Role: role, Author: author, Parts: []convo.Part{convo.Text(text)}}
	}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, by(convo.RoleUser, "b", "hi"), by(convo.RoleUser, "a", "ho"), by(convo.RoleAssistant, "b", "so"))
	s := h.Snapshot()
	all, named := s.Messages(), collectNamed(s, 0)
	require.Len(t, named, 3)
	assert.Equal(t, by(convo.RoleUser, "b", "hi"), named[0])
	assert.Equal(t, all[1], named[1])
	assert.Len(t, named[1].Parts, 3)
	assert.Equal(t, by(convo.RoleAssistant, "b", "so"), named[2])
	roles := map[convo.Role]bool{}
	for range s.MessagesFrom(0, func(role convo.Role, _ string) bool { roles[role] = true; return false }) {
	}
	assert.Equal(t, map[convo.Role]bool{convo.RoleUser: true, convo.RoleAssistant: true}, roles)

	h = historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	key := keyOf(t, h)
	_, err := h.Append(convo.User("x@"+key[:4]), by(convo.RoleUser, "b", key[4:]+"y"), by(convo.RoleUser, "b", "@"+key[:4]), convo.User(key[4:]+"z"))
	require.NoError(t, err)
	for from := range 4 {
		var texts []string
		for _, m := range collectNamed(h.Snapshot(), from) {
			texts = append(texts, m.Text())
		}
		assert.Equal(t, []string{"x@" + key[:4] + "***", key[4:] + "y", "@" + key[:4] + "***", key[4:] + "z"}[from:], texts)
	}
}

func TestSnapshot_MessagesFrom(t *testing.T) {
	h := historyOf(t, nil, convo.System("s"), convo.User("u1"), convo.Assistant("a1"), convo.User("u2"), convo.Assistant("a2"))
	require.NoError(t, h.SetEphemeral(convo.User("e1"), convo.User("e2")))
	_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "sum"}})
	require.NoError(t, err)
	s := h.Snapshot()
	all := s.Messages()
	require.Len(t, all, 6)
	for _, tt := range []struct {
		from int
		at   []int
	}{
		{-1, []int{0, 1, 1, 2, 2, 2}},
		{0, []int{0, 1, 1, 2, 2, 2}},
		{1, []int{1, 1, 2, 2, 2}},
		{2, []int{2, 2, 2}},
		{3, nil},
		{4, nil},
	} {
		at, msgs := collect(s, tt.from)
		assert.Equal(t, tt.at, at, "%d", tt.from)
		assert.Equal(t, all[len(all)-len(tt.at):], append([]convo.Message{}, msgs...), "%d", tt.from)
	}
	for stop := range all {
		n := 0
		for range s.MessagesFrom(0, nil) {
			if n++; n > stop {
				break
			}
		}
		assert.Equal(t, stop+1, n)
	}
	at, msgs := collect(new(convo.Snapshot), 0)
	assert.Empty(t, at)
	assert.Empty(t, msgs)
}

// MessagesFrom shows a message as Messages does, wherever it starts.
func TestSnapshot_MessagesFromMasksAsMessages(t *testing.T) {
	seeds := long.Or(100, 400)
	masked := 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		h := historyOf(t, &convo.Options{Roles: convo.Relaxed()}, convo.Message{Role: convo.RoleUser, Author: "a", Parts: []convo.Part{convo.Text("x")}})
		key := keyOf(t, h)
		piece := func() string {
			from := rng.IntN(len(key))
			text := key[from : from+1+rng.IntN(len(key)-from)]
			switch rng.IntN(12) {
			case 0:
				text = " \t" + text + "\u200b"
			case 1:
				text += key
			case 2:
				text = "<from " + text
			case 3:
				text = "é" + text
			case 4:
				text = " "
			case 5, 6, 7:
				text = "@" + key[:len(text)]
			}
			return text
		}
		for range 12 {
			m := convo.User(piece())
			switch rng.IntN(5) {
			case 0:
				m = convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: piece()}, convo.Text(piece()), convo.Reasoning{Text: piece()}}}
			case 1:
				c := convo.ToolCall{ID: "c", Name: "f"}
				_, err := h.Append(convo.Assistant("", c))
				require.NoError(t, err)
				m = convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "c", Parts: []convo.Part{convo.Text(piece()), convo.Text(piece())}}}}
			case 2:
				m = convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Reasoning{Text: piece()}, convo.Reasoning{Text: piece(), Signature: "s"}}}
			case 3:
				if rng.IntN(3) == 0 {
					m.Author = "b"
				}
			}
			_, err := h.Append(m)
			require.NoError(t, err)
		}
		if rng.IntN(2) == 0 {
			require.NoError(t, h.SetEphemeral(convo.User(piece()), convo.User(piece())))
		}
		s := h.Snapshot()
		all := s.Messages()
		for i := range s.Len() + 1 {
			_, msgs := collect(s, i)
			require.Equal(t, all[len(all)-len(msgs):], append([]convo.Message{}, msgs...), "seed %d, from %d", seed, i)
			named := collectNamed(s, i)
			require.Equal(t, collectNamed(s, 0)[len(all)-len(msgs):], append([]convo.Message{}, named...), "seed %d, from %d", seed, i)
			if e, ok := s.At(i); ok && e.Message.Author == "" && len(msgs) == s.Len()-i && !reflect.DeepEqual(e.Message.Parts, msgs[0].Parts) {
				masked++
			}
		}
	}
	assert.Greater(t, masked, seeds*3/4)
}

func TestSnapshot_Same(t *testing.T) {
	h := historyOf(t, nil, convo.System("s"), convo.User("u1"), convo.Assistant("a1"), convo.User("u2"), convo.Assistant("a2"))
	first := h.Snapshot()
	assert.Equal(t, 5, first.Same(first))
	assert.Zero(t, first.Same(nil))
	assert.Zero(t, (*convo.Snapshot)(nil).Same(first))
	assert.Zero(t, first.Same(convo.NewSnapshot(first.Messages())))
	assert.Zero(t, first.Same(historyOf(t, nil, first.Messages()...).Snapshot()))
	assert.Zero(t, new(convo.Snapshot).Same(first))

	_, err := h.Append(convo.User("u3"))
	require.NoError(t, err)
	grown := h.Snapshot()
	assert.Equal(t, 5, grown.Same(first))
	assert.Equal(t, 5, first.Same(grown))

	require.NoError(t, h.SetEphemeral(convo.User("it rains")))
	rain := h.Snapshot()
	assert.Equal(t, 6, rain.Same(grown), "they stand after all")
	assert.Equal(t, 5, rain.Same(first))
	_, err = h.Append(convo.Assistant("a3"))
	require.NoError(t, err)
	answered := h.Snapshot()
	assert.Equal(t, 6, answered.Same(rain), "the ephemeral messages stayed where they were")
	_, err = h.Append(convo.User("u4"))
	require.NoError(t, err)
	assert.Equal(t, 6, h.Snapshot().Same(answered), "they have moved with the turn")
	assert.Equal(t, 6, answered.Same(h.Snapshot()))
	require.NoError(t, h.SetEphemeral())
	require.NoError(t, h.SetMeta("t", ""))
	assert.Equal(t, 8, h.Snapshot().Same(h.Snapshot()))

	err = h.Rollback(first)
	require.NoError(t, err)
	assert.Equal(t, 5, h.Snapshot().Same(grown))
	_, err = h.Append(convo.User("another"))
	require.NoError(t, err)
	assert.Equal(t, 5, h.Snapshot().Same(grown))

	last := h.Snapshot()
	with, err := last.With(convo.Edit{Rewrite: []convo.Rewrite{{ID: 3, Parts: []convo.Part{convo.Text("other")}}}})
	require.NoError(t, err)
	assert.Equal(t, 2, with.Same(last))
	with, err = last.With(convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "sum"}})
	require.NoError(t, err)
	assert.Zero(t, with.Same(last))
	require.NoError(t, h.SetSystem(convo.System("t")))
	assert.Zero(t, h.Snapshot().Same(last))

	assert.Zero(t, testing.AllocsPerRun(10, func() { grown.Same(first) }))
}

// The end of a conversation is read without the rest of it, also where that holds no
// reasoning or no text: the texts before an entry matter only if it has something to mask.
func TestSnapshot_MessagesFromReadsLittle(t *testing.T) {
	const messages = 2000
	image := convo.Media{MIME: "image/png", Data: "AAAA"}
	for name, parts := range map[string][]convo.Part{
		"no reasoning": {convo.Text("text")},
		"no text":      {image},
		"reasoning":    {convo.Reasoning{Text: "hm"}, convo.Text("text")},
	} {
		t.Run(name, func(t *testing.T) {
			var msgs []convo.Message
			for i := range messages {
				m := convo.Message{Role: convo.RoleUser, Author: "u", Parts: []convo.Part{parts[len(parts)-1]}}
				if i%2 == 1 {
					m = convo.Message{Role: convo.RoleAssistant, Author: "a", Parts: parts}
				}
				msgs = append(msgs, m)
			}
			s := historyOf(t, nil, msgs...).Snapshot()
			asked := 0
			shown := 0
			for range s.MessagesFrom(messages-2, func(convo.Role, string) bool { asked++; return true }) {
				shown++
			}
			assert.Equal(t, 2, shown)
			assert.LessOrEqual(t, asked, 10, "of %d messages", messages)
		})
	}
}

// When no ID or turn is left, what would need one is refused.
func TestHistory_IDsAndTurnsRunOut(t *testing.T) {
	const (
		user = `{"id":1,"turn":1,"message":{"role":"user","parts":[{"type":"text","text":"u"}]}}`
		call = `{"id":2,"turn":1,"message":{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f"}]}}`
		open = call + `,{"id":3,"turn":1,"message":{"role":"assistant","parts":[{"type":"text","text":"a"}]}}`
	)
	read := func(numbers, second string) *convo.Snapshot {
		return snapshotOf(t, `{"version":1,"key":"@bcdefgh",`+numbers+`,"entries":[`+user+`,`+second+`]}`)
	}
	oneLeft := read(`"last":9007199254740991,"turn":1`, call)
	h, err := convo.Restore(oneLeft, nil)
	require.NoError(t, err)
	unchanged(t, h, func() {
		_, err := h.Append(convo.Result(toolC, "r"), convo.Assistant("a"))
		require.EqualError(t, err, "convo: ID is 9007199254740993, want at most 9007199254740992; begin another conversation")
	})
	assert.Equal(t, convo.ID(1<<53), mustAppend(t, h, convo.Result(toolC, "r")), "the last one")
	unchanged(t, h, func() {
		_, err := h.Append(convo.Assistant("a"))
		require.Error(t, err)
		require.Error(t, h.SetSystem(convo.System("s")))
	})
	require.NoError(t, h.SetSystem(), "takes no ID")

	h, err = convo.Restore(read(`"last":9007199254740000,"turn":1073741824`, call), nil)
	require.NoError(t, err)
	mustAppend(t, h, convo.Result(toolC, "r"), convo.Assistant("a"))
	unchanged(t, h, func() {
		_, err := h.Append(convo.User("v"))
		require.EqualError(t, err, "convo: turn is 1,073,741,825, want at most 1,073,741,824; begin another conversation")
	})

	_, err = convo.Restore(oneLeft, &convo.Options{OnLoad: convo.OnLoadClose})
	require.NoError(t, err)
	noneLeft := `"last":9007199254740992,"turn":1`
	h, err = convo.Restore(read(noneLeft, call), nil)
	require.NoError(t, err)
	unchanged(t, h, func() {
		_, err := h.AnswerOpenCalls("")
		require.Error(t, err)
	})
	assert.Equal(t, 1, h.Status().OpenCalls)
	for name, tt := range map[string]struct {
		second string
		opts   convo.Options
	}{
		"close":  {call, convo.Options{OnLoad: convo.OnLoadClose}},
		"repair": {open, convo.Options{Repair: func(convo.Fault) {}}},
	} {
		_, err = convo.Restore(read(noneLeft, tt.second), &tt.opts)
		wrong, ok := errors.AsType[*convo.SnapshotError](err)
		require.True(t, ok, "%s: %v", name, err)
		assert.Equal(t, -1, wrong.Index)
	}
}

// The version grows with each change of the view, the pins, the bonds, the limits, the model
// and the estimate, and with no other.
func TestSnapshot_Version(t *testing.T) {
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 10_000}})
	id := mustAppend(t, h, convo.User("a"))
	version := h.Snapshot().Version()
	step := func(name string, grows bool, err error) {
		t.Helper()
		require.NoError(t, err, name)
		now := h.Snapshot().Version()
		assert.Equal(t, grows, now > version, name)
		version = now
	}
	step("Pin", true, h.Pin(id))
	step("SetLimits", true, h.SetLimits(convo.Limits{Window: 20_000}))
	step("SetModel", true, h.SetModel("m", convo.Limits{}))
	step("RecordUsage", true, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 10}))
	step("SetTools", true, h.SetTools(convo.Tool{Name: "x"}))
	step("SetEphemeral", true, h.SetEphemeral(convo.System("x")))
	h.Release()
	step("Release", true, nil)
	step("SetMeta", false, h.SetMeta("title", "data"))
	step("Queue", false, h.Queue(convo.User("q")))
	_ = h.Unqueue()
	step("Unqueue", false, nil)
	_, _, err := h.MakeRoom(t.Context(), 10)
	step("MakeRoom", false, err)
	step("Attach", false, h.Attach(t.Context(), new(shelf), "k"))
	step("Save", false, h.Save(t.Context()))
}
