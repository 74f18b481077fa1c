package convo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

var (
	searchTool = convo.Tool{Name: "search", Description: "finds " + strings.Repeat("words ", 50), Schema: `{"type":"object"}`}
	webTool    = convo.Tool{Opaque: convo.Opaque{Format: "anthropic", JSON: `{"type":"web_search_20250305","name":"web_search"}`}}
)

// Tools are counted once, whatever is appended, and leave when they are replaced.
func TestSetTools_Counts(t *testing.T) {
	h := historyOf(t, bare(), convo.User("one"), convo.Assistant("two"))
	without := h.Snapshot().Tokens()
	require.NoError(t, h.SetTools(searchTool, webTool))
	with := h.Snapshot().Tokens()
	tool := len(searchTool.Name) + len(searchTool.Description) + len(searchTool.Schema)
	assert.Equal(t, tool+len(webTool.Opaque.JSON), with-without)
	assert.Equal(t, with-without, h.Snapshot().Breakdown().Tools)
	assert.Equal(t, []convo.Tool{searchTool, webTool}, h.Snapshot().Tools())

	version := h.Snapshot().Version()
	require.NoError(t, h.SetTools(searchTool, webTool))
	assert.Equal(t, version, h.Snapshot().Version(), "the same tools")
	h.Snapshot().Tools()[0].Name = "mine"
	assert.Equal(t, "search", h.Snapshot().Tools()[0].Name, "a copy")

	require.NoError(t, h.SetToolsKey("v1"))
	assert.Equal(t, without, h.Snapshot().Tokens())
	assert.Empty(t, h.Snapshot().Tools())
	require.NoError(t, h.SetToolsKey(""))
	require.NoError(t, h.SetTools())
	assert.Equal(t, without, h.Snapshot().Tokens())
}

// A usage report measures the tools; the estimate follows when they change.
func TestSetTools_Measured(t *testing.T) {
	h := historyOf(t, bare(), convo.User(strings.Repeat("word ", 100)))
	require.NoError(t, h.SetTools(searchTool))
	s := h.Snapshot()
	require.NoError(t, h.RecordUsage(s, convo.Usage{Input: s.Tokens()}))
	before := h.Tokens().Tokens
	assert.Equal(t, s.Tokens(), before)
	require.NoError(t, h.SetTools())
	after := h.Tokens().Tokens
	assert.InDelta(t, before-(s.Tokens()-h.Snapshot().Tokens()), after, 8)
	require.NoError(t, h.SetTools(searchTool, webTool))
	assert.Greater(t, h.Tokens().Tokens, before)
}

// Tools survive JSON, stores, forks, rollbacks and Undo.
func TestSetTools_Stays(t *testing.T) {
	store := new(convotest.MemStore)
	opts := bare()
	h, err := convo.Open(t.Context(), store, "k", opts)
	require.NoError(t, err)
	mustAppend(t, h, convo.User("a"), convo.Assistant("b"), convo.User("c"))
	mark := h.Snapshot()
	require.NoError(t, h.Save(t.Context()))
	require.NoError(t, h.SetTools(searchTool, webTool))
	assert.Positive(t, h.Status().Unsaved)
	require.NoError(t, h.Save(t.Context()))
	want := h.Snapshot()
	same := func(h *convo.History, err error) {
		t.Helper()
		require.NoError(t, err)
		assert.Equal(t, want.Tools(), h.Snapshot().Tools())
		assert.Equal(t, h.Snapshot().Tokens(), rawTotal(h.Snapshot())+h.Snapshot().Breakdown().Tools)
	}
	same(convo.Open(t.Context(), store, "k", opts))
	same(convo.Restore(readBack(t, want), opts))
	same(convo.Restore(want, opts))
	r := apply(t, h, convo.Edit{Drop: []convo.ID{1}})
	require.NoError(t, h.Undo(r))
	same(h, nil)
	require.NoError(t, h.Rollback(mark))
	same(h, nil)

	other, err := convo.Open(t.Context(), store, "k", opts)
	require.NoError(t, err)
	require.NoError(t, h.SetTools(webTool))
	require.NoError(t, h.Save(t.Context()))
	_, _, err = other.Reload(t.Context())
	require.NoError(t, err)
	want = h.Snapshot()
	same(other, nil)

	require.NoError(t, h.SetTools())
	require.NoError(t, h.Save(t.Context()))
	want = h.Snapshot()
	same(convo.Open(t.Context(), store, "k", opts))
	require.NoError(t, h.SetToolsKey("v2"))
	data, err := json.Marshal(h.Snapshot())
	require.NoError(t, err)
	assert.Contains(t, string(data), `"tools":{"key":"v2"}`)
}

// Other tools end the bond of signed reasoning, and the same ones restore it.
func TestSetTools_Bound(t *testing.T) {
	for name, set := range map[string]func(h *convo.History, version string) error{
		"tools": func(h *convo.History, version string) error { return h.SetTools(convo.Tool{Name: version}) },
		"a key": func(h *convo.History, version string) error { return h.SetToolsKey(version) },
	} {
		t.Run(name, func(t *testing.T) {
			h := historyOf(t, bare())
			require.NoError(t, set(h, "v1"))
			mustAppend(t, h, convo.User("q"), signed("a"), convo.User("r"))
			assert.True(t, h.Snapshot().Bound(2))
			require.NoError(t, set(h, "v2"))
			assert.False(t, h.Snapshot().Bound(2))
			require.NoError(t, set(h, "v1"))
			assert.True(t, h.Snapshot().Bound(2))
			require.NoError(t, set(h, ""+"v3"))
			assert.False(t, readBack(t, h.Snapshot()).Bound(2))
		})
	}
}

func TestSetTools_Refuses(t *testing.T) {
	h := historyOf(t, bare(), convo.User("q"))
	require.NoError(t, h.SetTools(searchTool))
	before := h.Snapshot()
	for name, err := range map[string]error{
		"no name":        h.SetTools(searchTool, convo.Tool{Description: "d"}),
		"no format":      h.SetTools(convo.Tool{Opaque: convo.Opaque{JSON: "{}"}}),
		"no JSON":        h.SetTools(convo.Tool{Name: "a", Opaque: convo.Opaque{Format: "x", JSON: "{"}}),
		"too many":       h.SetTools(make([]convo.Tool, 10_001)...),
		"a key too long": h.SetToolsKey(strings.Repeat("k", 257)),
	} {
		var wrong *convo.ValueError
		require.ErrorAs(t, err, &wrong, name)
	}
	assert.Equal(t, before.Version(), h.Snapshot().Version())
	assert.EqualError(t, h.SetTools(searchTool, convo.Tool{}), `convo: tools[1]: Tool.Name is "", want a name, or an Opaque for a tool of the provider's`)
	require.NoError(t, h.Close())
	assert.ErrorIs(t, h.SetTools(), convo.ErrClosed)
	assert.ErrorIs(t, new(convo.History).SetTools(), convo.ErrClosed)
	assert.Nil(t, new(convo.Snapshot).Tools())
}

// A floor that tools make too large is said to be so.
func TestSetTools_Floor(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 400, Reserve: -1}
	h := historyOf(t, opts, convo.User("q"))
	require.NoError(t, h.SetTools(convo.Tool{Name: "big", Description: strings.Repeat("d", 1000)}))
	_, _, err := h.Prepare(t.Context())
	var floor *convo.FloorError
	require.ErrorAs(t, err, &floor)
	assert.Greater(t, floor.Tools, 1000)
	assert.Zero(t, floor.System)
	assert.Contains(t, err.Error(), "tool definitions and the like hold 1,")
}
