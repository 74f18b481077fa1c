package convo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands that .ci/run takes from the README.
func TestREADME_CommandsStand(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, command := range []string{"\ngo run ./examples/quickstart\n", "\ngo test ./...\n"} {
		assert.Contains(t, string(readme), command)
	}
}

// Each bug on the page docs/bugs.md names the test that keeps it out, and that
// test exists.
func TestPages_BugsAreTested(t *testing.T) {
	page, err := os.ReadFile("docs/bugs.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
				tests[d.Name.Name] = true
			}
		}
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what went wrong ") {
			continue
		}
		rows++
		row := regexp.MustCompile("^\\| [^|]+ \\| `(Test\\w+)` \\|\n$").FindStringSubmatch(line)
		if assert.NotNil(t, row, "no row of a bug and a test: %s", line) {
			assert.True(t, tests[row[1]], "docs/bugs.md names %s, and there is no such test", row[1])
		}
	}
	assert.Greater(t, rows, 40)
	for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(string(page), -1) {
		assert.True(t, tests[name], "docs/bugs.md names %s, and there is no such test", name)
	}
}

// The program in the README is examples/hello, and prints what stands below it.
func TestREADME_ProgramIsHello(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	program, rest := block(t, string(readme), "```go\n")
	source, err := os.ReadFile("examples/hello/main.go")
	require.NoError(t, err)
	assert.Equal(t, string(source), program)
	assert.LessOrEqual(t, strings.Count(program, "\n"), 25)

	want, _ := block(t, rest, "```text\n")
	out, err := exec.Command("go", "run", "./examples/hello").Output()
	require.NoError(t, err)
	assert.Equal(t, want, string(out))
}

// block returns the first fenced block that begins so, and what follows it.
func block(t *testing.T, page, begin string) (body, rest string) {
	t.Helper()
	_, rest, ok := strings.Cut(page, begin)
	require.True(t, ok)
	body, rest, ok = strings.Cut(rest, "```")
	require.True(t, ok)
	return body, rest
}
