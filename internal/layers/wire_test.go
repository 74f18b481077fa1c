package layers_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// formats are the prefixes of the file names of the formats.
var formats = []string{"anthropic", "converse", "gemini", "openai_chat", "openai_responses"}

// formatOf returns the format that a file of wire belongs to, or "".
func formatOf(file string) string {
	for _, f := range formats {
		if rest, ok := strings.CutPrefix(file, f); ok && (rest[0] == '_' || rest[0] == '.') {
			return f
		}
	}
	return ""
}

// A file of wire uses only its own layer and lower layers, and no file of a format uses
// another format.
func TestLayers_Wire(t *testing.T) {
	layers := readLayers(t, "wire", "wire.md")
	pkg := loadPackage(t, "wire")
	for _, file := range pkg.files() {
		assert.Positive(t, layers[file], "%s is in no layer; add it to the list in internal/layers/wire.md", file)
	}
	for _, fault := range pkg.layerFaults(layers, nil) {
		t.Error(fault)
	}
	for _, fault := range pkg.formatFaults() {
		t.Error(fault)
	}
	cycles := pkg.cycles()
	for _, c := range cycles {
		if len(c) > 1 {
			t.Logf("%d files use each other: %s", len(c), strings.Join(c, " "))
		}
	}
	for _, c := range cycles {
		for _, file := range c {
			assert.Equal(t, layers[c[0]], layers[file], "%s and %s use each other from two layers", c[0], file)
		}
	}
	assert.LessOrEqual(t, len(cycles[0]), 6, "files that use each other cannot be read one after the other")
}

// formatFaults returns the uses of one format in the files of another.
func (l *loaded) formatFaults() (faults []string) {
	for _, u := range l.uses() {
		if from, in := formatOf(u.from), formatOf(u.in); from != "" && in != "" && from != in {
			faults = append(faults, fmt.Sprintf("%s: %s uses %s of %s", u.at, u.from, u.obj.Name(), u.in))
		}
	}
	return faults
}

// cycles returns the groups of files that use each other, the largest first.
func (l *loaded) cycles() (groups [][]string) {
	uses := map[string]map[string]bool{}
	for _, file := range l.files() {
		uses[file] = map[string]bool{}
	}
	for _, u := range l.uses() {
		uses[u.from][u.in] = true
	}
	reach := map[string]map[string]bool{}
	var visit func(seen map[string]bool, file string)
	visit = func(seen map[string]bool, file string) {
		for next := range uses[file] {
			if !seen[next] {
				seen[next] = true
				visit(seen, next)
			}
		}
	}
	for file := range uses {
		reach[file] = map[string]bool{}
		visit(reach[file], file)
	}
	for done, rest := map[string]bool{}, slices.Sorted(maps.Keys(uses)); len(rest) > 0; rest = rest[1:] {
		if done[rest[0]] {
			continue
		}
		group := []string{rest[0]}
		for _, other := range rest[1:] {
			if reach[rest[0]][other] && reach[other][rest[0]] {
				group, done[other] = append(group, other), true
			}
		}
		groups = append(groups, group)
	}
	slices.SortStableFunc(groups, func(a, b []string) int { return cmp.Compare(len(b), len(a)) })
	return groups
}

func TestLayers_WireRefuses(t *testing.T) {
	common := map[string]string{
		"gemini.go": `package convo
			func part() int { return shared }`,
		"shared.go": `package convo
			const shared = 1`,
	}
	checkSources(t, common, "anthropic_decode.go", []checkedSource{
		{"another format", "var x = part()", "anthropic_decode.go uses part of gemini.go"},
		{"what is shared", "var x = shared", ""},
	}, (*loaded).formatFaults)
	l := loadSources(t, map[string]string{
		"a.go": "package convo\nfunc a() { b() }",
		"b.go": "package convo\nfunc b() { c() }",
		"c.go": "package convo\nfunc c() { a() }",
		"d.go": "package convo\nfunc d() { a() }",
	})
	assert.Equal(t, [][]string{{"a.go", "b.go", "c.go"}, {"d.go"}}, l.cycles())
}
