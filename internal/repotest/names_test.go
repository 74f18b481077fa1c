package repotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each exported name in code within the text of the README and of docs is declared.
func TestPages_ExportedNamesExist(t *testing.T) {
	inRoot(t)
	declared := exported(t)
	for _, name := range []string{"NO_COLOR", "PROJECT", "LockFileEx", "Retry", "NewTextHandler", "SUBCOMMAND", "FILE", "DIR", "KEY"} { // names of others, and arguments
		declared[name] = true
	}
	code, name := regexp.MustCompile("`([^`\n]+)`"), regexp.MustCompile(`(^|[^\w"{$-])([A-Z]\w+)`)
	there := regexp.MustCompile(`(?m)^\|[^|]*\|`) // the names of other systems
	test := regexp.MustCompile(`^(Test|Example|Fuzz|Benchmark)`)
	fences := regexp.MustCompile("(?ms)^```.*?^```$")
	found := 0
	for _, page := range append(globs(t, "docs/*.md"), "README.md") {
		text := fences.ReplaceAllString(read(t, page), "")
		if page == "docs/hosts.md" {
			text = there.ReplaceAllString(text, "|")
		}
		for _, c := range code.FindAllStringSubmatch(text, -1) {
			for _, m := range name.FindAllStringSubmatch(c[1], -1) {
				if test.MatchString(m[2]) {
					continue // TestPages_NamesExist looks for these
				}
				found++
				assert.True(t, declared[m[2]], "%s has `%s`, and nothing declares %s", page, c[1], m[2])
			}
		}
	}
	assert.Greater(t, found, 400)
}

// exported returns the exported names that the packages for users declare, also fields and
// methods.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names[id.Name] = true
			}
		}
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if path == "bench" || path == "cmd" || path == "examples" || path == "internal" || d != nil && d.Name() == "testdata" {
				return fs.SkipDir // a program cannot import what they declare
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(n.Name)
				return false // not what its body declares
			case *ast.TypeSpec:
				add(n.Name)
			case *ast.ValueSpec:
				add(n.Names...)
			case *ast.Field:
				add(n.Names...)
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	return names
}

// What the commands on the pages name exists: packages of this repository, modules that go get
// and go install fetch, and subcommands of convo.
func TestPages_CommandsExist(t *testing.T) {
	inRoot(t)
	const module = "github.com/seed-c1b73e60/convo"
	subcommands := map[string]bool{"version": true, "SUBCOMMAND": true}
	for _, m := range regexp.MustCompile(`\{Name: "(\w+)", Help: `).FindAllStringSubmatch(read(t, "cmd/convo/main.go"), -1) {
		subcommands[m[1]] = true
	}
	require.Greater(t, len(subcommands), 5)
	shell := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	inline := regexp.MustCompile("(?m)`((?:go|convo) [^`\n]+)`|^    (go .*)$") // also an indented line
	folder := regexp.MustCompile(`^\./([\w/-]+?)(/\.\.\.)?$`)
	found := 0
	for _, page := range append(globs(t, "docs/*.md", "*/README.md"), "README.md", "CONTRIBUTING.md") {
		text := read(t, page)
		var commands []string
		for _, m := range shell.FindAllStringSubmatch(text, -1) {
			commands = append(commands, strings.Split(strings.TrimSpace(m[1]), "\n")...)
		}
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			commands = append(commands, m[1]+m[2])
		}
		for _, command := range commands {
			found++
			words := strings.Fields(command)
			require.GreaterOrEqual(t, len(words), 2, "%s: %s", page, command)
			switch words[0] {
			case "convo":
				assert.True(t, subcommands[words[1]], "%s: there is no subcommand: %s", page, command)
			case "go":
				assert.Contains(t, []string{"build", "fix", "get", "install", "mod", "run", "test", "tool", "vet"}, words[1], "%s: %s", page, command)
			default:
				t.Errorf("%s has a command that no test knows: %s", page, command)
			}
			for _, word := range words[2:] {
				dir := ""
				if m := folder.FindStringSubmatch(word); m != nil {
					dir = m[1]
				} else if rest, ok := strings.CutPrefix(strings.TrimSuffix(word, "@latest"), module); ok && !strings.Contains(rest, "=") {
					dir = "." + rest
					if words[1] == "get" {
						dir += "/go.mod"
					}
				} else if (words[1] == "get" || words[1] == "install") && strings.Contains(word, "seed-") {
					t.Errorf("%s: this is no module of ours: %s", page, command)
				}
				if dir != "" {
					_, err := os.Stat(dir)
					_, here := os.Stat(filepath.Join(filepath.Dir(page), dir)) // a nested module runs it in its own folder
					assert.True(t, err == nil || here == nil, "%s names what does not exist: %s", page, command)
				}
			}
		}
	}
	assert.Greater(t, found, 30)
}
