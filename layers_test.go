package convo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layerExceptions are the uses of a higher layer that remain, each with its
// reason: "file.go name" of what is used.
var layerExceptions = map[string]string{
	"restore.go newHistory": "Restore begins as New does, with the default strategy",
}

// A file uses names of its own layer and of lower ones only. ARCHITECTURE.md lists
// the layers, lowest first, and the places where types may be named freely.
//
// Methods of interfaces and fields belong to the file that declares them. There is
// no exception for the interfaces of Options, such as CompactionStrategy: a lower
// layer has no reason to call one. A function of history.go counts as high as what
// it uses, directly or through other functions of history.go.
//
// The test reads names. So it does not see a call of a function that a higher layer
// has put into a field or passed as an argument, nor a method that is called
// through an interface of a lower layer.
func TestLayers(t *testing.T) {
	layers := readLayers(t)
	pkg := loadPackage(t)
	for _, file := range pkg.files() {
		if _, ok := layers[file]; !ok {
			assert.Equal(t, "history.go", file, "%s is in no layer; add it to the list between the <!-- layers --> marks in ARCHITECTURE.md", file)
		}
	}
	unused := maps.Clone(layerExceptions)
	for _, fault := range pkg.layerFaults(layers, unused) {
		t.Error(fault)
	}
	assert.Empty(t, unused, "exceptions that nothing needs")
}

// layerFaults returns the uses of higher layers. It removes from exceptions those
// that it needed.
func (l *loaded) layerFaults(layers map[string]int, exceptions map[string]string) (faults []string) {
	uses := l.uses()
	heights := historyHeights(uses, layers)
	allowed := maps.Clone(exceptions)
	for _, u := range uses {
		from, to := layers[u.from], layers[u.in]
		if u.in == "history.go" {
			to = heights[u.obj]
		}
		if from == 0 || to <= from {
			continue
		}
		if key := u.from + " " + u.obj.Name(); allowed[key] != "" {
			delete(exceptions, key)
			continue
		}
		faults = append(faults, fmt.Sprintf("%s: %s (layer %d) uses %s of %s (layer %d)", u.at, u.from, from, u.obj.Name(), u.in, to))
	}
	return faults
}

// historyHeights returns the highest layer that each function of history.go uses.
func historyHeights(uses []use, layers map[string]int) map[types.Object]int {
	heights := map[types.Object]int{}
	for again := true; again; {
		again = false
		for _, u := range uses {
			if u.from != "history.go" || u.by == nil {
				continue
			}
			if to := max(layers[u.in], heights[u.obj]); to > heights[u.by] {
				heights[u.by], again = to, true
			}
		}
	}
	return heights
}

// A checkedSource is a file with faults that a checker must find: want has a part of
// each, with | between them. With want "", the file must pass.
type checkedSource struct{ name, source, want string }

// checkSources runs a checker on each of the sources, beside the files of common.
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

func TestLayers_Refuses(t *testing.T) {
	common := map[string]string{
		"history.go": `package convo
			type Options struct { Strategy Strategy; Tokenizer Tokenizer }
			type History struct { opts Options; view int }
			func (h *History) up() { h.through() }
			func (h *History) through() { _ = Low(top(0)) }
			func (h *History) small() int { h.view++; return least }`,
		"high.go": `package convo
			type Strategy interface { Compact(*Goal) }
			type Goal struct { Size int }
			type Trigger interface { Due() bool }
			type Number int
			func (Number) Double() {}
			func top(int) int { return limit }
			const limit = 1`,
		"low.go": `package convo
			type Low int
			const least = 1
			type Tokenizer interface { Count() int }`,
	}
	layers := map[string]int{"low.go": 1, "x.go": 1, "high.go": 2}
	checkSources(t, common, "x.go", []checkedSource{
		{"function", "func f() { top(0) }", "uses top of high.go"},
		{"function as a value", "var f = top", "uses top of high.go"},
		{"constant", "const c = limit", "uses limit of high.go"},
		{"method", "func f(n interface{ Double() }, h *History) { n.Double() }", ""},
		{"method of a type", "var f = Number.Double", "uses Number of high.go|uses Double of high.go"},
		{"method of an interface", "func f(h *History) { h.opts.Strategy.Compact(nil) }", "uses Compact of high.go"},
		{"method of an interface of this layer", "func f(h *History) { h.opts.Tokenizer.Count() }", ""},
		{"method of an interface as a value", "func f(h *History) any { return h.opts.Strategy.Compact }", "uses Compact of high.go"},
		{"field", "func f(x in) { x.Plan(nil) }; type in interface { Plan(*Goal) }", ""},
		{"field of what a method returns", "func f(x in) { x.Plan().Size++ }; type in interface { Plan() *Goal }", "uses Size of high.go"},
		{"field in a literal", "var _ = &Goal{Size: 1}", "uses Goal of high.go|uses Size of high.go"},
		{"type in an interface with a name", "type in interface { Plan(Goal) Trigger }", ""},
		{"embedded in an interface", "type in interface { Trigger }", "uses Trigger of high.go"},
		{"type in an inline interface", "func f(x any) { _, _ = x.(interface{ Plan(Goal) }) }", "uses Goal of high.go"},
		{"type in the interface of a parameter", "func f(x interface{ Plan(Goal) }) {}", "uses Goal of high.go"},
		{"type in the interface of a field", "type s struct { x interface{ Plan(Goal) } }", "uses Goal of high.go"},
		{"type in a constraint", "func f[T interface{ ~int; Plan(Goal) }]() {}", "uses Goal of high.go"},
		{"type in a constraint with a name", "type c interface { Number | string }", "uses Number of high.go"},
		{"type as a constraint", "func f[T Trigger]() {}", "uses Trigger of high.go"},
		{"type in an interface in a function", "func f() { type in interface { Plan(Goal) } }", "uses Goal of high.go"},
		{"by way of history.go", "func f(h *History) { h.through() }", "uses through of history.go"},
		{"by way of two functions of history.go", "func f(h *History) { h.up() }", "uses up of history.go"},
		{"history.go", "func f(h *History) int { return h.small() + h.view }", ""},
		{"lower layer", "func f(t Tokenizer) int { return t.Count() + least + int(Low(1)) }", ""},
	}, func(l *loaded) []string { return l.layerFaults(layers, nil) })
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
// file declares, or in history.go any name of the package.
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

// builtPackages runs go list, once for all tests. It returns the source files of
// the root package, and an importer for the packages that it needs.
var builtPackages = sync.OnceValues(func() (built struct {
	files []string
	types.Importer
}, err error) {
	out, err := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export,GoFiles", ".").Output()
	if err != nil {
		return built, err
	}
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export string
			GoFiles            []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return built, err
		}
		exports[p.ImportPath], built.files = p.Export, p.GoFiles // the package itself comes last
	}
	built.Importer = importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return built, nil
})

