package long_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the lists anew")

// only.txt lists what runs in the long form only, and larger.txt what is larger in it:
// the functions of all modules that call Only, and those that call On or Or.
func TestLists(t *testing.T) {
	const root = "../.."
	var only, larger []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(source), "long") {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || filepath.ToSlash(dir) == "internal/long" {
			return err
		}
		assert.False(t, strings.Contains(string(source), `env("CONVO_LONG")`), "%s reads CONVO_LONG: call package long", path)
		file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			ast.Inspect(d, func(n ast.Node) bool {
				name := calls(n)
				if name == "" {
					return true
				}
				if !isFunc {
					assert.Fail(t, "a package variable reads the form of the tests", path)
					return true
				}
				line := fmt.Sprintf("%s %s", filepath.ToSlash(dir), f.Name.Name)
				if name == "Only" {
					only = append(only, line)
				} else {
					larger = append(larger, line)
				}
				return true
			})
		}
		return nil
	})
	require.NoError(t, err)
	compare(t, "only.txt", only)
	compare(t, "larger.txt", larger)
}

// calls returns the function of package long that n calls, if it is such a call.
func calls(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if p, ok := f.X.(*ast.Ident); !ok || p.Name != "long" {
		return ""
	}
	return f.Sel.Name
}

func compare(t *testing.T, name string, lines []string) {
	t.Helper()
	slices.Sort(lines)
	want := strings.Join(slices.Compact(lines), "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o600))
	}
	list, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, want, string(list), "%s: go test ./internal/long -update writes it anew", name)
}
