package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A pkg is the package under mutation.
type pkg struct {
	dir   string // absolute
	name  string
	files []*file
	info  *types.Info

	fset    *token.FileSet
	imports types.Importer
}

// A file is a Go file of the package that is not a test.
type file struct {
	name   string
	text   string
	syntax *ast.File
}

// load parses and type-checks the package in a directory.
func load(dir string) (*pkg, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,GoFiles,Export", ".", "os", "strconv")
	cmd.Dir, cmd.Stderr = abs, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	p := &pkg{dir: abs, fset: token.NewFileSet()}
	exports := map[string]string{}
	var names []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l struct {
			ImportPath, Name, Dir, Export string
			GoFiles                       []string
		}
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[l.ImportPath] = l.Export
		if l.Dir == abs {
			p.name, names = l.Name, l.GoFiles
		}
	}
	p.imports = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(p.absolute(name))
		if err != nil {
			return nil, err
		}
		f := &file{name: name, text: string(text)}
		if f.syntax, err = parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	return p, p.check(nil, "", p.info)
}

// check type-checks the package, with text in place of the file other.
func (p *pkg) check(other *file, text string, info *types.Info) error {
	files := []*ast.File{p.switches()}
	for _, f := range p.files {
		syntax := f.syntax
		if f == other {
			var err error
			if syntax, err = parser.ParseFile(p.fset, f.name, text, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		files = append(files, syntax)
	}
	c := types.Config{Importer: p.imports}
	_, err := c.Check(p.name, p.fset, files, info)
	return err
}

// builds reports whether the package builds with the mutant.
func (p *pkg) builds(m *mutant) bool {
	return p.check(m.file, m.file.weave([]*mutant{m}), nil) == nil
}

// switchText is a file that is added to the package. It reads from the
// environment which mutant is switched on.
const switchText = `package %s

import (
	"os"
	"strconv"
)

var mutantNow, _ = strconv.Atoi(os.Getenv("MUTANT"))

func mutantIs(n int) bool { return mutantNow == n }

func mutantOne(n int) int {
	if mutantNow == n {
		return 1
	}
	return 0
}
`

const switchFile = "zz_mutant_switch.go"

func (p *pkg) switches() *ast.File {
	syntax, err := parser.ParseFile(p.fset, switchFile, fmt.Sprintf(switchText, p.name), parser.SkipObjectResolution)
	if err != nil {
		panic(err)
	}
	return syntax
}

// build builds one test binary of the package that contains all the mutants.
func (p *pkg) build(work string, ms []*mutant) (binary string, err error) {
	replace := map[string]string{}
	write := func(name, text string) error {
		to := filepath.Join(work, name)
		replace[p.absolute(name)] = to
		return os.WriteFile(to, []byte(text), 0o600)
	}
	if err := write(switchFile, fmt.Sprintf(switchText, p.name)); err != nil {
		return "", err
	}
	for _, f := range p.files {
		var own []*mutant
		for _, m := range ms {
			if m.file == f {
				own = append(own, m)
			}
		}
		if len(own) == 0 {
			continue
		}
		if err := write(f.name, f.weave(own)); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(work, "mutants.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	return binary, nil
}