// loadPackage loads the root package.
func loadPackage(t *testing.T) *loaded {
	t.Helper()
	built, err := builtPackages()
	require.NoError(t, err)
	sources := map[string]string{}
	for _, name := range built.files {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		sources[name] = string(src)
	}
	return loadSources(t, sources)
}

// loadSources loads a package of the given files. It may import what the root
// package needs too.
func loadSources(t *testing.T, sources map[string]string) *loaded {
	t.Helper()
	built, err := builtPackages()
	require.NoError(t, err)
	l := &loaded{fset: token.NewFileSet(), info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{},
	}}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		f, err := parser.ParseFile(l.fset, name, sources[name], 0)
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

// uses returns every use of a function, method, field, type, variable or constant
// of the package in another file than its own, and in history.go. It leaves out the
// places where a type may be named freely: fields of Options and History, and
// signatures of the methods of interfaces that have a name.
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

// A declaration is a node and the function, variable or constant that it declares.
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

// stateWriters are the methods of state that write sys, list, their totals, turns
// and turn. clipped writes them in a copy, with the same entries.
var stateWriters = []string{"append", "cutTail", "replace", "load", "clipped"}

// stateOwners may also replace a whole state, or a struct that has one in it.
var stateOwners = map[string]string{
	"History.commitLocked":   "puts the view in place that an edit has made",
	"Snapshot.UnmarshalJSON": "fills a snapshot that was read",
}

// entryMakers may write the fields of entries, because they make them: no view has
// these entries yet. Each says where the entries go.
var entryMakers = map[string]string{
	"History.newEntries":            "to appendLocked, SetSystem and SetEphemeral",
	"History.newEntry":              "to newEntries",
	"History.joinLocked":            "to appendLocked",
	"identity.weigh":                "to newEntry, rewritten and the list of a loader",
	"entry.setTools":                "to Count, joinLocked and replace, as copies",
	"entry.setNote":                 "to joinLocked, newEphemeral and newSnapshot",
	"History.answerOpenCallsLocked": "to append",
	"History.SetSystem":             "to replace",
	"calls.pairByID":                "to append, or to the list of a loader",
	"calls.take":                    "to append, or to the list of a loader",
	"identity.cleared":              "to replace, as the copies of entries with results cleared",
	"identity.rewritten":            "to replace, as the copies of entries with other parts",
	"identity.forgotten":            "to cleared",
	"entry.replaced":                "to cleared, forgotten and useCuts",
	"entry.setMissing":              "to newEntries, cleared, forgotten, useCuts and the list of a loader",
	"attempt.useCuts":               "to replace, as the copies of entries with results cut",
	"History.cutResults":            "to newEntries",
	"setTurns":                      "to load, as the list of NewSnapshot or of a loader",
	"loader.place":                  "to load, as copies",
	"merger.appendExchangeLocked":   "to append again, as copies",
	"loader.entry":                  "to load, like all of loader",
	"loader.check":                  "to load",
	"loader.moveToFront":            "to load",
	"loader.results":                "to load",
	"loader.answerOpen":             "to load",
	"loader.add":                    "to load",
	"newSnapshot":                   "to load",
	"stateJSON.finish":              "to load",
	"stateJSON.setTokens":           "to load",
	"readEntry":                     "to finish",
	"stateJSON.keep":                "to a record, as copies",
	"setHeads":                      "to load",
	"splitSystem":                   "to load",
}

// Four methods of state write sys, list, originals, their totals, turns and turn. Nothing else
// does, except clipped. The other fields of state are not checked. And only the
// functions that make entries write to them, before a view has them.
//
// Within a function, the test follows a list of entries through local variables,
// without regard to the order of statements or to branches: a variable that is ever
// a list of a state always counts as one. It knows the parameters through which a
// function of the package writes. A function of another package counts as writing
// into what it is given, except those of readers.
//
// It does not see a write through a list that came out of a field of another
// struct, a channel, or the result of a function; nor what an address is used for,
// if it is that of an entry or of a part of one; nor a state as a whole that is
// overwritten through a struct of another name. In a function that makes entries it
// only sees that an entry is written to below the line that hands one over.
func TestState_Writers(t *testing.T) {
	pkg := loadPackage(t)
	for _, name := range stateWriters {
		m, _, _ := types.LookupFieldOrMethod(types.NewPointer(pkg.pkg.Scope().Lookup("state").Type()), true, pkg.pkg, name)
		require.NotNil(t, m, name)
		require.Equal(t, "state.go", pkg.fileOf(m.Pos()))
	}
	faults, allowed := pkg.stateFaults()
	for _, fault := range faults {
		t.Error(fault)
	}
	require.Greater(t, allowed[""], 6, "the writes of these methods were not found")
	for _, names := range []map[string]string{stateOwners, entryMakers} {
		for name := range names {
			assert.Positive(t, allowed[name], "%s writes nothing that only it may write", name)
		}
	}
}

// stateFaults returns the writes that are not allowed, and how many allowed ones
// each function has; "" stands for stateWriters.
func (l *loaded) stateFaults() (faults []string, allowed map[string]int) {
	w := &stateCheck{loaded: l, owned: map[types.Object]bool{}, params: map[types.Object]bool{}, whole: map[types.Type]bool{}}
	for _, field := range []string{"sys", "list", "sysRaw", "listRaw", "turns", "turn", "originals", "originalRaw"} {
		obj, _, _ := types.LookupFieldOrMethod(l.pkg.Scope().Lookup("state").Type(), true, l.pkg, field)
		w.owned[obj] = true
	}
	for _, name := range []string{"state", "Snapshot", "History"} {
		w.whole[l.pkg.Scope().Lookup(name).Type()] = true
	}
	w.entry = l.pkg.Scope().Lookup("entry").Type()
	for again := true; again; { // until no more parameters are found that are written through
		n := len(w.params)
		w.each(func(d ast.Decl, _ string, _ bool) { w.check(d, func(token.Pos, string, string) {}) })
		again = len(w.params) > n
	}
	allowed = map[string]int{}
	w.each(func(d ast.Decl, name string, writer bool) {
		w.check(d, func(pos token.Pos, kind, what string) {
			switch {
			case writer && kind != "entry":
				allowed[""]++
			case kind == "whole" && stateOwners[name] != "", kind == "entry" && entryMakers[name] != "":
				allowed[name]++
			default:
				faults = append(faults, fmt.Sprintf("%s: %s %s", l.fset.Position(pos), name, what))
			}
		})
	})
	return faults, allowed
}

