package main

import (
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-c1b73e60/convo/internal/long"
)

func describe(ms []*mutant) (all []string) {
	for _, m := range ms {
		all = append(all, m.String())
	}
	return all
}

// write writes files of a module into a new directory.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	add(t, dir, map[string]string{"go.mod": "module toy\n\ngo 1.26\n"})
	add(t, dir, files)
	return dir
}

func add(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// toy returns the files of the toy package.
func toy(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"toy.go", "toy_test.go"} {
		text, err := os.ReadFile("testdata/toy/" + name)
		require.NoError(t, err)
		files[name] = string(text)
	}
	return files
}

// noRepository removes the variables that tell git to use another repository than that of
// its folder, as a hook of git has them, and the configuration of the user. Without git it
// skips the test.
func noRepository(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "") // sets it back after the test
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
}

// commit commits everything in dir to a new git repository there.
func commit(t *testing.T, dir string) {
	t.Helper()
	noRepository(t)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"}} {
		_, err := command(dir, "git", args...)
		require.NoError(t, err)
	}
}

// The command reports the right survivors for the toy package.
func TestMutate(t *testing.T) {
	long.Only(t, "builds and runs a test binary")
	p, err := load("testdata/toy")
	require.NoError(t, err)
	sample, refused := p.sample(p.mutants(), 0, 1, "", nil)
	assert.Equal(t, 3, refused, "removing the last return of a function does not compile")
	binary, err := p.build(t.TempDir(), sample)
	require.NoError(t, err)
	tests, err := newTests(binary, p.dir, 2*time.Second)
	require.NoError(t, err)
	assert.Equal(t, []string{"TestClamp", "TestCount"}, tests.quick)
	assert.Empty(t, tests.broken)

	var survivors []string
	killed := map[string]string{}
	for _, m := range sample {
		if by := tests.kill(m); by != "" {
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

// With -base, the command tries the functions that have changed, and names packages
// without tests. The tests run in their default form.
func TestMutate_Base(t *testing.T) {
	long.Only(t, "builds and runs a test binary")
	files := toy(t)
	files["toy_test.go"] += "\nfunc TestUnseen(t *testing.T) {\n\tif os.Getenv(\"CONVO_LONG\") == \"1\" {\n\t\tt.Fatal(\"long\")\n\t}\n\tUnseen(nil)\n}\n"
	files["toy_test.go"] = strings.Replace(files["toy_test.go"], "import \"testing\"", "import (\n\t\"os\"\n\t\"testing\"\n)", 1)
	files["none/none.go"] = "package none\n"
	dir := write(t, files)
	commit(t, dir)
	add(t, dir, map[string]string{
		"toy.go":       strings.Replace(files["toy.go"], "return len(list) > 1", "return len(list) != 7", 1),
		"none/none.go": "package none\n\nfunc None() bool { return true }\n",
	})
	t.Chdir(dir)
	*base = "HEAD"
	defer func() { *base = "" }()
	dirs, err := changedPackages(*base)
	require.NoError(t, err)
	assert.Equal(t, []string{".", "none"}, dirs)
	var r result
	for _, dir := range dirs {
		require.NoError(t, r.try(dir, nil))
	}
	assert.Equal(t, 3, r.tried)
	require.Len(t, r.survived, 3)
	for _, s := range r.survived {
		assert.Contains(t, s, " Unseen: ")
		assert.Contains(t, s, "\ntoy.go:25\n-func Unseen(list []string) bool { return len(list) != 7 }\n+func Unseen(list []string) bool {")
	}
	*base = ""
	assert.ErrorIs(t, r.try("none", nil), errNoTests)
}

// Only functions that have changed are touched, wherever they are.
func TestTouched(t *testing.T) {
	files := map[string]string{
		"a.go":          "package toy\n\nfunc A() int { return 1 }\n\nfunc B() int {\n\treturn 2\n}\n\nfunc C() int { return 3 }\n",
		"same.go":       "package toy\n\nfunc Same() int { return 1 }\n",
		"sub/a.go":      "package sub\n\nfunc A() int { return 1 }\n",
		"sub/b.go":      "package sub\n\nfunc B() int { return 1 }\n",
		"other/a.go":    "package other\n\nfunc A() int { return 1 }\n",
		"nested/a.go":   "package nested\n",
		"nested/go.mod": "module nested\n",
	}
	dir := write(t, files)
	commit(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "sub/b.go")))
	add(t, dir, map[string]string{
		"a.go":              "package toy\n\n// A has a comment.\nfunc A() int {\n\treturn 1 // one\n}\n\nfunc C() int { return 4 }\n",
		"moved.go":          "package toy\n\nfunc B() int { return 2 }\n\nfunc D() int { return 5 }\n",
		"same_test.go":      "package toy\n",
		"other/a_test.go":   "package other\n",
		"nested/a.go":       "package nested\n\nfunc A() {}\n",
		"sub/testdata/a.go": "package testdata\n",
	})
	t.Chdir(dir)
	dirs, err := changedPackages("HEAD")
	require.NoError(t, err)
	assert.Equal(t, []string{".", "sub"}, dirs, "sub lacks a file")
	p, err := load(".")
	require.NoError(t, err)
	touched, err := p.touched("HEAD")
	require.NoError(t, err)
	var names []string
	for _, f := range p.files {
		for _, fd := range functions(f.syntax) {
			if touched[hashOf(fd)] {
				names = append(names, nameOf(fd))
			}
		}
	}
	assert.Equal(t, []string{"C", "D"}, names)
}

// Children that a test has started end with it.
func TestTests_EndChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks for the child in /proc, which only Linux has")
	}
	binary := filepath.Join(t.TempDir(), "test")
	require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\nsleep 600 &\necho $!\nexit 3\n"), 0o700))
	out, err := (&tests{binary: binary, dir: t.TempDir()}).run(1, time.Minute)
	require.ErrorContains(t, err, "exit status 3")
	stat := filepath.Join("/proc", strings.TrimSpace(out), "stat")
	assert.Eventually(t, func() bool {
		data, err := os.ReadFile(stat)
		return err != nil || strings.Contains(string(data), ") Z ")
	}, 10*time.Second, 10*time.Millisecond, "it is killed")
}

