package main

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// changedPackages returns the directories of the packages of this module, in the current
// directory and below, in which Go files other than tests differ from a commit.
func changedPackages(base string) ([]string, error) {
	now, was, err := changes(".", base)
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	packages, err := command(".", "go", "list", "-f", "{{.Dir}}", "./...")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for dir := range strings.Lines(packages) {
		rel, err := filepath.Rel(here, strings.TrimSpace(dir))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(slices.Concat(now, was), func(name string) bool { return path.Dir(name) == filepath.ToSlash(rel) }) {
			dirs = append(dirs, rel)
		}
	}
	return dirs, nil
}

// touched reports for each function of the package, by its hash, whether it differs from
// the function as it was at a commit. A function that has moved does not differ.
func (p *pkg) touched(base string) (map[string]bool, error) {
	now, was, err := changes(p.dir, base)
	if err != nil {
		return nil, err
	}
	touched := map[string]bool{}
	for _, f := range p.files {
		if slices.Contains(now, f.name) {
			for _, fd := range functions(f.syntax) {
				touched[hashOf(fd)] = true
			}
		}
	}
	for _, name := range was {
		if strings.Contains(name, "/") {
			continue // of another package
		}
		text, err := command(p.dir, "git", "show", base+":./"+name)
		if err != nil {
			return nil, err
		}
		syntax, err := p.parse(name, text)
		if err != nil {
			return nil, fmt.Errorf("as of %s: %w", base, err)
		}
		for _, fd := range functions(syntax) {
			delete(touched, hashOf(fd))
		}
	}
	return touched, nil
}

func functions(f *ast.File) (all []*ast.FuncDecl) {
	for _, d := range f.Decls {
		if fd, ok := d.(*ast.FuncDecl); ok && fd.Body != nil {
			all = append(all, fd)
		}
	}
	return all
}

// changes returns the Go files other than tests, in a directory and below, that differ
// between a commit and the working tree: those of now, and those of the commit.
func changes(dir, base string) (now, was []string, err error) {
	if _, err := command(dir, "git", "rev-parse", "--verify", "--quiet", "--end-of-options", base+"^{commit}"); err != nil {
		return nil, nil, fmt.Errorf("-base: %q is no commit of a git repository at %s", base, dir)
	}
	files := func(args ...string) []string {
		out, e := command(dir, "git", append(args, "--", "*.go", ":!*_test.go")...)
		if e != nil {
			err = e
		}
		return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
	}
	diff := []string{"diff", "--relative", "--name-only", "--no-renames", "-z", base}
	now = append(files(append(diff, "--diff-filter=d")...), files("ls-files", "--others", "--exclude-standard", "-z")...)
	return now, files(append(diff, "--diff-filter=a")...), err
}
