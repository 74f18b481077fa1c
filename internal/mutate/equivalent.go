package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readEquivalent reads the list of equivalent mutants. An entry is the hash of the
// function and the description of the mutant. Indented lines give the reason for the
// mutant above them, and "#" begins a comment. An entry whose function has changed
// has no effect, because no function has its hash.
func readEquivalent(name string) (map[string]bool, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	last, reason := "", true
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			reason = true
		case !reason:
			return nil, fmt.Errorf("%s: no reason for %s", name, last)
		default:
			last, reason = line, false
			known[line] = true
		}
	}
	if !reason {
		return nil, fmt.Errorf("%s: no reason for %s", name, last)
	}
	return known, nil
}

// prune removes the entries from the list whose function is not in a Go file of root or
// of a directory below.
func prune(name, root string) error {
	hashes := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" && path != root {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, fd := range functions(syntax) {
			hashes[hashOf(fd)] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var kept strings.Builder
	drop := false
	for line := range strings.Lines(string(data)) {
		if strings.IndexAny(line, " \t") != 0 { // not a reason
			hash, mutant, ok := strings.Cut(line, " ")
			if drop = ok && hash[0] != '#' && !hashes[hash]; drop {
				fmt.Print("removed, because the function has changed: ", mutant)
			}
		}
		if !drop {
			kept.WriteString(line)
		}
	}
	return os.WriteFile(name, []byte(kept.String()), 0o644)
}
