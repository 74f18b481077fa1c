package repotest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What every program that imports convo pays before main: no package that starts a
// server's worth of tables, and nothing that is computed in a package variable.
func TestImports_StartLittle(t *testing.T) {
	inRoot(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "./wire").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "encoding/json")
	for _, heavy := range []string{"net/http", "net", "crypto/tls", "crypto/x509", "html/template", "text/template", "database/sql", "go/ast"} {
		assert.NotContains(t, deps, heavy)
	}
	for _, path := range deps {
		if dir, ok := strings.CutPrefix(path, "github.com/seed-c1b73e60/convo"); ok {
			for _, at := range compiledAtStart(t, "."+dir) {
				assert.Fail(t, "a package variable compiles a regular expression: let sync.OnceValue do it, or match by hand", at)
			}
		}
	}
}

// compiledAtStart returns where package variables in a folder compile regular
// expressions.
func compiledAtStart(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
				ast.Inspect(d, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.FuncLit:
						return false // runs when it is called
					case *ast.SelectorExpr:
						if x, ok := n.X.(*ast.Ident); ok && x.Name == "regexp" && strings.HasPrefix(n.Sel.Name, "MustCompile") {
							found = append(found, set.Position(n.Pos()).String())
						}
					}
					return true
				})
			}
		}
	}
	return found
}

func TestImports_CompiledAtStart(t *testing.T) {
	dir := t.TempDir()
	source := "package p\n\nvar a = regexp.MustCompile(`a`)\n\nvar b = func() any { return regexp.MustCompile(`b`) }\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600))
	assert.Len(t, compiledAtStart(t, dir), 1)
}

// BenchmarkStart compares the start of a program that imports convo and wire with that
// of one which imports encoding/json and log/slog, as nearly every server does.
func BenchmarkStart(b *testing.B) {
	inRoot(b)
	dir, err := os.MkdirTemp(".", "start")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, os.RemoveAll(dir)) })
	build := func(name string, imports ...string) string {
		folder, source := filepath.Join(dir, name), "package main\n\n"
		for _, path := range imports {
			source += fmt.Sprintf("import _ %q\n", path)
		}
		require.NoError(b, os.Mkdir(folder, 0o700))
		require.NoError(b, os.WriteFile(filepath.Join(folder, "main.go"), []byte(source+"\nfunc main() {}\n"), fs.FileMode(0o600)))
		program, err := filepath.Abs(filepath.Join(folder, "program"))
		require.NoError(b, err)
		out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "./"+folder).CombinedOutput()
		require.NoError(b, err, "%s", out)
		return program
	}
	plain := build("plain", "encoding/json", "log/slog")
	convo := build("convo", "encoding/json", "log/slog", "github.com/seed-c1b73e60/convo", "github.com/seed-c1b73e60/convo/wire")
	run := func(program string) time.Duration {
		start := time.Now()
		require.NoError(b, exec.CommandContext(b.Context(), program).Run())
		return time.Since(start)
	}
	best := map[string]time.Duration{plain: time.Hour, convo: time.Hour}
	for b.Loop() {
		for range 20 {
			for program := range best {
				best[program] = min(best[program], run(program))
			}
		}
	}
	b.ReportMetric(float64(best[convo])/float64(best[plain]), "x-plain")
	b.ReportMetric(float64(best[convo].Microseconds()), "µs-start")
}
