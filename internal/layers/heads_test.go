package layers_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The head of an if or switch has at most one statement before its condition, and the
// condition is about what that statement has set. A statement that sets anything else,
// or sets a variable of the lines around it, is written before the if or switch.
//
// An if may set the error, pointer or bool that it asks about, as in
// "if x, err = f(); err != nil" and "if x, ok = f(); !ok".
func TestHeads(t *testing.T) {
	for _, tt := range []struct {
		folder string
		most   int
	}{{"", 0}, {"wire", 0}} {
		faults := loadPackage(t, tt.folder).headFaults()
		if !assert.LessOrEqual(t, len(faults), tt.most, "package in folder %q", tt.folder) {
			for _, fault := range faults {
				t.Log(fault)
			}
		}
	}
}

// headFaults returns the statements in heads that belong on a line of their own.
func (l *loaded) headFaults() (faults []string) {
	for _, file := range l.ast {
		ast.Inspect(file, func(n ast.Node) bool {
			var init ast.Stmt
			var asks ast.Node
			switch n := n.(type) {
			case *ast.IfStmt:
				init, asks = n.Init, n.Cond
			case *ast.TypeSwitchStmt:
				init, asks = n.Init, n.Assign
			case *ast.SwitchStmt:
				init, asks = n.Init, n.Tag
				if n.Tag == nil {
					asks = n.Body
				}
			}
			if init != nil && !l.isAbout(init, asks) {
				faults = append(faults, fmt.Sprintf("%s: a statement in the head that its condition is not about", l.fset.Position(init.Pos())))
			}
			return true
		})
	}
	return faults
}

// isAbout reports whether a condition asks about a variable that init declares, or is an
// error or bool that init sets.
func (l *loaded) isAbout(init ast.Stmt, asks ast.Node) bool {
	set, ok := init.(*ast.AssignStmt)
	if !ok {
		return false
	}
	if set.Tok != token.DEFINE {
		switch c := asks.(type) {
		case *ast.BinaryExpr: // err != nil
			asks = c.X
			if nothing, ok := c.Y.(*ast.Ident); !ok || nothing.Name != "nil" {
				return false
			}
		case *ast.UnaryExpr: // !ok
			asks = c.X
		}
		if _, ok := asks.(*ast.Ident); !ok {
			return false
		}
	}
	about := false
	for _, left := range set.Lhs {
		if id, ok := left.(*ast.Ident); ok {
			obj := l.info.ObjectOf(id)
			ast.Inspect(asks, func(n ast.Node) bool {
				used, ok := n.(*ast.Ident)
				about = about || ok && l.info.Uses[used] == obj
				return true
			})
		}
	}
	return about
}

func TestHeads_Refuses(t *testing.T) {
	common := map[string]string{"common.go": `package convo
		func f() (int, error) { return 0, nil }
		func g() (int, bool) { return 0, false }`}
	const fault = "a statement in the head"
	checkSources(t, common, "a.go", []checkedSource{
		{"an error", "func h() { if _, err := f(); err != nil {} }", ""},
		{"a bool", "func h() { if x, ok := g(); ok && x > 0 {} }", ""},
		{"an error of the function", "func h() (err error) { if _, err = f(); err != nil {}; return }", ""},
		{"a bool of the function", "func h() (ok bool) { if _, ok = g(); !ok {}; return }", ""},
		{"a switch", "func h() { switch x, _ := g(); { case x > 0: } }", ""},
		{"another condition", "func h() (x int) { if x = 1; h() > 0 {}; return x }", fault},
		{"a number", "func h() (x int) { if x = 1; x > 0 {}; return x }", fault},
		{"a condition with more", "func h() (ok bool) { if _, ok = g(); ok && h() {}; return ok }", fault},
		{"a count", "func h(x int) { switch x++; { case x > 0: } }", fault},
		{"a call", "func h(x int) { if f(); x > 0 {} }", fault},
		{"a variable for the body", "func h(y int) { if x, _ := g(); y > 0 { _ = x } }", fault},
	}, (*loaded).headFaults)
}
