package modeltest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pruned returns the test files of a package by name, reduced to the tests that match a
// pattern and the declarations that these use. Most of the time of a mutant is the build
// of tests that do not run. Lines keep their numbers.
//
// Files of the package itself, such as export_test.go, stay unchanged.
func pruned(t *testing.T, dir, pattern string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	p := pruning{fset: token.NewFileSet(), byName: map[string][]*declaration{}}
	for _, name := range names {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(p.fset, name, source, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(file.Name.Name, "_test") {
			p.add(name, source, file)
		}
	}
	// The -run pattern of a subtest continues after a slash. Without what is in
	// parentheses, a pattern matches as many tests or more.
	var tests []string
	for one := range strings.SplitSeq(regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(pattern, ""), "|") {
		test, _, _ := strings.Cut(one, "/")
		tests = append(tests, test)
	}
	run := regexp.MustCompile(strings.Join(tests, "|"))
	for name, all := range p.byName {
		if name == "TestMain" || name == "init" || strings.HasPrefix(name, "Test") && run.MatchString(name) {
			p.keep(all)
		}
	}
	for _, f := range p.files {
		for _, d := range f.decls {
			if d.isFlag {
				p.keep([]*declaration{d})
			}
		}
	}
	texts := make(map[string]string)
	for _, f := range p.files {
		texts[f.name] = f.text()
	}
	return texts
}

// A pruning finds the declarations of a package that are used.
type pruning struct {
	fset   *token.FileSet
	files  []*prunedFile
	byName map[string][]*declaration // a method is declared by the name of its type
}

// A prunedFile is a file of a pruning.
type prunedFile struct {
	name    string
	source  []byte
	imports []*ast.ImportSpec
	decls   []*declaration
	base    int // the position of the first byte
}

// A declaration is a declaration at the top level of a file.
type declaration struct {
	first, last int // its position in the file
	uses        map[string]bool
	packages    map[string]bool // names before a dot, which may be those of packages
	isFlag      bool            // it defines a flag
	kept        bool
}

func (p *pruning) add(name string, source []byte, file *ast.File) {
	f := &prunedFile{name: name, source: source, imports: file.Imports, base: int(p.fset.File(file.FileStart).Base())}
	p.files = append(p.files, f)
	for _, decl := range file.Decls {
		d := &declaration{first: int(decl.Pos()) - f.base, last: int(decl.End()) - f.base, uses: map[string]bool{}, packages: map[string]bool{}}
		var doc *ast.CommentGroup
		var names []string
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			doc = decl.Doc
			names = []string{decl.Name.Name}
			if decl.Recv != nil {
				names = nil
				ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok && names == nil {
						names = []string{id.Name}
					}
					return true
				})
			}
		case *ast.GenDecl:
			if decl.Tok == token.IMPORT {
				continue
			}
			doc = decl.Doc
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
		if doc != nil {
			d.first = int(doc.Pos()) - f.base // it may hold a directive
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				d.uses[n.Name] = true
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok {
					d.packages[id.Name] = true
				}
			}
			return true
		})
		_, isFunc := decl.(*ast.FuncDecl)
		d.isFlag = !isFunc && d.uses["flag"]
		for _, name := range names {
			p.byName[name] = append(p.byName[name], d)
		}
		f.decls = append(f.decls, d)
	}
}

// keep keeps declarations and all that they use. Any name counts as a use of the
// declarations of that name, so keep may keep more than is used.
func (p *pruning) keep(some []*declaration) {
	for _, d := range some {
		if d.kept {
			continue
		}
		d.kept = true
		for name := range d.uses {
			p.keep(p.byName[name])
		}
	}
}

// text returns the file with only the declarations that are kept.
func (f *prunedFile) text() string {
	out := slices.Clone(f.source)
	blank := func(first, last int) {
		for i := first; i < last; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	uses := func(name string) bool {
		return slices.ContainsFunc(f.decls, func(d *declaration) bool { return d.kept && d.packages[name] })
	}
	for _, d := range f.decls {
		if !d.kept {
			blank(d.first, d.last)
		}
	}
	version := regexp.MustCompile(`/v\d+$`) // no part of the name of a package
	for _, spec := range f.imports {
		name := path.Base(version.ReplaceAllString(strings.Trim(spec.Path.Value, `"`), ""))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name != "_" && name != "." && !uses(name) {
			blank(int(spec.Pos())-f.base, int(spec.End())-f.base)
		}
	}
	return string(out)
}
