package repotest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// The conversation that docs/strategies.md draws is compacted as the page draws it.
func TestPages_DrawingOfACompaction(t *testing.T) {
	inRoot(t)
	names := func(line string) []string {
		_, rest, ok := strings.Cut(read(t, "docs/strategies.md"), "\n"+line+" ")
		require.True(t, ok, line)
		rest, _, _ = strings.Cut(rest, "\n")
		return strings.Fields(strings.NewReplacer("[", " ", "]", " ", "|", " ").Replace(rest))
	}
	const question = ", a question" // of the user; all other messages are long
	long := strings.Repeat(" of which much was said", 180)
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 4_000}})
	var call convo.ToolCall
	for _, name := range names("before") {
		switch {
		case name == "sys":
			mustAppend(t, h, convo.System(name))
		case strings.HasPrefix(name, "u"):
			mustAppend(t, h, convo.User(name+question))
		case strings.HasPrefix(name, "a"):
			mustAppend(t, h, convo.Assistant(name+long))
		case strings.HasPrefix(name, "call"):
			call = convo.ToolCall{ID: name, Name: name, Arguments: "{}"}
			mustAppend(t, h, convo.Assistant("", call))
		default:
			mustAppend(t, h, convo.Result(call, name+long))
		}
	}
	_, report, err := h.Prepare(t.Context())
	require.NoError(t, err)
	require.Equal(t, convo.OutcomeApplied, report.Outcome)
	var after []string
	for _, m := range h.Snapshot().Messages() {
		text := m.Text()
		switch {
		case len(m.ToolCalls()) > 0:
			text = m.ToolCalls()[0].Name
		case m.Role == convo.RoleTool && m.ToolResults()[0].Cleared:
			text = "cleared"
		case m.Role == convo.RoleTool:
			text = m.ToolResults()[0].Text()
		case strings.HasPrefix(text, "<summary"):
			text = "summary"
		}
		name, _, _ := strings.Cut(strings.ReplaceAll(text, ",", " "), " ")
		after = append(after, name)
	}
	assert.Equal(t, names("after"), after)
}
