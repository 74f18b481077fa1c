package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// A mutant is one way to break the code in one place.
type mutant struct {
	n    int // the number that switches it on
	file *file
	from int // it replaces the bytes from here
	to   int // up to here

	order int // its place among all mutants, in the order in which they were found

	function string
	hash     string // of the function
	kind     string
	text     string // the code that it replaces, on one line
	nth      int    // counts mutants with the same function, kind and text, from 1

	equivalent bool

	// code returns the code that takes the place of the text. show returns the code
	// of a part of the text.
	code func(show render) string
	// weave returns code that behaves like code if the expression is is true, and
	// like text otherwise.
	weave func(is, code, text string) string
}

type render = func(n ast.Node) string

// String describes a mutant by its function, kind and text, not by its position.
func (m *mutant) String() string {
	s := fmt.Sprintf("%s: %s: %s", m.function, m.kind, m.text)
	if m.nth > 1 {
		s += fmt.Sprintf(" (%d)", m.nth)
	}
	return s
}

// id is how the list of equivalent mutants names a mutant.
func (m *mutant) id() string { return m.hash + " " + m.String() }

// diff shows the lines of the file that the mutant changes. dir is the directory of the
// package.
func (m *mutant) diff(dir string) string {
	text := m.file.text
	code := m.code(func(n ast.Node) string { return text[m.file.offset(n.Pos()):m.file.offset(n.End())] })
	old, changed := strings.Split(text, "\n"), strings.Split(text[:m.from]+code+text[m.to:], "\n")
	first := 0
	for old[first] == changed[first] {
		first++
	}
	for len(old) > first && len(changed) > first && old[len(old)-1] == changed[len(changed)-1] {
		old, changed = old[:len(old)-1], changed[:len(changed)-1]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d\n", filepath.Join(dir, m.file.name), first+1)
	for _, line := range old[first:] {
		fmt.Fprintln(&b, "-"+line)
	}
	for _, line := range changed[first:] {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintln(&b, "+"+line)
		}
	}
	return b.String()
}

// weave returns the text of the file with the mutants in it.
func (f *file) weave(ms []*mutant) string {
	ms = slices.Clone(ms)
	slices.SortFunc(ms, func(a, b *mutant) int {
		// Outer mutants come first; for the same text, statements come before
		// expressions.
		return cmp.Or(a.from-b.from, b.to-a.to, a.order-b.order)
	})
	return f.weaveRange(ms, 0, len(f.text))
}

func (f *file) weaveRange(ms []*mutant, from, to int) string {
	var b strings.Builder
	for i, m := range ms {
		if m.from < from || m.to > to {
			continue
		}
		b.WriteString(f.text[from:m.from])
		inner := ms[i+1:]
		code := m.code(func(n ast.Node) string { return f.weaveRange(inner, f.offset(n.Pos()), f.offset(n.End())) })
		b.WriteString(m.weave(fmt.Sprintf("mutantIs(%d)", m.n), code, f.weaveRange(inner, m.from, m.to)))
		from = m.to
	}
	b.WriteString(f.text[from:to])
	return b.String()
}

// mutants returns all mutants of the package.
func (p *pkg) mutants() []*mutant {
	var all []*mutant
	seen := map[string]int{}
	for _, f := range p.files {
		for _, fd := range functions(f.syntax) {
			finder := &finder{p: p, file: f, function: nameOf(fd), hash: hashOf(fd), besideError: map[ast.Expr]bool{}}
			finder.walk(fd.Body, fd.Type)
			for _, m := range finder.found {
				seen[m.String()]++
				m.nth, m.order = seen[m.String()], len(all)
				all = append(all, m)
			}
		}
	}
	return all
}

func nameOf(fd *ast.FuncDecl) string {
	if fd.Recv == nil {
		return fd.Name.Name
	}
	return "(" + types.ExprString(fd.Recv.List[0].Type) + ")." + fd.Name.Name
}

