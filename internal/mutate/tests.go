package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tests runs the tests of a package on its mutants.
type tests struct {
	binary string
	dir    string
	limit  time.Duration
	broken []string // tests that fail without any mutant, because the switches take time or allocate
	quick  []string // tests that take less than quickTest
}

const (
	quickTest  = 300 * time.Millisecond // a test that takes less is quick
	quickLimit = time.Minute            // time limit for all quick tests, which take seconds
)

var (
	passed  = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+) \((\d+\.\d+)s\)$`)
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	running = regexp.MustCompile(`(?m)^\t+(Test\w+|Example\w*|Fuzz\w+)(/\S+)? \(`)
)

// newTests runs all tests without a mutant, to find out which pass and how long
// they take.
func newTests(binary, dir string, limit time.Duration) (*tests, error) {
	t := &tests{binary: binary, dir: dir, limit: limit}
	start := time.Now()
	out, _ := t.run(0, limit, "-test.v")
	for _, m := range passed.FindAllStringSubmatch(out, -1) {
		seconds, err := strconv.ParseFloat(m[3], 64)
		switch {
		case err != nil:
			return nil, err
		case m[1] == "FAIL":
			t.broken = append(t.broken, m[2])
		case seconds < quickTest.Seconds():
			t.quick = append(t.quick, m[2])
		}
	}
	if len(t.quick) == 0 {
		return nil, fmt.Errorf("no quick test passes without a mutant:\n%s", out)
	}
	fmt.Printf("%d quick tests; all tests take %.0fs\n", len(t.quick), time.Since(start).Seconds())
	if len(t.broken) > 0 {
		fmt.Printf("not run, because they fail without a mutant: %v\n", t.broken)
	}
	return t, nil
}

// pattern returns a regular expression that matches exactly these names.
func pattern(names []string) string {
	return "^(" + strings.Join(names, "|") + ")$"
}

// kill returns the name of a test that fails because of the mutant, or another
// reason why the mutant is killed. It returns the empty string if it survives.
func (t *tests) kill(m *mutant) (by string) {
	for _, pass := range []struct {
		limit time.Duration
		which string
		names []string
	}{
		{min(quickLimit, t.limit), "-test.run", t.quick},
		{t.limit, "-test.skip", slices.Concat(t.quick, t.broken)},
	} {
		out, err := t.run(m.n, pass.limit, pass.which, pattern(pass.names), "-test.failfast")
		if err == nil {
			continue
		}
		if by = t.reason(out, err, pass.limit); by != "" {
			return by
		}
	}
	return ""
}

// reason returns why a run failed, or the empty string if it would have failed
// without the mutant.
func (t *tests) reason(out string, err error, limit time.Duration) string {
	if strings.Contains(out, "panic: test timed out after") {
		names := map[string]bool{}
		for _, m := range running.FindAllStringSubmatch(out, -1) {
			names[m[1]] = true
		}
		hung := slices.Sorted(maps.Keys(names))
		if _, err := t.run(0, limit, "-test.run", pattern(hung)); err != nil {
			return "" // it hangs without the mutant too
		}
		return fmt.Sprintf("hangs: %v", hung)
	}
	if m := failed.FindAllStringSubmatch(out, 1); m != nil {
		return m[0][1]
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "goroutines outlive") {
			return strings.TrimSpace(line)
		}
	}
	return err.Error()
}

// run runs tests with mutant n switched on, or none if n is 0.
func (t *tests) run(n int, limit time.Duration, args ...string) (out string, err error) {
	args = append([]string{"-test.timeout", limit.String()}, args...)
	cmd := exec.Command(t.binary, args...)
	if runtime.GOOS == "linux" { // limit the memory, so that a runaway mutant harms nothing else
		cmd = exec.Command("sh", append([]string{"-c", `ulimit -v 8000000; exec "$0" "$@"`, t.binary}, args...)...)
	}
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "CONVO_LONG=", "MUTANT="+strconv.Itoa(n))
	output, err := os.CreateTemp("", "mutate")
	if err != nil {
		panic(err)
	}
	defer os.Remove(output.Name())
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output // not a pipe, which children of a test may keep open
	end := endGroup(cmd)
	err = cmd.Run()
	end()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		panic(err) // the binary cannot be run at all
	}
	data, readErr := os.ReadFile(output.Name())
	if readErr != nil {
		panic(readErr)
	}
	return string(data), err
}
