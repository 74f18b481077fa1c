package convo_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var runMutants = flag.Bool("convo.mutants", false, "break the code on purpose and see the model test fail")

// Each mutant breaks one rule. The model test must see every one of them.
var mutants = []struct {
	name, file, old, new string
}{
	{
		"pairing by id over the whole list", "calls.go",
		"	return 0, notFound(id != \"\" && answered)\n}\n\nfunc (c *calls) lookUp",
		"	if id != \"\" && c.open > 0 {\n\t\treturn c.first, nil\n\t}\n\treturn 0, notFound(id != \"\" && answered)\n}\n\nfunc (c *calls) lookUp",
	},
	{"no clip in Rollback", "rollback.go", "	h.list = h.list[:n:n]\n", "	h.list = h.list[:n]\n"},
	{"no clip in Restore", "snapshot.go", "c.sys, c.list, c.pins = slices.Clip(s.sys), slices.Clip(s.list), slices.Clip(s.pins)", "c.pins = slices.Clip(s.pins)"},
	{"apply without the floor of now", "edit.go", "			case floor.has(i):\n				return ErrStale\n", ""},
	{"apply without the pins of now", "edit.go", "			case floor.pinned(i):\n				done.kept = append(done.kept, e.id)\n", "			case floor.pinned(i) && false:\n"},
	{"a pin of one entry only", "pin.go", "			heads = append(heads, e.head)", "			heads = append(heads, e.id)"},
	{"usage stamped on the present list", "usage.go", "at.raw())\n	h.learned", "h.raw())\n	h.learned"},
	{"an older figure applied", "usage.go", "at.version < h.learned.version(at.model)", "false"},
	{
		"splice by count", "apply.go",
		"	r, err := h.Apply(at, e)\n	if err != nil {\n		return 0, err\n	}\n	return len(r.Dropped)",
		"	now := h.Snapshot()\n	for i := range e.Drop {\n		e.Drop[i] = now.list[min(i, len(now.list)-1)].id\n	}\n	r, err := h.Apply(now, e)\n	if err != nil {\n		return 0, err\n	}\n	return len(r.Dropped)",
	},
	{"next ID from the largest present", "history.go", "	open, id, turn := h.calls, h.last, h.turn\n", "	open, id, turn := h.calls, h.last, h.turn\n	if n := len(h.list); n > 0 {\n		id = h.list[n-1].id\n	}\n"},
	{"a batch append not atomic", "history.go", "			h.calls.reopen(answered)\n", ""},
	{"ephemeral counted twice", "snapshot.go", "s.slot.tokens() + s.eph.tokens()\n", "s.slot.tokens() + 2*s.eph.tokens()\n"},
	{"Restore without pairs", "restore.go", "	h.calls = callsOf(h.list)\n", ""},
	{"edits always stay", "rollback.go", "		if !at.holdsAll(h.edits[i].touched) {\n			return false\n		}\n", ""},
	{"a rollback forgets what it took", "rollback.go", "	h.rollbacks = append(h.rollbacks, rollbackMark{h.version, last})\n", ""},
	{"a second summary", "edit.go", "	if j.sum != nil && s.slot != j.slot {\n		return done, ErrStale\n	}\n", ""},
	{"pins outlive their entries", "rollback.go", "	h.pins = h.pins[:n:n]\n", "	_ = n\n"},
	{"rewind past a reduction", "rollback.go", "h.list[n-1].turn > h.touched {", "h.list[n-1].turn > 0 {"},
}

func TestMutants(t *testing.T) {
	if !*runMutants {
		t.Skip("builds and runs the tests once for each mutant; run with -convo.mutants, as .ci/run does")
	}
	seedLine := regexp.MustCompile(`seed \d+`)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			copyPackage(t, dir)
			path := filepath.Join(dir, m.file)
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), m.old), "the mutant must find its place in %s", m.file)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600))

			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run", "TestHistory_Model$", "-convo.ops=20000", ".")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "the model test did not see it")
			require.NotContains(t, string(out), "[build failed]")
			assert.Contains(t, string(out), "TestHistory_Model")
			t.Logf("caught at %s", seedLine.FindString(string(out)))
		})
	}
}

// copyPackage copies the root package with the files its model test needs.
func copyPackage(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{"*.go", "go.mod", "go.sum"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "model_") {
				continue
			}
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
	}
}