// A stateCheck looks for writes to states and entries.
type stateCheck struct {
	*loaded
	owned  map[types.Object]bool // fields of state
	params map[types.Object]bool // parameters whose elements are written
	whole  map[types.Type]bool   // structs that have these fields
	entry  types.Type
	lists  map[types.Object]bool // variables that are lists of a state, in the present function
}

// each calls do for each declaration. writer says whether it is one of stateWriters.
func (w *stateCheck) each(do func(d ast.Decl, name string, writer bool)) {
	for _, f := range w.ast {
		for _, d := range f.Decls {
			name, writer := "a declaration", false
			if d, ok := d.(*ast.FuncDecl); ok {
				name = d.Name.Name
				recv := w.info.Defs[d.Name].(*types.Func).Signature().Recv()
				if recv != nil {
					name = receiverOf(recv) + "." + name
				}
				writer = recv != nil && isPointerTo(recv.Type(), w.pkg.Scope().Lookup("state").Type()) && slices.Contains(stateWriters, d.Name.Name)
			}
			do(d, name, writer)
		}
	}
}

// receiverOf returns the name of a receiver's type.
func receiverOf(recv *types.Var) string {
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

func isPointerTo(t, elem types.Type) bool {
	p, ok := t.(*types.Pointer)
	return ok && types.Identical(p.Elem(), elem)
}

// check calls report for each write in a declaration.
func (w *stateCheck) check(d ast.Decl, report func(pos token.Pos, kind, what string)) {
	roots := map[types.Object]types.Object{} // variables, and the parameter that each is a slice of
	w.lists = map[types.Object]bool{}
	if d, ok := d.(*ast.FuncDecl); ok {
		params := w.info.Defs[d.Name].(*types.Func).Signature().Params()
		for p := range params.Variables() {
			roots[p] = p
		}
	}
	for again := true; again; {
		n := len(w.lists) + len(roots)
		assigned(d, func(to, from ast.Expr) {
			id, ok := to.(*ast.Ident)
			if !ok {
				return
			}
			obj := w.info.ObjectOf(id)
			list, root := w.sliceOf(from)
			if obj == nil {
				return
			}
			if list {
				w.lists[obj] = true
			}
			if p := roots[root]; p != nil && roots[obj] == nil {
				roots[obj] = p
			}
		})
		again = len(w.lists)+len(roots) > n
	}
	// into reports a write to the elements of a slice.
	into := func(e ast.Expr, what string) {
		list, root := w.sliceOf(e)
		if p := roots[root]; p != nil {
			w.params[p] = true
		}
		if list {
			report(e.Pos(), "list", what+" a list of a state")
		}
	}
	handed := token.Pos(0) // where the function hands over the first entry
	ast.Inspect(d, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := w.callee(call).(*types.Func); ok && f.Pkg() == w.pkg && (f.Name() == "pushLocked" || f.Name() == "append" || f.Name() == "replace" || f.Name() == "load" && f.Signature().Params().Len() == 3) {
				if handed == 0 {
					handed = call.End()
				}
			}
		}
		return true
	})
	write := func(e ast.Expr) {
		first := true
		for x := ast.Unparen(e); x != nil; {
			switch y := x.(type) {
			case *ast.IndexExpr:
				if first {
					into(y.X, "writes into")
				}
				x = ast.Unparen(y.X)
			case *ast.SliceExpr:
				x = ast.Unparen(y.X)
			case *ast.StarExpr:
				t := w.info.TypeOf(y)
				switch {
				case first && types.Identical(t, w.entry):
					report(e.Pos(), "entry", "overwrites an entry")
				case first && w.whole[t]:
					report(e.Pos(), "whole", "overwrites a state")
				}
				x = ast.Unparen(y.X)
			case *ast.SelectorExpr:
				obj := w.info.Uses[y.Sel]
				switch {
				case first && w.whole[w.info.TypeOf(y)]:
					report(e.Pos(), "whole", "overwrites a state")
				case first && w.owned[obj]:
					report(e.Pos(), "field", "writes state."+y.Sel.Name)
				case w.isEntryField(obj):
					what := "writes a field of an entry"
					kind := "entry"
					if handed != 0 && e.Pos() > handed {
						what, kind = "writes a field of an entry after it has handed one over", "late"
					}
					report(e.Pos(), kind, what)
					return
				}
				x = ast.Unparen(y.X)
			default:
				return
			}
			first = false
		}
	}
	compared := map[ast.Node]bool{} // addresses that are only compared
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			compared[ast.Unparen(n.X)], compared[ast.Unparen(n.Y)] = true, true
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					write(e)
				}
			}
		case *ast.IncDecStmt:
			write(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				write(n.Key)
				write(n.Value)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && !compared[n] {
				x := ast.Unparen(n.X)
				if i, ok := x.(*ast.IndexExpr); ok {
					into(i.X, "takes the address of an element of")
				} else if sel, ok := x.(*ast.SelectorExpr); ok && w.owned[w.info.Uses[sel.Sel]] {
					report(n.Pos(), "field", "takes the address of state."+sel.Sel.Name)
				}
			}
		case *ast.CallExpr:
			w.checkCall(n, into)
		case *ast.CompositeLit:
			w.checkLiteral(n, report)
		}
		return true
	})
}

// checkCall calls into for the slices that a call may write into.
func (w *stateCheck) checkCall(n *ast.CallExpr, into func(ast.Expr, string)) {
	switch f := w.callee(n).(type) {
	case *types.Builtin:
		if f.Name() == "clear" || f.Name() == "copy" || f.Name() == "append" {
			into(n.Args[0], "passes to "+f.Name())
		}
	case *types.Func:
		params := f.Origin().Signature().Params()
		for i, arg := range n.Args {
			if f.Pkg() != w.pkg && !isReader(f) || f.Pkg() == w.pkg && i < params.Len() && w.params[params.At(i)] {
				into(arg, "passes to "+f.Name())
			}
		}
	}
}

