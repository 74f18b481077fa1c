package repotest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// For four times as many items, no statement of package convo runs more than six times as
// often: four would be linear, and five is sorting. A quadratic operation would take sixteen.
// The program is built as for a coverage profile, so that its work is counted, not timed.
func TestWork_IsLinear(t *testing.T) {
	const convo = "github.com/seed-c1b73e60/convo"
	inRoot(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "work")
	run := func(c *exec.Cmd) {
		t.Helper()
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	packages := strings.Join([]string{convo, convo + "/internal/...", convo + "/internal/repotest/testdata/work"}, ",")
	run(exec.CommandContext(t.Context(), "go", "build", "-cover", "-covermode=count", "-coverpkg="+packages, "-o", program, "./internal/repotest/testdata/work"))

	// counts returns how often each statement runs, by its place.
	counts := func(operation string, n int) map[string]int {
		counters, profile := t.TempDir(), filepath.Join(dir, "profile")
		work := exec.CommandContext(t.Context(), program, operation, strconv.Itoa(n))
		work.Env = append(os.Environ(), "GOCOVERDIR="+counters)
		run(work)
		run(exec.CommandContext(t.Context(), "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+profile))
		data, err := os.ReadFile(profile)
		require.NoError(t, err)
		all := make(map[string]int)
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 3 { // the place, how many statements it has, and how often it ran
				all[f[0]], err = strconv.Atoi(f[2])
				require.NoError(t, err)
			}
		}
		return all
	}
	const few, many = 500, 2000
	for _, operation := range []string{"OpenCalls", "Append", "Apply", "Prepare", "Restore", "Rewind"} {
		small, large := counts(operation, few), counts(operation, many)
		most := 0
		for place, n := range large {
			most = max(most, n)
			assert.LessOrEqual(t, n, 6*max(small[place], few), "%s runs %s so often for %d items, and %d times for %d", operation, place, many, small[place], few)
		}
		assert.Greater(t, most, many/2, operation)
	}
}
