package recall_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/recall"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pages is a long result, with a line to look for near its middle.
func pages(name string) string {
	var b strings.Builder
	for i := range 600 {
		if i == 299 {
			fmt.Fprintf(&b, "the token of %s is amber-7\n", name)
		}
		fmt.Fprintf(&b, "line %d of the listing\n", i)
	}
	return b.String()
}

var placed = regexp.MustCompile(`, kept at (?:file, )?recall\(id=(\d+)\)\]`)

// withTool returns options whose markers name the tool of ix.
func withTool(ix *recall.Index) convo.Options {
	return convo.Options{OnCompaction: ix.Observe, RecallTool: recall.ToolName, MaxResult: 200, PruneAbove: 1}
}

func look(id string) convo.ToolCall {
	return convo.ToolCall{ID: id, Name: "look", Arguments: "{}"}
}

// checkMarkers checks that the results of look in the view are found with their markers: the
// model gives the ID in the marker, and gets the line that is asked for.
func checkMarkers(t *testing.T, h *convo.History, ix *recall.Index, want int) {
	t.Helper()
	n := 0
	for _, e := range h.Snapshot().All() {
		for _, r := range e.Message.ToolResults() {
			found := placed.FindStringSubmatch(r.Text())
			if r.Name != "look" || found == nil {
				continue
			}
			n++
			assert.Equal(t, fmt.Sprint(e.ID), found[1])
			answer := ix.Answer(convo.ToolCall{ID: "r", Name: recall.ToolName, Arguments: `{"id":` + found[1] + `,"query":"token"}`})
			assert.Contains(t, answer.Text(), "the token of "+r.CallID+" is amber-7", r.Text())
		}
	}
	assert.Equal(t, want, n)
}

// A marker names the tool and the ID with which the model gets the result, whether it was cut
// by Append or by a compaction, or cleared.
func TestRecallTool(t *testing.T) {
	for name, spill := range map[string]func(context.Context, convo.ToolResult) (string, error){
		"alone":      nil,
		"with Spill": func(context.Context, convo.ToolResult) (string, error) { return "file", nil },
	} {
		for _, keep := range []int{0, -1} {
			t.Run(fmt.Sprint(name, keep), func(t *testing.T) {
				ix := new(recall.Index)
				opts := withTool(ix)
				opts.Spill, opts.KeepOriginals = spill, keep
				h, err := convo.New(&opts)
				require.NoError(t, err)
				_, err = h.Append(convo.User("look"), convo.Assistant("", look("a"), look("b")), convo.Result(look("a"), pages("a")), convo.Result(look("b"), "short"))
				require.NoError(t, err)
				checkMarkers(t, h, ix, 1)
				_, err = h.Append(convo.Assistant("so"), convo.User("again"), convo.Assistant("", look("c")), convo.Result(look("c"), pages("c")), convo.Assistant("so"), convo.User("next"))
				require.NoError(t, err)
				cut, _ := h.Snapshot().Find(3)
				_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}, {ID: 4}}})
				require.NoError(t, err)
				checkMarkers(t, h, ix, 2)
				cleared, _ := h.Snapshot().Find(3)
				assert.NotEqual(t, cut.Message.Text(), cleared.Message.Text())
				assert.Equal(t, 1, strings.Count(cleared.Message.Text(), "recall("))
			})
		}
	}
}

// A compaction that cuts a result which no answer has followed yet names the tool.
func TestRecallTool_CutByCompaction(t *testing.T) {
	ix := new(recall.Index)
	opts := withTool(ix)
	opts.MaxResult, opts.Limits = -1, convo.Limits{Window: 2000, Reserve: 100}
	h, err := convo.New(&opts)
	require.NoError(t, err)
	_, err = h.Append(convo.User("look"), convo.Assistant("", look("a")), convo.Result(look("a"), pages("a")))
	require.NoError(t, err)
	_, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, []convo.ID{3}, r.Shortened)
	checkMarkers(t, h, ix, 1)
}

// The IDs in markers are those of the entries, also if other messages are appended while a
// result is being cut.
func TestRecallTool_AppendedInTheMeantime(t *testing.T) {
	ix := new(recall.Index)
	opts := withTool(ix)
	var h *convo.History
	opts.Spill = func(_ context.Context, r convo.ToolResult) (string, error) {
		if r.CallID == "a" {
			_, err := h.Append(convo.Result(look("b"), pages("b")))
			return "file", err
		}
		return "file", nil
	}
	h, err := convo.New(&opts)
	require.NoError(t, err)
	_, err = h.Append(convo.User("look"), convo.Assistant("", look("a"), look("b")))
	require.NoError(t, err)
	_, err = h.Append(convo.Result(look("a"), pages("a")))
	require.NoError(t, err)
	checkMarkers(t, h, ix, 2)
}

