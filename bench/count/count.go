// Package count measures exact and estimated token counts of convo, and compares
// them with the tokenizers of the peers.
package count

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/bench/texts"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// An encoding is one of the two vocabularies for which counters are compared.
type encoding struct {
	name  string // OpenAI's name for it
	model string // a model that uses it
}

var encodings = []encoding{{"o200k_base", "gpt-4o"}, {"cl100k_base", "gpt-4"}}

// A counter is one way to count tokens.
type counter struct {
	name      string
	quadratic bool // takes time quadratic in the length of a word
	count     func(texts []string) ([]int, error)
	cell      func(peer.CounterOf) measure.Cell
}

const (
	oursName      = "convo.Tiktoken"
	heuristicName = "convo.Heuristic"
)

// countersOf returns the counters for one encoding: ours first, then those of the
// peers. The peers load a vocabulary once and keep it for all calls, as their
// documentation recommends.
func countersOf(e encoding, fleet *harness.Fleet) ([]counter, error) {
	ours, err := tiktoken.New(e.model)
	if err != nil {
		return nil, err
	}
	all := []counter{here(oursName, ours.CountTokens), here(heuristicName, convo.Heuristic{}.CountTokens)}
	for _, p := range fleet.Peers {
		for _, c := range p.Counters {
			if c.Vocabulary != e.name {
				continue
			}
			all = append(all, counter{c.Name, c.Quadratic,
				func(texts []string) ([]int, error) { return p.Count(c, texts) },
				func(of peer.CounterOf) measure.Cell {
					of.Name, of.Vocabulary = c.Name, c.Vocabulary
					return p.CountCell(of)
				},
			})
		}
	}
	return all, nil
}

// here returns a counter that runs in this process.
func here(name string, count func(string) int) counter {
	return counter{
		name: name,
		count: func(texts []string) ([]int, error) {
			counts := make([]int, len(texts))
			for i, s := range texts {
				counts[i] = count(s)
			}
			return counts, nil
		},
		cell: func(of peer.CounterOf) measure.Cell { return peer.CountCase(count, of) },
	}
}

// An extent says how much is measured.
type extent struct {
	effort  measure.Effort
	size    int   // bytes of each class in one round
	letters []int // lengths of the runs of one letter
	slow    int   // the longest run for quadratic counters
}

const callSize = 4 << 10

func extentOf(quick bool) extent {
	if quick {
		return extent{measure.Quick, 32 << 10, []int{1_000, 10_000}, 1_000}
	}
	return extent{measure.Full, 512 << 10, []int{1_000, 10_000, 100_000, 1_000_000}, 100_000}
}

// Write measures and writes all tables of the package.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	x := extentOf(quick)
	for _, e := range encodings {
		counters, err := countersOf(e, fleet)
		if err != nil {
			return err
		}
		for _, write := range []func(io.Writer, encoding, []counter, extent, *harness.Fleet) error{writeSpeed, writeCalls, writeLetters, writeExact} {
			if err := write(w, e, counters, x, fleet); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	return writeLoad(w, quick, fleet)
}

// A speedCell counts text of one class in calls of 4 KB. Each round counts a part
// that the counter has not seen before.
type speedCell struct {
	counter
	parts []string
	round int
}

func (c *speedCell) next() measure.Cell {
	part := c.parts[c.round%len(c.parts)]
	c.round++
	return c.cell(peer.CounterOf{Texts: texts.Chunks(part, callSize), Whole: true})
}

func (c *speedCell) Fit(lasts time.Duration) (int, bool, error) { return c.next().Fit(lasts) }
func (c *speedCell) Round(k int) (peer.Figures, error)          { return c.next().Round(k) }

// speeds measures counters on text of a class. The time is that of a byte.
func speeds(class texts.Class, counters []counter, x extent) ([]peer.Figures, error) {
	var parts []string
	for n := range x.effort.Rounds + 1 { // one more for Fit
		text, err := class.Make(n, x.size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", class.Name, err)
		}
		parts = append(parts, text)
	}
	var cases []measure.Cell
	for _, c := range counters {
		cases = append(cases, &speedCell{counter: c, parts: parts})
	}
	got, err := measure.Cells(cases, x.effort)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", class.Name, err)
	}
	perCall := float64(len(parts[0])) / float64(len(texts.Chunks(parts[0], callSize)))
	for i := range got {
		got[i].NS /= perCall
	}
	return got, nil
}

// A Timing is the time that a counter takes for a byte of text.
type Timing struct {
	Class, Name string
	NS          float64
}

// Times measures exact counters of o200k on each class of text.
func Times(fleet *harness.Fleet) (all []Timing, err error) {
	counters, err := countersOf(encodings[0], fleet)
	if err != nil {
		return nil, err
	}
	counters = slices.DeleteFunc(counters, func(c counter) bool { return c.name == heuristicName })
	for _, class := range texts.Classes() {
		got, err := speeds(class, counters, extentOf(false))
		if err != nil {
			return nil, err
		}
		for i, c := range counters {
			all = append(all, Timing{class.Name, c.name, got[i].NS})
		}
	}
	return all, nil
}

