package cost

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With as many extra steps as the break-even says, a policy costs as much as one that removes
// nothing.
func TestBreakEven(t *testing.T) {
	p := Prices{Read: 0.1, Write: 1.25, Uncached: 1, Output: 5}
	all := Tally{Requests: 100, Last: 90_000, Bill: Bill{Read: 4_000_000, Write: 90_000}}
	cut := Tally{Requests: 100, Last: 30_000, Bill: Bill{Read: 2_000_000, Write: 120_000}}
	steps, ok := breakEven(all, cut, p)
	require.True(t, ok)
	assert.EqualValues(t, 60_000, left(all, cut))
	assert.InDelta(t, (512_500.0-350_000)/(60*3_500), steps, 1e-9)
	assert.InDelta(t, all.Units(p), withSteps(all, cut, p, steps), 1e-6)
	_, ok = breakEven(all, all, p)
	assert.False(t, ok, "nothing left")
}

// The last request of each conversation counts, and no other.
func TestTally_Last(t *testing.T) {
	all, err := generated(true)
	require.NoError(t, err)
	s := newStudy(all[0], nil)
	whole, err := s.run(never())
	require.NoError(t, err)
	ours, err := s.run(Default())
	require.NoError(t, err)
	c := s.cs[0]
	want := 0
	for i, m := range c.Messages {
		if i < len(c.Messages)-1 {
			want += c.count(m)
		}
	}
	assert.EqualValues(t, want, whole.Last)
	assert.Less(t, ours.Last, whole.Last)
	assert.LessOrEqual(t, ours.Last, int64(s.setup.Limit()))
}

func TestWriteSteps(t *testing.T) {
	all, err := generated(true)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, writeSteps(&b, []*study{newStudy(all[0], nil)}))
	assert.Contains(t, b.String(), "| reads at 0.05, from 4,096 tokens |")
	assert.NotContains(t, b.String(), "NaN")
}
