package long_test

import (
	"bytes"
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
// the functions of all modules that use Only, and those that use On or Or.
func TestLists(t *testing.T) {
	const root = "../.."
	var only, larger []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(source, []byte(`/internal/long"`)) && !bytes.Contains(source, []byte("CONVO_LONG")) {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || filepath.ToSlash(dir) == "internal/long" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
		if err != nil {
			return err
		}
		pkg := nameOfLong(file)
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.BasicLit); ok && s.Value == `"CONVO_LONG"` {
					assert.Fail(t, "only package long names the variable", path)
				}
				name := used(n, pkg)
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

// nameOfLong returns the name that a file gives to package long.
func nameOfLong(file *ast.File) string {
	for _, i := range file.Imports {
		if strings.HasSuffix(i.Path.Value, `/internal/long"`) {
			if i.Name != nil {
				return i.Name.Name
			}
			return "long"
		}
	}
	return ""
}

// used returns the function of package long that n names, if it names one.
func used(n ast.Node, pkg string) string {
	f, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if p, ok := f.X.(*ast.Ident); !ok || p.Name != pkg {
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
