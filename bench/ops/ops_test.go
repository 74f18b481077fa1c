package ops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// do runs k operations of a case.
func do(t testing.TB, c measure.Case, k int) error {
	t.Helper()
	op, err := c.New(k)
	require.NoError(t, err)
	for i := range k {
		if err := op(i); err != nil {
			return err
		}
	}
	return nil
}

// Every cell looks at what it did: at the number of messages that are left,
// or at whether something was reduced.
func TestCells(t *testing.T) {
	defer quietLog()()
	for _, table := range tables() {
		for _, row := range table.rows {
			t.Run(table.title+"/"+row.name, func(t *testing.T) {
				for _, n := range []int{10, 100} {
					c := row.cell(n)
					assert.NoError(t, do(t, c, max(c.Step, 1)*5), "n = %d", n)
				}
			})
		}
	}
}

// The checks of all see that one message more is too much.
func TestCheck_SeesTheLimit(t *testing.T) {
	defer quietLog()()
	trpcGlobalCounter()
	const n = 50
	t.Run("floor", func(t *testing.T) {
		assert.True(t, floorOf(n, n*perMessage-1).isOver())
		assert.False(t, floorOf(n, n*perMessage).isOver())
	})
	t.Run("convo", func(t *testing.T) {
		for limit, over := range map[int]bool{n: false, n - 1: true} {
			opts := byLenFour()
			limits, err := limitsFor(limit, opts)
			require.NoError(t, err)
			opts.Limits = limits
			h, err := historyOf(n, opts)
			require.NoError(t, err)
			_, err = h.CompactIfNeeded(t.Context())
			require.NoError(t, err)
			assert.Equal(t, over, h.Len() < n, "limit of %d messages", limit)
		}
	})
	t.Run("langchaingo", func(t *testing.T) {
		for limit, want := range map[int]int{n: n, n - 1: n - 1} {
			weight, err := langchainWeight(limit)
			require.NoError(t, err)
			buffer, h := langchainBuffer(n-2, weight)
			require.NoError(t, buffer.SaveContext(t.Context(), langchainIn, langchainOut))
			list, err := h.Messages(t.Context())
			require.NoError(t, err)
			assert.Len(t, list, want)
		}
	})
	t.Run("trpc-agent-go", func(t *testing.T) {
		c := trpcCheckSummary(n)
		assert.NoError(t, do(t, c, 1))
		_, sess, err := trpcFilled(n)
		require.NoError(t, err)
		assert.True(t, trpcDue(n*perMessage-1)(sess))
	})
	t.Run("eino", func(t *testing.T) {
		for _, usage := range []bool{false, true} {
			for limit, calls := range map[int]int{n * perMessage: 0, n*perMessage - 1: 1} {
				mw, m, err := einoSummaries(limit)
				require.NoError(t, err)
				op := einoPass(mw, einoMessages(n, usage), func() bool { return m.calls > 0 })
				if calls == 0 {
					assert.NoError(t, op(0))
				} else {
					assert.ErrorIs(t, op(0), errOver)
				}
				assert.Equal(t, calls, m.calls, "usage %v, limit %d", usage, limit)
			}
		}
	})
}

func TestOurs_Allocations(t *testing.T) {
	const n = 1000
	for _, tt := range []struct {
		name string
		c    measure.Case
		most float64
	}{
		{"check", ourCheck(n, byLenFour()), 0},
		{"check, Heuristic", ourCheck(n, bare(nil)), 0},
		{"snapshot, unchanged", ourSame(n, byLenFour()), 0},
		{"append", ourAppend(1, byLenFour()), 2},
		{"append and snapshot", ourSnapshot(n, byLenFour()), 3},
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

func TestWriteSizes(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteSizes(&b, true, []int{10, 20}))
	out := b.String()
	for _, table := range tables() {
		assert.Contains(t, out, "### "+table.title+"\n")
		for _, row := range table.rows {
			assert.Contains(t, out, "| "+row.name+" |")
		}
	}
	for _, way := range ways() {
		assert.Contains(t, out, "| "+way.name+" |")
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "|") {
			assert.NotContains(t, line, "NaN")
			assert.NotContains(t, line, "Inf")
		}
	}
	assert.Error(t, WriteSizes(&b, true, []int{9}))
}

// BenchmarkOps measures each cell on the clock, at sizes that are soon made.
func BenchmarkOps(b *testing.B) {
	defer quietLog()()
	for _, table := range tables() {
		for _, row := range table.rows {
			for _, n := range []int{10, 1000} {
				b.Run(fmt.Sprintf("%s/%s/n=%d", table.title, strings.ReplaceAll(row.name, "*", ""), n), func(b *testing.B) {
					b.ReportAllocs()
					c := row.cell(n)
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

// The note on a step at the limit says how much each holds on average.
func TestStep_MeanHeld(t *testing.T) {
	const n, steps = 400, 4000
	mean := func(step func() int) float64 {
		total := 0
		for range steps {
			total += step()
		}
		return float64(total) / steps / n
	}
	opts := byLenFour()
	limits, err := limitsFor(n, opts)
	require.NoError(t, err)
	opts.Limits = limits
	h, err := historyOf(n, opts)
	require.NoError(t, err)
	assert.InDelta(t, 0.75, mean(func() int {
		_, err := h.Append(ourUser)
		require.NoError(t, err)
		snap, _, err := h.Prepare(t.Context())
		require.NoError(t, err)
		_, err = h.Append(ourReply)
		require.NoError(t, err)
		return snap.Len()
	}), 0.03)

	mw, _, err := einoSummaries(n * perMessage)
	require.NoError(t, err)
	state := &adk.ChatModelAgentState{Messages: einoMessages(n, false)}
	assert.InDelta(t, 0.5, mean(func() int {
		state.Messages = append(state.Messages, schema.UserMessage(text))
		_, after, err := mw.BeforeModelRewriteState(t.Context(), state, nil)
		require.NoError(t, err)
		held := len(after.Messages)
		state = after
		state.Messages = append(state.Messages, schema.AssistantMessage(text, nil))
		return held
	}), 0.03)
}
