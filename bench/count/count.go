// Package count measures counting: exact and estimated, beside tiktoken-go
// (with its offline loader) and tiktoken-go/tokenizer.
package count

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	tiktoken "github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/tiktoken-go/tokenizer"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/measure"
)

// An encoding is one of the two vocabularies that are compared.
type encoding struct {
	name  string // as OpenAI calls it
	model string // one that uses it
}

var encodings = []encoding{{"o200k_base", "gpt-4o"}, {"cl100k_base", "gpt-4"}}

// theirs are tiktoken-go's encoders, which are dear to make.
var theirs = func() map[string]func() (*tiktoken.Tiktoken, error) {
	list := map[string]func() (*tiktoken.Tiktoken, error){}
	useLoader := sync.OnceFunc(func() { tiktoken.SetBpeLoader(loader.NewOfflineLoader()) })
	for _, e := range encodings {
		list[e.name] = sync.OnceValues(func() (*tiktoken.Tiktoken, error) {
			useLoader()
			return tiktoken.GetEncoding(e.name)
		})
	}
	return list
}()

// A counter is one way to count.
type counter struct {
	name  string
	count func(string) int
}

const (
	oursName      = "convo.Tiktoken"
	heuristicName = "convo.Heuristic"
	tiktokenName  = "tiktoken-go"
	codecName     = "tiktoken-go/tokenizer"
)

// countersOf are the ways to count by one encoding. Those of others are kept
// for all calls, as their users are told to.
func countersOf(e encoding) ([]counter, error) {
	ours, err := convo.Tiktoken(e.model)
	if err != nil {
		return nil, err
	}
	encoder, err := theirs[e.name]()
	if err != nil {
		return nil, err
	}
	codec, err := tokenizer.Get(tokenizer.Encoding(e.name))
	if err != nil {
		return nil, err
	}
	return []counter{
		{oursName, ours.CountTokens},
		{heuristicName, convo.Heuristic{}.CountTokens},
		{tiktokenName, func(s string) int { return len(encoder.EncodeOrdinary(s)) }},
		{codecName, func(s string) int {
			n, err := codec.Count(s)
			if err != nil {
				return -1
			}
			return n
		}},
	}, nil
}

// extent says how much is measured.
type extent struct {
	effort  measure.Effort
	size    int // bytes of each class in one round
	letters []int
	slow    int // longest run of one letter for tiktoken-go
}

const callSize = 4 << 10

func extentOf(quick bool) extent {
	if quick {
		return extent{measure.Quick, 32 << 10, []int{1_000, 10_000}, 1_000}
	}
	return extent{measure.Full, 512 << 10, []int{1_000, 10_000, 100_000, 1_000_000}, 100_000}
}

