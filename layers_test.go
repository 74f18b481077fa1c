package convo_test

import (
	"bytes"
	"cmp"
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
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layerExceptions are the uses of a higher layer that remain, each with its
// reason: "file.go name" of what is used.
var layerExceptions = map[string]string{}

// A file uses functions, variables and constants of its own layer and of lower
// ones only. ARCHITECTURE.md lists the layers, lowest first.
func TestLayers(t *testing.T) {
	layers := readLayers(t)
	pkg := loadPackage(t)
	for _, file := range pkg.files() {
		if _, ok := layers[file]; !ok {
			assert.Equal(t, "history.go", file, "%s is in no layer; add it to the list between the <!-- layers --> marks in ARCHITECTURE.md", file)
		}
	}
	unused := maps.Clone(layerExceptions)
	for _, u := range pkg.uses() {
		from, to := layers[u.from], layers[u.in]
		if from == 0 || to <= from {
			continue
		}
		if _, ok := layerExceptions[u.from+" "+u.name]; ok {
			delete(unused, u.from+" "+u.name)
			continue
		}
		t.Errorf("%s: %s (layer %d) uses %s of %s (layer %d)", u.at, u.from, from, u.name, u.in, to)
	}
	assert.Empty(t, unused, "exceptions that nothing needs")
}

// readLayers returns the number of each file's layer, from 1 on, as
// ARCHITECTURE.md has it: a numbered list. Each name of a file in backquotes, up
// to the next number, is in the layer.
func readLayers(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	_, list, ok := bytes.Cut(page, []byte("<!-- layers -->\n"))
	require.True(t, ok)
	list, _, ok = bytes.Cut(list, []byte("<!-- end of layers -->\n"))
	require.True(t, ok)
	layers := map[string]int{}
	n := 0
	for line := range strings.Lines(string(list)) {
		if regexp.MustCompile(`^\d+\. `).MatchString(line) {
			n++
		}
		for _, m := range regexp.MustCompile("`([a-z_]+\\.go)`").FindAllStringSubmatch(line, -1) {
			require.NotContains(t, layers, m[1])
			layers[m[1]] = n
		}
	}
	for file := range layers {
		assert.FileExists(t, file)
	}
	return layers
}

// A use is one place in a file where a name of the package stands that another
// file declares.
type use struct {
	from, in, name string // the file, the file that declares name, and name
	at             token.Position
}

// A loaded package is the root package with its types.
type loaded struct {
	fset *token.FileSet
	ast  []*ast.File
	info *types.Info
	pkg  *types.Package
}

func loadPackage(t *testing.T) *loaded {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles", ".").Output()
	require.NoError(t, err)
	exports := map[string]string{}
	var files []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
		exports[p.ImportPath], files = p.Export, p.GoFiles // the package itself comes last
	}
	l := &loaded{fset: token.NewFileSet(), info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Defs: map[*ast.Ident]types.Object{},
	}}
	for _, name := range files {
		f, err := parser.ParseFile(l.fset, name, nil, 0)
		require.NoError(t, err)
		l.ast = append(l.ast, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(l.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
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

// uses returns every use of a name of the package in another file than its
// own, without the places where a type may be named freely: fields of Options
// and History, and signatures of interfaces.
func (l *loaded) uses() []use {
	free := map[*ast.Ident]bool{}
	for _, f := range l.ast {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if n.Name.Name == "Options" || n.Name.Name == "History" {
					l.allow(n.Type, free)
				}
			case *ast.InterfaceType:
				l.allow(n, free)
			}
			return true
		})
	}
	var all []use
	for id, obj := range l.info.Uses {
		if obj.Pkg() != l.pkg || free[id] {
			continue
		}
		if v, ok := obj.(*types.Var); ok && v.IsField() {
			continue
		}
		if _, ok := obj.(*types.PkgName); ok || !l.isPackageLevel(obj) {
			continue
		}
		if from, in := l.fileOf(id.Pos()), l.fileOf(obj.Pos()); from != in {
			all = append(all, use{from, in, obj.Name(), l.fset.Position(id.Pos())})
		}
	}
	slices.SortFunc(all, func(a, b use) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.at.Offset, b.at.Offset))
	})
	return all
}

// isPackageLevel reports whether an object is declared at the top of a file: a
// function, a method, a type, a variable or a constant.
func (l *loaded) isPackageLevel(obj types.Object) bool {
	if f, ok := obj.(*types.Func); ok {
		recv := f.Signature().Recv()
		return recv == nil || !types.IsInterface(recv.Type())
	}
	return obj.Parent() == l.pkg.Scope()
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

// Four methods of state write sys, list, their totals, turns and turn. Nothing
// else does, except clipped: it writes them in a copy, with the same entries. The
// other fields of state are not checked.
func TestState_Writers(t *testing.T) {
	writers := []string{"append", "cutTail", "replace", "load", "clipped"}
	fields := []string{"sys", "list", "sysRaw", "listRaw", "turns", "turn"}
	pkg := loadPackage(t)
	owned := map[types.Object]bool{}
	for field := range pkg.structOf("state").Fields() {
		if slices.Contains(fields, field.Name()) {
			owned[field] = true
		}
	}
	require.Len(t, owned, len(fields))
	allowed := map[types.Object]bool{}
	for _, name := range writers {
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(pkg.pkg.Scope().Lookup("state").Type()), true, pkg.pkg, name)
		require.NotNil(t, m, name)
		require.Equal(t, "state.go", pkg.fileOf(m.Pos()))
		allowed[m] = true
	}
	writes := 0
	for _, f := range pkg.ast {
		for _, d := range f.Decls {
			in := token.Pos(0)
			if d, ok := d.(*ast.FuncDecl); ok && allowed[pkg.info.Defs[d.Name]] {
				in = d.Pos()
			}
			for _, id := range pkg.written(d) {
				if !owned[pkg.info.Uses[id]] {
					continue
				}
				if in == 0 {
					t.Errorf("%s: state.%s is written outside of %v", pkg.fset.Position(id.Pos()), id.Name, writers)
				}
				writes++
			}
		}
	}
	require.Greater(t, writes, len(fields), "the writes of these methods were not found")
}

