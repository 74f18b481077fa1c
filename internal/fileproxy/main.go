// Command fileproxy writes a directory that serves as a module proxy offering
// testify alone. It is for testing that this module can be used and tested where
// nothing else can be downloaded:
//
//	go run ./internal/fileproxy DIR
//	GOPROXY=file://DIR GOSUMDB=off GOMODCACHE=EMPTY go test ./...
//
// The directory holds testify and the modules it needs. For every other module
// of the module graph, such as tiktoken-go, it holds the .info and .mod files
// but not the code. All files are copied from the module cache, after the go
// command has downloaded what is missing there. Run fileproxy inside this
// module.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

// whole lists the modules that the directory holds with their code: testify and
// the modules it needs.
var whole = []string{
	"github.com/stretchr/testify",
	"github.com/davecgh/go-spew",
	"github.com/pmezard/go-difflib",
	"gopkg.in/yaml.v3",
}

func main() {
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: fileproxy DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "fileproxy:", err)
		os.Exit(1)
	}
}

// A moduleError says which module is missing from the module cache, and why.
type moduleError struct {
	module string
	err    error
}

func (e *moduleError) Error() string { return e.module + " cannot be downloaded: " + e.err.Error() }
func (e *moduleError) Unwrap() error { return e.err }

// A module is what go mod download says of a module: its files in the module
// cache, or the error.
type module struct {
	Path, Version, Error string
	GoMod, Zip           string
}

// write writes the proxy to dir.
func write(dir string) error {
	// This reads the go.mod files of the whole graph into the cache.
	graph, err := run("go", "mod", "graph")
	if err != nil {
		return &moduleError{"the module graph", err}
	}
	cache, err := run("go", "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	download := filepath.Join(strings.TrimSpace(cache), "cache", "download")
	done := map[string]bool{}
	for name := range strings.FieldsSeq(graph) {
		path, version, ok := strings.Cut(name, "@")
		if !ok || done[name] || path == "go" || path == "toolchain" {
			continue // the main module has no version; go and toolchain are not modules
		}
		done[name] = true
		file := filepath.Join(download, escaped(path), "@v", escaped(version)+".mod")
		if _, err := os.Stat(file); err != nil {
			continue // graph pruning makes this go.mod unnecessary
		}
		if err := add(dir, module{Path: path, Version: version, GoMod: file}); err != nil {
			return err
		}
	}
	out, err := run("go", append([]string{"mod", "download", "-json"}, whole...)...)
	for list := json.NewDecoder(strings.NewReader(out)); list.More(); {
		var m module
		if err := list.Decode(&m); err != nil {
			return err
		}
		if m.Error != "" {
			return &moduleError{m.Path, errors.New(m.Error)}
		}
		if err := add(dir, m); err != nil {
			return err
		}
	}
	return err // the error of go mod download, if it named no module
}

// run runs a command and returns its standard output.
func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), err
}

// add adds a module to the proxy in dir. It adds the code if m.Zip is set.
func add(dir string, m module) error {
	at := filepath.Join(dir, escaped(m.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	base := filepath.Join(at, escaped(m.Version))
	info, err := json.Marshal(struct{ Version string }{m.Version})
	if err != nil {
		return err
	}
	if err := os.WriteFile(base+".info", info, 0o644); err != nil {
		return err
	}
	if err := copyFile(base+".mod", m.GoMod); err != nil || m.Zip == "" {
		return err
	}
	return copyFile(base+".zip", m.Zip)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// escaped returns a module path or version as it is spelled in the module cache
// and by proxies: an exclamation mark and the lower-case letter replace each
// upper-case letter.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return filepath.FromSlash(b.String())
}
