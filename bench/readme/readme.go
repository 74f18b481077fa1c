// Package readme measures what README.md quotes: operations of convo as it is without options,
// beside other libraries as their users run them.
package readme

import (
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/ops"
	"github.com/seed-c1b73e60/convo/bench/peer"
)

// messages is the length of the conversations.
const messages = 10_000

// Results are what one run measured, in nanoseconds.
type Results struct {
	Machine, Go, Date string
	Modules           []string // path and version of the other libraries
	Rows              []Row
	Window            int64 // of a compaction of a full window of 200,000 tokens
}

// A Row is an operation: the time of each library, or 0 if the library is not available.
type Row struct {
	Name string
	NS   []int64
}

// libraries are the columns.
var libraries = []string{"convo", "eino", "trpc-agent-go", "langchaingo"}

// rows name the rows of package ops that are quoted, for each library. Of several, the
// fastest counts.
var rows = []struct {
	name  string
	table peer.Table
	cells [][]string
}{
	{"append", peer.TableAppend, [][]string{{"convo"}, {"eino (the caller's slice)"}, {"trpc-agent-go AppendEvent"}, {"langchaingo AddUserMessage/AddAIMessage"}}},
	{"check, nothing to do", peer.TableCheck, [][]string{{"convo Prepare"}, {"eino summarization, usage on the last answer"},
		{"trpc-agent-go CheckTokenThreshold", "trpc-agent-go HeadOut under budget"}, {"langchaingo SaveContext"}}},
	{"step at the limit", peer.TableStep, [][]string{{"convo Append, Prepare, Append"}, {"eino summarization"}, {"trpc-agent-go HeadOut", "trpc-agent-go MiddleOut"}, {"langchaingo SaveContext"}}},
	{"reduce to half the limit", peer.TableTrim, [][]string{{"convo Compact"}, {"eino summarization"}, {"trpc-agent-go HeadOut", "trpc-agent-go MiddleOut"}, {"langchaingo SaveContext"}}},
}

// Measure measures all rows in one run.
func Measure() (Results, error) {
	fleet, err := harness.Open("peers", os.Stderr)
	if err != nil {
		return Results{}, err
	}
	r, err := of(fleet, messages, measure.Full)
	if closed := fleet.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = fleet.Broken
	}
	return r, err
}

func of(fleet *harness.Fleet, messages int, effort measure.Effort) (Results, error) {
	r := Results{Machine: measure.Machine(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly)}
	for _, p := range fleet.Peers {
		for _, m := range p.Modules {
			if slices.ContainsFunc(libraries, func(name string) bool { return strings.HasSuffix(m.Path, "/"+name) }) {
				r.Modules = append(r.Modules, m.Path+" "+m.Version)
			}
		}
	}
	times, err := ops.Times(messages, effort, fleet)
	if err != nil {
		return Results{}, err
	}
	for _, row := range rows {
		out := Row{Name: row.name}
		for i, names := range row.cells {
			var cell []int64
			for _, name := range names {
				if at := slices.IndexFunc(times, func(t ops.Timing) bool { return t.Table == row.table && t.Name == name }); at >= 0 {
					cell = append(cell, max(int64(math.Round(times[at].NS)), 1))
				}
			}
			if len(cell) == 0 {
				if i == 0 || slices.ContainsFunc(r.Modules, func(m string) bool { return strings.Contains(m, "/"+libraries[i]+" ") }) {
					return Results{}, fmt.Errorf("there is no row %q in %q", names, row.table)
				}
				cell = []int64{0}
			}
			out.NS = append(out.NS, slices.Min(cell))
		}
		r.Rows = append(r.Rows, out)
	}
	window, err := ops.Window(effort)
	r.Window = int64(math.Round(window))
	return r, err
}

// Write writes what README.md quotes. If quick is set, the conversations are shorter.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	n := messages
	if quick {
		n = 100
	}
	r, err := of(fleet, n, measure.EffortOf(quick))
	if err == nil {
		_, err = fmt.Fprintf(w, "At %s messages of 400 bytes. The fastest of each row is bold.\n\n%s\n%s.\n\n", measure.Count(n), r.table(), r.felt())
	}
	return err
}

// table returns the table, in which the fastest of each row is bold.
func (r Results) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|%s\n", strings.Join(libraries, " | "), strings.Repeat("---|", 1+len(libraries)))
	for _, row := range r.Rows {
		fastest := slices.Min(slices.DeleteFunc(slices.Clone(row.NS), func(ns int64) bool { return ns == 0 }))
		b.WriteString("| " + row.Name)
		for _, ns := range row.NS {
			said := brief(ns)
			switch ns {
			case 0:
				said = "–"
			case fastest:
				said = "**" + said + "**"
			}
			b.WriteString(" | " + said)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// felt returns what a person feels of a compaction.
func (r Results) felt() string {
	return "A full window of 200,000 tokens is compacted in " + brief(r.Window)
}

// brief formats nanoseconds with a unit and two significant digits.
func brief(ns int64) string {
	v, unit := float64(ns), "ns"
	for _, u := range []string{"µs", "ms", "s"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	switch {
	case v >= 99.5:
		return fmt.Sprintf("%.0f %s", math.Round(v/10)*10, unit)
	case v >= 9.95 || unit == "ns":
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// A Quote is a place on a page, relative to the directory of the module, and what it says.
type Quote struct {
	Page string
	At   *regexp.Regexp
	Text string
}

var (
	tableAt = regexp.MustCompile(`(?m)^\| \| convo \| eino \|.*\n(?:\|.*\n)+`)
	feltAt  = regexp.MustCompile(`A full window of 200,000 tokens is compacted in [\d.]+ [mµ]?s`)
	runAt   = regexp.MustCompile(`Measured on .*\n`)
)

// Quotes returns what the pages say of the results.
func (r Results) Quotes() (all []Quote) {
	for _, page := range []string{"../README.md", "results.md"} {
		all = append(all, Quote{page, tableAt, r.table()}, Quote{page, feltAt, r.felt()})
	}
	run := fmt.Sprintf("Measured on %s, on %s, with %s, %s.\n", r.Date, r.Machine, r.Go, strings.Join(r.Modules, ", "))
	return append(all, Quote{"results.md", runAt, run})
}
