package calibrate

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var conversations = flag.Int("calibrate.conversations", 40, "how many conversations TestTargets goes through")

// With the tokenizer that Heuristic stands for, the numbers that convo holds
// itself to; with others, what is stated of them.
func TestTargets(t *testing.T) {
	texts, err := Conversations(*conversations)
	require.NoError(t, err)
	setups, err := Setups()
	require.NoError(t, err)
	for _, s := range setups {
		t.Run(s.Name, func(t *testing.T) {
			c, err := Run(s, texts)
			require.NoError(t, err)
			early, late := c.Over(1, 2), c.Over(3, Reports)
			t.Logf("error %.2f %.2f %.2f %.2f; early %.1f %.1f; late %.1f %.1f", c[0].MeanError(), c[1].MeanError(), c[3].MeanError(), c[10].MeanError(),
				early.Coverage(), early.MeanSlack(), late.Coverage(), late.MeanSlack())
			assert.Equal(t, 19*len(texts), c.Over(1, Reports).N, "each request was seen")
			if strings.HasPrefix(s.Name, "foreign") { // other kinds of text weigh otherwise with it
				assert.GreaterOrEqual(t, late.Coverage(), 97.5)
				assert.Less(t, late.MeanSlack(), 12.0)
				return
			}
			assert.GreaterOrEqual(t, late.Coverage(), 99.0)
			assert.Less(t, late.MeanSlack(), 8.0)
			assert.GreaterOrEqual(t, early.Coverage(), 97.0)
			assert.Less(t, early.MeanSlack(), 15.0)
			assert.Less(t, c[1].MeanError(), 2.5)
			if s.Window == 0 {
				assert.Less(t, c[3].MeanError(), 1.2)
				assert.Less(t, c[10].MeanError(), 0.4)
			}
		})
	}
}

// A change of the texts would be a change of the figures.
func TestConversations_TheSame(t *testing.T) {
	a, err := Conversations(3)
	require.NoError(t, err)
	b, err := Conversations(3)
	require.NoError(t, err)
	assert.Equal(t, a, b)
}

func TestWrite(t *testing.T) {
	if testing.Verbose() {
		require.NoError(t, Write(os.Stdout, true))
		return
	}
	require.NoError(t, Write(discard{}, true))
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
