package ops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/talks"
)

// alone is a fleet without peers.
var alone = new(harness.Fleet)

// Every cell checks its own work: the number of messages that are left, or
// whether the conversation was reduced.
func TestCells(t *testing.T) {
	for _, table := range append(tables(alone), compactTable) {
		for _, row := range table.rows {
			t.Run(string(table.title)+"/"+row.name, func(t *testing.T) {
				for _, n := range []int{10, 100} {
					c := row.cell(n).(peer.Case)
					assert.NoError(t, c.Do(max(c.Step, 1)*5), "n = %d", n)
				}
			})
		}
	}
}

// The checks notice a conversation that is one message over the limit.
func TestCheck_SeesTheLimit(t *testing.T) {
	const n = 50
	t.Run("floor", func(t *testing.T) {
		assert.True(t, floorOf(n, n*peer.PerMessage-1).isOver())
		assert.False(t, floorOf(n, n*peer.PerMessage).isOver())
	})
	t.Run("convo", func(t *testing.T) {
		for more, over := range map[int]bool{0: false, -1: true} {
			h, err := fullOf(n, more, convo.Options{})
			require.NoError(t, err)
			_, _, err = h.Prepare(t.Context())
			require.NoError(t, err)
			assert.Equal(t, over, h.Len() < n, "limit of %d messages", n+more)
		}
	})
}

func TestOurs_Allocations(t *testing.T) {
	const n = 1000
	lenFour, err := byLenFour()
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		c    peer.Case
		most float64
	}{
		{"check", ourCheck(n, convo.Options{}), 0},
		{"check, len/4", ourCheck(n, lenFour), 0},
		{"snapshot, unchanged", ourSame(n, convo.Options{}), 0},
		{"append", ourAppend(1, convo.Options{}), 2},
		{"append and snapshot", ourSnapshot(n, convo.Options{}), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const runs = 100
			op, err := tt.c.New(runs + 1)
			require.NoError(t, err)
			i := 0
			got := testing.AllocsPerRun(runs, func() {
				require.NoError(t, op(i))
				i++
			})
			assert.LessOrEqual(t, got, tt.most)
		})
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Write(&b, true, []int{10, 20}, alone))
	out := b.String()
	for _, table := range tables(alone) {
		assert.Contains(t, out, "### "+string(table.title)+"\n")
		for _, row := range table.rows {
			assert.Contains(t, out, "| "+row.name+" |")
		}
	}
	for _, way := range ways(alone) {
		assert.Contains(t, out, "| "+way.name+" |")
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "|") {
			assert.NotContains(t, line, "NaN")
			assert.NotContains(t, line, "Inf")
		}
	}
	assert.Error(t, Write(&b, true, []int{9}, alone))
}

func TestWriteCompact(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteCompact(&b, true))
	assert.Contains(t, b.String(), "| **convo** Compact to half | ")
	assert.Regexp(t, `\nA compaction of a full window of 200,000 tokens takes [\d.]+ m?s\.\n`, b.String())
}

// BenchmarkOps measures the wall-clock time of each cell, at sizes that take
// little time to prepare.
func BenchmarkOps(b *testing.B) {
	for _, table := range tables(alone) {
		for _, row := range table.rows {
			for _, n := range []int{10, 1000} {
				b.Run(fmt.Sprintf("%s/%s/n=%d", table.title, strings.ReplaceAll(row.name, "*", ""), n), func(b *testing.B) {
					b.ReportAllocs()
					c := row.cell(n).(peer.Case)
					for left := b.N; left > 0; {
						k := left
						if c.Max > 0 {
							k = min(k, c.Max)
						}
						b.StopTimer()
						op, err := c.New(k)
						require.NoError(b, err)
						b.StartTimer()
						for i := range k {
							if err := op(i); err != nil {
								b.Fatal(err)
							}
						}
						left -= k
					}
				})
			}
		}
	}
}

// This is the average that the note on a step at the limit states.
func TestStep_MeanHeld(t *testing.T) {
	const n, steps = 400, 4000
	h, err := fullOf(n, 0, convo.Options{})
	require.NoError(t, err)
	next := messages(n + 2*steps)[n:]
	total := 0
	for i := range steps {
		_, err := h.Append(next[2*i])
		require.NoError(t, err)
		snap, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		_, err = h.Append(next[2*i+1])
		require.NoError(t, err)
		total += snap.Len()
	}
	assert.InDelta(t, 0.68, float64(total)/steps/n, 0.05)
}

// Every request of each row can be sent, has the newest message, and is within the budget.
func TestOurs_Talks(t *testing.T) {
	for _, way := range ways(alone) {
		t.Run(way.name, func(t *testing.T) {
			got, err := talks.Play(way.do, 15, true)
			require.NoError(t, err)
			assert.Greater(t, got.Requests, 1000)
			assert.Greater(t, got.Trimmed, got.Requests/4, "the budget matters")
			assert.Zero(t, got.Broken)
			assert.Zero(t, got.Stale)
			assert.Zero(t, got.Refused)
			assert.LessOrEqual(t, got.Weight, got.Trimmed*talks.Budget)
		})
	}
}
