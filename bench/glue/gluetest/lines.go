package gluetest

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"strings"
)

// lines counts the lines of code of a Go file below its imports. Blank lines, and
// lines that hold nothing but a comment, do not count.
func lines(name string) (int, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, name, src, parser.ImportsOnly)
	if err != nil {
		return 0, err
	}
	first := syntax.Name.End()
	if len(syntax.Decls) > 0 {
		first = syntax.Decls[len(syntax.Decls)-1].End()
	}
	begin := files.Position(first).Line + 1
	file := token.NewFileSet().AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	code := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // not in the file
		}
		line := file.Line(pos)
		for i := range 1 + strings.Count(text, "\n") { // a raw string may have several
			code[line+i] = line >= begin
		}
	}
	n := 0
	for _, counts := range code {
		if counts {
			n++
		}
	}
	return n, nil
}
