package count

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// A program loads one vocabulary, or nothing, and says what that took.
type program struct {
	name    string
	imports []string
	load    string // defines count, a func(string) int
}

func programs() []program {
	list := []program{
		{name: "nothing", load: `count := func(s string) int { return len(s) }`},
		{name: "convo, Heuristic", imports: []string{`"github.com/seed-c1b73e60/convo"`},
			load: `h, err := convo.New(nil); check(err); _, err = h.Append(convo.User("x")); check(err); count := convo.Heuristic{}.CountTokens`},
	}
	for _, e := range encodings {
		list = append(list,
			program{name: "convo, Tiktoken, " + e.name, imports: []string{`"github.com/seed-c1b73e60/convo"`},
				load: fmt.Sprintf(`h, err := convo.New(nil); check(err); _, err = h.Append(convo.User("x")); check(err); t, err := convo.Tiktoken(%q); check(err); count := t.CountTokens`, e.model)},
			program{name: tiktokenName + " and its loader, " + e.name, imports: []string{`tiktoken "github.com/pkoukk/tiktoken-go"`, `loader "github.com/pkoukk/tiktoken-go-loader"`},
				load: fmt.Sprintf(`tiktoken.SetBpeLoader(loader.NewOfflineLoader()); t, err := tiktoken.GetEncoding(%q); check(err); count := func(s string) int { return len(t.EncodeOrdinary(s)) }`, e.name)},
			program{name: codecName + ", " + e.name, imports: []string{`"github.com/tiktoken-go/tokenizer"`},
				load: fmt.Sprintf(`t, err := tokenizer.Get(%q); check(err); count := func(s string) int { n, err := t.Count(s); check(err); return n }`, e.name)},
		)
	}
	return append(list, program{name: codecName + "/codec, o200k_base alone", imports: []string{`"github.com/tiktoken-go/tokenizer/codec"`},
		load: `t := codec.NewO200kBase(); count := func(s string) int { n, err := t.Count(s); check(err); return n }`})
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

// loaded is what a program told.
type loaded struct{ NS, Heap, Mallocs, Tokens int64 }

// build compiles a program in dir and returns its file.
func (p program) build(dir, name string) (string, error) {
	source := fmt.Sprintf(programText, "\t"+strings.Join(p.imports, "\n\t"), p.load)
	file := filepath.Join(dir, name+".go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	// The file is no part of a package, so its imports come from the module of
	// the working directory.
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, file).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, bytes.TrimSpace(out))
	}
	return binary, nil
}

// run starts a built program.
func run(binary string) (l loaded, err error) {
	out, err := exec.Command(binary).Output()
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(out, &l)
}

func writeLoad(w io.Writer, quick bool) error {
	if _, err := fmt.Fprint(w, "### Loading a vocabulary\n\nSmall programs, built without symbols, each in a process of its own.\n\n"); err != nil {
		return err
	}
	runs := 15
	if quick {
		runs = 3
	}
	rows, err := loadRows(runs)
	if err != nil {
		_, err = fmt.Fprintf(w, "Left out: the programs could not be built and run here: %v\n\n", err)
		return err
	}
	if err := measure.Table(w, []string{"program", "until the first count", "heap that stays", "allocations", "binary", "more than nothing", "more than the library without it"}, rows); err != nil {
		return err
	}
	return measure.Notes(w,
		"The time is the least of some runs, on the clock. convo's binary contains the History; the last column takes it off.",
		"tiktoken-go's loader embeds four vocabularies, tiktoken-go/tokenizer as many as Go source; its codec package links only what is named. convo links its vocabularies only where Tiktoken is used.",
		"tiktoken-go/tokenizer is as quick to load, or quicker: its vocabulary is compiled in as it is used, which is why it is large. convo's is rebuilt from a compact form.",
		"Every further tiktoken.GetEncoding builds its tables again; the other two keep them.",
	)
}

// loadRows builds and runs all programs.
func loadRows(runs int) ([][]string, error) {
	dir, err := os.MkdirTemp("", "convo-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sizes := map[string]int64{}
	var rows [][]string
	for i, p := range programs() {
		binary, err := p.build(dir, fmt.Sprint("p", i))
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(binary)
		if err != nil {
			return nil, err
		}
		sizes[p.name] = info.Size()
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
		if strings.HasPrefix(p.name, "convo, Tiktoken") {
			without = mb(info.Size() - sizes["convo, Heuristic"])
		}
		rows = append(rows, []string{p.name, measure.Time(float64(time.Duration(l.NS))), mb(l.Heap), measure.Count(int(l.Mallocs)), mb(info.Size()), mb(info.Size() - base), without})
	}
	return rows, nil
}
