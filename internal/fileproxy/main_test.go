package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// A machine runs the go command with a module proxy that offers testify alone,
// and with an empty module cache.
type machine struct {
	proxy string // the directory of the proxy
	env   []string
}

// newMachine skips the test if the proxy cannot be made, because the module
// cache lacks testify. That may happen where testify is vendored.
func newMachine(t *testing.T) machine {
	t.Helper()
	long.Only(t, "runs the go command with an empty module cache")
	proxy := t.TempDir()
	err := write(proxy)
	if missing := new(moduleError); errors.As(err, &missing) && !strings.Contains(err.Error(), "verifying") {
		t.Skipf("the module cache lacks what the proxy is made of: %v", err)
	}
	require.NoError(t, err)
	url := filepath.ToSlash(proxy)
	if !strings.HasPrefix(url, "/") {
		url = "/" + url // Windows: the path begins with a volume name
	}
	return machine{proxy, append(os.Environ(),
		"GOPROXY=file://"+url,
		"GOMODCACHE="+t.TempDir(),
		"GOSUMDB=off", "GONOPROXY=none", "GOVCS=*:off", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOFLAGS=-modcacherw -buildvcs=false",
	)}
}

// run runs the go command and returns all its output.
func (m machine) run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, m.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return root
}

// A program that imports this module can be tidied and run without tiktoken-go.
// Tidying is the harder part: go mod tidy ignores build tags, and loads the tests
// of all imported packages.
func TestProgram_NeedsTestifyOnly(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module program\n\ngo 1.26\n\nrequire github.com/seed-c1b73e60/convo v0.0.0\n\n" +
			"replace github.com/seed-c1b73e60/convo => " + filepath.ToSlash(moduleRoot(t)) + "\n",
		"main.go": `package main

import (
	"fmt"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/convotest"
	"github.com/seed-c1b73e60/convo/tiktoken"
	"github.com/seed-c1b73e60/convo/wire"
)

func main() {
	tok, err := tiktoken.New("gpt-4o")
	if err != nil {
		panic(err)
	}
	h, err := convo.New(&convo.Options{Tokenizer: tok})
	if err != nil {
		panic(err)
	}
	h.Append(convo.User("Hello, world"))
	req, err := wire.OpenAIChat{}.Encode(h.Snapshot())
	fmt.Println(tok.CountTokens("Hello, world"), len(req.Messages) > 0, err)
	_ = convotest.TestStrategy
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	out, err := m.run(t, dir, "mod", "tidy")
	require.NoError(t, err, "%s", out)
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	assert.NotContains(t, string(sums), "tiktoken-go", "the program's go.sum")
	out, err = m.run(t, dir, "run", ".")
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "3 true <nil>\n", out)
}

// This module builds, and its tests compile, without tiktoken-go.
func TestModule_NeedsTestifyOnly(t *testing.T) {
	m := newMachine(t)
	out, err := m.run(t, moduleRoot(t), "vet", "./...")
	require.NoError(t, err, "%s", out)
	// The proxy does not offer tiktoken-go. Otherwise this test would prove nothing.
	out, err = m.run(t, moduleRoot(t), "vet", "-tags", "tiktoken", "./internal/tiktokengo")
	require.Error(t, err)
	assert.Contains(t, out, "github.com/pkoukk/tiktoken-go")
}

// The proxy holds the code of testify and of the modules it needs, and only the
// .info and .mod files of all others.
func TestWrite_Holds(t *testing.T) {
	m := newMachine(t)
	files := map[string][]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(m.proxy), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			module, _, _ := strings.Cut(name, "/@v/")
			files[module] = append(files[module], filepath.Ext(name))
		}
		return err
	}))
	zips := map[string]int{}
	for module, exts := range files {
		for _, ext := range exts {
			if ext == ".zip" {
				zips[module]++
			}
		}
		// The module cache may have .mod files of other versions that the graph names.
		assert.Subset(t, []string{".info", ".mod", ".zip"}, exts, module)
	}
	want := map[string]int{}
	for _, module := range whole {
		want[module] = 1
	}
	assert.Equal(t, want, zips, "the code")
	for _, module := range []string{"github.com/pkoukk/tiktoken-go", "github.com/dlclark/regexp2", "github.com/google/uuid"} {
		assert.Contains(t, files, module)
	}
}

func Test_escaped(t *testing.T) {
	assert.Equal(t, filepath.FromSlash("github.com/!burnt!sushi/toml"), escaped("github.com/BurntSushi/toml"))
}
