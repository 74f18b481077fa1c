// Package calibrate measures what usage reports make of an estimate: how far
// off the next request is, and how often its true size is above the bound, by
// how many reports came before.
//
// The true sizes are those of a real tokenizer, with an overhead that the
// library is not told. The library counts with Heuristic.
package calibrate

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/cohere-ai/tokenizer"

	"github.com/seed-c1b73e60/convo"
)

// overheads are what a request may carry beside its messages.
var overheads = []int{0, 0, 500, 3000, 12_000}

// frame is what a message weighs beside its text, in truth.
const frame = 4

// A Setup is one way to go through conversations.
type Setup struct {
	Name     string
	Count    func(text string) int // the true tokenizer
	Prior    convo.Prior
	Overhead bool // requests carry tools, from 0 to 12,000 tokens
	Window   int  // 0: nothing is ever compacted
}

// A Cell sums up the requests before which the same number of reports came.
type Cell struct {
	N            int
	Error, Slack float64 // sums of shares of the true size
	Above        int     // requests above the bound
}

func (c *Cell) add(truth int, e convo.Estimate) {
	c.N++
	off := float64(e.Tokens - truth)
	c.Error += max(off, -off) / float64(truth)
	c.Slack += float64(e.Upper-truth) / float64(truth)
	if truth > e.Upper {
		c.Above++
	}
}

func (c *Cell) plus(d Cell) {
	c.N, c.Above = c.N+d.N, c.Above+d.Above
	c.Error, c.Slack = c.Error+d.Error, c.Slack+d.Slack
}

// MeanError is by how many percent of the true size the estimate was off.
func (c Cell) MeanError() float64 { return 100 * c.Error / float64(max(c.N, 1)) }

// Coverage is in how many percent of the requests the bound held.
func (c Cell) Coverage() float64 { return 100 - 100*float64(c.Above)/float64(max(c.N, 1)) }

// MeanSlack is by how many percent of the true size the bound was above it.
func (c Cell) MeanSlack() float64 { return 100 * c.Slack / float64(max(c.N, 1)) }

// Reports is up to how many reports cells are kept; the last one holds all
// requests with that many or more.
const Reports = 20

// Cells are by the number of reports so far.
type Cells [Reports + 1]Cell

// Over sums up the requests with first to last reports before them.
func (c *Cells) Over(first, last int) Cell {
	var sum Cell
	for _, d := range c[first : last+1] {
		sum.plus(d)
	}
	return sum
}

// Run goes through conversations, each a list of texts, three messages to a
// request, and reports the usage of each.
func Run(s Setup, conversations [][]string) (*Cells, error) {
	var cells Cells
	r := rand.New(rand.NewPCG(1, 9))
	for _, texts := range conversations {
		overhead := 0
		if s.Overhead {
			overhead = overheads[r.IntN(len(overheads))]
		}
		if err := s.run(texts, overhead, &cells); err != nil {
			return nil, err
		}
	}
	return &cells, nil
}

func (s Setup) run(texts []string, overhead int, cells *Cells) error {
	opts := &convo.Options{Roles: convo.Relaxed(), Priors: map[string]convo.Prior{"": s.Prior}}
	if s.Window > 0 {
		opts.Limits = convo.Limits{Window: s.Window + overhead, Reserve: -1, Overhead: overhead}
		opts.Strategy = convo.Truncate{}
	}
	h, err := convo.New(opts)
	if err != nil {
		return err
	}
	defer h.Close()
	truths := map[convo.ID]int{}
	for i, text := range texts {
		m := convo.User(text)
		if i%3 == 1 {
			m = convo.Assistant(text)
		}
		id, err := h.Append(m)
		if err != nil {
			return err
		}
		truths[id] = s.Count(text) + frame
		if i%3 != 2 {
			continue
		}
		snap, _, err := h.Prepare(context.Background())
		if err != nil {
			return err
		}
		truth := overhead
		for _, e := range snap.All() {
			truth += truths[e.ID]
		}
		cells[min(i/3, Reports)].add(truth, h.Tokens())
		if err := h.RecordUsage(snap, convo.Usage{Input: truth}); err != nil {
			return err
		}
	}
	return nil
}

// Setups are those of the tables.
func Setups() ([]Setup, error) {
	o200k, err := convo.Tiktoken("gpt-4o")
	if err != nil {
		return nil, err
	}
	cl100k, err := convo.Tiktoken("gpt-4")
	if err != nil {
		return nil, err
	}
	cohere, err := tokenizer.NewFromPrebuilt("coheretext-50k")
	if err != nil {
		return nil, err
	}
	foreign := func(text string) int {
		tokens, _ := cohere.Encode(text)
		return len(tokens)
	}
	var setups []Setup
	for _, t := range []Setup{
		{Name: "o200k", Count: o200k.CountTokens},
		{Name: "cl100k", Count: cl100k.CountTokens},
		{Name: "foreign", Count: foreign},
		{Name: "foreign, Prior{Ratio: 120}", Count: foreign, Prior: convo.Prior{Ratio: 120}},
	} {
		memo := map[string]int{}
		count := t.Count
		t.Count = func(text string) int {
			n, ok := memo[text]
			if !ok {
				n = count(text)
				memo[text] = n
			}
			return n
		}
		setups = append(setups, t)
		t.Name, t.Overhead = t.Name+", tools", true
		setups = append(setups, t)
		t.Name, t.Window = t.Name+", compacting", 16_000
		setups = append(setups, t)
	}
	return setups, nil
}

// Write prints the tables.
func Write(w io.Writer, quick bool) error {
	n := 200
	if quick {
		n = 12
	}
	texts, err := Conversations(n)
	if err != nil {
		return err
	}
	setups, err := Setups()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d conversations of 60 messages each, three to a request, a report on each request. Error: of the whole context, before its report; coverage: how often its true size was within `Estimate.Upper`; slack: by how much Upper was above it, on average. All in percent.\n\n", len(texts))
	fmt.Fprintln(w, "| true tokenizer | error before any report | after 1 | 3 | 10 | coverage, slack: none | 2nd and 3rd report | from the 4th on |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, s := range setups {
		c, err := Run(s, texts)
		if err != nil {
			return err
		}
		early, late := c.Over(1, 2), c.Over(3, Reports)
		fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f | %.2f | %.1f, %.1f | %.1f, %.1f | %.1f, %.1f |\n", s.Name,
			c[0].MeanError(), c[1].MeanError(), c[3].MeanError(), c[10].MeanError(),
			c[0].Coverage(), c[0].MeanSlack(), early.Coverage(), early.MeanSlack(), late.Coverage(), late.MeanSlack())
	}
	_, err = fmt.Fprintln(w)
	return err
}
