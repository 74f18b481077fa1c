package repotest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
)

// The commands that .ci/run takes from the README.
func TestREADME_CommandsStand(t *testing.T) {
	inRoot(t)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, command := range []string{"\ngo run ./examples/quickstart\n", "\ngo test ./...\n"} {
		assert.Contains(t, string(readme), command)
	}
}

// The figures in doc.go stand for a conversation of one question.
func TestDoc_FiguresOfRecordUsage(t *testing.T) {
	inRoot(t)
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

// Each bug that testdata/bugs.md lists names the test that shows that convo does not have it, and
// that test exists.
func TestPages_BugsAreTested(t *testing.T) {
	inRoot(t)
	tests := declaredIn(t, globs(t, "*_test.go", "internal/repotest/*_test.go")...)
	rows, inTable := 0, false
	for line := range strings.Lines(read(t, "internal/repotest/testdata/bugs.md")) {
		inTable = strings.HasPrefix(line, "|") && (inTable || line == "| bug | test |\n")
		if !inTable || strings.HasSuffix(line, "| test |\n") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		row := regexp.MustCompile("^\\| [^|]+ \\| `(Test\\w+)` \\|\n$").FindStringSubmatch(line)
		if assert.NotNil(t, row, "no row of a bug and a test: %s", line) {
			assert.True(t, tests[row[1]], "bugs.md names %s, and there is no such test", row[1])
		}
	}
	assert.GreaterOrEqual(t, rows, 47)
}

// For each row of the table in docs/formats.md about rewritten history, testdata/rewriting.md
// has a row that names the tests for it.
func TestPages_RewritingIsTested(t *testing.T) {
	inRoot(t)
	_, section, ok := strings.Cut(read(t, "docs/formats.md"), "\n## What providers want when history is rewritten\n")
	require.True(t, ok)
	tests := declaredIn(t, globs(t, "*_test.go", "wire/*_test.go", "convotest/provider/*_test.go", "internal/repotest/*_test.go")...)
	name := regexp.MustCompile("`(Test\\w+)`")
	tested := map[string]bool{} // what a provider wants
	for _, cells := range rowsOf(read(t, "internal/repotest/testdata/rewriting.md")) {
		require.Len(t, cells, 2, "%s", cells)
		assert.Regexp(t, name, cells[1], cells[0])
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			assert.True(t, tests[m[1]], "rewriting.md names %s, and there is no such test", m[1])
		}
		tested[cells[0]] = true
	}
	rows := rowsOf(section)
	for _, cells := range rows {
		require.Len(t, cells, 3, "%s", cells)
		assert.True(t, tested[cells[1]], "rewriting.md has no tests for: %s", cells[1])
	}
	assert.GreaterOrEqual(t, len(rows), 20)
	assert.Len(t, tested, len(rows), "rewriting.md has rows that the page does not have")
}

// rowsOf returns the cells of each row of the tables on a page, without those of the heads.
func rowsOf(page string) (rows [][]string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|---") {
			rows = rows[:len(rows)-1] // the head
		} else if strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// Each of the 102 rows of testdata/rows.md names the tests that hold it, and the files that
// they are in.
func TestPages_Rows(t *testing.T) {
	inRoot(t)
	test := regexp.MustCompile("`((?:Test|Example|Fuzz)\\w+)` in `([\\w/]+_test\\.go)`")
	in := map[string]map[string]bool{} // the names in a file
	last := 0
	for line := range strings.Lines(read(t, "internal/repotest/testdata/rows.md")) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		row, err := strconv.Atoi(strings.TrimPrefix(cells[0], "| "))
		if err != nil {
			continue
		}
		require.Len(t, cells, 4, "row %d", row)
		require.Equal(t, last+1, row, "the row before it is missing")
		last = row
		held := strings.TrimSuffix(cells[3], " |")
		named := test.FindAllStringSubmatch(held, -1)
		assert.NotEmpty(t, named, "row %d names no test", row)
		for _, m := range named {
			if in[m[2]] == nil {
				in[m[2]] = declaredIn(t, m[2])
			}
			assert.True(t, in[m[2]][m[1]], "row %d names %s in %s, and it is not there", row, m[1], m[2])
		}
		assert.Empty(t, strings.Trim(test.ReplaceAllString(held, ""), " ,;"), "row %d: no list of tests and files", row)
	}
	assert.Equal(t, 102, last)
}

// declaredIn returns the names of the functions that files declare.
func declaredIn(t *testing.T, files ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
				names[d.Name.Name] = true
			}
		}
	}
	return names
}

// The loop around Save in doc.go stands in Example_saving, but for what it returns.
func TestDoc_SavingIsAnExample(t *testing.T) {
	inRoot(t)
	_, example, ok := strings.Cut(read(t, "example_test.go"), "func Example_saving() {\n")
	require.True(t, ok)
	example, _, _ = strings.Cut(example, "\n}\n")
	_, loop, ok := strings.Cut(read(t, "doc.go"), "//\terr = h.Save(ctx)\n//\tfor ")
	require.True(t, ok)
	loop, _, _ = strings.Cut("for "+loop, "\n//\n")
	want := regexp.MustCompile(` // .*`).ReplaceAllString(strings.ReplaceAll(example, "\n\t\t", "\n"), "")
	want = strings.ReplaceAll(want, `return "", `, "return ")
	assert.Contains(t, want, strings.ReplaceAll(loop, "\n//\t", "\n"))
}

// Each file that ARCHITECTURE.md and CONTRIBUTING.md name exists, and each test.
// A "*" in a name stands for anything, and x.go for any file.
func TestPages_FilesExist(t *testing.T) {
	inRoot(t)
	code := regexp.MustCompile("`([^`\n]+)`")
	file := regexp.MustCompile(`^[\w*./-]+\.(go|md|sh|txt)$`)
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		before, list, _ := strings.Cut(string(text), "<!-- wire layers -->") // TestLayers_Wire knows these
		_, after, _ := strings.Cut(list, "<!-- end of wire layers -->")
		named := 0
		for _, m := range code.FindAllStringSubmatch(before+after, -1) {
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

// Each package of this repository that is not a test has a package comment.
func TestPackages_HaveComments(t *testing.T) {
	inRoot(t)
	comments := map[string]bool{} // by directory
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		dir := filepath.Dir(path)
		comments[dir] = comments[dir] || f.Doc != nil
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, len(comments), 50)
	for dir, has := range comments {
		assert.True(t, has, "the package in %s has no comment", dir)
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
