// Package calibrate measures how usage reports improve an estimate: how far off
// the estimate of the next request is, and how often the request's true size is
// above the bound, depending on the number of reports before.
//
// The true size of a request is the count of a real tokenizer plus an overhead
// that convo does not know. convo counts with Heuristic.
package calibrate

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/seed-c1b73e60/convo"
	"github.com/seed-c1b73e60/convo/bench/internal/harness"
	"github.com/seed-c1b73e60/convo/bench/peer"
	"github.com/seed-c1b73e60/convo/tiktoken"
)

// overheads are the possible sizes, in tokens, of what a request carries besides
// its messages.
var overheads = []int{0, 0, 500, 3000, 12_000}

// frame is the true number of tokens of a message besides its text.
const frame = 4

// A Setup is one way to run conversations.
type Setup struct {
	Name     string
	Count    func(text string) (int, error) // the true tokenizer
	Prior    convo.Prior
	Overhead bool // requests carry tools of 0 to 12,000 tokens
	Window   int  // 0 means that nothing is ever compacted
	Uncached int  // of so many reports one lacks what the request has in common with the one before; 0: none
}

// A Cell sums up the requests that came after the same number of reports.
type Cell struct {
	N            int
	Error, Slack float64 // sums over requests, relative to the true size
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

// MeanError returns the mean error of the estimate, in percent of the true size.
func (c Cell) MeanError() float64 { return 100 * c.Error / float64(max(c.N, 1)) }

// Coverage returns the percentage of requests whose true size was within the
// bound.
func (c Cell) Coverage() float64 { return 100 - 100*float64(c.Above)/float64(max(c.N, 1)) }

// MeanSlack returns by how much the bound was above the true size on average, in
// percent of the true size.
func (c Cell) MeanSlack() float64 { return 100 * c.Slack / float64(max(c.N, 1)) }

// Reports is the highest number of reports that has a cell of its own. That cell
// also holds the requests after more reports.
const Reports = 20

// Cells holds the cells by the number of reports before a request.
type Cells [Reports + 1]Cell

// Over returns the sum of the cells from first to last.
func (c *Cells) Over(first, last int) Cell {
	var sum Cell
	for _, d := range c[first : last+1] {
		sum.plus(d)
	}
	return sum
}

// Run runs conversations, each of which is a list of texts. It makes a request
// after every third message, and reports the usage of each request.
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
		opts.Limits = convo.Limits{Window: s.Window + overhead, Reserve: -1, Tools: overhead}
		opts.Strategy = convo.Truncate{}
	}
	h, err := convo.New(opts)
	if err != nil {
		return err
	}
	defer h.Close()
	truths := map[convo.ID]int{}
	earlier := map[convo.ID]bool{} // of the request before
	r := rand.New(rand.NewPCG(2, uint64(len(texts))))
	for i, text := range texts {
		m := convo.User(text)
		if i%3 == 1 {
			m = convo.Assistant(text)
		}
		id, err := h.Append(m)
		if err != nil {
			return err
		}
		tokens, err := s.Count(text)
		if err != nil {
			return err
		}
		truths[id] = tokens + frame
		if i%3 != 2 {
			continue
		}
		snap, _, err := h.Prepare(context.Background())
		if err != nil {
			return err
		}
		truth, cached := overhead, overhead
		for _, e := range snap.All() {
			truth += truths[e.ID]
			if earlier[e.ID] {
				cached += truths[e.ID]
			}
		}
		clear(earlier)
		for _, e := range snap.All() {
			earlier[e.ID] = true
		}
		cells[min(i/3, Reports)].add(truth, h.Tokens())
		input := truth
		if s.Uncached > 0 && i > 3 && r.IntN(s.Uncached) == 0 {
			input -= cached
		}
		if err := h.RecordUsage(snap, convo.Usage{Input: input}); err != nil {
			return err
		}
	}
	return nil
}

// Ours returns the setups whose true tokenizer is in convo.
func Ours() ([]Setup, error) {
	o200k, err := tiktoken.New("gpt-4o")
	if err != nil {
		return nil, err
	}
	cl100k, err := tiktoken.New("gpt-4")
	if err != nil {
		return nil, err
	}
	here := func(t convo.Tokenizer) func(string) (int, error) {
		return func(text string) (int, error) { return t.CountTokens(text), nil }
	}
	return slices.Concat(ways("o200k", here(o200k), convo.Prior{}), ways("cl100k", here(cl100k), convo.Prior{})), nil
}

// Foreign returns the setups for a tokenizer that convo does not have. They call
// count only once for each text.
func Foreign(count func(text string) (int, error)) []Setup {
	memo := map[string]int{}
	once := func(text string) (int, error) {
		n, ok := memo[text]
		if ok {
			return n, nil
		}
		n, err := count(text)
		memo[text] = n
		return n, err
	}
	return slices.Concat(ways("foreign", once, convo.Prior{}), ways("foreign, Prior{Ratio: 120}", once, convo.Prior{Ratio: 120}))
}

// ways returns the setups for one tokenizer: without tools, with tools, and with
// tools and compaction.
func ways(name string, count func(string) (int, error), prior convo.Prior) []Setup {
	return []Setup{
		{Name: name, Count: count, Prior: prior},
		{Name: name + ", tools", Count: count, Prior: prior, Overhead: true},
		{Name: name + ", tools, compacting", Count: count, Prior: prior, Overhead: true, Window: 16_000},
	}
}

// openAI lists the vocabularies that convo has.
var openAI = []string{"o200k_base", "cl100k_base"}

// setups returns our setups and those for the peers' tokenizers that convo does
// not have.
func setups(fleet *harness.Fleet) ([]Setup, error) {
	all, err := Ours()
	for _, p := range fleet.Peers {
		for _, c := range p.Counters {
			if !slices.Contains(openAI, c.Vocabulary) {
				all = append(all, Foreign(counts(p, c))...)
			}
		}
	}
	return all, err
}

// counts returns a function that has a peer count a text.
func counts(p *harness.Peer, c peer.Counter) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := p.Count(c, []string{text})
		if err != nil {
			return 0, err
		}
		return n[0], nil
	}
}

// Write writes the table.
func Write(w io.Writer, quick bool, fleet *harness.Fleet) error {
	n := 200
	if quick {
		n = 12
	}
	texts, err := Conversations(n)
	if err != nil {
		return err
	}
	setups, err := setups(fleet)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d conversations of 60 messages each, with a request after every third message and a usage report for each request. Error: how far the estimate of the whole request was off before its own report. Coverage: how often the true size was within `Estimate.Upper`. Slack: by how much Upper was above the true size on average. All in percent.\n\n", len(texts))
	fmt.Fprintln(w, "| true tokenizer | error before any report | after 1 report | after 3 | after 10 | coverage, slack before any report | after 1 and 2 | after 3 and more |")
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