func TestErrors(t *testing.T) {
	noRepository(t)
	dir := write(t, map[string]string{"tests/a_test.go": "package tests\n", "bad/a.go": "package bad\n\nvar x int = \"\"\n"})
	for name, want := range map[string]string{"": "no Go files", "none": "no such file", "tests": "no Go files other than tests", "bad": "cannot use"} {
		_, err := load(filepath.Join(dir, name))
		assert.ErrorContains(t, err, want, name)
	}
	t.Chdir(dir)
	_, err := changedPackages("HEAD")
	require.EqualError(t, err, `-base: "HEAD" is no commit of a git repository at .`)
	commit(t, dir)
	_, err = changedPackages("v0")
	require.EqualError(t, err, `-base: "v0" is no commit of a git repository at .`)
	dirs, err := changedPackages("HEAD")
	require.NoError(t, err)
	assert.Empty(t, dirs)
}

// Moving functions to another place or file does not change the sample.
func TestSample_GoesByText(t *testing.T) {
	p, err := load("testdata/toy")
	require.NoError(t, err)
	head, body, _ := strings.Cut(toy(t)["toy.go"], "// Clamp")
	clamp, rest, _ := strings.Cut(body, "// Count")
	moved, err := load(write(t, map[string]string{"other.go": head + "// Count" + rest, "second.go": "package toy\n\n// Clamp" + clamp}))
	require.NoError(t, err)
	first, _ := p.sample(p.mutants(), 8, 7, "", nil)
	second, _ := moved.sample(moved.mutants(), 8, 7, "", nil)
	assert.Len(t, first, 8)
	assert.Equal(t, describe(first), describe(second))
	other, _ := p.sample(p.mutants(), 8, 8, "", nil)
	assert.NotEqual(t, describe(first), describe(other), "another seed")

	// Equivalent mutants are tried, and do not count towards the size of the sample.
	plain, _ := p.sample(p.mutants(), 3, 1, "", nil)
	again, _ := p.sample(p.mutants(), 3, 1, "", map[string]bool{plain[1].id(): true, plain[2].String(): true})
	assert.Len(t, again, 4)
	assert.Equal(t, describe(plain), describe(again[:3]))
	assert.True(t, again[1].equivalent)
	assert.False(t, again[2].equivalent, "the hash is of another function")
}

