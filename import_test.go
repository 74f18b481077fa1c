package convo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// listOf returns the view in short: ID, role, turn and text of each entry.
func listOf(s *convo.Snapshot) (list []string) {
	for _, e := range s.All() {
		list = append(list, fmt.Sprintf("%d %s %d %s%s", e.ID, e.Message.Role, e.Turn, e.Message.Author, e.Message.Text()))
	}
	return list
}

// saved checks that a History can be saved and restored as it is, without Repair.
func saved(t *testing.T, h *convo.History) {
	t.Helper()
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	var s convo.Snapshot
	require.NoError(t, json.Unmarshal(data, &s))
	again, err := convo.Restore(&s, &convo.Options{IsSummary: func(convo.Message) bool { panic("not imported") }})
	require.NoError(t, err)
	assert.Equal(t, listOf(h.Snapshot()), listOf(again.Snapshot()))
	before, _ := h.Snapshot().Summary()
	after, _ := again.Snapshot().Summary()
	assert.Equal(t, before.Text, after.Text)
	assert.Equal(t, before.Covers, after.Covers)
}

func TestIsSummary(t *testing.T) {
	msgs := []convo.Message{
		convo.System("Be brief."),
		convo.System("told: trains."),
		convo.User("q1"),
		convo.System("It is noon."),
		convo.Assistant("a1"),
		convo.System("told: buses."),
		convo.User("q2"),
		convo.Assistant("a2"),
	}
	opts := &convo.Options{IsSummary: func(m convo.Message) bool {
		m.Parts[0] = convo.Text(m.Text()) // it is a copy
		return strings.HasPrefix(m.Text(), "told:")
	}}
	s := convo.NewSnapshot(msgs)
	h, err := convo.Restore(s, opts)
	require.NoError(t, err)
	assert.Equal(t, []string{"1 system 0 Be brief.", "3 user 1 q1", "4 system 1 It is noon.", "5 assistant 1 a1", "7 user 2 q2", "8 assistant 2 a2"}, listOf(h.Snapshot()))
	sum, _ := h.Snapshot().Summary()
	assert.Equal(t, "told: trains.\n\ntold: buses.", sum.Text)
	assert.Positive(t, sum.Tokens)
	assert.Equal(t, 8, s.Len(), "the snapshot stays")
	checkPairs(t, h.Snapshot())
	saved(t, h)
	mustAppend(t, h, convo.User("q3"))

	_, err = convo.Restore(convo.NewSnapshot(append(msgs, convo.Assistant("again"))), opts)
	var role *convo.RoleError
	require.ErrorAs(t, err, &role)
	var at *convo.SnapshotError
	require.ErrorAs(t, err, &at)
	assert.Equal(t, 8, at.Index, "as in the snapshot that Restore was given")
	assert.Equal(t, convo.ID(9), at.ID)
}

// The indices of faults are those of the snapshot that Restore was given.
func TestIsSummary_FaultsKeepTheirIndex(t *testing.T) {
	s := convo.NewSnapshot([]convo.Message{convo.System("[x] gone"), convo.User("q"), convo.Assistant("a"), convo.Assistant("b")})
	for _, is := range []bool{false, true} {
		_, err := convo.Restore(s, &convo.Options{IsSummary: func(m convo.Message) bool { return is && m.Role == convo.RoleSystem }})
		var at *convo.SnapshotError
		require.ErrorAs(t, err, &at)
		assert.Equal(t, 3, at.Index)
		assert.Equal(t, convo.ID(4), at.ID)
	}
}

// Messages with calls or results are no summary, and a panic is an error.
func TestIsSummary_OtherMessages(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "search"}
	msgs := []convo.Message{convo.User("q"), convo.Assistant("", call), convo.Result(call, "r")}
	h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{IsSummary: func(m convo.Message) bool { return m.Role != convo.RoleUser }})
	require.NoError(t, err)
	assert.Equal(t, 3, h.Len())
	_, err = convo.Restore(convo.NewSnapshot(msgs), &convo.Options{IsSummary: func(convo.Message) bool { panic("boom") }})
	var panicked *convo.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "Options.IsSummary", panicked.In)
}

