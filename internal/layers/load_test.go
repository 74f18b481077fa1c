package layers_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A checkedSource is a file with faults that a checker must find. want has a part of the
// text of each fault, separated by |. If want is empty, the file must pass.
type checkedSource struct{ name, source, want string }

// checkSources runs a checker on each of the sources together with the files of common.
func checkSources(t *testing.T, common map[string]string, file string, cases []checkedSource, faults func(*loaded) []string) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			sources := maps.Clone(common)
			sources[file] = "package convo\n\n" + tt.source
			found := faults(loadSources(t, sources))
			if tt.want == "" {
				assert.Empty(t, found)
				return
			}
			wants := strings.Split(tt.want, "|")
			if assert.Len(t, found, len(wants), "%q", found) {
				for i, want := range wants {
					assert.Contains(t, found[i], want)
				}
			}
		})
	}
}

// A use is a place in a file that names an object of the package declared in another
// file, or in history.go any object of the package.
type use struct {
	from, in string       // the file, and the file that declares obj
	obj      types.Object // what is used
	by       types.Object // the function, variable or constant that uses it; nil: a type
	at       token.Position
}

// A loaded package is a package with its types.
type loaded struct {
	fset *token.FileSet
	ast  []*ast.File
	info *types.Info
	pkg  *types.Package
}

// root is the folder of the root package.
const root = "../.."

// built are the source files of the root package and of wire, and an importer for the
// packages that they use.
type built struct {
	files map[string][]string // by folder, below root
	types.Importer
}

// builtPackages runs go list, once for all tests.
var builtPackages = sync.OnceValues(func() (*built, error) {
	list := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export,GoFiles,Dir", ".", "./wire")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	b := &built{files: map[string][]string{}}
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if path, ok := strings.CutPrefix(p.ImportPath, module); ok {
			b.files[strings.TrimPrefix(path, "/")] = p.GoFiles
		}
	}
	b.Importer = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return b, nil
})

// module is the path of the root package.
const module = "github.com/seed-c1b73e60/convo"

// loadPackage loads the package in a folder below root.
func loadPackage(t *testing.T, folder string) *loaded {
	t.Helper()
	built, err := builtPackages()
	require.NoError(t, err)
	sources := map[string]string{}
	require.NotEmpty(t, built.files[folder])
	for _, name := range built.files[folder] {
		src, err := os.ReadFile(filepath.Join(root, folder, name))
		require.NoError(t, err)
		sources[name] = string(src)
	}
	return loadSources(t, sources)
}

// loadSources loads a package of the given files. It may import the packages that the
// root package and wire use.
func loadSources(t *testing.T, sources map[string]string) *loaded {
	t.Helper()
	built, err := builtPackages()
	require.NoError(t, err)
	l := &loaded{fset: token.NewFileSet(), info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f, err := parser.ParseFile(l.fset, name, sources[name], parser.ParseComments)
		require.NoError(t, err)
		l.ast = append(l.ast, f)
	}
	conf := types.Config{Importer: built}
	l.pkg, err = conf.Check("convo", l.fset, l.ast, l.info)
	require.NoError(t, err)
	return l
}

func (l *loaded) fileOf(pos token.Pos) string { return filepath.Base(l.fset.Position(pos).Filename) }

func (l *loaded) files() []string {
	var names []string
	for _, f := range l.ast {
		names = append(names, l.fileOf(f.Pos()))
	}
	return names
}

// uses returns every use of a function, method, field, type, variable or constant of the
// package in another file than its own, and in history.go. It leaves out places where a
// type may be named freely: fields of Options and History, and signatures of the methods
// of named interfaces.
func (l *loaded) uses() []use {
	free := map[*ast.Ident]bool{}
	var all []use
	for _, f := range l.ast {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						l.allowIn(spec, free)
					}
				}
			}
		}
		for _, d := range f.Decls {
			for _, part := range l.declared(d) {
				ast.Inspect(part.node, func(n ast.Node) bool {
					id, ok := n.(*ast.Ident)
					if !ok || free[id] {
						return true
					}
					obj := origin(l.info.Uses[id])
					if obj == nil || obj.Pkg() != l.pkg || !l.isDeclared(obj) {
						return true
					}
					if from, in := l.fileOf(id.Pos()), l.fileOf(obj.Pos()); from != in || from == "history.go" {
						all = append(all, use{from, in, obj, part.obj, l.fset.Position(id.Pos())})
					}
					return true
				})
			}
		}
	}
	return all
}

// A declaration is a node and the function, variable or constant declared by it.
type declaration struct {
	node ast.Node
	obj  types.Object // nil: something else
}

// declared returns the parts of a declaration at the top of a file.
func (l *loaded) declared(d ast.Decl) (parts []declaration) {
	if d, ok := d.(*ast.FuncDecl); ok {
		return []declaration{{d, l.info.Defs[d.Name]}}
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		part := declaration{node: spec}
		if spec, ok := spec.(*ast.ValueSpec); ok {
			for _, name := range spec.Names {
				parts = append(parts, declaration{spec, l.info.Defs[name]})
			}
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

// origin returns the generic object that obj is an instance of, or obj.
func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Origin()
	case *types.Var:
		return obj.Origin()
	}
	return obj
}

// isDeclared reports whether an object is a field or a method, or declared at the
// top of a file.
func (l *loaded) isDeclared(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Func:
		return true
	case *types.Var:
		if obj.IsField() {
			return true
		}
	}
	return obj.Parent() == l.pkg.Scope()
}

// allowIn marks the names of types in a declaration of a type that may be of any
// layer.
func (l *loaded) allowIn(spec *ast.TypeSpec, free map[*ast.Ident]bool) {
	if name := spec.Name.Name; name == "Options" || name == "History" {
		l.allow(spec.Type, free)
	}
	if in, ok := spec.Type.(*ast.InterfaceType); ok {
		for _, m := range in.Methods.List {
			if _, ok := m.Type.(*ast.FuncType); ok { // not an embedded interface or a union
				l.allow(m.Type, free)
			}
		}
	}
}

// allow marks the names of types below a node.
func (l *loaded) allow(n ast.Node, free map[*ast.Ident]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if _, ok := l.info.Uses[id].(*types.TypeName); ok {
				free[id] = true
			}
		}
		return true
	})
}