// The code of each kind of mutant, and the woven code of all that compile.
func TestMutants(t *testing.T) {
	dir := write(t, map[string]string{"a.go": `package toy

import "slices"

func F(list []int, b byte) (n int, err error) {
	for i := range list {
		if i > int(b)+255 && true {
			continue
		}
		n += min(i, 2)
		n--
	}
	for range list {
		return 1, nil // the end of the body is never reached
	}
	println(len(slices.Clone(list)))
	return n, nil
}
`})
	p, err := load(dir)
	require.NoError(t, err)
	sample, refused := p.sample(p.mutants(), 0, 1, "", nil)
	assert.Equal(t, 1, refused, "removing the last return")
	got := map[string]string{}
	for _, m := range sample {
		_, got[m.String()], _ = strings.Cut(m.diff("d"), "d/a.go:")
	}
	for m, want := range map[string]string{
		"F: never: i > int(b)+255 && true":    "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif (i > int(b)+255 && true) && false {\n",
		"F: always: i > int(b)+255 && true":   "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif (i > int(b)+255 && true) || true {\n",
		"F: negate: i > int(b)+255 && true":   "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif !(i > int(b)+255 && true) {\n",
		"F: && to ||: i > int(b)+255 && true": "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif (i > int(b)+255) || (true) {\n",
		"F: + to -: int(b)+255":               "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif i > (int(b)) - (255) && true {\n",
		"F: one more: 255":                    "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif i > int(b)+(255 + 1) && true {\n",
		"F: other truth value: true":          "7\n-\t\tif i > int(b)+255 && true {\n+\t\tif i > int(b)+255 && false {\n",
		"F: continue to break: continue":      "8\n-\t\t\tcontinue\n+\t\t\tbreak\n",
		"F: += to -=: n += min(i, 2)":         "10\n-\t\tn += min(i, 2)\n+\t\tn -= min(i, 2)\n",
		"F: min to max: min(i, 2)":            "10\n-\t\tn += min(i, 2)\n+\t\tn += max(i, 2)\n",
		"F: count the other way: n--":         "11\n-\t\tn--\n+\t\tn++\n",
		"F: remove: n--":                      "11\n-\t\tn--\n",
		"F: no copy: slices.Clone(list)":      "16\n-\tprintln(len(slices.Clone(list)))\n+\tprintln(len(list))\n",
		"F: return zero: return n, nil":       "17\n-\treturn n, nil\n+\treturn *new(int), *new(error)\n",
		"F: remove: for range list { return 1, nil // the end of the body is never reached }": "13\n-\tfor range list {\n-\t\treturn 1, nil // the end of the body is never reached\n-\t}\n",
	} {
		assert.Equal(t, want, got[m], m)
	}
	once := 0
	for m, diff := range got {
		if strings.Contains(m, "loop once") {
			once++
			assert.Equal(t, "12\n+break\n", diff)
		}
	}
	assert.Equal(t, 1, once, "not the loop that ends in a return")
	assert.True(t, p.builds(sample...), "all at once")
}

// The hash of a function depends on its name and code only.
func TestHash(t *testing.T) {
	p, err := load("testdata/toy")
	require.NoError(t, err)
	hash := func(text string) string {
		syntax, err := p.parse("x.go", "package toy\n\n"+text)
		require.NoError(t, err)
		return hashOf(syntax.Decls[0].(*ast.FuncDecl))
	}
	h := hash("func F(n int) int { return n }")
	assert.Equal(t, h, hash("// F is F.\nfunc F(n int) int {\n\n\t// A comment.\n\treturn n // and another\n}"))
	for _, other := range []string{"func G(n int) int { return n }", "func F(n int) int { return n + 1 }", "func F(n int8) int { return n }", "func (t T) F(n int) int { return n }"} {
		assert.NotEqual(t, h, hash(other), other)
	}
}

func TestReadEquivalent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	for text, want := range map[string]map[string]bool{
		"# a comment\n\n12 F: remove: x()\n  because\n  of it\n34 G: never: y\n\twhy\n": {"12 F: remove: x()": true, "34 G: never: y": true},
		"12 F: remove: x()\n34 G: never: y\n  why\n":                                    nil,
		"12 F: remove: x()\n": nil,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		got, err := readEquivalent(name)
		if want == nil {
			require.ErrorContains(t, err, "no reason for 12 F: remove: x()")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := readEquivalent("equivalent.txt")
	require.NoError(t, err)
}

func TestPrune(t *testing.T) {
	p, err := load("testdata/toy")
	require.NoError(t, err)
	ms := p.mutants()
	keep := "# Mutants.\n\n" + ms[0].id() + "\n  reason\n  of two lines\n"
	name := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(name, []byte(keep+"123456 "+ms[0].String()+"\n  reason\n  of two lines\n# More.\n"+ms[1].id()+"\n  reason\n"), 0o600))
	require.NoError(t, prune(name, "testdata/toy"))
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, keep+"# More.\n"+ms[1].id()+"\n  reason\n", string(got))
}
