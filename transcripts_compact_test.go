package convo_test

import (
	"errors"
	"flag"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
)

var prefixStride = flag.Int("convo.prefixes", 97, "TestTranscripts_Compact looks at each so-manyth prefix of each conversation; 1: all")

// Real conversations under tight budgets: what is left is in order and holds
// the floor, and the goal is reached or a typed error says why not.
func TestTranscripts_Compact(t *testing.T) {
	strategies := plainStrategies()
	strategies["echo"] = convo.Summarize{With: convotest.Echo{}, Window: -1}
	strategies["fails"] = convo.Chain(convo.Summarize{With: convotest.Failing{}, Window: -1}, convo.Truncate{})
	names := slices.Sorted(maps.Keys(strategies))
	outcomes := map[string]map[string]int{}
	prefixes, cases := 0, 0
	count := 0
	eachTranscript(t, func(t *testing.T, msgs []convo.Message) {
		policy := convo.RolePolicy{}
		if appendAll(policy, msgs) != nil {
			policy = convo.Relaxed()
		}
		h, err := convo.New(&convo.Options{Roles: policy, PinFirstUser: true})
		require.NoError(t, err)
		for _, m := range msgs {
			if _, err := h.Append(m); err != nil {
				return // only Repair takes what follows
			}
			if count++; count%*prefixStride != 0 {
				continue
			}
			prefixes++
			for _, name := range names {
				for _, percent := range []int{60, 25} {
					cases++
					got := squeeze(t, h.Snapshot(), strategies[name], policy, percent)
					if outcomes[name] == nil {
						outcomes[name] = map[string]int{}
					}
					outcomes[name][got]++
				}
			}
		}
	})
	t.Logf("%d prefixes, %d compactions", prefixes, cases)
	for _, name := range names {
		t.Logf("%-14s %v", name, outcomes[name])
	}
	assert.Positive(t, outcomes["truncate"]["applied"])
}

// squeeze compacts a fork into so many percent of what it weighs, and says how
// that ended.
func squeeze(t *testing.T, s *convo.Snapshot, c convo.CompactionStrategy, policy convo.RolePolicy, percent int) string {
	weight := s.Tokens() + s.Tokens()/8 + 1
	h, err := convo.Restore(s, &convo.Options{
		Roles:    policy,
		Strategy: c,
		Limits:   convo.Limits{Window: max(weight*percent/100, 8), Reserve: -1},
	})
	require.NoError(t, err)
	defer h.Close()
	r, err := h.CompactIfNeeded(t.Context())
	after := h.Snapshot()
	checkPairs(t, after)
	left := map[convo.ID]convo.Entry{}
	for _, e := range after.All() {
		left[e.ID] = e
	}
	gone, all := 0, 0
	for x := range s.Exchanges() {
		for _, id := range x.IDs() {
			was, _ := s.Find(id)
			e, there := left[id]
			if x.Floor {
				require.True(t, there, "entry %d of the floor is gone", id)
				require.Equal(t, was.Message, e.Message, "entry %d of the floor has changed", id)
			} else if all++; !there {
				gone++
			}
		}
	}
	if err != nil {
		require.Equal(t, convo.Failed, r.Outcome)
		require.Zero(t, gone, "an error, and entries are gone")
		require.Equal(t, s.Tokens(), after.Tokens())
		floor, _ := errors.AsType[*convo.FloorError](err)
		limit, _ := errors.AsType[*convo.LimitError](err)
		refused, _ := errors.AsType[*convo.RefusedError](err)
		switch {
		case floor != nil:
			require.Greater(t, floor.Floor, floor.Limit)
			return "floor too large"
		case limit != nil:
			require.Greater(t, limit.Need, limit.Limit)
			return "not enough"
		case refused != nil:
			return "refused"
		}
		t.Fatalf("an error of no known type: %v", err)
	}
	require.True(t, r.Fits)
	if r.TokensBefore <= h.Status().Limit {
		return "fits" // of a few tokens
	}
	require.Equal(t, convo.Applied, r.Outcome)
	switch c.(type) {
	case convo.SlidingWindow, convo.ClearToolResults:
	default:
		if r.TokensAfter > h.Status().Low {
			require.Equal(t, all, gone, "above low water, and more could have gone")
		}
	}
	return "applied"
}
