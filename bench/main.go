// Command bench prints what convo costs and what it saves, beside other Go
// libraries and tokenizers, as Markdown.
//
//	go run . [-quick] [-only ops,count] [-sizes 10,1000]
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/calibrate"
	"github.com/seed-c1b73e60/convo/bench/cost"
	"github.com/seed-c1b73e60/convo/bench/count"
	"github.com/seed-c1b73e60/convo/bench/estimate"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/ops"
)

// A section is one package's tables.
type section struct {
	name, title string
	write       func(w io.Writer, quick bool, sizes []int) error
}

// plain is a section that takes no sizes.
func plain(write func(io.Writer, bool) error) func(io.Writer, bool, []int) error {
	return func(w io.Writer, quick bool, _ []int) error { return write(w, quick) }
}

var sections = []section{
	{"ops", "Keeping a conversation", ops.WriteSizes},
	{"count", "Counting tokens", plain(count.Write)},
	{"estimate", "How wrong an estimate is", plain(estimate.Write)},
	{"calibrate", "Learning from usage reports", plain(calibrate.Write)},
	{"cost", "What a conversation costs", plain(cost.Write)},
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out, messages io.Writer) error {
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(messages)
	quick := flags.Bool("quick", false, "small and rough: for a look, not for quoting")
	only := flags.String("only", "", "sections to print, of "+strings.Join(names, ","))
	sizeList := flags.String("sizes", "", "numbers of messages in the tables of ops, such as 10,1000")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	chosen, err := choose(*only, names)
	if err != nil {
		return err
	}
	var sizes []int
	for s := range strings.SplitSeq(*sizeList, ",") {
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("-sizes %q: want numbers", *sizeList)
		}
		sizes = append(sizes, n)
	}

	start := time.Now()
	if err := writeHead(out, *quick); err != nil {
		return err
	}
	for _, s := range sections {
		if !slices.Contains(chosen, s.name) {
			continue
		}
		fmt.Fprintf(messages, "%s ...\n", s.name)
		if _, err := fmt.Fprintf(out, "## %s\n\n", s.title); err != nil {
			return err
		}
		if err := s.write(out, *quick, sizes); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		debug.FreeOSMemory()
	}
	_, err = fmt.Fprintf(out, "Took %s.\n", time.Since(start).Round(time.Second))
	return err
}

// choose returns the names in list; all, when it is empty.
func choose(list string, names []string) ([]string, error) {
	if list == "" {
		return names, nil
	}
	chosen := strings.Split(list, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-only %q: want some of %s", list, strings.Join(names, ","))
		}
	}
	return chosen, nil
}

// peers are the modules whose versions matter most.
var peers = []string{
	"github.com/tmc/langchaingo",
	"github.com/cloudwego/eino",
	"trpc.group/trpc-go/trpc-agent-go",
	"google.golang.org/adk/v2",
	"github.com/pkoukk/tiktoken-go",
	"github.com/pkoukk/tiktoken-go-loader",
	"github.com/tiktoken-go/tokenizer",
	"github.com/cohere-ai/tokenizer",
}

// writeHead says where, when and of what the figures are.
func writeHead(w io.Writer, quick bool) error {
	fmt.Fprintf(w, "# convo beside others\n\n")
	how := "full run"
	if quick {
		how = "quick run: rough figures"
	}
	rows := [][]string{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"run", how},
		{"machine", fmt.Sprintf("%s, %d cores, %s/%s", cpuModel("/proc/cpuinfo"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)},
		{"Go", runtime.Version()},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the program was built without module information")
	}
	var others []string
	for _, dep := range info.Deps {
		if slices.Contains(peers, dep.Path) {
			continue
		}
		others = append(others, dep.Path+" "+dep.Version)
	}
	for _, path := range peers {
		if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == path }); i >= 0 {
			rows = append(rows, []string{path, info.Deps[i].Version})
		}
	}
	if err := measure.Table(w, []string{"what", "which"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Times are CPU time on one core, garbage collection included; in brackets how many times convo's. Memory is what one operation allocates.\n\n<details><summary>%d other modules in the build</summary>\n\n%s\n\n</details>\n\n",
		len(others), strings.Join(others, ", "))
	return err
}

// cpuModel reads the processor's name from a file as Linux has it.
func cpuModel(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "unknown processor"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