// isReader reports whether a function of another package only reads the slices that
// it is given.
func isReader(f *types.Func) bool {
	readers := []string{"All", "Backward", "BinarySearch", "BinarySearchFunc", "Clip", "Clone", "Collect", "Concat", "Contains", "ContainsFunc", "Equal", "EqualFunc", "Index", "IndexFunc", "IsSorted", "IsSortedFunc", "MaxFunc", "MinFunc", "Values"}
	return f.Pkg() != nil && f.Pkg().Path() == "slices" && slices.Contains(readers, f.Name())
}

// checkLiteral reports the fields of a state that a literal sets. A literal of a
// state sets all of them if it does not name them.
func (w *stateCheck) checkLiteral(n *ast.CompositeLit, report func(pos token.Pos, kind, what string)) {
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && w.owned[w.info.Uses[id]] {
				report(e.Pos(), "field", "writes state."+id.Name)
			}
		} else if types.Identical(w.info.TypeOf(n), w.pkg.Scope().Lookup("state").Type()) {
			report(e.Pos(), "field", "writes a state by a literal without names")
			return
		}
	}
}

// isEntryField reports whether obj is a field of entry.
func (w *stateCheck) isEntryField(obj types.Object) bool {
	for f := range w.entry.Underlying().(*types.Struct).Fields() {
		if f == obj {
			return true
		}
	}
	return false
}

// callee returns what a call calls, if that has a name.
func (l *loaded) callee(n *ast.CallExpr) types.Object {
	fun := ast.Unparen(n.Fun)
	if i, ok := fun.(*ast.IndexExpr); ok {
		fun = i.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return l.info.Uses[f]
	case *ast.SelectorExpr:
		return l.info.Uses[f.Sel]
	}
	return nil
}

// sliceOf reports whether an expression is a list of a state, or a slice of one.
// root is the variable that it is a slice of, if any.
func (w *stateCheck) sliceOf(e ast.Expr) (list bool, root types.Object) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.SliceExpr:
			e = x.X
		case *ast.SelectorExpr:
			obj := w.info.Uses[x.Sel]
			return w.owned[obj], nil
		case *ast.Ident:
			obj := w.info.ObjectOf(x)
			return w.lists[obj], obj
		case *ast.CallExpr:
			f := w.callee(x)
			_, builtin := f.(*types.Builtin)
			if f == nil || len(x.Args) == 0 || !(builtin && f.Name() == "append" || f.Pkg() != nil && f.Pkg().Path() == "slices" && f.Name() == "Clip") {
				return false, nil
			}
			e = x.Args[0]
		default:
			return false, nil
		}
	}
}

// assigned calls do for each assignment of one value to one place.
func assigned(n ast.Node, do func(to, from ast.Expr)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Lhs) == len(n.Rhs) {
				for i := range n.Lhs {
					do(n.Lhs[i], n.Rhs[i])
				}
			}
		case *ast.ValueSpec:
			if len(n.Names) == len(n.Values) {
				for i := range n.Names {
					do(n.Names[i], n.Values[i])
				}
			}
		}
		return true
	})
}

func TestState_WritersRefuses(t *testing.T) {
	common := map[string]string{"state.go": `package convo
		type part any
		type message struct { parts []part }
		type entry struct { msg message; turn int }
		type state struct { sys, list []*entry; sysRaw, listRaw int64; turns, turn, other int }
		type History struct { other int; state }
		type Snapshot struct { owner *History; state }
		func (s *state) append(e *entry) { s.list = append(s.list, e) }
		func (s *state) cutTail(n int) { clear(s.list[n:]) }
		func (s *state) replace(list []*entry) { s.sys, s.list = nil, list }
		func (s *state) load(list []*entry) { s.replace(list) }
		func (s *state) clipped() state { c := *s; c.list = c.list[:1:1]; return c }
		func (h *History) pushLocked(e *entry) { h.append(e) }
		func (h *History) commitLocked(next state) { h.state = next }
		func count(list []*entry) (n int) { for _, e := range list { n += e.turn }; return n }`}
	writers := "import (\"slices\"; \"sort\")\nvar _, _ = slices.Sort[[]int], sort.Ints\n"
	cases := []checkedSource{
		{"field", "func f(h *History) { h.turn = 1 }", "writes state.turn"},
		{"count", "func f(h *History) { h.turns++ }", "writes state.turns"},
		{"element", "func f(h *History) { h.list[0] = nil }", "writes into a list"},
		{"another field", "func f(h *History) { h.state.other = 1 }", ""},
		{"named literal", "var s = state{turn: 1}", "writes state.turn"},
		{"literal without names", "var s = state{nil, nil, 0, 0, 0, 0, 0}", "without names"},
		{"inner literal without names", "var s = Snapshot{nil, state{nil, nil, 0, 0, 0, 0, 0}}", "without names"},
		{"named literal of another field", "var s = Snapshot{state: state{other: 1}}", ""},
		{"whole state", "func f(h *History, s state) { h.state = s }", "overwrites a state"},
		{"whole state by a pointer", "func f(s *state) { *s = state{} }", "overwrites a state"},
		{"whole snapshot", "func f(s *Snapshot) { *s = Snapshot{} }", "overwrites a state"},
		{"copy of a state", "func f(h *History) state { s := h.state; s = *(&s); return s }", ""},
		{"address", "func f(h *History) *int { return &h.turn }", "takes the address of state.turn"},
		{"address of an element", "func f(h *History) **entry { return &h.list[0] }", "takes the address of an element"},
		{"alias", "func f(h *History) { l := h.list; l[0] = nil }", "writes into a list"},
		{"alias by var", "func f(h *History) { var l = h.list[1:]; clear(l) }", "passes to clear"},
		{"alias of an alias", "func f(h *History) { m := h.list; l := m[:1]; copy(l, m) }", "passes to copy"},
		{"alias with spare capacity", "func f(h *History) { l := h.list[:0]; l = append(l, nil) }", "passes to append"},
		{"alias through Clip", "func f(h *History) { l := slices.Clip(h.list); l[0] = nil }", "writes into a list"},
		{"copied list", "func f(h *History) { l := slices.Clone(h.list); l[0] = nil; slices.Reverse(l) }", ""},
		{"read alias", "func f(h *History) int { l := h.list; l = l[1:]; return count(l) }", ""},
		{"Reverse", "func f(h *History) { slices.Reverse(h.list) }", "passes to Reverse"},
		{"Delete", "func f(h *History) []*entry { return slices.Delete(h.list, 0, 1) }", "passes to Delete"},
		{"SortFunc", "func f(h *History) { slices.SortFunc(h.list[1:], func(a, b *entry) int { return 0 }) }", "passes to SortFunc"},
		{"sort.Slice", "func f(h *History) { sort.Slice(h.list, func(i, j int) bool { return false }) }", "passes to Slice"},
		{"address compared", "func f(h, g *History) bool { return &h.list[0] == &g.list[0] }", ""},
		{"readers", "func f(h *History) bool { return slices.Contains(h.list, nil) }", ""},
		{"own function", "func f(h *History) { g(0, h.list) }; func g(_ int, l []*entry) { l[0] = nil }", "passes to g"},
		{"own function of an own function", "func f(h *History) { g(h.list[1:]) }; func g(l []*entry) { m := l[1:]; k(m) }; func k(l []*entry) { clear(l) }", "passes to g"},
		{"own method", "func f(h *History) { h.g(h.list) }; func (h *History) g(l []*entry) { slices.Reverse(l) }", "passes to g"},
		{"field of an entry", "func f(h *History) { h.list[0].turn = 1 }", "writes a field of an entry"},
		{"field of any entry", "func f(e *entry) { e.turn++ }", "writes a field of an entry"},
		{"part of an entry", "func f(e *entry) { e.msg.parts[0] = nil }", "writes a field of an entry"},
		{"whole entry", "func f(e *entry) { *e = entry{} }", "overwrites an entry"},
		{"in a range", "func f(h *History) { for _, h.list[0].turn = range []int{1} {} }", "writes a field of an entry"},
		{"before it was appended", "func (h *History) joinLocked(e *entry) { e.turn = 1; h.pushLocked(e) }", ""},
		{"after it was appended", "func (h *History) joinLocked(e *entry) { h.pushLocked(e); e.turn = 1 }", "after it has handed one over"},
		{"method of the same name", "type x struct { *state }\nfunc (x x) append() { x.turn = 1 }", "writes state.turn"},
	}
	for i := range cases {
		cases[i].source = writers + cases[i].source
	}
	checkSources(t, common, "x.go", cases, func(l *loaded) []string { faults, _ := l.stateFaults(); return faults })
}

