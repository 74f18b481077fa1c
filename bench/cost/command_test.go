package cost

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
	"github.com/seed-c1b73e60/convo/wire"
)

// commandBill is what the command prints of a policy.
type commandBill struct {
	Input, Later, Shared  int64
	New, Cached, Written  int64
	Rewrites, Compactions int
	OverLimit             int `json:"over_limit"`
}

// TestCommand runs "convo replay" and this package on the same file. The figures of the
// policies that both have are equal.
func TestCommand(t *testing.T) {
	long.Only(t, "builds the command")
	dir := t.TempDir()
	program := filepath.Join(dir, "convo")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/seed-c1b73e60/convo/cmd/convo").CombinedOutput()
	require.NoError(t, err, string(out))

	counter, err := convo.New(nil)
	require.NoError(t, err)
	count := func(m convo.Message) int {
		n, err := counter.Count(m)
		require.NoError(t, err)
		return n
	}
	for _, c := range []struct {
		name  string
		limit int
		msgs  []convo.Message
	}{
		{"chat", 3_500, Chat(3, 120)},
		{"react", 14_000, React(3, 12)},
		{"agent", 28_000, AgentRun(3, 60)},
	} {
		t.Run(c.name, func(t *testing.T) {
			request, err := wire.OpenAIChat{}.Encode(convo.NewSnapshot(c.msgs))
			require.NoError(t, err)
			file := filepath.Join(dir, c.name+".jsonl")
			require.NoError(t, os.WriteFile(file, append(request.Body(), '\n'), 0o600))

			var got struct {
				Total struct {
					Requests int
					Output   struct{ Estimated int64 }
					Policies map[string]commandBill
				}
			}
			window := c.limit + c.limit/7
			run := exec.CommandContext(t.Context(), program, "replay", "-json", "-window", strconv.Itoa(window), file)
			run.Stderr = os.Stderr
			printed, err := run.Output()
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(printed, &got))

			data, err := os.ReadFile(file)
			require.NoError(t, err)
			read, err := ReadMessages(bytes.NewReader(data))
			require.NoError(t, err)
			conv, err := NewConversation(c.name, read[0])
			require.NoError(t, err)
			conv.count = count
			conv.plan, err = newLayout(conv)
			require.NoError(t, err)
			setup := Setup{Window: window, Reserve: c.limit / 7, Cache: defaultCache}
			for name, policy := range map[string]Policy{
				"nothing":  never(),
				"recorded": never(),
				"convo":    ours(variant{name: "convo", set: func(o *convo.Options, _ *oursRun) { o.TagKey = "convo replay" }}),
			} {
				want, err := Replay(conv, policy, setup)
				require.NoError(t, err)
				b := got.Total.Policies[name]
				assert.Equal(t, want.Requests, got.Total.Requests, name)
				assert.Equal(t, want.Input, b.Input, name)
				assert.Equal(t, want.Later, b.Later, name)
				assert.Equal(t, want.Shared, b.Shared, name)
				assert.Equal(t, want.Bill, Bill{Read: b.Cached, Write: b.Written, Uncached: b.New, Output: got.Total.Output.Estimated}, name)
				assert.Equal(t, want.Rewrites, b.Rewrites, name)
				assert.Equal(t, want.Over, b.OverLimit, name)
				if name == "convo" {
					assert.Positive(t, b.Rewrites, "nothing was compacted")
					assert.Equal(t, b.Rewrites, b.Compactions)
				}
			}
		})
	}
}
