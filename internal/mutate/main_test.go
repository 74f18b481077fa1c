package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func describe(ms []*mutant) (all []string) {
	for _, m := range ms {
		all = append(all, m.String())
	}
	return all
}

// The command reports the right survivors for the toy package.
func TestMutate(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds and runs a test binary")
	}
	p, err := load("testdata/toy")
	require.NoError(t, err)
	sample, refused := p.sample(p.mutants(), 0, 1, "", nil)
	assert.Equal(t, 3, refused, "removing the last return of a function does not compile")
	binary, err := p.build(t.TempDir(), sample)
	require.NoError(t, err)
	tests, err := newTests(binary, p.dir, 5*time.Second)
	require.NoError(t, err)
	assert.Equal(t, []string{"TestClamp", "TestCount"}, tests.quick)
	assert.Empty(t, tests.broken)

	var survivors []string
	killed := map[string]string{}
	for _, m := range sample {
		if by := tests.kill(m, false); by != "" {
			killed[m.String()] = by
		} else {
			survivors = append(survivors, m.String())
		}
	}
	assert.ElementsMatch(t, []string{
		"Clamp: < to <=: n < 0",
		"Clamp: > to >=: n > 9",
		"Clamp: one more: 0",
		"Clamp: one more: 9",
		"Unseen: > to >=: len(list) > 1",
		"Unseen: one more: 1",
		"Unseen: return zero: return len(list) > 1",
	}, survivors)
	assert.Equal(t, "TestClamp", killed["Clamp: negate: n < 0"])
	assert.Equal(t, "TestCount", killed["Count: loop once: { n-- steps++ }"])
	assert.Equal(t, "hangs: [TestCount]", killed["Count: remove: n--"])
}

// Moving functions to another place or file does not change the sample.
func TestSample_GoesByText(t *testing.T) {
	p, err := load("testdata/toy")
	require.NoError(t, err)
	text, err := os.ReadFile("testdata/toy/toy.go")
	require.NoError(t, err)
	head, body, _ := strings.Cut(string(text), "// Clamp")
	clamp, rest, _ := strings.Cut(body, "// Count")
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module toy\n\ngo 1.26\n")
	write("other.go", head+"// Count"+rest)
	write("second.go", "package toy\n\n// Clamp"+clamp)
	moved, err := load(dir)
	require.NoError(t, err)
	first, _ := p.sample(p.mutants(), 8, 7, "", nil)
	second, _ := moved.sample(moved.mutants(), 8, 7, "", nil)
	assert.Len(t, first, 8)
	assert.Equal(t, describe(first), describe(second))
	other, _ := p.sample(p.mutants(), 8, 8, "", nil)
	assert.NotEqual(t, describe(first), describe(other), "another seed")
}

// Equivalent mutants are tried, and do not count towards the size of the sample.
func TestSample_Equivalent(t *testing.T) {
	p, err := load("testdata/toy")
	require.NoError(t, err)
	plain, _ := p.sample(p.mutants(), 3, 1, "", nil)
	again, _ := p.sample(p.mutants(), 3, 1, "", map[string]bool{plain[1].String(): true})
	assert.Len(t, again, 4)
	assert.Equal(t, describe(plain), describe(again[:3]))
	assert.True(t, again[1].equivalent)
}

// No mutant leaves a loop at the end of its body if the body ends in a return.
func TestMutants_LoopThatReturns(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":   "module toy\n\ngo 1.26\n",
		"first.go": "package toy\n\nfunc First(list []int) int {\n\tfor _, n := range list {\n\t\treturn n\n\t}\n\treturn 0\n}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p, err := load(dir)
	require.NoError(t, err)
	all := p.mutants()
	require.NotEmpty(t, all)
	for _, m := range all {
		assert.NotEqual(t, "loop once", m.kind)
	}
}

func TestReadEquivalent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	for text, want := range map[string]map[string]bool{
		"# a comment\n\nF: remove: x()\n  because\n  of it\nG: never: y\n\twhy\n": {"F: remove: x()": true, "G: never: y": true},
		"F: remove: x()\nG: never: y\n  why\n":                                    nil,
		"F: remove: x()\n":                                                        nil,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		got, err := readEquivalent(name)
		if want == nil {
			require.ErrorContains(t, err, "no reason for F: remove: x()")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// Every mutant in the list exists in the code of a package.
func TestEquivalent_NamesWhatIsThere(t *testing.T) {
	known, err := readEquivalent("equivalent.txt")
	require.NoError(t, err)
	for _, dir := range []string{"../..", "../../filestore", "../../wire"} {
		p, err := load(dir)
		require.NoError(t, err)
		for _, m := range p.mutants() {
			delete(known, m.String())
		}
	}
	assert.Empty(t, known)
}
