package keep

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After every compaction the view holds the task and all rules of the user, and nearly
// all edits of the current file, whatever the size of the steps and the tokenizer. With
// a summarizer that works, nothing is dropped unread.
func TestAgent_Remembers(t *testing.T) {
	steps := long.Or(30, 80)
	for i, l := range Ladders()[:4] {
		for j, factor := range long.Or([]float64{1.03, 1.5}, []float64{0.8, 1.03, 1.5, 2.2}) {
			for calls := 1; calls <= 3; calls++ {
				for k, users := range []int{1, 30, 0} {
					if !long.On() && ((i+calls+k)%3 != 0 || (j+calls)%2 != 0) {
						continue // each ladder has each factor, number of calls and number of users
					}
					what := fmt.Sprintf("%s, factor %.2f, %d calls, users %d", l.Name, factor, calls, users)
					m, err := Agent{Steps: steps, Calls: calls, Users: users, Factor: factor, Window: 128_000, Seed: 2}.Run(convo.Options{Strategy: l.Strategy()})
					require.NoError(t, err, what)
					require.Positive(t, m.Compactions, what)
					assert.Equal(t, 1.0, m.Task, what)
					assert.Equal(t, 1.0, m.Rules, what)
					edits := 0.9
					if calls == 3 && factor > 2 {
						edits = 0.8 // the results of one step fill the window, so that hardly another step stays
					}
					assert.GreaterOrEqual(t, m.Edits, edits, what)
					assert.Zero(t, m.Over, what)
					if l.Name != "no summary" {
						assert.Zero(t, m.Unread, what)
					}
				}
			}
		}
	}
}

// The measurement sees what a strategy loses.
func TestAgent_SeesLosses(t *testing.T) {
	m, err := Agent{Steps: 100, Calls: 1, Users: 30, Factor: 1, Window: 128_000, Seed: 1}.Run(convo.Options{Strategy: convo.SlidingWindow{KeepLast: 10}})
	require.NoError(t, err)
	assert.Less(t, m.Task, 0.5)
	assert.Less(t, m.Rules, 0.9)
	assert.Positive(t, m.Unread)
}

func TestWrite(t *testing.T) {
	long.Only(t, "measures every policy")
	var b strings.Builder
	require.NoError(t, Write(&b, true))
	assert.Contains(t, b.String(), "| default ")
	assert.NotContains(t, b.String(), "NaN")
}