// lockExceptions are the functions that call a method whose name ends in Locked
// without the lock, each with its reason.
var lockExceptions = map[string]string{
	"New":             "nobody else has the History yet",
	"newHistory":      "nobody else has the History yet",
	"Restore":         "nobody else has the History yet",
	"History.load":    "nobody else has the History yet",
	"loader.dropTurn": "nobody else has the History yet",
	"loader.settle":   "nobody else has the History yet",
	"Open":            "nobody else has the History yet",
	"History.needFor": "acceptLocked calls its literals with the lock held",
	"attempt.run":     "commit calls acceptLocked with the lock held",
	"History.Pin":     "changePins calls its literal with the lock held",
	"History.Unpin":   "changePins calls its literal with the lock held",
}

// Whoever holds both locks took History.mu first. While a lock is held, no function
// is called that takes it, and none of the caller's: neither a function in a field
// of Options nor a method of an interface that the caller can implement. A method
// whose name ends in Locked is only called with the lock held.
//
// The test reads each function from top to bottom. After a branch, a lock counts as
// held if it is held at the end of any way through that goes on. Naming a function
// counts as calling it. A function literal that is called or deferred at once, or
// passed to another package, runs where it stands; any other runs later, without a
// lock.
//
// It takes all histories for one, and all budgets. It does not see which function a
// variable or a field holds, so neither what a literal does that is stored and
// called under a lock later, nor what the methods of an interface of this package
// call; those are checked alone. Methods of interfaces of other packages, such as
// context.Context, do not count as the caller's, except those of slog.Logger.
func TestLocks_Order(t *testing.T) {
	faults, g, unused := loadPackage(t).lockFaults(lockExceptions)
	for _, fault := range faults {
		t.Error(fault)
	}
	assert.Empty(t, unused, "exceptions that nothing needs")
	var lockBudget, locked int
	for f, node := range g {
		if node.locks[budgetLock] {
			lockBudget++
		}
		if strings.HasSuffix(f.Name(), "Locked") {
			locked++
		}
	}
	require.Greater(t, lockBudget, 3)
	require.Greater(t, locked, 10)
}

