// Command mutate breaks the code of a package in one place at a time, runs the
// tests, and reports the mutants, as such broken versions are called, that no
// test notices.
//
//	go run ./internal/mutate -n 150 -seed 1
//
// It tries a random sample, which depends on the seed. A mutant is identified by
// its function and the code that it replaces, so the same seed selects the same
// mutants after code has moved to another file or line. All mutants of a sample
// are built into one test binary, each behind a switch, with go test -overlay;
// the source tree is not changed. The binary runs once for each mutant: the quick
// tests first, and if they all pass, all tests.
//
// A mutant is killed if a test fails, if the process crashes, or if a test hangs
// that ends without the mutant. Mutants that do not compile are not counted. Nor
// are those listed in equivalent.txt, which behave like the original code. The
// exit status is 1 if more than -most percent of the others survive, or if a
// mutant in equivalent.txt is killed.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	dir        = flag.String("dir", ".", "the directory of the package")
	size       = flag.Int("n", 150, "number of mutants to try; 0 means all")
	seed       = flag.Int("seed", 1, "seed of the sample")
	only       = flag.String("only", "", "try only mutants whose description contains this")
	equivalent = flag.String("equivalent", "internal/mutate/equivalent.txt", "file that lists the equivalent mutants, with reasons")
	most       = flag.Float64("most", 5, "percentage of mutants that may survive")
	timeout    = flag.Duration("timeout", 10*time.Minute, "time limit for one run of the tests")
	workers    = flag.Int("p", 1, "number of mutants to try in parallel")
	quick      = flag.Bool("quick", false, "run the quick tests only, for a first look at where tests may be missing")
	list       = flag.Bool("list", false, "list the sample and exit")
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

func run() (ok bool, err error) {
	known, err := readEquivalent(*equivalent)
	if err != nil {
		return false, err
	}
	p, err := load(*dir)
	if err != nil {
		return false, err
	}
	all := p.mutants()
	sample, refused := p.sample(all, *size, *seed, *only, known)
	fmt.Printf("%d mutants, %d in the sample; %d others were left out because they do not compile\n", len(all), len(sample), refused)
	if *list {
		for _, m := range sample {
			fmt.Println(m)
		}
		return true, nil
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	binary, err := p.build(work, sample)
	if err != nil {
		return false, err
	}
	tests, err := newTests(binary, p.dir, *timeout)
	if err != nil {
		return false, err
	}

	// The mutants listed as equivalent are tried too, so that a wrong entry of
	// the list is found.
	var mu sync.Mutex
	var survivors, wrong []*mutant
	next := make(chan *mutant)
	var wg sync.WaitGroup
	for range max(*workers, 1) {
		wg.Go(func() {
			for m := range next {
				start := time.Now()
				by := tests.kill(m, *quick)
				mu.Lock()
				switch {
				case by == "" && m.equivalent:
					by = "equivalent"
				case by == "":
					by = "SURVIVED"
					survivors = append(survivors, m)
				case m.equivalent:
					wrong = append(wrong, m)
				}
				fmt.Printf("%6.1fs %s\n        %s\n", time.Since(start).Seconds(), m, by)
				mu.Unlock()
			}
		})
	}
	equal := 0
	for _, m := range sample {
		if m.equivalent {
			equal++
		}
		next <- m
	}
	close(next)
	wg.Wait()

	tried := len(sample) - equal
	fmt.Printf("\n%d mutants, not counting %d equivalent ones: %d killed, %d survived (%.1f %%)\n",
		tried, equal, tried-len(survivors), len(survivors), percent(len(survivors), tried))
	for _, m := range survivors {
		fmt.Printf("survived: %s\n", m)
	}
	for _, m := range wrong {
		fmt.Printf("listed in %s, but killed by a test: %s\n", *equivalent, m)
	}
	return percent(len(survivors), tried) <= *most && len(wrong) == 0, nil
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// readEquivalent reads the descriptions of equivalent mutants. Indented lines
// give the reason for the mutant above them, and "#" begins a comment.
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

// sample selects n mutants that compile, in an order that depends only on the
// seed and on the descriptions of the mutants. Equivalent mutants that come up
// are added and not counted in n.
func (p *pkg) sample(all []*mutant, n, seed int, only string, known map[string]bool) (taken []*mutant, refused int) {
	rank := func(m *mutant) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m))
		return sum[:]
	}
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b *mutant) int { return bytes.Compare(rank(a), rank(b)) })
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
		m.equivalent = known[m.String()]
		taken = append(taken, m)
		if !m.equivalent {
			counted++
		}
	}
	return taken, refused
}

// absolute returns the path of a file of the package.
func (p *pkg) absolute(name string) string { return filepath.Join(p.dir, name) }
