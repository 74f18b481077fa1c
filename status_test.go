package convo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

func TestStatus(t *testing.T) {
	opts := bare()
	opts.Limits = convo.Limits{Window: 1000, Reserve: 100, High: 800, Low: 300, Soft: 500, MinFree: 50}
	h := historyOf(t, opts)
	assert.Equal(t, convo.Status{Window: 1000, Limit: 900, High: 800, Low: 300, Soft: 500, MinFree: 50}, h.Status())

	start := time.Now()
	c, d := callOf("c"), callOf("d")
	mustAppend(t, h, convo.System("sys"), convo.User("12345"), convo.Assistant("", c, d), convo.Result(c, "12"))
	s := h.Status()
	assert.Equal(t, []int{4, 1, 1, 1}, []int{s.Entries, s.System, s.Turns, s.OpenCalls})
	assert.Equal(t, h.Snapshot().Tokens(), s.Appended)
	assert.WithinDuration(t, start, s.LastAppend, time.Minute)
	assert.True(t, s.LastEdit.IsZero())

	mustAppend(t, h, convo.Result(d, "12"), convo.User("v"), convo.Assistant("a"), convo.User("w"))
	assert.Equal(t, []int{8, 3, 0}, []int{h.Status().Entries, h.Status().Turns, h.Status().OpenCalls})
	_, err := h.SplicePrefix(h.Snapshot(), 5, "s")
	require.NoError(t, err)
	s = h.Status()
	assert.Equal(t, []int{4, 2, 0}, []int{s.Entries, s.Turns, s.Appended})
	assert.False(t, s.LastEdit.IsZero())

	mustAppend(t, h, convo.Assistant("1234567"), convo.User("123"))
	assert.Equal(t, 10, h.Status().Appended)
	rewind(t, h)
	assert.Equal(t, 7, h.Status().Appended, "what was taken back was not appended")
	require.NoError(t, h.SetEphemeral(convo.User("e")))
	assert.Equal(t, 7, h.Status().Appended)
	e := h.Tokens()
	assert.Equal(t, []int{e.Tokens, e.Upper}, []int{h.Status().Tokens, h.Status().Upper})
}

// A run of user messages is one turn; a reduction never merges two.
func TestStatus_Turns(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()},
		convo.Assistant("before"), convo.User("u"), convo.User("v"), convo.Assistant("a"), convo.User("w"), convo.Assistant("b"), convo.User("x"))
	turns := func() (list []int) {
		for _, e := range h.Snapshot().All() {
			list = append(list, e.Turn)
		}
		return list
	}
	assert.Equal(t, []int{0, 1, 1, 1, 2, 2, 3}, turns())
	assert.Equal(t, 3, h.Status().Turns)
	mustAppend(t, h, convo.User("still the same"))
	assert.Equal(t, 3, h.Status().Turns)
	apply(t, h, convo.Edit{Drop: []convo.ID{4, 6}})
	assert.Equal(t, []int{0, 1, 1, 2, 3, 3}, turns())
	assert.Equal(t, 3, h.Status().Turns)
	apply(t, h, convo.Edit{Drop: []convo.ID{5}})
	assert.Equal(t, 2, h.Status().Turns)
}

func TestHistory_StringIsShort(t *testing.T) {
	h := historyOf(t, nil, convo.User(strings.Repeat("secret ", 1000)))
	for _, s := range []string{h.String(), h.Snapshot().String(), h.Snapshot().LogValue().String()} {
		assert.NotEmpty(t, s)
		assert.Less(t, len(s), 100)
		assert.NotContains(t, s, "secret")
	}
}
