package layers_test

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Functions are short enough to be read at once. The bounds on those with more lines are what
// there is now: lower them when a function gets shorter.
func TestLengths(t *testing.T) {
	for _, tt := range []struct {
		folder string
		most   int
	}{{"", 23}, {"wire", 89}} {
		faults := loadPackage(t, tt.folder).longFunctions()
		if !assert.LessOrEqual(t, len(faults), tt.most, "package in folder %q", tt.folder) {
			t.Log(strings.Join(faults, "\n"))
		}
	}
}

// longFunctions returns the functions with more than mostLines lines.
func (l *loaded) longFunctions() (faults []string) {
	for _, file := range l.ast {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if n := l.lines(d); n > mostLines {
					faults = append(faults, fmt.Sprintf("%s: %s has %d lines", l.fset.Position(d.Pos()), d.Name.Name, n))
				}
			}
		}
	}
	return faults
}

// lines returns how many lines a function has.
func (l *loaded) lines(d *ast.FuncDecl) int {
	return l.fset.Position(d.End()).Line - l.fset.Position(d.Pos()).Line + 1
}

func TestLengths_AreFound(t *testing.T) {
	checkSources(t, map[string]string{}, "a.go", []checkedSource{
		{"short", "func f() {" + strings.Repeat("\n", mostLines-1) + "}", ""},
		{"long", "func f() {" + strings.Repeat("\n", mostLines) + "}", "f has 41 lines"},
		{"a comment before it", strings.Repeat("// word\n", mostLines) + "func f() {}", ""},
	}, (*loaded).longFunctions)
}
