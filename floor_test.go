package convo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// floorIDs returns the IDs of the exchanges that no compaction may take.
func floorIDs(s *convo.Snapshot) (ids []convo.ID) {
	for x := range s.Exchanges() {
		if x.Floor {
			ids = append(ids, x.IDs()...)
		}
	}
	return ids
}

// A round of tool calls is floor until an assistant message follows, with the
// user messages of its turn, and whatever users say in between.
func TestFloor_UnansweredRound(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	opts := &convo.Options{Roles: convo.Relaxed()}
	h := historyOf(t, opts, convo.User("1"), convo.Assistant("2"), convo.User("3"), convo.User("4"), convo.Assistant("5"),
		convo.Assistant("", c, d), convo.Result(c, "7"), convo.Result(d, "8"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.User("9"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8, 9}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.User("10"))
	assert.Equal(t, []convo.ID{3, 4, 6, 7, 8, 9, 10}, floorIDs(h.Snapshot()))
	mustAppend(t, h, convo.Assistant("11"))
	assert.Equal(t, []convo.ID{9, 10, 11}, floorIDs(h.Snapshot()))
}

// A user message behind large results does not let them vanish before the model
// has seen them.
func TestFloor_UserBehindLargeResults(t *testing.T) {
	c, d := callOf("c"), callOf("d")
	h := historyOf(t, &convo.Options{Limits: convo.Limits{Window: 8000}},
		convo.User("first"), convo.Assistant(strings.Repeat("an old answer ", 1600)),
		convo.User("read both"), convo.Assistant("", c, d),
		convo.Result(c, strings.Repeat("left ", 1400)), convo.Result(d, strings.Repeat("right ", 1400)), convo.User("and be quick"))
	s, r, err := h.Prepare(t.Context())
	require.NoError(t, err)
	assert.Equal(t, convo.OutcomeApplied, r.Outcome)
	assert.Equal(t, []convo.ID{3, 4, 5, 6, 7}, idsOf(s))
}