// Summaries of other systems are known by a name or by how they begin.
func TestOptions_IsSummary(t *testing.T) {
	named := convo.Message{Role: convo.RoleSystem, Author: "[auto-summary]", Parts: []convo.Part{convo.Text("So far.")}}
	isNamed := func(m convo.Message) bool { return m.Role == convo.RoleSystem && m.Author == "[auto-summary]" }
	hasTag := func(m convo.Message) bool { return strings.HasPrefix(m.Text(), "[Summary of prior conversation]") }
	for _, tt := range []struct {
		m         convo.Message
		isSummary func(convo.Message) bool
		want      string
	}{
		{named, isNamed, "So far."},
		{convo.User("[Summary of prior conversation]\nSo far."), hasTag, "[Summary of prior conversation]\nSo far."},
		{convo.System("So far."), isNamed, ""},
	} {
		h, err := convo.Restore(convo.NewSnapshot([]convo.Message{tt.m, convo.User("q")}), &convo.Options{IsSummary: tt.isSummary})
		require.NoError(t, err)
		sum, found := h.Snapshot().Summary()
		assert.Equal(t, tt.want, sum.Text)
		assert.Equal(t, tt.want != "", found)
		if found {
			assert.Equal(t, []convo.Range{{First: 1, Last: 1}}, sum.Covers)
			assert.Equal(t, []string{"2 user 1 q"}, listOf(h.Snapshot()))
		}
		saved(t, h)
	}
}

// The text of results that no call comes before is kept.
func TestRestore_ResultsWithoutCalls(t *testing.T) {
	result := func(name, text string) convo.Message {
		return convo.Message{Role: convo.RoleTool, Parts: []convo.Part{convo.ToolResult{Name: name, Parts: []convo.Part{convo.Text(text)}}}}
	}
	call := convo.ToolCall{ID: "c", Name: "search"}
	msgs := []convo.Message{
		convo.User("q"), result("search", "found"), convo.Assistant("a"), result("", "more"), convo.User("r"),
		convo.Assistant("", call), result("search", "paired"), result("search", "one too many"),
		convo.Assistant("b"), convo.Result(convo.ToolCall{ID: "x", Name: "search"}, "of a call that is gone"),
	}
	_, err := convo.Restore(convo.NewSnapshot(msgs), nil)
	require.ErrorIs(t, err, convo.ErrNoOpenCall)

	var mended []string
	h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Repair: func(f *convo.SnapshotError) {
		if f.Mended != "new ID" {
			mended = append(mended, fmt.Sprint(f.Index, " ", f.ID, " ", f.Mended))
		}
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"1 2 kept as a user message", "3 4 kept as a user message",
		"7 8 dropped a result that answers no call", "9 10 dropped a result that answers no call",
	}, mended)
	var texts []string
	for _, e := range h.Snapshot().All() {
		texts = append(texts, fmt.Sprint(e.Message.Role, " ", e.Turn, " ", e.Message.Author, ": ", e.Message.Text()))
	}
	assert.Equal(t, []string{"user 1 : q", "user 1 tool search: found", "assistant 1 : a", "user 2 tool: more", "user 2 : r", "assistant 2 : ", "tool 2 : paired", "assistant 2 : b"}, texts)
	checkPairs(t, h.Snapshot())
	saved(t, h)
}

// Of several results, each keeps its name and whether it is an error. Repair is told
// the ID that the message got, and of an empty one that it is dropped.
func TestRestore_SeveralResultsWithoutCalls(t *testing.T) {
	result := func(name, text string, isError bool) convo.ToolResult {
		r := convo.ToolResult{Name: name, IsError: isError}
		if text != "" {
			r.Parts = []convo.Part{convo.Text(text)}
		}
		return r
	}
	for _, tt := range []struct {
		parts        []convo.Part
		author, text string
	}{
		{[]convo.Part{result("weather", "sunny", false), result("stock", "42", true), result("", "more", false), result("map", "", false)}, "tool", "weather: sunny\nstock error: 42\nmore\nmap:"},
		{[]convo.Part{result("stock", "42", true)}, "tool stock", "error: 42"},
		{[]convo.Part{result("stock", "42", false)}, "tool stock", "42"},
		{[]convo.Part{result("stock", "", false)}, "", ""},
	} {
		var told []*convo.SnapshotError
		msgs := []convo.Message{convo.User("q"), {Role: convo.RoleTool, Parts: tt.parts}, convo.Assistant("a")}
		h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Repair: func(f *convo.SnapshotError) { told = append(told, f) }})
		require.NoError(t, err)
		for _, f := range told {
			if f.NewID != 0 {
				find(t, h, f.NewID)
			}
		}
		if tt.author == "" {
			require.Len(t, told, 1)
			assert.Equal(t, "dropped", told[0].Mended)
			assert.Equal(t, 2, h.Len())
			continue
		}
		e, _ := h.Snapshot().At(1)
		assert.Equal(t, tt.author, e.Message.Author)
		assert.Equal(t, tt.text, e.Message.Text())
		saved(t, h)
	}
}

