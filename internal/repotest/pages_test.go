package repotest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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

// Each bug on the page docs/bugs.md names the test that keeps it out, and that
// test exists.
func TestPages_BugsAreTested(t *testing.T) {
	inRoot(t)
	page, err := os.ReadFile("docs/bugs.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	ofRepository, err := filepath.Glob("internal/repotest/*_test.go")
	require.NoError(t, err)
	tests := declaredIn(t, append(files, ofRepository...)...)
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

// Each row of the page docs/rewriting.md names the tests that hold it.
func TestPages_RewritingIsTested(t *testing.T) {
	inRoot(t)
	page, err := os.ReadFile("docs/rewriting.md")
	require.NoError(t, err)
	var files []string
	for _, pattern := range []string{"*_test.go", "wire/*_test.go", "convotest/provider/*_test.go", "internal/repotest/*_test.go"} {
		list, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, list...)
	}
	tests := declaredIn(t, files...)
	name := regexp.MustCompile("`(Test\\w+)`")
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) > 1 && cells[len(cells)-1] != "tests |" {
			rows++
			require.Len(t, cells, 4, line)
			assert.Regexp(t, name, cells[3], line)
		}
		for _, m := range name.FindAllStringSubmatch(line, -1) {
			assert.True(t, tests[m[1]], "docs/rewriting.md names %s, and there is no such test", m[1])
		}
	}
	assert.Greater(t, rows, 15)
}

// Each of the 102 rows on the page docs/rows.md names the tests that hold it, and
// the files that they are in, or says what is to come.
func TestPages_Rows(t *testing.T) {
	inRoot(t)
	page, err := os.ReadFile("docs/rows.md")
	require.NoError(t, err)
	test := regexp.MustCompile("`((?:Test|Example|Fuzz)\\w+)` in `([\\w/]+_test\\.go)`")
	in := map[string]map[string]bool{} // the names in a file
	exported := exportedNames(t)
	last, toCome := 0, 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		row, err := strconv.Atoi(strings.TrimPrefix(cells[0], "| "))
		if err != nil {
			continue
		}
		require.Len(t, cells, 4, "row %d", row)
		require.Equal(t, last+1, row, "the row before it is missing")
		last = row
		held, mark, marked := strings.Cut(strings.TrimSuffix(cells[3], " |"), "to come: ")
		for _, m := range test.FindAllStringSubmatch(held, -1) {
			if in[m[2]] == nil {
				in[m[2]] = declaredIn(t, m[2])
			}
			assert.True(t, in[m[2]][m[1]], "row %d names %s in %s, and it is not there", row, m[1], m[2])
		}
		assert.Empty(t, strings.Trim(test.ReplaceAllString(held, ""), " ,;"), "row %d: no list of tests and files", row)
		assert.True(t, held != "" || marked, "row %d names no test, and nothing to come", row)
		if marked {
			toCome++
			checkToCome(t, exported, fmt.Sprint("row ", row), mark)
		}
	}
	assert.Equal(t, 102, last)
	t.Logf("%d rows wait for something", toCome)
}

// What the page docs/from/README.md marks as still to come is not there.
func TestPages_FromIsUpToDate(t *testing.T) {
	inRoot(t)
	page, err := os.ReadFile("docs/from/README.md")
	require.NoError(t, err)
	exported := exportedNames(t)
	for line := range strings.Lines(string(page)) {
		if _, mark, marked := strings.Cut(line, "to come: "); marked {
			checkToCome(t, exported, "docs/from/README.md", mark)
		}
	}
}

// comings tell for a mark that names nothing whether what it says has come.
var comings = map[string]func(t *testing.T) bool{
	"counts of the reasoning that is sent": func(*testing.T) bool {
		return reflect.TypeFor[convo.Overheads]().NumField() > 4 // a field says how to weigh it
	},
	"`All` without an allocation for each entry": func(t *testing.T) bool {
		h := historyOf(t, nil, slices.Repeat([]convo.Message{convo.User("u"), convo.Assistant("a")}, 500)...)
		s := h.Snapshot()
		return testing.AllocsPerRun(10, func() {
			for range s.All() {
			}
		}) < 100
	},
}

// checkToCome fails if what a mark says is to come has come: something is exported
// under a name in it, where a "*" stands for anything, or comings finds it.
func checkToCome(t *testing.T, exported []string, where, mark string) {
	t.Helper()
	mark = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(mark), "|"))
	if come, ok := comings[mark]; ok {
		assert.False(t, come(t), "%s marks as to come what is there (%s); in docs/rows.md, name its test instead", where, mark)
		return
	}
	names := regexp.MustCompile("`([\\w.*]+)`").FindAllStringSubmatch(mark, -1)
	assert.NotEmpty(t, names, "%s names nothing that is to come, and comings does not know %q", where, mark)
	for _, name := range names {
		for _, n := range exported {
			found, err := filepath.Match(name[1], n)
			require.NoError(t, err)
			assert.False(t, found, "%s marks as to come what is there, %s (%s); in docs/rows.md, name its test instead", where, n, mark)
		}
	}
}

// exportedNames are the names that the root package and package wire export:
// Name, Type.Method and Type.Field, those of wire with "wire." before them.
func exportedNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for prefix, pattern := range map[string]string{"": "*.go", "wire.": "wire/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range f.Decls {
				for _, n := range namesIn(d) {
					names = append(names, prefix+n)
				}
			}
		}
	}
	return names
}

// namesIn returns the exported names of a declaration.
func namesIn(d ast.Decl) (names []string) {
	if d, ok := d.(*ast.FuncDecl); ok {
		name := d.Name.Name
		if d.Recv != nil {
			of := d.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			name = fmt.Sprint(of) + "." + name
		}
		names = append(names, name)
	}
	if d, ok := d.(*ast.GenDecl); ok {
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					names = append(names, n.Name)
				}
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
				var fields *ast.FieldList
				switch of := spec.Type.(type) {
				case *ast.StructType:
					fields = of.Fields
				case *ast.InterfaceType:
					fields = of.Methods
				default:
					continue
				}
				for _, f := range fields.List {
					for _, n := range f.Names {
						names = append(names, spec.Name.Name+"."+n.Name)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		of, member, ok := strings.Cut(name, ".")
		return !ast.IsExported(of) || ok && !ast.IsExported(member)
	})
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

// The loop around Save in doc.go stands in Example_server, but for what it returns.
func TestDoc_SavingIsAnExample(t *testing.T) {
	inRoot(t)
	_, example, ok := strings.Cut(read(t, "example_test.go"), "func Example_server() {\n")
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

// The entry of a mutant that CONTRIBUTING.md shows is one of the mutants.
func TestPages_MutantStands(t *testing.T) {
	inRoot(t)
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
