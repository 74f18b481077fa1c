package count

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// A program loads one vocabulary, or nothing, and reports what that took.
type program struct {
	peer.Program
	dir string // it is built in the module of this directory
}

// programs returns our programs, which are built in the module of the working
// directory, and those of the peers.
func programs(fleet *harness.Fleet) []program {
	list := []peer.Program{
		{Name: "nothing", Load: `count := func(s string) int { return len(s) }`},
		{Name: "convo, Heuristic", Imports: []string{`"github.com/seed-c1b73e60/convo"`},
			Load: `h, err := convo.New(nil); check(err); _, err = h.Append(convo.User("x")); check(err); count := convo.Heuristic{}.CountTokens`},
	}
	for _, e := range encodings {
		list = append(list, peer.Program{Name: "convo, Tiktoken, " + e.name, Imports: []string{`"github.com/seed-c1b73e60/convo"`, `"github.com/seed-c1b73e60/convo/tiktoken"`},
			Load: fmt.Sprintf(`h, err := convo.New(nil); check(err); _, err = h.Append(convo.User("x")); check(err); t, err := tiktoken.New(%q); check(err); count := t.CountTokens`, e.model)})
	}
	var all []program
	for _, p := range list {
		all = append(all, program{p, "."})
	}
	for _, other := range fleet.Peers {
		for _, p := range other.Programs {
			all = append(all, program{p, other.Dir})
		}
	}
	return all
}

const programText = `package main

import (
	"encoding/json"
	"os"
	"runtime"
	"time"
%s
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	check(nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	%s
	n := count("The quick brown fox jumps over the lazy dog.")
	took := time.Since(start)
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"ns": int64(took), "heap": int64(after.HeapAlloc) - int64(before.HeapAlloc),
		"mallocs": int64(after.Mallocs - before.Mallocs), "tokens": int64(n),
	})
	_ = count("x")
}
`

// loaded is the output of a program.
type loaded struct{ NS, Heap, Mallocs, Tokens int64 }

// build builds a program in dir and returns the name of the binary.
func (p program) build(dir, name string) (string, error) {
	source := fmt.Sprintf(programText, "\t"+strings.Join(p.Imports, "\n\t"), p.Load)
	file := filepath.Join(dir, name+".go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return "", err
	}
	// The file belongs to no package, so its imports are resolved in the module
	// of the directory in which go build runs.
	return harness.Build(p.dir, filepath.Join(dir, name), "-ldflags=-s -w", file)
}

// run runs a program and returns its output.
func run(binary string) (l loaded, err error) {
	out, err := exec.Command(binary).Output()
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(out, &l)
}

func writeLoad(w io.Writer, quick bool, fleet *harness.Fleet) error {
	if _, err := fmt.Fprintf(w, "### %s\n\nEach row is a small program, built without symbols, that runs in a process of its own.\n\n", peer.TableLoad); err != nil {
		return err
	}
	runs := 15
	if quick {
		runs = 3
	}
	rows, err := loadRows(runs, fleet)
	if err != nil {
		return err
	}
	if err := measure.Table(w, []string{"program", "time until the first count", "live heap", "allocations", "binary", "more than the empty program", "more than convo without it"}, rows); err != nil {
		return err
	}
	return measure.Notes(w, append([]string{
		"The time is wall-clock time, the minimum of several runs. convo's binary contains the History, which the last column subtracts. convo's vocabularies are linked only into programs that use Tiktoken.",
	}, fleet.Notes(peer.TableLoad)...)...)
}

// loadRows builds and runs all programs, and returns the rows of the table.
func loadRows(runs int, fleet *harness.Fleet) ([][]string, error) {
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sizes := map[string]int64{}
	var rows [][]string
	for i, p := range programs(fleet) {
		binary, err := p.build(dir, fmt.Sprint("p", i))
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(binary)
		if err != nil {
			return nil, err
		}
		sizes[p.Name] = info.Size()
		var all []loaded
		for range runs {
			l, err := run(binary)
			if err != nil {
				return nil, err
			}
			all = append(all, l)
		}
		l := slices.MinFunc(all, func(a, b loaded) int { return cmp.Compare(a.NS, b.NS) })
		mb := func(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/1e6) }
		base, without := sizes["nothing"], ""
		if strings.HasPrefix(p.Name, "convo, Tiktoken") {
			without = mb(info.Size() - sizes["convo, Heuristic"])
		}
		rows = append(rows, []string{p.Name, measure.Time(float64(time.Duration(l.NS))), mb(l.Heap), measure.Count(int(l.Mallocs)), mb(info.Size()), mb(info.Size() - base), without})
	}
	return rows, nil
}
