package readme

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/ops"
)

func TestTable(t *testing.T) {
	r := Results{Rows: []Row{{"append", []int64{650, 20, 2_300, 0}}, {"reduce to half", []int64{160_400_000, 674_885, 8_612_333, 19_256_881_000}}}, Window: 3_049_000}
	assert.Equal(t, "| | convo | eino | trpc-agent-go | langchaingo |\n|---|---|---|---|---|\n"+
		"| append | 650 ns | **20 ns** | 2.3 µs | – |\n"+
		"| reduce to half | 160 ms | **670 µs** | 8.6 ms | 19 s |\n", r.table())
	assert.Equal(t, "A full window of 200,000 tokens is compacted in 3.0 ms", r.felt())
}

// The rows of convo that are quoted exist, and are those without options.
func TestRows(t *testing.T) {
	times, err := ops.Times(10, measure.Quick, new(harness.Fleet))
	require.NoError(t, err)
	for _, row := range rows {
		require.Len(t, row.cells, len(libraries))
		assert.True(t, slices.ContainsFunc(times, func(at ops.Timing) bool { return at.Table == row.table && at.Name == row.cells[0][0] }), row.name)
		for _, other := range []string{"Truncate", "Tiktoken", "len/4"} {
			assert.False(t, strings.Contains(row.cells[0][0], other), row.name)
		}
	}
}

// Without other libraries, their cells are empty.
func TestWrite(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Write(&b, true, new(harness.Fleet)))
	assert.Regexp(t, `(?m)^\| check, nothing to do \| \*\*\d+ ns\*\* \| – \| – \| – \|$`, b.String())
	assert.Contains(t, b.String(), "A full window of 200,000 tokens is compacted in ")
}
