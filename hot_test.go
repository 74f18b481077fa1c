package convo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rereader is an agent that must see a file to edit it, and reads again what it does not see.
type rereader struct {
	window, size, steps int
	file                func(step int) int
	log                 bool
}

// A reread says what a rereader did.
type reread struct {
	again, compactions int
	sent               int64
}

// run runs the agent.
func (a rereader) run(t *testing.T, o Options) (out reread) {
	o.Limits.Window = a.window
	o.OnCompaction = func(r Report) {
		if r.Outcome == OutcomeApplied {
			out.compactions++
			if a.log {
				t.Log(r, r.Links)
			}
		}
	}
	h, err := New(&o)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the of and to in that it for as was with be by on not this are from at which but have an they one all")
	prose := func(tokens int) string {
		var b strings.Builder
		for (Heuristic{}).CountTokens(b.String()) < tokens {
			for range tokens/8 + 1 {
				b.WriteString(words[rng.IntN(len(words))] + " ")
			}
		}
		return b.String()
	}
	send := func(m ...Message) {
		s, _, err := h.Prepare(context.Background())
		require.NoError(t, err)
		out.sent += int64(s.Tokens())
		require.NoError(t, h.RecordUsage(s, Usage{Input: s.Tokens(), Output: 50}))
		_, err = h.Append(m...)
		require.NoError(t, err)
	}
	_, err = h.Append(System("You edit files. "+prose(300)), User("Rename the field in all files."))
	require.NoError(t, err)
	read := make(map[int]bool)
	calls := 0
	call := func(name, args string) ToolCall {
		calls++
		return ToolCall{ID: fmt.Sprintf("call_%d", calls), Name: name, Arguments: args}
	}
	for i := range a.steps {
		k := a.file(i)
		head := fmt.Sprintf("// file %d begins\n", k)
		seen := func() bool {
			for _, m := range h.Snapshot().Messages() {
				for _, r := range m.ToolResults() {
					if strings.HasPrefix(r.Text(), head) {
						return true
					}
				}
			}
			return false
		}
		if _, _, err := h.Prepare(context.Background()); err != nil {
			require.NoError(t, err)
		}
		if !seen() {
			if read[k] {
				out.again++
			}
			read[k] = true
			if a.log {
				t.Log(i, "reads", k)
			}
			c := call("read_file", fmt.Sprintf(`{"path":"src/file_%d.go"}`, k))
			send(Assistant(fmt.Sprintf("I read file %d.", k), c), Result(c, head+prose(a.size)))
		}
		c := call("edit_file", fmt.Sprintf(`{"path":"src/file_%d.go","edit":%q}`, k, prose(20)))
		send(Assistant(fmt.Sprintf("I edit file %d.", k), c), Result(c, "edited"))
	}
	return out
}

func TestThrash(t *testing.T) {
	round := func(n int) func(int) int { return func(i int) int { return i % n } }
	hot := func(i int) int {
		if i%3 == 0 {
			return 0
		}
		return 1 + i
	}
	for _, n := range []int{3, 5, 6, 7} {
		out := rereader{20_000, 2500, 200, round(n), n == 5}.run(t, Options{})
		t.Log(n, out)
	}
	t.Log(rereader{32_000, 1500, 300, hot, false}.run(t, Options{}))
	assert.True(t, true)
}
