package repotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What go doc prints of the package stays short enough to be read.
func TestDoc_IsShort(t *testing.T) {
	inRoot(t)
	for _, tt := range []struct {
		args []string
		most int
	}{
		{[]string{"doc", "."}, 288},
		{[]string{"doc", "-all", "."}, 3_850},
	} {
		out, err := exec.Command("go", tt.args...).Output()
		require.NoError(t, err)
		lines := strings.Count(string(out), "\n")
		t.Logf("go %s: %d lines", strings.Join(tt.args, " "), lines)
		assert.LessOrEqual(t, lines, tt.most, "go %s", strings.Join(tt.args, " "))
	}
}

// Each exported type, function and method of the library has a comment that begins with its
// name and a whole sentence. A method Error needs none.
func TestDoc_NamesHaveComments(t *testing.T) {
	inRoot(t)
	files := globs(t, "*.go", "wire/*.go", "convotest/*.go", "convotest/provider/*.go", "recall/*.go", "mirror/*.go", "inspect/*.go",
		"filestore/*.go", "sqlstore/*.go", "clients/*.go", "clients/convo*/*.go", "adapters/*/*.go")
	names := 0
	check := func(path, name string, doc *ast.CommentGroup) {
		names++
		text := strings.TrimSpace(doc.Text())
		for _, article := range []string{"A ", "An ", "The "} {
			text = strings.TrimPrefix(text, article)
		}
		word, _, _ := strings.Cut(text, " ")
		assert.Equal(t, name, strings.Trim(word, ",:."), "%s: the comment of %s begins with another word", path, name)
		first, _, _ := strings.Cut(text, "\n\n")
		assert.True(t, strings.Contains(first, ".") || strings.HasSuffix(first, ":"), "%s: the comment of %s has no sentence", path, name)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Name.Name != "Error" && (d.Recv == nil || ast.IsExported(receiver(d))) {
					check(filepath.ToSlash(path), d.Name.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
						check(filepath.ToSlash(path), s.Name.Name, d.Doc)
					}
				}
			}
		}
	}
	assert.Greater(t, names, 500)
}

// receiver returns the name of the type that a method has.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	return t.(*ast.Ident).Name
}
