package main

import (
	"archive/zip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

// The line of the documentation installs the command, on a machine that has nothing but Go and
// a module proxy. The go.mod of the module has no replace, with which that would not work.
func TestInstall(t *testing.T) {
	long.Only(t, "builds and installs the command")
	if runtime.GOOS == "windows" {
		t.Skip("the file URL of the proxy is written for Unix")
	}
	const module = "github.com/seed-c1b73e60/convo"
	dir := t.TempDir()
	proxy := filepath.Join(dir, "proxy")
	run := exec.CommandContext(t.Context(), "go", "run", "./internal/fileproxy", proxy)
	run.Dir = "../.."
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)

	at := filepath.Join(proxy, module, "@v")
	require.NoError(t, os.MkdirAll(at, 0o755))
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	assert.NotContains(t, string(mod), "replace")
	for name, text := range map[string]string{"list": "v0.1.0\n", "v0.1.0.info": `{"Version":"v0.1.0"}`, "v0.1.0.mod": string(mod)} {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	zipModule(t, filepath.Join(at, "v0.1.0.zip"), "../..", module+"@v0.1.0/")

	page, err := os.ReadFile("../../docs/command.md")
	require.NoError(t, err)
	_, line, ok := strings.Cut(string(page), "\n    go install ")
	require.True(t, ok)
	line, _, _ = strings.Cut(line, "\n")
	install := exec.CommandContext(t.Context(), "go", "install", line)
	install.Dir = dir
	install.Env = append(os.Environ(),
		"GOPROXY=file://"+proxy, "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOMODCACHE="+filepath.Join(dir, "modules"), "GOBIN="+filepath.Join(dir, "bin"), "GOWORK=off")
	out, err = install.CombinedOutput()
	require.NoError(t, err, "%s", out)

	convo := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "convo"), "version")
	out, err = convo.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.True(t, strings.HasPrefix(string(out), "convo v0.1.0, go"), "%s", out)
	convo = exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "convo"), "count", "-model", "gpt-5")
	convo.Stdin = strings.NewReader(trip)
	out, err = convo.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "exact")
}

// zipModule writes the files of the module in root, without those of nested modules.
func zipModule(t *testing.T, to, root, prefix string) {
	t.Helper()
	f, err := os.Create(to)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == ".git" {
				return filepath.SkipDir
			}
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") || d.Name() == ".git" {
			return nil // not needed to install the command
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to, err := w.Create(prefix + filepath.ToSlash(name))
		if err == nil {
			_, err = to.Write(data)
		}
		return err
	}))
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}
