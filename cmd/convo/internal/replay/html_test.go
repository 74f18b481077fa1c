package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/cmd/convo/internal/session"
)

// A page has each compaction, also where there are too many for the notes.
func TestWriteHTML_Compactions(t *testing.T) {
	for _, n := range []int{mostWritten, mostWritten + 1} {
		s := &session.Session{}
		for i := range n {
			s.Events = append(s.Events, event(convo.User(fmt.Sprint("question ", i))), answer(9),
				session.Event{Compaction: &session.Compaction{View: []convo.Message{convo.User("so far")}}},
				event(convo.Assistant("yes")))
		}
		r := mustRun(t, s, Options{Window: 1 << 20})
		require.Len(t, r.Compactions, n)
		var page, text strings.Builder
		require.NoError(t, WriteHTML(&page, Total([]*Report{r}), []*Report{r}))
		require.NoError(t, WriteText(&text, Total([]*Report{r}), 80))
		for i := range n {
			assert.Equal(t, 1, strings.Count(page.String(), fmt.Sprintf("Compaction %d (after", i+1)), "%d of %d", i+1, n)
		}
		few := n <= mostWritten
		assert.Equal(t, few, strings.Contains(text.String(), "Compaction 1 (after"))
		assert.Equal(t, !few, strings.Contains(text.String(), "-html and -json have each"))
	}
}
