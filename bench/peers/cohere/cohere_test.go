package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/calibrate"
)

func counter(t *testing.T) func(string) int {
	require.Len(t, library.Counters, 1)
	count, err := library.Counters[0].New()
	require.NoError(t, err)
	return count
}

// The count differs from that of OpenAI's tokenizers, which make nine tokens of
// these three lines. An exact count for one vocabulary is only an estimate for
// models with another.
func TestCounter_Differs(t *testing.T) {
	got := counter(t)(strings.Repeat("if err != nil {\n\treturn err\n}\n", 100))
	assert.Greater(t, got, 900/2)
	assert.NotEqual(t, 900, got)
}

// convo's estimates and bounds reach the promised accuracy with usage reports by
// such a tokenizer.
func TestCalibrate(t *testing.T) {
	count := counter(t)
	conversations, err := calibrate.Conversations(40)
	require.NoError(t, err)
	for _, s := range calibrate.Foreign(func(text string) (int, error) { return count(text), nil }) {
		t.Run(s.Name, func(t *testing.T) {
			c, err := calibrate.Run(s, conversations)
			require.NoError(t, err)
			late := c.Over(3, calibrate.Reports)
			t.Logf("error %.2f %.2f %.2f %.2f; late %.1f %.1f", c[0].MeanError(), c[1].MeanError(), c[3].MeanError(), c[10].MeanError(), late.Coverage(), late.MeanSlack())
			assert.Equal(t, 19*len(conversations), c.Over(1, calibrate.Reports).N, "each request was seen")
			assert.True(t, strings.HasPrefix(s.Name, "foreign"))
			assert.GreaterOrEqual(t, late.Coverage(), 97.5)
			assert.Less(t, late.MeanSlack(), 12.0)
		})
	}
}
