package repotest_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/internal/long"
)

// What every program that imports convo pays before main: no package that starts a
// server's worth of tables, and nothing that is computed in a package variable.
func TestImports_StartLittle(t *testing.T) {
	r := readRepo(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "./wire").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "encoding/json")
	for _, heavy := range []string{"net/http", "net", "crypto/tls", "crypto/x509", "html/template", "text/template", "database/sql", "go/ast", "regexp"} {
		assert.NotContains(t, deps, heavy)
	}
	for _, dep := range deps {
		if first, _, _ := strings.Cut(dep, "/"); strings.Contains(first, ".") && !strings.HasPrefix(dep, "github.com/seed-c1b73e60/convo") {
			assert.Fail(t, "convo and wire import only the standard library, and no SDK", dep)
		}
		dir, ours := strings.CutPrefix(dep, "github.com/seed-c1b73e60/convo")
		for name, file := range r.code {
			if ours && path.Dir(name) == path.Join(".", dir) && !strings.HasSuffix(name, "_test.go") && compilesAtStart(file) {
				assert.Fail(t, "a package variable compiles a regular expression: let sync.OnceValue do it, or match by hand", name)
			}
		}
	}
}

// The vocabularies are in programs that call package tiktoken, and not in others that save.
func TestImports_LinkNoVocabulary(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../examples/resume").CombinedOutput()
	require.NoError(t, err, "%s", out)
	linked, err := os.ReadFile(program)
	require.NoError(t, err)
	for _, name := range []string{"cl100k", "o200k"} {
		table, err := os.ReadFile("../bpe/" + name + ".bin")
		require.NoError(t, err)
		assert.False(t, bytes.Contains(linked, table[:1000]), name)
	}
	require.True(t, bytes.Contains(linked, []byte("Salvage copies what can be read")), "it opens a History")
}

// compilesAtStart reports whether a package variable of a file compiles a regular expression.
func compilesAtStart(file *ast.File) (found bool) {
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false // runs when it is called
				case *ast.SelectorExpr:
					x, ok := n.X.(*ast.Ident)
					found = found || ok && x.Name == "regexp" && strings.HasPrefix(n.Sel.Name, "MustCompile")
				}
				return true
			})
		}
	}
	return found
}

func TestImports_CompileAtStart(t *testing.T) {
	for source, want := range map[string]bool{
		"var a = regexp.MustCompile(`a`)":                       true,
		"var b = func() any { return regexp.MustCompile(`b`) }": false,
		"func f() { var c = regexp.MustCompile(`c`); _ = c }":   false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\n"+source, 0)
		require.NoError(t, err)
		assert.Equal(t, want, compilesAtStart(file), source)
	}
}

// What docs/costs.md says that operations allocate.
func TestPages_Costs(t *testing.T) {
	h := historyOf(t, &convo.Options{Roles: convo.Relaxed()})
	msg := convo.User("a question of some words")
	const n = 10_000
	assert.InDelta(t, 1, testing.AllocsPerRun(1, func() {
		for range n {
			_, _ = h.Append(msg)
		}
	})/n, 0.05, "Append")
	s := h.Snapshot()
	assert.InDelta(t, n*2/256, testing.AllocsPerRun(5, func() {
		for range s.All() {
		}
	}), 8, "All")
	assert.InDelta(t, 2, testing.AllocsPerRun(1000, func() {
		_, _ = h.Append(msg)
		h.Snapshot()
	}), 0.2, "Append and Snapshot")
	assert.Zero(t, testing.AllocsPerRun(100, func() { h.Snapshot(); h.Len(); h.Status(); h.Tokens() }))
}

// buildProgram builds a program in a folder of the repository, as for a release.
func buildProgram(t testing.TB, dir, name, source string) (program string) {
	t.Helper()
	folder := filepath.Join(dir, name)
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(source), fs.FileMode(0o600)))
	program, err := filepath.Abs(filepath.Join(folder, "program"))
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "./"+folder)
	build.Env = append(build.Environ(), "GOEXPERIMENT=") // another encoding/json has another size
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// How much larger than a program with encoding/json, log/slog and os is a program that also
// holds a conversation, and a program that runs and compacts it: 0.6 and 1.5 MiB on
// linux/amd64. Of these, 0.17 are crypto/rand and crypto/sha256, for keys that no text can
// guess. Every program that uses HTTPS contains them, and other packages that convo uses: if
// it also runs a conversation, it becomes 1.3 MiB larger.
func TestImports_Size(t *testing.T) {
	long.Only(t, "builds five programs")
	inRoot(t)
	dir, err := os.MkdirTemp(".", "size")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	build := func(name, imports, source string) []byte {
		source = fmt.Sprintf("package main\n\nimport (%s)\n\nfunc main() {\n%s}\n", imports, source)
		program, err := os.ReadFile(buildProgram(t, dir, name, source))
		require.NoError(t, err)
		return program
	}
	const (
		server = `var v any; json.Unmarshal([]byte("{}"), &v); slog.Info("x"); fmt.Println(v, os.Args)
`
		client = server + `fmt.Println(http.Get(os.Args[1]))
`
		holding = `h, _ := convo.New(&convo.Options{Limits: convo.Limits{Window: 1000}})
h.Append(convo.User("Flights to Rome?"))
`
		running = holding + `fmt.Println(h.Run(context.Background(), func(context.Context, *convo.Snapshot) (convo.Reply, error) {
	return convo.Reply{Messages: []convo.Message{convo.Assistant("09:10")}}, nil
}, convo.RunOptions{}))
`
		root          = `"github.com/seed-c1b73e60/convo"`
		serverImports = `"encoding/json"; "fmt"; "log/slog"; "os"`
		clientImports = serverImports + `; "net/http"`
	)
	plain := len(build("plain", serverImports, server))
	holds := len(build("holds", `"fmt"; `+root, holding+"fmt.Println(h.Snapshot().Messages(), h.Status())\n")) - plain
	program := build("runs", `"context"; "fmt"; `+root, running)
	runs := len(program) - plain
	talks := len(build("talks", clientImports+`; "context"; `+root, client+running)) - len(build("client", clientImports, client))
	require.True(t, bytes.Contains(program, []byte("extract.(*Notes).keep")), "the names of functions")
	for name, of := range map[string]string{"newPrompter": "the prompts for a model", "(*archive).add": "what reads the log", "ReadDecisions": "Decisions"} {
		assert.False(t, bytes.Contains(program, []byte("convo."+name)), "a program that does not use it contains %s", of)
	}
	const mib = 1 << 20
	t.Logf("a program that holds a conversation is %.2f MiB larger, one that runs and compacts it %.2f MiB, or %.2f MiB if it uses HTTPS anyway",
		float64(holds)/mib, float64(runs)/mib, float64(talks)/mib)
	assert.Less(t, holds, mib*63/100)
	assert.LessOrEqual(t, runs, mib*150/100)
	assert.Less(t, talks, mib*129/100)
}
