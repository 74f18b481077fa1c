package convo_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

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
		{-1, []int{0, 1, 1, 1, 1, 2}},
		{0, []int{0, 1, 1, 1, 1, 2}},
		{1, []int{1, 1, 1, 1, 2}},
		{2, []int{2}},
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
	masked := 0
	for seed := range uint64(400) {
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
	assert.Greater(t, masked, 300)
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
	assert.Equal(t, 5, rain.Same(grown), "the newest turn begins with entry 5")
	assert.Equal(t, 5, rain.Same(first))
	_, err = h.Append(convo.Assistant("a3"))
	require.NoError(t, err)
	assert.Equal(t, 6, h.Snapshot().Same(rain), "the ephemeral messages stayed where they were")
	_, err = h.Append(convo.User("u4"))
	require.NoError(t, err)
	assert.Equal(t, 5, h.Snapshot().Same(rain), "they have moved with the turn")
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
