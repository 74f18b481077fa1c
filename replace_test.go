package convo_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/internal/thoughts"
)

func said(h *convo.History) (texts []string) {
	for _, e := range h.Snapshot().All() {
		texts = append(texts, e.Message.Text())
	}
	return texts
}

func row(key, text string) convo.Message {
	m := convo.User(text)
	m.Key = key
	return m
}

func TestHistory_ReplaceRows(t *testing.T) {
	h := historyOf(t, nil)
	answer := convo.Assistant("b")
	answer.Key = "b"
	_, err := h.AppendRows(row("a", "a"), answer, row("c", "c"), row("d", "d"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(3, 4))

	last, err := h.ReplaceRows(3, row("new", "new"), row("d", "d, edited"))
	require.NoError(t, err)
	assert.Equal(t, convo.ID(6), last)
	assert.Equal(t, []string{"a", "b", "new", "d, edited"}, said(h))
	assert.Equal(t, []convo.ID{6}, h.Snapshot().Pinned(), "by its key")
	assert.True(t, h.Snapshot().TakenBack(4))
	assert.False(t, h.Snapshot().TakenBack(2))
	assert.False(t, h.Snapshot().TakenBack(6))
	assert.False(t, h.Snapshot().TakenBack(7), "it does not exist yet")

	_, err = h.ReplaceRows(2)
	require.NoError(t, err, "nothing in its place")
	assert.Equal(t, []string{"a"}, said(h))
}

// ReplaceRows(0) begins anew: the summary goes too, and what belongs to no entry stays.
func TestHistory_ReplaceAll(t *testing.T) {
	ctx := context.Background()
	store := &convotest.MemStore{}
	h, err := convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.SetSystem(convo.System("Be brief.")))
	require.NoError(t, h.SetMeta("title", "data"))
	require.NoError(t, h.SetTools(convo.Tool{Name: "read"}))
	_, err = h.AppendRows(row("a", "a"), convo.Assistant("b"), row("c", "c"))
	require.NoError(t, err)
	require.NoError(t, h.Pin(4))
	_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2, 3}, Summary: &convo.Summary{Text: "s"}})
	require.NoError(t, err)
	require.NoError(t, h.Save(ctx))
	_, err = h.ReplaceRows(2, row("x", "x"))
	require.ErrorAs(t, err, new(*convo.ValueError), "the summary stands for it")
	_, err = h.ReplaceRows(0, row("c", "c"), convo.Assistant("d"))
	require.NoError(t, err)
	check := func(h *convo.History) {
		assert.Equal(t, []string{"Be brief.", "c", "d"}, said(h))
		_, has := h.Snapshot().Summary()
		assert.False(t, has)
		assert.Equal(t, []convo.ID{5}, h.Snapshot().Pinned())
		title, data := h.Snapshot().Meta()
		assert.Equal(t, "title data", title+" "+data)
		assert.Len(t, h.Snapshot().Tools(), 1)
		assert.True(t, h.Snapshot().TakenBack(3))
	}
	check(h)
	require.NoError(t, h.Save(ctx))
	again, err := convo.Open(ctx, store, "s", nil)
	require.NoError(t, err)
	defer again.Close()
	check(again)
	found := 0
	for a, err := range h.Archive(ctx) {
		require.NoError(t, err)
		if a.Entry != nil && a.Entry.Message.Text() == "b" {
			found++
		}
	}
	assert.Positive(t, found, "the archive keeps what was taken back")
}

// What cannot be appended takes nothing back.
func TestHistory_ReplaceRowsRefused(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "read", Arguments: "{}"}
	h := historyOf(t, &convo.Options{MaxResult: 64, Spill: func(context.Context, convo.ToolResult) (string, error) { return "", errors.New("full") }})
	_, err := h.AppendRows(row("a", "a"), convo.Assistant("b"), row("c", "c"))
	require.NoError(t, err)
	before := h.Snapshot()
	for name, c := range map[string]struct {
		id   convo.ID
		rows []convo.Message
		want any
	}{
		"an empty message":    {2, []convo.Message{convo.User("")}, new(*convo.MessageError)},
		"a role":              {3, []convo.Message{convo.Assistant("d")}, new(*convo.RoleError)},
		"a result of no call": {2, []convo.Message{convo.Result(call, "r")}, new(*convo.PairError)},
		"an entry to come":    {9, []convo.Message{convo.User("d")}, nil},
		"no ID":               {-1, nil, nil},
		"a Spill that fails":  {2, []convo.Message{convo.Assistant("", call), convo.Result(call, string(make([]byte, 4000)))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.ReplaceRows(c.id, c.rows...)
			require.Error(t, err)
			if c.want != nil {
				assert.ErrorAs(t, err, c.want)
			}
			assert.Equal(t, before.Version(), h.Snapshot().Version())
		})
	}
	require.NoError(t, h.RewindTo(1))
	_, err = h.ReplaceRows(2, convo.User("d"))
	require.ErrorIs(t, err, convo.ErrStale, "it was taken back")
	_, err = h.Do(t.Context(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		_, err := h.ReplaceRows(1, convo.User("d"))
		assert.ErrorIs(t, err, convo.ErrStale)
		return convo.Reply{}, errors.New("stop")
	})
	require.Error(t, err)
	assert.Equal(t, []string{"a"}, said(h))
	_, err = new(convo.History).ReplaceRows(0)
	require.ErrorIs(t, err, convo.ErrClosed)
}