func TestLocks_OrderRefuses(t *testing.T) {
	common := map[string]string{"history.go": `package convo
		import ("sync"; "log/slog")
		type Tokenizer interface { Count() int }
		type part interface { weigh() int }
		type Options struct { Pin func() bool; Tokenizer Tokenizer; Logger *slog.Logger; Budget *Budget }
		type History struct { opts Options; mu sync.Mutex; part part; note func() }
		type Budget struct { mu sync.Mutex; note func() }
		func (h *History) Len() int { h.mu.Lock(); defer h.mu.Unlock(); return h.lenLocked() }
		func (h *History) lenLocked() int { return 1 }
		func (h *History) asks() bool { return h.opts.Pin() }
		func (b *Budget) Used() int { b.mu.Lock(); defer b.mu.Unlock(); return b.usedLocked() }
		func (b *Budget) usedLocked() int { return 1 }
		func call(f func()) { f() }`}
	// Each source is the body of a method of History.
	held := "h.mu.Lock(); defer h.mu.Unlock(); "
	pool := "b := h.opts.Budget; b.mu.Lock(); defer b.mu.Unlock(); "
	cases := []checkedSource{
		{"calls a locker", held + "h.Len()", "by which Len takes it"},
		{"calls a locker without the lock", "h.Len()", ""},
		{"calls a locker before", "h.Len(); " + held, ""},
		{"calls a locker afterwards", "h.mu.Lock(); h.mu.Unlock(); h.Len()", ""},
		{"calls one that calls a locker", held + "h.g() }; func (h *History) g() { h.Len()", "by which Len takes it"},
		{"takes the lock twice", held + "h.mu.Lock()", "takes History.mu, which it holds"},
		{"after a branch that unlocks", "h.mu.Lock(); if h.part == nil { h.mu.Unlock(); return }; h.Len(); h.mu.Unlock()", "by which Len takes it"},
		{"in a branch that has unlocked", "h.mu.Lock(); if h.part == nil { h.mu.Unlock(); h.Len(); return }; h.mu.Unlock()", ""},
		{"after a branch that locks", "if h.part == nil { h.mu.Lock() }; h.Len(); h.mu.Unlock()", "by which Len takes it"},
		{"in a case", "h.mu.Lock(); switch { case h.part == nil: h.Len() }; h.mu.Unlock()", "by which Len takes it"},
		{"in a loop", "h.mu.Lock(); for range 3 { h.Len() }; h.mu.Unlock()", "by which Len takes it"},
		{"method value", held + "f := h.Len; f()", "by which Len takes it"},
		{"method expression", held + "f := (*History).Len; f(h)", "by which Len takes it"},
		{"pointer to the mutex", "mu := &h.mu; mu.Lock(); defer mu.Unlock()", "uses History.mu other than by"},
		{"method value of the mutex", "f := h.mu.Unlock; h.mu.Lock(); defer f()", "uses History.mu other than by"},
		{"TryLock", "_ = h.mu.TryLock()", "uses History.mu other than by"},
		{"mutex in parentheses", "(h.mu).Lock(); h.Len(); (h.mu).Unlock()", "by which Len takes it"},
		{"literal called at once", held + "func() { h.Len() }()", "by which Len takes it"},
		{"literal that locks, called at once", held + "func() { h.mu.Lock() }()", "takes History.mu, which it holds"},
		{"deferred literal", held + "defer func() { h.Len() }()", "by which Len takes it"},
		{"deferred before the lock", "defer func() { h.Len() }(); " + held, ""},
		{"literal that unlocks, called at once", "h.mu.Lock(); func() { h.mu.Unlock() }(); h.Len()", ""},
		{"stored literal", held + "h.note = func() { h.Len() }", ""},
		{"literal on a goroutine", held + "go func() { h.Len() }()", ""},
		{"method on a goroutine", held + "go h.Len()", ""},
		{"literal for another package", held + "new(sync.Once).Do(func() { h.Len() })", "by which Len takes it"},
		{"literal for AfterFunc", held + "time.AfterFunc(0, func() { h.Len() })", ""},
		{"method that expects the lock", held + "h.lenLocked()", ""},
		{"without the lock", "h.lenLocked()", "calls lenLocked, which expects History.mu"},
		{"after the lock", "h.mu.Lock(); h.mu.Unlock(); h.lenLocked()", "calls lenLocked, which expects History.mu"},
		{"on a goroutine", held + "go h.lenLocked()", "calls lenLocked, which expects History.mu"},
		{"in a stored literal", held + "h.note = func() { h.lenLocked() }", "calls lenLocked, which expects History.mu"},
		{"with the other lock", "h.opts.Budget.mu.Lock(); h.lenLocked(); h.opts.Budget.mu.Unlock()", "calls lenLocked, which expects History.mu"},
		{"by a method that expects it too", "}; func (h *History) gLocked() { h.lenLocked()", ""},
		{"a locker, by a method that expects the lock", "}; func (h *History) gLocked() { h.Len()", "by which Len takes it"},
		{"function of Options", held + "h.opts.Pin()", "calls Pin, which is the caller's code"},
		{"function of Options by a variable", held + "f := h.opts.Pin; f()", "calls Pin, which is the caller's code"},
		{"function of Options compared", held + "_ = h.opts.Pin != nil", ""},
		{"function of Options without the lock", "h.opts.Pin()", ""},
		{"function of Options by a method", held + "h.asks()", "by which asks calls the caller's code"},
		{"interface of Options", held + "h.opts.Tokenizer.Count()", "calls Count, which is the caller's code"},
		{"interface of Options by a variable", held + "c := h.opts.Tokenizer; c.Count()", "calls Count, which is the caller's code"},
		{"logger", held + "h.opts.Logger.Info(\"\")", "calls Info, which is the caller's code"},
		{"interface of the package", held + "h.part.weigh()", ""},
		{"the locks in order", held + "h.opts.Budget.Used()", ""},
		{"the locks in the other order", pool + "h.mu.Lock()", "holds Budget.mu and takes History.mu"},
		{"the other order by a method", pool + "h.Len()", "by which Len takes History.mu"},
		{"function value under Budget.mu", pool + "b.note()", "holds Budget.mu and calls a function value"},
		{"function value below Budget.mu", pool + "call(nil)", "by which call takes History.mu or calls a function value"},
		{"Budget.mu twice", pool + "b.Used()", "by which Used takes it"},
		{"method of Budget without the lock", held + "h.opts.Budget.usedLocked()", "calls usedLocked, which expects Budget.mu"},
	}
	for i := range cases {
		cases[i].source = "import (\"sync\"; \"time\")\nvar _, _ = sync.OnceFunc, time.Now\nfunc (h *History) f() { " + cases[i].source + " }"
	}
	checkSources(t, common, "x.go", cases, func(l *loaded) []string { faults, _, _ := l.lockFaults(nil); return faults })
}

// A lock is a set of the two mutexes.
type lock int

const (
	historyLock lock = 1 << iota
	budgetLock
)

func (k lock) String() string {
	return [...]string{"no lock", "History.mu", "Budget.mu", "History.mu and Budget.mu"}[k]
}

// A callNode is what a function does, as far as its own text shows, without the
// literals that run later.
type callNode struct {
	calls map[*types.Func]bool // nil: a function value, or a method of an interface
	locks map[lock]bool
	user  bool // it calls the caller's code
}

type callGraph map[*types.Func]*callNode

// A lockCheck follows the locks through the functions of a package.
type lockCheck struct {
	*loaded
	mutexes map[types.Object]lock
	options map[types.Object]bool      // fields of Options that are functions
	inPlace map[*ast.FuncLit]bool      // literals that run where they stand
	direct  map[*ast.SelectorExpr]bool // of a mutex, with Lock or Unlock called
	graph   callGraph

	// In the second pass:
	report func(pos token.Pos, text string)

	// In the present function:
	node   *callNode
	later  bool // inside a literal that runs later
	exempt bool // a method that expects the lock may be called without
}

