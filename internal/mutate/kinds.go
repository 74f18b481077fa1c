package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
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
	kind     string
	text     string // the code that it replaces, on one line
	nth      int    // counts mutants with the same function, kind and text, from 1

	equivalent bool
	write      func(m *mutant, show func(n ast.Node) string) string
}

// String describes a mutant by its function, kind and text, not by its position.
func (m *mutant) String() string {
	s := fmt.Sprintf("%s: %s: %s", m.function, m.kind, m.text)
	if m.nth > 1 {
		s += fmt.Sprintf(" (%d)", m.nth)
	}
	return s
}

// is returns a Go expression that is true when the mutant is switched on.
func (m *mutant) is() string { return fmt.Sprintf("mutantIs(%d)", m.n) }

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
		b.WriteString(m.write(m, func(n ast.Node) string {
			return f.weaveRange(inner, int(n.Pos()-f.syntax.FileStart), int(n.End()-f.syntax.FileStart))
		}))
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
		for _, d := range f.syntax.Decls {
			fd, ok := d.(*ast.FuncDecl)
			if !ok || fd.Body == nil {
				continue
			}
			finder := &finder{p: p, file: f, function: nameOf(fd), besideError: map[ast.Expr]bool{}}
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

// A finder finds the mutants of one function.
type finder struct {
	p        *pkg
	file     *file
	function string
	found    []*mutant

	besideError map[ast.Expr]bool // results returned beside an error, which mean nothing
}

func (f *finder) add(kind string, n ast.Node, write func(m *mutant, show func(ast.Node) string) string) {
	from, to := int(n.Pos()-f.file.syntax.FileStart), int(n.End()-f.file.syntax.FileStart)
	f.found = append(f.found, &mutant{
		file: f.file, from: from, to: to, function: f.function, kind: kind,
		text: strings.Join(strings.Fields(f.file.text[from:to]), " "), write: write,
	})
}

// either adds a mutant that replaces an expression with another.
func (f *finder) either(kind string, n ast.Expr, other func(show func(ast.Node) string) string) {
	t, ok := f.p.info.Types[n]
	if !ok || t.Value != nil || t.Type == nil {
		return
	}
	typ := types.TypeString(types.Default(t.Type), func(q *types.Package) string {
		if q.Path() == f.p.name {
			return ""
		}
		return q.Name()
	})
	f.add(kind, n, func(m *mutant, show func(ast.Node) string) string {
		return fmt.Sprintf("func() %s { if %s { return %s }; return %s }()", typ, m.is(), other(show), show(n))
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
				f.add("other truth value", n, func(m *mutant, _ func(ast.Node) string) string {
					return "(" + n.Name + " != " + m.is() + ")"
				})
			}
		case *ast.CallExpr:
			f.call(n)
		}
		return true
	})
}

// condition adds the mutants of a condition that decides what runs.
func (f *finder) condition(cond ast.Expr) {
	for kind, form := range map[string]string{"never": "((%s) && !%s)", "always": "((%s) || %s)", "negate": "((%s) != %s)"} {
		f.add(kind, cond, func(m *mutant, show func(ast.Node) string) string { return fmt.Sprintf(form, show(cond), m.is()) })
	}
}

func (f *finder) once(body *ast.BlockStmt) {
	if len(body.List) == 0 {
		return
	}
	if _, ok := body.List[len(body.List)-1].(*ast.ReturnStmt); ok {
		return // its end is never reached
	}
	f.add("loop once", body, func(m *mutant, show func(ast.Node) string) string {
		text := show(body)
		return text[:len(text)-1] + "\nif " + m.is() + " { break }\n}"
	})
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
		f.either(n.Op.String()+" to "+other.String(), n, func(show func(ast.Node) string) string {
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
	typ := types.TypeString(t, func(q *types.Package) string {
		if q.Path() == f.p.name {
			return ""
		}
		return q.Name()
	})
	f.add("one more", n, func(m *mutant, _ func(ast.Node) string) string {
		return fmt.Sprintf("(%s + %s(mutantOne(%d)))", n.Value, typ, m.n)
	})
}

// copies lists functions that return a copy. Code that modifies neither the copy
// nor the original sees no difference without the call.
var copies = []string{"slices.Clone", "slices.Clip", "maps.Clone", "cloneAll", "validText"}

func (f *finder) call(n *ast.CallExpr) {
	name := types.ExprString(n.Fun)
	if other := map[string]string{"min": "max", "max": "min"}[name]; other != "" {
		f.either(name+" to "+other, n, func(show func(ast.Node) string) string {
			var args []string
			for _, a := range n.Args {
				args = append(args, show(a))
			}
			return other + "(" + strings.Join(args, ", ") + ")"
		})
	}
	if slices.Contains(copies, name) && len(n.Args) == 1 {
		f.either("no copy", n, func(show func(ast.Node) string) string { return show(n.Args[0]) })
	}
	if s, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 0 && (s.Sel.Name == "clone" || s.Sel.Name == "clipped") {
		f.either("no copy", n, func(show func(ast.Node) string) string { return show(s.X) })
	}
}

func (f *finder) statements(list []ast.Stmt, fn *ast.FuncType) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.ForStmt, *ast.RangeStmt:
			f.remove(s)
		case *ast.IncDecStmt:
			f.remove(s)
			f.add("count the other way", s, func(m *mutant, show func(ast.Node) string) string {
				return fmt.Sprintf("if %s { %s%s } else { %s }", m.is(), show(s.X), swaps[s.Tok], show(s))
			})
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
			f.remove(s)
			if other, ok := swaps[s.Tok]; ok {
				f.add(s.Tok.String()+" to "+other.String(), s, func(m *mutant, show func(ast.Node) string) string {
					return fmt.Sprintf("if %s { %s %s %s } else { %s }", m.is(), show(s.Lhs[0]), other, show(s.Rhs[0]), show(s))
				})
			}
		case *ast.BranchStmt:
			f.remove(s)
			if other, ok := swaps[s.Tok]; ok && s.Label == nil {
				f.add(s.Tok.String()+" to "+other.String(), s, func(m *mutant, show func(ast.Node) string) string {
					return fmt.Sprintf("if %s { %s }; %s", m.is(), other, show(s))
				})
			}
		case *ast.ReturnStmt:
			f.remove(s)
			f.zero(s, fn)
			f.error(s, fn)
		}
	}
}

func (f *finder) remove(s ast.Stmt) {
	f.add("remove", s, func(m *mutant, show func(ast.Node) string) string {
		return "if !" + m.is() + " {\n" + show(s) + "\n}"
	})
}

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
	f.add("return zero", s, func(m *mutant, show func(ast.Node) string) string {
		return fmt.Sprintf("if %s { return %s }\n%s", m.is(), strings.Join(zeros, ", "), show(s))
	})
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