// Rows may interrupt open calls anywhere, and a note may come before everything else.
func TestHistory_AppendRows(t *testing.T) {
	call := func(id string) convo.Message {
		return convo.Assistant("", convo.ToolCall{ID: id, Name: "read", Arguments: "{}"})
	}
	rows := []convo.Message{convo.System("note"), convo.User("a"), call("1"), convo.User("b"), convo.User("c"), call("2"), convo.User("d")}
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	last, err := h.AppendRows(rows...)
	require.NoError(t, err)
	assert.Equal(t, convo.ID(9), last)
	require.NoError(t, h.SetSystem(convo.System("Be brief.")))
	data, err := h.Snapshot().MarshalJSON()
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, s.UnmarshalJSON(data))
	again, err := convo.Restore(&s, &convo.Options{Roles: convo.Relaxed()})
	require.NoError(t, err)
	defer again.Close()
	for _, h := range []*convo.History{h, again} {
		require.NoError(t, h.SetSystem(convo.System("Be calm.")))
		assert.Equal(t, []string{"Be calm.", "note", "a", "", "interrupted by the user", "b", "c", "", "interrupted by the user", "d"}, said(h))
	}

	h = historyOf(t, nil)
	_, err = h.AppendRows(rows...)
	require.ErrorAs(t, err, new(*convo.PairError), "Strict lets nobody interrupt")
	assert.Zero(t, h.Len())
	h = historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	_, err = h.Append(rows...)
	require.ErrorAs(t, err, new(*convo.PairError), "only the first message of an Append interrupts")
	_, err = h.AppendRows(append(rows, call("3"), convo.Result(convo.ToolCall{ID: "x"}, ""))...)
	require.ErrorAs(t, err, new(*convo.PairError))
	assert.Zero(t, h.Len())
}

func TestMessage_Sum(t *testing.T) {
	call := func(arguments string) convo.Message {
		return convo.Assistant(" Well. ", convo.ToolCall{ID: "1", Name: "read", Arguments: arguments})
	}
	result := func(id, text string) convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}}}
	}
	for name, c := range map[string]struct {
		a, b convo.Message
		same bool
	}{
		"white space":     {convo.User("a"), convo.User(" a\n"), true},
		"parts":           {convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("a"), convo.Text("b")}}, convo.User("ab"), true},
		"reasoning":       {thoughts.In(convo.Assistant("a"), convo.Reasoning{Text: "t", Signature: "s"}), convo.Assistant("a"), true},
		"key":             {row("k", "a"), convo.User("a"), true},
		"invalid":         {convo.User("a\xff"), convo.User("a\uFFFD"), true},
		"JSON":            {call(`{"a":1,"b":[1, 2]}`), call("{\"b\":[1,2],\n\"a\":1}"), true},
		"no JSON":         {call(""), call("{}"), true},
		"IDs":             {result("1", "a"), result("2", "a"), true},
		"role":            {convo.User("a"), convo.Assistant("a"), false},
		"text":            {convo.User("a"), convo.User("b"), false},
		"inner space":     {convo.User("a b"), convo.User("a  b"), false},
		"arguments":       {call(`{"a":1}`), call(`{"a":2}`), false},
		"numbers":         {call(`{"a":1}`), call(`{"a":1.0}`), false},
		"half JSON":       {call(`{"a":1}`), call(`{"a":1`), false},
		"a bracket":       {call(`{"a":1}`), call(`{"a":1}]`), false},
		"two values":      {call(`{"a":1}`), call(`{"a":1}{"a":2}`), false},
		"container":       {convo.Message{Role: convo.RoleAssistant, Origin: convo.Origin{Container: "c"}, Parts: []convo.Part{convo.Text("a")}}, convo.Assistant("a"), true},
		"media":           {convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png", Data: "AA=="}}}, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Media{MIME: "image/png", Data: "AB=="}}}, false},
		"place of a text": {convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("a"), convo.Media{URL: "u"}}}, convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Media{URL: "u"}, convo.Text("a")}}, false},
	} {
		if c.same {
			assert.Equal(t, c.a.Sum(), c.b.Sum(), name)
		} else {
			assert.NotEqual(t, c.a.Sum(), c.b.Sum(), name)
		}
	}
	assert.NotPanics(t, func() { convo.Message{Parts: []convo.Part{nil}}.Sum() })
}