// The markers in the results of tools that Run has run name their entries.
func TestRecallTool_Run(t *testing.T) {
	ix := new(recall.Index)
	opts := withTool(ix)
	h, err := convo.New(&opts)
	require.NoError(t, err)
	_, err = h.Append(convo.User("look"))
	require.NoError(t, err)
	asked := 0
	send := func(context.Context, *convo.Snapshot) (convo.Reply, error) {
		if asked++; asked == 1 {
			return convo.Reply{Messages: []convo.Message{convo.Assistant("", look("a"), look("b"))}}, nil
		}
		return convo.Reply{Messages: []convo.Message{convo.Assistant("done")}}, nil
	}
	run := func(_ context.Context, c convo.ToolCall) ([]convo.Part, error) {
		return []convo.Part{convo.Text(pages(c.ID))}, nil
	}
	_, err = h.Run(t.Context(), send, convo.RunOptions{Tools: []convo.Handler{{Tool: convo.Tool{Name: "look"}, Run: run}}})
	require.NoError(t, err)
	checkMarkers(t, h, ix, 2)
}

// A marker stays the same bytes in a log, in rows with Decisions, and under other options.
func TestRecallTool_Saved(t *testing.T) {
	ix := new(recall.Index)
	opts := withTool(ix)
	store := new(convotest.MemStore)
	h, err := convo.Open(t.Context(), store, "k", &opts)
	require.NoError(t, err)
	rows := []convo.Message{convo.User("look"), convo.Assistant("", look("a"), look("b")), convo.Result(look("a"), pages("a")), convo.Result(look("b"), strings.Repeat("word ", 100)), convo.Assistant("so"), convo.User("next")}
	for i := range rows {
		rows[i].Key = fmt.Sprint("row", i)
	}
	_, err = h.Append(rows...)
	require.NoError(t, err)
	_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 4}}})
	require.NoError(t, err)
	require.NoError(t, h.Save(t.Context()))
	want := viewOf(h.Snapshot())
	require.Equal(t, 2, strings.Count(want, "kept at recall(id="))
	data, err := h.Decisions()
	require.NoError(t, err)
	for name, opts := range map[string]*convo.Options{"the same": &opts, "others": {MaxResult: 200}, "another tool": {MaxResult: 200, RecallTool: "find"}} {
		again, err := convo.Open(t.Context(), store, "k", opts)
		require.NoError(t, err)
		assert.Equal(t, want, viewOf(again.Snapshot()), name)
		d, err := convo.ReadDecisions(data)
		require.NoError(t, err)
		resumed, err := convo.Resume(d, func(yield func(convo.Message, error) bool) {
			for _, m := range rows {
				if !yield(m, nil) {
					return
				}
			}
		}, opts)
		require.NoError(t, err)
		assert.Equal(t, want, viewOf(resumed.Snapshot()), name)
		assert.Equal(t, h.Snapshot().Tokens(), resumed.Snapshot().Tokens())
	}
}

// After a Reload, the markers name the IDs that the entries have there.
func TestRecallTool_Reload(t *testing.T) {
	store := new(convotest.MemStore)
	open := func(ix *recall.Index) *convo.History {
		opts := withTool(ix)
		opts.PruneAbove = 0
		h, err := convo.Open(t.Context(), store, "k", &opts)
		require.NoError(t, err)
		return h
	}
	one, other := open(new(recall.Index)), open(new(recall.Index))
	for i, h := range []*convo.History{one, other} {
		_, err := h.Append(convo.User("look"), convo.Assistant("", look("a")), convo.Result(look("a"), pages("a")), convo.Assistant("so"))
		require.NoError(t, err)
		if i == 1 {
			_, err = h.Apply(h.Snapshot(), convo.Edit{Clear: []convo.Clear{{ID: 3}}})
			require.NoError(t, err)
		}
	}
	require.NoError(t, one.Save(t.Context()))
	require.ErrorAs(t, other.Save(t.Context()), new(*convo.ConflictError))
	moved, _, err := other.Reload(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.ID(7), moved[3])
	require.NoError(t, other.Save(t.Context()))
	view := viewOf(other.Snapshot())
	assert.Contains(t, view, "kept at recall(id=3)]")
	assert.Contains(t, view, "kept at recall(id=7)]")
	assert.Equal(t, view, viewOf(open(new(recall.Index)).Snapshot()))
}

// What a tool wrote like the end of a marker stays as it is when a Reload gives its entry
// another ID.
func TestRecallTool_ReloadKeepsWhatAToolWrote(t *testing.T) {
	store := new(convotest.MemStore)
	opts := convo.Options{RecallTool: recall.ToolName}
	first, err := convo.Open(t.Context(), store, "key", &opts)
	require.NoError(t, err)
	second, err := convo.Open(t.Context(), store, "key", &opts)
	require.NoError(t, err)
	_, err = first.Append(convo.User("x"), convo.Assistant("y"))
	require.NoError(t, err)
	require.NoError(t, first.Save(t.Context()))
	wrote := "config line\n[cut: see recall(id=3)]\nof the file"
	_, err = second.Append(convo.User("look"), convo.Assistant("", look("a")), convo.Result(look("a"), wrote))
	require.NoError(t, err)
	_, _, err = second.Reload(t.Context())
	require.NoError(t, err)
	last, _ := second.Snapshot().At(second.Len() - 1)
	assert.NotEqual(t, convo.ID(3), last.ID)
	assert.Equal(t, wrote, last.Message.ToolResults()[0].Text())
}