func writeSpeed(w io.Writer, e encoding, counters []counter, x extent, fleet *harness.Fleet) error {
	header := []string{"MB/s (Tiktoken is × faster) · allocs"}
	for _, c := range counters {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, class := range texts.Classes() {
		got, err := speeds(class, counters, x)
		if err != nil {
			return err
		}
		row := []string{class.Name}
		for i, f := range got {
			ratio := ""
			if i > 1 {
				ratio = fmt.Sprintf(" (%s)", measure.Ratio(f.NS, got[0].NS))
			}
			row = append(row, fmt.Sprintf("%s%s · %s", rate(1e3/f.NS), ratio, measure.Size(f.Allocs)))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintf(w, "### %s: %s\n\n%s of each class in calls of 4 KB. Each round counts text that was not counted before. MB of text per second of CPU time; allocations per call.\n\n", e.name, peer.TableSpeed, bytesOf(x.size)); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, append([]string{
		"Prose, source and markdown come from the standard library. JSON, Chinese and Japanese, and Cyrillic are generated from a few hundred words each. Compared with text that people wrote, more of these words are whole tokens, and more of the tables stays in the processor's caches. That helps all columns, and convo's the most. Fractions of an allocation are working memory that is allocated again after the garbage collection before each round.",
	}, fleet.Notes(peer.TableSpeed)...)...)
}

// rate formats MB/s.
func rate(v float64) string {
	if v >= 1000 {
		return measure.Count(int(v+5) / 10 * 10)
	}
	return measure.Size(v)
}

func bytesOf(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}

func writeCalls(w io.Writer, e encoding, counters []counter, x extent, fleet *harness.Fleet) error {
	text, err := texts.Markdown(0, 8<<10)
	if err != nil {
		return err
	}
	header := []string{"one call (× Tiktoken's) · allocs"}
	for _, c := range counters {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, s := range []string{"hello world", texts.Cut(text, 100), texts.Cut(text, 800)} {
		var cases []measure.Cell
		for _, c := range counters {
			cases = append(cases, c.cell(peer.CounterOf{Texts: []string{s}}))
		}
		got, err := measure.Cells(cases, x.effort)
		if err != nil {
			return err
		}
		row := []string{fmt.Sprintf("%d bytes", len(s))}
		for _, f := range got {
			row = append(row, fmt.Sprintf("%s (%s) · %s", measure.Time(f.NS), measure.Ratio(f.NS, got[0].NS), measure.Size(f.Allocs)))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintf(w, "### %s: %s\n\nThe same short text is counted again and again: two words, then markdown.\n\n", e.name, peer.TableCalls); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(peer.TableCalls)...)
}

func writeLetters(w io.Writer, e encoding, counters []counter, x extent, fleet *harness.Fleet) error {
	header := []string{"one call"}
	for _, c := range counters {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, n := range x.letters {
		text := strings.Repeat("a", n)
		row := []string{measure.Count(n) + " × a"}
		for _, c := range counters {
			if c.quadratic && n > x.slow {
				row = append(row, "not run")
				continue
			}
			slow := c.quadratic && n >= 100_000
			got, err := measure.Cells([]measure.Cell{c.cell(peer.CounterOf{Texts: []string{text}, Once: slow})}, x.effort)
			if err != nil {
				return err
			}
			row = append(row, measure.Time(got[0].NS))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintf(w, "### %s: %s\n\nOne very long word, as a model or a user may send it.\n\n", e.name, peer.TableLong); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(peer.TableLong)...)
}

// A difference is how far a counter is off: in how many calls its count differs,
// and by how many tokens in all.
type difference struct{ off, delta int }

func compare(got, want []int) (d difference) {
	for i := range got {
		d.delta += max(got[i]-want[i], want[i]-got[i])
		if got[i] != want[i] {
			d.off++
		}
	}
	return d
}

// writeExact compares the counts of the peers with those of convo.Tiktoken. The
// tests of convo check that convo.Tiktoken counts as OpenAI's own code does.
func writeExact(w io.Writer, e encoding, counters []counter, x extent, fleet *harness.Fleet) error {
	ours, compared := counters[0], counters[2:]
	if len(compared) == 0 {
		return nil
	}
	all, err := texts.All(0, x.size)
	if err != nil {
		return err
	}
	header := []string{"against " + ours.name, "calls", "tokens"}
	for _, c := range compared {
		header = append(header, c.name+": calls that differ · tokens off")
	}
	var rows [][]string
	add := func(name string, list []string) error {
		want, err := ours.count(list)
		if err != nil {
			return err
		}
		tokens := 0
		for _, n := range want {
			tokens += n
		}
		row := []string{name, measure.Count(len(list)), measure.Count(tokens)}
		for _, c := range compared {
			got, err := c.count(list)
			if err != nil {
				return err
			}
			d := compare(got, want)
			row = append(row, fmt.Sprintf("%d · %d", d.off, d.delta))
		}
		rows = append(rows, row)
		return nil
	}
	for _, class := range texts.Classes() {
		if err := add(class.Name, texts.Chunks(all[class.Name], callSize)); err != nil {
			return err
		}
	}
	for _, o := range texts.Oddities {
		if err := add(fmt.Sprintf("%s: %q", o.Name, o.Text), []string{o.Text}); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "### %s: %s\n\n", e.name, peer.TableSame); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, fleet.Notes(peer.TableSame)...)
}