// The sums are saved in Decisions, so they must never change.
func TestMessage_SumGolden(t *testing.T) {
	call := convo.ToolCall{ID: "1", Name: "read", Arguments: `{"b":[1, 2.50],"a":"ä"}`}
	cleared := convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{CallID: "1", Cleared: true, Parts: []convo.Part{convo.Text("gone")}}}}
	for _, c := range []struct {
		m    convo.Message
		want uint64
	}{
		{convo.Message{}, 0xc0c933306b404e08},
		{convo.System("Be brief."), 0x974afd3795ffb28a},
		{convo.User("The quick brown fox jumps over the lazy dog."), 0x19b54b0e2baf1eb8},
		{convo.Message{Role: convo.RoleUser, Author: "Ann", Parts: []convo.Part{convo.Text("Hm."), convo.Media{MIME: "image/png", Data: "AA=="}, convo.Media{MIME: "image/png", URL: "https://example.com/a.png"}}}, 0xf57e5f33183f75ff},
		{thoughts.In(convo.Assistant("Well.", call), convo.Reasoning{Text: "t", Signature: "s"}), 0x5a0d050dbdd05c78},
		{convo.Result(call, "a result"), 0xd596d3b248c365fc},
		{convo.ResultError(call, errors.New("no such file")), 0xd23b72c2b85212b5},
		{cleared, 0xb3bc8dd0d26bb518},
		{convo.Message{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Opaque{Format: "anthropic", JSON: `{"type":"x"}`}}}, 0xf4590085e0f3757a},
	} {
		assert.Equal(t, c.want, c.m.Sum(), "%v: %#x", c.m, c.m.Sum())
	}
}

// The rows of entries that are taken back are not needed, and others may come in their place.
func TestDecisions_RewindTo(t *testing.T) {
	ask := func(i int) convo.Message { return row(string(rune('a'+i)), "question") }
	for _, n := range []int{4, 40} { // with keys that are listed or not
		h := historyOf(t, nil)
		var rows []convo.Message
		for i := range n {
			m := row("", "x")
			m.Key = string(rune('A' + i))
			if i%2 == 1 {
				m.Role = convo.RoleAssistant
			}
			rows = append(rows, m)
		}
		_, err := h.AppendRows(rows...)
		require.NoError(t, err)
		require.NoError(t, h.Pin(1, 4))
		data, err := h.Decisions()
		require.NoError(t, err)
		for last := range n {
			d, err := convo.ReadDecisions(data)
			require.NoError(t, err)
			require.NoError(t, d.RewindTo(convo.ID(last)))
			other := append(append([]convo.Message(nil), rows[:last]...), ask(last))
			if last%2 == 1 {
				other[last].Role = convo.RoleAssistant
			}
			again, err := convo.Resume(d, rowsOf(other...), nil)
			require.NoError(t, err, "%d of %d", last, n)
			assert.Equal(t, last+1, again.Len())
			assert.True(t, last == n || again.Snapshot().TakenBack(convo.ID(last+1)))
			e, _ := again.Snapshot().At(last)
			assert.Equal(t, convo.ID(n+1), e.ID, "no ID is used again")
			require.NoError(t, again.Close())
		}
	}
	d, err := convo.ReadDecisions(func() []byte {
		h := historyOf(t, nil)
		_, err := h.AppendRows(row("a", "a"), convo.Assistant("b"), row("c", "c"))
		require.NoError(t, err)
		_, err = h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{1, 2}, Summary: &convo.Summary{Text: "s"}})
		require.NoError(t, err)
		data, err := h.Decisions()
		require.NoError(t, err)
		return data
	}())
	require.NoError(t, err)
	require.ErrorAs(t, d.RewindTo(1), new(*convo.ValueError))
	require.NoError(t, d.RewindTo(2))
	for _, d := range []*convo.Decisions{nil, new(convo.Decisions)} {
		require.ErrorAs(t, d.RewindTo(1), new(*convo.ValueError))
		d.Accept("key")
		keys, from := d.Needs()
		assert.Empty(t, keys)
		assert.Empty(t, from)
		_, err := convo.Resume(d, nil, nil)
		require.ErrorAs(t, err, new(*convo.ValueError))
	}
}

