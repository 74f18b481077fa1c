package mirror_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/mirror"
)

// Tools that run at the same time end in any order, and a framework may keep their results so.
func TestView_ResultsInAnotherOrder(t *testing.T) {
	codec := mirror.Codec[*convo.Message]{
		Decode: func(m *convo.Message) ([]convo.Message, error) { return []convo.Message{*m}, nil },
		Encode: func(m convo.Message, was **convo.Message) (*convo.Message, error) { return &m, nil },
	}
	result := func(id, text string) convo.Part {
		return convo.ToolResult{CallID: id, Parts: []convo.Part{convo.Text(text)}}
	}
	list := []*convo.Message{
		{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("Read both.")}},
		{Role: convo.RoleAssistant, Parts: []convo.Part{convo.ToolCall{ID: "a", Name: "read"}, convo.ToolCall{ID: "b", Name: "read"}}},
		{Role: convo.RoleTool, Parts: []convo.Part{result("b", "of the second call, which is long enough"), result("a", "of the first call")}},
		{Role: convo.RoleAssistant, Parts: []convo.Part{convo.Text("Done.")}},
		{Role: convo.RoleUser, Parts: []convo.Part{convo.Text("Thanks.")}},
	}
	h := newHistory(t, nil)
	m := mirror.New(h, codec)
	view, s, err := m.Prepare(t.Context(), list)
	require.NoError(t, err)
	require.Len(t, view, 5)
	second, _ := s.At(3)
	_, err = h.Apply(s, convo.Edit{Clear: []convo.Clear{{ID: second.ID, CallID: "b", Text: "cleared"}}})
	require.NoError(t, err)
	results := view[2].ToolResults()
	assert.Equal(t, []string{"a", "b"}, []string{results[0].CallID, results[1].CallID}, "in the order of the calls")
	assert.Equal(t, []int{1, 0}, mirror.Kept(list[2].Parts, view[2].Parts))
	view, err = m.View(h.Snapshot())
	require.NoError(t, err)
	require.Len(t, view, 5)
	assert.Equal(t, []int{1, -1}, mirror.Kept(list[2].Parts, view[2].Parts))
	assert.Zero(t, mirror.Changed(list[2].Parts, view[2].Parts, 1))
	var texts []string
	for _, r := range view[2].ToolResults() {
		texts = append(texts, r.CallID+" "+r.Text())
	}
	assert.Equal(t, []string{"a of the first call", "b cleared"}, texts)
}