// written returns the names of the fields that the code below a node assigns, or
// writes into, or takes the address of.
func (l *loaded) written(n ast.Node) []*ast.Ident {
	var all []*ast.Ident
	add := func(e ast.Expr) {
		for e != nil {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
			case *ast.IndexExpr:
				e = x.X
			case *ast.SliceExpr:
				e = x.X
			case *ast.SelectorExpr:
				all = append(all, x.Sel)
				return
			default:
				return
			}
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				add(e)
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			add(n.Key)
			add(n.Value)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				add(n.X)
			}
		case *ast.CallExpr:
			if f, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && len(n.Args) > 0 {
				if _, ok := l.info.Uses[f].(*types.Builtin); ok && (f.Name == "append" || f.Name == "clear" || f.Name == "copy") {
					add(n.Args[0])
				}
			}
		case *ast.KeyValueExpr: // in a literal of the struct
			if id, ok := n.Key.(*ast.Ident); ok {
				all = append(all, id)
			}
		}
		return true
	})
	return all
}

// Whoever holds both locks took History.mu first: while Budget.mu is held,
// History.mu is never taken. And a method that expects History.mu to be held
// never takes it.
func TestLocks_Order(t *testing.T) {
	pkg := loadPackage(t)
	g := pkg.callGraph()
	var lockBudget, locked int
	for f, node := range g {
		switch {
		case node.locks["Budget"]:
			lockBudget++
			assert.NotContains(t, node.locks, "History", f.FullName())
			for callee := range g.reach(f, true) {
				if g[callee].locks["History"] {
					t.Errorf("%s holds Budget.mu and calls %s, which takes History.mu", f.FullName(), callee.FullName())
				}
				if g[callee].calls[nil] {
					t.Errorf("%s holds Budget.mu and calls %s, which calls a function value", f.FullName(), callee.FullName())
				}
			}
		case strings.HasSuffix(f.Name(), "Locked"):
			locked++
			for callee := range g.reach(f, false) {
				if g[callee].own["History"] {
					t.Errorf("%s expects History.mu to be held and calls %s, which takes it", f.FullName(), callee.FullName())
				}
			}
		}
	}
	require.Greater(t, lockBudget, 3)
	require.Greater(t, locked, 10)
}

// A callNode is what a function does, as far as its own text shows.
type callNode struct {
	calls map[*types.Func]bool // nil: a function value, or a method of an interface
	now   map[*types.Func]bool // those outside of function literals
	locks map[string]bool      // the types whose mu it locks
	own   map[string]bool      // those outside of function literals
}

type callGraph map[*types.Func]*callNode

func (l *loaded) callGraph() callGraph {
	mutexes := map[types.Object]string{}
	for _, name := range []string{"History", "Budget"} {
		for field := range l.structOf(name).Fields() {
			if field.Name() == "mu" {
				mutexes[field] = name
			}
		}
	}
	g := callGraph{}
	for _, file := range l.ast {
		for _, d := range file.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			node := &callNode{map[*types.Func]bool{}, map[*types.Func]bool{}, map[string]bool{}, map[string]bool{}}
			g[l.info.Defs[d.Name].(*types.Func)] = node
			var literals []ast.Node
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					literals = append(literals, n)
				case *ast.CallExpr:
					inLiteral := slices.ContainsFunc(literals, func(f ast.Node) bool { return f.Pos() <= n.Pos() && n.End() <= f.End() })
					l.call(n, node, mutexes, inLiteral)
				}
				return true
			})
		}
	}
	return g
}

// call adds one call to a node.
func (l *loaded) call(n *ast.CallExpr, node *callNode, mutexes map[types.Object]string, inLiteral bool) {
	var obj types.Object
	switch f := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		obj = l.info.Uses[f]
	case *ast.SelectorExpr:
		obj = l.info.Uses[f.Sel]
		if x, ok := f.X.(*ast.SelectorExpr); ok && f.Sel.Name == "Lock" {
			if name := mutexes[l.info.Uses[x.Sel]]; name != "" {
				node.locks[name] = true
				node.own[name] = node.own[name] || !inLiteral
			}
		}
	case *ast.ArrayType, *ast.MapType, *ast.FuncLit, *ast.InterfaceType:
		return // a conversion, or a literal whose body is read anyway
	}
	switch obj := obj.(type) {
	case *types.Builtin, *types.TypeName:
	case *types.Func:
		callee := obj.Origin()
		if recv := callee.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
			callee = nil
		}
		node.calls[callee] = true
		node.now[callee] = node.now[callee] || !inLiteral
	default:
		node.calls[nil] = true
	}
}

// reach returns the functions of the package that f calls, or that these call,
// f itself included. Calls in function literals are left out unless literals is
// set.
func (g callGraph) reach(f *types.Func, literals bool) map[*types.Func]bool {
	seen := map[*types.Func]bool{}
	var visit func(*types.Func)
	visit = func(f *types.Func) {
		node := g[f]
		if node == nil || seen[f] {
			return
		}
		seen[f] = true
		for callee := range node.calls {
			if literals || node.now[callee] {
				visit(callee)
			}
		}
	}
	visit(f)
	return seen
}

func (l *loaded) structOf(name string) *types.Struct {
	return l.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct)
}