// lockFaults returns the breaches of the rules about locks, and the exceptions that
// were not needed.
func (l *loaded) lockFaults(exceptions map[string]string) (faults []string, g callGraph, unused map[string]string) {
	c := &lockCheck{
		loaded: l, mutexes: map[types.Object]lock{}, options: map[types.Object]bool{},
		inPlace: map[*ast.FuncLit]bool{}, direct: map[*ast.SelectorExpr]bool{}, graph: callGraph{},
	}
	for name, k := range map[string]lock{"History": historyLock, "Budget": budgetLock} {
		for field := range l.structOf(name).Fields() {
			if field.Name() == "mu" {
				c.mutexes[field] = k
			}
		}
	}
	for field := range l.structOf("Options").Fields() {
		if _, ok := field.Type().Underlying().(*types.Signature); ok {
			c.options[field] = true
		}
	}
	unused = maps.Clone(exceptions)
	for _, pass := range []bool{false, true} {
		for _, file := range l.ast {
			ast.Inspect(file, c.prepare)
			for _, d := range file.Decls {
				d, ok := d.(*ast.FuncDecl)
				if !ok || d.Body == nil {
					continue
				}
				f := l.info.Defs[d.Name].(*types.Func)
				c.report = nil
				if pass {
					name := f.Name()
					if recv := f.Signature().Recv(); recv != nil {
						name = receiverOf(recv) + "." + name
					}
					c.exempt = exceptions[name] != ""
					c.report = func(pos token.Pos, text string) {
						if c.exempt && strings.Contains(text, "expects") {
							delete(unused, name)
							return
						}
						faults = append(faults, fmt.Sprintf("%s: %s %s", l.fset.Position(pos), name, text))
					}
				}
				c.node = &callNode{calls: map[*types.Func]bool{}, locks: map[lock]bool{}}
				if !pass {
					c.graph[f] = c.node
				}
				c.walk(d.Body, expected(f))
			}
		}
	}
	return faults, c.graph, unused
}

// expected returns the lock that a function expects to be held.
func expected(f *types.Func) lock {
	recv := f.Signature().Recv()
	switch {
	case recv == nil || !strings.HasSuffix(f.Name(), "Locked"):
		return 0
	case receiverOf(recv) == "Budget":
		return budgetLock
	}
	return historyLock
}

// prepare finds the literals that run where they stand, and the uses of a mutex that
// walk understands.
func (c *lockCheck) prepare(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		if f, ok := ast.Unparen(n.Call.Fun).(*ast.FuncLit); ok {
			c.inPlace[f] = false
		}
	case *ast.CallExpr:
		if f, ok := ast.Unparen(n.Fun).(*ast.FuncLit); ok {
			if _, gone := c.inPlace[f]; !gone {
				c.inPlace[f] = true
			}
		}
		if f, ok := c.callee(n).(*types.Func); ok && f.Pkg() != c.pkg && f.Name() != "AfterFunc" {
			for _, arg := range n.Args {
				if f, ok := ast.Unparen(arg).(*ast.FuncLit); ok {
					c.inPlace[f] = true
				}
			}
		}
		if f, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && (f.Sel.Name == "Lock" || f.Sel.Name == "Unlock") {
			if x, ok := ast.Unparen(f.X).(*ast.SelectorExpr); ok {
				c.direct[x] = true
			}
		}
	}
	return true
}

// fault reports a fault, in the second pass.
func (c *lockCheck) fault(pos token.Pos, format string, args ...any) {
	if c.report != nil {
		c.report(pos, fmt.Sprintf(format, args...))
	}
}

// walk follows a statement or an expression that begins with some locks held. It
// returns those held at its end, and whether the code after it is reached.
func (c *lockCheck) walk(n ast.Node, held lock) (after lock, ends bool) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return c.walkAll(n.List, held)
	case *ast.ReturnStmt:
		return c.walkParts(n, held), true
	case *ast.BranchStmt:
		return held, n.Tok != token.FALLTHROUGH
	case *ast.LabeledStmt:
		return c.walk(n.Stmt, held)
	case *ast.IfStmt:
		if n.Init != nil {
			held, _ = c.walk(n.Init, held)
		}
		held, _ = c.walk(n.Cond, held)
		then, thenEnds := c.walk(n.Body, held)
		other, otherEnds := held, false
		if n.Else != nil {
			other, otherEnds = c.walk(n.Else, held)
		}
		switch {
		case thenEnds && otherEnds:
			return held, true
		case thenEnds:
			return other, false
		case otherEnds:
			return then, false
		}
		return then | other, false
	case *ast.ForStmt, *ast.RangeStmt:
		return held | c.walkParts(n, held), false
	case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		after := held
		ast.Inspect(n, func(m ast.Node) bool {
			switch m := m.(type) {
			case *ast.CaseClause:
				for _, e := range m.List {
					c.walk(e, held)
				}
				if end, ends := c.walkAll(m.Body, held); !ends {
					after |= end
				}
				return false
			case *ast.CommClause:
				if m.Comm != nil {
					c.walk(m.Comm, held)
				}
				if end, ends := c.walkAll(m.Body, held); !ends {
					after |= end
				}
				return false
			case ast.Expr:
				c.walk(m, held)
				return false
			}
			return true
		})
		return after, false
	case *ast.GoStmt:
		for _, arg := range n.Call.Args {
			c.walk(arg, held)
		}
		later := c.later
		c.later = true
		c.walk(n.Call.Fun, 0)
		c.later = later
		return held, false
	case *ast.DeferStmt:
		c.walk(n.Call, held) // where it stands; Unlock comes last
		return held, false
	case *ast.FuncLit:
		if c.inPlace[n] {
			after, _ := c.walk(n.Body, held)
			return after, false
		}
		later := c.later
		c.later = true
		c.walk(n.Body, 0)
		c.later = later
		return held, false
	case *ast.CallExpr:
		return c.walkCall(n, held), false
	case *ast.BinaryExpr:
		if sel, ok := n.X.(*ast.SelectorExpr); ok && c.options[c.info.Uses[sel.Sel]] {
			return held, false // compared with nil
		}
	case *ast.SelectorExpr:
		if k := c.mutexes[c.info.Uses[n.Sel]]; k != 0 && !c.direct[n] {
			c.fault(n.Pos(), "uses %v other than by calling its Lock and Unlock", k)
		}
		held = c.walkParts(n, held)
		c.use(n.Sel, held)
		return held, false
	case *ast.Ident:
		c.use(n, held)
		return held, false
	}
	return c.walkParts(n, held), false
}

