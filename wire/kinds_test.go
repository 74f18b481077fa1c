package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// A quotation is a part of a kind that no format writes.
type quotation struct {
	convo.Part
	of string
}

// A row of the table is all that a new kind needs to be sent as a text in every format.
func TestKinds_NewKind(t *testing.T) {
	was := kinds.none
	t.Cleanup(func() { kinds.none = was })
	call := convo.ToolCall{ID: "toolu_01", Name: "read"}
	said := quotation{of: "Knuth"}
	result := convo.ToolResult{CallID: call.ID, Name: call.Name, Parts: []convo.Part{said}}
	s := convo.NewSnapshot([]convo.Message{
		{Role: convo.RoleUser, Parts: []convo.Part{said}},
		{Role: convo.RoleAssistant, Parts: []convo.Part{said, call}},
		{Role: convo.RoleTool, Parts: []convo.Part{result}},
	})
	for _, f := range builtins {
		kinds.none = partKind{}
		r, err := f.Encode(s)
		require.NoError(t, err, "%T", f)
		assert.NotContains(t, string(r.Body()), "Knuth", "%T", f)
		assert.Len(t, lostOf(r, lostPart), 3, "%T: without a row it is named in Lost: %v", f, r.Lost)

		kinds.none.shown = func(_ string, p convo.Part, _ bool) string { return "[says " + p.(quotation).of + "]" }
		kinds.none.lost = func(convo.Part) string { return lostSource }
		r, err = f.Encode(s)
		require.NoError(t, err, "%T", f)
		assert.Equal(t, 3, strings.Count(string(r.Body()), "[says Knuth]"), "%T: %s", f, r.Body())
		assert.Len(t, lostOf(r, lostSource), 3, "%T: %v", f, r.Lost)
		assert.Empty(t, f.Check(r.Body()), "%T", f)
	}
}

// lostOf returns what a request has lost of one sort.
func lostOf(r Request, what string) (list []Omission) {
	for _, o := range r.Lost {
		if o.What == what {
			list = append(list, o)
		}
	}
	return list
}