// A turn without an answer is taken back after a load by Rewind.
func TestRestore_TurnWithoutAnswer(t *testing.T) {
	call := convo.ToolCall{ID: "c", Name: "search"}
	done := []convo.Message{convo.System("s"), convo.User("u"), convo.Assistant("a")}
	for name, tt := range map[string]struct {
		more []convo.Message
		gone int
	}{
		"answered":       {nil, 0},
		"a question":     {[]convo.Message{convo.User("v")}, 1},
		"an open call":   {[]convo.Message{convo.User("v"), convo.Assistant("", call)}, 2},
		"only a result":  {[]convo.Message{convo.User("v"), convo.Assistant("", call), convo.Result(call, "r")}, 3},
		"after a result": {[]convo.Message{convo.User("v"), convo.Assistant("", call), convo.Result(call, "r"), convo.Assistant("b")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, nil, append(done[:3:3], tt.more...)...)
			for _, load := range []func(*testing.T, *convo.History, *convo.Options) *convo.History{reload, forkOf} {
				again := load(t, h, nil)
				if s := again.Status(); s.OpenCalls > 0 || s.AwaitsAnswer {
					_, err := again.Rewind(1)
					require.NoError(t, err)
				}
				assert.Equal(t, h.Len()-tt.gone, again.Len())
				assert.Zero(t, again.Status().OpenCalls)
				mustAppend(t, again, convo.User("w"), convo.Assistant("b"))
			}
		})
	}
}

// Some systems put results into user messages. A repair puts them where they belong.
func TestRestore_RepairResultsInUserMessages(t *testing.T) {
	a, b := callOf("a"), callOf("b")
	answer := func(c convo.ToolCall, text string) convo.Part { return convo.Result(c, text).Parts[0] }
	user := func(parts ...convo.Part) convo.Message { return convo.Message{Role: convo.RoleUser, Parts: parts} }
	msgs := []convo.Message{
		convo.User("q"), convo.Assistant("", a, b), user(answer(a, "1"), convo.Text("go on"), answer(b, "2")),
		convo.Assistant("", a), user(answer(a, "3")), convo.Assistant("done"), convo.User("u"),
	}
	var faults []string
	h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Repair: func(f *convo.SnapshotError) {
		if f.Err != nil {
			faults = append(faults, fmt.Sprint(f.Index, " ", f.Err, ": ", f.Mended))
		}
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"2 convo: message 2 (\"user\"), part 0: a tool result belongs in a tool message: results put into a tool message",
		"4 convo: message 4 (\"user\"), part 0: a tool result belongs in a tool message: results put into a tool message",
	}, faults)
	var got []string
	for _, e := range h.Snapshot().All() {
		got = append(got, fmt.Sprint(e.ID, " ", e.Message))
	}
	assert.Equal(t, []string{"1 user: q", fmt.Sprint("2 ", convo.Assistant("", a, b)), fmt.Sprint("3 ", convo.Message{Role: convo.RoleTool, Parts: []convo.Part{answer(a, "1"), answer(b, "2")}}),
		"8 user: go on", fmt.Sprint("9 ", convo.Assistant("", a)), fmt.Sprint("10 ", convo.Result(a, "3")), "11 assistant: done", "12 user: u"}, got)
	_, err = convo.Restore(h.Snapshot(), nil)
	require.NoError(t, err)
	_, err = convo.Restore(convo.NewSnapshot(msgs), nil)
	require.Error(t, err, "without Repair")
}

// A fault names the ID that the entry has in the History, whatever was inserted before it.
func TestRestore_FaultsNameTheNewID(t *testing.T) {
	open := []convo.Message{convo.User("q"), convo.Assistant("", convo.ToolCall{ID: "c", Name: "t"})}
	for name, msgs := range map[string][]convo.Message{
		"parts":           append(open[:2:2], convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("q"), convo.Reasoning{Text: "x"}}}, convo.Assistant("a")),
		"roles":           append(open[:2:2], convo.User("x"), convo.User("y"), convo.Assistant("a")),
		"parts and roles": append(open[:2:2], convo.User("x"), convo.Message{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("q"), convo.Reasoning{Text: "x"}}}),
	} {
		var faults []*convo.SnapshotError
		h, err := convo.Restore(convo.NewSnapshot(msgs), &convo.Options{Repair: func(f *convo.SnapshotError) { faults = append(faults, f) }})
		require.NoError(t, err)
		require.NotEmpty(t, faults)
		for _, f := range faults {
			if f.NewID == 0 || f.Index < 0 {
				continue
			}
			e, ok := h.Snapshot().Find(f.NewID)
			require.True(t, ok, "%s: %d of %v", name, f.NewID, f)
			assert.Equal(t, msgs[f.Index].Role, e.Message.Role, name)
		}
	}
}