func (c *lockCheck) walkAll(list []ast.Stmt, held lock) (after lock, ends bool) {
	for _, n := range list {
		var end bool
		if held, end = c.walk(n, held); end {
			ends = true
		}
	}
	return held, ends
}

// walkParts walks the nodes directly below n, in order.
func (c *lockCheck) walkParts(n ast.Node, held lock) lock {
	ast.Inspect(n, func(m ast.Node) bool {
		if m == n {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				held, _ = c.walk(sel.X, held)
				return false
			}
			return true
		}
		if m != nil {
			held, _ = c.walk(m, held)
		}
		return false
	})
	return held
}

// walkCall follows a call.
func (c *lockCheck) walkCall(n *ast.CallExpr, held lock) lock {
	if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
		if x, ok := ast.Unparen(sel.X).(*ast.SelectorExpr); ok {
			if k := c.mutexes[c.info.Uses[x.Sel]]; k != 0 {
				held, _ = c.walk(x, held)
				return c.lock(n, k, sel.Sel.Name, held)
			}
		}
	}
	if f := c.callee(n); f != nil && f.Pkg() != c.pkg && f.Name() == "AfterFunc" {
		later := c.later
		c.later = true
		c.walkParts(n, 0)
		c.later = later
		return held
	}
	for _, arg := range n.Args {
		held, _ = c.walk(arg, held)
	}
	switch obj := c.callee(n).(type) {
	case *types.Func, *types.Builtin, *types.TypeName:
	default:
		if tv := c.info.Types[n.Fun]; obj == nil && tv.IsType() {
			break // a conversion
		}
		if _, ok := ast.Unparen(n.Fun).(*ast.FuncLit); !ok {
			c.call(nil, n.Pos(), held)
		}
	}
	held, _ = c.walk(n.Fun, held)
	return held
}

// lock follows a call of a method of a mutex.
func (c *lockCheck) lock(n *ast.CallExpr, k lock, method string, held lock) lock {
	switch method {
	case "Lock":
		if !c.later {
			c.node.locks[k] = true
		}
		switch {
		case held&k != 0:
			c.fault(n.Pos(), "takes %v, which it holds", k)
		case held&budgetLock != 0:
			c.fault(n.Pos(), "holds Budget.mu and takes %v", k)
		}
		return held | k
	case "Unlock":
		return held &^ k
	}
	return held // walk has reported it
}

// use follows a name: that of a function counts as a call.
func (c *lockCheck) use(id *ast.Ident, held lock) {
	obj := origin(c.info.Uses[id])
	if c.options[obj] {
		c.userCode(id, held)
	}
	f, ok := obj.(*types.Func)
	if !ok {
		return
	}
	if recv := f.Signature().Recv(); recv != nil {
		if f.Pkg() != nil && f.Pkg().Path() == "log/slog" && receiverOf(recv) == "Logger" {
			c.userCode(id, held)
		}
		if types.IsInterface(recv.Type()) {
			if f.Pkg() == c.pkg && isOfCaller(recv.Type()) {
				c.userCode(id, held)
			}
			c.expects(f, id, held)
			c.call(nil, id.Pos(), held)
			return
		}
	}
	c.expects(f, id, held)
	c.call(f, id.Pos(), held)
}

// isOfCaller reports whether an interface is one that the caller can implement.
func isOfCaller(t types.Type) bool {
	n, ok := t.(*types.Named)
	if !ok || !n.Obj().Exported() {
		return false
	}
	for m := range n.Underlying().(*types.Interface).Methods() {
		if !m.Exported() {
			return false
		}
	}
	return true
}

func (c *lockCheck) userCode(id *ast.Ident, held lock) {
	c.node.user = c.node.user || !c.later
	if held != 0 {
		c.fault(id.Pos(), "calls %s, which is the caller's code, with %v held", id.Name, held)
	}
}

// expects checks that the lock is held that f expects.
func (c *lockCheck) expects(f *types.Func, id *ast.Ident, held lock) {
	if k := expected(f); f.Pkg() == c.pkg && held&k != k {
		c.fault(id.Pos(), "calls %s, which expects %v to be held", f.Name(), k)
	}
}

// call follows a call of f, or of a function that is not known if f is nil.
func (c *lockCheck) call(f *types.Func, pos token.Pos, held lock) {
	if !c.later {
		c.node.calls[f] = true
	}
	if held == 0 || c.report == nil {
		return
	}
	if f == nil {
		if held&budgetLock != 0 {
			c.fault(pos, "holds Budget.mu and calls a function value")
		}
		return
	}
	for _, callee := range slices.SortedFunc(maps.Keys(c.graph.reach(f)), func(a, b *types.Func) int { return strings.Compare(a.FullName(), b.FullName()) }) {
		node := c.graph[callee]
		switch {
		case node.locks[held&historyLock], node.locks[held&budgetLock]:
			c.fault(pos, "holds %v and calls %s, by which %s takes it", held, f.Name(), callee.Name())
		case held&budgetLock != 0 && (node.locks[historyLock] || node.calls[nil]):
			c.fault(pos, "holds Budget.mu and calls %s, by which %s takes History.mu or calls a function value", f.Name(), callee.Name())
		case node.user:
			c.fault(pos, "holds %v and calls %s, by which %s calls the caller's code", held, f.Name(), callee.Name())
		default:
			continue
		}
		return // one fault is enough
	}
}

// reach returns the functions of the package that f calls, or that these call,
// f itself included. Calls in function literals that run later are left out.
func (g callGraph) reach(f *types.Func) map[*types.Func]bool {
	seen := map[*types.Func]bool{}
	var visit func(*types.Func)
	visit = func(f *types.Func) {
		node := g[f]
		if node == nil || seen[f] {
			return
		}
		seen[f] = true
		for callee := range node.calls {
			visit(callee)
		}
	}
	visit(f)
	return seen
}

func (l *loaded) structOf(name string) *types.Struct {
	return l.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct)
}
