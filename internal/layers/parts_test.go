package layers_test

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parts are the parts of a History, each with the files that alone may use its fields.
var parts = map[string][]string{
	"view":      {"view.go", "estimate.go", "state.go", "append.go", "set.go", "pin.go", "request.go", "rollback.go", "edit_apply.go", "queue.go", "calls.go", "restore.go", "import.go", "reload.go", "snapshot.go"},
	"meter":     {"limits.go"},
	"compactor": {"compactor.go"},
	"talk":      {"talk.go"},
	"spills":    {"spill.go"},
	"recorder":  {"log.go"},
	"refusals":  {"talk.go"},
}

// What a History may have at most: methods and functions that take one, lines in each of
// them, and kinds of calls of its parts.
const (
	mostMethods = 120
	mostLines   = 40
	mostCalls   = 40
)

// The fields of a part are used only in its own files, and there by no function that has a
// History. A part holds no History and no other part. The view is a value that every part may
// read, so for the fields of its state and its past only writes are checked.
func TestParts(t *testing.T) {
	pkg := loadPackage(t, "")
	for _, fault := range pkg.partFaults(parts) {
		t.Error(fault)
	}
}

// The methods of History are few and short.
func TestParts_Methods(t *testing.T) {
	pkg := loadPackage(t, "")
	n := 0
	pkg.functions(func(d *ast.FuncDecl, name string, has bool) {
		if !has {
			return
		}
		n++
		if lines := pkg.lines(d); lines > mostLines {
			t.Errorf("%s: %s has %d lines, more than %d", pkg.fset.Position(d.Pos()), name, lines, mostLines)
		}
	})
	assert.LessOrEqual(t, n, mostMethods, "methods of History and functions that take one")
}

// ARCHITECTURE.md lists what the parts are asked.
func TestParts_Calls(t *testing.T) {
	pkg := loadPackage(t, "")
	calls := pkg.partCalls(parts)
	assert.LessOrEqual(t, len(calls), mostCalls)
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(page), "<!-- calls -->")
	list, _, found := strings.Cut(list, "<!-- end of calls -->")
	require.True(t, found)
	var want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(list, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[2], -1) {
			want = append(want, row[1]+"."+name[1])
		}
	}
	slices.Sort(want)
	assert.Equal(t, want, calls, "the list in ARCHITECTURE.md")
}

// functions calls do for each function, with whether it is a method of History or takes one.
func (l *loaded) functions(do func(d *ast.FuncDecl, name string, has bool)) {
	history := types.NewPointer(l.pkg.Scope().Lookup("History").Type())
	for _, f := range l.ast {
		for _, d := range f.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			sig := l.info.Defs[d.Name].(*types.Func).Signature()
			name, has := d.Name.Name, false
			if recv := sig.Recv(); recv != nil {
				name, has = receiverOf(recv)+"."+name, types.Identical(recv.Type(), history)
			}
			for p := range sig.Params().Variables() {
				has = has || types.Identical(p.Type(), history)
			}
			do(d, name, has)
		}
	}
}

// partFaults returns what breaks the rules of TestParts.
func (l *loaded) partFaults(parts map[string][]string) (faults []string) {
	owner := map[types.Object]string{} // of each field
	for part := range parts {
		s := l.pkg.Scope().Lookup(part).Type().Underlying().(*types.Struct)
		for f := range s.Fields() {
			owner[f] = part
			if held := l.holds(f.Type(), parts, map[types.Type]bool{}); held != "" && !f.Embedded() {
				faults = append(faults, fmt.Sprintf("%s: field %s of %s holds a %s", l.fset.Position(f.Pos()), f.Name(), part, held))
			}
		}
	}
	state := map[types.Object]bool{}
	for _, name := range []string{"state", "figures", "past"} {
		for f := range l.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct).Fields() {
			state[f] = true
		}
	}
	l.functions(func(d *ast.FuncDecl, name string, has bool) {
		file := l.fileOf(d.Pos())
		fault := func(n ast.Node, text string) {
			faults = append(faults, fmt.Sprintf("%s: %s %s", l.fset.Position(n.Pos()), name, text))
		}
		written := l.writtenIn(d)
		ast.Inspect(d, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || l.info.Selections[sel] == nil || l.info.Selections[sel].Kind() != types.FieldVal {
				return true
			}
			obj := origin(l.info.Uses[sel.Sel])
			part := owner[obj]
			if state[obj] && written[sel] {
				part = "view"
			}
			switch {
			case part == "" || obj.Name() == "state" || obj.Name() == "past":
			case !slices.Contains(parts[part], file):
				fault(sel, fmt.Sprintf("uses %s of %s, a field for %s", obj.Name(), part, strings.Join(parts[part], ", ")))
			case has:
				fault(sel, fmt.Sprintf("has a History and uses %s of %s", obj.Name(), part))
			}
			return true
		})
	})
	slices.Sort(faults)
	return faults
}

// writtenIn returns what a function assigns to.
func (l *loaded) writtenIn(d *ast.FuncDecl) map[ast.Expr]bool {
	written := map[ast.Expr]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				written[e] = true
			}
		case *ast.IncDecStmt:
			written[n.X] = true
		}
		return true
	})
	return written
}

// holds returns what a type must not hold: History or a part, at any depth. It looks through
// the types of the package that are not exported.
func (l *loaded) holds(t types.Type, parts map[string][]string, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	var inside []types.Type
	switch u := t.(type) {
	case *types.Named:
		obj := u.Obj()
		if obj.Pkg() != l.pkg {
			return ""
		}
		if name := obj.Name(); name == "History" || parts[name] != nil && name != "view" {
			return name
		}
		if obj.Exported() {
			return ""
		}
		inside = append(inside, u.Underlying())
	case *types.Pointer:
		inside = append(inside, u.Elem())
	case *types.Slice:
		inside = append(inside, u.Elem())
	case *types.Map:
		inside = append(inside, u.Key(), u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			inside = append(inside, f.Type())
		}
	case *types.Signature:
		for p := range u.Params().Variables() {
			inside = append(inside, p.Type())
		}
	}
	for _, t := range inside {
		if held := l.holds(t, parts, seen); held != "" {
			return held
		}
	}
	return ""
}

// partCalls returns the methods of parts that are called from other files than those of the
// part, or by functions that have a History. Those of the view are not among them.
func (l *loaded) partCalls(parts map[string][]string) []string {
	calls := map[string]bool{}
	l.functions(func(d *ast.FuncDecl, _ string, has bool) {
		ast.Inspect(d, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || l.info.Selections[sel] == nil || l.info.Selections[sel].Kind() == types.FieldVal {
				return true
			}
			m := l.info.Uses[sel.Sel].(*types.Func)
			recv := m.Signature().Recv()
			part := receiverOf(recv)
			if parts[part] != nil && part != "view" && (has || !slices.Contains(parts[part], l.fileOf(d.Pos()))) {
				calls[part+"."+m.Name()] = true
			}
			return true
		})
	})
	return slices.Sorted(maps.Keys(calls))
}
