package limits_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-c1b73e60/convo/internal/limits"
	"github.com/seed-c1b73e60/convo/internal/overflow"
	"github.com/stretchr/testify/assert"
)

// refuse adds an error with all that a ValueError has.
func refuse(faults []error, isWrong bool, name string, value any, want string) []error {
	if isWrong {
		faults = append(faults, fmt.Errorf("%s is %v, want %s", name, value, want))
	}
	return faults
}

func TestLimits_WithDefaults(t *testing.T) {
	l, faults := limits.Limits{Window: 8000}.WithDefaults(refuse)
	assert.Empty(t, faults)
	assert.Equal(t, limits.Limits{Window: 8000, Reserve: 1000, High: 7000, Low: 3500, Soft: 5250, MinFree: 875}, l)
	for want, l := range map[string]limits.Limits{
		"Limits.High is -1, want 0 or more": {High: -1},
		"Limits.Reserve is 9, want less than Window, which is 5; leave it 0 if max_tokens is that large":                       {Window: 5, Reserve: 9},
		"Limits is {Low: 5}, want Window or High set too":                                                                      {Low: 5, Tools: 3},
		"Limits is {High: 1,000, Low: 1,000}, want Low < High; with its defaults it is {High: 1,000, Low: 1,000, Soft: 1,000}": {High: 1000, Low: 1000},
	} {
		_, faults := l.WithDefaults(refuse)
		assert.EqualError(t, errors.Join(faults...), want)
	}
}

func TestRatios(t *testing.T) {
	r := limits.Ratios{Soft: 0.7, High: 0.85}
	assert.Empty(t, r.Faults(refuse))
	assert.Equal(t, limits.Limits{Window: 200_000, Reserve: 16_000, High: 170_000, Soft: 140_000}, r.Of(200_000))
	assert.Equal(t, limits.Limits{Window: 1000, Reserve: -1, High: 1000, Soft: 300, Low: 150}, limits.Ratios{Soft: 0.3, High: 1}.Of(1000))
	assert.Len(t, limits.Ratios{Soft: 2, High: -1}.Faults(refuse), 2)
	assert.Len(t, limits.Ratios{Soft: 0.9, High: 0.8}.Faults(refuse), 1)
}

func TestLimits_MaxOverhead(t *testing.T) {
	assert.EqualValues(t, int64(1<<52), limits.Limits{}.MaxOverhead())
	assert.EqualValues(t, 450, limits.Limits{Window: 1000, Reserve: 100}.MaxOverhead())
	assert.EqualValues(t, 600, limits.Limits{High: 1000, Tools: 600}.MaxOverhead())
}

// A limit that a provider has named lowers the marks in proportion; what is reserved lowers each
// to the limit at most.
func TestLimits_Marks(t *testing.T) {
	type marks [5]int64
	of := func(limit, high, soft, low, minFree int64) marks { return marks{limit, high, soft, low, minFree} }
	l, _ := limits.Limits{Window: 1000, Reserve: -1}.WithDefaults(refuse)
	assert.Equal(t, marks{1000, 1000, 750, 500, 125}, of(l.Marks(0, 0)))
	assert.Equal(t, marks{700, 700, 600, 400, 100}, of(l.Marks(800, 100)))
	none, _ := limits.Limits{}.WithDefaults(refuse)
	assert.Equal(t, marks{limits.None, limits.None, limits.None, limits.None, 1000}, of(none.Marks(0, 500)))
	assert.Equal(t, marks{800, 800, 600, 400, 100}, of(none.Marks(800, 0)))
}

func TestLimits_Room(t *testing.T) {
	l := limits.Limits{Window: 10_000, Reserve: 1000}
	assert.Equal(t, 7200, l.Room(overflow.Figures{Limit: 8000, Prompt: 9000}, 9000, 10_000), "the answer needs its share")
	assert.Equal(t, 7000, l.Room(overflow.Figures{Limit: 8000, Prompt: 7500, Output: 1000}, 7500, 10_000))
	assert.Equal(t, 500, l.Room(overflow.Figures{Limit: 1000, Prompt: 2000, Quota: true}, 1000, 10_000))
	assert.Zero(t, l.Room(overflow.Figures{Limit: 8000, Prompt: 8000}, 8000, 10_000), "it was not exceeded")
	assert.Zero(t, l.Room(overflow.Figures{Limit: 8000, Prompt: 9000}, 9000, 7000), "it lowers nothing")
	assert.Zero(t, l.Room(overflow.Figures{Limit: 4499, Prompt: 9000}, 9000, 10_000), "of a small model")
}

func TestJudge(t *testing.T) {
	var j limits.Judge
	l, _ := limits.Limits{Window: 1000, Reserve: -1}.WithDefaults(refuse)
	ask := func(version uint64, tokens int64) (bool, string) {
		return j.Ignores(limits.Claim{Version: version, Tokens: tokens, Raw: 100, Window: 1000}, l)
	}
	ignores, want := ask(1, 24)
	assert.True(t, ignores)
	assert.Contains(t, want, "at least 25 for a view of 100 raw tokens")
	ignores, want = ask(2, 24)
	assert.True(t, ignores)
	assert.Empty(t, want, "it is said once")
	ignores, want = ask(3, 1001)
	assert.True(t, ignores)
	assert.Contains(t, want, "at most Limits.Window, which is 1000")
	before := j
	ignores, want = ask(4, 950)
	assert.True(t, ignores)
	assert.Contains(t, want, "at most 900 for a view of 100 raw tokens")
	ignores, _ = ask(4, 950)
	assert.True(t, ignores, "it is the same report")
	ignores, _ = ask(5, 950)
	assert.False(t, ignores, "the second one in a row")
	ignores, _ = before.Ignores(limits.Claim{Version: 5, Tokens: 950, Raw: 100}, l)
	assert.True(t, ignores, "a copy does not change")
}
