package repotest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each page of docs shows a whole program of examples/pages, and what it prints.
func TestPages_ProgramsRun(t *testing.T) {
	inRoot(t)
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir, "./examples/pages/...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	programs := globs(t, "examples/pages/*")
	require.NotEmpty(t, programs)
	for _, program := range programs {
		name := filepath.Base(program)
		page := read(t, "docs/"+name+".md")
		_, rest, ok := strings.Cut(page, "```go\npackage ")
		require.True(t, ok, "docs/%s.md shows no program", name)
		shown, rest, ok := strings.Cut("package "+rest, "```\n")
		require.True(t, ok)
		if tests := globs(t, program+"/*_test.go"); len(tests) == 1 { // go test ./... runs it
			assert.Equal(t, read(t, tests[0]), shown, "docs/%s.md", name)
			continue
		}
		_, source, ok := strings.Cut(read(t, program+"/main.go"), "\npackage ")
		require.True(t, ok, "%s has no comment", program)
		assert.Equal(t, "package "+source, shown, "docs/%s.md", name)
		prints, ok := strings.CutPrefix(rest, "\n`go run ./"+filepath.ToSlash(program)+"` prints\n\n```text\n")
		require.True(t, ok, "docs/%s.md does not say what its program prints", name)
		prints, _, _ = strings.Cut(prints, "```\n")
		out, err := exec.Command(filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, string(out), prints, "docs/%s.md", name)
	}
	for _, page := range globs(t, "docs/*.md") {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		others := []string{"README", "format", "logging", "command", "replay", "inspect"} // an index, and pages that other tests compare with the code
		if _, err := os.Stat("examples/pages/" + name); err != nil && !slices.Contains(others, name) {
			t.Errorf("%s has no program in examples/pages", page)
		}
	}
}

// docs/inspect.md shows what its program prints.
func TestPages_Inspect(t *testing.T) {
	inRoot(t)
	out, err := exec.Command("go", "run", "./examples/inspect").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, read(t, "docs/inspect.md"), "```text\n"+string(out)+"```\n")
}

// docs/testing.md shows how its test fails if the tool returns something else.
func TestPages_TestingFails(t *testing.T) {
	inRoot(t)
	name, err := filepath.Abs("examples/pages/testing/agent_test.go")
	require.NoError(t, err)
	source := read(t, name)
	require.Contains(t, source, `convo.Text("rain")`)
	changed, overlay := filepath.Join(t.TempDir(), "agent_test.go"), filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(source, `convo.Text("rain")`, `convo.Text("snow")`, 1)), 0o600))
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {name: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replaced, 0o600))
	out, err := exec.Command("go", "test", "-overlay", overlay, "-run", "^TestAsk$", "./examples/pages/testing").CombinedOutput()
	require.Error(t, err)
	_, page, _ := strings.Cut(read(t, "docs/testing.md"), "the test would fail with\n\n")
	shown, _ := block(t, page, "```text\n")
	for line := range strings.Lines(shown) {
		assert.Contains(t, string(out), strings.TrimSpace(line))
	}
}
