// Package harness finds, builds and runs the programs in bench/peers. A program
// whose modules cannot be downloaded is left out, and the reason is reported. Any
// other problem of a program is an error.
package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A Fleet is the set of peers in a directory.
type Fleet struct {
	Peers   []*Peer   // those that run, in the order of their names
	Missing []Missing // those whose modules cannot be downloaded
	Broken  error     // what is wrong with the others, or nil
	dir     string    // holds the binaries
}

// A Missing is a peer whose modules cannot be downloaded.
type Missing struct {
	Name   string
	Reason string // the module, and the answer of the module proxy
}

func (m Missing) String() string { return m.Name + ": not available here: " + m.Reason }

// Open builds and starts every peer in a directory. Each peer is a subdirectory
// with a go.mod. If folder is empty there are no peers. Open reports its progress
// on messages.
func Open(folder string, messages io.Writer) (*Fleet, error) {
	f := new(Fleet)
	if folder == "" {
		return f, nil
	}
	mods, err := filepath.Glob(filepath.Join(folder, "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	if len(mods) == 0 {
		return nil, fmt.Errorf("no peers in %s: want subdirectories with a go.mod", folder)
	}
	if f.dir, err = os.MkdirTemp("", "convo-bench"); err != nil {
		return nil, err
	}
	for _, mod := range mods {
		dir := filepath.Dir(mod)
		name := filepath.Base(dir)
		fmt.Fprintf(messages, "peer %s ...\n", name)
		p, err := f.open(name, dir)
		var gone *goneError
		switch {
		case errors.As(err, &gone):
			m := Missing{name, gone.reason}
			fmt.Fprintln(messages, m)
			f.Missing = append(f.Missing, m)
		case err != nil:
			err = fmt.Errorf("peer %s is broken: %w", name, err)
			fmt.Fprintln(messages, err)
			f.Broken = errors.Join(f.Broken, err)
		default:
			f.Peers = append(f.Peers, p)
		}
	}
	return f, nil
}

// Close ends the programs and deletes their binaries.
func (f *Fleet) Close() error {
	var err error
	for _, p := range f.Peers {
		err = errors.Join(err, p.end())
	}
	if f.dir != "" {
		err = errors.Join(err, os.RemoveAll(f.dir))
	}
	return err
}

// open downloads, builds and starts one peer.
func (f *Fleet) open(name, dir string) (*Peer, error) {
	if err := download(dir); err != nil {
		return nil, err
	}
	binary, err := filepath.Abs(filepath.Join(f.dir, name))
	if err != nil {
		return nil, err
	}
	if binary, err = Build(dir, binary, "."); err != nil {
		return nil, err
	}
	return start(name, dir, binary)
}

// Build builds the packages or files in args inside the module in dir. It returns
// the name of the binary, to which it adds .exe on Windows.
func Build(dir, binary string, args ...string) (string, error) {
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	out, err := goCommand(dir, append([]string{"build", "-o", binary}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	return binary, nil
}

// goCommand returns a go command that runs in the module in dir.
func goCommand(dir string, args ...string) *exec.Cmd {
	c := exec.Command("go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	return c
}

// A goneError says that the module proxy does not offer some modules.
type goneError struct{ reason string }

func (e *goneError) Error() string { return "not available here: " + e.reason }

// gone matches the error of the go command when a module proxy does not offer a
// file of a module: status 403, 404 or 410, or a missing file.
var gone = regexp.MustCompile(`(?m)reading \S+/@v/\S+\.(?:zip|mod|info): (?:403 |404 |410 |.*no such file or directory|.*cannot find the (?:file|path))`)

// download downloads the modules of a go.mod. It returns a *goneError if the only
// problem is that the proxy does not offer some of them.
func download(dir string) error {
	c := goCommand(dir, "mod", "download", "-json")
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	err := c.Run()
	var missing []string
	for list := json.NewDecoder(&out); ; {
		var m struct{ Error string } // begins with the name of the module
		if e := list.Decode(&m); errors.Is(e, io.EOF) {
			break
		} else if e != nil {
			return fmt.Errorf("go mod download: %w", e)
		}
		if m.Error == "" {
			continue
		}
		if !gone.MatchString(m.Error) {
			return fmt.Errorf("go mod download: %s", m.Error)
		}
		missing = append(missing, firstLine(m.Error))
	}
	switch {
	case len(missing) > 0:
		return &goneError{strings.Join(missing, "; ")}
	case err == nil:
		return nil
	case gone.Match(stderr.Bytes()): // not even the list of modules can be made
		return &goneError{firstLine(stderr.String())}
	}
	return fmt.Errorf("go mod download: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
}

// Download downloads the modules that the module in dir needs. If the module proxy does
// not offer some of them, it returns which, and the proxy's answer.
func Download(dir string) (missing string, err error) {
	err = download(dir)
	if gone, ok := errors.AsType[*goneError](err); ok {
		return gone.reason, nil
	}
	return "", err
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// Notes returns the notes of all peers for a table.
func (f *Fleet) Notes(t peer.Table) []string {
	var list []string
	for _, p := range f.Peers {
		for _, n := range p.Notes {
			if n.Table == t {
				list = append(list, n.Text)
			}
		}
	}
	return list
}