// hashOf returns a hash of a function: of its name and its code, without comments.
func hashOf(fd *ast.FuncDecl) string {
	h := sha256.New()
	// With an empty FileSet the nodes have no positions, so that what is printed
	// does not depend on the layout.
	if err := printer.Fprint(h, token.NewFileSet(), fd); err != nil {
		panic(err) // fd is not valid
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// A finder finds the mutants of one function.
type finder struct {
	p        *pkg
	file     *file
	function string
	hash     string
	found    []*mutant

	besideError map[ast.Expr]bool // results returned beside an error, which mean nothing
}

func (f *finder) add(kind string, n ast.Node, code func(render) string, weave func(is, code, text string) string) {
	from, to := f.file.offset(n.Pos()), f.file.offset(n.End())
	f.found = append(f.found, &mutant{
		file: f.file, from: from, to: to, function: f.function, hash: f.hash, kind: kind,
		text: strings.Join(strings.Fields(f.file.text[from:to]), " "), code: code, weave: weave,
	})
}

// statement adds a mutant that replaces a statement.
func (f *finder) statement(kind string, n ast.Stmt, code func(render) string) {
	f.add(kind, n, code, func(is, code, text string) string {
		return fmt.Sprintf("if %s {\n%s\n} else {\n%s\n}", is, code, text)
	})
}

// expression adds a mutant that replaces an expression whose value is not constant.
func (f *finder) expression(kind string, n ast.Expr, code func(render) string) {
	t, ok := f.p.info.Types[n]
	if !ok || t.Value != nil || t.Type == nil {
		return
	}
	typ := f.typeString(types.Default(t.Type))
	f.add(kind, n, code, func(is, code, text string) string {
		return fmt.Sprintf("func() %s { if %s { return %s }; return %s }()", typ, is, code, text)
	})
}

func (f *finder) typeString(t types.Type) string {
	return types.TypeString(t, func(q *types.Package) string {
		if q.Path() == f.p.name {
			return ""
		}
		return q.Name()
	})
}

// walk finds the mutants in a body. fn is the type of the function that the body
// belongs to.
func (f *finder) walk(body ast.Node, fn *ast.FuncType) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type)
			return false
		case *ast.BlockStmt:
			f.statements(n.List, fn)
		case *ast.CaseClause:
			f.statements(n.Body, fn)
		case *ast.CommClause:
			f.statements(n.Body, fn)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, cond := range c.(*ast.CaseClause).List {
						f.condition(cond)
					}
				}
			}
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			f.once(n.Body)
		case *ast.RangeStmt:
			f.once(n.Body)
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.BasicLit:
			f.literal(n)
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				other := map[string]string{"true": "false", "false": "true"}[n.Name]
				f.add("other truth value", n, func(render) string { return other },
					func(is, _, text string) string { return "(" + text + " != " + is + ")" })
			}
		case *ast.CallExpr:
			f.call(n)
		}
		return true
	})
}

// condition adds the mutants of a condition that decides what runs.
func (f *finder) condition(cond ast.Expr) {
	for _, k := range []struct{ kind, code, woven string }{
		{"never", "(%s) && false", "((%s) && !%s)"},
		{"always", "(%s) || true", "((%s) || %s)"},
		{"negate", "!(%s)", "((%s) != %s)"},
	} {
		f.add(k.kind, cond, func(show render) string { return fmt.Sprintf(k.code, show(cond)) },
			func(is, _, text string) string { return fmt.Sprintf(k.woven, text, is) })
	}
}

// once adds a mutant that leaves a loop at the end of its body.
func (f *finder) once(body *ast.BlockStmt) {
	if len(body.List) == 0 {
		return
	}
	if _, ok := body.List[len(body.List)-1].(*ast.ReturnStmt); ok {
		return // its end is never reached
	}
	// last puts a statement at the end of the body.
	last := func(text, statement string) string {
		rest := strings.TrimRight(text[:len(text)-1], " \t\n")
		return rest + "\n" + statement + text[len(rest):]
	}
	f.add("loop once", body, func(show render) string { return last(show(body), "break") },
		func(is, _, text string) string { return last(text, "if "+is+" { break }") })
}

var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.QUO,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.INC: token.DEC, token.DEC: token.INC,
	token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK,
}

