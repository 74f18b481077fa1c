package convo_test

import (
	"fmt"
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

	"github.com/seed-c1b73e60/convo"
)

// The commands that .ci/run takes from the README.
func TestREADME_CommandsStand(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, command := range []string{"\ngo run ./examples/quickstart\n", "\ngo test ./...\n"} {
		assert.Contains(t, string(readme), command)
	}
}

// The figures in doc.go stand for a conversation of one question.
func TestDoc_FiguresOfRecordUsage(t *testing.T) {
	h := historyOf(t, nil, convo.System("You are a travel agent."), convo.User("Window seats only, I am tall. Flights to Rome?"))
	require.NoError(t, h.RecordUsage(h.Snapshot(), convo.Usage{Input: 5210}))
	first := fmt.Sprintf("%+v", h.Tokens())
	mustAppend(t, h, convo.Assistant("At 09:10 and 13:45."))
	second := fmt.Sprintf("%+v", h.Tokens())
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, figures := range []string{first, second} {
		assert.Contains(t, string(doc), "// "+figures+"\n")
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

// Each file that ARCHITECTURE.md and CONTRIBUTING.md name exists, and each test.
// A "*" in a name stands for anything, and x.go for any file.
func TestPages_FilesExist(t *testing.T) {
	code := regexp.MustCompile("`([^`\n]+)`")
	file := regexp.MustCompile(`^[\w*./-]+\.(go|md|sh|txt)$`)
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		named := 0
		for _, m := range code.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			if !file.MatchString(name) || name == "x.go" || name == "x_test.go" {
				continue
			}
			named++
			found, err := filepath.Glob(name)
			require.NoError(t, err)
			assert.NotEmpty(t, found, "%s names %s, and there is no such file", page, name)
		}
		assert.Greater(t, named, 5, page)
	}
}

// The entry of a mutant that CONTRIBUTING.md shows is one of the mutants.
func TestPages_MutantStands(t *testing.T) {
	page, err := os.ReadFile("CONTRIBUTING.md")
	require.NoError(t, err)
	_, entry, ok := strings.Cut(string(page), "groups of four:\n\n```go\n")
	require.True(t, ok)
	entry, _, _ = strings.Cut(entry, "```")
	mutants, err := os.ReadFile("internal/modeltest/mutants_bpe_test.go")
	require.NoError(t, err)
	for line := range strings.Lines(entry) {
		assert.Contains(t, string(mutants), strings.TrimSpace(line))
	}
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
