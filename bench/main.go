// Command bench measures what convo costs and saves, compares it with other Go
// libraries and tokenizers, and prints the results as Markdown.
//
//	go run . [-quick] [-only ops,count] [-sizes 10,1000] [-rows chat,500] [-peers folder]
package main

import (
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
	"github.com/seed-c1b73e60/convo/bench/clients"
	"github.com/seed-c1b73e60/convo/bench/cost"
	"github.com/seed-c1b73e60/convo/bench/count"
	"github.com/seed-c1b73e60/convo/bench/estimate"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/keep"
	"github.com/seed-c1b73e60/convo/bench/keep/facts"
	"github.com/seed-c1b73e60/convo/bench/ops"
	"github.com/seed-c1b73e60/convo/bench/readme"
	"github.com/seed-c1b73e60/convo/bench/saves"
	"github.com/seed-c1b73e60/convo/bench/server"
)

// A section is a group of tables, all from one package.
type section struct {
	name, title string
	write       func(io.Writer, options) error
}

// options are the settings of a run.
type options struct {
	quick bool
	sizes []int  // conversation lengths for section ops
	rows  string // beginnings of names of rows for section facts
	fleet *harness.Fleet
}

var sections = []section{
	{"readme", "What README.md quotes", func(w io.Writer, o options) error { return readme.Write(w, o.quick, o.fleet) }},
	{"ops", "Keeping a conversation", func(w io.Writer, o options) error { return ops.Write(w, o.quick, o.sizes, o.fleet) }},
	{"compact", "The default's compaction", func(w io.Writer, o options) error { return ops.WriteCompact(w, o.quick) }},
	{"server", "Many conversations at once", func(w io.Writer, o options) error { return server.Write(w, o.quick) }},
	{"count", "Counting tokens", func(w io.Writer, o options) error { return count.Write(w, o.quick, o.fleet) }},
	{"estimate", "How wrong an estimate is", func(w io.Writer, o options) error { return estimate.Write(w, o.quick) }},
	{"calibrate", "Learning from usage reports", func(w io.Writer, o options) error { return calibrate.Write(w, o.quick, o.fleet) }},
	{"clients", "Requests through a client", func(w io.Writer, o options) error { return clients.Write(w, o.quick, o.fleet) }},
	{"saves", "Saving a conversation", func(w io.Writer, o options) error { return saves.Write(w, o.quick, o.fleet) }},
	{"cost", "What a conversation costs", func(w io.Writer, o options) error { return cost.Write(w, o.quick, o.fleet) }},
	{"keep", "What is still known after compactions", func(w io.Writer, o options) error { return keep.Write(w, o.quick) }},
	{"facts", "What the model still sees of facts in plain words", func(w io.Writer, o options) error { return facts.Write(w, o.quick, o.rows) }},
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
	quick := flags.Bool("quick", false, "measure little, for rough figures that should not be quoted")
	only := flags.String("only", "", "comma-separated sections to print; all of "+strings.Join(names, ",")+" if empty")
	sizeList := flags.String("sizes", "", "comma-separated conversation lengths for the tables of ops, such as 10,1000")
	rows := flags.String("rows", "", "comma-separated beginnings of the names of rows for section facts; all if empty")
	folder := flags.String("peers", "peers", "directory of the programs that run other libraries; convo runs alone if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
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
			return fmt.Errorf("-sizes %q: want comma-separated numbers", *sizeList)
		}
		sizes = append(sizes, n)
	}

	start := time.Now()
	fleet, err := harness.Open(*folder, messages)
	if err != nil {
		return err
	}
	err = write(out, messages, chosen, options{*quick, sizes, *rows, fleet})
	if err == nil {
		_, err = fmt.Fprintf(out, "Took %s.\n", time.Since(start).Round(time.Second))
	}
	return errors.Join(err, fleet.Broken, fleet.Close())
}

// write writes the head and the chosen sections.
func write(out, messages io.Writer, chosen []string, o options) error {
	if err := writeHead(out, o); err != nil {
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
		if err := s.write(out, o); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		debug.FreeOSMemory()
	}
	return nil
}

// choose returns the comma-separated names in list, or all names if it is empty.
func choose(list string, names []string) ([]string, error) {
	if list == "" {
		return names, nil
	}
	chosen := strings.Split(list, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-only %q: no section %q, want some of %s", list, name, strings.Join(names, ","))
		}
	}
	return chosen, nil
}

// writeHead writes the date, the machine, the version of each module, and which
// libraries are missing.
func writeHead(w io.Writer, o options) error {
	fmt.Fprintf(w, "# convo beside others\n\n")
	how := "full"
	if o.quick {
		how = "quick, with rough figures"
	}
	rows := [][]string{
		{"date", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"run", how},
		{"machine", measure.Machine()},
		{"Go", runtime.Version()},
	}
	var others []string
	for _, p := range o.fleet.Peers {
		for _, m := range p.Modules {
			rows = append(rows, []string{m.Path, m.Version})
		}
		for _, m := range p.Others {
			others = append(others, m.Path+" "+m.Version)
		}
	}
	for _, m := range o.fleet.Missing {
		rows = append(rows, []string{m.Name, "not available here: " + m.Reason})
	}
	if o.fleet.Broken != nil {
		rows = append(rows, []string{"broken and left out", strings.ReplaceAll(o.fleet.Broken.Error(), "\n", " ")})
	}
	if err := measure.Table(w, []string{"what", "which"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "Times are CPU time on one core, including garbage collection. The factor in brackets compares with convo. Memory is what one operation allocates.\n\n")
	if err != nil || len(others) == 0 {
		return err
	}
	slices.Sort(others)
	others = slices.Compact(others)
	_, err = fmt.Fprintf(w, "<details><summary>%d other modules in the programs of the peers</summary>\n\n%s\n\n</details>\n\n", len(others), strings.Join(others, ", "))
	return err
}
