package calibrate

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// conversations returns how many conversations a test runs.
func conversations() int { return long.Or(20, 200) }

// TestTargets holds the accuracy that convo promises, with the tokenizer that
// Heuristic is fitted to and with a similar one.
func TestTargets(t *testing.T) {
	texts, err := Conversations(conversations())
	require.NoError(t, err)
	setups, err := Ours()
	require.NoError(t, err)
	for _, s := range setups {
		t.Run(s.Name, func(t *testing.T) {
			c, err := Run(s, texts)
			require.NoError(t, err)
			early, late := c.Over(1, 2), c.Over(3, Reports)
			t.Logf("error %.2f %.2f %.2f %.2f; early %.1f %.1f; late %.1f %.1f", c[0].MeanError(), c[1].MeanError(), c[3].MeanError(), c[10].MeanError(),
				early.Coverage(), early.MeanSlack(), late.Coverage(), late.MeanSlack())
			assert.Equal(t, 19*len(texts), c.Over(1, Reports).N, "each request was seen")
			assert.GreaterOrEqual(t, late.Coverage(), 99.0)
			assert.Less(t, late.MeanSlack(), 8.0)
			assert.GreaterOrEqual(t, early.Coverage(), 97.0)
			assert.Less(t, early.MeanSlack(), 15.0)
			assert.Less(t, c[1].MeanError(), 2.5)
			if s.Window == 0 {
				// A mean over few conversations varies more.
				assert.Less(t, c[3].MeanError(), long.Or(2.0, 1.2))
				assert.Less(t, c[10].MeanError(), 0.4)
			}
		})
	}
}

// One report in five lacks the tokens that were read from the cache.
func TestUncached(t *testing.T) {
	texts, err := Conversations(conversations())
	require.NoError(t, err)
	setups, err := Ours()
	require.NoError(t, err)
	for _, s := range setups {
		s.Uncached = 5
		t.Run(s.Name, func(t *testing.T) {
			c, err := Run(s, texts)
			require.NoError(t, err)
			all, late := c.Over(1, Reports), c.Over(8, Reports)
			t.Logf("all %.1f %.1f; late %.1f %.1f", all.Coverage(), all.MeanSlack(), late.Coverage(), late.MeanSlack())
			assert.GreaterOrEqual(t, all.Coverage(), 95.0)
			assert.GreaterOrEqual(t, late.Coverage(), 99.5)
			assert.Less(t, late.MeanSlack(), 8.0)
		})
	}
}

// The conversations are the same each time, so that figures can be compared.
func TestConversations_TheSame(t *testing.T) {
	a, err := Conversations(3)
	require.NoError(t, err)
	b, err := Conversations(3)
	require.NoError(t, err)
	assert.Equal(t, a, b)
}

func TestWrite(t *testing.T) {
	if testing.Verbose() {
		require.NoError(t, Write(os.Stdout, true, new(harness.Fleet)))
		return
	}
	require.NoError(t, Write(discard{}, true, new(harness.Fleet)))
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// There are no setups for peers' tokenizers with a vocabulary that convo has.
func TestSetups_Peers(t *testing.T) {
	fleet := &harness.Fleet{Peers: []*harness.Peer{{About: peer.About{Counters: []peer.Counter{{Vocabulary: "o200k_base"}, {Vocabulary: "cl100k_base"}, {Vocabulary: "another"}}}}}}
	names := func(list []Setup) (out []string) {
		for _, s := range list {
			out = append(out, s.Name)
		}
		return out
	}
	ours, err := Ours()
	require.NoError(t, err)
	all, err := setups(fleet)
	require.NoError(t, err)
	assert.Equal(t, append(names(ours), names(Foreign(nil))...), names(all))
}

// An error of a tokenizer is returned, and a foreign tokenizer is called once for
// each text.
func TestForeign(t *testing.T) {
	asked := map[string]int{}
	texts := [][]string{{"a", "b", "c", "a", "b", "d"}}
	for _, s := range Foreign(func(text string) (int, error) { asked[text]++; return 7, nil }) {
		_, err := Run(s, texts)
		require.NoError(t, err)
	}
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, asked)
	boom := errors.New("boom")
	_, err := Run(Foreign(func(string) (int, error) { return 0, boom })[0], texts)
	assert.ErrorIs(t, err, boom)
}