func (f *finder) binary(n *ast.BinaryExpr) {
	if other, ok := swaps[n.Op]; ok {
		f.expression(n.Op.String()+" to "+other.String(), n, func(show render) string {
			return fmt.Sprintf("(%s) %s (%s)", show(n.X), other, show(n.Y))
		})
	}
}

func (f *finder) literal(n *ast.BasicLit) {
	t := f.p.info.Types[n].Type
	if n.Kind != token.INT || t == nil || f.besideError[n] {
		return
	}
	if b, ok := t.Underlying().(*types.Basic); !ok || b.Info()&types.IsUntyped != 0 {
		return
	}
	typ := f.typeString(t)
	f.add("one more", n, func(render) string { return "(" + n.Value + " + 1)" }, func(is, _, text string) string {
		return fmt.Sprintf("func() %s { n := %[1]s(%s); if %s { n++ }; return n }()", typ, text, is)
	})
}

// copies lists functions that return a copy. Code that modifies neither the copy
// nor the original sees no difference without the call.
var copies = []string{"slices.Clone", "slices.Clip", "maps.Clone", "cloneAll", "validText"}

func (f *finder) call(n *ast.CallExpr) {
	name := types.ExprString(n.Fun)
	if other := map[string]string{"min": "max", "max": "min"}[name]; other != "" {
		f.expression(name+" to "+other, n, func(show render) string {
			var args []string
			for _, a := range n.Args {
				args = append(args, show(a))
			}
			return other + "(" + strings.Join(args, ", ") + ")"
		})
	}
	if slices.Contains(copies, name) && len(n.Args) == 1 {
		f.expression("no copy", n, func(show render) string { return show(n.Args[0]) })
	}
	if s, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 0 && (s.Sel.Name == "clone" || s.Sel.Name == "clipped") {
		f.expression("no copy", n, func(show render) string { return show(s.X) })
	}
}

func (f *finder) statements(list []ast.Stmt, fn *ast.FuncType) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.ForStmt, *ast.RangeStmt:
			f.remove(s)
		case *ast.IncDecStmt:
			f.remove(s)
			f.statement("count the other way", s, func(show render) string { return show(s.X) + swaps[s.Tok].String() })
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
			f.remove(s)
			if other, ok := swaps[s.Tok]; ok {
				f.statement(s.Tok.String()+" to "+other.String(), s, func(show render) string {
					return fmt.Sprintf("%s %s %s", show(s.Lhs[0]), other, show(s.Rhs[0]))
				})
			}
		case *ast.BranchStmt:
			f.remove(s)
			if other, ok := swaps[s.Tok]; ok && s.Label == nil {
				f.statement(s.Tok.String()+" to "+other.String(), s, func(render) string { return other.String() })
			}
		case *ast.ReturnStmt:
			f.remove(s)
			f.zero(s, fn)
			f.error(s, fn)
		}
	}
}

func (f *finder) remove(s ast.Stmt) { f.statement("remove", s, func(render) string { return "" }) }

// zero adds a mutant that returns zero values.
func (f *finder) zero(s *ast.ReturnStmt, fn *ast.FuncType) {
	already := true
	for _, r := range s.Results {
		switch text := types.ExprString(r); {
		case text == "nil", text == "0", text == `""`, text == "false", strings.HasSuffix(text, "{}"):
		default:
			already = false
		}
	}
	if already {
		return
	}
	var zeros []string
	for _, r := range fn.Results.List {
		for range max(len(r.Names), 1) {
			zeros = append(zeros, "*new("+types.ExprString(r.Type)+")")
		}
	}
	f.statement("return zero", s, func(render) string { return "return " + strings.Join(zeros, ", ") })
}

// error records the results that are returned beside an error. Callers must not
// use them, so they are not mutated.
func (f *finder) error(s *ast.ReturnStmt, fn *ast.FuncType) {
	n := len(s.Results)
	if n < 2 || types.ExprString(s.Results[n-1]) == "nil" || types.ExprString(fn.Results.List[len(fn.Results.List)-1].Type) != "error" {
		return
	}
	for _, r := range s.Results[:n-1] {
		f.besideError[r] = true
	}
}
