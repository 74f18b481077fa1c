// Command mutate breaks the code of a package in one place at a time, runs the
// tests, and reports the mutants, as such broken versions are called, that no
// test notices.
//
//	go run ./internal/mutate -n 150 -seed 1      # a sample of a package
//	go run ./internal/mutate -base HEAD~3 -n 0   # the functions that have changed
//
// It tries a random sample, which depends on the seed. A mutant is identified by
// its function and the code that it replaces, so the same seed selects the same
// mutants after code has moved to another file or line. All mutants of a sample
// are built into one test binary, each with a switch, with go test -overlay; the
// source tree is not changed. The binary runs the tests of the package, in their
// default form, once for each mutant: first the quick tests, and if they all pass,
// the others.
//
// With -base, only functions are mutated that differ from those in a commit, other
// than in comments. Without -dir, they are those of all packages of the module that
// are in the current directory, which must be the root of the module, and below. Files of other platforms are left out.
//
// A mutant is killed if a test fails, if the process crashes, or if a test hangs
// that ends without the mutant. Mutants that do not compile are not counted. Nor
// are those listed in equivalent.txt, which behave like the original code. The
// line of a survivor can be copied to this list, with a reason below it. It has a
// hash of the function, so that it has no effect after the function has changed;
// -prune removes such entries. The exit status is 1 if more than -most percent of the
// others survive, or if a mutant in equivalent.txt is killed.
package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var (
	dir        = flag.String("dir", "", "the directory of the package; the default is the current directory or, with -base, each package in it and below that the change touches")
	base       = flag.String("base", "", "mutate only functions that differ from the ones in this commit")
	size       = flag.Int("n", 150, "number of mutants of a package to try; 0 means all")
	seed       = flag.Int("seed", 1, "seed of the sample")
	only       = flag.String("only", "", "try only mutants whose description contains this")
	equivalent = flag.String("equivalent", "internal/mutate/equivalent.txt", "file that lists the equivalent mutants, with reasons")
	most       = flag.Float64("most", 5, "percentage of mutants that may survive")
	timeout    = flag.Duration("timeout", 10*time.Minute, "time limit for one run of the tests")
	list       = flag.Bool("list", false, "list the sample and exit")
	doPrune    = flag.Bool("prune", false, "remove the entries of functions that have changed from the list of equivalent mutants, and exit")
)

func main() {
	flag.Parse()
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// A result counts mutants that were tried.
type result struct {
	tried, equivalent int
	survived          []string // the mutants that no test noticed, with what they change
	wrong             []string // mutants that are listed as equivalent, and are not
}

func run() (ok bool, err error) {
	if flag.NArg() > 0 || *size < 0 {
		return false, fmt.Errorf("cannot use the arguments %q; see -help", os.Args[1:])
	}
	if *doPrune {
		return true, prune(*equivalent, ".")
	}
	known, err := readEquivalent(*equivalent)
	if err != nil {
		return false, err
	}
	dirs := []string{cmp.Or(*dir, ".")}
	if *base != "" && *dir == "" {
		if dirs, err = changedPackages(*base); err != nil {
			return false, err
		}
	}
	var r result
	for _, dir := range dirs {
		if err := r.try(dir, known); err != nil {
			return false, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if *list {
		return true, nil
	}
	fmt.Printf("\n%d mutants, not counting %d equivalent ones: %d killed, %d survived (%.1f %%)\n",
		r.tried, r.equivalent, r.tried-len(r.survived), len(r.survived), percent(len(r.survived), r.tried))
	for _, s := range r.survived {
		fmt.Printf("survived: %s\n", s)
	}
	for _, s := range r.wrong {
		fmt.Printf("listed in %s, but killed by a test: %s\n", *equivalent, s)
	}
	return percent(len(r.survived), r.tried) <= *most && len(r.wrong) == 0, nil
}

// try tries mutants of the package in a directory. The mutants that are known to be
// equivalent are tried too, so that a wrong entry of the list is found.
func (r *result) try(dir string, known map[string]bool) error {
	p, err := load(dir)
	if err != nil {
		return err
	}
	all := p.mutants()
	if *base != "" {
		touched, err := p.touched(*base)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(m *mutant) bool { return !touched[m.hash] })
	}
	sample, refused := p.sample(all, *size, *seed, *only, known)
	fmt.Printf("%s: %d mutants, %d in the sample; %d others were left out because they do not compile\n", dir, len(all), len(sample), refused)
	if *list {
		for _, m := range sample {
			fmt.Println(m)
		}
		return nil
	}
	if len(sample) == 0 {
		return nil
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary, err := p.build(work, sample)
	if errors.Is(err, errNoTests) && *base != "" {
		fmt.Println("its mutants are not tried, because it has no tests")
		return nil
	}
	if err != nil {
		return err
	}
	tests, err := newTests(binary, p.dir, *timeout)
	if err != nil {
		return err
	}
	for _, m := range sample {
		start := time.Now()
		by := tests.kill(m)
		switch {
		case by == "" && m.equivalent:
			by = "equivalent"
		case by == "":
			by = "SURVIVED"
			r.survived = append(r.survived, m.id()+"\n"+m.diff(dir))
		case m.equivalent:
			r.wrong = append(r.wrong, m.id())
		}
		fmt.Printf("%6.1fs %s\n        %s\n", time.Since(start).Seconds(), m, by)
		if m.equivalent {
			r.equivalent++
		} else {
			r.tried++
		}
	}
	return nil
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// sample selects n mutants that compile, in an order that depends only on the
// seed and on the descriptions of the mutants. Equivalent mutants that come up
// are added and not counted in n.
func (p *pkg) sample(all []*mutant, n, seed int, only string, known map[string]bool) (taken []*mutant, refused int) {
	rank := map[*mutant]string{}
	for _, m := range all {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m))
		rank[m] = string(sum[:])
	}
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b *mutant) int { return cmp.Compare(rank[a], rank[b]) })
	counted := 0
	for _, m := range order {
		if n > 0 && counted == n {
			break
		}
		if !strings.Contains(m.String(), only) {
			continue
		}
		m.n = len(taken) + 1
		if !p.builds(m) {
			refused++
			continue
		}
		m.equivalent = known[m.id()]
		taken = append(taken, m)
		if !m.equivalent {
			counted++
		}
	}
	return taken, refused
}

// absolute returns the path of a file of the package.
func (p *pkg) absolute(name string) string { return filepath.Join(p.dir, name) }