// Reasoning stays bound to what it was made of, whatever stands before it by now.
func TestHistory_ReplaceRowsKeepsBonds(t *testing.T) {
	row := func(key string, m convo.Message) convo.Message {
		m.Key = key
		return m
	}
	h := historyOf(t, nil, row("a", convo.User("a")), row("b", signed("b")), row("c", convo.User("c")), row("d", signed("d")), row("e", convo.User("e")))
	require.Empty(t, h.Snapshot().Unbound())
	_, err := h.ReplaceRows(3, row("c", convo.User("c")), row("d", signed("d")), row("new", convo.User("new")))
	require.NoError(t, err)
	assert.Empty(t, h.Snapshot().Unbound(), "the same stands before d")
	_, err = h.ReplaceRows(6, row("c", convo.User("c, edited")), row("d", signed("d")))
	require.NoError(t, err)
	assert.Equal(t, []convo.ID{10}, h.Snapshot().Unbound(), "something else stands before d")
	_, err = h.ReplaceRows(0, row("x", convo.User("x")), row("b", signed("b")), row("y", convo.User("y")), row("z", signed("z")))
	require.NoError(t, err)
	assert.Len(t, h.Snapshot().Unbound(), 2)
}

// Reasoning of a row that has left the view before is not bound where it comes back; that of
// the answer to the request under way is, whatever was appended since.
func TestHistory_ReplaceRowsBackInTheView(t *testing.T) {
	row := func(key string, m convo.Message) convo.Message {
		m.Key = key
		return m
	}
	for _, isAsking := range []bool{false, true} {
		h := historyOf(t, nil, row("a", convo.User("a")), row("b", signed("b")), row("c", convo.User("c")), row("d", signed("d")), row("e", convo.User("e")))
		_, err := h.Apply(h.Snapshot(), convo.Edit{Drop: []convo.ID{2}})
		require.NoError(t, err)
		if isAsking {
			_, _, err = h.Prepare(t.Context())
			require.NoError(t, err)
		}
		last, err := h.ReplaceRows(3, row("c", convo.User("c, edited")), row("b", signed("b")), row("e", convo.User("e")), row("d", signed("d")), row("f", convo.User("f")))
		require.NoError(t, err)
		assert.Equal(t, []convo.ID{last - 3, last - 1}, h.Snapshot().Unbound())
	}
	h := historyOf(t, nil, row("a", convo.User("a")))
	_, _, err := h.Prepare(t.Context())
	require.NoError(t, err)
	typed, err := h.AppendRows(row("typed", convo.User("typed")))
	require.NoError(t, err)
	_, err = h.ReplaceRows(typed, row("b", signed("b")), row("typed", convo.User("typed")))
	require.NoError(t, err)
	assert.Empty(t, h.Snapshot().Unbound())
}

// The container of an answer is kept wherever the answer is: in the log, in the rows of an
// application and in a snapshot.
func TestOrigin_Container(t *testing.T) {
	answer := signed("it runs", callOf("c"))
	answer.Origin = convo.Origin{Format: "f", Model: "m", Container: "container_1"}
	rows := []convo.Message{keyed("1", convo.User("u")), keyed("2", answer)}
	want := func(h *convo.History) {
		t.Helper()
		s := h.Snapshot()
		e, _ := s.Find(2)
		assert.Equal(t, answer.Origin, e.Message.Origin)
		assert.True(t, s.Bound(2))
	}
	store := new(convotest.MemStore)
	h, err := convo.Open(t.Context(), store, "k", nil)
	require.NoError(t, err)
	mustAppend(t, h, rows[0])
	_, err = h.AppendReply(h.Snapshot(), convo.Reply{Messages: rows[1:]})
	require.NoError(t, err)
	want(h)
	require.NoError(t, h.Save(t.Context()))
	again, err := convo.Open(t.Context(), store, "k", nil)
	require.NoError(t, err)
	want(again)
	again, err = convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	want(again)
	again, err = convo.Resume(decisionsOf(t, h), rowsOf(rows...), nil)
	require.NoError(t, err)
	want(again)
}
