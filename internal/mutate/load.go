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
	"io/fs"
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

	fset     *token.FileSet
	imports  types.Importer
	switches *ast.File
}

// A file is a Go file of the package that is not a test.
type file struct {
	name   string
	text   string
	syntax *ast.File
	bare   *ast.File // without the bodies of functions
}

// offset returns where in the text a position is.
func (f *file) offset(at token.Pos) int { return int(at - f.syntax.FileStart) }

// load parses and type-checks the package in a directory.
func load(dir string) (*pkg, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	out, err := command(abs, "go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,GoFiles,Export", ".", "os", "strconv")
	if err != nil {
		return nil, err
	}
	p := &pkg{dir: abs, fset: token.NewFileSet()}
	exports := map[string]string{}
	var names []string
	for d := json.NewDecoder(strings.NewReader(out)); ; {
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
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no Go files other than tests", dir)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(p.absolute(name))
		if err != nil {
			return nil, err
		}
		f := &file{name: name, text: string(text)}
		if f.syntax, err = p.parse(name, f.text); err != nil {
			return nil, err
		}
		if f.bare, err = p.parse(name, f.text); err != nil {
			return nil, err
		}
		for _, d := range f.bare.Decls {
			if fd, ok := d.(*ast.FuncDecl); ok {
				fd.Body = nil
			}
		}
		p.files = append(p.files, f)
	}
	if p.switches, err = p.parse(switchFile, fmt.Sprintf(switchText, p.name)); err != nil {
		return nil, err
	}
	all := []*ast.File{p.switches}
	for _, f := range p.files {
		all = append(all, f.syntax)
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	_, err = (&types.Config{Importer: p.imports}).Check(p.name, p.fset, all, p.info)
	return p, err
}

func (p *pkg) parse(name, text string) (*ast.File, error) {
	return parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution)
}

// builds reports whether the package builds with mutants of one file. It does not check
// the bodies in other files.
func (p *pkg) builds(ms ...*mutant) bool {
	file := ms[0].file
	mutated, err := p.parse(file.name, file.weave(ms))
	if err != nil {
		return false
	}
	files := []*ast.File{p.switches, mutated}
	for _, f := range p.files {
		if f != file {
			files = append(files, f.bare)
		}
	}
	ok := true
	c := types.Config{Importer: p.imports, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) && mutated.FileStart <= e.Pos && e.Pos <= mutated.FileEnd {
			ok = false // other files lack bodies that use their imports
		}
	}}
	_, _ = c.Check(p.name, p.fset, files, nil)
	return ok
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
`

const switchFile = "zz_mutant_switch.go"

var errNoTests = errors.New("the package has no tests")

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
	if _, err = command(p.dir, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "."); err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); errors.Is(err, fs.ErrNotExist) {
		return "", errNoTests
	}
	return binary, nil
}

// command runs a command in a directory, and returns its output. The error includes what
// the command prints to its standard error.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %s%w", name, args[0], &stderr, err)
	}
	return string(out), err
}
