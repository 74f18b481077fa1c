package cost

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A peer counts a message as the simulator does, and a message that it returns
// unchanged is the same to the cache.
func TestPeer_MessagesAreTheSame(t *testing.T) {
	for c := range mixed(t) {
		for i, m := range c.Messages {
			p := messageOf(i, m)
			assert.Equal(t, CountBytes(m), peer.MeasureBytes.Weigh(p))
			assert.Equal(t, c.plan.full[i], c.item(ofPeer(p)))
			p.N = peer.Made
			assert.NotEqual(t, c.plan.full[i].Key, c.item(ofPeer(p)).Key, "a message that the peer wrote itself is a different one")
		}
	}
}

// A library that sends everything costs what never compacting costs.
func TestKept(t *testing.T) {
	whole := kept("whole", func(job peer.Job) ([]peer.Request, error) {
		var all []peer.Request
		for _, ask := range job.Asks {
			all = append(all, peer.Request{View: job.Messages[:ask]})
		}
		return all, nil
	})
	for c, s := range mixed(t) {
		got, err := Replay(c, whole, s)
		require.NoError(t, err)
		want, err := Replay(c, never(), s)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// Summaries are billed separately, a job has the limit of the setup, and an error
// of the library ends the replay.
func TestKept_SummariesAndErrors(t *testing.T) {
	c := conversation(t, Chat(1, 5))
	s := limited(1000)
	got, err := Replay(c, kept("summaries", func(job peer.Job) ([]peer.Request, error) {
		assert.Equal(t, 1000, job.Limit)
		assert.NotEmpty(t, job.Summary)
		all := make([]peer.Request, len(job.Asks))
		all[1].Apart = []peer.Apart{{Input: 100, Output: 10}, {Input: 200, Output: 20}}
		return all, nil
	}), s)
	require.NoError(t, err)
	assert.Equal(t, Bill{Uncached: 300, Output: 30}, got.Side)

	boom := errors.New("boom")
	_, err = Replay(c, kept("broken", func(peer.Job) ([]peer.Request, error) { return nil, boom }), s)
	assert.ErrorIs(t, err, boom)
}

// A policy that supports only questions and answers is left out if there are tool
// calls.
func TestPeers_NoTools(t *testing.T) {
	fleet := &harness.Fleet{Peers: []*harness.Peer{{About: peer.About{Costs: []peer.Keeper{{Name: "plain", NoTools: true}, {Name: "any"}}}}}}
	for messages, want := range map[*Conversation][]string{
		conversation(t, Chat(1, 5)):     {"plain", "any"},
		conversation(t, AgentRun(1, 5)): {"any"},
	} {
		var got []string
		for _, p := range peers([]*Conversation{messages}, fleet) {
			got = append(got, p.Name)
			assert.Equal(t, Real, p.Kind)
			assert.False(t, p.Cuts)
		}
		assert.Equal(t, want, got)
	}
}
