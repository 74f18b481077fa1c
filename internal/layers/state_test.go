package layers_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stateWriters are the methods of state that write sys, list, their totals, turns
// and turn. clipped writes them in a copy, with the same entries.
var stateWriters = []string{"append", "cutTail", "putTail", "putOriginals", "replace", "count", "clipped"}

// stateOwners may also replace a whole state, or a struct that has one in it.
var stateOwners = map[string]string{
	"view.commit":            "puts the view in place that an edit has made",
	"Snapshot.UnmarshalJSON": "fills a snapshot that was read",
}

// entryMakers may write the fields of entries, because they make them: no view has these
// entries yet. The text of each states where the entries go.
var entryMakers = map[string]string{
	"setup.newEntries":    "to extend, setSystem and newEphemeral",
	"setup.identify":      "to extend",
	"view.join":           "to extend",
	"joining.admit":       "to join",
	"joining.place":       "to join",
	"identity.renumber":   "to admit",
	"identity.weigh":      "to newEntry, rewritten and the list of a loader",
	"entry.setOwn":        "to bindTo, replace and the list of a loader, before a view has it",
	"entry.setReads":      "to cleared, forgotten and rewritten",
	"entry.setContent":    "to append, replace and bindTo, before a view has it",
	"entry.setCounted":    "to Count, place, replace, newEphemeral and newSnapshot",
	"setup.answerOpen":    "to append",
	"view.setSystem":      "to replace",
	"entry.pairByID":      "to append, or to the list of a loader",
	"entry.take":          "to append, or to the list of a loader",
	"identity.cleared":    "to replace, as the copies of entries with results cleared",
	"identity.rewritten":  "to replace, as the copies of entries with other parts",
	"identity.forgotten":  "to cleared",
	"entry.replaced":      "to cleared, forgotten and useCuts",
	"attempt.useCuts":     "to replace, as the copies of entries with results cut",
	"setup.cut":           "to newEntries",
	"runner.append":       "to cutResults, as the IDs for the markers",
	"loader.place":        "to replace, as copies",
	"merger.batch":        "to append again, as copies",
	"loader.entry":        "to replace, like all of loader",
	"loader.check":        "to replace",
	"loader.results":      "to replace",
	"loader.answerOpen":   "to replace",
	"loader.add":          "to replace",
	"loader.follow":       "to replace",
	"newSnapshot":         "to replace",
	"stateJSON.finish":    "to replace",
	"readEntry":           "to finish",
	"stateJSON.keep":      "to a record, as copies",
	"setHeads":            "to replace",
	"splitSystem":         "to replace",
	"resumer.nameResults": "to replace",
	"entry.replay":        "to replace, as the entries of a resumer",
}

// Five methods of state write sys, list, originals, their totals, turns and turn. No
// other code does, except clipped. The other fields of state are not checked. Only the
// functions that make entries write to them, before they are in a view.
//
// Within a function, the test follows a list of entries through local variables, without
// regard to the order of statements or to branches: a variable that is ever a list of a
// state always counts as a list. The test records the parameters through which functions
// of the package write. A function of another package counts as writing to its arguments,
// except the functions of readers.
//
// It does not find writes through a list from a field of another struct, a channel, or
// the result of a function; uses of the address of an entry or of a part of an entry; or
// a whole state that is overwritten through a struct of another name. In a function that
// makes entries, it only finds writes to an entry after the line that hands over the
// first entry.
func TestState_Writers(t *testing.T) {
	pkg := loadPackage(t, "")
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
	for _, field := range []string{"sys", "list", "sysRaw", "listRaw", "turns", "turn", "originals", "originalRaw", "fold", "sysFold"} {
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
	lists  map[types.Object]bool // variables of the current function that are lists of a state
}

// each calls do for each declaration. The writer argument reports whether it is one of
// stateWriters.
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
			if f, ok := w.callee(call).(*types.Func); ok && f.Pkg() == w.pkg && (f.Name() == "push" || f.Name() == "append" || f.Name() == "replace" || f.Name() == "load" && f.Signature().Params().Len() == 3) {
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

// isReader reports whether a function of another package only reads its slice arguments.
func isReader(f *types.Func) bool {
	readers := []string{"All", "Backward", "BinarySearch", "BinarySearchFunc", "Clip", "Clone", "Collect", "Concat", "Contains", "ContainsFunc", "Equal", "EqualFunc", "Index", "IndexFunc", "IsSorted", "IsSortedFunc", "MaxFunc", "MinFunc", "Values"}
	if f.Pkg() == nil {
		return false
	}
	path := f.Pkg().Path()
	return path == "slices" && slices.Contains(readers, f.Name()) || strings.HasSuffix(path, "/internal/kept") || strings.HasSuffix(path, "/internal/ranges") && f.Name() == "Merge"
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

// callee returns the function that a call names, or nil if it has no name.
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

// sliceOf reports whether an expression is a list of a state, or a slice of one. The root
// is the variable that it is a slice of, if any.
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
		type view struct { state }
		type History struct { other int; view }
		type Snapshot struct { owner *History; state }
		func (s *state) append(e *entry) { s.list = append(s.list, e) }
		func (s *state) cutTail(n int) { clear(s.list[n:]) }
		func (s *state) replace(list []*entry) { s.sys, s.list = nil, list }
		func (s *state) load(list []*entry) { s.replace(list) }
		func (s *state) clipped() state { c := *s; c.list = c.list[:1:1]; return c }
		func (v *view) push(e *entry) { v.append(e) }
		func (v *view) commit(next state) { v.state = next }
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
		{"before it was appended", "func (v *view) join(e *entry) { e.turn = 1; v.push(e) }", ""},
		{"after it was appended", "func (v *view) join(e *entry) { v.push(e); e.turn = 1 }", "after it has handed one over"},
		{"method of the same name", "type x struct { *state }\nfunc (x x) append() { x.turn = 1 }", "writes state.turn"},
	}
	for i := range cases {
		cases[i].source = writers + cases[i].source
	}
	checkSources(t, common, "x.go", cases, func(l *loaded) []string { faults, _ := l.stateFaults(); return faults })
}