// Write measures and writes all tables of the package.
func Write(w io.Writer, quick bool) error {
	x := extentOf(quick)
	for _, e := range encodings {
		counters, err := countersOf(e)
		if err != nil {
			return err
		}
		for _, write := range []func(io.Writer, encoding, []counter, extent) error{writeSpeed, writeCalls, writeLetters, writeExact} {
			if err := write(w, e, counters, x); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	return writeLoad(w, quick)
}

var errNothing = errors.New("count: nothing was counted")

// speedCase counts parts of a class in calls of 4 KB. Each round reads a part
// that the counter has not seen.
func speedCase(c counter, parts []string) measure.Case {
	round := 0
	step := len(chunks(parts[0], callSize))
	return measure.Case{Step: step, Max: step, New: func(k int) (func(int) error, error) {
		list := chunks(parts[round%len(parts)], callSize)
		round++
		return func(i int) error {
			n := c.count(list[i%len(list)])
			if n <= 0 {
				return errNothing
			}
			runtime.KeepAlive(n)
			return nil
		}, nil
	}}
}

func writeSpeed(w io.Writer, e encoding, counters []counter, x extent) error {
	header := []string{"MB/s (Tiktoken is × faster) · allocs"}
	for _, c := range counters {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, class := range classes() {
		var parts []string
		for n := range x.effort.Rounds + 1 { // one for the calibration
			text, err := class.make(n, x.size)
			if err != nil {
				return fmt.Errorf("%s: %w", class.name, err)
			}
			parts = append(parts, text)
		}
		var cases []measure.Case
		for _, c := range counters {
			cases = append(cases, speedCase(c, parts))
		}
		got, err := measure.Cells(cases, x.effort)
		if err != nil {
			return fmt.Errorf("%s: %w", class.name, err)
		}
		row := []string{class.name}
		perCall := float64(len(parts[0])) / float64(len(chunks(parts[0], callSize)))
		for i, f := range got {
			ratio := ""
			if i > 1 {
				ratio = fmt.Sprintf(" (%s)", measure.Ratio(f.NS, got[0].NS))
			}
			row = append(row, fmt.Sprintf("%s%s · %s", rate(perCall*1e3/f.NS), ratio, measure.Size(f.Allocs)))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintf(w, "### %s: throughput\n\n%s of each class in calls of 4 KB, in each round a text that was not read before. MB of text for a second of CPU; allocations of one call.\n\n", e.name, bytesOf(x.size)); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w,
		"tiktoken-go is asked by EncodeOrdinary and tiktoken-go/tokenizer by Count, the quickest call of each that reads special tokens as text. tiktoken-go builds the list of tokens also when only their number is wanted.",
		"Prose, source and markdown are of the standard library. JSON, Chinese and Japanese, Cyrillic are generated of a few hundred words each: more of them are whole tokens, and more of the tables stays in the processor's caches, than with text that people wrote. That helps all columns, convo's most. A fraction of an allocation is scratch memory, taken anew after the collection before each round.",
	)
}

// rate writes MB/s.
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

func writeCalls(w io.Writer, e encoding, counters []counter, x extent) error {
	text, err := markdownOf(0, 8<<10)
	if err != nil {
		return err
	}
	header := []string{"one call (× Tiktoken's) · allocs"}
	for _, c := range counters {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, s := range []string{"hello world", cut(text, 100), cut(text, 800)} {
		var cases []measure.Case
		for _, c := range counters {
			cases = append(cases, measure.Case{New: func(int) (func(int) error, error) {
				return func(int) error { runtime.KeepAlive(c.count(s)); return nil }, nil
			}})
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
	if _, err := fmt.Fprintf(w, "### %s: small calls\n\nThe same text again and again: words, then markdown.\n\n", e.name); err != nil {
		return err
	}
	return measure.Table(w, header, rows)
}

func writeLetters(w io.Writer, e encoding, counters []counter, x extent) error {
	header := []string{"one call"}
	for _, c := range counters {
		header = append(header, c.name)
	}
	var rows [][]string
	for _, n := range x.letters {
		text := strings.Repeat("a", n)
		row := []string{measure.Count(n) + " × a"}
		for _, c := range counters {
			if c.name == tiktokenName && n > x.slow {
				row = append(row, "not run")
				continue
			}
			slow := c.name == tiktokenName && n >= 100_000
			got, err := measure.Cells([]measure.Case{{Once: slow, New: func(int) (func(int) error, error) {
				return func(int) error { runtime.KeepAlive(c.count(text)); return nil }, nil
			}}}, x.effort)
			if err != nil {
				return err
			}
			row = append(row, measure.Time(got[0].NS))
		}
		rows = append(rows, row)
	}
	if _, err := fmt.Fprintf(w, "### %s: one letter repeated\n\nOne word without end, as a model or a user may send it.\n\n", e.name); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, "tiktoken-go looks through the whole word after each merge: ten times the text takes about a hundred times as long.")
}

// difference is how far a counter is from tiktoken-go.
type difference struct{ chunks, off, tokens, delta int }

func compare(c, reference counter, list []string) (d difference) {
	for _, s := range list {
		got, want := c.count(s), reference.count(s)
		d.chunks++
		d.tokens += want
		d.delta += max(got-want, want-got)
		if got != want {
			d.off++
		}
	}
	return d
}

// oddities are short texts on which counters are known to part.
var oddities = []struct{ name, text string }{
	{"U+007F", "a\x7fb"},
	{"line, space, line", "a\n \nb"},
	{"line, spaces, lines", "a\n    \n\nb"},
	{"invalid UTF-8", "a\xff\xfeb"},
	{"special token as text", "<|endoftext|>"},
}

func find(counters []counter, name string) counter {
	for _, c := range counters {
		if c.name == name {
			return c
		}
	}
	return counter{}
}

func writeExact(w io.Writer, e encoding, counters []counter, x extent) error {
	reference := find(counters, tiktokenName)
	compared := []counter{find(counters, oursName), find(counters, codecName)}
	texts, err := all(0, x.size)
	if err != nil {
		return err
	}
	header := []string{"against tiktoken-go", "calls", "tokens"}
	for _, c := range compared {
		header = append(header, c.name+": calls that differ · tokens off")
	}
	var rows [][]string
	add := func(name string, list []string) {
		var row []string
		for _, c := range compared {
			d := compare(c, reference, list)
			if row == nil {
				row = []string{name, measure.Count(d.chunks), measure.Count(d.tokens)}
			}
			row = append(row, fmt.Sprintf("%d · %d", d.off, d.delta))
		}
		rows = append(rows, row)
	}
	for _, class := range classes() {
		add(class.name, chunks(texts[class.name], callSize))
	}
	for _, o := range oddities {
		add(fmt.Sprintf("%s: %q", o.name, o.text), []string{o.text})
	}
	if _, err := fmt.Fprintf(w, "### %s: same counts?\n\n", e.name); err != nil {
		return err
	}
	if err := measure.Table(w, header, rows); err != nil {
		return err
	}
	return measure.Notes(w, "tiktoken-go counts as OpenAI's own code does, except characters that are newer than the Unicode tables of the Go release it is built with. tiktoken-go/tokenizer loses U+007F and splits some runs of white space in another way.")
}
